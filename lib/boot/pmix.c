// SPDX-License-Identifier: MIT
/*
 * Launchers that provide PMIx: mpirun of Open MPI, prterun, Slurm's srun --mpi=pmix, and others.
 *
 * libpmix is loaded on demand, so that the library works without it. It is used for the rank of
 * this process, for the map of ranks to nodes (which the launcher has already distributed to each
 * node, so that a query costs no message), for one text from rank 0 to all ranks, and for reports
 * of failed ranks. Barriers use the kernel module, which needs neither the launcher nor its
 * network.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "acp.h"
#include "acp_ga.h"
#include "boot/boot.h"
#include "core/internal.h"
#include "core/parameters.h"

#define SONAME		"libpmix.so.2"
#define WATCH_MS	5000			/* for the launcher to confirm the registration */
#define NAMESPACE	"PMIX_NAMESPACE"	/* name of the job for the launcher */

bool libacp_pmix_there(void)
{
	return getenv(NAMESPACE) != NULL;
}

#if __has_include("pmix.h")
#include <pmix.h>

/* Functions of libpmix. */
static struct {
	__typeof__(PMIx_Init) *init;
	__typeof__(PMIx_Finalize) *finalize;
	__typeof__(PMIx_Abort) *abort;
	__typeof__(PMIx_Put) *put;
	__typeof__(PMIx_Commit) *commit;
	__typeof__(PMIx_Get) *get;
	__typeof__(PMIx_Fence_nb) *fence;
	__typeof__(PMIx_Resolve_nodes) *nodes;
	__typeof__(PMIx_Resolve_peers) *peers;
	pmix_status_t (*listen)(pmix_status_t codes[], size_t ncodes, pmix_info_t info[],
				size_t ninfo, pmix_notification_fn_t event,
				pmix_hdlr_reg_cbfunc_t done, void *data);
	pmix_status_t (*unlisten)(size_t id, pmix_op_cbfunc_t done, void *data);
	__typeof__(PMIx_Error_string) *error;
} pmix;

static const struct {
	const char *name;
	void *where;
} functions[] = {
	{ "PMIx_Init", &pmix.init },
	{ "PMIx_Finalize", &pmix.finalize },
	{ "PMIx_Abort", &pmix.abort },
	{ "PMIx_Put", &pmix.put },
	{ "PMIx_Commit", &pmix.commit },
	{ "PMIx_Get", &pmix.get },
	{ "PMIx_Fence_nb", &pmix.fence },
	{ "PMIx_Resolve_nodes", &pmix.nodes },
	{ "PMIx_Resolve_peers", &pmix.peers },
	{ "PMIx_Register_event_handler", &pmix.listen },
	{ "PMIx_Deregister_event_handler", &pmix.unlisten },
	{ "PMIx_Error_string", &pmix.error },
};

static pmix_proc_t self;
static uint32_t openings;	/* number of calls so far; makes the key of shared texts unique */

/*
 * acp_finalize() disconnects before its barrier: however the process ends afterwards, by exit(),
 * _exit() or exec, the launcher has heard a proper end. If the process connects again, for another
 * job, the launcher is asked for the rank and told of failures, but there is no fence of processes
 * that were disconnected (see boot.c). After a failure of acp_init() the process stays connected
 * until it ends, because it may try again, with a fence.
 */
static struct {
	pid_t process;		/* which the launcher has started; 0: it has not been asked */
	bool connected;
	bool needed;		/* between open and close */
	bool ending;		/* at_exit() was called */
} session;

/* ---- Loading ---- */

static int find_functions(void *library)
{
	size_t i;

	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *found = dlsym(library, functions[i].name);

		if (!found) {
			libacp_error("no %s in " SONAME ", which is too old", functions[i].name);
			return -1;
		}
		memcpy(functions[i].where, &found, sizeof(found));
	}
	return 0;
}

