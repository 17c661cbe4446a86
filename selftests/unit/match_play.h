/* SPDX-License-Identifier: MIT */
/*
 * The kernel's side of one match list: see ACP_IOC_MATCH in acp_abi.h. Include it behind
 * test_lib_device.h. What has no other comment is called with fake.lock held.
 */
#ifndef MATCH_PLAY_H
#define MATCH_PLAY_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "acp_abi.h"
#include "test_lib_device.h"

#define PLAY_RECEIVES	16
#define PLAY_MESSAGES	16
#define PLAY_NONE	UINT32_MAX

struct play_receive {
	bool posted, busy;
	struct acp_post p;
	uint64_t seq;
};

enum play_state { PLAY_FREE, PLAY_LISTED, PLAY_TAKEN, PLAY_GIVEN };

struct play_message {
	enum play_state state;
	bool arriving;
	uint32_t rank, receive;		/* receive: that it is for, or NONE; if not LISTED */
	uint64_t tag, size, at, seq;
};

static struct play {
	/* set by the test */
	int match_error, post_error, unpost_error;	/* errno, or 0 */
	bool silent;			/* something answers in place of the kernel */
	/* for the test */
	unsigned int matches, posts, unposts;	/* calls */
	struct acp_match match;
	struct acp_post post;		/* of the last call */
	struct acp_unpost unpost;

	bool open;
	bool closed;			/* no messages and posts any more */
	uint32_t last;			/* number of the last list */
	uint64_t seq, used;
	struct play_receive receives[PLAY_RECEIVES];
	struct play_message messages[PLAY_MESSAGES];
} play;

static void *play_at(uint64_t ga, uint64_t size)
{
	uint8_t status;

	return fake_find(ga, size, &status);
}

static void play_result(uint32_t number, const struct acp_result *result)
{
	uint64_t ga = play.match.results + number * sizeof(*result);
	struct acp_result *r = play_at(ga, sizeof(*r));

	memcpy((char *)r + 8, (const char *)result + 8, sizeof(*r) - 8);
	__atomic_store_n((uint64_t *)(void *)&r->state, result->state, __ATOMIC_RELEASE);
	fake_written(ga, 8);
}

static void play_fail(uint32_t number, uint8_t status)
{
	const struct acp_result result = { .state = ACP_RESULT_FAILED, .status = status };

	play.receives[number].busy = false;
	play_result(number, &result);
}

static void play_give(struct play_message *m)
{
	const struct acp_result result = {
		.state = ACP_RESULT_KEPT, .size = m->size, .tag = m->tag, .rank = m->rank,
		.message = (uint32_t)(m - play.messages), .at = m->at,
	};

	m->state = PLAY_GIVEN;
	play.receives[m->receive].busy = false;
	play_result(m->receive, &result);
}

static bool play_matches(const struct acp_post *p, uint32_t rank, uint64_t tag)
{
	return !((p->tag ^ tag) & ~p->ignore) &&
	       (p->flags & ACP_POST_ANY_RANK || p->rank == rank);
}

/* ---- Calls ---- */

static int play_create(struct acp_match *a)
{
	play.matches++;
	play.match = *a;
	a->limit = fake.limit;
	if (play.match_error || play.silent)
		return -play.match_error;
	play.open = true;
	play.closed = false;
	play.used = 0;
	memset(play.receives, 0, sizeof(play.receives));
	memset(play.messages, 0, sizeof(play.messages));
	a->list = ++play.last;
	return 0;
}

static struct play_message *play_oldest(const struct acp_post *p)
{
	struct play_message *m, *found = NULL;

	for (m = play.messages; m < play.messages + PLAY_MESSAGES; m++)
		if (m->state == PLAY_LISTED && play_matches(p, m->rank, m->tag) &&
		    (!found || m->seq < found->seq))
			found = m;
	return found;
}

static void play_take(struct play_message *m, uint32_t number)
{
	m->state = PLAY_TAKEN;
	m->receive = number;
	play.receives[number].busy = true;
	if (!m->arriving)
		play_give(m);
}

static int play_post(struct acp_post *p)
{
	struct play_receive *r = &play.receives[p->result];
	struct play_message *m = play_oldest(p);

	play.posts++;
	play.post = *p;
	if (play.post_error)
		return -play.post_error;
	if (!play.open || play.closed || p->list != play.last)
		return -ENOENT;
	if (!(p->flags & ACP_POST_PROBE) && (r->posted || r->busy))
		return -EBUSY;
	if (p->flags & ~ACP_POST_ANY_RANK && (!m || m->arriving))
		return -EAGAIN;
	if (!m) {
		*r = (struct play_receive){ .posted = true, .p = *p, .seq = ++play.seq };
		return 0;
	}
	p->message_rank = m->rank;
	p->message_tag = m->tag;
	p->message_size = m->size;
	if (!(p->flags & ACP_POST_PROBE))
		play_take(m, p->result);
	return 0;
}

