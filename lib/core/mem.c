// SPDX-License-Identifier: MIT
/*
 * Memory with global addresses: regions that this rank registered, and the starter memory, heap and
 * library page that the kernel allocated.
 *
 * The STag table maps STags to regions, so that a lookup needs neither the kernel nor a lock. It
 * has two levels, because a rank may have 2^21 regions but usually has three. Writers hold the
 * table lock across the ioctl as well: otherwise the entry of a key that the kernel has assigned
 * again could be cleared by the thread that unregistered it before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"
#include "core/internal.h"
#include "core/limits.h"
#include "core/mappings.h"
#include "core/mem.h"
#include "core/page.h"
#include "core/process.h"

struct libacp_region **libacp_chunks;

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static uint64_t own_sizes[ACP_STAG_RESERVED];
static void *own_memory[ACP_STAG_RESERVED];	/* starter, heap, library */

static uint64_t ga_offset(acp_ga_t ga)
{
	return ga & libacp.offset_mask;
}

/* Enter a region that the kernel registered; table lock held. Returns 0 or -ENOMEM. */
static int add_region(acp_ga_t key, char *base, uint64_t low, uint64_t size, bool writable)
{
	uint64_t words = size < sizeof(uint64_t) ? 0 : size - sizeof(uint64_t) + 1;
	uint64_t tag = libacp_mem_tag(key);
	uint32_t stag = tag & libacp.stag_mask;
	struct libacp_region **chunk = &libacp_chunks[stag / LIBACP_CHUNK];
	struct libacp_region *region;

	if (!*chunk) {
		region = calloc(LIBACP_CHUNK, sizeof(*region));
		if (!region)
			return -ENOMEM;
		__atomic_store_n(chunk, region, __ATOMIC_RELEASE);
	}
	region = *chunk + stag % LIBACP_CHUNK;
	if (region->tag == tag + 1)
		return 0;		/* registered repeatedly: the kernel returns the same key */
	region->base = base;
	region->ga = key + low;
	region->size = size;
	region->writable = writable ? size : 0;
	__atomic_store_n(&region->word_reads, words, __ATOMIC_RELEASE);
	__atomic_store_n(&region->word_writes, writable ? words : 0, __ATOMIC_RELEASE);
	__atomic_store_n(&region->tag, tag + 1, __ATOMIC_RELEASE);
	return 0;
}

/* ---- Memory that children do not get ---- */

/*
 * Advise the kernel about the whole pages of a range. A mapping of huge pages can only be split
 * between them. Returns 0 or -1.
 */
static int advise(const char *base, uint64_t size, int advice)
{
	const uint64_t granules[] = { (uint64_t)sysconf(_SC_PAGESIZE), 2ULL << 20, 1ULL << 30 };
	const uint64_t from = (uintptr_t)base, to = from + size;
	size_t i;

	for (i = 0; i < sizeof(granules) / sizeof(granules[0]); i++) {
		uint64_t first = (from + granules[i] - 1) & ~(granules[i] - 1);
		uint64_t end = to & ~(granules[i] - 1);

		if (first >= end)
			return 0;
		if (madvise((void *)(uintptr_t)first, end - first, advice) == 0)
			return 0;
		if (errno != EINVAL)
			break;
	}
	return -1;
}

/*
 * Ranges that children do not get, each until its registration ends: that can be larger, and other
 * registrations can overlap it. Guarded by the table lock.
 */
struct apart {
	struct apart *next;
	acp_atkey_t key;
	const char *base, *end;
};

static struct apart *aparts;

/* Give children the pages of a range again, but for those of other ranges. */
static void rejoin(const char *base, const char *end)
{
	const struct apart *a;

	advise(base, (uint64_t)(end - base), MADV_DOFORK);
	for (a = aparts; a; a = a->next) {
		const char *from = a->base > base ? a->base : base;
		const char *to = a->end < end ? a->end : end;

		if (from < to)
			advise(from, (uint64_t)(to - from), MADV_DONTFORK);
	}
}

/* Keep a range apart until the registration with this key ends. Returns 0 or -ENOMEM. */
static int keep_apart(acp_atkey_t key, const char *base, const char *end)
{
	struct apart *a;

	for (a = aparts; a; a = a->next)
		if (a->key == key && a->base <= base && end <= a->end)
			return 0;
	a = malloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	if (advise(base, (uint64_t)(end - base), MADV_DONTFORK)) {
		free(a);
		rejoin(base, end);
		return -ENOMEM;
	}
	*a = (struct apart){ aparts, key, base, end };
	aparts = a;
	return 0;
}

/* The registration with this key has ended; ACP_ATKEY_NULL: all have. */
static void end_apart(acp_atkey_t key)
{
	struct apart **at = &aparts, *a;

	while ((a = *at)) {
		if (key != ACP_ATKEY_NULL && a->key != key) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		rejoin(a->base, a->end);
		free(a);
	}
}

