// SPDX-License-Identifier: MIT
/*
 * forward - pieces pass through a chain of ranks whose processes do nothing
 *
 * Shows: accesses that wait for data (acpx_wait_word). Before there are any data, each rank issues
 * all that it has to do: "when my counter is k, piece k is here: copy it to the next rank, and add
 * 1 to its counter". Then its process sleeps until the last piece has passed through. The kernel
 * forwards each piece as it arrives. Rank 0 makes the pieces, one after the other.
 *
 * Run (two ranks or more; here three on this machine):
 *
 *     for r in 0 1 2; do ACP_NPROCS=3 ACP_RANK=$r ./forward & done; wait
 *
 * Exit status: 0 if all pieces arrived everywhere, else 1.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "acp.h"

#define PIECES	40
#define WORDS	25		/* of a piece */

/* The starter memory of each rank. */
struct board {
	uint64_t counter;	/* pieces that are here */
	uint64_t returned;	/* of rank 0: the last rank has got all */
	uint64_t scratch;
	uint64_t empty[5];	/* others write to the same 64 bytes seldom */
	uint64_t pieces[PIECES][WORDS];
};

static int rank, procs;

static acp_ga_t place(int of, size_t offset)
{
	return acp_query_starter_ga(of) + offset;
}

static uint64_t word_of(unsigned int piece, unsigned int word)
{
	return (piece + 1) * 1000003ull + word;
}

/* Issue all that this rank has to do. Returns the handle of the last access. */
static acp_handle_t prepare(void)
{
	const size_t counter = offsetof(struct board, counter);
	const int next = rank + 1;
	acp_handle_t handle = ACP_HANDLE_NULL;
	size_t k, piece;

	for (k = 0; k < PIECES; k++) {
		piece = offsetof(struct board, pieces[k]);
		handle = acpx_wait_word(place(rank, counter), k + 1, ACP_HANDLE_NULL);
		if (next < procs)
			handle = acpx_copy_signal(place(next, piece), place(rank, piece),
						  sizeof(uint64_t[WORDS]), place(next, counter), 1,
						  ACPX_SIGNAL_ADD, handle);
	}
	if (next == procs)
		handle = acp_add8(place(rank, offsetof(struct board, scratch)),
				  place(0, offsetof(struct board, returned)), 1, handle);
	return handle;
}

/*
 * Rank 0: one piece after the other. Adding by an access tells the accesses that wait. Its handle
 * is complete only when those before it are, as always: do not wait for it here.
 */
static void make_pieces(struct board *board)
{
	unsigned int k, i;

	for (k = 0; k < PIECES; k++) {
		for (i = 0; i < WORDS; i++)
			board->pieces[k][i] = word_of(k, i);
		acp_add8(place(0, offsetof(struct board, scratch)),
			 place(0, offsetof(struct board, counter)), 1, ACP_HANDLE_NULL);
	}
	acp_complete(acpx_wait_word(place(0, offsetof(struct board, returned)), 1,
				    ACP_HANDLE_NULL));
}

static void check(const struct board *board)
{
	unsigned int k, i;

	for (k = 0; k < PIECES; k++)
		for (i = 0; i < WORDS; i++)
			if (board->pieces[k][i] != word_of(k, i)) {
				acp_abort("forward: a piece is wrong");
				exit(EXIT_FAILURE);
			}
}

int main(int argc, char **argv)
{
	acp_handle_t last;
	struct board *board;

	if (acp_init(&argc, &argv) != 0)
		return EXIT_FAILURE;
	rank = acp_rank();
	procs = acp_procs();
	board = acp_query_address(acp_query_starter_ga(rank));
	if (acpx_starter_size() < sizeof(*board)) {
		acp_abort("forward: the starter memory is too small: set ACP_STARTER_SIZE=16384");
		return EXIT_FAILURE;
	}
	last = prepare();
	acp_sync();		/* all ranks have issued all; there are no data yet */
	if (rank == 0)
		make_pieces(board);
	acp_complete(last);	/* the only thing that the other ranks' processes do */
	check(board);
	if (rank == 0)
		printf("forward: %d pieces through %d ranks, all right\n", PIECES, procs);
	return acp_finalize() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
