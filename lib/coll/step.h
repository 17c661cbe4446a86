/* SPDX-License-Identifier: MIT */
/*
 * The entries of a round. An algorithm issues them in their order; each function returns the number
 * of the entry, from 1, which later entries take as their order: they start when all entries up to
 * that one are complete, and fail if one of these failed. 0: at once. An entry without effect is
 * left out: the function returns its order.
 *
 * A wait looks at its word only when all earlier entries of the round are complete. So algorithms
 * issue waits before the entries that need not be complete then.
 */
#ifndef LIBACP_STEP_H
#define LIBACP_STEP_H

#include "acp_abi.h"
#include "coll/coll.h"

#pragma GCC visibility push(hidden)

/* Called for each entry; its order is the number of an entry. peer: whom it adds to, or NULL. */
typedef void libacp_take_t(struct libacp_round *round, const struct acp_sqe *entry,
			   const struct libacp_peer *peer);

#define LIBACP_ROUND_LATER	(1u << 20)	/* this round and later ones have all entries */

struct libacp_round {
	struct acpx_coll *coll;
	uint64_t number;		/* from 1 */
	uint32_t count;			/* entries so far */
	libacp_take_t *take;
	void *state;			/* of take */
};

/**
 * libacp_round_run() - issue all entries of a round
 * @round: of which coll, number, take and state are set
 *
 * The counters that the collective expects are those of the last round before and afterwards.
 *
 * Context: the thread that uses the collective; does not block.
 */
void libacp_round_run(struct libacp_round *round);

/*
 * Wait until an own counter has grown by @times since the last wait; @peers add to it. Ordered
 * behind all entries before it, as it waits for them anyway: it ends when one of them has failed.
 */
uint32_t libacp_step_wait(struct libacp_round *round, uint32_t line, uint64_t times,
			  const struct libacp_peer *peers, int count);

/*
 * Add 1, or what a transfer adds, to a counter of a member; revoke it if the order failed. Lazily:
 * the round may end before it is complete, and what comes behind it may start up to 500 us later,
 * unless the member sends something to the caller meanwhile. So the next wait of the caller, in
 * this round or the next one, must be for something that no member can send before this one has
 * sent something, too: selftests/unit/test_lib_rounds.c plays that.
 */
uint32_t libacp_step_add(struct libacp_round *round, const struct libacp_peer *peer, uint32_t line,
			 uint32_t order);

/* The same, not lazily: the caller waits for others next. */
uint32_t libacp_step_add_promptly(struct libacp_round *round, const struct libacp_peer *peer,
				  uint32_t line, uint32_t order);

/* Sends data to a member. */
typedef uint32_t libacp_send_t(struct libacp_round *round, const struct libacp_peer *peer,
			       acp_ga_t dst, acp_ga_t src, size_t size, uint32_t line,
			       uint32_t order);

/* Copy to another member, then add the same to its counter; revoke it if the order failed. */
libacp_send_t libacp_step_send;

/*
 * The same, lazily: a round may end before the member has got it; until then, @src must not change.
 */
libacp_send_t libacp_step_send_lazily;

uint32_t libacp_step_copy(struct libacp_round *round, acp_ga_t dst, acp_ga_t src, size_t size,
			  uint32_t order);

/* Copy blocks that begin "stride" bytes apart in both buffers. */
uint32_t libacp_step_blocks(struct libacp_round *round, acp_ga_t dst, acp_ga_t src, size_t size,
			    int count, size_t stride, uint32_t order);

/* dst := dst op src, both in memory of the caller. */
uint32_t libacp_step_reduce(struct libacp_round *round, acp_ga_t dst, acp_ga_t src, size_t size,
			    uint32_t order);

/* ---- Parts that several algorithms have: tree_round.c ---- */

/* Wait until all children have got here. Returns the wait, or order. */
uint32_t libacp_round_await(struct libacp_round *round, uint32_t order);

/* The same, then tell the parent. */
uint32_t libacp_round_up(struct libacp_round *round, uint32_t order);

/* The same at the end of a round of which the parent sends nothing first in the next one. */
uint32_t libacp_round_up_promptly(struct libacp_round *round, uint32_t order);

/* Wait until the parent has got here, then tell the children. Returns the wait, or order. */
uint32_t libacp_round_down(struct libacp_round *round, uint32_t order);

/* Return how many pieces libacp_round_spread() sends; each has a counter, from LINE_MORE on. */
uint32_t libacp_round_pieces(const struct acpx_coll *c);

/* Send the runs of a buffer from the root to all; the root sends piece q behind orders[q]. */
void libacp_round_spread(struct libacp_round *round, acp_ga_t buffer, const uint32_t *orders);

/* The same, all pieces behind one entry. */
void libacp_round_spread_behind(struct libacp_round *round, acp_ga_t buffer, uint32_t order);

#pragma GCC visibility pop

#endif /* LIBACP_STEP_H */
