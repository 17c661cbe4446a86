// SPDX-License-Identifier: MIT
/*
 * An MPI program that checks messages, for any number of ranks from 2: a ring, all sizes,
 * wildcards, receives in another order than sends, probes, synchronous sends, cancelled receives,
 * collectives.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG	(1 << 20)

static int rank, ranks;
static unsigned char *out, *in;

#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "rank %d: line %d: %s\n", rank, __LINE__, #what); \
			MPI_Abort(MPI_COMM_WORLD, 1); \
		} \
	} while (0)

static void fill(int size, int seed)
{
	int i;

	for (i = 0; i < size; i++)
		out[i] = (unsigned char)(seed * 31 + i * 7 + (i >> 8));
}

static int filled(int size, int seed)
{
	int i;

	for (i = 0; i < size; i++)
		if (in[i] != (unsigned char)(seed * 31 + i * 7 + (i >> 8)))
			return 0;
	return 1;
}

/* A number goes round, by all sorts of sends and receives. */
static void ring(MPI_Comm comm)
{
	const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
	MPI_Status status;
	int round, value;

	for (round = 0; round < 20; round++) {
		value = round;
		if (!rank)
			MPI_Send(&value, 1, MPI_INT, next, round, comm);
		MPI_Recv(&value, 1, MPI_INT, round % 2 ? previous : MPI_ANY_SOURCE,
			 round % 3 ? round : MPI_ANY_TAG, comm, &status);
		CHECK(status.MPI_SOURCE == previous && status.MPI_TAG == round);
		CHECK(value == round + (rank ? rank - 1 : ranks - 1));
		value++;
		if (rank)
			MPI_Ssend(&value, 1, MPI_INT, next, round, comm);
	}
}

static void sizes(MPI_Comm comm)
{
	const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
	MPI_Status status;
	int size, got;

	for (size = 0; size <= LONG; size = size * 3 + 1) {
		fill(size, size + rank);
		MPI_Sendrecv(out, size, MPI_BYTE, next, 1, in, LONG, MPI_BYTE, previous, 1, comm,
			     &status);
		MPI_Get_count(&status, MPI_BYTE, &got);
		CHECK(got == size && filled(size, size + previous));
	}
}

/* Long messages, of which the last one is received first, before the others have receives. */
static void reversed(MPI_Comm comm)
{
	MPI_Request request[2];
	int word = 0;

	if (rank == 0) {
		fill(LONG, 5);
		MPI_Isend(out, LONG, MPI_BYTE, 1, 1, comm, &request[0]);
		MPI_Isend(out, LONG / 2, MPI_BYTE, 1, 2, comm, &request[1]);
		MPI_Wait(&request[1], MPI_STATUS_IGNORE);
		MPI_Send(&word, 1, MPI_INT, 1, 3, comm);
		MPI_Wait(&request[0], MPI_STATUS_IGNORE);
	} else if (rank == 1) {
		MPI_Recv(in, LONG, MPI_BYTE, 0, 2, comm, MPI_STATUS_IGNORE);
		CHECK(filled(LONG / 2, 5));
		MPI_Recv(&word, 1, MPI_INT, 0, 3, comm, MPI_STATUS_IGNORE);
		MPI_Recv(in, LONG, MPI_BYTE, 0, 1, comm, MPI_STATUS_IGNORE);
		CHECK(filled(LONG, 5));
	}
}

static void probes(MPI_Comm comm, int size)
{
	MPI_Message message;
	MPI_Status status;
	int there = 0, got;

	if (rank == ranks - 1) {
		fill(size, 9);
		MPI_Send(out, size, MPI_BYTE, 0, 7, comm);
	} else if (!rank) {
		while (!there)
			MPI_Iprobe(MPI_ANY_SOURCE, 7, comm, &there, &status);
		MPI_Get_count(&status, MPI_BYTE, &got);
		CHECK(got == size && status.MPI_SOURCE == ranks - 1);
		MPI_Mprobe(ranks - 1, MPI_ANY_TAG, comm, &message, &status);
		CHECK(status.MPI_TAG == 7);
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &there, &status);
		CHECK(!there);
		MPI_Mrecv(in, size, MPI_BYTE, &message, &status);
		CHECK(filled(size, 9));
	}
	MPI_Barrier(comm);
}

static void cancels(MPI_Comm comm)
{
	MPI_Request request;
	MPI_Status status;
	int yes = 0;

	MPI_Irecv(in, 8, MPI_BYTE, MPI_ANY_SOURCE, 99, comm, &request);
	MPI_Cancel(&request);
	MPI_Wait(&request, &status);
	MPI_Test_cancelled(&status, &yes);
	CHECK(yes);
}

/* More messages than receives, from all to rank 0. */
static void flood(MPI_Comm comm)
{
	int i, n, value, next[64] = { 0 };
	MPI_Status status;

	for (i = 0; i < 300 && rank; i++)
		MPI_Send(&i, 1, MPI_INT, 0, rank, comm);
	for (n = 0; n < 300 * (ranks - 1) && !rank; n++) {
		MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
		CHECK(value == next[status.MPI_SOURCE % 64]++ || ranks > 64);
		CHECK(status.MPI_TAG == status.MPI_SOURCE);
	}
	MPI_Barrier(comm);
}

static void collectives(MPI_Comm comm)
{
	int64_t mine = rank + 1, sum = 0, *all = malloc((size_t)ranks * sizeof(*all));
	int i;

	MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, comm);
	CHECK(sum == (int64_t)ranks * (ranks + 1) / 2);
	MPI_Allgather(&mine, 1, MPI_INT64_T, all, 1, MPI_INT64_T, comm);
	for (i = 0; i < ranks; i++)
		CHECK(all[i] == i + 1);
	free(all);
	if (!rank)
		fill(LONG, 3);
	memcpy(in, out, LONG);
	MPI_Bcast(in, LONG, MPI_BYTE, 0, comm);
	CHECK(filled(LONG, 3));
}

static void all_probes(MPI_Comm comm)
{
	probes(comm, 100);
	probes(comm, LONG);
}

static void stage(const char *name, void (*body)(MPI_Comm comm), MPI_Comm comm)
{
	const double begin = MPI_Wtime();

	body(comm);
	if (!rank)
		fprintf(stderr, "%s: %.0f ms\n", name, (MPI_Wtime() - begin) * 1e3);
}

int main(int argc, char **argv)
{
	MPI_Comm other;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	out = malloc(LONG);
	in = malloc(LONG);
	if (!out || !in || ranks < 2)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	stage("a ring", ring, MPI_COMM_WORLD);
	stage("sizes", sizes, other);
	stage("another order", reversed, MPI_COMM_WORLD);
	stage("probes", all_probes, other);
	stage("cancels", cancels, other);
	stage("a flood", flood, MPI_COMM_WORLD);
	stage("collectives", collectives, other);
	MPI_Comm_free(&other);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		printf("all messages of %d ranks are right\n", ranks);
	MPI_Finalize();
	free(out);
	free(in);
	return 0;
}
