// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/acp: open files, which are ranks or additional queues of ranks: join, attach, doorbell,
 * wait, mmap and poll.  Other calls of acp_abi.h are in rank_call.c.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/nsproxy.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "../queue/attach.h"
#include "../exec/barrier.h"
#include "../queue/budget.h"
#include "call.h"
#include "../exec/copies.h"
#include "dev.h"
#include "../exec/drain.h"
#include "../exec/event.h"
#include "../job/job.h"
#include "../netlink/notify.h"
#include "../exec/matching.h"
#include "../exec/poller.h"
#include "../queue/queue.h"
#include "../mem/region.h"
#include "../exec/station.h"
#include "../mem/watch.h"

/* file->private_data: the queue is set once the file has joined or attached. */
struct acp_file {
	struct mutex lock;	/* so that it joins once */
	struct acp_queue *queue;
	struct mm_struct *mm;	/* of the process that joined; grabbed, to recognize it */
	struct net *net;	/* namespace of the opener */
};

/* ---- ranks ---- */

/* Give back what the file held. */
static void rank_drop(struct acp_rank *rank)
{
	acp_matching_leave(rank);
	acp_region_remove_all(rank);
	acp_poller_stop_rank(rank);
	acp_memlock_uncharge(&rank->locked);
	acp_user_uncharge(rank->user, ACP_LIMIT_USER_MEMORY, rank->paid);
	acp_user_uncharge(rank->user, ACP_LIMIT_USER_RANKS, 1);
	acp_rank_put(rank);
}

static struct acp_rank *rank_alloc(struct acp_node *node)
{
	struct acp_rank *rank = kzalloc(sizeof(*rank), GFP_KERNEL_ACCOUNT);

	if (!rank)
		return NULL;
	rank->user = acp_user_find(node);
	if (rank->user)
		return rank;
	kfree(rank);
	return NULL;
}

/* Set up everything but the rank's place in the job.  On failure, the rank is freed. */
static int rank_fill(struct acp_rank *rank, struct acp_job *job, const struct acp_join *j)
{
	int err;

	acp_attach_init(rank, job, j->rank);
	rank->pid = get_task_pid(current, PIDTYPE_TGID);
	rank->next_stag = ACP_STAG_USER;
	rank->starter_bytes = j->starter_size;
	rank->heap_bytes = j->heap_size;
	rank->events_read = READ_ONCE(job->events.count);
	err = acp_queue_create(&rank->own, j->depth, 0);
	rank->paid -= rank->own.ring_kib;
	if (!err)
		err = acp_region_allocate(rank, ACP_STAG_STARTER, j->starter_size);
	if (!err)
		err = acp_region_allocate(rank, ACP_STAG_HEAP, j->heap_size);
	if (!err)
		err = acp_region_allocate(rank, ACP_STAG_LIBRARY, PAGE_SIZE);
	if (err)
		rank_drop(rank);
	return err;
}

/* The rank leaves: afterwards it cannot be found, and nothing changes it any more. */
static void rank_leave(struct acp_rank *rank, enum acp_leave how)
{
	struct acp_job *job = rank->job;
	u32 number = rank->number;

	xa_erase_bh(&job->ranks, number);
	acp_cache_clear(&job->rank_cache, number, rank);
	WRITE_ONCE(rank->own.closed, true);
	acp_attach_end(rank);
	acp_poller_remove(job->node, &rank->own);
	acp_worker_stop(rank);
	wake_up_all(&rank->own.wait);
	/* It may have been killed between a write and ACP_IOC_WAKE. */
	acp_watch_wake_all(job);
	acp_barrier_leave(rank);
	acp_changed(job->node);
	rank_drop(rank);
	acp_node_leave(job, number, how);
}

/* ---- join ---- */

static int read_join(struct acp_join *j, const struct acp_call *c)
{
	int err = acp_call_read(c, j, JOIN);

	if (err)
		return err;
	if (j->reserved)
		return -EINVAL;
	if (j->version != ACP_ABI_VERSION)
		return -EPROTO;
	return 0;
}

