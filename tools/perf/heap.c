// SPDX-License-Identifier: MIT
/*
 * The global heap: the experiment of the paper "Improving the ACP global memory management
 * algorithm". 100 blocks of random sizes from 1 to 32,768 bytes are allocated, then freed in random
 * order: on the heap of this rank, of another rank on this node, and of a rank on another node. For
 * comparison, malloc() and free() of the C library are measured.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "mode.h"

#define BLOCKS		100
#define SIZE_LIMIT	32768
/* of the experiment, unless --iters specifies the number of blocks */
#define ROUNDS		10

/* Owner of the heap; the heap of the C library has no rank. */
struct heap {
	const char *allocate, *release;		/* names in the output */
	int rank;
	bool remote;				/* on another node: frames are counted */
	bool c_library;
};

struct block {
	size_t size;
	acp_ga_t ga;
	void *address;
};

/* Allocations and frees of the experiment. */
struct halves {
	struct perf_row allocate, release;
	struct perf_samples allocate_time, release_time;
	struct perf_frames allocate_frames, release_frames;
};

static uint32_t draw(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33);
}

static bool allocate(const struct heap *heap, struct block *b)
{
	if (heap->c_library) {
		b->address = malloc(b->size);
		/* Prevent the compiler from removing unused allocations. */
		__asm__ volatile("" : : "r"(b->address) : "memory");
		return b->address != NULL;
	}
	b->ga = acp_malloc(b->size, heap->rank);
	return b->ga != ACP_GA_NULL;
}

static void release(const struct heap *heap, const struct block *b)
{
	if (heap->c_library)
		free(b->address);
	else
		acp_free(b->ga);
}

static struct perf_frames frames(const struct heap *heap)
{
	struct perf_frames now = { 0 };

	if (!heap->remote || perf_frames_read(&now) != 0)
		return (struct perf_frames){ 0 };
	return now;
}

/* Add the traffic since @before to a sum. */
static void add_frames(const struct heap *heap, struct perf_frames *sum,
		       const struct perf_frames *before)
{
	struct perf_frames now = frames(heap);

	sum->data += now.data - before->data;
	sum->acks += now.acks - before->acks;
	sum->trips += now.trips - before->trips;
}

/* Write a unique word to the start of a block, which is checked before the block is freed. */
static void mark(struct perf_run *run, struct block *b, uint64_t value)
{
	if (b->size < sizeof(value))
		return;
	memcpy(run->job.scratch, &value, sizeof(value));
	perf_finish(acp_copy(b->ga, run->job.scratch_ga, sizeof(value), ACP_HANDLE_NULL),
		    "put to a block");
}

static bool is_marked(struct perf_run *run, const struct block *b, uint64_t value)
{
	if (b->size < sizeof(value))
		return true;
	memset(run->job.scratch, 0, sizeof(value));
	perf_finish(acp_copy(run->job.scratch_ga, b->ga, sizeof(value), ACP_HANDLE_NULL),
		    "get from a block");
	return memcmp(run->job.scratch, &value, sizeof(value)) == 0;
}

static void shuffle(struct block *blocks, size_t n, uint64_t *seed)
{
	for (; n > 1; n--) {
		size_t i = draw(seed) % n;
		struct block b = blocks[i];

		blocks[i] = blocks[n - 1];
		blocks[n - 1] = b;
	}
}

static bool allocate_all(const struct heap *heap, struct block *blocks, struct halves *h,
			 uint64_t *seed)
{
	struct perf_frames before = frames(heap);
	size_t i;

	for (i = 0; i < BLOCKS; i++) {
		uint64_t begin;
		bool ok;

		blocks[i].size = 1 + draw(seed) % SIZE_LIMIT;
		begin = perf_now();
		ok = allocate(heap, &blocks[i]);
		perf_samples_add(&h->allocate_time, (double)(perf_now() - begin));
		if (ok)
			continue;
		while (i-- > 0)
			release(heap, &blocks[i]);
		return false;
	}
	add_frames(heap, &h->allocate_frames, &before);
	return true;
}

static void release_all(const struct heap *heap, struct block *blocks, struct halves *h)
{
	struct perf_frames before = frames(heap);
	size_t i;

	for (i = 0; i < BLOCKS; i++) {
		uint64_t begin = perf_now();

		release(heap, &blocks[i]);
		perf_samples_add(&h->release_time, (double)(perf_now() - begin));
	}
	add_frames(heap, &h->release_frames, &before);
}

static void check_all(struct perf_run *run, const struct heap *heap, struct block *blocks,
		      struct perf_row *row)
{
	size_t i;

	if (!run->options->check || heap->c_library)
		return;
	for (i = 0; i < BLOCKS; i++)
		mark(run, &blocks[i], blocks[i].ga);
	for (i = 0; i < BLOCKS; i++) {
		row->checks++;
		row->wrong += !is_marked(run, &blocks[i], blocks[i].ga);
	}
}

static void report(struct perf_run *run, const struct heap *heap, struct perf_row *row,
		   struct perf_samples *samples, const struct perf_frames *sent)
{
	char note[80];

	row->time = perf_samples_close(samples);
	if (row->time.median > 0)
		row->ops_per_s = 1e9 / row->time.median;
	if (heap->remote) {
		snprintf(note, sizeof(note), "%.2f round trips, %.2f frames sent each",
			 (double)sent->trips / (double)row->time.n,
			 (double)sent->data / (double)row->time.n);
		row->note = note;
	}
	perf_report_row(&run->report, row);
}

static void measure(struct perf_run *run, const struct heap *heap)
{
	struct halves h = {
		.allocate = { .mode = "heap", .op = heap->allocate },
		.release = { .mode = "heap", .op = heap->release },
	};
	struct block blocks[BLOCKS];
	struct perf_pace pace;
	bool room = true;
	uint64_t seed = 1;

	perf_report_progress(&run->report, "heap", heap->allocate, 0);
	if (!heap->c_library)
		acp_free(acp_malloc(8, heap->rank));	/* establishes the connection */
	pace = perf_pace_start(run->options, ROUNDS * BLOCKS);
	while (room && perf_pace_more(&pace, h.release_time.n)) {
		room = allocate_all(heap, blocks, &h, &seed);
		if (!room)
			break;
		check_all(run, heap, blocks, &h.allocate);
		shuffle(blocks, BLOCKS, &seed);
		release_all(heap, blocks, &h);
	}
	if (!room) {
		free(h.allocate_time.value);
		free(h.release_time.value);
		perf_report_skip(&run->report, "heap", heap->allocate, 0,
				 "the heap is too small (ACP_HEAP_SIZE=4M)");
		return;
	}
	report(run, heap, &h.allocate, &h.allocate_time, &h.allocate_frames);
	report(run, heap, &h.release, &h.release_time, &h.release_frames);
}

void perf_heap(struct perf_run *run)
{
	const struct perf_area *near = &run->job.area[PERF_HEAP];
	const struct perf_area *target = &run->job.area[PERF_TARGET];
	const struct heap own = { "alloc own", "free own", 0, false, false };
	const struct heap other = { "alloc node", "free node", near->rank, false, false };
	const struct heap remote = { "alloc far", "free far", target->rank, true, false };
	const struct heap c_library = { "libc alloc", "libc free", 0, false, true };

	measure(run, &c_library);
	measure(run, &own);
	if (near->rank >= 0)
		measure(run, &other);
	if (target->away)
		measure(run, &remote);
}
