// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * Collectives at random: several at a time, of groups that overlap, in a different order at each
 * rank, compared with what a serial program computes. All ranks draw the same collectives; each one
 * draws for itself when it starts, tests, and frees them.
 */
#include "../dev/isolated.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "members.h"

#define RANKS		8
#define PER_NODE	2
#define ACTIVE		6			/* collectives at a time */
#define SLOT		((size_t)192 << 10)	/* bytes of a buffer */
#define GUARD		0xa5
#define EDGES		8

enum what {
	BARRIER, BCAST, REDUCE, ALLREDUCE, REDUCE_SCATTER, SCAN, EXSCAN, GATHER, SCATTER,
	ALLGATHER, ALLTOALL, GATHERV, SCATTERV, ALLGATHERV, ALLTOALLV, NEIGHBOURS, WHAT_END
};

static const char *const names[] = {
	"barrier", "bcast", "reduce", "allreduce", "reduce_scatter", "scan", "exscan", "gather",
	"scatter", "allgather", "alltoall", "gatherv", "scatterv", "allgatherv", "alltoallv",
	"neighbours",
};

struct edge {
	int a, b;			/* members */
	size_t ab, ba;			/* bytes */
};

struct play {
	enum what what;
	acpx_group_t group;
	acpx_coll_t coll;
	int size, number, root, op, type, rounds, round;
	bool in_place, active;
	size_t count, bytes;		/* numbers; bytes of a block */
	struct acpx_block blocks[RANKS];		/* of the root, or of all */
	struct acpx_block to[RANKS][RANKS], from[RANKS][RANKS];	/* [member][other] */
	struct edge edges[EDGES];
	int edge_count, own_count;
	struct acpx_neighbour own[2 * EDGES];
	int other_edge[2 * EDGES];	/* which block the neighbour sends */
	uint64_t id;
	unsigned char *dst, *src, *wanted, *given;
	acp_ga_t dst_ga, src_ga, dst_now, src_now;
	size_t dst_at, src_at;		/* offsets */
};

static struct play plays[ACTIVE];
static uint64_t common, own_seed, first_seed;

static uint64_t draw(uint64_t n)
{
	return next_random(&common) % n;
}

static uint64_t own_draw(uint64_t n)
{
	return next_random(&own_seed) % n;
}

static size_t draw_size(size_t most)
{
	static const size_t sizes[] = {
		0, 1, 7, 8, 9, 63, 64, 65, 1000, 4095, 4096, 4097, 8192, 8193, 12288, 65536, 65537,
	};
	size_t size = draw(3) ? sizes[draw(sizeof(sizes) / sizeof(sizes[0]))] : draw(most + 1);

	return size < most ? size : most;
}

static acpx_group_t draw_group(void)
{
	int ranks[RANKS], count = 1 + (int)draw(RANKS), i, j, t;
	acpx_group_t group;

	for (i = 0; i < RANKS; i++)
		ranks[i] = i;
	for (i = RANKS - 1; i > 0; i--) {
		j = (int)draw((uint64_t)i + 1);
		t = ranks[i];
		ranks[i] = ranks[j];
		ranks[j] = t;
	}
	CHECK_EQ(acpx_group_list(ranks, count, &group), 0);
	return group;
}

/* Byte i that a member has for another one. */
static unsigned char byte(const struct play *p, int from, int to, size_t i)
{
	uint64_t x = p->id * 0x9e3779b97f4a7c15ull + (uint64_t)p->round * 1000003 +
		     (uint64_t)from * 131 + (uint64_t)to * 17 + i * 0x100000001b3ull;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ull;
	return (unsigned char)(x >> 40);
}

static void put(const struct play *p, unsigned char *at, size_t size, int from, int to)
{
	size_t i;

	for (i = 0; i < size; i++)
		at[i] = byte(p, from, to, i);
}

/* ---- Numbers ---- */

static size_t width(const struct play *p)
{
	return p->type & 1 ? 8 : 4;
}

