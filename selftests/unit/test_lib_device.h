/* SPDX-License-Identifier: MIT */
/*
 * A fake /dev/acp in the process under test: link with
 *	-Wl,--wrap=open,--wrap=close,--wrap=ioctl,--wrap=syscall,--wrap=mmap,--wrap=munmap
 *
 * Both sides use the same mapping, so that ThreadSanitizer checks their synchronization. It acts as
 * the kernel of rank 0 (or of the rank that joins) in a job of up to FAKE_RANKS ranks. Starter
 * memory and heap of all ranks exist; accesses to a rank on another node are executed here as well,
 * through the ring, by the one thread that acts as the kernel. The only atomic is ADD8.
 */
#ifndef TEST_LIB_DEVICE_H
#define TEST_LIB_DEVICE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "acp_abi.h"
#include "acp_ga.h"
#include "mailbox_play.h"
#include "test.h"

#define FAKE_RANKS	8
#define FAKE_REGIONS	64
#define FAKE_PAGE	4096
#define FAKE_QUEUES	16	/* limit of attached queues */

struct fake_region {
	struct acp_reg reg;
	unsigned int count;
};

/* A ring. fd: -1 if it does not exist; sq: NULL if it is not attached yet. */
struct fake_queue {
	int fd;
	uint32_t number, depth;
	struct acp_sq *sq;
	struct acp_cq *cq;
	uint64_t head;
	uint8_t carried;		/* status of the previous entry, if that has MORE */
	uint64_t sq_bytes, cq_bytes;
};

/* The lock guards everything except the rings. */
static struct fake_device {
	/* set by the test */
	int open_error, join_error, sync_error, reg_error;	/* errno, or 0 */
	unsigned int join_errors;	/* number of failures with join_error; 0: unlimited */
	bool hold;			/* do not execute commands */
	uint64_t held;			/* ... of these queues, a bit mask of numbers */
	int attach_error;		/* errno, or 0 */
	uint32_t limit;			/* limit returned with failures of join and registration */
	/* number of barriers after which all commands fail; 0: never */
	unsigned int lost_after;
	bool aborted;
	/* results for the test */
	struct acp_join join;		/* of the last join; its runs are not valid any more */
	uint8_t key[16];
	bool final;			/* the last barrier was a final one */
	unsigned int doorbells, waits, syncs, aborts, regs, maps;
	/* number of sleeps until a write, and of wake-ups by the library */
	unsigned int watches, wakes;
	uint32_t woken;			/* rank of the last wake-up */
	bool polls;			/* poll() reports when "wakes" differs from "polled" */
	uint64_t polled;
	bool deaf;			/* set by the test: only wake-ups end a sleep */
	unsigned int signals;		/* ... number of sleeps that end with EINTR */
	uint64_t alarm_ns;		/* ... a barrier never completes; signals come so often */
	bool far;			/* only ranks 2n and 2n + 1 share a node */
	/* ... calls and messages to match lists; called with the lock held */
	int (*match)(unsigned long request, void *arg);
	uint8_t (*arrive)(uint32_t list, uint32_t rank, uint64_t tag, const char *data,
			  uint64_t size);
	uint32_t states[FAKE_RANKS], statuses[FAKE_RANKS];	/* known states of ranks */

	int fd;				/* -1: not open */
	pid_t owner;			/* a forked child has all of this, but no thread */
	char *memory[ACP_STAG_RESERVED][FAKE_RANKS];
	uint64_t sizes[ACP_STAG_RESERVED];
	struct acp_sq *sq;
	struct acp_cq *cq;
	uint64_t head;
	uint8_t carried;		/* as in struct fake_queue */
	struct fake_queue further[FAKE_QUEUES];
	uint32_t last_queue;
	struct acp_ga_layout layout;
	struct fake_region regions[FAKE_REGIONS];
	bool stop;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
} fake = {
	.fd = -1,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

int __real_open(const char *path, int flags, ...);
int __real_close(int fd);
int __real_ioctl(int fd, unsigned long request, ...);
long __real_syscall(long number, ...);
void *__real_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *addr, size_t length);

