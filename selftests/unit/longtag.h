/* SPDX-License-Identifier: MIT */
/*
 * The tag of a frame with a long payload and integrity "tag", as PROTOCOL.md describes it: an
 * independent implementation, to compare that of the module (kernel/core/nh.c) with.
 */
#ifndef LONGTAG_H
#define LONGTAG_H

#include "siphash.h"

#define LONGTAG_BLOCK	2048

/* Compute NH of at most a block: its two halves, the lower one first. */
void longtag_nh(const struct siphash_key *key, const void *block, size_t size, uint64_t sum[2]);

/* Compute the tag of @head_size bytes after the tag, and of the payload after them. */
uint64_t longtag(const struct siphash_key *key, const void *head, size_t head_size,
		 const void *payload, size_t size);

#endif /* LONGTAG_H */
