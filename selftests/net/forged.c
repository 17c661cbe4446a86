// SPDX-License-Identifier: MIT
/* selftest: leaks */
/*
 * Forged frames, with and without the job key: memory of the victim does not change, each frame is
 * counted by its reason, unauthenticated senders get no answer, and the flow continues afterwards.
 */
#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "../dev/reload.h"
#include "inject.h"
#include "landing.h"

#define SIZE	(4 * PAGE)

/*
 * Node 0: the victim, rank 0, with memory that all may access; and rank 1, whose memory no other
 * rank may access. Node 1, ranks 2 and 3: simulated by the test. Node 2, ranks 4 and 5: uninvolved.
 */
static struct nodes n;
static struct inject x;
static struct setup setup;
static struct rank victim, second, bystander;
static struct memory target, closed, unaligned;
static uint32_t time_out;	/* ms, timeout of peers; 0: default */

static void join_as(struct rank *r, uint32_t rank)
{
	setup.join.rank = rank;
	nodes_join(&n, r, &setup);
}

/* Start with a victim that has joined, and accesses our node. */
static void begin_alone(bool ipv6, uint32_t integrity)
{
	nodes_open(&n, 3, 1, ipv6);
	nodes_setup(&n, &setup, 0, 6);
	setup.join.integrity = integrity;
	if (time_out)
		setup.join.timeout_ms = time_out;
	join_as(&victim, 0);
	join_as(&bystander, 4);
	memory_open(&victim, &target, SIZE);
	fill(target.addr, SIZE, 1);
	inject_open(&x, &n, 1, 0, &setup);
	rank_copy(&victim, rank_ga(&victim, 2, ACP_STAG_HEAP, 0), heap_ga(&victim, 0), 8, 0);
}

/* ... and so has its neighbour. */
static void begin_unheard(bool ipv6, uint32_t integrity)
{
	begin_alone(ipv6, integrity);
	join_as(&second, 1);
	CHECK_EQ(rank_register(&second, &closed, pages(SIZE, PROT_READ | PROT_WRITE), SIZE, 0), 0);
	CHECK_EQ(rank_register(&victim, &unaligned, pages(SIZE, PROT_READ | PROT_WRITE) + 16,
			       SIZE - 32, ACP_ACCESS_READ), 0);
	fill(closed.addr, SIZE, 2);
}

static void rendezvous(void)
{
	inject_handshake(&x);
	CHECK_EQ(rank_await(&victim, victim.last, PATIENCE_SOON), ACP_ST_OK);
	inject_drain(&x);
}

static void begin_with(bool ipv6, uint32_t integrity)
{
	begin_unheard(ipv6, integrity);
	rendezvous();
}

static void begin(void)
{
	begin_with(false, ACP_INTEGRITY_TAG);
}

static void untouched(const char *what)
{
	if (!filled(target.addr, SIZE, 1) || !filled(closed.addr, SIZE, 2))
		FAIL("%s: memory of the victim changed", what);
}

/* A valid put still works, and is answered. */
static void goes_on(void)
{
	uint64_t ticket = next_random(&(uint64_t){ now_ns() });
	char data[100];

	fill(data, sizeof(data), ticket);
	inject_applied(&x, inject_put(&x, 2, ticket, memory_ga(&target, 50), data, 100));
	CHECK(filled(target.addr + 50, 100, ticket));
	fill(target.addr, SIZE, 1);
}

/* Send valid frames of this form first: puts of 8 and of 100 bytes, for header prediction. */
static void send_predicted(void)
{
	stay_on(0);
	inject_applied(&x, inject_put(&x, 2, 1, memory_ga(&target, 0), "12345678", 8));
	CHECK(!memcmp(target.addr, "12345678", 8));
	goes_on();
}

/* Return a counter of the victim and its current value. */
static struct count count(const char *name)
{
	return nodes_count(&n, 0, name);
}

/* Build a put of 100 bytes to the target, as a message. */
static size_t put_message(void *out)
{
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .flags = ACP_MSG_LAST, .origin = 2, .ticket = 77,
		.dst = memory_ga(&target, 1000), .length = 100,
	};
	char data[100];

	memset(data, 0xee, sizeof(data));
	return inject_message(out, &m, data);
}

/* ... as a datagram with the next number, which was never sent. */
static size_t put_datagram(void *out)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
	char body[200];

	return inject_build(&x, out, &f, body, put_message(body));
}

TEST(hand_played_node_can_talk)
{
	static char data[60000];
	struct acp_msg m = {
		.type = ACP_MSG_CMD, .op = ACP_OP_COPY, .origin = 3, .ticket = 9, .size = 64,
	};
	char body[64];

	begin();
	goes_on();
	m.src = memory_ga(&target, 0);
	m.dst = memory_ga(&target, 128);
	inject_data(&x, body, inject_message(body, &m, NULL));
	CHECK_EQ(inject_done(&x, 9), ACP_ST_OK);
	CHECK(!memcmp(target.addr, target.addr + 128, 64));
	fill(target.addr, SIZE, 1);
	/* A datagram of many fragments. */
	fill(data, sizeof(data), 5);
	inject_applied(&x, inject_put(&x, 2, 10, heap_ga(&second, 0), data, sizeof(data)));
	CHECK(filled(second.heap, sizeof(data), 5));
}

/* ---- N4 ---- */

static void flips(bool ipv6, bool known)
{
	static const char *const other[] = { "drop_bad_len", "drop_bad_version", "drop_bad_type",
		"drop_bad_flags", "drop_no_job", "drop_bad_source" };
	struct count mac, all[sizeof(other) / sizeof(other[0])];
	char good[300], bad[300];
	size_t size, bit, i, first = 8 * offsetof(struct acp_frame_hdr, seq);
	long long sum = 0;

	begin_with(ipv6, ACP_INTEGRITY_TAG);
	if (known)
		send_predicted();
	mac = count("drop_bad_mac");
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		all[i] = count(other[i]);
	size = put_datagram(good);
	/* The words that header prediction compares come last: other predictions may match. */
	for (i = 0; i < size * 8; i++) {
		bit = (first + i) % (size * 8);
		memcpy(bad, good, size);
		bad[bit / 8] ^= (char)(1 << bit % 8);
		inject_send(&x, bad, size);
	}
	inject_silence(&x, 200);
	untouched("flipped bits");
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		sum += nodes_counter(&n, 0, all[i].name) - all[i].before;
	CHECK(sum < 600);	/* header fields; all others are detected by the tag */
	nodes_counted(&mac, (long long)size * 8 - sum);
	inject_send(&x, good, size);	/* the valid frame: its number was not used */
	inject_applied(&x, x.seq - 1);
	CHECK_EQ((unsigned char)target.addr[1000], 0xee);
}

TEST(N4_every_bit_of_a_frame_flipped)
{
	flips(false, false);
}

TEST(N4_every_bit_of_a_frame_flipped_ipv6)
{
	flips(true, false);
}

/* The victim validates less of predicted frames: their beginning must be unchanged. */
TEST(N4_every_bit_of_a_frame_of_a_known_kind)
{
	flips(false, true);
}

TEST(N4_every_bit_of_a_frame_of_a_known_kind_ipv6)
{
	flips(true, true);
}

