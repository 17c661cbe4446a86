// SPDX-License-Identifier: MIT
/* Ranks for tests (see rank.h). */
#include "isolated.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "rank.h"

/* ---- Joining ---- */

static void setup_common(struct setup *s, uint32_t rank, uint32_t nprocs, uint32_t nodes)
{
	uint32_t per_node = (nprocs + nodes - 1) / nodes;

	memset(s, 0, sizeof(*s));
	s->ranks[0] = (struct acp_rank_run){ 0, nprocs, 0, nodes, per_node, 0 };
	s->join = (struct acp_join){
		.size = sizeof(s->join), .version = ACP_ABI_VERSION,
		.rank = rank, .nprocs = nprocs, .job = (uint32_t)getpid(),
		.nodes = nodes, .colors = 1, .port = ACP_PORT_DEFAULT,
		.timeout_ms = 5000, .open_timeout_ms = 5000,
		.rank_runs = 1, .rank_run_ptr = (uintptr_t)s->ranks,
		.node_run_ptr = (uintptr_t)s->nodes,
		.starter_size = 10240, .heap_size = 65536, .depth = 64,
	};
	memcpy(s->join.key, "sixteen byte key", 16);
}

void setup_nodes(struct setup *s, uint32_t rank, uint32_t nprocs, uint32_t nodes,
		 const char *const *addresses)
{
	struct acp_node_run *run = s->nodes;
	uint32_t i;

	setup_common(s, rank, nprocs, nodes);
	for (i = 0; addresses[i]; i++, run++) {
		run->first = i % nodes;
		run->count = 1;
		run->color = (uint16_t)(i / nodes);
		run->family = strchr(addresses[i], ':') ? AF_INET6 : AF_INET;
		CHECK_EQ(inet_pton(run->family, addresses[i], run->addr), 1);
	}
	s->join.node_runs = i;
	s->join.colors = i / nodes;
}

void setup_local(struct setup *s, uint32_t rank, uint32_t nprocs)
{
	static const char *const loopback[] = { "127.0.0.1", NULL };

	setup_nodes(s, rank, nprocs, 1, loopback);
}

