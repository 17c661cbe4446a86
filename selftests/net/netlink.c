// SPDX-License-Identifier: MIT
/* The generic netlink family: information and its visibility, settings and refusals. */
#include "netlink_play.h"

/* ---- information ---- */

TEST(netlink_node)
{
	begin(10000);
	CHECK_EQ(simple(ACP_NL_CMD_NODE_GET), 0);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_ENABLE), 1);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_MACHINE_ENABLE), 1);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_ABI_VERSION), ACP_ABI_VERSION);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_PORT), ACP_PORT_DEFAULT);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_JOBS), 1);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_RANKS), 1);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_USERS), 1);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_FLOWS), 0);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_TIMEOUT_MIN), ACP_NL_TIMEOUT_MIN);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_TIMEOUT_MAX), ACP_NL_TIMEOUT_MAX);
	CHECK(strlen(answer_text(&got, ACP_NL_A_MODULE_VERSION)) > 0);
}

TEST(netlink_job)
{
	begin(10000);
	CHECK_EQ(of_job(ACP_NL_CMD_JOB_GET, job()), 0);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_JOB), job());
	CHECK_EQ(answer_u32(&got, ACP_NL_A_UID), 0);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_JOB_STATE), ACP_NL_JOB_RUNNING);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_NPROCS), 2);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_NODES), 2);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_ME), 0);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_FAMILY), AF_INET);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_TIMEOUT), 10000);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_RANKS), 1);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_PLACED), 1);
	CHECK(answer_u64(&got, ACP_NL_A_MEMORY) >=
	      r[0].join.heap_size + r[0].join.starter_size);
	CHECK(!answer_has(&got, ACP_NL_A_BROKEN) && !answer_has(&got, ACP_NL_A_ABORTED));
	CHECK_EQ(dump_of(ACP_NL_CMD_JOB_GET, 0, NULL), 1);
	CHECK_EQ(dump_of(ACP_NL_CMD_JOB_GET, job(), NULL), 1);
	CHECK_EQ(dump_of(ACP_NL_CMD_JOB_GET, job() + 1, NULL), 0);
	CHECK_EQ(of_job(ACP_NL_CMD_JOB_GET, job() + 1), -ENOENT);
	CHECK(strlen(q.said) > 0);
}

static int of_rank(uint32_t rank)
{
	ask_begin(&q, ACP_NL_CMD_RANK_GET, 0);
	ask_u32(&q, ACP_NL_A_JOB, job());
	ask_u32(&q, ACP_NL_A_RANK, rank);
	return ask_do(&q, &got);
}

TEST(netlink_ranks_here_and_elsewhere)
{
	begin(10000);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 8), ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 0), rank_ga(&r[1], 1, 60, 0), 8), ACP_ST_STAG);
	CHECK_EQ(of_rank(0), 0);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_RANK_STATE), ACP_RANK_UP);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_PID), getpid());
	CHECK_EQ(answer_u32(&got, ACP_NL_A_DEPTH), r[0].join.depth);
	CHECK_EQ(answer_u64(&got, ACP_NL_A_TAKEN), 2);
	CHECK_EQ(answer_u64(&got, ACP_NL_A_COMPLETED), 2);
	CHECK_EQ(answer_u64(&got, ACP_NL_A_FAILED), 1);
	CHECK_EQ(answer_u64(&got, ACP_NL_A_HEAP), r[0].join.heap_size);
	CHECK_EQ(of_rank(1), 0);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_NODE), 1);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_RANK_STATE), ACP_RANK_UP);
	CHECK(!answer_has(&got, ACP_NL_A_PID) && answer_has(&got, ACP_NL_A_ADDRESS));
	CHECK_EQ(of_rank(2), -EINVAL);
	CHECK_EQ(dump_of(ACP_NL_CMD_RANK_GET, job(), NULL), 1);
}

static uint32_t kinds[5];
static uint64_t found_key;

