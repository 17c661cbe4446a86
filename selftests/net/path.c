// SPDX-License-Identifier: MIT
/*
 * Paths that change during a job: links, addresses, routes and devices that are removed (N17),
 * datagrams that become too long (N16), firewalls and NAT (N18), and clock changes (N19).
 */
#include "../dev/isolated.h"

#include <pthread.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>

#include "../dev/traffic.h"
#include "nodes.h"

#define KB	1024UL
#define HALF	(256 * KB)	/* memory of a rank: the longest copy */

static struct nodes n;
static struct rank r[3];
static struct traffic t;

static void begin(bool ipv6, uint32_t timeout_ms)
{
	const struct acp_join wish = { .timeout_ms = timeout_ms, .open_timeout_ms = timeout_ms };

	nodes_open(&n, 3, 1, ipv6);
	nodes_ranks_like(&n, r, 3, &wish);
	traffic_open(&t, r, 3, HALF, 0);
	traffic_random(&t, 1, 20, 5000);
}

/* Copy half of the memory from node 0 to node 1. */
static uint64_t long_copy(void)
{
	return rank_copy(&r[0], memory_ga(&t.memory[1], t.half), memory_ga(&t.memory[0], 0),
			 HALF, 0);
}

/* The same, with its first frames in flight, which are lost until nodes_impair(&n, 0, ""). */
static uint64_t begin_long_copy(void)
{
	long long before;
	uint64_t ticket;

	nodes_impair(&n, 0, "loss 100%");
	before = nodes_counter(&n, 0, "tx_frames");
	ticket = long_copy();
	while (nodes_counter(&n, 0, "tx_frames") < before + 20)
		CHECK_EQ(rank_wait(&r[0], ticket, 10 * MS), -1);
	return ticket;
}

static void long_copy_ends(uint64_t ticket)
{
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_WORK), ACP_ST_OK);
	CHECK(!memcmp(t.memory[1].addr + t.half, t.memory[0].addr, HALF));
	memcpy(t.model[1] + t.half, t.memory[0].addr, HALF);
}

/* Check that everything works as before, and no peer has failed. */
static void sound(void)
{
	traffic_random(&t, 1, 40, 20000);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
	CHECK_EQ(nodes_counters(&n, "flows_restarted"), 0);
}

/* Traffic between all ranks until a child that changes the network has ended. */
static void traffic_during(void (*change)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		change();
		_exit(0);
	}
	CHECK(child > 0);
	while (waitpid(child, &status, WNOHANG) == 0) {
		traffic_random(&t, 1, 20, 20000);
		traffic_count(&t, 1, 20);
	}
	CHECK_EQ(status, 0);
}

/* ---- N17 ---- */

/* More than half of the timeout of a silent peer. */
TEST(N17_link_down_for_most_of_the_time_out)
{
	uint64_t ticket;

	begin(false, 14000);
	ticket = begin_long_copy();
	nodes_run(&n, NODES_HUB, "ip link set port0.1 down");
	nodes_impair(&n, 0, "");
	CHECK_EQ(rank_wait(&r[0], ticket, 7500 * MS), -1);
	nodes_run(&n, NODES_HUB, "ip link set port0.1 up");
	long_copy_ends(ticket);
	sound();
}

/* As in the table of faults: one minute. */
TEST_LONG(N17_link_down_for_60_s, PATIENCE_LONG_TEST)
{
	uint64_t ticket;

	if (!getenv("ACP_TEST_LONG"))
		SKIP("takes more than a minute: ACP_TEST_LONG=1");
	begin(false, 100000);
	ticket = begin_long_copy();
	nodes_run(&n, 1, "ip link set eth0 down");
	nodes_impair(&n, 0, "");
	CHECK_EQ(rank_wait(&r[0], ticket, 60000 * MS), -1);
	nodes_run(&n, 1, "ip link set eth0 up");
	long_copy_ends(ticket);
	sound();
}

