// SPDX-License-Identifier: MIT
/* Joining a job as a rank, the first barrier, and leaving. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"
#include "boot/boot.h"
#include "boot/device.h"
#include "boot/missing.h"
#include "boot/renumber.h"
#include "channel/chan.h"
#include "coll/close.h"
#include "coll/pool.h"
#include "core/barrier.h"
#include "core/context.h"
#include "core/failure.h"
#include "core/internal.h"
#include "core/job.h"
#include "core/limits.h"
#include "core/local.h"
#include "core/mem.h"
#include "core/parameters.h"
#include "core/process.h"
#include "core/queue.h"
#include "core/wait_until.h"
#include "heap/heap.h"
#include "middle/scratch.h"
#include "middle/txlock.h"

#define MS		1000000ULL	/* ns */
#define GENERATION_MAX	65535
/* for how long to retry while ranks of a previous run leave */
#define LEAVING_NS	(5000 * MS)
#define LIMIT_NS	(2000 * MS)	/* ... while their resources are still charged */
#define AGAIN_NS	10000000	/* interval of retries */
/* time to stay in a job that cannot begin, so that other ranks learn the cause */
#define LINGER_MS	1000

static pthread_mutex_t membership = PTHREAD_MUTEX_INITIALIZER;
static uint32_t generation;	/* number of the next join; guarded by membership */

/* ---- Joining ---- */

static uint64_t whole_pages(uint64_t bytes)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* Return the bytes that a rank locks when it joins: starter memory, heap, library page. */
static uint64_t join_bytes(void)
{
	return whole_pages(libacp.boot.starter_size) + whole_pages(libacp.boot.heap_size) +
	       whole_pages(1);
}

/* Return the sum for all ranks that are placed on this node, if they are like this one. */
static uint64_t node_bytes(void)
{
	const struct libacp_boot *boot = &libacp.boot;
	const uint32_t node = libacp_boot_node_of(boot, boot->rank);
	uint32_t i, ranks = 0;

	for (i = 0; i < boot->nprocs; i++)
		ranks += libacp_boot_node_of(boot, i) == node;
	return ranks * join_bytes();
}

static void explain_join_memory(uint32_t limit)
{
	const struct libacp_boot *boot = &libacp.boot;
	char text[LIBACP_MEMLOCK_TEXT];

	if (limit == ACP_LIMIT_MEMLOCK)
		libacp_memlock_text(join_bytes(), node_bytes(), text);
	else
		libacp_memory_text(join_bytes(), text);
	libacp_error("no memory for the starter memory (ACP_STARTER_SIZE, %llu bytes) and the heap (ACP_HEAP_SIZE, %llu bytes): %s",
		     (unsigned long long)boot->starter_size, (unsigned long long)boot->heap_size,
		     text);
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
		explain_join_memory(limit);
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
		libacp_addresses_explain(boot, libacp_boot_node_of(boot, boot->rank));
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
	case EPERM:
		libacp_error("this process may have no UDP socket: a security module, or a BPF program of its control group, forbids it");
		break;
	case EDQUOT:
		libacp_error("the administrator's limit %s is reached: see '%s'",
			     libacp_limit_name(limit), libacp_limit_place(limit));
		break;
	default:
		libacp_error("cannot join job %u as rank %u: %s", boot->job, boot->rank,
			     strerror(error));
	}
}

/*
 * Return for how long to retry after an error, at most until acp_init() gives up. Ranks of the
 * previous run may still be leaving, a child that one of them forked may not have closed its
 * descriptor yet, or duplicate address detection may be running.
 */
static uint64_t patience(int error, uint32_t limit)
{
	const struct libacp_boot *boot = &libacp.boot;

	if (error == EADDRNOTAVAIL &&
	    libacp_addresses_settle(boot, libacp_boot_node_of(boot, boot->rank)))
		return UINT64_MAX;
	if (error == EEXIST || error == ESTALE)
		return LEAVING_NS;
	if (error == EDQUOT && limit != ACP_LIMIT_DEPTH)
		return LIMIT_NS;
	if (error == ENOMEM && limit == ACP_LIMIT_MEMLOCK && join_bytes() <= libacp_memlock())
		return LIMIT_NS;
	return 0;
}

