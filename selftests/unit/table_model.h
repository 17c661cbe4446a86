/* SPDX-License-Identifier: MIT */
/*
 * Random calls on three tables of one kind, compared with the model. Ranks take turns; each checks
 * everything before it continues. In heaps that are too small, calls fail, and must then have done
 * nothing, or a complete part.
 */
#ifndef TABLE_MODEL_H
#define TABLE_MODEL_H

#include "table_play.h"

#define TABLES		3

struct turns {
	const struct play_kind *kind;
	unsigned int turns, calls;	/* of all ranks together; in each */
	bool tight;			/* heaps are too small */
	unsigned int refused;		/* calls that failed for lack of memory */
	struct play_table tables[TABLES];
	struct play_model models[TABLES];
	size_t blocks;
};

/* True if the last call failed for lack of memory. */
static inline bool had_no_room(struct turns *x)
{
	if (!x->tight || errno != ENOMEM)
		return false;
	errno = 0;
	x->refused++;
	return true;
}

/* True if a key counts for the caller. */
static inline bool is_local(struct play_table t, unsigned int key, bool local)
{
	return !local || play_rank_of(t, key) == acp_rank();
}

static inline void model_merge(struct turns *x, unsigned int to, unsigned int from, bool local,
			       bool move)
{
	const struct play_model copy = x->models[from];
	struct play_model *a = &x->models[to], *b = &x->models[from];
	unsigned int key;

	for (key = 0; key < KEYS; key++) {
		if (!copy.count[key] || !is_local(x->tables[from], key, local))
			continue;
		if (move && to == from)
			continue;
		if (!a->count[key])
			a->value[key] = copy.value[key];
		if (!a->count[key] || x->kind->counts)
			a->count[key] += copy.count[key];
		if (move)
			b->count[key] = 0;
	}
}

static inline void model_clear(struct turns *x, unsigned int t, bool local)
{
	unsigned int key;

	for (key = 0; key < KEYS; key++)
		if (is_local(x->tables[t], key, local))
			x->models[t].count[key] = 0;
}

/* Update the model after a transfer that failed: each key was transferred, or not. */
static inline void model_stop(struct turns *x, unsigned int to, unsigned int from,
			      const struct play_model *to_before,
			      const struct play_model *from_before)
{
	struct play_model *a = &x->models[to], *b = &x->models[from];
	uint64_t in_a, in_b;
	unsigned int key;

	for (key = 0; key < KEYS; key++) {
		in_a = play_look(x->kind, x->tables[to], key);
		in_b = play_look(x->kind, x->tables[from], key);
		if (in_a == a->count[key])
			CHECK(in_b == b->count[key] || in_b == from_before->count[key]);
		else
			CHECK(in_a == to_before->count[key] && in_b == from_before->count[key]);
		a->count[key] = in_a;
		b->count[key] = in_b;
	}
}

static inline void step_merge(struct turns *x, unsigned int a, unsigned int b, bool local,
			      bool move)
{
	const struct play_model to = x->models[a], from = x->models[b];
	const struct play_kind *k = x->kind;
	bool stopped;

	if (move)
		(local ? k->move_local : k->move)(x->tables[a], x->tables[b]);
	else
		(local ? k->merge_local : k->merge)(x->tables[a], x->tables[b]);
	stopped = had_no_room(x);
	model_merge(x, a, b, local, move);
	if (stopped)
		model_stop(x, a, b, &to, &from);
}

static inline void step_all(struct turns *x, unsigned int a, unsigned int b, uint64_t what)
{
	const struct play_kind *k = x->kind;
	struct play_table ta = x->tables[a], tb = x->tables[b];
	struct play_model copy = x->models[b];
	bool local = what & 1;
	unsigned int key;

	switch (what >> 1) {
	case 0:
		(local ? k->clear_local : k->clear)(ta);
		model_clear(x, a, local);
		break;
	case 1:
	case 2:
		step_merge(x, a, b, local, what >> 1 == 2);
		break;
	case 3:
		(local ? k->assign_local : k->assign)(ta, tb);
		if (had_no_room(x))
			break;
		for (key = 0; key < KEYS; key++)
			if (!is_local(tb, key, local))
				copy.count[key] = 0;
		x->models[a] = copy;
		break;
	default:
		k->swap(ta, tb);
		if (had_no_room(x))
			break;
		x->models[b] = x->models[a];
		x->models[a] = copy;
	}
}

static inline void step_insert(struct turns *x, unsigned int a, unsigned int key)
{
	unsigned int value = (unsigned int)(fake_random() % 1000);
	struct play_model *m = &x->models[a];
	int result = x->kind->insert(x->tables[a], play_pair(key, value));

	if (had_no_room(x)) {
		CHECK_EQ(result, 0);
		CHECK(!m->count[key]);
		return;
	}
	CHECK_EQ(result, !x->kind->values || !m->count[key]);
	if (!m->count[key])
		m->value[key] = value;
	if (!m->count[key] || x->kind->counts)
		m->count[key]++;
}

static inline void step_find(struct turns *x, unsigned int a, unsigned int key)
{
	const struct play_model *m = &x->models[a];
	struct play_it it = x->kind->find(x->tables[a], play_key(key));
	acp_pair_t pair;
	uint64_t member;

	if (!m->count[key]) {
		CHECK_EQ(it.rank, x->tables[a].num_ranks);
		CHECK_EQ(it.elem, ACP_GA_NULL);
		return;
	}
	CHECK_EQ(it.slot, play_slot(x->tables[a], key, &member));
	CHECK_EQ(it.rank, member);
	pair = x->kind->content(it);
	CHECK_EQ(play_key_of(pair.first), key);
	if (x->kind->values)
		CHECK(play_same_value(pair.second, m->value[key]));
}

