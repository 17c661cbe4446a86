// SPDX-License-Identifier: MIT
/* Journaled locks: access to their words, near or far, and execution of the staged stores. */
#include <errno.h>

#include "middle/hash.h"
#include "middle/txlock_part.h"

struct libacp_txlock_times libacp_txlock_times = {
	.lease = 1000000000, .grace = 2000000000, .forsaken = 20000000000,
	.patience = 30000000000,
};

bool libacp_txlock_late(const struct libacp_txlock *s)
{
	return !s->near && libacp_now() - s->since > libacp_txlock_times.lease;
}

int libacp_txlock_change_lock(struct libacp_txlock *s, uint64_t expected, uint64_t mark,
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

uint64_t libacp_txlock_digest(const uint64_t *words, unsigned int stores)
{
	return libacp_hash(LIBACP_HASH_KEY, words, 16 + stores * sizeof(struct libacp_store));
}

/* True if the store is to memory of another rank that is gone with that rank. */
static bool lost(const struct libacp_txlock *s, acp_ga_t ga)
{
	int rank = acp_query_rank(ga);

	return rank != acp_query_rank(s->at) && acpx_peer_state(rank) == ACPX_PEER_DOWN;
}

static int store_far(struct libacp_txlock *s, const struct libacp_store *store)
{
	int error;

	if (!s->scratch)
		s->scratch = libacp_scratch_get(SCRATCH_BYTES, &s->scratch_ga);
	if (!s->scratch)
		return -ENOMEM;
	if (libacp_txlock_late(s))
		return -ETIME;
	*scratch_word(s, VALUES) = store->value;
	error = libacp_finish(acp_copy(store->ga, s->scratch_ga + VALUES, 8, ACP_HANDLE_NULL));
	return error && lost(s, store->ga) ? 0 : error;
}

static int store_anywhere(struct libacp_txlock *s, const struct libacp_store *store)
{
	uint64_t *word = acp_query_address(store->ga);

	if (!word)
		return store_far(s, store);
	__atomic_store_n(word, store->value, __ATOMIC_RELEASE);
	return 0;
}

int libacp_txlock_do_stores(struct libacp_txlock *s)
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
