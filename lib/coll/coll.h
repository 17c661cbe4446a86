/* SPDX-License-Identifier: MIT */
/*
 * Collectives: see acpx_coll_barrier_create(3), and docs/collectives.md.
 *
 *	create.c	creation: the members tell each other where their memory is
 *	coll.c		starting, testing, waiting, freeing
 *	step.c		what a round consists of: entries of a ring
 *	pool.c		queues for rounds
 *	failure.c	what is left to do when a round has failed
 *	close.c		the end of the rank
 *	describe.c	rounds as text
 *	once.c		create, start, wait, free
 *	transfer.h	the papers' interface: parts of an array, and arrays by a buffer
 * and a file per family of algorithms.
 *
 * A member has an area, registered memory with counters, each in a line of its own, and slots for
 * what its children send. Counters only grow. A round is a number of entries in a queue of its own;
 * what a member sends to another one is a copy that adds to a counter of the other one, or only
 * adds, ordered behind a wait for own counters.
 */
#ifndef LIBACP_COLL_H
#define LIBACP_COLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"
#include "coll/transfer.h"
#include "coll/tree.h"
#include "core/process.h"
#include "group/group.h"

#pragma GCC visibility push(hidden)

/* A member that the caller communicates with. */
struct libacp_peer {
	int number, rank;		/* number -1: none */
	acp_ga_t area, buffer;
};

#define LIBACP_SLOTS	2u		/* for each child */
#define LIBACP_BRIEF_MAX	1024u	/* bytes that are sent from a copy */

/* Counters of an area, each in a line of its own. */
enum {
	LIBACP_LINE_LOST,		/* a rank that was lost, plus 1 */
	LIBACP_LINE_SINK,		/* receives former values */
	LIBACP_LINE_DOWN,		/* counts what the parent has sent */
	LIBACP_LINE_UP,			/* counts children that are ready */
	/* counts how often the parent has emptied slot i of the caller, and the next SLOTS */
	LIBACP_LINE_CREDIT,
	/* counts how often child i has filled slot j: SLOTS i + j */
	LIBACP_LINE_SLOT = LIBACP_LINE_CREDIT + LIBACP_SLOTS,
	LIBACP_LINES = LIBACP_LINE_SLOT + LIBACP_SLOTS * LIBACP_RADIX_MAX,
	/*
	 * More counters follow, 8 to a line. Of a spread: the parent has sent piece i, as pieces
	 * may overtake each other. Of neighbours: 2 i: neighbour i is ready; 2 i + 1: it has sent.
	 */
	LIBACP_LINE_MORE = LIBACP_LINES,
};

struct libacp_round;
struct libacp_pool_queue;
struct libacp_edge;

/* The entries of a round of the caller. */
typedef void libacp_algorithm_t(struct libacp_round *round);

enum libacp_coll_state { LIBACP_COLL_IDLE, LIBACP_COLL_ACTIVE, LIBACP_COLL_FAILED };

struct acpx_coll {
	const char *name;
	libacp_algorithm_t *algorithm;
	acpx_group_t group;
	uint64_t joins;			/* of the process when it was created */

	/* what the members have in common */
	struct libacp_tree tree;
	size_t size;			/* bytes of a vector, or of the block of a member */
	size_t piece;			/* bytes of a piece */
	uint64_t reduce;		/* ACP_REDUCE() */
	bool brief;			/* what a round sends to all is short: BRIEF_MAX */
	bool seeds;			/* a round that is brief begins with a copy of src to dst */
	bool seeded;			/* the process has made it */
	bool loose;			/* a round says nothing about the slots of the one before */

	/* the caller */
	int number;
	acp_ga_t dst, src;
	acp_ga_t buffer;		/* what other members need to know, or ACP_GA_NULL */
	struct acpx_block block;	/* of the caller, in the root's buffer */
	struct acpx_block *runs;	/* what the root sends to all, as an offset in buffers */
	size_t run_count;
	struct acpx_block run;		/* runs, if there is one */
	acp_ga_t *targets;		/* where member i gets what the caller sends to it */
	const struct acpx_block *from;	/* the blocks of src, or NULL: all have the same size */
	struct libacp_edge *edges;	/* to neighbours */
	int edge_count;
	struct acpx_block *copy;	/* of from */

	/* Additions to this counter, and to those of slots, are "step", and one wait for "unit". */
	uint32_t tagged;
	uint64_t step, unit;		/* unit 0: all are 1 */
	struct libacp_transfer transfer;

	/* others */
	struct libacp_peer parent, root, children[LIBACP_RADIX_MAX];
	int child_count, child_index;	/* which child of the parent the caller is */

	/* the area */
	void *area;
	acp_ga_t area_ga;
	acp_atkey_t area_key;
	size_t area_bytes, slots_at, scratch_at;	/* offsets in bytes */
	size_t scratch_bytes;
	uint32_t lines;			/* number of counters */
	uint64_t *expected;		/* per counter: the value of the last wait */

	/* rounds */
	enum libacp_coll_state state;
	uint64_t round;			/* number of the last one that was started */
	uint32_t entries;		/* of a round, and the end of the one before */
	uint32_t telling;		/* entries that telling others of a failure takes beside */
	struct libacp_pool_queue *queue;	/* ACTIVE, FAILED */
	bool rests;			/* IDLE: the caller has left a queue */
	bool eager;			/* a round ends when all its entries are complete */
	/*
	 * Tickets: before the round; the last one that the end of the round waits for; the first
	 * one that has not been judged.
	 */
	uint64_t base, last, first;
	uint64_t told;			/* FAILED: the last ticket that tells those there */
	int error;			/* FAILED: -errno */
	int lost;			/* FAILED: a rank that was lost, or -ENOENT */
};

/* Return the offset of a counter in bytes. */
static inline size_t libacp_line_offset(uint32_t line)
{
	return line < LIBACP_LINES ? (size_t)line * 64 :
				     LIBACP_LINES * 64 + (size_t)(line - LIBACP_LINES) * 8;
}

static inline acp_ga_t libacp_line_ga(acp_ga_t area, uint32_t line)
{
	return area + libacp_line_offset(line);
}

/* Is the process still the rank that has created the collective? */
static inline bool libacp_coll_is_current(const struct acpx_coll *c)
{
	return libacp_in_since(c->joins);
}

/* ---- coll.c ---- */

/**
 * libacp_coll_begin() - start a round
 * @c: the collective
 *
 * Context: the thread that uses the collective; does not wait for others.
 * Return: 0 or -errno; -EBUSY: it is active.
 */
int libacp_coll_begin(struct acpx_coll *c);

/* Free the memory of a collective that is not active. */
void libacp_coll_release(struct acpx_coll *c);

#pragma GCC visibility pop

#endif /* LIBACP_COLL_H */