static int try_join(struct acp_join *join)
{
	const struct timespec pause = { 0, AGAIN_NS };
	const uint64_t begin = libacp_now();
	bool over = false;
	int error;

	for (join->limit = 0; ioctl(libacp.fd, ACP_IOC_JOIN, join) < 0; join->limit = 0) {
		error = errno;
		if (error == EINTR && libacp_left(libacp.boot.init_end))
			continue;
		if (libacp_left(libacp.boot.init_end) &&
		    libacp_now() - begin < patience(error, join->limit)) {
			over = false;
		} else if (error == EADDRNOTAVAIL && !over) {
			/*
			 * The address may have become usable between the call and the check: try
			 * once more.
			 */
			over = true;
		} else {
			errno = error;
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* Warn of colors that share a device, once per node. */
static void check_colors(const struct libacp_boot *boot, uint32_t node)
{
	if (boot->rank == 0 || libacp_boot_node_of(boot, boot->rank - 1) != node)
		libacp_addresses_shared(boot, node);
}

static int join_job(uint32_t number, struct acp_join *join)
{
	const struct libacp_boot *boot = &libacp.boot;
	const uint32_t node = libacp_boot_node_of(boot, boot->rank);
	struct acp_node_run *runs;
	int result;

	if (libacp_addresses_check(boot, node) < 0)
		return -1;
	runs = libacp_addresses_scoped(boot, node);
	if (!runs)
		return -1;

	*join = (struct acp_join){
		.size = sizeof(*join), .version = ACP_ABI_VERSION,
		.rank = boot->rank, .nprocs = boot->nprocs,
		.job = boot->job, .generation = number,
		.nodes = boot->nodes, .colors = boot->colors,
		.port = boot->port, .integrity = boot->integrity,
		.timeout_ms = boot->timeout_ms, .open_timeout_ms = boot->init_timeout_ms,
		.rank_runs = boot->rank_run_count, .node_runs = boot->node_run_count,
		.rank_run_ptr = (uintptr_t)boot->rank_runs,
		.node_run_ptr = (uintptr_t)runs,
		.starter_size = boot->starter_size, .heap_size = boot->heap_size,
		.depth = boot->depth,
	};
	result = libacp_boot_key(boot, join->key);
	if (result == 0) {
		result = try_join(join);
		explicit_bzero(join->key, sizeof(join->key));
		if (result < 0)
			explain_join(errno, join->limit);
		else if (!join->sq_bytes)
			result = libacp_no_answer();
		else
			check_colors(boot, node);
	}
	free(runs);
	return result;
}

static int map_queues(const struct acp_join *join)
{
	int error = libacp_queue_open(&libacp_main, libacp.fd, libacp.boot.depth, 1, join->sq_bytes,
				      join->cq_bytes);

	if (error)
		libacp_error("cannot map the queues: %s", strerror(-error));
	return error;
}

static bool several_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) > 1;
}

/*
 * The launcher reports that a rank or a node failed, perhaps one that never joined. With
 * ACPX_ERRORS_RETURN the kernel reports failed ranks to the application, which may continue. The
 * descriptor stays open as long as this function can be called.
 */
static void engine_saw_failure(void)
{
	if (__atomic_load_n(&libacp.error_mode, __ATOMIC_RELAXED) != ACPX_ERRORS_ABORT)
		return;
	libacp_error("the engine that started the job says that a rank or a node failed");
	ioctl(libacp.fd, ACP_IOC_ABORT);
}

static void stop_watching(void)
{
	if (libacp.boot.engine)
		libacp_pmix_watch(NULL, 0);
	libacp.abort_engine = NULL;
}

static void leave(void)
{
	stop_watching();
	libacp_scratch_close();
	__atomic_store_n(&libacp.state, LIBACP_OUT, __ATOMIC_RELEASE);
	libacp_watch_close();
	libacp_gma_close();
	libacp_local_close();
	libacp_mem_close();
	libacp_queues_close();
	libacp_queue_unmap(&libacp_main);
	if (libacp.fd >= 0)
		close(libacp.fd);
	libacp.fd = -1;
	libacp_chan_close();	/* no other rank can access their memory any more */
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

	libacp.fd = libacp_device_open();
	if (libacp.fd < 0)
		return -1;
	if (join_job(number, &join) < 0 || map_queues(&join) < 0)
		goto leave;
	libacp.rank = libacp.boot.rank;
	libacp.nprocs = libacp.boot.nprocs;
	libacp.colors = libacp.boot.colors;
	libacp.node = join.node;
	libacp.joins++;
	set_layout();
	libacp.spin = several_cpus();
	libacp_debug = libacp.boot.debug;
	libacp.abort_engine = libacp.boot.engine ? libacp_pmix_abort : NULL;
	error = libacp_mem_open();
	if (error) {
		libacp_error("cannot map starter and heap: %s", strerror(-error));
		goto leave;
	}
	libacp_absent_open();
	error = libacp_gma_open();
	if (error) {
		libacp_error("cannot join: %s", strerror(-error));
		goto leave;
	}
	__atomic_store_n(&libacp.state, LIBACP_IN, __ATOMIC_RELEASE);
	libacp_txlock_open();
	error = libacp_heap_open();
	if (error) {
		libacp_error("cannot set up the heap: %s", strerror(-error));
		goto leave;
	}
	if (libacp.boot.engine)
		libacp_pmix_watch(engine_saw_failure, libacp.boot.init_end);
	return 0;
leave:
	leave();
	return -1;
}

/*
 * After fork(), the child has none of the mappings and is no rank. It closes its descriptor, so
 * that the rank does not outlive its process.
 */
static void forget_in_child(void)
{
	if (!libacp_in())
		return;
	__atomic_store_n(&libacp.state, LIBACP_FORKED, __ATOMIC_RELEASE);
	libacp_pool_forget();
	libacp_queues_forget();
	close(libacp.fd);
	libacp.fd = -1;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_in_child);
}

