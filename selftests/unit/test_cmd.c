// SPDX-License-Identifier: MIT
/* kernel/core/cmd.c: validation of commands. */
#include "cmd_play.h"

/* ---- validation ---- */

/* Without bytes, no addresses are needed, but a flag has one, and so has a mailbox. */
TEST(check__E4_zero_bytes)
{
	static const u64 bad[] = { 0, ~0ULL, 5 };
	struct acp_msg m;
	u32 i, op;

	for (i = 0; i < 9; i++) {
		for (op = ACP_OP_COPY; op <= ACP_OP_GATHER; op++) {
			m = good_cmd((u8)op);
			m.origin = 3;
			m.dst = bad[i / 3];
			m.src = bad[i % 3];
			m.size = op == ACP_OP_STRIDED ? 5 : 0;
			CHECK(acp_cmd_check(&layout, 2, &m) != ACP_ST_OK);
			if (!m.size)
				acp_cmd_no_bytes(&layout, &m);
			CHECK_EQ(acp_cmd_check(&layout, 2, &m) == ACP_ST_OK,
				 op == ACP_OP_COPY || (op > ACP_OP_STRIDED && op != ACP_OP_SEND));
		}
		m = good_cmd(ACP_OP_COPY_SET);
		m.size = 0;
		m.c = bad[i % 3];
		acp_cmd_no_bytes(&layout, &m);
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_GA);
	}
	m = good_cmd(ACP_OP_SEND);
	m.origin = 3;
	m.size = 0;
	m.src = 5;
	acp_cmd_no_bytes(&layout, &m);
	CHECK(acp_cmd_check(&layout, 2, &m) == ACP_ST_OK && m.dst == good_cmd(ACP_OP_SEND).dst);
	CHECK(m.op == ACP_OP_SEND && acp_ga_rank(&layout, m.src) == 3);
	m = good_cmd(ACP_OP_COPY_ADD);
	m.origin = 3;
	m.size = 0;
	acp_cmd_no_bytes(&layout, &m);
	CHECK_EQ(acp_ga_rank(&layout, m.dst), 2);
	CHECK_EQ(acp_ga_rank(&layout, m.src), 3);
	m = good_cmd(ACP_OP_STRIDED);
	m.size = ACP_BLOCKS(0, 3);
	m.a = 8;
	acp_cmd_from_entry(&m);
	acp_cmd_no_bytes(&layout, &m);
	CHECK(m.op == ACP_OP_COPY && acp_cmd_check(&layout, 2, &m) == ACP_ST_OK);
}

TEST(check__K3_entry_of_the_ring)
{
	struct acp_sqe e = { .order = 6, .flags = ACP_SQE_CONT };
	u32 i;

	CHECK_EQ(acp_sqe_check(&e, 7), ACP_ST_OK);
	CHECK_EQ(acp_sqe_check(&e, 6), ACP_ST_OP);
	CHECK_EQ(acp_sqe_check(&e, 5), ACP_ST_OP);
	for (i = 0; i < sizeof(e.reserved); i++) {
		e.reserved[i] = 1;
		CHECK_EQ(acp_sqe_check(&e, 7), ACP_ST_OP);
		e.reserved[i] = 0;
	}
	for (i = 0; i < 256; i++) {
		e.flags = i;
		CHECK_EQ(acp_sqe_check(&e, 7), i & ~(ACP_SQE_CONT | ACP_SQE_MORE) ? ACP_ST_OP :
										    ACP_ST_OK);
		e.op = ACP_OP_APPEND;
		CHECK_EQ(acp_sqe_check(&e, 7),
			 i & ~(ACP_SQE_CONT | ACP_SQE_MORE | ACP_SQE_RETRY) ? ACP_ST_OP :
									      ACP_ST_OK);
		e.op = ACP_OP_SEND;
		CHECK_EQ(acp_sqe_check(&e, 7),
			 i & ~(ACP_SQE_FLAGS - ACP_SQE_REVOKE - ACP_SQE_LAZY) ? ACP_ST_OP :
										ACP_ST_OK);
		e.op = 0;
	}
}

