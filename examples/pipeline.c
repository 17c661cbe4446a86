// SPDX-License-Identifier: MIT
/*
 * pipeline - a text passes through all ranks, which process it step by step
 *
 * Shows: channels. Rank 0 reads a file (at most the first MiB) and sends it piece by piece to rank
 * 1, that one to rank 2 and so on; the last rank sends back to rank 0. Each rank in between rotates
 * the letters of a piece in the alphabet by its own number. Every rank has several receives and
 * sends outstanding, so that all ranks process different pieces at the same time. Short and long
 * pieces alternate, from one line to the whole file: channels accept any size. Finally, rank 0
 * compares the result with its own computation.
 *
 * Run (two ranks or more; here three on this machine; without an argument a file that every Debian
 * system has):
 *
 *     for r in 0 1 2; do ACP_NPROCS=3 ACP_RANK=$r ./pipeline FILE & done; wait
 *
 * Exit status: 0 if the text is correct, else 1.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acp.h"

#define LONGEST		(1u << 20)	/* maximum size of a piece, bytes */
#define DEPTH		4		/* pieces of a rank in progress */
#define ROUNDS		20		/* how often the file is sent */
#define FAILED		((size_t)-1)

static const char *const usual = "/usr/share/common-licenses/GPL-3";

/* A piece that passes through a rank. */
struct piece {
	char *bytes;
	acp_request_t in, out;	/* NULL: not requested */
};

static int rank, procs;

static void give_up(const char *what, const char *why)
{
	char text[256];

	snprintf(text, sizeof(text), "pipeline: %s: %s", what, why);
	acp_abort(text);
	exit(EXIT_FAILURE);
}

static acp_request_t asked(acp_request_t request)
{
	if (request == NULL)
		give_up("channel", strerror(errno));
	return request;
}

/* Wait for a request, if there is one, which must succeed. */
static size_t done(acp_request_t *request)
{
	size_t size = 0;

	if (*request != NULL)
		size = acp_wait_ch(*request);
	if (size == FAILED)
		give_up("channel", "the other rank is lost");
	*request = NULL;
	return size;
}

static void close_channel(acp_ch_t ch)
{
	if (acp_free_ch(ch) != 0)
		give_up("acp_free_ch", "the other rank is lost");
}

static void turn_letters(char *text, size_t size, int places)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (isupper((unsigned char)text[i]))
			text[i] = (char)('A' + (text[i] - 'A' + places) % 26);
		else if (islower((unsigned char)text[i]))
			text[i] = (char)('a' + (text[i] - 'a' + places) % 26);
}

static struct piece *make_pieces(void)
{
	struct piece *pieces = calloc(DEPTH, sizeof(*pieces));
	int i;

	for (i = 0; pieces != NULL && i < DEPTH; i++) {
		pieces[i].bytes = malloc(LONGEST);
		if (pieces[i].bytes == NULL)
			give_up("memory", "there is none");
	}
	if (pieces == NULL)
		give_up("memory", "there is none");
	return pieces;
}

static void free_pieces(struct piece *pieces)
{
	int i;

	for (i = 0; i < DEPTH; i++)
		free(pieces[i].bytes);
	free(pieces);
}

/*
 * Receive, rotate and send on until an empty piece arrives. The send of a piece ends before its
 * memory is used to receive the next one.
 */
static uint64_t be_a_step(acp_ch_t from, acp_ch_t to)
{
	struct piece *pieces = make_pieces(), *p;
	uint64_t count, sum = 0;
	size_t size;
	int i;

	for (i = 0; i < DEPTH; i++)
		pieces[i].in = asked(acp_nbrecv_ch(from, pieces[i].bytes, LONGEST));
	for (count = 0;; count++) {
		p = &pieces[count % DEPTH];
		size = done(&p->in);
		turn_letters(p->bytes, size, rank);
		p->out = asked(acp_nbsend_ch(to, p->bytes, size));
		sum += size;
		if (size == 0)
			break;
		/* The previous piece has had time to be sent: its memory receives next. */
		if (count > 0) {
			p = &pieces[(count - 1) % DEPTH];
			done(&p->out);
			p->in = asked(acp_nbrecv_ch(from, p->bytes, LONGEST));
		}
	}
	for (i = 0; i < DEPTH; i++)
		done(&pieces[i].out);
	close_channel(to);
	/* Receives that were requested beyond the last piece fail when the sender has closed. */
	for (i = 0; i < DEPTH; i++)
		if (pieces[i].in != NULL && acp_wait_ch(pieces[i].in) != FAILED)
			give_up("channel", "something came after the end");
	close_channel(from);
	free_pieces(pieces);
	return sum;
}

