// SPDX-License-Identifier: MIT
/* Parameters from the launcher: options, environment, nodes, placement, key. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "boot/boot.h"
#include "acp_abi.h"
#include "core/internal.h"
#include "core/job.h"
#include "core/parameters.h"
#include "last_error.h"
#include "test.h"

/* Replaces the function of process.c: nothing here waits. */
uint64_t libacp_now(void)
{
	return 0;
}

void libacp_sleep(uint64_t ns)
{
	(void)ns;
}

static const char *const variables[] = {
	"ACP_RANK", "ACP_NPROCS", "ACP_NODES", "ACP_PLACEMENT", "ACP_JOB", "ACP_KEYFILE",
	"ACP_INSECURE", "ACP_PORT", "ACP_STARTER_SIZE", "ACP_HEAP_SIZE", "ACP_QUEUE_DEPTH",
	"ACP_TIMEOUT", "ACP_INIT_TIMEOUT", "ACP_INTEGRITY", "ACP_PRIVACY", "ACP_MULTIRUN",
	"ACP_PORTFILE", "ACP_OFFSETRANK", "PMIX_NAMESPACE",
};

static void clear_environment(void)
{
	size_t i;

	for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	errors = 0;
	last_error[0] = '\0';
}

/* Load with one variable set, and discard the result. Returns 0 or -1. */
static int load_with(const char *name, const char *value)
{
	struct libacp_boot boot;
	int result;

	clear_environment();
	setenv(name, value, 1);
	result = libacp_boot_load(&boot, NULL, NULL);
	libacp_boot_free(&boot);
	return result;
}

/* True if the value is rejected with one line that names the variable. */
static bool refused(const char *name, const char *value)
{
	return load_with(name, value) == -1 && errors == 1 && strstr(last_error, name);
}

TEST(load__defaults)
{
	struct libacp_boot boot;

	clear_environment();
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0);
	CHECK(boot.rank == 0 && boot.nprocs == 1 && boot.job == 1);
	CHECK(boot.nodes == 1 && boot.colors == 1 && boot.port == 16707);
	CHECK(boot.starter_size == 10240 && boot.heap_size == 1 << 20 && boot.depth == 4096);
	CHECK(boot.timeout_ms == 10000 && boot.init_timeout_ms == 60000);
	CHECK(boot.integrity == ACP_INTEGRITY_TAG && !boot.keyfile && errors == 0);
	CHECK(boot.rank_run_count == 1 && boot.node_run_count == 1);
	CHECK(memcmp(boot.node_runs[0].addr, "\x7f\0\0\1\0\0\0\0\0\0\0\0\0\0\0", 16) == 0);
	CHECK(boot.node_runs[0].family == AF_INET && boot.node_runs[0].count == 1);
	libacp_boot_free(&boot);
}

TEST(load__numbers_are_strict)
{
	static const char *const bad[] = {
		"", " 1", "1 ", "+1", "-1", "0x10", "1.5", "one", "1K1", "99999999999999999999",
	};
	static const char *const names[] = {
		"ACP_RANK", "ACP_NPROCS", "ACP_JOB", "ACP_PORT", "ACP_STARTER_SIZE",
		"ACP_HEAP_SIZE", "ACP_QUEUE_DEPTH", "ACP_TIMEOUT", "ACP_INIT_TIMEOUT",
		"ACP_INSECURE",
	};
	size_t i, j;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (j = 0; j < sizeof(bad) / sizeof(bad[0]); j++)
			CHECK(refused(names[i], bad[j]));
}

