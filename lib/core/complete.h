/* SPDX-License-Identifier: MIT */
/* Failures that were not reported. */
#ifndef LIBACP_COMPLETE_H
#define LIBACP_COMPLETE_H

#include "core/queue.h"

#pragma GCC visibility push(hidden)

/* Check a queue for unreported failures; in the default error mode they end the job. */
void libacp_queue_check(struct libacp_queue *queue);

/* As libacp_queue_check(), for the queue of the process and that of the calling thread. */
void libacp_gma_check(void);

#pragma GCC visibility pop

#endif /* LIBACP_COMPLETE_H */
