// SPDX-License-Identifier: MIT
/* Exchange among the members of a group: see exchange.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"
#include "core/internal.h"
#include "core/page.h"
#include "group/exchange.h"
#include "middle/backoff.h"
#include "middle/scratch.h"

#define US		1000ull		/* ns */
#define PAUSE_MIN	(20 * US)
#define PAUSE_MAX	(2000 * US)
#define CHECK_NS	(100000 * US)	/* interval of checks of the first member */
#define FAILED		2u		/* of a state, with the error above its lower byte */
#define FIRST		4u		/* of a state, with a ticket above its lower byte */
#define PIECE		sizeof(((struct libacp_page *)0)->piece)
#define WINDOW		64u		/* accesses in flight */
#define CONFIRM		0x636f6e6669726dull	/* the first word of a confirmation */

_Static_assert(WINDOW * sizeof(struct libacp_record) <= PIECE, "struct libacp_page");
_Static_assert(sizeof(((struct libacp_record *)0)->words) ==
	       sizeof(((struct libacp_member *)0)->words), "a record has the words of a member");

/* One thread at a time takes part, as there is one state. It waits for other ranks meanwhile. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_ticket;		/* guarded by the lock */

static acp_ga_t state_of(int rank)
{
	return libacp_page_ga(rank, offsetof(struct libacp_page, exchange));
}

static acp_ga_t piece_of(int rank)
{
	return libacp_page_ga(rank, offsetof(struct libacp_page, piece));
}

/*
 * End an access to a page. Memory of a rank on this node stays when the rank is dead, but then its
 * state is known. If it is not there, the rank is about to be lost. Returns 0 or -errno.
 */
static int end_access(acp_handle_t handle, int rank)
{
	int error = libacp_finish(handle);

	if (!error && acpx_query_node(rank) == acpx_query_node(acp_rank()) &&
	    acpx_peer_state(rank) == ACPX_PEER_DOWN)
		error = -EHOSTDOWN;
	return error == -EFAULT ? -EHOSTDOWN : error;
}

static struct libacp_page *own_page(void)
{
	return acp_query_address(libacp_page_ga(acp_rank(), 0));
}

static uint64_t failed_state(int error)
{
	return (uint64_t)-error << 8 | FAILED;
}

/* Does this state mean that its owner takes part in an exchange? */
static bool is_busy(uint64_t state)
{
	return state & 1 || (state & 0xff) == FIRST;
}

/* How long may the owner of a record take part in the exchange of another group? */
static uint64_t other_ns(void)
{
	return libacp_timeout_ms() * 1000 * US;
}

/* Write the own record. Returns its state. */
static uint64_t publish(const struct libacp_exchange *x, const uint64_t *words)
{
	struct libacp_record *own = &own_page()->exchange;
	const uint64_t ticket = ++last_ticket;
	const uint64_t state = x->number ? ticket << 1 | 1 : ticket << 8 | FIRST;

	own->group = x->id;
	memcpy(own->words, words, sizeof(own->words));
	__atomic_store_n(&own->state, state, __ATOMIC_RELEASE);
	return state;
}

/* Others that have seen the caller in a circle learn that it has left because of that. */
static void withdraw(int error)
{
	__atomic_store_n(&own_page()->exchange.state,
			 error == -EDEADLK ? failed_state(error) : 0, __ATOMIC_RELEASE);
}

/* ---- The first member ---- */

static int rank_of(const struct libacp_exchange *x, const struct libacp_member *m)
{
	return libacp_group_at(x->group, (int)m->number);
}

static void lose(struct libacp_exchange *x, struct libacp_member *m, int error)
{
	if (m->progress == LIBACP_AWAITED && !x->error)
		x->error = error;
	m->progress = LIBACP_GONE;
}

/* A member that is present tells this. */
static void judge(struct libacp_exchange *x, struct libacp_member *m)
{
	const uint64_t expected = x->confirming ? CONFIRM : x->words[0];
	int error = 0;

	m->progress = LIBACP_PRESENT;
	if (m->words[0] == 0 || (x->confirming && m->words[1]))
		error = -(int)(m->words[1] & 0xfff);
	else if (m->words[0] != expected && x->words[0])
		error = -EPROTO;
	x->error = x->error ? x->error : error;
}