/* ---- Memory from the kernel ---- */

static const uint32_t map_kinds[ACP_STAG_RESERVED] = {
	[ACP_STAG_STARTER] = ACP_MAP_STARTER,
	[ACP_STAG_HEAP] = ACP_MAP_HEAP,
	[ACP_STAG_LIBRARY] = ACP_MAP_LIBRARY,
};

void *libacp_mem_map(uint32_t stag, uint32_t rank, uint64_t size)
{
	void *addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, libacp.fd,
			  (off_t)ACP_MAP(map_kinds[stag], rank));

	if (!addr)
		errno = -libacp_no_answer();
	return addr == MAP_FAILED ? NULL : addr;
}

void libacp_mem_unmap(void *addr, uint64_t size)
{
	if (addr)
		munmap(addr, size);
}

int libacp_mem_sizes(uint32_t rank, uint64_t sizes[ACP_STAG_RESERVED])
{
	struct acp_peer_info peer = {
		.size = sizeof(peer), .rank = rank, .starter_size = UINT64_MAX,
	};

	if (ioctl(libacp.fd, ACP_IOC_PEER, &peer) < 0)
		return -errno;
	if (peer.starter_size == UINT64_MAX)
		return libacp_no_answer();
	sizes[ACP_STAG_STARTER] = peer.starter_size;
	sizes[ACP_STAG_HEAP] = peer.heap_size;
	sizes[ACP_STAG_LIBRARY] = sizeof(struct libacp_page);
	return 0;
}

static int open_own(uint32_t stag)
{
	acp_ga_t key = acp_ga_make(&libacp.layout, libacp.rank, 0, stag, 0);
	uint64_t size = own_sizes[stag];

	if (!size)
		return 0;
	own_memory[stag] = libacp_mem_map(stag, libacp.rank, size);
	if (!own_memory[stag])
		return -errno;
	return add_region(key, own_memory[stag], 0, size, true);
}

static uint32_t chunk_count(void)
{
	return (libacp.stag_mask + 1) / LIBACP_CHUNK;
}

