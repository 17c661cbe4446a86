// SPDX-License-Identifier: MIT
/*
 * Trains: long frames of one peer travel in one datagram of the kernel's (UDP
 * GSO) where the way allows it, and one by one where it does not; what is in
 * them arrives byte by byte.  And trains that nobody should send, or that mix
 * what a sender never mixes: each frame of them is judged by itself.
 */
#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sys/socket.h>

#include "../unit/crc32c.h"
#include "inject.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT	103
#endif

#define KB		1024UL
#define LONG		(256 * KB)
#define HEADER		sizeof(struct acp_frame_hdr)

static struct nodes n;

/* ---- Trains of the kernel's own ---- */

static struct rank r[2];
static struct memory from, to;

static void begin(bool ipv6, uint32_t integrity)
{
	const struct acp_join wish = { .integrity = integrity, .timeout_ms = 30000 };

	nodes_open(&n, 2, 1, ipv6);
	nodes_ranks_like(&n, r, 2, &wish);
	memory_open(&r[0], &from, LONG + 4096);
	memory_open(&r[1], &to, LONG + 4096);
	/* Who knows the other one takes its trains. */
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&to, 0), memory_ga(&from, 0), 8), ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&from, 0), memory_ga(&to, 0), 8), ACP_ST_OK);
}

/* Datagrams that UDP has given to sockets of a node. */
static long long datagrams(uint32_t node)
{
	long long value = -1, v6 = 0;
	char line[1000];
	FILE *f;

	nodes_enter(&n, node);
	f = fopen("/proc/thread-self/net/snmp", "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "Udp: ", 5))
			sscanf(line, "Udp: %lld", &value);
	fclose(f);
	f = fopen("/proc/thread-self/net/snmp6", "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "Udp6InDatagrams %lld", &v6);
	if (f)
		fclose(f);
	nodes_leave(&n);
	CHECK(value >= 0);
	return value + v6;
}

/*
 * Long copies in both directions, to and from addresses of every kind: how many frames came to
 * node 1 per datagram, in percent.
 */
static long long frames_per_datagram(void)
{
	static const size_t sizes[] = { LONG, LONG - 1, 100000, 20001, 4096 };
	long long frames = nodes_counter(&n, 1, "rx_frames"), before = datagrams(1);
	uint32_t i;

	for (i = 0; i < 10; i++) {
		size_t size = sizes[i % 5], a = i * 397 % 4096, b = i % 2 ? a : i * 1009 % 4096;
		bool back = i % 3 == 2;
		struct memory *src = back ? &to : &from, *dst = back ? &from : &to;

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
	return 100 * frames / (datagrams(1) - before);
}

/* Do they share datagrams?  Less where the machine pauses and frames are repeated alone. */
static void share_datagrams(void)
{
	int tries = 5;

	while (frames_per_datagram() <= 300)
		CHECK(--tries);
}

static void together(bool ipv6, uint32_t integrity)
{
	begin(ipv6, integrity);
	share_datagrams();
}

TEST(train__long_copies)
{
	together(false, ACP_INTEGRITY_UDP);
}

TEST(train__long_copies_ipv6)
{
	together(true, ACP_INTEGRITY_UDP);
}

TEST(train__with_checksums)
{
	together(false, ACP_INTEGRITY_CRC32C);
}

/* A firewall that looks at each datagram, and connection tracking, are no reason to be slow. */
TEST(train__through_a_firewall)
{
	if (system("unshare -n nft add table inet probe >/dev/null 2>&1"))
		SKIP("this kernel has no nf_tables");
	begin(false, ACP_INTEGRITY_UDP);
	nodes_run(&n, 1, "nft 'table inet t { chain in { type filter hook input priority 0; "
		  "policy drop; udp dport 16707 ct state new,established accept; "
		  "meta l4proto icmp accept; }; }'");
	nodes_run(&n, 0, "nft 'table inet t { chain out { type filter hook output priority 0; "
		  "policy drop; udp dport 16707 accept; }; }'");
	share_datagrams();
}

/* A card that takes no trains is given frames, and so is a path that would corrupt them. */
static void taken_apart(bool ipv6, uint32_t integrity)
{
	begin(ipv6, integrity);
	nodes_run(&n, 0, "ip link set eth0 gso_max_segs 1");
	nodes_run(&n, 1, "ip link set eth0 gso_max_segs 1");
	CHECK(frames_per_datagram() <= 130);	/* acknowledgements are not counted as frames */
}

TEST(train__card_takes_none)
{
	taken_apart(false, ACP_INTEGRITY_UDP);
}

TEST(train__card_takes_none_ipv6)
{
	taken_apart(true, ACP_INTEGRITY_UDP);
}

TEST(train__card_takes_none_checksums)
{
	taken_apart(false, ACP_INTEGRITY_CRC32C);
}

/* ... and whatever happens on the way to trains, or to what they are taken apart into. */
static void impaired(const char *netem, uint32_t integrity, bool apart)
{
	begin(false, integrity);
	if (apart)
		nodes_run(&n, 0, "ip link set eth0 gso_max_segs 1");
	nodes_impair_all(&n, netem);
	frames_per_datagram();
	nodes_impair_all(&n, "");
}

/* A train is lost as a whole: few are sent, and one must be. */
TEST(train__loss)
{
	impaired("loss 10%", ACP_INTEGRITY_UDP, false);
	CHECK(nodes_counters(&n, "tx_again") > 0);
}

TEST(train__duplicates_out_of_order)
{
	impaired("delay 1ms 1ms duplicate 20%", ACP_INTEGRITY_UDP, false);
	CHECK(nodes_counters(&n, "drop_duplicate") > 0);
}

TEST(train__path_that_swallows_trains)
{
	uint32_t bit;

	begin(false, ACP_INTEGRITY_UDP);
	nodes_run(&n, NODES_HUB, "tc qdisc add dev port0.1 clsact");
	for (bit = 0x800; bit < 0x10000; bit <<= 1)	/* of the datagram's length */
		nodes_run(&n, NODES_HUB, "tc filter add dev port0.1 egress protocol ip u32 "
			  "match u16 0x%x 0x%x at 2 action drop", bit, bit);
	fill(from.addr, LONG, 3);
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&to, 5), memory_ga(&from, 0), LONG), ACP_ST_OK);
	CHECK(filled(to.addr + 5, LONG, 3));
	CHECK(nodes_counters(&n, "tx_again") > 100);
}

