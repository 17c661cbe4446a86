// SPDX-License-Identifier: MIT
/*
 * Resolution of the node names of the launcher to addresses.
 *
 * One rank resolves them for all ranks, because otherwise each rank would query the name service
 * for all nodes, and might get different answers.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "acp_abi.h"
#include "acp_ga.h"
#include "boot/boot.h"
#include "core/internal.h"

#define NAME_MAX_BYTES	1024	/* of a name with the characters that the pattern adds */

/* The pattern of one color, and the names. */
struct naming {
	const char *pattern;
	size_t length;
	char *const *names;
	uint32_t count, here;
	int family;
};

/* Replace each '%' of the pattern by the name. False if the result is empty or too long. */
static bool fill_in(const struct naming *naming, const char *name, char *to)
{
	const char *p = naming->pattern, *end = p + naming->length;
	size_t used = 0;

	for (; p < end; p++) {
		const char *what = *p == '%' ? name : p;
		size_t length = *p == '%' ? strlen(name) : 1;

		if (length >= NAME_MAX_BYTES - used)
			return false;
		memcpy(to + used, what, length);
		used += length;
	}
	to[used] = '\0';
	return used > 0;
}

static int look_up(const char *name, int family, struct sockaddr_storage *address)
{
	const struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_DGRAM };
	struct addrinfo *found = NULL;
	int error = getaddrinfo(name, NULL, &hints, &found);

	if (error)
		return error;
	memcpy(address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

	if (address->ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/* Get the source address that this machine uses to reach another one. Sends nothing. */
static bool source_towards(const struct sockaddr_storage *other, struct sockaddr_storage *address)
{
	struct sockaddr_storage to = *other;
	socklen_t length = sizeof(*address);
	int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool good;

	if (to.ss_family == AF_INET)
		((struct sockaddr_in *)&to)->sin_port = htons(ACP_PORT_DEFAULT);
	else
		((struct sockaddr_in6 *)&to)->sin6_port = htons(ACP_PORT_DEFAULT);
	good = fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
	       getsockname(fd, (struct sockaddr *)address, &length) == 0;
	if (fd >= 0)
		close(fd);
	return good && !is_loopback(address);
}

/*
 * On many systems, /etc/hosts maps the own host name to a loopback address, which is useless to
 * other nodes. Use the address that they see instead.
 */
static int replace_loopback(const struct naming *naming, struct sockaddr_storage *found)
{
	uint32_t other = naming->here == 0 ? 1 : 0, i;

	for (i = 0; naming->count > 1 && i < naming->count; i++) {
		if (!is_loopback(&found[i]))
			continue;
		if (i == naming->here && !is_loopback(&found[other]) &&
		    source_towards(&found[other], &found[i]))
			continue;
		libacp_error("node %s has a loopback address here: correct /etc/hosts, or set ACP_NODES",
			     naming->names[i]);
		return -1;
	}
	return 0;
}

/* Resolve all names. Returns 0, the error of getaddrinfo() for *name, or -1 after a message. */
static int look_up_all(const struct naming *naming, struct sockaddr_storage *found, char *name)
{
	uint32_t i;
	int error;

	for (i = 0; i < naming->count; i++) {
		if (!fill_in(naming, naming->names[i], name)) {
			libacp_error("ACP_NODES: '%.100s' gives no good name for node %.100s",
				     naming->pattern, naming->names[i]);
			return -1;
		}
		error = look_up(name, naming->family, &found[i]);
		if (error)
			return error;
	}
	return replace_loopback(naming, found);
}

/* Resolve all names to IPv4 addresses, or all to IPv6 if that fails. */
static int resolve_color(struct naming *naming, int *family, struct sockaddr_storage *found)
{
	char name[NAME_MAX_BYTES];
	int error;

	naming->family = *family ? *family : AF_INET;
	error = look_up_all(naming, found, name);
	if (error && error != -1) {
		if (!*family) {
			naming->family = AF_INET6;
			error = look_up_all(naming, found, name);
		}
		if (error && error != -1)
			libacp_error("no address of %s: %s; ACP_NODES specifies the addresses of nodes",
				     name, gai_strerror(error));
	}
	*family = naming->family;
	return error ? -1 : 0;
}

/* Merge the lists of addresses of all colors into the syntax of ACP_NODES. */
static char *list_all(const struct sockaddr_storage *found, uint32_t colors, uint32_t count)
{
	char *text = malloc((size_t)colors * count * (INET6_ADDRSTRLEN + 1) + 1);
	char *at = text;
	uint32_t node, color;

	for (node = 0; text && node < count; node++)
		for (color = 0; color < colors; color++) {
			const struct sockaddr_storage *address = &found[color * count + node];
			const void *bytes = address->ss_family == AF_INET ?
				(const void *)&((const struct sockaddr_in *)address)->sin_addr :
				(const void *)&((const struct sockaddr_in6 *)address)->sin6_addr;

			inet_ntop(address->ss_family, bytes, at, INET6_ADDRSTRLEN);
			at += strlen(at);
			*at++ = color + 1 < colors ? ',' : ' ';
		}
	if (text)
		*at = '\0';
	return text;
}

char *libacp_names_resolve(const char *pattern, char *const *names, uint32_t count, uint32_t here)
{
	struct naming naming = { .names = names, .count = count, .here = here };
	struct sockaddr_storage *found;
	uint32_t colors = 1, color;
	const char *p;
	char *text = NULL;
	int family = 0, result = 0;

	for (p = pattern; *p; p++)
		colors += *p == ',';
	found = colors <= ACP_COLORS_MAX ? calloc((size_t)colors * count, sizeof(*found)) : NULL;
	if (!found) {
		libacp_error("ACP_NODES: too many addresses");
		return NULL;
	}
	for (color = 0, p = pattern; color < colors && result == 0; color++) {
		naming.pattern = p;
		naming.length = strcspn(p, ",");
		result = resolve_color(&naming, &family, found + (size_t)color * count);
		p += naming.length + 1;
	}
	if (result == 0)
		text = list_all(found, colors, count);
	free(found);
	return text;
}
