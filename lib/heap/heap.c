// SPDX-License-Identifier: MIT
/*
 * The global heap: memory of each rank that all ranks can allocate and free without involving its
 * owner (after "Improving the ACP global memory management algorithm", 2015).
 *
 * The heap consists of adjacent areas. Each area has a tag with its size and kind at both ends:
 * head and foot. Free areas are in an unsorted, singly linked list. The link is directly before the
 * foot and refers to the link of the next area, so that an area that shrinks or grows at its front
 * keeps its position in the list.
 *
 *	| head | ...                     | foot |	used
 *	| head | ...              | link | foot |	free
 *	| head | ...                     | foot |	extension
 *
 * Freeing an area reads the adjacent tags. After a free area, the freed area becomes its extension,
 * which is in no list. Before a free area, both are merged. Otherwise it is added to the list.
 * Allocation reads the link and the foot of an area and the head that follows, 24 bytes. If the
 * area is large enough, its front is allocated, and the rest becomes the first of the list. If not,
 * an extension that follows is merged into the area, a free area that follows is merged with it,
 * and the search starts again. An extension always follows a free area or another extension.
 *
 * All of this is done under a journaled lock (txlock.h) at the start of the heap. The words of the
 * first area of the list are copied next to the lock, so that a remote allocation takes two round
 * trips: lock and read; change and unlock. Therefore a new free area becomes the second one of the
 * list, and the large one that allocations cut down stays the first. A remote free does not read
 * the area that follows; adjacent free areas are merged by allocations. While an area is the first
 * one, its current link and foot are only in the head of the heap; those in the area itself are
 * outdated, but of the right kind.
 *
 * A tag contains 24 bits that depend on its position and contents. Therefore the word before an
 * address reveals that it is not that of a block, or that the block has been freed already, as long
 * as its head is not overwritten.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "heap/heap.h"

#define SIZE_LIMIT	(1ull << 39)
#define HEAD(member)	offsetof(struct libacp_heap_head, member)
#define HEAD_FROM	HEAD(size)
#define HEAD_BYTES	(HEAD(begin) - HEAD(size))
#define OVERHEAD	16u

/* State of a heap while its lock is held. */
struct heap {
	struct libacp_txlock txlock;
	acp_ga_t base;
	uint64_t size;
	uint64_t first;			/* offset of a link, or 0 */
	uint64_t link, foot, follower;	/* of the first area; follower 0: unknown */
	uint64_t used, blocks;
	struct {
		uint64_t first, link, foot, follower;
	} former;			/* the values in the head of the heap */
};

/* A free area in the list. */
struct area {
	/* position that refers to its link: HEAD(first) or another link */
	uint64_t slot;
	uint64_t at;			/* position of its link */
	uint64_t begin, size;
	uint64_t next;			/* link of the next area, or 0 */
	uint64_t follower;		/* tag: the head that follows */
};

/* ---- Staging stores ---- */

/* Update the copies of words of the first area. */
static void note(struct heap *h, uint64_t at, uint64_t word)
{
	if (at == h->first)
		h->link = word;
	else if (at == h->first + 8)
		h->foot = word;
	else if (at == h->first + 16 && h->follower)
		h->follower = word;
}

/* Stage a store to a word of an area. */
static void put(struct heap *h, uint64_t at, uint64_t word)
{
	libacp_txlock_store(&h->txlock, h->base + at, word);
	note(h, at, word);
}

/* As put(), for a word that is already a link or foot: for the first area only the copy changes. */
static void put_again(struct heap *h, uint64_t at, uint64_t word)
{
	if (h->follower && (at == h->first || at == h->first + 8))
		note(h, at, word);
	else
		put(h, at, word);
}

static void put_tag(struct heap *h, uint64_t at, uint64_t size, enum libacp_heap_kind kind)
{
	put(h, at, libacp_heap_tag(at, size, kind));
}

/* Change a link. */
static void put_link(struct heap *h, uint64_t at, uint64_t to)
{
	put_again(h, at, libacp_heap_tag(at, to, LIBACP_HEAP_LINK));
}