static void note_region(const struct answer *a)
{
	kinds[answer_u32(a, ACP_NL_A_KIND)]++;
	if (answer_u32(a, ACP_NL_A_KIND) != ACP_NL_REGION_USER)
		return;
	found_key = answer_u64(a, ACP_NL_A_KEY);
	CHECK_EQ(answer_u64(a, ACP_NL_A_LENGTH), 3 * PAGE);
	CHECK_EQ(answer_u64(a, ACP_NL_A_PAGES), 3);
	CHECK_EQ(answer_u32(a, ACP_NL_A_REGISTRATIONS), 1);
}

TEST(netlink_regions)
{
	struct memory m;

	begin(10000);
	memory_open(&r[0], &m, 3 * PAGE);
	CHECK_EQ(dump_of(ACP_NL_CMD_REGION_GET, job(), note_region), 4);
	CHECK(kinds[1] == 1 && kinds[2] == 1 && kinds[3] == 1 && kinds[4] == 1);
	CHECK_EQ(found_key, m.reg.key);
	CHECK_EQ(of_rank(0), 0);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_REGIONS), 1);
	CHECK_EQ(rank_unregister(&r[0], m.reg.key, NULL), 0);
	CHECK_EQ(dump_of(ACP_NL_CMD_REGION_GET, job(), NULL), 3);
	CHECK_EQ(of_rank(0), 0);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_REGIONS), 0);
}

static struct { char name[32]; uint64_t value; } stat_of_job[40];
static uint32_t n_stats;

static void note_stat(const struct answer *a)
{
	snprintf(stat_of_job[n_stats].name, 32, "%s", answer_text(a, ACP_NL_A_NAME));
	CHECK(strlen(answer_text(a, ACP_NL_A_TEXT)) > 0);
	stat_of_job[n_stats++].value = answer_u64(a, ACP_NL_A_VALUE);
}

static uint64_t job_stat(const char *name)
{
	uint32_t i;

	n_stats = 0;
	CHECK(dump_of(ACP_NL_CMD_STAT_GET, job(), note_stat) > 10);
	for (i = 0; i < n_stats; i++)
		if (!strcmp(stat_of_job[i].name, name))
			return stat_of_job[i].value;
	FAIL("no counter %s", name);
}

TEST(netlink_flows_and_their_counters)
{
	uint64_t frames, bytes;
	int i;

	begin(10000);
	CHECK_EQ(dump_of(ACP_NL_CMD_FLOW_GET, job(), NULL), 0);
	for (i = 0; i < 10; i++)
		CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 64), ACP_ST_OK);
	CHECK_EQ(dump_of(ACP_NL_CMD_FLOW_GET, job(), note_flow), 1);
	CHECK_EQ(answer_u32(&flow, ACP_NL_A_NODE), 1);
	CHECK_EQ(answer_u32(&flow, ACP_NL_A_FLOW_STATE), ACP_NL_FLOW_OPEN);
	CHECK_EQ(answer_u32(&flow, ACP_NL_A_FLOW_FATE), ACP_NL_FATE_NONE);
	CHECK(answer_u64(&flow, ACP_NL_A_SRTT) > 0 && answer_u64(&flow, ACP_NL_A_RTO) > 0);
	CHECK(answer_u32(&flow, ACP_NL_A_WINDOW) > 0);
	frames = answer_u64(&flow, ACP_NL_A_TX_FRAMES);
	bytes = answer_u64(&flow, ACP_NL_A_TX_BYTES);
	/* There is no other traffic: HELLO and puts, as counted by the node. */
	CHECK_EQ(frames, (uint64_t)counter("tx_frames"));
	CHECK(frames >= 11 && bytes >= 64 + 10 * (48 + 32 + 64));
	CHECK(answer_u64(&flow, ACP_NL_A_RX_FRAMES) >= 2);
	CHECK_EQ(job_stat("tx_frames"), frames);
	CHECK_EQ(job_stat("commands"), 10);
	CHECK_EQ(job_stat("flows"), 1);
}

