// SPDX-License-Identifier: MIT
/* The entry point that libfabric calls when it has loaded this library, and the fabric. */
#include <stdlib.h>

#include "acp_fi.h"
#include "info.h"

/* ---- What is not offered ---- */

int fi_acp_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid;
	(void)bfid;
	(void)flags;
	return -FI_ENOSYS;
}

int fi_acp_no_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)command;
	(void)arg;
	return -FI_ENOSYS;
}

int fi_acp_no_ops(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	(void)fid;
	(void)name;
	(void)flags;
	(void)ops;
	(void)context;
	return -FI_ENOSYS;
}

static int no_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			 void *context)
{
	(void)fabric;
	(void)info;
	(void)pep;
	(void)context;
	return -FI_ENOSYS;
}

static int no_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **set)
{
	(void)fabric;
	(void)attr;
	(void)set;
	return -FI_ENOSYS;
}

/* ---- Fabric ---- */

/* Has the queue, or counter, something that the program has not seen? Lock held. */
static bool has_unread(const struct fid *fid)
{
	const struct fi_acp_cq *cq;

	if (fid->fclass != FI_CLASS_CQ)
		return false;
	cq = container_of(fid, struct fi_acp_cq, fid.fid);
	return cq->read != cq->written;
}

/* One descriptor is for all of them. */
static int fabric_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	bool unread = false;
	int i;

	(void)fabric;
	fi_acp_lock();
	fi_acp_progress();
	for (i = 0; i < count; i++)
		unread = unread || has_unread(fids[i]);
	unread = unread || (fi_acp_job.domains && fi_acp_arm());
	fi_acp_unlock();
	return unread ? -FI_EAGAIN : 0;
}

static int fabric_close(struct fid *fid)
{
	struct fi_acp_fabric *fabric = container_of(fid, struct fi_acp_fabric, fid.fid);
	bool busy;

	fi_acp_lock();
	busy = fabric->refs;
	fi_acp_unlock();
	if (busy)
		return -FI_EBUSY;
	free(fabric);
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(fabric_fid_ops),
	.close = fabric_close,
	.bind = fi_acp_no_bind,
	.control = fi_acp_no_control,
	.ops_open = fi_acp_no_ops,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(fabric_ops),
	.domain = fi_acp_domain_open,
	.passive_ep = no_passive_ep,
	.eq_open = fi_acp_eq_open,
	.wait_open = no_wait_open,
	.trywait = fabric_trywait,
};

int fi_acp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fid, void *context)
{
	struct fi_acp_fabric *fabric = calloc(1, sizeof(*fabric));

	if (!fabric)
		return -FI_ENOMEM;
	fabric->fid.fid = (struct fid){ FI_CLASS_FABRIC, context, &fabric_fid_ops };
	fabric->fid.ops = &fabric_ops;
	fabric->fid.api_version = attr->api_version;
	*fid = &fabric->fid;
	return 0;
}

/* ---- Provider ---- */

static void cleanup(void)
{
}

struct fi_provider fi_acp_provider = {
	.version = FI_ACP_VERSION,
	.fi_version = FI_ACP_API,
	.name = FI_ACP_NAME,
	.getinfo = fi_acp_getinfo,
	.fabric = fi_acp_fabric_open,
	.cleanup = cleanup,
};

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
	return &fi_acp_provider;
}
