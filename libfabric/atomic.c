// SPDX-License-Identifier: MIT
/*
 * Atomics: those that ACP executes at the memory itself, of 32 and 64 bits. Each element is an
 * access of its own: only elements are atomic, not the operation.
 */
#include <string.h>

#include "acp_fi.h"

#define MSG_FLAGS	(FI_COMPLETION | FI_INJECT | FI_FENCE | FI_MORE | FI_INJECT_COMPLETE | \
			 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

enum form { BASE, FETCH, COMPARE };

static struct fi_acp_ep *ep_of(struct fid_ep *fid)
{
	return container_of(fid, struct fi_acp_ep, fid);
}

/* ---- What there is ---- */

/* Bytes of an element; 0: not offered. */
static size_t width_of(enum fi_datatype type)
{
	switch (type) {
	case FI_INT32:
	case FI_UINT32:
	case FI_FLOAT:
		return 4;
	case FI_INT64:
	case FI_UINT64:
	case FI_DOUBLE:
		return 8;
	default:
		return 0;
	}
}

/* How acpx_accumulate() names a type; -1: it has none. */
static int type_of(enum fi_datatype type)
{
	switch (type) {
	case FI_INT32:
		return ACPX_INT32;
	case FI_INT64:
		return ACPX_INT64;
	case FI_UINT32:
		return ACPX_UINT32;
	case FI_UINT64:
		return ACPX_UINT64;
	case FI_FLOAT:
		return ACPX_FLOAT;
	case FI_DOUBLE:
		return ACPX_DOUBLE;
	default:
		return -1;
	}
}

/* ... and an operation that ACP has no atomic for; -1: it is another one. */
static int combination_of(enum fi_datatype type, enum fi_op op)
{
	switch (op) {
	case FI_MIN:
		return ACPX_MIN;
	case FI_MAX:
		return ACPX_MAX;
	case FI_PROD:
		return ACPX_PROD;
	case FI_SUM:
		return type == FI_FLOAT || type == FI_DOUBLE ? ACPX_SUM : -1;
	default:
		return -1;
	}
}

/* Former values of numbers with a fraction are moved, but these are not computed or compared. */
static bool offered(enum form form, enum fi_datatype type, enum fi_op op)
{
	const bool whole = type != FI_FLOAT && type != FI_DOUBLE;

	if (!width_of(type))
		return false;
	if (form == BASE && combination_of(type, op) >= 0)
		return true;
	switch (op) {
	case FI_SUM:
	case FI_BOR:
	case FI_BAND:
	case FI_BXOR:
		return form != COMPARE && whole;
	case FI_ATOMIC_WRITE:
		return form != COMPARE;
	case FI_ATOMIC_READ:
		return form == FETCH;
	case FI_CSWAP:
		return form == COMPARE && whole;
	default:
		return false;
	}
}

static int valid(enum form form, enum fi_datatype type, enum fi_op op, size_t *count)
{
	if (!offered(form, type, op))
		return -FI_EOPNOTSUPP;
	if (count)
		*count = FI_ACP_ATOMICS;
	return 0;
}

int fi_acp_atomic_query(enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr,
			uint64_t flags)
{
	enum form form = BASE;

	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC) ||
	    flags == (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return -FI_EBADFLAGS;
	if (flags)
		form = flags & FI_FETCH_ATOMIC ? FETCH : COMPARE;
	if (!offered(form, type, op))
		return -FI_EOPNOTSUPP;
	if (attr)
		*attr = (struct fi_atomic_attr){ FI_ACP_ATOMICS, width_of(type) };
	return 0;
}

/* ---- An element ---- */

/* What is done to one element. */
struct element {
	acp_ga_t target, former;
	uint64_t operand, compare;
	acp_handle_t order;
};

static acp_handle_t issue4(enum fi_op op, const struct element *e)
{
	const uint32_t operand = (uint32_t)e->operand;

	switch (op) {
	case FI_SUM:
		return acp_add4(e->former, e->target, operand, e->order);
	case FI_BOR:
		return acp_or4(e->former, e->target, operand, e->order);
	case FI_BAND:
		return acp_and4(e->former, e->target, operand, e->order);
	case FI_BXOR:
		return acp_xor4(e->former, e->target, operand, e->order);
	case FI_ATOMIC_WRITE:
		return acp_swap4(e->former, e->target, operand, e->order);
	case FI_CSWAP:
		return acp_cas4(e->former, e->target, (uint32_t)e->compare, operand, e->order);
	default:				/* FI_ATOMIC_READ */
		return acp_or4(e->former, e->target, 0, e->order);
	}
}

