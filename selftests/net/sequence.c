// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * Vectors, deques and lists with libacp on four ranks of two nodes, which take turns: random
 * operations on containers in all heaps, of which every rank keeps a model. Without loss, and with
 * 1 % loss in each direction. And one rank that is killed while it changes them.
 */
#include "../dev/isolated.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "members.h"

#define RANKS		4
#define PER_NODE	2
#define FINE		4711		/* errno before each step */
#define CONTAINERS	RANKS		/* per kind: one on each rank */
#define BYTES_MAX	30000		/* of a vector or deque */
#define PIECE_MAX	6000		/* maximum inserted at a time */
#define ELEMENTS_MAX	40
#define ELEMENT_MAX	200
#define TURN		10		/* consecutive steps of one rank */

/* Offsets in starter memory. */
enum { REFERENCES = 0, STAGE = 4096, FETCHED = STAGE + 8192 };

/* Expected contents: the first CONTAINERS are vectors, the others deques. */
struct bytes {
	acp_ga_t ga;
	size_t size;
	unsigned char bytes[BYTES_MAX];
};

struct element {
	size_t size;
	unsigned char bytes[ELEMENT_MAX];
};

struct chain {
	acp_list_t list;
	int count;
	struct element elements[ELEMENTS_MAX];
};

static struct bytes bytes[2 * CONTAINERS];
static struct chain chains[CONTAINERS];
static unsigned char fresh[PIECE_MAX];
static uint64_t state;			/* of the generator, equal on all ranks */

static uint64_t draw(uint64_t below)
{
	uint64_t x;

	state += 0x9e3779b97f4a7c15;
	x = state;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (x ^ x >> 31) % below;
}

static char *own(size_t offset)
{
	return acp_query_address(member_at(acp_rank(), offset));
}

static bool my_turn(int by)
{
	if (by != acp_rank())
		return false;
	errno = FINE;
	return true;
}

static void draw_fresh(size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		fresh[i] = (unsigned char)draw(256);
	memcpy(own(STAGE), fresh, size);
}

static const char *fetch(acp_ga_t ga, size_t size)
{
	CHECK_EQ(member_status(acp_copy(member_at(acp_rank(), FETCHED), ga, size,
					ACP_HANDLE_NULL)), 0);
	return own(FETCHED);
}

/* ---- Bytes ---- */

static acp_vector_t vector_of(const struct bytes *b)
{
	return (acp_vector_t){ b->ga };
}

static acp_deque_t deque_of(const struct bytes *b)
{
	return (acp_deque_t){ b->ga };
}

static acp_vector_it_t in_vector(const struct bytes *b, size_t at)
{
	return (acp_vector_it_t){ vector_of(b), (int)at };
}

static acp_deque_it_t in_deque(const struct bytes *b, size_t at)
{
	return (acp_deque_it_t){ deque_of(b), (int)at };
}

static void check_bytes(const struct bytes *b, bool is_deque)
{
	acp_pair_t p;

	errno = FINE;
	if (!is_deque) {
		CHECK_EQ(acp_size_vector(vector_of(b)), b->size);
		if (b->size)
			CHECK(!memcmp(fetch(acp_at_vector(vector_of(b), 0), b->size), b->bytes,
				      b->size));
		CHECK_EQ(errno, FINE);
		return;
	}
	CHECK_EQ(acp_size_deque(deque_of(b)), b->size);
	p = acp_dereference_deque_it(acp_begin_deque(deque_of(b)), b->size);
	CHECK_EQ(p.first.size + p.second.size, b->size);
	if (p.first.size)
		CHECK(!memcmp(fetch(p.first.ga, p.first.size), b->bytes, p.first.size));
	if (p.second.size)
		CHECK(!memcmp(fetch(p.second.ga, p.second.size), b->bytes + p.first.size,
			      p.second.size));
	CHECK_EQ(errno, FINE);
}

static void model_insert(struct bytes *b, size_t at, const unsigned char *from, size_t size)
{
	memmove(b->bytes + at + size, b->bytes + at, b->size - at);
	memmove(b->bytes + at, from, size);
	b->size += size;
}

