/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT */
/*
 * /dev/acp: the interface between a process and the kernel module.
 *
 * A process opens the device, joins a job as one rank (ACP_IOC_JOIN), maps
 * its queues, and then submits commands by writing entries to a ring.  One
 * open file is one rank; closing it leaves the job and releases all resources.
 * The file belongs to the process that joined: a forked child that inherits
 * the descriptor gets -EPERM from every call, and no mapping.
 *
 * Rules of the ABI: every structure starts with its own size.  Unknown sizes,
 * unknown flags and nonzero reserved fields are refused with -EINVAL.  All
 * numbers are in host byte order; pointers are passed as __u64.
 *
 * Errors that every ioctl can return, in addition to those at its structure:
 *	-EFAULT		the argument cannot be read or written
 *	-EINVAL		size, flag, reserved field or value out of range
 *	-ENOTTY		no such ioctl
 *	-ENOTCONN	the file has neither joined a job nor been attached to a file that
 *			has; or that file was closed
 *	-EPERM		the caller is not the process that joined
 *	-ENODEV		the network namespace of the job is being removed
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
#define ACP_RUNS_MAX		(1u << 20)	/* of ranks, and of nodes */
#define ACP_COPY_MAX		(1ULL << 62)	/* bytes of one copy */
#define ACP_TICKET_BITS		48		/* the bits above are the number of the queue */
#define ACP_QUEUES_MAX		256		/* additional queues of a rank at a time */
#define ACP_QUEUE_LAST		16383		/* largest number of a queue */

/*
 * Submission ring: a header of 64 bytes that the user writes, then entries.
 *
 * Position p (counted from 1, never wraps in practice) is stored in
 * entry[p & (depth - 1)] and is the ticket of that command.  tail is the
 * last ticket written; ticket 1 is complete from the start, so that tail
 * and completed are both 1 in an unused queue.
 *
 * All tickets of queue number q of a rank (ACP_IOC_ATTACH; joining creates
 * queue 0) are offset by q << ACP_TICKET_BITS: no two commands of a rank have
 * the same ticket.  A queue can execute 2^48 - 2 commands; later ones fail
 * with ACP_ST_OP.
 *
 *  user:   fill entry[tail + 1]				needs (D)
 *  user:   store-release tail					(A)
 *  kernel: load-acquire tail, copy the entry once		(B)
 *  kernel: status, then store-release completed		(C)
 *  user:   load-acquire completed, then read status		(D)
 *  user:   after (A) a full fence, then read flags: if ACP_CQ_NEED_WAKEUP
 *	    is set, the kernel does not process the ring until ACP_IOC_DOORBELL,
 *	    or until fdatasync() of the descriptor, which is faster and returns
 *	    ACP_RUNG: if it returns 0, a seccomp filter or the like has answered
 *	    in place of the kernel, and the ring was not processed.  The kernel
 *	    sets the flag, executes a full fence, then reads tail once more.
 *	    While the flag is clear, the kernel polls the ring, continuously or
 *	    (one processor) by a timer: then a command may start some ten us
 *	    later, unless ACP_IOC_WAIT requests that the ring be processed.
 */
#define ACP_RUNG 1

struct acp_sq {
	__u64 tail;
	__u64 reserved[7];
};

/* Operations.  src is the word operated on, dst receives its former value. */
enum acp_op {
	ACP_OP_COPY	= 1,	/* dst := src, size bytes; addresses are not checked if size is 0 */
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
	ACP_OP_INDIRECT	= 17,	/* a copy to the address in the word at dst */
	ACP_OP_APPEND	= 18,	/* a copy to the end of a buffer, whose descriptor is at dst */
	ACP_OP_SEND	= 19,	/* a message of size bytes into the mailbox at dst; b: its tag */
	ACP_OP_SCATTER	= 20,	/* a copy along the chain of descriptors that begins at dst */
	ACP_OP_GATHER	= 21,	/* a copy of what the chain that begins at src describes */
	ACP_OP_WAIT	= 22,	/* nothing; completes when the 8 bytes at src have reached a */
	ACP_OP_END
};

