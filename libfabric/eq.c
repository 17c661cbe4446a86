// SPDX-License-Identifier: MIT
/* Event queues: they report the end of insertions into address vectors, and what programs write. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acp_fi.h"

#define SIZE	256u		/* events, if the caller does not say */
#define SIZE_LIMIT	65536u
#define DATA	64u		/* bytes of an event */

struct event {
	uint32_t type;
	size_t size;
	char data[DATA];
};

struct fi_acp_eq {
	struct fid_eq fid;
	struct fi_acp_fabric *fabric;
	unsigned int refs;	/* address vectors and endpoints */
	struct event *ring;
	size_t size;
	uint64_t written, read;
};

static struct fi_acp_eq *eq_of(struct fid_eq *fid)
{
	return container_of(fid, struct fi_acp_eq, fid);
}

struct fi_acp_eq *fi_acp_eq_of(struct fid *fid)
{
	return container_of(fid, struct fi_acp_eq, fid.fid);
}

void fi_acp_eq_hold(struct fi_acp_eq *eq, int change)
{
	if (eq)
		eq->refs += (unsigned int)change;
}

/* Lock held. Returns the size or -FI_E*. */
static ssize_t post(struct fi_acp_eq *eq, uint32_t type, const void *data, size_t size)
{
	struct event *event;

	if (size > DATA)
		return -FI_EINVAL;
	if (eq->written - eq->read >= eq->size)
		return -FI_EAGAIN;
	event = &eq->ring[eq->written++ % eq->size];
	event->type = type;
	event->size = size;
	memcpy(event->data, data, size);
	return (ssize_t)size;
}

int fi_acp_eq_room(const struct fi_acp_eq *eq)
{
	if (!eq)
		return -FI_ENOEQ;
	return eq->written - eq->read < eq->size ? 0 : -FI_EAGAIN;
}

int fi_acp_eq_post(struct fi_acp_eq *eq, uint32_t type, struct fid *fid, void *context,
		   uint64_t data)
{
	const struct fi_eq_entry entry = { .fid = fid, .context = context, .data = data };
	ssize_t size = eq ? post(eq, type, &entry, sizeof(entry)) : -FI_ENOEQ;

	return size < 0 ? (int)size : 0;
}

/* Lock held. */
static ssize_t take(struct fi_acp_eq *eq, uint32_t *type, void *buf, size_t len, uint64_t flags)
{
	const struct event *event = &eq->ring[eq->read % eq->size];

	if (eq->read == eq->written)
		return -FI_EAGAIN;
	if (len < event->size)
		return -FI_ETOOSMALL;
	*type = event->type;
	memcpy(buf, event->data, event->size);
	if (!(flags & FI_PEEK))
		eq->read++;
	return (ssize_t)event->size;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *type, void *buf, size_t len, uint64_t flags)
{
	ssize_t size;

	fi_acp_lock();
	size = take(eq_of(fid), type, buf, len, flags);
	fi_acp_unlock();
	return size;
}

/* Events are rare: look again after a millisecond. */
static ssize_t eq_sread(struct fid_eq *fid, uint32_t *type, void *buf, size_t len, int timeout,
			uint64_t flags)
{
	const struct timespec pause = { 0, 1000000 };
	const uint64_t end = fi_acp_end(timeout);
	ssize_t size;

	while ((size = eq_read(fid, type, buf, len, flags)) == -FI_EAGAIN && fi_acp_now() < end)
		nanosleep(&pause, NULL);
	return size;
}

/* No error is reported here. */
static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	(void)fid;
	(void)buf;
	(void)flags;
	return -FI_EAGAIN;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t type, const void *buf, size_t len,
			uint64_t flags)
{
	ssize_t size;

	(void)flags;
	fi_acp_lock();
	size = post(eq_of(fid), type, buf, len);
	fi_acp_unlock();
	return size;
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf,
			       size_t len)
{
	(void)fid;
	(void)err_data;
	return fi_acp_text(acpx_strerror(prov_errno), buf, len);
}

static int eq_close(struct fid *fid)
{
	struct fi_acp_eq *eq = fi_acp_eq_of(fid);
	bool busy;

	fi_acp_lock();
	busy = eq->refs;
	if (!busy)
		eq->fabric->refs--;
	fi_acp_unlock();
	if (busy)
		return -FI_EBUSY;
	free(eq->ring);
	free(eq);
	return 0;
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(eq_fid_ops),
	.close = eq_close,
	.bind = fi_acp_no_bind,
	.control = fi_acp_no_control,
	.ops_open = fi_acp_no_ops,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(eq_ops),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

int fi_acp_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **fid,
		   void *context)
{
	struct fi_acp_eq *eq;

	if (attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC &&
	    attr->wait_obj != FI_WAIT_YIELD)
		return -FI_ENOSYS;
	if (attr->size > SIZE_LIMIT)
		return -FI_EINVAL;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->size = attr->size ? attr->size : SIZE;
	eq->ring = calloc(eq->size, sizeof(*eq->ring));
	if (!eq->ring) {
		free(eq);
		return -FI_ENOMEM;
	}
	eq->fabric = container_of(fabric, struct fi_acp_fabric, fid);
	eq->fid.fid = (struct fid){ FI_CLASS_EQ, context, &eq_fid_ops };
	eq->fid.ops = &eq_ops;
	fi_acp_lock();
	eq->fabric->refs++;
	fi_acp_unlock();
	*fid = &eq->fid;
	return 0;
}
