// SPDX-License-Identifier: MIT
/* Completion queues. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "acp_fi.h"

#define SPIN_NS		50000		/* before fi_cq_sread() sleeps */

static struct fi_acp_cq *cq_of(struct fid_cq *fid)
{
	return container_of(fid, struct fi_acp_cq, fid);
}

/* ---- Places and entries ---- */

bool fi_acp_cq_full(const struct fi_acp_cq *cq)
{
	return cq && cq->written - cq->read + cq->reserved >= cq->size;
}

bool fi_acp_cq_reserve(struct fi_acp_cq *cq)
{
	if (fi_acp_cq_full(cq))
		return false;
	if (cq)
		cq->reserved++;
	return true;
}

void fi_acp_cq_unreserve(struct fi_acp_cq *cq)
{
	if (cq)
		cq->reserved--;
}

/* It can fail only if the counter is full, which wakes as well. */
static void signal_fd(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return;
}

static void wake_sleepers(const struct fi_acp_cq *cq)
{
	if (fi_acp_job.sleepers)
		signal_fd(fi_acp_job.wake_fd);
	if (cq->own_fd >= 0)
		signal_fd(cq->own_fd);
}

/* The program has seen all there is. */
static void quiet(const struct fi_acp_cq *cq)
{
	uint64_t count;

	if (cq->own_fd >= 0 && read(cq->own_fd, &count, sizeof(count)) < 0)
		return;
}

void fi_acp_cq_write(struct fi_acp_cq *cq, const struct fi_acp_entry *entry)
{
	if (!cq)
		return;
	cq->reserved--;
	cq->ring[cq->written++ & (cq->size - 1)] = *entry;
	wake_sleepers(cq);
}

/* ---- Reading ---- */

static size_t entry_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	default:
		return sizeof(struct fi_cq_entry);
	}
}

/* Move what is there, up to the first error. Lock held. */
static ssize_t take(struct fi_acp_cq *cq, char *buf, size_t count, fi_addr_t *source)
{
	const size_t size = entry_size(cq->format);
	size_t n;

	for (n = 0; n < count && cq->read != cq->written; n++, cq->read++) {
		const struct fi_acp_entry *entry = &cq->ring[cq->read & (cq->size - 1)];

		if (entry->error)
			return n ? (ssize_t)n : -FI_EAVAIL;
		memcpy(buf + n * size, &entry->e, size);
		if (source)
			source[n] = entry->source;
	}
	return n ? (ssize_t)n : -FI_EAGAIN;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source)
{
	struct fi_acp_cq *cq = cq_of(fid);
	ssize_t n;

	fi_acp_lock();
	fi_acp_progress();
	n = take(cq, buf, count, source);
	if (cq->read == cq->written)
		quiet(cq);
	if (!count && n == -FI_EAGAIN && cq->read != cq->written)
		n = 0;
	fi_acp_unlock();
	return n;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return cq_readfrom(fid, buf, count, NULL);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct fi_acp_cq *cq = cq_of(fid);
	const struct fi_acp_entry *entry;
	ssize_t n = -FI_EAGAIN;

	(void)flags;
	fi_acp_lock();
	fi_acp_progress();
	entry = &cq->ring[cq->read & (cq->size - 1)];
	if (cq->read != cq->written && entry->error) {
		buf->op_context = entry->e.op_context;
		buf->flags = entry->e.flags;
		buf->len = entry->e.len;
		buf->buf = entry->e.buf;
		buf->data = entry->e.data;
		buf->tag = entry->e.tag;
		buf->olen = entry->olen;
		buf->err = entry->error;
		buf->prov_errno = entry->prov_errno;
		buf->err_data_size = 0;
		cq->read++;
		n = 1;
	}
	fi_acp_unlock();
	return n;
}

/* Is there what fi_cq_sread() waits for? */
static bool enough(const struct fi_acp_cq *cq, size_t threshold)
{
	return cq->written - cq->read >= threshold ||
	       (cq->read != cq->written && cq->ring[cq->read & (cq->size - 1)].error) ||
	       cq->signaled;
}

