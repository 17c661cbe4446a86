// SPDX-License-Identifier: MIT
/*
 * mortal - some ranks are going to die, the others deal with them and with each other
 *
 *	mortal FIRST COUNT [once]	ranks FIRST to FIRST + COUNT - 1 will die
 *
 * The dying work on all others until something ends them.  Of the survivors, the even ones do
 * everything that a dying rank can take part in, until it fails: each access must end, with
 * success or the name of a failure.  What they try afterwards must fail, too (not with "once").
 * The odd ones work on each other only and must not notice.  In the end all survivors can still
 * reach each other, while barriers say that a rank is missing.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "member.h"

#define SIZE		200000UL
#define RANKS_MAX	16

struct board {
	acp_ga_t memory;		/* owner: three times SIZE, see enum place */
	uint64_t word, former;		/* of accesses that may fail */
	uint64_t count, sum;		/* by the left odd neighbour; by even ranks */
	uint64_t rounds;		/* owner: rounds of the odd ranks */
	uint64_t stop, farewell;	/* by the even survivors; by all survivors */
	uint64_t scrap;			/* unused former values */
	uint64_t mark, back;		/* source and destination of small copies */
	uint64_t inbox[RANKS_MAX];
};

/* Areas of a rank's memory: constant; written by others; fetched by the owner. */
enum place { SOURCE, TARGET, FETCHED, PLACES };

/* The role of the dying rank: source, destination, or both ends of a copy of others' data. */
enum deed { PUT, GET, BRING, SEND, ADD, FETCH_TO, DEEDS };

static const char *const deed_names[DEEDS] = {
	"put", "get", "copy from it to another", "copy from another to it", "atomic",
	"atomic on another, result to it",
};

static struct board *board;
static acp_ga_t memory[RANKS_MAX];
static int dying, dying_count;
static bool once;

#define AT(rank, member)	board_at(rank, offsetof(struct board, member))

static bool is_dying(int rank)
{
	return rank >= dying && rank < dying + dying_count;
}

/* The next survivor with the same parity, cyclically. */
static int partner(void)
{
	int r = me;

	do {
		r = (r + 2) % procs;
	} while (is_dying(r));
	return r;
}

static int survivors(int step)
{
	int r, n = 0;

	for (r = 0; r < procs; r += step)
		n += !is_dying(r);
	return n;
}

static acp_ga_t place(int rank, enum place p)
{
	return memory[rank] + p * SIZE;
}

static acp_handle_t begin(enum deed deed, int it, int other)
{
	switch (deed) {
	case PUT:
		return acp_copy(place(it, TARGET), place(me, SOURCE), SIZE, ACP_HANDLE_NULL);
	case GET:
		return acp_copy(place(me, FETCHED), place(it, SOURCE), SIZE, ACP_HANDLE_NULL);
	case BRING:
		return acp_copy(place(other, TARGET), place(it, SOURCE), SIZE, ACP_HANDLE_NULL);
	case SEND:
		return acp_copy(place(it, TARGET), place(other, SOURCE), SIZE, ACP_HANDLE_NULL);
	case ADD:
		return acp_add8(AT(me, former), AT(it, word), 1, ACP_HANDLE_NULL);
	case FETCH_TO:
		return acp_add8(AT(it, former), AT(other, word), 1, ACP_HANDLE_NULL);
	default:
		return (acp_handle_t)ACP_HANDLE_NULL;
	}
}

/* Do all of them at once. Return the number of failures, each of which must have a valid status. */
static int deeds(int it, int other, int status[DEEDS])
{
	acp_handle_t handle[DEEDS];
	int i, failed = 0;

	for (i = 0; i < DEEDS; i++)
		handle[i] = begin(i, it, other);
	for (i = 0; i < DEEDS; i++)
		status[i] = status_of(handle[i]);
	for (i = 0; i < DEEDS; i++) {
		failed += status[i] != 0;
		if (status[i] && status[i] != ACPX_ERANK && status[i] != ACPX_ETIMEOUT &&
		    status[i] != ACPX_EPEER && status[i] != ACPX_EROUTE &&
		    status[i] != ACPX_ESTAG)
			fail("%s: %s", deed_names[i], acpx_strerror(status[i]));
	}
	return failed;
}

static void tell_failures(const int status[DEEDS])
{
	int i;

	for (i = 0; i < DEEDS; i++)
		say("%s: %s", deed_names[i], acpx_strerror(status[i]));
}

