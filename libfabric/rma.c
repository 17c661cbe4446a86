// SPDX-License-Identifier: MIT
/* Reads and writes of remote memory: copies of ACP, one per contiguous piece. */
#include "acp_fi.h"

#define MSG_FLAGS	(FI_COMPLETION | FI_INJECT | FI_FENCE | FI_MORE | FI_REMOTE_CQ_DATA | \
			 FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

/* A read or write, while it is cut into pieces. */
struct transfer {
	struct fi_acp_ep *ep;
	const struct fi_acp_addr *peer;
	const struct fi_msg_rma *msg;
	uint64_t flags;
	bool write;
	size_t local, remote;		/* index of the pieces ... */
	size_t local_done, remote_done;	/* ... and bytes of them that are done */
	size_t size, done;		/* bytes of all */
	bool wrong;			/* a key is of another rank: fails with ACPX_EGA */
	acp_handle_t order;
};

static struct fi_acp_ep *ep_of(struct fid_ep *fid)
{
	return container_of(fid, struct fi_acp_ep, fid);
}

/* ---- Checks ---- */

/* Compute the number of bytes; false: the two sides differ. */
static bool measure(struct transfer *t)
{
	size_t i, remote = 0;

	t->size = 0;
	for (i = 0; i < t->msg->iov_count; i++)
		t->size += t->msg->msg_iov[i].iov_len;
	for (i = 0; i < t->msg->rma_iov_count; i++)
		remote += t->msg->rma_iov[i].len;
	return t->size == remote;
}

static int check(struct transfer *t)
{
	const struct fi_acp_ep *ep = t->ep;
	size_t i;

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	if (t->flags & ~MSG_FLAGS)
		return -FI_EBADFLAGS;
	t->peer = fi_acp_peer(ep->av, t->msg->addr);
	if (!t->peer || t->msg->iov_count > FI_ACP_IOV || t->msg->rma_iov_count > FI_ACP_IOV ||
	    !measure(t))
		return -FI_EINVAL;
	if (t->flags & FI_INJECT && (!t->write || t->size > FI_ACP_INJECT))
		return -FI_EINVAL;
	if (t->flags & FI_REMOTE_CQ_DATA && (!t->write || t->peer->notify == ACP_GA_NULL))
		return -FI_EOPNOTSUPP;
	for (i = 0; i < t->msg->rma_iov_count; i++) {
		const struct fi_rma_iov *iov = &t->msg->rma_iov[i];

		if (iov->len && acp_query_rank(iov->addr + iov->key) != (int)t->peer->rank)
			t->wrong = true;
	}
	return 0;
}

/* ---- Pieces ---- */

/* Skip what is done; returns the bytes of the next piece, 0: there is none. */
static size_t next_size(struct transfer *t)
{
	const struct fi_msg_rma *msg = t->msg;
	size_t local, remote;

	if (t->done == t->size)
		return 0;
	while (t->local_done == msg->msg_iov[t->local].iov_len) {
		t->local++;
		t->local_done = 0;
	}
	while (t->remote_done == msg->rma_iov[t->remote].len) {
		t->remote++;
		t->remote_done = 0;
	}
	local = msg->msg_iov[t->local].iov_len - t->local_done;
	remote = msg->rma_iov[t->remote].len - t->remote_done;
	return local < remote ? local : remote;
}

static void advance(struct transfer *t, size_t size)
{
	t->done += size;
	t->local_done += size;
	t->remote_done += size;
}

static acp_handle_t issue(const struct transfer *t, acp_ga_t local, acp_ga_t remote, size_t size)
{
	if (!t->write)
		return acp_copy(local, remote, size, t->order);
	if (t->flags & FI_REMOTE_CQ_DATA && t->done + size == t->size)
		return acpx_copy_notify(remote, local, size, t->peer->notify, t->msg->data,
					ACPX_RETRY, t->order);
	return acp_copy(remote, local, size, t->order);
}

/* Start a piece. Returns 0 or -FI_E*: then nothing has happened. */
static int start_piece(struct transfer *t, struct fi_acp_op *op, size_t size)
{
	const struct fi_rma_iov *remote = size ? &t->msg->rma_iov[t->remote] : NULL;
	const acp_ga_t target = remote ? remote->addr + remote->key + t->remote_done : 0;
	acp_ga_t local;
	const char *buf = NULL;
	void *desc = NULL;
	acp_handle_t handle;
	int error;

	if (size) {
		buf = (const char *)t->msg->msg_iov[t->local].iov_base + t->local_done;
		desc = t->msg->desc ? t->msg->desc[t->local] : NULL;
	}
	error = fi_acp_op_local(op, buf, size, desc, t->write ? FI_ACP_SOURCE : FI_ACP_TARGET,
				t->flags & FI_INJECT, &local);
	if (error)
		return error;
	handle = issue(t, local, size ? target : local, size);
	if (t->flags & FI_FENCE)
		t->ep->fence = handle;
	/* The data of remote CQ data is announced behind all pieces. */
	if (t->flags & FI_REMOTE_CQ_DATA)
		t->order = handle;
	advance(t, size);
	fi_acp_op_start(op, &fi_acp_job.queue, handle);
	return 0;
}

static int status_of(int error)
{
	return error == -FI_EINVAL ? ACPX_EOP : ACPX_ENOMEM;
}

