// SPDX-License-Identifier: MIT
/*
 * Attribution of frames, and bypassed parts of the network stack: rules by user and mark, BPF
 * programs of control groups and of socket lookup, rp_filter, early demultiplexing. Each is changed
 * during traffic, and takes effect.
 */
#include "../dev/isolated.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/udp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../dev/traffic.h"
#include "bpf.h"
#include "inject.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT	103
#endif

#define KB	1024UL
#define HALF	(64 * KB)
#define USER	1000
#define MARK	7
#define PRIORITY	5
#define GROUP	"/sys/fs/cgroup/acp-sender"

static struct nodes n;
static struct rank r[3];
static struct traffic t;

/* ---- BPF ---- */

/* Load a program with a constant verdict on all datagrams. */
static int verdict(uint32_t type, uint32_t attach, int value)
{
	const struct bpf_insn insns[] = { RESULT(value), EXIT };

	return bpf_load(type, attach, insns, 2);
}

/* What a program has counted. */
struct seen {
	uint64_t bytes, runs;
};

static struct seen seen_by(int map)
{
	struct seen seen;
	uint32_t key = 0;
	union bpf_attr attr = { .map_fd = (uint32_t)map, .key = (uintptr_t)&key,
				.value = (uintptr_t)&seen };

	CHECK_EQ(bpf_call(BPF_MAP_LOOKUP_ELEM, &attr), 0);
	return seen;
}

/* A program that counts each datagram, and its bytes from the IP header on, and decides alike. */
static int counting_verdict(uint32_t attach, int map, int value)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0),
		FIRST(map, 4),
		INSN(BPF_LDX | BPF_MEM | BPF_W, 1, 6, offsetof(struct __sk_buff, len), 0),
		INSN(BPF_STX | BPF_XADD | BPF_DW, 0, 1, offsetof(struct seen, bytes), 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, 1),
		INSN(BPF_STX | BPF_XADD | BPF_DW, 0, 1, offsetof(struct seen, runs), 0),
		RESULT(value),
		EXIT,
	};

	return bpf_load(BPF_PROG_TYPE_CGROUP_SKB, attach, insns, sizeof(insns) / sizeof(insns[0]));
}

/* Load a program that sets a field of struct bpf_sock of new sockets. */
static int giver(short field, int value)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, value),
		INSN(BPF_STX | BPF_MEM | BPF_W, 1, 2, field, 0),
		RESULT(1),
		EXIT,
	};

	return bpf_load(BPF_PROG_TYPE_CGROUP_SOCK, BPF_CGROUP_INET_SOCK_CREATE, insns, 4);
}

/* ---- Control groups ---- */

static void group_enter(const char *path)
{
	char file[200];

	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	CHECK(write_file(file, "0"));
}