static uint64_t foot_tag(uint64_t at, uint64_t size, enum libacp_heap_kind kind)
{
	return libacp_heap_tag(LIBACP_HEAP_FOOT(at), size, kind);
}

/* Write both tags of an area that is in no list. */
static void put_area(struct heap *h, uint64_t begin, uint64_t size, enum libacp_heap_kind kind)
{
	const uint64_t foot = begin + size - 8;

	put_tag(h, begin, size, kind);
	put(h, foot, foot_tag(foot, size, kind));
}

/*
 * Write a free area whose end was not that of a free one. Link and foot are adjacent and written
 * together.
 */
static void put_free(struct heap *h, uint64_t begin, uint64_t size, uint64_t next)
{
	const uint64_t at = begin + size - 16;

	put_tag(h, begin, size, LIBACP_HEAP_FREE);
	put_tag(h, at, next, LIBACP_HEAP_LINK);
	put(h, at + 8, foot_tag(at + 8, size, LIBACP_HEAP_FREE));
}

/* Write a free area that begins at another position. */
static void put_begin(struct heap *h, uint64_t begin, uint64_t size)
{
	const uint64_t foot = begin + size - 8;

	put_tag(h, begin, size, LIBACP_HEAP_FREE);
	put_again(h, foot, foot_tag(foot, size, LIBACP_HEAP_FREE));
}

/* Make another area the first one. Called before its words are staged. */
static void set_first(struct heap *h, uint64_t first)
{
	const uint64_t *words = NULL;

	if (h->txlock.near && first)
		words = (const uint64_t *)(const void *)(h->txlock.near + first);
	h->first = first;
	h->link = words ? words[0] : 0;
	h->foot = words ? words[1] : 0;
	h->follower = words ? words[2] : 0;
}

/* Write back the words of the first area, which stays free but will not be the first one. */
static void put_first_back(struct heap *h)
{
	libacp_txlock_store(&h->txlock, h->base + h->first, h->link);
	libacp_txlock_store(&h->txlock, h->base + h->first + 8, h->foot);
}

/* Make the position that refers to this area refer to another one. */
static void put_slot(struct heap *h, uint64_t slot, uint64_t to)
{
	if (slot == HEAD(first))
		set_first(h, to);
	else
		put_link(h, slot, to);
}

static void keep_former(struct heap *h)
{
	h->former.first = h->first;
	h->former.link = h->link;
	h->former.foot = h->foot;
	h->former.follower = h->follower;
}

static void put_head_word(struct heap *h, uint64_t at, uint64_t word)
{
	libacp_txlock_store(&h->txlock, h->base + at, word);
}

/*
 * Stage the words of the head last. They are adjacent, so that a remote put writes them together.
 */
static void put_head(struct heap *h)
{
	if (h->first != h->former.first || !h->txlock.near)
		put_head_word(h, HEAD(first),
			      libacp_heap_tag(HEAD(first), h->first, LIBACP_HEAP_LINK));
	if (h->link != h->former.link || !h->txlock.near)
		put_head_word(h, HEAD(link), h->link);
	if (h->follower != h->former.follower || !h->txlock.near)
		put_head_word(h, HEAD(follower), h->follower);
	if (h->foot != h->former.foot || !h->txlock.near)
		put_head_word(h, HEAD(foot), h->foot);
	put_head_word(h, HEAD(used), h->used);
	put_head_word(h, HEAD(blocks), h->blocks);
	keep_former(h);
}

/* ---- Entering ---- */

static int take_head(struct heap *h, const uint64_t *words)
{
	if (!words[0])
		return -ENXIO;		/* too small for a heap */
	if (!libacp_heap_tag_right(HEAD(size), words[0]) ||
	    !libacp_heap_tag_right(HEAD(first), words[1]))
		return -EUCLEAN;
	h->size = libacp_heap_value(words[0]);
	h->first = libacp_heap_value(words[1]);
	if (h->size < LIBACP_HEAP_MIN || h->first > h->size - 24)
		return -EUCLEAN;
	h->link = words[2];
	h->follower = words[3];
	h->foot = words[4];
	h->used = words[5];
	h->blocks = words[6];
	keep_former(h);
	return 0;
}

