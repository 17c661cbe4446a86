// SPDX-License-Identifier: MIT
/*
 * cg - the conjugate gradient method for Laplace's equation on a grid, distributed by rows
 *
 * Shows: persistent collectives, created once and started in each iteration: an exchange of halo
 * rows with the neighbours (acpx_coll_neighbours_create), which goes on while the rows that do not
 * need it are computed, and a sum over all ranks (acpx_coll_allreduce_create). Numbers are combined
 * in a fixed order, whatever comes first, so that a second run has the same bits: the equation is
 * solved twice. acpx_coll_gatherv_create collects the solution at rank 0, which compares it with
 * that of one process.
 *
 * Run (here two ranks on this machine; arguments: rows, columns, default 64 64):
 *
 *     ACP_NPROCS=2 ACP_RANK=0 ./cg & ACP_NPROCS=2 ACP_RANK=1 ./cg; wait
 *
 * Exit status: 0 if the solutions agree, 1 if not, 2 for invalid arguments.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acp.h"

#define SIDE_MAX	10000
#define RESIDUAL	1e-10	/* at the end, relative to the first one */
#define TOLERANCE	1e-8	/* between two solutions, relative to the largest value */

/* The rows of a rank, or all rows for the serial solution, which has no collectives. */
struct part {
	size_t first, rows, columns;
	double *p;		/* direction of search; a row more above and below, the halo */
	double *x, *r, *q;	/* solution, residual, A p */
	double *mine, *sum;	/* of a dot product: of the own rows, and of all */
	acp_ga_t ga;		/* of p, which the others follow; or null */
	acpx_coll_t halo, add;
};

static int rank, procs;
static acpx_group_t world;

static void give_up(const char *what, const char *why)
{
	char text[160];

	snprintf(text, sizeof(text), "cg: rank %d: %s: %s", rank, what, why);
	acp_abort(text);
	exit(EXIT_FAILURE);
}

/* A function of groups or collectives has returned 0 or -errno. */
static void need(int result, const char *what)
{
	if (result < 0)
		give_up(what, strerror(-result));
}

static void start(acpx_coll_t coll)
{
	need(acpx_coll_start(coll), "acpx_coll_start");
}

static void wait_for(acpx_coll_t coll)
{
	need(acpx_coll_wait(coll, ACPX_FOREVER), "acpx_coll_wait");
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t first_row(int of, size_t rows)
{
	return rows * (size_t)of / (size_t)procs;
}

static size_t cells(const struct part *s)
{
	return s->rows * s->columns;
}

/* p, x and the two numbers are for collectives. Returns the size of that memory. */
static size_t make_part(struct part *s, size_t first, size_t rows, size_t columns)
{
	size_t halo = 2 * columns, shared;

	*s = (struct part){ .first = first, .rows = rows, .columns = columns };
	shared = 2 * cells(s) + halo + 2;
	s->p = calloc(shared + 2 * cells(s), sizeof(double));
	if (s->p == NULL)
		give_up("memory", "not enough");
	s->x = s->p + cells(s) + halo;
	s->mine = s->x + cells(s);
	s->sum = s->mine + 1;
	s->r = s->sum + 1;
	s->q = s->r + cells(s);
	return shared * sizeof(double);
}

static acp_ga_t address(const struct part *s, const double *place)
{
	return s->ga + (acp_ga_t)((const char *)place - (const char *)s->p);
}

static struct acpx_block row_block(const struct part *s, size_t row)
{
	size_t size = s->columns * sizeof(double);

	return (struct acpx_block){ .offset = row * size, .size = size };
}

/* Ranks at an edge of the grid have one neighbour, or none. */
static void create_collectives(struct part *s)
{
	const struct acpx_neighbour neighbours[] = {
		{ .member = rank - 1, .out = row_block(s, 1), .in = row_block(s, 0) },
		{ .member = rank + 1 < procs ? rank + 1 : -1, .out = row_block(s, s->rows),
		  .in = row_block(s, s->rows + 1) },
	};

	need(acpx_coll_neighbours_create(world, s->ga, s->ga, neighbours, 2, &s->halo),
	     "acpx_coll_neighbours_create");
	need(acpx_coll_allreduce_create(world, address(s, s->sum), address(s, s->mine), 1,
					ACPX_SUM, ACPX_DOUBLE, &s->add),
	     "acpx_coll_allreduce_create");
}

static void free_collectives(struct part *s)
{
	need(acpx_coll_free(s->halo), "acpx_coll_free");
	need(acpx_coll_free(s->add), "acpx_coll_free");
}

static double add_up(struct part *s, double mine)
{
	if (s->add == NULL)
		return mine;
	*s->mine = mine;
	start(s->add);
	wait_for(s->add);
	return *s->sum;
}

static double dot(struct part *s, const double *a, const double *b)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < cells(s); i++)
		sum += a[i] * b[i];
	return add_up(s, sum);
}

