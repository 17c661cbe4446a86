// SPDX-License-Identifier: MIT
/* selftest: gate=6.12,uml */
/*
 * Random tests of K1, K2, K3, P4 and M3: processes ("lives") with several threads that open, join,
 * map, register, unmap, write rings, fork and exit, in any order and with any arguments, most of
 * them nearly valid; with failing allocations on kernels that support it. Every error must be one
 * that the ABI specifies, the kernel must not log warnings, other ranks must not be disturbed, and
 * nothing may be left behind.
 *
 * ACP_FUZZ_SECONDS and ACP_FUZZ_SEED: the duration, and the seed to start with (`make fuzz`).
 */
#include "isolated.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <sys/wait.h>

#include "bystanders.h"
#include "fail_nth.h"

#define LIVES		3	/* at a time */
#define THREADS		3
#define FILES		6
#define KINDS		5	/* of objects to map */
#define WINDOW		32	/* pages for each of them */
#define OWN		256	/* pages of memory to register */
#define KEYS		16
#define STEPS		400	/* of a thread */
#define ARENA		((FILES * KINDS * WINDOW + OWN) * PAGE)

/* Shared by the threads of a life without any lock: races are intended. */
struct life {
	uint64_t seed;
	uint32_t job;			/* the first of JOBS ids */
	char *arena;			/* contains all mappings, and nothing else */
	bool faults;
	struct {
		int fd;
		struct acp_join join;
	} files[FILES];
	uint64_t keys[KEYS];
	pid_t threads[THREADS];
	pthread_barrier_t begin;	/* a later stack may be in a hole of the arena */
};

#define JOBS 3

/* Totals over all lives, to show that they have made progress. */
static struct reached {
	unsigned long calls, failed, faults, joined, attached, mapped, registered, completed;
} *reached;

static void count(unsigned long *n, unsigned long more)
{
	__atomic_fetch_add(n, more, __ATOMIC_RELAXED);
}

struct actor {
	struct life *life;
	uint64_t seed;
	int number;
	bool child;			/* forked: does not fork again */
};

static __thread sigjmp_buf back;
static __thread volatile bool touching;

/* ---- Random values ---- */

static uint64_t below(struct actor *a, uint64_t n)
{
	return next_random(&a->seed) % n;
}

static bool one_in(struct actor *a, uint64_t n)
{
	return !below(a, n);
}

/* A number that is near a limit, or arbitrary. */
static uint64_t odd_number(struct actor *a)
{
	uint64_t x = next_random(&a->seed);

	switch (x % 4) {
	case 0:
		return x >> (below(a, 64));
	case 1:
		return (1ULL << below(a, 64)) + below(a, 3) - 1;
	case 2:
		return below(a, 4) - 2;
	default:
		return below(a, 70000);
	}
}

/* Most arguments stay unchanged; some get one random word, a few are all random. */
static void spoil(struct actor *a, void *p, size_t n)
{
	uint32_t *words = p;
	size_t i;

	if (!one_in(a, 10))
		return;
	words[below(a, n / 4)] = (uint32_t)odd_number(a);
	if (one_in(a, 8))
		for (i = 0; i < n / 4; i++)
			words[i] = (uint32_t)next_random(&a->seed);
}

static unsigned int any_file(struct actor *a)
{
	return (unsigned int)below(a, FILES);
}

/* An open or joined file, if there is one, with some probability. */
static unsigned int open_file(struct actor *a, bool joined)
{
	unsigned int file = any_file(a), tries;

	for (tries = 0; tries < 2 * FILES; tries++, file = any_file(a))
		if (a->life->files[file].fd >= 0 && !a->life->files[file].join.nprocs != joined)
			break;
	return file;
}

static char *place(const struct life *l, unsigned int file, unsigned int kind)
{
	return l->arena + (file * KINDS + kind) * WINDOW * PAGE;
}

static char *own_memory(const struct life *l)
{
	return place(l, FILES, 0);
}

