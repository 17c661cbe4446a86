// SPDX-License-Identifier: MIT
/*
 * Waiting until other ranks change words of own memory. acp_abi.h describes the protocol (struct
 * acp_watch). A waiting thread polls for a moment, then publishes which lines of memory it waits
 * for and sleeps in the kernel. Writers to these lines wake it, and it checks its conditions again.
 *
 * Writes by this process that bypass the library wake nobody. For them, and for a neighbour that
 * was stopped after its write and before the wake-up, threads check their conditions every
 * SLEEP_MAX_NS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/complete.h"
#include "core/internal.h"
#include "core/process.h"
#include "core/wait.h"
#include "core/wait_until.h"
#include "core/watch.h"

#define SPIN_NS		100000		/* polling time before sleeping, with several CPUs */
#define LOOKS		64		/* polls between two reads of the clock */
#define SLEEP_MAX_NS	1000000000ULL
#define CLOSE_NS	100000		/* interval of checks whether all threads have left */

/* The conditions, and the progress. */
struct waiter {
	const struct acpx_condition *conditions;
	size_t count;
	/* acpx_wait_until_all: conditions before this index have been true */
	size_t next;
	size_t *indices;		/* acpx_wait_until_some: output */
	int64_t (*look)(struct waiter *w);	/* the result, or -EAGAIN: not yet */
	/* libacp_watch_find: the function, whether the thread will sleep, and on which word */
	libacp_find_t *find;
	void *arg;
	bool sleeps;
	const void *word;
};

static unsigned int inside;	/* threads between libacp_watch_enter() and leave(); atomic */

/* Guards sleepers and acp_watch.lines, which counts the conditions of all sleepers. */
static pthread_mutex_t sleepers_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int sleepers;

/* ---- Conditions ---- */

static bool compare_unsigned(uint64_t word, uint64_t value, int compare)
{
	switch (compare) {
	case ACPX_CMP_EQ:
		return word == value;
	case ACPX_CMP_NE:
		return word != value;
	case ACPX_CMP_GT:
		return word > value;
	case ACPX_CMP_GE:
		return word >= value;
	case ACPX_CMP_LT:
		return word < value;
	default:
		return word <= value;
	}
}

/* Flipping the sign bit maps the order of signed numbers to that of unsigned ones. */
static bool holds(const struct acpx_condition *c)
{
	const volatile void *flag = c->flag;
	uint64_t turned = 1ULL << (8 * c->size - 1), word, value = c->value;

	if (c->size == 8) {
		word = __atomic_load_n((const volatile uint64_t *)flag, __ATOMIC_ACQUIRE);
	} else {
		word = __atomic_load_n((const volatile uint32_t *)flag, __ATOMIC_ACQUIRE);
		value = (uint32_t)value;
	}
	if (!(c->compare & ACPX_CMP_SIGNED))
		turned = 0;
	return compare_unsigned(word ^ turned, value ^ turned, c->compare & ~ACPX_CMP_SIGNED);
}

static bool is_possible(const struct acpx_condition *c)
{
	int compare = c->compare & ~ACPX_CMP_SIGNED;

	if (!c->flag)
		return true;
	return (c->size == 4 || c->size == 8) && (uintptr_t)c->flag % (uintptr_t)c->size == 0 &&
	       compare >= ACPX_CMP_EQ && compare <= ACPX_CMP_LE;
}

static bool are_possible(const struct acpx_condition *conditions, size_t count)
{
	size_t i;

	for (i = 0; conditions && i < count; i++)
		if (!is_possible(&conditions[i]))
			return false;
	return conditions || !count;
}

/* Each condition has been true at some time, not necessarily all of them at the same time. */
static int64_t look_all(struct waiter *w)
{
	for (; w->next < w->count; w->next++)
		if (w->conditions[w->next].flag && !holds(&w->conditions[w->next]))
			return -EAGAIN;
	return 0;
}

static int64_t look_any(struct waiter *w)
{
	bool none = true;
	size_t i;

	for (i = 0; i < w->count; i++) {
		if (!w->conditions[i].flag)
			continue;
		if (holds(&w->conditions[i]))
			return (int64_t)i;
		none = false;
	}
	return none ? -ENOENT : -EAGAIN;
}