/* ---- Execution ---- */

/* Return up to size bytes at a GA, or NULL with a status. */
static char *fake_find(uint64_t ga, uint64_t size, uint8_t *status)
{
	const struct acp_ga_layout *l = &fake.layout;
	uint64_t offset = acp_ga_offset(l, ga);
	uint32_t rank = acp_ga_rank(l, ga), stag = acp_ga_stag(l, ga);
	const struct acp_reg *reg;

	*status = ACP_ST_GA;
	if (!acp_ga_valid(l, ga) || acp_ga_color(l, ga) >= fake.join.colors)
		return NULL;
	*status = ACP_ST_RANGE;
	if (stag < ACP_STAG_RESERVED) {
		if (offset > fake.sizes[stag] || size > fake.sizes[stag] - offset)
			return NULL;
		return fake.memory[stag][rank] + offset;
	}
	reg = &fake.regions[stag % FAKE_REGIONS].reg;
	if (rank != fake.join.rank || stag >= FAKE_REGIONS || reg->key != ga - offset) {
		*status = ACP_ST_STAG;
		return NULL;
	}
	if (offset < reg->base - reg->start || offset > reg->end - reg->start ||
	    size > reg->end - reg->start - offset)
		return NULL;
	return (char *)(uintptr_t)reg->start + offset;
}

static struct acp_watch *fake_watch_of(uint32_t rank)
{
	return (struct acp_watch *)(void *)(fake.memory[ACP_STAG_LIBRARY][rank] +
					    ACP_WATCH_OFFSET);
}

/* Called with the lock held. */
static void fake_wake(uint32_t rank)
{
	__atomic_store_n(&fake_watch_of(rank)->armed, 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&fake_watch_of(rank)->wakes, 1, __ATOMIC_SEQ_CST);
	pthread_cond_broadcast(&fake.changed);
}

/* To be called after a write of up to 64 bytes to the rank that joined. */
static void fake_written(uint64_t ga, uint64_t size)
{
	struct acp_watch *w = fake_watch_of(fake.join.rank);
	uint64_t offset = acp_ga_offset(&fake.layout, ga);

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&w->armed, __ATOMIC_RELAXED) || !size ||
	    acp_ga_rank(&fake.layout, ga) != fake.join.rank)
		return;
	if (__atomic_load_n(&w->lines[ACP_WATCH_LINE(offset)], __ATOMIC_RELAXED) ||
	    __atomic_load_n(&w->lines[ACP_WATCH_LINE(offset + size - 1)], __ATOMIC_RELAXED))
		fake_wake(fake.join.rank);
}

/* Block by block: a block beyond the memory fails at its position. */
static uint8_t fake_strided(const struct acp_sqe *e)
{
	uint64_t i, block = (uint32_t)e->size;
	uint8_t status = ACP_ST_OK;
	char *src, *dst;

	for (i = 0; i < e->size >> 32; i++) {
		src = fake_find(e->src + i * e->b, block, &status);
		dst = src ? fake_find(e->dst + i * e->a, block, &status) : NULL;
		if (!dst)
			return status;
		memmove(dst, src, block);
	}
	return ACP_ST_OK;
}

