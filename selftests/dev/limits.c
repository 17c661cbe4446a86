// SPDX-License-Identifier: MIT
/* selftest: leaks */
/*
 * K1, M4: limits that an administrator sets. Each can be reached exactly, and one more is rejected;
 * each can be set below the current use; and however a rank ends, nothing of it is charged
 * afterwards.
 */
#include "isolated.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "rank.h"

#define USER	1000	/* no other test has processes of these users */
#define OTHER	1001

static int here(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static void enter(int namespace)
{
	CHECK_EQ(setns(namespace, CLONE_NEWNET), 0);
}

/* Enter a new network namespace. */
static int new_namespace(void)
{
	CHECK_EQ(unshare(CLONE_NEWNET), 0);
	CHECK_EQ(system("ip link set lo up"), 0);
	return here();
}

static void become(uid_t uid)
{
	CHECK_EQ(setresuid(uid, uid, uid), 0);
}

static int join(uint32_t job, uint32_t rank)
{
	struct setup s;

	setup_local(&s, rank, 100);
	s.join.job += job << 22;	/* process ids are smaller */
	return setup_join(&s);
}

static int join_well(uint32_t job, uint32_t rank)
{
	int fd = join(job, rank);

	if (fd < 0)
		FAIL("rank %u of job %u: %s", rank, job, strerror(-fd));
	return fd;
}

/* The limit is reached, and the error reports this limit. */
static void refused(struct setup *s, uint32_t limit)
{
	long long before = counter("limit_calls");

	CHECK_EQ(setup_join(s), -EDQUOT);
	CHECK_EQ(s->join.limit, limit);
	CHECK_EQ(counter("limit_calls"), before + 1);
}

static void rank_refused(uint32_t job, uint32_t rank, uint32_t limit)
{
	struct setup s;

	setup_local(&s, rank, 100);
	s.join.job += job << 22;
	refused(&s, limit);
}

/* Join; a job ends some milliseconds after its last rank. */
static int join_soon(uint32_t job, uint32_t rank)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	int fd = join(job, rank);

	while (fd == -EDQUOT && !patience_over(&p)) {
		sleep_ms(20);
		fd = join(job, rank);
	}
	if (fd < 0)
		FAIL("rank %u of job %u after a while: %s", rank, job, strerror(-fd));
	return fd;
}

/* ---- Ranks ---- */

TEST(K1_join_limit_of_a_user)
{
	struct rank r[3];
	struct setup s;
	int i;

	new_namespace();
	limit_set("user_ranks", 3);
	rank_open_local(r, 3);
	rank_refused(1, 0, ACP_LIMIT_USER_RANKS);
	rank_refused(2, 0, ACP_LIMIT_USER_RANKS);
	rank_close(&r[2]);
	setup_local(&s, 2, 3);
	s.join.job++;
	rank_open(&r[2], &s);
	limit_set("user_ranks", 1);	/* existing ranks remain */
	for (i = 0; i < 3; i++)
		rank_works(&r[i]);
	rank_close(&r[2]);
	rank_refused(1, 0, ACP_LIMIT_USER_RANKS);
	rank_close(&r[1]);
	rank_refused(1, 0, ACP_LIMIT_USER_RANKS);
	rank_close(&r[0]);
	close(join_well(1, 0));
	limit_set("user_ranks", 0);
	rank_refused(2, 0, ACP_LIMIT_USER_RANKS);
}

/*
 * Each fails at a different point. The limit is one rank, so a leaked charge would make the next
 * join fail.
 */