static int64_t look_some(struct waiter *w)
{
	int64_t found = 0;
	bool none = true;
	size_t i;

	for (i = 0; i < w->count; i++) {
		if (!w->conditions[i].flag)
			continue;
		none = false;
		if (holds(&w->conditions[i]))
			w->indices[found++] = i;
	}
	return found || none ? found : -EAGAIN;
}

static int64_t look_find(struct waiter *w)
{
	return w->find(w->arg, w->sleeps, &w->word);
}

/* ---- Waiting threads ---- */

static void mark_line(const volatile void *flag, uint32_t by)
{
	if (flag)
		__atomic_fetch_add(&libacp.watch->lines[ACP_WATCH_LINE((uintptr_t)flag)], by,
				   __ATOMIC_RELAXED);
}

/* Add @by to the counters of the lines of all conditions; sleepers_lock held. */
static void mark(const struct waiter *w, uint32_t by)
{
	size_t i;

	for (i = 0; i < w->count; i++)
		mark_line(w->conditions[i].flag, by);
	mark_line(w->word, by);
}

static void begin_sleep(const struct waiter *w)
{
	pthread_mutex_lock(&sleepers_lock);
	sleepers++;
	mark(w, 1);
	pthread_mutex_unlock(&sleepers_lock);
}

/* The last thread clears "armed", so that writers check nothing else. */
static void end_sleep(const struct waiter *w)
{
	pthread_mutex_lock(&sleepers_lock);
	mark(w, UINT32_MAX);
	if (!--sleepers)
		__atomic_store_n(&libacp.watch->armed, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&sleepers_lock);
}

/*
 * Called before the check that precedes a sleep. Returns the number of wake-ups so far, which must
 * be read first: a wake-up for other words in between clears "armed" and must end the sleep that is
 * about to begin.
 */
