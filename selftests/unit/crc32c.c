// SPDX-License-Identifier: MIT
/* CRC-32C: see crc32c.h. */
#include "crc32c.h"

static uint32_t table[256];

static void fill_table(void)
{
	uint32_t i, j, c;

	for (i = 0; i < 256; i++) {
		for (c = i, j = 0; j < 8; j++)
			c = c >> 1 ^ (c & 1 ? 0x82f63b78 : 0);
		table[i] = c;
	}
}

uint32_t crc32c(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t c = ~0u;

	if (!table[1])
		fill_table();
	while (len--)
		c = c >> 8 ^ table[(c ^ *p++) & 255];
	return ~c;
}