/* A copy and its flag. */
static uint8_t fake_signal(const struct acp_sqe *e)
{
	uint8_t status;
	char *src = fake_find(e->src, e->size, &status);
	char *dst = src ? fake_find(e->dst, e->size, &status) : NULL;
	char *flag = dst ? fake_find(e->a, 8, &status) : NULL;

	if (!flag)
		return status;
	if (acp_ga_rank(&fake.layout, e->a) / 2 != acp_ga_rank(&fake.layout, e->dst) / 2)
		return ACP_ST_OP;
	memmove(dst, src, e->size);
	if (e->op == ACP_OP_COPY_ADD)
		__atomic_fetch_add((uint64_t *)(void *)flag, e->b, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n((uint64_t *)(void *)flag, e->b, __ATOMIC_SEQ_CST);
	return ACP_ST_OK;
}

/* A message into a mailbox of the rank that joined. */
static uint8_t fake_send(const struct acp_sqe *e)
{
	uint8_t status;
	char *src = e->size ? fake_find(e->src, e->size, &status) : "";
	char *box = src ? fake_find(e->dst, sizeof(struct acp_mailbox), &status) : NULL;
	struct acp_record *r;

	if (box && ((struct acp_mailbox *)(void *)box)->list)
		return fake.arrive(((struct acp_mailbox *)(void *)box)->list, fake.join.rank, e->b,
				   src, e->size);
	if (box)
		status = play_reserve((struct acp_mailbox *)(void *)box, e->size, &r);
	if (!box || status)
		return status;
	play_write(r, fake.join.rank, e->b, src, e->size);
	fake_written(e->dst + (uint64_t)((char *)r - box), sizeof(r->state));
	return ACP_ST_OK;
}

static uint8_t fake_execute(const struct acp_sqe *e)
{
	uint64_t size = e->op == ACP_OP_COPY ? e->size : 8;
	uint8_t status = ACP_ST_OP;
	char *src, *dst;

	if (fake.aborted)
		return ACP_ST_ABORT;
	if (fake.lost_after && fake.syncs >= fake.lost_after)
		return ACP_ST_TIMEOUT;
	if (e->op == ACP_OP_STRIDED)
		return fake_strided(e);
	if (e->op == ACP_OP_COPY_SET || e->op == ACP_OP_COPY_ADD)
		return fake_signal(e);
	if (e->op == ACP_OP_SEND)
		return fake_send(e);
	if (e->op != ACP_OP_COPY && e->op != ACP_OP_ADD8)
		return status;
	src = fake_find(e->src, size, &status);
	dst = src ? fake_find(e->dst, size, &status) : NULL;
	if (!dst)
		return status;
	if (e->op == ACP_OP_ADD8 && (e->src | e->dst) % 8)
		return ACP_ST_ALIGN;
	if (e->op == ACP_OP_COPY && size == 8 && e->dst % 8 == 0)
		__atomic_store_n((uint64_t *)(void *)dst, *(uint64_t *)(void *)src,
				 __ATOMIC_RELEASE);
	else if (e->op == ACP_OP_COPY)
		memmove(dst, src, size);
	else
		*(uint64_t *)(void *)dst = __atomic_fetch_add((uint64_t *)(void *)src, e->a,
							      __ATOMIC_SEQ_CST);
	fake_written(e->dst, size);
	if (e->op != ACP_OP_COPY)
		fake_written(e->src, size);
	return ACP_ST_OK;
}

/* True if there are commands to execute. Called with the lock held, as all of these functions. */
static bool fake_work_of(uint32_t number, const struct acp_sq *sq, uint64_t head)
{
	return !fake.hold && sq && !(fake.held >> number & 1) &&
	       __atomic_load_n(&sq->tail, __ATOMIC_ACQUIRE) != head;
}

static bool fake_work(void)
{
	const struct fake_queue *q;
	bool work = fake_work_of(0, fake.sq, fake.head);

	for (q = fake.further; q < fake.further + FAKE_QUEUES; q++)
		work = work || fake_work_of(q->number, q->sq, q->head);
	return work;
}

/* True if an access that an entry waits for has failed. Only statuses that are still kept count. */
static bool fake_order_failed(const struct acp_sqe *e, const struct acp_cq *cq, uint32_t depth,
			      uint64_t head)
{
	uint64_t kept = depth - 1, t = e->seen;

	if (head > kept && t < head - kept)
		t = head - kept;
	while (t < e->order)
		if (cq->status[++t & kept])
			return true;
	return false;
}

static void fake_take(struct acp_sq *sq, struct acp_cq *cq, uint32_t depth, uint64_t *head,
		      uint8_t *carried)
{
	struct acp_sqe *entries = (struct acp_sqe *)(sq + 1);
	uint64_t ticket = *head + 1;
	uint32_t slot = ticket & (depth - 1);
	struct acp_sqe entry = entries[slot];
	uint8_t status = fake_order_failed(&entry, cq, depth, *head) ? ACP_ST_ORDER :
								       fake_execute(&entry);

	if (!status || (*carried && status == ACP_ST_ORDER))
		status = *carried;
	*carried = entry.flags & ACP_SQE_MORE ? status : 0;
	__atomic_store_n(&cq->status[slot], status, __ATOMIC_RELAXED);
	if (status)
		__atomic_fetch_add(&cq->failed, 1, __ATOMIC_RELAXED);
	*head = ticket;
	__atomic_store_n(&cq->completed, ticket, __ATOMIC_RELEASE);
	if (status)
		fake_wake(fake.join.rank);
}

static void fake_drain(void)
{
	struct fake_queue *q;

	while (fake_work_of(0, fake.sq, fake.head))
		fake_take(fake.sq, fake.cq, fake.join.depth, &fake.head, &fake.carried);
	for (q = fake.further; q < fake.further + FAKE_QUEUES; q++)
		while (fake_work_of(q->number, q->sq, q->head))
			fake_take(q->sq, q->cq, q->depth, &q->head, &q->carried);
	pthread_cond_broadcast(&fake.changed);
}

static void fake_flag(bool wakeup)
{
	struct acp_cq *cqs[FAKE_QUEUES + 1] = { fake.cq };
	int i;

	for (i = 0; i < FAKE_QUEUES; i++)
		cqs[i + 1] = fake.further[i].cq;
	for (i = 0; i <= FAKE_QUEUES; i++) {
		if (cqs[i] && wakeup)
			__atomic_fetch_or(&cqs[i]->flags, ACP_CQ_NEED_WAKEUP, __ATOMIC_RELAXED);
		else if (cqs[i])
			__atomic_fetch_and(&cqs[i]->flags, ~ACP_CQ_NEED_WAKEUP, __ATOMIC_RELAXED);
	}
}

static void *fake_kernel(void *arg)
{
	pthread_mutex_lock(&fake.lock);
	while (!fake.stop) {
		if (fake_work())
			fake_drain();
		pthread_mutex_unlock(&fake.lock);
		sched_yield();
		pthread_mutex_lock(&fake.lock);
		fake_flag(true);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!fake_work() && !fake.stop)
			pthread_cond_wait(&fake.changed, &fake.lock);
		fake_flag(false);
	}
	pthread_mutex_unlock(&fake.lock);
	return arg;
}

