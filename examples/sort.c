// SPDX-License-Identifier: MIT
/*
 * sort - sort the lines of a file, distributed over the ranks by samples
 *
 * Shows: collectives with a block of its own size for each member. Each rank sorts its part of the
 * file and takes samples of it; acpx_allgather shows all samples to all ranks, which choose the
 * same lines as borders between the ranks. acpx_alltoall tells how many bytes will come from whom,
 * acpx_coll_alltoallv_create brings them. Each rank sorts what it got and writes it to the output,
 * where the sum of what all ranks before it have got says (acpx_coll_exscan_create).
 *
 * Run (here two ranks on this machine; lines generates a file):
 *
 *     ./lines >in
 *     ACP_NPROCS=2 ACP_RANK=0 ./sort in out & ACP_NPROCS=2 ACP_RANK=1 ./sort in out; wait
 *
 * Every rank must be able to read the input and to write the output: both are on a file system that
 * the nodes share. sort-check compares the output with that of sort(1). The order is that of bytes,
 * as with LC_ALL=C.
 *
 * Exit status: 0, 1 if something failed, 2 for invalid arguments.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "acp.h"

#define SAMPLES	32		/* of each rank */
#define KEY	32		/* bytes of a line that decide where it goes */

/* The beginning of a line, with zeros behind it: keys have the order of lines, or are equal. */
struct key {
	unsigned char byte[KEY];
};

struct line {
	const char *text;
	size_t size;		/* without the end of the line */
};

struct lines {
	struct line *list;
	size_t count;
};

/* Bytes that are registered. */
struct memory {
	char *at;
	size_t size;
	acp_atkey_t key;
	acp_ga_t ga;
};

/* For collectives; the arrays have an element for each rank, or a few. */
struct board {
	struct memory memory;
	struct key *samples, *all;
	uint64_t *out, *in;	/* bytes for and from each rank */
	uint64_t *mine, *sum;	/* bytes and lines of this rank, and of others */
};

static int rank, procs;
static acpx_group_t world;

static void give_up(const char *what, const char *why)
{
	char text[300];

	snprintf(text, sizeof(text), "sort: rank %d: %s: %s", rank, what, why);
	acp_abort(text);
	exit(EXIT_FAILURE);
}

/* A function of groups or collectives has returned 0 or -errno. */
static void need(int result, const char *what)
{
	if (result < 0)
		give_up(what, strerror(-result));
}

static void *allocate(size_t size)
{
	void *memory = calloc(1, size + 1);

	if (memory == NULL)
		give_up("memory", strerror(errno));
	return memory;
}

static struct memory make_memory(size_t size)
{
	struct memory m = { .at = allocate(size), .size = size };

	m.key = acp_register_memory(m.at, size + 1, 0);
	if (m.key == ACP_ATKEY_NULL)
		give_up("memory for lines", "cannot be registered (see ulimit -l)");
	m.ga = acp_query_ga(m.key, m.at);
	return m;
}

static void free_memory(struct memory *m)
{
	if (acp_unregister_memory(m->key) != 0)
		give_up("memory for lines", "cannot be unregistered");
	free(m->at);
}

static acp_ga_t address(const struct memory *m, const void *place)
{
	return m->ga + (acp_ga_t)((const char *)place - m->at);
}

/* Start a collective that is used once, and wait for it. */
static void execute(acpx_coll_t coll)
{
	need(acpx_coll_start(coll), "acpx_coll_start");
	need(acpx_coll_wait(coll, ACPX_FOREVER), "acpx_coll_wait");
	need(acpx_coll_free(coll), "acpx_coll_free");
}

static void make_board(struct board *b)
{
	size_t n = (size_t)procs;

	b->memory = make_memory((n + 1) * SAMPLES * sizeof(struct key) +
				(2 * n + 4) * sizeof(uint64_t));
	b->out = (uint64_t *)b->memory.at;
	b->in = b->out + n;
	b->mine = b->in + n;
	b->sum = b->mine + 2;
	b->samples = (struct key *)(b->sum + 2);
	b->all = b->samples + SAMPLES;
}

/* ---- Lines ---- */

static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	int order = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);

	return order ? order : (x->size > y->size) - (x->size < y->size);
}

static int compare_keys(const void *a, const void *b)
{
	return memcmp(a, b, KEY);
}

static struct key key_of(const struct line *line)
{
	struct key key = { { 0 } };

