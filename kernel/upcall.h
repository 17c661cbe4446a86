/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The upward calls: a lower layer reports an event to a higher one.  All other calls run downward,
 * which scripts/check/layers enforces; it reads the names of the upward calls from this file.
 *
 * The calls are direct, since a call through a table of function pointers would cost every put.
 */
#ifndef ACP_UPCALL_H
#define ACP_UPCALL_H

#include "core/landing.h"
#include "net/transport.h"

struct acp_job;

/**
 * acp_station_arrived() - execute the messages of a DATA frame
 * @peer: sender of the frame
 * @epoch: incarnation of the flow the frame belongs to
 * @skb: the frame; the caller keeps it
 * @cb: where the messages are: @cb->length bytes of @skb from @cb->at on
 *
 * The first @cb->tagged bytes of the messages are authenticated by the tag and
 * contiguous at @cb->body.  If these are not all bytes, the payload of the only
 * message follows them.  If the result is ACP_PENDING, the station calls
 * acp_peer_applied() later, with @epoch and @cb->seq.
 *
 * Context: BH off, in softirq; no lock held.
 * Return: what became of the frame, see enum acp_arrived.
 */
enum acp_arrived acp_station_arrived(struct acp_peer *peer, u32 epoch, struct sk_buff *skb,
				     const struct acp_frame_cb *cb);

/**
 * acp_station_pieces() - write consecutive pieces of one copy, which a GSO batch brought
 * @peer: sender of the frames
 * @epoch: incarnation of the flow in which they came
 * @m: message of the first piece, see acp_msg_in_run()
 * @skb: the batch; the caller keeps it
 * @pieces: where the payloads are
 *
 * Context: BH off, in softirq; no lock held.
 * Return: false if some of the pieces may not be written there, or could not be.
 */
bool acp_station_pieces(struct acp_peer *peer, u32 epoch, const struct acp_msg *m,
			const struct sk_buff *skb, const struct acp_pieces *pieces);

/**
 * acp_station_due() - ask whether an item may still have its effect
 * @item: item of which a message is about to be cut, the first one or a later one
 *
 * Context: BH off, peer->lock held.
 * Return: ACP_ST_OK; otherwise ACP_ST_ with which the caller sends the rest of
 * the item as failed, since a command that @item waits for has failed, or has
 * found no room.
 */
u8 acp_station_due(const struct acp_item *item);

/**
 * acp_station_done() - report what became of an item
 * @item: item that was delivered (@item->status is ACP_ST_OK) or never will be;
 *        the station owns it again
 *
 * Context: BH off; no lock held.
 */
void acp_station_done(struct acp_item *item);

/**
 * acp_station_delivered() - report that several items were delivered
 * @items: list of the items, by their links; may be empty
 *
 * The station owns the items again.  The list head is not valid after the call.
 *
 * Context: BH off, in softirq; no lock held.
 */
void acp_station_delivered(struct list_head *items);

/**
 * acp_station_lost() - report that an incarnation of a flow has ended
 * @peer: peer of the flow; the flow already has its new epoch
 * @status: ACP_ST_ code of the reason
 *
 * Results that queues expect of the peer's earlier incarnations will not come.
 *
 * Context: BH off, in softirq; no lock held.
 */
void acp_station_lost(struct acp_peer *peer, u8 status);

/**
 * acp_station_opened() - report that a flow has opened
 * @peer: peer of the flow
 *
 * The peer is told which ranks of this node have left.
 *
 * Context: BH off, in softirq; no lock held.
 */
void acp_station_opened(struct acp_peer *peer);

/**
 * acp_station_late() - let a worker process held frames for which a budget was too small
 * @peer: sender of the frames; its "behind" is set
 * @target: global address that the next of them is for, or 0
 *
 * The worker of that rank, or of another one of the job here, calls acp_peer_release() until
 * none is left.
 *
 * Context: BH off, in softirq; no lock held.
 * Return: false if the job has no rank here.
 */
bool acp_station_late(struct acp_peer *peer, u64 target);

/**
 * acp_station_abandon() - report that the rest of an indirect copy will not come
 * @job: job of the copy
 * @l: where it went
 *
 * No piece of it is being written any more.
 *
 * Context: BH off; no lock held.
 */
void acp_station_abandon(struct acp_job *job, const struct acp_landing *l);

/**
 * acp_station_idle() - start what may start at the end of a poll round over a peer's events
 * @job: job whose rings may be drained
 *
 * Context: BH off; no lock held.
 */
void acp_station_idle(struct acp_job *job);

/**
 * acp_station_tend() - let the periodic work of a job look at messages that have asked
 * @job: the job, whose peers have not been stopped
 * @now: at once; otherwise within a second
 *
 * Context: any.
 */
void acp_station_tend(struct acp_job *job, bool now);

/**
 * acp_station_copied() - report the end of a long copy
 * @job: job of the copy
 * @m: the command
 * @status: ACP_ST_ code of the copy
 * @done: item for the answer to @peer, of which the station takes ownership; NULL
 *        if the command is one of this node's
 * @peer: requester of the copy; NULL if @done is NULL
 *
 * acp_copies_start() began the copy.
 *
 * Context: BH off; no lock held.
 */
void acp_station_copied(struct acp_job *job, const struct acp_msg *m, u8 status,
			struct acp_item *done, struct acp_peer *peer);

#endif /* ACP_UPCALL_H */
