// SPDX-License-Identifier: MIT
/* Channels on the fake basic layer: order, contents, and deaths at any time. */
#include <errno.h>
#include <pthread.h>

#include "chan_play.h"
#include "core/internal.h"
#include "channel/ring.h"

#define FAILED	((size_t)-1)

/* ---- Frames ---- */

static uint64_t dice = 12345;

static uint64_t throw(uint64_t sides)
{
	dice = play_mix(dice + 0x9e3779b97f4a7c15u);
	return dice % sides;
}

/* Bytes arrive one by one, in any order: the frame is complete with the last byte that differs. */
static void arrive(uint64_t *to, const uint64_t *from, uint64_t at, uint32_t words)
{
	uint32_t order[8 * 1100], count = words * 8, i, j, swap;
	const size_t first = at % LIBACP_RING_WORDS * 8;
	unsigned char *bytes = (unsigned char *)to + first;
	const unsigned char *source = (const unsigned char *)from + first;
	struct libacp_frame f;

	for (i = 0; i < count; i++)
		order[i] = i;
	for (i = count - 1; i; i--) {
		j = (uint32_t)throw(i + 1);
		swap = order[i];
		order[i] = order[j];
		order[j] = swap;
	}
	for (i = 0; i < count; i++) {
		if (bytes[order[i]] == source[order[i]])
			continue;
		CHECK(!libacp_ring_look(to, at, &f));
		bytes[order[i]] = source[order[i]];
	}
}

/* Padding after a payload is transferred as well, and ignored. */
static uint64_t skip(uint64_t *mirror, uint64_t *ring, uint64_t at)
{
	struct libacp_frame f;
	uint32_t words = libacp_ring_write_skip(mirror, at);

	if (words > 1)
		arrive(ring, mirror, at, 2);
	CHECK(libacp_ring_look(ring, at, &f));
	CHECK_EQ(f.kind, LIBACP_FRAME_SKIP);
	CHECK_EQ(f.words, words);
	CHECK_EQ((at + words) % LIBACP_RING_WORDS, 0);
	return words;
}

TEST(ring__frames)
{
	static uint64_t mirror[LIBACP_RING_WORDS], ring[LIBACP_RING_WORDS];
	static unsigned char message[LIBACP_FRAME_BYTES];
	uint64_t at = 0, round, skips = 0;
	uint32_t words, kind, size;
	struct libacp_frame f;

	for (round = 0; round < 3000; round++) {
		kind = LIBACP_FRAME_WHOLE + (uint32_t)throw(5);
		size = (uint32_t)throw(round % 50 ? 600 : LIBACP_FRAME_BYTES + 1);
		words = libacp_frame_words(size);
		if (libacp_ring_skip(at, words)) {
			at += skip(mirror, ring, at);
			skips++;
		}
		play_fill(message, size, 1, round);
		if (round % 7 == 0)
			memset(message, round % 2 ? 0 : 0xff, size);
		CHECK_EQ(libacp_ring_write(mirror, at, kind, message, size), words);
		arrive(ring, mirror, at, words);
		CHECK(libacp_ring_look(ring, at, &f));
		CHECK_EQ(f.kind, kind);
		CHECK_EQ(f.size, size);
		CHECK_EQ(f.words, words);
		CHECK(!memcmp(f.payload, message, size));
		at += words;
	}
	CHECK(skips > 10);
}

/* The ring ends anywhere after a frame, also with one word left. */
TEST(ring__end)
{
	static uint64_t mirror[LIBACP_RING_WORDS], ring[LIBACP_RING_WORDS];
	uint64_t left;

	for (left = 1; left < 20; left++) {
		CHECK_EQ(libacp_ring_skip(LIBACP_RING_WORDS - left, (uint32_t)left), 0);
		CHECK_EQ(libacp_ring_skip(LIBACP_RING_WORDS - left, (uint32_t)left + 1), left);
		CHECK_EQ(skip(mirror, ring, left * LIBACP_RING_WORDS - left), left);
	}
}

/* Contents of the previous round are no frame, nor is garbage. */
TEST(ring__no_frame)
{
	static uint64_t ring[LIBACP_RING_WORDS];
	struct libacp_frame f;
	uint64_t at;

	for (at = 0; at < 100; at++)
		CHECK(!libacp_ring_look(ring, at, &f));
	libacp_ring_write(ring, 5, LIBACP_FRAME_WHOLE, "message", 7);
	CHECK(libacp_ring_look(ring, 5, &f));
	CHECK(!libacp_ring_look(ring, 5 + LIBACP_RING_WORDS, &f));
	ring[7] ^= 1ull << 17;
	CHECK(!libacp_ring_look(ring, 5, &f));
	memset(ring, 0x42, sizeof(ring));
	CHECK(!libacp_ring_look(ring, 5, &f));
	memset(ring, 0xff, sizeof(ring));
	CHECK(!libacp_ring_look(ring, 5, &f));
	/* A head with an impossible size. */
	memset(ring, 0, sizeof(ring));
	ring[4000] = 4000u << 20 | 8192u << 4 | LIBACP_FRAME_WHOLE;
	CHECK(!libacp_ring_look(ring, 4000, &f));
	ring[4000] = 4000u << 20 | 8192u << 4 | LIBACP_FRAME_SKIP;
	CHECK(!libacp_ring_look(ring, 4000, &f));
	ring[8] = 8u << 20 | 65535u << 4 | LIBACP_FRAME_WHOLE;
	CHECK(!libacp_ring_look(ring, 8, &f));
}

