// SPDX-License-Identifier: MIT
/* Endpoints: opening, binding, enabling, names. */
#include <stdlib.h>
#include <string.h>

#include "acp_fi.h"

#define MESSAGES	(FI_MSG | FI_TAGGED)

static struct fi_acp_ep *ep_of(struct fid *fid)
{
	return container_of(fid, struct fi_acp_ep, fid.fid);
}

/* ---- Names ---- */

static int no_setname(fid_t fid, void *addr, size_t addrlen)
{
	(void)fid;
	(void)addr;
	(void)addrlen;
	return -FI_ENOSYS;
}

static int ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	const struct fi_acp_ep *ep = ep_of(fid);
	const size_t room = *addrlen;

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	*addrlen = sizeof(ep->addr);
	if (room < sizeof(ep->addr))
		return -FI_ETOOSMALL;
	memcpy(addr, &ep->addr, sizeof(ep->addr));
	return 0;
}

static int no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	(void)ep;
	(void)addr;
	(void)addrlen;
	return -FI_ENOSYS;
}

static int no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	(void)ep;
	(void)addr;
	(void)param;
	(void)paramlen;
	return -FI_ENOSYS;
}

static int no_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return no_connect(ep, NULL, param, paramlen);
}

static int no_listen(struct fid_pep *pep)
{
	(void)pep;
	return -FI_ENOSYS;
}

static int no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	(void)pep;
	(void)handle;
	(void)param;
	(void)paramlen;
	return -FI_ENOSYS;
}

static int no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)ep;
	(void)flags;
	return -FI_ENOSYS;
}

static int no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		   void *context)
{
	(void)ep;
	(void)addr;
	(void)flags;
	(void)mc;
	(void)context;
	return -FI_ENOSYS;
}

static struct fi_ops_cm cm_ops = {
	.size = sizeof(cm_ops),
	.setname = no_setname,
	.getname = ep_getname,
	.getpeer = no_getpeer,
	.connect = no_connect,
	.listen = no_listen,
	.accept = no_accept,
	.reject = no_reject,
	.shutdown = no_shutdown,
	.join = no_join,
};

/* ---- Options ---- */

/* Accesses cannot be taken back: only receives end early. */
static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct fi_acp_ep *ep = ep_of(fid);
	ssize_t error = -FI_ENOENT;

	fi_acp_lock();
	if (ep->messages)
		error = fi_acp_messages_cancel(ep, context);
	fi_acp_unlock();
	return error;
}

static int ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	const struct fi_acp_ep *ep = ep_of(fid);

	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (*optlen < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)optval = ep->min_multi_recv;
	*optlen = sizeof(size_t);
	return 0;
}

static int ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (optlen < sizeof(size_t))
		return -FI_ETOOSMALL;
	ep_of(fid)->min_multi_recv = *(const size_t *)optval;
	return 0;
}

static int no_context(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **ep,
		      void *context)
{
	(void)sep;
	(void)index;
	(void)attr;
	(void)ep;
	(void)context;
	return -FI_ENOSYS;
}

static int no_rx_context(struct fid_ep *sep, int index, struct fi_rx_attr *attr,
			 struct fid_ep **ep, void *context)
{
	(void)attr;
	return no_context(sep, index, NULL, ep, context);
}

static ssize_t no_rx_size_left(struct fid_ep *ep)
{
	(void)ep;
	return -FI_ENOSYS;
}

static ssize_t ep_tx_size_left(struct fid_ep *ep)
{
	ssize_t left;

	(void)ep;
	fi_acp_lock();
	left = (ssize_t)fi_acp_job.free_count;
	fi_acp_unlock();
	return left;
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(ep_ops),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = no_context,
	.rx_ctx = no_rx_context,
	.rx_size_left = no_rx_size_left,
	.tx_size_left = ep_tx_size_left,
};

/* ---- Binding ---- */