static struct acp_rank *join_job(struct acp_file *file, struct acp_join *j)
{
	struct acp_node *node = acp_node_of(file->net);
	struct acp_rank *rank = rank_alloc(node);
	struct acp_job *job;
	int err;

	if (!rank)
		return ERR_PTR(-ENOMEM);
	job = acp_node_join(node, j, rank);
	if (IS_ERR(job)) {
		acp_user_put(rank->user);
		kfree(rank);
		return ERR_CAST(job);
	}
	err = rank_fill(rank, job, j);
	if (err) {
		acp_node_leave(job, j->rank, ACP_LEAVE_UNSEEN);
		return ERR_PTR(err);
	}
	err = xa_insert_bh(&job->ranks, j->rank, rank, GFP_KERNEL_ACCOUNT);
	if (err) {
		rank_drop(rank);
		acp_node_leave(job, j->rank, ACP_LEAVE_UNSEEN);
		return ERR_PTR(err);
	}
	acp_cache_set(&job->rank_cache, j->rank, rank);
	acp_node_arrived(job, j->rank);
	smp_mb();	/* pairs with xchg() in acp_barrier_abort(): it finds us, or we see it */
	if (READ_ONCE(job->aborted))
		acp_queue_abort_all(rank);
	acp_poller_add(job->node, &rank->own);
	acp_changed(job->node);
	j->node = job->me;
	j->local_ranks = job->barrier.expected;
	j->sq_bytes = rank->own.sq_bytes;
	j->cq_bytes = rank->own.cq_bytes;
	return rank;
}

/* Publish the queue in its file.  The caller holds file->lock. */
static void set_queue(struct acp_file *file, struct acp_queue *queue)
{
	file->mm = current->mm;
	mmgrab(file->mm);
	/* Initialize it before it can be found: pairs with queue_of(). */
	smp_store_release(&file->queue, queue);
}

static int ioctl_join(struct acp_file *file, const struct acp_call *c)
{
	struct acp_rank *rank;
	struct acp_join j;
	int err = read_join(&j, c);

	if (err)
		return err;
	if (!acp_limits_enabled(acp_node_of(file->net)))
		return -EOPNOTSUPP;
	/* Killable: another thread may hold it for long, as an encrypted job loads modules. */
	if (mutex_lock_killable(&file->lock)) {
		memzero_explicit(&j, sizeof(j));
		return -EINTR;
	}
	if (file->queue) {
		err = file->mm == current->mm ? -EALREADY : -EPERM;
	} else {
		rank = join_job(file, &j);
		memzero_explicit(j.key, sizeof(j.key));
		err = PTR_ERR_OR_ZERO(rank);
		if (!err && acp_call_write(c, &j)) {
			/*
			 * The process does not know that it joined: its leaving must not break
			 * barriers.
			 */
			rank->finished = true;
			rank_leave(rank, ACP_LEAVE_UNSEEN);
			err = -EFAULT;
		}
		if (!err) {
			acp_nl_tell_rank(rank->job, rank->number, false, ACP_NL_EVENT_RANK_JOINED);
			/* Last: another thread may use the file at once. */
			set_queue(file, &rank->own);
		}
	}
	mutex_unlock(&file->lock);
	memzero_explicit(&j, sizeof(j));
	if (!acp_over_which(err))
		return err;
	return acp_call_over_limit(c, acp_node_of(file->net), current_euid(), err,
				   offsetof(struct acp_join, limit));
}

/* ---- doorbell and waiting; only the process that joined may call ---- */

/*
 * Drain until nothing is left that can be done now, and do some of the long copies.  After a
 * signal, and when a budget was used up by other commands than new ones, the rank's worker and the
 * workqueue of copies go on: commands that are tried again and again must not keep the caller here.
 */
static void ring(struct acp_queue *queue)
{
	struct acp_budget budget;
	u64 room = ACP_COPY_OWN, taken;
	bool more;

	acp_copies_enter(queue);
	do {
		taken = READ_ONCE(queue->taken);
		local_bh_disable();
		acp_budget_begin(&budget);
		more = acp_drain(queue, &budget);
		local_bh_enable();
		if (more)
			acp_stat_inc(queue->job->node, doorbells_cut);
		acp_copies_help(queue, &room);
		cond_resched();
	} while (more && READ_ONCE(queue->taken) != taken && !signal_pending(current));
	acp_copies_leave(queue);
	if (more)
		acp_worker_kick(queue->rank);
}

