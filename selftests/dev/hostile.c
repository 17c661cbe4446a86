// SPDX-License-Identifier: MIT
/* selftest: cpus=2 */
/*
 * K1: the ioctls with every kind of bad argument: pointers, sizes, flags, reserved fields, unknown
 * numbers, results that cannot be written, and random bytes. Also which processes may call them:
 * not before a join, not after a fork, and no other process.
 */
#include "isolated.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "rank.h"

/* All ioctls with a structure, and its size. */
static const struct call {
	const char *name;
	unsigned long number;
	size_t size;
	bool writes;		/* the call returns a result */
} calls[] = {
	{ "REG", ACP_IOC_REG, sizeof(struct acp_reg), true },
	{ "UNREG", ACP_IOC_UNREG, sizeof(struct acp_unreg), true },
	{ "WAIT", ACP_IOC_WAIT, sizeof(struct acp_wait), false },
	{ "SYNC", ACP_IOC_SYNC, sizeof(struct acp_sync), false },
	{ "PEER", ACP_IOC_PEER, sizeof(struct acp_peer_info), true },
	{ "STATE", ACP_IOC_STATE, sizeof(struct acp_rank_state), true },
	{ "WATCH", ACP_IOC_WATCH, sizeof(struct acp_watch_wait), false },
	{ "WAKE", ACP_IOC_WAKE, sizeof(struct acp_wake), false },
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* A valid argument: memory to register, a key to unregister. */
static void good_argument(const struct call *c, void *p, struct rank *r, struct memory *m)
{
	memset(p, 0, c->size);
	*(uint32_t *)p = (uint32_t)c->size;
	switch (c->number) {
	case ACP_IOC_REG:
		((struct acp_reg *)p)->access = ACP_ACCESS_ALL;
		((struct acp_reg *)p)->addr = (uintptr_t)m->addr;
		((struct acp_reg *)p)->length = m->size;
		break;
	case ACP_IOC_UNREG:
		((struct acp_unreg *)p)->key = m->reg.key;
		break;
	case ACP_IOC_WAIT:
		((struct acp_wait *)p)->ticket = 1;
		break;
	case ACP_IOC_PEER:
		((struct acp_peer_info *)p)->rank = r->join.rank;
		break;
	case ACP_IOC_STATE:
		((struct acp_rank_state *)p)->rank = r->join.rank;
		break;
	case ACP_IOC_WATCH:
		((struct acp_watch_wait *)p)->wakes = ~0ULL;
		break;
	case ACP_IOC_WAKE:
		((struct acp_wake *)p)->rank = r->join.rank;
		break;
	}
}

static void expect(struct rank *r, const struct call *c, const void *arg, int error,
		   const char *what)
{
	int found = ioctl(r->fd, c->number, arg) ? errno : 0;

	if (found != error)
		FAIL("%s, %s: %s, wanted %s", c->name, what, found ? strerrorname_np(found) : "0",
		     error ? strerrorname_np(error) : "0");
}

TEST(K1_bad_pointers)
{
	static const unsigned long wild[] = {
		0, 1, 8, PAGE - 1, 0x7ffffffff000UL, 0x8000000000000000UL, 0xffff800000000000UL,
		0xffff888000001000UL, 0xffffffff81000000UL, 0xffffffffff600000UL, -8UL, -1UL,
	};
	char good[64];
	struct memory m;
	struct rank r;
	size_t i, j;

	rank_open_local(&r, 1);
	memory_open(&r, &m, PAGE);
	for (i = 0; i < CALLS; i++) {
		for (j = 0; j < sizeof(wild) / sizeof(wild[0]); j++)
			expect(&r, &calls[i], (void *)wild[j], EFAULT, "wild pointer");
		good_argument(&calls[i], good, &r, &m);
		for (j = 1; j < calls[i].size; j++)
			expect(&r, &calls[i], memcpy(before_hole(j), good, j), EFAULT,
			       "ends at a hole");
	}
	rank_close(&r);
}

TEST(K1_argument_at_the_end_of_a_page)
{
	struct memory m;
	struct rank r;
	size_t i;

	rank_open_local(&r, 1);
	memory_open(&r, &m, PAGE);
	for (i = 0; i < CALLS; i++) {
		void *p = before_hole(calls[i].size);

		good_argument(&calls[i], p, &r, &m);
		expect(&r, &calls[i], p, 0, "last bytes of a page");
	}
}

TEST(K1_sizes)
{
	char arg[64];
	struct memory m;
	struct rank r;
	size_t i;

	rank_open_local(&r, 1);
	memory_open(&r, &m, PAGE);
	for (i = 0; i < CALLS; i++) {
		uint32_t size = (uint32_t)calls[i].size;
		uint32_t bad[] = { 0, 1, 4, size - 1, size + 1, size + 8, size * 2, 4096, ~0u,
				   1u << 31 };
		size_t j;

		for (j = 0; j < sizeof(bad) / sizeof(bad[0]); j++) {
			good_argument(&calls[i], arg, &r, &m);
			*(uint32_t *)arg = bad[j];
			expect(&r, &calls[i], arg, EINVAL, "size");
		}
	}
}

TEST(K1_reserved_fields_and_flags)
{
	struct acp_wait wait = { .size = sizeof(wait), .ticket = 1 };
	struct acp_sync sync = { .size = sizeof(sync) };
	struct acp_unreg unreg = { .size = sizeof(unreg) };
	struct memory m;
	struct rank r;
	int bit;

	rank_open_local(&r, 1);
	memory_open(&r, &m, PAGE);
	unreg.key = m.reg.key;
	for (bit = 0; bit < 32; bit++) {
		struct acp_reg reg = {
			.size = sizeof(reg), .access = ACP_ACCESS_ALL,
			.addr = (uintptr_t)m.addr, .length = PAGE,
		};

		reg.reserved = 1u << bit;
		CHECK_ERRNO(ioctl(r.fd, ACP_IOC_REG, &reg), EINVAL);
		reg.reserved = 0;
		if (bit > 3) {
			reg.access |= 1u << bit;
			CHECK_ERRNO(ioctl(r.fd, ACP_IOC_REG, &reg), EINVAL);
		}
		if (1u << bit != ACP_WAIT_ARM) {
			wait.flags = 1u << bit;
			CHECK_ERRNO(ioctl(r.fd, ACP_IOC_WAIT, &wait), EINVAL);
		}
		if (1u << bit != ACP_SYNC_FINAL) {
			sync.flags = 1u << bit;
			CHECK_ERRNO(ioctl(r.fd, ACP_IOC_SYNC, &sync), EINVAL);
		}
		sync.flags = 0;
		sync.reserved = 1u << bit;
		CHECK_ERRNO(ioctl(r.fd, ACP_IOC_SYNC, &sync), EINVAL);
		sync.reserved = 0;
		unreg.reserved = 1u << bit;
		CHECK_ERRNO(ioctl(r.fd, ACP_IOC_UNREG, &unreg), EINVAL);
	}
	unreg.reserved = 0;
	CHECK_EQ(ioctl(r.fd, ACP_IOC_UNREG, &unreg), 0);
	CHECK_ERRNO(ioctl(r.fd, ACP_IOC_UNREG, &unreg), ENOENT);
}

/* If the result cannot be written, the registration must not remain. */
TEST(K1_result_not_writable)
{
	char *p = pages(PAGE, PROT_READ | PROT_WRITE);
	struct memory m = { .addr = pages(16 * PAGE, PROT_READ | PROT_WRITE), .size = 16 * PAGE };
	struct acp_peer_info *peer = (struct acp_peer_info *)p;
	struct rank r;
	long before;

	rank_open_local(&r, 1);
	before = status_kib("VmPin");
	good_argument(&calls[0], p, &r, &m);
	CHECK_EQ(mprotect(p, PAGE, PROT_READ), 0);
	expect(&r, &calls[0], p, EFAULT, "read-only argument");
	CHECK_EQ(status_kib("VmPin"), before);
	expect(&r, &calls[0], p, EFAULT, "read-only argument, again");
	CHECK_EQ(status_kib("VmPin"), before);
	CHECK_EQ(mprotect(p, PAGE, PROT_READ | PROT_WRITE), 0);
	*peer = (struct acp_peer_info){ .size = sizeof(*peer), .rank = 0 };
	CHECK_EQ(mprotect(p, PAGE, PROT_READ), 0);
	expect(&r, &calls[4], p, EFAULT, "read-only argument");
	rank_close(&r);
	CHECK_EQ(status_kib("VmPin"), 0);
}

/* The same for unregistering: in each case nothing is leaked or freed twice. */
TEST(K1_unregister_result_not_writable)
{
	struct acp_unreg *u = pages(PAGE, PROT_READ | PROT_WRITE);
	struct memory m;
	struct rank r;
	int results = 0;
	long before;

	rank_open_local(&r, 1);
	before = status_kib("VmPin");
	memory_open(&r, &m, 16 * PAGE);
	CHECK_EQ(rank_register(&r, &m, m.addr, m.size, ACP_ACCESS_ALL), 0);
	*u = (struct acp_unreg){ .size = sizeof(*u), .key = m.reg.key };
	CHECK_EQ(mprotect(u, PAGE, PROT_READ), 0);
	CHECK_ERRNO(ioctl(r.fd, ACP_IOC_UNREG, u), EFAULT);
	while (rank_unregister(&r, m.reg.key, NULL) == 0)
		results++;
	CHECK(results == 1 || results == 2);
	CHECK_EQ(status_kib("VmPin"), before);
}

TEST(K1_unknown_ioctls)
{
	char arg[256] = { 0 };
	struct rank r;
	unsigned int i;

	rank_open_local(&r, 1);
	for (i = _IOC_NR(ACP_IOC_UNPOST) + 1; i < 256; i++)	/* the last call */
		CHECK_ERRNO(ioctl(r.fd, _IOWR(ACP_IOC_MAGIC, i, struct acp_reg), arg), ENOTTY);
	for (i = 0; i < 8; i++)
		CHECK_ERRNO(ioctl(r.fd, _IOWR('V', i, struct acp_reg), arg), ENOTTY);
	CHECK_ERRNO(ioctl(r.fd, _IOWR(ACP_IOC_MAGIC, 3, char[200]), arg), ENOTTY);
	CHECK_ERRNO(ioctl(r.fd, _IO(0xAC, 3), arg), ENOTTY);
	CHECK_ERRNO(ioctl(r.fd, _IOR(ACP_IOC_MAGIC, 1, struct acp_reg), arg), ENOTTY);
	CHECK_ERRNO(ioctl(r.fd, _IO(ACP_IOC_MAGIC, 1), arg), ENOTTY);
}

/* ---- Structures of other versions ---- */

static const struct {
	unsigned long call;
	uint32_t least;			/* bytes, in the first version */
} structures[] = {
	{ ACP_IOC_JOIN, ACP_JOIN_SIZE_0 }, { ACP_IOC_REG, ACP_REG_SIZE_0 },
	{ ACP_IOC_UNREG, ACP_UNREG_SIZE_0 }, { ACP_IOC_WAIT, ACP_WAIT_SIZE_0 },
	{ ACP_IOC_SYNC, ACP_SYNC_SIZE_0 }, { ACP_IOC_PEER, ACP_PEER_SIZE_0 },
	{ ACP_IOC_STATE, ACP_STATE_SIZE_0 }, { ACP_IOC_EVENT, ACP_EVENT_SIZE_0 },
	{ ACP_IOC_WATCH, ACP_WATCH_SIZE_0 }, { ACP_IOC_WAKE, ACP_WAKE_SIZE_0 },
	{ ACP_IOC_ATTACH, ACP_ATTACH_SIZE_0 }, { ACP_IOC_WRONG_KEY, ACP_WRONG_KEY_SIZE_0 },
	{ ACP_IOC_MATCH, ACP_MATCH_SIZE_0 }, { ACP_IOC_POST, ACP_POST_SIZE_0 },
	{ ACP_IOC_UNPOST, ACP_UNPOST_SIZE_0 },
};

/* A call whose number encodes a structure of @size bytes, while its size field contains @says. */
static int call_sized(int fd, unsigned long call, uint32_t size, void *at, uint32_t says)
{
	memcpy(at, &says, sizeof(says));
	return ioctl(fd, _IOC(_IOC_DIR(call), ACP_IOC_MAGIC, _IOC_NR(call), size), at);
}

TEST(K1_structures_of_any_size)
{
	char *p = pages(4 * PAGE, PROT_READ | PROT_WRITE);
	struct rank r;
	size_t i;

	rank_open_local(&r, 1);
	for (i = 0; i < sizeof(structures) / sizeof(structures[0]); i++) {
		unsigned long call = structures[i].call;
		uint32_t size = _IOC_SIZE(call), least = structures[i].least;

		CHECK(least <= size);
		memset(p, 0, 4 * PAGE);
		CHECK_ERRNO(call_sized(r.fd, call, least - 1, p, least - 1), EINVAL);
		CHECK_ERRNO(call_sized(r.fd, call, 4, p, 4), EINVAL);
		CHECK_ERRNO(call_sized(r.fd, call, size, p, size + 1), EINVAL);
		CHECK_ERRNO(call_sized(r.fd, call, size, p, 0), EINVAL);
		CHECK_ERRNO(call_sized(r.fd, call, size, p, ~0u), EINVAL);
		CHECK_ERRNO(call_sized(r.fd, call, size + 4, p, size), EINVAL);
		CHECK_ERRNO(call_sized(r.fd, call, PAGE + 1, p, PAGE + 1), E2BIG);
		p[size + 7] = 1;
		CHECK_ERRNO(call_sized(r.fd, call, size + 8, p, size + 8), E2BIG);
		CHECK_ERRNO(call_sized(r.fd, call, PAGE, p, PAGE), E2BIG);
		/* The end of the claimed structure is not mapped. */
		memset(p, 0, size + 8);
		CHECK_EQ(munmap(p + PAGE, PAGE), 0);
		CHECK_ERRNO(call_sized(r.fd, call, size + 8, p + PAGE - size, size + 8), EFAULT);
		CHECK(mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
	}
}

/*
 * Fields that this kernel does not know are zero, so the call has the same meaning; they are not
 * modified.
 */
TEST(K1_structure_of_a_later_version)
{
	struct {
		struct acp_rank_state s;
		uint64_t more[3];
	} *of = (void *)pages(PAGE, PROT_READ | PROT_WRITE);
	struct rank r;

	rank_open_local(&r, 1);
	CHECK_EQ(call_sized(r.fd, ACP_IOC_STATE, sizeof(*of), of, sizeof(*of)), 0);
	CHECK_EQ(of->s.state, ACP_RANK_UP);
	CHECK_EQ(of->s.size, sizeof(*of));
	CHECK(!of->more[0] && !of->more[1] && !of->more[2]);
	CHECK_EQ(call_sized(r.fd, ACP_IOC_STATE, PAGE, of, PAGE), 0);
}

/* The returned size is not that of the kernel: the structure can be used for the next call. */
TEST(K1_structure_of_a_later_version_is_used_again)
{
	struct {
		struct acp_event e;
		uint32_t more[3];
	} *of = (void *)pages(PAGE, PROT_READ | PROT_WRITE);
	const unsigned long call = _IOC(_IOC_DIR(ACP_IOC_EVENT), ACP_IOC_MAGIC,
					_IOC_NR(ACP_IOC_EVENT), sizeof(*of));
	struct rank r[2];

	rank_open_local(r, 2);
	rank_close(&r[1]);	/* early, so that there are at least two events */
	of->e.size = sizeof(*of);
	CHECK_EQ(ioctl(r[0].fd, call, of), 0);
	CHECK(of->e.type);
	CHECK_EQ(of->e.size, sizeof(*of));
	CHECK_EQ(ioctl(r[0].fd, call, of), 0);
	CHECK_EQ(of->e.size, sizeof(*of));
}

TEST(K1_not_joined)
{
	char arg[64] = { 0 };
	struct acp_unreg u = { .size = sizeof(u) };
	int fd = device_open();
	size_t i;

	for (i = 0; i < CALLS; i++) {
		*(uint32_t *)arg = (uint32_t)calls[i].size;
		CHECK_ERRNO(ioctl(fd, calls[i].number, arg), ENOTCONN);
	}
	CHECK_ERRNO(ioctl(fd, ACP_IOC_UNREG, &u), ENOTCONN);
	CHECK_ERRNO(ioctl(fd, ACP_IOC_DOORBELL), ENOTCONN);
	CHECK_ERRNO(fdatasync(fd), ENOTCONN);
	CHECK_ERRNO(ioctl(fd, ACP_IOC_ABORT), ENOTCONN);
	CHECK(rank_map(fd, ACP_MAP_SQ, 0, PAGE, PROT_READ) == MAP_FAILED);
	CHECK_ERRNO(read(fd, arg, 1), EINVAL);
	CHECK_ERRNO(write(fd, arg, 1), EINVAL);
}

/* All calls fail with this error, whatever the argument. */
static void all_fail(int fd, int error)
{
	char arg[64] = { 0 };
	struct setup s;
	size_t i;

	setup_local(&s, 1, 2);
	CHECK_ERRNO(ioctl(fd, ACP_IOC_JOIN, &s.join), error);
	for (i = 0; i < CALLS; i++) {
		*(uint32_t *)arg = (uint32_t)calls[i].size;
		CHECK_ERRNO(ioctl(fd, calls[i].number, arg), error);
	}
	CHECK_ERRNO(ioctl(fd, ACP_IOC_DOORBELL), error);
	CHECK_ERRNO(ioctl(fd, ACP_IOC_ABORT), error);
}

static void child_ends_well(pid_t child)
{
	int status = 0;

	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

TEST(P4_forked_child_may_call_nothing)
{
	struct rank r[2];
	pid_t child;

	rank_open_local(r, 2);
	fill(r[0].heap, 100, 1);
	child = fork();
	if (!child) {
		all_fail(r[0].fd, EPERM);
		CHECK(rank_map(r[0].fd, ACP_MAP_SQ, 0, PAGE, PROT_READ) == MAP_FAILED);
		CHECK(rank_map(r[0].fd, ACP_MAP_HEAP, 0, PAGE, PROT_READ) == MAP_FAILED);
		_exit(0);
	}
	child_ends_well(child);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), 100), ACP_ST_OK);
	CHECK(filled(r[1].heap, 100, 1));
}

