// SPDX-License-Identifier: MIT
/*
 * What an administrator puts in the way of datagrams has a say in ours, too: the module leaves out
 * steps of the network stack that have nothing to decide (kernel/bypass.h), and must not leave out
 * others.  Rules come while there is traffic, which has found its short way, and go again.
 */
#include "../dev/isolated.h"

#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../dev/traffic.h"
#include "nodes.h"

#define KB	1024UL
#define PUTS	50

static struct nodes n;
static struct rank r[2];
static struct traffic t;

/* A short put from node 0 to node 1: its ticket. */
static uint64_t put(void)
{
	return rank_copy(&r[0], memory_ga(&t.memory[1], t.half), memory_ga(&t.memory[0], 0), 8, 0);
}

/* One by one, so that each is a frame, and its acknowledgement is one. */
static void puts_work(int count)
{
	while (count--)
		CHECK_EQ(rank_wait(&r[0], put(), 10000 * MS), ACP_ST_OK);
	memcpy(t.model[1] + t.half, t.memory[0].addr, 8);
}

static void begin(void)
{
	const struct acp_join wish = { .timeout_ms = 20000, .open_timeout_ms = 20000 };

	nodes_open(&n, 2, 1, false);
	nodes_ranks_like(&n, r, 2, &wish);
	traffic_open(&t, r, 2, 16 * KB, 0);
	puts_work(PUTS);
}

static void sound(void)
{
	puts_work(PUTS);
	traffic_random(&t, 1, 20, 5000);
	traffic_check(&t);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

/* The number that a command (format) prints in a node's namespace. */
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

/* Not all kernels can do all. */
static void need(const char *what)
{
	char command[300];

	snprintf(command, sizeof(command), "unshare -n sh -c '%s' >/dev/null 2>&1", what);
	if (system(command))
		SKIP("this kernel has no %s", what);
}

/* ---- nftables ---- */

/* A chain of that type at a hook, with a rule about UDP. */
static void rule(uint32_t node, const char *hook, const char *what)
{
	nodes_run(&n, node, "nft 'add table ip t; "
		  "add chain ip t c { type filter hook %s priority 0; }; "
		  "add rule ip t c ip protocol udp %s'", hook, what);
}

/* Packets that the counter of the rule has seen. */
static long long counted(uint32_t node)
{
	return number(node, "nft list chain ip t c | sed -n 's/.*counter packets \\([0-9]*\\).*/\\1/p'");
}

static void no_rule(uint32_t node)
{
	nodes_run(&n, node, "nft delete table ip t");
}

/* A rule drops what comes by, counts it, and once it is gone all goes on. */
static void drops_at(uint32_t node, const char *hook)
{
	uint64_t ticket;

	rule(node, hook, "counter drop");
	ticket = put();
	CHECK_EQ(rank_wait(&r[0], ticket, 300 * MS), -1);
	CHECK(counted(node) > 0);
	no_rule(node);
	CHECK_EQ(rank_wait(&r[0], ticket, 10000 * MS), ACP_ST_OK);
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
		uint32_t node = i < 2;		/* where the puts come in, or go out */

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

/* A chain that hands datagrams to nobody drops them, or lets them go on from where they are. */
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
	CHECK_EQ(rank_wait(&r[0], ticket, 10000 * MS), ACP_ST_OK);
	rule(0, "postrouting", "counter queue num 7 bypass");
	rule(1, "prerouting", "counter queue num 7 bypass");
	puts_work(PUTS);
	CHECK(counted(0) >= PUTS);
	CHECK(counted(1) >= PUTS);
	no_rule(0);
	no_rule(1);
	sound();
}

/* ---- others that have a say ---- */

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
		CHECK_EQ(rank_wait(&r[0], ticket, 10000 * MS), ACP_ST_OK);
		sound();
	}
}

/* Who listens to all of UDP gets all of it. */
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

/* ---- the kernel's counters ---- */

/* A counter of /proc/net/snmp. */
static long long snmp(uint32_t node, const char *group, const char *name)
{
	return number(node, "awk '$1 == \"%s:\" { if (h) { for (i = 2; i <= NF; i++) "
		      "if (w[i] == \"%s\") print $i } else { split($0, w); h = 1 } }' /proc/net/snmp",
		      group, name);
}

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
		kernel[i] = snmp(1, counters[i].group, counters[i].name);
	puts_work(PUTS);
	sleep_ms(50);
	after = nodes_counter(&n, 1, "rx_frames");
	CHECK(after - before >= PUTS);
	for (i = 0; i < COUNTERS; i++) {
		moved = snmp(1, counters[i].group, counters[i].name) - kernel[i];
		/* As many as there were, and no two for one; a put has one frame each way. */
		if (moved < PUTS || moved > after - before + PUTS / 5)
			FAIL("%s %s moved by %lld, for %lld frames", counters[i].group,
			     counters[i].name, moved, after - before);
	}
	sound();
}