/* Build a long put with a checksum, valid or not; 0: without. */
static size_t bulk_datagram(char *out, uint32_t crc, uint32_t reserved)
{
	struct acp_frame_crc c = { .crc = cpu_to_be32(crc), .reserved = cpu_to_be32(reserved) };
	static char data[1000], body[2000];
	const size_t head = sizeof(struct acp_msg_data);
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .flags = ACP_MSG_LAST, .origin = 2, .ticket = 5,
		.dst = memory_ga(&target, 0), .length = sizeof(data),
	};
	size_t size;

	memset(data, 0xdd, sizeof(data));
	size = inject_message(body, &m, data);
	f.flags = ACP_FRAME_BULK;
	if (crc) {
		f.flags |= ACP_FRAME_CRC;
		memmove(body + head + sizeof(c), body + head, size - head);
		memcpy(body + head, &c, sizeof(c));
		size += sizeof(c);
	}
	return inject_build(&x, out, &f, body, size);
}

#define BULK_CRC	0x8b55591du	/* the valid one */

/*
 * A man in the middle flips a bit anywhere and corrects the UDP checksum. The tag covers payloads
 * by default. To be brief, each ninth bit, which is a different one in each byte: the arithmetic
 * of the tag, which tells bits apart, is the same on each kernel.
 */
static void long_flips(bool ipv6)
{
	const size_t step = test_short() ? 9 : 1;
	static char good[2000], bad[2000];
	struct count mac, frames;
	size_t size, bit, first, number = 0;

	begin_with(ipv6, ACP_INTEGRITY_TAG);
	send_predicted();
	mac = count("drop_bad_mac");
	frames = count("rx_frames");
	size = bulk_datagram(good, 0, 0);
	first = sizeof(struct acp_frame_hdr) + sizeof(struct acp_msg_data);
	for (bit = 8 * first; bit < 8 * size; bit += step) {
		memcpy(bad, good, size);
		bad[bit / 8] ^= (char)(1 << bit % 8);
		inject_send(&x, bad, size);
		if (++number % 512 == 0)
			inject_silence(&x, 5);
	}
	inject_silence(&x, 200);
	nodes_counted(&mac, (long long)number);
	nodes_counted(&frames, 0);
	untouched("a flipped bit of a long payload");
	inject_send(&x, good, size);
	inject_applied(&x, x.seq - 1);
	CHECK_EQ((unsigned char)target.addr[999], 0xdd);
	fill(target.addr, SIZE, 1);
	goes_on();
}

TEST(N4_every_bit_of_a_long_payload_flipped)
{
	long_flips(false);
}

TEST(N4_every_bit_of_a_long_payload_flipped_ipv6)
{
	long_flips(true);
}

/* In a job with integrity crc32c, long payloads must have a valid checksum. */
TEST(N4_payload_of_a_long_frame)
{
	static char out[2000];
	struct count c;
	size_t size;
	uint32_t i;

	begin_with(false, ACP_INTEGRITY_CRC32C);
	c = count("drop_bad_crc");
	size = bulk_datagram(out, 0, 0);
	inject_send(&x, out, size);
	for (i = 0; i < 32; i++) {
		x.seq--;
		size = bulk_datagram(out, BULK_CRC ^ 1u << i, 0);
		inject_send(&x, out, size);
	}
	inject_silence(&x, 200);
	nodes_counted(&c, 33);
	untouched("wrong crc32c");
	x.seq--;
	size = bulk_datagram(out, BULK_CRC, 0);
	inject_send(&x, out, size);
	inject_applied(&x, x.seq - 1);
	CHECK_EQ((unsigned char)target.addr[999], 0xdd);
	fill(target.addr, SIZE, 1);
	goes_on();
}

/* ... and the reserved field next to it is 0 in all jobs. */
TEST(N6_reserved_field_of_the_crc)
{
	static char out[2000];
	struct count c;
	uint32_t i;

	begin();
	c = count("drop_bad_flags");
	for (i = 0; i < 32; i++) {
		inject_send(&x, out, bulk_datagram(out, BULK_CRC, 1u << i));
		x.seq--;
	}
	inject_silence(&x, 200);
	nodes_counted(&c, 32);
	untouched("a reserved field");
	goes_on();
}

/* ---- checks by UDP ---- */

/* Send a datagram from our address to that of the victim, with an arbitrary UDP header. */
static void send_raw(const void *payload, size_t size, size_t udp_length, uint16_t sum)
{
	struct sockaddr_in from, to;
	socklen_t length = sizeof(from);
	static char packet[4000];
	struct iphdr *ip = (void *)packet;
	struct udphdr *uh = (void *)(ip + 1);
	int fd;

	CHECK_EQ(getsockname(x.fd, (struct sockaddr *)&from, &length), 0);
	CHECK_EQ(getpeername(x.fd, (struct sockaddr *)&to, &length), 0);
	/* The kernel fills in length and checksum of IP. */
	*ip = (struct iphdr){
		.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
		.saddr = from.sin_addr.s_addr, .daddr = to.sin_addr.s_addr,
	};
	*uh = (struct udphdr){
		.source = from.sin_port, .dest = to.sin_port,
		.len = htons((uint16_t)udp_length), .check = htons(sum),
	};
	memcpy(uh + 1, payload, size);
	nodes_enter(&n, x.me);
	fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	nodes_leave(&n);
	CHECK(fd >= 0);
	size += sizeof(*ip) + sizeof(*uh);
	CHECK_EQ(sendto(fd, packet, size, 0, (void *)&to, sizeof(to)), size);
	close(fd);
}

/*
 * Send valid frames, which make the victim use the bypass: every second one takes the full stack.
 */
static void go_the_short_way(void)
{
	struct count c;
	int i;

	for (i = 0; i < 10; i++) {
		c = count("rx_direct");
		goes_on();
		if (nodes_counter(&n, 0, c.name) > c.before)
			break;
	}
	nodes_counted(&c, 1);
}

/* Build a long put with a wrong UDP checksum, with any integrity. */
static size_t wrong_sum(char *out, uint32_t integrity)
{
	struct count c;
	size_t size;

	begin_with(false, integrity);
	go_the_short_way();
	c = count("rx_frames");
	size = bulk_datagram(out, 0, 0);
	send_raw(out, size, size + sizeof(struct udphdr), 0x1234);
	inject_silence(&x, 200);
	nodes_counted(&c, 0);
	untouched("a wrong UDP checksum");
	return size;
}

/* If only the UDP checksum protects a long payload, there must be one. */
TEST(N4_udp_checksum_of_a_long_frame)
{
	static char out[2000];
	struct count c;
	size_t size, i;

	size = wrong_sum(out, ACP_INTEGRITY_UDP);
	c = count("drop_bad_crc");
	for (i = 0; i < 10; i++) {
		out[size - 1 - i] ^= 1;
		send_raw(out, size, size + sizeof(struct udphdr), 0);
	}
	inject_silence(&x, 200);
	nodes_counted(&c, 10);
	untouched("no UDP checksum");
	x.seq--;
	inject_send(&x, out, bulk_datagram(out, 0, 0));
	inject_applied(&x, x.seq - 1);
	CHECK_EQ((unsigned char)target.addr[999], 0xdd);
	fill(target.addr, SIZE, 1);
	goes_on();
}

