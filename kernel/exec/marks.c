// SPDX-License-Identifier: GPL-2.0-only
/* Marks of busy queues: see marks.h. */
#include "marks.h"

void acp_marks_set(struct acp_queue *queue)
{
	struct xarray *queues = &queue->rank->queues;

	smp_mb();	/* what was taken, before the mark is read: pairs with acp_marks_clear() */
	if (READ_ONCE(queue->marked) || !acp_marks_is_busy(queue))
		return;
	xa_lock(queues);
	__xa_set_mark(queues, acp_queue_number(queue), ACP_MARK_BUSY);
	WRITE_ONCE(queue->marked, true);
	xa_unlock(queues);
	WRITE_ONCE(queue->rounds, 0);
	smp_mb();	/* the mark, before what may start: pairs with acp_station_idle() */
}

bool acp_marks_clear(struct acp_queue *queue)
{
	struct xarray *queues = &queue->rank->queues;

	xa_lock(queues);
	__xa_clear_mark(queues, acp_queue_number(queue), ACP_MARK_BUSY);
	WRITE_ONCE(queue->marked, false);
	xa_unlock(queues);
	smp_mb();	/* the mark, before what was taken is read: pairs with acp_marks_set() */
	if (!acp_marks_is_busy(queue))
		return false;
	acp_marks_set(queue);
	return true;
}
