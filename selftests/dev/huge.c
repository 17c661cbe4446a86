// SPDX-License-Identifier: MIT
/* selftest: leaks */
/*
 * M7: registered memory in huge pages, each of which is pinned once, and mixed with small pages. M3
 * for huge pages: parts are unmapped, split, or copied for a child.
 */
#include "isolated.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/memfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "rank.h"

#define MB	(1UL << 20)
#define HUGE	(2 * MB)
#define RESERVE	"12"		/* huge pages for hugetlb */

enum kind { THP, HUGETLB };

static struct rank r[2];	/* the owner of the memory, and another rank */
static struct memory m;

/* One test for each kind of huge pages. */
#define TEST_BOTH(name)						\
	static void name(enum kind kind);			\
	TEST(name##_thp)					\
	{							\
		name(THP);					\
	}							\
	TEST(name##_hugetlb)					\
	{							\
		name(HUGETLB);					\
	}							\
	static void name(enum kind kind)

/* ---- Memory ---- */

static void need(enum kind kind)
{
	const char *file = kind == THP ? "/sys/kernel/mm/transparent_hugepage/enabled" :
					 "/proc/sys/vm/nr_hugepages";

	if (access(file, F_OK))
		SKIP("this kernel has no %s", kind == THP ? "transparent huge pages" : "hugetlb");
	write_file("/proc/sys/vm/drop_caches", "3");
	write_file("/proc/sys/vm/compact_memory", "1");
	CHECK(write_file(file, kind == THP ? "madvise" : RESERVE));
}

/* Reserve unmapped addresses that are aligned to a huge page. */
static char *room(size_t size)
{
	char *p = pages(size + HUGE, PROT_NONE);
	char *start = (char *)(((uintptr_t)p + HUGE - 1) & -HUGE);

	CHECK_EQ(munmap(p, size + HUGE), 0);
	return start;
}

static char *map_at(char *p, size_t size, int prot, int flags)
{
	char *q = mmap(p, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | flags, -1,
		       0);

	if (q != p)
		FAIL("no memory at %p: %s", p, strerror(errno));
	return p;
}

/* KiB in transparent huge pages of the mapping that begins at @p. */
static long thp_kib(const char *p)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[256], start[32];
	bool found = false;
	long kib = -1;

	CHECK(f);
	snprintf(start, sizeof(start), "%lx-", (unsigned long)p);
	while (kib < 0 && fgets(line, sizeof(line), f)) {
		found = found || !strncmp(line, start, strlen(start));
		if (found)
			sscanf(line, "AnonHugePages: %ld", &kib);
	}
	fclose(f);
	return kib;
}

/* Huge pages at an address, zeroed and populated. */
static char *huge_at(enum kind kind, char *p, size_t size)
{
	map_at(p, size, PROT_READ | PROT_WRITE, kind == HUGETLB ? MAP_HUGETLB : 0);
	if (kind == THP)
		CHECK_EQ(madvise(p, size, MADV_HUGEPAGE), 0);
	memset(p, 0, size);
	if (kind == THP)
		CHECK_EQ(thp_kib(p), size / 1024);
	return p;
}

static char *huge(enum kind kind, size_t size)
{
	need(kind);
	return huge_at(kind, room(size), size);
}

/* Small pages, whatever the settings of the system. */
static char *small_at(char *p, size_t size)
{
	map_at(p, size, PROT_READ | PROT_WRITE, 0);
	madvise(p, size, MADV_NOHUGEPAGE);
	memset(p, 0, size);
	return p;
}

/* The number of pins ever taken or released in the whole machine. */
static long pins(const char *name)
{
	char format[64], line[128];
	long n = -1;
	FILE *f;

	write_file("/proc/sys/vm/stat_refresh", "1");
	f = fopen("/proc/vmstat", "r");
	CHECK(f);
	snprintf(format, sizeof(format), "%s %%ld", name);
	while (n < 0 && fgets(line, sizeof(line), f))
		sscanf(line, format, &n);
	fclose(f);
	CHECK(n >= 0);
	return n;
}

/* ---- Access ---- */

static void register_it(char *p, size_t size)
{
	CHECK_EQ(rank_register(&r[0], &m, p, size, ACP_ACCESS_ALL), 0);
}

static void begin_with(char *p, size_t size)
{
	rank_open_local(r, 2);
	fill(r[1].heap, 100, 1);
	register_it(p, size);
}

static int write_to(size_t offset)
{
	return rank_do_copy(&r[1], memory_ga(&m, offset), heap_ga(&r[1], 0), 100);
}

/* Writes of the other rank are visible to the program in the whole region. */
static void works_all_over(void)
{
	size_t offset;

	for (offset = 0; offset + 100 <= m.size; offset += 64 * 1024 + 52) {
		memset(m.addr + offset, 0, 100);
		CHECK_EQ(write_to(offset), ACP_ST_OK);
		CHECK(filled(m.addr + offset, 100, 1));
	}
}

static void refused_soon(size_t offset)
{
	int i, status = ACP_ST_OK;

	for (i = 0; i < 500 && status == ACP_ST_OK; i++) {
		status = write_to(offset);
		if (status == ACP_ST_OK)
			sleep_ms(10);
	}
	CHECK_EQ(status, ACP_ST_STAG);
}

/* Wait for the worker: the region must not be revoked. */
static void still_works(void)
{
	works_all_over();
	sleep_ms(200);
	works_all_over();
}

static void give_back(void)
{
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
	CHECK_EQ(write_to(0), ACP_ST_STAG);
}

/* ---- M7: costs and function ---- */

/* Registration takes this number of pins, and unregistration releases them. */
static void takes(char *p, size_t size, long wanted)
{
	long made = pins("nr_foll_pin_acquired"), undone = pins("nr_foll_pin_released");

	CHECK_EQ(rank_register(&r[0], &m, p, size, ACP_ACCESS_ALL), 0);
	CHECK_EQ(pins("nr_foll_pin_acquired") - made, wanted);
	CHECK_EQ(pins("nr_foll_pin_released") - undone, 0);
	works_all_over();
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
	CHECK_EQ(pins("nr_foll_pin_released") - undone, wanted);
}

TEST_BOTH(M7_one_pin_for_a_huge_page)
{
	char *p = huge(kind, 2 * HUGE), *s = small_at(room(HUGE), HUGE);

	rank_open_local(r, 2);
	fill(r[1].heap, 100, 1);
	takes(p, 2 * HUGE, 2);
	takes(p + PAGE, 2 * HUGE - 2 * PAGE, 2);
	takes(p + 777, HUGE, 2);
	takes(p + HUGE - 300, 600, 2);
	takes(p + 5 * PAGE, 3 * PAGE, 1);
	takes(s, HUGE, HUGE / PAGE);
	takes(s + 5 * PAGE, 3 * PAGE, 3);
}

/*
 * Small pages, huge pages, small pages: for a region from the middle of the first to the middle of
 * the last.
 */
static char *mixed(enum kind kind)
{
	char *p;

	need(kind);
	p = room(4 * HUGE);
	small_at(p, HUGE);
	huge_at(kind, p + HUGE, 2 * HUGE);
	small_at(p + 3 * HUGE, HUGE);
	return p;
}

TEST_BOTH(M7_copies_of_any_place_and_length)
{
	char *p = mixed(kind), *q = pages(HUGE, PROT_READ | PROT_WRITE);
	char *p_model = malloc(4 * HUGE), *q_model = malloc(HUGE);
	uint64_t seed = 7;
	struct memory n;
	int i;

	begin_with(p + MB + 777, 3 * HUGE - 555);
	CHECK_EQ(rank_register(&r[1], &n, q + 99, MB, ACP_ACCESS_ALL), 0);
	fill(p, 4 * HUGE, 3);
	fill(q, HUGE, 4);
	memcpy(p_model, p, 4 * HUGE);
	memcpy(q_model, q, HUGE);
	for (i = 0; i < (test_short() ? 100 : 400); i++) {
		size_t size = next_random(&seed) % (i % 8 ? 9000 : MB);
		size_t a = next_random(&seed) % (m.size - size);
		size_t b = next_random(&seed) % (n.size - size);
		char *in_p = p_model + (m.addr - p) + a, *in_q = q_model + (n.addr - q) + b;

		if (i % 2) {
			CHECK_EQ(rank_do_copy(&r[1], memory_ga(&m, a), memory_ga(&n, b), size),
				 ACP_ST_OK);
			memcpy(in_p, in_q, size);
		} else {
			CHECK_EQ(rank_do_copy(&r[0], memory_ga(&n, b), memory_ga(&m, a), size),
				 ACP_ST_OK);
			memcpy(in_q, in_p, size);
		}
	}
	CHECK(!memcmp(p, p_model, 4 * HUGE));
	CHECK(!memcmp(q, q_model, HUGE));
	CHECK_EQ(rank_do_copy(&r[1], memory_ga(&m, m.size - 7), memory_ga(&n, 0), 8), ACP_ST_RANGE);
	CHECK_EQ(rank_do_copy(&r[1], memory_ga(&m, -8UL), memory_ga(&n, 0), 8), ACP_ST_RANGE);
}

TEST_BOTH(M7_atomics)
{
	char *p = mixed(kind);
	size_t offset;

	begin_with(p + HUGE - PAGE, 2 * HUGE + 2 * PAGE);
	for (offset = 8; offset < m.size; offset += PAGE * 31) {
		CHECK_EQ(rank_do_atomic(&r[1], ACP_OP_ADD8, heap_ga(&r[1], 0),
					memory_ga(&m, offset), 5, 0), ACP_ST_OK);
		CHECK_EQ(*(uint64_t *)(m.addr + offset), 5);
	}
}

/* Registration faults in pages that have not been written. */
TEST_BOTH(M7_memory_not_touched_yet)
{
	char *p;

	need(kind);
	p = map_at(room(2 * HUGE), 2 * HUGE, PROT_READ | PROT_WRITE,
		   kind == HUGETLB ? MAP_HUGETLB : 0);
	if (kind == THP)
		CHECK_EQ(madvise(p, 2 * HUGE, MADV_HUGEPAGE), 0);
	rank_open_local(r, 2);
	fill(r[1].heap, 100, 1);
	takes(p, 2 * HUGE, 2);
}

/*
 * Registered read-only, then the program writes: others read the same data, or the region is
 * revoked.
 */
TEST(M7_huge_zero_page)
{
	char *p, byte = 0;
	int i, status = ACP_ST_OK;

	need(THP);
	p = map_at(room(HUGE), HUGE, PROT_READ | PROT_WRITE, 0);
	CHECK_EQ(madvise(p, HUGE, MADV_HUGEPAGE), 0);
	for (i = 0; i < 512; i++)
		byte |= *(volatile char *)(p + i * PAGE);
	CHECK_EQ(byte, 0);
	rank_open_local(r, 2);
	CHECK_EQ(rank_register(&r[0], &m, p, HUGE, ACP_ACCESS_RO | ACP_ACCESS_READ), 0);
	memset(r[1].heap, 1, 8);
	CHECK_EQ(rank_do_copy(&r[1], heap_ga(&r[1], 0), memory_ga(&m, MB), 8), ACP_ST_OK);
	CHECK_EQ(r[1].heap[0] | r[1].heap[7], 0);
	memset(p, 7, HUGE);
	for (i = 0; i < 500 && status == ACP_ST_OK && r[1].heap[0] != 7; i++) {
		status = rank_do_copy(&r[1], heap_ga(&r[1], 0), memory_ga(&m, MB), 8);
		sleep_ms(10);
	}
	if (status != ACP_ST_STAG)
		CHECK_EQ(r[1].heap[0], 7);
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
}

TEST_BOTH(M7_rights)
{
	char *p = huge(kind, 2 * HUGE);

	fill(p, 2 * HUGE, 2);
	begin_with(p, HUGE);
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
	CHECK_EQ(mprotect(p, 2 * HUGE, PROT_READ), 0);
	CHECK_EQ(rank_register(&r[0], &m, p, 2 * HUGE, ACP_ACCESS_ALL), -EFAULT);
	CHECK_EQ(rank_register(&r[0], &m, p, 2 * HUGE, ACP_ACCESS_RO | ACP_ACCESS_READ), 0);
	CHECK_EQ(write_to(HUGE), ACP_ST_ACCESS);
	CHECK_EQ(rank_do_copy(&r[1], heap_ga(&r[1], 0), memory_ga(&m, HUGE - 3000), 6000),
		 ACP_ST_OK);
	CHECK(!memcmp(r[1].heap, p + HUGE - 3000, 6000));
	CHECK(filled(p, 2 * HUGE, 2));
}

/* The registered size is charged, not the size of the pinned pages. */
TEST_BOTH(M7_memlock_limit_exactly_hit)
{
	char *p = huge(kind, 2 * HUGE);
	struct memory other;
	unsigned long used;
	long before;

	rank_open_local(r, 2);
	before = status_kib("VmPin");
	used = (unsigned long)before * 1024 / PAGE;
	drop_capability(CAP_IPC_LOCK);
	limit_pages(used + HUGE / PAGE);
	CHECK_EQ(rank_register(&r[0], &m, p, HUGE + 1, ACP_ACCESS_ALL), -ENOMEM);
	CHECK_EQ(rank_register(&r[0], &m, p + 1, HUGE, ACP_ACCESS_ALL), -ENOMEM);
	CHECK_EQ(rank_register(&r[0], &m, p, HUGE, ACP_ACCESS_ALL), 0);
	CHECK_EQ(status_kib("VmPin"), before + (long)HUGE / 1024);
	CHECK_EQ(rank_register(&r[0], &other, p + HUGE, 1, ACP_ACCESS_ALL), -ENOMEM);
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
	CHECK_EQ(rank_register(&r[0], &m, p + HUGE - PAGE, 2 * PAGE, ACP_ACCESS_ALL), 0);
	CHECK_EQ(status_kib("VmPin"), before + 8);
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
	CHECK_EQ(status_kib("VmPin"), before);
}

/* ---- M3: unmapping ---- */

/*
 * Two mappings of hugetlb: when one is split, a 6.1 kernel with lockdep reports a problem of its
 * own.
 */
TEST_BOTH(M3_munmap_of_a_part_of_the_region)
{
	char *p;

	need(kind);
	p = room(2 * HUGE);
	if (kind == HUGETLB)
		huge_at(kind, p + HUGE, HUGE);
	huge_at(kind, p, kind == HUGETLB ? HUGE : 2 * HUGE);
	begin_with(p, 2 * HUGE);
	if (kind == THP)
		CHECK_EQ(munmap(p + 100 * PAGE, PAGE), 0);
	else
		CHECK_EQ(munmap(p + HUGE, HUGE), 0);
	CHECK_EQ(write_to(0), ACP_ST_STAG);
	give_back();
}

/* The page table entry is split, and the part in the region remains. */
TEST(M3_munmap_beside_the_region)
{
	char *p = huge(THP, HUGE);

	begin_with(p, MB);
	CHECK_EQ(munmap(p + MB, MB), 0);
	CHECK(thp_kib(p) < 2048);
	still_works();
	give_back();
}

TEST(M3_dropping_a_small_part)
{
	char *p = huge(THP, 2 * HUGE);

	begin_with(p, 2 * HUGE);
	CHECK_EQ(madvise(p + HUGE + 7 * PAGE, PAGE, MADV_DONTNEED), 0);
	refused_soon(0);
	give_back();
}

TEST(M3_dropping_a_small_part_beside_the_region)
{
	char *p = huge(THP, HUGE);

	begin_with(p, MB);
	CHECK_EQ(madvise(p + MB, PAGE, MADV_DONTNEED), 0);
	still_works();
	give_back();
}

TEST_BOTH(M3_dropping_all)
{
	char *p = huge(kind, 2 * HUGE);

	begin_with(p, 2 * HUGE);
	CHECK_EQ(madvise(p, 2 * HUGE, MADV_DONTNEED), 0);
	refused_soon(HUGE);
	give_back();
}

/* Split in the page table, and, as far as possible, in memory. */
TEST(M3_split)
{
	char *p = huge(THP, 2 * HUGE), wish[80];

	begin_with(p, 2 * HUGE);
	CHECK_EQ(mprotect(p + 3 * PAGE, PAGE, PROT_READ), 0);
	CHECK_EQ(mprotect(p + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	CHECK(thp_kib(p) < 4096);
	still_works();
	snprintf(wish, sizeof(wish), "%d,0x%lx,0x%lx", getpid(), (unsigned long)p,
		 (unsigned long)p + 2 * HUGE);
	write_file("/sys/kernel/debug/split_huge_pages", wish);
	still_works();
	give_back();
	write_file("/sys/kernel/debug/split_huge_pages", wish);
	register_it(p, 2 * HUGE);
	still_works();
}

TEST_BOTH(M3_mremap)
{
	char *p = huge(kind, HUGE), *q = room(HUGE);

	begin_with(p, HUGE);
	CHECK(mremap(p, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
	CHECK_EQ(write_to(0), ACP_ST_STAG);
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
	register_it(q, HUGE);
	still_works();
}

static char *huge_file(int *fd, size_t size)
{
	char *p;

	need(HUGETLB);
	*fd = (int)syscall(SYS_memfd_create, "huge", MFD_HUGETLB);
	CHECK(*fd >= 0);
	CHECK_EQ(ftruncate(*fd, (off_t)size), 0);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	CHECK(p != MAP_FAILED);
	return p;
}

TEST(M3_hugetlb_file_truncated)
{
	int fd;
	char *p = huge_file(&fd, 2 * HUGE);

	begin_with(p, 2 * HUGE);
	works_all_over();
	CHECK_EQ(ftruncate(fd, HUGE), 0);
	refused_soon(0);
	give_back();
	CHECK_EQ(rank_register(&r[0], &m, p, 2 * HUGE, ACP_ACCESS_ALL), -EFAULT);
	CHECK_EQ(rank_register(&r[0], &m, p, HUGE, ACP_ACCESS_ALL), 0);
	works_all_over();
}

TEST(M3_hole_in_a_hugetlb_file)
{
	int fd;
	char *p = huge_file(&fd, 2 * HUGE);

	begin_with(p, 2 * HUGE);
	CHECK_EQ(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, HUGE, HUGE), 0);
	refused_soon(0);
	give_back();
}

static void nothing(int number)
{
	(void)number;
}

/* A byte is reported as broken: the program loses the page, and so does the region. */
TEST(M3_broken_memory)
{
	char *p = huge(HUGETLB, 2 * HUGE);

	begin_with(p, 2 * HUGE);
	/* Some kernels report the caller of this, although the signal is ignored. */
	CHECK(signal(SIGBUS, nothing) != SIG_ERR);
	/* EBUSY: the program has lost the page, but it is still pinned by this test. */
	if (madvise(p + HUGE + 5 * PAGE, PAGE, MADV_HWPOISON) && errno != EBUSY)
		SKIP("memory cannot be declared broken: %s", strerror(errno));
	refused_soon(0);
	give_back();
}

/* The parent keeps the whole registered memory; the copy of the child does not change. */
TEST_BOTH(M3_fork)
{
	char *p = huge(kind, 2 * HUGE), byte = 0;
	int to_child[2], status = 0;
	size_t i;
	pid_t child;

	begin_with(p + PAGE, 2 * HUGE - 2 * PAGE);
	memset(p, 7, 2 * HUGE);
	CHECK_EQ(pipe(to_child), 0);
	child = fork();
	if (!child) {
		CHECK_EQ(read(to_child[0], &byte, 1), 1);
		for (i = 0; i < 2 * HUGE; i += PAGE)
			CHECK_EQ(p[i + 3], 7);
		memset(p, 9, 2 * HUGE);
		_exit(0);
	}
	p[HUGE + 5] = 8;		/* the parent writes, others write */
	still_works();
	CHECK_EQ(p[HUGE + 5], 8);
	CHECK_EQ(write(to_child[1], &byte, 1), 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	still_works();
	CHECK_EQ(p[0], 7);
	CHECK_EQ(p[HUGE + 5], 8);
	give_back();
}

/* Registered in small pages, which the kernel then makes huge. */
TEST(M3_small_pages_made_huge)
{
	char *p;

	need(THP);
	p = small_at(room(HUGE), HUGE);
	begin_with(p, HUGE);
	CHECK_EQ(madvise(p, HUGE, MADV_HUGEPAGE), 0);
	madvise(p, HUGE, 25 /* MADV_COLLAPSE */);
	still_works();
	give_back();
	CHECK_EQ(madvise(p, HUGE, MADV_HUGEPAGE), 0);
	madvise(p, HUGE, 25);
	register_it(p, HUGE);
	still_works();
}
