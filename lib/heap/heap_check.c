// SPDX-License-Identifier: MIT
/*
 * Statistics and consistency check of a heap. A heap that this process cannot access directly is
 * copied under its lock, and the copy is checked.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "heap/heap.h"

#define HEAD(member)	offsetof(struct libacp_heap_head, member)

/* ---- Invariants ---- */

/* Results of the walk through the areas. */
struct heap_check {
	const char *bytes;
	uint64_t size;
	uint64_t used, blocks, free;	/* bytes in use, used areas, free areas in the list */
};

static uint64_t word(const struct heap_check *c, uint64_t at)
{
	return *(const uint64_t *)(const void *)(c->bytes + at);
}

/*
 * tag() returns the value of a head or link of that kind, foot() that of a foot; all ones if the
 * tag is wrong.
 */
static uint64_t tag(const struct heap_check *c, uint64_t at, enum libacp_heap_kind kind)
{
	uint64_t w = word(c, at);

	if (!libacp_heap_tag_right(at, w) || libacp_heap_kind(w) != kind)
		return UINT64_MAX;
	return libacp_heap_value(w);
}

static uint64_t foot(const struct heap_check *c, uint64_t at, enum libacp_heap_kind kind)
{
	uint64_t w = word(c, at);

	if (!libacp_heap_tag_right(LIBACP_HEAP_FOOT(at), w) || libacp_heap_kind(w) != kind)
		return UINT64_MAX;
	return libacp_heap_value(w);
}

/* True if link and foot of the area that ends there are in the head of the heap. */
static bool in_head(const struct heap_check *c, uint64_t foot)
{
	const struct libacp_heap_head *head = (const void *)c->bytes;

	return head->follower && libacp_heap_value(head->first) + 8 == foot;
}

/* Return the size in the foot of a free area, or all ones. */
static uint64_t free_foot(const struct heap_check *c, uint64_t at)
{
	const struct libacp_heap_head *head = (const void *)c->bytes;
	uint64_t there = foot(c, at, LIBACP_HEAP_FREE);

	if (there == UINT64_MAX || !in_head(c, at))
		return there;
	if (!libacp_heap_tag_right(LIBACP_HEAP_FOOT(at), head->foot) ||
	    libacp_heap_kind(head->foot) != LIBACP_HEAP_FREE)
		return UINT64_MAX;
	return libacp_heap_value(head->foot);
}

/* Return the link at this position, or all ones. */
static uint64_t next_link(const struct heap_check *c, uint64_t at)
{
	const struct libacp_heap_head *head = (const void *)c->bytes;
	uint64_t next = tag(c, at, LIBACP_HEAP_LINK);

	if (next == UINT64_MAX || !in_head(c, at + 8))
		return next;
	if (!libacp_heap_tag_right(at, head->link) ||
	    libacp_heap_kind(head->link) != LIBACP_HEAP_LINK)
		return UINT64_MAX;
	return libacp_heap_value(head->link);
}

/* Check the area at *at and advance to the next one. False if it is inconsistent. */
static bool pass_area(struct heap_check *c, uint64_t *at, enum libacp_heap_kind *before)
{
	enum libacp_heap_kind kind = libacp_heap_kind(word(c, *at));
	uint64_t size = tag(c, *at, kind), end;

	if (size == UINT64_MAX || size < LIBACP_HEAP_AREA_MIN || size > c->size - 8 - *at)
		return false;
	end = *at + size - 8;
	if ((kind == LIBACP_HEAP_FREE ? free_foot(c, end) : foot(c, end, kind)) != size)
		return false;
	if (kind == LIBACP_HEAP_USED) {
		c->used += size;
		c->blocks++;
	} else if (kind == LIBACP_HEAP_FREE) {
		c->free++;
	} else if (kind != LIBACP_HEAP_EXTENSION || *before == LIBACP_HEAP_USED) {
		return false;
	}
	*before = kind;
	*at += size;
	return true;
}

static bool areas_are_right(struct heap_check *c)
{
	enum libacp_heap_kind before = LIBACP_HEAP_USED;
	uint64_t at = LIBACP_HEAP_AREAS;

	if (foot(c, HEAD(begin), LIBACP_HEAP_USED) != 0)
		return false;
	while (at < c->size - 8)
		if (!pass_area(c, &at, &before))
			return false;
	return tag(c, c->size - 8, LIBACP_HEAP_USED) == 0;
}

/* Check that each link is that of a free area, and that there are as many as free areas. */
static bool list_is_right(const struct heap_check *c)
{
	uint64_t at = tag(c, HEAD(first), LIBACP_HEAP_LINK), left = c->free, size;

	while (at && left--) {
		if (at < LIBACP_HEAP_AREAS + 8 || at % 8 || at > c->size - 24)
			return false;
		size = free_foot(c, at + 8);
		if (size > at + 16 - LIBACP_HEAP_AREAS ||
		    tag(c, at + 16 - size, LIBACP_HEAP_FREE) != size)
			return false;
		at = next_link(c, at);
	}
	return !at && !left;
}

