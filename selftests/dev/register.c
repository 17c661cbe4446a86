// SPDX-License-Identifier: MIT
/* selftest: leaks */
/*
 * Registration: M1 all kinds of memory, valid and invalid; M2 reference counting and merging; M4
 * limits and accounting.
 */
#include "isolated.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "rank.h"

#define MB (1UL << 20)

/* A rank, and the number of pages pinned before the test. */
static struct rank r;
static long before;

static void begin(void)
{
	rank_open_local(&r, 1);
	before = status_kib("VmPin");
}

/* Registration fails with @error, and pins nothing. */
static void refused(void *addr, size_t size, uint32_t access, int error, const char *what)
{
	struct memory m;
	int found = rank_register(&r, &m, addr, size, access);

	if (found != -error)
		FAIL("%s: %s, wanted %s", what, found ? strerrorname_np(-found) : "registered",
		     strerrorname_np(error));
	CHECK_EQ(status_kib("VmPin"), before);
}

/* Registration succeeds, a command can read and write the memory, and it can be unregistered. */
static void works(void *addr, size_t size, uint32_t access, const char *what)
{
	bool writable = !(access & ACP_ACCESS_RO);
	struct memory m;
	int error = rank_register(&r, &m, addr, size, access);

	if (error)
		FAIL("%s: %s", what, strerrorname_np(-error));
	CHECK_EQ(m.reg.base, (uintptr_t)addr);
	CHECK_EQ(m.reg.end, (uintptr_t)addr + size);
	CHECK_EQ(m.reg.start, (uintptr_t)addr & -PAGE);
	CHECK(status_kib("VmPin") > before);
	if (writable) {
		fill(r.heap, 1000, size);
		CHECK_EQ(rank_do_copy(&r, memory_ga(&m, size - 1000), heap_ga(&r, 0), 1000),
			 ACP_ST_OK);
		CHECK(filled((char *)addr + size - 1000, 1000, size));
		fill(addr, 1000, size + 1);
	} else {
		CHECK_EQ(rank_do_copy(&r, memory_ga(&m, 0), heap_ga(&r, 0), 8), ACP_ST_ACCESS);
	}
	memset(r.heap, 0, 1000);
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 0), memory_ga(&m, 0), 1000), ACP_ST_OK);
	CHECK(!memcmp(r.heap, addr, 1000));
	CHECK_EQ(rank_unregister(&r, m.reg.key, NULL), 0);
	CHECK_EQ(status_kib("VmPin"), before);
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 0), memory_ga(&m, 0), 8), ACP_ST_STAG);
}

/* ---- M1: invalid memory ---- */

TEST(M1_nothing_and_everything)
{
	char *p = pages(PAGE, PROT_READ | PROT_WRITE);

	begin();
	refused(NULL, 0, ACP_ACCESS_ALL, EINVAL, "NULL, 0");
	refused(NULL, PAGE, ACP_ACCESS_ALL, EINVAL, "NULL");
	refused(p, 0, ACP_ACCESS_ALL, EINVAL, "0 bytes");
	refused(p, -1UL, ACP_ACCESS_ALL, EINVAL, "wraps");
	refused(p, -(uintptr_t)p, ACP_ACCESS_ALL, EINVAL, "ends at 2^64");
	refused(p, -(uintptr_t)p + 1, ACP_ACCESS_ALL, EINVAL, "wraps by one");
	refused((void *)-1UL, 1, ACP_ACCESS_ALL, EINVAL, "last byte");
	refused((void *)-2UL, 1, ACP_ACCESS_ALL, EFAULT, "last byte but one");
	refused(p, 1UL << 45, ACP_ACCESS_ALL, EOVERFLOW, "more than an offset can say");
}