TEST(load__ranges)
{
	CHECK(refused("ACP_JOB", "0") && refused("ACP_JOB", "4294967296"));
	CHECK(load_with("ACP_JOB", "4294967295") == 0);
	CHECK(refused("ACP_PORT", "0") && refused("ACP_PORT", "65536"));
	CHECK(refused("ACP_NPROCS", "0") && refused("ACP_NPROCS", "16777216"));
	CHECK(refused("ACP_RANK", "1"));
	CHECK(refused("ACP_QUEUE_DEPTH", "100") && refused("ACP_QUEUE_DEPTH", "32"));
	CHECK(refused("ACP_QUEUE_DEPTH", "131072") && load_with("ACP_QUEUE_DEPTH", "64") == 0);
	CHECK(refused("ACP_TIMEOUT", "9") && refused("ACP_TIMEOUT", "3600001"));
	CHECK(refused("ACP_INSECURE", "2"));
	CHECK(refused("ACP_INTEGRITY", "md5") && refused("ACP_INTEGRITY", ""));
	CHECK(load_with("ACP_INTEGRITY", "crc32c") == 0);
	CHECK(refused("ACP_NPROCS", "2") && strstr(last_error, "ACP_RANK"));
}

/* Return the integrity for two variables (NULL: not set), with or without a key; -1 if rejected. */
static int integrity_of(const char *integrity, const char *privacy, const char *keyfile)
{
	struct libacp_boot boot;
	int result;

	clear_environment();
	if (integrity)
		setenv("ACP_INTEGRITY", integrity, 1);
	if (privacy)
		setenv("ACP_PRIVACY", privacy, 1);
	if (keyfile)
		setenv("ACP_KEYFILE", keyfile, 1);
	result = libacp_boot_load(&boot, NULL, NULL) < 0 ? -1 : (int)boot.integrity;
	CHECK(errors == (result < 0));
	libacp_boot_free(&boot);
	return result;
}

TEST(load__privacy)
{
	CHECK(integrity_of(NULL, "aead", "key") == ACP_INTEGRITY_AEAD);
	CHECK(integrity_of("aead", NULL, "key") == ACP_INTEGRITY_AEAD);
	CHECK(integrity_of("aead", "aead", "key") == ACP_INTEGRITY_AEAD);
	CHECK(integrity_of("crc32c", "none", NULL) == ACP_INTEGRITY_CRC32C);
	CHECK(integrity_of(NULL, "none", NULL) == ACP_INTEGRITY_TAG);
	CHECK(integrity_of("tag", NULL, NULL) == ACP_INTEGRITY_TAG);
	CHECK(integrity_of("udp", NULL, NULL) == ACP_INTEGRITY_UDP);
	CHECK(integrity_of("crc32c", "aead", "key") == -1);
	CHECK(integrity_of("udp", "aead", "key") == -1);
	CHECK(integrity_of("aead", "none", "key") == -1);
	CHECK(refused("ACP_PRIVACY", "md5") && refused("ACP_PRIVACY", ""));
}

/* A well-known key protects nothing, even on a single node. */
TEST(load__privacy_needs_a_key)
{
	struct libacp_boot boot;

	CHECK(integrity_of(NULL, "aead", NULL) == -1 && strstr(last_error, "ACP_KEYFILE"));
	CHECK(integrity_of("aead", NULL, NULL) == -1 && strstr(last_error, "ACP_KEYFILE"));
	clear_environment();
	setenv("ACP_INSECURE", "1", 1);
	setenv("ACP_PRIVACY", "aead", 1);
	CHECK(libacp_boot_load(&boot, NULL, NULL) == -1 && strstr(last_error, "ACP_KEYFILE"));
	libacp_boot_free(&boot);
}

TEST(load__ranges_have_units)
{
	CHECK(refused("ACP_PORT", "http") &&
	      !strcmp(last_error, "ACP_PORT=http: want a port number from 1 to 65535"));
	CHECK(refused("ACP_TIMEOUT", "1s") &&
	      !strcmp(last_error, "ACP_TIMEOUT=1s: want a number from 10 to 3600000 milliseconds"));
	CHECK(refused("ACP_HEAP_SIZE", "big"));
	CHECK(!strcmp(last_error, "ACP_HEAP_SIZE=big: want a number from 0 to 1099511627776 "
				  "bytes (K, M, G allowed)"));
}

/* True if an unknown variable causes a warning, and no error. */
static bool warned(const char *name, const char *text)
{
	int result = load_with(name, "1");

	unsetenv(name);
	return result == 0 && errors == 1 && strcmp(last_error, text) == 0;
}

