/* SPDX-License-Identifier: MIT */
/* Tests shared by vectors and deques. Define TYPE as vector or deque and RING as 0 or 1 first. */
#ifndef BYTES_PLAY_H
#define BYTES_PLAY_H

#include "container_play.h"

#define PASTE(a, b)	a##b
#define JOIN(a, b)	PASTE(a, b)
#define CALL(name)	JOIN(acp_##name##_, TYPE)
#define TYPE_T		JOIN(JOIN(acp_, TYPE), _t)
#define IT_T		JOIN(JOIN(acp_, TYPE), _it_t)
#define IT_CALL(name)	JOIN(CALL(name), _it)

#define OBJECTS		4
#define MODEL_MAX	20000

/* Expected contents of each container. */
static struct model {
	TYPE_T at;
	int rank;
	size_t size;
	unsigned char bytes[MODEL_MAX];
} models[OBJECTS];

static unsigned char fresh[MODEL_MAX];		/* new data to insert */

static IT_T place(const struct model *m, size_t index)
{
	IT_T it = IT_CALL(advance)(CALL(begin)(m->at), (int)index);

	return it;
}

static size_t header_word(const struct model *m, unsigned int n)
{
	return fetch_word(m->at.ga + 8 * n);
}

/* Read a range of bytes, local or remote. */
static void read_bytes(const struct model *m, size_t at, size_t size, unsigned char *to)
{
	size_t n, capacity = header_word(m, RING ? 3 : 2);
	size_t offset = (RING ? header_word(m, 1) : 0) + at;

	while (size) {
		offset %= capacity;
		n = size < capacity - offset ? size : capacity - offset;
		memcpy(to, fetch(header_word(m, 0) + offset, n), n);
		to += n;
		offset += n;
		size -= n;
	}
}

static void check_model(const struct model *m)
{
	static unsigned char bytes[MODEL_MAX];
	size_t capacity = CALL(capacity)(m->at);
	IT_T end;
	int i;

	errno = FINE;
	CHECK_EQ(CALL(size)(m->at), m->size);
	CHECK_EQ(CALL(empty)(m->at), m->size == 0);
	CHECK_EQ(header_word(m, RING ? 2 : 1), m->size);
	CHECK_EQ(header_word(m, RING ? 3 : 2), capacity);
	CHECK_EQ(header_word(m, 0) == ACP_GA_NULL, capacity == 0);
	CHECK(capacity % 8 == 0 && capacity >= m->size);
	end = CALL(end)(m->at);
	CHECK_EQ(IT_CALL(distance)(CALL(begin)(m->at), end), m->size);
	CHECK_EQ(errno, FINE);
	CHECK_EQ(CALL(at)(m->at, (int)m->size), ACP_GA_NULL);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(CALL(at)(m->at, -1), ACP_GA_NULL);
	read_bytes(m, 0, m->size, bytes);
	CHECK(memcmp(bytes, m->bytes, m->size) == 0);
	if (m->size) {
		i = (int)(m->size / 3);
		CHECK_EQ(*fetch(CALL(at)(m->at, i), 1) & 255, m->bytes[i]);
	}
}

static void draw_fresh(size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		fresh[i] = (unsigned char)draw(256);
	memcpy(stage(), fresh, size);
}

static void model_insert(struct model *m, size_t at, const unsigned char *bytes, size_t size)
{
	memmove(m->bytes + at + size, m->bytes + at, m->size - at);
	memcpy(m->bytes + at, bytes, size);
	m->size += size;
}

static void model_erase(struct model *m, size_t at, size_t size)
{
	memmove(m->bytes + at, m->bytes + at + size, m->size - at - size);
	m->size -= size;
}

/* Draw a size: mostly small, sometimes large. */
static size_t draw_size(const struct model *m)
{
	size_t most = draw(8) ? 40 : MODEL_MAX / 8;

	if (most > MODEL_MAX - m->size)
		most = MODEL_MAX - m->size;
	return draw(most + 1);
}