/* No checksum is valid if the tag covers everything. */
TEST(N4_no_udp_checksum_of_a_frame_under_its_tag)
{
	static char out[2000];
	size_t size;

	size = wrong_sum(out, ACP_INTEGRITY_TAG);
	send_raw(out, size, size + sizeof(struct udphdr), 0);
	inject_applied(&x, x.seq - 1);
	CHECK_EQ((unsigned char)target.addr[999], 0xdd);
	fill(target.addr, SIZE, 1);
	goes_on();
}

TEST(N5_udp_length_is_another_one)
{
	static const int more[] = { 8, 1, 60000 };
	struct count c;
	char good[300];
	size_t size, i;

	begin();
	go_the_short_way();
	c = count("rx_frames");
	size = put_datagram(good);
	for (i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		send_raw(good, size, size + sizeof(struct udphdr) + (size_t)more[i], 0);
	inject_silence(&x, 200);
	nodes_counted(&c, 0);
	untouched("UDP's length is too long");
	/* Bytes after the end of the UDP datagram are ignored. */
	send_raw(good, size + 7, size + sizeof(struct udphdr), 0);
	inject_applied(&x, x.seq - 1);
	CHECK_EQ((unsigned char)target.addr[1099], 0xee);
	fill(target.addr, SIZE, 1);
	goes_on();
}

/* ---- N5 ---- */

TEST(N5_truncated_at_every_length)
{
	struct count len, mac, msg;
	char good[300];
	size_t size, i;

	begin();
	send_predicted();
	len = count("drop_bad_len");
	mac = count("drop_bad_mac");
	msg = count("drop_bad_msg");
	size = put_datagram(good);
	for (i = 0; i < size; i++)
		inject_send(&x, good, i);
	inject_silence(&x, 200);
	nodes_counted(&len, (long long)size);
	nodes_counted(&mac, 0);
	nodes_counted(&msg, 0);
	untouched("truncated frames");
	x.seq--;
	goes_on();
}

TEST(N5_longer_than_it_says)
{
	static char good[INJECT_MAX];
	static const size_t more[] = { 1, 2, 7, 8, 64, 1000, 10000, 60000 };
	struct count len;
	size_t size, i;

	begin();
	len = count("drop_bad_len");
	size = put_datagram(good);
	for (i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		inject_send(&x, good, size + more[i]);
	inject_send(&x, good, INJECT_MAX);
	inject_silence(&x, 200);
	nodes_counted(&len, 9);
	untouched("frames with something behind");
	x.seq--;
	goes_on();
}

/* The header matches the datagram and the tag is valid, but the body ends early. */
TEST(N5_body_cut_at_every_length)
{
	struct count len, msg;
	long long shorter = 0, cut = 0;
	char body[600];
	size_t one, size, i;

	begin();
	len = count("drop_bad_len");
	msg = count("drop_bad_msg");
	one = put_message(body);
	size = one + put_message(body + one);
	for (i = 0; i < size; i++) {
		struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);

		if (i == one) {		/* that would be one valid message */
			x.seq--;
			continue;
		}
		inject_frame(&x, &f, body, i);
		if (i < sizeof(struct acp_msg_hdr)) {
			shorter++;
			x.seq--;
		} else {
			cut++;
			if (cut % 50 == 0)
				inject_applied(&x, f.seq);
		}
	}
	nodes_counted(&len, shorter);
	nodes_counted(&msg, cut);
	untouched("cut bodies");
	goes_on();
}

TEST(N5_other_frames_of_every_length)
{
	static const uint8_t types[] = { ACP_FRAME_ACK, ACP_FRAME_HELLO };
	static const size_t right[] = { sizeof(struct acp_frame_ack),
					sizeof(struct acp_frame_hello) };
	struct count len;
	char body[200] = { 0 };
	size_t i, size;

	begin();
	len = count("drop_bad_len");
	for (i = 0; i < 2; i++) {
		for (size = 0; size < 100; size++) {
			struct acp_frame f = inject_header(&x, types[i]);

			/* The bit map of an ACK is optional. */
			if (size != right[i] && (size || types[i] != ACP_FRAME_ACK))
				inject_frame(&x, &f, body, size);
		}
	}
	inject_silence(&x, 200);
	nodes_counted(&len, 197);
	goes_on();
}

/* ---- N6 ---- */

/* Send a put whose header was changed after it was built, and tagged again. */
static void send_changed(size_t offset, uint8_t value)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
	char body[200], out[400];
	size_t size;

	x.seq--;
	size = inject_build(&x, out, &f, body, put_message(body));
	out[offset] = (char)value;
	inject_sign(&x, out, size, size);
	inject_send(&x, out, size);
}

TEST(N6_versions)
{
	struct count c;
	unsigned int v;

	begin();
	c = count("drop_bad_version");
	for (v = 0; v < 256; v++)
		if (v != ACP_FRAME_VERSION)
			send_changed(offsetof(struct acp_frame_hdr, version), (uint8_t)v);
	inject_silence(&x, 200);
	nodes_counted(&c, 255);
	untouched("unknown versions");
	goes_on();
}

TEST(N6_types)
{
	struct count c;
	unsigned int v;

	begin();
	c = count("drop_bad_type");
	for (v = 0; v < 256; v++)
		if (v < ACP_FRAME_DATA || v > ACP_FRAME_HELLO)
			send_changed(offsetof(struct acp_frame_hdr, type), (uint8_t)v);
	inject_silence(&x, 200);
	nodes_counted(&c, 253);
	untouched("unknown types");
	goes_on();
}

/* Send a frame with contradictory header fields. */
static void bad_header(const struct acp_frame *f, size_t length, const char *what)
{
	struct count c = count("drop_bad_flags");
	static char body[500];

	if (f->type == ACP_FRAME_DATA)
		put_message(body);
	inject_frame(&x, f, body, length);
	nodes_counted(&c, 1);
	untouched(what);
}

TEST(N6_flags_and_fields)
{
	static const uint8_t known[] = {
		[ACP_FRAME_DATA] = ACP_FRAME_FENCE | ACP_FRAME_BULK | ACP_FRAME_LAZY |
				   ACP_FRAME_MARKS,
		[ACP_FRAME_ACK] = ACP_FRAME_MARKS,
		[ACP_FRAME_HELLO] = ACP_FRAME_ASK | ACP_FRAME_AEAD,	/* see private.c */
	};
	static const size_t length[] = { [ACP_FRAME_DATA] = 136,
		[ACP_FRAME_ACK] = sizeof(struct acp_frame_ack),
		[ACP_FRAME_HELLO] = sizeof(struct acp_frame_hello) };
	struct acp_frame f;
	uint8_t type;
	int bit;

	begin();
	for (type = ACP_FRAME_DATA; type <= ACP_FRAME_HELLO; type++) {
		for (bit = 0; bit < 8; bit++) {
			f = inject_header(&x, type);
			f.flags = (uint8_t)(1 << bit);
			if (!(f.flags & known[type]))
				bad_header(&f, length[type], "an unknown flag");
		}
		f = inject_header(&x, type);
		f.epoch_src = 0;
		bad_header(&f, length[type], "no epoch");
		f = inject_header(&x, type);
		f.seq = type == ACP_FRAME_DATA ? 0 : 5;
		bad_header(&f, length[type], "a number for a frame that has none, or none");
		if (type != ACP_FRAME_HELLO) {
			f = inject_header(&x, type);
			f.epoch_dst = 0;
			bad_header(&f, length[type], "no epoch of the receiver");
		}
	}
	x.seq = x.acked;
	goes_on();
}

