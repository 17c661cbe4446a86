// SPDX-License-Identifier: MIT
/*
 * What MPI's one-sided communication takes, to compare acp_perf's figures with.
 *
 *	mpicc -O2 -o mpi_access mpi_access.c
 *	mpirun -np 2 ./mpi_access put|get|add SIZE ITERATIONS
 *
 * Rank 0 accesses the memory of rank 1 and waits until that is complete there (MPI_Win_flush); rank 1
 * is in a barrier meanwhile. Rank 0 prints the median in microseconds, or 2 lines if data was wrong.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM_UP	50

static void access_once(char what, void *mine, size_t size, MPI_Win win)
{
	static const uint64_t one = 1;

	if (what == 'p')
		MPI_Put(mine, (int)size, MPI_BYTE, 1, 0, (int)size, MPI_BYTE, win);
	else if (what == 'g')
		MPI_Get(mine, (int)size, MPI_BYTE, 1, 0, (int)size, MPI_BYTE, win);
	else
		MPI_Fetch_and_op(&one, mine, MPI_UINT64_T, 1, 0, MPI_SUM, win);
	MPI_Win_flush(1, win);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(char what, void *mine, size_t size, int n, MPI_Win win)
{
	double *sample = calloc((size_t)n, sizeof(*sample)), begin, result;
	int i;

	if (sample == NULL)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (i = -WARM_UP; i < n; i++) {
		begin = MPI_Wtime();
		access_once(what, mine, size, win);
		if (i >= 0)
			sample[i] = 1e6 * (MPI_Wtime() - begin);
	}
	qsort(sample, (size_t)n, sizeof(*sample), compare);
	result = sample[n / 2];
	free(sample);
	return result;
}

/* Rank 1: what the accesses must have made of memory that was all 0x5a or, for add, 0. */
static int wrong(char what, const unsigned char *memory, size_t size, int n)
{
	uint64_t count;

	if (what == 'a') {
		memcpy(&count, memory, sizeof(count));
		return count != (uint64_t)n + WARM_UP;
	}
	return memory[0] != (what == 'p' ? 0xa5 : 0x5a) || memory[size - 1] != memory[0];
}

int main(int argc, char **argv)
{
	size_t size = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	int rank, bad = 0, n = argc == 4 ? atoi(argv[3]) : 0;
	char what = argc == 4 ? argv[1][0] : '?';
	double result = 0;
	void *memory, *mine;
	MPI_Win win;

	if (strchr("pga", what) == NULL || size < 8 || size > 1 << 26 || n < 1)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Win_allocate((MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	mine = malloc(size);
	if (mine == NULL)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(memory, what == 'a' ? 0 : 0x5a, size);
	memset(mine, 0xa5, size);
	MPI_Win_lock_all(0, win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		result = median(what, mine, size, n, win);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 1)
		bad = wrong(what, memory, size, n);
	MPI_Bcast(&bad, 1, MPI_INT, 1, MPI_COMM_WORLD);
	if (rank == 0 && (what != 'g' || memcmp(mine, "\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a", 8) == 0))
		printf("%.3f\n%s", result, bad ? "wrong\n" : "");
	MPI_Win_free(&win);
	free(mine);
	MPI_Finalize();
	return 0;
}
