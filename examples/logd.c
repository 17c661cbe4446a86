// SPDX-License-Identifier: MIT
/*
 * logd - all ranks append lines to one log
 *
 * Shows: appending to a buffer of another rank (acpx_copy_indirect with ACPX_ADVANCE). The log is
 * in the heap of rank 0, which takes no part in it. No rank has a part of the log of its own, and
 * none waits for a turn. Lines of different lengths follow each other, those of one rank in their
 * order, since it waits for each.
 *
 * Run (any number of ranks; here two on this machine, as root or with access to /dev/acp):
 *
 *     ACP_NPROCS=2 ACP_RANK=0 ./logd & ACP_NPROCS=2 ACP_RANK=1 ./logd; wait
 *
 * Exit status: 0 if each line is in the log once, else 1.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"

#define LINES	100	/* of each rank */
#define WIDTH	96	/* bytes that a line takes at most */

/* In the starter memory of each rank; those of rank 0 are used by all. */
struct board {
	struct acpx_buffer log;
	char line[WIDTH];	/* of this rank, to be appended */
};

static int rank, procs;
static struct board *board;

static void give_up(const char *what)
{
	fprintf(stderr, "rank %d: %s\n", rank, what);
	acp_abort("logd");
	exit(1);
}

/* Make line number i of this rank. Returns the bytes of it, a multiple of 8 with the zeros. */
static size_t make_line(int i)
{
	int n;

	memset(board->line, 0, WIDTH);
	n = snprintf(board->line, WIDTH, "rank %d line %d %.*s", rank, i, (i * 7 + rank) % 40,
		     "........................................");
	return ((size_t)n + 8) / 8 * 8;
}

static void append_lines(void)
{
	const acp_ga_t own = acp_query_starter_ga(rank) + offsetof(struct board, line);
	acp_handle_t handle;
	int i;

	for (i = 0; i < LINES; i++) {
		handle = acpx_copy_indirect(acp_query_starter_ga(0), own, make_line(i),
					    ACPX_ADVANCE, ACP_HANDLE_NULL);
		/* The line may be changed when it is in the log. */
		acp_complete(handle);
		if (acpx_status(handle) == ACPX_EAGAIN)
			give_up("the log is full");
	}
}

/* Check the log: LINES of each rank, in order. */
static int count_lines(const char *text, size_t bytes)
{
	int *next = calloc((size_t)procs, sizeof(*next)), from, number, lines = 0;
	const char *end = text + bytes;

	for (; next && text < end; text += strlen(text) + 8 - strlen(text) % 8, lines++) {
		if (sscanf(text, "rank %d line %d ", &from, &number) != 2 || from < 0 ||
		    from >= procs || number != next[from]++)
			break;
	}
	free(next);
	return text == end ? lines : -1;
}

int main(int argc, char **argv)
{
	const size_t room = (size_t)LINES * WIDTH;
	acp_ga_t start = ACP_GA_NULL;
	size_t bytes;
	int lines;

	if (acp_init(&argc, &argv))
		return 1;
	rank = acp_rank();
	procs = acp_procs();
	board = acp_query_address(acp_query_starter_ga(rank));
	if (acpx_starter_size() < sizeof(*board))
		give_up("set ACP_STARTER_SIZE to 4096 or more");
	if (rank == 0) {
		start = acp_malloc(room * (size_t)procs, 0);
		if (start == ACP_GA_NULL)
			give_up("no memory for the log: raise ACP_HEAP_SIZE");
		board->log.next = start;
		board->log.end = start + room * (size_t)procs;
	}
	acp_sync();
	append_lines();
	acp_sync();
	if (rank == 0) {
		bytes = board->log.next - start;
		lines = count_lines(acp_query_address(start), bytes);
		if (lines != LINES * procs)
			give_up("WRONG: lines are missing, or not in order");
		printf("logd: %d lines of %d ranks, %zu bytes, each once and in order\n", lines,
		       procs, bytes);
		acp_free(start);
	}
	return acp_finalize() ? 1 : 0;
}
