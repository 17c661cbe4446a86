/* SPDX-License-Identifier: MIT */
/*
 * Declarations that are shared by the files of the library and hidden from applications.
 *
 *	process.c	rank of this process, end of the process, time, messages
 *	errors.c	texts and errno values of statuses
 *	job.c		placement of ranks on nodes
 *	barrier.c	barriers of all ranks
 *	limits.c	limits of locked memory and of the module, for messages
 *	rank_list.c	text form of a list of ranks
 *	gone.c		ranks that left or are unreachable, for messages
 *	mem.c		regions of this rank, lookup of global addresses
 *	local.c		copies and atomics that the calling thread executes
 *	handle.c	state of an access
 *	wait.c		waiting for completion
 *	failure.c	failed accesses
 *	submit.c	issuing accesses
 *	strided.c	strided and vectored copies, copies with a signal
 *	complete.c	acp_complete()
 *	blame.c		diagnosis of a failed access
 *	queue.c		queues of the process and of single threads
 *	context.c	queues of single threads: the public functions
 *	event.c		states of other ranks, and events
 *	watch.c		waking threads that wait until words change
 *	wait_until.c	waiting until other ranks change words of own memory
 *
 * boot/ reads the parameters of the job and joins it:
 *	boot.c		parameters from the launcher; boot.h lists the files that it uses
 *	join.c		acp_init(), acp_finalize()
 *	device.c	opening the device
 *	missing.c	ranks that have not arrived, for messages
 *	renumber.c	acp_reset()
 *
 * The middle layer uses acp.h and internal.h:
 *	middle/scratch.c	registered memory for temporary use
 *	middle/txlock.c		journaled locks in global memory
 *	heap/heap.c		the global heap; heap_report.c: its state, for messages
 *	pointer.c		detection of pointers that are used as global addresses
 *	channel/block.c		registered memory of larger size
 *	channel/rendezvous.c	connection of two ends; its lock is outside of those of the heap
 *	channel/ring.c		frames of channels
 *	channel/chan.c		channels, with sender.c and receiver.c
 *	channel/segbuf.c	segmented buffers
 *	channel/ws.c		workspaces; its lock is held in the barrier
 *
 * Locks, outermost first. No thread holds one while it waits for another rank, except membership
 * and barrier, which exist for that:
 *	membership (join.c)	joining and leaving
 *	barrier	(barrier.c)	one thread of the process in a barrier
 *	table	(mem.c)		registration
 *	lock	(local.c)	mapping memory of other ranks
 *	lock	(queue.c)	the list of queues and their users
 *	queue	(submit.c)	the submission ring and its failures
 * Address lookup and completion queries take no lock.
 */
#ifndef LIBACP_H
#define LIBACP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"
#include "core/internal.h"
#include "core/rings.h"

#pragma GCC visibility push(hidden)

/* ---- boot.c ---- */

/* Names of the network devices to which link-local addresses belong. */
struct libacp_cards {
	struct libacp_card {
		char name[16];
	} *card;
	uint32_t count;
};

/* Parameters of a job, and the rank of this process. */
struct libacp_boot {
	uint32_t rank, nprocs;
	uint32_t job;
	uint32_t nodes, colors;
	uint32_t port;
	uint32_t integrity;		/* ACP_INTEGRITY_ */
	uint32_t timeout_ms, init_timeout_ms;
	uint64_t init_end;		/* libacp_now() at which acp_init() gives up */
	uint32_t depth;
	uint64_t starter_size, heap_size;	/* bytes */
	uint32_t rank_run_count, node_run_count;
	struct acp_rank_run *rank_runs;	/* allocated by malloc(), like all pointers here */
	struct acp_node_run *node_runs;	/* scope: index into cards plus 1, or 0 */
	struct libacp_cards cards;
	char *keyfile;			/* file with the job key; NULL: see key */
	uint8_t key[16];		/* all zero: no key */
	bool debug;			/* ACP_DEBUG */
	bool engine;			/* started by a launcher that provides PMIx */
};

/*
 * Read the parameters of the job from the options in @argv, which are removed (@argc and @argv may
 * be NULL), from the environment or from PMIx. The caller must call libacp_boot_free() in both
 * cases. Not thread-safe.
 *
 * Returns 0, or -1 after a message on standard error.
 */
