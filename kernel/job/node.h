/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A node is a network namespace with the module.  It owns the namespace's jobs,
 * their sockets, the poller and the counters.
 *
 * A peer is another node of a job, with a flow on one color.  It is created
 * when the first message is to be sent to it or the first frame arrives from it.
 */
#ifndef ACP_NODE_H
#define ACP_NODE_H

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/ratelimit.h>
#include <net/net_namespace.h>
#include "../net/aead.h"
#include "rank.h"
#include "../core/doubt.h"
#include "../core/fate.h"
#include "../core/hello.h"
#include "../core/landing.h"
#include "job.h"
#include "limits.h"
#include "settings.h"
#include "../stats.h"

struct acp_poller {
	struct task_struct *task;
	wait_queue_head_t wait;
	bool asleep;
	u64 first_bell;		/* ns; start of the interval in which doorbells are counted */
	u32 bells;
	u32 turn;		/* index of the ring that is polled first; poller thread only */
};

struct acp_node {
	struct net *net;
	struct mutex lock;	/* guards adding and removing jobs, members, sockets */
	struct xarray jobs;	/* acp_job_index -> job; RCU */
	u32 n_jobs;		/* including those that linger */
	struct acp_cache job_cache;
	struct list_head sockets;
	struct acp_demux *demux;	/* created with the first socket */
	struct acp_stats __percpu *stats;
	unsigned int bypass;	/* net.acp.bypass: enum acp_bypass */
	spinlock_t poll_lock;	/* guards the list; readers: RCU */
	struct list_head poll_list;	/* queues */
	struct acp_poller poller;
	struct acp_limits limits;
	struct acp_settings settings;
	atomic_t pings;		/* in progress, of all jobs */
	struct ratelimit_state limit_events;	/* namespaces do not share the rate */
	bool dying;
};

/**
 * acp_node_init() - create the nodes of all network namespaces
 *
 * Context: loading of the module.
 * Return: 0 or -errno.
 */
int acp_node_init(void);

/**
 * acp_node_exit() - end all jobs and free the nodes
 *
 * Context: unloading of the module, after the device and netlink are gone.
 */
void acp_node_exit(void);

/**
 * acp_node_of() - the node of a network namespace
 * @net: the namespace
 *
 * Context: any.
 * Return: the node, which exists as long as @net.
 */
struct acp_node *acp_node_of(struct net *net);

/* How a rank leaves.  Unseen: nobody knows of the rank, so it may join again. */
enum acp_leave {
	ACP_LEAVE_UNSEEN,
	ACP_LEAVE_EARLY,
	ACP_LEAVE_FINISHED,	/* after a final barrier */
};

/**
 * acp_node_join() - a rank joins a job
 * @node: the node
 * @join: the request, validated here; its runs are read from user memory
 * @rank: the rank; its user is set, and rank->paid and rank->locked are set here
 *
 * Finds or creates the job and charges the rank's user for the rank and for the memory that it
 * needs.  A refused request leaves no trace.
 *
 * Context: the process that joins; may sleep.  Takes node->lock.
 * Return: the job, with a reference that acp_node_leave() gives up; or ERR_PTR() of an error of
 * ACP_IOC_JOIN or of acp_over().
 */
struct acp_job *acp_node_join(struct acp_node *node, const struct acp_join *join,
			      struct acp_rank *rank);

/**
 * acp_node_leave() - a rank leaves its job
 * @job: the job; its reference by acp_node_join() is given up
 * @rank: number of the rank
 * @how: how the rank leaves
 *
 * The rank has given back its memory before: listeners of the event find it free.
 *
 * Context: process, may sleep.  Takes the lock of the node.
 */
void acp_node_leave(struct acp_job *job, u32 rank, enum acp_leave how);

/**
 * acp_node_arrived() - a rank that has joined is in job->ranks from now on
 * @job: the job
 * @rank: number of the rank
 *
 * Context: process, may sleep.
 */
void acp_node_arrived(struct acp_job *job, u32 rank);

/**
 * acp_job_find() - find a job of a node
 * @node: the node
 * @id: id of the job
 * @generation: generation of the job
 *
 * No reference is taken.
 *
 * Context: RCU read side, or BH off, or node->lock held.
 * Return: the job, or NULL.
 */
