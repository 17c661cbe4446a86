// SPDX-License-Identifier: MIT
/* Operations: their pool, their accesses, their end. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "acp_fi.h"

/* ---- Errors ---- */

int fi_acp_errno(int status)
{
	static const int errors[] = {
		[ACPX_EOP] = FI_EINVAL, [ACPX_EGA] = FI_EKEYREJECTED,
		[ACPX_ESTAG] = FI_EKEYREJECTED, [ACPX_ERANGE] = FI_EINVAL,
		[ACPX_EACCESS] = FI_EACCES, [ACPX_EALIGN] = FI_EINVAL,
		[ACPX_ERANK] = FI_ECONNRESET, [ACPX_ENOMEM] = FI_ENOMEM,
		[ACPX_ETIMEOUT] = FI_EHOSTDOWN, [ACPX_EPEER] = FI_ECONNRESET,
		[ACPX_EROUTE] = FI_EHOSTUNREACH, [ACPX_EORDER] = FI_ECANCELED,
		[ACPX_EABORT] = FI_ECONNABORTED, [ACPX_EAGAIN] = FI_ENORX,
	};

	if (!status)
		return 0;
	if (status < 0 || (size_t)status >= sizeof(errors) / sizeof(errors[0]) || !errors[status])
		return FI_EOTHER;
	return errors[status];
}

int fi_acp_failed(int error)
{
	return error ? -error : -FI_EOTHER;
}

const char *fi_acp_text(const char *text, char *buf, size_t len)
{
	if (buf && len) {
		strncpy(buf, text, len - 1);
		buf[len - 1] = 0;
	}
	return text;
}

/* ---- The pool ---- */

static struct fi_acp_op *take(void)
{
	struct fi_acp_job *job = &fi_acp_job;
	struct fi_acp_op *op = job->free_ops;

	if (!op)
		return NULL;
	job->free_ops = op->next;
	job->free_count--;
	op->next = NULL;
	op->parent = NULL;
	op->parts = 0;
	op->handle = ACP_HANDLE_NULL;
	op->status = 0;
	op->cq = NULL;
	op->cntr = NULL;
	op->report = false;
	op->bounce = -1;
	op->registered = ACP_ATKEY_NULL;
	op->to = NULL;
	op->ended = NULL;
	op->private = NULL;
	return op;
}

static void give(struct fi_acp_op *op)
{
	struct fi_acp_job *job = &fi_acp_job;

	if (op->bounce >= 0)
		job->free_bounces |= 1ULL << op->bounce;
	if (op->registered != ACP_ATKEY_NULL) {
		acp_unregister_memory(op->registered);
		job->registrations--;
	}
	op->next = job->free_ops;
	job->free_ops = op;
	job->free_count++;
}

struct fi_acp_op *fi_acp_op_get(struct fi_acp_cq *cq, struct fi_acp_cntr *cntr,
				const struct fi_cq_tagged_entry *entry, bool report)
{
	struct fi_acp_op *op;

	if (!fi_acp_job.free_ops || fi_acp_cq_full(cq))
		fi_acp_progress();
	if (!fi_acp_cq_reserve(cq))
		return NULL;
	op = take();
	if (!op) {
		fi_acp_cq_unreserve(cq);
		return NULL;
	}
	op->cq = cq;
	op->cntr = cntr;
	op->entry = *entry;
	op->report = report;
	if (cntr)
		cntr->pending++;
	return op;
}

/* An operation with parts counts itself as one of them, until fi_acp_op_whole(). */
struct fi_acp_op *fi_acp_op_part(struct fi_acp_op *parent)
{
	struct fi_acp_op *op = take();

	if (!op)
		return NULL;
	op->parent = parent;
	if (!parent->parts)
		parent->parts = 1;
	parent->parts++;
	return op;
}

/* ---- Their end ---- */

static void write_entry(struct fi_acp_op *op, int status)
{
	struct fi_acp_entry entry = {
		.e = op->entry, .source = FI_ADDR_NOTAVAIL,
		.error = fi_acp_errno(status), .prov_errno = status,
	};

	if (!op->cq)
		return;
	if (status || op->report)
		fi_acp_cq_write(op->cq, &entry);
	else
		fi_acp_cq_unreserve(op->cq);
}

static void report(struct fi_acp_op *op, int status)
{
	if (op->ended)
		op->ended(op, status);
	write_entry(op, status);
	if (op->cntr)
		op->cntr->pending--;
	fi_acp_cntr_count(op->cntr, status != 0);
	give(op);
}

/* A part of an operation, or the operation itself, has ended. */
static void part_ended(struct fi_acp_op *op, int status)
{
	if (!op->status)
		op->status = status;
	if (!--op->parts)
		report(op, op->status);
}

void fi_acp_op_end(struct fi_acp_op *op, int status)
{
	struct fi_acp_op *parent = op->parent;

	if (!status && op->to)
		memcpy(op->to, op->from, op->to_size);
	if (!parent) {
		report(op, status);
		return;
	}
	give(op);
	part_ended(parent, status);
}

void fi_acp_op_whole(struct fi_acp_op *op)
{
	if (!op->parts)
		op->parts = 1;
	part_ended(op, 0);
}

void fi_acp_op_drop(struct fi_acp_op *op)
{
	if (op->parent) {
		op->parent->parts--;
	} else {
		fi_acp_cq_unreserve(op->cq);
		if (op->cntr)
			op->cntr->pending--;
	}
	give(op);
}

void fi_acp_op_start(struct fi_acp_op *op, struct fi_acp_queue *queue, acp_handle_t handle)
{
	if (handle == (acp_handle_t)ACP_HANDLE_NULL) {
		fi_acp_op_end(op, ACPX_EABORT);
		return;
	}
	op->handle = handle;
	op->next = NULL;
	*queue->last = op;
	queue->last = &op->next;
}

/* ---- Progress ---- */

static void drain(struct fi_acp_queue *queue)
{
	struct fi_acp_op *op;

	while ((op = queue->first) && !acp_inquire(op->handle)) {
		queue->first = op->next;
		if (!queue->first)
			queue->last = &queue->first;
		fi_acp_op_end(op, acpx_status(op->handle));
	}
}

void fi_acp_progress(void)
{
	struct fi_acp_queue *queue;
	size_t i;

	if (!fi_acp_job.domains)
		return;
	for (queue = &fi_acp_job.queue; queue; queue = queue->next)
		drain(queue);
	for (i = 0; i < fi_acp_job.ep_end; i++) {
		struct fi_acp_ep *ep = fi_acp_job.eps[i];

		if (ep && ep->messages)
			fi_acp_messages_progress(ep);
		if (ep && ep->notify)
			fi_acp_notify_progress(ep);
	}
}

int fi_acp_drain(const unsigned int *refs, const size_t *pending)
{
	if (*refs)
		return -FI_EBUSY;
	while (fi_acp_progress(), *pending) {
		fi_acp_unlock();
		sched_yield();
		fi_acp_lock();
	}
	return 0;
}
