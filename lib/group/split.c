// SPDX-License-Identifier: MIT
/*
 * Splitting of groups. A member writes what it wants to its own library page (struct libacp_split),
 * and waits for an answer there. The first member of the group reads the pages of all others,
 * computes all parts, and answers each of them by a compare-and-swap of the state:
 *
 *	0		the owner takes part in nothing
 *	odd		a ticket: it has written what it wants; each is used once
 *	8 n		the address of the member's entry in the table of the first member
 *	error << 8 | 2	splitting has failed
 *
 * The member reads its part from the table, and writes 0. When no state has an address of the table
 * any more, the first member frees it. So no rank has memory for others but the first one of a
 * group, and only as long as it splits that group. A rank that gives up replaces its ticket, and is
 * answered no more.
 *
 * If a member is lost, the others are told as soon as they take part. If the first one is lost,
 * they find out by themselves.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"
#include "core/internal.h"
#include "core/page.h"
#include "group/group.h"
#include "middle/backoff.h"
#include "middle/scratch.h"

#define US		1000ull		/* ns */
#define PAUSE_MIN	(20 * US)
#define PAUSE_MAX	(2000 * US)
#define CHECK_NS	(100000 * US)	/* interval of checks of the first member */
#define FAILED		2u		/* of a state, with the error above its lower byte */
#define PIECE		sizeof(((struct libacp_page *)0)->piece)
#define WINDOW		64u		/* accesses in flight */

_Static_assert(WINDOW * sizeof(struct libacp_split) <= PIECE, "struct libacp_page");

/* One thread at a time takes part, as there is one state. It waits for other ranks meanwhile. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_ticket;		/* guarded by the lock */

/* An entry of the table: the part of a member is ranks[first] to ranks[first + count - 1]. */
struct entry {
	uint32_t first, count;
};

static acp_ga_t state_of(int rank)
{
	return libacp_page_ga(rank, offsetof(struct libacp_page, split));
}

static acp_ga_t piece_of(int rank)
{
	return libacp_page_ga(rank, offsetof(struct libacp_page, piece));
}

/*
 * End an access to a page. Memory of a rank on this node stays when the rank is dead, but then its
 * state is known. Returns 0 or -errno.
 */
static int end_access(acp_handle_t handle, int rank)
{
	int error = libacp_finish(handle);

	if (!error && acpx_query_node(rank) == acpx_query_node(acp_rank()) &&
	    acpx_peer_state(rank) == ACPX_PEER_DOWN)
		error = -EHOSTDOWN;
	return error;
}

static struct libacp_page *own_page(void)
{
	return acp_query_address(libacp_page_ga(acp_rank(), 0));
}

static uint64_t failed_state(int error)
{
	return (uint64_t)-error << 8 | FAILED;
}

/* ---- The first member ---- */

enum progress { AWAITED, PRESENT, TOLD, GONE };

struct member {
	uint64_t state;			/* as last seen */
	int32_t color, key;
	uint32_t number;		/* in the group */
	enum progress progress;
	bool taken;			/* AWAITED: color and key may be those of state */
};

struct split {
	const struct acpx_group *group;
	uint64_t id;
	struct member *members;		/* in the order of the group, later of the parts */
	struct entry *table;		/* of the members, and then the ranks of all parts */
	acp_ga_t table_ga;
	int error;			/* the first one, or 0 */
};

static uint32_t *ranks_of(const struct split *s)
{
	return (uint32_t *)(void *)(s->table + s->group->count);
}

static int rank_of(const struct split *s, const struct member *m)
{
	return libacp_group_at(s->group, (int)m->number);
}

/*
 * What was read with a ticket for the second time was written before the ticket. It was not written
 * again after the state was read, if the third time shows the same ticket.
 */
static void await(const struct split *s, struct member *m, const struct libacp_split *seen,
		  uint64_t former)
{
	if (seen->state != former || !(former & 1) || seen->group != s->id) {
		m->taken = false;
	} else if (m->taken) {
		m->progress = PRESENT;
	} else {
		m->color = seen->color;
		m->key = seen->key;
		m->taken = true;
	}
}

/* A member has this, or cannot be read. */
static void see(struct split *s, struct member *m, const struct libacp_split *seen, int error)
{
	const uint64_t former = m->state;

	if (error) {
		if (m->progress == AWAITED && !s->error)
			s->error = error;
		m->progress = GONE;
		return;
	}
	m->state = seen->state;
	if (m->progress == AWAITED)
		await(s, m, seen, former);
	else if (m->progress == TOLD && seen->state != former)
		m->progress = GONE;
}

/* Read the pages of up to WINDOW members. */
static void look(struct split *s, struct member *const *who, unsigned int n)
{
	const struct libacp_page *page = own_page();
	acp_handle_t handles[WINDOW];
	struct libacp_split seen;
	unsigned int i;
	int error;

	for (i = 0; i < n; i++)
		handles[i] = acp_copy(piece_of(acp_rank()) + i * sizeof(seen),
				      state_of(rank_of(s, who[i])), sizeof(seen), ACP_HANDLE_NULL);
	for (i = 0; i < n; i++) {
		error = end_access(handles[i], rank_of(s, who[i]));
		memcpy(&seen, (const char *)page->piece + i * sizeof(seen), sizeof(seen));
		see(s, who[i], &seen, error);
	}
}

