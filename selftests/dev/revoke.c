// SPDX-License-Identifier: MIT
/* selftest: cpus=2 leaks */
/*
 * M3: memory is unmapped while others write to it. Once the call that unmaps it has returned, no
 * byte of it changes. M6: memory with missing pages that nobody provides.
 */
#include "isolated.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "rank.h"

#define REGION	(256 * 1024UL)
#define RANKS	40	/* two of which are joined at a time */

/* Rank 1 writes to @target in an endless loop; its data changes from time to time. */
struct writer {
	struct rank r;
	struct memory source;
	uint64_t target;		/* GA; 0: nothing to do; atomic */
	uint64_t ok, refused;		/* atomic */
	uint64_t size;
	int also;			/* a status that is accepted like ACP_ST_STAG */
	pthread_t thread;
};

static bool stop;
static struct rank owner;
static struct writer writer;

static void *write_on(void *arg)
{
	struct writer *w = arg;
	uint64_t n = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		uint64_t target = __atomic_load_n(&w->target, __ATOMIC_ACQUIRE);
		int status;

		if (!target)
			continue;
		memset(w->source.addr, (int)n++, w->size);
		status = rank_do_copy(&w->r, target, memory_ga(&w->source, 0), w->size);
		if (status == ACP_ST_OK)
			__atomic_fetch_add(&w->ok, 1, __ATOMIC_RELEASE);
		else if (status == ACP_ST_STAG || status == w->also)
			__atomic_fetch_add(&w->refused, 1, __ATOMIC_RELEASE);
		else
			FAIL("the writer's status is %d", status);
	}
	return NULL;
}

static void begin(uint64_t size)
{
	struct setup s;

	setup_local(&s, 0, RANKS);
	rank_open(&owner, &s);
	setup_local(&s, 1, RANKS);
	rank_open(&writer.r, &s);
	memory_open(&writer.r, &writer.source, size);
	writer.size = size;
	CHECK_EQ(pthread_create(&writer.thread, NULL, write_on, &writer), 0);
}

/* Let the writer write to this memory; return when it has done so at least once. */
static void aim(const struct memory *m)
{
	uint64_t before = __atomic_load_n(&writer.ok, __ATOMIC_ACQUIRE);

	__atomic_store_n(&writer.target, memory_ga(m, 0), __ATOMIC_RELEASE);
	while (__atomic_load_n(&writer.ok, __ATOMIC_ACQUIRE) == before)
		;
}

static void wait_refused(void)
{
	uint64_t before = __atomic_load_n(&writer.refused, __ATOMIC_ACQUIRE);
	struct patience p = patience_begin(PATIENCE_SOON);

	while (__atomic_load_n(&writer.refused, __ATOMIC_ACQUIRE) < before + 2)
		if (patience_over(&p))
			FAIL("the writer still succeeds");
}

/* From now on no byte changes. */
static void check_still(const char *p, size_t size)
{
	static char copy[REGION];

	memcpy(copy, p, size);
	wait_refused();
	if (memcmp(copy, p, size))
		FAIL("memory changed after it was taken away");
}

static void unregister_rounds(uint64_t size, int rounds)
{
	begin(size);
	while (rounds--) {
		struct memory m;

		memory_open(&owner, &m, REGION);
		aim(&m);
		CHECK_EQ(rank_unregister(&owner, m.reg.key, NULL), 0);
		check_still(m.addr, REGION);
		CHECK_EQ(munmap(m.addr, REGION), 0);
	}
}

TEST(M3_unregister_while_written)
{
	unregister_rounds(4096, test_short() ? 50 : 300);
}

TEST(M3_unregister_while_written_in_long_copies)
{
	unregister_rounds(REGION, test_short() ? 20 : 100);
}

