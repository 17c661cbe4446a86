/* SPDX-License-Identifier: MIT */
/*
 * Words of the command line: a cursor, abbreviations, numbers.
 *
 * A word may be abbreviated as long as it is unambiguous. Errors are printed to standard error in
 * one line; then functions return -1, and the command ends with CTL_USAGE.
 */
#ifndef CTL_WORDS_H
#define CTL_WORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses, see acp(8). */
enum ctl_exit {
	CTL_OK		= 0,
	CTL_FAILED	= 1,	/* the kernel refused, no answer, or a check failed */
	CTL_USAGE	= 2,	/* invalid command line, or line of a configuration file */
};

struct ctl_words {
	int left;
	char **next;
};

/* Print "acp: ..." to standard error. */
void ctl_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Set the line of a file that errors refer to from now on; NULL: none. */
void ctl_error_at(const char *file, unsigned int line);

/* Take the next word; NULL: there is none. */
const char *ctl_words_take(struct ctl_words *w);

/* As ctl_words_take(), but a missing word is an error; @what describes it. */
const char *ctl_words_need(struct ctl_words *w, const char *what);

/* Check that no word is left. */
int ctl_words_end(const struct ctl_words *w);

/*
 * Return the index of the name (NULL-terminated list) that a word is or abbreviates. @what: for the
 * error message, e.g. "object".
 */
int ctl_pick(const char *word, const char *const names[], const char *what);

/* As ctl_pick() without messages: -1 for none, -2 for several. */
int ctl_find(const char *word, const char *const names[]);

/*
 * Parse a number in a range, decimal or 0x, optionally with suffix K, M or G (powers of 1024).
 * @name: for the error message.
 */
int ctl_number(const char *word, const char *name, uint64_t least, uint64_t most, bool suffix,
	       uint64_t *value);

/*
 * Range for error messages about a number: "KIND from least to most UNIT"; NULL: "number", no unit.
 */
struct ctl_range {
	uint64_t least, most;
	const char *kind, *unit;
};

int ctl_number_in(const char *word, const char *name, const struct ctl_range *range, bool suffix,
		  uint64_t *value);

/* Parse a time in a range, in nanoseconds: "0.2" (seconds), "200ms", "50us", "1m". */
int ctl_time(const char *word, const char *name, uint64_t min_ns, uint64_t max_ns,
	     uint64_t *value);

/* Parse "on" or "off" (1, 0, yes, no). */
int ctl_switch(const char *word, const char *name, bool *value);

/*
 * Named arguments, in any order: "count 3 interval 0.1". Numbers and texts are stored. A missing
 * value or a repeated argument is an error.
 */
enum ctl_argument_kind {
	CTL_ARG_NUMBER, CTL_ARG_SIZE, CTL_ARG_PORT, CTL_ARG_TIME, CTL_ARG_SWITCH, CTL_ARG_TEXT
};

struct ctl_argument {
	const char *name;
	enum ctl_argument_kind kind;
	uint64_t least, most;
	bool given;
	uint64_t number;
	const char *text;
};

/*
 * Parse all remaining words as arguments of the list, which is terminated by an entry without name.
 */
int ctl_arguments(struct ctl_words *w, struct ctl_argument *list);

/*
 * As ctl_arguments(), but if @bare is not NULL, the first word that is no argument is stored there.
 */
int ctl_arguments_and(struct ctl_words *w, struct ctl_argument *list, const char **bare);

#endif /* CTL_WORDS_H */