static void fail_to_join(void)
{
	struct acp_join *hole = pages(PAGE, PROT_READ | PROT_WRITE);
	struct setup s;
	int fd;

	setup_local(&s, 0, 4);
	s.join.heap_size = 1UL << 62;
	CHECK_EQ(setup_join(&s), -ENOMEM);
	setup_local(&s, 0, 4);
	s.join.depth = 100;
	CHECK_EQ(setup_join(&s), -EINVAL);
	setup_local(&s, 0, 4);
	s.ranks[0].count = 3;
	CHECK_EQ(setup_join(&s), -EINVAL);
	setup_local(&s, 0, 4);
	s.join.node_run_ptr = 0;
	CHECK_EQ(setup_join(&s), -EFAULT);
	setup_local(&s, 0, 4);
	s.nodes[0].addr[0] = 192;
	CHECK_EQ(setup_join(&s), -EADDRNOTAVAIL);
	setup_local(&s, 0, 4);
	*hole = s.join;
	CHECK_EQ(mprotect(hole, PAGE, PROT_READ), 0);
	fd = device_open();
	CHECK_ERRNO(ioctl(fd, ACP_IOC_JOIN, hole), EFAULT);
	close(fd);
	munmap(hole, PAGE);
}

TEST(K1_failed_joins_count_for_nothing)
{
	int i, fd;

	new_namespace();
	limit_set("user_ranks", 1);
	limit_set("jobs", 2);
	for (i = 0; i < 20; i++) {
		fail_to_join();
		fd = join_well(0, 0);
		CHECK_EQ(join(0, 0), -EEXIST);
		close(fd);
	}
	fd = join_well(0, 0);
	for (i = 0; i < 20; i++)
		rank_refused(0, 1, ACP_LIMIT_USER_RANKS);
	close(fd);
	close(join_well(0, 0));
}

/* A rejected join must not create a job, which would remain for a while. */
TEST(K1_refused_joins_make_no_job)
{
	struct setup s;
	int i;

	new_namespace();
	limit_set("jobs", 1);
	for (i = 0; i < 10; i++) {
		limit_set("user_ranks", 0);
		rank_refused(3 * (uint32_t)i, 0, ACP_LIMIT_USER_RANKS);
		limit_set("user_ranks", 10);
		limit_set("user_memory", 30);
		rank_refused(3 * (uint32_t)i + 1, 0, ACP_LIMIT_USER_MEMORY);
		limit_set("user_memory", 1 << 20);
		limit_set("depth", 64);
		setup_local(&s, 0, 100);
		s.join.depth = 128;
		refused(&s, ACP_LIMIT_DEPTH);
		if (i)
			close(join_soon(3 * (uint32_t)i + 2, 0));
		else
			close(join_well(2, 0));
	}
}

/* ---- Jobs ---- */

static void try_job_limit(const char *name, uint32_t limit)
{
	int fd[3];

	limit_set(name, 2);
	fd[0] = join_soon(0, 0);
	fd[1] = join_soon(1, 0);
	rank_refused(2, 0, limit);
	fd[2] = join_well(1, 1);	/* of an existing job */
	close(fd[1]);
	rank_refused(2, 0, limit);
	close(fd[2]);
	close(join_well(1, 0));		/* the same job again, immediately */
	fd[1] = join_soon(2, 0);
	limit_set(name, 0);
	fd[2] = join_well(0, 1);
	rank_refused(3, 0, limit);
	close(fd[0]);
	close(fd[1]);
	close(fd[2]);
	rank_refused(3, 0, limit);
	limit_set(name, 1000);
}

TEST(K1_join_limit_of_jobs)
{
	new_namespace();
	try_job_limit("jobs", ACP_LIMIT_JOBS);
	try_job_limit("user_jobs", ACP_LIMIT_USER_JOBS);
}

/* ---- Memory ---- */

/* KiB charged for a rank: the smallest limit with which it may join. */
static unsigned long rank_kib(struct setup *s)
{
	unsigned long low = 0, high = 1 << 20, middle;
	int fd;

	while (high - low > 1) {
		middle = (low + high) / 2;
		limit_set("user_memory", middle);
		fd = setup_join(s);
		if (fd == -EDQUOT) {	/* unless the previous attempt has not yet been uncharged */
			sleep_ms(50);
			fd = setup_join(s);
		}
		if (fd < 0) {
			CHECK_EQ(fd, -EDQUOT);
			CHECK_EQ(s->join.limit, ACP_LIMIT_USER_MEMORY);
			low = middle;
		} else {
			close(fd);
			high = middle;
		}
		CHECK_EQ(status_kib("VmPin"), 0);
	}
	return high;
}

