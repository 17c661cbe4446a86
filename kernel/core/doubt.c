// SPDX-License-Identifier: GPL-2.0-only
/* Detects a path that silently drops long datagrams: see doubt.h. */
#include "doubt.h"

#define ENOUGH	6	/* reasons to suspect the length of a frame */

/* Count one more reason, at most one per transmission. Returns true if there are enough. */
static bool one_more(struct acp_doubt *d, const struct acp_flow *f)
{
	u64 sent = acp_flow_slot_of(f, f->una)->sent;

	if (d->seq != f->una) {
		d->seq = f->una;
		d->at = sent;
		d->count = 0;
		d->blameless = false;
	} else if (f->answered > sent && d->at != sent) {
		d->at = sent;
		d->count++;
	}
	return d->count >= ENOUGH;
}

enum acp_doubt_what acp_doubt_think(struct acp_doubt *d, const struct acp_flow *f, bool smaller,
				    bool narrow)
{
	if (!smaller && !narrow)
		return ACP_DOUBT_NOTHING;
	if (!one_more(d, f))
		return ACP_DOUBT_ASK;
	d->count = 0;
	if (!smaller) {
		d->blameless = true;
		return ACP_DOUBT_WIDEN;
	}
	return d->blameless ? ACP_DOUBT_NOTHING : ACP_DOUBT_NARROW;
}

bool acp_doubt_ends(const struct acp_doubt *d, const struct acp_flow *f)
{
	return f->una != f->next && d->seq == f->una && d->count >= ENOUGH / 3 && !d->blameless &&
	       f->answered > acp_flow_slot_of(f, f->una)->sent;
}
