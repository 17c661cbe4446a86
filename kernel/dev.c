// SPDX-License-Identifier: GPL-2.0-only
/* /dev/acp: the calls of acp_abi.h on one open file: a rank, or one more queue of a rank. */
#include <linux/compat.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include "attach.h"
#include "barrier.h"
#include "copies.h"
#include "dev.h"
#include "event.h"
#include "job.h"
#include "notice.h"
#include "poller.h"
#include "queue.h"
#include "region.h"
#include "station.h"
#include "watch.h"

/* file->private_data: the context, once joined. */
struct acp_file {
	struct mutex lock;	/* against joining twice */
	struct acp_context *ctx;
	struct net *net;	/* of the opener */
};

/* ---- contexts ---- */

static void context_free_rcu(struct rcu_head *rcu)
{
	struct acp_context *ctx = container_of(rcu, struct acp_context, rcu);

	/* Who found it until now may have begun a hold. */
	acp_poller_stop(ctx);
	acp_job_put(ctx->job);
	acp_queue_destroy(ctx);
	put_pid(ctx->pid);
	if (ctx->main != ctx)
		acp_context_put(ctx->main);
	kfree(ctx);
}

void acp_context_free(struct kref *ref)
{
	struct acp_context *ctx = container_of(ref, struct acp_context, refs);

	/* The rings go a moment later; who runs again at once should not have to wait for it. */
	acp_user_uncharge(ctx->user, ACP_LIMIT_USER_MEMORY, ctx->ring_kib);
	acp_user_put(ctx->user);
	call_rcu(&ctx->rcu, context_free_rcu);
}

/*
 * What the file held.  Here and not with the structure: the last reference to
 * an mm must not be dropped in softirq, where RCU may call.
 */
static void context_drop(struct acp_context *ctx)
{
	acp_region_remove_all(ctx);
	acp_user_uncharge(ctx->user, ACP_LIMIT_USER_MEMORY, ctx->paid);
	acp_user_uncharge(ctx->user, ACP_LIMIT_USER_RANKS, 1);
	mmdrop(ctx->mm);
	acp_context_put(ctx);
}

static struct acp_context *context_alloc(struct acp_node *node)
{
	struct acp_context *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return NULL;
	ctx->user = acp_user_find(node);
	if (ctx->user)
		return ctx;
	kfree(ctx);
	return NULL;
}

void acp_context_init(struct acp_context *ctx, struct acp_job *job, u32 rank,
		      struct acp_context *main)
{
	static struct lock_class_key queues_key;	/* BH off, unlike that of regions */

	ctx->job = job;
	refcount_inc(&job->refs);
	ctx->rank = rank;
	ctx->main = main ?: ctx;
	if (main)
		acp_context_get(main);
	ctx->mm = current->mm;
	mmgrab(ctx->mm);
	kref_init(&ctx->refs);
	spin_lock_init(&ctx->lock);
	INIT_LIST_HEAD(&ctx->copies);
	init_waitqueue_head(&ctx->wait);
	init_waitqueue_head(&ctx->watchers);
	mutex_init(&ctx->queues_lock);
	xa_init_flags(&ctx->queues, XA_FLAGS_LOCK_BH);
	lockdep_set_class(&ctx->queues.xa_lock, &queues_key);
	acp_poller_prepare(ctx);
	mutex_init(&ctx->reg_lock);
	xa_init_flags(&ctx->regions, XA_FLAGS_ALLOC);
}

/* All but its place in the job; on failure it is gone. */
static int context_fill(struct acp_context *ctx, struct acp_job *job, const struct acp_join *j)
{
	int err;

	acp_context_init(ctx, job, j->rank, NULL);
	ctx->pid = get_task_pid(current, PIDTYPE_TGID);
	ctx->next_stag = ACP_STAG_USER;
	ctx->starter_bytes = j->starter_size;
	ctx->heap_bytes = j->heap_size;
	ctx->events_read = READ_ONCE(job->events.count);
	err = acp_queue_create(ctx, j->depth, 0);
	if (!err)
		err = acp_region_allocate(ctx, ACP_STAG_STARTER, j->starter_size);
	if (!err)
		err = acp_region_allocate(ctx, ACP_STAG_HEAP, j->heap_size);
	if (!err)
		err = acp_region_allocate(ctx, ACP_STAG_LIBRARY, PAGE_SIZE);
	if (err)
		context_drop(ctx);
	return err;
}

