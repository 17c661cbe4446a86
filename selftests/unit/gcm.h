/* SPDX-License-Identifier: MIT */
/*
 * AES-256-GCM (FIPS 197, NIST SP 800-38D): a simple, slow and independent implementation, to
 * compare that of the kernel with, and for nodes that tests simulate.
 */
#ifndef GCM_H
#define GCM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Encrypt @text in place; @tag receives a tag of 16 bytes. */
void gcm_close(const uint8_t key[32], const uint8_t nonce[12], const void *clear,
	       size_t clear_len, void *text, size_t len, uint8_t tag[16]);

/* Decrypt in place, if the tag is correct. */
bool gcm_open(const uint8_t key[32], const uint8_t nonce[12], const void *clear,
	      size_t clear_len, void *text, size_t len, const uint8_t tag[16]);

/* One round of AES, like all but the last one, as used by AEGIS. @out may be @in. */
void aes_round(uint8_t out[16], const uint8_t in[16], const uint8_t key[16]);

#endif /* GCM_H */
