// SPDX-License-Identifier: MIT
/* Nodes for tests: see nodes.h. */
#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
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

/* Start a command with its standard input at a file: a shell only where it takes one. */
static pid_t spawn(const char *command, int input)
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
	CHECK(!posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO));
	error = posix_spawnp(&child, argv[0], &files, NULL, argv, environ);
	if (error)
		FAIL("%s: %s", argv[0], strerror(error));
	posix_spawn_file_actions_destroy(&files);
	return child;
}

/* Run a command in a namespace; it gets "input" on its standard input. */
static void feed(const struct nodes *n, int namespace, const char *command, const char *input)
{
	int file = memfd_create("input", MFD_CLOEXEC), status;
	pid_t child;

	CHECK(file >= 0);
	CHECK_EQ(write(file, input, strlen(input)), (ssize_t)strlen(input));
	CHECK_EQ(lseek(file, 0, SEEK_SET), 0);
	enter(namespace);
	child = spawn(command, file);
	CHECK_EQ(waitpid(child, &status, 0), child);
	if (status)
		FAIL("%s: failed with\n%s", command, input);
	enter(n->home);
	close(file);
}

void nodes_run(const struct nodes *n, uint32_t node, const char *format, ...)
{
	char command[500];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	feed(n, namespace_of(n, node), command, "");
}

void nodes_impair(const struct nodes *n, uint32_t node, const char *netem)
{
	char card[IFNAMSIZ];
	struct nl_sock *s;
	uint32_t c;

	nodes_enter(n, node);
	s = links_open();
	for (c = 0; c < n->colors; c++) {
		snprintf(card, sizeof(card), "eth%u", c);
		if (!links_netem(s, card, netem))
			nodes_run(n, node, "tc qdisc replace dev %s root netem %s", card, netem);
		nodes_enter(n, node);
	}
	links_close(s);
	nodes_leave(n);
}

void nodes_impair_all(const struct nodes *n, const char *netem)
{
	uint32_t i;

	for (i = 0; i < n->count; i++)
		nodes_impair(n, i, netem);
}

/* ---- Making them ---- */

