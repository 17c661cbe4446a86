// SPDX-License-Identifier: MIT
/*
 * Copies and atomics that the calling thread does itself, because it can
 * reach both ends: memory of its own rank, and starter and heap memory of
 * the ranks on its node, mapped when first spoken to.
 *
 * The peers are in an open-addressed hash table that only grows.  Readers
 * take no lock: a table is published complete, and a slot, once filled,
 * never changes; a table that became too small is kept for late readers.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libacp.h"

#define FIRST_BITS	4

/* A rank that was looked for; sizes are 0 if it is not on this node or gone. */
struct peer {
	uint32_t rank;
	uint64_t sizes[ACP_STAG_RESERVED];
	char *memory[ACP_STAG_RESERVED];	/* NULL: not mapped yet */
};

struct peers {
	struct peers *former;		/* the smaller table before this one */
	uint32_t bits, count;
	struct peer *slots[];		/* 2^bits, at most half of them filled */
};

static struct peers *peers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- The table ---- */

static uint32_t first_slot(const struct peers *t, uint32_t rank)
{
	return (rank * 2654435769u) >> (32 - t->bits);
}

/* The slot of a rank, or the free one where it would be. */
static struct peer **find_slot(struct peers *t, uint32_t rank)
{
	uint32_t i = first_slot(t, rank);
	struct peer *peer;

	while ((peer = __atomic_load_n(&t->slots[i], __ATOMIC_ACQUIRE)) && peer->rank != rank)
		i = (i + 1) & ((1u << t->bits) - 1);
	return &t->slots[i];
}

static struct peer *find_peer(uint32_t rank)
{
	struct peers *t = __atomic_load_n(&peers, __ATOMIC_ACQUIRE);

	return t ? __atomic_load_n(find_slot(t, rank), __ATOMIC_ACQUIRE) : NULL;
}

/* A table with room for one more; lock held. */
static struct peers *roomy_table(void)
{
	struct peers *old = peers, *t;
	uint32_t bits = old ? old->bits + 1 : FIRST_BITS, i;

	if (old && old->count < 1u << (old->bits - 1))
		return old;
	t = calloc(1, sizeof(*t) + (sizeof(t->slots[0]) << bits));
	if (!t)
		return NULL;
	t->bits = bits;
	t->former = old;
	for (i = 0; old && i < 1u << old->bits; i++)
		if (old->slots[i])
			*find_slot(t, old->slots[i]->rank) = old->slots[i];
	t->count = old ? old->count : 0;
	__atomic_store_n(&peers, t, __ATOMIC_RELEASE);
	return t;
}

static struct peer *add_peer(uint32_t rank)
{
	struct peer *peer;
	struct peers *t;