/* Some pages of the arena, mostly at the beginning of an object. */
static char *some_pages(struct actor *a, size_t *size)
{
	size_t start = below(a, ARENA / PAGE), count = 1 + below(a, 20);

	if (one_in(a, 2))
		start = start / WINDOW * WINDOW;
	if (start + count > ARENA / PAGE)
		count = ARENA / PAGE - start;
	*size = count * PAGE;
	return a->life->arena + start * PAGE;
}

/* ---- Calls, and their permitted errors ---- */

static const int common_errors[] = {
	EFAULT, EINVAL, ENOTCONN, EPERM, ENODEV, ECANCELED, EBADF,
	EOPNOTSUPP, 0	/* an attached queue */
};

static const int join_errors[] = {
	EALREADY, EEXIST, ESTALE, EADDRNOTAVAIL, EADDRINUSE, EACCES, EPROTO, EAFNOSUPPORT, ENOMEM,
	EDQUOT, EOPNOTSUPP, EINTR, 0
};

static const int attach_errors[] = {
	EALREADY, EBADF, EXDEV, ENOSPC, ENOMEM, EDQUOT, EINTR, 0
};

static const int reg_errors[] = { ENOMEM, EDQUOT, ENOSPC, EOVERFLOW, EINTR, 0 };
static const int unreg_errors[] = { ENOENT, 0 };
static const int wait_errors[] = { EINTR, ETIMEDOUT, 0 };
static const int sync_errors[] = { EINTR, ETIMEDOUT, EBUSY, EPIPE, EPROTO, 0 };
static const int peer_errors[] = { ESRCH, 0 };
static const int key_errors[] = { ENOENT, 0 };
static const int match_errors[] = { ENOSPC, ENOMEM, EDQUOT, 0 };
static const int post_errors[] = { ENOENT, EBUSY, EAGAIN, 0 };
static const int event_errors[] = { EAGAIN, 0 };
static const int mmap_errors[] = { EACCES, ESRCH, ENOMEM, EOVERFLOW, 0 };
static const int no_errors[] = { 0 };

static bool listed(const int *errors, int error)
{
	while (*errors && *errors != error)
		errors++;
	return *errors;
}

/* Block or unblock the signal that may arrive at any time. */
static void hold_signal(bool hold)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/*
 * Some calls run with an injected fault, until ended(). Signals are blocked: otherwise the fault
 * could hit the setup of a signal frame, and the kernel would end the process with SIGSEGV.
 */
static bool begun(struct actor *a)
{
	bool fault = a->life->faults && !a->child && one_in(a, 6);

	if (!fault)
		return false;
	hold_signal(true);
	fail_nth_arm(1 + (int)below(a, 24));
	return true;
}

/* True if the fault has occurred. */
static bool disarm(void)
{
	bool hit = fail_nth_disarm();

	hold_signal(false);
	return hit;
}

static void ended(bool fault, bool failed, const char *call, const int *errors)
{
	int error = failed ? errno : 0;
	bool hit = fault && disarm();

	count(&reached->calls, 1);
	count(&reached->failed, failed);
	count(&reached->faults, hit);
	if (!error || listed(errors, error) || listed(common_errors, error))
		return;
	if (!(hit && error == ENOMEM))
		FAIL("%s: %s", call, strerrorname_np(error));
}

static int call(struct actor *a, unsigned int file, unsigned long number, void *arg,
		const char *name, const int *errors)
{
	bool fault = begun(a);
	int result = ioctl(a->life->files[file].fd, number, arg);

	ended(fault, result < 0, name, errors);
	return result;
}

#define CALL(a, file, name, arg, errors) call(a, file, ACP_IOC_##name, arg, #name, errors)

/* ---- Steps ---- */

static void step_open(struct actor *a)
{
	unsigned int file = any_file(a);
	bool fault;
	int fd;

	if (a->life->files[file].fd >= 0)
		return;
	fault = begun(a);
	fd = open(ACP_DEVICE, O_RDWR | O_CLOEXEC);
	ended(fault, fd < 0, "open", no_errors);
	a->life->files[file].fd = fd;
}

