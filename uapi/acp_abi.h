/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT */
/*
 * /dev/acp: what a process and the kernel module say to each other.
 *
 * A process opens the device, joins a job as one rank (ACP_IOC_JOIN), maps
 * its queues, and from then on works by writing entries into a ring.  One
 * open file is one rank; closing it leaves the job and releases everything.
 * The file belongs to the process that joined: a forked child that inherits
 * the descriptor gets -EPERM from every call, and no mapping.
 *
 * Rules of the ABI: every structure starts with its own size, unknown sizes,
 * flags, and reserved fields that are not zero are refused with -EINVAL; all
 * numbers are in host byte order; pointers travel as __u64.
 *
 * Errors every ioctl can return, besides those named at its structure:
 *	-EFAULT		the argument cannot be read or written
 *	-EINVAL		size, flag, reserved field or value out of range
 *	-ENOTTY		no such ioctl
 *	-ENOTCONN	the file has not joined a job, nor is it attached to one that has;
 *			or that one was closed
 *	-EPERM		called by another process than the one that joined
 *	-ENODEV		the network namespace of the job is going away
 *	-ECANCELED	the job was aborted
 */
#ifndef ACP_ABI_H
#define ACP_ABI_H

#include <linux/types.h>
#include <linux/ioctl.h>

#define ACP_ABI_VERSION		1
#define ACP_DEVICE		"/dev/acp"
#define ACP_PORT_DEFAULT	16707

#define ACP_DEPTH_MIN		64
#define ACP_DEPTH_DEFAULT	4096
#define ACP_DEPTH_MAX		65536
#define ACP_RUNS_MAX		(1u << 20)	/* of either kind of run */
#define ACP_COPY_MAX		(1ULL << 62)	/* bytes of one copy */
#define ACP_TICKET_BITS		48		/* above these is the number of the queue */
#define ACP_QUEUES_MAX		256		/* further queues of a rank at a time */
#define ACP_QUEUE_LAST		16383		/* ... and in its life */

/*
 * Submission ring: one page of 64 bytes that the user writes, then entries.
 *
 * Position p (counted from 1, never wraps in practice) is stored in
 * entry[p & (depth - 1)] and is the ticket of that command.  tail is the
 * last ticket written; ticket 1 is complete from the start, so that tail
 * and completed are both 1 in a queue that was never used.
 *
 * The tickets of queue number q of a rank (ACP_IOC_ATTACH; the one that comes
 * with joining is 0) count from q << ACP_TICKET_BITS on, in all that is said
 * here: no two commands of a rank have the same.  There are 2^48 - 2 commands
 * in a queue; what comes after these fails with ACP_ST_OP.
 *
 *  user:   fill entry[tail + 1]				needs (D)
 *  user:   store-release tail					(A)
 *  kernel: load-acquire tail, copy the entry once		(B)
 *  kernel: status, then store-release completed		(C)
 *  user:   load-acquire completed, then read status		(D)
 *  user:   after (A) a full fence, then read flags: if ACP_CQ_NEED_WAKEUP
 *	    is set, nobody looks at the ring until ACP_IOC_DOORBELL, or
 *	    fdatasync() of the descriptor, which is quicker.  The kernel sets
 *	    the flag, a full fence, then reads tail once more.
 *	    While it is clear the kernel looks by itself, all the time or (one
 *	    processor) by a timer: then a command may start some ten us later,
 *	    unless ACP_IOC_WAIT asks for a look.
 */
struct acp_sq {
	__u64 tail;
	__u64 reserved[7];
};

/* Operations.  src is the word operated on, dst receives its former value. */
enum acp_op {
	ACP_OP_COPY	= 1,	/* dst := src, size bytes */
	ACP_OP_CAS4	= 2,	/* if src == a then src := b */
	ACP_OP_CAS8	= 3,
	ACP_OP_SWAP4	= 4,	/* src := a */
	ACP_OP_SWAP8	= 5,
	ACP_OP_ADD4	= 6,
	ACP_OP_ADD8	= 7,
	ACP_OP_XOR4	= 8,
	ACP_OP_XOR8	= 9,
	ACP_OP_OR4	= 10,
	ACP_OP_OR8	= 11,
	ACP_OP_AND4	= 12,
	ACP_OP_AND8	= 13,
	ACP_OP_STRIDED	= 14,	/* blocks of dst := blocks of src, see ACP_BLOCKS */
	ACP_OP_COPY_SET	= 15,	/* a copy, then the 8 bytes at address a := b */
	ACP_OP_COPY_ADD	= 16,	/* a copy, then the 8 bytes at address a += b */
	ACP_OP_END
};

