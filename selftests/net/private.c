// SPDX-License-Identifier: MIT
/*
 * Jobs whose frames are encrypted: all commands work, who listens learns
 * nothing of what they carry, and a frame of which anything was changed has
 * no effect.  A node played by hand encrypts with the tests' own cipher.
 */
#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sched.h>
#include <sys/socket.h>

#include "../dev/traffic.h"
#include "inject.h"

#define SIZE	(4 * PAGE)
#define MB	(1UL << 20)

static struct nodes n;
static struct rank r[RANKS_MAX];
static struct traffic t;

/* ---- Commands ---- */

static void join_all(uint32_t ranks, uint32_t integrity)
{
	const struct acp_join wish = {
		.integrity = integrity, .timeout_ms = 30000, .open_timeout_ms = 30000,
	};

	nodes_ranks_like(&n, r, ranks, &wish);
}

static void everything(uint32_t ranks, uint32_t color)
{
	traffic_everything(&t, r, ranks, color);
	CHECK_EQ(nodes_counters(&n, "drop_bad_aead"), 0);
	CHECK_EQ(nodes_counters(&n, "drop_bad_flags"), 0);
	CHECK_EQ(nodes_counters(&n, "drop_bad_msg"), 0);
}

static void works(uint32_t nodes, uint32_t ranks, bool ipv6)
{
	nodes_open(&n, nodes, 1, ipv6);
	join_all(ranks, ACP_INTEGRITY_AEAD);
	everything(ranks, 0);
}

TEST(two_nodes)
{
	works(2, 2, false);
}

TEST(three_nodes_ipv6)
{
	works(3, 3, true);
}

TEST(two_ranks_on_each_of_two_nodes)
{
	works(2, 4, false);
}

static void set_mtu(uint32_t mtu)
{
	char command[100];
	uint32_t i;

	for (i = 0; i < n.count; i++) {
		nodes_run(&n, i, "ip link set eth0 mtu %u", mtu);
		CHECK_EQ(setns(n.hub, CLONE_NEWNET), 0);
		snprintf(command, sizeof(command), "ip link set port0.%u mtu %u", i, mtu);
		CHECK_EQ(system(command), 0);
		nodes_leave(&n);
	}
}

/* Frames of several pages. */
TEST(large_datagrams)
{
	nodes_open(&n, 3, 1, false);
	set_mtu(9000);
	join_all(3, ACP_INTEGRITY_AEAD);
	everything(3, 0);
}

TEST(two_colors)
{
	nodes_open(&n, 2, 2, false);
	join_all(2, ACP_INTEGRITY_AEAD);
	everything(2, 0);
	everything(2, 1);
}

static void impaired(const char *netem)
{
	nodes_open(&n, 3, 1, false);
	nodes_acquaint(&n);
	join_all(3, ACP_INTEGRITY_AEAD);
	traffic_open(&t, r, 3, MB / 4, 0);
	nodes_impair_all(&n, netem);
	traffic_common_copies(&t);
	traffic_every_atomic(&t);
	traffic_random(&t, test_short() ? 2 : 6, 40, 20000);
	traffic_count(&t, 1, 100);
	traffic_flags(&t, TRAFFIC_CONT, 5000, 1);
	traffic_check(&t);
	CHECK(nodes_counters(&n, "tx_again") > 0);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

TEST(N1_loss)
{
	impaired("loss 5%");
	CHECK_EQ(nodes_counters(&n, "drop_bad_aead"), 0);
}

TEST(N2_N3_duplication_and_reordering)
{
	impaired("delay 1ms 1ms duplicate 20% loss 1%");
	CHECK_EQ(nodes_counters(&n, "drop_bad_aead"), 0);
}

TEST(N4_corruption)
{
	impaired("corrupt 5%");
}

/* ---- What can be heard ---- */

#define MARK	"plaintxt"	/* fills what is sent */
#define HEARD	20000		/* datagrams */

/* A socket that hears all that a node sends and receives. */
static int listen_at(uint32_t node)
{
	int fd, room = 256 << 20;

	nodes_enter(&n, node);
	fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL));
	nodes_leave(&n);
	CHECK(fd >= 0);
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)), 0);
	return fd;
}