/* Counters of ranks that have left are kept. */
TEST(netlink_counters_of_a_job_outlive_its_ranks)
{
	struct setup s;

	nodes_open(&net, 1, 1, false);
	nodes_setup(&net, &s, 0, 2);
	nodes_join(&net, &r[0], &s);
	nodes_setup(&net, &s, 1, 2);
	nodes_join(&net, &r[1], &s);
	nodes_enter(&net, 0);
	ask_open(&q);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 64), ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r[1], heap_ga(&r[0], 0), heap_ga(&r[1], 0), 64), ACP_ST_OK);
	CHECK_EQ(job_stat("commands"), 2);
	rank_close(&r[1]);
	CHECK_EQ(job_stat("commands"), 2);
	CHECK_EQ(job_stat("ranks"), 1);
}

/* Check the attributes of rank 0: queues, and commands taken, completed, failed. */
static void check_work(uint32_t queues, uint64_t taken, uint64_t completed, uint64_t failed)
{
	CHECK_EQ(of_rank(0), 0);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_QUEUES), queues);
	CHECK_EQ(answer_u64(&got, ACP_NL_A_TAKEN), taken);
	CHECK_EQ(answer_u64(&got, ACP_NL_A_COMPLETED), completed);
	CHECK_EQ(answer_u64(&got, ACP_NL_A_FAILED), failed);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_IN_FLIGHT), taken - completed);
}

/* Counters of a rank include all its queues, also closed ones with commands in flight. */
TEST(netlink_queues_of_a_rank)
{
	struct rank a, b;
	int i;

	begin(60000);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 8), ACP_ST_OK);
	check_work(1, 1, 1, 0);
	rank_attach(&a, &r[0]);
	rank_attach(&b, &r[0]);
	CHECK_EQ(rank_do_copy(&a, heap_ga(&r[1], 0), heap_ga(&r[0], 0), 8), ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&b, heap_ga(&r[1], 0), rank_ga(&r[1], 1, 60, 0), 8), ACP_ST_STAG);
	check_work(3, 3, 3, 1);
	nodes_impair(&net, 1, "loss 100%");
	for (i = 0; i < 5; i++) {
		rank_copy(&a, heap_ga(&r[1], 0), heap_ga(&r[0], 0), 8, 0);
		rank_copy(&b, heap_ga(&r[1], 0), heap_ga(&r[0], 0), 8, b.last);
	}
	while (!of_rank(0) && answer_u64(&got, ACP_NL_A_TAKEN) < 13)
		sleep_ms(1);		/* the poller may be processing it */
	check_work(3, 13, 3, 1);
	/* Commands in flight end with their queue, and count: started ones and waiting ones. */
	rank_detach(&a);
	check_work(2, 13, 8, 6);
	rank_detach(&b);
	check_work(1, 13, 13, 11);
	CHECK_EQ(job_stat("commands"), 13);
	CHECK_EQ(job_stat("commands_failed"), 11);
	CHECK_EQ(job_stat("ranks"), 1);
	nodes_enter(&net, 0);
	rank_attach(&a, &r[0]);
	check_work(2, 13, 13, 11);
}

TEST(netlink_counters_of_the_node)
{
	uint32_t i, seen = 0;

	begin(10000);
	n_stats = 0;
	CHECK(dump_of(ACP_NL_CMD_STAT_GET, 0, note_stat) > 30);
	for (i = 0; i < n_stats; i++)
		seen += counter(stat_of_job[i].name) >= 0;
	CHECK_EQ(seen, n_stats);
}

/* ---- settings ---- */

static void note_limit(const struct answer *a)
{
	CHECK_EQ(answer_u64(a, ACP_NL_A_VALUE),
		 (uint64_t)limit_get(answer_text(a, ACP_NL_A_NAME)));
	CHECK(answer_u64(a, ACP_NL_A_LIMIT_MIN) <= answer_u64(a, ACP_NL_A_LIMIT_MAX));
}

static int limit(const char *name)
{
	ask_begin(&q, ACP_NL_CMD_LIMIT_GET, 0);
	ask_text(&q, ACP_NL_A_NAME, name);
	return ask_do(&q, &got);
}