/* ---- The first barrier ---- */

/* Stay for ranks that are a little later, so that they can tell which ranks have arrived. */
static void linger(void)
{
	const uint32_t ms = libacp.boot.init_timeout_ms < LINGER_MS ?
			    libacp.boot.init_timeout_ms : LINGER_MS;

	libacp_sleep(ms * MS);
}

/*
 * While a rank is present, its node answers nodes that differ, and later ranks of this node learn
 * of the mismatch as well.
 */
static void explain_mismatched(uint32_t node)
{
	libacp_error("the nodes disagree about the job: node %u has another number of ranks, placement, addresses or integrity than this one (%u ranks on %u nodes): ACP_NPROCS, ACP_NODES, ACP_PLACEMENT, ACP_INTEGRITY and ACP_PRIVACY must be the same on all",
		     node, libacp.nprocs, libacp.boot.nodes);
	linger();
}

static int first_barrier(void)
{
	struct acp_sync sync = { .size = sizeof(sync) };
	int error;

	libacp_drops_begin();
	error = libacp_barrier_wait(&sync, libacp.boot.init_end);

	if (error == -ETIMEDOUT) {
		libacp_tell_missing();
		linger();
	} else if (error == -EPROTO) {
		explain_mismatched(sync.node);
	} else if (error == -EPIPE) {
		libacp_tell_left_early();
	} else if (error) {
		libacp_error("the ranks cannot synchronize: %s", strerror(-error));
	}
	errno = -error;
	return error ? -1 : 0;
}

/* ---- The public functions ---- */

/* Join as the rank in libacp.boot and enter the first barrier. On failure, boot is freed. */
static int join_and_sync(void)
{
	if (join(generation) < 0)
		goto free;
	if (first_barrier() < 0)
		goto leave;
	libacp_boot_agreed();
	libacp_mpmd_done();
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
	return join_and_sync();
}

int acp_init(int *argc, char ***argv)
{
	int result;

	pthread_mutex_lock(&membership);
	result = enter(argc, argv);
	pthread_mutex_unlock(&membership);
	return result;
}

int acp_finalize(void)
{
	int result = -1;

	if (!libacp_in())
		return -1;
	pthread_mutex_lock(&membership);
	if (libacp_in()) {
		libacp_coll_close();
		libacp_contexts_complete();
		libacp_rendezvous_settle();
		acp_complete(ACP_HANDLE_ALL);
		stop_watching();
		libacp_pmix_leave();
		result = libacp_barrier_in("acp_finalize", ACP_SYNC_FINAL);
		leave();
		libacp_boot_free(&libacp.boot);
	}
	pthread_mutex_unlock(&membership);
	return result;
}

int acp_reset(int rank)
{
	struct libacp_queue *bound;
	int result = -1;

	if (!libacp_in())
		return -1;
	pthread_mutex_lock(&membership);
	if (libacp_in()) {
		libacp_coll_close();
		bound = libacp_contexts_complete();
		acp_complete(ACP_HANDLE_ALL);
		result = libacp_reset_agree(generation <= GENERATION_MAX ? rank : -1);
		libacp_barrier_failed("acp_reset", result);
		if (result == 0) {
			leave();
			libacp_boot_begin(&libacp.boot);
			result = join_and_sync();
		} else {
			/* Nothing changed. */
			libacp_queue_bind(bound);
			result = -1;
		}
	}
	pthread_mutex_unlock(&membership);
	return result;
}