/* Create a container with known contents. */
static void create(int by, struct model *m, int rank, size_t size)
{
	unsigned int fail_at = play_fail_at;

	play_fail_at = 0;
	draw_fresh(size);
	CHECK_EQ(TURN(by, {
		m->at = CALL(create)(size, rank);
		CHECK_EQ(acp_query_rank(m->at.ga), rank);
		CHECK_EQ(CALL(size)(m->at), RING ? 0 : size);
		CHECK(CALL(capacity)(m->at) >= size);
		if (size && !RING)
			acp_complete(acp_copy(CALL(at)(m->at, 0), stage_ga(), size,
					      ACP_HANDLE_NULL));
		play_say = m->at.ga;
	}), 0);
	play_fail_at = fail_at;
	m->at.ga = play_say;
	m->rank = rank;
	m->size = RING ? 0 : size;
	memcpy(m->bytes, fresh, m->size);
}

/* ---- Steps ---- */

/*
 * A step by a rank on one container, together with another one. True if the step exists for this
 * type.
 */
static int step_insert(int by, struct model *m)
{
	size_t size = draw_size(m), at = draw(m->size + 1);
	IT_T it = { m->at, 0 };
	int err;

	draw_fresh(size);
	it = place(m, at);
	err = TURN(by, {
		IT_T back = CALL(insert)(it, stage_ga(), size);

		CHECK_EQ(back.TYPE.ga, errno == FINE ? m->at.ga : ACP_GA_NULL);
		CHECK_EQ(back.index, errno == FINE ? at : 0);
	});
	if (!err)
		model_insert(m, at, fresh, size);
	return err;
}

static int step_insert_range(int by, struct model *m, const struct model *other)
{
	size_t from = draw(other->size + 1), at = draw(m->size + 1);
	size_t most = other->size - from, room = MODEL_MAX - m->size, size;
	int err;

	size = draw((most < room ? most : room) + 1);
	memcpy(fresh, other->bytes + from, size);
	err = TURN(by, CALL(insert_range)(place(m, at), place(other, from),
					  place(other, from + size)));
	if (!err)
		model_insert(m, at, fresh, size);
	return err;
}

/* Insert data of the container itself, which is contiguous in a ring as well. */
static int step_insert_own(int by, struct model *m)
{
	size_t from = draw(m->size + 1), at = draw(m->size + 1), size;
	acp_ga_t there;
	int err;

	size = draw(m->size - from + 1);
	if (size > MODEL_MAX - m->size)
		size = MODEL_MAX - m->size;
	memcpy(fresh, m->bytes + from, size);
	err = TURN(by, {
		play_say = size != 0;
		there = size ? CALL(at)(m->at, (int)from) : ACP_GA_NULL;
		if (size && CALL(at)(m->at, (int)(from + size - 1)) - there == size - 1)
			CALL(insert)(place(m, at), there, size);
		else
			play_say = 0;
	});
	if (!err && play_say)
		model_insert(m, at, fresh, size);
	return err;
}

static int step_push_back(int by, struct model *m)
{
	size_t size = draw_size(m);
	int err;

	draw_fresh(size);
	err = TURN(by, CALL(push_back)(m->at, stage_ga(), size));
	if (!err)
		model_insert(m, m->size, fresh, size);
	return err;
}

static int step_pop_back(int by, struct model *m)
{
	size_t size = draw(4) ? draw(100) : draw(2 * m->size + 2);
	int err = TURN(by, CALL(pop_back)(m->at, size));

	if (!err)
		model_erase(m, size < m->size ? m->size - size : 0,
			    size < m->size ? size : m->size);
	return err;
}

static int step_erase(int by, struct model *m)
{
	size_t at = draw(m->size + 1), left = m->size - at;
	size_t size = draw(4) ? draw(100) : draw(2 * left + 2);
	int err = TURN(by, CHECK_EQ(CALL(erase)(place(m, at), size).index, at));

	if (!err)
		model_erase(m, at, size < left ? size : left);
	return err;
}

static int step_erase_range(int by, struct model *m)
{
	size_t at = draw(m->size + 1), size = draw(m->size - at + 1);
	int err = TURN(by, CHECK_EQ(CALL(erase_range)(place(m, at), place(m, at + size)).index,
				    at));

	if (!err)
		model_erase(m, at, size);
	return err;
}

