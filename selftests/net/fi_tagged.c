// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * FI_MSG and FI_TAGGED of the provider acp of libfabric, on nodes of their own and on one: order,
 * wildcards, truncation, peeks and claims, cancellation, floods, long messages, lost peers.
 */
#include "../dev/isolated.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_tagged.h>

#include "fabric_play.h"
#include "said.h"

#define RANKS	3
#define LONG	200000U
#define ALL	(~0ULL)
#define CAPS	(FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV)

static struct play play;
static struct fid_ep *ep;
static fi_addr_t *peers;
static char buffers[16][LONG];
static char context[16];		/* their addresses are what matters */

static void open_like(size_t cq_data_size)
{
	const struct play_wish wish = {
		.caps = CAPS, .cq_size = 4096, .cq_data_size = cq_data_size,
	};

	play_open(&play, &wish);
	ep = play.ep;
	cq = play.cq;
	peers = play.peer;
}

static void open_all(void)
{
	open_like(0);
}

static void close_all(void)
{
	play_close(&play);
}

static void run(int count, int per_node, void (*body)(void))
{
	play_prepare();
	members_run(count, per_node, body);
}

static void put(unsigned int i, size_t size, uint64_t seed)
{
	size_t at;

	for (at = 0; at < size; at++)
		buffers[i][at] = (char)(seed * 31 + at * 7 + (at >> 8));
}

static bool has(unsigned int i, size_t size, uint64_t seed)
{
	size_t at;

	for (at = 0; at < size; at++)
		if (buffers[i][at] != (char)(seed * 31 + at * 7 + (at >> 8)))
			return false;
	return true;
}

static void post(unsigned int i, size_t room, fi_addr_t from, uint64_t tag, uint64_t ignore)
{
	memset(buffers[i], 0x55, sizeof(buffers[i]));
	PLAY_RETRY(fi_trecv(ep, buffers[i], room, NULL, from, tag, ignore, &context[i]));
}

/* Send and wait until the buffer may be used again. */
static void send_wait(int to, size_t size, uint64_t tag)
{
	put(15, size, tag);
	PLAY_RETRY(fi_tsend(ep, buffers[15], size, NULL, peers[to], tag, &context[15]));
	CHECK_EQ(play_of(&context[15]).error, 0);
}

static void check_got(unsigned int i, int from, size_t size, uint64_t tag)
{
	struct said s = play_of(&context[i]);

	CHECK_EQ(s.error, 0);
	CHECK_EQ(s.e.len, size);
	CHECK_EQ(s.e.tag, tag);
	CHECK_EQ(s.source, peers[from]);
	CHECK_EQ(s.e.flags, FI_TAGGED | FI_RECV);
	CHECK(has(i, size, tag));
}

static void sync_all(void)
{
	CHECK_EQ(acp_sync(), 0);
}

/* On nodes of their own, and on one. */
static void everywhere(void (*body)(void))
{
	run(RANKS, 1, body);
	run(RANKS, RANKS, body);
}

/* ---- order ---- */

#define MESSAGES	60U

static const size_t sizes[] = { 0, 1, 8, 255, 257, 4000, 16384, 16385, LONG };

#define SIZES	(sizeof(sizes) / sizeof(sizes[0]))

static void in_order(void)
{
	uint32_t i;

	open_all();
	if (acp_rank() == 1) {
		/* Half of them come before their receives. */
		for (i = 0; i < MESSAGES; i++) {
			if (i == MESSAGES / 2)
				sync_all();
			post(0, LONG, peers[0], 7, 0);
			struct said s = play_of(&context[0]);

			CHECK_EQ(s.error, 0);
			CHECK_EQ(s.e.len, sizes[i % SIZES]);
			CHECK(has(0, s.e.len, i));
		}
	} else {
		for (i = 0; i < MESSAGES && !acp_rank(); i++) {
			if (i == MESSAGES / 2)
				sync_all();
			put(0, sizes[i % SIZES], i);
			PLAY_RETRY(fi_tsend(ep, buffers[0], sizes[i % SIZES], NULL, peers[1], 7,
					    &context[0]));
			CHECK_EQ(play_of(&context[0]).error, 0);
		}
		if (acp_rank())
			sync_all();
	}
	sync_all();
	close_all();
}

