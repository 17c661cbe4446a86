/* SPDX-License-Identifier: MIT */
/*
 * Provider "acp" of libfabric: what its files share.
 *
 * fid			struct			file
 * fabric, info		fi_acp_fabric		provider.c info.c
 * domain		fi_acp_domain		domain.c
 * the job		fi_acp_job		job.c
 * operations		fi_acp_op		op.c local.c
 * address vector	fi_acp_av		av.c
 * memory region	fi_acp_mr		mr.c
 * completion queue	fi_acp_cq		cq.c
 * counter		fi_acp_cntr		cntr.c
 * event queue		fi_acp_eq		eq.c
 * endpoint		fi_acp_ep		ep.c, rma.c, notify.c, atomic.c, message.c
 *
 * A process is one rank of one ACP job: fi_acp_job, which the first domain joins and the last one
 * leaves. Its lock guards everything that several threads use: operations, CQs, counters, address
 * vectors. Functions with "lock held" in their comment want that lock.
 *
 * An operation is a struct fi_acp_op from fi_acp_op_get() until fi_acp_op_end(). Its accesses are
 * in the FIFO of their queue, since ACP completes the accesses of a queue in order. Completions are
 * found by fi_acp_progress(), which whatever reads a CQ or a counter calls first. An operation
 * holds a place in its CQ from the start: a full CQ makes operations fail with -FI_EAGAIN, and no
 * completion is lost.
 *
 * What message.c fills in: the last part of this file.
 */
#ifndef ACP_FI_H
#define ACP_FI_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "acp.h"

#pragma GCC visibility push(hidden)

#define FI_ACP_NAME	"acp"
#define FI_ACP_VERSION	FI_VERSION(1, 0)
#define FI_ACP_API	FI_VERSION(1, 17)
#define FI_ACP_PROTO	(FI_PROV_SPECIFIC | 0x616370)
#define FI_ACP_FORMAT	(FI_PROV_SPECIFIC | 0x616370)	/* of addresses: struct fi_acp_addr */

/* ---- Limits ---- */

#define FI_ACP_INJECT		256u	/* bytes that an operation can hold itself */
#define FI_ACP_BOUNCE		16384u	/* bytes of a bounce buffer */
#define FI_ACP_BOUNCES		64u
#define FI_ACP_OPS		1024u	/* operations under way, with their parts */
#define FI_ACP_IOV		8u	/* pieces of an operation */
#define FI_ACP_ATOMICS		16u	/* elements of an atomic operation */
#define FI_ACP_CQ_SIZE		1024u	/* entries of a CQ, if the caller does not say */
#define FI_ACP_EPS		64u	/* endpoints of a process */
#define FI_ACP_MIN_MULTI_RECV	64u	/* FI_OPT_MIN_MULTI_RECV, if the caller does not say */

extern struct fi_provider fi_acp_provider;

#define fi_acp_warn(system, ...)	FI_WARN(&fi_acp_provider, FI_LOG_##system, __VA_ARGS__)
#define fi_acp_info(system, ...)	FI_INFO(&fi_acp_provider, FI_LOG_##system, __VA_ARGS__)

/* ---- Addresses ---- */

#define FI_ACP_MAGIC	0x49464361u	/* "aCFI" */

/* What fi_getname() returns and fi_av_insert() takes; in the byte order of the machine. */
struct fi_acp_addr {
	uint32_t magic;
	uint32_t procs;		/* ranks of the job */
	uint32_t rank;
	uint32_t endpoint;	/* number of the endpoint in its process, from 0 */
	acp_ga_t match;		/* messages: the match list of the endpoint, or ACP_GA_NULL */
	acp_ga_t notify;	/* remote CQ data: the mailbox of the endpoint, or ACP_GA_NULL */
};

/* ---- Completion queues, counters, event queue ---- */

struct fi_acp_entry {
	struct fi_cq_tagged_entry e;	/* its first members are those of the other formats */
	fi_addr_t source;		/* or FI_ADDR_NOTAVAIL */
	size_t olen;			/* error: bytes that did not fit */
	int error;			/* 0, or FI_E* */
	int prov_errno;			/* ACPX_E*; of receives -FI_E* */
};

