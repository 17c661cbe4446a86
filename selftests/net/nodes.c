// SPDX-License-Identifier: MIT
/* Nodes for tests: see nodes.h. */
#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "links.h"
#include "nodes.h"

static void enter(int namespace)
{
	if (setns(namespace, CLONE_NEWNET))
		FAIL("setns: %s", strerror(errno));
}

static int here(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static int new_namespace(void)
{
	if (unshare(CLONE_NEWNET))
		SKIP("no network namespaces: %s", strerror(errno));
	return here();
}

static int namespace_of(const struct nodes *n, uint32_t node)
{
	return node == NODES_HUB ? n->hub : n->node[node];
}

void nodes_enter(const struct nodes *n, uint32_t node)
{
	enter(namespace_of(n, node));
}

void nodes_leave(const struct nodes *n)
{
	enter(n->home);
}

/* ---- Commands ---- */

/* Start a command without input, by a shell only if it needs one. */
static pid_t spawn(const char *command)
{
	const bool shell = strpbrk(command, "'\"|&;<>$*");
	char words[500], *argv[60] = { "sh", "-c", words }, *at;
	posix_spawn_file_actions_t files;
	int argc = 0, error;
	pid_t child;

	CHECK(snprintf(words, sizeof(words), "%s", command) < (int)sizeof(words));
	for (at = shell ? NULL : strtok(words, " "); at; at = strtok(NULL, " ")) {
		CHECK(argc < 59);
		argv[argc++] = at;
	}
	CHECK(!posix_spawn_file_actions_init(&files));
	CHECK(!posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0));
	error = posix_spawnp(&child, argv[0], &files, NULL, argv, environ);
	if (error)
		FAIL("%s: %s", argv[0], strerror(error));
	posix_spawn_file_actions_destroy(&files);
	return child;
}

void nodes_run(const struct nodes *n, uint32_t node, const char *format, ...)
{
	char command[500];
	va_list args;
	pid_t child;
	int status;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	nodes_enter(n, node);
	child = spawn(command);
	CHECK_EQ(waitpid(child, &status, 0), child);
	if (status)
		FAIL("%s: failed", command);
	nodes_leave(n);
}

/* Return the name of the device of a color in a node. */
static const char *card_name(char name[IFNAMSIZ], uint32_t color)
{
	snprintf(name, IFNAMSIZ, "eth%u", color);
	return name;
}

void nodes_set_mtu(const struct nodes *n, uint32_t mtu)
{
	char command[100];
	uint32_t i;

	for (i = 0; i < n->count; i++) {
		nodes_run(n, i, "ip link set eth0 mtu %u", mtu);
		CHECK_EQ(setns(n->hub, CLONE_NEWNET), 0);
		snprintf(command, sizeof(command), "ip link set port0.%u mtu %u", i, mtu);
		CHECK_EQ(system(command), 0);
		nodes_leave(n);
	}
}

void nodes_impair(const struct nodes *n, uint32_t node, const char *netem)
{
	char card[IFNAMSIZ];
	bool done;
	uint32_t c;

	for (c = 0; c < n->colors; c++) {
		nodes_enter(n, node);
		done = links_netem(card_name(card, c), netem);
		nodes_leave(n);
		if (!done)
			nodes_run(n, node, "tc qdisc replace dev %s root netem %s", card, netem);
	}
}

void nodes_impair_all(const struct nodes *n, const char *netem)
{
	uint32_t i;

	for (i = 0; i < n->count; i++)
		nodes_impair(n, i, netem);
}

void nodes_allow_aegis(bool allowed)
{
	CHECK(write_file("/sys/module/acp/parameters/aegis", allowed ? "1" : "0"));
}

/* ---- Creation ---- */