/* Called for the program, the first object: true if it names a dynamic linker. */
static int find_linker(struct dl_phdr_info *info, size_t size, void *found)
{
	size_t i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_INTERP)
			*(bool *)found = true;
	return 1;
}

/*
 * A static program can open libpmix, with a second copy of the C library that is not set up: the
 * threads of libpmix crash.
 */
static bool can_load(void)
{
	bool linker = false;

	dl_iterate_phdr(find_linker, &linker);
	if (!linker)
		libacp_error("an engine that speaks PMIx started this process (" NAMESPACE
			     " is set), but a program that is linked statically cannot load "
			     SONAME ": link it with -Wl,-Bstatic -lacp -Wl,-Bdynamic instead of -static, or start it without an engine (ACP_RANK)");
	return linker;
}

/* Loaded once and never unloaded, because its threads may be running. */
static int load(void)
{
	static bool loaded;
	void *library;

	if (loaded)
		return 0;
	if (!can_load())
		return -1;
	library = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		libacp_error("an engine that speaks PMIx started this process (" NAMESPACE
			     " is set), but " SONAME " cannot be loaded (Debian: libpmix2), and to start without an engine needs ACP_RANK: %s",
			     dlerror());
		return -1;
	}
	loaded = find_functions(library) == 0;
	return loaded ? 0 : -1;
}

static int failed_to(const char *what, pmix_status_t status)
{
	libacp_error("PMIx: cannot %s: %s", what, pmix.error(status));
	return -1;
}

static void name_proc(pmix_proc_t *proc, pmix_rank_t rank)
{
	memset(proc, 0, sizeof(*proc));
	memcpy(proc->nspace, self.nspace, sizeof(proc->nspace));
	proc->rank = rank;
}

/* ---- This process ---- */

static int get_size(uint32_t *nprocs)
{
	pmix_value_t *value = NULL;
	pmix_status_t status;
	pmix_proc_t all;

	name_proc(&all, PMIX_RANK_WILDCARD);
	status = pmix.get(&all, PMIX_JOB_SIZE, NULL, 0, &value);
	if (status != PMIX_SUCCESS)
		return failed_to("get the number of ranks", status);
	*nprocs = value->type == PMIX_UINT32 ? value->data.uint32 : 0;
	free(value);
	if (*nprocs && *nprocs <= ACP_RANKS_MAX && self.rank < *nprocs)
		return 0;
	libacp_error("PMIx: rank %u of %u ranks is not possible", self.rank, *nprocs);
	return -1;
}

void libacp_pmix_leave(void)
{
	if (!session.connected || session.process != getpid())
		return;
	session.connected = false;
	pmix.finalize(NULL, 0);
}

/*
 * Not during a job, so that the launcher detects a failure, unless a later exit handler or
 * destructor calls acp_finalize(). Not in a child process, which is no rank.
 */
static void at_exit(void)
{
	session.ending = true;
	if (!session.needed)
		libacp_pmix_leave();
}

static int connect_engine(void)
{
	static bool registered;
	pmix_status_t status;

	if (session.connected && session.process == getpid())
		return 0;
	if (session.process && session.process != getpid()) {
		libacp_error("PMIx: the engine has started process %d, of which this is only a child",
			     (int)session.process);
		return -1;
	}
	if (load() < 0)
		return -1;
	/* After libpmix was loaded, so that at_exit() is called before its own exit handlers. */
	if (!registered && atexit(at_exit) != 0) {
		libacp_error("no memory to leave the engine at the end");
		return -1;
	}
	registered = true;
	status = pmix.init(&self, NULL, 0);
	if (status != PMIX_SUCCESS)
		return failed_to("connect to the engine that started this process", status);
	session.process = getpid();
	session.connected = true;
	return 0;
}

int libacp_pmix_open(uint32_t *rank, uint32_t *nprocs)
{
	if (connect_engine() < 0)
		return -1;
	session.needed = true;
	openings++;
	if (get_size(nprocs) < 0) {
		libacp_pmix_close();
		return -1;
	}
	*rank = self.rank;
	return 0;
}

