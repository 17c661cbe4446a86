// SPDX-License-Identifier: MIT
/*
 * ring - a greeting around a ring, all remote atomics, and a third party
 *
 * Shows: starter memory for the exchange between ranks; a put followed by a flag that cannot
 * overtake it (ACP_HANDLE_CONT); all twelve atomics on a word of the neighbour, each with a check
 * of its effect; all ranks counting on one word of rank 0; and a rank that copies between two other
 * ranks, which take no part in it.
 *
 * Run (any number of ranks; here two on this machine, as root or with access to /dev/acp):
 *
 *     ACP_NPROCS=2 ACP_RANK=0 ./ring & ACP_NPROCS=2 ACP_RANK=1 ./ring; wait
 *
 * Exit status: 0 if everything is correct, else 1.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "acp.h"

#define TEXT_SIZE	128
#define COUNT_ROUNDS	100
#define PATIENCE_MS	60000

/*
 * Contents of the starter memory of each rank, from its start on. The comment of each member says
 * which rank writes it.
 */
struct board {
	uint64_t flag;			/* left neighbour, when greeting is in place */
	uint64_t one;			/* owner, at start: the value that flags are set to */
	uint64_t word;			/* left neighbour: operand of its atomics */
	uint64_t counter;		/* all ranks, on rank 0 */
	uint64_t former;		/* owner: previous values of its atomics */
	uint64_t ledger;		/* third party: previous value of a word of another rank */
	char greeting[TEXT_SIZE];	/* left neighbour */
	char outgoing[TEXT_SIZE];	/* owner: the greeting to send to the right */
	char parcel[TEXT_SIZE];		/* owner: to be copied by a third party */
	char inbox[TEXT_SIZE];		/* third party: the parcel of another rank */
};

static int rank, procs;
static struct board *board;
static bool all_right = true;

static void wrong(const char *what)
{
	fprintf(stderr, "rank %d: WRONG: %s\n", rank, what);
	all_right = false;
}

static acp_ga_t on(int peer, size_t member)
{
	return acp_query_starter_ga(peer % procs) + member;
}

#define ON(peer, member)	on(peer, offsetof(struct board, member))

/*
 * Wait for one access and all before it. If it failed, end the job, because later steps depend on
 * it.
 */
static void finish(acp_handle_t handle, const char *what)
{
	char text[200];
	int status = 0;

	if (handle != ACP_HANDLE_NULL) {
		acp_complete(handle);
		status = acpx_status(handle);
		if (status == 0)
			return;
	}
	snprintf(text, sizeof(text), "rank %d: %s: %s", rank, what,
		 status ? acpx_strerror(status) : "not accepted");
	acp_abort(text);
	exit(EXIT_FAILURE);
}

static void sync_all(void)
{
	if (acp_sync() == 0)
		return;
	acp_abort("acp_sync failed: a rank is gone");
	exit(EXIT_FAILURE);
}

/* The word is written by another process, unknown to the compiler. */
static void wait_for_flag(const uint64_t *flag)
{
	const struct timespec nap = { .tv_nsec = 100000 };
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0) {
		nanosleep(&nap, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - begin.tv_sec) * 1000 < PATIENCE_MS)
			continue;
		acp_abort("ring: the greeting did not come round");
		exit(EXIT_FAILURE);
	}
}

/*
 * Put the greeting first, then the flag: CONT preserves their order at the target without waiting
 * for completion of the first.
 */
static void greet_right(const char *host)
{
	acp_handle_t text, flag;

	snprintf(board->outgoing, TEXT_SIZE, "rank %d on %.64s", rank, host);
	text = acp_copy(ON(rank + 1, greeting), ON(rank, outgoing), TEXT_SIZE, ACP_HANDLE_NULL);
	flag = acp_copy(ON(rank + 1, flag), ON(rank, one), sizeof(uint64_t), ACP_HANDLE_CONT);
	finish(text, "greeting");
	finish(flag, "flag after the greeting");
}

