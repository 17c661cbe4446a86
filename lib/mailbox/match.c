// SPDX-License-Identifier: MIT
/*
 * Match lists: posted receives, which the kernel matches with messages when they arrive
 * (ACP_IOC_MATCH). It writes a message to the buffer of its receive, or keeps it in the memory of
 * the list, and writes what has become of a receive to its struct acp_result.
 *
 * A block in the heap has the mailbox that senders name, the results, and the memory for messages.
 * The word "room" of the mailbox counts messages that were kept: a thread that looks for one
 * watches it. A thread that waits for a receive watches the state in its result. No thread holds
 * the lock of a list during a system call.
 *
 * Other ranks can write to the block. Everything in it is read once and checked; a damaged result
 * fails its receive.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/internal.h"
#include "core/limits.h"
#include "core/mem.h"
#include "core/process.h"
#include "core/wait_until.h"
#include "mailbox/memory.h"

_Static_assert(sizeof(struct acp_mailbox) == 64 && sizeof(struct acp_result) == 64,
	       "each has a cache line of its own");
_Static_assert(sizeof(((struct acpx_match_limits *)0)->mask) <=
	       sizeof(((struct acp_match *)0)->mask), "acp_abi.h");

#define MASKS_MAX	(sizeof(((struct acpx_match_limits *)0)->mask) / sizeof(uint64_t))

/* A posted receive, or a message that acpx_mprobe() has taken; its index is that of its result. */
struct acpx_receive {
	struct acpx_match *match;	/* constant */
	struct acpx_receive *next;	/* guarded by the lock: in the list that it is in */
	bool posted;
	/* posted: where its message goes */
	void *buffer;
	size_t room;
	/* taken: the message, and its number for the kernel */
	const void *data;
	size_t size;
	uint32_t number;
};

struct acpx_match {
	pthread_mutex_t lock;
	struct acpx_receive *unused;	/* guarded by the lock, as the following one */
	struct acpx_receive *taken;
	unsigned int waiters;		/* threads that wait; atomic */
	/* constant */
	struct libacp_memory memory;
	struct acp_mailbox *box;
	struct acp_result *results;
	const char *messages;		/* the memory for messages */
	uint64_t bytes;			/* its size */
	uint32_t list;
	struct acpx_receive receives[];
};

/* ---- Access to a list ---- */

/* Return 0 or -errno; leave() must follow if it is 0. */
static int enter(const struct acpx_match *m)
{
	return m ? libacp_memory_enter(&m->memory) : -EINVAL;
}

/* Return the result. */
static int64_t leave(int64_t result)
{
	libacp_watch_leave();
	if (result == -ECANCELED)
		libacp_job_aborted();
	return result;
}

