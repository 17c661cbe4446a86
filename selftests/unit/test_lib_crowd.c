// SPDX-License-Identifier: MIT
/*
 * Concurrent use of sets, multisets and maps by several ranks and threads: the observations must be
 * linearizable for each key, even if ranks die.
 */
#include "history_model.h"
#include "table_play.h"

#define FEW		6	/* number of keys, used by all */
#define ACTORS_MAX	4	/* threads in all */
#define TABLE_SLOTS	3

enum what { INSERT, REMOVE, REMOVE_ALL, LOOK };

struct crowd {
	const struct play_kind *kind;
	unsigned int calls, threads;	/* of each thread; of each rank */
	bool walks;			/* one of them iterates */
	bool pauses;			/* threads pause within calls */
	bool doubts;			/* the effect of calls may be unknown */
	bool lost[FEW];			/* keys on the rank that dies */
	struct play_table table;
	size_t blocks;
	struct history histories[ACTORS_MAX];
};

static bool pauses;

/* Sometimes a call pauses for so long that the memory it reads has been freed and reused. */
acp_handle_t __real_acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order);

acp_handle_t __wrap_acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order)
{
	if (pauses && fake_random() % 40 == 0)
		usleep((useconds_t)(fake_random() % 4000));
	return __real_acp_copy(dst, src, size, order);
}

/* ---- Possible results ---- */

static bool apply_set(const struct history_call *call, uint64_t *value)
{
	if (call->what == LOOK)
		return call->end == HISTORY_PENDING || call->maybe || call->result == *value;
	*value = call->what == INSERT;
	return true;
}

static bool apply_multiset(const struct history_call *call, uint64_t *value)
{
	switch (call->what) {
	case INSERT:
		++*value;
		return true;
	case REMOVE:
		*value -= *value != 0;
		return true;
	case REMOVE_ALL:
		*value = 0;
		return true;
	default:
		return call->end == HISTORY_PENDING || call->maybe || call->result == *value;
	}
}

/* The value is that of the map, plus 1. */
static bool apply_map(const struct history_call *call, uint64_t *value)
{
	bool back = call->end != HISTORY_PENDING && !call->maybe;

	switch (call->what) {
	case INSERT:
		if (back && call->result != (*value == 0))
			return false;
		if (!*value)
			*value = call->argument + 1;
		return true;
	case LOOK:
		return !back || call->result == *value;
	default:
		*value = 0;
		return true;
	}
}

/* ---- Calls ---- */

static uint64_t map_value(struct play_table t, unsigned int key)
{
	acp_pair_t pair = play_pair(key, 0);
	acp_ga_t ga;
	struct play_area *area = play_area(&ga);
	char bytes[VALUE_MAX];
	unsigned int value;
	size_t size;

	pair.second = (acp_element_t){ ga + offsetof(struct play_area, back), VALUE_MAX };
	size = acp_retrieve_map(map_to(t), pair);
	if (!size)
		return 0;
	memcpy(&value, area->back, 4);
	CHECK(value_bytes(value, bytes) == size && !memcmp(bytes, area->back, size));
	return value + 1;
}

static uint64_t call_it(const struct crowd *c, const struct history_call *call)
{
	const struct play_kind *k = c->kind;

	switch (call->what) {
	case INSERT:
		return (uint64_t)k->insert(c->table, play_pair(call->object,
							       (unsigned int)call->argument));
	case REMOVE:
		k->remove(c->table, play_key(call->object));
		return 0;
	case REMOVE_ALL:
		k->remove_all(c->table, play_key(call->object));
		return 0;
	default:
		return k->values ? map_value(c->table, call->object)
				 : play_look(k, c->table, call->object);
	}
}

/* Values of at least 4 bytes that identify themselves. */
static uint64_t some_value(void)
{
	char bytes[VALUE_MAX];
	uint64_t value;

	do {
		value = fake_random() % 1000;
	} while (value_bytes((unsigned int)value, bytes) < 4);
	return value;
}

static void act(struct crowd *c, struct history *h, unsigned int calls)
{
	struct history_call *call;

	for (; calls; calls--) {
		call = &h->calls[h->count];
		*call = (struct history_call){
			.object = (uint32_t)(fake_random() % FEW),
			.what = (uint32_t)(fake_random() % 5), .argument = some_value(),
			.begin = libacp_now(), .end = HISTORY_PENDING,
		};
		if (call->what > LOOK)
			call->what = INSERT;
		__atomic_store_n(&h->count, h->count + 1, __ATOMIC_RELEASE);
		errno = 0;
		call->result = call_it(c, call);
		call->end = libacp_now();
		call->maybe = (c->doubts && errno == EIO) || c->lost[call->object];
		if (!call->maybe)
			CHECK_EQ(errno, 0);
	}
}

