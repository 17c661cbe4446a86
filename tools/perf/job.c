// SPDX-License-Identifier: MIT
/*
 * Roles of ranks. Rank 0 assigns them, knowing which ranks share its node, and publishes them on
 * its board in starter memory. A rank with a role registers memory and publishes its address.
 */
#include "job.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE		4096
#define MIN_AREA	(UINT64_C(1) << 20)
#define LOOK_AT_RANKS	256	/* limit of ranks to check for other nodes */
#define AREAS		5	/* own, target, third, near, scratch */
#define SCRATCH		4	/* index of the area after the places */
#define HEAP_OVERHEAD	4096	/* more than the overhead of the library in a heap */

void perf_fatal(const char *format, ...)
{
	char text[300];
	va_list args;
	int n;

	n = snprintf(text, sizeof(text), "acp_perf: rank %d: ", acp_rank());
	va_start(args, format);
	vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
	va_end(args);
	acp_abort(text);
	exit(EXIT_FAILURE);
}

void perf_sync(void)
{
	if (acp_sync() != 0)
		perf_fatal("acp_sync failed");
}

void perf_finish(acp_handle_t handle, const char *what)
{
	int status;

	if (handle == ACP_HANDLE_NULL)
		perf_fatal("%s: not accepted", what);
	acp_complete(handle);
	status = acpx_status(handle);
	if (status != 0)
		perf_fatal("%s: %s", what, acpx_strerror(status));
}

const struct perf_board *perf_job_fetch(const struct perf_job *job, int rank)
{
	perf_finish(acp_copy(acp_query_starter_ga(job->rank) + sizeof(struct perf_board),
			     acp_query_starter_ga(rank), sizeof(struct perf_board),
			     ACP_HANDLE_NULL), "get of a rank's starter memory");
	return job->board + 1;
}

uint64_t perf_agree_on_count(struct perf_job *job, uint64_t count)
{
	if (job->rank == 0)
		job->board->count = count;
	perf_sync();
	return job->rank == 0 ? count : perf_job_fetch(job, 0)->count;
}

/*
 * Return a value that is equal on ranks of one network namespace of one running kernel, and almost
 * certainly unique.
 */
static uint64_t identify_node(void)
{
	uint64_t hash = UINT64_C(14695981039346656037);
	struct stat st;
	char id[64] = "";
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	size_t i;

	if (file == NULL || fgets(id, sizeof(id), file) == NULL)
		perf_fatal("/proc/sys/kernel/random/boot_id: %s", strerror(errno));
	fclose(file);
	if (stat("/proc/self/ns/net", &st) != 0)
		perf_fatal("/proc/self/ns/net: %s", strerror(errno));
	for (i = 0; id[i] != '\0'; i++)
		hash = (hash ^ (unsigned char)id[i]) * UINT64_C(1099511628211);
	return (hash ^ st.st_ino) * UINT64_C(1099511628211);
}

static uint64_t node_of(const struct perf_job *job, int rank)
{
	return rank == job->rank ? job->board->node : perf_job_fetch(job, rank)->node;
}

/* Return the last rank on another node or, if there is one node only, the last rank. */
static int choose_target(const struct perf_job *job)
{
	int rank, looked = 0;

	for (rank = job->procs - 1; rank > 0 && looked < LOOK_AT_RANKS; rank--, looked++) {
		if (node_of(job, rank) != job->board->node)
			return rank;
	}
	return job->procs - 1;
}

/* Return a rank other than rank 0 and the target, on a third node if possible. */
static int choose_third(const struct perf_job *job, int target)
{
	uint64_t home = job->board->node, away = node_of(job, target);
	int rank, looked = 0, any = -1;

	for (rank = job->procs - 1; rank > 0 && looked < LOOK_AT_RANKS; rank--, looked++) {
		uint64_t node;

		if (rank == target)
			continue;
		node = node_of(job, rank);
		if (node != home && node != away)
			return rank;
		any = rank;
	}
	return any;
}

/* Return another rank on the node of rank 0, whose heap can be written without the network. */
static int choose_heap(const struct perf_job *job)
{
	int rank;

	for (rank = 1; rank < job->procs && rank <= LOOK_AT_RANKS; rank++) {
		if (node_of(job, rank) == job->board->node)
			return rank;
	}
	return -1;
}

