// SPDX-License-Identifier: MIT
/* How two ends find each other: see meet.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "libacp.h"
#include "meet.h"
#include "middle.h"

#define US		1000ull		/* ns */
#define MS		1000000ull
#define TRIES		8		/* words of a library page, before a pause */
#define PAUSE_MIN	(100 * US)	/* before trying again to place a letter, doubling */
#define PAUSE_MAX	(20 * MS)
#define CHECK_NS	(10 * MS)	/* between questions whether partners are there */
#define PROBE_NS	(500 * MS)	/* between accesses that ask a silent one */
#define SPIN_NS		(1 * MS)	/* a wait looks so long before it sleeps */
#define GRACE_NS	(2000 * MS)	/* what a dead partner had under way has ended then */
#define DOUBT_NS	(30000 * MS)	/* to find out whether a lost one is dead */
#define SLEEP_MIN	(20 * US)
#define SLEEP_MAX	(500 * US)
#define LOOKS		32		/* looks between two looks at the clock */
#define PLACES		16

/* A rank that this process has, or had, an end with. */
struct libacp_partner {
	struct libacp_partner *next;
	int rank;
	uint64_t opened[LIBACP_KINDS][2];	/* ends so far, receiving and sending */
	int state;			/* ACPX_PEER_, when last looked at */
	uint32_t losses;		/* how often it was lost */
	bool dead;			/* it will not be back */
	bool waited;			/* a busy end waits for it */
	uint64_t leaving;		/* as in its page, when last probed */
	uint64_t probe_at;		/* ns, 0: not waited for */
	struct libacp_offer *probe;	/* under way to here, NULL: none */
	acp_handle_t probing;
	uint32_t probe_losses;		/* when it began */
};

/* What lies in the library page of this rank until somebody collects it, and then here. */
struct letter {
	struct letter *next;
	acp_ga_t from;			/* the block of the sending end */
	struct libacp_offer *place;	/* where its offer comes, NULL: it is there */
	acp_handle_t fetch;
	struct libacp_offer offer;
};

