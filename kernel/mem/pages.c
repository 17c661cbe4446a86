// SPDX-License-Identifier: GPL-2.0-only
/* Pinned pages of user memory: see pages.h. */
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/magic.h>
#include <linux/pgtable.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/userfaultfd_k.h>
#include "pages.h"

#define SEEN_MAX	32	/* pages per get_user_pages_remote() */

/* ---- the table ---- */

static unsigned long pieces_of(const struct acp_pages *p)
{
	return DIV_ROUND_UP(p->skip + p->n, ACP_PIECE_PAGES);
}

/* The first page of a piece.  A piece ends where the next one begins. */
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

/* What a lockless look at the page table found. */
struct huge {
	unsigned long pfn;
	bool readable, writable;
};

/* The page frame at an address, if it is mapped by a huge page. */
static bool find_huge(struct mm_struct *mm, unsigned long addr, struct huge *h)
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
		*h = (struct huge){ pud_pfn(pud) + ((addr & ~PUD_MASK) >> PAGE_SHIFT),
				    pud_access_permitted(pud, false),
				    pud_access_permitted(pud, true) };
		return true;
	}
	pmd = READ_ONCE(*pmd_offset_lockless(pudp, pud, addr));
	if (pmd_none(pmd) || !pmd_present(pmd) || !pmd_leaf(pmd))
		return false;
	*h = (struct huge){ pmd_pfn(pmd) + ((addr & ~PMD_MASK) >> PAGE_SHIFT),
			    pmd_access_permitted(pmd, false), pmd_access_permitted(pmd, true) };
	return true;
}

/*
 * Is this page mapped there now as part of a huge page?  Then so are the other
 * pages of its piece.  Page tables are not freed while interrupts are off;
 * get_user_pages_fast() relies on that, too.  The notifier reports later changes.
 */
static bool in_huge_mapping(struct mm_struct *mm, unsigned long addr, struct page *page,
			    struct huge *h)
{
	unsigned long flags;
	bool found;

	if (!IS_ENABLED(CONFIG_HAVE_FAST_GUP) && !IS_ENABLED(CONFIG_HAVE_GUP_FAST))
		return false;
	local_irq_save(flags);
	found = find_huge(mm, addr, h);
	local_irq_restore(flags);
	return found && h->pfn == page_to_pfn(page);
}

/* Does a pin of this page hold the n - 1 pages after it, too, and are they mapped after it? */
static bool holds_all(const struct acp_pages *p, struct page *page, unsigned long addr,
		      unsigned long n)
{
	struct folio *folio = page_folio(page);
	struct huge h;

	if (n == 1)
		return true;
	if (folio_page_idx(folio, page) + n > folio_nr_pages(folio) ||
	    !in_huge_mapping(current->mm, addr, page, &h))
		return false;
	return p->writable ? h.writable : h.readable;
}

/* ---- pinning ---- */

static void unpin(const struct acp_pages *p, struct page **pages, unsigned long n)
{
	unpin_user_pages_dirty_lock(pages, n, p->writable);
}

/*
 * The flags for pinning.  Memory that is registered for reading is pinned for writing as well: a
 * private mapping then gets its own pages in place of pages of a file or the zero page, which
 * others share.  A shared mapping must be writable.  FOLL_FORCE does not work for hugetlb pages
 * that are mapped read-only: these are pinned for reading (look), and must be anonymous already.
 */
static unsigned int how(const struct acp_pages *p, bool look)
{
	if (look)
		return FOLL_LONGTERM;
	return FOLL_LONGTERM | FOLL_WRITE | (p->writable ? 0 : FOLL_FORCE);
}

static bool all_anonymous(struct page **pages, unsigned long n)
{
	while (n && PageAnon(pages[n - 1]))
		n--;
	return !n;
}

/* Pin up to n pages.  Returns how many, or an error. */
static long pin_some(const struct acp_pages *p, unsigned long addr, unsigned long n,
		     struct page **pages)
{
	long got = pin_user_pages_fast(addr, n, how(p, false), pages);

	if (got != -EFAULT || p->writable)
		return got;
	got = pin_user_pages_fast(addr, n, how(p, true), pages);
	if (got <= 0 || all_anonymous(pages, got))
		return got;
	unpin(p, pages, got);
	return -EFAULT;
}

