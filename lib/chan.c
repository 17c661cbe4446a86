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

	ch->done++;
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

/* What a request waits for. */
struct awaited {
	acp_handle_t access;		/* if that is one of ours, or NULL */
	bool long_one;
};

/* What the first request of an end waits for: an access? */
static acp_handle_t awaited_access(const struct chitem *ch)
{
	const struct chreqitem *r = ch->first;

	if (r == ch->next || ch->end.state != LIBACP_END_MET ||
	    (ch->end.sending && r->way != LIBACP_BY_FRAME))
		return ACP_HANDLE_NULL;
	return r->access[1] == (acp_handle_t)ACP_HANDLE_NULL ? r->access[0] : r->access[1];
}

/*
 * Where several were done since the last wait, more of them will be if the
 * others may run for a while; and a loan's return takes long.
 */
static bool is_long(struct chitem *ch)
{
	bool several = ch->done > ch->done_before + 1;

	ch->done_before = ch->done;
	return several || (ch->end.sending && ch->first != ch->next &&
			   ch->first->way == LIBACP_BY_LOAN);
}

/*
 * The request's own channel at each look, all the others at some.  True if it
 * is done, with its result, and forgotten; else what it waits for.
 */
static bool look(struct chreqitem *r, unsigned int number, size_t *result, struct awaited *what)
{
	bool done;

	libacp_meet_lock();
	if (r->ch)
		libacp_end_progress(&r->ch->end);
	if (r->ch && number % LOOKS == 0)
		libacp_meet_progress();
	done = !r->ch;
	if (done) {
		*result = r->size;
		forget_request(r);
	} else {
		what->access = awaited_access(r->ch);
		what->long_one = number == 1 ? is_long(r->ch) : what->long_one;
	}
	libacp_meet_unlock();
	return done;
}

size_t acp_wait_ch(acp_request_t request)
{
	struct libacp_patience patience = { 0 };
	struct awaited what = { ACP_HANDLE_NULL, false };
	unsigned int looks = 0;
	size_t result;

	if (!request || acp_rank() < 0)
		return FAILED;
	while (!look(request, patience.sleep ? 0 : ++looks, &result, &what))
		libacp_meet_wait(&patience, what.access, what.long_one);
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