/*
 * ACP_OP_STRIDED: block i < count goes from src + i * b to dst + i * a, where a
 * and b are signed, and blocks do not overlap.  size is ACP_BLOCKS(bytes of a
 * block, count); no blocks, or empty ones, are a copy of nothing.
 *
 * ACP_OP_COPY_SET, COPY_ADD: address a is on dst's node, aligned, and allows
 * atomics.  It changes, atomically, when all of the copy is in memory; it does
 * not if any of it failed.
 */
#define ACP_BLOCKS(bytes, count)	((__u64)(count) << 32 | (__u32)(bytes))

/* acp_sqe.flags */
#define ACP_SQE_CONT	1u	/* order: continue the previous command, "order" = that ticket */
#define ACP_SQE_MORE	2u	/* the next command ends with this one's status if this one fails */
#define ACP_SQE_FLAGS	(ACP_SQE_CONT | ACP_SQE_MORE)

/*
 * One command.  It may start when all commands up to ticket "order" are
 * complete (0: at once); it fails with ACP_ST_ORDER, without any effect,
 * when one of those after "seen" failed.
 */
struct acp_sqe {
	__u8  op;		/* enum acp_op */
	__u8  flags;		/* ACP_SQE_ */
	__u8  reserved[6];	/* 0 */
	__u64 dst, src;		/* global addresses */
	__u64 size;		/* of copies: bytes, or ACP_BLOCKS; else 0 */
	__u64 order;		/* ticket, less than the command's own */
	__u64 seen;		/* "completed" when the caller issued this, or a later ticket */
	__u64 a, b;		/* operands; 0 where there are none */
};

/* Completion area, written by the kernel only, mapped read-only. */
struct acp_cq {
	__u64 completed;	/* all commands up to this ticket are complete */
	__u64 failed;		/* how many of them failed */
	__u32 flags;		/* ACP_CQ_ */
	__u32 reserved[11];
	__u8  status[];		/* ACP_ST_ of ticket t at [t & (depth - 1)], for depth tickets */
};

#define ACP_CQ_NEED_WAKEUP	1u	/* ring the doorbell after submitting */
#define ACP_CQ_ABORTED		2u	/* job or rank has ended; all commands fail */

/* How a command ended.  Only ACP_ST_OK promises an effect. */
enum acp_status {
	ACP_ST_OK	= 0,
	ACP_ST_OP	= 1,	/* unknown operation, flag, size or order in the entry */
	ACP_ST_GA	= 2,	/* not an address of any rank, or of an unused color */
	ACP_ST_STAG	= 3,	/* no such region: never registered, or no longer */
	ACP_ST_RANGE	= 4,	/* reaches beyond its region */
	ACP_ST_ACCESS	= 5,	/* the region does not grant this */
	ACP_ST_ALIGN	= 6,	/* an atomic that is not aligned to its size */
	ACP_ST_RANK	= 7,	/* that rank is not there (any more) */
	ACP_ST_NOMEM	= 8,	/* out of memory, or the job has as many flows as it may */
	ACP_ST_TIMEOUT	= 9,	/* a peer has been silent too long */
	ACP_ST_PEER	= 10,	/* a peer was restarted, or runs another set-up of the job */
	ACP_ST_ROUTE	= 11,	/* no way to the peer */
	ACP_ST_ORDER	= 12,	/* a command this one waited for failed */
	ACP_ST_ABORT	= 13,	/* the job or the rank was ended */
	ACP_ST_END
};

/*
 * Rank -> node, run-length coded.  Rank first + i, i < count, has node number
 * node + (i / block) % nodes.  Runs are sorted, cover every rank once, and
 * leave no node without a rank.
 */
struct acp_rank_run {
	__u32 first, count;
	__u32 node, nodes;
	__u32 block, reserved;
};