void libacp_pmix_close(void)
{
	session.needed = false;
	if (session.ending)
		libacp_pmix_leave();
}

/* ---- The map ---- */

/* Split a text at commas; names[0] is the text itself. */
static char **split(char *text, uint32_t *count)
{
	char **names, *p;

	*count = 1;
	for (p = text; *p; p++)
		*count += *p == ',';
	names = calloc(*count, sizeof(*names));
	if (!names)
		return NULL;
	for (*count = 0; (p = strsep(&text, ","));)
		names[(*count)++] = p;
	return names;
}

/* Enter the ranks of one node. Returns their number, or -1. */
static int64_t place_node(const char *name, uint32_t node, uint32_t *nodes, uint32_t nprocs)
{
	pmix_proc_t *procs = NULL;
	size_t count = 0, i;
	pmix_status_t status;
	bool good = true;

	status = pmix.peers(name, self.nspace, &procs, &count);
	if (status == PMIX_ERR_NOT_FOUND)
		return 0;
	if (status != PMIX_SUCCESS)
		return failed_to("get the ranks of a node", status);
	for (i = 0; i < count && good; i++) {
		good = procs[i].rank < nprocs && nodes[procs[i].rank] == UINT32_MAX;
		if (good)
			nodes[procs[i].rank] = node;
	}
	free(procs);
	if (good)
		return (int64_t)count;
	libacp_error("PMIx: the ranks of node %s make no sense", name);
	return -1;
}

/*
 * Enter the ranks of all nodes and remove nodes without ranks. False on failure. The names are in
 * one piece of memory that begins at names[0], so they are moved within it.
 */
static bool place_all(uint32_t nprocs, char **names, uint32_t *count, uint32_t *nodes)
{
	uint32_t total = 0, used = 0, i;
	char *to = names[0];

	memset(nodes, 0xff, nprocs * sizeof(*nodes));
	for (i = 0; i < *count; i++) {
		int64_t ranks = place_node(names[i], used, nodes, nprocs);

		if (ranks < 0)
			return false;
		if (ranks) {
			size_t size = strlen(names[i]) + 1;

			names[used++] = memmove(to, names[i], size);
			to += size;
		}
		total += (uint32_t)ranks;
	}
	*count = used;
	if (total == nprocs)
		return true;
	libacp_error("PMIx: only %u of %u ranks are on a node", total, nprocs);
	return false;
}

int libacp_pmix_map(uint32_t nprocs, char ***names, uint32_t *count, uint32_t **nodes)
{
	char *text = NULL;
	pmix_status_t status = pmix.nodes(self.nspace, &text);

	*names = NULL;
	*nodes = NULL;
	if (status != PMIX_SUCCESS || !text)
		return failed_to("get the nodes of the job", status);
	*names = split(text, count);
	*nodes = malloc(nprocs * sizeof(**nodes));
	if (!*names)
		free(text);
	if (!*names || !*nodes) {
		libacp_error("no memory for the map of the ranks");
		return -1;
	}
	return place_all(nprocs, *names, count, *nodes) ? 0 : -1;
}

/* ---- One text for all ranks ---- */

/* State of the fence of all ranks, which may end after its waiter has given up. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	uintptr_t number;	/* of the latest fence */
	bool done;
	pmix_status_t status;
} fence = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

static void fence_ended(pmix_status_t status, void *number)
{
	pthread_mutex_lock(&fence.lock);
	if ((uintptr_t)number == fence.number) {
		fence.done = true;
		fence.status = status;
		pthread_cond_signal(&fence.ended);
	}
	pthread_mutex_unlock(&fence.lock);
}

static struct timespec clock_of(uint64_t end)
{
	return (struct timespec){ (time_t)(end / 1000000000), (long)(end % 1000000000) };
}

