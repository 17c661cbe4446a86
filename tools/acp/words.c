// SPDX-License-Identifier: MIT
/* Words of the command line: see words.h. */
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS_MAX	16

static const char *error_file;
static unsigned int error_line;

void ctl_error_at(const char *file, unsigned int line)
{
	error_file = file;
	error_line = line;
}

void ctl_error(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	fputs("acp: ", stderr);
	if (error_file != NULL)
		fprintf(stderr, "%s:%u: ", error_file, error_line);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

const char *ctl_words_take(struct ctl_words *w)
{
	if (w->left == 0)
		return NULL;
	w->left--;
	return *w->next++;
}

const char *ctl_words_need(struct ctl_words *w, const char *what)
{
	const char *word = ctl_words_take(w);

	if (word == NULL)
		ctl_error("%s is missing", what);
	return word;
}

int ctl_words_end(const struct ctl_words *w)
{
	if (w->left == 0)
		return 0;
	ctl_error("'%s' is too much", *w->next);
	return -1;
}

/* ---- Abbreviations ---- */

/* Print all names that a word may abbreviate, or all names. */
static void complain(const char *word, const char *const names[], const char *what, bool several)
{
	size_t length = several ? strlen(word) : 0;
	const char *between = "";
	int i;

	fflush(stdout);
	fprintf(stderr, "acp: '%s' is %s %s; %s ", word, several ? "more than one" : "no", what,
		several ? "it can be" : "there are");
	for (i = 0; names[i] != NULL; i++) {
		if (strncmp(names[i], word, length) != 0)
			continue;
		fprintf(stderr, "%s%s", between, names[i]);
		between = ", ";
	}
	fputc('\n', stderr);
}

int ctl_find(const char *word, const char *const names[])
{
	size_t length = strlen(word);
	int found = -1, i;

	for (i = 0; names[i] != NULL && length > 0; i++) {
		if (strncmp(names[i], word, length) != 0)
			continue;
		if (names[i][length] == '\0')
			return i;
		found = found == -1 ? i : -2;
	}
	return found;
}

int ctl_pick(const char *word, const char *const names[], const char *what)
{
	int found = ctl_find(word, names);

	if (found >= 0)
		return found;
	complain(word, names, what, found == -2);
	return -1;
}

/* ---- Numbers ---- */

static unsigned int shift_of(char suffix)
{
	switch (suffix) {
	case 'k': case 'K':
		return 10;
	case 'm': case 'M':
		return 20;
	case 'g': case 'G':
		return 30;
	default:
		return 0;
	}
}

static bool parse_number(const char *word, uint64_t most, bool suffix, uint64_t *value)
{
	bool hex = word[0] == '0' && (word[1] == 'x' || word[1] == 'X');
	unsigned int shift;
	char *end;

	if (word[0] < '0' || word[0] > '9')
		return false;
	errno = 0;
	*value = strtoull(word, &end, hex ? 16 : 10);
	if (errno != 0 || (hex && end == word + 2))
		return false;
	shift = suffix ? shift_of(*end) : 0;
	if (end[shift != 0] != '\0' || *value > most >> shift)
		return false;
	*value <<= shift;
	return true;
}

int ctl_number_in(const char *word, const char *name, const struct ctl_range *range, bool suffix,
		  uint64_t *value)
{
	if (parse_number(word, range->most, suffix, value) && *value >= range->least)
		return 0;
	ctl_error("%s must be a %s from %" PRIu64 " to %" PRIu64 "%s%s, not '%s'", name,
		  range->kind != NULL ? range->kind : "number", range->least, range->most,
		  range->unit != NULL ? " " : "", range->unit != NULL ? range->unit : "", word);
	return -1;
}

int ctl_number(const char *word, const char *name, uint64_t least, uint64_t most, bool suffix,
	       uint64_t *value)
{
	const struct ctl_range range = { .least = least, .most = most };

	return ctl_number_in(word, name, &range, suffix, value);
}

static const struct {
	const char *name;
	double ns;
} time_units[] = {
	{ "", 1e9 }, { "s", 1e9 }, { "ms", 1e6 }, { "us", 1e3 }, { "ns", 1 }, { "m", 60e9 },
	{ "h", 3600e9 },
};

static bool parse_time(const char *word, double *ns)
{
	char *end;
	size_t i;

	/*
	 * Digits and one point only: strtod() also accepts exponents, hexadecimal numbers,
	 * infinity, ...
	 */
	errno = 0;
	*ns = strtod(word, &end);
	if (errno != 0 || end == word || end != word + strspn(word, "0123456789."))
		return false;
	for (i = 0; i < sizeof(time_units) / sizeof(time_units[0]); i++) {
		if (strcmp(end, time_units[i].name) == 0) {
			*ns *= time_units[i].ns;
			return true;
		}
	}
	return false;
}

#define SHORT_TIME	32

/* Format a time in the largest unit for which it is an integer: "10ms", "90s", "1h". */
static const char *short_time(uint64_t ns, char text[SHORT_TIME])
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "h", 3600000000000 }, { "m", 60000000000 }, { "s", 1000000000 },
		{ "ms", 1000000 }, { "us", 1000 }, { "ns", 1 },
	};
	size_t i = 0;

	while (ns == 0 || ns % units[i].ns != 0) {
		if (ns == 0 && units[i].ns == 1000000000)
			break;
		i++;
	}
	snprintf(text, SHORT_TIME, "%" PRIu64 "%s", ns / units[i].ns, units[i].name);
	return text;
}