static inline void fake_set_hold(bool hold)
{
	pthread_mutex_lock(&fake.lock);
	fake.hold = hold;
	pthread_cond_broadcast(&fake.changed);
	pthread_mutex_unlock(&fake.lock);
}

static inline void fake_set_held(uint64_t held)
{
	pthread_mutex_lock(&fake.lock);
	fake.held = held;
	pthread_cond_broadcast(&fake.changed);
	pthread_mutex_unlock(&fake.lock);
}

static inline void fake_abort(void)
{
	int i;

	pthread_mutex_lock(&fake.lock);
	fake.aborted = true;
	for (i = 0; i < FAKE_QUEUES; i++)
		if (fake.further[i].cq)
			__atomic_fetch_or(&fake.further[i].cq->flags, ACP_CQ_ABORTED,
					  __ATOMIC_RELAXED);
	__atomic_fetch_or(&fake.cq->flags, ACP_CQ_ABORTED, __ATOMIC_RELAXED);
	fake_wake(fake.join.rank);
	pthread_mutex_unlock(&fake.lock);
}

/* ---- The calls ---- */

static void *fake_memory(uint64_t size)
{
	void *addr = __real_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				 -1, 0);

	if (addr == MAP_FAILED)
		abort();
	return addr;
}

static int fake_join(struct acp_join *join)
{
	uint32_t stag, rank;

	if (join->size != sizeof(*join) || join->version != ACP_ABI_VERSION ||
	    join->nprocs > FAKE_RANKS || join->flags)
		return -EINVAL;
	fake.sizes[ACP_STAG_STARTER] = join->starter_size;
	fake.sizes[ACP_STAG_HEAP] = join->heap_size;
	fake.sizes[ACP_STAG_LIBRARY] = FAKE_PAGE;
	for (stag = 0; stag < ACP_STAG_RESERVED; stag++)
		for (rank = 0; fake.sizes[stag] && rank < join->nprocs; rank++)
			fake.memory[stag][rank] = fake_memory(fake.sizes[stag]);
	join->sq_bytes = sizeof(struct acp_sq) + join->depth * sizeof(struct acp_sqe);
	join->cq_bytes = sizeof(struct acp_cq) + join->depth;
	join->node = 0;
	join->local_ranks = 1;
	fake.sq = fake_memory(join->sq_bytes);
	fake.cq = fake_memory(join->cq_bytes);
	fake.sq->tail = 1;
	fake.cq->completed = 1;
	fake.head = 1;
	fake.layout = acp_ga_layout(join->nprocs);
	fake.join = *join;
	memcpy(fake.key, join->key, sizeof(fake.key));
	memset(fake.regions, 0, sizeof(fake.regions));
	fake.last_queue = 0;
	fake.stop = false;
	fake.owner = getpid();
	pthread_create(&fake.thread, NULL, fake_kernel, NULL);
	return 0;
}

