// SPDX-License-Identifier: MIT
/*
 * The ring of a mailbox for ranks of the owner's node (lib/mailbox/node_ring.h), beside senders
 * that do what the kernel does: against a model, with threads, and with processes that are killed
 * while they write.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mailbox/area.h"
#include "mailbox_play.h"
#include "test.h"

#define RANKS	128
#define UNITS	160		/* of the records */
#define BITS_MAX	14
#define LONGEST	(8 * ((1u << bits) / 2 - LIBACP_RING_RECORD))	/* bytes, in the ring */

static unsigned int bits = LIBACP_RING_BITS_MIN;

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

static size_t ring_offset(void)
{
	return (sizeof(struct acp_mailbox) + 8 * UNITS + 63) / 64 * 64;
}

static struct libacp_area area_in(void *memory)
{
	struct libacp_area a;

	memset(memory, 0xa5, ring_offset() + libacp_node_ring_bytes(bits));
	libacp_area_open(&a, memory, UNITS, RANKS);
	libacp_area_add_ring(&a, ring_offset(), bits);
	return a;
}

static struct libacp_area new_area(void)
{
	void *memory = NULL;

	CHECK(!posix_memalign(&memory, 64, ring_offset() + libacp_node_ring_bytes(bits)));
	return area_in(memory);
}

/* The bytes of a message depend on its tag. */
static const uint8_t *bytes_of(uint64_t tag)
{
	static uint8_t all[(8u << BITS_MAX) + 251];
	size_t i;

	for (i = 0; i < sizeof(all) && !all[1]; i++)
		all[sizeof(all) - i - 1] = (uint8_t)(i * 7 + (i >> 8) * 3);
	return all + tag % 251;
}

static bool is_message(const void *data, uint64_t size, uint64_t tag)
{
	return !memcmp(data, bytes_of(tag), size);
}

/* Known to the sender and to the receiver. */
static uint64_t size_of(uint64_t tag)
{
	uint64_t seed = tag * 977;

	return draw(&seed) % 4 ? draw(&seed) % 64 : draw(&seed) % (LONGEST + 1);
}

static bool nobody_is_gone(uint32_t rank)
{
	(void)rank;
	return false;
}

/* As the sender finds the ring. */
static bool write_message(struct acp_mailbox *box, uint32_t rank, uint64_t tag, uint64_t size,
			  bool (*gone)(uint32_t rank))
{
	const struct libacp_ring_message message = {
		.data = bytes_of(tag), .size = size, .tag = tag, .rank = rank,
	};
	unsigned int found;
	uint64_t offset;

	CHECK(libacp_node_ring_of(box, &offset, &found));
	CHECK(offset == ring_offset() && found == bits);
	return libacp_node_ring_write(box, (void *)((char *)box + offset), bits, &message, gone);
}

static void check_record(const struct libacp_record *r, uint32_t rank, uint64_t tag, uint64_t size)
{
	CHECK_EQ(r->tag, tag);
	CHECK_EQ(r->size, size);
	CHECK_EQ(r->rank, rank);
	CHECK(is_message(r->data, size, tag));
}

static void receive(struct libacp_area *a, uint32_t rank, uint64_t tag, uint64_t size)
{
	struct libacp_record r;

	CHECK_EQ(libacp_area_find(a, true, &r), 0);
	check_record(&r, rank, tag, size);
	libacp_area_consume(a, &r);
}

static void check_empty(struct libacp_area *a)
{
	struct libacp_record r;

	CHECK_EQ(libacp_area_find(a, true, &r), -EAGAIN);
}

static struct acp_record *reserve(struct libacp_area *a, uint64_t size)
{
	struct acp_record *r;

	CHECK_EQ(play_reserve(a->box, size, &r), ACP_ST_OK);
	return r;
}

static void complete(struct acp_record *r, uint32_t rank, uint64_t tag, uint64_t size)
{
	memcpy(r + 1, bytes_of(tag), size);
	play_describe(r, rank, tag);
	play_state(r, size, ACP_RECORD_READY);
}

