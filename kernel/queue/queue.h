/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queues of a rank: their rings, their commands in flight, and their completions, which are
 * published in order.  exec/drain.c takes entries and decides when each may start.  The memory
 * barriers of the rings are here, in queue.c and in drain.c; acp_abi.h documents their protocol.
 *
 * Lifetime: a queue, a rank's own (rank.h) or an additional one (attach.h), has a reference for
 *	its open file, until it is closed
 *	each item of its commands that a transport still has
 *	each long copy that one of its commands began (copies.c)
 *	the rank's worker, while it drains the queue, if that is an additional one
 * and a rank's own queue also has those that rank.h lists.  When the last reference is dropped, the
 * rings are uncharged from the user; a grace period later they and the structure are freed.  An
 * additional queue holds its rank until then, so the rank exists whenever a command completes.
 */
#ifndef ACP_QUEUE_H
#define ACP_QUEUE_H

#include <linux/hrtimer.h>
#include <linux/kref.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include "budget.h"
#include "../core/word.h"
#include "../net/transport.h"

#define ACP_INFLIGHT	256	/* commands taken and not complete; 2^n */

struct acp_node;
struct acp_rank;

enum acp_cmd_state {
	ACP_CMD_FREE,
	ACP_CMD_WAITING,	/* for its order */
	ACP_CMD_STARTED,
	ACP_CMD_PARKED,		/* found a buffer full, will be WAITING again: ACP_SQE_RETRY */
	ACP_CMD_GRANTED,	/* its bytes may be sent, will be WAITING again */
	ACP_CMD_WATCHING,	/* waits for a word, queue->word: ACP_OP_WAIT */
	ACP_CMD_ENDED,		/* ended, waits for earlier ones to be published */
};

/* A command in flight: its own copy of the entry, and the item it sends. */
struct acp_cmd {
	struct acp_item item;	/* item.out.m: the command itself */
	u64 order, seen;
	struct acp_step step;
	union {
		u32 epoch[2];	/* of flows that answers are expected on: [ACP_EXPECT_ - 1] */
		u64 again;	/* PARKED: ns, when to start again */
	};
	u64 until;		/* ns, until when to start again; 0: it was not PARKED yet; or */
				/* ACP_CMD_SHOWN: its end is shown at once, see show_end() */
	u64 place;		/* address of the full buffer or mailbox, if until is set */
	u64 older;		/* with retry: none at its place is in (older, ticket); drainer */
	u8 state;		/* enum acp_cmd_state; under the queue lock once STARTED */
	u8 status;
	u8 former;		/* status that the slot had whose end is shown, see show_end() */
	bool busy;		/* the transport still has the item; cleared with a release */
	u8 flags;		/* ACP_SQE_ */
	bool retry;		/* if the buffer is full, start again: ACP_SQE_RETRY, or WAIT */
	u8 tries;		/* times that it found no room, at most ACP_RETRY_SHIFT */
	u8 refused;		/* the same, modulo 256 */
	u8 older_refused;	/* that of the one that it is behind, when it was started */
	u32 sent;		/* incarnation of the flow in which its data were sent; drainer */
	u32 older_sent;		/* that of the one that it is behind; drainer */
	u8 expected;		/* ACP_EXPECT_: answers that are due; under the queue lock */
	bool rendezvous;	/* its bytes are not sent before they are granted an entry */
	bool asked;		/* it has asked for that; set by the drainer before it asks */
	bool granted;		/* they were; under the queue lock until it is WAITING again */
	union {
		u64 entry;	/* as it is in ACP_MSG_GRANT */
		u64 losses;	/* WAIT: of job->losses, when it was taken */
	};
};

#define ACP_CMD_SHOWN	1	/* in acp_cmd.until: it sends what was granted */

/*
 * A PARKED command starts again after ACP_RETRY_NS, then twice that, and so on; and after a ns per
 * byte more, since each try sends all of them.
 */