static bool copies_are_right(const struct heap_check *c)
{
	const struct libacp_heap_head *head = (const void *)c->bytes;
	uint64_t first = libacp_heap_value(head->first);

	if (head->used != c->used || head->blocks != c->blocks)
		return false;
	return !first || !head->follower || head->follower == word(c, first + 16);
}

int libacp_heap_verify(const char *bytes, uint64_t size)
{
	struct heap_check c = { .bytes = bytes, .size = size };

	if (size < LIBACP_HEAP_MIN || tag(&c, HEAD(size), LIBACP_HEAP_LINK) != size ||
	    !areas_are_right(&c) || !list_is_right(&c) || !copies_are_right(&c))
		return -EUCLEAN;
	return 0;
}

/* ---- Access to the heap of a rank ---- */

/* Take the lock and get the size. Returns 0 or -errno. */
static int enter(struct libacp_txlock *s, acp_ga_t base, uint64_t *size)
{
	struct libacp_fetch fetch = { .ga = base + HEAD(size), .size = 8 };
	uint64_t tag;
	int error = libacp_txlock_enter(s, base, base, LIBACP_HEAP_AREAS, &fetch, 1);

	if (error)
		return error;
	tag = *(const uint64_t *)fetch.bytes;
	*size = libacp_heap_value(tag);
	if (!tag)
		error = -ENOMEM;
	else if (!libacp_heap_tag_right(HEAD(size), tag))
		error = -EUCLEAN;
	if (error)
		libacp_txlock_drop(s);
	return error;
}

/* Copy the heap to @bytes and release the lock. */
static int take_copy(struct libacp_txlock *s, acp_ga_t base, char *bytes, uint64_t size)
{
	acp_atkey_t key = acp_register_memory(bytes, size, 0);
	bool quiet = libacp_quiet(true);
	int error = -ENOMEM, left;

	if (key != ACP_ATKEY_NULL)
		error = libacp_finish(acp_copy(acp_query_ga(key, bytes), base, size,
					       ACP_HANDLE_NULL));
	libacp_quiet(quiet);
	left = libacp_txlock_leave(s);
	acp_unregister_memory(key);
	/* -EAGAIN: it took long, but no other rank held the lock meanwhile. */
	return error || left == -EAGAIN ? error : left;
}

static int check_copy(struct libacp_txlock *s, acp_ga_t base, uint64_t size)
{
	char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int error;

	if (bytes == MAP_FAILED) {
		libacp_txlock_drop(s);
		return -ENOMEM;
	}
	error = take_copy(s, base, bytes, size);
	if (!error)
		error = libacp_heap_verify(bytes, size);
	munmap(bytes, size);
	return error;
}

static int check(acp_ga_t base)
{
	struct libacp_txlock s;
	uint64_t size;
	int error = enter(&s, base, &size);

	if (error)
		return error;
	if (!s.near)
		return check_copy(&s, base, size);
	error = libacp_heap_verify(s.near, size);
	libacp_txlock_drop(&s);
	return error;
}

/* Read size, bytes in use and number of blocks. Returns 0 or -errno. */
static int read_figures(acp_ga_t base, uint64_t figures[3])
{
	acp_ga_t ga;
	const struct libacp_heap_head *head = libacp_scratch_get(sizeof(*head), &ga);
	bool quiet;
	int error;

	if (!head)
		return -ENOMEM;
	quiet = libacp_quiet(true);
	error = libacp_finish(acp_copy(ga, base, sizeof(*head), ACP_HANDLE_NULL));
	libacp_quiet(quiet);
	figures[0] = libacp_heap_value(head->size);
	figures[1] = head->used;
	figures[2] = head->blocks;
	if (!error && !libacp_heap_tag_right(HEAD(size), head->size))
		error = head->size ? -EUCLEAN : -ENOMEM;
	libacp_scratch_put((void *)head);
	return error;
}

/* ---- The public functions ---- */

/* Convert a negative errno to a status of the public functions. */
static int status_of(int error)
{
	switch (error) {
	case 0:
		return 0;
	case -EUCLEAN:
		return ACPX_ECORRUPT;
	case -EINVAL:
		return ACPX_EOP;
	case -EFAULT:
	case -ENXIO:
	case -ENOMEM:
		return ACPX_ENOMEM;
	case -EHOSTDOWN:
		return ACPX_ERANK;
	case -ECONNRESET:
		return ACPX_EPEER;
	case -EHOSTUNREACH:
		return ACPX_EROUTE;
	case -ECANCELED:
		return ACPX_EABORT;
	default:
		return ACPX_ETIMEOUT;
	}
}

int acpx_heap_check(int rank)
{
	acp_ga_t base = acpx_query_heap_ga(rank);

	return base == ACP_GA_NULL ? ACPX_EOP : status_of(check(base));
}

int acpx_heap_stats(int rank, struct acpx_heap_stats *stats)
{
	acp_ga_t base = acpx_query_heap_ga(rank);
	uint64_t figures[3] = { 0, 0, 0 };
	int error;

	if (base == ACP_GA_NULL || !stats)
		return ACPX_EOP;
	error = read_figures(base, figures);
	if (error)
		return status_of(error);
	stats->size = figures[0] - LIBACP_HEAP_AREAS - 8;
	stats->used = figures[1];
	stats->blocks = figures[2];
	return 0;
}