/* The rank continues with a child's copy of the descriptor, and ends when that is closed. */
TEST(P4_parent_exits_first)
{
	int go[2];
	struct setup s;
	pid_t child;

	setup_local(&s, 0, 1);
	CHECK_EQ(pipe(go), 0);
	child = fork();
	if (!child) {
		struct rank r;
		char byte;

		rank_open(&r, &s);
		if (fork())
			_exit(0);
		close(go[1]);
		CHECK_EQ(read(go[0], &byte, 1), 0);
		all_fail(r.fd, EPERM);
		_exit(0);
	}
	child_ends_well(child);
	CHECK_EQ(setup_join(&s), -EEXIST);
	close(go[1]);
	for (int i = 0; i < 100 && setup_join(&s) == -EEXIST; i++)
		sleep_ms(20);
	CHECK_EQ(setup_join(&s), -EEXIST);	/* the last iteration has joined */
}

static void send_fd(int socket, int fd)
{
	char space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec io = { (char[]){ 'x' }, 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = space,
			    .msg_controllen = sizeof(space) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	CHECK_EQ(sendmsg(socket, &m, 0), 1);
}

static int receive_fd(int socket)
{
	char space[CMSG_SPACE(sizeof(int))], byte;
	struct iovec io = { &byte, 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = space,
			    .msg_controllen = sizeof(space) };
	int fd;

	CHECK_EQ(recvmsg(socket, &m, 0), 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	return fd;
}

TEST(P5_descriptor_sent_to_another_process)
{
	struct setup s;
	int pair[2];
	pid_t child;
	int fd;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	child = fork();
	if (!child) {
		struct rank r;

		setup_local(&s, 0, 1);
		rank_open(&r, &s);
		send_fd(pair[1], r.fd);
		pause();
		_exit(0);
	}
	fd = receive_fd(pair[0]);
	all_fail(fd, EPERM);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	all_fail(fd, EPERM);
	close(fd);
}

TEST(P5_duplicated_descriptor)
{
	struct rank r;
	int other;

	rank_open_local(&r, 1);
	other = dup(r.fd);
	CHECK_EQ(close(r.fd), 0);
	CHECK_ERRNO(ioctl(r.fd, ACP_IOC_DOORBELL), EBADF);
	r.fd = other;
	fill(r.heap, 64, 5);
	CHECK_EQ(rank_do_copy(&r, heap_ga(&r, 64), heap_ga(&r, 0), 64), ACP_ST_OK);
	CHECK(filled(r.heap + 64, 64, 5));
	rank_close(&r);
}

static void random_bytes(void *p, size_t n, uint64_t *seed)
{
	uint8_t *byte = p;

	while (n--)
		*byte++ = (uint8_t)next_random(seed);
}

/* Some fields valid, some not: this sometimes passes the first checks. */
static void mutate(void *p, size_t n, uint64_t *seed)
{
	uint32_t *word = p;
	uint64_t changes = 1 + next_random(seed) % 3;

	while (changes--) {
		uint64_t x = next_random(seed);

		word[x % (n / 4)] = x & 1 << 20 ? (uint32_t)(x >> 32) : (uint32_t)(x >> 32) % 5;
	}
}

/* Rank 1 must not be affected by any call of rank 0. */
TEST(K1_random_calls)
{
	uint64_t seed = (uint64_t)getpid();
	char arg[256], secret[256];
	int i, count = test_short() ? 1000 : 8000;
	struct memory m, other;
	struct rank r[2];

	printf("# seed %llu\n", (unsigned long long)seed);
	rank_open_local(r, 2);
	memory_open(&r[0], &m, 4 * PAGE);
	CHECK_EQ(rank_register(&r[1], &other, secret, sizeof(secret), 0), 0);
	fill(secret, sizeof(secret), 3);
	for (i = 0; i < count; i++) {
		const struct call *c = &calls[next_random(&seed) % CALLS];

		if (c->number == ACP_IOC_WAIT || c->number == ACP_IOC_SYNC)
			continue;	/* may wait forever, as requested */
		good_argument(c, arg, &r[0], &m);
		if (i & 7)
			mutate(arg, c->size, &seed);
		else
			random_bytes(arg, sizeof(arg), &seed);
		if (c->number == ACP_IOC_WATCH)
			((struct acp_watch_wait *)arg)->timeout_ns %= MS;
		ioctl(r[0].fd, c->number, arg);
		if (i % 100 == 0)
			ioctl(r[0].fd, (unsigned long)next_random(&seed), arg);
	}
	CHECK(filled(secret, sizeof(secret), 3));
	CHECK_EQ(rank_unregister(&r[1], other.reg.key, NULL), 0);
	CHECK_EQ(rank_do_copy(&r[1], heap_ga(&r[0], 0), heap_ga(&r[1], 0), 64), ACP_ST_OK);
	rank_close(&r[0]);
	rank_close(&r[1]);
	CHECK_EQ(status_kib("VmPin"), 0);
}

/* Most fail; a successful one takes some milliseconds until the job has ended. */
TEST_LONG(K1_random_joins, PATIENCE_LONG_TEST)
{
	uint64_t seed = (uint64_t)getpid();
	int i, count = test_short() ? 200 : 2000;
	struct setup s;

	printf("# seed %llu\n", (unsigned long long)seed);
	for (i = 0; i < count; i++) {
		int fd;

		setup_local(&s, 0, 1 + next_random(&seed) % 4);
		mutate(&s.join, sizeof(s.join), &seed);
		if (i & 1)
			mutate(s.ranks, sizeof(s.ranks[0]), &seed);
		if (i & 2)
			mutate(s.nodes, sizeof(s.nodes[0]), &seed);
		if (s.join.starter_size > 1 << 20 && s.join.starter_size < 1ULL << 46)
			continue;	/* memory that may be allocated, and takes time to clear */
		if (s.join.heap_size > 1 << 20 && s.join.heap_size < 1ULL << 46)
			continue;
		fd = setup_join(&s);
		if (fd >= 0)
			close(fd);
	}
	CHECK_EQ(status_kib("VmPin"), 0);
}
