// SPDX-License-Identifier: MIT
/*
 * heat - heat diffusion on a plate, distributed over the ranks by rows
 *
 * Shows: registering own memory and publishing its address in starter memory; the halo exchange of
 * a stencil code by one-sided copies directly into the arrays of the neighbours; a flag after each
 * row (ACP_HANDLE_CONT), so that neighbours synchronise pairwise and no barrier is needed per step;
 * gathering a result by gets. Rank 0 compares the result with the serial computation bit by bit and
 * draws the plate. With a fourth argument, "neighbours", the halo exchange is a collective instead,
 * which does the same: acpx_coll_neighbours_create.
 *
 * Run (here two ranks on this machine; arguments: rows, columns, steps, default 128 128 50):
 *
 *     ACP_NPROCS=2 ACP_RANK=0 ./heat & ACP_NPROCS=2 ACP_RANK=1 ./heat; wait
 *
 * Exit status: 0 if all bits agree, 1 if not, 2 for invalid arguments.
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
#define SIDE_MAX	100000

/* At the start of the starter memory of each rank. */
struct board {
	acp_ga_t grid;		/* owner: its two grids, one after the other */
	uint64_t from_up;	/* upper neighbour: number of steps whose row is in place */
	uint64_t from_down;	/* lower neighbour: the same */
	uint64_t mine;		/* owner: source of these flags */
	uint64_t right;		/* rank 0: the result of the comparison */
	acp_ga_t neighbour;	/* owner: destination of gets */
};

/* A plate of rows x columns cells. A grid has one more row above and below, the halo. */
struct plate {
	size_t rows, columns;
	double *grid[2];	/* of this step and of the next one, alternating */
};

static int rank, procs;
static struct board *board;
static bool collectives;	/* exchange rows by them */

static void give_up(const char *what)
{
	char text[160];

	snprintf(text, sizeof(text), "heat: rank %d: %s", rank, what);
	acp_abort(text);
	exit(EXIT_FAILURE);
}

static acp_ga_t on(int peer, size_t member)
{
	return acp_query_starter_ga(peer) + member;
}

#define ON(peer, member)	on(peer, offsetof(struct board, member))

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

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t first_row(int peer, size_t rows)
{
	return rows * (size_t)peer / (size_t)procs;
}

static size_t grid_size(const struct plate *p)
{
	return (p->rows + 2) * p->columns * sizeof(double);
}

static double *row(const struct plate *p, int parity, size_t index)
{
	return p->grid[parity] + index * p->columns;
}

/* The plate is cold, except for a hot upper edge and two hot spots. */
static double initial(size_t r, size_t c, size_t rows, size_t columns)
{
	if (r == 0)
		return 100.0;
	if (r / (rows / 8 + 1) == 4 && (c / (columns / 8 + 1) == 2 || c / (columns / 8 + 1) == 5))
		return 90.0;
	return 0.0;
}

/*
 * Initialize both grids, because cells of the edge are never computed. Row 1 is row @first of all
 * rows.
 */
static bool make_plate(struct plate *p, size_t first, size_t rows, size_t columns, size_t all)
{
	size_t r, c;

	p->rows = rows;
	p->columns = columns;
	p->grid[0] = calloc(2, grid_size(p));
	if (p->grid[0] == NULL)
		return false;
	p->grid[1] = p->grid[0] + (rows + 2) * columns;
	for (r = 0; r < rows + 2; r++) {
		if (first + r == 0 || first + r > all)
			continue;	/* beyond the plate: an unused halo */
		for (c = 0; c < columns; c++)
			row(p, 0, r)[c] = initial(first + r - 1, c, all, columns);
	}
	memcpy(p->grid[1], p->grid[0], grid_size(p));
	return true;
}

/* All arithmetic is here: serial and distributed runs share it, so that they agree bit by bit. */
static void relax_row(double *out, const double *up, const double *mid, const double *down,
		      size_t columns)
{
	size_t c;

	for (c = 1; c + 1 < columns; c++)
		out[c] = mid[c] + 0.2 * (up[c] + down[c] + mid[c - 1] + mid[c + 1] - 4.0 * mid[c]);
}