static void address_removed(bool ipv6)
{
	const char *width = ipv6 ? "/64 nodad" : "/24";
	uint64_t ticket;

	begin(ipv6, 20000);
	ticket = begin_long_copy();
	nodes_run(&n, 1, "ip addr del %s/%d dev eth0", n.address[1], ipv6 ? 64 : 24);
	nodes_impair(&n, 0, "");
	CHECK_EQ(rank_wait(&r[0], ticket, 1000 * MS), -1);
	nodes_run(&n, 1, "ip addr add %s%s dev eth0", n.address[1], width);
	long_copy_ends(ticket);
	/* ... and that of the sending node. */
	nodes_run(&n, 0, "ip addr del %s/%d dev eth0", n.address[0], ipv6 ? 64 : 24);
	ticket = long_copy();
	CHECK_EQ(rank_wait(&r[0], ticket, 1000 * MS), -1);
	CHECK(nodes_counter(&n, 0, "tx_errors") > 0);
	nodes_run(&n, 0, "ip addr add %s%s dev eth0", n.address[0], width);
	long_copy_ends(ticket);
	sound();
}

TEST(N17_address_removed_and_put_back)
{
	address_removed(false);
}

TEST(N17_address_removed_and_put_back_ipv6)
{
	address_removed(true);
}

/* The forward path is removed and restored; the return path is misrouted and restored. */
static void flap(void)
{
	nodes_run(&n, 0, "for i in 1 2 3 4 5 6; do ip route del 10.9.0.0/24 dev eth0; sleep 0.05; "
		  "ip route add 10.9.0.0/24 dev eth0; sleep 0.05; done");
	nodes_run(&n, 1, "for i in 1 2 3 4 5 6; do ip route add 10.9.0.1/32 via 10.9.0.99; "
		  "sleep 0.05; ip route del 10.9.0.1/32; sleep 0.05; done");
}

TEST(N17_route_flaps_in_traffic)
{
	begin(false, 30000);
	traffic_during(flap);
	CHECK(nodes_counter(&n, 0, "tx_errors") > 0);
	sound();
}

/*
 * Node 1's card gets another name, another hardware address, and becomes the port of a bridge that
 * takes its address over; and back.
 */
static void change_card(void)
{
	nodes_run(&n, 1, "rename() { ip link set $1 down; ip link set $1 name $2; "
		  "ip link set $2 up; }; rename eth0 other0; sleep 0.2; rename other0 eth0");
	nodes_run(&n, 1, "echo 1 >/proc/sys/net/ipv4/conf/eth0/arp_notify; "
		  "ip link set eth0 address 02:09:00:00:00:77");
	nodes_run(&n, 1, "move() { ip addr del 10.9.0.2/24 dev $1 && ip addr add 10.9.0.2/24 dev $2; }; "
		  "ip link add b0 address 02:09:00:00:00:77 type bridge; ip link set b0 up; "
		  "ip link set eth0 master b0; move eth0 b0; sleep 0.2; "
		  "move b0 eth0; ip link set eth0 nomaster; ip link del b0");
}

TEST(N17_card_is_renamed_and_bridged_in_traffic)
{
	begin(false, 30000);
	traffic_during(change_card);
	sound();
}

/* Node 1's card is moved to a namespace of another process, and back. */
static void lend_card(void)
{
	nodes_run(&n, 1, "unshare -n sleep 60 & other=$!; "
		  "while [ $(readlink /proc/$other/ns/net) = $(readlink /proc/$$/ns/net) ]; do "
		  "sleep 0.05; done; ip link set eth0 netns $other; sleep 0.2; "
		  "nsenter -n -t $other ip link set eth0 netns $$; kill $other; "
		  "ip addr add 10.9.0.2/24 dev eth0; ip link set eth0 up");
}

TEST(N17_card_visits_another_namespace_in_traffic)
{
	begin(false, 30000);
	traffic_during(lend_card);
	sound();
}

