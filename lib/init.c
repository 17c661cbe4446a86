// SPDX-License-Identifier: MIT
/*
 * A process becomes a rank of a job, meets the others, and leaves.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "boot.h"
#include "chan.h"
#include "libacp.h"

#define FOR_EVER	UINT64_MAX
#define MS		1000000ULL	/* ns */
#define GENERATION_MAX	65535
#define LEAVING_NS	(5000 * MS)	/* to join while ranks of another run leave */
#define LIMIT_NS	(2000 * MS)	/* ... while what they had still counts */
#define AGAIN_NS	10000000	/* between tries */
#define STRANGER_MS	1000		/* to stay in a job that cannot meet: others hear why */

struct libacp libacp = { .fd = -1 };

static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t barrier = PTHREAD_MUTEX_INITIALIZER;
static uint32_t generation;	/* of the next join; guarded by life */

/* ---- Messages ---- */

static void say(const char *format, va_list args)
{
	char line[600];
	int length;

	if (libacp.boot.nprocs > 1)
		length = snprintf(line, sizeof(line), "acp: rank %u: ", libacp.boot.rank);
	else
		length = snprintf(line, sizeof(line), "acp: ");
	vsnprintf(line + length, sizeof(line) - (size_t)length, format, args);
	fprintf(stderr, "%s\n", line);
}

void libacp_error(const char *format, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	errno = saved;
}

/* No exit handlers: other threads may be anywhere, and those handlers may want to communicate. */
static void __attribute__((noreturn)) end_process(void)
{
	fflush(stdout);
	_exit(255);
}

void libacp_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	if (libacp_in()) {
		ioctl(libacp.fd, ACP_IOC_ABORT);
		if (libacp.boot.engine)
			libacp_pmix_abort("acp: the job was aborted");
	}
	end_process();
}

void libacp_job_aborted(void)
{
	if (__atomic_load_n(&libacp.error_mode, __ATOMIC_RELAXED) == ACPX_ERRORS_RETURN)
		return;
	libacp_error("the job was aborted");
	end_process();
}

/* ---- Joining ---- */

static void explain_join_memory(void)
{
	const struct libacp_boot *boot = &libacp.boot;
	struct rlimit limit = { 0, 0 };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	libacp_error("no memory for starter (%llu bytes) and heap (%llu bytes): either is free memory scarce, or RLIMIT_MEMLOCK (%llu bytes) too low: raise it with ulimit -l or in limits.conf",
		     (unsigned long long)boot->starter_size, (unsigned long long)boot->heap_size,
		     (unsigned long long)limit.rlim_cur);
}

const char *libacp_limit_name(uint64_t limit)
{
	static const char *const names[ACP_LIMIT_END] = {
		[ACP_LIMIT_JOBS] = "net.acp.jobs (jobs on this node)",
		[ACP_LIMIT_USER_JOBS] = "net.acp.user_jobs (jobs of a user)",
		[ACP_LIMIT_USER_RANKS] = "net.acp.user_ranks (ranks of a user)",
		[ACP_LIMIT_USER_REGIONS] = "net.acp.user_regions (registered regions of a user)",
		[ACP_LIMIT_USER_MEMORY] = "net.acp.user_memory (KiB of a user)",
		[ACP_LIMIT_DEPTH] = "net.acp.depth (ACP_QUEUE_DEPTH)",
	};

	return limit < ACP_LIMIT_END && names[limit] ? names[limit] : "net.acp";
}

static void explain_join_refused(void)
{
	if (libacp.boot.integrity == ACP_INTEGRITY_AEAD)
		libacp_error("the module refuses this job: an administrator told it so (sysctl net.acp.enable, or the module's parameter), or the kernel lacks chacha20poly1305, which encryption (ACP_PRIVACY, ACP_INTEGRITY) needs");
	else
		libacp_error("the module refuses new ranks: an administrator told it so (sysctl net.acp.enable, or the module's parameter)");
}