/* The rank leaves: nobody finds it any more, nothing of it changes any more. */
static void context_leave(struct acp_context *ctx, enum acp_leave how)
{
	struct acp_job *job = ctx->job;
	u32 rank = ctx->rank;

	xa_erase_bh(&job->ranks, rank);
	acp_near_clear(&job->near_ranks, rank, ctx);
	WRITE_ONCE(ctx->closed, true);
	acp_attach_end(ctx);
	acp_poller_remove(job->node, ctx);
	wake_up_all(&ctx->wait);
	/* It may have been killed between what it wrote and ACP_IOC_WAKE. */
	acp_watch_wake_all(job);
	acp_barrier_leave(ctx);
	acp_changed(job->node);
	context_drop(ctx);
	acp_node_leave(job, rank, how);
}

/* ---- join ---- */

static int read_join(struct acp_join *j, void __user *arg)
{
	if (copy_from_user(j, arg, sizeof(*j)))
		return -EFAULT;
	if (j->size != sizeof(*j))
		return -EINVAL;
	if (j->version != ACP_ABI_VERSION)
		return -EPROTO;
	return 0;
}

static struct acp_context *join_job(struct acp_file *file, struct acp_join *j)
{
	struct acp_node *node = acp_node_of(file->net);
	struct acp_context *ctx = context_alloc(node);
	struct acp_job *job;
	int err;

	if (!ctx)
		return ERR_PTR(-ENOMEM);
	job = acp_node_join(node, j, ctx);
	if (IS_ERR(job)) {
		acp_user_put(ctx->user);
		kfree(ctx);
		return ERR_CAST(job);
	}
	err = context_fill(ctx, job, j);
	if (err) {
		acp_node_leave(job, j->rank, ACP_LEAVE_UNSEEN);
		return ERR_PTR(err);
	}
	err = xa_insert_bh(&job->ranks, j->rank, ctx, GFP_KERNEL_ACCOUNT);
	if (err) {
		context_drop(ctx);
		acp_node_leave(job, j->rank, ACP_LEAVE_UNSEEN);
		return ERR_PTR(err);
	}
	acp_near_set(&job->near_ranks, j->rank, ctx);
	acp_node_arrived(job, j->rank);
	smp_mb();	/* pairs with xchg() in acp_barrier_abort(): it finds us, or we see it */
	if (READ_ONCE(job->aborted))
		acp_queue_abort(ctx);
	acp_poller_add(job->node, ctx);
	acp_changed(job->node);
	j->node = job->me;
	j->local_ranks = job->barrier.expected;
	j->sq_bytes = ctx->sq_bytes;
	j->cq_bytes = ctx->cq_bytes;
	return ctx;
}

static int ioctl_join(struct acp_file *file, void __user *arg)
{
	struct acp_join __user *to = arg;
	struct acp_context *ctx;
	struct acp_join j;
	int err = read_join(&j, arg);

	if (err)
		return err;
	if (!acp_limits_enabled(acp_node_of(file->net)))
		return -EOPNOTSUPP;
	mutex_lock(&file->lock);
	if (file->ctx) {
		err = file->ctx->mm == current->mm ? -EALREADY : -EPERM;
	} else {
		ctx = join_job(file, &j);
		memzero_explicit(j.key, sizeof(j.key));
		err = PTR_ERR_OR_ZERO(ctx);
		if (!err && copy_to_user(arg, &j, sizeof(j))) {
			/* Its user does not know of it: barriers need not, either. */
			ctx->finished = true;
			context_leave(ctx, ACP_LEAVE_UNSEEN);
			err = -EFAULT;
		}
		if (!err) {
			acp_nl_tell_rank(ctx->job, ctx->rank, false, ACP_NL_EVENT_RANK_JOINED);
			/*
			 * Only now: another thread may use the file at once.  The whole
			 * context, before it is found: pairs with own_context().
			 */
			smp_store_release(&file->ctx, ctx);
		}
	}
	mutex_unlock(&file->lock);
	memzero_explicit(&j, sizeof(j));
	if (!acp_over_which(err))
		return err;
	acp_stat_inc(acp_node_of(file->net), limit_calls);
	acp_nl_tell_limit(acp_node_of(file->net), current_euid(), acp_over_which(err));
	return put_user(acp_over_which(err), &to->node) ?: -EDQUOT;
}