/* All predicted frames have a number: a frame without it does not match. */
TEST(N6_number_missing_in_a_frame_of_a_known_kind)
{
	struct acp_frame f;

	begin();
	send_predicted();
	f = inject_header(&x, ACP_FRAME_DATA);
	f.seq = 0;
	bad_header(&f, 136, "no number");
	x.seq--;
	goes_on();
}

/* Send a message that must be rejected; its frame has no effect. */
static void bad_message(const struct acp_msg *m, const char *what)
{
	struct count c = count("drop_bad_msg");
	char body[500];
	size_t size = put_message(body);

	size += inject_message(body + size, m, NULL);
	inject_applied(&x, inject_data(&x, body, size));
	nodes_counted(&c, 1);
	untouched(what);
}

TEST(N6_message_fields)
{
	static const struct acp_msg bad[] = {
		{ .type = ACP_MSG_DATA, .flags = 4, .origin = 2 },
		{ .type = ACP_MSG_DATA, .flags = 128, .origin = 2 },
		{ .type = ACP_MSG_DATA, .op = 1, .origin = 2 },
		{ .type = ACP_MSG_DATA, .op = ACP_OP_ADD8, .origin = 2, .flags = ACP_MSG_LAST },
		{ .type = ACP_MSG_DATA, .op = 17, .origin = 2, .flags = ACP_MSG_LAST },
		{ .type = ACP_MSG_DATA, .op = ACP_OP_APPEND, .origin = 2, .length = 8,
		  .c = ~0ULL },
		{ .type = ACP_MSG_DATA, .op = ACP_OP_COPY_SET, .origin = 2 },
		{ .type = ACP_MSG_DATA, .op = ACP_OP_STRIDED, .origin = 2, .c = ACP_BLOCKS(8, 9) },
		{ .type = ACP_MSG_CMD, .op = ACP_OP_STRIDED, .origin = 2, .c = ACP_BLOCKS(8, 1) },
		{ .type = ACP_MSG_CMD, .op = ACP_OP_STRIDED, .origin = 2, .c = ACP_BLOCKS(0, 8) },
		{ .type = ACP_MSG_DATA, .status = 1, .origin = 2 },
		{ .type = ACP_MSG_DATA, .flags = ACP_MSG_FAIL, .origin = 2 },
		{ .type = ACP_MSG_DATA, .flags = ACP_MSG_FAIL, .status = 1, .length = 8,
		  .origin = 2 },
		{ .type = ACP_MSG_DATA, .depends = 1, .origin = 2 },
		{ .type = ACP_MSG_DATA, .upto = 1, .origin = 2 },
		{ .type = ACP_MSG_DATA, .depends = 1, .upto = 2, .origin = 2 },
		{ .type = ACP_MSG_DATA, .origin = 6 },
		{ .type = ACP_MSG_DATA, .origin = ~0u },
		{ .type = ACP_MSG_CMD, .flags = 1, .op = ACP_OP_COPY, .origin = 2 },
		{ .type = ACP_MSG_CMD, .status = 1, .op = ACP_OP_COPY, .origin = 2 },
		{ .type = ACP_MSG_CMD, .op = ACP_OP_COPY, .origin = 0 },
		{ .type = ACP_MSG_CMD, .op = ACP_OP_COPY, .origin = 4 },
		{ .type = ACP_MSG_CMD, .op = ACP_OP_COPY, .origin = 6 },
		{ .type = ACP_MSG_DONE, .flags = 1, .origin = 0 },
		{ .type = ACP_MSG_DONE, .op = 1, .origin = 0 },
		{ .type = ACP_MSG_DONE, .depends = 2, .upto = 1, .origin = 0 },
		{ .type = ACP_MSG_DONE, .origin = 2 },
		{ .type = ACP_MSG_DONE, .origin = 6 },
		{ .type = ACP_MSG_BARRIER, .flags = 1, .origin = 1 },
		{ .type = ACP_MSG_BARRIER, .flags = 128, .origin = 1 },
		{ .type = ACP_MSG_BARRIER, .status = 1, .origin = 1 },
		{ .type = ACP_MSG_BARRIER, .origin = 2 },
		{ .type = ACP_MSG_PING, .flags = 1, .origin = 1 },
		{ .type = ACP_MSG_PING, .flags = 128, .origin = 1 },
		{ .type = ACP_MSG_PING, .op = 1, .origin = 1 },
		{ .type = ACP_MSG_PING, .status = 1, .origin = 1 },
		{ .type = ACP_MSG_PING, .length = 129, .origin = 1 },
		{ .type = ACP_MSG_PING, .origin = 0 },
		{ .type = ACP_MSG_PING, .origin = 2 },
	};
	struct count c;
	char body[500];
	size_t i, size;
	unsigned int type;

	begin();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char what[40];

		snprintf(what, sizeof(what), "bad message %zu", i);
		bad_message(&bad[i], what);
	}
	for (type = 0; type < 256; type++) {
		if (type >= ACP_MSG_DATA && type <= ACP_MSG_PING)
			continue;
		c = count("drop_bad_msg");
		size = put_message(body);
		size += put_message(body + size);
		body[size / 2] = (char)type;
		inject_applied(&x, inject_data(&x, body, size));
		nodes_counted(&c, 1);
	}
	untouched("unknown messages");
	goes_on();
}

/* A piece may be refused, so it is alone in its frame, or nothing of the frame is executed. */
TEST(N6_pieces_share_no_frames)
{
	struct acp_msg piece = { .type = ACP_MSG_DATA, .origin = 2, .ticket = 77, .length = 8 };
	static const char data[8];
	struct count c;
	char body[500];
	size_t size;

	begin();
	c = count("drop_bad_msg");
	piece.dst = memory_ga(&target, 0);
	size = put_message(body);
	size += inject_message(body + size, &piece, data);
	inject_applied(&x, inject_data(&x, body, size));
	size = inject_message(body, &piece, data);
	size += put_message(body + size);
	inject_applied(&x, inject_data(&x, body, size));
	nodes_counted(&c, 2);
	untouched("frames with a piece among others");
	goes_on();
}

TEST(N6_operations)
{
	struct acp_msg m = { .type = ACP_MSG_CMD, .origin = 3 };
	unsigned int op;

	begin();
	for (op = 0; op < 256; op++) {
		m.op = (uint8_t)op;
		if (!acp_op_travels((uint8_t)op))
			bad_message(&m, "no such operation");
	}
	goes_on();
}

/* A command has exactly the arguments of its operation. */
TEST(N6_length_of_a_command)
{
	struct acp_msg m = { .type = ACP_MSG_CMD, .origin = 3 };
	struct count c;
	char body[100];
	size_t right, size;

	begin();
	c = count("drop_bad_msg");
	m.src = memory_ga(&target, 0);
	m.dst = memory_ga(&target, 128);
	for (m.op = ACP_OP_COPY; m.op <= ACP_OP_GATHER; m.op++) {
		memset(body, 0, sizeof(body));
		right = inject_message(body, &m, NULL);
		for (size = right - 8; size <= right + 8; size++)
			if (size != right)
				inject_applied(&x, inject_data(&x, body, size));
	}
	nodes_counted(&c, 16 * (ACP_OP_GATHER - ACP_OP_COPY + 1));
	untouched("commands that are too short or too long");
	goes_on();
}

