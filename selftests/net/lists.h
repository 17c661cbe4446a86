/* SPDX-License-Identifier: MIT */
/* Ranks on nodes of their own, of which rank 1 has a match list in its heap, and messages to it. */
#ifndef LISTS_H
#define LISTS_H

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "nodes.h"

#define RANKS		3		/* each on a node of its own; rank 1 has the list */
#define HEAP		(4U << 20)
/* Offsets in the heap of rank 1. */
#define MAILBOX		0U
#define RESULTS		4096U
#define MEMORY		(1U << 20)
#define BUFFERS		(2U << 20)
#define SOURCE		(3U << 20)	/* of what is sent, in all heaps */
#define RECEIVES	512U
#define KEPT		256U
#define SLOT		2048U		/* bytes of a buffer, where all have the same */

static struct nodes n;
static struct rank r[RANKS];
static uint32_t list;

/* ---- the list ---- */

static const struct acp_match usual = {
	.size = sizeof(usual), .bytes = MEMORY, .receives = RECEIVES, .messages = KEPT,
	.masks = 2, .mask = { 0, 0xff00 },
};

static inline int create(struct acp_match *a)
{
	a->mailbox = heap_ga(&r[1], MAILBOX);
	a->results = heap_ga(&r[1], RESULTS);
	a->memory = heap_ga(&r[1], MEMORY);
	return ioctl(r[1].fd, ACP_IOC_MATCH, a) ? -errno : 0;
}

static inline struct acp_mailbox *mailbox(void)
{
	return (struct acp_mailbox *)(void *)(r[1].heap + MAILBOX);
}

static inline struct acp_result *result(uint32_t number)
{
	return (struct acp_result *)(void *)(r[1].heap + RESULTS) + number;
}

static inline uint64_t state(uint32_t number)
{
	return __atomic_load_n(&result(number)->state, __ATOMIC_ACQUIRE);
}

static inline uint64_t complete(void)
{
	return __atomic_load_n(&mailbox()->room, __ATOMIC_ACQUIRE);
}

static inline void open_like(const struct acp_match *like)
{
	struct acp_match a = *like;

	CHECK_EQ(create(&a), 0);
	CHECK(a.list);
	list = a.list;
	__atomic_store_n(&mailbox()->list, list, __ATOMIC_RELEASE);
}

static inline void begin_like(const char *netem, const struct acp_match *like, uint32_t timeout_ms)
{
	const struct acp_join wish = { .heap_size = HEAP, .timeout_ms = timeout_ms };

	nodes_open(&n, RANKS, 1, false);
	nodes_ranks_like(&n, r, RANKS, &wish);
	if (netem)
		nodes_impair_all(&n, netem);
	open_like(like);
}

static inline void begin(const char *netem)
{
	begin_like(netem, &usual, 0);
}

static inline int do_post(struct acp_post *p)
{
	p->size = sizeof(*p);
	p->list = list;
	return ioctl(r[1].fd, ACP_IOC_POST, p) ? -errno : 0;
}

/* Post a receive of a rank, or of any (-1), whose result has that number. */
static inline int post(uint32_t number, int rank, uint64_t tag, uint64_t ignore, uint32_t at,
		       uint64_t room)
{
	struct acp_post p = {
		.flags = rank < 0 ? ACP_POST_ANY_RANK : 0, .rank = rank < 0 ? 0 : (uint32_t)rank,
		.tag = tag, .ignore = ignore, .buffer = heap_ga(&r[1], at), .room = room,
		.result = number,
	};

	result(number)->state = 0;
	return do_post(&p);
}

static inline int unpost(uint32_t what, uint32_t number)
{
	const struct acp_unpost u = {
		.size = sizeof(u), .list = list, .what = what, .number = number,
	};

	return ioctl(r[1].fd, ACP_IOC_UNPOST, &u) ? -errno : 0;
}

/* ---- messages ---- */

static inline uint64_t send_like(uint32_t by, uint64_t src, uint64_t size, uint64_t tag,
				 uint8_t flags)
{
	const struct acp_sqe e = {
		.op = ACP_OP_SEND, .flags = flags, .dst = heap_ga(&r[1], MAILBOX), .src = src,
		.size = size, .b = tag, .seen = rank_completed(&r[by]),
	};

	return rank_submit(&r[by], &e);
}

static inline uint64_t send(uint32_t by, uint64_t src, uint64_t size, uint64_t tag)
{
	return send_like(by, src, size, tag, 0);
}

static inline int run(uint32_t by, uint64_t src, uint64_t size, uint64_t tag)
{
	return rank_await(&r[by], send(by, src, size, tag), PATIENCE_SOON);
}

static inline void await_state(uint32_t number, uint64_t wanted)
{
	struct patience p = patience_begin(PATIENCE_WORK);

	while (!state(number))
		CHECK(!patience_over(&p));
	CHECK_EQ(state(number), wanted);
}

static inline void check(uint32_t number, uint32_t by, uint64_t size, uint64_t tag)
{
	CHECK_EQ(result(number)->rank, by);
	CHECK_EQ(result(number)->size, size);
	CHECK_EQ(result(number)->tag, tag);
	CHECK_EQ(result(number)->status, 0);
}

static inline int look(uint32_t how, int rank, uint64_t tag, struct acp_post *p)
{
	*p = (struct acp_post){
		.flags = how | (rank < 0 ? ACP_POST_ANY_RANK : 0),
		.rank = rank < 0 ? 0 : (uint32_t)rank, .tag = tag,
	};
	return do_post(p);
}

/* Messages may still be arriving; then remove the list. */
static inline void await_list_empty(void)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	int err;

	while ((err = unpost(ACP_UNPOST_LIST, 0)) == -EBUSY) {
		CHECK(!patience_over(&p));
		sleep_ms(1);
	}
	CHECK_EQ(err, 0);
}

#endif /* LISTS_H */