/* A member that is awaited takes part in nothing, or in something else. */
static void await_other(struct libacp_exchange *x, struct libacp_member *m, uint64_t state,
			uint64_t former)
{
	m->taken = false;
	if (x->confirming && (state & 7 || !state)) {
		lose(x, m, -EBADMSG);		/* it has given up */
	} else if (state == failed_state(-EDEADLK) && m->elsewhere) {
		lose(x, m, -EDEADLK);
	} else if (!is_busy(state) || state != former) {
		m->elsewhere = is_busy(state);
		m->since = libacp_now();
	} else if (libacp_now() - m->since > other_ns()) {
		lose(x, m, -EDEADLK);
	}
}

/*
 * A record read with a ticket for the second time was written before the ticket. It was not
 * written again after the state was read, if the third time shows the same ticket.
 */
static void await(struct libacp_exchange *x, struct libacp_member *m,
		  const struct libacp_record *seen, uint64_t former)
{
	if (!(seen->state & 1) || seen->group != x->id) {
		await_other(x, m, seen->state, former);
	} else if (seen->state != former) {
		m->taken = false;
	} else if (m->taken) {
		judge(x, m);
	} else {
		memcpy(m->words, seen->words, sizeof(m->words));
		m->taken = true;
	}
}

/* A member has this, or cannot be read. */
static void see(struct libacp_exchange *x, struct libacp_member *m,
		const struct libacp_record *seen, int error)
{
	const uint64_t former = m->state;

	if (error) {
		x->lost = true;
		lose(x, m, error);
		return;
	}
	m->state = seen->state;
	if (m->progress == LIBACP_AWAITED)
		await(x, m, seen, former);
	else if (m->progress == LIBACP_TOLD && seen->state != former)
		m->progress = LIBACP_GONE;
}

/* Read the pages of up to WINDOW members. */
static void look(struct libacp_exchange *x, struct libacp_member *const *some, unsigned int n)
{
	const struct libacp_page *page = own_page();
	acp_handle_t handles[WINDOW];
	struct libacp_record seen;
	unsigned int i;
	int error;

	for (i = 0; i < n; i++)
		handles[i] = acp_copy(piece_of(acp_rank()) + i * sizeof(seen),
				      state_of(rank_of(x, some[i])), sizeof(seen), ACP_HANDLE_NULL);
	for (i = 0; i < n; i++) {
		error = end_access(handles[i], rank_of(x, some[i]));
		memcpy(&seen, (const char *)page->piece + i * sizeof(seen), sizeof(seen));
		see(x, some[i], &seen, error);
	}
}

/* What a member is told. */
static uint64_t answer_of(const struct libacp_exchange *x, const struct libacp_member *m)
{
	return x->error ? failed_state(x->error) : libacp_exchange_at(x, (int)m->number);
}

/* Tell up to WINDOW members. One whose state is another one now is not told. */
static void tell(struct libacp_exchange *x, struct libacp_member *const *some, unsigned int n)
{
	const struct libacp_page *page = own_page();
	acp_handle_t handles[WINDOW];
	unsigned int i;
	bool told;

	for (i = 0; i < n; i++)
		handles[i] = acp_cas8(piece_of(acp_rank()) + 8 * i, state_of(rank_of(x, some[i])),
				      some[i]->state, answer_of(x, some[i]), ACP_HANDLE_NULL);
	for (i = 0; i < n; i++) {
		told = !libacp_finish(handles[i]) && page->piece[i] == some[i]->state;
		some[i]->state = answer_of(x, some[i]);
		some[i]->progress = told && !x->error ? LIBACP_TOLD : LIBACP_GONE;
	}
}

/* Look at up to WINDOW members, or tell them. */
typedef void action_t(struct libacp_exchange *x, struct libacp_member *const *some,
		      unsigned int n);

