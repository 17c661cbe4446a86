// SPDX-License-Identifier: MIT
/*
 * Settings from a file: acp conf apply|check. See acp.conf(5).
 *
 * The whole file is read first: if any line is wrong, nothing is changed. Then each setting is sent
 * to the kernel. If one is refused, the others are still applied.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "acp_ga.h"
#include "command.h"
#include "change.h"

#define MS		1000000ULL
#define LINE_BYTES_MAX	1024
#define SETTINGS_MAX	64
#define BLANKS		" \t\r\n"

enum kind { NODE, LIMIT, COLOR, NO_COLOR };

struct setting {
	enum kind kind;
	unsigned int line;
	enum acp_nl_attr attr;		/* NODE */
	const char *name;		/* LIMIT */
	uint64_t value;			/* COLOR: its number */
	unsigned char address[16];
	int length;			/* COLOR: of the address */
};

struct conf {
	const char *file;
	struct setting setting[SETTINGS_MAX];
	unsigned int count;
	unsigned int line;
	bool wrong;
};

static void wrong(struct conf *conf, const char *what, const char *word)
{
	ctl_error_at(conf->file, conf->line);
	ctl_error("%s%s%s%s", what, *word ? " '" : "", word, *word ? "'" : "");
	conf->wrong = true;
}

static struct setting *add(struct conf *conf, enum kind kind)
{
	if (conf->count == SETTINGS_MAX) {
		wrong(conf, "more settings than there can be", "");
		return NULL;
	}
	conf->setting[conf->count] = (struct setting){ .kind = kind, .line = conf->line };
	return &conf->setting[conf->count++];
}

/* True if a setting is given twice. A color may have an IPv4 and an IPv6 address. */
static bool twice(const struct conf *conf, const struct setting *s)
{
	const struct setting *o;

	for (o = conf->setting; o < s; o++) {
		if (o->kind != s->kind)
			continue;
		if (s->kind == NO_COLOR || (s->kind == NODE && o->attr == s->attr) ||
		    (s->kind == LIMIT && o->name == s->name) ||
		    (s->kind == COLOR && o->value == s->value && o->length == s->length))
			return true;
	}
	return false;
}

static int take_node(struct setting *s, const char *name, const char *word)
{
	uint64_t ns;
	bool on;

	if (s->attr == ACP_NL_A_ENABLE) {
		if (ctl_switch(word, name, &on))
			return -1;
		s->value = on;
		return 0;
	}
	if (ctl_time(word, name, ACP_NL_TIMEOUT_MIN * MS, ACP_NL_TIMEOUT_MAX * MS, &ns))
		return -1;
	s->value = ns / MS;
	return 0;
}

static void take_color(struct conf *conf, const char *word, const char *address)
{
	struct setting *s;

	if (strcmp(word, "none") == 0 && address == NULL) {
		s = add(conf, NO_COLOR);
		if (s != NULL && twice(conf, s))
			wrong(conf, "said before:", "color none");
		return;
	}
	if (address == NULL) {
		wrong(conf, "a color needs its number and its address, or none", "");
		return;
	}
	s = add(conf, COLOR);
	if (s == NULL)
		return;
	s->length = -1;
	if (!ctl_number(word, "color", 0, ACP_COLORS_MAX - 1, false, &s->value))
		s->length = ctl_address(address, s->address);
	if (s->length < 0)
		conf->wrong = true;
	else if (twice(conf, s))
		wrong(conf, "this color has an address already:", word);
}

static enum acp_nl_attr known_node(const char *name)
{
	if (strcmp(name, "enable") == 0)
		return ACP_NL_A_ENABLE;
	if (strcmp(name, "timeout_min") == 0)
		return ACP_NL_A_TIMEOUT_MIN;
	if (strcmp(name, "timeout_max") == 0)
		return ACP_NL_A_TIMEOUT_MAX;
	return ACP_NL_A_PAD;
}

static bool is_setting(const char *name)
{
	return strcmp(name, "color") == 0 || ctl_limit_name(name) != NULL ||
	       known_node(name) != ACP_NL_A_PAD;
}

