/* SPDX-License-Identifier: MIT */
/*
 * Shared code of the fuzzers. A fuzzer is a file fuzz_<target>.c with the entry point of libFuzzer,
 * which is renamed to fuzz_one(). It derives arguments from the given bytes, calls the protocol
 * core with them, and checks conditions with ENSURE(). No state outlives a call, so each input is
 * reproducible.
 *
 * Every input is valid: bytes beyond its end read as 0.
 */
#ifndef ACP_FUZZ_H
#define ACP_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include "port.h"

/* The entry point for libFuzzer and replay.c. */
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
#define fuzz_one LLVMFuzzerTestOneInput

/* Report a finding, with the condition that does not hold. */
#define ENSURE(condition)							\
	do {									\
		if (!(condition)) {						\
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			abort();						\
		}								\
	} while (0)

struct input {
	const u8 *at;
	size_t left;
};

/* Return the next bytes as a number, most significant first. */
static inline u64 take(struct input *in, u32 bytes)
{
	u64 x = 0;

	for (; bytes; bytes--) {
		x <<= 8;
		if (in->left) {
			x |= *in->at++;
			in->left--;
		}
	}
	return x;
}

/*
 * Return a number of any size: first its number of bytes, then those; often small, and often near a
 * limit.
 */
static inline u64 take_number(struct input *in)
{
	u32 how = take(in, 1);

	switch (how % 4) {
	case 0:
		return how / 4;
	case 1:
		return (1ULL << how / 4) + take(in, 1) - 128;
	case 2:
		return take(in, 2);
	default:
		return take(in, 8);
	}
}

/* Return a copy whose allocation ends with it. */
static inline void *exactly(const void *p, size_t size)
{
	void *copy = calloc(1, size ? size : 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, p, size);
	return copy;
}

#endif /* ACP_FUZZ_H */