/* ---- the other calls; the caller is the process that joined ---- */

static int ioctl_reg(struct acp_context *ctx, void __user *arg)
{
	struct acp_reg __user *to = arg;
	struct acp_reg reg;
	u32 left;
	int err;

	if (copy_from_user(&reg, arg, sizeof(reg)))
		return -EFAULT;
	if (reg.size != sizeof(reg))
		return -EINVAL;
	err = acp_region_register(ctx, &reg);
	if (acp_over_which(err)) {
		acp_stat_inc(ctx->job->node, limit_calls);
		acp_nl_tell_limit(ctx->job->node, ctx->job->owner, acp_over_which(err));
		return put_user(acp_over_which(err), &to->key) ?: -EDQUOT;
	}
	if (err)
		return err;
	if (!copy_to_user(arg, &reg, sizeof(reg)))
		return 0;
	acp_region_unregister(ctx, reg.key, &left);
	return -EFAULT;
}

static int ioctl_unreg(struct acp_context *ctx, void __user *arg)
{
	struct acp_unreg u;
	int err;

	if (copy_from_user(&u, arg, sizeof(u)))
		return -EFAULT;
	if (u.size != sizeof(u) || u.reserved || u.reserved2)
		return -EINVAL;
	err = acp_region_unregister(ctx, u.key, &u.left);
	if (!err && copy_to_user(arg, &u, sizeof(u)))
		err = -EFAULT;
	return err;
}

/*
 * Drain until nothing is left that can be done now, and do some of the long copies;
 * after a signal the poller goes on, and the worker.
 */
static void ring(struct acp_context *ctx)
{
	u64 room = ACP_COPY_OWN;
	bool more;

	acp_copies_enter(ctx);
	do {
		local_bh_disable();
		more = acp_queue_drain(ctx, ACP_DRAIN_CALLER);
		local_bh_enable();
		acp_copies_help(ctx, &room);
		cond_resched();
	} while (more && !signal_pending(current));
	acp_copies_leave(ctx);
	if (more)
		acp_poller_more(ctx);
}

static void doorbell(struct acp_context *ctx)
{
	acp_stat_inc(ctx->job->node, doorbells);
	ring(ctx);
	acp_poller_bell(ctx);
}

static int ioctl_doorbell(struct acp_context *ctx, void __user *arg)
{
	doorbell(ctx);
	return 0;
}

/* Will nothing be complete any more?  -ECANCELED, -ENOTCONN; 0: it will. */
static int ended(struct acp_context *ctx)
{
	if (READ_ONCE(ctx->job->aborted))
		return -ECANCELED;
	return READ_ONCE(ctx->closed) ? -ENOTCONN : 0;
}

/* Never shorter than asked for: jiffies may be late and then jump. */
static int wait_for(struct acp_context *ctx, u64 ticket, u64 timeout_ns)
{
	ktime_t timeout = min_t(u64, timeout_ns, KTIME_MAX);
	int err;

	if (acp_queue_completed(ctx) >= ticket)
		return 0;
	err = ended(ctx);
	if (err)
		return err;
	if (!timeout)
		return -ETIMEDOUT;
	err = wait_event_interruptible_hrtimeout(ctx->wait,
						 acp_queue_completed(ctx) >= ticket || ended(ctx),
						 timeout);
	if (acp_queue_completed(ctx) >= ticket)
		return 0;
	return ended(ctx) ?: err == -ERESTARTSYS ? -EINTR : -ETIMEDOUT;
}