int libacp_boot_load(struct libacp_boot *boot, int *argc, char ***argv);

/* Let the time that acp_init() may take begin now. */
void libacp_boot_begin(struct libacp_boot *boot);

/* Free what libacp_boot_load() allocated and clear @boot. */
void libacp_boot_free(struct libacp_boot *boot);

/* Parse a list of nodes into nodes, colors and the node runs of @boot. Returns 0 or -1. */
int libacp_boot_nodes(struct libacp_boot *boot, const char *text);

/*
 * Parse a placement of boot->nprocs ranks on boot->nodes nodes into the rank runs of @boot.
 * Trailing nodes without ranks are removed from the list. Returns 0 or -1.
 */
int libacp_boot_placement(struct libacp_boot *boot, const char *text);

/*
 * Read the job key from the file or from @boot. The caller must wipe @key after use. Returns 0, or
 * -1 after a message on standard error.
 */
int libacp_boot_key(const struct libacp_boot *boot, uint8_t key[16]);

/* ---- process.c ---- */

enum libacp_state {
	LIBACP_OUT,		/* before acp_init, after acp_finalize */
	LIBACP_IN,		/* a rank */
	/* the child of a rank after fork(): the queues belong to the parent */
	LIBACP_FORKED
};

/* State of the process as a rank. It does not change while state is LIBACP_IN. */
struct libacp {
	int state;			/* enum libacp_state, atomic */
	int fd;
	int error_mode;			/* ACPX_ERRORS_, atomic */
	uint32_t rank, nprocs, node, colors;
	struct acp_ga_layout layout;
	acp_ga_t own;			/* rank bits of the global addresses of this rank */
	/* offset bits of a global address, cached for fast decoding */
	uint64_t offset_mask;
	uint32_t stag_mask, rank_shift;
	struct libacp_region *first_chunk;	/* of the STag table */
	struct acp_watch *watch;	/* at the end of the library page */
	bool spin;			/* more than one CPU: a thread may poll before it sleeps */
	struct libacp_boot boot;
	/* ends the ranks that the launcher started; NULL: none */
	void (*abort_engine)(const char *text);
};

extern struct libacp libacp;

/* True while this process is a rank. */
static inline bool libacp_in(void)
{
	return __atomic_load_n(&libacp.state, __ATOMIC_ACQUIRE) == LIBACP_IN;
}

/*
 * Print a message to standard error, abort the job and exit with status 255. Any thread may call
 * it.
 */
void libacp_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/*
 * Handle the abort of the job as reported by the kernel: end the process, or return if the error
 * mode is ACPX_ERRORS_RETURN.
 */
void libacp_job_aborted(void);

/*
 * A seccomp filter may return success for system calls that never reach the module.
 *
 * libacp_is_answered() returns true if the module answers ioctl(2). libacp_no_answer() is called
 * after a successful call that did not set what the module sets: it prints a message once and
 * returns -EIO.
 */
bool libacp_is_answered(void);
int libacp_no_answer(void);

/* ---- errors.c ---- */

/* Return the positive errno value of a status (enum acp_status); 0 for ACP_ST_OK. */
int libacp_errno(int status);

/* ---- job.c ---- */

/* Return the node of @rank, which must be < nprocs. */
uint32_t libacp_boot_node_of(const struct libacp_boot *boot, uint32_t rank);

/* Encode nodes[0 .. nprocs - 1] as runs. Returns their number, or 0 if there are more than @max. */
uint32_t libacp_boot_encode(const uint32_t *nodes, uint32_t nprocs, struct acp_rank_run *runs,
			    uint32_t max);

/* ---- device.c ---- */

/* Open the device. Returns a descriptor, or -1 with errno set after a message on standard error. */
int libacp_device_open(void);

/* ---- limits.c ---- */

#define LIBACP_MEMLOCK_TEXT	400

/* Return RLIMIT_MEMLOCK in bytes. */
uint64_t libacp_memlock(void);

/*
 * Describe in @text that RLIMIT_MEMLOCK prevented the module from locking another @bytes: the
 * limit, the amount this process has locked, and the value to set. @enough: a limit in bytes that
 * is known to suffice, or 0.
 */
