/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Words that commands wait for: ACP_OP_WAIT.
 *
 * Completions are published in order, so only the first command of a queue that is not complete can
 * let others start.  If that is an ACP_OP_WAIT, it looks at its word; later ones do so in their
 * turn.  A queue therefore waits for one word at a time (queue->word), whose command is WATCHING,
 * and a write costs it one look, however many commands wait in its ring.
 *
 * queue->word and the marks in the rank's struct acp_watch are set before the word is read for the
 * last time, with a full barrier in between.  A writer has a full barrier between its write and
 * reading the marks.  So either the write is seen here, or the writer sees the marks and lets the
 * queue be drained.
 */
#ifndef ACP_WORD_H
#define ACP_WORD_H

#include "../queue/queue.h"

/**
 * acp_word_is_over() - does a command that waits for a word end now?
 * @queue: its queue
 * @cmd: the command
 * @status: set to the status with which it ends
 *
 * Context: bottom halves off, drainer only.
 * Return: true if it ends; what the writer wrote before the word can be read then.
 */
bool acp_word_is_over(struct acp_queue *queue, const struct acp_cmd *cmd, u8 *status);

/**
 * acp_word_begin() - wait for a word, unless the command ends now
 * @queue: the queue, whose first command that is not complete this is
 * @cmd: the command
 * @status: set to the status with which it ends
 *
 * Context: bottom halves off, drainer only.
 * Return: true if it ends; false: queue->word is set, and the command is WATCHING.
 */
bool acp_word_begin(struct acp_queue *queue, struct acp_cmd *cmd, u8 *status);

#endif /* ACP_WORD_H */