/* ---- Two ranks ---- */

static const size_t sizes[] = {
	0, 1, 4, 5, 8, 13, 246, 247, 254, 255, 1000, 4088, 4095, 4096, 4097, 10000, 65536, 1000000,
};

#define SIZES	(sizeof(sizes) / sizeof(sizes[0]))

static void one_by_one(void *arg)
{
	unsigned char *memory = play_memory(1 << 20);
	acp_ch_t ch = acp_create_ch(0, 1);
	size_t i;

	(void)arg;
	CHECK(ch);
	for (i = 0; i < SIZES; i++) {
		if (acp_rank() == 0) {
			play_fill(memory, sizes[i], 7, i);
			CHECK_EQ(acp_wait_ch(acp_nbsend_ch(ch, memory, sizes[i])), 0);
		} else {
			CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, memory, 1 << 20)), sizes[i]);
			CHECK(play_is(memory, sizes[i], 7, i));
		}
	}
	CHECK_EQ(acp_free_ch(ch), 0);
	play_leave();
}

TEST(chan__sizes)
{
	struct fake_acp f = { .ranks = 2 }, near = { .ranks = 2, .nodes = 1 };

	fake_run(&f, one_by_one, NULL);
	fake_run(&near, one_by_one, NULL);
}

TEST(chan__sizes_without_heap)
{
	struct fake_acp f = { .ranks = 2, .heap_size = 4096 };
	struct fake_acp near = { .ranks = 2, .nodes = 1, .heap_size = 4096 };

	fake_run(&f, one_by_one, NULL);
	fake_run(&near, one_by_one, NULL);
}

/* All STags are in use: messages are sent in parts. */
static void unregistered(void *arg)
{
	unsigned char *pages = play_memory(256 * 4096);
	acp_atkey_t keys[256];
	int me = acp_rank(), who = *(int *)arg, i, count = 0;
	unsigned char *memory = play_memory(1 << 20);
	acp_ch_t ch = acp_create_ch(0, 1);
	size_t size;

	while (who & 1 << me && count < 256 &&
	       (keys[count] = acp_register_memory(pages + count * 4096, 4096, 0)))
		count++;
	for (i = 0; i < 60; i++) {
		size = play_size(5, (uint64_t)i);
		if (me == 0) {
			play_fill(memory, size, 5, (uint64_t)i);
			CHECK_EQ(acp_send_ch(ch, memory, size), 0);
		} else {
			CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, memory, i % 3 ? 1 << 20 : 5000)),
				 i % 3 || size < 5000 ? size : 5000);
			CHECK(play_is(memory, i % 3 || size < 5000 ? size : 5000, 5, (uint64_t)i));
		}
	}
	CHECK_EQ(acp_free_ch(ch), 0);
	while (count--)
		acp_unregister_memory(keys[count]);
	play_leave();
}

TEST(chan__nothing_can_be_registered)
{
	int who;

	for (who = 1; who <= 3; who++) {
		struct fake_acp f = { .ranks = 2 };

		fake_run(&f, unregistered, &who);
	}
}

static void truncated(void *arg)
{
	unsigned char *memory = play_memory(1 << 20);
	acp_ch_t ch = acp_create_ch(0, 1);
	size_t i, room;

	(void)arg;
	for (i = 0; i < 4 * SIZES; i++) {
		size_t size = sizes[i / 4];

		room = i % 4 == 0 ? 0 : i % 4 == 1 ? size / 2 : i % 4 == 2 ? size : size + 1;
		if (acp_rank() == 0) {
			play_fill(memory, size, 3, i);
			CHECK_EQ(acp_send_ch(ch, memory, size), 0);
			continue;
		}
		memset(memory, 0x5a, size + 8);
		CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, room ? memory : NULL, room)),
			 room < size ? room : size);
		CHECK(play_is(memory, room < size ? room : size, 3, i));
		CHECK_EQ(memory[room < size ? room : size], 0x5a);
	}
	CHECK_EQ(acp_free_ch(ch), 0);
	play_leave();
}

TEST(chan__shorter_and_longer)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, truncated, NULL);
}

/* ---- Progress without the other process ---- */

static void wait_word(unsigned int number, uint64_t value)
{
	while (__atomic_load_n(fake_word(number), __ATOMIC_ACQUIRE) < value)
		libacp_sleep(100000);
}

static void set_word(unsigned int number, uint64_t value)
{
	__atomic_store_n(fake_word(number), value, __ATOMIC_RELEASE);
}

