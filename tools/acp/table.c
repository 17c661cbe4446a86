// SPDX-License-Identifier: MIT
/* Tables of text: see table.h. */
#define _GNU_SOURCE
#include "table.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

struct row {
	char *cell[CTL_COLUMNS_MAX];	/* NULL: unknown */
};

struct ctl_table {
	const char *const *columns;
	int count;
	struct row *row;
	size_t rows;
};

static void *no_null(void *thing)
{
	if (thing != NULL)
		return thing;
	ctl_error("out of memory");
	exit(CTL_FAILED);
}

struct ctl_table *ctl_table_new(const char *const columns[])
{
	struct ctl_table *t = no_null(calloc(1, sizeof(*t)));

	t->columns = columns;
	while (t->count < CTL_COLUMNS_MAX && columns[t->count] != NULL)
		t->count++;
	return t;
}

void ctl_table_row(struct ctl_table *t)
{
	t->row = no_null(realloc(t->row, (t->rows + 1) * sizeof(*t->row)));
	t->row[t->rows++] = (struct row){ { NULL } };
}

void ctl_table_cell(struct ctl_table *t, const char *name, const char *value)
{
	int i;

	for (i = 0; i < t->count; i++) {
		if (strcmp(t->columns[i], name) != 0)
			continue;
		free(t->row[t->rows - 1].cell[i]);
		t->row[t->rows - 1].cell[i] = no_null(strdup(value));
	}
}

static const char *text_of(const struct row *r, int column)
{
	return r->cell[column] != NULL && r->cell[column][0] != '\0' ? r->cell[column] : "-";
}

static int width_of(const struct ctl_table *t, int column)
{
	size_t width = strlen(t->columns[column]), i;

	for (i = 0; i < t->rows; i++) {
		size_t length = strlen(text_of(&t->row[i], column));

		width = length > width ? length : width;
	}
	return (int)width;
}

/*
 * True for numbers, with or without unit, which are right-aligned; words and addresses are
 * left-aligned.
 */
static bool is_number(const char *text)
{
	const char *rest = text + strspn(text, "0123456789");

	if (*text == '-' && text[1] == '\0')
		return true;
	if (rest == text)
		return false;
	if (*rest == '.' && isdigit((unsigned char)rest[1]))
		rest += 1 + strspn(rest + 1, "0123456789");
	return strspn(rest, "KMGiBnums") == strlen(rest);
}

static bool has_numbers(const struct ctl_table *t, int column)
{
	size_t i;

	for (i = 0; i < t->rows; i++)
		if (!is_number(text_of(&t->row[i], column)))
			return false;
	return true;
}

static void print_cell(const char *text, int width, bool right, bool last)
{
	if (right)
		printf("%*s", width, text);
	else
		printf("%-*s", last ? 0 : width, text);
	fputs(last ? "\n" : "  ", stdout);
}

static void print_title(const char *name, int width, bool right, bool last)
{
	char title[64];
	size_t i;

	for (i = 0; name[i] != '\0' && i < sizeof(title) - 1; i++)
		title[i] = name[i] == '_' ? '-' : (char)toupper((unsigned char)name[i]);
	title[i] = '\0';
	print_cell(title, width, right, last);
}

static void print_table(const struct ctl_table *t)
{
	int width[CTL_COLUMNS_MAX], i;
	bool right[CTL_COLUMNS_MAX];
	size_t row;

	for (i = 0; i < t->count; i++) {
		width[i] = width_of(t, i);
		right[i] = has_numbers(t, i);
		print_title(t->columns[i], width[i], right[i], i + 1 == t->count);
	}
	for (row = 0; row < t->rows; row++)
		for (i = 0; i < t->count; i++)
			print_cell(text_of(&t->row[row], i), width[i], right[i],
				   i + 1 == t->count);
}

void ctl_table_end(struct ctl_table *t)
{
	size_t row;
	int i;

	if (t->rows > 0)
		print_table(t);
	for (row = 0; row < t->rows; row++)
		for (i = 0; i < t->count; i++)
			free(t->row[row].cell[i]);
	free(t->row);
	free(t);
}