static int request_socket(const struct nodes *n)
{
	int s = socket(n->ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK(s >= 0);
	return s;
}

#define CARD	"02:00:00:00:%02x:%02x"		/* color, node */

static size_t neighbours(const struct nodes *n, char *p, size_t room)
{
	size_t at = 0;
	uint32_t i, c;

	for (c = 0; c < n->colors; c++)
		for (i = 0; i < n->count; i++)
			at += (size_t)snprintf(p + at, room - at,
				"neigh replace %s lladdr " CARD " dev eth%u nud permanent\n",
				n->address[c * n->count + i], c, i, c);
	return at;
}

/* The card of another node, for good: without a program, which is for IPv6. */
static void acquaint4(const struct nodes *n, int s, uint32_t other, uint32_t color)
{
	const unsigned char card[] = { 2, 0, 0, 0, (unsigned char)color, (unsigned char)other };
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct arpreq r = { .arp_flags = ATF_PERM | ATF_COM };

	CHECK_EQ(inet_pton(AF_INET, n->address[color * n->count + other], &in.sin_addr), 1);
	memcpy(&r.arp_pa, &in, sizeof(in));
	r.arp_ha.sa_family = ARPHRD_ETHER;
	memcpy(r.arp_ha.sa_data, card, sizeof(card));
	snprintf(r.arp_dev, sizeof(r.arp_dev), "eth%u", color);
	CHECK(!ioctl(s, SIOCSARP, &r));
}

static void acquaint_all4(const struct nodes *n, uint32_t node)
{
	uint32_t i, c;
	int s;

	nodes_enter(n, node);
	s = request_socket(n);
	for (c = 0; c < n->colors; c++)
		for (i = 0; i < n->count; i++)
			if (i != node)
				acquaint4(n, s, i, c);
	close(s);
	nodes_leave(n);
}

void nodes_acquaint(const struct nodes *n)
{
	char batch[8000];
	uint32_t i;

	CHECK(neighbours(n, batch, sizeof(batch)) < sizeof(batch));
	for (i = 0; i < n->count; i++)
		if (n->ipv6)
			feed(n, n->node[i], "ip -batch -", batch);
		else
			acquaint_all4(n, i);
}

static void cable(const struct nodes *n, struct nl_sock *s, uint32_t color, uint32_t node)
{
	const unsigned char mac[] = { 2, 0, 0, 0, (unsigned char)color, (unsigned char)node };
	char port[32], bridge[IFNAMSIZ], card[IFNAMSIZ];

	snprintf(port, sizeof(port), "port%u.%u", color, node);
	snprintf(bridge, sizeof(bridge), "br%u", color);
	snprintf(card, sizeof(card), "eth%u", color);
	links_veth(s, port, bridge, card, mac, n->node[node]);
}

/* The hub's bridges, and from each of them a cable to each node. */
static void cables(const struct nodes *n)
{
	struct nl_sock *s;
	char name[IFNAMSIZ];
	uint32_t i, c;

	nodes_enter(n, NODES_HUB);
	s = links_open();
	for (c = 0; c < n->colors; c++) {
		snprintf(name, sizeof(name), "br%u", c);
		links_bridge(s, name);
		for (i = 0; i < n->count; i++)
			cable(n, s, c, i);
	}
	links_close(s);
	nodes_leave(n);
}

static struct ifreq request(const char *card)
{
	struct ifreq r = { .ifr_flags = IFF_UP };

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", card);
	return r;
}

/* A card or loopback is up from now on. */
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

/* Without looking for others who have it, which takes a second. */
static void address6(int s, const char *card, const char *address)
{
	struct in6_ifreq r = { .ifr6_prefixlen = 64, .ifr6_ifindex = (int)if_nametoindex(card) };
	char path[80];

	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/accept_dad", card);
	CHECK(write_file(path, "0"));
	CHECK_EQ(inet_pton(AF_INET6, address, &r.ifr6_addr), 1);
	CHECK(!ioctl(s, SIOCSIFADDR, &r));
}

/* An address can be used: nobody looks for others who have it, but it takes a moment. */
static void await6(int s, const char *address)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6 };
	int tries = 5000;

	CHECK_EQ(inet_pton(AF_INET6, address, &in.sin6_addr), 1);
	while (bind(s, (struct sockaddr *)&in, sizeof(in))) {
		CHECK(errno == EADDRNOTAVAIL && tries--);
		sleep_ms(1);
	}
}

/* The cards of a node get their addresses: without a program, they are thousands in a run. */
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
		snprintf(name, sizeof(name), "eth%u", c);
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

void nodes_join_like(const struct nodes *n, struct rank *r, uint32_t rank, uint32_t nprocs,
		     const struct acp_join *wish)
{
	struct setup s;

	nodes_setup(n, &s, rank, nprocs);
	if (wish->integrity)
		s.join.integrity = wish->integrity;
	if (wish->timeout_ms)
		s.join.timeout_ms = wish->timeout_ms;
	if (wish->open_timeout_ms)
		s.join.open_timeout_ms = wish->open_timeout_ms;
	if (wish->heap_size)
		s.join.heap_size = wish->heap_size;
	if (wish->depth)
		s.join.depth = wish->depth;
	nodes_join(n, r, &s);
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

struct count nodes_count(const struct nodes *n, uint32_t node, const char *name)
{
	return (struct count){ n, node, name, nodes_counter(n, node, name) };
}

void nodes_counted(const struct count *c, long long more)
{
	long long found = 0;
	int i;

	for (i = 0; i < 100; i++) {
		found = nodes_counter(c->nodes, c->node, c->name) - c->before;
		if (found >= more)
			break;
		sleep_ms(20);
	}
	if (found != more)
		FAIL("counter %s moved by %lld, wanted %lld", c->name, found, more);
}
