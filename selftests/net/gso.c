// SPDX-License-Identifier: MIT
/*
 * GSO batches: long frames to one peer are sent as one datagram of the kernel (UDP GSO) if the path
 * supports it, and one by one otherwise; contents arrive unchanged. Also invalid batches, and
 * batches that mix frames in a way that no sender does: each of their frames is validated
 * separately.
 */
#include "gso_play.h"

/* ---- Batches sent by the kernel ---- */

static struct rank r[2];
static struct memory from, to;

static void begin(bool ipv6, uint32_t integrity)
{
	const struct acp_join wish = { .integrity = integrity, .timeout_ms = 30000 };

	nodes_open(&n, 2, 1, ipv6);
	nodes_ranks_like(&n, r, 2, &wish);
	memory_open(&r[0], &from, LONG + 4096);
	memory_open(&r[1], &to, LONG + 4096);
	/* A sender batches frames to a peer that it knows. */
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&to, 0), memory_ga(&from, 0), 8), ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&from, 0), memory_ga(&to, 0), 8), ACP_ST_OK);
}

/* Frames that node 0 sends again, which it does too soon on a slow machine, go one by one. */
static long long sent_again(void)
{
	return nodes_counter(&n, 0, "tx_retransmits");
}

/*
 * Copy in both directions, to and from all kinds of addresses. A source does not change before
 * copies that the network has kept have arrived.
 */
static long long frames_per_datagram(unsigned int late_ms)
{
	static const size_t sizes[] = { LONG, LONG - 1, 100000, 20001, 4096 };
	long long frames = nodes_counter(&n, 1, "rx_frames"), before = batches_datagrams(&n, 1);
	long long again = sent_again();
	uint32_t i;

	for (i = 0; i < 10; i++) {
		size_t size = sizes[i % 5], a = i * 397 % 4096, b = i % 2 ? a : i * 1009 % 4096;
		bool back = i % 3 == 2;
		struct memory *src = back ? &to : &from, *dst = back ? &from : &to;

		sleep_ms(late_ms);
		fill(src->addr + a, size, i);
		memset(dst->addr, 0, LONG + 4096);
		CHECK_EQ(rank_do_copy(&r[0], memory_ga(dst, b), memory_ga(src, a), size),
			 ACP_ST_OK);
		CHECK(filled(dst->addr + b, size, i));
		CHECK(!b || !dst->addr[b - 1]);
		CHECK(!dst->addr[b + size]);
	}
	frames = nodes_counter(&n, 1, "rx_frames") - frames;
	CHECK(frames > 500);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
	CHECK_EQ(nodes_counters(&n, "drop_bad_len"), 0);
	CHECK_EQ(nodes_counters(&n, "drop_bad_mac"), 0);
	CHECK_EQ(nodes_counters(&n, "drop_bad_aead"), 0);
	again = sent_again() - again;
	before = batches_datagrams(&n, 1) - before;
	printf("# %lld frames in %lld datagrams, %lld sent again\n", frames, before, again);
	return before > again ? 100 * (frames - again) / (before - again) : 0;
}

static const struct batches long_copies = { &n, begin, frames_per_datagram };

static void together(bool ipv6, uint32_t integrity)
{
	begin(ipv6, integrity);
	batches_share_datagrams(&long_copies);
}

TEST(gso__long_copies)
{
	together(false, ACP_INTEGRITY_TAG);
}

TEST(gso__long_copies_ipv6)
{
	together(true, ACP_INTEGRITY_TAG);
}

/* The same for encrypted frames. */
TEST(gso__long_encrypted_copies)
{
	together(false, ACP_INTEGRITY_AEAD);
}

TEST(gso__long_encrypted_copies_ipv6)
{
	together(true, ACP_INTEGRITY_AEAD);
}

/* ... with AES-256-GCM if the CPU supports it. */
TEST(gso__long_encrypted_copies_without_aegis)
{
	nodes_allow_aegis(false);
	together(false, ACP_INTEGRITY_AEAD);
	nodes_allow_aegis(true);
}

/* ... and in a job with integrity udp. */
TEST(gso__without_tags_of_payloads)
{
	together(false, ACP_INTEGRITY_UDP);
}

