/* SPDX-License-Identifier: MIT */
/*
 * Bytes in the heap of one rank, with a separate header: the common part of vectors and deques. A
 * vector is a deque whose first byte never moves.
 *
 * Header words, as in ACP 3.0.0:
 *	vector	GA of the data, size, capacity
 *	deque	GA of the data, offset of the first byte, size, capacity
 * There is no data (ACP_GA_NULL) while the capacity is 0.
 *
 * Data is copied directly from source to destination, never through the caller unless it is one of
 * both. Data is written before the header that refers to it. Functions that change a container
 * return 0 or -errno with the header unchanged. -ENOMEM and failures of a source of data leave the
 * contents unchanged as well.
 */
#ifndef LIBACP_BYTES_H
#define LIBACP_BYTES_H

#include <stdint.h>

#include "acp.h"
#include "containers/batch.h"

#pragma GCC visibility push(hidden)

/* Indices are int, and capacities are multiples of 8. */
#define LIBACP_BYTES_MAX	((uint64_t)0x7ffffff8)

enum libacp_bytes_kind { LIBACP_VECTOR, LIBACP_DEQUE };

/* A header as it was read. size <= capacity <= LIBACP_BYTES_MAX; first < capacity, or 0. */
struct libacp_bytes {
	enum libacp_bytes_kind kind;
	acp_ga_t ga;			/* of the header */
	acp_ga_t data;
	uint64_t first, size, capacity;
};

/* Create a container on @rank: a vector of @size bytes, or an empty deque with that capacity. */
int libacp_bytes_create(struct libacp_round *r, enum libacp_bytes_kind kind, uint64_t size,
			int rank, acp_ga_t *ga);

/* Free the data and the header. */
int libacp_bytes_destroy(struct libacp_round *r, const struct libacp_bytes *b);

/* Read the headers at b[].ga, of the given b[].kind. */
int libacp_bytes_load(struct libacp_round *r, struct libacp_bytes *b, unsigned int count);

/* Return the location of bytes [at, at + size), at + size <= b->size, in one or two pieces. */
acp_pair_t libacp_bytes_pieces(const struct libacp_bytes *b, uint64_t at, uint64_t size);

/* Increase the capacity. */
int libacp_bytes_reserve(struct libacp_round *r, const struct libacp_bytes *b, uint64_t capacity);

/* Insert bytes, which may be those of b itself, before byte @at <= b->size. */
int libacp_bytes_insert(struct libacp_round *r, const struct libacp_bytes *b, uint64_t at,
			acp_pair_t source);

/* Remove bytes [at, at + size), which must exist. */
int libacp_bytes_erase(struct libacp_round *r, const struct libacp_bytes *b, uint64_t at,
		       uint64_t size);

/* Remove all other bytes than [at, at + size), which must exist. */
int libacp_bytes_keep(struct libacp_round *r, const struct libacp_bytes *b, uint64_t at,
		      uint64_t size);

/*
 * Replace the contents by bytes of another container. If a source is lost meanwhile, the contents
 * are undefined.
 */
int libacp_bytes_assign(struct libacp_round *r, const struct libacp_bytes *b, acp_pair_t source);

/* Exchange the contents; each header stays on its rank. */
int libacp_bytes_swap(struct libacp_round *r, const struct libacp_bytes *a,
		      const struct libacp_bytes *b);

#pragma GCC visibility pop

#endif /* LIBACP_BYTES_H */
