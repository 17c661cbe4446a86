// SPDX-License-Identifier: MIT
/* The job key from ACP_KEYFILE or from the plan. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "boot/boot.h"
#include "core/internal.h"
#include "core/parameters.h"

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *found = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

	return found ? (int)(found - digits) : -1;
}

bool libacp_parse_key(const char *text, size_t length, uint8_t key[16])
{
	size_t i;

	if (length < 32)
		return false;
	for (i = 0; i < 16; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		key[i] = (uint8_t)(high << 4 | low);
	}
	for (i = 32; i < length; i++)
		if (!isspace((unsigned char)text[i]))
			return false;
	return true;
}

int libacp_check_private(int fd, const char *setting, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		libacp_error("%s: %s is not a regular file", setting, path);
		return -1;
	}
	if (st.st_mode & 077) {
		libacp_error("%s: %s is open to others (mode %03o): chmod 600 it", setting, path,
			     (unsigned int)st.st_mode & 0777);
		return -1;
	}
	if (st.st_uid != geteuid() && st.st_uid != 0) {
		libacp_error("%s: %s belongs to another user", setting, path);
		return -1;
	}
	return 0;
}

static int read_key(int fd, const char *path, uint8_t key[16])
{
	char text[64];
	ssize_t length;
	bool good;

	if (libacp_check_private(fd, "ACP_KEYFILE", path) < 0)
		return -1;
	length = read(fd, text, sizeof(text));
	good = length >= 0 && (size_t)length < sizeof(text) &&
	       libacp_parse_key(text, (size_t)length, key);
	explicit_bzero(text, sizeof(text));
	if (!good)
		libacp_error("ACP_KEYFILE: %s: want 32 hexadecimal digits", path);
	return good ? 0 : -1;
}

int libacp_boot_key(const struct libacp_boot *boot, uint8_t key[16])
{
	int fd, result;

	memcpy(key, boot->key, 16);
	if (!boot->keyfile)
		return 0;
	fd = open(boot->keyfile, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		libacp_error("ACP_KEYFILE: cannot open %s: %s", boot->keyfile, strerror(errno));
		return -1;
	}
	result = read_key(fd, boot->keyfile, key);
	close(fd);
	return result;
}
