/* SPDX-License-Identifier: MIT */
/* Limits of locked memory and of the module, for messages. */
#ifndef LIBACP_LIMITS_H
#define LIBACP_LIMITS_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

#define LIBACP_MEMLOCK_TEXT	400

/**
 * libacp_memlock() - get RLIMIT_MEMLOCK
 *
 * Context: any thread; does not block.
 * Return: the soft limit in bytes; RLIM_INFINITY: none.
 */
uint64_t libacp_memlock(void);

/**
 * libacp_memlock_text() - describe that RLIMIT_MEMLOCK prevented the module from locking memory
 * @bytes: size of the memory that was to be locked in addition
 * @enough: a limit in bytes that is known to suffice, or 0
 * @text: receives the limit, the amount that this process has locked, and the value to set
 *
 * Without a limit, as libacp_memory_text().
 *
 * Context: any thread; reads files of the kernel.
 */
void libacp_memlock_text(uint64_t bytes, uint64_t enough, char text[LIBACP_MEMLOCK_TEXT]);

/**
 * libacp_memory_text() - describe why the module found no memory
 * @bytes: size of the memory
 * @text: receives the reason: the memory limit of a control group, or the machine
 *
 * For failures although no limit of the module was reached.
 *
 * Context: any thread; reads files of the kernel.
 */
void libacp_memory_text(uint64_t bytes, char text[LIBACP_MEMLOCK_TEXT]);

/**
 * libacp_limit_name() - the name by which administrators set a limit
 * @limit: ACP_LIMIT_
 *
 * Context: any thread; does not block.
 * Return: a constant string with the name, and what the limit counts; the prefix of all names if
 * @limit is unknown.
 */
const char *libacp_limit_name(uint64_t limit);

/**
 * libacp_limit_place() - the shell command that shows a limit
 * @limit: ACP_LIMIT_
 *
 * Context: any thread; does not block.
 * Return: a constant string.
 */
const char *libacp_limit_place(uint64_t limit);

#pragma GCC visibility pop

#endif /* LIBACP_LIMITS_H */