TEST(gso__with_checksums)
{
	together(false, ACP_INTEGRITY_CRC32C);
}

/* A firewall that processes each datagram, and connection tracking, do not prevent batches. */
TEST(gso__through_a_firewall)
{
	if (system("unshare -n nft add table inet probe >/dev/null 2>&1"))
		SKIP("this kernel has no nf_tables");
	begin(false, ACP_INTEGRITY_TAG);
	nodes_run(&n, 1, "nft 'table inet t { chain in { type filter hook input priority 0; "
		  "policy drop; udp dport 16707 ct state new,established accept; "
		  "meta l4proto icmp accept; }; }'");
	nodes_run(&n, 0, "nft 'table inet t { chain out { type filter hook output priority 0; "
		  "policy drop; udp dport 16707 accept; }; }'");
	batches_share_datagrams(&long_copies);
}

/*
 * If addresses or rules change, IPv6 routes are checked anew, as at the end of duplicate address
 * detection, but they stay the same: batches arrive whole, without waiting for an entry to expire.
 */
TEST(gso__another_address_comes_ipv6)
{
	int tries = 5, i;

	begin(true, ACP_INTEGRITY_TAG);
	batches_share_datagrams(&long_copies);
	for (i = 1; i <= 5; i++) {
		nodes_run(&n, 1, "ip -6 addr add fd00:77::%d/64 dev eth0", i);
		while (frames_per_datagram(0) <= 300)
			CHECK(--tries);
		nodes_run(&n, 1, "ip -6 rule add pref %d from fd99::%d lookup main", 10 + i, i);
		while (frames_per_datagram(0) <= 300)
			CHECK(--tries);
	}
}

/* A device without GSO is given single frames, and so is a path that would corrupt batches. */
static void taken_apart(bool ipv6, uint32_t integrity)
{
	begin(ipv6, integrity);
	nodes_run(&n, 0, "ip link set eth0 gso_max_segs 1");
	nodes_run(&n, 1, "ip link set eth0 gso_max_segs 1");
	CHECK(frames_per_datagram(0) <= 130);	/* acknowledgements are not counted as frames */
}

TEST(gso__card_takes_none)
{
	taken_apart(false, ACP_INTEGRITY_TAG);
}

TEST(gso__card_takes_none_ipv6)
{
	taken_apart(true, ACP_INTEGRITY_TAG);
}

TEST(gso__card_takes_none_checksums)
{
	taken_apart(false, ACP_INTEGRITY_CRC32C);
}

TEST(gso__card_takes_none_encrypted)
{
	taken_apart(false, ACP_INTEGRITY_AEAD);
}

TEST(gso__card_takes_none_encrypted_ipv6)
{
	taken_apart(true, ACP_INTEGRITY_AEAD);
}

TEST(gso__loss)
{
	batches_lost(&long_copies, ACP_INTEGRITY_TAG);
}

TEST(gso__duplicates_out_of_order)
{
	batches_disordered(&long_copies, ACP_INTEGRITY_TAG);
}

TEST(gso__loss_encrypted)
{
	batches_lost(&long_copies, ACP_INTEGRITY_AEAD);
}

TEST(gso__duplicates_out_of_order_encrypted)
{
	batches_disordered(&long_copies, ACP_INTEGRITY_AEAD);
}

static void swallowed(uint32_t integrity)
{
	uint32_t bit;

	begin(false, integrity);
	nodes_run(&n, NODES_HUB, "tc qdisc add dev port0.1 clsact");
	for (bit = 0x800; bit < 0x10000; bit <<= 1)	/* of the length of the datagram */
		nodes_run(&n, NODES_HUB, "tc filter add dev port0.1 egress protocol ip u32 "
			  "match u16 0x%x 0x%x at 2 action drop", bit, bit);
	fill(from.addr, LONG, 3);
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&to, 5), memory_ga(&from, 0), LONG), ACP_ST_OK);
	CHECK(filled(to.addr + 5, LONG, 3));
	CHECK(nodes_counters(&n, "tx_retransmits") > 100);
}

TEST(gso__path_that_swallows_batches)
{
	swallowed(ACP_INTEGRITY_TAG);
}

