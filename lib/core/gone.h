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

/*
 * Collect the ranks that left or are unreachable. Waits up to a second until the kernel reports at
 * least one.
 */
void libacp_gone_await(struct libacp_gone *gone);

/*
 * Describe the ranks in @text. @how: what the ranks that left did, e.g. "left without
 * acp_finalize".
 */
void libacp_gone_name(const struct libacp_gone *gone, const char *how,
		      char text[LIBACP_REASON_TEXT]);

/*
 * End the job because @call found the barriers broken, with a message that lists the missing ranks.
 */
void libacp_die_of_absence(const char *call) __attribute__((noreturn));

#pragma GCC visibility pop

#endif /* LIBACP_GONE_H */