/* The sender requests everything before the receiver exists, and then makes no calls. */
static void early_sender(void *arg)
{
	unsigned char *memory = play_memory(1 << 20);
	acp_request_t requests[3];
	size_t n[3];
	acp_ch_t ch;
	int i;

	(void)arg;
	if (acp_rank() == 0) {
		ch = acp_create_ch(0, 1);
		for (i = 0; i < 3; i++) {
			play_fill(memory + i * 70000, i ? 60000 : 100, 9, (uint64_t)i);
			requests[i] = acp_nbsend_ch(ch, memory + i * 70000, i ? 60000 : 100);
			CHECK(requests[i]);
		}
		/* The connection request must be in the library page. */
		for (i = 0; i < 50; i++) {
			libacp_sleep(1000000);
			libacp_rendezvous_lock();
			libacp_rendezvous_progress();
			libacp_rendezvous_unlock();
		}
		set_word(0, 1);
		wait_word(1, 1);
		CHECK_EQ(acp_waitall_ch(requests, 3, n), 0);
		CHECK_EQ(n[0] + n[1] + n[2], 0);
	} else {
		wait_word(0, 1);
		ch = acp_create_ch(0, 1);
		for (i = 0; i < 3; i++)
			requests[i] = acp_nbrecv_ch(ch, memory + i * 70000, 70000);
		CHECK_EQ(acp_waitall_ch(requests, 3, n), 0);
		for (i = 0; i < 3; i++) {
			CHECK_EQ(n[i], i ? 60000 : 100);
			CHECK(play_is(memory + i * 70000, n[i], 9, (uint64_t)i));
		}
		set_word(1, 1);
	}
	CHECK_EQ(acp_free_ch(ch), 0);
	play_leave();
}

TEST(chan__sender_stays_away)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, early_sender, NULL);
}

/* Sends up to the size of the ring need no receiver. */
static void late_receiver(void *arg)
{
	unsigned char memory[500];
	acp_ch_t ch = acp_create_ch(0, 1);
	uint64_t i;

	(void)arg;
	if (acp_rank() == 0) {
		CHECK_EQ(acp_send_ch(ch, memory, 0), 0);
		wait_word(0, 1);
		for (i = 0; i < 30; i++) {
			play_fill(memory, sizeof(memory), 2, i);
			CHECK_EQ(acp_send_ch(ch, memory, sizeof(memory)), 0);
		}
		set_word(1, 1);
	} else {
		CHECK_EQ(acp_recv_ch(ch, NULL, 0), 0);
		set_word(0, 1);
		wait_word(1, 1);
		for (i = 0; i < 30; i++) {
			CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, memory, sizeof(memory))),
				 sizeof(memory));
			CHECK(play_is(memory, sizeof(memory), 2, i));
		}
	}
	CHECK_EQ(acp_free_ch(ch), 0);
	play_leave();
}

TEST(chan__receiver_stays_away)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, late_receiver, NULL);
}

/* A small message is one access in all situations. */
static void count_accesses(void *arg)
{
	uint64_t begin = 0, i, x = 0;
	acp_ch_t ch = acp_create_ch(0, 1);

	(void)arg;
	for (i = 0; i < 1200; i++) {
		if (i == 200)
			begin = fake_remote_accesses();
		if (acp_rank() == 0) {
			CHECK_EQ(acp_send_ch(ch, &i, 8), 0);
		} else {
			CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, &x, 8)), 8);
			CHECK_EQ(x, i);
		}
	}
	if (acp_rank() == 0)
		/* including probes */
		CHECK(fake_remote_accesses() - begin < 1200);
	else
		/* including some probes */
		CHECK(fake_remote_accesses() - begin < 200);
	CHECK_EQ(acp_free_ch(ch), 0);
	play_leave();
}

TEST(chan__one_put_a_message)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, count_accesses, NULL);
}

/* ---- Many channels ---- */

#define DEPTH	6

/* One end in a random run: its requests, in order. */
struct play {
	acp_ch_t ch;
	bool sending;
	uint64_t name, begun, ended, total;
	acp_request_t requests[DEPTH];
	unsigned char *memory[DEPTH];
	size_t room[DEPTH];
};

static size_t room_for(const struct play *p, uint64_t number)
{
	uint64_t x = play_mix(p->name + number * 17);

	return x % 4 ? PLAY_LARGEST : x / 4 % PLAY_LARGEST;
}

static void begin_one(struct play *p)
{
	unsigned int i = p->begun % DEPTH;
	size_t size = play_size(p->name, p->begun);

	if (p->sending) {
		play_fill(p->memory[i], size, p->name, p->begun);
		p->requests[i] = acp_nbsend_ch(p->ch, p->memory[i], size);
	} else {
		p->room[i] = room_for(p, p->begun);
		p->requests[i] = acp_nbrecv_ch(p->ch, p->memory[i], p->room[i]);
	}
	CHECK(p->requests[i]);
	p->begun++;
}

