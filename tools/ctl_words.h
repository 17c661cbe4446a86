/* SPDX-License-Identifier: MIT */
/*
 * The words that were typed: a cursor over them, abbreviations, numbers.
 *
 * A word may be shortened as long as it means one thing only. What is wrong is
 * said on standard error, in one line; the functions then return -1 and the
 * command ends with CTL_USAGE.
 */
#ifndef CTL_WORDS_H
#define CTL_WORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses, as acp(8) has them. */
enum ctl_exit {
	CTL_OK		= 0,
	CTL_FAILED	= 1,	/* the kernel refused, nobody answered, a check failed */
	CTL_USAGE	= 2,	/* the command line, or a line of a configuration file */
};

struct ctl_words {
	int left;
	char **next;
};

/* "acp: ..." on standard error. */
void ctl_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From now on errors are about this line of a file; NULL: not any more. */
void ctl_error_at(const char *file, unsigned int line);

/* The next word, which is taken; NULL: there is none. */
const char *ctl_words_take(struct ctl_words *w);

/* The same, but a missing word is an error that names what it should be. */
const char *ctl_words_need(struct ctl_words *w, const char *what);

/* Nothing may be left. */
int ctl_words_end(const struct ctl_words *w);

/* Which of names (its end: NULL) a word is or abbreviates; what: "object", for the complaint. */
int ctl_pick(const char *word, const char *const names[], const char *what);

/* The same, silently: -1 for none, -2 for several. */
int ctl_find(const char *word, const char *const names[]);

/*
 * A number from least to most, decimal or 0x, with suffix K, M or G (powers of
 * 1024) if so wished; name: for the complaint.
 */
int ctl_number(const char *word, const char *name, uint64_t least, uint64_t most, bool suffix,
	       uint64_t *value);

/* A time: "0.2" (seconds), "200ms", "50us", "1m"; to nanoseconds, from least to most of them. */
int ctl_time(const char *word, const char *name, uint64_t least_ns, uint64_t most_ns,
	     uint64_t *value);

/* "on" or "off" (1, 0, yes, no). */
int ctl_switch(const char *word, const char *name, bool *value);

/*
 * Named arguments, in any order: "count 3 interval 0.1". Numbers are stored;
 * texts, too. An argument without its value, or twice, is an error.
 */
enum ctl_argument_kind { CTL_ARG_NUMBER, CTL_ARG_SIZE, CTL_ARG_TIME, CTL_ARG_SWITCH, CTL_ARG_TEXT };

struct ctl_argument {
	const char *name;
	enum ctl_argument_kind kind;
	uint64_t least, most;
	bool given;
	uint64_t number;
	const char *text;
};

/* All that is left must be arguments of the list; its end has no name. */
int ctl_arguments(struct ctl_words *w, struct ctl_argument *list);

/* The same, but the first word that is none of them, if bare is not NULL, is put there. */
int ctl_arguments_and(struct ctl_words *w, struct ctl_argument *list, const char **bare);

#endif /* CTL_WORDS_H */