/* ---- N7 ---- */

TEST(N7_wrong_job_or_generation)
{
	struct inject other = { 0 };
	struct count c;
	int i;

	begin();
	c = count("drop_no_job");
	for (i = 0; i < 20; i++) {
		other = x;
		if (i & 1)
			other.base.job ^= 1u << i;
		else
			other.base.generation ^= (uint16_t)(1u << i % 16);
		inject_put(&other, 2, 1, memory_ga(&target, 0), "12345678", 8);
	}
	inject_silence(&x, 300);
	nodes_counted(&c, 20);
	untouched("wrong job");
	goes_on();
}

TEST(N7_wrong_key)
{
	static const uint8_t types[] = { ACP_FRAME_DATA, ACP_FRAME_ACK, ACP_FRAME_HELLO };
	struct inject other;
	struct count c;
	char body[200];
	size_t i;
	int bit;

	begin();
	c = count("drop_bad_mac");
	for (bit = 0; bit < 128; bit++) {
		other = x;
		other.key.k[bit / 64] ^= 1ULL << bit % 64;
		for (i = 0; i < 3; i++) {
			struct acp_frame f = inject_header(&other, types[i]);
			size_t size = types[i] == ACP_FRAME_DATA ? put_message(body) :
				      types[i] == ACP_FRAME_ACK ? sizeof(struct acp_frame_ack) :
				      sizeof(struct acp_frame_hello);

			if (types[i] == ACP_FRAME_HELLO)
				f.flags = ACP_FRAME_ASK;
			inject_frame(&other, &f, body, size);
		}
	}
	inject_silence(&x, 300);
	nodes_counted(&c, 3 * 128);
	untouched("wrong key");
	goes_on();
}

/* Another namespace of this kernel, with another job on the same port, is not affected. */
TEST(N7_wrong_namespace)
{
	struct inject other;
	struct setup s;
	struct rank alien;
	struct count c;
	char body[200];
	struct acp_frame f;

	begin();
	nodes_setup(&n, &s, 4, 6);
	s.join.job++;
	nodes_join(&n, &alien, &s);
	other = x;
	other.victim = 2;
	other.fd = inject_socket(&other, 1, n.address[1], ACP_PORT_DEFAULT + 1);
	close(other.fd);
	close(x.fd);
	other.fd = inject_socket(&other, 1, n.address[1], ACP_PORT_DEFAULT);
	c = nodes_count(&n, 2, "drop_bad_epoch");
	f = inject_header(&other, ACP_FRAME_DATA);
	inject_frame(&other, &f, body, put_message(body));
	inject_silence(&other, 200);
	nodes_counted(&c, 1);
	c = nodes_count(&n, 2, "drop_no_job");
	f.job += 5;
	inject_frame(&other, &f, body, put_message(body));
	inject_silence(&other, 200);
	nodes_counted(&c, 1);
	untouched("wrong namespace");
}

/* ---- N8 ---- */

/* Valid frames from another address or port do not count. */
static void from_elsewhere(uint32_t node, const char *address, uint16_t port)
{
	struct count c = count("drop_bad_source");
	struct inject other = x;
	struct acp_frame f;

	other.fd = inject_socket(&x, node, address, port);
	inject_put(&other, 2, 1, memory_ga(&target, 0), "12345678", 8);
	f = inject_header(&other, ACP_FRAME_HELLO);
	f.flags = ACP_FRAME_ASK;
	inject_frame(&other, &f, &x.setup, sizeof(x.setup));
	inject_silence(&other, 200);
	inject_silence(&x, 1);
	nodes_counted(&c, 2);
	untouched("wrong source");
	close(other.fd);
}

static void from_others(void)
{
	from_elsewhere(1, n.address[1], ACP_PORT_DEFAULT + 1);
	nodes_run(&n, 1, "ip addr add 10.9.0.77/24 dev eth0");
	from_elsewhere(1, "10.9.0.77", ACP_PORT_DEFAULT);
	nodes_run(&n, 2, "ip addr add 10.9.0.78/24 dev eth0");
	from_elsewhere(2, "10.9.0.78", ACP_PORT_DEFAULT);
	goes_on();
}

TEST(N8_wrong_source)
{
	begin();
	from_others();
}

TEST(N8_wrong_source_of_a_known_kind)
{
	begin();
	send_predicted();
	from_others();
}

static void from_others_ipv6(void)
{
	from_elsewhere(1, n.address[1], ACP_PORT_DEFAULT + 1);
	nodes_run(&n, 1, "ip addr add fd09::77/64 dev eth0 nodad");
	from_elsewhere(1, "fd09::77", ACP_PORT_DEFAULT);
	goes_on();
}

TEST(N8_wrong_source_ipv6)
{
	begin_with(true, ACP_INTEGRITY_TAG);
	from_others_ipv6();
}

TEST(N8_wrong_source_of_a_known_kind_ipv6)
{
	begin_with(true, ACP_INTEGRITY_TAG);
	send_predicted();
	from_others_ipv6();
}

TEST(N8_claims_to_be_another_node)
{
	static const uint32_t nodes[] = { 0, 2, 3, 4, 1000, ~0u };
	struct count c;
	struct inject other;
	size_t i;

	begin();
	c = count("drop_bad_source");
	for (i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		other = x;
		other.base.node = nodes[i];
		inject_put(&other, 2, 1, memory_ga(&target, 0), "12345678", 8);
	}
	for (i = 1; i < 256; i++) {
		other = x;
		other.base.color = (uint8_t)i;
		inject_put(&other, 2, 1, memory_ga(&target, 0), "12345678", 8);
	}
	inject_silence(&x, 200);
	nodes_counted(&c, 6 + 255);
	untouched("another node's number");
	goes_on();
}

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

/* ---- N11, N12, N13 ---- */

/* Send a HELLO of a node that has the key and different parameters of the job. */
static void send_mismatched(uint32_t src, uint32_t dst, uint8_t flags)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_HELLO);
	struct acp_frame_hello setup = x.setup;

	setup.digest ^= cpu_to_be64(1);
	f.flags = flags;
	f.epoch_src = src;
	f.epoch_dst = dst;
	inject_frame(&x, &f, &setup, sizeof(setup));
}

/* It is told the parameters of the victim, and an open flow is not affected. */
TEST(N11_mismatched_at_an_open_flow)
{
	struct acp_frame f;
	struct count c;
	uint32_t src, dst, i;

	begin();
	c = count("drop_mismatch");
	for (i = 0; i < 6; i++) {
		src = i & 1 ? 77 : x.base.epoch_src;
		dst = i < 2 ? 0 : i < 4 ? x.base.epoch_dst : 78;
		send_mismatched(src, dst, ACP_FRAME_ASK);
		inject_expect(&x, &f, NULL);
		CHECK(f.type == ACP_FRAME_HELLO && !f.flags);
		CHECK(f.epoch_src == x.base.epoch_dst && f.epoch_dst == src);
		send_mismatched(src, dst, 0);
	}
	nodes_counted(&c, 12);
	inject_silence(&x, 200);
	goes_on();
}

