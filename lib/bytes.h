/* SPDX-License-Identifier: MIT */
/*
 * Bytes in the heap of one rank, with a header beside them: what vectors and
 * deques have in common.  A vector is a deque whose first byte never moves.
 *
 * Header words, as in ACP 3.0.0:
 *	vector	GA of the data, size, capacity
 *	deque	GA of the data, offset of the first byte, size, capacity
 * There is no data (ACP_GA_NULL) while the capacity is 0.
 *
 * Data is moved by the rank it lies on, or goes straight from where it is to
 * where it belongs; never through the caller, unless that is one of both.
 * Data is there before the header tells of it.  Functions that change
 * something return 0 or -errno, with the header as it was: -ENOMEM and what
 * is due to a source of data leave the contents, too.
 */
#ifndef LIBACP_BYTES_H
#define LIBACP_BYTES_H

#include <stdint.h>

#include "acp.h"
#include "round.h"

#pragma GCC visibility push(hidden)

/* Indices are int, and capacities multiples of 8. */
#define LIBACP_BYTES_MOST	((uint64_t)0x7ffffff8)

enum libacp_bytes_kind { LIBACP_VECTOR, LIBACP_DEQUE };

/* A header as it was read.  size <= capacity <= LIBACP_BYTES_MOST; first < capacity, or 0. */
struct libacp_bytes {
	enum libacp_bytes_kind kind;
	acp_ga_t ga;			/* of the header */
	acp_ga_t data;
	uint64_t first, size, capacity;
};

/* A new one on a rank: so many bytes in it (a vector), or none and room for them (a deque). */
int libacp_bytes_create(struct libacp_round *r, enum libacp_bytes_kind kind, uint64_t size,
			int rank, acp_ga_t *ga);
int libacp_bytes_destroy(struct libacp_round *r, const struct libacp_bytes *b);

/* Read the headers of those at .ga, of that .kind. */
int libacp_bytes_load(struct libacp_round *r, struct libacp_bytes *b, unsigned int count);

/* Where bytes [at, at + size) are, at + size <= b->size: in one piece or two. */
acp_pair_t libacp_bytes_pieces(const struct libacp_bytes *b, uint64_t at, uint64_t size);

/* Room for that many in all. */
int libacp_bytes_reserve(struct libacp_round *r, const struct libacp_bytes *b, uint64_t capacity);

/* Insert what lies there (which may be b itself), before byte at <= b->size. */
int libacp_bytes_insert(struct libacp_round *r, const struct libacp_bytes *b, uint64_t at,
			acp_pair_t source);

/* Take out bytes [at, at + size), all of them there. */
int libacp_bytes_erase(struct libacp_round *r, const struct libacp_bytes *b, uint64_t at,
		       uint64_t size);

/* Only these bytes shall be left, all of them there. */
int libacp_bytes_keep(struct libacp_round *r, const struct libacp_bytes *b, uint64_t at,
		      uint64_t size);

/*
 * Other contents, which are not b.  If a source is lost on the way the
 * contents are undefined.
 */
int libacp_bytes_assign(struct libacp_round *r, const struct libacp_bytes *b, acp_pair_t source);

/* Exchange the contents; each stays on its rank. */
int libacp_bytes_swap(struct libacp_round *r, const struct libacp_bytes *a,
		      const struct libacp_bytes *b);

#pragma GCC visibility pop

#endif /* LIBACP_BYTES_H */
