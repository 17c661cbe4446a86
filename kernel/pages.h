/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pages of user memory that a region has: pinned, found by their number,
 * compared with what the process sees.
 *
 * The table has an entry per piece: the pages of one huge page's worth of
 * addresses (2 MiB on x86-64) that belong to the region, fewer at its ends.  A
 * piece that lies in one huge page, mapped as such, or that has a single page,
 * is one pinned page, which holds the whole of what it is part of; for any
 * other there is an array with a pinned page each.  So huge pages cost per
 * huge page, small ones per page, a region may have both, and a page is found
 * in the same number of steps wherever it is.
 *
 * Huge pages may be split in the page table while they are pinned, not in
 * memory: the entry stays right as long as the process sees the same pages.
 */
#ifndef ACP_PAGES_H
#define ACP_PAGES_H

#include <linux/mm.h>

#define ACP_PIECE_PAGES		(1UL << (PMD_SHIFT - PAGE_SHIFT))

struct acp_pages {
	unsigned long start;	/* user address of the first, page aligned */
	unsigned long n;	/* of PAGE_SIZE */
	unsigned long skip;	/* pages of the first piece that are before it */
	bool writable;
	unsigned long done;	/* pieces pinned */
	unsigned long *pieces;	/* a page, with ACP_PIECE_WHOLE, or an array of pages */
	unsigned long one;	/* the table, if it has one entry */
};

#define ACP_PIECE_WHOLE		1UL

/* The memory of current at these addresses; -ENOMEM.  Pins nothing yet. */
int acp_pages_make(struct acp_pages *p, unsigned long start, unsigned long n, bool writable);

/* Pin all: 0, -EFAULT, -ENOMEM or -EINTR, and then some are.  Sleeps. */
int acp_pages_pin(struct acp_pages *p);

/* Unpin what is pinned, and forget the table.  Sleeps. */
void acp_pages_drop(struct acp_pages *p);

/*
 * Does mm have pages [first, end) at their addresses?  Holds mmap_lock all the
 * time, so not many at once.  Sleeps.
 */
bool acp_pages_same(struct acp_pages *p, struct mm_struct *mm, unsigned long first,
		    unsigned long end);

/* Page i.  *together: so many from it on are one behind the other, also when they are mapped. */
static inline struct page *acp_pages_at(const struct acp_pages *p, unsigned long i,
					unsigned long *together)
{
	unsigned long at = i + p->skip, piece = at / ACP_PIECE_PAGES;
	unsigned long first = at % ACP_PIECE_PAGES, entry = p->pieces[piece];
	unsigned long k = piece ? first : i;

	*together = 1;
	if (!(entry & ACP_PIECE_WHOLE))
		return ((struct page **)entry)[k];
	if (!IS_ENABLED(CONFIG_KMAP_LOCAL))
		*together = ACP_PIECE_PAGES - first;
	return nth_page((struct page *)(entry - ACP_PIECE_WHOLE), k);
}

#endif /* ACP_PAGES_H */
