// SPDX-License-Identifier: MIT
/* The faults of a soak (see faults.h). */
#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "faults.h"
#include "frame.h"

#define HUB		(NODES_MAX - 1)	/* the namespace of the cables, used like a node */
#define ACTIVE		6		/* maximum number of concurrent faults */
#define INJECTED	"/sys/kernel/debug/failslab/"

/* Faults of one group exclude each other at one place. */
enum group { SHAPE, CUT, MEMBER, MACHINE, SIZE, FLOOD, MOMENT };

struct active {
	const struct fault *fault;
	int node, color, member;
	uint64_t until;
	bool longer;			/* than the timeout */
	pid_t child;
};

struct fault {
	const char *name;
	enum group group;
	unsigned int weight;
	bool (*begin)(struct active *a);	/* false: not possible here */
	void (*end)(struct active *a);
};

static struct nodes *nodes;
static uint64_t *stream;
static struct active active[ACTIVE];
static uint64_t next_fault, next_cut;
static unsigned int *counts;

/* ---- Effects of the network on datagrams ---- */

static bool shape(struct active *a)
{
	static const char *const kinds[] = {
		"loss 1%", "loss 10%", "loss 20%", "loss gemodel 3% 30% 60% 0.1%",
		"duplicate 10%", "duplicate 100%", "delay 1ms reorder 50% 50%", "delay 2ms 2ms",
		"delay 20ms", "corrupt 3%", "delay 1ms 1ms loss 5% duplicate 5%",
		"delay 3ms 3ms loss 2% corrupt 2%", "rate 20mbit", "slot 2ms 5ms",
	};
	const char *kind = kinds[draw(stream, sizeof(kinds) / sizeof(*kinds))];

	nodes_impair(nodes, (uint32_t)a->node, kind);
	return true;
}

static void shape_end(struct active *a)
{
	nodes_impair(nodes, (uint32_t)a->node, "");
}

/* ---- Disconnection ---- */

static bool cable(struct active *a)
{
	nodes_run(nodes, HUB, "ip link set port%d.%d down", a->color, a->node);
	return true;
}

static void cable_end(struct active *a)
{
	nodes_run(nodes, HUB, "ip link set port%d.%d up", a->color, a->node);
}

static bool deaf(struct active *a)
{
	nodes_run(nodes, HUB, "tc qdisc replace dev port%d.%d root netem loss 100%%", a->color,
		  a->node);
	return true;
}

static void deaf_end(struct active *a)
{
	nodes_run(nodes, HUB, "tc qdisc del dev port%d.%d root", a->color, a->node);
}

static bool card(struct active *a)
{
	nodes_run(nodes, (uint32_t)a->node, "ip link set eth%d down", a->color);
	return true;
}

static void card_end(struct active *a)
{
	nodes_run(nodes, (uint32_t)a->node, "ip link set eth%d up && ip addr replace %s%s dev eth%d",
		  a->color, nodes->address[a->color * NODES + a->node],
		  nodes->ipv6 ? "/64 nodad" : "/24", a->color);
	nodes_acquaint(nodes);
}

static void route_change(const struct active *a, const char *verb)
{
	if (nodes->ipv6)
		nodes_run(nodes, (uint32_t)a->node, "ip -6 route %s fd09:0:0:%d::/64 dev eth%d",
			  verb, a->color, a->color);
	else
		nodes_run(nodes, (uint32_t)a->node, "ip route %s 10.9.%d.0/24 dev eth%d", verb,
			  a->color, a->color);
}

static bool route(struct active *a)
{
	route_change(a, "del");
	return true;
}

static void route_end(struct active *a)
{
	route_change(a, "add");
}

/* ---- The size of datagrams ---- */

static void set_size(const struct active *a, unsigned int mtu, bool smaller)
{
	uint32_t i, step;

	for (step = 0; step < 2; step++)
		for (i = 0; i < NODES; i++)
			if ((step == 0) == smaller)
				nodes_run(nodes, i, "ip link set eth%d mtu %u", a->color, mtu);
			else
				nodes_run(nodes, HUB, "ip link set port%d.%u mtu %u", a->color, i,
					  mtu);
}

static bool small(struct active *a)
{
	set_size(a, (unsigned int)between(stream, nodes->ipv6 ? 1280 : 700, 1499), true);
	return true;
}

static void small_end(struct active *a)
{
	set_size(a, 1500, false);
}

static bool large(struct active *a)
{
	set_size(a, (unsigned int)between(stream, 1501, 9000), false);
	return true;
}

static void large_end(struct active *a)
{
	set_size(a, 1500, true);
}

/* ---- Members ---- */

static bool stop(struct active *a)
{
	struct member *m = &board->member[a->member];

	if (m->doomed)
		return false;
	STORE(m->stopped, 1);
	return !kill(m->pid, SIGSTOP);
}

static void stop_end(struct active *a)
{
	struct member *m = &board->member[a->member];

	if (!m->gone)
		kill(m->pid, SIGCONT);
	STORE(m->resumed, now_ns());
	STORE(m->stopped, 0);
}

