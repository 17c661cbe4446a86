// SPDX-License-Identifier: MIT
/*
 * Error messages of jobs that do not start, or fail: lines on standard error, compared word by
 * word, of four ranks on two nodes (10.9.0.1, 10.9.0.2).
 */
#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <regex.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "members.h"

#define RANKS		4
#define PER_NODE	2
#define ENDED		255	/* exit status of ranks that the library ends */

static struct members m;

/* True if a rank printed a line that matches this extended regular expression. */
static bool said_line(int rank, const char *pattern)
{
	char whole[1000], line[1000];
	bool found = false;
	regex_t r;

	snprintf(whole, sizeof(whole), "^%s\n$", pattern);
	CHECK(!regcomp(&r, whole, REG_EXTENDED | REG_NOSUB));
	rewind(m.errors[rank]);
	while (!found && fgets(line, sizeof(line), m.errors[rank]))
		found = !regexec(&r, line, 0, NULL, 0);
	regfree(&r);
	return found;
}

static void check_line(int rank, const char *pattern)
{
	if (!said_line(rank, pattern))
		FAIL("rank %d did not say: %s", rank, pattern);
}

static void init_fails(void)
{
	CHECK_EQ(acp_init(NULL, NULL), -1);
}

/* ---- Ranks that are missing ---- */

TEST(P7_one_rank_does_not_come)
{
	static const int started[] = { 0, 1, 3 };
	int i;

	setenv("ACP_INIT_TIMEOUT", "1500", 1);
	members_open(&m, RANKS, PER_NODE);
	for (i = 0; i < 3; i++)
		members_start(&m, started[i], init_fails);
	for (i = 0; i < 3; i++)
		CHECK_EQ(members_wait(&m, started[i]), 0);
	check_line(0, "acp: rank 0: not all 4 ranks came within 1500 ms \\(ACP_INIT_TIMEOUT\\): "
		      "rank 2 did not: was it started\\?");
	/* Slightly later ranks may detect that the first one has given up. */
	for (i = 1; i < 3; i++)
		CHECK(said_line(started[i], "acp: rank [13]: not all 4 ranks came .*: rank 2 did "
					    "not: was it started\\?") ||
		      said_line(started[i], "acp: rank [13]: rank.* left before all 4 ranks had "
					    "joined: .*"));
}

TEST(P7_one_node_does_not_come)
{
	int r;

	setenv("ACP_INIT_TIMEOUT", "1500", 1);
	members_open(&m, RANKS, PER_NODE);
	for (r = 0; r < PER_NODE; r++)
		members_start(&m, r, init_fails);
	for (r = 0; r < PER_NODE; r++)
		CHECK_EQ(members_wait(&m, r), 0);
	check_line(0, "acp: rank 0: not all 4 ranks came within 1500 ms \\(ACP_INIT_TIMEOUT\\): "
		      "ranks 2 and 3 did not: node 1 \\(10\\.9\\.0\\.2\\) does not answer: was the "
		      "job started there, and is UDP port 16707 open between the nodes\\?");
}

#define KEPT		(11 * PATIENCE_S / 2)	/* entries younger than 5 s are kept */

static bool ipv6;
static const char *no_room_line;

static void set_neighbours_of(const char *family, const char *name, const char *value)
{
	char path[100];

	snprintf(path, sizeof(path), "/proc/sys/net/%s/neigh/default/%s", family, name);
	CHECK(write_file(path, value));
}

/* The neighbour tables of the machine take no entry, or as many as usual. */
static void set_neighbours(bool none)
{
	static const char *const families[] = { "ipv4", "ipv6" };
	int i;

	for (i = 0; i < 2; i++) {
		set_neighbours_of(families[i], "gc_thresh2", none ? "0" : "512");
		set_neighbours_of(families[i], "gc_thresh3", none ? "0" : "1024");
	}
}

static int open_socket(int family)
{
	int fd;

	nodes_enter(&m.nodes, 0);
	fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	nodes_leave(&m.nodes);
	CHECK(fd >= 0);
	return fd;
}

