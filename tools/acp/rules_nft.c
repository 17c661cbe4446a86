// SPDX-License-Identifier: MIT
/* Parser of the output of "nft --json list ruleset": see rules.h. */
#include "rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#define TEXT_MAX	256

/* Return a member that is a string, or "". */
static const char *string_of(struct json_object *o, const char *name)
{
	struct json_object *member;

	if (!json_object_object_get_ex(o, name, &member) ||
	    !json_object_is_type(member, json_type_string))
		return "";
	return json_object_get_string(member);
}

static bool is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* ---- Values ---- */

/* Value of a field of the datagram: a number, a word, or unknown. */
struct known {
	bool absent;		/* the datagram has no such field */
	bool number, word;
	unsigned int n;
	const char *text;
};

static enum ctl_sure same(const struct known *k, struct json_object *value);

static enum ctl_sure among(const struct known *k, struct json_object *list)
{
	size_t n = json_object_array_length(list), i;
	enum ctl_sure found = CTL_NO;

	for (i = 0; i < n && found != CTL_YES; i++) {
		enum ctl_sure one = same(k, json_object_array_get_idx(list, i));

		found = one > found ? one : found;
	}
	return found;
}

static enum ctl_sure within(const struct known *k, struct json_object *range)
{
	int64_t low, high;

	if (!k->number || !json_object_is_type(range, json_type_array) ||
	    json_object_array_length(range) != 2)
		return CTL_MAYBE;
	low = json_object_get_int64(json_object_array_get_idx(range, 0));
	high = json_object_get_int64(json_object_array_get_idx(range, 1));
	return k->n >= low && k->n <= high ? CTL_YES : CTL_NO;
}

/* A word may be a variable: the name of a set or of a service. */
static enum ctl_sure same_word(const struct known *k, const char *text)
{
	if (text[0] == '@' || !k->word)
		return CTL_MAYBE;
	return is(text, k->text) ? CTL_YES : CTL_NO;
}

static enum ctl_sure same(const struct known *k, struct json_object *value)
{
	struct json_object *inner;

	if (json_object_is_type(value, json_type_int))
		return !k->number ? CTL_MAYBE :
			json_object_get_int64(value) == k->n ? CTL_YES : CTL_NO;
	if (json_object_is_type(value, json_type_string))
		return same_word(k, json_object_get_string(value));
	if (json_object_is_type(value, json_type_array))
		return among(k, value);
	if (json_object_object_get_ex(value, "set", &inner))
		return json_object_is_type(inner, json_type_array) ? among(k, inner) :
			same(k, inner);
	if (json_object_object_get_ex(value, "range", &inner))
		return within(k, inner);
	if (json_object_object_get_ex(value, "elem", &inner) &&
	    json_object_object_get_ex(inner, "val", &inner))
		return same(k, inner);
	return CTL_MAYBE;
}

/* ---- Fields ---- */

#define UDP_NUMBER	17

static struct known payload(const struct ctl_datagram *d, struct json_object *left)
{
	const char *protocol = string_of(left, "protocol"), *field = string_of(left, "field");

	if (is(protocol, d->family == 4 ? "ip6" : "ip"))
		return (struct known){ .absent = true };
	if (is(protocol, "ip") || is(protocol, "ip6")) {
		if (is(field, "protocol") || is(field, "nexthdr"))
			return (struct known){ .number = true, .word = true, .n = UDP_NUMBER,
					       .text = "udp" };
		return (struct known){ 0 };
	}
	if (!is(protocol, "udp") && !is(protocol, "th"))
		return (struct known){ .absent = !is(protocol, "ether") && *protocol != '\0' };
	if (is(field, "dport") || is(field, "sport"))
		return (struct known){ .number = true, .n = d->port };
	return (struct known){ 0 };
}

/* Only the loopback interface is known: the datagram does not pass it. */
static enum ctl_sure by_card(struct json_object *right)
{
	if (json_object_is_type(right, json_type_string) && is(json_object_get_string(right), "lo"))
		return CTL_NO;
	return CTL_MAYBE;
}

static struct known meta(const struct ctl_datagram *d, const char *key)
{
	if (is(key, "l4proto"))
		return (struct known){ .number = true, .word = true, .n = UDP_NUMBER,
				       .text = "udp" };
	if (is(key, "nfproto"))
		return (struct known){ .word = true, .text = d->family == 4 ? "ipv4" : "ipv6" };
	if (is(key, "protocol"))
		return (struct known){ .word = true, .text = d->family == 4 ? "ip" : "ip6" };
	return (struct known){ 0 };
}

