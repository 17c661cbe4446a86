// SPDX-License-Identifier: MIT
/*
 * The fake basic layer: copies and atomics, their order and completion, and the death of a rank
 * with accesses in flight.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "fake_access.h"
#include "test.h"

#define DEPTH		1024u		/* a power of 2 */
#define REST_NS		100000u		/* in turns: sleep time while accesses are in flight */
/* delay of the next step of an access that is not waited for */
#define IDLE_US		200
#define GHOST_NS	500000000ull	/* maximum delay of accesses of a dead rank */
#define GONE_NS		1000000000ull	/* after this time none of them is executed any more */

static struct fake_access ring[DEPTH];
static uint64_t newest, completed, failed_known, failed, random_state;
static uint64_t accesses, remote_accesses, trips, die_at;
static bool stopping, is_ghost;
static uint64_t held_min;		/* minimum size of copies that are held; 0: none */
static struct {
	uint64_t ticket;
	int status;
} lost[DEPTH];				/* quiet failures whose slots were reused */
static unsigned int lost_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t network;
static _Thread_local bool quiet_now;
static _Thread_local uint64_t chain_since;

static struct fake_access *slot(uint64_t ticket)
{
	return &ring[ticket % DEPTH];
}

/* splitmix64; called with the lock held. */
static uint64_t draw(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t fake_random(void)
{
	uint64_t number;

	pthread_mutex_lock(&lock);
	number = draw();
	pthread_mutex_unlock(&lock);
	return number;
}

/* ---- Progress; called with the lock held ---- */

static bool is_held(const struct fake_access *x)
{
	return held_min && x->phase == FAKE_READ && x->op == ACP_OP_COPY &&
	       x->size >= held_min && acp_query_rank(x->dst) == fake_rank;
}

static bool ready(const struct fake_access *x)
{
	uint64_t t;

	if (is_held(x))
		return false;
	if (x->phase != FAKE_NEW)
		return x->phase != FAKE_DONE;
	for (t = completed + 1; t <= x->order; t++)
		if (slot(t)->phase != FAKE_DONE)
			return false;
	return true;
}

static bool ordered_behind_failure(const struct fake_access *x)
{
	uint64_t t;

	for (t = x->seen + 1; t <= x->order; t++)
		if (slot(t)->status)
			return true;
	return false;
}

/* Some words are read, or written, earlier than others: a copy guarantees no order. */
static bool by_halves(struct fake_access *x)
{
	x->halves = draw();
	return x->op == ACP_OP_COPY && x->size > 8 && draw() % 4 == 0;
}

/* Execute the next step of an access, and set its phase. */
static int act(struct fake_access *x)
{
	switch (x->phase) {
	case FAKE_NEW:
		if (ordered_behind_failure(x))
			return ACPX_EORDER;
		x->phase = by_halves(x) ? FAKE_READING : FAKE_READ;
		return fake_read_source(x, x->phase == FAKE_READ ? FAKE_ALL : FAKE_HALF);
	case FAKE_READING:
		x->phase = FAKE_READ;
		return fake_read_source(x, FAKE_REST);
	case FAKE_READ:
		x->phase = by_halves(x) ? FAKE_WRITING : FAKE_DONE;
		return fake_write_destination(x, x->phase == FAKE_DONE ? FAKE_ALL : FAKE_HALF);
	default:
		x->phase = FAKE_DONE;
		return fake_write_destination(x, FAKE_REST);
	}
}

static void advance(struct fake_access *x)
{
	x->status = act(x);
	if (x->status)
		x->phase = FAKE_DONE;
	if (x->phase == FAKE_DONE) {
		free(x->data);
		x->data = NULL;
	}
	while (completed < newest && slot(completed + 1)->phase == FAKE_DONE) {
		completed++;
		failed += slot(completed)->status && !slot(completed)->quiet;
	}
}

/* Execute a step of any access that may proceed. False if there is none: all others are held. */
static bool step(void)
{
	uint64_t pending = newest - completed, first, i;

	if (!pending)
		return false;
	first = draw() % pending;
	for (i = 0; i < pending; i++) {
		struct fake_access *x = slot(completed + 1 + (first + i) % pending);

		if (!ready(x))
			continue;
		advance(x);
		pthread_cond_broadcast(&changed);
		return true;
	}
	if (!held_min)
		abort();
	return false;
}

static void idle(unsigned int max_us)
{
	if (!max_us)
		return;
	max_us = (unsigned int)(draw() % (max_us + 1));
	if (fake_in_turns()) {
		fake_pause(max_us * 1000ull * fake_shared->speed);
		return;
	}
	pthread_mutex_unlock(&lock);
	usleep(max_us);
	pthread_mutex_lock(&lock);
}

static void *run_network(void *arg)
{
	pthread_mutex_lock(&lock);
	while (!stopping) {
		if (newest == completed) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		idle(IDLE_US + fake_shared->delay_us);
		step();
	}
	pthread_mutex_unlock(&lock);
	return arg;
}

void fake_pause(uint64_t ns)
{
	uint64_t end;

	if (!fake_in_turns())
		return;
	end = fake_clock() + ns;
	do {
		fake_turn(newest == completed || ns < REST_NS ? ns : REST_NS);
		if (!is_ghost && draw() % 2)
			step();
		ns = end - fake_clock();
	} while (fake_clock() < end);
}

static void wait_for(uint64_t ticket)
{
	while (completed < ticket) {
		fake_pause(0);
		idle(fake_shared->delay_us);
		if (completed < ticket && !step())
			pthread_cond_wait(&changed, &lock);
	}
}

void fake_hold(uint64_t least)
{
	pthread_mutex_lock(&lock);
	held_min = least;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

bool fake_holds(void)
{
	uint64_t t;
	bool any = false;

	pthread_mutex_lock(&lock);
	for (t = completed + 1; t <= newest; t++)
		any = any || is_held(slot(t));
	pthread_mutex_unlock(&lock);
	return any;
}

void fake_gma_open(uint64_t seed)
{
	random_state = seed;
	newest = 1;
	completed = 1;
	slot(1)->phase = FAKE_DONE;
	if (fake_in_turns())
		return;			/* the network proceeds in the turns of the rank */
	if (pthread_create(&network, NULL, run_network, NULL))
		abort();
}

void fake_gma_close(void)
{
	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	if (!fake_in_turns())
		pthread_join(network, NULL);
}

/* ---- Death ---- */

static void steps(uint64_t count)
{
	while (count-- && step())
		;
}

/* Execute a step, if it is still time. */
static bool haunt(uint64_t until)
{
	bool more;

	__atomic_fetch_add(&fake_shared->haunting, 1, __ATOMIC_SEQ_CST);
	more = fake_clock() < until && step();
	__atomic_fetch_sub(&fake_shared->haunting, 1, __ATOMIC_SEQ_CST);
	return more;
}

static void __attribute__((noreturn)) be_ghost(uint64_t count, uint64_t until)
{
	is_ghost = true;
	libacp_sleep(draw() % GHOST_NS);
	while (count-- && haunt(until))
		fake_pause(draw() % GHOST_NS / 64);
	fake_turns_leave();
	__atomic_fetch_sub(&fake_shared->ghosts, 1, __ATOMIC_ACQ_REL);
	_exit(0);
}

/* Of the accesses in flight, some are executed now, some later, some never. */
static void __attribute__((noreturn)) die(void)
{
	uint64_t most = 4 * (newest - completed) + 1;
	const uint64_t until = fake_clock() + GONE_NS;
	struct fake_member *m = &fake_shared->members[fake_rank];

	steps(draw() % 4 ? draw() % most : most);
	__atomic_store_n(&m->condemned, true, __ATOMIC_RELEASE);
	if (fake_in_turns())
		__atomic_store_n(&m->dead, true, __ATOMIC_RELEASE);
	if (newest != completed && draw() % 2) {
		__atomic_fetch_add(&fake_shared->ghosts, 1, __ATOMIC_ACQ_REL);
		if (fork() == 0)
			be_ghost(draw() % most, until);
	} else {
		fake_turns_leave();
	}
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

void fake_die_at(uint64_t number)
{
	pthread_mutex_lock(&lock);
	if (!number)
		die();
	die_at = accesses + number;
	pthread_mutex_unlock(&lock);
}

uint64_t fake_accesses(void)
{
	return __atomic_load_n(&accesses, __ATOMIC_RELAXED);
}

uint64_t fake_remote_accesses(void)
{
	return __atomic_load_n(&remote_accesses, __ATOMIC_RELAXED);
}

uint64_t fake_trips(void)
{
	return __atomic_load_n(&trips, __ATOMIC_RELAXED);
}

/* ---- Issuing; called with the lock held ---- */

static acp_handle_t make_handle(uint64_t ticket, bool local)
{
	return (acp_handle_t)(ticket << 1 | local);
}

static uint64_t handle_ticket(acp_handle_t handle)
{
	uint64_t ticket = (uint64_t)handle >> 1;

	if (handle == (acp_handle_t)ACP_HANDLE_ALL || handle == (acp_handle_t)ACP_HANDLE_CONT)
		return newest;
	return ticket <= newest ? ticket : 0;
}

/* True if the calling thread can access this end. */
static bool near(acp_ga_t ga)
{
	struct fake_place place;

	if (fake_where(ga, 0, 0, &place))
		return false;
	return place.rank == fake_rank || (fake_local_rank(place.rank) && place.fixed);
}

/* Determine the remote node that is involved, and where the effects are. */
static void place_effects(struct fake_access *x)
{
	int src = acp_query_rank(x->src), dst = acp_query_rank(x->dst);
	int here = acpx_query_node(fake_rank);
	int from = src < 0 ? here : acpx_query_node(src);
	int to = dst < 0 ? here : acpx_query_node(dst);

	x->home = to == here;
	x->away = to != here && from != here && to != from;
	x->node = from != here ? from : to != here ? to : -1;
	if (x->away)
		x->node = -2;
}

/*
 * Return the round trip at whose end the access completes: after a fence the same as that of what
 * it waits for, otherwise the next one. See PROTOCOL.md, section 6.
 */
static uint64_t trip_of(const struct fake_access *x)
{
	uint64_t behind = trips, t;
	bool fence = x->node >= 0;

	for (t = completed + 1 > DEPTH ? completed + 1 - DEPTH : 1; t <= x->order; t++) {
		const struct fake_access *y = slot(t);

		if (y->trip <= trips)
			continue;
		behind = y->trip > behind ? y->trip : behind;
		fence = fence && y->node == x->node && !y->away &&
			(!y->home || (x->home && x->op == ACP_OP_COPY));
	}
	if (x->node == -1)
		return behind;
	return behind > trips && fence ? behind : behind + 1;
}

static bool chain_broken(acp_handle_t order)
{
	uint64_t t, last = handle_ticket(order);

	if (!quiet_now || order == (acp_handle_t)ACP_HANDLE_NULL)
		return false;
	for (t = chain_since; t < last && t < completed;)
		if (++t + DEPTH <= newest || slot(t)->status)
			return true;
	return false;
}

static bool local_at_once(struct fake_access *x, acp_handle_t order)
{
	if (x->order > completed || chain_broken(order) || !near(x->src) || !near(x->dst))
		return false;
	x->status = fake_read_source(x, FAKE_ALL);
	if (!x->status)
		x->status = fake_write_destination(x, FAKE_ALL);
	free(x->data);
	x->data = NULL;
	return !x->status;
}

static acp_handle_t issue(struct fake_access *x, acp_handle_t order)
{
	acp_handle_t handle;
	bool local;

	if (!libacp_in())
		return ACP_HANDLE_NULL;
	fake_pause(0);
	pthread_mutex_lock(&lock);
	accesses++;
	if (accesses == die_at && draw() % 2)
		die();
	x->order = handle_ticket(order);
	x->quiet = quiet_now;
	local = local_at_once(x, order);
	if (!local) {
		place_effects(x);
		remote_accesses += x->node != -1;
		x->status = 0;
		if (newest - completed == DEPTH / 2)
			wait_for(completed + 1);
		if (chain_broken(order)) {
			pthread_mutex_unlock(&lock);
			return ACP_HANDLE_NULL;
		}
		x->seen = completed;
		x->trip = trip_of(x);
		newest++;
		if (newest > DEPTH && slot(newest)->status && slot(newest)->quiet) {
			lost[lost_count % DEPTH].ticket = newest - DEPTH;
			lost[lost_count++ % DEPTH].status = slot(newest)->status;
		}
		*slot(newest) = *x;
		pthread_cond_broadcast(&changed);
	}
	if (accesses == die_at)
		die();
	handle = make_handle(newest, local);
	pthread_mutex_unlock(&lock);
	return handle;
}

acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order)
{
	if (!size && libacp_in()) {	/* addresses are ignored */
		dst = acp_query_starter_ga(fake_rank);
		src = dst;
	}
	return issue(&(struct fake_access){
		.op = ACP_OP_COPY, .dst = dst, .src = src, .size = size,
	}, order);
}

acp_handle_t acp_cas4(acp_ga_t dst, acp_ga_t src, uint32_t oldval, uint32_t newval,
		      acp_handle_t order)
{
	return issue(&(struct fake_access){ .op = ACP_OP_CAS4, .dst = dst, .src = src, .size = 4,
				       .a = oldval, .b = newval }, order);
}

acp_handle_t acp_cas8(acp_ga_t dst, acp_ga_t src, uint64_t oldval, uint64_t newval,
		      acp_handle_t order)
{
	return issue(&(struct fake_access){ .op = ACP_OP_CAS8, .dst = dst, .src = src, .size = 8,
				       .a = oldval, .b = newval }, order);
}

#define ATOMIC_OF(name, op_, width, bits)						\
	acp_handle_t acp_##name##width(acp_ga_t dst, acp_ga_t src, uint##bits##_t value,	\
				       acp_handle_t order)				\
	{										\
		return issue(&(struct fake_access){					\
			.op = ACP_OP_##op_##width, .dst = dst, .src = src,		\
			.size = width, .a = value,					\
		}, order);								\
	}

ATOMIC_OF(swap, SWAP, 4, 32)
ATOMIC_OF(swap, SWAP, 8, 64)
ATOMIC_OF(add, ADD, 4, 32)
ATOMIC_OF(add, ADD, 8, 64)
ATOMIC_OF(xor, XOR, 4, 32)
ATOMIC_OF(xor, XOR, 8, 64)
ATOMIC_OF(or, OR, 4, 32)
ATOMIC_OF(or, OR, 8, 64)
ATOMIC_OF(and, AND, 4, 32)
ATOMIC_OF(and, AND, 8, 64)

/* ---- Completion ---- */

/* This rank has seen the completion of a ticket; called with the lock held. */
static void saw(uint64_t ticket)
{
	uint64_t t;

	for (t = ticket > DEPTH / 2 ? ticket - DEPTH / 2 : 1; t <= ticket; t++)
		if (slot(t)->trip > trips)
			trips = slot(t)->trip;
}

static int status_of(acp_handle_t handle)
{
	uint64_t ticket = (uint64_t)handle >> 1;

	if (handle <= 0 || ticket > newest)
		return ACPX_EOP;
	if (handle & 1)
		return 0;
	if (ticket > completed)
		return ACPX_EPENDING;
	return ticket + DEPTH / 2 <= newest ? ACPX_EUNKNOWN : slot(ticket)->status;
}

static void wait_and_see(acp_handle_t handle)
{
	uint64_t ticket;

	pthread_mutex_lock(&lock);
	ticket = handle_ticket(handle);
	wait_for(ticket);
	saw(ticket);
	pthread_mutex_unlock(&lock);
}

void acp_complete(acp_handle_t handle)
{
	if (!libacp_in() || handle == (acp_handle_t)ACP_HANDLE_NULL)
		return;
	wait_and_see(handle);
	pthread_mutex_lock(&lock);
	if (failed != failed_known && fake_errors_abort())
		FAIL("rank %d: acp_complete would have ended the job: an access failed", fake_rank);
	failed_known = failed;
	pthread_mutex_unlock(&lock);
}

int acp_inquire(acp_handle_t handle)
{
	uint64_t ticket;
	int result = 0;

	if (!libacp_in())
		return 0;
	fake_pause(0);
	pthread_mutex_lock(&lock);
	ticket = handle_ticket(handle);
	result = ticket > completed;
	if (!result)
		saw(ticket);
	pthread_mutex_unlock(&lock);
	return result;
}

int acpx_status(acp_handle_t handle)
{
	int status;

	if (!libacp_in())
		return ACPX_EABORT;
	fake_pause(0);
	pthread_mutex_lock(&lock);
	status = status_of(handle);
	pthread_mutex_unlock(&lock);
	return status;
}

const char *acpx_strerror(int status)
{
	return status ? "failed" : "success";
}

bool libacp_quiet(bool quiet)
{
	bool former = quiet_now;

	quiet_now = quiet;
	chain_since = UINT64_MAX;
	return former;
}

static int lost_status(uint64_t ticket)
{
	int status = 0;
	unsigned int i;

	pthread_mutex_lock(&lock);
	if (ticket + DEPTH > newest)
		status = slot(ticket)->status;
	for (i = 0; i < DEPTH; i++)
		if (lost[i].ticket == ticket)
			status = lost[i].status;
	pthread_mutex_unlock(&lock);
	return status;
}

void libacp_chain(void)
{
	pthread_mutex_lock(&lock);
	chain_since = newest;
	pthread_mutex_unlock(&lock);
}

int libacp_ended(acp_handle_t handle)
{
	int status = handle == (acp_handle_t)ACP_HANDLE_NULL ? ACPX_EABORT : acpx_status(handle);

	if (status == ACPX_EUNKNOWN)
		status = lost_status((uint64_t)handle >> 1);

	switch (status) {
	case 0:
		return 0;
	case ACPX_EOP:
	case ACPX_EALIGN:
		return -EINVAL;
	case ACPX_EGA:
	case ACPX_ESTAG:
	case ACPX_ERANGE:
		return -EFAULT;
	case ACPX_EACCESS:
		return -EACCES;
	case ACPX_ERANK:
		return -EHOSTDOWN;
	case ACPX_ENOMEM:
		return -ENOMEM;
	case ACPX_ETIMEOUT:
		return -ETIMEDOUT;
	case ACPX_EPEER:
		return -ECONNRESET;
	case ACPX_EROUTE:
		return -EHOSTUNREACH;
	case ACPX_EABORT:
		return -ECANCELED;
	default:
		return -EIO;
	}
}

int libacp_finish(acp_handle_t handle)
{
	if (libacp_in() && handle != (acp_handle_t)ACP_HANDLE_NULL)
		wait_and_see(handle);
	return libacp_ended(handle);
}
