// SPDX-License-Identifier: MIT
/* selftest: leaks */
/*
 * Valid frames with forged messages: to memory that is not there or not permitted; commands,
 * answers, pieces of copies, pings and barriers out of turn. Memory of the victim does not change.
 */
#include "../dev/isolated.h"

#include <pthread.h>
#include <stdatomic.h>

#include "forged_play.h"
#include "landing.h"

/* ---- N9, N10 ---- */

static uint64_t ticket = 1000;

/* A put from our rank must end with this status, which only we receive. */
static void put_fails(uint64_t dst, uint32_t length, int wanted, const char *what)
{
	static char data[INJECT_MAX];
	int status;

	memset(data, 0xcc, length);
	inject_put(&x, 2, ++ticket, dst, data, length);
	status = inject_done(&x, ticket);
	if (status != wanted)
		FAIL("%s: status %d, wanted %d", what, status, wanted);
	untouched(what);
}

static int cmd_status(uint8_t op, uint64_t dst, uint64_t src, uint64_t size)
{
	struct acp_msg m = {
		.type = ACP_MSG_CMD, .op = op, .origin = 3, .ticket = ++ticket,
		.dst = dst, .src = src, .size = size, .a = op == ACP_OP_COPY ? 0 : 1,
	};
	char body[100];

	inject_data(&x, body, inject_message(body, &m, NULL));
	return inject_done(&x, ticket);
}

static void cmd_fails(uint8_t op, uint64_t dst, uint64_t src, uint64_t size, int wanted,
		      const char *what)
{
	int status = cmd_status(op, dst, src, size);

	if (status != wanted)
		FAIL("%s: status %d, wanted %d", what, status, wanted);
	untouched(what);
}

TEST(N9_puts_to_nowhere)
{
	const struct acp_ga_layout *l;
	uint64_t ours;

	begin();
	l = &victim.layout;
	ours = memory_ga(&target, 0);
	put_fails(0, 8, ACP_ST_GA, "address 0");
	put_fails(~0ULL, 8, ACP_ST_GA, "address ~0");
	put_fails(acp_ga_make(l, 6, 0, ACP_STAG_HEAP, 0), 8, ACP_ST_GA, "rank 6 of 6");
	put_fails(acp_ga_make(l, 2, 0, ACP_STAG_HEAP, 0), 8, ACP_ST_RANK, "our own rank");
	put_fails(acp_ga_make(l, 4, 0, ACP_STAG_HEAP, 0), 8, ACP_ST_RANK, "a third node's rank");
	put_fails(acp_ga_make(l, 0, 0, ACP_STAG_RESERVED, 0), 8, ACP_ST_STAG, "reserved STag");
	put_fails(acp_ga_make(l, 0, 0, ACP_STAG_USER + 50, 0), 8, ACP_ST_STAG, "unused STag");
	put_fails(acp_ga_make(l, 0, 0, (1u << l->stag_bits) - 1, 0), 8, ACP_ST_STAG, "last STag");
	put_fails(ours + SIZE, 1, ACP_ST_RANGE, "behind the region");
	put_fails(ours + SIZE - 7, 8, ACP_ST_RANGE, "a byte too many");
	put_fails(ours + SIZE - 1000, 1001, ACP_ST_RANGE, "a byte too many, long");
	put_fails(ours + (1ULL << l->offset_bits) - 4, 4, ACP_ST_RANGE, "last offset");
	put_fails(ours, SIZE + 1, ACP_ST_RANGE, "longer than the region");
	put_fails(memory_ga(&unaligned, -1UL), 1, ACP_ST_RANGE, "a byte before the region");
	put_fails(memory_ga(&unaligned, 0), 8, ACP_ST_ACCESS, "read-only");
	put_fails(memory_ga(&closed, 0), 8, ACP_ST_ACCESS, "for nobody");
	put_fails(memory_ga(&closed, 0), 2000, ACP_ST_ACCESS, "for nobody, long");
	CHECK_EQ(rank_unregister(&victim, target.reg.key, NULL), 0);
	put_fails(ours, 8, ACP_ST_STAG, "unregistered");
	rank_close(&second);
	put_fails(memory_ga(&closed, 0), 8, ACP_ST_RANK, "its rank has left");
}

