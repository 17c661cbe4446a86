// SPDX-License-Identifier: MIT
/* Memory regions: registrations of libacp. */
#include <errno.h>
#include <stdlib.h>

#include "acp_fi.h"

#define ACCESS	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static int mr_close(struct fid *fid)
{
	struct fi_acp_mr *mr = container_of(fid, struct fi_acp_mr, fid.fid);
	int error = acp_unregister_memory(mr->atkey) < 0 ? fi_acp_failed(errno) : 0;

	if (error)
		fi_acp_warn(MR, "a region was unregistered by other means\n");
	fi_acp_lock();
	mr->domain->refs--;
	fi_acp_unlock();
	free(mr);
	return 0;
}

/* FI_MR_ENDPOINT is not asked for, but a program may bind all the same. */
static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid;
	(void)flags;
	return bfid->fclass == FI_CLASS_EP ? 0 : -FI_ENOSYS;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)arg;
	return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(mr_fid_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
	.ops_open = fi_acp_no_ops,
};

static unsigned int rights(uint64_t access)
{
	unsigned int result = 0;

	if (access & FI_REMOTE_READ)
		result |= ACPX_ACCESS_READ;
	if (access & FI_REMOTE_WRITE)
		result |= ACPX_ACCESS_WRITE | ACPX_ACCESS_ATOMIC;
	return result;
}

/* Memory that the program cannot write is registered as such, if nobody wants to write to it. */
static int enter(struct fi_acp_mr *mr, void *buf)
{
	const unsigned int access = rights(mr->access);
	const uint64_t writes = FI_RECV | FI_READ | FI_REMOTE_WRITE;

	mr->atkey = acpx_register_memory(buf, mr->size, 0, access);
	if (mr->atkey == ACP_ATKEY_NULL && errno == EFAULT && !(mr->access & writes))
		mr->atkey = acpx_register_memory(buf, mr->size, 0, access | ACPX_ACCESS_RO);
	if (mr->atkey == ACP_ATKEY_NULL)
		return fi_acp_failed(errno);
	mr->ga = acp_query_ga(mr->atkey, buf);
	return 0;
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **result)
{
	struct fi_acp_domain *domain = container_of(fid, struct fi_acp_domain, fid.fid);
	struct fi_acp_mr *mr;
	int error;

	if (flags)
		return -FI_EBADFLAGS;
	if (attr->iov_count != 1 || attr->offset || attr->iface != FI_HMEM_SYSTEM ||
	    !attr->mr_iov[0].iov_len || attr->access & ~ACCESS)
		return -FI_EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->domain = domain;
	mr->base = attr->mr_iov[0].iov_base;
	mr->size = attr->mr_iov[0].iov_len;
	mr->access = attr->access;
	error = enter(mr, attr->mr_iov[0].iov_base);
	if (error) {
		free(mr);
		return error;
	}
	mr->fid.fid = (struct fid){ FI_CLASS_MR, attr->context, &mr_fid_ops };
	mr->fid.mem_desc = mr;
	mr->fid.key = mr->ga;
	if (domain->mr_mode & FI_MR_VIRT_ADDR)
		mr->fid.key -= (uintptr_t)mr->base;
	fi_acp_lock();
	domain->refs++;
	fi_acp_unlock();
	*result = &mr->fid;
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		   uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		   void *context)
{
	const struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = count, .access = access, .offset = offset,
		.requested_key = requested_key, .context = context,
	};

	return mr_regattr(fid, &attr, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		  uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };

	return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

struct fi_ops_mr fi_acp_mr_ops = {
	.size = sizeof(fi_acp_mr_ops),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