void libacp_memlock_text(uint64_t bytes, uint64_t enough, char text[LIBACP_MEMLOCK_TEXT]);

/*
 * Describe in @text why the module found no memory for @bytes, although no limit of its own was
 * reached: the memory limit of the control group, or the machine.
 */
void libacp_memory_text(uint64_t bytes, char text[LIBACP_MEMLOCK_TEXT]);

/* Return the name by which administrators set a limit (ACP_LIMIT_). */
const char *libacp_limit_name(uint64_t limit);

/* Return the shell command that shows a limit (ACP_LIMIT_). */
const char *libacp_limit_place(uint64_t limit);

/* ---- mappings.c ---- */

#define LIBACP_MAPPING_TEXT	400

/*
 * Describe in @text what is mapped at [@start, @end) that the module does not register, or
 * registers only for reading (@writable).
 */
void libacp_mapping_text(uint64_t start, uint64_t end, bool writable,
			 char text[LIBACP_MAPPING_TEXT]);

/* ---- rank_list.c ---- */

#define LIBACP_RANKS_TEXT	200
/* ranges that are listed; ranks beyond them are only counted */
#define LIBACP_RANK_RANGES	8

/* A list of ranks for a message. */
struct libacp_ranks {
	struct {
		uint32_t first, last;
	} range[LIBACP_RANK_RANGES];
	uint32_t ranges, count;
	uint32_t more;			/* ranks that are in no range */
};

/* Add a rank. Ranks must be added in ascending order. */
void libacp_ranks_add(struct libacp_ranks *r, uint32_t rank);

/* Write the list as text: "rank 3", "ranks 1, 2 and 5 to 9". */
void libacp_ranks_name(const struct libacp_ranks *r, char text[LIBACP_RANKS_TEXT]);

/* ---- event.c ---- */

/* Return the state of @rank as known by the kernel. */
struct acp_rank_state libacp_rank_state(uint32_t rank);

/* ---- gone.c ---- */

#define LIBACP_REASON_TEXT	400

struct libacp_gone {
	struct libacp_ranks left, lost;
	int status;			/* status of the first rank in lost */
};

/*
 * Collect the ranks that left or are unreachable. Waits up to a second until the kernel reports at
 * least one.
 */
void libacp_gone_await(struct libacp_gone *gone);

/*
 * Describe the ranks in @text. @how: what the ranks that left did, e.g. "left without
 * acp_finalize".
 */
void libacp_gone_name(const struct libacp_gone *gone, const char *how,
		      char text[LIBACP_REASON_TEXT]);

/*
 * End the job because @call found the barriers broken, with a message that lists the missing ranks.
 */
void libacp_die_of_absence(const char *call) __attribute__((noreturn));

/* ---- barrier.c ---- */

/*
 * Wait in a barrier until all ranks have entered it, or until libacp_now() is @end (UINT64_MAX:
 * never); signals do not extend it. Threads of a process take turns. Returns 0 or -errno; with
 * -EPROTO, sync->node is the node whose parameters differ.
 */
int libacp_barrier_wait(struct acp_sync *sync, uint64_t end);

/* As libacp_barrier_wait(), with @flags (ACP_SYNC_), without timeout. */
int libacp_barrier(uint32_t flags);

/*
 * Handle the failure of a barrier (-errno). In the default error mode, a barrier that can never
 * complete ends the job, because the application may ignore the return value.
 */
void libacp_barrier_failed(const char *call, int error);

/*
 * Wait in a barrier for the function named @call, without timeout, and handle failures. Returns 0,
 * or -1 with errno set.
 */
int libacp_barrier_in(const char *call, uint32_t flags);

/* ---- missing.c ---- */

/* Mark this rank as present, visible to other ranks. */
void libacp_absent_open(void);

/* Print which ranks did not arrive in time, or which left before the job started. */
void libacp_tell_missing(void);
void libacp_tell_left_early(void);

/* ---- renumber.c ---- */

/*
 * Library page of a rank: memory through which the libraries of the ranks communicate. Only its
 * owner writes it, except "ready", "connections" and "failures". All ranks read the page of rank 0.
 */
