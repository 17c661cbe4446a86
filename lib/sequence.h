/* SPDX-License-Identifier: MIT */
/*
 * The operations that vectors and deques share, from the arguments of a call
 * to its errno: true, with errno as it was, or false, with errno and, unless
 * bytes.h says otherwise, the container as it was.
 *
 * ga is that of a header.  Indices are bytes; what lies outside is EINVAL.
 */
#ifndef LIBACP_SEQUENCE_H
#define LIBACP_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "acp.h"
#include "bytes.h"

#pragma GCC visibility push(hidden)

/* An index: behind the last byte. */
#define LIBACP_SEQUENCE_BACK	INT64_MAX

bool libacp_sequence_create(enum libacp_bytes_kind kind, size_t size, int rank, acp_ga_t *ga);
bool libacp_sequence_destroy(enum libacp_bytes_kind kind, acp_ga_t ga);

/* Read the header; on failure it is all 0. */
bool libacp_sequence_load(enum libacp_bytes_kind kind, acp_ga_t ga, struct libacp_bytes *b);

bool libacp_sequence_reserve(enum libacp_bytes_kind kind, acp_ga_t ga, size_t capacity);

/* Insert "size" bytes from "source" before "index". */
bool libacp_sequence_insert(enum libacp_bytes_kind kind, acp_ga_t ga, int64_t index,
			    acp_ga_t source, size_t size);

/* Insert bytes [start, end) of another one, or the same. */
bool libacp_sequence_insert_range(enum libacp_bytes_kind kind, acp_ga_t ga, int64_t index,
				  acp_ga_t other, int start, int end);

/* Take out bytes from "index" on, as many as there are but at most "size". */
bool libacp_sequence_erase(enum libacp_bytes_kind kind, acp_ga_t ga, int64_t index, size_t size);

/* Take out bytes [start, end). */
bool libacp_sequence_erase_range(enum libacp_bytes_kind kind, acp_ga_t ga, int start, int end);

/* Take out the last bytes, as many as there are but at most "size". */
bool libacp_sequence_pop_back(enum libacp_bytes_kind kind, acp_ga_t ga, size_t size);

/* The contents become those of another one, or bytes [start, end) of it. */
bool libacp_sequence_assign(enum libacp_bytes_kind kind, acp_ga_t ga, acp_ga_t other);
bool libacp_sequence_assign_range(enum libacp_bytes_kind kind, acp_ga_t ga, acp_ga_t other,
				  int start, int end);

bool libacp_sequence_swap(enum libacp_bytes_kind kind, acp_ga_t ga, acp_ga_t other);

/* Arithmetic of iterators: EOVERFLOW if an int does not hold the result. */
bool libacp_sequence_advance(int *index, int n);
bool libacp_sequence_distance(int first, int last, int *distance);

#pragma GCC visibility pop

#endif /* LIBACP_SEQUENCE_H */