/* They are the same as the sysctls. */
TEST(netlink_limits)
{
	struct setup s;

	begin(10000);
	CHECK_EQ(dump_of(ACP_NL_CMD_LIMIT_GET, 0, note_limit), ACP_LIMIT_END - 1);
	CHECK_EQ(limit("user_ranks"), 0);
	CHECK_EQ(answer_u64(&got, ACP_NL_A_USED), 1);
	CHECK_EQ(limit("jobs"), 0);
	CHECK_EQ(answer_u64(&got, ACP_NL_A_USED), 1);
	CHECK_EQ(limit("enable"), -ENOENT);
	CHECK_EQ(limit_to("user_ranks", 1), 0);
	CHECK_EQ(limit_get("user_ranks"), 1);
	CHECK_EQ(limit_to("depth", 1), -EINVAL);
	CHECK_EQ(limit_to("depth", ACP_DEPTH_MAX + 1), -EINVAL);
	CHECK_EQ(limit_to("depths", 64), -ENOENT);
	nodes_setup(&net, &s, 0, 2);
	s.join.job++;
	CHECK_EQ(setup_join(&s), -EDQUOT);
}

static int set_node(uint16_t attr, uint32_t value)
{
	ask_begin(&q, ACP_NL_CMD_NODE_SET, 0);
	ask_u32(&q, attr, value);
	return ask_do(&q, NULL);
}

TEST(netlink_off_switch)
{
	struct setup s;

	begin(10000);
	CHECK_EQ(set_node(ACP_NL_A_ENABLE, 0), 0);
	CHECK_EQ(limit_get("enable"), 0);
	nodes_setup(&net, &s, 0, 2);
	s.join.job++;
	CHECK_EQ(setup_join(&s), -EOPNOTSUPP);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 8), ACP_ST_OK);
	CHECK_EQ(set_node(ACP_NL_A_ENABLE, 1), 0);
	CHECK(setup_join(&s) >= 0);
	CHECK_EQ(set_node(ACP_NL_A_ENABLE, 2), -ERANGE);
	CHECK_EQ(simple(ACP_NL_CMD_NODE_SET), -EINVAL);
}

/* A job keeps the bounds of its start; its ranks still agree. */
TEST(netlink_bounds_of_time_outs)
{
	struct setup s;

	nodes_open(&net, 1, 1, false);
	nodes_enter(&net, 0);
	ask_open(&q);
	CHECK_EQ(set_node(ACP_NL_A_TIMEOUT_MIN, 5000), 0);
	CHECK_EQ(set_node(ACP_NL_A_TIMEOUT_MAX, 4000), -EINVAL);
	CHECK_EQ(set_node(ACP_NL_A_TIMEOUT_MAX, 6000), 0);
	nodes_setup(&net, &s, 0, 2);
	s.join.timeout_ms = 100;
	s.join.open_timeout_ms = 60000;
	CHECK(setup_join(&s) >= 0);
	CHECK_EQ(set_node(ACP_NL_A_TIMEOUT_MAX, 7000), 0);
	s.join.rank = 1;
	CHECK(setup_join(&s) >= 0);
	CHECK_EQ(of_job(ACP_NL_CMD_JOB_GET, s.join.job), 0);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_TIMEOUT), 5000);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_OPEN_TIMEOUT), 6000);
}

static void note_color(const struct answer *a)
{
	CHECK_EQ(answer_u32(a, ACP_NL_A_COLOR), 0);
	CHECK(answer_has(a, ACP_NL_A_IFINDEX));
}