/* Wait until the fence has ended. Returns 0 or ETIMEDOUT. */
static int await_fence(uint64_t end)
{
	const struct timespec until = clock_of(end);
	int error = 0;

	pthread_mutex_lock(&fence.lock);
	while (!fence.done && error != ETIMEDOUT)
		error = pthread_cond_clockwait(&fence.ended, &fence.lock, CLOCK_MONOTONIC, &until);
	error = fence.done ? 0 : ETIMEDOUT;
	pthread_mutex_unlock(&fence.lock);
	return error;
}

/* Enter the fence of all ranks, which distributes the texts to every node. */
static int exchange(const struct libacp_boot *boot)
{
	pmix_info_t collect;
	pmix_status_t status;

	memset(&collect, 0, sizeof(collect));
	strcpy(collect.key, PMIX_COLLECT_DATA);
	collect.value.type = PMIX_BOOL;
	collect.value.data.flag = true;
	pthread_mutex_lock(&fence.lock);
	fence.number++;
	fence.done = false;
	pthread_mutex_unlock(&fence.lock);
	status = pmix.fence(NULL, 0, &collect, 1, fence_ended, (void *)fence.number);
	if (status == PMIX_OPERATION_SUCCEEDED)
		return 0;
	if (status != PMIX_SUCCESS)
		return failed_to("synchronize with the other ranks", status);
	if (await_fence(boot->init_end)) {
		libacp_error("not all ranks called acp_init within %u ms (ACP_INIT_TIMEOUT)",
			     boot->init_timeout_ms);
		return -1;
	}
	if (fence.status == PMIX_SUCCESS)
		return 0;
	return failed_to("synchronize with the other ranks", fence.status);
}

static int put(const char *key, char *text)
{
	pmix_value_t value;
	pmix_status_t status;

	memset(&value, 0, sizeof(value));
	value.type = PMIX_STRING;
	value.data.string = text;
	status = pmix.put(PMIX_GLOBAL, key, &value);
	if (status == PMIX_SUCCESS)
		status = pmix.commit();
	return status == PMIX_SUCCESS ? 0 : failed_to("tell the other ranks", status);
}

/*
 * The fence has delivered the text. If it has not, because this rank and rank 0 have called
 * acp_init() different numbers of times, the launcher would wait for it. The timeout limits that.
 */
static char *get(const char *key, uint64_t end)
{
	pmix_value_t *value = NULL;
	pmix_status_t status;
	pmix_proc_t first;
	char *text = NULL;
	pmix_info_t patience;

	memset(&patience, 0, sizeof(patience));
	strcpy(patience.key, PMIX_TIMEOUT);
	patience.value.type = PMIX_INT;
	patience.value.data.integer = (int)(libacp_left(end) / 1000000000) + 1;
	name_proc(&first, 0);
	status = pmix.get(&first, key, &patience, 1, &value);
	if (status == PMIX_SUCCESS && value->type == PMIX_STRING)
		text = value->data.string;
	if (status == PMIX_SUCCESS)
		free(value);
	if (!text)
		failed_to("get the plan of rank 0", status);
	return text;
}

int libacp_pmix_share(const struct libacp_boot *boot, char **text)
{
	char key[32];
	int result = 0;

	/* A process may be a rank repeatedly. */
	snprintf(key, sizeof(key), "acp.plan.%u", openings);
	if (boot->rank == 0)
		result = put(key, *text ? *text : "");
	if (result == 0)
		result = exchange(boot);
	if (result == 0 && boot->rank != 0) {
		*text = get(key, boot->init_end);
		result = *text ? 0 : -1;
	}
	return result;
}

