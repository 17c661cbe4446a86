// SPDX-License-Identifier: MIT
/*
 * Messages whose bytes wait for a receive, to and from a node that is played by the test: it asks,
 * grants and sends what it should not, or nothing at all.
 */
#include "../dev/isolated.h"

#include <errno.h>
#include <sys/ioctl.h>

#include "played_sender.h"

/* Offsets in the target; the mailbox is at 0. */
enum { RESULTS = 1024, BUFFER = 4096, ROOM = 2048, MEMORY = 8192, BYTES = 4096 };

static uint32_t list;

static void open_list(uint32_t messages)
{
	struct acp_match a = {
		.size = sizeof(a), .mailbox = memory_ga(&target, 0),
		.results = memory_ga(&target, RESULTS), .memory = memory_ga(&target, MEMORY),
		.bytes = BYTES, .receives = 4, .messages = messages, .masks = 1,
	};

	memset(target.addr, 0, VICTIM_SIZE);
	CHECK_EQ(ioctl(victim.fd, ACP_IOC_MATCH, &a), 0);
	list = a.list;
	((struct acp_mailbox *)(void *)target.addr)->list = list;
}

static struct acp_result *result(uint32_t number)
{
	return (struct acp_result *)(void *)(target.addr + RESULTS) + number;
}

static void post(uint32_t number, uint64_t tag)
{
	struct acp_post p = {
		.size = sizeof(p), .list = list, .flags = ACP_POST_ANY_RANK, .tag = tag,
		.buffer = memory_ga(&target, BUFFER), .room = ROOM, .result = number,
	};

	result(number)->state = 0;
	CHECK_EQ(ioctl(victim.fd, ACP_IOC_POST, &p), 0);
}

static int remove_list(void)
{
	const struct acp_unpost u = { .size = sizeof(u), .list = list, .what = ACP_UNPOST_LIST };

	return ioctl(victim.fd, ACP_IOC_UNPOST, &u) ? -errno : 0;
}

/* ---- what the played node sends ---- */

static uint64_t send_message(const struct acp_msg *m, const void *payload)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
	char body[4000];

	f.flags |= ACP_FRAME_FENCE;
	inject_frame(&x, &f, body, inject_message(body, m, payload));
	return f.seq;
}

static struct acp_msg ask_of(uint64_t ticket, uint64_t size, uint64_t tag)
{
	return (struct acp_msg){
		.type = ACP_MSG_ASK, .op = ACP_OP_SEND, .origin = 2, .ticket = ticket,
		.dst = memory_ga(&target, 0), .size = size, .b = tag,
	};
}

static void ask(uint64_t ticket, uint64_t size, uint64_t tag)
{
	const struct acp_msg m = ask_of(ticket, size, tag);

	send_message(&m, NULL);
}

/* All bytes, which are those of a number, in one piece. */
static struct acp_msg data_of(uint64_t ticket, uint32_t size, uint64_t entry)
{
	return (struct acp_msg){
		.type = ACP_MSG_DATA, .flags = ACP_MSG_LAST | ACP_MSG_GRANTED, .op = ACP_OP_SEND,
		.origin = 2, .ticket = ticket, .dst = memory_ga(&target, 0), .length = size,
		.c = size, .a = entry,
	};
}

static void send_data(const struct acp_msg *m)
{
	char payload[ROOM];

	fill(payload, m->length, m->ticket);
	send_message(m, payload);
}

static void data_ends(const struct acp_msg *m, int status)
{
	send_data(m);
	CHECK_EQ(inject_done(&x, m->ticket), status);
}

/* ---- what it receives ---- */

/* The next message of a type; others are acknowledged. */
static void await(uint8_t type, struct acp_msg *m)
{
	static char body[INJECT_MAX];
	struct patience p = patience_begin(PATIENCE_SOON);
	uint32_t at, size;
	struct acp_frame f;

	for (;;) {
		CHECK(!patience_over(&p));
		if (!inject_receive(&x, &f, body, 100) || f.type != ACP_FRAME_DATA)
			continue;
		inject_ack(&x);
		for (at = 0; at < f.length; at += size) {
			size = acp_msg_decode(m, body + at, f.length - at, f.length - at);
			CHECK(size);
			if (m->type == type)
				return;
		}
	}
}

static uint64_t await_grant(uint64_t ticket)
{
	struct acp_msg m;

	do
		await(ACP_MSG_GRANT, &m);
	while (m.ticket != ticket || m.flags);
	CHECK(m.origin == 2 && m.dst == memory_ga(&target, 0));
	return m.a;
}