/* Its list of pages alone would be 2 GiB. The kernel must not log a warning about the request. */
TEST(M1_a_tebibyte)
{
	char *there = (char *)(1UL << 41);

	if (mmap(there, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != there)
		SKIP("this kernel has no such addresses");
	CHECK_EQ(munmap(there, PAGE), 0);
	begin();
	refused(there, 1UL << 40, ACP_ACCESS_ALL, EDQUOT, "1 TiB");
}

TEST(M1_access_rights)
{
	char *p = pages(PAGE, PROT_READ | PROT_WRITE);

	begin();
	refused(p, PAGE, 16, EINVAL, "unknown right");
	refused(p, PAGE, ~0u, EINVAL, "all bits");
	refused(p, PAGE, ACP_ACCESS_RO | ACP_ACCESS_WRITE, EINVAL, "RO and WRITE");
	refused(p, PAGE, ACP_ACCESS_RO | ACP_ACCESS_ATOMIC, EINVAL, "RO and ATOMIC");
	works(p, PAGE, 0, "no right for others");
	works(p, PAGE, ACP_ACCESS_READ, "READ");
	works(p, PAGE, ACP_ACCESS_ALL, "ALL");
	works(p, PAGE, ACP_ACCESS_RO, "RO");
	works(p, PAGE, ACP_ACCESS_RO | ACP_ACCESS_READ, "RO and READ");
}

TEST(M1_color)
{
	char *p = pages(PAGE, PROT_READ | PROT_WRITE);
	static const uint32_t bad[] = { 1, 3, 4, 255, 1u << 31, ~0u };
	struct memory m;
	size_t i;

	begin();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_EQ(rank_register_color(&r, &m, p, PAGE, ACP_ACCESS_ALL, bad[i]), -EINVAL);
	CHECK_EQ(status_kib("VmPin"), before);
}

TEST(M1_unmapped_and_protected)
{
	char *p = pages(8 * PAGE, PROT_READ | PROT_WRITE);

	begin();
	memset(p, 1, 8 * PAGE);
	CHECK_EQ(munmap(p + 3 * PAGE, PAGE), 0);
	refused(p + 3 * PAGE, PAGE, ACP_ACCESS_ALL, EFAULT, "unmapped");
	refused(p, 8 * PAGE, ACP_ACCESS_ALL, EFAULT, "hole in the middle");
	refused(p + 2 * PAGE, PAGE + 1, ACP_ACCESS_ALL, EFAULT, "last byte in a hole");
	refused(p + 4 * PAGE - 1, 2, ACP_ACCESS_ALL, EFAULT, "first byte in a hole");
	works(p, 3 * PAGE, ACP_ACCESS_ALL, "up to the hole");
	CHECK_EQ(mprotect(p + 5 * PAGE, PAGE, PROT_NONE), 0);
	refused(p + 4 * PAGE, 3 * PAGE, ACP_ACCESS_ALL, EFAULT, "PROT_NONE");
	refused(p + 4 * PAGE, 3 * PAGE, ACP_ACCESS_RO, EFAULT, "PROT_NONE, to read");
	CHECK_EQ(mprotect(p + 5 * PAGE, PAGE, PROT_READ), 0);
	refused(p + 4 * PAGE, 3 * PAGE, ACP_ACCESS_ALL, EFAULT, "read-only, to write");
	refused(p + 4 * PAGE, 3 * PAGE, 0, EFAULT, "read-only, for the owner to write");
	works(p + 4 * PAGE, 3 * PAGE, ACP_ACCESS_RO | ACP_ACCESS_READ, "read-only, to read");
}

TEST(M1_kernel_addresses)
{
	static const unsigned long bad[] = {
		0x0000800000000000UL, 0x8000000000000000UL, 0xffff800000000000UL,
		0xffff888000000000UL, 0xffffc90000000000UL, 0xffffffff81000000UL,
		0xffffffffff600000UL, 0xfffffffffffff000UL,
	};
	size_t i;

	begin();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		refused((void *)bad[i], 64, ACP_ACCESS_ALL, EFAULT, "kernel address");
		refused((void *)bad[i], 64, ACP_ACCESS_RO, EFAULT, "kernel address, to read");
	}
	refused((void *)0x00007ffffffff000UL, 2 * PAGE, ACP_ACCESS_ALL, EFAULT,
		"across the end of user space");
}

/* Mappings with a name in /proc/self/maps: [vvar], [vdso], [vsyscall]. */
static void *special(const char *name)
{
	unsigned long start = 0;
	char line[256];
	FILE *f = fopen("/proc/self/maps", "r");

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, name))
			start = strtoul(line, NULL, 16);
	fclose(f);
	return (void *)start;
}

TEST(M1_special_mappings)
{
	void *vvar = special("[vvar]"), *vdso = special("[vdso]");

	begin();
	if (vvar) {
		refused(vvar, PAGE, ACP_ACCESS_ALL, EFAULT, "vvar");
		refused(vvar, PAGE, ACP_ACCESS_RO, EFAULT, "vvar, to read");
	}
	if (vdso)
		refused(vdso, PAGE, ACP_ACCESS_ALL, EFAULT, "vdso");
}

/* Device memory has no pages that can be pinned. */
TEST(M1_device_memory)
{
	int fd = open("/dev/mem", O_RDONLY);
	void *p;

	if (fd < 0)
		SKIP("no /dev/mem");
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0xf0000);
	if (p == MAP_FAILED)
		SKIP("/dev/mem cannot be mapped");
	begin();
	refused(p, PAGE, ACP_ACCESS_RO, EFAULT, "/dev/mem");
	refused(p, PAGE, ACP_ACCESS_ALL, EFAULT, "/dev/mem, to write");
}

