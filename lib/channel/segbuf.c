// SPDX-License-Identifier: MIT
/*
 * Segmented buffers: a ring of segments in memory of the application, mirrored from the source to
 * the destination.
 *
 * Segments are counted from 0 and never reset. The source puts segment n, and after it (by a chain,
 * see internal.h) n + 1 to its mark, which the destination polls. Marks need no order among each
 * other. The destination counts the segments that it returned in the block of the source. An end
 * that disconnects tells the other one after all its accesses have arrived.
 *
 *	written by	what			where
 *	source		segments, marks		buffer and block of the destination
 *	destination	answer, head		block of the source
 *	both		gone			block of the other
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "channel/rendezvous.h"
#include "core/internal.h"

/* The blocks of both ends. */
struct source {
	struct libacp_offer offer;	/* data: segsize, segnum */
	uint64_t head, gone;
	uint64_t marks[];		/* values to put into the marks of the destination */
};

struct sink {
	uint64_t state;			/* 0, or LIBACP_LOST */
	uint64_t gone;
	uint64_t answer[2];		/* address of this block, and of the buffer */
	uint64_t marks[];
};

/* The accesses that mirror a segment. */
struct mirroring {
	acp_handle_t data, mark;
};

struct segbufitem {
	struct libacp_end end;
	char *buf;
	size_t segsize, segnum;
	acp_atkey_t key;		/* of buf */
	acp_ga_t buf_ga, there;		/* own and other buffer; there: source only */
	uint64_t head, tail, sent;	/* number of segments, as far as this end knows */
	struct mirroring *mirroring;	/* source: per segment */
	acp_handle_t *returns;		/* destination: the add that returns each segment */
	uint64_t returned;		/* ... number of those that have arrived */
	acp_handle_t told;		/* the answer, or the message that this end is gone */
	bool answered, disconnected, said_gone, freed;
};

static struct source *source(struct segbufitem *s)
{
	return s->end.block.memory;
}

static struct sink *sink(struct segbufitem *s)
{
	return s->end.block.memory;
}

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* ---- The source ---- */

static void put_mark(struct segbufitem *s, size_t i, acp_handle_t order)
{
	s->mirroring[i].mark = acp_copy(s->end.there + offsetof(struct sink, marks) +
						i * sizeof(uint64_t),
					s->end.block.ga + offsetof(struct source, marks) +
						i * sizeof(uint64_t),
					sizeof(uint64_t), order);
}

static void put_segment(struct segbufitem *s)
{
	size_t i = s->tail % s->segnum;
	struct mirroring *m = &s->mirroring[i];

	source(s)->marks[i] = ++s->tail;
	m->mark = ACP_HANDLE_NULL;
	libacp_chain();
	m->data = acp_copy(s->there + i * s->segsize, s->buf_ga + i * s->segsize, s->segsize,
			   ACP_HANDLE_NULL);
	if (m->data != (acp_handle_t)ACP_HANDLE_NULL)
		put_mark(s, i, m->data);
}

/*
 * Check whether the first segment in flight has arrived. A mark waits for all accesses issued
 * before it, and is refused or fails if any of them fails, possibly one that does not belong to
 * this end. In this case it is put again.
 */
static bool arrived(struct segbufitem *s)
{
	size_t i = s->sent % s->segnum;
	struct mirroring *m = &s->mirroring[i];
	int status;

	if (acpx_status(m->mark) == ACPX_EPENDING || libacp_end_ended(&s->end, m->data) != 1)
		return false;
	status = acpx_status(m->mark);
	if (m->mark == (acp_handle_t)ACP_HANDLE_NULL || status == ACPX_EORDER ||
	    status == ACPX_EUNKNOWN) {
		put_mark(s, i, ACP_HANDLE_NULL);
		return false;
	}
	return libacp_end_ended(&s->end, m->mark) == 1;
}

static void follow_source(struct segbufitem *s)
{
	while (s->sent < s->tail && s->end.state == LIBACP_END_CONNECTED && arrived(s))
		s->sent++;
	s->head = load(&source(s)->head);
}

static bool has_room(struct segbufitem *s)
{
	return s->tail - s->head < s->segnum && s->tail - s->sent < s->segnum;
}

/* ---- The destination ---- */