/* ---- Trains that are played by hand ---- */

#define VICTIM_SIZE	(16 * KB)
#define PIECE		256		/* bytes of a payload */

static struct inject x;
static struct setup setup;
static struct rank victim, second;
static struct memory target;
static char train[60000];
static size_t filled_up;		/* bytes of it */

static void play(bool ipv6, uint32_t integrity)
{
	nodes_open(&n, 2, 1, ipv6);
	nodes_setup(&n, &setup, 0, 4);
	setup.join.integrity = integrity;
	nodes_join(&n, &victim, &setup);
	setup.join.rank = 1;
	nodes_join(&n, &second, &setup);
	memory_open(&victim, &target, VICTIM_SIZE);
	inject_open(&x, &n, 1, 0, &setup);
	rank_copy(&victim, rank_ga(&victim, 2, ACP_STAG_HEAP, 0), heap_ga(&victim, 0), 8, 0);
	inject_handshake(&x);
	CHECK_EQ(rank_wait(&victim, victim.last, 5000 * MS), ACP_ST_OK);
	inject_drain(&x);
	filled_up = 0;
}

/* Add a frame with a put of PIECE bytes to place i, which have the value i + 1; its datagram. */
static char *add_put(uint32_t i, uint8_t flags)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .flags = ACP_MSG_LAST, .origin = 2, .ticket = 100 + i,
		.dst = memory_ga(&target, i * PIECE), .length = PIECE,
	};
	char body[PIECE + 100], data[PIECE], *at = train + filled_up;

	memset(data, (int)i + 1, sizeof(data));
	f.flags |= flags;
	filled_up += inject_build(&x, at, &f, body, inject_message(body, &m, data));
	return at;
}

