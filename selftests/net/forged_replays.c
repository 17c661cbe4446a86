// SPDX-License-Identifier: MIT
/* selftest: leaks */
/*
 * Frames that are replayed, of other incarnations, or of another set-up of the job; a last frame
 * that is lost. Replays keep no peer alive, and the flow continues afterwards.
 */
#include "../dev/isolated.h"

#include <netinet/ip.h>
#include <pthread.h>
#include <stdatomic.h>

#include "../dev/reload.h"
#include "forged_play.h"

/* ---- N11, N12, N13 ---- */

/* Send a HELLO of a node that has the key and different parameters of the job. */
static void send_mismatched(uint32_t src, uint32_t dst, uint8_t flags)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_HELLO);
	struct acp_frame_hello setup = x.setup;

	setup.digest ^= cpu_to_be64(1);
	f.flags = flags;
	f.epoch_src = src;
	f.epoch_dst = dst;
	inject_frame(&x, &f, &setup, sizeof(setup));
}

/* It is told the parameters of the victim, and an open flow is not affected. */
TEST(N11_mismatched_at_an_open_flow)
{
	struct acp_frame f;
	struct count c;
	uint32_t src, dst, i;

	begin();
	c = count("drop_mismatch");
	for (i = 0; i < 6; i++) {
		src = i & 1 ? 77 : x.base.epoch_src;
		dst = i < 2 ? 0 : i < 4 ? x.base.epoch_dst : 78;
		send_mismatched(src, dst, ACP_FRAME_ASK);
		inject_expect(&x, &f, NULL);
		CHECK(f.type == ACP_FRAME_HELLO && !f.flags);
		CHECK(f.epoch_src == x.base.epoch_dst && f.epoch_dst == src);
		send_mismatched(src, dst, 0);
	}
	nodes_counted(&c, 12);
	inject_silence(&x, 200);
	goes_on();
}

/* A HELLO that answers none of the victim may be a replay: the flow opens nevertheless. */
TEST(N11_mismatched_while_opening)
{
	struct acp_frame f;
	struct count c;

	begin_unheard(false, ACP_INTEGRITY_TAG);
	c = count("drop_mismatch");
	inject_expect(&x, &f, &x.setup);
	send_mismatched(77, 0, ACP_FRAME_ASK);
	send_mismatched(77, f.epoch_src ^ 1, ACP_FRAME_ASK);
	send_mismatched(77, f.epoch_src ^ 1, 0);
	nodes_counted(&c, 3);
	rendezvous();
	goes_on();
}

/* One that does answer is accepted. */
TEST(P7_mismatched_answers)
{
	struct acp_sync sync = { .size = sizeof(sync), .timeout_ns = PATIENCE_SOON };
	struct acp_frame f;

	begin_unheard(false, ACP_INTEGRITY_TAG);
	inject_expect(&x, &f, &x.setup);
	send_mismatched(77, f.epoch_src, 0);
	CHECK_EQ(rank_await(&victim, victim.last, PATIENCE_SOON), ACP_ST_PEER);
	CHECK_ERRNO(ioctl(victim.fd, ACP_IOC_SYNC, &sync), EPROTO);
	CHECK_EQ(sync.node, 1);
	CHECK_ERRNO(ioctl(second.fd, ACP_IOC_SYNC, &sync), EPROTO);
	CHECK_EQ(sync.node, 1);
	untouched("another set-up");
}

TEST(N11_replay)
{
	char good[300], data[8] = "original";
	struct count c;
	size_t size;
	int i;

	begin();
	c = count("drop_duplicate");
	size = put_datagram(good);
	inject_send(&x, good, size);
	inject_applied(&x, x.seq - 1);
	memcpy(target.addr + 1000, data, 8);
	for (i = 0; i < 50; i++)
		inject_send(&x, good, size);
	nodes_counted(&c, 50);
	CHECK(!memcmp(target.addr + 1000, data, 8));
	fill(target.addr, SIZE, 1);
	for (i = 0; i <= ACP_FRAME_WINDOW; i++)	/* the window advances */
		goes_on();
	inject_send(&x, good, size);
	nodes_counted(&c, 51);
	untouched("a replay");
}

/* ECN marks are not covered by a tag: they count in new frames only. */
TEST(N11_replay_with_a_mark)
{
	int ce = 3, i;
	struct count c;
	char good[300];
	size_t size;

	begin();
	c = count("rx_marked");
	CHECK_EQ(setsockopt(x.fd, IPPROTO_IP, IP_TOS, &ce, sizeof(ce)), 0);
	size = put_datagram(good);
	inject_send(&x, good, size);
	inject_applied(&x, x.seq - 1);
	for (i = 0; i < 50; i++)
		inject_send(&x, good, size);
	inject_ack(&x);
	goes_on();			/* another new one */
	nodes_counted(&c, 2);
}

