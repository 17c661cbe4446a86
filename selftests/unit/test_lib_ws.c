// SPDX-License-Identifier: MIT
/* Workspaces on the fake basic layer, against a simple array. */
#include <errno.h>

#include "chan_play.h"
#include "core/internal.h"

#define MOST	100000u

static unsigned char *memory;		/* registered buffer */
static acp_atkey_t key;

static void open_memory(void)
{
	memory = play_memory(MOST);
	key = acp_register_memory(memory, MOST, 0);
	CHECK(key != ACP_ATKEY_NULL);
}

static acp_ga_t at(size_t offset)
{
	return acp_query_ga(key, memory) + offset;
}

static void leave(void)
{
	acp_unregister_memory(key);
	CHECK_EQ(acp_sync(), 0);
	CHECK(fake_regions() <= 2);	/* scratch memory */
}

/* ---- Layout ---- */

static void check_shape(const acp_wsditem *ws, size_t size, size_t block, size_t start)
{
	size_t i, sum = 0, procs = (size_t)acp_procs();

	CHECK_EQ(ws->size_ws, size);
	CHECK_EQ(ws->size_default, block);
	CHECK_EQ(ws->ngas, (size + block - 1) / block);
	for (i = 0; i < ws->ngas; i++) {
		CHECK_EQ(ws->procs[i], (start + i) % procs);
		CHECK_EQ(acp_query_rank(ws->gas[i]), ws->procs[i]);
		CHECK_EQ(ws->keys[i] != ACP_ATKEY_NULL, ws->procs[i] == acp_rank());
		sum += (size_t)ws->sizes[i];
		CHECK_EQ(ws->sizes[i], i + 1 < ws->ngas ? block : ws->size_remainder);
	}
	CHECK_EQ(sum, size);
}

static void shapes(void *arg)
{
	static const size_t sizes[] = { 1, 7, 100, 101, 299, 300, 301, 400, 1000, 12345 };
	size_t i, start = 1 % (size_t)acp_procs();
	acp_wsd_t ws;

	(void)arg;
	open_memory();
	CHECK_EQ(acp_setparams_ws(start, 100), 0);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ws = acp_create_ws(sizes[i]);
		CHECK(ws != ACP_WSD_NULL);
		check_shape(ws, sizes[i], 100, start);
		start = (start + ws->ngas) % (size_t)acp_procs();
		if (i % 2)
			acp_destroy_ws(ws);
		else
			acp_free_ws(ws);
	}
	leave();
}

TEST(ws__shapes)
{
	struct fake_acp one = { .ranks = 1 }, four = { .ranks = 4, .nodes = 2 };

	fake_run(&one, shapes, NULL);
	fake_run(&four, shapes, NULL);
}

/* ---- Contents ---- */

/* One rank at a time, any range, compared with an array. */
static void random_ranges(void *arg)
{
	size_t size = 30000, offset, n, rounds = *(size_t *)arg, i;
	unsigned char *model = calloc(1, size);
	acp_wsd_t ws;

	open_memory();
	CHECK_EQ(acp_setparams_ws(0, 777), 0);
	ws = acp_create_ws(size);
	CHECK(ws != ACP_WSD_NULL);
	for (i = 0; acp_rank() == 1 && i < rounds; i++) {
		offset = fake_random() % (size + 1);
		n = fake_random() % (i % 4 ? 900 : size);
		n = n < size - offset ? n : size - offset;
		memset(memory, 0xee, MOST);
		if (fake_random() % 2) {
			play_fill(memory + 50, n, i, 0);
			memcpy(model + offset, memory + 50, n);
			CHECK_EQ(acp_write_ws(ws, at(50), n, offset), 0);
		} else {
			CHECK_EQ(acp_read_ws(ws, at(50), n, offset), 0);
			CHECK(!memcmp(memory + 50, model + offset, n));
			CHECK_EQ(memory[49], 0xee);
			CHECK_EQ(memory[50 + n], 0xee);
		}
	}
	acp_sync();
	acp_destroy_ws(ws);
	free(model);
	leave();
}

TEST(ws__random_ranges)
{
	struct fake_acp f = { .ranks = 3 }, near = { .ranks = 3, .nodes = 2 };
	size_t rounds = getenv("ACP_TEST_LONG") ? 5000 : 150;

	fake_run(&f, random_ranges, &rounds);
	fake_run(&near, random_ranges, &rounds);
}

