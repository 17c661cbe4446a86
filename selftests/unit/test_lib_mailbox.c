// SPDX-License-Identifier: MIT
/*
 * The memory of a mailbox (lib/mailbox/area.h), with senders that do what the kernel does: against
 * a model, and with threads.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "mailbox/area.h"
#include "mailbox_play.h"
#include "test.h"

#define RANKS	8

static uint64_t start_seed(void)
{
	const char *text = getenv("ACP_TEST_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);

	printf("# seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	test_limit(PATIENCE_TEST);
	return seed;
}

static uint64_t draw(uint64_t *seed)
{
	uint64_t x = *seed += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* Most messages are short, some take all of a mailbox. */
static uint64_t draw_size(uint64_t *seed, uint64_t units)
{
	const uint64_t most = 8 * (units - PLAY_RECORD);

	switch (draw(seed) % 8) {
	case 0:
		return draw(seed) % (most + 1);
	case 1:
		return draw(seed) % 16 ? 0 : most;
	default:
		return draw(seed) % (most < 64 ? most + 1 : 64);
	}
}

static struct libacp_area new_area(uint64_t units)
{
	const size_t size = sizeof(struct acp_mailbox) + 8 * units;
	void *memory = malloc(size);
	struct libacp_area a;

	CHECK(memory);
	memset(memory, 0xff, size);
	libacp_area_open(&a, memory, units, RANKS);
	return a;
}

static uint64_t room_of(const struct libacp_area *a)
{
	return __atomic_load_n((uint64_t *)(void *)&a->box->room, __ATOMIC_ACQUIRE);
}

static bool is_all_free(const struct libacp_area *a)
{
	return room_of(a) == ACP_MAILBOX_ROOM(0, a->units);
}

/* The bytes of a message depend on its tag. */
static void fill_message(uint8_t *data, uint64_t size, uint64_t tag)
{
	uint64_t i;

	for (i = 0; i < size; i++)
		data[i] = (uint8_t)(tag * 31 + i * 7 + (i >> 8));
}

static bool is_message(const uint8_t *data, uint64_t size, uint64_t tag)
{
	uint64_t i;

	for (i = 0; i < size; i++)
		if (data[i] != (uint8_t)(tag * 31 + i * 7 + (i >> 8)))
			return false;
	return true;
}

static uint8_t send(struct libacp_area *a, uint64_t size, uint64_t tag)
{
	struct acp_record *r;
	uint8_t status = play_reserve(a->box, size, &r);

	if (status)
		return status;
	CHECK(play_is_zero(r, size));
	fill_message((uint8_t *)(r + 1), size, tag);
	play_describe(r, tag % RANKS, tag);
	play_state(r, size, ACP_RECORD_READY);
	return ACP_ST_OK;
}

static void check_record(const struct libacp_record *r, uint64_t size,
			 uint64_t tag)
{
	CHECK_EQ(r->tag, tag);
	CHECK_EQ(r->size, size);
	CHECK_EQ(r->rank, tag % RANKS);
	CHECK(is_message(r->data, size, tag));
}

static void receive(struct libacp_area *a, uint64_t size, uint64_t tag)
{
	struct libacp_record r;

	CHECK_EQ(libacp_area_find(a, false, &r), 0);
	check_record(&r, size, tag);
	libacp_area_consume(a, &r);
}

static void check_empty(struct libacp_area *a, bool all)
{
	struct libacp_record r;

	CHECK_EQ(libacp_area_find(a, all, &r), -EAGAIN);
}

static void give_back(struct libacp_area *a, struct libacp_lent *lent, bool all)
{
	libacp_area_clear(a, lent);
	libacp_area_return(a, lent, all);
}

/* ---- Single steps ---- */

TEST(area__keeps_the_order)
{
	struct libacp_area a = new_area(64);
	uint64_t i;

	CHECK(is_all_free(&a));
	check_empty(&a, false);
	for (i = 0; i < 5; i++)
		CHECK_EQ(send(&a, i * 9, i), ACP_ST_OK);
	for (i = 0; i < 5; i++)
		receive(&a, i * 9, i);
	check_empty(&a, true);
	CHECK(is_all_free(&a));
	free(a.box);
}

