/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A node: one network namespace with the module.  It owns the jobs there,
 * their sockets, the poller, the counters.  And peers: the other nodes of a
 * job, each with its flow on one color, made when it is first spoken to.
 */
#ifndef ACP_NODE_H
#define ACP_NODE_H

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/ratelimit.h>
#include <net/net_namespace.h>
#include "aead.h"
#include "context.h"
#include "core/flow.h"
#include "job.h"
#include "limits.h"
#include "settings.h"
#include "stats.h"

struct acp_poller {
	struct task_struct *task;
	wait_queue_head_t wait;
	bool asleep;
	u64 first_bell;		/* ns; start of the interval in which doorbells are counted */
	u32 bells;
};

struct acp_node {
	struct net *net;
	struct mutex lock;	/* jobs come and go, sockets */
	struct xarray jobs;	/* acp_job_index -> job; RCU */
	u32 n_jobs;		/* those that linger included */
	struct acp_near near_jobs;
	struct list_head sockets;
	struct acp_demux *demux;	/* made with the first socket */
	struct acp_stats __percpu *stats;
	spinlock_t poll_lock;	/* guards the list; readers: RCU */
	struct list_head poll_list;	/* contexts with a ring */
	struct acp_poller poller;
	struct acp_limits limits;
	struct acp_settings settings;
	atomic_t pings;		/* under way, of all jobs */
	struct ratelimit_state limit_notices;	/* no namespace may silence another one's */
	bool dying;
};

int acp_node_init(void);
void acp_node_exit(void);
struct acp_node *acp_node_of(struct net *net);

/* How a rank leaves.  Unseen: nobody has heard of it, and it may come again. */
enum acp_leave {
	ACP_LEAVE_UNSEEN,
	ACP_LEAVE_EARLY,
	ACP_LEAVE_FINISHED,	/* past a final barrier */
};

/*
 * Join or leave: the job is found or made, and the rank counted, with the memory
 * that it will need (ctx->paid): who is refused has made nothing.  Who leaves
 * has given back its memory before, so that those who are told find it free.
 * May sleep.  Errors as of ACP_IOC_JOIN.
 */
struct acp_job *acp_node_join(struct acp_node *node, const struct acp_join *join,
			      struct acp_context *ctx);
void acp_node_leave(struct acp_job *job, u32 rank, enum acp_leave how);

/* The rank, which has joined, is in job->ranks now. */
void acp_node_arrived(struct acp_job *job, u32 rank);

/* A job of this node, or NULL.  RCU. */
static inline struct acp_job *acp_job_find(struct acp_node *node, u32 id, u16 generation)
{
	struct acp_job *job = acp_near_look(&node->near_jobs, id);

	if (job && job->id == id && job->generation == generation)
		return job;
	return xa_load(&node->jobs, acp_job_index(id, generation));
}

/* ---- peers ---- */

/* A frame's contents, kept until it is acknowledged. */
struct acp_sent {
	struct acp_item *piece;	/* it is a piece of this one; or NULL */
	union {
		struct {
			u64 offset;
			u32 length;
		};
		struct list_head items;	/* whole messages, of more than one item or not */
	};
};

/* What became of a peer's flows; kept as long as the job. */
enum acp_fate {
	ACP_FATE_NONE,		/* none ever failed */
	ACP_FATE_LOST,		/* the last one failed, and no other has opened since */
	ACP_FATE_BACK,		/* one failed, and another one has opened */
};

/* What a flow has done, in all its lives; plain counts, under its peer's lock. */
struct acp_traffic {
	u64 tx_frames, tx_bytes;	/* whatever they are; bytes of UDP payload */
	u64 tx_again;			/* of these, repetitions */
	u64 rx_frames, rx_bytes;	/* authentic ones */
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
	struct acp_flow_slot *slots;	/* with sent[], while frames are in flight */
	struct acp_sent *sent;
	struct list_head pending;	/* items not yet cut to the end */
	struct list_head answers;	/* DONEs that hold an arrival: see ACP_FLOW_ANSWERS */
	struct sk_buff_head held;	/* fenced frames that came too early */
	struct acp_fails *fails;	/* NULL: none ever failed */
	u64 blind;			/* as in acp_fails, when there was no memory for it */
	struct list_head dropped;	/* items of a flow that failed */
	u8 dropped_status;
	bool lost;			/* acp_station_lost() is due */
	u8 fate;			/* enum acp_fate */
	u8 lost_status;			/* ACP_ST_: why the last one failed */
	bool tell_lost, tell_back;	/* the ranks here are to be told so */
	struct sk_buff *train;		/* the last one in a pass that frames may join */
	bool measured;			/* the path's MTU was looked at in this pass */
	struct dst_entry *dst;
	u32 dst_cookie;
	u32 mtu;			/* bytes of a datagram's payload */
	u16 narrow;			/* bytes of IP that the path really takes, 0: see route */
	u64 narrow_until;		/* ns, when to try again */
	u64 doubted;			/* number of the frame that may be too long for the path */
	u64 doubted_at;			/* when it was last sent and that counted */
	u64 answered;			/* when the peer last answered a HELLO of ours */
	u8 doubts;
	bool blameless;			/* ... though it is not its length */
	bool retry;			/* memory was short: try again soon */
	bool wanted;			/* somebody waits for the flow to open */
	bool dead;
	bool confirmed;			/* acknowledged since the neighbour entry was told */
	u64 used;			/* ns, when last busy */
	struct acp_traffic traffic;