static int fake_reg(struct acp_reg *reg)
{
	uint32_t stag;
	struct fake_region *region, *free_region = NULL;

	fake.regs++;
	if (fake.reg_error) {
		reg->limit = fake.limit;
		return -fake.reg_error;
	}
	for (stag = ACP_STAG_USER; stag < FAKE_REGIONS; stag++) {
		region = &fake.regions[stag];
		if (!region->count) {
			free_region = free_region ? free_region : region;
		} else if (region->reg.color == reg->color && region->reg.access == reg->access &&
			   reg->addr >= region->reg.base &&
			   reg->addr + reg->length <= region->reg.end) {
			region->count++;
			*reg = region->reg;
			return 0;
		}
	}
	if (!free_region)
		return -ENOSPC;
	reg->start = reg->addr & ~(FAKE_PAGE - 1ull);
	reg->base = reg->addr;
	reg->end = reg->addr + reg->length;
	reg->key = acp_ga_make(&fake.layout, fake.join.rank, reg->color,
			       (uint32_t)(free_region - fake.regions), 0);
	free_region->reg = *reg;
	free_region->count = 1;
	return 0;
}

static int fake_unreg(struct acp_unreg *unreg)
{
	uint32_t stag = acp_ga_stag(&fake.layout, unreg->key);
	struct fake_region *region = &fake.regions[stag % FAKE_REGIONS];

	if (stag >= FAKE_REGIONS || !region->count || region->reg.key != unreg->key)
		return -ENOENT;
	unreg->left = --region->count;
	if (!unreg->left)
		memset(region, 0, sizeof(*region));
	return 0;
}

static int fake_attach(struct fake_queue *q, struct acp_attach *a)
{
	if (fake.attach_error)
		return -fake.attach_error;
	if (a->size != sizeof(*a) || a->fd != fake.fd || a->flags || a->reserved ||
	    a->depth < ACP_DEPTH_MIN || a->depth > ACP_DEPTH_MAX || (a->depth & (a->depth - 1)))
		return -EINVAL;
	a->queue = ++fake.last_queue;
	a->first = ((uint64_t)a->queue << ACP_TICKET_BITS) + 1;
	a->sq_bytes = sizeof(struct acp_sq) + a->depth * sizeof(struct acp_sqe);
	a->cq_bytes = sizeof(struct acp_cq) + a->depth;
	*q = (struct fake_queue){
		.fd = q->fd, .number = a->queue, .depth = a->depth, .head = a->first,
		.sq_bytes = a->sq_bytes, .cq_bytes = a->cq_bytes,
	};
	q->cq = fake_memory(q->cq_bytes);
	q->cq->completed = a->first;
	q->cq->flags = ACP_CQ_NEED_WAKEUP;
	q->sq = fake_memory(q->sq_bytes);
	q->sq->tail = a->first;
	return 0;
}