static enum ctl_sure compare(const struct ctl_datagram *d, struct json_object *left,
			     struct json_object *right)
{
	struct known k = { 0 };
	struct json_object *inner;
	const char *key;

	if (json_object_object_get_ex(left, "payload", &inner)) {
		k = payload(d, inner);
	} else if (json_object_object_get_ex(left, "meta", &inner)) {
		key = string_of(inner, "key");
		if (is(key, "iif") || is(key, "iifname") || is(key, "oif") || is(key, "oifname"))
			return by_card(right);
		k = meta(d, key);
	} else if (json_object_object_get_ex(left, "ct", &inner)) {
		key = string_of(inner, "key");
		if (is(key, "state"))
			k = (struct known){ .word = true, .text = "new" };
		k.absent = is(key, "status");	/* its address is not translated */
	}
	if (k.absent)
		return CTL_NO;
	if (!k.number && !k.word)
		return CTL_MAYBE;
	return same(&k, right);
}

static enum ctl_sure matches(const struct ctl_datagram *d, struct json_object *match)
{
	struct json_object *left, *right;
	const char *op = string_of(match, "op");
	enum ctl_sure sure;

	if (!json_object_object_get_ex(match, "left", &left) ||
	    !json_object_object_get_ex(match, "right", &right))
		return CTL_MAYBE;
	sure = compare(d, left, right);
	if (is(op, "==") || is(op, "in"))
		return sure;
	if (!is(op, "!="))
		return CTL_MAYBE;
	/* A field that does not exist is not unequal to any value. */
	if (json_object_object_get_ex(left, "payload", &left) && payload(d, left).absent)
		return CTL_NO;
	return ctl_sure_not(sure);
}

/* ---- Rules ---- */

struct rule {
	struct ctl_chain *chain;
	enum ctl_sure match;
	char text[TEXT_MAX];
};

/* Evaluate a verdict, which ends a rule. False if the statement is no verdict. */
static bool verdict(struct rule *r, enum ctl_sure match, struct json_object *e)
{
	struct json_object *inner;

	if (json_object_object_get_ex(e, "accept", NULL))
		ctl_rules_add(r->chain, match, CTL_ACT_ACCEPT, NULL, r->text);
	else if (json_object_object_get_ex(e, "drop", NULL) ||
		 json_object_object_get_ex(e, "reject", NULL))
		ctl_rules_add(r->chain, match, CTL_ACT_DROP, NULL, r->text);
	else if (json_object_object_get_ex(e, "return", NULL))
		ctl_rules_add(r->chain, match, CTL_ACT_RETURN, NULL, r->text);
	else if (json_object_object_get_ex(e, "jump", &inner))
		ctl_rules_add(r->chain, match, CTL_ACT_JUMP, string_of(inner, "target"), r->text);
	else if (json_object_object_get_ex(e, "goto", &inner))
		ctl_rules_add(r->chain, match, CTL_ACT_GOTO, string_of(inner, "target"), r->text);
	else
		return false;
	return true;
}

/* Convert "ct state vmap { established : accept, invalid : drop }" to a rule for each entry. */
static void verdict_map(struct rule *r, const struct ctl_datagram *d, struct json_object *map)
{
	struct json_object *key, *data, *pair;
	size_t i, n;

	if (!json_object_object_get_ex(map, "key", &key) ||
	    !json_object_object_get_ex(map, "data", &data))
		return;
	if (!json_object_object_get_ex(data, "set", &data) ||
	    !json_object_is_type(data, json_type_array)) {
		ctl_rules_add(r->chain, CTL_MAYBE, CTL_ACT_DROP, NULL, r->text);
		return;
	}
	n = json_object_array_length(data);
	for (i = 0; i < n; i++) {
		enum ctl_sure here;

		pair = json_object_array_get_idx(data, i);
		if (!json_object_is_type(pair, json_type_array) ||
		    json_object_array_length(pair) != 2)
			continue;
		here = compare(d, key, json_object_array_get_idx(pair, 0));
		verdict(r, ctl_sure_and(r->match, here), json_object_array_get_idx(pair, 1));
	}
}