/*
 * Node -> address: node first + i, i < count, has address addr + i (counted
 * in network order) on the given color.  Each node has an address of each
 * color.  Runs are sorted by (color, first); one family in a job.
 */
struct acp_node_run {
	__u32 first, count;
	__u16 color;
	__u16 family;		/* AF_INET: addr[0..3]; AF_INET6 */
	__u32 reserved;
	__u8  addr[16];
};

#define ACP_INTEGRITY_UDP	0	/* payloads over 128 bytes: UDP checksum */
#define ACP_INTEGRITY_CRC32C	1	/* ... and crc32c in the authenticated header */
#define ACP_INTEGRITY_AEAD	2	/* all is encrypted: ChaCha20-Poly1305 */

/* Limits that an administrator sets, sysctls net.acp: which one -EDQUOT is about. */
enum acp_limit {
	ACP_LIMIT_JOBS		= 1,	/* jobs: of the network namespace */
	ACP_LIMIT_USER_JOBS	= 2,	/* user_jobs */
	ACP_LIMIT_USER_RANKS	= 3,	/* user_ranks */
	ACP_LIMIT_USER_REGIONS	= 4,	/* user_regions: registered */
	ACP_LIMIT_USER_MEMORY	= 5,	/* user_memory: pinned or allocated */
	ACP_LIMIT_DEPTH		= 6,	/* depth: of a ring */
	ACP_LIMIT_JOB_PEERS	= 7,	/* job_peers: commands beyond it end with ACP_ST_NOMEM */
	ACP_LIMIT_END
};

/*
 * ACP_IOC_JOIN: become a rank of a job.  Ranks on one node must agree on
 * everything up to "key" but for rank and sizes.
 *	-EALREADY	this file has joined
 *	-EEXIST		the rank is taken on this node
 *	-ESTALE		the rank has left, and others of this generation are still here
 *	-EADDRNOTAVAIL	the rank's node has no such local address here
 *	-EADDRINUSE	the port is taken by somebody else
 *	-EACCES		another key or user holds this job on this node
 *	-EPROTO		version, or a value that differs from the job's on this node
 *	-EAFNOSUPPORT	an IPv6 job on a kernel without IPv6
 *	-ENOMEM		no memory, or RLIMIT_MEMLOCK reached by starter and heap
 *	-EDQUOT		a limit of the administrator is reached; "node" says which
 *	-EOPNOTSUPP	the administrator lets no ranks join, here or anywhere; or integrity
 *			is aead, and the kernel has no rfc7539(chacha20,poly1305)
 *	-EINTR		a signal came while that was looked for; call again
 */
struct acp_join {
	__u32 size;		/* sizeof(struct acp_join) */
	__u32 version;		/* ACP_ABI_VERSION */
	__u32 rank, nprocs;	/* 0 .. nprocs - 1; 1 .. ACP_RANKS_MAX */
	__u32 job;		/* id, not 0 */
	__u32 generation;	/* 0, 1 .. 65535: re-initialisations of the same job */
	__u32 nodes, colors;
	__u32 port;		/* UDP, 1 .. 65535 */
	__u32 integrity;	/* ACP_INTEGRITY_ */
	__u32 timeout_ms;	/* silence until a peer counts as failed: 10 .. 3600000 */
	__u32 open_timeout_ms;	/* the same while it has not answered yet */
	__u32 rank_runs, node_runs;	/* how many */
	__u64 rank_run_ptr;	/* struct acp_rank_run [] */
	__u64 node_run_ptr;	/* struct acp_node_run [] */
	__u8  key[16];
	__u64 starter_size;	/* bytes; starter and heap memory of this rank, zeroed */
	__u64 heap_size;
	__u32 depth;		/* of the ring: a power of two, ACP_DEPTH_MIN .. MAX */
	__u32 flags;		/* 0 */
	/* out */
	__u32 node;		/* the rank's node; with -EDQUOT an ACP_LIMIT_ */
	__u32 local_ranks;	/* ranks the map places on this node */
	__u64 sq_bytes, cq_bytes;	/* sizes to map */
};

#define ACP_ACCESS_READ		1u	/* other ranks may read */
#define ACP_ACCESS_WRITE	2u	/* ... write */
#define ACP_ACCESS_ATOMIC	4u	/* ... do atomics */
#define ACP_ACCESS_RO		8u	/* pinned for reading: no WRITE, ATOMIC, owner's writes */
#define ACP_ACCESS_ALL		(ACP_ACCESS_READ | ACP_ACCESS_WRITE | ACP_ACCESS_ATOMIC)

