// SPDX-License-Identifier: MIT
/*
 * launched - what ranks see that an engine has started
 *
 *	launched		who am I; the same after a reset, and in further jobs of the process
 *	launched die RANK	that rank ends with status 3 before it is one
 *	launched late RANK	likewise, when it is one
 *	launched abort RANK	that rank calls acp_abort, the others are in a barrier
 *	launched ends		each rank ends in another way; the engine hears a proper end
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "member.h"

/* Each rank adds to the board of every rank. */
static void talk(const char *when)
{
	uint64_t *board = acp_query_address(acp_query_starter_ga(acp_rank()));
	char host[65] = "";
	int other;

	me = acp_rank();
	procs = acp_procs();
	rendezvous();
	for (other = 0; other < procs; other++)
		must(acp_add8(board_at(me, 8), board_at(other, 0), 1, ACP_HANDLE_NULL), "add");
	rendezvous();
	gethostname(host, sizeof(host) - 1);
	say("%s: %d of %d on %s met %d", when, me, procs, host, (int)board[0]);
	rendezvous();
}

static void begin(int *argc, char ***argv)
{
	if (acp_init(argc, argv) != 0)
		exit(1);
}

static void live(int *argc, char ***argv)
{
	int job;

	begin(argc, argv);
	talk("first");
	if (acp_reset(procs - 1 - me) != 0)
		fail("acp_reset");
	talk("turned");
	if (acp_finalize() != 0)
		fail("acp_finalize");
	for (job = 0; job < 2; job++) {
		begin(argc, argv);
		talk(job ? "once more" : "again");
		if (acp_finalize() != 0)
			fail("a later acp_finalize");
	}
}

static void finalize(void)
{
	if (acp_finalize() != 0)
		_exit(1);
}

/* Exit handlers that are registered first are called last. */
static void end_in_its_way(int *argc, char ***argv)
{
	const int way = atoi(getenv("PMIX_RANK")) % 4;

	if (way == 0 && atexit(finalize) != 0)
		exit(1);
	begin(argc, argv);
	if (way == 0)
		exit(0);
	finalize();
	sleep(1);
	if (way == 1)
		_exit(0);
	if (way == 2)
		quick_exit(0);
	execlp("sleep", "sleep", "1", NULL);
	exit(1);
}

static int engine_rank(void)
{
	const char *text = getenv("PMIX_RANK");

	return text ? atoi(text) : -1;
}

int main(int argc, char **argv)
{
	if (argc == 1) {
		live(&argc, &argv);
		return 0;
	}
	if (strcmp(argv[1], "ends") == 0)
		end_in_its_way(&argc, &argv);
	if (strcmp(argv[1], "die") == 0 && engine_rank() == atoi(argv[2]))
		return 3;
	begin(&argc, &argv);
	me = acp_rank();
	if (strcmp(argv[1], "late") == 0 && me == atoi(argv[2]))
		_exit(3);
	if (strcmp(argv[1], "abort") == 0 && me == atoi(argv[2])) {
		sleep(1);
		acp_abort("enough");
	}
	acp_sync();
	pause();
	return 0;
}
