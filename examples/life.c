// SPDX-License-Identifier: MIT
/*
 * life - Conway's game of life on a torus, distributed over the ranks by rows and columns
 *
 * Shows: two-dimensional tiles, whose columns are sent to the neighbours as strided copies, and
 * whose rows are sent with a signal, data and flag in one access (acpx_copy_signal); waiting for a
 * counter that the neighbours increment, so that no barrier is needed per step; gathering tiles
 * into one board by strided gets. Rank 0 compares the result with the serial computation.
 *
 * Run (here two ranks on this machine; arguments: rows, columns, steps, default 96 120 40):
 *
 *     ACP_NPROCS=2 ACP_RANK=0 ./life & ACP_NPROCS=2 ACP_RANK=1 ./life; wait
 *
 * Exit status: 0 if all cells agree, 1 if not, 2 for invalid arguments.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acp.h"

#define PATIENCE_S	60
#define SIDE_MAX	50000

/* At the start of the starter memory of each rank. */
struct shared {
	acp_ga_t tile;		/* owner: its two tiles, one after the other */
	uint64_t from[4];	/* neighbours: number of halos that arrived from each side */
	uint64_t right;		/* rank 0: the result of the comparison */
	uint64_t fetched;	/* owner: destination of gets */
};

/* Height x width cells, one byte each, and a halo of one cell on all sides. */
struct tile {
	size_t height, width;
	uint8_t *cells[2];	/* of this step and of the next one, alternating */
};

/* Sides of a tile. */
enum side { LEFT, RIGHT, UP, DOWN };

/* The whole board: rows x columns cells, high x wide tiles. */
static size_t rows = 96, columns = 120, steps = 40;
static int rank, procs, high, wide;
static struct shared *shared;

static void give_up(const char *what)
{
	char text[160];

	snprintf(text, sizeof(text), "life: rank %d: %s", rank, what);
	acp_abort(text);
	exit(EXIT_FAILURE);
}

#define ON(peer, member)	(acp_query_starter_ga(peer) + offsetof(struct shared, member))

static void sync_all(void)
{
	if (acp_sync() != 0)
		give_up("acp_sync failed");
}

/* Wait for an access and all before it. This one must succeed. */
static void finish(acp_handle_t handle)
{
	int status;

	if (handle == ACP_HANDLE_NULL)
		give_up("access not accepted");
	acp_complete(handle);
	status = acpx_status(handle);
	if (status != 0)
		give_up(acpx_strerror(status));
}

/* As square as the number of ranks allows. */
static void divide(void)
{
	for (high = 1; (high + 1) * (high + 1) <= procs; high++)
		;
	while (procs % high != 0)
		high--;
	wide = procs / high;
}

static size_t first_of(size_t cells, int part, int parts)
{
	return cells * (size_t)part / (size_t)parts;
}

static size_t height_of(int peer)
{
	return first_of(rows, peer / wide + 1, high) - first_of(rows, peer / wide, high);
}

static size_t width_of(int peer)
{
	return first_of(columns, peer % wide + 1, wide) - first_of(columns, peer % wide, wide);
}

/* Return the rank that many tiles below and to the right, around the torus. */
static int neighbour(int down, int right)
{
	int y = (rank / wide + down + high) % high, x = (rank % wide + right + wide) % wide;

	return y * wide + x;
}

static size_t tile_size(size_t height, size_t width)
{
	return (height + 2) * (width + 2);
}

static uint8_t *cell(const struct tile *t, int parity, size_t row, size_t column)
{
	return t->cells[parity] + row * (t->width + 2) + column;
}

static bool make_tile(struct tile *t, size_t height, size_t width)
{
	t->height = height;
	t->width = width;
	t->cells[0] = calloc(2, tile_size(height, width));
	if (t->cells[0] == NULL)
		return false;
	t->cells[1] = t->cells[0] + tile_size(height, width);
	return true;
}

/* A third of the cells live initially, depending on a hash of their position. */
static uint8_t initial(size_t row, size_t column)
{
	uint64_t x = (row * columns + column + 1) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return (x >> 40) % 3 == 0;
}

static void fill(const struct tile *t, size_t row, size_t column)
{
	size_t y, x;

	for (y = 0; y < t->height; y++)
		for (x = 0; x < t->width; x++)
			*cell(t, 0, y + 1, x + 1) = initial(row + y, column + x);
}

/* Compute one step of all cells of a tile, whose halo is in place. */
static void live(const struct tile *t, int parity)
{
	size_t y, x, line = t->width + 2;

	for (y = 1; y <= t->height; y++) {
		for (x = 1; x <= t->width; x++) {
			const uint8_t *c = cell(t, parity, y, x);
			int n = c[-1] + c[1] + c[-line - 1] + c[-line] + c[-line + 1] +
				c[line - 1] + c[line] + c[line + 1];

			*cell(t, !parity, y, x) = n == 3 || (n == 2 && *c);
		}
	}
}