/* Send a datagram to another address of node 0's network each time: 0, or the error. */
static int send_to_ipv4(unsigned int number)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	int fd = open_socket(AF_INET), error = 0, on = 1;

	to.sin_addr.s_addr = htonl(0x0a090064 + number);
	/* Without this option the error is not reported. */
	CHECK_EQ(setsockopt(fd, SOL_IP, IP_RECVERR, &on, sizeof(on)), 0);
	if (sendto(fd, "", 1, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		error = errno;
	close(fd);
	return error;
}

static int send_to_ipv6(unsigned int number)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
	int fd = open_socket(AF_INET6), error = 0;

	CHECK_EQ(inet_pton(AF_INET6, "fd09::", &to.sin6_addr), 1);
	to.sin6_addr.s6_addr[15] = (uint8_t)(100 + number);
	if (sendto(fd, "", 1, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		error = errno;
	close(fd);
	return error;
}

/* Is there room in the table for the neighbour of another address? */
static bool neighbour_fits(void)
{
	static unsigned int last;
	int error = ipv6 ? send_to_ipv6(last++ % 100) : send_to_ipv4(last++ % 100);

	CHECK(!error || error == (ipv6 ? EINVAL : ENOBUFS));
	return !error;
}

/*
 * Wait until there is no room in the table, and no entry of former tests whose end would make some:
 * for as long as the youngest of them is kept.
 */
static void fill_neighbours(void)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	uint64_t full = now_ns();

	while (now_ns() < full + KEPT) {
		CHECK(!patience_over(&p));
		if (neighbour_fits()) {
			nodes_run(&m.nodes, 0, "ip %s neighbour flush dev eth0", ipv6 ? "-6" : "");
			full = now_ns();
		}
		sleep_ms(20);
	}
}

static void no_room_for_neighbours(void)
{
	fill_neighbours();
	members_start_all(&m, init_fails);
	members_expect(&m, 0);
	check_line(0, no_room_line);
}

/* A machine with more nodes than its neighbour table takes blamed the other node. */
static void no_room(const char *line)
{
	int status;

	no_room_line = line;
	setenv("ACP_INIT_TIMEOUT", "1500", 1);
	set_neighbours(true);
	status = child_status(no_room_for_neighbours);
	set_neighbours(false);
	CHECK_EQ(status, 0);
}

TEST(P7_no_room_in_the_neighbour_table)
{
	members_open(&m, RANKS, PER_NODE);
	no_room("acp: rank 0: not all 4 ranks came within 1500 ms \\(ACP_INIT_TIMEOUT\\): "
		"ranks 2 and 3 did not: node 1 \\(10\\.9\\.0\\.2\\) does not answer, but "
		"[1-9][0-9]* frames? had no room in the neighbour table "
		"\\(sysctl net\\.ipv4\\.neigh\\.default\\.gc_thresh3 or net\\.ipv6\\.\\.\\.\\): "
		"'acp check' tells more");
}

TEST(P7_no_room_in_the_neighbour_table_ipv6)
{
	ipv6 = true;
	members_open_ipv6(&m, RANKS, PER_NODE);
	no_room("acp: rank 0: not all 4 ranks came within 1500 ms \\(ACP_INIT_TIMEOUT\\): "
		"ranks 2 and 3 did not: node 1 \\(fd09::2\\) does not answer, but "
		"[1-9][0-9]* frames? had no room in the neighbour table "
		"\\(sysctl net\\.ipv4\\.neigh\\.default\\.gc_thresh3 or net\\.ipv6\\.\\.\\.\\): "
		"'acp check' tells more");
}

/* Without connections: a frame that answers one of node 0 would keep its address. */
#define TRANSLATION	"add table ip t; add chain ip t c { type filter hook postrouting priority 100; }; " \
			"add rule ip t c udp dport 16707 ip saddr set 10.9.0.77"

/* Frames of node 1 arrive with another address, and are not accepted. */
TEST(P7_address_translation_between_the_nodes)
{
	setenv("ACP_INIT_TIMEOUT", "1500", 1);
	members_open(&m, RANKS, PER_NODE);
	if (system("unshare -n nft '" TRANSLATION "' 2>/dev/null"))
		SKIP("this kernel has no address translation");
	nodes_run(&m.nodes, 1, "ip address add 10.9.0.77/24 dev eth0 && nft '%s'", TRANSLATION);
	members_start_all(&m, init_fails);
	members_expect(&m, 0);
	check_line(0, "acp: rank 0: not all 4 ranks came within 1500 ms \\(ACP_INIT_TIMEOUT\\): "
		      "ranks 2 and 3 did not: node 1 \\(10\\.9\\.0\\.2\\) does not answer, but "
		      "[1-9][0-9]* frames? came from other addresses than the nodes have, as "
		      "behind address translation \\(masquerade\\): 'acp check' tells more");
}

/* ---- Keys ---- */

/* Set another key for the ranks that start from now on. */
static void give_key(const char *key)
{
	char path[] = "/tmp/key.XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, key, 32), 32);
	close(fd);
	setenv("ACP_KEYFILE", path, 1);
}

TEST(P7_wrong_key_on_one_node)
{
	int r;

	setenv("ACP_INIT_TIMEOUT", "1500", 1);
	members_open(&m, RANKS, PER_NODE);
	for (r = 0; r < RANKS; r++) {
		if (r % PER_NODE == 0)
			give_key(r ? "0123456789abcdef0123456789abcdef" :
				     "fedcba9876543210fedcba9876543210");
		members_start(&m, r, init_fails);
	}
	members_expect(&m, 0);
	check_line(0, "acp: rank 0: not all 4 ranks came within 1500 ms \\(ACP_INIT_TIMEOUT\\): "
		      "ranks 2 and 3 did not: [1-9][0-9]* frames? with a wrong key came from "
		      "10\\.9\\.0\\.2 \\(node 1\\): ACP_KEYFILE must have the same key on all nodes");
	CHECK(said_line(2, "acp: rank 2: not all 4 ranks came within 1500 ms "
			   "\\(ACP_INIT_TIMEOUT\\): ranks 0 and 1 did not: [1-9][0-9]* frames? with "
			   "a wrong key came from 10\\.9\\.0\\.1 \\(node 0\\): ACP_KEYFILE must have "
			   "the same key on all nodes") ||
	      said_line(2, "acp: rank 2: rank 3 left before all 4 ranks had joined: .*"));
}

static void asks_for_wrong_keys(void)
{
	struct acp_wrong_key w = { .size = sizeof(w) };

	member_init();
	CHECK_ERRNO(ioctl(acpx_event_fd(), ACP_IOC_WRONG_KEY, &w), ENOENT);
	w.index = ~0u;
	CHECK_ERRNO(ioctl(acpx_event_fd(), ACP_IOC_WRONG_KEY, &w), ENOENT);
	w.size--;
	CHECK_ERRNO(ioctl(acpx_event_fd(), ACP_IOC_WRONG_KEY, &w), EINVAL);
	CHECK_ERRNO(ioctl(acpx_event_fd(), ACP_IOC_WRONG_KEY, NULL), EFAULT);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(P7_no_wrong_key_in_a_job_that_met)
{
	members_run(RANKS, PER_NODE, asks_for_wrong_keys);
}

/* ---- Ranks that leave ---- */

/* Rank 2 leaves; the others make a call that must not return. */
static void one_goes(void (*call)(void))
{
	CHECK_EQ(acp_init(NULL, NULL), 0);
	if (acp_rank() == 2)
		exit(0);
	call();
	FAIL("went on without rank 2");
}

static void sync_once(void)
{
	acp_sync();
}

static void finalize_once(void)
{
	acp_finalize();
}

static void reset_once(void)
{
	acp_reset(acp_rank());
}

static void one_goes_in_sync(void)
{
	one_goes(sync_once);
}

static void one_goes_in_finalize(void)
{
	one_goes(finalize_once);
}

static void one_goes_in_reset(void)
{
	one_goes(reset_once);
}

/* All others end with an error; at least the first one prints the reason, the others its end. */
static void check_end(void (*body)(void), const char *call)
{
	char line[200];
	int r, told = 0;

	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, body);
	for (r = 0; r < RANKS; r++)
		CHECK_EQ(members_wait(&m, r), r == 2 ? 0 : ENDED);
	for (r = 0; r < RANKS; r++) {
		if (r == 2)
			continue;
		snprintf(line, sizeof(line),
			 "acp: rank %d: %s failed: rank 2 left without acp_finalize", r, call);
		if (said_line(r, line))
			told++;
		else
			CHECK(members_said(&m, r, "the job was aborted"));
	}
	CHECK(told > 0);
}

TEST(P1_sync_names_those_that_left_and_ends_the_job)
{
	check_end(one_goes_in_sync, "acp_sync");
}

TEST(P1_finalize_names_those_that_left_and_ends_the_job)
{
	check_end(one_goes_in_finalize, "acp_finalize");
}

TEST(P1_reset_names_those_that_left_and_ends_the_job)
{
	check_end(one_goes_in_reset, "acp_reset");
}

/* ---- Accesses that fail ---- */

static unsigned int access_rights;
static uint64_t access_offset;

/* Rank 0 writes to memory that rank 2 has registered; the others detect the end. */
static void writes_wrongly(void)
{
	static char memory[100] __attribute__((aligned(64)));
	acp_ga_t *ga;

	CHECK_EQ(acp_init(NULL, NULL), 0);
	ga = acp_query_address(member_at(acp_rank(), 0));
	if (acp_rank() == 2)
		*ga = acp_query_ga(acpx_register_memory(memory, sizeof(memory), 0, access_rights),
				   memory);
	acp_sync();
	if (acp_rank() == 0) {
		acp_complete(acp_copy(member_at(0, 0), member_at(2, 0), 8, ACP_HANDLE_NULL));
		acp_complete(acp_copy(*ga + access_offset, member_at(0, 64), 8, ACP_HANDLE_NULL));
	}
	acp_sync();
	FAIL("went on after a failed access");
}

static void check_write(unsigned int rights, uint64_t offset, const char *pattern)
{
	access_rights = rights;
	access_offset = offset;
	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, writes_wrongly);
	members_expect(&m, ENDED);
	check_line(0, pattern);
}

