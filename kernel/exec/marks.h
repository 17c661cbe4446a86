/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Marks of busy queues: additional queues of a rank (attach.h) that had commands in flight lately
 * are marked in the table of the rank's queues, so idle queues cost a poll round nothing.
 *
 * A mark stays for some rounds after the queue has become idle, so a queue with one command at a
 * time does not take the lock of the table for each command.  Call all functions with BH off.
 */
#ifndef ACP_MARKS_H
#define ACP_MARKS_H

#include "../job/rank.h"

#define ACP_MARK_BUSY	XA_MARK_0

/* Does the queue have entries to take, or commands in flight?  Only its drainer begins commands. */
static inline bool acp_marks_is_busy(const struct acp_queue *queue)
{
	return acp_queue_ready(queue) || READ_ONCE(queue->taken) != READ_ONCE(queue->completed);
}

/*
 * Mark the queue if it is busy.  Its drainer calls this before it checks which commands may start,
 * so a poll round finds those that may start later.
 */
void acp_marks_set(struct acp_queue *queue);

/* Remove the mark.  Returns true if the queue has become busy meanwhile and is marked again. */
bool acp_marks_clear(struct acp_queue *queue);

#endif /* ACP_MARKS_H */