/* Each rank writes its share of several workspaces, and all ranks read everything. */
static void shares(void *arg)
{
	size_t size = 5000, share = size / (size_t)acp_procs(), i;
	acp_wsd_t ws[4];
	int r;

	(void)arg;
	open_memory();
	CHECK_EQ(acp_setparams_ws(0, 300), 0);
	for (i = 0; i < 4; i++) {
		ws[i] = acp_create_ws(size);
		CHECK(ws[i] != ACP_WSD_NULL);
		play_fill(memory, share, (uint64_t)acp_rank(), i);
		CHECK_EQ(acp_write_ws(ws[i], at(0), share, share * (size_t)acp_rank()), 0);
	}
	CHECK_EQ(acp_sync(), 0);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(acp_read_ws(ws[i], at(0), size, 0), 0);
		for (r = 0; r < acp_procs(); r++)
			CHECK(play_is(memory + share * (size_t)r, share, (uint64_t)r, i));
	}
	for (i = 0; i < 4; i++)
		acp_destroy_ws(ws[i]);
	leave();
}

TEST(ws__shares)
{
	struct fake_acp f = { .ranks = 5, .nodes = 3 };

	fake_run(&f, shares, NULL);
}

/* ---- Mistakes and failures ---- */

static void mistakes(void *arg)
{
	acp_wsd_t ws;

	(void)arg;
	open_memory();
	CHECK_EQ(acp_setparams_ws(0, 0), -1);
	CHECK_EQ(acp_setparams_ws((size_t)acp_procs(), 100), -1);
	CHECK(acp_create_ws(0) == ACP_WSD_NULL);
	CHECK_EQ(acp_setparams_ws(0, 100), 0);
	ws = acp_create_ws(1000);
	CHECK_EQ(acp_read_ws(ws, at(0), 1, 1000), -1);
	CHECK_EQ(acp_read_ws(ws, at(0), 0, 1000), 0);
	CHECK_EQ(acp_read_ws(ws, ACP_GA_NULL, 0, 5), 0);
	CHECK_EQ(acp_write_ws(ws, ~0ull, 0, SIZE_MAX), 0);
	CHECK_EQ(acp_read_ws(ws, at(0), 1001, 0), -1);
	CHECK_EQ(acp_write_ws(ws, at(0), SIZE_MAX, 1), -1);
	CHECK_EQ(acp_write_ws(ws, at(0), 1, SIZE_MAX), -1);
	CHECK_EQ(acp_write_ws(ws, ACP_GA_NULL, 1, 0), -1);
	CHECK_EQ(acp_write_ws(ws, at(MOST - 10), 100, 0), -1);
	CHECK_EQ(acp_write_ws(ACP_WSD_NULL, at(0), 1, 0), -1);
	CHECK_EQ(acp_write_ws(NULL, at(0), 1, 0), -1);
	CHECK_EQ(acp_write_ws(ws, at(0), 1000, 0), 0);
	acp_destroy_ws(ws);
	acp_destroy_ws(NULL);
	acp_destroy_ws(ACP_WSD_NULL);
	leave();
}

TEST(ws__mistakes)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, mistakes, NULL);
}

/* One rank has no memory: no rank has the workspace; the next one works. */
static void no_memory(void *arg)
{
	unsigned char *pages = play_memory(256 * 4096);
	acp_atkey_t keys[256];
	int count = 0;
	acp_wsd_t ws;

	(void)arg;
	open_memory();
	CHECK_EQ(acp_setparams_ws(0, 100), 0);
	ws = acp_create_ws(100);
	CHECK(ws != ACP_WSD_NULL);
	acp_destroy_ws(ws);
	while (acp_rank() == 1 && count < 256 &&
	       (keys[count] = acp_register_memory(pages + count * 4096, 4096, 0)))
		count++;
	CHECK(acp_create_ws(1000) == ACP_WSD_NULL);
	while (count--)
		acp_unregister_memory(keys[count]);
	ws = acp_create_ws(1000);
	CHECK(ws != ACP_WSD_NULL);
	acp_destroy_ws(ws);
	leave();
}

