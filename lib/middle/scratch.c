// SPDX-License-Identifier: MIT
/*
 * Registered memory for staging, in sizes of powers of two.
 *
 * Each block consists of pages of its own: a head that is not registered, followed by the
 * registered bytes. If blocks shared pages with other data of the process, a registration would pin
 * these as well and make them accessible to other ranks.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "middle/scratch.h"

#define HEAD		64u	/* bytes before the registered ones */
#define FIRST_BITS	12	/* smallest block: a page */
/* the largest block has 2^47 bytes, the size of the address space */
#define CLASSES		(48 - FIRST_BITS)

struct block {
	struct block *next;	/* of free blocks */
	acp_atkey_t key;
	acp_ga_t ga;
	unsigned int class;
	unsigned int incarnation;	/* in which the block was registered */
};

_Static_assert(sizeof(struct block) <= HEAD, "the head has room");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* per class, blocks of 2^(FIRST_BITS + index) bytes including the head */
static struct block *free_blocks[CLASSES];
static size_t kept;				/* bytes in free_blocks */
/* how often this process has stopped being a rank */
static unsigned int incarnation;

static size_t class_bytes(unsigned int class)
{
	return (size_t)1 << (FIRST_BITS + class);
}

/* Return the smallest class for @size bytes, or CLASSES. */
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

/* A key of a previous incarnation is invalid, or belongs to another region by now. */
static void release(struct block *b)
{
	if (b->incarnation == __atomic_load_n(&incarnation, __ATOMIC_RELAXED))
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
	room = b->incarnation == incarnation && class_bytes(b->class) <= LIBACP_SCRATCH_KEEP - kept;
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
	b->incarnation = __atomic_load_n(&incarnation, __ATOMIC_RELAXED);
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

/* Blocks that are put from now on are those of a former incarnation. */
void libacp_scratch_close(void)
{
	struct block *gone[CLASSES], *b;
	unsigned int class;

	pthread_mutex_lock(&lock);
	memcpy(gone, free_blocks, sizeof(gone));
	memset(free_blocks, 0, sizeof(free_blocks));
	kept = 0;
	__atomic_store_n(&incarnation, incarnation + 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	for (class = 0; class < CLASSES; class++) {
		while ((b = gone[class])) {
			gone[class] = b->next;
			acp_unregister_memory(b->key);
			free(b);
		}
	}
}
