// SPDX-License-Identifier: MIT
/*
 * Copies and atomics that the calling thread executes itself because it can access both ends:
 * memory of its own rank, and starter memory and heaps of ranks on the same node, which are mapped
 * on first use.
 *
 * Peers are in an open-addressed hash table that only grows. Readers take no lock: a table is
 * complete when it is published, and a slot never changes after it was filled. Tables that became
 * too small are kept for readers that still use them.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"
#include "core/job.h"
#include "core/local.h"
#include "core/mem.h"
#include "core/process.h"
#include "core/watch.h"

#define FIRST_BITS	4
#define RECENT		16

/* Mapped memory of another rank. Immutable. */
struct view {
	uint64_t key;			/* bits of its global addresses above the offset */
	uint64_t size;
	char *memory;
	struct acp_watch *watch;	/* of the owner */
};

/* A rank that was looked up. The sizes are 0 if it is not on this node or has left. */
struct peer {
	uint32_t rank;
	uint64_t sizes[ACP_STAG_RESERVED];
	char *memory[ACP_STAG_RESERVED];	/* NULL: not mapped yet */
	struct view views[ACP_STAG_RESERVED];	/* valid if memory is not NULL */
	struct acp_watch *watch;	/* set before any memory but the library page is mapped */
};

struct peers {
	struct peers *former;		/* the smaller table that this one replaced */
	uint32_t bits, count;
	struct peer *slots[];		/* 2^bits slots, at most half of them used */
};

static struct peers *peers;
static struct view *recent[RECENT];	/* cache of views */
static uint64_t far[RECENT];		/* cache of ranks on other nodes, plus 1; 0: free */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- The table ---- */

static uint32_t first_slot(const struct peers *t, uint32_t rank)
{
	return (rank * 2654435769u) >> (32 - t->bits);
}

/* Return the slot of a rank, or the free slot for it. */
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

/* Return a table with a free slot; lock held. */
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

/* Called with the lock held. */
static char *map_memory(struct peer *peer, uint32_t stag)
{
	char *memory = peer->memory[stag];

	if (memory)
		return memory;
	memory = libacp_mem_map(stag, peer->rank, peer->sizes[stag]);
	if (memory && stag == ACP_STAG_LIBRARY)
		peer->watch = libacp_mem_watch(memory);
	peer->views[stag] = (struct view){
		.key = acp_ga_make(&libacp.layout, peer->rank, 0, stag, 0) >>
		       libacp.layout.offset_bits,
		.size = peer->sizes[stag], .memory = memory, .watch = peer->watch,
	};
	__atomic_store_n(&peer->memory[stag], memory, __ATOMIC_RELEASE);
	return memory;
}

/* Map the library page first: writers must see the threads that wait for changes. */
static char *map_peer(struct peer *peer, uint32_t stag)
{
	char *memory = NULL;

	pthread_mutex_lock(&lock);
	if (map_memory(peer, ACP_STAG_LIBRARY))
		memory = map_memory(peer, stag);
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
	memset(recent, 0, sizeof(recent));
	memset(far, 0, sizeof(far));
}

/* ---- Finding memory ---- */

/* Starter memories, heaps and library pages of a few neighbours do not collide. */
static inline struct view **recent_place(acp_ga_t ga)
{
	return &recent[((ga >> libacp.layout.offset_bits) + 2 * (ga >> libacp.rank_shift)) %
		       RECENT];
}

/*
 * True if the rank of @ga is known to be on another node, or if @ga is of no rank (0). Addresses
 * contain the rank plus 1.
 */
static inline bool is_far(acp_ga_t ga)
{
	uint64_t rank = ga >> libacp.rank_shift;

	return __atomic_load_n(&far[rank % RECENT], __ATOMIC_RELAXED) == rank;
}

static void note_far(acp_ga_t ga)
{
	uint64_t rank = ga >> libacp.rank_shift;

	__atomic_store_n(&far[rank % RECENT], rank, __ATOMIC_RELAXED);
}

/* Address of memory, and the watch structure for writes to it. */
struct place {
	char *at;			/* NULL: cannot be accessed */
	struct acp_watch *watch;
};

static struct place __attribute__((noinline)) find_at_peer(acp_ga_t ga, uint64_t size)
{
	const struct acp_ga_layout *l = &libacp.layout;
	uint32_t stag = acp_ga_stag(l, ga), rank = acp_ga_rank(l, ga);
	const struct place nowhere = { NULL, NULL };
	uint64_t offset = acp_ga_offset(l, ga);
	struct peer *peer;
	char *memory;

