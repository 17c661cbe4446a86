/* SPDX-License-Identifier: MIT */
/*
 * A rank of a cluster test: joins, has a board at the start of its starter
 * memory, says what goes wrong and ends.
 */
#ifndef MEMBER_H
#define MEMBER_H

#include <stddef.h>
#include <stdint.h>

#include "acp.h"

#define PATIENCE_MS	60000	/* for what must happen soon */

extern int me, procs;

/* Become a rank; failures are returned, not fatal.  The board of size bytes. */
void *member_begin(int *argc, char ***argv, size_t size);

/* A line "rank N: ..."; end with status 1 after it. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Global address of a byte of a rank's board. */
acp_ga_t board_at(int rank, size_t offset);

/* Register memory of size bytes; its address, and its global address in *ga. */
void *member_memory(size_t size, int color, acp_ga_t *ga);

/* Wait for an access: its status; insist that it is 0. */
int status_of(acp_handle_t handle);
void must(acp_handle_t handle, const char *what);

/* All ranks meet, or the program fails. */
void meet(void);

/* Wait until a word of the board, which others write, has at least that value. */
void wait_for(const uint64_t *word, uint64_t value, const char *what);

/* Milliseconds of some clock; a short sleep. */
uint64_t now_ms(void);
void nap(void);

/* Pseudo-random numbers from a state that is not 0; size bytes of them. */
uint64_t next_random(uint64_t *state);
void fill(void *to, size_t size, uint64_t *state);

#endif /* MEMBER_H */