/* ---- a rank that joins ---- */

#define COMING_HEAP	(64UL << 20)	/* takes a while to be cleared */

static atomic_bool has_come;

static void *come(void *unused)
{
	setup.join.heap_size = COMING_HEAP;
	join_as(&second, 1);
	has_come = true;
	return unused;
}

/*
 * Before it has joined, a rank does not exist, although some of its memory does: neither one word
 * nor many are written before an operation that takes longer detects it.
 */
TEST(N9_puts_to_a_rank_that_is_joining)
{
	uint64_t i = 0, missed = 0, to, found[2];
	struct acp_msg words = { .type = ACP_MSG_WORDS, .origin = 2, .length = 32 };
	struct acp_msg_word w[2] = {};
	char body[200];
	pthread_t thread;

	begin_alone(false, ACP_INTEGRITY_TAG);
	to = rank_ga(&victim, 1, ACP_STAG_STARTER, 8);
	rendezvous();
	w[0].dst = cpu_to_be64(to + 16);
	w[1].dst = cpu_to_be64(to + 16);
	CHECK_EQ(pthread_create(&thread, NULL, come, NULL), 0);
	while (!has_come) {
		i++;
		inject_put(&x, 2, ++ticket, to, &i, sizeof(i));
		memcpy(w[0].data, &i, sizeof(i));
		memcpy(w[1].data, &i, sizeof(i));
		words.ticket = ticket + 1;
		ticket += 2;
		inject_applied(&x, inject_data(&x, body, inject_message(body, &words, w)));
		if (cmd_status(ACP_OP_ADD8, to + 8, to + 8, 0) == ACP_ST_RANK)
			missed = i;
	}
	CHECK_EQ(pthread_join(thread, NULL), 0);
	memcpy(&found[0], second.starter + 8, sizeof(found[0]));
	memcpy(&found[1], second.starter + 24, sizeof(found[1]));
	CHECK(missed > 0);
	CHECK(!found[0] || found[0] > missed);
	CHECK(!found[1] || found[1] > missed);
	inject_applied(&x, inject_put(&x, 2, ++ticket, to, "12345678", 8));
	CHECK(!memcmp(second.starter + 8, "12345678", 8));
}

/*
 * Send a piece of 64 bytes of a strided copy of 100 blocks of 8 bytes, which may be the last one.
 */
static void piece_fails(uint64_t dst, uint64_t stride, uint64_t desc, int wanted, const char *what)
{
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .op = ACP_OP_STRIDED, .flags = ACP_MSG_LAST, .origin = 2,
		.ticket = ++ticket, .length = 64, .dst = dst, .a = stride, .c = desc,
	};
	char body[200], data[64];
	int status;

	memset(data, 0xcc, sizeof(data));
	m.flags = 0;
	inject_applied(&x, inject_data(&x, body, inject_message(body, &m, data)));
	untouched(what);
	m.flags = ACP_MSG_LAST;
	inject_data(&x, body, inject_message(body, &m, data));
	status = inject_done(&x, ticket);
	if (status != wanted)
		FAIL("%s: status %d, wanted %d", what, status, wanted);
	untouched(what);
}