/* ---- Single steps ---- */

TEST(ring__keeps_the_order_and_every_size)
{
	struct libacp_area a = new_area();
	uint64_t size;

	check_empty(&a);
	for (size = 0; size <= LONGEST; size++) {
		CHECK(write_message(a.box, 3, size, size, nobody_is_gone));
		if (size % 3 == 0)
			CHECK(write_message(a.box, 4, size, 0, nobody_is_gone) ||
			      size > LONGEST / 2);
		receive(&a, 3, size, size);
		if (a.ring.read != a.ring.ring->tail)
			receive(&a, 4, size, 0);
		check_empty(&a);
	}
	CHECK(!write_message(a.box, 3, 0, LONGEST + 1, nobody_is_gone));
	CHECK(!write_message(a.box, 3, 0, UINT64_MAX, nobody_is_gone));
	free(a.box);
}

TEST(ring__is_full_until_something_is_consumed)
{
	struct libacp_area a = new_area();
	struct libacp_lent *first, lent[2];
	struct libacp_record r;
	uint64_t n = 0, i;

	while (write_message(a.box, 1, n, 8, nobody_is_gone))
		n++;
	CHECK_EQ(n, (1u << bits) / (LIBACP_RING_RECORD + 1));
	for (i = 0; i < 2; i++) {
		CHECK_EQ(libacp_area_find(&a, false, &r), 0);
		libacp_area_lend(&a, &r, &lent[i]);
	}
	CHECK(libacp_area_is_lent(&a));
	receive(&a, 1, 2, 8);
	CHECK(!write_message(a.box, 1, n, 8, nobody_is_gone));
	/* Memory is used again in the order of the messages. */
	CHECK(libacp_area_reclaim(&a, lent[1].data) == &lent[1]);
	libacp_area_return(&a, &lent[1], false);
	CHECK(!write_message(a.box, 1, n, 8, nobody_is_gone));
	first = libacp_area_reclaim(&a, lent[0].data);
	CHECK(first == &lent[0] && is_message(first->data, 8, 0));
	CHECK(!libacp_area_reclaim(&a, lent[0].data));
	libacp_area_return(&a, first, false);
	CHECK(!libacp_area_is_lent(&a));
	CHECK(write_message(a.box, 1, n, 8, nobody_is_gone));
	for (i = 3; i <= n; i++)
		receive(&a, 1, i, 8);
	check_empty(&a);
	free(a.box);
}

/* Before those that kernels reserve later, behind those that they have reserved before. */
TEST(ring__messages_are_received_when_it_is_their_turn)
{
	struct libacp_area a = new_area();
	struct acp_record *early = reserve(&a, 8), *late;

	CHECK(write_message(a.box, 2, 2, 8, nobody_is_gone));
	check_empty(&a);
	late = reserve(&a, 8);
	CHECK(write_message(a.box, 2, 4, 8, nobody_is_gone));
	complete(late, 1, 3, 8);
	check_empty(&a);
	complete(early, 1, 1, 8);
	receive(&a, 1, 1, 8);
	receive(&a, 2, 2, 8);
	receive(&a, 1, 3, 8);
	receive(&a, 2, 4, 8);
	check_empty(&a);
	free(a.box);
}

/* The position of a former lap is not taken for one of this lap. */
TEST(ring__a_message_of_a_former_lap_waits_for_nothing)
{
	struct libacp_area a = new_area();
	uint64_t i;

	for (i = 0; i < 5; i++) {
		complete(reserve(&a, 8 * 20), 1, 1, 8 * 20);
		CHECK(write_message(a.box, 2, 2, 8, nobody_is_gone));
		receive(&a, 1, 1, 8 * 20);
		/* A reset: the records begin at 0 again. */
		complete(reserve(&a, 0), 1, 3, 0);
		receive(&a, 2, 2, 8);
		receive(&a, 1, 3, 0);
		check_empty(&a);
	}
	CHECK(*libacp_lap_word(a.box) >= 2 * 4);
	free(a.box);
}

