// SPDX-License-Identifier: MIT
/* selftest: leaks */
/*
 * Forged frames, with and without the job key: memory of the victim does not change, each frame is
 * counted by its reason, unauthenticated senders get no answer, and the flow continues afterwards.
 */
#include "../dev/isolated.h"

#include <netinet/ip.h>
#include <netinet/udp.h>

#include "forged_play.h"

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

static const struct acp_msg bad_fields[] = {
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

TEST(N6_message_fields)
{
	struct count c;
	char body[500];
	size_t i, size;
	unsigned int type;

	begin();
	for (i = 0; i < sizeof(bad_fields) / sizeof(bad_fields[0]); i++) {
		char what[40];

		snprintf(what, sizeof(what), "bad message %zu", i);
		bad_message(&bad_fields[i], what);
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
