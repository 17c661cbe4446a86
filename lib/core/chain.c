// SPDX-License-Identifier: MIT
/* Copies along a chain of descriptors of the receiving rank, or of the rank that is read. */
#include <stddef.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/process.h"
#include "core/submit.h"

#define SAME(field) \
	(offsetof(struct acpx_descriptor, field) == offsetof(struct acp_descriptor, field))

_Static_assert(sizeof(struct acpx_descriptor) == sizeof(struct acp_descriptor) &&
	       SAME(address) && SAME(stride) && SAME(block) && SAME(count) && SAME(next) &&
	       SAME(flags) && SAME(reserved), "as the device reads it");
_Static_assert(ACPX_CHAIN_MAX == ACP_CHAIN_MAX && ACPX_CHAIN_SCATTER == ACP_CHAIN_SCATTER &&
	       ACPX_CHAIN_GATHER == ACP_CHAIN_GATHER, "as the device reads it");

static acp_handle_t copy(uint8_t op, acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order)
{
	if (!libacp_in())
		return ACP_HANDLE_NULL;
	return libacp_submit_one(&(struct acp_sqe){
		.op = op, .dst = dst, .src = src, .size = size,
	}, order);
}

acp_handle_t acpx_copy_scatter(acp_ga_t chain, acp_ga_t src, size_t size, acp_handle_t order)
{
	return copy(ACP_OP_SCATTER, chain, src, size, order);
}

acp_handle_t acpx_copy_gather(acp_ga_t dst, acp_ga_t chain, size_t size, acp_handle_t order)
{
	return copy(ACP_OP_GATHER, dst, chain, size, order);
}