TEST(load__unknown_variables_are_named_with_the_nearest)
{
	CHECK(warned("ACP_HEAPSIZE",
		     "warning: unknown variable ACP_HEAPSIZE: ACP_HEAP_SIZE was probably meant"));
	CHECK(warned("ACP_KEY_FILE",
		     "warning: unknown variable ACP_KEY_FILE: ACP_KEYFILE was probably meant"));
	CHECK(warned("ACP_INITTIMEOUT",
		     "warning: unknown variable ACP_INITTIMEOUT: ACP_INIT_TIMEOUT was probably "
		     "meant"));
	CHECK(warned("ACP_NODE",
		     "warning: unknown variable ACP_NODE: ACP_NODES was probably meant"));
	CHECK(warned("ACP_Job",
		     "warning: unknown variable ACP_Job: ACP_JOB was probably meant"));
	CHECK(warned("ACP_SOMETHING_ELSE",
		     "warning: unknown variable ACP_SOMETHING_ELSE: acp(7) has the list of those "
		     "that are known"));
}

TEST(load__variables_of_others_are_no_mistakes)
{
	CHECK(load_with("ACP_KERNEL", "6.1") == 0 && errors == 0);
	CHECK(load_with("ACP_TEST_LONG", "1") == 0 && errors == 0);
	CHECK(load_with("ACPFOO", "1") == 0 && errors == 0);
}

/* Other ranks have the same environment, and would repeat the warnings. */
TEST(load__rank_0_warns_alone)
{
	struct libacp_boot boot;

	clear_environment();
	setenv("ACP_HEAPSIZE", "1", 1);
	setenv("ACP_NPROCS", "2", 1);
	setenv("ACP_RANK", "1", 1);
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0 && errors == 0);
	libacp_boot_free(&boot);
}

TEST(load__sizes)
{
	struct libacp_boot boot;

	clear_environment();
	setenv("ACP_STARTER_SIZE", "3k", 1);
	setenv("ACP_HEAP_SIZE", "2G", 1);
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0);
	CHECK(boot.starter_size == 3072 && boot.heap_size == 2147483648u);
	libacp_boot_free(&boot);
	CHECK(refused("ACP_HEAP_SIZE", "1T") && refused("ACP_HEAP_SIZE", "K"));
	CHECK(refused("ACP_HEAP_SIZE", "18446744073709551615G"));
	CHECK(refused("ACP_PORT", "1K"));
}

TEST(options__removed_and_override)
{
	char *argv[18] = {
		"program", "--acp-myrank", "3", "one", "--acp-nprocs=8", "--acp-size-smem", "2048",
		"--acp-size-smem-dl", "4096", "--acp-taskid", "100", "--acp-port-local", "44256",
		"-x", "--acp-queue-depth=128", "--", "two", NULL,
	};
	char **args = argv;
	int argc = sizeof(argv) / sizeof(argv[0]) - 1;
	struct libacp_boot boot;

	clear_environment();
	setenv("ACP_RANK", "0", 1);
	setenv("ACP_NPROCS", "1", 1);
	CHECK(libacp_boot_load(&boot, &argc, &args) == 0);
	CHECK(boot.rank == 3 && boot.nprocs == 8 && boot.job == 100 && boot.depth == 128);
	CHECK(boot.starter_size == 2048 && boot.heap_size == 4096);
	CHECK(argc == 5 && strcmp(argv[0], "program") == 0 && strcmp(argv[1], "one") == 0);
	CHECK(strcmp(argv[2], "-x") == 0 && strcmp(argv[3], "--") == 0);
	CHECK(strcmp(argv[4], "two") == 0 && !argv[5]);
	libacp_boot_free(&boot);
}

