// SPDX-License-Identifier: MIT
/* Rounds as text: an entry per line, with what it waits for. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"
#include "acp_abi.h"
#include "coll/coll.h"
#include "coll/step.h"
#include "core/errors.h"

struct text {
	char *at;
	size_t room, length;		/* bytes; the length may exceed the room */
};

static void say(struct text *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(struct text *t, const char *format, ...)
{
	const size_t left = t->length < t->room ? t->room - t->length : 0;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(left ? t->at + t->length : NULL, left, format, args);
	va_end(args);
	t->length += n > 0 ? (size_t)n : 0;
}

static void say_ranks(struct text *t, const struct acp_sqe *e)
{
	const char *before = " from";
	int i, rank;

	for (i = 0; i < 6; i++) {
		rank = libacp_wait_name(e, i);
		if (rank < 0)
			continue;
		say(t, "%s %d", before, rank);
		before = ",";
	}
}

/* The place of a counter: its rank and the line of its area. */
static void say_counter(struct text *t, const struct acpx_coll *c, const struct libacp_peer *peer,
			acp_ga_t ga)
{
	const acp_ga_t area = peer ? peer->area : c->area_ga;

	say(t, " counter %" PRIu64 " of %d", (uint64_t)(ga - area) / 8, acp_query_rank(ga));
}

static void say_entry(struct libacp_round *round, const struct acp_sqe *e,
		      const struct libacp_peer *peer)
{
	struct text *t = round->state;

	say(t, "%" PRIu32 ":", round->count);
	if (e->order)
		say(t, " behind %" PRIu64 ":", (uint64_t)e->order);
	if (e->op == ACP_OP_WAIT) {
		say(t, " wait for");
		say_counter(t, round->coll, NULL, e->src);
		say_ranks(t, e);
	} else if (e->op == ACP_OP_COPY_ADD && !e->size) {
		say(t, " add to");
		say_counter(t, round->coll, peer, e->a);
	} else {
		say(t, " %s %" PRIu64 " bytes of %d %s %d",
		    e->op == ACP_OP_REDUCE ? "combine" : "copy", (uint64_t)e->size,
		    acp_query_rank(e->src), e->op == ACP_OP_REDUCE ? "with those of" : "to",
		    acp_query_rank(e->dst));
		if (e->op == ACP_OP_COPY_ADD) {
			say(t, ", add to");
			say_counter(t, round->coll, peer, e->a);
		}
	}
	say(t, "\n");
}

int acpx_coll_describe(acpx_coll_t coll, char *text, size_t room)
{
	struct text t = { text, room, 0 };
	struct libacp_round round = {
		.coll = coll, .number = LIBACP_ROUND_LATER, .take = say_entry, .state = &t,
	};
	uint64_t *expected;

	if (!coll || (!text && room))
		return -EINVAL;
	expected = malloc(coll->lines * sizeof(*expected));
	if (!expected)
		return -ENOMEM;
	memcpy(expected, coll->expected, coll->lines * sizeof(*expected));
	say(&t, "%s of %d members, member %d, memory %zu bytes\n", coll->name, coll->tree.size,
	    coll->number, coll->area_bytes);
	libacp_round_run(&round);
	memcpy(coll->expected, expected, coll->lines * sizeof(*expected));
	free(expected);
	return (int)t.length;
}
