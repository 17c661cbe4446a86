// SPDX-License-Identifier: MIT
/* Counters of completed operations. */
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "acp_fi.h"

#define SPIN_NS		50000		/* before fi_cntr_wait() sleeps */

static struct fi_acp_cntr *cntr_of(struct fid_cntr *fid)
{
	return container_of(fid, struct fi_acp_cntr, fid);
}

static void wake_sleepers(void)
{
	const uint64_t one = 1;

	if (fi_acp_job.sleepers && write(fi_acp_job.wake_fd, &one, sizeof(one)) < 0)
		return;
}

void fi_acp_cntr_count(struct fi_acp_cntr *cntr, bool error)
{
	if (!cntr)
		return;
	if (error)
		cntr->errors++;
	else
		cntr->value++;
	wake_sleepers();
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	uint64_t value;

	fi_acp_lock();
	fi_acp_progress();
	value = cntr_of(fid)->value;
	fi_acp_unlock();
	return value;
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	uint64_t errors;

	fi_acp_lock();
	fi_acp_progress();
	errors = cntr_of(fid)->errors;
	fi_acp_unlock();
	return errors;
}

/* Change a number: add to it, or set it. */
static int change(uint64_t *number, uint64_t value, bool add)
{
	fi_acp_lock();
	*number = add ? *number + value : value;
	wake_sleepers();
	fi_acp_unlock();
	return 0;
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	return change(&cntr_of(fid)->value, value, true);
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	return change(&cntr_of(fid)->value, value, false);
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	return change(&cntr_of(fid)->errors, value, true);
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	return change(&cntr_of(fid)->errors, value, false);
}

/* Poll for some time, then sleep. Lock held. Returns 0, -FI_EAVAIL or -FI_ETIMEDOUT. */
static int await(struct fi_acp_cntr *cntr, uint64_t threshold, uint64_t end)
{
	const uint64_t begin = fi_acp_now(), errors = cntr->errors;
	uint64_t now = begin;

	for (;;) {
		fi_acp_progress();
		if (cntr->value >= threshold)
			return 0;
		if (cntr->errors != errors)
			return -FI_EAVAIL;
		if (now >= end)
			return -FI_ETIMEDOUT;
		if (now - begin >= SPIN_NS) {
			fi_acp_sleep(end);
		} else {
			fi_acp_unlock();
			sched_yield();
			fi_acp_lock();
		}
		now = fi_acp_now();
	}
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	int error;

	fi_acp_lock();
	error = await(cntr_of(fid), threshold, fi_acp_end(timeout));
	fi_acp_unlock();
	return error;
}

static int cntr_close(struct fid *fid)
{
	struct fi_acp_cntr *cntr = container_of(fid, struct fi_acp_cntr, fid.fid);
	int error;

	fi_acp_lock();
	error = fi_acp_drain(&cntr->refs, &cntr->pending);
	if (!error)
		cntr->domain->refs--;
	fi_acp_unlock();
	if (!error)
		free(cntr);
	return error;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	const struct fi_acp_cntr *cntr = container_of(fid, struct fi_acp_cntr, fid.fid);

	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = cntr->wait_obj;
		return 0;
	}
	return command == FI_GETWAIT ? -FI_ENODATA : -FI_ENOSYS;
}

static struct fi_ops cntr_fid_ops = {
	.size = sizeof(cntr_fid_ops),
	.close = cntr_close,
	.bind = fi_acp_no_bind,
	.control = cntr_control,
	.ops_open = fi_acp_no_ops,
};

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(cntr_ops),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

int fi_acp_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **fid,
		     void *context)
{
	struct fi_acp_cntr *cntr;

	if (attr && (attr->events != FI_CNTR_EVENTS_COMP || attr->flags))
		return -FI_EINVAL;
	/* No descriptor: nothing tells fi_trywait() which value the program has seen. */
	if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC &&
	    attr->wait_obj != FI_WAIT_YIELD)
		return -FI_ENOSYS;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	cntr->wait_obj = attr ? attr->wait_obj : FI_WAIT_UNSPEC;
	cntr->domain = container_of(domain, struct fi_acp_domain, fid);
	cntr->fid.fid = (struct fid){ FI_CLASS_CNTR, context, &cntr_fid_ops };
	cntr->fid.ops = &cntr_ops;
	fi_acp_lock();
	cntr->domain->refs++;
	fi_acp_unlock();
	*fid = &cntr->fid;
	return 0;
}
