/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sources of frames with a wrong tag, recorded until all ranks of a job have joined.  Most likely
 * the senders have another key; the ranks here can report that.
 */
#ifndef ACP_WRONG_KEY_H
#define ACP_WRONG_KEY_H

#include "../job/job.h"

/* Record that a frame with the source address of @node had a wrong tag.  Softirq. */
void acp_wrong_key_add(struct acp_job *job, u32 node, u8 color);

/**
 * acp_wrong_key_get() - read the record of a source of frames with a wrong tag
 * @job: the job
 * @w: @w->index selects the record; the other fields are filled in
 *
 * Context: process context; takes a spinlock with BH off.
 * Return: 0; or -ENOENT if there is no record with that index.
 */
int acp_wrong_key_get(struct acp_job *job, struct acp_wrong_key *w);

#endif /* ACP_WRONG_KEY_H */