static void step_close(struct actor *a)
{
	unsigned int file = any_file(a);
	int fd = a->life->files[file].fd;

	if (!one_in(a, 3) || fd < 0)
		return;
	a->life->files[file].fd = -1;
	a->life->files[file].join.nprocs = 0;
	close(fd);
}

static void step_dup(struct actor *a)
{
	unsigned int from = any_file(a), to = any_file(a);

	if (a->life->files[from].fd < 0 || a->life->files[to].fd >= 0)
		return;
	a->life->files[to].join = a->life->files[from].join;
	a->life->files[to].fd = dup(a->life->files[from].fd);
}

/* Memory that exists takes too long to clear. */
static bool modest(uint64_t size)
{
	return size <= 1 << 20 || size >= 1ULL << 46;
}

static void step_join(struct actor *a)
{
	static const char *const one[] = { "127.0.0.1", NULL };
	static const char *const two[] = { "127.0.0.1", "127.0.0.2", NULL };
	uint32_t number = (uint32_t)below(a, JOBS), nprocs = 4 + number, nodes = 1 + (number & 1);
	unsigned int file = open_file(a, false);
	struct setup s;

	setup_nodes(&s, (uint32_t)below(a, nprocs), nprocs, nodes, nodes == 1 ? one : two);
	s.join.job = a->life->job + number;
	s.join.generation = one_in(a, 16);
	s.join.timeout_ms = 200;
	s.join.open_timeout_ms = 200;
	s.join.integrity = number;
	spoil(a, &s.join, sizeof(s.join));
	spoil(a, s.ranks, sizeof(s.ranks[0]));
	spoil(a, s.nodes, sizeof(s.nodes[0]));
	if (!modest(s.join.starter_size) || !modest(s.join.heap_size))
		return;
	if (CALL(a, file, JOIN, &s.join, join_errors))
		return;
	a->life->files[file].join = s.join;
	count(&reached->joined, 1);
}

static void step_attach(struct actor *a)
{
	unsigned int file = open_file(a, one_in(a, 8)), to = open_file(a, !one_in(a, 8));
	struct acp_attach t = { .size = sizeof(t), .fd = a->life->files[to].fd, .depth = 64 };

	spoil(a, &t, sizeof(t));
	if (CALL(a, file, ATTACH, &t, attach_errors))
		return;
	a->life->files[file].join = a->life->files[to].join;
	count(&reached->attached, 1);
}

static void step_map(struct actor *a)
{
	unsigned int file = open_file(a, true), kind = (unsigned int)below(a, KINDS);
	const struct acp_join *j = &a->life->files[file].join;
	const size_t sizes[KINDS] = {
		j->sq_bytes, j->cq_bytes, j->starter_size, j->heap_size, PAGE
	};
	uint32_t rank = kind < 2 ? 0 : one_in(a, 2) ? j->rank : (uint32_t)below(a, 5);
	size_t size = one_in(a, 8) ? below(a, WINDOW) * PAGE : sizes[kind];
	uint64_t offset = ACP_MAP(kind, rank) + (one_in(a, 8) ? below(a, 8) * PAGE : 0);
	int prot = kind == 1 ? PROT_READ : PROT_READ | PROT_WRITE;
	bool fault;
	void *p;

	if (one_in(a, 16))
		prot = (int)below(a, 8);
	if (one_in(a, 16))
		offset = odd_number(a) & -PAGE;
	if (size > WINDOW * PAGE)
		return;
	fault = begun(a);
	p = mmap(place(a->life, file, kind), size, prot,
		 MAP_FIXED | (one_in(a, 16) ? MAP_PRIVATE : MAP_SHARED), a->life->files[file].fd,
		 (off_t)offset);
	ended(fault, p == MAP_FAILED, "mmap", mmap_errors);
	count(&reached->mapped, p != MAP_FAILED);
}

