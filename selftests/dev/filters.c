// SPDX-License-Identifier: MIT
/*
 * S7: a seccomp filter answers each system call of the library with an error or with 0, either from
 * the start or once the process is a rank: the program works, or ends with a specific error.
 */
#include "isolated.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "acp.h"

#define LONG		20000u
#define REFUSED		3		/* exit status: a library call returned an error */
#define WRONG		4		/* exit status: unexpected result */
#define TEXT		4000u
#define WORKERS		4		/* runs at a time: some wait in acp_init() */

static const struct call {
	const char *name;
	long number;
	/* if @argument is not negative: match if any of these bits is set */
	long argument, bits;
} calls[] = {
#define CALL(name)	{ #name, SYS_##name, -1, 0 }
	CALL(fdatasync), CALL(fsync), CALL(ioctl), CALL(openat), CALL(close), CALL(munmap),
	CALL(read), CALL(fstat), CALL(newfstatat), CALL(getrandom), CALL(clock_nanosleep),
	CALL(nanosleep), CALL(sched_yield), CALL(sched_getaffinity), CALL(prlimit64),
	CALL(futex), CALL(socket), CALL(connect), CALL(getsockname), CALL(madvise),
	CALL(mprotect), CALL(getpid), CALL(geteuid), CALL(uname), CALL(link), CALL(unlink),
	CALL(poll), CALL(ppoll), CALL(membarrier), CALL(sysinfo), CALL(clock_gettime),
	CALL(rt_sigprocmask), CALL(gettid), CALL(sched_setaffinity), CALL(prctl),
	CALL(mincore), CALL(access), CALL(faccessat), CALL(faccessat2), CALL(statfs),
	CALL(write), CALL(bind), CALL(sendto), CALL(recvmsg), CALL(recvfrom),
	{ "mmap", SYS_mmap, 3, 1 /* MAP_SHARED: the C library needs private mappings */ },
};

#define CALLS	(sizeof(calls) / sizeof(calls[0]))

/* Let the filter return @error: -errno, or 0. */
static void install(const struct call *c, int error)
{
	const __u32 offset = c->argument < 0 ? (__u32)offsetof(struct seccomp_data, nr) :
		(__u32)(offsetof(struct seccomp_data, args) + 8 * (size_t)c->argument);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (__u32)c->number, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, c->argument < 0 ? ~0u : (__u32)c->bits, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (__u32)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	/* read() has number 0, so no bit is set. */
	if (c->argument < 0 && !c->number)
		code[3] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
						       SECCOMP_RET_ERRNO | (__u32)error);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		_exit(WRONG);
}

/* ---- The work of a rank ---- */

static void refused(const char *what)
{
	fprintf(stderr, "acp: refused: %s: %s\n", what, strerror(errno));
	_exit(REFUSED);
}

static void wrong(const char *what)
{
	fprintf(stderr, "wrong: %s\n", what);
	_exit(WRONG);
}

/* Only poll for completion: the doorbell must have had its effect. */
static void poll_for(acp_handle_t handle)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	if (handle == (acp_handle_t)ACP_HANDLE_NULL)
		refused("acp_copy");
	while (acp_inquire(handle))
		if (patience_over(&p))
			wrong("never complete");
	if (acpx_status(handle))
		refused(acpx_strerror(acpx_status(handle)));
}

static char buffer[LONG] __attribute__((aligned(4096)));

