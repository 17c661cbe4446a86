// SPDX-License-Identifier: MIT
/* selftest: cpus=2 leaks */
/*
 * M3: registered memory stays registered as long as the process has the same pages, whatever the
 * kernel does to its mapping: reclaim, migration, compaction, merging, changes of protection,
 * write protection by a user. It is lost when the process gets other pages.
 */
#include "isolated.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "rank.h"

#define MB		(1UL << 20)
#define HUGE		(2 * MB)
#define SIZE		HUGE		/* of each area */
#define LONGEST		8000UL		/* bytes copied at once */
#define GROUP		"/sys/fs/cgroup/acp-reclaim"
#define KSM		"/sys/kernel/mm/ksm/"
#define THP		"/sys/kernel/mm/transparent_hugepage/"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif
#ifndef UFFD_FEATURE_MINOR_SHMEM
#define UFFD_FEATURE_MINOR_SHMEM	(1 << 10)
#endif
#ifndef UFFDIO_REGISTER_MODE_MINOR
#define UFFDIO_REGISTER_MODE_MINOR	((__u64)1 << 2)
#endif

/* Memory of one kind, and what it must contain. */
struct area {
	const char *name;
	char *(*make)(void);
	bool shared;			/* the file keeps pages that the process drops */
	bool constant;			/* registered read-only, and mapped so */
	struct memory m;
	char *model;			/* NULL: this kernel has no such memory */
};

static struct rank r[2];		/* the owner of the memory, and another rank */
static bool stop;
static int memory_file;			/* of the latest shared memory */

/* ---- Memory of all kinds ---- */

static char *room(size_t size)
{
	char *p = pages(size + HUGE, PROT_NONE);
	char *start = (char *)(((uintptr_t)p + HUGE - 1) & -HUGE);

	CHECK_EQ(munmap(p, size + HUGE), 0);
	return start;
}