/* A receiver that keeps up changes "room" once per quarter. */
TEST(area__is_seldom_set_back)
{
	struct libacp_area a = new_area(4096);
	unsigned int resets = 0, i;

	for (i = 0; i < 4096; i++) {
		CHECK_EQ(send(&a, 8, i), ACP_ST_OK);
		receive(&a, 8, i);
		check_empty(&a, false);
		resets += (uint32_t)room_of(&a) == 0;
	}
	CHECK_EQ(resets, 4096 * 4 / 1024);
	free(a.box);
}

TEST(area__a_message_as_large_as_the_mailbox)
{
	static const uint64_t units[] = { 3, 4, 5, 11, 32, 1000 };
	struct libacp_area a;
	uint64_t most;
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		a = new_area(units[i]);
		most = 8 * (units[i] - PLAY_RECORD);
		CHECK_EQ(send(&a, most + 1, 1), ACP_ST_RANGE);
		CHECK_EQ(send(&a, most, 1), ACP_ST_OK);
		CHECK_EQ(send(&a, 0, 2), ACP_ST_AGAIN);
		receive(&a, most, 1);
		/* At once: the mailbox is empty, and there is more than a quarter to be won. */
		CHECK_EQ(send(&a, most, 3), ACP_ST_OK);
		receive(&a, most, 3);
		CHECK_EQ(send(&a, 0, 4), ACP_ST_OK);
		receive(&a, 0, 4);
		/* Now a quarter may not have been used: when nothing is found. */
		check_empty(&a, true);
		CHECK_EQ(send(&a, most, 5), ACP_ST_OK);
		receive(&a, most, 5);
		free(a.box);
	}
}

/* Senders continue at the front while records at the back are not read. */
TEST(area__wraps)
{
	struct libacp_area a = new_area(60);
	uint64_t i;

	for (i = 0; i < 20; i++)
		CHECK_EQ(send(&a, 0, i), ACP_ST_OK);
	CHECK_EQ(send(&a, 0, 99), ACP_ST_AGAIN);
	for (i = 0; i < 4; i++)
		receive(&a, 0, i);
	CHECK_EQ(send(&a, 0, 99), ACP_ST_AGAIN);	/* less than a quarter */
	receive(&a, 0, i++);
	CHECK_EQ(room_of(&a), ACP_MAILBOX_ROOM(0, 15));
	CHECK_EQ(send(&a, 8 * 12, 20), ACP_ST_OK);
	CHECK_EQ(send(&a, 0, 99), ACP_ST_AGAIN);
	for (; i < 7; i++)
		receive(&a, 0, i);
	CHECK_EQ(send(&a, 0, 99), ACP_ST_AGAIN);	/* less than an eighth */
	receive(&a, 0, i++);
	CHECK_EQ(room_of(&a), ACP_MAILBOX_ROOM(15, 24));
	for (; i < 20; i++)
		receive(&a, 0, i);
	CHECK_EQ(room_of(&a), ACP_MAILBOX_ROOM(15, 60));
	receive(&a, 8 * 12, 20);
	CHECK(is_all_free(&a));
	free(a.box);
}

/* Returned in any order, memory is offered when all before it has been. */
TEST(area__lends)
{
	struct libacp_area a = new_area(60);
	struct libacp_lent lent[20];
	struct libacp_record r;
	int i;

	for (i = 0; i < 20; i++)
		CHECK_EQ(send(&a, 0, (uint64_t)i), ACP_ST_OK);
	for (i = 0; i < 20; i++) {
		CHECK_EQ(libacp_area_find(&a, true, &r), 0);
		libacp_area_lend(&a, &r, &lent[i]);
	}
	check_empty(&a, true);
	CHECK_EQ(room_of(&a), ACP_MAILBOX_ROOM(60, 60));
	CHECK(libacp_area_word(&a) == &a.box->room);
	for (i = 19; i > 0; i--)
		give_back(&a, &lent[i], false);
	CHECK_EQ(send(&a, 0, 99), ACP_ST_AGAIN);
	give_back(&a, &lent[0], false);
	CHECK(is_all_free(&a));
	free(a.box);
}