#define LIBACP_CONNECTIONS	64
/* opens no more ends; all its connection requests have been written */
#define LIBACP_LEAVING	1
#define LIBACP_LEFT	2	/* waits for the last barrier only */

struct libacp_page {
	uint64_t table;			/* global address of the new numbers, indexed by old rank */
	uint64_t runs;			/* global address of the new rank runs */
	uint32_t run_count;		/* 0: the new numbers are rejected */
	/* counter of ranks that can continue, incremented by those ranks */
	uint32_t ready;
	uint32_t number;		/* new rank of the owner */
	/* destination of the previous values of atomics of the owner */
	uint32_t former;
	uint64_t piece[384];		/* buffer for data that the owner reads from other ranks */

	/* rendezvous.c */
	uint64_t connections[LIBACP_CONNECTIONS];	/* written by other ranks; 0: free */
	uint64_t leaving;		/* written by the owner: LIBACP_LEAVING, then LIBACP_LEFT */
	/* ws.c */
	uint64_t workspace;		/* address of the owner's share of a new workspace */
	/* rank 0 only: number of ranks that failed to create one, added by all */
	uint64_t failures;
	uint64_t failures_seen;		/* the owner: value of failures after the last creation */
	uint64_t failures_fetched;	/* destination for reading failures */

	uint64_t here;			/* missing.c: set to 1 by the owner */
};

_Static_assert(sizeof(struct libacp_page) <= ACP_WATCH_OFFSET, "one page, with acp_watch");

/*
 * Agree with all ranks on new numbers. Returns 0 with the new rank and rank runs in libacp.boot, or
 * -errno on all ranks with nothing changed.
 */
int libacp_reset_agree(int rank);

/* ---- mem.c ---- */

struct libacp_region {
	/* color and STag as in the global address, plus 1; 0: free. Stored last. */
	uint64_t tag;
	char *base;		/* first byte */
	acp_ga_t ga;		/* global address of base */
	uint64_t size;		/* bytes */
	uint64_t writable;	/* size, or 0 if the owner must not write */
	uint64_t word_reads;	/* number of offsets at which 8 bytes can be read; 0: none */
	uint64_t word_writes;	/* the same for writing. Both are stored last, as the tag is. */
	uint64_t unused;	/* padding to one cache line */
};

#define LIBACP_CHUNK	64u	/* regions per chunk; any job has at least as many STags */

/* The STag table of this rank, in two levels: STag / LIBACP_CHUNK, STag % LIBACP_CHUNK. */
extern struct libacp_region **libacp_chunks;

/*
 * Return color and STag of an own global address as one number. For addresses of other ranks,
 * higher bits are set.
 */
static inline uint64_t libacp_mem_tag(acp_ga_t ga)
{
	return (ga ^ libacp.own) >> libacp.layout.offset_bits;
}

/*
 * Return the registered region to which @ga of this rank belongs by color and STag, or NULL. The
 * offset is not checked. Lock-free.
 */
static inline struct libacp_region *libacp_mem_region(acp_ga_t ga)
{
	uint64_t tag = libacp_mem_tag(ga);
	uint32_t stag = tag & libacp.stag_mask;
	struct libacp_region *region =
		__atomic_load_n(&libacp_chunks[stag / LIBACP_CHUNK], __ATOMIC_ACQUIRE);

	if (!region)
		return NULL;
	region += stag % LIBACP_CHUNK;
	return __atomic_load_n(&region->tag, __ATOMIC_ACQUIRE) == tag + 1 ? region : NULL;
}

/*
 * Return the address of the bytes [ga, ga + size), or NULL if they are not in one region of this
 * rank that permits the access. Lock-free.
 */
static inline void *libacp_mem_find(acp_ga_t ga, uint64_t size, bool write)
{
	const struct libacp_region *region = libacp_mem_region(ga);
	uint64_t offset, room;

	if (!region)
		return NULL;
	offset = ga - region->ga;
	room = write ? region->writable : region->size;
	if (offset > room || size > room - offset)
		return NULL;
	return region->base + offset;
}

