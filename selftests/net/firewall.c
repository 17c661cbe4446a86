// SPDX-License-Identifier: MIT
/*
 * Packet filters and policies apply to datagrams of the module, which bypasses parts of the network
 * stack that have nothing to decide (kernel/net/bypass.h) and must not bypass others. Rules are
 * added while traffic uses the bypass, and removed again.
 */
#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../dev/traffic.h"
#include "nodes.h"

#define KB	1024UL
#define PUTS	50
#define RECHECKED 5	/* limit; each takes a second */

static struct nodes n;
static struct rank r[2];
static struct traffic t;

/* Put a few bytes from node 0 to node 1. Returns the ticket. */
static uint64_t put(void)
{
	return rank_copy(&r[0], memory_ga(&t.memory[1], t.half), memory_ga(&t.memory[0], 0), 8, 0);
}

/* One by one, so that each is a frame with its own acknowledgement. */
static void puts_work(int count)
{
	while (count--)
		CHECK_EQ(rank_await(&r[0], put(), PATIENCE_SOON), ACP_ST_OK);
	memcpy(t.model[1] + t.half, t.memory[0].addr, 8);
}

static void begin_ranks(void)
{
	const struct acp_join wish = { .timeout_ms = 20000, .open_timeout_ms = 20000 };

	nodes_ranks_like(&n, r, 2, &wish);
	traffic_open(&t, r, 2, 16 * KB, 0);
	puts_work(PUTS);
}

static void begin(void)
{
	nodes_open(&n, 2, 1, false);
	begin_ranks();
}

/* Number of datagrams of these puts that used the bypass: out of node 0, and into node 1. */
struct ways {
	long long out, in;
};

static struct ways ways(void)
{
	const long long out = nodes_counter(&n, 0, "tx_direct");
	const long long in = nodes_counter(&n, 1, "rx_direct");

	puts_work(PUTS);
	return (struct ways){ nodes_counter(&n, 0, "tx_direct") - out,
			      nodes_counter(&n, 1, "rx_direct") - in };
}

/*
 * Check that all or none of them use the bypass, once changed routes have been looked up again,
 * which takes some frames. The receiver re-checks its state once per second with a frame through
 * the full stack.
 */
static void short_ways(bool out, bool in)
{
	struct ways w;

	puts_work(PUTS);
	w = ways();

	if (out ? w.out < PUTS : w.out)
		FAIL("out of node 0: %lld of %d puts", w.out, PUTS);
	if (in ? w.in < PUTS - RECHECKED : w.in)
		FAIL("into node 1: %lld of %d puts", w.in, PUTS);
}

