// SPDX-License-Identifier: MIT
/*
 * Receives: posted to the match list, which the kernel matches with messages when they arrive;
 * fi_acp_messages_progress() finds those that have ended.
 */
#include <errno.h>
#include <string.h>

#include "message.h"

/* ---- Rings ---- */

static void ring_add(struct fi_acp_receive *ring, struct fi_acp_receive *r)
{
	r->next = ring;
	r->prev = ring->prev;
	ring->prev->next = r;
	ring->prev = r;
}

static void ring_del(struct fi_acp_receive *r)
{
	r->prev->next = r->next;
	r->next->prev = r->prev;
}

/* ---- Begin ---- */

/* Set rank, tag and bits to be ignored, as they are on the way. Returns 0 or -FI_E*. */
static int look_for(const struct fi_acp_messages *m, const struct fi_acp_want *w,
		    struct fi_acp_receive *r)
{
	const struct fi_acp_addr *peer = NULL;

	if (w->source != FI_ADDR_UNSPEC && (m->ep->caps & FI_DIRECTED_RECV)) {
		peer = fi_acp_peer(m->ep->av, w->source);
		if (!peer)
			return -FI_EINVAL;
	}
	r->rank = peer ? (int)peer->rank : ACPX_ANY_RANK;
	r->tagged = w->tagged;
	if (w->tagged) {
		r->ignore = (w->ignore & m->tag_mask) | (FI_ACP_TAG_MASK & ~m->tag_mask);
		r->tag = w->tag & ~r->ignore & m->tag_mask;
		if (peer)
			r->tag |= (uint64_t)peer->endpoint << FI_ACP_TAG_BITS & FI_ACP_TAGGED_ANY;
		else
			r->ignore |= FI_ACP_TAGGED_ANY;
		return 0;
	}
	r->ignore = FI_ACP_MSG_IGNORE;
	r->tag = FI_ACP_MSG;
	if (peer)
		r->tag |= (uint64_t)peer->endpoint << FI_ACP_MSG_EP_SHIFT;
	else
		r->ignore |= FI_ACP_MSG_ANY;
	return 0;
}

int fi_acp_receive_get(struct fi_acp_messages *m, const struct fi_acp_want *w,
		       struct fi_acp_receive **receive)
{
	const bool multi = !w->tagged && (w->flags & FI_MULTI_RECV);
	struct fi_acp_receive *r = m->unused;
	size_t i;
	int error;

	if (w->count > FI_ACP_IOV || (multi && w->count != 1))
		return -FI_EINVAL;
	if (w->tagged && (w->tag & ~w->ignore & ~m->tag_mask))
		return -FI_EINVAL;
	if (!r)
		return -FI_EAGAIN;
	m->unused = r->next;
	*r = (struct fi_acp_receive){
		.context = w->context, .count = w->count, .landing.slot = -1,
		.multi = multi,
	};
	for (i = 0; i < w->count; i++) {
		r->iov[i] = w->iov[i];
		r->room += w->iov[i].iov_len;
	}
	r->user_room = r->room;
	/* The program must learn when it gets its buffer back. */
	r->report = r->multi || fi_acp_reports(m->ep, false, w->flags);
	*receive = r;
	error = look_for(m, w, r);
	if (error)
		fi_acp_receive_put(m, r);
	return error;
}

static int error_of(int64_t error)
{
	switch (error) {
	case -ENOSPC:
		return -FI_EAGAIN;
	case -EINVAL:
		return -FI_EOPNOTSUPP;	/* bits of tags that the list cannot learn any more */
	default:
		return (int)error;
	}
}

int fi_acp_receive_post(struct fi_acp_messages *m, struct fi_acp_receive *r)
{
	int error = acpx_post(m->match, r->rank, r->tag, r->ignore, r->landing.ga, r->room,
			      &r->handle);

	if (error) {
		fi_acp_receive_put(m, r);
		return error_of(error);
	}
	r->posted = true;
	m->posted_count++;
	ring_add(&m->posted, r);
	return 0;
}

void fi_acp_receive_put(struct fi_acp_messages *m, struct fi_acp_receive *r)
{
	fi_acp_land_release(m, r);
	r->next = m->unused;
	m->unused = r;
}

static ssize_t post(struct fi_acp_messages *m, const struct fi_acp_want *w)
{
	struct fi_acp_receive *r;
	int error = fi_acp_receive_get(m, w, &r);

	if (error)
		return error;
	error = fi_acp_land(m, r, w->desc);
	if (!error)
		return fi_acp_receive_post(m, r);
	fi_acp_receive_put(m, r);
	return error;
}

ssize_t fi_acp_receive(struct fi_acp_ep *ep, const struct fi_acp_want *w)
{
	struct fi_acp_messages *m = ep->messages;
	ssize_t result;

	if (!m || !(ep->caps & (w->tagged ? FI_TAGGED : FI_MSG)))
		return -FI_EOPBADSTATE;
	if ((w->flags & FI_DISCARD) && !(w->flags & (FI_PEEK | FI_CLAIM)))
		return -FI_EINVAL;
	fi_acp_lock();
	if (w->flags & FI_PEEK)
		result = fi_acp_peek(m, w);
	else if (w->flags & FI_CLAIM)
		result = fi_acp_claim(m, w);
	else
		result = post(m, w);
	fi_acp_unlock();
	return result;
}

/* ---- End ---- */

void fi_acp_describe(const struct fi_acp_messages *m, const struct acpx_message *message,
		     struct fi_acp_entry *e)
{
	const uint64_t tag = message->tag;
	uint32_t endpoint;
	uint64_t data;

