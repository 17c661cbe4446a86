// SPDX-License-Identifier: MIT
/* selftest: leaks */
/*
 * M5: shortage of memory. Each allocation in a call fails once, and each access to memory of the
 * caller: the call reports the error and leaves nothing behind. For kernels with fault injection.
 */
#include "isolated.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../net/nodes.h"
#include "fail_nth.h"
#include "traffic.h"

#define FAULTS	"/sys/kernel/debug/"

static void quietly(void)
{
	if (!fail_nth_possible())
		SKIP("this kernel injects no faults");
}

static void begin(void)
{
	quietly();
	fail_nth_open();
}

/* An error is the injected one, and no error occurs without injection. */
static void excused(bool hit, int error)
{
	if (error && !(hit && (error == -ENOMEM || error == -EFAULT)))
		FAIL("%s, %s fault", strerror(-error), hit ? "with a" : "without a");
}

/* Rank 1 joins, with or without rank 0 in the job, until no allocation is left to fail. */
static void join_again_and_again(void)
{
	long before = status_kib("VmPin");
	bool hit = true;
	int n;

	for (n = 1; hit; n++) {
		int fd = device_open(), error;
		struct setup s;

		setup_local(&s, (uint32_t)n, 10000);	/* each rank joins once */
		fail_nth_arm(n);
		error = ioctl(fd, ACP_IOC_JOIN, &s.join) ? -errno : 0;
		hit = fail_nth_disarm();
		excused(hit, error);
		CHECK_EQ(close(fd), 0);
		CHECK_EQ(status_kib("VmPin"), before);
	}
	printf("# %d faults\n", n - 2);
	CHECK(n > 10);
}

TEST(M5_joining_a_new_job)
{
	begin();
	join_again_and_again();
}

TEST(M5_joining_a_job_that_is_there)
{
	struct setup s;
	struct rank r;

	begin();
	setup_local(&s, 0, 10000);
	rank_open(&r, &s);
	join_again_and_again();
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 8), heap_ga(&r, 0), 8), ACP_ST_OK);
}

TEST(M5_opening_the_device)
{
	bool hit = true;
	int n;

	begin();
	for (n = 1; hit; n++) {
		int fd;

		fail_nth_arm(n);
		fd = open(ACP_DEVICE, O_RDWR | O_CLOEXEC);
		hit = fail_nth_disarm();
		excused(hit, fd < 0 ? -errno : 0);
		if (fd >= 0)
			CHECK_EQ(close(fd), 0);
	}
	CHECK(n > 2);
}

TEST(M5_registering)
{
	bool hit = true;
	struct memory m;
	struct rank r;
	long before;
	char *p;
	int n;

	begin();
	rank_open_local(&r, 1);
	before = status_kib("VmPin");
	p = pages(2000 * PAGE, PROT_READ | PROT_WRITE);
	for (n = 1; hit; n++) {
		int error;

		fail_nth_arm(n);
		error = rank_register(&r, &m, p, 2000 * PAGE, ACP_ACCESS_ALL);
		hit = fail_nth_disarm();
		excused(hit, error);
		if (!error)
			CHECK_EQ(rank_unregister(&r, m.reg.key, NULL), 0);
		CHECK_EQ(status_kib("VmPin"), before);
	}
	CHECK(n > 5);
}

TEST(M5_mapping)
{
	struct rank r;
	uint32_t kind;

	begin();
	rank_open_local(&r, 1);
	for (kind = ACP_MAP_SQ; kind <= ACP_MAP_LIBRARY; kind++) {
		bool hit = true;
		int n;

		for (n = 1; hit; n++) {
			void *p;

			fail_nth_arm(n);
			p = rank_map(r.fd, kind, 0, PAGE, PROT_READ);
			hit = fail_nth_disarm();
			excused(hit, p == MAP_FAILED ? -errno : 0);
			if (p != MAP_FAILED)
				CHECK_EQ(munmap(p, PAGE), 0);
		}
	}
	rank_close(&r);
	CHECK_EQ(status_kib("VmPin"), 0);
}

