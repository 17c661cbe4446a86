/* SPDX-License-Identifier: MIT */
/*
 * CRC-32C (Castagnoli) with initial value and final XOR of all ones: an independent implementation.
 */
#ifndef CRC32C_H
#define CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *data, size_t len);

#endif /* CRC32C_H */
