// SPDX-License-Identifier: MIT
/*
 * FI_PEEK, FI_CLAIM and FI_DISCARD. A message that is claimed is received at once, into memory of
 * the provider: a receive with its rank and its very tag gets it, since no other one has.
 */
#include <errno.h>

#include "message.h"

static void report_none(struct fi_acp_messages *m, const struct fi_acp_want *w)
{
	const struct fi_acp_entry e = {
		.e = {
			.op_context = w->context, .tag = w->tag,
			.flags = (w->tagged ? FI_TAGGED : FI_MSG) | FI_RECV,
		},
		.source = FI_ADDR_NOTAVAIL, .error = FI_ENOMSG, .prov_errno = -FI_ENOMSG,
	};

	fi_acp_cq_write(m->ep->rx_cq, &e);
}

/* Receive the message that was found: to be claimed, or to be forgotten. Returns 0 or -FI_E*. */
static int grab(struct fi_acp_messages *m, const struct fi_acp_want *w,
		const struct acpx_message *message)
{
	const bool claim = !(w->flags & FI_DISCARD);
	const struct iovec iov = { .iov_len = claim ? message->size : 0 };
	struct fi_acp_want exact = *w;
	struct fi_acp_receive *r;
	int error;

	exact.iov = &iov;
	exact.count = 1;
	error = fi_acp_receive_get(m, &exact, &r);
	if (error)
		return error;
	r->rank = message->rank;
	r->tag = message->tag;
	r->ignore = 0;
	r->claimed = claim;
	r->silent = !claim;
	r->report = claim;
	r->user_room = SIZE_MAX;
	error = fi_acp_land(m, r, NULL);
	if (!error)
		return fi_acp_receive_post(m, r);
	fi_acp_receive_put(m, r);
	return error;
}

/* A place of the CQ was taken; it is used if this returns 0. */
static int peek(struct fi_acp_messages *m, const struct fi_acp_want *w)
{
	struct fi_acp_entry e = { .source = FI_ADDR_NOTAVAIL };
	struct acpx_message message;
	struct fi_acp_receive *r;
	int error = fi_acp_receive_get(m, w, &r);

	if (error)
		return error;
	error = acpx_match_probe(m->match, r->rank, r->tag, r->ignore, &message, 0);
	fi_acp_receive_put(m, r);
	if (error == -ETIMEDOUT) {
		report_none(m, w);
		return 0;
	}
	if (!error && w->flags & (FI_CLAIM | FI_DISCARD))
		error = grab(m, w, &message);
	if (error)
		return error;
	fi_acp_describe(m, &message, &e);
	e.e.op_context = w->context;
	fi_acp_cq_write(m->ep->rx_cq, &e);
	return 0;
}

ssize_t fi_acp_peek(struct fi_acp_messages *m, const struct fi_acp_want *w)
{
	int error;

	if (!fi_acp_cq_reserve(m->ep->rx_cq))
		return -FI_EAGAIN;
	error = peek(m, w);
	if (error)
		fi_acp_cq_unreserve(m->ep->rx_cq);
	return error;
}

/* ---- Claims ---- */

static struct fi_acp_receive *find_in(struct fi_acp_receive *ring, const void *context)
{
	struct fi_acp_receive *r = ring->next;

	while (r != ring && !(r->claimed && r->context == context))
		r = r->next;
	return r == ring ? NULL : r;
}

ssize_t fi_acp_claim(struct fi_acp_messages *m, const struct fi_acp_want *w)
{
	const bool discard = w->flags & FI_DISCARD;
	struct fi_acp_receive *r = find_in(&m->posted, w->context);
	size_t i;

	if (!r)
		r = find_in(&m->ended, w->context);
	if (!r || w->count > FI_ACP_IOV)
		return -FI_EINVAL;
	r->count = discard ? 0 : w->count;
	r->user_room = discard ? SIZE_MAX : 0;
	for (i = 0; i < r->count; i++) {
		r->iov[i] = w->iov[i];
		r->user_room += w->iov[i].iov_len;
	}
	r->claimed = false;
	r->report = fi_acp_reports(m->ep, false, w->flags);
	if (r->posted)
		return 0;
	fi_acp_receive_end(m, r);
	fi_acp_receive_report(m);
	return 0;
}
