// SPDX-License-Identifier: MIT
/*
 * K2: mmap of the device with everything that can be wrong, and what may be
 * done with a mapping afterwards.
 */
#include "isolated.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "rank.h"

static const uint32_t kinds[] = {
	ACP_MAP_SQ, ACP_MAP_CQ, ACP_MAP_STARTER, ACP_MAP_HEAP, ACP_MAP_LIBRARY,
};

#define KINDS	(sizeof(kinds) / sizeof(kinds[0]))

/* Whole pages of a thing of rank 0. */
static size_t size_of(const struct rank *r, uint32_t kind)
{
	switch (kind) {
	case ACP_MAP_SQ:
		return r->join.sq_bytes;
	case ACP_MAP_CQ:
		return r->join.cq_bytes;
	case ACP_MAP_STARTER:
		return (r->join.starter_size + PAGE - 1) & -PAGE;
	case ACP_MAP_HEAP:
		return (r->join.heap_size + PAGE - 1) & -PAGE;
	default:
		return PAGE;
	}
}

static int protection(uint32_t kind)
{
	return kind == ACP_MAP_CQ ? PROT_READ : PROT_READ | PROT_WRITE;
}

static void refused(const struct rank *r, uint64_t offset, size_t size, int prot, int flags,
		    int error, const char *what)
{
	void *p = mmap(NULL, size, prot, flags, r->fd, (off_t)offset);

	if (p != MAP_FAILED)
		FAIL("%s, offset 0x%llx: mapped", what, (unsigned long long)offset);
	if (errno != error)
		FAIL("%s, offset 0x%llx: %s, wanted %s", what, (unsigned long long)offset,
		     strerrorname_np(errno), strerrorname_np(error));
}

static void *mapped(const struct rank *r, uint32_t kind)
{
	void *p = rank_map(r->fd, kind, 0, size_of(r, kind), protection(kind));

	if (p == MAP_FAILED)
		FAIL("kind %u: %s", kind, strerror(errno));
	return p;
}

static char load(const char *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* Runs in a child: does this access end with SIGSEGV (or SIGBUS)? */
static bool faults(char *p, bool write)
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		signal(SIGSEGV, SIG_DFL);
		if (write)
			__atomic_store_n(p, 1, __ATOMIC_RELAXED);
		else
			load(p);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status);
}

TEST(K2_whole_and_part)
{
	struct rank r;
	size_t i;

	rank_open_local(&r, 1);
	for (i = 0; i < KINDS; i++) {
		char *p = mapped(&r, kinds[i]);

		CHECK_EQ(munmap(p, size_of(&r, kinds[i])), 0);
		p = rank_map(r.fd, kinds[i], 0, PAGE, PROT_READ);
		CHECK(p != MAP_FAILED);
		load(p);
		CHECK_EQ(munmap(p, PAGE), 0);
		p = rank_map(r.fd, kinds[i], 0, 1, PROT_READ);
		CHECK(p != MAP_FAILED);
		CHECK_EQ(munmap(p, PAGE), 0);
	}
}

TEST(K2_too_long)
{
	struct rank r;
	size_t i;

	rank_open_local(&r, 1);
	for (i = 0; i < KINDS; i++) {
		uint64_t at = ACP_MAP(kinds[i], 0);
		size_t size = size_of(&r, kinds[i]);

		refused(&r, at, size + 1, PROT_READ, MAP_SHARED, EINVAL, "a byte more");
		refused(&r, at, size + PAGE, PROT_READ, MAP_SHARED, EINVAL, "a page more");
		refused(&r, at, 1UL << 37, PROT_READ, MAP_SHARED, EINVAL, "128 GiB");
		refused(&r, at, 0, PROT_READ, MAP_SHARED, EINVAL, "nothing");
	}
}