/*
 * ACP_OP_STRIDED: block i < count is copied from src + i * b to dst + i * a.  a
 * and b are signed, and blocks must not overlap.  size is ACP_BLOCKS(bytes of a
 * block, count); if either is 0, nothing is copied.
 *
 * ACP_OP_COPY_SET, COPY_ADD: address a is on dst's node, aligned, and permits
 * atomics.  Its word changes, atomically, when the whole copy is in memory; it
 * does not change if a part of the copy failed.
 *
 * ACP_OP_INDIRECT: dst is aligned to 8.  Its word is read once, when the first
 * bytes have arrived at its node, and must be the global address of memory of
 * the same rank, which is written.  a and b are 0.
 *
 * ACP_OP_APPEND: dst is the address of two words, aligned, that permits atomics:
 * the next free address of a buffer of the same rank, and the address of its
 * end.  The first word is advanced by size, rounded up to a multiple of 8, in
 * one step; the bytes are written to where it was.  If they do not fit, nothing
 * is written, and the command ends with ACP_ST_AGAIN; with ACP_SQE_RETRY only if
 * there is still no room when the time-out of the job (acp_join.timeout_ms) has
 * passed.  Until then it is tried again after 50 us, 100 us, and so on up to 12.8
 * ms, and a ns per byte more, since each try sends all bytes; but only when no
 * older command of the queue with RETRY waits for room at the same dst.
 *
 * ACP_OP_WAIT: src is the address of a word in memory of the caller's own rank,
 * aligned to 8.  The command ends when the word, a counter that only grows, is a
 * or has passed it: (s64)(word - a) >= 0.  It looks at the word when all earlier
 * commands of the queue are complete, and then after each write that the kernel
 * does or is told of (struct acp_watch).  It has no time-out.  All other fields
 * are 0.  ACP_ST_ACCESS: the word is memory of another rank.
 */
#define ACP_BLOCKS(bytes, count)	((__u64)(count) << 32 | (__u32)(bytes))

/*
 * ACP_OP_SCATTER, ACP_OP_GATHER: dst (of GATHER: src) is the address of a descriptor, aligned to 8,
 * in memory that permits reading.  The bytes of the copy are those of block 0 of the first
 * descriptor, then of block 1, and so on, then those of the next descriptor, until there are size
 * bytes.  Descriptors and blocks are memory of one rank, and all blocks of a descriptor are in one
 * region that permits it.  Each descriptor is read once: for SCATTER, when the first bytes have
 * arrived at its node; for GATHER, when the copy starts at its node.  Nothing is copied unless all
 * of them are valid; later descriptors are not read.  The copy ends with ACP_ST_CHAIN if
 * ACP_CHAIN_MAX descriptors have fewer bytes than size, or the last one is reached, or one for the
 * second time; or if one has no bytes, blocks that overlap, other flags, or a reserved field that
 * is not 0; and with ACP_ST_ACCESS if it has not the flag of the copy.  a and b are 0.
 */
struct acp_descriptor {
	__u64 address;		/* global address of block 0 */
	__s64 stride;		/* block i begins at address + i * stride */
	__u32 block;		/* bytes of a block, not 0 */
	__u32 count;		/* number of blocks, not 0 */
	__u64 next;		/* global address of the next descriptor, aligned to 8; 0: none */
	__u32 flags;		/* ACP_CHAIN_ */
	__u32 reserved;		/* 0 */
};

#define ACP_CHAIN_SCATTER	1u	/* ACP_OP_SCATTER may write to the blocks */
#define ACP_CHAIN_GATHER	2u	/* ACP_OP_GATHER may read them */
#define ACP_CHAIN_FLAGS		(ACP_CHAIN_SCATTER | ACP_CHAIN_GATHER)
#define ACP_CHAIN_MAX		64	/* descriptors that one copy uses */

/*
 * ACP_OP_SEND: dst is the address of a mailbox, aligned to 8, in memory that
 * permits writing and atomics.  It begins with this structure, followed by
 * the records of messages.  A message takes a record and size bytes, rounded
 * up to a multiple of 8, at "next", if that ends not beyond "limit": "room" is
 * advanced in one step.  Otherwise nothing is written, and the command ends with
 * ACP_ST_AGAIN, or is tried again (ACP_SQE_RETRY) as ACP_OP_APPEND; a message that
 * is longer than the mailbox ends with ACP_ST_RANGE.  Messages of a queue whose
 * source is memory of the node that sends them, by one color, take their records
 * in the order in which they start: that of their tickets, but for those that
 * have to wait for their "order", and those without RETRY that are refused, or
 * pass others that wait for room.
 *
 * With ACP_SQE_RENDEZVOUS, and if the source is memory of the node that sends, the bytes of a
 * message to a match list (ACP_IOC_MATCH) are not sent before a receive has matched it, however
 * long that takes.  Until then it takes one of the list's "messages", but none of its bytes.  A
 * mailbox without a list refuses it with ACP_ST_OP.
 *
 * The owner alone changes limit, and sets next back.  All bytes between next and
 * limit are 0 before "room" says so.
 */
struct acp_mailbox {
	__u64 room;		/* ACP_MAILBOX_ROOM(next, limit) */
	__u32 units;		/* bytes of all records / 8: the largest limit */
	__u32 list;		/* 0, or the match list (ACP_IOC_MATCH) that gets the messages */
	__u64 owner[6];		/* the kernel does not look at them */
};

