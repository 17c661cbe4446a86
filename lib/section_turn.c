// SPDX-License-Identifier: MIT
/* Whose turn it is in a section: stays that do not end, and waiting for those that do. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "section_part.h"

#define SPINS		30		/* looks at a near lock before sleeping */
#define PAUSE_FIRST	2000ull		/* ns */
#define PAUSE_MOST	2000000ull
#define DOUBT		20000000ull	/* ns of the same mark before asking for its owner */
#define PROBE		500000000ull	/* between tries to reach the owner */
#define TRIES		3		/* to find out what became of a stay */

/*
 * Stays that could not be ended are ended by whoever of this rank comes there
 * again.  Their marks are those of nobody who is inside or about to be: far
 * ones are all in a list; of near ones, which hardly ever fail, the others are kept.
 */
#define FORSAKEN_MOST	32u
static struct libacp_section *insiders;
static uint64_t forsaken[FORSAKEN_MOST];
static unsigned int forsaken_count;
static pthread_mutex_t forsaken_lock = PTHREAD_MUTEX_INITIALIZER;
uint64_t libacp_section_stamp;

struct libacp_section_times libacp_section_times = {
	.lease = 1000000000, .grace = 2000000000, .forsaken = 20000000000,
	.patience = 30000000000,
};

/*
 * What was issued within the lease is over when a node was silent for the
 * time-out of the job, or took nothing for three times as long: by then, who
 * issued it has failed.
 */
static void set_times(void)
{
	const char *text = getenv("ACP_TIMEOUT");
	const uint64_t ms = text ? strtoul(text, NULL, 10) : 10000;
	const uint64_t over = 2 * libacp_section_times.lease + 3000000 * ms;

	if (libacp_section_times.forsaken < over)
		libacp_section_times.forsaken = over;
	libacp_section_times.patience = libacp_section_times.forsaken + 10000000000;
}

