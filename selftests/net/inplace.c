// SPDX-License-Identifier: MIT
/*
 * A put sends pages of its source, which must not change whatever the receiver does to a datagram.
 * This receiver decrypts in place if possible: an ESP-in-UDP socket, which takes the first word of
 * the tag of a frame as the index of a security association. With the job key, tags are
 * predictable, so an attacker with two namespaces could otherwise write to any page that a rank can
 * send from: that of a read-only file, or the zero page of the kernel.
 */
#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "inject.h"

#define SINGLE		1028UL		/* one frame, padded */
#define BATCH		6004UL		/* several frames in one skb; the last one is padded */
#define FRAMES_MAX	16
#define BODY_MAX	1500
#define PEER_MS		600000		/* nothing is acknowledged while a key is searched */
#define ESP_IN_UDP	2		/* from linux/udp.h, which conflicts with netinet/udp.h */

static struct nodes n;
static struct setup setup;
static struct rank victim, second;
static struct inject x;
static struct memory source;
static size_t size;

/* Frames of the observed put; number of puts since then. */
static struct {
	struct acp_frame f;
	uint8_t body[BODY_MAX];
} frames[FRAMES_MAX];
static uint32_t count, turn;

/* Not with encryption: then everything is copied, and tags are random. */
static uint32_t integrity = ACP_INTEGRITY_TAG;

/* ---- Puts ---- */

static void begin(bool ipv6, bool batch)
{
	nodes_open(&n, 2, 1, ipv6);
	nodes_setup(&n, &setup, 0, 4);
	setup.join.integrity = integrity;
	setup.join.timeout_ms = PEER_MS;
	nodes_join(&n, &victim, &setup);
	setup.join.rank = 1;
	nodes_join(&n, &second, &setup);
	inject_begin(&x, &n, &setup, &victim, 2);
	size = batch ? BATCH : SINGLE;
}

static void put(uint64_t from)
{
	rank_copy(&victim, rank_ga(&victim, 2, ACP_STAG_HEAP, 0), from, size, 0);
	turn++;
}

/* Return the number of datagrams that a node has sent. */
static long long sent(uint32_t node)
{
	return nodes_snmp(&n, node, "Ip", "OutRequests") +
	       nodes_snmp(&n, node, "Ip6", "OutRequests");
}

/* Receive the next frame of the puts and acknowledge it; earlier ones may be retransmitted. */
static void next_frame(struct acp_frame *f, void *body)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	uint64_t seq = x.heard;

	do {
		if (patience_over(&p))
			FAIL("no frame %llu", (unsigned long long)seq);
		inject_expect(&x, f, body);
	} while (f->type != ACP_FRAME_DATA || f->seq != seq);
	inject_ack(&x);
}

/* Execute a put, and record its frames. */
static void observe(uint64_t from)
{
	static uint8_t body[INJECT_MAX];
	const struct acp_msg_hdr *h = (const void *)body;

	put(from);
	count = 0;
	do {
		CHECK(count < FRAMES_MAX);
		next_frame(&frames[count].f, body);
		CHECK(frames[count].f.flags & ACP_FRAME_BULK);
		CHECK(frames[count].f.length <= BODY_MAX);
		memcpy(frames[count].body, body, frames[count].f.length);
		count++;
	} while (!(h->flags & ACP_MSG_LAST));
	CHECK_EQ(rank_await(&victim, victim.last, PATIENCE_SOON), ACP_ST_OK);
}

/*
 * Put until the frames have the expected form, in datagrams of several frames: on a busy machine
 * the window may be too small at first.
 */
static void learn(uint64_t from)
{
	uint32_t tries = 0;
	long long before;

	do {
		CHECK(++tries < 100);
		before = sent(0);
		observe(from);
	} while (size == BATCH && (tries < 5 || sent(0) - before >= count / 2));
	turn = 1;
}

/* Predict frame i of the next put, which has the same payload. Returns its tag. */
static uint64_t foretell(uint32_t i, struct acp_frame *f)
{
	struct {
		struct acp_frame_hdr h;
		uint8_t body[BODY_MAX];
	} d;
	struct acp_msg_hdr *m = (void *)d.body;

	*f = frames[i].f;
	f->seq += (uint64_t)turn * count;
	acp_frame_encode(&d.h, f);
	memcpy(d.body, frames[i].body, f->length);
	m->ticket = cpu_to_be64(be64_to_cpu(m->ticket) + turn);
	inject_sign(&x, &d, acp_frame_tagged(f), sizeof(d.h) + f->length);
	return be64_to_cpu(d.h.tag);
}

