// SPDX-License-Identifier: MIT
/*
 * The collectives to measure: how each is created, and what it stores. Member 0 is the root. Those
 * that combine add numbers of type double.
 */
#include "coll.h"

#include <errno.h>
#include <string.h>

#define COUNT(m)	((m)->size / sizeof(double))
#define ALL_BLOCKS	(-1)	/* as many as members */

static int barrier(const struct perf_coll_memory *m, acpx_coll_t *coll)
{
	return acpx_coll_barrier_create(m->group, coll);
}

static int bcast(const struct perf_coll_memory *m, acpx_coll_t *coll)
{
	acp_ga_t buffer = acpx_group_rank(m->group) == 0 ? m->src : m->dst;

	return acpx_coll_bcast_create(m->group, 0, buffer, m->size, coll);
}

static int reduce(const struct perf_coll_memory *m, acpx_coll_t *coll)
{
	return acpx_coll_reduce_create(m->group, 0, m->dst, m->src, COUNT(m), ACPX_SUM, ACPX_DOUBLE,
				       coll);
}

static int allreduce(const struct perf_coll_memory *m, acpx_coll_t *coll)
{
	return acpx_coll_allreduce_create(m->group, m->dst, m->src, COUNT(m), ACPX_SUM, ACPX_DOUBLE,
					  coll);
}

static int reduce_scatter(const struct perf_coll_memory *m, acpx_coll_t *coll)
{
	return acpx_coll_reduce_scatter_create(m->group, m->dst, m->src, COUNT(m), ACPX_SUM,
					       ACPX_DOUBLE, coll);
}

static int scan(const struct perf_coll_memory *m, acpx_coll_t *coll)
{
	return acpx_coll_scan_create(m->group, m->dst, m->src, COUNT(m), ACPX_SUM, ACPX_DOUBLE,
				     coll);
}

static int exscan(const struct perf_coll_memory *m, acpx_coll_t *coll)
{
	return acpx_coll_exscan_create(m->group, m->dst, m->src, COUNT(m), ACPX_SUM, ACPX_DOUBLE,
				       coll);
}

static int gather(const struct perf_coll_memory *m, acpx_coll_t *coll)
{
	return acpx_coll_gather_create(m->group, 0, m->dst, m->src, m->size, coll);
}

static int scatter(const struct perf_coll_memory *m, acpx_coll_t *coll)
{
	return acpx_coll_scatter_create(m->group, 0, m->dst, m->src, m->size, coll);
}

static int allgather(const struct perf_coll_memory *m, acpx_coll_t *coll)
{
	return acpx_coll_allgather_create(m->group, m->dst, m->src, m->size, coll);
}

static int alltoall(const struct perf_coll_memory *m, acpx_coll_t *coll)
{
	return acpx_coll_alltoall_create(m->group, m->dst, m->src, m->size, coll);
}

/* ---- Transfers: from the source of the root, to the destinations of others ---- */

static void *array_of(const struct perf_coll_memory *m)
{
	return acp_query_address(acpx_group_rank(m->group) == 0 ? m->src : m->dst);
}

static int bcast_direct(const struct perf_coll_memory *m, acpx_coll_t *coll)
{
	return acpx_coll_bcast_direct_create(m->group, array_of(m), m->size, 0, coll);
}

static int bcast_buffered(const struct perf_coll_memory *m, acpx_coll_t *coll)
{
	return acpx_coll_bcast_buffered_create(m->group, m->size, coll);
}

static int send_direct(const struct perf_coll_memory *m, acpx_coll_t coll)
{
	return acp_send_bcast_direct(coll, 0, m->size) ? -errno : 0;
}

static int send_buffered(const struct perf_coll_memory *m, acpx_coll_t coll)
{
	return acp_send_bcast_buffered(coll, array_of(m), m->size) ? -errno : 0;
}

/* ---- What is stored: block @from of members @first to @end ---- */

static bool of_root(struct perf_coll_place at, struct perf_coll_origin *origin)
{
	*origin = (struct perf_coll_origin){ .end = 1 };
	return at.member != 0;		/* the root's buffer is its source */
}

