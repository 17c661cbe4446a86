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
 * acp_grant_ok() - may a node say that?
 * @job: the job
 * @m: ACP_MSG_GRANT, whose origin is a rank of the job
 * @from: the node
 *
 * Context: any.
 * Return: true if the mailbox is on the node that grants, and the sender on the other one.
 */
bool acp_grant_ok(struct acp_job *job, const struct acp_msg *m, u32 from);

/**
 * acp_grant_send() - send a grant
 * @job: the job
 * @m: ACP_MSG_GRANT
 * @color: color of the flow, if the sender is at another node
 * @epoch: the only incarnation of that flow in which it may be sent
 *
 * Context: BH off.
 * Return: false if there was no memory, or the command of a rank of this node has gone.
 */
bool acp_grant_send(struct acp_job *job, const struct acp_msg *m, u32 color, u32 epoch);

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
 * acp_grant_gone() - will the bytes of a message that asked not come any more?
 * @job: the job
 * @rank: its sender
 * @ticket: its command
 * @mailbox: where it was sent to
 * @color: color of the flow, if the sender is at another node
 * @epoch: incarnation of that flow in which it asked
 *
 * Context: BH off.
 * Return: true if the flow, or the command of a rank of this node, has ended.
 */
bool acp_grant_gone(struct acp_job *job, u32 rank, u64 ticket, u64 mailbox, u32 color, u32 epoch);

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
