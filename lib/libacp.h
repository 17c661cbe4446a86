/* SPDX-License-Identifier: MIT */
/*
 * What the files of the library share and nobody else sees.
 *
 *	boot.c	what the launcher said; boot.h has the files that belong to it
 *	init.c	a process becomes a rank, and stops being one
 *	reset.c	all ranks change their numbers
 *	mem.c	regions of this rank, and what a global address names
 *	local.c	copies and atomics done by the calling thread
 *	gma.c	copies and atomics done by the kernel; completion
 *	context.c	queues of single threads
 *	event.c	what is known of other ranks
 *	watch.c	sleeping until others have changed words of own memory
 *
 * On top of these is the middle layer, which uses acp.h and middle.h:
 *	middle.c	beginning and end of its parts
 *	scratch.c	registered memory to work with
 *	section.c	critical sections in global memory
 *	heap.c		the global heap
 *	block.c		longer registered memory
 *	meet.c		two ends find each other; its lock is outside of those of the heap
 *	ring.c		frames of channels
 *	chan.c		channels: with sender.c and receiver.c
 *	segbuf.c	segmented buffers
 *	ws.c		workspaces; its lock is held in the barrier
 *
 * Locks, outermost first; none is held while waiting for another rank,
 * except life and sync, which exist for that:
 *	life	(init.c)	joining and leaving
 *	sync	(init.c)	one thread in the barrier
 *	table	(mem.c)		registering
 *	peers	(local.c)	mapping memory of other ranks
 *	contexts (context.c)	those that there are, and who uses them
 *	lane	(gma.c)		the submission ring, and its failures
 * Looking up an address, and asking whether something is complete, takes none.
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
#include "middle.h"
#include "queue.h"

#pragma GCC visibility push(hidden)

/* ---- boot.c ---- */

/* A job, and this process's place in it. */
struct libacp_boot {
	uint32_t rank, nprocs;
	uint32_t job;
	uint32_t nodes, colors;
	uint32_t port;
	uint32_t integrity;		/* ACP_INTEGRITY_ */
	uint32_t timeout_ms, init_timeout_ms;
	uint32_t depth;
	uint64_t starter_size, heap_size;	/* bytes */
	uint32_t rank_run_count, node_run_count;
	struct acp_rank_run *rank_runs;	/* malloc'ed, as everything here */
	struct acp_node_run *node_runs;
	char *keyfile;			/* NULL: the key is this one, */
	uint8_t key[16];		/* all zero if there is none */
	bool engine;			/* one that speaks PMIx has started this process */
};

/*
 * Read the options in argv (and remove them; argc and argv may be NULL) and
 * the environment.  0, or -1 after a line on standard error; in both cases
 * libacp_boot_free() is due.
 */
int libacp_boot_load(struct libacp_boot *boot, int *argc, char ***argv);
void libacp_boot_free(struct libacp_boot *boot);

/* Parse a list of nodes; sets nodes, colors and the node runs.  0 or -1. */
int libacp_boot_nodes(struct libacp_boot *boot, const char *text);

/*
 * Parse a placement of boot->nprocs ranks on boot->nodes nodes.  Nodes at the
 * end of the list that get no rank are taken off it.  0 or -1.
 */
int libacp_boot_placement(struct libacp_boot *boot, const char *text);

/* Read the job key; the caller wipes it.  0, or -1 after a line on standard error. */
int libacp_boot_key(const struct libacp_boot *boot, uint8_t key[16]);

/* The node of a rank < nprocs. */
uint32_t libacp_boot_node_of(const struct libacp_boot *boot, uint32_t rank);

/*
 * Code nodes[0 .. nprocs - 1] as runs, at most max of them.  Returns their
 * number, or 0 if they are too many.
 */
uint32_t libacp_boot_encode(const uint32_t *nodes, uint32_t nprocs, struct acp_rank_run *runs,
			    uint32_t max);

/* ---- init.c ---- */

enum libacp_state {
	LIBACP_OUT,		/* before acp_init, after acp_finalize */
	LIBACP_IN,		/* a rank */
	LIBACP_FORKED		/* child of a rank: the queues are not ours */
};