/* False: it failed. */
static bool end_one(struct play *p)
{
	unsigned int i = p->ended % DEPTH;
	size_t size = play_size(p->name, p->ended), result = acp_wait_ch(p->requests[i]);

	if (result == FAILED)
		return false;
	if (p->sending) {
		CHECK_EQ(result, 0);
	} else {
		CHECK_EQ(result, size < p->room[i] ? size : p->room[i]);
		CHECK(play_is(p->memory[i], result, p->name, p->ended));
	}
	p->ended++;
	return true;
}

static void open_play(struct play *p, int sender, int receiver, uint64_t number, uint64_t total)
{
	unsigned int i;

	memset(p, 0, sizeof(*p));
	p->ch = acp_create_ch(sender, receiver);
	CHECK(p->ch);
	p->sending = acp_rank() == sender;
	p->name = ((uint64_t)sender * 64 + (uint64_t)receiver) * 64 + number;
	p->total = total;
	for (i = 0; i < DEPTH; i++)
		p->memory[i] = play_memory(PLAY_LARGEST);
}

static void play_on(struct play *p)
{
	if (p->begun < p->total && p->begun - p->ended < DEPTH && fake_random() % 3)
		begin_one(p);
	else if (p->ended < p->begun)
		CHECK(end_one(p));
}

struct plan {
	int channels;
	uint64_t messages;
};

/*
 * All ranks with all others. Waits are for requests that the others will make as well: the ends are
 * processed round by round, with few messages in flight.
 */
static void exchange(void *arg)
{
	const struct plan *plan = arg;
	int me = acp_rank(), procs = acp_procs(), r, k, count = 0, i;
	struct play *plays = calloc((size_t)(2 * procs * plan->channels), sizeof(*plays));
	uint64_t m;

	for (k = 0; k < plan->channels; k++)
		for (r = 0; r < procs; r++) {
			if (r == me)
				continue;
			open_play(&plays[count++], me, r, (uint64_t)k, plan->messages);
			open_play(&plays[count++], r, me, (uint64_t)k, plan->messages);
		}
	for (m = 0; m < plan->messages; m += DEPTH) {
		for (i = 0; i < count; i++)
			while (plays[i].begun < plan->messages &&
			       plays[i].begun - plays[i].ended < DEPTH)
				begin_one(&plays[i]);
		for (k = 0; k < 2 * DEPTH * count; k++) {
			i = (int)(fake_random() % (uint64_t)count);
			if (plays[i].ended < plays[i].begun)
				CHECK(end_one(&plays[i]));
		}
		for (i = 0; i < count; i++)
			while (plays[i].ended < plays[i].begun)
				CHECK(end_one(&plays[i]));
	}
	for (i = 0; i < count; i++)
		plays[i].requests[0] = acp_nbfree_ch(plays[i].ch);
	for (i = 0; i < count; i++)
		CHECK_EQ(acp_wait_ch(plays[i].requests[0]), 0);
	free(plays);
	play_leave();
}

static bool long_run(void)
{
	return getenv("ACP_TEST_LONG");
}

TEST(chan__everybody_with_everybody)
{
	struct plan plan = { 2, long_run() ? 200 : 30 };
	struct fake_acp f = { .ranks = 4 }, mixed = { .ranks = 5, .nodes = 2 };
	struct fake_acp small = { .ranks = 4, .nodes = 2, .heap_size = 100000 };

	fake_run(&f, exchange, &plan);
	fake_run(&mixed, exchange, &plan);
	fake_run(&small, exchange, &plan);
}

/* Two ranks, each message waited for at random times. */
static void stream(void *arg)
{
	struct play p;

	open_play(&p, 0, 1, 5, *(uint64_t *)arg);
	while (p.ended < p.total)
		play_on(&p);
	CHECK_EQ(acp_free_ch(p.ch), 0);
	play_leave();
}

TEST(chan__stream)
{
	uint64_t count = long_run() ? 2000 : 300;
	struct fake_acp f = { .ranks = 2 }, near = { .ranks = 2, .nodes = 1 };

	fake_run(&f, stream, &count);
	fake_run(&near, stream, &count);
}

/* More simultaneous connection requests than words in the page. */
#define CROWD	12
#define EACH	20

static void crowd(void *arg)
{
	acp_ch_t ch[CROWD][EACH];
	int me = acp_rank(), r, k;
	uint64_t x;

	(void)arg;
	if (me) {
		for (k = 0; k < EACH; k++)
			CHECK((ch[0][k] = acp_create_ch(me, 0)));
		for (k = EACH - 1; k >= 0; k--) {
			x = (uint64_t)(me * 100 + k);
			CHECK_EQ(acp_send_ch(ch[0][k], &x, 8), 0);
		}
		for (k = 0; k < EACH; k++)
			CHECK_EQ(acp_free_ch(ch[0][k]), 0);
	} else {
		libacp_sleep(50000000);
		for (k = 0; k < EACH; k++)
			for (r = 1; r < acp_procs(); r++)
				CHECK((ch[r][k] = acp_create_ch(r, 0)));
		for (k = EACH - 1; k >= 0; k--)
			for (r = 1; r < acp_procs(); r++) {
				CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch[r][k], &x, 8)), 8);
				CHECK_EQ(x, r * 100 + k);
			}
		for (k = 0; k < EACH; k++)
			for (r = 1; r < acp_procs(); r++)
				CHECK_EQ(acp_free_ch(ch[r][k]), 0);
	}
	play_leave();
}

