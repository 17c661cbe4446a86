// SPDX-License-Identifier: MIT
/* Tests of the fake basic layer: it behaves as described in acp_copy(3). */
#include "channel/chan.h"
#include "fake_acp.h"
#include "core/internal.h"
#include "test.h"

#define PAGE	4096

static char memory[2 * PAGE] __attribute__((aligned(PAGE)));

static acp_ga_t own_memory(acp_atkey_t *key)
{
	*key = acp_register_memory(memory, sizeof(memory), 0);
	return acp_query_ga(*key, memory);
}

static void count_trips(void *arg)
{
	acp_ga_t there = acp_query_starter_ga(1), own;
	uint64_t begin = fake_trips();
	acp_atkey_t key;
	acp_handle_t h;

	(void)arg;
	if (acp_rank())
		return;
	own = own_memory(&key);
	h = acp_cas8(own, there, 0, 1, ACP_HANDLE_NULL);
	h = acp_copy(own + 8, there, 64, h);
	CHECK_EQ(libacp_finish(h), 0);
	CHECK_EQ(fake_trips() - begin, 1);
	CHECK_EQ(memory[8], 1);
	h = acp_copy(there + 64, own, 64, ACP_HANDLE_NULL);
	h = acp_copy(there, own, 8, h);
	h = acp_add8(own, there + 8, 1, h);
	acp_complete(h);
	CHECK_EQ(fake_trips() - begin, 2);
	h = acp_copy(own, there, 8, ACP_HANDLE_NULL);
	acp_complete(acp_copy(there, own, 8, h));
	CHECK_EQ(fake_trips() - begin, 4);
	h = acp_copy(own, own + 8, 8, ACP_HANDLE_NULL);
	acp_complete(h);
	CHECK_EQ(fake_trips() - begin, 4);
	CHECK_EQ(acp_unregister_memory(key), 0);
	CHECK_EQ(fake_regions(), 0);
}

TEST(fake__trips)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, count_trips, NULL);
	CHECK_EQ(f.dead, 0);
}

static void fail_in_order(void *arg)
{
	acp_ga_t there = acp_query_starter_ga(1), own;
	acp_handle_t held, bad, behind, other;
	acp_atkey_t key;

	(void)arg;
	if (acp_rank())
		return;
	own = own_memory(&key);
	libacp_quiet(true);
	/* A failure counts for what is issued before it. */
	fake_hold(1);
	held = acp_copy(own + 8, there, 8, ACP_HANDLE_NULL);
	bad = acp_copy(own, there + acpx_starter_size(), 8, held);
	behind = acp_copy(there, own, 8, bad);
	other = acp_copy(there, own, 8, ACP_HANDLE_NULL);
	fake_hold(0);
	libacp_quiet(false);
	acp_complete(other);
	CHECK_EQ(acpx_status(held), 0);
	CHECK_EQ(acpx_status(bad), ACPX_ERANGE);
	CHECK_EQ(acpx_status(behind), ACPX_EORDER);
	CHECK_EQ(acpx_status(other), 0);
	acp_unregister_memory(key);
}

TEST(fake__failures)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, fail_in_order, NULL);
}

#define ADDS	2000

static void add_all(void *arg)
{
	acp_ga_t own;
	acp_atkey_t key;
	int i;

	(void)arg;
	own = own_memory(&key);
	for (i = 0; i < ADDS; i++)
		acp_add8(own, acp_query_starter_ga(i % acp_procs()), 1, ACP_HANDLE_NULL);
	acp_complete(ACP_HANDLE_ALL);
	acp_sync();
	acp_complete(acp_copy(own, acp_query_starter_ga(0), 8, ACP_HANDLE_NULL));
	CHECK_EQ(*(uint64_t *)(void *)memory, ADDS);
	acp_unregister_memory(key);
}

TEST(fake__atomics)
{
	struct fake_acp f = { .ranks = 4, .nodes = 2 };

	fake_run(&f, add_all, NULL);
}

static void die_writing(void *arg)
{
	acp_ga_t own, there = acp_query_starter_ga(0);
	acp_atkey_t key;
	int i;

	(void)arg;
	own = own_memory(&key);
	if (acp_rank() == 0) {
		while (acpx_peer_state(1) != ACPX_PEER_DOWN)
			libacp_sleep(1000);
		CHECK_EQ(acp_sync(), -1);
	}
	fake_die_at(10);
	for (i = 1; i < 100 && acp_rank(); i++) {
		*(uint64_t *)(void *)memory = 1;
		acp_copy(there, own, 8, ACP_HANDLE_ALL);
	}
}