static void explain_join(int error, uint32_t limit)
{
	const struct libacp_boot *boot = &libacp.boot;

	switch (error) {
	case ENOMEM:
		explain_join_memory();
		break;
	case EEXIST:
		libacp_error("job %u has this rank on this node already: another process has ACP_RANK=%u, or another job ACP_JOB=%u",
			     boot->job, boot->rank, boot->job);
		break;
	case ESTALE:
		libacp_error("rank %u of job %u has left, but other ranks of it are still on this node: end these first, or set another ACP_JOB",
			     boot->rank, boot->job);
		break;
	case EADDRNOTAVAIL:
		libacp_error("placed on node %u, but this machine (network namespace) lacks an address of that node: compare ACP_NODES and ACP_PLACEMENT with 'ip address'",
			     libacp_boot_node_of(boot, boot->rank));
		break;
	case EADDRINUSE:
		libacp_error("UDP port %u is taken by another program: set ACP_PORT on all ranks",
			     boot->port);
		break;
	case EACCES:
		libacp_error("job %u on this node belongs to another user or has another key: choose another ACP_JOB, or the same ACP_KEYFILE on all ranks",
			     boot->job);
		break;
	case EPROTO:
		libacp_error("the ranks of job %u on this node disagree: module version, ACP_NPROCS, ACP_NODES, ACP_PLACEMENT, ACP_PORT, ACP_INTEGRITY, ACP_PRIVACY and time-outs must be the same on all",
			     boot->job);
		break;
	case EAFNOSUPPORT:
		libacp_error("ACP_NODES has IPv6 addresses, but this kernel has no IPv6");
		break;
	case EOPNOTSUPP:
		explain_join_refused();
		break;
	case EDQUOT:
		libacp_error("the administrator's limit %s is reached: see 'sysctl net.acp'",
			     libacp_limit_name(limit));
		break;
	default:
		libacp_error("cannot join job %u as rank %u: %s", boot->job, boot->rank,
			     strerror(error));
	}
}

static int open_device(void)
{
	int fd = open(ACP_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno == EACCES || errno == EPERM)
		libacp_error("no permission to use " ACP_DEVICE ": an administrator grants it to a group (udev rule)");
	else if (errno == ENOENT || errno == ENXIO || errno == ENODEV)
		libacp_error("there is no " ACP_DEVICE ": load the module (insmod acp.ko)");
	else
		libacp_error("cannot open " ACP_DEVICE ": %s", strerror(errno));
	return -1;
}

/*
 * How long to try again after such an error: ranks of the last run may still be
 * leaving, or a child that one of them forked may just be about to close its
 * descriptor.
 */
static uint64_t patience(int error, uint32_t limit)
{
	if (error == EEXIST || error == ESTALE)
		return LEAVING_NS;
	if (error == EDQUOT && limit != ACP_LIMIT_DEPTH)
		return LIMIT_NS;
	return 0;
}

static int try_join(struct acp_join *join)
{
	const struct timespec pause = { 0, AGAIN_NS };
	const uint64_t begin = libacp_now();

	while (ioctl(libacp.fd, ACP_IOC_JOIN, join) < 0) {
		if (errno == EINTR)
			continue;
		if (libacp_now() - begin >= patience(errno, join->node))
			return -1;
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int join_job(uint32_t number, struct acp_join *join)
{
	const struct libacp_boot *boot = &libacp.boot;
	int result;

	*join = (struct acp_join){
		.size = sizeof(*join), .version = ACP_ABI_VERSION,
		.rank = boot->rank, .nprocs = boot->nprocs,
		.job = boot->job, .generation = number,
		.nodes = boot->nodes, .colors = boot->colors,
		.port = boot->port, .integrity = boot->integrity,
		.timeout_ms = boot->timeout_ms, .open_timeout_ms = boot->init_timeout_ms,
		.rank_runs = boot->rank_run_count, .node_runs = boot->node_run_count,
		.rank_run_ptr = (uintptr_t)boot->rank_runs,
		.node_run_ptr = (uintptr_t)boot->node_runs,
		.starter_size = boot->starter_size, .heap_size = boot->heap_size,
		.depth = boot->depth,
	};
	if (libacp_boot_key(boot, join->key) < 0)
		return -1;
	result = try_join(join);
	explicit_bzero(join->key, sizeof(join->key));
	if (result < 0)
		explain_join(errno, join->node);
	return result;
}

static int map_queues(const struct acp_join *join)
{
	int error = libacp_lane_open(&libacp_main, libacp.fd, libacp.boot.depth, 1, join->sq_bytes,
				     join->cq_bytes);

	if (error)
		libacp_error("cannot map the queues: %s", strerror(-error));
	return error;
}

void libacp_sleep(uint64_t ns)
{
	const struct timespec pause = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	nanosleep(&pause, NULL);
}

static bool several_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) > 1;
}

/*
 * The engine has seen a rank or a node fail, perhaps one that never came here.
 * Who looks at errors itself hears of ranks from the kernel, and may go on.
 * The descriptor stays open as long as this can be called.
 */