/* Rank 0 starts; the others wait for their turn, so that lines are printed in order of ranks. */
static void pass_greeting(void)
{
	char host[65] = "?";
	char expected[32];
	int left = (rank + procs - 1) % procs;

	if (gethostname(host, sizeof(host) - 1) != 0)
		perror("gethostname");
	if (rank == 0) {
		printf("rank 0 of %d on %s: hello, I start the ring\n", procs, host);
		fflush(stdout);
		greet_right(host);
	}
	wait_for_flag(&board->flag);
	printf("rank %d of %d on %s: %s, greeted by %s\n", rank, procs, host,
	       rank ? "hello" : "the ring is closed", board->greeting);
	fflush(stdout);
	snprintf(expected, sizeof(expected), "rank %d on ", left);
	if (strncmp(board->greeting, expected, strlen(expected)) != 0)
		wrong("the greeting is not my left neighbour's");
	if (rank != 0)
		greet_right(host);
}

enum kind { SWAP, CAS, ADD, XOR, OR, AND };

/*
 * One step of an atomic: operation and values. Their bits are chosen such that no two operations
 * give the same result, and that sums carry over the 4-byte boundary.
 */
static const struct step {
	const char *name;
	enum kind kind;
	uint64_t value;
	uint64_t compare;	/* CAS only */
} steps[] = {
	{ "swap", SWAP, 0xf0f0f0f0f0f0f0f0, 0 },
	{ "add", ADD, 0x1111111122222222, 0 },
	{ "cas that fits", CAS, 0x00ff00ff00ff00ff, 0x0202020213131312 },
	{ "cas that does not", CAS, 0x123456789abcdef0, 0x5555555555555555 },
	{ "xor", XOR, 0x0f0f0f0f3c3c3c3c, 0 },
	{ "or", OR, 0x8000000180000001, 0 },
	{ "and", AND, 0xf00000fff0000fff, 0 },
};

#define STEPS	(sizeof(steps) / sizeof(steps[0]))

static uint64_t model(const struct step *step, uint64_t old, uint64_t mask)
{
	switch (step->kind) {
	case SWAP:
		return step->value & mask;
	case CAS:
		return old == (step->compare & mask) ? step->value & mask : old;
	case ADD:
		return (old + step->value) & mask;
	case XOR:
		return old ^ (step->value & mask);
	case OR:
		return old | (step->value & mask);
	case AND:
		return old & step->value & mask;
	}
	return old;
}

static acp_handle_t atomic8(const struct step *s, acp_ga_t dst, acp_ga_t src)
{
	switch (s->kind) {
	case SWAP:
		return acp_swap8(dst, src, s->value, ACP_HANDLE_NULL);
	case CAS:
		return acp_cas8(dst, src, s->compare, s->value, ACP_HANDLE_NULL);
	case ADD:
		return acp_add8(dst, src, s->value, ACP_HANDLE_NULL);
	case XOR:
		return acp_xor8(dst, src, s->value, ACP_HANDLE_NULL);
	case OR:
		return acp_or8(dst, src, s->value, ACP_HANDLE_NULL);
	case AND:
		return acp_and8(dst, src, s->value, ACP_HANDLE_NULL);
	}
	return ACP_HANDLE_NULL;
}

static acp_handle_t atomic4(const struct step *s, acp_ga_t dst, acp_ga_t src)
{
	uint32_t value = (uint32_t)s->value;

	switch (s->kind) {
	case SWAP:
		return acp_swap4(dst, src, value, ACP_HANDLE_NULL);
	case CAS:
		return acp_cas4(dst, src, (uint32_t)s->compare, value, ACP_HANDLE_NULL);
	case ADD:
		return acp_add4(dst, src, value, ACP_HANDLE_NULL);
	case XOR:
		return acp_xor4(dst, src, value, ACP_HANDLE_NULL);
	case OR:
		return acp_or4(dst, src, value, ACP_HANDLE_NULL);
	case AND:
		return acp_and4(dst, src, value, ACP_HANDLE_NULL);
	}
	return ACP_HANDLE_NULL;
}

static uint64_t word_of_right(void)
{
	finish(acp_copy(ON(rank, former), ON(rank + 1, word), sizeof(uint64_t), ACP_HANDLE_NULL),
	       "get of the neighbour's word");
	return board->former;
}

/*
 * Execute one step on the word of the neighbour, whose value is old. Returns its expected value. A
 * 4-byte atomic must not change the upper half of an 8-byte word (the lower address comes first).
 */
