// SPDX-License-Identifier: MIT
/* One slot of a table: its chain, read without lock and changed with it. */
#include <errno.h>
#include <string.h>

#include "middle.h"
#include "table.h"

#define LOOKS		8	/* without lock, before who looks takes it */
#define TRIES		16	/* to enter, when accesses of others failed */

/* Bytes of a slot. */
#define SLOT_FIRST	8u
#define SLOT_LAST	16u
#define SLOT_NUMBER	24u
#define SLOT_BYTES	32u

/*
 * Slots share locks, by number: one in four has its own, and no member more
 * than STRIPES.  Behind the slots, for each: a section, and how often a slot of it lost an element.
 */
#define STRIPES		64u
#define STRIPE_REMOVALS	LIBACP_SECTION_BYTES(LIBACP_SLOT_STORES)
#define STRIPE_BYTES	(STRIPE_REMOVALS + 8u)

/* ---- Places ---- */

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

void libacp_slot_at(const struct libacp_desk *d, struct libacp_slot *s, acp_ga_t slots,
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
 * Where the slots of members were when last looked for.  The table may be
 * gone since then, and another one in its place: so what is remembered is only
 * a guess, read from while the directory is asked again.
 */
static struct guess {
	uint64_t entry, slots;		/* GA of the directory's word, and what it said */
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

int libacp_slot_open(struct libacp_desk *d, struct libacp_slot *s, uint64_t member,
		     uint64_t number)
{
	const acp_ga_t entry = d->table->ga + 8 * member;
	int error;

	libacp_desk_copy(d, LIBACP_DESK_GA(d, slots_ga), entry, 8);
	error = libacp_desk_wait(d);
	if (error)
		return error;
	if (d->m->slots_ga % 8 || acp_query_rank(d->m->slots_ga) < 0)
		return -EINVAL;
	libacp_slot_at(d, s, d->m->slots_ga, member, number);
	remember_slots(entry, d->m->slots_ga);
	return 0;
}

int libacp_slot_guess(struct libacp_desk *d, struct libacp_slot *s, uint64_t member,
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
 * The slot was read, or not (error), where it was guessed to be: -EAGAIN if that was wrong.
 * Not if it was right: who is out of reach is not waited for twice.
 */
static int check_guess(struct libacp_desk *d, struct libacp_slot *s, int error)
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

static void add_element(struct libacp_desk *d, acp_ga_t elem)
{
	libacp_desk_copy(d, LIBACP_DESK_GA(d, peek), elem - 8, LIBACP_TABLE_PEEK);
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

int libacp_slot_read(struct libacp_desk *d, struct libacp_slot *s)
{
	libacp_desk_copy(d, LIBACP_DESK_GA(d, removals), s->stripe + STRIPE_REMOVALS, 8);
	libacp_desk_copy(d, LIBACP_DESK_GA(d, lock), s->ga, SLOT_BYTES);
	if (s->guess != ACP_GA_NULL)
		libacp_desk_aside(d, LIBACP_DESK_GA(d, slots_ga), d->table->ga + 8 * s->member, 8);
	return check_guess(d, s, libacp_desk_wait(d));
}

int libacp_slot_unchanged(struct libacp_desk *d, struct libacp_slot *s)
{
	int error;

	libacp_desk_copy(d, LIBACP_DESK_GA(d, again), s->stripe + STRIPE_REMOVALS, 8);
	error = libacp_desk_wait(d);
	if (error)
		return error;
	return d->m->again == d->m->removals ? 0 : -EAGAIN;
}

/*
 * Are these bytes of the member's heap?  Only there may a section be, and what
 * is fetched in it: where the heap can be reached, no access checks that.
 */
static bool in_heap(const struct libacp_slot *s, acp_ga_t ga, uint64_t size)
{
	acp_ga_t heap = acpx_query_heap_ga(s->rank);
	const char *near = acp_query_address(heap);

	return ga >= heap && (!near || (acp_query_address(ga) == near + (ga - heap) &&
					acp_query_address(ga + size - 1) ==
					near + (ga - heap) + size - 1));
}

/* Whoever has the lock keeps it so long: its lease begins anew where that is due. */
static int fetch_element(struct libacp_desk *d, struct libacp_slot *s, acp_ga_t elem)
{
	struct libacp_fetch fetch = { .ga = elem - 8, .size = LIBACP_TABLE_PEEK };
	int error, tries;

	if (!in_heap(s, fetch.ga, fetch.size))
		return -EUCLEAN;
	for (tries = 0; tries < TRIES; tries++) {
		error = libacp_section_fetch(&s->section, &fetch);
		if (error != -EIO)
			break;
	}
	if (error)
		return error;
	memcpy(d->m->peek, fetch.bytes, sizeof(d->m->peek));
	return d->m->peek[LIBACP_MARK] == s->mark ? 0 : -EUCLEAN;
}

int libacp_slot_step(struct libacp_desk *d, struct libacp_slot *s, acp_ga_t elem,
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

int libacp_slot_peek(struct libacp_desk *d, const struct libacp_slot *s, acp_ga_t elem)
{
	int error;

	if (!plausible(s, elem))
		return -ESTALE;
	add_element(d, elem);
	error = libacp_desk_wait(d);
	if (error)
		return error;
	return d->m->peek[LIBACP_MARK] == s->mark ? 0 : -ESTALE;
}

/* The key of the element in d->m->peek behind what was read of it: 1 if the image's is the same. */
static int match_rest(struct libacp_desk *d, struct libacp_slot *s, acp_ga_t elem,
		      uint64_t read)
{
	uint64_t at = libacp_table_key_at(d->table) + read;
	int error;

	libacp_desk_copy(d, LIBACP_DESK_GA(d, image) + d->room, elem - 8 + at, d->key_size - read);
	error = libacp_slot_unchanged(d, s);
	if (error)
		return error;
	return !memcmp(libacp_desk_key(d) + read, (char *)d->m->image + d->room,
		       d->key_size - read);
}

/* 1: the element in d->m->peek has the image's key, 0: it has not, or -errno. */
static int match(struct libacp_desk *d, struct libacp_slot *s, acp_ga_t elem)
{
	uint64_t at = libacp_table_key_at(d->table), read = LIBACP_TABLE_PEEK - at;

	if (d->m->peek[libacp_table_size_word(d->table)] != d->key_size)
		return 0;
	if (read > d->key_size)
		read = d->key_size;
	if (memcmp(libacp_desk_key(d), (char *)d->m->peek + at, read))
		return 0;
	return read == d->key_size ? 1 : match_rest(d, s, elem, read);
}

/* Look for the image's key from one element on until another: *found, with d->m->peek. */
static int search(struct libacp_desk *d, struct libacp_slot *s, acp_ga_t elem,
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

/* ---- The lock ---- */

/* Take the lock; read the slot and, if there is one, an element in the same trip. */
static int take(struct libacp_desk *d, struct libacp_slot *s, acp_ga_t elem)
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
		error = libacp_section_enter(&s->section, s->stripe, heap,
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

/* ---- With and without it ---- */

static int look_once(struct libacp_desk *d, struct libacp_slot *s, struct libacp_seen *seen)
{
	int error = libacp_slot_read(d, s);

	if (error)
		return error;
	seen->removals = d->m->removals;
	seen->first = d->m->first;
	return search(d, s, seen->first, ACP_GA_NULL, &seen->elem);
}

static int look_locked(struct libacp_desk *d, struct libacp_slot *s, struct libacp_seen *seen)
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

int libacp_slot_look(struct libacp_desk *d, struct libacp_slot *s, struct libacp_seen *seen)
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

int libacp_slot_take(struct libacp_desk *d, struct libacp_slot *s)
{
	return take(d, s, ACP_GA_NULL);
}

/* With the lock: is what was seen still so, and what came in front of it? */
static int look_again(struct libacp_desk *d, struct libacp_slot *s, struct libacp_seen *seen)
{
	acp_ga_t until = ACP_GA_NULL;

	if (d->m->removals == seen->removals) {
		if (seen->elem != ACP_GA_NULL)
			return d->m->peek[LIBACP_MARK] == s->mark ? 0 : -EUCLEAN;
		until = seen->first;
	}
	return search(d, s, d->m->first, until, &seen->elem);
}

int libacp_slot_lock(struct libacp_desk *d, struct libacp_slot *s, struct libacp_seen *seen)
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
	libacp_section_drop(&s->section);
}

/* Do what is staged, and release the lock. */
static int leave(struct libacp_slot *s)
{
	s->locked = false;
	return libacp_section_leave(&s->section);
}

acp_handle_t libacp_slot_prepare(struct libacp_desk *d, const struct libacp_slot *s,
				 const struct libacp_seen *seen, acp_ga_t elem)
{
	d->m->image[LIBACP_MARK] = s->mark;
	d->m->image[LIBACP_NEXT] = seen->first;
	d->m->image[LIBACP_PREVIOUS] = ACP_GA_NULL;
	return acp_copy(elem - 8, LIBACP_DESK_GA(d, image), d->image_size, ACP_HANDLE_NULL);
}

int libacp_slot_complete(struct libacp_desk *d, struct libacp_slot *s, acp_ga_t elem, bool written)
{
	int error;

	if (written && d->m->image[LIBACP_NEXT] == d->m->first)
		return 0;
	d->m->image[LIBACP_NEXT] = d->m->first;
	libacp_desk_copy(d, elem - 8, LIBACP_DESK_GA(d, image), written ? 16 : d->image_size);
	error = libacp_desk_wait(d);
	if (error)
		libacp_slot_unlock(s);
	return error;
}

/* All words of the slot, whether or not they change: side by side they go as one access. */
static void store_slot(struct libacp_slot *s, acp_ga_t first, acp_ga_t last, uint64_t number)
{
	libacp_section_store(&s->section, s->ga + SLOT_FIRST, first);
	libacp_section_store(&s->section, s->ga + SLOT_LAST, last);
	libacp_section_store(&s->section, s->ga + SLOT_NUMBER, number);
}

int libacp_slot_link(struct libacp_desk *d, struct libacp_slot *s, acp_ga_t elem)
{
	const struct libacp_desk_memory *m = d->m;
	const bool alone = m->first == ACP_GA_NULL;

	store_slot(s, elem, alone ? elem : m->last, m->number + 1);
	if (!alone)
		libacp_section_store(&s->section, m->first + 8, elem);
	return leave(s);
}

int libacp_slot_unlink(struct libacp_desk *d, struct libacp_slot *s, acp_ga_t elem)
{
	const struct libacp_desk_memory *m = d->m;
	acp_ga_t next = m->peek[LIBACP_NEXT], previous = m->peek[LIBACP_PREVIOUS];

	if ((previous == ACP_GA_NULL) != (m->first == elem)) {
		libacp_slot_unlock(s);
		return -EUCLEAN;
	}
	if (previous == ACP_GA_NULL) {
		store_slot(s, next, next == ACP_GA_NULL ? previous : m->last, m->number - 1);
	} else {
		libacp_section_store(&s->section, previous, next);
		if (next == ACP_GA_NULL)
			libacp_section_store(&s->section, s->ga + SLOT_LAST, previous);
		libacp_section_store(&s->section, s->ga + SLOT_NUMBER, m->number - 1);
	}
	if (next != ACP_GA_NULL)
		libacp_section_store(&s->section, next + 8, previous);
	libacp_section_store(&s->section, s->stripe + STRIPE_REMOVALS, m->removals + 1);
	libacp_section_store(&s->section, elem - 8, 0);
	return leave(s);
}

int libacp_slot_count(struct libacp_slot *s, acp_ga_t elem, uint64_t count)
{
	libacp_section_store(&s->section, elem + 16, count);
	return leave(s);
}

int libacp_slot_replace(struct libacp_desk *d, struct libacp_slot *s, const uint64_t chain[3])
{
	store_slot(s, chain[0], chain[1], chain[2]);
	libacp_section_store(&s->section, s->stripe + STRIPE_REMOVALS, d->m->removals + 1);
	return leave(s);
}