static inline struct acp_job *acp_job_find(struct acp_node *node, u32 id, u16 generation)
{
	struct acp_job *job = acp_cache_get(&node->job_cache, id);

	if (job && job->id == id && job->generation == generation)
		return job;
	return xa_load(&node->jobs, acp_job_index(id, generation));
}

/* ---- peers ---- */

/* The contents of a frame, kept until it is acknowledged. */
struct acp_sent {
	struct acp_item *piece;	/* the frame is a piece of this item; or NULL */
	union {
		struct {
			u64 offset;
			u32 length;
		};
		struct list_head items;	/* whole messages, of one item or several */
	};
};

/* Counters of a flow over all its incarnations; plain, under its peer's lock. */
struct acp_traffic {
	u64 tx_frames, tx_bytes;	/* of all types; bytes of UDP payload */
	u64 tx_retransmits;			/* of these, retransmissions */
	u64 rx_frames, rx_bytes;	/* authentic frames */
	u64 rx_duplicates;		/* of these, received before */
	u64 timeouts, opened, failed, restarted;
};

struct acp_peer {
	struct acp_job *job;
	u32 node;
	u8 color;
	u8 addr[16];

	spinlock_t lock;	/* bh; guards all below */
	struct acp_flow flow;
	struct acp_flow_slot *slots;	/* like sent[]: allocated until the peer is idle */
	struct acp_sent *sent;
	struct list_head pending;	/* items not yet cut completely */
	struct list_head answers;	/* DONEs that hold an arrival: see ACP_FLOW_ANSWERS */
	struct sk_buff_head held;	/* fenced frames that arrived too early */
	struct acp_failures failures;	/* no table: no failure is remembered */
	struct acp_failures refusals;	/* of messages that found no room and are tried again */
	struct acp_landings *landings;	/* of indirect copies that arrive in pieces; or NULL */
	struct list_head dropped;	/* items of a flow that failed */
	u8 dropped_status;
	bool behind;			/* a worker processes held frames: acp_peer_release() */
	bool lost;			/* acp_station_lost() is due */
	bool opened;			/* acp_station_opened() is due */
	struct acp_fates fates;
	u64 loss;			/* number of its last loss among job->losses, 0: none */
	struct sk_buff *batch;		/* the last one of a round that frames may join */
	bool measured;			/* the path's MTU has been checked in this round */
	struct dst_entry *dst;
	u32 dst_cookie;
	u32 mtu;			/* bytes of a datagram's payload */
	u16 narrow;			/* bytes of IP that the path accepts, 0: see route */
	u64 narrow_until;		/* ns, when to try again */
	struct acp_doubt doubt;		/* of the path's MTU */
	bool retry;			/* memory was short: try again soon */
	bool wanted;			/* the flow is to be opened: acp_peer_ready() */
	bool dead;
	bool confirmed;			/* acknowledged since the neighbour entry was confirmed */
	u64 used;			/* ns, when last busy */
	struct acp_traffic traffic;

	atomic_t delegated;	/* commands in progress for this peer */
	atomic_t asked;		/* answers that are expected, but not to delegated commands */
	u32 delegated_paid;	/* number charged to the job's user; under the lock */
	u64 armed;		/* when the timer will fire, ~0: not armed */
	struct hrtimer timer;
	struct tasklet_struct work;
	struct acp_secret secret;	/* only if frames are encrypted */
	struct rcu_head rcu;
};

/* KiB that kmalloc() takes for an object: a power of two, up to its largest cache. */
#define ACP_KMALLOC_KIB(size)	((roundup_pow_of_two(size) + SZ_1K - 1) / SZ_1K)

/*
 * A peer charges the job's user for what the allocators take, not for what was requested:
 * the peer itself and a node of the job's table, since peers with distant numbers share none;
 * its slots, which are whole pages, while it is in use; and its tables of failures.  A held frame
 * is charged by its buffer.
 */
#define ACP_PEER_KIB	(ACP_KMALLOC_KIB(sizeof(struct acp_peer)) + \
			 ACP_KMALLOC_KIB(sizeof(struct xa_node)))
#define ACP_SLOTS_BYTES	(ACP_FRAME_WINDOW * sizeof(struct acp_flow_slot))
#define ACP_SENT_BYTES	(ACP_FRAME_WINDOW * sizeof(struct acp_sent))
#define ACP_SLOTS_KIB	((PAGE_ALIGN(ACP_SLOTS_BYTES) + PAGE_ALIGN(ACP_SENT_BYTES)) / SZ_1K)
#define ACP_FAILS_KIB	ACP_KMALLOC_KIB(sizeof(struct acp_fails))