/* ---- The machine ---- */

static bool processor(struct active *a)
{
	(void)a;
	return set_processor(false);
}

static void processor_end(struct active *a)
{
	(void)a;
	set_processor(true);
}

static bool scarce(struct active *a)
{
	char text[8];

	(void)a;
	if (!write_file(INJECTED "verbose", "0"))
		return false;
	snprintf(text, sizeof(text), "%u", (unsigned int)between(stream, 1, 5));
	STORE(board->scarce.from, now_ns());
	STORE(board->scarce.until, UINT64_MAX);
	return write_file(INJECTED "ignore-gfp-wait", "Y") && write_file(INJECTED "times", "-1") &&
	       write_file(INJECTED "interval", "1") && write_file(INJECTED "probability", text);
}

static void scarce_end(struct active *a)
{
	(void)a;
	write_file(INJECTED "probability", "0");
	STORE(board->scarce.until, now_ns());
}

static bool poller(struct active *a)
{
	static const char *const us[] = { "0", "50", "500", "20000" };

	(void)a;
	return write_file("/sys/module/acp/parameters/poll_us", us[draw(stream, 4)]);
}

static void poller_end(struct active *a)
{
	(void)a;
	write_file("/sys/module/acp/parameters/poll_us", "500");
}

static bool compact(struct active *a)
{
	(void)a;
	write_file("/proc/sys/vm/drop_caches", "3");
	return write_file("/proc/sys/vm/compact_memory", "1");
}

static bool unload(struct active *a)
{
	(void)a;
	if (!syscall(SYS_delete_module, "acp", O_NONBLOCK))
		FAIL("the module could be unloaded while it was in use");
	CHECK_EQ(errno, EWOULDBLOCK);
	return true;
}

/* ---- Unknown senders ---- */

