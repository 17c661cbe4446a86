/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A job on this node: id, key, number of ranks, where each rank is, what the
 * address of each node is.  One per node and job, shared by all its ranks
 * here; nothing in it grows with the number of ranks, but the runs of an
 * irregular placement.
 *
 * Life: created by the first rank that joins; when the last one has left it
 * lingers until its flows are quiet, since peers may still repeat frames.
 */
#ifndef ACP_JOB_H
#define ACP_JOB_H

#include <linux/refcount.h>
#include <linux/siphash.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include "acp_abi.h"
#include "acp_ga.h"
#include "context.h"
#include "core/frame.h"
#include "core/tag.h"
#include "near.h"
#include "ping.h"

struct acp_cipher;
struct acp_node;
struct acp_peer;
struct acp_socket;
struct acp_user;

#define ACP_BARRIER_ARITY 4

/* The counting barrier: arrivals go up a tree of nodes, the release down. */
struct acp_barrier {
	spinlock_t lock;	/* bh; guards all below */
	wait_queue_head_t wait;
	u64 released;		/* barriers completed; the current one is released + 1 */
	u32 expected;		/* ranks of this node */
	u32 local;		/* of these, arrived */
	u32 children;		/* nodes below this one */
	u8 below;		/* of these, arrived: a bit each */
	bool broken;		/* a rank left, or there is a stranger: none will complete */
	/* by neighbour: the node above, then the children */
	u32 life[ACP_BARRIER_ARITY + 1];	/* of the flow its message is expected on; 0: not */
	u8 owed[ACP_BARRIER_ARITY + 1];	/* ACP_MSG_ flags that it must be told yet */
};

#define ACP_EVENTS	64	/* kept; 2^n */
#define ACP_LEFT_MOST	1024	/* ranks that left without having finalized, told and remembered */

/* What has happened: struct acp_event without what is each reader's. */
struct acp_news {
	u8 type;		/* ACP_EVENT_ */
	u8 status;		/* ACP_ST_ */
	u8 color;
	u32 node, rank;
};

struct acp_events {
	spinlock_t lock;	/* bh; guards last[] and count, and where its readers are */
	u64 count;		/* ever */
	struct acp_news last[ACP_EVENTS];
	struct xarray left;	/* ranks that left; under its lock, readers: RCU */
	u32 n_left;		/* likewise; all that was counted */
};

/* Of a rank of this node, in seats; none: it has not come yet. */
#define ACP_SEAT_LEFT	xa_mk_value(0)
#define ACP_SEAT_TAKEN	xa_mk_value(1)	/* it is about to come */
#define ACP_SEAT_HERE	xa_mk_value(2)	/* it has come; without a context, it is leaving */

#define ACP_KINDS	16	/* 2^n */

/*
 * Frames that begin alike: of the same type and length, by the same node, in the same lives of its
 * flow.  Once one came and was right in every way, it is known of the others what they say and
 * whose they are; only numbers, tag and body are each one's own.
 */
struct acp_kind {
	struct acp_tag_start start;
	struct acp_peer *peer;		/* that one's sender; NULL: none came */
	u32 size;			/* bytes of each */
	struct acp_frame frame;		/* that one's header */
};

/* For some flows, both ways of each, and kinds of frames at a time: one processor's. */
struct acp_kinds {
	struct acp_kind kinds[ACP_KINDS];
};

struct acp_job {
	/* fixed from creation on */
	struct acp_node *node;
	u32 id;
	u16 generation;
	u8 colors;
	u8 family;
	u16 port;
	u8 integrity;
	u32 nodes;
	u32 me;			/* this node */
	u64 limit, open_limit;	/* ns */
	struct acp_ga_layout ga;
	siphash_key_t key;
	struct acp_kinds __percpu *kinds;	/* begun tags are as secret as the key */
	struct acp_cipher __percpu *ciphers;	/* of one whose frames are encrypted */
	kuid_t owner;
	struct acp_user *user;	/* whom it counts for; until nobody holds the job */
	u32 run_kib;		/* of the runs, likewise */
	u32 n_rank_runs, n_node_runs;
	struct acp_rank_run *rank_runs;
	struct acp_node_run *node_runs;
	u64 digest;		/* of what all nodes must agree on */

