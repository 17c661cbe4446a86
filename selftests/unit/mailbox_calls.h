/* SPDX-License-Identifier: MIT */
/*
 * The functions of mailboxes, with a fake device. Ranks 0 and 1 are on the node of rank 0, 2 and 3
 * on another one. If the device is "deaf", only a wake-up ends a sleep: a lost one hangs.
 */
#ifndef MAILBOX_CALLS_H
#define MAILBOX_CALLS_H

#include <sys/wait.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"
#include "core/internal.h"
#include "core/process.h"
#include "core/submit.h"
#include "mailbox/node_ring.h"
#include "test.h"
#include "test_lib_device.h"

#define MS	1000000ULL	/* ns */
#define DEPTH	64
#define NONE	((acp_handle_t)ACP_HANDLE_NULL)

static inline int join(void)
{
	setenv("ACP_RANK", "0", 1);
	setenv("ACP_NPROCS", "4", 1);
	setenv("ACP_NODES", "10.0.0.1 10.0.0.2", 1);
	setenv("ACP_INSECURE", "1", 1);
	setenv("ACP_QUEUE_DEPTH", "64", 1);
	setenv("ACP_STARTER_SIZE", "65536", 1);
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	test_limit(PATIENCE_WORK);
	return acp_init(NULL, NULL);
}

/* Join, and create a mailbox. */
static inline acpx_mailbox_t start(size_t bytes)
{
	acpx_mailbox_t box;

	CHECK(join() == 0);
	CHECK_EQ(acpx_mailbox_create(bytes, 0, &box), 0);
	return box;
}

static inline void end(acpx_mailbox_t box)
{
	CHECK_EQ(acpx_mailbox_free(box), 0);
	CHECK_EQ(acp_finalize(), 0);
}

static inline struct acp_mailbox *memory_of(acpx_mailbox_t box)
{
	return acp_query_address(acpx_mailbox_ga(box));
}

static inline char *starter(void)
{
	return fake.memory[ACP_STAG_STARTER][0];
}

static inline acp_handle_t start_send(acpx_mailbox_t box, size_t offset, size_t size, uint64_t tag)
{
	return acpx_send(acpx_mailbox_ga(box), acp_query_starter_ga(0) + offset, size, tag, 0,
			 NONE);
}

static inline int send(acpx_mailbox_t box, size_t offset, size_t size, uint64_t tag)
{
	acp_handle_t handle = start_send(box, offset, size, tag);

	acp_complete(handle);
	return acpx_status(handle);
}

/* The same by the kernel, as if another thread was writing to the ring. */
static inline int send_by_kernel(acpx_mailbox_t box, size_t offset, size_t size, uint64_t tag)
{
	struct acp_sqe entry = {
		.op = ACP_OP_SEND, .dst = acpx_mailbox_ga(box), .size = size, .b = tag,
		.src = acp_query_starter_ga(0) + offset,
	};
	acp_handle_t handle = libacp_note_message(libacp_submit_one(&entry, NONE));

	acp_complete(handle);
	return acpx_status(handle);
}

static inline bool is(const struct acpx_message *m, size_t size, uint64_t tag)
{
	return m->size == size && m->tag == tag && m->rank == 0;
}

#endif /* MAILBOX_CALLS_H */