static int fake_wait(const struct acp_wait *wait, const uint64_t *head)
{
	fake.waits++;
	while (*head < wait->ticket) {
		if (fake.aborted)
			return -ECANCELED;
		if (fake_work())
			fake_drain();
		else
			pthread_cond_wait(&fake.changed, &fake.lock);
	}
	return 0;
}

static int fake_watch(const struct acp_watch_wait *wait)
{
	struct acp_watch *w = fake_watch_of(fake.join.rank);
	struct timespec end;
	uint64_t ns;

	if (wait->flags) {
		fake.polls = wait->flags == ACP_WATCH_ARM;
		fake.polled = wait->wakes;
		return fake.aborted ? -ECANCELED : 0;
	}
	fake.watches++;
	if (fake.signals && fake.signals--)
		return -EINTR;
	clock_gettime(CLOCK_MONOTONIC, &end);
	ns = (uint64_t)end.tv_nsec + wait->timeout_ns % 1000000000;
	end.tv_sec += (time_t)(wait->timeout_ns / 1000000000 + ns / 1000000000);
	end.tv_nsec = (long)(ns % 1000000000);
	while (__atomic_load_n(&w->wakes, __ATOMIC_ACQUIRE) == wait->wakes && !fake.aborted) {
		if (fake.deaf)
			pthread_cond_wait(&fake.changed, &fake.lock);
		else if (pthread_cond_clockwait(&fake.changed, &fake.lock, CLOCK_MONOTONIC, &end))
			return -ETIMEDOUT;
	}
	return fake.aborted ? -ECANCELED : 0;
}

/* Does poll() report that memory may have changed? */
static inline bool fake_readable(void)
{
	uint64_t *wakes = (uint64_t *)&fake_watch_of(fake.join.rank)->wakes;
	bool readable;

	pthread_mutex_lock(&fake.lock);
	readable = fake.polls && fake.polled != __atomic_load_n(wakes, __ATOMIC_ACQUIRE);
	pthread_mutex_unlock(&fake.lock);
	return readable;
}

/* How many times threads have slept in ACP_IOC_WATCH, or are about to. */
static inline unsigned int fake_watches(void)
{
	unsigned int n;

	pthread_mutex_lock(&fake.lock);
	n = fake.watches;
	pthread_mutex_unlock(&fake.lock);
	return n;
}

/* Wait until a thread sleeps until a write, or is about to: fake_watches() returned that before. */
static inline void fake_await_watch(unsigned int before)
{
	while (fake_watches() == before)
		usleep(1000);
}

/* Start a thread; on return it sleeps until a write, or is about to. */
static inline void fake_start_sleeper(pthread_t *thread, void *(*body)(void *), void *arg)
{
	const unsigned int before = fake_watches();

	CHECK(pthread_create(thread, NULL, body, arg) == 0);
	fake_await_watch(before);
}

/* A barrier that others do not enter, with signals in between. Nobody waits for it for ever. */
static int fake_sync_alone(uint64_t timeout_ns)
{
	const bool rings = timeout_ns > fake.alarm_ns;
	const struct timespec pause = { 0, (long)(rings ? fake.alarm_ns : timeout_ns) };

	nanosleep(&pause, NULL);
	return rings && fake.syncs < 1000 ? -EINTR : -ETIMEDOUT;
}

static int fake_sync(struct acp_sync *sync)
{
	fake.syncs++;
	fake.final = sync->flags & ACP_SYNC_FINAL;
	sync->node = fake.join.node;
	if (fake.alarm_ns)
		return fake_sync_alone(sync->timeout_ns);
	return fake.aborted ? -ECANCELED : -fake.sync_error;
}