TEST(ring__A4_is_not_used_while_laps_change)
{
	struct libacp_area a = new_area();

	++*libacp_lap_word(a.box);
	CHECK(!write_message(a.box, 2, 2, 8, nobody_is_gone));
	check_empty(&a);
	--*libacp_lap_word(a.box);
	CHECK(write_message(a.box, 2, 2, 8, nobody_is_gone));
	receive(&a, 2, 2, 8);
	free(a.box);
}

/* ---- Writers that are gone ---- */

static uint32_t gone_rank;

static bool is_gone(uint32_t rank)
{
	return rank == gone_rank;
}

TEST(ring__A4_the_lock_of_a_rank_that_lives_is_left_alone)
{
	struct libacp_area a = new_area();

	gone_rank = 5;
	a.ring.ring->lock = 4 + 1;
	CHECK(!write_message(a.box, 2, 2, 8, is_gone));
	gone_rank = 4;
	memset(a.ring.ring + 1, 0xff, 100);	/* what it had begun */
	CHECK(write_message(a.box, 2, 2, 8, is_gone));
	CHECK_EQ(a.ring.ring->lock, 0);
	receive(&a, 2, 2, 8);
	check_empty(&a);
	free(a.box);
}

TEST(ring__A4_closes_when_the_lock_is_free)
{
	struct libacp_area a = new_area();

	CHECK(write_message(a.box, 2, 2, 8, is_gone));
	a.ring.ring->lock = 4 + 1;
	gone_rank = 5;
	CHECK(!libacp_area_close(&a, is_gone));
	CHECK(!libacp_area_drained(&a));
	receive(&a, 2, 2, 8);
	CHECK(!libacp_area_drained(&a));
	gone_rank = 4;
	CHECK(libacp_area_close(&a, is_gone));
	CHECK(libacp_area_drained(&a));
	CHECK(!write_message(a.box, 2, 2, 8, is_gone));
	CHECK(libacp_area_close(&a, is_gone));
	free(a.box);
}

/* ---- Against a model ---- */

#define FLYING	12

/* In the order in which records are reserved, or messages of the ring are written. */
struct sent {
	struct acp_record *record;	/* NULL: in the ring */
	uint64_t size, tag;
	bool ready;
};

struct model {
	struct libacp_area area;
	uint64_t seed, tags;
	struct sent sent[4096];
	uint64_t first, last;
	struct libacp_lent *lent[FLYING];
	uint64_t lent_tag[FLYING], lent_size[FLYING];
	unsigned int lents, by_ring, by_kernel, lent_again;
};

static void model_send(struct model *m)
{
	struct sent *s = &m->sent[m->last % 4096];

	if (m->last - m->first == 4096)
		return;
	*s = (struct sent){ .tag = m->tags++ };
	s->size = size_of(s->tag);
	if (draw(&m->seed) % 2) {
		s->ready = true;
		if (!write_message(m->area.box, s->tag % RANKS, s->tag, s->size, nobody_is_gone))
			return;
		m->by_ring++;
	} else {
		if (play_reserve(m->area.box, s->size, &s->record))
			return;
		CHECK(play_is_zero(s->record, s->size));
		m->by_kernel++;
	}
	m->last++;
}

static void model_proceed(struct model *m)
{
	struct sent *s;

	if (m->first == m->last)
		return;
	s = &m->sent[(m->first + draw(&m->seed) % (m->last - m->first)) % 4096];
	if (s->ready)
		return;
	complete(s->record, s->tag % RANKS, s->tag, s->size);
	s->ready = true;
}

static void model_return(struct model *m)
{
	const unsigned int i = m->lents ? (unsigned int)(draw(&m->seed) % m->lents) : 0;

	if (!m->lents)
		return;
	CHECK(is_message(m->lent[i]->data, m->lent_size[i], m->lent_tag[i]));
	libacp_area_clear(&m->area, m->lent[i]);
	libacp_area_return(&m->area, m->lent[i], draw(&m->seed) % 2);
	free(m->lent[i]);
	m->lents--;
	m->lent[i] = m->lent[m->lents];
	m->lent_tag[i] = m->lent_tag[m->lents];
	m->lent_size[i] = m->lent_size[m->lents];
}

