// SPDX-License-Identifier: MIT
/*
 * kernel/core/nh.c: the tag of a long payload is that of PROTOCOL.md, however the payload is split;
 * and it depends on every bit.
 */
#include "longtag.h"
#include "nh.h"
#include "test.h"

#define HEAD	72
#define MOST	17000

static const uint8_t key_bytes[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
static uint64_t seed = 1;
static uint8_t head[96], data[MOST];
static struct siphash_key key;
static struct acp_nh_key nh;

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005 + 1442695040888963407;
	return *state >> 33;
}

static void begin(void)
{
	size_t i;

	key = siphash_key_of(key_bytes);
	acp_nh_derive(&nh, (u64[]){ key.k[0], key.k[1] });
	for (i = 0; i < sizeof(head); i++)
		head[i] = (uint8_t)next_random(&seed);
	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)next_random(&seed);
	head[0] = 1;
}

/* Compute the tag in pieces of at most "most" bytes; 0: in one. */
static uint64_t tag_of(size_t head_size, size_t size, size_t most)
{
	struct acp_tag_start start;
	struct acp_nh t;
	size_t at, n;

	acp_tag_begin(&start, (u64[]){ key.k[0], key.k[1] }, head);
	acp_nh_begin(&t, &nh, &start, head, (u32)head_size);
	for (at = 0; at < size; at += n) {
		n = most ? next_random(&seed) % (most + 1) : size;
		n = n < size - at ? n : size - at;
		acp_nh_add(&t, data + at, n);
	}
	return acp_nh_end(&t);
}

TEST(tag__of_every_size_is_as_written_down)
{
	static const size_t heads[] = { 72, 80, 96 };
	size_t size, i;

	begin();
	for (size = 0; size < 4200; size++)
		for (i = 0; i < 3; i++)
			CHECK_EQ(tag_of(heads[i], size, 0),
				 longtag(&key, head, heads[i], data, size));
	for (size = 8150; size < MOST; size += 1 + next_random(&seed) % 100)
		CHECK_EQ(tag_of(HEAD, size, 0), longtag(&key, head, HEAD, data, size));
	/* Also if the number begins with 0. */
	memset(head + 24, 0, 8);
	CHECK_EQ(tag_of(HEAD, 3000, 0), longtag(&key, head, HEAD, data, 3000));
}

TEST(tag__in_pieces_is_the_same)
{
	static const size_t most[] = { 1, 7, 15, 16, 17, 40, 1023, 2047, 2048, 2049, 4096 };
	size_t size, i;

	begin();
	for (size = 1; size < 9000; size += 1 + next_random(&seed) % 97)
		for (i = 0; i < sizeof(most) / sizeof(most[0]); i++)
			CHECK_EQ(tag_of(HEAD, size, most[i]), tag_of(HEAD, size, 0));
}

TEST(tag__at_any_address_is_the_same)
{
	uint64_t want;
	size_t i;

	begin();
	want = tag_of(HEAD, 3000, 0);
	for (i = 1; i < 64; i++) {
		struct acp_tag_start start;
		struct acp_nh t;

		memmove(data + i, data + i - 1, 3000);
		acp_tag_begin(&start, (u64[]){ key.k[0], key.k[1] }, head);
		acp_nh_begin(&t, &nh, &start, head, HEAD);
		acp_nh_add(&t, data + i, 3000);
		CHECK_EQ(acp_nh_end(&t), want);
	}
}

TEST(N4_every_bit_of_a_long_payload_changes_the_tag)
{
	const size_t size = ACP_NH_BLOCK + 200;
	uint64_t want;
	size_t bit;

	begin();
	want = tag_of(HEAD, size, 0);
	for (bit = 0; bit < 8 * size; bit++) {
		data[bit / 8] ^= 1 << bit % 8;
		CHECK(tag_of(HEAD, size, 0) != want);
		data[bit / 8] ^= 1 << bit % 8;
	}
	CHECK_EQ(tag_of(HEAD, size, 0), want);
}

/* A sum with keys that do not depend on the position would not detect this. */
TEST(N4_words_and_blocks_that_change_places_change_the_tag)
{
	static const size_t units[] = { 8, 16, 64, 2048 };
	uint8_t other[2048];
	size_t size = 4096, i, at;
	uint64_t want;

	begin();
	want = tag_of(HEAD, size, 0);
	for (i = 0; i < 4; i++) {
		for (at = 0; at + 2 * units[i] <= size; at += units[i]) {
			memcpy(other, data + at, units[i]);
			memmove(data + at, data + at + units[i], units[i]);
			memcpy(data + at + units[i], other, units[i]);
			CHECK(tag_of(HEAD, size, 0) != want);
			memcpy(other, data + at, units[i]);
			memmove(data + at, data + at + units[i], units[i]);
			memcpy(data + at + units[i], other, units[i]);
		}
	}
	CHECK_EQ(tag_of(HEAD, size, 0), want);
}

/* VECTORS.md. */
TEST(vectors__nh)
{
	uint64_t sum[2];
	size_t i;

	begin();
	for (i = 0; i < 2100; i++)
		data[i] = (uint8_t)i;
	CHECK_EQ(nh.words[0], 0x1d0ec7c7b4ce59ec);
	CHECK_EQ(nh.words[255], 0xcb601bc34edc8ba5);
	longtag_nh(&key, data, 24, sum);
	CHECK_EQ(sum[0], 0x2d6be4f469ab0427);
	CHECK_EQ(sum[1], 0x309d35be6360356f);
	for (i = 0; i < HEAD; i++)
		head[i] = (uint8_t)(i + 1);
	CHECK_EQ(tag_of(HEAD, 2100, 0), 0x9ef3b115dd2bcb1f);
}

TEST_MAIN