static void sound(void)
{
	puts_work(PUTS);
	traffic_random(&t, 1, 20, 5000);
	traffic_check(&t);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

/* Return the number that a command (format) prints in the namespace of a node. */
static long long number(uint32_t node, const char *format, ...)
{
	char command[500], text[100] = "";
	va_list args;
	FILE *f;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	nodes_enter(&n, node);
	f = popen(command, "r");
	nodes_leave(&n);
	CHECK(f);
	if (!fgets(text, sizeof(text), f))
		FAIL("%s: prints nothing", command);
	CHECK_EQ(pclose(f), 0);
	return atoll(text);
}

/* Skip the test if the kernel lacks a feature. */
static void need(const char *what)
{
	char command[600];

	snprintf(command, sizeof(command), "unshare -n sh -c '%s' >/dev/null 2>&1", what);
	if (system(command))
		SKIP("this kernel has no %s", what);
}

/* ---- nftables ---- */

/* Add a chain of that type at a hook, with a rule about UDP. */
static void rule(uint32_t node, const char *hook, const char *what)
{
	nodes_run(&n, node, "nft 'add table ip t; "
		  "add chain ip t c { type filter hook %s priority 0; }; "
		  "add rule ip t c ip protocol udp %s'", hook, what);
}

/* Return the packet counter of the rule. */
static long long counted(uint32_t node)
{
	return number(node, "nft list chain ip t c | sed -n 's/.*counter packets \\([0-9]*\\).*/\\1/p'");
}

static void no_rule(uint32_t node)
{
	nodes_run(&n, node, "nft delete table ip t");
}

/* A rule drops and counts packets; after its removal everything continues. */
static void drops_at(uint32_t node, const char *hook)
{
	uint64_t ticket;

	rule(node, hook, "counter drop");
	ticket = put();
	CHECK_EQ(rank_wait(&r[0], ticket, 300 * MS), -1);
	CHECK(counted(node) > 0);
	no_rule(node);
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
	sound();
}

/* Each direction separately. */
TEST(rules_end_the_short_way_and_it_comes_back)
{
	need("nft add table ip t");
	begin();
	short_ways(true, true);
	rule(1, "input", "accept");
	short_ways(true, false);
	no_rule(1);
	rule(0, "output", "accept");
	short_ways(false, true);
	no_rule(0);
	rule(0, "postrouting", "accept");
	rule(1, "prerouting", "accept");
	short_ways(true, true);
	no_rule(0);
	no_rule(1);
	short_ways(true, true);
	sound();
}

/* Unrelated routes change: the routes are looked up again within a datagram or two. */
TEST(the_short_way_is_known_again_soon)
{
	struct ways w;
	uint32_t i;

	begin();
	puts_work(PUTS);
	for (i = 0; i < 5; i++) {
		nodes_run(&n, 1, "ip route add blackhole 10.77.%u.0/24", i);
		w = ways();
		if (w.in < PUTS - 3 - RECHECKED)
			FAIL("into node 1: %lld of %d puts", w.in, PUTS);
	}
}

/* Our hook has the last priority; a rule with the same priority is evaluated after it. */
TEST(a_rule_that_was_last_before_us_drops)
{
	const char *const last = "{ type filter hook prerouting priority 2147483647; }";
	uint64_t ticket;

	need("nft add table ip t");
	nodes_open(&n, 2, 1, false);
	nodes_run(&n, 1, "nft 'add table ip t; add chain ip t c %s'", last);
	begin_ranks();
	short_ways(true, false);
	nodes_run(&n, 1, "nft 'add rule ip t c ip protocol udp counter drop'");
	ticket = put();
	CHECK_EQ(rank_wait(&r[0], ticket, 300 * MS), -1);
	CHECK(counted(1) > 0);
	no_rule(1);
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
	short_ways(true, true);
	sound();
}

TEST(a_rule_drops_before_routing)
{
	need("nft add table ip t");
	begin();
	drops_at(1, "prerouting");
}

TEST(a_rule_drops_input)
{
	need("nft add table ip t");
	begin();
	drops_at(1, "input");
}

TEST(a_rule_drops_output)
{
	need("nft add table ip t");
	begin();
	drops_at(0, "output");
}

TEST(a_rule_drops_behind_routing)
{
	need("nft add table ip t");
	begin();
	drops_at(0, "postrouting");
}

TEST(rules_count_every_datagram)
{
	static const char *const hooks[] = { "prerouting", "input", "output", "postrouting" };
	uint32_t i;

	need("nft add table ip t");
	begin();
	for (i = 0; i < 4; i++) {
		uint32_t node = i < 2;		/* where the puts arrive, or leave */

		rule(node, hooks[i], "counter accept");
		puts_work(PUTS);
		CHECK(counted(node) >= PUTS);
		no_rule(node);
	}
	sound();
}

TEST(connections_are_tracked)
{
	const char *const track = "nft \"add table ip t; add chain ip t c { type filter hook "
				  "input priority 0; }; add rule ip t c ct state new counter\"";

	need(track);
	begin();
	rule(1, "input", "ct state established counter");
	rule(0, "output", "ct state established counter");
	puts_work(PUTS);
	CHECK(counted(1) >= PUTS - 1);
	CHECK(counted(0) >= PUTS - 1);
	no_rule(0);
	no_rule(1);
	sound();
}

/* A chain that queues datagrams to no program drops them, or accepts them at that point. */
TEST(queued_for_a_program)
{
	uint64_t ticket;

	need("nft \"add table ip t; add chain ip t c { type filter hook output priority 0; }; "
	     "add rule ip t c queue num 7\"");
	begin();
	rule(0, "postrouting", "counter queue num 7");
	ticket = put();
	CHECK_EQ(rank_wait(&r[0], ticket, 300 * MS), -1);
	CHECK(counted(0) > 0);
	no_rule(0);
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
	rule(0, "postrouting", "counter queue num 7 bypass");
	rule(1, "prerouting", "counter queue num 7 bypass");
	puts_work(PUTS);
	CHECK(counted(0) >= PUTS);
	CHECK(counted(1) >= PUTS);
	no_rule(0);
	no_rule(1);
	sound();
}

/* ---- a program that decides (NFQUEUE) ---- */

#define QUEUE	7

/* A program that accepts all packets, and counts them. */
struct decider {
	pthread_t thread;
	int fd;
	bool stop;
	long passed;
};

/* Send a message about the queue with one attribute, without waiting for an answer. */
static void tell_queue(int fd, uint16_t type, uint16_t attribute, const void *data, uint16_t size)
{
	struct {
		struct nlmsghdr h;
		struct nfgenmsg g;
		struct nlattr a;
		char data[32];
	} m = {
		.h = {
			.nlmsg_len = (uint32_t)(sizeof(m.h) + sizeof(m.g) + sizeof(m.a)) + size,
			.nlmsg_type = (uint16_t)(NFNL_SUBSYS_QUEUE << 8 | type),
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.g = { .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(QUEUE) },
		.a = { .nla_len = (uint16_t)(sizeof(m.a) + size), .nla_type = attribute },
	};

	memcpy(m.data, data, size);
	CHECK_EQ(send(fd, &m, m.h.nlmsg_len, 0), m.h.nlmsg_len);
}

/* Return the packet header in a message of the queue; NULL for other messages. */
static const struct nfqnl_msg_packet_hdr *packet_of(const struct nlmsghdr *h)
{
	const char *at = (const char *)NLMSG_DATA(h) + NLMSG_ALIGN(sizeof(struct nfgenmsg));
	const char *end = (const char *)h + h->nlmsg_len;

	if (h->nlmsg_type != (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET))
		return NULL;
	while (at + sizeof(struct nlattr) <= end) {
		const struct nlattr *a = (const void *)at;

		if (a->nla_type == NFQA_PACKET_HDR)
			return (const void *)(a + 1);
		at += NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

static void *decide(void *arg)
{
	char data[8192] __attribute__((aligned(8)));
	struct decider *d = arg;
	struct pollfd p = { .fd = d->fd, .events = POLLIN };

	while (!__atomic_load_n(&d->stop, __ATOMIC_ACQUIRE)) {
		ssize_t got = poll(&p, 1, 50) > 0 ? recv(d->fd, data, sizeof(data), 0) : 0;
		const struct nfqnl_msg_packet_hdr *packet;

		packet = got > 0 ? packet_of((const void *)data) : NULL;
		if (packet) {
			struct nfqnl_msg_verdict_hdr v = {
				.verdict = htonl(NF_ACCEPT), .id = packet->packet_id,
			};

			d->passed++;
			tell_queue(d->fd, NFQNL_MSG_VERDICT, NFQA_VERDICT_HDR, &v, sizeof(v));
		}
	}
	return NULL;
}

static void decider_start(struct decider *d, uint32_t node)
{
	struct nfqnl_msg_config_cmd bind = { .command = NFQNL_CFG_CMD_BIND };
	struct nfqnl_msg_config_params meta = { .copy_mode = NFQNL_COPY_META };

	*d = (struct decider){};
	nodes_enter(&n, node);
	d->fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
	nodes_leave(&n);
	CHECK(d->fd >= 0);
	tell_queue(d->fd, NFQNL_MSG_CONFIG, NFQA_CFG_CMD, &bind, sizeof(bind));
	tell_queue(d->fd, NFQNL_MSG_CONFIG, NFQA_CFG_PARAMS, &meta, sizeof(meta));
	CHECK_EQ(pthread_create(&d->thread, NULL, decide, d), 0);
}

static void decider_end(struct decider *d)
{
	__atomic_store_n(&d->stop, true, __ATOMIC_RELEASE);
	pthread_join(d->thread, NULL);
	close(d->fd);
}

/*
 * The program is asked once for each packet, at any hook, and the packet continues in its context.
 */
TEST(a_program_lets_them_go_on)
{
	static const char *const hooks[] = { "prerouting", "input", "output", "postrouting" };
	struct decider d;
	long long sent;
	uint32_t i;

	need("nft \"add table ip t; add chain ip t c { type filter hook output priority 0; }; "
	     "add rule ip t c queue num 7\"");
	begin();
	for (i = 0; i < 4; i++) {
		uint32_t node = i < 2;

		decider_start(&d, node);
		sent = nodes_counters(&n, "tx_frames");
		rule(node, hooks[i], "counter queue num 7");
		puts_work(PUTS);
		sleep_ms(20);
		CHECK(counted(node) >= PUTS);
		no_rule(node);
		decider_end(&d);
		/*
		 * One was in flight when the rule was added, some are retransmitted; none is queued
		 * twice.
		 */
		sent = nodes_counters(&n, "tx_frames") - sent;
		if (d.passed < PUTS || d.passed > sent + 1)
			FAIL("%s: asked %ld times about %d puts in %lld frames", hooks[i],
			     d.passed, PUTS, sent);
		short_ways(true, true);
	}
	sound();
}

/* ---- other policies ---- */

/* A cached route is looked up again after any change of routes. */
TEST(routes_that_forbid)
{
	uint64_t ticket;

	begin();
	nodes_run(&n, 1, "ip route del local 10.9.0.2 table local");
	ticket = put();
	CHECK_EQ(rank_wait(&r[0], ticket, 300 * MS), -1);
	nodes_run(&n, 1, "ip route add local 10.9.0.2 dev eth0 table local scope host src 10.9.0.2");
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
	nodes_run(&n, 0, "ip route add blackhole 10.9.0.2/32");
	ticket = put();
	CHECK_EQ(rank_wait(&r[0], ticket, 300 * MS), -1);
	nodes_run(&n, 0, "ip route del blackhole 10.9.0.2/32");
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
	short_ways(true, true);
	sound();
}

TEST(ipsec_policies_block)
{
	static const char *const ways[] = { "out", "in" };
	uint32_t i;

	need("ip xfrm policy add src 10.9.0.1 dst 10.9.0.2 proto udp dir out action block");
	begin();
	for (i = 0; i < 2; i++) {
		uint64_t ticket;

		nodes_run(&n, i, "ip xfrm policy add src 10.9.0.1 dst 10.9.0.2 proto udp dir %s "
			  "action block", ways[i]);
		ticket = put();
		CHECK_EQ(rank_wait(&r[0], ticket, 300 * MS), -1);
		nodes_run(&n, i, "ip xfrm policy flush");
		CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
		sound();
	}
}

#define ESP(src, dst) "ip xfrm state add src " src " dst " dst " proto esp spi 1 mode transport " \
	"enc \"ecb(cipher_null)\" \"\" auth \"hmac(sha1)\" 0x000102030405060708090a0b0c0d0e0f10111213"
#define POLICY(way) "ip xfrm policy add src 10.9.0.1 dst 10.9.0.2 proto udp dir " way " " \
	"tmpl proto esp mode transport"

/* Traffic with an IPsec policy is encrypted: node 1 drops everything else. */
TEST(ipsec_encrypts)
{
	need(ESP("10.9.0.1", "10.9.0.2") " && " POLICY("out"));
	begin();
	nodes_run(&n, 0, ESP("10.9.0.1", "10.9.0.2"));
	nodes_run(&n, 1, ESP("10.9.0.1", "10.9.0.2"));
	nodes_run(&n, 0, POLICY("out"));
	nodes_run(&n, 1, POLICY("in"));
	short_ways(false, false);
	sound();
	nodes_run(&n, 0, "ip xfrm policy flush && ip xfrm state flush");
	nodes_run(&n, 1, "ip xfrm policy flush && ip xfrm state flush");
	short_ways(true, true);
}

/* A raw socket for UDP receives all packets. */
TEST(raw_sockets_hear_all)
{
	char data[2000];
	int fd, got = 0;

	begin();
	nodes_enter(&n, 1);
	fd = socket(AF_INET, SOCK_RAW, IPPROTO_UDP);
	nodes_leave(&n);
	CHECK(fd >= 0);
	puts_work(PUTS);
	while (recv(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		got++;
	close(fd);
	CHECK(got >= PUTS);
	sound();
}

/* ---- net.acp.bypass ---- */

static void set_bypass(uint32_t node, int value)
{
	nodes_run(&n, node, "echo %d >/proc/sys/net/acp/bypass", value);
}

/* Each node separately; the value also applies to existing traffic. */
TEST(bypass_off_ends_the_short_way_and_on_brings_it_back)
{
	begin();
	CHECK_EQ(number(0, "cat /proc/sys/net/acp/bypass"), 2);
	short_ways(true, true);
	set_bypass(0, 0);
	short_ways(false, true);
	sound();
	set_bypass(1, 0);
	short_ways(false, false);
	sound();
	set_bypass(0, 1);
	short_ways(true, false);
	set_bypass(1, 2);
	short_ways(true, true);
	sound();
}

/* All cached state is invalidated repeatedly while it is learned and used. */
static void set_again_and_again(void)
{
	const int turns = test_short() ? 100 : 500;
	int fd, i;

	nodes_enter(&n, 1);
	fd = open("/proc/sys/net/acp/bypass", O_WRONLY);
	CHECK(fd >= 0);
	for (i = 0; i < turns; i++)
		CHECK_EQ(pwrite(fd, &"012"[i % 3], 1, 0), 1);
}

TEST(bypass_set_again_and_again_loses_nothing)
{
	pid_t child;
	int status;

	begin();
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		set_again_and_again();
		exit(0);
	}
	while (!waitpid(child, &status, WNOHANG))
		traffic_random(&t, 1, 20, 5000);
	CHECK_EQ(status, 0);
	traffic_check(&t);
	set_bypass(1, 2);
	short_ways(true, true);
	sound();
}

TEST(bypass_has_three_values)
{
	begin();
	nodes_run(&n, 0, "! echo 3 2>/dev/null >/proc/sys/net/acp/bypass && "
		  "! echo -1 2>/dev/null >/proc/sys/net/acp/bypass");
	CHECK_EQ(number(0, "cat /proc/sys/net/acp/bypass"), 2);
}

/* ---- counters of the kernel ---- */

static const struct {
	const char *group, *name;
} counters[] = {
	{ "Ip", "InReceives" }, { "Ip", "InDelivers" }, { "Udp", "InDatagrams" },
	{ "Ip", "OutRequests" },
};

#define COUNTERS	(sizeof(counters) / sizeof(counters[0]))

TEST(the_kernel_counts_each_datagram)
{
	long long kernel[COUNTERS], before, after, moved;
	uint32_t i;

	begin();
	sleep_ms(50);
	before = nodes_counter(&n, 1, "rx_frames");
	for (i = 0; i < COUNTERS; i++)
		kernel[i] = nodes_snmp(&n, 1, counters[i].group, counters[i].name);
	puts_work(PUTS);
	sleep_ms(50);
	after = nodes_counter(&n, 1, "rx_frames");
	CHECK(after - before >= PUTS);
	for (i = 0; i < COUNTERS; i++) {
		moved = nodes_snmp(&n, 1, counters[i].group, counters[i].name) - kernel[i];
		/* No fewer, and none counted twice; a put has one frame in each direction. */
		if (moved < PUTS || moved > after - before + PUTS / 5)
			FAIL("%s %s moved by %lld, for %lld frames", counters[i].group,
			     counters[i].name, moved, after - before);
	}
	sound();
}
