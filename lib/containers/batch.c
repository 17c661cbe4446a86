// SPDX-License-Identifier: MIT
/*
 * Batches of accesses.
 *
 * An access that must follow others gets the last of them as its order. For accesses to the same
 * rank this is a fence and causes no waiting. The accesses form a chain (internal.h), so an access
 * whose predecessor failed has no effect, even if the predecessor failed just before the access was
 * issued.
 *
 * An order refers to all accesses of the process. Therefore an access may fail, or be refused,
 * because an access of another thread failed. It is then repeated.
 */
#include <errno.h>

#include "core/internal.h"
#include "containers/batch.h"
#include "middle/scratch.h"

#define WORDS	256u	/* staging words */
#define TRIES	8u	/* repetitions of an access */

int libacp_round_begin(struct libacp_round *r)
{
	if (acp_rank() < 0)
		return -ECANCELED;
	*r = (struct libacp_round){ .saved_errno = errno };
	r->words = libacp_scratch_get(WORDS * sizeof(*r->words), &r->words_ga);
	if (!r->words)
		return -ENOMEM;
	r->quiet = libacp_quiet(true);
	return 0;
}

void libacp_round_end(struct libacp_round *r)
{
	libacp_round_wait(r);
	libacp_quiet(r->quiet);
	libacp_scratch_put(r->words);
	errno = r->saved_errno;
}

static void note(struct libacp_round *r, int error)
{
	if (!error || r->error)
		return;
	r->error = error;
	r->failed = r->issued - r->count + r->known;
}

/*
 * True if the error is not that of the access itself: an access that it waited for failed, or the
 * status was lost because very many accesses failed since.
 */
static bool says_nothing(const struct libacp_access *a, int error)
{
	return error == -EIO && !a->once;
}

/* Evaluate the accesses that are complete. False at one that must be repeated. */
static bool look(struct libacp_round *r)
{
	const struct libacp_access *a;
	int error;

	for (; r->known < r->count; r->known++) {
		a = &r->accesses[r->known];
		if (acpx_status(a->handle) == ACPX_EPENDING)
			break;
		error = libacp_ended(a->handle);
		if (!r->error && says_nothing(a, error))
			return false;
		note(r, error);
	}
	return true;
}

/* Wait for an access, repeat it if necessary, and return its result. */
static int end_of(const struct libacp_access *a, bool again)
{
	int error = libacp_finish(a->handle);
	unsigned int tries;

	for (tries = 0; again && says_nothing(a, error) && tries < TRIES; tries++)
		error = libacp_finish(acp_copy(a->dst, a->src, a->size, ACP_HANDLE_NULL));
	return error;
}

/* Wait for all accesses. The accesses of a process complete in order. */
static void settle(struct libacp_round *r)
{
	look(r);
	for (; r->known < r->count; r->known++)
		note(r, end_of(&r->accesses[r->known], !r->error));
	r->count = 0;
	r->known = 0;
}

/* False: refused, because an access that it must follow has failed. */
static bool issue(struct libacp_round *r, acp_ga_t dst, acp_ga_t src, uint64_t size,
		  acp_handle_t order)
{
	acp_handle_t handle;

	if (!r->count)
		libacp_chain();
	handle = acp_copy(dst, src, size, order);
	if (handle == (acp_handle_t)ACP_HANDLE_NULL && order != (acp_handle_t)ACP_HANDLE_NULL)
		return false;
	r->accesses[r->count++] = (struct libacp_access){
		.handle = handle, .dst = dst, .src = src, .size = size,
	};
	r->issued++;
	return true;
}

void libacp_round_copy(struct libacp_round *r, acp_ga_t dst, acp_ga_t src, uint64_t size)
{
	if (r->count == LIBACP_ROUND_MAX)
		settle(r);
	issue(r, dst, src, size, (acp_handle_t)ACP_HANDLE_NULL);
}

void libacp_round_then(struct libacp_round *r, acp_ga_t dst, acp_ga_t src, uint64_t size)
{
	acp_handle_t order = ACP_HANDLE_NULL;

	if (r->count == LIBACP_ROUND_MAX || !look(r))
		settle(r);
	look(r);
	if (r->error)
		return;
	if (r->known < r->count)
		order = r->accesses[r->count - 1].handle;
	if (issue(r, dst, src, size, order))
		return;
	settle(r);
	if (!r->error)
		issue(r, dst, src, size, (acp_handle_t)ACP_HANDLE_NULL);
}

void libacp_round_move(struct libacp_round *r, acp_ga_t dst, acp_ga_t src, uint64_t size)
{
	settle(r);
	if (r->error)
		return;
	issue(r, dst, src, size, (acp_handle_t)ACP_HANDLE_NULL);
	r->accesses[0].once = true;
}

const uint64_t *libacp_round_read(struct libacp_round *r, acp_ga_t ga, unsigned int words)
{
	uint64_t *at = r->words + r->used;

	libacp_round_copy(r, r->words_ga + r->used * sizeof(*at), ga, words * sizeof(*at));
	r->used += words;
	return at;
}

/* Return how many of the stores, at most @most, go to adjacent words. */
static unsigned int row(const struct libacp_word *stores, size_t count, unsigned int most)
{
	unsigned int n = 1;

	while (n < count && n < most && stores[n].ga == stores[n - 1].ga + sizeof(uint64_t))
		n++;
	return n;
}

bool libacp_round_is_lost(acp_ga_t ga)
{
	return acpx_peer_state(acp_query_rank(ga)) == ACPX_PEER_DOWN && !acp_query_address(ga);
}

/*
 * Write previous values to all reachable words; write new values only until a failure. Returns how
 * many stores were attempted.
 */
static size_t store(struct libacp_round *r, const struct libacp_word *stores, size_t count,
		    bool order, bool former)
{
	unsigned int i, n;
	size_t done;
	acp_ga_t from;

	for (done = 0; done < count && (former || !r->error); done += n, stores += n) {
		if (r->used == WORDS) {
			settle(r);
			r->used = 0;
		}
		n = row(stores, count - done, WORDS - r->used);
		if (r->error && libacp_round_is_lost(stores->ga))
			continue;
		from = r->words_ga + r->used * sizeof(*r->words);
		for (i = 0; i < n; i++)
			r->words[r->used++] = former ? stores[i].former : stores[i].value;
		if (order)
			libacp_round_then(r, stores->ga, from, n * sizeof(*r->words));
		else
			libacp_round_copy(r, stores->ga, from, n * sizeof(*r->words));
	}
	return done;
}

void libacp_round_store(struct libacp_round *r, const struct libacp_word *stores, size_t count,
			bool order)
{
	store(r, stores, count, order, false);
}

int libacp_round_wait(struct libacp_round *r)
{
	int error;

	settle(r);
	error = r->error;
	r->error = 0;
	r->issued = 0;
	r->used = 0;
	return error;
}

bool libacp_round_undo(struct libacp_round *r, const struct libacp_word *stores, size_t count)
{
	store(r, stores, count, false, true);
	return !libacp_round_wait(r);
}

int libacp_round_exchange(struct libacp_round *r, const struct libacp_word *stores, size_t count,
			  bool *undone)
{
	size_t reached = store(r, stores, count, false, false);
	int err = libacp_round_wait(r);

	*undone = err && libacp_round_undo(r, stores, reached);
	return err;
}

int libacp_round_allocate(uint64_t size, int rank, acp_ga_t *ga)
{
	errno = 0;
	*ga = acp_malloc(size, rank);
	if (*ga != ACP_GA_NULL)
		return 0;
	return errno ? -errno : -ENOMEM;
}