static bool is_there(uint32_t i)
{
	uint32_t b, count = 0;

	for (b = 0; b < PIECE; b++)
		count += (unsigned char)target.addr[i * PIECE + b] == i + 1;
	CHECK(!count || count == PIECE);
	return count;
}

/* Send it, in segments of "each" bytes.  It arrives as one datagram. */
static void depart(size_t each)
{
	int size = (int)each, none = 0;

	CHECK_EQ(setsockopt(x.fd, SOL_UDP, UDP_SEGMENT, &size, sizeof(size)), 0);
	inject_send(&x, train, filled_up);
	CHECK_EQ(setsockopt(x.fd, SOL_UDP, UDP_SEGMENT, &none, sizeof(none)), 0);
	filled_up = 0;
}

static struct count count(const char *name)
{
	return nodes_count(&n, 0, name);
}

#define EACH	(HEADER + sizeof(struct acp_msg_data) + PIECE)

static void all_there(uint32_t from_place, uint32_t end)
{
	for (; from_place < end; from_place++)
		if (!is_there(from_place))
			FAIL("piece %u is not there", from_place);
}

static void good(bool ipv6)
{
	long long before;
	uint32_t i;

	play(ipv6, ACP_INTEGRITY_UDP);
	before = datagrams(0);
	for (i = 0; i < 40; i++)
		add_put(i, ACP_FRAME_BULK);
	depart(EACH);
	inject_applied(&x, x.seq - 1);
	all_there(0, 40);
	CHECK_EQ(datagrams(0), before + 1);
	/* The last one may be shorter, and a train of two is one. */
	add_put(40, ACP_FRAME_BULK);
	add_put(41, ACP_FRAME_BULK);
	depart(EACH);
	inject_applied(&x, x.seq - 1);
	all_there(0, 42);
}

TEST(train__played_by_hand)
{
	good(false);
}

TEST(train__played_by_hand_ipv6)
{
	good(true);
}

/* Frames whose tag covers all, encrypted ones, and fenced ones: kernels put few of them in one. */
static void of_kind(uint32_t integrity, uint8_t flags)
{
	uint32_t i;

	play(false, integrity);
	for (i = 0; i < 20; i++)
		add_put(i, flags);
	depart(EACH + (integrity == ACP_INTEGRITY_AEAD ? ACP_FRAME_SEALED : 0));
	inject_applied(&x, x.seq - 1);
	all_there(0, 20);
}

TEST(train__of_tagged_frames)
{
	of_kind(ACP_INTEGRITY_UDP, 0);
}

TEST(train__of_encrypted_frames)
{
	of_kind(ACP_INTEGRITY_AEAD, 0);
}

TEST(train__of_fenced_frames)
{
	of_kind(ACP_INTEGRITY_UDP, ACP_FRAME_BULK | ACP_FRAME_FENCE);
}

/* Fenced frames wait for one that comes later. */
TEST(train__fenced_before_its_time)
{
	struct count held;
	char late[EACH];
	uint32_t i;

	play(false, ACP_INTEGRITY_UDP);
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

/* One of the ways in which a frame can be wrong. */
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
	inject_sign(&x, h, HEADER + sizeof(struct acp_msg_data));
	if (way == 1)
		h->tag ^= 1;
}