TEST(check__which_operations_are_lazy)
{
	struct acp_sqe e = { .flags = ACP_SQE_LAZY | ACP_SQE_CONT };
	bool can;
	u32 op;

	for (op = 0; op < 256; op++) {
		e.op = (u8)op;
		can = op == ACP_OP_COPY || op == ACP_OP_COPY_SET || op == ACP_OP_COPY_ADD ||
		      (op >= ACP_OP_ACCUMULATE && op <= ACP_OP_ACCUMULATE_ADD);
		CHECK_EQ(acp_sqe_check(&e, 1), can ? ACP_ST_OK : ACP_ST_OP);
	}
}

TEST(check__which_operations_revoke)
{
	struct acp_sqe e = { .flags = ACP_SQE_REVOKE | ACP_SQE_CONT };
	bool can;
	u32 op;

	for (op = 0; op < 256; op++) {
		e.op = (u8)op;
		can = op == ACP_OP_ADD8 || op == ACP_OP_COPY_ADD || op == ACP_OP_ACCUMULATE_ADD;
		CHECK_EQ(acp_sqe_check(&e, 1), can ? ACP_ST_OK : ACP_ST_OP);
	}
}

TEST(check__every_operation)
{
	u32 op;

	for (op = 0; op < 256; op++) {
		struct acp_msg m = good_cmd(op);
		bool known = acp_op_travels(op) || op == ACP_OP_WAIT || op == ACP_OP_REDUCE;

		CHECK_EQ(acp_cmd_check(&layout, 2, &m), known ? ACP_ST_OK : ACP_ST_OP);
	}
}

TEST(check__width)
{
	u32 op;

	CHECK_EQ(acp_op_width(ACP_OP_COPY), 0);
	for (op = ACP_OP_CAS4; op < ACP_OP_AND8; op += 2) {
		CHECK_EQ(acp_op_width(op), 4);
		CHECK_EQ(acp_op_width(op + 1), 8);
	}
	for (op = ACP_OP_STRIDED; op <= ACP_OP_GATHER; op++)
		CHECK_EQ(acp_op_width(op), 0);
	CHECK_EQ(acp_op_width(ACP_OP_WAIT), 0);
	CHECK_EQ(acp_op_width(ACP_OP_REDUCE), 0);
	for (op = ACP_OP_ACCUMULATE; op <= ACP_OP_ACCUMULATE_ADD; op++)
		CHECK_EQ(acp_op_width(op), 0);
	CHECK(acp_op_width(0) < 0 && acp_op_width(ACP_OP_END) < 0 && acp_op_width(255) < 0);
}

/* From the entry of the ring to the command. */
static u8 check_wait(u64 src, u64 dst, u64 size, u64 b)
{
	struct acp_msg m = { .op = ACP_OP_WAIT, .origin = 9, .src = src, .dst = dst, .size = size,
			     .a = 77, .b = b };

	acp_cmd_from_entry(&m);
	if (!m.size)
		acp_cmd_no_bytes(&layout, &m);
	CHECK(m.src == src && m.dst == src && m.a == 77);
	return acp_cmd_check(&layout, 1, &m);
}

TEST(check__wait_is_for_a_word_of_the_own_rank)
{
	u32 shift;

	layout = acp_ga_layout(10);
	CHECK_EQ(check_wait(ga(9, 0, 64), 0, 0, 0), ACP_ST_OK);
	CHECK_EQ(check_wait(0, 0, 0, 0), ACP_ST_GA);
	CHECK_EQ(check_wait(~0ULL, 0, 0, 0), ACP_ST_GA);
	CHECK_EQ(check_wait(ga(9, 1, 64), 0, 0, 0), ACP_ST_GA);
	CHECK_EQ(check_wait(ga(8, 0, 64), 0, 0, 0), ACP_ST_ACCESS);
	for (shift = 1; shift < 8; shift++)
		CHECK_EQ(check_wait(ga(9, 0, 64 + shift), 0, 0, 0), ACP_ST_ALIGN);
}

