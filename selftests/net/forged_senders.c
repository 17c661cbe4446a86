// SPDX-License-Identifier: MIT
/* selftest: leaks */
/*
 * Frames of senders that are none: of another job, with another key, from another address, of
 * another node; and floods of them. They are counted, and get no answer.
 */
#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>

#include "forged_play.h"

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