/*
 * ACP_IOC_REG: pin memory and name it.  A range that lies within a region of
 * the same color and access, still mapped, gets that region's key again; such
 * a key must be unregistered as often as it was registered.
 *	-EFAULT		unmapped, protected or not pinnable memory in the range
 *	-ENOMEM		no memory, or RLIMIT_MEMLOCK reached
 *	-EDQUOT		a limit of the administrator is reached; "key" says which
 *	-ENOSPC		all STags of the rank are in use
 *	-EOVERFLOW	longer than the offset field of a GA can say
 */
struct acp_reg {
	__u32 size;		/* sizeof(struct acp_reg) */
	__u32 color;
	__u32 access;		/* ACP_ACCESS_ */
	__u32 reserved;
	__u64 addr, length;
	/* out */
	__u64 key;		/* GA of offset 0; with -EDQUOT an ACP_LIMIT_ */
	__u64 start;		/* address that offset 0 stands for (page aligned) */
	__u64 base, end;	/* the region is [base, end) */
};

/*
 * ACP_IOC_UNREG: give one registration back; with the last one the region
 * ends, and when the call returns no byte of it can change any more.  Never
 * waits for the network.
 *	-ENOENT		no such key
 */
struct acp_unreg {
	__u32 size, reserved;
	__u64 key;
	/* out */
	__u32 left;		/* registrations that still hold the region */
	__u32 reserved2;
};

/*
 * ACP_IOC_WAIT: look at the ring, then sleep until "ticket" is complete.
 *	-EINTR		a signal came; call again
 *	-ETIMEDOUT	not complete after timeout_ns (0: do not sleep)
 * With ACP_WAIT_ARM it does not sleep: poll() reports POLLIN from when
 * "ticket" is complete.
 */
struct acp_wait {
	__u32 size;
	__u32 flags;		/* ACP_WAIT_ */
	__u64 ticket;
	__u64 timeout_ns;	/* ~0: for ever */
};

#define ACP_WAIT_ARM	1u

/*
 * ACP_IOC_SYNC: barrier over all ranks of the job; one call a rank at a time.
 *	-EINTR		a signal came; call again, the arrival counts once
 *	-ETIMEDOUT	not all came within timeout_ns
 *	-EBUSY		another thread of this rank is in the barrier
 *	-EPIPE		a rank left the job: no barrier can complete any more
 *	-EPROTO		"node" runs the job with another number of ranks, placement,
 *			nodes, colors or integrity: no barrier can complete.  Only
 *			before the first one has.
 * A rank that leaves without having passed a barrier with ACP_SYNC_FINAL
 * breaks the barriers of all others, so that nobody waits for the dead.
 */
struct acp_sync {
	__u32 size;
	__u32 flags;		/* ACP_SYNC_ */
	__u64 timeout_ns;	/* ~0: for ever */
	/* out, with -EPROTO */
	__u32 node;		/* it differs from the caller's */
	__u32 reserved;		/* 0 */
};

#define ACP_SYNC_FINAL	1u	/* the caller leaves the job after this one */

/*
 * ACP_IOC_PEER: about a rank of the job.
 *	-ESRCH		it is not on this node, or not (any more) there
 */
struct acp_peer_info {
	__u32 size;
	__u32 rank;
	/* out */
	__u64 starter_size, heap_size;
};

enum acp_rank_states {
	ACP_RANK_UNKNOWN = 0,	/* its node was not spoken to, or it has not come yet */
	ACP_RANK_UP	= 1,	/* when its node was last heard of */
	ACP_RANK_DOWN	= 2,	/* it left, or its node is silent or out of reach */
	ACP_RANK_BACK	= 3,	/* its node is there again, after it was lost or restarted */
};

/* ACP_IOC_STATE: what this node knows of a rank of the job; nobody is asked. */
struct acp_rank_state {
	__u32 size;
	__u32 rank;
	/* out */
	__u32 state;		/* ACP_RANK_ */
	__u32 status;		/* ACP_ST_ that an access would end with, when it is DOWN */
};