/* ---- Failures ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t registered;
	void (*failed)(void);
	bool answered, good;
	size_t id;
} watch = { .lock = PTHREAD_MUTEX_INITIALIZER, .registered = PTHREAD_COND_INITIALIZER };

/* Called in a thread of libpmix: must not call libpmix. */
static void event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
		  size_t ninfo, pmix_info_t *results, size_t nresults,
		  pmix_event_notification_cbfunc_fn_t done, void *data)
{
	(void)id;
	(void)status;
	(void)source;
	(void)info;
	(void)ninfo;
	(void)results;
	(void)nresults;
	pthread_mutex_lock(&watch.lock);
	if (watch.failed)
		watch.failed();
	pthread_mutex_unlock(&watch.lock);
	if (done)
		done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

static void registered(pmix_status_t status, size_t id, void *data)
{
	(void)data;
	pthread_mutex_lock(&watch.lock);
	watch.answered = true;
	watch.good = status == PMIX_SUCCESS;
	watch.id = id;
	pthread_cond_signal(&watch.registered);
	pthread_mutex_unlock(&watch.lock);
}

/*
 * If the launcher does not support events or does not answer, the job runs without them; and at
 * least three quarters of what is left until @end remain for others to come.
 */
static void start_watching(uint64_t end)
{
	static pmix_status_t codes[] = {
		PMIX_ERR_PROC_REQUESTED_ABORT, PMIX_ERR_PROC_TERM_WO_SYNC, PMIX_ERR_PROC_ABORTED,
		PMIX_ERR_PROC_ABORTED_BY_SIG, PMIX_ERR_EXIT_NONZERO_TERM, PMIX_ERR_JOB_ABORTED,
		PMIX_ERR_LOST_CONNECTION, PMIX_EVENT_NODE_DOWN, PMIX_EVENT_NODE_OFFLINE,
	};
	const uint64_t share = libacp_left(end) / 4;
	const uint64_t most = WATCH_MS * 1000000ULL;
	const struct timespec until = clock_of(libacp_end_of(share < most ? share : most));
	pmix_status_t status;
	int error = 0;

	pthread_mutex_lock(&watch.lock);
	watch.answered = false;
	pthread_mutex_unlock(&watch.lock);
	status = pmix.listen(codes, sizeof(codes) / sizeof(codes[0]), NULL, 0,
						  event, registered, NULL);
	pthread_mutex_lock(&watch.lock);
	while (status == PMIX_SUCCESS && !watch.answered && error != ETIMEDOUT)
		error = pthread_cond_clockwait(&watch.registered, &watch.lock, CLOCK_MONOTONIC,
					       &until);
	pthread_mutex_unlock(&watch.lock);
}

void libacp_pmix_watch(void (*failed)(void), uint64_t end)
{
	pthread_mutex_lock(&watch.lock);
	watch.failed = failed;
	pthread_mutex_unlock(&watch.lock);
	if (failed) {
		start_watching(end);
	} else if (watch.good) {
		watch.good = false;
		pmix.unlisten(watch.id, NULL, NULL);
	}
}

void libacp_pmix_abort(const char *text)
{
	pmix.abort(255, text, NULL, 0);
}

#else /* no pmix.h */

int libacp_pmix_open(uint32_t *rank, uint32_t *nprocs)
{
	(void)rank;
	(void)nprocs;
	libacp_error("an engine that speaks PMIx started this process (" NAMESPACE
		     " is set), but libacp was built without pmix.h (Debian: libpmix-dev): build it with that, or set ACP_RANK");
	return -1;
}

void libacp_pmix_close(void)
{
}

void libacp_pmix_leave(void)
{
}

int libacp_pmix_map(uint32_t nprocs, char ***names, uint32_t *count, uint32_t **nodes)
{
	(void)nprocs;
	(void)names;
	(void)count;
	(void)nodes;
	return -1;
}

int libacp_pmix_share(const struct libacp_boot *boot, char **text)
{
	(void)boot;
	(void)text;
	return -1;
}

void libacp_pmix_watch(void (*failed)(void), uint64_t end)
{
	(void)failed;
	(void)end;
}

void libacp_pmix_abort(const char *text)
{
	(void)text;
}
#endif