static void put_number(const struct play *p, unsigned char *at, int member, size_t i)
{
	const uint64_t x = (uint64_t)byte(p, member, 0, i) | (uint64_t)byte(p, member, 1, i) << 24 |
			   (uint64_t)byte(p, member, 2, i) << 56;
	const double d = (double)((int)byte(p, member, 0, i) % (p->op == ACPX_PROD ? 3 : 200)) -
			 (p->op == ACPX_PROD ? 0 : 100);
	const float f = (float)d;

	if (p->type == ACPX_DOUBLE)
		memcpy(at, &d, 8);
	else if (p->type == ACPX_FLOAT)
		memcpy(at, &f, 4);
	else
		memcpy(at, &x, width(p));
}

#define COMBINE(T, U) do { \
	T x_, y_; \
	memcpy(&x_, a, sizeof(x_)); \
	memcpy(&y_, b, sizeof(y_)); \
	switch (op) { \
	case ACPX_SUM: \
		x_ = (T)((U)x_ + (U)y_); \
		break; \
	case ACPX_PROD: \
		x_ = (T)((U)x_ * (U)y_); \
		break; \
	case ACPX_MIN: \
		x_ = y_ < x_ ? y_ : x_; \
		break; \
	case ACPX_MAX: \
		x_ = y_ > x_ ? y_ : x_; \
		break; \
	case ACPX_REPLACE: \
		x_ = y_; \
		break; \
	} \
	memcpy(a, &x_, sizeof(x_)); \
} while (0)

static void combine(int op, int type, unsigned char *a, const unsigned char *b)
{
	size_t i;

	if (op == ACPX_AND || op == ACPX_OR || op == ACPX_XOR) {
		for (i = 0; i < (type & 1 ? 8u : 4u); i++)
			a[i] = op == ACPX_AND ? a[i] & b[i] : op == ACPX_OR ? a[i] | b[i] :
			       a[i] ^ b[i];
		return;
	}
	switch (type) {
	case ACPX_INT32:
		COMBINE(int32_t, uint32_t);
		break;
	case ACPX_INT64:
		COMBINE(int64_t, uint64_t);
		break;
	case ACPX_UINT32:
		COMBINE(uint32_t, uint32_t);
		break;
	case ACPX_UINT64:
		COMBINE(uint64_t, uint64_t);
		break;
	case ACPX_FLOAT:
		COMBINE(float, float);
		break;
	case ACPX_DOUBLE:
		COMBINE(double, double);
		break;
	}
}

/* The combination of members from to end - 1, of numbers first on. */
static void put_combined(const struct play *p, unsigned char *at, int from, int end, size_t first,
			 size_t count)
{
	unsigned char other[8];
	size_t i;
	int m;

	for (i = 0; i < count; i++) {
		put_number(p, at + i * width(p), from, first + i);
		for (m = from + 1; m < end; m++) {
			put_number(p, other, m, first + i);
			combine(p->op, p->type, at + i * width(p), other);
		}
	}
}

/* ---- Drawing ---- */

static void draw_numbers(struct play *p, size_t most)
{
	p->type = (int)draw(6);
	do
		p->op = (int)draw(8);
	while ((p->type >= ACPX_FLOAT && p->op >= ACPX_AND && p->op <= ACPX_XOR) ||
	       (p->op == ACPX_REPLACE && p->what != SCAN && p->what != EXSCAN));
	p->count = draw_size(most) / width(p);
	p->bytes = p->count * width(p);
}

/* Blocks that do not overlap, with gaps, in some order. */
static void draw_blocks(struct acpx_block *blocks, int size, const size_t *sizes)
{
	const int first = (int)draw((uint64_t)size);
	const bool dense = draw(2);
	size_t at = dense ? 0 : draw(70);
	int i, m;

	for (i = 0; i < size; i++) {
		m = dense ? i : (first + i) % size;
		blocks[m] = (struct acpx_block){ at, sizes[m] };
		at += sizes[m] + (dense ? 0 : draw(3) * draw(50));
	}
	CHECK(at <= SLOT - 512);
}