static int fake_join_error(struct acp_join *join)
{
	int error = fake.join_error;

	if (error)
		join->limit = fake.limit;

	if (fake.join_errors && !--fake.join_errors)
		fake.join_error = 0;
	return error;
}

static int fake_call(unsigned long request, void *arg)
{
	struct acp_peer_info *peer = arg;
	struct acp_rank_state *state = arg;
	int error;

	switch (request) {
	case ACP_IOC_JOIN:
		error = fake_join_error(arg);
		return error ? -error : fake_join(arg);
	case ACP_IOC_REG:
		return fake_reg(arg);
	case ACP_IOC_UNREG:
		return fake_unreg(arg);
	case ACP_IOC_DOORBELL:
		fake.doorbells++;
		fake_drain();
		return fake.aborted ? -ECANCELED : 0;
	case ACP_IOC_WAIT:
		return fake_wait(arg, &fake.head);
	case ACP_IOC_SYNC:
		return fake_sync(arg);
	case ACP_IOC_PEER:
		if (fake.far && peer->rank / 2 != fake.join.rank / 2)
			return -ESRCH;
		peer->starter_size = fake.sizes[ACP_STAG_STARTER];
		peer->heap_size = fake.sizes[ACP_STAG_HEAP];
		return 0;
	case ACP_IOC_ABORT:
		fake.aborts++;
		return 0;
	case ACP_IOC_STATE:
		state->state = fake.states[state->rank];
		state->status = fake.statuses[state->rank];
		return 0;
	case ACP_IOC_WATCH:
		return fake_watch(arg);
	case ACP_IOC_WAKE:
		fake.wakes++;
		fake.woken = ((struct acp_wake *)arg)->rank;
		fake_wake(fake.woken);
		return 0;
	default:
		return fake.match ? fake.match(request, arg) : -ENOTTY;
	}
}

/* Return the queue of a file, or NULL. fd -1: a free one. */
static struct fake_queue *fake_find_queue(int fd)
{
	struct fake_queue *q;

	for (q = fake.further; q < fake.further + FAKE_QUEUES; q++)
		if ((q->fd > 0 ? q->fd : -1) == fd)
			return q;
	return NULL;
}

static int fake_call_queue(struct fake_queue *q, unsigned long request, void *arg)
{
	switch (request) {
	case ACP_IOC_ATTACH:
		return fake_attach(q, arg);
	case ACP_IOC_DOORBELL:
		fake.doorbells++;
		fake_drain();
		return fake.aborted ? -ECANCELED : 0;
	case ACP_IOC_WAIT:
		return fake_wait(arg, &q->head);
	default:
		return -EOPNOTSUPP;
	}
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	struct fake_queue *q;
	va_list args;
	void *arg;
	int result;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (fd < 0)
		return __real_ioctl(fd, request, arg);
	pthread_mutex_lock(&fake.lock);
	q = fake_find_queue(fd);
	if (fd == fake.fd)
		result = fake_call(request, arg);
	else
		result = q ? fake_call_queue(q, request, arg) : -EBADF;
	pthread_mutex_unlock(&fake.lock);
	if (result == 0)
		return 0;
	errno = -result;
	return -1;
}

/* The doorbell of the library is fdatasync(), called by syscall(). */
long __wrap_syscall(long number, ...)
{
	long a[6];
	va_list args;
	int i;

	va_start(args, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_fdatasync)
		return __wrap_ioctl((int)a[0], ACP_IOC_DOORBELL, NULL) ? -1 : ACP_RUNG;
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int __wrap_open(const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, int) : 0;
	va_end(args);
	if (strcmp(path, ACP_DEVICE) != 0)
		return __real_open(path, flags, mode);
	if (fake.open_error) {
		errno = fake.open_error;
		return -1;
	}
	if (fake.fd >= 0 && fake.sq) {
		struct fake_queue *q;
		int fd = memfd_create("acp queue", MFD_CLOEXEC);

		pthread_mutex_lock(&fake.lock);
		q = fake_find_queue(-1);
		if (!q)
			abort();
		q->fd = fd;
		pthread_mutex_unlock(&fake.lock);
		return fd;
	}
	fake.fd = memfd_create("acp", MFD_CLOEXEC);
	return fake.fd;
}