static int bind_cq(struct fi_acp_ep *ep, struct fi_acp_cq *cq, uint64_t flags)
{
	const bool selective = flags & FI_SELECTIVE_COMPLETION;

	if (!(flags & (FI_TRANSMIT | FI_RECV)) ||
	    flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
		return -FI_EBADFLAGS;
	if ((flags & FI_TRANSMIT && ep->tx_cq) || (flags & FI_RECV && ep->rx_cq))
		return -FI_EINVAL;
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx_selective = selective;
		cq->refs++;
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->rx_selective = selective;
		cq->refs++;
	}
	return 0;
}

static int bind_cntr(struct fi_acp_ep *ep, struct fi_acp_cntr *cntr, uint64_t flags)
{
	struct fi_acp_cntr **const places[] = {
		&ep->send_cntr, &ep->recv_cntr, &ep->read_cntr, &ep->write_cntr,
	};
	const uint64_t bits[] = { FI_SEND, FI_RECV, FI_READ, FI_WRITE };
	size_t i;

	/* What other ranks do is not counted. */
	if (flags & (FI_REMOTE_READ | FI_REMOTE_WRITE))
		return -FI_ENOSYS;
	for (i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (flags & bits[i] && *places[i])
			return -FI_EINVAL;
	for (i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		if (!(flags & bits[i]))
			continue;
		*places[i] = cntr;
		cntr->refs++;
	}
	return 0;
}

/* Lock held. */
static int bind_any(struct fi_acp_ep *ep, struct fid *bfid, uint64_t flags)
{
	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return bind_cq(ep, container_of(bfid, struct fi_acp_cq, fid.fid), flags);
	case FI_CLASS_CNTR:
		return bind_cntr(ep, container_of(bfid, struct fi_acp_cntr, fid.fid), flags);
	case FI_CLASS_AV:
		if (ep->av)
			return -FI_EINVAL;
		ep->av = container_of(bfid, struct fi_acp_av, fid.fid);
		ep->av->refs++;
		return 0;
	case FI_CLASS_EQ:
		if (ep->eq)
			return -FI_EINVAL;
		ep->eq = fi_acp_eq_of(bfid);
		fi_acp_eq_hold(ep->eq, 1);
		return 0;
	default:
		return -FI_EINVAL;
	}
}

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fi_acp_ep *ep = ep_of(fid);
	int error;

	fi_acp_lock();
	error = ep->enabled ? -FI_EOPBADSTATE : bind_any(ep, bfid, flags);
	fi_acp_unlock();
	return error;
}

/* ---- Enabling ---- */

static int missing(const struct fi_acp_ep *ep)
{
	const uint64_t tx = FI_READ | FI_WRITE | FI_SEND;
	const bool counted = ep->send_cntr || ep->read_cntr || ep->write_cntr;

	if (!ep->av)
		return -FI_ENOAV;
	if (ep->caps & tx && !ep->tx_cq && !counted)
		return -FI_ENOCQ;
	if (ep->caps & FI_RECV && !ep->rx_cq && !ep->recv_cntr)
		return -FI_ENOCQ;
	return 0;
}

static int take_number(struct fi_acp_ep *ep)
{
	uint32_t i;

	for (i = 0; i < FI_ACP_EPS; i++) {
		if (fi_acp_job.eps[i])
			continue;
		ep->addr = (struct fi_acp_addr){
			.magic = FI_ACP_MAGIC, .procs = fi_acp_job.procs,
			.rank = fi_acp_job.rank, .endpoint = i,
		};
		fi_acp_job.eps[i] = ep;
		if (fi_acp_job.ep_end <= i)
			fi_acp_job.ep_end = i + 1;
		return 0;
	}
	return -FI_EBUSY;
}

/* Lock held. */
static void disable(struct fi_acp_ep *ep)
{
	fi_acp_messages_close(ep);
	fi_acp_notify_close(ep);
	fi_acp_job.eps[ep->addr.endpoint] = NULL;
	ep->enabled = false;
}

