// SPDX-License-Identifier: MIT
/* Output of commands: see out.h. */
#include "out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "words.h"

#define NAME_MAX_LENGTH	64
#define TEXT_MAX	512

static void no_memory(const void *thing)
{
	if (thing != NULL)
		return;
	ctl_error("out of memory");
	exit(CTL_FAILED);
}

static void print_json(const struct ctl_out *o, struct json_object *what)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;
	const char *text;

	if (o->form == CTL_PRETTY)
		flags |= JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED;
	text = json_object_to_json_string_ext(what, flags);
	no_memory(text);
	puts(text);
}

/* The record is complete. */
void ctl_out_end_record(struct ctl_out *o)
{
	if (!o->open)
		return;
	o->open = false;
	if (o->table != NULL) {
		o->now = NULL;
		return;
	}
	if (o->form == CTL_TEXT) {
		putchar('\n');
	} else if (o->stream) {
		print_json(o, o->now);
		json_object_put(o->now);
	}
	o->now = NULL;
	if (o->stream)
		fflush(stdout);
}

void ctl_out_open(struct ctl_out *o, enum ctl_form form, bool stream)
{
	*o = (struct ctl_out){ .form = form, .stream = stream };
	if (form == CTL_TEXT || stream)
		return;
	o->all = json_object_new_array();
	no_memory(o->all);
}

void ctl_out_table(struct ctl_out *o, const char *const columns[])
{
	if (o->form == CTL_TEXT)
		o->table = ctl_table_new(columns);
}

void ctl_out_record(struct ctl_out *o)
{
	ctl_out_end_record(o);
	if (o->table != NULL)
		ctl_table_row(o->table);
	o->open = true;
	o->fresh = true;
	o->fold = false;
	if (o->form == CTL_TEXT)
		return;
	o->now = json_object_new_object();
	no_memory(o->now);
	if (o->all != NULL && json_object_array_add(o->all, o->now))
		no_memory(NULL);
}

void ctl_out_fold(struct ctl_out *o)
{
	if (o->form != CTL_TEXT || o->fresh)
		return;
	o->fold = true;
}

/* Text: print the separator between two values. */
static void put_gap(struct ctl_out *o)
{
	if (o->fold)
		fputs("\n    ", stdout);
	else if (!o->fresh)
		putchar(' ');
	o->fold = false;
	o->fresh = false;
}

static void put_name(struct ctl_out *o, const char *name)
{
	put_gap(o);
	while (*name != '\0') {
		putchar(*name == '_' ? '-' : *name);
		name++;
	}
}

/* Text: print separator, name and value, or a cell of the table. */
static void put_value(struct ctl_out *o, const char *name, const char *value)
{
	if (o->table != NULL) {
		ctl_table_cell(o->table, name, value);
		return;
	}
	put_name(o, name);
	printf(" %s", value);
}

void ctl_out_json(struct ctl_out *o, const char *name, struct json_object *value)
{
	no_memory(value);
	if (o->now == NULL)
		json_object_put(value);
	else if (json_object_object_add(o->now, name, value))
		no_memory(NULL);
}

const char *ctl_time_text(uint64_t ns, char text[CTL_TIME_TEXT])
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = { { 1000000000, "s" }, { 1000000, "ms" }, { 1000, "us" }, { 1, "ns" } };
	size_t i = 0;
	int end;

	while (i < 3 && ns < units[i].ns)
		i++;
	end = snprintf(text, CTL_TIME_TEXT - 3, "%.*f", i < 3 ? 3 : 0,
		       (double)ns / (double)units[i].ns);
	while (i < 3 && text[end - 1] == '0')
		end--;
	if (text[end - 1] == '.')
		end--;
	strcpy(text + end, units[i].name);
	return text;
}

static void text_number(const char *name, uint64_t value, enum ctl_unit unit, struct ctl_out *o)
{
	char text[CTL_TIME_TEXT];

	switch (unit) {
	case CTL_HEX:
		snprintf(text, sizeof(text), "0x%" PRIx64, value);
		break;
	case CTL_NS:
		ctl_time_text(value, text);
		break;
	case CTL_MS:
		ctl_time_text(value * 1000000, text);
		break;
	case CTL_KIB:
		snprintf(text, sizeof(text), "%" PRIu64 "KiB", value);
		break;
	case CTL_PLAIN:
	case CTL_BYTES:
		snprintf(text, sizeof(text), "%" PRIu64, value);
		break;
	}
	put_value(o, name, text);
}

void ctl_out_number(struct ctl_out *o, const char *name, uint64_t value, enum ctl_unit unit)
{
	static const char *const suffix[] = {
		[CTL_PLAIN] = "", [CTL_HEX] = "", [CTL_NS] = "_ns", [CTL_MS] = "_ms",
		[CTL_BYTES] = "_bytes", [CTL_KIB] = "_kib",
	};
	char full[NAME_MAX_LENGTH];

	if (o->form == CTL_TEXT) {
		text_number(name, value, unit, o);
		return;
	}
	snprintf(full, sizeof(full), "%s%s", name, suffix[unit]);
	ctl_out_json(o, full, json_object_new_uint64(value));
}

void ctl_out_signed(struct ctl_out *o, const char *name, int64_t value)
{
	char text[CTL_TIME_TEXT];

	if (o->form != CTL_TEXT) {
		ctl_out_json(o, name, json_object_new_int64(value));
		return;
	}
	snprintf(text, sizeof(text), "%" PRId64, value);
	put_value(o, name, text);
}

static const char *clean(const char *value, char text[TEXT_MAX])
{
	size_t i;

	for (i = 0; value[i] != '\0' && i < TEXT_MAX - 1; i++)
		text[i] = value[i] >= ' ' && value[i] <= '~' ? value[i] : '?';
	text[i] = '\0';
	return text;
}

void ctl_out_text(struct ctl_out *o, const char *name, const char *value)
{
	char text[TEXT_MAX];

	if (o->form != CTL_TEXT) {
		ctl_out_json(o, name, json_object_new_string(clean(value, text)));
		return;
	}
	put_value(o, name, clean(value, text));
}

void ctl_out_word(struct ctl_out *o, const char *name, const char *value)
{
	char text[TEXT_MAX];

	if (o->form != CTL_TEXT || o->table != NULL) {
		ctl_out_text(o, name, value);
		return;
	}
	put_gap(o);
	fputs(clean(value, text), stdout);
}

void ctl_out_flag(struct ctl_out *o, const char *name, bool value)
{
	if (o->form != CTL_TEXT)
		ctl_out_json(o, name, json_object_new_boolean(value));
	else if (o->table != NULL)
		ctl_table_cell(o->table, name, value ? "yes" : "no");
	else if (value)
		put_name(o, name);
}

void ctl_out_switch(struct ctl_out *o, const char *name, bool value)
{
	if (o->form != CTL_TEXT)
		ctl_out_json(o, name, json_object_new_boolean(value));
	else
		ctl_out_text(o, name, value ? "on" : "off");
}

int ctl_out_close(struct ctl_out *o)
{
	ctl_out_end_record(o);
	if (o->table != NULL) {
		ctl_table_end(o->table);
		o->table = NULL;
	}
	if (o->all != NULL) {
		print_json(o, o->all);
		json_object_put(o->all);
		o->all = NULL;
	}
	if (fflush(stdout) == 0 && !ferror(stdout))
		return CTL_OK;
	ctl_error("cannot write: %s", strerror(errno));
	return CTL_FAILED;
}