/* Return 0 or -errno. */
static int call(unsigned long request, void *argument)
{
	while (ioctl(libacp.fd, request, argument) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int unpost(const struct acpx_match *m, uint32_t what, uint32_t number)
{
	struct acp_unpost u = {
		.size = sizeof(u), .list = m->list, .what = what, .number = number,
	};

	return call(ACP_IOC_UNPOST, &u);
}

/* ---- Receives ---- */

/* Take a receive that is not in use; NULL: there is none. */
static struct acpx_receive *reserve(struct acpx_match *m)
{
	struct acpx_receive *r;

	pthread_mutex_lock(&m->lock);
	r = m->unused;
	if (r)
		m->unused = r->next;
	pthread_mutex_unlock(&m->lock);
	return r;
}

static void release(struct acpx_receive *r)
{
	r->posted = false;
	pthread_mutex_lock(&r->match->lock);
	r->next = r->match->unused;
	r->match->unused = r;
	pthread_mutex_unlock(&r->match->lock);
}

static uint32_t index_of(const struct acpx_receive *r)
{
	return (uint32_t)(r - r->match->receives);
}

static uint64_t *state_of(const struct acpx_receive *r)
{
	return (uint64_t *)(void *)&r->match->results[index_of(r)].state;
}

/* Read a result after its state, which was read with acquire. */
static struct acp_result result_of(const struct acpx_receive *r, uint64_t state)
{
	const volatile struct acp_result *seen = &r->match->results[index_of(r)];

	return (struct acp_result){
		.state = state, .size = seen->size, .tag = seen->tag, .rank = seen->rank,
		.message = seen->message, .at = seen->at, .status = seen->status,
	};
}

/* Return where a kept message is, or NULL if it cannot be there. */
static const char *kept_at(const struct acpx_match *m, uint64_t at, uint64_t size)
{
	return at <= m->bytes && size <= m->bytes - at ? m->messages + at : NULL;
}

/* Set what a call looks for. Returns 0 or -EINVAL. */
static int look_for(struct acp_post *p, const struct acpx_match *m, int rank, uint64_t tag,
		    uint64_t ignore)
{
	*p = (struct acp_post){
		.size = sizeof(*p), .list = m->list, .tag = tag, .ignore = ignore,
	};
	if (rank == ACPX_ANY_RANK)
		p->flags = ACP_POST_ANY_RANK;
	else if (rank >= 0 && (uint32_t)rank < libacp.nprocs)
		p->rank = (uint32_t)rank;
	else
		return -EINVAL;
	return 0;
}

/* Post a receive. Returns 0 or -errno. */
static int post(struct acpx_receive *r, struct acp_post *p)
{
	int error;

	p->result = index_of(r);
	*state_of(r) = 0;
	error = call(ACP_IOC_POST, p);
	if (error != -EBUSY)
		return error;
	/* It is not in use, so only damaged results can lead to this: it was not at its end. */
	unpost(r->match, ACP_UNPOST_RECEIVE, p->result);
	error = call(ACP_IOC_POST, p);
	return error == -EBUSY ? -EBADMSG : error;
}

static int post_unused(struct acpx_match *m, struct acp_post *p, void *buffer,
		       struct acpx_receive **receive)
{
	struct acpx_receive *r = reserve(m);
	int error;

	if (!r)
		return -ENOSPC;
	r->buffer = buffer;
	r->room = p->room;
	r->posted = true;
	error = post(r, p);
	if (error)
		release(r);
	else
		*receive = r;
	return error;
}

int acpx_post(acpx_match_t match, int rank, uint64_t tag, uint64_t ignore, acp_ga_t buffer,
	      size_t room, acpx_receive_t *receive)
{
	void *address = NULL;
	struct acp_post p;
	int error = receive ? enter(match) : -EINVAL;

	if (error)
		return error;
	error = look_for(&p, match, rank, tag, ignore);
	if (!error && room) {
		p.buffer = buffer;
		p.room = room;
		address = libacp_mem_find(buffer, room, true);
		if (!address)
			error = -EINVAL;
	}
	if (!error)
		error = post_unused(match, &p, address, receive);
	return (int)leave(error);
}

/* ---- Waiting ---- */

/* Wait until a function finds something; the caller has entered. */
static int64_t wait_for(struct acpx_match *m, libacp_find_t *find, void *arg, uint64_t timeout_ns)
{
	const void *word;
	int64_t found = find(arg, false, &word);

	if (found != -EAGAIN)
		return found;
	if (!timeout_ns)
		return -ETIMEDOUT;
	__atomic_fetch_add(&m->waiters, 1, __ATOMIC_RELAXED);
	found = libacp_watch_find(find, arg, timeout_ns);
	__atomic_fetch_sub(&m->waiters, 1, __ATOMIC_RELEASE);
	return found;
}

/* Look for the state of a receive, which is more than 0; of type libacp_find_t. */
static int64_t find_state(void *arg, bool sleeps, const void **word)
{
	const uint64_t *state = state_of(arg);
	uint64_t seen = __atomic_load_n(state, __ATOMIC_ACQUIRE);

	(void)sleeps;
	*word = state;
	if (seen > ACP_RESULT_FAILED)
		return -EBADMSG;
	return seen ? (int64_t)seen : -EAGAIN;
}

/* Copy a kept message to the buffer, and release it. Returns its size, or -errno. */
static int64_t copy_kept(const struct acpx_receive *r, const struct acp_result *result)
{
	const char *data = kept_at(r->match, result->at, result->size);
	const size_t size = result->size < r->room ? result->size : r->room;
	int error;

	if (data && size)
		memcpy(r->buffer, data, size);
	error = unpost(r->match, ACP_UNPOST_MESSAGE, result->message);
	return data && error != -ENOENT ? (int64_t)result->size : -EBADMSG;
}

static int error_of(uint64_t status)
{
	switch (status) {
	case ACP_ST_PEER:
	case ACP_ST_TIMEOUT:
	case ACP_ST_ROUTE:
	case ACP_ST_RANK:
	case ACP_ST_ABORT:
		return -ECONNRESET;
	case ACP_ST_NOMEM:
		return -ENOMEM;
	default:
		return -EFAULT;
	}
}

/* End a receive that has this state. Returns the size of its message, or -errno. */
static int64_t finish(const struct acpx_receive *r, uint64_t state, struct acpx_message *message)
{
	const struct acp_result result = result_of(r, state);
	int64_t found;

	if (state == ACP_RESULT_KEPT)
		found = copy_kept(r, &result);
	else
		found = state == ACP_RESULT_DONE ? (int64_t)result.size : error_of(result.status);
	if (result.rank >= libacp.nprocs || result.size > INT64_MAX)
		return -EBADMSG;
	if (found >= 0 && message)
		*message = (struct acpx_message){
			.data = r->buffer, .size = result.size, .tag = result.tag,
			.rank = (int)result.rank,
		};
	return found;
}

int64_t acpx_receive_wait(acpx_receive_t receive, struct acpx_message *message,
			  uint64_t timeout_ns)
{
	int64_t found = enter(receive ? receive->match : NULL);

	if (found)
		return found;
	if (!receive->posted)
		return leave(-EINVAL);
	found = wait_for(receive->match, find_state, receive, timeout_ns);
	if (found == -EBADMSG)
		unpost(receive->match, ACP_UNPOST_RECEIVE, index_of(receive));
	if (found > 0 || found == -EBADMSG) {
		if (found > 0)
			found = finish(receive, (uint64_t)found, message);
		release(receive);
	}
	return leave(found);
}

int acpx_receive_cancel(acpx_receive_t receive)
{
	int error = enter(receive ? receive->match : NULL);

	if (error)
		return error;
	if (!receive->posted)
		return (int)leave(-EINVAL);
	error = unpost(receive->match, ACP_UNPOST_RECEIVE, index_of(receive));
	if (!error)
		release(receive);
	return (int)leave(error == -ENOENT ? -EBUSY : error);
}

/* ---- poll() ---- */

/* Has it ended, as far as acpx_receive_wait() is concerned? Of type libacp_find_t. */
static int64_t find_ended(void *arg, bool sleeps, const void **word)
{
	return find_state(arg, sleeps, word) == -EAGAIN ? -EAGAIN : 1;
}

/* May these receives be waited for? The caller has entered. Returns 0 or -errno. */
static int check_all(const acpx_receive_t *receives, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (!receives || !receives[i])
			return -EINVAL;
		if (receives[i]->match->memory.joined != libacp.joins)
			return -ENOTCONN;
		if (!receives[i]->posted)
			return -EINVAL;
	}
	return 0;
}

int acpx_receive_arm(const acpx_receive_t *receives, size_t count)
{
	int64_t found;

	if (!libacp_watch_enter())
		return -ENOTCONN;
	found = check_all(receives, count);
	if (!found)
		found = libacp_watch_arm(find_ended, (void *const *)(const void *)receives, count);
	leave(found);
	return found == -EAGAIN ? 0 : found ? (int)found : 1;
}

/* ---- Kept messages ---- */

/* What a thread looks for among the kept messages. */
struct search {
	struct acpx_match *match;
	struct acp_post post;
	struct acpx_receive *receive;	/* to take the message; NULL: only look */
	uint64_t kept;			/* how many had been kept at the last look */
	bool looked;
};

/*
 * Look for a kept message; of type libacp_find_t. Returns 0 or -errno. A thread that polls does so
 * without system calls. Before each sleep it looks in any case: what it finds also depends on what
 * becomes of older messages that are still arriving.
 */
static int64_t find_kept(void *arg, bool sleeps, const void **word)
{
	struct search *s = arg;
	const uint64_t *kept = (const uint64_t *)(const void *)&s->match->box->room;
	/* Before the look: a message that is kept later is looked for again. */
	const uint64_t seen = __atomic_load_n(kept, __ATOMIC_ACQUIRE);

	*word = kept;
	if (s->looked && seen == s->kept && !sleeps)
		return -EAGAIN;
	s->looked = true;
	s->kept = seen;
	return s->receive ? post(s->receive, &s->post) : call(ACP_IOC_POST, &s->post);
}

/* The kernel reports it, not memory that others can write to. */
static void describe(struct acpx_message *message, const struct acp_post *p, const void *data)
{
	*message = (struct acpx_message){
		.data = data, .size = p->message_size, .tag = p->message_tag,
		.rank = (int)p->message_rank,
	};
}

int acpx_match_probe(acpx_match_t match, int rank, uint64_t tag, uint64_t ignore,
		     struct acpx_message *message, uint64_t timeout_ns)
{
	struct search s = { .match = match };
	int error = enter(match);

	if (error)
		return error;
	error = look_for(&s.post, match, rank, tag, ignore);
	s.post.flags |= ACP_POST_PROBE;
	if (!error)
		error = (int)wait_for(match, find_kept, &s, timeout_ns);
	if (!error && message)
		describe(message, &s.post, NULL);
	return (int)leave(error);
}

/* A message was taken: remember it until acpx_mrecv(). Returns 0 or -EBADMSG. */
static int keep(const struct search *s)
{
	struct acpx_match *m = s->match;
	struct acpx_receive *r = s->receive;
	const struct acp_result result =
		result_of(r, __atomic_load_n(state_of(r), __ATOMIC_ACQUIRE));

	r->data = kept_at(m, result.at, s->post.message_size);
	r->size = s->post.message_size;
	r->number = result.message;
	if (result.state != ACP_RESULT_KEPT || !r->data)
		return -EBADMSG;
	pthread_mutex_lock(&m->lock);
	r->next = m->taken;
	m->taken = r;
	pthread_mutex_unlock(&m->lock);
	return 0;
}

static int take(struct search *s, struct acpx_message *message, uint64_t timeout_ns)
{
	int error;

	s->receive = reserve(s->match);
	if (!s->receive)
		return -ENOSPC;
	error = (int)wait_for(s->match, find_kept, s, timeout_ns);
	if (!error)
		error = keep(s);
	if (error)
		release(s->receive);
	else
		describe(message, &s->post, s->receive->data);
	return error;
}

int acpx_mprobe(acpx_match_t match, int rank, uint64_t tag, uint64_t ignore,
		struct acpx_message *message, uint64_t timeout_ns)
{
	struct search s = { .match = match };
	int error = message ? enter(match) : -EINVAL;

	if (error)
		return error;
	error = look_for(&s.post, match, rank, tag, ignore);
	s.post.flags |= ACP_POST_TAKE;
	if (!error)
		error = take(&s, message, timeout_ns);
	return (int)leave(error);
}

/* Return the message that was taken and has this data, which no other thread gets; or NULL. */
static struct acpx_receive *find_taken(struct acpx_match *m, const void *data)
{
	struct acpx_receive **at = &m->taken, *r;

	pthread_mutex_lock(&m->lock);
	while (*at && (*at)->data != data)
		at = &(*at)->next;
	r = *at;
	if (r)
		*at = r->next;
	pthread_mutex_unlock(&m->lock);
	return r;
}

static int64_t receive_taken(struct acpx_receive *r, void *buffer, size_t room)
{
	const size_t size = r->size;
	int error;

	if (size && room)
		memcpy(buffer, r->data, size < room ? size : room);
	error = unpost(r->match, ACP_UNPOST_MESSAGE, r->number);
	release(r);
	return error == -ENOENT ? -EBADMSG : (int64_t)size;
}

int64_t acpx_mrecv(acpx_match_t match, const struct acpx_message *message, void *buffer,
		   size_t room)
{
	struct acpx_receive *r;
	int64_t found = message && (buffer || !room) ? enter(match) : -EINVAL;

	if (found)
		return found;
	r = find_taken(match, message->data);
	return leave(r ? receive_taken(r, buffer, room) : -EINVAL);
}

/* ---- Begin and end ---- */

/* It is printed once: a program may go on without a list. */
static void explain_limit(uint64_t limit)
{
	static int told;

	if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		libacp_error("cannot create a match list: the administrator's limit %s is reached: see '%s'",
			     libacp_limit_name(limit), libacp_limit_place(limit));
}

/* Without masks, receives ignore no bits: one mask, 0. The kernel learns ACPX_MASKS_ANY. */
static struct acp_match request_of(const struct acpx_match *m, uint32_t receives,
				   const struct acpx_match_limits *limits)
{
	const acp_ga_t mailbox = m->memory.ga, results = mailbox + sizeof(struct acp_mailbox);
	struct acp_match a = {
		.size = sizeof(a), .mailbox = mailbox, .results = results,
		.memory = results + receives * sizeof(struct acp_result), .bytes = m->bytes,
		.receives = receives, .messages = limits->messages,
		.masks = limits->masks ? limits->masks : 1,
	};

	if (limits->masks == ACPX_MASKS_ANY) {
		a.flags = ACP_MATCH_LEARN;
		a.masks = 1;
		a.mask[0] = UINT64_MAX;
	} else {
		memcpy(a.mask, limits->mask, limits->masks * sizeof(a.mask[0]));
	}
	return a;
}

/* Create the list of the kernel. Returns 0 or -errno. */
static int open_list(struct acpx_match *m, const struct acpx_match_limits *limits)
{
	struct acp_match a = request_of(m, limits->receives, limits);
	int error = call(ACP_IOC_MATCH, &a);

	if (error == -EDQUOT)
		explain_limit(a.limit);
	if (!error && !a.list)
		error = libacp_no_answer();
	m->list = a.list;
	return error;
}

/* All is clear before the list exists, and its mailbox names it last. */
static int open_memory(struct acpx_match *m, const struct acpx_match_limits *limits)
{
	const uint64_t head = sizeof(*m->box) + limits->receives * sizeof(*m->results);
	int error;

	/* The sum below would overflow. */
	if (limits->bytes > acpx_heap_size())
		return -ENOMEM;
	m->bytes = (limits->bytes + 7) / 8 * 8;
	m->box = libacp_memory_alloc(&m->memory, head + m->bytes, false);
	if (!m->box)
		return -ENOMEM;
	memset(m->box, 0, head);
	m->results = (struct acp_result *)(void *)(m->box + 1);
	m->messages = (const char *)(m->results + limits->receives);
	error = open_list(m, limits);
	if (error)
		acp_free(m->memory.block);
	else
		__atomic_store_n(&m->box->list, m->list, __ATOMIC_RELEASE);
	return error;
}

static int create(const struct acpx_match_limits *limits, struct acpx_match **match)
{
	struct acpx_match *m = calloc(1, sizeof(*m) + limits->receives * sizeof(m->receives[0]));
	uint32_t i = limits->receives;
	int error = m ? open_memory(m, limits) : -ENOMEM;

	if (error) {
		free(m);
		return error;
	}
	pthread_mutex_init(&m->lock, NULL);
	while (i--) {
		m->receives[i].match = m;
		m->receives[i].next = m->unused;
		m->unused = &m->receives[i];
	}
	*match = m;
	return 0;
}

/* The kernel checks the masks. */
static bool are_possible(const struct acpx_match_limits *limits)
{
	return limits->receives >= 1 && limits->receives <= ACP_RECEIVES_MAX &&
	       limits->messages >= 1 && limits->messages <= ACP_RECEIVES_MAX &&
	       (limits->masks <= MASKS_MAX || limits->masks == ACPX_MASKS_ANY);
}

int acpx_match_create(const struct acpx_match_limits *limits, acpx_match_t *match)
{
	int error = -EINVAL;

	if (!libacp_watch_enter())
		return -ENOTCONN;
	if (limits && match && are_possible(limits))
		error = create(limits, match);
	return (int)leave(error);
}

acp_ga_t acpx_match_ga(acpx_match_t match)
{
	return match ? match->memory.ga : ACP_GA_NULL;
}

/* Remove the list, after which the kernel writes to nothing of it. Returns 0 or -errno. */
static int close_list(struct acpx_match *m)
{
	int error;

	if (__atomic_load_n(&m->waiters, __ATOMIC_ACQUIRE))
		return -EBUSY;
	error = unpost(m, ACP_UNPOST_LIST, 0);
	if (!error)
		acp_free(m->memory.block);
	return error;
}

int acpx_match_free(acpx_match_t match)
{
	int error = enter(match);

	if (error == -EINVAL)
		return error;
	if (!error)
		error = (int)leave(close_list(match));
	if (error == -EBUSY)
		return error;
	pthread_mutex_destroy(&match->lock);
	free(match);
	return 0;		/* with an error, the memory went with the job, or will */
}
