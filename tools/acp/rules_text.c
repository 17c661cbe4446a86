// SPDX-License-Identifier: MIT
/* Formatting of nft rules, from JSON to the syntax that users write: see rules.h. */
#include "rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

/* A text of limited size, which is truncated. */
struct text {
	char *at;
	size_t left;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(t->at, t->left, format, args);
	va_end(args);
	if (length < 0)
		return;
	if ((size_t)length >= t->left)
		length = (int)t->left - 1;
	t->at += length;
	t->left -= (size_t)length;
}

static const char *member(struct json_object *o, const char *name)
{
	struct json_object *found;

	return json_object_object_get_ex(o, name, &found) ? json_object_get_string(found) : "?";
}

static void add_value(struct text *t, struct json_object *value);

/* Format a set, "{ 1, 2 }", or a map, "{ 1 : drop, 2 : accept }". */
static void add_list(struct text *t, struct json_object *list, const char *between)
{
	size_t n = json_object_array_length(list), i;

	add(t, "{ ");
	for (i = 0; i < n; i++) {
		struct json_object *one = json_object_array_get_idx(list, i);

		if (i != 0)
			add(t, ", ");
		if (*between == '\0' || !json_object_is_type(one, json_type_array) ||
		    json_object_array_length(one) != 2) {
			add_value(t, one);
			continue;
		}
		add_value(t, json_object_array_get_idx(one, 0));
		add(t, "%s", between);
		add_value(t, json_object_array_get_idx(one, 1));
	}
	add(t, " }");
}

static void add_range(struct text *t, struct json_object *range)
{
	if (!json_object_is_type(range, json_type_array) || json_object_array_length(range) != 2) {
		add(t, "?");
		return;
	}
	add_value(t, json_object_array_get_idx(range, 0));
	add(t, "-");
	add_value(t, json_object_array_get_idx(range, 1));
}

/* Format a field, verdict or other word: an object with one member. */
static void add_object(struct text *t, const char *name, struct json_object *inner)
{
	if (strcmp(name, "payload") == 0)
		add(t, "%s %s", member(inner, "protocol"), member(inner, "field"));
	else if (strcmp(name, "meta") == 0 || strcmp(name, "ct") == 0)
		add(t, "%s %s", name, member(inner, "key"));
	else if (strcmp(name, "prefix") == 0)
		add(t, "%s/%s", member(inner, "addr"), member(inner, "len"));
	else if (strcmp(name, "jump") == 0 || strcmp(name, "goto") == 0)
		add(t, "%s %s", name, member(inner, "target"));
	else if (strcmp(name, "range") == 0)
		add_range(t, inner);
	else if (strcmp(name, "set") == 0 || strcmp(name, "elem") == 0)
		add_value(t, inner);
	else
		add(t, "%s", name);
}

static void add_value(struct text *t, struct json_object *value)
{
	struct json_object *inner;

	if (json_object_is_type(value, json_type_array)) {
		add_list(t, value, " : ");
		return;
	}
	if (!json_object_is_type(value, json_type_object)) {
		add(t, "%s", value != NULL ? json_object_get_string(value) : "?");
		return;
	}
	if (json_object_object_get_ex(value, "val", &inner)) {
		add_value(t, inner);
		return;
	}
	json_object_object_foreach(value, name, first) {
		add_object(t, name, first);
		return;
	}
}

static void add_match(struct text *t, struct json_object *match)
{
	struct json_object *left = NULL, *right = NULL;
	const char *op = member(match, "op");

	json_object_object_get_ex(match, "left", &left);
	json_object_object_get_ex(match, "right", &right);
	add_value(t, left);
	if (strcmp(op, "==") != 0 && strcmp(op, "in") != 0)
		add(t, " %s", op);
	add(t, " ");
	if (json_object_is_type(right, json_type_array))
		add_list(t, right, "");
	else
		add_value(t, right);
}

static void add_map(struct text *t, struct json_object *map)
{
	struct json_object *key = NULL, *data = NULL;

	json_object_object_get_ex(map, "key", &key);
	json_object_object_get_ex(map, "data", &data);
	add_value(t, key);
	add(t, " vmap ");
	add_value(t, data);
}

static void add_statement(struct text *t, struct json_object *e)
{
	struct json_object *inner;

	if (json_object_object_get_ex(e, "match", &inner))
		add_match(t, inner);
	else if (json_object_object_get_ex(e, "vmap", &inner))
		add_map(t, inner);
	else if (json_object_object_get_ex(e, "limit", &inner))
		add(t, "limit rate %s/%s", member(inner, "rate"), member(inner, "per"));
	else
		add_value(t, e);
}

void ctl_rules_text(struct json_object *statements, char *text, size_t size)
{
	size_t n = json_object_array_length(statements), i;
	struct text t = { text, size };

	*text = '\0';
	for (i = 0; i < n; i++) {
		if (i != 0)
			add(&t, " ");
		add_statement(&t, json_object_array_get_idx(statements, i));
	}
}