TEST(chan__many_to_one)
{
	struct fake_acp f = { .ranks = CROWD, .heap_size = 8 << 20 };

	fake_run(&f, crowd, NULL);
}

/* Create and free repeatedly: nothing leaks. */
static void again(void *arg)
{
	struct acpx_heap_stats stats;
	acp_ch_t ch;
	uint64_t i, x;

	for (i = 0; i < *(uint64_t *)arg; i++) {
		ch = acp_create_ch(0, 1);
		CHECK(ch);
		if (acp_rank() == 0) {
			CHECK_EQ(acp_send_ch(ch, &i, 8), 0);
		} else if (i % 2) {
			CHECK_EQ(acp_recv_ch(ch, &x, 8), 0);
			CHECK_EQ(x, i);
		}
		CHECK_EQ(acp_free_ch(ch), 0);
		/* The block of a sender may exist until the next call. */
		CHECK_EQ(acpx_heap_stats(acp_rank(), &stats), 0);
		CHECK(stats.blocks <= 5);
	}
	play_leave();
}

TEST(chan__again_and_again)
{
	uint64_t count = long_run() ? 2000 : 50;
	struct fake_acp f = { .ranks = 2, .heap_size = 200000 };

	fake_run(&f, again, &count);
}

/* ---- Threads ---- */

#define THREADS	4

static acp_ch_t thread_ch[THREADS][2];

static void *thread(void *arg)
{
	uintptr_t n = (uintptr_t)arg;
	uint64_t i, x, y;

	for (i = 0; i < 30; i++) {
		acp_request_t in = acp_nbrecv_ch(thread_ch[n][1], &x, 8), out;

		y = n * 1000 + i;
		out = acp_nbsend_ch(thread_ch[n][0], &y, 8);
		CHECK_EQ(acp_wait_ch(out), 0);
		CHECK_EQ(acp_wait_ch(in), 8);
		CHECK_EQ(x, n * 1000 + i);
	}
	return NULL;
}

static void threads(void *arg)
{
	pthread_t t[THREADS];
	uintptr_t i;
	int me = acp_rank();

	(void)arg;
	for (i = 0; i < THREADS; i++) {
		thread_ch[i][me] = acp_create_ch(0, 1);
		thread_ch[i][1 - me] = acp_create_ch(1, 0);
	}
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, thread, (void *)i));
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_join(t[i], NULL));
	play_leave();
}

TEST(chan__threads)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, threads, NULL);
}

/* ---- Mistakes ---- */

static void mistakes(void *arg)
{
	acp_ch_t ch = acp_create_ch(0, 1);
	int me = acp_rank();
	acp_request_t r;
	char c = 0;

	(void)arg;
	CHECK(!acp_create_ch(-1, me));
	CHECK(!acp_create_ch(me, 3));
	CHECK(!acp_create_ch(me, me));
	CHECK(!acp_create_ch(1 - me, 2));
	CHECK(!acp_nbsend_ch(NULL, &c, 1));
	CHECK(!acp_nbrecv_ch(NULL, &c, 1));
	CHECK(!acp_nbfree_ch(NULL));
	CHECK_EQ(acp_free_ch(NULL), -1);
	CHECK_EQ(acp_wait_ch(NULL), FAILED);
	CHECK_EQ(acp_waitall_ch(NULL, 1, NULL), -1);
	CHECK_EQ(acp_waitall_ch(NULL, 0, NULL), 0);
	CHECK(!(me ? acp_nbsend_ch : acp_nbrecv_ch)(ch, &c, 1));
	CHECK(!(me ? acp_nbrecv_ch : acp_nbsend_ch)(ch, NULL, 1));
	r = acp_nbfree_ch(ch);
	CHECK(r);
	if (me == 0)
		CHECK(!acp_nbsend_ch(ch, &c, 1));
	CHECK_EQ(acp_wait_ch(r), 0);
	play_leave();
}

static void mistakes_of_two(void *arg)
{
	if (acp_rank() < 2)
		mistakes(arg);
	else
		play_leave();
}

TEST(chan__mistakes)
{
	struct fake_acp f = { .ranks = 3 };

	fake_run(&f, mistakes_of_two, NULL);
}

