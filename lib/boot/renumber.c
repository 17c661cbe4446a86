// SPDX-License-Identifier: MIT
/*
 * acp_reset(): the ranks agree on new numbers before any of them leaves.
 *
 * Rank 0 collects the new numbers in an array that it registers temporarily, checks that they are a
 * permutation, and encodes the new placement as runs, which the other ranks read. The addresses are
 * exchanged in the library pages. A rank that can continue increments a counter of rank 0, so that
 * finally either all ranks leave or all stay: whatever fails, a rank enters every barrier. A rank
 * that cannot read the counter aborts the job, because the other ranks would leave without it.
 *
 *	all	own page: new number
 *	rank 0	own page: GA of the array		-- barrier
 *	all	number -> array[old rank]		-- barrier
 *	rank 0	own page: GA and number of the runs	-- barrier
 *	all	fetch the runs; ready += 1		-- barrier
 *	all	fetch ready				-- barrier
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"
#include "boot/boot.h"
#include "boot/renumber.h"
#include "channel/rendezvous.h"
#include "core/barrier.h"
#include "core/internal.h"
#include "core/job.h"
#include "core/mem.h"
#include "core/page.h"
#include "core/process.h"
#include "core/wait.h"

#define NOBODY		UINT32_MAX
#define PIECE_RUNS	(sizeof(((struct libacp_page *)0)->piece) / (sizeof(struct acp_rank_run)))

/* Memory of rank 0 that the other ranks access. */
struct collection {
	uint32_t *numbers;		/* new rank of each old rank */
	uint32_t *nodes;		/* node of each new rank */
	struct acp_rank_run *runs;
	acp_atkey_t numbers_key, runs_key;
};

/* Global address of a member of the library page of a rank. */
#define PAGE_GA(rank, member) \
	acp_ga_make(&libacp.layout, rank, 0, ACP_STAG_LIBRARY, offsetof(struct libacp_page, member))

static struct libacp_page *own_page(void)
{
	return libacp_mem_own(ACP_STAG_LIBRARY);
}

static int finish(acp_handle_t handle)
{
	int error;

	if (handle == (acp_handle_t)ACP_HANDLE_NULL)
		return -ECANCELED;
	error = libacp_gma_wait(handle);
	if (error)
		return error;
	return acpx_status(handle) ? -EIO : 0;
}

static int move(acp_ga_t dst, acp_ga_t src, size_t size)
{
	return finish(acp_copy(dst, src, size, ACP_HANDLE_NULL));
}

static int barrier(uint32_t flags)
{
	return libacp_barrier(flags);
}

/* ---- Rank 0 ---- */

static acp_ga_t lend(void *memory, size_t size, acp_atkey_t *key)
{
	*key = acp_register_memory(memory, size, 0);
	return acp_query_ga(*key, memory);
}

static void collect_begin(struct collection *c, struct libacp_page *page)
{
	size_t size = libacp.nprocs * sizeof(*c->numbers);

	page->table = ACP_GA_NULL;
	page->runs = ACP_GA_NULL;
	page->run_count = 0;
	page->ready = 0;
	c->numbers = malloc(size);
	if (!c->numbers)
		return;
	memset(c->numbers, 0xff, size);
	page->table = lend(c->numbers, size, &c->numbers_key);
}

/* Compute the node of each new rank. False if the numbers are no permutation. */
static bool invert(struct collection *c)
{
	uint32_t old, number;

	memset(c->nodes, 0xff, libacp.nprocs * sizeof(*c->nodes));
	for (old = 0; old < libacp.nprocs; old++) {
		number = __atomic_load_n(&c->numbers[old], __ATOMIC_RELAXED);
		if (number >= libacp.nprocs || c->nodes[number] != NOBODY)
			return false;
		c->nodes[number] = libacp_boot_node_of(&libacp.boot, old);
	}
	return true;
}

static void collect_end(struct collection *c, struct libacp_page *page)
{
	uint32_t max = libacp.nprocs < ACP_RUNS_MAX ? libacp.nprocs : ACP_RUNS_MAX;
	uint32_t count;

	c->nodes = malloc(libacp.nprocs * sizeof(*c->nodes));
	c->runs = calloc(max, sizeof(*c->runs));
	if (!c->numbers || !c->nodes || !c->runs || !invert(c))
		return;
	count = libacp_boot_encode(c->nodes, libacp.nprocs, c->runs, max);
	if (!count)
		return;
	page->runs = lend(c->runs, count * sizeof(*c->runs), &c->runs_key);
	page->run_count = page->runs == ACP_GA_NULL ? 0 : count;
}

