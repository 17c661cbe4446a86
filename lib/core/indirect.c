// SPDX-License-Identifier: MIT
/* Copies to where a pointer of the receiving rank says. */
#include <stddef.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/process.h"
#include "core/submit.h"

_Static_assert(offsetof(struct acpx_buffer, end) == 8, "as ACP_OP_APPEND reads it");

acp_handle_t acpx_copy_indirect(acp_ga_t pointer, acp_ga_t src, size_t size, int flags,
				acp_handle_t order)
{
	struct acp_sqe entry = { .dst = pointer, .src = src, .size = size };

	if (!(flags & ~(ACPX_ADVANCE | ACPX_RETRY)))	/* else the kernel refuses the entry */
		entry.op = flags & ACPX_ADVANCE ? ACP_OP_APPEND : ACP_OP_INDIRECT;
	if (flags & ACPX_RETRY)				/* ... as it does without ADVANCE */
		entry.flags = ACP_SQE_RETRY;
	if (!libacp_in())
		return ACP_HANDLE_NULL;
	return libacp_submit_one(&entry, order);
}
