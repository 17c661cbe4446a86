// SPDX-License-Identifier: MIT
/*
 * sitter - a rank that registers memory and writes a word to all others repeatedly until it is told
 * to end, whatever happens to the others
 *
 *	sitter DIRECTORY	creates ready.RANK there, and ends when a file "stop" exists
 *	SITTER_COLOR=1 sitter DIRECTORY		also writes to memory of that color
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "acp.h"

#define BLOCKS	1024	/* addresses of the blocks of all ranks, in starter memory */

static char block[65536];

static int there(const char *directory, const char *name)
{
	char path[500];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return access(path, F_OK) == 0;
}

static void tell_ready(const char *directory)
{
	char path[500];
	FILE *f;

	snprintf(path, sizeof(path), "%s/ready.%d", directory, acp_rank());
	f = fopen(path, "w");
	if (!f || fclose(f))
		abort();
}

/*
 * Publish the address of the block in the starter memory of all others, at the index of this rank.
 */
static void tell_block(acp_ga_t block_ga)
{
	const acp_ga_t own = acp_query_starter_ga(acp_rank()) + BLOCKS;
	acp_ga_t *blocks = acp_query_address(own);
	int rank;

	blocks[acp_rank()] = block_ga;
	for (rank = 0; rank < acp_procs(); rank++)
		if (rank != acp_rank())
			acp_complete(acp_copy(acp_query_starter_ga(rank) + BLOCKS +
					      (acp_ga_t)acp_rank() * 8,
					      own + (acp_ga_t)acp_rank() * 8, 8, ACP_HANDLE_NULL));
}

static void write_to_blocks(void)
{
	const acp_ga_t *blocks = acp_query_address(acp_query_starter_ga(acp_rank()) + BLOCKS);
	int rank;

	for (rank = 0; rank < acp_procs(); rank++)
		if (rank != acp_rank())
			acp_complete(acp_copy(blocks[rank], acp_query_starter_ga(acp_rank()), 8,
					      ACP_HANDLE_NULL));
}

static void write_to_all(void)
{
	int rank;

	for (rank = 0; rank < acp_procs(); rank++)
		acp_complete(acp_copy(acp_query_starter_ga(rank) + 64,
				      acp_query_starter_ga(acp_rank()), 8, ACP_HANDLE_NULL));
}

int main(int argc, char **argv)
{
	const char *color = getenv("SITTER_COLOR");
	acp_atkey_t key;

	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	if (argc < 2 || acp_init(&argc, &argv) != 0)
		return 1;
	key = acp_register_memory(block, sizeof(block), color ? atoi(color) : 0);
	if (key == ACP_ATKEY_NULL)
		return 1;
	tell_block(acp_query_ga(key, block));
	acp_sync();
	write_to_all();
	tell_ready(argv[1]);
	while (!there(argv[1], "stop")) {
		write_to_all();
		if (color)
			write_to_blocks();
		usleep(20000);
	}
	acp_sync();
	return acp_finalize() != 0;
}
