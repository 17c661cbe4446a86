// SPDX-License-Identifier: MIT
/* Loading and removing the module in tests (see reload.h). */
#include "isolated.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "rank.h"
#include "reload.h"

/* The file of the module, as provided by selftests/guest-run. */
static int module_file(void)
{
	const char *build = getenv("ACP_BUILD");
	struct utsname u;
	char path[400];
	int fd;

	uname(&u);
	snprintf(path, sizeof(path), "%s/%s/acp.ko", build ? build : "build", u.release);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		SKIP("%s: %s", path, strerror(errno));
	return fd;
}

int module_load(const char *parameters)
{
	int fd = module_file(), error;

	error = syscall(SYS_finit_module, fd, parameters, 0) ? errno : 0;
	close(fd);
	return -error;
}

int module_unload(void)
{
	return syscall(SYS_delete_module, "acp", O_NONBLOCK) ? -errno : 0;
}

void module_unload_soon(void)
{
	int i, error = 0;

	for (i = 0; i < 500; i++) {
		error = module_unload();
		if (!error)
			return;
		sleep_ms(10);
	}
	FAIL("cannot unload: %s", strerror(-error));
}

bool module_loaded(void)
{
	return access("/sys/module/acp", F_OK) == 0;
}
