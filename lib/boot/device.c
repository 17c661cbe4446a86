// SPDX-License-Identifier: MIT
/* Opening the device, and explaining failures. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "acp_abi.h"
#include "boot/device.h"
#include "core/internal.h"

#define NAME_BYTES	64
#define GROUP		"acp"		/* set by the udev rule */

/* Write the name of the effective user, or its number. */
static void user_name(char name[NAME_BYTES])
{
	const struct passwd *user = getpwuid(geteuid());

	if (user)
		snprintf(name, NAME_BYTES, "%s", user->pw_name);
	else
		snprintf(name, NAME_BYTES, "%u", (unsigned int)geteuid());
}

/* Write the name of the group that may use the device. False if only root may. */
static bool group_name(char name[NAME_BYTES], gid_t *id)
{
	const struct group *group;
	struct stat st;

	snprintf(name, NAME_BYTES, GROUP);
	*id = (gid_t)-1;
	if (stat(ACP_DEVICE, &st) < 0)
		return true;
	*id = st.st_gid;
	group = getgrgid(st.st_gid);
	if (group)
		snprintf(name, NAME_BYTES, "%s", group->gr_name);
	return st.st_gid != 0 && (st.st_mode & 060) == 060;
}

static bool is_member(gid_t id, const char *user)
{
	const struct group *group = getgrgid(id);
	char *const *member = group ? group->gr_mem : NULL;

	while (member && *member && strcmp(*member, user) != 0)
		member++;
	return member && *member;
}

/* On such a mount, open() fails whatever the permissions are. */
static bool is_nodev(void)
{
	struct statvfs mount;

	return statvfs(ACP_DEVICE, &mount) == 0 && mount.f_flag & ST_NODEV;
}

static void explain_permission(void)
{
	char user[NAME_BYTES], group[NAME_BYTES];
	gid_t id;

	user_name(user);
	if (is_nodev())
		libacp_error("no permission to use " ACP_DEVICE ", since devices cannot be used where it is: mount that file system without nodev, or use the /dev of the system");
	else if (faccessat(AT_FDCWD, ACP_DEVICE, R_OK | W_OK, AT_EACCESS) == 0)
		libacp_error("no permission to use " ACP_DEVICE ", although its mode permits it: a security module (AppArmor, SELinux) forbids it, as the kernel's log tells");
	else if (!group_name(group, &id))
		libacp_error("no permission to use %s, which is for root only: install the udev rule 90-acp.rules and run 'udevadm trigger %s'",
			     ACP_DEVICE, ACP_DEVICE);
	else if (is_member(id, user))
		libacp_error("no permission to use " ACP_DEVICE ": this session began before user %s became a member of group %s: log in again",
			     user, group);
	else
		libacp_error("no permission to use " ACP_DEVICE ": run 'usermod -a -G %s %s' as root and log in again",
			     group, user);
}

/* The control group refuses devices with another error than file permissions do. */
static void explain_container(void)
{
	libacp_error("this container or service may not use %s: pass the device to it (--device %s, or DeviceAllow=%s of its unit)",
		     ACP_DEVICE, ACP_DEVICE, ACP_DEVICE);
}

static void explain_absence(void)
{
	if (access("/sys/module/acp", F_OK) == 0)
		libacp_error("there is no %s, but the module is loaded: in a container, pass the device to it (--device %s)",
			     ACP_DEVICE, ACP_DEVICE);
	else
		libacp_error("there is no " ACP_DEVICE ": run 'modprobe acp' as root");
}

int libacp_device_open(void)
{
	int fd = open(ACP_DEVICE, O_RDWR | O_CLOEXEC);
	int error = errno;

	if (fd >= 0)
		return fd;
	if (error == EACCES)
		explain_permission();
	else if (error == EPERM)
		explain_container();
	else if (error == ENOENT || error == ENXIO || error == ENODEV)
		explain_absence();
	else
		libacp_error("cannot open " ACP_DEVICE ": %s", strerror(error));
	errno = error;
	return -1;
}