static void doorbell(struct acp_queue *queue)
{
	acp_stat_inc(queue->job->node, doorbells);
	ring(queue);
	acp_poller_bell(queue);
}

static int ioctl_doorbell(struct acp_queue *queue, const struct acp_call *c)
{
	doorbell(queue);
	return 0;
}

/* Why nothing will complete any more: -ECANCELED or -ENOTCONN; 0 if it will. */
static int ended(struct acp_queue *queue)
{
	if (READ_ONCE(queue->job->aborted))
		return -ECANCELED;
	return READ_ONCE(queue->closed) ? -ENOTCONN : 0;
}

/* Never wait for less than asked: jiffies may be late and then jump. */
static int wait_for(struct acp_queue *queue, u64 ticket, u64 timeout_ns)
{
	ktime_t timeout = min_t(u64, timeout_ns, KTIME_MAX);
	int err;

	if (acp_queue_completed(queue) >= ticket)
		return 0;
	err = ended(queue);
	if (err)
		return err;
	if (!timeout)
		return -ETIMEDOUT;
	err = wait_event_interruptible_hrtimeout(queue->wait,
						 acp_queue_completed(queue) >= ticket ||
						 ended(queue),
						 timeout);
	if (acp_queue_completed(queue) >= ticket)
		return 0;
	return ended(queue) ?: err == -ERESTARTSYS ? -EINTR : -ETIMEDOUT;
}

static int ioctl_wait(struct acp_queue *queue, const struct acp_call *c)
{
	struct acp_wait w;
	int err;

	err = acp_call_read(c, &w, WAIT);
	if (err)
		return err;
	if (w.flags & ~ACP_WAIT_ARM)
		return -EINVAL;
	ring(queue);
	if (!(w.flags & ACP_WAIT_ARM))
		return wait_for(queue, w.ticket, w.timeout_ns);
	/*
	 * Set the ticket before reading completed: pairs with wq_has_sleeper() in
	 * acp_queue_complete().
	 */
	smp_store_mb(queue->armed, w.ticket);
	/* epoll polls only after a wake-up, which may have come while nothing was armed. */
	if (acp_queue_completed(queue) >= w.ticket)
		wake_up_all(&queue->wait);
	return 0;
}

static const unsigned int numbers[] = {
	ACP_IOC_JOIN, ACP_IOC_REG, ACP_IOC_UNREG, ACP_IOC_DOORBELL, ACP_IOC_WAIT, ACP_IOC_SYNC,
	ACP_IOC_PEER, ACP_IOC_ABORT, ACP_IOC_STATE, ACP_IOC_EVENT, ACP_IOC_WATCH, ACP_IOC_WAKE,
	ACP_IOC_ATTACH, ACP_IOC_WRONG_KEY, ACP_IOC_MATCH, ACP_IOC_POST, ACP_IOC_UNPOST,
};

/* Calls on any queue. */
static int (* const queue_calls[ARRAY_SIZE(numbers)])(struct acp_queue *queue,
						      const struct acp_call *c) = {
	[_IOC_NR(ACP_IOC_DOORBELL)] = ioctl_doorbell,
	[_IOC_NR(ACP_IOC_WAIT)] = ioctl_wait,
};

/* The queue of a file, if the caller is its process and its job still exists on this node. */
static struct acp_queue *queue_of(struct acp_file *file)
{
	struct acp_queue *queue;

	/* Pairs with set_queue(). */
	queue = smp_load_acquire(&file->queue);
	if (!queue)
		return ERR_PTR(-ENOTCONN);
	if (file->mm != current->mm)
		return ERR_PTR(-EPERM);
	/* Only an additional queue is closed while its file is open; its job may be gone, too. */
	if (READ_ONCE(queue->closed))
		return ERR_PTR(-ENOTCONN);
	if (READ_ONCE(queue->job->dead))
		return ERR_PTR(-ENODEV);
	return queue;
}

/* ---- attach ---- */