/* ---- Halos ---- */

/*
 * Wait for the counter that the neighbour of that side increments. Sleeps instead of polling,
 * because there may be few CPUs.
 */
static void wait_for(enum side which, uint64_t value)
{
	const uint64_t *count = &shared->from[which];
	const struct timespec nap = { .tv_nsec = 50000 };
	time_t begin = time(NULL);
	int spins;

	for (spins = 0; __atomic_load_n(count, __ATOMIC_ACQUIRE) < value; spins++) {
		if (spins < 100)
			continue;
		nanosleep(&nap, NULL);
		if (time(NULL) - begin > PATIENCE_S)
			give_up("a neighbour's cells did not come");
	}
}

/* A tile of any rank in global memory. */
struct place {
	int peer;
	acp_ga_t tile;
	size_t height, width;
};

static acp_ga_t at(const struct place *p, int parity, size_t row, size_t column)
{
	size_t size = tile_size(p->height, p->width);

	return p->tile + (size_t)parity * size + row * (p->width + 2) + column;
}

static struct place get_place(int peer)
{
	struct place p = { .peer = peer, .height = height_of(peer), .width = width_of(peer) };

	finish(acp_copy(ON(rank, fetched), ON(peer, tile), sizeof(acp_ga_t), ACP_HANDLE_NULL));
	p.tile = shared->fetched;
	return p;
}

/*
 * Put an own column, whose cells are one row apart, to that of a neighbour; then increment its
 * counter.
 */
static acp_handle_t put_column(const struct place *to, enum side which, size_t there,
			       const struct place *me, size_t here, int parity)
{
	acp_handle_t put = acpx_copy_strided(at(to, parity, 1, there), at(me, parity, 1, here), 1,
					     me->height, (int64_t)to->width + 2,
					     (int64_t)me->width + 2, ACP_HANDLE_NULL);

	return acpx_copy_signal(ON(to->peer, from[which]), ON(rank, from[which]), 0,
				ON(to->peer, from[which]), 1, ACPX_SIGNAL_ADD, put);
}

/* Put a row with both its halo cells, and increment the counter, in one access. */
static acp_handle_t put_row(const struct place *to, enum side which, size_t there,
			    const struct place *me, size_t here, int parity)
{
	return acpx_copy_signal(at(to, parity, there, 0), at(me, parity, here, 0), me->width + 2,
				ON(to->peer, from[which]), 1, ACPX_SIGNAL_ADD,
				ACP_HANDLE_NULL);
}

/*
 * Columns first; rows when those of both sides have arrived, because their ends are the corners. A
 * rank can be at most one step ahead of a neighbour, as in heat.c: the memory that it overwrites
 * then is not read any more, and the neighbour counts each side separately.
 */
static void exchange(const struct place *me, const struct place around[4], int parity,
		     uint64_t step)
{
	acp_handle_t last[4];
	int i;

	last[0] = put_column(&around[LEFT], RIGHT, around[LEFT].width + 1, me, 1, parity);
	last[1] = put_column(&around[RIGHT], LEFT, 0, me, me->width, parity);
	wait_for(LEFT, step);
	wait_for(RIGHT, step);
	last[2] = put_row(&around[UP], DOWN, around[UP].height + 1, me, 1, parity);
	last[3] = put_row(&around[DOWN], UP, 0, me, me->height, parity);
	wait_for(UP, step);
	wait_for(DOWN, step);
	for (i = 0; i < 4; i++)
		finish(last[i]);	/* the cells may change again */
}

static void play(const struct tile *t)
{
	const struct place me = get_place(rank), around[4] = {
		get_place(neighbour(0, -1)), get_place(neighbour(0, 1)),
		get_place(neighbour(-1, 0)), get_place(neighbour(1, 0)),
	};
	uint64_t step;

	exchange(&me, around, 0, 1);
	for (step = 0; step < steps; step++) {
		live(t, step & 1);
		exchange(&me, around, !(step & 1), step + 2);
	}
}

/* ---- Result ---- */

/* Get the cells of every tile, without halos, into a board that is registered as ga. */
static void gather(acp_ga_t ga)
{
	int peer;

	for (peer = 0; peer < procs; peer++) {
		struct place p = get_place(peer);
		size_t row = first_of(rows, peer / wide, high);
		size_t column = first_of(columns, peer % wide, wide);

		finish(acpx_copy_strided(ga + row * columns + column, at(&p, steps & 1, 1, 1),
					 p.width, p.height, (int64_t)columns,
					 (int64_t)p.width + 2, ACP_HANDLE_NULL));
	}
}