int libacp_mem_open(void)
{
	int error = libacp_mem_sizes(libacp.rank, own_sizes);
	uint32_t stag;
	void *chunks;

	/* Up to 256 KiB, of which usually one page is used. calloc() might touch all pages. */
	chunks = mmap(NULL, chunk_count() * sizeof(*libacp_chunks), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (chunks == MAP_FAILED || !chunks)
		return -ENOMEM;
	libacp_chunks = chunks;
	for (stag = 0; !error && stag < ACP_STAG_RESERVED; stag++)
		error = open_own(stag);
	libacp.first_chunk = libacp_chunks[0];
	if (!error)
		libacp.watch = libacp_mem_watch(own_memory[ACP_STAG_LIBRARY]);
	return error;
}

void libacp_mem_close(void)
{
	uint32_t i;

	for (i = 0; i < ACP_STAG_RESERVED; i++) {
		libacp_mem_unmap(own_memory[i], own_sizes[i]);
		own_memory[i] = NULL;
	}
	if (!libacp_chunks)
		return;
	end_apart(ACP_ATKEY_NULL);
	for (i = 0; i < chunk_count(); i++)
		free(libacp_chunks[i]);
	munmap(libacp_chunks, chunk_count() * sizeof(*libacp_chunks));
	libacp_chunks = NULL;
}

void *libacp_mem_own(uint32_t stag)
{
	return own_memory[stag];
}

/* ---- Registration ---- */

/* Each message is printed once: a program may free memory and try again. */
static void explain_limit(size_t size, uint64_t limit)
{
	static int told;

	if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		libacp_error("cannot register %zu bytes of memory: the administrator's limit %s is reached: see '%s'",
			     size, libacp_limit_name(limit), libacp_limit_place(limit));
}

static void explain_memory(size_t size, uint64_t limit)
{
	char text[LIBACP_MEMLOCK_TEXT];
	static int told;

	if (__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		return;
	if (limit == ACP_LIMIT_MEMLOCK)
		libacp_memlock_text(size, 0, text);
	else
		libacp_memory_text(size, text);
	libacp_error("cannot register %zu bytes of memory: %s", size, text);
}

static void explain_mapping(const struct acp_reg *reg)
{
	char text[LIBACP_MAPPING_TEXT];
	static int told;

	if (__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		return;
	libacp_mapping_text(reg->addr, reg->addr + reg->length, !(reg->access & ACP_ACCESS_RO),
			    text);
	libacp_error("cannot register %llu bytes of memory: %s", reg->length, text);
}

/*
 * Register; table lock held. Returns 0 or -errno. If there is a key after an error, the caller must
 * unregister it.
 */
static int enter(struct acp_reg *reg, bool apart)
{
	struct acp_unreg unreg = { .size = sizeof(unreg) };
	const char *base = (const char *)(uintptr_t)reg->addr, *end = base + reg->length;
	int error;

	if (ioctl(libacp.fd, ACP_IOC_REG, reg) < 0)
		return -errno;
	if (!reg->key)
		return libacp_no_answer();
	error = add_region(reg->key, (char *)(uintptr_t)reg->base, reg->base - reg->start,
			   reg->end - reg->base, !(reg->access & ACP_ACCESS_RO));
	if (error) {
		unreg.key = reg->key;
		reg->key = 0;
		ioctl(libacp.fd, ACP_IOC_UNREG, &unreg);
		return error;
	}
	return apart ? keep_apart(reg->key, base, end) : 0;
}

acp_atkey_t acpx_register_memory(void *addr, size_t size, int color, unsigned int access)
{
	const bool apart = access & ACPX_ACCESS_DONTFORK;
	struct acp_reg reg = {
		.size = sizeof(reg), .color = (uint32_t)color,
		.access = access & ~ACPX_ACCESS_DONTFORK,
		.addr = (uintptr_t)addr, .length = size,
	};
	int error;

	if (!libacp_in() || !addr || !size || color < 0 || (uint32_t)color >= libacp.colors) {
		errno = EINVAL;
		return ACP_ATKEY_NULL;
	}
	pthread_mutex_lock(&table);
	error = enter(&reg, apart);
	pthread_mutex_unlock(&table);
	if (error == -ENOMEM && reg.key)
		acp_unregister_memory(reg.key);
	if (error == 0)
		return reg.key;
	if (error == -EDQUOT)
		explain_limit(size, reg.limit);
	if (error == -ENOMEM)
		explain_memory(size, reg.limit);
	if (error == -EFAULT)
		explain_mapping(&reg);
	errno = -error;
	return ACP_ATKEY_NULL;
}

acp_atkey_t acp_register_memory(void *addr, size_t size, int color)
{
	return acpx_register_memory(addr, size, color, ACP_ACCESS_ALL);
}

/* Return the region of a key: its offset is 0, and memory from the kernel has no key. */
static struct libacp_region *find_key(acp_atkey_t key)
{
	if (!libacp_in() || ga_offset(key) || acp_ga_stag(&libacp.layout, key) < ACP_STAG_USER)
		return NULL;
	return libacp_mem_region(key);
}

int acp_unregister_memory(acp_atkey_t atkey)
{
	struct acp_unreg unreg = { .size = sizeof(unreg), .key = atkey, .left = UINT32_MAX };
	struct libacp_region *region;
	int result = -1;

	if (!libacp_in()) {		/* in a child, the lock may be held for ever */
		errno = ENOENT;
		return -1;
	}
	pthread_mutex_lock(&table);
	region = find_key(atkey);
	if (!region)
		errno = ENOENT;
	else
		result = ioctl(libacp.fd, ACP_IOC_UNREG, &unreg);
	if (result == 0 && unreg.left == UINT32_MAX) {
		errno = -libacp_no_answer();
		result = -1;
	}
	if (result == 0 && unreg.left == 0) {
		end_apart(atkey);
		__atomic_store_n(&region->word_reads, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&region->word_writes, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&region->tag, 0, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&table);
	return result;
}

/* ---- Queries ---- */

acp_ga_t acp_query_ga(acp_atkey_t atkey, void *addr)
{
	const struct libacp_region *region = find_key(atkey);
	uint64_t offset;

	if (!region)
		return ACP_GA_NULL;
	offset = (uintptr_t)addr - (uintptr_t)region->base;
	return offset < region->size ? region->ga + offset : ACP_GA_NULL;
}

static bool is_address(acp_ga_t ga)
{
	return libacp_in() && acp_ga_valid(&libacp.layout, ga) &&
	       acp_ga_color(&libacp.layout, ga) < libacp.colors;
}

int acp_query_rank(acp_ga_t ga)
{
	return is_address(ga) ? (int)acp_ga_rank(&libacp.layout, ga) : -1;
}

int acp_query_color(acp_ga_t ga)
{
	return is_address(ga) ? (int)acp_ga_color(&libacp.layout, ga) : -1;
}

static acp_ga_t first_byte(int rank, uint32_t stag)
{
	if (!libacp_in() || rank < 0 || (uint32_t)rank >= libacp.nprocs)
		return ACP_GA_NULL;
	return acp_ga_make(&libacp.layout, (uint32_t)rank, 0, stag, 0);
}

acp_ga_t acp_query_starter_ga(int rank)
{
	return first_byte(rank, ACP_STAG_STARTER);
}

acp_ga_t acpx_query_heap_ga(int rank)
{
	return first_byte(rank, ACP_STAG_HEAP);
}

size_t acpx_starter_size(void)
{
	return libacp_in() ? (size_t)own_sizes[ACP_STAG_STARTER] : 0;
}

size_t acpx_heap_size(void)
{
	return libacp_in() ? (size_t)own_sizes[ACP_STAG_HEAP] : 0;
}
