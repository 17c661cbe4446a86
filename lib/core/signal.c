// SPDX-License-Identifier: MIT
/*
 * Copies with a signal; numbers that are combined with those of other ranks, with or without one.
 */
#include "acp.h"
#include "acp_abi.h"
#include "core/local.h"
#include "core/process.h"
#include "core/submit.h"

/* True if both are on one node, or if one is invalid, which the kernel reports. */
static bool together(acp_ga_t a, acp_ga_t b)
{
	int node = acpx_query_node(acp_query_rank(a)), other = acpx_query_node(acp_query_rank(b));

	return node == other || node < 0 || other < 0;
}

static bool is_set(const struct acp_sqe *entry)
{
	return entry->op == ACP_OP_COPY_SET || entry->op == ACP_OP_ACCUMULATE_SET;
}

/*
 * Data and flag are on different nodes: submit the data alone, and behind them a signal with 0
 * bytes of data.
 */
static void next_half(struct acp_sqe *entry, void *state)
{
	struct acp_sqe *both = state;

	*entry = *both;
	if (both->order == LIBACP_BEHIND)
		return;
	entry->op = both->op >= ACP_OP_ACCUMULATE ? ACP_OP_ACCUMULATE : ACP_OP_COPY;
	entry->flags = 0;
	entry->a = 0;
	entry->b = 0;
	both->op = is_set(both) ? ACP_OP_COPY_SET : ACP_OP_COPY_ADD;
	both->dst = both->a;
	both->src = libacp_own_nothing();
	both->size = 0;
	both->order = LIBACP_BEHIND;
}

static void next_revoking(struct acp_sqe *entry, void *state)
{
	*entry = *(const struct acp_sqe *)state;
}

/* The kernel looks whether the order has failed, and then revokes the flag. */
static acp_handle_t signal_or_revoke(struct acp_sqe *both, acp_handle_t order)
{
	both->flags = ACP_SQE_REVOKE;
	both->seen = LIBACP_STRICT;
	if (!together(both->dst, both->a))
		return libacp_submit(2, next_half, both, order);
	return libacp_submit(1, next_revoking, both, order);
}

/* Submit data with a signal. Both operations are 0 if there is no such signal. */
static acp_handle_t submit(struct acp_sqe *both, bool revoke, acp_handle_t order)
{
	if (revoke && order != (acp_handle_t)ACP_HANDLE_NULL)
		return signal_or_revoke(both, order);
	if (both->op && !together(both->dst, both->a))
		return libacp_submit(2, next_half, both, order);
	return libacp_submit_one(both, order);
}

/* The operation that sets the flag, or adds to it; 0: there is no such signal. */
static uint8_t op_of(int signal, uint8_t set, uint8_t add)
{
	if (signal == ACPX_SIGNAL_SET)
		return set;
	return (signal & ~ACPX_SIGNAL_REVOKE) == ACPX_SIGNAL_ADD ? add : 0;
}

acp_handle_t acpx_copy_signal(acp_ga_t dst, acp_ga_t src, size_t size, acp_ga_t flag,
			      uint64_t operand, int op, acp_handle_t order)
{
	struct acp_sqe both = {
		.op = op_of(op, ACP_OP_COPY_SET, ACP_OP_COPY_ADD),
		.dst = dst, .src = src, .size = size, .a = flag, .b = operand,
	};
	const bool revoke = both.op && (op & ACPX_SIGNAL_REVOKE);

	if (!libacp_in())
		return ACP_HANDLE_NULL;
	if (!size) {		/* only the flag is written */
		both.dst = flag;
		both.src = libacp_own_nothing();
	}
	if (both.op && !(revoke && order != (acp_handle_t)ACP_HANDLE_NULL) &&
	    libacp_may_start(order) &&
	    libacp_local_signal(dst, src, size, flag, operand, op != ACPX_SIGNAL_SET))
		return libacp_done_locally();
	return submit(&both, revoke, order);
}

/* What no field of the entry can express becomes what the kernel refuses. */
static uint64_t numbers_of(size_t count, int op, int type)
{
	if (op < 0 || op >= ACP_REDUCE_OP_END || type < 0 || type >= ACP_REDUCE_TYPE_END ||
	    count >> 48)
		return UINT64_MAX;
	return ACP_NUMBERS((unsigned int)op, (unsigned int)type, count);
}

acp_handle_t acpx_accumulate(acp_ga_t dst, acp_ga_t src, size_t count, int op, int type,
			     acp_handle_t order)
{
	if (!libacp_in())
		return ACP_HANDLE_NULL;
	return libacp_submit_one(&(struct acp_sqe){
		.op = ACP_OP_ACCUMULATE, .dst = dst, .src = src,
		.size = numbers_of(count, op, type),
	}, order);
}

acp_handle_t acpx_accumulate_signal(acp_ga_t dst, acp_ga_t src, size_t count, int op, int type,
				    acp_ga_t flag, uint64_t operand, int signal,
				    acp_handle_t order)
{
	struct acp_sqe both = {
		.op = op_of(signal, ACP_OP_ACCUMULATE_SET, ACP_OP_ACCUMULATE_ADD),
		.dst = dst, .src = src, .size = numbers_of(count, op, type),
		.a = flag, .b = operand,
	};

	if (!libacp_in())
		return ACP_HANDLE_NULL;
	if (!count) {		/* only the flag is written */
		both.dst = flag;
		both.src = libacp_own_nothing();
	}
	return submit(&both, both.op && (signal & ACPX_SIGNAL_REVOKE), order);
}
