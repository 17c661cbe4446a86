// SPDX-License-Identifier: MIT
/* acp check: state of the module: versions, switches, limits, counters. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "acp_abi.h"
#include "check.h"

static void take_abi(void *arg, const struct ctl_reply *r)
{
	*(uint32_t *)arg = ctl_reply_u32(r, ACP_NL_A_ABI_VERSION);
}

void ctl_check_netlink(struct ctl_findings *f)
{
	uint32_t abi = 0;
	int err;

	if (!f->loaded)
		return;
	if (f->nl == NULL) {
		ctl_found(f, CTL_BAD, "netlink",
			  "Module and command are of different versions: install both from one "
			  "source, then modprobe -r acp && modprobe acp.",
			  "the module is loaded, but has no netlink family acp");
		return;
	}
	err = ctl_nl_do(f->nl, ctl_nl_new(f->nl, ACP_NL_CMD_NODE_GET), take_abi, &abi);
	if (err)
		ctl_found(f, CTL_BAD, "netlink", "dmesg may say why.", "the module does not answer: %s",
			  f->nl->sentence[0] ? f->nl->sentence : strerror(-err));
	else if (abi != ACP_ABI_VERSION)
		ctl_found(f, CTL_BAD, "netlink",
			  "Install module, library and command from one source, then modprobe -r "
			  "acp && modprobe acp.",
			  "the module's interface has version %u, this command is for %u", abi,
			  ACP_ABI_VERSION);
	else
		ctl_found(f, CTL_GOOD, "netlink", NULL, "the module answers, interface version %u",
			  abi);
}

/* ---- Switches ---- */

void ctl_check_enable(struct ctl_findings *f)
{
	char text[20];
	bool good = true;

	if (!f->loaded)
		return;
	if (ctl_read_line("/sys/module/acp/parameters/enable", text, sizeof(text)) &&
	    text[0] == 'N') {
		good = false;
		ctl_found(f, CTL_BAD, "enable",
			  "As root of the machine: echo 1 >/sys/module/acp/parameters/enable.",
			  "the machine's switch is off: no ranks can join anywhere");
	}
	if (!ctl_read_line("/proc/sys/net/acp/enable", text, sizeof(text))) {
		ctl_found(f, CTL_SKIPPED, "enable", NULL,
			  "/proc/sys/net/acp/enable cannot be read");
		return;
	}
	if (text[0] == '0') {
		good = false;
		ctl_found(f, CTL_BAD, "enable", "As root: acp node set enable on.",
			  "the switch of this network namespace is off: no ranks can join");
	}
	if (good)
		ctl_found(f, CTL_GOOD, "enable", NULL, "ranks may join");
}

/*
 * Check whether datagrams may bypass parts of the network stack. Older modules have no such switch.
 */
void ctl_check_bypass(struct ctl_findings *f)
{
	static const char *const meanings[] = {
		"off: each datagram takes all steps of the network stack, which costs time",
		"on: datagrams skip steps of the network stack that have no effect",
		"automatic: off for jobs whose control group has a BPF program for datagrams",
	};
	char text[20];

	if (!f->loaded)
		return;
	if (!ctl_read_line("/proc/sys/net/acp/bypass", text, sizeof(text)) ||
	    text[0] < '0' || text[0] > '2')
		ctl_found(f, CTL_SKIPPED, "bypass", NULL,
			  "/proc/sys/net/acp/bypass cannot be read");
	else
		ctl_found(f, CTL_GOOD, "bypass", NULL, "%s", meanings[text[0] - '0']);
}

/* ---- Limits ---- */

struct limits {
	struct ctl_findings *f;
	unsigned int noted;
};

