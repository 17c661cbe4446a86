// SPDX-License-Identifier: MIT
/* Groups on the fake basic layer, against lists of ranks and a sequential computation of parts. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "chan_play.h"
#include "core/internal.h"
#include "core/page.h"
#include "group/group.h"

#define RANKS	9

/* ---- Without communication ---- */

/* The group has exactly these ranks in this order. */
static void check_group(acpx_group_t g, const int *ranks, int count)
{
	int i, rank, own = -ENOENT;

	CHECK_EQ(acpx_group_size(g), count);
	for (i = 0; i < count; i++) {
		CHECK_EQ(acpx_group_translate(g, i), ranks[i]);
		CHECK_EQ(acpx_group_find(g, ranks[i]), i);
		own = ranks[i] == acp_rank() ? i : own;
	}
	CHECK_EQ(acpx_group_translate(g, -1), -EINVAL);
	CHECK_EQ(acpx_group_translate(g, count), -EINVAL);
	CHECK_EQ(acpx_group_rank(g), own);
	for (rank = 0; rank < acp_procs(); rank++) {
		for (i = 0; i < count && ranks[i] != rank; i++)
			;
		CHECK_EQ(acpx_group_find(g, rank), i < count ? i : -ENOENT);
	}
	CHECK_EQ(acpx_group_find(g, acp_procs()), -ENOENT);
	CHECK_EQ(acpx_group_find(g, INT_MAX), -ENOENT);
}

static void mistakes(void *arg)
{
	static const int twice[] = { 3, 1, 3 }, high[] = { 1, RANKS }, low[] = { -1, 1 };
	static const int same[] = { 2, 2 };
	acpx_group_t g = NULL, part = NULL;

	(void)arg;
	CHECK_EQ(acpx_group_world(NULL), -EINVAL);
	CHECK_EQ(acpx_group_strided(0, 1, 0, &g), -EINVAL);
	CHECK_EQ(acpx_group_strided(0, 1, -1, &g), -EINVAL);
	CHECK_EQ(acpx_group_strided(-1, 1, 2, &g), -EINVAL);
	CHECK_EQ(acpx_group_strided(RANKS, 1, 1, &g), -EINVAL);
	CHECK_EQ(acpx_group_strided(0, 1, RANKS + 1, &g), -EINVAL);
	CHECK_EQ(acpx_group_strided(0, 0, 2, &g), -EINVAL);
	CHECK_EQ(acpx_group_strided(3, -2, 3, &g), -EINVAL);
	CHECK_EQ(acpx_group_strided(0, INT_MAX, 3, &g), -EINVAL);
	CHECK_EQ(acpx_group_strided(0, INT_MIN, INT_MAX, &g), -EINVAL);
	CHECK_EQ(acpx_group_list(NULL, 1, &g), -EINVAL);
	CHECK_EQ(acpx_group_list(twice, 0, &g), -EINVAL);
	CHECK_EQ(acpx_group_list(twice, 3, &g), -EINVAL);
	CHECK_EQ(acpx_group_list(twice, RANKS + 1, &g), -EINVAL);
	CHECK_EQ(acpx_group_list(same, 2, &g), -EINVAL);
	CHECK_EQ(acpx_group_list(high, 2, &g), -EINVAL);
	CHECK_EQ(acpx_group_list(low, 2, &g), -EINVAL);
	CHECK_EQ(acpx_group_list(high, 1, NULL), -EINVAL);
	CHECK(!g);
	CHECK_EQ(acpx_group_size(NULL), -EINVAL);
	CHECK_EQ(acpx_group_rank(NULL), -EINVAL);
	CHECK_EQ(acpx_group_translate(NULL, 0), -EINVAL);
	CHECK_EQ(acpx_group_find(NULL, 0), -EINVAL);
	CHECK_EQ(acpx_group_free(NULL), -EINVAL);
	CHECK_EQ(acpx_group_split(NULL, 0, 0, &part), -EINVAL);
	CHECK_EQ(acpx_group_world(&g), 0);
	CHECK_EQ(acpx_group_find(g, -1), -EINVAL);
	CHECK_EQ(acpx_group_split(g, -2, 0, &part), -EINVAL);
	CHECK_EQ(acpx_group_split(g, 0, 0, NULL), -EINVAL);
	CHECK_EQ(acpx_group_free(g), 0);
	/* A rank that is not a member takes no part. */
	CHECK_EQ(acpx_group_strided(!acp_rank(), 1, 1, &g), 0);
	CHECK_EQ(acpx_group_split(g, 0, 0, &part), -EINVAL);
	CHECK(!part);
	CHECK_EQ(acpx_group_free(g), 0);
}

TEST(group__mistakes)
{
	struct fake_acp f = { .ranks = RANKS };

	fake_run(&f, mistakes, NULL);
}

TEST(group__before_init)
{
	acpx_group_t g = NULL;
	int rank = 0;

	CHECK_EQ(acpx_group_world(&g), -ENOTCONN);
	CHECK_EQ(acpx_group_strided(0, 1, 1, &g), -ENOTCONN);
	CHECK_EQ(acpx_group_list(&rank, 1, &g), -ENOTCONN);
	CHECK(!g);
}

