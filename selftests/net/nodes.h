/* SPDX-License-Identifier: MIT */
/*
 * Nodes for tests: network namespaces with one device per color, connected by one bridge per color
 * in a separate namespace.
 *
 *	node 0     node 1     node 2          10.9.C.(I+1), fd09:0:0:C::(I+1)
 *	 ethC       ethC       ethC
 *	   |          |          |
 *	 portC.0    portC.1    portC.2
 *	   +------- brC --------+             hub
 *
 * They have no names and end with the processes of the test. A process acts as ranks of all nodes:
 * a file belongs to the namespace in which it was opened.
 */
#ifndef NODES_H
#define NODES_H

#include "../dev/rank.h"

#define NODES_HUB	(~0u)		/* pseudo-node: the namespace of the bridges */

struct nodes {
	uint32_t count, colors;
	bool ipv6;
	int home, hub;			/* descriptors of namespaces */
	int node[NODES_MAX];
	char text[NODES_MAX * ACP_COLORS_MAX][40];	/* addresses, all of color 0 first */
	const char *address[NODES_MAX * ACP_COLORS_MAX + 1];
};

/* Create the nodes; a failure fails the test, as in all functions here. */
void nodes_open(struct nodes *n, uint32_t count, uint32_t colors, bool ipv6);

/* Switch the namespace of the calling thread: to that of a node, or back to the first one. */
void nodes_enter(const struct nodes *n, uint32_t node);
void nodes_leave(const struct nodes *n);

/* Run a shell command (format) in the namespace of a node. */
void nodes_run(const struct nodes *n, uint32_t node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Set the MTU of color 0 of all nodes. */
void nodes_set_mtu(const struct nodes *n, uint32_t mtu);

/* Set impairments of all devices of a node, in the syntax of tc-netem; "": none. */
void nodes_impair(const struct nodes *n, uint32_t node, const char *netem);
void nodes_impair_all(const struct nodes *n, const char *netem);

/*
 * Add permanent neighbour entries to all nodes. For networks that corrupt: ARP has no checksum, and
 * a wrong answer is used for most of a minute.
 */
void nodes_acquaint(const struct nodes *n);

/* Return the join parameters of a rank of a job over all nodes; consecutive ranks share a node. */
void nodes_setup(const struct nodes *n, struct setup *s, uint32_t rank, uint32_t nprocs);

/* Join with these parameters, on the node where the rank is placed. */
void nodes_join(const struct nodes *n, struct rank *r, struct setup *s);

/*
 * Join with nodes_setup(), except for integrity, timeouts, heap_size and depth of "wish" that are
 * not 0.
 */
void nodes_join_like(const struct nodes *n, struct rank *r, uint32_t rank, uint32_t nprocs,
		     const struct acp_join *wish);

/* The same as another user, whose the rank is. The caller is root before and after. */
void nodes_join_as(uid_t user, const struct nodes *n, struct rank *r, uint32_t rank,
		   uint32_t nprocs, const struct acp_join *wish);

/* Join all ranks of a job. */
void nodes_ranks(const struct nodes *n, struct rank *ranks, uint32_t nprocs);
void nodes_ranks_like(const struct nodes *n, struct rank *ranks, uint32_t nprocs,
		      const struct acp_join *wish);

/* Return a counter of a node, or the sum over all nodes. */
long long nodes_counter(const struct nodes *n, uint32_t node, const char *name);
long long nodes_counters(const struct nodes *n, const char *name);

/*
 * Return a counter of the network stack of a node from /proc/net/snmp or snmp6: IPv4 for groups
 * like Ip and Udp, IPv6 for Ip6 and Udp6.
 */
long long nodes_snmp(const struct nodes *n, uint32_t node, const char *group, const char *name);

/* Allow or forbid AEGIS-128 for the module, and so for all nodes. */
void nodes_allow_aegis(bool allowed);

/*
 * A counter and its initial value. nodes_counted() waits until it has increased by exactly that
 * much.
 */
struct count {
	const struct nodes *nodes;
	uint32_t node;
	const char *name;
	long long before;
};

struct count nodes_count(const struct nodes *n, uint32_t node, const char *name);
void nodes_counted(const struct count *c, long long more);

/* True if a line of /proc/crypto or /proc/cpuinfo contains these words. */
bool nodes_said(const char *path, const char *words);

#endif /* NODES_H */