	e->e.len = message->size;
	if (tag & FI_ACP_MSG) {
		endpoint = (uint32_t)(tag >> FI_ACP_MSG_EP_SHIFT) & 63;
		e->e.flags = FI_MSG | FI_RECV;
		if (tag & FI_ACP_MSG_DATA) {
			e->e.flags |= FI_REMOTE_CQ_DATA;
			e->e.data = tag & UINT32_MAX;
		}
	} else {
		endpoint = (uint32_t)(tag >> FI_ACP_TAG_BITS) & 7;
		e->e.flags = FI_TAGGED | FI_RECV;
		e->e.tag = tag & m->tag_mask;
		data = tag & FI_ACP_TAG_MASK & ~m->tag_mask;
		if (data) {
			e->e.flags |= FI_REMOTE_CQ_DATA;
			e->e.data = (data >> FI_ACP_SHORT_BITS) - 1;
		}
	}
	e->source = fi_acp_source(m->ep->av, (uint32_t)message->rank, endpoint);
}

static void fail(struct fi_acp_receive *r, int error)
{
	r->failed = true;
	r->entry.error = error;
	r->entry.prov_errno = -error;	/* no status of ACP: see fi_cq_strerror() */
}

/* Copy the message to where the user wants it. */
static void settle(struct fi_acp_receive *r)
{
	struct fi_cq_tagged_entry *e = &r->entry.e;

	if (!r->failed && e->len > r->user_room) {
		fail(r, FI_ETRUNC);
		r->entry.olen = e->len - r->user_room;
		e->len = r->user_room;
	}
	e->op_context = r->context;
	e->buf = r->count ? r->iov[0].iov_base : NULL;
	fi_acp_land_copy(r, e->len);
}

void fi_acp_receive_end(struct fi_acp_messages *m, struct fi_acp_receive *r)
{
	ring_del(r);
	if (r->posted)
		m->posted_count--;
	r->posted = false;
	if (!r->claimed)
		settle(r);
	if (r->claimed || (!r->silent && (r->failed || r->report))) {
		ring_add(&m->ended, r);
		return;
	}
	if (!r->silent)
		fi_acp_cntr_count(m->ep->recv_cntr, false);
	fi_acp_receive_put(m, r);
}

void fi_acp_receive_fail(struct fi_acp_messages *m, struct fi_acp_receive *r, int error)
{
	r->entry = (struct fi_acp_entry){
		.e = {
			.flags = (r->tagged ? FI_TAGGED : FI_MSG) | FI_RECV,
			.tag = r->tagged ? r->tag & m->tag_mask : 0,
		},
		.source = FI_ADDR_NOTAVAIL,
	};
	fail(r, error);
	fi_acp_receive_end(m, r);
}

static void look(struct fi_acp_messages *m, struct fi_acp_receive *r)
{
	struct acpx_message message;
	int64_t size = acpx_receive_wait(r->handle, &message, 0);

	if (size == -ETIMEDOUT || size == -ECANCELED)
		return;
	if (size < 0) {
		fi_acp_receive_fail(m, r, size == -EBADMSG ? FI_EIO : (int)-size);
		return;
	}
	r->entry = (struct fi_acp_entry){ .source = FI_ADDR_NOTAVAIL };
	fi_acp_describe(m, &message, &r->entry);
	fi_acp_receive_end(m, r);
}

#define LOOKS	64u	/* receives that are looked at in one call */

/* If there are many, the next call looks at others: what a call costs is bounded. */
void fi_acp_receive_look(struct fi_acp_messages *m)
{
	const bool many = m->posted_count > LOOKS;
	unsigned int n = many ? LOOKS : m->posted_count;
	struct fi_acp_receive *r = m->posted.next, *next;

	for (; n--; r = next) {
		next = r->next;
		if (many) {
			ring_del(r);
			ring_add(&m->posted, r);
		}
		look(m, r);
	}
}

/* Go on with the rest of the buffer. False: it is used up, or that failed. */
static bool post_rest(struct fi_acp_messages *m, const struct fi_acp_receive *former)
{
	const size_t used = (former->entry.e.len + 7) / 8 * 8;
	struct fi_acp_receive *r = m->unused;

	if (!r || former->failed || former->room < used ||
	    former->room - used < m->ep->min_multi_recv)
		return false;
	m->unused = r->next;
	*r = *former;
	r->entry = (struct fi_acp_entry){ .source = FI_ADDR_NOTAVAIL };
	r->iov[0].iov_base = (char *)former->iov[0].iov_base + used;
	r->iov[0].iov_len -= used;
	r->room -= used;
	r->user_room = r->room;
	if (!fi_acp_land(m, r, NULL))
		return !fi_acp_receive_post(m, r);
	fi_acp_receive_put(m, r);
	return false;
}

void fi_acp_receive_report(struct fi_acp_messages *m)
{
	struct fi_acp_receive *r, *next;

	for (r = m->ended.next; r != &m->ended; r = next) {
		next = r->next;
		if (r->claimed)
			continue;
		if (!fi_acp_cq_reserve(m->ep->rx_cq))
			return;
		if (r->multi && !post_rest(m, r))
			r->entry.e.flags |= FI_MULTI_RECV;
		fi_acp_cq_write(m->ep->rx_cq, &r->entry);
		if (!r->silent)
			fi_acp_cntr_count(m->ep->recv_cntr, r->failed);
		ring_del(r);
		fi_acp_receive_put(m, r);
	}
}