/* Memory mapped from this device: registered or rejected, nothing may break. */
TEST(M1_own_device_memory)
{
	struct memory m;

	begin();
	if (rank_register(&r, &m, r.heap, r.join.heap_size, ACP_ACCESS_ALL) == 0) {
		fill(r.heap, 100, 1);
		CHECK_EQ(rank_do_copy(&r, memory_ga(&m, 200), heap_ga(&r, 0), 100), ACP_ST_OK);
		CHECK(filled(r.heap + 200, 100, 1));
	}
	rank_register(&r, &m, r.sq, r.join.sq_bytes, ACP_ACCESS_ALL);
	CHECK(rank_register(&r, &m, (void *)r.cq, r.join.cq_bytes, ACP_ACCESS_ALL) < 0);
	CHECK(rank_register(&r, &m, (void *)r.cq, r.join.cq_bytes, 0) < 0);
	rank_close(&r);
	CHECK_EQ(status_kib("VmPin"), 0);
}

/* ---- M1: valid memory ---- */

TEST(M1_anonymous_memory)
{
	char *p = pages(MB, PROT_READ | PROT_WRITE);

	begin();
	works(p, PAGE, ACP_ACCESS_ALL, "a page");
	works(p + 1, PAGE, ACP_ACCESS_ALL, "a page, not aligned");
	works(p + PAGE - 1, 1000, ACP_ACCESS_ALL, "across pages");
	works(p + 4095, MB - 4095, ACP_ACCESS_ALL, "a megabyte from an odd place");
	works(p, MB, ACP_ACCESS_ALL, "a megabyte");
}

TEST(M1_one_byte)
{
	char *p = pages(PAGE, PROT_READ | PROT_WRITE);
	struct memory m;

	begin();
	CHECK_EQ(rank_register(&r, &m, p + 77, 1, ACP_ACCESS_ALL), 0);
	r.heap[0] = 5;
	CHECK_EQ(rank_do_copy(&r, memory_ga(&m, 0), heap_ga(&r, 0), 1), ACP_ST_OK);
	CHECK_EQ(p[77], 5);
	CHECK_EQ(rank_do_copy(&r, memory_ga(&m, 0), heap_ga(&r, 0), 2), ACP_ST_RANGE);
	CHECK_EQ(rank_do_copy(&r, memory_ga(&m, 1), heap_ga(&r, 0), 1), ACP_ST_RANGE);
	CHECK_EQ(rank_do_copy(&r, memory_ga(&m, -1UL), heap_ga(&r, 0), 1), ACP_ST_RANGE);
	CHECK_EQ(p[76] | p[78], 0);
}

TEST(M1_transparent_huge_pages)
{
	char *p = pages(8 * MB, PROT_READ | PROT_WRITE);

	p = (char *)(((uintptr_t)p + 2 * MB - 1) & -(2 * MB));
	madvise(p, 4 * MB, MADV_HUGEPAGE);
	memset(p, 1, 4 * MB);
	begin();
	works(p, 4 * MB, ACP_ACCESS_ALL, "4 MiB");
	works(p + 12345, 2 * MB, ACP_ACCESS_ALL, "across two huge pages");
	works(p + 2 * MB - 5000, 10000, ACP_ACCESS_ALL, "a bit of both");
}

