// SPDX-License-Identifier: MIT
/*
 * Exchange with neighbours. Each edge has two counters at each end: the neighbour is ready to
 * receive, and it has sent. Edge k of several between the same two members is edge k of both.
 */
#include <errno.h>
#include <stdlib.h>

#include "acp.h"
#include "coll/create.h"
#include "coll/pieces.h"
#include "coll/step.h"

struct libacp_edge {
	struct libacp_peer peer;
	struct acpx_block out, in;
	acp_ga_t to;			/* where out goes */
	uint32_t index;			/* of this edge among those of the neighbour */
};

/* Lines of the area of a member: of its edge i. */
static uint32_t ready_line(uint32_t i)
{
	return LIBACP_LINE_MORE + 2 * i;
}

static uint32_t sent_line(uint32_t i)
{
	return LIBACP_LINE_MORE + 2 * i + 1;
}

/* Promptly: the neighbour may be waiting for the caller's answer to its own message. */
static void tell_ready(struct libacp_round *round)
{
	struct acpx_coll *c = round->coll;
	int i;

	for (i = 0; i < c->edge_count; i++)
		if (c->edges[i].in.size)
			libacp_step_add_promptly(round, &c->edges[i].peer,
						 ready_line(c->edges[i].index), 0);
}

/* Wait for all that are to receive, then send to each behind the wait for it. */
static void send(struct libacp_round *round)
{
	struct acpx_coll *c = round->coll;
	uint32_t at = round->count;
	const struct libacp_edge *e;
	int i;

	for (i = 0; i < c->edge_count; i++)
		if (c->edges[i].out.size)
			libacp_step_wait(round, ready_line((uint32_t)i), 1, &c->edges[i].peer, 1);
	for (i = 0; i < c->edge_count; i++) {
		e = &c->edges[i];
		if (e->out.size)
			libacp_step_send(round, &e->peer, e->to, c->src + e->out.offset,
					 e->out.size, sent_line(e->index), ++at);
	}
}

static void neighbours_round(struct libacp_round *round)
{
	struct acpx_coll *c = round->coll;
	int i;

	tell_ready(round);
	send(round);
	for (i = 0; i < c->edge_count; i++)
		if (c->edges[i].in.size)
			libacp_step_wait(round, sent_line((uint32_t)i), 1, &c->edges[i].peer, 1);
}

/* ---- Creation ---- */

/* What a member lets the others read: how many neighbours, then the neighbours. */
struct list {
	uint64_t count;
	struct acpx_neighbour neighbours[];
};

/* Is this neighbour what the edge is at the other end? Counts those that are of the caller. */
static bool is_edge(const struct acpx_coll *c, const struct acpx_neighbour *n, int *left)
{
	return n->member == c->number && (*left)-- == 0;
}

/* Find edge k to the caller among those of a neighbour. Returns 0 or -errno. */
static int find_edge(const struct acpx_coll *c, struct libacp_edge *e, acp_ga_t list, int k)
{
	struct acpx_neighbour n;
	uint64_t count, i;
	int error = libacp_exchange_read(&count, list, sizeof(count)), left = k;

	for (i = 0; i < count && !error; i++) {
		error = libacp_exchange_read(&n, list + sizeof(struct list) + i * sizeof(n),
					     sizeof(n));
		if (error || !is_edge(c, &n, &left))
			continue;
		e->index = (uint32_t)i;
		e->to = e->peer.buffer + n.in.offset;
		return n.in.size == e->out.size && n.out.size == e->in.size ? 0 : -EPROTO;
	}
	return error ? error : -EPROTO;
}

/* How many edges before this one go to the same member? */
static int count_before(const struct acpx_coll *c, int i)
{
	int j, k = 0;

	for (j = 0; j < i; j++)
		k += c->edges[j].peer.number == c->edges[i].peer.number;
	return k;
}

static int learn(struct libacp_creation *n, struct libacp_exchange *x)
{
	struct acpx_coll *c = n->coll;
	struct libacp_told told;
	int error = 0, i;

	for (i = 0; i < c->edge_count && !error; i++) {
		struct libacp_edge *e = &c->edges[i];

		if (e->peer.number < 0)
			continue;
		error = libacp_creation_peer(n, x, &e->peer, e->peer.number);
		if (!error)
			error = libacp_creation_told(x, e->peer.number, &told);
		if (!error)
			error = find_edge(c, e, told.list, count_before(c, i));
	}
	return error;
}

/* Nothing is sent to a neighbour that is none. */
static void use_edge(struct libacp_creation *n, struct libacp_edge *e,
		     const struct acpx_neighbour *from)
{
	struct acpx_coll *c = n->coll;
	const struct acpx_block blocks[] = { from->out, from->in };

	if (from->member < -1 || from->member >= c->tree.size)
		libacp_creation_fail(n, -EINVAL);
	e->peer.number = from->member;
	if (from->member < 0)
		return;
	e->out = from->out;
	e->in = from->in;
	libacp_creation_memory(n, c->src, libacp_blocks_end(&blocks[0], 1), false);
	libacp_creation_memory(n, c->dst, libacp_blocks_end(&blocks[1], 1), true);
}

static void use_edges(struct libacp_creation *n, const struct acpx_neighbour *neighbours,
		      int count)
{
	struct acpx_coll *c = n->coll;
	const size_t bytes = (size_t)count * sizeof(*neighbours);
	struct list *list = malloc(sizeof(*list) + bytes);
	int i;

	c->edges = calloc((size_t)count + 1, sizeof(*c->edges));
	if (!list || !c->edges) {
		libacp_creation_fail(n, -ENOMEM);
		free(list);
		return;
	}
	c->edge_count = count;
	c->lines += 2 * (uint32_t)count;
	list->count = (uint64_t)count;
	for (i = 0; i < count; i++) {
		list->neighbours[i] = neighbours[i];
		use_edge(n, &c->edges[i], &neighbours[i]);
	}
	libacp_creation_list(n, list, sizeof(*list) + bytes);
	free(list);
}

int acpx_coll_neighbours_create(acpx_group_t group, acp_ga_t dst, acp_ga_t src,
				const struct acpx_neighbour *neighbours, int count,
				acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "neighbours", neighbours_round, coll);

	if (error)
		return error;
	n.coll->dst = dst;
	n.coll->buffer = dst;
	n.coll->src = src;
	if (count < 0 || count > ACP_DEPTH_MAX || (count && !neighbours))
		libacp_creation_fail(&n, -EINVAL);
	else
		use_edges(&n, neighbours, count);
	libacp_creation_tree(&n, 0, 1);
	n.learn = learn;
	return libacp_creation_end(&n, coll);
}
