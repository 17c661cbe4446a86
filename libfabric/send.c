// SPDX-License-Identifier: MIT
/* Sending: one access to the match list of the receiver's endpoint. */
#include <stdlib.h>
#include <string.h>

#include "message.h"

#define MSG_FLAGS	(FI_COMPLETION | FI_INJECT | FI_MORE | FI_REMOTE_CQ_DATA | \
			 FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

/* ---- Queues ---- */

/* What a message needs until it ends. */
struct sending {
	struct fi_acp_way *way;		/* it is long: one that waits there; or NULL */
	void *gathered;			/* from malloc(), or NULL */
	bool reported;
};

static struct fi_acp_way *way_open(void)
{
	struct fi_acp_way *way = calloc(1, sizeof(*way));
	struct fi_acp_queue **last = &fi_acp_job.queue.next;

	if (!way)
		return NULL;
	if (acpx_context_create(FI_ACP_QUEUE_DEPTH, &way->queue.context)) {
		free(way);
		return NULL;
	}
	way->queue.last = &way->queue.first;
	while (*last)
		last = &(*last)->next;
	*last = &way->queue;
	return way;
}

static struct fi_acp_way *way_to(struct fi_acp_messages *m, uint32_t rank)
{
	struct fi_acp_way **way = &m->ways[rank % FI_ACP_QUEUES];

	if (!*way)
		*way = way_open();
	return *way;
}

/* It reports nothing any more. */
static void forget(struct fi_acp_op *op)
{
	op->cq = NULL;
	op->cntr = NULL;
	op->report = false;
}

/* Sends that are still under way have no endpoint any more. */
static void abandon(struct fi_acp_queue *queue)
{
	struct sending *sending;
	struct fi_acp_op *op;

	for (op = queue->first; op; op = op->next) {
		fi_acp_cq_unreserve(op->cq);
		if (op->cntr)
			op->cntr->pending--;
		forget(op);
		sending = op->private;
		if (sending)
			sending->way = NULL;
	}
}

/* Report the end of an operation before it is complete. */
static void report_early(struct fi_acp_op *op, int status)
{
	const struct fi_acp_entry entry = {
		.e = op->entry, .source = FI_ADDR_NOTAVAIL,
		.error = fi_acp_errno(status), .prov_errno = status,
	};

	if (op->cq && (status || op->report))
		fi_acp_cq_write(op->cq, &entry);
	else
		fi_acp_cq_unreserve(op->cq);
	if (op->cntr)
		op->cntr->pending--;
	fi_acp_cntr_count(op->cntr, status != 0);
	forget(op);
}

static void way_close(struct fi_acp_way *way)
{
	struct fi_acp_queue **link = &fi_acp_job.queue.next;

	fi_acp_progress();
	if (way->queue.first) {
		abandon(&way->queue);
		return;			/* it goes with the job */
	}
	while (*link && *link != &way->queue)
		link = &(*link)->next;
	if (*link)
		*link = way->queue.next;
	acpx_context_destroy(way->queue.context);
	free(way);
}

void fi_acp_ways_close(struct fi_acp_messages *m)
{
	struct fi_acp_way *way;
	unsigned int i;

	/* Closing one looks at all that the endpoint has. */
	for (i = 0; i < FI_ACP_QUEUES; i++) {
		way = m->ways[i];
		m->ways[i] = NULL;
		if (way)
			way_close(way);
	}
}

/* ---- A message ---- */

/*
 * A long message may end behind one that waits for its receive, and then is not complete: programs
 * may send twice and receive in the other order.
 */
static void look_behind(struct fi_acp_way *way)
{
	struct fi_acp_op *op;
	struct sending *l;
	int status;

	for (op = way->queue.first; op; op = op->next) {
		l = op->private;
		if (!l || !l->way || l->reported)
			continue;
		status = acpx_status(op->handle);
		if (status == ACPX_EPENDING)
			continue;
		l->reported = true;
		report_early(op, status);
	}
}

void fi_acp_ways_look(struct fi_acp_messages *m)
{
	unsigned int i;

	for (i = 0; i < FI_ACP_QUEUES; i++)
		if (m->ways[i] && m->ways[i]->waiting > 1)
			look_behind(m->ways[i]);
}

static void sending_free(struct sending *l)
{
	if (l->way)
		l->way->waiting--;
	free(l->gathered);
	free(l);
}

static void ended(struct fi_acp_op *op, int status)
{
	(void)status;
	sending_free(op->private);
	op->private = NULL;
}

static size_t size_of(const struct fi_acp_message *msg)
{
	size_t size = 0, i;

	for (i = 0; i < msg->count; i++)
		size += msg->iov[i].iov_len;
	return size;
}

static void *gather(const struct fi_acp_message *msg, size_t size)
{
	char *all = malloc(size), *at = all;
	size_t i;

	for (i = 0; all && i < msg->count; i++) {
		memcpy(at, msg->iov[i].iov_base, msg->iov[i].iov_len);
		at += msg->iov[i].iov_len;
	}
	return all;
}

/* Returns 0 or -FI_E*; then op->private has been freed. */
static int source_of(struct fi_acp_op *op, const struct fi_acp_message *msg, size_t size,
		     acp_ga_t *ga)
{
	void *desc = msg->desc && msg->count == 1 ? msg->desc[0] : NULL;
	const void *buf = msg->count ? msg->iov[0].iov_base : NULL;
	struct sending *l = op->private;

	*ga = ACP_GA_NULL;
	if (!size)
		return 0;
	if (msg->count > 1) {
		l->gathered = gather(msg, size);
		if (!l->gathered)
			return -FI_ENOMEM;
		buf = l->gathered;
	}
	return fi_acp_op_local(op, buf, size, desc, FI_ACP_SOURCE, msg->inject, ga);
}