TEST(messages_of_a_sender_come_in_order)
{
	everywhere(in_order);
}

/* ---- what matches ---- */

static void wildcards(void)
{
	open_all();
	if (!acp_rank()) {
		post(0, 100, peers[2], 0x10, 0);
		post(1, 100, FI_ADDR_UNSPEC, 0x20, 0x0f);
		post(2, 100, FI_ADDR_UNSPEC, 0, ALL);
		sync_all();
		/* Not the first: another sender. Not the third: there is an older one. */
		check_got(1, 1, 50, 0x21);
		sync_all();
		check_got(2, 1, 60, 0x10);
		sync_all();
		check_got(0, 2, 70, 0x10);
	} else {
		sync_all();
		if (acp_rank() == 1)
			send_wait(0, 50, 0x21);
		sync_all();
		if (acp_rank() == 1)
			send_wait(0, 60, 0x10);
		sync_all();
		if (acp_rank() == 2)
			send_wait(0, 70, 0x10);
	}
	sync_all();
	close_all();
}

TEST(receives_match_by_sender_tag_and_ignored_bits)
{
	everywhere(wildcards);
}

/* Each bit that receives may ignore, up to what a list can learn; then a named error. */
static void masks(void)
{
	uint32_t i, refused = 0;
	ssize_t error;

	open_all();
	for (i = 0; i < 40 && !refused; i++) {
		error = fi_trecv(ep, buffers[0], 8, NULL, FI_ADDR_UNSPEC, 0, 1ULL << i,
				 &context[0]);
		if (error) {
			CHECK_EQ(error, -FI_EOPNOTSUPP);
			refused = i;
		}
	}
	CHECK(refused >= 8);
	/* Those that it has learned go on. */
	post(1, 8, FI_ADDR_UNSPEC, 0, 1);
	close_all();
}

TEST(too_many_sets_of_ignored_bits_are_refused)
{
	run(1, 1, masks);
}

static void truncated(void)
{
	struct said s;
	uint32_t i;

	open_all();
	for (i = 1; i < SIZES && !acp_rank(); i++) {
		post(0, sizes[i] - 1, peers[1], i, 0);
		sync_all();
		s = play_of(&context[0]);
		CHECK_EQ(s.error, FI_ETRUNC);
		CHECK_EQ(s.olen, 1);
		CHECK_EQ(s.e.len, sizes[i] - 1);
		CHECK(has(0, sizes[i] - 1, i));
		CHECK_EQ(buffers[0][sizes[i] - 1], 0x55);
	}
	for (i = 1; i < SIZES && acp_rank(); i++) {
		sync_all();
		if (acp_rank() == 1)
			send_wait(0, sizes[i], i);
	}
	sync_all();
	close_all();
}

TEST(what_does_not_fit_is_an_error_with_its_length)
{
	everywhere(truncated);
}

/* ---- peek, claim, discard ---- */

static void peek(uint64_t tag, uint64_t flags)
{
	const struct fi_msg_tagged m = {
		.addr = FI_ADDR_UNSPEC, .tag = tag, .context = &context[3],
	};

	PLAY_RETRY(fi_trecvmsg(ep, &m, FI_PEEK | flags));
}

static void claim(size_t room, uint64_t flags)
{
	const struct iovec iov = { .iov_base = buffers[4], .iov_len = room };
	const struct fi_msg_tagged m = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &context[3],
	};

	memset(buffers[4], 0x55, LONG);
	PLAY_RETRY(fi_trecvmsg(ep, &m, FI_CLAIM | FI_COMPLETION | flags));
}

/* Peek until it is there. */
static void find(uint64_t tag, size_t size, uint64_t flags)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	struct said s;

	do {
		CHECK(!patience_over(&p));
		peek(tag, flags);
		s = play_of(&context[3]);
	} while (s.error == FI_ENOMSG);
	CHECK_EQ(s.error, 0);
	CHECK_EQ(s.e.len, size);
	CHECK_EQ(s.e.tag, tag);
	CHECK_EQ(s.source, peers[1]);
}

