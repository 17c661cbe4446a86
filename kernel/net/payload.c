// SPDX-License-Identifier: GPL-2.0-only
/* Tags of frames with long payloads: see payload.h. */
#include "../core/nh.h"
#include "payload.h"
#include "udp.h"

/* Add the bytes in the skb's linear part.  Return their number. */
static u32 add_linear(struct acp_nh *t, const struct sk_buff *skb, u32 at, u32 size)
{
	u32 n = at < skb_headlen(skb) ? min(size, skb_headlen(skb) - at) : 0;

	if (n)
		acp_nh_add(t, skb->data + at, n);
	return n;
}

/* Add the bytes in fragments of readable memory.  Return their number. */
static u32 add_fragments(struct acp_nh *t, const struct sk_buff *skb, struct acp_bytes *b,
			 u32 size)
{
	u32 n, done;

	for (done = 0; done < size && acp_bytes_seek(skb, b); done += n) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[b->frag];
		u32 inside = b->at - b->start, offset = skb_frag_off(frag) + inside;
		struct page *page = skb_frag_page(frag);
		const u8 *p;

		if (unlikely(!page))	/* device memory */
			break;
		n = min3(size - done, skb_frag_size(frag) - inside,
			 (u32)(PAGE_SIZE - offset_in_page(offset)));
		p = kmap_local_page(page + (offset >> PAGE_SHIFT));
		acp_nh_add(t, p + offset_in_page(offset), n);
		kunmap_local(p);
		b->at += n;
	}
	return done;
}

/* Add bytes that are anywhere else, such as in a frag_list. */
static noinline void add_others(struct acp_nh *t, const struct sk_buff *skb, u32 at, u32 size)
{
	struct skb_seq_state state;
	u32 done = 0, n;
	const u8 *p;

	skb_prepare_seq_read((struct sk_buff *)skb, at, at + size, &state);
	while ((n = skb_seq_read(done, &p, &state))) {
		n = min(n, size - done);	/* the block may extend past @to */
		acp_nh_add(t, p, n);
		done += n;
	}
}

u64 acp_payload_tag(const struct acp_job *job, const struct acp_frame_hdr *h,
		    const struct acp_frame *f, const struct sk_buff *skb, struct acp_bytes at)
{
	u32 head = acp_frame_tagged(f), size = acp_frame_size(f) - head, n;
	struct acp_nh t acp_uncleared;

	acp_nh_begin(&t, &job->nh, acp_udp_start(job, h), &h->version, head - sizeof(h->tag));
	n = add_linear(&t, skb, at.at, size);
	at.at += n;
	size -= n;
	n = add_fragments(&t, skb, &at, size);
	if (unlikely(n < size))
		add_others(&t, skb, at.at, size - n);
	return acp_nh_end(&t);
}

u64 acp_payload_tag_of(const struct acp_job *job, const struct acp_frame_hdr *h,
		       const struct acp_frame *f, const void *data)
{
	u32 head = acp_frame_tagged(f);
	struct acp_nh t acp_uncleared;

	acp_nh_begin(&t, &job->nh, acp_udp_start(job, h), &h->version, head - sizeof(h->tag));
	acp_nh_add(&t, data, acp_frame_size(f) - head);
	return acp_nh_end(&t);
}