static void engine_saw_failure(void)
{
	if (__atomic_load_n(&libacp.error_mode, __ATOMIC_RELAXED) != ACPX_ERRORS_ABORT)
		return;
	libacp_error("the engine that started the job says that a rank or a node failed");
	ioctl(libacp.fd, ACP_IOC_ABORT);
}

static void leave(void)
{
	if (libacp.boot.engine)
		libacp_pmix_watch(NULL);
	libacp_middle_close();
	__atomic_store_n(&libacp.state, LIBACP_OUT, __ATOMIC_RELEASE);
	libacp_watch_close();
	libacp_gma_close();
	libacp_local_close();
	libacp_mem_close();
	libacp_contexts_close();
	libacp_lane_unmap(&libacp_main);
	if (libacp.fd >= 0)
		close(libacp.fd);
	libacp.fd = -1;
	libacp_chan_close();	/* nobody reaches their memory any more */
}

static void set_layout(void)
{
	struct acp_ga_layout l = acp_ga_layout(libacp.nprocs);

	libacp.layout = l;
	libacp.own = acp_ga_make(&l, libacp.rank, 0, 0, 0);
	libacp.offset_mask = (1ULL << l.offset_bits) - 1;
	libacp.stag_mask = (1u << l.stag_bits) - 1;
	libacp.rank_shift = 64u - l.rank_bits;
}

static int join(uint32_t number)
{
	struct acp_join join;
	int error;

	libacp.fd = open_device();
	if (libacp.fd < 0)
		return -1;
	if (join_job(number, &join) < 0 || map_queues(&join) < 0)
		goto leave;
	libacp.rank = libacp.boot.rank;
	libacp.nprocs = libacp.boot.nprocs;
	libacp.colors = libacp.boot.colors;
	libacp.node = join.node;
	set_layout();
	libacp.spin = several_cpus();
	error = libacp_mem_open();
	if (error) {
		libacp_error("cannot map starter and heap: %s", strerror(-error));
		goto leave;
	}
	error = libacp_gma_open();
	if (error) {
		libacp_error("cannot join: %s", strerror(-error));
		goto leave;
	}
	__atomic_store_n(&libacp.state, LIBACP_IN, __ATOMIC_RELEASE);
	error = libacp_middle_open();
	if (error) {
		libacp_error("cannot set up the heap: %s", strerror(-error));
		goto leave;
	}
	if (libacp.boot.engine)
		libacp_pmix_watch(engine_saw_failure);
	return 0;
leave:
	leave();
	return -1;
}

/*
 * A child of fork has none of the mappings and is nobody.  It closes its
 * descriptor, so that the rank does not outlive its own process.
 */
static void forget_in_child(void)
{
	if (!libacp_in())
		return;
	__atomic_store_n(&libacp.state, LIBACP_FORKED, __ATOMIC_RELEASE);
	libacp_contexts_forget();
	close(libacp.fd);
	libacp.fd = -1;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_in_child);
}

/* ---- The barrier ---- */

static int wait_for_all(struct acp_sync *sync)
{
	int error;

	pthread_mutex_lock(&barrier);
	do {
		error = ioctl(libacp.fd, ACP_IOC_SYNC, sync) < 0 ? errno : 0;
	} while (error == EINTR);
	pthread_mutex_unlock(&barrier);
	return -error;
}

int libacp_barrier(uint32_t flags, uint64_t timeout_ns)
{
	struct acp_sync sync = {
		.size = sizeof(sync), .flags = flags, .timeout_ns = timeout_ns,
	};

	return wait_for_all(&sync);
}

static int meet(uint32_t flags)
{
	int error = libacp_barrier(flags, FOR_EVER);

	if (error == -ECANCELED)
		libacp_job_aborted();
	errno = -error;
	return error ? -1 : 0;
}

/*
 * As long as a rank is there, its node answers to those that differ, and its
 * ranks that join only now hear of it, too.
 */
static void explain_stranger(uint32_t node)
{
	const uint32_t ms = libacp.boot.init_timeout_ms < STRANGER_MS ?
			    libacp.boot.init_timeout_ms : STRANGER_MS;
	const struct timespec pause = { ms / 1000, (long)(ms % 1000) * 1000000 };

	libacp_error("the nodes disagree about the job: node %u has another number of ranks, placement, addresses or integrity than this one (%u ranks on %u nodes): ACP_NPROCS, ACP_NODES, ACP_PLACEMENT, ACP_INTEGRITY and ACP_PRIVACY must be the same on all",
		     node, libacp.nprocs, libacp.boot.nodes);
	nanosleep(&pause, NULL);
}

