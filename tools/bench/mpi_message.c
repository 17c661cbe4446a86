// SPDX-License-Identifier: MIT
/*
 * Cost of MPI messages to receives that are posted in time, for comparison with acp_perf tag, which
 * does the same in the same order.
 *
 *	mpicc -O2 -o mpi_message mpi_message.c
 *	mpirun -np 2 ./mpi_message OPERATION:SIZE:ITERATIONS...
 *
 * Operations: trip (MPI_Send; rank 1, which posts its next receive before, answers by 8 bytes;
 * until the answer is there), done (MPI_Ssend, while rank 1 waits for all of its receives; until
 * the message is complete for its sender).
 *
 * Rank 0 prints "result OPERATION SIZE MICROSECONDS", the median, or that the data is wrong.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM_UP	16
#define ROUND	64		/* receives that are posted at a time */
#define MOST	(1 << 20)	/* bytes */
#define ANSWER	8

struct message {
	char name[5];
	unsigned int size, n;
};

static int rank;
static unsigned char outgoing[MOST], incoming[MOST];

static MPI_Request post(unsigned int size)
{
	MPI_Request posted;

	MPI_Irecv(incoming, (int)size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &posted);
	return posted;
}

/* Each message begins and ends with a number, which its answer repeats. */
static void number(unsigned int size, unsigned int i)
{
	outgoing[0] = (unsigned char)i;
	outgoing[size - 1] = (unsigned char)i;
}

static bool right(unsigned int size, unsigned int i)
{
	return incoming[0] == (unsigned char)i && incoming[size - 1] == (unsigned char)i;
}

/* ---- round trips ---- */

static double round_trip(unsigned int size, unsigned int i, bool *good)
{
	MPI_Request posted = post(ANSWER);
	double begin;

	number(size, i);
	begin = MPI_Wtime();
	MPI_Send(outgoing, (int)size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
	MPI_Wait(&posted, MPI_STATUS_IGNORE);
	begin = MPI_Wtime() - begin;
	*good = *good && right(ANSWER, i);
	return begin;
}

/* Rank 1. There is always a receive for the next message. */
static bool answer(const struct message *m)
{
	MPI_Request posted = post(m->size);
	bool good = true;
	unsigned int i;

	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < m->n + WARM_UP; i++) {
		MPI_Wait(&posted, MPI_STATUS_IGNORE);
		good = good && right(m->size, i);
		if (i + 1 < m->n + WARM_UP)
			posted = post(m->size);
		number(ANSWER, i);
		MPI_Send(outgoing, ANSWER, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
	}
	return good;
}

static bool trips(const struct message *m, double *sample)
{
	bool good = true;
	unsigned int i;

	if (rank == 1)
		return answer(m);
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < m->n + WARM_UP; i++)
		sample[i] = round_trip(m->size, i, &good);
	return good;
}

/* ---- one way ---- */

static double until_done(unsigned int size, unsigned int i)
{
	double begin;

	number(size, i);
	begin = MPI_Wtime();
	MPI_Ssend(outgoing, (int)size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
	return MPI_Wtime() - begin;
}

/* All receives of a round have the same buffer, which the last message is in. */
static bool messages_done(const struct message *m, double *sample)
{
	MPI_Request posted[ROUND];
	bool good = true;
	unsigned int i, k;

	for (i = 0; i < m->n + WARM_UP; i += ROUND) {
		for (k = 0; k < ROUND && rank == 1; k++)
			posted[k] = post(m->size);
		MPI_Barrier(MPI_COMM_WORLD);
		for (k = 0; k < ROUND && rank == 0; k++)
			sample[i + k] = until_done(m->size, i + k);
		if (rank == 1) {
			MPI_Waitall(ROUND, posted, MPI_STATUSES_IGNORE);
			good = good && right(m->size, i + ROUND - 1);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	return good;
}

/* ---- the measurement ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(const struct message *m)
{
	double *sample = calloc(m->n + WARM_UP + ROUND, sizeof(*sample));
	int good, all;

	if (sample == NULL)
		MPI_Abort(MPI_COMM_WORLD, 1);
	good = m->name[0] == 't' ? trips(m, sample) : messages_done(m, sample);
	MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	qsort(sample + WARM_UP, m->n, sizeof(*sample), compare);
	if (rank == 0 && all)
		printf("result %s %u %.3f\n", m->name, m->size, 1e6 * sample[WARM_UP + m->n / 2]);
	else if (rank == 0)
		printf("%s of %u bytes: WRONG\n", m->name, m->size);
	fflush(stdout);
	free(sample);
}

int main(int argc, char **argv)
{
	struct message m;
	int i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (i = 1; i < argc; i++) {
		if (sscanf(argv[i], "%4[a-z]:%u:%u", m.name, &m.size, &m.n) != 3 ||
		    strchr("td", m.name[0]) == NULL || m.size < ANSWER || m.size > MOST ||
		    m.n == 0) {
			fprintf(stderr, "%s: not understood\n", argv[i]);
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		measure(&m);
	}
	MPI_Finalize();
	return 0;
}