/* Operations on memory that is mapped, registered or both. */
static void step_memory(struct actor *a)
{
	static const int advice[] = {
		MADV_DONTNEED, MADV_DONTFORK, MADV_DOFORK, MADV_WILLNEED, MADV_FREE, MADV_REMOVE,
		MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_PAGEOUT, MADV_COLD,
	};
	size_t size, other_size;
	char *p = some_pages(a, &size), *other = some_pages(a, &other_size);

	switch (below(a, 8)) {
	case 0:
		munmap(p, size);
		break;
	case 1:
		mprotect(p, size, (int)below(a, 4));
		break;
	case 2:
		if (p + size <= other || other + size <= p)
			if (other + size <= a->life->arena + ARENA)
				mremap(p, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, other);
		break;
	case 3:
		mlock(p, size);
		munlock(p, size);
		break;
	case 4:
	case 5:
		madvise(p, size, advice[below(a, sizeof(advice) / sizeof(advice[0]))]);
		break;
	default:	/* so that there is some */
		mmap(p, size, PROT_READ | PROT_WRITE,
		     MAP_FIXED | MAP_ANONYMOUS | (one_in(a, 2) ? MAP_SHARED : MAP_PRIVATE), -1, 0);
	}
}

static bool in_arena(const struct life *l, uint64_t addr, uint64_t length)
{
	uint64_t start = (uintptr_t)l->arena;

	return addr >= start && addr - start < ARENA && length <= ARENA - (addr - start);
}

static void step_register(struct actor *a)
{
	size_t offset = below(a, OWN * PAGE), length = 1 + below(a, one_in(a, 2) ? 5000 : 100000);
	struct acp_reg r = { .size = sizeof(r), .access = (uint32_t)below(a, 8) };

	r.addr = (uintptr_t)own_memory(a->life) + offset;
	r.length = length < OWN * PAGE - offset ? length : OWN * PAGE - offset;
	if (one_in(a, 8)) {	/* anything mapped, including objects of the device */
		size_t size;

		r.addr = (uintptr_t)some_pages(a, &size);
		r.length = size;
	}
	if (one_in(a, 8))
		r.access = ACP_ACCESS_RO | ACP_ACCESS_READ;
	spoil(a, &r, sizeof(r));
	/* This may be the stack or a library: do not let others write there. */
	if (!in_arena(a->life, r.addr, r.length))
		r.access = ACP_ACCESS_RO | ACP_ACCESS_READ;
	if (CALL(a, open_file(a, true), REG, &r, reg_errors))
		return;
	a->life->keys[below(a, KEYS)] = r.key;
	count(&reached->registered, 1);
}

static void step_unregister(struct actor *a)
{
	struct acp_unreg u = { .size = sizeof(u), .key = a->life->keys[below(a, KEYS)] };

	spoil(a, &u, sizeof(u));
	CALL(a, open_file(a, true), UNREG, &u, unreg_errors);
}

static void step_wait(struct actor *a)
{
	struct acp_wait w = { .size = sizeof(w), .flags = one_in(a, 4) ? ACP_WAIT_ARM : 0 };
	unsigned int file = open_file(a, true);

	w.ticket = one_in(a, 4) ? odd_number(a) : below(a, 200);
	w.timeout_ns = one_in(a, 50) ? FOREVER : below(a, 20) * MS;
	spoil(a, &w, sizeof(w));
	CALL(a, file, WAIT, &w, wait_errors);
	if (w.flags & ACP_WAIT_ARM) {
		struct pollfd p = { a->life->files[file].fd, POLLIN | POLLPRI, 0 };

		poll(&p, 1, (int)below(a, 10));
	}
}

static void step_sync(struct actor *a)
{
	struct acp_sync s = { .size = sizeof(s), .flags = one_in(a, 8) ? ACP_SYNC_FINAL : 0 };

	s.timeout_ns = one_in(a, 50) ? FOREVER : below(a, 20) * MS;
	spoil(a, &s, sizeof(s));
	CALL(a, open_file(a, true), SYNC, &s, sync_errors);
}