/*
 * Faster variant of libacp_mem_find() for 8 bytes of color 0 in the first chunk. @tag is
 * libacp_mem_tag(ga) and indexes the chunk. A region of another color at this index is recognized
 * by its distance, which exceeds the size of any region. False: use libacp_mem_find(). Lock-free.
 */
static inline bool libacp_mem_find_word(acp_ga_t ga, uint64_t tag, bool write, char **word)
{
	const struct libacp_region *region;
	uint64_t offset, end;

	if (tag >= LIBACP_CHUNK)
		return false;
	region = libacp.first_chunk + tag;
	end = __atomic_load_n(write ? &region->word_writes : &region->word_reads, __ATOMIC_ACQUIRE);
	offset = ga - region->ga;
	if (offset >= end)
		return false;
	*word = region->base + offset;
	return true;
}

/*
 * Create the STag table of this rank, with starter memory, heap and library page. Returns 0 or
 * -errno; libacp_mem_close() must be called in both cases.
 */
int libacp_mem_open(void);

/* Unmap the memory and free the table. */
void libacp_mem_close(void);

/* Return the watch structure at the end of a library page. */
static inline struct acp_watch *libacp_mem_watch(void *page)
{
	return (struct acp_watch *)(void *)((char *)page + ACP_WATCH_OFFSET);
}

/* Return own memory by its STag (ACP_STAG_STARTER ..), or NULL if it has size 0. */
void *libacp_mem_own(uint32_t stag);

/*
 * Map the starter memory, heap or library page of @rank. @size in bytes, rounded up to pages by the
 * kernel. Returns NULL with errno set on failure.
 */
void *libacp_mem_map(uint32_t stag, uint32_t rank, uint64_t size);
void libacp_mem_unmap(void *addr, uint64_t size);

/*
 * Read the sizes in bytes of starter memory, heap and library page of a rank on this node. Returns
 * 0 or -errno.
 */
int libacp_mem_sizes(uint32_t rank, uint64_t sizes[ACP_STAG_RESERVED]);

/* ---- watch.c ---- */

/*
 * Wake threads that wait for a change of @size bytes at the address @at, which is @ga. Returns
 * true, so that callers can tail-call it.
 */
bool libacp_watch_wake(struct acp_watch *watch, acp_ga_t ga, const void *at, uint64_t size);

/*
 * To be called after each write to memory with global addresses on this node: true if a thread of
 * the owner may be asleep until such memory changes. The fence pairs with the one in arm() in
 * wait_until.c.
 */
static inline bool libacp_watch_armed(const struct acp_watch *watch)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __builtin_expect(__atomic_load_n(&watch->armed, __ATOMIC_RELAXED) != 0, 0);
}

/*
 * Wake waiting threads, if any, after a write. Returns true, so that the call of
 * libacp_watch_wake() is a tail call and costs nothing when it is not taken.
 */
static inline bool libacp_watch_written(struct acp_watch *watch, acp_ga_t ga, const void *at,
					uint64_t size)
{
	if (libacp_watch_armed(watch))
		return libacp_watch_wake(watch, ga, at, size);
	return true;
}

/* Wake all threads that wait in a rank on this node. Preserves errno. */
void libacp_watch_wake_rank(uint32_t rank);

/* ---- wait_until.c ---- */

/*
 * Make all waiting threads return -ENOTCONN and wait until they have left. The state is no longer
 * LIBACP_IN, and the memory is still mapped.
 */
void libacp_watch_close(void);

/* ---- local.c ---- */

/* Unmap the memory of all other ranks. No thread may use it any more. */
void libacp_local_close(void);

/*
 * Copy an aligned word. The store becomes visible after previous stores (data before flag) and is
 * never torn.
 */