TEST(check__wait_names_ranks_of_the_job)
{
	struct acp_msg m;
	u64 word;
	u32 i;

	layout = acp_ga_layout(10);
	word = ga(9, 0, 64);
	CHECK_EQ(check_wait(word, 1, 0, 0), ACP_ST_OK);
	CHECK_EQ(check_wait(word, ACP_WAIT_RANKS(-1, -1), 8, 0), ACP_ST_OK);
	CHECK_EQ(check_wait(word, ACP_WAIT_RANKS(9, 0), 10, 10ULL << 32), ACP_ST_OK);
	CHECK_EQ(check_wait(word, ACP_WAIT_RANKS(10, -1), 0, 0), ACP_ST_RANK);
	CHECK_EQ(check_wait(word, ACP_WAIT_RANKS(-1, 10), 0, 0), ACP_ST_RANK);
	CHECK_EQ(check_wait(word, 0, ~0ULL, 0), ACP_ST_RANK);
	CHECK_EQ(check_wait(word, 0, 11, 0), ACP_ST_RANK);
	CHECK_EQ(check_wait(word, 0, 0, 11), ACP_ST_RANK);
	CHECK_EQ(check_wait(word, 0, 0, 11ULL << 32), ACP_ST_RANK);
	m = (struct acp_msg){ .c = ACP_WAIT_RANKS(0, 1), .size = ACP_WAIT_RANKS(2, 3),
			      .b = ACP_WAIT_RANKS(4, 5) };
	CHECK(acp_wait_names(&m));
	for (i = 0; i < ACP_WAIT_NAMES; i++)
		CHECK_EQ(acp_wait_name(&m, i), i);
	m = (struct acp_msg){ .b = ACP_WAIT_RANKS(-1, 7) };
	CHECK(acp_wait_names(&m) && acp_wait_name(&m, 5) == 7);
	for (i = 0; i < 5; i++)
		CHECK_EQ(acp_wait_name(&m, i), ACP_WAIT_NOBODY);
	m.b = 0;
	CHECK(!acp_wait_names(&m));
}

/* Once revoked, a word stays so, however often it is revoked and whatever is added to it. */
TEST(word__is_revoked)
{
	const u64 far = ACP_WORD_REVOKED / 2;
	u64 word = 3, i;

	CHECK_EQ(acp_word_state(6, 7), ACP_WORD_BEFORE);
	CHECK_EQ(acp_word_state(7, 7), ACP_WORD_REACHED);
	CHECK_EQ(acp_word_state(far + 6, 7), ACP_WORD_REACHED);
	CHECK_EQ(acp_word_state(far + 7, 7), ACP_WORD_IS_REVOKED);
	CHECK_EQ(acp_word_state(-3ULL, 7), ACP_WORD_BEFORE);
	CHECK_EQ(acp_word_state(3, -7ULL), ACP_WORD_REACHED);
	for (i = 0; i < 100; i++) {
		struct acp_msg m = good_cmd(i % 2 ? ACP_OP_ADD8 : ACP_OP_COPY_ADD);

		acp_cmd_revoke(&layout, &m);
		word = acp_op_result(acp_op_of_flag(m.op), word, m.b, 0);
		CHECK_EQ(acp_word_state(word, 3), ACP_WORD_IS_REVOKED);
		CHECK_EQ(acp_word_state(word, far), ACP_WORD_IS_REVOKED);
		word += i << 40;
		CHECK_EQ(acp_word_state(word, 4), ACP_WORD_IS_REVOKED);
	}
}

/* It goes to the node of the word, with no data, and writes nothing else. */
TEST(word__is_revoked_by_a_message)
{
	struct acp_msg m = good_cmd(ACP_OP_ADD8), copy = good_cmd(ACP_OP_COPY_ADD);
	const u64 words[] = { m.src, copy.c };
	struct acp_step s;
	u32 i;

	for (i = 0; i < 2; i++, m = copy) {
		m.origin = 3;
		acp_cmd_revoke(&layout, &m);
		CHECK(m.op == ACP_OP_COPY_SET && !m.size && !m.a && m.b == ACP_WORD_REVOKED);
		CHECK(m.c == words[i] && m.dst == words[i] && acp_ga_rank(&layout, m.src) == 3);
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OK);
		acp_step_set(&s, &layout, &m, 3, 3, 8);
		CHECK(s.plan == ACP_PLAN_SEND && s.node == 8 && !s.later);
	}
}