struct actor {
	struct crowd *crowd;
	int thread;
	pthread_t id;
};

static void *run_actor(void *arg)
{
	struct actor *a = arg;

	play_thread = a->thread;
	act(a->crowd, &a->crowd->histories[(unsigned int)acp_rank() * a->crowd->threads +
					   (unsigned int)a->thread], a->crowd->calls);
	return NULL;
}

/* An iteration ends, and its elements can be read, whatever others do meanwhile. */
static void walk(struct crowd *c)
{
	struct play_it it;
	acp_pair_t pair;

	for (it = c->kind->begin(c->table); it.elem != ACP_GA_NULL; it = c->kind->next(it)) {
		pair = c->kind->content(it);
		if (pair.first.ga == ACP_GA_NULL)
			CHECK_EQ(errno, ESTALE);
		else
			play_fetch(pair.first);
	}
	CHECK(errno == 0 || errno == ESTALE);
	errno = 0;
}

static void crowd_rank(void *arg)
{
	struct crowd *c = arg;
	struct actor actors[ACTORS_MAX];
	int ranks[] = { acp_procs() - 1, 0 };
	unsigned int i;

	pauses = c->pauses;
	if (acp_rank() == 0) {
		c->blocks = play_blocks();
		c->table = c->kind->create(2, ranks, TABLE_SLOTS, 0);
		CHECK(c->table.ga != ACP_GA_NULL);
	}
	CHECK_EQ(acp_sync(), 0);
	for (i = 0; i < c->threads; i++) {
		actors[i] = (struct actor){ .crowd = c, .thread = (int)i };
		CHECK(!pthread_create(&actors[i].id, NULL, run_actor, &actors[i]));
	}
	play_thread = (int)c->threads;
	for (i = 0; c->walks && i < 20; i++)
		walk(c);
	for (i = 0; i < c->threads; i++)
		pthread_join(actors[i].id, NULL);
}

static void check_histories(const struct crowd *c, unsigned int actors)
{
	history_apply apply = c->kind == &play_set ? apply_set :
			      c->kind == &play_multiset ? apply_multiset : apply_map;
	uint32_t key;

	for (key = 0; key < FEW; key++)
		if (!c->lost[key] && !history_possible(c->histories, actors, key, 0, apply))
			FAIL("what was seen of key %u of a %s is impossible", key, c->kind->name);
}

/* Rank 0, at the end. */
static void judge(struct crowd *c)
{
	struct play_model m = { .count = { 0 } };
	unsigned int key;

	for (key = 0; key < FEW; key++)
		m.count[key] = play_look(c->kind, c->table, key);
	CHECK_EQ(play_check_layout(c->table), model_size(&m));
	CHECK_EQ(c->kind->size(c->table), model_size(&m));
	play_check_blocks(c->table, c->blocks);
	c->kind->destroy(c->table);
	CHECK_EQ(play_blocks(), c->blocks);
}

static void crowd_all(void *arg)
{
	crowd_rank(arg);
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 0)
		judge(arg);
}

static void run_crowd(const struct play_kind *kind, int ranks, int nodes, unsigned int threads)
{
	struct fake_acp f = { .ranks = ranks, .nodes = nodes };
	unsigned int rounds;

	for (rounds = 0; rounds < 2 * LONG; rounds++) {
		struct crowd *c = play_shared(sizeof(*c));

		c->kind = kind;
		c->calls = rounds % 2 ? 60 : 120;
		c->threads = threads;
		c->walks = true;
		f.seed = 0;
		c->pauses = rounds % 2;
		fake_run(&f, crowd_all, c);
		check_histories(c, (unsigned int)ranks * threads);
		munmap(c, sizeof(*c));
	}
}

TEST(A2_set__several_ranks_at_once)
{
	run_crowd(&play_set, 4, 4, 1);
}

TEST(A2_multiset__several_ranks_at_once)
{
	run_crowd(&play_multiset, 4, 2, 1);
}

TEST(A2_map__several_ranks_at_once)
{
	run_crowd(&play_map, 4, 4, 1);
}

TEST(A2_map__several_ranks_of_a_node_at_once)
{
	run_crowd(&play_map, 4, 1, 1);
}

TEST(A2_set__several_threads_at_once)
{
	run_crowd(&play_set, 1, 1, 4);
}

TEST(A2_map__several_threads_of_ranks_at_once)
{
	run_crowd(&play_map, 2, 2, 2);
}

/* ---- Deaths ---- */