TEST(M3_munmap_while_written)
{
	int i, rounds = test_short() ? 30 : 200;

	begin(4096);
	for (i = 0; i < rounds; i++) {
		struct memory m;
		char *p;

		memory_open(&owner, &m, REGION);
		aim(&m);
		CHECK_EQ(munmap(m.addr, REGION), 0);
		p = mmap(m.addr, REGION, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		CHECK(p == m.addr);
		check_still(p, REGION);
		CHECK_EQ(rank_unregister(&owner, m.reg.key, NULL), 0);
		CHECK_EQ(munmap(p, REGION), 0);
	}
}

TEST(M3_close_while_written)
{
	int i, rounds = test_short() ? 10 : 30;

	begin(4096);
	writer.also = ACP_ST_RANK;
	for (i = 0; i < rounds; i++) {
		struct memory m;
		struct setup s;

		memory_open(&owner, &m, REGION);
		aim(&m);
		rank_close(&owner);
		check_still(m.addr, REGION);
		CHECK_EQ(munmap(m.addr, REGION), 0);
		setup_local(&s, (uint32_t)i + 2, RANKS);	/* each rank joins once */
		rank_open(&owner, &s);
	}
}

/* ---- Single cases ---- */

static struct rank r[2];
static struct memory m;

static void begin_still(void)
{
	rank_open_local(r, 2);
	memory_open(&r[0], &m, 16 * PAGE);
	fill(r[1].heap, 100, 1);
}

static int write_to(size_t offset)
{
	return rank_do_copy(&r[1], memory_ga(&m, offset), heap_ga(&r[1], 0), 100);
}

/* The kernel may need a moment to notice; until then writes have no visible effect. */
static void refused_soon(size_t offset)
{
	int i;

	for (i = 0; i < 500; i++) {
		int status = write_to(offset);

		if (status == ACP_ST_STAG)
			return;
		CHECK_EQ(status, ACP_ST_OK);
		sleep_ms(10);
	}
	FAIL("still accepted after 5 s");
}

TEST(M3_munmap_revokes)
{
	begin_still();
	CHECK_EQ(write_to(0), ACP_ST_OK);
	CHECK_EQ(munmap(m.addr, m.size), 0);
	CHECK_EQ(write_to(0), ACP_ST_STAG);
	CHECK_EQ(rank_do_copy(&r[1], heap_ga(&r[1], 0), memory_ga(&m, 0), 8), ACP_ST_STAG);
	CHECK_EQ(rank_do_atomic(&r[1], ACP_OP_ADD8, heap_ga(&r[1], 0), memory_ga(&m, 0), 1, 0),
		 ACP_ST_STAG);
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), -ENOENT);
}

TEST(M3_munmap_of_a_part_revokes)
{
	struct memory again;

	begin_still();
	CHECK_EQ(munmap(m.addr + 15 * PAGE, PAGE), 0);
	CHECK_EQ(write_to(0), ACP_ST_STAG);
	CHECK_EQ(rank_register(&r[0], &again, m.addr, 15 * PAGE, ACP_ACCESS_ALL), 0);
	CHECK(again.reg.key != m.reg.key);
	m = again;
	CHECK_EQ(write_to(0), ACP_ST_OK);
	CHECK(filled(m.addr, 100, 1));
}

TEST(M3_mremap_revokes)
{
	char *old, *p;

	begin_still();
	old = m.addr;
	p = mremap(m.addr, m.size, 32 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		   pages(32 * PAGE, PROT_NONE));
	CHECK(p != MAP_FAILED && p != old);
	CHECK_EQ(write_to(0), ACP_ST_STAG);
	CHECK(!filled(p, 100, 1));
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
}