static acp_handle_t issue8(enum fi_op op, const struct element *e)
{
	switch (op) {
	case FI_SUM:
		return acp_add8(e->former, e->target, e->operand, e->order);
	case FI_BOR:
		return acp_or8(e->former, e->target, e->operand, e->order);
	case FI_BAND:
		return acp_and8(e->former, e->target, e->operand, e->order);
	case FI_BXOR:
		return acp_xor8(e->former, e->target, e->operand, e->order);
	case FI_ATOMIC_WRITE:
		return acp_swap8(e->former, e->target, e->operand, e->order);
	case FI_CSWAP:
		return acp_cas8(e->former, e->target, e->compare, e->operand, e->order);
	default:				/* FI_ATOMIC_READ */
		return acp_or8(e->former, e->target, 0, e->order);
	}
}

/* ---- An operation ---- */

struct operation {
	struct fi_acp_ep *ep;
	acp_handle_t order;
	enum form form;
	enum fi_op op;
	enum fi_datatype type;
	size_t width, count;		/* bytes of an element, elements */
	uint64_t flags;
	bool wrong;			/* a key is of another rank: fails with ACPX_EGA */
	uint64_t operand[FI_ACP_ATOMICS], compare[FI_ACP_ATOMICS];
	void *result[FI_ACP_ATOMICS];
	acp_ga_t target[FI_ACP_ATOMICS];
};

/* Copy operands to @values. False: another number of elements than the operation has. */
static bool load(const struct operation *o, const struct fi_ioc *ioc, size_t n, uint64_t *values)
{
	size_t i, j, count = 0;

	for (i = 0; i < n; i++) {
		for (j = 0; j < ioc[i].count; j++) {
			if (count == o->count)
				return false;
			values[count] = 0;
			memcpy(&values[count++], (const char *)ioc[i].addr + j * o->width,
			       o->width);
		}
	}
	return count == o->count;
}

static bool load_results(struct operation *o, const struct fi_ioc *ioc, size_t n)
{
	size_t i, j, count = 0;

	for (i = 0; i < n; i++) {
		for (j = 0; j < ioc[i].count; j++) {
			if (count == o->count)
				return false;
			o->result[count++] = (char *)ioc[i].addr + j * o->width;
		}
	}
	return count == o->count;
}

static bool load_targets(struct operation *o, const struct fi_rma_ioc *ioc, size_t n, uint32_t rank)
{
	size_t i, j;

	o->count = 0;
	for (i = 0; i < n; i++) {
		for (j = 0; j < ioc[i].count; j++) {
			const acp_ga_t ga = ioc[i].addr + ioc[i].key + j * o->width;

			if (o->count == FI_ACP_ATOMICS)
				return false;
			o->wrong = o->wrong || acp_query_rank(ga) != (int)rank;
			o->target[o->count++] = ga;
		}
	}
	return o->count;
}

/* Combine an element with an operand in memory of the operation. */
static acp_handle_t accumulate(const struct operation *o, size_t i, struct fi_acp_op *op)
{
	memcpy(op->scratch, &o->operand[i], o->width);
	return acpx_accumulate(o->target[i], op->scratch_ga, 1, combination_of(o->type, o->op),
			       type_of(o->type), o->order);
}

static void start_element(const struct operation *o, size_t i, struct fi_acp_op *op)
{
	const struct element e = {
		.target = o->target[i], .former = op->scratch_ga, .operand = o->operand[i],
		.compare = o->compare[i],
		.order = o->order,
	};
	acp_handle_t handle;

	if (o->form != BASE) {
		op->to = o->result[i];
		op->from = op->scratch;
		op->to_size = o->width;
	}
	if (combination_of(o->type, o->op) >= 0)
		handle = accumulate(o, i, op);
	else
		handle = o->width == 4 ? issue4(o->op, &e) : issue8(o->op, &e);
	if (o->flags & FI_FENCE)
		o->ep->fence = handle;
	fi_acp_op_start(op, &fi_acp_job.queue, handle);
}

/* There are enough operations for all elements. */
static void start(const struct operation *o, struct fi_acp_op *op)
{
	size_t i;

	if (o->wrong) {
		fi_acp_op_end(op, ACPX_EGA);
		return;
	}
	if (o->count == 1) {
		start_element(o, 0, op);
		return;
	}
	for (i = 0; i < o->count; i++)
		start_element(o, i, fi_acp_op_part(op));
	fi_acp_op_whole(op);
}

