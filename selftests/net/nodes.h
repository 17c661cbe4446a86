/* SPDX-License-Identifier: MIT */
/*
 * Nodes for tests: network namespaces, one card per color each, joined by a
 * bridge per color in a namespace of its own.
 *
 *	node 0     node 1     node 2          10.9.C.(I+1), fd09:0:0:C::(I+1)
 *	 ethC       ethC       ethC
 *	   |          |          |
 *	 portC.0    portC.1    portC.2
 *	   +------- brC --------+             hub
 *
 * They have no names and end with the test's processes.  A process plays
 * ranks of all nodes: a file belongs to the namespace it was opened in.
 */
#ifndef NODES_H
#define NODES_H

#include "../dev/rank.h"

#define NODES_HUB	(~0u)		/* as a node: where the bridges are */

struct nodes {
	uint32_t count, colors;
	bool ipv6;
	int home, hub;			/* descriptors of namespaces */
	int node[NODES_MAX];
	char text[NODES_MAX * ACP_COLORS_MAX][40];	/* addresses, all of color 0 first */
	const char *address[NODES_MAX * ACP_COLORS_MAX + 1];
};

/* Make them; a failure fails the test, as everywhere here. */
void nodes_open(struct nodes *n, uint32_t count, uint32_t colors, bool ipv6);

/* The calling thread's namespace: that of a node from now on, or the first one again. */
void nodes_enter(const struct nodes *n, uint32_t node);
void nodes_leave(const struct nodes *n);

/* Run a shell command (format) in a node's namespace. */
void nodes_run(const struct nodes *n, uint32_t node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* What every card of a node does to what it sends, as for tc-netem; "": nothing. */
void nodes_impair(const struct nodes *n, uint32_t node, const char *netem);
void nodes_impair_all(const struct nodes *n, const char *netem);

/*
 * Tell all nodes the cards of the others, for good.  For networks that corrupt:
 * ARP has no checksum, and a wrong answer is believed for most of a minute.
 */
void nodes_acquaint(const struct nodes *n);

/* What a rank of a job over all nodes joins with; consecutive ranks share a node. */
void nodes_setup(const struct nodes *n, struct setup *s, uint32_t rank, uint32_t nprocs);

/* Join as setup says, on the node that it places the rank on. */
void nodes_join(const struct nodes *n, struct rank *r, struct setup *s);

/* Join with nodes_setup(), but for integrity, time-outs, heap_size and depth of "wish" if not 0. */
void nodes_join_like(const struct nodes *n, struct rank *r, uint32_t rank, uint32_t nprocs,
		     const struct acp_join *wish);

/* All ranks of a job. */
void nodes_ranks(const struct nodes *n, struct rank *ranks, uint32_t nprocs);
void nodes_ranks_like(const struct nodes *n, struct rank *ranks, uint32_t nprocs,
		      const struct acp_join *wish);

/* A counter of a node, or the sum over all. */
long long nodes_counter(const struct nodes *n, uint32_t node, const char *name);
long long nodes_counters(const struct nodes *n, const char *name);

/* A counter and what it stood at.  nodes_counted() waits until it moved so far, and no farther. */
struct count {
	const struct nodes *nodes;
	uint32_t node;
	const char *name;
	long long before;
};

struct count nodes_count(const struct nodes *n, uint32_t node, const char *name);
void nodes_counted(const struct count *c, long long more);

#endif /* NODES_H */