static bool own_of_root(struct perf_coll_place at, struct perf_coll_origin *origin)
{
	*origin = (struct perf_coll_origin){ .end = 1, .block = at.member };
	return true;
}

static bool sum_at_all(struct perf_coll_place at, struct perf_coll_origin *origin)
{
	*origin = (struct perf_coll_origin){ .end = at.members };
	return true;
}

static bool sum_at_root(struct perf_coll_place at, struct perf_coll_origin *origin)
{
	return sum_at_all(at, origin) && at.member == 0;
}

static bool sum_of_own(struct perf_coll_place at, struct perf_coll_origin *origin)
{
	*origin = (struct perf_coll_origin){ .end = at.members, .block = at.member };
	return true;
}

static bool sum_of_earlier(struct perf_coll_place at, struct perf_coll_origin *origin)
{
	*origin = (struct perf_coll_origin){ .end = at.member };
	return at.member > 0;
}

static bool sum_until_own(struct perf_coll_place at, struct perf_coll_origin *origin)
{
	*origin = (struct perf_coll_origin){ .end = at.member + 1 };
	return true;
}

static bool block_of_each(struct perf_coll_place at, struct perf_coll_origin *origin)
{
	*origin = (struct perf_coll_origin){ .first = at.block, .end = at.block + 1 };
	return true;
}

static bool block_of_each_at_root(struct perf_coll_place at, struct perf_coll_origin *origin)
{
	return block_of_each(at, origin) && at.member == 0;
}

static bool own_of_each(struct perf_coll_place at, struct perf_coll_origin *origin)
{
	*origin = (struct perf_coll_origin){ at.block, at.block + 1, at.member };
	return true;
}

const struct perf_coll perf_coll_table[] = {
	{ "barrier", "mode coll: no data", barrier, NULL, 0, 0, false, NULL },
	{ "bcast", "mode coll: a block of rank 0 to all", bcast, of_root, 1, 1, false, NULL },
	{ "reduce", "mode coll: sums of numbers (double) at rank 0", reduce, sum_at_root, 1, 1,
	  true, NULL },
	{ "allreduce", "mode coll: sums at all ranks", allreduce, sum_at_all, 1, 1, true, NULL },
	{ "reduce_scatter", "mode coll: a block of sums at each rank", reduce_scatter, sum_of_own,
	  ALL_BLOCKS, 1, true, NULL },
	{ "scan", "mode coll: sums of all ranks up to the own one", scan, sum_until_own, 1, 1,
	  true, NULL },
	{ "exscan", "mode coll: sums of all ranks before the own one", exscan, sum_of_earlier, 1, 1,
	  true, NULL },
	{ "gather", "mode coll: a block of each rank to rank 0", gather, block_of_each_at_root, 1,
	  ALL_BLOCKS, false, NULL },
	{ "scatter", "mode coll: a block of rank 0 to each", scatter, own_of_root, ALL_BLOCKS, 1,
	  false, NULL },
	{ "allgather", "mode coll: a block of each rank to all", allgather, block_of_each, 1,
	  ALL_BLOCKS, false, NULL },
	{ "alltoall", "mode coll: a block of each rank to each", alltoall, own_of_each, ALL_BLOCKS,
	  ALL_BLOCKS, false, NULL },
	{ "bcast_direct", "mode coll: as bcast, by acp_send_bcast_direct()", bcast_direct, of_root,
	  1, 1, false, send_direct },
	{ "bcast_buffered", "mode coll: as bcast, by acp_send_bcast_buffered()", bcast_buffered,
	  of_root, 1, 1, false, send_buffered },
};

const size_t perf_coll_count = sizeof(perf_coll_table) / sizeof(perf_coll_table[0]);

int perf_coll_find(const char *name)
{
	size_t i;

	for (i = 0; i < perf_coll_count; i++) {
		if (strcmp(name, perf_coll_table[i].name) == 0)
			return (int)i;
	}
	return -1;
}
