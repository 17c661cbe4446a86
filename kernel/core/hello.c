// SPDX-License-Identifier: GPL-2.0-only
/* How a node responds to a HELLO: see hello.h. */
#include "hello.h"

void acp_hello_fill(struct acp_frame_hello *h, const struct acp_setup *s)
{
	h->nprocs = cpu_to_be32(s->nprocs);
	h->nodes = cpu_to_be32(s->nodes);
	h->digest = cpu_to_be64(s->digest);
}

/*
 * Does the peer have the same settings? If one end encrypts and the other does not, the header
 * shows it, and the body cannot be read.
 */
static bool same_setup(const struct acp_setup *s, const struct acp_frame *fr,
		       const struct acp_frame_hello *h)
{
	return !!(fr->flags & ACP_FRAME_AEAD) == s->encrypted &&
	       be32_to_cpu(h->nprocs) == s->nprocs && be32_to_cpu(h->nodes) == s->nodes &&
	       be64_to_cpu(h->digest) == s->digest;
}

/*
 * A HELLO with different settings. It is answered, so that both ends learn of the mismatch. But
 * only an answer to a HELLO of this node ends anything: a replay is none, nor is a frame of an
 * earlier run. Therefore a node whose job is not assembled yet sends a HELLO itself.
 */
static u32 take_other(const struct acp_flow *f, bool assembling, const struct acp_frame *fr,
		      struct acp_frame *reply)
{
	u32 verdict = acp_flow_hello_mismatched(f, fr, reply) | ACP_HELLO_OTHER;

	if (!(verdict & ACP_FLOW_REFUSED) && assembling)
		verdict |= ACP_HELLO_ASK;
	return verdict;
}

u32 acp_hello_take(struct acp_flow *f, const struct acp_setup *s, struct acp_presence us,
		   const struct acp_frame *fr, const struct acp_frame_hello *h,
		   struct acp_frame *reply, u64 now)
{
	/* Not before a rank has attached for good: one that fails may begin the job again. */
	if (!us.here && fr->epoch_src != f->epoch_peer)
		return ACP_HELLO_ABSENT;
	if (!same_setup(s, fr, h))
		return take_other(f, us.assembling, fr, reply);
	return acp_flow_hello(f, fr, reply, now);
}