/* Numbers of 8 bytes, counted from the end of struct acp_mailbox. */
#define ACP_MAILBOX_ROOM(next, limit)	((__u64)(limit) << 32 | (__u32)(next))

/*
 * A message; its bytes follow.  Records are valid in their order: those behind one whose state is 0
 * mean nothing yet, whatever they say.
 */
struct acp_record {
	__u64 state;		/* size << 2 | ACP_RECORD_; written last.  0: not written yet */
	__u64 tag;
	__u32 rank;		/* the sender: the origin of the command */
	__u32 reserved;		/* 0 */
};

#define ACP_RECORD_ARRIVING	1	/* tag, rank and size are valid */
#define ACP_RECORD_READY	2	/* all bytes are there */
#define ACP_RECORD_VOID		3	/* the message failed on its way */

/* acp_sqe.flags */
#define ACP_SQE_CONT	1u	/* order: continue the previous command, "order" = that ticket */
#define ACP_SQE_MORE	2u	/* if this command fails, the next one ends with its status */
#define ACP_SQE_RETRY	4u	/* APPEND, SEND: if there is no room, try again, see above */
#define ACP_SQE_RENDEZVOUS	8u	/* SEND: send the bytes to a matching receive only */
#define ACP_SQE_FLAGS	(ACP_SQE_CONT | ACP_SQE_MORE | ACP_SQE_RETRY | ACP_SQE_RENDEZVOUS)

/*
 * One command.  It may start when all commands up to ticket "order" are
 * complete (0: immediately).  It fails with ACP_ST_ORDER, without effect, if
 * one of these commands with a ticket above "seen" failed.
 */
struct acp_sqe {
	__u8  op;		/* enum acp_op */
	__u8  flags;		/* ACP_SQE_ */
	__u8  reserved[6];	/* must be zero */
	__u64 dst, src;		/* global addresses */
	__u64 size;		/* of copies: bytes, or ACP_BLOCKS; otherwise 0 */
	__u64 order;		/* ticket, less than the command's own */
	__u64 seen;		/* "completed" when the caller issued this, or a later ticket */
	__u64 a, b;		/* operands; 0 if unused */
};

/* Completion area, written by the kernel only, mapped read-only. */
struct acp_cq {
	__u64 completed;	/* all commands up to this ticket are complete */
	__u64 failed;		/* number of these that failed */
	__u32 flags;		/* ACP_CQ_ */
	__u32 reserved[11];
	__u8  status[];		/* ACP_ST_ of ticket t at [t & (depth - 1)], for depth tickets */
};

#define ACP_CQ_NEED_WAKEUP	1u	/* ring the doorbell after submitting */
#define ACP_CQ_ABORTED		2u	/* job or rank has ended; all commands fail */

/* Status of a complete command.  Only ACP_ST_OK guarantees an effect. */
enum acp_status {
	ACP_ST_OK	= 0,
	ACP_ST_OP	= 1,	/* invalid operation, flag, size or order in the entry */
	ACP_ST_GA	= 2,	/* the address belongs to no rank, or to an unused color */
	ACP_ST_STAG	= 3,	/* the region was never registered, or is no longer */
	ACP_ST_RANGE	= 4,	/* exceeds the region */
	ACP_ST_ACCESS	= 5,	/* the region does not grant this access */
	ACP_ST_ALIGN	= 6,	/* the address of an atomic is not aligned to its size */
	ACP_ST_RANK	= 7,	/* the rank does not exist, or no longer exists */
	ACP_ST_NOMEM	= 8,	/* out of memory, or the job has reached its limit of flows */
	ACP_ST_TIMEOUT	= 9,	/* a peer was silent for the time-out */
	ACP_ST_PEER	= 10,	/* a peer was restarted, or its settings of the job differ */
	ACP_ST_ROUTE	= 11,	/* no route to the peer */
	ACP_ST_ORDER	= 12,	/* a command this one waited for failed */
	ACP_ST_ABORT	= 13,	/* the job or the rank was ended */
	ACP_ST_AGAIN	= 14,	/* the buffer is full */
	ACP_ST_CHAIN	= 15,	/* a chain is too short, too long, a loop, or not well formed */
	ACP_ST_END
};

/*
 * Rank -> node, run-length encoded.  Rank first + i, i < count, is on node
 * number node + (i / block) % nodes.  Runs are sorted, cover each rank exactly
 * once, and place at least one rank on each node.
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
 *
 * scope: the interface index, if the addresses are IPv6 link-local addresses
 * and one of them is that of the rank's own node; otherwise 0.  The node sends
 * to the other nodes on that color through that interface.
 */
struct acp_node_run {
	__u32 first, count;
	__u16 color;
	__u16 family;		/* AF_INET: addr[0..3]; AF_INET6 */
	__u32 scope;
	__u8  addr[16];
};