/* Do something for all members of that progress. Returns how many still have it. */
static unsigned int for_all(struct libacp_exchange *x, enum libacp_progress which,
			    action_t *what)
{
	struct libacp_member *some[WINDOW], *m = x->members, *end = m + x->group->count;
	unsigned int n, left = 0;

	while (m < end) {
		for (n = 0; m < end && n < WINDOW; m++)
			if (m->number && m->progress == which)
				some[n++] = m;
		if (n)
			what(x, some, n);
		while (n)
			left += some[--n]->progress == which;
	}
	return left;
}

/*
 * Wait until no member has that progress. Those that are there are told of an error at once. If a
 * member is lost, others may have learnt of that before, and never come; those that come later find
 * out by themselves.
 */
static void await_all(struct libacp_exchange *x, enum libacp_progress which)
{
	uint64_t pause = 0;

	while (for_all(x, which, look)) {
		if (x->error)
			for_all(x, LIBACP_PRESENT, tell);
		if (x->lost && which == LIBACP_AWAITED && !x->confirming)
			return;
		libacp_sleep(libacp_backoff(&pause, PAUSE_MIN, PAUSE_MAX));
	}
}

static void make_members(struct libacp_exchange *x)
{
	int i;

	for (i = 0; i < x->group->count; i++)
		x->members[i] = (struct libacp_member){ .number = (uint32_t)i };
	memcpy(x->members[0].words, x->words, sizeof(x->words));
}

/* Without memory: tell the members one after the other. */
static void refuse(struct libacp_exchange *x)
{
	struct libacp_member m, *some = &m;
	uint64_t pause;
	int i;

	for (i = 1; i < x->group->count; i++) {
		m = (struct libacp_member){ .number = (uint32_t)i };
		pause = 0;
		for (look(x, &some, 1); m.progress == LIBACP_AWAITED; look(x, &some, 1))
			libacp_sleep(libacp_backoff(&pause, PAUSE_MIN, PAUSE_MAX));
		if (m.progress == LIBACP_PRESENT)
			tell(x, &some, 1);
	}
}

static void forget_members(struct libacp_exchange *x)
{
	libacp_scratch_put(x->table);
	free(x->members);
	x->table = NULL;
	x->members = NULL;
}

static void begin_first(struct libacp_exchange *x)
{
	const size_t count = (size_t)x->group->count;

	x->members = malloc(count * sizeof(*x->members));
	x->table = libacp_scratch_get(count * (x->entry + x->extra), &x->table_ga);
	x->error = x->words[0] ? 0 : -(int)x->words[1];
	if (x->members && x->table) {
		make_members(x);
		await_all(x, LIBACP_AWAITED);
		if (!x->error)
			x->error = x->fill(x, x->state);
		for_all(x, LIBACP_PRESENT, tell);
	} else {
		x->error = -ENOMEM;
		refuse(x);
	}
	if (x->error)
		forget_members(x);
}

/* Await those that were told the address of the table once more. */
static void confirm_first(struct libacp_exchange *x, int error)
{
	int i;

	x->error = error;
	x->confirming = true;
	for (i = 0; i < x->group->count; i++) {
		struct libacp_member *m = &x->members[i];

		if (m->number && m->progress == LIBACP_GONE && !x->error)
			x->error = -EHOSTDOWN;
		m->taken = false;
		m->progress = m->progress == LIBACP_TOLD ? LIBACP_AWAITED : m->progress;
	}
	await_all(x, LIBACP_AWAITED);
	for_all(x, LIBACP_PRESENT, tell);
	forget_members(x);
}

/* ---- Other members ---- */

/* Read at most PIECE bytes of a rank into the own page. Returns 0 or -errno. */
static int read_piece(acp_ga_t from, size_t size)
{
	return end_access(acp_copy(piece_of(acp_rank()), from, size, ACP_HANDLE_NULL),
			  acp_query_rank(from));
}

int libacp_exchange_read(void *to, acp_ga_t from, size_t size)
{
	size_t done, n;
	int error;

	for (done = 0; done < size; done += n) {
		n = size - done < PIECE ? size - done : PIECE;
		error = read_piece(from + done, n);
		if (error)
			return error;
		memcpy((char *)to + done, own_page()->piece, n);
	}
	return 0;
}