static void join_and_sleep(int ready)
{
	struct memory m;
	struct rank r;

	rank_open_local(&r, 1);
	memory_open(&r, &m, 5 * PAGE);
	CHECK_EQ(write(ready, "", 1), 1);
	pause();
}

/* Ranks, regions and memory of a process that is killed. */
TEST(K1_killed_ranks_count_for_nothing)
{
	unsigned long kib;
	int i, ready[2];
	struct setup s;
	char byte;

	new_namespace();
	setup_local(&s, 0, 1);
	kib = rank_kib(&s);
	limit_set("user_memory", kib + 5 * PAGE / 1024);
	limit_set("user_ranks", 1);
	limit_set("user_regions", 1);
	CHECK_EQ(pipe(ready), 0);
	for (i = 0; i < 10; i++) {
		pid_t child = fork();

		if (!child)
			join_and_sleep(ready[1]);
		CHECK_EQ(read(ready[0], &byte, 1), 1);
		rank_refused(0, 0, ACP_LIMIT_USER_RANKS);
		CHECK_EQ(kill(child, SIGKILL), 0);
		CHECK_EQ(waitpid(child, NULL, 0), child);
	}
	limit_set("user_memory", kib);
	CHECK(setup_join(&s) >= 0);
}

static void over(struct rank *r, void *p, size_t size, uint32_t limit)
{
	long before = status_kib("VmPin");
	struct memory m;

	CHECK_EQ(rank_register(r, &m, p, size, ACP_ACCESS_ALL), -EDQUOT);
	CHECK_EQ(m.reg.limit, limit);
	CHECK_EQ(m.reg.key, 0);
	CHECK_EQ(status_kib("VmPin"), before);
}

TEST(M4_user_memory_limit_exactly_hit)
{
	char *p = pages(32 * PAGE, PROT_READ | PROT_WRITE);
	char *hole = before_hole(PAGE);
	struct memory m, again;
	unsigned long kib;
	struct setup s;
	struct rank r;
	int i;

	new_namespace();
	setup_local(&s, 0, 1);
	s.join.starter_size = 64 * PAGE;
	s.join.heap_size = 64 * PAGE;
	kib = rank_kib(&s);
	/* Starter memory, heap, one page for the library, both queues, commands in flight. */
	CHECK(kib >= 512 + 4 + 8 + 4 + 32 && kib <= 512 + 4 + 8 + 4 + 80);
	limit_set("user_memory", kib + 64);
	rank_open(&r, &s);
	for (i = 0; i < 100; i++) {
		over(&r, p, 17 * PAGE, ACP_LIMIT_USER_MEMORY);
		over(&r, p, 16 * PAGE + 1, ACP_LIMIT_USER_MEMORY);
		CHECK_EQ(rank_register(&r, &m, hole, 2 * PAGE, ACP_ACCESS_ALL), -EFAULT);
		CHECK_EQ(rank_register(&r, &m, p, 16 * PAGE, ACP_ACCESS_ALL), 0);
		over(&r, p + 16 * PAGE, 1, ACP_LIMIT_USER_MEMORY);
		CHECK_EQ(rank_register(&r, &again, p, PAGE, ACP_ACCESS_ALL), 0);
		CHECK_EQ(rank_unregister(&r, m.reg.key, NULL), 0);
		over(&r, p + 16 * PAGE, 1, ACP_LIMIT_USER_MEMORY);
		CHECK_EQ(rank_unregister(&r, m.reg.key, NULL), 0);
	}
	CHECK_EQ(rank_register(&r, &m, p, 16 * PAGE, ACP_ACCESS_ALL), 0);
	limit_set("user_memory", 0);	/* below the current use, which is not affected */
	CHECK_EQ(rank_do_copy(&r, memory_ga(&m, 0), heap_ga(&r, 0), 8), ACP_ST_OK);
	over(&r, p + 16 * PAGE, 1, ACP_LIMIT_USER_MEMORY);
	limit_set("user_memory", kib);
	rank_close(&r);
	CHECK_EQ(rank_kib(&s), kib);
}