/* The reader is where senders must not write, next to a lent record: it waits for room. */
TEST(area__waits_behind_a_lent_record)
{
	struct libacp_area a = new_area(60);
	struct libacp_lent lent;
	struct libacp_record r;
	uint64_t i;

	for (i = 0; i < 20; i++)
		CHECK_EQ(send(&a, 0, i), ACP_ST_OK);
	for (i = 0; i < 10; i++)
		receive(&a, 0, i);
	CHECK_EQ(libacp_area_find(&a, false, &r), 0);
	libacp_area_lend(&a, &r, &lent);
	for (i = 11; i < 20; i++)
		receive(&a, 0, i);
	check_empty(&a, true);
	CHECK_EQ(room_of(&a), ACP_MAILBOX_ROOM(0, 30));
	CHECK_EQ(send(&a, 8 * 27, 20), ACP_ST_OK);
	receive(&a, 8 * 27, 20);
	check_empty(&a, true);
	CHECK(libacp_area_word(&a) == &a.box->room);
	give_back(&a, &lent, true);
	check_empty(&a, true);
	CHECK(is_all_free(&a));
	free(a.box);
}

TEST(area__takes_back_what_is_lent_only)
{
	struct libacp_area a = new_area(60);
	struct libacp_lent lent, own;
	struct libacp_record r;

	CHECK_EQ(send(&a, 8, 1), ACP_ST_OK);
	CHECK_EQ(send(&a, 8, 2), ACP_ST_OK);
	CHECK_EQ(libacp_area_find(&a, false, &r), 0);
	CHECK(!libacp_area_reclaim(&a, r.data));
	libacp_area_lend(&a, &r, &lent);
	CHECK_EQ(libacp_area_find(&a, false, &r), 0);
	libacp_area_lend(&a, &r, &own);
	own.taken = true;
	CHECK(!libacp_area_reclaim(&a, NULL) && !libacp_area_reclaim(&a, a.box));
	CHECK(!libacp_area_reclaim(&a, own.data));
	CHECK(libacp_area_reclaim(&a, lent.data) == &lent);
	CHECK(!libacp_area_reclaim(&a, lent.data));
	free(a.box);
}

/* ---- Against a model ---- */

#define FLYING	12		/* messages that arrive, or are lent, at a time */

/* A message that was sent; in their order. */
struct sent {
	struct acp_record *record;
	uint64_t size, tag;
	unsigned int state;	/* 0, or an ACP_RECORD_ */
};

struct model {
	struct libacp_area area;
	uint64_t seed, tags;
	struct sent sent[8192];
	unsigned int first, last;	/* not received yet: [first, last) */
	struct libacp_lent *lent[FLYING];
	struct sent lent_as[FLYING];
	unsigned int lents;
	unsigned int wraps, raises, resets, fulls;
};

static void model_send(struct model *m)
{
	struct sent *s = &m->sent[m->last % 8192];
	struct acp_record *r;

	s->size = draw_size(&m->seed, m->area.units);
	if (m->last - m->first == 8192 || play_reserve(m->area.box, s->size, &r)) {
		m->fulls++;
		return;
	}
	CHECK(play_is_zero(r, s->size));
	s->record = r;
	s->tag = m->tags++;
	s->state = 0;
	m->last++;
}

/* Some message that is on its way proceeds. */
static void model_proceed(struct model *m)
{
	struct sent *s;

	if (m->first == m->last)
		return;
	s = &m->sent[(m->first + draw(&m->seed) % (m->last - m->first)) % 8192];
	if (s->state > ACP_RECORD_ARRIVING)
		return;
	if (!s->state) {
		play_describe(s->record, s->tag % RANKS, s->tag);
		s->state = ACP_RECORD_ARRIVING;
		if (draw(&m->seed) % 2) {
			play_state(s->record, s->size, s->state);
			return;
		}
	}
	fill_message((uint8_t *)(s->record + 1), s->size, s->tag);
	s->state = draw(&m->seed) % 8 ? ACP_RECORD_READY : ACP_RECORD_VOID;
	play_state(s->record, s->size, s->state);
}

static void model_return(struct model *m)
{
	const unsigned int i = m->lents ? (unsigned int)(draw(&m->seed) % m->lents) : 0;
	struct sent *s = &m->lent_as[i];

	if (!m->lents)
		return;
	CHECK(is_message(m->lent[i]->data, s->size, s->tag));
	give_back(&m->area, m->lent[i], draw(&m->seed) % 2);
	free(m->lent[i]);
	m->lents--;
	m->lent[i] = m->lent[m->lents];
	*s = m->lent_as[m->lents];
}

