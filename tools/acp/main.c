// SPDX-License-Identifier: MIT
/* acp: show and change the state of the module acp on this node. See acp(8). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

#ifndef ACP_VERSION
#define ACP_VERSION	"unknown"
#endif

#define VERBS_MAX	4

struct verb {
	const char *name;
	int (*run)(struct ctl *c);
	const char *usage;
};

/* An object and its verbs; the first verb is the default. */
static const struct object {
	const char *name;
	struct verb verb[VERBS_MAX];
} objects[] = {
	{ "node", {
		{ "show", ctl_node_show, "" },
		{ "set", ctl_node_set,
		  "[enable on|off] [timeout-min TIME] [timeout-max TIME]" } } },
	{ "limit", {
		{ "show", ctl_limit_show, "[NAME]" },
		{ "set", ctl_limit_set, "NAME VALUE" } } },
	{ "color", {
		{ "show", ctl_color_show, "" },
		{ "add", ctl_color_add, "COLOR ADDRESS" },
		{ "delete", ctl_color_del, "COLOR [ADDRESS]" } } },
	{ "job", {
		{ "show", ctl_job_show, "[JOB]" },
		{ "abort", ctl_job_abort, "JOB" } } },
	{ "rank", { { "show", ctl_rank_show, "[RANK] [job JOB]" } } },
	{ "region", { { "show", ctl_region_show, "[job JOB] [rank RANK]" } } },
	{ "flow", { { "show", ctl_flow_show, "[job JOB] [node NODE] [color COLOR]" } } },
	{ "stat", { { "show", ctl_stat_show, "[NAME] [job JOB]" } } },
	{ "monitor", { { NULL, ctl_monitor, "[job JOB] [count N]" } } },
	{ "ping", { { NULL, ctl_ping,
		"RANK|ADDRESS|node NODE [job JOB] [count N] [interval TIME] [size BYTES]\n"
		"                 [timeout TIME] [color COLOR]" } } },
	{ "top", { { NULL, ctl_top, "[job JOB] [interval TIME] [count N]" } } },
	{ "check", { { NULL, ctl_check, "[port PORT]" } } },
	{ "conf", {
		{ "apply", ctl_conf_apply, "[FILE]" },
		{ "check", ctl_conf_check, "[FILE]" } } },
};

#define OBJECTS	(sizeof(objects) / sizeof(objects[0]))

static const char notes[] =
	"Words may be shortened; without COMMAND, show is meant.  JOB is ID or\n"
	"ID/GENERATION, TIME seconds or with unit: 200ms.\n"
	"  -j, --json       JSON          -p, --pretty    JSON, indented\n"
	"  -d, --details    all that is known, in place of a table\n"
	"  -n, --netns NAME there, as ip-netns(8) has named it\n"
	"  -h, --help       this text     -V, --version   version\n"
	"Exit status: 0 done, 1 refused or failed, 2 wrong usage.  Manual: acp(8).\n";

static void print_verbs(FILE *to, const struct object *o)
{
	int i;

	for (i = 0; i < VERBS_MAX && o->verb[i].run != NULL; i++)
		fprintf(to, "       acp %s%s%s%s%s\n", o->name, o->verb[i].name ? " " : "",
			o->verb[i].name ? o->verb[i].name : "", o->verb[i].usage[0] ? " " : "",
			o->verb[i].usage);
}

static int print_usage(FILE *to, const struct object *only)
{
	size_t i;

	fputs("Usage: acp [-j|-p|-d] [-n NETNS] OBJECT [COMMAND [ARGUMENTS]]\n", to);
	for (i = 0; i < OBJECTS; i++)
		if (only == NULL || only == &objects[i])
			print_verbs(to, &objects[i]);
	if (only == NULL)
		fputs(notes, to);
	return fflush(to) ? CTL_FAILED : CTL_OK;
}

static int pick_object(const char *word)
{
	const char *names[OBJECTS + 2];
	size_t i;

	for (i = 0; i < OBJECTS; i++)
		names[i] = objects[i].name;
	names[OBJECTS] = "help";
	names[OBJECTS + 1] = NULL;
	return ctl_pick(word, names, "object");
}

/*
 * True if no verb is given: nothing follows, or the next word is no verb and show takes arguments.
 */
static bool show_is_meant(const struct ctl *c, const struct object *o, const char *const names[])
{
	if (strcmp(o->verb[0].name, "show") != 0)
		return false;
	if (c->words.left == 0)
		return true;
	return o->verb[0].usage[0] != '\0' && ctl_find(*c->words.next, names) == -1;
}

static int run_verb(struct ctl *c, const struct object *o)
{
	const char *names[VERBS_MAX + 2] = { NULL };
	int n, i;

	if (o->verb[0].name == NULL)
		return o->verb[0].run(c);
	for (n = 0; n < VERBS_MAX && o->verb[n].run != NULL; n++)
		names[n] = o->verb[n].name;
	if (show_is_meant(c, o, names))
		return o->verb[0].run(c);
	if (c->words.left == 0) {
		ctl_error("%s what? See acp %s help", o->name, o->name);
		return CTL_USAGE;
	}
	i = ctl_pick(ctl_words_take(&c->words), names, "command");
	return i < 0 ? CTL_USAGE : o->verb[i].run(c);
}

static int run_object(struct ctl *c)
{
	const char *word = ctl_words_take(&c->words);
	int i = pick_object(word);

	if (i < 0)
		return CTL_USAGE;
	if (i == (int)OBJECTS)
		return print_usage(stdout, NULL);
	if (c->words.left == 1 && strcmp(*c->words.next, "help") == 0)
		return print_usage(stdout, &objects[i]);
	return run_verb(c, &objects[i]);
}

/* Enter a network namespace that was created by "ip netns add". */
static int enter_netns(const char *name)
{
	char path[300];
	int fd;

	if (strchr(name, '/') != NULL || strlen(name) > 255) {
		ctl_error("'%s' is no name of a network namespace", name);
		return CTL_USAGE;
	}
	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET)) {
		ctl_error("cannot enter network namespace %s: %s", name, strerror(errno));
		if (fd >= 0)
			close(fd);
		return CTL_FAILED;
	}
	close(fd);
	return CTL_OK;
}

static const struct option long_options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "pretty", no_argument, NULL, 'p' },
	{ "details", no_argument, NULL, 'd' },
	{ "netns", required_argument, NULL, 'n' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ "Version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

int main(int argc, char **argv)
{
	struct ctl c = { .form = CTL_TEXT };
	int option, status;

	while ((option = getopt_long(argc, argv, "+jpdn:hV", long_options, NULL)) != -1) {
		switch (option) {
		case 'j':
			c.form = c.form == CTL_PRETTY ? CTL_PRETTY : CTL_JSON;
			break;
		case 'p':
			c.form = CTL_PRETTY;
			break;
		case 'd':
			c.details = true;
			break;
		case 'n':
			status = enter_netns(optarg);
			if (status != CTL_OK)
				return status;
			break;
		case 'h':
			return print_usage(stdout, NULL);
		case 'V':
			puts("acp " ACP_VERSION);
			return fflush(stdout) ? CTL_FAILED : CTL_OK;
		default:
			return CTL_USAGE;
		}
	}
	c.words = (struct ctl_words){ argc - optind, argv + optind };
	if (c.words.left == 0) {
		print_usage(stderr, NULL);
		return CTL_USAGE;
	}
	return run_object(&c);
}