/* From the entry of the ring to the command. */
static u8 check_reduce(u64 dst, u64 src, u64 size, u64 what, u64 b)
{
	struct acp_msg m = { .op = ACP_OP_REDUCE, .origin = 9, .src = src, .dst = dst,
			     .size = size, .a = what, .b = b };
	struct acp_step s;

	acp_cmd_from_entry(&m);
	CHECK(m.op == ACP_OP_REDUCE && m.size == size && m.c == what && !m.a);
	if (!m.size)
		acp_cmd_no_bytes(&layout, &m);
	acp_step_set(&s, &layout, &m, 0, 0, 0);
	CHECK(s.plan == ACP_PLAN_LOCAL && !s.atomic && s.later == (size > ACP_REDUCE_LONG));
	return acp_cmd_check(&layout, 1, &m);
}

/* From the entry of the ring to the command. */
static u8 check_accumulate(u8 op, u64 dst, u64 src, u64 numbers, u64 flag, u64 operand)
{
	struct acp_msg m = { .op = op, .origin = 9, .src = src, .dst = dst, .size = numbers,
			     .a = flag, .b = operand };
	u32 width = acp_reduce_width(numbers & 0xffff);

	acp_cmd_from_entry(&m);
	CHECK(m.op == op && m.a == (numbers & 0xffff) && m.c == flag && m.b == operand);
	CHECK_EQ(m.size, width ? (numbers >> 16) * width : 1);
	if (!m.size)
		acp_cmd_no_bytes(&layout, &m);
	return acp_cmd_check(&layout, 2, &m);
}

TEST(check__numbers_that_are_accumulated)
{
	const u64 wide = ACP_NUMBERS(ACP_REDUCE_PROD, ACP_REDUCE_F64, 100);
	const u64 narrow = ACP_NUMBERS(ACP_REDUCE_XOR, ACP_REDUCE_U32, 100);
	const u8 none = ACP_OP_ACCUMULATE, set = ACP_OP_ACCUMULATE_SET;
	u32 i;

	layout = acp_ga_layout(10);
	for (i = 0; i < 9; i++) {
		const u64 a = ga(9, 0, 64 + i), b = ga(2, 0, 64);
		const u8 by4 = i % 4 ? ACP_ST_ALIGN : ACP_ST_OK;
		const u8 by8 = i % 8 ? ACP_ST_ALIGN : ACP_ST_OK;

		CHECK_EQ(check_accumulate(none, a, b, wide, 0, 0), by8);
		CHECK_EQ(check_accumulate(none, b, a, wide, 0, 0), by8);
		CHECK_EQ(check_accumulate(none, a, b, narrow, 0, 0), by4);
		CHECK_EQ(check_accumulate(none, b, a, narrow, 0, 0), by4);
		CHECK_EQ(check_accumulate(set, b, b, narrow, a, i), by8);
		CHECK_EQ(check_accumulate(set, b, b, wide, a, i), by8);
		CHECK_EQ(check_accumulate(none, b, b, wide, i, 0), i ? ACP_ST_OP : ACP_ST_OK);
		CHECK_EQ(check_accumulate(none, b, b, wide, 0, i), i ? ACP_ST_OP : ACP_ST_OK);
		/* Without numbers, no addresses are needed, but an operation is. */
		CHECK_EQ(check_accumulate(none, i, ~0ULL, wide & 0xffff, 0, 0), ACP_ST_OK);
		CHECK_EQ(check_accumulate(none, i, ~0ULL, (wide & 0xffff) + 0x100 * (i + 1), 0, 0),
			 ACP_ST_OP);
		CHECK_EQ(check_accumulate(set, i, ~0ULL, narrow & 0xffff, a, 5), by8);
	}
	CHECK_EQ(check_accumulate(set, ga(1, 0, 0), ga(1, 0, 0), wide, 0, 0), ACP_ST_GA);
	CHECK_EQ(check_accumulate(none, 0, ga(1, 0, 0), wide, 0, 0), ACP_ST_GA);
	CHECK_EQ(check_accumulate(none, ga(1, 0, 0), 0, wide, 0, 0), ACP_ST_GA);
	CHECK_EQ(check_accumulate(none, ga(1, 0, 0), ga(1, 0, 0), ~0ULL, 0, 0), ACP_ST_OP);
	CHECK_EQ(check_accumulate(none, ga(1, 0, 0), ga(1, 0, 0), wide | ~0ULL << 16, 0, 0),
		 ACP_ST_OK);
}