static void insert_bytes(int by, struct bytes *b, bool is_deque)
{
	size_t room = BYTES_MAX - b->size, size, at;

	size = draw((room < PIECE_MAX ? room : PIECE_MAX) + 1);
	if (draw(2))
		size %= 50;
	at = draw(3) ? draw(b->size + 1) : b->size;
	draw_fresh(size);
	if (my_turn(by)) {
		if (!is_deque)
			acp_insert_vector(in_vector(b, at), member_at(by, STAGE), size);
		else if (at)
			acp_insert_deque(in_deque(b, at), member_at(by, STAGE), size);
		else
			acp_push_front_deque(deque_of(b), member_at(by, STAGE), size);
		CHECK_EQ(errno, FINE);
	}
	model_insert(b, at, fresh, size);
}

static void erase_bytes(int by, struct bytes *b, bool is_deque)
{
	size_t at = draw(3) ? draw(b->size + 1) : 0, size = draw(b->size - at + 1);

	if (my_turn(by)) {
		if (!is_deque)
			acp_erase_vector(in_vector(b, at), size);
		else if (at)
			acp_erase_deque(in_deque(b, at), size);
		else
			acp_pop_front_deque(deque_of(b), size);
		CHECK_EQ(errno, FINE);
	}
	memmove(b->bytes + at, b->bytes + at + size, b->size - at - size);
	b->size -= size;
}

/* Assign a range of another container of the kind, or of itself. */
static void assign_bytes(int by, struct bytes *b, const struct bytes *other, bool is_deque)
{
	size_t at = draw(other->size + 1), size = draw(other->size - at + 1);

	if (my_turn(by)) {
		if (is_deque)
			acp_assign_range_deque(deque_of(b), in_deque(other, at),
					       in_deque(other, at + size));
		else
			acp_assign_range_vector(vector_of(b), in_vector(other, at),
						in_vector(other, at + size));
		CHECK_EQ(errno, FINE);
	}
	memmove(b->bytes, other->bytes + at, size);
	b->size = size;
}

static void swap_bytes(int by, struct bytes *b, struct bytes *other, bool is_deque)
{
	static struct bytes former;
	acp_ga_t ga = b->ga;

	if (my_turn(by)) {
		if (is_deque)
			acp_swap_deque(deque_of(b), deque_of(other));
		else
			acp_swap_vector(vector_of(b), vector_of(other));
		CHECK_EQ(errno, FINE);
	}
	former = *b;
	*b = *other;
	b->ga = ga;
	ga = other->ga;
	*other = former;
	other->ga = ga;
}

static void step_bytes(int by)
{
	bool is_deque = draw(2);
	struct bytes *kind = bytes + (is_deque ? CONTAINERS : 0);
	struct bytes *b = &kind[draw(CONTAINERS)], *other = &kind[draw(CONTAINERS)];

	switch (draw(8)) {
	case 0:
	case 1:
	case 2:
	case 3:
		insert_bytes(by, b, is_deque);
		break;
	case 4:
	case 5:
		erase_bytes(by, b, is_deque);
		break;
	case 6:
		assign_bytes(by, b, other, is_deque);
		break;
	default:
		swap_bytes(by, b, other, is_deque);
	}
}

/* ---- Lists ---- */

static void check_chain(const struct chain *c)
{
	acp_list_it_t it = acp_begin_list(c->list);
	acp_element_t e;
	int i;

	errno = FINE;
	CHECK_EQ(acp_size_list(c->list), c->count);
	for (i = 0; i < c->count; i++) {
		e = acp_dereference_list_it(it);
		CHECK_EQ(e.size, c->elements[i].size);
		CHECK(!memcmp(fetch(e.ga, e.size), c->elements[i].bytes, e.size));
		it = acp_increment_list_it(it);
	}
	CHECK_EQ(it.elem, c->list.ga);
	CHECK_EQ(errno, FINE);
}

static acp_list_it_t in_chain(const struct chain *c, int index)
{
	return acp_advance_list_it(acp_begin_list(c->list), index);
}

static void put(struct chain *c, int at, const struct element *e)
{
	memmove(&c->elements[at + 1], &c->elements[at],
		(size_t)(c->count - at) * sizeof(*e));
	c->elements[at] = *e;
	c->count++;
}

