// SPDX-License-Identifier: MIT
/* selftest: leaks */
/*
 * Joining a job: every error that the ABI specifies, and that a rejected join leaves nothing
 * behind.
 */
#include "isolated.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/userfaultfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "rank.h"

/* The join must fail with @error, and its rank and job must be free afterwards. */
static void refused(struct setup *s, int error, const char *what)
{
	int found = setup_join(s);

	if (found >= 0)
		FAIL("%s: joined, wanted %s", what, strerrorname_np(error));
	if (found != -error)
		FAIL("%s: %s, wanted %s", what, strerrorname_np(-found), strerrorname_np(error));
}

static void accepted(struct setup *s, const char *what)
{
	int fd = setup_join(s);

	if (fd < 0)
		FAIL("%s: %s", what, strerrorname_np(-fd));
	close(fd);
}

/* Set a field to a bad value; all others are valid. */
#define BAD(field, value, error)						\
	do {									\
		struct setup s_;						\
										\
		setup_local(&s_, 0, 4);						\
		s_.join.field = (value);					\
		refused(&s_, error, #field " = " #value);			\
	} while (0)

#define GOOD(field, value)							\
	do {									\
		struct setup s_;						\
										\
		setup_local(&s_, 0, 4);						\
		s_.join.field = (value);					\
		accepted(&s_, #field " = " #value);				\
	} while (0)

TEST(K1_join_size_and_version)
{
	BAD(size, 0, EINVAL);
	BAD(size, 1, EINVAL);
	BAD(size, sizeof(struct acp_join) - 1, EINVAL);
	/* differs from the size in the number of the call */
	BAD(size, sizeof(struct acp_join) + 1, EINVAL);
	BAD(size, sizeof(struct acp_join) + 8, EINVAL);
	BAD(reserved, 1, EINVAL);
	BAD(size, ~0u, EINVAL);
	BAD(version, 0, EPROTO);
	BAD(version, ACP_ABI_VERSION + 1, EPROTO);
	BAD(version, ~0u, EPROTO);
	GOOD(version, ACP_ABI_VERSION);
}

TEST(K1_join_numbers_out_of_range)
{
	BAD(rank, 4, EINVAL);
	BAD(rank, ~0u, EINVAL);
	BAD(nprocs, 0, EINVAL);
	BAD(nprocs, ACP_RANKS_MAX + 1, EINVAL);
	BAD(nprocs, ~0u, EINVAL);
	BAD(job, 0, EINVAL);
	GOOD(job, ~0u);
	BAD(generation, 65536, EINVAL);
	GOOD(generation, 65535);
	BAD(nodes, 0, EINVAL);
	BAD(nodes, 5, EINVAL);
	BAD(nodes, ~0u, EINVAL);
	BAD(colors, 0, EINVAL);
	BAD(colors, 2, EINVAL);
	BAD(colors, ACP_COLORS_MAX + 1, EINVAL);
	BAD(port, 0, EINVAL);
	BAD(port, 65536, EINVAL);
	GOOD(port, 65535);
	BAD(integrity, ACP_INTEGRITY_UDP + 1, EINVAL);
	BAD(integrity, ~0u, EINVAL);
	GOOD(integrity, ACP_INTEGRITY_CRC32C);
	GOOD(integrity, ACP_INTEGRITY_AEAD);
	GOOD(integrity, ACP_INTEGRITY_UDP);
	BAD(flags, 1, EINVAL);
	BAD(flags, 1u << 31, EINVAL);
}

TEST(K1_join_timeouts_out_of_range)
{
	BAD(timeout_ms, 0, EINVAL);
	BAD(timeout_ms, 9, EINVAL);
	BAD(timeout_ms, 3600001, EINVAL);
	GOOD(timeout_ms, 10);
	GOOD(timeout_ms, 3600000);
	BAD(open_timeout_ms, 9, EINVAL);
	BAD(open_timeout_ms, 3600001, EINVAL);
	GOOD(open_timeout_ms, 3600000);
}

TEST(K1_join_ring_depth)
{
	BAD(depth, 0, EINVAL);
	BAD(depth, 1, EINVAL);
	BAD(depth, ACP_DEPTH_MIN / 2, EINVAL);
	BAD(depth, ACP_DEPTH_MIN + 1, EINVAL);
	BAD(depth, ACP_DEPTH_DEFAULT - 1, EINVAL);
	BAD(depth, ACP_DEPTH_MAX * 2, EINVAL);
	BAD(depth, 1u << 31, EINVAL);
	BAD(depth, ~0u, EINVAL);
	GOOD(depth, ACP_DEPTH_MIN);
	GOOD(depth, ACP_DEPTH_MAX);
}

TEST(K1_join_memory_sizes)
{
	BAD(starter_size, ~0ULL, ENOMEM);
	BAD(starter_size, 1ULL << 63, ENOMEM);
	BAD(starter_size, 1ULL << 46, ENOMEM);
	BAD(heap_size, ~0ULL, ENOMEM);
	BAD(heap_size, ~0ULL - 4095, ENOMEM);
	BAD(heap_size, 1ULL << 46, ENOMEM);
	GOOD(starter_size, 0);
	GOOD(starter_size, 1);
	GOOD(heap_size, 0);
	GOOD(heap_size, 4097);
}

TEST(K1_join_run_counts_and_pointers)
{
	BAD(rank_runs, 0, EINVAL);
	BAD(rank_runs, ACP_RUNS_MAX + 1, EINVAL);
	BAD(rank_runs, ~0u, EINVAL);
	BAD(node_runs, 0, EINVAL);
	BAD(node_runs, 2, EINVAL);
	BAD(node_runs, ACP_RUNS_MAX + 1, EINVAL);
	BAD(rank_run_ptr, 0, EFAULT);
	BAD(rank_run_ptr, 1, EFAULT);
	BAD(rank_run_ptr, ~0ULL, EFAULT);
	BAD(rank_run_ptr, 0xffff888000000000ULL, EFAULT);
	BAD(rank_run_ptr, 0x8000000000000000ULL, EFAULT);
	BAD(rank_run_ptr, (uintptr_t)before_hole(sizeof(struct acp_rank_run) - 1), EFAULT);
	BAD(node_run_ptr, 0, EFAULT);
	BAD(node_run_ptr, 0xffffffff81000000ULL, EFAULT);
	BAD(node_run_ptr, (uintptr_t)before_hole(sizeof(struct acp_node_run) - 1), EFAULT);
}

/* The maximum number of runs, of which only a part is readable. */
TEST(K1_join_runs_end_at_a_hole)
{
	struct acp_rank_run *r = before_hole(100 * sizeof(*r));
	struct setup s;
	int i;

	for (i = 0; i < 100; i++)
		r[i] = (struct acp_rank_run){ (uint32_t)i, 1, 0, 1, 1, 0 };
	setup_local(&s, 0, 100);
	s.join.rank_run_ptr = (uintptr_t)r;
	s.join.rank_runs = 100;
	accepted(&s, "100 runs");
	s.join.rank_runs = 101;
	refused(&s, EFAULT, "101 runs, 100 readable");
	s.join.rank_runs = ACP_RUNS_MAX;
	refused(&s, EFAULT, "2^20 runs, 100 readable");
}

#define BAD_RANK_RUN(...)							\
	do {									\
		struct setup s_;						\
										\
		setup_local(&s_, 0, 4);						\
		s_.ranks[0] = (struct acp_rank_run){ __VA_ARGS__ };		\
		refused(&s_, EINVAL, "rank run " #__VA_ARGS__);			\
	} while (0)

/* first, count, node, nodes, block, reserved; valid is 0, 4, 0, 1, 4, 0 */
TEST(K1_join_rank_run)
{
	BAD_RANK_RUN(1, 4, 0, 1, 4, 0);
	BAD_RANK_RUN(0, 0, 0, 1, 4, 0);
	BAD_RANK_RUN(0, 3, 0, 1, 4, 0);
	BAD_RANK_RUN(0, 5, 0, 1, 4, 0);
	BAD_RANK_RUN(0, ~0u, 0, 1, 4, 0);
	BAD_RANK_RUN(0, 4, 1, 1, 4, 0);
	BAD_RANK_RUN(0, 4, ~0u, 1, 4, 0);
	BAD_RANK_RUN(0, 4, 0, 0, 4, 0);
	BAD_RANK_RUN(0, 4, 0, 2, 4, 0);
	BAD_RANK_RUN(0, 4, 0, ~0u, 4, 0);
	BAD_RANK_RUN(0, 4, ~0u, 2, 4, 0);
	BAD_RANK_RUN(0, 4, 0, 1, 0, 0);
	BAD_RANK_RUN(0, 4, 0, 1, 4, 1);
}

static void two_rank_runs(uint32_t first, uint32_t count, int error)
{
	struct setup s;

	setup_local(&s, 0, 4);
	s.ranks[0] = (struct acp_rank_run){ 0, 2, 0, 1, 2, 0 };
	s.ranks[1] = (struct acp_rank_run){ first, count, 0, 1, 2, 0 };
	s.join.rank_runs = 2;
	if (error)
		refused(&s, error, "two rank runs");
	else
		accepted(&s, "two rank runs");
}

TEST(K1_join_rank_runs_gap_overlap)
{
	two_rank_runs(2, 2, 0);
	two_rank_runs(3, 1, EINVAL);
	two_rank_runs(1, 3, EINVAL);
	two_rank_runs(0, 2, EINVAL);
	two_rank_runs(2, 1, EINVAL);
	two_rank_runs(2, 3, EINVAL);
	two_rank_runs(~0u, 2, EINVAL);
	two_rank_runs(2, ~0u, EINVAL);
}

#define BAD_NODE_RUN(field, value)						\
	do {									\
		struct setup s_;						\
										\
		setup_local(&s_, 0, 4);						\
		s_.nodes[0].field = (value);					\
		refused(&s_, EINVAL, "node run " #field " = " #value);		\
	} while (0)

TEST(K1_join_node_run)
{
	BAD_NODE_RUN(first, 1);
	BAD_NODE_RUN(count, 0);
	BAD_NODE_RUN(count, 2);
	BAD_NODE_RUN(count, ~0u);
	BAD_NODE_RUN(color, 1);
	BAD_NODE_RUN(color, 0xffff);
	BAD_NODE_RUN(family, 0);
	BAD_NODE_RUN(family, AF_UNIX);
	BAD_NODE_RUN(family, 0xffff);
	BAD_NODE_RUN(scope, 1);
}

TEST(K1_join_mixed_families)
{
	static const char *const mixed[] = { "127.0.0.1", "::1", NULL };
	static const char *const two[] = { "127.0.0.1", "127.0.0.2", NULL };
	struct setup s;

	setup_nodes(&s, 0, 2, 2, mixed);
	refused(&s, EINVAL, "node 0 IPv4, node 1 IPv6");
	setup_nodes(&s, 0, 2, 1, mixed);
	refused(&s, EINVAL, "color 0 IPv4, color 1 IPv6");
	setup_nodes(&s, 0, 2, 2, two);
	accepted(&s, "two IPv4 nodes");
	setup_nodes(&s, 0, 2, 1, two);
	accepted(&s, "two IPv4 colors");
}

TEST(K1_join_node_without_ranks)
{
	static const char *const two[] = { "127.0.0.1", "127.0.0.2", NULL };
	struct setup s;

	setup_nodes(&s, 0, 2, 2, two);
	s.ranks[0] = (struct acp_rank_run){ 0, 2, 0, 1, 2, 0 };
	refused(&s, EINVAL, "no rank on node 1");
}

TEST(K1_join_address_is_not_local)
{
	static const char *const elsewhere[] = { "192.0.2.1", NULL };
	static const char *const elsewhere6[] = { "2001:db8::1", NULL };
	static const char *const second[] = { "127.0.0.1", "192.0.2.1", NULL };
	struct setup s;

	setup_nodes(&s, 0, 2, 1, elsewhere);
	refused(&s, EADDRNOTAVAIL, "192.0.2.1");
	setup_nodes(&s, 0, 2, 1, elsewhere6);
	refused(&s, EADDRNOTAVAIL, "2001:db8::1");
	setup_nodes(&s, 0, 2, 1, second);
	refused(&s, EADDRNOTAVAIL, "color 1: 192.0.2.1");
	setup_nodes(&s, 0, 2, 2, second);
	accepted(&s, "the other node's address need not be local");
}

TEST(K6_join_port_taken)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(20202) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct setup s;

	setup_local(&s, 0, 1);
	s.join.port = 20202;
	inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
	CHECK_EQ(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	refused(&s, EADDRINUSE, "port bound on 127.0.0.1");
	s.join.port++;
	accepted(&s, "another port");
	s.join.port--;
	CHECK_EQ(close(fd), 0);
	accepted(&s, "port free again");
}

TEST(K1_join_twice)
{
	struct setup s;
	int fd;

	setup_local(&s, 0, 2);
	fd = setup_join(&s);
	CHECK(fd >= 0);
	CHECK_ERRNO(ioctl(fd, ACP_IOC_JOIN, &s.join), EALREADY);
	s.join.rank = 1;
	CHECK_ERRNO(ioctl(fd, ACP_IOC_JOIN, &s.join), EALREADY);
	s.join.rank = 0;
	refused(&s, EEXIST, "rank 0 again");
	CHECK_EQ(close(fd), 0);
	accepted(&s, "rank 0 after it left");
}

/* The job was aborted before this rank joined: it gets the same error as the others. */
TEST(K1_join_an_aborted_job)
{
	struct rank r[2];
	struct setup s;

	setup_local(&s, 0, 2);
	rank_open(&r[0], &s);
	CHECK_EQ(ioctl(r[0].fd, ACP_IOC_ABORT), 0);
	setup_local(&s, 1, 2);
	rank_open(&r[1], &s);
	CHECK_EQ(r[1].cq->flags, ACP_CQ_ABORTED | ACP_CQ_NEED_WAKEUP);
	CHECK_EQ(rank_do_copy(&r[1], heap_ga(&r[1], 8), heap_ga(&r[1], 0), 8), ACP_ST_ABORT);
}

/* Commands in flight for a rank that left must not reach its successor. */
TEST(K1_join_again_while_others_stay)
{
	struct setup s;
	struct rank r;
	int fd;

	setup_local(&s, 0, 3);
	rank_open(&r, &s);
	s.join.rank = 1;
	s.join.heap_size = 1UL << 62;
	refused(&s, ENOMEM, "impossible heap");
	s.join.heap_size = 4096;
	accepted(&s, "a rank that was never here");
	refused(&s, ESTALE, "the same rank again");
	s.join.generation++;
	accepted(&s, "in the next generation");
	s.join.generation--;
	s.join.rank = 2;
	fd = setup_join(&s);
	CHECK(fd >= 0);
	rank_close(&r);
	CHECK_EQ(close(fd), 0);
	s.join.rank = 1;
	accepted(&s, "when the others have left");
}

/* Ranks of one job on one node must agree. */
#define DIFFERS(change, error)							\
	do {									\
		struct setup s_;						\
										\
		setup_local(&s_, 1, 4);						\
		change;								\
		refused(&s_, error, #change);					\
	} while (0)

TEST(K1_join_disagrees_with_the_job)
{
	struct rank r;
	struct setup s;

	setup_local(&s, 0, 4);
	rank_open(&r, &s);
	DIFFERS(s_.join.key[0] ^= 1, EACCES);
	DIFFERS(s_.join.key[15] ^= 0x80, EACCES);
	DIFFERS(s_.join.timeout_ms++, EPROTO);
	DIFFERS(s_.join.open_timeout_ms++, EPROTO);
	DIFFERS(s_.join.port++, EPROTO);
	DIFFERS(s_.join.integrity = ACP_INTEGRITY_CRC32C, EPROTO);
	DIFFERS(s_.join.integrity = ACP_INTEGRITY_AEAD, EPROTO);
	DIFFERS(s_.join.integrity = ACP_INTEGRITY_UDP, EPROTO);
	DIFFERS((s_.join.nprocs = 3, s_.ranks[0].count = 3), EPROTO);
	DIFFERS(s_.ranks[0].block = 2, EPROTO);
	DIFFERS(s_.nodes[0].addr[3] = 2, EPROTO);
	setup_local(&s, 1, 4);
	s.join.starter_size = 0;
	s.join.heap_size = 1 << 20;
	s.join.depth = 4096;
	accepted(&s, "other sizes of its own");
	s.join.generation = 1;
	s.join.key[0] ^= 1;
	accepted(&s, "another generation is another job");
	rank_close(&r);
}

static uint32_t other_job;	/* the id of a job of another user */

static void join_as_nobody(void)
{
	struct setup s;

	setup_local(&s, 1, 4);
	s.join.job = other_job;
	CHECK_EQ(setresuid(65534, 65534, 65534), 0);
	refused(&s, EACCES, "another user's job");
	s.join.job++;
	accepted(&s, "a job of its own");
}

TEST(K1_join_job_of_another_user)
{
	struct rank r;
	struct setup s;

	CHECK_EQ(chmod(ACP_DEVICE, 0666), 0);
	setup_local(&s, 0, 4);
	rank_open(&r, &s);
	other_job = s.join.job;
	in_child(join_as_nobody);
}

TEST(M4_join_memlock_limit)
{
	uint64_t low = 0, high = 1 << 20, middle;
	struct setup s;
	int fd;

	drop_capability(CAP_IPC_LOCK);
	setup_local(&s, 0, 1);
	s.join.starter_size = 64 * PAGE;
	s.join.heap_size = 64 * PAGE;
	while (high - low > 1) {	/* with @low pages it fails, with @high it succeeds */
		middle = (low + high) / 2;
		limit_pages(middle);
		fd = setup_join(&s);
		if (fd < 0) {
			CHECK_EQ(fd, -ENOMEM);
			low = middle;
		} else {
			close(fd);
			high = middle;
		}
		CHECK_EQ(status_kib("VmPin"), 0);
	}
	CHECK(high >= 128 && high <= 140);
}

static void accept_ranks(bool yes)
{
	FILE *f = fopen("/sys/module/acp/parameters/enable", "w");

	CHECK(f);
	fprintf(f, "%d\n", yes);
	CHECK_EQ(fclose(f), 0);
}

TEST(K1_join_refused_by_the_administrator)
{
	struct setup s;
	struct rank r;
	int result;

	setup_local(&s, 0, 2);
	rank_open(&r, &s);
	accept_ranks(false);
	s.join.rank = 1;
	result = setup_join(&s);
	accept_ranks(true);
	CHECK_EQ(result, -EOPNOTSUPP);
	accepted(&s, "accepted again");
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 8), heap_ga(&r, 0), 8), ACP_ST_OK);
}

TEST(K1_join_bad_argument_pointers)
{
	struct setup s;
	int fd = device_open();
	char *p;

	setup_local(&s, 0, 1);
	CHECK_ERRNO(ioctl(fd, ACP_IOC_JOIN, NULL), EFAULT);
	CHECK_ERRNO(ioctl(fd, ACP_IOC_JOIN, 8), EFAULT);
	CHECK_ERRNO(ioctl(fd, ACP_IOC_JOIN, -1L), EFAULT);
	CHECK_ERRNO(ioctl(fd, ACP_IOC_JOIN, 0xffff888000000000ULL), EFAULT);
	CHECK_ERRNO(ioctl(fd, ACP_IOC_JOIN, 0x8000000000000000ULL), EFAULT);
	p = before_hole(sizeof(s.join) - 1);
	memcpy(p, &s.join, sizeof(s.join) - 1);
	CHECK_ERRNO(ioctl(fd, ACP_IOC_JOIN, p), EFAULT);
	p = before_hole(1);
	CHECK_ERRNO(ioctl(fd, ACP_IOC_JOIN, p), EFAULT);
	p = before_hole(sizeof(s.join));
	memcpy(p, &s.join, sizeof(s.join));
	CHECK_EQ(ioctl(fd, ACP_IOC_JOIN, p), 0);
}

/* If the result cannot be written, the join has not happened and can be repeated. */
TEST(K1_join_result_not_writable)
{
	void *p = pages(PAGE, PROT_READ | PROT_WRITE);
	struct setup s;
	int fd = device_open();

	setup_local(&s, 0, 2);
	memcpy(p, &s.join, sizeof(s.join));
	CHECK_EQ(mprotect(p, PAGE, PROT_READ), 0);
	CHECK_ERRNO(ioctl(fd, ACP_IOC_JOIN, p), EFAULT);
	CHECK_EQ(status_kib("VmPin"), 0);
	CHECK_ERRNO(ioctl(fd, ACP_IOC_DOORBELL), ENOTCONN);
	accepted(&s, "the same rank by another file");
	CHECK_EQ(mprotect(p, PAGE, PROT_READ | PROT_WRITE), 0);
	CHECK_EQ(ioctl(fd, ACP_IOC_JOIN, p), 0);
}

/* A page that never arrives: a reader waits forever. */
static void *page_that_never_comes(void)
{
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *p = pages(PAGE, PROT_READ | PROT_WRITE);

	if (fd < 0)
		SKIP("no userfaultfd: %s", strerror(errno));
	range.range = (struct uffdio_range){ (uintptr_t)p, PAGE };
	CHECK_EQ(ioctl(fd, UFFDIO_API, &api), 0);
	CHECK_EQ(ioctl(fd, UFFDIO_REGISTER, &range), 0);
	return p;
}

/* A join that waits for its placement to be read delays nobody else: others join and leave. */
TEST(K1_join_that_waits_for_its_memory)
{
	int ready[2], status = 0;
	struct setup s;
	pid_t child;
	char byte;

	CHECK_EQ(pipe(ready), 0);
	setup_local(&s, 0, 4);
	accepted(&s, "before");
	child = fork();
	if (!child) {
		s.join.job++;
		s.join.rank_run_ptr = (uintptr_t)page_that_never_comes();
		CHECK_EQ(write(ready[1], "", 1), 1);
		setup_join(&s);
		FAIL("joined without its placement");
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		_exit(0);	/* the child has reported the error */
	sleep_ms(300);
	accepted(&s, "meanwhile");
	CHECK_EQ(kill(child, SIGKILL), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
}

/* The result of a join. */
TEST(K1_join_result)
{
	struct acp_peer_info peer = { .size = sizeof(peer), .rank = 1 };
	struct setup s;
	struct rank r[2];

	setup_local(&s, 0, 2);
	s.join.node = 77;
	s.join.sq_bytes = 77;
	rank_open(&r[0], &s);
	CHECK_EQ(r[0].join.node, 0);
	CHECK_EQ(r[0].join.local_ranks, 2);
	CHECK_EQ(r[0].join.sq_bytes % PAGE, 0);
	CHECK_EQ(r[0].join.cq_bytes % PAGE, 0);
	CHECK(r[0].join.sq_bytes >= sizeof(struct acp_sq) + 64 * sizeof(struct acp_sqe));
	CHECK(r[0].join.cq_bytes >= sizeof(struct acp_cq) + 64);
	CHECK_EQ(r[0].sq->tail, 1);
	CHECK_EQ(r[0].cq->completed, 1);
	CHECK_EQ(r[0].cq->failed, 0);
	CHECK_ERRNO(ioctl(r[0].fd, ACP_IOC_PEER, &peer), ESRCH);
	setup_local(&s, 1, 2);
	s.join.starter_size = 5000;
	s.join.heap_size = 123;
	rank_open(&r[1], &s);
	CHECK_EQ(ioctl(r[0].fd, ACP_IOC_PEER, &peer), 0);
	CHECK_EQ(peer.starter_size, 5000);
	CHECK_EQ(peer.heap_size, 123);
	peer.rank = 2;
	CHECK_ERRNO(ioctl(r[0].fd, ACP_IOC_PEER, &peer), EINVAL);
	peer.rank = ~0u;
	CHECK_ERRNO(ioctl(r[0].fd, ACP_IOC_PEER, &peer), EINVAL);
	rank_close(&r[1]);
	peer.rank = 1;
	CHECK_ERRNO(ioctl(r[0].fd, ACP_IOC_PEER, &peer), ESRCH);
}

/* A node of a job with a million ranks on 16,384 nodes: joining is fast and takes little memory. */
TEST(K1_join_a_million_ranks)
{
	struct setup s;
	struct patience p;
	int fd;

	setup_local(&s, 0, 1u << 20);
	s.ranks[0] = (struct acp_rank_run){ 0, 1u << 20, 0, 16384, 64, 0 };
	s.nodes[0].count = 16384;
	s.join.nodes = 16384;
	p = patience_begin(PATIENCE_SOON);
	fd = setup_join(&s);
	CHECK(fd >= 0);
	CHECK(!patience_over(&p));
	CHECK_EQ(s.join.node, 0);
	CHECK_EQ(s.join.local_ranks, 64);
	close(fd);
	setup_local(&s, ACP_RANKS_MAX - 1, ACP_RANKS_MAX);
	accepted(&s, "as many ranks as there can be");
}