static void draw_edges(struct play *p)
{
	int i, k;
	size_t in = 0, out = 0;

	p->edge_count = (int)draw(EDGES + 1);
	for (i = 0; i < p->edge_count; i++)
		p->edges[i] = (struct edge){
			(int)draw((uint64_t)p->size), (int)draw((uint64_t)p->size),
			draw_size(10000), draw_size(10000),
		};
	p->own_count = 0;
	for (i = 0; i < p->edge_count; i++) {
		const struct edge *e = &p->edges[i];

		if (e->a == e->b) {
			if (e->a != p->number)
				continue;
			p->own[p->own_count++] = (struct acpx_neighbour){
				e->a, { out, e->ab }, { in, e->ab },
			};
			in += e->ab + 3;
			out += e->ab + 5;
			continue;
		}
		for (k = 0; k < 2; k++) {
			const int me = k ? e->b : e->a, other = k ? e->a : e->b;
			const size_t to = k ? e->ba : e->ab, from = k ? e->ab : e->ba;

			if (me != p->number)
				continue;
			p->own[p->own_count++] = (struct acpx_neighbour){
				other, { out, to }, { in, from },
			};
			in += from + 3;
			out += to + 5;
		}
	}
	CHECK(in <= SLOT - 512 && out <= SLOT - 512);
	if (p->own_count < 2 * EDGES && p->own_count % 2)
		p->own[p->own_count++] = (struct acpx_neighbour){ -1, { 0, 9 }, { 0, 9 } };
}

static void draw_play(struct play *p)
{
	size_t sizes[RANKS][RANKS];
	int i, j;

	p->what = (enum what)draw(WHAT_END);
	p->group = draw_group();
	p->size = acpx_group_size(p->group);
	p->number = acpx_group_rank(p->group);
	p->root = (int)draw((uint64_t)p->size);
	p->rounds = 1 + (int)draw(draw(4) ? 4 : 12);
	p->round = 0;
	p->in_place = draw(3) == 0;
	p->active = false;
	p->id = next_random(&common);
	p->dst_at = 8 * draw(30);
	p->src_at = 8 * draw(30);
	p->coll = NULL;
	p->bytes = draw_size((SLOT - 512) / (size_t)p->size);
	switch (p->what) {
	case REDUCE_SCATTER:
		draw_numbers(p, (SLOT - 512) / (size_t)p->size);
		break;
	case REDUCE: case ALLREDUCE: case SCAN: case EXSCAN:
		draw_numbers(p, SLOT - 512);
		break;
	case BCAST:
		p->bytes = draw_size(SLOT - 512);
		break;
	case GATHERV: case SCATTERV: case ALLGATHERV:
		for (i = 0; i < p->size; i++)
			sizes[0][i] = draw_size(20000);
		draw_blocks(p->blocks, p->size, sizes[0]);
		break;
	case ALLTOALLV:
		for (i = 0; i < p->size; i++)
			for (j = 0; j < p->size; j++)
				sizes[i][j] = draw_size(20000);
		for (i = 0; i < p->size; i++)
			draw_blocks(p->from[i], p->size, sizes[i]);
		for (j = 0; j < p->size; j++) {
			size_t in[RANKS];

			for (i = 0; i < p->size; i++)
				in[i] = sizes[i][j];
			draw_blocks(p->to[j], p->size, in);
		}
		break;
	case NEIGHBOURS:
		draw_edges(p);
		break;
	default:
		break;
	}
	if (p->what >= GATHERV || p->what == REDUCE_SCATTER)
		p->in_place = false;
	p->dst_now = p->dst_ga + p->dst_at;
	p->src_now = p->src_ga + p->src_at;
	if (p->in_place) {
		p->src_at = p->dst_at;
		p->src_now = p->dst_now;
	}
}

