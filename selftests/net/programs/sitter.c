// SPDX-License-Identifier: MIT
/*
 * sitter - a rank that registers memory and writes a word to all others, again and again, until
 * told to end; whatever becomes of the others
 *
 *	sitter DIRECTORY	it makes ready.RANK there, and ends when there is a file stop
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "acp.h"

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

static void write_to_all(void)
{
	int rank;

	for (rank = 0; rank < acp_procs(); rank++)
		acp_complete(acp_copy(acp_query_starter_ga(rank) + 64,
				      acp_query_starter_ga(acp_rank()), 8, ACP_HANDLE_NULL));
}

int main(int argc, char **argv)
{
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	if (argc < 2 || acp_init(&argc, &argv) != 0)
		return 1;
	if (acp_register_memory(block, sizeof(block), 0) == ACP_ATKEY_NULL)
		return 1;
	acp_sync();
	write_to_all();
	tell_ready(argv[1]);
	while (!there(argv[1], "stop")) {
		write_to_all();
		usleep(20000);
	}
	acp_sync();
	return acp_finalize() != 0;
}
