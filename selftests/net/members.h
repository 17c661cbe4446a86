/* SPDX-License-Identifier: MIT */
/*
 * Ranks of libacp for tests: each is a process, on a node of its own or with
 * others.  They are started as any launcher would, by environment variables.
 */
#ifndef MEMBERS_H
#define MEMBERS_H

#include <stdio.h>
#include <sys/types.h>

#include "acp.h"
#include "nodes.h"

#define DIED	(-1000)		/* no exit status: minus the signal */

struct members {
	struct nodes nodes;
	int count, per_node;
	pid_t pid[RANKS_MAX];
	FILE *errors[RANKS_MAX];	/* what each writes on standard error */
};

/* Nodes for "count" ranks, so many to a node; sets the variables that all ranks share. */
void members_open(struct members *m, int count, int per_node);

/* Start a rank, or all: a process that does "body" and exits with 0 (a failed CHECK: 1). */
void members_start(struct members *m, int rank, void (*body)(void));
void members_start_all(struct members *m, void (*body)(void));

/* Wait for the end of a rank: its exit status or DIED - signal. */
int members_wait(struct members *m, int rank);

/* All end with that status. */
void members_expect(struct members *m, int status);

/* Start all and wait until they have ended well. */
void members_run(int count, int per_node, void (*body)(void));

/* The same over networks that are impaired, as netem is told to: "loss 1%"; "": they are not. */
void members_run_over(const char *netem, int count, int per_node, void (*body)(void));

/* Did it write a text on standard error? */
bool members_said(struct members *m, int rank, const char *text);

/* In a rank: acp_init() that succeeds; errors are returned. */
void member_init(void);

/* Byte "offset" of a rank's starter memory; a word of one's own. */
acp_ga_t member_at(int rank, size_t offset);
uint64_t *member_word(size_t offset);

/* Access and wait: the status. */
int member_status(acp_handle_t handle);

#endif /* MEMBERS_H */