static int step_assign(int by, struct model *m, const struct model *other)
{
	int err = TURN(by, CALL(assign)(m->at, other->at));

	if (!err && m != other) {
		memcpy(m->bytes, other->bytes, other->size);
		m->size = other->size;
	}
	return err;
}

static int step_assign_range(int by, struct model *m, const struct model *other)
{
	size_t from = draw(other->size + 1), size = draw(other->size - from + 1);
	int err = TURN(by, CALL(assign_range)(m->at, place(other, from),
					      place(other, from + size)));

	if (!err) {
		memmove(m->bytes, other->bytes + from, size);
		m->size = size;
	}
	return err;
}

static int step_swap(int by, struct model *m, struct model *other)
{
	static struct model former;
	int err = TURN(by, CALL(swap)(m->at, other->at));

	if (err || m == other)
		return err;
	former = *m;
	m->size = other->size;
	memcpy(m->bytes, other->bytes, m->size);
	other->size = former.size;
	memcpy(other->bytes, former.bytes, former.size);
	return err;
}

static int step_reserve(int by, struct model *m)
{
	size_t size = draw(MODEL_MAX);

	return TURN(by, {
		CALL(reserve)(m->at, size);
		CHECK(errno != FINE || CALL(capacity)(m->at) >= size);
	});
}

static int step_clear(int by, struct model *m)
{
	int err;

	if (draw(4))
		return 0;
	err = TURN(by, CALL(clear)(m->at));
	if (!err)
		m->size = 0;
	return err;
}

static int step_create(int by, struct model *m)
{
	int rank = m->rank;

	if (draw(4) || (play_alone && !play_own))
		return 0;
	CHECK_EQ(TURN(by, CALL(destroy)(m->at)), 0);
	create(by, m, rank, draw(200));
	return 0;
}

#if RING
static int step_push_front(int by, struct model *m)
{
	size_t size = draw_size(m);
	int err;

	draw_fresh(size);
	err = TURN(by, CALL(push_front)(m->at, stage_ga(), size));
	if (!err)
		model_insert(m, 0, fresh, size);
	return err;
}

static int step_pop_front(int by, struct model *m)
{
	size_t size = draw(4) ? draw(100) : draw(2 * m->size + 2);
	int err = TURN(by, CALL(pop_front)(m->at, size));

	if (!err)
		model_erase(m, 0, size < m->size ? size : m->size);
	return err;
}

/* The pieces have exactly the requested bytes. */
static int step_dereference(int by, struct model *m)
{
	size_t at = draw(m->size + 3), size = draw(m->size + 9), want;
	acp_pair_t p;

	want = at >= m->size ? 0 : size < m->size - at ? size : m->size - at;
	return TURN(by, {
		p = acp_dereference_deque_it(place(m, at), size);
		CHECK_EQ(p.first.size + p.second.size, want);
		if (p.first.size)
			CHECK(!memcmp(fetch(p.first.ga, p.first.size), m->bytes + at,
				      p.first.size));
		if (p.second.size)
			CHECK(!memcmp(fetch(p.second.ga, p.second.size),
				      m->bytes + at + p.first.size, p.second.size));
	});
}
#else
static int step_push_front(int by, struct model *m)
{
	return step_push_back(by, m);
}

static int step_pop_front(int by, struct model *m)
{
	return step_pop_back(by, m);
}

static int step_dereference(int by, struct model *m)
{
	size_t at = draw(m->size + 1);

	if (at == m->size)
		return 0;
	return TURN(by, CHECK_EQ(*fetch(IT_CALL(dereference)(place(m, at)), 1) & 255,
				 m->bytes[at]));
}
#endif