static int group_open(void)
{
	int fd;

	if (access("/sys/fs/cgroup/cgroup.procs", W_OK))
		SKIP("there are no control groups of version 2");
	CHECK(!mkdir(GROUP, 0755) || errno == EEXIST);
	fd = open(GROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void group_attach(int group, int prog, uint32_t type)
{
	union bpf_attr attr = { .target_fd = (uint32_t)group, .attach_bpf_fd = (uint32_t)prog,
				.attach_type = type };

	if (bpf_call(BPF_PROG_ATTACH, &attr))
		FAIL("attach: %s", strerror(errno));
}

static void group_detach(int group, int prog, uint32_t type)
{
	union bpf_attr attr = { .target_fd = (uint32_t)group, .attach_bpf_fd = (uint32_t)prog,
				.attach_type = type };

	if (bpf_call(BPF_PROG_DETACH, &attr))
		FAIL("detach: %s", strerror(errno));
}

/* ---- Jobs ---- */

static const struct acp_join wish = { .timeout_ms = 30000, .open_timeout_ms = 30000 };

static void join(uint32_t rank)
{
	nodes_join_like(&n, &r[rank], rank, n.count, &wish);
}

static void begin_traffic(void)
{
	traffic_open(&t, r, n.count, HALF, 0);
	traffic_random(&t, 1, 20, 5000);
}

/* Rank 0, on node 0, joins as another user. */
static void begin_as_user(bool ipv6)
{
	nodes_open(&n, 2, 1, ipv6);
	nodes_join_as(USER, &n, &r[0], 0, 2, &wish);
	join(1);
	begin_traffic();
}

/* Rank 0 joins in the control group, with the program attached already or not. */
static void begin_in_group(bool ipv6)
{
	nodes_open(&n, 2, 1, ipv6);
	group_enter(GROUP);
	join(0);
	group_enter("/sys/fs/cgroup");
	join(1);
	begin_traffic();
}

/* Rank 0 joins in the control group, whose sockets have the value in that field. */
static void begin_given(bool ipv6, short field, int value)
{
	group_attach(group_open(), giver(field, value), BPF_CGROUP_INET_SOCK_CREATE);
	begin_in_group(ipv6);
}

static uint64_t copy(size_t size)
{
	return rank_copy(&r[0], memory_ga(&t.memory[1], t.half), memory_ga(&t.memory[0], 0), size,
			 0);
}

static void copy_ends(uint64_t ticket, size_t size)
{
	CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_WORK), ACP_ST_OK);
	memcpy(t.model[1] + t.half, t.memory[0].addr, size);
	traffic_random(&t, 1, 20, 5000);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

/* Return the number of frames of its job that a node has accepted. */
static long long taken(uint32_t node)
{
	return nodes_counter(&n, node, "rx_frames") + nodes_counter(&n, node, "drop_duplicate");
}

/* Nothing that node 0 sends arrives, short or long, until "end" was called. */
static void blocked_until(void (*end)(void), const char *counter, uint32_t at)
{
	static const size_t sizes[] = { 8, HALF };
	long long before = nodes_counter(&n, at, counter), seen = taken(1);
	uint64_t ticket[2];
	int i;

	for (i = 0; i < 2; i++)
		ticket[i] = copy(sizes[i]);
	CHECK_EQ(rank_wait(&r[0], ticket[0], 700 * MS), -1);
	CHECK_EQ(rank_wait(&r[0], ticket[1], 0), -1);
	CHECK(nodes_counter(&n, at, counter) > before);
	CHECK_EQ(taken(1), seen);
	end();
	copy_ends(ticket[1], HALF);
	CHECK_EQ(rank_wait(&r[0], ticket[0], 0), ACP_ST_OK);
}

/* ---- Routes ---- */

static const char *ip(void)
{
	return n.ipv6 ? "ip -6" : "ip -4";
}

static char rule[100];

static void remove_rule(void)
{
	nodes_run(&n, 0, "%s rule del %s", ip(), rule);
}

/* Add a rule of node 0 that prohibits matching traffic. */
static void forbid(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void forbid(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(rule, sizeof(rule), format, args);
	va_end(args);
	nodes_run(&n, 0, "%s rule add %s", ip(), rule);
}

static void user_forbidden(bool ipv6)
{
	begin_as_user(ipv6);
	forbid("pref 10 uidrange 0-%d prohibit", USER - 1);
	traffic_random(&t, 1, 20, 5000);
	remove_rule();
	forbid("pref 10 uidrange %d-%d prohibit", USER, USER);
	blocked_until(remove_rule, "tx_errors", 0);
}

TEST(routed_by_user)
{
	user_forbidden(false);
}

TEST(routed_by_user_ipv6)
{
	user_forbidden(true);
}

static void mark_forbidden(bool ipv6)
{
	begin_given(ipv6, offsetof(struct bpf_sock, mark), MARK);
	forbid("pref 10 fwmark %d prohibit", MARK + 1);
	traffic_random(&t, 1, 20, 5000);
	remove_rule();
	forbid("pref 10 fwmark %d prohibit", MARK);
	blocked_until(remove_rule, "tx_errors", 0);
}

TEST(routed_by_mark)
{
	mark_forbidden(false);
}

TEST(routed_by_mark_ipv6)
{
	mark_forbidden(true);
}

/* ---- Control groups ---- */

static int group, prog;
static uint32_t kind;

static void detach(void)
{
	group_detach(group, prog, kind);
}

static void refused_by_group(bool ipv6, uint32_t type, const char *counter)
{
	group = group_open();
	kind = type;
	prog = verdict(BPF_PROG_TYPE_CGROUP_SKB, type, 0);
	begin_in_group(ipv6);
	group_attach(group, prog, type);
	blocked_until(detach, counter, 0);
}

/* Like IPAddressDeny= of systemd. */
TEST(group_forbids_to_send)
{
	refused_by_group(false, BPF_CGROUP_INET_EGRESS, "tx_errors");
}

TEST(group_forbids_to_send_ipv6)
{
	refused_by_group(true, BPF_CGROUP_INET_EGRESS, "tx_errors");
}

static void set_bypass(int value)
{
	nodes_run(&n, 0, "echo %d >/proc/sys/net/acp/bypass", value);
}

/* Get the number of frames of node 0 that used the bypass: out and in. */
static void direct_frames(long long *out, long long *in)
{
	long long out_before, in_before;

	sleep_ms(1100);		/* the state of the receive bypass expires */
	traffic_random(&t, 1, 20, 5000);
	out_before = nodes_counter(&n, 0, "tx_direct");
	in_before = nodes_counter(&n, 0, "rx_direct");
	traffic_random(&t, 1, 50, 5000);
	*out = nodes_counter(&n, 0, "tx_direct") - out_before;
	*in = nodes_counter(&n, 0, "rx_direct") - in_before;
}

/* A program that accepts everything: by default, it prevents the bypass of its hook. */
TEST(group_with_a_program_ends_the_short_way)
{
	long long out, in;
	int admits[2];

	group = group_open();
	admits[0] = verdict(BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_EGRESS, 1);
	admits[1] = verdict(BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_INGRESS, 1);
	begin_in_group(false);
	direct_frames(&out, &in);
	CHECK(out > 0 && in > 0);
	group_attach(group, admits[0], BPF_CGROUP_INET_EGRESS);
	direct_frames(&out, &in);
	CHECK(out == 0 && in > 0);
	group_attach(group, admits[1], BPF_CGROUP_INET_INGRESS);
	direct_frames(&out, &in);
	CHECK(out == 0 && in == 0);
	set_bypass(1);
	direct_frames(&out, &in);
	CHECK(out > 0 && in > 0);
	set_bypass(2);
	group_detach(group, admits[0], BPF_CGROUP_INET_EGRESS);
	group_detach(group, admits[1], BPF_CGROUP_INET_INGRESS);
	direct_frames(&out, &in);
	CHECK(out > 0 && in > 0);
}

/* ... and with "bypass always", a program that rejects is executed as well. */
TEST(group_forbids_to_send_with_bypass_always)
{
	group = group_open();
	kind = BPF_CGROUP_INET_EGRESS;
	prog = verdict(BPF_PROG_TYPE_CGROUP_SKB, kind, 0);
	begin_in_group(false);
	set_bypass(1);
	group_attach(group, prog, kind);
	blocked_until(detach, "tx_errors", 0);
}

/* Rank 0 gets no acknowledgement; those that rank 1 sent are rejected. */
static void forbidden_to_receive(bool ipv6)
{
	uint64_t ticket;
	long long before;

	group = group_open();
	prog = verdict(BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_INGRESS, 0);
	begin_in_group(ipv6);
	group_attach(group, prog, BPF_CGROUP_INET_INGRESS);
	before = taken(0);
	ticket = copy(HALF);
	CHECK_EQ(rank_wait(&r[0], ticket, 700 * MS), -1);
	CHECK(nodes_counter(&n, 0, "drop_denied") > 0);
	CHECK_EQ(nodes_counter(&n, 1, "drop_denied"), 0);
	CHECK_EQ(taken(0), before);
	group_detach(group, prog, BPF_CGROUP_INET_INGRESS);
	copy_ends(ticket, HALF);
}

TEST(group_forbids_to_receive)
{
	forbidden_to_receive(false);
}

TEST(group_forbids_to_receive_ipv6)
{
	forbidden_to_receive(true);
}

/* Of two jobs with one socket, only that of the group is affected. */
TEST(group_forbids_one_of_two_jobs)
{
	struct rank other[2];
	struct setup s;
	uint64_t ticket;
	uint32_t i;

	group = group_open();
	prog = verdict(BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_EGRESS, 0);
	begin_in_group(false);
	for (i = 0; i < 2; i++) {
		nodes_setup(&n, &s, i, 2);
		s.join.job++;
		nodes_join(&n, &other[i], &s);
	}
	group_attach(group, prog, BPF_CGROUP_INET_EGRESS);
	ticket = copy(HALF);
	for (i = 0; i < 20; i++)
		CHECK_EQ(rank_do_copy(&other[0], heap_ga(&other[1], 0), heap_ga(&other[0], 0),
				      1000), ACP_ST_OK);
	CHECK_EQ(rank_wait(&r[0], ticket, 0), -1);
	group_detach(group, prog, BPF_CGROUP_INET_EGRESS);
	copy_ends(ticket, HALF);
}

/* A process that may not create sockets cannot join. */
TEST(group_forbids_sockets)
{
	struct setup s;

	group = group_open();
	prog = verdict(BPF_PROG_TYPE_CGROUP_SOCK, BPF_CGROUP_INET_SOCK_CREATE, 0);
	group_attach(group, prog, BPF_CGROUP_INET_SOCK_CREATE);
	group_enter(GROUP);
	setup_local(&s, 0, 1);
	CHECK_EQ(setup_join(&s), -EPERM);
	group_enter("/sys/fs/cgroup");
	rank_open(&r[0], &s);
	group_detach(group, prog, BPF_CGROUP_INET_SOCK_CREATE);
}

/* ---- What a program counts of a GSO batch ---- */

#define PIECE		256	/* bytes of a payload */
#define AROUND		28	/* bytes of IPv4 and UDP headers */

static struct inject x;
static struct memory target;
static char batch[60000];
static size_t batched;

/* A rank in the control group, and a node that is played by hand. */
static void play(uint32_t integrity)
{
	struct setup s;

	nodes_open(&n, 2, 1, false);
	nodes_setup(&n, &s, 0, 2);
	s.join.integrity = integrity;
	group_enter(GROUP);
	nodes_join(&n, &r[0], &s);
	group_enter("/sys/fs/cgroup");
	memory_open(&r[0], &target, 16 * KB);
	inject_begin(&x, &n, &s, &r[0], 1);
}

/* Add a frame to the batch, with a put of so many bytes: its size. */
static size_t add_put(uint32_t length, uint8_t flags)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .flags = ACP_MSG_LAST, .origin = 1, .ticket = x.seq,
		.dst = memory_ga(&target, 0), .length = length,
	};
	char body[PIECE + 100], data[PIECE] = "";
	size_t size;

	f.flags |= flags;
	size = inject_build(&x, batch + batched, &f, body, inject_message(body, &m, data));
	batched += size;
	return size;
}

