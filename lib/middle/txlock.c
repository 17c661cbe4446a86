// SPDX-License-Identifier: MIT
/* Journaled locks: entering, committing and leaving. */
#include <errno.h>
#include <string.h>

#include "middle/txlock_part.h"

/* ---- Stores ---- */

/* Return how many of the stores, from the first one on, go to adjacent words. */
static unsigned int run_of(const struct libacp_store *stores, unsigned int count)
{
	unsigned int i = 1;

	while (i < count && stores[i].ga == stores[0].ga + 8u * i)
		i++;
	return i;
}

/* Begin a chain with its first access. */
static void begin_chain(struct libacp_txlock *s, acp_handle_t first)
{
	s->link = first;
	s->broken = first == (acp_handle_t)ACP_HANDLE_NULL;
}

/*
 * Append a copy to the chain, unless the chain is broken or this process was delayed for so long
 * that others may have taken over the lock.
 */
static void chain_copy(struct libacp_txlock *s, acp_ga_t dst, acp_ga_t src, size_t size)
{
	acp_handle_t h;

	s->broken = s->broken || libacp_txlock_late(s);
	if (s->broken)
		return;
	h = acp_copy(dst, src, size, s->link);
	if (h == (acp_handle_t)ACP_HANDLE_NULL)
		s->broken = true;
	else
		s->link = h;
}

/* Wait for the chain. Returns 0 if all accesses were issued and succeeded. */
static int finish_chain(struct libacp_txlock *s)
{
	int error = libacp_finish(s->link);

	return !error && s->broken ? -EIO : error;
}

/* Issue the staged stores, each ordered after the previous one. */
static void issue_stores(struct libacp_txlock *s)
{
	unsigned int i, run;

	for (i = 0; i < s->count; i++)
		*scratch_word(s, VALUES + 8u * i) = s->stores[i].value;
	for (i = 0; i < s->count; i += run) {
		run = run_of(s->stores + i, s->count - i);
		chain_copy(s, s->stores[i].ga, s->scratch_ga + VALUES + 8u * i, 8u * run);
	}
}

/*
 * Issue the end of a hold, each access ordered after the previous ones: commit and journal, the
 * stores, and clearing a word.
 */
static void issue_end(struct libacp_txlock *s, unsigned int clear)
{
	const acp_ga_t here = s->scratch_ga;
	const size_t stores = s->count * sizeof(s->stores[0]);
	uint64_t *words = scratch_word(s, OWN_COMMIT);

	*scratch_word(s, ZERO) = 0;
	libacp_chain();
	if (!s->count) {
		begin_chain(s, acp_copy(s->at + clear, here + ZERO, 8, ACP_HANDLE_NULL));
		return;
	}
	words[0] = s->mark;
	words[1] = s->count;
	memcpy(words + 2, s->stores, stores);
	s->commit = libacp_txlock_digest(words, s->count);
	words[0] = s->commit;
	begin_chain(s, acp_copy(s->at + COMMIT, here + OWN_COMMIT, 16 + stores, ACP_HANDLE_NULL));
	issue_stores(s);
	chain_copy(s, s->at + clear, here + ZERO, 8);
}

/* ---- Entering ---- */

/* Return the error of the first fetch that failed; later ones only waited for it. */
static int why_not_fetched(const acp_handle_t *handles, unsigned int n, int error)
{
	int first = 0;

	while (n-- && !first)
		first = libacp_ended(*handles++);
	return first ? first : error;
}

/* Try to lock and fetch in one round trip. Returns 0 or -errno. */
static int try_far(struct libacp_txlock *s, struct libacp_fetch *fetches, unsigned int n,
		   uint64_t *found)
{
	acp_handle_t lock, handles[LIBACP_TXLOCK_READS];
	unsigned int i, at = FETCHED;
	int error;

	s->since = libacp_now();
	libacp_chain();
	lock = acp_cas8(s->scratch_ga + FOUND, s->at, 0, s->mark, ACP_HANDLE_NULL);
	begin_chain(s, lock);
	for (i = 0; i < n; i++) {
		chain_copy(s, s->scratch_ga + at, fetches[i].ga, fetches[i].size);
		handles[i] = s->link;
		fetches[i].bytes = s->scratch + at;
		at += (fetches[i].size + 7) & ~7u;
	}
	error = finish_chain(s);
	*found = *scratch_word(s, FOUND);
	if (!error || lock == (acp_handle_t)ACP_HANDLE_NULL)
		return error;
	if (libacp_ended(lock)) {
		/* the cause, not that later accesses waited for it */
		error = libacp_ended(lock);
	} else {
		if (*found)
			return 0;
		error = why_not_fetched(handles, n, error);
	}
	libacp_txlock_settle(s);	/* we may hold the lock, or do */
	return error;
}

