// SPDX-License-Identifier: MIT
/*
 * Rounds of accesses.
 *
 * An access that is to come after others is given the last of them as its
 * order: where all go the same way, that is a fence and costs no waiting.
 * What it waits for may fail in the moment between the question whether it
 * did and the issue; then the access may take effect nevertheless.  The wait
 * tells of the failure all the same, and the caller undoes.
 *
 * An order holds for all accesses of the process.  So an access may fail, and
 * have no effect, because one of another thread failed just before; or, if
 * many were issued since, its status is not kept.  Then it is done again.
 */
#include <errno.h>

#include "middle.h"
#include "round.h"
#include "scratch.h"

#define WORDS	256u	/* staging words */
#define TRIES	8u	/* to do an access again */

int libacp_round_begin(struct libacp_round *r)
{
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

/* Did this say nothing of the access itself? */
static bool says_nothing(const struct libacp_access *a, int status)
{
	return status == ACPX_EORDER || (status == ACPX_EUNKNOWN && !a->once);
}

/* Ask for the ends of those that are complete; false at one that is to be done again. */
static bool look(struct libacp_round *r)
{
	const struct libacp_access *a;
	int status;

	for (; r->known < r->count; r->known++) {
		a = &r->accesses[r->known];
		status = acpx_status(a->handle);
		if (status == ACPX_EPENDING)
			break;
		if (!r->error && says_nothing(a, status))
			return false;
		note(r, libacp_ended(a->handle));
	}
	return true;
}

/* The end of an access, which is waited for, and done again if that is due. */
static int end_of(const struct libacp_access *a, bool again)
{
	acp_handle_t handle = a->handle;
	unsigned int tries;
	int error;

	for (tries = 0;; tries++) {
		error = libacp_finish(handle);
		if (!error || !again || tries == TRIES || !says_nothing(a, acpx_status(handle)))
			return error;
		handle = acp_copy(a->dst, a->src, a->size, ACP_HANDLE_NULL);
	}
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

static void issue(struct libacp_round *r, acp_ga_t dst, acp_ga_t src, uint64_t size,
		  acp_handle_t order)
{
	r->accesses[r->count++] = (struct libacp_access){
		.handle = acp_copy(dst, src, size, order), .dst = dst, .src = src, .size = size,
	};
	r->issued++;
}

void libacp_round_copy(struct libacp_round *r, acp_ga_t dst, acp_ga_t src, uint64_t size)
{
	if (r->count == LIBACP_ROUND_MOST)
		settle(r);
	issue(r, dst, src, size, (acp_handle_t)ACP_HANDLE_NULL);
}

void libacp_round_then(struct libacp_round *r, acp_ga_t dst, acp_ga_t src, uint64_t size)
{
	if (r->count == LIBACP_ROUND_MOST || !look(r))
		settle(r);
	look(r);
	if (r->error)
		return;
	issue(r, dst, src, size,
	      r->known == r->count ? (acp_handle_t)ACP_HANDLE_NULL :
				     r->accesses[r->count - 1].handle);
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

/* Former values go to all that can be reached; new ones are of no use after a failure. */
static void store(struct libacp_round *r, const struct libacp_word *stores, size_t count,
		  bool order, bool former)
{
	unsigned int i, n;
	acp_ga_t from;

	for (; count && (former || !r->error); stores += n, count -= n) {
		if (r->used == WORDS) {
			settle(r);
			r->used = 0;
		}
		n = row(stores, count, WORDS - r->used);
		from = r->words_ga + r->used * sizeof(*r->words);
		for (i = 0; i < n; i++)
			r->words[r->used++] = former ? stores[i].former : stores[i].value;
		if (order)
			libacp_round_then(r, stores->ga, from, n * sizeof(*r->words));
		else
			libacp_round_copy(r, stores->ga, from, n * sizeof(*r->words));
	}
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
	int err;

	libacp_round_store(r, stores, count, false);
	err = libacp_round_wait(r);
	*undone = err && libacp_round_undo(r, stores, count);
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