/* The frame in an IPv4 datagram, or NULL; *size is that of the datagram, then the frame's. */
static uint8_t *frame_in(uint8_t *ip, ssize_t *size)
{
	ssize_t head = (ip[0] & 15) * 4 + 8;
	const uint8_t *udp = ip + head - 8;

	if (*size < head + (ssize_t)sizeof(struct acp_frame_hdr) || ip[0] >> 4 != 4 ||
	    ip[9] != IPPROTO_UDP || (udp[2] << 8 | udp[3]) != ACP_PORT_DEFAULT)
		return NULL;
	*size -= head;
	return ip + head;
}

struct heard {
	int frames, marks, sealed;
	uint8_t (*nonces)[ACP_FRAME_NONCE];	/* of those that are sealed */
};

static int compare_nonces(const void *a, const void *b)
{
	return memcmp(a, b, ACP_FRAME_NONCE);
}

/* Take all frames that were heard: whether what is sent shows in them, and their nonces. */
static void take_heard(int fd, struct heard *h, uint64_t ga)
{
	static uint8_t datagram[70000];
	__be64 address = cpu_to_be64(ga);
	struct acp_frame f;
	uint8_t *p;
	ssize_t size;

	memset(h, 0, sizeof(*h));
	h->nonces = calloc(HEARD, sizeof(*h->nonces));
	while ((size = recv(fd, datagram, sizeof(datagram), MSG_DONTWAIT)) > 0) {
		p = frame_in(datagram, &size);
		if (!p)
			continue;
		CHECK(h->frames++ < HEARD);
		CHECK_EQ(acp_frame_decode(&f, (void *)p, (u32)size), ACP_FRAME_OK);
		h->marks += memmem(p, (size_t)size, MARK, 8) ||
			    memmem(p, (size_t)size, &address, sizeof(address));
		if (f.flags & ACP_FRAME_AEAD)
			memcpy(h->nonces[h->sealed++], p + sizeof(struct acp_frame_hdr),
			       ACP_FRAME_NONCE);
	}
}

/* Everything between two ranks that carries the mark: short, long, there and back. */
static void send_marks(struct memory *from, struct memory *to, int rounds)
{
	static const size_t lengths[] = { 8, 100, 128, 1000, 5000, SIZE };
	size_t i;

	for (i = 0; i < SIZE; i += 8)
		memcpy(from->addr + i, MARK, 8);
	while (rounds--) {
		for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			memset(to->addr, 0, SIZE);
			CHECK_EQ(rank_do_copy(&r[0], memory_ga(to, 0), memory_ga(from, 0),
					      lengths[i]), ACP_ST_OK);
			CHECK(!memcmp(to->addr, from->addr, lengths[i]));
			CHECK_EQ(rank_do_copy(&r[1], memory_ga(to, 0), memory_ga(from, 0),
					      lengths[i]), ACP_ST_OK);
		}
		CHECK_EQ(rank_do_atomic(&r[0], ACP_OP_SWAP8, memory_ga(from, 0), memory_ga(to, 0),
					0x706c61696e747874, 0), ACP_ST_OK);
		memcpy(from->addr, MARK, 8);
	}
}

