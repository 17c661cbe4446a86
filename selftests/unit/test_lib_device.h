/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for /dev/acp in the process under test: link with
 *	-Wl,--wrap=open,--wrap=close,--wrap=ioctl,--wrap=syscall,--wrap=mmap,--wrap=munmap
 *
 * Both sides use the same mapping, so that ThreadSanitizer sees them meet.
 * It plays the kernel of rank 0 (or whatever joins) of a job of up to
 * FAKE_RANKS ranks.  Starter and heap of all ranks exist; what is addressed to
 * a rank on another node is executed here all the same, through the ring, by
 * the one thread that is the kernel.  Atomics are ADD8 only.
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

#define FAKE_RANKS	8
#define FAKE_REGIONS	64
#define FAKE_PAGE	4096

struct fake_region {
	struct acp_reg reg;
	unsigned int count;
};

/* Everything is under lock, but the rings. */
static struct fake_device {
	/* for the test to set */
	int open_error, join_error, sync_error, reg_error;	/* errno, or 0 */
	unsigned int join_errors;	/* how often join_error; 0: always */
	bool hold;			/* execute nothing */
	unsigned int lost_after;	/* barriers, then no command succeeds any more; 0: never */
	bool aborted;
	/* for the test to look at */
	struct acp_join join;		/* of the last one, runs not valid any more */
	uint8_t key[16];
	bool final;			/* the last barrier was said to be the last one */
	unsigned int doorbells, waits, syncs, aborts, regs, maps;
	unsigned int watches, wakes;	/* sleeps until others write, and wake-ups by the library */
	uint32_t woken;			/* rank of the last of these */
	bool deaf;			/* for the test to set: watches end by wake-ups alone */
	unsigned int signals;		/* ... so many watches end with EINTR */

	int fd;				/* -1: not open */
	pid_t owner;			/* a forked child has all of this, but no thread */
	char *memory[ACP_STAG_RESERVED][FAKE_RANKS];
	uint64_t sizes[ACP_STAG_RESERVED];
	struct acp_sq *sq;
	struct acp_cq *cq;
	uint64_t head;
	uint8_t carried;		/* status of the entry before, if that says MORE */
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

/* Where a GA is: its bytes up to size, or NULL with a status. */
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

/* Lock held. */
static void fake_wake(uint32_t rank)
{
	__atomic_store_n(&fake_watch_of(rank)->armed, 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&fake_watch_of(rank)->wakes, 1, __ATOMIC_SEQ_CST);
	pthread_cond_broadcast(&fake.changed);
}

/* After a write of up to 64 bytes to the rank that joined. */
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

/* Block by block: what reaches beyond memory fails where it does. */
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

/* A copy, and its flag. */
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

/* Is there something to do?  Lock held, as in all of these. */
static bool fake_work(void)
{
	return !fake.hold && __atomic_load_n(&fake.sq->tail, __ATOMIC_ACQUIRE) != fake.head;
}

/* Has anything failed that an entry waits for?  Only what is still on record counts. */
static bool fake_order_failed(const struct acp_sqe *e)
{
	uint64_t kept = fake.join.depth - 1, t = e->seen;

	if (fake.head > kept && t < fake.head - kept)
		t = fake.head - kept;
	while (t < e->order)
		if (fake.cq->status[++t & kept])
			return true;
	return false;
}

static void fake_drain(void)
{
	struct acp_sqe *entries = (struct acp_sqe *)(fake.sq + 1);

	while (fake_work()) {
		uint64_t ticket = fake.head + 1;
		uint32_t slot = ticket & (fake.join.depth - 1);
		struct acp_sqe entry = entries[slot];
		uint8_t status = fake_order_failed(&entry) ? ACP_ST_ORDER : fake_execute(&entry);

		if (!status || (fake.carried && status == ACP_ST_ORDER))
			status = fake.carried;
		fake.carried = entry.flags & ACP_SQE_MORE ? status : 0;
		__atomic_store_n(&fake.cq->status[slot], status, __ATOMIC_RELAXED);
		if (status)
			__atomic_fetch_add(&fake.cq->failed, 1, __ATOMIC_RELAXED);
		fake.head = ticket;
		__atomic_store_n(&fake.cq->completed, ticket, __ATOMIC_RELEASE);
		if (status)
			fake_wake(fake.join.rank);
	}
	pthread_cond_broadcast(&fake.changed);
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
		__atomic_fetch_or(&fake.cq->flags, ACP_CQ_NEED_WAKEUP, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!fake_work() && !fake.stop)
			pthread_cond_wait(&fake.changed, &fake.lock);
		__atomic_fetch_and(&fake.cq->flags, ~ACP_CQ_NEED_WAKEUP, __ATOMIC_RELAXED);
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

static inline void fake_abort(void)
{
	pthread_mutex_lock(&fake.lock);
	fake.aborted = true;
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
	if (fake.reg_error)
		return -fake.reg_error;
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

static int fake_wait(const struct acp_wait *wait)
{
	fake.waits++;
	while (fake.head < wait->ticket) {
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

static int fake_join_error(void)
{
	int error = fake.join_error;

	if (fake.join_errors && !--fake.join_errors)
		fake.join_error = 0;
	return error;
}

static int fake_call(unsigned long request, void *arg)
{
	struct acp_peer_info *peer = arg;
	int error;

	switch (request) {
	case ACP_IOC_JOIN:
		error = fake_join_error();
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
		return fake_wait(arg);
	case ACP_IOC_SYNC:
		fake.syncs++;
		fake.final = ((struct acp_sync *)arg)->flags & ACP_SYNC_FINAL;
		return fake.aborted ? -ECANCELED : -fake.sync_error;
	case ACP_IOC_PEER:
		peer->starter_size = fake.sizes[ACP_STAG_STARTER];
		peer->heap_size = fake.sizes[ACP_STAG_HEAP];
		return 0;
	case ACP_IOC_ABORT:
		fake.aborts++;
		return 0;
	case ACP_IOC_WATCH:
		return fake_watch(arg);
	case ACP_IOC_WAKE:
		fake.wakes++;
		fake.woken = ((struct acp_wake *)arg)->rank;
		fake_wake(fake.woken);
		return 0;
	default:
		return -ENOTTY;
	}
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;
	int result;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (fd != fake.fd || fd < 0)
		return __real_ioctl(fd, request, arg);
	pthread_mutex_lock(&fake.lock);
	result = fake_call(request, arg);
	pthread_mutex_unlock(&fake.lock);
	if (result == 0)
		return 0;
	errno = -result;
	return -1;
}

/* The library's doorbell is fdatasync(), past the C library. */
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
		return __wrap_ioctl((int)a[0], ACP_IOC_DOORBELL, NULL);
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

int __wrap_close(int fd)
{
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

	if (fd != fake.fd || fd < 0)
		return __real_mmap(addr, length, prot, flags, fd, offset);
	fake.maps++;
	if (kind == ACP_MAP_SQ)
		return fake.sq;
	if (kind == ACP_MAP_CQ)
		return fake.cq;
	return fake.memory[kind - ACP_MAP_STARTER][rank];
}

static bool fake_owns(const void *addr)
{
	uint32_t stag, rank;

	for (stag = 0; stag < ACP_STAG_RESERVED; stag++)
		for (rank = 0; rank < FAKE_RANKS; rank++)
			if (addr == fake.memory[stag][rank])
				return true;
	return addr == fake.sq || addr == fake.cq;
}

int __wrap_munmap(void *addr, size_t length)
{
	return addr && fake_owns(addr) ? 0 : __real_munmap(addr, length);
}

#endif /* TEST_LIB_DEVICE_H */