static const struct file_operations dev_fops;

static int read_attach(struct acp_attach *a, const struct acp_call *c)
{
	int err = acp_call_read(c, a, ATTACH);

	if (err)
		return err;
	return a->flags || a->reserved || a->reserved2 ? -EINVAL : 0;
}

/* The rank of the file "of", on which the caller holds a reference. */
static struct acp_rank *rank_of(struct file *of, const struct acp_file *file)
{
	struct acp_file *other = of->private_data;
	struct acp_queue *queue;

	if (of->f_op != &dev_fops)
		return ERR_PTR(-EINVAL);
	queue = queue_of(other);
	if (IS_ERR(queue))
		return ERR_CAST(queue);
	if (!acp_queue_is_own(queue))
		return ERR_PTR(-EINVAL);
	/* A file holds its namespace: it must be that of the queue. */
	return net_eq(other->net, file->net) ? queue->rank : ERR_PTR(-EXDEV);
}

static int attach(struct acp_file *file, struct acp_rank *rank, struct acp_attach *a,
		  const struct acp_call *c)
{
	struct acp_queue *queue;

	if (file->queue)
		return file->mm == current->mm ? -EALREADY : -EPERM;
	queue = acp_attach(rank, a);
	if (IS_ERR(queue))
		return PTR_ERR(queue);
	if (acp_call_write(c, a)) {
		acp_attach_leave(queue);
		return -EFAULT;
	}
	set_queue(file, queue);
	return 0;
}

static int ioctl_attach(struct acp_file *file, const struct acp_call *c)
{
	struct acp_rank *rank;
	struct acp_attach a;
	struct file *of;
	int err = read_attach(&a, c);

	if (err)
		return err;
	of = fget(a.fd);
	if (!of)
		return -EBADF;
	rank = rank_of(of, file);
	err = PTR_ERR_OR_ZERO(rank);
	if (!err && mutex_lock_killable(&file->lock))
		err = -EINTR;
	if (!err) {
		err = attach(file, rank, &a, c);
		mutex_unlock(&file->lock);
	}
	fput(of);
	if (!acp_over_which(err))
		return err;
	return acp_call_over_limit(c, acp_node_of(file->net), current_euid(), err,
				   offsetof(struct acp_attach, limit));
}

/* Compare all but the size of the structure; a call without a structure never has one. */
static bool same_call(unsigned int known, unsigned int cmd)
{
	if (!_IOC_SIZE(known))
		return known == cmd;
	return _IOC_NR(known) == _IOC_NR(cmd) && _IOC_DIR(known) == _IOC_DIR(cmd);
}

static long dev_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	const struct acp_call call = { .arg = (void __user *)arg, .size = _IOC_SIZE(cmd) };
	struct acp_file *file = filp->private_data;
	u32 number = _IOC_NR(cmd);
	struct acp_queue *queue;

	if (_IOC_TYPE(cmd) != ACP_IOC_MAGIC || number >= ARRAY_SIZE(numbers))
		return -ENOTTY;
	number = array_index_nospec(number, ARRAY_SIZE(numbers));
	if (!same_call(numbers[number], cmd))
		return -ENOTTY;
	cmd = numbers[number];
	if (cmd == ACP_IOC_JOIN)
		return ioctl_join(file, &call);
	if (cmd == ACP_IOC_ATTACH)
		return ioctl_attach(file, &call);
	queue = queue_of(file);
	if (IS_ERR(queue))
		return PTR_ERR(queue);
	if (queue_calls[number])
		return queue_calls[number](queue, &call);
	if (!acp_queue_is_own(queue))
		return -EOPNOTSUPP;
	return acp_rank_call(queue->rank, number, &call);
}

/* ---- mmap ---- */

