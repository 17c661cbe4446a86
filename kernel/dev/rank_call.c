// SPDX-License-Identifier: GPL-2.0-only
/* Calls on the file of a rank, which only the process that joined may make: see acp_abi.h. */
#include "../exec/barrier.h"
#include "call.h"
#include "../exec/event.h"
#include "../exec/matching.h"
#include "../job/limits.h"
#include "../job/node.h"
#include "../mem/region.h"
#include "../mem/watch.h"
#include "../net/wrong_key.h"

static int ioctl_reg(struct acp_rank *rank, const struct acp_call *c)
{
	struct acp_reg reg;
	int err = acp_call_read(c, &reg, REG);
	u32 left, steps = 0;

	if (err)
		return err;
	if (reg.reserved2)
		return -EINVAL;
	err = acp_region_register(rank, &reg, &steps);
	acp_stat_inc(rank->job->node, registrations);
	acp_stat_add(rank->job->node, register_steps, steps);
	if (acp_over_which(err))
		return acp_call_over_limit(c, rank->job->node, rank->job->owner, err,
					   offsetof(struct acp_reg, limit));
	if (err || !acp_call_write(c, &reg))
		return err;
	acp_region_unregister(rank, reg.key, &left);
	return -EFAULT;
}

static int ioctl_unreg(struct acp_rank *rank, const struct acp_call *c)
{
	struct acp_unreg u;
	int err;

	err = acp_call_read(c, &u, UNREG);
	if (err)
		return err;
	if (u.reserved || u.reserved2)
		return -EINVAL;
	err = acp_region_unregister(rank, u.key, &u.left);
	if (!err && acp_call_write(c, &u))
		err = -EFAULT;
	return err;
}

static int ioctl_sync(struct acp_rank *rank, const struct acp_call *c)
{
	struct acp_sync s;
	int err;

	err = acp_call_read(c, &s, SYNC);
	if (err)
		return err;
	if ((s.flags & ~ACP_SYNC_FINAL) || s.reserved)
		return -EINVAL;
	err = acp_barrier_wait(rank, s.flags & ACP_SYNC_FINAL, s.timeout_ns);
	if (err && err != -EPROTO)
		return err;
	s.node = err ? READ_ONCE(rank->job->mismatched) - 1 : rank->job->me;
	return acp_call_write(c, &s) ?: err;
}

static int ioctl_peer(struct acp_rank *rank, const struct acp_call *c)
{
	struct acp_rank *other;
	struct acp_peer_info p;
	int err;

	err = acp_call_read(c, &p, PEER);
	if (err)
		return err;
	if (p.rank >= rank->job->ga.nprocs)
		return -EINVAL;
	rcu_read_lock();
	other = acp_job_rank(rank->job, p.rank);
	if (other) {
		p.starter_size = other->starter_bytes;
		p.heap_size = other->heap_bytes;
	}
	rcu_read_unlock();
	if (!other)
		return -ESRCH;
	return acp_call_write(c, &p);
}

static int ioctl_state(struct acp_rank *rank, const struct acp_call *c)
{
	struct acp_rank_state s;
	u8 status;
	int err;

	err = acp_call_read(c, &s, STATE);
	if (err)
		return err;
	if (s.rank >= rank->job->ga.nprocs)
		return -EINVAL;
	s.state = acp_event_state(rank->job, s.rank, &status);
	s.status = status;
	return acp_call_write(c, &s);
}

static int ioctl_event(struct acp_rank *rank, const struct acp_call *c)
{
	struct acp_event e;
	u64 number;
	int err;

	err = acp_call_read(c, &e, EVENT);
	if (err)
		return err;
	/* Once more if another thread has consumed it. */
	do {
		err = acp_event_next(rank, &e, &number);
		if (err)
			return err;
		if (acp_call_write(c, &e))
			return -EFAULT;
	} while (!acp_event_take(rank, number));
	return 0;
}

static int ioctl_abort(struct acp_rank *rank, const struct acp_call *c)
{
	acp_barrier_abort(rank->job, true);
	return 0;
}

