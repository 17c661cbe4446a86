// SPDX-License-Identifier: MIT
/* selftest: cpus=2 leaks */
/*
 * K5, K6: the module is loaded and removed at critical moments, with bad parameters, while network
 * namespaces end, and without IPv6.
 */
#include "isolated.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include "../net/nodes.h"
#include "reload.h"

static void works(void)
{
	struct rank r;

	rank_open_local(&r, 1);
	rank_works(&r);
	rank_close(&r);
}

/* ---- K5 ---- */

TEST(K5_unload_while_in_use)
{
	struct memory m;
	struct rank r;
	void *p;
	int fd;

	fd = device_open();
	CHECK_EQ(module_unload(), -EWOULDBLOCK);
	close(fd);
	rank_open_local(&r, 1);
	memory_open(&r, &m, PAGE);
	CHECK_EQ(module_unload(), -EWOULDBLOCK);
	p = r.heap;
	close(r.fd);
	CHECK_EQ(module_unload(), -EWOULDBLOCK);	/* the mappings remain */
	CHECK_EQ(munmap(r.sq, r.join.sq_bytes), 0);
	CHECK_EQ(munmap((void *)r.cq, r.join.cq_bytes), 0);
	CHECK_EQ(munmap(r.starter, r.join.starter_size), 0);
	CHECK_EQ(module_unload(), -EWOULDBLOCK);
	CHECK_EQ(munmap(p, r.join.heap_size), 0);
	module_unload_soon();
	CHECK(!module_loaded());
	CHECK(access(ACP_DEVICE, F_OK) != 0);
	CHECK_EQ(module_load(""), 0);
	works();
}

TEST(K5_load_twice)
{
	CHECK_EQ(module_load(""), -EEXIST);
	works();
}

TEST(K5_load_unload_many_times)
{
	int i;

	for (i = 0; i < 20; i++) {
		module_unload_soon();
		CHECK_EQ(module_load(""), 0);
	}
	works();
}

TEST(K5_bad_parameters)
{
	static const char *const bad[] = {
		"enable=perhaps", "enable=2x", "poll_us=many", "poll_us=-1", "poll_us=99999999999",
		"poll_us=", "user_ranks=-1", "user_ranks=16777216", "user_jobs=many", "depth=63",
		"depth=65537", "jobs=1048577", "user_regions=1073741825", "job_peers=67108861",
		"user_memory=18446744073709551615",
	};
	size_t i;

	module_unload_soon();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int error = module_load(bad[i]);

		if (!error)
			FAIL("loaded with %s", bad[i]);
		CHECK(!module_loaded());
		CHECK(access(ACP_DEVICE, F_OK) != 0);
	}
	CHECK_EQ(module_load("enable=0"), 0);
	CHECK_EQ(access(ACP_DEVICE, F_OK), 0);
	module_unload_soon();
	CHECK_EQ(module_load("poll_us=0"), 0);
	works();
	module_unload_soon();
	CHECK_EQ(module_load(""), 0);
	works();
}

/* They limit the machine, and are the initial values of namespaces. */
TEST(K5_parameters_that_are_limits)
{
	struct setup s;

	module_unload_soon();
	CHECK_EQ(module_load("user_ranks=0 depth=128 user_memory=5000 job_peers=7"), 0);
	setup_local(&s, 0, 1);
	CHECK_EQ(setup_join(&s), -EDQUOT);
	CHECK_EQ(limit_get("user_ranks"), 0);
	limit_set("user_ranks", 1);
	works();
	CHECK_EQ(unshare(CLONE_NEWNET), 0);
	CHECK_EQ(limit_get("enable"), 1);
	CHECK_EQ(limit_get("user_ranks"), 1);
	CHECK_EQ(limit_get("depth"), 128);
	CHECK_EQ(limit_get("user_memory"), 5000);
	CHECK_EQ(limit_get("job_peers"), 7);
	module_unload_soon();
	CHECK_EQ(module_load(""), 0);
	CHECK(limit_get("user_ranks") > 1000);
	CHECK(limit_get("user_memory") > 100000);
}

