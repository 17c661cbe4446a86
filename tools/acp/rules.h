/* SPDX-License-Identifier: MIT */
/*
 * Effect of a packet filter on datagrams of ACP: rules of nft and iptables, reduced to what matters
 * for the first datagram from and to one UDP port.
 *
 * A rule matches, does not match, or its match depends on something unknown here (an address, an
 * interface, a rate). Therefore a filter passes the datagrams, drops them, or may drop them.
 */
#ifndef CTL_RULES_H
#define CTL_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* In this order: the conjunction of conditions is the minimum. */
enum ctl_sure { CTL_NO, CTL_MAYBE, CTL_YES };

enum ctl_act {
	CTL_ACT_NONE, CTL_ACT_ACCEPT, CTL_ACT_DROP, CTL_ACT_RETURN, CTL_ACT_JUMP, CTL_ACT_GOTO
};

struct ctl_rule {
	enum ctl_sure match;
	enum ctl_act act;
	char *target;		/* of JUMP and GOTO */
	char *text;		/* for messages */
};

struct ctl_chain {
	char *table, *name;	/* table: with its family, "inet filter" */
	bool base;		/* a base chain, which packets enter through a hook */
	bool drops;		/* policy of a base chain */
	struct ctl_rule *rule;
	size_t rules;
};

struct ctl_filter {
	struct ctl_chain *chain;
	size_t chains;
};

/*
 * The datagram: source and destination port, family 4 or 6. It does not pass the loopback
 * interface.
 */
struct ctl_datagram {
	int family;
	unsigned int port;
};

/* Add the output of nft or iptables-save to a filter. Returns 0, or -1 if it cannot be parsed. */
int ctl_rules_nft(struct ctl_filter *f, const struct ctl_datagram *d, const char *json,
		  bool skip_foreign);
int ctl_rules_iptables(struct ctl_filter *f, const struct ctl_datagram *d, const char *saved);

/*
 * Evaluate the filter. CTL_YES: the datagram passes. *culprit: the chain that drops or may drop it;
 * the caller frees it.
 */
enum ctl_sure ctl_rules_pass(const struct ctl_filter *f, char **culprit);

void ctl_rules_free(struct ctl_filter *f);

/*
 * Format the statements of an nft rule, given as JSON, as users write them; truncated if necessary.
 */
struct json_object;
void ctl_rules_text(struct json_object *statements, char *text, size_t size);

/* Used by the parsers. Strings are copied. */
struct ctl_chain *ctl_rules_chain(struct ctl_filter *f, const char *table, const char *name);
void ctl_rules_add(struct ctl_chain *c, enum ctl_sure match, enum ctl_act act, const char *target,
		   const char *text);
enum ctl_sure ctl_sure_and(enum ctl_sure a, enum ctl_sure b);
enum ctl_sure ctl_sure_not(enum ctl_sure a);

#endif /* CTL_RULES_H */
