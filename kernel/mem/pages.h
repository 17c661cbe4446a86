/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pinned pages of a region of user memory: pin them, find a page by its
 * number, compare them with the pages that the process has mapped.
 *
 * The table has an entry per piece.  A piece consists of the region's pages
 * within an address range of the size of a huge page (2 MiB on x86-64); at the
 * ends of the region it has fewer.  For a piece within one huge page that is
 * mapped as such, or of a single page, one page is pinned, which holds the whole
 * folio.  For any other piece there is an array, and each page is pinned.  So
 * the cost is per huge page or per small page, a region may have both, and each
 * page is found in the same number of steps.
 *
 * While huge pages are pinned, their mapping may be split, but the folio is not:
 * the entry stays valid as long as the process has the same pages mapped.
 */
#ifndef ACP_PAGES_H
#define ACP_PAGES_H

#include <linux/mm.h>

#define ACP_PIECE_PAGES		(1UL << (PMD_SHIFT - PAGE_SHIFT))

struct acp_pages {
	unsigned long start;	/* user address of the first page */
	unsigned long n;	/* number of pages, of PAGE_SIZE */
	unsigned long skip;	/* pages of the first piece's range before start */
	bool writable;
	unsigned long done;	/* pieces pinned */
	unsigned long *pieces;	/* a page with ACP_PIECE_WHOLE, or an array of pages */
	unsigned long one;	/* the table if it has one entry */
};

#define ACP_PIECE_WHOLE		1UL

/* Allocate the table for memory of current: 0 or -ENOMEM.  Pins nothing yet. */
int acp_pages_make(struct acp_pages *p, unsigned long start, unsigned long n, bool writable);

/*
 * Pin all pages: 0, -EFAULT, -ENOMEM or -EINTR.  After an error some pages are pinned.  Pins only
 * pages that the process can write to, or could write to if it changed the protection of its
 * private mapping: never pages of a file, the zero page or device memory.  The caller must watch
 * the mapping before this call, and must not use pages that are unmapped meanwhile.  Sleeps.
 */
int acp_pages_pin(struct acp_pages *p);

/* Unpin all pinned pages and free the table.  Sleeps. */
void acp_pages_drop(struct acp_pages *p);

/* What can be said about pages, from the best to the worst. */
enum acp_pages_state {
	ACP_PAGES_SAME,		/* all are mapped at their addresses */
	ACP_PAGES_UNSEEN,	/* some cannot be looked at now; the process has no others */
	ACP_PAGES_MISSING,	/* one is not mapped, unless the mapping is just being changed */
	ACP_PAGES_OTHER,	/* the process has, or will get, another page for one of them */
};

/*
 * Look at pages [first, end) in mm, without regard to protection. Returns at the first one that is
 * missing or another one. Maps pages of shared memory if they are not mapped, so that the notifier
 * reports when they are lost. Waits for locked pages, but not for a page that user space may have
 * to provide (userfaultfd). Holds mmap_lock all the time: the caller limits the number of pages.
 * Without wait, pages are unseen while another task changes the mapping. Sleeps.
 */
enum acp_pages_state acp_pages_look(struct acp_pages *p, struct mm_struct *mm, unsigned long first,
				    unsigned long end, bool wait, const bool *lost);

/* In newer kernels the struct pages of a folio are contiguous. */
#ifndef nth_page
#define nth_page(page, n)	((page) + (n))
#endif

/* Page i.  *together: number of pages from it on that are contiguous, also when mapped. */
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