TEST(fake__death)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, die_writing, NULL);
	CHECK_EQ(f.dead, 1);
	CHECK(WIFSIGNALED(f.status[1]));
}

static void be_cut(void *arg)
{
	acp_ga_t own, there = acp_query_starter_ga(1);
	acp_atkey_t key;

	(void)arg;
	own = own_memory(&key);
	if (acp_rank() == 0) {
		libacp_quiet(true);
		CHECK_EQ(acpx_peer_state(1), ACPX_PEER_UP);
		fake_cut(1, true);
		CHECK(libacp_finish(acp_copy(there, own, 8, ACP_HANDLE_NULL)) < 0);
		CHECK_EQ(acpx_peer_state(1), ACPX_PEER_DOWN);
		fake_cut(1, false);
		CHECK_EQ(libacp_finish(acp_copy(there, own, 8, ACP_HANDLE_NULL)), 0);
		CHECK_EQ(acpx_peer_state(1), ACPX_PEER_BACK);
	}
	acp_unregister_memory(key);
}

TEST(fake__cut)
{
	struct fake_acp f = { .ranks = 3 };

	fake_run(&f, be_cut, NULL);
}

/* In turns: everything that depends on the seed. */
static void by_chance(void *arg)
{
	acp_ga_t there = acp_query_starter_ga((acp_rank() + 1) % 3);
	acp_handle_t h = ACP_HANDLE_NULL;
	acp_atkey_t key;
	acp_ga_t own = own_memory(&key);
	int i;

	(void)arg;
	for (i = 0; i < 50; i++) {
		h = fake_random() % 2 ? h : (acp_handle_t)ACP_HANDLE_NULL;
		h = acp_copy(there, own, 2000, h);
		if (fake_random() % 3 == 0)
			libacp_finish(h);
		if (fake_random() % 8 == 0)
			libacp_sleep(fake_random() % 1000000);
	}
	acp_complete(h);
	acp_sync();
	*fake_word((unsigned int)acp_rank()) = libacp_now();
}

TEST(fake__the_same_seed_is_the_same_run)
{
	uint64_t traces[4];
	int i;

	for (i = 0; i < 4; i++) {
		struct fake_acp f = { .ranks = 3, .turns = true, .seed = 77 + (uint64_t)i / 3 };

		fake_run(&f, by_chance, NULL);
		traces[i] = f.trace;
	}
	CHECK(traces[0] == traces[1] && traces[1] == traces[2] && traces[2] != traces[3]);
}

/* E4: containers and channels with no bytes at null addresses. */
static void zero_bytes(void *arg)
{
	acp_vector_t v = acp_create_vector(8, 0);
	acp_deque_t d = acp_create_deque(8, 0);
	acp_list_t l = acp_create_list(0);
	acp_element_t none = { ACP_GA_NULL, 0 };
	acp_ch_t ch = acp_create_ch(0, 1);
	int ranks[] = { 0 };
	acp_map_t m = acp_create_map(1, ranks, 4, 0);
	acp_pair_t pair = { { acp_query_starter_ga(0), 8 }, none };
	int i;

	(void)arg;
	for (i = 0; i < 2; i++) {
		acp_ga_t ga = i ? ~0ull : ACP_GA_NULL;

		none.ga = ga;
		pair.second.ga = ga;
		acp_push_back_vector(v, ga, 0);
		acp_insert_vector(acp_begin_vector(v), ga, 0);
		acp_push_back_deque(d, ga, 0);
		acp_push_front_deque(d, ga, 0);
		acp_insert_deque(acp_begin_deque(d), ga, 0);
		acp_push_back_list(l, none, 0);
		CHECK_EQ(acp_insert_map(m, pair), !i);
		if (acp_rank() == 0)
			CHECK_EQ(acp_send_ch(ch, i ? (void *)~0ull : NULL, 0), 0);
		else
			CHECK_EQ(acp_recv_ch(ch, i ? (void *)~0ull : NULL, 0), 0);
	}
	CHECK_EQ(acp_size_vector(v), 8);
	CHECK_EQ(acp_size_deque(d), 0);
	CHECK_EQ(acp_size_list(l), 2);
	CHECK_EQ(acp_free_ch(ch), 0);
	libacp_rendezvous_settle();
	acp_sync();
	libacp_chan_close();
}

TEST(zero__E4_containers_and_channels)
{
	struct fake_acp f = { .ranks = 2, .heap_size = 8 << 20 };

	fake_run(&f, zero_bytes, NULL);
}

TEST_MAIN