/* Some ranks in any order. Returns how many. */
static int draw_ranks(uint64_t *random, int *ranks)
{
	int count = 1 + (int)(play_mix((*random)++) % (uint64_t)acp_procs()), i, j, other;

	for (i = 0; i < acp_procs(); i++)
		ranks[i] = i;
	for (i = 0; i < count; i++) {
		j = i + (int)(play_mix((*random)++) % (uint64_t)(acp_procs() - i));
		other = ranks[i];
		ranks[i] = ranks[j];
		ranks[j] = other;
	}
	return count;
}

static void random_groups(void *arg)
{
	uint64_t random = *(uint64_t *)arg;
	int ranks[RANKS], i, n, start, stride, count;
	bool strided;
	acpx_group_t g;

	for (n = 0; n < 3000; n++) {
		count = draw_ranks(&random, ranks);
		strided = count < 3 || n % 2;
		start = ranks[0];
		stride = (int)(play_mix(random++) % 7) - 3;
		if (n % 2) {
			stride = stride ? stride : 1;
			for (count = 0, i = start; i >= 0 && i < RANKS; i += stride)
				ranks[count++] = i;
		}
		for (i = 2, strided = true; i < count; i++)
			strided &= ranks[i] - ranks[i - 1] == ranks[1] - ranks[0];
		CHECK_EQ(acpx_group_list(ranks, count, &g), 0);
		/* One that is strided takes no memory for its members. */
		CHECK_EQ(g->listed, !strided);
		check_group(g, ranks, count);
		CHECK_EQ(acpx_group_free(g), 0);
		if (!strided)
			continue;
		CHECK_EQ(acpx_group_strided(start, count > 1 ? ranks[1] - start : 0, count, &g), 0);
		check_group(g, ranks, count);
		CHECK_EQ(acpx_group_free(g), 0);
	}
	CHECK_EQ(acpx_group_world(&g), 0);
	for (i = 0; i < RANKS; i++)
		ranks[i] = i;
	CHECK(!g->listed);
	check_group(g, ranks, RANKS);
	CHECK_EQ(acpx_group_free(g), 0);
}

TEST(group__any_ranks)
{
	struct fake_acp f = { .ranks = RANKS };
	uint64_t seed = play_seed();

	fake_run(&f, random_groups, &seed);
}

/* ---- Splitting ---- */

/* What a rank wants in a round. */
static void draw_wish(uint64_t seed, uint64_t round, int rank, int *color, int *key)
{
	const uint64_t random = play_mix(seed + 1000 * round + (uint64_t)rank);
	const int colors[] = { 1, 2, 3, 20 };

	*color = (int)(random % (uint64_t)colors[round % 4]) - (int)(random >> 40) % 2;
	*key = (int)(random >> 8) % 3 - 1;
	if (random >> 42 & 1)
		*key = (random >> 43 & 1) ? INT_MIN : INT_MAX;
}

/* Compute the part of the own rank. Returns its size. */
static int expected_part(uint64_t seed, uint64_t round, acpx_group_t g, int *part)
{
	int color, key, wanted, keys[RANKS], count = 0, i, j, rank;

	draw_wish(seed, round, acp_rank(), &wanted, &key);
	for (i = 0; wanted >= 0 && i < acpx_group_size(g); i++) {
		rank = acpx_group_translate(g, i);
		draw_wish(seed, round, rank, &color, &key);
		if (color != wanted)
			continue;
		for (j = count++; j && keys[j - 1] > key; j--) {
			keys[j] = keys[j - 1];
			part[j] = part[j - 1];
		}
		keys[j] = key;
		part[j] = rank;
	}
	return count;
}

/* Split a group, which the own rank is in, and its part again. */
static void split(uint64_t seed, uint64_t round, acpx_group_t g)
{
	int ranks[RANKS], count = expected_part(seed, round, g, ranks), color, key;
	acpx_group_t part = g, again = NULL;

	draw_wish(seed, round, acp_rank(), &color, &key);
	CHECK_EQ(acpx_group_split(g, color, key, &part), 0);
	CHECK_EQ(!part, !count);
	if (!part)
		return;
	check_group(part, ranks, count);
	count = expected_part(seed, round + 1, part, ranks);
	draw_wish(seed, round + 1, acp_rank(), &color, &key);
	CHECK_EQ(acpx_group_split(part, color, key, &again), 0);
	CHECK_EQ(!again, !count);
	if (again) {
		check_group(again, ranks, count);
		CHECK_EQ(acpx_group_free(again), 0);
	}
	CHECK_EQ(acpx_group_free(part), 0);
}

/* Only members take part: others are in the next groups already. */
static void random_splits(void *arg)
{
	const uint64_t seed = *(uint64_t *)arg;
	uint64_t random = seed, round;
	int ranks[RANKS], count;
	acpx_group_t g;

	for (round = 0; round < 40; round += 2) {
		count = draw_ranks(&random, ranks);
		CHECK_EQ(acpx_group_list(ranks, count, &g), 0);
		if (acpx_group_rank(g) >= 0)
			split(seed, round, g);
		CHECK_EQ(acpx_group_free(g), 0);
	}
	CHECK_EQ(acp_sync(), 0);
	CHECK(fake_regions() <= 2);	/* scratch memory */
}