#define PLACES "\\(dst 0x[0-9a-f]{16} of rank 2 on node 1, src 0x[0-9a-f]{16} of rank 0 on node 0\\)"

TEST(access_beyond_memory_of_another_node_says_by_how_much)
{
	check_write(ACPX_ACCESS_READ | ACPX_ACCESS_WRITE, 120,
		    "acp: rank 0: acp_copy failed: reaches beyond the registered memory: dst, 8 "
		    "bytes at offset 120 of memory registered by rank 2 on node 1, ends 28 bytes "
		    "beyond it, whose size is 100 bytes " PLACES);
}

TEST(access_across_the_end_says_by_how_much)
{
	check_write(ACPX_ACCESS_READ | ACPX_ACCESS_WRITE, 95,
		    "acp: rank 0: acp_copy failed: reaches beyond the registered memory: dst, 8 "
		    "bytes at offset 95 of memory registered by rank 2 on node 1, ends 3 bytes "
		    "beyond it, whose size is 100 bytes " PLACES);
}

TEST(access_without_the_right_says_whose)
{
	check_write(ACPX_ACCESS_READ, 0,
		    "acp: rank 0: acp_copy failed: the memory was not registered for this kind of "
		    "access: rank 2 on node 1 did not register the memory of dst for write access "
		    PLACES);
}