static int ioctl_wait(struct acp_context *ctx, void __user *arg)
{
	struct acp_wait w;

	if (copy_from_user(&w, arg, sizeof(w)))
		return -EFAULT;
	if (w.size != sizeof(w) || (w.flags & ~ACP_WAIT_ARM))
		return -EINVAL;
	ring(ctx);
	if (!(w.flags & ACP_WAIT_ARM))
		return wait_for(ctx, w.ticket, w.timeout_ns);
	/* The ticket, before the look: pairs with wq_has_sleeper() in acp_queue_complete(). */
	smp_store_mb(ctx->armed, w.ticket);
	/* epoll asks only after a wake-up, and this one may have come while nothing was armed. */
	if (acp_queue_completed(ctx) >= w.ticket)
		wake_up_all(&ctx->wait);
	return 0;
}

static int ioctl_sync(struct acp_context *ctx, void __user *arg)
{
	struct acp_sync s;
	int err;

	if (copy_from_user(&s, arg, sizeof(s)))
		return -EFAULT;
	if (s.size != sizeof(s) || (s.flags & ~ACP_SYNC_FINAL) || s.reserved)
		return -EINVAL;
	err = acp_barrier_wait(ctx, s.flags & ACP_SYNC_FINAL, s.timeout_ns);
	if (err != -EPROTO)
		return err;
	s.node = READ_ONCE(ctx->job->stranger) - 1;
	return copy_to_user(arg, &s, sizeof(s)) ? -EFAULT : err;
}

static int ioctl_peer(struct acp_context *ctx, void __user *arg)
{
	struct acp_context *other;
	struct acp_peer_info p;

	if (copy_from_user(&p, arg, sizeof(p)))
		return -EFAULT;
	if (p.size != sizeof(p) || p.rank >= ctx->job->ga.nprocs)
		return -EINVAL;
	rcu_read_lock();
	other = acp_job_context(ctx->job, p.rank);
	if (other) {
		p.starter_size = other->starter_bytes;
		p.heap_size = other->heap_bytes;
	}
	rcu_read_unlock();
	if (!other)
		return -ESRCH;
	return copy_to_user(arg, &p, sizeof(p)) ? -EFAULT : 0;
}

static int ioctl_state(struct acp_context *ctx, void __user *arg)
{
	struct acp_rank_state s;
	u8 status;

	if (copy_from_user(&s, arg, sizeof(s)))
		return -EFAULT;
	if (s.size != sizeof(s) || s.rank >= ctx->job->ga.nprocs)
		return -EINVAL;
	s.state = acp_event_state(ctx->job, s.rank, &status);
	s.status = status;
	return copy_to_user(arg, &s, sizeof(s)) ? -EFAULT : 0;
}

static int ioctl_event(struct acp_context *ctx, void __user *arg)
{
	struct acp_event e;
	u64 number;
	int err;

	if (copy_from_user(&e, arg, sizeof(e)))
		return -EFAULT;
	if (e.size != sizeof(e))
		return -EINVAL;
	/* Again, if another thread was faster. */
	do {
		err = acp_event_next(ctx, &e, &number);
		if (err)
			return err;
		if (copy_to_user(arg, &e, sizeof(e)))
			return -EFAULT;
	} while (!acp_event_take(ctx, number));
	return 0;
}

static int ioctl_abort(struct acp_context *ctx, void __user *arg)
{
	acp_barrier_abort(ctx->job, true);
	return 0;
}

static int ioctl_watch(struct acp_context *ctx, void __user *arg)
{
	struct acp_watch_wait w;

	if (copy_from_user(&w, arg, sizeof(w)))
		return -EFAULT;
	if (w.size != sizeof(w) || w.flags)
		return -EINVAL;
	return acp_watch_wait(ctx, w.wakes, w.timeout_ns);
}