TEST(M1_hugetlb)
{
	FILE *f = fopen("/proc/sys/vm/nr_hugepages", "w");
	char *p;

	if (!f)
		SKIP("no hugetlb");
	fprintf(f, "8\n");
	fclose(f);
	p = mmap(NULL, 4 * MB, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (p == MAP_FAILED)
		SKIP("no huge pages to be had");
	begin();
	works(p, 4 * MB, ACP_ACCESS_ALL, "two huge pages");
	works(p + 2 * MB - 777, 5000, ACP_ACCESS_ALL, "across two huge pages");
}

TEST(M1_shared_memory)
{
	int id = shmget(IPC_PRIVATE, MB, IPC_CREAT | 0600);
	char *p = mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	begin();
	CHECK(p != MAP_FAILED);
	works(p, MB, ACP_ACCESS_ALL, "shared anonymous");
	CHECK(id >= 0);
	p = shmat(id, NULL, 0);
	CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
	CHECK(p != (void *)-1);
	works(p, MB, ACP_ACCESS_ALL, "System V");
}

static char *memfd(unsigned int flags, int *fd, size_t size)
{
	char *p;

	*fd = (int)syscall(SYS_memfd_create, "test", flags);
	if (*fd < 0)
		SKIP("memfd_create: %s", strerror(errno));
	CHECK_EQ(ftruncate(*fd, (off_t)size), 0);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	CHECK(p != MAP_FAILED);
	return p;
}

TEST(M1_memfd)
{
	int fd;
	char *p = memfd(MFD_ALLOW_SEALING, &fd, MB);

	begin();
	works(p, MB, ACP_ACCESS_ALL, "memfd");
	CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	works(p, MB, ACP_ACCESS_ALL, "memfd, sealed against resizing");
}

/*
 * Sealed against writing: cannot be registered for writing; and cannot be sealed while registered
 * for writing.
 */
TEST(M1_memfd_sealed_against_writing)
{
	struct memory m;
	int fd;
	char *p = memfd(MFD_ALLOW_SEALING, &fd, MB);

	begin();
	fill(p, MB, 1);
	CHECK_EQ(rank_register(&r, &m, p, MB, ACP_ACCESS_ALL), 0);
	CHECK_EQ(munmap(p, MB), 0);
	CHECK_EQ(rank_do_copy(&r, memory_ga(&m, 0), heap_ga(&r, 0), 8), ACP_ST_STAG);
	CHECK_EQ(rank_unregister(&r, m.reg.key, NULL), 0);
	CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	p = mmap(NULL, MB, PROT_READ, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)	/* older kernels allow no shared mapping of it */
		refused(p, MB, ACP_ACCESS_RO, EFAULT, "sealed memfd, shared");
	p = mmap(NULL, MB, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED);
	refused(p, MB, ACP_ACCESS_ALL, EFAULT, "sealed memfd, to write");
	works(p, MB, ACP_ACCESS_RO | ACP_ACCESS_READ, "sealed memfd, to read");
	CHECK(filled(p, MB, 1));
}

/* A file on tmpfs or another memory file system, truncated while a region covers it. */
TEST(M1_file_truncated)
{
	struct memory m;
	int fd, status;
	char *p = memfd(0, &fd, 4 * PAGE);

	begin();
	CHECK_EQ(rank_register(&r, &m, p, 4 * PAGE, ACP_ACCESS_ALL), 0);
	CHECK_EQ(ftruncate(fd, PAGE), 0);
	/* The program can no longer access this memory; soon afterwards nobody else can. */
	for (int i = 0; i < 500; i++) {
		status = rank_do_copy(&r, memory_ga(&m, 2 * PAGE), heap_ga(&r, 0), 8);
		if (status == ACP_ST_STAG)
			break;
		CHECK_EQ(status, ACP_ST_OK);
		sleep_ms(10);
	}
	CHECK_EQ(status, ACP_ST_STAG);
	CHECK_EQ(rank_unregister(&r, m.reg.key, NULL), 0);
	refused(p, 4 * PAGE, ACP_ACCESS_ALL, EFAULT, "beyond the end of the file");
	works(p, PAGE, ACP_ACCESS_ALL, "what is left");
}

TEST(M1_private_file_mapping)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	char first[16];

	CHECK(p != MAP_FAILED);
	begin();
	CHECK_EQ(pread(fd, first, sizeof(first), 0), sizeof(first));
	works(p, 2 * PAGE, ACP_ACCESS_ALL, "private mapping of a file");
	CHECK_EQ(pread(fd, p, sizeof(first), 0), sizeof(first));
	CHECK(!memcmp(p, first, sizeof(first)));	/* the file is unchanged */
}

/*
 * A mapped file of two pages: shared only if the file system is in memory and the file may be
 * written.
 */
static void map_file(const char *name, bool memory)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600), reader = open(name, O_RDONLY);
	char *p;

	CHECK(fd >= 0 && reader >= 0);
	CHECK_EQ(ftruncate(fd, 2 * PAGE), 0);
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	if (memory) {
		works(p, 2 * PAGE, ACP_ACCESS_ALL, name);
		works(p, 2 * PAGE, ACP_ACCESS_RO, name);
	} else {
		refused(p, 2 * PAGE, ACP_ACCESS_ALL, EFAULT, name);
		refused(p, 2 * PAGE, ACP_ACCESS_RO, EFAULT, name);
	}
	p = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, reader, 0);
	CHECK(p != MAP_FAILED);
	refused(p, 2 * PAGE, ACP_ACCESS_RO, EFAULT, "a shared mapping that may only be read");
	p = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, reader, 0);
	CHECK(p != MAP_FAILED);
	works(p, 2 * PAGE, ACP_ACCESS_RO, "a private mapping, to read");
	refused(p, 2 * PAGE, ACP_ACCESS_ALL, EFAULT, "a private mapping, to write");
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, reader, 0);
	CHECK(p != MAP_FAILED);
	works(p, 2 * PAGE, ACP_ACCESS_ALL, "a private mapping that may be written");
}

/* The same on all kernels, although some of them could pin such files for writing. */
TEST(M1_file_on_tmpfs)
{
	begin();
	map_file("/dev/shm/acp-file", true);
}

TEST(M1_file_on_ramfs)
{
	CHECK_EQ(mount("none", "/mnt", "ramfs", 0, NULL), 0);
	begin();
	map_file("/mnt/file", false);
	CHECK_EQ(umount2("/mnt", MNT_DETACH), 0);
}

TEST(M1_file_on_ext4)
{
	/* The debug kernel has no file system on disks; ramfs is used instead. */
	if (system("modprobe -q loop; truncate -s 16M /tmp/ext4 && mkfs.ext4 -q /tmp/ext4 && "
		   "mount -o loop /tmp/ext4 /mnt"))
		SKIP("no ext4 here");
	begin();
	map_file("/mnt/file", false);
	CHECK_EQ(umount2("/mnt", MNT_DETACH), 0);
}