static void peeks_of(size_t size)
{
	struct said s;

	peek(99, 0);
	CHECK_EQ(play_of(&context[3]).error, FI_ENOMSG);
	find(1, size, 0);
	find(1, size, FI_CLAIM);
	/* Nobody else gets it: the next one of the tag is longer. */
	find(1, size + 1, 0);
	claim(LONG, 0);
	s = play_of(&context[3]);
	CHECK_EQ(s.error, 0);
	CHECK_EQ(s.e.len, size);
	CHECK(has(4, size, 1));
	find(1, size + 1, FI_DISCARD);
	find(1, size + 2, FI_CLAIM);
	claim(0, FI_DISCARD);
	CHECK_EQ(play_of(&context[3]).error, 0);
	find(1, size + 3, FI_CLAIM);
	claim(size, 0);
	s = play_of(&context[3]);
	CHECK_EQ(s.error, FI_ETRUNC);
	CHECK_EQ(s.olen, 3);
	CHECK(has(4, size, 1));
	peek(1, 0);
	CHECK_EQ(play_of(&context[3]).error, FI_ENOMSG);
}

static void peeks(void)
{
	static const size_t lengths[] = { 8, 1000, 30000 };
	uint32_t i, n;

	open_all();
	for (i = 0; i < 3; i++) {
		if (!acp_rank())
			peeks_of(lengths[i]);
		for (n = 0; n < 4 && acp_rank() == 1; n++) {
			put(n, lengths[i] + n, 1);
			PLAY_RETRY(fi_tsend(ep, buffers[n], lengths[i] + n, NULL, peers[0], 1,
					    &context[n]));
		}
		for (n = 0; n < 4 && acp_rank() == 1; n++)
			CHECK_EQ(play_next().error, 0);
		sync_all();
	}
	close_all();
}

TEST(messages_are_peeked_at_claimed_and_discarded)
{
	everywhere(peeks);
}

/* ---- cancellation ---- */

static void cancelled(void)
{
	struct said s;

	open_all();
	post(0, 8, FI_ADDR_UNSPEC, 1, 0);
	post(1, 8, FI_ADDR_UNSPEC, 1, 0);
	CHECK_EQ(fi_cancel(&ep->fid, &context[0]), 0);
	s = play_of(&context[0]);
	CHECK_EQ(s.error, FI_ECANCELED);
	CHECK_EQ(fi_cancel(&ep->fid, &context[0]), -FI_ENOENT);
	PLAY_RETRY(fi_tinject(ep, "1234567", 8, peers[0], 1));
	s = play_of(&context[1]);
	CHECK_EQ(s.error, 0);
	CHECK(!strcmp(buffers[1], "1234567"));
	close_all();
}

TEST(a_receive_that_is_cancelled_ends_once_and_gets_nothing)
{
	run(1, 1, cancelled);
}

#define RACES	(test_short() ? 200U : 2000U)

/* One of both happens to each receive, and no message is lost. */
static void races(void)
{
	uint32_t i, got = 0, want = RACES;
	struct said s;

	open_all();
	for (i = 0; i < want && acp_rank() == 1; i++)
		PLAY_RETRY(fi_tinject(ep, &i, sizeof(i), peers[0], 5));
	for (i = 0; !acp_rank() && got < want; i++) {
		uint32_t value;

		PLAY_RETRY(fi_trecv(ep, buffers[0], 8, NULL, peers[1], 5, 0, &context[0]));
		fi_cancel(&ep->fid, &context[0]);
		s = play_of(&context[0]);
		if (s.error == FI_ECANCELED)
			continue;
		CHECK_EQ(s.error, 0);
		memcpy(&value, buffers[0], sizeof(value));
		CHECK_EQ(value, got++);
		CHECK(!play_read(&s));
	}
	sync_all();
	close_all();
}

TEST(a_cancellation_that_races_with_a_message_has_one_winner)
{
	run(2, 1, races);
	run(2, 2, races);
}

/* ---- floods, long messages, the own rank ---- */

#define FLOOD	(test_short() ? 1500U : 3500U)

static void flood(void)
{
	uint32_t i, value;

	open_all();
	for (i = 0; i < FLOOD && acp_rank(); i++)
		PLAY_RETRY(fi_tinject(ep, &i, sizeof(i), peers[0], (uint64_t)acp_rank()));
	if (!acp_rank())
		sleep_ms(200);
	for (i = 0; i < FLOOD && !acp_rank(); i++) {
		post(0, 8, peers[1], 1, 0);
		post(1, 8, peers[2], 2, 0);
		CHECK_EQ(play_next().error, 0);
		CHECK_EQ(play_next().error, 0);
		memcpy(&value, buffers[0], sizeof(value));
		CHECK_EQ(value, i);
		memcpy(&value, buffers[1], sizeof(value));
		CHECK_EQ(value, i);
	}
	sync_all();
	close_all();
}

