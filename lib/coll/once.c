// SPDX-License-Identifier: MIT
/* Collectives that are used once: create, start, wait, free. */
#include "acp.h"
#include "coll/coll.h"

static int run(acpx_coll_t coll)
{
	int error, freed;

	coll->eager = true;	/* it is freed at the end of the round */
	error = acpx_coll_start(coll);
	if (!error)
		error = acpx_coll_wait(coll, ACPX_FOREVER);
	freed = acpx_coll_free(coll);
	return error ? error : freed;
}

int acpx_barrier(acpx_group_t group)
{
	acpx_coll_t coll;
	int error = acpx_coll_barrier_create(group, &coll);

	return error ? error : run(coll);
}

int acpx_bcast(acpx_group_t group, int root, acp_ga_t buffer, size_t size)
{
	acpx_coll_t coll;
	int error = acpx_coll_bcast_create(group, root, buffer, size, &coll);

	return error ? error : run(coll);
}

int acpx_allreduce(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t count, int op, int type)
{
	acpx_coll_t coll;
	int error = acpx_coll_allreduce_create(group, dst, src, count, op, type, &coll);

	return error ? error : run(coll);
}

int acpx_allgather(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t size)
{
	acpx_coll_t coll;
	int error = acpx_coll_allgather_create(group, dst, src, size, &coll);

	return error ? error : run(coll);
}

int acpx_alltoall(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t size)
{
	acpx_coll_t coll;
	int error = acpx_coll_alltoall_create(group, dst, src, size, &coll);

	return error ? error : run(coll);
}
