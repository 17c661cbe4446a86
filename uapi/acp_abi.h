/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT */
/*
 * /dev/acp: the interface between a process and the kernel module.  Commands, the entries of
 * a ring, are in acp_cmd.h.
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
#include "acp_cmd.h"

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

/* Completion area, written by the kernel only, mapped read-only. */
struct acp_cq {
	__u64 completed;	/* all commands up to this ticket are complete */
	__u64 failed;		/* number of these that failed */
	__u32 flags;		/* ACP_CQ_ */
	__u32 reserved[11];
	__u8  status[];		/* ACP_ST_ of ticket t at [t & (depth - 1)], for depth tickets */
};

/*
 * In status[]: a message with ACP_SQE_RENDEZVOUS has ended, with the rest as its status, but
 * earlier commands are not complete.
 */
#define ACP_CQ_ENDED		0x80u

#define ACP_CQ_NEED_WAKEUP	1u	/* ring the doorbell after submitting */
#define ACP_CQ_ABORTED		2u	/* job or rank has ended; all commands fail */

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
#define ACP_MASKS_MAX		16
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
 *
 * With ACP_MATCH_LEARN, the list has one mask at first, ~0, and each other value of acp_post.ignore
 * becomes one of its masks when it is used for the first time, while there are fewer than
 * ACP_MASKS_MAX.
 *	-ENOSPC		the rank has ACP_LISTS_MAX match lists
 *	-ENOMEM		out of memory
 *	-EDQUOT		an administrator's limit is reached; "limit" says which
 */
struct acp_match {
	__u32 size;		/* sizeof(struct acp_match) */
	__u32 flags;		/* ACP_MATCH_ */
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

#define ACP_MATCH_LEARN		1u

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
#define ACP_MATCH_SIZE_0	192
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
_Static_assert(sizeof(struct acp_match) == 192, "ABI");
_Static_assert(sizeof(struct acp_result) == 64, "ABI");
_Static_assert(sizeof(struct acp_post) == 72, "ABI");
_Static_assert(sizeof(struct acp_unpost) == 16, "ABI");
#endif

#endif /* ACP_ABI_H */