/* The first message that is not void, if all before it have come. */
static struct sent *model_next(struct model *m)
{
	struct sent *s;

	for (; m->first != m->last; m->first++) {
		s = &m->sent[m->first % 8192];
		if (s->state != ACP_RECORD_VOID)
			return s->state == ACP_RECORD_READY ? s : NULL;
	}
	return NULL;
}

static void model_receive(struct model *m)
{
	const struct sent *s = model_next(m);
	struct libacp_record r;
	struct libacp_lent *lent;

	if (!s) {
		check_empty(&m->area, draw(&m->seed) % 2);
		return;
	}
	CHECK_EQ(libacp_area_find(&m->area, draw(&m->seed) % 2, &r), 0);
	check_record(&r, s->size, s->tag);
	m->first++;
	if (m->lents == FLYING || draw(&m->seed) % 4) {
		libacp_area_consume(&m->area, &r);
		return;
	}
	lent = malloc(sizeof(*lent));
	CHECK(lent);
	libacp_area_lend(&m->area, &r, lent);
	m->lent[m->lents] = lent;
	m->lent_as[m->lents++] = *s;
}

/* What is offered is zero; count how it changes. */
static void model_check(struct model *m, uint64_t former)
{
	const uint64_t room = room_of(&m->area), next = (uint32_t)room, limit = room >> 32;
	uint64_t i;

	CHECK(next <= limit && limit <= m->area.units && !m->area.broken);
	for (i = next; i < limit; i++)
		CHECK(!*play_unit(m->area.box, i));
	if (next < (uint32_t)former && limit == m->area.units)
		m->resets++;
	else if (next < (uint32_t)former)
		m->wraps++;
	else if (limit > former >> 32)
		m->raises++;
}

/* When everything has been received, all of the memory can be used again. */
static void model_end(struct model *m)
{
	while (m->first != m->last || m->lents) {
		model_proceed(m);
		model_return(m);
		model_receive(m);
	}
	check_empty(&m->area, true);
	CHECK(is_all_free(&m->area));
}

static void model_run(struct model *m, uint64_t units, unsigned int steps)
{
	uint64_t former;
	unsigned int i;

	m->area = new_area(units);
	for (i = 0; i < steps; i++) {
		former = room_of(&m->area);
		switch (draw(&m->seed) % 8) {
		case 0:
		case 1:
			model_send(m);
			break;
		case 2:
		case 3:
		case 4:
			model_proceed(m);
			break;
		case 5:
			model_return(m);
			break;
		default:
			model_receive(m);
		}
		model_check(m, former);
		if (draw(&m->seed) % 4096 == 0)
			model_end(m);
	}
	model_end(m);
	free(m->area.box);
}

TEST(area__as_a_queue)
{
	static const uint64_t units[] = { 3, 7, 20, 64, 201, 1000 };
	static struct model m;
	size_t i;

	m.seed = start_seed();
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		model_run(&m, units[i], 60000);
	CHECK(m.wraps > 100 && m.raises > 100 && m.resets > 100 && m.fulls > 100);
}

/* ---- Threads ---- */

#define SENDERS		4
#define RECEIVERS_MAX	2
#define MESSAGES	8000
#define UNITS		160

static struct world {
	struct libacp_area area;
	pthread_mutex_t lock;		/* guards the following, and the area */
	uint64_t seed;
	unsigned int wanted, received;
	uint64_t next[SENDERS];		/* number of the next message of each sender */
} world = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Of each message: known to both sides. */
static uint64_t fate(uint64_t tag)
{
	uint64_t seed = world.seed ^ tag * 977;

	return draw(&seed);
}

static bool fails(uint64_t tag)
{
	return fate(tag) % 16 == 0;
}

static void dawdle(uint64_t *seed)
{
	uint64_t n = draw(seed) % 16;

	while (n-- > 12)
		sched_yield();
}

static uint64_t tag_of(uint64_t sender, uint64_t number)
{
	return number * SENDERS + sender;
}