#define ACP_RETRY_NS	(50ULL * NSEC_PER_USEC)
#define ACP_RETRY_SHIFT	8	/* 12.8 ms at most */

struct acp_retry {
	struct hrtimer timer;	/* see poller.c */
	u64 at;			/* ns, when it expires, or ~0; under the queue lock */
};

/* Doorbell moderation, see poller.c: while the timer runs, the ring is polled without doorbells. */
struct acp_moderation {
	struct hrtimer timer;
	u32 bells, wanted;	/* doorbells so far; doorbells after which it may begin */
	u64 first_bell;		/* ns, time of the first of these */
	u64 most;		/* most commands taken in one drain since the timer was started */
	u8 vain;		/* consecutive runs of the timer that found little */
	bool was_worth;		/* one found several commands, or more than its budget */
};

/*
 * Grouped by cache lines, as they are without debugging options: fields that are mostly read,
 * fields that the drainer writes, fields that completion writes, and the rest.
 */
struct acp_queue {
	struct acp_rank *rank;
	struct acp_job *job;	/* the rank's */
	u32 origin;		/* the rank's number, for messages */
	u32 depth;
	/* the ring is written by the user: no value can be trusted */
	struct acp_sq *sq;
	struct acp_sqe *entries;
	struct acp_cq *cq;	/* written by the kernel, read-only for the user */
	struct acp_cmd *cmds;	/* [ACP_INFLIGHT], see acp_queue_cmd() */
	bool closed;		/* the rank has left, or the additional queue was closed */
	bool counted;		/* added to rank->gone; under the node's poll_lock */
	u32 ring_kib;		/* charged to the user */

	/* draining, by one caller at a time; see drain.h */
	atomic_t drain;
	u32 waiting;		/* commands WAITING, but for those held; drainer only */
	u64 first;		/* the ticket before that of the first command */
	u64 taken;		/* last ticket taken; drainer only */
	struct acp_run run;	/* drainer only */
	u64 message;		/* the last one that was sent to be tried once; drainer only */
	bool starved;		/* entries are left because no command is free */
	bool behind;		/* a poll round left entries, and no drain has finished since */
	bool marked;		/* in the rank's table, see marks.h; under the table's lock */
	bool resume_due;	/* retry_due, or the word may have changed */
	bool retry_due;		/* the timer of parked commands has expired, or one has ended */
	u64 room;		/* address at which one of them has found room since; under lock */
	u32 grants;		/* others that may start there now; under lock */
	u32 rounds;		/* poll rounds since it was busy; a hint */
	u32 held;		/* commands WAITING that are behind "word"; drainer only */
	u64 word;		/* the ticket that is WATCHING, completed + 1; 0: none; drainer */

	spinlock_t lock;	/* bh; guards the states of commands and publishing */
	struct kref refs;
	u64 completed;		/* last ticket published; cq->completed follows */
	u64 failed;
	u64 last_failed;	/* highest ticket that failed */
	u64 doomed;		/* ticket that inherits the failure of the previous one; 0: none */
	u8 doom;		/* status of the previous one */
	struct list_head copies;	/* waiting long copies, see copies.c; under lock */

	atomic_t helpers;	/* system calls that will do these copies */
	wait_queue_head_t wait;
	u64 armed;		/* ticket poll() waits for; ~0: none */
	u64 polled;		/* tickets taken plus completed, when the poller last scanned */
	struct acp_moderation moderation;
	struct acp_retry retry;
	u32 named[ACP_WAIT_NAMES];	/* epochs in which peers are expected; drainer */
	size_t sq_bytes, cq_bytes;
	struct list_head poll_link;	/* in the node's list, RCU */
	struct list_head job_link;	/* in the job's list of queues, RCU */
	struct rcu_head rcu;
};

void acp_queue_free(struct kref *ref);

/**
 * acp_queue_get() - take another reference to a queue
 * @queue: the queue, of which the caller has a reference
 *
 * Context: any.
 */
