// SPDX-License-Identifier: MIT
/*
 * Rounds of accesses.
 *
 * An access that is to come after others is given the last of them as its
 * order: where all go the same way, that is a fence and costs no waiting.
 * They are a chain (middle.h), so one whose predecessor failed has no effect,
 * also if that was in the moment before it was issued.
 *
 * An order holds for all accesses of the process.  So an access may fail, or
 * be refused, because one of another thread failed: then it is done again.
 */
#include <errno.h>

#include "middle.h"
#include "round.h"
#include "scratch.h"

#define WORDS	256u	/* staging words */
#define TRIES	8u	/* to do an access again */

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
 * Did this say nothing of the access itself?  What it waited for had failed,
 * or very many have failed since.
 */
static bool says_nothing(const struct libacp_access *a, int error)
{
	return error == -EIO && !a->once;
}

/* Ask for the ends of those that are complete; false at one that is to be done again. */
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

/* The end of an access, which is waited for, and done again if that is due. */
static int end_of(const struct libacp_access *a, bool again)
{
	int error = libacp_finish(a->handle);
	unsigned int tries;

	for (tries = 0; again && says_nothing(a, error) && tries < TRIES; tries++)
		error = libacp_finish(acp_copy(a->dst, a->src, a->size, ACP_HANDLE_NULL));
	return error;
}

/* Wait for all that was issued; the accesses of a process complete in order. */
static void settle(struct libacp_round *r)
{
	look(r);
	for (; r->known < r->count; r->known++)
		note(r, end_of(&r->accesses[r->known], !r->error));
	r->count = 0;
	r->known = 0;
}

/* False: refused, as something failed that it was to come behind. */
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
	if (r->count == LIBACP_ROUND_MOST)
		settle(r);
	issue(r, dst, src, size, (acp_handle_t)ACP_HANDLE_NULL);
}

void libacp_round_then(struct libacp_round *r, acp_ga_t dst, acp_ga_t src, uint64_t size)
{
	acp_handle_t order = ACP_HANDLE_NULL;

	if (r->count == LIBACP_ROUND_MOST || !look(r))
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

/* How many of the stores are of words in a row, at most "most". */
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
 * Former values go to all that can be reached; new ones are of no use after a
 * failure.  Returns how many stores were reached.
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