static int ioctl_wake(struct acp_context *ctx, void __user *arg)
{
	struct acp_context *other;
	struct acp_wake w;

	if (copy_from_user(&w, arg, sizeof(w)))
		return -EFAULT;
	if (w.size != sizeof(w) || w.rank >= ctx->job->ga.nprocs)
		return -EINVAL;
	rcu_read_lock();
	other = acp_job_context(ctx->job, w.rank);
	if (other)
		acp_watch_wake(other);
	rcu_read_unlock();
	return other ? 0 : -ESRCH;
}

static int (* const calls[])(struct acp_context *ctx, void __user *arg) = {
	[_IOC_NR(ACP_IOC_REG)] = ioctl_reg,
	[_IOC_NR(ACP_IOC_UNREG)] = ioctl_unreg,
	[_IOC_NR(ACP_IOC_DOORBELL)] = ioctl_doorbell,
	[_IOC_NR(ACP_IOC_WAIT)] = ioctl_wait,
	[_IOC_NR(ACP_IOC_SYNC)] = ioctl_sync,
	[_IOC_NR(ACP_IOC_PEER)] = ioctl_peer,
	[_IOC_NR(ACP_IOC_ABORT)] = ioctl_abort,
	[_IOC_NR(ACP_IOC_STATE)] = ioctl_state,
	[_IOC_NR(ACP_IOC_EVENT)] = ioctl_event,
	[_IOC_NR(ACP_IOC_WATCH)] = ioctl_watch,
	[_IOC_NR(ACP_IOC_WAKE)] = ioctl_wake,
};

static const unsigned int numbers[] = {
	ACP_IOC_JOIN, ACP_IOC_REG, ACP_IOC_UNREG, ACP_IOC_DOORBELL, ACP_IOC_WAIT, ACP_IOC_SYNC,
	ACP_IOC_PEER, ACP_IOC_ABORT, ACP_IOC_STATE, ACP_IOC_EVENT, ACP_IOC_WATCH, ACP_IOC_WAKE,
	ACP_IOC_ATTACH,
};

/* The context, if it is the caller's and its job still has a node. */
static struct acp_context *own_context(struct acp_file *file)
{
	struct acp_context *ctx;

	/* Pairs with ioctl_join(). */
	ctx = smp_load_acquire(&file->ctx);
	if (!ctx)
		return ERR_PTR(-ENOTCONN);
	if (ctx->mm != current->mm)
		return ERR_PTR(-EPERM);
	/* Only a further queue is closed while its file is open: the job may be gone, too. */
	if (READ_ONCE(ctx->closed))
		return ERR_PTR(-ENOTCONN);
	if (READ_ONCE(ctx->job->dead))
		return ERR_PTR(-ENODEV);
	return ctx;
}

/* Is it a further queue of a rank? */
static bool is_further(const struct acp_context *ctx)
{
	return ctx->main != ctx;
}

/* ---- attach ---- */

static const struct file_operations dev_fops;

static int read_attach(struct acp_attach *a, void __user *arg)
{
	if (copy_from_user(a, arg, sizeof(*a)))
		return -EFAULT;
	return a->size != sizeof(*a) || a->flags || a->reserved ? -EINVAL : 0;
}

/* The rank whose file the caller has opened as "of"; which stays open meanwhile. */
static struct acp_context *rank_of(struct file *of, const struct acp_file *file)
{
	struct acp_file *other = of->private_data;
	struct acp_context *ctx;

	if (of->f_op != &dev_fops)
		return ERR_PTR(-EINVAL);
	ctx = own_context(other);
	if (IS_ERR(ctx))
		return ctx;
	if (is_further(ctx))
		return ERR_PTR(-EINVAL);
	/* So that each file holds the namespace that its queue is in. */
	return net_eq(other->net, file->net) ? ctx : ERR_PTR(-EXDEV);
}