static void take_limit(void *arg, const struct ctl_reply *r)
{
	uint64_t here = ctl_reply_u64(r, ACP_NL_A_VALUE), used = ctl_reply_u64(r, ACP_NL_A_USED);
	uint64_t machine = ctl_reply_u64(r, ACP_NL_A_MACHINE_VALUE);
	uint64_t limit = r->a[ACP_NL_A_MACHINE_VALUE] && machine < here ? machine : here;
	const char *name = r->a[ACP_NL_A_NAME] ? nla_get_string(r->a[ACP_NL_A_NAME]) : "?";
	struct limits *l = arg;
	char remedy[200];

	/* Not a limit. A job_peers of 0 is only a warning: jobs on one node need no flows. */
	if (strcmp(name, "enable") == 0)
		return;
	snprintf(remedy, sizeof(remedy),
		 "As root: acp limit set %s VALUE; the machine's own is a parameter of the module "
		 "(/etc/modprobe.d).",
		 name);
	if (limit == 0 && strcmp(name, "job_peers") == 0) {
		ctl_found(l->f, CTL_WARN, "limits", remedy,
			  "%s is 0: ranks can access only what is on their own node", name);
	} else if (limit == 0) {
		ctl_found(l->f, CTL_BAD, "limits", remedy, "%s is 0: no rank can run", name);
	} else if (r->a[ACP_NL_A_USED] && used >= limit) {
		ctl_found(l->f, CTL_BAD, "limits", remedy, "%s is reached: %" PRIu64 " of %" PRIu64,
			  name, used, limit);
	} else if (r->a[ACP_NL_A_USED] && used > limit - limit / 10) {
		ctl_found(l->f, CTL_WARN, "limits", remedy,
			  "%s is nearly reached: %" PRIu64 " of %" PRIu64, name, used, limit);
	} else {
		return;
	}
	l->noted++;
}

void ctl_check_limits(struct ctl_findings *f)
{
	struct limits l = { .f = f };
	int err;

	if (f->nl == NULL)
		return;
	err = ctl_nl_dump(f->nl, ctl_nl_new(f->nl, ACP_NL_CMD_LIMIT_GET), take_limit, &l);
	if (err)
		ctl_found(f, CTL_SKIPPED, "limits", NULL, "the module does not tell its limits: %s",
			  strerror(-err));
	else if (l.noted == 0)
		ctl_found(f, CTL_GOOD, "limits", NULL, "none is reached, nor nearly");
}

/* ---- The neighbour table ---- */

static const struct {
	const char *name;		/* of the sysctl */
	uint32_t family;
} tables[] = { { "ipv4", AF_INET }, { "ipv6", AF_INET6 } };

#define TABLES	(sizeof(tables) / sizeof(tables[0]))

static void take_nodes(void *arg, const struct ctl_reply *r)
{
	uint64_t *nodes = arg;
	size_t i;

	for (i = 0; i < TABLES; i++) {
		uint64_t others = (uint64_t)(ctl_reply_u32(r, ACP_NL_A_NODES) - 1) *
				  ctl_reply_u32(r, ACP_NL_A_COLORS);

		/* Jobs may share nodes: the largest one counts. */
		if (ctl_reply_u32(r, ACP_NL_A_FAMILY) == tables[i].family && others > nodes[i])
			nodes[i] = others;
	}
}

/* All network namespaces share the table, but only the first one shows its size. */
static void check_table(struct ctl_findings *f, size_t table, uint64_t nodes)
{
	char path[100], text[40], remedy[200];
	uint64_t most;

	snprintf(path, sizeof(path), "/proc/sys/net/%s/neigh/default/gc_thresh3",
		 tables[table].name);
	if (!ctl_read_line(path, text, sizeof(text))) {
		if (nodes > 0)
			ctl_found(f, CTL_SKIPPED, "neighbours", NULL,
				  "not looked at, since %s cannot be read here", path);
		return;
	}
	most = strtoull(text, NULL, 10);
	snprintf(remedy, sizeof(remedy),
		 "As root: sysctl net.%s.neigh.default.gc_thresh3=%" PRIu64
		 ", if the nodes are in one network, without routers between them.",
		 tables[table].name, 2 * nodes);
	if (nodes >= most)
		ctl_found(f, CTL_WARN, "neighbours", remedy,
			  "the table of %s takes only %" PRIu64 " addresses; a job has %" PRIu64,
			  tables[table].name, most, nodes);
	else
		ctl_found(f, CTL_GOOD, "neighbours", NULL,
			  "the table of %s takes %" PRIu64 " addresses; a job has %" PRIu64,
			  tables[table].name, most, nodes);
}