/* ---- Ending namespaces ---- */

/* A rank on each of two nodes, in namespaces that are kept only by the open files. */
static void two_nodes(struct nodes *n, struct rank *r)
{
	nodes_open(n, 2, 1, false);
	nodes_ranks(n, r, 2);
	close(n->node[0]);
	close(n->node[1]);
}

/* Endless traffic in both directions. Writes a byte to @ready once it flows. */
static void endless_traffic(int ready)
{
	struct memory m[2];
	struct rank r[2];
	struct nodes n;

	two_nodes(&n, r);
	memory_open(&r[0], &m[0], 1 << 20);
	memory_open(&r[1], &m[1], 1 << 20);
	CHECK_EQ(rank_do_copy(&r[0], memory_ga(&m[1], 0), memory_ga(&m[0], 0), 100), ACP_ST_OK);
	CHECK_EQ(write(ready, "", 1), 1);
	for (;;) {
		rank_copy(&r[0], memory_ga(&m[1], 0), memory_ga(&m[0], 0), 100000, 0);
		rank_copy(&r[1], heap_ga(&r[1], 0), memory_ga(&m[0], 0), 50000, 0);
		rank_atomic(&r[1], ACP_OP_ADD8, heap_ga(&r[1], 0), heap_ga(&r[0], 0), 1, 0, 0);
	}
}

/* A process with endless traffic, killed @ms milliseconds after its start. */
static void kill_in_traffic(unsigned int ms)
{
	int ready[2];
	pid_t child;
	char byte;

	CHECK_EQ(pipe(ready), 0);
	child = fork();
	if (!child)
		endless_traffic(ready[1]);
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	sleep_ms(ms);
	CHECK_EQ(kill(child, SIGKILL), 0);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	close(ready[0]);
	close(ready[1]);
}

TEST_LONG(K5_unload_right_after_close_in_traffic, PATIENCE_LONG_TEST)
{
	uint32_t i, rounds = test_short() ? 4 : 12;

	for (i = 1; i <= rounds; i++) {
		kill_in_traffic(i * 7 % 40);
		module_unload_soon();
		CHECK_EQ(module_load(""), 0);
	}
	works();
}

TEST(K5_namespace_ends_with_its_job)
{
	uint32_t i, rounds = test_short() ? 3 : 8;

	for (i = 1; i <= rounds; i++)
		kill_in_traffic(i * 7 % 40);
	sleep_ms(500);
	works();
}

/* Only the open files keep the namespaces. */
TEST(K5_namespace_without_processes)
{
	struct rank r[2];
	struct nodes n;

	two_nodes(&n, r);
	fill(r[0].heap, 1000, 3);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 1000), ACP_ST_OK);
	CHECK(filled(r[1].heap, 1000, 3));
	rank_close(&r[0]);
	rank_close(&r[1]);
	works();
}

/* The namespaces end while their jobs linger, and the module is removed at once. */
TEST(K5_unload_while_namespaces_end)
{
	uint32_t i, rounds = test_short() ? 3 : 8;

	for (i = 1; i <= rounds; i++) {
		struct rank r[2];
		struct nodes n;

		two_nodes(&n, r);
		rank_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 60000, 0);
		rank_close(&r[0]);
		rank_close(&r[1]);
		close(n.hub);
		module_unload_soon();
		CHECK_EQ(module_load(""), 0);
	}
	works();
}

/* Namespaces are created and deleted while the module is loaded and removed. */
TEST(K5_load_unload_and_namespaces)
{
	pid_t child = fork();
	uint64_t end = in_ms(3000);

	if (!child) {
		while (now_ns() < end)
			CHECK_EQ(unshare(CLONE_NEWNET), 0);
		_exit(0);
	}
	while (now_ns() < end) {
		module_unload_soon();
		CHECK_EQ(module_load(""), 0);
	}
	CHECK_EQ(waitpid(child, NULL, 0), child);
	works();
}