/* What the first member did when a member that waits for it last looked. */
struct first {
	uint64_t state, since;
	bool elsewhere;			/* it took part in another exchange */
};

/* Is the first member there? Returns 0 or -errno. */
static int check_first(const struct libacp_exchange *x, struct first *first)
{
	struct libacp_record seen;
	int error = read_piece(state_of(libacp_group_at(x->group, 0)), sizeof(seen));

	if (error)
		return error;
	memcpy(&seen, own_page()->piece, sizeof(seen));
	if (seen.state == failed_state(-EDEADLK) && first->elsewhere)
		return -EDEADLK;
	if (!is_busy(seen.state) || seen.group == x->id || seen.state != first->state)
		*first = (struct first){
			seen.state, libacp_now(), is_busy(seen.state) && seen.group != x->id,
		};
	return libacp_now() - first->since > other_ns() ? -EDEADLK : 0;
}

/* Is the next member there? The first one may have ended when it was lost. Returns 0 or -errno. */
static int check_next(const struct libacp_exchange *x, int *next)
{
	*next = (*next + 1) % x->group->count;
	return read_piece(state_of(libacp_group_at(x->group, *next)), sizeof(uint64_t));
}

/* Wait for the answer to a ticket. Returns 0 or -errno. */
static int await_answer(const struct libacp_exchange *x, uint64_t ticket, uint64_t *answer)
{
	uint64_t *state = &own_page()->exchange.state, pause = 0, seen;
	uint64_t check = libacp_now() + CHECK_NS;
	struct first first = { 0, libacp_now(), false };
	int error, next = 0;

	while ((*answer = __atomic_load_n(state, __ATOMIC_ACQUIRE)) == ticket) {
		libacp_sleep(libacp_backoff(&pause, PAUSE_MIN, PAUSE_MAX));
		if (libacp_now() < check)
			continue;
		error = check_first(x, &first);
		error = error ? error : check_next(x, &next);
		check = libacp_now() + CHECK_NS;
		seen = ticket;
		/* If it has just answered, that counts. */
		if (error && __atomic_compare_exchange_n(state, &seen, 0, false, __ATOMIC_ACQ_REL,
							 __ATOMIC_ACQUIRE))
			return error;
	}
	return 0;
}

/* Is it what the first member can answer? */
static int error_of(uint64_t answer)
{
	const uint64_t error = answer >> 8;

	if ((answer & 7) == 0 && answer)
		return 0;
	return (answer & 0xff) == FAILED && error && error < 4096 ? -(int)error : -EBADMSG;
}

/* Tell something, and wait for the answer. Returns 0 or -errno. */
static int ask(struct libacp_exchange *x, const uint64_t *words, uint64_t *answer)
{
	int error = await_answer(x, publish(x, words), answer);

	x->unanswered = error;
	return error ? error : error_of(*answer);
}

/* ---- All members ---- */

static void end(struct libacp_exchange *x)
{
	withdraw(x->error);
	libacp_quiet(x->quiet);
	pthread_mutex_unlock(&lock);
}

int libacp_exchange_begin(struct libacp_exchange *x)
{
	uint64_t answer = 0;

	pthread_mutex_lock(&lock);
	x->quiet = libacp_quiet(true);
	x->id = libacp_group_id(x->group);
	if (x->number) {
		x->error = ask(x, x->words, &answer);
		x->table_ga = answer - (size_t)x->number * x->entry;
	} else {
		publish(x, x->words);
		begin_first(x);
	}
	if (x->error)
		end(x);
	return x->error;
}

void libacp_exchange_leave(struct libacp_exchange *x)
{
	if (!x->number) {
		await_all(x, LIBACP_TOLD);
		forget_members(x);
	}
	end(x);
}

int libacp_exchange_confirm(struct libacp_exchange *x, int error)
{
	const uint64_t words[LIBACP_EXCHANGE_WORDS] = { CONFIRM, (uint64_t)-error };
	uint64_t answer;

	if (x->number)
		x->error = ask(x, words, &answer);
	else
		confirm_first(x, error);
	end(x);
	return error ? error : x->error;
}
