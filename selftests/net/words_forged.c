// SPDX-License-Identifier: MIT
/*
 * Short messages that share WORDS, sent by a node that is played by the test: what is malformed is
 * dropped, counted and has no effect; what has no place fails, and its sender is told why.
 */
#include "../dev/isolated.h"

#include <string.h>

#include "played_sender.h"

#define WORD		sizeof(struct acp_msg_word)
#define MANY		64U		/* messages in a frame */

static struct acp_msg words_of(uint64_t ticket, uint32_t messages, uint8_t flags)
{
	return (struct acp_msg){
		.type = ACP_MSG_WORDS, .op = ACP_OP_SEND, .flags = flags, .origin = 2,
		.ticket = ticket, .dst = memory_ga(&target, 0),
		.length = messages * (uint32_t)WORD,
	};
}

/*
 * Add WORDS with so many bytes of payload, whatever their header says. If they are taken for puts,
 * they change what is_unchanged() looks at. Returns their size.
 */
static size_t put_words(char *body, const struct acp_msg *m, uint32_t bytes)
{
	struct acp_msg_word w[MANY + 2];
	struct acp_msg there = *m;
	uint32_t i;

	CHECK(bytes <= sizeof(w));
	for (i = 0; i < MANY + 2; i++) {
		w[i].dst = cpu_to_be64(memory_ga(&target, VICTIM_SIZE / 2 + 8 * i));
		memset(w[i].data, (int)i + 1, sizeof(w[i].data));
	}
	there.length = bytes;
	bytes = (uint32_t)inject_message(body, &there, w);
	((struct acp_msg_hdr *)(void *)body)->length = cpu_to_be32(m->length);
	return bytes;
}

static uint64_t send_body(const char *body, size_t size)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);

	f.flags |= ACP_FRAME_FENCE;
	inject_frame(&x, &f, body, size);
	return f.seq;
}

static void send_words(const struct acp_msg *m)
{
	char body[2000];

	send_body(body, put_words(body, m, m->length));
}

/* All of them end with that status. */
static void words_end(const struct acp_msg *m, int status)
{
	static char body[INJECT_MAX];
	struct patience p = patience_begin(PATIENCE_SOON);
	uint32_t at, size, seen = 0, count = acp_msg_count(m);
	bool ended[MANY] = { false };
	struct acp_frame f;
	struct acp_msg done;

	while (seen < count) {
		CHECK(!patience_over(&p));
		if (!inject_receive(&x, &f, body, 100) || f.type != ACP_FRAME_DATA)
			continue;
		inject_ack(&x);
		for (at = 0; at < f.length; at += size) {
			size = acp_msg_decode(&done, body + at, f.length - at, f.length - at);
			CHECK(size && done.type == ACP_MSG_DONE);
			if (done.ticket - m->ticket >= count || ended[done.ticket - m->ticket])
				continue;
			CHECK_EQ(done.status, status);
			ended[done.ticket - m->ticket] = true;
			seen++;
		}
	}
}

static bool is_unchanged(void)
{
	size_t i;

	for (i = HEAD; i < VICTIM_SIZE; i++)
		if (target.addr[i])
			return false;
	return ((struct acp_mailbox *)(void *)target.addr)->room ==
	       ACP_MAILBOX_ROOM(0, (VICTIM_SIZE - HEAD) / 8);
}

/* So many messages have been put into the mailbox, by that rank. They are removed. */
static void words_are_there(uint32_t messages, uint32_t rank)
{
	const char *p = target.addr + HEAD;
	uint32_t i;

	for (i = 0; i < messages; i++, p += RECORD + 8) {
		const struct acp_record *record = (const void *)p;

		CHECK_EQ(__atomic_load_n(&record->state, __ATOMIC_ACQUIRE),
			 8 << 2 | ACP_RECORD_READY);
		CHECK_EQ(record->rank, rank);
		CHECK_EQ(record->tag, memory_ga(&target, VICTIM_SIZE / 2 + 8 * i));
		CHECK(p[RECORD] == (char)(i + 1) && p[RECORD + 7] == (char)(i + 1));
	}
	CHECK(!((const struct acp_record *)(const void *)p)->state);
	CHECK_EQ((uint32_t)((struct acp_mailbox *)(void *)target.addr)->room,
		 messages * (RECORD + 8) / 8);
	offer(&target, VICTIM_SIZE - HEAD);
}

/* A frame that is malformed is counted, acknowledged, and has no effect. */
static void malformed(const char *body, size_t size, const char *what)
{
	struct count bad = nodes_count(&n, 0, "drop_bad_msg");

	inject_applied(&x, send_body(body, size));
	nodes_counted(&bad, 1);
	if (!is_unchanged())
		FAIL("%s: memory has changed", what);
}