/* The rank that this process is.  While state is LIBACP_IN it does not change. */
struct libacp {
	int state;			/* enum libacp_state, atomic */
	int fd;
	int error_mode;			/* ACPX_ERRORS_, atomic */
	uint32_t rank, nprocs, node, colors;
	struct acp_ga_layout layout;
	acp_ga_t own;			/* the rank's bits of its own GAs */
	uint64_t offset_mask;		/* and those of all GAs, to take them apart quickly */
	uint32_t stag_mask, rank_shift;
	struct libacp_region *first_chunk;	/* of the STag table */
	struct acp_watch *watch;	/* at the end of the library page */
	bool spin;			/* more than one CPU: waiting may go without sleeping */
	struct libacp_boot boot;
};

extern struct libacp libacp;

static inline bool libacp_in(void)
{
	return __atomic_load_n(&libacp.state, __ATOMIC_ACQUIRE) == LIBACP_IN;
}

/* What an administrator knows a limit (ACP_LIMIT_) by. */
const char *libacp_limit_name(uint64_t limit);

/* Meet all ranks; flags: ACP_SYNC_.  0 or -errno. */
int libacp_barrier(uint32_t flags, uint64_t timeout_ns);

/* End the job and the process: a line on standard error, exit status 255. */
void libacp_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* What to do when the kernel says that the job was aborted: by error mode, die or return. */
void libacp_job_aborted(void);

/* ---- reset.c ---- */

/*
 * The library page of a rank, where the library meets itself.  Written by
 * its owner, except ready and letters; rank 0's is read by all.
 */
#define LIBACP_LETTERS	64
#define LIBACP_LEAVING	1	/* opens no more ends; its letters are all there */
#define LIBACP_LEFT	2	/* waits for nothing but the last barrier */

struct libacp_page {
	uint64_t table;			/* GA of the new numbers, indexed by old rank */
	uint64_t runs;			/* GA of the new rank runs */
	uint32_t run_count;		/* 0: the new numbers are refused */
	uint32_t ready;			/* ranks that can go on, counted by themselves */
	uint32_t number;		/* the owner's new rank */
	uint32_t former;		/* where the owner's atomics end */
	uint64_t piece[384];		/* what the owner fetches from others */

	/* meet.c */
	uint64_t letters[LIBACP_LETTERS];	/* by others, 0: free */
	uint64_t leaving;		/* the owner: LIBACP_LEAVING, then LIBACP_LEFT */
	/* ws.c */
	uint64_t workspace;		/* where the owner's part of a new one is */
	uint64_t failures;		/* rank 0's, by all: ranks that could not create one */
	uint64_t failures_seen;		/* the owner: what it was after the last creation */
	uint64_t failures_fetched;	/* where it comes */
};

_Static_assert(sizeof(struct libacp_page) <= ACP_WATCH_OFFSET, "one page, with acp_watch");

/*
 * Agree with all ranks on their new numbers: 0 with the new rank and rank
 * runs in libacp.boot, or -errno (on all ranks) with everything as it was.
 */
int libacp_reset_agree(int rank);

/* ---- mem.c ---- */

struct libacp_region {
	uint64_t tag;		/* color and STag as in the GA, plus 1; 0: none.  Written last */
	char *base;		/* first byte */
	acp_ga_t ga;		/* its address */
	uint64_t size;		/* bytes */
	uint64_t writable;	/* the same, 0 if the owner must not write */
	uint64_t word_reads;	/* offsets below this are those of 8 bytes in it.  0: none */
	uint64_t word_writes;	/* ... that the owner may write.  Both are written last, too */
	uint64_t unused;	/* a cache line each */
};

#define LIBACP_CHUNK	64u	/* regions; as many STags as there are at least */

/* The STag table of this rank: index STag / LIBACP_CHUNK, then STag % LIBACP_CHUNK. */
extern struct libacp_region **libacp_chunks;

/* Color and STag of an own GA, side by side; foreign ones have bits above them. */
static inline uint64_t libacp_mem_tag(acp_ga_t ga)
{
	return (ga ^ libacp.own) >> libacp.layout.offset_bits;
}

/* The live region that a GA of this rank belongs to, by rank, color and STag alone. */
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
 * Where the bytes [ga, ga + size) of this rank are, if they all lie in one
 * live region of that color that allows it, else NULL.  Lock-free.
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
 * The same in fewer steps for 8 bytes, color 0, and the STags of the first
 * chunk: false says nothing of others.  Given what libacp_mem_tag() is of it,
 * which is the place in the chunk; of what has another color there, the
 * distance is longer than any region.
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

