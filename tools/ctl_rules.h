/* SPDX-License-Identifier: MIT */
/*
 * What a packet filter does with datagrams of ACP: rules of nft and iptables,
 * reduced to what matters for a first datagram from and to one UDP port.
 *
 * Of a rule three things can be known: it matches, it does not, or that depends
 * on what is not known here (an address, a card, a rate). So a filter passes
 * our datagrams, drops them, or may drop them.
 */
#ifndef CTL_RULES_H
#define CTL_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* In this order: "and" of conditions is the least. */
enum ctl_sure { CTL_NO, CTL_MAYBE, CTL_YES };

enum ctl_act {
	CTL_ACT_NONE, CTL_ACT_ACCEPT, CTL_ACT_DROP, CTL_ACT_RETURN, CTL_ACT_JUMP, CTL_ACT_GOTO
};

struct ctl_rule {
	enum ctl_sure match;
	enum ctl_act act;
	char *target;		/* of JUMP and GOTO */
	char *text;		/* for people */
};

struct ctl_chain {
	char *table, *name;	/* table: with its family, "inet filter" */
	bool base;		/* packets come in here by themselves */
	bool drops;		/* policy of a base chain */
	struct ctl_rule *rule;
	size_t rules;
};

struct ctl_filter {
	struct ctl_chain *chain;
	size_t chains;
};

/* The datagram: from and to this port, of family 4 or 6. It is not by the loopback card. */
struct ctl_datagram {
	int family;
	unsigned int port;
};

/* Add to a filter what a tool has printed. 0, or -1 if that cannot be understood. */
int ctl_rules_nft(struct ctl_filter *f, const struct ctl_datagram *d, const char *json,
		  bool skip_foreign);
int ctl_rules_iptables(struct ctl_filter *f, const struct ctl_datagram *d, const char *saved);

/* What becomes of the datagram: YES, it passes. culprit: who drops or may drop it, to be freed. */
enum ctl_sure ctl_rules_pass(const struct ctl_filter *f, char **culprit);

void ctl_rules_free(struct ctl_filter *f);

/* For those who read rules. The strings are copied. */
struct ctl_chain *ctl_rules_chain(struct ctl_filter *f, const char *table, const char *name);
void ctl_rules_add(struct ctl_chain *c, enum ctl_sure match, enum ctl_act act, const char *target,
		   const char *text);
enum ctl_sure ctl_sure_and(enum ctl_sure a, enum ctl_sure b);
enum ctl_sure ctl_sure_not(enum ctl_sure a);

#endif /* CTL_RULES_H */