/* Once a part is under way, an error is that of the operation. */
static int start_parts(struct transfer *t, struct fi_acp_op *op)
{
	struct fi_acp_op *part;
	size_t size;
	int error;

	while ((size = next_size(t))) {
		part = fi_acp_op_part(op);
		error = part ? start_piece(t, part, size) : -FI_EAGAIN;
		if (!error)
			continue;
		if (part && !t->done) {
			fi_acp_op_drop(part);
			fi_acp_op_drop(op);
			return error;
		}
		if (part)
			fi_acp_op_end(part, status_of(error));
		break;
	}
	fi_acp_op_whole(op);
	return 0;
}

static int start(struct transfer *t, struct fi_acp_op *op)
{
	size_t size = next_size(t);
	int error;

	if (t->wrong) {
		fi_acp_op_end(op, ACPX_EGA);
		return 0;
	}
	if (size != t->size)
		return start_parts(t, op);
	error = start_piece(t, op, size);
	if (error)
		fi_acp_op_drop(op);
	return error;
}

/* ---- The calls ---- */

/* @report: write a completion on success. */
static ssize_t transfer(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags,
			bool write, bool report)
{
	struct fi_acp_ep *ep = ep_of(fid);
	struct transfer t = { .ep = ep, .msg = msg, .flags = flags, .write = write };
	const struct fi_cq_tagged_entry entry = {
		.op_context = msg->context, .flags = FI_RMA | (write ? FI_WRITE : FI_READ),
	};
	struct fi_acp_op *op;
	int error;

	fi_acp_lock();
	t.order = fi_acp_order(ep, flags);
	error = check(&t);
	if (!error && fi_acp_job.free_count < 2 * FI_ACP_IOV + 1)
		fi_acp_progress();
	if (!error && fi_acp_job.free_count < msg->iov_count + msg->rma_iov_count + 1)
		error = -FI_EAGAIN;
	if (!error) {
		op = fi_acp_op_get(ep->tx_cq, write ? ep->write_cntr : ep->read_cntr, &entry,
				   report);
		error = op ? start(&t, op) : -FI_EAGAIN;
	}
	fi_acp_unlock();
	return error;
}

/* The endpoint's flags that calls without flags have. */
static uint64_t own_flags(const struct fi_acp_ep *ep, size_t size, bool write)
{
	uint64_t flags = ep->tx_flags & MSG_FLAGS;

	return write && size <= FI_ACP_INJECT ? flags : flags & ~FI_INJECT;
}

static ssize_t plain(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		     fi_addr_t addr, const struct fi_rma_iov *remote, void *context, bool write)
{
	const struct fi_msg_rma msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = addr,
		.rma_iov = remote, .rma_iov_count = 1, .context = context,
	};
	const struct fi_acp_ep *ep = ep_of(fid);

	return transfer(fid, &msg, own_flags(ep, remote->len, write), write,
			fi_acp_reports(ep, true, ep->tx_flags));
}

static size_t total(const struct iovec *iov, size_t count)
{
	size_t i, size = 0;

	for (i = 0; i < count; i++)
		size += iov[i].iov_len;
	return size;
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			uint64_t addr, uint64_t key, void *context)
{
	const struct fi_rma_iov remote = { addr, len, key };
	const struct iovec iov = { buf, len };

	return plain(fid, &iov, &desc, 1, src, &remote, context, false);
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t src, uint64_t addr, uint64_t key, void *context)
{
	const struct fi_rma_iov remote = { addr, total(iov, count), key };

	return plain(fid, iov, desc, count, src, &remote, context, false);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return transfer(fid, msg, flags, false, fi_acp_reports(ep_of(fid), true, flags));
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			 fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	const struct fi_rma_iov remote = { addr, len, key };
	const struct iovec iov = { (void *)(uintptr_t)buf, len };

	return plain(fid, &iov, &desc, 1, dest, &remote, context, true);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	const struct fi_rma_iov remote = { addr, total(iov, count), key };

	return plain(fid, iov, desc, count, dest, &remote, context, true);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return transfer(fid, msg, flags, true, fi_acp_reports(ep_of(fid), true, flags));
}

/* A write of one contiguous piece with flags. */
static ssize_t write_with(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			  uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
			  void *context, uint64_t flags, bool report)
{
	const struct fi_rma_iov remote = { addr, len, key };
	const struct iovec iov = { (void *)(uintptr_t)buf, len };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = dest,
		.rma_iov = &remote, .rma_iov_count = 1, .context = context, .data = data,
	};

	return transfer(fid, &msg, flags, true, report);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
			  uint64_t addr, uint64_t key)
{
	return write_with(fid, buf, len, NULL, 0, dest, addr, key, NULL, FI_INJECT, false);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
			     void *context)
{
	const struct fi_acp_ep *ep = ep_of(fid);

	return write_with(fid, buf, len, desc, data, dest, addr, key, context,
			  own_flags(ep, len, true) | FI_REMOTE_CQ_DATA,
			  fi_acp_reports(ep, true, ep->tx_flags));
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest, uint64_t addr, uint64_t key)
{
	return write_with(fid, buf, len, NULL, data, dest, addr, key, NULL,
			  FI_INJECT | FI_REMOTE_CQ_DATA, false);
}

struct fi_ops_rma fi_acp_rma_ops = {
	.size = sizeof(fi_acp_rma_ops),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
