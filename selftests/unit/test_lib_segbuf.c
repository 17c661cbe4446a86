// SPDX-License-Identifier: MIT
/* Segmented buffers on the fake basic layer: order, contents, and deaths at any time. */
#include "chan_play.h"
#include "core/internal.h"

/* ---- Accesses that fail ---- */

static bool fail_put;			/* the next put fails before its dependent is issued */
static bool fail_add;			/* the next add fails */

acp_handle_t __real_acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order);
acp_handle_t __real_acp_add8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/* Return an invalid address of that rank. */
static acp_ga_t nowhere(acp_ga_t ga)
{
	return acp_query_starter_ga(acp_query_rank(ga)) + (1 << 30);
}

acp_handle_t __wrap_acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order)
{
	if (!fail_put)
		return __real_acp_copy(dst, src, size, order);
	if (order == (acp_handle_t)ACP_HANDLE_NULL)
		return __real_acp_copy(nowhere(dst), src, size, order);
	while (acp_inquire(order))
		;
	fail_put = false;
	return __real_acp_copy(dst, src, size, order);
}

acp_handle_t __wrap_acp_add8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order)
{
	bool fail = fail_add;

	fail_add = false;
	return __real_acp_add8(dst, fail ? nowhere(src) : src, value, order);
}

static size_t ring_bytes(size_t segsize, size_t segnum)
{
	return (segsize * segnum + 4095) / 4096 * 4096;
}

/* ---- A stream of segments ---- */

struct stream {
	size_t segsize, segnum;
	uint64_t count;
};

static void fill(acp_segbuf_t s, unsigned char *ring, const struct stream *st, uint64_t n)
{
	while (acp_isready_segbuf(s))
		libacp_sleep(1000);
	CHECK_EQ(acp_query_segbuf_tail(s), n);
	play_fill(ring + n % st->segnum * st->segsize, st->segsize, 77, n);
	CHECK_EQ(acp_ack_segbuf(s), 0);
	CHECK_EQ(acp_query_segbuf_tail(s), n + 1);
	CHECK((uint64_t)acp_query_segbuf_sent(s) <= n + 1);
	CHECK((uint64_t)acp_query_segbuf_head(s) <= n + 1);
}

static void drain(acp_segbuf_t s, unsigned char *ring, const struct stream *st, uint64_t n)
{
	while (acp_isacked_segbuf(s))
		libacp_sleep(1000);
	CHECK_EQ(acp_query_segbuf_head(s), n);
	CHECK((uint64_t)acp_query_segbuf_tail(s) > n);
	CHECK(play_is(ring + n % st->segnum * st->segsize, st->segsize, 77, n));
	CHECK_EQ(acp_ready_segbuf(s), 0);
}

static void end_well(acp_segbuf_t s)
{
	CHECK_EQ(acp_free_segbuf(s), -1);
	CHECK_EQ(acp_disconnect_segbuf(s), 0);
	CHECK_EQ(acp_disconnect_segbuf(s), -1);
	CHECK_EQ(acp_query_segbuf_head(s), -1);
	CHECK_EQ(acp_free_segbuf(s), 0);
}

static void stream(void *arg)
{
	const struct stream *st = arg;
	unsigned char *ring = play_memory(ring_bytes(st->segsize, st->segnum));
	acp_segbuf_t s;
	uint64_t n;

	if (acp_rank() == 0)
		s = acp_create_src_segbuf(1, ring, st->segsize, st->segnum);
	else
		s = acp_create_dst_segbuf(0, ring, st->segsize, st->segnum);
	CHECK(s);
	CHECK_EQ(acp_connect_segbuf(s), 0);
	CHECK_EQ(acp_isconnected_segbuf(s), 0);
	for (n = 0; n < st->count; n++)
		if (acp_rank() == 0)
			fill(s, ring, st, n);
		else
			drain(s, ring, st, n);
	end_well(s);
	play_leave();
}

TEST(segbuf__stream)
{
	uint64_t count = getenv("ACP_TEST_LONG") ? 5000 : 100;
	struct stream shapes[] = { { 1000, 5, count }, { 8, 64, count }, { 1, 1, count / 5 + 1 },
				   { 10000, 3, count / 2 } };
	size_t i;

	for (i = 0; i < 4; i++) {
		struct fake_acp f = { .ranks = 2, .nodes = 1 + (int)i % 2 };

		fake_run(&f, stream, &shapes[i]);
	}
}

/* ---- Several ---- */

#define RINGS	3
#define SEGMENTS 4
#define BYTES	100

