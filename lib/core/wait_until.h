/* SPDX-License-Identifier: MIT */
/* Waiting until other ranks change words of own memory. */
#ifndef LIBACP_WAIT_UNTIL_H
#define LIBACP_WAIT_UNTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/**
 * libacp_watch_close() - make all threads that wait for words return, and wait for them
 *
 * The threads return -ENOTCONN. Clears libacp.watch.
 *
 * Context: the thread that leaves; libacp.state is no longer LIBACP_IN, and the memory is still
 * mapped. May block.
 */
void libacp_watch_close(void);

/**
 * libacp_watch_enter() - begin to use memory with global addresses
 *
 * The memory stays mapped until libacp_watch_leave(), which must follow. Calls may be nested.
 *
 * Context: any thread; does not block.
 * Return: false if the process is not a rank; then libacp_watch_leave() must not follow.
 */
bool libacp_watch_enter(void);

/**
 * libacp_watch_leave() - end the use of memory with global addresses
 *
 * Context: a thread that has called libacp_watch_enter(); does not block.
 */
void libacp_watch_leave(void);

/*
 * Look for something in memory of this rank. Returns the result, or -EAGAIN: not yet; then *word is
 * the address of the word whose change may lead to another result. @sleeps: the thread will sleep
 * until then.
 */
typedef int64_t libacp_find_t(void *arg, bool sleeps, const void **word);

/**
 * libacp_watch_find() - wait until a function finds what it looks for
 * @find: the function; it is called again and again
 * @arg: its first argument
 * @timeout_ns: time limit in nanoseconds; UINT64_MAX: none
 *
 * While a thread sleeps, another thread that leads to another result, or to another word, without
 * an access must call libacp_watch_wake_rank() for the own rank.
 *
 * Context: any thread; may block, and holds no lock meanwhile.
 * Return: what @find returns; -ETIMEDOUT, -ENOTCONN or -ECANCELED if it finds nothing.
 */
int64_t libacp_watch_find(libacp_find_t *find, void *arg, uint64_t timeout_ns);

/**
 * libacp_watch_arm() - let poll() of libacp.fd report POLLIN when functions may find something
 * @find: called for each of @args, with "sleeps" true; again if their words change meanwhile
 * @args: the arguments
 * @count: their number; 0: poll() reports nothing
 *
 * Functions that were armed before are not any more. A thread that changes a result or a word of
 * such a function without an access must call libacp_watch_wake_rank() if libacp_watch_is_polled().
 *
 * Context: any thread that has called libacp_watch_enter().
 * Return: -EAGAIN if poll() will report it; otherwise what @find returns, 0 if the words keep
 *	changing, or -errno: -ECANCELED if the job was aborted.
 */
int64_t libacp_watch_arm(libacp_find_t *find, void *const *args, size_t count);

/**
 * libacp_watch_is_polled() - is something armed that poll() does not report yet?
 *
 * Context: any thread that has called libacp_watch_enter().
 * Return: true if it is.
 */
bool libacp_watch_is_polled(void);

#pragma GCC visibility pop

#endif /* LIBACP_WAIT_UNTIL_H */
