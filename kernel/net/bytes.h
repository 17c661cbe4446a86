/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cursor into an skb with many fragments.  It remembers the fragment, so that reading on from
 * there need not search from the first fragment.
 */
#ifndef ACP_BYTES_H
#define ACP_BYTES_H

#include <linux/highmem.h>
#include <linux/skbuff.h>

struct acp_bytes {
	u32 at;			/* offset, as for skb_copy_bits() */
	u32 frag;		/* a fragment that begins at or before @at, if one does */
	u32 start;		/* offset at which that fragment begins */
};

/**
 * acp_bytes_word() - copy an aligned word with a single access
 * @to: target
 * @from: source
 * @n: bytes
 *
 * For memory of processes, which may be polling or changing a word: 4 or 8 bytes that
 * are aligned at both ends are copied by one load and one store.
 *
 * Context: any.
 * Return: false if the bytes are no such word; then nothing was copied.
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

/**
 * acp_bytes_move() - copy bytes, an aligned word with a single access
 * @to: target
 * @from: source; must not overlap @to
 * @n: bytes
 *
 * Context: any.
 */
static inline void acp_bytes_move(void *to, const void *from, size_t n)
{
	if (!acp_bytes_word(to, from, n))
		memcpy(to, from, n);
}

/* Pieces of equal length at equal distances. */
struct acp_pieces {
	struct acp_bytes at;	/* position of the first one in an skb ... */
	const u8 *data;		/* ... or, if not NULL, its address in the module's memory */
	u32 count;
	u32 length;		/* bytes of each */
	u32 distance;		/* bytes from the start of one to the start of the next */
};

static inline struct acp_bytes acp_bytes_first(const struct sk_buff *skb)
{
	return (struct acp_bytes){ .start = skb_headlen(skb) };
}

/* A cursor at an offset, which searches from the first fragment. */
static inline struct acp_bytes acp_bytes_behind(const struct sk_buff *skb, u32 at)
{
	return (struct acp_bytes){ .at = at, .start = skb_headlen(skb) };
}

/*
 * Find the fragment.  False: the offset is in no fragment of this skb: it is in the linear part, in
 * an skb of the frag_list, or past the end.
 */
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

/* Return the address of the next @size bytes if they are contiguous in mapped memory, or NULL. */
static inline const void *acp_bytes_straight(const struct sk_buff *skb, struct acp_bytes *b,
					     u32 size)
{
	const skb_frag_t *frag;
	u32 inside;

	if (b->at + size <= skb_headlen(skb))
		return skb->data + b->at;
	if (IS_ENABLED(CONFIG_HIGHMEM) || !acp_bytes_seek(skb, b))
		return NULL;
	frag = &skb_shinfo(skb)->frags[b->frag];
	inside = b->at - b->start;
	if (!skb_frag_page(frag) || skb_frag_size(frag) - inside < size)
		return NULL;
	return skb_frag_address(frag) + inside;
}

/**
 * acp_bytes_copy() - copy bytes from an skb and advance the cursor
 * @skb: source
 * @b: cursor; it advances by @size
 * @to: target
 * @size: bytes
 *
 * The fast path is for bytes in fragments; skb_copy_bits() copies all others.
 *
 * Context: any.
 * Return: 0; or -EFAULT if @skb is too short, or has memory that is not readable.
 */
static inline int acp_bytes_copy(const struct sk_buff *skb, struct acp_bytes *b, void *to, u32 size)
{
	while (size && acp_bytes_seek(skb, b)) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[b->frag];
		u32 inside = b->at - b->start, offset = skb_frag_off(frag) + inside;
		u32 n = min3(size, skb_frag_size(frag) - inside,
			     (u32)(PAGE_SIZE - offset_in_page(offset)));
		struct page *page = skb_frag_page(frag);
		const u8 *p;

		if (unlikely(!page))	/* device memory */
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