/* Pin n pages, or none. */
static int pin(const struct acp_pages *p, unsigned long addr, unsigned long n, struct page **pages)
{
	unsigned long done = 0;

	while (done < n) {
		long got = pin_some(p, addr + (done << PAGE_SHIFT), n - done, pages + done);

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

/* Pin n pages from addr on one by one.  The first one is pinned already. */
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

/* ---- what may be pinned ---- */

/* Is it shared memory, not a file on storage?  Shared memory is hugetlb or a file of tmpfs. */
static bool is_shared_memory(struct vm_area_struct *vma)
{
	const struct inode *inode;

	if (is_vm_hugetlb_page(vma))
		return true;
	if (!vma->vm_file)
		return false;
	inode = file_inode(vma->vm_file);
	return inode->i_sb->s_magic == TMPFS_MAGIC && S_ISREG(inode->i_mode);
}

/*
 * May pages of this mapping be pinned?  The process must be able to write to them, and no file
 * system may write them back.  A private mapping gets its own pages, whatever it maps.  A shared
 * mapping must be shared memory.
 */
static bool may_pin(const struct acp_pages *p, struct vm_area_struct *vma)
{
	if (vma->vm_flags & (VM_IO | VM_PFNMAP | VM_MIXEDMAP) || vma_is_dax(vma))
		return false;
	if (!(vma->vm_flags & (p->writable ? VM_WRITE : VM_READ)))
		return false;
	if (!(vma->vm_flags & VM_MAYSHARE))
		return true;
	return vma->vm_flags & VM_WRITE && is_shared_memory(vma);
}

/*
 * Check all mappings, with the same result on all kernels, some of which would pin more.  If a
 * mapping is replaced after this check, it is unmapped first, which the notifier reports.
 */
static int look_at_mappings(const struct acp_pages *p)
{
	unsigned long at = p->start, end = address_of(p, p->n);
	struct vm_area_struct *vma;
	struct vma_iterator vmi;

	mmap_read_lock(current->mm);
	vma_iter_init(&vmi, current->mm, at);
	for_each_vma_range(vmi, vma, end) {
		if (vma->vm_start > at || !may_pin(p, vma))
			break;
		at = vma->vm_end;
		cond_resched();
	}
	mmap_read_unlock(current->mm);
	return at < end ? -EFAULT : 0;
}

int acp_pages_pin(struct acp_pages *p)
{
	int err = look_at_mappings(p);

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

/* Get the pages that mm has at an address, also while they are protected.  0: not now. */
static long see(struct mm_struct *mm, unsigned long addr, unsigned long n, unsigned int how,
		struct page **seen)
{
	how |= FOLL_FORCE | FOLL_NOWAIT;
#ifdef ACP_HAS_GUP_VMAS
	return get_user_pages_remote(mm, addr, n, how, seen, NULL, NULL);
#else
	return get_user_pages_remote(mm, addr, n, how, seen, NULL);
#endif
}

/*
 * May user space have to provide a page that is not mapped?  It must not be asked: in some kernels
 * (6.1) get_user_pages_remote() spins, with mmap_lock held, until a descriptor that is just being
 * closed has left the mapping, which takes mmap_lock.
 */
static bool on_demand(struct vm_area_struct *vma)
{
	return userfaultfd_missing(vma) || userfaultfd_minor(vma);
}

/*
 * The number of pages from i on that are mapped in vma, at most n.  0: page i is not, or another
 * one is mapped there (*other).
 */
static unsigned long still_there(const struct acp_pages *p, struct vm_area_struct *vma,
				 unsigned long i, unsigned long n, bool *other)
{
	unsigned long together, same = 0, k, addr = address_of(p, i);
	struct page *seen[SEEN_MAX], *page = acp_pages_at(p, i, &together);
	struct huge h;
	long got;

	if (PageCompound(page) && in_huge_mapping(vma->vm_mm, addr, page, &h))
		return min(n, together);
	if (is_vm_hugetlb_page(vma) && on_demand(vma))	/* FOLL_NOFAULT would fault in 6.1 */
		return 0;
	n = min3(n, (unsigned long)SEEN_MAX, (vma->vm_end - addr) >> PAGE_SHIFT);
	got = see(vma->vm_mm, addr, n, FOLL_NOFAULT, seen);
	for (k = 0; got > 0 && k < got; k++) {
		same += same == k && seen[k] == acp_pages_at(p, i + k, &together);
		put_page(seen[k]);
	}
	*other = got > 0 && !same;
	return same;
}

/*
 * A page of shared memory: does its file still have it, or is it on its way to or from swap?  Back
 * from swap, it has its file before it leaves the swap cache.
 */
static bool in_its_file(struct page *page)
{
	struct folio *folio = page_folio(page);

	return READ_ONCE(folio->mapping) || folio_test_swapcache(folio) ||
	       READ_ONCE(folio->mapping);
}

/*
 * Page i is not mapped.  A pinned page of private memory stays mapped unless the process gives it
 * up.  A page of shared memory can be unmapped by reclaim or migration and is mapped again at the
 * next access, which this is.
 */
static enum acp_pages_state look_at_unmapped(const struct acp_pages *p, struct vm_area_struct *vma,
					     unsigned long i)
{
	unsigned long together;
	struct page *seen, *page = acp_pages_at(p, i, &together);
	long got;

	if (PageAnon(page))
		return ACP_PAGES_MISSING;
	/* No other file is asked for pages: that may take for ever. */
	if (!(vma->vm_flags & VM_MAYSHARE) || !is_shared_memory(vma) || !in_its_file(page))
		return ACP_PAGES_OTHER;
	if (on_demand(vma))
		return ACP_PAGES_UNSEEN;
	got = see(vma->vm_mm, address_of(p, i), 1, 0, &seen);
	if (got == 1)
		put_page(seen);
	if (got == 1)
		return seen == page ? ACP_PAGES_SAME : ACP_PAGES_OTHER;
	return got == -EFAULT ? ACP_PAGES_MISSING : ACP_PAGES_UNSEEN;
}

enum acp_pages_state acp_pages_look(struct acp_pages *p, struct mm_struct *mm, unsigned long first,
				    unsigned long end, bool wait, const bool *lost)
{
	enum acp_pages_state state = ACP_PAGES_SAME;
	unsigned long same;

	if (wait)
		mmap_read_lock(mm);
	else if (!mmap_read_trylock(mm))
		return ACP_PAGES_UNSEEN;
	/* Pages unmapped before mmap_lock was taken are lost, whatever is mapped there now. */
	if (READ_ONCE(*lost))
		state = ACP_PAGES_OTHER;
	for (; first < end && state < ACP_PAGES_MISSING; first += same ?: 1) {
		struct vm_area_struct *vma = vma_lookup(mm, address_of(p, first));
		bool other = false;

		same = vma ? still_there(p, vma, first, end - first, &other) : 0;
		if (other)
			state = ACP_PAGES_OTHER;
		else if (!vma)
			state = ACP_PAGES_MISSING;
		else if (!same)
			state = max(state, look_at_unmapped(p, vma, first));
		cond_resched();
	}
	mmap_read_unlock(mm);
	return state;
}