TEST(N9_strided_pieces_to_nowhere)
{
	const uint64_t desc = ACP_BLOCKS(8, 100);
	const struct acp_ga_layout *l;
	uint64_t ours;

	begin();
	l = &victim.layout;
	ours = memory_ga(&target, 0);
	piece_fails(0, 8, desc, ACP_ST_GA, "address 0");
	piece_fails(acp_ga_make(l, 6, 0, ACP_STAG_HEAP, 0), 8, desc, ACP_ST_GA, "rank 6 of 6");
	piece_fails(acp_ga_make(l, 4, 0, ACP_STAG_HEAP, 0), 8, desc, ACP_ST_RANK, "a third node's");
	piece_fails(ours + SIZE - 99 * 16 - 7, 16, desc, ACP_ST_RANGE, "a byte too many");
	piece_fails(ours + 99 * 16 - 1, -16ULL, desc, ACP_ST_RANGE, "a byte before");
	piece_fails(ours, 1ULL << 63, desc, ACP_ST_RANGE, "far below");
	piece_fails(ours, ~0ULL >> 1, desc, ACP_ST_RANGE, "far above");
	piece_fails(ours, 1ULL << l->offset_bits, desc, ACP_ST_RANGE, "another STag");
	piece_fails(ours, ~0ULL >> 31, ACP_BLOCKS(8, ~0u), ACP_ST_RANGE, "2^65 bytes above");
	piece_fails(ours, 0, ACP_BLOCKS(~0u, ~0u), ACP_ST_RANGE, "a block that is too long");
	piece_fails(memory_ga(&unaligned, 0), 8, desc, ACP_ST_ACCESS, "read-only");
	piece_fails(memory_ga(&closed, 0), 8, desc, ACP_ST_ACCESS, "for nobody");
	goes_on();
}

/* Send the first piece of an indirect copy that has more; return the number of its frame. */
static uint64_t first_piece(uint64_t number, uint64_t pointer)
{
	const struct acp_msg m = {
		.type = ACP_MSG_DATA, .op = ACP_OP_INDIRECT, .origin = 2, .ticket = number,
		.dst = pointer, .length = 64, .c = 1000,
	};
	char body[200], data[64];

	memset(data, 0xcc, sizeof(data));
	return inject_data(&x, body, inject_message(body, &m, data));
}

/*
 * Indirect copies of which only the first piece comes: more of them than a flow remembers are
 * refused, and nobody else is affected.
 */
TEST(A4_indirect_copies_that_never_end_fill_one_table)
{
	uint64_t pointer, to;
	struct count c;
	uint32_t i;

	begin();
	pointer = heap_ga(&second, 0);
	to = heap_ga(&second, 64);
	memcpy(second.heap, &to, sizeof(to));
	c = count("drop_nomem");
	for (i = 0; i < ACP_LANDINGS; i++)
		inject_applied(&x, first_piece(1000000 + i, pointer));
	/* A piece of a copy that is remembered is taken, another one is refused. */
	inject_applied(&x, first_piece(1000005, pointer));
	nodes_counted(&c, 0);
	first_piece(2000000, pointer);
	first_piece(2000001, pointer);
	nodes_counted(&c, 2);
	CHECK_EQ(rank_do_copy(&bystander, heap_ga(&second, 8), heap_ga(&bystander, 0), 8),
		 ACP_ST_OK);
}

/* The address was checked for the size that the first piece has said. */
TEST(A4_a_later_piece_of_another_size_has_a_named_end)
{
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .op = ACP_OP_INDIRECT, .flags = ACP_MSG_LAST, .origin = 2,
		.length = 8, .c = 1ULL << 40,
	};
	char body[200], data[8] = { 1 };
	uint64_t pointer, to;

	begin();
	pointer = heap_ga(&second, 0);
	to = heap_ga(&second, 64);
	memcpy(second.heap, &to, sizeof(to));
	inject_applied(&x, first_piece(++ticket, pointer));
	m.dst = pointer;
	m.ticket = ticket;
	m.b = m.c - m.length;
	inject_data(&x, body, inject_message(body, &m, data));
	CHECK_EQ(inject_done(&x, ticket), ACP_ST_RANGE);
	goes_on();
}