static void send_batch(size_t each)
{
	int size = (int)each, none = 0;

	CHECK_EQ(setsockopt(x.fd, SOL_UDP, UDP_SEGMENT, &size, sizeof(size)), 0);
	inject_send(&x, batch, batched);
	CHECK_EQ(setsockopt(x.fd, SOL_UDP, UDP_SEGMENT, &none, sizeof(none)), 0);
}

/* Twenty frames, of which those of "every" have the flags, and a short one. */
static size_t fill_batch(uint8_t flags, uint32_t every)
{
	size_t each = 0;
	uint32_t i;

	batched = 0;
	for (i = 0; i < 20; i++)
		each = add_put(PIECE, i % every ? 0 : flags);
	add_put(8, 0);
	return each;
}

/*
 * Check that since "before" a program has seen each byte of the batch once, in datagrams of one or
 * more frames. Return whether it saw the batch as one datagram.
 */
static bool was_whole(int map, const struct seen *before)
{
	struct seen seen = seen_by(map);
	uint64_t runs = seen.runs - before->runs;

	CHECK_EQ(seen.bytes - before->bytes, batched + runs * AROUND);
	return runs == 1;
}

/* All frames arrive, and a program sees each of them once, alone or with others. */
static void counted_once(uint32_t integrity, uint8_t flags, uint32_t every)
{
	struct seen before;
	int map, whole = 0, i;

	group = group_open();
	map = bpf_element(sizeof(struct seen));
	prog = counting_verdict(BPF_CGROUP_INET_INGRESS, map, 1);
	play(integrity);
	group_attach(group, prog, BPF_CGROUP_INET_INGRESS);
	/* UDP keeps a batch whole once its way is known. */
	for (i = 0; i < 5; i++) {
		before = seen_by(map);
		send_batch(fill_batch(flags, every));
		inject_applied(&x, x.seq - 1);
		whole += was_whole(map, &before);
	}
	CHECK(whole);
	group_detach(group, prog, BPF_CGROUP_INET_INGRESS);
}

