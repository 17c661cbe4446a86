// SPDX-License-Identifier: MIT
/*
 * Pieces that arrive in one GSO batch are processed at once, or one by one; encrypted batches are
 * decrypted frame by frame.
 */
#include "gso_play.h"

/* ---- Bursts: pieces of one copy, which are processed at once, or one by one ---- */

/* Send the added frames, in one batch or one by one. */
static void leave(bool together)
{
	size_t at, size = filled_up;

	if (together) {
		depart(each());
		return;
	}
	for (at = 0; at < size; at += each())
		inject_send(&x, batch + at, each());
	filled_up = 0;
}

#define ROW	9			/* pieces of a copy, including the last one */

/* Copy to that address. Returns its status. */
static int copy_by_hand(uint64_t ticket, uint64_t first, bool together)
{
	uint32_t i;

	for (i = 0; i < ROW; i++)
		add_piece(ticket, 2, first, i, false);
	leave(together);
	add_piece(ticket, 2, first, i, true);
	leave(false);
	return inject_done(&x, ticket);
}

/*
 * Check that the first "wanted" pieces are at their place, from place "at" on, and nothing follows.
 */
static void only_there(uint32_t at, uint32_t wanted)
{
	uint32_t i, b;

	for (i = 0; (at + i) * PIECE < VICTIM_SIZE; i++)
		for (b = 0; b < PIECE; b++)
			CHECK_EQ((unsigned char)target.addr[(at + i) * PIECE + b],
				 i < wanted ? i + 1 : 0);
	memset(target.addr, 0, VICTIM_SIZE);
}

/* Errors in a burst have the same effect as errors in single frames. */
static void refused(bool together, uint32_t integrity)
{
	const uint32_t end = VICTIM_SIZE / PIECE;
	struct memory constant;
	struct count bad;
	uint32_t i;

	play(false, integrity);
	bad = count("drop_bad_msg");
	/* The region ends within the burst, or within one of its pieces. */
	CHECK_EQ(copy_by_hand(1000, memory_ga(&target, (end - 4) * PIECE), together),
		 ACP_ST_RANGE);
	only_there(end - 4, 4);
	CHECK_EQ(copy_by_hand(1001, memory_ga(&target, VICTIM_SIZE - PIECE / 2), together),
		 ACP_ST_RANGE);
	only_there(0, 0);
	/* The region is not writable; or does not exist. */
	CHECK_EQ(rank_register(&victim, &constant, pages(VICTIM_SIZE, PROT_READ | PROT_WRITE),
			       VICTIM_SIZE, ACP_ACCESS_READ), 0);
	CHECK_EQ(copy_by_hand(1002, memory_ga(&constant, 0), together), ACP_ST_ACCESS);
	CHECK_EQ(copy_by_hand(1003, rank_ga(&victim, 0, 99, 0), together), ACP_ST_STAG);
	CHECK_EQ(copy_by_hand(1004, rank_ga(&victim, 3, ACP_STAG_USER, 0), together),
		 ACP_ST_RANK);
	for (i = 0; i < VICTIM_SIZE; i++)
		CHECK(!constant.addr[i]);
	nodes_counted(&bad, 0);
	/* Pieces of an unknown copy. */
	for (i = 0; i < ROW; i++)
		add_piece(1005, 4, memory_ga(&target, 0), i, false);
	leave(together);
	nodes_counted(&bad, ROW);
	inject_applied(&x, x.seq - 1);
	only_there(0, 0);
}

TEST(gso__burst_is_rejected)
{
	refused(true, ACP_INTEGRITY_TAG);
}

TEST(gso__burst_is_rejected_frame_by_frame)
{
	refused(false, ACP_INTEGRITY_TAG);
}

TEST(gso__encrypted_burst_is_rejected)
{
	refused(true, ACP_INTEGRITY_AEAD);
}

TEST(gso__encrypted_burst_is_rejected_frame_by_frame)
{
	refused(false, ACP_INTEGRITY_AEAD);
}