/* The starter memory of a rank: a word for its registered memory, a line for copies. */
static void accesses(int me)
{
	acp_atkey_t key = acp_register_memory(buffer, sizeof(buffer), 0);
	char *starter = acp_query_address(acp_query_starter_ga(me));
	acp_ga_t own = acp_query_starter_ga(me), other = acp_query_starter_ga(1 - me), there;
	acp_handle_t h;
	int i;

	if (key == ACP_ATKEY_NULL)
		refused("acp_register_memory");
	*(acp_ga_t *)(void *)starter = acp_query_ga(key, buffer);
	if (acp_sync())
		refused("acp_sync");
	for (i = 0; me == 0 && i < 3; i++) {
		acp_complete(acp_copy(own + 8, other, 8, ACP_HANDLE_NULL));
		there = *(acp_ga_t *)(void *)(starter + 8);
		memset(starter + 64, 'a' + i, 64);
		h = acp_copy(there + 4096 * (uint64_t)i, own + 64, 64, ACP_HANDLE_NULL);
		if (i)
			acp_complete(h);
		poll_for(h);
		h = acp_copy(own + 128, there + 4096 * (uint64_t)i, 64, ACP_HANDLE_NULL);
		acp_complete(h);
		poll_for(h);
		if (memcmp(starter + 64, starter + 128, 64))
			wrong("bytes are not there");
	}
	if (acp_sync())
		refused("acp_sync");
	if (me == 1 && (buffer[0] != 'a' || buffer[4096] != 'b' || buffer[8192] != 'c'))
		wrong("met before the bytes were there");
	if (acp_unregister_memory(key))
		refused("acp_unregister_memory");
}

static void heaps(void)
{
	acp_ga_t ga = acp_malloc(100, 1);

	if (ga == ACP_GA_NULL)
		refused("acp_malloc");
	acp_free(ga);
}

static void messages(int me)
{
	acp_ch_t ch = acp_create_ch(0, 1);
	size_t sizes[] = { 10, LONG }, i, n;

	if (!ch)
		refused("acp_create_ch");
	for (i = 0; i < 2; i++) {
		memset(buffer, me ? 0 : 'x' + (int)i, LONG);
		n = acp_wait_ch(me ? acp_nbrecv_ch(ch, buffer, LONG) :
				     acp_nbsend_ch(ch, buffer, sizes[i]));
		if (n == (size_t)-1)
			refused("channel");
		if (me && (n != sizes[i] || buffer[n - 1] != 'x' + (int)i))
			wrong("message");
	}
	if (acp_free_ch(ch))
		refused("acp_free_ch");
}

static void others(void)
{
	acpx_context_t context;
	struct acpx_event e;

	if (acpx_peer_state(1) < 0)
		refused("acpx_peer_state");
	if (acpx_next_event(&e) < 0)
		refused("acpx_next_event");
	if (acpx_context_create(0, &context))
		refused("acpx_context_create");
	acpx_context_destroy(context);
}

static void rank(int me, const struct call *c, int error, bool late)
{
	setenv("ACP_RANK", me ? "1" : "0", 1);
	if (!late)
		install(c, error);
	if (acp_init(NULL, NULL))
		refused("acp_init");
	if (late)
		install(c, error);
	accesses(me);
	heaps();
	messages(me);
	others();
	if (acp_finalize())
		refused("acp_finalize");
	_exit(0);
}

/* ---- Runs ---- */

static pid_t start(int me, int fd, const struct call *c, int error, bool late)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	dup2(fd, 1);
	dup2(fd, 2);
	if (me) {			/* its calls are not filtered */
		static const struct call none = { "none", 1000000, -1, 0 };

		c = &none;
	}
	rank(me, c, error, late);
	_exit(0);
}

/* Read the output of a rank until it closes the pipe. False on timeout. */
static bool listen_to(int fd, char *text)
{
	size_t at = 0;
	ssize_t n = 1;

	while (n > 0) {
		if (!patience_poll(fd, POLLIN, PATIENCE_SOON))
			return false;
		n = read(fd, text + at, TEXT - 1 - at);
		at += n > 0 ? (size_t)n : 0;
		if (at == TEXT - 1)
			at = 0;
		text[at] = 0;
	}
	return true;
}

/*
 * True if it succeeded, or exited with a message. Without futex(2) the C library prints that
 * message.
 */
static bool is_named(int status, const char *text)
{
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGABRT && strstr(text, "The futex facility");
	return !WEXITSTATUS(status) || (WEXITSTATUS(status) != WRONG && strstr(text, "acp:"));
}

