// SPDX-License-Identifier: MIT
/* Messages of an endpoint: begin and end, progress, and the calls of libfabric. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "message.h"

const uint64_t fi_acp_message_caps = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_DIRECTED_RECV |
				     FI_MULTI_RECV | FI_SOURCE;
const uint64_t fi_acp_message_order = FI_ORDER_SAS;
const uint64_t fi_acp_message_tags = UINT64_C(0xaaaaaaaaaaaaaaaa) & FI_ACP_TAG_MASK;
const uint64_t fi_acp_message_tags_data = UINT64_C(0xaaaaaaaaaaaaaaaa) & FI_ACP_SHORT_MASK;

/* ---- Begin and end ---- */

#define RESULT_BYTES	64u	/* that a match list has for each receive */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Half of what is free of the heap is for the list, of which a quarter is for results. */
static int list_open(struct fi_acp_messages *m)
{
	struct acpx_match_limits limits = { .masks = ACPX_MASKS_ANY };
	struct acpx_heap_stats heap;
	size_t room;
	int error;

	if (acpx_heap_stats(acp_rank(), &heap))
		return -FI_ENOMEM;
	room = (heap.size - heap.used) / 2;
	limits.receives = (uint32_t)least(room / 4 / RESULT_BYTES, FI_ACP_RECEIVES);
	limits.bytes = least(room / 4 * 3, FI_ACP_KEPT_BYTES) & ~(size_t)7;
	limits.messages = (uint32_t)least(limits.bytes / 64, FI_ACP_KEPT);
	if (limits.receives < 16 || limits.messages < 16)
		return -FI_ENOMEM;
	error = acpx_match_create(&limits, &m->match);
	m->eager = least(limits.bytes / 16, FI_ACP_EAGER);
	fi_acp_info(EP_CTRL, "messages: %u receives, %zu bytes for messages without one\n",
		    limits.receives, limits.bytes);
	return error;
}

static int receives_open(struct fi_acp_messages *m)
{
	unsigned int i;

	m->posted.next = &m->posted;
	m->posted.prev = &m->posted;
	m->ended.next = &m->ended;
	m->ended.prev = &m->ended;
	m->receives = calloc(FI_ACP_RECEIVES, sizeof(*m->receives));
	if (!m->receives)
		return -FI_ENOMEM;
	for (i = FI_ACP_RECEIVES; i--;) {
		m->receives[i].next = m->unused;
		m->unused = &m->receives[i];
	}
	return 0;
}

int fi_acp_messages_open(struct fi_acp_ep *ep)
{
	struct fi_acp_messages *m = calloc(1, sizeof(*m));
	int error;

	if (!m)
		return -FI_ENOMEM;
	m->ep = ep;
	m->tag_mask = ep->tag_format == fi_acp_message_tags_data ? FI_ACP_SHORT_MASK :
		      FI_ACP_TAG_MASK;
	ep->messages = m;
	error = receives_open(m);
	if (!error)
		error = fi_acp_slots_open(m);
	if (!error)
		error = list_open(m);
	if (error)
		fi_acp_messages_close(ep);
	else
		ep->addr.match = acpx_match_ga(m->match);
	return error;
}

#define CLOSE_TRIES	1000
#define CLOSE_NS	1000000

/* Messages may be arriving: they end, or their senders are lost. */
static void list_close(struct fi_acp_messages *m)
{
	const struct timespec pause = { .tv_nsec = CLOSE_NS };
	int tries;

	for (tries = 0; tries < CLOSE_TRIES; tries++) {
		if (acpx_match_free(m->match) != -EBUSY)
			return;
		nanosleep(&pause, NULL);
	}
	fi_acp_warn(EP_CTRL, "the match list of an endpoint remains: messages are arriving\n");
}

void fi_acp_messages_close(struct fi_acp_ep *ep)
{
	struct fi_acp_messages *m = ep->messages;
	unsigned int i;

	if (!m)
		return;
	fi_acp_ways_close(m);
	if (m->match)
		list_close(m);
	for (i = 0; m->receives && i < FI_ACP_RECEIVES; i++)
		if (m->receives[i].landing.key != ACP_ATKEY_NULL)
			fi_acp_land_release(m, &m->receives[i]);
	fi_acp_slots_close(m);
	free(m->receives);
	free(m);
	ep->messages = NULL;
	ep->addr.match = ACP_GA_NULL;
}

/* ---- Progress ---- */

