/* SPDX-License-Identifier: MIT */
/* Lists against arrays of elements: the model, and random steps. */
#ifndef LIST_PLAY_H
#define LIST_PLAY_H

#include "container_play.h"

#define LISTS		4
#define MODEL_MAX	60	/* elements */
#define BYTES_MAX	80	/* of an element */

struct element {
	acp_ga_t ga;		/* address of the element in global memory, which does not change */
	int rank;
	size_t size;
	unsigned char bytes[BYTES_MAX];
};

static struct model {
	acp_list_t at;
	int rank;
	unsigned int count;
	struct element elements[2 * MODEL_MAX];
} models[LISTS];

static struct element fresh;
static int avoided = -1;	/* rank without elements */
static struct model former;

/* ---- Memory of the process ---- */

static unsigned int fail_realloc_at;	/* the n-th call fails; 0: none */

void *__real_realloc(void *block, size_t size);

void *__wrap_realloc(void *block, size_t size)
{
	if (fail_realloc_at && --fail_realloc_at == 0)
		return NULL;
	return __real_realloc(block, size);
}

/* ---- Checks ---- */

static acp_list_it_t place(const struct model *m, unsigned int index)
{
	return (acp_list_it_t){ m->at, index < m->count ? m->elements[index].ga : m->at.ga };
}

static void check_element(const struct element *e, acp_list_it_t it)
{
	acp_element_t data = acp_dereference_list_it(it);

	CHECK_EQ(it.elem, e->ga);
	CHECK_EQ(acp_query_rank(it.elem), e->rank);
	CHECK_EQ(data.size, e->size);
	CHECK_EQ(data.ga, e->ga + 24);
	CHECK(memcmp(fetch(data.ga, data.size), e->bytes, e->size) == 0);
}

static void check_model(const struct model *m)
{
	acp_list_it_t it, end = acp_end_list(m->at);
	unsigned int i;

	errno = FINE;
	CHECK_EQ(end.elem, m->at.ga);
	CHECK_EQ(acp_size_list(m->at), m->count);
	CHECK_EQ(acp_empty_list(m->at), m->count == 0);
	it = acp_begin_list(m->at);
	for (i = 0; i < m->count; i++) {
		check_element(&m->elements[i], it);
		CHECK_EQ(fetch_word(it.elem + 8), i ? m->elements[i - 1].ga : m->at.ga);
		it = acp_increment_list_it(it);
	}
	CHECK_EQ(it.elem, end.elem);
	CHECK_EQ(acp_increment_list_it(it).elem, end.elem);
	CHECK_EQ(acp_dereference_list_it(it).ga, ACP_GA_NULL);
	for (; i; i--) {
		it = acp_decrement_list_it(it);
		CHECK_EQ(it.elem, m->elements[i - 1].ga);
	}
	it = acp_decrement_list_it(it);
	CHECK_EQ(it.elem, m->count ? m->elements[0].ga : m->at.ga);
	i = m->count / 2;
	CHECK_EQ(acp_advance_list_it(acp_begin_list(m->at), (int)i).elem, place(m, i).elem);
	CHECK_EQ(acp_advance_list_it(acp_begin_list(m->at), 1000).elem, m->at.ga);
	CHECK_EQ(acp_distance_list_it(place(m, i), end), m->count - i);
	CHECK_EQ(acp_distance_list_it(place(m, 0), place(m, i)), i);
	CHECK_EQ(errno, FINE);
}

static void check_blocks(void)
{
	uint64_t blocks = 0;
	int i;

	for (i = 0; i < LISTS; i++)
		blocks += 1 + models[i].count;
	CHECK_EQ(live(), blocks);
}

/* ---- The model ---- */

static void model_insert(struct model *m, unsigned int at, const struct element *e)
{
	CHECK(m->count < 2 * MODEL_MAX);
	memmove(&m->elements[at + 1], &m->elements[at], (m->count - at) * sizeof(*e));
	m->elements[at] = *e;
	m->count++;
}

static void model_erase(struct model *m, unsigned int at, unsigned int count)
{
	memmove(&m->elements[at], &m->elements[at + count],
		(m->count - at - count) * sizeof(m->elements[0]));
	m->count -= count;
}

