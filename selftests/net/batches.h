/* SPDX-License-Identifier: MIT */
/*
 * Frames that share datagrams of the kernel (UDP GSO): what tests of long copies and of long
 * messages have in common.
 */
#ifndef BATCHES_H
#define BATCHES_H

#include <netinet/udp.h>

#include "nodes.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT	103
#endif

/* The traffic of a test. */
struct batches {
	struct nodes *nodes;

	/* Create two nodes and a rank on each. */
	void (*begin)(bool ipv6, uint32_t integrity);

	/*
	 * Send, and return frames per datagram that node 1 has received, in percent. The network
	 * may keep a datagram for late_ms, and with it the pages of its source.
	 */
	long long (*frames_per_datagram)(unsigned int late_ms);
};

/* Return the number of datagrams that UDP has delivered to sockets of a node. */
static inline long long batches_datagrams(const struct nodes *n, uint32_t node)
{
	return nodes_snmp(n, node, "Udp", "InDatagrams") +
	       nodes_snmp(n, node, "Udp6", "InDatagrams");
}

/*
 * Check that frames share datagrams; fewer if the machine pauses and frames are retransmitted one
 * by one.
 */
static inline void batches_share_datagrams(const struct batches *b)
{
	int tries = 5;

	while (b->frames_per_datagram(0) <= 300)
		CHECK(--tries);
}

/* Impair the network; if "apart", frames one by one, otherwise batches as a whole. */
static inline void batches_impaired(const struct batches *b, const char *netem, uint32_t integrity,
				    bool apart)
{
	b->begin(false, integrity);
	if (apart)
		nodes_run(b->nodes, 0, "ip link set eth0 gso_max_segs 1");
	nodes_impair_all(b->nodes, netem);
	b->frames_per_datagram(100);
	nodes_impair_all(b->nodes, "");
}

/* A batch is lost as a whole: few are sent, and one must be lost. */
static inline void batches_lost(const struct batches *b, uint32_t integrity)
{
	batches_impaired(b, "loss 10%", integrity, false);
	CHECK(nodes_counters(b->nodes, "tx_retransmits") > 0);
}

static inline void batches_disordered(const struct batches *b, uint32_t integrity)
{
	batches_impaired(b, "delay 1ms 1ms duplicate 20%", integrity, false);
	CHECK(nodes_counters(b->nodes, "drop_duplicate") > 0);
}

#endif /* BATCHES_H */