/* As in routed fabrics: addresses of lo, reached by IPv6 next hops over two cards. */
TEST(E1_addresses_of_lo_with_ipv6_next_hops)
{
	uint32_t i;

	if (system("unshare -n sh -c 'ip link set lo up; ip route add 10.8.0.2/32 "
		   "nexthop dev lo nexthop dev lo' 2>/dev/null"))
		SKIP("this kernel has no routes with several next hops");
	nodes_open(&n, 2, 2, true);
	for (i = 0; i < 2; i++) {
		nodes_run(&n, i, "ip addr add 10.8.0.%u/32 dev lo; "
			  "ip route add 10.8.0.%u/32 src 10.8.0.%u nexthop via inet6 fd09::%u dev eth0 "
			  "nexthop via inet6 fd09:0:0:1::%u dev eth1",
			  i + 1, 2 - i, i + 1, 2 - i, 2 - i);
		snprintf(n.text[i], sizeof(n.text[i]), "10.8.0.%u", i + 1);
	}
	n.address[2] = NULL;
	nodes_ranks(&n, r, 2);
	traffic_open(&t, r, 2, HALF, 0);
	traffic_random(&t, 1, 40, 20000);
	nodes_run(&n, 0, "ip link set eth0 down");
	nodes_run(&n, 1, "ip link set eth0 down");
	sound();
}

#define PROCESSOR	"/sys/devices/system/cpu/cpu1/online"

static void switch_processor(void)
{
	unsigned int i;

	for (i = 0; i < 6; i++) {
		CHECK(write_file(PROCESSOR, i % 2 ? "1" : "0"));
		sleep_ms(200);
	}
}

TEST(a_processor_goes_off_and_on_in_traffic)
{
	if (test_short() || access(PROCESSOR, W_OK))
		SKIP("for a machine with two processors, at full length");
	begin(false, 30000);
	traffic_during(switch_processor);
	sound();
}

/* Check for a status with which a command to a node without network may end. */
static void check_gone(int status)
{
	if (status != ACP_ST_TIMEOUT && status != ACP_ST_ROUTE)
		FAIL("status %d, wanted a time-out or no route", status);
}

/* Nodes 0 and 2 are not affected when node 1 loses its device. */
TEST(N17_card_unplugged_for_good)
{
	uint64_t ticket[3], to, from;
	struct patience soon;
	uint32_t rounds = 0;

	begin(false, 4000);
	nodes_impair(&n, 1, "loss 100%");
	ticket[1] = rank_copy(&r[1], memory_ga(&t.memory[2], t.half), memory_ga(&t.memory[1], 0),
			      HALF, 0);
	ticket[2] = rank_copy(&r[2], memory_ga(&t.memory[1], t.half), memory_ga(&t.memory[2], 0),
			      HALF, 0);
	nodes_run(&n, 1, "ip link del eth0");
	soon = patience_begin(PATIENCE_WORK);
	to = memory_ga(&t.memory[2], t.half);
	from = memory_ga(&t.memory[0], 0);
	for (; rank_completed(&r[1]) < ticket[1] || rank_completed(&r[2]) < ticket[2] ||
	     rounds < 20; rounds++) {
		fill(t.memory[0].addr, 5000, rounds);
		CHECK_EQ(rank_do_copy(&r[0], to, from, 5000), ACP_ST_OK);
		CHECK_EQ(rank_do_copy(&r[0], from + 5000, to, 5000), ACP_ST_OK);
		CHECK(filled(t.memory[0].addr + 5000, 5000, rounds));
		CHECK(!patience_over(&soon));
	}
	printf("# %u rounds of others meanwhile\n", rounds);
	check_gone(rank_wait(&r[1], ticket[1], 0));
	check_gone(rank_wait(&r[2], ticket[2], 0));
	check_gone(rank_do_copy(&r[0], memory_ga(&t.memory[1], 0), memory_ga(&t.memory[0], 0), 8));
	check_gone(rank_do_copy(&r[1], memory_ga(&t.memory[1], 0), memory_ga(&t.memory[0], 0), 8));
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&t.memory[2], 0), memory_ga(&t.memory[0], 0), 8),
		 ACP_ST_OK);
}

/* ---- N16 ---- */

/* Return how often IP of a node has fragmented datagrams. */
static long long fragmented(uint32_t node)
{
	return nodes_snmp(&n, node, n.ipv6 ? "Ip6" : "Ip", "FragCreates");
}