static void model_lend(struct model *m, const struct libacp_record *r)
{
	struct libacp_lent *lent = malloc(sizeof(*lent));

	CHECK(lent);
	m->lent_again += r->ring;
	libacp_area_lend(&m->area, r, lent);
	m->lent[m->lents] = lent;
	m->lent_tag[m->lents] = r->tag;
	m->lent_size[m->lents++] = r->size;
}

static void model_receive(struct model *m)
{
	const struct sent *s = &m->sent[m->first % 4096];
	struct libacp_record r;

	if (m->first == m->last || !s->ready) {
		check_empty(&m->area);
		return;
	}
	CHECK_EQ(libacp_area_find(&m->area, draw(&m->seed) % 2, &r), 0);
	check_record(&r, s->tag % RANKS, s->tag, s->size);
	CHECK_EQ(r.ring, !s->record);
	m->first++;
	if (m->lents == FLYING || draw(&m->seed) % 4)
		libacp_area_consume(&m->area, &r);
	else
		model_lend(m, &r);
}

TEST(ring__one_queue_with_the_records_of_kernels)
{
	static struct model m;
	unsigned int i;

	m.seed = start_seed();
	m.area = new_area();
	for (i = 0; i < 300000; i++) {
		switch (draw(&m.seed) % 8) {
		case 0:
		case 1:
			model_send(&m);
			break;
		case 2:
		case 3:
		case 4:
			model_proceed(&m);
			break;
		case 5:
			model_return(&m);
			break;
		default:
			model_receive(&m);
		}
		CHECK(!m.area.broken);
	}
	while (m.first != m.last || m.lents) {
		model_proceed(&m);
		model_return(&m);
		model_receive(&m);
	}
	check_empty(&m.area);
	CHECK(m.by_ring > 1000 && m.by_kernel > 1000 && m.lent_again > 100);
	free(m.area.box);
}

/* ---- Threads ---- */

#define SENDERS		4
#define MESSAGES	10000

static struct libacp_area world;
static uint64_t by_ring;

/* Each message in one of the two ways: the one before is complete then. */
static void *send_all(void *arg)
{
	const uint32_t me = (uint32_t)(uintptr_t)arg;
	uint64_t seed = me, i, size;
	struct acp_record *r;

	for (i = 0; i < MESSAGES; i++) {
		size = size_of(i);
		for (;;) {
			if (draw(&seed) % 2) {
				if (write_message(world.box, me, i, size, nobody_is_gone)) {
					__atomic_add_fetch(&by_ring, 1, __ATOMIC_RELAXED);
					break;
				}
			} else if (!play_reserve(world.box, size, &r)) {
				CHECK(play_is_zero(r, size));
				complete(r, me, i, size);
				break;
			}
			sched_yield();
		}
	}
	return NULL;
}

TEST(ring__A4_each_message_once_and_in_order)
{
	uint64_t next[SENDERS] = { 0 }, received = 0, seed = start_seed();
	pthread_t senders[SENDERS];
	struct libacp_record r;
	uintptr_t i;
	int found;

	world = new_area();
	bytes_of(0);
	for (i = 0; i < SENDERS; i++)
		CHECK(!pthread_create(&senders[i], NULL, send_all, (void *)i));
	while (received < SENDERS * MESSAGES) {
		found = libacp_area_find(&world, draw(&seed) % 2, &r);
		CHECK(!found || found == -EAGAIN);
		if (found) {
			sched_yield();
			continue;
		}
		check_record(&r, r.rank, next[r.rank], size_of(next[r.rank]));
		next[r.rank]++;
		received++;
		libacp_area_consume(&world, &r);
	}
	for (i = 0; i < SENDERS; i++)
		CHECK(!pthread_join(senders[i], NULL));
	check_empty(&world);
	CHECK(by_ring > 100 && by_ring < SENDERS * MESSAGES - 100);
	free(world.box);
}

