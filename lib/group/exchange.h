/* SPDX-License-Identifier: MIT */
/*
 * Exchange among the members of a group: each one tells LIBACP_EXCHANGE_WORDS words, the first
 * member computes a table from them, and each member learns where its entry is.
 *
 * A member writes its words to its own library page (struct libacp_record), and waits for an answer
 * there. The first member of the group reads the pages of all others, and answers each of them by a
 * compare-and-swap of the state:
 *
 *	0		the owner takes part in nothing
 *	odd		a ticket: it has written its words; each is used once
 *	n << 8 | 4	the owner is the first member of a group, and reads the pages of others
 *	8 n		the address of the member's entry in the table of the first member
 *	error << 8 | 2	the exchange has failed; stays if it was a circle (-EDEADLK)
 *
 * The table exists until all members have left it (libacp_exchange_leave()), or have confirmed that
 * they have what they need (libacp_exchange_confirm(), a second round of tickets and answers). So
 * no rank has memory for others but the first one of a group, and only as long as the exchange
 * takes. A rank that gives up replaces its ticket, and is answered no more.
 *
 * If a member is lost, those that take part are told at once. Others, and all if the first one is
 * lost, find out by themselves when they take part. All fail with -EPROTO if the first words of two
 * members differ, and with -EDEADLK if a member takes part in the exchange of another group for
 * longer than the time-out of the job, or until that fails with -EDEADLK.
 */
#ifndef LIBACP_EXCHANGE_H
#define LIBACP_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"
#include "group/group.h"

#pragma GCC visibility push(hidden)

#define LIBACP_EXCHANGE_WORDS	4

enum libacp_progress { LIBACP_AWAITED, LIBACP_PRESENT, LIBACP_TOLD, LIBACP_GONE };

/* What the first member knows of a member. */
struct libacp_member {
	uint64_t state;			/* as last seen */
	uint64_t since;			/* when it was seen first, if it is of another group */
	uint64_t words[LIBACP_EXCHANGE_WORDS];
	uint32_t number;		/* in the group */
	enum libacp_progress progress;
	bool taken;			/* AWAITED: the words may be those of state */
	bool elsewhere;			/* AWAITED: was last seen in another exchange */
};

struct libacp_exchange;

/* Fills the table from the words of all members. Returns 0 or -errno, for all of them. */
typedef int libacp_fill_t(struct libacp_exchange *x, void *state);

struct libacp_exchange {
	/* set by the caller */
	const struct acpx_group *group;
	int number;			/* of the caller, in the group */
	/* the first one must be the same at all members; 0: words[1] is an error of the caller */
	uint64_t words[LIBACP_EXCHANGE_WORDS];
	size_t entry;			/* bytes of an entry of the table, a multiple of 8 */
	size_t extra;			/* bytes behind all entries, for each member */
	libacp_fill_t *fill;		/* used by the first member */
	void *state;			/* argument of fill */

	uint64_t id;			/* of the group */
	acp_ga_t table_ga;
	void *table;			/* of the first member, as the following */
	struct libacp_member *members;	/* in the order of the group, unless fill changes that */
	int error;			/* the first one, or 0 */
	bool confirming;
	bool lost;			/* a member was lost */
	bool unanswered;		/* the caller does not know what others were told */
	bool quiet;
};

/**
 * libacp_exchange_begin() - tell the own words, and wait for those of all members
 * @x: what the caller tells; must be left or confirmed if this succeeds
 *
 * Context: any thread of a rank; waits for other ranks, and for other threads that take part in an
 * exchange. The thread is quiet, and holds a lock, until the exchange ends.
 * Return: 0, with table_ga set; or -errno.
 */
int libacp_exchange_begin(struct libacp_exchange *x);

/**
 * libacp_exchange_at() - get the address of an entry of the table
 * @x: the exchange, after libacp_exchange_begin()
 * @number: number of a member in the group
 *
 * Context: the thread that has begun the exchange; does not block.
 * Return: the address.
 */
static inline acp_ga_t libacp_exchange_at(const struct libacp_exchange *x, int number)
{
	return x->table_ga + (size_t)number * x->entry;
}

/**
 * libacp_exchange_read() - read memory of another member during an exchange
 * @to: receives the bytes
 * @from: their address
 * @size: their number
 *
 * Context: the thread that has begun the exchange; waits for the rank's memory.
 * Return: 0 or -errno.
 */
int libacp_exchange_read(void *to, acp_ga_t from, size_t size);

/**
 * libacp_exchange_leave() - end an exchange; the table is freed when all members have left
 * @x: the exchange, after libacp_exchange_begin()
 *
 * Context: the thread that has begun the exchange; the first member waits for the others.
 */
void libacp_exchange_leave(struct libacp_exchange *x);

/**
 * libacp_exchange_confirm() - end an exchange when all members have got that far
 * @x: the exchange, after libacp_exchange_begin()
 * @error: 0, or -errno: the exchange fails at all members
 *
 * Context: the thread that has begun the exchange; waits for the other members.
 * Return: 0, or the error of any member.
 */
int libacp_exchange_confirm(struct libacp_exchange *x, int error);

#pragma GCC visibility pop

#endif /* LIBACP_EXCHANGE_H */
