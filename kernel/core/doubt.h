/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Detects a path that silently drops long datagrams. It is suspected when the oldest frame of a
 * flow has been sent several times and the peer has answered a short one since the last
 * transmission. (A frame from the peer is not enough: it may retransmit because nothing reaches
 * it.) If the shortest frames do not get through either, the length was not the reason.
 */
#ifndef ACP_DOUBT_H
#define ACP_DOUBT_H

#include "flow.h"

struct acp_doubt {
	u64 seq;		/* number of the frame that may be too long */
	u64 at;			/* when its last counted transmission was */
	u8 count;		/* reasons to suspect its length */
	bool blameless;		/* its length is not the reason */
};

enum acp_doubt_what {
	ACP_DOUBT_NOTHING,
	ACP_DOUBT_ASK,		/* probe the peer: an answer is one more reason */
	ACP_DOUBT_NARROW,	/* limit datagrams to the next smaller size */
	ACP_DOUBT_WIDEN,	/* length is not the reason: lift the limit */
};

/**
 * acp_doubt_begin() - reset the state, for a new incarnation of the flow
 * @d: state of the flow
 *
 * Context: The caller serializes calls on one flow.
 */
static inline void acp_doubt_begin(struct acp_doubt *d)
{
	d->seq = 0;
}

/**
 * acp_doubt_due() - test whether the oldest frame has been sent often enough to be suspected
 * @f: flow, after acp_flow_tick() has returned ACP_FLOW_RESEND
 *
 * Context: The caller serializes calls on one flow.
 * Return: True if acp_doubt_think() must be called.
 */
static inline bool acp_doubt_due(const struct acp_flow *f)
{
	return acp_flow_slot_of(f, f->una)->tries >= 2;
}

/**
 * acp_doubt_think() - decide what to do about the oldest frame
 * @d: state of the flow
 * @f: flow, for which acp_doubt_due() is true
 * @smaller: there is a size to try that is smaller than that frame
 * @narrow: the size of datagrams has been limited
 *
 * Context: The caller serializes calls on one flow.
 * Return: A value of enum acp_doubt_what.
 */
enum acp_doubt_what acp_doubt_think(struct acp_doubt *d, const struct acp_flow *f, bool smaller,
				    bool narrow);

/**
 * acp_doubt_ends() - test whether a flow that fails may have failed because of the path
 * @d: state of the flow
 * @f: flow, after acp_flow_tick() has returned ACP_FLOW_FAILED and before it is reset
 *
 * A short time-out can end the flow before there are enough reasons to limit the size. Fewer
 * suffice here, if the peer has answered since the frame was last sent.
 *
 * Context: The caller serializes calls on one flow.
 * Return: True if the next flow must begin with the next smaller size, if there is one.
 */
bool acp_doubt_ends(const struct acp_doubt *d, const struct acp_flow *f);

#endif /* ACP_DOUBT_H */