/* Set the MTU of all links. */
static void widen(uint32_t mtu)
{
	uint32_t i;

	for (i = 0; i < n.count; i++)
		nodes_run(&n, i, "ip link set eth0 mtu %u", mtu);
	nodes_run(&n, NODES_HUB, "for i in port0.0 port0.1 port0.2 br0; do "
		  "ip link set $i mtu %u || exit 1; done", mtu);
}

/* The MTU of the device is lowered during traffic: new frames are shorter, and not fragmented. */
static void card_lowered(bool ipv6)
{
	long long before;
	uint64_t ticket;

	begin(ipv6, 20000);
	ticket = begin_long_copy();
	nodes_run(&n, 0, "ip link set eth0 mtu 1300");
	nodes_impair(&n, 0, "");
	long_copy_ends(ticket);
	before = fragmented(0);
	long_copy_ends(long_copy());
	CHECK_EQ(fragmented(0), before);
	nodes_run(&n, 0, "ip link set eth0 mtu 1500");
	sound();
	CHECK_EQ(nodes_counters(&n, "narrowed"), 0);
}

TEST(N16_mtu_of_the_card_lowered_and_raised)
{
	card_lowered(false);
}

TEST(N16_mtu_of_the_card_lowered_and_raised_ipv6)
{
	card_lowered(true);
}

/* Make the hub a router between nodes 0 and 1, which forwards datagrams up to "mtu" bytes. */
static void route_by_hub(uint32_t mtu)
{
	const char *hub = n.ipv6 ? "fd09::fe" : "10.9.0.254";
	const char *six = n.ipv6 ? "ipv6" : "ipv4";
	uint32_t i;

	nodes_run(&n, NODES_HUB, "ip addr add %s/%s dev br0 && "
		  "echo 1 >/proc/sys/net/%s/conf/all/forwarding", hub, n.ipv6 ? "64 nodad" : "24",
		  six);
	if (!n.ipv6)
		nodes_run(&n, NODES_HUB, "echo 0 >/proc/sys/net/ipv4/conf/all/send_redirects && "
			  "echo 0 >/proc/sys/net/ipv4/conf/br0/send_redirects");
	for (i = 0; i < 2; i++) {
		nodes_run(&n, i, "echo 0 >/proc/sys/net/%s/conf/eth0/accept_redirects", six);
		nodes_run(&n, NODES_HUB, "ip route add %s dev br0 mtu lock %u", n.address[i], mtu);
	}
	for (i = 0; i < 2; i++)
		nodes_run(&n, i, "ip route add %s via %s", n.address[1 - i], hub);
}

/* IPv4: long frames may be fragmented by routers, and are. */
TEST(N16_router_fragments)
{
	uint64_t ticket;

	begin(false, 20000);
	ticket = begin_long_copy();
	route_by_hub(1000);
	nodes_impair(&n, 0, "");
	long_copy_ends(ticket);
	long_copy_ends(long_copy());
	CHECK(fragmented(NODES_HUB) > 0);
	CHECK_EQ(nodes_counters(&n, "narrowed"), 0);
	sound();
}

/* IPv6: the router reports its MTU, which is used. */
TEST(N16_router_says_too_big)
{
	long long before;
	uint64_t ticket;

	begin(true, 20000);
	ticket = begin_long_copy();
	route_by_hub(1300);
	nodes_impair(&n, 0, "");
	long_copy_ends(ticket);
	nodes_run(&n, 0, "ip -6 route get %s | grep -q 'mtu 1300'", n.address[1]);
	before = fragmented(0);
	long_copy_ends(long_copy());
	CHECK_EQ(fragmented(0), before);
	CHECK_EQ(nodes_counters(&n, "narrowed"), 0);
	sound();
}

/* A switch with a smaller MTU drops long frames silently. */
static void swallowed(bool ipv6, uint32_t wide, uint32_t narrow)
{
	uint64_t ticket;

	begin(ipv6, 20000);
	widen(wide);
	ticket = begin_long_copy();
	nodes_run(&n, NODES_HUB, "ip link set port0.1 mtu %u", narrow);
	nodes_impair(&n, 0, "");
	long_copy_ends(ticket);
	CHECK(nodes_counter(&n, 0, "narrowed") > 0);
	long_copy_ends(long_copy());
	sound();
}

