// SPDX-License-Identifier: MIT
/* The owner's side of the memory of a mailbox: see area.h. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "mailbox/area.h"

#define RECORD	LIBACP_AREA_RECORD
#define TRIES	64		/* to change "room" while senders do; the next call tries again */

_Static_assert(sizeof(struct acp_mailbox) == 64, "acp_cmd.h");
_Static_assert(sizeof(struct acp_record) == 24 && offsetof(struct acp_record, state) == 0,
	       "acp_cmd.h");

/* New values of "room". */
struct plan {
	uint64_t next, limit;
};

static uint64_t *unit(const struct libacp_area *a, uint64_t at)
{
	return (uint64_t *)(void *)(a->box + 1) + at;
}

static uint64_t *room_word(const struct libacp_area *a)
{
	return (uint64_t *)(void *)&a->box->room;
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- Offering room ---- */

/* Everything up to here in the lap of free_lap() is consumed and zero. */
static uint64_t free_end(const struct libacp_area *a)
{
	return a->lents.first ? a->lents.first->at : a->read;
}

static uint64_t free_lap(const struct libacp_area *a)
{
	return a->lents.first ? a->lents.first->lap : a->read_lap;
}

/* False if the area is broken: its head is not what the owner and senders have made it. */
static bool refresh(struct libacp_area *a, uint64_t *room)
{
	uint64_t next, limit;

	*room = __atomic_load_n(room_word(a), __ATOMIC_ACQUIRE);
	next = (uint32_t)*room;
	limit = *room >> 32;
	if (limit != a->limit || next > limit || next < a->next ||
	    __atomic_load_n(&a->box->units, __ATOMIC_RELAXED) != a->units)
		a->broken = true;
	else
		a->next = next;
	return !a->broken;
}

static bool plan_raise(const struct libacp_area *a, uint64_t limit, bool all, struct plan *p)
{
	*p = (struct plan){ a->next, limit };
	return limit - a->limit >= (all ? 1 : max(a->units / 8, 1));
}

/* True if there is room to be offered. @all: however little. */
static bool plan(const struct libacp_area *a, bool all, struct plan *p)
{
	const uint64_t least = all ? 1 : max(a->units / 4, 1), end = free_end(a);

	if (free_lap(a) != a->lap)
		return plan_raise(a, end, all, p);
	if (end < least)
		return plan_raise(a, a->units, all, p);
	if (end == a->next)		/* nothing is lent, and all has been read */
		*p = (struct plan){ 0, a->units };
	else if (end > a->units - a->next)
		*p = (struct plan){ 0, end };
	else
		return plan_raise(a, a->units, all, p);
	return true;
}

/* The reader has reached the end of the previous lap: it follows the senders. */
static void turn(struct libacp_area *a)
{
	if (a->read_lap == a->lap || a->read < a->end)
		return;
	a->read = 0;
	a->read_lap = a->lap;
}

/* "room" has been changed. */
static void adopt(struct libacp_area *a, const struct plan *p)
{
	const bool reset = free_lap(a) == a->lap && free_end(a) == a->next;

	if (p->next != a->next && reset) {
		a->read = 0;
		a->read_lap = ++a->lap;
	} else if (p->next != a->next) {
		a->end = a->next;
		a->lap++;
	}
	a->next = p->next;
	a->limit = p->limit;
	turn(a);
}

/* Show the lap, or that it may be about to end: "room" says so afterwards. */
static void show_lap(const struct libacp_area *a, bool ends)
{
	__atomic_store_n(libacp_lap_word(a->box), 2 * a->lap + ends, __ATOMIC_RELEASE);
}

static bool change_room(struct libacp_area *a, uint64_t room, const struct plan *p)
{
	const bool ends = p->next != a->next;
	bool changed;

	if (ends)
		show_lap(a, true);
	changed = __atomic_compare_exchange_n(room_word(a), &room,
					      ACP_MAILBOX_ROOM(p->next, p->limit), false,
					      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	if (changed)
		adopt(a, p);
	if (ends)
		show_lap(a, false);
	return changed;
}

/*
 * Offer room to senders. All of it is zero: before the limit of a raise are records of the previous
 * lap, all consumed, and then what that lap has left. What senders change at the same time can end
 * the reason for the plan.
 */
static void offer(struct libacp_area *a, bool all)
{
	struct plan p;
	uint64_t room;
	int i;

	if (a->closed || a->broken || (!all && !plan(a, false, &p)))
		return;
	for (i = 0; i < TRIES && refresh(a, &room) && plan(a, all, &p); i++)
		if (change_room(a, room, &p))
			return;
}

/* ---- Records ---- */

static uint64_t length_of(uint64_t state)
{
	return RECORD + (state >> 2) / 8 + ((state >> 2) % 8 != 0);
}

/* End of the memory in which the next record may be. */
static uint64_t records_end(const struct libacp_area *a)
{
	return a->read_lap == a->lap ? a->limit : a->end;
}

/* True if senders have reserved so much from the reader's position on. */
static bool is_reserved(struct libacp_area *a, uint64_t length)
{
	uint64_t room;

	if (a->read_lap != a->lap)
		return length <= a->end - a->read;
	if (length > a->next - a->read && !a->closed && !refresh(a, &room))
		return false;
	return length <= a->next - a->read;
}

static void zero(const struct libacp_area *a, uint64_t at, uint64_t length)
{
	memset(unit(a, at), 0, 8 * length);
}

static void advance(struct libacp_area *a, uint64_t length)
{
	a->read += length;
	turn(a);
}

void libacp_area_consume(struct libacp_area *a, const struct libacp_record *record)
{
	if (record->ring) {
		libacp_node_ring_consume(&a->ring, record);
		return;
	}
	zero(a, record->at, record->length);
	advance(a, record->length);
	offer(a, false);
}

/* Read the state of the next record, 0 if there is none. False if the area is broken. */
static bool look(struct libacp_area *a, uint64_t *state)
{
	*state = 0;
	if (a->read < records_end(a))
		*state = __atomic_load_n(unit(a, a->read), __ATOMIC_ACQUIRE);
	if (*state && !is_reserved(a, length_of(*state)))
		a->broken = true;
	return !a->broken;
}

/* The state was read with acquire, so the rest is there. */
static void describe(const struct libacp_area *a, uint64_t state, struct libacp_record *r)
{
	const volatile struct acp_record *seen = (struct acp_record *)(void *)unit(a, a->read);

	*r = (struct libacp_record){
		.at = a->read, .length = length_of(state), .size = state >> 2, .tag = seen->tag,
		.rank = seen->rank, .data = unit(a, a->read + RECORD),
	};
}

/* Find the next record that a kernel has written. */
static int find_record(struct libacp_area *a, bool all, struct libacp_record *record)
{
	uint64_t state;

	while (look(a, &state)) {
		if (!state || (state & 3) == ACP_RECORD_ARRIVING) {
			if (all)
				offer(a, true);
			return a->broken ? -EBADMSG : -EAGAIN;
		}
		describe(a, state, record);
		if (record->rank >= a->ranks)
			a->broken = true;
		else if ((state & 3) == ACP_RECORD_READY)
			return 0;
		else if ((state & 3) == ACP_RECORD_VOID)
			libacp_area_consume(a, record);
		else
			a->broken = true;
	}
	return -EBADMSG;
}

/* Must records of kernels be received before the message of the ring with this stamp? */
static bool is_later(struct libacp_area *a, uint64_t stamp)
{
	const uint32_t lap = stamp >> 32, next = (uint32_t)stamp;
	const int32_t laps = (int32_t)(lap - (uint32_t)a->read_lap);
	uint64_t room;

	if (laps < 0 || (!laps && next <= a->read))
		return false;
	/* They are there, unless the stamp is wrong. */
	if (lap != (uint32_t)a->lap)
		a->broken = a->broken || laps || next > a->end;
	else if (next > a->next && !a->closed && refresh(a, &room))
		a->broken = next > a->next;
	return true;
}

/*
 * The ring is read last: if a record is there, messages that its sender has written to the ring
 * before are found.
 */
int libacp_area_find(struct libacp_area *a, bool all, struct libacp_record *record)
{
	struct libacp_record written;
	int found = find_record(a, all, record), in_ring;
	uint64_t stamp;

	if (found == -EBADMSG)
		return found;
	in_ring = libacp_node_ring_find(&a->ring, a->ranks, &written, &stamp);
	if (in_ring == -EBADMSG)
		a->broken = true;
	if (!in_ring && !is_later(a, stamp)) {
		*record = written;
		found = 0;
	}
	return a->broken ? -EBADMSG : found;
}

const void *libacp_area_word(const struct libacp_area *a)
{
	return a->read < records_end(a) ? unit(a, a->read) : room_word(a);
}

void libacp_area_wait(const struct libacp_area *a, bool waits)
{
	libacp_node_ring_wait(&a->ring, waits);
}

/* ---- Lent records ---- */

static void add_lent(struct libacp_lents *lents, struct libacp_lent *lent)
{
	lent->prev = lents->last;
	if (lents->last)
		lents->last->next = lent;
	else
		lents->first = lent;
	lents->last = lent;
}

static void remove_lent(struct libacp_lents *lents, struct libacp_lent *lent)
{
	if (lent->prev)
		lent->prev->next = lent->next;
	else
		lents->first = lent->next;
	if (lent->next)
		lent->next->prev = lent->prev;
	else
		lents->last = lent->prev;
}

void libacp_area_lend(struct libacp_area *a, const struct libacp_record *record,
		      struct libacp_lent *lent)
{
	*lent = (struct libacp_lent){
		.at = record->at, .length = record->length, .lap = a->read_lap,
		.data = record->data, .ring = record->ring,
	};
	if (record->ring) {
		add_lent(&a->ring.lents, lent);
		libacp_node_ring_pass(&a->ring, record);
	} else {
		add_lent(&a->lents, lent);
		advance(a, record->length);
	}
}

bool libacp_area_is_lent(const struct libacp_area *a)
{
	return a->lents.first || a->ring.lents.first;
}

static struct libacp_lent *find_lent(const struct libacp_lents *lents, const void *data)
{
	struct libacp_lent *lent = lents->first;

	while (lent && (lent->taken || lent->data != data))
		lent = lent->next;
	return lent;
}

struct libacp_lent *libacp_area_reclaim(const struct libacp_area *a, const void *data)
{
	struct libacp_lent *lent = find_lent(&a->lents, data);

	if (!lent)
		lent = find_lent(&a->ring.lents, data);
	if (lent)
		lent->taken = true;
	return lent;
}

void libacp_area_clear(const struct libacp_area *a, const struct libacp_lent *lent)
{
	if (!lent->ring)
		zero(a, lent->at, lent->length);
}

void libacp_area_return(struct libacp_area *a, struct libacp_lent *lent, bool all)
{
	if (lent->ring) {
		remove_lent(&a->ring.lents, lent);
		libacp_node_ring_free(&a->ring);
	} else {
		remove_lent(&a->lents, lent);
		offer(a, all);
	}
}

/* ---- Begin and end ---- */

void libacp_area_open(struct libacp_area *a, void *memory, uint64_t units, uint32_t ranks)
{
	*a = (struct libacp_area){
		.box = memory, .ranks = ranks, .units = units, .limit = units,
	};
	memset(memory, 0, sizeof(*a->box) + 8 * units);
	a->box->units = (uint32_t)units;
	__atomic_store_n(room_word(a), ACP_MAILBOX_ROOM(0, units), __ATOMIC_RELEASE);
}

void libacp_area_add_ring(struct libacp_area *a, uint64_t offset, unsigned int bits)
{
	libacp_node_ring_open(&a->ring, a->box, offset, bits);
}

static void close_records(struct libacp_area *a)
{
	const uint64_t room = __atomic_exchange_n(room_word(a), 0, __ATOMIC_ACQ_REL);
	const uint64_t next = (uint32_t)room;

	a->closed = true;
	if (room >> 32 != a->limit || next > a->limit || next < a->next)
		a->broken = true;
	else
		a->next = next;
}

bool libacp_area_close(struct libacp_area *a, bool (*gone)(uint32_t rank))
{
	if (!a->closed)
		close_records(a);
	return libacp_node_ring_close(&a->ring, gone);
}

bool libacp_area_drained(const struct libacp_area *a)
{
	return a->closed && !a->broken && a->read_lap == a->lap && a->read == a->next &&
	       libacp_node_ring_drained(&a->ring);
}