static void await_done(uint32_t number)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	while (!__atomic_load_n(&result(number)->state, __ATOMIC_ACQUIRE))
		CHECK(!patience_over(&p));
	CHECK_EQ(result(number)->state, ACP_RESULT_DONE);
}

/* ---- to the victim ---- */

/* As a correct sender does. */
TEST(A4_a_played_node_asks_and_sends)
{
	struct acp_msg data;
	uint64_t entry;

	play(ACP_INTEGRITY_TAG);
	open_list(2);
	ask(1000, 500, 7);
	post(1, 7);
	entry = await_grant(1000);
	data = data_of(1000, 500, entry);
	send_data(&data);
	await_done(1);
	CHECK(result(1)->size == 500 && result(1)->tag == 7 && result(1)->rank == 2);
	CHECK(filled(target.addr + BUFFER, 500, 1000));
	/* It was granted once. */
	data_ends(&data, ACP_ST_AGAIN);
	CHECK_EQ(remove_list(), 0);
}

/* Bytes for what was not granted have no effect; the receive waits for the right ones. */
TEST(N9_A4_bytes_without_a_grant)
{
	static const uint64_t wrong[] = { 0, 2, 3, 4, 5, 1 << 20, 0x80000000, 0x80000001,
					  0x80000002, 0xffffffff, 1ULL << 32, ~0ULL };
	struct acp_msg data;
	uint64_t entry;
	size_t i;

	play(ACP_INTEGRITY_TAG);
	open_list(2);
	data = data_of(1000, 500, 1);
	data_ends(&data, ACP_ST_AGAIN);
	post(1, 7);
	data_ends(&data, ACP_ST_AGAIN);
	ask(1000, 500, 7);
	entry = await_grant(1000);
	CHECK_EQ(entry, 1);
	ask(1001, 500, 8);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		data = data_of(1000, 500, wrong[i]);
		data_ends(&data, ACP_ST_AGAIN);
	}
	data = data_of(1001, 500, entry);
	data_ends(&data, ACP_ST_AGAIN);
	data = data_of(1002, 500, entry);
	data.origin = 3;
	data_ends(&data, ACP_ST_AGAIN);
	data.ticket = 1000;
	data_ends(&data, ACP_ST_AGAIN);
	CHECK_EQ(result(1)->state, 0);
	data = data_of(1000, 500, entry);
	send_data(&data);
	await_done(1);
	CHECK(filled(target.addr + BUFFER, 500, 1000));
}

/* Another size than it said: it fails, and the receive gets the next message. */
TEST(N9_A4_bytes_of_another_size_than_was_asked_for)
{
	struct acp_msg data;

	play(ACP_INTEGRITY_TAG);
	open_list(2);
	ask(1000, 500, 7);
	ask(1001, 300, 7);
	post(1, 7);
	data = data_of(1000, 501, await_grant(1000));
	data_ends(&data, ACP_ST_RANGE);
	CHECK(!target.addr[BUFFER]);
	data = data_of(1001, 300, await_grant(1001));
	send_data(&data);
	await_done(1);
	CHECK(filled(target.addr + BUFFER, 300, 1001));
}

/* Whoever gives back what it was not granted changes nothing. */
TEST(N9_A4_grants_that_come_back)
{
	struct acp_msg back = {
		.type = ACP_MSG_GRANT, .flags = ACP_MSG_FAIL, .status = ACP_ST_RANK, .origin = 2,
		.ticket = 1000, .dst = 0,
	}, data;
	uint64_t entry;
	struct acp_msg m;

	play(ACP_INTEGRITY_TAG);
	open_list(2);
	post(1, 7);
	ask(1000, 500, 7);
	ask(1001, 300, 7);
	entry = await_grant(1000);
	back.dst = memory_ga(&target, 0);
	back.a = entry;
	m = back;
	m.ticket = 1001;
	inject_applied(&x, send_message(&m, NULL));
	m = back;
	m.origin = 3;
	inject_applied(&x, send_message(&m, NULL));
	m = back;
	m.dst += 64;
	inject_applied(&x, send_message(&m, NULL));
	for (m = back, m.a = 0; m.a < 10; m.a++)
		if (m.a != entry)
			inject_applied(&x, send_message(&m, NULL));
	for (m.a = 0x80000000; m.a < 0x8000000a; m.a++)
		inject_applied(&x, send_message(&m, NULL));
	m.a = ~0ULL;
	inject_applied(&x, send_message(&m, NULL));
	CHECK_EQ(result(1)->state, 0);
	data = data_of(1000, 500, entry);
	send_data(&data);
	await_done(1);
	CHECK(filled(target.addr + BUFFER, 500, 1000));
}