/* ---- M2 ---- */

static uint64_t key_of(void *addr, size_t size, uint32_t access)
{
	struct memory m;

	CHECK_EQ(rank_register(&r, &m, addr, size, access), 0);
	CHECK(m.reg.base <= (uintptr_t)addr && (uintptr_t)addr + size <= m.reg.end);
	return m.reg.key;
}

static void give_back(uint64_t key, uint32_t left_wanted)
{
	uint32_t left;

	CHECK_EQ(rank_unregister(&r, key, &left), 0);
	CHECK_EQ(left, left_wanted);
}

TEST(M2_same_region_counts)
{
	char *p = pages(16 * PAGE, PROT_READ | PROT_WRITE);
	uint64_t key;
	long once;

	begin();
	key = key_of(p, 16 * PAGE, ACP_ACCESS_ALL);
	once = status_kib("VmPin");
	CHECK_EQ(once, before + 64);
	CHECK_EQ(key_of(p, 16 * PAGE, ACP_ACCESS_ALL), key);
	CHECK_EQ(key_of(p, 16 * PAGE, ACP_ACCESS_ALL), key);
	CHECK_EQ(status_kib("VmPin"), once);
	give_back(key, 2);
	give_back(key, 1);
	CHECK_EQ(rank_do_copy(&r, key, heap_ga(&r, 0), 8), ACP_ST_OK);
	give_back(key, 0);
	CHECK_EQ(rank_do_copy(&r, key, heap_ga(&r, 0), 8), ACP_ST_STAG);
	CHECK_EQ(rank_unregister(&r, key, NULL), -ENOENT);
	CHECK_EQ(status_kib("VmPin"), before);
}

TEST(M2_contained_region_shares_the_key)
{
	char *p = pages(16 * PAGE, PROT_READ | PROT_WRITE);
	uint64_t key;

	begin();
	key = key_of(p + 100, 8 * PAGE, ACP_ACCESS_ALL);
	CHECK_EQ(key_of(p + 100, 1, ACP_ACCESS_ALL), key);
	CHECK_EQ(key_of(p + 100 + 8 * PAGE - 1, 1, ACP_ACCESS_ALL), key);
	CHECK_EQ(key_of(p + 200, 4 * PAGE, ACP_ACCESS_ALL), key);
	CHECK(key_of(p + 99, 2, ACP_ACCESS_ALL) != key);
	CHECK(key_of(p + 100 + 8 * PAGE - 1, 2, ACP_ACCESS_ALL) != key);
	CHECK(key_of(p + 100, 8 * PAGE, ACP_ACCESS_READ) != key);
	give_back(key, 3);
}

TEST(M2_overlapping_and_adjacent_regions)
{
	char *p = pages(16 * PAGE, PROT_READ | PROT_WRITE);
	uint64_t a, b, c;

	begin();
	a = key_of(p, 8 * PAGE, ACP_ACCESS_ALL);
	b = key_of(p + 4 * PAGE, 8 * PAGE, ACP_ACCESS_ALL);
	c = key_of(p + 12 * PAGE, 4 * PAGE, ACP_ACCESS_ALL);
	CHECK(a != b && b != c && a != c);
	r.heap[0] = 7;
	CHECK_EQ(rank_do_copy(&r, b, heap_ga(&r, 0), 1), ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 1), a + 4 * PAGE, 1), ACP_ST_OK);
	CHECK_EQ(r.heap[1], 7);
	give_back(a, 0);
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 2), b, 1), ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r, c - PAGE, heap_ga(&r, 0), 1), ACP_ST_RANGE);
	give_back(b, 0);
	give_back(c, 0);
	CHECK_EQ(status_kib("VmPin"), before);
}

/* The registered regions, as the kernel should know them: a linear search is the reference. */
struct interval {
	size_t first, end;
	uint32_t access, count;
	uint64_t key;
};

#define INTERVALS	300

static bool covers(const struct interval *i, size_t first, size_t end, uint32_t access)
{
	return i->count && i->access == access && i->first <= first && i->end >= end;
}

/* A region that covers the range, preferably the one with @key, or NULL. */
static struct interval *covering(struct interval *all, size_t first, size_t end, uint32_t access,
				 uint64_t key)
{
	struct interval *found = NULL;
	int i;

	for (i = 0; i < INTERVALS; i++)
		if (covers(&all[i], first, end, access) && (!found || all[i].key == key))
			found = &all[i];
	return found;
}

static void register_some(struct interval *all, struct interval *free, char *p, uint64_t *random)
{
	static const uint32_t access[] = { ACP_ACCESS_ALL, ACP_ACCESS_READ, ACP_ACCESS_RO };
	size_t first = next_random(random) % (4 * PAGE), end = 4 * PAGE;
	uint32_t allowed = access[next_random(random) % 3];
	struct interval *found;
	uint64_t key;

	end -= next_random(random) % (next_random(random) % 4 ? 4 * PAGE - first : 8);
	if (end <= first)
		end = first + 1;
	found = covering(all, first, end, allowed, 0);
	key = key_of(p + first, end - first, allowed);
	if (!found) {
		*free = (struct interval){ first, end, allowed, 1, key };
		return;
	}
	/* Any covering region. */
	found = covering(all, first, end, allowed, key);
	CHECK_EQ(found->key, key);
	found->count++;
}