TEST(options__bad_ones_are_removed_too)
{
	char *argv[8] = {
		"program", "--acp-nonsense", "1", "a", "--acp-job", "--acp-port=1", "--acp-", NULL,
	};
	char **args = argv;
	int argc = sizeof(argv) / sizeof(argv[0]) - 1;
	struct libacp_boot boot;

	clear_environment();
	CHECK(libacp_boot_load(&boot, &argc, &args) == -1);
	CHECK(errors == 3);	/* unknown option; two missing values */
	CHECK(argc == 2 && strcmp(argv[1], "a") == 0 && !argv[2]);
	libacp_boot_free(&boot);
}

TEST(nodes__consecutive_addresses_are_one_run)
{
	struct libacp_boot boot = { 0 };

	CHECK(libacp_boot_nodes(&boot, "10.0.0.254 10.0.0.255;10.0.1.0\n10.0.1.1+16381") == 0);
	CHECK(boot.nodes == 16384 && boot.colors == 1 && boot.node_run_count == 1);
	CHECK(boot.node_runs[0].first == 0 && boot.node_runs[0].count == 16384);
	libacp_boot_free(&boot);
}

TEST(nodes__colors_are_sorted)
{
	struct libacp_boot boot = { 0 };
	const struct acp_node_run *r;

	CHECK(libacp_boot_nodes(&boot, "10.0.0.9,10.1.0.1 10.0.0.1,10.1.0.2+4") == 0);
	r = boot.node_runs;
	CHECK(boot.nodes == 5 && boot.colors == 2 && boot.node_run_count == 3);
	CHECK(r[0].color == 0 && r[0].first == 0 && r[0].count == 1 && r[0].addr[3] == 9);
	CHECK(r[1].color == 0 && r[1].first == 1 && r[1].count == 4 && r[1].addr[3] == 1);
	CHECK(r[2].color == 1 && r[2].first == 0 && r[2].count == 5 && r[2].addr[3] == 1);
	libacp_boot_free(&boot);
}

TEST(nodes__ipv6)
{
	struct libacp_boot boot = { 0 };
	char text[INET6_ADDRSTRLEN];

	CHECK(libacp_boot_nodes(&boot, "fd00::ffff+2;fd00::1:1") == 0);
	CHECK(boot.nodes == 3 && boot.node_run_count == 1);
	CHECK(boot.node_runs[0].family == AF_INET6 && boot.node_runs[0].count == 3);
	inet_ntop(AF_INET6, boot.node_runs[0].addr, text, sizeof(text));
	CHECK(strcmp(text, "fd00::ffff") == 0);
	libacp_boot_free(&boot);
}

TEST(nodes__malformed)
{
	static const char *const bad[] = {
		"", " ; ", "localhost", "10.0.0", "10.0.0.1.", "10.0.0.256", "10.0.0.1+",
		"10.0.0.1+0", "10.0.0.1+x", "10.0.0.1+1x", "10.0.0.1+99999999999999999999",
		"10.0.0.1+16777216", ",", "10.0.0.1,", ",10.0.0.1",
		"10.0.0.1,10.0.1.1,10.0.2.1,10.0.3.1,10.0.4.1",
		"10.0.0.1 10.0.0.2,10.1.0.2", "10.0.0.1 fd00::1", "10.0.0.1,fd00::1",
		"10.0.0.1 10.0.0.1", "10.0.0.1+5 10.0.0.3", "255.255.255.255+2",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff+2", "10.0.0.1+2,10.1.0.1+3",
		"@/nonexistent", "@", "@/dev",
		"10.0.0.1+9000000 11.0.0.1+9000000",
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!refused("ACP_NODES", bad[i]))
			FAIL("not refused as it should be: '%s'", bad[i]);
}

