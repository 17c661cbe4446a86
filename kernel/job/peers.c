// SPDX-License-Identifier: GPL-2.0-only
/* The peers of a job: created when first needed, freed with the job.  See node.h. */
#include <linux/random.h>
#include <linux/slab.h>
#include <net/dst.h>
#include "../exec/barrier.h"
#include "../core/flow.h"
#include "node.h"
#include "../netlink/notify.h"

/* Two different random numbers, neither of which is 0. */
static void draw_epochs(u32 e[2])
{
	do {
		get_random_bytes(e, 2 * sizeof(*e));
	} while (!e[0] || !e[1] || e[0] == e[1]);
}

static struct acp_peer *peer_new(struct acp_job *job, u32 node, u32 color)
{
	struct acp_peer *peer = kzalloc(sizeof(*peer), GFP_ATOMIC | __GFP_NOWARN);
	u32 epochs[2];

	if (!peer)
		return NULL;
	peer->job = job;
	peer->node = node;
	peer->color = color;
	acp_job_address(job, node, color, peer->addr);
	spin_lock_init(&peer->lock);
	INIT_LIST_HEAD(&peer->pending);
	INIT_LIST_HEAD(&peer->answers);
	INIT_LIST_HEAD(&peer->dropped);
	__skb_queue_head_init(&peer->held);
	draw_epochs(epochs);
	acp_flow_init(&peer->flow, epochs[0], epochs[1], job->limit, acp_job_open_limit(job));
	if (acp_job_encrypted(job))
		acp_aead_secret(&peer->secret, job, node, color);
	acp_peer_init(peer);
	return peer;
}

/*
 * Does the limit job_peers apply to this flow?  Flows of the barrier tree are
 * exempt: there are at most ACP_BARRIER_ARITY + 1 of them, and without one of
 * them no barrier of the job would complete.
 */
static bool is_limited(const struct acp_job *job, u32 node, u32 color)
{
	return color || !acp_barrier_neighbour(job, node);
}

/* Count the peer as a flow of its job and charge the job's user for its memory. */
static bool count_peer(struct acp_job *job, bool limited)
{
	if (limited &&
	    !acp_limit_take(&job->n_peers, 1, acp_limit(job->node, ACP_LIMIT_JOB_PEERS)))
		return false;
	if (!acp_user_charge(job->user, ACP_LIMIT_USER_MEMORY, ACP_PEER_KIB))
		return true;
	if (limited)
		atomic_long_dec(&job->n_peers);
	return false;
}

static void uncount_peer(struct acp_job *job, bool limited)
{
	acp_user_uncharge(job->user, ACP_LIMIT_USER_MEMORY, ACP_PEER_KIB);
	if (limited)
		atomic_long_dec(&job->n_peers);
}

/* Add a peer to its job's table.  Under the lock of the table, so that it is counted once. */
static struct acp_peer *peer_add(struct acp_job *job, u32 node, u32 color)
{
	bool limited = is_limited(job, node, color);
	struct acp_peer *peer;

	if (!count_peer(job, limited)) {
		acp_stat_inc(job->node, limit_peers);
		acp_nl_tell_limit(job->node, job->owner, ACP_LIMIT_JOB_PEERS);
		return NULL;
	}
	peer = peer_new(job, node, color);
	if (peer && !__xa_insert(&job->peers, acp_peer_index(node, color), peer,
				 GFP_ATOMIC | __GFP_NOWARN)) {
		acp_cache_set(&job->peer_cache, node + color, peer);
		WRITE_ONCE(job->flows, job->flows + 1);
		acp_changed(job->node);
		return peer;
	}
	kfree_sensitive(peer);
	uncount_peer(job, limited);
	return NULL;
}

struct acp_peer *acp_peer_make(struct acp_job *job, u32 node, u32 color)
{
	struct acp_peer *peer;

	xa_lock_bh(&job->peers);
	peer = xa_load(&job->peers, acp_peer_index(node, color)) ?: peer_add(job, node, color);
	xa_unlock_bh(&job->peers);
	return peer;
}

static void peer_gone(struct rcu_head *rcu)
{
	kfree_sensitive(container_of(rcu, struct acp_peer, rcu));
}

static void peer_free(struct acp_peer *peer)
{
	dst_release(peer->dst);
	acp_peer_give_back(peer);
	acp_user_uncharge(peer->job->user, ACP_LIMIT_USER_MEMORY, ACP_PEER_KIB);
	call_rcu(&peer->rcu, peer_gone);
}

/*
 * Stop all peers before the first one is freed: an item of one peer may wait for
 * another peer.
 */
void acp_peer_destroy_all(struct acp_job *job)
{
	struct acp_peer *peer;
	unsigned long i;

	xa_for_each(&job->peers, i, peer)
		acp_peer_stop(peer);
	xa_for_each(&job->peers, i, peer) {
		xa_erase_bh(&job->peers, i);
		acp_cache_clear(&job->peer_cache, peer->node + peer->color, peer);
		peer_free(peer);
	}
}