TEST(M3_new_mapping_over_the_old_one_revokes)
{
	char *p;

	begin_still();
	p = mmap(m.addr, m.size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(p == m.addr);
	CHECK_EQ(write_to(0), ACP_ST_STAG);
	CHECK_EQ(p[0], 0);
}

TEST(M3_madvise_dontneed)
{
	size_t i;

	begin_still();
	CHECK_EQ(write_to(3 * PAGE), ACP_ST_OK);
	CHECK(filled(m.addr + 3 * PAGE, 100, 1));
	CHECK_EQ(madvise(m.addr + 3 * PAGE, PAGE, MADV_DONTNEED), 0);
	refused_soon(3 * PAGE);
	for (i = 0; i < PAGE; i++)
		CHECK_EQ(m.addr[3 * PAGE + i], 0);
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
}

TEST(M3_madvise_free)
{
	begin_still();
	CHECK_EQ(madvise(m.addr, m.size, MADV_FREE), 0);
	CHECK_EQ(write_to(PAGE), ACP_ST_OK);
	CHECK(filled(m.addr + PAGE, 100, 1));
}

/* The kernel migrates and swaps pages: pinned ones remain. */
TEST(M3_compaction_and_reclaim_do_no_harm)
{
	struct memory big;
	int i;

	begin_still();
	memory_open(&r[0], &big, 8 << 20);
	for (i = 0; i < 5; i++) {
		write_file("/proc/sys/vm/compact_memory", "1");
		madvise(big.addr, big.size, MADV_COLD);
		madvise(big.addr, big.size, MADV_PAGEOUT);
		madvise(big.addr, big.size, MADV_MERGEABLE);
		madvise(big.addr, big.size, MADV_HUGEPAGE);
		write_file("/proc/sys/vm/drop_caches", "3");
		fill(r[1].heap, 10000, (uint64_t)i);
		CHECK_EQ(rank_do_copy(&r[1], memory_ga(&big, 4 << 20), heap_ga(&r[1], 0), 10000),
			 ACP_ST_OK);
		CHECK(filled(big.addr + (4 << 20), 10000, (uint64_t)i));
	}
	CHECK_EQ(rank_unregister(&r[0], big.reg.key, NULL), 0);
}

#define BLOCKS	"/sys/devices/system/memory/"

/* The sysfs directory of the memory block that contains a page. */
static void block_of(const char *page, char *path, size_t room)
{
	FILE *f = fopen(BLOCKS "block_size_bytes", "r");
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry;
	long size;

	if (!f)
		SKIP("this kernel cannot take memory away");
	CHECK_EQ(fscanf(f, "%lx", &size), 1);
	fclose(f);
	CHECK_EQ(pread(fd, &entry, 8, (off_t)((uintptr_t)page / PAGE * 8)), 8);
	close(fd);
	CHECK(entry >> 63);
	snprintf(path, room, BLOCKS "memory%llu/state",
		 (entry & ((1ULL << 55) - 1)) * PAGE / (unsigned long)size);
}

/* An attempt to set the memory offline: it must remain, unchanged. */
TEST(M3_memory_block_offline)
{
	char path[100], state[20] = "";
	struct memory big;
	int i, status = 0;
	pid_t child;
	FILE *f;

	begin_still();
	memory_open(&r[0], &big, 32 << 20);
	block_of(big.addr + (16 << 20), path, sizeof(path));
	child = fork();
	if (!child) {
		/* the kernel retries until this process is killed */
		write_file(path, "offline");
		_exit(0);
	}
	for (i = 0; i < 40; i++) {
		fill(r[1].heap, 10000, (uint64_t)i);
		CHECK_EQ(rank_do_copy(&r[1], memory_ga(&big, 16 << 20), heap_ga(&r[1], 0), 10000),
			 ACP_ST_OK);
		CHECK(filled(big.addr + (16 << 20), 10000, (uint64_t)i));
		sleep_ms(50);
	}
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, &status, 0), child);
	f = fopen(path, "r");
	CHECK(f);
	CHECK(fgets(state, sizeof(state), f));
	fclose(f);
	printf("# %s\n", path);
	CHECK_EQ(strcmp(state, "online\n"), 0);
	CHECK(filled(big.addr + (16 << 20), 10000, 39));
	CHECK_EQ(rank_unregister(&r[0], big.reg.key, NULL), 0);
}

static long long read_number(const char *path)
{
	long long value = -1;
	FILE *f = fopen(path, "r");

	if (!f)
		return -1;
	if (fscanf(f, "%lld", &value) != 1)
		value = -1;
	fclose(f);
	return value;
}

#define KSM	"/sys/kernel/mm/ksm/"

/* Wait until a KSM counter reaches @wanted. */
static void merged(const char *path, long long wanted)
{
	struct patience p = patience_begin(PATIENCE_WORK);

	while (read_number(path) < wanted)
		if (patience_over(&p))
			FAIL("%s is %lld, not %lld", path, read_number(path), wanted);
}

/* Identical pages are merged, except those that others write to. */
TEST(M3_same_page_merging)
{
	char *twins = pages(32 * PAGE, PROT_READ | PROT_WRITE);

	if (access(KSM "run", W_OK))
		SKIP("no merging of pages");
	begin_still();
	memset(twins, 1, 32 * PAGE);
	memset(m.addr, 1, m.size);
	write_file(KSM "pages_to_scan", "1000");
	write_file(KSM "run", "1");
	CHECK_EQ(madvise(twins, 32 * PAGE, MADV_MERGEABLE), 0);
	merged(KSM "pages_sharing", 31);
	CHECK_EQ(madvise(m.addr, m.size, MADV_MERGEABLE), 0);
	merged(KSM "full_scans", read_number(KSM "full_scans") + 4);
	CHECK_EQ(write_to(2 * PAGE), ACP_ST_OK);
	CHECK(filled(m.addr + 2 * PAGE, 100, 1));
	CHECK_EQ(m.addr[PAGE], 1);
	CHECK_EQ(twins[2 * PAGE], 1);
	write_file(KSM "run", "2");
}