/* Put again, and compare its frames with the prediction. */
static void verify(uint64_t from)
{
	struct acp_frame wanted[FRAMES_MAX], f;
	uint32_t i;

	for (i = 0; i < count; i++)
		foretell(i, &wanted[i]);
	put(from);
	for (i = 0; i < count; i++) {
		next_frame(&f, NULL);
		CHECK_EQ(f.seq, wanted[i].seq);
		CHECK_EQ(f.ack, wanted[i].ack);
		CHECK_EQ(f.flags, wanted[i].flags);
		CHECK_EQ(f.length, wanted[i].length);
	}
	CHECK_EQ(rank_await(&victim, victim.last, PATIENCE_SOON), ACP_ST_OK);
}

/* ---- The receiver that decrypts ---- */

/* Return the identification of the association of frame i. */
static const char *id(uint32_t i)
{
	static char text[200];
	struct acp_frame f;

	snprintf(text, sizeof(text), "src %s dst %s proto esp spi 0x%08x", n.address[0],
		 n.address[1], (uint32_t)(foretell(i, &f) >> 32));
	return text;
}

static void associate(uint32_t i, unsigned int key)
{
	nodes_run(&n, 1, "ip xfrm state add %s mode transport "
		  "enc 'rfc3686(ctr(aes))' 0x0102030405060708090a0b0c0d0e0f10111213%02x "
		  "encap espinudp %u %u %s", id(i), key, ACP_PORT_DEFAULT, ACP_PORT_DEFAULT,
		  n.ipv6 ? "::" : "0.0.0.0");
}

/* True if its frame has been decrypted. */
static bool is_decrypted(uint32_t i)
{
	char command[300];
	int status;

	snprintf(command, sizeof(command), "ip -s xfrm state get %s | "
		 "grep -q ' [1-9][0-9]*(packets)'", id(i));
	nodes_enter(&n, 1);
	status = system(command);
	nodes_leave(&n);
	return !status;
}

/* From now on the receiver decrypts the frames of the next put. */
static void arm(void)
{
	int kind = ESP_IN_UDP;
	uint32_t i;

	for (i = 0; i < count; i++)
		associate(i, 0);
	CHECK_EQ(setsockopt(x.fd, SOL_UDP, UDP_ENCAP, &kind, sizeof(kind)), 0);
}

/*
 * Wait until each frame has been decrypted by its association, and acknowledge it. One of 128 is
 * not counted, because its last decrypted byte means that it is empty: it is retransmitted, and
 * differs with another key.
 */
static void await_decrypted(void)
{
	uint32_t i, tries = 0;
	struct patience p;

	turn--;
	for (i = 0; i < count; i++) {
		p = patience_begin(PATIENCE_WORK);
		while (!is_decrypted(i)) {
			if (patience_over(&p))
				FAIL("frame %u of %u is not decrypted, by none of %u keys", i,
				     count, tries / 20 + 1);
			sleep_ms(50);
			if (++tries % 20)
				continue;
			nodes_run(&n, 1, "ip xfrm state delete %s", id(i));
			associate(i, tries / 20);
		}
		x.heard++;
		inject_ack(&x);
	}
	turn++;
	CHECK_EQ(rank_await(&victim, victim.last, PATIENCE_SOON), ACP_ST_OK);
}

/* Put from an address repeatedly; the receiver decrypts the last put. */
static void attack(uint64_t from)
{
	learn(from);
	verify(from);
	arm();
	put(from);
	await_decrypted();
}

/* ---- Sources ---- */

static void is_zero_page_clean(void)
{
	char *p = pages(PAGE, PROT_READ), any = 0;
	size_t i;

	for (i = 0; i < PAGE; i++)
		any |= *(volatile char *)(p + i);
	CHECK_EQ(any, 0);
}