/* A HELLO that answers none of the victim may be a replay: the flow opens nevertheless. */
TEST(N11_mismatched_while_opening)
{
	struct acp_frame f;
	struct count c;

	begin_unheard(false, ACP_INTEGRITY_TAG);
	c = count("drop_mismatch");
	inject_expect(&x, &f, &x.setup);
	send_mismatched(77, 0, ACP_FRAME_ASK);
	send_mismatched(77, f.epoch_src ^ 1, ACP_FRAME_ASK);
	send_mismatched(77, f.epoch_src ^ 1, 0);
	nodes_counted(&c, 3);
	rendezvous();
	goes_on();
}

/* One that does answer is accepted. */
TEST(P7_mismatched_answers)
{
	struct acp_sync sync = { .size = sizeof(sync), .timeout_ns = PATIENCE_SOON };
	struct acp_frame f;

	begin_unheard(false, ACP_INTEGRITY_TAG);
	inject_expect(&x, &f, &x.setup);
	send_mismatched(77, f.epoch_src, 0);
	CHECK_EQ(rank_await(&victim, victim.last, PATIENCE_SOON), ACP_ST_PEER);
	CHECK_ERRNO(ioctl(victim.fd, ACP_IOC_SYNC, &sync), EPROTO);
	CHECK_EQ(sync.node, 1);
	CHECK_ERRNO(ioctl(second.fd, ACP_IOC_SYNC, &sync), EPROTO);
	CHECK_EQ(sync.node, 1);
	untouched("another set-up");
}

TEST(N11_replay)
{
	char good[300], data[8] = "original";
	struct count c;
	size_t size;
	int i;

	begin();
	c = count("drop_duplicate");
	size = put_datagram(good);
	inject_send(&x, good, size);
	inject_applied(&x, x.seq - 1);
	memcpy(target.addr + 1000, data, 8);
	for (i = 0; i < 50; i++)
		inject_send(&x, good, size);
	nodes_counted(&c, 50);
	CHECK(!memcmp(target.addr + 1000, data, 8));
	fill(target.addr, SIZE, 1);
	for (i = 0; i <= ACP_FRAME_WINDOW; i++)	/* the window advances */
		goes_on();
	inject_send(&x, good, size);
	nodes_counted(&c, 51);
	untouched("a replay");
}

/* ECN marks are not covered by a tag: they count in new frames only. */
TEST(N11_replay_with_a_mark)
{
	int ce = 3, i;
	struct count c;
	char good[300];
	size_t size;

	begin();
	c = count("rx_marked");
	CHECK_EQ(setsockopt(x.fd, IPPROTO_IP, IP_TOS, &ce, sizeof(ce)), 0);
	size = put_datagram(good);
	inject_send(&x, good, size);
	inject_applied(&x, x.seq - 1);
	for (i = 0; i < 50; i++)
		inject_send(&x, good, size);
	inject_ack(&x);
	goes_on();			/* another new one */
	nodes_counted(&c, 2);
}

/* ---- replay of frames of a dead node ---- */

#define LIMIT_MS	2000
#define IN_TIME		(5 * LIMIT_MS * MS / 2)	/* questions would prolong it to three timeouts */
#define RECORDED	5

/* Our frames, all of which the victim has accepted; replayed repeatedly. */
static struct {
	char bytes[RECORDED][300];
	size_t size[RECORDED];
	atomic_bool over;
	pthread_t thread;
} replay;

/* Return the "seq" of a HELLO of the victim that asks. */
static uint64_t question(void)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	struct acp_frame f;

	while (!patience_over(&p))
		if (inject_receive(&x, &f, NULL, 100) && f.type == ACP_FRAME_HELLO &&
		    f.flags & ACP_FRAME_ASK)
			return f.seq;
	FAIL("no question");
}

static size_t answer_datagram(void *out, uint64_t asked)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_HELLO);

	f.ack = asked;
	return inject_build(&x, out, &f, &x.setup, sizeof(x.setup));
}

/*
 * Start a command whose result never arrives. Returns its ticket. We have acknowledged its frame.
 */
static uint64_t delegate(void)
{
	uint64_t ticket = rank_copy(&victim, heap_ga(&victim, 0),
				    rank_ga(&victim, 2, ACP_STAG_HEAP, 0), 8, 0);
	struct acp_frame f;

	do {
		inject_expect(&x, &f, NULL);
	} while (f.type != ACP_FRAME_DATA);
	inject_ack(&x);
	return ticket;
}

/* Record one frame of each type; the last one answers a question of the victim. */
static void record(void)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_HELLO);
	uint32_t i;

	f.flags |= ACP_FRAME_ASK;
	replay.size[0] = inject_build(&x, replay.bytes[0], &f, &x.setup, sizeof(x.setup));
	replay.size[1] = put_datagram(replay.bytes[1]);
	f = inject_header(&x, ACP_FRAME_ACK);
	replay.size[2] = inject_build(&x, replay.bytes[2], &f, NULL, 0);
	f = inject_header(&x, ACP_FRAME_HELLO);
	replay.size[3] = inject_build(&x, replay.bytes[3], &f, &x.setup, sizeof(x.setup));
	for (i = 0; i < 4; i++)
		inject_send(&x, replay.bytes[i], replay.size[i]);
	inject_applied(&x, x.seq - 1);
	replay.size[4] = answer_datagram(replay.bytes[4], question());
	inject_send(&x, replay.bytes[4], replay.size[4]);
}

static void *repeat_all(void *unused)
{
	uint32_t i;

	(void)unused;
	while (!atomic_load(&replay.over)) {
		for (i = 0; i < RECORDED; i++)
			inject_send(&x, replay.bytes[i], replay.size[i]);
		sleep_ms(5);
	}
	return NULL;
}

static void begin_replay(void)
{
	atomic_store(&replay.over, false);
	CHECK_EQ(pthread_create(&replay.thread, NULL, repeat_all, NULL), 0);
}

static void end_replay(void)
{
	atomic_store(&replay.over, true);
	CHECK_EQ(pthread_join(replay.thread, NULL), 0);
}

/* A delegated command and a barrier wait for a node that died; both end in time. */
static void awaited_peer_is_dead(uint32_t integrity)
{
	struct acp_sync now = { .size = sizeof(now) };
	struct acp_sync sync = { .size = sizeof(sync), .timeout_ns = PATIENCE_WORK };
	struct count duplicates;
	struct patience soon;
	uint64_t ticket;

	time_out = LIMIT_MS;
	begin_with(false, integrity);
	ticket = delegate();
	record();
	soon = patience_begin(IN_TIME);
	begin_replay();
	duplicates = count("drop_duplicate");
	CHECK_ERRNO(ioctl(second.fd, ACP_IOC_SYNC, &now), ETIMEDOUT);
	CHECK_ERRNO(ioctl(victim.fd, ACP_IOC_SYNC, &sync), EPIPE);
	CHECK_EQ(rank_await(&victim, ticket, PATIENCE_SOON), ACP_ST_TIMEOUT);
	CHECK(!patience_over(&soon));
	end_replay();
	CHECK(nodes_counter(&n, 0, duplicates.name) > duplicates.before + 10);
}