/* A mapping that is revoked is charged until it is unregistered. */
TEST(M4_user_memory_of_revoked_regions)
{
	unsigned long kib;
	struct memory m;
	struct setup s;
	struct rank r;
	int i;

	new_namespace();
	setup_local(&s, 0, 1);
	kib = rank_kib(&s);
	limit_set("user_memory", kib + 64);
	limit_set("user_regions", 1);
	rank_open(&r, &s);
	for (i = 0; i < 50; i++) {
		memory_open(&r, &m, 16 * PAGE);
		CHECK_EQ(munmap(m.addr, m.size), 0);
		CHECK_EQ(rank_do_copy(&r, memory_ga(&m, 0), heap_ga(&r, 0), 8), ACP_ST_STAG);
		CHECK_EQ(rank_unregister(&r, m.reg.key, NULL), 0);
	}
	memory_open(&r, &m, 16 * PAGE);
	CHECK_EQ(munmap(m.addr, m.size), 0);
	rank_close(&r);
	limit_set("user_memory", kib);
	rank_open(&r, &s);
}

/* Memory that a neighbour has mapped outlives its rank, and is charged as long. */
TEST(M4_user_memory_mapped_by_a_neighbour)
{
	struct rank r[2];
	struct setup s;
	void *p;

	new_namespace();
	rank_open_local(r, 2);
	p = rank_map(r[0].fd, ACP_MAP_HEAP, 1, r[1].join.heap_size, PROT_READ | PROT_WRITE);
	CHECK(p != MAP_FAILED);
	rank_close(&r[1]);
	setup_local(&s, 0, 1);
	s.join.job++;
	s.join.starter_size = 0;
	s.join.heap_size = 0;
	limit_set("user_memory", 250);
	refused(&s, ACP_LIMIT_USER_MEMORY);
	CHECK_EQ(munmap(p, r[1].join.heap_size), 0);
	CHECK(setup_join(&s) >= 0);
}

/* The description of an irregular placement is charged, too. */
TEST(M4_user_memory_of_a_placement)
{
	const uint32_t n = 4096;
	struct acp_rank_run *runs = calloc(n, sizeof(*runs));
	unsigned long kib;
	struct setup s;
	uint32_t i;

	new_namespace();
	setup_local(&s, 0, n);
	kib = rank_kib(&s);
	for (i = 0; i < n; i++)
		runs[i] = (struct acp_rank_run){ i, 1, 0, 1, 1, 0 };
	s.join.job++;
	s.join.rank_run_ptr = (uintptr_t)runs;
	s.join.rank_runs = n;
	limit_set("user_memory", n * sizeof(*runs) / 1024 - 1);
	refused(&s, ACP_LIMIT_USER_MEMORY);
	CHECK_EQ(rank_kib(&s), kib + n * sizeof(*runs) / 1024);
	/* Once per job: a second rank is charged only for itself. */
	limit_set("user_memory", 2 * kib + n * sizeof(*runs) / 1024);
	CHECK(setup_join(&s) >= 0);
	s.join.rank = 1;
	CHECK(setup_join(&s) >= 0);
}

