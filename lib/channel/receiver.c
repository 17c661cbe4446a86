// SPDX-License-Identifier: MIT
/* The receiving end of a channel: see chan.h. */
#include <errno.h>
#include <string.h>

#include "channel/chan.h"

#define SOURCE(member)	offsetof(struct libacp_chan_source, member)
#define SINK(member)	offsetof(struct libacp_chan_sink, member)
#define LAZY		(LIBACP_RING_WORDS / 4)	/* words to read before reporting to the sender */

static struct libacp_chan_sink *sink(struct chitem *ch)
{
	return ch->end.block.memory;
}

/* ---- Reports to the sender ---- */

static void tell(struct chitem *ch, size_t offset, uint64_t value)
{
	if (ch->given_up)
		return;
	ch->telling = libacp_end_add(&ch->end, offset, value);
}

static void tell_consumed(struct chitem *ch)
{
	if (ch->head == ch->credited)
		return;
	tell(ch, SOURCE(consumed), ch->head - ch->credited);
	ch->credited = ch->head;
}

/* Release the place of a frame. */
static void consume(struct chitem *ch, const struct libacp_frame *f)
{
	ch->head += f->words;
	if (ch->head - ch->credited >= LAZY)
		tell_consumed(ch);
}

/* ---- Connection ---- */

/*
 * Fetch the frames that the sender has already written, then answer. True when the answer is
 * issued.
 */
static bool answer(struct chitem *ch)
{
	uint64_t words = ch->end.offer.data[0];

	if (ch->answered)
		return true;
	if (words > LIBACP_RING_WORDS) {
		libacp_end_lose(&ch->end);
		return false;
	}
	if (words && ch->taking == (acp_handle_t)ACP_HANDLE_NULL)
		ch->taking = acp_copy(ch->end.block.ga + SINK(ring), ch->end.there + SOURCE(ring),
				      words * sizeof(uint64_t), ACP_HANDLE_NULL);
	if (words && libacp_end_ended(&ch->end, ch->taking) != 1)
		return false;
	ch->end.exposed = true;
	sink(ch)->answer[0] = ch->end.block.ga;
	sink(ch)->answer[1] = words + 1;
	ch->answering = acp_copy(ch->end.there + SOURCE(offer.answer),
				 ch->end.block.ga + SINK(answer), sizeof(sink(ch)->answer),
				 ACP_HANDLE_NULL);
	ch->answered = true;
	return true;
}

/* ---- Fetching lent buffers ---- */

static acp_handle_t fetch_part(struct chitem *ch, struct chreqitem *r)
{
	size_t n = r->size - r->moved < LIBACP_BOUNCE ? r->size - r->moved : LIBACP_BOUNCE;

	return acp_copy(ch->end.block.ga + SINK(bounce), r->from + r->moved, n, ACP_HANDLE_NULL);
}

static void fetch_all(struct chreqitem *r)
{
	r->access[0] = acp_copy(acp_query_ga(r->key, r->buffer), r->from, r->size,
				ACP_HANDLE_NULL);
}

static void fetch(struct chreqitem *r, const struct libacp_chan_loan *loan)
{
	if (r->size > loan->size)
		r->size = loan->size;
	r->from = loan->ga;
	r->way = LIBACP_BY_LOAN;
	if (!r->size)
		return;
	r->key = acp_register_memory(r->buffer, r->size, 0);
	if (r->key == ACP_ATKEY_NULL)
		r->way = LIBACP_BY_PARTS;	/* begins when it is the first request */
	else
		fetch_all(r);
}

/* The buffer cannot be registered: fetch through the bounce buffer. True when complete. */
static bool fetch_by_parts(struct chitem *ch, struct chreqitem *r)
{
	size_t n;

	for (;;) {
		if (r->access[0] == (acp_handle_t)ACP_HANDLE_NULL)
			r->access[0] = fetch_part(ch, r);
		if (libacp_end_ended(&ch->end, r->access[0]) != 1)
			return false;
		n = r->size - r->moved < LIBACP_BOUNCE ? r->size - r->moved : LIBACP_BOUNCE;
		memcpy(r->buffer + r->moved, sink(ch)->bounce, n);
		r->moved += n;
		r->access[0] = ACP_HANDLE_NULL;
		if (r->moved == r->size)
			return true;
	}
}

/* ---- Requests ---- */

static bool finished(struct chitem *ch, struct chreqitem *r)
{
	if (r->way == LIBACP_BY_FRAME || (!r->size && r->from))
		return true;
	if (r->way == LIBACP_BY_PARTS)
		return fetch_by_parts(ch, r);
	return libacp_end_ended(&ch->end, r->access[0]) == 1;
}

static void finish_requests(struct chitem *ch)
{
	struct chreqitem *r;
	bool lent;

	while ((r = ch->first) != ch->next && finished(ch, r)) {
		lent = r->from;
		libacp_request_done(ch, r->size);
		if (lent)
			tell(ch, SOURCE(returned), 1);
	}
}

/* The request needs nothing more from the ring. */
static void begun(struct chitem *ch)
{
	ch->next = ch->next->next;
}

/* ---- Frames ---- */

static void take_whole(struct chitem *ch, const struct libacp_frame *f)
{
	struct chreqitem *r = ch->next;

	if (r->kind == LIBACP_FREE)
		return;
	if (r->size > f->size)
		r->size = f->size;
	if (r->size)
		memcpy(r->buffer, f->payload, r->size);
	begun(ch);
}