/* Protection of payloads of more than 128 bytes; shorter ones are always authenticated. */
#define ACP_INTEGRITY_TAG	0	/* the frame's tag covers the payload: authenticated */
#define ACP_INTEGRITY_CRC32C	1	/* crc32c in the authenticated part: against errors */
#define ACP_INTEGRITY_AEAD	2	/* everything is encrypted */
#define ACP_INTEGRITY_UDP	3	/* the UDP checksum: against errors */

/* Limits set by an administrator (sysctls net.acp): the one that caused -EDQUOT. */
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

/* Module parameter "memory": KiB that all users together have pinned or allocated. */
#define ACP_LIMIT_MEMORY	65

/*
 * -ENOMEM was caused by RLIMIT_MEMLOCK, which bounds the locked memory of all processes of a
 * user together.  For other causes of -ENOMEM, "limit" is unchanged.
 */
#define ACP_LIMIT_MEMLOCK	64

/*
 * ACP_IOC_JOIN: become a rank of a job.  All ranks on a node must pass the
 * same values up to "key", except rank and sizes.
 *	-EALREADY	this file has already joined
 *	-EEXIST		the rank is in use on this node
 *	-ESTALE		the rank has left, and others of this generation are still here
 *	-EADDRNOTAVAIL	this node does not have the address of the rank's node, or the
 *			address cannot be used: tentative, or on another interface than scope
 *	-EADDRINUSE	another program uses the port
 *	-EACCES		the job exists on this node with another key or user
 *	-EPROTO		the version is not supported, or a value differs from the job's here
 *	-EAFNOSUPPORT	an IPv6 job on a kernel without IPv6
 *	-ENOMEM		out of memory, or starter and heap exceed RLIMIT_MEMLOCK; then
 *			"limit" is ACP_LIMIT_MEMLOCK
 *	-EDQUOT		an administrator's limit is reached; "limit" says which
 *	-EPERM		a security module, or a BPF program of the process's control
 *			group, denies it a UDP socket
 *	-EOPNOTSUPP	the administrator permits no new ranks, in this namespace or at all;
 *			or integrity is aead, and the kernel has no rfc7539(chacha20,poly1305)
 *	-EINTR		a signal arrived while the cipher was loaded; call again
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
	__u32 timeout_ms;	/* silence after which a peer has failed: 10 .. 3600000 */
	__u32 open_timeout_ms;	/* the same before its first answer */
	__u32 rank_runs, node_runs;	/* numbers of runs */
	__u64 rank_run_ptr;	/* struct acp_rank_run [] */
	__u64 node_run_ptr;	/* struct acp_node_run [] */
	__u8  key[16];
	__u64 starter_size;	/* bytes of starter and heap memory of this rank, zeroed */
	__u64 heap_size;
	__u32 depth;		/* of the ring: a power of two, ACP_DEPTH_MIN .. MAX */
	__u32 flags;		/* must be zero */
	/* out */
	__u32 node;		/* the rank's node */
	__u32 local_ranks;	/* ranks placed on this node */
	__u64 sq_bytes, cq_bytes;	/* sizes to map */
	__u32 limit;		/* with -EDQUOT, -ENOMEM: the ACP_LIMIT_ that is reached */
	__u32 reserved;		/* must be zero */
};

#define ACP_ACCESS_READ		1u	/* other ranks may read */
#define ACP_ACCESS_WRITE	2u	/* ... write */
#define ACP_ACCESS_ATOMIC	4u	/* ... do atomics */
#define ACP_ACCESS_RO		8u	/* pinned for reading: excludes WRITE, ATOMIC, own writes */
#define ACP_ACCESS_ALL		(ACP_ACCESS_READ | ACP_ACCESS_WRITE | ACP_ACCESS_ATOMIC)

/*
 * ACP_IOC_REG: register memory: pin it and assign a key.  A range within a
 * region of the same color and access that is still mapped gets the key of that
 * region; the key must be unregistered as often as it was registered.
 *	-EFAULT		part of the range is unmapped, protected or cannot be pinned
 *	-ENOMEM		out of memory, or RLIMIT_MEMLOCK is reached; then "limit" is
 *			ACP_LIMIT_MEMLOCK
 *	-EDQUOT		an administrator's limit is reached; "limit" says which
 *	-ENOSPC		all STags of the rank are in use
 *	-EOVERFLOW	the range exceeds the offset field of a GA
 */
struct acp_reg {
	__u32 size;		/* sizeof(struct acp_reg) */
	__u32 color;
	__u32 access;		/* ACP_ACCESS_ */
	__u32 reserved;
	__u64 addr, length;
	/* out */
	__u64 key;		/* GA of offset 0 */
	__u64 start;		/* virtual address of offset 0 (page aligned) */
	__u64 base, end;	/* the region is [base, end) */
	__u32 limit;		/* with -EDQUOT, -ENOMEM: the ACP_LIMIT_ that is reached */
	__u32 reserved2;	/* must be zero */
};

