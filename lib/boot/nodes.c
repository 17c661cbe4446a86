// SPDX-License-Identifier: MIT
/* ACP_NODES: a list of addresses, stored as runs of consecutive ones. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acp_abi.h"
#include "acp_ga.h"
#include "boot/boot.h"
#include "core/internal.h"
#include "core/parameters.h"

#define BLANKS		" \t\r\n;"
#define FILE_MAX	(64u << 20)	/* size limit of a file of nodes, bytes */
#define ADDRESS_MAX	80		/* length limit of an address with device and count */

/* The node runs of each color while the list is parsed, and the devices that it names. */
struct node_list {
	struct libacp_cards *cards;
	struct acp_node_run *runs[ACP_COLORS_MAX];
	uint32_t count[ACP_COLORS_MAX];
	uint32_t room[ACP_COLORS_MAX];
	uint32_t colors;		/* 0: unknown yet */
	uint32_t nodes;
};

static size_t address_length(unsigned int family)
{
	return family == AF_INET ? 4 : 16;
}

/* Add to an address. False if the result exceeds the last address. */
static bool advance(uint8_t *addr, unsigned int family, uint64_t by)
{
	size_t i = address_length(family);

	while (i-- > 0 && by) {
		by += addr[i];
		addr[i] = (uint8_t)by;
		by >>= 8;
	}
	return by == 0;
}

/*
 * Return the index of a device in the table, plus 1, and add it if it is new. 0: invalid name, or
 * no memory.
 */
static uint32_t card_number(struct libacp_cards *cards, const char *name)
{
	struct libacp_card *more;
	uint32_t i;

	if (*name == '\0' || strlen(name) >= sizeof(more->name) || strchr(name, '/'))
		return 0;
	for (i = 0; i < cards->count; i++)
		if (strcmp(cards->card[i].name, name) == 0)
			return i + 1;
	more = realloc(cards->card, (cards->count + 1) * sizeof(*more));
	if (!more)
		return 0;
	cards->card = more;
	strcpy(more[cards->count++].name, name);
	return cards->count;
}

/* Parse "ADDR%DEVICE" or "ADDR"; modifies the text. */
static bool parse_card(struct libacp_cards *cards, char *text, struct acp_node_run *run)
{
	char *name = strchr(text, '%');

	if (!name)
		return true;
	*name++ = '\0';
	run->scope = card_number(cards, name);
	return run->scope != 0;
}

/* Parse "ADDR[%DEVICE]" or "ADDR[%DEVICE]+COUNT". Without a count, *count is unchanged. */
static bool parse_address(struct libacp_cards *cards, const char *text, struct acp_node_run *run,
			  uint64_t *count)
{
	char addr[ADDRESS_MAX];
	size_t length = strcspn(text, "+");

	if (length >= sizeof(addr))
		return false;
	memcpy(addr, text, length);
	addr[length] = '\0';
	if (!parse_card(cards, addr, run))
		return false;
	if (inet_pton(AF_INET, addr, run->addr) == 1)
		run->family = AF_INET;
	else if (inet_pton(AF_INET6, addr, run->addr) == 1)
		run->family = AF_INET6;
	else
		return false;
	text += length;
	if (*text == '\0')
		return true;
	text++;
	return libacp_read_number(&text, ACP_RANKS_MAX, count) && *text == '\0' && *count > 0;
}

bool libacp_is_link_local(const struct acp_node_run *run)
{
	return run->family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)run->addr);
}

/* True if the address is of no machine or of several. */
static bool is_nobodys(const struct acp_node_run *run)
{
	const struct in6_addr *six = (const struct in6_addr *)run->addr;

	if (run->family == AF_INET)	/* 0.0.0.0/8, multicast and reserved addresses */
		return run->addr[0] == 0 || run->addr[0] >= 224;
	return IN6_IS_ADDR_UNSPECIFIED(six) || IN6_IS_ADDR_MULTICAST(six);
}

/* Check that the address can be that of a node. Returns 0, or -1 after a message. */
static int check_address(const struct acp_node_run *run)
{
	const bool local = libacp_is_link_local(run);
	char text[INET6_ADDRSTRLEN];

	inet_ntop(run->family, run->addr, text, sizeof(text));
	if (is_nobodys(run))
		libacp_error("ACP_NODES: %s is not the address of one machine", text);
	else if (run->family == AF_INET6 &&
		 IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)run->addr))
		libacp_error("ACP_NODES: %s is an IPv4 address: write %s", text, text + 7);
	else if (local && !run->scope)
		libacp_error("ACP_NODES: %s is a link-local address, which is ambiguous without its interface: write %s%%CARD, for example %s%%eth0",
			     text, text, text);
	else if (!local && run->scope)
		libacp_error("ACP_NODES: %s: a card, behind a '%%', is for link-local addresses (fe80::...) only",
			     text);
	else
		return 0;
	return -1;
}

