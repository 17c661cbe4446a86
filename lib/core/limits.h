/* SPDX-License-Identifier: MIT */
/* Limits of locked memory and of the module, for messages. */
#ifndef LIBACP_LIMITS_H
#define LIBACP_LIMITS_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

#define LIBACP_MEMLOCK_TEXT	400

/* Return RLIMIT_MEMLOCK in bytes. */
uint64_t libacp_memlock(void);

/*
 * Describe in @text that RLIMIT_MEMLOCK prevented the module from locking another @bytes: the
 * limit, the amount this process has locked, and the value to set. @enough: a limit in bytes that
 * is known to suffice, or 0.
 */
void libacp_memlock_text(uint64_t bytes, uint64_t enough, char text[LIBACP_MEMLOCK_TEXT]);

/*
 * Describe in @text why the module found no memory for @bytes, although no limit of its own was
 * reached: the memory limit of the control group, or the machine.
 */
void libacp_memory_text(uint64_t bytes, char text[LIBACP_MEMLOCK_TEXT]);

/* Return the name by which administrators set a limit (ACP_LIMIT_). */
const char *libacp_limit_name(uint64_t limit);

/* Return the shell command that shows a limit (ACP_LIMIT_). */
const char *libacp_limit_place(uint64_t limit);

#pragma GCC visibility pop

#endif /* LIBACP_LIMITS_H */