int ctl_time(const char *word, const char *name, uint64_t min_ns, uint64_t max_ns,
	     uint64_t *value)
{
	char least[SHORT_TIME], most[SHORT_TIME];
	double ns = 0;

	if (word[0] != '\0' && parse_time(word, &ns) && ns >= (double)min_ns &&
	    ns <= (double)max_ns) {
		*value = (uint64_t)llround(ns);
		return 0;
	}
	ctl_error("%s must be a time from %s to %s (seconds, or with unit: 200ms, 50us, 1m), not '%s'",
		  name, short_time(min_ns, least), short_time(max_ns, most), word);
	return -1;
}

int ctl_switch(const char *word, const char *name, bool *value)
{
	static const char *const words[] = { "off", "no", "0", "on", "yes", "1", NULL };
	int i;

	for (i = 0; words[i] != NULL; i++) {
		if (strcmp(word, words[i]) == 0) {
			*value = i >= 3;
			return 0;
		}
	}
	ctl_error("%s must be on or off, not '%s'", name, word);
	return -1;
}

/* ---- Named arguments ---- */

static int take_value(struct ctl_argument *a, const char *word)
{
	struct ctl_range range = { .least = a->least, .most = a->most };
	bool on;

	switch (a->kind) {
	case CTL_ARG_SIZE:
		range.unit = "bytes";
		return ctl_number_in(word, a->name, &range, true, &a->number);
	case CTL_ARG_PORT:
		range.kind = "port number";
		return ctl_number_in(word, a->name, &range, false, &a->number);
	case CTL_ARG_NUMBER:
		return ctl_number_in(word, a->name, &range, false, &a->number);
	case CTL_ARG_TIME:
		return ctl_time(word, a->name, a->least, a->most, &a->number);
	case CTL_ARG_SWITCH:
		if (ctl_switch(word, a->name, &on))
			return -1;
		a->number = on;
		return 0;
	case CTL_ARG_TEXT:
		break;
	}
	a->text = word;
	return 0;
}

static int take_argument(struct ctl_words *w, struct ctl_argument *a)
{
	const char *word = ctl_words_take(w);

	if (word == NULL) {
		ctl_error("%s needs a value", a->name);
		return -1;
	}
	if (a->given) {
		ctl_error("%s is given twice", a->name);
		return -1;
	}
	a->given = true;
	return take_value(a, word);
}

int ctl_arguments_and(struct ctl_words *w, struct ctl_argument *list, const char **bare)
{
	const char *names[ARGUMENTS_MAX + 1] = { NULL };
	const char *word;
	int found, i;

	for (i = 0; list[i].name != NULL && i < ARGUMENTS_MAX; i++)
		names[i] = list[i].name;
	while ((word = ctl_words_take(w)) != NULL) {
		found = ctl_find(word, names);
		if (found == -1 && bare != NULL && *bare == NULL) {
			*bare = word;
			continue;
		}
		if (found < 0) {
			if (names[0] == NULL)
				ctl_error("'%s' is too much", word);
			else
				complain(word, names, "argument", found == -2);
			return -1;
		}
		if (take_argument(w, &list[found]))
			return -1;
	}
	return 0;
}

int ctl_arguments(struct ctl_words *w, struct ctl_argument *list)
{
	return ctl_arguments_and(w, list, NULL);
}