static inline void acp_queue_get(struct acp_queue *queue)
{
	kref_get(&queue->refs);
}

/**
 * acp_queue_get_if_there() - take a reference unless the last one was dropped
 * @queue: the queue; RCU or something else keeps the structure
 *
 * Context: any.
 * Return: true if the caller has got a reference.
 */
static inline bool acp_queue_get_if_there(struct acp_queue *queue)
{
	return kref_get_unless_zero(&queue->refs);
}

/**
 * acp_queue_put() - drop a reference
 * @queue: the queue; see the top of this file for what the last reference does
 *
 * Context: process context or softirq.
 */
static inline void acp_queue_put(struct acp_queue *queue)
{
	kref_put(&queue->refs, acp_queue_free);
}

/* Drop n references of the caller's. */
static inline void acp_queue_put_some(struct acp_queue *queue, u32 n)
{
	if (refcount_sub_and_test(n, &queue->refs.refcount))
		acp_queue_free(&queue->refs);
}

/**
 * acp_queue_cmd() - the slot of a ticket
 * @queue: the queue
 * @ticket: any number
 *
 * Context: any.
 * Return: the slot, which may hold another command or none.
 */
static inline struct acp_cmd *acp_queue_cmd(struct acp_queue *queue, u64 ticket)
{
	return &queue->cmds[ticket & (ACP_INFLIGHT - 1)];
}

/**
 * acp_queue_number() - number of a queue within its rank
 * @queue: the queue
 *
 * Context: any.
 * Return: 0 for the rank's own queue, otherwise 1 to ACP_QUEUE_LAST.
 */
static inline u32 acp_queue_number(const struct acp_queue *queue)
{
	return queue->first >> ACP_TICKET_BITS;
}

/**
 * acp_queue_completed() - last ticket that is complete, as the user sees it
 * @queue: the queue
 *
 * While commands are being published, queue->completed is ahead of it, and must not be reported to
 * the user.
 *
 * Context: any.
 * Return: the ticket.
 */
static inline u64 acp_queue_completed(const struct acp_queue *queue)
{
	return READ_ONCE(queue->cq->completed);
}

/**
 * acp_queue_price() - check the depth of a queue, and compute the memory of its rings
 * @node: the node, which has a limit of depths
 * @depth: entries of the ring
 * @kib: the KiB are added to it
 *
 * Context: any.
 * Return: 0; -EINVAL if the depth is not valid; acp_over() if it is above the limit.
 */
int acp_queue_price(const struct acp_node *node, u32 depth, unsigned long *kib);

/**
 * acp_queue_create() - allocate the rings of a queue
 * @queue: the queue
 * @depth: entries of the ring, as checked by acp_queue_price()
 * @number: of the queue within its rank; 0: the rank's own
 *
 * The caller has charged the memory to the user.  It is in queue->ring_kib afterwards, even on
 * failure: dropping the last reference uncharges it, and frees what was allocated.
 *
 * Context: process context, may sleep.
 * Return: 0 or -ENOMEM.
 */
int acp_queue_create(struct acp_queue *queue, u32 depth, u32 number);

/**
 * acp_queue_available() - entries in the ring that were not taken yet
 * @queue: the queue
 *
 * Context: any.
 * Return: their number; 0 if the user's tail is not valid.
 */
static inline u64 acp_queue_available(const struct acp_queue *queue)
{
	u64 n;

	/* (B): read the tail before the entry; pairs with the user's (A) */
	n = smp_load_acquire(&queue->sq->tail) - READ_ONCE(queue->taken);
	return n <= queue->depth ? n : 0;
}

/**
 * acp_queue_ready() - is it worth draining a queue?
 * @queue: the queue
 *
 * Context: any.
 * Return: true if there are entries to take, or commands that wait to start; false if the queue is
 * closed.
 */