/* At both ends of a network: what came is looked at after it was decrypted. */
static void hear(uint32_t integrity, const char *netem, struct heard *h)
{
	struct memory from, to;
	int fd[2], i;

	nodes_open(&n, 2, 1, false);
	join_all(2, integrity);
	memory_open(&r[0], &from, SIZE);
	memory_open(&r[1], &to, SIZE);
	for (i = 0; i < 2; i++) {
		nodes_run(&n, (uint32_t)i, "ip link set eth0 gso_max_segs 1"); /* no trains */
		fd[i] = listen_at((uint32_t)i);
	}
	nodes_impair(&n, 1, netem);	/* acknowledgements are lost: all is heard again */
	send_marks(&from, &to, test_short() ? 20 : 30);
	for (i = 0; i < 2; i++)
		take_heard(fd[i], &h[i], memory_ga(&to, 0));
}

TEST(in_clear_all_is_heard)
{
	struct heard h[2];

	hear(ACP_INTEGRITY_UDP, "delay 0", h);
	CHECK(h[0].marks > 100 && h[1].marks > 100);
	CHECK_EQ(h[0].sealed + h[1].sealed, 0);
}

TEST(nothing_is_heard_and_no_nonce_twice)
{
	struct heard h[2];
	int i, j;

	hear(ACP_INTEGRITY_AEAD, "loss 20%", h);
	CHECK(nodes_counter(&n, 0, "tx_again") > 10);
	for (i = 0; i < 2; i++) {
		CHECK(h[i].frames > 200);
		CHECK_EQ(h[i].sealed, h[i].frames);
		CHECK_EQ(h[i].marks, 0);
		qsort(h[i].nonces, (size_t)h[i].sealed, ACP_FRAME_NONCE, compare_nonces);
		for (j = 1; j < h[i].sealed; j++)
			CHECK(compare_nonces(h[i].nonces[j - 1], h[i].nonces[j]));
	}
}

/* What is encrypted is in one piece, which must be to be had when memory is in fragments. */
TEST(large_datagrams_fit_two_pages)
{
	static char datagram[70000];
	struct memory from, to;
	ssize_t size, most = 0;
	int fd;

	nodes_open(&n, 2, 1, false);
	set_mtu(16000);
	join_all(2, ACP_INTEGRITY_AEAD);
	memory_open(&r[0], &from, 64 * PAGE);
	memory_open(&r[1], &to, 64 * PAGE);
	fill(from.addr, from.size, 9);
	fd = listen_at(0);
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&to, 0), memory_ga(&from, 0), from.size), ACP_ST_OK);
	CHECK(filled(to.addr, to.size, 9));
	while ((size = recv(fd, datagram, sizeof(datagram), MSG_DONTWAIT)) > 0)
		most = size > most ? size : most;
	CHECK(most > 7000 && most < (ssize_t)(2 * PAGE));
}

/* ---- A node played by hand: node 1, rank 1; the victim: node 0, rank 0 ---- */

static struct inject x;
static struct setup setup;
static struct memory target;

static void begin(bool ipv6, uint32_t integrity)
{
	nodes_open(&n, 2, 1, ipv6);
	nodes_setup(&n, &setup, 0, 2);
	setup.join.integrity = integrity;
	nodes_join(&n, &r[0], &setup);
	memory_open(&r[0], &target, SIZE);
	fill(target.addr, SIZE, 1);
	inject_open(&x, &n, 1, 0, &setup);
	rank_copy(&r[0], rank_ga(&r[0], 1, ACP_STAG_HEAP, 0), heap_ga(&r[0], 0), 8, 0);
	inject_handshake(&x);
	CHECK_EQ(rank_wait(&r[0], r[0].last, 5000 * MS), ACP_ST_OK);
	inject_drain(&x);
}

static void untouched(void)
{
	CHECK(filled(target.addr, SIZE, 1));
}

/* A good put still works, and is answered. */
static void goes_on(void)
{
	uint64_t ticket = next_random(&(uint64_t){ now_ns() });
	char data[1000];

	fill(data, sizeof(data), ticket);
	inject_applied(&x, inject_put(&x, 1, ticket, memory_ga(&target, 50), data, 1000));
	CHECK(filled(target.addr + 50, 1000, ticket));
	fill(target.addr, SIZE, 1);
}