/* Global memory that any fetch can end in, and where former values of atomics go. */
struct desk {
	uint64_t former;
	uint64_t refusal[2];
	struct libacp_offer places[PLACES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool was_quiet;			/* of who holds the lock */
static struct libacp_end *ends, *busy_ends, *gone_ends;
static struct libacp_partner *partners;
static struct letter *letters;
static struct libacp_block desk_block;
static uint32_t places_used;		/* a bit for each place */
static struct libacp_page *page;	/* of this rank */
static uint64_t check_at;		/* ns */
static bool settling;			/* no more ends are opened here */
static bool unread;			/* a letter is there whose offer is not */

void libacp_meet_lock(void)
{
	pthread_mutex_lock(&lock);
	was_quiet = libacp_quiet(true);
}

void libacp_meet_unlock(void)
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

/* ---- The desk and the pages ---- */

static struct desk *desk(void)
{
	return desk_block.memory;
}

static acp_ga_t page_ga(int rank, size_t offset)
{
	const struct acp_ga_layout l = acp_ga_layout((uint32_t)acp_procs());

	return acp_ga_make(&l, (uint32_t)rank, 0, ACP_STAG_LIBRARY, offset);
}

static bool find_page(void)
{
	if (!page && acp_rank() >= 0)
		page = acp_query_address(page_ga(acp_rank(), 0));
	return page;
}

static int open_desk(void)
{
	if (!find_page())
		return -ENOTCONN;
	if (desk_block.memory)
		return 0;
	if (libacp_block_get(&desk_block, sizeof(struct desk)) < 0)
		return -ENOMEM;
	desk()->refusal[0] = LIBACP_REFUSED;
	desk()->refusal[1] = LIBACP_REFUSED;
	return 0;
}

static struct libacp_offer *take_place(void)
{
	unsigned int i;

	for (i = 0; i < PLACES; i++) {
		if (places_used & 1u << i)
			continue;
		places_used |= 1u << i;
		return &desk()->places[i];
	}
	return NULL;
}

static void return_place(const struct libacp_offer *place)
{
	places_used &= ~(1u << (place - desk()->places));
}

static acp_ga_t place_ga(const struct libacp_offer *place)
{
	return desk_block.ga + (uint64_t)((const char *)place - (const char *)desk_block.memory);
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

/* A rank that is back may be the one that it was, but what was under way to it is lost. */
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
	/* Of this node we know it; another node may only be out of reach. */
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
		unread = true;		/* its last letter may be in the page now */
	}
	return_place(p->probe);
	p->probe = NULL;
}

/* Nobody hears of a node's end who does not speak to it: so speak to it. */
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
			      page_ga(p->rank, offsetof(struct libacp_page, leaving)),
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

/* Was the other end lost, though its rank is there?  Anything else may be in what it was. */
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
	else if (end->state == LIBACP_END_MET && !end->gone &&
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

/* ---- The sender's side ---- */

void libacp_end_lose(struct libacp_end *end)
{
	end->state = LIBACP_END_LOST;
	/* The other one may wait for us and ask. */
	__atomic_store_n((uint64_t *)end->block.memory, LIBACP_LOST, __ATOMIC_RELEASE);
}

int libacp_end_ended(struct libacp_end *end, acp_handle_t handle)
{
	int status = acpx_status(handle);

	if (status == ACPX_EPENDING)
		return 0;
	if (!status || (status == ACPX_EUNKNOWN && end->losses == end->partner->losses))
		return 1;
	if (status == ACPX_ERANK)
		end->partner->dead = true;
	libacp_end_lose(end);
	return libacp_ended(handle) < 0 ? libacp_ended(handle) : -EIO;
}

acp_handle_t libacp_end_add(struct libacp_end *end, size_t offset, uint64_t value)
{
	return acp_add8(desk_block.ga + offsetof(struct desk, former), end->there + offset, value,
			ACP_HANDLE_NULL);
}

static struct libacp_offer *own_offer(struct libacp_end *end)
{
	return end->block.memory;
}

/* The next word of the partner's page: taken, if it was 0. */
static void try_letter(struct libacp_end *end)
{
	uint64_t first = (uint64_t)acp_rank() * 7 + end->ordinal;
	size_t word = offsetof(struct libacp_page, letters) +
		      (first + end->tries) % LIBACP_LETTERS * sizeof(uint64_t);

	end->exposed = true;
	own_offer(end)->former = UINT64_MAX;
	end->posting = acp_cas8(end->block.ga + offsetof(struct libacp_offer, former),
				page_ga(end->partner->rank, word), 0, end->block.ga,
				ACP_HANDLE_NULL);
}

static void end_letter(struct libacp_end *end)
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
	end->pause = end->pause ? end->pause * 2 : PAUSE_MIN;
	if (end->pause > PAUSE_MAX)
		end->pause = PAUSE_MAX;
	end->again = libacp_now() + end->pause;
}

static void post(struct libacp_end *end)
{
	if (end->posting == (acp_handle_t)ACP_HANDLE_NULL) {
		if (end->again && libacp_now() < end->again)
			return;
		try_letter(end);
	}
	end_letter(end);
}

static void look_for_answer(struct libacp_end *end)
{
	struct libacp_offer *offer = own_offer(end);

	end->offer.answer[0] = __atomic_load_n(&offer->answer[0], __ATOMIC_ACQUIRE);
	end->offer.answer[1] = __atomic_load_n(&offer->answer[1], __ATOMIC_ACQUIRE);
	if (!end->offer.answer[0] || !end->offer.answer[1])
		return;
	end->there = end->offer.answer[0];
	end->state = LIBACP_END_MET;
	if (end->there == LIBACP_REFUSED) {
		end->exposed = false;
		libacp_end_lose(end);
	}
}

void libacp_end_meet(struct libacp_end *end)
{
	if (end->partner->losses != end->losses)
		libacp_end_lose(end);
	if (end->state != LIBACP_END_ALONE || !end->sending)
		return;
	look_for_answer(end);
	if (end->state == LIBACP_END_ALONE && !end->posted)
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
	/* Of one that has left, everything has arrived. */
	if (!end->exposed || p->leaving == LIBACP_LEFT)
		return LIBACP_GONE;
	if (p->dead)
		return now - end->lost_at < GRACE_NS ? LIBACP_BUSY : LIBACP_GONE;
	return now - end->lost_at < DOUBT_NS ? LIBACP_BUSY : LIBACP_IDLE;
}

/* ---- The receiver's side ---- */

/* From the page into the list; false if it must stay there for now. */
static bool collect(uint64_t *word)
{
	struct letter *l;
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
	l->next = letters;
	letters = l;
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
	return true;
}

/* Fetched?  False if its sender is gone. */
static bool open_letter(struct letter *l)
{
	int status = acpx_status(l->fetch);

	if (status == ACPX_EPENDING)
		return true;
	if (!status)
		l->offer = *l->place;
	return_place(l->place);
	l->place = NULL;
	return status == 0;
}

static struct libacp_end *addressee(const struct letter *l)
{
	int rank = acp_query_rank(l->from);
	struct libacp_end *e;

