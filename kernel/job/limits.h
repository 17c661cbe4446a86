/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits that an administrator sets, enum acp_limit of the ABI.
 *
 * The module's parameters are limits of the machine: of a user in all network
 * namespaces together, and of any single namespace, job or ring.  Each
 * namespace has sysctls of the same names (net.acp) for its own limits.  Both
 * apply.  The sysctls of the initial namespace are the module's parameters
 * themselves, so that there is one place to set them.
 *
 * The module parameter "memory" limits all users of the machine together.
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

#define ACP_LIMIT_ENABLE	0	/* not in the ABI: may ranks join? */

struct acp_limits {
	unsigned long max[ACP_LIMIT_END];
	struct ctl_table_header *sysctls;
};

/*
 * The resources of a user in a namespace or on the machine.  The first lookup
 * creates the structure; the last reference frees it.
 */
struct acp_user {
	const struct acp_limits *limits;	/* of that namespace; for charging only */
	kuid_t uid;
	refcount_t refs;
	atomic_long_t used[ACP_LIMIT_END];
	atomic_long_t locked;		/* pages, memlock.h; on the machine only */
	struct acp_user *whole;		/* the same user on the machine; NULL: this is it */
	struct hlist_node link;
};

/* Errors that replace -EDQUOT within the module: they name the limit that was reached. */
#define ACP_OVER_FIRST		3000

/**
 * acp_over() - the error that reports a reached limit within the module
 * @limit: ACP_LIMIT_
 *
 * The error must not reach user space: acp_over_which() names the limit, and the call fails with
 * -EDQUOT or -ENOMEM.
 *
 * Return: a negative number that is no error of the kernel.
 */
static inline int acp_over(u32 limit)
{
	return -(ACP_OVER_FIRST + (int)limit);
}

/**
 * acp_over_which() - the limit that an error of acp_over() names
 * @err: any error, or 0
 *
 * Return: ACP_LIMIT_; 0 if @err is another error or none.
 */
static inline u32 acp_over_which(int err)
{
	return err <= -ACP_OVER_FIRST ? -err - ACP_OVER_FIRST : 0;
}

/**
 * acp_limits_init() - check the module's parameters and compute the defaults
 *
 * Context: loading of the module.
 * Return: 0, or -EINVAL if a parameter is out of its range.
 */
int acp_limits_init(void);

/* Set the limits of a new namespace and register its sysctls.  0 or -ENOMEM. */
int acp_limits_enter(struct acp_node *node);
void acp_limits_leave(struct acp_node *node);

/**
 * acp_limits_enabled() - may ranks join in a namespace?
 * @node: the namespace's node
 *
 * Context: any.
 * Return: true if neither the machine nor the namespace refuses new ranks.
 */
bool acp_limits_enabled(const struct acp_node *node);

/**
 * acp_limits_machine_enabled() - may ranks join on this machine?
 *
 * Context: any.
 * Return: the module parameter "enable".
 */
bool acp_limits_machine_enabled(void);

/* A limit as an administrator sees it, and how much of it is used. */
struct acp_limit_info {
	const char *name, *text;
	unsigned long here, machine, least, most;
	bool counted;		/* used is valid */
	unsigned long used;	/* by the namespace, or by the caller in it */
};

/**
 * acp_limits_find() - find a limit by its name
 * @name: name of the sysctl
 *
 * Return: ACP_LIMIT_, less than ACP_LIMIT_END; 0 if there is no such limit.  "enable" is no limit.
 */
u32 acp_limits_find(const char *name);

/**
 * acp_limits_name() - the name of a limit
 * @limit: less than ACP_LIMIT_END, or ACP_LIMIT_MEMLOCK or ACP_LIMIT_MEMORY
 *
 * Return: the name, a constant string.
 */
const char *acp_limits_name(u32 limit);