#define LOOK_NS	UINT64_C(100000000)

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Receives from a rank that is lost get no message any more. */
static void fail_lost(struct fi_acp_messages *m)
{
	struct fi_acp_receive *r, *next;

	for (r = m->posted.next; r != &m->posted; r = next) {
		next = r->next;
		if (r->rank != ACPX_ANY_RANK && acpx_peer_state(r->rank) == ACPX_PEER_DOWN &&
		    !acpx_receive_cancel(r->handle))
			fi_acp_receive_fail(m, r, FI_ECONNRESET);
	}
}

void fi_acp_messages_progress(struct fi_acp_ep *ep)
{
	struct fi_acp_messages *m = ep->messages;
	uint64_t now;

	fi_acp_receive_look(m);
	if (m->posted.next != &m->posted) {
		now = now_ns();
		if (now - m->looked >= LOOK_NS) {
			m->looked = now;
			fail_lost(m);
		}
	}
	fi_acp_receive_report(m);
	fi_acp_ways_look(m);
}

int fi_acp_messages_cancel(struct fi_acp_ep *ep, void *context)
{
	struct fi_acp_messages *m = ep->messages;
	struct fi_acp_receive *r;

	if (!m)
		return -FI_ENOENT;
	for (r = m->posted.next; r != &m->posted; r = r->next) {
		if (r->context != context || r->silent || r->claimed)
			continue;
		if (acpx_receive_cancel(r->handle))
			return -FI_ENOENT;	/* its message has come, or is coming */
		fi_acp_receive_fail(m, r, FI_ECANCELED);
		fi_acp_receive_report(m);
		return 0;
	}
	return -FI_ENOENT;
}

bool fi_acp_messages_arm(struct fi_acp_ep *ep)
{
	struct fi_acp_messages *m = ep->messages;
	const struct fi_acp_receive *r;
	acpx_receive_t handles[FI_ACP_RECEIVES];	/* 32 KiB of the stack */
	size_t n = 0;

	for (r = m->posted.next; r != &m->posted; r = r->next)
		handles[n++] = r->handle;
	return acpx_receive_arm(handles, n) != 0;
}

/* ---- Calls: receives ---- */

static struct fi_acp_ep *ep_of(struct fid_ep *fid)
{
	return (struct fi_acp_ep *)(void *)fid;	/* fid is its first member */
}

static ssize_t receive(struct fid_ep *fid, bool tagged, const struct iovec *iov, void **desc,
		       size_t count, fi_addr_t source, uint64_t tag, uint64_t ignore, void *context)
{
	struct fi_acp_ep *ep = ep_of(fid);
	const struct fi_acp_want w = {
		.iov = iov, .desc = desc, .count = count, .source = source, .tag = tag,
		.ignore = ignore, .context = context, .tagged = tagged, .flags = ep->rx_flags,
	};

	return fi_acp_receive(ep, &w);
}

static ssize_t msg_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t source,
			void *context)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };

	return receive(ep, false, &iov, &desc, 1, source, 0, 0, context);
}

static ssize_t msg_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t source, void *context)
{
	return receive(ep, false, iov, desc, count, source, 0, 0, context);
}

static ssize_t msg_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	const struct fi_acp_want w = {
		.iov = msg->msg_iov, .desc = msg->desc, .count = msg->iov_count,
		.source = msg->addr, .context = msg->context, .flags = flags,
	};

	return fi_acp_receive(ep_of(ep), &w);
}

static ssize_t tagged_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t source,
			   uint64_t tag, uint64_t ignore, void *context)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };

	return receive(ep, true, &iov, &desc, 1, source, tag, ignore, context);
}

static ssize_t tagged_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			    fi_addr_t source, uint64_t tag, uint64_t ignore, void *context)
{
	return receive(ep, true, iov, desc, count, source, tag, ignore, context);
}

static ssize_t tagged_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	const struct fi_acp_want w = {
		.iov = msg->msg_iov, .desc = msg->desc, .count = msg->iov_count,
		.source = msg->addr, .tag = msg->tag, .ignore = msg->ignore,
		.context = msg->context, .flags = flags, .tagged = true,
	};

	return fi_acp_receive(ep_of(ep), &w);
}

/* ---- Calls: sends ---- */

/* Is the buffer free again at once? As the endpoint's flags want it, if the bytes are few. */
static bool injects(const struct fi_acp_ep *ep, const struct iovec *iov, size_t count)
{
	size_t i, size = 0;

	for (i = 0; i < count; i++)
		size += iov[i].iov_len;
	return (ep->tx_flags & FI_INJECT) && size <= FI_ACP_INJECT;
}