TEST(group_counts_each_frame_of_a_batch_once)
{
	counted_once(ACP_INTEGRITY_TAG, 0, 1);
}

TEST(group_counts_each_long_frame_of_a_batch_once)
{
	counted_once(ACP_INTEGRITY_TAG, ACP_FRAME_BULK, 1);
}

TEST(group_counts_each_frame_of_a_mixed_batch_once)
{
	counted_once(ACP_INTEGRITY_TAG, ACP_FRAME_BULK, 3);
}

TEST(group_counts_each_encrypted_frame_of_a_batch_once)
{
	counted_once(ACP_INTEGRITY_AEAD, 0, 1);
}

/* ... and one that refuses is asked no more often; all frames are refused. */
TEST(group_refuses_a_batch_once)
{
	struct seen before;
	struct count denied;
	int map, whole = 0, i;

	group = group_open();
	map = bpf_element(sizeof(struct seen));
	prog = counting_verdict(BPF_CGROUP_INET_INGRESS, map, 0);
	play(ACP_INTEGRITY_TAG);
	/* Its way is learned from what comes. */
	send_batch(fill_batch(0, 1));
	inject_applied(&x, x.seq - 1);
	group_attach(group, prog, BPF_CGROUP_INET_INGRESS);
	for (i = 0; i < 5; i++) {
		before = seen_by(map);
		denied = nodes_count(&n, 0, "drop_denied");
		send_batch(fill_batch(ACP_FRAME_BULK, 2));
		nodes_counted(&denied, 21);
		whole += was_whole(map, &before);
	}
	CHECK(whole);
	group_detach(group, prog, BPF_CGROUP_INET_INGRESS);
}