/*
 * ACP_IOC_UNREG: undo one registration.  The last one removes the region, and
 * when the call returns, no access can change a byte of it any more.  The call
 * never waits for the network.
 *	-ENOENT		no such key
 */
struct acp_unreg {
	__u32 size, reserved;
	__u64 key;
	/* out */
	__u32 left;		/* remaining registrations of the region */
	__u32 reserved2;
};

/*
 * ACP_IOC_WAIT: process the ring, then sleep until "ticket" is complete.
 *	-EINTR		a signal arrived, with SA_RESTART, too: call again with what
 *			is left of the time
 *	-ETIMEDOUT	not complete after timeout_ns (0: do not sleep)
 * With ACP_WAIT_ARM it does not sleep: poll() reports POLLIN once "ticket"
 * is complete.
 */
struct acp_wait {
	__u32 size;
	__u32 flags;		/* ACP_WAIT_ */
	__u64 ticket;
	__u64 timeout_ns;	/* ~0: no limit */
};

#define ACP_WAIT_ARM	1u

/*
 * ACP_IOC_SYNC: barrier over all ranks of the job; one call per rank at a time.
 *	-EINTR		a signal arrived, with SA_RESTART, too: call again with what
 *			is left of the time; the arrival counts once
 *	-ETIMEDOUT	not all ranks arrived within timeout_ns
 *	-EBUSY		another thread of this rank is in the barrier
 *	-EPIPE		a rank left the job: no further barrier can complete
 *	-EPROTO		"node" has another number of ranks, placement, nodes, colors
 *			or integrity for the job: no barrier can complete.  Only
 *			before the first barrier has completed.
 * A rank that leaves without having passed a barrier with ACP_SYNC_FINAL
 * breaks the barriers of all other ranks, so that no rank waits for it.
 */
struct acp_sync {
	__u32 size;
	__u32 flags;		/* ACP_SYNC_ */
	__u64 timeout_ns;	/* ~0: no limit */
	/* out */
	__u32 node;		/* the caller's node; with -EPROTO the node that differs */
	__u32 reserved;		/* must be zero */
};

#define ACP_SYNC_FINAL	1u	/* the caller leaves the job after this barrier */

/*
 * ACP_IOC_PEER: the memory sizes of a rank of the job.
 *	-ESRCH		the rank is not on this node, or does not exist (any more)
 */
struct acp_peer_info {
	__u32 size;
	__u32 rank;
	/* out */
	__u64 starter_size, heap_size;
};

enum acp_rank_states {
	ACP_RANK_UNKNOWN = 0,	/* no communication with its node, or not joined yet */
	ACP_RANK_UP	= 1,	/* its node answered the last communication */
	ACP_RANK_DOWN	= 2,	/* it left, or its node is silent or unreachable */
	ACP_RANK_BACK	= 3,	/* its node answers again after it was lost or restarted */
};

/* ACP_IOC_STATE: the state of a rank as known to this node, without communication. */
struct acp_rank_state {
	__u32 size;
	__u32 rank;
	/* out */
	__u32 state;		/* ACP_RANK_ */
	__u32 status;		/* if DOWN: the ACP_ST_ with which an access would end */
};

enum acp_event_type {
	ACP_EVENT_DOWN	= 1,	/* "node" is lost on "color"; "status" is the reason */
	ACP_EVENT_UP	= 2,	/* it answers again; commands in flight have failed */
	ACP_EVENT_LEFT	= 3,	/* "rank" of "node" left without a final barrier */
	ACP_EVENT_BROKEN = 4,	/* no further barrier will complete */
};

/*
 * ACP_IOC_EVENT: the next event of other ranks and nodes since the caller
 * joined.  poll() reports POLLPRI while there is an event to read.
 *	-EAGAIN		there is no event
 */
struct acp_event {
	__u32 size;
	/* out */
	__u32 missed;		/* earlier events that were not read in time */
	__u8  type;		/* ACP_EVENT_ */
	__u8  status;
	__u8  color;
	__u8  reserved;
	__u32 node, rank;
};

#define ACP_RECEIVES_MAX	65536
#define ACP_MASKS_MAX		4
#define ACP_LISTS_MAX		64	/* match lists of a rank at a time */
#define ACP_LIST_LAST		0x7fffffff	/* largest number of a match list */

