// SPDX-License-Identifier: MIT
/*
 * What the launcher says: rank, ranks, nodes, placement, key.
 *
 * Every setting is an environment variable, and an option that overrides it.
 * All of it is checked here, so that a mistake ends in one line that names
 * the variable; nothing in memory grows with the number of ranks.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libacp.h"

#define BLANKS		" \t\r\n;"
#define FILE_MAX	(64u << 20)	/* bytes of a file of nodes */
#define ADDRESS_MAX	64		/* characters of an address and its count */

/* ---- The settings ---- */

enum {
	RANK, NPROCS, NODES, PLACEMENT, JOB, KEYFILE, INSECURE, PORT, STARTER_SIZE, HEAP_SIZE,
	QUEUE_DEPTH, TIMEOUT, INIT_TIMEOUT, INTEGRITY, PRIVACY, SETTINGS,
	IGNORED = SETTINGS
};

/* max 0: not a number; suffix: K, M and G may follow it. */
static const struct setting {
	const char *name;
	uint64_t min, max, preset;
	bool suffix;
} settings[SETTINGS] = {
	[RANK]		= { "ACP_RANK", 0, ACP_RANKS_MAX - 1, 0, false },
	[NPROCS]	= { "ACP_NPROCS", 1, ACP_RANKS_MAX, 1, false },
	[NODES]		= { .name = "ACP_NODES" },
	[PLACEMENT]	= { .name = "ACP_PLACEMENT" },
	[JOB]		= { "ACP_JOB", 1, UINT32_MAX, 1, false },
	[KEYFILE]	= { .name = "ACP_KEYFILE" },
	[INSECURE]	= { "ACP_INSECURE", 0, 1, 0, false },
	[PORT]		= { "ACP_PORT", 1, 65535, ACP_PORT_DEFAULT, false },
	[STARTER_SIZE]	= { "ACP_STARTER_SIZE", 0, 1ULL << 40, 10240, true },
	[HEAP_SIZE]	= { "ACP_HEAP_SIZE", 0, 1ULL << 40, 10240, true },
	[QUEUE_DEPTH]	= { "ACP_QUEUE_DEPTH", ACP_DEPTH_MIN, ACP_DEPTH_MAX, ACP_DEPTH_DEFAULT,
			    false },
	[TIMEOUT]	= { "ACP_TIMEOUT", 10, 3600000, 10000, false },
	[INIT_TIMEOUT]	= { "ACP_INIT_TIMEOUT", 10, 3600000, 60000, false },
	[INTEGRITY]	= { .name = "ACP_INTEGRITY" },
	[PRIVACY]	= { .name = "ACP_PRIVACY" },
};

/*
 * --acp-NAME stands for ACP_NAME.  These are the names that launchers of
 * ACP 3.0.0 use; what only its transport needed is accepted for nothing.
 */
static const struct {
	const char *name;
	int setting;
} former_options[] = {
	{ "myrank", RANK },
	{ "taskid", JOB },
	{ "size-smem", STARTER_SIZE },
	{ "size-smem-dl", HEAP_SIZE },
	{ "size-smem-cl", IGNORED },
	{ "port-local", IGNORED },
	{ "port-remote", IGNORED },
	{ "host-remote", IGNORED },
	{ "ethernet-speed", IGNORED },
};

struct values {
	const char *text[SETTINGS + 1];	/* NULL: not given; the last one is for IGNORED */
	uint64_t number[SETTINGS];
};

/* Does "starter-size" name ACP_STARTER_SIZE? */
static bool same_name(const char *option, size_t length, const char *variable)
{
	size_t i;

	variable += strlen("ACP_");
	if (strlen(variable) != length)
		return false;
	for (i = 0; i < length; i++) {
		char c = variable[i] == '_' ? '-' : (char)tolower((unsigned char)variable[i]);

		if (option[i] != c)
			return false;
	}
	return true;
}