/* Messages that were not sent before the close are not received. */
static void too_many(void *arg)
{
	acp_ch_t ch = acp_create_ch(0, 1);
	acp_request_t r[3];
	uint64_t x = 5;
	size_t n[3];

	(void)arg;
	if (acp_rank() == 0) {
		CHECK_EQ(acp_send_ch(ch, &x, 8), 0);
	} else {
		r[0] = acp_nbrecv_ch(ch, &x, 8);
		r[1] = acp_nbrecv_ch(ch, &x, 8);
		r[2] = acp_nbrecv_ch(ch, NULL, 0);
		CHECK_EQ(acp_waitall_ch(r, 3, n), -1);
		CHECK_EQ(n[0], 8);
		CHECK_EQ(n[1], FAILED);
		CHECK_EQ(n[2], FAILED);
		CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, &x, 8)), FAILED);
	}
	CHECK_EQ(acp_free_ch(ch), 0);
	play_leave();
}

TEST(chan__more_asked_for_than_sent)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, too_many, NULL);
}

/* ---- Leaving ---- */

/* Requests that are not waited for are completed before the last barrier, if possible. */
static void leave_at_once(void *arg)
{
	unsigned char *memory = play_memory(100000);
	acp_ch_t ch = acp_create_ch(0, 1), other = acp_create_ch(1, 0), third;
	uint64_t x;

	(void)arg;
	if (acp_rank() == 0) {
		play_fill(memory, 100000, 1, 1);
		CHECK(acp_nbsend_ch(ch, memory, 100000));
		third = acp_create_ch(0, 1);
		CHECK(acp_nbsend_ch(third, memory, 100000));
		CHECK(acp_nbrecv_ch(other, &x, 8));
	} else {
		libacp_sleep(20000000);
		CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, memory, 100000)), 100000);
		CHECK(play_is(memory, 100000, 1, 1));
	}
	play_leave();
}

TEST(chan__leave_with_requests)
{
	struct fake_acp f = { .ranks = 2 };

	fake_run(&f, leave_at_once, NULL);
}

/* ---- Death ---- */

/* Return how many succeeded; all others that were requested have failed. */
static uint64_t until_failure(struct play *p)
{
	uint64_t good;

	while (p->ended < p->total) {
		while (p->begun < p->total && p->begun - p->ended < DEPTH)
			begin_one(p);
		if (!end_one(p))
			break;
	}
	good = p->ended;
	for (p->ended++; p->ended < p->begun; p->ended++)
		CHECK_EQ(acp_wait_ch(p->requests[p->ended % DEPTH]), FAILED);
	return good;
}

/* Rank 1 dies at some access; 0 and 2 detect it, and continue with each other. */
static void one_dies(void *arg)
{
	int me = acp_rank();
	struct play in, out;

	(void)arg;
	if (me == 0) {
		open_play(&out, 0, 1, 0, 100000);
		until_failure(&out);
		acp_free_ch(out.ch);
		open_play(&out, 0, 2, 0, 5);
	} else if (me == 1) {
		open_play(&in, 0, 1, 0, 100000);
		open_play(&out, 1, 2, 0, 100000);
		for (;;) {
			play_on(&in);
			play_on(&out);
		}
	} else {
		open_play(&in, 1, 2, 0, 100000);
		until_failure(&in);
		CHECK_EQ(acp_free_ch(in.ch), -1);
		open_play(&out, 0, 2, 0, 5);
	}
	until_failure(&out);
	CHECK_EQ(out.ended, 6);
	CHECK_EQ(acp_free_ch(out.ch), 0);
	libacp_rendezvous_settle();
	libacp_chan_close();
}

static void deaths(int rounds, bool turns)
{
	uint64_t seed = play_seed(), chance;

	for (; rounds--; seed++) {
		struct fake_acp f = { .ranks = 3, .speed = 20, .seed = seed, .turns = turns };

		chance = play_mix(seed);
		f.nodes = 1 + (int)(chance % 3);
		f.die[1] = 1 + chance / 3 % (chance / 1800 % 2 ? 60 : 600);
		f.delay_us = chance / 3600 % 2 ? 0 : 100;
		fake_run(&f, one_dies, NULL);
		CHECK_EQ(f.dead, 1);
	}
}

TEST(chan__death)
{
	deaths(long_run() ? 2000 : 20, true);
}

TEST(chan__death_beside_threads)
{
	deaths(long_run() ? 400 : 10, false);
}

/* ---- Accesses in flight at a death ---- */

#define MUCH	20000u			/* bytes of a lent message */

static void progress(void)
{
	libacp_rendezvous_lock();
	libacp_rendezvous_progress();
	libacp_rendezvous_unlock();
}

static bool all_are(const unsigned char *bytes, size_t size, unsigned char value)
{
	while (size && bytes[size - 1] == value)
		size--;
	return !size;
}

static void hold_until_dead(unsigned int word, int rank)
{
	while (!fake_holds()) {
		progress();
		libacp_sleep(100000);
	}
	set_word(word, 1);
	while (acpx_peer_state(rank) != ACPX_PEER_DOWN)
		libacp_sleep(100000);
}

static void *release_later(void *arg)
{
	usleep(300000);
	fake_hold(0);
	return arg;
}