/* ---- Receive path ---- */

static int lookup_link;

static void end_lookup(void)
{
	close(lookup_link);
}

static void lookup_refuses(bool ipv6)
{
	const int lookup = verdict(BPF_PROG_TYPE_SK_LOOKUP, BPF_SK_LOOKUP, SK_DROP);
	union bpf_attr attr = { .link_create = { .prog_fd = (uint32_t)lookup,
						 .attach_type = BPF_SK_LOOKUP } };

	nodes_open(&n, 2, 1, ipv6);
	join(0);
	join(1);
	begin_traffic();
	attr.link_create.target_fd = (uint32_t)n.node[1];
	lookup_link = bpf_call(BPF_LINK_CREATE, &attr);
	CHECK(lookup_link >= 0);
	blocked_until(end_lookup, "timeouts", 0);
}

/* A socket lookup program selects no socket from now on. */
TEST(socket_lookup_program_refuses)
{
	lookup_refuses(false);
}

TEST(socket_lookup_program_refuses_ipv6)
{
	lookup_refuses(true);
}

/* Wait until a counter has increased. */
static void await_more(uint32_t node, const char *name, long long more)
{
	const long long before = nodes_counter(&n, node, name);
	struct patience p = patience_begin(PATIENCE_WORK);

	while (nodes_counter(&n, node, name) < before + more) {
		CHECK(!patience_over(&p));
		sleep_ms(50);
	}
}

/*
 * The return path uses another device: this does not matter until rp_filter is enabled. Then frames
 * are rejected, although the route did not change.
 */
TEST(rp_filter_switched_on)
{
	long long before;
	uint64_t ticket;

	nodes_open(&n, 2, 1, false);
	join(0);
	join(1);
	begin_traffic();
	nodes_run(&n, 1, "echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter && "
		  "echo 0 >/proc/sys/net/ipv4/conf/eth0/rp_filter");
	nodes_run(&n, 1, "ip link add astray type dummy && ip link set astray up && "
		  "ip route add %s/32 dev astray", n.address[0]);
	ticket = copy(8);
	await_more(1, "rx_direct", 2);
	nodes_run(&n, 1, "echo 1 >/proc/sys/net/ipv4/conf/all/rp_filter");
	await_more(0, "timeouts", 1);	/* a tick until settings are looked at */
	before = nodes_counter(&n, 1, "rx_direct") + taken(1);
	await_more(0, "timeouts", 2);
	CHECK_EQ(nodes_counter(&n, 1, "rx_direct") + taken(1), before);
	nodes_run(&n, 1, "ip link del astray");
	copy_ends(ticket, 8);
}

/* Settings are looked at once in a tick, which may be late: soon no frame is direct any more. */
static void await_none_direct(void)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	long long before;

	do {
		CHECK(!patience_over(&p));
		before = nodes_counter(&n, 1, "rx_direct");
		traffic_random(&t, 1, 20, 5000);
	} while (nodes_counter(&n, 1, "rx_direct") != before);
}