/*
 * ACP_IOC_MATCH: create a match list of the caller's rank: posted receives, and messages that no
 * posted receive has matched.  Senders use ACP_OP_SEND with the address of a struct acp_mailbox
 * whose "list" is its number; a list that does not exist is as a mailbox without room.  The kernel
 * adds 1 to "room" when the next look for a kept message (ACP_POST_TAKE, PROBE) may find another
 * one: when one is complete, or one that was arriving is out of its way.  It uses nothing else of
 * that structure.
 *
 * A message goes to the buffer of the oldest posted receive that matches it; otherwise to the
 * memory of the list, if there is room, and if "messages" permits.  Otherwise nothing is written,
 * as with a full mailbox.  The three addresses are in the caller's own memory; it permits others to
 * write messages, and atomics to the mailbox.  Wrong ones harm only the list.
 *	-ENOSPC		the rank has ACP_LISTS_MAX match lists
 *	-ENOMEM		out of memory
 *	-EDQUOT		an administrator's limit is reached; "limit" says which
 */
struct acp_match {
	__u32 size;		/* sizeof(struct acp_match) */
	__u32 flags;		/* must be zero */
	__u64 mailbox;		/* its struct acp_mailbox */
	__u64 results;		/* struct acp_result [receives] */
	__u64 memory, bytes;	/* for messages; a multiple of 8 */
	__u32 receives;		/* posted at a time: 1 .. ACP_RECEIVES_MAX */
	__u32 messages;		/* kept at a time: 1 .. ACP_RECEIVES_MAX */
	__u32 masks;		/* number of masks: 1 .. ACP_MASKS_MAX */
	__u32 reserved;		/* must be zero */
	__u64 mask[ACP_MASKS_MAX];	/* values that acp_post.ignore may have; all different */
	/* out */
	__u32 list;		/* its number, 1 .. ACP_LIST_LAST */
	__u32 limit;		/* with -EDQUOT: the ACP_LIMIT_ that is reached */
};

/* What became of a posted receive.  The kernel writes it, "state" last. */
struct acp_result {
	__u64 state;		/* ACP_RESULT_; set to 0 before the receive is posted */
	__u64 size, tag;	/* of the message; its size may exceed the buffer's */
	__u32 rank;		/* its sender */
	__u32 message;		/* KEPT: its number, for ACP_IOC_UNPOST */
	__u64 at;		/* KEPT: offset in the memory of the list, a multiple of 8 */
	__u64 status;		/* FAILED: why, ACP_ST_; otherwise 0 */
	__u64 reserved[2];
};

#define ACP_RESULT_DONE		1	/* the message is in the buffer */
#define ACP_RESULT_KEPT		2	/* it is in the memory of the list, until it is released */
#define ACP_RESULT_FAILED	3	/* it could not be written, or failed on its way */

/*
 * ACP_IOC_POST: post a receive, which gets a message of "rank", or of any rank, whose tag equals
 * "tag" in all bits but those of "ignore".  If one has been kept, the oldest of them is taken, and
 * the result is ACP_RESULT_KEPT as soon as all of it is there.  Its "room" first bytes are wanted.
 * One of ACP_SQE_RENDEZVOUS goes to the buffer; TAKE lets its bytes come to the list's memory.
 *	-ENOENT		no such list
 *	-EBUSY		"result" belongs to another receive that is posted
 *	-EAGAIN		flag PROBE or TAKE: there is no such message, or the oldest is arriving
 *	-EMSGSIZE	flag TAKE: the oldest is longer than the memory of the list
 */
struct acp_post {
	__u32 size;
	__u32 list;
	__u32 flags;		/* ACP_POST_ */
	__u32 rank;		/* 0 with ACP_POST_ANY_RANK */
	__u64 tag, ignore;
	__u64 buffer, room;	/* in the caller's own memory; not used if room is 0 */
	__u32 result;		/* number of its struct acp_result; 0 with PROBE */
	/* out: the message that was found, if one had been kept; otherwise unchanged */
	__u32 message_rank;
	__u64 message_tag, message_size;
};

#define ACP_POST_ANY_RANK	1u
#define ACP_POST_TAKE		2u	/* only take a message that has been kept, post nothing */
#define ACP_POST_PROBE		4u	/* only report it; it stays there */
#define ACP_POST_FLAGS		(ACP_POST_ANY_RANK | ACP_POST_TAKE | ACP_POST_PROBE)

/*
 * ACP_IOC_UNPOST: withdraw a receive, release a message (ACP_RESULT_KEPT), or remove a list
 * and all that it has.
 *	-ENOENT		no such list; no receive has got such a message; the receive is not
 *			posted any more: its result is written, or will be
 *	-EBUSY		LIST: a message is arriving; the list gets no others from now on
 */
struct acp_unpost {
	__u32 size;
	__u32 list;
	__u32 what;		/* ACP_UNPOST_ */
	__u32 number;		/* of the result, or of the message; 0 for LIST */
};

#define ACP_UNPOST_RECEIVE	1
#define ACP_UNPOST_MESSAGE	2
#define ACP_UNPOST_LIST		3

/* ACP_IOC_ABORT: end the job on all nodes; every call and command fails. */