/* Each piece is combined where it arrives; the last one has the signal. */
TEST(out__pieces_of_numbers)
{
	struct acp_out o = { .m = good_cmd(ACP_OP_ACCUMULATE_ADD) };
	struct acp_msg m;
	bool fence;

	acp_out_data(&o);
	acp_out_piece(&o, 0, 64, &m, &fence);
	CHECK(m.op == ACP_OP_ACCUMULATE && m.a == o.m.a && !m.b && !m.c && !m.flags && !fence);
	CHECK(m.dst == o.m.dst && m.length == 64);
	acp_out_piece(&o, 64, 40, &m, &fence);
	CHECK(m.op == ACP_OP_ACCUMULATE_ADD && m.a == o.m.a && m.b == ~0ULL && m.c == o.m.c);
	CHECK(m.dst == o.m.dst + 64 && m.flags == ACP_MSG_LAST && fence);
	acp_out_fail(&o, ACP_ST_STAG);
	acp_out_piece(&o, 0, 64, &m, &fence);
	CHECK(!m.op && !m.length && m.status == ACP_ST_STAG);
}

TEST(check__numbers_that_are_combined)
{
	const u64 wide = ACP_REDUCE(ACP_REDUCE_PROD, ACP_REDUCE_F64);
	const u64 narrow = ACP_REDUCE(ACP_REDUCE_XOR, ACP_REDUCE_U32);
	u32 i;

	layout = acp_ga_layout(10);
	for (i = 0; i < 9; i++) {
		const u64 a = ga(9, 0, 64 + i), b = ga(2, 0, 64);
		const u8 by4 = i % 4 ? ACP_ST_ALIGN : ACP_ST_OK;
		const u8 by8 = i % 8 ? ACP_ST_ALIGN : ACP_ST_OK;

		CHECK_EQ(check_reduce(a, b, 800, wide, 0), by8);
		CHECK_EQ(check_reduce(b, a, 800, wide, 0), by8);
		CHECK_EQ(check_reduce(a, b, 800, narrow, 0), by4);
		CHECK_EQ(check_reduce(b, a, 800, narrow, 0), by4);
		CHECK_EQ(check_reduce(b, b, 800 + i, wide, 0), i % 8 ? ACP_ST_OP : ACP_ST_OK);
		CHECK_EQ(check_reduce(b, b, 800 + i, narrow, 0), i % 4 ? ACP_ST_OP : ACP_ST_OK);
		/* Without numbers, no addresses are needed, but an operation is. */
		CHECK_EQ(check_reduce(i, ~0ULL, 0, wide, 0), ACP_ST_OK);
		CHECK_EQ(check_reduce(i, ~0ULL, 0, wide + (i << 16), 0),
			 i ? ACP_ST_OP : ACP_ST_OK);
		CHECK_EQ(check_reduce(b, b, 8, wide, i), i ? ACP_ST_OP : ACP_ST_OK);
	}
	CHECK_EQ(check_reduce(ga(1, 0, 0), ga(1, 0, 0), ACP_COPY_MAX, wide, 0), ACP_ST_OK);
	CHECK_EQ(check_reduce(ga(1, 0, 0), ga(1, 0, 0), ACP_COPY_MAX + 8, wide, 0), ACP_ST_OP);
	CHECK_EQ(check_reduce(ga(1, 0, 0), ga(1, 0, 0), 8, wide + 256, 0), ACP_ST_OP);
	CHECK_EQ(check_reduce(ga(1, 0, 0), ga(1, 0, 0), 8, narrow + 0x400, 0), ACP_ST_OP);
	CHECK_EQ(check_reduce(0, ga(1, 0, 0), 8, wide, 0), ACP_ST_GA);
	CHECK_EQ(check_reduce(ga(1, 0, 0), 0, 8, wide, 0), ACP_ST_GA);
	CHECK_EQ(check_reduce(ga(1, 1, 0), ga(1, 0, 0), 8, wide, 0), ACP_ST_GA);
}