/* Row @row of q is that of A p: A has 4 in the diagonal, and -1 for each neighbour of a cell. */
static void multiply_row(struct part *s, size_t row)
{
	const double *p = s->p + row * s->columns, *up = p - s->columns, *down = p + s->columns;
	double *q = s->q + (row - 1) * s->columns;
	size_t c, last = s->columns - 1;

	for (c = 0; c <= last; c++)
		q[c] = 4 * p[c] - up[c] - down[c] - (c > 0 ? p[c - 1] : 0) -
		       (c < last ? p[c + 1] : 0);
}

/* Rows 3 to rows - 2 need no row that is sent or received. */
static void multiply(struct part *s)
{
	size_t row;

	if (s->halo != NULL)
		start(s->halo);
	for (row = 3; row + 2 <= s->rows; row++)
		multiply_row(s, row);
	if (s->halo != NULL)
		wait_for(s->halo);
	for (row = 1; row <= s->rows; row++)
		if (row < 3 || row + 2 > s->rows)
			multiply_row(s, row);
}

/* The right side of the equation: some numbers from -1 to 1. */
static double right_side(size_t row, size_t column)
{
	return ((double)((row * 7 + column * 13) % 17) - 8) / 8;
}

static void begin(struct part *s)
{
	size_t row, c, i = 0;

	memset(s->p, 0, (cells(s) + 2 * s->columns) * sizeof(double));
	memset(s->x, 0, cells(s) * sizeof(double));
	for (row = 0; row < s->rows; row++) {
		for (c = 0; c < s->columns; c++, i++) {
			s->r[i] = right_side(s->first + row, c);
			s->p[s->columns + i] = s->r[i];
		}
	}
}

/* Solve A x = b. Returns the number of iterations. */
static unsigned int solve(struct part *s)
{
	double *p = s->p + s->columns, rr, next, alpha, enough;
	unsigned int iterations;
	size_t i;

	begin(s);
	rr = dot(s, s->r, s->r);
	enough = rr * RESIDUAL * RESIDUAL;
	for (iterations = 0; rr > enough; iterations++) {
		multiply(s);
		alpha = rr / dot(s, p, s->q);
		for (i = 0; i < cells(s); i++) {
			s->x[i] += alpha * p[i];
			s->r[i] -= alpha * s->q[i];
		}
		next = dot(s, s->r, s->r);
		for (i = 0; i < cells(s); i++)
			p[i] = s->r[i] + next / rr * p[i];
		rr = next;
	}
	return iterations;
}

/* Collect the solution at rank 0, registered as @dst there. */
static void gather(struct part *s, acp_ga_t dst, size_t rows)
{
	struct acpx_block *blocks = calloc((size_t)procs, sizeof(*blocks));
	size_t line = s->columns * sizeof(double);
	acpx_coll_t coll;
	int i;

	if (blocks == NULL)
		give_up("memory", "not enough");
	for (i = 0; i < procs; i++) {
		blocks[i].offset = first_row(i, rows) * line;
		blocks[i].size = first_row(i + 1, rows) * line - blocks[i].offset;
	}
	need(acpx_coll_gatherv_create(world, 0, dst, blocks, address(s, s->x),
				      cells(s) * sizeof(double), &coll),
	     "acpx_coll_gatherv_create");
	start(coll);
	wait_for(coll);
	need(acpx_coll_free(coll), "acpx_coll_free");
	free(blocks);
}