static acp_handle_t start(const struct fi_acp_way *way, acp_ga_t list, acp_ga_t source,
			  size_t size, uint64_t tag, bool is_long)
{
	const int flags = ACPX_RETRY | (is_long ? ACPX_RENDEZVOUS : 0);
	acp_handle_t handle;

	if (acpx_context_bind(way->queue.context))
		return ACP_HANDLE_NULL;
	handle = acpx_send(list, source, size, tag, flags, ACP_HANDLE_NULL);
	acpx_context_bind(NULL);
	return handle;
}

static uint64_t tag_of(const struct fi_acp_ep *ep, const struct fi_acp_message *msg)
{
	uint64_t tag;

	if (msg->tagged) {
		tag = msg->tag | (uint64_t)ep->addr.endpoint << FI_ACP_TAG_BITS;
		if (msg->flags & FI_REMOTE_CQ_DATA)
			tag |= (msg->data + 1) << FI_ACP_SHORT_BITS;
		return tag;
	}
	tag = FI_ACP_MSG | (uint64_t)ep->addr.endpoint << FI_ACP_MSG_EP_SHIFT;
	if (msg->flags & FI_REMOTE_CQ_DATA)
		tag |= FI_ACP_MSG_DATA | (msg->data & UINT32_MAX);
	return tag;
}

static struct fi_acp_op *begin(struct fi_acp_ep *ep, const struct fi_acp_message *msg,
			       struct sending *l)
{
	const struct fi_cq_tagged_entry entry = {
		.op_context = msg->context,
		.flags = (msg->tagged ? FI_TAGGED : FI_MSG) | FI_SEND,
	};
	const bool report = !msg->quiet && fi_acp_reports(ep, true, msg->flags);
	struct fi_acp_op *op = fi_acp_op_get(ep->tx_cq, ep->send_cntr, &entry, report);

	if (!op)
		return NULL;
	op->private = l;
	op->ended = ended;
	return op;
}

/*
 * Its bytes have been copied, and nobody asked for more: it need not wait for a long one. Other
 * short messages are sent like long ones then, whose end is seen behind one that waits.
 */
static bool may_end_early(const struct fi_acp_op *op, const struct fi_acp_message *msg,
			  acp_ga_t source)
{
	return !(msg->flags & (FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)) &&
	       (op->bounce >= 0 || source == op->scratch_ga || source == ACP_GA_NULL);
}

/* Lock held. */
static int send_one(struct fi_acp_ep *ep, const struct fi_acp_message *msg, struct sending *l,
		    struct fi_acp_op **failed)
{
	const struct fi_acp_addr *peer = fi_acp_peer(ep->av, msg->to);
	const size_t size = size_of(msg);
	bool is_long = size > ep->messages->eager;
	struct fi_acp_way *way = peer ? way_to(ep->messages, peer->rank) : NULL;
	struct fi_acp_op *op;
	acp_handle_t handle;
	acp_ga_t source;
	int error;

	if (!peer || peer->match == ACP_GA_NULL)
		return -FI_EINVAL;
	if (!way)
		return -FI_ENOMEM;
	if (is_long && way->waiting >= FI_ACP_WAITING)
		return -FI_EAGAIN;
	op = begin(ep, msg, l);
	if (!op)
		return -FI_EAGAIN;
	*failed = op;
	error = source_of(op, msg, size, &source);
	if (error)
		return error;
	if (way->waiting && way->waiting < FI_ACP_WAITING && size)
		is_long = is_long || !may_end_early(op, msg, source);
	handle = start(way, peer->match, source, size, tag_of(ep, msg), is_long);
	if (handle == ACP_HANDLE_NULL)
		return -FI_EIO;
	*failed = NULL;
	fi_acp_op_start(op, &way->queue, handle);
	if (is_long) {
		l->way = way;
		way->waiting++;
	} else if (way->waiting && may_end_early(op, msg, source)) {
		report_early(op, 0);
	}
	return 0;
}

static bool may_send(const struct fi_acp_ep *ep, const struct fi_acp_message *msg)
{
	const uint64_t mask = ep->messages->tag_mask;

	if (msg->count > FI_ACP_IOV || (msg->inject && size_of(msg) > FI_ACP_INJECT))
		return false;
	if (!msg->tagged)
		return !(msg->flags & FI_REMOTE_CQ_DATA) || msg->data <= UINT32_MAX;
	if ((msg->flags & FI_REMOTE_CQ_DATA) &&
	    (mask == FI_ACP_TAG_MASK || msg->data > FI_ACP_DATA_MAX))
		return false;
	return !(msg->tag & ~mask) && ep->addr.endpoint < FI_ACP_TAGGED_EPS;
}

ssize_t fi_acp_send(struct fi_acp_ep *ep, const struct fi_acp_message *msg)
{
	struct fi_acp_op *failed = NULL;
	struct sending *l;
	int error;

	if (!ep->messages || !(ep->caps & (msg->tagged ? FI_TAGGED : FI_MSG)))
		return -FI_EOPBADSTATE;
	if (msg->flags & ~MSG_FLAGS)
		return -FI_EBADFLAGS;
	if (!may_send(ep, msg))
		return -FI_EINVAL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -FI_ENOMEM;
	fi_acp_lock();
	error = send_one(ep, msg, l, &failed);
	if (failed)
		fi_acp_op_drop(failed);
	fi_acp_unlock();
	if (error)
		sending_free(l);
	return error;
}
