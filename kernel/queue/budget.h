/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A budget limits the work for ranks that is done at a time with bottom halves off.
 *
 * One run of a softirq over what has arrived has one budget, for all poll rounds (round.c) and for
 * frames that had to wait (peer.c), of all jobs. One scan of all rings by the poller has one, and
 * all moderated rings of a CPU share one (poller.c). The rank's worker does the rest (worker.h). A
 * system call or a worker begins a new budget for each step and may be rescheduled between steps.
 */
#ifndef ACP_BUDGET_H
#define ACP_BUDGET_H

#include <linux/types.h>

#define ACP_BUDGET_ENTRIES	64
#define ACP_BUDGET_BYTES	65536	/* copied, or given to a flow; at most this per entry */
#define ACP_BUDGET_LOOKS	32	/* checks of waiting commands that count as one entry */
#define ACP_BUDGET_SHORT	128	/* bytes of a short command, at most */

struct acp_budget {
	int looks;	/* left; 0 or less: the budget is used up, whatever bytes are left */
	u32 bytes;	/* left */
	u32 done;	/* commands taken, and waiting ones that were started */
};

/**
 * acp_budget_begin() - begin a new budget
 * @b: the budget
 *
 * Context: any.
 */
static inline void acp_budget_begin(struct acp_budget *b)
{
	b->looks = ACP_BUDGET_ENTRIES * ACP_BUDGET_LOOKS;
	b->bytes = ACP_BUDGET_BYTES;
	b->done = 0;
}

/**
 * acp_budget_begin_short() - begin a budget for one short command
 * @b: the budget
 *
 * It also suffices for checks of as many waiting commands as count as one entry.
 *
 * Context: any.
 */
static inline void acp_budget_begin_short(struct acp_budget *b)
{
	b->looks = ACP_BUDGET_LOOKS;
	b->bytes = ACP_BUDGET_SHORT;
	b->done = 0;
}

/**
 * acp_budget_left() - is anything left of a budget?
 * @b: the budget
 *
 * Context: any.
 * Return: false if it is used up.
 */
static inline bool acp_budget_left(const struct acp_budget *b)
{
	return b->looks > 0;
}

/**
 * acp_budget_entry() - charge for an entry, or for checking whether there is one
 * @b: the budget
 *
 * Context: any.
 * Return: false if the budget does not suffice.
 */
static inline bool acp_budget_entry(struct acp_budget *b)
{
	b->looks -= ACP_BUDGET_LOOKS;
	return b->looks >= 0;
}

/* The budget is used up.  Returns whether it sufficed for the bytes. */
static inline bool acp_budget_last(struct acp_budget *b, u32 bytes)
{
	b->looks = 0;
	return bytes == b->bytes;
}

/**
 * acp_budget_pay() - charge for the bytes of a command
 * @b: the budget
 * @bytes: bytes that starting the command moves, ACP_BUDGET_BYTES at most
 *
 * A new budget suffices for any command.
 *
 * Context: any.
 * Return: true if the command may start; false: the budget is used up.
 */
static inline bool acp_budget_pay(struct acp_budget *b, u32 bytes)
{
	if (unlikely(bytes >= b->bytes))
		return acp_budget_last(b, bytes);
	b->bytes -= bytes;
	return true;
}

/**
 * acp_budget_of_softirq() - find the budget of the present run of a softirq
 * @own: budget to begin and use if there is none
 *
 * If others have used up that of the run, the caller has one short command, so that full rings of a
 * job do not send the waiting commands of others to their workers.  A thread, which can be
 * rescheduled afterwards, has a budget of its own.
 *
 * Context: bottom halves off; the budget may be used until they are enabled or the softirq returns.
 * Return: the budget.
 */
struct acp_budget *acp_budget_of_softirq(struct acp_budget *own);

#endif /* ACP_BUDGET_H */