/* What a call hands over, beside the message. */
struct parts {
	enum form form;
	const struct fi_ioc *compare, *result;
	size_t compare_count, result_count;
	uint64_t flags;
	bool report;
};

/* Lock held. */
static int load_all(struct operation *o, const struct fi_acp_ep *ep,
		    const struct fi_msg_atomic *msg, const struct parts *parts)
{
	const struct fi_acp_addr *peer = fi_acp_peer(ep->av, msg->addr);

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	if (o->flags & ~MSG_FLAGS)
		return -FI_EBADFLAGS;
	if (!offered(o->form, msg->datatype, msg->op))
		return -FI_EOPNOTSUPP;
	if (!peer || !load_targets(o, msg->rma_iov, msg->rma_iov_count, peer->rank))
		return -FI_EINVAL;
	if (msg->op != FI_ATOMIC_READ && !load(o, msg->msg_iov, msg->iov_count, o->operand))
		return -FI_EINVAL;
	if (o->form == COMPARE && !load(o, parts->compare, parts->compare_count, o->compare))
		return -FI_EINVAL;
	if (o->form != BASE && !load_results(o, parts->result, parts->result_count))
		return -FI_EINVAL;
	return 0;
}

/* Lock held. */
static int begin(struct operation *o, struct fi_acp_ep *ep, const struct fi_msg_atomic *msg,
		 const struct parts *parts)
{
	const struct fi_cq_tagged_entry entry = {
		.op_context = msg->context,
		.flags = FI_ATOMIC | (o->form == BASE ? FI_WRITE : FI_READ),
	};
	struct fi_acp_op *op;

	if (fi_acp_job.free_count < o->count + 1)
		fi_acp_progress();
	if (fi_acp_job.free_count < o->count + 1)
		return -FI_EAGAIN;
	op = fi_acp_op_get(ep->tx_cq, o->form == BASE ? ep->write_cntr : ep->read_cntr, &entry,
			   parts->report);
	if (!op)
		return -FI_EAGAIN;
	start(o, op);
	return 0;
}

static ssize_t operate(struct fid_ep *fid, const struct fi_msg_atomic *msg,
		       const struct parts *parts)
{
	struct fi_acp_ep *ep = ep_of(fid);
	struct operation o = {
		.ep = ep, .form = parts->form, .op = msg->op, .type = msg->datatype,
		.width = width_of(msg->datatype),
		.flags = parts->flags,
	};
	int error;

	fi_acp_lock();
	o.order = fi_acp_order(ep, o.flags);
	error = load_all(&o, ep, msg, parts);
	if (!error)
		error = begin(&o, ep, msg, parts);
	fi_acp_unlock();
	return error;
}

/* ---- The calls ---- */

/* Calls without flags have those of the endpoint. */
static struct parts own_parts(struct fid_ep *fid, enum form form)
{
	const struct fi_acp_ep *ep = ep_of(fid);

	return (struct parts){
		.form = form, .flags = ep->tx_flags & MSG_FLAGS,
		.report = fi_acp_reports(ep, true, ep->tx_flags),
	};
}

/* The message of a call with one contiguous target. */
static struct fi_msg_atomic message(const struct fi_ioc *ioc, size_t n, fi_addr_t dest,
				    struct fi_rma_ioc *target, enum fi_datatype type,
				    enum fi_op op, void *context)
{
	size_t i;

	target->count = 0;
	for (i = 0; i < n; i++)
		target->count += ioc[i].count;
	return (struct fi_msg_atomic){
		.msg_iov = ioc, .iov_count = n, .addr = dest, .rma_iov = target,
		.rma_iov_count = 1, .datatype = type, .op = op, .context = context,
	};
}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
			     size_t count, fi_addr_t dest, uint64_t addr, uint64_t key,
			     enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_rma_ioc target = { .addr = addr, .key = key };
	const struct fi_msg_atomic msg = message(iov, count, dest, &target, type, op, context);
	const struct parts parts = own_parts(fid, BASE);

	(void)desc;
	return operate(fid, &msg, &parts);
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count, void *desc,
			    fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type,
			    enum fi_op op, void *context)
{
	const struct fi_ioc ioc = { (void *)(uintptr_t)buf, count };

	return atomic_writev(fid, &ioc, &desc, 1, dest, addr, key, type, op, context);
}