/* ---- replay of frames of a dead node ---- */

#define LIMIT_MS	2000
#define IN_TIME		(5 * LIMIT_MS * MS / 2)	/* questions would prolong it to three timeouts */
#define RECORDED	5

/* Our frames, all of which the victim has accepted; replayed repeatedly. */
static struct {
	char bytes[RECORDED][300];
	size_t size[RECORDED];
	atomic_bool over;
	pthread_t thread;
} replay;

/* Return the "seq" of a HELLO of the victim that asks. */
static uint64_t question(void)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	struct acp_frame f;

	while (!patience_over(&p))
		if (inject_receive(&x, &f, NULL, 100) && f.type == ACP_FRAME_HELLO &&
		    f.flags & ACP_FRAME_ASK)
			return f.seq;
	FAIL("no question");
}

static size_t answer_datagram(void *out, uint64_t asked)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_HELLO);

	f.ack = asked;
	return inject_build(&x, out, &f, &x.setup, sizeof(x.setup));
}

/*
 * Start a command whose result never arrives. Returns its ticket. We have acknowledged its frame.
 */
static uint64_t delegate(void)
{
	uint64_t ticket = rank_copy(&victim, heap_ga(&victim, 0),
				    rank_ga(&victim, 2, ACP_STAG_HEAP, 0), 8, 0);
	struct acp_frame f;

	do {
		inject_expect(&x, &f, NULL);
	} while (f.type != ACP_FRAME_DATA);
	inject_ack(&x);
	return ticket;
}

/* Record one frame of each type; the last one answers a question of the victim. */
static void record(void)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_HELLO);
	uint32_t i;

	f.flags |= ACP_FRAME_ASK;
	replay.size[0] = inject_build(&x, replay.bytes[0], &f, &x.setup, sizeof(x.setup));
	replay.size[1] = put_datagram(replay.bytes[1]);
	f = inject_header(&x, ACP_FRAME_ACK);
	replay.size[2] = inject_build(&x, replay.bytes[2], &f, NULL, 0);
	f = inject_header(&x, ACP_FRAME_HELLO);
	replay.size[3] = inject_build(&x, replay.bytes[3], &f, &x.setup, sizeof(x.setup));
	for (i = 0; i < 4; i++)
		inject_send(&x, replay.bytes[i], replay.size[i]);
	inject_applied(&x, x.seq - 1);
	replay.size[4] = answer_datagram(replay.bytes[4], question());
	inject_send(&x, replay.bytes[4], replay.size[4]);
}

static void *repeat_all(void *unused)
{
	uint32_t i;

	(void)unused;
	while (!atomic_load(&replay.over)) {
		for (i = 0; i < RECORDED; i++)
			inject_send(&x, replay.bytes[i], replay.size[i]);
		sleep_ms(5);
	}
	return NULL;
}

static void begin_replay(void)
{
	atomic_store(&replay.over, false);
	CHECK_EQ(pthread_create(&replay.thread, NULL, repeat_all, NULL), 0);
}

static void end_replay(void)
{
	atomic_store(&replay.over, true);
	CHECK_EQ(pthread_join(replay.thread, NULL), 0);
}

/* A delegated command and a barrier wait for a node that died; both end in time. */
static void awaited_peer_is_dead(uint32_t integrity)
{
	struct acp_sync now = { .size = sizeof(now) };
	struct acp_sync sync = { .size = sizeof(sync), .timeout_ns = PATIENCE_WORK };
	struct count duplicates;
	struct patience soon;
	uint64_t ticket;

	time_out = LIMIT_MS;
	begin_with(false, integrity);
	ticket = delegate();
	record();
	soon = patience_begin(IN_TIME);
	begin_replay();
	duplicates = count("drop_duplicate");
	CHECK_ERRNO(ioctl(second.fd, ACP_IOC_SYNC, &now), ETIMEDOUT);
	CHECK_ERRNO(ioctl(victim.fd, ACP_IOC_SYNC, &sync), EPIPE);
	CHECK_EQ(rank_await(&victim, ticket, PATIENCE_SOON), ACP_ST_TIMEOUT);
	CHECK(!patience_over(&soon));
	end_replay();
	CHECK(nodes_counter(&n, 0, duplicates.name) > duplicates.before + 10);
}

TEST(N11_replays_keep_no_awaited_peer_alive)
{
	awaited_peer_is_dead(ACP_INTEGRITY_UDP);
}