/* It does not have the command any more: the receive gets the next message. */
TEST(A4_a_receive_outlives_a_grant_that_comes_back)
{
	struct acp_msg back = {
		.type = ACP_MSG_GRANT, .flags = ACP_MSG_FAIL, .status = ACP_ST_RANK, .origin = 2,
		.ticket = 1000,
	}, data;

	play(ACP_INTEGRITY_TAG);
	open_list(2);
	post(1, 7);
	ask(1000, 500, 7);
	ask(1001, 300, 7);
	back.dst = memory_ga(&target, 0);
	back.a = await_grant(1000);
	send_message(&back, NULL);
	data = data_of(1001, 300, await_grant(1001));
	send_data(&data);
	await_done(1);
	CHECK(filled(target.addr + BUFFER, 300, 1001));
	CHECK_EQ(remove_list(), 0);
}

/* It asks, and sends nothing: it is told again and again. */
TEST(A4_a_grant_is_repeated)
{
	struct acp_msg data;
	uint64_t entry;

	play(ACP_INTEGRITY_TAG);
	open_list(2);
	post(1, 7);
	ask(1000, 500, 7);
	entry = await_grant(1000);
	CHECK_EQ(await_grant(1000), entry);
	CHECK_EQ(await_grant(1000), entry);
	data = data_of(1000, 500, entry);
	send_data(&data);
	await_done(1);
}

/* Where there is no list, or no room in it, the answer is no. */
TEST(N9_A4_asking_where_it_is_no_use)
{
	static const struct {
		uint64_t at;
		int status;
	} cases[] = {
		{ 4, ACP_ST_ALIGN }, { VICTIM_SIZE, ACP_ST_RANGE },
		{ VICTIM_SIZE - 56, ACP_ST_RANGE },
	};
	struct acp_msg m;
	uint64_t ticket = 1000;
	size_t i;

	play(ACP_INTEGRITY_TAG);
	open_list(2);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		m = ask_of(ticket, 500, 7);
		m.dst = memory_ga(&target, cases[i].at);
		send_message(&m, NULL);
		CHECK_EQ(inject_done(&x, ticket++), cases[i].status);
	}
	m = ask_of(ticket, 500, 7);
	m.dst = ~0ULL;
	send_message(&m, NULL);
	CHECK_EQ(inject_done(&x, ticket++), ACP_ST_GA);
	/* No list. */
	m = ask_of(ticket, 500, 7);
	m.dst = memory_ga(&target, BUFFER);
	send_message(&m, NULL);
	CHECK_EQ(inject_done(&x, ticket++), ACP_ST_OP);
	m = ask_of(ticket, 500, 7);
	m.flags = ACP_MSG_FAIL;
	m.status = ACP_ST_ORDER;
	send_message(&m, NULL);
	CHECK_EQ(inject_done(&x, ticket++), ACP_ST_ORDER);
	ask(ticket++, ACP_COPY_MAX, 7);
	ask(ticket++, 0, 8);
	m = ask_of(ticket, 1, 9);
	send_message(&m, NULL);
	CHECK_EQ(inject_done(&x, ticket), ACP_ST_AGAIN);
	CHECK_EQ(remove_list(), 0);
	CHECK_EQ(inject_done(&x, ticket - 1), ACP_ST_AGAIN);
}

/* What no correct node sends is dropped. */
TEST(N6_A4_asking_for_others)
{
	struct acp_msg m[7];
	uint32_t i;

	play(ACP_INTEGRITY_TAG);
	open_list(2);
	/* For a rank of another node. */
	m[0] = ask_of(1000, 500, 7);
	m[0].origin = 0;
	/* For one that does not exist. */
	m[1] = ask_of(1000, 500, 7);
	m[1].origin = 4;
	/* A grant for a rank that is not the victim's, and one that comes back from another. */
	m[2] = (struct acp_msg){
		.type = ACP_MSG_GRANT, .origin = 2, .ticket = 1000,
		.dst = rank_ga(&victim, 2, ACP_STAG_HEAP, 64),
	};
	m[3] = (struct acp_msg){
		.type = ACP_MSG_GRANT, .flags = ACP_MSG_FAIL, .status = ACP_ST_RANK, .ticket = 1000,
		.dst = memory_ga(&target, 0),
	};
	/* Grants of others: of the victim itself, of nobody; and back to one that is another's. */
	m[4] = m[2];
	m[4].origin = 0;
	m[4].dst = memory_ga(&target, 0);
	m[5] = m[4];
	m[5].dst = ~0ULL;
	m[6] = m[3];
	m[6].origin = 2;
	m[6].dst = rank_ga(&victim, 2, ACP_STAG_HEAP, 64);
	for (i = 0; i < 7; i++) {
		struct count bad = nodes_count(&n, 0, "drop_bad_msg");

		inject_applied(&x, send_message(&m[i], NULL));
		nodes_counted(&bad, 1);
	}
	CHECK_EQ(nodes_counter(&n, 0, "messages_asked"), 0);
}

