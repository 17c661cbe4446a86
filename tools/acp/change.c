// SPDX-License-Identifier: MIT
/* Commands that change settings: acp node set, limit set, color add|del, job abort. */
#include "change.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "acp_abi.h"
#include "acp_ga.h"
#include "command.h"
#include "job.h"

#define MS	1000000ULL

int ctl_address(const char *word, unsigned char bytes[16])
{
	if (inet_pton(AF_INET, word, bytes) == 1)
		return 4;
	if (inet_pton(AF_INET6, word, bytes) == 1)
		return 16;
	ctl_error("'%s' is no IPv4 or IPv6 address", word);
	return -1;
}

/* The ranges are those of kernel/job/limits.c, which is authoritative. */
static const struct limit {
	const char *name;
	struct ctl_range range;
} limits[] = {
	{ "jobs", { 0, 1 << 20, NULL, "jobs" } },
	{ "user_jobs", { 0, 1 << 20, NULL, "jobs" } },
	{ "user_ranks", { 0, ACP_RANKS_MAX, NULL, "ranks" } },
	{ "user_regions", { 0, 1 << 30, NULL, "regions" } },
	{ "user_memory", { 0, INT64_MAX >> 10, NULL, "KiB (or of bytes, with K, M or G)" } },
	{ "depth", { ACP_DEPTH_MIN, ACP_DEPTH_MAX, NULL, "commands" } },
	{ "job_peers", { 0, ACP_RANKS_MAX * ACP_COLORS_MAX, NULL, "flows" } },
};

#define LIMITS	(sizeof(limits) / sizeof(limits[0]))

static const struct limit *find_limit(const char *name)
{
	size_t i;

	for (i = 0; i < LIMITS; i++)
		if (strcmp(name, limits[i].name) == 0)
			return &limits[i];
	return NULL;
}

const char *ctl_limit_name(const char *name)
{
	const struct limit *l = find_limit(name);

	return l != NULL ? l->name : NULL;
}

void ctl_limit_unknown(const char *name)
{
	char all[200] = "";
	size_t i;

	for (i = 0; i < LIMITS; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			 i != 0 ? ", " : "", limits[i].name);
	ctl_error("'%s' is no limit; there are %s", name, all);
}

int ctl_limit_value(const char *name, const char *word, uint64_t *value)
{
	const struct limit *l = find_limit(name);
	size_t length = strlen(word);
	bool bytes = strcmp(name, "user_memory") == 0 && length > 0 &&
		     strchr("KMGkmg", word[length - 1]) != NULL;
	const struct ctl_range in_bytes = { 0, INT64_MAX, NULL, "bytes" };

	if (l == NULL) {
		ctl_limit_unknown(name);
		return -1;
	}
	if (ctl_number_in(word, name, bytes ? &in_bytes : &l->range, bytes, value))
		return -1;
	if (bytes)
		*value >>= 10;
	return 0;
}

int ctl_change_limit(struct ctl_nl *nl, const char *name, uint64_t value)
{
	struct nl_msg *m = ctl_nl_new(nl, ACP_NL_CMD_LIMIT_SET);

	ctl_nl_put_string(m, ACP_NL_A_NAME, name);
	ctl_nl_put_u64(m, ACP_NL_A_VALUE, value);
	return ctl_nl_do(nl, m, NULL, NULL);
}

int ctl_change_node(struct ctl_nl *nl, enum acp_nl_attr attr, uint32_t value)
{
	struct nl_msg *m = ctl_nl_new(nl, ACP_NL_CMD_NODE_SET);

	ctl_nl_put_u32(m, attr, value);
	return ctl_nl_do(nl, m, NULL, NULL);
}

int ctl_change_color(struct ctl_nl *nl, enum acp_nl_cmd command, uint32_t color,
		     const void *address, int length)
{
	struct nl_msg *m = ctl_nl_new(nl, command);

	ctl_nl_put_u32(m, ACP_NL_A_COLOR, color);
	if (address != NULL)
		ctl_nl_put_bytes(m, ACP_NL_A_ADDRESS, address, length);
	return ctl_nl_do(nl, m, NULL, NULL);
}

/* Return the exit status after a change. */
static int end(struct ctl_nl *nl, const char *what, int err)
{
	int status = err ? ctl_nl_complain(nl, what, err) : CTL_OK;

	ctl_nl_close(nl);
	return status;
}