static void *send_all(void *arg)
{
	const uint64_t me = (uintptr_t)arg;
	uint64_t seed = world.seed + me, i, size, tag;
	struct acp_record *r;

	for (i = 0; i < MESSAGES; i++) {
		tag = tag_of(me, i);
		size = draw_size(&seed, UNITS);
		while (play_reserve(world.area.box, size, &r))
			sched_yield();
		CHECK(play_is_zero(r, size));
		dawdle(&seed);
		play_describe(r, tag % RANKS, tag);
		if (fails(tag) || draw(&seed) % 2) {
			play_state(r, size, ACP_RECORD_ARRIVING);
			dawdle(&seed);
		}
		fill_message((uint8_t *)(r + 1), size, tag);
		play_state(r, size, fails(tag) ? ACP_RECORD_VOID : ACP_RECORD_READY);
	}
	return NULL;
}

/* Messages of each sender come in their order, and none is missing; lock held. */
static void expect(uint64_t tag)
{
	uint64_t *next = &world.next[tag % SENDERS];

	while (fails(tag_of(tag % SENDERS, *next)))
		++*next;
	CHECK_EQ(tag / SENDERS, *next);
	++*next;
	world.received++;
}

struct held {
	struct libacp_lent lent;
	uint64_t size, tag;
	struct held *next;
};

/* Return some record, not always the oldest. */
static void return_one(struct held **list, uint64_t *seed)
{
	struct held *h;

	while ((*list)->next && draw(seed) % 2)
		list = &(*list)->next;
	h = *list;
	*list = h->next;
	CHECK(is_message(h->lent.data, h->size, h->tag));
	libacp_area_clear(&world.area, &h->lent);
	pthread_mutex_lock(&world.lock);
	libacp_area_return(&world.area, &h->lent, draw(seed) % 2);
	pthread_mutex_unlock(&world.lock);
	free(h);
}

/* Returns the record if it is lent; lock held. */
static struct held *take(const struct libacp_record *r, uint64_t *seed)
{
	struct held *h = NULL;

	expect(r->tag);
	CHECK_EQ(r->rank, r->tag % RANKS);
	if (draw(seed) % 2) {
		CHECK(is_message(r->data, r->size, r->tag));
		libacp_area_consume(&world.area, r);
		return NULL;
	}
	h = malloc(sizeof(*h));
	CHECK(h);
	h->size = r->size;
	h->tag = r->tag;
	libacp_area_lend(&world.area, r, &h->lent);
	return h;
}

static void *receive_all(void *arg)
{
	uint64_t seed = world.seed ^ (uintptr_t)arg << 32;
	struct held *list = NULL, *h;
	struct libacp_record r;
	bool more = true;
	int found;

	while (more) {
		h = NULL;
		pthread_mutex_lock(&world.lock);
		found = libacp_area_find(&world.area, draw(&seed) % 2, &r);
		CHECK(!found || found == -EAGAIN);
		if (!found)
			h = take(&r, &seed);
		more = world.received < world.wanted;
		pthread_mutex_unlock(&world.lock);
		if (h) {
			h->next = list;
			list = h;
		}
		if (list && (found || draw(&seed) % 2))
			return_one(&list, &seed);
		else if (found)
			sched_yield();
	}
	while (list)
		return_one(&list, &seed);
	return NULL;
}

static void run_threads(unsigned int receivers)
{
	pthread_t senders[SENDERS], others[RECEIVERS_MAX];
	unsigned int i, k;

	world.seed = start_seed();
	world.area = new_area(UNITS);
	for (i = 0; i < SENDERS; i++)
		for (k = 0; k < MESSAGES; k++)
			world.wanted += !fails(tag_of(i, k));
	for (i = 0; i < SENDERS; i++)
		CHECK(!pthread_create(&senders[i], NULL, send_all, (void *)(uintptr_t)i));
	for (i = 0; i < receivers; i++)
		CHECK(!pthread_create(&others[i], NULL, receive_all, (void *)(uintptr_t)(i + 1)));
	for (i = 0; i < SENDERS; i++)
		CHECK(!pthread_join(senders[i], NULL));
	for (i = 0; i < receivers; i++)
		CHECK(!pthread_join(others[i], NULL));
	check_empty(&world.area, true);
	CHECK(is_all_free(&world.area));
	CHECK_EQ(world.received, world.wanted);
	free(world.area.box);
}

TEST(area__A4_each_message_once_and_in_order)
{
	run_threads(1);
}