TEST(netlink_colors)
{
	struct setup s;
	int fd;

	nodes_open(&net, 2, 1, false);
	nodes_enter(&net, 0);
	ask_open(&q);
	CHECK_EQ(dump_of(ACP_NL_CMD_COLOR_GET, 0, NULL), 0);
	CHECK_EQ(color(ACP_NL_CMD_COLOR_ADD, 0, "10.9.0.77"), 0);
	nodes_setup(&net, &s, 0, 2);
	CHECK_EQ(setup_join(&s), -EADDRNOTAVAIL);
	CHECK_EQ(color(ACP_NL_CMD_COLOR_ADD, 0, "10.9.0.1"), 0);
	CHECK_EQ(dump_of(ACP_NL_CMD_COLOR_GET, 0, note_color), 1);
	fd = setup_join(&s);
	CHECK(fd >= 0);
	CHECK_EQ(color(ACP_NL_CMD_COLOR_ADD, 1, "fd09::1"), 0);
	CHECK_EQ(color(ACP_NL_CMD_COLOR_DEL, 1, "fd09::2"), -ENOENT);
	CHECK_EQ(color(ACP_NL_CMD_COLOR_DEL, 1, NULL), 0);
	CHECK_EQ(color(ACP_NL_CMD_COLOR_DEL, 0, "10.9.0.1"), 0);
	CHECK_EQ(color(ACP_NL_CMD_COLOR_DEL, 0, NULL), -ENOENT);
	CHECK_EQ(color(ACP_NL_CMD_COLOR_ADD, 4, "10.9.0.1"), -ERANGE);
}

static uint32_t indices[2];

static void note_index(const struct answer *a)
{
	indices[answer_u32(a, ACP_NL_A_COLOR) & 1] = answer_u32(a, ACP_NL_A_IFINDEX);
}

/* An IPv6 address refers to the interface that has it, not to any in the namespace. */
TEST(netlink_colors_name_the_interface_of_an_ipv6_address)
{
	nodes_open(&net, 1, 2, true);
	nodes_enter(&net, 0);
	ask_open(&q);
	CHECK_EQ(color(ACP_NL_CMD_COLOR_ADD, 0, net.address[0]), 0);
	CHECK_EQ(color(ACP_NL_CMD_COLOR_ADD, 1, net.address[1]), 0);
	CHECK_EQ(dump_of(ACP_NL_CMD_COLOR_GET, 0, note_index), 2);
	CHECK(if_nametoindex("eth0") && if_nametoindex("eth1"));
	CHECK_EQ(indices[0], if_nametoindex("eth0"));
	CHECK_EQ(indices[1], if_nametoindex("eth1"));
}

/* ---- malformed requests ---- */

/*
 * Each attribute of requests, for each command, with too few and too many bytes; and unknown ones.
 */
TEST(netlink_malformed_attributes)
{
	static const uint8_t junk[64];
	uint32_t cmd, attr, size, refused = 0;

	begin(10000);
	for (cmd = 1; cmd <= ACP_NL_CMD_MAX + 2; cmd++) {
		for (attr = 0; attr <= ACP_NL_A_SIZE + 3; attr++) {
			for (size = 0; size <= 40; size += size < 10 ? 1 : 15) {
				int err;

				/* Valid, and changes something. */
				if (cmd == ACP_NL_CMD_NODE_SET && attr == ACP_NL_A_ENABLE)
					continue;
				if (attr == ACP_NL_A_NAME || attr == ACP_NL_A_PAD)
					continue;
				ask_begin(&q, (uint8_t)cmd, 0);
				ask_put(&q, (uint16_t)attr, junk, (uint16_t)size);
				err = ask_do(&q, NULL);
				if (err >= 0)
					FAIL("command %u, attribute %u of %u bytes: %d", cmd, attr,
					     size, err);
				refused++;
			}
		}
	}
	CHECK(refused > 1000);
	CHECK_EQ(simple(ACP_NL_CMD_NODE_GET), 0);
}

static int raw_dump(uint8_t cmd, uint16_t attr, uint32_t value)
{
	ask_begin(&q, cmd, NLM_F_DUMP);
	ask_u32(&q, attr, value);
	return ask_dump(&q, NULL);
}