/* What a member is told. */
static uint64_t answer_of(const struct split *s, const struct member *m)
{
	return s->error ? failed_state(s->error) : s->table_ga + m->number * sizeof(*s->table);
}

/* Tell up to WINDOW members. One whose state is another one now is not told. */
static void tell(struct split *s, struct member *const *who, unsigned int n)
{
	const struct libacp_page *page = own_page();
	acp_handle_t handles[WINDOW];
	unsigned int i;
	bool told;

	for (i = 0; i < n; i++)
		handles[i] = acp_cas8(piece_of(acp_rank()) + 8 * i, state_of(rank_of(s, who[i])),
				      who[i]->state, answer_of(s, who[i]), ACP_HANDLE_NULL);
	for (i = 0; i < n; i++) {
		told = !libacp_finish(handles[i]) && page->piece[i] == who[i]->state;
		who[i]->state = answer_of(s, who[i]);
		who[i]->progress = told && !s->error ? TOLD : GONE;
	}
}

/* Look at up to WINDOW members, or tell them. */
typedef void action_t(struct split *s, struct member *const *who, unsigned int n);

/* Do something for all members of that progress. Returns how many still have it. */
static unsigned int for_all(struct split *s, enum progress which, action_t *what)
{
	struct member *who[WINDOW], *m = s->members, *end = m + s->group->count;
	unsigned int n, left = 0;

	while (m < end) {
		for (n = 0; m < end && n < WINDOW; m++)
			if (m->number && m->progress == which)
				who[n++] = m;
		if (n)
			what(s, who, n);
		while (n)
			left += who[--n]->progress == which;
	}
	return left;
}

/* Wait until no member has that progress. Those that are there are told of an error at once. */
static void await_all(struct split *s, enum progress which)
{
	uint64_t pause = 0;

	while (for_all(s, which, look)) {
		if (s->error)
			for_all(s, PRESENT, tell);
		libacp_sleep(libacp_backoff(&pause, PAUSE_MIN, PAUSE_MAX));
	}
}

static int compare(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->color != y->color)
		return x->color < y->color ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* Compute the parts. Those of no color have none. Returns that of the first member. */
static struct entry fill_table(struct split *s)
{
	const uint32_t count = (uint32_t)s->group->count;
	struct member *m = s->members;
	struct entry own = { 0 }, entry;
	uint32_t first, end, i;

	qsort(m, count, sizeof(*m), compare);
	for (first = 0; first < count; first = end) {
		for (end = first; end < count && m[end].color == m[first].color; end++)
			ranks_of(s)[end] = (uint32_t)rank_of(s, &m[end]);
		entry = (struct entry){
			.first = first, .count = m[first].color < 0 ? 0 : end - first,
		};
		for (i = first; i < end; i++) {
			s->table[m[i].number] = entry;
			if (m[i].number == 0)
				own = entry;
		}
	}
	return own;
}

static void make_members(struct split *s, int color, int key)
{
	int i;

	for (i = 0; i < s->group->count; i++)
		s->members[i] = (struct member){ .number = (uint32_t)i };
	s->members[0].color = color;
	s->members[0].key = key;
}

/* Without memory: tell the members one after the other. */
static void refuse(struct split *s)
{
	struct member m, *who = &m;
	uint64_t pause;
	int i;

	for (i = 1; i < s->group->count; i++) {
		m = (struct member){ .number = (uint32_t)i };
		pause = 0;
		for (look(s, &who, 1); m.progress == AWAITED; look(s, &who, 1))
			libacp_sleep(libacp_backoff(&pause, PAUSE_MIN, PAUSE_MAX));
		if (m.progress == PRESENT)
			tell(s, &who, 1);
	}
}

/* Copy a part. Returns 0 or -errno. */
static int make_part(const uint32_t *ranks, uint32_t count, acpx_group_t *part)
{
	int error = acpx_group_list((const int *)ranks, (int)count, part);

	return error == -EINVAL ? -EBADMSG : error;
}

/*
 * Fill the table, and make the part of the first member before others can write to it: if there is
 * no memory for that, all members fail. Returns 0 or -errno.
 */
static int make_own_part(struct split *s, acpx_group_t *part)
{
	const struct entry own = fill_table(s);

	return own.count ? make_part(ranks_of(s) + own.first, own.count, part) : 0;
}

static int take_first(struct split *s, int color, int key, acpx_group_t *part)
{
	const size_t count = (size_t)s->group->count;

	s->members = malloc(count * sizeof(*s->members));
	s->table = libacp_scratch_get(count * (sizeof(*s->table) + sizeof(uint32_t)), &s->table_ga);
	if (s->members && s->table) {
		make_members(s, color, key);
		await_all(s, AWAITED);
		if (!s->error)
			s->error = make_own_part(s, part);
		for_all(s, PRESENT, tell);
		await_all(s, TOLD);
	} else {
		s->error = -ENOMEM;
		refuse(s);
	}
	libacp_scratch_put(s->table);
	free(s->members);
	return s->error;
}