/*
 * Commands that are executed for a peer are charged in steps, until the peer is idle.  Each may
 * need an item, an arrival and a long copy.
 */
#define ACP_DELEGATED_STEP	16
#define ACP_DELEGATED_BYTES	512
#define ACP_DELEGATED_KIB	(ACP_DELEGATED_STEP * ACP_DELEGATED_BYTES / SZ_1K)

static_assert(sizeof(struct acp_peer) <= KMALLOC_MAX_CACHE_SIZE);
static_assert(sizeof(struct acp_fails) <= KMALLOC_MAX_CACHE_SIZE);

/* The key of a peer in its job's table. */
static inline unsigned long acp_peer_index(u32 node, u32 color)
{
	return (unsigned long)node * ACP_COLORS_MAX + color;
}

/**
 * acp_peer_find() - find a peer; never creates one
 * @job: the job
 * @node: the other node, less than job->nodes
 * @color: the color, less than job->colors
 *
 * The peer may be used until bottom halves are enabled again.  A dead job has no peers.
 *
 * Context: BH off.
 * Return: the peer, or NULL.
 */
static inline struct acp_peer *acp_peer_find(struct acp_job *job, u32 node, u32 color)
{
	struct acp_peer *peer = acp_cache_get(&job->peer_cache, node + color);

	if (peer && peer->node == node && peer->color == color)
		return peer;
	return xa_load(&job->peers, acp_peer_index(node, color));
}

/* The slow part of acp_peer_get(): create the peer unless it exists.  BH off. */
struct acp_peer *acp_peer_make(struct acp_job *job, u32 node, u32 color);

/**
 * acp_peer_get() - find a peer, or create it
 * @job: the job
 * @node: the other node, less than job->nodes
 * @color: the color, less than job->colors
 *
 * The peer may be used until bottom halves are enabled again.
 *
 * Context: BH off.
 * Return: the peer; NULL if the job is dead, memory is short or a limit is reached.
 */
static inline struct acp_peer *acp_peer_get(struct acp_job *job, u32 node, u32 color)
{
	struct acp_peer *peer = acp_peer_find(job, node, color);

	if (READ_ONCE(job->dead))
		return NULL;
	return peer ?: acp_peer_make(job, node, color);
}

/* Stop and free all peers of a job that was removed from the table.  Sleeps. */
void acp_peer_destroy_all(struct acp_job *job);

/**
 * acp_job_setup() - the configuration of a job that all its nodes must agree on
 * @job: the job
 *
 * Context: any.
 * Return: the configuration, for HELLO frames.
 */
static inline struct acp_setup acp_job_setup(const struct acp_job *job)
{
	return (struct acp_setup){ .nprocs = job->ga.nprocs, .nodes = job->nodes,
				   .digest = job->digest, .encrypted = acp_job_encrypted(job) };
}

/* ---- the transport as the station uses it (peer.c) ---- */

/**
 * acp_peer_send() - queue an item
 * @peer: the receiver
 * @item: the item, which the transport has until acp_station_done() or acp_station_delivered()
 * @within: the only incarnation of the flow in which the item may be sent, or 0: any
 *
 * acp_peer_flush() sends the item now; acp_peer_kick() sends it at the end of this poll round,
 * together with acknowledgements.  In an incarnation other than @within the item is dropped.
 *
 * A command of this node is answered: the answer is expected from now on, as by
 * acp_peer_expect(), in the incarnation returned.
 *
 * Context: BH off.  Takes peer->lock.
 * Return: the incarnation of the flow that the item belongs to.
 */
u32 acp_peer_send(struct acp_peer *peer, struct acp_item *item, u32 within);

/**
 * acp_peer_flush() - send queued items now, as far as the window allows
 * @peer: the receiver
 *
 * Context: BH off.  Takes peer->lock.
 */
void acp_peer_flush(struct acp_peer *peer);

/**
 * acp_peer_send_burst() - queue the items of consecutive puts, none of which is fenced
 * @peer: the receiver
 * @items: the items, which the transport has from now on; the list head is undefined afterwards
 * @epoch: the only incarnation of the flow in which they may be sent
 *
 * In another incarnation all of them are dropped.  Otherwise like acp_peer_send().
 *
 * Context: BH off.  Takes peer->lock.
 */
