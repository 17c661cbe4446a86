// SPDX-License-Identifier: MIT
/* The sending end of a channel: see chan.h. */
#include <errno.h>

#include "channel/chan.h"

#define WORDS		LIBACP_RING_WORDS
#define QUARTER		(WORDS / LIBACP_QUARTERS)

static struct libacp_chan_source *source(struct chitem *ch)
{
	return ch->end.block.memory;
}

/* ---- Writing frames ---- */

/*
 * True if there is room for @words. The receiver must have read what was there, and puts from there
 * must have completed before their source changes.
 */
static bool has_room(struct chitem *ch, uint32_t words)
{
	uint64_t consumed = __atomic_load_n(&source(ch)->consumed, __ATOMIC_ACQUIRE);
	uint64_t q;

	if (ch->tail + words - consumed > WORDS)
		return false;
	for (q = (ch->tail + QUARTER - 1) / QUARTER; q * QUARTER < ch->tail + words; q++)
		if (ch->quarters[q % LIBACP_QUARTERS] &&
		    !libacp_end_ended(&ch->end, ch->quarters[q % LIBACP_QUARTERS]))
			return false;
	return true;
}

static bool add_frame(struct chitem *ch, enum libacp_frame_kind kind, const void *payload,
		      uint32_t size)
{
	const uint32_t words = libacp_frame_words(size), skip = libacp_ring_skip(ch->tail, words);

	if (!has_room(ch, skip + words))
		return false;
	if (skip)
		ch->tail += libacp_ring_write_skip(source(ch)->ring, ch->tail);
	ch->tail += libacp_ring_write(source(ch)->ring, ch->tail, kind, payload, size);
	/* On connection, the receiver fetches this many words of the ring. */
	if (ch->end.state == LIBACP_END_OPEN)
		__atomic_store_n(&source(ch)->offer.data[0], ch->tail, __ATOMIC_RELEASE);
	return true;
}

/*
 * Register the buffer for reading, also if it is read-only memory. The region is not shared with
 * other registrations, which may permit more: after the loan is revoked, no rank reads there any
 * more.
 */
static bool lend(struct chreqitem *r)
{
	if (r->key == ACP_ATKEY_NULL)
		r->key = acpx_register_memory(r->buffer, r->size, 0, ACPX_ACCESS_READ);
	if (r->key == ACP_ATKEY_NULL)
		r->key = acpx_register_memory(r->buffer, r->size, 0,
					      ACPX_ACCESS_READ | ACPX_ACCESS_RO);
	return r->key != ACP_ATKEY_NULL;
}

static bool begin_loan(struct chitem *ch, struct chreqitem *r)
{
	struct libacp_chan_loan loan = { .size = r->size };

	if (ch->loans - __atomic_load_n(&source(ch)->returned, __ATOMIC_ACQUIRE) >= LIBACP_LOANS)
		return false;
	if (!lend(r)) {
		r->way = LIBACP_BY_PARTS;
		return false;
	}
	loan.ga = acp_query_ga(r->key, r->buffer);
	if (!add_frame(ch, LIBACP_FRAME_LOAN, &loan, sizeof(loan)))
		return false;
	r->way = LIBACP_BY_LOAN;
	r->loan = ++ch->loans;
	return true;
}

/* Write the next frames of a long message. True when all are written. */
static bool add_parts(struct chitem *ch, struct chreqitem *r)
{
	uint64_t size = r->size, n;

	if (!r->end) {
		if (!add_frame(ch, LIBACP_FRAME_FIRST, &size, sizeof(size)))
			return false;
		r->end = ch->tail;
	}
	for (; r->moved < r->size; r->moved += n) {
		n = r->size - r->moved < LIBACP_EAGER ? r->size - r->moved : LIBACP_EAGER;
		if (!add_frame(ch, LIBACP_FRAME_PART, r->buffer + r->moved, (uint32_t)n))
			return false;
	}
	return true;
}

/* Write the frames of a request as far as there is room. True when all are written. */
static bool begin(struct chitem *ch, struct chreqitem *r)
{
	if (r->kind == LIBACP_FREE)
		return add_frame(ch, LIBACP_FRAME_CLOSE, NULL, 0);
	if (r->size <= LIBACP_EAGER)
		return add_frame(ch, LIBACP_FRAME_WHOLE, r->buffer, (uint32_t)r->size);
	if (r->way != LIBACP_BY_PARTS && begin_loan(ch, r))
		return true;
	return r->way == LIBACP_BY_PARTS && add_parts(ch, r);
}