/* The region is unregistered, or its memory unmapped, between two bursts of a copy. */
static void goes(bool unregistered, uint32_t integrity)
{
	uint64_t first;
	uint32_t i, left;

	play(false, integrity);
	first = memory_ga(&target, 0);
	for (i = 0; i < ROW; i++)
		add_piece(1000, 2, first, i, false);
	depart(each());
	inject_applied(&x, x.seq - 1);
	all_there(0, ROW);
	if (unregistered) {
		CHECK_EQ(rank_unregister(&victim, target.reg.key, &left), 0);
		CHECK_EQ(left, 0);
	} else {
		CHECK_EQ((void *)mmap(target.addr, VICTIM_SIZE, PROT_READ | PROT_WRITE,
				      MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			 target.addr);
	}
	memset(target.addr, 0, VICTIM_SIZE);
	for (; i < 2 * ROW; i++)
		add_piece(1000, 2, first, i, false);
	depart(each());
	add_piece(1000, 2, first, i, true);
	leave(false);
	CHECK_EQ(inject_done(&x, 1000), ACP_ST_STAG);
	only_there(0, 0);
}

TEST(gso__region_is_unregistered_between_bursts)
{
	goes(true, ACP_INTEGRITY_TAG);
}

TEST(gso__region_is_revoked_between_bursts)
{
	goes(false, ACP_INTEGRITY_TAG);
}

TEST(gso__region_is_unregistered_between_encrypted_bursts)
{
	goes(true, ACP_INTEGRITY_AEAD);
}

/* One frame of a burst is a duplicate, or too far ahead: the others are accepted. */
static void duplicated(uint32_t integrity)
{
	struct count twice;
	char third[EACH + ACP_FRAME_ENCRYPTED];
	uint32_t i;

	play(false, integrity);
	twice = count("drop_duplicate");
	for (i = 0; i < ROW; i++) {
		char *at = add_piece(1000, 2, memory_ga(&target, 0), i, false);

		if (i == 3)
			memcpy(third, at, each());
	}
	inject_send(&x, third, each());
	await_piece(3);
	all_there(3, 4);
	depart(each());
	nodes_counted(&twice, 1);
	inject_applied(&x, x.seq - 1);
	only_there(0, ROW);
}

TEST(gso__burst_with_a_duplicate)
{
	duplicated(ACP_INTEGRITY_TAG);
}

TEST(gso__encrypted_burst_with_a_duplicate)
{
	duplicated(ACP_INTEGRITY_AEAD);
}

/* ---- Encrypted bursts ---- */

/* Valid ones of all lengths; then a complete one again. */
static void encrypted_bursts(bool ipv6, uint32_t cipher)
{
	struct count twice;
	uint32_t i, k;
	size_t size;

	play_encrypted(ipv6, cipher);
	twice = count("drop_duplicate");
	for (k = 2; k <= 40; k += k < 8 ? 1 : 8) {
		for (i = 0; i < k; i++)
			add_piece(1000 + k, 2, memory_ga(&target, 0), i, false);
		size = filled_up;
		depart(each());
		inject_applied(&x, x.seq - 1);
		only_there(0, k);
	}
	filled_up = size;
	depart(each());
	nodes_counted(&twice, k - 8);
	only_there(0, 0);
}

TEST(gso__encrypted_bursts)
{
	encrypted_bursts(false, 0);
}

TEST(gso__encrypted_bursts_aes)
{
	encrypted_bursts(false, BY_AES);
}

TEST(gso__encrypted_bursts_aegis)
{
	encrypted_bursts(false, BY_AEGIS);
}

TEST(gso__encrypted_bursts_aegis_ipv6)
{
	encrypted_bursts(true, BY_AEGIS);
}

/*
 * A bit of one frame is flipped: in its nonce, body or AEAD tag, or in its header, which the tag
 * detects. The others arrive, and its number is not used.
 */
static void flipped_encrypted(bool ipv6, uint32_t cipher)
{
	const size_t nonce = HEADER, body = HEADER + sizeof(struct acp_frame_nonce);
	struct count bad[2];
	uint64_t random = 7;
	char *at[ROW];
	uint32_t i, k;
	size_t byte;

	play_encrypted(ipv6, cipher);
	bad[0] = count("drop_bad_aead");
	bad[1] = count("drop_bad_mac");
	for (i = 0; i < 60; i++) {
		memset(target.addr, 0, VICTIM_SIZE);
		for (k = 0; k < ROW; k++)
			at[k] = add_piece(i, 2, memory_ga(&target, 0), k, false);
		if (i % 3 == 0)
			byte = offsetof(struct acp_frame_hdr, ack) + next_random(&random) % 8;
		else if (i % 3 == 1)
			byte = nonce + next_random(&random) % ACP_FRAME_NONCE;
		else
			byte = body + next_random(&random) % (each() - body);
		at[i % ROW][byte] ^= (char)(1 << i % 8);
		depart(each());
		nodes_counted(&bad[0], i + 1 - (i / 3 + 1));
		nodes_counted(&bad[1], i / 3 + 1);
		for (k = 0; k < ROW; k++)
			if (k != i % ROW)
				await_piece(k);
		CHECK(!is_there(i % ROW));
		at[i % ROW][byte] ^= (char)(1 << i % 8);
		inject_send(&x, at[i % ROW], each());
		inject_applied(&x, x.seq - 1);
		CHECK(is_there(i % ROW));
	}
}

TEST(N4_a_bit_of_an_encrypted_frame_in_a_batch)
{
	flipped_encrypted(false, 0);
}

TEST(N4_a_bit_of_a_frame_by_aes_in_a_batch)
{
	flipped_encrypted(false, BY_AES);
}

TEST(N4_a_bit_of_a_frame_by_aegis_in_a_batch)
{
	flipped_encrypted(false, BY_AEGIS);
}

TEST(N4_a_bit_of_a_frame_by_aegis_in_a_batch_ipv6)
{
	flipped_encrypted(true, BY_AEGIS);
}

/*
 * In one batch: frames with a wrong length (one of them with a valid tag), in clear, with another
 * cipher than stated, a duplicate, too far ahead, truncated. They are counted, and the others
 * arrive.
 */
static void wrong_encrypted(bool ipv6)
{
	static const char *const names[] = { "drop_bad_len", "drop_bad_flags", "drop_bad_aead",
		"drop_duplicate", "drop_future", "drop_bad_mac" };
	static const uint32_t wanted[] = { 3, 2, 1, 1, 1, 1 };
	struct acp_frame_hdr *h;
	struct count c[6];
	char *at[16];
	uint32_t i;

	play_encrypted(ipv6, BY_AEGIS);
	for (i = 0; i < 6; i++)
		c[i] = count(names[i]);
	for (i = 0; i < 16; i++) {
		if (i == 9)
			x.seq += ACP_FRAME_WINDOW;
		at[i] = add_piece(1000, 2, memory_ga(&target, 0), i, false);
		if (i == 9)
			x.seq -= ACP_FRAME_WINDOW + 1;
	}
	h = (void *)at[1];		/* its tag is wrong, but checked later */
	h->length = htons(ntohs(h->length) - 8);
	h = (void *)at[3];
	h->length = htons(ntohs(h->length) + 8);
	inject_sign(&x, h, HEADER, each());
	h = (void *)at[5];
	h->flags &= (uint8_t)~ACP_FRAME_AEAD;
	inject_sign(&x, h, each(), each());
	((struct acp_frame_nonce *)(at[6] + HEADER))->cipher |= htonl(1 << 20);
	((struct acp_frame_nonce *)(at[7] + HEADER))->cipher ^= htonl(ACP_CIPHER_AEGIS);
	at[11][0] ^= 1;
	memcpy(at[13], at[12], each());
	filled_up -= 8;
	depart(each());
	for (i = 0; i < 6; i++)
		nodes_counted(&c[i], wanted[i]);
	for (i = 0; i < 16; i++)
		CHECK_EQ(is_there(i), i % 2 == 0 && i != 6);
}

TEST(gso__some_encrypted_ones_are_wrong)
{
	wrong_encrypted(false);
}

TEST(gso__some_encrypted_ones_are_wrong_ipv6)
{
	wrong_encrypted(true);
}

/* Fenced frames within a batch wait for one that arrives later. */
TEST(gso__encrypted_fenced_before_its_time)
{
	char late[EACH + ACP_FRAME_ENCRYPTED];
	struct count held;
	uint32_t i;

	play_encrypted(false, BY_AEGIS);
	held = count("rx_held");
	memcpy(late, add_piece(1000, 2, memory_ga(&target, 0), 0, false), each());
	filled_up = 0;
	for (i = 1; i < 8; i++)
		add_piece(1000, 2, memory_ga(&target, 0), i, i == 4);
	depart(each());
	nodes_counted(&held, 1);
	all_there(1, 4);
	all_there(5, 8);
	CHECK(!is_there(0) && !is_there(4));
	inject_send(&x, late, each());
	inject_applied(&x, x.seq - 1);
	all_there(0, 8);
}

/* Batches sent by the kernel, as received by a plain socket: each frame is valid by itself. */
static void heard_by_hand(bool ipv6, uint32_t cipher)
{
	static char body[INJECT_MAX], copy[VICTIM_SIZE];
	struct acp_frame f;
	struct acp_msg m;
	uint64_t to;

	play_encrypted(ipv6, cipher);
	to = rank_ga(&victim, 2, ACP_STAG_HEAP, 0);
	inject_applied(&x, inject_put(&x, 2, 99, memory_ga(&target, 0), body, 8));
	fill(target.addr, VICTIM_SIZE, 4);
	rank_copy(&victim, to, memory_ga(&target, 0), VICTIM_SIZE, 0);
	while (!filled(copy, VICTIM_SIZE, 4)) {
		inject_expect(&x, &f, body);
		if (f.type != ACP_FRAME_DATA)
			continue;
		CHECK_EQ(acp_msg_decode(&m, body, f.length, f.length), f.length);
		CHECK_EQ(m.type, ACP_MSG_DATA);
		CHECK(m.dst - to <= VICTIM_SIZE - m.length);
		memcpy(copy + (m.dst - to), body + acp_msg_head(&m), m.length);
		inject_ack(&x);
	}
}

TEST(gso__encrypted_batches_are_received_by_a_simulated_peer)
{
	heard_by_hand(false, 0);
}

TEST(gso__encrypted_batches_are_received_by_a_simulated_peer_aes)
{
	heard_by_hand(false, BY_AES);
}

TEST(gso__encrypted_batches_are_received_by_a_simulated_peer_aegis)
{
	heard_by_hand(false, BY_AEGIS);
}

TEST(gso__encrypted_batches_are_received_by_a_simulated_peer_aegis_ipv6)
{
	heard_by_hand(true, BY_AEGIS);
}