static inline bool acp_queue_ready(const struct acp_queue *queue)
{
	if (READ_ONCE(queue->closed))
		return false;
	return READ_ONCE(queue->waiting) || READ_ONCE(queue->starved) ||
	       acp_queue_available(queue) || READ_ONCE(queue->resume_due);
}

/**
 * acp_queue_retry_wait() - the time from one try of a command to the next one
 * @cmd: the command, PARKED or about to be
 *
 * Context: any.
 * Return: the time in ns.
 */
static inline u64 acp_queue_retry_wait(const struct acp_cmd *cmd)
{
	return (ACP_RETRY_NS << cmd->tries) + cmd->item.out.m.size;
}

/**
 * acp_queue_retry_at() - start the timer for commands that start again
 * @queue: the queue
 * @again: ns, when the first one does; an earlier one has started it already
 *
 * Context: bottom halves off, queue->lock held.
 */
static inline void acp_queue_retry_at(struct acp_queue *queue, u64 again)
{
	if (again >= queue->retry.at)
		return;
	queue->retry.at = again;
	hrtimer_start(&queue->retry.timer, ns_to_ktime(again), HRTIMER_MODE_ABS_SOFT);
}

/**
 * acp_queue_resume() - let the next drain look at parked commands, or at the word
 * @queue: the queue
 *
 * Context: any; the caller, or somebody after it, drains the queue.
 */
static inline void acp_queue_resume(struct acp_queue *queue)
{
	/* What has changed, first: pairs with xchg() in resume(). */
	smp_store_release(&queue->resume_due, true);
}

/**
 * acp_queue_complete() - end a command that was started
 * @queue: the queue
 * @ticket: ticket of the command; may be any number that a message contains
 * @status: ACP_ST_
 *
 * Publishes it if all earlier commands have ended.  The caller calls acp_station_idle() later.
 *
 * Context: bottom halves off, no lock held.
 * Return: false if there is no such command, or it has ended before.
 */
bool acp_queue_complete(struct acp_queue *queue, u64 ticket, u8 status);

/**
 * acp_queue_park_behind() - let a command wait behind an older one that waits for room
 * @queue: the queue
 * @cmd: a command with ACP_SQE_RETRY, not started
 *
 * Context: bottom halves off, drainer only.
 * Return: ACP_ST_OK: it is PARKED, and becomes due when the older one ends; otherwise ACP_ST_ that
 * it has to end with.
 */
u8 acp_queue_park_behind(struct acp_queue *queue, struct acp_cmd *cmd);

/**
 * acp_queue_asks() - does a command still wait for a grant, or send what was granted?
 * @queue: the queue
 * @ticket: the command
 * @mailbox: its destination
 *
 * Context: bottom halves off.
 * Return: true if the command has not ended.
 */
bool acp_queue_asks(struct acp_queue *queue, u64 ticket, u64 mailbox);

/**
 * acp_queue_accepted() - a command that asks waits for no room any more
 * @queue: the queue
 * @cmd: the command, in its slot
 *
 * Others that are parked behind it may start.  acp_station_idle() must follow, or a drain.
 *
 * Context: bottom halves off.
 */
void acp_queue_accepted(struct acp_queue *queue, struct acp_cmd *cmd);

/**
 * acp_queue_grant() - let a command send its bytes that has asked for it
 * @queue: the queue
 * @ticket: the command
 * @mailbox: its destination
 * @entry: where they go
 *
 * Has no effect on a command that was granted an entry before.
 *
 * Context: bottom halves off.
 * Return: false if there is no such command.
 */
bool acp_queue_grant(struct acp_queue *queue, u64 ticket, u64 mailbox, u64 entry);

/**
 * acp_queue_older_refused() - has the message that one is behind found no room meanwhile?
 * @queue: the queue
 * @item: item of a command of the queue, acp_msg_is_behind()
 *
 * Context: any.
 * Return: true if it has found none since the command was started.
 */
bool acp_queue_older_refused(struct acp_queue *queue, const struct acp_item *item);