static bool continues(const struct acp_node_run *last, const struct acp_node_run *run)
{
	struct acp_node_run next = *last;

	return last->family == run->family && last->scope == run->scope &&
	       advance(next.addr, next.family, last->count) &&
	       memcmp(next.addr, run->addr, sizeof(next.addr)) == 0;
}

static int add_run(struct node_list *list, const struct acp_node_run *run)
{
	unsigned int color = run->color;
	struct acp_node_run *runs = list->runs[color];
	uint32_t count = list->count[color];

	if (count && continues(&runs[count - 1], run)) {
		runs[count - 1].count += run->count;
		return 0;
	}
	if (count == list->room[color]) {
		uint32_t room = count ? 2 * count : 16;

		runs = realloc(runs, room * sizeof(*runs));
		if (!runs) {
			libacp_error("no memory for the list of nodes");
			return -1;
		}
		list->runs[color] = runs;
		list->room[color] = room;
	}
	runs[list->count[color]++] = *run;
	return 0;
}

/* Parse one node, or several with consecutive addresses: "ADDR[,ADDR]...[+COUNT]". */
static int parse_item(struct node_list *list, const char *item)
{
	struct acp_node_run runs[ACP_COLORS_MAX] = { 0 };
	char copy[ACP_COLORS_MAX * ADDRESS_MAX], *rest = copy, *text;
	uint64_t count = 1;
	uint32_t colors = 0, i;

	if (strlen(item) >= sizeof(copy))
		goto malformed;
	strcpy(copy, item);
	while ((text = strsep(&rest, ","))) {
		uint64_t former = count;

		if (colors == ACP_COLORS_MAX ||
		    !parse_address(list->cards, text, &runs[colors], &count))
			goto malformed;
		if (former != 1 && count != former)
			goto malformed;
		if (check_address(&runs[colors++]) < 0)
			return -1;
	}
	if (count > ACP_RANKS_MAX - list->nodes) {
		libacp_error("ACP_NODES: more than %u nodes", ACP_RANKS_MAX);
		return -1;
	}
	if (list->colors && colors != list->colors) {
		libacp_error("ACP_NODES: %s has %u addresses, the nodes before it %u", item, colors,
			     list->colors);
		return -1;
	}
	list->colors = colors;
	for (i = 0; i < colors; i++) {
		struct acp_node_run end = runs[i];

		if (!advance(end.addr, end.family, count - 1))
			goto malformed;
		runs[i].first = list->nodes;
		runs[i].count = (uint32_t)count;
		runs[i].color = (uint16_t)i;
		if (add_run(list, &runs[i]) < 0)
			return -1;
	}
	list->nodes += (uint32_t)count;
	return 0;
malformed:
	libacp_error("ACP_NODES: malformed node '%.100s'", item);
	return -1;
}

static int by_address(const void *a, const void *b)
{
	const struct acp_node_run *x = a, *y = b;

	return memcmp(x->addr, y->addr, sizeof(x->addr));
}

/*
 * Check that all addresses are of one family and none is listed twice for a color. Sorts the runs
 * by address.
 */
static int check_runs(struct acp_node_run *runs, uint32_t count, unsigned int family)
{
	char text[INET6_ADDRSTRLEN];
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (runs[i].family == family)
			continue;
		libacp_error("ACP_NODES: IPv4 and IPv6 addresses are mixed");
		return -1;
	}
	qsort(runs, count, sizeof(*runs), by_address);
	for (i = 1; i < count; i++) {
		struct acp_node_run last = runs[i - 1];

		advance(last.addr, last.family, last.count - 1);
		if (memcmp(last.addr, runs[i].addr, sizeof(last.addr)) < 0)
			continue;
		libacp_error("ACP_NODES: address %s stands for two nodes",
			     inet_ntop(runs[i].family, runs[i].addr, text, sizeof(text)));
		return -1;
	}
	return 0;
}