void libacp_section_open(void)
{
	set_times();
	/* Any start: a rank that died does not live again in the same job. */
	__atomic_store_n(&libacp_section_stamp, libacp_now() ^ (uint64_t)getpid() << 20,
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

/* ---- Stays that could not be ended ---- */

static void forsake(uint64_t mark)
{
	pthread_mutex_lock(&forsaken_lock);
	forsaken[forsaken_count++ % FORSAKEN_MOST] = mark;
	pthread_mutex_unlock(&forsaken_lock);
}

static bool is_forsaken(uint64_t mark)
{
	const bool far = mark & FAR && owner_of(mark) == acp_rank();
	const struct libacp_section *s;
	unsigned int i;
	bool found = far;

	pthread_mutex_lock(&forsaken_lock);
	for (s = insiders; far && s; s = s->next)
		found = found && s->mark != mark && s->own != mark;
	for (i = 0; !far && i < FORSAKEN_MOST && i < forsaken_count; i++)
		found = found || forsaken[i] == mark;
	pthread_mutex_unlock(&forsaken_lock);
	return found;
}

void libacp_section_set_mark(struct libacp_section *s, uint64_t *which, uint64_t mark)
{
	if (s->near) {
		*which = mark;
		return;
	}
	pthread_mutex_lock(&forsaken_lock);
	*which = mark;
	pthread_mutex_unlock(&forsaken_lock);
}

void libacp_section_join(struct libacp_section *s)
{
	pthread_mutex_lock(&forsaken_lock);
	s->next = insiders;
	insiders = s;
	pthread_mutex_unlock(&forsaken_lock);
}

void libacp_section_part(struct libacp_section *s)
{
	struct libacp_section **i;

	pthread_mutex_lock(&forsaken_lock);
	for (i = &insiders; *i && *i != s; i = &(*i)->next)
		;
	if (*i)
		*i = s->next;
	pthread_mutex_unlock(&forsaken_lock);
}

/* ---- Taking over ---- */

/* Lock, commit and count: 0 or -errno. */
static int read_head(struct libacp_section *s, uint64_t head[3])
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

/* The journal that stands there becomes what is staged; it may be nonsense.  0 or -errno. */
static int load_journal(struct libacp_section *s, uint64_t count)
{
	const size_t size = count * sizeof(s->stores[0]);
	const acp_ga_t from = s->at + JOURNAL + 8;
	int error;

	if (count > LIBACP_SECTION_STORES || (s->near && from - s->low + size > s->span))
		return -EUCLEAN;
	s->count = (unsigned int)count;
	if (s->near)
		return 0;
	error = libacp_finish(acp_copy(s->scratch_ga + OWN_STORES, from, size, ACP_HANDLE_NULL));
	memcpy(s->far, s->scratch + OWN_STORES, size);
	return error;
}

/* Has a far stay put its journal, and all of it?  1, 0 or -errno. */
static int is_whole(struct libacp_section *s, uint64_t mark, const uint64_t head[3])
{
	uint64_t words[2 + 2 * LIBACP_SECTION_STORES] = { mark, head[2] };
	int error = load_journal(s, head[2]);

	if (error)
		return error == -EUCLEAN ? 0 : error;
	memcpy(words + 2, s->stores, s->count * sizeof(s->stores[0]));
	return head[1] == libacp_section_digest(words, s->count);
}

/* Is there something to do again for the stay of that mark?  1, 0 or -errno. */
static int is_complete(struct libacp_section *s, uint64_t mark, const uint64_t head[3])
{
	if (mark & REDO)
		return 1;
	return mark & FAR ? is_whole(s, mark, head) : head[1] == mark;
}

static int redo(struct libacp_section *s, uint64_t count)
{
	int error = load_journal(s, count);
	unsigned int i;

	for (i = 0; !error && i < s->count; i++)
		if (s->stores[i].ga % 8)
			error = -EUCLEAN;
	return error ? error : libacp_section_do_stores(s);
}

/*
 * End the stay of a mark whose owner does not go on: 1 if its stores are all
 * done, 0 if none was, -EAGAIN if somebody else has ended it, or -errno; the
 * mark is then what has to be ended.  Who dies in here leaves a mark that says
 * whether there is something to redo.
 */
static int end_stay(struct libacp_section *s, uint64_t *mark)
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
	libacp_section_set_mark(s, &s->own, own);
	s->since = s->near ? 0 : libacp_now();
	error = libacp_section_change_lock(s, *mark, own, &found);
	if (!error && found != *mark)
		error = -EAGAIN;
	if (!error) {
		*mark = own;
		error = complete ? redo(s, head[2]) : 0;
	}
	if (!error)
		error = libacp_section_change_lock(s, own, 0, &found);
	libacp_section_set_mark(s, &s->own, 0);
	if (error && error != -EAGAIN && s->near)
		forsake(own);
	return error ? error : complete;
}

int libacp_section_settle(struct libacp_section *s)
{
	const unsigned int count = s->count;
	uint64_t head[3], mark = s->mark;
	int tries, result = -EIO;

	for (tries = 0; tries < TRIES; tries++) {
		result = end_stay(s, &mark);
		if (result >= 0 || (result == -EAGAIN && !count))
			return result > 0 && count ? 0 : -EAGAIN;
		if (result == -EAGAIN) {
			result = read_head(s, head);
			if (!result)
				return head[1] == s->commit ? 0 : -EIO;
		}
		if (acpx_peer_state(acp_query_rank(s->at)) == ACPX_PEER_DOWN)
			break;
		libacp_sleep(PAUSE_MOST);
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

/* Speak to a rank, for nobody notices the silence of whom nobody speaks to.  Has it left? */
static bool probe(struct libacp_section *s, int owner)
{
	if (!s->scratch)
		s->scratch = libacp_scratch_get(SCRATCH_BYTES, &s->scratch_ga);
	if (!s->scratch)
		return false;
	return libacp_finish(acp_copy(s->scratch_ga + FETCHED, acp_query_starter_ga(owner), 1,
				      ACP_HANDLE_NULL)) == -EHOSTDOWN;
}

/*
 * Has that rank left, for sure?  Who is on our node, or on the section's,
 * which has just answered, is not taken for silent.
 */
static bool has_left(struct libacp_section *s, struct libacp_section_turn *t, int owner)
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

/* Who is on another node than the section does nothing there any more once its rank is gone. */
static bool is_cut_off(const struct libacp_section *s, int owner)
{
	const int rank = acp_query_rank(s->at);

	return !same_node(owner, rank) && acpx_peer_state(rank) == ACPX_PEER_DOWN;
}

/* May the mark that was found be taken over by now? */
static bool given_up(struct libacp_section *s, struct libacp_section_turn *t)
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
		return now - t->since >= libacp_section_times.forsaken &&
		       !same_node(owner, acp_query_rank(s->at));
	}
	if (!t->left_since)
		t->left_since = now;
	return now - t->left_since >= libacp_section_times.grace;
}

static void pause_turn(const struct libacp_section *s, struct libacp_section_turn *t)
{
	if (s->near && t->spins++ < SPINS) {
#if __has_builtin(__builtin_ia32_pause)
		__builtin_ia32_pause();
#endif
		return;
	}
	libacp_sleep(t->pause);
	t->pause = t->pause < PAUSE_MOST ? 2 * t->pause : PAUSE_MOST;
}

int libacp_section_wait(struct libacp_section *s, struct libacp_section_turn *t, uint64_t found)
{
	uint64_t now = libacp_now();
	int error;

	if (found == LIBACP_SECTION_NEVER)
		return -ENXIO;
	if (owner_of(found) < 0 || owner_of(found) >= acp_procs())
		return -EUCLEAN;
	if (!t->begin)
		*t = (struct libacp_section_turn){ .begin = now, .pause = PAUSE_FIRST };
	if (found != t->seen) {
		t->seen = found;
		t->since = now;
		t->left_since = 0;
		t->probed = 0;
	}
	if (given_up(s, t)) {
		error = end_stay(s, &found);
		if (error != -ETIME)
			return error < 0 && error != -EAGAIN ? error : 0;
	}
	if (now - t->begin >= libacp_section_times.patience)
		return -ETIMEDOUT;
	pause_turn(s, t);
	return 0;
}