static int play_remove(void)
{
	uint32_t i;

	play.closed = true;
	for (i = 0; i < PLAY_RECEIVES; i++)
		if (play.receives[i].busy)
			return -EBUSY;
	for (i = 0; i < PLAY_MESSAGES; i++)
		if (play.messages[i].state != PLAY_FREE && play.messages[i].arriving)
			return -EBUSY;
	play.open = false;
	return 0;
}

static int play_unpost(const struct acp_unpost *u)
{
	play.unposts++;
	play.unpost = *u;
	if (play.unpost_error)
		return -play.unpost_error;
	if (!play.open || u->list != play.last)
		return -ENOENT;
	if (u->what == ACP_UNPOST_LIST)
		return play_remove();
	if (u->what == ACP_UNPOST_RECEIVE) {
		if (!play.receives[u->number].posted)
			return -ENOENT;
		play.receives[u->number].posted = false;
		return 0;
	}
	if (u->number >= PLAY_MESSAGES || play.messages[u->number].state != PLAY_GIVEN)
		return -ENOENT;
	play.messages[u->number].state = PLAY_FREE;
	return 0;
}

static int play_call(unsigned long request, void *arg)
{
	if (fake.aborted)
		return -ECANCELED;
	switch (request) {
	case ACP_IOC_MATCH:
		return play_create(arg);
	case ACP_IOC_POST:
		return play_post(arg);
	case ACP_IOC_UNPOST:
		return play_unpost(arg);
	default:
		return -ENOTTY;
	}
}

/* ---- Messages ---- */

static struct play_receive *play_receiver(uint32_t rank, uint64_t tag)
{
	struct play_receive *r, *found = NULL;

	for (r = play.receives; r < play.receives + PLAY_RECEIVES; r++)
		if (r->posted && play_matches(&r->p, rank, tag) && (!found || r->seq < found->seq))
			found = r;
	return found;
}

/* Keep a message that is arriving. Memory is not used again before the list is unused. */
static uint8_t play_keep(uint32_t rank, uint64_t tag, uint64_t size, struct play_message **m)
{
	const uint64_t length = size ? (size + 7) / 8 * 8 : 8;
	bool unused = true;
	uint32_t i, at = PLAY_NONE;

	for (i = 0; i < PLAY_MESSAGES && i < play.match.messages; i++) {
		if (play.messages[i].state == PLAY_FREE)
			at = at == PLAY_NONE ? i : at;
		else
			unused = false;
	}
	if (unused)
		play.used = 0;
	if (length > play.match.bytes)
		return ACP_ST_RANGE;
	if (at == PLAY_NONE || length > play.match.bytes - play.used)
		return ACP_ST_AGAIN;
	*m = &play.messages[at];
	**m = (struct play_message){
		.state = PLAY_LISTED, .arriving = true, .rank = rank, .tag = tag, .size = size,
		.at = play.used, .seq = ++play.seq,
	};
	play.used += length;
	return ACP_ST_OK;
}

/* All bytes of a kept message are there. */
static void play_complete(struct play_message *m, const char *data)
{
	struct acp_mailbox *box = play_at(play.match.mailbox, sizeof(*box));

	if (m->size)
		memcpy(play_at(play.match.memory + m->at, m->size), data, m->size);
	m->arriving = false;
	if (m->state == PLAY_TAKEN) {
		play_give(m);
		return;
	}
	__atomic_fetch_add((uint64_t *)(void *)&box->room, 1, __ATOMIC_SEQ_CST);
	fake_written(play.match.mailbox, 8);
}

static void play_deliver(struct play_receive *r, uint32_t rank, uint64_t tag, const char *data,
			 uint64_t size)
{
	const uint64_t room = size < r->p.room ? size : r->p.room;
	const struct acp_result result = {
		.state = ACP_RESULT_DONE, .size = size, .tag = tag, .rank = rank,
	};

	r->posted = false;
	if (room)
		memcpy(play_at(r->p.buffer, room), data, room);
	play_result((uint32_t)(r - play.receives), &result);
}

static uint8_t play_arrive(uint32_t list, uint32_t rank, uint64_t tag, const char *data,
			   uint64_t size)
{
	struct play_receive *r = play_receiver(rank, tag);
	struct play_message *m;
	uint8_t status;

	if (!play.open || play.closed || list != play.last)
		return ACP_ST_AGAIN;
	if (r) {
		play_deliver(r, rank, tag, data, size);
		return ACP_ST_OK;
	}
	status = play_keep(rank, tag, size, &m);
	if (!status)
		play_complete(m, data);
	return status;
}

static inline void play_start(void)
{
	fake.match = play_call;
	fake.arrive = play_arrive;
}

#endif /* MATCH_PLAY_H */