static int attach(struct acp_file *file, struct acp_context *main, struct acp_attach *a,
		  void __user *arg)
{
	struct acp_context *ctx;

	if (file->ctx)
		return file->ctx->mm == current->mm ? -EALREADY : -EPERM;
	ctx = acp_attach(main, a);
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	if (copy_to_user(arg, a, sizeof(*a))) {
		acp_attach_leave(ctx);
		return -EFAULT;
	}
	/* The whole context, before it is found: pairs with own_context(). */
	smp_store_release(&file->ctx, ctx);
	return 0;
}

static int ioctl_attach(struct acp_file *file, void __user *arg)
{
	struct acp_attach __user *to = arg;
	struct acp_context *main;
	struct acp_attach a;
	struct file *of;
	int err = read_attach(&a, arg);

	if (err)
		return err;
	of = fget(a.fd);
	if (!of)
		return -EBADF;
	main = rank_of(of, file);
	err = PTR_ERR_OR_ZERO(main);
	if (!err) {
		mutex_lock(&file->lock);
		err = attach(file, main, &a, arg);
		mutex_unlock(&file->lock);
	}
	fput(of);
	if (!acp_over_which(err))
		return err;
	acp_stat_inc(acp_node_of(file->net), limit_calls);
	acp_nl_tell_limit(acp_node_of(file->net), current_euid(), acp_over_which(err));
	return put_user(acp_over_which(err), &to->queue) ?: -EDQUOT;
}

static long dev_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct acp_file *file = filp->private_data;
	struct acp_context *ctx;

	if (_IOC_TYPE(cmd) != ACP_IOC_MAGIC || _IOC_NR(cmd) >= ARRAY_SIZE(numbers) ||
	    numbers[_IOC_NR(cmd)] != cmd)
		return -ENOTTY;
	if (cmd == ACP_IOC_JOIN)
		return ioctl_join(file, (void __user *)arg);
	if (cmd == ACP_IOC_ATTACH)
		return ioctl_attach(file, (void __user *)arg);
	ctx = own_context(file);
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	if (is_further(ctx) && cmd != ACP_IOC_DOORBELL && cmd != ACP_IOC_WAIT)
		return -EOPNOTSUPP;
	return calls[_IOC_NR(cmd)](ctx, (void __user *)arg);
}

/* ---- mmap ---- */

static void add_vm_flags(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags |= set;
	vma->vm_flags &= ~clear;
#endif
}

static void memory_open(struct vm_area_struct *vma)
{
	acp_region_hold(vma->vm_private_data);
}

static void memory_close(struct vm_area_struct *vma)
{
	acp_region_release(vma->vm_private_data);
}

static const struct vm_operations_struct memory_ops = {
	.open = memory_open,
	.close = memory_close,
};

/* The rings live as long as the file, which the mapping holds. */
static int map_pages(struct vm_area_struct *vma, void *kaddr, size_t bytes)
{
	unsigned long addr;
	int err = 0;

	if (vma->vm_end - vma->vm_start > bytes)
		return -EINVAL;
	for (addr = vma->vm_start; addr < vma->vm_end && !err; addr += PAGE_SIZE) {
		err = vm_insert_page(vma, addr, vmalloc_to_page(kaddr));
		kaddr += PAGE_SIZE;
	}
	return err;
}

/* Kernel-allocated memory of a rank on this node, held against its leaving. */
static struct acp_region *get_memory(struct acp_job *job, u32 kind, u32 rank)
{
	struct acp_region *r = NULL;
	struct acp_context *ctx;

	rcu_read_lock();
	ctx = acp_job_context(job, rank);
	if (ctx)
		r = xa_load(&ctx->regions, kind - ACP_MAP_STARTER + ACP_STAG_STARTER);
	if (r && !refcount_inc_not_zero(&r->holders))
		r = NULL;
	rcu_read_unlock();
	return r;
}