void acp_peer_send_burst(struct acp_peer *peer, struct list_head *items, u32 epoch);

/**
 * acp_peer_flush_burst() - acp_peer_send_burst() and acp_peer_flush() in one step
 * @peer: the receiver
 * @items: as in acp_peer_send_burst()
 * @epoch: as in acp_peer_send_burst()
 *
 * Context: BH off.  Takes peer->lock.
 */
void acp_peer_flush_burst(struct acp_peer *peer, struct list_head *items, u32 epoch);

/**
 * acp_peer_release() - process held frames whose turn has come, with one budget
 * @peer: the peer, after acp_station_late()
 *
 * Context: a thread with BH off.  Takes peer->lock, and calls the station.
 * Return: true if more are left.
 */
bool acp_peer_release(struct acp_peer *peer);

/**
 * acp_peer_release_here() - let the peer's tasklet process held frames, no worker does any more
 * @peer: the peer
 *
 * Context: BH off.  Takes peer->lock.
 */
void acp_peer_release_here(struct acp_peer *peer);

/**
 * acp_peer_kick() - let the peer's tasklet send queued items and acknowledgements
 * @peer: the receiver
 *
 * Context: BH off.
 */
static inline void acp_peer_kick(struct acp_peer *peer)
{
	tasklet_schedule(&peer->work);
}

/**
 * acp_peer_expect() - expect one more answer of the peer, other than acknowledgements
 * @peer: the peer
 *
 * The answer is expected in one incarnation of the flow: if that ends, the answer will not come.
 * While answers are expected, the flow fails if the peer is silent too long.
 *
 * Context: BH off.  Takes peer->lock.
 * Return: the incarnation, for acp_peer_unexpect().
 */
u32 acp_peer_expect(struct acp_peer *peer);

/**
 * acp_peer_unexpect() - an answer has come or is not expected any more
 * @peer: the peer
 * @epoch: the incarnation in which it was expected; does nothing if that has ended
 *
 * Context: BH off.  Takes peer->lock.
 */
void acp_peer_unexpect(struct acp_peer *peer, u32 epoch);

/**
 * acp_peer_awaited() - the number of answers that are expected
 * @peer: the peer
 *
 * Context: BH off; lockless, the number may change at once.
 * Return: the number.
 */
static inline u32 acp_peer_awaited(const struct acp_peer *peer)
{
	return READ_ONCE(peer->flow.expect);
}

/**
 * acp_peer_delegated() - the number of answers that are expected to delegated commands
 * @peer: the peer
 *
 * Context: BH off; lockless, the number may change at once.
 * Return: the number.
 */
static inline u32 acp_peer_delegated(const struct acp_peer *peer)
{
	s32 rest = acp_peer_awaited(peer) - atomic_read(&peer->asked);

	/* The two do not change in the same moment. */
	return max(rest, 0);
}

/**
 * acp_peer_epoch() - the current incarnation of the flow
 * @peer: the peer
 *
 * Context: BH off; lockless, the incarnation may end at once.
 * Return: the incarnation, not 0.
 */
static inline u32 acp_peer_epoch(const struct acp_peer *peer)
{
	return READ_ONCE(peer->flow.epoch);
}

/**
 * acp_peer_ready() - is the flow open?  If not, open it
 * @peer: the peer
 * @epoch: the incarnation that the caller waits for; 0 in the first call, which sets it
 * @status: set if the incarnation has ended or the job is ending: ACP_ST_
 *
 * Context: BH off.  Takes peer->lock.
 * Return: false if the flow is being opened: call again later.  True if it is open, or if @status
 * was set.
 */
bool acp_peer_ready(struct acp_peer *peer, u32 *epoch, u8 *status);

/**
 * acp_peer_applied() - a pending arrival has taken effect
 * @peer: the sender of the frame
 * @seq: number of the frame
 * @epoch: incarnation of the flow that the frame belongs to; does nothing if that has ended
 *
 * Context: BH off.  Takes peer->lock.
 */
void acp_peer_applied(struct acp_peer *peer, u64 seq, u32 epoch);

