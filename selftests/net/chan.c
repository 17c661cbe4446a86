// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * Channels, segmented buffers and workspaces of libacp over networks: random messages among ranks
 * on the same node and on different nodes, with losses, and with a rank that is killed.
 */
#include "../dev/isolated.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "../messages.h"
#include "members.h"

#define RANKS		4
#define PER_NODE	2
#define DEPTH		6		/* outstanding requests of an end */
#define CHANNELS	2		/* from each rank to each other one */
#define FAILED		((size_t)-1)

static struct members m;
static uint64_t messages;		/* per channel */

/* One end and its requests. */
struct play {
	acp_ch_t ch;
	bool sending;
	uint64_t name, begun, ended;
	acp_request_t requests[DEPTH];
	unsigned char *memory[DEPTH];
};

static void open_play(struct play *p, int sender, int receiver, uint64_t number)
{
	unsigned int i;

	memset(p, 0, sizeof(*p));
	p->ch = acp_create_ch(sender, receiver);
	CHECK(p->ch);
	p->sending = acp_rank() == sender;
	p->name = ((uint64_t)sender * 64 + (uint64_t)receiver) * 64 + number;
	for (i = 0; i < DEPTH; i++)
		p->memory[i] = play_memory(PLAY_LARGEST);
}

static void close_play(struct play *p, int result)
{
	unsigned int i;

	CHECK_EQ(acp_free_ch(p->ch), result);
	for (i = 0; i < DEPTH; i++)
		munmap(p->memory[i], PLAY_LARGEST);
}

static void begin_one(struct play *p)
{
	unsigned int i = p->begun % DEPTH;
	size_t size = play_size(p->name, p->begun);

	if (p->sending) {
		play_fill(p->memory[i], size, p->name, p->begun);
		p->requests[i] = acp_nbsend_ch(p->ch, p->memory[i], size);
	} else {
		p->requests[i] = acp_nbrecv_ch(p->ch, p->memory[i], PLAY_LARGEST);
	}
	CHECK(p->requests[i]);
	p->begun++;
}

/* False: it failed. */
static bool end_one(struct play *p)
{
	unsigned int i = p->ended % DEPTH;
	size_t size = play_size(p->name, p->ended), result = acp_wait_ch(p->requests[i]);

	p->ended++;
	if (result == FAILED)
		return false;
	CHECK_EQ(result, p->sending ? 0 : size);
	CHECK(p->sending || play_is(p->memory[i], size, p->name, p->ended - 1));
	return true;
}

static void fill_up(struct play *p)
{
	while (p->begun < messages && p->begun - p->ended < DEPTH)
		begin_one(p);
}

/* ---- All ranks with all others ---- */

static void exchange(void)
{
	struct play plays[2 * RANKS * CHANNELS];
	int me, r, k, count = 0, i;
	uint64_t round;

	member_init();
	me = acp_rank();
	for (k = 0; k < CHANNELS; k++)
		for (r = 0; r < RANKS; r++) {
			if (r == me)
				continue;
			open_play(&plays[count++], me, r, (uint64_t)k);
			open_play(&plays[count++], r, me, (uint64_t)k);
		}
	for (i = 0; i < count; i++)
		fill_up(&plays[i]);
	for (round = 0; round < messages; round++)
		for (i = 0; i < count; i++) {
			CHECK(end_one(&plays[i]));
			fill_up(&plays[i]);
		}
	for (i = 0; i < count; i++)
		plays[i].requests[0] = acp_nbfree_ch(plays[i].ch);
	for (i = 0; i < count; i++)
		CHECK_EQ(acp_wait_ch(plays[i].requests[0]), 0);
	CHECK_EQ(acp_finalize(), 0);
}

static void exchange_with(const char *heap, const char *netem, uint64_t count)
{
	messages = test_short() ? count / 4 + 1 : count;
	setenv("ACP_HEAP_SIZE", heap, 1);
	members_run_over(netem, RANKS, PER_NODE, exchange);
}

TEST(channels_everybody_with_everybody)
{
	exchange_with("4M", "", 200);
}

TEST(channels_without_heap)
{
	exchange_with("0", "", 100);
}

TEST(channels_loss_1_percent)
{
	exchange_with("4M", "loss 1%", 100);
}