static void take_value(struct conf *conf, const char *name, const char *word)
{
	enum acp_nl_attr attr = known_node(name);
	const char *limit = ctl_limit_name(name);
	struct setting *s;
	int err;

	s = add(conf, limit != NULL ? LIMIT : NODE);
	if (s == NULL)
		return;
	s->attr = attr;
	s->name = limit;
	err = limit != NULL ? ctl_limit_value(name, word, &s->value) : take_node(s, name, word);
	if (err)
		conf->wrong = true;
	else if (twice(conf, s))
		wrong(conf, "said before:", name);
}

static void take_line(struct conf *conf, char *text)
{
	char *rest = NULL, *name, *word, *more;

	text[strcspn(text, "#")] = '\0';
	name = strtok_r(text, BLANKS, &rest);
	if (name == NULL)
		return;
	word = strtok_r(NULL, BLANKS, &rest);
	more = strtok_r(NULL, BLANKS, &rest);
	if (!is_setting(name))
		wrong(conf, "no such setting:", name);
	else if (word == NULL)
		wrong(conf, "no value for", name);
	else if (strtok_r(NULL, BLANKS, &rest) != NULL ||
		 (more != NULL && strcmp(name, "color") != 0))
		wrong(conf, "more than one value for", name);
	else if (strcmp(name, "color") == 0)
		take_color(conf, word, more);
	else
		take_value(conf, name, word);
}

/* Report contradictory settings. */
static void compare(struct conf *conf)
{
	const struct setting *s, *least = NULL, *most = NULL, *color = NULL, *none = NULL;

	for (s = conf->setting; s < conf->setting + conf->count; s++) {
		if (s->kind == NODE && s->attr == ACP_NL_A_TIMEOUT_MIN)
			least = s;
		if (s->kind == NODE && s->attr == ACP_NL_A_TIMEOUT_MAX)
			most = s;
		if (s->kind == COLOR)
			color = s;
		if (s->kind == NO_COLOR)
			none = s;
	}
	if (least != NULL && most != NULL && least->value > most->value) {
		conf->line = least->line > most->line ? least->line : most->line;
		wrong(conf, "timeout_min is more than timeout_max", "");
	}
	if (color != NULL && none != NULL) {
		conf->line = color->line > none->line ? color->line : none->line;
		wrong(conf, "'color none' and a color", "");
	}
}

static int read_file(struct conf *conf)
{
	char text[LINE_BYTES_MAX];
	FILE *f = fopen(conf->file, "re");
	bool failed;

	if (f == NULL) {
		ctl_error("%s: %s", conf->file, strerror(errno));
		return CTL_FAILED;
	}
	while (fgets(text, sizeof(text), f) != NULL) {
		ctl_error_at(conf->file, ++conf->line);
		if (strchr(text, '\n') == NULL && !feof(f)) {
			wrong(conf, "a line of more than 1022 bytes", "");
			break;
		}
		take_line(conf, text);
	}
	ctl_error_at(NULL, 0);
	failed = ferror(f) != 0;
	fclose(f);
	if (failed) {
		ctl_error("%s: cannot be read", conf->file);
		return CTL_FAILED;
	}
	compare(conf);
	ctl_error_at(NULL, 0);
	return conf->wrong ? CTL_USAGE : CTL_OK;
}

/* ---- Applying ---- */

struct colors {
	uint32_t color[ACP_COLORS_MAX * 2];
	unsigned char address[ACP_COLORS_MAX * 2][16];
	int length[ACP_COLORS_MAX * 2];
	unsigned int count;
};

static void take_present(void *arg, const struct ctl_reply *r)
{
	const struct nlattr *a = r->a[ACP_NL_A_ADDRESS];
	struct colors *c = arg;

	if (a == NULL || c->count == ACP_COLORS_MAX * 2 || (nla_len(a) != 4 && nla_len(a) != 16))
		return;
	c->color[c->count] = ctl_reply_u32(r, ACP_NL_A_COLOR);
	c->length[c->count] = nla_len(a);
	memcpy(c->address[c->count++], nla_data(a), (size_t)nla_len(a));
}