TEST(N16_path_swallows_what_is_long)
{
	swallowed(false, 1500, 1000);
}

TEST(N16_path_swallows_what_is_long_ipv6)
{
	swallowed(true, 1500, 1300);
}

TEST(N16_jumbo_frames_at_a_plain_switch)
{
	swallowed(false, 9000, 1500);
}

/* The peer is heard from repeatedly, but nothing reaches it: this is not caused by the length. */
TEST(N16_path_that_swallows_all_is_not_narrow)
{
	uint64_t ticket, back;
	long long before;

	begin(false, 20000);
	nodes_impair(&n, 0, "loss 100%");
	before = nodes_counter(&n, 0, "timeouts");
	ticket = long_copy();
	back = rank_copy(&r[1], memory_ga(&t.memory[0], t.half), memory_ga(&t.memory[1], 0),
			 HALF, 0);
	while (nodes_counter(&n, 0, "timeouts") < before + 25)
		CHECK_EQ(rank_wait(&r[0], ticket, 10 * MS), -1);
	CHECK(nodes_counter(&n, 1, "timeouts") > 10);
	nodes_impair(&n, 0, "");
	long_copy_ends(ticket);
	CHECK_EQ(rank_await(&r[1], back, PATIENCE_WORK), ACP_ST_OK);
	memcpy(t.model[0] + t.half, t.memory[1].addr, HALF);
	CHECK_EQ(nodes_counters(&n, "narrowed"), 0);
	sound();
}

/*
 * A flow that fails before it has found the MTU: its result is used by the next one. The device
 * segments batches, like hardware does, because a bridge forwards batches whose frames are too long
 * for it.
 */
TEST(N16_path_swallows_what_is_long_and_time_is_short)
{
	const struct acp_join wish = { .timeout_ms = 100, .open_timeout_ms = 10000 };
	uint32_t i;
	int status;

	nodes_open(&n, 3, 1, false);
	widen(9000);
	nodes_run(&n, NODES_HUB, "ip link set port0.1 mtu 1500");
	for (i = 0; i < n.count; i++)
		nodes_run(&n, i, "ip link set eth0 gso_max_segs 1");
	nodes_ranks_like(&n, r, 3, &wish);
	traffic_open(&t, r, 3, HALF, 0);
	for (i = 0; i < 20; i++) {
		status = rank_await(&r[0], long_copy(), PATIENCE_SOON);
		if (status == ACP_ST_OK)
			break;
		CHECK_EQ(status, ACP_ST_TIMEOUT);
	}
	CHECK_EQ(status, ACP_ST_OK);
	CHECK(i > 0);
	CHECK(nodes_counter(&n, 0, "narrowed") > 0);
}

/* Jumbo frames: long copies take a sixth of the frames. */
TEST(N16_jumbo_frames)
{
	static const size_t sizes[] = { 1, 8000, 9000, 60000, HALF };
	long long before;

	begin(false, 10000);
	widen(9000);
	traffic_every_copy(&t, sizes, 5);
	traffic_flags(&t, TRAFFIC_CONT, 20000, 1);
	before = nodes_counter(&n, 0, "tx_frames") - nodes_counter(&n, 0, "tx_retransmits");
	long_copy_ends(long_copy());
	CHECK(nodes_counter(&n, 0, "tx_frames") - nodes_counter(&n, 0, "tx_retransmits") - before <
	      2 * (long long)(HALF / 8000));
	sound();
}

#define HUGE	(2048 * KB)

/* Two huge pages, registered from an odd offset in the first one. */
static void huge_memory(struct rank *owner, struct memory *m, char *model, uint64_t seed)
{
	char *p = pages(3 * HUGE, PROT_READ | PROT_WRITE);

	p = (char *)(((uintptr_t)p + HUGE - 1) & -HUGE);
	madvise(p, 2 * HUGE, MADV_HUGEPAGE);
	fill(p, 2 * HUGE, seed);
	memcpy(model, p, 2 * HUGE);
	CHECK_EQ(rank_register(owner, m, p + 333, 2 * HUGE - 1000, ACP_ACCESS_ALL), 0);
}