static char *map_source(int fd, int prot, int flags)
{
	char *p = mmap(NULL, 2 * PAGE, prot, flags, fd, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void from_file(bool ipv6, bool batch, int flags)
{
	char before[2 * PAGE], after[2 * PAGE];
	const char *name = "/tmp/setuid";
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600), error;

	fill(before, sizeof(before), 5);
	CHECK_EQ(write(fd, before, sizeof(before)), sizeof(before));
	CHECK_EQ(fchmod(fd, 04755), 0);
	close(fd);
	fd = open(name, O_RDONLY);
	CHECK(fd >= 0);
	begin(ipv6, batch);
	error = rank_register(&victim, &source, map_source(fd, PROT_READ, flags), 2 * PAGE,
			      ACP_ACCESS_RO | ACP_ACCESS_READ);
	/* Private pages of a private mapping are sent; those of the file cannot be registered. */
	CHECK_EQ(error, flags == MAP_SHARED ? -EFAULT : 0);
	if (!error)
		attack(memory_ga(&source, 0));
	CHECK_EQ(pread(fd, after, sizeof(after), 0), sizeof(after));
	CHECK(!memcmp(before, after, sizeof(after)));
	is_zero_page_clean();
}

static void shared_file(bool ipv6, bool batch)
{
	from_file(ipv6, batch, MAP_SHARED);
}

static void private_file(bool ipv6, bool batch)
{
	from_file(ipv6, batch, MAP_PRIVATE);
}

/* Memory that was never written to. */
static void zero_page(bool ipv6, bool batch)
{
	begin(ipv6, batch);
	CHECK_EQ(rank_register(&victim, &source,
			       map_source(-1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS), 2 * PAGE,
			       ACP_ACCESS_RO | ACP_ACCESS_READ), 0);
	attack(memory_ga(&source, 0));
	is_zero_page_clean();
}

/* Memory of the program itself does not change either, and padding is not shared. */
static void own_memory(bool ipv6, bool batch)
{
	begin(ipv6, batch);
	memory_open(&victim, &source, 2 * PAGE);
	fill(source.addr, 2 * PAGE, 6);
	attack(memory_ga(&source, 0));
	CHECK(filled(source.addr, 2 * PAGE, 6));
	is_zero_page_clean();
}

static void heap(bool ipv6, bool batch)
{
	begin(ipv6, batch);
	fill(victim.heap, 2 * PAGE, 7);
	attack(heap_ga(&victim, 0));
	CHECK(filled(victim.heap, 2 * PAGE, 7));
	is_zero_page_clean();
}

TEST(M8_in_place_shared_file_single)
{
	shared_file(false, false);
}

TEST(M8_in_place_shared_file_batch)
{
	shared_file(false, true);
}

TEST(M8_in_place_shared_file_single_ipv6)
{
	shared_file(true, false);
}

TEST(M8_in_place_shared_file_batch_ipv6)
{
	shared_file(true, true);
}

TEST(M8_in_place_private_file_single)
{
	private_file(false, false);
}

TEST(M8_in_place_private_file_batch)
{
	private_file(false, true);
}

TEST(M8_in_place_private_file_single_ipv6)
{
	private_file(true, false);
}

TEST(M8_in_place_private_file_batch_ipv6)
{
	private_file(true, true);
}

TEST(M8_in_place_zero_page_single)
{
	zero_page(false, false);
}

TEST(M8_in_place_zero_page_batch)
{
	zero_page(false, true);
}

TEST(M8_in_place_zero_page_single_ipv6)
{
	zero_page(true, false);
}

TEST(M8_in_place_zero_page_batch_ipv6)
{
	zero_page(true, true);
}

TEST(M8_in_place_own_memory_single)
{
	own_memory(false, false);
}

TEST(M8_in_place_own_memory_batch)
{
	own_memory(false, true);
}

TEST(M8_in_place_own_memory_single_ipv6)
{
	own_memory(true, false);
}

TEST(M8_in_place_own_memory_batch_ipv6)
{
	own_memory(true, true);
}

TEST(M8_in_place_heap_single)
{
	heap(false, false);
}

TEST(M8_in_place_heap_batch)
{
	heap(false, true);
}

TEST(M8_in_place_heap_single_ipv6)
{
	heap(true, false);
}

TEST(M8_in_place_heap_batch_ipv6)
{
	heap(true, true);
}

/* ---- Other integrities, with other headers ---- */

static void with(uint32_t other, void (*attack_on)(bool ipv6, bool batch), bool batch)
{
	integrity = other;
	attack_on(false, batch);
}

TEST(M8_in_place_private_file_single_crc32c)
{
	with(ACP_INTEGRITY_CRC32C, private_file, false);
}

TEST(M8_in_place_private_file_batch_crc32c)
{
	with(ACP_INTEGRITY_CRC32C, private_file, true);
}

TEST(M8_in_place_own_memory_single_crc32c)
{
	with(ACP_INTEGRITY_CRC32C, own_memory, false);
}

TEST(M8_in_place_own_memory_batch_crc32c)
{
	with(ACP_INTEGRITY_CRC32C, own_memory, true);
}

TEST(M8_in_place_private_file_single_udp)
{
	with(ACP_INTEGRITY_UDP, private_file, false);
}

TEST(M8_in_place_private_file_batch_udp)
{
	with(ACP_INTEGRITY_UDP, private_file, true);
}

TEST(M8_in_place_own_memory_single_udp)
{
	with(ACP_INTEGRITY_UDP, own_memory, false);
}

TEST(M8_in_place_own_memory_batch_udp)
{
	with(ACP_INTEGRITY_UDP, own_memory, true);
}
