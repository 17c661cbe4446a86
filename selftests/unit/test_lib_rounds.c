// SPDX-License-Identifier: MIT
/*
 * Rounds of collectives, played by all members in steps: what is sent in a step arrives in the next
 * one. A lazy message is acknowledged by the next message of its target only, never by one that
 * has no other purpose: a round that ends nevertheless waits for no timer.
 */
#define _GNU_SOURCE
#include "../test.h"

#include "core/mem.h"

/* All memory is registered. */
static void *any_memory(acp_ga_t ga, uint64_t size, bool write);
#define libacp_mem_find any_memory
#include "coll/create.c"
#undef libacp_mem_find

#define MOST		10		/* members */
#define ROUNDS		5
#define WORDS		1024		/* of counters of a member */
#define ENTRIES		8192		/* of all rounds of a member */
#define MESSAGES	(MOST * MOST * 64)
#define AREA(rank)	((acp_ga_t)((rank) + 1) << 40)
#define BUFFER(rank)	(AREA(rank) | (acp_ga_t)1 << 36)
#define SOURCE(rank)	(AREA(rank) | (acp_ga_t)2 << 36)
#define LIST(rank)	(AREA(rank) | (acp_ga_t)3 << 36)

typedef int create_t(acpx_group_t group, int number, acpx_coll_t *coll);

struct entry {
	struct acp_sqe e;
	int to;				/* the other member, or the caller */
	bool started, done;
	uint64_t message;		/* number of its message to the other member */
};

static struct member {
	acpx_coll_t coll;
	struct entry entries[ENTRIES + 1];	/* by ticket, from 1 */
	uint64_t words[WORDS];
	uint64_t newest, completed, base, last;
	int start;			/* the step of the first round */
	bool active;
	/* messages to and from each other member, and those for which an acknowledgement is due */
	uint64_t sent[MOST], arrived[MOST];
	bool due[MOST];
} members[MOST];

/* What goes from one member to another: an entry, or 0, and an acknowledgement. */
struct message {
	int from, to;
	uint64_t ticket, acknowledged;
};

static struct message way[2][MESSAGES];	/* that arrive in this step, and in the next one */
static int on_way[2];
static int count, me;			/* members, and the one that is played */
static struct acpx_neighbour (*neighbour_of)(int number, int i);
static char array[64];

/* ---- What the rest of the library does ---- */

struct libacp libacp;

static void *any_memory(acp_ga_t ga, uint64_t size, bool write)
{
	(void)ga;
	(void)size;
	(void)write;
	return array;
}

int acp_rank(void)
{
	return me;
}

int acpx_group_rank(acpx_group_t group)
{
	(void)group;
	return me;
}

int acpx_group_free(acpx_group_t group)
{
	(void)group;
	return 0;
}

acp_atkey_t acp_register_memory(void *addr, size_t size, int color)
{
	(void)addr;
	(void)size;
	(void)color;
	return 1;
}

acp_ga_t acp_query_ga(acp_atkey_t key, void *addr)
{
	(void)key;
	return addr == array ? BUFFER(me) : AREA(me);
}

int acp_query_rank(acp_ga_t ga)
{
	return (int)(ga >> 40) - 1;
}

int acpx_peer_state(int rank)
{
	(void)rank;
	return 0;
}

void *libacp_scratch_get(size_t size, acp_ga_t *ga)
{
	*ga = LIST(me);
	return malloc(size);
}

void libacp_scratch_put(void *block)
{
	free(block);
}

int libacp_exchange_begin(struct libacp_exchange *x)
{
	x->table_ga = 0;
	return 0;
}

int libacp_exchange_confirm(struct libacp_exchange *x, int error)
{
	(void)x;
	return error;
}

/* An entry of the table, or what a member lists: a count, then its neighbours. */
int libacp_exchange_read(void *to, acp_ga_t from, size_t size)
{
	const int rank = from < AREA(0) ? (int)(from / sizeof(struct libacp_told)) :
			 acp_query_rank(from);
	const uint64_t two = 2, at = from - LIST(rank);
	struct acpx_neighbour neighbour;

	if (from < AREA(0)) {
		*(struct libacp_told *)to = (struct libacp_told){
			1, AREA(rank), BUFFER(rank), LIST(rank),
		};
	} else if (at < sizeof(two)) {
		memcpy(to, &two, size);
	} else {
		neighbour = neighbour_of(rank, (int)((at - sizeof(two)) / sizeof(neighbour)));
		memcpy(to, &neighbour, size);
	}
	return 0;
}

int libacp_pool_get(struct acpx_coll *owner, uint32_t entries, struct libacp_pool_queue **queue)
{
	(void)owner;
	(void)entries;
	*queue = NULL;
	return 0;
}