static int create(struct play *p)
{
	acp_ga_t d = p->dst_now, s = p->src_now;
	const size_t own = (size_t)p->number * p->bytes;
	const bool root = p->number == p->root;

	switch (p->what) {
	case BARRIER:
		return acpx_coll_barrier_create(p->group, &p->coll);
	case BCAST:
		return acpx_coll_bcast_create(p->group, p->root, d, p->bytes, &p->coll);
	case REDUCE:
		return acpx_coll_reduce_create(p->group, p->root, root ? d : ACP_GA_NULL, s,
					       p->count, p->op, p->type, &p->coll);
	case ALLREDUCE:
		return acpx_coll_allreduce_create(p->group, d, s, p->count, p->op, p->type,
						  &p->coll);
	case REDUCE_SCATTER:
		return acpx_coll_reduce_scatter_create(p->group, d, s, p->count, p->op, p->type,
						       &p->coll);
	case SCAN:
		return acpx_coll_scan_create(p->group, d, s, p->count, p->op, p->type, &p->coll);
	case EXSCAN:
		return acpx_coll_exscan_create(p->group, d, s, p->count, p->op, p->type, &p->coll);
	case GATHER:
		return acpx_coll_gather_create(p->group, p->root, root ? d : ACP_GA_NULL,
					       p->in_place && root ? d + own : s, p->bytes,
					       &p->coll);
	case SCATTER:
		return acpx_coll_scatter_create(p->group, p->root,
						p->in_place && root ? s + own : d,
						root ? s : ACP_GA_NULL, p->bytes, &p->coll);
	case ALLGATHER:
		return acpx_coll_allgather_create(p->group, d, p->in_place ? d + own : s, p->bytes,
						  &p->coll);
	case ALLTOALL:
		return acpx_coll_alltoall_create(p->group, d, s, p->bytes, &p->coll);
	case GATHERV:
		return acpx_coll_gatherv_create(p->group, p->root, root ? d : ACP_GA_NULL,
						root ? p->blocks : NULL, s,
						p->blocks[p->number].size, &p->coll);
	case SCATTERV:
		return acpx_coll_scatterv_create(p->group, p->root, d, p->blocks[p->number].size,
						 root ? s : ACP_GA_NULL, root ? p->blocks : NULL,
						 &p->coll);
	case ALLGATHERV:
		return acpx_coll_allgatherv_create(p->group, d, p->blocks, s, &p->coll);
	case ALLTOALLV:
		return acpx_coll_alltoallv_create(p->group, d, p->to[p->number], s,
						  p->from[p->number], &p->coll);
	case NEIGHBOURS:
		return acpx_coll_neighbours_create(p->group, d, s, p->own, p->own_count, &p->coll);
	default:
		return -ENOSYS;
	}
}

/* ---- The serial model: what is given, and what is wanted ---- */

/* The k-th edge between the caller and a neighbour, of those of the caller: how often before? */
static int before(const struct play *p, int i)
{
	int j, k = 0;

	for (j = 0; j < i; j++)
		k += p->own[j].member == p->own[i].member;
	return k;
}

/* What the caller gives to a round: in its src, or in dst. */
static void model_given(struct play *p)
{
	unsigned char *given = p->in_place ? p->wanted : p->given;
	unsigned char *d = p->wanted + p->dst_at, *s = given + p->src_at;
	const bool root = p->number == p->root;
	size_t i;
	int m;

	switch (p->what) {
	case BCAST:
		if (root)
			put(p, d, p->bytes, p->root, 0);
		break;
	case REDUCE: case ALLREDUCE: case REDUCE_SCATTER: case SCAN: case EXSCAN:
		for (i = 0; i < p->count * (p->what == REDUCE_SCATTER ? (size_t)p->size : 1); i++)
			put_number(p, s + i * width(p), p->number, i);
		break;
	case GATHER: case ALLGATHER:
		if (p->in_place && (root || p->what == ALLGATHER))
			put(p, d + (size_t)p->number * p->bytes, p->bytes, p->number, 0);
		else
			put(p, s, p->bytes, p->number, 0);
		break;
	case SCATTER:
		for (m = 0; root && m < p->size; m++)
			put(p, s + (size_t)m * p->bytes, p->bytes, p->root, m);
		break;
	case ALLTOALL:
		for (m = 0; m < p->size; m++)
			put(p, s + (size_t)m * p->bytes, p->bytes, p->number, m);
		break;
	case GATHERV: case ALLGATHERV:
		put(p, s, p->blocks[p->number].size, p->number, 0);
		break;
	case SCATTERV:
		for (m = 0; root && m < p->size; m++)
			put(p, s + p->blocks[m].offset, p->blocks[m].size, p->root, m);
		break;
	case ALLTOALLV:
		for (m = 0; m < p->size; m++)
			put(p, s + p->from[p->number][m].offset, p->from[p->number][m].size,
			    p->number, m);
		break;
	case NEIGHBOURS:
		for (m = 0; m < p->own_count; m++)
			if (p->own[m].member >= 0)
				put(p, s + p->own[m].out.offset, p->own[m].out.size,
				    p->number * 64 + before(p, m), p->own[m].member);
		break;
	default:
		break;
	}
}