static void step_watch(struct actor *a)
{
	struct acp_watch_wait w = { .size = sizeof(w), .wakes = below(a, 3) };
	struct acp_wake k = { .size = sizeof(k), .rank = (uint32_t)below(a, 5) };
	struct acp_wrong_key y = { .size = sizeof(y), .index = (uint32_t)below(a, 10) };

	w.timeout_ns = one_in(a, 50) ? FOREVER : below(a, 20) * MS;
	w.flags = one_in(a, 4) ? ACP_WATCH_ARM : 0;
	spoil(a, &w, sizeof(w));
	spoil(a, &k, sizeof(k));
	spoil(a, &y, sizeof(y));
	CALL(a, open_file(a, true), WAKE, &k, peer_errors);
	CALL(a, open_file(a, true), WATCH, &w, wait_errors);
	CALL(a, open_file(a, true), WRONG_KEY, &y, key_errors);
}

static void step_ask(struct actor *a)
{
	struct acp_peer_info p = { .size = sizeof(p), .rank = (uint32_t)below(a, 5) };
	struct acp_rank_state s = { .size = sizeof(s), .rank = (uint32_t)below(a, 5) };
	struct acp_event e = { .size = sizeof(e) };

	spoil(a, &p, sizeof(p));
	spoil(a, &s, sizeof(s));
	spoil(a, &e, sizeof(e));
	CALL(a, open_file(a, true), PEER, &p, peer_errors);
	CALL(a, open_file(a, true), STATE, &s, no_errors);
	CALL(a, open_file(a, true), EVENT, &e, event_errors);
}

static void step_abort(struct actor *a)
{
	if (one_in(a, 40))
		CALL(a, open_file(a, true), ABORT, NULL, no_errors);
}

/* Other calls on a file. */
static void step_other(struct actor *a)
{
	char bytes[256];
	int fd = a->life->files[open_file(a, true)].fd;

	switch (below(a, 5)) {
	case 0:
		CHECK(read(fd, bytes, sizeof(bytes)) < 0);
		CHECK(write(fd, bytes, sizeof(bytes)) < 0);
		break;
	case 1:
		lseek(fd, (off_t)odd_number(a), SEEK_SET);
		fsync(fd);
		break;
	case 2:
		CHECK(ftruncate(fd, (off_t)odd_number(a)) < 0);
		break;
	case 3:
		memset(bytes, (int)below(a, 256), sizeof(bytes));
		ioctl(fd, _IOWR(ACP_IOC_MAGIC, below(a, 256), bytes), bytes);
		break;
	default:
		syscall(SYS_tgkill, getpid(), a->life->threads[below(a, THREADS)], SIGUSR1);
	}
}

static uint64_t some_ga(struct actor *a, const struct acp_join *j)
{
	const struct acp_ga_layout layout = acp_ga_layout(j->nprocs);

	switch (below(a, 4)) {
	case 0:
		return a->life->keys[below(a, KEYS)] + below(a, 5000);
	case 1:
		return odd_number(a);
	default:
		return acp_ga_make(&layout, (uint32_t)below(a, j->nprocs + 1), 0,
				   (uint32_t)below(a, 6), below(a, 8000) & -8UL);
	}
}

static uint64_t starter(const struct acp_join *j, uint64_t offset)
{
	const struct acp_ga_layout layout = acp_ga_layout(j->nprocs);

	return acp_ga_make(&layout, j->rank, 0, ACP_STAG_STARTER, offset);
}

static void random_entry(struct actor *a, const struct acp_join *j, uint64_t ticket,
			 struct acp_sqe *e)
{
	*e = (struct acp_sqe){ .op = ACP_OP_COPY, .dst = some_ga(a, j), .src = some_ga(a, j) };
	if (one_in(a, 2)) {
		e->op = (uint8_t)(2 + below(a, ACP_OP_END - 2));
		e->a = e->op > ACP_OP_STRIDED ? some_ga(a, j) : below(a, 8);
		if (e->op == ACP_OP_SEND) {
			e->dst = starter(j, 0);
			e->a = 0;
			e->b = below(a, 2);
			e->size = below(a, one_in(a, 4) ? 9000 : 300);
		}
		if (e->op == ACP_OP_REDUCE) {
			e->a = ACP_REDUCE(below(a, 9), below(a, 7));
			e->size = 4 * below(a, 3000);
		}
		if (e->op >= ACP_OP_ACCUMULATE)
			e->size = ACP_NUMBERS(below(a, 9), below(a, 7), below(a, 3000));
		if (e->op == ACP_OP_STRIDED) {
			e->size = ACP_BLOCKS(below(a, 40), below(a, 40));
			e->a = 40 + below(a, 400);
			e->b = below(a, 4) ? below(a, 400) : odd_number(a);
		}
	} else {
		e->size = one_in(a, 16) ? odd_number(a) : below(a, 9000);
	}
	if (one_in(a, 4)) {
		e->order = ticket - 1 - below(a, 4);
		e->seen = e->order;
	}
	e->flags = one_in(a, 16) ? (uint8_t)below(a, 256) : one_in(a, 4);
	spoil(a, e, sizeof(*e));
}

