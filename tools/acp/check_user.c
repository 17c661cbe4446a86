// SPDX-License-Identifier: MIT
/* acp check: device, locked memory, user namespace. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <pwd.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <unistd.h>

#include "acp_abi.h"
#include "check.h"

/* ---- /dev/acp ---- */

/* True if this is the device number that the module was assigned, for example "10:123". */
static bool is_device(const struct stat *s)
{
	unsigned int major_number, minor_number;
	char text[40];

	if (!S_ISCHR(s->st_mode))
		return false;
	if (!ctl_read_line("/sys/class/misc/acp/dev", text, sizeof(text)) ||
	    sscanf(text, "%u:%u", &major_number, &minor_number) != 2)
		return true;	/* nothing to compare with */
	return major(s->st_rdev) == major_number && minor(s->st_rdev) == minor_number;
}

static const char *user_name(void)
{
	const struct passwd *p = getpwuid(geteuid());

	return p != NULL ? p->pw_name : "USER";
}

static void note_refused(struct ctl_findings *f, const struct stat *s)
{
	const struct group *g = getgrgid(s->st_gid);
	char remedy[400];

	struct statvfs mount;

	if (statvfs(ACP_DEVICE, &mount) == 0 && mount.f_flag & ST_NODEV) {
		ctl_found(f, CTL_BAD, "device",
			  "Mount that file system without nodev, or use the /dev of the system.",
			  "devices cannot be used where " ACP_DEVICE " is");
		return;
	}
	if (faccessat(AT_FDCWD, ACP_DEVICE, R_OK | W_OK, AT_EACCESS) == 0) {
		ctl_found(f, CTL_BAD, "device",
			  "Ask the administrator of AppArmor or SELinux; the kernel's log tells which.",
			  "a security module forbids the use of " ACP_DEVICE);
		return;
	}
	if ((s->st_mode & 0060) == 0060 && s->st_gid != 0)
		snprintf(remedy, sizeof(remedy),
			 "As root: usermod -a -G %s %s; it counts from the next login on.",
			 g != NULL ? g->gr_name : "GROUP", user_name());
	else
		snprintf(remedy, sizeof(remedy),
			 "As root, make a group for it and install the udev rule 90-acp.rules: "
			 "groupadd --system acp; usermod -a -G acp %s; udevadm control --reload; "
			 "udevadm trigger /dev/acp.",
			 user_name());
	ctl_found(f, CTL_BAD, "device", remedy,
		  "%s may not open " ACP_DEVICE ": mode %04o, user %u, group %s", user_name(),
		  (unsigned int)s->st_mode & 07777, (unsigned int)s->st_uid,
		  g != NULL ? g->gr_name : "unknown");
}

void ctl_check_device(struct ctl_findings *f)
{
	struct stat s;
	int fd;

	if (stat(ACP_DEVICE, &s) != 0) {
		ctl_found(f, CTL_BAD, "device", f->loaded ?
			  "In a container, give it the device (--device " ACP_DEVICE "); else see "
			  "whether udev runs: udevadm trigger /sys/class/misc/acp." :
			  "It comes with the module.",
			  "there is no " ACP_DEVICE);
		return;
	}
	if (!is_device(&s)) {
		ctl_found(f, CTL_BAD, "device",
			  "As root: rm " ACP_DEVICE " && udevadm trigger --action=add "
			  "/sys/class/misc/acp.",
			  ACP_DEVICE " is not the module's device");
		return;
	}
	fd = open(ACP_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		ctl_found(f, CTL_GOOD, "device", NULL, ACP_DEVICE " can be opened");
	} else if (errno == EACCES) {
		note_refused(f, &s);
	} else if (errno == EPERM) {
		ctl_found(f, CTL_BAD, "device",
			  "Give it the device: --device " ACP_DEVICE ", or DeviceAllow=" ACP_DEVICE
			  " in the unit of a service.",
			  ACP_DEVICE " is there, but this container or service may not use it");
	} else {
		ctl_found(f, CTL_BAD, "device", f->loaded ? "dmesg may say why." :
			  "It comes with the module.", "opening " ACP_DEVICE ": %s",
			  strerror(errno));
	}
}