/**
 * acp_queue_delivered() - end puts of a queue that were delivered
 * @queue: the queue
 * @link: link of the first item, which is a put of this queue
 * @end: head of the list
 *
 * Does for all consecutive puts of the queue what acp_queue_complete() and acp_queue_item_back() do
 * for each, under one lock and with one wake-up.
 *
 * Context: bottom halves off, no lock held.
 * Return: link of the first item that is not a put of this queue, or @end.
 */
struct list_head *acp_queue_delivered(struct acp_queue *queue, struct list_head *link,
				      const struct list_head *end);

/**
 * acp_queue_end() - end a command that was not started
 * @queue: the queue
 * @cmd: the command, filled in
 * @status: ACP_ST_
 *
 * Called by the queue's drainer, or when nothing drains it any more.
 *
 * Context: bottom halves off, no lock held.
 */
void acp_queue_end(struct acp_queue *queue, struct acp_cmd *cmd, u8 status);

/**
 * acp_queue_item_back() - the transport has finished with the item of a command
 * @queue: the queue; the reference of the item is dropped
 * @cmd: the command
 *
 * Context: process context or softirq.
 */
void acp_queue_item_back(struct acp_queue *queue, struct acp_cmd *cmd);

/**
 * acp_queue_failed() - has any command of a range failed?
 * @queue: the queue
 * @from: first ticket
 * @to: last ticket, included; tickets that were not taken yet are ignored
 *
 * Checks commands that have ended, and of those that are published only the last ones, whose status
 * the ring still has.
 *
 * Context: any.
 * Return: true if one is known to have failed.
 */
bool acp_queue_failed(struct acp_queue *queue, u64 from, u64 to);

/**
 * acp_queue_lost() - end the commands that expect an answer from an earlier incarnation of a flow
 * @queue: the queue
 * @node: node of the peer
 * @color: color of the peer
 * @epoch: incarnation that the flow has now
 * @status: ACP_ST_ that the commands end with
 *
 * Context: bottom halves off, no lock held.
 */
void acp_queue_lost(struct acp_queue *queue, u32 node, u32 color, u32 epoch, u8 status);

/* Set ACP_CQ_ABORTED in the ring, and wake all waiters of the queue. */
void acp_queue_abort(struct acp_queue *queue);

/**
 * acp_queue_abort_all() - do this for all queues of a rank, and wake its watchers
 * @rank: the rank
 *
 * Context: process context or softirq; RCU or the caller keeps the queues.
 */
void acp_queue_abort_all(struct acp_rank *rank);

/**
 * acp_queue_unexpect() - expect nothing more of the nodes of ranks that a command names
 * @queue: the queue; queue->named has the incarnations in which they are expected
 * @cmd: the command, an ACP_OP_WAIT
 *
 * Context: bottom halves off, drainer only.
 */
void acp_queue_unexpect(struct acp_queue *queue, const struct acp_cmd *cmd);

/**
 * acp_queue_unwatch() - do not wait for the word of queue->word any more
 * @queue: the queue; the command itself stays as it is
 *
 * Context: bottom halves off, drainer only.
 */
void acp_queue_unwatch(struct acp_queue *queue);

/**
 * acp_queue_cut() - end all commands of a queue
 * @queue: the queue, marked as closed
 *
 * What they expect of other nodes is expected no more.  Nothing drains the queue afterwards.
 * Called once.
 *
 * Context: process context, sleeps.
 */
void acp_queue_cut(struct acp_queue *queue);

/**
 * acp_queue_need_wakeup() - set or clear the flag that asks the user for doorbells
 * @queue: the queue
 * @set: true: ask for doorbells; false: the ring is polled
 *
 * If the queue is closed or the job was aborted, the flag is set in any case.
 *
 * Context: any.
 * Return: true if the caller may stop polling: @set is false, or no entry is left that could be
 * taken.
 */
bool acp_queue_need_wakeup(struct acp_queue *queue, bool set);

#endif /* ACP_QUEUE_H */