static uint64_t completed(struct actor *a, unsigned int file)
{
	const struct acp_cq *cq = (const struct acp_cq *)place(a->life, file, ACP_MAP_CQ);

	return __atomic_load_n(&cq->completed, __ATOMIC_ACQUIRE);
}

/*
 * Some files have match lists, whose mailbox is at the beginning of their starter memory; it names
 * any list.
 */
static void step_match(struct actor *a)
{
	unsigned int file = open_file(a, true);
	const struct acp_join join = a->life->files[file].join;
	struct acp_match m = {
		.size = sizeof(m), .receives = 1 + (uint32_t)below(a, 16), .masks = 2,
		.messages = 1 + (uint32_t)below(a, 16), .mask = { 0, ~0ULL },
		.bytes = 8 * below(a, 200),
	};
	struct acp_mailbox *box = (struct acp_mailbox *)place(a->life, file, ACP_MAP_STARTER);

	if (!join.nprocs || join.nprocs > 16)
		return;
	m.mailbox = starter(&join, 0);
	m.results = starter(&join, 64);
	m.memory = starter(&join, 64 + m.receives * sizeof(struct acp_result));
	spoil(a, &m, sizeof(m));
	CALL(a, file, MATCH, &m, match_errors);
	if (sigsetjmp(back, 1)) {
		touching = false;
		return;
	}
	touching = true;
	box->list = 1 + (uint32_t)below(a, 4);
	touching = false;
}

static void step_post(struct actor *a)
{
	unsigned int file = open_file(a, true);
	const struct acp_join join = a->life->files[file].join;
	struct acp_post p = {
		.size = sizeof(p), .list = 1 + (uint32_t)below(a, 4), .flags = one_in(a, 2),
		.tag = below(a, 2), .ignore = one_in(a, 2) ? ~0ULL : 0, .room = below(a, 300),
		.result = (uint32_t)below(a, 16),
	};
	struct acp_unpost u = {
		.size = sizeof(u), .list = 1 + (uint32_t)below(a, 4),
		.what = 1 + (uint32_t)below(a, one_in(a, 8) ? 3 : 2),
		.number = (uint32_t)below(a, 16),
	};

	if (!join.nprocs || join.nprocs > 16)
		return;
	p.buffer = starter(&join, below(a, 6000));
	if (one_in(a, 4)) {
		p.flags |= one_in(a, 2) ? ACP_POST_TAKE : ACP_POST_PROBE;
		p.room = 0;
		p.buffer = 0;
		p.result = 0;
	}
	if (u.what == ACP_UNPOST_LIST)
		u.number = 0;
	spoil(a, &p, sizeof(p));
	spoil(a, &u, sizeof(u));
	CALL(a, file, POST, &p, post_errors);
	CALL(a, file, UNPOST, &u, post_errors);
}

/* Write entries after the completed ones; tail follows, or gets any value. */
static void write_ring(struct actor *a, unsigned int file)
{
	const struct acp_join join = a->life->files[file].join;
	struct acp_sq *sq = (struct acp_sq *)place(a->life, file, ACP_MAP_SQ);
	struct acp_sqe *entries = (struct acp_sqe *)(sq + 1), e;
	uint64_t tail = __atomic_load_n(&sq->tail, __ATOMIC_RELAXED);
	uint64_t done = completed(a, file), n = 1 + below(a, 16);

	if (join.depth != 64 || !join.nprocs || join.nprocs > 16)
		return;
	while (n-- && tail - done < join.depth) {
		random_entry(a, &join, ++tail, &e);
		entries[tail & (join.depth - 1)] = e;
	}
	if (one_in(a, 32))
		tail = one_in(a, 2) ? odd_number(a) : tail + below(a, 100) - 50;
	__atomic_store_n(&sq->tail, tail, __ATOMIC_SEQ_CST);
}

