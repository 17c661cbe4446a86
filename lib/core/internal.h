/* SPDX-License-Identifier: MIT */
/*
 * Functions of the basic layer that the middle layer (heap, channels, containers) uses in addition
 * to acp.h. core/process.c, core/submit.c and core/failure.c implement them; unit tests link
 * selftests/unit/fake_acp.c instead.
 */
#ifndef LIBACP_MIDDLE_H
#define LIBACP_MIDDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "acp.h"

#pragma GCC visibility push(hidden)

/* Return CLOCK_MONOTONIC in nanoseconds. Any thread may call it. */
uint64_t libacp_now(void);

/* Return the end of @ns nanoseconds that begin now; UINT64_MAX: never, in both. */
static inline uint64_t libacp_end_of(uint64_t ns)
{
	const uint64_t now = libacp_now();

	return ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
}

/* Return what is left until @end, from libacp_end_of(): 0 if it has passed. */
static inline uint64_t libacp_left(uint64_t end)
{
	const uint64_t now = end == UINT64_MAX ? 0 : libacp_now();

	return now < end ? end - now : 0;
}

/* Sleep for @ns nanoseconds, whatever signals arrive. Any thread may call it. */
void libacp_sleep(uint64_t ns);

/*
 * Print one line to standard error, prefixed with the rank. Preserves errno. Any thread may call
 * it.
 */
void libacp_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Set whether the library handles failures of the accesses that the calling thread issues from now
 * on. While it does ("quiet"), these accesses use the queue of the process and acp_complete() never
 * ends the job because of them. Ends a chain (see libacp_chain()).
 *
 * Returns the previous setting, which the caller must restore.
 */
bool libacp_quiet(bool quiet);

/*
 * Begin a chain in the calling thread, which must be quiet: an access issued with a handle as its
 * order is refused (ACP_HANDLE_NULL) if any access that the process issued after this call, up to
 * that handle, has failed. Without a chain, a failure that happens before the dependent access is
 * issued would be ignored.
 *
 * An access that is refused must be the last of the chain, because its handle cannot be used as an
 * order. libacp_quiet() ends the chain, so functions called within the chain must not call it.
 */
void libacp_chain(void);

/*
 * Wait for an access that was issued while quiet. Returns 0, or a negative errno that describes its
 * failure, even if its slot has been reused. Any thread of the process may call it.
 */
int libacp_finish(acp_handle_t handle);

/* As libacp_finish(), for an access that is already complete: does not wait. */
int libacp_ended(acp_handle_t handle);

/* ---- pointer.c ---- */

/*
 * True if @ga is in fact a pointer to memory that is mapped in this process: a frequent mistake
 * that messages point out. Any thread may call it.
 */
bool libacp_is_pointer(acp_ga_t ga);

#pragma GCC visibility pop

#endif /* LIBACP_MIDDLE_H */
