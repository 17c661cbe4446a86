// SPDX-License-Identifier: MIT
/* Accesses that wait for a word of the rank's own memory. The kernel executes them. */
#include "acp.h"
#include "acp_abi.h"
#include "core/mem.h"
#include "core/process.h"
#include "core/submit.h"

/* False also if the word is revoked, or not in memory of this rank: the kernel reports that. */
static bool is_reached(acp_ga_t word, uint64_t value)
{
	const uint64_t *at = NULL;
	uint64_t now;

	if ((word ^ libacp.own) >> libacp.rank_shift == 0)
		at = (const uint64_t *)libacp_mem_find(word, sizeof(*at), false);
	if (!at || (uintptr_t)at % sizeof(*at))
		return false;
	now = __atomic_load_n(at, __ATOMIC_ACQUIRE);
	return (int64_t)(now - value) >= 0 && !ACP_WORD_REVOKED_FOR(now, value);
}

/* Two of the ranks, as the entry names them. */
static uint64_t two(const int *ranks, int count, int i)
{
	const uint32_t first = i < count ? (uint32_t)ranks[i] : UINT32_MAX;
	const uint32_t second = i + 1 < count ? (uint32_t)ranks[i + 1] : UINT32_MAX;

	return ACP_WAIT_RANKS(first, second);
}

static void next_wait(struct acp_sqe *entry, void *state)
{
	*entry = *(const struct acp_sqe *)state;
}

/* The kernel looks at the word even if it is reached: it may be revoked, and so may its order. */
acp_handle_t acpx_wait_word_of(acp_ga_t word, uint64_t value, const int *ranks, int count,
			       acp_handle_t order)
{
	struct acp_sqe wait = {
		.op = ACP_OP_WAIT, .src = word, .a = value, .seen = LIBACP_STRICT,
	};
	int i;

	if (!libacp_in())
		return ACP_HANDLE_NULL;
	if (count < 0 || count > ACPX_WAIT_RANKS_MAX || (count && !ranks))
		wait.op = 0;		/* fails */
	for (i = 0; i < count && wait.op; i++)
		if (ranks[i] < 0)
			wait.op = 0;
	if (wait.op) {
		wait.dst = two(ranks, count, 0);
		wait.size = two(ranks, count, 2);
		wait.b = two(ranks, count, 4);
	}
	return libacp_submit(1, next_wait, &wait, order);
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