static int ioctl_watch(struct acp_rank *rank, const struct acp_call *c)
{
	struct acp_watch_wait w;
	int err;

	err = acp_call_read(c, &w, WATCH);
	if (err)
		return err;
	switch (w.flags) {
	case 0:
		return acp_watch_wait(rank, w.wakes, w.timeout_ns);
	case ACP_WATCH_ARM:
		acp_watch_arm(rank, w.wakes);
		break;
	case ACP_WATCH_DISARM:
		acp_watch_disarm(rank);
		break;
	default:
		return -EINVAL;
	}
	return READ_ONCE(rank->job->aborted) ? -ECANCELED : 0;
}

static int ioctl_wake(struct acp_rank *rank, const struct acp_call *c)
{
	struct acp_rank *other;
	struct acp_wake w;
	int err;

	err = acp_call_read(c, &w, WAKE);
	if (err)
		return err;
	if (w.rank >= rank->job->ga.nprocs)
		return -EINVAL;
	/* Its tasklet runs before this call returns. */
	local_bh_disable();
	other = acp_job_rank(rank->job, w.rank);
	if (other)
		acp_watch_wake(other);
	local_bh_enable();
	return other ? 0 : -ESRCH;
}

static int ioctl_wrong_key(struct acp_rank *rank, const struct acp_call *c)
{
	struct acp_wrong_key w;
	int err;

	err = acp_call_read(c, &w, WRONG_KEY);
	if (err)
		return err;
	err = acp_wrong_key_get(rank->job, &w);
	if (err)
		return err;
	return acp_call_write(c, &w);
}

static int ioctl_match(struct acp_rank *rank, const struct acp_call *c)
{
	struct acp_unpost undo = { .what = ACP_UNPOST_LIST };
	struct acp_match a;
	int err;

	err = acp_call_read(c, &a, MATCH);
	if (err)
		return err;
	err = acp_matching_create(rank, &a);
	if (acp_over_which(err))
		return acp_call_over_limit(c, rank->job->node, rank->job->owner, err,
					   offsetof(struct acp_match, limit));
	if (err || !acp_call_write(c, &a))
		return err;
	undo.list = a.list;
	acp_matching_unpost(rank, &undo);
	return -EFAULT;
}

static int ioctl_post(struct acp_rank *rank, const struct acp_call *c)
{
	struct acp_post p;
	int err;

	err = acp_call_read(c, &p, POST);
	if (err)
		return err;
	err = acp_matching_post(rank, &p);
	return err > 0 ? acp_call_write(c, &p) : err;
}

static int ioctl_unpost(struct acp_rank *rank, const struct acp_call *c)
{
	struct acp_unpost u;

	return acp_call_read(c, &u, UNPOST) ?: acp_matching_unpost(rank, &u);
}

static int (* const calls[])(struct acp_rank *rank, const struct acp_call *c) = {
	[_IOC_NR(ACP_IOC_REG)] = ioctl_reg,
	[_IOC_NR(ACP_IOC_UNREG)] = ioctl_unreg,
	[_IOC_NR(ACP_IOC_SYNC)] = ioctl_sync,
	[_IOC_NR(ACP_IOC_PEER)] = ioctl_peer,
	[_IOC_NR(ACP_IOC_ABORT)] = ioctl_abort,
	[_IOC_NR(ACP_IOC_STATE)] = ioctl_state,
	[_IOC_NR(ACP_IOC_EVENT)] = ioctl_event,
	[_IOC_NR(ACP_IOC_WATCH)] = ioctl_watch,
	[_IOC_NR(ACP_IOC_WAKE)] = ioctl_wake,
	[_IOC_NR(ACP_IOC_WRONG_KEY)] = ioctl_wrong_key,
	[_IOC_NR(ACP_IOC_MATCH)] = ioctl_match,
	[_IOC_NR(ACP_IOC_POST)] = ioctl_post,
	[_IOC_NR(ACP_IOC_UNPOST)] = ioctl_unpost,
};

int acp_rank_call(struct acp_rank *rank, u32 number, const struct acp_call *c)
{
	if (number >= ARRAY_SIZE(calls) || !calls[number])
		return -ENOTTY;
	return calls[number](rank, c);
}
