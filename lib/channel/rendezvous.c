// SPDX-License-Identifier: MIT
/* Connection of two ends: see rendezvous.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"
#include "channel/rendezvous.h"
#include "core/internal.h"
#include "core/page.h"
#include "middle/backoff.h"

#define US		1000ull		/* ns */
#define MS		1000000ull
#define TRIES		8		/* words of a library page to try before a pause */
/* pause before a connection request is retried, doubled each time */
#define PAUSE_MIN	(100 * US)
#define PAUSE_MAX	(20 * MS)
#define CHECK_NS	(10 * MS)	/* interval of checks of the states of partners */
#define PROBE_NS	(500 * MS)	/* interval of accesses to a silent partner */
#define GRACE_NS	(2000 * MS)	/* time until accesses of a dead partner have ended */
#define DOUBT_NS	(30000 * MS)	/* time to find out whether a lost partner is dead */
#define PLACES		16

/* A rank to which this process has, or had, an end. */
struct libacp_partner {
	struct libacp_partner *next;
	int rank;
	uint64_t opened[LIBACP_KINDS][2];	/* number of ends so far: receiving, sending */
	int state;			/* ACPX_PEER_, when last checked */
	uint32_t losses;		/* number of times it was lost */
	bool dead;			/* it will not come back */
	bool waited;			/* a busy end waits for it */
	uint64_t leaving;		/* value in its library page at the last probe */
	uint64_t probe_at;		/* ns; 0: not waited for */
	struct libacp_offer *probe;	/* destination of the probe in flight; NULL: none */
	acp_handle_t probing;
	uint32_t probe_losses;		/* value of losses when the probe began */
};

/* A connection request that was collected from the library page of this rank. */
struct connection {
	struct connection *next;
	acp_ga_t from;			/* block of the sending end */
	struct libacp_offer *place;	/* destination of the fetch of the offer; NULL: fetched */
	acp_handle_t fetch;
	struct libacp_offer offer;
};

