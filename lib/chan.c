// SPDX-License-Identifier: MIT
/* Channels: the public functions, and the requests.  See chan.h. */
#include <errno.h>
#include <stdlib.h>

#include "chan.h"
#include "middle.h"

#define FAILED		((size_t)-1)
#define LOOKS		16u		/* at one request, between looks at all others */

static struct chreqitem *requests;	/* guarded by the lock */

/* ---- Requests ---- */

static void forget_request(struct chreqitem *r)
{
	*r->link = r->later;
	if (r->later)
		r->later->link = r->link;
	free(r);
}

void libacp_request_done(struct chitem *ch, size_t result)
{
	struct chreqitem *r = ch->first;

	ch->first = r->next;
	if (ch->next == r)
		ch->next = r->next;
	if (ch->fresh == r)
		ch->fresh = r->next;
	if (!ch->first)
		ch->last = &ch->first;
	if (r->key != ACP_ATKEY_NULL)
		acp_unregister_memory(r->key);
	r->key = ACP_ATKEY_NULL;
	if (r->kind == LIBACP_FREE)
		ch->freed = true;
	r->size = result;
	r->ch = NULL;
	r->next = NULL;
	__atomic_store_n(&r->done, true, __ATOMIC_RELEASE);
}

void libacp_request_fail(struct chitem *ch)
{
	while (ch->first)
		libacp_request_done(ch, FAILED);
}

static struct chreqitem *new_request(struct chitem *ch, enum libacp_request_kind kind, void *buffer,
				     size_t size)
{
	struct chreqitem *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ch = ch;
	r->kind = kind;
	r->buffer = buffer;
	r->size = size;
	r->later = requests;
	r->link = &requests;
	if (requests)
		requests->link = &r->later;
	requests = r;
	*ch->last = r;
	ch->last = &r->next;
	if (!ch->next)
		ch->next = r;
	return r;
}

static acp_request_t request(struct chitem *ch, enum libacp_request_kind kind, void *buffer,
			     size_t size)
{
	struct chreqitem *r = NULL;

	if (!ch || acp_rank() < 0 || (size && !buffer) || size == FAILED) {
		errno = EINVAL;
		return NULL;
	}
	libacp_meet_lock();
	if (ch->closing || (kind != LIBACP_FREE && ch->end.sending != (kind == LIBACP_SEND)))
		errno = EINVAL;
	else
		r = new_request(ch, kind, buffer, size);
	if (r) {
		ch->closing = kind == LIBACP_FREE;
		libacp_end_progress(&ch->end);
	}
	libacp_meet_unlock();
	return r;
}

/* ---- Ends ---- */

static bool wanted(const struct libacp_end *end)
{
	return ((const struct chitem *)end)->first;
}

/*
 * A sender that has sent all closes the channel; a receiver that wants no more
 * tells the sender that it waits in vain.
 */
static void leave(struct libacp_end *end)
{
	struct chitem *ch = libacp_chan_of(end);

	if (ch->closing || end->state != LIBACP_END_MET)
		return;
	if (!end->sending)
		libacp_receiver_leave(ch);
	else if (new_request(ch, LIBACP_FREE, NULL, 0))
		ch->closing = true;
	libacp_end_wake(end);
}

static void release(struct libacp_end *end)
{
	struct chitem *ch = libacp_chan_of(end);

	libacp_request_fail(ch);
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
	libacp_meet_lock();
	if (ch)
		error = libacp_end_open(&ch->end, me == sender ? receiver : sender);
	libacp_meet_progress();
	libacp_meet_unlock();
	if (!error)
		return ch;
	if (ch)
		release(&ch->end);
	errno = -error;
	return NULL;
}

/* ---- Asking for something ---- */

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

static bool is_done(const struct chreqitem *r)
{
	return __atomic_load_n(&r->done, __ATOMIC_ACQUIRE);
}

/* The request's own channel at each look, all the others at some. */
static bool look(struct chreqitem *r, unsigned int number)
{
	if (is_done(r))
		return true;
	libacp_meet_lock();
	if (!r->done)
		libacp_end_progress(&r->ch->end);
	if (!r->done && number % LOOKS == 0)
		libacp_meet_progress();
	libacp_meet_unlock();
	return is_done(r);
}

size_t acp_wait_ch(acp_request_t request)
{
	struct libacp_patience patience = { 0 };
	unsigned int looks = 0;
	size_t result;

	if (!request || acp_rank() < 0)
		return FAILED;
	while (!look(request, patience.sleep ? 0 : ++looks))
		libacp_meet_wait(&patience);
	libacp_meet_lock();
	result = request->size;
	forget_request(request);
	libacp_meet_unlock();
	return result;
}

int acp_waitall_ch(acp_request_t *request, int count, size_t *sizes)
{
	int i, result = 0;

	if (count < 0 || (count && !request))
		return -1;
	for (i = 0; i < count; i++) {
		size_t size = acp_wait_ch(request[i]);

		if (size == FAILED)
			result = -1;
		if (sizes)
			sizes[i] = size;
	}
	return result;
}

int acp_send_ch(acp_ch_t ch, void *buf, size_t size)
{
	return acp_wait_ch(acp_nbsend_ch(ch, buf, size)) == FAILED ? -1 : 0;
}

int acp_recv_ch(acp_ch_t ch, void *buf, size_t size)
{
	return acp_wait_ch(acp_nbrecv_ch(ch, buf, size)) == FAILED ? -1 : 0;
}

int acp_free_ch(acp_ch_t ch)
{
	return acp_wait_ch(acp_nbfree_ch(ch)) == FAILED ? -1 : 0;
}

void libacp_chan_close(void)
{
	libacp_meet_forget();
	libacp_meet_lock();
	while (requests)
		forget_request(requests);
	libacp_meet_unlock();
}