/*
 * State of threads that sleep until words of this rank's memory change, at
 * ACP_WATCH_OFFSET of its library page, where ranks of the node that write to
 * this memory without the kernel can read it.  A line is 64 bytes; lines with
 * the same number share a counter.
 *
 *  waiter: increments lines[] of its words once; then, in a loop:
 *	    reads wakes, sets armed to 1, full fence, checks the words, and calls
 *	    ACP_IOC_WATCH if it has to wait.  In this order, a waiter that is
 *	    woken, and thus disarmed, before it sleeps does not sleep
 *  writer: writes, full fence, reads armed and waits: if one of them is not 0, and
 *	    neither is lines[] of a line that it wrote, calls ACP_IOC_WAKE
 *  kernel: sets armed to 0, increments wakes, wakes all waiters, and looks at the
 *	    words that ACP_OP_WAIT waits for; also without a call, after its own
 *	    writes, and when a command of the rank has failed, a rank of the node
 *	    has left, or the job has ended.  While a queue of the rank executes
 *	    ACP_OP_WAIT, the kernel counts it in waits, and its word in lines[]
 *
 * Wrong values in this structure do no harm except that waits end too early or
 * too late.
 */
#define ACP_WATCH_LINES		64
#define ACP_WATCH_OFFSET	3824
#define ACP_WATCH_LINE(address)	(((address) >> 6) % ACP_WATCH_LINES)

struct acp_watch {
	__u64 wakes;
	__u32 armed;
	__u32 waits;		/* kernel: queues of the rank that wait for a word */
	__u32 lines[ACP_WATCH_LINES];
};

/*
 * ACP_IOC_WATCH: sleep until "wakes" of the caller's acp_watch changes.
 *	-EINTR		a signal arrived, with SA_RESTART, too: call again with what
 *			is left of the time
 *	-ETIMEDOUT	it is unchanged after timeout_ns
 * With ACP_WATCH_ARM it does not sleep: poll() of the rank's own file reports POLLIN while "wakes"
 * differs from the value of the last such call; after ACP_WATCH_DISARM it does not any more.
 */
struct acp_watch_wait {
	__u32 size;
	__u32 flags;		/* ACP_WATCH_ */
	__u64 wakes;		/* value before "armed" was set */
	__u64 timeout_ns;	/* ~0: no limit */
};

#define ACP_WATCH_ARM		1u
#define ACP_WATCH_DISARM	2u

/*
 * ACP_IOC_WAKE: wake the waiters of "rank" on this node, whose words may have changed.
 *	-ESRCH		the rank is not on this node, or does not exist (any more)
 */
struct acp_wake {
	__u32 size;
	__u32 rank;
};

/*
 * ACP_IOC_WRONG_KEY: a source address of frames of the job with a wrong tag, whose sender
 * probably has another key.  Only some addresses of the job's nodes are recorded, until the
 * first barrier has completed.
 *	-ENOENT		there are only "index" such addresses, or fewer
 */
struct acp_wrong_key {
	__u32 size;
	__u32 index;		/* from 0 */
	/* out */
	__u32 node;
	__u16 color;
	__u16 family;		/* AF_INET: addr[0..3]; AF_INET6 */
	__u64 frames;
	__u8  addr[16];
};

/*
 * ACP_IOC_ATTACH: make the file an additional queue of a rank of the calling
 * process, for a thread that submits and waits independently of others.  It has
 * its own rings (mmap, doorbell, poll, ACP_IOC_WAIT), uses the same memory, and
 * is charged to the same user.  All other calls use the rank's own file and
 * fail here with -EOPNOTSUPP (mmap of anything except the rings: -EINVAL).
 * "order" and "seen" of an entry are tickets of the same queue.
 *
 * Closing the file ends its commands in flight; their effects may still occur.
 * When the rank's own file is closed, they end with ACP_ST_ABORT.
 *
 *	-EALREADY	this file has joined, or is attached already
 *	-EBADF		"fd" is not an open file
 *	-EINVAL		"fd" is not a file of this device, or is an attached file
 *	-EXDEV		opened in another network namespace than the rank's file
 *	-ENOSPC		the rank has ACP_QUEUES_MAX queues, or has had ACP_QUEUE_LAST
 *	-ENOMEM		out of memory
 *	-EDQUOT		an administrator's limit is reached; "limit" says which
 */
struct acp_attach {
	__u32 size;		/* sizeof(struct acp_attach) */
	__s32 fd;		/* of the file that joined */
	__u32 depth;		/* of the ring: a power of two, ACP_DEPTH_MIN .. MAX */
	__u32 flags;		/* must be zero */
	__u32 reserved;		/* must be zero */
	/* out */
	__u32 queue;		/* its number, 1 .. ACP_QUEUE_LAST */
	__u64 first;		/* ticket that is initially complete: tail and completed */
	__u64 sq_bytes, cq_bytes;	/* sizes to map */
	__u32 limit;		/* with -EDQUOT: the ACP_LIMIT_ that is reached */
	__u32 reserved2;	/* must be zero */
};