/* A dying rank: never ends by itself. */
static void __attribute__((noreturn)) be_mortal(void)
{
	uint64_t seed = 1 + (uint64_t)me;
	int it;

	say("working");
	for (;;) {
		it = (int)(next_random(&seed) % (unsigned int)procs);
		status_of(begin((enum deed)(next_random(&seed) % DEEDS), it, (it + 1) % procs));
	}
}

/* Put a number there, fetch it back, and count. */
static void small_round(int there, acp_ga_t counter)
{
	acp_handle_t h;

	board->mark++;
	h = acp_copy(AT(there, inbox) + 8 * (acp_ga_t)me, AT(me, mark), 8, ACP_HANDLE_NULL);
	must(acp_copy(AT(me, back), AT(there, inbox) + 8 * (acp_ga_t)me, 8, h), "small round");
	if (board->back != board->mark)
		fail("%d came back as %d", (int)board->mark, (int)board->back);
	must(acp_add8(AT(me, scrap), counter, 1, ACP_HANDLE_NULL), "count");
}

/* An odd rank: continues until all even ranks have told it to stop. */
static void be_bystander(void)
{
	uint64_t enough = (uint64_t)survivors(2);
	int there = partner();

	say("working");
	while (__atomic_load_n(&board->stop, __ATOMIC_ACQUIRE) < enough) {
		small_round(there, AT(there, count));
		__atomic_store_n(&board->rounds, board->rounds + 1, __ATOMIC_RELAXED);
		nap();		/* few processors for many machines */
	}
	must(acp_copy(AT(me, back), AT(there, count), 8, ACP_HANDLE_NULL), "count");
	if (board->back != board->rounds)
		fail("%d rounds were counted as %d", (int)board->rounds, (int)board->back);
	say("%d rounds, all went well", (int)board->rounds);
}

/* Rounds of the odd rank of this node, whose starter memory can be read directly. */
static uint64_t neighbour_rounds(void)
{
	const struct board *b = acp_query_address(AT(me ^ 1, memory));

	return __atomic_load_n(&b->rounds, __ATOMIC_RELAXED);
}

/* An even rank, before and while the other dies. */
static void witness(void)
{
	uint64_t begun, rounds;
	int status[DEEDS];
	bool said = false;

	for (;;) {
		begun = now_ms();
		rounds = neighbour_rounds();
		if (deeds(dying, partner(), status))
			break;
		if (!said)
			say("working");
		said = true;
	}
	tell_failures(status);
	say("failed within %d ms", (int)(now_ms() - begun));
	say("meanwhile %d rounds of the neighbour", (int)(neighbour_rounds() - rounds));
}

/* Later accesses to the dead rank must not hang, either. */
static void insist(void)
{
	uint64_t begun = now_ms();
	int status[DEEDS];

	if (deeds(dying, partner(), status) != DEEDS) {
		tell_failures(status);
		fail("an access to the dead rank succeeded");
	}
	say("failed again within %d ms", (int)(now_ms() - begun));
}

static void be_witness(void)
{
	int r;

	witness();
	small_round(partner(), AT(partner(), sum));
	if (!once)
		insist();
	for (r = 1; r < procs; r += 2)
		if (!is_dying(r))
			must(acp_add8(AT(me, scrap), AT(r, stop), 1, ACP_HANDLE_NULL), "stop");
}

/* Barriers no longer work, so the survivors count themselves. */
static void part(void)
{
	int r;

	for (r = 0; r < procs; r++)
		if (!is_dying(r))
			must(acp_add8(AT(me, scrap), AT(r, farewell), 1, ACP_HANDLE_NULL),
			     "farewell");
	wait_for(&board->farewell, (uint64_t)survivors(1), "farewell of the others");
	if (acp_sync() != -1 || errno != EPIPE)
		fail("acp_sync does not miss anybody");
	if (acp_finalize() != -1)
		fail("acp_finalize does not miss anybody");
	say("done");
}

int main(int argc, char **argv)
{
	int r;

	board = member_begin(&argc, &argv, sizeof(*board));
	if (argc < 3 || procs > RANKS_MAX)
		fail("usage: mortal FIRST COUNT [once]");
	dying = atoi(argv[1]);
	dying_count = atoi(argv[2]);
	once = argc > 3;
	member_memory(PLACES * SIZE, 0, &board->memory);
	rendezvous();
	for (r = 0; r < procs; r++) {
		must(acp_copy(AT(me, back), AT(r, memory), 8, ACP_HANDLE_NULL), "address");
		memory[r] = board->back;
	}
	rendezvous();
	if (is_dying(me))
		be_mortal();
	if (me % 2)
		be_bystander();
	else
		be_witness();
	part();
	return 0;
}
