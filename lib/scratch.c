// SPDX-License-Identifier: MIT
/*
 * Registered memory for what is staged, by powers of two.
 *
 * Each block is pages of its own: its head, which nobody else can reach,
 * and behind that the registered bytes.  A region that another thing of the
 * process shares would be pinned and open to other ranks as a whole.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "scratch.h"

#define HEAD		64u	/* bytes before the block */
#define FIRST_BITS	12	/* a page */
#define CLASSES		(48 - FIRST_BITS)	/* the largest is of 2^47 bytes, as a pointer is */

struct block {
	struct block *next;	/* free ones only */
	acp_atkey_t key;
	acp_ga_t ga;
	unsigned int class;
	unsigned int life;	/* the one it was registered in */
};

_Static_assert(sizeof(struct block) <= HEAD, "the head has room");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *free_blocks[CLASSES];	/* of 2^(FIRST_BITS + index) bytes with head */
static size_t kept;				/* bytes of them */
static unsigned int life;			/* how often this process stopped being a rank */

static size_t class_bytes(unsigned int class)
{
	return (size_t)1 << (FIRST_BITS + class);
}

/* The smallest class with room for size bytes, or CLASSES. */
static unsigned int class_of(size_t size)
{
	unsigned int class = 0;

	while (class < CLASSES && size > class_bytes(class) - HEAD)
		class++;
	return class;
}

static void *block_memory(struct block *b)
{
	return (char *)b + HEAD;
}

/* A key of a former life is void, or somebody else's by now. */
static void release(struct block *b)
{
	if (b->life == __atomic_load_n(&life, __ATOMIC_RELAXED))
		acp_unregister_memory(b->key);
	free(b);
}

static struct block *take(unsigned int class)
{
	struct block *b;

	pthread_mutex_lock(&lock);
	b = free_blocks[class];
	if (b) {
		free_blocks[class] = b->next;
		kept -= class_bytes(class);
	}
	pthread_mutex_unlock(&lock);
	return b;
}

static bool keep(struct block *b)
{
	bool room;

	pthread_mutex_lock(&lock);
	room = b->life == life && class_bytes(b->class) <= LIBACP_SCRATCH_KEEP - kept;
	if (room) {
		b->next = free_blocks[b->class];
		free_blocks[b->class] = b;
		kept += class_bytes(b->class);
	}
	pthread_mutex_unlock(&lock);
	return room;
}

static struct block *create(unsigned int class)
{
	struct block *b = aligned_alloc(class_bytes(0), class_bytes(class));

	if (!b)
		return NULL;
	b->class = class;
	b->key = acp_register_memory(block_memory(b), class_bytes(class) - HEAD, 0);
	if (b->key == ACP_ATKEY_NULL) {
		free(b);
		return NULL;
	}
	b->ga = acp_query_ga(b->key, block_memory(b));
	b->life = __atomic_load_n(&life, __ATOMIC_RELAXED);
	return b;
}

void *libacp_scratch_get(size_t size, acp_ga_t *ga)
{
	unsigned int class = class_of(size);
	struct block *b;

	if (class == CLASSES)
		return NULL;
	b = take(class);
	if (!b)
		b = create(class);
	if (!b)
		return NULL;
	*ga = b->ga;
	return block_memory(b);
}

void libacp_scratch_put(void *block)
{
	struct block *b;

	if (!block)
		return;
	b = (struct block *)(void *)((char *)block - HEAD);
	if (!keep(b))
		release(b);
}

void libacp_scratch_close(void)
{
	struct block *b;
	unsigned int class;

	for (class = 0; class < CLASSES; class++)
		while ((b = take(class)))
			release(b);
	pthread_mutex_lock(&lock);
	__atomic_store_n(&life, life + 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}
