// SPDX-License-Identifier: MIT
/* One slot of a table: its chain, which is read without lock and changed with it. */
#include <errno.h>
#include <string.h>

#include "core/internal.h"
#include "containers/table.h"

#define LOOKS		8	/* searches without lock before taking it */
/* attempts to take the lock, when accesses of other threads failed */
#define TRIES		16

/* Offsets within a slot, and its size. */
#define SLOT_FIRST	8u
#define SLOT_LAST	16u
#define SLOT_NUMBER	24u
#define SLOT_BYTES	32u

/*
 * Slots share locks by number: there is one lock per four slots, but at most STRIPES per member.
 * They follow the slots. Each stripe has a lock, and a count of elements removed from its slots.
 */
#define STRIPES		64u
#define STRIPE_REMOVALS	LIBACP_TXLOCK_BYTES(LIBACP_SLOT_STORES)
#define STRIPE_BYTES	(STRIPE_REMOVALS + 8u)

/* ---- Addresses ---- */

static uint64_t stripes_of(const struct libacp_table *t)
{
	uint64_t stripes = (t->slots + 3) / 4;

	return stripes < STRIPES ? stripes : STRIPES;
}

uint64_t libacp_slot_bytes(const struct libacp_table *t)
{
	return SLOT_BYTES * t->slots + STRIPE_BYTES * stripes_of(t);
}

uint64_t libacp_slot_mark(const struct libacp_table *t, uint64_t member, uint64_t number)
{
	return 0xac9e1e3e00000000 ^ ((uint64_t)t->kind + 1) << 61 ^ member << 32 ^ number;
}

void libacp_slot_at(const struct libacp_staging *d, struct libacp_slot *s, acp_ga_t slots,
		    uint64_t member, uint64_t number)
{
	s->ga = slots + SLOT_BYTES * number;
	s->stripe = slots + SLOT_BYTES * d->table->slots +
		    STRIPE_BYTES * (number % stripes_of(d->table));
	s->rank = acp_query_rank(slots);
	s->member = member;
	s->number = number;
	s->guess = ACP_GA_NULL;
	s->locked = false;
	s->mark = libacp_slot_mark(d->table, member, number);
}

/* ---- The directory ---- */

/*
 * Cache of the addresses of slots of members. A table may have been freed, and another one may be
 * in its place. Therefore a cached address is only presumed: it is read from while the directory is
 * read again.
 */
static struct guess {
	uint64_t entry, slots;		/* address of the word of the directory, and its value */
} guesses[64];

static struct guess *guess_for(acp_ga_t entry)
{
	return &guesses[entry * 0x9e3779b97f4a7c15 >> 58];
}

static acp_ga_t guess_slots(acp_ga_t entry)
{
	const struct guess *g = guess_for(entry);

	if (__atomic_load_n(&g->entry, __ATOMIC_RELAXED) != entry)
		return ACP_GA_NULL;
	return __atomic_load_n(&g->slots, __ATOMIC_RELAXED);
}

static void remember_slots(acp_ga_t entry, acp_ga_t slots)
{
	struct guess *g = guess_for(entry);

	__atomic_store_n(&g->entry, entry, __ATOMIC_RELAXED);
	__atomic_store_n(&g->slots, slots, __ATOMIC_RELAXED);
}

int libacp_slot_open(struct libacp_staging *d, struct libacp_slot *s, uint64_t member,
		     uint64_t number)
{
	const acp_ga_t entry = d->table->ga + 8 * member;
	int error;

	libacp_staging_copy(d, LIBACP_STAGING_GA(d, slots_ga), entry, 8);
	error = libacp_staging_wait(d);
	if (error)
		return error;
	if (d->m->slots_ga % 8 || acp_query_rank(d->m->slots_ga) < 0)
		return -EINVAL;
	libacp_slot_at(d, s, d->m->slots_ga, member, number);
	remember_slots(entry, d->m->slots_ga);
	return 0;
}

int libacp_slot_guess(struct libacp_staging *d, struct libacp_slot *s, uint64_t member,
		      uint64_t number)
{
	acp_ga_t slots = guess_slots(d->table->ga + 8 * member);

	if (slots == ACP_GA_NULL)
		return libacp_slot_open(d, s, member, number);
	libacp_slot_at(d, s, slots, member, number);
	s->guess = slots;
	return 0;
}

/*
 * Check the presumed address after the slot was read from it, or could not be (error). -EAGAIN if
 * the address was wrong. If it was right, return the error, so that a rank that cannot be reached
 * is not waited for twice.
 */
