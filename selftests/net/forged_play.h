/* SPDX-License-Identifier: MIT */
/* A victim, and a node that sends forged frames to it: what tests of forged frames share. */
#ifndef FORGED_PLAY_H
#define FORGED_PLAY_H

#include <string.h>

#include "inject.h"

#define SIZE	(4 * PAGE)

/*
 * Node 0: the victim, rank 0, with memory that all may access; and rank 1, whose memory no other
 * rank may access. Node 1, ranks 2 and 3: simulated by the test. Node 2, ranks 4 and 5: uninvolved.
 */
static struct nodes n;
static struct inject x;
static struct setup setup;
static struct rank victim, second, bystander;
static struct memory target, closed, unaligned;
static uint32_t time_out;	/* ms, timeout of peers; 0: default */

static inline void join_as(struct rank *r, uint32_t rank)
{
	setup.join.rank = rank;
	nodes_join(&n, r, &setup);
}

/* Start with a victim that has joined, and accesses our node. */
static inline void begin_alone(bool ipv6, uint32_t integrity)
{
	nodes_open(&n, 3, 1, ipv6);
	nodes_setup(&n, &setup, 0, 6);
	setup.join.integrity = integrity;
	if (time_out)
		setup.join.timeout_ms = time_out;
	join_as(&victim, 0);
	join_as(&bystander, 4);
	memory_open(&victim, &target, SIZE);
	fill(target.addr, SIZE, 1);
	inject_open(&x, &n, 1, 0, &setup);
	rank_copy(&victim, rank_ga(&victim, 2, ACP_STAG_HEAP, 0), heap_ga(&victim, 0), 8, 0);
}

/* ... and so has its neighbour. */
static inline void begin_unheard(bool ipv6, uint32_t integrity)
{
	begin_alone(ipv6, integrity);
	join_as(&second, 1);
	CHECK_EQ(rank_register(&second, &closed, pages(SIZE, PROT_READ | PROT_WRITE), SIZE, 0), 0);
	CHECK_EQ(rank_register(&victim, &unaligned, pages(SIZE, PROT_READ | PROT_WRITE) + 16,
			       SIZE - 32, ACP_ACCESS_READ), 0);
	fill(closed.addr, SIZE, 2);
}

static inline void rendezvous(void)
{
	inject_handshake(&x);
	CHECK_EQ(rank_await(&victim, victim.last, PATIENCE_SOON), ACP_ST_OK);
	inject_drain(&x);
}

static inline void begin_with(bool ipv6, uint32_t integrity)
{
	begin_unheard(ipv6, integrity);
	rendezvous();
}

static inline void begin(void)
{
	begin_with(false, ACP_INTEGRITY_TAG);
}

static inline void untouched(const char *what)
{
	if (!filled(target.addr, SIZE, 1) || !filled(closed.addr, SIZE, 2))
		FAIL("%s: memory of the victim changed", what);
}

/* A valid put still works, and is answered. */
static inline void goes_on(void)
{
	uint64_t ticket = next_random(&(uint64_t){ now_ns() });
	char data[100];

	fill(data, sizeof(data), ticket);
	inject_applied(&x, inject_put(&x, 2, ticket, memory_ga(&target, 50), data, 100));
	CHECK(filled(target.addr + 50, 100, ticket));
	fill(target.addr, SIZE, 1);
}

/* Send valid frames of this form first: puts of 8 and of 100 bytes, for header prediction. */
static inline void send_predicted(void)
{
	stay_on(0);
	inject_applied(&x, inject_put(&x, 2, 1, memory_ga(&target, 0), "12345678", 8));
	CHECK(!memcmp(target.addr, "12345678", 8));
	goes_on();
}

/* Return a counter of the victim and its current value. */
static inline struct count count(const char *name)
{
	return nodes_count(&n, 0, name);
}

/* Build a put of 100 bytes to the target, as a message. */
static inline size_t put_message(void *out)
{
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .flags = ACP_MSG_LAST, .origin = 2, .ticket = 77,
		.dst = memory_ga(&target, 1000), .length = 100,
	};
	char data[100];

	memset(data, 0xee, sizeof(data));
	return inject_message(out, &m, data);
}

/* ... as a datagram with the next number, which was never sent. */
static inline size_t put_datagram(void *out)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
	char body[200];

	return inject_build(&x, out, &f, body, put_message(body));
}

#endif /* FORGED_PLAY_H */