/* Some are wrong, each in its way: they are counted, and the others arrive. */
TEST(train__some_are_wrong)
{
	static const char *const names[] = { "drop_bad_mac", "drop_bad_version", "drop_bad_type",
		"drop_bad_len", "drop_no_job", "drop_bad_source", "drop_bad_epoch",
		"drop_duplicate", "drop_future", "drop_bad_msg", "drop_bad_flags" };
	struct count c[11];
	char *at[24];
	uint32_t i;

	play(false, ACP_INTEGRITY_UDP);
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

/* Geometries that fit no frames. */
TEST(train__of_any_geometry)
{
	static const size_t sizes[] = { 1, 7, 47, 48, 79, 80, 81, 88, 129, EACH - 1, EACH + 1,
		2 * EACH, 1400 };
	long long drops, wanted;
	uint32_t i, k;
	char *first;

	play(false, ACP_INTEGRITY_UDP);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t seq = x.seq;
		size_t size;

		first = add_put(20, ACP_FRAME_BULK);
		/* An even number of frames: none is left over that would be good. */
		for (k = 0; k < 39; k++)
			add_put(21 + k % 20, ACP_FRAME_BULK);
		size = sizes[i] * 60 < filled_up ? sizes[i] * 60 : filled_up;
		filled_up = size;
		drops = drops_for_headers();
		depart(sizes[i]);
		/* Below the size of a header a train is one mistake. */
		wanted = sizes[i] < HEADER ? 1 : (long long)((size + sizes[i] - 1) / sizes[i]);
		for (k = 0; k < 100 && drops_for_headers() - drops < wanted; k++)
			sleep_ms(20);
		CHECK_EQ(drops_for_headers() - drops, wanted);
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

/* A train with the right checksums, and one with a wrong one in its midst. */
TEST(train__one_checksum_is_wrong)
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
		inject_sign(&x, at, HEADER + sizeof(struct acp_msg_data) + sizeof(*c));
		filled_up += sizeof(*c);
	}
	depart(EACH + sizeof(*c));
	nodes_counted(&bad, 1);
	for (i = 0; i < 9; i++)
		CHECK_EQ(is_there(i), i != 4);
}

/* Somebody else's: nothing of it counts. */
TEST(train__from_a_stranger)
{
	struct count c;
	uint32_t i;
	int own;

	play(false, ACP_INTEGRITY_UDP);
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

/* ---- Rows: pieces of one copy, which are taken in one go, or else one by one ---- */

/* Add piece i of the copy "ticket": "first" is where the first one goes. */
static char *add_piece(uint64_t ticket, uint32_t origin, uint64_t first, uint32_t i, bool last)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .flags = last ? ACP_MSG_LAST : 0, .origin = origin,
		.ticket = ticket, .dst = first + (uint64_t)i * PIECE, .length = PIECE,
	};
	char body[PIECE + 100], data[PIECE], *at = train + filled_up;

	memset(data, (int)i + 1, sizeof(data));
	f.flags |= ACP_FRAME_BULK | (last ? ACP_FRAME_FENCE : 0);
	filled_up += inject_build(&x, at, &f, body, inject_message(body, &m, data));
	return at;
}

/* What has been added, in one train, or each frame by itself. */
static void leave(bool together)
{
	size_t at, size = filled_up;

	if (together) {
		depart(EACH);
		return;
	}
	for (at = 0; at < size; at += EACH)
		inject_send(&x, train + at, EACH);
	filled_up = 0;
}

#define ROW	9			/* pieces of a copy, and the last one */

/* A copy to that address: how it ends. */
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

/* The first "wanted" pieces are where they should be, from place "at" on, and nothing is behind. */
static void only_there(uint32_t at, uint32_t wanted)
{
	uint32_t i, b;

	for (i = 0; (at + i) * PIECE < VICTIM_SIZE; i++)
		for (b = 0; b < PIECE; b++)
			CHECK_EQ((unsigned char)target.addr[(at + i) * PIECE + b],
				 i < wanted ? i + 1 : 0);
	memset(target.addr, 0, VICTIM_SIZE);
}

