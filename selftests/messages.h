/* SPDX-License-Identifier: MIT */
/* Messages for tests: size and contents identify channel and number. */
#ifndef MESSAGES_H
#define MESSAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PLAY_LARGEST	70000u

static inline uint64_t play_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Message @number of a channel, known to both ends: its size, ... */
static inline size_t play_size(uint64_t channel, uint64_t number)
{
	uint64_t x = play_mix(channel * 1000003 + number);

	switch (x % 8) {
	case 0:
		return x / 8 % 4;
	case 1:
	case 2:
	case 3:
		return x / 8 % 64;
	case 4:
		return x / 8 % 600;
	case 5:
		return 4090 + x / 8 % 12;
	case 6:
		return x / 8 % 9000;
	default:
		return x / 8 % PLAY_LARGEST;
	}
}

/* ... and its bytes; many are zero. */
static inline void play_fill(unsigned char *to, size_t size, uint64_t channel, uint64_t number)
{
	uint64_t x = play_mix(channel * 7919 + number * 3 + 1);
	size_t i;

	for (i = 0; i < size; i++) {
		if (i % 8 == 0)
			x = play_mix(x + i);
		to[i] = x % 3 ? (unsigned char)(x >> i % 8 * 8) : 0;
	}
}

static inline bool play_is(const unsigned char *bytes, size_t size, uint64_t channel,
			   uint64_t number)
{
	unsigned char *expected = malloc(size + 1);
	bool same;

	if (!expected)
		abort();
	play_fill(expected, size, channel, number);
	same = !memcmp(bytes, expected, size);
	free(expected);
	return same;
}

/* Separate pages, since memory lent for sending is moved away from its address. */
static inline unsigned char *play_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

#endif /* MESSAGES_H */