/* Chain two descriptors of rank 1, of 500 bytes each; return the address of the first one. */
static uint64_t two_descriptors(void)
{
	struct acp_descriptor *d = (void *)second.heap;
	uint32_t i;

	for (i = 0; i < 2; i++)
		d[i] = (struct acp_descriptor){
			.address = heap_ga(&second, 1024 * (i + 1)), .block = 500, .count = 1,
			.flags = ACP_CHAIN_FLAGS, .next = heap_ga(&second, i ? 0 : sizeof(d[0])),
		};
	d[1].next = 0;
	return heap_ga(&second, 0);
}

/* Send 64 bytes of a copy of 1,000. */
static uint64_t piece_of(uint8_t op, uint64_t number, uint64_t dst, uint64_t position,
			 uint8_t flags)
{
	const struct acp_msg m = {
		.type = ACP_MSG_DATA, .op = op, .flags = flags, .origin = 2, .ticket = number,
		.dst = dst, .length = 64, .b = position, .c = 1000,
	};
	char body[200], data[64];

	memset(data, 0xcc, sizeof(data));
	return inject_data(&x, body, inject_message(body, &m, data));
}

/* ... along that chain. */
static uint64_t scattered_piece(uint64_t number, uint64_t chain, uint64_t position, uint8_t flags)
{
	return piece_of(ACP_OP_SCATTER, number, chain, position, flags);
}

/*
 * Copies along chains of which only the first piece comes: each keeps what it has read, and no more
 * of them than a flow remembers. They are released with the flow.
 */
TEST(A4_scattered_copies_that_never_end_fill_one_table)
{
	struct acp_descriptor *d;
	uint64_t chain;
	struct count c;
	uint32_t i;

	begin();
	chain = two_descriptors();
	c = count("drop_nomem");
	for (i = 0; i < ACP_LANDINGS; i++)
		inject_applied(&x, scattered_piece(1000000 + i, chain, 0, 0));
	nodes_counted(&c, 0);
	scattered_piece(2000000, chain, 0, 0);
	nodes_counted(&c, 1);
	x.seq--;
	/* What was read counts, whatever the chain says now. */
	d = (void *)second.heap;
	memset(d, 0xff, 2 * sizeof(*d));
	memset(second.heap + 1024, 0, 2048);
	inject_applied(&x, scattered_piece(1000005, chain, 468, 0));
	for (i = 0; i < 2048; i++)
		CHECK_EQ(second.heap[1024 + i], (i >= 468 && i < 500) || (i >= 1024 && i < 1056) ?
						(char)0xcc : 0);
}

/*
 * The last piece, which no correct sender lets pass the others, ends the copy: what follows is a
 * copy of its own.
 */
TEST(A4_pieces_of_a_scattered_copy_behind_its_end)
{
	uint64_t chain;
	uint32_t i;

	begin();
	chain = two_descriptors();
	for (i = 0; i < 200; i++) {
		scattered_piece(5000 + i, chain, 0, 0);
		scattered_piece(5000 + i, chain, 936, ACP_MSG_LAST);
		scattered_piece(5000 + i, chain, 64, 0);
		inject_applied(&x, scattered_piece(5000 + i, chain, 936, ACP_MSG_LAST));
	}
	goes_on();
}

TEST(A4_a_later_scattered_piece_of_another_size_has_a_named_end)
{
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .op = ACP_OP_SCATTER, .flags = ACP_MSG_LAST, .origin = 2,
		.length = 8, .c = 1ULL << 40,
	};
	char body[200], data[8] = { 1 };

	begin();
	m.dst = two_descriptors();
	inject_applied(&x, scattered_piece(++ticket, m.dst, 0, 0));
	m.ticket = ticket;
	m.b = m.c - m.length;
	inject_data(&x, body, inject_message(body, &m, data));
	CHECK_EQ(inject_done(&x, ticket), ACP_ST_RANGE);
	goes_on();
}