/* With swap: unregistered pages are swapped out, registered ones stay where others write. */
static void swap_out(void)
{
	char *other = pages(4 << 20, PROT_READ | PROT_WRITE);
	struct memory big;

	begin_still();
	memory_open(&r[0], &big, 4 << 20);
	fill(big.addr, big.size, 5);
	fill(other, 4 << 20, 6);
	CHECK_EQ(madvise(big.addr, big.size, MADV_PAGEOUT), 0);
	CHECK_EQ(madvise(other, 4 << 20, MADV_PAGEOUT), 0);
	CHECK(status_kib("VmSwap") > 1024);
	CHECK_EQ(rank_do_copy(&r[1], memory_ga(&big, 2 << 20), heap_ga(&r[1], 0), 100), ACP_ST_OK);
	CHECK(filled(big.addr, 2 << 20, 5));
	CHECK(filled(big.addr + (2 << 20), 100, 1));
	CHECK(filled(other, 4 << 20, 6));
	_exit(0);
}

TEST(M3_swap)
{
	int status = 0;
	pid_t child;

	if (!set_swap(true))
		SKIP("no swap");
	child = fork();
	if (!child)
		swap_out();
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(set_swap(false));
	CHECK_EQ(status, 0);
}

TEST(M3_mprotect_and_back)
{
	begin_still();
	CHECK_EQ(mprotect(m.addr, m.size, PROT_NONE), 0);
	write_to(0);		/* OK or STAG: not specified; nothing may break */
	CHECK_EQ(mprotect(m.addr, m.size, PROT_READ | PROT_WRITE), 0);
	if (write_to(0) == ACP_ST_OK)
		CHECK(filled(m.addr, 100, 1));
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
}

/* ---- M6: pages that nobody provides ---- */

/* From now on missing pages would have to be provided through a descriptor, which never happens. */
static void never_provide(void *p, size_t size)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { (uintptr_t)p, size }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		SKIP("no userfaultfd: %s", strerror(errno));
	CHECK_EQ(ioctl(fd, UFFDIO_API, &api), 0);
	CHECK_EQ(ioctl(fd, UFFDIO_REGISTER, &range), 0);
}

/*
 * CONFIG_DEBUG_VM: a kernel that cannot wait for such a page logs that. dump_vma() is part of it.
 */
static bool logs_refusals(void)
{
	return system("grep -q ' dump_vma$' /proc/kallsyms") == 0;
}