/* Memory may be unmapped at any time: faults are accepted. */
static void step_ring(struct actor *a)
{
	unsigned int file = open_file(a, true);
	uint64_t before, after;

	if (sigsetjmp(back, 1)) {
		touching = false;
		return;
	}
	touching = true;
	before = completed(a, file);
	write_ring(a, file);
	touching = false;
	CALL(a, file, DOORBELL, NULL, no_errors);
	touching = true;
	after = completed(a, file);
	touching = false;
	count(&reached->completed, after > before && after - before <= 64 ? after - before : 0);
}

static void step_fork(struct actor *a);

static const struct {
	unsigned int weight;
	void (*take)(struct actor *a);
} steps[] = {
	{ 30, step_ring }, { 8, step_open }, { 10, step_join }, { 12, step_map }, { 3, step_close },
	{ 2, step_dup }, { 8, step_register }, { 4, step_unregister }, { 6, step_memory },
	{ 3, step_wait }, { 3, step_watch }, { 1, step_sync }, { 3, step_ask }, { 1, step_abort },
	{ 3, step_other }, { 1, step_fork }, { 5, step_attach }, { 2, step_match },
	{ 6, step_post },
};

static void take_step(struct actor *a)
{
	uint64_t x = below(a, 100);
	size_t i;

	for (i = 0; x >= steps[i].weight; i++)
		x -= steps[i].weight;
	steps[i].take(a);
}

/* A child inherits all of it, and must not be able to use it. */
static void step_fork(struct actor *a)
{
	pid_t pid;
	int i;

	if (a->child)
		return;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		a->child = true;
		for (i = 0; i < 20; i++)
			take_step(a);
		_exit(0);
	}
}

/* ---- Lives ---- */

static void at_fault(int number, siginfo_t *info, void *context)
{
	const ucontext_t *c = context;

	if (!touching) {
		printf("# signal %d at %#llx, for %p\n", number,
		       (unsigned long long)c->uc_mcontext.gregs[REG_RIP], info->si_addr);
		fflush(stdout);
		signal(number, SIG_DFL);
		return;		/* again at the same place */
	}
	siglongjmp(back, 1);
}

static void at_signal(int number)
{
	(void)number;
}

static void *act(void *arg)
{
	struct actor *a = arg;
	int i;

	a->life->threads[a->number] = gettid();
	pthread_barrier_wait(&a->life->begin);
	if (a->life->faults)
		fail_nth_open();
	for (i = 0; i < STEPS; i++)
		take_step(a);
	return NULL;
}