TEST(area__A4_each_message_once_with_two_receivers)
{
	run_threads(2);
}

/* ---- Faults ---- */

static void check_broken(struct libacp_area *a)
{
	struct libacp_record r;

	CHECK_EQ(libacp_area_find(a, false, &r), -EBADMSG);
	CHECK_EQ(libacp_area_find(a, true, &r), -EBADMSG);
	CHECK(libacp_area_close(a, NULL));
	CHECK_EQ(libacp_area_find(a, false, &r), -EBADMSG);
	CHECK(!libacp_area_drained(a));
	free(a->box);
}

/* Two messages are there, one of them lent; then their memory, or that behind it, is damaged. */
static struct libacp_area area_to_damage(struct libacp_lent *lent)
{
	struct libacp_area a = new_area(60);
	struct libacp_record r;

	CHECK_EQ(send(&a, 16, 1), ACP_ST_OK);
	CHECK_EQ(send(&a, 16, 2), ACP_ST_OK);
	CHECK_EQ(libacp_area_find(&a, false, &r), 0);
	libacp_area_lend(&a, &r, lent);
	return a;
}

TEST(area__A4_state_that_cannot_be)
{
	static const uint64_t states[] = {
		17 << 2 | ACP_RECORD_READY,		/* ends behind the last record */
		17 << 2 | ACP_RECORD_ARRIVING, 17 << 2 | ACP_RECORD_VOID, UINT64_MAX, 1ull << 63,
		1ull << 40 | ACP_RECORD_READY, 16 << 2,
	};
	struct libacp_lent lent;
	struct libacp_area a;
	size_t i;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		a = area_to_damage(&lent);
		*play_unit(a.box, 5) = states[i];
		check_broken(&a);
	}
}

TEST(area__A4_rank_that_cannot_be)
{
	struct libacp_lent lent;
	struct libacp_area a = area_to_damage(&lent);

	((struct acp_record *)(void *)play_unit(a.box, 5))->rank = RANKS;
	check_broken(&a);
}

/* A state where no record is yet. */
TEST(area__A4_record_that_nobody_has_reserved)
{
	struct libacp_lent lent;
	struct libacp_area a = area_to_damage(&lent);
	struct libacp_record r;

	CHECK_EQ(libacp_area_find(&a, false, &r), 0);
	libacp_area_consume(&a, &r);
	*play_unit(a.box, 10) = ACP_RECORD_READY;
	check_broken(&a);
}

TEST(area__A4_room_that_cannot_be)
{
	static const uint64_t rooms[] = {
		ACP_MAILBOX_ROOM(61, 60), ACP_MAILBOX_ROOM(4, 60), ACP_MAILBOX_ROOM(10, 59),
		ACP_MAILBOX_ROOM(10, 61), ACP_MAILBOX_ROOM(10, UINT32_MAX), 0, UINT64_MAX,
	};
	struct libacp_lent lent;
	struct libacp_record r;
	struct libacp_area a;
	size_t i;

	for (i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		a = area_to_damage(&lent);
		CHECK_EQ(libacp_area_find(&a, false, &r), 0);
		libacp_area_consume(&a, &r);
		a.box->room = rooms[i];
		CHECK_EQ(libacp_area_find(&a, true, &r), -EBADMSG);
		give_back(&a, &lent, true);
		check_broken(&a);
	}
}

/* A write to the number of units makes the kernel refuse messages that fit. */
TEST(area__A4_units_that_cannot_be)
{
	struct libacp_lent lent;
	struct libacp_record r;
	struct libacp_area a = area_to_damage(&lent);

	CHECK_EQ(libacp_area_find(&a, false, &r), 0);
	libacp_area_consume(&a, &r);
	a.box->units = 1;
	CHECK_EQ(libacp_area_find(&a, true, &r), -EBADMSG);
	give_back(&a, &lent, true);
	check_broken(&a);
}

/* Records that are lent are known from elsewhere: what is written to them has no effect. */
TEST(area__A4_lent_records_are_overwritten)
{
	struct libacp_lent lent;
	struct libacp_area a = area_to_damage(&lent);

	memset(play_unit(a.box, 0), 0xa5, 8 * 5);
	give_back(&a, &lent, false);
	receive(&a, 16, 2);
	check_empty(&a, true);
	CHECK(is_all_free(&a));
	free(a.box);
}

