// SPDX-License-Identifier: MIT
/*
 * Error messages of the library: the whole line as the user sees it on standard error. Ranks 0 and
 * 1 are on the node of rank 0, 2 and 3 on another one; the device is fake.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"
#include "core/mappings.h"
#include "core/rank_list.h"
#include "test.h"
#include "test_lib_device.h"

static char said[4000];		/* last output to standard error */
static int kept = -1;		/* the original standard error */

static void keep_errors(void)
{
	if (kept < 0)
		kept = memfd_create("errors", MFD_CLOEXEC);
	fflush(stderr);
	CHECK(kept >= 0 && ftruncate(kept, 0) == 0 && lseek(kept, 0, SEEK_SET) == 0);
	CHECK(dup2(kept, STDERR_FILENO) >= 0);
}

/*
 * Check that exactly these lines were printed since keep_errors(). The last one has no newline
 * here.
 */
static void __attribute__((format(printf, 1, 2))) check_said(const char *format, ...)
{
	char wanted[sizeof(said)];
	ssize_t length;
	va_list args;

	va_start(args, format);
	vsnprintf(wanted, sizeof(wanted) - 1, format, args);
	va_end(args);
	if (*wanted)
		strcat(wanted, "\n");
	fflush(stderr);
	length = pread(kept, said, sizeof(said) - 1, 0);
	CHECK(length >= 0);
	said[length] = '\0';
	if (strcmp(said, wanted) != 0)
		FAIL("said: %.400s", said);
	keep_errors();
}