/* The STag table of this rank, with starter, heap and library page in it.  0 or -errno. */
int libacp_mem_open(void);
void libacp_mem_close(void);

/* What is at the end of a library page. */
static inline struct acp_watch *libacp_mem_watch(void *page)
{
	return (struct acp_watch *)(void *)((char *)page + ACP_WATCH_OFFSET);
}

/* Own memory of one of the kernel's STags (ACP_STAG_STARTER ..); NULL if it has none. */
void *libacp_mem_own(uint32_t stag);

/* Map a rank's starter, heap or library page; NULL on failure.  Rounded up to pages. */
void *libacp_mem_map(uint32_t stag, uint32_t rank, uint64_t size);
void libacp_mem_unmap(void *addr, uint64_t size);

/* Sizes of the kernel's regions of a rank on this node.  0 or -errno. */
int libacp_mem_sizes(uint32_t rank, uint64_t sizes[ACP_STAG_RESERVED]);

/* ---- watch.c ---- */

/* Those who wait for what lies at a global address, which is "at" here, are woken.  True. */
bool libacp_watch_wake(struct acp_watch *watch, acp_ga_t ga, const void *at, uint64_t size);

/*
 * After each write to memory that has global addresses, of this rank or another
 * on the node: does anybody sleep there until such memory changes?  The fence
 * pairs with the waiter's in watch.c.
 */
static inline bool libacp_watch_armed(const struct acp_watch *watch)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __builtin_expect(__atomic_load_n(&watch->armed, __ATOMIC_RELAXED) != 0, 0);
}

/* If so, wake them.  True, to be returned: a call there would cost who does not make it. */
static inline bool libacp_watch_written(struct acp_watch *watch, acp_ga_t ga, const void *at,
					uint64_t size)
{
	if (libacp_watch_armed(watch))
		return libacp_watch_wake(watch, ga, at, size);
	return true;
}

/* Threads that wait leave with -ENOTCONN: state is not IN any more, memory is still there. */
void libacp_watch_close(void);

/* ---- local.c ---- */

void libacp_local_close(void);

/* Where a byte is: like libacp_mem_find, also for starter and heap of the ranks on this node. */
void *libacp_local_find(acp_ga_t ga);

/*
 * A copy is visible after the copies before it (the data before the flag),
 * and words that are aligned are never seen half written.
 */