/* With @more: FI_INJECT, or FI_REMOTE_CQ_DATA, or both. */
static ssize_t send_iov(struct fid_ep *fid, bool tagged, const struct iovec *iov, void **desc,
			size_t count, fi_addr_t to, uint64_t tag, void *context, uint64_t data,
			uint64_t more)
{
	struct fi_acp_ep *ep = ep_of(fid);
	const struct fi_acp_message msg = {
		.iov = iov, .desc = desc, .count = count, .to = to, .tag = tag, .data = data,
		.context = context, .flags = ep->tx_flags | more, .tagged = tagged,
		.inject = (more & FI_INJECT) || injects(ep, iov, count),
		.quiet = more & FI_INJECT,
	};

	return fi_acp_send(ep, &msg);
}

static ssize_t send_buf(struct fid_ep *ep, bool tagged, const void *buf, size_t len, void *desc,
			fi_addr_t to, uint64_t tag, void *context, uint64_t data, uint64_t more)
{
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return send_iov(ep, tagged, &iov, &desc, 1, to, tag, context, data, more);
}

static ssize_t msg_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to,
			void *context)
{
	return send_buf(ep, false, buf, len, desc, to, 0, context, 0, 0);
}

static ssize_t msg_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t to, void *context)
{
	return send_iov(ep, false, iov, desc, count, to, 0, context, 0, 0);
}

static ssize_t msg_sendmsg(struct fid_ep *ep, const struct fi_msg *m, uint64_t flags)
{
	const struct fi_acp_message msg = {
		.iov = m->msg_iov, .desc = m->desc, .count = m->iov_count, .to = m->addr,
		.data = m->data, .context = m->context, .flags = flags,
		.inject = flags & FI_INJECT,
	};

	return fi_acp_send(ep_of(ep), &msg);
}

static ssize_t msg_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to)
{
	return send_buf(ep, false, buf, len, NULL, to, 0, NULL, 0, FI_INJECT);
}

static ssize_t msg_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t to, void *context)
{
	return send_buf(ep, false, buf, len, desc, to, 0, context, data, FI_REMOTE_CQ_DATA);
}

static ssize_t msg_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			      fi_addr_t to)
{
	return send_buf(ep, false, buf, len, NULL, to, 0, NULL, data,
			FI_INJECT | FI_REMOTE_CQ_DATA);
}

static ssize_t tagged_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			   fi_addr_t to, uint64_t tag, void *context)
{
	return send_buf(ep, true, buf, len, desc, to, tag, context, 0, 0);
}

static ssize_t tagged_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			    fi_addr_t to, uint64_t tag, void *context)
{
	return send_iov(ep, true, iov, desc, count, to, tag, context, 0, 0);
}

static ssize_t tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *m, uint64_t flags)
{
	const struct fi_acp_message msg = {
		.iov = m->msg_iov, .desc = m->desc, .count = m->iov_count, .to = m->addr,
		.tag = m->tag, .data = m->data, .context = m->context, .flags = flags,
		.tagged = true, .inject = flags & FI_INJECT,
	};

	return fi_acp_send(ep_of(ep), &msg);
}

static ssize_t tagged_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to,
			     uint64_t tag)
{
	return send_buf(ep, true, buf, len, NULL, to, tag, NULL, 0, FI_INJECT);
}

static ssize_t tagged_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			       uint64_t data, fi_addr_t to, uint64_t tag, void *context)
{
	return send_buf(ep, true, buf, len, desc, to, tag, context, data, FI_REMOTE_CQ_DATA);
}

static ssize_t tagged_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
				 fi_addr_t to, uint64_t tag)
{
	return send_buf(ep, true, buf, len, NULL, to, tag, NULL, data,
			FI_INJECT | FI_REMOTE_CQ_DATA);
}

struct fi_ops_msg fi_acp_msg_ops = {
	.size = sizeof(fi_acp_msg_ops),
	.recv = msg_recv, .recvv = msg_recvv, .recvmsg = msg_recvmsg,
	.send = msg_send, .sendv = msg_sendv, .sendmsg = msg_sendmsg,
	.inject = msg_inject, .senddata = msg_senddata, .injectdata = msg_injectdata,
};

struct fi_ops_tagged fi_acp_tagged_ops = {
	.size = sizeof(fi_acp_tagged_ops),
	.recv = tagged_recv, .recvv = tagged_recvv, .recvmsg = tagged_recvmsg,
	.send = tagged_send, .sendv = tagged_sendv, .sendmsg = tagged_sendmsg,
	.inject = tagged_inject, .senddata = tagged_senddata, .injectdata = tagged_injectdata,
};