TEST(N11_replays_keep_no_awaited_peer_alive)
{
	awaited_peer_is_dead(ACP_INTEGRITY_UDP);
}

TEST(N11_replays_keep_no_awaited_peer_alive_aead)
{
	awaited_peer_is_dead(ACP_INTEGRITY_AEAD);
}

/* The same while a frame of the victim is in flight. */
TEST(N11_replays_keep_no_silent_peer_alive)
{
	struct patience soon;
	uint64_t ticket;

	time_out = LIMIT_MS;
	begin();
	delegate();
	record();
	soon = patience_begin(IN_TIME);
	begin_replay();
	ticket = rank_copy(&victim, rank_ga(&victim, 2, ACP_STAG_HEAP, 0), heap_ga(&victim, 0),
			   8, 0);
	CHECK_EQ(rank_await(&victim, ticket, PATIENCE_WORK), ACP_ST_TIMEOUT);
	CHECK(!patience_over(&soon));
	end_replay();
}

/* A node that accepts no frames but answers questions is alive: for three timeouts. */
TEST(N17_peer_that_answers_is_alive)
{
	uint64_t begun, ticket;
	char answer[300];

	time_out = LIMIT_MS;
	begin();
	begun = now_ns();
	ticket = rank_copy(&victim, rank_ga(&victim, 2, ACP_STAG_HEAP, 0), heap_ga(&victim, 0),
			   8, 0);
	while (now_ns() - begun < 2 * LIMIT_MS * MS)
		inject_send(&x, answer, answer_datagram(answer, question()));
	CHECK_EQ(rank_wait(&victim, ticket, 0), -1);
	inject_drain(&x);
	inject_ack(&x);
	CHECK_EQ(rank_await(&victim, ticket, PATIENCE_SOON), ACP_ST_OK);
}

/* ... and so is one of which only an answer is awaited, for any time. */
TEST(N17_awaited_peer_that_answers_is_alive)
{
	uint64_t begun, ticket;
	char answer[300];

	time_out = LIMIT_MS;
	begin();
	ticket = delegate();
	begun = now_ns();
	while (now_ns() - begun < 4 * LIMIT_MS * MS)
		inject_send(&x, answer, answer_datagram(answer, question()));
	CHECK_EQ(rank_wait(&victim, ticket, 0), -1);
	goes_on();
}

/* The job ends and is started again, with the same ranks, key and memory. */
TEST(N11_replay_to_the_next_run)
{
	char good[300];
	struct count epoch;
	size_t size;

	begin();
	size = put_datagram(good);
	inject_send(&x, good, size);
	inject_applied(&x, x.seq - 1);
	rank_close(&victim);
	rank_close(&second);
	setup.join.rank = 0;
	nodes_join(&n, &victim, &setup);
	CHECK_EQ(rank_register(&victim, &target, target.addr, SIZE, ACP_ACCESS_ALL), 0);
	fill(target.addr, SIZE, 1);
	inject_drain(&x);		/* last frames of the first run */
	epoch = count("drop_bad_epoch");
	inject_send(&x, good, size);
	inject_silence(&x, 200);
	nodes_counted(&epoch, 1);
	untouched("a replay from the last run");
}

/*
 * The machine is rebooted: the module is loaded again, and the same ranks of the same job join with
 * the same memory. It has no state, and accepts none of the recorded frames.
 */
TEST(N11_replay_to_a_rebooted_node)
{
	static char captured[3][INJECT_MAX];
	size_t size[3], i, k;
	struct acp_frame f;
	struct count epoch;

	begin();
	f = inject_header(&x, ACP_FRAME_HELLO);
	f.flags = ACP_FRAME_ASK;
	size[0] = inject_build(&x, captured[0], &f, &x.setup, sizeof(x.setup));
	size[1] = put_datagram(captured[1]);
	f = inject_header(&x, ACP_FRAME_ACK);
	size[2] = inject_build(&x, captured[2], &f, NULL, 0);
	for (i = 0; i < 3; i++)
		inject_send(&x, captured[i], size[i]);
	inject_applied(&x, x.seq - 1);
	rank_close(&victim);
	rank_close(&second);
	rank_close(&bystander);
	module_unload_soon();
	CHECK_EQ(module_load(""), 0);
	inject_drain(&x);		/* last frames of the first incarnation */
	setup.join.rank = 0;
	nodes_join(&n, &victim, &setup);
	setup.join.rank = 1;
	nodes_join(&n, &second, &setup);
	CHECK_EQ(rank_register(&victim, &target, target.addr, SIZE, ACP_ACCESS_ALL), 0);
	CHECK_EQ(rank_register(&second, &closed, closed.addr, SIZE, 0), 0);
	fill(target.addr, SIZE, 1);
	epoch = count("drop_bad_epoch");
	for (k = 0; k < 3; k++) {
		for (i = 0; i < 3; i++)
			inject_send(&x, captured[i], size[i]);
		inject_drain(&x);	/* an answer to the HELLO, with the new epoch */
	}
	nodes_counted(&epoch, 6);
	CHECK_EQ(nodes_counter(&n, 0, "flows_opened"), 0);
	CHECK_EQ(nodes_counter(&n, 0, "rx_frames"), 0);
	untouched("a replay from before the reboot");
	/* A new flow to the present incarnation works. */
	close(x.fd);
	inject_open(&x, &n, 1, 0, &setup);
	x.base.epoch_src++;
	rank_copy(&victim, rank_ga(&victim, 2, ACP_STAG_HEAP, 0), heap_ga(&victim, 0), 8, 0);
	rendezvous();
	goes_on();
}

TEST(N12_future_numbers)
{
	static const uint64_t ahead[] = { ACP_FRAME_WINDOW, ACP_FRAME_WINDOW + 1, 1000, 1ULL << 32,
					  1ULL << 63, ~0ULL - 10 };
	struct count c;
	size_t i;

	begin();
	c = count("drop_future");
	for (i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
		uint64_t seq = x.seq;

		x.seq += ahead[i];
		inject_put(&x, 2, 1, memory_ga(&target, 0), "12345678", 8);
		x.seq = seq;
	}
	nodes_counted(&c, sizeof(ahead) / sizeof(ahead[0]));
	untouched("numbers beyond the window");
	goes_on();
}

TEST(N13_impossible_acknowledgements)
{
	static const uint64_t ack[] = { 0, 100, 1ULL << 32, ~0ULL };
	struct acp_frame_ack map;
	struct count c;
	struct acp_frame f;
	uint64_t sent;
	size_t i;

	begin();
	c = count("drop_bad_ack");
	sent = rank_copy(&victim, rank_ga(&victim, 2, ACP_STAG_HEAP, 0), heap_ga(&victim, 0), 8, 0);
	CHECK_EQ(rank_wait(&victim, sent, 50 * MS), -1);
	memset(&map, 0xff, sizeof(map));
	for (i = 0; i < sizeof(ack) / sizeof(ack[0]); i++) {
		f = inject_header(&x, ACP_FRAME_ACK);
		f.ack = ack[i];
		inject_frame(&x, &f, &map, sizeof(map));
	}
	nodes_counted(&c, sizeof(ack) / sizeof(ack[0]));
	f = inject_header(&x, ACP_FRAME_ACK);
	f.ack = 1;			/* backwards */
	memset(&map, 0, sizeof(map));
	inject_frame(&x, &f, &map, sizeof(map));
	CHECK_EQ(rank_wait(&victim, sent, 50 * MS), -1);
	while (x.heard < 3)
		inject_expect(&x, &f, NULL);	/* it is retransmitted */
	inject_ack(&x);
	CHECK_EQ(rank_await(&victim, sent, PATIENCE_SOON), ACP_ST_OK);
	goes_on();
}