/* Buffers to and from all other ranks, connected in any order. */
static void several(void *arg)
{
	struct stream st = { BYTES, SEGMENTS, 20 };
	unsigned char *rings[8][RINGS][2];
	acp_segbuf_t s[8][RINGS][2];
	int me = acp_rank(), procs = acp_procs(), r, k, d;
	uint64_t n;

	(void)arg;
	for (k = 0; k < RINGS; k++)
		for (r = 0; r < procs; r++)
			for (d = 0; d < 2 && r != me; d++) {
				rings[r][k][d] = play_memory(4096);
				s[r][k][d] = (d ? acp_create_src_segbuf : acp_create_dst_segbuf)
						(r, rings[r][k][d], BYTES, SEGMENTS);
				CHECK(s[r][k][d]);
			}
	for (k = RINGS - 1; k >= 0; k--)
		for (r = 0; r < procs; r++)
			for (d = 0; d < 2 && r != me; d++)
				CHECK_EQ(acp_connect_segbuf(s[r][k][d]), 0);
	for (n = 0; n < st.count; n++)
		for (d = 1; d >= 0; d--)
			for (k = 0; k < RINGS; k++)
				for (r = 0; r < procs; r++)
					if (r != me)
						(d ? fill : drain)(s[r][k][d], rings[r][k][d], &st,
								   n);
	for (k = 0; k < RINGS; k++)
		for (r = 0; r < procs; r++)
			for (d = 0; d < 2 && r != me; d++)
				CHECK_EQ(acp_disconnect_segbuf(s[r][k][d]), 0);
	for (k = 0; k < RINGS; k++)
		for (r = 0; r < procs; r++)
			for (d = 0; d < 2 && r != me; d++)
				CHECK_EQ(acp_free_segbuf(s[r][k][d]), 0);
	play_leave();
}

TEST(segbuf__several)
{
	struct fake_acp f = { .ranks = 3, .nodes = 2 };

	fake_run(&f, several, NULL);
}

/* Boundary cases: full, empty, disconnected. */
static void edges(void *arg)
{
	unsigned char *ring = play_memory(4096);
	acp_segbuf_t s;
	int i;

	(void)arg;
	if (acp_rank() == 0) {
		s = acp_create_src_segbuf(1, ring, 10, 3);
		CHECK_EQ(acp_query_segbuf_tail(s), -1);
		CHECK_EQ(acp_ack_segbuf(s), -1);
		CHECK_EQ(acp_connect_segbuf(s), 0);
		CHECK_EQ(acp_ready_segbuf(s), -1);
		CHECK_EQ(acp_isacked_segbuf(s), -1);
		for (i = 0; i < 3; i++) {
			CHECK_EQ(acp_isready_segbuf(s), 0);
			ring[i * 10] = (unsigned char)i;
			CHECK_EQ(acp_ack_segbuf(s), 0);
		}
		CHECK_EQ(acp_isready_segbuf(s), 1);
		CHECK_EQ(acp_ack_segbuf(s), -1);
		while (acp_query_segbuf_sent(s) < 3)
			libacp_sleep(1000);
		CHECK_EQ(acp_query_segbuf_head(s), 0);
		CHECK_EQ(acp_sync(), 0);
		CHECK_EQ(acp_disconnect_segbuf(s), 0);
		CHECK_EQ(acp_ack_segbuf(s), -1);
		CHECK_EQ(acp_free_segbuf(s), 0);
	} else {
		s = acp_create_dst_segbuf(0, ring, 10, 3);
		CHECK_EQ(acp_connect_segbuf(s), 0);
		CHECK_EQ(acp_query_segbuf_sent(s), -1);
		CHECK_EQ(acp_ack_segbuf(s), -1);
		CHECK_EQ(acp_isready_segbuf(s), -1);
		CHECK_EQ(acp_sync(), 0);
		/*
		 * Segments that were acked can be received after the source has disconnected, but
		 * no more.
		 */
		libacp_sleep(5000000);
		for (i = 0; i < 3; i++) {
			CHECK_EQ(acp_isacked_segbuf(s), 0);
			CHECK_EQ(ring[i * 10], i);
			CHECK_EQ(acp_ready_segbuf(s), 0);
		}
		while ((i = acp_isacked_segbuf(s)) == 1)
			libacp_sleep(1000);
		CHECK_EQ(i, -1);
		CHECK_EQ(acp_ready_segbuf(s), -1);
		CHECK_EQ(acp_disconnect_segbuf(s), 0);
		CHECK_EQ(acp_free_segbuf(s), 0);
	}
	play_leave();
}

TEST(segbuf__edges)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, edges, NULL);
}

/* More than 100 in one process, without leaks. */
static void again(void *arg)
{
	unsigned char *ring = play_memory(4096);
	acp_segbuf_t s;
	uint64_t i;

	for (i = 0; i < *(uint64_t *)arg; i++) {
		s = acp_rank() ? acp_create_dst_segbuf(0, ring, 100, 4)
			       : acp_create_src_segbuf(1, ring, 100, 4);
		CHECK_EQ(acp_connect_segbuf(s), 0);
		CHECK_EQ(acp_disconnect_segbuf(s), 0);
		CHECK_EQ(acp_free_segbuf(s), 0);
	}
	play_leave();
}