TEST(ws__no_memory_on_one_rank)
{
	struct fake_acp f = { .ranks = 3 };

	fake_run(&f, no_memory, NULL);
}

/* One rank cannot read the addresses of the others, or has no memory but also no blocks. */
static void no_memory_without_blocks(void *arg)
{
	unsigned char *pages = play_memory(256 * 4096);
	acp_atkey_t keys[256];
	int count = 0, i;
	acp_wsd_t ws;

	(void)arg;
	open_memory();
	CHECK_EQ(acp_setparams_ws(0, 100), 0);
	while (acp_rank() == 2 && count < 256 &&
	       (keys[count] = acp_register_memory(pages + count * 4096, 4096, 0)))
		count++;
	for (i = 0; i < 2; i++) {
		errno = 0;
		CHECK(acp_create_ws(200) == ACP_WSD_NULL);
		CHECK_EQ(errno, ENOMEM);
		CHECK_EQ(acp_setparams_ws(0, 100), 0);
	}
	while (count--)
		acp_unregister_memory(keys[count]);
	for (i = 0; i < 2; i++) {
		errno = 4711;
		ws = acp_create_ws(1000);
		CHECK(ws != ACP_WSD_NULL);
		CHECK_EQ(acp_write_ws(ws, at(0), 10, 95), 0);
		CHECK_EQ(acp_read_ws(ws, at(0), 10, 95), 0);
		CHECK_EQ(errno, 4711);
		acp_destroy_ws(ws);
	}
	leave();
}

TEST(ws__no_memory_on_a_rank_without_blocks)
{
	struct fake_acp f = { .ranks = 3 };

	fake_run(&f, no_memory_without_blocks, NULL);
}

/* Blocks of a dead rank are lost; others can be used. */
static void death(void *arg)
{
	acp_wsd_t ws;

	(void)arg;
	open_memory();
	CHECK_EQ(acp_setparams_ws(0, 100), 0);
	ws = acp_create_ws(300);
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 1)
		fake_die_at(0);
	while (acpx_peer_state(1) != ACPX_PEER_DOWN)
		libacp_sleep(1000000);
	CHECK_EQ(acp_write_ws(ws, at(0), 100, 200), 0);
	CHECK_EQ(acp_write_ws(ws, at(0), 300, 0), -1);
	CHECK_EQ(acp_read_ws(ws, at(0), 1, 100), -1);
	CHECK_EQ(acp_read_ws(ws, at(0), 100, 0), 0);
	/* Barriers do not work any more. */
	__atomic_fetch_add(fake_word(0), 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(fake_word(0), __ATOMIC_SEQ_CST) < 2)
		libacp_sleep(1000000);
	CHECK(acp_create_ws(300) == ACP_WSD_NULL);
	acp_destroy_ws(ws);
	acp_unregister_memory(key);
}

TEST(ws__death)
{
	struct fake_acp f = { .ranks = 3 };

	fake_run(&f, death, NULL);
	CHECK_EQ(f.dead, 1);
}

/* Surviving ranks get an error, without leaks. */
static void death_while_creating(void *arg)
{
	acp_wsd_t ws;

	(void)arg;
	open_memory();
	CHECK_EQ(acp_setparams_ws(0, 100), 0);
	for (;;) {
		errno = 0;
		ws = acp_create_ws(1000);
		if (ws == ACP_WSD_NULL)
			break;
		acp_write_ws(ws, at(0), 500, 250);
		acp_destroy_ws(ws);
	}
	CHECK(errno == EPIPE || errno == EHOSTDOWN);
	acp_unregister_memory(key);
	CHECK(fake_regions() <= 2);	/* scratch memory */
}

TEST(ws__death_while_creating)
{
	int rounds = getenv("ACP_TEST_LONG") ? 1000 : 20;
	uint64_t seed = play_seed(), chance;

	for (; rounds--; seed++) {
		struct fake_acp f = { .ranks = 3, .speed = 50, .seed = seed };

		chance = play_mix(seed);
		f.nodes = 1 + (int)(chance % 3);
		f.turns = chance / 3 % 4;
		f.die[1] = 1 + chance / 12 % 60;
		fake_run(&f, death_while_creating, NULL);
		CHECK_EQ(f.dead, 1);
	}
}

TEST_MAIN
