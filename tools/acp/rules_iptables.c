// SPDX-License-Identifier: MIT
/* Parser of the output of iptables-save and ip6tables-save: see rules.h. */
#include "rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX	256
#define LINE_BYTES_MAX	4096

/* True if datagrams to or from this machine traverse the chain. */
static bool is_hook(const char *chain)
{
	static const char *const hooks[] = { "PREROUTING", "INPUT", "OUTPUT", "POSTROUTING" };
	size_t i;

	for (i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
		if (strcmp(chain, hooks[i]) == 0)
			return true;
	return false;
}

/* Split a line into words. Blanks separate words, unless quoted. Modifies the line. */
static int split(char *line, char *words[WORDS_MAX])
{
	int n = 0;

	while (n < WORDS_MAX) {
		char *to;

		line += strspn(line, " \t");
		if (*line == '\0')
			break;
		to = line;
		words[n++] = to;
		if (*line == '"') {
			for (line++; *line != '\0' && *line != '"'; *to++ = *line++)
				line += *line == '\\' && line[1] != '\0';
			line += *line == '"';
		} else {
			size_t length = strcspn(line, " \t");

			to += length;
			line += length;
		}
		if (*line != '\0')
			line++;
		*to = '\0';
	}
	return n;
}

/* Check a port against a list such as "16707", "16000:17000", "22,16000:17000". */
static enum ctl_sure port_among(const char *list, unsigned int port)
{
	while (*list != '\0') {
		char *end;
		unsigned long low = strtoul(list, &end, 10), high = low;

		if (*end == ':')
			high = strtoul(end + 1, &end, 10);
		if (port >= low && port <= high)
			return CTL_YES;
		if (*end != ',' && *end != '\0')
			return CTL_MAYBE;	/* the name of a service */
		list = end + (*end == ',');
	}
	return CTL_NO;
}

static enum ctl_sure among(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (;;) {
		size_t here = strcspn(list, ",");

		if (here == length && strncmp(list, word, length) == 0)
			return CTL_YES;
		if (list[here] == '\0')
			return CTL_NO;
		list += here + 1;
	}
}

static enum ctl_sure protocol(const char *name)
{
	return strcmp(name, "udp") == 0 || strcmp(name, "17") == 0 || strcmp(name, "all") == 0 ?
		CTL_YES : CTL_NO;
}

static bool is(const char *word, const char *a, const char *b)
{
	return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

/* Evaluate one condition: words[*i] and its values. */
static enum ctl_sure condition(const struct ctl_datagram *d, char **words, int n, int *i)
{
	const char *option = words[*i];
	const char *value = *i + 1 < n ? words[*i + 1] : "";

	++*i;
	if (is(option, "-m", "--match") || is(option, "--comment", "--comment"))
		return CTL_YES;
	if (is(option, "-p", "--protocol"))
		return protocol(value);
	if (is(option, "-i", "-o"))
		return strcmp(value, "lo") == 0 ? CTL_NO : CTL_MAYBE;
	if (is(option, "--dport", "--sport") || is(option, "--dports", "--sports") ||
	    is(option, "--ports", "--port"))
		return port_among(value, d->port);
	if (is(option, "--ctstate", "--state"))
		return among(value, "NEW");
	if (is(option, "--dst-type", "--dst-type"))
		return is(value, "LOCAL", "UNICAST") ? CTL_YES : CTL_NO;
	while (*i + 1 < n && words[*i + 1][0] != '-' && words[*i + 1][0] != '!')
		++*i;
	return CTL_MAYBE;
}

static enum ctl_act action(const struct ctl_filter *f, const char *table, const char *target)
{
	size_t i;

	if (strcmp(target, "ACCEPT") == 0)
		return CTL_ACT_ACCEPT;
	if (is(target, "DROP", "REJECT"))
		return CTL_ACT_DROP;
	if (strcmp(target, "RETURN") == 0)
		return CTL_ACT_RETURN;
	for (i = 0; i < f->chains; i++)
		if (strcmp(f->chain[i].table, table) == 0 && strcmp(f->chain[i].name, target) == 0)
			return CTL_ACT_JUMP;
	return CTL_ACT_NONE;		/* LOG, MARK, counters */
}

/* Parse a rule: "-A INPUT -p udp -m udp --dport 16707 -j DROP" */
static void take_rule(struct ctl_filter *f, const struct ctl_datagram *d, const char *table,
		      const char *line)
{
	enum ctl_sure match = CTL_YES;
	char *words[WORDS_MAX], *target = NULL;
	char text[LINE_BYTES_MAX];
	bool going = false, negated = false;
	int n, i;

	snprintf(text, sizeof(text), "%s", line);
	n = split(text, words);
	if (n < 2)
		return;
	for (i = 2; i < n && target == NULL; i++) {
		enum ctl_sure one;

		if (strcmp(words[i], "!") == 0) {
			negated = true;
			continue;
		}
		if (i + 1 < n && (is(words[i], "-j", "-g") || is(words[i], "--jump", "--goto"))) {
			going = strchr(words[i], 'g') != NULL;
			target = words[i + 1];
			break;
		}
		one = condition(d, words, n, &i);
		match = ctl_sure_and(match, negated ? ctl_sure_not(one) : one);
		negated = false;
	}
	if (target != NULL) {
		enum ctl_act act = action(f, table, target);

		if (act == CTL_ACT_JUMP && going)
			act = CTL_ACT_GOTO;
		ctl_rules_add(ctl_rules_chain(f, table, words[1]), match, act, target, line);
	}
}

/* Parse a chain: ":INPUT DROP [0:0]" */
static void take_chain(struct ctl_filter *f, const char *table, const char *line)
{
	char name[64], policy[16];
	struct ctl_chain *c;

	if (sscanf(line, ":%63s %15s", name, policy) != 2)
		return;
	c = ctl_rules_chain(f, table, name);
	c->base = is_hook(name) && strcmp(policy, "-") != 0;
	c->drops = strcmp(policy, "DROP") == 0;
}

/* Tables for address translation are skipped: only packets that passed the others reach them. */
int ctl_rules_iptables(struct ctl_filter *f, const struct ctl_datagram *d, const char *saved)
{
	char line[LINE_BYTES_MAX], table[80] = "";

	while (*saved != '\0') {
		size_t length = strcspn(saved, "\n");
		size_t kept = length < LINE_BYTES_MAX ? length : LINE_BYTES_MAX;

		snprintf(line, sizeof(line), "%.*s", (int)kept, saved);
		saved += length + (saved[length] == '\n');
		if (line[0] == '*')
			snprintf(table, sizeof(table), "%s %.60s", d->family == 4 ? "ip" : "ip6",
				 line + 1);
		else if (strstr(table, " nat") != NULL || table[0] == '\0')
			continue;
		else if (line[0] == ':')
			take_chain(f, table, line);
		else if (strncmp(line, "-A ", 3) == 0)
			take_rule(f, d, table, line);
	}
	return 0;
}
