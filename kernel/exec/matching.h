/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Match lists of ranks: posted receives, and messages that none of them has matched, see
 * ACP_IOC_MATCH in acp_abi.h.  core/match.h decides what matches; here are the lists, and
 * their memory of the owner: results, and the bytes of kept messages.
 *
 * The owner can write anything to that memory at any time.  The kernel only writes there, and all
 * that it needs to know is in its own memory.
 *
 * Lifetime: a list is removed by its owner when no message is arriving, or when its rank leaves.
 * It is found under RCU by (rank, number), and freed a grace period after its removal.
 */
#ifndef ACP_MATCHING_H
#define ACP_MATCHING_H

#include "../core/landing.h"
#include "../job/job.h"

struct acp_match_list;
struct acp_rank;

/**
 * acp_matching_create() - ACP_IOC_MATCH
 * @rank: the caller's rank
 * @a: the request, which receives the number of the list
 *
 * Context: Process context.
 * Return: 0, -EINVAL, -ENOSPC, -ENOMEM, or acp_over() if a limit is reached.
 */
int acp_matching_create(struct acp_rank *rank, struct acp_match *a);

/**
 * acp_matching_post() - ACP_IOC_POST
 * @rank: the caller's rank
 * @p: the request, which receives the message that was found
 *
 * Context: Process context.
 * Return: 1 if a message was found, 0, -EINVAL, -ENOENT, -EBUSY, -EAGAIN or -EMSGSIZE.
 */
int acp_matching_post(struct acp_rank *rank, struct acp_post *p);

/**
 * acp_matching_unpost() - ACP_IOC_UNPOST
 * @rank: the caller's rank
 * @u: the request
 *
 * Context: Process context; waits for a grace period if a list is removed.
 * Return: 0, -EINVAL, -ENOENT or -EBUSY.
 */
int acp_matching_unpost(struct acp_rank *rank, const struct acp_unpost *u);

/**
 * acp_matching_leave() - free all match lists of a rank that leaves
 * @rank: the rank, which nobody can find any more
 *
 * Context: Process context.
 */
void acp_matching_leave(struct acp_rank *rank);

/**
 * acp_matching_find() - find a match list
 * @job: the job
 * @ga: an address of its owner
 * @number: number of the list
 *
 * Context: RCU read side, or BH off, as long as the list is used.
 * Return: The list, or NULL if there is none.
 */
struct acp_match_list *acp_matching_find(struct acp_job *job, u64 ga, u32 number);

/**
 * acp_matching_begin() - find where a message goes
 * @list: the match list that the mailbox names, or NULL
 * @m: the message; m->dst is the address of a mailbox
 * @size: bytes of the message
 * @tag: its tag; with ACP_MSG_GRANTED the entry
 * @place: receives where its bytes go, if the status is ACP_ST_OK; acp_matching_end() must follow
 *
 * If nothing is to be written, the address of the place is that of the mailbox.
 *
 * Context: BH off.
 * Return: ACP_ST_OK, ACP_ST_AGAIN or ACP_ST_RANGE.
 */
u8 acp_matching_begin(struct acp_match_list *list, const struct acp_msg *m, u64 size, u64 tag,
		      struct acp_place *place);

/**
 * acp_matching_ask() - a message asks for a receive before its bytes are sent (rendezvous)
 * @list: the match list that the mailbox names, or NULL
 * @m: the message, with the operands of ACP_MSG_ASK
 * @epoch: incarnation of the flow that it came in, if it came from another node
 *
 * Sooner or later the message is granted an entry, or refused: see grant.h.
 *
 * Context: BH off.
 * Return: ACP_ST_OK or ACP_ST_AGAIN.
 */
u8 acp_matching_ask(struct acp_match_list *list, const struct acp_msg *m, u32 epoch);

/**
 * acp_matching_gone() - a message that was granted an entry will not come
 * @job: the job
 * @m: the grant as it came back
 *
 * Context: BH off.
 */
void acp_matching_gone(struct acp_job *job, const struct acp_msg *m);

/**
 * acp_matching_tend() - repeat grants, and forget messages of senders that have gone
 * @job: the job
 *
 * Context: Process context.
 */
void acp_matching_tend(struct acp_job *job);

/**
 * acp_matching_end() - all bytes of a message are there, or will not come
 * @list: the list, or NULL if it is gone
 * @place: that of acp_matching_begin()
 * @status: ACP_ST_OK, or why they will not come
 *
 * Context: BH off.
 * Return: @status; if that is ACP_ST_OK, why the message has failed nevertheless.
 */
u8 acp_matching_end(struct acp_match_list *list, const struct acp_place *place, u8 status);

/**
 * acp_matching_undo() - undo acp_matching_begin(): the message will come again
 * @list: the list
 * @place: that of acp_matching_begin()
 *
 * Context: BH off.
 */
void acp_matching_undo(struct acp_match_list *list, const struct acp_place *place);

#endif /* ACP_MATCHING_H */
