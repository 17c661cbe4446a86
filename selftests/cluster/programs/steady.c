// SPDX-License-Identifier: MIT
/*
 * steady - every rank writes to, reads from and counts on all others, on all colors, until told to
 * stop; then all compare what others did to them with what the others report
 *
 *		steady STOP	until a file of that name exists
 *
 * Whatever happens in the network: no access fails, every byte read is the one written, and each
 * atomic takes effect exactly once.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "member.h"

#define COLORS_MAX	4
#define BLOCK		6000	/* several frames */
#define RANKS_MAX	16

/* Effects of one rank on another, or of all ranks on one: adds of 8 and 4 bytes, XORs. */
struct tally {
	uint64_t added, bits;
	uint64_t added4;	/* the atomic of 4 bytes works on its first half */
};

struct board {
	uint64_t stop, one;
	acp_ga_t inbox[COLORS_MAX];	/* a block per rank and color */
	struct tally done, told;	/* to the owner, by all */
	uint64_t former;
};

/* A pair of blocks of this rank, registered for a color. */
struct area {
	char *out, *back;
	acp_ga_t out_ga, back_ga;
};

static struct board *board;
static struct area areas[COLORS_MAX];
static acp_ga_t inbox[RANKS_MAX][COLORS_MAX];
static struct tally tallies[RANKS_MAX];
static uint64_t seed;

#define AT(rank, member)	board_at(rank, offsetof(struct board, member))

static void open_areas(void)
{
	int c;

	for (c = 0; c < acp_colors(); c++) {
		areas[c].out = member_memory(2 * BLOCK, c, &areas[c].out_ga);
		areas[c].back = areas[c].out + BLOCK;
		areas[c].back_ga = areas[c].out_ga + BLOCK;
		member_memory((size_t)procs * BLOCK, c, &board->inbox[c]);
	}
}

static void learn_inboxes(void)
{
	acp_ga_t *back = (acp_ga_t *)areas[0].back;
	int r;

	for (r = 0; r < procs; r++) {
		must(acp_copy(areas[0].back_ga, AT(r, inbox), sizeof(inbox[r]), ACP_HANDLE_NULL),
		     "address");
		memcpy(inbox[r], back, sizeof(inbox[r]));
	}
}

static acp_ga_t my_block(int rank, int color)
{
	return inbox[rank][color] + (acp_ga_t)me * BLOCK;
}

/* Put a block there, copy it to a third rank as a third party, and fetch it back. */
static void carry(int there, int third, int color)
{
	struct area *area = &areas[color];
	size_t size = 1 + next_random(&seed) % BLOCK;
	acp_handle_t h;

	fill(area->out, size, &seed);
	h = acp_copy(my_block(there, color), area->out_ga, size, ACP_HANDLE_NULL);
	h = acp_copy(my_block(third, color), my_block(there, color), size, h);
	memset(area->back, 0, size);
	must(acp_copy(area->back_ga, my_block(third, color), size, h), "blocks");
	if (memcmp(area->back, area->out, size))
		fail("a block that went to %d and %d came back wrong", there, third);
}

static void count(int there)
{
	uint64_t bits = next_random(&seed);
	uint32_t n = bits % 1000;

	must(acp_add8(AT(me, former), AT(there, done.added), n, ACP_HANDLE_NULL), "add8");
	must(acp_add4(AT(me, former), AT(there, done.added4), n, ACP_HANDLE_NULL), "add4");
	must(acp_xor8(AT(me, former), AT(there, done.bits), bits, ACP_HANDLE_NULL), "xor8");
	tallies[there].added += n;
	tallies[there].added4 += n;
	tallies[there].bits ^= bits;
}

/* Rank 0 waits for the file and tells all ranks. */
static void look_for_end(const char *name)
{
	static uint64_t looked;
	int r;

	if (me || board->stop || now_ms() - looked < 200)
		return;
	looked = now_ms();
	if (access(name, F_OK))
		return;
	for (r = procs - 1; r >= 0; r--)
		must(acp_copy(AT(r, stop), AT(me, one), sizeof(uint64_t), ACP_HANDLE_NULL), "stop");
}

static void work(const char *stop)
{
	unsigned int rounds, there;

	for (rounds = 0; !__atomic_load_n(&board->stop, __ATOMIC_ACQUIRE); rounds++) {
		there = next_random(&seed) % (unsigned int)procs;
		carry((int)there, (int)(next_random(&seed) % (unsigned int)procs),
		      (int)(next_random(&seed) % (unsigned int)acp_colors()));
		count((int)there);
		look_for_end(stop);
		if (rounds % 10 == 0)
			say("round %u", rounds);
	}
	say("%u rounds", rounds);
}

static void tell(int rank)
{
	must(acp_add8(AT(me, former), AT(rank, told.added), tallies[rank].added, ACP_HANDLE_NULL),
	     "tell");
	must(acp_add8(AT(me, former), AT(rank, told.added4), tallies[rank].added4,
		      ACP_HANDLE_NULL), "tell");
	must(acp_xor8(AT(me, former), AT(rank, told.bits), tallies[rank].bits, ACP_HANDLE_NULL),
	     "tell");
}

static void compare(void)
{
	const struct board *b = board;
	int r;

	rendezvous();
	for (r = 0; r < procs; r++)
		tell(r);
	rendezvous();
	if (b->done.added != b->told.added || b->done.added4 != b->told.added4 ||
	    b->done.bits != b->told.bits)
		fail("atomics were lost or repeated");
	say("everything took effect once");
}

int main(int argc, char **argv)
{
	board = member_begin(&argc, &argv, sizeof(*board));
	if (argc != 2 || procs > RANKS_MAX)
		fail("usage: steady STOP");
	seed = 0x9e3779b97f4a7c15ULL + (uint64_t)me;
	board->one = 1;
	open_areas();
	rendezvous();
	learn_inboxes();
	rendezvous();
	work(argv[1]);
	compare();
	if (acp_finalize() != 0)
		fail("acp_finalize failed");
	return 0;
}