/**
 * acp_peer_pay_delegated() - charge for the commands that this node executes for a peer
 * @peer: the peer
 * @count: number of its commands in progress here, new ones included
 *
 * The job's user is charged for their memory until the peer is idle.
 *
 * Context: BH off.  Takes peer->lock.
 * Return: true if the commands may start.
 */
bool acp_peer_pay_delegated(struct acp_peer *peer, u32 count);

/**
 * acp_peer_pays_delegated() - charge for so many more commands, unless enough is charged already
 * @peer: the peer
 * @cmds: commands that are new
 *
 * Context: BH off.  Takes peer->lock.
 * Return: true if the commands may start.
 */
static inline bool acp_peer_pays_delegated(struct acp_peer *peer, u32 cmds)
{
	u32 count = atomic_read(&peer->delegated) + cmds;

	static_assert(sizeof(struct acp_item) + sizeof(struct acp_arrival) + 256 <=
		      ACP_DELEGATED_BYTES);
	return !cmds || count <= READ_ONCE(peer->delegated_paid) ||
	       acp_peer_pay_delegated(peer, count);
}

/**
 * acp_peer_failures_of() - where it is recorded that a message failed
 * @peer: the sender of the message
 * @m: the message
 *
 * Messages that find no room fail often, and are tried again: they have a record of their own, so
 * that they push out no other failure.
 *
 * Context: any.
 * Return: the record.
 */
static inline struct acp_failures *acp_peer_failures_of(struct acp_peer *peer,
							const struct acp_msg *m)
{
	return acp_msg_in_turn(m) ? &peer->refusals : &peer->failures;
}

/**
 * acp_peer_fail() - remember that a message of the peer failed; see core/cmd.h
 * @peer: the sender of the message
 * @epoch: incarnation of the flow in which it was accepted; what is over is not remembered
 * @m: the message
 * @status: ACP_ST_
 * @until: 0: remember it until the last piece of the command; else up to this frame number
 *
 * Context: BH off.  Takes peer->lock.
 * Return: false if there is no room for a failed piece: its frame must be refused.
 */
bool acp_peer_fail(struct acp_peer *peer, u32 epoch, const struct acp_msg *m, u8 status, u64 until);

/**
 * acp_peer_find_fail() - the slow part of acp_peer_take_fail()
 * @peer: as in acp_peer_take_fail()
 * @epoch: as in acp_peer_take_fail()
 * @m: as in acp_peer_take_fail()
 *
 * Context: BH off.  Takes peer->lock.
 * Return: as acp_peer_take_fail().
 */
u8 acp_peer_find_fail(struct acp_peer *peer, u32 epoch, const struct acp_msg *m);

/**
 * acp_peer_take_fail() - the status of a command's earlier pieces, which is then forgotten
 * @peer: the sender of the pieces
 * @epoch: incarnation of the flow in which the last one was accepted
 * @m: the last one
 *
 * Context: BH off.
 * Return: ACP_ST_OK if no piece is known to have failed, else ACP_ST_ of the failure.
 */
static inline u8 acp_peer_take_fail(struct acp_peer *peer, u32 epoch, const struct acp_msg *m)
{
	if (!READ_ONCE(acp_peer_failures_of(peer, m)->known))
		return ACP_ST_OK;
	return acp_peer_find_fail(peer, epoch, m);
}

/**
 * acp_peer_depends() - does a message depend on a command of the peer that failed?
 * @peer: the sender of the message
 * @epoch: incarnation of the flow in which it was accepted
 * @m: a message that depends on an earlier command
 *
 * Context: BH off.  Takes peer->lock if a failure is remembered.
 * Return: true if that command failed, or may have failed; if the message is acp_msg_is_behind(),
 * true if that command has found no room, or may have found none.
 */
bool acp_peer_depends(struct acp_peer *peer, u32 epoch, const struct acp_msg *m);

/**
 * acp_peer_found_room() - forget that a message found no room, now that it has found some
 * @peer: the sender of the message
 * @epoch: incarnation of the flow in which it was accepted
 * @m: the message, acp_msg_in_turn()
 *
 * Context: BH off.  Takes peer->lock if a refusal is remembered.
 */
void acp_peer_found_room(struct acp_peer *peer, u32 epoch, const struct acp_msg *m);

enum acp_peer_landing {
	ACP_LANDING_KNOWN,	/* an earlier piece has found the address */
	ACP_LANDING_FIRST,	/* the caller finds it, and calls acp_peer_land() */
	ACP_LANDING_BUSY,	/* refuse the frame: another CPU finds it, or there is no memory */
};