static int step(int by)
{
	struct model *m = &models[draw(OBJECTS)], *other = &models[draw(OBJECTS)];

	switch (draw(16)) {
	case 0:
	case 1:
		return step_insert(by, m);
	case 2:
		return step_insert_range(by, m, other);
	case 3:
		return step_insert_own(by, m);
	case 4:
		return step_push_back(by, m);
	case 5:
		return step_pop_back(by, m);
	case 6:
		return step_erase(by, m);
	case 7:
		return step_erase_range(by, m);
	case 8:
		return step_assign(by, m, other);
	case 9:
		return step_assign_range(by, m, other);
	case 10:
		return step_swap(by, m, other);
	case 11:
		return step_reserve(by, m);
	case 12:
		return step_clear(by, m) || step_create(by, m);
	case 13:
		return step_push_front(by, m);
	case 14:
		return step_pop_front(by, m);
	default:
		return step_dereference(by, m);
	}
}

/* Check that all allocated blocks belong to the containers. */
static void check_blocks(void)
{
	uint64_t blocks = 0;
	int i;

	for (i = 0; i < OBJECTS; i++)
		blocks += 1 + (header_word(&models[i], 0) != ACP_GA_NULL);
	CHECK_EQ(live(), blocks);
}

/* Create containers on all ranks, or on all but rank 1. */
static void begin_models_on(const struct fake_acp *f, bool not_on_1)
{
	int i;

	play_state = f->seed;
	for (i = 0; i < OBJECTS; i++)
		create(0, &models[i], not_on_1 ? i % 2 * 2 : i % acp_procs(), draw(100));
}

static void begin_models(const struct fake_acp *f)
{
	begin_models_on(f, false);
}

static void end_models(void)
{
	int i;

	for (i = 0; i < OBJECTS; i++)
		CHECK_EQ(TURN(i % acp_procs(), CALL(destroy)(models[i].at)), 0);
	CHECK_EQ(live(), 0);
}

/* All ranks check concurrently. */
static void check_together(void)
{
	int i;

	rendezvous();
	for (i = 0; i < 10 * OBJECTS; i++)
		check_model(&models[(i + acp_rank()) % OBJECTS]);
	rendezvous();
}

static void play_steps(void *arg)
{
	unsigned int i, n = steps(800), look;
	int by;

	begin_models(arg);
	for (i = 0; i < n; i++) {
		by = whose_turn();
		look = (unsigned int)draw(OBJECTS);
		CHECK_EQ(step(by), 0);
		TURN(by, {
			check_model(&models[look]);
			check_blocks();
		});
	}
	check_together();
	end_models();
}

/* Each rank works on its own containers, which are on any rank. */
static void play_own_steps(void *arg)
{
	const struct fake_acp *f = arg;
	unsigned int i, n = MANY / (unsigned int)acp_procs();
	int me = acp_rank();

	play_alone = true;
	play_own = true;
	play_state = f->seed + (uint64_t)me * 7919;
	for (i = 0; i < OBJECTS; i++)
		create(me, &models[i], (me + (int)i) % acp_procs(), draw(100));
	for (i = 0; i < n; i++) {
		CHECK_EQ(step(me), 0);
		if (i % 16)
			continue;
		check_model(&models[draw(OBJECTS)]);
		check_blocks();
	}
	for (i = 0; i < OBJECTS; i++) {
		check_model(&models[i]);
		FAILS(FINE, CALL(destroy)(models[i].at));
	}
	CHECK_EQ(live(), 0);
	play_own = false;
	rendezvous();
	CHECK_EQ(live(), 0);
	CHECK_EQ(acpx_heap_check(me), 0);
}

/* Each step is repeated with one of its allocations failing: nothing changes. */
static void play_exhaustion(void *arg)
{
	unsigned int i, n = steps(800), failures = 0;
	int j, by, err;

	begin_models(arg);
	for (i = 0; i < n; i++) {
		by = whose_turn();
		play_fail_at = 1 + (unsigned int)draw(2);
		err = step(by);
		CHECK(err == 0 || err == ENOMEM);
		failures += err != 0;
		play_fail_at = 0;
		TURN(by, {
			for (j = 0; j < OBJECTS; j++)
				check_model(&models[j]);
			check_blocks();
		});
	}
	CHECK(failures > n / 50);
	end_models();
}

#endif /* BYTES_PLAY_H */