/* Poll for some time, then sleep. Lock held. */
static void await(struct fi_acp_cq *cq, size_t threshold, uint64_t end)
{
	const uint64_t begin = fi_acp_now();
	uint64_t now = begin;

	for (;;) {
		fi_acp_progress();
		if (enough(cq, threshold) || now >= end)
			return;
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

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source,
			    const void *cond, int timeout)
{
	struct fi_acp_cq *cq = cq_of(fid);
	const size_t wanted = cond && cq->threshold ? *(const size_t *)cond : 1;
	ssize_t n;

	if (cq->wait_obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	fi_acp_lock();
	await(cq, wanted && wanted <= cq->size ? wanted : 1, fi_acp_end(timeout));
	n = take(cq, buf, count, source);
	cq->signaled = false;
	if (cq->read == cq->written)
		quiet(cq);
	fi_acp_unlock();
	return n;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	fi_acp_lock();
	cq_of(fid)->signaled = true;
	wake_sleepers(cq_of(fid));
	fi_acp_unlock();
	return 0;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf,
			       size_t len)
{
	const char *text = prov_errno < 0 ? fi_strerror(-prov_errno) : acpx_strerror(prov_errno);

	(void)fid;
	(void)err_data;
	return fi_acp_text(text, buf, len);
}

/* ---- Opening and closing ---- */

static void discard(struct fi_acp_cq *cq)
{
	if (cq->wait_fd >= 0)
		close(cq->wait_fd);
	if (cq->own_fd >= 0)
		close(cq->own_fd);
	free(cq->ring);
	free(cq);
}

static int cq_close(struct fid *fid)
{
	struct fi_acp_cq *cq = container_of(fid, struct fi_acp_cq, fid.fid);
	int error;

	fi_acp_lock();
	error = fi_acp_drain(&cq->refs, &cq->reserved);
	if (!error)
		cq->domain->refs--;
	fi_acp_unlock();
	if (!error)
		discard(cq);
	return error;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	const struct fi_acp_cq *cq = container_of(fid, struct fi_acp_cq, fid.fid);

	switch (command) {
	case FI_GETWAIT:
		if (cq->wait_obj != FI_WAIT_FD)
			return -FI_ENODATA;
		*(int *)arg = cq->wait_fd;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = cq->wait_obj;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(cq_fid_ops),
	.close = cq_close,
	.bind = fi_acp_no_bind,
	.control = cq_control,
	.ops_open = fi_acp_no_ops,
};

static struct fi_ops_cq cq_ops = {
	.size = sizeof(cq_ops),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

static int check(const struct fi_cq_attr *attr)
{
	if (attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC &&
	    attr->wait_obj != FI_WAIT_FD && attr->wait_obj != FI_WAIT_YIELD)
		return -FI_ENOSYS;
	if (attr->format > FI_CQ_FORMAT_TAGGED || attr->size > UINT32_MAX / 2)
		return -FI_EINVAL;
	if (attr->flags & ~FI_AFFINITY)
		return -FI_EINVAL;
	return 0;
}

static int watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static int open_descriptors(struct fi_acp_cq *cq)
{
	if (cq->wait_obj != FI_WAIT_FD)
		return 0;
	cq->own_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	cq->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	if (cq->own_fd < 0 || cq->wait_fd < 0 || watch(cq->wait_fd, cq->own_fd) < 0 ||
	    watch(cq->wait_fd, acpx_event_fd()) < 0 ||
	    watch(cq->wait_fd, fi_acp_job.timer_fd) < 0)
		return fi_acp_failed(errno);
	return 0;
}

static int set_up(struct fi_acp_cq *cq, const struct fi_cq_attr *attr)
{
	cq->format = attr->format;
	cq->wait_obj = attr->wait_obj;
	cq->threshold = attr->wait_cond == FI_CQ_COND_THRESHOLD;
	cq->wait_fd = -1;
	cq->own_fd = -1;
	for (cq->size = 1; cq->size < (attr->size ? attr->size : FI_ACP_CQ_SIZE);)
		cq->size *= 2;
	cq->ring = calloc(cq->size, sizeof(*cq->ring));
	return cq->ring ? open_descriptors(cq) : -FI_ENOMEM;
}

int fi_acp_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **fid,
		   void *context)
{
	struct fi_acp_cq *cq;
	int error = check(attr);

	if (error)
		return error;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	if (attr->format == FI_CQ_FORMAT_UNSPEC)
		attr->format = FI_CQ_FORMAT_TAGGED;
	error = set_up(cq, attr);
	if (error) {
		discard(cq);
		return error;
	}
	cq->domain = container_of(domain, struct fi_acp_domain, fid);
	cq->fid.fid = (struct fid){ FI_CLASS_CQ, context, &cq_fid_ops };
	cq->fid.ops = &cq_ops;
	fi_acp_lock();
	cq->domain->refs++;
	fi_acp_unlock();
	*fid = &cq->fid;
	return 0;
}