/* Return the exit status of a child that runs the function. */
static int status_of(void (*run)(void))
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child) {
		run();
		exit(0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int start_alone(void)
{
	keep_errors();
	return acp_init(NULL, NULL);
}

/* Start as one of four ranks, ignoring messages. */
static void start_as(const char *rank)
{
	setenv("ACP_RANK", rank, 1);
	setenv("ACP_NPROCS", "4", 1);
	setenv("ACP_NODES", "10.0.0.1 10.0.0.2", 1);
	setenv("ACP_INSECURE", "1", 1);
	setenv("ACP_QUEUE_DEPTH", "64", 1);
	keep_errors();
	CHECK(acp_init(NULL, NULL) == 0);
	keep_errors();
}

/* ---- The device ---- */

/* The mode of /dev/acp, whose group has the number 7 and one member; 0: as it is here. */
static mode_t device_mode;
static const char *member;
static bool module_is_there;
static bool permitted;		/* by the mode of /dev/acp */
static bool nodev;		/* the device is on a mount without devices */

int __real_stat(const char *path, struct stat *st);
struct group *__real_getgrgid(gid_t id);
int __real_access(const char *path, int mode);

int __wrap_stat(const char *path, struct stat *st)
{
	if (!device_mode || strcmp(path, "/dev/acp") != 0)
		return __real_stat(path, st);
	*st = (struct stat){ .st_mode = S_IFCHR | device_mode, .st_gid = 7 };
	return 0;
}

struct group *__wrap_getgrgid(gid_t id)
{
	static char *members[2];
	static struct group group = { .gr_name = "fabric", .gr_gid = 7, .gr_mem = members };

	if (id != 7)
		return __real_getgrgid(id);
	members[0] = (char *)(uintptr_t)member;
	return &group;
}

int __wrap_statvfs(const char *path, struct statvfs *mount)
{
	(void)path;
	*mount = (struct statvfs){ .f_flag = nodev ? ST_NODEV : 0 };
	return 0;
}

int __wrap_faccessat(int dir, const char *path, int mode, int flags)
{
	(void)dir;
	(void)path;
	(void)mode;
	(void)flags;
	errno = EACCES;
	return permitted ? 0 : -1;
}

int __wrap_access(const char *path, int mode)
{
	if (strcmp(path, "/sys/module/acp") != 0)
		return __real_access(path, mode);
	errno = ENOENT;
	return module_is_there ? 0 : -1;
}

static const char *user(void)
{
	const struct passwd *entry = getpwuid(geteuid());

	return entry ? entry->pw_name : "0";
}

TEST(device__no_permission_names_the_command)
{
	fake.open_error = EACCES;
	CHECK(start_alone() == -1);
	check_said("acp: no permission to use /dev/acp: run 'usermod -a -G acp %s' as root and log in again",
		   user());
}

TEST(device__no_permission_names_the_group_of_the_device)
{
	fake.open_error = EACCES;
	device_mode = 0660;
	CHECK(start_alone() == -1);
	check_said("acp: no permission to use /dev/acp: run 'usermod -a -G fabric %s' as root and log in again",
		   user());
}

TEST(device__no_permission_yet_for_a_new_member)
{
	fake.open_error = EACCES;
	device_mode = 0660;
	member = user();
	CHECK(start_alone() == -1);
	check_said("acp: no permission to use /dev/acp: this session began before user %s became a member of group fabric: log in again",
		   user());
}

TEST(device__no_permission_for_anybody_but_root)
{
	fake.open_error = EACCES;
	device_mode = 0600;
	CHECK(start_alone() == -1);
	check_said("acp: no permission to use /dev/acp, which is for root only: install the udev rule 90-acp.rules and run 'udevadm trigger /dev/acp'");
}

TEST(device__on_a_mount_without_devices)
{
	fake.open_error = EACCES;
	nodev = true;
	CHECK(start_alone() == -1);
	check_said("acp: no permission to use /dev/acp, since devices cannot be used where it is: mount that file system without nodev, or use the /dev of the system");
}

TEST(device__that_a_security_module_forbids)
{
	fake.open_error = EACCES;
	permitted = true;
	CHECK(start_alone() == -1);
	check_said("acp: no permission to use /dev/acp, although its mode permits it: a security module (AppArmor, SELinux) forbids it, as the kernel's log tells");
}

TEST(device__that_a_container_may_not_use)
{
	fake.open_error = EPERM;
	CHECK(start_alone() == -1);
	check_said("acp: this container or service may not use /dev/acp: pass the device to it (--device /dev/acp, or DeviceAllow=/dev/acp of its unit)");
}

TEST(device__that_a_container_has_not_been_given)
{
	fake.open_error = ENOENT;
	module_is_there = true;
	CHECK(start_alone() == -1);
	check_said("acp: there is no /dev/acp, but the module is loaded: in a container, pass the device to it (--device /dev/acp)");
}

TEST(device__no_module_names_modprobe)
{
	fake.open_error = ENOENT;
	CHECK(start_alone() == -1);
	check_said("acp: there is no /dev/acp: run 'modprobe acp' as root");
}

TEST(device__other_errors_are_named)
{
	fake.open_error = EMFILE;
	CHECK(start_alone() == -1);
	check_said("acp: cannot open /dev/acp: Too many open files");
}

/* ---- Joining ---- */

static const struct {
	int error;
	const char *text;
} refusals[] = {
	{ EEXIST,
	  "job 7 has this rank on this node already: another process has ACP_RANK=0, or another job ACP_JOB=7",
	},
	{ ESTALE,
	  "rank 0 of job 7 has left, but other ranks of it are still on this node: end these first, or set another ACP_JOB",
	},
	{ EADDRNOTAVAIL,
	  "this machine has the address of node 0, 127.0.0.1, but it cannot be used: the administrator has set other addresses for colors (see 'acp color show'), or it is in a VRF that this process is not in (see 'ip vrf exec')",
	},
	{ EADDRINUSE, "UDP port 16707 is taken by another program: set ACP_PORT on all ranks" },
	{ EACCES,
	  "job 7 on this node belongs to another user or has another key: choose another ACP_JOB, or the same ACP_KEYFILE on all ranks",
	},
	{ EPROTO,
	  "the ranks of job 7 on this node disagree: module version, ACP_NPROCS, ACP_NODES, ACP_PLACEMENT, ACP_PORT, ACP_INTEGRITY, ACP_PRIVACY and time-outs must be the same on all",
	},
	{ EAFNOSUPPORT, "ACP_NODES has IPv6 addresses, but this kernel has no IPv6" },
	{ EOPNOTSUPP,
	  "the module refuses new ranks: an administrator told it so (sysctl net.acp.enable, or the module's parameter)",
	},
	{ ENOSPC, "cannot join job 7 as rank 0: No space left on device" },
};

/* The library repeats the first two for five seconds each. */
TEST(join__refusals_are_said)
{
	size_t i;

	setenv("ACP_JOB", "7", 1);
	for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		fake.join_error = refusals[i].error;
		CHECK(start_alone() == -1);
		check_said("acp: %s", refusals[i].text);
	}
}

/* ---- Locked memory ---- */

/* As an unprivileged user with that limit: the messages do not depend on the machine. */
static struct rlimit memlock;

int __real_getrlimit(int resource, struct rlimit *limit);

int __wrap_getrlimit(int resource, struct rlimit *limit)
{
	if (resource != RLIMIT_MEMLOCK)
		return __real_getrlimit(resource, limit);
	*limit = memlock;
	return 0;
}

static void limit_memory(unsigned long bytes)
{
	memlock = (struct rlimit){ bytes, bytes };
	CHECK(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
}

/* 4096 bytes of it are the library page. */
TEST(memlock__join_says_sizes_and_variables)
{
	limit_memory(1000000);
	fake.join_error = ENOMEM;
	fake.limit = ACP_LIMIT_MEMLOCK;
	CHECK(start_alone() == -1);
	check_said("acp: no memory for the starter memory (ACP_STARTER_SIZE, 10240 bytes) and the heap (ACP_HEAP_SIZE, 1048576 bytes): RLIMIT_MEMLOCK is 1000000 bytes for all processes of this user together, of which this one has 0 locked, and 1064960 more are needed: raise it (ulimit -l 1040 or more, or /etc/security/limits.d/acp.conf), or end other processes");
}

/* The recommended limit is for all ranks of the node, because they belong to one user. */
TEST(memlock__join_counts_the_ranks_of_the_node)
{
	limit_memory(1000000);
	fake.join_error = ENOMEM;
	fake.limit = ACP_LIMIT_MEMLOCK;
	setenv("ACP_NPROCS", "4", 1);
	setenv("ACP_RANK", "1", 1);
	CHECK(start_alone() == -1);
	check_said("acp: rank 1: no memory for the starter memory (ACP_STARTER_SIZE, 10240 bytes) and the heap (ACP_HEAP_SIZE, 1048576 bytes): RLIMIT_MEMLOCK is 1000000 bytes for all processes of this user together, of which this one has 0 locked, and 1064960 more are needed: raise it (ulimit -l 4160 or more, or /etc/security/limits.d/acp.conf), or end other processes");
}

/* Processes that are ending may free the missing memory. */
TEST(memlock__join_waits_for_those_that_end)
{
	limit_memory(2000000);
	fake.join_error = ENOMEM;
	fake.join_errors = 3;
	fake.limit = ACP_LIMIT_MEMLOCK;
	CHECK(start_alone() == 0);
	check_said("%s", "");
}

TEST(memlock__registering_says_sizes_once)
{
	static char block[100000];

	limit_memory(65536);
	start_as("0");
	fake.reg_error = ENOMEM;
	fake.limit = ACP_LIMIT_MEMLOCK;
	CHECK(acp_register_memory(block, sizeof(block), 0) == ACP_ATKEY_NULL && errno == ENOMEM);
	check_said("acp: rank 0: cannot register 100000 bytes of memory: RLIMIT_MEMLOCK is 65536 bytes for all processes of this user together, of which this one has 0 locked, and 100000 more are needed: raise it (ulimit -l 98 or more, or /etc/security/limits.d/acp.conf), or end other processes");
	CHECK(acp_register_memory(block, sizeof(block), 0) == ACP_ATKEY_NULL && errno == ENOMEM);
	check_said("%s", "");
}

/* Files of control groups: path, text. Others are those of the machine. */
static const char *const (*groups)[2];

static const char *maps;	/* /proc/self/maps, or NULL: that of the machine */

static const char *const *counters;	/* of the node, at each look */

FILE *__real_fopen(const char *path, const char *mode);

FILE *__wrap_fopen(const char *path, const char *mode)
{
	const char *const (*file)[2];

	if (strcmp(path, "/proc/thread-self/net/acp") == 0) {
		const char *text = counters ? *counters++ : " ";

		return fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	}
	if (maps && strcmp(path, "/proc/self/maps") == 0)
		return fmemopen((void *)(uintptr_t)maps, strlen(maps), "r");
	if (strcmp(path, "/proc/self/cgroup") != 0 && strncmp(path, "/sys/fs/cgroup/", 15) != 0)
		return __real_fopen(path, mode);
	for (file = groups; file && (*file)[0]; file++)
		if (strcmp(path, (*file)[0]) == 0)
			return fmemopen((void *)(uintptr_t)(*file)[1], strlen((*file)[1]), "r");
	errno = ENOENT;
	return NULL;
}

static const char *const limited[][2] = {
	{ "/proc/self/cgroup", "1:net_cls:/\n0::/user.slice/job.scope\n" },
	{ "/sys/fs/cgroup/user.slice/job.scope/memory.max", "max\n" },
	{ "/sys/fs/cgroup/user.slice/job.scope/memory.current", "900000\n" },
	{ "/sys/fs/cgroup/user.slice/memory.max", "1000000\n" },
	{ "/sys/fs/cgroup/user.slice/memory.current", "950000\n" },
	{ NULL, NULL },
};

TEST(memory__the_control_group_whose_limit_is_met_is_named)
{
	static char block[100000];

	limit_memory(1000000);
	groups = limited;
	fake.join_error = ENOMEM;
	CHECK(start_alone() == -1);
	check_said("acp: no memory for the starter memory (ACP_STARTER_SIZE, 10240 bytes) and the heap (ACP_HEAP_SIZE, 1048576 bytes): the control group /user.slice may have 1000000 bytes (memory.max), of which 950000 are used: raise it (MemoryMax= of a unit, --memory of a container or job)");
	fake.join_error = 0;
	start_as("0");
	fake.reg_error = ENOMEM;
	CHECK(acp_register_memory(block, sizeof(block), 0) == ACP_ATKEY_NULL && errno == ENOMEM);
	check_said("acp: rank 0: cannot register 100000 bytes of memory: the control group /user.slice may have 1000000 bytes (memory.max), of which 950000 are used: raise it (MemoryMax= of a unit, --memory of a container or job)");
}

static void check_missing_of(const char *said_of_node)
{
	fake.sync_error = ETIMEDOUT;
	fake.hold = true;	/* others do not answer */
	setenv("ACP_RANK", "0", 1);
	setenv("ACP_NPROCS", "4", 1);
	setenv("ACP_NODES", "10.0.0.1 10.0.0.2", 1);
	setenv("ACP_INSECURE", "1", 1);
	setenv("ACP_INIT_TIMEOUT", "50", 1);
	CHECK(start_alone() == -1);
	check_said("acp: rank 0: warning: ACP_INSECURE=1: the network is trusted, no key protects the job\nacp: rank 0: not all 4 ranks came within 50 ms (ACP_INIT_TIMEOUT): ranks 1 to 3 did not: node 1 (10.0.0.2) does not answer%s",
		   said_of_node);
}

/* With masquerade between the nodes, it was asked whether the port is open. */
TEST(missing__the_likeliest_cause_is_named)
{
	static const char *const translated[] = {
		"tx_errors 9\ndrop_bad_source 3\n", "tx_errors 10\ndrop_bad_source 15\n",
	};
	static const char *const refused[] = {
		"tx_errors 9\ndrop_bad_source 3\n", "tx_errors 10\ndrop_bad_source 3\n",
	};
	static const char *const other_version[] = { " ", "drop_bad_version 2\ntx_errors 7\n" };
	static const char *const denied[] = { "drop_denied 1\n", "drop_denied 2\n" };
	static const char *const no_room[] = { " ", "tx_errors 7\ntx_neighbour 1\n" };

	counters = translated;
	check_missing_of(", but 12 frames came from other addresses than the nodes have, as behind address translation (masquerade): 'acp check' tells more");
	counters = refused;
	check_missing_of(", but 1 frame was refused by the network of this machine: by its routes, or by firewall rules for what it sends: 'acp check' tells more");
	counters = other_version;
	check_missing_of(", but 2 frames of another version of the module came, which must be the same on all nodes: 'acp check' tells more");
	counters = denied;
	check_missing_of(", but 1 frame was refused by a BPF program of this control group: 'acp check' tells more");
	counters = no_room;
	check_missing_of(", but 1 frame had no room in the neighbour table (sysctl net.ipv4.neigh.default.gc_thresh3 or net.ipv6...): 'acp check' tells more");
}

static const char *const contained[][2] = {
	{ "/proc/self/cgroup", "0::/\n" },
	{ "/sys/fs/cgroup/memory.max", "1000000\n" },
	{ "/sys/fs/cgroup/memory.current", "950000\n" },
	{ NULL, NULL },
};

/* RLIMIT_MEMLOCK was said to be 18446744073709551615. */
TEST(memory__no_limit_is_no_number)
{
	limit_memory(RLIM_INFINITY);
	fake.join_error = ENOMEM;
	fake.limit = ACP_LIMIT_MEMLOCK;
	fake.join_errors = 1000000;
	setenv("ACP_INIT_TIMEOUT", "50", 1);
	groups = contained;
	CHECK(start_alone() == -1);
	check_said("acp: no memory for the starter memory (ACP_STARTER_SIZE, 10240 bytes) and the heap (ACP_HEAP_SIZE, 1048576 bytes): the control group / may have 1000000 bytes (memory.max), of which 950000 are used: raise it (MemoryMax= of a unit, --memory of a container or job)");
	groups = NULL;
	CHECK(start_alone() == -1);
	check_said("acp: no memory for the starter memory (ACP_STARTER_SIZE, 10240 bytes) and the heap (ACP_HEAP_SIZE, 1048576 bytes): too little memory of this machine is free");
}

/* The module reports which limit it was. */
TEST(memlock__without_a_limit_the_machine_is_named)
{
	limit_memory(1000000);
	fake.join_error = ENOMEM;
	CHECK(start_alone() == -1);
	check_said("acp: no memory for the starter memory (ACP_STARTER_SIZE, 10240 bytes) and the heap (ACP_HEAP_SIZE, 1048576 bytes): too little memory of this machine is free");
}

/* What a user sees; test_lib_boot has all cases. */
TEST(variables__unknown_and_wrong_ones_are_named)
{
	setenv("ACP_HEAPSIZE", "4M", 1);
	CHECK(start_alone() == 0);
	check_said("acp: warning: unknown variable ACP_HEAPSIZE: ACP_HEAP_SIZE was probably meant");
	CHECK(acp_finalize() == 0);
	unsetenv("ACP_HEAPSIZE");
	setenv("ACP_PORT", "http", 1);
	CHECK(start_alone() == -1);
	check_said("acp: ACP_PORT=http: want a port number from 1 to 65535");
}

static const char several_maps[] =
	"10000000-10002000 rw-p 00000000 00:00 0\n"
	"10002000-10003000 r--p 00000000 00:00 0                          [heap]\n"
	"10003000-10004000 ---p 00000000 00:00 0\n"
	"10004000-10005000 rw-s 00000000 00:05 7                          /proc/self/status\n"
	"10005000-10006000 r--s 00000000 00:05 7                          /memfd:a b (deleted)\n"
	"10006000-10007000 rw-s 00000000 00:05 7                          /memfd:a b (deleted)\n"
	"10008000-10009000 r-xp 00000000 00:00 0                          [vdso]\n";

static void check_mapping(uint64_t start, uint64_t end, bool writable, const char *wanted)
{
	char text[LIBACP_MAPPING_TEXT];

	libacp_mapping_text(start, end, writable, text);
	if (strcmp(text, wanted) != 0)
		printf("# %s\n", text);
	CHECK(strcmp(text, wanted) == 0);
}

/* Registering failed with EFAULT, without a word of what is in the way. */
TEST(mapping__the_one_in_the_way_is_named)
{
	maps = several_maps;
	check_mapping(0x10000000, 0x10003000, true, "0x10002000-0x10003000 ([heap]) is not writable: use mprotect(), or register it with ACPX_ACCESS_RO");
	check_mapping(0x10001ff8, 0x10004000, false, "0x10003000-0x10004000 is not readable: use mprotect()");
	check_mapping(0x10004ff0, 0x10004ff8, true, "0x10004000-0x10005000 (/proc/self/status) is a shared mapping of a file or device: use MAP_PRIVATE, memfd_create() or a file in /dev/shm");
	check_mapping(0x10005000, 0x10006000, false, "0x10005000-0x10006000 (/memfd:a b (deleted)) is a shared mapping that is not writable: map it with MAP_PRIVATE");
	check_mapping(0x10006000, 0x10009000, true, "0x10007000-0x10008000 is not mapped");
	check_mapping(0x10006000, 0x10007800, true, "0x10007000-0x10008000 is not mapped");
	check_mapping(0x10008000, 0x10009000, false, "0x10008000-0x10009000 ([vdso]) belongs to the kernel");
	check_mapping(0x10008800, 0x10009001, true, "0x10008000-0x10009000 ([vdso]) belongs to the kernel");
	check_mapping(0x20000000, 0x20001000, true, "0x20000000-0x20001000 is not mapped");
	check_mapping(0x10000ff0, 0x10001010, true, "a part of it is not mapped, or of a kind that cannot be pinned");
	maps = " ";
	check_mapping(0x10000000, 0x10001000, true, "0x10000000-0x10001000 is not mapped");
}

TEST(mapping__registering_names_it_once)
{
	void *hole = (void *)(uintptr_t)0x10006800;

	start_as("0");
	maps = several_maps;
	fake.reg_error = EFAULT;
	CHECK(acp_register_memory(hole, 4096, 0) == ACP_ATKEY_NULL && errno == EFAULT);
	check_said("acp: rank 0: cannot register 4096 bytes of memory: 0x10007000-0x10008000 is not mapped");
	CHECK(acp_register_memory(hole, 4096, 0) == ACP_ATKEY_NULL && errno == EFAULT);
	check_said("%s", "");
}

TEST(limit__registering_names_the_sysctl)
{
	static char block[100];

	start_as("0");
	fake.reg_error = EDQUOT;
	CHECK(acp_register_memory(block, sizeof(block), 0) == ACP_ATKEY_NULL && errno == EDQUOT);
	check_said("acp: rank 0: cannot register 100 bytes of memory: the administrator's limit net.acp is reached: see 'sysctl net.acp'");
}

TEST(limit__of_all_users_names_the_parameter)
{
	static char block[100];

	start_as("0");
	fake.reg_error = EDQUOT;
	fake.limit = ACP_LIMIT_MEMORY;
	CHECK(acp_register_memory(block, sizeof(block), 0) == ACP_ATKEY_NULL && errno == EDQUOT);
	check_said("acp: rank 0: cannot register 100 bytes of memory: the administrator's limit memory (KiB of all users) is reached: see 'cat /sys/module/acp/parameters/memory'");
}

TEST(limit__each_has_its_name)
{
	static const char *const names[] = {
		[ACP_LIMIT_JOBS] = "net.acp.jobs (jobs on this node)",
		[ACP_LIMIT_USER_JOBS] = "net.acp.user_jobs (jobs of a user)",
		[ACP_LIMIT_USER_RANKS] = "net.acp.user_ranks (ranks of a user)",
		[ACP_LIMIT_USER_REGIONS] = "net.acp.user_regions (registered regions of a user)",
		[ACP_LIMIT_USER_MEMORY] = "net.acp.user_memory (KiB of a user)",
		[ACP_LIMIT_DEPTH] = "net.acp.depth (ACP_QUEUE_DEPTH)",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!names[i])
			continue;
		fake.join_error = EDQUOT;
		fake.limit = (uint32_t)i;
		CHECK(start_alone() == -1);
		check_said("acp: the administrator's limit %s is reached: see 'sysctl net.acp'",
			   names[i]);
	}
}

/* ---- Heaps ---- */

TEST(heap__full_says_sizes_and_variable)
{
	setenv("ACP_HEAP_SIZE", "64K", 1);
	start_as("0");
	CHECK(acp_malloc(40000, 0) != ACP_GA_NULL);
	check_said("%s", "");
	CHECK(acp_malloc(50000, 0) == ACP_GA_NULL && errno == ENOMEM);
	check_said("acp: rank 0: acp_malloc: the heap of rank 0 is full: no 50000 bytes are free in one piece, 40016 of 65536 bytes are in use: set ACP_HEAP_SIZE for that rank, for example to 1M");
	CHECK(acp_malloc(50000, 0) == ACP_GA_NULL && errno == ENOMEM);
	check_said("%s", "");
}

TEST(heap__full_asks_for_more_than_there_is)
{
	start_as("1");
	CHECK(acp_malloc(3000000, 1) == ACP_GA_NULL && errno == ENOMEM);
	check_said("acp: rank 1: acp_malloc: the heap of rank 1 is full: no 3000000 bytes are free in one piece, 0 of 1048576 bytes are in use: set ACP_HEAP_SIZE for that rank, for example to 4M");
}

TEST(heap__none_says_so)
{
	setenv("ACP_HEAP_SIZE", "100", 1);
	start_as("0");
	CHECK(acp_malloc(8, 0) == ACP_GA_NULL && errno == ENOMEM);
	check_said("acp: rank 0: acp_malloc: rank 0 has no heap, or one that is too small for any block: set ACP_HEAP_SIZE for that rank (1M is usual)");
}

TEST(free__debug_tells_double_from_foreign)
{
	acp_ga_t ga, starter;
	int variable = 0;

	setenv("ACP_DEBUG", "1", 1);
	start_as("0");
	starter = acp_query_starter_ga(2);
	ga = acp_malloc(100, 0);
	acp_malloc(100, 0);
	acp_free(ga);
	check_said("%s", "");
	acp_free(ga);
	check_said("acp: rank 0: acp_free: 0x%016llx: this block in the heap of rank 0 was freed before",
		   (unsigned long long)ga);
	acp_free(ga + 8);
	check_said("acp: rank 0: acp_free: 0x%016llx: no block begins there, at offset %llu of the heap of rank 0",
		   (unsigned long long)(ga + 8),
		   (unsigned long long)(ga + 8 - acpx_query_heap_ga(0)));
	acp_free(starter + 8);
	check_said("acp: rank 0: acp_free: 0x%016llx: this is memory of rank 2, but not in its heap",
		   (unsigned long long)(starter + 8));
	acp_free((acp_ga_t)(uintptr_t)&variable);
	check_said("acp: rank 0: acp_free: 0x%016llx: this is a pointer, not a global address",
		   (unsigned long long)(uintptr_t)&variable);
	acp_free(12345);
	check_said("acp: rank 0: acp_free: 0x0000000000003039: this is no global address of any rank");
	acp_free(ACP_GA_NULL);
	check_said("%s", "");
}

TEST(free__says_nothing_without_debug)
{
	acp_ga_t ga;

	start_as("0");
	ga = acp_malloc(100, 0);
	acp_free(ga);
	acp_free(ga);
	acp_free(12345);
	check_said("%s", "");
}

/* ---- Ranks that are gone ---- */

static void lose(int rank, uint32_t status)
{
	fake.states[rank] = ACP_RANK_DOWN;
	fake.statuses[rank] = status;
}

/* A child of a rank is none: the rank begins in the child. */
static void sync_fails(void)
{
	start_as("0");
	fake.sync_error = EPIPE;
	acp_sync();
}

static void finalize_fails(void)
{
	start_as("0");
	fake.sync_error = EPIPE;
	acp_finalize();
}

TEST(sync__names_those_that_left)
{
	keep_errors();
	lose(2, ACP_ST_RANK);
	CHECK(status_of(sync_fails) == 255);
	check_said("acp: rank 0: acp_sync failed: rank 2 left without acp_finalize");
	lose(3, ACP_ST_RANK);
	CHECK(status_of(sync_fails) == 255);
	check_said("acp: rank 0: acp_sync failed: ranks 2 and 3 left without acp_finalize");
	lose(1, ACP_ST_RANK);
	CHECK(status_of(finalize_fails) == 255);
	check_said("acp: rank 0: acp_finalize failed: ranks 1 to 3 left without acp_finalize");
}

TEST(sync__names_those_out_of_reach)
{
	keep_errors();
	lose(2, ACP_ST_TIMEOUT);
	lose(3, ACP_ST_TIMEOUT);
	CHECK(status_of(sync_fails) == 255);
	check_said("acp: rank 0: acp_sync failed: ranks 2 and 3 cannot be reached: the other node has been silent too long");
	lose(1, ACP_ST_RANK);
	CHECK(status_of(sync_fails) == 255);
	check_said("acp: rank 0: acp_sync failed: rank 1 left without acp_finalize, and ranks 2 and 3 cannot be reached: the other node has been silent too long");
}

TEST(sync__says_so_if_nobody_knows_who)
{
	keep_errors();
	CHECK(status_of(sync_fails) == 255);
	check_said("acp: rank 0: acp_sync failed: a rank left without acp_finalize");
}

TEST(sync__returns_if_errors_are_returned)
{
	start_as("0");
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	fake.sync_error = EPIPE;
	CHECK(acp_sync() == -1 && errno == EPIPE);
	CHECK(acp_finalize() == -1);
	check_said("%s", "");
}

TEST(ranks__many_are_counted)
{
	struct libacp_ranks ranks = { 0 };
	char text[LIBACP_RANKS_TEXT];
	uint32_t i;

	for (i = 0; i < 11; i++)
		libacp_ranks_add(&ranks, 2 * i + 1);
	libacp_ranks_name(&ranks, text);
	if (strcmp(text, "ranks 1, 3, 5, 7, 9, 11, 13, 15 and 3 more") != 0)
		FAIL("%s", text);
}

static void aborts(void)
{
	acp_abort("no fish");
}

static void rank_aborts(void)
{
	start_as("0");
	acp_abort("no fish");
}

TEST(abort__says_the_text_of_the_program)
{
	keep_errors();
	CHECK(status_of(aborts) == 255);
	check_said("acp_abort: no fish");
	CHECK(status_of(rank_aborts) == 255);
	check_said("acp_abort: rank 0: no fish");
}

/* ---- Accesses that fail ---- */

static acp_ga_t wrong_dst, wrong_src;
static size_t wrong_size;
static char variable[64];

static acp_ga_t starter(int rank, size_t offset)
{
	return acp_query_starter_ga(rank) + offset;
}

static void copy_fails(void)
{
	acp_complete(acp_copy(wrong_dst, wrong_src, wrong_size, ACP_HANDLE_NULL));
}

/* Return an address that is the same in each process: of a rank of four, without joining. */
static acp_ga_t address(uint32_t rank, uint32_t color, uint32_t stag, uint64_t offset)
{
	const struct acp_ga_layout l = acp_ga_layout(4);

	return acp_ga_make(&l, rank, color, stag, offset);
}

static void rank_copies(void)
{
	start_as("0");
	fake.far = true;
	copy_fails();
}

static void check_copy(acp_ga_t dst, acp_ga_t src, size_t size)
{
	keep_errors();
	wrong_dst = dst;
	wrong_src = src;
	wrong_size = size;
	CHECK(status_of(rank_copies) == 255);
}

#define PLACES "(dst 0x%016llx of rank %d on node %d, src 0x%016llx of rank %d on node %d)"

TEST(access__range_says_end_offset_size_and_distance)
{
	const acp_ga_t there = address(3, 0, ACP_STAG_STARTER, 10240);
	const acp_ga_t here = address(0, 0, ACP_STAG_STARTER, 0);

	check_copy(there, here, 8);
	check_said("acp: rank 0: acp_copy failed: reaches beyond the registered memory: dst, "
		   "8 bytes at offset 10240 of the starter memory of rank 3 on node 1, ends 8 "
		   "bytes beyond it, whose size is 10240 bytes " PLACES,
		   (unsigned long long)there, 3, 1, (unsigned long long)here, 0, 0);
	check_copy(there - 10240 + 8, here + 10000, 1000);
	check_said("acp: rank 0: acp_copy failed: reaches beyond the registered memory: src, "
		   "1000 bytes at offset 10000 of the starter memory of rank 0 on node 0, "
		   "ends 760 bytes beyond it, whose size is 10240 bytes " PLACES,
		   (unsigned long long)there - 10232, 3, 1, (unsigned long long)here + 10000, 0, 0);
	check_copy(address(1, 0, ACP_STAG_HEAP, 1 << 20), here, 16);
	check_said("acp: rank 0: acp_copy failed: reaches beyond the registered memory: dst, "
		   "16 bytes at offset 1048576 of the heap of rank 1 on node 0, ends 16 bytes "
		   "beyond it, whose size is 1048576 bytes " PLACES,
		   (unsigned long long)address(1, 0, ACP_STAG_HEAP, 1 << 20), 1, 0,
		   (unsigned long long)here, 0, 0);
}

/* To and from memory of this rank, before its beginning. */
static void copies_before_memory(void)
{
	static char block[200] __attribute__((aligned(4096)));
	acp_ga_t ga;

	start_as("0");
	ga = acp_query_ga(acp_register_memory(block + 64, 100, 0), block + 64);
	acp_complete(acp_copy(ga - 8, starter(3, 0), 8, ACP_HANDLE_NULL));
}

TEST(access__before_memory_says_by_how_much)
{
	acp_ga_t ga = address(0, 0, ACP_STAG_USER, 64 - 8);

	keep_errors();
	CHECK(status_of(copies_before_memory) == 255);
	check_said("acp: rank 0: acp_copy failed: reaches beyond the registered memory: dst "
		   "begins 8 bytes before memory registered by rank 0 on node 0, whose size is "
		   "100 bytes " PLACES, (unsigned long long)ga, 0, 0,
		   (unsigned long long)address(3, 0, ACP_STAG_STARTER, 0), 3, 1);
}

static void strided_fails(void)
{
	start_as("0");
	fake.far = true;
	acp_complete(acpx_copy_strided(starter(3, 10224), starter(0, 0), 8, 2, 16, 8,
				       ACP_HANDLE_NULL));
}

TEST(access__strided_is_measured_from_first_to_last_byte)
{
	keep_errors();
	CHECK(status_of(strided_fails) == 255);
	check_said("acp: rank 0: acpx_copy_strided failed: reaches beyond the registered memory: "
		   "dst, 24 bytes at offset 10224 of the starter memory of rank 3 on node 1, ends "
		   "8 bytes beyond it, whose size is 10240 bytes " PLACES,
		   (unsigned long long)address(3, 0, ACP_STAG_STARTER, 10224), 3, 1,
		   (unsigned long long)address(0, 0, ACP_STAG_STARTER, 0), 0, 0);
}

static int signal_op;

static void signal_fails(void)
{
	start_as("0");
	fake.far = true;
	acp_complete(acpx_copy_signal(starter(3, 0), starter(0, 0), 8, starter(3, 10240), 1,
				      signal_op, ACP_HANDLE_NULL));
}

TEST(access__flags_are_an_end)
{
	keep_errors();
	for (signal_op = ACPX_SIGNAL_SET; signal_op <= ACPX_SIGNAL_ADD; signal_op++) {
		CHECK(status_of(signal_fails) == 255);
		check_said("acp: rank 0: acpx_copy_signal failed: reaches beyond the registered "
			   "memory: flag, 8 bytes at offset 10240 of the starter memory of rank 3 "
			   "on node 1, ends 8 bytes beyond it, whose size is 10240 bytes " PLACES,
			   (unsigned long long)address(3, 0, ACP_STAG_STARTER, 0), 3, 1,
			   (unsigned long long)address(0, 0, ACP_STAG_STARTER, 0), 0, 0);
	}
}

static void named_are_lost(void)
{
	start_as("0");
	fake.lost_after = 1;
	fake.syncs = 1;
	acp_complete(acpx_wait_word_of(starter(0, 64), 1, (const int[]){ 3, 0, 2 }, 3,
				       ACP_HANDLE_NULL));
}

TEST(access__wait_names_who_is_lost)
{
	keep_errors();
	CHECK(status_of(named_are_lost) == 255);
	check_said("acp: rank 0: acpx_wait_word failed: %s: one of those that write to the word is "
		   "lost: rank 3 0 2 (word 0x%016llx of rank 0 on node 0)",
		   acpx_strerror(ACPX_ETIMEOUT),
		   (unsigned long long)address(0, 0, ACP_STAG_STARTER, 64));
}

static size_t sent_size;
static bool astray;	/* not to the mailbox, but to where memory ends */

static void send_fails(void)
{
	acpx_mailbox_t box;

	start_as("0");
	fake.far = true;
	acpx_mailbox_create(1000, 0, &box);
	acp_complete(acpx_send(astray ? starter(3, 10184) : acpx_mailbox_ga(box), starter(0, 0),
			       sent_size, 1, 0, ACP_HANDLE_NULL));
}

TEST(access__mailboxes_have_a_size_of_their_own)
{
	const unsigned long long box = address(0, 0, ACP_STAG_HEAP, 320);
	const unsigned long long here = address(0, 0, ACP_STAG_STARTER, 0);

	sent_size = 977;
	keep_errors();
	CHECK(status_of(send_fails) == 255);
	check_said("acp: rank 0: acpx_send failed: reaches beyond the registered memory: a "
		   "message of 977 bytes is longer than the mailbox: pass more to "
		   "acpx_mailbox_create(), 24 bytes more than the message at least " PLACES, box, 0,
		   0, here, 0, 0);
	astray = true;
	sent_size = 0;
	CHECK(status_of(send_fails) == 255);
	check_said("acp: rank 0: acpx_send failed: reaches beyond the registered memory: mailbox, "
		   "64 bytes at offset 10184 of the starter memory of rank 3 on node 1, ends 8 "
		   "bytes beyond it, whose size is 10240 bytes " PLACES,
		   (unsigned long long)address(3, 0, ACP_STAG_STARTER, 10184), 3, 1, here, 0, 0);
}

/* The device that is played does none of these. */
#define CALL(op, width, ...)								\
	static void op##width##_fails(void)						\
	{										\
		start_as("0");								\
		fake.far = true;							\
		acp_complete(acp_##op##width(starter(0, 0), starter(3, 0), __VA_ARGS__,	\
					     ACP_HANDLE_NULL));				\
	}
