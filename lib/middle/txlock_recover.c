// SPDX-License-Identifier: MIT
/* Journaled locks: waiting for the holder, and recovery of holds that do not end. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "middle/backoff.h"
#include "middle/txlock_part.h"

#define SPINS		30		/* polls of a near lock before sleeping */
#define PAUSE_FIRST	2000ull		/* ns */
#define PAUSE_MAX	2000000ull
/* ns for which a mark is unchanged before its owner is checked */
#define DOUBT		20000000ull
#define PROBE		500000000ull	/* interval of attempts to reach the owner */
#define TRIES		3		/* attempts to determine the result of a hold */

/*
 * Holds that could not be ended are ended by any thread of this rank that finds their marks later.
 * Such marks are recognized as follows: all remote holds in progress are in a list, so a remote
 * mark of this rank that is not in the list is abandoned. Of near holds, which hardly ever fail,
 * the abandoned marks are recorded.
 */
#define FORSAKEN_MAX	32u
static struct libacp_txlock *insiders;
static uint64_t forsaken[FORSAKEN_MAX];
static unsigned int forsaken_count;
static pthread_mutex_t forsaken_lock = PTHREAD_MUTEX_INITIALIZER;
uint64_t libacp_txlock_stamp;

/*
 * Accesses issued within the lease are over when the node was silent for the timeout of the job, or
 * made no progress for three times as long: by then they have failed at their initiator.
 */
static void set_times(void)
{
	const uint64_t over = 2 * libacp_txlock_times.lease + 3000000 * libacp_timeout_ms();

	if (libacp_txlock_times.forsaken < over)
		libacp_txlock_times.forsaken = over;
	libacp_txlock_times.patience = libacp_txlock_times.forsaken + 10000000000;
}

void libacp_txlock_open(void)
{
	set_times();
	/* Any start value is good, because a rank that died does not come back in the same job. */
	__atomic_store_n(&libacp_txlock_stamp, libacp_now() ^ (uint64_t)getpid() << 20,
			 __ATOMIC_RELAXED);
	pthread_mutex_lock(&forsaken_lock);
	forsaken_count = 0;
	insiders = NULL;
	pthread_mutex_unlock(&forsaken_lock);
}

static int owner_of(uint64_t mark)
{
	return (int)(mark & RANK_MASK) - 1;
}

/* ---- Abandoned holds ---- */

static void forsake(uint64_t mark)
{
	pthread_mutex_lock(&forsaken_lock);
	forsaken[forsaken_count++ % FORSAKEN_MAX] = mark;
	pthread_mutex_unlock(&forsaken_lock);
}

static bool is_forsaken(uint64_t mark)
{
	const bool far = mark & FAR && owner_of(mark) == acp_rank();
	const struct libacp_txlock *s;
	unsigned int i;
	bool found = far;

	pthread_mutex_lock(&forsaken_lock);
	for (s = insiders; far && s; s = s->next)
		found = found && s->mark != mark && s->own != mark;
	for (i = 0; !far && i < FORSAKEN_MAX && i < forsaken_count; i++)
		found = found || forsaken[i] == mark;
	pthread_mutex_unlock(&forsaken_lock);
	return found;
}

void libacp_txlock_set_mark(struct libacp_txlock *s, uint64_t *which, uint64_t mark)
{
	if (s->near) {
		*which = mark;
		return;
	}
	pthread_mutex_lock(&forsaken_lock);
	*which = mark;
	pthread_mutex_unlock(&forsaken_lock);
}

void libacp_txlock_join(struct libacp_txlock *s)
{
	pthread_mutex_lock(&forsaken_lock);
	s->next = insiders;
	insiders = s;
	pthread_mutex_unlock(&forsaken_lock);
}

void libacp_txlock_part(struct libacp_txlock *s)
{
	struct libacp_txlock **i;

	pthread_mutex_lock(&forsaken_lock);
	for (i = &insiders; *i && *i != s; i = &(*i)->next)
		;
	if (*i)
		*i = s->next;
	pthread_mutex_unlock(&forsaken_lock);
}

/* ---- Taking over ---- */