static inline void libacp_copy_word(void *dst, const void *src)
{
	__atomic_store_n((uint64_t *)dst, __atomic_load_n((const uint64_t *)src, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}

/*
 * Fast path for the most frequent access: copy an aligned word within memory of this rank. @to
 * receives the destination, for the check of waiting threads. False: use libacp_local_copy().
 */
static inline bool libacp_local_copy_word(acp_ga_t dst, acp_ga_t src, char **to)
{
	const uint64_t dst_tag = libacp_mem_tag(dst), src_tag = libacp_mem_tag(src);
	char *from;

	if (!libacp_mem_find_word(dst, dst_tag, true, to) ||
	    !libacp_mem_find_word(src, src_tag, false, &from) ||
	    (((uintptr_t)*to | (uintptr_t)from) & (sizeof(uint64_t) - 1)))
		return false;
	libacp_copy_word(*to, from);
	return true;
}

/*
 * Return the address of the bytes [ga, ga + size), or NULL if this process cannot access them.
 * Thread-safe.
 */
void *libacp_local_reach(acp_ga_t ga, uint64_t size, bool write);

/* Wake threads that wait for a change of these bytes, which the caller has just written. */
void libacp_local_written(acp_ga_t ga, uint64_t size);

/*
 * Execute an access in the calling thread. False, without any effect, if this process cannot reach
 * both ends or an argument is invalid: the kernel must execute or fail it. Thread-safe.
 */
bool libacp_local_copy(acp_ga_t dst, acp_ga_t src, uint64_t size);
bool libacp_local_atomic(unsigned int op, acp_ga_t dst, acp_ga_t src, uint64_t a, uint64_t b);
bool libacp_local_signal(acp_ga_t dst, acp_ga_t src, uint64_t size, acp_ga_t flag,
			 uint64_t operand, bool add);

/* ---- queue.c ---- */

/* For thread-local variables: the fastest TLS access model, wherever the library is loaded. */
#define LIBACP_QUICK	__attribute__((tls_model("initial-exec")))

/*
 * A queue: the rings and the state of the commands that went through them. One queue belongs to the
 * process; a context is a queue that is bound to one thread at a time, which submits without a
 * lock. "lock" also guards the evaluation of failures, see complete.c.
 */
struct libacp_queue {
	struct libacp_rings rings;
	/* number of failures among the tickets up to "judged"; atomic */
	uint64_t failures_seen;
	uint32_t number;		/* upper bits of its tickets, from ACP_TICKET_BITS on */
	int fd;
	/* the calling thread executed the newest access; a hint, atomic */
	bool last_was_local;
	/* closed, and kept only for the thread that is bound to it; atomic */
	bool closed;
	bool loud_gone;			/* some of failures_gone were not quiet */
	pthread_mutex_t lock;
	uint64_t judged;		/* tickets up to this one have been evaluated */
	uint64_t failures_gone;		/* failures after "judged" whose slots have been reused */
	void *sq, *cq;			/* the mappings of rings, and their sizes in bytes */
	size_t sq_bytes, cq_bytes;

	/* contexts only */
	struct libacp_queue *next;
	bool bound;
	unsigned int users;
};

extern struct libacp_queue libacp_main;

/*
 * Queue that the calling thread uses: the context it is bound to, except for accesses of the
 * library itself.
 */
extern _Thread_local struct libacp_queue *libacp_queue LIBACP_QUICK;

/* Called when the queue of the calling thread is closed. Returns the queue to use from now on. */
struct libacp_queue *libacp_queue_fall_back(void);

/* Return the open queue of the calling thread. */
static inline struct libacp_queue *libacp_queue_now(void)
{
	struct libacp_queue *queue = libacp_queue;

	if (__builtin_expect(__atomic_load_n(&queue->closed, __ATOMIC_ACQUIRE), 0))
		return libacp_queue_fall_back();
	return queue;
}

/* Context to which the calling thread is bound; NULL: none. */
extern _Thread_local struct libacp_queue *libacp_bound LIBACP_QUICK;

/* Select the queue of the calling thread: while quiet, the one of the process. */
static inline void libacp_queue_quiet(bool quiet)
{
	libacp_queue = quiet || !libacp_bound ? &libacp_main : libacp_bound;
}

/* True for the queue of the process, to which several threads submit. */
static inline bool libacp_queue_shared(const struct libacp_queue *queue)
{
	return queue == &libacp_main;
}

/* True if the command with this ticket is complete. */
static inline bool libacp_queue_reached(const struct libacp_queue *queue, uint64_t ticket)
{
	return ticket <= libacp_rings_completed(&queue->rings);
}

/*
 * Map the rings of an open file and initialize the queue, with the sizes in bytes and the first
 * ticket that the kernel returned. Returns 0 or -errno; on failure, libacp_queue_unmap() must be
 * called.
 */
int libacp_queue_open(struct libacp_queue *queue, int fd, uint32_t depth, uint64_t first,
		      uint64_t sq_bytes, uint64_t cq_bytes);
void libacp_queue_unmap(struct libacp_queue *queue);

/*
 * Take a reference to the queue with this number, which keeps it mapped until
 * libacp_queue_release(). Returns NULL if there is none. Thread-safe.
 */
struct libacp_queue *libacp_queue_hold(uint32_t number);
void libacp_queue_release(struct libacp_queue *queue);

/*
 * Bind the calling thread to @queue instead of its current one; NULL: to none. Returns 0, -EINVAL
 * (no such queue), -EBUSY (bound to another thread) or -ENOMEM.
 */
int libacp_queue_bind(struct libacp_queue *queue);

/*
 * Contexts: libacp_queue_add() enters one into the list. libacp_queue_seize() reserves it for the
 * caller (0, -EINVAL or -EBUSY), which then waits for its commands and closes it by
 * libacp_queue_remove().
 */
void libacp_queue_add(struct libacp_queue *queue);
int libacp_queue_seize(struct libacp_queue *queue);
void libacp_queue_remove(struct libacp_queue *queue);

/*
 * Write the numbers of up to @most contexts to @numbers and return how many there are. Thread-safe.
 */
uint32_t libacp_queue_numbers(uint32_t *numbers, uint32_t most);

/* Close all contexts. */
void libacp_queues_close(void);

/* Forget all contexts in the child after fork(). */
void libacp_queues_forget(void);

/* ---- context.c ---- */

/*
 * Wait for all commands of all contexts and unbind the calling thread. Returns the queue to which
 * it was bound, or NULL.
 */
struct libacp_queue *libacp_contexts_complete(void);

/* ---- blame.c ---- */

/* End the job with a diagnosis of a failed access. @entry is NULL if its slot has been reused. */
void libacp_die_of_access(const struct acp_sqe *entry, int status) __attribute__((noreturn));

/* ---- handle.c ---- */

static inline acp_handle_t libacp_handle_make(uint64_t ticket, bool local)
{
	return (acp_handle_t)(ticket << 1 | local);
}

/* Return the number of the queue of a handle. Special handles belong to @queue. */
static inline uint32_t libacp_handle_queue(const struct libacp_queue *queue, acp_handle_t handle)
{
	return handle > 0 ? (uint32_t)(handle >> (ACP_TICKET_BITS + 1)) : queue->number;
}

/*
 * Return the ticket of @queue that a handle refers to. For invalid handles it is 0, which is always
 * complete.
 */
static inline uint64_t libacp_handle_ticket(const struct libacp_queue *queue, acp_handle_t handle)
{
	uint64_t newest = libacp_rings_newest(&queue->rings);
	uint64_t ticket = (uint64_t)handle >> 1;

	if (handle == (acp_handle_t)ACP_HANDLE_ALL || handle == (acp_handle_t)ACP_HANDLE_CONT)
		return newest;
	return ticket <= newest ? ticket : 0;
}

/* True if the handle belongs to another queue. */
static inline bool libacp_handle_elsewhere(const struct libacp_queue *queue, acp_handle_t handle)
{
	return libacp_handle_queue(queue, handle) != queue->number;
}

/* True if the access of a handle of another queue is complete. */
bool libacp_handle_reached(acp_handle_t handle);

/* ---- wait.c ---- */

/* Wait for a ticket of a queue, or for all of its tickets. Returns 0 or -errno. */
int libacp_wait_for(const struct libacp_queue *queue, uint64_t ticket);
int libacp_queue_wait(const struct libacp_queue *queue);

/*
 * Wait for a handle of any queue. Returns 0 or -errno; 0 does not mean that the access succeeded.
 */
int libacp_gma_wait(acp_handle_t handle);

/*
 * Wait until the ring has a free slot; the caller holds the right to submit. Returns the newest
 * completed ticket, or 0 if there will never be a free slot. After a sleep a quarter of the ring is
 * free, so that a busy queue sleeps seldom.
 */
uint64_t libacp_wait_for_room(const struct libacp_queue *queue);

/* As libacp_wait_for_room(), inline for the usual case that a slot is free. */
static inline uint64_t libacp_find_room(const struct libacp_queue *queue)
{
	uint64_t completed = libacp_rings_completed(&queue->rings);

	return libacp_rings_room(&queue->rings, completed) ? completed :
							     libacp_wait_for_room(queue);
}

/* CPU hint between two polls. */
static inline void libacp_pause(void)
{
#if __has_builtin(__builtin_ia32_pause)
	__builtin_ia32_pause();
#endif
}

/* ---- failure.c ---- */

/* per slot of the queue of the process: its ticket is quiet */
extern uint8_t *libacp_quiet_marks;
extern _Thread_local bool libacp_quiet_now LIBACP_QUICK;
/* newest ticket at the start of the chain */
extern _Thread_local uint64_t libacp_chain_since LIBACP_QUICK;

/* Reset the state of failures. Returns 0 or -errno. */
int libacp_gma_open(void);

/* Free the state of failures. */
void libacp_gma_close(void);

/*
 * Record the status of the failed ticket @former, whose slot is about to be reused. For the queue
 * of the process, the caller holds its lock.
 */
void libacp_lose_status(struct libacp_queue *queue, uint64_t former, int status);

/* Prepare the slot of the next ticket; the caller holds the right to submit. */
static inline void libacp_take_slot(struct libacp_queue *queue)
{
	const struct libacp_rings *rings = &queue->rings;
	uint64_t ticket = libacp_rings_newest(rings) + 1, former = ticket - rings->depth;
	int status = ticket - rings->first > rings->depth ? libacp_rings_status(rings, former) : 0;

	if (status > 0)
		libacp_lose_status(queue, former, status);
	if (libacp_queue_shared(queue))
		libacp_quiet_marks[ticket & rings->mask] = libacp_quiet_now;
}

/*
 * True if an access of the current chain, up to @order, has failed. @completed: the newest ticket
 * that was complete when the caller checked.
 */
static inline bool libacp_chain_broken(const struct libacp_queue *queue, acp_handle_t order,
				       uint64_t completed)
{
	uint64_t ticket, last;

	if (!libacp_quiet_now || order == (acp_handle_t)ACP_HANDLE_NULL)
		return false;
	last = libacp_handle_ticket(queue, order);
	last = last < completed ? last : completed;
	for (ticket = libacp_chain_since; ticket < last;)
		if (libacp_rings_status(&queue->rings, ++ticket))
			return true;
	return false;
}

/* ---- submit.c ---- */

/* True if the calling thread may execute an access with this order itself. */
bool libacp_may_start(acp_handle_t order);

/* Return the handle of an access that the calling thread has executed. */
acp_handle_t libacp_done_locally(void);

/* Submit one entry. Returns its handle, or ACP_HANDLE_NULL. */
acp_handle_t libacp_submit_one(struct acp_sqe *entry, acp_handle_t order);

/*
 * Submit n > 0 entries that belong together and return the handle of the last one, which fails if
 * any of them fails. next() fills in each entry (op, addresses, size, operands). All entries wait
 * for @order; one whose order is LIBACP_BEHIND waits for the previous entry. Returns
 * ACP_HANDLE_NULL on failure.
 */
#define LIBACP_BEHIND	UINT64_MAX
typedef void libacp_next_t(struct acp_sqe *entry, void *state);
acp_handle_t libacp_submit(size_t n, libacp_next_t *next, void *state, acp_handle_t order);

/*
 * Return an address of this rank at which 0 bytes can be read and written. It is not in starter
 * memory, whose size may be 0.
 */
static inline acp_ga_t libacp_own_nothing(void)
{
	return acp_ga_make(&libacp.layout, libacp.rank, 0, ACP_STAG_LIBRARY, 0);
}

/* ---- complete.c ---- */

/* Check a queue for unreported failures; in the default error mode they end the job. */
void libacp_queue_check(struct libacp_queue *queue);

/* As libacp_queue_check(), for the queue of the process and that of the calling thread. */
void libacp_gma_check(void);

#pragma GCC visibility pop

#endif /* LIBACP_H */
