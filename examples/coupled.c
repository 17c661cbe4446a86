// SPDX-License-Identifier: MIT
/*
 * coupled - several MPI programs that are one ACP job
 *
 * An ocean and the air above it are two programs, each with its own MPI_COMM_WORLD. Together they
 * are one ACP job. In each step a program computes the sum over its ranks by MPI, and its first
 * rank puts the sum into the memory of the first rank of the other program, followed by a stamp.
 * The other rank only waits for the stamp: neither side has to receive anything.
 *
 *	macpcc -O2 coupled.c -o coupled
 *	macprun -np 2 -launch mpirun ./coupled ocean 2 : -np 3 -launch mpirun ./coupled air 2
 *
 * The arguments are the name of the program and the number of ranks of the first program. The
 * essential functions are acp_copy() and MPI_Allreduce().
 */
#include <inttypes.h>
#include <mpi.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <acp.h>

#define STEPS	20

/* At the start of the starter memory of the first rank of each program. */
struct board {
	struct message { uint64_t sum, stamp; } mine, theirs[2];	/* of even and odd steps */
};

#define AT(rank, field)	(acp_query_starter_ga(rank) + offsetof(struct board, field))

static void check(int good, const char *what)
{
	if (!good)
		acp_abort(what);
}

/*
 * Send to the other program, and wait for its data. It may be one step ahead, but not two, because
 * it waits for this rank as well.
 */
static uint64_t exchange(struct board *board, int other, uint64_t sum, uint64_t step)
{
	struct message *theirs = &board->theirs[step % 2];
	acp_handle_t sent;

	board->mine = (struct message){ sum, step };
	sent = acp_copy(AT(other, theirs[step % 2].sum), AT(acp_rank(), mine.sum), 8,
			ACP_HANDLE_NULL);
	acp_complete(acp_copy(AT(other, theirs[step % 2].stamp), AT(acp_rank(), mine.stamp), 8,
			      sent));
	while (__atomic_load_n(&theirs->stamp, __ATOMIC_ACQUIRE) < step)
		sched_yield();
	return theirs->sum;
}

/* Compute in one process what the programs exchange. */
static uint64_t expected(int ocean, int air, int of_air)
{
	uint64_t heat[2] = { 1, 1 }, sum[2];
	int step;

	for (step = 1; step <= STEPS; step++) {
		sum[0] = heat[0] * (uint64_t)(ocean * (ocean + 1) / 2);
		sum[1] = heat[1] * (uint64_t)(air * (air + 1) / 2);
		heat[0] += sum[1] % 1000;
		heat[1] += sum[0] % 1000;
	}
	return heat[of_air];
}

int main(int argc, char **argv)
{
	int is_air, other, rank, ranks, first;
	uint64_t heat = 1, mine, sum, theirs = 0, step;
	struct board *board;

	MPI_Init(&argc, &argv);
	if (acp_init(&argc, &argv) != 0 || argc != 3)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	is_air = strcmp(argv[1], "air") == 0;
	first = is_air ? atoi(argv[2]) : 0;
	other = is_air ? 0 : atoi(argv[2]);
	check(acp_rank() == first + rank, "the ranks are not as macprun numbers them");
	board = acp_query_address(acp_query_starter_ga(acp_rank()));

	for (step = 1; step <= STEPS; step++) {
		mine = heat * (uint64_t)(rank + 1);
		MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		if (rank == 0)
			theirs = exchange(board, other, sum, step);
		MPI_Bcast(&theirs, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
		heat += theirs % 1000;
		MPI_Barrier(MPI_COMM_WORLD);
	}
	check(heat == expected(is_air ? first : other,
			       is_air ? ranks : acp_procs() - ranks, is_air), "wrong");
	printf("%s: rank %d of %d, %d of %d in all: heat %" PRIu64 ", as it must be\n", argv[1],
	       rank, ranks, acp_rank(), acp_procs(), heat);
	fflush(stdout);
	if (acp_finalize() != 0)
		return 1;
	MPI_Finalize();
	return 0;
}
