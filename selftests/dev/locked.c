// SPDX-License-Identifier: MIT
/* selftest: gate=6.12 */
/*
 * A process whose mmap_lock is held for as long as a file system in user space likes: what the
 * module does with its regions delays nobody else. The file system is this test: one file, of which
 * a page is read and not provided, and which is mapped meanwhile.
 */
#include "isolated.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "rank.h"

#define REGIONS		600	/* more than a work queue has workers */

static const char file[] = "/tmp/locked-file";
static int device;		/* of the file system */
static int opened;		/* times */
static bool asked;		/* for the page */

static void answer(const struct fuse_in_header *in, int error, const void *out, size_t size)
{
	static char reply[4096];
	const struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + size), .error = error, .unique = in->unique,
	};

	memcpy(reply, &head, sizeof(head));
	memcpy(reply + sizeof(head), out, size);
	CHECK_EQ(write(device, reply, head.len), head.len);
}

static void answer_attributes(const struct fuse_in_header *in)
{
	const struct fuse_attr_out out = {
		.attr_valid = 1000,
		.attr = { .ino = 1, .size = PAGE, .mode = S_IFREG | 0600, .nlink = 1 },
	};

	answer(in, 0, &out, sizeof(out));
}

/* The second open goes past the page cache: mapping the file then clears the cache. */
static void answer_open(const struct fuse_in_header *in)
{
	const struct fuse_open_out out = {
		.open_flags = FOPEN_KEEP_CACHE | (opened++ ? FOPEN_DIRECT_IO : 0),
	};

	answer(in, 0, &out, sizeof(out));
}

static void answer_init(const struct fuse_in_header *in)
{
	const struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = PAGE,
	};

	answer(in, 0, &out, sizeof(out));
}

static void *serve(void *unused)
{
	static char request[1 << 17];
	const struct fuse_in_header *in = (void *)request;

	while (read(device, request, sizeof(request)) > 0)
		switch (in->opcode) {
		case FUSE_INIT:
			answer_init(in);
			break;
		case FUSE_GETATTR:
			answer_attributes(in);
			break;
		case FUSE_OPEN:
			answer_open(in);
			break;
		case FUSE_READ:
			__atomic_store_n(&asked, true, __ATOMIC_RELEASE);
			break;
		case FUSE_FORGET:
			break;
		default:
			answer(in, -ENOSYS, NULL, 0);
		}
	return unused;
}

/* False if this kernel has no such file systems. */
static bool mount_file(void)
{
	pthread_t server;
	char options[100];

	if (system("[ -e /dev/fuse ] || modprobe fuse 2>/dev/null"))
		return false;
	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (device < 0)
		return false;
	close(open(file, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	snprintf(options, sizeof(options), "fd=%d,rootmode=100000,user_id=0,group_id=0", device);
	CHECK_EQ(mount("locked", file, "fuse", 0, options), 0);
	CHECK_EQ(pthread_create(&server, NULL, serve, NULL), 0);
	return true;
}

/* Start a process without the file system's device, which thus ends with the test. */
static pid_t start(void)
{
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(device);
	}
	return child;
}

/* Wait until another process reads a page, which nobody provides. */
static void start_reader(void)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	char byte;

	if (!start()) {
		int fd = open(file, O_RDONLY | O_CLOEXEC);

		CHECK(fd >= 0);
		_exit(read(fd, &byte, 1) > 0);
	}
	while (!__atomic_load_n(&asked, __ATOMIC_ACQUIRE)) {
		CHECK(!patience_over(&p));
		sleep_ms(1);
	}
}

static int shared_memory(size_t size)
{
	int fd = memfd_create("locked", MFD_CLOEXEC);

	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	return fd;
}

/* Register pages of shared memory one by one; then map the file, which holds mmap_lock. */
static void hold(int memory, const int *told)
{
	char *p = mmap(NULL, REGIONS * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	struct memory m;
	struct rank r;
	int i, fd;

	CHECK(p != MAP_FAILED);
	rank_open_local(&r, 1);
	for (i = 0; i < REGIONS; i++)
		CHECK_EQ(rank_register(&r, &m, p + i * PAGE, PAGE, ACP_ACCESS_ALL), 0);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_EQ(write(told[1], "", 1), 1);
	mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	_exit(0);
}

static bool sleeps_for_good(pid_t pid)
{
	char path[40], text[200] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	CHECK(f && fgets(text, sizeof(text), f));
	fclose(f);
	return strstr(text, ") D");
}

/* Start such a process, and wait until it holds its lock. */
static pid_t start_holder(int memory)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	int told[2];
	pid_t child;
	char byte;

	start_reader();
	CHECK_EQ(pipe2(told, O_CLOEXEC), 0);
	child = start();
	if (!child)
		hold(memory, told);
	CHECK_EQ(read(told[0], &byte, 1), 1);
	while (!sleeps_for_good(child)) {
		CHECK(!patience_over(&p));
		sleep_ms(1);
	}
	return child;
}

static void lose_pages(int memory, size_t size)
{
	CHECK_EQ(fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)size), 0);
}

/* Its pages cannot be looked at now; a page of another process is lost meanwhile. */
TEST(M3_held_mmap_lock_delays_no_looks_of_others)
{
	int memory = shared_memory(REGIONS * PAGE), own = shared_memory(PAGE), status;
	struct patience p;
	struct memory m;
	struct rank r;
	pid_t holder;
	char *page;

	if (!mount_file())
		SKIP("no file systems in user space");
	holder = start_holder(memory);
	rank_open_local(&r, 1);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
	CHECK(page != MAP_FAILED);
	CHECK_EQ(rank_register(&r, &m, page, PAGE, ACP_ACCESS_ALL), 0);
	CHECK_EQ(rank_do_copy(&r, memory_ga(&m, 0), heap_ga(&r, 0), 8), ACP_ST_OK);
	lose_pages(memory, REGIONS * PAGE);
	sleep_ms(100);
	lose_pages(own, PAGE);
	p = patience_begin(PATIENCE_SOON);
	while (rank_do_copy(&r, memory_ga(&m, 0), heap_ga(&r, 0), 8) == ACP_ST_OK) {
		CHECK(!patience_over(&p));
		sleep_ms(1);
	}
	CHECK_EQ(waitpid(holder, NULL, WNOHANG), 0);
	CHECK_EQ(umount2(file, MNT_FORCE | MNT_DETACH), 0);
	CHECK_EQ(waitpid(holder, &status, 0), holder);
	CHECK_EQ(status, 0);
}