TEST(segbuf__again_and_again)
{
	uint64_t count = getenv("ACP_TEST_LONG") ? 2000 : 120;
	struct fake_acp f = { .ranks = 2, .nodes = 1, .heap_size = 20000 };

	fake_run(&f, again, &count);
}

/* ---- Mistakes ---- */

static void mistakes(void *arg)
{
	unsigned char *ring = play_memory(4096);
	int other = 1 - acp_rank();
	acp_segbuf_t s;

	(void)arg;
	CHECK(!acp_create_src_segbuf(-1, ring, 1, 1));
	CHECK(!acp_create_src_segbuf(2, ring, 1, 1));
	CHECK(!acp_create_src_segbuf(acp_rank(), ring, 1, 1));
	CHECK(!acp_create_src_segbuf(other, NULL, 1, 1));
	CHECK(!acp_create_src_segbuf(other, ring, 0, 1));
	CHECK(!acp_create_dst_segbuf(other, ring, 1, 0));
	CHECK(!acp_create_dst_segbuf(other, ring, SIZE_MAX / 2, 4));
	CHECK(!acp_create_dst_segbuf(other, ring, 2, SIZE_MAX / 4));
	CHECK_EQ(acp_connect_segbuf(NULL), 1);
	CHECK_EQ(acp_isconnected_segbuf(NULL), -1);
	CHECK_EQ(acp_ack_segbuf(NULL), -1);
	CHECK_EQ(acp_ready_segbuf(NULL), -1);
	CHECK_EQ(acp_isready_segbuf(NULL), -1);
	CHECK_EQ(acp_isacked_segbuf(NULL), -1);
	CHECK_EQ(acp_query_segbuf_head(NULL), -1);
	CHECK_EQ(acp_query_segbuf_sent(NULL), -1);
	CHECK_EQ(acp_disconnect_segbuf(NULL), -1);
	CHECK_EQ(acp_free_segbuf(NULL), -1);
	/* Rings of different sizes do not connect. */
	s = acp_rank() ? acp_create_dst_segbuf(0, ring, 100, 4)
		       : acp_create_src_segbuf(1, ring, 100, 5);
	CHECK_EQ(acp_connect_segbuf(s), 1);
	CHECK_EQ(acp_disconnect_segbuf(s), -1);
	CHECK_EQ(acp_free_segbuf(s), -1);
	play_leave();
}

TEST(segbuf__mistakes)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, mistakes, NULL);
}

/* ---- Leaving and death ---- */

/* The source enters the last barrier without disconnecting. */
static void leave_connected(void *arg)
{
	unsigned char *ring = play_memory(4096);
	acp_segbuf_t s;
	int i;

	(void)arg;
	if (acp_rank() == 0) {
		s = acp_create_src_segbuf(1, ring, 100, 4);
		CHECK_EQ(acp_connect_segbuf(s), 0);
		CHECK_EQ(acp_ack_segbuf(s), 0);
		CHECK(acp_create_dst_segbuf(1, play_memory(4096), 100, 4));
	} else {
		s = acp_create_dst_segbuf(0, ring, 100, 4);
		CHECK_EQ(acp_connect_segbuf(s), 0);
		while (acp_isacked_segbuf(s))
			libacp_sleep(1000);
		CHECK_EQ(acp_ready_segbuf(s), 0);
		while ((i = acp_isacked_segbuf(s)) == 1)
			libacp_sleep(1000);
		CHECK_EQ(i, -1);
	}
	play_leave();
}

TEST(segbuf__leave_connected)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, leave_connected, NULL);
}

/* The application can reuse the memory of the ring after acp_free_segbuf() has returned. */
static void ring_is_free(void *arg)
{
	unsigned char *ring = play_memory(4096);
	unsigned int regions = fake_regions();
	acp_segbuf_t s;

	s = acp_rank() ? acp_create_dst_segbuf(0, ring, 100, 4) :
			 acp_create_src_segbuf(1, ring, 100, 4);
	CHECK_EQ(acp_connect_segbuf(s), 0);
	CHECK_EQ(acp_disconnect_segbuf(s), 0);
	CHECK_EQ(acp_free_segbuf(s), 0);
	CHECK_EQ(fake_regions(), regions);
	s = acp_rank() ? acp_create_dst_segbuf(0, ring, 100, 4) :
			 acp_create_src_segbuf(1, ring, 100, 4);
	CHECK_EQ(acp_connect_segbuf(s), 0);
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() && arg)
		fake_die_at(0);
	if (acp_rank()) {
		play_leave();
		return;
	}
	while (acp_isready_segbuf(s) == 0)
		libacp_sleep(1000);
	acp_disconnect_segbuf(s);
	CHECK(acp_free_segbuf(s) == -1 || !arg);
	CHECK_EQ(fake_regions(), regions);
	if (!arg) {
		play_leave();
		return;
	}
	libacp_rendezvous_settle();
	libacp_chan_close();
}

