// SPDX-License-Identifier: MIT
/*
 * waiting - some ranks are killed while the others wait for them in a barrier
 *
 *		waiting FIRST COUNT	ranks FIRST to FIRST + COUNT - 1 do not enter it
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "member.h"

int main(int argc, char **argv)
{
	uint64_t begun;

	member_begin(&argc, &argv, 0);
	if (argc != 3)
		fail("usage: waiting FIRST COUNT");
	rendezvous();
	say("working");
	while (me >= atoi(argv[1]) && me < atoi(argv[1]) + atoi(argv[2]))
		pause();
	begun = now_ms();
	if (acp_sync() != -1 || errno != EPIPE)
		fail("acp_sync: %s", strerror(errno));
	say("failed within %d ms", (int)(now_ms() - begun));
	if (acp_finalize() != -1)
		fail("acp_finalize does not miss anybody");
	say("done");
	return 0;
}
