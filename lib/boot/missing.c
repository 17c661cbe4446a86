// SPDX-License-Identifier: MIT
/*
 * Ranks that have not arrived, for messages.
 *
 * The kernel knows only the ranks on its own node. Therefore each rank sets a word in its library
 * page, which other ranks read.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"
#include "boot/boot.h"
#include "boot/missing.h"
#include "core/event.h"
#include "core/gone.h"
#include "core/internal.h"
#include "core/job.h"
#include "core/mem.h"
#include "core/page.h"
#include "core/process.h"
#include "core/rank_list.h"

#define MS		1000000u
#define PROBE_MS	1000		/* to wait for answers of ranks that are present */
#define STEP_MS		5

/* Number of ranks that were queried, and those that did not answer. */
struct answers {
	uint32_t asked;
	struct libacp_ranks missing;
	uint32_t silent;		/* first of their nodes that does not answer at all */
	bool any_silent;
};

static struct libacp_page *own_page(void)
{
	return libacp_mem_own(ACP_STAG_LIBRARY);
}

static acp_ga_t page_ga(uint32_t rank, size_t offset)
{
	return acp_ga_make(&libacp.layout, rank, 0, ACP_STAG_LIBRARY, offset);
}

void libacp_absent_open(void)
{
	__atomic_store_n(&own_page()->here, 1, __ATOMIC_RELEASE);
}

/* Query some ranks and wait for their answers until @end. False if it has passed. */
static bool ask(uint32_t first, uint32_t count, uint64_t end)
{
	struct libacp_page *page = own_page();
	uint32_t i;

	for (i = 0; i < count; i++) {
		page->piece[i] = 0;
		acp_copy(page_ga(libacp.rank, offsetof(struct libacp_page, piece[i])),
			 page_ga(first + i, offsetof(struct libacp_page, here)),
			 sizeof(uint64_t), ACP_HANDLE_NULL);
	}
	while (acp_inquire(ACP_HANDLE_ALL) && libacp_now() < end)
		libacp_sleep(STEP_MS * MS);
	return !acp_inquire(ACP_HANDLE_ALL);
}

static void note_missing(struct answers *a, uint32_t rank)
{
	const uint32_t node = libacp_boot_node_of(&libacp.boot, rank);
	const struct acp_rank_state s = libacp_rank_state(rank);

	if (s.state == ACP_RANK_DOWN && s.status == ACP_ST_RANK)
		return;		/* arrived, but gave up before */
	libacp_ranks_add(&a->missing, rank);
	if (a->any_silent || node == libacp.node ||
	    (s.state != ACP_RANK_UNKNOWN && s.state != ACP_RANK_DOWN))
		return;
	a->any_silent = true;
	a->silent = node;
}

static void ask_all(struct answers *a)
{
	const uint64_t end = libacp_now() + (uint64_t)PROBE_MS * MS;
	const bool former = libacp_quiet(true);
	struct libacp_page *page = own_page();
	uint32_t most = sizeof(page->piece) / sizeof(page->piece[0]), count, i;
	bool going = true;

	*a = (struct answers){ .asked = 0 };
	if (most > libacp.boot.depth / 2)
		most = libacp.boot.depth / 2;
	for (; going && a->asked < libacp.nprocs; a->asked += count) {
		count = libacp.nprocs - a->asked < most ? libacp.nprocs - a->asked : most;
		going = ask(a->asked, count, end);
		for (i = 0; i < count; i++)
			if (!__atomic_load_n(&page->piece[i], __ATOMIC_ACQUIRE))
				note_missing(a, a->asked + i);
	}
	libacp_quiet(former);
}

/* Write "node 3 (10.0.0.2)", with the addresses of all colors. */
static void name_node(uint32_t node, char *text, size_t size)
{
	char *address = libacp_node_text(&libacp.boot, node);

	snprintf(text, size, "node %u (%.100s)", node, address ? address : "?");
	free(address);
}

static bool wrong_key(uint32_t index, struct acp_wrong_key *w)
{
	*w = (struct acp_wrong_key){ .size = sizeof(*w), .index = index };
	return ioctl(libacp.fd, ACP_IOC_WRONG_KEY, w) == 0;
}

/* Describe frames with a wrong key: their number and origin. False if there were none. */
static bool name_wrong_keys(char text[LIBACP_REASON_TEXT])
{
	char address[INET6_ADDRSTRLEN];
	struct acp_wrong_key w;
	uint32_t others = 0;
	int length;

	if (!wrong_key(0, &w))
		return false;
	length = snprintf(text, LIBACP_REASON_TEXT, "%" PRIu64 " frame%s with a wrong key came from %s (node %u)",
			  (uint64_t)w.frames, w.frames == 1 ? "" : "s",
			  inet_ntop(w.family, w.addr, address, sizeof(address)), w.node);
	while (wrong_key(others + 1, &w))
		others++;
	if (others)
		length += snprintf(text + length, LIBACP_REASON_TEXT - (size_t)length,
				   " and others from %u more addresses", others);
	snprintf(text + length, LIBACP_REASON_TEXT - (size_t)length,
		 ": ACP_KEYFILE must have the same key on all nodes");
	return true;
}

/* Write the probable cause, and what to do. */
static void explain_missing(const struct answers *a, char text[LIBACP_REASON_TEXT])
{
	char node[150], cause[200];

	if (name_wrong_keys(text))
		return;
	if (!a->any_silent) {
		snprintf(text, LIBACP_REASON_TEXT, "%s started?",
			 a->missing.count == 1 ? "was it" : "were they");
		return;
	}
	name_node(a->silent, node, sizeof(node));
	if (libacp_drops_name(cause, sizeof(cause))) {
		snprintf(text, LIBACP_REASON_TEXT, "%s does not answer, but %s: 'acp check' tells more",
			 node, cause);
		return;
	}
	snprintf(text, LIBACP_REASON_TEXT,
		 "%s does not answer: was the job started there, and is UDP port %u open between the nodes?",
		 node, libacp.boot.port);
}

void libacp_tell_missing(void)
{
	char missing[LIBACP_RANKS_TEXT], why[LIBACP_REASON_TEXT];
	struct answers a;

	ask_all(&a);
	if (!a.missing.count) {
		libacp_error("not all %u ranks came within %u ms (ACP_INIT_TIMEOUT), but all are there now: set ACP_INIT_TIMEOUT higher",
			     libacp.nprocs, libacp.boot.init_timeout_ms);
		return;
	}
	libacp_ranks_name(&a.missing, missing);
	explain_missing(&a, why);
	libacp_error("not all %u ranks came within %u ms (ACP_INIT_TIMEOUT): %s did not%s: %s",
		     libacp.nprocs, libacp.boot.init_timeout_ms, missing,
		     a.asked < libacp.nprocs ? ", and perhaps later ones" : "", why);
}

void libacp_tell_left_early(void)
{
	char text[LIBACP_REASON_TEXT];
	struct libacp_gone gone;

	libacp_gone_await(&gone);
	if (!gone.left.count && gone.lost.count) {
		libacp_tell_missing();	/* these did not answer in time */
		return;
	}
	libacp_gone_name(&gone, "left", text);
	libacp_error("%s before all %u ranks had joined: see its messages on standard error",
		     text, libacp.nprocs);
}