/* A chain, a pointer, a buffer, a mailbox: each may be read by the first piece of its operation. */
static uint64_t place_for(uint8_t op)
{
	struct acp_mailbox *box = (void *)(second.heap + 1024);
	uint64_t *words = (uint64_t *)(void *)second.heap;

	if (op == ACP_OP_SCATTER)
		return two_descriptors();
	if (op == ACP_OP_SEND) {
		memset(box, 0, 2048);
		box->units = 200;
		box->room = ACP_MAILBOX_ROOM(0, 200);
		return heap_ga(&second, 1024);
	}
	words[0] = heap_ga(&second, 1024);
	words[1] = heap_ga(&second, 4096);
	return heap_ga(&second, 0);
}

/* What the first piece has found is that of its operation: an address is no chain. */
TEST(A4_a_later_piece_of_another_operation_has_a_named_end)
{
	uint8_t first, later;
	uint64_t dst;

	begin();
	for (first = ACP_OP_INDIRECT; first <= ACP_OP_SCATTER; first++)
		for (later = ACP_OP_INDIRECT; later <= ACP_OP_SCATTER; later++) {
			dst = place_for(first);
			inject_applied(&x, piece_of(first, ++ticket, dst, 0, 0));
			inject_applied(&x, piece_of(later, ticket, dst, 64, 0));
			piece_of(first, ticket, dst, 936, ACP_MSG_LAST);
			if (first == later)
				inject_applied(&x, x.seq - 1);
			else
				CHECK_EQ(inject_done(&x, ticket), ACP_ST_RANGE);
		}
	goes_on();
}

/* Chains and blocks of others, by frames that nobody has checked before. */
TEST(N9_chains_nowhere)
{
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .op = ACP_OP_SCATTER, .flags = ACP_MSG_LAST, .origin = 2,
		.length = 8, .c = 8,
	};
	struct { uint64_t at; int status; } cases[] = {
		{ 0, ACP_ST_GA }, { 0, ACP_ST_ALIGN }, { 0, ACP_ST_ACCESS }, { 0, ACP_ST_GA },
	};
	struct acp_descriptor *d;
	char body[200], data[8] = { 1 };
	uint32_t i;

	begin();
	two_descriptors();
	d = (void *)second.heap;
	cases[1].at = heap_ga(&second, 4);
	cases[2].at = memory_ga(&closed, 0);
	cases[3].at = heap_ga(&second, 0);
	d->address = memory_ga(&target, 0);	/* of another rank */
	for (i = 0; i < 4; i++) {
		m.dst = cases[i].at;
		m.ticket = ++ticket;
		inject_data(&x, body, inject_message(body, &m, data));
		CHECK_EQ(inject_done(&x, ticket), cases[i].status);
		untouched("chain");
	}
	d->address = memory_ga(&closed, 0);
	m.ticket = ++ticket;
	inject_data(&x, body, inject_message(body, &m, data));
	CHECK_EQ(inject_done(&x, ticket), ACP_ST_ACCESS);
	untouched("closed blocks");
	goes_on();
}

/* A copy of which a piece has failed takes no room in a buffer, with whichever piece it begins. */
TEST(A4_after_a_failed_piece_no_room_is_taken)
{
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .op = ACP_OP_APPEND, .origin = 2, .ticket = ++ticket,
		.length = 64, .b = 936, .c = 1000, .flags = ACP_MSG_LAST,
	};
	const struct acp_msg failed = {
		.type = ACP_MSG_DATA, .flags = ACP_MSG_FAIL, .status = ACP_ST_STAG, .origin = 2,
		.ticket = m.ticket,
	};
	uint64_t buffer[2];
	char body[200], data[64];

	begin();
	m.dst = heap_ga(&second, 0);
	buffer[0] = heap_ga(&second, 64);
	buffer[1] = heap_ga(&second, 4096);
	memcpy(second.heap, buffer, sizeof(buffer));
	memset(data, 0xcc, sizeof(data));
	inject_applied(&x, inject_data(&x, body, inject_message(body, &failed, NULL)));
	inject_data(&x, body, inject_message(body, &m, data));
	CHECK_EQ(inject_done(&x, m.ticket), ACP_ST_STAG);
	CHECK(!memcmp(second.heap, buffer, sizeof(buffer)));
}