/* The fetch continues after the death, to memory that is registered otherwise. */
static void fetch_is_late(void *arg)
{
	unsigned char *memory = play_memory(MUCH);
	acp_ch_t ch = acp_create_ch(1, 0);
	acp_request_t r;
	pthread_t t;
	size_t n;

	(void)arg;
	if (acp_rank() == 1) {
		play_fill(memory, MUCH, 1, 2);
		CHECK_EQ(acp_send_ch(ch, memory, 8), 0);
		CHECK(acp_nbsend_ch(ch, memory, MUCH));
		while (!*(volatile uint64_t *)fake_word(0))
			progress();
		fake_die_at(0);
	}
	CHECK(acp_register_memory(memory, MUCH, 0));
	CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, memory, 8)), 8);
	fake_hold(MUCH);
	r = acp_nbrecv_ch(ch, memory, MUCH);
	hold_until_dead(0, 1);
	CHECK(!pthread_create(&t, NULL, release_later, NULL));
	n = acp_wait_ch(r);
	if (n == FAILED)
		memset(memory, 0x77, MUCH);
	CHECK(!pthread_join(t, NULL));
	while (acp_inquire(ACP_HANDLE_ALL))
		libacp_sleep(100000);
	CHECK(n == FAILED ? all_are(memory, MUCH, 0x77) : play_is(memory, MUCH, 1, 2));
	acp_free_ch(ch);
	libacp_rendezvous_settle();
	libacp_chan_close();
}

TEST(chan__a_failed_receive_leaves_its_buffer_alone)
{
	struct fake_acp f = { .ranks = 2, .speed = 20 };

	fake_run(&f, fetch_is_late, NULL);
	CHECK_EQ(f.dead, 1);
}

/* Allocate all of the heap that blocks could be allocated from again. */
#define BLOCKS	40

static int take_heap(acp_ga_t *blocks)
{
	int count = 0;

	while (count < BLOCKS && (blocks[count] = acp_malloc(sizeof(struct libacp_chan_sink), 0)))
		memset(acp_query_address(blocks[count++]), 0x77, sizeof(struct libacp_chan_sink));
	return count;
}

/* The first frames are still being fetched into the block of an end that is lost and freed. */
static void block_is_late(void *arg)
{
	unsigned char memory[1000] = { 1 };
	acp_ga_t blocks[BLOCKS];
	int i, count;
	acp_ch_t ch;

	(void)arg;
	/* Messages sent before the ends are connected are fetched; later ones are put. */
	if (acp_rank() == 0) {
		fake_hold(sizeof(memory));
		while (!*(volatile uint64_t *)fake_word(1))
			libacp_sleep(100000);
	}
	ch = acp_create_ch(1, 0);
	if (acp_rank() == 1) {
		CHECK(acp_nbsend_ch(ch, memory, sizeof(memory)));
		set_word(1, 1);
		while (!*(volatile uint64_t *)fake_word(0))
			progress();
		fake_die_at(0);
	}
	hold_until_dead(0, 1);
	CHECK_EQ(acp_free_ch(ch), -1);
	for (i = 0; i < 100; i++) {
		progress();
		libacp_sleep(1000000);
	}
	count = take_heap(blocks);
	CHECK(count > 10 && count < BLOCKS);
	fake_hold(0);
	while (acp_inquire(ACP_HANDLE_ALL))
		libacp_sleep(100000);
	for (i = 0; i < count; i++) {
		CHECK(all_are(acp_query_address(blocks[i]), sizeof(struct libacp_chan_sink), 0x77));
		acp_free(blocks[i]);
	}
	libacp_rendezvous_settle();
	libacp_chan_close();
}

TEST(chan__a_lost_block_is_kept_while_it_is_written)
{
	struct fake_acp f = { .ranks = 2, .speed = 20 };

	fake_run(&f, block_is_late, NULL);
	CHECK_EQ(f.dead, 1);
}

/* A sender that has given up may change its buffer; the receiver still tries to fetch it. */
static void lent_too_long(void *arg)
{
	unsigned char *memory = play_memory(MUCH);
	acp_ch_t ch = acp_create_ch(0, 1);
	acp_request_t r;
	size_t n;

	(void)arg;
	if (acp_rank() == 0) {
		CHECK(acp_register_memory(memory, MUCH, 0));
		play_fill(memory, MUCH, 1, 2);
		CHECK_EQ(acp_send_ch(ch, memory, 8), 0);
		wait_word(0, 1);
		r = acp_nbsend_ch(ch, memory, MUCH);
		while (acp_inquire(ACP_HANDLE_ALL))
			libacp_sleep(100000);
		fake_set_state(1, ACPX_PEER_DOWN);
		CHECK_EQ(acp_wait_ch(r), FAILED);
		memset(memory, 0x77, MUCH);
		set_word(1, 1);
		wait_word(0, 2);
		fake_set_state(1, -1);
	} else {
		CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, memory, 8)), 8);
		set_word(0, 1);
		wait_word(1, 1);
		n = acp_wait_ch(acp_nbrecv_ch(ch, memory, MUCH));
		CHECK(n == FAILED || play_is(memory, MUCH, 1, 2));
		set_word(0, 2);
	}
	CHECK_EQ(acp_free_ch(ch), -1);
	libacp_rendezvous_settle();
	libacp_chan_close();
}

