/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A job on this node: its id, its key, the number of ranks, the node of each
 * rank and the addresses of each node.  There is one per node and job, shared
 * by all ranks of the job on this node.  Its size does not depend on the number
 * of ranks, except for the runs of an irregular placement.
 *
 * Lifetime: the first rank that joins creates the job.  After the last rank has
 * left, the job lingers until its flows are quiet, since peers may still repeat
 * frames.
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
#include "rank.h"
#include "../core/frame.h"
#include "../core/nh.h"
#include "../core/tag.h"
#include "../mem/cache.h"
#include "../exec/ping.h"

struct acp_cipher;
struct acp_node;
struct acp_peer;
struct acp_socket;
struct acp_user;

#define ACP_BARRIER_ARITY 4

/* The counting barrier: arrivals travel up a tree of nodes, the release travels down. */
struct acp_barrier {
	spinlock_t lock;	/* bh; guards all below */
	wait_queue_head_t wait;
	u64 released;		/* barriers completed; the current one is released + 1 */
	u32 expected;		/* ranks on this node */
	u32 local;		/* of these, arrived */
	u32 children;		/* nodes below this one */
	u8 below;		/* of these, arrived: a bit each */
	bool broken;		/* a rank left or a peer is mismatched: no barrier will complete */
	/* by neighbour: the parent node, then the children */
	u8 awaited;		/* neighbours whose message is expected: a bit each */
	u32 epoch[ACP_BARRIER_ARITY + 1];	/* of the flow it is expected on; 0: none */
	u8 owed[ACP_BARRIER_ARITY + 1];	/* ACP_MSG_ flags still to be sent to it */
};

#define ACP_EVENTS	64	/* kept; 2^n */
#define ACP_LEFT_MAX	1024	/* ranks that left early, reported and remembered */

/* An event: struct acp_event without the members that differ between readers. */
struct acp_event_record {
	u8 type;		/* ACP_EVENT_ */
	u8 status;		/* ACP_ST_ */
	u8 color;
	u32 node, rank;
};

struct acp_events {
	spinlock_t lock;	/* bh; guards last[], count and events_read of the ranks */
	u64 count;		/* since the job began */
	struct acp_event_record last[ACP_EVENTS];
	struct xarray left;	/* ranks that left; under its lock, readers: RCU */
	u32 n_left;		/* ranks counted as left; likewise */
};

#define ACP_WRONG_SOURCES	8	/* remembered */

/* A source of frames with a wrong tag, see wrong_key.h. */
struct acp_wrong_source {
	u32 node;
	u8 color;
	u64 frames;
};

struct acp_wrong_sources {
	spinlock_t lock;	/* bh; guards all below */
	u32 count;
	struct acp_wrong_source source[ACP_WRONG_SOURCES];
};

/* Entries of job->seats, by rank of this node; no entry: the rank has not joined. */
#define ACP_SEAT_LEFT	xa_mk_value(0)
#define ACP_SEAT_TAKEN	xa_mk_value(1)	/* it is joining */
#define ACP_SEAT_HERE	xa_mk_value(2)	/* it has joined; if not in job->ranks, it is leaving */

#define ACP_PREDICTIONS	16	/* 2^n */

/*
 * Header prediction.  Predicted frames have the same type and length, come from the same node and
 * belong to the same incarnations of its flow.  After one of them has been validated, the headers
 * of the others are known; only numbers, tag and body differ.
 */
struct acp_predicted {
	struct acp_tag_start start;
	struct acp_peer *peer;		/* sender of the validated frame; NULL: there was none */
	u32 size;			/* bytes of each frame */
	struct acp_frame frame;		/* header of the validated frame */
};

/* The predicted headers of one CPU: of several flows, in both directions. */
struct acp_predictions {
	struct acp_predicted entries[ACP_PREDICTIONS];
};

struct acp_job {
	/* fixed before the job is in the node's table */
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
	struct acp_predictions __percpu *predictions;	/* partial tags are as secret as the key */
	struct acp_cipher __percpu *ciphers;	/* only if frames are encrypted */
	kuid_t owner;
	struct acp_user *user;	/* is charged for the job until the last reference is put */
	u32 run_kib;		/* charged for the runs, likewise */
	u32 n_rank_runs, n_node_runs;
	struct acp_rank_run *rank_runs;
	struct acp_node_run *node_runs;
	u32 scopes[ACP_COLORS_MAX];	/* interfaces of our own link-local addresses, or 0 */
	u64 digest;		/* of the configuration that all nodes must agree on */

