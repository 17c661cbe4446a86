// SPDX-License-Identifier: MIT
/*
 * Sending to mailboxes. The kernel does it even if the mailbox is on this node: a process that dies
 * between reserving a record and writing it would block the mailbox.
 */
#include "acp.h"
#include "acp_abi.h"
#include "core/process.h"
#include "core/submit.h"

acp_handle_t acpx_send(acp_ga_t mailbox, acp_ga_t src, size_t size, uint64_t tag, int flags,
		       acp_handle_t order)
{
	struct acp_sqe entry = { .dst = mailbox, .src = src, .size = size, .b = tag };

	if (!(flags & ~ACPX_RETRY))	/* else the kernel refuses the entry */
		entry.op = ACP_OP_SEND;
	if (flags & ACPX_RETRY)
		entry.flags = ACP_SQE_RETRY;
	if (!libacp_in())
		return ACP_HANDLE_NULL;
	return libacp_submit_one(&entry, order);
}