/* A counter of the victim and what it stood at. */
static struct count count(const char *name)
{
	return nodes_count(&n, 0, name);
}

/* A put of 100 bytes as a datagram with the next number; it was never sent. */
static size_t put_datagram(void *out)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .flags = ACP_MSG_LAST, .origin = 1, .ticket = 77,
		.dst = memory_ga(&target, 1000), .length = 100,
	};
	char data[100], body[200];

	memset(data, 0xee, sizeof(data));
	return inject_build(&x, out, &f, body, inject_message(body, &m, data));
}

/* As it should be: it was not used up. */
static void good_after_all(const void *good, size_t size)
{
	untouched();
	inject_send(&x, good, size);
	inject_applied(&x, x.seq - 1);
	CHECK_EQ((unsigned char)target.addr[1000], 0xee);
	fill(target.addr, SIZE, 1);
	goes_on();
}

TEST(hand_played_node_can_talk)
{
	static char data[10000];
	struct acp_msg m = {
		.type = ACP_MSG_CMD, .op = ACP_OP_COPY, .origin = 1, .ticket = 9, .size = 64,
	};
	char body[64];

	begin(false, ACP_INTEGRITY_AEAD);
	goes_on();
	m.src = memory_ga(&target, 0);
	m.dst = memory_ga(&target, 128);
	inject_data(&x, body, inject_message(body, &m, NULL));
	CHECK_EQ(inject_done(&x, 9), ACP_ST_OK);
	CHECK(!memcmp(target.addr, target.addr + 128, 64));
	/* A datagram in many fragments. */
	fill(data, sizeof(data), 5);
	inject_applied(&x, inject_put(&x, 1, 10, memory_ga(&target, 0), data, sizeof(data)));
	CHECK(filled(target.addr, sizeof(data), 5));
}

static void flips(bool ipv6)
{
	struct count aead;
	char good[400], bad[400];
	size_t size, bit;

	begin(ipv6, ACP_INTEGRITY_AEAD);
	aead = count("drop_bad_aead");
	size = put_datagram(good);
	for (bit = 0; bit < size * 8; bit++) {
		memcpy(bad, good, size);
		bad[bit / 8] ^= (char)(1 << bit % 8);
		inject_send(&x, bad, size);
	}
	inject_silence(&x, 200);
	/* Header and what is reserved: other reasons. */
	nodes_counted(&aead, (long long)(size - sizeof(struct acp_frame_hdr) - 4) * 8);
	good_after_all(good, size);
}

TEST(N4_every_bit_of_a_frame_flipped)
{
	flips(false);
}

TEST(N4_every_bit_of_a_frame_flipped_ipv6)
{
	flips(true);
}

/* The header's tag is right again: the code covers the header, too. */
TEST(N4_every_bit_of_the_header_flipped_and_signed)
{
	char good[400], bad[400];
	size_t size, bit;

	begin(false, ACP_INTEGRITY_AEAD);
	size = put_datagram(good);
	for (bit = 64; bit < sizeof(struct acp_frame_hdr) * 8; bit++) {
		memcpy(bad, good, size);
		bad[bit / 8] ^= (char)(1 << bit % 8);
		inject_sign(&x, bad, sizeof(struct acp_frame_hdr));
		inject_send(&x, bad, size);
	}
	inject_silence(&x, 200);
	good_after_all(good, size);
}