static void choose_parts(struct perf_job *job, const struct perf_options *o)
{
	struct perf_board *board = job->board;
	uint64_t area = MIN_AREA;
	size_t i;

	/* The mode "register" allocates its own memory. */
	for (i = 0; i < o->sizes.n && o->modes != PERF_REGISTER; i++)
		area = o->sizes.value[i] > area ? o->sizes.value[i] : area;
	board->area_size = (area + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	board->target = o->target >= 0 ? o->target : choose_target(job);
	board->third = o->third >= 0 ? o->third : choose_third(job, board->target);
	board->heap = choose_heap(job);
}

static void lend_memory(struct perf_job *job)
{
	size_t size = AREAS * job->area_size;

	job->memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (job->memory == MAP_FAILED)
		perf_fatal("%zu bytes: %s", size, strerror(errno));
	job->key = acp_register_memory(job->memory, size, 0);
	if (job->key == ACP_ATKEY_NULL)
		perf_fatal("cannot register %zu bytes (see ulimit -l)", size);
	job->board->memory_ga = acp_query_ga(job->key, job->memory);
}

/* Return the size of the largest possible block of an otherwise unused heap. */
static size_t block_size(const struct perf_job *job, uint64_t heap_size)
{
	uint64_t most = heap_size > HEAP_OVERHEAD ? heap_size - HEAP_OVERHEAD : 0;

	return most < job->area_size ? most : job->area_size;
}

static void set_area(struct perf_job *job, enum perf_place place, int rank)
{
	struct perf_area *area = &job->area[place];
	struct perf_board board;

	area->rank = rank;
	if (rank < 0)
		return;
	board = rank == job->rank ? *job->board : *perf_job_fetch(job, rank);
	area->away = board.node != job->board->node;
	if (place == PERF_HEAP) {
		area->size = block_size(job, board.heap_size);
		area->ga = acp_malloc(area->size, rank);
		job->own_heap = acp_malloc(area->size, job->rank);
		if (area->ga == ACP_GA_NULL)
			area->size = 0;
	} else {
		area->ga = board.memory_ga + place * job->area_size;
		area->size = job->area_size;
	}
}

static void find_areas(struct perf_job *job)
{
	set_area(job, PERF_OWN, 0);
	set_area(job, PERF_NEAR, 0);
	set_area(job, PERF_TARGET, job->target);
	set_area(job, PERF_THIRD, job->third);
	set_area(job, PERF_HEAP, job->board->heap);
	job->scratch = job->memory + SCRATCH * job->area_size;
	job->scratch_ga = job->board->memory_ga + SCRATCH * job->area_size;
}

void perf_job_open(struct perf_job *job, const struct perf_options *o)
{
	struct perf_board chief;

	*job = (struct perf_job){ .rank = acp_rank(), .procs = acp_procs() };
	job->board = acp_query_address(acp_query_starter_ga(job->rank));
	if (job->board == NULL || acpx_starter_size() < 2 * sizeof(struct perf_board))
		perf_fatal("needs %zu bytes of starter memory (ACP_STARTER_SIZE)",
			   2 * sizeof(struct perf_board));
	job->board->node = identify_node();
	job->board->heap_size = acpx_heap_size();
	perf_sync();
	if (job->rank == 0)
		choose_parts(job, o);
	perf_sync();
	chief = *perf_job_fetch(job, 0);
	job->target = chief.target;
	job->third = chief.third;
	job->area_size = chief.area_size;
	if (job->rank == 0 || job->rank == job->target || job->rank == job->third)
		lend_memory(job);
	perf_sync();
	if (job->rank == 0)
		find_areas(job);
}

void perf_job_close(struct perf_job *job)
{
	acp_free(job->area[PERF_HEAP].ga);
	acp_free(job->own_heap);
	if (job->memory == NULL)
		return;
	if (acp_unregister_memory(job->key) != 0)
		perf_fatal("cannot unregister memory");
	munmap(job->memory, AREAS * job->area_size);
	job->memory = NULL;
}