/* Rank 0 writes to where a pointer says that rank 2 has registered, and that contains 0. */
static void writes_indirectly(void)
{
	static uint64_t memory[2] __attribute__((aligned(64)));
	acp_ga_t *ga;

	CHECK_EQ(acp_init(NULL, NULL), 0);
	ga = acp_query_address(member_at(acp_rank(), 0));
	if (acp_rank() == 2)
		*ga = acp_query_ga(acp_register_memory(memory, sizeof(memory), 0), memory);
	acp_sync();
	if (acp_rank() == 0) {
		acp_complete(acp_copy(member_at(0, 0), member_at(2, 0), 8, ACP_HANDLE_NULL));
		acp_complete(acpx_copy_indirect(*ga + access_offset, member_at(0, 64), 1000,
						access_offset ? ACPX_ADVANCE : 0,
						ACP_HANDLE_NULL));
	}
	acp_sync();
	FAIL("went on after a failed access");
}

static void check_indirect(uint64_t offset, const char *pattern)
{
	access_offset = offset;
	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, writes_indirectly);
	members_expect(&m, ENDED);
	check_line(0, pattern);
}

TEST(A4_a_buffer_beyond_the_memory_says_by_how_much)
{
	check_indirect(8,
		       "acp: rank 0: acpx_copy_indirect failed: reaches beyond the registered "
		       "memory: pointer, 16 bytes at offset 8 of memory registered by rank 2 on "
		       "node 1, ends 8 bytes beyond it, whose size is 16 bytes " PLACES);
}