CALL(cas, 4, 1, 2)
CALL(cas, 8, 1, 2)
CALL(swap, 4, 1)
CALL(swap, 8, 1)
CALL(add, 4, 1)
CALL(xor, 4, 1)
CALL(xor, 8, 1)
CALL(or, 4, 1)
CALL(or, 8, 1)
CALL(and, 4, 1)
CALL(and, 8, 1)

TEST(access__each_operation_has_its_name)
{
	static const struct {
		void (*run)(void);
		const char *name;
	} calls[] = {
		{ cas4_fails, "acp_cas4" }, { cas8_fails, "acp_cas8" },
		{ swap4_fails, "acp_swap4" }, { swap8_fails, "acp_swap8" },
		{ add4_fails, "acp_add4" }, { xor4_fails, "acp_xor4" },
		{ xor8_fails, "acp_xor8" }, { or4_fails, "acp_or4" }, { or8_fails, "acp_or8" },
		{ and4_fails, "acp_and4" }, { and8_fails, "acp_and8" },
	};
	size_t i;

	keep_errors();
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		CHECK(status_of(calls[i].run) == 255);
		check_said("acp: rank 0: %s failed: impossible argument " PLACES, calls[i].name,
			   (unsigned long long)address(0, 0, ACP_STAG_STARTER, 0), 0, 0,
			   (unsigned long long)address(3, 0, ACP_STAG_STARTER, 0), 3, 1);
	}
}