/*
 * A structure may grow at its end.  It begins with its size, which must equal the size in the
 * number of the call (otherwise -EINVAL).  A kernel accepts each size from that of the first
 * version, below, up to a page.  Bytes that it does not know must be zero (otherwise -E2BIG);
 * fields that the caller's structure lacks are zero and not returned.  Calls of 32-bit programs
 * fail with -ENOTTY.
 */
#define ACP_JOIN_SIZE_0		144
#define ACP_REG_SIZE_0		72
#define ACP_UNREG_SIZE_0	24
#define ACP_WAIT_SIZE_0		24
#define ACP_SYNC_SIZE_0		24
#define ACP_PEER_SIZE_0		24
#define ACP_STATE_SIZE_0	16
#define ACP_EVENT_SIZE_0	20
#define ACP_WATCH_SIZE_0	24
#define ACP_WAKE_SIZE_0		8
#define ACP_ATTACH_SIZE_0	56
#define ACP_WRONG_KEY_SIZE_0	40
#define ACP_MATCH_SIZE_0	96
#define ACP_POST_SIZE_0		72
#define ACP_UNPOST_SIZE_0	16

/* 00-1F of it; free in Documentation/userspace-api/ioctl/ioctl-number.rst, as of Linux 6.12. */
#define ACP_IOC_MAGIC		0xD5
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
#define ACP_IOC_WRONG_KEY	_IOWR(ACP_IOC_MAGIC, 13, struct acp_wrong_key)
#define ACP_IOC_MATCH		_IOWR(ACP_IOC_MAGIC, 14, struct acp_match)
#define ACP_IOC_POST		_IOWR(ACP_IOC_MAGIC, 15, struct acp_post)
#define ACP_IOC_UNPOST		_IOW(ACP_IOC_MAGIC, 16, struct acp_unpost)

/*
 * mmap: offset = ACP_MAP(kind, rank), length up to the size of the object,
 * MAP_SHARED, never PROT_EXEC.  Not inherited by fork, cannot grow.
 *	-EINVAL		invalid kind, offset, length or flags
 *	-EACCES		writable completion area, or executable mapping
 *	-ESRCH		the rank is not on this node
 */
#define ACP_MAP(kind, rank)	(((__u64)(kind) << 48) | ((__u64)(rank) << 16))
enum {
	ACP_MAP_SQ	= 0,	/* of the caller; pass rank 0 */
	ACP_MAP_CQ	= 1,	/* of the caller; pass rank 0 */
	ACP_MAP_STARTER	= 2,	/* of any rank on this node */
	ACP_MAP_HEAP	= 3,
	ACP_MAP_LIBRARY	= 4,	/* one page; ends with a struct acp_watch */
};

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L && !defined(__cplusplus)
_Static_assert(sizeof(struct acp_sq) == 64, "ABI");
_Static_assert(sizeof(struct acp_sqe) == 64, "ABI");
_Static_assert(sizeof(struct acp_cq) == 64, "ABI");
_Static_assert(sizeof(struct acp_descriptor) == 40, "ABI");
_Static_assert(sizeof(struct acp_rank_run) == 24, "ABI");
_Static_assert(sizeof(struct acp_node_run) == 32, "ABI");
_Static_assert(sizeof(struct acp_join) == 144, "ABI");
_Static_assert(sizeof(struct acp_reg) == 72, "ABI");
_Static_assert(sizeof(struct acp_unreg) == 24, "ABI");
_Static_assert(sizeof(struct acp_wait) == 24, "ABI");
_Static_assert(sizeof(struct acp_sync) == 24, "ABI");
_Static_assert(sizeof(struct acp_peer_info) == 24, "ABI");
_Static_assert(sizeof(struct acp_rank_state) == 16, "ABI");
_Static_assert(sizeof(struct acp_event) == 20, "ABI");
_Static_assert(sizeof(struct acp_watch) == 4096 - ACP_WATCH_OFFSET, "ABI");
_Static_assert(sizeof(struct acp_watch_wait) == 24, "ABI");
_Static_assert(sizeof(struct acp_wake) == 8, "ABI");
_Static_assert(sizeof(struct acp_attach) == 56, "ABI");
_Static_assert(sizeof(struct acp_wrong_key) == 40, "ABI");
_Static_assert(sizeof(struct acp_match) == 96, "ABI");
_Static_assert(sizeof(struct acp_result) == 64, "ABI");
_Static_assert(sizeof(struct acp_post) == 72, "ABI");
_Static_assert(sizeof(struct acp_unpost) == 16, "ABI");
#endif

#endif /* ACP_ABI_H */