/* A fragment of a frame is longer than a small page, and begins anywhere. */
static void copies_between_huge_pages(uint32_t rounds)
{
	char *model[2] = { malloc(2 * HUGE), malloc(2 * HUGE) };
	struct memory m[2];
	uint64_t seed = 5;

	huge_memory(&r[0], &m[0], model[0], 1);
	huge_memory(&r[1], &m[1], model[1], 2);
	while (rounds--) {
		uint32_t to = rounds % 2, from = !to;
		size_t size = next_random(&seed) % (rounds % 4 ? 30000 : 200000);
		size_t a = next_random(&seed) % (m[0].size - size);
		size_t b = next_random(&seed) % (m[0].size - size);

		CHECK_EQ(rank_do_copy(&r[0], memory_ga(&m[to], a), memory_ga(&m[from], b), size),
			 ACP_ST_OK);
		memcpy(model[to] + 333 + a, model[from] + 333 + b, size);
	}
	CHECK(!memcmp(m[0].addr - 333, model[0], 2 * HUGE));
	CHECK(!memcmp(m[1].addr - 333, model[1], 2 * HUGE));
	CHECK_EQ(rank_unregister(&r[0], m[0].reg.key, NULL), 0);
	CHECK_EQ(rank_unregister(&r[1], m[1].reg.key, NULL), 0);
}

TEST(M7_huge_pages_in_the_network)
{
	uint32_t rounds = test_short() ? 6 : 24;

	begin(false, 10000);
	copies_between_huge_pages(rounds);
	widen(9000);
	copies_between_huge_pages(rounds);
	widen(60000);
	copies_between_huge_pages(rounds);
	sound();
}

/* ---- N18 ---- */

/* Matches all UDP that a node sends or receives. */
#define MATCH	"pref 1 protocol ip u32 match ip protocol 17 0xff"
#define TRACK	"action ct commit pipe action ok"
#define REBIND	"action pedit ex munge udp sport set 40000 pipe action csum udp"

/* Skip the test if the kernel lacks the action. */
static void need(const char *action)
{
	char command[300];

	snprintf(command, sizeof(command), "unshare -n sh -c 'tc qdisc add dev lo clsact && "
		 "tc filter add dev lo egress " MATCH " %s' >/dev/null 2>&1", action);
	if (system(command))
		SKIP("this kernel has no tc %s", action);
}

TEST(N18_firewall_drops_for_a_while)
{
	uint64_t ticket;
	int way;

	begin(false, 10000);
	nodes_run(&n, 1, "tc qdisc add dev eth0 clsact");
	for (way = 0; way < 2; way++) {
		const char *hook = way ? "ingress" : "egress";

		nodes_run(&n, 1, "tc filter add dev eth0 %s " MATCH " action drop", hook);
		ticket = long_copy();
		CHECK_EQ(rank_wait(&r[0], ticket, 1500 * MS), -1);
		nodes_run(&n, 1, "tc filter del dev eth0 %s pref 1", hook);
		long_copy_ends(ticket);
	}
	CHECK(nodes_counter(&n, 0, "timeouts") > 0);
	sound();
}

/* Permanently it ends like silence; other nodes are not affected. */
TEST(N18_firewall_drops_for_good)
{
	begin(false, 3000);
	nodes_run(&n, 1, "tc qdisc add dev eth0 clsact");
	nodes_run(&n, 1, "tc filter add dev eth0 ingress " MATCH " action drop");
	CHECK_EQ(rank_await(&r[0], long_copy(), PATIENCE_WORK), ACP_ST_TIMEOUT);
	CHECK_EQ(nodes_counter(&n, 0, "flows_failed"), 1);
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&t.memory[2], t.half), memory_ga(&t.memory[0], 0),
			      8), ACP_ST_OK);
}