TEST(netlink_malformed_values)
{
	begin(10000);
	CHECK_EQ(of_job(ACP_NL_CMD_JOB_GET, 0), -ERANGE);
	CHECK_EQ(simple(ACP_NL_CMD_JOB_GET), -EINVAL);
	CHECK_EQ(simple(ACP_NL_CMD_PING), -EINVAL);
	CHECK_EQ(simple(ACP_NL_CMD_EVENT), -EOPNOTSUPP);
	CHECK_EQ(raw_dump(ACP_NL_CMD_JOB_GET, ACP_NL_A_GENERATION, 65536), -ERANGE);
	CHECK_EQ(raw_dump(ACP_NL_CMD_JOB_GET, ACP_NL_A_RANK, 0), -EINVAL);
	CHECK_EQ(raw_dump(ACP_NL_CMD_RANK_GET, ACP_NL_A_RANK, 0), -EINVAL);
	ask_begin(&q, ACP_NL_CMD_LIMIT_GET, NLM_F_DUMP);
	ask_text(&q, ACP_NL_A_NAME, "jobs");
	CHECK_EQ(ask_dump(&q, NULL), -EINVAL);
	CHECK_EQ(raw_dump(ACP_NL_CMD_FLOW_GET, ACP_NL_A_COLOR, 4), -ERANGE);
	CHECK_EQ(raw_dump(ACP_NL_CMD_STAT_GET, ACP_NL_A_JOB, job() + 1), -ENOENT);
	CHECK_EQ(color(ACP_NL_CMD_COLOR_ADD, 0, NULL), -EINVAL);
	ask_begin(&q, ACP_NL_CMD_LIMIT_GET, 0);
	ask_put(&q, ACP_NL_A_NAME, "jobs", 4);		/* not terminated */
	CHECK_EQ(ask_do(&q, NULL), -EINVAL);
	ask_begin(&q, ACP_NL_CMD_LIMIT_GET, 0);
	ask_text(&q, ACP_NL_A_NAME, "a name of a limit that is far too long");
	CHECK(ask_do(&q, NULL) < 0);
	ask_begin(&q, ACP_NL_CMD_COLOR_ADD, 0);
	ask_u32(&q, ACP_NL_A_COLOR, 0);
	ask_put(&q, ACP_NL_A_ADDRESS, "sixbytes", 6);
	CHECK_EQ(ask_do(&q, NULL), -EINVAL);
	CHECK(strstr(q.said, "16"));
	/* Bytes after the attributes, and an attribute longer than the message. */
	ask_begin(&q, ACP_NL_CMD_JOB_GET, 0);
	ask_u32(&q, ACP_NL_A_JOB, job());
	((struct nlattr *)(q.request + NLMSG_LENGTH(GENL_HDRLEN)))->nla_len = 200;
	CHECK_EQ(ask_do(&q, NULL), -EINVAL);
}

/* ---- permissions ---- */

static void other_user(void)
{
	become_other();
	CHECK_EQ(simple(ACP_NL_CMD_NODE_GET), 0);
	CHECK(dump_of(ACP_NL_CMD_LIMIT_GET, 0, NULL) > 0);
	CHECK(dump_of(ACP_NL_CMD_STAT_GET, 0, NULL) > 0);
	CHECK_EQ(dump_of(ACP_NL_CMD_COLOR_GET, 0, NULL), 0);
	CHECK_EQ(dump_of(ACP_NL_CMD_JOB_GET, 0, NULL), 0);
	CHECK_EQ(dump_of(ACP_NL_CMD_RANK_GET, 0, NULL), 0);
	CHECK_EQ(dump_of(ACP_NL_CMD_REGION_GET, 0, NULL), 0);
	CHECK_EQ(dump_of(ACP_NL_CMD_FLOW_GET, 0, NULL), 0);
	CHECK_EQ(dump_of(ACP_NL_CMD_STAT_GET, job(), NULL), -ENOENT);
	CHECK_EQ(of_job(ACP_NL_CMD_JOB_GET, job()), -ENOENT);
	CHECK_EQ(of_job(ACP_NL_CMD_JOB_ABORT, job()), -ENOENT);
	CHECK_EQ(of_rank(0), -ENOENT);
	CHECK_EQ(set_node(ACP_NL_A_ENABLE, 0), -EPERM);
	CHECK_EQ(limit_to("jobs", 1), -EPERM);
	CHECK_EQ(color(ACP_NL_CMD_COLOR_ADD, 0, "10.9.0.1"), -EPERM);
	CHECK_EQ(color(ACP_NL_CMD_COLOR_DEL, 0, NULL), -EPERM);
	ask_begin(&q, ACP_NL_CMD_PING, 0);
	ask_u32(&q, ACP_NL_A_JOB, job());
	ask_u32(&q, ACP_NL_A_RANK, 1);
	CHECK_EQ(ask_do(&q, NULL), -ENOENT);
}