static uint64_t try_step(const struct step *step, unsigned int bytes, uint64_t old)
{
	uint64_t mask = bytes == 8 ? UINT64_MAX : UINT32_MAX;
	uint64_t after = (old & ~mask) | model(step, old & mask, mask);
	uint64_t before;
	acp_handle_t handle;
	char text[64];

	snprintf(text, sizeof(text), "%u-byte %s", bytes, step->name);
	board->former = ~old;
	handle = bytes == 8 ? atomic8(step, ON(rank, former), ON(rank + 1, word))
			    : atomic4(step, ON(rank, former), ON(rank + 1, word));
	finish(handle, text);
	before = (~old & ~mask) | (old & mask);
	if (board->former != before || word_of_right() != after)
		wrong(text);
	return after;
}

static void try_atomics(void)
{
	uint64_t old = word_of_right();
	size_t i;

	for (i = 0; i < STEPS; i++)
		old = try_step(&steps[i], 8, old);
	for (i = 0; i < STEPS; i++)
		old = try_step(&steps[i], 4, old);
	for (i = 0; i < COUNT_ROUNDS; i++)
		finish(acp_add8(ON(rank, former), ON(0, counter), 1, ACP_HANDLE_NULL), "count");
	sync_all();
	if (rank != 0)
		return;
	if (board->counter != (uint64_t)procs * COUNT_ROUNDS)
		wrong("the common counter");
	printf("atomics: %zu of 8 bytes and of 4 on the right neighbour, %s\n", STEPS,
	       all_right ? "all as they must be" : "NOT as they must be");
	printf("atomics: %d ranks counted to %" PRIu64 " together\n", procs, board->counter);
	fflush(stdout);
}

/*
 * Rank r copies the parcel of r+1 to r+2 and adds r+1 to a word of r+1, whose previous value is
 * stored at r+2. With fewer than three ranks the same calls access own memory.
 */
static void be_third_party(void)
{
	int from = (rank + 1) % procs, to = (rank + 2) % procs;

	snprintf(board->parcel, TEXT_SIZE, "parcel of rank %d", rank);
	board->word = 1000 + (uint64_t)rank;
	board->ledger = 0;
	sync_all();
	finish(acp_copy(ON(to, inbox), ON(from, parcel), TEXT_SIZE, ACP_HANDLE_NULL),
	       "copy between two other ranks");
	finish(acp_add8(ON(to, ledger), ON(from, word), (uint64_t)from, ACP_HANDLE_NULL),
	       "atomic between two other ranks");
	sync_all();
}

static void check_third_party(void)
{
	int from = (rank + 2 * procs - 1) % procs, by = (rank + 2 * procs - 2) % procs;
	char expected[TEXT_SIZE];

	snprintf(expected, sizeof(expected), "parcel of rank %d", from);
	if (strcmp(board->inbox, expected) != 0)
		wrong("the parcel from the third party");
	if (board->ledger != 1000 + (uint64_t)from || board->word != 1000 + 2 * (uint64_t)rank)
		wrong("the atomic of the third party");
	printf("rank %d: holds the %s, brought by rank %d\n", rank, board->inbox, by);
	fflush(stdout);
}

/* All ranks count their failures on rank 0, so that all end with the same status. */
static bool agree(void)
{
	uint64_t wrongs = all_right ? 0 : 1;

	finish(acp_add8(ON(rank, former), ON(0, flag), wrongs, ACP_HANDLE_NULL), "verdict");
	sync_all();
	finish(acp_copy(ON(rank, former), ON(0, flag), sizeof(uint64_t), ACP_HANDLE_NULL),
	       "get of the verdict");
	return board->former == 1;	/* the flag was 1 since the greeting */
}

static int run(void)
{
	bool good;

	rank = acp_rank();
	procs = acp_procs();
	board = acp_query_address(acp_query_starter_ga(rank));
	if (board == NULL || acpx_starter_size() < sizeof(*board)) {
		acp_abort("ring: too little starter memory (ACP_STARTER_SIZE)");
		return EXIT_FAILURE;
	}
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	board->one = 1;
	board->word = 0x0123456789abcdef;
	sync_all();
	pass_greeting();
	sync_all();
	try_atomics();
	sync_all();
	be_third_party();
	check_third_party();
	sync_all();
	good = agree();
	if (rank == 0)
		printf("ring: %s\n", good ? "all right" : "FAILED");
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	int status;

	if (acp_init(&argc, &argv) != 0) {
		fprintf(stderr, "ring: acp_init failed\n");
		return EXIT_FAILURE;
	}
	status = run();
	if (acp_finalize() != 0) {
		fprintf(stderr, "ring: acp_finalize failed\n");
		status = EXIT_FAILURE;
	}
	return status;
}
