/* SPDX-License-Identifier: MIT */
/*
 * Shared memory of the processes of a soak: the members, the tasks, the active faults, and the
 * memory that the ranks make global.
 *
 * A life is a set of nodes, created and removed; in it jobs run one after the other (runs). A run
 * has members: processes that are ranks, whose rank numbers may change. The director, the parent of
 * the members, injects the faults and supervises the members.
 *
 * Each member has an arena per color: registered memory that all members and the director also map
 * directly. After changing a byte of it by an access, they can check the effect immediately.
 *
 *	source		written before the run, never changed
 *	slots		some for each member, which alone writes there
 *	words		one of 8 and one of 4 bytes for each member, likewise
 *	counters	added to by all
 *	scratch		for results that nobody checks
 */
#ifndef BOARD_H
#define BOARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "acp.h"
#include "acp_abi.h"

#define NODES		3
#define PER_NODE	2
#define MEMBERS		(NODES * PER_NODE)
#define COLORS		2

#define LONGEST		300000		/* bytes of a copy */
#define SMALL_SLOTS	6
#define SLOTS		(SMALL_SLOTS + 1)
#define SMALL_SIZE	6144
#define BIG_SIZE	(LONGEST + 1024)
#define SLOTS_SIZE	(SMALL_SLOTS * SMALL_SIZE + BIG_SIZE)
#define SOURCE_SIZE	(LONGEST + 4096)
#define SCRATCH_SIZE	65536
#define CHURN_SIZE	65536

struct arena {
	uint8_t source[SOURCE_SIZE];
	uint8_t slots[MEMBERS][SLOTS_SIZE];
	uint64_t word8[MEMBERS];
	uint32_t word4[MEMBERS];
	uint64_t count8;
	uint32_t count4, pad;
	uint8_t scratch[SCRATCH_SIZE];
	uint8_t end[4096];
} __attribute__((aligned(4096)));

/* An access, from its planning until its effects were checked. */
struct access {
	uint8_t op;			/* ACP_OP_ */
	uint8_t kind;			/* enum access_kind */
	uint8_t src, dst;		/* members */
	uint8_t src_color, dst_color;
	/* index of the access after which it is ordered, -1: none */
	int8_t after;
	bool link;			/* its source is the destination of the previous one */
	bool pending;			/* that one was not complete when this was issued */
	uint8_t want;			/* the status of an access that must be rejected */
	int status;
	acp_handle_t handle;
	acp_ga_t from, to;
	size_t size;
	uint64_t a, b;
	uint8_t way;			/* of a copy: enum way */
	uint8_t flag, flag_color;	/* SIGNALLED: the member to whose counter it adds */
	uint32_t block, blocks;		/* BLOCKS; of VECTOR the size and number of pieces */
	int32_t dst_stride, src_stride;
	uint64_t issued;		/* ns */
	/* only its member may follow these */
	struct slot *slot;		/* written to, or NULL */
	size_t offset;			/* in the slot */
	const uint8_t *data;		/* data that arrives there; NULL: unknown */
	bool gathered;			/* that is memory of the batch */
	struct word *word;		/* operated on, or NULL */
	uint64_t former;		/* its former value, if all succeeds */
};

enum access_kind { ACCESS_COPY, ACCESS_WORD, ACCESS_COUNT, ACCESS_CHURN, ACCESS_BAD };

/* How a copy is issued: the result is always the same. */
enum way { PLAIN, BLOCKS, VECTOR, SIGNALLED };

#define BATCH	40
/* commands in a batch in addition to its accesses: 64 statuses are kept */
#define EXTRA	20
#define PIECES	5		/* of a vector */
#define GATHERED 4096		/* maximum number of bytes between the first and the last block */

/* Additions: requested, and certainly applied. */
struct tally {
	uint64_t issued, sure;
};

struct member {
	/* set by the director */
	pid_t pid;
	uint32_t doomed;		/* is being killed, or is dead */
	uint64_t gone;			/* ns; time of its death */
	uint32_t stopped;
	uint64_t resumed;		/* ns; time at which it was resumed */
	uint32_t leave;			/* must end without acp_finalize: enum leave */
	/* set by the member */
	int rank;
	uint32_t ready;			/* it has joined */
	uint32_t phase;			/* number of completed phases */
	uint32_t entered;		/* number of phases it has entered */
	uint64_t since;			/* ns: waiting since then; 0: not waiting */
	const char *what;		/* for this */
	acp_ga_t arena[COLORS];
	acp_ga_t churn;			/* memory that is registered and unregistered repeatedly */
	uint32_t batches, count;	/* accesses in the current batch */
	struct access batch[BATCH];
	struct tally tally[MEMBERS][COLORS][2];	/* of 8 and 4 bytes */
	uint64_t ended[ACP_ST_END];	/* accesses by status */
	uint64_t churned, barriers;
};

enum leave { LEAVE_NOT, LEAVE_EXIT, LEAVE_ABORT };

/* What all members do together, in the order of board.phase. */
enum phase { PHASE_SYNC, PHASE_RESET, PHASE_REINIT, PHASE_QUIET, PHASE_LEAVE };

#define PHASES	64

/* A disturbance of a node or of all nodes; times in ns, until = UINT64_MAX: not ended. */
struct trouble {
	uint64_t from, until;
};

struct board {
	uint64_t seed;			/* of the run */
	uint64_t timeout;		/* ns: ACP_TIMEOUT */
	uint64_t patience;		/* ns: time limit of an access */
	uint64_t slack;			/* ns: delay that a slow machine may add to anything */
	uint32_t phases;		/* announced */
	uint8_t phase[PHASES];		/* enum phase */
	uint8_t number[PHASES][MEMBERS];	/* new ranks for PHASE_RESET */
	struct trouble cut[NODES];	/* cut off for longer than the timeout */
	struct trouble scarce;		/* allocations fail */
	uint32_t cut_off;		/* this has happened in this run */
	uint32_t died, aborted;
	struct member member[MEMBERS];
};

extern struct board *board;
extern struct arena *arenas[MEMBERS][COLORS];
extern int me;

#define LOAD(x)		__atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, v)	__atomic_store_n(&(x), v, __ATOMIC_RELEASE)

/* A rank from acp_init to acp_finalize, in a process of its own. */
void member_live(void);

/* "copy of 20 bytes, member 1 color 0 -> ..." */
const char *access_text(const struct access *a);

/* Random numbers: 0 .. n - 1; true in one of n cases; low .. high. */
uint64_t draw(uint64_t *stream, uint64_t n);
static inline bool one_of(uint64_t *stream, uint64_t n)
{
	return !draw(stream, n);
}

static inline uint64_t between(uint64_t *stream, uint64_t low, uint64_t high)
{
	return low + draw(stream, high - low + 1);
}

#endif /* BOARD_H */
