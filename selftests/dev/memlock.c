// SPDX-License-Identifier: MIT
/* selftest: leaks */
/*
 * M4: RLIMIT_MEMLOCK limits the memory that all processes of a user have locked together, however
 * they fork and whatever namespaces they create; and all of it is uncharged, however a process
 * ends.
 */
#include "isolated.h"

#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "rank.h"

#define USER	1002	/* no other test has processes of these users */
#define OTHER	1003
#define RANK	3	/* pages of a rank: starter memory, heap, the library's page */
#define ROOM	32	/* pages left for regions */
#define TURNS	(test_short() ? 5 : 20)

static int ready[2];	/* children signal the test with a byte */

static void become(uid_t uid)
{
	CHECK_EQ(setresuid(uid, uid, uid), 0);
}

/* Set the limit to @n pages; a user may only lower it. */
static void lock_at_most(unsigned long n)
{
	struct rlimit limit;

	CHECK_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	limit.rlim_cur = n * PAGE;
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

static void begin(void)
{
	CHECK_EQ(chmod(ACP_DEVICE, 0666), 0);
	CHECK_EQ(pipe(ready), 0);
}

static void tell(void)
{
	CHECK_EQ(write(ready[1], "", 1), 1);
}

static void hear(void)
{
	char byte;

	/* With a timeout: a child that has failed writes nothing. */
	CHECK(patience_poll(ready[0], POLLIN, PATIENCE_WORK));
	CHECK_EQ(read(ready[0], &byte, 1), 1);
}

/* A job of its own for each process. */
static void bare(struct setup *s)
{
	setup_local(s, 0, 1);
	s->join.job = (uint32_t)getpid() + (1u << 22);
	s->join.starter_size = PAGE;
	s->join.heap_size = PAGE;
}

static void open_bare(struct rank *r)
{
	struct setup s;

	bare(&s);
	rank_open(r, &s);
}

static int try_pages(struct rank *r, struct memory *m, unsigned long n)
{
	return rank_register(r, m, pages(n * PAGE, PROT_READ | PROT_WRITE), n * PAGE,
			     ACP_ACCESS_ALL);
}

/* The limit is reached, and reported as such. */
static void refused(struct rank *r, unsigned long n)
{
	long long before = counter("limit_memlock");
	struct memory m;

	CHECK_EQ(try_pages(r, &m, n), -ENOMEM);
	CHECK_EQ(m.reg.limit, ACP_LIMIT_MEMLOCK);
	CHECK_EQ(m.reg.key, 0);
	CHECK(counter("limit_memlock") > before);
}

/* Exactly @n pages are left to the user. */
static void room_is(struct rank *r, unsigned long n)
{
	struct memory m;

	refused(r, n + 1);
	CHECK_EQ(try_pages(r, &m, n), 0);
	CHECK_EQ(rank_unregister(r, m.reg.key, NULL), 0);
}

/* The charge of a process that has ended is returned a moment later. */
static void room_becomes(struct rank *r, unsigned long n)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	struct memory m;
	int error;

	while ((error = try_pages(r, &m, n)) == -ENOMEM && !patience_over(&p))
		sleep_ms(10);
	CHECK_EQ(error, 0);
	CHECK_EQ(rank_unregister(r, m.reg.key, NULL), 0);
	room_is(r, n);
}

static pid_t start(void (*run)(void))
{
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		run();
		exit(0);
	}
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, NULL, 0), child);
}

static void take_all(void)
{
	struct memory m;
	struct rank r;

	open_bare(&r);
	CHECK_EQ(try_pages(&r, &m, ROOM), 0);
	tell();
	pause();
}

static void children_share(void)
{
	struct setup s;
	struct rank r;
	pid_t child;

	become(USER);
	lock_at_most(2 * RANK + ROOM);
	child = start(take_all);
	hear();
	open_bare(&r);
	refused(&r, 1);
	refused(&r, ROOM);
	/* A third process cannot even join. */
	bare(&s);
	s.join.job += 1u << 23;
	CHECK_EQ(setup_join(&s), -ENOMEM);
	CHECK_EQ(s.join.limit, ACP_LIMIT_MEMLOCK);
	CHECK_EQ(status_kib("VmPin"), RANK * PAGE / 1024);
	end(child);
	room_becomes(&r, RANK + ROOM);
}