static void damage(struct libacp_area *a, uint64_t *seed)
{
	uint64_t *word = draw(seed) % 4 ? play_unit(a->box, draw(seed) % a->units) :
					  (uint64_t *)(void *)a->box;

	switch (draw(seed) % 4) {
	case 0:
		*word = draw(seed);
		break;
	case 1:
		*word ^= 1ull << draw(seed) % 64;
		break;
	case 2:
		*word = draw(seed) % (8 * a->units) << 2 | draw(seed) % 4;
		break;
	default:
		*word = ACP_MAILBOX_ROOM(draw(seed) % (a->units + 2), draw(seed) % (a->units + 2));
	}
}

/* Let it find something, which may be anything. Returns false if the area is broken. */
static bool use_damaged(struct libacp_area *a, uint64_t *seed, struct libacp_lent *lent)
{
	struct libacp_record r;
	int found = libacp_area_find(a, draw(seed) % 2, &r);

	CHECK(!found || found == -EAGAIN || found == -EBADMSG);
	if (found)
		return found == -EAGAIN;
	CHECK(r.rank < RANKS && r.length <= a->units && r.at <= a->units - r.length);
	CHECK(r.length == play_length(r.size));
	if (!lent->length && draw(seed) % 2)
		libacp_area_lend(a, &r, lent);
	else
		libacp_area_consume(a, &r);
	return true;
}

/*
 * No word that others write leads out of the memory, which sanitizers see, or into an endless loop.
 */
TEST(area__A4_anything_is_overwritten)
{
	uint64_t seed = start_seed();
	struct libacp_lent lent;
	struct libacp_area a;
	struct acp_record *r;
	unsigned int i, k;

	for (i = 0; i < 5000; i++) {
		a = new_area(3 + draw(&seed) % 40);
		memset(&lent, 0, sizeof(lent));
		for (k = 0; k < 100; k++) {
			const uint64_t size = draw_size(&seed, a.units);
			/* The kernel checks the bounds of the region. */
			const bool fits = (uint32_t)a.box->room + play_length(size) <= a.units;

			if (fits && a.box->room >> 32 <= a.units && !play_reserve(a.box, size, &r))
				play_write(r, k % RANKS, k, "", 0);
			if (draw(&seed) % 8 == 0)
				damage(&a, &seed);
			if (!use_damaged(&a, &seed, &lent))
				break;
			if (lent.length && draw(&seed) % 4 == 0) {
				give_back(&a, &lent, draw(&seed) % 2);
				lent.length = 0;
			}
		}
		CHECK(libacp_area_close(&a, NULL));
		for (k = 0; k < 2 * a.units && use_damaged(&a, &seed, &lent); k++)
			;
		free(a.box);
	}
}

/* ---- The end ---- */

TEST(area__A4_closes_behind_what_arrives)
{
	struct libacp_area a = new_area(60);
	struct acp_record *coming, *failing;
	struct libacp_record r;

	CHECK_EQ(send(&a, 8, 1), ACP_ST_OK);
	CHECK_EQ(play_reserve(a.box, 16, &coming), ACP_ST_OK);
	CHECK_EQ(play_reserve(a.box, 16, &failing), ACP_ST_OK);
	CHECK(libacp_area_close(&a, NULL));
	CHECK_EQ(send(&a, 0, 9), ACP_ST_AGAIN);
	CHECK(!libacp_area_drained(&a));
	receive(&a, 8, 1);
	check_empty(&a, true);
	play_describe(coming, 2, 2);
	play_state(coming, 16, ACP_RECORD_ARRIVING);
	check_empty(&a, true);
	CHECK(!libacp_area_drained(&a));
	fill_message((uint8_t *)(coming + 1), 16, 2);
	play_state(coming, 16, ACP_RECORD_READY);
	CHECK_EQ(libacp_area_find(&a, true, &r), 0);
	check_record(&r, 16, 2);
	libacp_area_consume(&a, &r);
	CHECK(!libacp_area_drained(&a));
	play_describe(failing, 3, 3);
	play_state(failing, 16, ACP_RECORD_VOID);
	check_empty(&a, true);
	CHECK(libacp_area_drained(&a));
	CHECK_EQ(room_of(&a), 0);
	free(a.box);
}

TEST_MAIN
