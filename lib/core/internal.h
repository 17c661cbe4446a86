/* SPDX-License-Identifier: MIT */
/*
 * Functions of the basic layer that the middle layer (heap, channels, containers) uses in addition
 * to acp.h. core/process.c, core/pointer.c and core/failure.c implement them; unit tests link
 * selftests/unit/fake_acp.c instead.
 */
#ifndef LIBACP_MIDDLE_H
#define LIBACP_MIDDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "acp.h"

#pragma GCC visibility push(hidden)

/**
 * libacp_now() - read CLOCK_MONOTONIC
 *
 * Context: any thread; does not block.
 * Return: the time in nanoseconds; 0 if a seccomp filter refuses to tell it.
 */
uint64_t libacp_now(void);

/**
 * libacp_timeout_ms() - get the time-out of the job
 *
 * Context: any thread of a rank; does not block.
 * Return: milliseconds of silence after which a node is lost.
 */
uint64_t libacp_timeout_ms(void);

/**
 * libacp_end_of() - compute the end of a time that begins now
 * @ns: length of the time in nanoseconds; UINT64_MAX: it never ends
 *
 * Context: any thread; does not block.
 * Return: libacp_now() at the end; UINT64_MAX: never.
 */
static inline uint64_t libacp_end_of(uint64_t ns)
{
	const uint64_t now = libacp_now();

	return ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
}

/**
 * libacp_left() - compute how much of a time is left
 * @end: its end, from libacp_end_of()
 *
 * Context: any thread; does not block.
 * Return: nanoseconds until @end; 0 if it has passed; UINT64_MAX if it never comes.
 */
static inline uint64_t libacp_left(uint64_t end)
{
	const uint64_t now = end == UINT64_MAX ? 0 : libacp_now();

	return now < end ? end - now : 0;
}

/**
 * libacp_sleep() - sleep, whatever signals arrive
 * @ns: time to sleep in nanoseconds
 *
 * Context: any thread; sleeps.
 */
void libacp_sleep(uint64_t ns);

/**
 * libacp_error() - print one line to standard error, prefixed with the rank
 * @format: the line without a newline, as for printf()
 * @...: what @format refers to
 *
 * The rank is omitted in jobs of one rank. Preserves errno.
 *
 * Context: any thread, also of a process that is not a rank; blocks as long as standard error does.
 */
void libacp_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/**
 * libacp_quiet() - set whether the library handles failures of accesses of the calling thread
 * @quiet: true: the library handles failures of the accesses that are issued from now on
 *
 * While a thread is quiet, its accesses use the queue of the process, and acp_complete() never ends
 * the job because of them. Ends a chain (see libacp_chain()).
 *
 * Context: any thread; does not block.
 * Return: the previous setting, which the caller must restore.
 */
bool libacp_quiet(bool quiet);

/**
 * libacp_chain() - begin a chain of accesses in the calling thread
 *
 * An access issued with a handle as its order is refused (ACP_HANDLE_NULL) if any access that the
 * process issued after this call, up to that handle, has failed. Without a chain, a failure that
 * happens before the dependent access is issued would be ignored.
 *
 * An access that is refused must be the last of the chain, because its handle cannot be used as an
 * order. libacp_quiet() ends the chain, so functions called within the chain must not call it.
 *
 * Context: any thread that is quiet; does not block.
 */
void libacp_chain(void);

/**
 * libacp_finish() - wait for an access that was issued while quiet
 * @handle: handle of the access; ACP_HANDLE_NULL: an access that was refused
 *
 * Context: any thread of the process; may block.
 * Return: 0, or a negative errno that describes the failure of the access, even if its slot has
 * been reused; -ECANCELED for ACP_HANDLE_NULL.
 */
int libacp_finish(acp_handle_t handle);

/**
 * libacp_ended() - get the result of an access that was issued while quiet and is already complete
 * @handle: handle of the access; ACP_HANDLE_NULL: an access that was refused
 *
 * Context: any thread of the process; does not wait for the access.
 * Return: as libacp_finish().
 */
int libacp_ended(acp_handle_t handle);

/* ---- pointer.c ---- */

/**
 * libacp_is_pointer() - is a global address in fact a pointer?
 * @ga: the alleged global address
 *
 * This is a frequent mistake that messages point out.
 *
 * Context: any thread; a system call.
 * Return: true if @ga is a pointer to memory that is mapped in this process.
 */
bool libacp_is_pointer(acp_ga_t ga);

#pragma GCC visibility pop

#endif /* LIBACP_MIDDLE_H */