TEST(M4_memlock_is_not_multiplied_by_fork)
{
	begin();
	in_child(children_share);
}

/* One job fits, so a job left behind by a rejected join would be noticed. */
static void refused_joins(void)
{
	struct setup s;
	int i;

	CHECK_EQ(unshare(CLONE_NEWNET), 0);
	CHECK_EQ(system("ip link set lo up"), 0);
	limit_set("jobs", 1);
	drop_capability(CAP_IPC_LOCK);
	for (i = 0; i < TURNS; i++) {
		lock_at_most(RANK - 1);
		bare(&s);
		s.join.job += 1u << 23;
		CHECK_EQ(setup_join(&s), -ENOMEM);
		CHECK_EQ(s.join.limit, ACP_LIMIT_MEMLOCK);
		CHECK_EQ(status_kib("VmPin"), 0);
	}
	lock_at_most(RANK);
	bare(&s);
	CHECK(setup_join(&s) >= 0);
	CHECK_EQ(status_kib("VmPin"), RANK * PAGE / 1024);
}

TEST(M4_memlock_refuses_before_a_job_is_made)
{
	begin();
	in_child(refused_joins);
}

/* ---- Ends of a process ---- */

static void finish(void)
{
	struct memory m;
	struct rank r;

	open_bare(&r);
	CHECK_EQ(try_pages(&r, &m, ROOM), 0);
	tell();
}

static void execute(void)
{
	struct memory m;
	struct rank r;

	open_bare(&r);
	CHECK_EQ(try_pages(&r, &m, ROOM), 0);
	tell();
	execl("/bin/sleep", "sleep", "1000", NULL);
}

static void give_back(void)
{
	void (*const ways[])(void) = { take_all, finish, execute };
	struct rank r;
	int i;

	become(USER);
	lock_at_most(2 * RANK + ROOM);
	open_bare(&r);
	for (i = 0; i < 3 * TURNS; i++) {
		pid_t child = start(ways[i % 3]);

		hear();
		if (ways[i % 3] == take_all) {
			refused(&r, 1);
			end(child);
		}
		room_becomes(&r, RANK + ROOM);
		if (ways[i % 3] != take_all)
			end(child);
	}
}

TEST(M4_memlock_comes_back_however_a_process_ends)
{
	begin();
	in_child(give_back);
}

/* Without privileges, except that it can switch back. */
static void switch_to(uid_t uid)
{
	CHECK_EQ(setresuid((uid_t)-1, 0, (uid_t)-1), 0);
	CHECK_EQ(setresuid(uid, uid, 0), 0);
}

/* It is uncharged from the user who was charged. */
static void change_user(void)
{
	struct memory m;
	struct rank r;
	int i;

	switch_to(USER);
	lock_at_most(2 * RANK + ROOM);
	open_bare(&r);
	for (i = 0; i < TURNS; i++) {
		CHECK_EQ(try_pages(&r, &m, RANK + ROOM), 0);
		switch_to(OTHER);
		CHECK_EQ(rank_unregister(&r, m.reg.key, NULL), 0);
		switch_to(USER);
		room_is(&r, RANK + ROOM);
	}
	CHECK_EQ(try_pages(&r, &m, ROOM), 0);
	switch_to(OTHER);
	rank_close(&r);
}

static void all_is_there(void)
{
	struct rank r;

	lock_at_most(RANK + ROOM);
	open_bare(&r);
	room_becomes(&r, ROOM);
}

static void user_has_all(void)
{
	become(USER);
	all_is_there();
}

static void other_has_all(void)
{
	become(OTHER);
	all_is_there();
}

TEST(M4_memlock_comes_back_after_setuid)
{
	begin();
	in_child(change_user);
	in_child(user_has_all);
	in_child(other_has_all);
}

/* ---- User namespaces ---- */