static void run(const struct call *c, int error, bool late)
{
	static char text[TEXT];
	int fds[2], status, other;
	pid_t pids[2];
	bool ended;

	text[0] = 0;
	CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
	other = open("/dev/null", O_WRONLY | O_CLOEXEC);
	pids[1] = start(1, other, c, error, late);
	pids[0] = start(0, fds[1], c, error, late);
	close(fds[1]);
	close(other);
	ended = listen_to(fds[0], text);
	close(fds[0]);
	kill(pids[0], ended ? 0 : SIGKILL);
	CHECK_EQ(waitpid(pids[0], &status, 0), pids[0]);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		kill(pids[1], SIGKILL);
	CHECK_EQ(waitpid(pids[1], &other, 0), pids[1]);
	if (!ended || !is_named(status, text))
		FAIL("%s answered %d %s: %s status 0x%x: %.300s", c->name, -error,
		     late ? "of a rank" : "from the start", ended ? "" : "hangs,", status, text);
	if (!status && other)
		FAIL("%s answered %d: the other rank: status 0x%x", c->name, -error, other);
	printf("# %s %d %s: %s\n", c->name, -error, late ? "late" : "early",
	       status ? "named error" : "works");
}

/* A run that is to be done. */
struct todo {
	const struct call *call;
	int error;
	bool late;
};

/* Do every run that nobody else does; each worker has jobs of another number. */
static void worker(const struct todo *runs, unsigned int count, unsigned int *next, int number)
{
	char job[12];
	unsigned int i;

	snprintf(job, sizeof(job), "%d", 1 + number);
	setenv("ACP_JOB", job, 1);
	while ((i = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED)) < count)
		run(runs[i].call, runs[i].error, runs[i].late);
	exit(0);
}

static void run_all(const struct todo *runs, unsigned int count)
{
	unsigned int *next = mmap(NULL, sizeof(*next), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[WORKERS];
	int i, status;

	CHECK(next != MAP_FAILED);
	fflush(stdout);
	for (i = 0; i < WORKERS; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (!pids[i])
			worker(runs, count, next, i);
	}
	for (i = 0; i < WORKERS; i++) {
		CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
		CHECK_EQ(status, 0);
	}
	CHECK_EQ(*next, count + WORKERS);
	munmap(next, sizeof(*next));
}

static void set_up(void)
{
	setenv("ACP_NPROCS", "2", 1);
	setenv("ACP_NODES", "127.0.0.1", 1);
	setenv("ACP_INSECURE", "1", 1);
	setenv("ACP_INIT_TIMEOUT", "5000", 1);
}

static void every_call(int error)
{
	struct todo runs[2 * CALLS];
	unsigned int i;

	set_up();
	for (i = 0; i < CALLS; i++) {
		runs[2 * i] = (struct todo){ &calls[i], error, false };
		runs[2 * i + 1] = (struct todo){ &calls[i], error, true };
	}
	run_all(runs, 2 * CALLS);
}

TEST(S7_calls_answered_EPERM)
{
	every_call(EPERM);
}

TEST(S7_calls_answered_ENOSYS)
{
	every_call(ENOSYS);
}

TEST(S7_calls_answered_0)
{
	every_call(0);
}

/* With two colors there is more to ask of the network: each address, and the card it leaves by. */
TEST(S7_calls_of_two_colors_answered_EPERM_or_0)
{
	static const long asked[] = { SYS_socket, SYS_bind, SYS_connect, SYS_getsockname,
				      SYS_ioctl, SYS_sendto, SYS_recvmsg, SYS_recvfrom };
	struct todo runs[2 * sizeof(asked) / sizeof(asked[0])];
	unsigned int count = 0;
	size_t i, k;

	set_up();
	setenv("ACP_NODES", "127.0.0.1,127.0.0.2", 1);
	for (i = 0; i < CALLS; i++) {
		for (k = 0; k < sizeof(asked) / sizeof(asked[0]); k++) {
			if (calls[i].number != asked[k])
				continue;
			runs[count++] = (struct todo){ &calls[i], EPERM, false };
			runs[count++] = (struct todo){ &calls[i], 0, false };
		}
	}
	CHECK_EQ(count, sizeof(runs) / sizeof(runs[0]));
	run_all(runs, count);
}

/* fdatasync() may be suppressed: SuppressSync= of systemd, some containers. */
TEST(S7_the_doorbell_needs_no_fdatasync)
{
	int error;

	set_up();
	for (error = 0; error <= ENOSYS; error += ENOSYS) {
		run(&calls[0], error, false);
		run(&calls[0], error, true);
	}
}
