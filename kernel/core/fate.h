/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What became of a peer's flows, and what is reported to the local ranks: that a peer is lost,
 * once, however often it is tried again; and that it is back, if this is still true when it is
 * reported.
 */
#ifndef ACP_FATE_H
#define ACP_FATE_H

#include "port.h"

/* Kept for the lifetime of the job. */
enum acp_fate {
	ACP_FATE_NONE,		/* no flow has failed */
	ACP_FATE_LOST,		/* the last one failed, and none has opened since */
	ACP_FATE_BACK,		/* one failed, and another one has opened */
};

struct acp_fates {
	u8 fate;		/* enum acp_fate */
	u8 status;		/* ACP_ST_: why the last one failed */
	bool lost, back;	/* still to be reported */
};

/**
 * acp_fates_lost() - record that a flow to the peer has failed
 * @p: state of the peer
 * @status: enum acp_status, the reason
 *
 * Context: The caller serializes calls on one peer.
 */
static inline void acp_fates_lost(struct acp_fates *p, u8 status)
{
	p->lost |= p->fate != ACP_FATE_LOST;
	p->status = status;
	p->fate = ACP_FATE_LOST;
}

/**
 * acp_fates_open() - record that a flow to the peer has opened
 * @p: state of the peer
 *
 * Context: The caller serializes calls on one peer.
 * Return: True if acp_fates_tell() has something to report.
 */
static inline bool acp_fates_open(struct acp_fates *p)
{
	if (p->fate != ACP_FATE_LOST)
		return false;
	p->fate = ACP_FATE_BACK;
	p->back = true;
	return true;
}

/**
 * acp_fates_tell() - take what must be reported to the ranks
 * @p: state of the peer
 *
 * Context: The caller serializes calls on one peer.
 * Return: A copy of @p in which lost and back are what to report. If both are set, lost comes
 *     first.
 */
static inline struct acp_fates acp_fates_tell(struct acp_fates *p)
{
	struct acp_fates told = *p;

	told.back &= p->fate == ACP_FATE_BACK;
	p->lost = false;
	p->back = false;
	return told;
}

#endif /* ACP_FATE_H */