/* What is wrong with a row is wrong with some or all of its frames: as when they come alone. */
static void refused(bool together)
{
	const uint32_t end = VICTIM_SIZE / PIECE;
	struct memory constant;
	struct count bad;
	uint32_t i;

	play(false, ACP_INTEGRITY_UDP);
	bad = count("drop_bad_msg");
	/* Its region ends in the middle of it, or of one of its pieces. */
	CHECK_EQ(copy_by_hand(1000, memory_ga(&target, (end - 4) * PIECE), together),
		 ACP_ST_RANGE);
	only_there(end - 4, 4);
	CHECK_EQ(copy_by_hand(1001, memory_ga(&target, VICTIM_SIZE - PIECE / 2), together),
		 ACP_ST_RANGE);
	only_there(0, 0);
	/* It may not be written to; or there is no such region. */
	CHECK_EQ(rank_register(&victim, &constant, pages(VICTIM_SIZE, PROT_READ | PROT_WRITE),
			       VICTIM_SIZE, ACP_ACCESS_READ), 0);
	CHECK_EQ(copy_by_hand(1002, memory_ga(&constant, 0), together), ACP_ST_ACCESS);
	CHECK_EQ(copy_by_hand(1003, rank_ga(&victim, 0, 99, 0), together), ACP_ST_STAG);
	CHECK_EQ(copy_by_hand(1004, rank_ga(&victim, 3, ACP_STAG_USER, 0), together),
		 ACP_ST_RANK);
	for (i = 0; i < VICTIM_SIZE; i++)
		CHECK(!constant.addr[i]);
	nodes_counted(&bad, 0);
	/* Pieces of nobody's copy. */
	for (i = 0; i < ROW; i++)
		add_piece(1005, 4, memory_ga(&target, 0), i, false);
	leave(together);
	nodes_counted(&bad, ROW);
	inject_applied(&x, x.seq - 1);
	only_there(0, 0);
}

TEST(train__row_is_refused)
{
	refused(true);
}

TEST(train__row_is_refused_frame_by_frame)
{
	refused(false);
}

/* Between two rows of one copy its region goes: unregistered, or its memory is given back. */
static void goes(bool unregistered)
{
	uint64_t first;
	uint32_t i, left;

	play(false, ACP_INTEGRITY_UDP);
	first = memory_ga(&target, 0);
	for (i = 0; i < ROW; i++)
		add_piece(1000, 2, first, i, false);
	depart(EACH);
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
	depart(EACH);
	add_piece(1000, 2, first, i, true);
	leave(false);
	CHECK_EQ(inject_done(&x, 1000), ACP_ST_STAG);
	only_there(0, 0);
}

TEST(train__region_is_unregistered_between_rows)
{
	goes(true);
}

TEST(train__region_is_revoked_between_rows)
{
	goes(false);
}

/* One of a row is there already, or too far ahead: the others are taken. */
TEST(train__row_with_a_duplicate)
{
	struct count twice;
	char third[EACH];
	uint32_t i;

	play(false, ACP_INTEGRITY_UDP);
	twice = count("drop_duplicate");
	for (i = 0; i < ROW; i++) {
		char *at = add_piece(1000, 2, memory_ga(&target, 0), i, false);

		if (i == 3)
			memcpy(third, at, EACH);
	}
	inject_send(&x, third, EACH);
	for (i = 0; i < 100 && !is_there(3); i++)
		sleep_ms(20);
	all_there(3, 4);
	depart(EACH);
	nodes_counted(&twice, 1);
	inject_applied(&x, x.seq - 1);
	only_there(0, ROW);
}

#define COPIES	6	/* that are worth a test: on a slow machine they take longer */

static volatile bool over;
static uint32_t copied;

/* Copies one after the other, to wherever the memory is registered now. */
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

/* Memory is unregistered while trains come: from then on it stays as it is. */
TEST(train__unregistered_while_trains_come)
{
	uint64_t end = now_ns() + (test_short() ? 2000 : 4000) * MS, first, change = 0;
	uint32_t left;
	pthread_t thread;

	begin(false, ACP_INTEGRITY_UDP);
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