	struct xarray ranks;	/* rank -> context on this node; RCU */
	struct acp_near near_ranks;
	struct acp_near near_regions;	/* of all these; see region.h */
	struct list_head contexts;	/* the same; RCU, under the node's poll_lock */
	struct xarray peers;	/* node and color -> peer; RCU */
	atomic_long_t n_peers;	/* but those that barriers need */
	struct acp_near near_peers;
	struct acp_socket *sockets[ACP_COLORS_MAX];
	struct acp_barrier barrier;
	struct acp_events events;
	bool aborted;
	u32 stranger;		/* node that runs another set-up of the job, plus 1; or 0 */

	u64 begun;		/* ns */
	u64 asked_limit, asked_open_limit;	/* ns, before an administrator's bounds */
	atomic_t n_slots;	/* flows that have them */
	atomic_t copies;	/* long ones within the node that have not ended */
	u32 flows;		/* flows there are; under the lock of peers */
	struct {		/* what ranks have done that have left; under node's poll_lock */
		u64 completed, failed;
	} gone;
	struct acp_pings pings;

	refcount_t refs;	/* contexts, work under way, the node's table */
	u32 members;		/* ranks here; under the node's mutex */
	struct xarray seats;	/* rank -> is it here, or was it; likewise, readers: RCU */
	bool dead;		/* out of the node's table; likewise */
	u64 left_at;		/* ns, when the last rank left */
	struct delayed_work tend;	/* holds a reference */
	struct rcu_head rcu;
};

/* Are its frames encrypted? */
static inline bool acp_job_sealed(const struct acp_job *job)
{
	return unlikely(job->integrity == ACP_INTEGRITY_AEAD);
}

/* Have all ranks been in a barrier?  Then all nodes have the same set-up. */
static inline bool acp_job_met(const struct acp_job *job)
{
	return READ_ONCE(job->barrier.released);
}

/* How long a node may take to answer for the first time: once all have met, as any other time. */
static inline u64 acp_job_open_limit(const struct acp_job *job)
{
	return acp_job_met(job) ? job->limit : job->open_limit;
}

/* The job cannot meet, since that node runs another set-up of it.  Before its barrier is broken. */
static inline void acp_job_set_stranger(struct acp_job *job, u32 node)
{
	if (!acp_job_met(job))
		WRITE_ONCE(job->stranger, node + 1);
}

/* Key of a job in its node's table. */
static inline unsigned long acp_job_index(u32 id, u16 generation)
{
	return (unsigned long)id << 16 | generation;
}

/*
 * Build a job from a join request, reading the runs from user memory.
 * May sleep.  Returns ERR_PTR(-EINVAL, -EFAULT, -ENOMEM, -EAFNOSUPPORT,
 * -EOPNOTSUPP, -EINTR).
 */
struct acp_job *acp_job_create(struct acp_node *node, const struct acp_join *join);

/* Count the runs for its user, until nobody holds the job: 0 or acp_over(). */
int acp_job_charge_runs(struct acp_job *job);

/* Does what a second rank brings agree with the job?  0, -EACCES, -EPROTO. */
int acp_job_match(const struct acp_job *job, const struct acp_job *other);

void acp_job_put(struct acp_job *job);

/* Something has come or gone that a dump tells of (node.c). */
void acp_job_changed(struct acp_job *job);

/* The run that a rank is in, its node (rank < nprocs); address of a node.  Any context. */
const struct acp_rank_run *acp_job_run_of(const struct acp_job *job, u32 rank);

static inline u32 acp_job_node_of(const struct acp_job *job, u32 rank)
{
	const struct acp_rank_run *r = job->rank_runs;

	if (job->n_rank_runs > 1)
		r = acp_job_run_of(job, rank);
	return r->node + (rank - r->first) / r->block % r->nodes;
}

void acp_job_address(const struct acp_job *job, u32 node, u32 color, u8 addr[16]);

/* The context of a rank of this node, or NULL.  RCU. */
static inline struct acp_context *acp_job_context(struct acp_job *job, u32 rank)
{
	struct acp_context *ctx = acp_near_look(&job->near_ranks, rank);

	return ctx && ctx->rank == rank ? ctx : xa_load(&job->ranks, rank);
}

static inline u32 acp_job_ga_node(const struct acp_job *job, u64 ga)
{
	return acp_job_node_of(job, acp_ga_rank(&job->ga, ga));
}

/* The flag of a copy that changes one must be on the node that the copy goes to: ACP_ST_. */
u8 acp_job_check_flag(const struct acp_job *job, const struct acp_msg *m);

#endif /* ACP_JOB_H */