TEST(access__pointers_are_called_so)
{
	const acp_ga_t here = address(0, 0, ACP_STAG_STARTER, 0);

	check_copy((uintptr_t)variable, here, 8);
	check_said("acp: rank 0: acp_copy failed: not a global address of any rank: dst 0x%llx: this is a pointer, not a global address: register the memory and ask acp_query_ga() (dst 0x%016llx of no rank, src 0x%016llx of rank 0 on node 0)",
		   (unsigned long long)(uintptr_t)variable, (unsigned long long)(uintptr_t)variable,
		   (unsigned long long)here);
	check_copy(here, 4096, 8);
	check_said("acp: rank 0: acp_copy failed: not a global address of any rank: src is no address in this job of 4 ranks (dst 0x%016llx of rank 0 on node 0, src 0x0000000000001000 of no rank)",
		   (unsigned long long)here);
	check_copy(here, ACP_GA_NULL, 8);
	check_said("acp: rank 0: acp_copy failed: not a global address of any rank: src is ACP_GA_NULL (dst 0x%016llx of rank 0 on node 0, src 0x0000000000000000 of no rank)",
		   (unsigned long long)here);
	check_copy(address(1, 2, 5, 0), here, 8);
	check_said("acp: rank 0: acp_copy failed: not a global address of any rank: dst has color 2, the job has 1 (dst 0x%016llx of no rank, src 0x%016llx of rank 0 on node 0)",
		   (unsigned long long)address(1, 2, 5, 0), (unsigned long long)here);
}

TEST(access__memory_that_is_not_registered)
{
	const acp_ga_t there = address(2, 0, 9, 64), here = address(0, 0, ACP_STAG_STARTER, 0);

	check_copy(here, there, 8);
	check_said("acp: rank 0: acp_copy failed: no such memory: never registered, or no "
		   "longer: src is in no memory that rank 2 on node 1 has registered now " PLACES,
		   (unsigned long long)here, 0, 0, (unsigned long long)there, 2, 1);
}

static void add_fails(void)
{
	start_as("0");
	fake.far = true;
	acp_complete(acp_add8(starter(0, 0), starter(3, 4), 1, ACP_HANDLE_NULL));
}

TEST(access__alignment_names_the_end)
{
	keep_errors();
	CHECK(status_of(add_fails) == 255);
	check_said("acp: rank 0: acp_add8 failed: address of an atomic not aligned to its "
		   "size: src, at offset 4, is no multiple of 8 " PLACES,
		   (unsigned long long)address(0, 0, ACP_STAG_STARTER, 0), 0, 0,
		   (unsigned long long)address(3, 0, ACP_STAG_STARTER, 4), 3, 1);
}

TEST_MAIN