/* ---- N1 ---- */

/* Acknowledge the frames of a put except the last one. Returns its number. */
static uint64_t hear_all_but_the_last(void)
{
	static char body[INJECT_MAX];
	struct acp_frame f;
	uint64_t last = 0;

	while (!last || x.heard < last) {
		inject_expect(&x, &f, body);
		if (f.type != ACP_FRAME_DATA)
			continue;
		if (body[1] & ACP_MSG_LAST)
			last = f.seq;
		if (last && x.heard > last)
			x.heard = last;
		inject_ack(&x);
	}
	return last;
}

/* Only the last frame of a put is missing, and no frames follow. */
TEST(N1_last_frame_lost)
{
	struct acp_frame f;
	uint64_t sent, last;
	uint32_t times = 0, crossed = 0;

	begin();
	sent = rank_copy(&victim, rank_ga(&victim, 2, ACP_STAG_HEAP, 0), heap_ga(&victim, 0),
			 20000, 0);
	last = hear_all_but_the_last();
	CHECK(last > 5);
	while (times < 3) {
		inject_expect(&x, &f, NULL);
		if (f.type != ACP_FRAME_DATA)
			continue;
		/* Frames that crossed with acknowledgements may still arrive, in any order. */
		times = f.seq == last ? times + 1 : 0;
		crossed += f.seq != last;
		CHECK(crossed < 4 * last);
	}
	CHECK_EQ(rank_wait(&victim, sent, 0), -1);
	x.heard = last + 1;
	inject_ack(&x);
	CHECK_EQ(rank_await(&victim, sent, PATIENCE_SOON), ACP_ST_OK);
	goes_on();
}

/* ---- N14 ---- */

#define CLAIMED		100000u

/* An IP datagram with a HELLO of node "claimed", except for the tag. */
struct spoofed {
	struct iphdr ip;
	struct udphdr udp;
	struct acp_frame_hdr frame;
	struct acp_frame_hello hello;
} __attribute__((packed));

static void spoof(struct spoofed *s, uint32_t claimed)
{
	struct acp_frame f = x.base;
	struct acp_frame_hdr h;

	f.type = ACP_FRAME_HELLO;
	f.flags = ACP_FRAME_ASK;
	f.node = claimed;
	f.epoch_src = claimed + 1;
	f.epoch_dst = 0;
	f.length = sizeof(s->hello);
	memset(s, 0, sizeof(*s));
	s->ip = (struct iphdr){ .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
				.tot_len = htons(sizeof(*s)) };
	s->ip.saddr = htonl(ntohl(inet_addr(n.address[0])) + claimed);
	s->ip.daddr = inet_addr(n.address[0]);
	s->udp = (struct udphdr){ .source = htons(ACP_PORT_DEFAULT),
				  .dest = htons(ACP_PORT_DEFAULT),
				  .len = htons(sizeof(*s) - sizeof(s->ip)) };
	s->hello = x.setup;
	acp_frame_encode(&h, &f);
	h.tag = cpu_to_be64(next_random(&(uint64_t){ claimed }));
	s->frame = h;
}

static long long spoofed_heard(const struct count *mac)
{
	return nodes_counter(&n, 0, mac->name) - mac->before;
}

/* Unknown senders that claim to be each node of the job use no memory, and have no effect. */
TEST(N14_flood_of_hellos_from_100000_nodes)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	uint32_t i, step = test_short() ? 40 : 4;
	struct rank *r = &bystander;
	struct count mac, source, limit;
	struct patience p;
	struct spoofed s;
	long slab;
	int fd;

	nodes_open(&n, 3, 1, false);
	nodes_setup(&n, &setup, 0, 3);
	setup.join.nprocs = CLAIMED;
	setup.join.nodes = CLAIMED;
	setup.ranks[0] = (struct acp_rank_run){ 0, CLAIMED, 0, CLAIMED, 1, 0 };
	setup.nodes[0].count = CLAIMED;
	setup.join.node_runs = 1;
	nodes_join(&n, &victim, &setup);
	setup.join.rank = 2;
	nodes_join(&n, r, &setup);
	inject_open(&x, &n, 1, 0, &setup);
	nodes_enter(&n, 1);
	fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	nodes_leave(&n);
	CHECK(fd >= 0);
	to.sin_addr.s_addr = inet_addr(n.address[0]);
	CHECK_EQ(rank_do_copy(r, heap_ga(&victim, 0), heap_ga(r, 0), 8), ACP_ST_OK);
	nodes_run(&n, 0, "echo 1 >/proc/sys/net/acp/job_peers");
	mac = count("drop_bad_mac");
	source = count("drop_bad_source");
	limit = count("limit_peers");
	slab = meminfo_kib("Slab");
	for (i = 3; i < CLAIMED; i += step) {
		spoof(&s, i);
		CHECK_EQ(sendto(fd, &s, sizeof(s), 0, (struct sockaddr *)&to, sizeof(to)),
			 sizeof(s));
		if ((i - 3) / step % 500)
			continue;
		fill(r->heap, 1000, i);
		CHECK_EQ(rank_do_copy(r, heap_ga(&victim, 0), heap_ga(r, 0), 1000), ACP_ST_OK);
		CHECK(filled(victim.heap, 1000, i));
	}
	/* A few may be lost, as in any flood; some may still be in flight. */
	p = patience_begin(PATIENCE_SOON);
	while (spoofed_heard(&mac) <= CLAIMED / step * 9 / 10) {
		CHECK(!patience_over(&p));
		sleep_ms(20);
	}
	nodes_counted(&source, 0);
	nodes_counted(&limit, 0);
	slab = meminfo_kib("Slab") - slab;
	printf("# %ld KiB more in slabs\n", slab);
	/* A peer takes 1 KiB. Kernels with debug options keep freed memory. */
	CHECK(test_short() || slab < (long)(CLAIMED / step) * 400 / 1024);
}

TEST(N14_flood_of_garbage)
{
	uint64_t seed = (uint64_t)getpid(), end;
	char garbage[1500], good[300];
	struct rank *r = &bystander;
	size_t size, i;

	begin();
	size = put_datagram(good);
	for (end = in_ms(test_short() ? 1000 : 3000); now_ns() < end;) {
		for (i = 0; i < 200; i++) {
			memcpy(garbage, good, size);
			garbage[20 + next_random(&seed) % 100] ^= (char)(i | 1);
			send(x.fd, garbage, next_random(&seed) % 3 ? size : 1500, 0);
		}
		fill(r->heap, 1000, end);
		CHECK_EQ(rank_do_copy(r, memory_ga(&target, 2000), heap_ga(r, 0), 1000), ACP_ST_OK);
		CHECK(filled(target.addr + 2000, 1000, end));
	}
	fill(target.addr, SIZE, 1);
	x.seq--;
	goes_on();
}
