// SPDX-License-Identifier: MIT
/* The fake basic layer: memory of the ranks, in one file that all of them map. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include "fake_rank.h"
#include "test.h"

static char *arena;
static int arena_fd;
static uint64_t library_at, pages_at, arena_size;
static uint32_t pages_used, free_count;
static uint32_t *free_pages;		/* pages of this rank that were released */
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;

static struct fake_member *self(void)
{
	return &fake_shared->members[fake_rank];
}

/* ---- Lookup ---- */

static struct fake_page *find_page(int rank, uint64_t user, bool add)
{
	struct fake_page *pages = fake_shared->members[rank].pages;
	uint64_t number = user / FAKE_PAGE, i = number * 0x9e3779b97f4a7c15u >> 40;
	unsigned int tries;

	for (tries = 0; tries < FAKE_PAGES; tries++, i++) {
		struct fake_page *p = &pages[i % FAKE_PAGES];
		uint64_t there = __atomic_load_n(&p->number, __ATOMIC_ACQUIRE);

		if (there == number)
			return p;
		if (there)
			continue;
		if (!add)
			return NULL;
		__atomic_store_n(&p->number, number, __ATOMIC_RELEASE);
		return p;
	}
	abort();
}

static char *arena_page(int rank, uint32_t page)
{
	return arena + pages_at + ((uint64_t)rank * FAKE_PAGES + page) * FAKE_PAGE;
}

static uint64_t fixed_size(int rank, uint32_t stag)
{
	if (stag == ACP_STAG_STARTER)
		return fake_shared->starter_size;
	if (stag == ACP_STAG_HEAP)
		return fake_shared->members[rank].heap_size;
	return stag == ACP_STAG_LIBRARY ? FAKE_PAGE : 0;
}

static char *fixed_memory(int rank, uint32_t stag)
{
	if (stag == ACP_STAG_LIBRARY)
		return arena + library_at + (uint64_t)rank * FAKE_PAGE;
	return arena + (stag == ACP_STAG_STARTER ? fake_shared->members[rank].starter_at
						 : fake_shared->members[rank].heap_at);
}

static struct fake_region *find_region(int rank, uint32_t stag)
{
	struct fake_region *r;

	if (stag < ACP_STAG_USER || stag >= ACP_STAG_USER + FAKE_REGIONS)
		return NULL;
	r = &fake_shared->members[rank].regions[stag - ACP_STAG_USER];
	return __atomic_load_n(&r->count, __ATOMIC_ACQUIRE) ? r : NULL;
}

int fake_where(acp_ga_t ga, uint64_t size, unsigned int access, struct fake_place *place)
{
	const struct acp_ga_layout *l = &fake_shared->layout;
	uint64_t offset = acp_ga_offset(l, ga);
	uint32_t stag = acp_ga_stag(l, ga);
	const struct fake_region *r;

	if (!acp_ga_valid(l, ga) || acp_ga_color(l, ga) >= (uint32_t)fake_shared->colors)
		return ACPX_EGA;
	*place = (struct fake_place){ .rank = (int)acp_ga_rank(l, ga) };
	if (stag < ACP_STAG_RESERVED) {
		uint64_t room = fixed_size(place->rank, stag);

		if (acp_ga_color(l, ga) || !room)
			return ACPX_ESTAG;
		if (offset > room || size > room - offset)
			return ACPX_ERANGE;
		place->fixed = fixed_memory(place->rank, stag) + offset;
		return 0;
	}
	r = find_region(place->rank, stag);
	if (!r || acp_ga_color(l, r->key) != acp_ga_color(l, ga))
		return ACPX_ESTAG;
	offset -= r->base % FAKE_PAGE;
	if (offset > r->size || size > r->size - offset)
		return ACPX_ERANGE;
	if (place->rank != fake_rank && (access & ~r->access))
		return ACPX_EACCESS;
	place->user = r->base + offset;
	return 0;
}