/* Global memory for small fetches, and for previous values of atomics. */
struct staging {
	uint64_t former;
	uint64_t refusal[2];
	struct libacp_offer places[PLACES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool was_quiet;			/* previous setting of the thread that holds the lock */
static struct libacp_end *ends, *busy_ends, *gone_ends;
static struct libacp_partner *partners;
static struct connection *connections;
static struct libacp_block staging_block;
static uint32_t places_used;		/* bit mask of places */
static struct libacp_page *page;	/* library page of this rank */
static uint64_t check_at;		/* ns */
static bool settling;			/* this rank opens no more ends */
/* a connection request exists whose offer has not been read */
static bool unread;

void libacp_rendezvous_lock(void)
{
	pthread_mutex_lock(&lock);
	was_quiet = libacp_quiet(true);
}

void libacp_rendezvous_unlock(void)
{
	struct libacp_end *gone = gone_ends, *end;

	gone_ends = NULL;
	libacp_quiet(was_quiet);
	pthread_mutex_unlock(&lock);
	while ((end = gone)) {
		gone = end->next;
		end->release(end);
	}
}

/* ---- Staging area and library pages ---- */

static struct staging *staging(void)
{
	return staging_block.memory;
}

static bool find_page(void)
{
	if (!page && acp_rank() >= 0)
		page = acp_query_address(libacp_page_ga(acp_rank(), 0));
	return page;
}

static int open_staging(void)
{
	if (!find_page())
		return -ENOTCONN;
	if (staging_block.memory)
		return 0;
	if (libacp_block_get(&staging_block, sizeof(struct staging)) < 0)
		return -ENOMEM;
	staging()->refusal[0] = LIBACP_REFUSED;
	staging()->refusal[1] = LIBACP_REFUSED;
	return 0;
}

static struct libacp_offer *take_place(void)
{
	unsigned int i;

	for (i = 0; i < PLACES; i++) {
		if (places_used & 1u << i)
			continue;
		places_used |= 1u << i;
		return &staging()->places[i];
	}
	return NULL;
}

static void return_place(const struct libacp_offer *place)
{
	places_used &= ~(1u << (place - staging()->places));
}

static acp_ga_t place_ga(const struct libacp_offer *place)
{
	return staging_block.ga +
	       (uint64_t)((const char *)place - (const char *)staging_block.memory);
}

/* ---- Partners ---- */

static struct libacp_partner *find_partner(int rank)
{
	struct libacp_partner *p = partners;

	while (p && p->rank != rank)
		p = p->next;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->rank = rank;
	p->state = acpx_peer_state(rank);
	p->next = partners;
	partners = p;
	return p;
}

/* A rank that came back may be the same one, but accesses in flight to it were lost. */
static void check_state(struct libacp_partner *p)
{
	int state = acpx_peer_state(p->rank);

	if (state < 0)
		state = ACPX_PEER_DOWN;
	if (state == ACPX_PEER_DOWN && p->state != ACPX_PEER_DOWN)
		p->losses++;
	if (state == ACPX_PEER_BACK && p->state != ACPX_PEER_BACK && p->state != ACPX_PEER_DOWN)
		p->losses++;
	p->state = state;
	/* On this node the kernel knows for certain; another node may only be unreachable. */
	if (state == ACPX_PEER_DOWN && acpx_query_node(p->rank) == acpx_query_node(acp_rank()))
		p->dead = true;
}

static void end_probe(struct libacp_partner *p)
{
	int status = acpx_status(p->probing);

	if (status == ACPX_EPENDING)
		return;
	if (status && status != ACPX_EUNKNOWN) {
		p->losses += p->losses == p->probe_losses;
		p->dead = p->dead || status == ACPX_ERANK;
	} else if (!status && p->probe->state) {
		p->leaving = p->probe->state;
		unread = true;		/* its last connection request may be in the page now */
	}
	return_place(p->probe);
	p->probe = NULL;
}

/* The failure of a node is noticed only by accessing it. */
static void begin_probe(struct libacp_partner *p, uint64_t now)
{
	uint64_t every = settling ? CHECK_NS : PROBE_NS;

	if (!p->probe_at || p->probe_at > now + every)
		p->probe_at = now + every;
	if (now < p->probe_at)
		return;
	p->probe = take_place();
	if (!p->probe)
		return;
	p->probing = acp_copy(place_ga(p->probe),
			      libacp_page_ga(p->rank, offsetof(struct libacp_page, leaving)),
			      sizeof(uint64_t), ACP_HANDLE_NULL);
	p->probe_losses = p->losses;
	p->probe_at = now + every;
}

static void check_partner(struct libacp_partner *p, uint64_t now)
{
	check_state(p);
	if (p->probe)
		end_probe(p);
	else
		begin_probe(p, now);
}

/*
 * Detect that the other end was lost although its rank is alive. Its former memory may contain
 * anything.
 */
static void end_probe_of_end(struct libacp_end *end)
{
	int status = acpx_status(end->probing);

	if (status == ACPX_EPENDING)
		return;
	if (!status && end->probe->state == LIBACP_LOST)
		libacp_end_lose(end);
	return_place(end->probe);
	end->probe = NULL;
}

static void begin_probe_of_end(struct libacp_end *end, uint64_t now)
{
	if (!end->probe_at || end->probe_at > now + PROBE_NS)
		end->probe_at = now + PROBE_NS;
	if (now < end->probe_at)
		return;
	end->probe = take_place();
	if (!end->probe)
		return;
	end->probing = acp_copy(place_ga(end->probe), end->there, sizeof(uint64_t),
				ACP_HANDLE_NULL);
	end->probe_at = now + PROBE_NS;
}

static void check_end(struct libacp_end *end, uint64_t now)
{
	if (end->probe)
		end_probe_of_end(end);
	else if (end->state == LIBACP_END_CONNECTED && !end->gone &&
		 (end->kind == LIBACP_SEGBUF || end->wanted(end)))
		begin_probe_of_end(end, now);
	else
		end->probe_at = 0;
}

static void check_partners(void)
{
	uint64_t now = libacp_now();
	struct libacp_partner *p;
	struct libacp_end *e;

	if (now < check_at)
		return;
	check_at = now + CHECK_NS;
	for (p = partners; p; p = p->next)
		p->waited = p->probe;
	for (e = busy_ends; e; e = e->next_busy) {
		e->partner->waited = true;
		check_end(e, now);
	}
	for (p = partners; p; p = p->next) {
		if (p->waited)
			check_partner(p, now);
		else
			p->probe_at = 0;
	}
}

/* ---- The sending end ---- */

void libacp_end_lose(struct libacp_end *end)
{
	end->state = LIBACP_END_LOST;
	/* The other end may wait for us and probe this word. */
	__atomic_store_n((uint64_t *)end->block.memory, LIBACP_LOST, __ATOMIC_RELEASE);
}

int libacp_end_ended(struct libacp_end *end, acp_handle_t handle)
{
	int error;

	if (acpx_status(handle) == ACPX_EPENDING)
		return 0;
	error = libacp_ended(handle);
	if (!error)
		return 1;
	if (error == -EHOSTDOWN)
		end->partner->dead = true;
	libacp_end_lose(end);
	return error;
}

acp_handle_t libacp_end_add(struct libacp_end *end, size_t offset, uint64_t value)
{
	return acp_add8(staging_block.ga + offsetof(struct staging, former), end->there + offset,
			value, ACP_HANDLE_NULL);
}

static struct libacp_offer *own_offer(struct libacp_end *end)
{
	return end->block.memory;
}

/* Try to store the connection request in the next word of the page of the partner, if it is 0. */
static void try_connect(struct libacp_end *end)
{
	uint64_t first = (uint64_t)acp_rank() * 7 + end->ordinal;
	size_t word = offsetof(struct libacp_page, connections) +
		      (first + end->tries) % LIBACP_CONNECTIONS * sizeof(uint64_t);

	end->exposed = true;
	own_offer(end)->former = UINT64_MAX;
	end->posting = acp_cas8(end->block.ga + offsetof(struct libacp_offer, former),
				libacp_page_ga(end->partner->rank, word), 0, end->block.ga,
				ACP_HANDLE_NULL);
}

static void end_connect(struct libacp_end *end)
{
	int result = libacp_end_ended(end, end->posting);

	if (result == 0)
		return;
	end->posting = ACP_HANDLE_NULL;
	if (result < 0)
		return;
	if (__atomic_load_n(&own_offer(end)->former, __ATOMIC_ACQUIRE) == 0) {
		end->posted = true;
		return;
	}
	if (++end->tries % TRIES)
		return;
	end->again = libacp_now() + libacp_backoff(&end->pause, PAUSE_MIN, PAUSE_MAX);
}

static void post(struct libacp_end *end)
{
	if (end->posting == (acp_handle_t)ACP_HANDLE_NULL) {
		if (end->again && libacp_now() < end->again)
			return;
		try_connect(end);
	}
	end_connect(end);
}

static void look_for_answer(struct libacp_end *end)
{
	struct libacp_offer *offer = own_offer(end);

	end->offer.answer[0] = __atomic_load_n(&offer->answer[0], __ATOMIC_ACQUIRE);
	end->offer.answer[1] = __atomic_load_n(&offer->answer[1], __ATOMIC_ACQUIRE);
	if (!end->offer.answer[0] || !end->offer.answer[1])
		return;
	end->there = end->offer.answer[0];
	end->state = LIBACP_END_CONNECTED;
	if (end->there == LIBACP_REFUSED) {
		end->exposed = false;
		libacp_end_lose(end);
	}
}

void libacp_end_connect(struct libacp_end *end)
{
	if (end->partner->losses != end->losses)
		libacp_end_lose(end);
	if (end->state != LIBACP_END_OPEN || !end->sending)
		return;
	look_for_answer(end);
	if (end->state == LIBACP_END_OPEN && !end->posted)
		post(end);
}

bool libacp_end_is_there(struct libacp_end *end)
{
	check_state(end->partner);
	if (end->partner->losses != end->losses)
		libacp_end_lose(end);
	return end->state != LIBACP_END_LOST;
}

enum libacp_progress libacp_end_linger(struct libacp_end *end)
{
	const struct libacp_partner *p = end->partner;
	uint64_t now = libacp_now();

	if (!end->lost_at)
		end->lost_at = now;
	/* All accesses of a partner that has left have arrived. */
	if (!end->exposed || p->leaving == LIBACP_LEFT)
		return LIBACP_GONE;
	if (p->dead)
		return now - end->lost_at < GRACE_NS ? LIBACP_BUSY : LIBACP_GONE;
	return now - end->lost_at < DOUBT_NS ? LIBACP_BUSY : LIBACP_IDLE;
}

/* ---- The receiving end ---- */

/* Move a request from the page to the list. False if it must stay in the page for now. */
static bool collect(uint64_t *word)
{
	struct connection *l;
	acp_ga_t from = __atomic_load_n(word, __ATOMIC_ACQUIRE);

	if (!from || acp_query_rank(from) < 0) {
		__atomic_store_n(word, 0, __ATOMIC_RELEASE);
		return true;
	}
	l = calloc(1, sizeof(*l));
	if (!l)
		return false;
	l->place = take_place();
	if (!l->place) {
		free(l);
		return false;
	}
	l->from = from;
	l->fetch = acp_copy(place_ga(l->place), from, sizeof(*l->place), ACP_HANDLE_NULL);
	l->next = connections;
	connections = l;
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
	return true;
}

/* Check the fetch of the offer. False if the sender is gone. */
static bool open_connection(struct connection *l)
{
	int error;

	if (acpx_status(l->fetch) == ACPX_EPENDING)
		return true;
	error = libacp_ended(l->fetch);
	if (!error)
		l->offer = *l->place;
	return_place(l->place);
	l->place = NULL;
	return error == 0;
}

static struct libacp_end *addressee(const struct connection *l)
{
	int rank = acp_query_rank(l->from);
	struct libacp_end *e;

	for (e = ends; e; e = e->next)
		if (!e->sending && e->state == LIBACP_END_OPEN && e->partner->rank == rank &&
		    e->kind == l->offer.kind && e->ordinal == l->offer.ordinal)
			return e;
	return NULL;
}

/* True if the end for the request may still be opened. */
static bool may_come(const struct connection *l)
{
	const struct libacp_partner *p = find_partner(acp_query_rank(l->from));

	return !settling && l->offer.kind < LIBACP_KINDS &&
	       (!p || l->offer.ordinal > p->opened[l->offer.kind][false]);
}

static void refuse(const struct connection *l)
{
	acp_copy(l->from + offsetof(struct libacp_offer, answer),
		 staging_block.ga + offsetof(struct staging, refusal), sizeof(staging()->refusal),
		 ACP_HANDLE_NULL);
}

/* Assign a connection request to its end. True if the request is finished. */
static bool deliver(struct connection *l)
{
	struct libacp_end *end;

	if (l->place && !open_connection(l))
		return true;
	if (l->place)
		return false;
	end = addressee(l);
	if (!end && !may_come(l)) {
		refuse(l);
		return true;
	}
	if (!end)
		return false;
	end->there = l->from;
	end->offer = l->offer;
	end->state = LIBACP_END_CONNECTED;
	if (l->offer.state == LIBACP_LOST)
		libacp_end_lose(end);
	libacp_end_wake(end);
	return true;
}

static void read_connections(void)
{
	struct connection **link = &connections, *l;
	unsigned int i;

	unread = false;
	for (i = 0; i < LIBACP_CONNECTIONS && !unread; i++)
		unread = __atomic_load_n(&page->connections[i], __ATOMIC_ACQUIRE) &&
			 !collect(&page->connections[i]);
	while ((l = *link)) {
		if (deliver(l)) {
			*link = l->next;
			free(l);
		} else {
			unread = unread || l->place;
			link = &l->next;
		}
	}
}

/* ---- Ends ---- */

/* A probe that began before the end was opened tells nothing about that end. */
static void part_from_probe(struct libacp_partner *p)
{
	if (p->probe)
		end_probe(p);
	if (p->probe)
		p->probe_losses = p->losses - 1;
}

int libacp_end_open(struct libacp_end *end, int partner)
{
	struct libacp_partner *p = open_staging() < 0 ? NULL : find_partner(partner);

	if (!p)
		return -ENOMEM;
	part_from_probe(p);
	check_state(p);
	end->partner = p;
	/*
	 * For a rank that is lost now, the next change is that it comes back, which makes this end
	 * lost.
	 */
	end->losses = p->state == ACPX_PEER_DOWN ? p->losses - 1 : p->losses;
	end->ordinal = ++p->opened[end->kind][end->sending];
	end->state = LIBACP_END_OPEN;
	if (end->sending) {
		own_offer(end)->kind = end->kind;
		own_offer(end)->ordinal = end->ordinal;
	}
	end->next = ends;
	end->link = &ends;
	if (ends)
		ends->link = &end->next;
	ends = end;
	libacp_end_wake(end);
	return 0;
}

void libacp_end_wake(struct libacp_end *end)
{
	if (end->busy)
		return;
	end->busy = true;
	end->next_busy = busy_ends;
	busy_ends = end;
}

static void close_end(struct libacp_end *end)
{
	*end->link = end->next;
	if (end->next)
		end->next->link = end->link;
	end->next = gone_ends;
	gone_ends = end;
}

/* True if nothing more is to be expected: the partner has left, or will not connect to this end. */
static bool is_left(const struct libacp_end *end)
{
	if (end->state == LIBACP_END_LOST)
		return false;
	if (end->partner->leaving == LIBACP_LEFT)
		return true;
	return end->partner->leaving && end->state == LIBACP_END_OPEN && !end->sending && !unread;
}

/*
 * The end is not needed any more. Its block must not be freed before the accesses of this end have
 * completed, because they use the block: a handle issued now completes after all of them.
 */
static bool may_go(struct libacp_end *end)
{
	if (!end->gone)
		end->last = acp_copy(staging_block.ga, staging_block.ga, 0, ACP_HANDLE_NULL);
	end->gone = true;
	return !acp_inquire(end->last);
}

/*
 * Process what has arrived before handling the departure: everything of a partner that was seen
 * leaving has arrived.
 */
static enum libacp_progress progress(struct libacp_end *end)
{
	bool left = is_left(end);
	enum libacp_progress result = end->gone ? LIBACP_GONE : end->progress(end);

	if (left && result != LIBACP_GONE && end->state != LIBACP_END_LOST) {
		libacp_end_lose(end);
		result = end->progress(end);
	}
	if (result == LIBACP_GONE && !may_go(end))
		return LIBACP_BUSY;
	return end->probe ? LIBACP_BUSY : result;	/* its place must be returned */
}

void libacp_end_progress(struct libacp_end *end)
{
	if (progress(end) != LIBACP_IDLE)
		libacp_end_wake(end);
}

void libacp_rendezvous_progress(void)
{
	struct libacp_end **link = &busy_ends, *end;

	if (!staging_block.memory)
		return;
	read_connections();
	while ((end = *link)) {
		enum libacp_progress result = progress(end);

		if (result == LIBACP_BUSY) {
			link = &end->next_busy;
			continue;
		}
		*link = end->next_busy;
		end->busy = false;
		if (result == LIBACP_GONE)
			close_end(end);
	}
	check_partners();
}

/* ---- Leaving the job ---- */

/* True if all connection requests are in the pages of their receivers. */
static bool all_posted(void)
{
	struct libacp_end *e;

	for (e = ends; e; e = e->next)
		if (e->sending && e->state == LIBACP_END_OPEN && !e->posted)
			return false;
	return true;
}

static bool all_left(void)
{
	struct libacp_end *e;
	bool all = true;

	for (e = ends; e; e = e->next) {
		if (!e->wanted(e))
			e->leave(e);
		all = all && !e->wanted(e);
	}
	return all;
}

static void wait_until(bool (*reached)(void))
{
	struct libacp_patience patience = { 0 };
	bool done;

	for (;;) {
		libacp_rendezvous_lock();
		libacp_rendezvous_progress();
		done = reached();
		libacp_rendezvous_unlock();
		if (done)
			return;
		libacp_rendezvous_wait(&patience, ACP_HANDLE_NULL, false);
	}
}

static bool nothing_under_way(void)
{
	return !acp_inquire(ACP_HANDLE_ALL);
}

static void tell_leaving(uint64_t value)
{
	libacp_rendezvous_lock();
	settling = true;
	check_at = 0;
	if (find_page())
		__atomic_store_n(&page->leaving, value, __ATOMIC_RELEASE);
	libacp_rendezvous_unlock();
}

void libacp_rendezvous_settle(void)
{
	bool used;

	libacp_rendezvous_lock();
	used = staging_block.memory;
	libacp_rendezvous_unlock();
	if (used) {
		wait_until(all_posted);
		tell_leaving(LIBACP_LEAVING);
		wait_until(all_left);
		/*
		 * Accesses must have arrived before the other ranks see that no more will follow.
		 */
		wait_until(nothing_under_way);
	}
	tell_leaving(LIBACP_LEFT);
}

void libacp_rendezvous_forget(void)
{
	struct libacp_partner *p;
	struct connection *l;

	libacp_rendezvous_lock();
	while (ends)
		close_end(ends);
	busy_ends = NULL;
	while ((l = connections)) {
		connections = l->next;
		free(l);
	}
	while ((p = partners)) {
		partners = p->next;
		free(p);
	}
	libacp_block_put(&staging_block);
	places_used = 0;
	page = NULL;
	check_at = 0;
	settling = false;
	unread = false;
	libacp_rendezvous_unlock();
}
