// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "section.h"

#define RANK_MASK	0xffffffull
#define REDO		(1ull << 24)	/* in a mark: the journal is complete, whoever wrote it */
#define FAR		(1ull << 25)	/* ... : who has it is not near the section */
#define STAMP_SHIFT	26

#define SPINS		30		/* looks at a near lock before sleeping */
#define PAUSE_FIRST	2000ull		/* ns */
#define PAUSE_MOST	2000000ull
#define DOUBT		20000000ull	/* ns of the same mark before asking for its owner */
#define PROBE		500000000ull	/* between tries to reach the owner */
#define TRIES		3		/* to find out what became of a stay */

/* The words, as bytes from the first one. */
#define LOCK		0u
#define COMMIT		8u
#define JOURNAL		16u		/* count, then stores */

/* What is where in the piece of scratch memory. */
#define FOUND		0u		/* former value of the lock */
#define HEAD		8u		/* lock, commit and count, as read */
#define ZERO		32u
#define OWN_MARK	40u
#define FETCHED		64u
#define FETCH_MOST	256u
#define OWN_JOURNAL	(FETCHED + FETCH_MOST)
#define VALUES		(OWN_JOURNAL + 8u + 16u * LIBACP_SECTION_STORES)

#define SCRATCH_BYTES	(VALUES + 8u * LIBACP_SECTION_STORES)

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
static uint64_t stamp;

struct libacp_section_times libacp_section_times = {
	.lease = 1000000000, .grace = 2000000000, .forsaken = 20000000000,
	.patience = 30000000000,
};

/* Waiting for somebody else. */
struct turn {
	uint64_t begin;
	uint64_t seen, since;		/* whose mark, since when */
	uint64_t left_since;		/* known to be gone; 0: it is not */
	uint64_t probed, pause;
	bool left;			/* what the last probe said */
	unsigned int spins;
};

void libacp_section_open(void)
{
	/* Any start: a rank that died does not live again in the same job. */
	__atomic_store_n(&stamp, libacp_now() ^ (uint64_t)getpid() << 20, __ATOMIC_RELAXED);
	pthread_mutex_lock(&forsaken_lock);
	forsaken_count = 0;
	insiders = NULL;
	pthread_mutex_unlock(&forsaken_lock);
}