	struct xarray ranks;	/* number -> rank on this node; RCU */
	struct acp_cache rank_cache;
	struct acp_cache region_cache;	/* of all these ranks; see region.h */
	struct list_head rank_list;	/* the ranks; RCU, changed under the node's poll_lock */
	struct list_head queue_list;	/* all queues of the ranks; likewise */
	u32 turn;	/* index of the first rank of a round: see round.c; a hint */
	struct xarray peers;	/* node and color -> peer; RCU */
	atomic_long_t n_peers;	/* without those that barriers need */
	struct acp_cache peer_cache;
	struct acp_socket *sockets[ACP_COLORS_MAX];
	struct sock *sender;	/* owns the frames sent: see sender.h */
	struct acp_barrier barrier;
	struct acp_events events;
	bool aborted;
	u32 mismatched;		/* node with a different configuration, plus 1; 0: none */

	u64 begun;		/* ns */
	u64 asked_limit, asked_open_limit;	/* ns, before the administrator's bounds */
	atomic_t flow_kib;	/* of flows, without the peers themselves */
	atomic_t copies;	/* long copies within the node that have not ended */
	atomic64_t losses;	/* incarnations of flows that have ended */
	atomic_t asks;		/* messages that asked, of which no byte has arrived yet */
	atomic_t grants;	/* those that were granted an entry */
	bool tending;		/* "tend" is due within a second */
	u32 flows;		/* number of peers; under the lock of peers */
	struct {		/* commands of ranks that have left; under node's poll_lock */
		u64 completed, failed;
	} gone;
	struct acp_pings pings;

	refcount_t refs;	/* ranks, work in progress, the node's table */
	u32 members;		/* ranks that have joined; under the node's mutex */
	struct xarray seats;	/* rank -> ACP_SEAT_; likewise, readers: RCU */
	bool dead;		/* not in the node's table any more; likewise */
	u64 left_at;		/* ns, when the last rank left */
	struct delayed_work tend;	/* holds a reference */
	struct rcu_head rcu;
	struct acp_nh_key nh;	/* fixed, as secret as the key; only with an integrity tag */
	struct acp_wrong_sources wrong;
};

/**
 * acp_job_encrypted() - are the job's frames encrypted?
 * @job: the job
 *
 * Context: any.
 * Return: true if the job uses ACP_INTEGRITY_AEAD.
 */
static inline bool acp_job_encrypted(const struct acp_job *job)
{
	return unlikely(job->integrity == ACP_INTEGRITY_AEAD);
}

/**
 * acp_job_assembled() - have all ranks of the job completed a barrier?
 * @job: the job
 *
 * If they have, all nodes have the same configuration of the job.
 *
 * Context: any.
 * Return: true if at least one barrier has completed.
 */
static inline bool acp_job_assembled(const struct acp_job *job)
{
	return READ_ONCE(job->barrier.released);
}

/**
 * acp_job_open_limit() - how long another node may take to answer for the first time
 * @job: the job
 *
 * After the first barrier has completed, it is the time-out of all other answers.
 *
 * Context: any.
 * Return: the time-out in ns.
 */
static inline u64 acp_job_open_limit(const struct acp_job *job)
{
	return acp_job_assembled(job) ? job->limit : job->open_limit;
}

/**
 * acp_job_set_mismatched() - record that a node has a different configuration of the job
 * @job: the job
 * @node: the node, less than job->nodes
 *
 * The first barrier of the job cannot complete.  Call this before the barrier is marked broken.
 * Does nothing if a barrier has completed.
 *
 * Context: any.
 */
static inline void acp_job_set_mismatched(struct acp_job *job, u32 node)
{
	if (!acp_job_assembled(job))
		WRITE_ONCE(job->mismatched, node + 1);
}

/**
 * acp_job_index() - the key of a job in its node's table
 * @id: id of the job
 * @generation: generation of the job
 *
 * Return: the index in node->jobs.
 */
