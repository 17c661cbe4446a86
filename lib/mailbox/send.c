// SPDX-License-Identifier: MIT
/*
 * Sending to mailboxes: by the ring of a mailbox on this node (node_ring.h), otherwise by the
 * kernel. A process must not reserve a record among those that kernels write: if it died before it
 * has written its state, it would block the mailbox.
 */
#include "acp.h"
#include "acp_abi.h"
#include "core/event.h"
#include "core/local.h"
#include "core/process.h"
#include "core/submit.h"
#include "core/watch.h"
#include "mailbox/node_ring.h"

#define LOOKS	16	/* locks that were not free, until the kernel is asked about the rank */

/* An entry with other flags has no operation: the kernel refuses it. */
static struct acp_sqe message_of(acp_ga_t mailbox, acp_ga_t src, size_t size, uint64_t tag,
				 int flags)
{
	return (struct acp_sqe){
		.op = flags & ~(ACPX_RETRY | ACPX_RENDEZVOUS) ? 0 : ACP_OP_SEND,
		.flags = (flags & ACPX_RETRY ? ACP_SQE_RETRY : 0) |
			 (flags & ACPX_RENDEZVOUS ? ACP_SQE_RENDEZVOUS : 0),
		.dst = mailbox, .src = src, .size = size, .b = tag,
	};
}

/* ---- By the ring ---- */

/* Most locks that are not free belong to ranks that are just writing. */
static bool is_gone(uint32_t rank)
{
	static unsigned int looks;

	return __atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED) % LOOKS == 0 &&
	       libacp_rank_has_left(rank);
}

/* The ring of a mailbox. */
struct target {
	struct acp_mailbox *box;
	struct libacp_node_ring *ring;
	struct acp_watch *watch;
	unsigned int bits;
};

/*
 * May the calling thread write this message to the ring? Earlier messages of the queue must have
 * arrived.
 */
static bool find_ring(struct target *t, acp_ga_t mailbox, int flags, acp_handle_t order)
{
	uint64_t offset;

	t->box = libacp_local_reach_watched(mailbox, sizeof(*t->box), &t->watch);
	if (!t->box || (uintptr_t)t->box % 8 || flags & ~ACPX_RETRY ||
	    !libacp_node_ring_of(t->box, &offset, &t->bits))
		return false;
	t->ring = libacp_local_reach_watched(mailbox + offset, libacp_node_ring_bytes(t->bits),
					     &t->watch);
	return t->ring && libacp_may_start(order) && libacp_messages_complete();
}

static bool send_by_ring(const struct target *t, acp_ga_t mailbox, acp_ga_t src, size_t size,
			 uint64_t tag)
{
	const struct libacp_ring_message message = {
		.data = size ? libacp_local_reach(src, size, false) : NULL, .size = size,
		.tag = tag, .rank = libacp.rank,
	};

	if ((size && !message.data) ||
	    !libacp_node_ring_write(t->box, t->ring, t->bits, &message, is_gone))
		return false;
	if (libacp_watch_armed(t->watch) && libacp_node_ring_waits(t->ring))
		libacp_watch_wake_rank(acp_ga_rank(&libacp.layout, mailbox));
	return true;
}

acp_handle_t acpx_send(acp_ga_t mailbox, acp_ga_t src, size_t size, uint64_t tag, int flags,
		       acp_handle_t order)
{
	struct acp_sqe message = message_of(mailbox, src, size, tag, flags);
	struct target target;

	if (!libacp_in())
		return ACP_HANDLE_NULL;
	if (find_ring(&target, mailbox, flags, order) &&
	    send_by_ring(&target, mailbox, src, size, tag))
		return libacp_done_locally();
	return libacp_note_message(libacp_submit_one(&message, order));
}

/* ---- Behind a copy ---- */

/* Two entries: the data, and behind them the message. */
struct parts {
	struct acp_sqe data, message;
};

static void next_part(struct acp_sqe *entry, void *state)
{
	struct parts *parts = state;

	*entry = parts->data;
	parts->data = parts->message;
}

acp_handle_t acpx_copy_notify(acp_ga_t dst, acp_ga_t src, size_t size, acp_ga_t mailbox,
			      uint64_t tag, int flags, acp_handle_t order)
{
	struct parts parts = { .data = { .dst = dst, .src = src, .size = size } };
	struct target target;

	if (!libacp_in())
		return ACP_HANDLE_NULL;
	parts.message = message_of(mailbox, libacp_own_nothing(), 0, tag, flags);
	if (find_ring(&target, mailbox, flags, order) &&
	    (!size || libacp_local_copy(dst, src, size))) {
		if (send_by_ring(&target, mailbox, 0, 0, tag))
			return libacp_done_locally();
		return libacp_note_message(libacp_submit_one(&parts.message, ACP_HANDLE_NULL));
	}
	/* A notification has no bytes that could wait for a receive. */
	if (flags & ACPX_RENDEZVOUS)
		parts.message.op = 0;
	parts.message.order = LIBACP_BEHIND;
	if (parts.message.op)
		parts.data.op = ACP_OP_COPY;
	return libacp_note_message(libacp_submit(2, next_part, &parts, order));
}