static void answer(struct segbufitem *s)
{
	bool fits = s->end.offer.data[0] == s->segsize && s->end.offer.data[1] == s->segnum;

	sink(s)->answer[0] = fits ? s->end.block.ga : LIBACP_REFUSED;
	sink(s)->answer[1] = fits ? s->buf_ga : LIBACP_REFUSED;
	s->told = acp_copy(s->end.there + offsetof(struct source, offer.answer),
			   s->end.block.ga + offsetof(struct sink, answer),
			   sizeof(sink(s)->answer), ACP_HANDLE_NULL);
	s->answered = true;
	s->end.exposed = fits;
	if (!fits)
		libacp_end_lose(&s->end);
}

/* Check whether the answer has arrived. If it failed for lack of memory, repeat it. */
static void follow_answer(struct segbufitem *s)
{
	if (acpx_status(s->told) == ACPX_ENOMEM)
		s->answered = false;
	else if (libacp_end_ended(&s->end, s->told) == 1)
		s->told = ACP_HANDLE_NULL;
}

static bool has_returned(struct segbufitem *s)
{
	return libacp_end_ended(&s->end, s->returns[s->returned % s->segnum]) == 1;
}

/* If a return is lost, the source would miss it forever: the end is lost. */
static void follow_returns(struct segbufitem *s)
{
	while (s->returned < s->head && s->end.state == LIBACP_END_CONNECTED && has_returned(s))
		s->returned++;
}

static void give_back(struct segbufitem *s)
{
	acp_handle_t *handle = &s->returns[s->head % s->segnum];

	follow_returns(s);
	/*
	 * The source may continue before this end learns that its return has arrived: wait briefly.
	 */
	if (s->head - s->returned == s->segnum)
		libacp_finish(*handle);
	follow_returns(s);
	*handle = libacp_end_add(&s->end, offsetof(struct source, head), 1);
	s->head++;
}

static void follow_destination(struct segbufitem *s)
{
	if (s->answered && !s->said_gone && s->told != (acp_handle_t)ACP_HANDLE_NULL)
		follow_answer(s);
	follow_returns(s);
	while (s->tail - s->head < s->segnum &&
	       load(&sink(s)->marks[s->tail % s->segnum]) == s->tail + 1)
		s->tail++;
}

/* ---- Both ends ---- */

static bool is_connected(const struct segbufitem *s)
{
	return s->end.state == LIBACP_END_CONNECTED && (s->end.sending || s->answered);
}

static uint64_t peer_gone(struct segbufitem *s)
{
	return load(s->end.sending ? &source(s)->gone : &sink(s)->gone);
}

/* All accesses of this end have arrived: tell the other end, and access it no more. */
static void say_gone(struct segbufitem *s)
{
	if (s->end.sending ? s->sent < s->tail : s->returned < s->head)
		return;
	if (s->told != (acp_handle_t)ACP_HANDLE_NULL)
		return;		/* the answer is in flight */
	s->told = libacp_end_add(&s->end, s->end.sending ? offsetof(struct sink, gone)
							 : offsetof(struct source, gone), 1);
	s->said_gone = true;
}

static enum libacp_progress progress(struct libacp_end *end)
{
	struct segbufitem *s = (struct segbufitem *)end;
	bool alone = end->state == LIBACP_END_OPEN;

	libacp_end_connect(end);
	if (end->sending && alone && end->state == LIBACP_END_CONNECTED)
		s->there = end->offer.answer[1];
	if (!end->sending && end->state == LIBACP_END_CONNECTED && !s->answered)
		answer(s);
	if (end->sending)
		follow_source(s);
	else
		follow_destination(s);
	if (end->state == LIBACP_END_LOST && acpx_status(s->told) == ACPX_EPENDING)
		return LIBACP_BUSY;	/* an answer is still being read from the block */
	if (end->state == LIBACP_END_LOST)
		return s->freed ? libacp_end_linger(end) : LIBACP_IDLE;
	if (end->state == LIBACP_END_CONNECTED && s->disconnected && !s->said_gone)
		say_gone(s);
	if (s->freed)
		return LIBACP_GONE;
	return LIBACP_BUSY;
}

/* True if both ends have disconnected and no access of ours is in flight. */
static bool is_over(struct segbufitem *s)
{
	return s->said_gone && peer_gone(s) && libacp_end_ended(&s->end, s->told) == 1;
}