TEST(M4_user_regions_limit_exactly_hit)
{
	char *p = pages(8 * PAGE, PROT_READ | PROT_WRITE);
	struct memory m[3], again;
	struct rank r[2];
	int i;

	new_namespace();
	limit_set("user_regions", 3);
	rank_open_local(r, 2);
	for (i = 0; i < 3; i++)
		CHECK_EQ(rank_register(&r[i & 1], &m[i], p + i * PAGE, PAGE, ACP_ACCESS_ALL), 0);
	over(&r[0], p + 3 * PAGE, PAGE, ACP_LIMIT_USER_REGIONS);
	over(&r[1], p + 3 * PAGE, PAGE, ACP_LIMIT_USER_REGIONS);
	CHECK_EQ(rank_register(&r[0], &again, p, PAGE, ACP_ACCESS_ALL), 0);	/* only charged */
	CHECK_EQ(rank_unregister(&r[0], m[0].reg.key, NULL), 0);
	over(&r[0], p + 3 * PAGE, PAGE, ACP_LIMIT_USER_REGIONS);
	CHECK_EQ(rank_unregister(&r[0], m[0].reg.key, NULL), 0);
	CHECK_EQ(rank_register(&r[0], &m[0], p + 3 * PAGE, PAGE, ACP_ACCESS_ALL), 0);
	limit_set("user_regions", 1);
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&m[0], 0), memory_ga(&m[1], 0), 8), ACP_ST_OK);
	rank_close(&r[0]);
	over(&r[1], p, PAGE, ACP_LIMIT_USER_REGIONS);
	CHECK_EQ(rank_unregister(&r[1], m[1].reg.key, NULL), 0);
	for (i = 0; i < 100; i++) {
		CHECK_EQ(rank_register(&r[1], &m[0], p, PAGE, ACP_ACCESS_ALL), 0);
		over(&r[1], p + 3 * PAGE, PAGE, ACP_LIMIT_USER_REGIONS);
		CHECK_EQ(rank_unregister(&r[1], m[0].reg.key, NULL), 0);
	}
}

TEST(K1_join_limit_of_the_ring)
{
	struct setup s;

	new_namespace();
	limit_set("depth", 128);
	setup_local(&s, 0, 4);
	s.join.depth = 256;
	refused(&s, ACP_LIMIT_DEPTH);
	s.join.depth = 100;
	CHECK_EQ(setup_join(&s), -EINVAL);
	s.join.depth = 128;
	close(setup_join(&s));
	limit_set("depth", 256);
	s.join.rank = 1;
	s.join.depth = 256;
	CHECK(setup_join(&s) >= 0);
}

/* ---- Whose charge ---- */

static void one_rank(void)
{
	join_well(10, 0);
	rank_refused(11, 0, ACP_LIMIT_USER_RANKS);
}

static void one_rank_of_a_user(void)
{
	become(USER);
	CHECK_EQ(limit_try("user_ranks", "5"), -EACCES);
	one_rank();
}

static void one_rank_of_another(void)
{
	become(OTHER);
	one_rank();
}

TEST(K1_limits_of_two_users)
{
	int fd;

	CHECK_EQ(chmod(ACP_DEVICE, 0666), 0);
	new_namespace();
	limit_set("user_ranks", 1);
	fd = join_well(0, 0);
	in_child(one_rank_of_a_user);
	in_child(one_rank_of_another);
	rank_refused(1, 0, ACP_LIMIT_USER_RANKS);
	close(fd);
	in_child(one_rank_of_a_user);
	join_well(1, 0);
	/* The real user of a program is charged, not its effective user. */
	CHECK_EQ(setresuid(USER, 0, 0), 0);
	fd = join_well(2, 0);
	rank_refused(3, 0, ACP_LIMIT_USER_RANKS);
	CHECK_EQ(setresuid(0, 0, 0), 0);
	rank_refused(3, 0, ACP_LIMIT_USER_RANKS);
	close(fd);
	rank_refused(3, 0, ACP_LIMIT_USER_RANKS);
}