static void collect_free(struct collection *c)
{
	if (c->numbers_key != ACP_ATKEY_NULL)
		acp_unregister_memory(c->numbers_key);
	if (c->runs_key != ACP_ATKEY_NULL)
		acp_unregister_memory(c->runs_key);
	free(c->numbers);
	free(c->nodes);
	free(c->runs);
}

/* ---- All ranks ---- */

/* Read up to sizeof(piece) bytes from any address. */
static int fetch(void *to, acp_ga_t from, size_t size)
{
	int error = move(PAGE_GA(libacp.rank, piece), from, size);

	if (!error)
		memcpy(to, own_page()->piece, size);
	return error;
}

/* Write the new number to the array of rank 0. If this fails, rank 0 rejects the new numbers. */
static void send_number(void)
{
	acp_ga_t table;

	if (fetch(&table, PAGE_GA(0, table), sizeof(table)) == 0 && table != ACP_GA_NULL)
		move(table + libacp.rank * sizeof(uint32_t), PAGE_GA(libacp.rank, number),
		     sizeof(uint32_t));
}

/* Read the new runs, piece by piece. NULL: rejected, or a failure. */
static struct acp_rank_run *fetch_runs(uint32_t *count)
{
	struct acp_rank_run *runs = NULL;
	uint32_t done, piece;
	acp_ga_t from;

	if (fetch(&from, PAGE_GA(0, runs), sizeof(from)) == 0 &&
	    fetch(count, PAGE_GA(0, run_count), sizeof(*count)) == 0 && *count)
		runs = calloc(*count, sizeof(*runs));
	for (done = 0; runs && done < *count; done += piece) {
		piece = *count - done < PIECE_RUNS ? *count - done : PIECE_RUNS;
		if (fetch(runs + done, from + done * sizeof(*runs), piece * sizeof(*runs))) {
			free(runs);
			runs = NULL;
		}
	}
	return runs;
}

static void count_ready(void)
{
	finish(acp_add4(PAGE_GA(libacp.rank, former), PAGE_GA(0, ready), 1, ACP_HANDLE_NULL));
}

/* Determine whether all ranks can continue. A rank that cannot find out ends the job. */
static int all_ready(bool *all)
{
	uint32_t ready = 0;

	if (fetch(&ready, PAGE_GA(0, ready), sizeof(ready))) {
		libacp_error("acp_reset: rank 0 cannot be reached");
		ioctl(libacp.fd, ACP_IOC_ABORT);
		return -ECANCELED;
	}
	*all = ready == libacp.nprocs;
	return 0;
}

/* Return the new number, or an invalid one if this rank could not join again. */
static uint32_t wanted_number(int rank)
{
	uint8_t key[16];
	int unreadable = libacp_boot_key(&libacp.boot, key);

	explicit_bzero(key, sizeof(key));
	return unreadable || rank < 0 ? NOBODY : (uint32_t)rank;
}

static int agree(struct collection *c, struct acp_rank_run **runs, uint32_t *count)
{
	struct libacp_page *page = own_page();
	bool all;
	int error;

	if (libacp.rank == 0)
		collect_begin(c, page);
	error = barrier(0);
	if (error)
		return error;
	send_number();
	error = barrier(0);
	if (error)
		return error;
	if (libacp.rank == 0)
		collect_end(c, page);
	error = barrier(0);
	if (error)
		return error;
	*runs = fetch_runs(count);
	if (*runs)
		count_ready();
	error = barrier(0);
	if (!error)
		error = all_ready(&all);
	if (error)
		return error;
	if (all)
		libacp_rendezvous_settle();
	error = barrier(all ? ACP_SYNC_FINAL : 0);
	return error || all ? error : -EINVAL;
}

int libacp_reset_agree(int rank)
{
	struct collection c = { .numbers_key = ACP_ATKEY_NULL, .runs_key = ACP_ATKEY_NULL };
	struct acp_rank_run *runs = NULL;
	uint32_t count = 0;
	int error;

	own_page()->number = wanted_number(rank);
	error = agree(&c, &runs, &count);
	collect_free(&c);
	if (error) {
		free(runs);
		return error;
	}
	free(libacp.boot.rank_runs);
	libacp.boot.rank_runs = runs;
	libacp.boot.rank_run_count = count;
	libacp.boot.rank = (uint32_t)rank;
	return 0;
}