char *fake_bytes(const struct fake_place *place, uint64_t at, uint64_t *room)
{
	const struct fake_page *p;
	uint64_t user = place->user + at;
	uint32_t page;

	if (place->fixed) {
		*room = UINT64_MAX;
		return place->fixed + at;
	}
	p = find_page(place->rank, user, false);
	page = p ? __atomic_load_n(&p->page, __ATOMIC_ACQUIRE) : 0;
	*room = FAKE_PAGE - user % FAKE_PAGE;
	return page ? arena_page(place->rank, page) + user % FAKE_PAGE : NULL;
}

/* ---- Registration ---- */

/* Replace a page of this process by a page of the arena with the same contents; table lock held. */
static void move_page(uint64_t user)
{
	struct fake_page *p = find_page(fake_rank, user, true);
	uint32_t page;
	char *there;

	if (p->users++)
		return;
	page = free_count ? free_pages[--free_count] : ++pages_used;
	if (page >= FAKE_PAGES)
		abort();
	there = arena_page(fake_rank, page);
	memcpy(there, (void *)(uintptr_t)user, FAKE_PAGE);
	if (mmap((void *)(uintptr_t)user, FAKE_PAGE, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, arena_fd, there - arena) == MAP_FAILED)
		abort();
	__atomic_store_n(&p->page, page, __ATOMIC_RELEASE);
}