TEST(segbuf__ring_is_free)
{
	struct fake_acp f = { .ranks = 2, .speed = 50 };
	char yes = 1;

	fake_run(&f, ring_is_free, NULL);
	fake_run(&f, ring_is_free, &yes);
}

/* Issue so many other accesses that the slots of all previous ones are reused. */
static void forget(void)
{
	acp_handle_t last = ACP_HANDLE_NULL;
	int i;

	for (i = 0; i < 2000; i++)
		last = __real_acp_copy(acp_query_starter_ga(1), acp_query_starter_ga(0), 8,
				       ACP_HANDLE_NULL);
	while (acp_inquire(last))
		libacp_sleep(1000);
}

/* A failure loses the connection: no end sees missing data, or waits forever. */
static void accesses_fail(void *arg)
{
	unsigned char *ring = play_memory(4096);
	acp_segbuf_t s;
	int i;

	if (acp_rank() == 0) {
		s = acp_create_src_segbuf(1, ring, 100, 2);
		CHECK_EQ(acp_connect_segbuf(s), 0);
		for (i = 0; i < 2; i++) {
			fail_put = arg && i == 1;
			CHECK_EQ(acp_ack_segbuf(s), 0);
		}
		if (arg && *(char *)arg > 1)
			forget();
		while ((i = acp_isready_segbuf(s)) != -1)
			libacp_sleep(1000);
	} else {
		s = acp_create_dst_segbuf(0, ring, 100, 2);
		CHECK_EQ(acp_connect_segbuf(s), 0);
		for (i = 0; i < (arg ? 1 : 2); i++) {
			while (acp_isacked_segbuf(s) == 1)
				libacp_sleep(1000);
			fail_add = !arg && i == 0;
			if (acp_ready_segbuf(s) == -1)
				break;
		}
		while ((i = acp_isacked_segbuf(s)) == 1)
			libacp_sleep(1000);
		CHECK_EQ(i, -1);
	}
	acp_disconnect_segbuf(s);
	CHECK_EQ(acp_free_segbuf(s), -1);
	play_leave();
}

/* The status of the put may be lost: it must not be treated as success. */
TEST(segbuf__a_put_fails_and_is_forgotten)
{
	struct fake_acp f = { .ranks = 2, .speed = 50 };
	char twice = 2;

	fake_run(&f, accesses_fail, &twice);
}

TEST(segbuf__a_put_fails)
{
	struct fake_acp f = { .ranks = 2, .speed = 50 };
	char yes = 1;

	fake_run(&f, accesses_fail, &yes);
}

TEST(segbuf__a_return_fails)
{
	struct fake_acp f = { .ranks = 2, .speed = 50 };

	fake_run(&f, accesses_fail, NULL);
}

static void one_dies(void *arg)
{
	struct stream st = { 500, 4, 100000 };
	unsigned char *ring = play_memory(4096);
	bool source = (acp_rank() == 0) == !arg;
	acp_segbuf_t s = (source ? acp_create_src_segbuf : acp_create_dst_segbuf)
				(1 - acp_rank(), ring, st.segsize, st.segnum);
	uint64_t n = 0;
	int i = 0;

	CHECK(s);
	if (acp_connect_segbuf(s) == 0)
		for (; i != -1; n++) {
			while ((i = (source ? acp_isready_segbuf : acp_isacked_segbuf)(s)) == 1)
				libacp_sleep(1000);
			if (i)
				break;
			if (!source)
				CHECK(play_is(ring + n % st.segnum * st.segsize, st.segsize, 77,
					      n));
			else
				play_fill(ring + n % st.segnum * st.segsize, st.segsize, 77, n);
			i = (source ? acp_ack_segbuf : acp_ready_segbuf)(s);
		}
	acp_disconnect_segbuf(s);
	CHECK_EQ(acp_free_segbuf(s), -1);
	libacp_rendezvous_settle();
	libacp_chan_close();
}

TEST(segbuf__death)
{
	int rounds = getenv("ACP_TEST_LONG") ? 1000 : 16;
	uint64_t seed = play_seed(), chance;
	char yes = 1;

	for (; rounds--; seed++) {
		struct fake_acp f = { .ranks = 2, .speed = 50, .seed = seed };

		chance = play_mix(seed);
		f.nodes = 1 + (int)(chance % 2);
		f.turns = chance / 2 % 4;
		f.die[1] = 1 + chance / 16 % 100;
		fake_run(&f, one_dies, chance / 8 % 2 ? &yes : NULL);
		CHECK_EQ(f.dead, 1);
	}
}

TEST_MAIN