/* Read lock, commit and count. Returns 0 or -errno. */
static int read_head(struct libacp_txlock *s, uint64_t head[3])
{
	unsigned int i;
	int error;

	if (s->near) {
		for (i = 0; i < 3; i++)
			head[i] = __atomic_load_n(near_word(s, s->at) + i, __ATOMIC_ACQUIRE);
		return 0;
	}
	error = libacp_finish(acp_copy(s->scratch_ga + HEAD, s->at, 24, ACP_HANDLE_NULL));
	memcpy(head, s->scratch + HEAD, 24);
	return error;
}

/* Load the journal, which may be garbage, as staged stores. Returns 0 or -errno. */
static int load_journal(struct libacp_txlock *s, uint64_t count)
{
	const size_t size = count * sizeof(s->stores[0]);
	const acp_ga_t from = s->at + JOURNAL + 8;
	int error;

	if (count > LIBACP_TXLOCK_STORES || (s->near && from - s->low + size > s->span))
		return -EUCLEAN;
	s->count = (unsigned int)count;
	if (s->near)
		return 0;
	error = libacp_finish(acp_copy(s->scratch_ga + OWN_STORES, from, size, ACP_HANDLE_NULL));
	memcpy(s->far, s->scratch + OWN_STORES, size);
	return error;
}

/* Check whether the journal of a remote hold is complete. Returns 1, 0 or -errno. */
static int is_whole(struct libacp_txlock *s, uint64_t mark, const uint64_t head[3])
{
	uint64_t words[2 + 2 * LIBACP_TXLOCK_STORES] = { mark, head[2] };
	int error = load_journal(s, head[2]);

	if (error)
		return error == -EUCLEAN ? 0 : error;
	memcpy(words + 2, s->stores, s->count * sizeof(s->stores[0]));
	return head[1] == libacp_txlock_digest(words, s->count);
}

/* Check whether the stores of the hold with this mark must be repeated. Returns 1, 0 or -errno. */
static int is_complete(struct libacp_txlock *s, uint64_t mark, const uint64_t head[3])
{
	if (mark & REDO)
		return 1;
	return mark & FAR ? is_whole(s, mark, head) : head[1] == mark;
}

static int redo(struct libacp_txlock *s, uint64_t count)
{
	int error = load_journal(s, count);
	unsigned int i;

	for (i = 0; !error && i < s->count; i++)
		if (s->stores[i].ga % 8)
			error = -EUCLEAN;
	return error ? error : libacp_txlock_do_stores(s);
}

/*
 * End the hold of a mark whose owner does not continue. Returns 1 if all its stores are executed, 0
 * if none was, -EAGAIN if another rank has ended it, or -errno; *mark is then the mark that remains
 * to be ended. If this process dies meanwhile, it leaves a mark that says whether stores must be
 * repeated.
 */
static int end_hold(struct libacp_txlock *s, uint64_t *mark)
{
	uint64_t head[3], found, own;
	int complete, error = read_head(s, head);

	if (error)
		return error;
	if (head[0] != *mark)
		return -EAGAIN;
	complete = is_complete(s, *mark, head);
	if (complete < 0)
		return complete;
	own = new_mark(s) | (complete ? REDO : 0);
	libacp_txlock_set_mark(s, &s->own, own);
	s->since = s->near ? 0 : libacp_now();
	error = libacp_txlock_change_lock(s, *mark, own, &found);
	if (!error && found != *mark)
		error = -EAGAIN;
	if (!error) {
		*mark = own;
		error = complete ? redo(s, head[2]) : 0;
	}
	if (!error)
		error = libacp_txlock_change_lock(s, own, 0, &found);
	libacp_txlock_set_mark(s, &s->own, 0);
	if (error && error != -EAGAIN && s->near)
		forsake(own);
	return error ? error : complete;
}