/* Compute one step of the rows of p. The edge rows of the whole plate are constant. */
static void relax(const struct plate *p, int parity, size_t first, size_t all)
{
	size_t r;

	for (r = 1; r <= p->rows; r++) {
		if (first + r == 1 || first + r == all)
			continue;
		relax_row(row(p, !parity, r), row(p, parity, r - 1), row(p, parity, r),
			  row(p, parity, r + 1), p->columns);
	}
}

/*
 * Put an own row, registered as src, into a halo row of a neighbour, followed by the number of
 * steps done. Same source, same target: CONT orders the two without waiting in between.
 */
static void put_row(acp_ga_t halo, acp_ga_t src, size_t columns, acp_ga_t flag,
		    acp_handle_t done[2])
{
	done[0] = acp_copy(halo, src, columns * sizeof(double), ACP_HANDLE_NULL);
	done[1] = acp_copy(flag, ON(rank, mine), sizeof(uint64_t), ACP_HANDLE_CONT);
	if (done[0] == ACP_HANDLE_NULL || done[1] == ACP_HANDLE_NULL)
		give_up("put not accepted");
}

/*
 * Wait until the neighbour writes the flag. Sleeps instead of polling, because there may be few
 * CPUs.
 */
static void wait_for(const uint64_t *flag, uint64_t value)
{
	const struct timespec nap = { .tv_nsec = 50000 };
	double begin = now();
	int spins;

	for (spins = 0; __atomic_load_n(flag, __ATOMIC_ACQUIRE) < value; spins++) {
		if (spins < 100)
			continue;
		nanosleep(&nap, NULL);
		if (now() - begin > PATIENCE_S)
			give_up("a neighbour's row did not come");
	}
}

/* The grids of a rank: of a neighbour, own ones, or none beyond the edge of the plate. */
struct place {
	bool there;
	acp_ga_t grid;
	size_t rows;
};

static acp_ga_t row_of(const struct place *peer, int parity, size_t index, size_t columns)
{
	size_t cell = ((size_t)parity * (peer->rows + 2) + index) * columns;

	return peer->grid + cell * sizeof(double);
}

/*
 * Send the new boundary rows and wait for those of the neighbours. A rank can be at most one step
 * ahead: it starts the next step when the rows of its neighbours have arrived, and these were sent
 * after the neighbours had finished computing. Therefore the halo that it overwrites then is not
 * read any more.
 */
static void exchange(const struct place *me, const struct place *up, const struct place *down,
		     int parity, uint64_t step, size_t columns)
{
	acp_handle_t done[4];
	int n = 0, i;

	board->mine = step;
	if (up->there) {
		put_row(row_of(up, parity, up->rows + 1, columns), row_of(me, parity, 1, columns),
			columns, ON(rank - 1, from_down), done);
		n = 2;
	}
	if (down->there) {
		put_row(row_of(down, parity, 0, columns), row_of(me, parity, me->rows, columns),
			columns, ON(rank + 1, from_up), done + n);
		n += 2;
	}
	if (up->there)
		wait_for(&board->from_up, step);
	if (down->there)
		wait_for(&board->from_down, step);
	for (i = 0; i < n; i++)
		finish(done[i]);	/* board->mine and the rows may change again */
}

/* The same by collectives, one for each grid. */
static void create_exchange(const struct plate *p, acpx_coll_t halo[2])
{
	const size_t line = p->columns * sizeof(double), last = p->rows * line;
	const int up = rank - 1, down = rank + 1 < procs ? rank + 1 : -1;
	const struct acpx_neighbour neighbours[] = {
		{ .member = up, .out = { line, line }, .in = { 0, line } },
		{ .member = down, .out = { last, line }, .in = { last + line, line } },
	};
	acpx_group_t world;
	acp_ga_t grid;
	int parity;

	if (acpx_group_world(&world) != 0)
		give_up("no group of all ranks");
	for (parity = 0; parity < 2; parity++) {
		grid = board->grid + (acp_ga_t)parity * grid_size(p);
		if (acpx_coll_neighbours_create(world, grid, grid, neighbours, 2,
						&halo[parity]) != 0)
			give_up("cannot create the exchange with the neighbours");
	}
	acpx_group_free(world);
}

