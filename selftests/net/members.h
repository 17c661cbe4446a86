/* SPDX-License-Identifier: MIT */
/*
 * Ranks of libacp for tests: processes, on separate nodes or several per node. They are started
 * with environment variables, as by any launcher.
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
	FILE *errors[RANKS_MAX];	/* standard error of each */
};

/* Create nodes for "count" ranks, "per_node" on each; set the variables that all ranks share. */
void members_open(struct members *m, int count, int per_node);
void members_open_ipv6(struct members *m, int count, int per_node);

/* Start a rank, or all: a process that calls "body" and exits with 0 (failed CHECK: 1). */
void members_start(struct members *m, int rank, void (*body)(void));
void members_start_all(struct members *m, void (*body)(void));

/* Wait for the end of a rank. Returns its exit status, or DIED - signal. */
int members_wait(struct members *m, int rank);

/* All ranks end with that status. */
void members_expect(struct members *m, int status);

/* Start all ranks and wait until they have ended successfully. */
void members_run(int count, int per_node, void (*body)(void));

/* The same with impaired networks, in the syntax of netem: "loss 1%"; "": unimpaired. */
void members_run_over(const char *netem, int count, int per_node, void (*body)(void));

/* True if the rank printed the text to standard error. */
bool members_said(struct members *m, int rank, const char *text);

/* In a rank: call acp_init(), which must succeed; use ACPX_ERRORS_RETURN. */
void member_init(void);

/* Return the address of byte "offset" in the starter memory of a rank; an own word. */
acp_ga_t member_at(int rank, size_t offset);
uint64_t *member_word(size_t offset);

/* Wait for an access and return its status. */
int member_status(acp_handle_t handle);

#endif /* MEMBERS_H */
