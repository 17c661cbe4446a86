/* SPDX-License-Identifier: MIT */
/* Ranks that left or are unreachable, for messages. */
#ifndef LIBACP_GONE_H
#define LIBACP_GONE_H

#include "core/rank_list.h"

#pragma GCC visibility push(hidden)

#define LIBACP_REASON_TEXT	400

struct libacp_gone {
	struct libacp_ranks left, lost;
	int status;			/* status of the first rank in lost */
};

/**
 * libacp_gone_await() - collect the ranks that left or are unreachable
 * @gone: receives them
 *
 * Waits up to a second until the kernel reports at least one, unless the job was aborted. Only the
 * first 2^20 ranks are queried.
 *
 * Context: any thread of a rank; may block.
 */
void libacp_gone_await(struct libacp_gone *gone);

/**
 * libacp_gone_name() - describe the ranks that left or are unreachable
 * @gone: the ranks; none: the text speaks of "a rank" that left
 * @how: what the ranks that left did, e.g. "left without acp_finalize"
 * @text: receives the description, without a newline
 *
 * Context: any thread; does not block.
 */
void libacp_gone_name(const struct libacp_gone *gone, const char *how,
		      char text[LIBACP_REASON_TEXT]);

/*
 * End the job because @call found the barriers broken, with a message that lists the missing ranks.
 */
void libacp_die_of_absence(const char *call) __attribute__((noreturn));

#pragma GCC visibility pop

#endif /* LIBACP_GONE_H */