static int by_first(const void *a, const void *b)
{
	const struct acp_node_run *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/* Check the lists and merge them, sorted by color and first node. */
static int finish_nodes(struct libacp_boot *boot, struct node_list *list)
{
	uint64_t total = 0;
	uint32_t i, at = 0;

	if (!list->nodes) {
		libacp_error("ACP_NODES: no node in the list");
		return -1;
	}
	for (i = 0; i < list->colors; i++) {
		if (check_runs(list->runs[i], list->count[i], list->runs[0][0].family) < 0)
			return -1;
		qsort(list->runs[i], list->count[i], sizeof(*list->runs[i]), by_first);
		total += list->count[i];
	}
	if (total > ACP_RUNS_MAX) {
		libacp_error("ACP_NODES: more than %u runs of consecutive addresses", ACP_RUNS_MAX);
		return -1;
	}
	boot->node_runs = malloc(total * sizeof(*boot->node_runs));
	if (!boot->node_runs) {
		libacp_error("no memory for the list of nodes");
		return -1;
	}
	for (i = 0; i < list->colors; i++) {
		memcpy(boot->node_runs + at, list->runs[i],
		       list->count[i] * sizeof(*boot->node_runs));
		at += list->count[i];
	}
	boot->node_run_count = at;
	boot->nodes = list->nodes;
	boot->colors = list->colors;
	return 0;
}

static char *read_all(int fd, size_t *length)
{
	char *text = NULL, *more;
	size_t room = 0;
	ssize_t got;

	*length = 0;
	for (;;) {
		if (room - *length < 2) {
			room = room ? 2 * room : 4096;
			more = room > FILE_MAX ? NULL : realloc(text, room);
			if (!more) {
				errno = EFBIG;
				break;
			}
			text = more;
		}
		got = read(fd, text + *length, room - *length - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			break;
		if (got == 0) {
			text[*length] = '\0';
			return text;
		}
		*length += (size_t)got;
	}
	free(text);
	return NULL;
}

char *libacp_read_text(int fd)
{
	size_t length;
	char *text = read_all(fd, &length);

	if (text && strlen(text) != length) {
		free(text);
		errno = EILSEQ;
		return NULL;
	}
	return text;
}

/* Return the text of a file of nodes without comments, which begin with '#'. */
static char *read_nodes(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = fd < 0 ? NULL : libacp_read_text(fd);
	char *hash;

	if (!text)
		libacp_error("ACP_NODES: cannot read %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	for (hash = text; hash && (hash = strchr(hash, '#'));)
		while (*hash && *hash != '\n')
			*hash++ = ' ';
	return text;
}

char *libacp_nodes_line(const char *text)
{
	char *line = text[0] == '@' ? read_nodes(text + 1) : strdup(text);
	char *p;

	for (p = line; p && (p = strpbrk(p, BLANKS)); p++)
		*p = ' ';
	return line;
}

/* True if the word is an IPv6 address with or without device, and not a pattern. */
static bool is_address(const char *word, size_t length)
{
	char text[INET6_ADDRSTRLEN];
	uint8_t addr[16];
	size_t i;

	for (i = 0; i < length && word[i] != '%'; i++)
		if (i + 1 == sizeof(text))
			return false;
	memcpy(text, word, i);
	text[i] = '\0';
	return inet_pton(AF_INET6, text, addr) == 1;
}

bool libacp_nodes_are_names(const char *text)
{
	size_t length;

	for (; *text; text += length + (text[length] != '\0')) {
		length = strcspn(text, BLANKS ",");
		if (memchr(text, '%', length) && !is_address(text, length))
			return true;
	}
	return false;
}

int libacp_boot_nodes(struct libacp_boot *boot, const char *text)
{
	struct node_list list = { .cards = &boot->cards };
	char *copy = libacp_nodes_line(text);
	char *rest = copy, *item;
	int result = copy ? 0 : -1;
	uint32_t i;

	while (result == 0 && (item = strsep(&rest, BLANKS)))
		if (*item)
			result = parse_item(&list, item);
	if (result == 0)
		result = finish_nodes(boot, &list);
	for (i = 0; i < ACP_COLORS_MAX; i++)
		free(list.runs[i]);
	free(copy);
	return result;
}

struct acp_node_run libacp_node_address(const struct libacp_boot *boot, uint32_t node,
					uint32_t color)
{
	uint32_t low = 0, high = boot->node_run_count - 1;
	struct acp_node_run run;

	while (low < high) {
		uint32_t middle = high - (high - low) / 2;

		run = boot->node_runs[middle];
		if (run.color < color || (run.color == color && run.first <= node))
			low = middle;
		else
			high = middle - 1;
	}
	run = boot->node_runs[low];
	advance(run.addr, run.family, node - run.first);
	run.first = node;
	run.count = 1;
	return run;
}

/* Write the address as text of at most ADDRESS_MAX bytes. */
static void address_text(const struct libacp_boot *boot, uint32_t node, uint32_t color, char *to)
{
	const struct acp_node_run run = libacp_node_address(boot, node, color);

	inet_ntop(run.family, run.addr, to, INET6_ADDRSTRLEN);
	if (run.scope)
		sprintf(to + strlen(to), "%%%s", boot->cards.card[run.scope - 1].name);
}

char *libacp_node_text(const struct libacp_boot *boot, uint32_t node)
{
	char *text = malloc(boot->colors * (size_t)ADDRESS_MAX);
	char *at = text;
	uint32_t color;

	if (!text) {
		libacp_error("no memory for the list of nodes");
		return NULL;
	}
	for (color = 0; color < boot->colors; color++) {
		if (color)
			*at++ = ',';
		address_text(boot, node, color, at);
		at += strlen(at);
	}
	return text;
}