int ctl_node_set(struct ctl *c)
{
	struct ctl_argument list[] = {
		{ .name = "enable", .kind = CTL_ARG_SWITCH },
		{ .name = "timeout-min", .kind = CTL_ARG_TIME,
		  .least = ACP_NL_TIMEOUT_MIN * MS, .most = ACP_NL_TIMEOUT_MAX * MS },
		{ .name = "timeout-max", .kind = CTL_ARG_TIME,
		  .least = ACP_NL_TIMEOUT_MIN * MS, .most = ACP_NL_TIMEOUT_MAX * MS },
		{ .name = NULL }
	};
	static const enum acp_nl_attr attrs[] = {
		ACP_NL_A_ENABLE, ACP_NL_A_TIMEOUT_MIN, ACP_NL_A_TIMEOUT_MAX
	};
	struct nl_msg *m;
	struct ctl_nl nl;
	int status, i;

	if (ctl_arguments(&c->words, list))
		return CTL_USAGE;
	if (!list[0].given && !list[1].given && !list[2].given) {
		ctl_error("set what? enable, timeout-min or timeout-max");
		return CTL_USAGE;
	}
	status = ctl_nl_connect(&nl);
	if (status != CTL_OK)
		return status;
	m = ctl_nl_new(&nl, ACP_NL_CMD_NODE_SET);
	for (i = 0; list[i].name != NULL; i++)
		if (list[i].given)
			ctl_nl_put_u32(m, attrs[i],
				       (uint32_t)(i == 0 ? list[i].number : list[i].number / MS));
	return end(&nl, "node", ctl_nl_do(&nl, m, NULL, NULL));
}

int ctl_limit_set(struct ctl *c)
{
	const char *name = ctl_words_need(&c->words, "the name of a limit");
	const char *word;
	struct ctl_nl nl;
	uint64_t value;
	int status;

	if (name == NULL)
		return CTL_USAGE;
	if (ctl_limit_name(name) == NULL) {
		ctl_limit_unknown(name);
		return CTL_USAGE;
	}
	word = ctl_words_need(&c->words, "its value");
	if (word == NULL || ctl_words_end(&c->words) || ctl_limit_value(name, word, &value))
		return CTL_USAGE;
	status = ctl_nl_connect(&nl);
	if (status != CTL_OK)
		return status;
	return end(&nl, name, ctl_change_limit(&nl, name, value));
}

static int change_color(struct ctl *c, enum acp_nl_cmd command)
{
	const char *word = ctl_words_need(&c->words, "the number of a color");
	const char *address = NULL;
	unsigned char bytes[16];
	struct ctl_nl nl;
	int length = 0, status;
	uint64_t color;

	if (word == NULL || ctl_number(word, "color", 0, ACP_COLORS_MAX - 1, false, &color))
		return CTL_USAGE;
	if (command == ACP_NL_CMD_COLOR_ADD)
		address = ctl_words_need(&c->words, "its address");
	else
		address = ctl_words_take(&c->words);
	if (command == ACP_NL_CMD_COLOR_ADD && address == NULL)
		return CTL_USAGE;
	if (address != NULL)
		length = ctl_address(address, bytes);
	if (length < 0 || ctl_words_end(&c->words))
		return CTL_USAGE;
	status = ctl_nl_connect(&nl);
	if (status != CTL_OK)
		return status;
	return end(&nl, "color", ctl_change_color(&nl, command, (uint32_t)color,
						  address != NULL ? bytes : NULL, length));
}

int ctl_color_add(struct ctl *c)
{
	return change_color(c, ACP_NL_CMD_COLOR_ADD);
}

int ctl_color_del(struct ctl *c)
{
	return change_color(c, ACP_NL_CMD_COLOR_DEL);
}

int ctl_job_abort(struct ctl *c)
{
	const char *word = ctl_words_need(&c->words, "a job");
	uint32_t job;
	struct nl_msg *m;
	struct ctl_nl nl;
	int status, generation;

	if (word == NULL || ctl_words_end(&c->words) || ctl_parse_job(word, &job, &generation))
		return CTL_USAGE;
	status = ctl_nl_connect(&nl);
	if (status != CTL_OK)
		return status;
	m = ctl_nl_new(&nl, ACP_NL_CMD_JOB_ABORT);
	ctl_put_job(m, word);
	return end(&nl, word, ctl_nl_do(&nl, m, NULL, NULL));
}