static int find_option(const char *option, size_t length)
{
	size_t i;

	for (i = 0; i < SETTINGS; i++)
		if (same_name(option, length, settings[i].name))
			return (int)i;
	for (i = 0; i < sizeof(former_options) / sizeof(former_options[0]); i++)
		if (strlen(former_options[i].name) == length &&
		    memcmp(former_options[i].name, option, length) == 0)
			return former_options[i].setting;
	return -1;
}

/* One option at argv[i], i < argc.  Returns how many arguments it takes, negated on error. */
static int take_option(struct values *values, int argc, char **argv, int i)
{
	const char *name = argv[i] + strlen("--acp-");
	size_t length = strcspn(name, "=");
	int setting = find_option(name, length);
	const char *value;
	int taken = 1;

	if (name[length] == '=') {
		value = name + length + 1;
	} else if (i + 1 < argc && argv[i + 1][0] != '-') {
		value = argv[i + 1];
		taken = 2;
	} else {
		libacp_error("option %s needs a value", argv[i]);
		return -taken;
	}
	if (setting < 0) {
		libacp_error("unknown option %s", argv[i]);
		return -taken;
	}
	values->text[setting] = value;
	return taken;
}

/* Move our options from argv to values.  All are removed, also if some are wrong. */
static int take_options(struct values *values, int *argc, char **argv)
{
	int kept = 0, result = 0, i;

	for (i = 0; i < *argc;) {
		int taken;

		if (i == 0 || strncmp(argv[i], "--acp-", strlen("--acp-")) != 0) {
			argv[kept++] = argv[i++];
			continue;
		}
		taken = take_option(values, *argc, argv, i);
		if (taken < 0)
			result = -1;
		i += abs(taken);
	}
	*argc = kept;
	argv[kept] = NULL;
	return result;
}

/* Digits up to max at *text, which moves behind them. */
static bool read_number(const char **text, uint64_t max, uint64_t *number)
{
	const char *p = *text;

	if (!isdigit((unsigned char)*p))
		return false;
	for (*number = 0; isdigit((unsigned char)*p); p++) {
		unsigned int digit = (unsigned int)(*p - '0');

		if (*number > (max - digit) / 10 || digit > max)
			return false;
		*number = *number * 10 + digit;
	}
	*text = p;
	return true;
}

static bool read_suffix(const char **text, uint64_t *number)
{
	static const char suffixes[] = "KMG";
	const char *found = **text ? strchr(suffixes, toupper((unsigned char)**text)) : NULL;
	int shift;

	if (!found)
		return true;
	shift = 10 * (int)(found - suffixes + 1);
	if (*number > UINT64_MAX >> shift)
		return false;
	*number <<= shift;
	++*text;
	return true;
}

static int parse_numbers(struct values *values)
{
	const struct setting *s;

	for (s = settings; s < settings + SETTINGS; s++) {
		const char *text = values->text[s - settings];
		uint64_t *number = &values->number[s - settings];

		*number = s->preset;
		if (!s->max || !text)
			continue;
		if (read_number(&text, UINT64_MAX, number) &&
		    (!s->suffix || read_suffix(&text, number)) &&
		    *text == '\0' && *number >= s->min && *number <= s->max)
			continue;
		libacp_error("%s=%s: want a number from %llu to %llu%s", s->name,
			     values->text[s - settings], (unsigned long long)s->min,
			     (unsigned long long)s->max, s->suffix ? " (K, M, G allowed)" : "");
		return -1;
	}
	return 0;
}

static int parse_integrity(struct libacp_boot *boot, const char *text)
{
	if (!text || strcmp(text, "udp") == 0) {
		boot->integrity = ACP_INTEGRITY_UDP;
		return 0;
	}
	if (strcmp(text, "crc32c") == 0) {
		boot->integrity = ACP_INTEGRITY_CRC32C;
		return 0;
	}
	if (strcmp(text, "aead") == 0) {
		boot->integrity = ACP_INTEGRITY_AEAD;
		return 0;
	}
	libacp_error("ACP_INTEGRITY=%s: want udp, crc32c or aead", text);
	return -1;
}

/* ---- Nodes ---- */