static void live(uint64_t seed, bool faults, uint32_t job)
{
	static struct life l;
	static struct actor actors[THREADS];
	struct sigaction fault = { .sa_sigaction = at_fault, .sa_flags = SA_SIGINFO };
	struct sigaction usr = { .sa_handler = at_signal };
	pthread_t threads[THREADS];
	int i;

	l = (struct life){ .seed = seed, .job = job, .faults = faults };
	for (i = 0; i < FILES; i++)
		l.files[i].fd = -1;
	sigaction(SIGSEGV, &fault, NULL);
	sigaction(SIGBUS, &fault, NULL);
	sigaction(SIGUSR1, &usr, NULL);
	signal(SIGCHLD, SIG_IGN);
	l.arena = pages(ARENA, PROT_READ | PROT_WRITE);
	CHECK_EQ(pthread_barrier_init(&l.begin, NULL, THREADS), 0);
	for (i = 0; i < THREADS; i++) {
		actors[i] = (struct actor){
			.life = &l, .seed = seed * THREADS + (uint64_t)i, .number = i
		};
		CHECK_EQ(pthread_create(&threads[i], NULL, act, &actors[i]), 0);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

struct child {
	pid_t pid;
	uint64_t seed, end;	/* ns: when to kill it */
	bool killed;
	struct patience dies;
};

static void begin_life(struct child *c, uint64_t seed, bool faults, uint32_t job)
{
	uint64_t chance = seed;

	c->seed = seed;
	c->killed = false;
	c->end = in_ms((100 + next_random(&chance) % 3000) * (test_short() ? 5 : 1));
	c->pid = fork();
	CHECK(c->pid >= 0);
	if (!c->pid)
		live(seed, faults, job);
}

/* True if it has ended. It is killed at its deadline. */
static bool life_ended(struct child *c)
{
	int status;

	if (!c->pid)
		return true;
	if (!c->killed && now_ns() > c->end) {
		c->killed = true;
		c->dies = patience_begin(PATIENCE_WORK);
		kill(c->pid, SIGKILL);
	}
	if (c->killed && patience_over(&c->dies))
		FAIL("seed %llu: does not die", (unsigned long long)c->seed);
	if (waitpid(c->pid, &status, WNOHANG) != c->pid)
		return false;
	if (status && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
		FAIL("seed %llu: status 0x%x", (unsigned long long)c->seed, status);
	c->pid = 0;
	return true;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static long users_of_module(void)
{
	FILE *f = fopen("/sys/module/acp/refcnt", "r");
	long n = -1;

	CHECK(f && fscanf(f, "%ld", &n) == 1);
	fclose(f);
	return n;
}

/* Nobody has the device open except those who had it before. */
static void nothing_left(long before)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	while (users_of_module() != before) {
		if (patience_over(&p))
			FAIL("%ld have the device open, %ld had before", users_of_module(), before);
		sleep_ms(20);
	}
}

/* The kernel allocates ciphers for the first job that needs them: no life should wait for that. */
static void await_ciphers(uint32_t job)
{
	struct setup s;
	struct rank r;

	setup_local(&s, 0, 1);
	s.join.job = job;
	s.join.integrity = ACP_INTEGRITY_AEAD;
	rank_open(&r, &s);
	rank_close(&r);
}

/* Runs as long as requested; life_ended() finds a life that hangs. */
TEST_LONG(K1_K2_K3_P4_syscalls_at_random, 1000 * PATIENCE_LONG_TEST)
{
	uint64_t seconds = setting("ACP_FUZZ_SECONDS", test_short() ? 20 : 10);
	uint64_t first = setting("ACP_FUZZ_SEED", 1), seed = first;
	bool faults = fail_nth_possible();
	struct bystanders others;
	struct child lives[LIVES] = { 0 };
	uint32_t job = (uint32_t)getpid() + 1000000;	/* differs from that of the other tests */
	long users = users_of_module();
	unsigned int i;
	uint64_t end;

	await_ciphers(job + LIVES);
	reached = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(reached != MAP_FAILED);
	bystanders_open(&others);
	end = in_ms(seconds * 1000);
	while (now_ns() < end) {
		for (i = 0; i < LIVES; i++)
			if (life_ended(&lives[i]))
				begin_life(&lives[i], seed++, faults, job + i);
		sleep_ms(5);
	}
	for (i = 0; i < LIVES; i++)
		while (!life_ended(&lives[i]))
			sleep_ms(5);
	printf("# seeds %llu to %llu: %lu calls, of which %lu failed, %lu with faults\n",
	       (unsigned long long)first, (unsigned long long)seed - 1, reached->calls,
	       reached->failed, reached->faults);
	printf("# %lu joins, %lu queues attached, %lu mappings, %lu registrations, %lu commands\n",
	       reached->joined, reached->attached, reached->mapped, reached->registered,
	       reached->completed);
	CHECK(reached->joined && reached->mapped && reached->registered && reached->completed);
	/* On a slow machine with few joins, it is possible that nothing attached. */
	CHECK(reached->attached || reached->joined < 50);
	bystanders_close(&others);
	nothing_left(users);
}