	atomic_t delegated;	/* commands under way for this peer */
	u64 armed;		/* when the timer will fire, ~0: not armed */
	struct hrtimer timer;
	struct tasklet_struct work;
	struct acp_secret secret;	/* of a job whose frames are encrypted */
	struct rcu_head rcu;
};

/* What it counts as memory of the job's user; and while it is in use, its slots besides. */
#define ACP_PEER_KIB	DIV_ROUND_UP(sizeof(struct acp_peer), SZ_1K)
#define ACP_SLOTS_KIB	DIV_ROUND_UP(ACP_FRAME_WINDOW * (sizeof(struct acp_flow_slot) + \
							 sizeof(struct acp_sent)), SZ_1K)

/* Key of a peer in its job's table. */
static inline unsigned long acp_peer_index(u32 node, u32 color)
{
	return (unsigned long)node * ACP_COLORS_MAX + color;
}

/*
 * The peer, or NULL; find never makes one.  With bottom halves off, which is
 * how long the peer may be used: a job that is dead has none.
 */
static inline struct acp_peer *acp_peer_find(struct acp_job *job, u32 node, u32 color)
{
	struct acp_peer *peer = acp_near_look(&job->near_peers, node + color);

	if (peer && peer->node == node && peer->color == color)
		return peer;
	return xa_load(&job->peers, acp_peer_index(node, color));
}

/* The peer, which is made if need be; NULL: no memory, or the job has as many as it may. */
struct acp_peer *acp_peer_make(struct acp_job *job, u32 node, u32 color);

static inline struct acp_peer *acp_peer_get(struct acp_job *job, u32 node, u32 color)
{
	struct acp_peer *peer = acp_peer_find(job, node, color);

	if (READ_ONCE(job->dead))
		return NULL;
	return peer ?: acp_peer_make(job, node, color);
}

/* All peers of a job that is out of the table.  Sleeps. */
void acp_peer_destroy_all(struct acp_job *job);

/* ---- what the station asks of the transport (peer.c) ---- */

/*
 * Queue an item; it goes out with acp_peer_flush(), now, or acp_peer_kick(),
 * at the end of this softirq pass, together with acknowledgements.  BH off.
 * Returns the life of the flow; an item that must go out in the life "life"
 * (0: any) or not at all is dropped in another.  A command of ours is answered:
 * that is expected from now on, as by acp_peer_expect(), in the life returned.
 */
u32 acp_peer_send(struct acp_peer *peer, struct acp_item *item, u32 life);
void acp_peer_flush(struct acp_peer *peer);

/*
 * The same for puts in a row, none of which is fenced; in the life "life" all of them,
 * or none.  ... and flush.
 */
void acp_peer_send_row(struct acp_peer *peer, struct list_head *items, u32 life);
void acp_peer_flush_row(struct acp_peer *peer, struct list_head *items, u32 life);

static inline void acp_peer_kick(struct acp_peer *peer)
{
	tasklet_schedule(&peer->work);
}

/*
 * Count answers awaited from the peer beyond acknowledgements.  Each is
 * awaited in one life of the flow: when that ends, it does not come.
 */
u32 acp_peer_expect(struct acp_peer *peer);
void acp_peer_unexpect(struct acp_peer *peer, u32 life);

/* How many are awaited. */
static inline u32 acp_peer_awaited(const struct acp_peer *peer)
{
	return READ_ONCE(peer->flow.expect);
}

static inline u32 acp_peer_life(const struct acp_peer *peer)
{
	return READ_ONCE(peer->flow.epoch);
}

/*
 * Is the flow open?  If not it is being opened, in the life *life (0: not
 * asked before).  True with *status set: that life has ended.
 */
bool acp_peer_ready(struct acp_peer *peer, u32 *life, u8 *status);

/* A pending arrival of this life of the flow has had its effect. */
void acp_peer_applied(struct acp_peer *peer, u64 seq, u32 epoch);

/* Remember failures of this peer's messages; see core/cmd.h. */
bool acp_peer_fail(struct acp_peer *peer, u32 origin, u64 ticket, u8 status, u64 until);
u8 acp_peer_find_fail(struct acp_peer *peer, u32 origin, u64 ticket);

static inline u8 acp_peer_take_fail(struct acp_peer *peer, u32 origin, u64 ticket)
{
	return READ_ONCE(peer->fails) ? acp_peer_find_fail(peer, origin, ticket) : ACP_ST_OK;
}

bool acp_peer_depends(struct acp_peer *peer, const struct acp_msg *m);

/* ---- sockets (socket.c) ---- */

/* Under node->lock. */
int acp_socket_open(struct acp_job *job);
void acp_socket_close(struct acp_job *job);

/* Once nothing is sent or received any more: give all memory back. */
void acp_udp_exit(void);

void acp_peer_init(struct acp_peer *peer);
void acp_peer_stop(struct acp_peer *peer);
void acp_peer_reclaim(struct acp_peer *peer);

/* Under the lock, or when nobody else has the peer any more. */
void acp_peer_give_back_slots(struct acp_peer *peer);

/* Nothing to send, nothing awaited.  Under the lock. */
static inline bool acp_peer_idle(const struct acp_peer *peer)
{
	return acp_flow_idle(&peer->flow) && list_empty(&peer->pending) &&
	       list_empty(&peer->answers);
}

static inline u64 acp_now(void)
{
	return ktime_get_ns();
}

#endif /* ACP_NODE_H */