/* The flag of a valid put is validated like the word of an atomic. */
static void flag_fails(uint64_t flag, int wanted, const char *what)
{
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .op = ACP_OP_COPY_SET, .flags = ACP_MSG_LAST, .origin = 2,
		.ticket = ++ticket, .dst = memory_ga(&target, 0), .c = flag, .b = ~0ULL,
	};
	char body[200];
	int status;

	inject_data(&x, body, inject_message(body, &m, NULL));
	status = inject_done(&x, ticket);
	if (status != wanted)
		FAIL("%s: status %d, wanted %d", what, status, wanted);
	untouched(what);
}

TEST(N9_flags_nowhere)
{
	const struct acp_ga_layout *l;
	uint64_t ours;

	begin();
	l = &victim.layout;
	ours = memory_ga(&target, 0);
	flag_fails(0, ACP_ST_GA, "address 0");
	flag_fails(ours + 4, ACP_ST_ALIGN, "not aligned");
	flag_fails(acp_ga_make(l, 2, 0, ACP_STAG_HEAP, 0), ACP_ST_RANK, "our own rank's");
	flag_fails(acp_ga_make(l, 0, 0, ACP_STAG_USER + 50, 0), ACP_ST_STAG, "unused STag");
	flag_fails(ours + SIZE, ACP_ST_RANGE, "behind the region");
	flag_fails(memory_ga(&closed, 0) & ~7ULL, ACP_ST_ACCESS, "for nobody");
	goes_on();
}

/*
 * The bit MORE of a frame and the operation of its message must match, otherwise nothing is
 * written.
 */
TEST(N6_more_in_bulk_frames)
{
	static char body[2000], out[2000], data[1000];
	struct count c;
	uint32_t i;

	begin();
	memset(data, 0xdd, sizeof(data));
	c = count("drop_bad_msg");
	for (i = 0; i < 4; i++) {
		struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
		struct acp_msg m = {
			.type = ACP_MSG_DATA, .flags = ACP_MSG_LAST, .origin = 2, .ticket = 5,
			.dst = memory_ga(&target, 0), .length = sizeof(data),
			.op = i & 1 ? ACP_OP_STRIDED : 0, .a = 1ULL << 32,
			.c = ACP_BLOCKS(8, 125),
		};
		size_t size = inject_message(body, &m, data);

		f.flags = ACP_FRAME_BULK | (i & 1 ? 0 : ACP_FRAME_MORE);
		if (i & 2) {
			/* The bytes at the place of the checksum are not 0. */
			memmove(body + 64, body + 56, size - 56);
			memset(body + 56, 0, 8);
			size += 8;
			f.flags |= ACP_FRAME_CRC;
		}
		size = inject_build(&x, out, &f, body, size);
		inject_send(&x, out, size);
		inject_applied(&x, f.seq);
	}
	nodes_counted(&c, 4);
	untouched("MORE without an operation, or the other way round");
	goes_on();
}

