/* SPDX-License-Identifier: MIT */
/*
 * AEGIS-128 (Wu, Preneel: "AEGIS: A Fast Authenticated Encryption Algorithm", v1.1). A simple, slow
 * and independent implementation, to compare that of the kernel with, and for nodes that tests
 * simulate.
 */
#ifndef AEGIS_H
#define AEGIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Encrypt @text in place; @tag receives a tag of 16 bytes. */
void aegis_close(const uint8_t key[16], const uint8_t nonce[16], const void *clear,
		 size_t clear_len, void *text, size_t len, uint8_t tag[16]);

/* Decrypt in place. False: the tag is wrong, and the text is garbage. */
bool aegis_open(const uint8_t key[16], const uint8_t nonce[16], const void *clear,
		size_t clear_len, void *text, size_t len, const uint8_t tag[16]);

#endif /* AEGIS_H */