/* The first command to another node creates the peer and everything needed to send. */
TEST_LONG(M5_first_command_to_a_node, PATIENCE_LONG_TEST)
{
	bool hit = true;
	struct nodes net;
	uint32_t n;

	begin();
	nodes_open(&net, 2, 1, false);
	for (n = 1; hit; n++) {
		struct rank r[2];
		struct setup s;
		uint64_t ticket;
		int i, status;

		for (i = 0; i < 2; i++) {
			nodes_setup(&net, &s, i, 2);
			s.join.generation = n;
			nodes_join(&net, &r[i], &s);
		}
		fill(r[0].heap, 5000, n);
		fail_nth_arm((int)n);
		ticket = rank_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 5000, 0);
		hit = fail_nth_disarm();
		status = rank_await(&r[0], ticket, PATIENCE_SOON);
		if (status != ACP_ST_OK)
			CHECK(hit && status == ACP_ST_NOMEM);
		CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 5000),
			 ACP_ST_OK);
		CHECK(filled(r[1].heap, 5000, n));
		rank_close(&r[0]);
		rank_close(&r[1]);
	}
	CHECK(n > 3);
}

static void traffic_between_nodes(void)
{
	struct rank r[3];
	struct traffic t;
	struct nodes n;

	nodes_open(&n, 3, 1, false);
	nodes_ranks(&n, r, 3);
	traffic_open(&t, r, 3, 1 << 18, 0);
	traffic_random(&t, 1, 30, 5000);
	/* From here on, one of 20 allocations that may not sleep fails, in the whole machine. */
	CHECK(write_file(FAULTS "failslab/ignore-gfp-wait", "Y"));
	CHECK(write_file(FAULTS "failslab/times", "100000"));
	CHECK(write_file(FAULTS "failslab/interval", "1"));
	CHECK(write_file(FAULTS "failslab/probability", "5"));
	traffic_random(&t, 10, 40, 30000);
	traffic_count(&t, 1, 200);
	traffic_close(&t);
	_exit(0);
}

/* Lost frames are retransmitted; every command takes effect once. */
TEST_LONG(M5_allocations_fail_in_traffic, PATIENCE_LONG_TEST)
{
	int status = 0;
	pid_t child;

	quietly();
	child = fork();
	if (!child)
		traffic_between_nodes();
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(write_file(FAULTS "failslab/probability", "0"));
	CHECK_EQ(status, 0);
}

/* ---- Memory of a control group ---- */

#define GROUP	"/sys/fs/cgroup/acp-test"

static long long group_memory(void)
{
	FILE *f = fopen(GROUP "/memory.current", "r");
	long long bytes = -1;

	CHECK(f && fscanf(f, "%lld", &bytes) == 1);
	fclose(f);
	return bytes;
}

/* Kernel memory allocated for a rank is charged to the group, and too much is refused. */
static void join_in_group(void)
{
	long long before;
	struct setup s;
	struct rank r;

	CHECK(write_file(GROUP "/cgroup.procs", "0"));
	CHECK(write_file(GROUP "/memory.max", "64M"));
	before = group_memory();
	setup_local(&s, 0, 2);
	s.join.heap_size = 32 << 20;
	s.join.depth = ACP_DEPTH_MAX;
	rank_open(&r, &s);
	CHECK(group_memory() - before > 35 << 20);
	before = status_kib("VmPin");
	setup_local(&s, 1, 2);
	s.join.heap_size = 64 << 20;
	CHECK_EQ(setup_join(&s), -ENOMEM);
	CHECK_EQ(status_kib("VmPin"), before);
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 8), heap_ga(&r, 0), 8), ACP_ST_OK);
	_exit(0);
}

TEST(M5_limit_of_the_control_group)
{
	int status = 0;
	pid_t child;

	write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	if (mkdir(GROUP, 0755) && errno != EEXIST)
		SKIP("no control groups: %s", strerror(errno));
	if (access(GROUP "/memory.current", R_OK))
		SKIP("no memory controller");
	child = fork();
	if (!child)
		join_in_group();
	CHECK_EQ(waitpid(child, &status, 0), child);
	rmdir(GROUP);
	CHECK_EQ(status, 0);
}