TEST(N11_replays_keep_no_awaited_peer_alive_aead)
{
	awaited_peer_is_dead(ACP_INTEGRITY_AEAD);
}

/* The same while a frame of the victim is in flight. */
TEST(N11_replays_keep_no_silent_peer_alive)
{
	struct patience soon;
	uint64_t ticket;

	time_out = LIMIT_MS;
	begin();
	delegate();
	record();
	soon = patience_begin(IN_TIME);
	begin_replay();
	ticket = rank_copy(&victim, rank_ga(&victim, 2, ACP_STAG_HEAP, 0), heap_ga(&victim, 0),
			   8, 0);
	CHECK_EQ(rank_await(&victim, ticket, PATIENCE_WORK), ACP_ST_TIMEOUT);
	CHECK(!patience_over(&soon));
	end_replay();
}

/* A node that accepts no frames but answers questions is alive: for three timeouts. */
TEST(N17_peer_that_answers_is_alive)
{
	uint64_t begun, ticket;
	char answer[300];

	time_out = LIMIT_MS;
	begin();
	begun = now_ns();
	ticket = rank_copy(&victim, rank_ga(&victim, 2, ACP_STAG_HEAP, 0), heap_ga(&victim, 0),
			   8, 0);
	while (now_ns() - begun < 2 * LIMIT_MS * MS)
		inject_send(&x, answer, answer_datagram(answer, question()));
	CHECK_EQ(rank_wait(&victim, ticket, 0), -1);
	inject_drain(&x);
	inject_ack(&x);
	CHECK_EQ(rank_await(&victim, ticket, PATIENCE_SOON), ACP_ST_OK);
}

/* ... and so is one of which only an answer is awaited, for any time. */
TEST(N17_awaited_peer_that_answers_is_alive)
{
	uint64_t begun, ticket;
	char answer[300];

	time_out = LIMIT_MS;
	begin();
	ticket = delegate();
	begun = now_ns();
	while (now_ns() - begun < 4 * LIMIT_MS * MS)
		inject_send(&x, answer, answer_datagram(answer, question()));
	CHECK_EQ(rank_wait(&victim, ticket, 0), -1);
	goes_on();
}

/* The job ends and is started again, with the same ranks, key and memory. */
TEST(N11_replay_to_the_next_run)
{
	char good[300];
	struct count epoch;
	size_t size;

	begin();
	size = put_datagram(good);
	inject_send(&x, good, size);
	inject_applied(&x, x.seq - 1);
	rank_close(&victim);
	rank_close(&second);
	setup.join.rank = 0;
	nodes_join(&n, &victim, &setup);
	CHECK_EQ(rank_register(&victim, &target, target.addr, SIZE, ACP_ACCESS_ALL), 0);
	fill(target.addr, SIZE, 1);
	inject_drain(&x);		/* last frames of the first run */
	epoch = count("drop_bad_epoch");
	inject_send(&x, good, size);
	inject_silence(&x, 200);
	nodes_counted(&epoch, 1);
	untouched("a replay from the last run");
}

/*
 * The machine is rebooted: the module is loaded again, and the same ranks of the same job join with
 * the same memory. It has no state, and accepts none of the recorded frames.
 */
TEST(N11_replay_to_a_rebooted_node)
{
	static char captured[3][INJECT_MAX];
	size_t size[3], i, k;
	struct acp_frame f;
	struct count epoch;

	begin();
	f = inject_header(&x, ACP_FRAME_HELLO);
	f.flags = ACP_FRAME_ASK;
	size[0] = inject_build(&x, captured[0], &f, &x.setup, sizeof(x.setup));
	size[1] = put_datagram(captured[1]);
	f = inject_header(&x, ACP_FRAME_ACK);
	size[2] = inject_build(&x, captured[2], &f, NULL, 0);
	for (i = 0; i < 3; i++)
		inject_send(&x, captured[i], size[i]);
	inject_applied(&x, x.seq - 1);
	rank_close(&victim);
	rank_close(&second);
	rank_close(&bystander);
	module_unload_soon();
	CHECK_EQ(module_load(""), 0);
	inject_drain(&x);		/* last frames of the first incarnation */
	setup.join.rank = 0;
	nodes_join(&n, &victim, &setup);
	setup.join.rank = 1;
	nodes_join(&n, &second, &setup);
	CHECK_EQ(rank_register(&victim, &target, target.addr, SIZE, ACP_ACCESS_ALL), 0);
	CHECK_EQ(rank_register(&second, &closed, closed.addr, SIZE, 0), 0);
	fill(target.addr, SIZE, 1);
	epoch = count("drop_bad_epoch");
	for (k = 0; k < 3; k++) {
		for (i = 0; i < 3; i++)
			inject_send(&x, captured[i], size[i]);
		inject_drain(&x);	/* an answer to the HELLO, with the new epoch */
	}
	nodes_counted(&epoch, 6);
	CHECK_EQ(nodes_counter(&n, 0, "flows_opened"), 0);
	CHECK_EQ(nodes_counter(&n, 0, "rx_frames"), 0);
	untouched("a replay from before the reboot");
	/* A new flow to the present incarnation works. */
	close(x.fd);
	inject_open(&x, &n, 1, 0, &setup);
	x.base.epoch_src++;
	rank_copy(&victim, rank_ga(&victim, 2, ACP_STAG_HEAP, 0), heap_ga(&victim, 0), 8, 0);
	rendezvous();
	goes_on();
}