void libacp_pool_put(struct libacp_pool_queue *queue)
{
	(void)queue;
}

void libacp_pool_remove(struct libacp_pool_queue *queue)
{
	(void)queue;
}

void libacp_coll_abandon(struct acpx_coll *c)
{
	(void)c;
}

void libacp_coll_release(struct acpx_coll *c)
{
	free(c->area);
	free(c->expected);
	free(c->targets);
	free(c->edges);
}

/* ---- Messages ---- */

static void post(int from, int to, uint64_t ticket)
{
	struct member *m = &members[from];

	CHECK(on_way[1] < MESSAGES);
	way[1][on_way[1]++] = (struct message){ from, to, ticket, m->arrived[to] };
	m->due[to] = false;
}

static uint64_t *word_at(acp_ga_t ga)
{
	const uint64_t offset = ga - AREA(acp_query_rank(ga));

	CHECK(offset / 8 < WORDS);
	return &members[acp_query_rank(ga)].words[offset / 8];
}

static void take_effect(const struct acp_sqe *e)
{
	if (e->op == ACP_OP_COPY_ADD)
		*word_at(e->a) += e->b;
}

static void arrive(const struct message *msg)
{
	struct member *to = &members[msg->to];
	const struct acp_sqe *e = &members[msg->from].entries[msg->ticket].e;
	uint64_t t;

	for (t = to->completed + 1; t <= to->newest; t++)
		if (to->entries[t].started && to->entries[t].to == msg->from &&
		    to->entries[t].message <= msg->acknowledged)
			to->entries[t].done = true;
	if (!msg->ticket)
		return;
	take_effect(e);
	to->arrived[msg->from]++;
	if (!(e->flags & ACP_SQE_LAZY))
		to->due[msg->from] = true;
}

/* ---- Commands ---- */

static void take_entry(struct libacp_round *round, const struct acp_sqe *entry,
		       const struct libacp_peer *peer)
{
	struct member *m = &members[me];
	struct entry *n = &m->entries[++m->newest];

	(void)round;
	(void)peer;
	CHECK(m->newest <= ENTRIES);
	*n = (struct entry){ .e = *entry, .to = me };
	n->e.order = entry->order ? m->base + entry->order : 0;
	if (entry->op == ACP_OP_COPY_ADD)
		n->to = acp_query_rank(entry->a);
	else if (entry->op == ACP_OP_COPY || entry->op == ACP_OP_STRIDED)
		n->to = acp_query_rank(entry->dst) == me ? acp_query_rank(entry->src) :
			acp_query_rank(entry->dst);
	if (!(entry->flags & ACP_SQE_LAZY))
		m->last = m->newest;
}

static bool can_start(const struct member *m, uint64_t t)
{
	const struct acp_sqe *e = &m->entries[t].e;

	if (e->op == ACP_OP_WAIT)
		return m->completed + 1 == t && *word_at(e->src) >= e->a;
	return e->order <= m->completed;
}

/* Start what can start. Returns true if something did. */
static bool advance(struct member *m)
{
	bool any = false;
	uint64_t t;

	for (t = m->completed + 1; t <= m->newest; t++) {
		struct entry *n = &m->entries[t];

		if (!n->started && can_start(m, t)) {
			any = true;
			n->started = true;
			if (n->to == me) {
				take_effect(&n->e);
				n->done = true;
			} else {
				n->message = ++m->sent[n->to];
				post(me, n->to, t);
			}
		}
		if (n->done && t == m->completed + 1)
			m->completed = t;
	}
	return any;
}

/* ---- Members ---- */

static void (*before_round)(struct acpx_coll *c);

static void begin_round(struct member *m)
{
	struct libacp_round round = { .coll = m->coll, .number = ++m->coll->round,
				      .take = take_entry };

	if (before_round)
		before_round(m->coll);
	m->base = m->newest;
	m->last = m->newest;
	m->active = true;
	libacp_round_run(&round);
}

static void play(int number, int step)
{
	struct member *m = &members[number];
	bool any;

	me = number;
	do {
		any = advance(m);
		if (m->active && m->completed >= m->last)
			m->active = false;
		if (!m->active && m->coll->round < ROUNDS && step >= m->start) {
			begin_round(m);
			any = true;
		}
	} while (any);
}

/* Returns true if something is on its way, or is to begin. */
static bool play_all(int step)
{
	int i, j;

	on_way[0] = on_way[1];
	memcpy(way[0], way[1], (size_t)on_way[0] * sizeof(way[0][0]));
	on_way[1] = 0;
	for (i = 0; i < on_way[0]; i++)
		arrive(&way[0][i]);
	for (i = 0; i < count; i++)
		play(i, step);
	for (i = 0; i < count; i++)
		for (j = 0; j < count; j++)
			if (members[i].due[j])
				post(i, j, 0);
	return on_way[1] || step < 100;
}