/* No CMD contains the others. */
TEST(check__which_operations_travel)
{
	u32 op;

	for (op = 0; op < 256; op++)
		CHECK_EQ(acp_op_travels(op), (op >= ACP_OP_COPY && op <= ACP_OP_GATHER) ||
			 (op >= ACP_OP_ACCUMULATE && op <= ACP_OP_ACCUMULATE_ADD));
}

TEST(check__fields_of_other_operations)
{
	struct acp_msg m = good_cmd(ACP_OP_COPY);
	u32 op;

	m.a = 1;
	CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OP);
	m = good_cmd(ACP_OP_COPY);
	m.b = 1;
	CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OP);
	m = good_cmd(ACP_OP_COPY);
	m.c = 1;
	CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OP);
	for (op = ACP_OP_CAS4; op <= ACP_OP_AND8; op++) {
		m = good_cmd(op);
		m.size = 8;
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OP);
		m = good_cmd(op);
		m.c = 8;
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OP);
	}
}

/* An indirect copy has no operands; its pieces keep its pointer and know their place. */
TEST(check__A4_indirect_copies)
{
	struct acp_out o;
	struct acp_msg m;
	bool fence;
	u32 op;

	for (op = ACP_OP_INDIRECT; op <= ACP_OP_SCATTER; op++) {
		const bool send = op == ACP_OP_SEND;	/* it has a tag, and its order */

		m = good_cmd(op);
		m.a = 1;
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OP);
		m = good_cmd(op);
		m.b = 1;
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), send ? ACP_ST_OK : ACP_ST_OP);
		m = good_cmd(op);
		m.c = 8;
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OP);
		m = good_cmd(op);
		m.size = 0;
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), send ? ACP_ST_OK : ACP_ST_OP);
		o = (struct acp_out){ .m = good_cmd(op) };
		o.m.size = 3000;
		o.m.b = send ? 77 : 0;
		acp_out_data(&o);
		CHECK_EQ(acp_out_cut(&o, 1000), 1000);
		CHECK_EQ(acp_out_cut(&o, 1000), 1000);
		acp_out_piece(&o, 1000, 1000, &m, &fence);
		CHECK(m.op == op && !(m.flags & ACP_MSG_LAST) && fence == send);
		CHECK(m.dst == o.m.dst && m.src == o.m.src + 1000 && m.b == 1000 && m.c == 3000);
		CHECK(m.a == o.m.b && o.m.b == (send ? 77 : 0));
		CHECK_EQ(acp_out_cut(&o, 1000), 1000);
		acp_out_piece(&o, 2000, 1000, &m, &fence);
		CHECK(m.op == op && (m.flags & ACP_MSG_LAST) && fence && m.b == 2000);
		acp_out_fail(&o, ACP_ST_STAG);
		acp_out_piece(&o, 1000, 1000, &m, &fence);
		CHECK(!m.op && !m.length && (m.flags & ACP_MSG_FAIL));
	}
}

