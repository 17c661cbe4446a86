// SPDX-License-Identifier: MIT
/*
 * Passes files to a fuzzer, one by one, without libFuzzer: for compilers that do not have it, and
 * for debuggers.
 */
#include "fuzz.h"

static void replay(const char *name)
{
	static u8 buffer[1 << 20];
	FILE *file = fopen(name, "rb");
	size_t size;
	u8 *copy;

	if (!file) {
		perror(name);
		exit(2);
	}
	size = fread(buffer, 1, sizeof(buffer), file);
	fclose(file);
	copy = exactly(buffer, size);
	fuzz_one(copy, size);
	free(copy);
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		replay(argv[i]);
	return 0;
}