enum acp_event_type {
	ACP_EVENT_DOWN	= 1,	/* "node" is lost on "color", with "status" as the reason */
	ACP_EVENT_UP	= 2,	/* it is there again; what was under way is not */
	ACP_EVENT_LEFT	= 3,	/* "rank" of "node" left without a final barrier */
	ACP_EVENT_BROKEN = 4,	/* no barrier will complete any more */
};

/*
 * ACP_IOC_EVENT: what has happened to others since the caller joined, one at a
 * time.  poll() reports POLLPRI while there is something to read.
 *	-EAGAIN		nothing new
 */
struct acp_event {
	__u32 size;
	/* out */
	__u32 missed;		/* that were not read in time, before this one */
	__u8  type;		/* ACP_EVENT_ */
	__u8  status;
	__u8  color;
	__u8  reserved;
	__u32 node, rank;
};

/* ACP_IOC_ABORT: end the job on all nodes; every call and command fails. */

/*
 * Who sleeps until others have changed words of this rank's memory; at
 * ACP_WATCH_OFFSET of its library page, so that ranks of the node, who write
 * there without the kernel, see it.  A line is 64 bytes; those of one number
 * share a counter.
 *
 *  waiter: lines[] of its words + 1, once; then again and again
 *	    read wakes, armed := 1, full fence, look at the words, and if it
 *	    has to wait longer ACP_IOC_WATCH.  In this order: if it is woken,
 *	    and so disarmed, before it sleeps, it does not sleep
 *  writer: writes, full fence, reads armed: if it is set, and one of lines[]
 *	    that was written to is not 0, ACP_IOC_WAKE
 *  kernel: armed := 0, wakes + 1, wakes all who sleep; without being asked
 *	    after what it has written itself, and when a command of the rank
 *	    failed, a rank of the node left, or the job ended
 *
 * The words do no harm whatever somebody writes there: waits end too early or
 * too late.
 */
#define ACP_WATCH_LINES		64
#define ACP_WATCH_OFFSET	3824
#define ACP_WATCH_LINE(address)	(((address) >> 6) % ACP_WATCH_LINES)

struct acp_watch {
	__u64 wakes;
	__u32 armed;
	__u32 reserved;
	__u32 lines[ACP_WATCH_LINES];
};

/*
 * ACP_IOC_WATCH: sleep until "wakes" of the caller's acp_watch is another.
 *	-EINTR		a signal came; call again
 *	-ETIMEDOUT	it is still the same after timeout_ns
 */
struct acp_watch_wait {
	__u32 size;
	__u32 flags;		/* 0 */
	__u64 wakes;		/* as it was before "armed" was set */
	__u64 timeout_ns;	/* ~0: for ever */
};

/*
 * ACP_IOC_WAKE: words of "rank", which is on this node, may have changed.
 *	-ESRCH		it is not on this node, or not (any more) there
 */
struct acp_wake {
	__u32 size;
	__u32 rank;
};

/*
 * ACP_IOC_ATTACH: the file becomes one more queue of a rank of the calling
 * process, for a thread that wants to submit and to wait beside others: rings
 * of its own (mmap, doorbell, poll, ACP_IOC_WAIT), on the same memory, counted
 * for the same user.  Everything else is the business of the rank's own file,
 * here it is -EOPNOTSUPP (mmap of anything but the rings: -EINVAL).  "order"
 * and "seen" of an entry are tickets of the same queue.
 *
 * Closing it ends commands that are under way there, their effects may still
 * come.  When the rank's own file is closed they end with ACP_ST_ABORT.
 *
 *	-EALREADY	this file has joined, or is attached already
 *	-EBADF		"fd" is no open file
 *	-EINVAL		it is no file of this device, or one that is attached itself
 *	-EXDEV		opened in another network namespace than the rank's file
 *	-ENOSPC		the rank has ACP_QUEUES_MAX of them, or has had ACP_QUEUE_LAST
 *	-ENOMEM		no memory
 *	-EDQUOT		a limit of the administrator is reached; "queue" says which
 */
