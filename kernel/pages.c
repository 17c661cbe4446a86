// SPDX-License-Identifier: GPL-2.0-only
/* Pinned pages of user memory: see pages.h. */
#include <linux/pgtable.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/version.h>
#include "pages.h"

#define SEEN_MOST	32	/* pages asked for at once */

/* ---- the table ---- */

static unsigned long pieces_of(const struct acp_pages *p)
{
	return DIV_ROUND_UP(p->skip + p->n, ACP_PIECE_PAGES);
}

/* The first page of a piece, and with that of the next one the end of it. */
static unsigned long first_of(const struct acp_pages *p, unsigned long piece)
{
	return piece ? min(piece * ACP_PIECE_PAGES - p->skip, p->n) : 0;
}

static unsigned long address_of(const struct acp_pages *p, unsigned long i)
{
	return p->start + (i << PAGE_SHIFT);
}

int acp_pages_make(struct acp_pages *p, unsigned long start, unsigned long n, bool writable)
{
	p->start = start;
	p->n = n;
	p->skip = (start & ~PMD_MASK) >> PAGE_SHIFT;
	p->writable = writable;
	p->pieces = &p->one;
	if (pieces_of(p) > 1)
		p->pieces = kvmalloc_array(pieces_of(p), sizeof(*p->pieces),
					   GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	return p->pieces ? 0 : -ENOMEM;
}

/* ---- the page table of the process ---- */

/* The page frame at an address that is in a huge mapping, which may be written to if so wished. */
static bool huge_pfn(struct mm_struct *mm, unsigned long addr, bool writable, unsigned long *pfn)
{
	pgd_t *pgdp = pgd_offset(mm, addr), pgd = READ_ONCE(*pgdp);
	p4d_t *p4dp, p4d;
	pud_t *pudp, pud;
	pmd_t pmd;

	if (pgd_none(pgd))
		return false;
	p4dp = p4d_offset_lockless(pgdp, pgd, addr);
	p4d = READ_ONCE(*p4dp);
	if (p4d_none(p4d) || !p4d_present(p4d))
		return false;
	pudp = pud_offset_lockless(p4dp, p4d, addr);
	pud = READ_ONCE(*pudp);
	if (pud_none(pud) || !pud_present(pud))
		return false;
	if (pud_leaf(pud)) {
		*pfn = pud_pfn(pud) + ((addr & ~PUD_MASK) >> PAGE_SHIFT);
		return pud_access_permitted(pud, writable);
	}
	pmd = READ_ONCE(*pmd_offset_lockless(pudp, pud, addr));
	if (pmd_none(pmd) || !pmd_present(pmd) || !pmd_leaf(pmd))
		return false;
	*pfn = pmd_pfn(pmd) + ((addr & ~PMD_MASK) >> PAGE_SHIFT);
	return pmd_access_permitted(pmd, writable);
}

/*
 * Is this page mapped there, now, as part of a huge page?  Then so are its
 * neighbours of the same piece.  Page tables are not freed while interrupts are
 * off, which is what get_user_pages_fast() relies on, too.  What changes
 * afterwards is told by the notifier.
 */
static bool in_huge_mapping(struct mm_struct *mm, unsigned long addr, struct page *page,
			    bool writable)
{
	unsigned long flags, pfn;
	bool huge;

	if (!IS_ENABLED(CONFIG_HAVE_FAST_GUP) && !IS_ENABLED(CONFIG_HAVE_GUP_FAST))
		return false;
	local_irq_save(flags);
	huge = huge_pfn(mm, addr, writable, &pfn);
	local_irq_restore(flags);
	return huge && pfn == page_to_pfn(page);
}

/* Does holding this page hold it and the n - 1 behind it, which are mapped behind it? */
static bool holds_all(const struct acp_pages *p, struct page *page, unsigned long addr,
		      unsigned long n)
{
	struct folio *folio = page_folio(page);

	if (n == 1)
		return true;
	return folio_page_idx(folio, page) + n <= folio_nr_pages(folio) &&
	       in_huge_mapping(current->mm, addr, page, p->writable);
}

/* ---- pinning ---- */

static void unpin(const struct acp_pages *p, struct page **pages, unsigned long n)
{
	unpin_user_pages_dirty_lock(pages, n, p->writable);
}

/* All n of them, or none. */
static int pin(const struct acp_pages *p, unsigned long addr, unsigned long n, struct page **pages)
{
	unsigned int flags = FOLL_LONGTERM | (p->writable ? FOLL_WRITE : 0);
	unsigned long done = 0;

	while (done < n) {
		int got = pin_user_pages_fast(addr + (done << PAGE_SHIFT), n - done, flags,
					      pages + done);

		if (got <= 0) {
			unpin(p, pages, done);
			if (fatal_signal_pending(current))
				return -EINTR;
			return got == -ENOMEM ? -ENOMEM : -EFAULT;
		}
		done += got;
	}
	return 0;
}

/* The n pages from addr on one by one, the first of which is pinned. */
static int pin_rest(const struct acp_pages *p, unsigned long addr, unsigned long n,
		    struct page *first, unsigned long *entry)
{
	struct page **pages = kmalloc_array(n, sizeof(*pages), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	int err;

	if (!pages)
		return -ENOMEM;
	pages[0] = first;
	err = pin(p, addr + PAGE_SIZE, n - 1, pages + 1);
	if (err) {
		kfree(pages);
		return err;
	}
	*entry = (unsigned long)pages;
	return 0;
}

static int pin_piece(struct acp_pages *p, unsigned long piece)
{
	unsigned long i = first_of(p, piece), n = first_of(p, piece + 1) - i;
	unsigned long addr = address_of(p, i);
	struct page *page;
	int err = pin(p, addr, 1, &page);

	if (err)
		return err;
	if (holds_all(p, page, addr, n)) {
		p->pieces[piece] = (unsigned long)page | ACP_PIECE_WHOLE;
		return 0;
	}
	err = pin_rest(p, addr, n, page, &p->pieces[piece]);
	if (err)
		unpin(p, &page, 1);
	return err;
}

int acp_pages_pin(struct acp_pages *p)
{
	int err = 0;

	for (; p->done < pieces_of(p) && !err; cond_resched()) {
		err = pin_piece(p, p->done);
		p->done += !err;
	}
	return err;
}

static void unpin_piece(struct acp_pages *p, unsigned long piece)
{
	unsigned long entry = p->pieces[piece];
	struct page *page = (struct page *)(entry - ACP_PIECE_WHOLE), **pages;

	if (entry & ACP_PIECE_WHOLE) {
		unpin(p, &page, 1);
		return;
	}
	pages = (struct page **)entry;
	unpin(p, pages, first_of(p, piece + 1) - first_of(p, piece));
	kfree(pages);
}

void acp_pages_drop(struct acp_pages *p)
{
	while (p->done) {
		unpin_piece(p, --p->done);
		cond_resched();
	}
	if (p->pieces != &p->one)
		kvfree(p->pieces);
	p->pieces = NULL;
}

/* ---- comparing ---- */

/* How many pages from i on mm still has, of at most n: by a huge mapping, or one by one. */
static unsigned long still_there(const struct acp_pages *p, struct mm_struct *mm, unsigned long i,
				 unsigned long n)
{
	unsigned long together, same = 0, k;
	struct page *seen[SEEN_MOST], *page = acp_pages_at(p, i, &together);
	long got;

	if (together > 1 && in_huge_mapping(mm, address_of(p, i), page, false))
		return min(n, together);
	n = min_t(unsigned long, n, SEEN_MOST);
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	got = get_user_pages_remote(mm, address_of(p, i), n, FOLL_NOWAIT, seen, NULL, NULL);
#else
	got = get_user_pages_remote(mm, address_of(p, i), n, FOLL_NOWAIT, seen, NULL);
#endif
	for (k = 0; got > 0 && k < got; k++) {
		same += same == k && seen[k] == acp_pages_at(p, i + k, &together);
		put_page(seen[k]);
	}
	return same;
}

bool acp_pages_same(struct acp_pages *p, struct mm_struct *mm, unsigned long first,
		    unsigned long end)
{
	unsigned long same = 1;

	mmap_read_lock(mm);
	for (; first < end && same; first += same) {
		same = still_there(p, mm, first, end - first);
		cond_resched();
	}
	mmap_read_unlock(mm);
	return same;
}