static int raw_socket(const struct active *a, int to)
{
	int fd = socket(nodes->ipv6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_UDP);
	struct sockaddr_storage address = { 0 };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;
	struct sockaddr_in *in = (struct sockaddr_in *)&address;
	const char *text = nodes->address[a->color * NODES + to];
	int checksum = 6;		/* its offset in the header */

	CHECK(fd >= 0);
	if (nodes->ipv6) {
		in6->sin6_family = AF_INET6;
		CHECK_EQ(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
		CHECK_EQ(setsockopt(fd, IPPROTO_IPV6, IPV6_CHECKSUM, &checksum, sizeof(checksum)),
			 0);
	} else {
		in->sin_family = AF_INET;
		CHECK_EQ(inet_pton(AF_INET, text, &in->sin_addr), 1);
	}
	if (connect(fd, (struct sockaddr *)&address, nodes->ipv6 ? sizeof(*in6) : sizeof(*in)))
		_exit(0);		/* cut off just now */
	return fd;
}

/* One datagram from the right port: random bytes, or a header that is valid except for the tag. */
static size_t garbage(uint8_t *out, int node)
{
	struct udphdr *udp = (struct udphdr *)out;
	size_t body = draw(stream, 1400), i;
	struct acp_frame f = {
		.type = (uint8_t)between(stream, 0, 4), .job = 1, .node = (uint32_t)node,
		.epoch_src = (uint32_t)next_random(stream), .seq = draw(stream, 1000),
	};

	for (i = 0; i < body; i += 8)
		*(uint64_t *)(out + sizeof(*udp) + i) = next_random(stream);
	if (body >= sizeof(struct acp_frame_hdr) && one_of(stream, 2)) {
		f.length = (uint32_t)(body - sizeof(struct acp_frame_hdr));
		acp_frame_encode((void *)(out + sizeof(*udp)), &f);
	}
	udp->source = htons(ACP_PORT_DEFAULT);
	udp->dest = htons(ACP_PORT_DEFAULT);
	udp->len = htons((uint16_t)(sizeof(*udp) + body));
	udp->check = 0;
	return sizeof(*udp) + body;
}

static void flood_for_ever(const struct active *a)
{
	unsigned int burst = (unsigned int)between(stream, 1, 60), i;
	static uint8_t datagram[2000] __attribute__((aligned(8)));
	int fd;

	nodes_enter(nodes, (uint32_t)a->node);
	fd = raw_socket(a, (a->node + 1) % NODES);
	for (;;) {
		for (i = 0; i < burst; i++) {
			size_t size = garbage(datagram, a->node);

			if (send(fd, datagram, size, MSG_DONTWAIT) < 0)
				break;
		}
		sleep_ms(5);
	}
}

static bool flood(struct active *a)
{
	a->child = fork();
	if (!a->child)
		flood_for_ever(a);
	draw(stream, 2);
	return a->child > 0;
}

static void flood_end(struct active *a)
{
	kill(a->child, SIGKILL);
	waitpid(a->child, NULL, 0);
}

/* ---- The list of faults ---- */

static const struct fault faults[] = {
	{ "shape", SHAPE, 20, shape, shape_end },
	{ "cable", CUT, 5, cable, cable_end },
	{ "deaf", CUT, 5, deaf, deaf_end },
	{ "card", CUT, 5, card, card_end },
	{ "route", CUT, 5, route, route_end },
	{ "small", SIZE, 5, small, small_end },
	{ "large", SIZE, 5, large, large_end },
	{ "stop", MEMBER, 10, stop, stop_end },
	{ "processor", MACHINE, 4, processor, processor_end },
	{ "scarce", MACHINE, 6, scarce, scarce_end },
	{ "poller", MACHINE, 5, poller, poller_end },
	{ "compact", MOMENT, 4, compact, NULL },
	{ "unload", MOMENT, 4, unload, NULL },
	{ "flood", FLOOD, 8, flood, flood_end },
};

#define FAULTS	(sizeof(faults) / sizeof(faults[0]))

static const struct fault *draw_fault(void)
{
	uint64_t sum = 0, x;
	size_t i;

	for (i = 0; i < FAULTS; i++)
		sum += faults[i].weight;
	x = draw(stream, sum);
	for (i = 0; x >= faults[i].weight; i++)
		x -= faults[i].weight;
	return &faults[i];
}

/* An interface that is down has no IPv6 address: nobody can join then. */
static bool takes_address(const struct fault *f)
{
	return f->begin == card && nodes->ipv6;
}

/*
 * Faults that exclude this one; cuts are separate and with pauses, since together they would last
 * longer.
 */
static bool excluded(const struct active *a, bool calm)
{
	enum group g = a->fault->group;
	int i;

	if (calm && (g == MEMBER || g == MACHINE || g == MOMENT || a->longer ||
		     takes_address(a->fault)))
		return true;
	if (g == CUT && now_ns() < next_cut)
		return true;
	for (i = 0; i < ACTIVE; i++) {
		const struct active *b = &active[i];

		if (b->fault && b->fault->group == g &&
		    (g != SHAPE || b->node == a->node) && (g != MEMBER || b->member == a->member))
			return true;
	}
	return false;
}

static void draw_duration(struct active *a)
{
	uint64_t t = board->timeout;

	a->longer = a->fault->group == CUT && one_of(stream, 4);
	if (a->fault->group != CUT)
		a->until = now_ns() + between(stream, 50 * MS, 3000 * MS);
	else if (a->longer)
		a->until = now_ns() + between(stream, t + t / 2, 2 * t);
	else
		a->until = now_ns() + between(stream, t / 20, t / 3);
}

static void begin(struct active *place, bool calm)
{
	struct active a = { .fault = draw_fault() };
	struct trouble *cut;

	a.node = (int)draw(stream, NODES);
	a.color = (int)draw(stream, COLORS);
	a.member = (int)draw(stream, MEMBERS);
	draw_duration(&a);
	if (excluded(&a, calm))
		return;
	cut = &board->cut[a.node];
	if (a.longer) {
		STORE(board->cut_off, 1);
		STORE(cut->until, UINT64_MAX);
		STORE(cut->from, now_ns());
	}
	if (!a.fault->begin(&a))
		return;
	counts[a.fault - faults]++;
	if (a.fault->end)
		*place = a;
}

static void end(struct active *a)
{
	a->fault->end(a);
	if (a->longer)
		STORE(board->cut[a->node].until, now_ns());
	if (a->fault->group == CUT)
		next_cut = now_ns() + board->timeout / 2 + board->slack / 4;
	a->fault = NULL;
}

_Static_assert(FAULTS <= FAULTS_COUNTED, "a counter for each");

void faults_begin(unsigned int there[FAULTS_COUNTED])
{
	counts = there;
}

void faults_open(struct nodes *n, uint64_t *from)
{
	nodes = n;
	stream = from;
	n->node[HUB] = n->hub;
	memset(active, 0, sizeof(active));
}

void faults_tick(bool calm)
{
	int i;

	for (i = 0; i < ACTIVE; i++)
		if (active[i].fault && now_ns() > active[i].until)
			end(&active[i]);
	if (now_ns() < next_fault)
		return;
	next_fault = now_ns() + between(stream, 10 * MS, 300 * MS);
	for (i = 0; i < ACTIVE; i++)
		if (!active[i].fault) {
			begin(&active[i], calm);
			return;
		}
}

void faults_end(void)
{
	int i;

	for (i = 0; i < ACTIVE; i++)
		if (active[i].fault)
			end(&active[i]);
}

bool faults_severe(void)
{
	int i;

	for (i = 0; i < ACTIVE; i++)
		if (active[i].fault && (active[i].longer || active[i].fault->group == MEMBER ||
					active[i].fault->group == MACHINE ||
					takes_address(active[i].fault)))
			return true;
	return false;
}

void faults_print(void)
{
	size_t i;

	printf("# faults:");
	for (i = 0; i < FAULTS; i++)
		printf(" %s %u", faults[i].name, counts[i]);
	printf("\n");
}

void faults_undo(void)
{
	write_file(INJECTED "probability", "0");
	set_processor(true);
	write_file("/sys/module/acp/parameters/poll_us", "500");
}
