// SPDX-License-Identifier: GPL-2.0-only
/* Where indirect copies of a peer go: see core/landing.h. */
#include "../job/node.h"
#include "peer.h"

/* Has an earlier piece failed?  Then the copy takes no room in a buffer any more. */
static bool has_failed(struct acp_peer *peer, const struct acp_msg *m, u8 *status)
{
	const struct acp_failures *failures = acp_peer_failures_of(peer, m);

	*status = ACP_ST_OK;
	if (failures->known)
		*status = acp_fails_see(failures->known, m->origin, m->ticket);
	return *status;
}

/*
 * Add a landing.  As long as there are landings, the rest of a copy is expected like an answer: the
 * flow fails if the peer falls silent.
 */
static bool add(struct acp_peer *peer, const struct acp_msg *m)
{
	if (!acp_landing_add(peer->landings, m->origin, m->ticket, m->op, m->c))
		return false;
	if (peer->landings->count == 1)
		acp_flow_expect(&peer->flow, 1, acp_now());
	return true;
}

enum acp_peer_landing acp_peer_landing(struct acp_peer *peer, u32 epoch, const struct acp_msg *m,
				       struct acp_place *place, u8 *status)
{
	enum acp_peer_landing what = ACP_LANDING_BUSY;
	struct acp_landing *l;

	spin_lock(&peer->lock);
	/* The frame may be one of an incarnation that has ended, and so have its landings. */
	if (peer->dead || epoch != peer->flow.epoch || !acp_peer_get_landings(peer))
		goto out;
	l = acp_landing_find(peer->landings, m->origin, m->ticket);
	if (l && l->known) {
		*place = l->place;
		*status = l->status;
		/* No correct sender says that. */
		if (l->size != m->c || l->op != m->op)
			*status = ACP_ST_RANGE;
		what = ACP_LANDING_KNOWN;
	} else if (!l && has_failed(peer, m, status)) {
		what = ACP_LANDING_KNOWN;
	} else if (!l && add(peer, m)) {
		what = ACP_LANDING_FIRST;
	}
out:
	spin_unlock(&peer->lock);
	return what;
}

/* Is the incarnation of the flow over, or does it have no landings? */
static bool over(const struct acp_peer *peer, u32 epoch)
{
	return epoch != peer->flow.epoch || !peer->landings;
}

bool acp_peer_has_landed(const struct acp_peer *peer, const struct acp_msg *m)
{
	const struct acp_landing *l = NULL;

	if (peer->landings)
		l = acp_landing_find(peer->landings, m->origin, m->ticket);
	return l && l->known;
}

bool acp_peer_land(struct acp_peer *peer, u32 epoch, const struct acp_msg *m,
		   const struct acp_place *place, u8 status)
{
	struct acp_landing *l = NULL;

	spin_lock(&peer->lock);
	if (!over(peer, epoch))
		l = acp_landing_find(peer->landings, m->origin, m->ticket);
	/* No correct sender lets the last piece pass the first one, and then sends another. */
	if (l && l->known)
		l = NULL;
	if (l) {
		l->place = *place;
		l->message = m->op == ACP_OP_SEND && !status;
		l->chain = m->op == ACP_OP_SCATTER && !status;
		l->status = status;
		l->known = true;
	}
	spin_unlock(&peer->lock);
	return l;
}

bool acp_peer_forget_landing(struct acp_peer *peer, u32 epoch, const struct acp_msg *m,
			     struct acp_landing *landing)
{
	struct acp_landing *l = NULL;

	spin_lock(&peer->lock);
	if (!over(peer, epoch))
		l = acp_landing_find(peer->landings, m->origin, m->ticket);
	if (l) {
		*landing = *l;
		acp_landing_forget(peer->landings, m->origin, m->ticket);
		if (!peer->landings->count)
			acp_flow_unexpect(&peer->flow, epoch);
	}
	spin_unlock(&peer->lock);
	return l;
}