/* Random overlapping regions of all kinds: a covering region is found if there is one. */
TEST(M2_random_regions)
{
	static struct interval all[INTERVALS];
	char *p = pages(4 * PAGE, PROT_READ | PROT_WRITE);
	int i, rounds = test_short() ? 5000 : 50000;
	uint64_t random = 1;

	begin();
	memset(p, 1, 4 * PAGE);
	for (i = 0; i < rounds; i++) {
		struct interval *one = &all[next_random(&random) % INTERVALS];

		if (one->count)
			give_back(one->key, --one->count);
		else
			register_some(all, one, p, &random);
	}
	for (i = 0; i < INTERVALS; i++)
		while (all[i].count)
			give_back(all[i].key, --all[i].count);
	CHECK_EQ(status_kib("VmPin"), before);
}

TEST(M2_unregister_what_is_not_registered)
{
	char *p = pages(PAGE, PROT_READ | PROT_WRITE);
	uint64_t key, seed = 1;
	int i;

	begin();
	key = key_of(p, PAGE, ACP_ACCESS_ALL);
	CHECK_EQ(rank_unregister(&r, 0, NULL), -ENOENT);
	CHECK_EQ(rank_unregister(&r, ~0ULL, NULL), -ENOENT);
	CHECK_EQ(rank_unregister(&r, key + 1, NULL), -ENOENT);
	CHECK_EQ(rank_unregister(&r, key + PAGE, NULL), -ENOENT);
	CHECK_EQ(rank_unregister(&r, starter_ga(&r, 0), NULL), -ENOENT);
	CHECK_EQ(rank_unregister(&r, heap_ga(&r, 0), NULL), -ENOENT);
	CHECK_EQ(rank_unregister(&r, rank_ga(&r, 0, ACP_STAG_LIBRARY, 0), NULL), -ENOENT);
	CHECK_EQ(rank_unregister(&r, rank_ga(&r, 0, ACP_STAG_USER + 1, 0), NULL), -ENOENT);
	CHECK_EQ(rank_unregister(&r, acp_ga_make(&r.layout, 0, 1, ACP_STAG_USER, 0), NULL),
		 -ENOENT);
	for (i = 0; i < 10000; i++) {
		uint64_t x = next_random(&seed);

		if (x != key)
			CHECK_EQ(rank_unregister(&r, x, NULL), -ENOENT);
	}
	give_back(key, 0);
}

TEST(M2_key_of_another_rank)
{
	struct rank both[2];
	struct memory m;

	rank_open_local(both, 2);
	memory_open(&both[0], &m, PAGE);
	CHECK_EQ(rank_unregister(&both[1], m.reg.key, NULL), -ENOENT);
	CHECK_EQ(rank_unregister(&both[0], m.reg.key, NULL), 0);
}

/* A key is not reused soon: its holder must not access other memory. */
TEST(M2_keys_are_not_reused_at_once)
{
	char *p = pages(PAGE, PROT_READ | PROT_WRITE);
	uint64_t last = 0;
	int i;

	begin();
	for (i = 0; i < 100; i++) {
		uint64_t key = key_of(p, PAGE, ACP_ACCESS_ALL);

		CHECK(key != last);
		give_back(key, 0);
		CHECK_EQ(rank_do_copy(&r, key, heap_ga(&r, 0), 8), ACP_ST_STAG);
		last = key;
	}
}

/* Pages of a registered range may be dropped and populated again: any of them. */
TEST(M2_register_again_after_dropping_pages)
{
	static const size_t dropped[] = { 0, 1, 1023, 1024, 2047, 2999 };
	char *p = pages(3000 * PAGE, PROT_READ | PROT_WRITE);
	size_t i;

	begin();
	for (i = 0; i < 6; i++) {
		uint64_t old = key_of(p, 3000 * PAGE, ACP_ACCESS_ALL), key;
		char *page = p + dropped[i] * PAGE;

		CHECK_EQ(madvise(page, PAGE, MADV_DONTNEED), 0);
		fill(page, 8, i);
		key = key_of(p, 3000 * PAGE, ACP_ACCESS_ALL);
		CHECK(key != old);
		CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 0), key + dropped[i] * PAGE, 8), ACP_ST_OK);
		CHECK(filled(r.heap, 8, i));
		give_back(old, 0);
		give_back(key, 0);
	}
}

