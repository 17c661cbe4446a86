// SPDX-License-Identifier: GPL-2.0-only
/* Limits: see limits.h. */
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/sysctl.h>
#include <linux/user_namespace.h>
#include <linux/version.h>
#include "limits.h"
#include "node.h"

static bool enable = true;
module_param(enable, bool, 0644);
MODULE_PARM_DESC(enable, "accept new ranks; 0 refuses them, those that joined go on");

static struct acp_limits machine = {
	.max = {
		[ACP_LIMIT_JOBS] = 4096,
		[ACP_LIMIT_USER_JOBS] = 1024,
		[ACP_LIMIT_USER_RANKS] = 4096,
		[ACP_LIMIT_USER_REGIONS] = 262144,
		[ACP_LIMIT_DEPTH] = ACP_DEPTH_MAX,
		[ACP_LIMIT_JOB_PEERS] = 65536,
	},
};

#define LIMIT_PARAM(name, limit, text)						\
	module_param_named(name, machine.max[limit], ulong, 0444);		\
	MODULE_PARM_DESC(name, text)

LIMIT_PARAM(jobs, ACP_LIMIT_JOBS, "jobs of a network namespace");
LIMIT_PARAM(user_jobs, ACP_LIMIT_USER_JOBS, "jobs of a user");
LIMIT_PARAM(user_ranks, ACP_LIMIT_USER_RANKS, "ranks of a user");
LIMIT_PARAM(user_regions, ACP_LIMIT_USER_REGIONS, "registered regions of a user");
LIMIT_PARAM(user_memory, ACP_LIMIT_USER_MEMORY,
	    "KiB a user has pinned or allocated; 0: three quarters of the machine's");
LIMIT_PARAM(depth, ACP_LIMIT_DEPTH, "entries of a ring");
LIMIT_PARAM(job_peers, ACP_LIMIT_JOB_PEERS, "flows of a job on a node");

/* The names of the sysctls, and what they can be set to. */
static const struct {
	const char *name;
	unsigned long least, most;
} rules[ACP_LIMIT_END] = {
	[ACP_LIMIT_ENABLE] = { "enable", 0, 1 },
	[ACP_LIMIT_JOBS] = { "jobs", 0, 1 << 20 },
	[ACP_LIMIT_USER_JOBS] = { "user_jobs", 0, 1 << 20 },
	[ACP_LIMIT_USER_RANKS] = { "user_ranks", 0, ACP_RANKS_MAX },
	[ACP_LIMIT_USER_REGIONS] = { "user_regions", 0, 1 << 30 },
	[ACP_LIMIT_USER_MEMORY] = { "user_memory", 0, LONG_MAX >> 10 },
	[ACP_LIMIT_DEPTH] = { "depth", ACP_DEPTH_MIN, ACP_DEPTH_MAX },
	[ACP_LIMIT_JOB_PEERS] = { "job_peers", 0, ACP_RANKS_MAX * ACP_COLORS_MAX },
};

/* The parameters that the module was loaded with. */
int __init acp_limits_init(void)
{
	u32 i;

	if (!machine.max[ACP_LIMIT_USER_MEMORY])
		machine.max[ACP_LIMIT_USER_MEMORY] = totalram_pages() / 4 * 3 *
						     (PAGE_SIZE >> 10);
	for (i = ACP_LIMIT_ENABLE + 1; i < ACP_LIMIT_END; i++) {
		if (machine.max[i] < rules[i].least || machine.max[i] > rules[i].most) {
			pr_err("acp: %s must be from %lu to %lu\n", rules[i].name, rules[i].least,
			       rules[i].most);
			return -EINVAL;
		}
	}
	return 0;
}

/* ---- of a namespace ---- */

bool acp_limits_enabled(const struct acp_node *node)
{
	return READ_ONCE(enable) && READ_ONCE(node->limits.max[ACP_LIMIT_ENABLE]);
}

unsigned long acp_limit(const struct acp_node *node, enum acp_limit limit)
{
	return min(READ_ONCE(node->limits.max[limit]), READ_ONCE(machine.max[limit]));
}

static struct ctl_table *make_table(struct acp_limits *l, bool first)
{
	/* Kernels before 6.11 want an empty entry at the end. */
	struct ctl_table *table = kcalloc(ACP_LIMIT_END + 1, sizeof(*table), GFP_KERNEL_ACCOUNT);
	u32 i;

	for (i = 0; table && i < ACP_LIMIT_END; i++) {
		table[i].procname = rules[i].name;
		table[i].data = first && i != ACP_LIMIT_ENABLE ? &machine.max[i] : &l->max[i];
		table[i].maxlen = sizeof(l->max[i]);
		table[i].mode = 0644;
		table[i].proc_handler = proc_doulongvec_minmax;
		table[i].extra1 = (void *)&rules[i].least;
		table[i].extra2 = (void *)&rules[i].most;
	}
	return table;
}