static bool wanted(const struct libacp_end *end)
{
	const struct segbufitem *s = (const struct segbufitem *)end;

	return end->state == LIBACP_END_CONNECTED && s->disconnected && !s->said_gone;
}

static void leave(struct libacp_end *end)
{
	((struct segbufitem *)end)->disconnected = true;
	libacp_end_wake(end);
}

static void release(struct libacp_end *end)
{
	struct segbufitem *s = (struct segbufitem *)end;

	if (s->key != ACP_ATKEY_NULL)
		acp_unregister_memory(s->key);
	libacp_block_put(&end->block);
	free(s->mirroring);
	free(s->returns);
	free(s);
}

/* ---- Creating ---- */

static size_t block_size(bool sending, size_t segnum)
{
	return (sending ? sizeof(struct source) : sizeof(struct sink)) + segnum * sizeof(uint64_t);
}

/*
 * The region is not shared with other registrations of the memory, which may permit more. After it
 * is unregistered, no rank writes there any more.
 */
static int set_up(struct segbufitem *s)
{
	s->key = acpx_register_memory(s->buf, s->segsize * s->segnum, 0,
				      s->end.sending ? 0 : ACPX_ACCESS_WRITE);
	if (s->key == ACP_ATKEY_NULL)
		return -ENOMEM;
	s->buf_ga = acp_query_ga(s->key, s->buf);
	if (s->end.sending)
		s->mirroring = calloc(s->segnum, sizeof(*s->mirroring));
	else
		s->returns = calloc(s->segnum, sizeof(*s->returns));
	if (!s->mirroring && !s->returns)
		return -ENOMEM;
	if (libacp_block_get(&s->end.block, block_size(s->end.sending, s->segnum)) < 0)
		return -ENOMEM;
	if (s->end.sending) {
		source(s)->offer.data[0] = s->segsize;
		source(s)->offer.data[1] = s->segnum;
	}
	return 0;
}