static int check_guess(struct libacp_staging *d, struct libacp_slot *s, int error)
{
	const acp_ga_t guess = s->guess;
	int opened;

	s->guess = ACP_GA_NULL;
	if (guess == ACP_GA_NULL || (!error && d->m->slots_ga == guess))
		return error;
	opened = libacp_slot_open(d, s, s->member, s->number);
	if (opened)
		return opened;
	return error && d->m->slots_ga == guess ? error : -EAGAIN;
}

/* ---- Reading ---- */

static void add_element(struct libacp_staging *d, acp_ga_t elem)
{
	libacp_staging_copy(d, LIBACP_STAGING_GA(d, peek), elem - 8, LIBACP_TABLE_PEEK);
}

static bool plausible(const struct libacp_slot *s, acp_ga_t elem)
{
	return elem % 8 == 0 && acp_query_rank(elem) == s->rank;
}

static int count_step(struct libacp_steps *s, acp_ga_t elem)
{
	if (elem == s->mark)
		return -EUCLEAN;
	if (s->count++ == s->next) {
		s->mark = elem;
		s->next = 2 * s->next + 1;
	}
	return 0;
}

int libacp_slot_read(struct libacp_staging *d, struct libacp_slot *s)
{
	libacp_staging_copy(d, LIBACP_STAGING_GA(d, removals), s->stripe + STRIPE_REMOVALS, 8);
	libacp_staging_copy(d, LIBACP_STAGING_GA(d, lock), s->ga, SLOT_BYTES);
	if (s->guess != ACP_GA_NULL)
		libacp_staging_aside(d, LIBACP_STAGING_GA(d, slots_ga),
				     d->table->ga + 8 * s->member, 8);
	return check_guess(d, s, libacp_staging_wait(d));
}

int libacp_slot_unchanged(struct libacp_staging *d, struct libacp_slot *s)
{
	int error;

	libacp_staging_copy(d, LIBACP_STAGING_GA(d, again), s->stripe + STRIPE_REMOVALS, 8);
	error = libacp_staging_wait(d);
	if (error)
		return error;
	return d->m->again == d->m->removals ? 0 : -EAGAIN;
}

/*
 * Check that these bytes are in the heap of the member. Locks, and memory fetched under them, can
 * only be there, and accesses to a heap that this process can access directly are not checked
 * otherwise.
 */
static bool in_heap(const struct libacp_slot *s, acp_ga_t ga, uint64_t size)
{
	acp_ga_t heap = acpx_query_heap_ga(s->rank);
	const char *near = acp_query_address(heap);

	return ga >= heap && (!near || (acp_query_address(ga) == near + (ga - heap) &&
					acp_query_address(ga + size - 1) ==
					near + (ga - heap) + size - 1));
}

/* Fetch an element with the lock held, which extends the lease if necessary. */
static int fetch_element(struct libacp_staging *d, struct libacp_slot *s, acp_ga_t elem)
{
	struct libacp_fetch fetch = { .ga = elem - 8, .size = LIBACP_TABLE_PEEK };
	int error, tries;

	if (!in_heap(s, fetch.ga, fetch.size))
		return -EUCLEAN;
	for (tries = 0; tries < TRIES; tries++) {
		error = libacp_txlock_fetch(&s->txlock, &fetch);
		if (error != -EIO)
			break;
	}
	if (error)
		return error;
	memcpy(d->m->peek, fetch.bytes, sizeof(d->m->peek));
	return d->m->peek[LIBACP_MARK] == s->mark ? 0 : -EUCLEAN;
}

int libacp_slot_step(struct libacp_staging *d, struct libacp_slot *s, acp_ga_t elem,
		     struct libacp_steps *steps)
{
	int error = count_step(steps, elem);

	if (error)
		return error;
	if (!plausible(s, elem))
		return -EUCLEAN;
	if (s->locked)
		return fetch_element(d, s, elem);
	add_element(d, elem);
	error = libacp_slot_unchanged(d, s);
	if (error)
		return error;
	return d->m->peek[LIBACP_MARK] == s->mark ? 0 : -EAGAIN;
}

int libacp_slot_peek(struct libacp_staging *d, const struct libacp_slot *s, acp_ga_t elem)
{
	int error;

	if (!plausible(s, elem))
		return -ESTALE;
	add_element(d, elem);
	error = libacp_staging_wait(d);
	if (error)
		return error;
	return d->m->peek[LIBACP_MARK] == s->mark ? 0 : -ESTALE;
}

/*
 * Compare the rest of the key of the element in d->m->peek. Returns 1 if it is equal to that of the
 * image, 0 or -errno.
 */
static int match_rest(struct libacp_staging *d, struct libacp_slot *s, acp_ga_t elem,
		      uint64_t read)
{
	uint64_t at = libacp_table_key_at(d->table) + read;
	int error;

	libacp_staging_copy(d, LIBACP_STAGING_GA(d, image) + d->room, elem - 8 + at,
			    d->key_size - read);
	error = libacp_slot_unchanged(d, s);
	if (error)
		return error;
	return !memcmp(libacp_staging_key(d) + read, (char *)d->m->image + d->room,
		       d->key_size - read);
}

