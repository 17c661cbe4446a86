// SPDX-License-Identifier: MIT
/* A rank of a cluster test (see member.h). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../patience.h"
#include "member.h"

int me, procs;

static void print(const char *format, va_list args)
{
	char text[400];

	vsnprintf(text, sizeof(text), format, args);
	printf("rank %d: %s\n", me, text);
	fflush(stdout);
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(format, args);
	va_end(args);
}

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(format, args);
	va_end(args);
	_exit(1);
}

void *member_begin(int *argc, char ***argv, size_t size)
{
	if (acp_init(argc, argv) != 0)
		fail("acp_init failed");
	me = acp_rank();
	procs = acp_procs();
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	if (acpx_starter_size() < size)
		fail("too little starter memory");
	return acp_query_address(acp_query_starter_ga(me));
}

acp_ga_t board_at(int rank, size_t offset)
{
	return acp_query_starter_ga(rank) + offset;
}

void *member_memory(size_t size, int color, acp_ga_t *ga)
{
	void *addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	acp_atkey_t key;

	if (addr == MAP_FAILED)
		fail("mmap failed");
	key = acp_register_memory(addr, size, color);
	*ga = acp_query_ga(key, addr);
	if (*ga == ACP_GA_NULL)
		fail("registration failed");
	return addr;
}

int status_of(acp_handle_t handle)
{
	if (handle == (acp_handle_t)ACP_HANDLE_NULL)
		fail("access not accepted");
	acp_complete(handle);
	return acpx_status(handle);
}

void must(acp_handle_t handle, const char *what)
{
	int status = status_of(handle);

	if (status)
		fail("%s: %s", what, acpx_strerror(status));
}

void rendezvous(void)
{
	if (acp_sync() != 0)
		fail("acp_sync failed");
}

void wait_for(const uint64_t *word, uint64_t value, const char *what)
{
	struct patience p = patience_begin(PATIENCE_WORK);

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value) {
		if (patience_over(&p))
			fail("%s: waited in vain", what);
		nap();
	}
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void nap(void)
{
	usleep(2000);
}

uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

void fill(void *to, size_t size, uint64_t *state)
{
	char *at = to;
	uint64_t word;
	size_t n;

	for (; size; size -= n, at += n) {
		word = next_random(state);
		n = size < sizeof(word) ? size : sizeof(word);
		memcpy(at, &word, n);
	}
}