static void take(struct chain *c, int at)
{
	c->count--;
	memmove(&c->elements[at], &c->elements[at + 1],
		(size_t)(c->count - at) * sizeof(c->elements[0]));
}

static void insert_element(int by, struct chain *c)
{
	int at = (int)draw((uint64_t)c->count + 1), rank = (int)draw(RANKS);
	struct element e = { .size = draw(ELEMENT_MAX + 1) };
	acp_element_t there = { member_at(by, STAGE), e.size };

	if (c->count == ELEMENTS_MAX)
		return;
	draw_fresh(e.size);
	memcpy(e.bytes, fresh, e.size);
	if (my_turn(by)) {
		if (at == c->count)
			acp_push_back_list(c->list, there, rank);
		else
			acp_insert_list(in_chain(c, at), there, rank);
		CHECK_EQ(errno, FINE);
	}
	put(c, at, &e);
}

static void erase_element(int by, struct chain *c)
{
	int at;

	if (!c->count)
		return;
	at = (int)draw((uint64_t)c->count);
	if (my_turn(by)) {
		acp_erase_list(in_chain(c, at));
		CHECK_EQ(errno, FINE);
	}
	take(c, at);
}

static void splice_element(int by, struct chain *c, struct chain *other)
{
	struct element e;
	int at, from;

	if (c == other || !other->count || c->count == ELEMENTS_MAX)
		return;
	at = (int)draw((uint64_t)c->count + 1);
	from = (int)draw((uint64_t)other->count);
	if (my_turn(by)) {
		acp_splice_list(in_chain(c, at), in_chain(other, from));
		CHECK_EQ(errno, FINE);
	}
	e = other->elements[from];
	take(other, from);
	put(c, at, &e);
}

static int by_size(const acp_element_t a, const acp_element_t b)
{
	return a.size < b.size ? -1 : a.size > b.size;
}

static void sort_chain(int by, struct chain *c)
{
	struct element e;
	int i, j;

	if (my_turn(by)) {
		acp_sort_list(c->list, by_size);
		CHECK_EQ(errno, FINE);
	}
	for (i = 1; i < c->count; i++) {
		e = c->elements[i];
		for (j = i; j && c->elements[j - 1].size > e.size; j--)
			c->elements[j] = c->elements[j - 1];
		c->elements[j] = e;
	}
}

static void reverse_chain(int by, struct chain *c)
{
	struct element e;
	int i;

	if (my_turn(by)) {
		acp_reverse_list(c->list);
		CHECK_EQ(errno, FINE);
	}
	for (i = 0; i < c->count / 2; i++) {
		e = c->elements[i];
		c->elements[i] = c->elements[c->count - 1 - i];
		c->elements[c->count - 1 - i] = e;
	}
}

static void assign_chain(int by, struct chain *c, const struct chain *other)
{
	if (my_turn(by)) {
		acp_assign_list(c->list, other->list);
		CHECK_EQ(errno, FINE);
	}
	c->count = other->count;
	memmove(c->elements, other->elements, sizeof(c->elements));
}

static void step_chain(int by)
{
	struct chain *c = &chains[draw(CONTAINERS)], *other = &chains[draw(CONTAINERS)];

	switch (draw(12)) {
	case 0:
		sort_chain(by, c);
		break;
	case 1:
		reverse_chain(by, c);
		break;
	case 2:
		assign_chain(by, c, other);
		break;
	case 3:
	case 4:
		splice_element(by, c, other);
		break;
	case 5:
	case 6:
	case 7:
		erase_element(by, c);
		break;
	default:
		insert_element(by, c);
	}
}

/* ---- All containers ---- */

/* Each rank creates the containers of its left neighbour, and publishes their addresses. */
static void create(void)
{
	int me = acp_rank(), home = (me + RANKS - 1) % RANKS, i;
	acp_ga_t *made = (acp_ga_t *)(void *)own(REFERENCES);
	acp_ga_t all[3];

	made[0] = acp_create_vector(0, home).ga;
	made[1] = acp_create_deque(1000, home).ga;
	made[2] = acp_create_list(home).ga;
	CHECK(made[0] != ACP_GA_NULL && made[1] != ACP_GA_NULL && made[2] != ACP_GA_NULL);
	CHECK_EQ(acp_sync(), 0);
	for (i = 0; i < RANKS; i++) {
		memcpy(all, fetch(member_at(i, REFERENCES), sizeof(all)), sizeof(all));
		bytes[i].ga = all[0];
		bytes[CONTAINERS + i].ga = all[1];
		chains[i].list.ga = all[2];
		CHECK_EQ(acp_query_rank(all[0]), (i + RANKS - 1) % RANKS);
	}
	CHECK_EQ(acp_sync(), 0);
}