	if (is_far(ga) || !acp_ga_valid(l, ga) || stag >= ACP_STAG_RESERVED ||
	    acp_ga_color(l, ga) != 0)
		return nowhere;
	if (libacp_boot_node_of(&libacp.boot, rank) != libacp.node) {
		note_far(ga);
		return nowhere;
	}
	peer = find_peer(rank);
	if (!peer)
		peer = add_peer(rank);
	if (!peer || offset > peer->sizes[stag] || size > peer->sizes[stag] - offset)
		return nowhere;
	memory = __atomic_load_n(&peer->memory[stag], __ATOMIC_ACQUIRE);
	if (!memory)
		memory = map_peer(peer, stag);
	if (!memory)
		return nowhere;
	__atomic_store_n(recent_place(ga), &peer->views[stag], __ATOMIC_RELEASE);
	return (struct place){ memory + offset, peer->watch };
}

/* Look up the cache of views first. */
static inline struct place find_again(acp_ga_t ga, uint64_t size)
{
	const struct view *v = __atomic_load_n(recent_place(ga), __ATOMIC_ACQUIRE);
	uint64_t offset = ga & libacp.offset_mask;

	if (!v || v->key != ga >> libacp.layout.offset_bits)
		return find_at_peer(ga, size);
	if (offset > v->size || size > v->size - offset)
		return (struct place){ NULL, NULL };
	return (struct place){ v->memory + offset, v->watch };
}

/*
 * Without the attribute the compiler does not inline it, which adds ten instructions to an
 * allocation in a heap.
 */
static inline struct place __attribute__((always_inline)) find(acp_ga_t ga, uint64_t size,
							       bool write)
{
	if ((ga ^ libacp.own) >> libacp.rank_shift == 0)
		return (struct place){ libacp_mem_find(ga, size, write), libacp.watch };
	return find_again(ga, size);
}

void *acp_query_address(acp_ga_t ga)
{
	return libacp_in() ? find(ga, 1, false).at : NULL;
}

void *libacp_local_reach(acp_ga_t ga, uint64_t size, bool write)
{
	return find(ga, size, write).at;
}

void *libacp_local_reach_watched(acp_ga_t ga, uint64_t size, struct acp_watch **watch)
{
	struct place p;

	if (is_far(ga))
		return NULL;
	p = find(ga, size, true);
	*watch = p.watch;
	return p.at;
}

void libacp_local_written(acp_ga_t ga, uint64_t size)
{
	struct place p = find(ga, size, true);

	libacp_watch_written(p.watch, ga, p.at, size);
}

/* ---- Executing accesses ---- */

/* As libacp_copy_word(), for any size. */
static void copy_bytes(char *dst, const char *src, uint64_t size)
{
	uintptr_t both = (uintptr_t)dst | (uintptr_t)src;

	if (size == 8 && both % 8 == 0) {
		libacp_copy_word(dst, src);
	} else if (size == 4 && both % 4 == 0) {
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
	const char *from;
	struct place to;

	/* Detect other nodes first, so that remote copies take the shortest path. */
	if (is_far(dst))
		return false;
	from = find(src, size, false).at;
	if (!from)
		return false;
	to = find(dst, size, true);
	if (!to.at)
		return false;
	copy_bytes(to.at, from, size);
	return libacp_watch_written(to.watch, dst, to.at, size);
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
	unsigned int size = op % 2 ? 8 : 4;	/* see enum acp_op */
	struct place word = find(src, size, true), former;

	if (!word.at)
		return false;
	former = find(dst, size, true);
	if (!former.at || (((uintptr_t)word.at | (uintptr_t)former.at) & (size - 1)))
		return false;
	if (size == 8)
		__atomic_store_n((uint64_t *)(void *)former.at,
				 atomic8(op, (uint64_t *)(void *)word.at, a, b), __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)(void *)former.at,
				 atomic4(op, (uint32_t *)(void *)word.at, (uint32_t)a, (uint32_t)b),
				 __ATOMIC_RELEASE);
	libacp_watch_written(word.watch, src, word.at, size);
	return libacp_watch_written(former.watch, dst, former.at, size);
}

bool libacp_local_signal(acp_ga_t dst, acp_ga_t src, uint64_t size, acp_ga_t flag,
			 uint64_t operand, bool add)
{
	struct place p = find(flag, sizeof(uint64_t), true);
	uint64_t *word = (uint64_t *)(void *)p.at;

	if (!word || ((uintptr_t)word & (sizeof(*word) - 1)) ||
	    (size && !libacp_local_copy(dst, src, size)))
		return false;
	if (add)
		__atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n(word, operand, __ATOMIC_SEQ_CST);
	return libacp_watch_written(p.watch, flag, p.at, sizeof(*word));
}