static void join_is_refused(void)
{
	struct setup s;

	bare(&s);
	CHECK_EQ(setup_join(&s), -ENOMEM);
	CHECK_EQ(s.join.limit, ACP_LIMIT_MEMLOCK);
}

static int mapped[2];

/* Root in a namespace with all its capabilities; then as users with other ids. */
static void work_in_namespace(void)
{
	char byte;
	int i;

	become(USER);
	lock_at_most(RANK + ROOM);
	CHECK_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
	if (unshare(CLONE_NEWUSER))
		SKIP("no user namespaces: %s", strerror(errno));
	tell();
	CHECK_EQ(read(mapped[0], &byte, 1), 1);
	CHECK_EQ(setresuid(0, 0, 0), 0);
	join_is_refused();
	for (i = 1; i < 4; i++) {
		CHECK_EQ(setresuid((uid_t)i, (uid_t)i, 0), 0);
		join_is_refused();
		CHECK_EQ(setresuid(0, 0, 0), 0);
	}
}

static void take_all_as_user(void)
{
	become(USER);
	lock_at_most(RANK + ROOM);
	take_all();
}

TEST(M4_memlock_of_a_user_namespace_is_its_owners)
{
	char path[40];
	int status;
	pid_t holder, child;

	begin();
	CHECK_EQ(pipe(mapped), 0);
	holder = start(take_all_as_user);
	hear();
	child = start(work_in_namespace);
	hear();
	snprintf(path, sizeof(path), "/proc/%d/uid_map", child);
	CHECK(write_file(path, "0 1002 1\n1 200001 10\n"));
	CHECK_EQ(write(mapped[1], "", 1), 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	end(holder);
	in_child(user_has_all);
}

/* ---- Processes without a limit ---- */

static void root_takes(void)
{
	struct memory m;
	struct rank r;

	lock_at_most(0);
	open_bare(&r);
	CHECK_EQ(try_pages(&r, &m, 4 * ROOM), 0);
	CHECK_EQ(status_kib("VmPin"), (RANK + 4 * ROOM) * PAGE / 1024);
	tell();
	pause();
}

/* Memory locked with CAP_IPC_LOCK does not reduce the limit of a container of the same user. */
TEST(M4_memlock_of_root_is_no_others)
{
	pid_t child;

	begin();
	child = start(root_takes);
	hear();
	drop_capability(CAP_IPC_LOCK);
	in_child(all_is_there);
	end(child);
	in_child(all_is_there);
}

/* ---- Concurrency ---- */

#define FORKS	4
#define THREADS	3

static struct shared {
	int here, done, more;	/* number of processes; pages that all have got */
} *shared;

static struct rank busy;

/* Register page by page until the limit is reached. */
static void *grab(void *unused)
{
	struct memory m;
	int error;

	while (!(error = try_pages(&busy, &m, 1)))
		__atomic_add_fetch(&shared->more, 1, __ATOMIC_SEQ_CST);
	CHECK_EQ(error, -ENOMEM);
	return unused;
}

static void rendezvous(int *count)
{
	__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(count, __ATOMIC_SEQ_CST) < FORKS)
		sched_yield();
}

static void grab_all(void)
{
	pthread_t threads[THREADS];
	int i;

	open_bare(&busy);
	rendezvous(&shared->here);
	for (i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, grab, NULL), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	rendezvous(&shared->done);
}

static void race(void)
{
	pid_t child[FORKS];
	int turn, i, status;

	become(USER);
	lock_at_most(FORKS * RANK + ROOM);
	for (turn = 0; turn < TURNS; turn++) {
		*shared = (struct shared){ 0 };
		for (i = 0; i < FORKS; i++)
			child[i] = start(grab_all);
		for (i = 0; i < FORKS; i++) {
			CHECK_EQ(waitpid(child[i], &status, 0), child[i]);
			CHECK_EQ(status, 0);
		}
		CHECK_EQ(shared->more, ROOM);
	}
}

TEST(M4_memlock_is_exact_when_many_register_at_once)
{
	begin();
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	in_child(race);
}