static void exchange_by(acpx_coll_t halo)
{
	if (acpx_coll_start(halo) != 0 || acpx_coll_wait(halo, PATIENCE_S * 1000000000ULL) != 0)
		give_up("the exchange with the neighbours failed");
}

static void free_exchange(acpx_coll_t halo[2])
{
	if (acpx_coll_free(halo[0]) != 0 || acpx_coll_free(halo[1]) != 0)
		give_up("cannot free the exchange with the neighbours");
}

static struct place get_place(int peer, size_t rows)
{
	struct place n = { .there = peer >= 0 && peer < procs };

	if (!n.there)
		return n;
	finish(acp_copy(ON(rank, neighbour), ON(peer, grid), sizeof(acp_ga_t), ACP_HANDLE_NULL));
	n.grid = board->neighbour;
	n.rows = first_row(peer + 1, rows) - first_row(peer, rows);
	return n;
}

static void diffuse(const struct plate *p, size_t rows, uint64_t steps)
{
	struct place me = get_place(rank, rows), up = get_place(rank - 1, rows);
	struct place down = get_place(rank + 1, rows);
	acpx_coll_t halo[2];
	uint64_t step;
	double begin;

	if (collectives)
		create_exchange(p, halo);
	sync_all();	/* no rank writes a halo before its grids exist */
	begin = now();
	for (step = 0; step < steps; step++) {
		relax(p, step & 1, first_row(rank, rows), rows);
		if (collectives)
			exchange_by(halo[!(step & 1)]);
		else
			exchange(&me, &up, &down, !(step & 1), step + 1, p->columns);
	}
	if (rank == 0)
		printf("heat: %zu x %zu cells, %d ranks, %llu steps in %.3f s\n", rows, p->columns,
		       procs, (unsigned long long)steps, now() - begin);
	if (collectives)
		free_exchange(halo);
	sync_all();
}

/* Return the mean temperature of part i of n, j of m of the plate. */
static double mean(const struct plate *p, size_t i, size_t n, size_t j, size_t m)
{
	size_t r, c, cells = 0;
	double sum = 0;

	for (r = i * p->rows / n; r < (i + 1) * p->rows / n; r++) {
		for (c = j * p->columns / m; c < (j + 1) * p->columns / m; c++, cells++)
			sum += p->grid[0][r * p->columns + c];
	}
	return sum / (double)cells;
}

/* Draw the plate coarsely: from blank for cold to @ for 90 degrees and more. */
static void draw(const struct plate *p)
{
	static const char shade[] = " .:-=+*#%@";
	size_t height = p->rows < 16 ? p->rows : 16;
	size_t width = p->columns < 64 ? p->columns : 64;
	size_t r, c;
	int index;

	for (r = 0; r < height; r++) {
		printf("    |");
		for (c = 0; c < width; c++) {
			index = (int)(mean(p, r, height, c, width) / 10);
			putchar(shade[index > 9 ? 9 : index]);
		}
		printf("|\n");
	}
}

/* Get the rows of every rank into cells, which are registered as ga. */
static void gather(acp_ga_t ga, size_t rows, size_t columns, int parity)
{
	size_t line = columns * sizeof(double);
	int peer;

	for (peer = 0; peer < procs; peer++) {
		struct place n = get_place(peer, rows);

		finish(acp_copy(ga + first_row(peer, rows) * line, row_of(&n, parity, 1, columns),
				n.rows * line, ACP_HANDLE_NULL));
	}
}