TEST(channels_loss_and_disorder)
{
	exchange_with("10000", "delay 1ms 1ms loss 1% duplicate 1%", 50);
}

/* ---- A rank is killed ---- */

/* A ring of channels; the last rank dies, its neighbours detect it, the others continue. */
static void until_death(void)
{
	struct play in, out;
	int me, right;
	bool good = true;

	member_init();
	me = acp_rank();
	right = (me + 1) % RANKS;
	open_play(&out, me, right, 0);
	open_play(&in, (me + RANKS - 1) % RANKS, me, 0);
	while (good) {
		fill_up(&out);
		fill_up(&in);
		if (me == RANKS - 1 && in.ended == 20)
			raise(SIGKILL);
		good = in.ended < 1000 && end_one(&out) && end_one(&in);
	}
	for (; out.ended < out.begun; end_one(&out))
		;
	/* After the left neighbour has closed, no more messages arrive. */
	acp_free_ch(out.ch);
	for (; in.ended < in.begun; end_one(&in))
		;
	acp_free_ch(in.ch);
	if (me == 1)
		open_play(&out, 1, 2, 1);
	if (me == 2)
		open_play(&in, 1, 2, 1);
	messages = 10;
	while (me == 1 && out.ended < messages) {
		fill_up(&out);
		CHECK(end_one(&out));
	}
	while (me == 2 && in.ended < messages) {
		fill_up(&in);
		CHECK(end_one(&in));
	}
	if (me == 1)
		close_play(&out, 0);
	if (me == 2)
		close_play(&in, 0);
	CHECK_EQ(acp_finalize(), -1);
}

static void kill_with(const char *heap)
{
	int r;

	messages = UINT64_MAX;
	setenv("ACP_HEAP_SIZE", heap, 1);
	setenv("ACP_TIMEOUT", "3000", 1);
	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, until_death);
	CHECK_EQ(members_wait(&m, RANKS - 1), DIED - SIGKILL);
	for (r = 0; r < RANKS - 1; r++)
		CHECK_EQ(members_wait(&m, r), 0);
}

TEST(P1_rank_killed_in_channels)
{
	kill_with("4M");
}

TEST(P1_rank_killed_in_channels_without_heap)
{
	kill_with("0");
}

/* The node becomes silent while a rank waits for a message without sending anything to it. */
static void silence(void)
{
	acp_ch_t ch;
	uint64_t x = 5;

	member_init();
	ch = acp_create_ch(0, 1);
	if (acp_rank() == 0) {
		CHECK_EQ(acp_send_ch(ch, &x, 8), 0);
		for (;;)
			pause();
	}
	CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, &x, 8)), 8);
	nodes_impair(&m.nodes, 1, "loss 100%");
	CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, &x, 8)), FAILED);
	CHECK_EQ(acp_free_ch(ch), -1);
}

TEST(N17_node_silent_while_waiting_for_a_message)
{
	setenv("ACP_TIMEOUT", "2000", 1);
	members_open(&m, 2, 1);
	members_start_all(&m, silence);
	CHECK_EQ(members_wait(&m, 1), 0);
	kill(m.pid[0], SIGKILL);
	CHECK_EQ(members_wait(&m, 0), DIED - SIGKILL);
}

/* ---- The end ---- */

/* acp_finalize() completes the requests that have a counterpart; no rank waits for the others. */
static void finalize_early(void)
{
	static unsigned char bytes[100000];
	acp_ch_t there, back;
	uint64_t x;

	member_init();
	there = acp_create_ch(0, 3);
	back = acp_create_ch(3, 0);
	if (acp_rank() == 0) {
		play_fill(bytes, sizeof(bytes), 1, 1);
		CHECK(acp_nbsend_ch(there, bytes, sizeof(bytes)));
		CHECK(acp_nbsend_ch(there, bytes, sizeof(bytes)));
		CHECK(acp_nbrecv_ch(back, &x, 8));
	} else if (acp_rank() == 3) {
		sleep_ms(100);
		CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(there, bytes, sizeof(bytes))), sizeof(bytes));
		CHECK(play_is(bytes, sizeof(bytes), 1, 1));
		CHECK(acp_nbrecv_ch(there, bytes, 10));
		CHECK(acp_nbrecv_ch(there, bytes, 10));
	}
	CHECK_EQ(acp_finalize(), 0);
	CHECK_EQ(acp_wait_ch(NULL), FAILED);
}

