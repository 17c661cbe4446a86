// SPDX-License-Identifier: MIT
/* Channels: the public functions. See chan.h. */
#include <errno.h>
#include <stdlib.h>

#include "channel/chan.h"
#include "core/internal.h"

#define LOOKS		16u		/* polls of one request between polls of all others */

static acp_request_t request(struct chitem *ch, enum libacp_request_kind kind, void *buffer,
			     size_t size)
{
	struct chreqitem *r = NULL;

	if (!ch || acp_rank() < 0 || (size && !buffer) || size == LIBACP_FAILED) {
		errno = EINVAL;
		return NULL;
	}
	libacp_rendezvous_lock();
	if (ch->closing || (kind != LIBACP_FREE && ch->end.sending != (kind == LIBACP_SEND)))
		errno = EINVAL;
	else
		r = libacp_request_new(ch, kind, buffer, size);
	if (r) {
		ch->closing = kind == LIBACP_FREE;
		libacp_end_progress(&ch->end);
	}
	libacp_rendezvous_unlock();
	return r;
}

/* ---- Ends ---- */

static bool wanted(const struct libacp_end *end)
{
	return ((const struct chitem *)end)->first;
}

/*
 * Close the channel of a sender that has sent everything. A receiver without further requests tells
 * the sender that it will not receive any more.
 */
static void leave(struct libacp_end *end)
{
	struct chitem *ch = libacp_chan_of(end);

	if (ch->closing || end->state != LIBACP_END_CONNECTED)
		return;
	if (!end->sending)
		libacp_receiver_leave(ch);
	else if (libacp_request_new(ch, LIBACP_FREE, NULL, 0))
		ch->closing = true;
	libacp_end_wake(end);
}

static void release(struct libacp_end *end)
{
	struct chitem *ch = libacp_chan_of(end);

	while (ch->first)
		libacp_request_done(ch, LIBACP_FAILED);
	libacp_block_put(&end->block);
	free(ch);
}

static struct chitem *new_end(bool sending)
{
	size_t size = sending ? sizeof(struct libacp_chan_source) : sizeof(struct libacp_chan_sink);
	struct chitem *ch = calloc(1, sizeof(*ch));

	if (!ch || libacp_block_get(&ch->end.block, size) < 0) {
		free(ch);
		return NULL;
	}
	ch->last = &ch->first;
	ch->end.kind = LIBACP_CHANNEL;
	ch->end.sending = sending;
	ch->end.progress = sending ? libacp_sender_progress : libacp_receiver_progress;
	ch->end.wanted = wanted;
	ch->end.leave = leave;
	ch->end.release = release;
	return ch;
}

acp_ch_t acp_create_ch(int sender, int receiver)
{
	int me = acp_rank(), procs = acp_procs(), error = -ENOMEM;
	struct chitem *ch;

	if (me < 0 || sender < 0 || sender >= procs || receiver < 0 || receiver >= procs ||
	    sender == receiver || (me != sender && me != receiver)) {
		errno = EINVAL;
		return NULL;
	}
	ch = new_end(me == sender);
	libacp_rendezvous_lock();
	if (ch)
		error = libacp_end_open(&ch->end, me == sender ? receiver : sender);
	libacp_rendezvous_progress();
	libacp_rendezvous_unlock();
	if (!error)
		return ch;
	if (ch)
		release(&ch->end);
	errno = -error;
	return NULL;
}

/* ---- Requests ---- */

acp_request_t acp_nbsend_ch(acp_ch_t ch, void *buf, size_t size)
{
	return request(ch, LIBACP_SEND, buf, size);
}

acp_request_t acp_nbrecv_ch(acp_ch_t ch, void *buf, size_t size)
{
	return request(ch, LIBACP_RECEIVE, buf, size);
}

acp_request_t acp_nbfree_ch(acp_ch_t ch)
{
	return request(ch, LIBACP_FREE, NULL, 0);
}

/* ---- Waiting ---- */

/* What a request waits for. */
struct awaited {
	acp_handle_t access;		/* an access of this process, or ACP_HANDLE_NULL */
	bool long_one;
};

/* Return the access of this process that the first request of an end waits for, if any. */
static acp_handle_t awaited_access(const struct chitem *ch)
{
	const struct chreqitem *r = ch->first;

	if (r == ch->next || ch->end.state == LIBACP_END_OPEN ||
	    (ch->end.sending && r->way != LIBACP_BY_FRAME))
		return ACP_HANDLE_NULL;
	return r->access[1] == (acp_handle_t)ACP_HANDLE_NULL ? r->access[0] : r->access[1];
}

/*
 * True if the wait is expected to take long: several requests were completed since the last wait,
 * so more of them will be completed if other processes run for a while; or the receiver must fetch
 * a lent buffer.
 */
static bool is_long(struct chitem *ch)
{
	bool several = ch->done > ch->done_before + 1;

	ch->done_before = ch->done;
	return several || (ch->end.sending && ch->first != ch->next &&
			   ch->first->way == LIBACP_BY_LOAN);
}

/*
 * Poll the channel of the request, and every LOOKS polls all others. True if the request is done:
 * *result is its result, and it is freed. Otherwise *what tells what it waits for.
 */
static bool look(struct chreqitem *r, unsigned int number, size_t *result, struct awaited *what)
{
	bool done;

	libacp_rendezvous_lock();
	if (r->ch)
		libacp_end_progress(&r->ch->end);
	if (r->ch && number % LOOKS == 0)
		libacp_rendezvous_progress();
	done = !r->ch;
	if (done) {
		*result = r->size;
		libacp_request_forget(r);
	} else {
		what->access = awaited_access(r->ch);
		what->long_one = number == 1 ? is_long(r->ch) : what->long_one;
	}
	libacp_rendezvous_unlock();
	return done;
}

size_t acp_wait_ch(acp_request_t request)
{
	struct libacp_patience patience = { 0 };
	struct awaited what = { ACP_HANDLE_NULL, false };
	unsigned int looks = 0;
	size_t result;

	if (!request || acp_rank() < 0)
		return LIBACP_FAILED;
	while (!look(request, patience.sleep ? 0 : ++looks, &result, &what))
		libacp_rendezvous_wait(&patience, what.access, what.long_one);
	return result;
}

int acp_waitall_ch(acp_request_t *request, int count, size_t *sizes)
{
	int i, result = 0;

	if (count < 0 || (count && !request))
		return -1;
	for (i = 0; i < count; i++) {
		size_t size = acp_wait_ch(request[i]);

		if (size == LIBACP_FAILED)
			result = -1;
		if (sizes)
			sizes[i] = size;
	}
	return result;
}

int acp_send_ch(acp_ch_t ch, void *buf, size_t size)
{
	return acp_wait_ch(acp_nbsend_ch(ch, buf, size)) == LIBACP_FAILED ? -1 : 0;
}

int acp_recv_ch(acp_ch_t ch, void *buf, size_t size)
{
	return acp_wait_ch(acp_nbrecv_ch(ch, buf, size)) == LIBACP_FAILED ? -1 : 0;
}

int acp_free_ch(acp_ch_t ch)
{
	return acp_wait_ch(acp_nbfree_ch(ch)) == LIBACP_FAILED ? -1 : 0;
}

void libacp_chan_close(void)
{
	libacp_rendezvous_forget();
	libacp_rendezvous_lock();
	libacp_request_forget_all();
	libacp_rendezvous_unlock();
}
