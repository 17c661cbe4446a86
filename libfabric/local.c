// SPDX-License-Identifier: MIT
/*
 * Local memory of operations. ACP accesses registered memory only, libfabric's programs use any: it
 * is copied if that costs less than a registration (5,400 + 2,250 instructions, and 325 per page),
 * and otherwise registered until the operation ends. libacp has no cache of registrations.
 */
#include <errno.h>
#include <string.h>

#include "acp_fi.h"

/* Memory of the operation: the bytes go through it. */
static void through(struct fi_acp_op *op, char *memory, const void *buf, size_t size,
		    enum fi_acp_use use)
{
	if (use == FI_ACP_SOURCE) {
		memcpy(memory, buf, size);
		return;
	}
	op->to = (void *)(uintptr_t)buf;
	op->from = memory;
	op->to_size = size;
}

static int in_region(const struct fi_acp_mr *mr, const void *buf, size_t size, acp_ga_t *ga)
{
	const uintptr_t offset = (uintptr_t)buf - (uintptr_t)mr->base;

	if (offset > mr->size || size > mr->size - offset)
		return -FI_EINVAL;
	*ga = mr->ga + offset;
	return 0;
}

static void bounce(struct fi_acp_op *op, const void *buf, size_t size, enum fi_acp_use use,
		   acp_ga_t *ga)
{
	struct fi_acp_job *job = &fi_acp_job;
	const size_t scratch = (size_t)job->op_count * FI_ACP_INJECT;
	size_t at;

	op->bounce = __builtin_ctzll(job->free_bounces);
	job->free_bounces &= job->free_bounces - 1;
	at = scratch + (size_t)op->bounce * FI_ACP_BOUNCE;
	through(op, job->memory + at, buf, size, use);
	*ga = acp_query_ga(job->memory_key, job->memory + at);
}

/*
 * Nobody else may access it. What is only read may be memory that the program cannot write. If the
 * limit is reached by what other operations have registered, they will end.
 */
static int registered(struct fi_acp_op *op, const void *buf, size_t size, enum fi_acp_use use,
		      acp_ga_t *ga)
{
	void *memory = (void *)(uintptr_t)buf;

	op->registered = acpx_register_memory(memory, size, 0, 0);
	if (op->registered == ACP_ATKEY_NULL && errno == EFAULT && use == FI_ACP_SOURCE)
		op->registered = acpx_register_memory(memory, size, 0, ACPX_ACCESS_RO);
	if (op->registered != ACP_ATKEY_NULL) {
		fi_acp_job.registrations++;
		*ga = acp_query_ga(op->registered, memory);
		return 0;
	}
	if (fi_acp_job.registrations && (errno == ENOMEM || errno == EDQUOT))
		return -FI_EAGAIN;
	return fi_acp_failed(errno);
}

int fi_acp_op_local(struct fi_acp_op *op, const void *buf, size_t size, void *desc,
		    enum fi_acp_use use, bool inject, acp_ga_t *ga)
{
	*ga = op->scratch_ga;
	if (!size)
		return 0;
	if (inject && size > FI_ACP_INJECT)
		return -FI_EINVAL;
	if (desc && !inject)
		return in_region(desc, buf, size, ga);
	if (size <= FI_ACP_INJECT)
		through(op, op->scratch, buf, size, use);
	else if (size <= FI_ACP_BOUNCE && fi_acp_job.free_bounces)
		bounce(op, buf, size, use, ga);
	else
		return registered(op, buf, size, use, ga);
	return 0;
}