/* What the round stores in dst. */
static void model_result(struct play *p)
{
	unsigned char *d = p->wanted + p->dst_at;
	const bool root = p->number == p->root;
	int m;

	switch (p->what) {
	case BCAST:
		put(p, d, p->bytes, p->root, 0);
		break;
	case REDUCE:
		if (root)
			put_combined(p, d, 0, p->size, 0, p->count);
		break;
	case ALLREDUCE:
		put_combined(p, d, 0, p->size, 0, p->count);
		break;
	case REDUCE_SCATTER:
		put_combined(p, d, 0, p->size, (size_t)p->number * p->count, p->count);
		break;
	case SCAN:
		put_combined(p, d, 0, p->number + 1, 0, p->count);
		break;
	case EXSCAN:
		if (p->number)
			put_combined(p, d, 0, p->number, 0, p->count);
		break;
	case GATHER: case ALLGATHER:
		for (m = 0; (root || p->what == ALLGATHER) && m < p->size; m++)
			put(p, d + (size_t)m * p->bytes, p->bytes, m, 0);
		break;
	case SCATTER:
		if (p->in_place && root)
			break;
		put(p, d, p->bytes, p->root, p->number);
		break;
	case ALLTOALL:
		for (m = 0; m < p->size; m++)
			put(p, d + (size_t)m * p->bytes, p->bytes, m, p->number);
		break;
	case GATHERV: case ALLGATHERV:
		for (m = 0; (root || p->what == ALLGATHERV) && m < p->size; m++)
			put(p, d + p->blocks[m].offset, p->blocks[m].size, m, 0);
		break;
	case SCATTERV:
		put(p, d, p->blocks[p->number].size, p->root, p->number);
		break;
	case ALLTOALLV:
		for (m = 0; m < p->size; m++)
			put(p, d + p->to[p->number][m].offset, p->to[p->number][m].size, m,
			    p->number);
		break;
	case NEIGHBOURS:
		for (m = 0; m < p->own_count; m++)
			if (p->own[m].member >= 0)
				put(p, d + p->own[m].in.offset, p->own[m].in.size,
				    p->own[m].member * 64 + before(p, m), p->number);
		break;
	default:
		break;
	}
}

static void model(struct play *p)
{
	memset(p->wanted, GUARD, SLOT);
	memset(p->given, GUARD, SLOT);
	model_given(p);
	memcpy(p->dst, p->wanted, SLOT);
	memcpy(p->src, p->given, SLOT);
	model_result(p);
}

static void compare(const struct play *p, const char *which, const unsigned char *is,
		    const unsigned char *wanted)
{
	size_t i;

	for (i = 0; i < SLOT; i++) {
		if (is[i] != wanted[i])
			FAIL("seed %llx rank %d: %s of %d, number %d, root %d, %zu bytes, op %d, "
			     "type %d, in place %d, round %d of %d: %s + %zd is %u, not %u",
			     (unsigned long long)first_seed, acp_rank(), names[p->what], p->size,
			     p->number, p->root, p->bytes, p->op, p->type, p->in_place, p->round,
			     p->rounds, which, (ssize_t)i - (ssize_t)p->dst_at, is[i], wanted[i]);
	}
}

/* ---- Playing ---- */