TEST(N5_truncated_at_every_length)
{
	const size_t head = sizeof(struct acp_frame_hdr), least = 32 + sizeof(struct acp_msg_hdr);
	struct count len, aead;
	struct acp_frame_hdr *h;
	char good[400], bad[400];
	size_t size, i;

	begin(false, ACP_INTEGRITY_AEAD);
	len = count("drop_bad_len");
	aead = count("drop_bad_aead");
	size = put_datagram(good);
	for (i = 0; i < size; i++)
		inject_send(&x, good, i);
	nodes_counted(&len, (long long)size);
	/* ... and the header says so, under a right tag. */
	for (i = 0; i < size - head; i++) {
		memcpy(bad, good, size);
		h = (void *)bad;
		h->length = cpu_to_be16((u16)i);
		inject_sign(&x, bad, head);
		inject_send(&x, bad, head + i);
	}
	inject_silence(&x, 200);
	nodes_counted(&len, (long long)(size + least));
	nodes_counted(&aead, (long long)(size - head - least));
	good_after_all(good, size);
}

TEST(N5_longer_than_any_path)
{
	static char data[17000];
	struct count len;

	begin(false, ACP_INTEGRITY_AEAD);
	len = count("drop_bad_len");
	inject_put(&x, 1, 3, memory_ga(&target, 0), data, sizeof(data));
	inject_silence(&x, 200);
	nodes_counted(&len, 1);
	untouched();
	x.seq--;
	goes_on();
}

TEST(N6_reserved_field_of_the_seal)
{
	const size_t at = sizeof(struct acp_frame_hdr) + ACP_FRAME_NONCE;
	struct count flags;
	char good[400], bad[400];
	size_t size, bit;

	begin(false, ACP_INTEGRITY_AEAD);
	flags = count("drop_bad_flags");
	size = put_datagram(good);
	for (bit = 0; bit < 32; bit++) {
		memcpy(bad, good, size);
		bad[at + bit / 8] ^= (char)(1 << bit % 8);
		inject_send(&x, bad, size);
	}
	inject_silence(&x, 200);
	nodes_counted(&flags, 32);
	good_after_all(good, size);
}

/* The job's key, but that of the other direction. */
TEST(N7_key_of_another_way)
{
	struct count aead;
	char bad[400];
	uint8_t right[32];
	size_t size;

	begin(false, ACP_INTEGRITY_AEAD);
	aead = count("drop_bad_aead");
	memcpy(right, x.key_out, sizeof(right));
	memcpy(x.key_out, x.key_in, sizeof(right));
	size = put_datagram(bad);
	inject_send(&x, bad, size);
	inject_silence(&x, 200);
	nodes_counted(&aead, 1);
	untouched();
	memcpy(x.key_out, right, sizeof(right));
	x.seq--;
	goes_on();
}

TEST(N11_replayed)
{
	struct count duplicates;
	char good[400];
	size_t size;
	int i;

	begin(false, ACP_INTEGRITY_AEAD);
	duplicates = count("drop_duplicate");
	size = put_datagram(good);
	inject_send(&x, good, size);
	inject_applied(&x, x.seq - 1);
	fill(target.addr, SIZE, 1);
	for (i = 0; i < 10; i++)
		inject_send(&x, good, size);
	nodes_counted(&duplicates, 10);
	untouched();
	inject_drain(&x);
	goes_on();
}

/* With the job's tag, but in clear in a job that is encrypted, or the other way round. */
static void mixed(uint32_t integrity)
{
	bool sealed = integrity == ACP_INTEGRITY_AEAD;
	struct acp_frame_ack map = { { 0 } };
	struct count flags, aead, strange;
	struct acp_frame f;
	char out[400];

	begin(false, integrity);
	flags = count("drop_bad_flags");
	aead = count("drop_bad_aead");
	strange = count("drop_mismatch");
	x.sealed = !sealed;
	inject_send(&x, out, put_datagram(out));
	x.seq--;
	f = inject_header(&x, ACP_FRAME_ACK);
	inject_frame(&x, &f, &map, sizeof(map));
	inject_silence(&x, 200);
	nodes_counted(&flags, 2);
	nodes_counted(&aead, 0);
	untouched();
	/* A HELLO says that the sender runs another set-up: an open flow does not mind. */
	f = inject_header(&x, ACP_FRAME_HELLO);
	inject_frame(&x, &f, &x.setup, sizeof(x.setup));
	x.sealed = sealed;
	nodes_counted(&strange, 1);
	goes_on();
}