	for (e = ends; e; e = e->next)
		if (!e->sending && e->state == LIBACP_END_ALONE && e->partner->rank == rank &&
		    e->kind == l->offer.kind && e->ordinal == l->offer.ordinal)
			return e;
	return NULL;
}

/* Is its end not there yet, or no more? */
static bool may_come(const struct letter *l)
{
	const struct libacp_partner *p = find_partner(acp_query_rank(l->from));

	return !settling && l->offer.kind < LIBACP_KINDS &&
	       (!p || l->offer.ordinal > p->opened[l->offer.kind][false]);
}

static void refuse(const struct letter *l)
{
	acp_copy(l->from + offsetof(struct libacp_offer, answer),
		 desk_block.ga + offsetof(struct desk, refusal), sizeof(desk()->refusal),
		 ACP_HANDLE_NULL);
}

/* Give a letter to its end.  True if it is done with. */
static bool deliver(struct letter *l)
{
	struct libacp_end *end;

	if (l->place && !open_letter(l))
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
	end->state = LIBACP_END_MET;
	if (l->offer.state == LIBACP_LOST)
		libacp_end_lose(end);
	libacp_end_wake(end);
	return true;
}

static void read_letters(void)
{
	struct letter **link = &letters, *l;
	unsigned int i;

	unread = false;
	for (i = 0; i < LIBACP_LETTERS && !unread; i++)
		unread = __atomic_load_n(&page->letters[i], __ATOMIC_ACQUIRE) &&
			 !collect(&page->letters[i]);
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

/* A probe that began before an end was opened says nothing about that end. */
static void part_from_probe(struct libacp_partner *p)
{
	if (p->probe)
		end_probe(p);
	if (p->probe)
		p->probe_losses = p->losses - 1;
}

int libacp_end_open(struct libacp_end *end, int partner)
{
	struct libacp_partner *p = open_desk() < 0 ? NULL : find_partner(partner);

	if (!p)
		return -ENOMEM;
	part_from_probe(p);
	check_state(p);
	end->partner = p;
	/* Of a rank that is lost now nothing comes but its being back. */
	end->losses = p->state == ACPX_PEER_DOWN ? p->losses - 1 : p->losses;
	end->ordinal = ++p->opened[end->kind][end->sending];
	end->state = LIBACP_END_ALONE;
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

/* Nothing more is to be expected: the partner has left, or will not write to this end. */
static bool is_left(const struct libacp_end *end)
{
	if (end->state == LIBACP_END_LOST)
		return false;
	if (end->partner->leaving == LIBACP_LEFT)
		return true;
	return end->partner->leaving && end->state == LIBACP_END_ALONE && !end->sending && !unread;
}

/* What arrived before that is looked at first: all has, of a partner that was seen leaving. */
static enum libacp_progress progress(struct libacp_end *end)
{
	bool left = is_left(end);
	enum libacp_progress result = end->gone ? LIBACP_GONE : end->progress(end);

	if (left && result != LIBACP_GONE && end->state != LIBACP_END_LOST) {
		libacp_end_lose(end);
		result = end->progress(end);
	}
	end->gone = result == LIBACP_GONE;
	return end->probe ? LIBACP_BUSY : result;	/* its place is to be given back */
}

void libacp_end_progress(struct libacp_end *end)
{
	if (progress(end) != LIBACP_IDLE)
		libacp_end_wake(end);
}

void libacp_meet_progress(void)
{
	struct libacp_end **link = &busy_ends, *end;

	if (!desk_block.memory)
		return;
	read_letters();
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

/* ---- Waiting ---- */

static bool alone_on_cpu(void)
{
	static int known;		/* 1: no, 2: yes */
	cpu_set_t cpus;

	if (!__atomic_load_n(&known, __ATOMIC_RELAXED))
		__atomic_store_n(&known, 1 + (sched_getaffinity(0, sizeof(cpus), &cpus) == 0 &&
					      CPU_COUNT(&cpus) == 1), __ATOMIC_RELAXED);
	return __atomic_load_n(&known, __ATOMIC_RELAXED) == 2;
}

static void pause_cpu(void)
{
#if __has_builtin(__builtin_ia32_pause)
	__builtin_ia32_pause();
#endif
}

/* Look again at once, for SPIN_NS?  Whoever shares the only processor leaves it to the others. */
static bool spin(struct libacp_patience *p)
{
	if (alone_on_cpu())
		sched_yield();
	else
		pause_cpu();
	/* What comes soon comes before the clock is read, which takes as long as some looks. */
	if (++p->looks % LOOKS)
		return true;
	if (!p->since)
		p->since = libacp_now();
	return libacp_now() - p->since < SPIN_NS;
}

static void wait_for(acp_handle_t access)
{
	bool quiet = libacp_quiet(true);

	libacp_finish(access);
	libacp_quiet(quiet);
}

void libacp_meet_wait(struct libacp_patience *p, acp_handle_t access, bool long_one)
{
	const bool in_the_way = alone_on_cpu();

	if ((p->sleep || in_the_way) && acp_inquire(access)) {
		wait_for(access);
		return;
	}
	if (!p->sleep) {
		if (!(long_one && in_the_way) && spin(p))
			return;
		p->sleep = SLEEP_MIN;
	}
	libacp_sleep(p->sleep);
	p->sleep *= 2;
	if (p->sleep > SLEEP_MAX)
		p->sleep = SLEEP_MAX;
}

/* ---- The end of a rank ---- */

/* All letters are where they shall be. */
static bool all_posted(void)
{
	struct libacp_end *e;

	for (e = ends; e; e = e->next)
		if (e->sending && e->state == LIBACP_END_ALONE && !e->posted)
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
		libacp_meet_lock();
		libacp_meet_progress();
		done = reached();
		libacp_meet_unlock();
		if (done)
			return;
		libacp_meet_wait(&patience, ACP_HANDLE_NULL, false);
	}
}

static bool nothing_under_way(void)
{
	return !acp_inquire(ACP_HANDLE_ALL);
}

static void tell_leaving(uint64_t value)
{
	libacp_meet_lock();
	settling = true;
	check_at = 0;
	if (find_page())
		__atomic_store_n(&page->leaving, value, __ATOMIC_RELEASE);
	libacp_meet_unlock();
}

void libacp_meet_settle(void)
{
	bool used;

	libacp_meet_lock();
	used = desk_block.memory;
	libacp_meet_unlock();
	if (used) {
		wait_until(all_posted);
		tell_leaving(LIBACP_LEAVING);
		wait_until(all_left);
		/* What was done for others has arrived before they see that no more will come. */
		wait_until(nothing_under_way);
	}
	tell_leaving(LIBACP_LEFT);
}

void libacp_meet_forget(void)
{
	struct libacp_partner *p;
	struct letter *l;

	libacp_meet_lock();
	while (ends)
		close_end(ends);
	busy_ends = NULL;
	while ((l = letters)) {
		letters = l->next;
		free(l);
	}
	while ((p = partners)) {
		partners = p->next;
		free(p);
	}
	libacp_block_put(&desk_block);
	places_used = 0;
	page = NULL;
	check_at = 0;
	settling = false;
	unread = false;
	libacp_meet_unlock();
}