/*
 * Compare the key of the element in d->m->peek with that of the image. Returns 1 if they are equal,
 * 0 or -errno.
 */
static int match(struct libacp_staging *d, struct libacp_slot *s, acp_ga_t elem)
{
	uint64_t at = libacp_table_key_at(d->table), read = LIBACP_TABLE_PEEK - at;

	if (d->m->peek[libacp_table_size_word(d->table)] != d->key_size)
		return 0;
	if (read > d->key_size)
		read = d->key_size;
	if (memcmp(libacp_staging_key(d), (char *)d->m->peek + at, read))
		return 0;
	return read == d->key_size ? 1 : match_rest(d, s, elem, read);
}

/* Search for the key of the image from @elem on until another element: *found, with d->m->peek. */
static int search(struct libacp_staging *d, struct libacp_slot *s, acp_ga_t elem,
		  acp_ga_t until, acp_ga_t *found)
{
	struct libacp_steps steps = { 0 };
	int error;

	*found = ACP_GA_NULL;
	while (elem != until && elem != ACP_GA_NULL) {
		error = libacp_slot_step(d, s, elem, &steps);
		if (!error)
			error = match(d, s, elem);
		if (error > 0)
			*found = elem;
		if (error)
			return error < 0 ? error : 0;
		elem = d->m->peek[LIBACP_NEXT];
	}
	return 0;
}

/* ---- Locking ---- */

/* Take the lock, and read the slot and optionally an element in the same round trip. */
static int take(struct libacp_staging *d, struct libacp_slot *s, acp_ga_t elem)
{
	const acp_ga_t heap = acpx_query_heap_ga(s->rank);
	struct libacp_fetch reads[3] = {
		{ .ga = s->ga, .size = SLOT_BYTES },
		{ .ga = s->stripe + STRIPE_REMOVALS, .size = 8 },
		{ .ga = elem - 8, .size = LIBACP_TABLE_PEEK },
	};
	unsigned int count = elem == ACP_GA_NULL ? 2 : 3;
	int error = 0, tries;

	if (!in_heap(s, s->ga, SLOT_BYTES) || !in_heap(s, s->stripe, STRIPE_BYTES))
		return -EINVAL;
	if (elem != ACP_GA_NULL && !in_heap(s, elem - 8, LIBACP_TABLE_PEEK))
		return -EUCLEAN;
	for (tries = 0; tries < TRIES; tries++) {
		error = libacp_txlock_enter(&s->txlock, s->stripe, heap,
					    s->stripe - heap + STRIPE_BYTES, reads, count);
		if (error != -EIO)
			break;
	}
	if (error)
		return error;
	s->locked = true;
	memcpy(&d->m->lock, reads[0].bytes, SLOT_BYTES);
	memcpy(&d->m->removals, reads[1].bytes, 8);
	if (elem != ACP_GA_NULL)
		memcpy(d->m->peek, reads[2].bytes, LIBACP_TABLE_PEEK);
	return 0;
}

/* ---- Search ---- */

static int look_once(struct libacp_staging *d, struct libacp_slot *s, struct libacp_seen *seen)
{
	int error = libacp_slot_read(d, s);

	if (error)
		return error;
	seen->removals = d->m->removals;
	seen->first = d->m->first;
	return search(d, s, seen->first, ACP_GA_NULL, &seen->elem);
}

static int look_locked(struct libacp_staging *d, struct libacp_slot *s, struct libacp_seen *seen)
{
	int error = take(d, s, ACP_GA_NULL);

	if (error)
		return error;
	seen->removals = d->m->removals;
	seen->first = d->m->first;
	error = search(d, s, seen->first, ACP_GA_NULL, &seen->elem);
	libacp_slot_unlock(s);
	return error;
}

int libacp_slot_look(struct libacp_staging *d, struct libacp_slot *s, struct libacp_seen *seen)
{
	uint64_t since = 0;
	int error, looks;

	for (looks = 0; looks < LOOKS; looks++) {
		error = look_once(d, s, seen);
		if (error != -EAGAIN)
			return error;
	}
	do {
		error = look_locked(d, s, seen);
	} while (libacp_table_again(&since, error));
	return libacp_table_told(error);
}

int libacp_slot_take(struct libacp_staging *d, struct libacp_slot *s)
{
	return take(d, s, ACP_GA_NULL);
}

/*
 * With the lock: check whether the result of the search is still valid, and search new elements
 * before it.
 */