static bool equal(const struct element *a, const struct element *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

/* Only few distinct elements, so that some are equal. */
static acp_element_t draw_fresh(void)
{
	unsigned int kind = (unsigned int)draw(12);

	fresh.size = kind % 5 * 16 + kind % 3;
	memset(fresh.bytes, (int)kind / 5, sizeof(fresh.bytes));
	if (fresh.size)
		fresh.bytes[fresh.size - 1] = (unsigned char)kind;
	fresh.rank = (int)draw((uint64_t)acp_procs());
	if (fresh.rank == avoided)
		fresh.rank = 0;
	memcpy(stage(), fresh.bytes, sizeof(fresh.bytes));
	return (acp_element_t){ stage_ga(), fresh.size };
}

/* The rank that executed a step reads the addresses of new elements and tells the others. */
static void learn(int by, struct model *m, unsigned int from, unsigned int count)
{
	acp_list_it_t it = { m->at, ACP_GA_NULL };
	unsigned int i;

	for (i = from; i < from + count; i++) {
		TURN(by, {
			it = i == from ? acp_advance_list_it(acp_begin_list(m->at), (int)i) :
					 acp_increment_list_it(it);
			play_say = it.elem;
		});
		m->elements[i].ga = play_say;
	}
}

/* ---- Steps ---- */

static void create(int by, struct model *m, int rank)
{
	unsigned int fail_at = play_fail_at;

	play_fail_at = 0;
	CHECK_EQ(TURN(by, play_say = acp_create_list(rank).ga), 0);
	play_fail_at = fail_at;
	m->at.ga = play_say;
	m->rank = rank;
	m->count = 0;
	CHECK_EQ(acp_query_rank(m->at.ga), rank);
}

static int step_insert(int by, struct model *m)
{
	unsigned int at = (unsigned int)draw(m->count + 1);
	acp_element_t e = draw_fresh();
	int err;

	if (m->count >= MODEL_MAX)
		return 0;
	err = TURN(by, play_say = acp_insert_list(place(m, at), e, fresh.rank).elem);
	CHECK_EQ(play_say == ACP_GA_NULL, err != 0);
	fresh.ga = play_say;
	if (!err)
		model_insert(m, at, &fresh);
	return err;
}

static int step_push(int by, struct model *m)
{
	bool front = draw(2);
	acp_element_t e = draw_fresh();
	unsigned int at = front ? 0 : m->count;
	int err;

	if (m->count >= MODEL_MAX)
		return 0;
	err = TURN(by, {
		if (front)
			acp_push_front_list(m->at, e, fresh.rank);
		else
			acp_push_back_list(m->at, e, fresh.rank);
	});
	if (err)
		return err;
	model_insert(m, at, &fresh);
	learn(by, m, at, 1);
	return 0;
}

static int step_pop(int by, struct model *m)
{
	bool front = draw(2);
	int err = TURN(by, {
		if (front)
			acp_pop_front_list(m->at);
		else
			acp_pop_back_list(m->at);
	});

	if (!err && m->count)
		model_erase(m, front ? 0 : m->count - 1, 1);
	return err;
}

static int step_erase(int by, struct model *m)
{
	unsigned int at = (unsigned int)draw(m->count + 1);
	int err;

	if (at == m->count) {
		CHECK_EQ(TURN(by, CHECK_EQ(acp_erase_list(place(m, at)).elem, ACP_GA_NULL)),
			 EINVAL);
		return 0;
	}
	err = TURN(by, {
		acp_list_it_t next = acp_erase_list(place(m, at));

		CHECK_EQ(next.elem, errno == FINE ? place(m, at + 1).elem : ACP_GA_NULL);
	});
	if (!err)
		model_erase(m, at, 1);
	return err;
}

static int step_erase_range(int by, struct model *m)
{
	unsigned int at = (unsigned int)draw(m->count + 1);
	unsigned int n = (unsigned int)draw(m->count - at + 1);
	int err = TURN(by, {
		acp_list_it_t end = place(m, at + n);
		acp_list_it_t next = acp_erase_range_list(place(m, at), end);

		CHECK_EQ(next.elem, errno == FINE ? end.elem : ACP_GA_NULL);
	});

	if (!err)
		model_erase(m, at, n);
	return err;
}

static int step_insert_range(int by, struct model *m, const struct model *other)
{
	unsigned int at = (unsigned int)draw(m->count + 1);
	unsigned int from = (unsigned int)draw(other->count + 1), i;
	unsigned int n = (unsigned int)draw(other->count - from + 1);
	acp_ga_t before = place(m, at).elem;
	int err;

	if (m->count + n > MODEL_MAX)
		return 0;
	former = *other;
	err = TURN(by, play_say = acp_insert_range_list(place(m, at), place(other, from),
							place(other, from + n)).elem);
	if (err) {
		CHECK_EQ(play_say, ACP_GA_NULL);
		return err;
	}
	if (!n)
		CHECK_EQ(play_say, before);
	before = play_say;
	for (i = 0; i < n; i++)
		model_insert(m, at + i, &former.elements[from + i]);
	learn(by, m, at, n);
	if (n)
		CHECK_EQ(m->elements[at].ga, before);
	return 0;
}

static int step_assign(int by, struct model *m, const struct model *other)
{
	unsigned int from = (unsigned int)draw(other->count + 1);
	unsigned int n = (unsigned int)draw(other->count - from + 1);
	bool whole = draw(2);
	int err;

	former = *other;
	err = TURN(by, {
		if (whole)
			acp_assign_list(m->at, other->at);
		else
			acp_assign_range_list(m->at, place(other, from), place(other, from + n));
	});
	if (err || (whole && m == other))
		return err;
	if (whole) {
		from = 0;
		n = former.count;
	}
	m->count = n;
	memcpy(m->elements, former.elements + from, n * sizeof(fresh));
	learn(by, m, 0, n);
	return 0;
}

static int step_splice(int by, struct model *m, struct model *other)
{
	unsigned int at = (unsigned int)draw(m->count + 1), i, n = 1, from;
	bool range = draw(2);
	int err, expected = 0;

	if (!other->count || (m != other && m->count + other->count > MODEL_MAX))
		return 0;
	from = (unsigned int)draw(other->count);
	if (range)
		n = (unsigned int)draw(other->count - from + 1);
	if (m == other && at > from && at < from + n)
		expected = EINVAL;
	err = TURN(by, {
		if (range)
			acp_splice_range_list(place(m, at), place(other, from),
					      place(other, from + n));
		else
			acp_splice_list(place(m, at), place(other, from));
	});
	if (err)
		return err == expected ? 0 : err;
	CHECK_EQ(expected, 0);
	if (m == other && at >= from && at <= from + n)
		return 0;
	former = *other;
	model_erase(other, from, n);
	if (m == other && at > from)
		at -= n;
	for (i = 0; i < n; i++)
		model_insert(m, at + i, &former.elements[from + i]);
	return 0;
}

static int step_swap(int by, struct model *m, struct model *other)
{
	int err = TURN(by, acp_swap_list(m->at, other->at));

	if (err || m == other)
		return err;
	former = *m;
	m->count = other->count;
	memcpy(m->elements, other->elements, sizeof(former.elements));
	other->count = former.count;
	memcpy(other->elements, former.elements, sizeof(former.elements));
	return 0;
}

/*
 * Remove: all that are equal to one in the list, or to new ones. Unique: those equal to their
 * predecessor.
 */
static int step_remove(int by, struct model *m)
{
	bool own = m->count && draw(2), unique = draw(2);
	acp_element_t e = draw_fresh();
	struct element pattern = fresh;
	unsigned int i, kept = 0;
	int err;

	if (own) {
		pattern = m->elements[draw(m->count)];
		e = (acp_element_t){ pattern.ga + 24, pattern.size };
	}
	err = TURN(by, {
		if (unique)
			acp_unique_list(m->at);
		else
			acp_remove_list(m->at, e);
	});
	if (err)
		return err;
	for (i = 0; i < m->count; i++) {
		if (unique ? kept && equal(&m->elements[i], &m->elements[kept - 1]) :
			     equal(&m->elements[i], &pattern))
			continue;
		m->elements[kept++] = m->elements[i];
	}
	m->count = kept;
	return 0;
}

static int step_reverse(int by, struct model *m)
{
	int err = TURN(by, acp_reverse_list(m->at));
	unsigned int i;

	former = *m;
	for (i = 0; !err && i < m->count; i++)
		m->elements[i] = former.elements[m->count - 1 - i];
	return err;
}

/* Compare by size; the order of equal sizes shows whether the sort is stable. */
static int compare(const acp_element_t a, const acp_element_t b)
{
	return a.size < b.size ? -1 : a.size > b.size;
}

/* Insertion sort, which is stable. */
static void model_sort(struct model *m)
{
	struct element e;
	unsigned int i, j;

	for (i = 1; i < m->count; i++) {
		e = m->elements[i];
		for (j = i; j && m->elements[j - 1].size > e.size; j--)
			m->elements[j] = m->elements[j - 1];
		m->elements[j] = e;
	}
}

static int step_sort(int by, struct model *m)
{
	int err = TURN(by, acp_sort_list(m->at, compare));

	if (!err)
		model_sort(m);
	return err;
}

static int step_merge(int by, struct model *m, struct model *other)
{
	int err;

	if (m == other)
		return TURN(by, acp_merge_list(m->at, m->at, compare));
	if (m->count + other->count > MODEL_MAX)
		return 0;
	err = step_sort(by, m);
	if (!err)
		err = step_sort(by, other);
	if (err)
		return err;
	err = TURN(by, acp_merge_list(m->at, other->at, compare));
	if (err)
		return err;
	memcpy(&m->elements[m->count], other->elements, other->count * sizeof(fresh));
	m->count += other->count;
	other->count = 0;
	model_sort(m);
	return 0;
}

static int step_clear(int by, struct model *m)
{
	int err, rank = m->rank;

	if (draw(3))
		return 0;
	if (draw(2)) {
		err = TURN(by, acp_clear_list(m->at));
		if (!err)
			m->count = 0;
	} else {
		err = TURN(by, acp_destroy_list(m->at));
		if (!err)
			create(by, m, rank);
	}
	return err;
}

static int step(int by)
{
	struct model *m = &models[draw(LISTS)], *other = &models[draw(LISTS)];

	switch (draw(18)) {
	case 0:
	case 1:
	case 2:
	case 3:
		return step_insert(by, m);
	case 4:
	case 5:
	case 6:
		return step_push(by, m);
	case 7:
		return step_pop(by, m);
	case 8:
		return step_erase(by, m);
	case 9:
		return step_erase_range(by, m);
	case 10:
		return step_insert_range(by, m, other);
	case 11:
		return step_assign(by, m, other);
	case 12:
		return step_splice(by, m, other);
	case 13:
		return step_swap(by, m, other);
	case 14:
		return step_remove(by, m);
	case 15:
		return step_reverse(by, m);
	case 16:
		return draw(2) ? step_sort(by, m) : step_merge(by, m, other);
	default:
		return step_clear(by, m);
	}
}

/* Create models on all ranks except the avoided one. */
static void begin_models(const struct fake_acp *f)
{
	int i;

	play_state = f->seed;
	for (i = 0; i < LISTS; i++)
		create(0, &models[i], i % acp_procs() == avoided ? 0 : i % acp_procs());
}

static void end_models(void)
{
	int i;

	for (i = 0; i < LISTS; i++)
		CHECK_EQ(TURN(i % acp_procs(), acp_destroy_list(models[i].at)), 0);
	CHECK_EQ(live(), 0);
}

/* All ranks check concurrently. */
static void check_together(void)
{
	int i;

	rendezvous();
	for (i = 0; i < 10 * LISTS; i++)
		check_model(&models[(i + acp_rank()) % LISTS]);
	rendezvous();
}

static void play_steps(void *arg)
{
	unsigned int i, look, n = steps(3000);
	int by;

	begin_models(arg);
	for (i = 0; i < n; i++) {
		by = whose_turn();
		look = (unsigned int)draw(LISTS);
		CHECK_EQ(step(by), 0);
		TURN(by, {
			check_model(&models[look]);
			check_blocks();
		});
	}
	check_together();
	end_models();
}

/* Each rank works on its own lists, which are on any rank. */
static void play_own_steps(void *arg)
{
	const struct fake_acp *f = arg;
	unsigned int i, n = MANY / (unsigned int)acp_procs();
	int me = acp_rank();

	play_alone = true;
	play_own = true;
	play_state = f->seed + (uint64_t)me * 7919;
	for (i = 0; i < LISTS; i++)
		create(me, &models[i], (me + (int)i) % acp_procs());
	for (i = 0; i < n; i++) {
		CHECK_EQ(step(me), 0);
		if (i % 16)
			continue;
		check_model(&models[draw(LISTS)]);
		check_blocks();
	}
	for (i = 0; i < LISTS; i++) {
		check_model(&models[i]);
		FAILS(FINE, acp_destroy_list(models[i].at));
	}
	CHECK_EQ(live(), 0);
	play_own = false;
	rendezvous();
	CHECK_EQ(live(), 0);
	CHECK_EQ(acpx_heap_check(me), 0);
}

static void play_exhaustion(void *arg)
{
	unsigned int i, n = steps(3000), failures = 0;
	int j, by, err;

	begin_models(arg);
	for (i = 0; i < n; i++) {
		by = whose_turn();
		play_fail_at = 1 + (unsigned int)draw(5);
		fail_realloc_at = (unsigned int)draw(4);
		err = step(by);
		CHECK(err == 0 || err == ENOMEM);
		failures += err != 0;
		play_fail_at = 0;
		fail_realloc_at = 0;
		TURN(by, {
			for (j = 0; j < LISTS; j++)
				check_model(&models[j]);
			check_blocks();
		});
	}
	CHECK(failures > n / 50);
	end_models();
}

#endif /* LIST_PLAY_H */