/*
 * Get the address of a heap and its size. The address is NULL if this process cannot access it.
 * Returns 0 or -errno.
 */
static int find_near(acp_ga_t base, char **near, uint64_t *size)
{
	char *word = acp_query_address(base + HEAD(size));
	uint64_t tag;

	*near = NULL;
	*size = 0;
	if (!word)
		return 0;
	tag = __atomic_load_n((const uint64_t *)(const void *)word, __ATOMIC_RELAXED);
	*near = word - HEAD(size);
	*size = libacp_heap_value(tag);
	if (!tag)
		return -ENXIO;
	return libacp_heap_tag_right(HEAD(size), tag) ? 0 : -EUCLEAN;
}

/* True for errors of a heap that is too small to exist. */
static bool is_none(int error)
{
	return error == -EFAULT || error == -ENOMEM || error == -ENXIO;
}

/* Take the lock of the heap of a rank and fetch the tags around an offset (0: none). */
static int enter(struct heap *h, int rank, uint64_t around, const uint64_t **tags)
{
	struct libacp_fetch fetches[2];
	char *near;
	int error;

	h->base = acpx_query_heap_ga(rank);
	if (h->base == ACP_GA_NULL)
		return -EINVAL;
	error = find_near(h->base, &near, &h->size);
	if (error)
		return error;
	if (h->size && around >= h->size)
		return -EINVAL;
	fetches[0] = (struct libacp_fetch){ .ga = h->base + HEAD_FROM, .size = HEAD_BYTES };
	fetches[1] = (struct libacp_fetch){ .ga = h->base + around - 8, .size = 16 };
	error = libacp_txlock_enter_near(&h->txlock, h->base, h->base, h->size, near, fetches,
					 around ? 2 : 1);
	if (error)
		return error;
	error = take_head(h, fetches[0].bytes);
	if (error)
		libacp_txlock_drop(&h->txlock);
	else if (around)
		*tags = fetches[1].bytes;
	return error;
}

/* ---- Allocating ---- */

static bool is_area(const struct heap *h, uint64_t begin, uint64_t size)
{
	return begin >= LIBACP_HEAP_AREAS && begin % 8 == 0 && size >= LIBACP_HEAP_AREA_MIN &&
	       begin <= h->size - 8 && size <= h->size - 8 - begin;
}

/* Read the words of the area with the link a->at. Returns 0 or -errno. */
static int look_at(struct heap *h, struct area *a)
{
	uint64_t words[3] = { h->link, h->foot, h->follower };
	const uint64_t *there = words;
	struct libacp_fetch fetch = { .ga = h->base + a->at, .size = sizeof(words) };
	int error;

	if (a->at < LIBACP_HEAP_AREAS + 8 || a->at % 8 || a->at > h->size - 24)
		return -EUCLEAN;
	if (a->at != h->first || !h->follower) {
		error = libacp_txlock_fetch(&h->txlock, &fetch);
		if (error)
			return error;
		there = fetch.bytes;
	}
	a->next = libacp_heap_value(there[0]);
	a->size = libacp_heap_value(there[1]);
	a->begin = a->at + 16 - a->size;
	a->follower = there[2];
	if (a->next > h->size - 24 || !libacp_heap_tag_right(a->at, there[0]) ||
	    libacp_heap_kind(there[0]) != LIBACP_HEAP_LINK ||
	    !libacp_heap_tag_right(LIBACP_HEAP_FOOT(a->at + 8), there[1]) ||
	    libacp_heap_kind(there[1]) != LIBACP_HEAP_FREE || !is_area(h, a->begin, a->size) ||
	    !libacp_heap_tag_right(a->at + 16, there[2]))
		return -EUCLEAN;
	if (a->at == h->first) {
		h->link = there[0];
		h->foot = there[1];
		h->follower = there[2];
	}
	return 0;
}

