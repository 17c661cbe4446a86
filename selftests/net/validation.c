// SPDX-License-Identifier: MIT
/*
 * Validation of source addresses by settings whose changes the kernel does not announce: frames
 * that the module receives directly are validated anew after a second at the latest.
 */
#include "../dev/isolated.h"

#include <stdlib.h>

#include "../dev/traffic.h"
#include "nodes.h"

#define HALF	(64UL * 1024)
#define MARK	7
#define TABLE	77

static struct nodes n;
static struct rank r[2];
static struct traffic t;

static const struct acp_join wish = { .timeout_ms = 30000, .open_timeout_ms = 30000 };

static void begin(void)
{
	uint32_t i;

	nodes_open(&n, 2, 1, false);
	for (i = 0; i < 2; i++)
		nodes_join_like(&n, &r[i], i, n.count, &wish);
	traffic_open(&t, r, n.count, HALF, 0);
	traffic_random(&t, 1, 20, 5000);
}

/* Set both values that the kernel combines. */
static void set(const char *name, int value)
{
	nodes_run(&n, 1, "echo %d >/proc/sys/net/ipv4/conf/all/%s && "
		  "echo %d >/proc/sys/net/ipv4/conf/eth0/%s", value, name, value, name);
}

/*
 * Whoever sent a datagram is looked up with the mark that a filter gave to it, if src_valid_mark is
 * set, and then the route to node 0 is that of TABLE. What node 1 sends has no mark.
 */
static void mark_what_comes(const char *route)
{
	nodes_run(&n, 1, "ip link add astray type dummy && ip link set astray up && "
		  "ip route add %s table %d && ip rule add pref 30 fwmark %d lookup %d",
		  route, TABLE, MARK, TABLE);
	nodes_run(&n, 1, "nft 'add table ip t; add chain ip t c { type filter hook prerouting "
		  "priority -150; }; add rule ip t c meta l4proto udp meta mark set %d'", MARK);
}

/* Return the number of frames of its job that node 1 has accepted. */
static long long taken(void)
{
	return nodes_counter(&n, 1, "rx_frames") + nodes_counter(&n, 1, "drop_duplicate");
}

/*
 * Frames come directly. A setting is changed so that they are refused after a second; they arrive
 * when it is changed back.
 */
static void changed(const char *name, int refusing, int before_and_after)
{
	long long before = nodes_counter(&n, 1, "rx_direct");
	uint64_t ticket;

	traffic_random(&t, 1, 20, 5000);
	CHECK(nodes_counter(&n, 1, "rx_direct") > before);
	set(name, refusing);
	sleep_ms(1100);
	before = taken();
	ticket = rank_copy(&r[0], memory_ga(&t.memory[1], t.half), memory_ga(&t.memory[0], 0), 8,
			   0);
	CHECK_EQ(rank_wait(&r[0], ticket, 700 * MS), -1);
	CHECK(nodes_counter(&n, 0, "timeouts") > 0);
	CHECK_EQ(taken(), before);
	set(name, before_and_after);
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_WORK), ACP_ST_OK);
	memcpy(t.model[1] + t.half, t.memory[0].addr, 8);
	traffic_random(&t, 1, 20, 5000);
}

static void begin_filtered(void)
{
	if (system("unshare -n nft add table ip t >/dev/null 2>&1"))
		SKIP("this kernel has no nf_tables");
	begin();
}

/* The address of node 0 is one of node 1, too, for datagrams with a mark. */
TEST(accept_local_is_taken_back)
{
	char route[64];

	begin_filtered();
	set("rp_filter", 0);
	set("src_valid_mark", 1);
	set("accept_local", 1);
	snprintf(route, sizeof(route), "local %s/32 dev lo", n.address[0]);
	mark_what_comes(route);
	changed("accept_local", 0, 1);
}

/* The way back to node 0 is by another card for datagrams with a mark. */
TEST(src_valid_mark_is_switched_on)
{
	char route[64];

	begin_filtered();
	set("rp_filter", 1);
	set("src_valid_mark", 0);
	snprintf(route, sizeof(route), "%s/32 dev astray", n.address[0]);
	mark_what_comes(route);
	changed("src_valid_mark", 1, 0);
}
