/* SPDX-License-Identifier: MIT */
/* Each collective, in a form that has several pieces: a table of calls that create them. */
#ifndef COLL_ALL_H
#define COLL_ALL_H

#include "coll_play.h"

#define COUNT	700			/* numbers: two pieces */
#define BLOCK	3000			/* bytes */

typedef int create_t(acpx_group_t group, acpx_coll_t *coll);

static inline int barrier(acpx_group_t group, acpx_coll_t *coll)
{
	return acpx_coll_barrier_create(group, coll);
}

static inline int bcast(acpx_group_t group, acpx_coll_t *coll)
{
	return acpx_coll_bcast_create(group, 1, dst_ga, 200000, coll);
}

static inline int reduce(acpx_group_t group, acpx_coll_t *coll)
{
	return acpx_coll_reduce_create(group, 1, dst_ga, src_ga, COUNT, ACPX_SUM, ACPX_INT64, coll);
}

static inline int allreduce(acpx_group_t group, acpx_coll_t *coll)
{
	return acpx_coll_allreduce_create(group, dst_ga, src_ga, COUNT, ACPX_MAX, ACPX_DOUBLE,
					  coll);
}

static inline int reduce_scatter(acpx_group_t group, acpx_coll_t *coll)
{
	return acpx_coll_reduce_scatter_create(group, dst_ga, src_ga, COUNT, ACPX_XOR, ACPX_INT64,
					       coll);
}

static inline int scan(acpx_group_t group, acpx_coll_t *coll)
{
	return acpx_coll_scan_create(group, dst_ga, src_ga, COUNT, ACPX_SUM, ACPX_INT32, coll);
}

static inline int gather(acpx_group_t group, acpx_coll_t *coll)
{
	return acpx_coll_gather_create(group, 2, dst_ga, src_ga, BLOCK, coll);
}

static inline int allgather(acpx_group_t group, acpx_coll_t *coll)
{
	return acpx_coll_allgather_create(group, dst_ga, src_ga, BLOCK, coll);
}

static inline int alltoall(acpx_group_t group, acpx_coll_t *coll)
{
	return acpx_coll_alltoall_create(group, dst_ga, src_ga, BLOCK, coll);
}

static inline int ring(acpx_group_t group, acpx_coll_t *coll)
{
	const int size = acpx_group_size(group), number = acpx_group_rank(group);
	const struct acpx_neighbour list[] = {
		{ (number + 1) % size, { 0, BLOCK }, { BLOCK, BLOCK } },
		{ (number + size - 1) % size, { BLOCK, BLOCK }, { 0, BLOCK } },
	};

	return acpx_coll_neighbours_create(group, dst_ga, src_ga, list, 2, coll);
}

static create_t *const all[] = {
	barrier, bcast, reduce, allreduce, reduce_scatter, scan, gather, allgather, alltoall, ring,
};

#define ALL	(sizeof(all) / sizeof(all[0]))

#endif /* COLL_ALL_H */