/* Immediately, before a worker of this processor can have run. */
TEST(M2_register_again_before_anybody_looked)
{
	struct sched_param urgent = { .sched_priority = 1 };
	char *p = pages(PAGE, PROT_READ | PROT_WRITE);
	uint64_t old, key;
	int i;

	begin();
	stay_on(0);
	CHECK_EQ(sched_setscheduler(0, SCHED_FIFO, &urgent), 0);
	for (i = 0; i < 100; i++) {
		old = key_of(p, PAGE, ACP_ACCESS_ALL);
		CHECK_EQ(madvise(p, PAGE, MADV_DONTNEED), 0);
		p[0] = 1;
		key = key_of(p, PAGE, ACP_ACCESS_ALL);
		CHECK(key != old);
		give_back(old, 0);
		give_back(key, 0);
	}
}

/* ---- M4 ---- */

TEST(M4_memlock_limit_exactly_hit)
{
	char *p = pages(64 * PAGE, PROT_READ | PROT_WRITE);
	unsigned long used;
	struct memory m, more;
	uint32_t left;

	begin();
	drop_capability(CAP_IPC_LOCK);
	used = (unsigned long)before * 1024 / PAGE;
	limit_pages(used + 32);
	refused(p, 33 * PAGE, ACP_ACCESS_ALL, ENOMEM, "a page over");
	refused(p, 32 * PAGE + 1, ACP_ACCESS_ALL, ENOMEM, "a byte over");
	refused(p + 1, 32 * PAGE, ACP_ACCESS_ALL, ENOMEM, "a page over by its place");
	CHECK_EQ(rank_register(&r, &m, p, 32 * PAGE, ACP_ACCESS_ALL), 0);
	CHECK_EQ(status_kib("VmPin"), before + 128);
	CHECK_EQ(rank_register(&r, &more, p + 32 * PAGE, 1, ACP_ACCESS_ALL), -ENOMEM);
	CHECK_EQ(rank_register(&r, &more, p, 32 * PAGE, ACP_ACCESS_ALL), 0);	/* only counted */
	limit_pages(used + 33);
	CHECK_EQ(rank_register(&r, &more, p + 32 * PAGE, 1, ACP_ACCESS_ALL), 0);
	limit_pages(0);		/* lowered below the current use, which is not affected */
	CHECK_EQ(rank_do_copy(&r, memory_ga(&m, 0), heap_ga(&r, 0), 8), ACP_ST_OK);
	CHECK_EQ(rank_unregister(&r, more.reg.key, NULL), 0);
	CHECK_EQ(rank_unregister(&r, m.reg.key, &left), 0);
	CHECK_EQ(left, 1);
	CHECK_EQ(rank_unregister(&r, m.reg.key, &left), 0);
	CHECK_EQ(status_kib("VmPin"), before);
	refused(p, 1, ACP_ACCESS_ALL, ENOMEM, "limit 0");
}

TEST_LONG(M4_register_unregister_100000_times, PATIENCE_LONG_TEST)
{
	char *p = pages(64 * PAGE, PROT_READ | PROT_WRITE);
	int i, count = test_short() ? 5000 : 100000;
	struct memory m;

	begin();
	for (i = 0; i < count; i++) {
		size_t size = 1 + (size_t)i * 37 % (3 * PAGE);

		CHECK_EQ(rank_register(&r, &m, p + (size_t)i * 113 % (60 * PAGE), size,
				       ACP_ACCESS_ALL), 0);
		CHECK_EQ(rank_unregister(&r, m.reg.key, NULL), 0);
	}
	CHECK_EQ(status_kib("VmPin"), before);
}

/* A process may have far more than 16 regions; all are removed with the file. */
TEST(M4_many_regions_at_once)
{
	int i, count = test_short() ? 500 : 5000;
	char *p = pages((size_t)count * PAGE, PROT_READ | PROT_WRITE);
	struct memory m;

	begin();
	for (i = 0; i < count; i++) {
		CHECK_EQ(rank_register(&r, &m, p + (size_t)i * PAGE, PAGE, ACP_ACCESS_ALL), 0);
		if (i % 100 == 0)
			CHECK_EQ(rank_do_copy(&r, memory_ga(&m, 0), heap_ga(&r, 0), 8), ACP_ST_OK);
	}
	CHECK_EQ(status_kib("VmPin"), before + 4 * count);
	rank_close(&r);
	CHECK_EQ(status_kib("VmPin"), 0);
}

/* Disjoint regions of 8 bytes, many in one page. */
static void register_words(char *p, int from, int to)
{
	struct memory m;
	int i;

	for (i = from; i < to; i++)
		CHECK_EQ(rank_register(&r, &m, p + 16 * (size_t)i, 8, ACP_ACCESS_ALL), 0);
}

/*
 * The mean number of regions that the kernel visits for a registration while @count others exist.
 */
