/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Locked pages, as RLIMIT_MEMLOCK counts them: registered memory and kernel-allocated memory of a
 * rank (starter memory, heap and the library's page).
 *
 * They are charged three times, and no charge may exceed the limit of the calling task:
 *	the process		mm->pinned_vm
 *	its user		user_struct->locked_vm, shared with io_uring, perf and MSG_ZEROCOPY
 *	the payer		of limits.h: the owner of many user ids in a user namespace has
 *				as many user_structs, but is one payer
 * A task with CAP_IPC_LOCK has no limit, and its pages are charged to its process only, as in
 * io_uring.  Otherwise root's programs would use up the limit of containers that run as root.
 */
#ifndef ACP_MEMLOCK_H
#define ACP_MEMLOCK_H

struct acp_user;
struct mm_struct;
struct user_struct;

struct acp_memlock {
	struct mm_struct *mm;		/* a reference */
	struct user_struct *user;	/* a reference; NULL: only the process is charged */
	struct acp_user *payer;		/* a reference */
	unsigned long pages;
};

/**
 * acp_memlock_charge() - charge for locked pages
 * @m: receives the charge, with references; uninitialized before
 * @mm: mm of the calling task
 * @payer: the user of limits.h
 * @pages: number of pages
 *
 * All pages are charged, or none.
 *
 * Context: process.
 * Return: 0, or acp_over(ACP_LIMIT_MEMLOCK); then @m must not be uncharged.
 */
int acp_memlock_charge(struct acp_memlock *m, struct mm_struct *mm, struct acp_user *payer,
		       unsigned long pages);

/* Move the charge of some pages to "to", which is uninitialized.  "from" has at least as many. */
void acp_memlock_split(struct acp_memlock *from, struct acp_memlock *to, unsigned long pages);

/**
 * acp_memlock_uncharge() - take back a charge and put its references
 * @m: the charge
 *
 * The calling task need not be the one that was charged.
 *
 * Context: process.
 */
void acp_memlock_uncharge(struct acp_memlock *m);

#endif /* ACP_MEMLOCK_H */