struct fi_acp_domain;

struct fi_acp_cq {
	struct fid_cq fid;
	struct fi_acp_domain *domain;
	enum fi_cq_format format;
	enum fi_wait_obj wait_obj;
	unsigned int refs;		/* endpoints */
	bool signaled;			/* fi_cq_signal() */
	bool threshold;			/* FI_CQ_COND_THRESHOLD */
	/* FI_WAIT_FD: an epoll of the device, a timer, an eventfd for what others find; or -1 */
	int wait_fd, own_fd;
	/* A ring: written - read <= size, and written - read + reserved <= size. */
	struct fi_acp_entry *ring;
	size_t size;			/* a power of two */
	uint64_t written, read;
	size_t reserved;		/* places of operations under way */
};

struct fi_acp_cntr {
	struct fid_cntr fid;
	struct fi_acp_domain *domain;
	enum fi_wait_obj wait_obj;
	unsigned int refs;		/* endpoints */
	size_t pending;			/* operations under way */
	uint64_t value, errors;
};

struct fi_acp_eq;			/* eq.c */

/* Take a place in a CQ; NULL: no CQ. False: it is full, return -FI_EAGAIN. Lock held. */
bool fi_acp_cq_reserve(struct fi_acp_cq *cq);
bool fi_acp_cq_full(const struct fi_acp_cq *cq);
void fi_acp_cq_unreserve(struct fi_acp_cq *cq);
/* Write a completion or an error to a place that was taken; NULL: no CQ. Lock held. */
void fi_acp_cq_write(struct fi_acp_cq *cq, const struct fi_acp_entry *entry);
/* Count a completion or an error; NULL: no counter. Lock held. */
void fi_acp_cntr_count(struct fi_acp_cntr *cntr, bool error);

/* ---- Fabric, domain, address vector, memory region ---- */

struct fi_acp_fabric {
	struct fid_fabric fid;
	unsigned int refs;		/* domains and event queues */
};

struct fi_acp_domain {
	struct fid_domain fid;
	struct fi_acp_fabric *fabric;
	int mr_mode;			/* FI_MR_VIRT_ADDR: addresses are virtual, else offsets */
	unsigned int refs;		/* what was opened in it */
};

struct fi_acp_av {
	struct fid_av fid;
	struct fi_acp_domain *domain;
	struct fi_acp_eq *eq;
	unsigned int refs;		/* endpoints */
	struct fi_acp_addr *table;	/* fi_addr_t is an index; magic 0: not used */
	size_t count, room;		/* room: a power of two, or 0 */
	/* By hash of rank and endpoint: index + 1 of the first, and behind each one, the next. */
	uint32_t *heads, *links;
	fi_addr_t first_free;		/* none is free below it */
	bool events;			/* insertions are reported to eq */
};

/* The address behind a fi_addr_t, or NULL. Lock held. */
static inline const struct fi_acp_addr *fi_acp_peer(const struct fi_acp_av *av, fi_addr_t addr)
{
	return av && addr < av->count && av->table[addr].magic ? &av->table[addr] : NULL;
}

/* The fi_addr_t of an endpoint, or FI_ADDR_NOTAVAIL. Lock held. */
fi_addr_t fi_acp_source(const struct fi_acp_av *av, uint32_t rank, uint32_t endpoint);

/*
 * Global address = key + address of the operation: key is the global address of the first byte, or
 * with FI_MR_VIRT_ADDR, this minus its virtual address.
 */
struct fi_acp_mr {
	struct fid_mr fid;		/* fid.mem_desc is this structure */
	struct fi_acp_domain *domain;
	acp_atkey_t atkey;		/* ACP_ATKEY_NULL: of no bytes */
	const char *base;
	size_t size;
	acp_ga_t ga;			/* of base */
	uint64_t access;
};

/* ---- Operations ---- */

struct fi_acp_ep;
struct fi_acp_queue;
struct fi_acp_op;

/* What an operation does with its local memory. */
enum fi_acp_use {
	FI_ACP_SOURCE,			/* its bytes are sent */
	FI_ACP_TARGET,			/* its bytes are written */
};

