/* SPDX-License-Identifier: MIT */
/*
 * What the fuzzers share.  A fuzzer is a file fuzz_<target>.c with libFuzzer's
 * entry, fuzz_one() by another name; it makes out of the bytes it is given what
 * it likes, calls the protocol core with it, and says by ENSURE() what must
 * hold.  No state outlives a call, so each input repeats what it did.
 *
 * All of them take every input: there is no wrong one, and what lies behind
 * its end reads as 0.
 */
#ifndef ACP_FUZZ_H
#define ACP_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include "port.h"

/* What libFuzzer calls, and replay.c. */
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
#define fuzz_one LLVMFuzzerTestOneInput

/* End with a finding, naming what does not hold. */
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

/* The next bytes as a number, most significant first. */
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

/* A number of any size: how many bytes it has, then those; often small, and often near a limit. */
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

/* A copy that ends where its memory ends. */
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