/* All members are on surviving ranks; the last rank dies at some access. */
static void die_somewhere(void *arg)
{
	struct crowd *c = arg;
	int ranks[] = { 1, 0 };

	if (acp_rank() == 0) {
		c->blocks = play_blocks();
		c->table = c->kind->create(2, ranks, TABLE_SLOTS, 0);
		CHECK(c->table.ga != ACP_GA_NULL);
	}
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == acp_procs() - 1)
		fake_die_at(1 + fake_random() % 400);
	act(c, &c->histories[acp_rank()], c->calls);
	if (acp_rank())
		__atomic_add_fetch(fake_word(0), 1, __ATOMIC_RELEASE);
	if (acp_rank())
		return;
	while (__atomic_load_n(fake_word(0), __ATOMIC_ACQUIRE) <
	       (uint64_t)acp_procs() - 1 - (acpx_peer_state(acp_procs() - 1) == ACPX_PEER_DOWN))
		libacp_sleep(1000000);
	c->walks = false;
}

/*
 * The last change of a dead rank may be incomplete until the slot is changed by another one: do so.
 */
static void complete_what_the_dead_began(void *arg)
{
	struct crowd *c = arg;
	struct play_model m = { .count = { 0 } };
	unsigned int key;
	size_t lost;

	die_somewhere(arg);
	if (acp_rank())
		return;
	for (key = 0; key < KEYS; key++) {
		CHECK(c->kind->insert(c->table, play_pair(key, 1)) >= 0);
		CHECK_EQ(errno, 0);
		c->kind->remove_all(c->table, play_key(key));
		CHECK_EQ(errno, 0);
	}
	CHECK_EQ(play_check_layout(c->table), 0);
	play_check_walk(c->kind, c->table, &m, -1);
	lost = play_blocks() - c->blocks - 1 - c->table.num_ranks;
	CHECK(lost <= 1);
	c->kind->destroy(c->table);
	CHECK_EQ(play_blocks(), c->blocks + lost);
}

/* A member dies: its keys are lost, and nothing else. */
static void a_member_dies(void *arg)
{
	struct crowd *c = arg;
	int ranks[] = { acp_procs() - 1, 0, 1, 2 };
	unsigned int key;
	size_t there = 0;

	if (acp_rank() == 0) {
		c->table = c->kind->create(4, ranks, TABLE_SLOTS, 1);
		CHECK(c->table.ga != ACP_GA_NULL);
		for (key = 0; key < FEW; key++)
			c->lost[key] = play_rank_of(c->table, key) == acp_procs() - 1;
	}
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == acp_procs() - 1)
		fake_die_at(1 + fake_random() % 300);
	act(c, &c->histories[acp_rank()], c->calls);
	__atomic_add_fetch(fake_word(0), 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(fake_word(0), __ATOMIC_ACQUIRE) < (uint64_t)acp_procs() &&
	       acpx_peer_state(acp_procs() - 1) != ACPX_PEER_DOWN)
		libacp_sleep(1000000);
	if (acp_rank())
		return;
	while (__atomic_load_n(fake_word(0), __ATOMIC_ACQUIRE) < (uint64_t)acp_procs() - 1)
		libacp_sleep(1000000);
	errno = 0;
	for (key = 0; key < FEW; key++) {
		if (c->lost[key])
			continue;
		c->kind->remove_all(c->table, play_key(key));
		CHECK_EQ(play_look(c->kind, c->table, key), 0);
		there += c->kind->insert(c->table, play_pair(key, 1));
	}
	CHECK_EQ(errno, 0);
	CHECK(c->kind->size(c->table) >= there);
}

static void run_deaths(const struct play_kind *kind, int nodes, void (*rank)(void *))
{
	struct fake_acp f = { .ranks = 4, .nodes = nodes, .speed = 20 };
	unsigned int rounds;

	for (rounds = 0; rounds < 4 * LONG; rounds++) {
		struct crowd *c = play_shared(sizeof(*c));

		c->kind = kind;
		c->calls = 60;
		c->threads = 1;
		c->doubts = true;
		f.seed = 0;
		fake_run(&f, rank, c);
		CHECK(f.dead <= 1);
		check_histories(c, 4);
		munmap(c, sizeof(*c));
	}
}

TEST(A2_set__a_rank_dies)
{
	run_deaths(&play_set, 4, complete_what_the_dead_began);
}

TEST(A2_multiset__a_rank_dies)
{
	run_deaths(&play_multiset, 4, complete_what_the_dead_began);
}

TEST(A2_map__a_rank_dies)
{
	run_deaths(&play_map, 4, complete_what_the_dead_began);
}

TEST(A2_map__a_rank_of_the_node_dies)
{
	run_deaths(&play_map, 1, complete_what_the_dead_began);
}

TEST(A2_multiset__a_member_dies)
{
	run_deaths(&play_multiset, 4, a_member_dies);
}

TEST(A2_map__a_member_dies)
{
	run_deaths(&play_map, 4, a_member_dies);
}

TEST_MAIN