static void twice(void)
{
	finalize_early();
	finalize_early();
}

TEST(channels_finalize_early)
{
	members_run(RANKS, PER_NODE, twice);
}

/* acp_reset() ends channels; if it fails, nothing changes. */
static void reset(void)
{
	uint64_t x = 7;
	acp_ch_t ch;
	int me;

	member_init();
	me = acp_rank();
	ch = me < 2 ? acp_create_ch(0, 1) : acp_create_ch(2, 3);
	CHECK_EQ(acp_reset(me ? me : 1), -1);
	if (me % 2)
		CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, &x, 8)), 8);
	else
		CHECK_EQ(acp_send_ch(ch, &x, 8), 0);
	CHECK_EQ(acp_reset(RANKS - 1 - me), 0);
	me = acp_rank();
	ch = me < 2 ? acp_create_ch(0, 1) : acp_create_ch(2, 3);
	if (me % 2)
		CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, &x, 8)), 8);
	else
		CHECK_EQ(acp_send_ch(ch, &x, 8), 0);
	CHECK_EQ(acp_free_ch(ch), 0);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(P6_reset_with_channels)
{
	members_run(RANKS, PER_NODE, reset);
}

/* ---- Segmented buffers and workspaces ---- */

#define SEGMENT		3000
#define SEGMENTS	8
#define ROUNDS		500

static void stream(void)
{
	unsigned char *ring = play_memory(SEGMENT * SEGMENTS);
	acp_segbuf_t s;
	bool source;
	uint64_t n;
	int me;

	member_init();
	me = acp_rank();
	source = me < 2;
	s = source ? acp_create_src_segbuf(me + 2, ring, SEGMENT, SEGMENTS)
		   : acp_create_dst_segbuf(me - 2, ring, SEGMENT, SEGMENTS);
	CHECK(s);
	CHECK_EQ(acp_connect_segbuf(s), 0);
	for (n = 0; n < ROUNDS; n++) {
		unsigned char *at = ring + n % SEGMENTS * SEGMENT;

		if (source) {
			while (acp_isready_segbuf(s))
				;
			play_fill(at, SEGMENT, (uint64_t)me, n);
			CHECK_EQ(acp_ack_segbuf(s), 0);
		} else {
			while (acp_isacked_segbuf(s))
				;
			CHECK(play_is(at, SEGMENT, (uint64_t)me - 2, n));
			CHECK_EQ(acp_ready_segbuf(s), 0);
		}
	}
	CHECK_EQ(acp_disconnect_segbuf(s), 0);
	CHECK_EQ(acp_free_segbuf(s), 0);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(segbuf_stream_with_loss)
{
	members_run_over("loss 1%", RANKS, PER_NODE, stream);
}

#define SHARE		50000u

static void workspace(void)
{
	unsigned char *bytes = play_memory(RANKS * SHARE);
	acp_atkey_t key;
	acp_wsd_t ws;
	acp_ga_t ga;
	int r;

	member_init();
	key = acp_register_memory(bytes, RANKS * SHARE, 0);
	ga = acp_query_ga(key, bytes);
	CHECK_EQ(acp_setparams_ws(1, 7000), 0);
	ws = acp_create_ws(RANKS * SHARE);
	CHECK(ws != ACP_WSD_NULL);
	play_fill(bytes, SHARE, 3, (uint64_t)acp_rank());
	CHECK_EQ(acp_write_ws(ws, ga, SHARE, SHARE * (size_t)acp_rank()), 0);
	CHECK_EQ(acp_sync(), 0);
	CHECK_EQ(acp_read_ws(ws, ga, RANKS * SHARE, 0), 0);
	for (r = 0; r < RANKS; r++)
		CHECK(play_is(bytes + (size_t)r * SHARE, SHARE, 3, (uint64_t)r));
	acp_destroy_ws(ws);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(workspace_with_loss)
{
	members_run_over("loss 1%", RANKS, PER_NODE, workspace);
}