/* Lock held. */
static int enable(struct fi_acp_ep *ep)
{
	int error = ep->enabled ? -FI_EOPBADSTATE : missing(ep);

	if (!error)
		error = take_number(ep);
	if (error)
		return error;
	fi_acp_notify_open(ep);
	if (ep->caps & MESSAGES)
		error = fi_acp_messages_open(ep);
	if (error)
		disable(ep);
	else
		ep->enabled = true;
	return error;
}

static int ops_flags(struct fi_acp_ep *ep, uint64_t *flags, bool set)
{
	uint64_t *mine = *flags & FI_RECV ? &ep->rx_flags : &ep->tx_flags;

	if (!(*flags & (FI_TRANSMIT | FI_RECV)) ||
	    (*flags & (FI_TRANSMIT | FI_RECV)) == (FI_TRANSMIT | FI_RECV))
		return -FI_EINVAL;
	if (set)
		*mine = *flags & ~(FI_TRANSMIT | FI_RECV);
	else
		*flags = *mine;
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct fi_acp_ep *ep = ep_of(fid);
	int error;

	fi_acp_lock();
	switch (command) {
	case FI_ENABLE:
		error = enable(ep);
		break;
	case FI_GETOPSFLAG:
		error = ops_flags(ep, arg, false);
		break;
	case FI_SETOPSFLAG:
		error = ops_flags(ep, arg, true);
		break;
	default:
		error = -FI_ENOSYS;
	}
	fi_acp_unlock();
	return error;
}

/* ---- Opening and closing ---- */

static void unbind(struct fi_acp_ep *ep)
{
	struct fi_acp_cntr *const cntrs[] = {
		ep->send_cntr, ep->recv_cntr, ep->read_cntr, ep->write_cntr,
	};
	size_t i;

	for (i = 0; i < sizeof(cntrs) / sizeof(cntrs[0]); i++)
		if (cntrs[i])
			cntrs[i]->refs--;
	if (ep->tx_cq)
		ep->tx_cq->refs--;
	if (ep->rx_cq)
		ep->rx_cq->refs--;
	if (ep->av)
		ep->av->refs--;
	fi_acp_eq_hold(ep->eq, -1);
}

/* Operations under way go on: CQs and counters wait for them when they are closed. */
static int ep_close(struct fid *fid)
{
	struct fi_acp_ep *ep = ep_of(fid);

	fi_acp_lock();
	if (ep->enabled)
		disable(ep);
	unbind(ep);
	ep->domain->refs--;
	fi_acp_unlock();
	free(ep);
	return 0;
}

static struct fi_ops ep_fid_ops = {
	.size = sizeof(ep_fid_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = fi_acp_no_ops,
};

static void fill(struct fi_acp_ep *ep, const struct fi_info *info, void *context)
{
	ep->caps = info->caps;
	ep->min_multi_recv = FI_ACP_MIN_MULTI_RECV;
	ep->tag_format = info->ep_attr ? info->ep_attr->mem_tag_format : 0;
	ep->tx_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->rx_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	ep->fid.fid = (struct fid){ FI_CLASS_EP, context, &ep_fid_ops };
	ep->fid.ops = &ep_ops;
	ep->fid.cm = &cm_ops;
	ep->fid.msg = &fi_acp_msg_ops;
	ep->fid.tagged = &fi_acp_tagged_ops;
	ep->fid.rma = &fi_acp_rma_ops;
	ep->fid.atomic = &fi_acp_atomic_ops;
}

int fi_acp_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **fid,
		   void *context)
{
	struct fi_acp_ep *ep;

	if (info->ep_attr && info->ep_attr->type != FI_EP_RDM &&
	    info->ep_attr->type != FI_EP_UNSPEC)
		return -FI_EINVAL;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->domain = container_of(domain, struct fi_acp_domain, fid);
	fill(ep, info, context);
	fi_acp_lock();
	ep->domain->refs++;
	fi_acp_unlock();
	*fid = &ep->fid;
	return 0;
}