/* ---- Other members ---- */

/* Read at most PIECE bytes of a rank into the own page. Returns 0 or -errno. */
static int read_piece(acp_ga_t from, size_t size)
{
	return end_access(acp_copy(piece_of(acp_rank()), from, size, ACP_HANDLE_NULL),
			  acp_query_rank(from));
}

/* Wait for the answer to a ticket. Returns 0 or -errno. */
static int await_answer(uint64_t *state, uint64_t ticket, int first, uint64_t *answer)
{
	uint64_t pause = 0, check = libacp_now() + CHECK_NS, seen;
	int error;

	while ((*answer = __atomic_load_n(state, __ATOMIC_ACQUIRE)) == ticket) {
		libacp_sleep(libacp_backoff(&pause, PAUSE_MIN, PAUSE_MAX));
		if (libacp_now() < check)
			continue;
		error = read_piece(state_of(first), sizeof(uint64_t));
		check = libacp_now() + CHECK_NS;
		seen = ticket;
		/* If it has just answered, that counts. */
		if (error && __atomic_compare_exchange_n(state, &seen, 0, false, __ATOMIC_ACQ_REL,
							 __ATOMIC_ACQUIRE))
			return error;
	}
	return 0;
}

static int read_ranks(acp_ga_t from, uint32_t *ranks, uint32_t count)
{
	const struct libacp_page *page = own_page();
	const uint32_t most = (uint32_t)(PIECE / (sizeof(*ranks)));
	uint32_t done, n;
	int error;

	for (done = 0; done < count; done += n) {
		n = count - done < most ? count - done : most;
		error = read_piece(from + done * sizeof(*ranks), n * sizeof(*ranks));
		if (error)
			return error;
		memcpy(ranks + done, page->piece, n * sizeof(*ranks));
	}
	return 0;
}

/* Read the own part from the table, which other ranks may have overwritten. */
static int read_part(const struct acpx_group *group, int number, acp_ga_t at, acpx_group_t *part)
{
	const uint32_t size = (uint32_t)group->count;
	const acp_ga_t ranks_ga = at + (size - (uint32_t)number) * sizeof(struct entry);
	struct entry own;
	uint32_t *ranks;
	int error = read_piece(at, sizeof(own));

	if (error)
		return error;
	memcpy(&own, own_page()->piece, sizeof(own));
	if (!own.count)
		return 0;
	if (own.first >= size || own.count > size - own.first)
		return -EBADMSG;
	ranks = malloc(own.count * sizeof(*ranks));
	if (!ranks)
		return -ENOMEM;
	error = read_ranks(ranks_ga + own.first * sizeof(*ranks), ranks, own.count);
	if (!error)
		error = make_part(ranks, own.count, part);
	free(ranks);
	return error;
}

/* Is it what the first member can answer? */
static int error_of(uint64_t answer)
{
	const uint64_t error = answer >> 8;

	if ((answer & 7) == 0 && answer)
		return 0;
	return (answer & 0xff) == FAILED && error && error < 4096 ? -(int)error : -EBADMSG;
}

static int take_part(const struct split *s, int number, int color, int key, acpx_group_t *part)
{
	struct libacp_split *own = &own_page()->split;
	const uint64_t ticket = ++last_ticket << 1 | 1;
	uint64_t answer;
	int error;

	own->group = s->id;
	own->color = color;
	own->key = key;
	__atomic_store_n(&own->state, ticket, __ATOMIC_RELEASE);
	error = await_answer(&own->state, ticket, libacp_group_at(s->group, 0), &answer);
	if (!error)
		error = error_of(answer);
	if (!error)
		error = read_part(s->group, number, answer, part);
	__atomic_store_n(&own->state, 0, __ATOMIC_RELEASE);
	return error;
}

int acpx_group_split(acpx_group_t group, int color, int key, acpx_group_t *part)
{
	struct split s = { .group = group };
	const int number = acpx_group_rank(group);
	acpx_group_t found = NULL;
	bool quiet;
	int error;

	if (number < 0)
		return number == -ENOENT ? -EINVAL : number;
	if (!part || color < ACPX_NO_COLOR)
		return -EINVAL;
	s.id = libacp_group_id(group);
	pthread_mutex_lock(&lock);
	quiet = libacp_quiet(true);
	if (number)
		error = take_part(&s, number, color, key, &found);
	else
		error = take_first(&s, color, key, &found);
	libacp_quiet(quiet);
	pthread_mutex_unlock(&lock);
	if (!error && (found ? acpx_group_rank(found) < 0 || color < 0 : color >= 0))
		error = -EBADMSG;
	if (!error)
		*part = found;
	else if (found)
		acpx_group_free(found);
	return error;
}
