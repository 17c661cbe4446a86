// SPDX-License-Identifier: MIT
/* Effect of a packet filter on datagrams of ACP: see rules.h. */
#include "rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

/* limit of rules to evaluate; a chain may be entered repeatedly */
#define STEPS_MAX	1000000
#define DEPTH_MAX	64

/* Possible results for the datagram, as bits. */
#define PASSES		1u
#define DROPPED		2u
#define FALLS_OUT	4u		/* reaches the end of a chain */

enum ctl_sure ctl_sure_and(enum ctl_sure a, enum ctl_sure b)
{
	return a < b ? a : b;
}

enum ctl_sure ctl_sure_not(enum ctl_sure a)
{
	return (enum ctl_sure)(CTL_YES - a);
}

static void *checked(void *memory)
{
	if (memory != NULL)
		return memory;
	ctl_error("out of memory");
	exit(CTL_FAILED);
}

static char *copy(const char *text)
{
	return checked(strdup(text));
}

struct ctl_chain *ctl_rules_chain(struct ctl_filter *f, const char *table, const char *name)
{
	struct ctl_chain *c;
	size_t i;

	for (i = 0; i < f->chains; i++)
		if (strcmp(f->chain[i].table, table) == 0 && strcmp(f->chain[i].name, name) == 0)
			return &f->chain[i];
	f->chain = checked(realloc(f->chain, (f->chains + 1) * sizeof(*f->chain)));
	c = &f->chain[f->chains++];
	*c = (struct ctl_chain){ .table = copy(table), .name = copy(name) };
	return c;
}

void ctl_rules_add(struct ctl_chain *c, enum ctl_sure match, enum ctl_act act, const char *target,
		   const char *text)
{
	if (match == CTL_NO || act == CTL_ACT_NONE)
		return;
	c->rule = checked(realloc(c->rule, (c->rules + 1) * sizeof(*c->rule)));
	c->rule[c->rules++] = (struct ctl_rule){
		.match = match,
		.act = act,
		.target = target != NULL ? copy(target) : NULL,
		.text = copy(text),
	};
}

void ctl_rules_free(struct ctl_filter *f)
{
	size_t i, k;

	for (i = 0; i < f->chains; i++) {
		for (k = 0; k < f->chain[i].rules; k++) {
			free(f->chain[i].rule[k].target);
			free(f->chain[i].rule[k].text);
		}
		free(f->chain[i].rule);
		free(f->chain[i].table);
		free(f->chain[i].name);
	}
	free(f->chain);
	*f = (struct ctl_filter){ NULL, 0 };
}

/* ---- Evaluation ---- */

struct walk {
	const struct ctl_filter *filter;
	const struct ctl_chain *by;	/* chain that drops it or may drop it */
	const char *why;
	unsigned int steps;
};

static unsigned int walk_chain(struct walk *w, const struct ctl_chain *c, int depth);

static void blame(struct walk *w, const struct ctl_chain *c, const char *why)
{
	if (w->by != NULL)
		return;
	w->by = c;
	w->why = why;
}

static unsigned int walk_target(struct walk *w, const struct ctl_chain *from, const char *name,
				int depth)
{
	size_t i;

	for (i = 0; i < w->filter->chains; i++) {
		const struct ctl_chain *c = &w->filter->chain[i];

		if (strcmp(c->table, from->table) == 0 && strcmp(c->name, name) == 0)
			return walk_chain(w, c, depth + 1);
	}
	return PASSES | DROPPED | FALLS_OUT;
}

/*
 * Return the possible results of a rule that matches; FALLS_OUT: evaluation continues with the next
 * rule.
 */
static unsigned int walk_rule(struct walk *w, const struct ctl_chain *c,
			      const struct ctl_rule *rule, int depth)
{
	switch (rule->act) {
	case CTL_ACT_ACCEPT:
		return PASSES;
	case CTL_ACT_DROP:
		blame(w, c, rule->text);
		return DROPPED;
	case CTL_ACT_JUMP:
	case CTL_ACT_GOTO:
		return walk_target(w, c, rule->target, depth);
	case CTL_ACT_RETURN:
	case CTL_ACT_NONE:
		break;
	}
	return FALLS_OUT;
}

static unsigned int walk_chain(struct walk *w, const struct ctl_chain *c, int depth)
{
	unsigned int may = 0;
	size_t i;

	if (depth > DEPTH_MAX)
		return PASSES | DROPPED | FALLS_OUT;
	for (i = 0; i < c->rules; i++) {
		const struct ctl_rule *rule = &c->rule[i];
		bool leaves = rule->act == CTL_ACT_RETURN || rule->act == CTL_ACT_GOTO;
		unsigned int here;

		if (++w->steps > STEPS_MAX)
			return PASSES | DROPPED | FALLS_OUT;
		here = walk_rule(w, c, rule, depth);
		may |= leaves ? here : here & ~FALLS_OUT;
		if (rule->match == CTL_YES && (leaves || !(here & FALLS_OUT)))
			return may;
	}
	return may | FALLS_OUT;
}

static unsigned int walk_base(struct walk *w, const struct ctl_chain *c)
{
	unsigned int may = walk_chain(w, c, 0);

	if (!(may & FALLS_OUT))
		return may;
	if (!c->drops)
		return (may & ~FALLS_OUT) | PASSES;
	blame(w, c, "its policy");
	return (may & ~FALLS_OUT) | DROPPED;
}

static char *describe(const struct walk *w)
{
	const char *where = w->by != NULL ? w->by->name : "?";
	const char *table = w->by != NULL ? w->by->table : "?";
	const char *why = w->by != NULL ? w->why : "too many rules";
	size_t room = strlen(where) + strlen(table) + strlen(why) + 40;
	char *text = checked(malloc(room));

	snprintf(text, room, "chain %s of table %s: %s", where, table, why);
	return text;
}

/* A datagram that is certainly dropped by one chain is dropped, regardless of the others. */
enum ctl_sure ctl_rules_pass(const struct ctl_filter *f, char **culprit)
{
	enum ctl_sure pass = CTL_YES;
	size_t i;

	*culprit = NULL;
	for (i = 0; i < f->chains; i++) {
		struct walk w = { .filter = f };
		enum ctl_sure here = CTL_YES;
		unsigned int may;

		if (!f->chain[i].base)
			continue;
		may = walk_base(&w, &f->chain[i]);
		if (may & DROPPED)
			here = may & PASSES ? CTL_MAYBE : CTL_NO;
		if (here >= pass)
			continue;
		pass = here;
		free(*culprit);
		*culprit = describe(&w);
	}
	return pass;
}