TEST(N9_commands_to_nowhere)
{
	const struct acp_ga_layout *l;
	uint64_t ours, back;
	unsigned int op;

	begin();
	l = &victim.layout;
	ours = memory_ga(&target, 0);
	back = acp_ga_make(l, 3, 0, ACP_STAG_HEAP, 0);
	cmd_fails(ACP_OP_COPY, back, 0, 8, ACP_ST_GA, "address 0");
	cmd_fails(ACP_OP_COPY, 0, ours, 8, ACP_ST_GA, "to address 0");
	cmd_fails(ACP_OP_COPY, back, acp_ga_make(l, 6, 0, ACP_STAG_HEAP, 0), 8, ACP_ST_GA,
		  "rank 6 of 6");
	cmd_fails(ACP_OP_COPY, back, acp_ga_make(l, 0, 1, ACP_STAG_HEAP, 0), 8, ACP_ST_GA,
		  "unused color");
	cmd_fails(ACP_OP_COPY, back, back, 8, ACP_ST_RANK, "source is our own");
	cmd_fails(ACP_OP_COPY, back, acp_ga_make(l, 4, 0, ACP_STAG_HEAP, 0), 8, ACP_ST_RANK,
		  "source is a third node's");
	cmd_fails(ACP_OP_COPY, back, acp_ga_make(l, 0, 0, ACP_STAG_USER + 50, 0), 8, ACP_ST_STAG,
		  "unused STag");
	cmd_fails(ACP_OP_COPY, back, ours, SIZE + 1, ACP_ST_RANGE, "too long");
	cmd_fails(ACP_OP_COPY, back, ours, ACP_COPY_MAX, ACP_ST_RANGE, "2^62 bytes");
	cmd_fails(ACP_OP_COPY, back, ours, ACP_COPY_MAX + 1, ACP_ST_OP, "more");
	cmd_fails(ACP_OP_COPY, back, memory_ga(&closed, 0), 8, ACP_ST_ACCESS, "for nobody");
	cmd_fails(ACP_OP_COPY, memory_ga(&closed, 0), ours, 8, ACP_ST_ACCESS, "to nobody's");
	cmd_fails(ACP_OP_COPY, memory_ga(&unaligned, 0), ours, 8, ACP_ST_ACCESS, "to read-only");
	for (op = ACP_OP_CAS4; op <= ACP_OP_AND8; op++) {
		uint8_t o = (uint8_t)op;

		cmd_fails(o, back, ours + 2, 0, ACP_ST_ALIGN, "unaligned word");
		cmd_fails(o, back + 2, ours, 0, ACP_ST_ALIGN, "unaligned result");
		cmd_fails(o, back, ours + SIZE, 0, ACP_ST_RANGE, "behind the region");
		cmd_fails(o, back, memory_ga(&unaligned, 0), 0, ACP_ST_ACCESS, "not for atomics");
		cmd_fails(o, memory_ga(&closed, 0), ours, 0, ACP_ST_ACCESS, "result to nobody's");
	}
	goes_on();
}

/* Unsolicited results, for existing and missing commands. */
TEST(N9_answers_nobody_waits_for)
{
	uint64_t tickets[] = { 0, 1, 2, 3, 100, 1ULL << 32, ~0ULL };
	struct acp_msg m = { .type = ACP_MSG_DONE };
	struct count c;
	char body[100];
	size_t i;

	begin();
	c = count("stray_done");
	for (i = 0; i < sizeof(tickets) / sizeof(tickets[0]); i++) {
		m.ticket = tickets[i];
		m.status = (uint8_t)(i % 3);
		m.origin = i & 1;
		inject_applied(&x, inject_data(&x, body, inject_message(body, &m, NULL)));
	}
	nodes_counted(&c, sizeof(tickets) / sizeof(tickets[0]));
	CHECK_EQ(victim.cq->completed, 2);
	CHECK_EQ(victim.cq->failed, 0);
	CHECK_EQ(second.cq->completed, 1);
	goes_on();
}

/* Return the next ping of the victim, in a frame after *seen; it may be a retransmission. */
static struct acp_msg next_ping(u64 *seen)
{
	static char body[INJECT_MAX];
	struct patience p = patience_begin(PATIENCE_SOON);
	struct acp_frame f;
	struct acp_msg m;
	u32 at, n;

	while (!patience_over(&p)) {
		if (!inject_receive(&x, &f, body, 100) || f.type != ACP_FRAME_DATA)
			continue;
		inject_ack(&x);
		for (at = 0; f.seq > *seen && at < f.length; at += n) {
			n = acp_msg_decode(&m, body + at, f.length - at, f.length - at);
			CHECK(n);
			if (m.type == ACP_MSG_PING) {
				*seen = f.seq;
				return m;
			}
		}
	}
	FAIL("no ping comes back");
}

