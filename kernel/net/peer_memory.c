// SPDX-License-Identifier: GPL-2.0-only
/* The memory of a peer: see peer.h. */
#include <linux/slab.h>
#include "../compat.h"
#include "../job/node.h"
#include "peer.h"
#include "../upcall.h"

#define LANDINGS_KIB	ACP_KMALLOC_KIB(sizeof(struct landings))
#define IDLE_NS		(10ULL * NSEC_PER_SEC)	/* until an idle peer frees its slots */

/* The landings of a flow. */
struct landings {
	struct acp_landings t;
	struct acp_job *job;	/* if they are abandoned */
	struct rcu_head rcu;
};

bool acp_peer_take_kib(struct acp_peer *peer, u32 kib)
{
	if (acp_user_charge(peer->job->user, ACP_LIMIT_USER_MEMORY, kib))
		return false;
	atomic_add(kib, &peer->job->flow_kib);
	return true;
}

static void give_kib(struct acp_job *job, u32 kib)
{
	atomic_sub(kib, &job->flow_kib);
	acp_user_uncharge(job->user, ACP_LIMIT_USER_MEMORY, kib);
}

void acp_peer_give_kib(struct acp_peer *peer, u32 kib)
{
	give_kib(peer->job, kib);
}

/* Zeroed pages, only as many as needed: kmalloc() would round up to a power of two. */
static void *get_pages(size_t bytes)
{
	return alloc_pages_exact(bytes, GFP_ATOMIC | __GFP_ZERO | __GFP_NOWARN);
}

static void free_slots(struct acp_peer *peer)
{
	if (peer->slots)
		free_pages_exact(peer->slots, ACP_SLOTS_BYTES);
	if (peer->sent)
		free_pages_exact(peer->sent, ACP_SENT_BYTES);
	peer->slots = NULL;
	peer->sent = NULL;
	peer->flow.slots = NULL;
	acp_peer_give_kib(peer, ACP_SLOTS_KIB);
}

bool acp_peer_get_slots(struct acp_peer *peer)
{
	if (acp_peer_take_kib(peer, ACP_SLOTS_KIB)) {
		peer->slots = get_pages(ACP_SLOTS_BYTES);
		peer->sent = get_pages(ACP_SENT_BYTES);
		if (peer->slots && peer->sent) {
			peer->flow.slots = peer->slots;
			return true;
		}
		free_slots(peer);
	}
	acp_stat_inc(peer->job->node, tx_nomem);
	return false;
}

static void give_back_slots(struct acp_peer *peer)
{
	if (peer->slots)
		free_slots(peer);
}

/* Free the table of failures, if any. */
static void forget_fails(struct acp_peer *peer, struct acp_failures *failures)
{
	if (!failures->known)
		return;
	kfree(failures->known);
	failures->known = NULL;
	acp_peer_give_kib(peer, ACP_FAILS_KIB);
}

static void forget_old_fails(struct acp_peer *peer, struct acp_failures *failures)
{
	if (failures->known && acp_failures_over(failures, peer->flow.rcv))
		forget_fails(peer, failures);
}

bool acp_peer_get_landings(struct acp_peer *peer)
{
	struct landings *l;

	if (peer->landings)
		return true;
	if (!acp_peer_take_kib(peer, LANDINGS_KIB))
		return false;
	l = kmalloc(sizeof(*l), GFP_ATOMIC | __GFP_NOWARN);
	if (!l) {
		acp_peer_give_kib(peer, LANDINGS_KIB);
		return false;
	}
	l->t.count = 0;
	peer->landings = &l->t;
	return true;
}

/* Softirqs that wrote pieces when the flow ended have ended, too. */
static void abandon(struct rcu_head *rcu)
{
	struct landings *l = container_of(rcu, struct landings, rcu);
	u32 i;

	for (i = 0; i < l->t.count; i++)
		if (l->t.e[i].known)
			acp_station_abandon(l->job, &l->t.e[i]);
	give_kib(l->job, LANDINGS_KIB);
	acp_job_put(l->job);
	kfree(l);
}

void acp_peer_free_landings(struct acp_peer *peer)
{
	struct landings *l;

	if (!peer->landings)
		return;
	l = container_of(peer->landings, struct landings, t);
	peer->landings = NULL;
	if (!l->t.count) {
		acp_peer_give_kib(peer, LANDINGS_KIB);
		kfree(l);
		return;
	}
	l->job = peer->job;
	refcount_inc(&l->job->refs);
	call_rcu_hurry(&l->rcu, abandon);
}

static void give_back_delegated(struct acp_peer *peer)
{
	acp_peer_give_kib(peer, peer->delegated_paid / ACP_DELEGATED_STEP * ACP_DELEGATED_KIB);
	peer->delegated_paid = 0;
}

void acp_peer_give_back(struct acp_peer *peer)
{
	give_back_slots(peer);
	forget_fails(peer, &peer->failures);
	forget_fails(peer, &peer->refusals);
	acp_peer_free_landings(peer);
	give_back_delegated(peer);
}

static void give_back_idle(struct acp_peer *peer)
{
	give_back_slots(peer);
	forget_old_fails(peer, &peer->failures);
	forget_old_fails(peer, &peer->refusals);
	if (peer->landings && !peer->landings->count)
		acp_peer_free_landings(peer);
	if (!atomic_read(&peer->delegated))
		give_back_delegated(peer);
}

void acp_peer_reclaim(struct acp_peer *peer)
{
	bool much;

	spin_lock_bh(&peer->lock);
	much = peer->slots || peer->delegated_paid || peer->landings || peer->failures.known ||
	       peer->refusals.known;
	if (much && acp_peer_idle(peer) && acp_now() - peer->used >= IDLE_NS)
		give_back_idle(peer);
	spin_unlock_bh(&peer->lock);
}

bool acp_peer_pay_delegated(struct acp_peer *peer, u32 count)
{
	bool ok = true;

	spin_lock(&peer->lock);
	while (ok && peer->delegated_paid < count) {
		ok = !peer->dead && acp_peer_take_kib(peer, ACP_DELEGATED_KIB);
		if (ok)
			peer->delegated_paid += ACP_DELEGATED_STEP;
	}
	spin_unlock(&peer->lock);
	return ok;
}

void acp_peer_get_fails(struct acp_peer *peer, struct acp_failures *failures)
{
	struct acp_fails *known;

	if (!acp_peer_take_kib(peer, ACP_FAILS_KIB))
		return;
	known = kzalloc(sizeof(*known), GFP_ATOMIC | __GFP_NOWARN);
	if (!known)
		acp_peer_give_kib(peer, ACP_FAILS_KIB);
	failures->known = known;
}