TEST(nodes__E1_link_local_with_a_card)
{
	struct libacp_boot boot = { 0 };
	const struct acp_node_run *runs;
	char *text;

	CHECK(libacp_boot_nodes(&boot, "fe80::1%eth0,fd00::1 fe80::2%eth0,fd00::2 "
				"fe80::3%ib0,fd00::3+2") == 0);
	runs = boot.node_runs;
	CHECK(boot.nodes == 4 && boot.colors == 2 && boot.node_run_count == 3);
	CHECK(boot.cards.count == 2 && strcmp(boot.cards.card[1].name, "ib0") == 0);
	CHECK(runs[0].scope == 1 && runs[0].first == 0 && runs[0].count == 2);
	CHECK(runs[1].scope == 2 && runs[1].first == 2 && runs[1].count == 2);
	CHECK(runs[2].scope == 0 && runs[2].count == 4 && runs[2].color == 1);
	text = libacp_node_text(&boot, 3);
	CHECK(strcmp(text, "fe80::4%ib0,fd00::4") == 0);
	free(text);
	libacp_boot_free(&boot);
}

TEST(nodes__E1_card_or_name)
{
	CHECK(!libacp_nodes_are_names("fe80::1%eth0 fe80::2%eth0"));
	CHECK(!libacp_nodes_are_names("10.0.0.1,fe80::1%eth0+4;fe80::9%eth0"));
	CHECK(libacp_nodes_are_names("%"));
	CHECK(libacp_nodes_are_names("%,%-b"));
	CHECK(libacp_nodes_are_names("node-%.example.org"));
	CHECK(libacp_nodes_are_names("fe80::1%eth0,%"));
}

/* Each address that cannot be that of a node is rejected with its reason, compared word by word. */
TEST(nodes__E1_addresses_of_no_node)
{
	static const struct {
		const char *nodes, *line;
	} bad[] = {
		{ "fe80::1", "ACP_NODES: fe80::1 is a link-local address, which is ambiguous "
		  "without its interface: write fe80::1%CARD, for example fe80::1%eth0" },
		{ "fd00::1%eth0", "ACP_NODES: fd00::1: a card, behind a '%', is for link-local "
		  "addresses (fe80::...) only" },
		{ "10.0.0.1%eth0", "ACP_NODES: 10.0.0.1: a card, behind a '%', is for link-local "
		  "addresses (fe80::...) only" },
		{ "0.0.0.0", "ACP_NODES: 0.0.0.0 is not the address of one machine" },
		{ "10.0.0.1 224.0.0.1", "ACP_NODES: 224.0.0.1 is not the address of one machine" },
		{ "255.255.255.255", "ACP_NODES: 255.255.255.255 is not the address of one "
		  "machine" },
		{ "::", "ACP_NODES: :: is not the address of one machine" },
		{ "ff02::1", "ACP_NODES: ff02::1 is not the address of one machine" },
		{ "::ffff:10.0.0.1", "ACP_NODES: ::ffff:10.0.0.1 is an IPv4 address: write "
		  "10.0.0.1" },
		{ "fe80::1%eth0 fe80::1%eth1", "ACP_NODES: address fe80::1 stands for two nodes" },
		{ "fe80::1%", "ACP_NODES: malformed node 'fe80::1%'" },
		{ "fe80::1%a/b", "ACP_NODES: malformed node 'fe80::1%a/b'" },
		{ "fe80::1%sixteencharacters", "ACP_NODES: malformed node "
		  "'fe80::1%sixteencharacters'" },
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (!refused("ACP_NODES", bad[i].nodes))
			FAIL("not refused as it should be: '%s'", bad[i].nodes);
		if (strcmp(last_error, bad[i].line) != 0)
			FAIL("'%s' is refused with '%.300s'", bad[i].nodes, last_error);
	}
}

/* Load these nodes for a job with as many ranks, as node 0. */
static int check_nodes(struct libacp_boot *boot, const char *nodes)
{
	clear_environment();
	*boot = (struct libacp_boot){ 0 };
	CHECK(libacp_boot_nodes(boot, nodes) == 0);
	return libacp_addresses_check(boot, 0);
}