/* The administrator disables early demultiplexing. */
TEST(early_demultiplexing_switched_off)
{
	static const char *const names[] = { "ip_early_demux", "udp_early_demux" };
	long long before;
	int i;

	nodes_open(&n, 2, 1, false);
	join(0);
	join(1);
	begin_traffic();
	for (i = 0; i < 2; i++) {
		CHECK(nodes_counter(&n, 1, "rx_direct") > 0);
		nodes_run(&n, 1, "echo 0 >/proc/sys/net/ipv4/%s", names[i]);
		await_none_direct();
		before = nodes_counter(&n, 1, "rx_direct");
		traffic_random(&t, 1, 20, 5000);
		CHECK_EQ(nodes_counter(&n, 1, "rx_direct"), before);
		nodes_run(&n, 1, "echo 1 >/proc/sys/net/ipv4/%s", names[i]);
		traffic_random(&t, 1, 20, 5000);
		CHECK(nodes_counter(&n, 1, "rx_direct") > before);
	}
}

static void delete_table(void)
{
	nodes_run(&n, 1, "nft delete table %s t", n.ipv6 ? "ip6" : "ip");
}

/* A filter marks incoming packets, and routing by mark leads nowhere. */
static void mark_set(bool ipv6)
{
	const char *family = ipv6 ? "ip6" : "ip";

	if (system("unshare -n nft add table ip t >/dev/null 2>&1"))
		SKIP("this kernel has no nf_tables");
	nodes_open(&n, 2, 1, ipv6);
	join(0);
	join(1);
	begin_traffic();
	nodes_run(&n, 1, "%s rule add pref 20 lookup local", ip());
	nodes_run(&n, 1, "%s rule del pref 0", ip());
	nodes_run(&n, 1, "%s rule add pref 10 fwmark %d prohibit", ip(), MARK);
	nodes_run(&n, 1, "nft 'add table %s t; add chain %s t c { type filter hook prerouting "
		  "priority -150; }'", family, family);
	traffic_random(&t, 1, 20, 5000);
	nodes_run(&n, 1, "nft 'add rule %s t c meta l4proto udp meta mark set %d'", family, MARK);
	blocked_until(delete_table, "timeouts", 0);
}

TEST(marked_on_its_way_in)
{
	mark_set(false);
}

TEST(marked_on_its_way_in_ipv6)
{
	mark_set(true);
}

/* ---- Transmit path ---- */

static void every_band_sends(void)
{
	nodes_run(&n, 0, "tc qdisc del dev eth0 root");
}

/* Of the bands of the card of node 0, the one that a priority belongs to sends nothing. */
static void silence(unsigned int priority)
{
	char map[40] = "";
	unsigned int i;

	for (i = 0; i < 16; i++)
		strcat(map, i == priority ? " 1" : " 0");
	nodes_run(&n, 0, "tc qdisc add dev eth0 root handle 1: prio bands 2 priomap%s", map);
	nodes_run(&n, 0, "tc qdisc add dev eth0 parent 1:2 netem loss 100%%");
}

static void priority_silenced(bool ipv6)
{
	if (system("unshare -n tc qdisc add dev lo root prio >/dev/null 2>&1"))
		SKIP("this kernel has no prio");
	begin_given(ipv6, offsetof(struct bpf_sock, priority), PRIORITY);
	silence(PRIORITY + 1);
	traffic_random(&t, 1, 20, 5000);
	every_band_sends();
	silence(PRIORITY);
	blocked_until(every_band_sends, "timeouts", 0);
}

TEST(sent_with_the_priority_of_the_process)
{
	priority_silenced(false);
}

TEST(sent_with_the_priority_of_the_process_ipv6)
{
	priority_silenced(true);
}

/* fq paces a flow: half a megabyte takes some time at one megabyte per second. */
TEST(paced_by_fq)
{
	uint64_t begun;

	if (system("unshare -n tc qdisc add dev lo root fq >/dev/null 2>&1"))
		SKIP("this kernel has no fq");
	nodes_open(&n, 2, 1, false);
	join(0);
	join(1);
	begin_traffic();
	nodes_run(&n, 0, "tc qdisc add dev eth0 root fq maxrate 4mbit");
	begun = now_ns();
	CHECK_EQ(rank_await(&r[0], copy(HALF), PATIENCE_WORK), ACP_ST_OK);
	CHECK_EQ(rank_await(&r[0], copy(HALF), PATIENCE_WORK), ACP_ST_OK);
	CHECK(now_ns() - begun > 150 * MS);
	nodes_run(&n, 0, "tc qdisc del dev eth0 root");
}