struct fi_acp_op {
	struct fi_acp_op *next;		/* in the FIFO of the queue, or free */
	struct fi_acp_op *parent;	/* a part of this operation; or NULL */
	unsigned int parts;		/* accesses that have not ended, if it has parts */
	acp_handle_t handle;
	int status;			/* of an operation with parts: the first ACPX_E* */

	struct fi_acp_cq *cq;		/* has a place reserved; or NULL */
	struct fi_acp_cntr *cntr;	/* or NULL */
	bool report;			/* write a completion on success, too */
	struct fi_cq_tagged_entry entry;	/* the completion: context, flags, ... */

	/* Memory of the operation, released when it ends. */
	char *scratch;			/* FI_ACP_INJECT bytes, aligned, registered */
	acp_ga_t scratch_ga;
	int bounce;			/* number of a bounce buffer, or -1 */
	acp_atkey_t registered;		/* for this operation only, or ACP_ATKEY_NULL */
	void *to;			/* on success, copy "to_size" bytes here; or NULL */
	const void *from;
	size_t to_size;

	/* Called when it ends, before it is reported; may change the entry; or NULL. Lock held. */
	void (*ended)(struct fi_acp_op *op, int status);
	void *private;			/* of the owner of ended() */
};

/* A queue of accesses: they complete in order. The first one is that of the process. */
struct fi_acp_queue {
	acpx_context_t context;		/* NULL: the queue of the process */
	struct fi_acp_op *first, **last;	/* operations under way */
	struct fi_acp_queue *next;
};

struct fi_acp_job {
	pthread_mutex_t lock;
	unsigned int domains;		/* 0: the process is no rank */
	uint32_t rank, procs;
	struct fi_acp_queue queue;	/* of the process; more of them behind it */
	struct fi_acp_op *ops, *free_ops;
	unsigned int op_count, free_count;
	unsigned int registrations;	/* of operations under way */
	char *memory;			/* scratch of all operations, then bounce buffers */
	size_t memory_size;
	acp_atkey_t memory_key;
	uint64_t free_bounces;		/* a bit per bounce buffer */
	struct fi_acp_ep *eps[FI_ACP_EPS];	/* enabled endpoints by number */
	uint32_t ep_end;		/* more than the largest number that was used */
	int wake_fd;			/* eventfd: a completion while somebody sleeps */
	int timer_fd;			/* for programs that poll, of FI_WAIT_FD */
	unsigned int sleepers;
	bool joined;			/* by us; else the program was a rank before */
	int error_mode;			/* of libacp before */
};

extern struct fi_acp_job fi_acp_job;

static inline void fi_acp_lock(void)
{
	pthread_mutex_lock(&fi_acp_job.lock);
}

static inline void fi_acp_unlock(void)
{
	pthread_mutex_unlock(&fi_acp_job.lock);
}

/* Join the job, or use it once more; leave it. job.c. Return 0 or -FI_E*. */
int fi_acp_job_join(void);
int fi_acp_job_leave(void);

/**
 * fi_acp_op_get() - begin an operation
 * @cq: of the completion, or NULL
 * @cntr: to count it, or NULL
 * @entry: context, flags of the completion (FI_RMA | FI_WRITE ...), len, buf, data, tag
 * @report: write a completion to the CQ on success; errors are always written
 *
 * Reserves a place in the CQ. Lock held.
 *
 * Return: the operation, or NULL: return -FI_EAGAIN.
 */
struct fi_acp_op *fi_acp_op_get(struct fi_acp_cq *cq, struct fi_acp_cntr *cntr,
				const struct fi_cq_tagged_entry *entry, bool report);

/* Begin a part of an operation: an access of its own, with local memory. NULL: -FI_EAGAIN. */
struct fi_acp_op *fi_acp_op_part(struct fi_acp_op *parent);

/**
 * fi_acp_op_local() - get the global address of local memory
 * @op: the operation or part, for which this has not been called before
 * @buf: the memory
 * @size: bytes
 * @desc: of fi_mr_desc(), or NULL
 * @use: FI_ACP_SOURCE or FI_ACP_TARGET
 * @inject: the caller may use @buf again at once; size <= FI_ACP_INJECT
 * @ga: receives the address
 *
 * In this order: the region of @desc; the operation's own memory or a bounce buffer, with a copy;
 * a registration of these bytes until the operation ends. Lock held.
 *
 * Return: 0, -FI_EAGAIN, or -FI_E*. In case of an error, call fi_acp_op_drop().
 */