static inline void libacp_copy_word(void *dst, const void *src)
{
	__atomic_store_n((uint64_t *)dst, __atomic_load_n((const uint64_t *)src, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}

/*
 * What is asked for most: an aligned word within own memory, to where the caller looks who
 * watches.  False: try libacp_local_copy().
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

/* The bytes [ga, ga + size), or NULL: out of reach, or not to be written. */
void *libacp_local_reach(acp_ga_t ga, uint64_t size, bool write);

/* What was so found was written to: those who wait for that are woken. */
void libacp_local_written(acp_ga_t ga, uint64_t size);

/* Do it now: true, or false without any effect if an end is out of reach or wrong. */
bool libacp_local_copy(acp_ga_t dst, acp_ga_t src, uint64_t size);
bool libacp_local_atomic(unsigned int op, acp_ga_t dst, acp_ga_t src, uint64_t a, uint64_t b);
bool libacp_local_signal(acp_ga_t dst, acp_ga_t src, uint64_t size, acp_ga_t flag,
			 uint64_t operand, bool add);

/* ---- context.c ---- */

/* Of what is _Thread_local: found in few steps, wherever the library is loaded. */
#define LIBACP_QUICK	__attribute__((tls_model("initial-exec")))

/*
 * A lane: a submission queue, and what is known of what went through it.  One is
 * the process's; a context is one of a single thread at a time, which needs no lock to
 * submit.  The lock guards judging, too: see gma.c.
 */
struct libacp_lane {
	struct libacp_queue queue;
	uint64_t failures_seen;		/* among the tickets up to "judged"; atomic */
	uint32_t number;		/* in its tickets above ACP_TICKET_BITS */
	int fd;
	bool last_was_local;		/* the newest GMA was done by its caller; a hint, atomic */
	bool closed;			/* gone, but for the thread that is bound to it; atomic */
	bool loud_gone;			/* some of failures_gone were not quiet */
	pthread_mutex_t lock;
	uint64_t judged;		/* tickets up to this one were looked at */
	uint64_t failures_gone;		/* later failures whose slots were taken by others */
	void *sq, *cq;			/* the mappings behind queue, and their sizes */
	size_t sq_bytes, cq_bytes;

	/* of a context: context.c */
	struct libacp_lane *next;
	bool bound;
	unsigned int users;
};

extern struct libacp_lane libacp_main;

/* The calling thread's: the one it is bound to, but for what the library does itself. */
extern _Thread_local struct libacp_lane *libacp_lane LIBACP_QUICK;

/* It is closed: what the thread uses from now on. */
struct libacp_lane *libacp_lane_fall_back(void);

static inline struct libacp_lane *libacp_lane_now(void)
{
	struct libacp_lane *lane = libacp_lane;

	if (__builtin_expect(__atomic_load_n(&lane->closed, __ATOMIC_ACQUIRE), 0))
		return libacp_lane_fall_back();
	return lane;
}

/* The context it is bound to; NULL: none. */
extern _Thread_local struct libacp_lane *libacp_bound LIBACP_QUICK;

/* The library's own accesses go by the process's lane, whatever the thread is bound to. */
static inline void libacp_lane_quiet(bool quiet)
{
	libacp_lane = quiet || !libacp_bound ? &libacp_main : libacp_bound;
}

/* Its mappings and numbers, from what the kernel said of an open file.  0 or -errno. */
int libacp_lane_open(struct libacp_lane *lane, int fd, uint32_t depth, uint64_t first,
		     uint64_t sq_bytes, uint64_t cq_bytes);
void libacp_lane_unmap(struct libacp_lane *lane);

/* The lane with that number, which stays until it is released; NULL: there is none. */
struct libacp_lane *libacp_lane_hold(uint32_t number);
void libacp_lane_release(struct libacp_lane *lane);

/* The calling thread is bound to it from now on, and to nothing else; NULL: none.  0 or -errno. */
int libacp_lane_bind(struct libacp_lane *lane);

/*
 * All contexts: wait for what was issued, bound to none from then on (returns what the thread
 * was bound to, or NULL); end them; forget them in a child.
 */
struct libacp_lane *libacp_contexts_complete(void);
void libacp_contexts_close(void);
void libacp_contexts_forget(void);

/* ---- gma.c ---- */

/* Forget all handles.  0 or -errno. */
int libacp_gma_open(void);
void libacp_gma_close(void);

/* May an access with this order be done by the calling thread?  Then what it returns. */
bool libacp_may_start(acp_handle_t order);
acp_handle_t libacp_done_locally(void);

acp_handle_t libacp_submit_one(struct acp_sqe *entry, acp_handle_t order);

/*
 * Submit n > 0 entries that belong together: the last one's handle; it fails if any of them
 * does.  next() fills one after the other (op, addresses, size, operands).  Each waits for
 * "order"; one whose order is LIBACP_BEHIND waits for the entry before it.
 */
#define LIBACP_BEHIND	UINT64_MAX
typedef void libacp_next_t(struct acp_sqe *entry, void *state);
acp_handle_t libacp_submit(size_t n, libacp_next_t *next, void *state, acp_handle_t order);

/* Where 0 bytes of this rank can be read and written; there need not be starter memory. */
static inline acp_ga_t libacp_own_nothing(void)
{
	return acp_ga_make(&libacp.layout, libacp.rank, 0, ACP_STAG_LIBRARY, 0);
}

/* Wait for all of a lane; then, did anything fail that nobody was told of?  As acp_complete(). */
int libacp_lane_wait(const struct libacp_lane *lane);
void libacp_lane_check(struct libacp_lane *lane);

/* Wait for a handle: 0, or -errno.  Whether it failed is another question. */
int libacp_gma_wait(acp_handle_t handle);

/* Between two looks at what somebody else is to change. */
static inline void libacp_pause(void)
{
#if __has_builtin(__builtin_ia32_pause)
	__builtin_ia32_pause();
#endif
}

/* Commands that failed and that nobody was told of: in the default mode they end the job. */
void libacp_gma_check(void);

#pragma GCC visibility pop

#endif /* LIBACP_H */