static void run(const char *name, create_t *create, int size, int stagger)
{
	struct acpx_group group = { .users = 1, .stride = 1, .count = size };
	int i, step = 0;

	count = size;
	on_way[1] = 0;
	memset(members, 0, sizeof(members));
	for (me = 0; me < size; me++) {
		CHECK_EQ(create(&group, me, &members[me].coll), 0);
		members[me].start = stagger > 0 ? stagger * me : -stagger * (size - 1 - me);
	}
	while (play_all(step))
		step++;
	for (i = 0; i < size; i++) {
		if (members[i].active || members[i].coll->round < ROUNDS)
			FAIL("%s of %d, %d: member %d waits in round %llu", name, size, stagger, i,
			     (unsigned long long)members[i].coll->round);
		libacp_coll_release(members[i].coll);
		free(members[i].coll);
	}
}

static void run_all(const char *name, create_t *create, int least)
{
	int size, stagger;

	for (size = least; size <= MOST; size++)
		for (stagger = -7; stagger <= 7; stagger += 7)
			run(name, create, size, stagger);
	before_round = NULL;
}

/* ---- The collectives ---- */

static size_t bytes;

static int barrier(acpx_group_t group, int number, acpx_coll_t *coll)
{
	(void)number;
	return acpx_coll_barrier_create(group, coll);
}

static int bcast(acpx_group_t group, int number, acpx_coll_t *coll)
{
	return acpx_coll_bcast_create(group, group->count / 2, BUFFER(number), bytes, coll);
}

static int reduce(acpx_group_t group, int number, acpx_coll_t *coll)
{
	return acpx_coll_reduce_create(group, group->count / 2, BUFFER(number), SOURCE(number),
				       bytes / 8, ACPX_SUM, ACPX_DOUBLE, coll);
}

static int allreduce(acpx_group_t group, int number, acpx_coll_t *coll)
{
	return acpx_coll_allreduce_create(group, BUFFER(number), SOURCE(number), bytes / 8,
					  ACPX_SUM, ACPX_DOUBLE, coll);
}

static int reduce_scatter(acpx_group_t group, int number, acpx_coll_t *coll)
{
	return acpx_coll_reduce_scatter_create(group, BUFFER(number), SOURCE(number), bytes / 8,
					       ACPX_SUM, ACPX_DOUBLE, coll);
}

static int scan(acpx_group_t group, int number, acpx_coll_t *coll)
{
	return acpx_coll_scan_create(group, BUFFER(number), SOURCE(number), bytes / 8, ACPX_SUM,
				     ACPX_DOUBLE, coll);
}

static int exscan(acpx_group_t group, int number, acpx_coll_t *coll)
{
	return acpx_coll_exscan_create(group, BUFFER(number), SOURCE(number), bytes / 8, ACPX_SUM,
				       ACPX_DOUBLE, coll);
}

static int gather(acpx_group_t group, int number, acpx_coll_t *coll)
{
	return acpx_coll_gather_create(group, group->count / 2, BUFFER(number), SOURCE(number),
				       bytes, coll);
}

static int scatter(acpx_group_t group, int number, acpx_coll_t *coll)
{
	return acpx_coll_scatter_create(group, group->count / 2, BUFFER(number), SOURCE(number),
					bytes, coll);
}

static int allgather(acpx_group_t group, int number, acpx_coll_t *coll)
{
	return acpx_coll_allgather_create(group, BUFFER(number), SOURCE(number), bytes, coll);
}

static int alltoall(acpx_group_t group, int number, acpx_coll_t *coll)
{
	return acpx_coll_alltoall_create(group, BUFFER(number), SOURCE(number), bytes, coll);
}

TEST(rounds__wait_for_no_timer)
{
	static const struct {
		const char *name;
		create_t *create;
		size_t most;		/* bytes */
	} all[] = {
		{ "barrier", barrier, 8 }, { "bcast", bcast, 200000 }, { "reduce", reduce, 20000 },
		{ "allreduce", allreduce, 20000 }, { "reduce_scatter", reduce_scatter, 3000 },
		{ "scan", scan, 20000 }, { "exscan", exscan, 20000 }, { "gather", gather, 8 },
		{ "scatter", scatter, 8 }, { "allgather", allgather, 50000 },
		{ "alltoall", alltoall, 8 },
	};
	static const size_t sizes[] = { 8, 1024, 3000, 8192, 20000, 50000, 200000 };
	size_t i, s;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]) && sizes[s] <= all[i].most; s++) {
			bytes = sizes[s];
			run_all(all[i].name, all[i].create, 1);
		}
	}
}

/* ---- Neighbours ---- */