static int meet_first(void)
{
	struct acp_sync sync = {
		.size = sizeof(sync), .timeout_ns = libacp.boot.init_timeout_ms * MS,
	};
	int error = wait_for_all(&sync);

	if (error == -ETIMEDOUT)
		libacp_error("not all %u ranks came within %u ms (ACP_INIT_TIMEOUT): are they all started, and is UDP port %u open between the nodes?",
			     libacp.nprocs, libacp.boot.init_timeout_ms, libacp.boot.port);
	else if (error == -EPROTO)
		explain_stranger(sync.node);
	else if (error == -EPIPE)
		libacp_error("a rank left before all %u had met", libacp.nprocs);
	else if (error)
		libacp_error("the ranks cannot meet: %s", strerror(-error));
	errno = -error;
	return error ? -1 : 0;
}

/* ---- The public functions ---- */

/* Become the rank that libacp.boot says, with the others.  On failure boot is gone. */
static int join_and_meet(void)
{
	if (join(generation) < 0)
		goto free;
	if (meet_first() < 0)
		goto leave;
	libacp_parts_done();
	generation++;
	return 0;
leave:
	leave();
free:
	libacp_boot_free(&libacp.boot);
	return -1;
}

static int enter(int *argc, char ***argv)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (__atomic_load_n(&libacp.state, __ATOMIC_ACQUIRE) != LIBACP_OUT) {
		libacp_error(libacp_in() ? "acp_init was called twice"
					 : "acp_init in a forked child of a rank");
		return -1;
	}
	if (generation > GENERATION_MAX) {
		libacp_error("acp_init: too often in one process");
		return -1;
	}
	pthread_once(&once, watch_forks);
	if (libacp_boot_load(&libacp.boot, argc, argv) < 0) {
		libacp_boot_free(&libacp.boot);
		return -1;
	}
	return join_and_meet();
}

int acp_init(int *argc, char ***argv)
{
	int result;

	pthread_mutex_lock(&life);
	result = enter(argc, argv);
	pthread_mutex_unlock(&life);
	return result;
}

int acp_finalize(void)
{
	int result = -1;

	if (!libacp_in())
		return -1;
	pthread_mutex_lock(&life);
	if (libacp_in()) {
		libacp_contexts_complete();
		libacp_meet_settle();
		acp_complete(ACP_HANDLE_ALL);
		result = meet(ACP_SYNC_FINAL);
		leave();
		libacp_boot_free(&libacp.boot);
	}
	pthread_mutex_unlock(&life);
	return result;
}

int acp_reset(int rank)
{
	struct libacp_lane *bound;
	int result = -1;

	if (!libacp_in())
		return -1;
	pthread_mutex_lock(&life);
	if (libacp_in()) {
		bound = libacp_contexts_complete();
		acp_complete(ACP_HANDLE_ALL);
		result = libacp_reset_agree(generation <= GENERATION_MAX ? rank : -1);
		if (result == -ECANCELED)
			libacp_job_aborted();
		if (result == 0) {
			leave();
			result = join_and_meet();
		} else {
			/* All goes on as before. */
			libacp_lane_bind(bound);
			result = -1;
		}
	}
	pthread_mutex_unlock(&life);
	return result;
}

void acp_abort(const char *str)
{
	const char *text = str ? str : "";

	if (libacp_in()) {
		fprintf(stderr, "acp_abort: rank %u: %s\n", libacp.rank, text);
		ioctl(libacp.fd, ACP_IOC_ABORT);
		if (libacp.boot.engine)
			libacp_pmix_abort(text);
	} else {
		fprintf(stderr, "acp_abort: %s\n", text);
	}
	end_process();
}

int acp_sync(void)
{
	return libacp_in() ? meet(0) : -1;
}

int acp_rank(void)
{
	return libacp_in() ? (int)libacp.rank : -1;
}

int acp_procs(void)
{
	return libacp_in() ? (int)libacp.nprocs : -1;
}

int acp_colors(void)
{
	return libacp_in() ? (int)libacp.colors : -1;
}

int acpx_set_error_mode(int mode)
{
	if (mode != ACPX_ERRORS_ABORT && mode != ACPX_ERRORS_RETURN)
		return -1;
	return __atomic_exchange_n(&libacp.error_mode, mode, __ATOMIC_RELAXED);
}