int device_open(void)
{
	int fd = open(ACP_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		FAIL("open " ACP_DEVICE ": %s", strerror(errno));
	return fd;
}

int setup_join(struct setup *s)
{
	const struct acp_join before = s->join;
	int fd = device_open();
	int error = ioctl(fd, ACP_IOC_JOIN, &s->join) ? errno : 0;

	/* The kernel clears it. */
	memcpy(s->join.key, before.key, sizeof(before.key));
	if (!error)
		return fd;
	close(fd);
	return -error;
}

void *rank_map(int fd, uint32_t kind, uint32_t rank, size_t size, int prot)
{
	return mmap(NULL, size, prot, MAP_SHARED, fd, (off_t)ACP_MAP(kind, rank));
}

static void *map_own(struct rank *r, uint32_t kind, size_t size, int prot)
{
	uint32_t rank = kind == ACP_MAP_SQ || kind == ACP_MAP_CQ ? 0 : r->join.rank;
	void *p;

	if (!size)
		return NULL;
	p = rank_map(r->fd, kind, rank, size, prot);
	if (p == MAP_FAILED)
		FAIL("mmap kind %u, %zu bytes: %s", kind, size, strerror(errno));
	return p;
}

void rank_open(struct rank *r, struct setup *s)
{
	memset(r, 0, sizeof(*r));
	r->fd = setup_join(s);
	if (r->fd < 0)
		FAIL("join as rank %u: %s", s->join.rank, strerror(-r->fd));
	r->join = s->join;
	r->layout = acp_ga_layout(r->join.nprocs);
	r->sq = map_own(r, ACP_MAP_SQ, r->join.sq_bytes, PROT_READ | PROT_WRITE);
	r->entries = (struct acp_sqe *)(r->sq + 1);
	r->cq = map_own(r, ACP_MAP_CQ, r->join.cq_bytes, PROT_READ);
	r->starter = map_own(r, ACP_MAP_STARTER, r->join.starter_size, PROT_READ | PROT_WRITE);
	r->heap = map_own(r, ACP_MAP_HEAP, r->join.heap_size, PROT_READ | PROT_WRITE);
	r->last = 1;
}

void rank_open_local(struct rank *ranks, uint32_t nprocs)
{
	struct setup s;
	uint32_t i;

	for (i = 0; i < nprocs; i++) {
		setup_local(&s, i, nprocs);
		rank_open(&ranks[i], &s);
	}
}

void rank_close(struct rank *r)
{
	munmap(r->sq, r->join.sq_bytes);
	munmap((void *)r->cq, r->join.cq_bytes);
	if (r->starter)
		munmap(r->starter, r->join.starter_size);
	if (r->heap)
		munmap(r->heap, r->join.heap_size);
	CHECK_EQ(close(r->fd), 0);
}

int rank_attach_fd(int fd, const struct rank *r, struct acp_attach *a)
{
	*a = (struct acp_attach){ .size = sizeof(*a), .fd = r->fd, .depth = r->join.depth };
	return ioctl(fd, ACP_IOC_ATTACH, a) ? -errno : 0;
}

void rank_attach(struct rank *further, const struct rank *r)
{
	struct acp_attach a;
	int error;

	*further = *r;
	further->fd = device_open();
	error = rank_attach_fd(further->fd, r, &a);
	if (error)
		FAIL("attach: %s", strerror(-error));
	further->join.sq_bytes = a.sq_bytes;
	further->join.cq_bytes = a.cq_bytes;
	further->last = a.first;
	further->sq = map_own(further, ACP_MAP_SQ, a.sq_bytes, PROT_READ | PROT_WRITE);
	further->entries = (struct acp_sqe *)(further->sq + 1);
	further->cq = map_own(further, ACP_MAP_CQ, a.cq_bytes, PROT_READ);
}

void rank_detach(struct rank *further)
{
	munmap(further->sq, further->join.sq_bytes);
	munmap((void *)further->cq, further->join.cq_bytes);
	CHECK_EQ(close(further->fd), 0);
}

/* ---- Commands ---- */

uint64_t rank_completed(const struct rank *r)
{
	return __atomic_load_n(&r->cq->completed, __ATOMIC_ACQUIRE);
}

uint64_t rank_push(struct rank *r, const struct acp_sqe *e)
{
	uint64_t ticket = ++r->last;

	r->entries[ticket & (r->join.depth - 1)] = *e;
	__atomic_store_n(&r->sq->tail, ticket, __ATOMIC_RELEASE);
	return ticket;
}

static void make_room(struct rank *r)
{
	uint64_t oldest = r->last + 1 - r->join.depth;

	if (r->last - rank_completed(r) < r->join.depth)
		return;
	if (rank_await(r, oldest, PATIENCE_WORK) < 0)
		FAIL("ticket %llu did not complete", (unsigned long long)oldest);
}

uint64_t rank_submit(struct rank *r, const struct acp_sqe *e)
{
	uint64_t ticket;

	make_room(r);
	ticket = rank_push(r, e);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&r->cq->flags, __ATOMIC_RELAXED) & ACP_CQ_NEED_WAKEUP)
		CHECK_EQ(ioctl(r->fd, ACP_IOC_DOORBELL), 0);
	return ticket;
}

uint64_t rank_copy(struct rank *r, uint64_t dst, uint64_t src, uint64_t size, uint64_t order)
{
	struct acp_sqe e = {
		.op = ACP_OP_COPY, .dst = dst, .src = src, .size = size,
		.order = order, .seen = rank_completed(r),
	};

	return rank_submit(r, &e);
}

