// SPDX-License-Identifier: MIT
/* Domains: a process that is a rank of its job. */
#include <stdlib.h>

#include "acp_fi.h"
#include "info.h"

/* ---- What is not offered ---- */

static int no_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
			  void *context)
{
	(void)domain;
	(void)info;
	(void)sep;
	(void)context;
	return -FI_ENOSYS;
}

static int no_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **set)
{
	(void)domain;
	(void)attr;
	(void)set;
	return -FI_ENOSYS;
}

static int no_stx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		  void *context)
{
	(void)domain;
	(void)attr;
	(void)stx;
	(void)context;
	return -FI_ENOSYS;
}

static int no_srx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx,
		  void *context)
{
	(void)domain;
	(void)attr;
	(void)rx;
	(void)context;
	return -FI_ENOSYS;
}

static int no_collective(struct fid_domain *domain, enum fi_collective_op coll,
			 struct fi_collective_attr *attr, uint64_t flags)
{
	(void)domain;
	(void)coll;
	(void)attr;
	(void)flags;
	return -FI_EOPNOTSUPP;
}

/* ---- Domain ---- */

static int query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
			struct fi_atomic_attr *attr, uint64_t flags)
{
	(void)domain;
	return fi_acp_atomic_query(type, op, attr, flags);
}

static int domain_close(struct fid *fid)
{
	struct fi_acp_domain *domain = container_of(fid, struct fi_acp_domain, fid.fid);
	bool busy;

	fi_acp_lock();
	busy = domain->refs;
	if (!busy)
		domain->fabric->refs--;
	fi_acp_unlock();
	if (busy)
		return -FI_EBUSY;
	fi_acp_job_leave();
	free(domain);
	return 0;
}

static struct fi_ops domain_fid_ops = {
	.size = sizeof(domain_fid_ops),
	.close = domain_close,
	.bind = fi_acp_no_bind,
	.control = fi_acp_no_control,
	.ops_open = fi_acp_no_ops,
};

static struct fi_ops_domain domain_ops = {
	.size = sizeof(domain_ops),
	.av_open = fi_acp_av_open,
	.cq_open = fi_acp_cq_open,
	.endpoint = fi_acp_ep_open,
	.scalable_ep = no_scalable_ep,
	.cntr_open = fi_acp_cntr_open,
	.poll_open = no_poll_open,
	.stx_ctx = no_stx,
	.srx_ctx = no_srx,
	.query_atomic = query_atomic,
	.query_collective = no_collective,
};

int fi_acp_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **fid,
		       void *context)
{
	struct fi_acp_domain *domain;
	int error;

	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	error = fi_acp_job_join();
	if (error) {
		free(domain);
		return error;
	}
	domain->fabric = container_of(fabric, struct fi_acp_fabric, fid);
	domain->mr_mode = info->domain_attr->mr_mode;
	if (domain->mr_mode == FI_MR_BASIC)
		domain->mr_mode = FI_ACP_MR_MODE | FI_MR_VIRT_ADDR;
	domain->fid.fid = (struct fid){ FI_CLASS_DOMAIN, context, &domain_fid_ops };
	domain->fid.ops = &domain_ops;
	domain->fid.mr = &fi_acp_mr_ops;
	fi_acp_lock();
	domain->fabric->refs++;
	fi_acp_unlock();
	*fid = &domain->fid;
	return 0;
}
