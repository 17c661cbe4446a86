// SPDX-License-Identifier: MIT
/* Accesses that wait for a word of the rank's own memory. The kernel executes them. */
#include "acp.h"
#include "acp_abi.h"
#include "core/mem.h"
#include "core/process.h"
#include "core/submit.h"

/* False also if the word is not in memory of this rank: the kernel reports the error. */
static bool is_reached(acp_ga_t word, uint64_t value)
{
	const uint64_t *at = NULL;

	if ((word ^ libacp.own) >> libacp.rank_shift == 0)
		at = (const uint64_t *)libacp_mem_find(word, sizeof(*at), false);
	if (!at || (uintptr_t)at % sizeof(*at))
		return false;
	return (int64_t)(__atomic_load_n(at, __ATOMIC_ACQUIRE) - value) >= 0;
}

acp_handle_t acpx_wait_word(acp_ga_t word, uint64_t value, acp_handle_t order)
{
	if (!libacp_in())
		return ACP_HANDLE_NULL;
	if (libacp_may_start(order) && is_reached(word, value))
		return libacp_done_locally();
	return libacp_submit_one(&(struct acp_sqe){
		.op = ACP_OP_WAIT, .src = word, .a = value,
	}, order);
}