/* Gather the result of all ranks in a plate without halo. */
static void collect(struct plate *result, uint64_t steps)
{
	size_t size = result->rows * result->columns * sizeof(double);
	acp_atkey_t key;

	result->grid[0] = malloc(size);
	if (result->grid[0] == NULL)
		give_up("out of memory");
	key = acp_register_memory(result->grid[0], size, 0);
	if (key == ACP_ATKEY_NULL)
		give_up("cannot register memory for the result (see ulimit -l)");
	gather(acp_query_ga(key, result->grid[0]), result->rows, result->columns, steps & 1);
	if (acp_unregister_memory(key) != 0)
		give_up("cannot unregister memory");
}

/* Rank 0: compare the serial computation of the whole plate with the result of all ranks. */
static bool verify(size_t rows, size_t columns, uint64_t steps)
{
	struct plate result = { .rows = rows, .columns = columns };
	struct plate alone;
	size_t wrong = 0, i;
	uint64_t step;

	if (!make_plate(&alone, 0, rows, columns, rows))
		give_up("out of memory");
	collect(&result, steps);
	for (step = 0; step < steps; step++)
		relax(&alone, step & 1, 0, rows);
	for (i = 0; i < rows * columns; i++)
		wrong += memcmp(result.grid[0] + i, row(&alone, steps & 1, 1) + i,
				sizeof(double)) != 0;
	draw(&result);
	if (wrong != 0)
		fprintf(stderr, "heat: %zu of %zu cells differ from the serial result\n", wrong,
			rows * columns);
	free(alone.grid[0]);
	free(result.grid[0]);
	return wrong == 0;
}

/* All ranks end with the result of rank 0. */
static bool agree(bool right)
{
	if (rank == 0)
		board->right = right;
	sync_all();
	finish(acp_copy(ON(rank, neighbour), ON(0, right), sizeof(uint64_t), ACP_HANDLE_NULL));
	return board->neighbour == 1;
}

static int run(size_t rows, size_t columns, uint64_t steps)
{
	size_t first = first_row(rank, rows);
	struct plate mine;
	acp_atkey_t key;
	bool right = true;

	if (!make_plate(&mine, first, first_row(rank + 1, rows) - first, columns, rows))
		give_up("out of memory");
	key = acp_register_memory(mine.grid[0], 2 * grid_size(&mine), 0);
	if (key == ACP_ATKEY_NULL)
		give_up("cannot register memory for the grids (see ulimit -l)");
	board->grid = acp_query_ga(key, mine.grid[0]);
	sync_all();
	diffuse(&mine, rows, steps);
	if (rank == 0)
		right = verify(rows, columns, steps);
	right = agree(right);
	if (rank == 0)
		printf("heat: %s\n", right ? "equal to the serial result, bit for bit" : "FAILED");
	if (acp_unregister_memory(key) != 0)
		give_up("cannot unregister memory");
	free(mine.grid[0]);
	return right ? EXIT_SUCCESS : EXIT_FAILURE;
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
	size_t rows = 128, columns = 128, steps = 50;

	rank = acp_rank();
	procs = acp_procs();
	board = acp_query_address(acp_query_starter_ga(rank));
	if (board == NULL || acpx_starter_size() < sizeof(*board))
		give_up("too little starter memory (ACP_STARTER_SIZE)");
	collectives = argc == 5 && strcmp(argv[4], "neighbours") == 0;
	if (argc > 4 + collectives || !argument(argc, argv, 1, 3, &rows) ||
	    !argument(argc, argv, 2, 3, &columns) || !argument(argc, argv, 3, 0, &steps) ||
	    rows < (size_t)procs) {
		if (rank == 0)
			fprintf(stderr, "usage: heat [ROWS [COLUMNS [STEPS [neighbours]]]], %s%d each\n",
				"3 rows and columns and a row per rank at least, up to ", SIDE_MAX);
		return 2;
	}
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	return run(rows, columns, steps);
}

int main(int argc, char **argv)
{
	int status;

	if (acp_init(&argc, &argv) != 0) {
		fprintf(stderr, "heat: acp_init failed\n");
		return EXIT_FAILURE;
	}
	status = start(argc, argv);
	if (acp_finalize() != 0) {
		fprintf(stderr, "heat: acp_finalize failed\n");
		status = EXIT_FAILURE;
	}
	return status;
}
