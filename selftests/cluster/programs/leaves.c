// SPDX-License-Identifier: MIT
/*
 * leaves - a program that ignores errors, one of whose ranks ends too early
 *
 * Rank 1 returns from main() without acp_finalize; all others end with status 0 if they can.
 */
#include "acp.h"

int main(int argc, char **argv)
{
	if (acp_init(&argc, &argv) != 0)
		return 1;
	acp_sync();
	if (acp_rank() == 1)
		return 0;
	acp_sync();
	acp_finalize();
	return 0;
}