uint64_t rank_atomic(struct rank *r, unsigned int op, uint64_t dst, uint64_t src, uint64_t a,
		     uint64_t b, uint64_t order)
{
	struct acp_sqe e = {
		.op = (uint8_t)op, .dst = dst, .src = src, .a = a, .b = b,
		.order = order, .seen = rank_completed(r),
	};

	return rank_submit(r, &e);
}

int rank_wait(struct rank *r, uint64_t ticket, uint64_t timeout_ns)
{
	struct acp_wait w = { .size = sizeof(w), .ticket = ticket, .timeout_ns = timeout_ns };

	while (rank_completed(r) < ticket) {
		if (ioctl(r->fd, ACP_IOC_WAIT, &w) == 0 || errno == EINTR)
			continue;
		if (errno == ETIMEDOUT)
			return -1;
		FAIL("wait: %s", strerror(errno));
	}
	return r->cq->status[ticket & (r->join.depth - 1)];
}

int rank_await(struct rank *r, uint64_t ticket, uint64_t base)
{
	struct patience p = patience_begin(base);
	int status;

	do
		status = rank_wait(r, ticket, patience_left(&p));
	while (status < 0 && !patience_over(&p));
	return status;
}

static int finish(struct rank *r, uint64_t ticket)
{
	int status = rank_await(r, ticket, PATIENCE_WORK);

	if (status < 0)
		FAIL("a command of rank %u did not end", r->join.rank);
	return status;
}

int rank_do_copy(struct rank *r, uint64_t dst, uint64_t src, uint64_t size)
{
	return finish(r, rank_copy(r, dst, src, size, 0));
}

void rank_works(struct rank *r)
{
	fill(r->heap, 100, 7);
	CHECK_EQ(rank_do_copy(r, heap_ga(r, 100), heap_ga(r, 0), 100), ACP_ST_OK);
	CHECK(filled(r->heap + 100, 100, 7));
}

int rank_do_atomic(struct rank *r, unsigned int op, uint64_t dst, uint64_t src, uint64_t a,
		   uint64_t b)
{
	return finish(r, rank_atomic(r, op, dst, src, a, b, 0));
}

uint64_t atomic_result(unsigned int op, uint64_t old, uint64_t a, uint64_t b)
{
	uint64_t mask = atomic_width(op) == 8 ? ~0ULL : 0xffffffffULL;

	switch (op) {
	case ACP_OP_CAS4:
	case ACP_OP_CAS8:
		return (old & mask) == (a & mask) ? b & mask : old & mask;
	case ACP_OP_SWAP4:
	case ACP_OP_SWAP8:
		return a & mask;
	case ACP_OP_ADD4:
	case ACP_OP_ADD8:
		return (old + a) & mask;
	case ACP_OP_XOR4:
	case ACP_OP_XOR8:
		return (old ^ a) & mask;
	case ACP_OP_OR4:
	case ACP_OP_OR8:
		return (old | a) & mask;
	default:
		return old & a & mask;
	}
}

/* ---- Memory ---- */

uint64_t rank_ga(const struct rank *r, uint32_t rank, uint32_t stag, uint64_t offset)
{
	return acp_ga_make(&r->layout, rank, 0, stag, offset);
}

int rank_register_color(struct rank *r, struct memory *m, void *addr, size_t size,
			uint32_t access, uint32_t color)
{
	m->addr = addr;
	m->size = size;
	m->reg = (struct acp_reg){
		.size = sizeof(m->reg), .color = color, .access = access,
		.addr = (uintptr_t)addr, .length = size,
	};
	return ioctl(r->fd, ACP_IOC_REG, &m->reg) ? -errno : 0;
}

int rank_register(struct rank *r, struct memory *m, void *addr, size_t size, uint32_t access)
{
	return rank_register_color(r, m, addr, size, access, 0);
}