TEST(gso__path_that_swallows_encrypted_batches)
{
	swallowed(ACP_INTEGRITY_AEAD);
}

#define COPIES	6	/* number of copies; on a slow machine they take longer */

static volatile bool over;
static uint32_t copied;

/* Copies one after the other, to the current registration of the memory. */
static void *copies(void *key)
{
	while (!over) {
		int status = rank_do_copy(&r[0], __atomic_load_n((uint64_t *)key, __ATOMIC_ACQUIRE),
					  memory_ga(&from, 0), LONG);

		CHECK(status == ACP_ST_OK || status == ACP_ST_STAG);
		__atomic_add_fetch(&copied, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Memory is unregistered while batches arrive: afterwards it does not change. */
static void unregistered(uint32_t integrity)
{
	uint64_t end = in_ms(test_short() ? 2000 : 4000), first, change = 0;
	uint32_t left;
	pthread_t thread;

	begin(false, integrity);
	memset(from.addr, 0x55, LONG);
	first = memory_ga(&to, 0);
	CHECK_EQ(pthread_create(&thread, NULL, copies, &first), 0);
	while (now_ns() < end || __atomic_load_n(&copied, __ATOMIC_RELAXED) < COPIES) {
		sleep_ms(1 + (unsigned int)(next_random(&change) % 8));
		CHECK_EQ(rank_unregister(&r[1], to.reg.key, &left), 0);
		memset(to.addr, 0x11, LONG);
		sleep_ms(5);
		for (left = 0; left < LONG; left++)
			CHECK_EQ(to.addr[left], 0x11);
		CHECK_EQ(rank_register(&r[1], &to, to.addr, to.size, ACP_ACCESS_ALL), 0);
		__atomic_store_n(&first, memory_ga(&to, 0), __ATOMIC_RELEASE);
	}
	over = true;
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(gso__unregistered_while_batches_come)
{
	unregistered(ACP_INTEGRITY_TAG);
}

TEST(gso__unregistered_while_encrypted_batches_come)
{
	unregistered(ACP_INTEGRITY_AEAD);
}

/* ---- Batches sent by the test ---- */

TEST(gso__played_by_hand)
{
	good(false, ACP_INTEGRITY_TAG);
}

TEST(gso__played_by_hand_ipv6)
{
	good(true, ACP_INTEGRITY_TAG);
}

TEST(gso__played_by_hand_without_tags_of_payloads)
{
	good(false, ACP_INTEGRITY_UDP);
}

/* Short frames, encrypted ones, and fenced ones: the kernel sends few of them in a batch. */
static void of_kind(uint32_t integrity, uint8_t flags)
{
	uint32_t i;

	play(false, integrity);
	for (i = 0; i < 20; i++)
		add_put(i, flags);
	depart(EACH + (integrity == ACP_INTEGRITY_AEAD ? ACP_FRAME_ENCRYPTED : 0));
	inject_applied(&x, x.seq - 1);
	all_there(0, 20);
}

TEST(gso__of_tagged_frames)
{
	of_kind(ACP_INTEGRITY_TAG, 0);
}

TEST(gso__of_encrypted_frames)
{
	of_kind(ACP_INTEGRITY_AEAD, 0);
}

TEST(gso__of_fenced_frames)
{
	of_kind(ACP_INTEGRITY_TAG, ACP_FRAME_BULK | ACP_FRAME_FENCE);
}

/* Fenced frames wait for one that arrives later. */
TEST(gso__fenced_before_its_time)
{
	struct count held;
	char late[EACH];
	uint32_t i;

	play(false, ACP_INTEGRITY_TAG);
	held = count("rx_held");
	memcpy(late, add_put(0, ACP_FRAME_BULK), EACH);
	filled_up = 0;
	for (i = 1; i < 6; i++)
		add_put(i, ACP_FRAME_BULK | (i == 2 || i == 4 ? ACP_FRAME_FENCE : 0));
	depart(EACH);
	nodes_counted(&held, 2);
	all_there(1, 2);
	all_there(3, 4);
	all_there(5, 6);
	CHECK(!is_there(0) && !is_there(2) && !is_there(4));
	inject_send(&x, late, EACH);
	inject_applied(&x, x.seq - 1);
	all_there(0, 6);
}

/* Corrupt a frame in one of several ways. */
static void spoil(struct acp_frame_hdr *h, uint32_t way)
{
	switch (way) {
	case 3:
		h->version = 9;
		break;
	case 5:
		h->type = 9;
		break;
	case 7:
		h->length = htons(EACH - HEADER - 8);
		break;
	case 9:
		h->job = htonl(x.base.job + 1);
		break;
	case 11:
		h->node = htonl(0);
		break;
	case 13:
		h->epoch_src = htonl(1);
		break;
	case 17:
		h->seq = cpu_to_be64(x.seq + ACP_FRAME_WINDOW);
		break;
	case 19:
		((struct acp_msg_data *)(h + 1))->h.type = 99;
		break;
	case 21:
		h->flags |= ACP_FRAME_AEAD;
		break;
	}
	inject_sign(&x, h, HEADER + sizeof(struct acp_msg_data), EACH);
	if (way == 1)
		h->tag ^= 1;
}

/* Some frames are invalid in different ways: they are counted, and the others arrive. */
TEST(gso__some_are_wrong)
{
	static const char *const names[] = { "drop_bad_mac", "drop_bad_version", "drop_bad_type",
		"drop_bad_len", "drop_no_job", "drop_bad_source", "drop_bad_epoch",
		"drop_duplicate", "drop_future", "drop_bad_msg", "drop_bad_flags" };
	struct count c[11];
	char *at[24];
	uint32_t i;

	play(false, ACP_INTEGRITY_TAG);
	for (i = 0; i < 11; i++)
		c[i] = count(names[i]);
	for (i = 0; i < 24; i++)
		at[i] = add_put(i, ACP_FRAME_BULK);
	memcpy(at[15], at[14], EACH);
	for (i = 1; i < 23; i += 2)
		spoil((void *)at[i], i);
	depart(EACH);
	for (i = 0; i < 11; i++)
		nodes_counted(&c[i], 1);
	for (i = 0; i < 24; i++)
		CHECK_EQ(is_there(i), !(i % 2) || i == 23);
}

static long long drops_for_headers(void)
{
	return nodes_counter(&n, 0, "drop_bad_len") + nodes_counter(&n, 0, "drop_bad_version") +
	       nodes_counter(&n, 0, "drop_bad_type") + nodes_counter(&n, 0, "drop_bad_flags") +
	       nodes_counter(&n, 0, "drop_no_job");
}

/* Send the batch with at most 60 segments of that size. Returns the number of errors. */
static void send_wrong(size_t each)
{
	size_t size = each * 60 < filled_up ? each * 60 : filled_up;
	long long segments = (long long)((size + each - 1) / each), came = batches_datagrams(&n, 0);
	long long drops = drops_for_headers(), wanted;
	uint32_t k;

	filled_up = size;
	depart(each);
	for (k = 0; k < 100 && batches_datagrams(&n, 0) == came; k++)
		sleep_ms(20);
	came = batches_datagrams(&n, 0) - came;
	/* Segments shorter than a header are one error, unless UDP has segmented the batch. */
	wanted = each < HEADER && came == 1 ? 1 : segments;
	for (k = 0; k < 100 && drops_for_headers() - drops < wanted; k++)
		sleep_ms(20);
	if (drops_for_headers() - drops != wanted)
		FAIL("%zu bytes each: %lld drops in %lld datagrams, not %lld", each,
		     drops_for_headers() - drops, came, wanted);
}

/* Segment sizes that do not match frames. */
TEST(gso__of_any_geometry)
{
	static const size_t sizes[] = { 1, 7, 47, 48, 79, 80, 81, 88, 129, EACH - 1, EACH + 1,
		2 * EACH, 1400 };
	uint32_t i, k;
	char *first;

	play(false, ACP_INTEGRITY_TAG);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t seq = x.seq;

		first = add_put(20, ACP_FRAME_BULK);
		/* An even number of frames, so that no valid frame remains. */
		for (k = 0; k < 39; k++)
			add_put(21 + k % 20, ACP_FRAME_BULK);
		send_wrong(sizes[i]);
		for (k = 20; k < 41; k++)
			CHECK(!is_there(k));
		x.seq = seq;
	}
	CHECK(first);
	add_put(0, ACP_FRAME_BULK);
	add_put(1, ACP_FRAME_BULK);
	depart(EACH);
	inject_applied(&x, x.seq - 1);
	all_there(0, 2);
}

/* A batch with valid checksums, and one with a wrong one in the middle. */
TEST(gso__one_checksum_is_wrong)
{
	struct acp_frame_crc *c;
	struct count bad;
	uint32_t i;
	char *at;

	play(false, ACP_INTEGRITY_CRC32C);
	bad = count("drop_bad_crc");
	for (i = 0; i < 9; i++) {
		/* Its payload begins 8 bytes later: the last 8 are padding that is not written. */
		at = add_put(i, ACP_FRAME_BULK | ACP_FRAME_CRC);
		c = (void *)(at + HEADER + sizeof(struct acp_msg_data));
		memmove(c + 1, c, PIECE);
		c->reserved = 0;
		c->crc = cpu_to_be32(crc32c(c + 1, PIECE) ^ (i == 4));
		((struct acp_frame_hdr *)at)->length = htons(EACH + sizeof(*c) - HEADER);
		inject_sign(&x, at, HEADER + sizeof(struct acp_msg_data) + sizeof(*c),
			    EACH + sizeof(*c));
		filled_up += sizeof(*c);
	}
	depart(EACH + sizeof(*c));
	nodes_counted(&bad, 1);
	for (i = 0; i < 9; i++)
		CHECK_EQ(is_there(i), i != 4);
}

#define PAYLOAD	(HEADER + sizeof(struct acp_msg_data))	/* offset of the payload */

/*
 * One bit of the payload of a frame is flipped, and the UDP checksum is valid: all other frames of
 * the batch arrive. First independent puts, then pieces of a copy.
 */
static void flipped(bool ipv6, bool pieces)
{
	struct count bad;
	uint64_t random = 7;
	uint32_t i, k, bit;
	char *at[9];

	play(ipv6, ACP_INTEGRITY_TAG);
	bad = count("drop_bad_mac");
	for (i = 0; i < 60; i++) {
		memset(target.addr, 0, VICTIM_SIZE);
		for (k = 0; k < 9; k++)
			at[k] = pieces ? add_piece(i, 2, memory_ga(&target, 0), k, false) :
					 add_put(k, ACP_FRAME_BULK);
		bit = (uint32_t)(next_random(&random) % (8 * PIECE));
		at[i % 9][PAYLOAD + bit / 8] ^= (char)(1 << bit % 8);
		depart(EACH);
		nodes_counted(&bad, i + 1);
		for (k = 0; k < 9; k++)
			if (k != i % 9)
				await_piece(k);
		CHECK(!is_there(i % 9));
		/* Its number was not used. */
		at[i % 9][PAYLOAD + bit / 8] ^= (char)(1 << bit % 8);
		inject_send(&x, at[i % 9], EACH);
		inject_applied(&x, x.seq - 1);
		CHECK(is_there(i % 9));
	}
}

TEST(N4_a_bit_of_a_payload_in_a_batch)
{
	flipped(false, false);
}

TEST(N4_a_bit_of_a_payload_in_a_batch_ipv6)
{
	flipped(true, false);
}

TEST(N4_a_bit_of_a_piece_in_a_batch)
{
	flipped(false, true);
}

TEST(N4_a_bit_of_a_piece_in_a_batch_ipv6)
{
	flipped(true, true);
}

/* From an unknown sender: all frames are ignored. */
TEST(gso__from_an_unknown_sender)
{
	struct count c;
	uint32_t i;
	int own;

	play(false, ACP_INTEGRITY_TAG);
	c = count("drop_bad_source");
	for (i = 0; i < 20; i++)
		add_put(i, ACP_FRAME_BULK);
	own = x.fd;
	x.fd = inject_socket(&x, 1, n.address[1], ACP_PORT_DEFAULT + 1);
	depart(EACH);
	nodes_counted(&c, 20);
	close(x.fd);
	x.fd = own;
	inject_silence(&x, 100);
	for (i = 0; i < 20; i++)
		CHECK(!is_there(i));
}