/* ---- from the victim ---- */

static uint64_t victim_asks(struct acp_msg *m, uint64_t size)
{
	const struct acp_sqe e = {
		.op = ACP_OP_SEND, .flags = ACP_SQE_RENDEZVOUS, .size = size, .b = 99,
		.dst = rank_ga(&victim, 2, ACP_STAG_HEAP, 64), .src = heap_ga(&victim, 0),
	};
	uint64_t ticket;

	fill(victim.heap, size, 5);
	ticket = rank_submit(&victim, &e);
	await(ACP_MSG_ASK, m);
	CHECK(m->ticket == ticket && m->size == size && m->b == 99 && m->dst == e.dst);
	return ticket;
}

static void grant(uint64_t ticket, uint64_t mailbox, uint64_t entry)
{
	const struct acp_msg m = {
		.type = ACP_MSG_GRANT, .origin = 0, .ticket = ticket, .dst = mailbox, .a = entry,
	};

	send_message(&m, NULL);
}

/* The grant comes back. An earlier one may come again, if its acknowledgement is late. */
static void await_back(uint64_t ticket, uint64_t entry)
{
	struct acp_msg m;

	do
		await(ACP_MSG_GRANT, &m);
	while (m.ticket != ticket);
	CHECK(m.flags == ACP_MSG_FAIL && m.status == ACP_ST_RANK && m.a == entry);
}

/* However often it is granted, the bytes are sent once, to the first entry. */
TEST(A4_what_is_granted_often_is_sent_once)
{
	struct acp_msg m;
	uint64_t ticket;
	int i;

	play(ACP_INTEGRITY_TAG);
	ticket = victim_asks(&m, 100);
	for (i = 0; i < 5; i++)
		grant(ticket, m.dst, 5 + (uint64_t)i);
	await(ACP_MSG_DATA, &m);
	CHECK_EQ(m.flags, ACP_MSG_LAST | ACP_MSG_GRANTED);
	CHECK(m.a == 5 && m.c == 100 && m.length == 100 && m.ticket == ticket);
	CHECK_EQ(rank_await(&victim, ticket, PATIENCE_SOON), ACP_ST_OK);
	/* It has ended: it comes back. */
	grant(ticket, m.dst, 5);
	await_back(ticket, 5);
}

/* Grants to what has not asked, or not there, come back, and change nothing. */
TEST(N9_A4_grants_to_what_has_not_asked)
{
	struct acp_msg asked, m;
	uint64_t ticket, wrong[4];
	uint32_t i;

	play(ACP_INTEGRITY_TAG);
	ticket = victim_asks(&asked, 100);
	wrong[0] = ticket + 1;
	wrong[1] = ticket - 1;
	wrong[2] = ticket + 256;		/* of the same slot */
	wrong[3] = ~0ULL;
	for (i = 0; i < 4; i++) {
		grant(wrong[i], asked.dst, 5);
		await_back(wrong[i], 5);
	}
	grant(ticket, asked.dst + 8, 5);
	await_back(ticket, 5);
	CHECK(rank_completed(&victim) < ticket);
	grant(ticket, asked.dst, 6);
	await(ACP_MSG_DATA, &m);
	CHECK(m.a == 6 && m.ticket == ticket);
	CHECK_EQ(rank_await(&victim, ticket, PATIENCE_SOON), ACP_ST_OK);
}

TEST(A4_what_is_refused_ends)
{
	struct acp_msg m, done = { .type = ACP_MSG_DONE, .status = ACP_ST_AGAIN };

	play(ACP_INTEGRITY_TAG);
	done.ticket = victim_asks(&m, 100);
	send_message(&done, NULL);
	CHECK_EQ(rank_await(&victim, done.ticket, PATIENCE_SOON), ACP_ST_AGAIN);
	rank_works(&second);
}