/* Lengths that do not fit: to the size of words, to the frame, to how many there may be. */
static void wrong_lengths(void)
{
	static const struct {
		uint32_t stated, there;
	} cases[] = {
		{ 0, 0 }, { 0, 32 }, { 16, 16 }, { 16, 32 }, { 24, 24 }, { 40, 40 }, { 31, 32 },
		{ 33, 40 }, { 48, 32 }, { 32, 24 }, { 32, 0 }, { 1 << 16, 32 }, { 0x7ffffff0, 32 },
		{ 0x80000000, 32 }, { 0xfffffff0, 32 }, { 0xffffffe0, 32 }, { ~0U, 32 },
		{ 65 * WORD, 65 * WORD }, { 66 * WORD, 66 * WORD },
	};
	struct acp_msg m = words_of(1000, 0, 0);
	char body[2000], what[60];
	size_t i, size;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		m.length = cases[i].stated;
		size = put_words(body, &m, cases[i].there);
		snprintf(what, sizeof(what), "%u bytes, %u stated", cases[i].there, m.length);
		malformed(body, size, what);
	}
	/* Each has few enough, but not both together. */
	m.length = 33 * WORD;
	size = put_words(body, &m, m.length);
	m.length = 32 * WORD;
	size += put_words(body + size, &m, m.length);
	malformed(body, size, "65 in two WORDS");
	/* The address of the mailbox is missing. */
	m.length = 2 * WORD;
	put_words(body, &m, m.length);
	malformed(body, sizeof(struct acp_msg_hdr), "header only");
}

TEST(N6_A4_short_messages_whose_lengths_are_wrong)
{
	play(ACP_INTEGRITY_TAG);
	wrong_lengths();
}

TEST(N6_A4_short_messages_whose_lengths_are_wrong_encrypted)
{
	play(ACP_INTEGRITY_AEAD);
	wrong_lengths();
}

TEST(N6_A4_short_messages_whose_fields_are_wrong)
{
	static const struct {
		uint8_t op, flags, status;
		uint16_t depends, upto;
		uint32_t origin;
	} wrong[] = {
		{ .op = 1 }, { .op = ACP_OP_STRIDED }, { .op = ACP_OP_COPY_SET },
		{ .op = ACP_OP_INDIRECT }, { .op = ACP_OP_APPEND }, { .op = ACP_OP_END },
		{ .op = 255 }, { .flags = ACP_MSG_LAST }, { .flags = ACP_MSG_FAIL },
		{ .flags = 16 }, { .flags = 32 }, { .flags = 64 }, { .flags = 128 },
		{ .flags = ACP_MSG_BEHIND, .depends = 1, .upto = 1 },
		{ .flags = ACP_MSG_ORDERED | ACP_MSG_BEHIND },
		{ .flags = ACP_MSG_ORDERED | ACP_MSG_BEHIND, .depends = 2, .upto = 1 },
		{ .flags = ACP_MSG_ORDERED | ACP_MSG_BEHIND, .depends = 1, .upto = 2 },
		{ .flags = ACP_MSG_ORDERED | ACP_MSG_BEHIND, .upto = 1 },
		{ .flags = ACP_MSG_ORDERED, .depends = 1, .upto = 1 },
		{ .depends = 1, .upto = 1 }, { .status = ACP_ST_AGAIN },
		{ .origin = 4 }, { .origin = 1 << 31 }, { .origin = ~0U },
	};
	char body[200], what[30];
	struct acp_msg m;
	size_t i;

	play(ACP_INTEGRITY_TAG);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		m = words_of(1000, 2, wrong[i].flags);
		m.op = wrong[i].op ? wrong[i].op : ACP_OP_SEND;
		m.status = wrong[i].status;
		m.depends = wrong[i].depends;
		m.upto = wrong[i].upto;
		m.origin = wrong[i].origin ? wrong[i].origin : 2;
		snprintf(what, sizeof(what), "case %zu", i);
		malformed(body, put_words(body, &m, m.length), what);
	}
}

/* Each of the messages fails on its own, and the sender is told why. */
static void words_fail(uint64_t mailbox, int status)
{
	static uint64_t ticket = 1000;
	struct acp_msg m = words_of(ticket, 3, 0);
	struct count bad = nodes_count(&n, 0, "drop_bad_msg");

	m.dst = mailbox;
	ticket += 3;
	send_words(&m);
	words_end(&m, status);
	inject_applied(&x, x.seq - 1);
	nodes_counted(&bad, 0);
}

