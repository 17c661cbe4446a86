/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Grants: the node of a match list tells the sender of a message that asked (rendezvous) where its
 * bytes may go.  The sender's command waits for that, see acp_queue_grant().
 *
 * The list counts on no answer but the bytes.  Where it cannot send a grant for lack of memory, it
 * sends it later, and it repeats each one until bytes come; a sender that does not have the command
 * any more sends the grant back.
 */
#ifndef ACP_GRANT_H
#define ACP_GRANT_H

#include "../job/job.h"

/**
 * acp_grant_send() - send a grant
 * @job: the job
 * @m: ACP_MSG_GRANT
 * @color: color of the flow, if the sender is at another node
 *
 * Context: BH off.
 * Return: the incarnation of the flow that has the grant; 0: there was no memory, or the command of
 * a rank of this node has gone.
 */
u32 acp_grant_send(struct acp_job *job, const struct acp_msg *m, u32 color);

/**
 * acp_grant_return() - send a grant back to another node
 * @job: the job
 * @m: ACP_MSG_GRANT with ACP_MSG_FAIL
 *
 * Context: BH off.
 */
void acp_grant_return(struct acp_job *job, const struct acp_msg *m);

/**
 * acp_grant_take() - take a grant for a command of this node
 * @job: the job
 * @m: ACP_MSG_GRANT
 *
 * Context: BH off.
 * Return: false if there is no such command.
 */
bool acp_grant_take(struct acp_job *job, const struct acp_msg *m);

/**
 * acp_grant_known() - is there still a command of this node that asked?
 * @job: the job
 * @rank: its rank
 * @ticket: the command
 * @mailbox: where it sends to
 *
 * Context: BH off.
 * Return: true if there is.
 */
bool acp_grant_known(struct acp_job *job, u32 rank, u64 ticket, u64 mailbox);

/**
 * acp_grant_refuse() - end a command that asks
 * @job: the job
 * @rank: its rank
 * @ticket: the command
 * @color: color of the flow, if the sender is at another node
 * @status: ACP_ST_ with which it ends
 *
 * Context: Process context, may sleep.
 */
void acp_grant_refuse(struct acp_job *job, u32 rank, u64 ticket, u32 color, u8 status);

#endif /* ACP_GRANT_H */