/* A gather has no operands, and its chain is aligned. Its pieces are those of an ordinary copy. */
TEST(check__A4_gathers)
{
	struct acp_out o = { .m = good_cmd(ACP_OP_GATHER) };
	struct acp_msg m;
	bool fence;
	u32 i;

	for (i = 0; i < 5; i++) {
		m = good_cmd(ACP_OP_GATHER);
		m.a = i == 0;
		m.b = i == 1;
		m.c = i == 2 ? 8 : 0;
		m.size = i == 3 ? 0 : 100;
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), i < 4 ? ACP_ST_OP : ACP_ST_OK);
	}
	o.m.size = 3000;
	acp_out_data(&o);
	o.m.op = 0;
	o.chained = true;
	CHECK_EQ(acp_out_cut(&o, 1000), 1000);
	CHECK_EQ(acp_out_cut(&o, 1000), 1000);
	acp_out_piece(&o, 1000, 1000, &m, &fence);
	CHECK(!m.op && m.dst == o.m.dst + 1000 && m.src == o.m.src + 1000);
	acp_out_begin(&o);
	CHECK(!o.chained);
}

/* Blocks of one byte make a copy long that would otherwise be short. */
TEST(check__long_copies_along_chains)
{
	struct acp_msg m = good_cmd(ACP_OP_SCATTER);
	u32 i;

	for (i = 0; i < 2; i++) {
		m.op = ACP_OP_SCATTER + i;
		m.size = ACP_COPY_BLOCKS;
		CHECK(!acp_cmd_long(&m));
		m.size++;
		CHECK(acp_cmd_long(&m));
		m.op = ACP_OP_COPY;
		CHECK(!acp_cmd_long(&m));
	}
}

/* A table of landings never has an entry twice, nor more than it has room for. */
TEST(landing__A4_found_until_forgotten)
{
	struct acp_landings t = { .count = 0 };
	u64 i;

	CHECK(!acp_landing_find(&t, 1, 1));
	for (i = 0; i < ACP_LANDINGS; i++)
		CHECK(acp_landing_add(&t, i % 3, i, ACP_OP_SEND, i + 1));
	CHECK(!acp_landing_add(&t, 1, ACP_LANDINGS, ACP_OP_SEND, 1));
	for (i = 0; i < ACP_LANDINGS; i++) {
		CHECK(acp_landing_find(&t, i % 3, i) && !acp_landing_find(&t, i % 3 + 1, i));
		CHECK(!acp_landing_find(&t, i % 3, i)->known);
		CHECK_EQ(acp_landing_find(&t, i % 3, i)->size, i + 1);
	}
	for (i = 0; i < ACP_LANDINGS; i += 2)
		acp_landing_forget(&t, i % 3, i);
	acp_landing_forget(&t, 0, 0);
	for (i = 0; i < ACP_LANDINGS; i++)
		CHECK_EQ(!!acp_landing_find(&t, i % 3, i), i % 2);
	CHECK(acp_landing_add(&t, 0, 0, ACP_OP_SEND, 1));
}

/* The flag of a copy is validated and must be aligned. */
TEST(check__N9_flags_of_copies)
{
	struct acp_msg m;
	u32 op, shift;

	for (op = ACP_OP_COPY_SET; op <= ACP_OP_COPY_ADD; op++) {
		static const u64 bad[] = { 0, 8, ~7ULL };

		for (shift = 0; shift < sizeof(bad) / sizeof(bad[0]); shift++) {
			m = good_cmd(op);
			m.c = bad[shift];
			CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_GA);
		}
		for (shift = 0; shift < 16; shift++) {
			m = good_cmd(op);
			m.c += shift;
			CHECK_EQ(acp_cmd_check(&layout, 2, &m), shift % 8 ? ACP_ST_ALIGN :
									    ACP_ST_OK);
		}
		m = good_cmd(op);
		m.c = ga(2, 2, 8);
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_GA);
		m = good_cmd(op);
		m.a = 1;
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OP);
		m = good_cmd(op);
		m.size = ACP_COPY_MAX + 1;
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OP);
		m.size = 0;
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OK);
	}
}

TEST(check__size)
{
	struct acp_msg m = good_cmd(ACP_OP_COPY);

	m.size = 0;
	CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OK);
	m.size = ACP_COPY_MAX;
	CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OK);
	m.size = ACP_COPY_MAX + 1;
	CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OP);
	m.size = ~0ULL;
	CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OP);
}