static uint64_t arm(void)
{
	uint64_t wakes = __atomic_load_n(&libacp.watch->wakes, __ATOMIC_ACQUIRE);

	__atomic_store_n(&libacp.watch->armed, 1, __ATOMIC_SEQ_CST);
	/*
	 * Pairs with the fence of the writer in libacp_watch_armed(), between its write and its
	 * load of "armed".
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return wakes;
}

/* Sleep until the next wake-up or until the next check is due. Returns 0 or -errno. */
static int doze(uint64_t wakes, uint64_t deadline)
{
	uint64_t now = libacp_now();
	struct acp_watch_wait wait = {
		.size = sizeof(wait), .wakes = wakes, .timeout_ns = SLEEP_MAX_NS,
	};

	if (now >= deadline)
		return -ETIMEDOUT;
	if (deadline - now < wait.timeout_ns)
		wait.timeout_ns = deadline - now;
	if (ioctl(libacp.fd, ACP_IOC_WATCH, &wait) < 0 && errno != EINTR && errno != ETIMEDOUT)
		return -errno;
	return 0;
}

/*
 * Look. False: the thread must look again before it sleeps, since it would wait for another word
 * than it has published.
 */
static bool look_asleep(struct waiter *w, int64_t *found)
{
	const void *word = w->word, *other;

	*found = w->look(w);
	other = w->word;
	if (other == word)
		return true;
	w->word = word;
	end_sleep(w);
	w->word = other;
	begin_sleep(w);
	return *found != -EAGAIN;
}

static int64_t sleep_until(struct waiter *w, uint64_t deadline)
{
	int64_t found;
	int error = 0;

	w->sleeps = true;
	begin_sleep(w);
	for (;;) {
		uint64_t wakes = arm();

		if (!look_asleep(w, &found) && libacp_now() < deadline)
			continue;
		if (found != -EAGAIN)
			break;
		if (!error && !libacp_in())
			error = -ENOTCONN;
		if (error)
			break;
		libacp_gma_check();
		error = doze(wakes, deadline);
	}
	end_sleep(w);
	return found == -EAGAIN ? error : found;
}

static int64_t spin_until(struct waiter *w, uint64_t deadline)
{
	uint64_t now = libacp_now(), end = now + SPIN_NS;
	unsigned int looks = 0;
	int64_t found;

	if (deadline < end)
		end = deadline;
	do {
		libacp_pause();
		found = w->look(w);
		if (found != -EAGAIN)
			return found;
	} while (++looks % LOOKS || libacp_now() < end);
	return -EAGAIN;
}

/* Called by a thread that libacp_watch_close() waits for. */
static int64_t wait_inside(struct waiter *w, uint64_t timeout_ns)
{
	int64_t found = w->look(w);
	uint64_t deadline;

	if (found != -EAGAIN || !timeout_ns)
		return found;
	deadline = libacp_end_of(timeout_ns);
	if (libacp.spin)
		found = spin_until(w, deadline);
	return found == -EAGAIN ? sleep_until(w, deadline) : found;
}

bool libacp_watch_enter(void)
{
	__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
	/*
	 * Before the state is read: either this thread sees the new state, or libacp_watch_close()
	 * sees this thread.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (libacp_in())
		return true;
	libacp_watch_leave();
	return false;
}

void libacp_watch_leave(void)
{
	__atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
}

static int64_t wait_for(struct waiter *w, uint64_t timeout_ns)
{
	int64_t found;

	if (!are_possible(w->conditions, w->count))
		return -EINVAL;
	if (!libacp_watch_enter())
		return -ENOTCONN;
	found = wait_inside(w, timeout_ns);
	libacp_watch_leave();
	if (found == -ECANCELED)
		libacp_job_aborted();
	return found;
}

/* ---- poll() ---- */

#define TRIES	8		/* until callers have to look themselves: the words keep changing */

/* What the process waits for by poll(): at most one set of words. */
static struct {
	pthread_mutex_t lock;
	const void **words;		/* whose lines are counted, and those found last */
	size_t count;
	bool armed;			/* the lines are counted, and the process as a sleeper */
	uint64_t wakes;
} polled = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* polled.lock held. */
static void count_polled(bool armed)
{
	size_t i;

	pthread_mutex_lock(&sleepers_lock);
	for (i = 0; i < polled.count; i++)
		mark_line(polled.words[i], armed ? 1 : UINT32_MAX);
	sleepers += armed ? 1 : UINT32_MAX;
	if (!sleepers)
		__atomic_store_n(&libacp.watch->armed, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&sleepers_lock);
	__atomic_store_n(&polled.armed, armed, __ATOMIC_SEQ_CST);
}

static void forget_polled(void)
{
	if (polled.armed)
		count_polled(false);
	free(polled.words);
	polled.words = NULL;
	polled.count = 0;
}

/* Returns the first result; -EAGAIN: none, and the words that were found are behind the others. */
static int64_t look_polled(libacp_find_t *find, void *const *args)
{
	int64_t found = -EAGAIN;
	size_t i;

	for (i = 0; i < polled.count && found == -EAGAIN; i++)
		found = find(args[i], true, &polled.words[polled.count + i]);
	return found;
}

/* Returns -EAGAIN, or -errno if it fails. */
static int64_t set_poll(uint32_t flags, uint64_t wakes)
{
	struct acp_watch_wait wait = { .size = sizeof(wait), .flags = flags, .wakes = wakes };

	return ioctl(libacp.fd, ACP_IOC_WATCH, &wait) < 0 ? -errno : -EAGAIN;
}

/* Returns a result, or -EAGAIN: poll() reports when there may be one. */
static int64_t try_to_arm(libacp_find_t *find, void *const *args)
{
	const size_t bytes = polled.count * sizeof(*polled.words);
	int64_t found = look_polled(find, args);
	uint64_t wakes;
	int i;

	for (i = 0; i < TRIES && found == -EAGAIN; i++) {
		memcpy(polled.words, polled.words + polled.count, bytes);
		count_polled(true);
		wakes = arm();
		__atomic_store_n(&polled.wakes, wakes, __ATOMIC_SEQ_CST);
		found = look_polled(find, args);
		if (found == -EAGAIN && !memcmp(polled.words, polled.words + polled.count, bytes))
			return set_poll(ACP_WATCH_ARM, wakes);
		count_polled(false);
	}
	return found == -EAGAIN ? 0 : found;
}

int64_t libacp_watch_arm(libacp_find_t *find, void *const *args, size_t count)
{
	int64_t found = -ENOMEM;

	pthread_mutex_lock(&polled.lock);
	forget_polled();
	if (count)
		polled.words = calloc(2 * count, sizeof(*polled.words));
	else
		found = set_poll(ACP_WATCH_DISARM, 0);
	if (polled.words) {
		polled.count = count;
		found = try_to_arm(find, args);
		if (found != -EAGAIN)
			forget_polled();
	}
	pthread_mutex_unlock(&polled.lock);
	return found;
}

bool libacp_watch_is_polled(void)
{
	return __atomic_load_n(&polled.armed, __ATOMIC_SEQ_CST) &&
	       __atomic_load_n(&polled.wakes, __ATOMIC_SEQ_CST) ==
		       __atomic_load_n(&libacp.watch->wakes, __ATOMIC_ACQUIRE);
}

void libacp_watch_close(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	while (__atomic_load_n(&inside, __ATOMIC_SEQ_CST)) {
		libacp_watch_wake_rank(libacp.rank);
		libacp_sleep(CLOSE_NS);
	}
	pthread_mutex_lock(&polled.lock);
	forget_polled();
	pthread_mutex_unlock(&polled.lock);
	libacp.watch = NULL;
}

static int64_t timed_out(int64_t found)
{
	return found == -EAGAIN ? -ETIMEDOUT : found;
}

int64_t libacp_watch_find(libacp_find_t *find, void *arg, uint64_t timeout_ns)
{
	struct waiter w = { .look = look_find, .find = find, .arg = arg };

	return timed_out(wait_for(&w, timeout_ns));
}

/* ---- The public functions ---- */

int acpx_wait_until_all(const struct acpx_condition *conditions, size_t count,
			uint64_t timeout_ns)
{
	struct waiter w = { .conditions = conditions, .count = count, .look = look_all };

	return (int)timed_out(wait_for(&w, timeout_ns));
}

int64_t acpx_wait_until_any(const struct acpx_condition *conditions, size_t count,
			    uint64_t timeout_ns)
{
	struct waiter w = { .conditions = conditions, .count = count, .look = look_any };

	return timed_out(wait_for(&w, timeout_ns));
}

int64_t acpx_wait_until_some(const struct acpx_condition *conditions, size_t count,
			     size_t *indices, uint64_t timeout_ns)
{
	struct waiter w = {
		.conditions = conditions, .count = count, .indices = indices, .look = look_some,
	};

	return indices || !count ? timed_out(wait_for(&w, timeout_ns)) : -EINVAL;
}

int acpx_wait_until(const volatile void *flag, size_t size, int compare, uint64_t value,
		    uint64_t timeout_ns)
{
	struct acpx_condition c = {
		.flag = flag, .value = value, .size = (int)size, .compare = compare,
	};

	return flag && size <= 8 ? acpx_wait_until_all(&c, 1, timeout_ns) : -EINVAL;
}

int acpx_test_all(const struct acpx_condition *conditions, size_t count)
{
	struct waiter w = { .conditions = conditions, .count = count, .look = look_all };
	int64_t found = wait_for(&w, 0);

	return found == -EAGAIN ? 0 : found ? (int)found : 1;
}

int64_t acpx_test_any(const struct acpx_condition *conditions, size_t count)
{
	struct waiter w = { .conditions = conditions, .count = count, .look = look_any };

	return wait_for(&w, 0);
}

int64_t acpx_test_some(const struct acpx_condition *conditions, size_t count, size_t *indices)
{
	struct waiter w = {
		.conditions = conditions, .count = count, .indices = indices, .look = look_some,
	};
	int64_t found = indices || !count ? wait_for(&w, 0) : -EINVAL;

	return found == -EAGAIN ? 0 : found;
}

int acpx_test(const volatile void *flag, size_t size, int compare, uint64_t value)
{
	struct acpx_condition c = {
		.flag = flag, .value = value, .size = (int)size, .compare = compare,
	};

	return flag && size <= 8 ? acpx_test_all(&c, 1) : -EINVAL;
}
