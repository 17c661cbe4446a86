// SPDX-License-Identifier: MIT
/*
 * Jobs with encryption: all commands work, frames reveal nothing of their contents, and a modified
 * frame has no effect. A node simulated by the test uses independent implementations of the
 * ciphers.
 */
#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <fcntl.h>
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

/* Frames of several pages. */
TEST(large_datagrams)
{
	nodes_open(&n, 3, 1, false);
	nodes_set_mtu(&n, 9000);
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
	CHECK(nodes_counters(&n, "tx_retransmits") > 0);
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

/* ---- Captured frames ---- */

#define MARK	"plaintxt"	/* contents of what is sent */
#define HEARD	20000		/* datagrams */

/* Open a socket that receives everything that a node sends and receives. */
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

/* The offset of a fragment of an IPv4 datagram, 0: the first one or all of it. */
static int fragment(const uint8_t *ip)
{
	return (ip[6] & 31) << 8 | ip[7];
}

static bool more_fragments(const uint8_t *ip)
{
	return ip[6] & 32;
}

/*
 * Return the frame, or its beginning, in an IPv4 datagram, or NULL. *size is that of the datagram,
 * then of the frame.
 */
static uint8_t *frame_in(uint8_t *ip, ssize_t *size)
{
	ssize_t head = (ip[0] & 15) * 4 + 8;
	const uint8_t *udp = ip + head - 8;

	if (*size < head + (ssize_t)sizeof(struct acp_frame_hdr) || ip[0] >> 4 != 4 ||
	    fragment(ip) || ip[9] != IPPROTO_UDP || (udp[2] << 8 | udp[3]) != ACP_PORT_DEFAULT)
		return NULL;
	*size -= head;
	return ip + head;
}

struct heard {
	int frames, marks, encrypted, aes, aegis;
	uint8_t (*nonces)[ACP_FRAME_NONCE];	/* of encrypted frames */
};

static int compare_nonces(const void *a, const void *b)
{
	return memcmp(a, b, ACP_FRAME_NONCE);
}

/*
 * The size that the header of a frame gives it. Of a frame that was fragmented, because its flow
 * began to send shorter ones before it was sent again, only the beginning was captured.
 */
static u32 claimed(const uint8_t *frame)
{
	const struct acp_frame_hdr *h = (const void *)frame;

	return (u32)(sizeof(*h) + be16_to_cpu(h->length));
}

static bool reveals(const uint8_t *p, ssize_t size, uint64_t ga)
{
	__be64 address = cpu_to_be64(ga);

	return memmem(p, (size_t)size, MARK, 8) ||
	       memmem(p, (size_t)size, &address, sizeof(address));
}

/* Process all captured frames: whether they reveal contents, and their nonces. */
static void take_heard(int fd, struct heard *h, uint64_t ga)
{
	static uint8_t datagram[70000];
	struct acp_frame f;
	u32 cipher;
	int error;
	uint8_t *p;
	ssize_t size;

	memset(h, 0, sizeof(*h));
	h->nonces = calloc(HEARD, sizeof(*h->nonces));
	while ((size = recv(fd, datagram, sizeof(datagram), MSG_DONTWAIT)) > 0) {
		p = frame_in(datagram, &size);
		if (!p) {
			h->marks += fragment(datagram) && reveals(datagram, size, ga);
			continue;
		}
		CHECK(h->frames++ < HEARD);
		error = acp_frame_decode(&f, (void *)p,
					 more_fragments(datagram) ? claimed(p) : (u32)size);
		if (error)
			FAIL("error %d: frame %d: type %u, flags %x, number %llu, %u bytes in %zd; "
			     "IPv4: %u bytes", error, h->frames, f.type, f.flags,
			     (unsigned long long)f.seq, f.length, size,
			     datagram[2] << 8 | datagram[3]);
		h->marks += reveals(p, size, ga);
		if (f.flags & ACP_FRAME_AEAD) {
			CHECK(acp_frame_nonce(p, &cipher));
			h->aes += !!(cipher & ACP_CIPHER_AES);
			h->aegis += !!(cipher & ACP_CIPHER_AEGIS);
			memcpy(h->nonces[h->encrypted++], p + sizeof(struct acp_frame_hdr),
			       ACP_FRAME_NONCE);
		}
	}
}

/* Transfer the mark between two ranks by all operations: short and long, in both directions. */
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

/* Capture at both ends; received frames are captured before decryption. */
static void hear(uint32_t integrity, const char *netem, struct heard *h)
{
	struct memory from, to;
	int fd[2], i;

	nodes_open(&n, 2, 1, false);
	join_all(2, integrity);
	memory_open(&r[0], &from, SIZE);
	memory_open(&r[1], &to, SIZE);
	for (i = 0; i < 2; i++) {
		nodes_run(&n, (uint32_t)i, "ip link set eth0 gso_max_segs 1"); /* no GSO batches */
		fd[i] = listen_at((uint32_t)i);
	}
	nodes_impair(&n, 1, netem);	/* acknowledgements are lost: everything is retransmitted */
	send_marks(&from, &to, test_short() ? 20 : 30);
	for (i = 0; i < 2; i++)
		take_heard(fd[i], &h[i], memory_ga(&to, 0));
}

TEST(in_clear_all_is_heard)
{
	struct heard h[2];

	hear(ACP_INTEGRITY_UDP, "delay 0", h);
	CHECK(h[0].marks > 100 && h[1].marks > 100);
	CHECK_EQ(h[0].encrypted + h[1].encrypted, 0);
}

/* The first of these ciphers with CPU support is used, except for the first few frames. */
static void check_cipher(const struct heard *h, bool aegis_allowed)
{
	bool aegis = aegis_allowed && nodes_said("/proc/crypto", "aegis128-aesni");
	bool aes = !aegis && nodes_said("/proc/crypto", "generic-gcm-aes");

	printf("# %d of %d frames by AEGIS, %d by AES\n", h->aegis, h->frames, h->aes);
	CHECK(h->aegis + h->aes < h->frames);
	CHECK_EQ(h->aegis > h->frames / 2, aegis);
	CHECK_EQ(h->aes > h->frames / 2, aes);
	CHECK(aegis ? !h->aes : !h->aegis);
}

static void hear_nothing(bool aegis)
{
	struct heard h[2];
	int i, j;

	nodes_allow_aegis(aegis);
	hear(ACP_INTEGRITY_AEAD, "loss 20%", h);
	nodes_allow_aegis(true);
	CHECK(nodes_counter(&n, 0, "tx_retransmits") > 10);
	for (i = 0; i < 2; i++) {
		CHECK(h[i].frames > 200);
		CHECK_EQ(h[i].encrypted, h[i].frames);
		check_cipher(&h[i], aegis);
		CHECK_EQ(h[i].marks, 0);
		qsort(h[i].nonces, (size_t)h[i].encrypted, ACP_FRAME_NONCE, compare_nonces);
		for (j = 1; j < h[i].encrypted; j++)
			CHECK(compare_nonces(h[i].nonces[j - 1], h[i].nonces[j]));
	}
}

TEST(nothing_is_heard_and_no_nonce_twice)
{
	hear_nothing(true);
}

TEST(nothing_is_heard_and_no_nonce_twice_without_aegis)
{
	hear_nothing(false);
}

/* Encrypted frames need contiguous memory, which must be available when memory is fragmented. */
TEST(large_datagrams_fit_two_pages)
{
	static char datagram[70000];
	struct memory from, to;
	ssize_t size, most = 0;
	int fd;

	nodes_open(&n, 2, 1, false);
	nodes_set_mtu(&n, 16000);
	nodes_run(&n, 0, "ip link set eth0 gso_max_segs 1");	/* captures each frame separately */
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

/* ---- A node simulated by the test: node 1, rank 1; the victim: node 0, rank 0 ---- */

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
	inject_begin(&x, &n, &setup, &r[0], 1);
}

static void untouched(void)
{
	CHECK(filled(target.addr, SIZE, 1));
}

/* A valid put still works, and is answered. */
static void goes_on(void)
{
	uint64_t ticket = next_random(&(uint64_t){ now_ns() });
	char data[1000];

	fill(data, sizeof(data), ticket);
	inject_applied(&x, inject_put(&x, 1, ticket, memory_ga(&target, 50), data, 1000));
	CHECK(filled(target.addr + 50, 1000, ticket));
	fill(target.addr, SIZE, 1);
}

/* Return a counter of the victim and its current value. */
static struct count count(const char *name)
{
	return nodes_count(&n, 0, name);
}

/* Build a put of 100 bytes as a datagram with the next number, which was never sent. */
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

/* The valid frame is accepted: its number was not used. */
static void good_after_all(const void *good, size_t size)
{
	untouched();
	inject_send(&x, good, size);
	inject_applied(&x, x.seq - 1);
	CHECK_EQ((unsigned char)target.addr[1000], 0xee);
	fill(target.addr, SIZE, 1);
	goes_on();
}

static bool has_aes(void)
{
	return nodes_said("/proc/crypto", "generic-gcm-aes");
}

/* The simulated node uses that cipher from now on, and receives it if the victim prefers it. */
static void speak(uint32_t cipher)
{
	if (cipher & ACP_CIPHER_AES && !has_aes())
		SKIP("this kernel has no gcm(aes) by instructions");
	if (cipher & ACP_CIPHER_AEGIS && !nodes_said("/proc/crypto", "aegis128"))
		SKIP("this kernel has no aegis128");
	x.cipher = cipher;
}

#define BY_AES		(ACP_CIPHER_AES | ACP_CIPHER_WANTS)
#define BY_AEGIS	(ACP_CIPHER_AEGIS | ACP_CIPHER_WANTS_AEGIS)

static void talk(uint32_t cipher)
{
	static char data[10000];
	struct acp_msg m = {
		.type = ACP_MSG_CMD, .op = ACP_OP_COPY, .origin = 1, .ticket = 9, .size = 64,
	};
	char body[64];

	begin(false, ACP_INTEGRITY_AEAD);
	speak(cipher);
	goes_on();
	m.src = memory_ga(&target, 0);
	m.dst = memory_ga(&target, 128);
	inject_data(&x, body, inject_message(body, &m, NULL));
	CHECK_EQ(inject_done(&x, 9), ACP_ST_OK);
	CHECK(!memcmp(target.addr, target.addr + 128, 64));
	/* A datagram of many fragments. */
	fill(data, sizeof(data), 5);
	inject_applied(&x, inject_put(&x, 1, 10, memory_ga(&target, 0), data, sizeof(data)));
	CHECK(filled(target.addr, sizeof(data), 5));
}

TEST(hand_played_node_can_talk)
{
	talk(0);
}

TEST(hand_played_node_can_talk_aes)
{
	talk(BY_AES);
}

TEST(hand_played_node_can_talk_aegis)
{
	talk(BY_AEGIS);
}

/* Its key cannot be set in softirq. No frame by AES was asked for, so none is deciphered. */
TEST(N6_by_aes_without_instructions)
{
	struct count aead;
	char good[400];
	size_t size;

	begin(false, ACP_INTEGRITY_AEAD);
	if (has_aes())
		SKIP("this machine has instructions");
	aead = count("drop_bad_aead");
	x.cipher = BY_AES;
	size = put_datagram(good);
	inject_send(&x, good, size);
	nodes_counted(&aead, 1);
	untouched();
	x.cipher = 0;
	x.seq--;
	goes_on();
}

static void flips(bool ipv6, uint32_t cipher)
{
	struct count aead;
	char good[400], bad[400];
	size_t size, bit;

	begin(ipv6, ACP_INTEGRITY_AEAD);
	speak(cipher);
	aead = count("drop_bad_aead");
	size = put_datagram(good);
	for (bit = 0; bit < size * 8; bit++) {
		memcpy(bad, good, size);
		bad[bit / 8] ^= (char)(1 << bit % 8);
		inject_send(&x, bad, size);
	}
	inject_silence(&x, 200);
	/* Header, reserved bits, and two ciphers have other reasons. */
	nodes_counted(&aead, (long long)(size - sizeof(struct acp_frame_hdr) - 4) * 8 +
			     (cipher ? 3 : 4));
	good_after_all(good, size);
}

TEST(N4_every_bit_of_a_frame_flipped)
{
	flips(false, 0);
}

TEST(N4_every_bit_of_a_frame_by_aes_flipped)
{
	flips(false, BY_AES);
}

TEST(N4_every_bit_of_a_frame_by_aegis_flipped)
{
	flips(false, BY_AEGIS);
}

TEST(N4_every_bit_of_a_frame_flipped_ipv6)
{
	flips(true, 0);
}

/* The tag of the header is valid again: the AEAD tag covers the header as well. */
TEST(N4_every_bit_of_the_header_flipped_and_signed)
{
	char good[400], bad[400];
	size_t size, bit;

	begin(false, ACP_INTEGRITY_AEAD);
	size = put_datagram(good);
	for (bit = 64; bit < sizeof(struct acp_frame_hdr) * 8; bit++) {
		memcpy(bad, good, size);
		bad[bit / 8] ^= (char)(1 << bit % 8);
		inject_sign(&x, bad, sizeof(struct acp_frame_hdr), size);
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
	/* ... and the header has that length, with a valid tag. */
	for (i = 0; i < size - head; i++) {
		memcpy(bad, good, size);
		h = (void *)bad;
		h->length = cpu_to_be16((u16)i);
		inject_sign(&x, bad, head, head);
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

TEST(N6_reserved_field_of_the_nonce_block)
{
	const size_t at = sizeof(struct acp_frame_hdr) + ACP_FRAME_NONCE;
	struct count flags;
	char good[400], bad[400];
	size_t size, bit;

	begin(false, ACP_INTEGRITY_AEAD);
	flags = count("drop_bad_flags");
	size = put_datagram(good);
	for (bit = 0; bit < 32; bit++) {
		if (bit >= 24 && bit < 28)	/* ACP_CIPHER_ */
			continue;
		memcpy(bad, good, size);
		bad[at + bit / 8] ^= (char)(1 << bit % 8);
		inject_send(&x, bad, size);
	}
	inject_silence(&x, 200);
	nodes_counted(&flags, 28);
	good_after_all(good, size);
}

/* The job key, but that of the other direction. */
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

/* With a valid tag, but in clear in an encrypted job, or the other way round. */
static void mixed(uint32_t integrity)
{
	bool encrypted = integrity == ACP_INTEGRITY_AEAD;
	struct acp_frame_ack map = { { 0 } };
	struct count flags, aead, strange;
	struct acp_frame f;
	char out[400];

	begin(false, integrity);
	flags = count("drop_bad_flags");
	aead = count("drop_bad_aead");
	strange = count("drop_mismatch");
	x.encrypted = !encrypted;
	inject_send(&x, out, put_datagram(out));
	x.seq--;
	f = inject_header(&x, ACP_FRAME_ACK);
	inject_frame(&x, &f, &map, sizeof(map));
	inject_silence(&x, 200);
	nodes_counted(&flags, 2);
	nodes_counted(&aead, 0);
	untouched();
	/* A HELLO with different parameters: an open flow is not affected. */
	f = inject_header(&x, ACP_FRAME_HELLO);
	inject_frame(&x, &f, &x.setup, sizeof(x.setup));
	x.encrypted = encrypted;
	nodes_counted(&strange, 1);
	goes_on();
}

/* From an unknown node everything but a HELLO is rejected by its header, without decryption. */
TEST(N8_unknown_sender_is_not_deciphered)
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
	x.base.epoch_dst = 77;	/* of a previous incarnation */
	size = put_datagram(bad);
	bad[size - 1] ^= 1;
	for (i = 0; i < 10; i++)
		inject_send(&x, bad, size);
	inject_silence(&x, 200);
	nodes_counted(&epoch, 10);
	nodes_counted(&aead, 0);
	untouched();
}

/* Send a datagram whose first bytes only are in the linear part of the skb. */
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

/*
 * An acknowledgement of pieces waits for the end of the poll round. A HELLO in the same round is
 * not answered before it: a node that is answered, but not acknowledged, sends shorter frames from
 * then on.
 */
TEST(N16_acknowledged_before_a_hello_is_answered)
{
	struct acp_frame f;
	char data[1000];
	uint64_t seq;
	int i;

	begin(false, ACP_INTEGRITY_AEAD);
	fill(data, sizeof(data), 7);
	nodes_impair(&n, 1, "delay 1ms slot 40ms");	/* what was sent meanwhile comes at once */
	for (i = 0; i < 10; i++) {
		seq = inject_put(&x, 1, 1000 + (uint64_t)i, memory_ga(&target, 50), data, 1000);
		send_hello(48);
		do {
			inject_expect(&x, &f, NULL);
		} while (f.type != ACP_FRAME_HELLO);
		CHECK(x.acked > seq);
	}
}

static void send_ack(size_t at)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_ACK);
	struct acp_frame_ack map = { { 0 } };
	char out[400];

	send_split(out, inject_build(&x, out, &f, &map, sizeof(map)), at);
}

/* All types of frames, of this kind of job and of the other one. */
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
		inject_expect(&x, &f, NULL);
	} while (f.type != ACP_FRAME_HELLO);
	x.encrypted = !x.encrypted;
	send_split(out, put_datagram(out), at);
	x.seq--;
	send_ack(at);
	send_hello(at);
	x.encrypted = !x.encrypted;
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
