// SPDX-License-Identifier: GPL-2.0-only
/* Socket buffers of frames: see skbs.h. */
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/ip.h>
#include "../compat.h"
#ifdef ACP_HAS_SKBUFF_REF
#include <linux/skbuff_ref.h>
#endif
#include "skbs.h"

#define SPARE_MAX	2048	/* bytes of an skb that is kept */
#define SPARES		16	/* skbs that a CPU keeps */

/*
 * A CPU sends its next frames in the skbs of frames that it received: two allocations, which
 * Debian's kernels also clear, are a large part of the cost of a short message.  Only plain skbs
 * are kept, whose head is not shared and not much larger than needed; the fragments of a GSO batch
 * are released.
 */
struct spares {
	u32 count;
	struct sk_buff *skbs[SPARES];
};

static DEFINE_PER_CPU(struct spares, spares);

static bool reusable(struct sk_buff *skb)
{
	return skb_end_offset(skb) <= SPARE_MAX &&
	       !skb_cloned(skb) && !skb_shared(skb) && !skb_zcopy(skb) &&
	       skb->fclone == SKB_FCLONE_UNAVAILABLE && !skb->pp_recycle && !skb->pfmemalloc &&
	       !skb_has_frag_list(skb) && !skb_shinfo(skb)->tx_flags;
}

/* Reset an skb to its state after allocation. */
static void renew(struct sk_buff *skb)
{
	bool head_frag = skb->head_frag;

	/* By words: fewer instructions than memset() takes for so few bytes. */
	BUILD_BUG_ON(offsetof(struct sk_buff, tail) % 4);
	memset64((u64 *)skb, 0, offsetof(struct sk_buff, tail) / 8);
	if (offsetof(struct sk_buff, tail) % 8)
		*((u32 *)&skb->tail - 1) = 0;
	skb->head_frag = head_frag;
	skb->alloc_cpu = raw_smp_processor_id();
	skb->truesize = SKB_TRUESIZE(skb_end_offset(skb));
	skb->data = skb->head;
	skb_reset_tail_pointer(skb);
	skb->mac_header = (typeof(skb->mac_header))~0U;
	skb->transport_header = (typeof(skb->transport_header))~0U;
	BUILD_BUG_ON(offsetof(struct skb_shared_info, dataref) % 8);
	memset64((u64 *)skb_shinfo(skb), 0, offsetof(struct skb_shared_info, dataref) / 8);
}

static struct sk_buff *spare_skb(u32 size)
{
	struct spares *s = this_cpu_ptr(&spares);
	struct sk_buff *skb;

	if (!s->count || skb_end_offset(s->skbs[s->count - 1]) < size)
		return NULL;
	skb = s->skbs[--s->count];
	renew(skb);
	return skb;
}

static void drop_fragments(struct sk_buff *skb)
{
	int i;

	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++)
		skb_frag_unref(skb, i);
	skb_shinfo(skb)->nr_frags = 0;
	skb->len -= skb->data_len;
	skb->data_len = 0;
}

void acp_skb_free(struct sk_buff *skb)
{
	struct spares *s = this_cpu_ptr(&spares);

	if (!skb || !reusable(skb)) {
		consume_skb(skb);
		return;
	}
	/* If the stock is full, the skb replaces a smaller one. */
	if (s->count == SPARES) {
		if (skb_end_offset(s->skbs[SPARES - 1]) >= skb_end_offset(skb)) {
			consume_skb(skb);
			return;
		}
		consume_skb(s->skbs[--s->count]);
	}
	if (skb_is_nonlinear(skb))
		drop_fragments(skb);
	/* Drop all references: the skb may outlive their objects. */
	skb_dst_drop(skb);
	skb_orphan(skb);
	nf_reset_ct(skb);
	skb_ext_reset(skb);
	s->skbs[s->count++] = skb;
}

void acp_skbs_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct spares *s = per_cpu_ptr(&spares, cpu);

		while (s->count)
			consume_skb(s->skbs[--s->count]);
	}
}

struct sk_buff *acp_skb_new(u32 size)
{
	return spare_skb(size) ?: alloc_skb(size, GFP_ATOMIC | __GFP_NOWARN);
}

struct sk_buff *acp_skb_like(const struct sk_buff *batch, u32 size)
{
	u32 around = -skb_network_offset(batch);
	struct sk_buff *skb = acp_skb_new(around + size);

	if (!skb)
		return NULL;
	skb_put_data(skb, skb_network_header(batch), around);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, around - sizeof(struct udphdr));
	__skb_pull(skb, around);
	skb->protocol = batch->protocol;
	skb->dev = batch->dev;
	return skb;
}

struct sk_buff *acp_skb_part(const struct sk_buff *batch, u32 at, u32 size)
{
	struct sk_buff *skb = acp_skb_like(batch, size);

	if (!skb)
		return NULL;
	if (!skb_copy_bits(batch, at, skb_put(skb, size), size))
		return skb;
	kfree_skb(skb);
	return NULL;
}