TEST(K2_offsets)
{
	struct rank r;
	uint64_t i;

	rank_open_local(&r, 1);
	for (i = 1; i < 16; i++)
		refused(&r, i * PAGE, PAGE, PROT_READ, MAP_SHARED, EINVAL, "inside the SQ");
	for (i = 0; i < KINDS; i++)
		refused(&r, ACP_MAP(kinds[i], 0) + PAGE, PAGE, PROT_READ, MAP_SHARED, EINVAL,
			"not the start");
	for (i = 5; i < 32768; i += i < 40 ? 1 : 911)
		refused(&r, ACP_MAP(i, 0), PAGE, PROT_READ, MAP_SHARED, EINVAL, "unknown kind");
	refused(&r, ACP_MAP(ACP_MAP_SQ, 1), PAGE, PROT_READ, MAP_SHARED, EINVAL, "SQ of a rank");
	refused(&r, ACP_MAP(ACP_MAP_CQ, 7), PAGE, PROT_READ, MAP_SHARED, EINVAL, "CQ of a rank");
}

TEST(K2_ranks)
{
	static const uint32_t wrong[] = { 2, 3, 4, 1000, 0xfffffe, 0xffffff };
	struct setup s;
	struct rank r;
	size_t i, j;

	setup_local(&s, 0, 3);
	rank_open(&r, &s);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		for (j = ACP_MAP_STARTER; j < KINDS; j++)
			refused(&r, ACP_MAP(j, wrong[i]), PAGE, PROT_READ, MAP_SHARED, ESRCH,
				"no such rank here");
	refused(&r, ACP_MAP(ACP_MAP_HEAP, 1), PAGE, PROT_READ, MAP_SHARED, ESRCH, "not joined");
	refused(&r, ACP_MAP(ACP_MAP_HEAP, 1 << 24), PAGE, PROT_READ, MAP_SHARED, EINVAL,
		"more than a rank can be");
}

/* Memory of another rank of the node is the same memory; its queues are out of reach. */
TEST(K2_memory_of_another_rank)
{
	struct rank r[2];
	char *p;

	rank_open_local(r, 2);
	p = rank_map(r[0].fd, ACP_MAP_HEAP, 1, r[1].join.heap_size, PROT_READ | PROT_WRITE);
	CHECK(p != MAP_FAILED);
	fill(p, 1000, 1);
	CHECK(filled(r[1].heap, 1000, 1));
	fill(r[1].heap + 60000, 1000, 2);
	CHECK(filled(p + 60000, 1000, 2));
	rank_close(&r[1]);
	CHECK(filled(p, 1000, 1));	/* stays as long as it is mapped */
	refused(&r[0], ACP_MAP(ACP_MAP_HEAP, 1), PAGE, PROT_READ, MAP_SHARED, ESRCH, "has left");
}

TEST(K2_flags_and_protection)
{
	struct rank r;
	size_t i;

	rank_open_local(&r, 1);
	for (i = 0; i < KINDS; i++) {
		uint64_t at = ACP_MAP(kinds[i], 0);

		refused(&r, at, PAGE, PROT_READ, MAP_PRIVATE, EINVAL, "private");
		refused(&r, at, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, EACCES, "executable");
		refused(&r, at, PAGE, PROT_EXEC, MAP_SHARED, EACCES, "executable only");
	}
	refused(&r, ACP_MAP(ACP_MAP_CQ, 0), PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, EACCES,
		"writable CQ");
	refused(&r, ACP_MAP(ACP_MAP_CQ, 0), PAGE, PROT_WRITE, MAP_SHARED, EACCES,
		"write-only CQ");
}

TEST(K2_mprotect)
{
	struct rank r;
	size_t i;

	rank_open_local(&r, 1);
	for (i = 0; i < KINDS; i++) {
		void *p = mapped(&r, kinds[i]);

		CHECK_ERRNO(mprotect(p, PAGE, PROT_READ | PROT_EXEC), EACCES);
		CHECK_ERRNO(mprotect(p, PAGE, PROT_EXEC), EACCES);
		if (kinds[i] == ACP_MAP_CQ)
			CHECK_ERRNO(mprotect(p, PAGE, PROT_READ | PROT_WRITE), EACCES);
		CHECK_EQ(mprotect(p, PAGE, PROT_NONE), 0);
		CHECK_EQ(mprotect(p, PAGE, protection(kinds[i])), 0);
	}
}