static int request_socket(const struct nodes *n)
{
	int s = socket(n->ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK(s >= 0);
	return s;
}

struct mac {
	unsigned char byte[LINKS_MAC];
};

static struct mac mac_of(uint32_t color, uint32_t node)
{
	return (struct mac){ { 2, 0, 0, 0, (unsigned char)color, (unsigned char)node } };
}

static void acquaint(const struct nodes *n, uint32_t node)
{
	char card[IFNAMSIZ];
	uint32_t i, c;

	nodes_enter(n, node);
	for (c = 0; c < n->colors; c++)
		for (i = 0; i < n->count; i++)
			if (i != node)
				links_neighbour(card_name(card, c), n->address[c * n->count + i],
						mac_of(c, i).byte);
	nodes_leave(n);
}

void nodes_acquaint(const struct nodes *n)
{
	uint32_t i;

	for (i = 0; i < n->count; i++)
		acquaint(n, i);
}

/* Return the name of the hub end of a veth pair. */
static const char *port_name(char name[IFNAMSIZ], uint32_t color, uint32_t node)
{
	CHECK(snprintf(name, IFNAMSIZ, "port%u.%u", color, node) < IFNAMSIZ);
	return name;
}

static void cable(const struct nodes *n, const char *bridge, uint32_t color, uint32_t node)
{
	char port[IFNAMSIZ], card[IFNAMSIZ];

	links_veth(port_name(port, color, node), bridge, card_name(card, color),
		   mac_of(color, node).byte, n->node[node]);
}

/* Create the bridges of the hub, and a veth pair from each of them to each node. */
static void cables(const struct nodes *n)
{
	char bridge[IFNAMSIZ];
	uint32_t i, c;

	nodes_enter(n, NODES_HUB);
	for (c = 0; c < n->colors; c++) {
		snprintf(bridge, sizeof(bridge), "br%u", c);
		links_bridge(bridge);
		for (i = 0; i < n->count; i++)
			cable(n, bridge, c, i);
	}
	nodes_leave(n);
}

static struct ifreq request(const char *card)
{
	struct ifreq r = { .ifr_flags = IFF_UP };

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", card);
	return r;
}

/* Set a device or loopback up. */
static void up(int s, const char *card)
{
	struct ifreq r = request(card);

	CHECK(!ioctl(s, SIOCSIFFLAGS, &r));
}

static void address4(int s, const char *card, const char *address)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct ifreq r = request(card);

	CHECK_EQ(inet_pton(AF_INET, address, &in.sin_addr), 1);
	memcpy(&r.ifr_addr, &in, sizeof(in));
	CHECK(!ioctl(s, SIOCSIFADDR, &r));
	in.sin_addr.s_addr = htonl(0xffffff00);
	memcpy(&r.ifr_netmask, &in, sizeof(in));
	CHECK(!ioctl(s, SIOCSIFNETMASK, &r));
}

/* Without duplicate address detection, which takes a second. */
static void address6(int s, const char *card, const char *address)
{
	struct in6_ifreq r = { .ifr6_prefixlen = 64, .ifr6_ifindex = (int)if_nametoindex(card) };
	char path[80];

	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/accept_dad", card);
	CHECK(write_file(path, "0"));
	CHECK_EQ(inet_pton(AF_INET6, address, &r.ifr6_addr), 1);
	CHECK(!ioctl(s, SIOCSIFADDR, &r));
}

/* Wait until an address can be used: even without duplicate detection it takes a moment. */
static void await6(int s, const char *address)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6 };
	struct patience p = patience_begin(PATIENCE_SOON);

	CHECK_EQ(inet_pton(AF_INET6, address, &in.sin6_addr), 1);
	while (bind(s, (struct sockaddr *)&in, sizeof(in))) {
		CHECK(errno == EADDRNOTAVAIL && !patience_over(&p));
		sleep_ms(1);
	}
}

/*
 * Add addresses to the devices of a node, without starting a program: there are thousands in a run.
 */
static void cards(const struct nodes *n, uint32_t node)
{
	const char *address;
	char name[IFNAMSIZ];
	uint32_t c;
	int s;

	nodes_enter(n, node);
	s = request_socket(n);
	up(s, "lo");
	for (c = 0; c < n->colors; c++) {
		address = n->address[c * n->count + node];
		card_name(name, c);
		if (n->ipv6)
			address6(s, name, address);
		else
			address4(s, name, address);
		up(s, name);
	}
	close(s);
	for (c = 0; c < n->colors && n->ipv6; c++) {
		s = request_socket(n);
		await6(s, n->address[c * n->count + node]);
		close(s);
	}
	nodes_leave(n);
}

/* Wait until frames are forwarded: a lost address resolution request would cost a second. */
static void await_cables(const struct nodes *n)
{
	char port[IFNAMSIZ];
	uint32_t i, c;

	nodes_enter(n, NODES_HUB);
	for (c = 0; c < n->colors; c++)
		for (i = 0; i < n->count; i++)
			links_await(port_name(port, c, i));
	nodes_leave(n);
}

static void name_addresses(struct nodes *n)
{
	uint32_t i;

	for (i = 0; i < n->count * n->colors; i++) {
		snprintf(n->text[i], sizeof(n->text[i]), n->ipv6 ? "fd09:0:0:%u::%u" : "10.9.%u.%u",
			 i / n->count, i % n->count + 1);
		n->address[i] = n->text[i];
	}
	n->address[i] = NULL;
}

void nodes_open(struct nodes *n, uint32_t count, uint32_t colors, bool ipv6)
{
	uint32_t i;

	n->count = count;
	n->colors = colors;
	n->ipv6 = ipv6;
	n->home = here();
	n->hub = new_namespace();
	for (i = 0; i < count; i++)
		n->node[i] = new_namespace();
	name_addresses(n);
	cables(n);
	for (i = 0; i < count; i++)
		cards(n, i);
	await_cables(n);
}

/* ---- Ranks ---- */

void nodes_setup(const struct nodes *n, struct setup *s, uint32_t rank, uint32_t nprocs)
{
	setup_nodes(s, rank, nprocs, n->count, n->address);
}

static uint32_t node_of(const struct setup *s, uint32_t rank)
{
	const struct acp_rank_run *run = s->ranks;

	while (rank >= run->first + run->count)
		run++;
	return run->node + (rank - run->first) / run->block % run->nodes;
}