static void check_all(void)
{
	int i;

	for (i = 0; i < 2 * CONTAINERS; i++)
		check_bytes(&bytes[i], i >= CONTAINERS);
	for (i = 0; i < CONTAINERS; i++)
		check_chain(&chains[i]);
}

static void destroy(void)
{
	struct acpx_heap_stats stats;
	int me = acp_rank();

	errno = FINE;
	acp_destroy_vector(vector_of(&bytes[me]));
	acp_destroy_deque(deque_of(&bytes[CONTAINERS + me]));
	acp_destroy_list(chains[me].list);
	CHECK_EQ(errno, FINE);
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(acpx_heap_check(me), 0);
	CHECK_EQ(acpx_heap_stats(me, &stats), 0);
	CHECK_EQ(stats.blocks, 0);
}

static void take_turns(void)
{
	int turn, turns = test_short() ? 8 : 60, i, by;

	member_init();
	create();
	for (turn = 0; turn < turns; turn++) {
		by = (int)draw(RANKS);
		for (i = 0; i < TURN; i++) {
			if (draw(2))
				step_bytes(by);
			else
				step_chain(by);
		}
		CHECK_EQ(acp_sync(), 0);
		if (by == (acp_rank() + 1) % RANKS)
			check_all();
		CHECK_EQ(acp_sync(), 0);
	}
	destroy();
	CHECK_EQ(acp_finalize(), 0);
}

/* ---- A rank that is killed ---- */

#define VICTIM		(RANKS - 1)
/* after this time none of its accesses is executed any more */
#define ARRIVES_MS	2100

static struct board {
	unsigned int steps, gone, done;
} *board;