static inline void step_retrieve(struct turns *x, unsigned int a, unsigned int key)
{
	const struct play_model *m = &x->models[a];
	uint64_t room = fake_random() % (VALUE_MAX + 1);
	char bytes[VALUE_MAX];
	acp_pair_t pair;
	size_t size, whole;
	acp_ga_t ga;
	struct play_area *area = play_area(&ga);

	if (x->kind->counts)
		CHECK_EQ(play_look(x->kind, x->tables[a], key), m->count[key]);
	if (!x->kind->values)
		return;
	pair = play_pair(key, 0);
	pair.second = (acp_element_t){ ga + offsetof(struct play_area, back), room };
	memset(area->back, '?', sizeof(area->back));
	size = acp_retrieve_map(map_to(x->tables[a]), pair);
	whole = value_bytes(m->value[key], bytes);
	CHECK_EQ(size, !m->count[key] ? 0 : whole < room ? whole : room);
	CHECK(!memcmp(area->back, bytes, size));
	CHECK_EQ(area->back[size], '?');
}

static inline void step_remove(struct turns *x, unsigned int a, unsigned int key)
{
	struct play_model *m = &x->models[a];

	if (x->kind->counts && fake_random() % 2) {
		x->kind->remove(x->tables[a], play_key(key));
		m->count[key] -= m->count[key] != 0;
	} else {
		x->kind->remove_all(x->tables[a], play_key(key));
		m->count[key] = 0;
	}
}

static inline void step_any(struct turns *x)
{
	unsigned int a = (unsigned int)(fake_random() % TABLES), b;
	unsigned int key = (unsigned int)(fake_random() % KEYS);
	uint64_t what = fake_random() % 40;

	errno = 0;
	if (what < 14) {
		step_insert(x, a, key);
	} else if (what < 20) {
		step_find(x, a, key);
	} else if (what < 26) {
		step_retrieve(x, a, key);
	} else if (what < 38) {
		step_remove(x, a, key);
	} else if (what < 39 || fake_random() % 3 == 0) {
		b = (unsigned int)(fake_random() % TABLES);
		step_all(x, a, b, fake_random() % 9);
	}
	CHECK_EQ(errno, 0);
}

static inline void turns_create(struct turns *x)
{
	int ranks[PLAY_RANKS], i, procs = acp_procs();
	unsigned int t;

	x->blocks = play_blocks();
	for (t = 0; t < TABLES; t++) {
		int n = 1 + (int)(fake_random() % (x->tight ? 2 : PLAY_RANKS)), slots;

		for (i = 0; i < n; i++)
			ranks[i] = (int)(fake_random() % (uint64_t)procs);
		slots = 1 + (int)(fake_random() % (x->tight ? 8 : 20));
		x->tables[t] = x->kind->create(n, ranks, slots,
					       (int)(fake_random() % (uint64_t)procs));
		CHECK(x->tables[t].ga != ACP_GA_NULL);
	}
}

static inline void turns_destroy(struct turns *x)
{
	unsigned int t;

	for (t = 0; t < TABLES; t++)
		x->kind->destroy(x->tables[t]);
	CHECK_EQ(play_blocks(), x->blocks);
}

/* Check that everything is as in the model, and nothing else is allocated. */
static inline void turns_check(const struct turns *x)
{
	size_t blocks = x->blocks;
	unsigned int t;

	for (t = 0; t < TABLES; t++) {
		play_check(x->kind, x->tables[t], &x->models[t]);
		blocks += 1 + x->tables[t].num_ranks + model_size(&x->models[t]);
	}
	CHECK_EQ(play_blocks(), blocks);
}

static inline void take_turns(void *arg)
{
	struct turns *x = arg;
	unsigned int turn, i;

	if (acp_rank() == 0)
		turns_create(x);
	for (turn = 0; turn < x->turns; turn++) {
		CHECK_EQ(acp_sync(), 0);
		if ((int)turn % acp_procs() != acp_rank())
			continue;
		turns_check(x);
		for (i = 0; i < x->calls; i++)
			step_any(x);
	}
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == 0)
		turns_destroy(x);
}

struct turns_options {
	int ranks, nodes;
	unsigned int calls, turn;	/* in total; consecutive ones of one rank */
	uint64_t heap_size;		/* 0: enough */
};

/* Prints the seed on failure. */
static inline void turns_run(const struct play_kind *kind, struct turns_options o)
{
	struct fake_acp f = { .ranks = o.ranks, .nodes = o.nodes, .heap_size = o.heap_size };
	unsigned int round, refused = 0;

	for (round = 0; round < LONG; round++) {
		struct turns *x = play_shared(sizeof(*x));

		x->kind = kind;
		x->turns = o.calls / o.turn;
		x->calls = o.turn;
		x->tight = o.heap_size;
		f.seed = 0;
		fake_run(&f, take_turns, x);
		CHECK_EQ(f.dead, 0);
		refused += x->refused;
		munmap(x, sizeof(*x));
	}
	printf("# %s: %u calls, %u of them refused, seed %llu\n", kind->name, o.calls * LONG,
	       refused, (unsigned long long)f.seed);
	CHECK_EQ(refused != 0, o.heap_size != 0);
}

#endif /* TABLE_MODEL_H */
