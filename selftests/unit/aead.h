/* SPDX-License-Identifier: MIT */
/*
 * ChaCha20-Poly1305 (RFC 8439) and keyed BLAKE2s (RFC 7693), which encrypt frames and derive their
 * keys. An independent implementation, to compare that of the kernel with.
 */
#ifndef AEAD_H
#define AEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Compute BLAKE2s-256; at most 32 bytes of key. */
void blake2s(uint8_t out[32], const void *key, size_t key_len, const void *data, size_t len);

/* Encrypt @len bytes in place. The tag @tag covers them and the clear text. */
void aead_close(const uint8_t key[32], const uint8_t nonce[12], const void *clear,
		size_t clear_len, void *text, size_t len, uint8_t tag[16]);

/* Decrypt in place. False: the tag is wrong, and nothing was changed. */
bool aead_open(const uint8_t key[32], const uint8_t nonce[12], const void *clear,
	       size_t clear_len, void *text, size_t len, const uint8_t tag[16]);

#endif /* AEAD_H */