static unsigned int seen(const unsigned int *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void wait_for(const unsigned int *word)
{
	while (!seen(word))
		sleep_ms(1);
}

static void step_until_killed(void)
{
	for (;;) {
		if (draw(2))
			step_bytes(VICTIM);
		else
			step_chain(VICTIM);
		__atomic_add_fetch(&board->steps, 1, __ATOMIC_SEQ_CST);
	}
}

/* Vectors and deques of the others are consistent. */
static void check_sound(const struct bytes *b, bool is_deque)
{
	size_t size;

	errno = FINE;
	size = is_deque ? acp_size_deque(deque_of(b)) : acp_size_vector(vector_of(b));
	if (acp_query_rank(b->ga) == VICTIM) {
		CHECK_EQ(errno, EHOSTDOWN);
		return;
	}
	CHECK(size <= BYTES_MAX);
	if (is_deque) {
		acp_push_front_deque(deque_of(b), member_at(acp_rank(), STAGE), 10);
		CHECK_EQ(acp_size_deque(deque_of(b)), size + 10);
		acp_destroy_deque(deque_of(b));
	} else {
		acp_push_back_vector(vector_of(b), member_at(acp_rank(), STAGE), 10);
		CHECK_EQ(acp_size_vector(vector_of(b)), size + 10);
		acp_destroy_vector(vector_of(b));
	}
	CHECK_EQ(errno, FINE);
}

/* Lists may be damaged, but calls do not hang. */
static void use_damaged(acp_list_t list)
{
	acp_list_it_t it = acp_begin_list(list);
	size_t n = 0, size = acp_size_list(list);

	while (it.elem != list.ga && it.elem != ACP_GA_NULL && n++ < size)
		it = acp_increment_list_it(it);
	acp_reverse_list(list);
	acp_sort_list(list, by_size);
	acp_destroy_list(list);
}

/* Operations that need an element of the dead rank fail, and change nothing. */
static void check_lost_element(acp_list_t list)
{
	errno = FINE;
	CHECK_EQ(acp_size_list(list), 2);
	CHECK_EQ(acp_dereference_list_it(acp_begin_list(list)).size, 8);
	CHECK_EQ(errno, FINE);
	acp_clear_list(list);
	CHECK_EQ(errno, EHOSTDOWN);
	acp_pop_back_list(list);
	acp_reverse_list(list);
	errno = FINE;
	CHECK_EQ(acp_size_list(list), 2);
	acp_push_front_list(list, (acp_element_t){ member_at(0, STAGE), 8 }, 0);
	acp_pop_front_list(list);
	CHECK_EQ(acp_size_list(list), 2);
	CHECK_EQ(errno, FINE);
}

/* Rank 0, after all accesses of the dead rank have ended. */
static void look_after(acp_list_t lost)
{
	acp_vector_t vector;
	int i;

	while (!member_status(acp_copy(member_at(0, FETCHED), member_at(VICTIM, STAGE), 8,
				       ACP_HANDLE_NULL)))
		sleep_ms(10);
	sleep_ms(ARRIVES_MS);
	for (i = 0; i < 2 * CONTAINERS; i++)
		check_sound(&bytes[i], i >= CONTAINERS);
	check_lost_element(lost);
	for (i = 0; i < CONTAINERS; i++)
		use_damaged(chains[i].list);
	errno = FINE;
	vector = acp_create_vector(100, VICTIM - 1);
	CHECK_EQ(acp_size_vector(vector), 100);
	acp_destroy_vector(vector);
	CHECK_EQ(errno, FINE);
	for (i = 0; i < VICTIM; i++)
		CHECK_EQ(acpx_heap_check(i), 0);
}

static void one_is_killed(void)
{
	acp_element_t e = { 0, 8 };
	acp_list_t lost = { ACP_GA_NULL };
	int i;

	member_init();
	create();
	if (!acp_rank()) {
		lost = acp_create_list(0);
		e.ga = member_at(0, STAGE);
		for (i = 0; i < 2; i++)
			acp_push_back_list(lost, e, i ? VICTIM : 0);
		CHECK_EQ(acp_size_list(lost), 2);
	}
	CHECK_EQ(acp_sync(), 0);
	if (acp_rank() == VICTIM)
		step_until_killed();
	wait_for(&board->gone);
	if (!acp_rank()) {
		look_after(lost);
		__atomic_store_n(&board->done, 1, __ATOMIC_SEQ_CST);
	}
	wait_for(&board->done);
	CHECK_EQ(acp_finalize(), -1);
}

/* ---- Jobs ---- */

static void open_job(struct members *m, const char *netem)
{
	const char *seed = getenv("ACP_TEST_SEED");

	state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
	printf("# ACP_TEST_SEED=%llu\n", (unsigned long long)state);
	setenv("ACP_STARTER_SIZE", "65536", 1);
	setenv("ACP_HEAP_SIZE", "4M", 1);
	members_open(m, RANKS, PER_NODE);
	if (*netem)
		nodes_impair_all(&m->nodes, netem);
}

static void run_with(const char *netem)
{
	struct members m;

	open_job(&m, netem);
	members_start_all(&m, take_turns);
	members_expect(&m, 0);
}

static void kill_after(unsigned int steps)
{
	struct members m;
	int r;

	board = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(board != MAP_FAILED);
	open_job(&m, "loss 1%");
	members_start_all(&m, one_is_killed);
	while (seen(&board->steps) < steps)
		sleep_ms(1);
	CHECK(!kill(m.pid[VICTIM], SIGKILL));
	CHECK_EQ(members_wait(&m, VICTIM), DIED - SIGKILL);
	__atomic_store_n(&board->gone, 1, __ATOMIC_SEQ_CST);
	for (r = 0; r < VICTIM; r++)
		CHECK_EQ(members_wait(&m, r), 0);
}

TEST(A2_sequences_in_turns)
{
	run_with("");
}

TEST(A2_N1_sequences_with_loss)
{
	run_with("loss 1%");
}

TEST(A2_a_user_of_sequences_is_killed)
{
	kill_after(30);
}

TEST(A2_a_user_of_sequences_is_killed_at_another_moment)
{
	kill_after(71);
}