	memcpy(key.byte, line->text, line->size < KEY ? line->size : KEY);
	return key;
}

/* Sort the lines of a text. */
static struct lines sort_lines(const char *text, size_t size)
{
	struct lines lines = { NULL, 0 };
	const char *end = text + size, *at, *stop;

	for (at = text; at < end; at = stop ? stop + 1 : end) {
		stop = memchr(at, '\n', (size_t)(end - at));
		lines.count++;
	}
	lines.list = allocate(lines.count * sizeof(*lines.list));
	lines.count = 0;
	for (at = text; at < end; at = stop ? stop + 1 : end) {
		stop = memchr(at, '\n', (size_t)(end - at));
		lines.list[lines.count++] = (struct line){ at, (size_t)((stop ? stop : end) - at) };
	}
	qsort(lines.list, lines.count, sizeof(*lines.list), compare_lines);
	return lines;
}

/* Write lines one after the other. Returns the end. */
static char *join(char *to, const struct line *first, const struct line *end)
{
	for (; first < end; first++) {
		memcpy(to, first->text, first->size);
		to += first->size;
		*to++ = '\n';
	}
	return to;
}

/* ---- Files ---- */

static const char *map_file(const char *name, size_t *size)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *text;

	if (fd < 0 || fstat(fd, &st) != 0)
		give_up(name, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		give_up(name, "is not a regular file, or is empty");
	*size = (size_t)st.st_size;
	text = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		give_up(name, strerror(errno));
	close(fd);
	return text;
}

/* A line belongs to the rank in whose part it begins: the first one from an offset on. */
static size_t first_line(const char *text, size_t size, size_t offset)
{
	const char *end;

	if (offset == 0 || offset >= size)
		return offset;
	end = memchr(text + offset - 1, '\n', size - offset + 1);
	return end ? (size_t)(end - text) + 1 : size;
}

