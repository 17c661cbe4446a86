// SPDX-License-Identifier: MIT
/* kernel/core/cmd.c: strided copies. */
#include "cmd_play.h"

/* Return the entry of a strided copy as a command. */
static struct acp_msg strided(u32 block, u32 count, u64 a, u64 b)
{
	struct acp_msg m = { .op = ACP_OP_STRIDED, .size = ACP_BLOCKS(block, count), .a = a,
			     .b = b };

	layout = acp_ga_layout(10);
	m.dst = ga(1, 0, 4096);
	m.src = ga(9, 1, 4096);
	acp_cmd_from_entry(&m);
	return m;
}

static bool plain(struct acp_msg m, u64 size)
{
	return m.op == ACP_OP_COPY && m.size == size && !m.a && !m.b && !m.c &&
	       acp_cmd_check(&layout, 2, &m) == (size > ACP_COPY_MAX ? ACP_ST_OP : ACP_ST_OK);
}

TEST(strided__in_one_piece_it_is_a_copy)
{
	struct acp_msg m;

	CHECK(plain(strided(0, 7, 1, 2), 0));
	CHECK(plain(strided(7, 0, 1, 2), 0));
	CHECK(plain(strided(0, 0, 0, 0), 0));
	CHECK(plain(strided(~0u, 0, -1, -1), 0));
	CHECK(plain(strided(7, 1, 100, 100), 7));
	CHECK(plain(strided(~0u, 1, -1, 1), ~0u));
	CHECK(plain(strided(8, 9, 8, 8), 72));
	CHECK(plain(strided(~0u, ~0u, ~0u, ~0u), (u64)~0u * ~0u));
	m = strided(8, 9, 8, 16);
	CHECK(m.op == ACP_OP_STRIDED && m.size == 72 && m.c == ACP_BLOCKS(8, 9));
	CHECK(m.a == 8 && m.b == 16 && acp_cmd_check(&layout, 2, &m) == ACP_ST_OK);
	m = strided(~0u, ~0u, 1ULL << 32, 1ULL << 32);
	CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_OP);
}

/*
 * Overlapping blocks are rejected, because their number could be arbitrary; so are blocks beyond
 * the address range.
 */
TEST(strided__K3_what_is_refused_at_once)
{
	static const struct { u64 a, b; u8 status; } cases[] = {
		{ 8, 9, ACP_ST_OK }, { -8ULL, 8, ACP_ST_OK }, { 9, -8ULL, ACP_ST_OK },
		{ 7, 8, ACP_ST_OP }, { 8, 7, ACP_ST_OP }, { 0, 8, ACP_ST_OP }, { 8, 0, ACP_ST_OP },
		{ -7ULL, 8, ACP_ST_OP }, { 8, -1ULL, ACP_ST_OP },
		{ 1ULL << 62, 8, ACP_ST_RANGE }, { 8, 1ULL << 63, ACP_ST_RANGE },
		{ -1024ULL, 8, ACP_ST_OK }, { -1025ULL, 8, ACP_ST_RANGE },
		{ 8, -1024ULL, ACP_ST_OK }, { 8, -1025ULL, ACP_ST_RANGE },
	};
	struct acp_msg m;
	u32 i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		m = strided(8, 5, cases[i].a, cases[i].b);
		CHECK_EQ(acp_cmd_check(&layout, 2, &m), cases[i].status);
	}
	m = strided(8, 5, 9, 9);
	m.dst = 5;
	CHECK_EQ(acp_cmd_check(&layout, 2, &m), ACP_ST_GA);
}

typedef unsigned __int128 wide;

/* Check acp_strided_span() with numbers that cannot overflow. */
static void span_rule(u64 address, u64 stride, u64 desc)
{
	__int128 offset = acp_ga_offset(&layout, address), end = (__int128)1 << layout.offset_bits;
	__int128 far = (__int128)(int64_t)stride * (acp_strided_count(desc) - 1);
	__int128 low = far < 0 ? offset + far : offset;
	__int128 high = (far < 0 ? offset : offset + far) + acp_strided_block(desc);
	u64 first, size;
	bool ok = acp_strided_span(&layout, address, stride, desc, &first, &size);

	CHECK_EQ(ok, low >= 0 && high <= end);
	if (!ok)
		return;
	CHECK_EQ(first, address - (u64)offset + (u64)low);
	CHECK((wide)size == (wide)(high - low));
}