TEST(a_flood_of_messages_without_receives_loses_none)
{
	everywhere(flood);
}

static uint64_t monotonic_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* In the starter memory of rank 0: how many messages there will be. */
static acp_ga_t told(void)
{
	return acp_query_starter_ga(0);
}

/* Whatever a sender does, what it sends is bounded; all that was accepted arrives. */
static void endless(void)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	uint32_t i = 0, sent, value, refused = 0;
	uint64_t begin = monotonic_ms();

	open_all();
	if (acp_rank()) {
		/* Not just because the machine stood still. */
		while (refused < 1000 || monotonic_ms() - begin < 300) {
			ssize_t error = fi_tinject(ep, &i, sizeof(i), peers[0], 1);

			CHECK(!patience_over(&p));
			CHECK(!error || error == -FI_EAGAIN);
			fi_cq_read(cq, NULL, 0);
			refused = error ? refused + 1 : 0;
			if (error)
				continue;
			i++;
			begin = monotonic_ms();
		}
		acp_complete(acp_swap4(acp_query_starter_ga(1), told(), i, ACP_HANDLE_NULL));
	}
	sync_all();
	memcpy(&sent, acp_query_address(acp_query_starter_ga(acp_rank())), sizeof(sent));
	CHECK(acp_rank() || (sent > 1000 && sent < 20000));
	for (i = 0; i < sent && !acp_rank(); i++) {
		post(0, 8, peers[1], 1, 0);
		CHECK_EQ(play_next().error, 0);
		memcpy(&value, buffers[0], sizeof(value));
		CHECK_EQ(value, i);
	}
	sync_all();
	close_all();
}

TEST(an_endless_flood_ends_at_its_sender)
{
	run(2, 1, endless);
	run(2, 2, endless);
}

/* Many receives of which the last ones get the messages. */
static void many_receives(void)
{
	uint32_t i, n = 1000;
	struct said s;

	open_all();
	for (i = 0; i < n; i++)
		PLAY_RETRY(fi_trecv(ep, buffers[i % 8] + i, 1, NULL, FI_ADDR_UNSPEC, i, 0,
				    &context[i % 8]));
	for (i = n; i--;) {
		PLAY_RETRY(fi_tinject(ep, "x", 1, peers[0], i));
		s = play_next();
		CHECK_EQ(s.error, 0);
		CHECK_EQ(s.e.tag, i);
		CHECK(s.e.op_context == &context[i % 8]);
		CHECK_EQ(buffers[i % 8][i], 'x');
	}
	close_all();
}

TEST(receives_are_found_among_many)
{
	run(1, 1, many_receives);
}

/* Each send ends when its own message was received, whatever was sent before. */
static void reversed(void)
{
	uint32_t i;

	open_all();
	if (acp_rank() == 1) {
		for (i = 0; i < 3; i++) {
			put(i, LONG, i);
			PLAY_RETRY(fi_tsend(ep, buffers[i], LONG, NULL, peers[0], i, &context[i]));
		}
		for (i = 3; i--;) {
			CHECK_EQ(play_of(&context[i]).error, 0);
			PLAY_RETRY(fi_tinject(ep, &i, sizeof(i), peers[0], 100 + i));
		}
	} else if (!acp_rank()) {
		for (i = 3; i--;) {
			post(i, LONG, peers[1], i, 0);
			check_got(i, 1, LONG, i);
			/* Only then is the older one received. */
			PLAY_RETRY(fi_trecv(ep, buffers[9], 8, NULL, peers[1], 100 + i, 0,
					    &context[9]));
			CHECK_EQ(play_of(&context[9]).error, 0);
		}
	}
	sync_all();
	close_all();
}

TEST(long_messages_are_received_in_another_order_than_sent)
{
	everywhere(reversed);
}