/* ---- Locked memory ---- */

#define MIB		(1ULL << 20)
#define NEEDED		(1040ULL << 10)	/* bytes that a rank locks with default sizes */
#define WANTED		(64 * MIB)	/* more than the 8 MiB that is the default of systems */

/*
 * Return 1 if user IDs are those of the initial user namespace, 0 if they are mapped, -1 if no
 * mapping was set yet.
 */
static int is_first_userns(void)
{
	unsigned long inside, outside, count;
	char line[100];

	if (!ctl_read_line("/proc/self/uid_map", line, sizeof(line)) ||
	    sscanf(line, "%lu %lu %lu", &inside, &outside, &count) != 3)
		return -1;
	return inside == 0 && outside == 0 && count >= UINT32_MAX;
}

/* Capabilities within a user namespace do not permit to lock memory. */
static bool may_lock_all(void)
{
	unsigned long long effective = 0;
	char line[200];
	FILE *file = fopen("/proc/self/status", "re");

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "CapEff: %llx", &effective) == 1)
			break;
	if (file != NULL)
		fclose(file);
	return is_first_userns() == 1 && (effective >> CAP_IPC_LOCK & 1);
}

void ctl_check_memlock(struct ctl_findings *f)
{
	static const char remedy[] =
		"Raise it: @acp hard memlock unlimited and the same with soft, in "
		"/etc/security/limits.d/acp.conf (a sample is installed), then log in again; for "
		"services LimitMEMLOCK=infinity in their unit.";
	unsigned long long now;
	struct rlimit r;

	if (getrlimit(RLIMIT_MEMLOCK, &r) != 0) {
		ctl_found(f, CTL_SKIPPED, "memlock", NULL, "RLIMIT_MEMLOCK: %s", strerror(errno));
		return;
	}
	now = r.rlim_cur;
	if (r.rlim_cur == RLIM_INFINITY)
		ctl_found(f, CTL_GOOD, "memlock", NULL, "any amount of memory can be locked");
	else if (may_lock_all())
		ctl_found(f, CTL_GOOD, "memlock", NULL,
			  "the limit is %llu KiB, but not for this user (CAP_IPC_LOCK)", now >> 10);
	else if (now < NEEDED)
		ctl_found(f, CTL_BAD, "memlock", remedy,
			  "%llu KiB of memory can be locked; a rank needs %llu KiB, unless "
			  "ACP_HEAP_SIZE is less than the usual 1 MiB",
			  now >> 10, NEEDED >> 10);
	else if (now < WANTED)
		ctl_found(f, CTL_WARN, "memlock", remedy,
			  "%llu KiB of memory can be locked by all processes of a user together, "
			  "heaps included: %llu ranks on this node, if they register nothing",
			  now >> 10, now / NEEDED);
	else
		ctl_found(f, CTL_GOOD, "memlock", NULL, "%llu MiB of memory can be locked",
			  now / MIB);
}

/* ---- User namespace ---- */

void ctl_check_userns(struct ctl_findings *f)
{
	int first = is_first_userns();

	if (first < 0) {
		ctl_found(f, CTL_SKIPPED, "userns", NULL,
			  "/proc/self/uid_map is empty: user numbers mean nothing here yet");
		return;
	}
	if (first)
		ctl_found(f, CTL_GOOD, "userns", NULL, "not in a user namespace of its own");
	else
		ctl_found(f, CTL_WARN, "userns",
			  "If a limit is reached here, look at that user's others, and have the "
			  "device given into the container with a group that is mapped.",
			  "in a user namespace: ranks and memory count for the user who made it, "
			  "and " ACP_DEVICE " may belong to nobody here");
}