TEST(split__any_groups)
{
	uint64_t seed = play_seed(), end = seed + (getenv("ACP_TEST_LONG") ? 200 : 12);

	for (; seed < end; seed++) {
		struct fake_acp f = {
			.ranks = 1 + (int)(seed % RANKS), .speed = 20, .seed = seed,
			.nodes = 1 + (int)(seed / 2 % 3), .turns = seed % 3 == 0,
		};

		f.nodes = f.nodes < f.ranks ? f.nodes : f.ranks;
		fake_run(&f, random_splits, &seed);
		CHECK_EQ(f.dead, 0);
	}
}

/* The first member has no memory for the others, who are told; the next time it has. */
static void no_memory(void *arg)
{
	unsigned char *pages = play_memory(256 * 4096);
	acpx_group_t g, part = NULL;
	int count = 0;
	acp_atkey_t keys[256];

	(void)arg;
	CHECK_EQ(acpx_group_strided(RANKS - 1, -1, RANKS, &g), 0);
	while (acp_rank() == RANKS - 1 && count < 256 &&
	       (keys[count] = acp_register_memory(pages + count * 4096, 4096, 0)))
		count++;
	CHECK_EQ(acpx_group_split(g, 1, 0, &part), -ENOMEM);
	CHECK(!part);
	while (count)
		acp_unregister_memory(keys[--count]);
	CHECK_EQ(acpx_group_split(g, 1, 0, &part), 0);
	CHECK_EQ(acpx_group_size(part), RANKS);
	acpx_group_free(part);
	acpx_group_free(g);
}

TEST(split__without_memory_fails_for_all)
{
	struct fake_acp f = { .ranks = RANKS, .nodes = 3, .speed = 20 };

	fake_run(&f, no_memory, NULL);
}

/*
 * A rank dies at any time: all others get their parts until then, and an error from some time on.
 * Those that are left can split a group of their own.
 */
static void death(void *arg)
{
	const int mortal = *(int *)arg;
	int ranks[RANKS], n = 0, i, error;
	acpx_group_t g, part, rest;

	CHECK_EQ(acpx_group_world(&g), 0);
	do {
		part = NULL;
		error = acpx_group_split(g, acp_rank() % 2, 0, &part);
		CHECK(error ? !part : acpx_group_size(part) >= RANKS / 2);
		acpx_group_free(part);
	} while (!error);
	CHECK_EQ(error, -EHOSTDOWN);
	for (i = 0; i < RANKS; i++)
		if (i != mortal)
			ranks[n++] = i;
	CHECK_EQ(acpx_group_list(ranks, n, &rest), 0);
	CHECK_EQ(acpx_group_split(rest, 0, -acp_rank(), &part), 0);
	CHECK_EQ(acpx_group_translate(part, 0), ranks[n - 1]);
	acpx_group_free(part);
	acpx_group_free(rest);
	acpx_group_free(g);
	CHECK(fake_regions() <= 2);
}

TEST(split__death_of_any_member)
{
	uint64_t seed = play_seed(), end = seed + (getenv("ACP_TEST_LONG") ? 400 : 24);
	uint64_t chance;
	int mortal;

	for (; seed < end; seed++) {
		struct fake_acp f = { .ranks = RANKS, .speed = 20, .seed = seed };

		chance = play_mix(seed);
		mortal = seed % 2 ? 0 : (int)(chance % RANKS);
		f.nodes = 1 + (int)(chance / RANKS % 4);
		f.turns = chance / 100 % 2;
		f.die[mortal] = 1 + chance / 200 % 60;
		fake_run(&f, death, &mortal);
		CHECK_EQ(f.dead, 1);
	}
}

/* A table that other ranks overwrite, and a state: they cannot mislead a member. */
static void damage(void *arg)
{
	acpx_group_t g, part = NULL;

	(void)arg;
	CHECK_EQ(acpx_group_world(&g), 0);
	if (!acp_rank()) {
		const size_t offset = offsetof(struct libacp_page, exchange);
		struct libacp_record *there = acp_query_address(libacp_page_ga(1, offset));
		uint64_t *word = acp_query_address(acp_query_starter_ga(0)), ticket;

		while (!((ticket = __atomic_load_n(&there->state, __ATOMIC_ACQUIRE)) & 1))
			libacp_sleep(1000);
		*word = *(uint64_t *)arg;
		there->state = acp_query_starter_ga(0);
	} else {
		CHECK_EQ(acpx_group_split(g, 1, 0, &part), -EBADMSG);
		CHECK(!part);
	}
	acpx_group_free(g);
}

TEST(split__damaged_answers)
{
	/* first, count: outside of the table, too many, not the own rank, none */
	static uint64_t words[] = { 2, 1ull << 32 | 2, 3ull << 32, ~0ull, 1ull << 32, 0 };
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct fake_acp f = { .ranks = 2, .nodes = 1, .speed = 20 };

		fake_run(&f, damage, &words[i]);
	}
}

TEST_MAIN
