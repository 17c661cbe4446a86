// SPDX-License-Identifier: MIT
/*
 * Finds the own address by comparing ACP_NODES with the interfaces of this node, without evaluating
 * the placement of ranks.
 */
#include "net.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX	(1 << 20)

/* ADDR or ADDR+COUNT: the first color of a node. */
struct entry {
	int family;
	unsigned char byte[16];
	unsigned long count;
};

static size_t address_bytes(int family)
{
	return family == AF_INET ? 4 : 16;
}

static bool parse_entry(const char *word, struct entry *e)
{
	char text[INET6_ADDRSTRLEN];
	size_t length = strcspn(word, "+,");

	if (length == 0 || length >= sizeof(text))
		return false;
	memcpy(text, word, length);
	text[length] = '\0';
	e->count = word[length] == '+' ? strtoul(word + length + 1, NULL, 10) : 1;
	e->family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
	return inet_pton(e->family, text, e->byte) == 1;
}

/* Return the last four bytes of an address, in which consecutive addresses differ. */
static uint32_t tail(const unsigned char *byte, size_t size)
{
	uint32_t value;

	memcpy(&value, byte + size - sizeof(value), sizeof(value));
	return ntohl(value);
}

static bool covers(const struct entry *e, const struct sockaddr *address)
{
	size_t size = address_bytes(e->family);
	const unsigned char *byte;

	if (address->sa_family != e->family)
		return false;
	if (e->family == AF_INET)
		byte = (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
	else
		byte = (const void *)
			&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
	return memcmp(e->byte, byte, size - 4) == 0 &&
	       tail(byte, size) - tail(e->byte, size) < e->count;
}

/* Find the first interface address that the entry covers. Returns its length, or 0. */
static socklen_t match(const struct entry *e, const struct ifaddrs *list,
		       struct sockaddr_storage *address)
{
	socklen_t length = e->family == AF_INET ? sizeof(struct sockaddr_in)
						: sizeof(struct sockaddr_in6);

	for (; list != NULL; list = list->ifa_next) {
		if (list->ifa_addr == NULL || !covers(e, list->ifa_addr))
			continue;
		memset(address, 0, sizeof(*address));
		memcpy(address, list->ifa_addr, length);
		return length;
	}
	return 0;
}

/* Return the value of ACP_NODES, or the contents of the file it names; the caller frees it. */
static char *node_list(void)
{
	const char *value = getenv("ACP_NODES");
	size_t length;
	char *text;
	FILE *file;

	if (value == NULL || *value == '\0')
		return strdup("127.0.0.1");
	if (*value != '@')
		return strdup(value);
	file = fopen(value + 1, "re");
	if (file == NULL)
		return NULL;
	text = malloc(LIST_MAX);
	if (text != NULL) {
		length = fread(text, 1, LIST_MAX - 1, file);
		text[length] = '\0';
	}
	fclose(file);
	return text;
}

socklen_t perf_net_address(struct sockaddr_storage *address)
{
	char *text = node_list(), *rest = NULL, *word;
	struct ifaddrs *list = NULL;
	socklen_t length = 0;
	struct entry e;

	if (text != NULL && getifaddrs(&list) == 0) {
		for (word = strtok_r(text, "; \t\n", &rest); word != NULL && length == 0;
		     word = strtok_r(NULL, "; \t\n", &rest)) {
			if (parse_entry(word, &e))
				length = match(&e, list, address);
		}
		freeifaddrs(list);
	}
	free(text);
	return length;
}