/* Returns true if it is over. */
static bool advance(struct play *p)
{
	int error;

	if (!p->active) {
		model(p);
		error = acpx_coll_start(p->coll);
		if (error)
			FAIL("rank %d: %s, start: %d", acp_rank(), names[p->what], error);
		p->active = true;
		return false;
	}
	switch (own_draw(3)) {
	case 0:
		error = acpx_coll_test(p->coll);
		break;
	case 1:
		error = acpx_coll_wait(p->coll, own_draw(2000000));
		error = error == -ETIMEDOUT ? 0 : error ? error : 1;
		break;
	default:
		error = acpx_coll_wait(p->coll, 0);
		error = error == -ETIMEDOUT ? 0 : error ? error : 1;
		break;
	}
	if (!error)
		return false;
	if (error != 1)
		FAIL("seed %llx rank %d: %s of %d, %zu bytes, round %d: %d",
		     (unsigned long long)first_seed, acp_rank(), names[p->what], p->size, p->bytes,
		     p->round, error);
	p->active = false;
	compare(p, "dst", p->dst, p->wanted);
	compare(p, "src", p->src, p->given);
	if (own_draw(8) == 0)
		sleep_ms((unsigned int)own_draw(4));
	return ++p->round == p->rounds;
}

static void batch(void)
{
	int n = 1 + (int)draw(ACTIVE), i, left = 0, error;
	bool over[ACTIVE];

	for (i = 0; i < n; i++) {
		struct play *p = &plays[i];

		draw_play(p);
		over[i] = p->number < 0;
		if (over[i])
			continue;
		error = create(p);
		if (error)
			FAIL("seed %llx rank %d: %s of %d, %zu bytes: create %d",
			     (unsigned long long)first_seed, acp_rank(), names[p->what], p->size,
			     p->bytes, error);
		left++;
		if (own_draw(2))
			advance(p);
	}
	while (left) {
		i = (int)own_draw((uint64_t)n);
		if (over[i] || !advance(&plays[i]))
			continue;
		over[i] = true;
		left--;
		if (own_draw(2)) {
			CHECK_EQ(acpx_coll_free(plays[i].coll), 0);
			plays[i].coll = NULL;
		}
	}
	for (i = 0; i < n; i++) {
		if (plays[i].coll)
			CHECK_EQ(acpx_coll_free(plays[i].coll), 0);
		plays[i].coll = NULL;
		acpx_group_free(plays[i].group);
	}
}

static uint64_t seed_now(void)
{
	const char *text = getenv("COLL_SEED");

	return text ? strtoull(text, NULL, 16) : (uint64_t)time(NULL);
}

static int batches = 40;

static void at_random(void)
{
	int i;

	member_init();
	for (i = 0; i < ACTIVE; i++) {
		struct play *p = &plays[i];
		acp_atkey_t key;

		p->dst = aligned_alloc(4096, SLOT);
		p->src = aligned_alloc(4096, SLOT);
		p->wanted = malloc(SLOT);
		p->given = malloc(SLOT);
		CHECK(p->dst && p->src && p->wanted && p->given);
		key = acp_register_memory(p->dst, SLOT, 0);
		p->dst_ga = acp_query_ga(key, p->dst);
		key = acp_register_memory(p->src, SLOT, 0);
		p->src_ga = acp_query_ga(key, p->src);
	}
	common = first_seed;
	own_seed = first_seed + 1 + (uint64_t)acp_rank();
	for (i = 0; i < batches; i++)
		batch();
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(acp_finalize(), 0);
}

static void play(const char *netem, int count)
{
	if (getenv("COLL_BATCHES"))
		count = atoi(getenv("COLL_BATCHES"));
	first_seed = seed_now() * 0x9e3779b97f4a7c15ull;
	batches = count;
	members_run_over(netem, RANKS, PER_NODE, at_random);
}

TEST_LONG(collectives_at_random, PATIENCE_LONG_TEST)
{
	play("", test_short() ? 40 : 400);
}

TEST_LONG(collectives_at_random_over_a_bad_network, PATIENCE_LONG_TEST)
{
	play("loss 3% duplicate 3% delay 1ms reorder 20%", test_short() ? 10 : 60);
}