/* The node runs of each color while they are read. */
struct node_list {
	struct acp_node_run *runs[ACP_COLORS_MAX];
	uint32_t count[ACP_COLORS_MAX];
	uint32_t room[ACP_COLORS_MAX];
	uint32_t colors;		/* 0: not known yet */
	uint32_t nodes;
};

static size_t address_length(unsigned int family)
{
	return family == AF_INET ? 4 : 16;
}

/* addr += by; false if that is beyond the last address. */
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

/* "ADDR" or "ADDR+COUNT"; without a count, count stays as it was. */
static bool parse_address(const char *text, struct acp_node_run *run, uint64_t *count)
{
	char addr[ADDRESS_MAX];
	size_t length = strcspn(text, "+");

	if (length >= sizeof(addr))
		return false;
	memcpy(addr, text, length);
	addr[length] = '\0';
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
	return read_number(&text, ACP_RANKS_MAX, count) && *text == '\0' && *count > 0;
}

static bool continues(const struct acp_node_run *last, const struct acp_node_run *run)
{
	struct acp_node_run next = *last;

	return last->family == run->family && advance(next.addr, next.family, last->count) &&
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

/* One node, or several with consecutive addresses: "ADDR[,ADDR]...[+COUNT]". */
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

		if (colors == ACP_COLORS_MAX || !parse_address(text, &runs[colors++], &count))
			goto malformed;
		if (former != 1 && count != former)
			goto malformed;
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

/* One family, and no address twice on one color.  Sorts runs by address. */
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

/* Check the lists and join them, sorted by color and first node. */
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

/* The text of a file of nodes, without what follows a '#' in a line. */
static char *read_nodes(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length;
	char *text = fd < 0 ? NULL : read_all(fd, &length);
	char *hash;

	if (!text)
		libacp_error("ACP_NODES: cannot read %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (text && strlen(text) != length) {
		libacp_error("ACP_NODES: %s is not a text", path);
		free(text);
		return NULL;
	}
	for (hash = text; hash && (hash = strchr(hash, '#'));)
		while (*hash && *hash != '\n')
			*hash++ = ' ';
	return text;
}

int libacp_boot_nodes(struct libacp_boot *boot, const char *text)
{
	struct node_list list = { 0 };
	char *copy = text[0] == '@' ? read_nodes(text + 1) : strdup(text);
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

/* ---- Placement ---- */

static int one_run(struct libacp_boot *boot, uint32_t nodes, uint32_t block)
{
	boot->rank_runs = malloc(sizeof(*boot->rank_runs));
	if (!boot->rank_runs) {
		libacp_error("no memory for the placement");
		return -1;
	}
	boot->rank_runs[0] = (struct acp_rank_run){
		.first = 0, .count = boot->nprocs, .node = 0, .nodes = nodes, .block = block,
	};
	boot->rank_run_count = 1;
	return 0;
}

static int place_blocks(struct libacp_boot *boot, const char *text)
{
	uint64_t block = (boot->nprocs + (uint64_t)boot->nodes - 1) / boot->nodes;

	if (*text == ':') {
		text++;
		if (!read_number(&text, ACP_RANKS_MAX, &block) || block == 0 || *text != '\0') {
			libacp_error("ACP_PLACEMENT: want block:N with N ranks on a node");
			return -1;
		}
		if (block * boot->nodes < boot->nprocs) {
			libacp_error("ACP_PLACEMENT: %u nodes of %llu ranks are too few for %u ranks",
				     boot->nodes, (unsigned long long)block, boot->nprocs);
			return -1;
		}
	}
	return one_run(boot, boot->nodes, (uint32_t)block);
}

/* FIRST+COUNT@NODE[/NODES[/BLOCK]] at *text, which moves behind it. */
static bool parse_rank_run(const char **text, struct acp_rank_run *run)
{
	uint64_t first, count, node, nodes = 1, block = 1;

	if (!read_number(text, ACP_RANKS_MAX, &first) || *(*text)++ != '+' ||
	    !read_number(text, ACP_RANKS_MAX, &count) || *(*text)++ != '@' ||
	    !read_number(text, ACP_RANKS_MAX, &node))
		return false;
	if (**text == '/') {
		++*text;
		if (!read_number(text, ACP_RANKS_MAX, &nodes))
			return false;
	}
	if (**text == '/') {
		++*text;
		if (!read_number(text, ACP_RANKS_MAX, &block))
			return false;
	}
	*run = (struct acp_rank_run){
		.first = (uint32_t)first, .count = (uint32_t)count,
		.node = (uint32_t)node, .nodes = (uint32_t)nodes, .block = (uint32_t)block,
	};
	return count && nodes && block && (**text == ',' || **text == '\0');
}

static int place_runs(struct libacp_boot *boot, const char *text)
{
	struct acp_rank_run run;
	uint32_t room = 1, placed = 0;
	const char *p;

	for (p = text; *p; p++)
		room += *p == ',';
	boot->rank_runs = room <= ACP_RUNS_MAX ? calloc(room, sizeof(run)) : NULL;
	if (!boot->rank_runs) {
		libacp_error("ACP_PLACEMENT: too many runs");
		return -1;
	}
	for (p = text;; p++) {
		if (!parse_rank_run(&p, &run)) {
			libacp_error("ACP_PLACEMENT: want block, block:N, cyclic, or runs FIRST+COUNT@NODE[/NODES[/BLOCK]],...");
			return -1;
		}
		if (run.first != placed || run.count > boot->nprocs - placed) {
			libacp_error("ACP_PLACEMENT: the runs must cover the ranks 0 to %u in order, once each",
				     boot->nprocs - 1);
			return -1;
		}
		if (run.node >= boot->nodes || run.nodes > boot->nodes - run.node) {
			libacp_error("ACP_PLACEMENT: the run of rank %u leaves the %u nodes",
				     run.first, boot->nodes);
			return -1;
		}
		boot->rank_runs[boot->rank_run_count++] = run;
		placed += run.count;
		if (*p == '\0')
			break;
	}
	if (placed == boot->nprocs)
		return 0;
	libacp_error("ACP_PLACEMENT: the runs place %u of %u ranks", placed, boot->nprocs);
	return -1;
}

/* Cut the list of nodes down to its first ones. */
static void keep_nodes(struct libacp_boot *boot, uint32_t nodes)
{
	uint32_t kept = 0, i;

	for (i = 0; i < boot->node_run_count; i++) {
		struct acp_node_run run = boot->node_runs[i];

		if (run.first >= nodes)
			continue;
		if (run.count > nodes - run.first)
			run.count = nodes - run.first;
		boot->node_runs[kept++] = run;
	}
	boot->node_run_count = kept;
	boot->nodes = nodes;
}

/* How many of its nodes a run really uses. */
static uint32_t used_nodes(const struct acp_rank_run *run)
{
	uint32_t blocks = (run->count - 1) / run->block + 1;

	return blocks < run->nodes ? blocks : run->nodes;
}

/* The kernel wants a rank on each node: forget unused nodes at the end, refuse others. */
static int drop_unused(struct libacp_boot *boot)
{
	uint8_t *used = calloc(boot->nodes / 8 + 1, 1);
	uint32_t end = 0, i, j;
	int result = 0;

	if (!used) {
		libacp_error("no memory for the placement");
		return -1;
	}
	for (i = 0; i < boot->rank_run_count; i++) {
		const struct acp_rank_run *run = &boot->rank_runs[i];
		uint32_t count = used_nodes(run);

		for (j = run->node; j < run->node + count; j++)
			used[j / 8] |= (uint8_t)(1u << j % 8);
		if (end < run->node + count)
			end = run->node + count;
	}
	for (j = 0; j < end && (used[j / 8] >> j % 8 & 1); j++)
		;
	if (j < end) {
		libacp_error("ACP_PLACEMENT: no rank is placed on node %u", j);
		result = -1;
	}
	free(used);
	if (result == 0)
		keep_nodes(boot, end);
	return result;
}

int libacp_boot_placement(struct libacp_boot *boot, const char *text)
{
	int result;

	if (strcmp(text, "cyclic") == 0)
		result = one_run(boot, boot->nodes, 1);
	else if (strncmp(text, "block", 5) == 0 && (text[5] == '\0' || text[5] == ':'))
		result = place_blocks(boot, text + 5);
	else
		result = place_runs(boot, text);
	return result < 0 ? result : drop_unused(boot);
}

static uint32_t run_node(const struct acp_rank_run *run, uint32_t rank)
{
	return run->node + (rank - run->first) / run->block % run->nodes;
}

uint32_t libacp_boot_node_of(const struct libacp_boot *boot, uint32_t rank)
{
	uint32_t low = 0, high = boot->rank_run_count - 1;

	while (low < high) {
		uint32_t middle = high - (high - low) / 2;

		if (boot->rank_runs[middle].first <= rank)
			low = middle;
		else
			high = middle - 1;
	}
	return run_node(&boot->rank_runs[low], rank);
}

/* The longest run that starts at nodes[0], of at most count ranks. */
static struct acp_rank_run longest_run(const uint32_t *nodes, uint32_t count)
{
	struct acp_rank_run run = { .node = nodes[0], .nodes = UINT32_MAX };
	uint32_t i = 1;

	while (i < count && nodes[i] == run.node)
		i++;
	run.block = i;
	for (; i < count; i++) {
		if (nodes[i] == run_node(&run, i))
			continue;
		if (run.nodes != UINT32_MAX || nodes[i] != run.node || i % run.block)
			break;
		run.nodes = i / run.block;	/* begins again at its first node */
	}
	if (run.nodes == UINT32_MAX)
		run.nodes = (i - 1) / run.block + 1;
	run.count = i;
	return run;
}

uint32_t libacp_boot_encode(const uint32_t *nodes, uint32_t nprocs, struct acp_rank_run *runs,
			    uint32_t max)
{
	uint32_t count = 0, rank;

	for (rank = 0; rank < nprocs; rank += runs[count++].count) {
		if (count == max)
			return 0;
		runs[count] = longest_run(nodes + rank, nprocs - rank);
		runs[count].first = rank;
	}
	return count;
}

/* ---- Key ---- */

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *found = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

	return found ? (int)(found - digits) : -1;
}

/* 32 hexadecimal digits, and white space after them. */
static bool parse_key(const char *text, size_t length, uint8_t key[16])
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

static int read_key(int fd, const char *path, uint8_t key[16])
{
	struct stat st;
	char text[64];
	ssize_t length;
	bool good;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		libacp_error("ACP_KEYFILE: %s is not a regular file", path);
		return -1;
	}
	if (st.st_mode & 077) {
		libacp_error("ACP_KEYFILE: %s is open to others (mode %03o): chmod 600 it", path,
			     (unsigned int)st.st_mode & 0777);
		return -1;
	}
	if (st.st_uid != geteuid() && st.st_uid != 0) {
		libacp_error("ACP_KEYFILE: %s belongs to another user", path);
		return -1;
	}
	length = read(fd, text, sizeof(text));
	good = length >= 0 && (size_t)length < sizeof(text) && parse_key(text, (size_t)length, key);
	explicit_bzero(text, sizeof(text));
	if (!good)
		libacp_error("ACP_KEYFILE: %s: want 32 hexadecimal digits", path);
	return good ? 0 : -1;
}

