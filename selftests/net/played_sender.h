/* SPDX-License-Identifier: MIT */
/* A mailbox of the kernel, and a node that sends messages to it and is played by the test. */
#ifndef PLAYED_SENDER_H
#define PLAYED_SENDER_H

#include <string.h>

#include "inject.h"

#define VICTIM_SIZE	(16 * 1024UL)
#define HEAD		sizeof(struct acp_mailbox)
#define RECORD		sizeof(struct acp_record)

static struct nodes n;
static struct inject x;			/* node 1, with ranks 2 and 3 */
static struct rank victim, second;	/* ranks 0 and 1 */
static struct memory target;		/* of rank 0; begins with the mailbox */

/* A mailbox at the start of a region, of which so many bytes are offered. */
static struct acp_mailbox *offer(struct memory *m, size_t bytes)
{
	struct acp_mailbox *box = (void *)m->addr;

	memset(m->addr, 0, HEAD + bytes);
	box->units = (uint32_t)(bytes / 8);
	__atomic_store_n(&box->room, ACP_MAILBOX_ROOM(0, box->units), __ATOMIC_RELEASE);
	return box;
}

static void play(uint32_t integrity)
{
	static struct setup setup;

	nodes_open(&n, 2, 1, false);
	nodes_setup(&n, &setup, 0, 4);
	setup.join.integrity = integrity;
	nodes_join(&n, &victim, &setup);
	setup.join.rank = 1;
	nodes_join(&n, &second, &setup);
	memory_open(&victim, &target, VICTIM_SIZE);
	inject_begin(&x, &n, &setup, &victim, 2);
	offer(&target, VICTIM_SIZE - HEAD);
}

#endif /* PLAYED_SENDER_H */