#ifndef __SANITIZE_THREAD__

/* ---- Processes that are killed ---- */

#define WRITERS	4		/* at a time */
#define DEATHS	(RANKS - WRITERS)

/* What all processes share. */
static struct deaths {
	uint64_t written[RANKS];	/* messages that each has completed */
	int dead[RANKS];		/* it was killed, and waited for */
} *deaths;

/* Memory that child processes share. */
static void *shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

static bool is_dead(uint32_t rank)
{
	return __atomic_load_n(&deaths->dead[rank], __ATOMIC_ACQUIRE);
}

static void write_for_ever(uint32_t me)
{
	uint64_t i = 0;

	for (;;) {
		if (write_message(world.box, me, i, size_of(i), is_dead))
			__atomic_store_n(&deaths->written[me], ++i, __ATOMIC_RELEASE);
		else
			sched_yield();
	}
}

static pid_t start_writer(uint32_t rank)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		write_for_ever(rank);
	return pid;
}

static bool has_lock(uint32_t rank)
{
	return __atomic_load_n(&world.ring.ring->lock, __ATOMIC_ACQUIRE) == (uint64_t)rank + 1;
}

/* Stop it at whatever instruction, most often again and again until it has the lock. */
static void stop_writer(pid_t pid, uint32_t rank)
{
	int status, tries = 0;

	do {
		CHECK(!kill(pid, SIGCONT) && !kill(pid, SIGSTOP));
		CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	} while (rank % 4 && !has_lock(rank) && ++tries < 500);
}

/* True if it had the lock. */
static bool kill_writer(pid_t pid, uint32_t rank)
{
	bool had_lock;
	int status;

	stop_writer(pid, rank);
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status));
	had_lock = has_lock(rank);
	__atomic_store_n(&deaths->dead[rank], 1, __ATOMIC_RELEASE);
	return had_lock;
}

/* Take all that is there. Returns the number of messages. */
static uint64_t take_all(uint64_t next[RANKS])
{
	struct libacp_record r;
	uint64_t taken = 0;
	int found;

	while (!(found = libacp_area_find(&world, true, &r))) {
		check_record(&r, r.rank, next[r.rank], size_of(next[r.rank]));
		next[r.rank]++;
		taken++;
		libacp_area_consume(&world, &r);
	}
	CHECK_EQ(found, -EAGAIN);
	return taken;
}

/*
 * What a writer has completed comes once, and in order; of what it had begun, all or nothing. The
 * others go on.
 */
TEST(ring__A4_writers_are_killed_at_any_instant)
{
	uint64_t next[RANKS] = { 0 }, seed = start_seed(), wanted;
	unsigned int with_lock = 0, deaths_left, i;
	uint32_t started = 0, rank[WRITERS];
	pid_t pids[WRITERS];

	/* Long messages, so that most of the time is spent with the lock. */
	bits = BITS_MAX;
	bytes_of(0);
	deaths = shared(sizeof(*deaths));
	world = area_in(shared(ring_offset() + libacp_node_ring_bytes(bits)));
	for (i = 0; i < WRITERS; i++, started++) {
		rank[i] = started;
		pids[i] = start_writer(started);
	}
	for (deaths_left = DEATHS; deaths_left; deaths_left--) {
		for (wanted = draw(&seed) % 300 + 1; wanted;) {
			const uint64_t taken = take_all(next);

			wanted -= taken < wanted ? taken : wanted;
			if (!taken)
				sched_yield();
		}
		i = (unsigned int)(draw(&seed) % WRITERS);
		with_lock += kill_writer(pids[i], rank[i]);
		rank[i] = started;
		pids[i] = start_writer(started++);
	}
	for (i = 0; i < WRITERS; i++)
		kill_writer(pids[i], rank[i]);
	CHECK(libacp_area_close(&world, is_dead));
	take_all(next);
	CHECK(libacp_area_drained(&world));
	for (i = 0; i < RANKS; i++)
		CHECK(next[i] == deaths->written[i] || next[i] == deaths->written[i] + 1);
	printf("# %u of %u died with the lock\n", with_lock, DEATHS);
	CHECK(with_lock > 0);
}

