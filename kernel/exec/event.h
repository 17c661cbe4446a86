/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events: what a job's ranks on this node can read about others, which are nodes that were lost or
 * came back, and ranks that left.  The last ACP_EVENTS events are kept; a rank that reads too late
 * gets the number of events it missed.
 *
 * And the state of a rank, as far as this node knows it without sending anything.
 */
#ifndef ACP_EVENT_H
#define ACP_EVENT_H

#include "../job/rank.h"
#include "../job/job.h"

/**
 * acp_event_add() - record an event and wake the ranks that poll for events
 * @job: the job
 * @record: the event; copied
 *
 * Context: process context or softirq; takes the lock of the events.
 */
void acp_event_add(struct acp_job *job, const struct acp_event_record *record);

/*
 * Record that a rank, of any node, has left without finalizing.  Returns false if that is known
 * already, or if ACP_LEFT_MAX ranks have left.
 */
bool acp_event_left(struct acp_job *job, u32 rank);

/**
 * acp_event_next() - read the next event of a rank without consuming it
 * @rank: the rank
 * @event: filled in
 * @number: filled in; for acp_event_take()
 *
 * Context: process context or softirq; takes the lock of the events.
 * Return: 0; -EAGAIN if there is none.
 */
int acp_event_next(struct acp_rank *rank, struct acp_event *event, u64 *number);

/**
 * acp_event_take() - consume an event
 * @rank: the rank
 * @number: the event, as acp_event_next() returned it
 *
 * Context: process context or softirq; takes the lock of the events.
 * Return: false if another thread has consumed it; the caller reads the next one.
 */
bool acp_event_take(struct acp_rank *rank, u64 number);

/**
 * acp_event_pending() - is there an event that the rank has not consumed?
 * @rank: the rank
 *
 * Context: any.
 * Return: true if acp_event_next() finds one.
 */
static inline bool acp_event_pending(const struct acp_rank *rank)
{
	return READ_ONCE(rank->job->events.count) != READ_ONCE(rank->events_read);
}

/**
 * acp_event_has_left() - is it known that a rank has left?
 * @job: the job
 * @rank: number of the rank, of any node, less than @job->ga.nprocs
 *
 * Context: process context or softirq.
 * Return: true if it has left; of other nodes, only ranks that have not finalized are known.
 */
bool acp_event_has_left(struct acp_job *job, u32 rank);

/**
 * acp_event_state() - state of a rank, as far as this node knows
 * @job: the job
 * @rank: number of the rank, of any node, less than @job->ga.nprocs
 * @status: filled in: ACP_ST_ of a rank that is down, otherwise ACP_ST_OK
 *
 * Context: process context or softirq.
 * Return: ACP_RANK_UNKNOWN, ACP_RANK_UP, ACP_RANK_DOWN or ACP_RANK_BACK.
 */
u32 acp_event_state(struct acp_job *job, u32 rank, u8 *status);

#endif /* ACP_EVENT_H */