int fi_acp_op_local(struct fi_acp_op *op, const void *buf, size_t size, void *desc,
		    enum fi_acp_use use, bool inject, acp_ga_t *ga);

/* The operation or part is under way as this access of the queue. Lock held. */
void fi_acp_op_start(struct fi_acp_op *op, struct fi_acp_queue *queue, acp_handle_t handle);

/* An operation with parts has got all of them: it ends with the last one. Lock held. */
void fi_acp_op_whole(struct fi_acp_op *op);

/* End an operation that is not under way: completion, or error of this ACPX_E*. Lock held. */
void fi_acp_op_end(struct fi_acp_op *op, int status);

/* Forget an operation that has not started (and has no parts under way). Lock held. */
void fi_acp_op_drop(struct fi_acp_op *op);

/* Find what has completed, and write it to CQs and counters. Lock held. */
void fi_acp_progress(void);

/*
 * Sleep until something may have completed, at most until @end (fi_acp_now(), in ns). Lock held,
 * but not while it sleeps.
 */
void fi_acp_sleep(uint64_t end);
uint64_t fi_acp_now(void);

/* The end of a wait of so many milliseconds; < 0: never. */
uint64_t fi_acp_end(int timeout_ms);

/* For a program that is going to poll the descriptor. True: look again instead. Lock held. */
bool fi_acp_arm(void);

/* ACPX_E* as FI_E*; 0 is 0. */
int fi_acp_errno(int status);
/* -errno as -FI_E*: they are the same; 0 becomes -FI_EOTHER. */
int fi_acp_failed(int error);

/* ---- Endpoint ---- */

struct fi_acp_ep {
	struct fid_ep fid;
	struct fi_acp_domain *domain;
	struct fi_acp_av *av;
	struct fi_acp_cq *tx_cq, *rx_cq;
	bool tx_selective, rx_selective;	/* completions only with FI_COMPLETION */
	/* Counters: FI_SEND, FI_RECV, FI_READ, FI_WRITE */
	struct fi_acp_cntr *send_cntr, *recv_cntr, *read_cntr, *write_cntr;
	struct fi_acp_eq *eq;
	uint64_t caps;
	uint64_t tag_format;		/* mem_tag_format */
	uint64_t tx_flags, rx_flags;	/* default op_flags: FI_COMPLETION, ... */
	size_t min_multi_recv;		/* FI_OPT_MIN_MULTI_RECV */
	bool enabled;
	acp_handle_t fence;		/* later accesses wait for this one; or ACP_HANDLE_NULL */
	struct fi_acp_addr addr;	/* complete when enabled */
	acpx_mailbox_t notify;		/* receives remote CQ data; or NULL */
	struct fi_acp_messages *messages;	/* of message.c; or NULL */
};

/*
 * True if an operation with these flags reports its success: FI_COMPLETION among them, or no
 * selective completion.
 */
static inline bool fi_acp_reports(const struct fi_acp_ep *ep, bool tx, uint64_t flags)
{
	return (flags & FI_COMPLETION) || !(tx ? ep->tx_selective : ep->rx_selective);
}

/*
 * What an access with these flags waits for: with FI_FENCE for all before it, and then those behind
 * it do so, too. Lock held.
 */
static inline acp_handle_t fi_acp_order(struct fi_acp_ep *ep, uint64_t flags)
{
	if (flags & FI_FENCE)
		return (acp_handle_t)ACP_HANDLE_ALL;
	if (ep->fence != (acp_handle_t)ACP_HANDLE_NULL && !acp_inquire(ep->fence))
		ep->fence = (acp_handle_t)ACP_HANDLE_NULL;
	return ep->fence;
}

extern struct fi_ops_rma fi_acp_rma_ops;
extern struct fi_ops_atomic fi_acp_atomic_ops;