/* Undo move_page(). */
static void return_page(uint64_t user)
{
	struct fake_page *p = find_page(fake_rank, user, false);
	uint32_t page = p->page;

	if (--p->users)
		return;
	__atomic_store_n(&p->page, 0, __ATOMIC_RELEASE);
	if (mmap((void *)(uintptr_t)user, FAKE_PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		abort();
	memcpy((void *)(uintptr_t)user, arena_page(fake_rank, page), FAKE_PAGE);
	free_pages[free_count++] = page;
}

static acp_atkey_t enter_region(uint64_t base, size_t size, int color, unsigned int access)
{
	struct fake_region *r, *empty = NULL;
	uint32_t i, slot = 0;
	uint64_t user;

	for (i = 0; i < FAKE_REGIONS; i++) {
		r = &self()->regions[i];
		if (!r->count) {
			slot = empty ? slot : i;
			empty = empty ? empty : r;
		} else if (r->access == access && base >= r->base &&
			   base + size <= r->base + r->size &&
			   (int)acp_ga_color(&fake_shared->layout, r->key) == color) {
			r->count++;
			return r->key;
		}
	}
	if (!empty)
		return ACP_ATKEY_NULL;
	for (user = base & ~(FAKE_PAGE - 1); user < base + size; user += FAKE_PAGE)
		move_page(user);
	empty->base = base;
	empty->size = size;
	empty->access = access;
	empty->key = acp_ga_make(&fake_shared->layout, (uint32_t)fake_rank, (uint32_t)color,
				 slot + ACP_STAG_USER, 0);
	__atomic_store_n(&empty->count, 1, __ATOMIC_RELEASE);
	return empty->key;
}

acp_atkey_t acpx_register_memory(void *addr, size_t size, int color, unsigned int access)
{
	acp_atkey_t key;

	if (!libacp_in() || !addr || !size || color < 0 || color >= fake_shared->colors) {
		errno = EINVAL;
		return ACP_ATKEY_NULL;
	}
	pthread_mutex_lock(&table);
	key = enter_region((uintptr_t)addr, size, color, access);
	pthread_mutex_unlock(&table);
	if (key == ACP_ATKEY_NULL)
		errno = ENOSPC;
	return key;
}

acp_atkey_t acp_register_memory(void *addr, size_t size, int color)
{
	return acpx_register_memory(addr, size, color, ACPX_ACCESS_READ | ACPX_ACCESS_WRITE |
				    ACPX_ACCESS_ATOMIC);
}

static struct fake_region *find_key(acp_atkey_t key)
{
	struct fake_region *r;

	if (!libacp_in() || acp_query_rank(key) != fake_rank)
		return NULL;
	r = find_region(fake_rank, acp_ga_stag(&fake_shared->layout, key));
	return r && r->key == key ? r : NULL;
}

int acp_unregister_memory(acp_atkey_t atkey)
{
	struct fake_region *r;
	uint64_t user;

	pthread_mutex_lock(&table);
	r = find_key(atkey);
	if (r && r->count > 1) {
		r->count--;
	} else if (r) {
		__atomic_store_n(&r->count, 0, __ATOMIC_RELEASE);
		for (user = r->base & ~(FAKE_PAGE - 1); user < r->base + r->size;
		     user += FAKE_PAGE)
			return_page(user);
	}
	pthread_mutex_unlock(&table);
	return r ? 0 : -1;
}

unsigned int fake_regions(void)
{
	unsigned int i, count = 0;

	for (i = 0; i < FAKE_REGIONS; i++)
		count += self()->regions[i].count != 0;
	return count;
}

/* ---- Queries ---- */

acp_ga_t acp_query_ga(acp_atkey_t atkey, void *addr)
{
	const struct fake_region *r = find_key(atkey);

	if (!r || (uintptr_t)addr < r->base || (uintptr_t)addr >= r->base + r->size)
		return ACP_GA_NULL;
	return atkey + r->base % FAKE_PAGE + ((uintptr_t)addr - r->base);
}

void *acp_query_address(acp_ga_t ga)
{
	struct fake_place place;

	if (!libacp_in() || fake_where(ga, 1, 0, &place))
		return NULL;
	if (place.rank == fake_rank)
		return place.fixed ? place.fixed : (void *)(uintptr_t)place.user;
	return acpx_query_node(place.rank) == acpx_query_node(fake_rank) ? place.fixed : NULL;
}

int acp_query_rank(acp_ga_t ga)
{
	const struct acp_ga_layout *l = &fake_shared->layout;

	if (!libacp_in() || !acp_ga_valid(l, ga) ||
	    acp_ga_color(l, ga) >= (uint32_t)fake_shared->colors)
		return -1;
	return (int)acp_ga_rank(l, ga);
}

int acp_query_color(acp_ga_t ga)
{
	return acp_query_rank(ga) < 0 ? -1 : (int)acp_ga_color(&fake_shared->layout, ga);
}

static acp_ga_t first_byte(int rank, uint32_t stag)
{
	if (!libacp_in() || rank < 0 || rank >= fake_shared->ranks)
		return ACP_GA_NULL;
	return acp_ga_make(&fake_shared->layout, (uint32_t)rank, 0, stag, 0);
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
	return libacp_in() ? fake_shared->starter_size : 0;
}

size_t acpx_heap_size(void)
{
	return libacp_in() ? self()->heap_size : 0;
}

/* ---- Begin and end of ranks ---- */

void fake_mem_create(void)
{
	struct fake_shared *s = fake_shared;
	uint64_t at = 0;
	int r;

	for (r = 0; r < s->ranks; r++) {
		s->members[r].starter_at = at;
		at += (s->starter_size + FAKE_PAGE - 1) & ~(FAKE_PAGE - 1);
		s->members[r].heap_at = at;
		at += (s->members[r].heap_size + FAKE_PAGE - 1) & ~(FAKE_PAGE - 1);
	}
	library_at = at;
	pages_at = at + (uint64_t)s->ranks * FAKE_PAGE;
	arena_size = pages_at + (uint64_t)s->ranks * FAKE_PAGES * FAKE_PAGE;
	arena_fd = memfd_create("fake_acp", MFD_CLOEXEC);
	if (arena_fd < 0 || ftruncate(arena_fd, (off_t)arena_size))
		abort();
	arena = mmap(NULL, arena_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		     arena_fd, 0);
	if (arena == MAP_FAILED)
		abort();
	pages_used = 0;
	free_count = 0;
}

void fake_mem_destroy(void)
{
	munmap(arena, arena_size);
	close(arena_fd);
}

void fake_mem_open(void)
{
	free_pages = calloc(FAKE_PAGES, sizeof(*free_pages));
	if (!free_pages)
		abort();
}

void fake_mem_close(void)
{
	free(free_pages);
}