TEST(netlink_others_see_nothing_of_a_job)
{
	begin(10000);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 8), ACP_ST_OK);
	in_child(other_user);
	CHECK_EQ(of_job(ACP_NL_CMD_JOB_GET, job()), 0);
	CHECK(!answer_has(&got, ACP_NL_A_ABORTED));
}

/* A socket opened by root does not make its holder root, nor vice versa. */
static void borrowed_socket(void)
{
	CHECK_EQ(setresuid(OTHER, OTHER, OTHER), 0);
	CHECK_EQ(dump_of(ACP_NL_CMD_JOB_GET, 0, NULL), 0);
	CHECK_EQ(set_node(ACP_NL_A_ENABLE, 0), -EPERM);
}

TEST(netlink_a_borrowed_socket_lends_nothing)
{
	begin(10000);
	in_child(borrowed_socket);
}

/* A user sees and ends own jobs, and changes nothing else. */
static void owner(void)
{
	struct acp_wait wait = { .size = sizeof(wait), .ticket = 2, .timeout_ns = 10000 * MS };
	struct setup s;
	int fd;

	CHECK_EQ(setgroups(0, NULL), 0);
	CHECK_EQ(setresgid(OTHER, OTHER, OTHER), 0);
	CHECK_EQ(setresuid(OTHER, OTHER, OTHER), 0);
	ask_open(&q);
	nodes_setup(&net, &s, 0, 1);
	s.join.heap_size = PAGE;
	s.join.starter_size = PAGE;
	fd = setup_join(&s);
	CHECK(fd >= 0);
	CHECK_EQ(dump_of(ACP_NL_CMD_JOB_GET, 0, NULL), 1);
	CHECK_EQ(dump_of(ACP_NL_CMD_RANK_GET, s.join.job, NULL), 1);
	CHECK_EQ(dump_of(ACP_NL_CMD_REGION_GET, s.join.job, NULL), 3);
	CHECK_EQ(limit("user_ranks"), 0);
	CHECK_EQ(answer_u64(&got, ACP_NL_A_USED), 1);
	CHECK_EQ(of_job(ACP_NL_CMD_JOB_GET, s.join.job), 0);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_UID), OTHER);
	CHECK_EQ(of_job(ACP_NL_CMD_JOB_ABORT, s.join.job), 0);
	CHECK_EQ(of_job(ACP_NL_CMD_JOB_GET, s.join.job), 0);
	CHECK_EQ(answer_u32(&got, ACP_NL_A_JOB_STATE), ACP_NL_JOB_ABORTED);
	CHECK_ERRNO(ioctl(fd, ACP_IOC_WAIT, &wait), ECANCELED);
	CHECK_EQ(set_node(ACP_NL_A_ENABLE, 0), -EPERM);
}

TEST(netlink_an_owner_sees_and_ends_his_job)
{
	nodes_open(&net, 1, 1, false);
	nodes_enter(&net, 0);
	CHECK_EQ(chmod("/dev/acp", 0666), 0);
	in_child(owner);
}

TEST(netlink_abort_reaches_other_nodes)
{
	begin(10000);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 8), ACP_ST_OK);
	CHECK_EQ(of_job(ACP_NL_CMD_JOB_ABORT, job()), 0);
	while (!(__atomic_load_n(&r[1].cq->flags, __ATOMIC_ACQUIRE) & ACP_CQ_ABORTED))
		sleep_ms(1);
}