/* Try to lock. Returns 0 if we hold the lock now, else the mark of its holder. */
static uint64_t try_near(struct libacp_txlock *s, struct libacp_fetch *fetches, unsigned int n)
{
	uint64_t found = 0;
	unsigned int i;

	if (!__atomic_compare_exchange_n(near_word(s, s->at), &found, s->mark, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return found;
	for (i = 0; i < n; i++)
		fetches[i].bytes = s->near + (fetches[i].ga - s->low);
	return 0;
}

static int take_turn(struct libacp_txlock *s, struct libacp_fetch *fetches, unsigned int n)
{
	struct libacp_txlock_turn turn = { .begin = 0 };
	uint64_t found;
	int error;

	for (;;) {
		error = 0;
		if (s->near)
			found = try_near(s, fetches, n);
		else
			error = try_far(s, fetches, n, &found);
		if (error == -EIO)	/* not ours: an access issued before has failed */
			found = s->mark;
		else if (error || !found)
			return error;
		error = libacp_txlock_wait(s, &turn, found);
		if (error)
			return error;
		libacp_txlock_set_mark(s, &s->mark, new_mark(s));
		s->count = 0;
	}
}

/* Free the resources of a hold that ended or never began. */
static void let_go(struct libacp_txlock *s)
{
	s->open = false;
	if (!s->near)
		libacp_txlock_part(s);
	if (s->scratch)
		libacp_scratch_put(s->scratch);
	s->scratch = NULL;
}

int libacp_txlock_enter(struct libacp_txlock *s, acp_ga_t at, acp_ga_t low, uint64_t span,
			struct libacp_fetch *fetches, unsigned int n)
{
	return libacp_txlock_enter_near(s, at, low, span, acp_query_address(low), fetches, n);
}

int libacp_txlock_enter_near(struct libacp_txlock *s, acp_ga_t at, acp_ga_t low, uint64_t span,
			     char *near, struct libacp_fetch *fetches, unsigned int n)
{
	bool quiet;
	int error;

	s->at = at;
	s->low = low;
	s->span = span;
	s->near = near;
	s->mark = new_mark(s);
	s->own = 0;
	s->scratch = NULL;
	s->count = 0;
	s->open = false;
	s->stores = s->far;
	if (s->near) {
		s->stores = (struct libacp_store *)(void *)near_word(s, at + JOURNAL + 8);
		if (!try_near(s, fetches, n)) {
			s->open = true;
			return 0;
		}
	} else {
		s->scratch = libacp_scratch_get(SCRATCH_BYTES, &s->scratch_ga);
		if (!s->scratch)
			return -ENOMEM;
		libacp_txlock_join(s);
	}
	quiet = libacp_quiet(true);
	error = take_turn(s, fetches, n);
	libacp_quiet(quiet);
	if (error)
		let_go(s);
	else
		s->open = true;
	return error;
}

/* Extend the hold beyond the lease by a new mark, which others see. Returns 0 or -errno. */
static int renew(struct libacp_txlock *s)
{
	uint64_t found, since = libacp_now();
	int error;

	if (since - s->since < libacp_txlock_times.lease / 2)
		return 0;
	libacp_txlock_set_mark(s, &s->own, new_mark(s));
	error = libacp_txlock_change_lock(s, s->mark, s->own, &found);
	if (!error && found != s->mark)
		error = -EAGAIN;
	libacp_txlock_set_mark(s, &s->mark, error ? 0 : s->own);
	libacp_txlock_set_mark(s, &s->own, 0);
	s->since = since;
	return error;
}

int libacp_txlock_fetch(struct libacp_txlock *s, struct libacp_fetch *fetch)
{
	bool quiet;
	int error;

	if (s->near) {
		fetch->bytes = s->near + (fetch->ga - s->low);
		return 0;
	}
	fetch->bytes = s->scratch + FETCHED;
	quiet = libacp_quiet(true);
	error = renew(s);
	if (!error)
		error = libacp_finish(acp_copy(s->scratch_ga + FETCHED, fetch->ga, fetch->size,
					       ACP_HANDLE_NULL));
	libacp_quiet(quiet);
	return error;
}

/* ---- Leaving ---- */

static int commit_near(struct libacp_txlock *s)
{
	uint64_t *words = near_word(s, s->at);

	s->commit = s->mark;
	words[JOURNAL / 8] = s->count;
	__atomic_store_n(&words[COMMIT / 8], s->mark, __ATOMIC_RELEASE);
	return libacp_txlock_do_stores(s);
}

/* Commit and clear one of the words: LOCK to leave, COMMIT to keep the lock. */
static int commit(struct libacp_txlock *s, unsigned int then)
{
	int error;

	if (s->near) {
		error = s->count ? commit_near(s) : 0;
		if (!error)
			__atomic_store_n(near_word(s, s->at + then), 0, __ATOMIC_RELEASE);
		return error;
	}
	if (libacp_now() - s->since > libacp_txlock_times.lease) {
		s->count = 0;
		return -ETIME;	/* others may assume that the lock was abandoned */
	}
	issue_end(s, then);
	return finish_chain(s);
}

/* Returns -EAGAIN even if the stores were made, because the lock was released. */
int libacp_txlock_commit(struct libacp_txlock *s)
{
	bool quiet = libacp_quiet(true);
	int error = 0;

	if (!s->mark) {
		error = -EAGAIN;
	} else if (s->count && commit(s, COMMIT)) {
		error = libacp_txlock_settle(s);
		error = error ? error : -EAGAIN;
	}
	libacp_quiet(quiet);
	s->count = 0;
	if (error)
		let_go(s);
	return error;
}

int libacp_txlock_leave(struct libacp_txlock *s)
{
	bool quiet;
	int error;

	if (s->near && !s->count) {
		__atomic_store_n(near_word(s, s->at), 0, __ATOMIC_RELEASE);
		let_go(s);
		return 0;
	}
	quiet = libacp_quiet(true);
	error = s->mark ? 0 : -EAGAIN;
	if (s->mark && commit(s, LOCK))
		error = libacp_txlock_settle(s);
	libacp_quiet(quiet);
	let_go(s);
	return error;
}

void libacp_txlock_drop(struct libacp_txlock *s)
{
	s->count = 0;
	if (s->open)
		libacp_txlock_leave(s);
}