/* Merge the extension that follows into the area, whose link moves. */
static void take_extension(struct heap *h, struct area *a)
{
	uint64_t size = a->size + libacp_heap_value(a->follower), at = a->begin + size - 16;

	put_slot(h, a->slot, at);
	put_free(h, a->begin, size, a->next);
}

/* Merge the area into the free area that follows, and remove it from the list. */
static void join_follower(struct heap *h, struct area *a)
{
	put_slot(h, a->slot, a->next);
	put_begin(h, a->begin, a->size + libacp_heap_value(a->follower));
}

/*
 * Merge the area with the one that follows, if that is free. Returns 1 if it was, 0 if not, or
 * -errno.
 */
static int merge(struct heap *h, struct area *a)
{
	enum libacp_heap_kind kind = libacp_heap_kind(a->follower);
	int error;

	if (kind != LIBACP_HEAP_EXTENSION && kind != LIBACP_HEAP_FREE)
		return 0;
	if (!is_area(h, a->begin + a->size, libacp_heap_value(a->follower)))
		return -EUCLEAN;
	if (kind == LIBACP_HEAP_EXTENSION)
		take_extension(h, a);
	else
		join_follower(h, a);
	put_head(h);
	error = libacp_txlock_commit(&h->txlock);
	return error ? error : 1;
}

/* True if the area can be used as it is. An extension must not lose the area before it. */
static bool is_enough(const struct area *a, uint64_t size)
{
	return a->size >= size && (a->size >= size + LIBACP_HEAP_AREA_MIN ||
				   libacp_heap_kind(a->follower) != LIBACP_HEAP_EXTENSION);
}

/* Find an area of at least @size bytes. Returns 0 or -errno (-ENOMEM: there is none). */
static int find_area(struct heap *h, uint64_t size, struct area *a)
{
	uint64_t most = h->size / LIBACP_HEAP_AREA_MIN;
	int result;

	a->slot = HEAD(first);
	a->at = h->first;
	while (a->at) {
		result = look_at(h, a);
		if (!result && is_enough(a, size))
			return 0;
		if (!result)
			result = merge(h, a);
		if (result < 0)
			return result;
		if (result) {
			a->slot = HEAD(first);
			a->at = h->first;
		} else if (most--) {
			a->slot = a->at;
			a->at = a->next;
		} else {
			return -EUCLEAN;	/* a cycle */
		}
	}
	return -ENOMEM;
}

/* Allocate the front of the area, or all of it. */
static void cut(struct heap *h, struct area *a, uint64_t size)
{
	uint64_t left = a->size - size, first = h->first;

	if (left < LIBACP_HEAP_AREA_MIN) {
		size = a->size;
		put_slot(h, a->slot, a->next);
		put_area(h, a->begin, size, LIBACP_HEAP_USED);
	} else {
		if (a->slot != HEAD(first)) {
			put_link(h, a->slot, a->next);
			put_first_back(h);
			set_first(h, a->at);
			h->follower = a->follower;
			put_link(h, a->at, first);
		}
		put_area(h, a->begin, size, LIBACP_HEAP_USED);
		put_begin(h, a->begin + size, left);
	}
	h->used += size;
	h->blocks++;
	put_head(h);
}

/* Allocate a block of at least @bytes. Returns 0 or -errno; *use describes the heap. */
static int allocate(int rank, uint64_t bytes, acp_ga_t *ga, struct libacp_heap_use *use)
{
	uint64_t size = ((bytes < 8 ? 8 : bytes) + OVERHEAD + 7) & ~7ull;
	struct heap h;
	struct area a;
	int error = enter(&h, rank, 0, NULL);

	if (error)
		return error;
	*use = (struct libacp_heap_use){ .size = h.size, .used = h.used };
	error = find_area(&h, size, &a);
	if (error) {
		libacp_txlock_drop(&h.txlock);
		return error;
	}
	cut(&h, &a, size);
	*ga = h.base + a.begin + 8;
	return libacp_txlock_leave(&h.txlock);
}

/* ---- Freeing ---- */