TEST(chan__nobody_reads_what_was_taken_back)
{
	struct fake_acp f = { .ranks = 2, .speed = 20 };

	fake_run(&f, lent_too_long, NULL);
}

/* No partner: the wait ends when the partner is dead, or has reached its end. */
static void nobody(void *arg)
{
	acp_ch_t ch = acp_create_ch(0, 1);
	char c;

	if (acp_rank() == 0) {
		if (arg)
			CHECK_EQ(acp_wait_ch(acp_nbsend_ch(ch, "x", 1)), FAILED);
		CHECK_EQ(acp_free_ch(ch), -1);
		ch = acp_create_ch(1, 0);
		CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, &c, 1)), FAILED);
		CHECK_EQ(acp_free_ch(ch), -1);
	} else {
		libacp_sleep(30000000);
		if (arg)
			fake_die_at(0);
	}
	libacp_rendezvous_settle();
	libacp_chan_close();
}

static void died_before(void *arg)
{
	if (acp_rank() == 1 && arg)
		fake_die_at(0);
	if (acp_rank() == 1) {
		libacp_rendezvous_settle();
		libacp_chan_close();
		return;
	}
	nobody(arg);
}

TEST(chan__nobody_comes)
{
	struct fake_acp f = { .ranks = 2, .speed = 5 }, g = f, h = f;
	char yes = 1;

	fake_run(&f, nobody, &yes);
	CHECK_EQ(f.dead, 1);
	fake_run(&g, died_before, &yes);
	CHECK_EQ(g.dead, 1);
	fake_run(&h, died_before, NULL);
	CHECK_EQ(h.dead, 0);
}

/* A node that cannot be reached is detected by probes; after it is back, new channels work. */
static void cut(void *arg)
{
	acp_ch_t ch = acp_create_ch(0, 1);
	uint64_t x = 7;

	(void)arg;
	if (acp_rank() == 0) {
		CHECK_EQ(acp_send_ch(ch, &x, 8), 0);
		wait_word(0, 1);
		fake_set_state(0, ACPX_PEER_UNKNOWN);
		fake_cut(1, true);
		wait_word(1, 1);
		fake_cut(1, false);
		fake_set_state(0, -1);
		/*
		 * Messages sent before the sender learns that the receiver gave up simply arrive.
		 */
		while (acp_wait_ch(acp_nbsend_ch(ch, &x, 8)) != FAILED)
			libacp_sleep(1000000);
		set_word(2, 1);
	} else {
		CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, &x, 8)), 8);
		set_word(0, 1);
		CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, &x, 8)), FAILED);
		set_word(1, 1);
		wait_word(2, 1);
	}
	CHECK_EQ(acp_free_ch(ch), -1);
	ch = acp_create_ch(0, 1);
	if (acp_rank() == 0)
		CHECK_EQ(acp_send_ch(ch, &x, 8), 0);
	else
		CHECK_EQ(acp_wait_ch(acp_nbrecv_ch(ch, &x, 8)), 8);
	CHECK_EQ(acp_free_ch(ch), 0);
	play_leave();
}

TEST(chan__out_of_reach)
{
	struct fake_acp f = { .ranks = 2, .speed = 10 };

	fake_run(&f, cut, NULL);
}

/*
 * A link that fails repeatedly: data that arrives is correct, failed requests end, and finally
 * everything works.
 */
static void flaps(void *arg)
{
	uint64_t rounds = *(uint64_t *)arg, round, ended;
	int me = acp_rank();
	struct play p;

	for (round = 0; me < 2 && round < rounds; round++) {
		if (round + 3 >= rounds)
			wait_word(1, 1);
		open_play(&p, 0, 1, round % 64, round + 3 < rounds ? 1000000 : 20);
		ended = until_failure(&p);
		acp_free_ch(p.ch);
		CHECK(round + 1 < rounds || ended == 20);
		__atomic_fetch_add(fake_word(0), 1, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(fake_word(0), __ATOMIC_SEQ_CST) < 2 * (round + 1))
			libacp_sleep(100000);
	}
	while (me == 2 && __atomic_load_n(fake_word(0), __ATOMIC_SEQ_CST) < 2 * (rounds - 3)) {
		libacp_sleep(20000000 + fake_random() % 1000000000);
		fake_cut(1, true);
		libacp_sleep(fake_random() % 1000000000);
		fake_cut(1, false);
	}
	if (me == 2)
		set_word(1, 1);
	play_leave();
}

TEST(chan__flaps)
{
	uint64_t rounds = long_run() ? 60 : 6;
	int run;

	for (run = 0; run < 10; run++) {
		struct fake_acp f = { .ranks = 3, .speed = 20, .heap_size = 8 << 20 };

		fake_run(&f, flaps, &rounds);
	}
}

TEST_MAIN
