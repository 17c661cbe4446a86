// SPDX-License-Identifier: MIT
/*
 * Sending to mailboxes. The kernel does it even if the mailbox is on this node: a process that dies
 * between reserving a record and writing it would block the mailbox.
 */
#include "acp.h"
#include "acp_abi.h"
#include "core/process.h"
#include "core/submit.h"

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

acp_handle_t acpx_send(acp_ga_t mailbox, acp_ga_t src, size_t size, uint64_t tag, int flags,
		       acp_handle_t order)
{
	struct acp_sqe message = message_of(mailbox, src, size, tag, flags);

	if (!libacp_in())
		return ACP_HANDLE_NULL;
	return libacp_submit_one(&message, order);
}

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

	if (!libacp_in())
		return ACP_HANDLE_NULL;
	parts.message = message_of(mailbox, libacp_own_nothing(), 0, tag, flags);
	/* A notification has no bytes that could wait for a receive. */
	if (flags & ACPX_RENDEZVOUS)
		parts.message.op = 0;
	parts.message.order = LIBACP_BEHIND;
	if (parts.message.op)
		parts.data.op = ACP_OP_COPY;
	return libacp_submit(2, next_part, &parts, order);
}