/* Neither neighbour is free: add the area to the list, as its second one if the first is known. */
static void add_area(struct heap *h, uint64_t begin, uint64_t size)
{
	uint64_t at = begin + size - 16, first = h->first;

	if (first && h->follower) {
		put_free(h, begin, size, libacp_heap_value(h->link));
		put_link(h, first, at);
	} else {
		set_first(h, at);
		put_free(h, begin, size, first);
	}
}

/* Check the foot of an area in a near heap and get the head that follows. */
static int look_behind(const struct heap *h, uint64_t begin, uint64_t head, uint64_t *follower)
{
	uint64_t size = libacp_heap_value(head), foot = begin + size - 8;
	const uint64_t *words = (const uint64_t *)(const void *)(h->txlock.near + foot);

	*follower = words[1];
	if (words[0] != libacp_heap_tag(LIBACP_HEAP_FOOT(foot), size, LIBACP_HEAP_USED) ||
	    !libacp_heap_tag_right(foot + 8, words[1]))
		return -EUCLEAN;
	return 0;
}

/* True if a block begins there, given its head. Otherwise *fault is the reason. */
static bool is_block(const struct heap *h, uint64_t begin, uint64_t head,
		     enum libacp_heap_fault *fault)
{
	const bool right = libacp_heap_tag_right(begin, head);

	*fault = LIBACP_HEAP_NO_BLOCK;
	if (right && (libacp_heap_kind(head) == LIBACP_HEAP_FREE ||
		      libacp_heap_kind(head) == LIBACP_HEAP_EXTENSION))
		*fault = LIBACP_HEAP_FREED;
	return right && libacp_heap_kind(head) == LIBACP_HEAP_USED &&
	       is_area(h, begin, libacp_heap_value(head));
}

/* Free the area, given the tag before it and its head. Returns 0 or -errno. */
static int give_back(struct heap *h, uint64_t begin, const uint64_t tags[2],
		     enum libacp_heap_fault *fault)
{
	uint64_t before = tags[0], head = tags[1], size = libacp_heap_value(head), follower = 0;

	if (!is_block(h, begin, head, fault))
		return -EINVAL;
	if (!libacp_heap_tag_right(LIBACP_HEAP_FOOT(begin - 8), before) ||
	    (h->txlock.near && look_behind(h, begin, head, &follower)))
		return -EUCLEAN;
	if (libacp_heap_kind(follower) == LIBACP_HEAP_FREE) {
		if (!is_area(h, begin + size, libacp_heap_value(follower)))
			return -EUCLEAN;
		put_begin(h, begin, size + libacp_heap_value(follower));
	} else if (libacp_heap_kind(before) != LIBACP_HEAP_USED) {
		put_area(h, begin, size, LIBACP_HEAP_EXTENSION);
	} else {
		add_area(h, begin, size);
	}
	h->used -= size;
	h->blocks--;
	put_head(h);
	return 0;
}

static int release(acp_ga_t ga, enum libacp_heap_fault *fault)
{
	int rank = acp_query_rank(ga), error;
	const uint64_t *tags;
	uint64_t begin;
	struct heap h;

	*fault = LIBACP_HEAP_ELSEWHERE;
	begin = ga - acpx_query_heap_ga(rank) - 8;
	if (rank < 0 || acp_query_color(ga) != 0 || begin % 8 || begin < LIBACP_HEAP_AREAS ||
	    begin > LIBACP_HEAP_VALUE_MASK)
		return -EINVAL;
	error = enter(&h, rank, begin, &tags);
	if (error)
		return is_none(error) ? -EINVAL : error;
	error = give_back(&h, begin, tags, fault);
	if (!error)
		return libacp_txlock_leave(&h.txlock);
	libacp_txlock_drop(&h.txlock);
	return error;
}

/* ---- The public functions ---- */

/* True if the operation should be repeated, which is limited in time. */
static bool again(int error, uint64_t *begin)
{
	uint64_t now;

	if (error != -EAGAIN)
		return false;
	now = libacp_now();
	if (!*begin)
		*begin = now;
	return now - *begin < libacp_txlock_times.patience;
}

/*
 * Allocate a block. Returns ACP_GA_NULL with errno set on failure; *full: the heap described by
 * *use has no block of that size.
 */
