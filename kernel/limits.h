/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits that an administrator sets, enum acp_limit of the ABI.
 *
 * The module's parameters bound the machine: what a user has in all network
 * namespaces together, and what a namespace, a job or a ring may be anywhere.
 * Each namespace has sysctls of the same names (net.acp) for what is its own;
 * both hold.  Those of the first namespace are the module's parameters
 * themselves, so that there is one place to set them.
 */
#ifndef ACP_LIMITS_H
#define ACP_LIMITS_H

#include <linux/atomic.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include "acp_abi.h"

struct acp_node;
struct ctl_table_header;

#define ACP_LIMIT_ENABLE	0	/* beside those of the ABI: may ranks join? */

struct acp_limits {
	unsigned long max[ACP_LIMIT_END];
	struct ctl_table_header *sysctls;
};

/*
 * What a user has in a namespace, or on the machine.  Made by the first that
 * looks for it, gone with the last reference.
 */
struct acp_user {
	const struct acp_limits *limits;	/* of that namespace; for charging only */
	kuid_t uid;
	refcount_t refs;
	atomic_long_t used[ACP_LIMIT_END];
	struct acp_user *whole;		/* the same user on the machine; NULL: this is it */
	struct hlist_node link;
};

/* In place of -EDQUOT within the module: which limit was reached. */
#define ACP_OVER_FIRST		3000

static inline int acp_over(enum acp_limit limit)
{
	return -(ACP_OVER_FIRST + (int)limit);
}

/* The limit that an error stands for, or 0. */
static inline u32 acp_over_which(int err)
{
	return err <= -ACP_OVER_FIRST ? -err - ACP_OVER_FIRST : 0;
}

int acp_limits_init(void);

/* The sysctls of a namespace.  0 or -ENOMEM. */
int acp_limits_enter(struct acp_node *node);
void acp_limits_leave(struct acp_node *node);

/* May ranks join there? */
bool acp_limits_enabled(const struct acp_node *node);

/* Of the machine alone? */
bool acp_limits_machine_enabled(void);

/* A limit as an administrator sees it, and what the caller uses of it. */
struct acp_limit_info {
	const char *name, *text;
	unsigned long here, machine, least, most;
	bool counted;		/* used means something */
	unsigned long used;	/* by the namespace, or the caller there */
};

/* The limit of that name, or 0; enable is none. */
u32 acp_limits_find(const char *name);
const char *acp_limits_name(u32 limit);
void acp_limits_describe(struct acp_node *node, u32 limit, struct acp_limit_info *info);

/* Set it for the namespace; -EINVAL: not a value it can have. */
int acp_limits_set(struct acp_node *node, u32 limit, u64 value);

/* Users who have something in the namespace. */
u32 acp_limits_users(const struct acp_node *node);

/* A limit that is not of a user, as it now holds in a namespace. */
unsigned long acp_limit(const struct acp_node *node, enum acp_limit limit);

/* Add n unless it were more than max then.  Any context. */
static inline bool acp_limit_take(atomic_long_t *used, unsigned long n, unsigned long max)
{
	long old = atomic_long_read(used);

	do {
		if (n > max || (unsigned long)old > max - n)
			return false;
	} while (!atomic_long_try_cmpxchg(used, &old, old + (long)n));
	return true;
}

/*
 * The user whom the caller's memory and ranks in this namespace count for, with
 * a reference; NULL: out of memory.  May sleep.
 */
struct acp_user *acp_user_find(struct acp_node *node);

static inline struct acp_user *acp_user_hold(struct acp_user *user)
{
	refcount_inc(&user->refs);
	return user;
}

/* Any context. */
void acp_user_put(struct acp_user *user);

/*
 * Count n (ranks, regions, KiB of memory, ...) for a user: 0 or acp_over().
 * By a rank, or who is about to be one: its file holds the namespace.
 */
int acp_user_charge(struct acp_user *user, enum acp_limit limit, unsigned long n);

/* Take back what was counted.  Any context. */
void acp_user_uncharge(struct acp_user *user, enum acp_limit limit, unsigned long n);

#endif /* ACP_LIMITS_H */