static uint64_t new_mark(const struct libacp_section *s)
{
	uint64_t number = __atomic_add_fetch(&stamp, 1, __ATOMIC_RELAXED);

	return number << STAMP_SHIFT | (s->near ? 0 : FAR) | (uint64_t)(acp_rank() + 1);
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

/* A mark that is going to be tried: of the stay, or to end another one. */
static void set_mark(struct libacp_section *s, uint64_t *which, uint64_t mark)
{
	if (s->near) {
		*which = mark;
		return;
	}
	pthread_mutex_lock(&forsaken_lock);
	*which = mark;
	pthread_mutex_unlock(&forsaken_lock);
}

static void join_insiders(struct libacp_section *s)
{
	pthread_mutex_lock(&forsaken_lock);
	s->next = insiders;
	insiders = s;
	pthread_mutex_unlock(&forsaken_lock);
}

static void leave_insiders(struct libacp_section *s)
{
	struct libacp_section **i;

	pthread_mutex_lock(&forsaken_lock);
	for (i = &insiders; *i && *i != s; i = &(*i)->next)
		;
	if (*i)
		*i = s->next;
	pthread_mutex_unlock(&forsaken_lock);
}

/* ---- The words, near or far ---- */

static uint64_t *near_word(const struct libacp_section *s, acp_ga_t ga)
{
	return (uint64_t *)(void *)(s->near + (ga - s->low));
}

static uint64_t *scratch_word(const struct libacp_section *s, unsigned int at)
{
	return (uint64_t *)(void *)(s->scratch + at);
}

/* Replace the lock if it is as expected; *found is what it was.  0 or -errno. */
static int change_lock(struct libacp_section *s, uint64_t expected, uint64_t mark,
		       uint64_t *found)
{
	int error;

	*found = expected;
	if (s->near) {
		__atomic_compare_exchange_n(near_word(s, s->at), found, mark, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		return 0;
	}
	error = libacp_finish(acp_cas8(s->scratch_ga + FOUND, s->at, expected, mark,
				       ACP_HANDLE_NULL));
	*found = *scratch_word(s, FOUND);
	return error;
}

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

/* ---- Stores ---- */

/* How many stores from the first on go to words side by side. */
static unsigned int run_of(const struct libacp_store *stores, unsigned int count)
{
	unsigned int i = 1;

	while (i < count && stores[i].ga == stores[0].ga + 8u * i)
		i++;
	return i;
}

/* Begin a chain with its first access. */
static void begin_chain(struct libacp_section *s, acp_handle_t first)
{
	s->link = first;
	s->broken = first == (acp_handle_t)ACP_HANDLE_NULL;
}

/* Continue it; but not if it is broken. */
static void chain_copy(struct libacp_section *s, acp_ga_t dst, acp_ga_t src, size_t size)
{
	acp_handle_t h;

	if (s->broken)
		return;
	h = acp_copy(dst, src, size, s->link);
	if (h == (acp_handle_t)ACP_HANDLE_NULL)
		s->broken = true;
	else
		s->link = h;
}

/* Wait for what there is of it: 0 if that is all and went well. */
static int finish_chain(struct libacp_section *s)
{
	int error = libacp_finish(s->link);

	return !error && s->broken ? -EIO : error;
}

/* The staged stores, each behind the one before. */
static void issue_stores(struct libacp_section *s)
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
 * The end of a stay, each access behind the ones before: journal, its mark,
 * the stores, and a word to clear.
 */
static void issue_end(struct libacp_section *s, unsigned int clear)
{
	const acp_ga_t here = s->scratch_ga;
	const size_t stores = s->count * sizeof(s->stores[0]);

	*scratch_word(s, ZERO) = 0;
	*scratch_word(s, OWN_MARK) = s->mark;
	*scratch_word(s, OWN_JOURNAL) = s->count;
	memcpy(s->scratch + OWN_JOURNAL + 8, s->stores, stores);
	libacp_chain();
	if (s->count) {
		begin_chain(s, acp_copy(s->at + JOURNAL, here + OWN_JOURNAL, 8 + stores,
					ACP_HANDLE_NULL));
		chain_copy(s, s->at + COMMIT, here + OWN_MARK, 8);
		issue_stores(s);
		chain_copy(s, s->at + clear, here + ZERO, 8);
	} else {
		begin_chain(s, acp_copy(s->at + clear, here + ZERO, 8, ACP_HANDLE_NULL));
	}
}

/* A store to memory of another rank, that is gone with it. */
static bool lost(const struct libacp_section *s, acp_ga_t ga)
{
	int rank = acp_query_rank(ga);

	return rank != acp_query_rank(s->at) && acpx_peer_state(rank) == ACPX_PEER_DOWN;
}

static int store_far(struct libacp_section *s, const struct libacp_store *store)
{
	int error;

	if (!s->scratch)
		s->scratch = libacp_scratch_get(SCRATCH_BYTES, &s->scratch_ga);
	if (!s->scratch)
		return -ENOMEM;
	*scratch_word(s, VALUES) = store->value;
	error = libacp_finish(acp_copy(store->ga, s->scratch_ga + VALUES, 8, ACP_HANDLE_NULL));
	return error && lost(s, store->ga) ? 0 : error;
}

static int store_anywhere(struct libacp_section *s, const struct libacp_store *store)
{
	uint64_t *word = acp_query_address(store->ga);

	if (!word)
		return store_far(s, store);
	__atomic_store_n(word, store->value, __ATOMIC_RELEASE);
	return 0;
}

/* One by one, wherever they go: 0 or -errno. */
static int do_stores(struct libacp_section *s)
{
	const struct libacp_store *store = s->stores, *end = store + s->count;
	const acp_ga_t low = s->low;
	const uint64_t span = s->near ? s->span : 0;
	char *near = s->near;
	int error;

	for (; store < end; store++) {
		if (store->ga - low < span) {
			__atomic_store_n((uint64_t *)(void *)(near + (store->ga - low)),
					 store->value, __ATOMIC_RELEASE);
			continue;
		}
		error = store_anywhere(s, store);
		if (error)
			return error;
	}
	return 0;
}

/* ---- Taking over ---- */

/* The journal that stands there becomes what is staged: 0 or -errno. */
static int load_journal(struct libacp_section *s, uint64_t count)
{
	size_t size = count * sizeof(s->stores[0]);
	acp_ga_t from = s->at + JOURNAL + 8;
	int error;

	if (count > LIBACP_SECTION_STORES)
		return -EUCLEAN;
	s->count = (unsigned int)count;
	if (s->near)
		return 0;
	error = libacp_finish(acp_copy(s->scratch_ga + OWN_JOURNAL, from, size, ACP_HANDLE_NULL));
	memcpy(s->far, s->scratch + OWN_JOURNAL, size);
	return error;
}

static int redo(struct libacp_section *s, uint64_t count)
{
	int error = load_journal(s, count);

	return error ? error : do_stores(s);
}

/*
 * End the stay of a mark whose owner does not go on: 1 if its stores are all
 * done, 0 if none was, -EAGAIN if somebody else has ended it, or -errno.
 * Who dies in here leaves a mark that says whether there is something to redo.
 */
static int end_stay(struct libacp_section *s, uint64_t mark)
{
	uint64_t head[3], found, own;
	bool complete;
	int error = read_head(s, head);

	if (error)
		return error;
	if (head[0] != mark)
		return -EAGAIN;
	complete = mark & REDO || head[1] == mark;
	own = new_mark(s) | (complete ? REDO : 0);
	set_mark(s, &s->own, own);
	error = change_lock(s, mark, own, &found);
	if (!error && found != mark)
		error = -EAGAIN;
	if (!error && complete)
		error = redo(s, head[2]);
	if (!error)
		error = change_lock(s, own, 0, &found);
	set_mark(s, &s->own, 0);
	if (error && error != -EAGAIN && s->near)
		forsake(own);
	return error ? error : complete;
}

/*
 * What became of a stay of our own, some of whose accesses failed: 0 if its
 * stores are done, -EAGAIN if none was, -errno if that cannot be said.
 */
static int settle(struct libacp_section *s)
{
	const unsigned int count = s->count;
	uint64_t head[3];
	int tries, result = -EIO;

	for (tries = 0; tries < TRIES; tries++) {
		result = end_stay(s, s->mark);
		if (result >= 0)
			return result && count ? 0 : -EAGAIN;
		if (result == -EAGAIN) {
			result = read_head(s, head);
			if (!result)
				return head[1] == s->mark ? 0 : -EIO;
		}
		if (acpx_peer_state(acp_query_rank(s->at)) == ACPX_PEER_DOWN)
			break;
		libacp_sleep(PAUSE_MOST);
	}
	if (s->near)
		forsake(s->mark);
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
static bool has_left(struct libacp_section *s, struct turn *t, int owner)
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

/* May the mark that was found be taken over by now? */
static bool given_up(struct libacp_section *s, struct turn *t)
{
	const int owner = owner_of(t->seen);
	uint64_t now = libacp_now();
	bool left;

	if (is_forsaken(t->seen))
		return true;
	if (now - t->since < DOUBT)
		return false;
	left = has_left(s, t, owner);
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

static void pause_turn(const struct libacp_section *s, struct turn *t)
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

/* Somebody is inside: wait a little, or take over.  0: try again; or -errno. */
static int wait_turn(struct libacp_section *s, struct turn *t, uint64_t found)
{
	uint64_t now = libacp_now();
	int error;

	if (found == LIBACP_SECTION_NEVER)
		return -ENXIO;
	if (owner_of(found) < 0 || owner_of(found) >= acp_procs())
		return -EUCLEAN;
	if (!t->begin)
		*t = (struct turn){ .begin = now, .pause = PAUSE_FIRST };
	if (found != t->seen) {
		t->seen = found;
		t->since = now;
		t->left_since = 0;
		t->probed = 0;
	}
	if (given_up(s, t)) {
		error = end_stay(s, found);
		return error < 0 && error != -EAGAIN ? error : 0;
	}
	if (now - t->begin >= libacp_section_times.patience)
		return -ETIMEDOUT;
	pause_turn(s, t);
	return 0;
}

/* ---- Entering ---- */

/* Try to lock and fetch, in one round trip.  0 or -errno. */
static int try_far(struct libacp_section *s, struct libacp_fetch *fetches, unsigned int n,
		   uint64_t *found)
{
	unsigned int i, at = FETCHED;
	acp_handle_t lock;
	int error;

	s->since = libacp_now();
	libacp_chain();
	lock = acp_cas8(s->scratch_ga + FOUND, s->at, 0, s->mark, ACP_HANDLE_NULL);
	begin_chain(s, lock);
	for (i = 0; i < n; i++) {
		chain_copy(s, s->scratch_ga + at, fetches[i].ga, fetches[i].size);
		fetches[i].bytes = s->scratch + at;
		at += (fetches[i].size + 7) & ~7u;
	}
	error = finish_chain(s);
	*found = *scratch_word(s, FOUND);
	if (!error || lock == (acp_handle_t)ACP_HANDLE_NULL)
		return error;
	if (libacp_ended(lock))
		error = libacp_ended(lock);	/* not that others waited for it */
	else if (*found)
		return 0;
	settle(s);	/* it may be ours, or is */
	return error;
}

/* Whose mark was found: 0 if it is ours now. */
static uint64_t try_near(struct libacp_section *s, struct libacp_fetch *fetches, unsigned int n)
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

static int take_turn(struct libacp_section *s, struct libacp_fetch *fetches, unsigned int n)
{
	struct turn turn = { .begin = 0 };
	uint64_t found;
	int error;

	for (;;) {
		error = 0;
		if (s->near)
			found = try_near(s, fetches, n);
		else
			error = try_far(s, fetches, n, &found);
		if (error == -EIO)	/* not ours: something failed that was issued before */
			found = s->mark;
		else if (error || !found)
			return error;
		error = wait_turn(s, &turn, found);
		if (error)
			return error;
		set_mark(s, &s->mark, new_mark(s));
		s->count = 0;
	}
}

/* The stay is over, or never began. */
static void let_go(struct libacp_section *s)
{
	s->open = false;
	if (!s->near)
		leave_insiders(s);
	if (s->scratch)
		libacp_scratch_put(s->scratch);
	s->scratch = NULL;
}

int libacp_section_enter(struct libacp_section *s, acp_ga_t at, acp_ga_t low, uint64_t span,
			 struct libacp_fetch *fetches, unsigned int n)
{
	return libacp_section_enter_near(s, at, low, span, acp_query_address(low), fetches, n);
}

int libacp_section_enter_near(struct libacp_section *s, acp_ga_t at, acp_ga_t low, uint64_t span,
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
		join_insiders(s);
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

/* Go on for longer than the lease, under a new mark, which others see.  0 or -errno. */
static int renew(struct libacp_section *s)
{
	uint64_t found, since = libacp_now();
	int error;

	if (since - s->since < libacp_section_times.lease / 2)
		return 0;
	set_mark(s, &s->own, new_mark(s));
	error = change_lock(s, s->mark, s->own, &found);
	if (!error && found != s->mark)
		error = -EAGAIN;
	set_mark(s, &s->mark, error ? 0 : s->own);
	set_mark(s, &s->own, 0);
	s->since = since;
	return error;
}

int libacp_section_fetch(struct libacp_section *s, struct libacp_fetch *fetch)
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

static int commit_near(struct libacp_section *s)
{
	uint64_t *words = near_word(s, s->at);

	words[JOURNAL / 8] = s->count;
	__atomic_store_n(&words[COMMIT / 8], s->mark, __ATOMIC_RELEASE);
	return do_stores(s);
}

/* Commit and clear one of the words: LOCK to leave, COMMIT to stay. */
static int commit(struct libacp_section *s, unsigned int then)
{
	int error;

	if (s->near) {
		error = s->count ? commit_near(s) : 0;
		if (!error)
			__atomic_store_n(near_word(s, s->at + then), 0, __ATOMIC_RELEASE);
		return error;
	}
	if (libacp_now() - s->since > libacp_section_times.lease) {
		s->count = 0;
		return -ETIME;	/* others may think that it was given up */
	}
	issue_end(s, then);
	return finish_chain(s);
}

/* -EAGAIN even if it was done: the section was left. */
int libacp_section_commit(struct libacp_section *s)
{
	bool quiet = libacp_quiet(true);
	int error = 0;

	if (!s->mark) {
		error = -EAGAIN;
	} else if (s->count && commit(s, COMMIT)) {
		error = settle(s);
		error = error ? error : -EAGAIN;
	}
	libacp_quiet(quiet);
	s->count = 0;
	if (error)
		let_go(s);
	return error;
}

int libacp_section_leave(struct libacp_section *s)
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
		error = settle(s);
	libacp_quiet(quiet);
	let_go(s);
	return error;
}

void libacp_section_drop(struct libacp_section *s)
{
	s->count = 0;
	if (s->open)
		libacp_section_leave(s);
}
