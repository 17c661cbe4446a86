// SPDX-License-Identifier: GPL-2.0-only
/* Locked pages: see memlock.h. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm_types.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include "../job/limits.h"
#include "memlock.h"

/* Add pages to the count of the process unless it would exceed max. */
static bool take_process(struct mm_struct *mm, unsigned long pages, unsigned long max)
{
	s64 old = atomic64_read(&mm->pinned_vm);

	do {
		if (pages > max || (u64)old > max - pages)
			return false;
	} while (!atomic64_try_cmpxchg(&mm->pinned_vm, &old, old + (s64)pages));
	return true;
}

/* Charge the process, its user and the payer, or none of them. */
static bool take_all(struct acp_memlock *m, struct user_struct *user, unsigned long max)
{
	if (!acp_limit_take(&user->locked_vm, m->pages, max))
		return false;
	if (!acp_limit_take(acp_user_locked(m->payer), m->pages, max))
		goto user;
	if (take_process(m->mm, m->pages, max))
		return true;
	atomic_long_sub(m->pages, acp_user_locked(m->payer));
user:
	atomic_long_sub(m->pages, &user->locked_vm);
	return false;
}

static void hold(const struct acp_memlock *m)
{
	mmgrab(m->mm);
	if (m->user)
		get_uid(m->user);
	acp_user_hold(m->payer);
}

int acp_memlock_charge(struct acp_memlock *m, struct mm_struct *mm, struct acp_user *payer,
		       unsigned long pages)
{
	*m = (struct acp_memlock){ .mm = mm, .payer = payer, .pages = pages };
	/* Without an audit record: unprivileged users register memory, too. */
	if (ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK))
		atomic64_add(pages, &mm->pinned_vm);
	else if (take_all(m, current_user(), rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT))
		m->user = current_user();
	else
		return acp_over(ACP_LIMIT_MEMLOCK);
	hold(m);
	return 0;
}

void acp_memlock_split(struct acp_memlock *from, struct acp_memlock *to, unsigned long pages)
{
	*to = *from;
	to->pages = pages;
	from->pages -= pages;
	hold(to);
}

void acp_memlock_uncharge(struct acp_memlock *m)
{
	atomic64_sub(m->pages, &m->mm->pinned_vm);
	if (m->user) {
		atomic_long_sub(m->pages, acp_user_locked(m->payer));
		atomic_long_sub(m->pages, &m->user->locked_vm);
		free_uid(m->user);
	}
	acp_user_put(m->payer);
	mmdrop(m->mm);
}