int rank_unregister(struct rank *r, uint64_t key, uint32_t *left)
{
	struct acp_unreg u = { .size = sizeof(u), .key = key };
	int result = ioctl(r->fd, ACP_IOC_UNREG, &u) ? -errno : 0;

	if (left)
		*left = u.left;
	return result;
}

void *pages(size_t size, int prot)
{
	void *p = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		FAIL("mmap of %zu bytes: %s", size, strerror(errno));
	return p;
}

void memory_open(struct rank *r, struct memory *m, size_t size)
{
	int error = rank_register(r, m, pages(size, PROT_READ | PROT_WRITE), size,
				  ACP_ACCESS_ALL);

	if (error)
		FAIL("register %zu bytes: %s", size, strerror(-error));
}

void *before_hole(size_t n)
{
	char *p = pages(2 * PAGE, PROT_READ | PROT_WRITE);

	CHECK_EQ(munmap(p + PAGE, PAGE), 0);
	return p + PAGE - n;
}

static uint8_t pattern(uint64_t seed, size_t i)
{
	uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15ULL + (i >> 3) * 0xbf58476d1ce4e5b9ULL;

	x ^= x >> 29;
	return (uint8_t)(x >> (8 * (i & 7)));
}

void fill(void *p, size_t n, uint64_t seed)
{
	uint8_t *byte = p;
	size_t i;

	for (i = 0; i < n; i++)
		byte[i] = pattern(seed, i);
}

bool filled(const void *p, size_t n, uint64_t seed)
{
	const uint8_t *byte = p;
	size_t i;

	for (i = 0; i < n; i++)
		if (byte[i] != pattern(seed, i))
			return false;
	return true;
}

/* ---- Miscellaneous ---- */

uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

uint64_t in_ms(uint64_t ms)
{
	return now_ns() + ms * MS;
}

void sleep_ms(unsigned int ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000L };

	nanosleep(&t, NULL);
}

static int limit_open(const char *name, int flags)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/sys/net/acp/%s", name);
	return open(path, flags | O_CLOEXEC);
}

long long limit_get(const char *name)
{
	int fd = limit_open(name, O_RDONLY);
	char text[32] = "";
	long long value = -1;

	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) > 0)
		value = strtoll(text, NULL, 10);
	close(fd);
	return value;
}

int limit_try(const char *name, const char *value)
{
	int fd = limit_open(name, O_WRONLY), error = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		error = -errno;
	close(fd);
	return error;
}

void limit_set(const char *name, unsigned long value)
{
	char text[32];
	int error;

	snprintf(text, sizeof(text), "%lu", value);
	error = limit_try(name, text);
	if (error)
		FAIL("net.acp.%s = %s: %s", name, text, strerror(-error));
	CHECK_EQ(limit_get(name), value);
}

void limit_pages(unsigned long n)
{
	struct rlimit limit = { n * PAGE, RLIM_INFINITY };

	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

void drop_capability(int number)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2];

	CHECK_EQ(syscall(SYS_capget, &h, d), 0);
	d[number / 32].effective &= ~(1u << (number % 32));
	CHECK_EQ(syscall(SYS_capset, &h, d), 0);
}

/* The number after @name in a file with lines "name number", or -1. */
static long long lookup(const char *path, const char *name)
{
	size_t length = strlen(name);
	long long value = -1;
	char line[256];
	FILE *f = fopen(path, "r");

	if (!f)
		return -1;
	while (value < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, length) && strchr(": \t", line[length]))
			value = strtoll(line + length + 1, NULL, 10);
	fclose(f);
	return value;
}

long status_kib(const char *name)
{
	return (long)lookup("/proc/self/status", name);
}

long meminfo_kib(const char *name)
{
	return (long)lookup("/proc/meminfo", name);
}

long long counter(const char *name)
{
	char path[64];

	/* Not /proc/net, which is the namespace of the first thread. */
	snprintf(path, sizeof(path), "/proc/self/task/%ld/net/acp", (long)syscall(SYS_gettid));
	return lookup(path, name);
}