TEST(check__N9_addresses_of_nobody)
{
	static const u64 bad[] = { 0, 1, 0xfffffff, ~0ULL };
	struct acp_msg m;
	u32 i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m = good_cmd(ACP_OP_COPY);
		m.src = bad[i];
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_GA);
		m = good_cmd(ACP_OP_COPY);
		m.dst = bad[i];
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_GA);
	}
	m = good_cmd(ACP_OP_COPY);
	m.src = ga(10, 0, 0);
	CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_GA);
	m = good_cmd(ACP_OP_COPY);
	m.dst = ga(10, 0, 0);
	CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_GA);
	m = good_cmd(ACP_OP_COPY);
	m.dst = ga(0, 2, 0);
	CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_GA);
	m = good_cmd(ACP_OP_COPY);
	CHECK_EQ(acp_cmd_check(&layout, 1, &m), ACP_ST_GA);
}

TEST(check__N10_alignment)
{
	u32 op, shift;

	for (op = ACP_OP_COPY; op <= ACP_OP_GATHER; op++) {
		for (shift = 0; shift < 8; shift++) {
			u8 width = acp_op_width(op) ? acp_op_width(op) : 1;
			u8 want = shift % width ? ACP_ST_ALIGN : ACP_ST_OK;
			struct acp_msg m = good_cmd(op);

			m.src += shift;
			CHECK_EQ(acp_cmd_check(&layout, 2, &m),
				 op == ACP_OP_GATHER && shift ? ACP_ST_ALIGN : want);
			m = good_cmd(op);
			m.dst += shift;
			if (acp_op_indirect(op) && shift)
				want = ACP_ST_ALIGN;
			CHECK_EQ(acp_cmd_check(&layout, 2, &m), want);
		}
	}
}

TEST(result__of_every_operation)
{
	u64 x = 0xfedcba9876543210, a = 0x0123456789abcdef, b = 0x5555555555555555;

	CHECK_EQ(acp_op_result(ACP_OP_CAS8, x, x, b), b);
	CHECK_EQ(acp_op_result(ACP_OP_CAS8, x, a, b), x);
	CHECK_EQ(acp_op_result(ACP_OP_CAS4, (u32)x, 0xff00000076543210, b), b);
	CHECK_EQ((u32)acp_op_result(ACP_OP_CAS4, (u32)x, a, b), (u32)x);
	CHECK_EQ(acp_op_result(ACP_OP_SWAP8, x, a, 0), a);
	CHECK_EQ((u32)acp_op_result(ACP_OP_SWAP4, (u32)x, a, 0), (u32)a);
	CHECK_EQ(acp_op_result(ACP_OP_ADD8, x, a, 0), x + a);
	CHECK_EQ((u32)acp_op_result(ACP_OP_ADD4, 0xffffffff, 1, 0), 0);
	CHECK_EQ(acp_op_result(ACP_OP_XOR8, x, a, 0), x ^ a);
	CHECK_EQ((u32)acp_op_result(ACP_OP_XOR4, (u32)x, a, 0), (u32)x ^ (u32)a);
	CHECK_EQ(acp_op_result(ACP_OP_OR8, x, a, 0), x | a);
	CHECK_EQ((u32)acp_op_result(ACP_OP_OR4, (u32)x, a, 0), (u32)x | (u32)a);
	CHECK_EQ(acp_op_result(ACP_OP_AND8, x, a, 0), x & a);
	CHECK_EQ((u32)acp_op_result(ACP_OP_AND4, (u32)x, a, 0), (u32)x & (u32)a);
}

TEST(plan__all_placements)
{
	CHECK_EQ(acp_cmd_plan(0, 0, 0), ACP_PLAN_LOCAL);
	CHECK_EQ(acp_cmd_plan(0, 0, 1), ACP_PLAN_SEND);
	CHECK_EQ(acp_cmd_plan(0, 1, 0), ACP_PLAN_DELEGATE);
	CHECK_EQ(acp_cmd_plan(0, 1, 1), ACP_PLAN_DELEGATE);
	CHECK_EQ(acp_cmd_plan(0, 1, 2), ACP_PLAN_DELEGATE);
}

TEST_MAIN