/* The halo of a tile that is the whole board is its own opposite side. */
static void wrap(const struct tile *t, int parity)
{
	size_t y, line = t->width + 2;

	for (y = 1; y <= t->height; y++) {
		*cell(t, parity, y, 0) = *cell(t, parity, y, t->width);
		*cell(t, parity, y, t->width + 1) = *cell(t, parity, y, 1);
	}
	memcpy(cell(t, parity, 0, 0), cell(t, parity, t->height, 0), line);
	memcpy(cell(t, parity, t->height + 1, 0), cell(t, parity, 1, 0), line);
}

/* Rank 0: compare the serial computation of the whole board with the result of all ranks. */
static bool verify(void)
{
	uint8_t *together = malloc(rows * columns);
	size_t step, row, living = 0, wrong = 0, i;
	acp_atkey_t key;
	struct tile alone;

	if (together == NULL || !make_tile(&alone, rows, columns))
		give_up("out of memory");
	key = acp_register_memory(together, rows * columns, 0);
	if (key == ACP_ATKEY_NULL)
		give_up("cannot register memory for the board (see ulimit -l)");
	gather(acp_query_ga(key, together));
	fill(&alone, 0, 0);
	for (step = 0; step < steps; step++) {
		wrap(&alone, step & 1);
		live(&alone, step & 1);
	}
	for (row = 0; row < rows; row++)
		wrong += memcmp(together + row * columns, cell(&alone, steps & 1, row + 1, 1),
				columns) != 0;
	for (i = 0; i < rows * columns; i++)
		living += together[i];
	printf("life: %zu x %zu cells, %d x %d tiles, %zu steps: %zu cells live\n", rows, columns,
	       high, wide, steps, living);
	if (wrong != 0)
		fprintf(stderr, "life: %zu rows differ from the serial result\n", wrong);
	if (acp_unregister_memory(key) != 0)
		give_up("cannot unregister memory");
	free(together);
	free(alone.cells[0]);
	return wrong == 0;
}

static int run(void)
{
	struct tile mine;
	acp_atkey_t key;

	if (!make_tile(&mine, height_of(rank), width_of(rank)))
		give_up("out of memory");
	fill(&mine, first_of(rows, rank / wide, high), first_of(columns, rank % wide, wide));
	key = acp_register_memory(mine.cells[0], 2 * tile_size(mine.height, mine.width), 0);
	if (key == ACP_ATKEY_NULL)
		give_up("cannot register memory for the tiles (see ulimit -l)");
	shared->tile = acp_query_ga(key, mine.cells[0]);
	sync_all();
	play(&mine);
	sync_all();
	if (rank == 0)
		shared->right = verify();
	sync_all();
	finish(acp_copy(ON(rank, fetched), ON(0, right), sizeof(uint64_t), ACP_HANDLE_NULL));
	if (rank == 0)
		printf("life: %s\n", shared->right ? "equal to the serial result" : "FAILED");
	if (acp_unregister_memory(key) != 0)
		give_up("cannot unregister memory");
	free(mine.cells[0]);
	return shared->fetched ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool argument(int argc, char **argv, int index, size_t least, size_t *value)
{
	char *end;

	if (index >= argc)
		return true;
	*value = strtoul(argv[index], &end, 10);
	return *end == '\0' && end != argv[index] && *value >= least && *value <= SIDE_MAX;
}

static int start(int argc, char **argv)
{
	rank = acp_rank();
	procs = acp_procs();
	divide();
	shared = acp_query_address(acp_query_starter_ga(rank));
	if (shared == NULL || acpx_starter_size() < sizeof(*shared))
		give_up("too little starter memory (ACP_STARTER_SIZE)");
	if (argc > 4 || !argument(argc, argv, 1, (size_t)high, &rows) ||
	    !argument(argc, argv, 2, (size_t)wide, &columns) ||
	    !argument(argc, argv, 3, 0, &steps)) {
		if (rank == 0)
			fprintf(stderr, "usage: life [ROWS [COLUMNS [STEPS]]], up to %d each, %s\n",
				SIDE_MAX, "a cell per tile at least");
		return 2;
	}
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	return run();
}

int main(int argc, char **argv)
{
	int status;

	if (acp_init(&argc, &argv) != 0) {
		fprintf(stderr, "life: acp_init failed\n");
		return EXIT_FAILURE;
	}
	status = start(argc, argv);
	if (acp_finalize() != 0) {
		fprintf(stderr, "life: acp_finalize failed\n");
		status = EXIT_FAILURE;
	}
	return status;
}