static double steps(char *p, int count)
{
	long long steps = counter("register_steps"), calls = counter("registrations");
	struct memory m;
	int i;

	for (i = 0; i < 200; i++) {
		char *at = p + 16 * (size_t)(i * 7919 % count) + 8;

		CHECK_EQ(rank_register(&r, &m, at, 8, ACP_ACCESS_ALL), 0);
		CHECK_EQ(rank_unregister(&r, m.reg.key, NULL), 0);
	}
	CHECK_EQ(counter("registrations") - calls, 200);
	return (double)(counter("register_steps") - steps) / 200;
}

/*
 * With any number of regions: the tree is searched twice (before and after pinning), with at most
 * two steps per doubling each time.
 */
TEST(M4_registering_is_logarithmic)
{
	int last = test_short() ? 1 << 13 : 1 << 17, count, there = 0, log = 6;
	char *p = pages(16 * (size_t)last, PROT_READ | PROT_WRITE);
	double mean = 0, before_it = 0;

	begin();
	memset(p, 1, 16 * (size_t)last);
	for (count = 64; count <= last; count *= 2, log++) {
		register_words(p, there, count);
		there = count;
		mean = steps(p, count);
		if (mean > 2 * 2 * (log + 1))
			FAIL("%d regions: %.1f steps", count, mean);
		if (before_it && mean > before_it + 4)
			FAIL("%d regions: %.1f steps, %.1f of half as many", count, mean,
			     before_it);
		before_it = mean;
	}
	printf("# %d regions: %.1f steps\n", last, mean);
	CHECK(mean > 0);
}

/* One thread pins much memory; meanwhile another one registers and unregisters. */
static void *register_little(void *done)
{
	char *p = pages(PAGE, PROT_READ | PROT_WRITE);
	struct memory m;
	long count = 0;

	while (!__atomic_load_n((bool *)done, __ATOMIC_SEQ_CST)) {
		CHECK_EQ(rank_register(&r, &m, p, PAGE, ACP_ACCESS_ALL), 0);
		CHECK_EQ(rank_unregister(&r, m.reg.key, NULL), 0);
		count++;
	}
	return (void *)count;
}

/* Two threads that register the same memory get the same key, whichever pins first. */
static void *register_same(void *p)
{
	struct memory m;
	int i;

	for (i = 0; i < 200; i++) {
		CHECK_EQ(rank_register(&r, &m, p, 16 * PAGE, ACP_ACCESS_ALL), 0);
		CHECK_EQ(rank_do_copy(&r, memory_ga(&m, 0), heap_ga(&r, 0), 8), ACP_ST_OK);
		CHECK_EQ(rank_unregister(&r, m.reg.key, NULL), 0);
	}
	return NULL;
}

TEST(M4_registering_at_once_with_others)
{
	char *p = pages(64 * MB, PROT_READ | PROT_WRITE), *same = pages(16 * PAGE, PROT_READ |
									PROT_WRITE);
	pthread_t other, twin;
	bool done = false;
	struct memory m;
	void *count;
	int i;

	begin();
	CHECK_EQ(pthread_create(&other, NULL, register_little, &done), 0);
	CHECK_EQ(pthread_create(&twin, NULL, register_same, same), 0);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(rank_register(&r, &m, p, 64 * MB, ACP_ACCESS_ALL), 0);
		CHECK_EQ(rank_unregister(&r, m.reg.key, NULL), 0);
	}
	CHECK_EQ(pthread_join(twin, NULL), 0);
	__atomic_store_n(&done, true, __ATOMIC_SEQ_CST);
	CHECK_EQ(pthread_join(other, &count), 0);
	CHECK((long)count > 0);
	CHECK_EQ(status_kib("VmPin"), before);
}

/*
 * A job with the maximum number of ranks has the fewest STags: the table fills, and the error says
 * so.
 */
TEST(M4_all_stags_in_use)
{
	static const char *const nodes[] = { "127.0.0.1", NULL };
	unsigned int i, stags;
	struct setup s;
	struct memory m;
	char *p;

	setup_nodes(&s, 0, ACP_RANKS_MAX, 1, nodes);
	rank_open(&r, &s);
	before = status_kib("VmPin");
	stags = (1u << r.layout.stag_bits) - ACP_STAG_USER;
	p = pages((stags + 1) * PAGE, PROT_READ | PROT_WRITE);
	for (i = 0; i < stags; i++)
		CHECK_EQ(rank_register(&r, &m, p + i * PAGE, PAGE, ACP_ACCESS_ALL), 0);
	CHECK_EQ(rank_register(&r, &m, p + stags * PAGE, PAGE, ACP_ACCESS_ALL), -ENOSPC);
	CHECK_EQ(status_kib("VmPin"), before + 4 * (long)stags);
	CHECK_EQ(rank_unregister(&r, rank_ga(&r, 0, ACP_STAG_USER + 5, 0), NULL), 0);
	CHECK_EQ(rank_register(&r, &m, p + stags * PAGE, PAGE, ACP_ACCESS_ALL), 0);
	CHECK_EQ(acp_ga_stag(&r.layout, m.reg.key), ACP_STAG_USER + 5);
}
