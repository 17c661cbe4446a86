/* SPDX-License-Identifier: MIT */
/*
 * A rank of a cluster test: it joins, has a board at the start of its starter memory, reports
 * errors and ends.
 */
#ifndef MEMBER_H
#define MEMBER_H

#include <stddef.h>
#include <stdint.h>

#include "acp.h"

extern int me, procs;

/* Become a rank. Errors are returned, not fatal. Return the board of @size bytes. */
void *member_begin(int *argc, char ***argv, size_t size);

/* Print a line "rank N: ..."; fail() then ends with status 1. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Return the global address of a byte of a rank's board. */
acp_ga_t board_at(int rank, size_t offset);

/* Register @size bytes of memory. Return its address, and its global address in *ga. */
void *member_memory(size_t size, int color, acp_ga_t *ga);

/* Wait for an access. status_of() returns its status; must() requires that it is 0. */
int status_of(acp_handle_t handle);
void must(acp_handle_t handle, const char *what);

/* Barrier of all ranks; a failure ends the program. */
void rendezvous(void);

/* Wait until a word of the board, which others write, has at least that value. */
void wait_for(const uint64_t *word, uint64_t value, const char *what);

/* Return the time of a clock in milliseconds; sleep briefly. */
uint64_t now_ms(void);
void nap(void);

/* Return a pseudo-random number from a state that is not 0; fill() writes @size random bytes. */
uint64_t next_random(uint64_t *state);
void fill(void *to, size_t size, uint64_t *state);

#endif /* MEMBER_H */
