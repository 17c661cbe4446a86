/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where bytes are in an skb of many fragments: a cursor, which knows the
 * fragment too, so that who goes on from there need not look for it from the
 * first one on.
 */
#ifndef ACP_BYTES_H
#define ACP_BYTES_H

#include <linux/highmem.h>
#include <linux/skbuff.h>

struct acp_bytes {
	u32 at;			/* offset, as for skb_copy_bits() */
	u32 frag;		/* a fragment that does not begin behind it, if it is in one */
	u32 start;		/* offset where that begins */
};

/*
 * From or to memory of users, who may be polling a word, or changing it: if these bytes are one,
 * and aligned at both ends, it is moved at once.  False: they are not, and nothing is moved.
 */
static inline bool acp_bytes_word(void *to, const void *from, size_t n)
{
	unsigned long both = (unsigned long)to | (unsigned long)from;

	if (n == 8 && IS_ALIGNED(both, 8))
		WRITE_ONCE(*(u64 *)to, READ_ONCE(*(const u64 *)from));
	else if (n == 4 && IS_ALIGNED(both, 4))
		WRITE_ONCE(*(u32 *)to, READ_ONCE(*(const u32 *)from));
	else
		return false;
	return true;
}

static inline void acp_bytes_move(void *to, const void *from, size_t n)
{
	if (!acp_bytes_word(to, from, n))
		memcpy(to, from, n);
}

/* Pieces of one length, at equal distances. */
struct acp_pieces {
	struct acp_bytes at;	/* where the first one is */
	u32 count;
	u32 length;		/* of each */
	u32 distance;		/* from the beginning of one to that of the next */
};

static inline struct acp_bytes acp_bytes_first(const struct sk_buff *skb)
{
	return (struct acp_bytes){ .start = skb_headlen(skb) };
}

/* Find the fragment.  False: it is in none of this skb's own, or in none that is plain memory. */
static inline bool acp_bytes_seek(const struct sk_buff *skb, struct acp_bytes *b)
{
	const struct skb_shared_info *info = skb_shinfo(skb);

	for (; b->frag < info->nr_frags; b->frag++) {
		u32 size = skb_frag_size(&info->frags[b->frag]);

		if (b->at - b->start < size)
			return b->at >= b->start;
		if (b->at < b->start)
			return false;
		b->start += size;
	}
	return false;
}

/* Copy from there, and go on: 0, or -EFAULT if there is not so much. */
static inline int acp_bytes_copy(const struct sk_buff *skb, struct acp_bytes *b, void *to, u32 size)
{
	while (size && acp_bytes_seek(skb, b)) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[b->frag];
		u32 inside = b->at - b->start, offset = skb_frag_off(frag) + inside;
		u32 n = min3(size, skb_frag_size(frag) - inside,
			     (u32)(PAGE_SIZE - offset_in_page(offset)));
		struct page *page = skb_frag_page(frag);
		const u8 *p;

		if (unlikely(!page))	/* memory of a device */
			return -EFAULT;
		p = kmap_local_page(page + (offset >> PAGE_SHIFT));
		memcpy(to, p + offset_in_page(offset), n);
		kunmap_local(p);
		to += n;
		b->at += n;
		size -= n;
	}
	if (!size)
		return 0;
	b->at += size;
	return skb_copy_bits(skb, b->at - size, to, size);
}

#endif /* ACP_BYTES_H */