static bool in_file(const struct conf *conf, uint32_t color, int length)
{
	const struct setting *s;

	for (s = conf->setting; s < conf->setting + conf->count; s++)
		if (s->kind == COLOR && s->value == color && s->length == length)
			return true;
	return false;
}

/* If the file has colors, they replace all others: delete those that are not in it. */
static int forget_colors(struct ctl_nl *nl, const struct conf *conf)
{
	struct colors present = { .count = 0 };
	int status = CTL_OK, err;
	unsigned int i;

	err = ctl_nl_dump(nl, ctl_nl_new(nl, ACP_NL_CMD_COLOR_GET), take_present, &present);
	if (err)
		return ctl_nl_complain(nl, "colors", err);
	for (i = 0; i < present.count; i++) {
		if (in_file(conf, present.color[i], present.length[i]))
			continue;
		err = ctl_change_color(nl, ACP_NL_CMD_COLOR_DEL, present.color[i],
				       present.address[i], present.length[i]);
		if (err && err != -ENOENT)
			status = ctl_nl_complain(nl, "color", err);
	}
	return status;
}

/* Set both bounds in one message, because their order would matter otherwise. */
static int set_node(struct ctl_nl *nl, const struct conf *conf)
{
	struct nl_msg *m = ctl_nl_new(nl, ACP_NL_CMD_NODE_SET);
	const struct setting *s;
	unsigned int line = 0;
	char where[LINE_BYTES_MAX];
	int err;

	for (s = conf->setting; s < conf->setting + conf->count; s++) {
		if (s->kind != NODE)
			continue;
		ctl_nl_put_u32(m, s->attr, (uint32_t)s->value);
		line = s->line;
	}
	if (line == 0) {
		nlmsg_free(m);
		return CTL_OK;
	}
	err = ctl_nl_do(nl, m, NULL, NULL);
	snprintf(where, sizeof(where), "%s:%u: enable or time-outs", conf->file, line);
	return err ? ctl_nl_complain(nl, where, err) : CTL_OK;
}

static int set_one(struct ctl_nl *nl, const struct conf *conf, const struct setting *s)
{
	char where[LINE_BYTES_MAX];
	int err;

	if (s->kind == LIMIT)
		err = ctl_change_limit(nl, s->name, s->value);
	else if (s->kind == COLOR)
		err = ctl_change_color(nl, ACP_NL_CMD_COLOR_ADD, (uint32_t)s->value, s->address,
				       s->length);
	else
		return CTL_OK;
	if (!err)
		return CTL_OK;
	snprintf(where, sizeof(where), "%s:%u: %s", conf->file, s->line,
		 s->kind == LIMIT ? s->name : "color");
	return ctl_nl_complain(nl, where, err);
}

static int apply(struct ctl_nl *nl, const struct conf *conf)
{
	int status = set_node(nl, conf);
	const struct setting *s;
	bool colors = false;

	for (s = conf->setting; s < conf->setting + conf->count; s++) {
		if (set_one(nl, conf, s) != CTL_OK)
			status = CTL_FAILED;
		colors |= s->kind == COLOR || s->kind == NO_COLOR;
	}
	if (colors && forget_colors(nl, conf) != CTL_OK)
		status = CTL_FAILED;
	return status;
}

static int run(struct ctl *c, bool apply_it)
{
	const char *file = ctl_words_take(&c->words);
	struct conf conf = { .file = file != NULL ? file : CTL_CONF_FILE };
	struct ctl_nl nl;
	int status;

	if (ctl_words_end(&c->words))
		return CTL_USAGE;
	status = read_file(&conf);
	if (status != CTL_OK || !apply_it)
		return status;
	status = ctl_nl_connect(&nl);
	if (status != CTL_OK)
		return status;
	status = apply(&nl, &conf);
	ctl_nl_close(&nl);
	return status;
}

int ctl_conf_apply(struct ctl *c)
{
	return run(c, true);
}

int ctl_conf_check(struct ctl *c)
{
	return run(c, false);
}