static void open_and_join(uint64_t end)
{
	while (now_ns() < end) {
		int fd = open(ACP_DEVICE, O_RDWR | O_CLOEXEC);
		struct setup s;

		if (fd < 0)
			continue;
		setup_local(&s, 0, 1);
		if (ioctl(fd, ACP_IOC_JOIN, &s.join) == 0)
			ioctl(fd, ACP_IOC_DOORBELL);
		close(fd);
	}
	_exit(0);
}

/* A process keeps opening the device while the module is loaded and removed. */
TEST(K5_load_unload_and_open)
{
	uint64_t end = in_ms(4000);
	pid_t child[3];
	int i;

	for (i = 0; i < 3; i++) {
		child[i] = fork();
		if (!child[i])
			open_and_join(end);
	}
	while (now_ns() < end)
		if (module_unload() == 0)
			CHECK_EQ(module_load(""), 0);
	for (i = 0; i < 3; i++)
		CHECK_EQ(waitpid(child[i], NULL, 0), child[i]);
	module_unload_soon();
	CHECK_EQ(module_load(""), 0);
	works();
}

/* ---- K6 ---- */

static void run(const char *command)
{
	if (system(command))
		FAIL("%s: failed", command);
}

TEST(K6_without_ipv6_addresses)
{
	static const char *const six[] = { "::1", NULL };
	struct setup s;
	struct rank r;

	CHECK_EQ(unshare(CLONE_NEWNET), 0);
	run("echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6");
	run("ip link set lo up");
	setup_nodes(&s, 0, 1, 1, six);
	CHECK_EQ(setup_join(&s), -EADDRNOTAVAIL);
	works();
	run("echo 0 >/proc/sys/net/ipv6/conf/all/disable_ipv6");
	run("echo 0 >/proc/sys/net/ipv6/conf/lo/disable_ipv6");
	run("ip addr replace ::1/128 dev lo");
	rank_open(&r, &s);
}

/* An address that is missing at first, then present, then removed while the job uses it. */
TEST(K6_address_comes_and_goes)
{
	static const char *const address[] = { "10.77.0.1", NULL };
	struct setup s;
	struct rank r;

	CHECK_EQ(unshare(CLONE_NEWNET), 0);
	run("ip link set lo up");
	setup_nodes(&s, 0, 1, 1, address);
	CHECK_EQ(setup_join(&s), -EADDRNOTAVAIL);
	run("ip addr add 10.77.0.1/32 dev lo");
	rank_open(&r, &s);
	run("ip addr del 10.77.0.1/32 dev lo");
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 8), heap_ga(&r, 0), 8), ACP_ST_OK);
	rank_close(&r);
}

static void set_modprobe(const char *path)
{
	FILE *f = fopen("/proc/sys/kernel/modprobe", "w");

	CHECK(f);
	CHECK(fprintf(f, "%s", path) > 0);
	CHECK_EQ(fclose(f), 0);
}

/* Only encrypted jobs need the cipher, and only they load it. */
TEST(K6_without_the_cipher)
{
	struct setup s;
	int found;

	module_unload_soon();		/* a loaded module would keep the cipher it found */
	found = system("modprobe -r chacha20poly1305 2>/dev/null");
	CHECK_EQ(module_load(""), 0);
	works();
	if (found)
		SKIP("it is part of the kernel");
	CHECK(access("/sys/module/chacha20poly1305", F_OK) != 0);
	setup_local(&s, 0, 1);
	s.join.integrity = ACP_INTEGRITY_AEAD;
	set_modprobe("/bin/false");
	found = setup_join(&s);
	set_modprobe("/sbin/modprobe");
	CHECK_EQ(found, -EOPNOTSUPP);
	works();
	found = setup_join(&s);
	CHECK(found >= 0);
	close(found);
	CHECK(access("/sys/module/chacha20poly1305", F_OK) == 0);
}

/* The following tests need the module, whatever its state here. */
TEST(loaded_at_the_end)
{
	if (module_loaded())
		module_unload_soon();
	CHECK_EQ(module_load(""), 0);
	works();
}