/**
 * acp_peer_landing() - find where an indirect copy goes of which a piece has arrived
 * @peer: the sender of the piece
 * @epoch: incarnation of the flow in which the piece was accepted
 * @m: the piece
 * @place: receives where the copy goes; valid if the result is ACP_LANDING_KNOWN and @status is
 *	ACP_ST_OK
 * @status: receives what the first piece found; valid if the result is ACP_LANDING_KNOWN
 *
 * Context: BH off.  Takes peer->lock.
 * Return: a value of enum acp_peer_landing.
 */
enum acp_peer_landing acp_peer_landing(struct acp_peer *peer, u32 epoch, const struct acp_msg *m,
				       struct acp_place *place, u8 *status);

/**
 * acp_peer_land() - record where an indirect copy goes
 * @peer: the sender
 * @epoch: as in acp_peer_landing(); nothing happens if that incarnation is over
 * @m: the piece for which acp_peer_landing() returned ACP_LANDING_FIRST
 * @place: where the copy goes
 * @status: ACP_ST_OK, or why it goes nowhere
 *
 * Context: BH off.  Takes peer->lock.
 * Return: false if nothing happened; then nothing may be written to @place.
 */
bool acp_peer_land(struct acp_peer *peer, u32 epoch, const struct acp_msg *m,
		   const struct acp_place *place, u8 status);

/**
 * acp_peer_forget_landing() - forget where a copy went, whose last piece was applied
 * @peer: the sender
 * @epoch: as in acp_peer_landing(); nothing happens if that incarnation is over
 * @m: the last piece
 * @landing: receives what was known; valid if the result is true
 *
 * Context: BH off.  Takes peer->lock.
 * Return: true if it was known where the copy went.
 */
bool acp_peer_forget_landing(struct acp_peer *peer, u32 epoch, const struct acp_msg *m,
			     struct acp_landing *landing);

/* ---- sockets (socket.c) ---- */

/**
 * acp_socket_open() - open the sockets of a job: one per color, and the sender
 * @job: the job
 *
 * Jobs of a node share the sockets of equal addresses and ports.  After an error the caller calls
 * acp_socket_close().
 *
 * Context: the process that joins; may sleep.  Under node->lock.
 * Return: 0, or an error of ACP_IOC_JOIN.
 */
int acp_socket_open(struct acp_job *job);

/**
 * acp_socket_close() - close the sockets of a job, as many as are open
 * @job: the job; its peers are gone
 *
 * Context: process, may sleep.  Under node->lock.
 */
void acp_socket_close(struct acp_job *job);

/**
 * acp_peer_init() - initialize the transport's part of a new peer
 * @peer: the peer; zeroed except for what acp_peer_make() has set
 *
 * Context: any.
 */
void acp_peer_init(struct acp_peer *peer);

/**
 * acp_peer_stop() - stop a peer: no more frames, timers and tasklets
 * @peer: the peer, of a dead job
 *
 * All its items are returned by acp_station_done() with ACP_ST_ABORT.
 *
 * Context: process, may sleep.
 */
void acp_peer_stop(struct acp_peer *peer);

/**
 * acp_peer_reclaim() - give back the memory of a peer that has been idle for some time
 * @peer: the peer
 *
 * The peer keeps the state of its flow.
 *
 * Context: process.  Takes peer->lock.
 */
void acp_peer_reclaim(struct acp_peer *peer);

/**
 * acp_peer_give_back() - give back all memory that a peer has beside the structure itself
 * @peer: the peer
 *
 * Context: under peer->lock, or when nobody else can find the peer any more.
 */
void acp_peer_give_back(struct acp_peer *peer);

/**
 * acp_peer_idle() - is there nothing to send and no answer to expect?
 * @peer: the peer
 *
 * Context: under peer->lock.
 * Return: true if the peer is idle.
 */
static inline bool acp_peer_idle(const struct acp_peer *peer)
{
	return acp_flow_idle(&peer->flow) && list_empty(&peer->pending) &&
	       list_empty(&peer->answers);
}

/**
 * acp_now() - the current time of all time-outs
 *
 * Context: any.
 * Return: monotonic time in ns.
 */
static inline u64 acp_now(void)
{
	return ktime_get_ns();
}

#endif /* ACP_NODE_H */