int libacp_boot_key(const struct libacp_boot *boot, uint8_t key[16])
{
	int fd, result;

	memset(key, 0, 16);
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

/* Whether the job's frames are encrypted, in words of its own: it is an integrity, too. */
static int parse_privacy(struct libacp_boot *boot, const struct values *values)
{
	const char *text = values->text[PRIVACY], *integrity = values->text[INTEGRITY];
	bool aead;

	if (!text)
		return 0;
	aead = strcmp(text, "aead") == 0;
	if (!aead && strcmp(text, "none") != 0) {
		libacp_error("ACP_PRIVACY=%s: want none or aead", text);
		return -1;
	}
	if (integrity && aead != (boot->integrity == ACP_INTEGRITY_AEAD)) {
		libacp_error("ACP_PRIVACY=%s and ACP_INTEGRITY=%s: choose one", text, integrity);
		return -1;
	}
	if (aead)
		boot->integrity = ACP_INTEGRITY_AEAD;
	return 0;
}

/* Without a key anybody who reaches the port can write to the memory of the job. */
static int choose_key(struct libacp_boot *boot, const struct values *values)
{
	if (values->text[KEYFILE]) {
		boot->keyfile = strdup(values->text[KEYFILE]);
		if (boot->keyfile)
			return 0;
		libacp_error("no memory");
		return -1;
	}
	if (boot->integrity == ACP_INTEGRITY_AEAD) {
		libacp_error("ACP_KEYFILE is not set: a job that is encrypted (ACP_PRIVACY, ACP_INTEGRITY) needs a key");
		return -1;
	}
	if (boot->nodes == 1)
		return 0;
	if (!values->number[INSECURE]) {
		libacp_error("ACP_KEYFILE is not set: a job over several nodes needs a key (head -c16 /dev/urandom | od -An -tx1 | tr -d ' \\n' >key; chmod 600 key), or ACP_INSECURE=1");
		return -1;
	}
	if (boot->rank == 0)
		libacp_error("warning: ACP_INSECURE=1: the network is trusted, no key protects the job");
	return 0;
}

/* ---- All together ---- */

static int apply_numbers(struct libacp_boot *boot, const struct values *values)
{
	const uint64_t *number = values->number;

	boot->rank = (uint32_t)number[RANK];
	boot->nprocs = (uint32_t)number[NPROCS];
	boot->job = (uint32_t)number[JOB];
	boot->port = (uint32_t)number[PORT];
	boot->starter_size = number[STARTER_SIZE];
	boot->heap_size = number[HEAP_SIZE];
	boot->depth = (uint32_t)number[QUEUE_DEPTH];
	boot->timeout_ms = (uint32_t)number[TIMEOUT];
	boot->init_timeout_ms = (uint32_t)number[INIT_TIMEOUT];
	if (boot->nprocs > 1 && !values->text[RANK]) {
		libacp_error("ACP_NPROCS=%u, but ACP_RANK is not set", boot->nprocs);
		return -1;
	}
	if (boot->rank >= boot->nprocs) {
		libacp_error("ACP_RANK=%u: want 0 to %u, since ACP_NPROCS=%u", boot->rank,
			     boot->nprocs - 1, boot->nprocs);
		return -1;
	}
	if (boot->depth & (boot->depth - 1)) {
		libacp_error("ACP_QUEUE_DEPTH=%u: want a power of two", boot->depth);
		return -1;
	}
	return 0;
}

int libacp_boot_load(struct libacp_boot *boot, int *argc, char ***argv)
{
	struct values values = { 0 };
	const char **text = values.text;
	int result = 0, i;

	memset(boot, 0, sizeof(*boot));
	for (i = 0; i < SETTINGS; i++)
		text[i] = getenv(settings[i].name);
	if (argc && argv && *argv)
		result = take_options(&values, argc, *argv);
	if (result < 0 || parse_numbers(&values) < 0 || apply_numbers(boot, &values) < 0 ||
	    parse_integrity(boot, text[INTEGRITY]) < 0 || parse_privacy(boot, &values) < 0 ||
	    libacp_boot_nodes(boot, text[NODES] ? text[NODES] : "127.0.0.1") < 0 ||
	    libacp_boot_placement(boot, text[PLACEMENT] ? text[PLACEMENT] : "block") < 0)
		return -1;
	return choose_key(boot, &values);
}

void libacp_boot_free(struct libacp_boot *boot)
{
	free(boot->rank_runs);
	free(boot->node_runs);
	free(boot->keyfile);
	memset(boot, 0, sizeof(*boot));
}