TEST(A4_a_wrong_address_in_a_pointer_is_said)
{
	check_indirect(0,
		       "acp: rank 0: acpx_copy_indirect failed: not a global address of any rank: "
		       "the address in the pointer, or the data there " PLACES);
}

/* Rank 0 writes along a chain of rank 2, which has 100 bytes and then another address. */
static void writes_along_a_chain(void)
{
	struct acpx_descriptor *d;

	CHECK_EQ(acp_init(NULL, NULL), 0);
	d = acp_query_address(member_at(acp_rank(), 0));
	*d = (struct acpx_descriptor){
		.address = member_at(acp_rank(), 1024), .block = 100, .count = 1,
		.flags = ACPX_CHAIN_SCATTER, .next = access_offset,
	};
	acp_sync();
	if (acp_rank() == 0)
		acp_complete(acpx_copy_scatter(member_at(2, 0), member_at(0, 64), 101,
					       ACP_HANDLE_NULL));
	acp_sync();
	FAIL("went on after a failed access");
}

static void check_chain(uint64_t next, const char *pattern)
{
	access_offset = next;
	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, writes_along_a_chain);
	members_expect(&m, ENDED);
	check_line(0, pattern);
}

TEST(A4_a_chain_that_is_too_short_is_said)
{
	check_chain(0, "acp: rank 0: acpx_copy_scatter failed: the chain is a loop, too short or "
		    "too long, or not well formed: 101 bytes along at most 64 descriptors " PLACES);
}

TEST(A4_a_wrong_address_in_a_chain_is_said)
{
	check_chain(8, "acp: rank 0: acpx_copy_scatter failed: not a global address of any rank: "
		    "a descriptor of the chain, or the blocks that it describes " PLACES);
}

/* ---- Memory ---- */

static void register_what_is_refused(void)
{
	char *p;

	member_init();
	p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	CHECK_EQ(munmap(p + PAGE, PAGE), 0);
	CHECK_EQ(mprotect(p + 3 * PAGE, PAGE, PROT_READ), 0);
	if (acp_rank() < PER_NODE)
		CHECK(acp_register_memory(p, 2 * PAGE, 0) == ACP_ATKEY_NULL && errno == EFAULT);
	else
		CHECK(acp_register_memory(p + 2 * PAGE, 2 * PAGE, 0) == ACP_ATKEY_NULL &&
		      errno == EFAULT);
	CHECK_EQ(acp_finalize(), 0);
}

/* Nobody said which part of the memory is in the way. */
TEST(P7_memory_that_is_not_registered)
{
	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, register_what_is_refused);
	members_expect(&m, 0);
	check_line(0, "acp: rank 0: cannot register 8192 bytes of memory: "
		      "0x[0-9a-f]+000-0x[0-9a-f]+000 is not mapped");
	check_line(PER_NODE, "acp: rank 2: cannot register 8192 bytes of memory: "
			     "0x[0-9a-f]+000-0x[0-9a-f]+000 is not writable: use mprotect\\(\\), or "
			     "register it with ACPX_ACCESS_RO");
}