/* Alternating sizes of pieces: about a line, some pages, as much as there is. */
static size_t piece_size(uint64_t number, size_t left)
{
	static const size_t sizes[] = { 80, 3000, 20000, 300, LONGEST };
	size_t size = sizes[number % (sizeof(sizes) / sizeof(sizes[0]))];

	return size < left ? size : left;
}

/* Receive one piece, the bytes from *back on, and compare it. False: it is wrong. */
static bool take_back(acp_ch_t from, char *bytes, const char *expected, size_t length, size_t *back)
{
	acp_request_t request = asked(acp_nbrecv_ch(from, bytes, LONGEST));
	size_t size = done(&request), i;
	bool right = true;

	for (i = 0; i < size; i++)
		right = right && bytes[i] == expected[(*back + i) % length];
	*back += size;
	return right;
}

/* Send the text repeatedly, and receive it back meanwhile. */
static bool feed(acp_ch_t to, acp_ch_t from, char *text, const char *expected, size_t length)
{
	size_t total = ROUNDS * length, sent = 0, back = 0, at;
	acp_request_t out[DEPTH] = { NULL };
	char *bytes = malloc(LONGEST);
	uint64_t number = 0, taken = 0;
	bool right = true;

	if (bytes == NULL)
		give_up("memory", "there is none");
	while (sent < total) {
		if (number - taken == DEPTH) {
			right = take_back(from, bytes, expected, length, &back) && right;
			taken++;
		}
		done(&out[number % DEPTH]);
		at = sent % length;
		out[number % DEPTH] = asked(acp_nbsend_ch(to, text + at,
							  piece_size(number, length - at)));
		sent += piece_size(number, length - at);
		number++;
	}
	while (taken++ < number)
		right = take_back(from, bytes, expected, length, &back) && right;
	for (at = 0; at < DEPTH; at++)
		done(&out[at]);
	out[0] = asked(acp_nbsend_ch(to, NULL, 0));
	done(&out[0]);
	free(bytes);
	return right && back == total;
}

static char *read_file(const char *path, size_t *length)
{
	FILE *file = fopen(path, "rb");
	char *text = malloc(LONGEST);

	if (file == NULL || text == NULL)
		give_up(path, strerror(errno));
	*length = fread(text, 1, LONGEST, file);
	if (*length == 0)
		give_up(path, ferror(file) ? strerror(errno) : "empty");
	fclose(file);
	return text;
}

static bool begin_and_end(acp_ch_t to, acp_ch_t from, const char *path)
{
	struct timespec begin, end;
	char *text, *expected;
	double seconds;
	size_t length;
	bool right;
	int r;

	text = read_file(path, &length);
	expected = malloc(length);
	if (expected == NULL)
		give_up("memory", "there is none");
	memcpy(expected, text, length);
	for (r = 1; r < procs; r++)
		turn_letters(expected, length, r);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	right = feed(to, from, text, expected, length);
	clock_gettime(CLOCK_MONOTONIC, &end);
	close_channel(to);
	close_channel(from);
	seconds = (double)(end.tv_sec - begin.tv_sec);
	seconds += (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
	printf("rank 0: %d times %zu bytes of %s through %d ranks and back: %.1f MB/s\n", ROUNDS,
	       length, path, procs - 1, ROUNDS * (double)length / seconds * 1e-6);
	printf("pipeline: %s\n", right ? "the text came back as it must" : "FAILED");
	free(text);
	free(expected);
	return right;
}

static bool run(const char *path)
{
	int left, right;
	acp_ch_t to, from;
	bool good = true;

	rank = acp_rank();
	procs = acp_procs();
	if (procs < 2)
		give_up("usage", "two ranks or more");
	left = (rank + procs - 1) % procs;
	right = (rank + 1) % procs;
	to = acp_create_ch(rank, right);
	from = acp_create_ch(left, rank);
	if (to == NULL || from == NULL)
		give_up("acp_create_ch", strerror(errno));
	if (rank == 0)
		good = begin_and_end(to, from, path);
	else
		printf("rank %d: turned %llu bytes by %d\n", rank,
		       (unsigned long long)be_a_step(from, to), rank);
	fflush(stdout);
	return good;
}

int main(int argc, char **argv)
{
	bool good;

	if (acp_init(&argc, &argv) != 0) {
		fprintf(stderr, "pipeline: acp_init failed\n");
		return EXIT_FAILURE;
	}
	good = run(argc > 1 ? argv[1] : usual);
	if (acp_finalize() != 0) {
		fprintf(stderr, "pipeline: acp_finalize failed\n");
		good = false;
	}
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