TEST(K1_limits_of_two_namespaces)
{
	int home = here(), a, b, fd[4], i;
	long long ranks = limit_get("user_ranks");

	a = new_namespace();
	b = new_namespace();
	enter(a);
	limit_set("user_ranks", 1);
	fd[0] = join_well(0, 0);
	rank_refused(0, 1, ACP_LIMIT_USER_RANKS);
	enter(b);
	CHECK_EQ(limit_get("user_ranks"), ranks);
	for (i = 1; i < 4; i++)
		fd[i] = join_well(0, (uint32_t)i);
	enter(home);
	CHECK_EQ(limit_get("user_ranks"), ranks);
	close(join_well(0, 0));
	enter(a);
	rank_refused(0, 1, ACP_LIMIT_USER_RANKS);
	for (i = 0; i < 4; i++)
		close(fd[i]);
	close(join_well(1, 0));
}

static long long parameter(const char *name)
{
	char path[80];
	long long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/acp/parameters/%s", name);
	f = fopen(path, "r");
	if (f && fscanf(f, "%lld", &value) != 1)
		value = -1;
	if (f)
		fclose(f);
	return value;
}

/* The limits of the initial namespace, which others read, too; restored at the end. */
static void on_machine(const char *name, unsigned long value, void (*run)(void))
{
	unsigned long before = (unsigned long)limit_get(name);
	int home = here(), status;

	limit_set(name, value);
	CHECK_EQ(parameter(name), value);
	status = child_status(run);
	enter(home);
	limit_set(name, before);
	CHECK_EQ(status, 0);
}

static void three_ranks_of_the_machine(void)
{
	int home = here(), a = new_namespace(), b, fd[3];

	CHECK_EQ(limit_get("user_ranks"), 3);	/* as the initial namespace at that time */
	limit_set("user_ranks", 100);
	b = new_namespace();
	limit_set("user_ranks", 2);
	enter(a);
	fd[0] = join_well(0, 0);
	enter(b);
	fd[1] = join_well(0, 0);
	enter(home);
	fd[2] = join_well(0, 0);
	rank_refused(0, 1, ACP_LIMIT_USER_RANKS);
	enter(b);
	rank_refused(0, 1, ACP_LIMIT_USER_RANKS);
	close(fd[0]);
	fd[0] = join_well(0, 1);	/* now the namespace has reached its limit, too */
	close(fd[2]);
	rank_refused(0, 2, ACP_LIMIT_USER_RANKS);
	enter(a);
	close(join_well(0, 0));
}

TEST(K1_limits_of_the_machine)
{
	on_machine("user_ranks", 3, three_ranks_of_the_machine);
}