static acp_segbuf_t create(bool sending, int partner, void *buf, size_t segsize, size_t segnum)
{
	struct segbufitem *s;
	int error;

	if (acp_rank() < 0 || partner < 0 || partner >= acp_procs() || partner == acp_rank() ||
	    !buf || !segsize || !segnum || segnum > SIZE_MAX / 64 || segsize > SIZE_MAX / segnum) {
		errno = EINVAL;
		return NULL;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->buf = buf;
	s->segsize = segsize;
	s->segnum = segnum;
	s->end.kind = LIBACP_SEGBUF;
	s->end.sending = sending;
	s->end.progress = progress;
	s->end.wanted = wanted;
	s->end.leave = leave;
	s->end.release = release;
	error = set_up(s);
	libacp_rendezvous_lock();
	if (!error)
		error = libacp_end_open(&s->end, partner);
	libacp_rendezvous_progress();
	libacp_rendezvous_unlock();
	if (!error)
		return s;
	release(&s->end);
	errno = -error;
	return NULL;
}

acp_segbuf_t acp_create_src_segbuf(int dst_rank, void *buf, size_t segsize, size_t segnum)
{
	return create(true, dst_rank, buf, segsize, segnum);
}

acp_segbuf_t acp_create_dst_segbuf(int src_rank, void *buf, size_t segsize, size_t segnum)
{
	return create(false, src_rank, buf, segsize, segnum);
}

/* ---- Connecting ---- */

/* Make progress on this end. On success the lock is held until libacp_rendezvous_unlock(). */
static bool begin(struct segbufitem *s)
{
	if (!s || acp_rank() < 0)
		return false;
	libacp_rendezvous_lock();
	libacp_end_progress(&s->end);
	return true;
}

static int connection(struct segbufitem *s)
{
	if (s->end.state == LIBACP_END_LOST || s->disconnected)
		return -1;
	return is_connected(s) ? 0 : 1;
}

int acp_isconnected_segbuf(acp_segbuf_t segbuf)
{
	int result;

	if (!begin(segbuf))
		return -1;
	libacp_rendezvous_progress();
	result = connection(segbuf);
	libacp_rendezvous_unlock();
	return result;
}

int acp_connect_segbuf(acp_segbuf_t segbuf)
{
	struct libacp_patience patience = { 0 };
	int result;

	while ((result = acp_isconnected_segbuf(segbuf)) == 1)
		libacp_rendezvous_wait(&patience, ACP_HANDLE_NULL, false);
	return result ? 1 : 0;
}

/* ---- Use ---- */

/* True if connected, and if the other end may still send or receive. */
static bool is_usable(struct segbufitem *s)
{
	uint64_t gone = peer_gone(s);

	if (connection(s))
		return false;
	if (s->end.sending)
		return !gone;
	follow_destination(s);		/* if the source is gone, nothing more arrives */
	return !gone || s->head < s->tail;
}

int acp_ack_segbuf(acp_segbuf_t segbuf)
{
	int result = -1;

	if (!begin(segbuf))
		return -1;
	if (segbuf->end.sending && is_usable(segbuf) && has_room(segbuf)) {
		put_segment(segbuf);
		result = 0;
	}
	libacp_rendezvous_unlock();
	return result;
}

int acp_ready_segbuf(acp_segbuf_t segbuf)
{
	int result = -1;

	if (!begin(segbuf))
		return -1;
	if (!segbuf->end.sending && is_usable(segbuf) && segbuf->head < segbuf->tail) {
		give_back(segbuf);
		result = 0;
	}
	libacp_rendezvous_unlock();
	return result;
}

/* Query an end. Returns 0: yes, 1: no, or -1. */
static int ask(struct segbufitem *s, bool sending, bool (*question)(struct segbufitem *s))
{
	int result;

	if (!begin(s))
		return -1;
	libacp_rendezvous_progress();
	result = s->end.sending == sending && is_usable(s) ? !question(s) : -1;
	libacp_rendezvous_unlock();
	return result;
}

static bool has_segment(struct segbufitem *s)
{
	return s->head < s->tail;
}

int acp_isready_segbuf(acp_segbuf_t segbuf)
{
	return ask(segbuf, true, has_room);
}

int acp_isacked_segbuf(acp_segbuf_t segbuf)
{
	return ask(segbuf, false, has_segment);
}

static int64_t query(struct segbufitem *s, const uint64_t *number)
{
	int64_t result;

	if (!begin(s))
		return -1;
	result = connection(s) == 0 ? (int64_t)*number : -1;
	libacp_rendezvous_unlock();
	return result;
}

int64_t acp_query_segbuf_head(acp_segbuf_t segbuf)
{
	return segbuf ? query(segbuf, &segbuf->head) : -1;
}

int64_t acp_query_segbuf_tail(acp_segbuf_t segbuf)
{
	return segbuf ? query(segbuf, &segbuf->tail) : -1;
}

int64_t acp_query_segbuf_sent(acp_segbuf_t segbuf)
{
	return segbuf && segbuf->end.sending ? query(segbuf, &segbuf->sent) : -1;
}

/* ---- Leaving ---- */

int acp_disconnect_segbuf(acp_segbuf_t segbuf)
{
	int result;

	if (!begin(segbuf))
		return -1;
	result = segbuf->disconnected || segbuf->end.state == LIBACP_END_LOST ? -1 : 0;
	segbuf->disconnected = true;
	libacp_end_progress(&segbuf->end);
	libacp_rendezvous_unlock();
	return result;
}

/* Return the ring to the application, which may reuse it. */
static void let_go(struct segbufitem *s)
{
	acp_unregister_memory(s->key);
	s->key = ACP_ATKEY_NULL;
	s->freed = true;
	libacp_end_wake(&s->end);
	libacp_rendezvous_progress();
}

int acp_free_segbuf(acp_segbuf_t segbuf)
{
	struct libacp_patience patience = { 0 };
	struct segbufitem *s = segbuf;
	int result = 1;

	if (!s || !s->disconnected)
		return -1;
	while (result == 1) {
		if (!begin(s))
			return -1;
		libacp_rendezvous_progress();
		if (is_over(s))
			result = 0;
		else if (s->end.state == LIBACP_END_LOST)
			result = -1;
		if (result != 1)
			let_go(s);
		libacp_rendezvous_unlock();
		if (result == 1)
			libacp_rendezvous_wait(&patience, ACP_HANDLE_NULL, false);
	}
	return result;
}
