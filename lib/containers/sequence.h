/* SPDX-License-Identifier: MIT */
/*
 * Operations that vectors and deques share, from the arguments of a call to its errno. They return
 * true with errno unchanged, or false with errno set and, unless bytes.h says otherwise, the
 * container unchanged.
 *
 * @ga is the address of a header. Indices are in bytes; those out of range are EINVAL. Different
 * threads may use different containers at the same time.
 */
#ifndef LIBACP_SEQUENCE_H
#define LIBACP_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "acp.h"
#include "containers/bytes.h"

#pragma GCC visibility push(hidden)

/* Index behind the last byte. */
#define LIBACP_SEQUENCE_BACK	INT64_MAX

/* Create a container on @rank, see libacp_bytes_create(). */
bool libacp_sequence_create(enum libacp_bytes_kind kind, size_t size, int rank, acp_ga_t *ga);

/* Free a container. */
bool libacp_sequence_destroy(enum libacp_bytes_kind kind, acp_ga_t ga);

/* Read the header; on failure it is all 0. */
bool libacp_sequence_load(enum libacp_bytes_kind kind, acp_ga_t ga, struct libacp_bytes *b);

/* Increase the capacity to at least @capacity bytes. */
bool libacp_sequence_reserve(enum libacp_bytes_kind kind, acp_ga_t ga, size_t capacity);

/* Insert @size bytes from @source before @index. */
bool libacp_sequence_insert(enum libacp_bytes_kind kind, acp_ga_t ga, int64_t index,
			    acp_ga_t source, size_t size);

/* Insert bytes [start, end) of another container, or of the same one. */
bool libacp_sequence_insert_range(enum libacp_bytes_kind kind, acp_ga_t ga, int64_t index,
				  acp_ga_t other, int start, int end);

/* Remove up to @size bytes from @index on. */
bool libacp_sequence_erase(enum libacp_bytes_kind kind, acp_ga_t ga, int64_t index, size_t size);

/* Remove bytes [start, end). */
bool libacp_sequence_erase_range(enum libacp_bytes_kind kind, acp_ga_t ga, int start, int end);

/* Remove up to @size bytes at the end. */
bool libacp_sequence_pop_back(enum libacp_bytes_kind kind, acp_ga_t ga, size_t size);

/* Replace the contents by those of another container, or by bytes [start, end) of it. */
bool libacp_sequence_assign(enum libacp_bytes_kind kind, acp_ga_t ga, acp_ga_t other);
bool libacp_sequence_assign_range(enum libacp_bytes_kind kind, acp_ga_t ga, acp_ga_t other,
				  int start, int end);

/* Exchange the contents of two containers. */
bool libacp_sequence_swap(enum libacp_bytes_kind kind, acp_ga_t ga, acp_ga_t other);

/* Arithmetic on iterators: EOVERFLOW if the result does not fit into an int. */
bool libacp_sequence_advance(int *index, int n);
bool libacp_sequence_distance(int first, int last, int *distance);

#pragma GCC visibility pop

#endif /* LIBACP_SEQUENCE_H */