TEST(addresses__E1_loopback_of_several_nodes)
{
	struct libacp_boot boot;

	CHECK(check_nodes(&boot, "10.0.0.1 127.0.0.1") == -1);
	CHECK(strcmp(last_error, "ACP_NODES: node 1 of 2 has the loopback address 127.0.0.1, which "
		     "means each machine itself: write the address that the other nodes reach it "
		     "by") == 0);
	libacp_boot_free(&boot);
	CHECK(check_nodes(&boot, "126.255.255.255+3") == -1 && errors == 1);
	libacp_boot_free(&boot);
	CHECK(check_nodes(&boot, "::1 fd00::1") == -1);
	CHECK(strstr(last_error, "node 0 of 2 has the loopback address ::1, "));
	libacp_boot_free(&boot);
	CHECK(check_nodes(&boot, "10.0.0.1+1000 128.0.0.1") == 0 && errors == 0);
	libacp_boot_free(&boot);
	CHECK(check_nodes(&boot, "127.0.0.1") == 0 && errors == 0);
	libacp_boot_free(&boot);
}

TEST(addresses__E1_card_that_is_not_there)
{
	struct libacp_boot boot;
	struct acp_node_run *runs;

	CHECK(check_nodes(&boot, "fe80::1%nonesuch0 fe80::2%lo") == 0);
	CHECK(!libacp_addresses_scoped(&boot, 0));
	CHECK(strcmp(last_error, "ACP_NODES: this machine, which is node 0, has no card nonesuch0: "
		     "see 'ip link'") == 0);
	/* Devices of other nodes are not checked. */
	runs = libacp_addresses_scoped(&boot, 1);
	CHECK(runs && errors == 1 && !runs[0].scope && runs[1].scope);
	free(runs);
	libacp_boot_free(&boot);
}

static bool write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	size_t length = strlen(text);
	bool good = fd >= 0 && write(fd, text, length) == (ssize_t)length && fchmod(fd, mode) == 0;

	if (fd >= 0)
		close(fd);
	return good;
}

TEST(nodes__file)
{
	struct libacp_boot boot = { 0 };
	char path[] = "/tmp/test_lib_boot.XXXXXX", at[64];
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	snprintf(at, sizeof(at), "@%s", path);
	CHECK(write_file(path, "# two racks\n10.0.0.1+16 # one\n\n10.0.1.1+16\r\n", 0644));
	CHECK(libacp_boot_nodes(&boot, at) == 0);
	CHECK(boot.nodes == 32 && boot.node_run_count == 2);
	libacp_boot_free(&boot);
	unlink(path);
}

/* Place nprocs ranks on nodes; the caller frees boot. */
static int place(struct libacp_boot *boot, uint32_t nprocs, uint32_t nodes, const char *text)
{
	clear_environment();
	*boot = (struct libacp_boot){ .nprocs = nprocs, .nodes = nodes };
	return libacp_boot_placement(boot, text);
}

/* Compare the node of each rank with a string of digits. */
static bool placed(uint32_t nprocs, uint32_t nodes, const char *text, const char *expected)
{
	struct libacp_boot boot;
	bool good = place(&boot, nprocs, nodes, text) == 0;
	uint32_t i;

	for (i = 0; good && i < nprocs; i++)
		good = libacp_boot_node_of(&boot, i) == (uint32_t)(expected[i] - '0');
	libacp_boot_free(&boot);
	return good;
}

static bool misplaced(uint32_t nprocs, uint32_t nodes, const char *text)
{
	struct libacp_boot boot;
	bool good = place(&boot, nprocs, nodes, text) == -1 && errors == 1;

	libacp_boot_free(&boot);
	return good;
}

TEST(placement__patterns)
{
	CHECK(placed(8, 2, "block", "00001111"));
	CHECK(placed(7, 3, "block", "0001112"));
	CHECK(placed(3, 5, "block", "012"));
	CHECK(placed(7, 4, "block:3", "0001112"));
	CHECK(placed(7, 3, "cyclic", "0120120"));
	CHECK(placed(2, 9, "cyclic", "01"));
	CHECK(placed(8, 4, "0+4@2/2/2,4+3@0/3,7+1@3", "22330123"));
	CHECK(placed(6, 2, "0+6@0/2/2", "001100"));
}