static struct ctl_table_header *register_table(struct net *net, struct ctl_table *table)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
	return register_net_sysctl(net, "net/acp", table);
#else
	return register_net_sysctl_sz(net, "net/acp", table, ACP_LIMIT_END);
#endif
}

int __net_init acp_limits_enter(struct acp_node *node)
{
	struct acp_limits *l = &node->limits;
	bool first = net_eq(node->net, &init_net);
	struct ctl_table *table;
	u32 i;

	l->max[ACP_LIMIT_ENABLE] = 1;
	for (i = ACP_LIMIT_ENABLE + 1; i < ACP_LIMIT_END; i++)
		l->max[i] = first ? ULONG_MAX : READ_ONCE(machine.max[i]);
	if (!IS_ENABLED(CONFIG_SYSCTL))
		return 0;
	table = make_table(l, first);
	if (table)
		l->sysctls = register_table(node->net, table);
	if (l->sysctls)
		return 0;
	kfree(table);
	return -ENOMEM;
}

void acp_limits_leave(struct acp_node *node)
{
	const struct ctl_table *table;

	if (!node->limits.sysctls)
		return;
	table = node->limits.sysctls->ctl_table_arg;
	unregister_net_sysctl_table(node->limits.sysctls);
	kfree(table);
}

/* ---- of users ---- */

static DEFINE_HASHTABLE(users, 8);
static DEFINE_SPINLOCK(users_lock);	/* guards the table; interrupts off */

/*
 * Who works in a user namespace counts as the user who made it, since that one
 * may have many numbers there; unless it was root, for others.
 */
static kuid_t payer(void)
{
	const struct user_namespace *ns = current_user_ns();
	kuid_t uid = current_uid();

	for (; ns->parent; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;
	return uid;
}

/* Of one user in many namespaces, too. */
static unsigned long user_key(const struct acp_limits *limits, kuid_t uid)
{
	return (unsigned long)limits + __kuid_val(uid);
}

static struct acp_user *look(const struct acp_limits *limits, kuid_t uid)
{
	struct acp_user *user;

	hash_for_each_possible(users, user, link, user_key(limits, uid))
		if (user->limits == limits && uid_eq(user->uid, uid))
			return user;
	return NULL;
}

static struct acp_user *find_or_add(const struct acp_limits *limits, kuid_t uid,
				    struct acp_user *whole)
{
	struct acp_user *added = kzalloc(sizeof(*added), GFP_KERNEL_ACCOUNT), *user;
	unsigned long flags;

	if (!added)
		return NULL;
	added->limits = limits;
	added->uid = uid;
	refcount_set(&added->refs, 1);
	spin_lock_irqsave(&users_lock, flags);
	user = look(limits, uid);
	if (user) {
		refcount_inc(&user->refs);
	} else {
		added->whole = whole ? acp_user_hold(whole) : NULL;
		hash_add(users, &added->link, user_key(limits, uid));
	}
	spin_unlock_irqrestore(&users_lock, flags);
	if (!user)
		return added;
	kfree(added);
	return user;
}

struct acp_user *acp_user_find(struct acp_node *node)
{
	kuid_t uid = payer();
	struct acp_user *whole = find_or_add(&machine, uid, NULL), *user;

	if (!whole)
		return NULL;
	user = find_or_add(&node->limits, uid, whole);
	acp_user_put(whole);
	return user;
}

/* Drop a reference; the last one goes together with the place in the table. */
static bool drop(struct acp_user *user)
{
	unsigned long flags;
	bool last;

	if (refcount_dec_not_one(&user->refs))
		return false;
	spin_lock_irqsave(&users_lock, flags);
	last = refcount_dec_and_test(&user->refs);
	if (last)
		hash_del(&user->link);
	spin_unlock_irqrestore(&users_lock, flags);
	return last;
}

void acp_user_put(struct acp_user *user)
{
	struct acp_user *whole;

	while (user && drop(user)) {
		whole = user->whole;
		kfree(user);
		user = whole;
	}
}

int acp_user_charge(struct acp_user *user, enum acp_limit limit, unsigned long n)
{
	struct acp_user *whole = user->whole;

	if (!acp_limit_take(&user->used[limit], n, READ_ONCE(user->limits->max[limit])))
		return acp_over(limit);
	if (acp_limit_take(&whole->used[limit], n, READ_ONCE(whole->limits->max[limit])))
		return 0;
	atomic_long_sub(n, &user->used[limit]);
	return acp_over(limit);
}

void acp_user_uncharge(struct acp_user *user, enum acp_limit limit, unsigned long n)
{
	for (; user; user = user->whole)
		atomic_long_sub(n, &user->used[limit]);
}