TEST(N12_future_numbers)
{
	static const uint64_t ahead[] = { ACP_FRAME_WINDOW, ACP_FRAME_WINDOW + 1, 1000, 1ULL << 32,
					  1ULL << 63, ~0ULL - 10 };
	struct count c;
	size_t i;

	begin();
	c = count("drop_future");
	for (i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
		uint64_t seq = x.seq;

		x.seq += ahead[i];
		inject_put(&x, 2, 1, memory_ga(&target, 0), "12345678", 8);
		x.seq = seq;
	}
	nodes_counted(&c, sizeof(ahead) / sizeof(ahead[0]));
	untouched("numbers beyond the window");
	goes_on();
}

TEST(N13_impossible_acknowledgements)
{
	static const uint64_t ack[] = { 0, 100, 1ULL << 32, ~0ULL };
	struct acp_frame_ack map;
	struct count c;
	struct acp_frame f;
	uint64_t sent;
	size_t i;

	begin();
	c = count("drop_bad_ack");
	sent = rank_copy(&victim, rank_ga(&victim, 2, ACP_STAG_HEAP, 0), heap_ga(&victim, 0), 8, 0);
	CHECK_EQ(rank_wait(&victim, sent, 50 * MS), -1);
	memset(&map, 0xff, sizeof(map));
	for (i = 0; i < sizeof(ack) / sizeof(ack[0]); i++) {
		f = inject_header(&x, ACP_FRAME_ACK);
		f.ack = ack[i];
		inject_frame(&x, &f, &map, sizeof(map));
	}
	nodes_counted(&c, sizeof(ack) / sizeof(ack[0]));
	f = inject_header(&x, ACP_FRAME_ACK);
	f.ack = 1;			/* backwards */
	memset(&map, 0, sizeof(map));
	inject_frame(&x, &f, &map, sizeof(map));
	CHECK_EQ(rank_wait(&victim, sent, 50 * MS), -1);
	while (x.heard < 3)
		inject_expect(&x, &f, NULL);	/* it is retransmitted */
	inject_ack(&x);
	CHECK_EQ(rank_await(&victim, sent, PATIENCE_SOON), ACP_ST_OK);
	goes_on();
}

/* ---- N1 ---- */

/* Acknowledge the frames of a put except the last one. Returns its number. */
static uint64_t hear_all_but_the_last(void)
{
	static char body[INJECT_MAX];
	struct acp_frame f;
	uint64_t last = 0;

	while (!last || x.heard < last) {
		inject_expect(&x, &f, body);
		if (f.type != ACP_FRAME_DATA)
			continue;
		if (body[1] & ACP_MSG_LAST)
			last = f.seq;
		if (last && x.heard > last)
			x.heard = last;
		inject_ack(&x);
	}
	return last;
}

/* Only the last frame of a put is missing, and no frames follow. */
TEST(N1_last_frame_lost)
{
	struct acp_frame f;
	uint64_t sent, last;
	uint32_t times = 0, crossed = 0;

	begin();
	sent = rank_copy(&victim, rank_ga(&victim, 2, ACP_STAG_HEAP, 0), heap_ga(&victim, 0),
			 20000, 0);
	last = hear_all_but_the_last();
	CHECK(last > 5);
	while (times < 3) {
		inject_expect(&x, &f, NULL);
		if (f.type != ACP_FRAME_DATA)
			continue;
		/* Frames that crossed with acknowledgements may still arrive, in any order. */
		times = f.seq == last ? times + 1 : 0;
		crossed += f.seq != last;
		CHECK(crossed < 4 * last);
	}
	CHECK_EQ(rank_wait(&victim, sent, 0), -1);
	x.heard = last + 1;
	inject_ack(&x);
	CHECK_EQ(rank_await(&victim, sent, PATIENCE_SOON), ACP_ST_OK);
	goes_on();
}