static void add_vm_flags(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
#ifdef ACP_HAS_VM_FLAGS_MOD
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

/* The rings live as long as the file, on which the mapping holds a reference. */
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

/*
 * Memory of a rank on this node that the kernel allocated; holding it keeps it if the rank leaves.
 */
static struct acp_region *get_memory(struct acp_job *job, u32 kind, u32 number)
{
	struct acp_region *r = NULL;
	struct acp_rank *rank;

	rcu_read_lock();
	rank = acp_job_rank(job, number);
	if (rank)
		r = xa_load(&rank->regions, kind - ACP_MAP_STARTER + ACP_STAG_STARTER);
	if (r && !refcount_inc_not_zero(&r->holders))
		r = NULL;
	rcu_read_unlock();
	return r;
}

static int map_memory(struct acp_job *job, struct vm_area_struct *vma, u32 kind, u32 rank)
{
	struct acp_region *r;
	int err;

	BUILD_BUG_ON(ACP_MAP_HEAP - ACP_MAP_STARTER != ACP_STAG_HEAP - ACP_STAG_STARTER);
	BUILD_BUG_ON(ACP_MAP_LIBRARY - ACP_MAP_STARTER != ACP_STAG_LIBRARY - ACP_STAG_STARTER);
	r = get_memory(job, kind, rank);
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
	struct acp_queue *queue = queue_of(filp->private_data);
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u32 kind = offset >> 48, rank = (offset >> 16) & ACP_RANKS_MAX;

	if (IS_ERR(queue))
		return PTR_ERR(queue);
	if (!(vma->vm_flags & VM_SHARED) || offset != ACP_MAP(kind, rank) ||
	    kind > ACP_MAP_LIBRARY || (kind < ACP_MAP_STARTER ? rank : !acp_queue_is_own(queue)))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC || (kind == ACP_MAP_CQ && vma->vm_flags & VM_WRITE))
		return -EACCES;
	add_vm_flags(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP,
		     VM_MAYEXEC | (kind == ACP_MAP_CQ ? VM_MAYWRITE : 0));
	if (kind >= ACP_MAP_STARTER)
		return map_memory(queue->job, vma, kind, rank);
	/* The offset has selected the memory: mappings begin at the start of the vmalloc memory. */
	vma->vm_pgoff = 0;
	return map_pages(vma, kind == ACP_MAP_SQ ? (void *)queue->sq : queue->cq,
			 kind == ACP_MAP_SQ ? queue->sq_bytes : queue->cq_bytes);
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
	struct acp_queue *queue = file->queue;

	if (queue && !acp_queue_is_own(queue))
		acp_attach_leave(queue);
	else if (queue)
		rank_leave(queue->rank,
			   queue->rank->finished ? ACP_LEAVE_FINISHED : ACP_LEAVE_EARLY);
	/*
	 * Not with the rank: RCU may free that in softirq, where the last reference must not be
	 * dropped.
	 */
	if (file->mm)
		mmdrop(file->mm);
	put_net(file->net);
	kfree(file);
	return 0;
}

static __poll_t dev_poll(struct file *filp, poll_table *table)
{
	struct acp_queue *queue = queue_of(filp->private_data);
	__poll_t mask = 0;

	if (IS_ERR(queue))
		return EPOLLERR;
	poll_wait(filp, &queue->wait, table);
	if (acp_queue_is_own(queue))
		poll_wait(filp, &queue->rank->watchers, table);
	if (acp_queue_completed(queue) >= READ_ONCE(queue->armed) ||
	    (acp_queue_is_own(queue) && acp_watch_changed(queue->rank)))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(queue->sq->tail) - acp_queue_completed(queue) < queue->depth)
		mask |= EPOLLOUT | EPOLLWRNORM;
	if (acp_queue_is_own(queue) && acp_event_pending(queue->rank))
		mask |= EPOLLPRI;
	if (ended(queue))
		mask |= EPOLLERR | EPOLLHUP;
	return mask;
}

/*
 * A doorbell.  Of all system calls on a file, fsync() has the shortest path.  Seccomp filters may
 * make it return 0 without calling us, so success is another value.
 */
static int dev_fsync(struct file *filp, loff_t start, loff_t end, int datasync)
{
	struct acp_queue *queue = queue_of(filp->private_data);

	if (IS_ERR(queue))
		return PTR_ERR(queue);
	doorbell(queue);
	return ACP_RUNG;
}

static const struct file_operations dev_fops = {
	.owner = THIS_MODULE,
	.open = dev_open,
	.release = dev_release,
	.unlocked_ioctl = dev_ioctl,
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