static int look_again(struct libacp_staging *d, struct libacp_slot *s, struct libacp_seen *seen)
{
	acp_ga_t until = ACP_GA_NULL;

	if (d->m->removals == seen->removals) {
		if (seen->elem != ACP_GA_NULL)
			return d->m->peek[LIBACP_MARK] == s->mark ? 0 : -EUCLEAN;
		until = seen->first;
	}
	return search(d, s, d->m->first, until, &seen->elem);
}

int libacp_slot_lock(struct libacp_staging *d, struct libacp_slot *s, struct libacp_seen *seen)
{
	int error = take(d, s, seen->elem);

	if (error)
		return error;
	error = look_again(d, s, seen);
	if (error)
		libacp_slot_unlock(s);
	return error;
}

/* ---- Changes ---- */

void libacp_slot_unlock(struct libacp_slot *s)
{
	s->locked = false;
	libacp_txlock_drop(&s->txlock);
}

/* Execute the staged stores and release the lock. */
static int leave(struct libacp_slot *s)
{
	s->locked = false;
	return libacp_txlock_leave(&s->txlock);
}

acp_handle_t libacp_slot_prepare(struct libacp_staging *d, const struct libacp_slot *s,
				 const struct libacp_seen *seen, acp_ga_t elem)
{
	d->m->image[LIBACP_MARK] = s->mark;
	d->m->image[LIBACP_NEXT] = seen->first;
	d->m->image[LIBACP_PREVIOUS] = ACP_GA_NULL;
	return acp_copy(elem - 8, LIBACP_STAGING_GA(d, image), d->image_size, ACP_HANDLE_NULL);
}

int libacp_slot_complete(struct libacp_staging *d, struct libacp_slot *s, acp_ga_t elem,
			 bool written)
{
	int error;

	if (written && d->m->image[LIBACP_NEXT] == d->m->first)
		return 0;
	d->m->image[LIBACP_NEXT] = d->m->first;
	libacp_staging_copy(d, elem - 8, LIBACP_STAGING_GA(d, image), written ? 16 : d->image_size);
	error = libacp_staging_wait(d);
	if (error)
		libacp_slot_unlock(s);
	return error;
}

/*
 * Store all words of the slot, even those that do not change, because adjacent words are one
 * access.
 */
static void store_slot(struct libacp_slot *s, acp_ga_t first, acp_ga_t last, uint64_t number)
{
	libacp_txlock_store(&s->txlock, s->ga + SLOT_FIRST, first);
	libacp_txlock_store(&s->txlock, s->ga + SLOT_LAST, last);
	libacp_txlock_store(&s->txlock, s->ga + SLOT_NUMBER, number);
}

int libacp_slot_link(struct libacp_staging *d, struct libacp_slot *s, acp_ga_t elem)
{
	const struct libacp_staging_memory *m = d->m;
	const bool alone = m->first == ACP_GA_NULL;

	store_slot(s, elem, alone ? elem : m->last, m->number + 1);
	if (!alone)
		libacp_txlock_store(&s->txlock, m->first + 8, elem);
	return leave(s);
}

int libacp_slot_unlink(struct libacp_staging *d, struct libacp_slot *s, acp_ga_t elem)
{
	const struct libacp_staging_memory *m = d->m;
	acp_ga_t next = m->peek[LIBACP_NEXT], previous = m->peek[LIBACP_PREVIOUS];

	if ((previous == ACP_GA_NULL) != (m->first == elem)) {
		libacp_slot_unlock(s);
		return -EUCLEAN;
	}
	if (previous == ACP_GA_NULL) {
		store_slot(s, next, next == ACP_GA_NULL ? previous : m->last, m->number - 1);
	} else {
		libacp_txlock_store(&s->txlock, previous, next);
		if (next == ACP_GA_NULL)
			libacp_txlock_store(&s->txlock, s->ga + SLOT_LAST, previous);
		libacp_txlock_store(&s->txlock, s->ga + SLOT_NUMBER, m->number - 1);
	}
	if (next != ACP_GA_NULL)
		libacp_txlock_store(&s->txlock, next + 8, previous);
	libacp_txlock_store(&s->txlock, s->stripe + STRIPE_REMOVALS, m->removals + 1);
	libacp_txlock_store(&s->txlock, elem - 8, 0);
	return leave(s);
}

int libacp_slot_count(struct libacp_slot *s, acp_ga_t elem, uint64_t count)
{
	libacp_txlock_store(&s->txlock, elem + 16, count);
	return leave(s);
}

int libacp_slot_replace(struct libacp_staging *d, struct libacp_slot *s, const uint64_t chain[3])
{
	store_slot(s, chain[0], chain[1], chain[2]);
	libacp_txlock_store(&s->txlock, s->stripe + STRIPE_REMOVALS, d->m->removals + 1);
	return leave(s);
}
