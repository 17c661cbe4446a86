/* SPDX-License-Identifier: MIT */
/* Queues of the process and of single threads. */
#ifndef LIBACP_QUEUE_H
#define LIBACP_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rings.h"

#pragma GCC visibility push(hidden)

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
	uint64_t messages;		/* ticket of the newest message; atomic */
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

/**
 * libacp_queue_reached() - is the command with this ticket complete?
 * @queue: the queue
 * @ticket: a ticket of it
 *
 * Context: any thread; does not block.
 * Return: true if it is, and if all before it are.
 */
static inline bool libacp_queue_reached(const struct libacp_queue *queue, uint64_t ticket)
{
	return ticket <= libacp_rings_completed(&queue->rings);
}

/**
 * libacp_queue_open() - map the rings of an open file, and initialize a queue
 * @queue: the queue
 * @fd: the file, which has joined (libacp_main) or is attached (a context)
 * @depth: number of slots of the rings, a power of two
 * @first: the first ticket, from the kernel; 1 for libacp_main
 * @sq_bytes: size in bytes of the mapping of the submission ring, from the kernel
 * @cq_bytes: size in bytes of the mapping of the completion ring, from the kernel
 *
 * Context: no other thread uses @queue yet.
 * Return: 0 or -errno; on failure, libacp_queue_unmap() must be called.
 */
int libacp_queue_open(struct libacp_queue *queue, int fd, uint32_t depth, uint64_t first,
		      uint64_t sq_bytes, uint64_t cq_bytes);

/**
 * libacp_queue_unmap() - unmap the rings of a queue
 * @queue: the queue; both rings, one of them or none may be mapped
 *
 * Context: no other thread uses the rings any more.
 */
void libacp_queue_unmap(struct libacp_queue *queue);

/*
 * Take a reference to the queue with this number, which keeps it mapped until
 * libacp_queue_release(). Returns NULL if there is none. Thread-safe.
 */
struct libacp_queue *libacp_queue_hold(uint32_t number);
void libacp_queue_release(struct libacp_queue *queue);

/**
 * libacp_queue_bind() - bind the calling thread to a context instead of its current one
 * @queue: queue of the context; NULL: bind the thread to none
 *
 * Context: any thread; takes the lock of queue.c.
 * Return: 0; -EINVAL if there is no such queue; -EBUSY if it is bound to another thread; -ENOMEM.
 */
int libacp_queue_bind(struct libacp_queue *queue);

/* Enter the queue of a context into the list. */
void libacp_queue_add(struct libacp_queue *queue);

/**
 * libacp_queue_seize() - reserve the queue of a context for the caller, which removes it
 * @queue: the queue, or NULL
 *
 * Context: any thread; takes the lock of queue.c.
 * Return: 0; -EINVAL if there is no such queue; -EBUSY if it is bound to another thread.
 */
int libacp_queue_seize(struct libacp_queue *queue);

/**
 * libacp_queue_remove() - close the queue of a context
 * @queue: the queue, reserved by libacp_queue_seize(); commands that are not complete end
 *
 * Context: any thread; waits until all references are released, takes the lock of queue.c.
 */
void libacp_queue_remove(struct libacp_queue *queue);

/*
 * Write the numbers of up to @most contexts to @numbers and return how many there are. Thread-safe.
 */
uint32_t libacp_queue_numbers(uint32_t *numbers, uint32_t most);

/**
 * libacp_queues_close() - close all contexts
 *
 * Waits until all references (libacp_queue_hold()) are released. A context to which another thread
 * is bound stays allocated until that thread notices that it is closed, or ends.
 *
 * Context: the thread that leaves; may block; takes the lock of queue.c.
 */
void libacp_queues_close(void);

/**
 * libacp_queues_forget() - forget all contexts in the child after fork()
 *
 * Closes the files of the contexts.
 *
 * Context: the only thread of the child. Takes no lock, since threads that do not exist in the
 * child may hold it.
 */
void libacp_queues_forget(void);

#pragma GCC visibility pop

#endif /* LIBACP_QUEUE_H */