void ctl_check_neighbours(struct ctl_findings *f)
{
	uint64_t nodes[TABLES] = { 0 };
	size_t i;

	if (f->nl == NULL)
		return;
	if (ctl_nl_dump(f->nl, ctl_nl_new(f->nl, ACP_NL_CMD_JOB_GET), take_nodes, nodes)) {
		ctl_found(f, CTL_SKIPPED, "neighbours", NULL, "the module does not tell its jobs");
		return;
	}
	for (i = 0; i < TABLES; i++)
		check_table(f, i, nodes[i]);
}

/* ---- Counters that indicate problems ---- */

static const struct {
	const char *counter;
	const char *what, *remedy;
} troubles[] = {
	{ "drop_bad_mac", "frames with a wrong tag came: another key, or somebody changed them",
	  "Give all ranks of a job the same key (ACP_KEYFILE), and no two jobs one id (ACP_JOB) "
	  "on the same nodes." },
	{ "drop_bad_aead", "frames came that cannot be decrypted: another key, or damage",
	  "Give all ranks of a job the same key and the same ACP_PRIVACY." },
	{ "drop_bad_crc", "payloads came damaged",
	  "Look for a bad cable, card or switch: ip -s link; ethtool -S." },
	{ "drop_bad_source", "frames came from other addresses than their nodes have",
	  "Address translation is between the nodes, or ACP_NODES names other addresses than the "
	  "node sends from: see ip route get." },
	{ "drop_mismatch", "nodes run different set-ups of one job",
	  "Give all ranks the same ACP_NPROCS, ACP_NODES, ACP_PLACEMENT and ACP_INTEGRITY." },
	{ "drop_bad_version", "frames of another version of the protocol came",
	  "Install the same version of the module on all nodes." },
	{ "drop_nomem", "frames were dropped for lack of memory",
	  "Give the node more memory, or jobs less." },
	{ "tx_errors", "the network stack refused frames",
	  "Look for routes and firewall rules for outgoing datagrams: ip route get ADDRESS." },
	{ "tx_neighbour", "frames had no room for their next hop in the neighbour table",
	  "As root: sysctl net.ipv4.neigh.default.gc_thresh3=VALUE, or net.ipv6, more than there "
	  "are nodes; see gc_thresh1 and gc_thresh2, too." },
	{ "flows_failed", "other nodes were silent for too long",
	  "See which: acp flow show. Does acp ping reach them? Is the firewall there open?" },
	{ "limit_calls", "calls were refused since a limit was reached",
	  "acp limit show tells which is near." },
	{ "limit_memlock", "calls were refused since a user had locked RLIMIT_MEMLOCK",
	  "Raise it: acp check tells how; or end other processes of that user." },
	{ "limit_peers", "flows were not made since a job has job_peers of them",
	  "As root: acp limit set job_peers VALUE, alike on all nodes." },
};

static void take_counter(void *arg, const struct ctl_reply *r)
{
	const char *name = r->a[ACP_NL_A_NAME] ? nla_get_string(r->a[ACP_NL_A_NAME]) : "";
	uint64_t value = ctl_reply_u64(r, ACP_NL_A_VALUE);
	struct limits *l = arg;
	size_t i;

	for (i = 0; value > 0 && i < sizeof(troubles) / sizeof(troubles[0]); i++) {
		if (strcmp(name, troubles[i].counter) != 0)
			continue;
		l->noted++;
		ctl_found(l->f, CTL_WARN, "counters", troubles[i].remedy,
			  "%s is %" PRIu64 ": %s", name, value, troubles[i].what);
	}
}

void ctl_check_counters(struct ctl_findings *f)
{
	struct limits l = { .f = f };

	if (f->nl == NULL)
		return;
	if (ctl_nl_dump(f->nl, ctl_nl_new(f->nl, ACP_NL_CMD_STAT_GET), take_counter, &l) == 0 &&
	    l.noted == 0)
		ctl_found(f, CTL_GOOD, "counters", NULL, "none tells of trouble so far");
}