static void fake_leave(void)
{
	uint32_t stag, rank;

	pthread_mutex_lock(&fake.lock);
	fake.stop = true;
	fake.hold = false;
	fake.aborted = false;
	pthread_cond_broadcast(&fake.changed);
	pthread_mutex_unlock(&fake.lock);
	pthread_join(fake.thread, NULL);
	for (stag = 0; stag < ACP_STAG_RESERVED; stag++)
		for (rank = 0; fake.sizes[stag] && rank < fake.join.nprocs; rank++) {
			__real_munmap(fake.memory[stag][rank], fake.sizes[stag]);
			fake.memory[stag][rank] = NULL;
		}
	__real_munmap(fake.sq, fake.join.sq_bytes);
	__real_munmap(fake.cq, fake.join.cq_bytes);
	fake.sq = NULL;
	fake.cq = NULL;
}

/* The ring is not read any more. A child only frees its own memory. */
static void fake_close_queue(int fd)
{
	struct fake_queue *q, former = { 0 };

	pthread_mutex_lock(&fake.lock);
	q = fake_find_queue(fd);
	if (q) {
		former = *q;
		*q = (struct fake_queue){ 0 };
	}
	pthread_mutex_unlock(&fake.lock);
	if (former.sq)
		__real_munmap(former.sq, former.sq_bytes);
	if (former.cq)
		__real_munmap(former.cq, former.cq_bytes);
}

int __wrap_close(int fd)
{
	if (fd >= 0 && fake.owner == getpid())
		fake_close_queue(fd);
	if (fd == fake.fd && fd >= 0) {
		if (fake.sq && fake.owner == getpid())
			fake_leave();
		fake.fd = -1;
	}
	return __real_close(fd);
}

void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	uint64_t kind = (uint64_t)offset >> 48, rank = ((uint64_t)offset >> 16) & 0xffffffff;

	const struct fake_queue *q = NULL;

	if (fd >= 0 && fd != fake.fd) {
		pthread_mutex_lock(&fake.lock);
		q = fake_find_queue(fd);
		pthread_mutex_unlock(&fake.lock);
	}
	if (q)
		return kind == ACP_MAP_SQ ? (void *)q->sq : q->cq;
	if (fd != fake.fd || fd < 0)
		return __real_mmap(addr, length, prot, flags, fd, offset);
	fake.maps++;
	if (kind == ACP_MAP_SQ)
		return fake.sq;
	if (kind == ACP_MAP_CQ)
		return fake.cq;
	return fake.memory[kind - ACP_MAP_STARTER][rank];
}

static bool fake_owns_queue(const void *addr)
{
	bool owns = false;
	int i;

	pthread_mutex_lock(&fake.lock);
	for (i = 0; i < FAKE_QUEUES; i++)
		owns = owns || addr == fake.further[i].sq || addr == fake.further[i].cq;
	pthread_mutex_unlock(&fake.lock);
	return owns;
}

static bool fake_owns(const void *addr)
{
	uint32_t stag, rank;

	for (stag = 0; stag < ACP_STAG_RESERVED; stag++)
		for (rank = 0; rank < FAKE_RANKS; rank++)
			if (addr == fake.memory[stag][rank])
				return true;
	return fake_owns_queue(addr) || addr == fake.sq || addr == fake.cq;
}

int __wrap_munmap(void *addr, size_t length)
{
	return addr && fake_owns(addr) ? 0 : __real_munmap(addr, length);
}

#endif /* TEST_LIB_DEVICE_H */