TEST(strided__K3_span_never_wraps)
{
	static const u64 strides[] = { 0, 1, -1ULL, 8, -8ULL, 1ULL << 63, ~0ULL >> 1, 1ULL << 62,
				       1ULL << 32, -(1ULL << 32), 1ULL << 39, -(1ULL << 39) };
	static const u32 numbers[] = { 1, 2, 3, 100, 1u << 16, 1u << 31, ~0u };
	u32 i, j, k;
	u64 n;

	layout = acp_ga_layout(10);
	for (i = 0; i < sizeof(strides) / sizeof(strides[0]); i++)
		for (j = 0; j < sizeof(numbers) / sizeof(numbers[0]); j++)
			for (k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
				u64 desc = ACP_BLOCKS(numbers[j], numbers[k]);

				span_rule(ga(1, 0, 0), strides[i], desc);
				span_rule(ga(1, 1, 12345), strides[i], desc);
				span_rule(ga(9, 1, (1ULL << layout.offset_bits) - 1), strides[i],
					  desc);
			}
	random_state = 7;
	for (n = 0; n < 1000000; n++) {
		u64 desc = ACP_BLOCKS((rnd() | 1ULL << 31) >> rnd() % 31,
				      ((rnd() & ~0u) | 1ULL << 31) >> rnd() % 31);

		span_rule(ga(rnd() % 10, rnd() % 2, (rnd() >> 20) % (1ULL << layout.offset_bits)),
			  (int64_t)rnd() >> rnd() % 63, desc);
	}
}

/* A walk from any position finds each byte of the stream as specified by block and stride. */
TEST(strided__walk)
{
	u32 n, i, at;

	random_state = 9;
	for (n = 0; n < 20000; n++) {
		u32 block = 1 + rnd() % 40, count = 2 + rnd() % 20, run;
		u64 stride = rnd() % 200 - 100, base = 1u << 20, desc = ACP_BLOCKS(block, count);
		struct acp_walk w;

		at = rnd() % (block * count);
		acp_walk_begin(&w, base, stride, desc, at);
		while (at < block * count) {
			run = acp_walk_run(&w, 1 + rnd() % 30);
			CHECK(run && run <= block);
			for (i = 0; i < run; i++)
				CHECK_EQ(w.at + i, base + (at + i) / block * stride +
						   (at + i) % block);
			acp_walk_skip(&w, run);
			at += run;
		}
		CHECK_EQ(at, block * count);
	}
}

/* Pieces of a strided transfer have its descriptor, and their position. */
TEST(strided__pieces)
{
	struct acp_out o = { .m = strided(10, 100, 64, -32ULL) };
	struct acp_msg m;
	u64 at = 0;
	bool fence;

	o.m.type = ACP_MSG_DATA;
	CHECK_EQ(acp_out_head(&o), 56);
	while (!o.finished) {
		u32 length = acp_out_cut(&o, 144);

		acp_out_piece(&o, at, length, &m, &fence);
		CHECK(m.dst == o.m.dst && m.a == 64 && m.b == at && m.c == ACP_BLOCKS(10, 100));
		CHECK(m.op == ACP_OP_STRIDED && m.length == length && !m.size);
		CHECK_EQ(!!(m.flags & ACP_MSG_LAST), at + length == 1000);
		CHECK_EQ(fence, at + length == 1000);
		at += length;
	}
	CHECK_EQ(at, 1000);
	acp_out_fail(&o, ACP_ST_STAG);
	acp_out_piece(&o, 144, 144, &m, &fence);
	CHECK(!m.op && !m.length && (m.flags & ACP_MSG_FAIL) && !(m.flags & ACP_MSG_LAST));
}

/* Only the last piece has a flag to change, unless the command failed. */
TEST(strided__flag_goes_with_the_last_piece)
{
	struct acp_out o = { .m = good_cmd(ACP_OP_COPY_ADD) };
	struct acp_msg m;
	bool fence;

	o.m.type = ACP_MSG_DATA;
	acp_out_piece(&o, 0, 64, &m, &fence);
	CHECK(!m.op && !fence);
	acp_out_piece(&o, 64, 36, &m, &fence);
	CHECK(m.op == ACP_OP_COPY_ADD && fence && (m.flags & ACP_MSG_LAST) && m.c == o.m.c);
	CHECK(m.dst == o.m.dst + 64 && m.b == o.m.b);
	acp_out_fail(&o, ACP_ST_STAG);
	acp_out_piece(&o, 64, 36, &m, &fence);
	CHECK(!m.op && (m.flags & ACP_MSG_FAIL) && (m.flags & ACP_MSG_LAST));
	o = (struct acp_out){ .m = good_cmd(ACP_OP_COPY_SET) };
	o.m.type = ACP_MSG_DATA;
	o.m.size = 0;
	CHECK(!acp_out_cut(&o, 100) && o.finished);
	acp_out_piece(&o, 0, 0, &m, &fence);
	CHECK(m.op == ACP_OP_COPY_SET && (m.flags & ACP_MSG_LAST) && !fence);
}

TEST_MAIN
