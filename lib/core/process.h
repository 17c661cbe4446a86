/* SPDX-License-Identifier: MIT */
/*
 * State of the process as a rank: begin, end, time, messages.
 *
 * Locks, outermost first. No thread holds one while it waits for another rank, except exchange,
 * membership and barrier, which exist for that:
 *	lock	(exchange.c)	one thread of the process in an exchange of a group
 *	membership (join.c)	joining and leaving
 *	barrier	(barrier.c)	one thread of the process in a barrier
 *	table	(mem.c)		registration
 *	lock	(local.c)	mapping memory of other ranks
 *	lock	(queue.c)	the list of queues and their users
 *	queue	(submit.c)	the submission ring and its failures
 *	lock	(mailbox.c, match.c)	a mailbox or match list; innermost, like sleepers_lock
 *				(wait_until.c)
 * Address lookup and completion queries take no lock.
 */
#ifndef LIBACP_PROCESS_H
#define LIBACP_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"
#include "core/parameters.h"

#pragma GCC visibility push(hidden)

enum libacp_state {
	LIBACP_OUT,		/* before acp_init, after acp_finalize */
	LIBACP_IN,		/* a rank */
	/* the child of a rank after fork(): the queues belong to the parent */
	LIBACP_FORKED
};

/* State of the process as a rank. It does not change while state is LIBACP_IN. */
struct libacp {
	int state;			/* enum libacp_state, atomic */
	int fd;
	int error_mode;			/* ACPX_ERRORS_, atomic */
	uint32_t rank, nprocs, node, colors;
	struct acp_ga_layout layout;
	acp_ga_t own;			/* rank bits of the global addresses of this rank */
	uint64_t joins;			/* number of times that the process has joined */
	/* offset bits of a global address, cached for fast decoding */
	uint64_t offset_mask;
	uint32_t stag_mask, rank_shift;
	struct libacp_region *first_chunk;	/* of the STag table */
	struct acp_watch *watch;	/* at the end of the library page */
	bool spin;			/* more than one CPU: a thread may poll before it sleeps */
	struct libacp_boot boot;
	/* ends the ranks that the launcher started; NULL: none */
	void (*abort_engine)(const char *text);
};

extern struct libacp libacp;

/**
 * libacp_in() - is this process a rank?
 *
 * Context: any thread; does not block.
 * Return: true from the join until the rank leaves; false in a forked child of a rank.
 */
static inline bool libacp_in(void)
{
	return __atomic_load_n(&libacp.state, __ATOMIC_ACQUIRE) == LIBACP_IN;
}

/**
 * libacp_in_since() - is this process still the rank that has created something?
 * @joins: libacp.joins at that time
 *
 * Context: any thread; does not block.
 * Return: false if it is no rank, or has joined again since.
 */
static inline bool libacp_in_since(uint64_t joins)
{
	return libacp_in() && joins == libacp.joins;
}

/*
 * Print a message to standard error, abort the job and exit with status 255. Any thread may call
 * it.
 */
void libacp_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/**
 * libacp_job_aborted() - handle the abort of the job as reported by the kernel
 *
 * Ends the process, or returns if the error mode is ACPX_ERRORS_RETURN.
 *
 * Context: any thread of a rank that holds no lock.
 */
void libacp_job_aborted(void);

/*
 * A seccomp filter may return success for system calls that never reach the module. True if the
 * module answers ioctl(2).
 */
bool libacp_is_answered(void);

/**
 * libacp_no_answer() - report that a system call did not reach the module
 *
 * To be called after a successful call that did not set what the module sets. Prints a message once
 * per process.
 *
 * Context: any thread.
 * Return: -EIO.
 */
int libacp_no_answer(void);

#pragma GCC visibility pop

#endif /* LIBACP_PROCESS_H */