void nodes_join(const struct nodes *n, struct rank *r, struct setup *s)
{
	nodes_enter(n, node_of(s, s->join.rank));
	rank_open(r, s);
	nodes_leave(n);
	CHECK_EQ(r->join.node, node_of(s, s->join.rank));
}

static void setup_like(const struct nodes *n, struct setup *s, uint32_t rank, uint32_t nprocs,
		       const struct acp_join *wish)
{
	nodes_setup(n, s, rank, nprocs);
	if (wish->integrity)
		s->join.integrity = wish->integrity;
	if (wish->timeout_ms)
		s->join.timeout_ms = wish->timeout_ms;
	if (wish->open_timeout_ms)
		s->join.open_timeout_ms = wish->open_timeout_ms;
	if (wish->heap_size)
		s->join.heap_size = wish->heap_size;
	if (wish->depth)
		s->join.depth = wish->depth;
}

void nodes_join_like(const struct nodes *n, struct rank *r, uint32_t rank, uint32_t nprocs,
		     const struct acp_join *wish)
{
	struct setup s;

	setup_like(n, &s, rank, nprocs, wish);
	nodes_join(n, r, &s);
}

/* Only root may enter the namespace of the node. */
void nodes_join_as(uid_t user, const struct nodes *n, struct rank *r, uint32_t rank,
		   uint32_t nprocs, const struct acp_join *wish)
{
	struct setup s;

	setup_like(n, &s, rank, nprocs, wish);
	nodes_enter(n, node_of(&s, rank));
	CHECK_EQ(setresuid(0, user, 0), 0);
	rank_open(r, &s);
	CHECK_EQ(setresuid(0, 0, 0), 0);
	nodes_leave(n);
}

void nodes_ranks_like(const struct nodes *n, struct rank *ranks, uint32_t nprocs,
		      const struct acp_join *wish)
{
	uint32_t i;

	for (i = 0; i < nprocs; i++)
		nodes_join_like(n, &ranks[i], i, nprocs, wish);
}

void nodes_ranks(const struct nodes *n, struct rank *ranks, uint32_t nprocs)
{
	const struct acp_join wish = { 0 };

	nodes_ranks_like(n, ranks, nprocs, &wish);
}

/* ---- Counters ---- */

long long nodes_counter(const struct nodes *n, uint32_t node, const char *name)
{
	long long value;

	nodes_enter(n, node);
	value = counter(name);
	nodes_leave(n);
	if (value < 0)
		FAIL("no counter %s", name);
	return value;
}

long long nodes_counters(const struct nodes *n, const char *name)
{
	long long sum = 0;
	uint32_t i;

	for (i = 0; i < n->count; i++)
		sum += nodes_counter(n, i, name);
	return sum;
}

/* A line of names is followed by a line of values; both begin with the group. */
static long long snmp4(FILE *f, const char *group, const char *name)
{
	char names[1000], values[1000], *p, *q, *word, *value;

	while (fgets(names, sizeof(names), f) && fgets(values, sizeof(values), f)) {
		p = names;
		q = values;
		if (strcmp(strsep(&p, ":"), group))
			continue;
		strsep(&q, ":");
		while ((word = strsep(&p, "\n ")) && (value = strsep(&q, "\n ")))
			if (!strcmp(word, name))
				return atoll(value);
	}
	return -1;
}

/* A line is a name, which begins with the group, and its value. */
static long long snmp6(FILE *f, const char *group, const char *name)
{
	const size_t before = strlen(group);
	char line[200], word[100];
	long long value;

	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%99s %lld", word, &value) == 2 &&
		    !strncmp(word, group, before) && !strcmp(word + before, name))
			return value;
	return -1;
}

long long nodes_snmp(const struct nodes *n, uint32_t node, const char *group, const char *name)
{
	const bool ipv6 = strchr(group, '6');
	long long value;
	FILE *f;

	nodes_enter(n, node);
	f = fopen(ipv6 ? "/proc/thread-self/net/snmp6" : "/proc/thread-self/net/snmp", "r");
	CHECK(f);
	value = ipv6 ? snmp6(f, group, name) : snmp4(f, group, name);
	fclose(f);
	nodes_leave(n);
	if (value < 0)
		FAIL("no counter %s of %s", name, group);
	return value;
}

struct count nodes_count(const struct nodes *n, uint32_t node, const char *name)
{
	return (struct count){ n, node, name, nodes_counter(n, node, name) };
}

void nodes_counted(const struct count *c, long long more)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	long long found;

	for (;;) {
		found = nodes_counter(c->nodes, c->node, c->name) - c->before;
		if (found >= more || patience_over(&p))
			break;
		sleep_ms(20);
	}
	if (found != more)
		FAIL("counter %s moved by %lld, wanted %lld", c->name, found, more);
}

bool nodes_said(const char *path, const char *words)
{
	bool found = false;
	char line[5000];
	FILE *f = fopen(path, "r");

	CHECK(f);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, words);
	fclose(f);
	return found;
}