/* Of a node that is not known all but a HELLO is refused by its header: not worth deciphering. */
TEST(N8_stranger_is_not_deciphered)
{
	struct count epoch, aead;
	char bad[400];
	size_t size;
	int i;

	nodes_open(&n, 2, 1, false);
	nodes_setup(&n, &setup, 0, 2);
	setup.join.integrity = ACP_INTEGRITY_AEAD;
	nodes_join(&n, &r[0], &setup);
	memory_open(&r[0], &target, SIZE);
	fill(target.addr, SIZE, 1);
	inject_open(&x, &n, 1, 0, &setup);
	epoch = count("drop_bad_epoch");
	aead = count("drop_bad_aead");
	x.base.epoch_dst = 77;	/* of a life that was */
	size = put_datagram(bad);
	bad[size - 1] ^= 1;
	for (i = 0; i < 10; i++)
		inject_send(&x, bad, size);
	inject_silence(&x, 200);
	nodes_counted(&epoch, 10);
	nodes_counted(&aead, 0);
	untouched();
}

/* A datagram whose first bytes only are where the kernel wants to read. */
static void send_split(const char *datagram, size_t size, size_t at)
{
	CHECK_EQ(send(x.fd, datagram, at, MSG_MORE), at);
	inject_send(&x, datagram + at, size - at);
}

static void send_hello(size_t at)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_HELLO);
	char out[400];

	f.flags |= ACP_FRAME_ASK;
	send_split(out, inject_build(&x, out, &f, &x.setup, sizeof(x.setup)), at);
}

static void send_ack(size_t at)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_ACK);
	struct acp_frame_ack map = { { 0 } };
	char out[400];

	send_split(out, inject_build(&x, out, &f, &map, sizeof(map)), at);
}

/* All kinds of frames, of this kind of job and of the other one. */
static void split_at(size_t at)
{
	struct count flags = count("drop_bad_flags");
	struct count strange = count("drop_mismatch");
	char out[400];
	struct acp_frame f;

	send_split(out, put_datagram(out), at);
	inject_applied(&x, x.seq - 1);
	CHECK_EQ((unsigned char)target.addr[1000], 0xee);
	fill(target.addr, SIZE, 1);
	send_ack(at);
	send_hello(at);
	do {
		CHECK(inject_receive(&x, &f, NULL, 5000));
	} while (f.type != ACP_FRAME_HELLO);
	x.sealed = !x.sealed;
	send_split(out, put_datagram(out), at);
	x.seq--;
	send_ack(at);
	send_hello(at);
	x.sealed = !x.sealed;
	nodes_counted(&flags, 2);
	nodes_counted(&strange, 1);
	goes_on();
}

static void split(uint32_t integrity)
{
	static const size_t places[] = { 8, 47, 48, 49, 56, 63 };
	size_t i;

	begin(false, integrity);
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		split_at(places[i]);
	CHECK_EQ(nodes_counter(&n, 0, "drop_bad_mac"), 0);
	CHECK_EQ(nodes_counter(&n, 0, "drop_bad_aead"), 0);
	CHECK_EQ(nodes_counter(&n, 0, "drop_bad_ack"), 0);
	CHECK_EQ(nodes_counter(&n, 0, "drop_nomem"), 0);
}

TEST(N5_in_two_pieces)
{
	split(ACP_INTEGRITY_UDP);
}

TEST(N5_in_two_pieces_encrypted)
{
	split(ACP_INTEGRITY_AEAD);
}

TEST(N6_in_clear_in_a_job_that_is_encrypted)
{
	mixed(ACP_INTEGRITY_AEAD);
}

TEST(N6_encrypted_in_a_job_in_clear)
{
	mixed(ACP_INTEGRITY_UDP);
}