static void begin_requests(struct chitem *ch)
{
	struct chreqitem *r;

	while ((r = ch->next) && begin(ch, r)) {
		r->end = ch->tail;
		ch->next = r->next;
		if (!ch->fresh)
			ch->fresh = r;
	}
}

/* ---- Putting frames ---- */

static acp_handle_t put_words(struct chitem *ch, uint64_t from, uint64_t count)
{
	uint64_t offset = from % WORDS * sizeof(uint64_t), q;
	acp_handle_t handle = acp_copy(ch->end.there + offsetof(struct libacp_chan_sink, ring) +
					       offset,
				       ch->end.block.ga +
					       offsetof(struct libacp_chan_source, ring) + offset,
				       count * sizeof(uint64_t), ACP_HANDLE_NULL);

	for (q = from / QUARTER; q * QUARTER < from + count; q++)
		ch->quarters[q % LIBACP_QUARTERS] = handle;
	return handle;
}

/* Put all frames that were written: one access, or two at the end of the ring. */
static void put_frames(struct chitem *ch)
{
	uint64_t count = ch->tail - ch->put, row = WORDS - ch->put % WORDS;
	acp_handle_t access[2] = { ACP_HANDLE_NULL, ACP_HANDLE_NULL };

	if (!count)
		return;
	access[0] = put_words(ch, ch->put, count < row ? count : row);
	if (count > row)
		access[1] = put_words(ch, ch->put + row, count - row);
	if (access[0] == (acp_handle_t)ACP_HANDLE_NULL ||
	    (count > row && access[1] == (acp_handle_t)ACP_HANDLE_NULL))
		libacp_end_lose(&ch->end);
	ch->put = ch->tail;
	for (; ch->fresh && ch->fresh != ch->next; ch->fresh = ch->fresh->next) {
		ch->fresh->access[0] = access[0];
		ch->fresh->access[1] = access[1];
	}
	ch->fresh = NULL;
}

/* ---- Completion ---- */

/* True if the access has arrived. Often there is no second access. */
static bool arrived(struct chitem *ch, acp_handle_t access)
{
	return access == (acp_handle_t)ACP_HANDLE_NULL || libacp_end_ended(&ch->end, access) == 1;
}

static bool finished(struct chitem *ch, struct chreqitem *r)
{
	uint64_t consumed = __atomic_load_n(&source(ch)->consumed, __ATOMIC_ACQUIRE);

	if (r->way == LIBACP_BY_LOAN)
		return __atomic_load_n(&source(ch)->returned, __ATOMIC_ACQUIRE) >= r->loan;
	if (r->end <= ch->taken || r->end <= consumed)
		return true;
	if (r->way == LIBACP_BY_PARTS || r->end > ch->put)
		return false;
	return arrived(ch, r->access[0]) && arrived(ch, r->access[1]);
}

static void finish_requests(struct chitem *ch)
{
	while (ch->first != ch->next && finished(ch, ch->first))
		libacp_request_done(ch, 0);
}

static void connected(struct chitem *ch)
{
	ch->taken = ch->end.offer.answer[1] - 1;
	ch->put = ch->taken;
}

enum libacp_progress libacp_sender_progress(struct libacp_end *end)
{
	struct chitem *ch = libacp_chan_of(end);
	bool alone = end->state == LIBACP_END_OPEN;
	uint64_t ended;

	libacp_end_connect(end);
	if (alone && end->state == LIBACP_END_CONNECTED)
		connected(ch);
	begin_requests(ch);
	if (end->state == LIBACP_END_CONNECTED) {
		put_frames(ch);
		if (end->state == LIBACP_END_CONNECTED)
			finish_requests(ch);
	}
	ended = __atomic_load_n(&source(ch)->ended, __ATOMIC_ACQUIRE);
	if (ended >= LIBACP_ENDED_BADLY)
		libacp_end_lose(end);
	if (ch->freed && ended == LIBACP_ENDED_WELL)
		return LIBACP_GONE;
	if (end->state == LIBACP_END_LOST) {
		libacp_request_fail(ch);
		return ch->freed ? libacp_end_linger(end) : LIBACP_IDLE;
	}
	return ch->first || ch->freed || end->state == LIBACP_END_OPEN ? LIBACP_BUSY : LIBACP_IDLE;
}
