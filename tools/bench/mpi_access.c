// SPDX-License-Identifier: MIT
/*
 * Cost of MPI one-sided communication, for comparison with acp_perf.
 *
 *	mpicc -O2 -o mpi_access mpi_access.c
 *	mpirun -np 2 ./mpi_access OPERATION:SIZE:ITERATIONS...
 *
 * Operations: put, get, add (8 bytes), row (ROW puts, then one flush; the time of one put); of all
 * ranks: bar (MPI_Barrier) and sum (MPI_Allreduce of a double), which ignore the size, bca
 * (MPI_Bcast), aga (MPI_Allgather) and ata (MPI_Alltoall) of blocks of the size.
 *
 * Rank 0 accesses the memory of rank 1 and waits for remote completion (MPI_Win_flush), while the
 * others are in a barrier. Rank 0 prints "result OPERATION SIZE MICROSECONDS", or that the data is
 * wrong: the median; the mean of operations of all ranks, until all have done the last one, because
 * some of them have no part in an operation that has not ended.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM_UP	50
#define ROW	256
#define MOST	(1 << 20)	/* bytes */

struct access {
	char name[4];
	unsigned int size, n;
};

static int rank, ranks;
static unsigned char *shared, mine[MOST];
static unsigned char *from, *to;	/* blocks of all ranks, for operations of all */
static double sum;
static MPI_Win win;

static bool is(const struct access *a, const char *name)
{
	return strcmp(a->name, name) == 0;
}

static bool is_access(const struct access *a)
{
	return is(a, "put") || is(a, "get") || is(a, "add") || is(a, "row");
}

static bool is_collective(const struct access *a)
{
	return is(a, "bar") || is(a, "sum") || is(a, "bca") || is(a, "aga") || is(a, "ata");
}

static void collective_once(const struct access *a)
{
	const double number = rank + 1;
	const int size = (int)a->size;

	if (is(a, "bar"))
		MPI_Barrier(MPI_COMM_WORLD);
	else if (is(a, "sum"))
		MPI_Allreduce(&number, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	else if (is(a, "bca"))
		MPI_Bcast(rank == 0 ? from : to, size, MPI_BYTE, 0, MPI_COMM_WORLD);
	else if (is(a, "aga"))
		MPI_Allgather(from, size, MPI_BYTE, to, size, MPI_BYTE, MPI_COMM_WORLD);
	else
		MPI_Alltoall(from, size, MPI_BYTE, to, size, MPI_BYTE, MPI_COMM_WORLD);
}

static void access_once(const struct access *a)
{
	static const uint64_t one = 1;
	int i, n = is(a, "row") ? ROW : 1;

	if (is_collective(a)) {
		collective_once(a);
		return;
	}
	for (i = 0; i < n && (is(a, "put") || is(a, "row")); i++)
		MPI_Put(mine, (int)a->size, MPI_BYTE, 1, 0, (int)a->size, MPI_BYTE, win);
	if (is(a, "get"))
		MPI_Get(mine, (int)a->size, MPI_BYTE, 1, 0, (int)a->size, MPI_BYTE, win);
	if (is(a, "add"))
		MPI_Fetch_and_op(&one, mine, MPI_UINT64_T, 1, 0, MPI_SUM, win);
	MPI_Win_flush(1, win);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const struct access *a)
{
	double *sample = calloc(a->n, sizeof(*sample)), begin, result;
	unsigned int i;

	if (sample == NULL)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (i = 0; i < WARM_UP; i++)
		access_once(a);
	for (i = 0; i < a->n; i++) {
		begin = MPI_Wtime();
		access_once(a);
		sample[i] = 1e6 * (MPI_Wtime() - begin);
	}
	qsort(sample, a->n, sizeof(*sample), compare);
	result = sample[a->n / 2] / (is(a, "row") ? ROW : 1);
	free(sample);
	return result;
}

static double mean(const struct access *a)
{
	double begin;
	unsigned int i;

	for (i = 0; i < WARM_UP && i < a->n; i++)
		access_once(a);
	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (i = 0; i < a->n; i++)
		access_once(a);
	MPI_Barrier(MPI_COMM_WORLD);
	return 1e6 * (MPI_Wtime() - begin) / a->n;
}

static bool all_are(const unsigned char *byte, unsigned int size, unsigned char value)
{
	while (size-- > 0)
		if (byte[size] != value)
			return false;
	return true;
}

/* The block of each rank for each other one has the sum of both, and so has what is for all. */
static void fill(unsigned int size)
{
	int i;

	for (i = 0; i < ranks; i++)
		memset(from + (size_t)i * size, rank + i, size);
	memset(to, 0xa5, (size_t)ranks * size);
}

static bool collective_is_right(const struct access *a)
{
	int i;

	if (is(a, "sum"))
		return sum == ranks * (ranks + 1) / 2.0;
	if (is(a, "bca"))
		return rank == 0 || all_are(to, a->size, 0);
	for (i = 0; i < ranks && !is(a, "bar"); i++)
		if (!all_are(to + (size_t)i * a->size, a->size,
			     (unsigned char)(is(a, "aga") ? i : i + rank)))
			return false;
	return true;
}

/*
 * Called by the rank with the destination: check the result of the accesses, with 0 there and 0xa5
 * here before.
 */
static bool right(const struct access *a)
{
	uint64_t count;

	if (is_collective(a))
		return collective_is_right(a);
	if (is(a, "put") || is(a, "row"))
		return rank == 0 || all_are(shared, a->size, 0xa5);
	if (is(a, "get"))
		return rank == 1 || all_are(mine, a->size, 0);
	memcpy(&count, rank == 0 ? mine : shared, sizeof(count));
	return count == a->n + WARM_UP - (rank == 0);
}

static void measure(const struct access *a)
{
	double result = 0;
	int good, all;

	fill(a->size);
	memset(mine, 0xa5, a->size);
	memset(shared, 0, a->size);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	if (is_collective(a))
		result = mean(a);
	else if (rank == 0)
		result = median(a);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
	good = right(a);
	MPI_Win_unlock(rank, win);
	MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (rank == 0 && all)
		printf("result %s %u %.3f\n", a->name, a->size, result);
	else if (rank == 0)
		printf("%s of %u bytes: WRONG\n", a->name, a->size);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct access a;
	int i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	from = malloc((size_t)ranks * MOST);
	to = malloc((size_t)ranks * MOST);
	if (from == NULL || to == NULL)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Win_allocate(MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &win);
	for (i = 1; i < argc; i++) {
		if (sscanf(argv[i], "%3[a-z]:%u:%u", a.name, &a.size, &a.n) != 3 ||
		    !(is_access(&a) || is_collective(&a)) || a.size < 8 || a.size > MOST ||
		    a.n == 0) {
			fprintf(stderr, "%s: not understood\n", argv[i]);
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		measure(&a);
	}
	MPI_Win_free(&win);
	MPI_Finalize();
	return 0;
}