/* Each datagram is tracked in both directions, and datagrams of no connection are dropped. */
TEST(N18_connection_tracking)
{
	static const char *const hooks[] = { "egress", "ingress" };
	uint32_t i, h;

	need(TRACK);
	begin(false, 10000);
	for (i = 0; i < 3; i++) {
		nodes_run(&n, i, "tc qdisc add dev eth0 clsact");
		for (h = 0; h < 2; h++)
			nodes_run(&n, i, "tc filter add dev eth0 %s " MATCH " " TRACK, hooks[h]);
	}
	sound();
	nodes_impair_all(&n, "loss 5% duplicate 5%");
	traffic_random(&t, 3, 40, 20000);
	nodes_impair_all(&n, "");
	for (i = 0; i < 3; i++)
		nodes_run(&n, i, "tc qdisc del dev eth0 clsact");
	sound();
}

/*
 * NAT changes the port of the flow during traffic: frames are rejected and counted until it ends.
 */
TEST(N18_port_is_rebound)
{
	long long before;
	uint64_t ticket;

	need(REBIND);
	begin(false, 10000);
	before = nodes_counter(&n, 1, "drop_bad_source");
	CHECK_EQ(before, 0);
	nodes_run(&n, 0, "tc qdisc add dev eth0 clsact");
	nodes_run(&n, 0, "tc filter add dev eth0 egress " MATCH " " REBIND);
	ticket = long_copy();
	CHECK_EQ(rank_wait(&r[0], ticket, 1500 * MS), -1);
	CHECK(nodes_counter(&n, 1, "drop_bad_source") > 0);
	nodes_run(&n, 0, "tc filter del dev eth0 egress pref 1");
	long_copy_ends(ticket);
	sound();
	/* ... and another address. */
	before = nodes_counter(&n, 1, "drop_bad_source");
	nodes_run(&n, 0, "tc filter add dev eth0 egress " MATCH " action pedit ex "
		  "munge ip src set 10.9.0.77 pipe action csum ip and udp");
	ticket = long_copy();
	CHECK_EQ(rank_wait(&r[0], ticket, 1500 * MS), -1);
	CHECK(nodes_counter(&n, 1, "drop_bad_source") > before);
	nodes_run(&n, 0, "tc filter del dev eth0 egress pref 1");
	long_copy_ends(ticket);
	sound();
}

/* ---- N19 ---- */

static void jump(long seconds)
{
	struct timespec now;

	CHECK_EQ(clock_gettime(CLOCK_REALTIME, &now), 0);
	now.tv_sec += seconds;
	CHECK_EQ(clock_settime(CLOCK_REALTIME, &now), 0);
}

/* Change the clock by +1 and -2 hours repeatedly; finally it is restored. */
static void jumps(void)
{
	int i;

	for (i = 0; i < (test_short() ? 3 : 8); i++) {
		jump(3600);
		sleep_ms(100);
		jump(-7200);
		sleep_ms(100);
		jump(3600);
		sleep_ms(100);
	}
}

TEST(N19_clock_jumps)
{
	begin(false, 10000);
	nodes_impair_all(&n, "loss 1%");
	traffic_during(jumps);
	nodes_impair_all(&n, "");
	sound();
}

/* Like NTP: the clock runs with the maximum slew rate, and is off by half a second. */
static void slews(void)
{
	static const long ppm[] = { 500, -500, 0 };
	struct timex x;
	int i, k;

	for (i = 0; i < (test_short() ? 2 : 5); i++) {
		for (k = 0; k < 3; k++) {
			x = (struct timex){ .modes = ADJ_FREQUENCY | ADJ_OFFSET | ADJ_STATUS,
					    .status = STA_PLL, .freq = ppm[k] * 65536,
					    .offset = k < 2 ? (k ? -500000 : 500000) : 0 };
			CHECK(adjtimex(&x) >= 0);
			sleep_ms(100);
		}
	}
	x = (struct timex){ .modes = ADJ_STATUS | ADJ_FREQUENCY, .status = STA_UNSYNC };
	CHECK(adjtimex(&x) >= 0);
}

TEST(N19_clock_is_slewed)
{
	begin(false, 10000);
	nodes_impair_all(&n, "loss 1%");
	traffic_during(slews);
	nodes_impair_all(&n, "");
	sound();
}
