/* SPDX-License-Identifier: MIT */
/*
 * SipHash-2-4, the function of the tag of a frame: an independent implementation, to compare that
 * of the kernel with.
 */
#ifndef SIPHASH_H
#define SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
	uint64_t k[2];
};

/* Return the key for 16 bytes, as in a key file or in memory. */
struct siphash_key siphash_key_of(const uint8_t bytes[16]);

uint64_t siphash24(const struct siphash_key *key, const void *data, size_t len);

#endif /* SIPHASH_H */