/**
 * acp_limits_describe() - the values of a limit in a namespace
 * @node: the namespace's node
 * @limit: less than ACP_LIMIT_END
 * @info: receives the description
 *
 * Context: process; the use is that of the calling user.
 */
void acp_limits_describe(struct acp_node *node, u32 limit, struct acp_limit_info *info);

/**
 * acp_limits_set() - set a limit of a namespace
 * @node: the namespace's node; for the initial namespace the machine's limit is set
 * @limit: less than ACP_LIMIT_END
 * @value: the new value
 *
 * Context: any.
 * Return: 0, or -EINVAL if @value is out of the limit's range.
 */
int acp_limits_set(struct acp_node *node, u32 limit, u64 value);

/**
 * acp_limits_users() - the number of users of a namespace
 * @node: the namespace's node
 *
 * Context: any.
 * Return: the number of users that a job or rank of the namespace refers to.
 */
u32 acp_limits_users(const struct acp_node *node);

/**
 * acp_limit() - the current value of a limit that is not per user
 * @node: the namespace's node
 * @limit: ACP_LIMIT_JOBS, ACP_LIMIT_DEPTH or ACP_LIMIT_JOB_PEERS
 *
 * Context: any.
 * Return: the lower one of the namespace's limit and the machine's.
 */
unsigned long acp_limit(const struct acp_node *node, enum acp_limit limit);

/**
 * acp_limit_take() - add to a counter unless it would exceed a limit
 * @used: the counter
 * @n: what is added
 * @max: the limit
 *
 * Context: any.
 * Return: true if @n was added.
 */
static inline bool acp_limit_take(atomic_long_t *used, unsigned long n, unsigned long max)
{
	long old = atomic_long_read(used);

	do {
		if (n > max || (unsigned long)old > max - n)
			return false;
	} while (!atomic_long_try_cmpxchg(used, &old, old + (long)n));
	return true;
}

/**
 * acp_user_find() - the user who is charged for the caller's resources in a namespace
 * @node: the namespace's node
 *
 * The caller gives the reference up by acp_user_put().
 *
 * Context: process, may sleep.
 * Return: the user with a reference; NULL if there is no memory.
 */
struct acp_user *acp_user_find(struct acp_node *node);

/**
 * acp_user_hold() - take another reference to a user
 * @user: the user, to whom the caller has a reference
 *
 * Context: any.
 * Return: @user.
 */
static inline struct acp_user *acp_user_hold(struct acp_user *user)
{
	refcount_inc(&user->refs);
	return user;
}

/**
 * acp_user_put() - give up a reference to a user
 * @user: the user; NULL is allowed
 *
 * Context: any.
 */
void acp_user_put(struct acp_user *user);

/**
 * acp_user_locked() - the counter of pages that a user has locked on the machine
 * @user: the user, of a namespace or of the machine
 *
 * Context: any.
 * Return: the counter, which exists as long as @user.
 */
static inline atomic_long_t *acp_user_locked(struct acp_user *user)
{
	return user->whole ? &user->whole->locked : &user->locked;
}

/**
 * acp_user_charge() - charge a user of a namespace
 * @user: the user; the namespace must exist
 * @limit: ACP_LIMIT_USER_
 * @n: ranks, regions, jobs or KiB of memory
 *
 * The file of a rank, or of a process that joins, holds the namespace.  Jobs end before it does.
 *
 * Context: any.
 * Return: 0; acp_over() if a limit of the namespace or of the machine does not allow it, and then
 * nothing is charged.
 */
int acp_user_charge(struct acp_user *user, enum acp_limit limit, unsigned long n);

/**
 * acp_user_uncharge() - take back a charge
 * @user: the user; the namespace need not exist any more
 * @limit: as in acp_user_charge()
 * @n: as in acp_user_charge(), all of it or a part
 *
 * Context: any.
 */
void acp_user_uncharge(struct acp_user *user, enum acp_limit limit, unsigned long n);

#endif /* ACP_LIMITS_H */