/* Rank 0 creates the file before the others open it. */
static int open_output(const char *name)
{
	int fd = -1;

	if (rank == 0)
		fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	need(acpx_barrier(world), "acpx_barrier");
	if (rank != 0)
		fd = open(name, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		give_up(name, strerror(errno));
	return fd;
}

static void write_output(const char *name, const char *text, size_t size, uint64_t offset)
{
	int fd = open_output(name);
	ssize_t done;

	for (; size > 0; size -= (size_t)done, text += done, offset += (uint64_t)done) {
		done = pwrite(fd, text, size, (off_t)offset);
		if (done <= 0)
			give_up(name, strerror(errno));
	}
	if (close(fd) != 0)
		give_up(name, strerror(errno));
}

/* ---- The exchange ---- */

/* Show samples of all ranks to all; @border gets the least key of each rank but the first. */
static void choose_borders(struct board *b, const struct lines *own, struct key *border)
{
	size_t i, at, n = (size_t)procs;

	for (i = 0; i < SAMPLES; i++) {
		at = (2 * i + 1) * own->count / (2 * SAMPLES);
		if (own->count == 0)
			memset(&b->samples[i], 0xff, KEY);
		else
			b->samples[i] = key_of(&own->list[at]);
	}
	need(acpx_allgather(world, address(&b->memory, b->all), address(&b->memory, b->samples),
			    SAMPLES * sizeof(struct key)), "acpx_allgather");
	qsort(b->all, n * SAMPLES, sizeof(struct key), compare_keys);
	for (i = 1; i < n; i++)
		border[i] = b->all[i * SAMPLES];
}

/* Write the lines one after the other, and count the bytes for each rank. */
static void pack(struct board *b, const struct lines *own, const struct key *border, char *to)
{
	size_t first = 0, end, of;
	struct key key;
	char *stop;

	for (of = 0; of < (size_t)procs; of++, first = end) {
		for (end = first; end < own->count; end++) {
			key = key_of(&own->list[end]);
			if (of + 1 < (size_t)procs && compare_keys(&key, &border[of + 1]) >= 0)
				break;
		}
		stop = join(to, own->list + first, own->list + end);
		b->out[of] = (uint64_t)(stop - to);
		to = stop;
	}
}

/* Blocks one behind the other. Returns their size. */
static size_t place(struct acpx_block *blocks, const uint64_t *sizes)
{
	size_t offset = 0;
	int i;

	for (i = 0; i < procs; i++) {
		blocks[i] = (struct acpx_block){ .offset = offset, .size = sizes[i] };
		offset += sizes[i];
	}
	return offset;
}

/* Send each rank its bytes. Returns those that have come. */
static struct memory exchange(struct board *b, const struct memory *out)
{
	struct acpx_block *to = allocate((size_t)procs * sizeof(*to));
	struct acpx_block *from = allocate((size_t)procs * sizeof(*from));
	struct memory in;
	acpx_coll_t coll;

	need(acpx_alltoall(world, address(&b->memory, b->in), address(&b->memory, b->out),
			   sizeof(uint64_t)), "acpx_alltoall");
	place(from, b->out);
	in = make_memory(place(to, b->in));
	need(acpx_coll_alltoallv_create(world, in.ga, to, out->ga, from, &coll),
	     "acpx_coll_alltoallv_create");
	execute(coll);
	free(to);
	free(from);
	return in;
}

/* Returns the bytes that all ranks before this one hold. */
static uint64_t offset_of(struct board *b, size_t bytes, size_t lines)
{
	acp_ga_t mine = address(&b->memory, b->mine), sum = address(&b->memory, b->sum);
	acpx_coll_t coll;

	b->mine[0] = bytes;
	b->mine[1] = lines;
	need(acpx_coll_exscan_create(world, sum, mine, 2, ACPX_SUM, ACPX_UINT64, &coll),
	     "acpx_coll_exscan_create");
	execute(coll);
	return rank == 0 ? 0 : b->sum[0];	/* nothing is stored at the first one */
}

/* ---- All together ---- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Sort the own part, and send each line to its rank. */
static struct memory distribute(struct board *b, const char *text, size_t size)
{
	size_t n = (size_t)procs, at = first_line(text, size, size * (size_t)rank / n);
	size_t end = first_line(text, size, size * ((size_t)rank + 1) / n);
	struct key *border = allocate(n * sizeof(*border));
	struct lines own = sort_lines(text + at, end - at);
	struct memory out = make_memory(end - at + 1), in;	/* the last end may be missing */

	choose_borders(b, &own, border);
	pack(b, &own, border, out.at);
	in = exchange(b, &out);
	free_memory(&out);
	free(own.list);
	free(border);
	return in;
}

/* Sort what has come, and write it. */
static void finish(struct board *b, const struct memory *in, const char *output)
{
	struct lines lines = sort_lines(in->at, in->size);
	char *text = allocate(in->size);

	join(text, lines.list, lines.list + lines.count);
	write_output(output, text, in->size, offset_of(b, in->size, lines.count));
	free(lines.list);
	free(text);
}

/* The numbers of all ranks; also, all of them have written. */
static void report(struct board *b, double begin)
{
	uint64_t largest;

	need(acpx_allreduce(world, address(&b->memory, b->sum), address(&b->memory, b->mine), 1,
			    ACPX_MAX, ACPX_UINT64), "acpx_allreduce");
	largest = b->sum[0];
	need(acpx_allreduce(world, address(&b->memory, b->sum), address(&b->memory, b->mine), 2,
			    ACPX_SUM, ACPX_UINT64), "acpx_allreduce");
	if (rank == 0)
		printf("sort: %" PRIu64 " lines, %" PRIu64 " bytes on %d ranks in %.3f s; "
		       "the largest part is %.2f times the mean\n", b->sum[1], b->sum[0], procs,
		       now() - begin, (double)largest * procs / (double)b->sum[0]);
}

static void run(const char *input, const char *output)
{
	double begin = now();
	struct board board;
	struct memory in;
	const char *text;
	size_t size;

	need(acpx_group_world(&world), "acpx_group_world");
	make_board(&board);
	text = map_file(input, &size);
	in = distribute(&board, text, size);
	finish(&board, &in, output);
	report(&board, begin);
	free_memory(&in);
	free_memory(&board.memory);
	acpx_group_free(world);
}

int main(int argc, char **argv)
{
	int status = EXIT_SUCCESS;

	if (acp_init(&argc, &argv) != 0)
		return EXIT_FAILURE;
	rank = acp_rank();
	procs = acp_procs();
	if (argc == 3) {
		run(argv[1], argv[2]);
	} else {
		if (rank == 0)
			fprintf(stderr, "usage: sort INPUT OUTPUT\n");
		status = 2;
	}
	return acp_finalize() == 0 ? status : EXIT_FAILURE;
}