TEST(N6_A4_short_messages_to_where_no_mailbox_is)
{
	struct memory constant;
	uint32_t i;

	play(ACP_INTEGRITY_TAG);
	words_fail(0, ACP_ST_GA);
	words_fail(~0ULL, ACP_ST_GA);
	words_fail(memory_ga(&target, 4), ACP_ST_ALIGN);
	words_fail(memory_ga(&target, 1), ACP_ST_ALIGN);
	words_fail(rank_ga(&victim, 0, 99, 0), ACP_ST_STAG);
	words_fail(rank_ga(&victim, 2, ACP_STAG_HEAP, 0), ACP_ST_RANK);
	words_fail(memory_ga(&target, VICTIM_SIZE), ACP_ST_RANGE);
	words_fail(memory_ga(&target, VICTIM_SIZE - HEAD + 8), ACP_ST_RANGE);
	/* All is 0: it has no room for such messages, and never will. */
	words_fail(memory_ga(&target, VICTIM_SIZE / 2), ACP_ST_RANGE);
	words_fail(memory_ga(&target, VICTIM_SIZE - HEAD), ACP_ST_RANGE);
	words_fail(heap_ga(&second, 0), ACP_ST_RANGE);
	CHECK(is_unchanged());
	CHECK_EQ(rank_register(&victim, &constant, pages(VICTIM_SIZE, PROT_READ | PROT_WRITE),
			       VICTIM_SIZE, ACP_ACCESS_READ | ACP_ACCESS_WRITE), 0);
	words_fail(memory_ga(&constant, 0), ACP_ST_ACCESS);
	for (i = 0; i < VICTIM_SIZE; i++)
		CHECK(!constant.addr[i]);
}

/* What the owner can write there. */
TEST(A4_short_messages_into_a_damaged_mailbox)
{
	struct acp_mailbox *box;

	play(ACP_INTEGRITY_TAG);
	box = offer(&target, VICTIM_SIZE - HEAD);
	/* More than there is. */
	box->units = ~0U;
	box->room = ACP_MAILBOX_ROOM(VICTIM_SIZE / 8 - 1, ~0U);
	words_fail(memory_ga(&target, 0), ACP_ST_RANGE);
	box->room = ACP_MAILBOX_ROOM(~0U - 8, ~0U);
	words_fail(memory_ga(&target, 0), ACP_ST_RANGE);
	/* The free part ends before it begins. */
	box->room = ACP_MAILBOX_ROOM(1000, 999);
	words_fail(memory_ga(&target, 0), ACP_ST_AGAIN);
	/* A match list that does not exist. */
	offer(&target, VICTIM_SIZE - HEAD);
	box->list = 77;
	words_fail(memory_ga(&target, 0), ACP_ST_AGAIN);
	box->list = 0;
	CHECK(is_unchanged());
}

/* Older messages that never were: none of them has found no room. */
TEST(N6_A4_short_messages_behind_anything)
{
	static const uint16_t behind[] = { 1, 2, 3, 1000, 1001, 4096, 65535 };
	static const uint32_t origins[] = { 2, 3, 1, 0 };
	struct acp_msg m;
	uint32_t i, k;

	play(ACP_INTEGRITY_TAG);
	for (k = 0; k < 4; k++)
		for (i = 0; i < sizeof(behind) / sizeof(behind[0]); i++) {
			struct count stray = nodes_count(&n, 0, "stray_done");

			m = words_of(1000, 3, ACP_MSG_ORDERED | ACP_MSG_BEHIND);
			m.origin = origins[k];
			m.depends = behind[i];
			m.upto = behind[i];
			send_words(&m);
			inject_applied(&x, x.seq - 1);
			/* Ranks of the victim do not know of such messages. */
			nodes_counted(&stray, m.origin < 2 ? 3 : 0);
			words_are_there(3, m.origin);
		}
}

/*
 * More refusals than are remembered: any older message may have been refused, but none that has
 * found room in the same moment.
 */
TEST(A4_short_messages_find_room_together_after_many_refusals)
{
	struct acp_msg m = words_of(0, MANY, ACP_MSG_ORDERED);
	uint64_t ticket;

	play(ACP_INTEGRITY_TAG);
	((struct acp_mailbox *)(void *)target.addr)->room = ACP_MAILBOX_ROOM(0, 0);
	for (ticket = 1000; ticket < 1000 + 5 * MANY; ticket += MANY) {
		m = words_of(ticket, MANY, ACP_MSG_ORDERED);
		send_words(&m);
		words_end(&m, ACP_ST_AGAIN);
	}
	offer(&target, VICTIM_SIZE - HEAD);
	m = words_of(2000, MANY, ACP_MSG_ORDERED);
	send_words(&m);
	inject_applied(&x, x.seq - 1);
	words_are_there(MANY, 2);
	m = words_of(3000, 3, ACP_MSG_ORDERED | ACP_MSG_BEHIND);
	m.depends = 1;
	m.upto = 1;
	send_words(&m);
	words_end(&m, ACP_ST_AGAIN);
	CHECK(is_unchanged());
}