/* A user becomes root of a user namespace, with its own network namespace. */
static void own_root(void)
{
	char uid[40], gid[40];

	CHECK_EQ(prctl(PR_SET_DUMPABLE, 1), 0);		/* otherwise /proc/self belongs to root */
	snprintf(uid, sizeof(uid), "0 %u 1", getuid());
	snprintf(gid, sizeof(gid), "0 %u 1", getgid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		SKIP("no user namespaces: %s", strerror(errno));
	CHECK(write_file("/proc/self/uid_map", uid));
	CHECK(write_file("/proc/self/setgroups", "deny"));
	CHECK(write_file("/proc/self/gid_map", gid));
	CHECK_EQ(system("ip link set lo up"), 0);
}

static void root_raises_ranks(void)
{
	int fd[2];

	become(USER);
	own_root();
	CHECK(open("/sys/module/acp/parameters/enable", O_WRONLY) < 0);
	limit_set("user_ranks", 1);
	fd[0] = join_well(0, 0);
	rank_refused(0, 1, ACP_LIMIT_USER_RANKS);
	limit_set("user_ranks", 1000);
	fd[1] = join_well(0, 1);
	rank_refused(0, 2, ACP_LIMIT_USER_RANKS);
	own_root();			/* nor in a nested namespace */
	rank_refused(0, 2, ACP_LIMIT_USER_RANKS);
	close(fd[0]);
	close(join_well(0, 2));
	close(fd[1]);
}

static void root_raises_depth(void)
{
	struct setup s;

	become(USER);
	own_root();
	limit_set("depth", ACP_DEPTH_MAX);
	setup_local(&s, 0, 4);
	s.join.depth = 256;
	refused(&s, ACP_LIMIT_DEPTH);
	s.join.depth = 128;
	CHECK(setup_join(&s) >= 0);
}

static void root_raises_memory(void)
{
	struct setup s;

	become(USER);
	own_root();
	limit_set("user_memory", 1 << 20);
	setup_local(&s, 0, 4);
	s.join.heap_size = 1024;
	s.join.depth = ACP_DEPTH_MAX;
	refused(&s, ACP_LIMIT_USER_MEMORY);
}

static void root_raises_jobs(void)
{
	become(USER);
	own_root();
	limit_set("jobs", 10);
	join_well(0, 0);
	rank_refused(1, 0, ACP_LIMIT_JOBS);
}

TEST(K1_root_of_a_user_namespace_cannot_raise)
{
	CHECK_EQ(chmod(ACP_DEVICE, 0666), 0);
	on_machine("user_ranks", 2, root_raises_ranks);
	on_machine("depth", 128, root_raises_depth);
	on_machine("user_memory", 2000, root_raises_memory);
	on_machine("jobs", 1, root_raises_jobs);
}

/* ---- Memory of all users ---- */

static void set_memory(unsigned long kib)
{
	char text[24];

	snprintf(text, sizeof(text), "%lu", kib);
	CHECK(write_file("/sys/module/acp/parameters/memory", text));
}

/*
 * The smallest value of "memory" that allows 16 more pages for the rank; with less, it is rejected.
 */
static unsigned long min_memory(struct rank *r, void *p)
{
	unsigned long no = 0, yes = 1UL << 40, middle;
	struct memory m;

	while (no + 1 < yes) {
		middle = (no + yes) / 2;
		set_memory(middle);
		if (rank_register(r, &m, p, 16 * PAGE, ACP_ACCESS_ALL)) {
			over(r, p, 16 * PAGE, ACP_LIMIT_MEMORY);
			no = middle;
		} else {
			CHECK_EQ(rank_unregister(r, m.reg.key, NULL), 0);
			yes = middle;
		}
	}
	set_memory(1UL << 40);
	return yes;
}

/* Wait until the charges of earlier processes have been returned. */
static unsigned long settled_memory(struct rank *r, void *p)
{
	unsigned long now = min_memory(r, p), before;

	do {
		before = now;
		sleep_ms(500);
		now = min_memory(r, p);
	} while (now != before);
	return now;
}

static void hold_a_rank(int ready)
{
	struct setup s;
	struct rank r;

	become(USER);
	setup_local(&s, 0, 1);
	s.join.job += 1u << 22;
	rank_open(&r, &s);
	CHECK_EQ(write(ready, "", 1), 1);
	pause();
}

/* Another user has a rank. The result is killed by the caller. */
static pid_t start_other(void)
{
	int ready[2];
	pid_t child;
	char byte;

	CHECK_EQ(pipe(ready), 0);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		hold_a_rank(ready[1]);
		exit(0);
	}
	close(ready[1]);
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

static void all_users(void)
{
	char *p = pages(32 * PAGE, PROT_READ | PROT_WRITE);
	unsigned long alone, kib;
	struct memory m;
	struct setup s;
	struct rank r;
	pid_t child;

	new_namespace();
	setup_local(&s, 0, 1);
	kib = rank_kib(&s);
	limit_set("user_memory", 1UL << 40);
	rank_open(&r, &s);
	alone = settled_memory(&r, p);
	CHECK_EQ(rank_register(&r, &m, p + 16 * PAGE, 8 * PAGE, ACP_ACCESS_ALL), 0);
	CHECK_EQ(min_memory(&r, p), alone + 8 * PAGE / 1024);
	child = start_other();
	CHECK_EQ(min_memory(&r, p), alone + 8 * PAGE / 1024 + kib);
	set_memory(0);		/* below the current use, which is not affected */
	CHECK_EQ(rank_do_copy(&r, memory_ga(&m, 0), heap_ga(&r, 0), 8), ACP_ST_OK);
	rank_refused(2, 0, ACP_LIMIT_MEMORY);
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	CHECK_EQ(rank_unregister(&r, m.reg.key, NULL), 0);
	CHECK_EQ(settled_memory(&r, p), alone);
}

TEST(M4_memory_of_all_users_exactly_hit)
{
	unsigned long before = (unsigned long)parameter("memory");
	int status;

	CHECK(before > 0);
	CHECK_EQ(chmod(ACP_DEVICE, 0666), 0);
	status = child_status(all_users);
	set_memory(before);
	CHECK_EQ(status, 0);
}

/* By default most of the memory of the machine, but not all. */
TEST(M4_memory_leaves_room_for_the_kernel)
{
	unsigned long all = (unsigned long)sysconf(_SC_PHYS_PAGES) * (PAGE / 1024);

	CHECK((unsigned long)parameter("memory") <= all / 4 * 3);
	CHECK((unsigned long)parameter("memory") >= all / 2);
	CHECK(limit_get("user_memory") <= parameter("memory"));
}

/* ---- The switch, and the accepted values ---- */

TEST(K1_namespace_off_switch)
{
	int home = here(), a = new_namespace(), b = new_namespace();
	struct rank r[2];
	struct setup s;

	enter(a);
	setup_local(&s, 0, 2);
	rank_open(&r[0], &s);
	limit_set("enable", 0);
	CHECK_EQ(join(0, 1), -EOPNOTSUPP);
	rank_works(&r[0]);
	enter(b);
	close(join_well(0, 1));
	enter(home);
	CHECK_EQ(limit_get("enable"), 1);
	limit_set("enable", 0);
	CHECK_EQ(join(0, 1), -EOPNOTSUPP);
	enter(b);
	/* the module parameter is for all namespaces, this is not */
	close(join_well(1, 1));
	enter(home);
	limit_set("enable", 1);
	close(join_well(0, 1));
	enter(a);
	CHECK_EQ(join(0, 1), -EOPNOTSUPP);
	limit_set("enable", 1);
	setup_local(&s, 1, 2);
	rank_open(&r[1], &s);
	rank_works(&r[1]);
}

TEST(K1_sysctl_values_out_of_range)
{
	static const char *const bad[][2] = {
		{ "enable", "2" }, { "enable", "-1" }, { "enable", "yes" },
		{ "jobs", "1048577" }, { "jobs", "-1" },
		{ "user_jobs", "1048577" }, { "user_jobs", "many" },
		{ "user_ranks", "16777216" }, { "user_ranks", "-1" },
		{ "user_ranks", "99999999999999999999999" },
		{ "user_regions", "1073741825" }, { "user_regions", "-5" },
		{ "user_memory", "-1" }, { "user_memory", "9223372036854775807" },
		{ "user_memory", "18446744073709551616" },
		{ "depth", "63" }, { "depth", "0" }, { "depth", "65537" }, { "depth", "-64" },
		{ "job_peers", "-1" }, { "job_peers", "67108861" },
	};
	size_t i;

	new_namespace();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		long long before = limit_get(bad[i][0]);

		CHECK(before >= 0);
		if (limit_try(bad[i][0], bad[i][1]) != -EINVAL)
			FAIL("%s = %s: not refused", bad[i][0], bad[i][1]);
		CHECK_EQ(limit_get(bad[i][0]), before);
	}
	limit_set("user_ranks", ACP_RANKS_MAX);
	limit_set("depth", ACP_DEPTH_MIN);
	limit_set("depth", ACP_DEPTH_MAX);
	limit_set("user_memory", 1UL << 40);
	close(join_well(0, 0));
}