static bool take_first(struct chitem *ch, const struct libacp_frame *f)
{
	uint64_t size = 0;

	if (f->size != sizeof(size) || ch->awaited)
		return false;
	memcpy(&size, f->payload, sizeof(size));
	if (!size)
		return false;
	ch->awaited = size;
	ch->arrived = 0;
	if (ch->next->kind == LIBACP_RECEIVE && ch->next->size > size)
		ch->next->size = size;
	return true;
}

static bool take_part(struct chitem *ch, const struct libacp_frame *f)
{
	struct chreqitem *r = ch->next;
	size_t room = 0;

	if (r->kind == LIBACP_RECEIVE && r->size > ch->arrived)
		room = r->size - ch->arrived;
	if (!f->size || f->size > ch->awaited - ch->arrived)
		return false;
	if (room > f->size)
		room = f->size;
	if (room)
		memcpy(r->buffer + ch->arrived, f->payload, room);
	ch->arrived += f->size;
	return true;
}

static bool take_loan(struct chitem *ch, const struct libacp_frame *f)
{
	struct libacp_chan_loan loan = { 0 };

	if (f->size != sizeof(loan))
		return false;
	memcpy(&loan, f->payload, sizeof(loan));
	if (!loan.size || acp_query_rank(loan.ga) != acp_query_rank(ch->end.there))
		return false;
	/*
	 * A sender that lost us has revoked the loan, and the address may belong to other memory by
	 * now.
	 */
	if (!libacp_end_is_there(&ch->end))
		return false;
	if (ch->next->kind == LIBACP_FREE) {
		tell(ch, SOURCE(returned), 1);
		return true;
	}
	fetch(ch->next, &loan);
	begun(ch);
	return true;
}

/* Process a frame. False if it is invalid. */
static bool take(struct chitem *ch, const struct libacp_frame *f)
{
	if (ch->awaited && f->kind != LIBACP_FRAME_PART && f->kind != LIBACP_FRAME_SKIP)
		return false;
	switch (f->kind) {
	case LIBACP_FRAME_SKIP:
		return true;
	case LIBACP_FRAME_WHOLE:
		take_whole(ch, f);
		return true;
	case LIBACP_FRAME_FIRST:
		return take_first(ch, f);
	case LIBACP_FRAME_PART:
		return take_part(ch, f);
	case LIBACP_FRAME_LOAN:
		return take_loan(ch, f);
	default:
		ch->closed = true;
		return true;
	}
}

/* After the last part, tell the sender at once, because it waits until the parts have been read. */
static void end_parts(struct chitem *ch)
{
	if (!ch->awaited || ch->arrived < ch->awaited)
		return;
	ch->awaited = 0;
	tell_consumed(ch);
	if (ch->next->kind == LIBACP_RECEIVE)
		begun(ch);
}

/*
 * Process one frame for the next request. A free request discards frames, but only after the
 * requests before it are done, because loans are returned in order.
 */
static bool take_frame(struct chitem *ch)
{
	struct libacp_frame f;

	if (ch->closed || !ch->next || (ch->next->kind == LIBACP_FREE && ch->next != ch->first))
		return false;
	if (!libacp_ring_look(sink(ch)->ring, ch->head, &f))
		return false;
	if (!take(ch, &f)) {
		libacp_end_lose(&ch->end);
		return false;
	}
	consume(ch, &f);
	end_parts(ch);
	return true;
}

/* ---- End of the channel ---- */

/* After CLOSE, fail the requests that still wait. */
static void end_requests(struct chitem *ch)
{
	if (!ch->closed || ch->first != ch->next)
		return;
	while (ch->first && ch->first->kind == LIBACP_RECEIVE)
		libacp_request_done(ch, (size_t)-1);
	if (!ch->first)
		return;
	tell_consumed(ch);
	libacp_request_done(ch, 0);
}

/*
 * When all accesses to the block of the sender have completed, tell the sender by the last one.
 * From then on the sender does not write to this block either, because all frames have arrived.
 */
static enum libacp_progress part(struct chitem *ch)
{
	struct libacp_end *end = &ch->end;

	if (libacp_end_ended(end, ch->answering) == 0 ||
	    (ch->telling && libacp_end_ended(end, ch->telling) == 0))
		return LIBACP_BUSY;
	if (end->state == LIBACP_END_LOST)
		return libacp_end_linger(end);
	tell(ch, SOURCE(ended), LIBACP_ENDED_WELL);
	return LIBACP_GONE;
}

void libacp_receiver_leave(struct chitem *ch)
{
	if (!ch->answered || ch->given_up)
		return;
	tell(ch, SOURCE(ended), LIBACP_ENDED_BADLY);
	ch->given_up = true;
}

static enum libacp_progress give_up(struct chitem *ch)
{
	libacp_receiver_leave(ch);
	if (!libacp_request_fail(ch))
		return LIBACP_BUSY;
	return ch->freed ? libacp_end_linger(&ch->end) : LIBACP_IDLE;
}

enum libacp_progress libacp_receiver_progress(struct libacp_end *end)
{
	struct chitem *ch = libacp_chan_of(end);

	libacp_end_connect(end);
	/* Frames that arrived before the sender was lost are received; after a failure none are. */
	if (!ch->given_up &&
	    (ch->answered || (end->state == LIBACP_END_CONNECTED && answer(ch)))) {
		do
			finish_requests(ch);
		while (take_frame(ch));
		end_requests(ch);
	}
	if (end->state == LIBACP_END_LOST)
		return give_up(ch);
	if (ch->freed)
		return part(ch);
	if (end->state == LIBACP_END_CONNECTED && !ch->answered)
		return LIBACP_BUSY;
	return ch->first ? LIBACP_BUSY : LIBACP_IDLE;
}