TEST(N9_pings_come_back)
{
	struct acp_msg m = { .type = ACP_MSG_PING, .origin = 1 }, back;
	char body[200];
	u64 seen = 0;

	begin();
	for (m.length = 0; m.length <= ACP_PING_MAX; m.length += 8) {
		m.ticket = 1000 + m.length;
		inject_data(&x, body, inject_message(body, &m, NULL));
		back = next_ping(&seen);
		CHECK(back.flags == ACP_MSG_ANSWER && back.origin == 0);
		CHECK(back.ticket == m.ticket && back.length == m.length);
	}
	goes_on();
}

/* Unsolicited answers to pings, and pings that are not fully covered by the tag. */
TEST(N9_pings_out_of_turn)
{
	struct acp_msg m = { .type = ACP_MSG_PING, .flags = ACP_MSG_ANSWER, .origin = 1 };
	struct acp_frame f;
	struct count c;
	char body[200];

	begin();
	c = count("drop_bad_msg");
	for (m.ticket = 0; m.ticket < 20; m.ticket++)
		inject_applied(&x, inject_data(&x, body, inject_message(body, &m, NULL)));
	nodes_counted(&c, 0);
	m.flags = 0;
	m.length = ACP_PING_MAX;
	f = inject_header(&x, ACP_FRAME_DATA);
	f.flags = ACP_FRAME_BULK;
	inject_frame(&x, &f, body, inject_message(body, &m, NULL));
	inject_applied(&x, f.seq);
	nodes_counted(&c, 1);
	goes_on();
}

/*
 * A peer that sends pings without receiving uses no more memory of the victim than commands would.
 */
TEST(N9_pings_without_end)
{
	struct acp_msg m = { .type = ACP_MSG_PING, .origin = 1 };
	struct count c;
	char body[64 * 24];
	struct patience p;
	uint32_t i, k;

	begin();
	c = count("drop_busy");
	for (i = 0; i < 40; i++) {
		for (k = 0; k < 64; k++)
			inject_message(body + k * 24, &m, NULL);
		inject_data(&x, body, 64 * 24);
	}
	p = patience_begin(PATIENCE_SOON);
	while (nodes_counter(&n, 0, "drop_busy") == c.before) {
		CHECK(!patience_over(&p));
		sleep_ms(1);
	}
	untouched("pings");
}

TEST(N9_barriers_out_of_turn)
{
	static const uint64_t numbers[] = { 0, 2, 3, 1000, ~0ULL };
	struct acp_msg m = { .type = ACP_MSG_BARRIER, .origin = 1 };
	struct count c;
	char body[100];
	size_t i;

	begin();
	c = count("drop_bad_msg");
	for (i = 0; i < 2 * sizeof(numbers) / sizeof(numbers[0]); i++) {
		m.ticket = numbers[i / 2];
		m.flags = i & 1 ? ACP_MSG_RELEASE : 0;
		inject_applied(&x, inject_data(&x, body, inject_message(body, &m, NULL)));
	}
	nodes_counted(&c, 10);
	goes_on();
}

/* A child cannot release the barrier of the root, nor arrive twice for others. */
TEST(N9_barrier_released_by_a_child)
{
	struct acp_sync sync = { .size = sizeof(sync), .timeout_ns = 300 * MS };
	struct acp_msg m = { .type = ACP_MSG_BARRIER, .origin = 1, .ticket = 1 };
	char body[100];

	begin();
	m.flags = ACP_MSG_RELEASE;
	inject_applied(&x, inject_data(&x, body, inject_message(body, &m, NULL)));
	CHECK_ERRNO(ioctl(victim.fd, ACP_IOC_SYNC, &sync), ETIMEDOUT);
	m.flags = 0;
	inject_applied(&x, inject_data(&x, body, inject_message(body, &m, NULL)));
	inject_applied(&x, inject_data(&x, body, inject_message(body, &m, NULL)));
	CHECK_ERRNO(ioctl(second.fd, ACP_IOC_SYNC, &sync), ETIMEDOUT);
}