struct acp_attach {
	__u32 size;		/* sizeof(struct acp_attach) */
	__s32 fd;		/* of the file that joined */
	__u32 depth;		/* of the ring: a power of two, ACP_DEPTH_MIN .. MAX */
	__u32 flags;		/* 0 */
	__u32 reserved;		/* 0 */
	/* out */
	__u32 queue;		/* its number, 1 .. ACP_QUEUE_LAST; with -EDQUOT an ACP_LIMIT_ */
	__u64 first;		/* ticket that is complete from the start: tail and completed */
	__u64 sq_bytes, cq_bytes;	/* sizes to map */
};

#define ACP_IOC_MAGIC		0xAC
#define ACP_IOC_JOIN		_IOWR(ACP_IOC_MAGIC, 0, struct acp_join)
#define ACP_IOC_REG		_IOWR(ACP_IOC_MAGIC, 1, struct acp_reg)
#define ACP_IOC_UNREG		_IOWR(ACP_IOC_MAGIC, 2, struct acp_unreg)
#define ACP_IOC_DOORBELL	_IO(ACP_IOC_MAGIC, 3)
#define ACP_IOC_WAIT		_IOW(ACP_IOC_MAGIC, 4, struct acp_wait)
#define ACP_IOC_SYNC		_IOWR(ACP_IOC_MAGIC, 5, struct acp_sync)
#define ACP_IOC_PEER		_IOWR(ACP_IOC_MAGIC, 6, struct acp_peer_info)
#define ACP_IOC_ABORT		_IO(ACP_IOC_MAGIC, 7)
#define ACP_IOC_STATE		_IOWR(ACP_IOC_MAGIC, 8, struct acp_rank_state)
#define ACP_IOC_EVENT		_IOWR(ACP_IOC_MAGIC, 9, struct acp_event)
#define ACP_IOC_WATCH		_IOW(ACP_IOC_MAGIC, 10, struct acp_watch_wait)
#define ACP_IOC_WAKE		_IOW(ACP_IOC_MAGIC, 11, struct acp_wake)
#define ACP_IOC_ATTACH		_IOWR(ACP_IOC_MAGIC, 12, struct acp_attach)

/*
 * mmap: offset = ACP_MAP(kind, rank), length up to the size of the thing,
 * MAP_SHARED, never PROT_EXEC.  Not inherited by fork, cannot grow.
 *	-EINVAL		kind, offset, length or flags
 *	-EACCES		writing to the completion area, or executing anything
 *	-ESRCH		that rank is not on this node
 */
#define ACP_MAP(kind, rank)	(((__u64)(kind) << 48) | ((__u64)(rank) << 16))
enum {
	ACP_MAP_SQ	= 0,	/* rank 0: the caller's, whatever its rank */
	ACP_MAP_CQ	= 1,	/* likewise */
	ACP_MAP_STARTER	= 2,	/* of any rank on this node */
	ACP_MAP_HEAP	= 3,
	ACP_MAP_LIBRARY	= 4,	/* one page; its end is a struct acp_watch */
};

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L && !defined(__cplusplus)
_Static_assert(sizeof(struct acp_sq) == 64, "ABI");
_Static_assert(sizeof(struct acp_sqe) == 64, "ABI");
_Static_assert(sizeof(struct acp_cq) == 64, "ABI");
_Static_assert(sizeof(struct acp_rank_run) == 24, "ABI");
_Static_assert(sizeof(struct acp_node_run) == 32, "ABI");
_Static_assert(sizeof(struct acp_join) == 136, "ABI");
_Static_assert(sizeof(struct acp_reg) == 64, "ABI");
_Static_assert(sizeof(struct acp_unreg) == 24, "ABI");
_Static_assert(sizeof(struct acp_wait) == 24, "ABI");
_Static_assert(sizeof(struct acp_sync) == 24, "ABI");
_Static_assert(sizeof(struct acp_peer_info) == 24, "ABI");
_Static_assert(sizeof(struct acp_rank_state) == 16, "ABI");
_Static_assert(sizeof(struct acp_event) == 20, "ABI");
_Static_assert(sizeof(struct acp_watch) == 4096 - ACP_WATCH_OFFSET, "ABI");
_Static_assert(sizeof(struct acp_watch_wait) == 24, "ABI");
_Static_assert(sizeof(struct acp_wake) == 8, "ABI");
_Static_assert(sizeof(struct acp_attach) == 48, "ABI");
#endif

#endif /* ACP_ABI_H */
