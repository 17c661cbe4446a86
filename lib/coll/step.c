// SPDX-License-Identifier: MIT
/* The entries of a round: see step.h. */
#include <stdlib.h>
#include <string.h>

#include "coll/step.h"

static uint32_t take(struct libacp_round *round, const struct acp_sqe *entry,
		     const struct libacp_peer *peer)
{
	round->count++;
	round->take(round, entry, peer);
	return round->count;
}

void libacp_round_run(struct libacp_round *round)
{
	round->count = 0;
	round->coll->algorithm(round);
}

/* The ranks that a wait names; the caller itself cannot be lost. */
static void name(struct acp_sqe *e, const struct acpx_coll *c, const struct libacp_peer *peers,
		 int count)
{
	int ranks[6] = { -1, -1, -1, -1, -1, -1 }, i;

	for (i = 0; i < count; i++)
		ranks[i] = peers[i].number == c->number ? -1 : peers[i].rank;
	e->dst = ACP_WAIT_RANKS(ranks[0], ranks[1]);
	e->size = ACP_WAIT_RANKS(ranks[2], ranks[3]);
	e->b = ACP_WAIT_RANKS(ranks[4], ranks[5]);
}

/* Has a transfer a tag in this counter? */
static bool is_tagged(const struct acpx_coll *c, uint32_t line)
{
	return c->unit && (line == c->tagged || (line >= LIBACP_LINE_SLOT && line < LIBACP_LINES));
}

/* What a message adds to a counter. */
static uint64_t step_of(const struct acpx_coll *c, uint32_t line)
{
	return is_tagged(c, line) ? c->step : 1;
}

uint32_t libacp_step_wait(struct libacp_round *round, uint32_t line, uint64_t times,
			  const struct libacp_peer *peers, int count)
{
	struct acpx_coll *c = round->coll;
	struct acp_sqe e = { .op = ACP_OP_WAIT, .src = libacp_line_ga(c->area_ga, line) };

	c->expected[line] += times * (is_tagged(c, line) ? c->unit : 1);
	e.a = c->expected[line];
	e.order = round->count;
	name(&e, c, peers, count);
	return take(round, &e, NULL);
}

uint32_t libacp_step_add(struct libacp_round *round, const struct libacp_peer *peer, uint32_t line,
			 uint32_t order)
{
	return libacp_step_send_lazily(round, peer, ACP_GA_NULL, ACP_GA_NULL, 0, line, order);
}

static struct acp_sqe send_of(const struct acpx_coll *c, const struct libacp_peer *peer,
			      acp_ga_t dst, acp_ga_t src, size_t size, uint32_t line,
			      uint32_t order)
{
	return (struct acp_sqe){
		.op = ACP_OP_COPY_ADD, .flags = order ? ACP_SQE_REVOKE : 0, .order = order,
		.dst = dst, .src = src, .size = size, .a = libacp_line_ga(peer->area, line),
		.b = step_of(c, line),
	};
}

uint32_t libacp_step_send(struct libacp_round *round, const struct libacp_peer *peer, acp_ga_t dst,
			  acp_ga_t src, size_t size, uint32_t line, uint32_t order)
{
	const struct acp_sqe e = send_of(round->coll, peer, dst, src, size, line, order);

	return take(round, &e, peer);
}

uint32_t libacp_step_send_lazily(struct libacp_round *round, const struct libacp_peer *peer,
				 acp_ga_t dst, acp_ga_t src, size_t size, uint32_t line,
				 uint32_t order)
{
	struct acp_sqe e = send_of(round->coll, peer, dst, src, size, line, order);

	e.flags |= ACP_SQE_LAZY;
	return take(round, &e, peer);
}

uint32_t libacp_step_copy(struct libacp_round *round, acp_ga_t dst, acp_ga_t src, size_t size,
			  uint32_t order)
{
	const struct acp_sqe e = {
		.op = ACP_OP_COPY, .order = order, .dst = dst, .src = src, .size = size,
	};

	return size && dst != src ? take(round, &e, NULL) : order;
}

uint32_t libacp_step_blocks(struct libacp_round *round, acp_ga_t dst, acp_ga_t src, size_t size,
			    int count, size_t stride, uint32_t order)
{
	const struct acp_sqe e = {
		.op = ACP_OP_STRIDED, .order = order, .dst = dst, .src = src,
		.size = ACP_BLOCKS((uint64_t)size, (uint64_t)count), .a = stride, .b = stride,
	};

	return take(round, &e, NULL);
}

uint32_t libacp_step_reduce(struct libacp_round *round, acp_ga_t dst, acp_ga_t src, size_t size,
			    uint32_t order)
{
	const struct acp_sqe e = {
		.op = ACP_OP_REDUCE, .order = order, .dst = dst, .src = src, .size = size,
		.a = round->coll->reduce,
	};

	return take(round, &e, NULL);
}