int libacp_txlock_settle(struct libacp_txlock *s)
{
	const unsigned int count = s->count;
	uint64_t head[3], mark = s->mark;
	int tries, result = -EIO;

	for (tries = 0; tries < TRIES; tries++) {
		result = end_hold(s, &mark);
		if (result >= 0 || (result == -EAGAIN && !count))
			return result > 0 && count ? 0 : -EAGAIN;
		if (result == -EAGAIN) {
			result = read_head(s, head);
			if (!result)
				return head[1] == s->commit ? 0 : -EIO;
		}
		if (acpx_peer_state(acp_query_rank(s->at)) == ACPX_PEER_DOWN)
			break;
		libacp_sleep(PAUSE_MAX);
	}
	if (s->near)
		forsake(mark);
	return result;
}

/* ---- Waiting ---- */

static bool same_node(int a, int b)
{
	return acpx_query_node(a) == acpx_query_node(b);
}

/*
 * Access memory of a rank, because its silence is noticed only if it is accessed. True if the rank
 * has left.
 */
static bool probe(struct libacp_txlock *s, int owner)
{
	if (!s->scratch)
		s->scratch = libacp_scratch_get(SCRATCH_BYTES, &s->scratch_ga);
	if (!s->scratch)
		return false;
	return libacp_finish(acp_copy(s->scratch_ga + FETCHED, acp_query_starter_ga(owner), 1,
				      ACP_HANDLE_NULL)) == -EHOSTDOWN;
}

/*
 * True if the rank has certainly left. Ranks on our node or on that of the lock, which has just
 * answered, need no probe.
 */
static bool has_left(struct libacp_txlock *s, struct libacp_txlock_turn *t, int owner)
{
	uint64_t now;

	if (!same_node(owner, acp_rank()) && !same_node(owner, acp_query_rank(s->at))) {
		now = libacp_now();
		if (now - t->probed >= PROBE) {
			t->left = probe(s, owner);
			t->probed = libacp_now();
		}
		if (!t->left)
			return false;
	}
	return acpx_peer_state(owner) == ACPX_PEER_DOWN;
}

/*
 * True if the owner is on another node than the lock, whose rank is gone: it can change nothing
 * there any more.
 */
static bool is_cut_off(const struct libacp_txlock *s, int owner)
{
	const int rank = acp_query_rank(s->at);

	return !same_node(owner, rank) && acpx_peer_state(rank) == ACPX_PEER_DOWN;
}

/* True if the lock with the mark that was found may be taken over. */
static bool given_up(struct libacp_txlock *s, struct libacp_txlock_turn *t)
{
	const int owner = owner_of(t->seen);
	uint64_t now = libacp_now();
	bool left;

	if (is_forsaken(t->seen))
		return true;
	if (now - t->since < DOUBT)
		return false;
	left = is_cut_off(s, owner) || has_left(s, t, owner);
	now = libacp_now();
	if (!left) {
		t->left_since = 0;
		return now - t->since >= libacp_txlock_times.forsaken &&
		       !same_node(owner, acp_query_rank(s->at));
	}
	if (!t->left_since)
		t->left_since = now;
	return now - t->left_since >= libacp_txlock_times.grace;
}

static void pause_turn(const struct libacp_txlock *s, struct libacp_txlock_turn *t)
{
	if (s->near && t->spins++ < SPINS) {
#if __has_builtin(__builtin_ia32_pause)
		__builtin_ia32_pause();
#endif
		return;
	}
	libacp_sleep(libacp_backoff(&t->pause, PAUSE_FIRST, PAUSE_MAX));
}

int libacp_txlock_wait(struct libacp_txlock *s, struct libacp_txlock_turn *t, uint64_t found)
{
	uint64_t now = libacp_now();
	int error;

	if (found == LIBACP_TXLOCK_NEVER)
		return -ENXIO;
	if (owner_of(found) < 0 || owner_of(found) >= acp_procs())
		return -EUCLEAN;
	if (!t->begin)
		*t = (struct libacp_txlock_turn){ .begin = now };
	if (found != t->seen) {
		t->seen = found;
		t->since = now;
		t->left_since = 0;
		t->probed = 0;
	}
	if (given_up(s, t)) {
		error = end_hold(s, &found);
		if (error != -ETIME)
			return error < 0 && error != -EAGAIN ? error : 0;
	}
	if (now - t->begin >= libacp_txlock_times.patience)
		return -ETIMEDOUT;
	pause_turn(s, t);
	return 0;
}