	pthread_mutex_lock(&lock);
	peer = find_peer(rank);
	t = peer ? NULL : roomy_table();
	peer = t ? calloc(1, sizeof(*peer)) : peer;
	if (t && peer) {
		peer->rank = rank;
		if (libacp_mem_sizes(rank, peer->sizes) < 0)
			memset(peer->sizes, 0, sizeof(peer->sizes));
		t->count++;
		__atomic_store_n(find_slot(t, rank), peer, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return peer;
}

static char *map_peer(struct peer *peer, uint32_t stag)
{
	char *memory;

	pthread_mutex_lock(&lock);
	memory = peer->memory[stag];
	if (!memory) {
		memory = libacp_mem_map(stag, peer->rank, peer->sizes[stag]);
		__atomic_store_n(&peer->memory[stag], memory, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return memory;
}

void libacp_local_close(void)
{
	struct peers *t = peers, *former;
	uint32_t i, stag;

	for (i = 0; t && i < 1u << t->bits; i++) {
		for (stag = 0; t->slots[i] && stag < ACP_STAG_RESERVED; stag++)
			libacp_mem_unmap(t->slots[i]->memory[stag], t->slots[i]->sizes[stag]);
		free(t->slots[i]);
	}
	for (; t; t = former) {
		former = t->former;
		free(t);
	}
	peers = NULL;
}

/* ---- Finding memory ---- */

static char *__attribute__((noinline)) find_at_peer(acp_ga_t ga, uint64_t size)
{
	const struct acp_ga_layout *l = &libacp.layout;
	uint32_t stag = acp_ga_stag(l, ga), rank = acp_ga_rank(l, ga);
	uint64_t offset = acp_ga_offset(l, ga);
	struct peer *peer;
	char *memory;

	if (stag >= ACP_STAG_RESERVED || acp_ga_color(l, ga) != 0 || !acp_ga_valid(l, ga) ||
	    libacp_boot_node_of(&libacp.boot, rank) != libacp.node)
		return NULL;
	peer = find_peer(rank);
	if (!peer)
		peer = add_peer(rank);
	if (!peer || offset > peer->sizes[stag] || size > peer->sizes[stag] - offset)
		return NULL;
	memory = __atomic_load_n(&peer->memory[stag], __ATOMIC_ACQUIRE);
	if (!memory)
		memory = map_peer(peer, stag);
	return memory ? memory + offset : NULL;
}

static inline void *find(acp_ga_t ga, uint64_t size, bool write)
{
	if ((ga ^ libacp.own) >> libacp.rank_shift == 0)
		return libacp_mem_find(ga, size, write);
	return find_at_peer(ga, size);
}

void *libacp_local_find(acp_ga_t ga)
{
	return find(ga, 1, false);
}

void *libacp_local_reach(acp_ga_t ga, uint64_t size, bool write)
{
	return find(ga, size, write);
}

/* ---- Doing it ---- */

/*
 * A copy is visible after the copies before it (the data before the flag),
 * and words that are aligned are never seen half written.
 */
static void copy_bytes(char *dst, const char *src, uint64_t size)
{
	uintptr_t alignment = ((uintptr_t)dst | (uintptr_t)src) & (size - 1);

	if (size == 8 && alignment == 0) {
		__atomic_store_n((uint64_t *)(void *)dst,
				 __atomic_load_n((const uint64_t *)(const void *)src,
						 __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	} else if (size == 4 && alignment == 0) {
		__atomic_store_n((uint32_t *)(void *)dst,
				 __atomic_load_n((const uint32_t *)(const void *)src,
						 __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	} else {
		__atomic_thread_fence(__ATOMIC_RELEASE);
		memmove(dst, src, size);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	}
}

bool libacp_local_copy(acp_ga_t dst, acp_ga_t src, uint64_t size)
{
	const char *from = find(src, size, false);
	char *to = from ? find(dst, size, true) : NULL;

	if (!to)
		return false;
	copy_bytes(to, from, size);
	return true;
}

static uint64_t atomic8(unsigned int op, uint64_t *word, uint64_t a, uint64_t b)
{
	switch (op) {
	case ACP_OP_CAS8:
		__atomic_compare_exchange_n(word, &a, b, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
		return a;
	case ACP_OP_SWAP8:
		return __atomic_exchange_n(word, a, __ATOMIC_SEQ_CST);
	case ACP_OP_ADD8:
		return __atomic_fetch_add(word, a, __ATOMIC_SEQ_CST);
	case ACP_OP_XOR8:
		return __atomic_fetch_xor(word, a, __ATOMIC_SEQ_CST);
	case ACP_OP_OR8:
		return __atomic_fetch_or(word, a, __ATOMIC_SEQ_CST);
	default:
		return __atomic_fetch_and(word, a, __ATOMIC_SEQ_CST);
	}
}

static uint32_t atomic4(unsigned int op, uint32_t *word, uint32_t a, uint32_t b)
{
	switch (op) {
	case ACP_OP_CAS4:
		__atomic_compare_exchange_n(word, &a, b, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
		return a;
	case ACP_OP_SWAP4:
		return __atomic_exchange_n(word, a, __ATOMIC_SEQ_CST);
	case ACP_OP_ADD4:
		return __atomic_fetch_add(word, a, __ATOMIC_SEQ_CST);
	case ACP_OP_XOR4:
		return __atomic_fetch_xor(word, a, __ATOMIC_SEQ_CST);
	case ACP_OP_OR4:
		return __atomic_fetch_or(word, a, __ATOMIC_SEQ_CST);
	default:
		return __atomic_fetch_and(word, a, __ATOMIC_SEQ_CST);
	}
}

bool libacp_local_atomic(unsigned int op, acp_ga_t dst, acp_ga_t src, uint64_t a, uint64_t b)
{
	unsigned int size = op % 2 ? 8 : 4;	/* as enum acp_op goes */
	void *word = find(src, size, true);
	void *former = word ? find(dst, size, true) : NULL;

	if (!former || (((uintptr_t)word | (uintptr_t)former) & (size - 1)))
		return false;
	if (size == 8)
		__atomic_store_n((uint64_t *)former, atomic8(op, word, a, b), __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)former,
				 atomic4(op, word, (uint32_t)a, (uint32_t)b), __ATOMIC_RELEASE);
	return true;
}

bool libacp_local_signal(acp_ga_t dst, acp_ga_t src, uint64_t size, acp_ga_t flag,
			 uint64_t operand, bool add)
{
	uint64_t *word = find(flag, sizeof(*word), true);

	if (!word || ((uintptr_t)word & (sizeof(*word) - 1)) || !libacp_local_copy(dst, src, size))
		return false;
	if (add)
		__atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n(word, operand, __ATOMIC_SEQ_CST);
	return true;
}