static void to_itself(void)
{
	uint32_t i, n;

	open_all();
	for (i = 0; i < SIZES; i++) {
		put(15, sizes[i], i);
		PLAY_RETRY(fi_tsend(ep, buffers[15], sizes[i], NULL, peers[0], i, &context[15]));
		post(0, LONG, peers[0], i, 0);
		for (n = 0; n < 2; n++) {
			struct said s = play_next();

			CHECK_EQ(s.error, 0);
			if (s.e.op_context == &context[0])
				CHECK_EQ(s.e.len, sizes[i]);
		}
		CHECK(has(0, sizes[i], i));
	}
	close_all();
}

TEST(a_rank_sends_to_itself)
{
	run(1, 1, to_itself);
}

/* ---- messages without tags ---- */

static void with_data(void)
{
	const struct iovec iov[] = {
		{ .iov_base = buffers[0], .iov_len = 10 },
		{ .iov_base = buffers[1], .iov_len = 90 },
	};
	struct said s;

	open_all();
	if (!acp_rank()) {
		PLAY_RETRY(fi_recvv(ep, iov, NULL, 2, FI_ADDR_UNSPEC, &context[0]));
		sync_all();
		s = play_of(&context[0]);
		CHECK_EQ(s.error, 0);
		CHECK_EQ(s.e.len, 100);
		CHECK_EQ(s.e.flags, FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA);
		CHECK_EQ(s.e.data, 0xdeadbeef);
		CHECK(has(0, 10, 3));
		CHECK_EQ(buffers[1][89], (char)(3 * 31 + 99 * 7));
		PLAY_RETRY(fi_recv(ep, buffers[0], LONG, NULL, peers[1], &context[0]));
		s = play_of(&context[0]);
		CHECK_EQ(s.error, 0);
		CHECK_EQ(s.e.flags, FI_MSG | FI_RECV);
		CHECK(has(0, LONG, 4));
	} else {
		sync_all();
		if (acp_rank() == 1) {
			put(2, 100, 3);
			PLAY_RETRY(fi_injectdata(ep, buffers[2], 100, 0xdeadbeef, peers[0]));
			put(2, LONG, 4);
			PLAY_RETRY(fi_send(ep, buffers[2], LONG, NULL, peers[0], &context[2]));
			CHECK_EQ(play_of(&context[2]).error, 0);
		}
	}
	sync_all();
	close_all();
}

TEST(messages_without_tags_have_data_and_pieces)
{
	everywhere(with_data);
}

#define DATA_MAX	((1U << 18) - 2)

/* The layout of tags that Open MPI asks for. */
static void tags_with_data(void)
{
	const uint64_t tag = 0x2aabbccddeeULL;
	uint32_t i;
	struct said s;

	open_like(4);
	CHECK_EQ(play.info->domain_attr->cq_data_size, 4);
	CHECK(!(play.info->ep_attr->mem_tag_format >> 42));
	for (i = 0; i < 3 && !acp_rank(); i++) {
		post(0, LONG, peers[1], tag & ~0xffULL, 0xff);
		s = play_of(&context[0]);
		CHECK_EQ(s.error, 0);
		CHECK_EQ(s.e.tag, tag);
		CHECK_EQ(s.e.data, i == 1 ? DATA_MAX : 0);
		CHECK_EQ(s.e.flags, FI_TAGGED | FI_RECV | (i < 2 ? FI_REMOTE_CQ_DATA : 0));
		CHECK_EQ(s.source, peers[1]);
	}
	if (acp_rank() == 1) {
		PLAY_RETRY(fi_tinjectdata(ep, "x", 1, 0, peers[0], tag));
		PLAY_RETRY(fi_tsenddata(ep, buffers[1], LONG, NULL, DATA_MAX, peers[0], tag,
					&context[1]));
		CHECK_EQ(play_of(&context[1]).error, 0);
		PLAY_RETRY(fi_tinject(ep, "x", 1, peers[0], tag));
		CHECK_EQ(fi_tinjectdata(ep, "x", 1, DATA_MAX + 1, peers[0], tag), -FI_EINVAL);
		CHECK_EQ(fi_tinject(ep, "x", 1, peers[0], 1ULL << 42), -FI_EINVAL);
	}
	sync_all();
	close_all();
}

TEST(tags_have_room_for_small_data_if_that_was_asked_for)
{
	everywhere(tags_with_data);
}