/* Registration is rejected, or the caller waits; others continue, and it can be killed. */
TEST(M6_registering_what_never_comes)
{
	int ready[2], status = 0;
	struct setup s;
	pid_t child;
	char byte;

	if (logs_refusals())
		SKIP("this kernel logs a trace when it refuses");
	CHECK_EQ(pipe(ready), 0);
	setup_local(&s, 1, 2);
	rank_open(&r[1], &s);
	setup_local(&s, 0, 2);
	s.join.job = r[1].join.job;
	child = fork();
	if (!child) {
		rank_open(&r[0], &s);
		m.addr = pages(PAGE, PROT_READ | PROT_WRITE);
		never_provide(m.addr, PAGE);
		CHECK_EQ(write(ready[1], "", 1), 1);
		CHECK(rank_register(&r[0], &m, m.addr, PAGE, ACP_ACCESS_ALL) != 0);
		pause();
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		_exit(0);	/* the child has reported the error */
	sleep_ms(300);
	CHECK_EQ(rank_do_copy(&r[1], rank_ga(&r[1], 0, ACP_STAG_HEAP, 0), heap_ga(&r[1], 0), 100),
		 ACP_ST_OK);
	CHECK_EQ(kill(child, SIGKILL), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(rank_do_copy(&r[1], rank_ga(&r[1], 0, ACP_STAG_HEAP, 0), heap_ga(&r[1], 0), 100),
		 ACP_ST_RANK);
}

/* Registered, then dropped, and never populated again: a writer still gets an answer. */
TEST(M6_page_never_comes_back)
{
	begin_still();
	never_provide(m.addr, m.size);
	CHECK_EQ(write_to(0), ACP_ST_OK);
	CHECK_EQ(madvise(m.addr, m.size, MADV_DONTNEED), 0);
	refused_soon(0);
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
}

/* ---- fork, exec, exit ---- */

static void ends_well(pid_t child)
{
	int status = 0;

	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

/* The memory of the parent stays registered, the copy of the child does not change. */
TEST(M3_fork)
{
	int to_child[2], to_parent[2];
	pid_t child;
	char byte = 0;

	begin_still();
	memset(m.addr, 7, m.size);
	CHECK_EQ(pipe(to_child), 0);
	CHECK_EQ(pipe(to_parent), 0);
	child = fork();
	if (!child) {
		CHECK_EQ(read(to_child[0], &byte, 1), 1);
		CHECK_EQ(m.addr[0] | m.addr[PAGE] | m.addr[5 * PAGE], 7);
		memset(m.addr, 9, m.size);
		CHECK_EQ(write(to_parent[1], &byte, 1), 1);
		CHECK_EQ(read(to_child[0], &byte, 1), 1);
		_exit(0);
	}
	m.addr[PAGE + 200] = 8;			/* the parent writes first */
	CHECK_EQ(write_to(0), ACP_ST_OK);
	CHECK_EQ(write_to(PAGE), ACP_ST_OK);
	CHECK(filled(m.addr, 100, 1));
	CHECK(filled(m.addr + PAGE, 100, 1));
	CHECK_EQ(m.addr[PAGE + 200], 8);
	CHECK_EQ(write(to_child[1], &byte, 1), 1);
	CHECK_EQ(read(to_parent[0], &byte, 1), 1);
	CHECK_EQ(m.addr[2 * PAGE], 7);
	CHECK_EQ(write_to(5 * PAGE), ACP_ST_OK);
	CHECK(filled(m.addr + 5 * PAGE, 100, 1));
	CHECK_EQ(write(to_child[1], &byte, 1), 1);
	ends_well(child);
	CHECK_EQ(write_to(6 * PAGE), ACP_ST_OK);
	CHECK(filled(m.addr + 6 * PAGE, 100, 1));
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
}

/* A rank in a child, with memory of its own whose address rank 1 knows. */
static pid_t child_rank(void (*then)(struct rank *mine, struct memory *region), uint64_t *target)
{
	struct shared {
		uint64_t ga;
	} *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct setup s;
	pid_t child = fork();

	if (!child) {
		struct memory region;
		struct rank mine;

		setup_local(&s, 0, 2);
		s.join.job = (uint32_t)getppid();
		rank_open(&mine, &s);
		memory_open(&mine, &region, 16 * PAGE);
		__atomic_store_n(&shared->ga, memory_ga(&region, 0), __ATOMIC_RELEASE);
		then(&mine, &region);
		_exit(0);
	}
	setup_local(&s, 1, 2);
	rank_open(&r[1], &s);
	while (!__atomic_load_n(&shared->ga, __ATOMIC_ACQUIRE))
		sleep_ms(1);
	*target = shared->ga;
	return child;
}

static void just_wait(struct rank *mine, struct memory *region)
{
	(void)mine;
	(void)region;
	pause();
}

static void exec_sleep(struct rank *mine, struct memory *region)
{
	(void)region;
	CHECK_EQ(fcntl(mine->fd, F_SETFD, 0), 0);
	execl("/bin/sleep", "sleep", "3", (char *)NULL);
	FAIL("exec: %s", strerror(errno));
}

static void ends_with(uint64_t target, int wanted, int also)
{
	int i, status = ACP_ST_OK;

	for (i = 0; i < 500 && status == ACP_ST_OK; i++) {
		status = rank_do_copy(&r[1], target, heap_ga(&r[1], 0), 5000);
		sleep_ms(5);
	}
	if (status != wanted && status != also)
		FAIL("status %d, wanted %d", status, wanted);
}

TEST(M3_killed_while_written)
{
	int i, rounds = test_short() ? 5 : 20;

	for (i = 0; i < rounds; i++) {
		uint64_t target;
		pid_t child = child_rank(just_wait, &target);

		rank_copy(&r[1], target, heap_ga(&r[1], 0), 50000, 0);
		rank_copy(&r[1], heap_ga(&r[1], 0), target, 50000, 0);
		CHECK_EQ(kill(child, SIGKILL), 0);
		ends_with(target, ACP_ST_RANK, ACP_ST_STAG);
		waitpid(child, NULL, 0);
		ends_with(target, ACP_ST_RANK, ACP_ST_RANK);
		rank_close(&r[1]);
	}
}

/* After exec the memory is gone, although the file is still open. */
TEST(M3_exec)
{
	uint64_t target;
	pid_t child = child_rank(exec_sleep, &target);

	ends_with(target, ACP_ST_STAG, ACP_ST_STAG);
	ends_well(child);
	ends_with(target, ACP_ST_RANK, ACP_ST_RANK);
}