static int map_memory(struct acp_context *ctx, struct vm_area_struct *vma, u32 kind, u32 rank)
{
	struct acp_region *r;
	int err;

	BUILD_BUG_ON(ACP_MAP_HEAP - ACP_MAP_STARTER != ACP_STAG_HEAP - ACP_STAG_STARTER);
	BUILD_BUG_ON(ACP_MAP_LIBRARY - ACP_MAP_STARTER != ACP_STAG_LIBRARY - ACP_STAG_STARTER);
	r = get_memory(ctx->job, kind, rank);
	if (!r)
		return -ESRCH;
	err = map_pages(vma, r->kaddr, r->bytes);
	if (err) {
		acp_region_release(r);
		return err;
	}
	vma->vm_private_data = r;
	vma->vm_ops = &memory_ops;
	return 0;
}

static int dev_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct acp_context *ctx = own_context(filp->private_data);
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u32 kind = offset >> 48, rank = (offset >> 16) & ACP_RANKS_MAX;

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	if (!(vma->vm_flags & VM_SHARED) || offset != ACP_MAP(kind, rank) ||
	    kind > ACP_MAP_LIBRARY || (kind < ACP_MAP_STARTER ? rank : is_further(ctx)))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC || (kind == ACP_MAP_CQ && vma->vm_flags & VM_WRITE))
		return -EACCES;
	add_vm_flags(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP,
		     VM_MAYEXEC | (kind == ACP_MAP_CQ ? VM_MAYWRITE : 0));
	if (kind >= ACP_MAP_STARTER)
		return map_memory(ctx, vma, kind, rank);
	/* Ranges of vmalloc memory are mapped from their start. */
	vma->vm_pgoff = 0;
	return map_pages(vma, kind == ACP_MAP_SQ ? (void *)ctx->sq : ctx->cq,
			 kind == ACP_MAP_SQ ? ctx->sq_bytes : ctx->cq_bytes);
}

/* ---- file ---- */

static int dev_open(struct inode *inode, struct file *filp)
{
	struct acp_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return -ENOMEM;
	mutex_init(&file->lock);
	file->net = get_net(current->nsproxy->net_ns);
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

static int dev_release(struct inode *inode, struct file *filp)
{
	struct acp_file *file = filp->private_data;
	struct acp_context *ctx = file->ctx;

	if (ctx && is_further(ctx))
		acp_attach_leave(ctx);
	else if (ctx)
		context_leave(ctx, ctx->finished ? ACP_LEAVE_FINISHED : ACP_LEAVE_EARLY);
	put_net(file->net);
	kfree(file);
	return 0;
}

static __poll_t dev_poll(struct file *filp, poll_table *table)
{
	struct acp_context *ctx = own_context(filp->private_data);
	__poll_t mask = 0;

	if (IS_ERR(ctx))
		return EPOLLERR;
	poll_wait(filp, &ctx->wait, table);
	if (acp_queue_completed(ctx) >= READ_ONCE(ctx->armed))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(ctx->sq->tail) - acp_queue_completed(ctx) < ctx->depth)
		mask |= EPOLLOUT | EPOLLWRNORM;
	if (!is_further(ctx) && acp_event_pending(ctx))
		mask |= EPOLLPRI;
	if (ended(ctx))
		mask |= EPOLLERR | EPOLLHUP;
	return mask;
}

/* Of all system calls that name a file this one has the shortest way to it. */
static int dev_fsync(struct file *filp, loff_t start, loff_t end, int datasync)
{
	struct acp_context *ctx = own_context(filp->private_data);

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	doorbell(ctx);
	return 0;
}

static const struct file_operations dev_fops = {
	.owner = THIS_MODULE,
	.open = dev_open,
	.release = dev_release,
	.unlocked_ioctl = dev_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = dev_mmap,
	.poll = dev_poll,
	.fsync = dev_fsync,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "acp",
	.mode = 0660,
	.fops = &dev_fops,
};

int acp_dev_init(void)
{
	return misc_register(&device);
}

void acp_dev_exit(void)
{
	misc_deregister(&device);
}