/* Otherwise they have none, and 60 bits. */
static void tags_without_data(void)
{
	open_all();
	CHECK_EQ(play.info->domain_attr->cq_data_size, 0);
	CHECK_EQ(fi_tinjectdata(ep, "x", 1, 1, peers[0], 1), -FI_EINVAL);
	CHECK_EQ(fi_tinject(ep, "x", 1, peers[0], 1ULL << 60), -FI_EINVAL);
	PLAY_RETRY(fi_tinject(ep, "x", 1, peers[0], 1ULL << 59));
	post(0, 1, peers[0], 1ULL << 59, 0);
	CHECK_EQ(play_of(&context[0]).error, 0);
	close_all();
}

TEST(tags_without_data_have_sixty_bits)
{
	run(1, 1, tags_without_data);
}

static void several(void)
{
	const struct iovec iov = { .iov_base = buffers[0], .iov_len = 1000 };
	const struct fi_msg m = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &context[0],
	};
	size_t min = 200;
	struct said s;
	uint32_t i;

	open_all();
	CHECK_EQ(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)), 0);
	for (i = 0; i < 9; i++)
		PLAY_RETRY(fi_inject(ep, "0123456789", 10 * i + 2 > 10 ? 10 : 10 * i + 2,
				     peers[0]));
	PLAY_RETRY(fi_recvmsg(ep, &m, FI_MULTI_RECV | FI_COMPLETION));
	for (i = 0; i < 9; i++) {
		s = play_of(&context[0]);
		CHECK_EQ(s.error, 0);
		CHECK_EQ(s.e.len, i ? 10 : 2);
		CHECK(!memcmp(s.e.buf, "0123456789", s.e.len));
		CHECK(!(s.e.flags & FI_MULTI_RECV));
	}
	/* The buffer goes back when less than the option says is left. */
	put(1, 700, 1);
	PLAY_RETRY(fi_send(ep, buffers[1], 700, NULL, peers[0], &context[1]));
	for (i = 0; i < 2; i++) {
		s = play_next();
		CHECK_EQ(s.error, 0);
		if (s.e.op_context == &context[0])
			CHECK(s.e.flags & FI_MULTI_RECV);
	}
	close_all();
}

TEST(a_buffer_receives_several_messages)
{
	run(1, 1, several);
}

/* ---- peers that are lost ---- */

static void await_down(int rank)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	while (acpx_peer_state(rank) != ACPX_PEER_DOWN) {
		CHECK(!patience_over(&p));
		fi_cq_read(cq, NULL, 0);
		sleep_ms(10);
	}
}

static void lost(void)
{
	struct said s;
	uint32_t i, failed = 0;

	open_all();
	if (acp_rank() == 2) {
		sync_all();
		raise(SIGKILL);
	}
	if (!acp_rank()) {
		post(0, 8, peers[2], 1, 0);
		put(1, LONG, 0);
		PLAY_RETRY(fi_tsend(ep, buffers[1], LONG, NULL, peers[2], 9, &context[1]));
		post(2, 8, peers[1], 1, 0);
	}
	sync_all();
	if (!acp_rank()) {
		/* The receive and the long message end with errors, and nothing else. */
		for (i = 0; i < 2; i++) {
			s = play_next();
			CHECK(s.error);
			CHECK(s.e.op_context == &context[0] || s.e.op_context == &context[1]);
			failed |= s.e.op_context == &context[0] ? 1 : 2;
		}
		CHECK_EQ(failed, 3);
		PLAY_RETRY(fi_tinject(ep, "go", 3, peers[1], 2));
		check_got(2, 1, 8, 1);
	} else {
		post(0, 8, peers[0], 2, 0);
		CHECK_EQ(play_of(&context[0]).error, 0);
		send_wait(0, 8, 1);
	}
	await_down(2);
	_exit(0);
}

static void with_one_killed(int per_node)
{
	struct members m;

	play_prepare();
	members_open(&m, RANKS, per_node);
	members_start_all(&m, lost);
	CHECK_EQ(members_wait(&m, 0), 0);
	CHECK_EQ(members_wait(&m, 1), 0);
	CHECK_EQ(members_wait(&m, 2), DIED - SIGKILL);
}

TEST(operations_with_a_rank_that_is_killed_end_with_errors)
{
	with_one_killed(1);
}

TEST(operations_with_a_rank_of_the_node_that_is_killed_end_with_errors)
{
	with_one_killed(RANKS);
}