/* Rank 0: compare with the serial solution. */
static bool equal_to_serial(const double *x, size_t rows, size_t columns)
{
	double largest = 0, worst = 0, value;
	struct part alone;
	size_t i;

	make_part(&alone, 0, rows, columns);
	solve(&alone);
	for (i = 0; i < rows * columns; i++) {
		value = x[i] - alone.x[i];
		worst = value > worst ? value : -value > worst ? -value : worst;
		value = alone.x[i];
		largest = value > largest ? value : -value > largest ? -value : largest;
	}
	free(alone.p);
	return worst <= TOLERANCE * largest;
}

/* Rank 0 compares; all ranks return what it has found. */
static bool verify(struct part *s, size_t rows)
{
	size_t size = rows * s->columns * sizeof(double);
	double *x = NULL;
	acp_atkey_t key = ACP_ATKEY_NULL;

	if (rank == 0) {
		x = malloc(size);
		key = x ? acp_register_memory(x, size, 0) : ACP_ATKEY_NULL;
		if (key == ACP_ATKEY_NULL)
			give_up("memory of the result", "cannot be registered (see ulimit -l)");
	}
	gather(s, rank == 0 ? acp_query_ga(key, x) : ACP_GA_NULL, rows);
	if (rank == 0) {
		*s->mine = equal_to_serial(x, rows, s->columns);
		acp_unregister_memory(key);
		free(x);
	}
	need(acpx_bcast(world, 0, address(s, s->mine), sizeof(double)), "acpx_bcast");
	return *s->mine == 1;
}

/* Solve once more, and compare the bits. */
static bool same_again(struct part *s)
{
	size_t size = cells(s) * sizeof(double);
	double *first = malloc(size);
	bool same;

	if (first == NULL)
		give_up("memory", "not enough");
	memcpy(first, s->x, size);
	solve(s);
	same = memcmp(first, s->x, size) == 0;
	free(first);
	return add_up(s, !same) == 0;
}

static bool run(struct part *s, size_t rows)
{
	double started = now();
	unsigned int iterations = solve(s);
	bool right, same;

	if (rank == 0)
		printf("cg: %zu x %zu unknowns, %d ranks, %u iterations in %.3f s\n", rows,
		       s->columns, procs, iterations, now() - started);
	right = verify(s, rows);
	same = same_again(s);
	if (rank == 0)
		printf("cg: %s, %s\n", right ? "as the serial solution" : "NOT the serial solution",
		       same ? "and the same bits again" : "OTHER bits in a second run");
	return right && same;
}

static int share(size_t rows, size_t columns)
{
	size_t first = first_row(rank, rows), size;
	struct part mine;
	acp_atkey_t key;
	bool right;

	size = make_part(&mine, first, first_row(rank + 1, rows) - first, columns);
	key = acp_register_memory(mine.p, size, 0);
	if (key == ACP_ATKEY_NULL)
		give_up("memory of the grid", "cannot be registered (see ulimit -l)");
	mine.ga = acp_query_ga(key, mine.p);
	need(acpx_group_world(&world), "acpx_group_world");
	create_collectives(&mine);
	right = run(&mine, rows);
	free_collectives(&mine);
	acpx_group_free(world);
	if (acp_unregister_memory(key) != 0)
		give_up("memory of the grid", "cannot be unregistered");
	free(mine.p);
	return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool argument(int argc, char **argv, int index, size_t *value)
{
	char *end;

	if (index >= argc)
		return true;
	*value = strtoul(argv[index], &end, 10);
	return *end == '\0' && end != argv[index] && *value > 0 && *value <= SIDE_MAX;
}

int main(int argc, char **argv)
{
	size_t rows = 64, columns = 64;
	int status = 2;

	if (acp_init(&argc, &argv) != 0)
		return EXIT_FAILURE;
	rank = acp_rank();
	procs = acp_procs();
	if (argc <= 3 && argument(argc, argv, 1, &rows) && argument(argc, argv, 2, &columns) &&
	    rows >= (size_t)procs)
		status = share(rows, columns);
	else if (rank == 0)
		fprintf(stderr, "usage: cg [ROWS [COLUMNS]], up to %d each, a row per rank at least\n",
			SIDE_MAX);
	return acp_finalize() == 0 ? status : EXIT_FAILURE;
}