/* True for statements that neither match nor decide. */
static bool only_notes(struct json_object *e)
{
	static const char *const notes[] = { "counter", "log", "mangle", "notrack", "meta", "ct",
					     "comment", "flow", "set" };
	size_t i;

	for (i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
		if (json_object_object_get_ex(e, notes[i], NULL))
			return true;
	return false;
}

static void take_rule(struct rule *r, const struct ctl_datagram *d, struct json_object *all)
{
	size_t n = json_object_array_length(all), i;
	struct json_object *inner;

	r->match = CTL_YES;
	for (i = 0; i < n; i++) {
		struct json_object *e = json_object_array_get_idx(all, i);

		if (json_object_object_get_ex(e, "match", &inner))
			r->match = ctl_sure_and(r->match, matches(d, inner));
		else if (json_object_object_get_ex(e, "vmap", &inner))
			verdict_map(r, d, inner);
		else if (verdict(r, r->match, e))
			return;
		else if (!only_notes(e))
			r->match = ctl_sure_and(r->match, CTL_MAYBE);
	}
}

/* ---- Rulesets ---- */

static bool of_family(const struct ctl_datagram *d, const char *family)
{
	return is(family, "inet") || is(family, d->family == 4 ? "ip" : "ip6");
}

static const char *table_name(struct json_object *o, char text[TEXT_MAX])
{
	const char *table = string_of(o, "table");

	snprintf(text, TEXT_MAX, "%s %s", string_of(o, "family"),
		 *table != '\0' ? table : string_of(o, "name"));
	return text;
}

static void take_chain(struct ctl_filter *f, struct json_object *o)
{
	static const char *const hooks[] = { "prerouting", "input", "output", "postrouting" };
	const char *hook = string_of(o, "hook");
	char table[TEXT_MAX];
	struct ctl_chain *c = ctl_rules_chain(f, table_name(o, table), string_of(o, "name"));
	size_t i;

	for (i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
		c->base |= is(hook, hooks[i]) && is(string_of(o, "type"), "filter");
	c->drops = is(string_of(o, "policy"), "drop");
}

/*
 * True for a table written by iptables with extensions that nft does not know: the output of
 * iptables is used instead.
 */
static bool is_foreign(struct json_object *all)
{
	size_t n = json_object_array_length(all), i;

	for (i = 0; i < n; i++)
		if (json_object_object_get_ex(json_object_array_get_idx(all, i), "xt", NULL))
			return true;
	return false;
}

static void forget_table(struct ctl_filter *f, const char *table)
{
	size_t i;

	for (i = 0; i < f->chains; i++)
		if (is(f->chain[i].table, table))
			f->chain[i].base = false;
}

/* Chains first, because verdicts jump to them. */
static void take_all(struct ctl_filter *f, const struct ctl_datagram *d, struct json_object *list,
		     bool skip_foreign, const char *kind)
{
	size_t n = json_object_array_length(list), i;
	char table[TEXT_MAX], text[TEXT_MAX - 8];
	struct json_object *o, *all;
	struct rule r;

	for (i = 0; i < n; i++) {
		if (!json_object_object_get_ex(json_object_array_get_idx(list, i), kind, &o) ||
		    !of_family(d, string_of(o, "family")))
			continue;
		if (is(kind, "chain")) {
			take_chain(f, o);
		} else if (json_object_object_get_ex(o, "expr", &all) &&
			   json_object_is_type(all, json_type_array)) {
			table_name(o, table);
			if (skip_foreign && is_foreign(all))
				forget_table(f, table);
			r.chain = ctl_rules_chain(f, table, string_of(o, "chain"));
			ctl_rules_text(all, text, sizeof(text));
			snprintf(r.text, sizeof(r.text), "rule '%s'", text);
			take_rule(&r, d, all);
		}
	}
}

int ctl_rules_nft(struct ctl_filter *f, const struct ctl_datagram *d, const char *json,
		  bool skip_foreign)
{
	struct json_object *whole = json_tokener_parse(json), *list;

	if (whole == NULL)
		return -1;
	if (!json_object_object_get_ex(whole, "nftables", &list) ||
	    !json_object_is_type(list, json_type_array)) {
		json_object_put(whole);
		return -1;
	}
	take_all(f, d, list, skip_foreign, "chain");
	take_all(f, d, list, skip_foreign, "rule");
	json_object_put(whole);
	return 0;
}