#endif

/* ---- Faults ---- */

TEST(ring__A4_what_the_owner_reads_is_checked)
{
	static const uint64_t states[] = {
		0, 8 << 2, 8 << 2 | ACP_RECORD_ARRIVING, 8 << 2 | ACP_RECORD_VOID,
		16 << 2 | ACP_RECORD_READY, UINT64_MAX, UINT64_MAX - 1, ACP_RECORD_VOID,
	};
	struct libacp_ring_record *first;
	struct libacp_record r;
	struct libacp_area a;
	unsigned int i;

	for (i = 0; i < 8 + 5; i++) {
		a = new_area();
		first = (void *)(a.ring.ring + 1);
		CHECK(write_message(a.box, 2, 2, 8, nobody_is_gone));
		if (i < 8)
			first->record.state = states[i];
		else if (i == 8)
			first->record.rank = RANKS;
		else if (i == 9)
			a.ring.ring->tail = (1u << bits) + 1;
		else if (i == 10)
			a.ring.ring->tail = UINT64_MAX;
		else if (i == 11)
			first->stamp = 1;		/* records that are not there */
		else
			first->stamp = 1ull << 32;	/* a lap that has not begun */
		CHECK_EQ(libacp_area_find(&a, true, &r), -EBADMSG);
		CHECK_EQ(libacp_area_find(&a, false, &r), -EBADMSG);
		CHECK(libacp_area_close(&a, nobody_is_gone));
		CHECK(!libacp_area_drained(&a));
		free(a.box);
	}
}

TEST(ring__A4_what_writers_read_is_checked)
{
	static const uint64_t heads[] = { 1, 500, (uint64_t)-129, 1ull << 63 };
	struct libacp_area a = new_area();
	uint64_t where = a.box->owner[LIBACP_OWNER_RING], offset;
	unsigned int i, found;

	for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		a.ring.ring->head = heads[i];
		CHECK(!write_message(a.box, 2, 2, 8, nobody_is_gone));
		CHECK_EQ(a.ring.ring->lock, 0);
	}
	a.ring.ring->head = 0;
	for (i = 0; i < 64; i++) {
		a.box->owner[LIBACP_OWNER_RING] = where ^ 1ull << i;
		CHECK(!libacp_node_ring_of(a.box, &offset, &found) || i < 48);
		CHECK(found <= LIBACP_RING_BITS_MAX || i >= 40);
	}
	a.box->owner[LIBACP_OWNER_RING] = 0;
	CHECK(!libacp_node_ring_of(a.box, &offset, &found));
	free(a.box);
}

/*
 * No word that others write leads out of the memory, which sanitizers see, or into endless loops.
 */
TEST(ring__A4_anything_is_overwritten)
{
	const uint64_t words = libacp_node_ring_bytes(bits) / 8;
	uint64_t seed = start_seed();
	struct libacp_record r;
	struct libacp_area a;
	unsigned int i, k;
	uint64_t *word;
	int found;

	for (i = 0; i < 5000; i++) {
		a = new_area();
		for (k = 0; k < 100; k++) {
			write_message(a.box, 2, k, size_of(k), nobody_is_gone);
			if (draw(&seed) % 8 == 0) {
				word = (uint64_t *)(void *)a.ring.ring + draw(&seed) % words;
				if (draw(&seed) % 2)
					*word ^= 1ull << draw(&seed) % 64;
				else
					*word = draw(&seed) % 1000;
			}
			found = libacp_area_find(&a, false, &r);
			if (found == -EBADMSG)
				break;
			if (!found) {
				CHECK(r.rank < RANKS && r.length <= a.ring.units);
				CHECK(is_message(r.data, r.size, 0) || r.size);
				libacp_area_consume(&a, &r);
			}
		}
		free(a.box);
	}
}

TEST_MAIN