/* A descriptor that was opened for reading only gives no writable mapping. */
TEST(K2_read_only_descriptor)
{
	int fd = open(ACP_DEVICE, O_RDONLY | O_CLOEXEC);
	struct setup s;

	CHECK(fd >= 0);
	setup_local(&s, 0, 1);
	if (ioctl(fd, ACP_IOC_JOIN, &s.join) == 0) {
		CHECK(rank_map(fd, ACP_MAP_SQ, 0, PAGE, PROT_READ | PROT_WRITE) == MAP_FAILED);
		CHECK_EQ(errno, EACCES);
	}
}

/* The completion area cannot be written through the back door either. */
TEST(K2_completion_area_by_proc_mem)
{
	int fd = open("/proc/self/mem", O_RDWR);
	uint64_t evil = 999;
	struct rank r;

	CHECK(fd >= 0);
	rank_open_local(&r, 1);
	CHECK_EQ(pwrite(fd, &evil, sizeof(evil), (off_t)(uintptr_t)&r.cq->completed), -1);
	CHECK_EQ(r.cq->completed, 1);
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 8), heap_ga(&r, 0), 8), ACP_ST_OK);
}

TEST(K2_partial_munmap)
{
	struct rank r;
	size_t i;

	rank_open_local(&r, 1);
	for (i = 0; i < KINDS; i++) {
		size_t size = size_of(&r, kinds[i]);
		char *p = mapped(&r, kinds[i]);

		if (size < 3 * PAGE)
			continue;
		CHECK_EQ(munmap(p + PAGE, PAGE), 0);
		CHECK(faults(p + PAGE, false));
		load(p);
		load(p + 2 * PAGE);
		CHECK_EQ(munmap(p, PAGE), 0);
		CHECK_EQ(munmap(p + 2 * PAGE, size - 2 * PAGE), 0);
	}
	fill(r.heap, 100, 9);
	CHECK_EQ(munmap(r.heap + PAGE, 2 * PAGE), 0);
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, PAGE), heap_ga(&r, 0), 100), ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 200), heap_ga(&r, PAGE), 100), ACP_ST_OK);
	CHECK(filled(r.heap + 200, 100, 9));
}

/* The rings go on without their mapping; the commands of before complete. */
TEST(K2_queues_unmapped_while_in_use)
{
	struct rank r;

	rank_open_local(&r, 1);
	rank_copy(&r, heap_ga(&r, 8), heap_ga(&r, 0), 8, 0);
	CHECK_EQ(munmap(r.sq, r.join.sq_bytes), 0);
	CHECK_EQ(munmap((void *)r.cq, r.join.cq_bytes), 0);
	CHECK_EQ(ioctl(r.fd, ACP_IOC_DOORBELL), 0);
	r.sq = mapped(&r, ACP_MAP_SQ);
	r.entries = (struct acp_sqe *)(r.sq + 1);
	r.cq = mapped(&r, ACP_MAP_CQ);
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 16), heap_ga(&r, 0), 8), ACP_ST_OK);
	CHECK_EQ(r.cq->completed, 3);
}