TEST(placement__mistakes)
{
	static const char *const bad[] = {
		"", "blocks", "block:", "block:0", "block:x", "block:1", "block:2 ", "cyclic2",
		"0+4@0", "0+9@0", "1+7@0", "0+4@0,5+3@0", "0+4@0,3+5@0", "0+8@2", "0+8@1/2",
		"0+8@0/0", "0+8@0/1/0", "0+0@0,0+8@0", "0+8", "0+8@", "0+8@0,", "0+8@0x",
		"0+8@0/1/1/1", "-1+9@0", "0+8@99999999999",
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!misplaced(8, 2, bad[i]))
			FAIL("not refused as it should be: '%s'", bad[i]);
}

static bool nodes_left(const char *nodes, uint32_t nprocs, const char *placement, uint32_t expected)
{
	struct libacp_boot boot = { .nprocs = nprocs };
	bool good = libacp_boot_nodes(&boot, nodes) == 0 &&
		    libacp_boot_placement(&boot, placement) == 0 && boot.nodes == expected;
	uint32_t i, seen = 0;

	for (i = 0; good && i < boot.node_run_count; i++)
		seen += boot.node_runs[i].count;
	good = good && seen == expected * boot.colors;
	libacp_boot_free(&boot);
	return good;
}

TEST(placement__drops_unused_nodes)
{
	CHECK(nodes_left("10.0.0.1+8", 4, "block", 4));
	CHECK(nodes_left("10.0.0.1+8", 9, "block", 5));
	CHECK(nodes_left("10.0.0.1,10.1.0.1 10.9.0.1,10.8.0.1+7", 5, "cyclic", 5));
	CHECK(nodes_left("10.0.0.1,10.1.0.1 10.9.0.1,10.8.0.1+7", 8, "block:8", 1));
	CHECK(nodes_left("10.0.0.1+8", 4, "0+4@0/8/2", 2));
	CHECK(misplaced(8, 3, "0+4@0,4+4@2") && strstr(last_error, "node 1"));
	CHECK(misplaced(8, 3, "0+8@1/2"));
}

TEST(placement__a_million_ranks_is_one_run)
{
	struct libacp_boot boot;

	CHECK(place(&boot, 1048576, 16384, "block") == 0);
	CHECK(boot.rank_run_count == 1 && libacp_boot_node_of(&boot, 1048575) == 16383);
	libacp_boot_free(&boot);
	CHECK(place(&boot, 16777215, 16777215, "cyclic") == 0);
	CHECK(libacp_boot_node_of(&boot, 16777214) == 16777214);
	libacp_boot_free(&boot);
}

/* Encode nodes as runs, decode them and compare. */
static bool encodes(const uint32_t *nodes, uint32_t count, uint32_t expected_runs)
{
	struct acp_rank_run *runs = calloc(count, sizeof(*runs));
	struct libacp_boot boot = { .rank_runs = runs };
	bool good;
	uint32_t i;

	boot.rank_run_count = libacp_boot_encode(nodes, count, runs, count);
	good = boot.rank_run_count == expected_runs || !expected_runs;
	good = good && boot.rank_run_count > 0;
	for (i = 0; good && i < count; i++)
		good = libacp_boot_node_of(&boot, i) == nodes[i];
	free(runs);
	return good;
}

TEST(encode__known)
{
	static const uint32_t block[] = { 0, 0, 0, 1, 1, 1, 2 };
	static const uint32_t cyclic[] = { 0, 1, 2, 0, 1, 2, 0 };
	static const uint32_t pairs[] = { 3, 3, 4, 4, 3, 3, 4, 4, 3 };
	static const uint32_t swapped[] = { 1, 0 };
	static const uint32_t same[] = { 5, 5, 5, 5 };
	struct acp_rank_run runs[1];

	CHECK(encodes(block, 7, 1));
	CHECK(encodes(cyclic, 7, 1));
	CHECK(encodes(pairs, 9, 1));
	CHECK(encodes(swapped, 2, 2));
	CHECK(encodes(same, 4, 1));
	CHECK(libacp_boot_encode(swapped, 2, runs, 1) == 0);
}