static ssize_t atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
	const struct parts parts = {
		.flags = flags, .report = fi_acp_reports(ep_of(fid), true, flags),
	};

	return operate(fid, msg, &parts);
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t dest,
			     uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op)
{
	const struct fi_ioc ioc = { (void *)(uintptr_t)buf, count };
	struct fi_rma_ioc target = { .addr = addr, .key = key };
	const struct fi_msg_atomic msg = message(&ioc, 1, dest, &target, type, op, NULL);
	const struct parts parts = { .flags = FI_INJECT };

	return operate(fid, &msg, &parts);
}

static ssize_t atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				 size_t count, struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest, uint64_t addr, uint64_t key,
				 enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_rma_ioc target = { .addr = addr, .key = key };
	const bool reads = op == FI_ATOMIC_READ;
	const struct fi_msg_atomic msg = message(reads ? resultv : iov,
						 reads ? result_count : count, dest, &target,
						 type, op, context);
	struct parts parts = own_parts(fid, FETCH);

	(void)desc;
	(void)result_desc;
	parts.result = resultv;
	parts.result_count = result_count;
	return operate(fid, &msg, &parts);
}

static ssize_t atomic_readwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
				uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	const struct fi_ioc ioc = { (void *)(uintptr_t)buf, count };
	struct fi_ioc results = { result, count };

	return atomic_readwritev(fid, &ioc, &desc, 1, &results, &result_desc, 1, dest, addr, key,
				 type, op, context);
}

static ssize_t atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   struct fi_ioc *resultv, void **result_desc,
				   size_t result_count, uint64_t flags)
{
	const struct parts parts = {
		.form = FETCH, .result = resultv, .result_count = result_count, .flags = flags,
		.report = fi_acp_reports(ep_of(fid), true, flags),
	};

	(void)result_desc;
	return operate(fid, msg, &parts);
}

static ssize_t atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				 size_t count, const struct fi_ioc *comparev, void **compare_desc,
				 size_t compare_count, struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest, uint64_t addr, uint64_t key,
				 enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_rma_ioc target = { .addr = addr, .key = key };
	const struct fi_msg_atomic msg = message(iov, count, dest, &target, type, op, context);
	struct parts parts = own_parts(fid, COMPARE);

	(void)desc;
	(void)compare_desc;
	(void)result_desc;
	parts.compare = comparev;
	parts.compare_count = compare_count;
	parts.result = resultv;
	parts.result_count = result_count;
	return operate(fid, &msg, &parts);
}

static ssize_t atomic_compwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				const void *compare, void *compare_desc, void *result,
				void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
				enum fi_datatype type, enum fi_op op, void *context)
{
	const struct fi_ioc ioc = { (void *)(uintptr_t)buf, count };
	const struct fi_ioc compares = { (void *)(uintptr_t)compare, count };
	struct fi_ioc results = { result, count };

	return atomic_compwritev(fid, &ioc, &desc, 1, &compares, &compare_desc, 1, &results,
				 &result_desc, 1, dest, addr, key, type, op, context);
}

static ssize_t atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   const struct fi_ioc *comparev, void **compare_desc,
				   size_t compare_count, struct fi_ioc *resultv,
				   void **result_desc, size_t result_count, uint64_t flags)
{
	const struct parts parts = {
		.form = COMPARE, .compare = comparev, .compare_count = compare_count,
		.result = resultv, .result_count = result_count, .flags = flags,
		.report = fi_acp_reports(ep_of(fid), true, flags),
	};

	(void)compare_desc;
	(void)result_desc;
	return operate(fid, msg, &parts);
}

static int atomic_writevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op,
			     size_t *count)
{
	(void)fid;
	return valid(BASE, type, op, count);
}

static int atomic_readwritevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op,
				 size_t *count)
{
	(void)fid;
	return valid(FETCH, type, op, count);
}

static int atomic_compwritevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op,
				 size_t *count)
{
	(void)fid;
	return valid(COMPARE, type, op, count);
}

struct fi_ops_atomic fi_acp_atomic_ops = {
	.size = sizeof(fi_acp_atomic_ops),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_readwrite,
	.readwritev = atomic_readwritev,
	.readwritemsg = atomic_readwritemsg,
	.compwrite = atomic_compwrite,
	.compwritev = atomic_compwritev,
	.compwritemsg = atomic_compwritemsg,
	.writevalid = atomic_writevalid,
	.readwritevalid = atomic_readwritevalid,
	.compwritevalid = atomic_compwritevalid,
};
