// SPDX-License-Identifier: MIT
/* Combination of numbers in memory. The kernel executes it. */
#include "acp.h"
#include "acp_abi.h"
#include "core/process.h"
#include "core/submit.h"

_Static_assert(ACPX_INT32 == (int)ACP_REDUCE_S32 && ACPX_INT64 == (int)ACP_REDUCE_S64 &&
	       ACPX_UINT32 == (int)ACP_REDUCE_U32 && ACPX_UINT64 == (int)ACP_REDUCE_U64 &&
	       ACPX_FLOAT == (int)ACP_REDUCE_F32 && ACPX_DOUBLE == (int)ACP_REDUCE_F64,
	       "as the device knows them");
_Static_assert(ACPX_SUM == (int)ACP_REDUCE_SUM && ACPX_PROD == (int)ACP_REDUCE_PROD &&
	       ACPX_MIN == (int)ACP_REDUCE_MIN && ACPX_MAX == (int)ACP_REDUCE_MAX &&
	       ACPX_AND == (int)ACP_REDUCE_AND && ACPX_OR == (int)ACP_REDUCE_OR &&
	       ACPX_XOR == (int)ACP_REDUCE_XOR && ACPX_REPLACE == (int)ACP_REDUCE_REPLACE,
	       "as the device knows them");

/* What no field of the entry can express becomes what the kernel refuses. */
acp_handle_t acpx_reduce(acp_ga_t dst, acp_ga_t src, size_t count, int op, int type,
			 acp_handle_t order)
{
	const bool known = op >= 0 && op < ACP_REDUCE_OP_END && type >= 0 &&
			   type < ACP_REDUCE_TYPE_END;
	const size_t width = type & 1 ? 8 : 4;

	if (!libacp_in())
		return ACP_HANDLE_NULL;
	return libacp_submit_one(&(struct acp_sqe){
		.op = ACP_OP_REDUCE, .dst = dst, .src = src,
		.size = count > SIZE_MAX / width ? SIZE_MAX : count * width,
		.a = known ? ACP_REDUCE(op, type) : UINT64_MAX,
	}, order);
}