TEST(encode__random)
{
	uint32_t nodes[200], seed, i, count, state;

	for (seed = 1; seed <= 20000; seed++) {
		state = seed;
		count = 1 + seed % 200;
		for (i = 0; i < count; i++) {
			state = state * 1664525 + 1013904223;
			if (i && state >> 30)
				nodes[i] = nodes[i - 1] + (state >> 29 & 1);
			else
				nodes[i] = (state >> 20) % 4;
		}
		if (!encodes(nodes, count, 0))
			FAIL("seed %u", seed);
	}
}

static const char hex_key[] = "000102030405060708090a0b0c0d0eFF";

/* Read a key file with this content and mode. */
static int key_from(const char *text, mode_t mode, uint8_t key[16])
{
	char path[] = "/tmp/test_lib_boot.XXXXXX";
	struct libacp_boot boot = { .keyfile = path };
	int fd = mkstemp(path), result = -2;

	if (fd >= 0)
		close(fd);
	clear_environment();
	if (write_file(path, text, mode))
		result = libacp_boot_key(&boot, key);
	unlink(path);
	return result;
}

TEST(key__content)
{
	char text[128];
	uint8_t key[16];
	int i;

	CHECK(key_from(hex_key, 0600, key) == 0);
	for (i = 0; i < 15; i++)
		CHECK(key[i] == i);
	CHECK(key[15] == 0xff);
	snprintf(text, sizeof(text), "%s\n", hex_key);
	CHECK(key_from(text, 0400, key) == 0);
	CHECK(key_from("", 0600, key) == -1);
	CHECK(key_from(hex_key + 1, 0600, key) == -1);
	snprintf(text, sizeof(text), "%s0", hex_key);
	CHECK(key_from(text, 0600, key) == -1 && errors == 1);
	snprintf(text, sizeof(text), "x%s", hex_key + 1);
	CHECK(key_from(text, 0600, key) == -1);
	snprintf(text, sizeof(text), "%s%80s", hex_key, "");
	CHECK(key_from(text, 0600, key) == -1);
}

TEST(key__modes)
{
	uint8_t key[16];
	mode_t bit;

	for (bit = 1; bit <= 040; bit <<= 1)
		CHECK(key_from(hex_key, 0600 | bit, key) == -1 && errors == 1);
	CHECK(key_from(hex_key, 0700, key) == 0);
}

TEST(key__not_a_file)
{
	struct libacp_boot boot = { .keyfile = "/dev" };
	uint8_t key[16];

	clear_environment();
	CHECK(libacp_boot_key(&boot, key) == -1);
	boot.keyfile = "/dev/null";
	CHECK(libacp_boot_key(&boot, key) == -1);
	boot.keyfile = "/nonexistent";
	CHECK(libacp_boot_key(&boot, key) == -1 && errors == 3);
}

TEST(key__needed_over_several_nodes)
{
	struct libacp_boot boot;

	clear_environment();
	setenv("ACP_NODES", "10.0.0.1+2", 1);
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0);	/* one rank is on one node */
	libacp_boot_free(&boot);
	setenv("ACP_NPROCS", "2", 1);
	setenv("ACP_RANK", "0", 1);
	CHECK(libacp_boot_load(&boot, NULL, NULL) == -1 && errors == 1);
	libacp_boot_free(&boot);
	setenv("ACP_INSECURE", "0", 1);
	CHECK(libacp_boot_load(&boot, NULL, NULL) == -1);
	libacp_boot_free(&boot);
	errors = 0;
	setenv("ACP_INSECURE", "1", 1);
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0 && errors == 1);
	CHECK(strstr(last_error, "warning"));
	libacp_boot_free(&boot);
	errors = 0;
	setenv("ACP_KEYFILE", "somewhere", 1);
	CHECK(libacp_boot_load(&boot, NULL, NULL) == 0 && errors == 0);
	CHECK(strcmp(boot.keyfile, "somewhere") == 0);
	libacp_boot_free(&boot);
}

TEST_MAIN