static char *map_it(int prot, int flags, int fd)
{
	char *p = mmap(room(SIZE), SIZE, prot, MAP_FIXED_NOREPLACE | flags, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static char *make_anonymous(void)
{
	char *p = map_it(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	CHECK(p);
	madvise(p, SIZE, MADV_NOHUGEPAGE);
	return p;
}

static char *make_thp(void)
{
	char *p = map_it(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	CHECK(p);
	madvise(p, SIZE, MADV_HUGEPAGE);
	return p;
}

/* The program's own file, which no memory file system holds. */
static char *map_program(int prot)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	size_t size = 8 * PAGE;
	char *p = room(SIZE);

	CHECK(fd >= 0);
	CHECK(mmap(p, SIZE, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE | MAP_PRIVATE |
		   MAP_ANONYMOUS, -1, 0) == p);
	CHECK(mmap(p, size, prot, MAP_FIXED | MAP_PRIVATE, fd, 0) == p);
	close(fd);
	return p;
}

static char *make_file(void)
{
	return map_program(PROT_READ | PROT_WRITE);
}

static char *make_constant_file(void)
{
	char *p = map_program(PROT_READ);

	CHECK_EQ(mprotect(p, SIZE, PROT_READ), 0);
	return p;
}

static char *make_shared_with(unsigned int flags)
{
	memory_file = (int)syscall(SYS_memfd_create, "area", flags);
	if (memory_file < 0 || ftruncate(memory_file, SIZE))
		return NULL;
	return map_it(PROT_READ | PROT_WRITE, MAP_SHARED, memory_file);
}

static char *make_shared(void)
{
	char *p = make_shared_with(0);

	CHECK(p);
	return p;
}

static char *make_shared_thp(void)
{
	char *p = make_shared();

	madvise(p, SIZE, MADV_HUGEPAGE);
	return p;
}

static char *make_hugetlb(void)
{
	return map_it(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
}

static char *make_shared_hugetlb(void)
{
	return make_shared_with(MFD_HUGETLB);
}

static struct area areas[] = {
	{ .name = "anonymous", .make = make_anonymous },
	{ .name = "anonymous, huge pages", .make = make_thp },
	{ .name = "private, of a file", .make = make_file },
	{ .name = "private, of a file, read-only", .make = make_constant_file, .constant = true },
	{ .name = "shared", .make = make_shared, .shared = true },
	{ .name = "shared, huge pages", .make = make_shared_thp, .shared = true },
	{ .name = "hugetlb", .make = make_hugetlb },
	/* 6.1 reports dropping them as unmapping, which revokes the region. */
	{ .name = "hugetlb, shared", .make = make_shared_hugetlb },
};

#define AREAS	(sizeof(areas) / sizeof(areas[0]))

static void open_area(struct area *a)
{
	uint32_t access = a->constant ? ACP_ACCESS_RO | ACP_ACCESS_READ : ACP_ACCESS_ALL;
	char *p = a->make();
	int error;

	if (!p) {
		printf("# no memory of this kind: %s\n", a->name);
		return;
	}
	if (!a->constant)
		fill(p, SIZE, (uintptr_t)p);
	a->model = pages(SIZE, PROT_READ | PROT_WRITE);
	memcpy(a->model, p, SIZE);
	error = rank_register(&r[0], &a->m, p, SIZE, access);
	if (error)
		FAIL("registering memory (%s): %s", a->name, strerror(-error));
}

/* ---- Traffic ---- */

static void must_work(const struct area *a, int status, const char *what)
{
	if (status != ACP_ST_OK)
		FAIL("%s, %s: status %d", what, a->name, status);
}

static void put_some(struct area *a, uint64_t *seed)
{
	size_t size = next_random(seed) % LONGEST, at = next_random(seed) % (SIZE - size);

	fill(r[1].heap, size, next_random(seed));
	must_work(a, rank_do_copy(&r[1], memory_ga(&a->m, at), heap_ga(&r[1], 0), size), "put");
	memcpy(a->model + at, r[1].heap, size);
}

static void get_some(struct area *a, uint64_t *seed)
{
	size_t size = next_random(seed) % LONGEST, at = next_random(seed) % (SIZE - size);
	char *to = r[1].heap + LONGEST;

	must_work(a, rank_do_copy(&r[1], heap_ga(&r[1], LONGEST), memory_ga(&a->m, at), size),
		  "get");
	if (memcmp(to, a->model + at, size))
		FAIL("get, %s: wrong bytes", a->name);
}

static void traffic(unsigned int seconds)
{
	uint64_t end = in_ms(seconds * 1000UL), seed = (uint64_t)getpid(), copies = 0;
	struct area *a;

	while (now_ns() < end) {
		for (a = areas; a < areas + AREAS; a++) {
			if (!a->model)
				continue;
			if (!a->constant)
				put_some(a, &seed);
			get_some(a, &seed);
			copies++;
		}
	}
	printf("# %llu times put and got\n", (unsigned long long)copies);
}

/* The process itself sees what was written: it still has the registered pages. */
static void check_areas(void)
{
	struct area *a;

	for (a = areas; a < areas + AREAS; a++)
		if (a->model && memcmp(a->m.addr, a->model, SIZE))
			FAIL("%s: the process sees other bytes", a->name);
}

/* ---- What happens to it ---- */

static void advise(const struct area *a)
{
	static const int each[] = {
		MADV_COLD, MADV_PAGEOUT, MADV_MERGEABLE, MADV_HUGEPAGE, MADV_COLLAPSE,
		MADV_NOHUGEPAGE, MADV_PAGEOUT, MADV_UNMERGEABLE,
	};
	size_t i;

	for (i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		madvise(a->m.addr, SIZE, each[i]);
	if (a->shared)
		madvise(a->m.addr, SIZE, MADV_DONTNEED);
}

static void protect(const struct area *a)
{
	int prot = a->constant ? PROT_READ : PROT_READ | PROT_WRITE;

	CHECK_EQ(mprotect(a->m.addr, SIZE, PROT_NONE), 0);
	madvise(a->m.addr, SIZE, MADV_PAGEOUT);
	if (a->shared)
		madvise(a->m.addr, SIZE, MADV_DONTNEED);
	CHECK_EQ(mprotect(a->m.addr, SIZE, PROT_READ), 0);
	CHECK_EQ(mprotect(a->m.addr, SIZE, prot), 0);
	write_file("/proc/self/clear_refs", "4");		/* soft-dirty */
	write_file("/proc/self/clear_refs", "1");
}

static int user_faults(uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0 && !ioctl(fd, UFFDIO_API, &api))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static void write_protect(const struct area *a)
{
	struct uffdio_range range = { (uintptr_t)a->m.addr, SIZE };
	struct uffdio_register all = { .range = range, .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect on = { .range = range, .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	struct uffdio_writeprotect off = { .range = range };
	int fd = user_faults(0);

	if (fd < 0)
		return;
	if (!ioctl(fd, UFFDIO_REGISTER, &all)) {
		ioctl(fd, UFFDIO_WRITEPROTECT, &on);
		madvise(a->m.addr, SIZE, MADV_PAGEOUT);
		ioctl(fd, UFFDIO_WRITEPROTECT, &off);
		ioctl(fd, UFFDIO_UNREGISTER, &range);
	}
	close(fd);
}

static void copy_process(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
}

static void *from_inside(void *change)
{
	const struct area *a;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		for (a = areas; a < areas + AREAS; a++)
			if (a->model)
				((void (*)(const struct area *))change)(a);
		if (change == protect)
			copy_process();
	}
	return NULL;
}

/* Another process wants pages to move away, or to another node of the machine. */
static void from_outside(int process)
{
	unsigned long nodes[2] = { 1, 2 };
	struct iovec range;
	unsigned int i;

	for (i = 0; i < AREAS; i++) {
		range = (struct iovec){ areas[i].m.addr, SIZE };
		if (!areas[i].model)
			continue;
		syscall(SYS_process_madvise, process, &range, 1UL, MADV_PAGEOUT, 0);
		write_file(GROUP "/memory.reclaim", "8M");
	}
	write_file("/proc/sys/vm/compact_memory", "1");
	write_file("/proc/sys/vm/drop_caches", "3");
	syscall(SYS_migrate_pages, getppid(), 64UL, &nodes[0], &nodes[1]);
	syscall(SYS_migrate_pages, getppid(), 64UL, &nodes[1], &nodes[0]);
}

static pid_t begin_neighbour(void)
{
	pid_t child = fork();

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child = (pid_t)syscall(SYS_pidfd_open, getppid(), 0);
	for (;;)
		from_outside(child);
}

/* Let the machine do all that it can. */
static void set_machine(bool on)
{
	printf("# swap: %s\n", set_swap(on) ? "yes" : "no");
	write_file("/proc/sys/vm/nr_hugepages", on ? "8" : "0");
	write_file(THP "enabled", on ? "madvise" : "always");
	write_file(THP "shmem_enabled", on ? "advise" : "never");
	write_file(THP "khugepaged/scan_sleep_millisecs", on ? "50" : "10000");
	write_file(KSM "pages_to_scan", on ? "1000" : "100");
	write_file(KSM "run", on ? "1" : "0");
	write_file("/proc/sys/kernel/numa_balancing", on ? "1" : "0");
	write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
}

static void everything(void)
{
	pthread_t advisor, protector, user;
	unsigned int seconds = test_short() ? 4 : 60;
	pid_t neighbour;
	struct area *a;

	write_file(GROUP "/cgroup.procs", "0");
	rank_open_local(r, 2);
	for (a = areas; a < areas + AREAS; a++)
		open_area(a);
	neighbour = begin_neighbour();
	CHECK_EQ(pthread_create(&advisor, NULL, from_inside, advise), 0);
	CHECK_EQ(pthread_create(&protector, NULL, from_inside, protect), 0);
	CHECK_EQ(pthread_create(&user, NULL, from_inside, write_protect), 0);
	traffic(seconds);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(advisor, NULL);
	pthread_join(protector, NULL);
	pthread_join(user, NULL);
	kill(neighbour, SIGKILL);
	waitpid(neighbour, NULL, 0);
	check_areas();
	traffic(1);
	check_areas();
	_exit(0);
}

/* A minute of all that the kernel does to pages that stay, against traffic. */
TEST_LONG(M3_pages_that_stay_stay_registered, PATIENCE_LONG_TEST)
{
	int status;

	set_machine(true);
	mkdir(GROUP, 0755);
	status = child_status(everything);
	rmdir(GROUP);
	set_machine(false);
	CHECK_EQ(status, 0);
}

/* ---- Single cases, with shared memory ---- */

static struct memory m;

static void begin_shared(void)
{
	char *p = make_shared();

	memset(p, 0, SIZE);
	rank_open_local(r, 2);
	fill(r[1].heap, 100, 1);
	CHECK_EQ(rank_register(&r[0], &m, p, SIZE, ACP_ACCESS_ALL), 0);
}

static int write_to(size_t offset)
{
	return rank_do_copy(&r[1], memory_ga(&m, offset), heap_ga(&r[1], 0), 100);
}

/* For a while, during which pages cannot be looked at: accesses do not wait for that. */
static void keeps_working(void)
{
	int i;

	for (i = 0; i < 30; i++) {
		CHECK_EQ(write_to((size_t)i * PAGE), ACP_ST_OK);
		sleep_ms(10);
	}
}

static void refused_soon(size_t offset)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	int status = ACP_ST_OK;

	while (status == ACP_ST_OK && !patience_over(&p)) {
		status = write_to(offset);
		sleep_ms(1);
	}
	CHECK_EQ(status, ACP_ST_STAG);
}

static void unmap_pages(void)
{
	CHECK_EQ(madvise(m.addr, SIZE, MADV_DONTNEED), 0);
}

static void written(size_t offset)
{
	CHECK(filled(m.addr + offset, 100, 1));
}

/* The process may not touch the memory, and its pages are unmapped: they are still its pages. */
TEST(M3_reclaimed_while_protected)
{
	begin_shared();
	CHECK_EQ(mprotect(m.addr, SIZE, PROT_NONE), 0);
	unmap_pages();
	keeps_working();
	CHECK_EQ(mprotect(m.addr, SIZE, PROT_READ | PROT_WRITE), 0);
	keeps_working();
	written(29 * PAGE);
}

/* From now on, a descriptor decides when missing pages are mapped. */
static int map_on_demand(void)
{
	struct uffdio_register range = {
		.range = { (uintptr_t)m.addr, SIZE }, .mode = UFFDIO_REGISTER_MODE_MINOR,
	};
	int fd = user_faults(UFFD_FEATURE_MINOR_SHMEM);

	if (fd < 0 || ioctl(fd, UFFDIO_REGISTER, &range))
		SKIP("no userfaultfd: %s", strerror(errno));
	return fd;
}

/* A page that cannot be looked at now: the region stays, and the look is repeated. */
TEST(M3_unmapped_and_not_to_be_looked_at)
{
	int fd;

	begin_shared();
	fd = map_on_demand();
	unmap_pages();
	keeps_working();
	close(fd);
	keeps_working();
	written(29 * PAGE);
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
	CHECK_EQ(write_to(0), ACP_ST_STAG);
}

/* While it cannot be looked at, the page leaves its file; then it is looked at no more. */
TEST(M3_lost_while_not_to_be_looked_at)
{
	begin_shared();
	map_on_demand();
	unmap_pages();
	keeps_working();
	CHECK_EQ(fallocate(memory_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 7 * PAGE,
			   PAGE), 0);
	refused_soon(0);
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
}

TEST(M3_unregistered_while_not_to_be_looked_at)
{
	int i, rounds = test_short() ? 10 : 50;

	begin_shared();
	map_on_demand();
	for (i = 0; i < rounds; i++) {
		unmap_pages();
		sleep_ms((unsigned int)i % 5);
		CHECK_EQ(write_to(0), ACP_ST_OK);
		CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
		CHECK_EQ(write_to(0), ACP_ST_STAG);
		memory_open(&r[0], &m, SIZE);
		CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
		munmap(m.addr, SIZE);
		CHECK_EQ(rank_register(&r[0], &m, make_shared(), SIZE, ACP_ACCESS_ALL), 0);
		map_on_demand();
	}
}

TEST(M3_unmapped_while_not_to_be_looked_at)
{
	begin_shared();
	map_on_demand();
	unmap_pages();
	keeps_working();
	CHECK_EQ(munmap(m.addr + PAGE, PAGE), 0);
	CHECK_EQ(write_to(0), ACP_ST_STAG);
}

static void leave_in_doubt(void)
{
	begin_shared();
	map_on_demand();
	unmap_pages();
	CHECK_EQ(write_to(0), ACP_ST_OK);
}

static void killed_in_doubt(void)
{
	leave_in_doubt();
	kill(getpid(), SIGKILL);
}

static void exec_in_doubt(void)
{
	leave_in_doubt();
	execl("/bin/true", "true", (char *)NULL);
}

TEST(M3_ended_while_not_to_be_looked_at)
{
	int i, rounds = test_short() ? 3 : 20;

	if (user_faults(UFFD_FEATURE_MINOR_SHMEM) < 0)
		SKIP("no userfaultfd");
	for (i = 0; i < rounds; i++) {
		in_child(leave_in_doubt);
		CHECK_EQ(child_status(killed_in_doubt), SIGKILL);
		in_child(exec_in_doubt);
	}
}

/* Protected or not: what the process has lost is not written any more. */
TEST(M3_dropped_while_protected)
{
	rank_open_local(r, 2);
	fill(r[1].heap, 100, 1);
	memory_open(&r[0], &m, SIZE);
	CHECK_EQ(mprotect(m.addr, SIZE, PROT_NONE), 0);
	CHECK_EQ(madvise(m.addr + 3 * PAGE, PAGE, MADV_DONTNEED), 0);
	refused_soon(0);
}

/* Pages leave the file while they are not mapped, and while others look for them. */
TEST(M3_hole_in_unmapped_memory)
{
	int i, rounds = test_short() ? 20 : 100;

	begin_shared();
	for (i = 0; i < rounds; i++) {
		if (i % 2)
			unmap_pages();
		CHECK_EQ(fallocate(memory_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				   i % 100 * PAGE, PAGE), 0);
		refused_soon(0);
		CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
		CHECK_EQ(m.addr[i % 100 * PAGE], 0);
		CHECK_EQ(rank_register(&r[0], &m, m.addr, SIZE, ACP_ACCESS_ALL), 0);
	}
}

TEST(M3_file_truncated_while_protected)
{
	begin_shared();
	CHECK_EQ(mprotect(m.addr, SIZE, PROT_NONE), 0);
	unmap_pages();
	keeps_working();
	CHECK_EQ(ftruncate(memory_file, SIZE / 2), 0);
	refused_soon(0);
}