/* Which atomic operations there are; flags: 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC. */
int fi_acp_atomic_query(enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr,
			uint64_t flags);

/* Remote CQ data: open and close the mailbox, report what has come. notify.c. Lock held. */
void fi_acp_notify_open(struct fi_acp_ep *ep);
void fi_acp_notify_close(struct fi_acp_ep *ep);
void fi_acp_notify_progress(struct fi_acp_ep *ep);

/* ---- What opens the objects ---- */

int fi_acp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int fi_acp_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		       void *context);
int fi_acp_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		   void *context);
int fi_acp_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		   void *context);
int fi_acp_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		   void *context);
int fi_acp_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		     void *context);
int fi_acp_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		   void *context);
extern struct fi_ops_mr fi_acp_mr_ops;

/* Post an event of this fid; NULL: no event queue. Returns 0 or -FI_E*. Lock held. */
int fi_acp_eq_post(struct fi_acp_eq *eq, uint32_t type, struct fid *fid, void *context,
		   uint64_t data);
/* 0: an event can be posted; or -FI_E*. Lock held. */
int fi_acp_eq_room(const struct fi_acp_eq *eq);
struct fi_acp_eq *fi_acp_eq_of(struct fid *fid);
/* Count one more user of it, or one less; NULL: none. Lock held. */
void fi_acp_eq_hold(struct fi_acp_eq *eq, int change);

/*
 * Wait until no operation is under way that completes at what is to be closed, at the latest after
 * ACP_TIMEOUT. 0, or -FI_EBUSY: an endpoint uses it. Lock held; it is released meanwhile.
 */
int fi_acp_drain(const unsigned int *refs, const size_t *pending);

/* Copy a text to a buffer of len bytes, if there is one, and return it. */
const char *fi_acp_text(const char *text, char *buf, size_t len);

/* For the tables of libfabric: what is not offered. */
int fi_acp_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int fi_acp_no_control(struct fid *fid, int command, void *arg);
int fi_acp_no_ops(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

/* ---- Messages: message.c fills this in ---- */

/*
 * The capabilities that info.c adds to those of RMA: FI_MSG | FI_TAGGED | FI_SEND | FI_RECV ... as
 * far as they work; 0 in the skeleton. Also the order of messages (FI_ORDER_SAS) and what else
 * info.c asks.
 */
extern const uint64_t fi_acp_message_caps;
extern const uint64_t fi_acp_message_order;
extern const uint64_t fi_acp_message_tags;	/* mem_tag_format */
extern const uint64_t fi_acp_message_tags_data;	/* with room for remote CQ data */

/* Their tables; ep.c sets fid.msg and fid.tagged to them. */
extern struct fi_ops_msg fi_acp_msg_ops;
extern struct fi_ops_tagged fi_acp_tagged_ops;

/*
 * Called by fi_enable() when rank, number and CQs of the endpoint are set, if caps has FI_MSG or
 * FI_TAGGED: creates the match list, sets ep->messages and ep->addr.match. Returns 0 or -FI_E*.
 * Lock held.
 */
int fi_acp_messages_open(struct fi_acp_ep *ep);

/* Called by fi_close() of the endpoint: releases all of it; also without open. Lock held. */
void fi_acp_messages_close(struct fi_acp_ep *ep);

/*
 * Called by fi_acp_progress() for each enabled endpoint with ep->messages: looks for receives that
 * have ended and writes them to ep->rx_cq (fi_acp_cq_reserve() first: if it is full, leave them for
 * later), counts them in ep->recv_cntr. Must not call fi_acp_progress(). Lock held.
 */
void fi_acp_messages_progress(struct fi_acp_ep *ep);

/* fi_cancel(): end the receive with this context. Returns 0 or -FI_ENOENT. Lock held. */
int fi_acp_messages_cancel(struct fi_acp_ep *ep, void *context);

/*
 * fi_cq_sread() is about to sleep in poll(acpx_event_fd(), POLLIN): arrange to be woken for the
 * receives of this endpoint (acpx_receive_arm). True: do not sleep, look again. Lock held.
 */
bool fi_acp_messages_arm(struct fi_acp_ep *ep);

#pragma GCC visibility pop

#endif /* ACP_FI_H */