static inline unsigned long acp_job_index(u32 id, u16 generation)
{
	return (unsigned long)id << 16 | generation;
}

/*
 * Build a job from a join request; the runs are read from user memory.
 * May sleep.  Returns ERR_PTR(-EINVAL, -EFAULT, -ENOMEM, -EAFNOSUPPORT,
 * -EOPNOTSUPP, -EINTR).
 */
struct acp_job *acp_job_create(struct acp_node *node, const struct acp_join *join);

/* Charge the job's user for the runs, until the last reference is put: 0 or acp_over(). */
int acp_job_charge_runs(struct acp_job *job);

/* Does the join request of another rank (other) agree with the job?  0, -EACCES, -EPROTO. */
int acp_job_match(const struct acp_job *job, const struct acp_job *other);

/**
 * acp_job_put() - give up a reference to a job
 * @job: the job
 *
 * With the last reference the job's user is no longer charged for it.  The job is freed after a
 * grace period.
 *
 * Context: any.
 */
void acp_job_put(struct acp_job *job);

/* The run that contains a rank, which is less than nprocs.  Any context. */
const struct acp_rank_run *acp_job_run_of(const struct acp_job *job, u32 rank);

/**
 * acp_job_node_of() - the node of a rank
 * @job: the job
 * @rank: the rank, less than job->ga.nprocs
 *
 * Context: any.
 * Return: the node, less than job->nodes.
 */
static inline u32 acp_job_node_of(const struct acp_job *job, u32 rank)
{
	const struct acp_rank_run *r = job->rank_runs;

	if (job->n_rank_runs > 1)
		r = acp_job_run_of(job, rank);
	return r->node + (rank - r->first) / r->block % r->nodes;
}

/**
 * acp_job_address() - the address of a node on a color
 * @job: the job
 * @node: the node, less than job->nodes
 * @color: the color, less than job->colors
 * @addr: receives the address in network order, 4 bytes if job->family is AF_INET, else 16
 *
 * All 16 bytes of @addr are written.
 *
 * Context: any.
 */
void acp_job_address(const struct acp_job *job, u32 node, u32 color, u8 addr[16]);

/**
 * acp_job_rank() - find a rank of this node
 * @job: the job
 * @number: number of the rank in the job
 *
 * No reference is taken.
 *
 * Context: RCU read side, or BH off.
 * Return: the rank; NULL if it is on another node, has not joined or has left.
 */
static inline struct acp_rank *acp_job_rank(struct acp_job *job, u32 number)
{
	struct acp_rank *rank = acp_cache_get(&job->rank_cache, number);

	return rank && rank->number == number ? rank : xa_load(&job->ranks, number);
}

/**
 * acp_job_queue() - find the queue of a command
 * @job: the job
 * @rank: the rank that issued the command
 * @ticket: the command's ticket, which contains the number of its queue
 *
 * No reference is taken.
 *
 * Context: RCU read side, or BH off.
 * Return: the queue; NULL if the rank is not here or has no such queue.
 */
static inline struct acp_queue *acp_job_queue(struct acp_job *job, u32 rank, u64 ticket)
{
	struct acp_rank *owner = acp_job_rank(job, rank);

	return owner ? acp_rank_queue(owner, ticket) : NULL;
}

/**
 * acp_job_ga_node() - the node of a global address
 * @job: the job
 * @ga: the global address; its rank is less than job->ga.nprocs
 *
 * Context: any.
 * Return: the node, less than job->nodes.
 */
static inline u32 acp_job_ga_node(const struct acp_job *job, u64 ga)
{
	return acp_job_node_of(job, acp_ga_rank(&job->ga, ga));
}

/**
 * acp_job_check_nodes() - check what a command needs to have on one node
 * @job: the job
 * @m: the command; its addresses are valid
 *
 * The flag (m->c) of a copy that signals must be on the node of the destination (m->dst).  Numbers
 * are combined on this node only.
 *
 * Context: any.
 * Return: ACP_ST_OK or ACP_ST_OP.
 */
u8 acp_job_check_nodes(const struct acp_job *job, const struct acp_msg *m);

#endif /* ACP_JOB_H */