static acp_ga_t take(size_t size, int rank, struct libacp_heap_use *use, bool *full)
{
	uint64_t begin = 0;
	acp_ga_t ga;
	int error;

	*full = false;
	if (size > SIZE_LIMIT) {
		errno = acp_rank() < 0 ? EINVAL : ENOMEM;
		return ACP_GA_NULL;
	}
	do {
		*use = (struct libacp_heap_use){ 0 };
		error = allocate(rank, size, &ga, use);
	} while (again(error, &begin));
	if (!error)
		return ga;
	*full = error == -ENXIO || error == -EFAULT || (error == -ENOMEM && use->size);
	errno = is_none(error) ? ENOMEM : error == -EAGAIN ? ETIMEDOUT : -error;
	return ACP_GA_NULL;
}

acp_ga_t libacp_heap_take(size_t size, int rank)
{
	struct libacp_heap_use use;
	bool full;

	return take(size, rank, &use, &full);
}

acp_ga_t acp_malloc(size_t size, int rank)
{
	struct libacp_heap_use use;
	bool full;
	acp_ga_t ga = take(size, rank, &use, &full);

	if (full)
		libacp_heap_tell_full(rank, size, &use);
	return ga;
}

int acpx_free(acp_ga_t ga)
{
	enum libacp_heap_fault fault;
	uint64_t begin = 0;
	int error;

	if (ga == ACP_GA_NULL)
		return 0;
	do {
		error = release(ga, &fault);
	} while (again(error, &begin));
	if (error == -EINVAL && libacp_debug && acp_rank() >= 0)
		libacp_heap_tell_free(ga, fault);
	return error == -EAGAIN ? -ETIMEDOUT : error;
}

void acp_free(acp_ga_t ga)
{
	int saved = errno;

	acpx_free(ga);
	errno = saved;
}

static uint64_t *word_at(char *bytes, uint64_t at)
{
	return (uint64_t *)(void *)(bytes + at);
}

/* Write one free area, and the sentinels around it. */
static void write_areas(char *bytes, uint64_t size)
{
	const uint64_t begin = LIBACP_HEAP_AREAS, end = size - 8, area = end - begin;

	*word_at(bytes, HEAD(begin)) = libacp_heap_tag(LIBACP_HEAP_FOOT(HEAD(begin)), 0,
						       LIBACP_HEAP_USED);
	*word_at(bytes, begin) = libacp_heap_tag(begin, area, LIBACP_HEAP_FREE);
	*word_at(bytes, end - 16) = libacp_heap_tag(end - 16, 0, LIBACP_HEAP_LINK);
	*word_at(bytes, end - 8) = libacp_heap_tag(LIBACP_HEAP_FOOT(end - 8), area,
						   LIBACP_HEAP_FREE);
	*word_at(bytes, end) = libacp_heap_tag(end, 0, LIBACP_HEAP_USED);
}

int libacp_heap_open(void)
{
	uint64_t size = acpx_heap_size() & ~7ull;
	struct libacp_heap_head *head;
	char *bytes;

	if (size > LIBACP_HEAP_VALUE_MASK)
		size = LIBACP_HEAP_VALUE_MASK;
	if (size < 8)
		return 0;
	bytes = acp_query_address(acpx_query_heap_ga(acp_rank()));
	if (!bytes)
		return -EFAULT;
	if (size < LIBACP_HEAP_MIN) {
		*word_at(bytes, 0) = LIBACP_TXLOCK_NEVER;
		return 0;
	}
	write_areas(bytes, size);
	head = (struct libacp_heap_head *)(void *)bytes;
	*head = (struct libacp_heap_head){
		.size = libacp_heap_tag(HEAD(size), size, LIBACP_HEAP_LINK),
		.first = libacp_heap_tag(HEAD(first), size - 24, LIBACP_HEAP_LINK),
		.link = *word_at(bytes, size - 24),
		.foot = *word_at(bytes, size - 16),
		.follower = *word_at(bytes, size - 8),
		.begin = head->begin,
	};
	return 0;
}