/* From the one before to the next one. */
static struct acpx_neighbour shift(int number, int i)
{
	if (i)
		return (struct acpx_neighbour){ (number + count - 1) % count, { 0, 0 }, { 0, 8 } };
	return (struct acpx_neighbour){ (number + 1) % count, { 0, 8 }, { 0, 0 } };
}

/* With both. */
static struct acpx_neighbour ring(int number, int i)
{
	if (i)
		return (struct acpx_neighbour){ (number + count - 1) % count, { 0, 8 }, { 8, 8 } };
	return (struct acpx_neighbour){ (number + 1) % count, { 8, 8 }, { 0, 8 } };
}

/* Along a line, from the first one to the last. */
static struct acpx_neighbour line(int number, int i)
{
	struct acpx_neighbour n = shift(number, i);

	if (number == (i ? 0 : count - 1))
		n = (struct acpx_neighbour){ .member = -1 };
	return n;
}

static int neighbours(acpx_group_t group, int number, acpx_coll_t *coll)
{
	const struct acpx_neighbour list[] = { neighbour_of(number, 0), neighbour_of(number, 1) };

	return acpx_coll_neighbours_create(group, BUFFER(number), SOURCE(number), list, 2, coll);
}

TEST(rounds_of_neighbours__wait_for_no_timer)
{
	neighbour_of = shift;
	run_all("shift", neighbours, 3);
	neighbour_of = ring;
	run_all("ring", neighbours, 3);
	neighbour_of = line;
	run_all("line", neighbours, 3);
}

/* ---- Transfers ---- */

static int bcast_direct(acpx_group_t group, int number, acpx_coll_t *coll)
{
	(void)number;
	return acpx_coll_bcast_direct_create(group, array, bytes * (size_t)group->count, 0, coll);
}

static int allgather_direct(acpx_group_t group, int number, acpx_coll_t *coll)
{
	(void)number;
	return acpx_coll_allgather_direct_create(group, array, bytes * (size_t)group->count, 0,
						 coll);
}

static void ask_for_all(struct acpx_coll *c)
{
	libacp_transfer_set(c, 0, c->transfer.part);
}

/* Each second round has a part, or a part of each part. */
static void ask_for_parts(struct acpx_coll *c)
{
	libacp_transfer_set(c, 0, c->round % 2 ? c->transfer.part / 2 : c->transfer.part);
}

static void ask_for_less(struct acpx_coll *c)
{
	libacp_transfer_set(c, 4, c->transfer.part / 2);
}

TEST(rounds_of_transfers__wait_for_no_timer)
{
	static void (*const ask[])(struct acpx_coll *c) = {
		ask_for_all, ask_for_parts, ask_for_less,
	};
	static const size_t sizes[] = { 8, 50000 };
	size_t s, a;

	for (s = 0; s < 2; s++) {
		for (a = 0; a < 3; a++) {
			bytes = sizes[s];
			before_round = ask[a];
			run_all("bcast_direct", bcast_direct, 1);
			before_round = ask[a];
			run_all("allgather_direct", allgather_direct, 1);
		}
	}
}

/* ---- Memory ---- */

/* What a member has: its area, and a word for each counter. */
static size_t memory_of(const struct acpx_coll *c)
{
	return c->area_bytes + c->lines * sizeof(*c->expected) + sizeof(*c);
}

/* The members at both ends, at the root, and two in between. */
static void check_memory(const char *name, create_t *create)
{
	struct acpx_group million = { .users = 1, .stride = 1, .count = 1 << 20 };
	const int numbers[] = { 0, 1, 7777, million.count / 2, million.count - 1 };
	struct acpx_coll *c;
	size_t i, most;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		me = numbers[i];
		CHECK_EQ(create(&million, me, &c), 0);
		/* with two pieces for its own result, if that is for the parent only */
		most = 4096 + 2 * (size_t)c->tree.radix * c->piece + c->scratch_bytes;
		if (c->area_bytes > most || memory_of(c) > most + 4096)
			FAIL("%s of %zu bytes, member %d: %zu bytes, not %zu", name, bytes, me,
			     memory_of(c), most);
		CHECK(c->scratch_bytes <= 2 * (c->piece > LIBACP_BRIEF_MAX ? c->piece :
					       LIBACP_BRIEF_MAX));
		libacp_coll_release(c);
		free(c);
	}
}

TEST(memory__of_a_member_of_a_million_depends_on_radix_and_piece_only)
{
	static const size_t sizes[] = { 8, 4096, 65536, 1 << 20 };
	size_t s;

	for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		bytes = sizes[s];
		check_memory("bcast", bcast);
		check_memory("reduce", reduce);
		check_memory("allreduce", allreduce);
		check_memory("scan", scan);
	}
	check_memory("barrier", barrier);
}

TEST_MAIN