TEST(K2_remap)
{
	struct rank r;
	size_t i;

	rank_open_local(&r, 1);
	for (i = 0; i < KINDS; i++) {
		size_t size = size_of(&r, kinds[i]);
		char *p = mapped(&r, kinds[i]), *q;

		CHECK(mremap(p, size, size + PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
		CHECK(errno == EFAULT || errno == EINVAL);
		CHECK(mremap(p, size, 16 * size, MREMAP_MAYMOVE) == MAP_FAILED);
		CHECK(mremap(p, 0, size, MREMAP_MAYMOVE) == MAP_FAILED);
		q = pages(size, PROT_NONE);
		q = mremap(p, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, q);
		CHECK(q != MAP_FAILED);
		load(q);
		if (size > PAGE)
			CHECK(mremap(q, size, PAGE, 0) == q);
		CHECK(mremap(q, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
		CHECK_EQ(munmap(q, PAGE), 0);
	}
}

TEST(K2_not_inherited_by_fork)
{
	struct rank r;
	size_t i;

	rank_open_local(&r, 1);
	for (i = 0; i < KINDS; i++) {
		char *p = mapped(&r, kinds[i]);

		CHECK(faults(p, false));
		CHECK(faults(p, true));
		madvise(p, PAGE, MADV_DOFORK);	/* refused or not, nothing may break */
		faults(p, false);
	}
	fill(r.heap, 8, 4);
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 8), heap_ga(&r, 0), 8), ACP_ST_OK);
	CHECK(filled(r.heap + 8, 8, 4));
}

/* Advice that throws pages of ordinary memory away: at most this mapping of them is lost. */
TEST(K2_madvise)
{
	static const int advice[] = {
		MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_HUGEPAGE, MADV_MERGEABLE, MADV_COLD,
		MADV_PAGEOUT, MADV_WIPEONFORK, MADV_HWPOISON + 1000,
	};
	struct rank r;
	size_t i;

	rank_open_local(&r, 1);
	fill(r.heap, r.join.heap_size, 6);
	for (i = 0; i < sizeof(advice) / sizeof(advice[0]); i++) {
		madvise(r.heap, r.join.heap_size, advice[i]);
		madvise(r.sq, r.join.sq_bytes, advice[i]);
	}
	CHECK_EQ(munmap(r.heap, r.join.heap_size), 0);
	CHECK_EQ(munmap(r.sq, r.join.sq_bytes), 0);
	r.heap = mapped(&r, ACP_MAP_HEAP);
	r.sq = mapped(&r, ACP_MAP_SQ);
	r.entries = (struct acp_sqe *)(r.sq + 1);
	CHECK(filled(r.heap, r.join.heap_size, 6));
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 8), heap_ga(&r, 0), 8), ACP_ST_OK);
}

/* Mappings outlive the descriptor; the memory is given back with the last of them. */
TEST(K2_mapping_outlives_the_descriptor)
{
	struct rank r;

	rank_open_local(&r, 1);
	fill(r.heap, r.join.heap_size, 3);
	CHECK_EQ(close(r.fd), 0);
	CHECK(filled(r.heap, r.join.heap_size, 3));
	fill(r.heap, r.join.heap_size, 4);
	r.sq->tail = 99;
	CHECK(filled(r.heap, r.join.heap_size, 4));
	CHECK_EQ(munmap(r.sq, r.join.sq_bytes), 0);
	CHECK_EQ(munmap((void *)r.cq, r.join.cq_bytes), 0);
	CHECK_EQ(munmap(r.starter, r.join.starter_size), 0);
	CHECK_EQ(munmap(r.heap, r.join.heap_size), 0);
	CHECK_EQ(status_kib("VmPin"), 0);
}

/* Memory of the kernel is cleared: no data of a former owner is visible. */
TEST(K2_memory_is_zero)
{
	int round;

	for (round = 0; round < 20; round++) {
		struct rank r;
		size_t i;

		rank_open_local(&r, 1);
		for (i = 0; i < r.join.heap_size; i++)
			CHECK(!r.heap[i]);
		for (i = 0; i < r.join.starter_size; i++)
			CHECK(!r.starter[i]);
		for (i = r.join.starter_size; i % PAGE; i++)
			CHECK(!r.starter[i]);
		memset(r.heap, 0xa5, r.join.heap_size);
		memset(r.starter, 0xa5, r.join.starter_size);
		rank_close(&r);
	}
}

TEST(K2_random_mmap)
{
	uint64_t seed = (uint64_t)getpid();
	int i, count = test_short() ? 3000 : 30000;
	struct rank r[2];

	printf("# seed %llu\n", (unsigned long long)seed);
	rank_open_local(r, 2);
	for (i = 0; i < count; i++) {
		uint64_t x = next_random(&seed);
		uint64_t at = ACP_MAP(x % 7, (x >> 8) % 4) + ((x >> 16) % 4 ? 0 : x >> 40);
		size_t size = 1 + ((x >> 20) % 8 ? (x >> 24) % (20 * PAGE) : x >> 30);
		void *p = mmap(NULL, size, (int)(x >> 60) & 7,
			       x & 1 << 10 ? MAP_SHARED : MAP_PRIVATE, r[0].fd,
			       (off_t)(at & ~(PAGE - 1)));

		if (p != MAP_FAILED)
			CHECK_EQ(munmap(p, size), 0);
	}
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 8), heap_ga(&r[0], 0), 8), ACP_ST_OK);
}
