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
#include "../net/bypass.h"
#include "../net/demux.h"
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

#define JOBS_TEXT		"jobs of a network namespace"
#define USER_JOBS_TEXT		"jobs of a user"
#define USER_RANKS_TEXT		"ranks of a user"
#define USER_REGIONS_TEXT	"registered regions of a user"
#define USER_MEMORY_TEXT	"KiB a user has pinned or allocated"
#define DEPTH_TEXT		"entries of a ring"
#define JOB_PEERS_TEXT		"flows of a job on a node"

LIMIT_PARAM(jobs, ACP_LIMIT_JOBS, JOBS_TEXT);
LIMIT_PARAM(user_jobs, ACP_LIMIT_USER_JOBS, USER_JOBS_TEXT);
LIMIT_PARAM(user_ranks, ACP_LIMIT_USER_RANKS, USER_RANKS_TEXT);
LIMIT_PARAM(user_regions, ACP_LIMIT_USER_REGIONS, USER_REGIONS_TEXT);
LIMIT_PARAM(user_memory, ACP_LIMIT_USER_MEMORY,
	    USER_MEMORY_TEXT "; 0: three quarters of the machine's");
LIMIT_PARAM(depth, ACP_LIMIT_DEPTH, DEPTH_TEXT);
LIMIT_PARAM(job_peers, ACP_LIMIT_JOB_PEERS, JOB_PEERS_TEXT);

/* Memory of all users of the machine together: a limit leaves enough for the kernel. */
static struct {
	unsigned long max;	/* KiB */
	atomic_long_t used;
} memory;

module_param_named(memory, memory.max, ulong, 0644);
MODULE_PARM_DESC(memory, "KiB all users together have pinned or allocated; 0: three quarters of the machine's");

/* Name, meaning and range of each sysctl. */
static const struct {
	const char *name, *text;
	unsigned long least, most;
} rules[ACP_LIMIT_END] = {
	[ACP_LIMIT_ENABLE] = { "enable", "may ranks join?", 0, 1 },
	[ACP_LIMIT_JOBS] = { "jobs", JOBS_TEXT, 0, 1 << 20 },
	[ACP_LIMIT_USER_JOBS] = { "user_jobs", USER_JOBS_TEXT, 0, 1 << 20 },
	[ACP_LIMIT_USER_RANKS] = { "user_ranks", USER_RANKS_TEXT, 0, ACP_RANKS_MAX },
	[ACP_LIMIT_USER_REGIONS] = { "user_regions", USER_REGIONS_TEXT, 0, 1 << 30 },
	[ACP_LIMIT_USER_MEMORY] = { "user_memory", USER_MEMORY_TEXT, 0, LONG_MAX >> 10 },
	[ACP_LIMIT_DEPTH] = { "depth", DEPTH_TEXT, ACP_DEPTH_MIN, ACP_DEPTH_MAX },
	[ACP_LIMIT_JOB_PEERS] = { "job_peers", JOB_PEERS_TEXT, 0,
				  ACP_RANKS_MAX * ACP_COLORS_MAX },
};

/* Check the parameters that the module was loaded with. */
int __init acp_limits_init(void)
{
	unsigned long most = totalram_pages() / 4 * 3 * (PAGE_SIZE >> 10);
	u32 i;

	if (!memory.max)
		WRITE_ONCE(memory.max, most);
	if (!machine.max[ACP_LIMIT_USER_MEMORY])
		machine.max[ACP_LIMIT_USER_MEMORY] = most;
	for (i = ACP_LIMIT_ENABLE + 1; i < ACP_LIMIT_END; i++) {
		if (machine.max[i] < rules[i].least || machine.max[i] > rules[i].most) {
			pr_err("acp: %s must be from %lu to %lu\n", rules[i].name, rules[i].least,
			       rules[i].most);
			return -EINVAL;
		}
	}
	return 0;
}

/* ---- namespaces ---- */

bool acp_limits_enabled(const struct acp_node *node)
{
	return READ_ONCE(enable) && READ_ONCE(node->limits.max[ACP_LIMIT_ENABLE]);
}

unsigned long acp_limit(const struct acp_node *node, enum acp_limit limit)
{
	return min(READ_ONCE(node->limits.max[limit]), READ_ONCE(machine.max[limit]));
}

bool acp_limits_machine_enabled(void)
{
	return READ_ONCE(enable);
}

const char *acp_limits_name(u32 limit)
{
	if (limit == ACP_LIMIT_MEMLOCK)
		return "memlock";
	return limit == ACP_LIMIT_MEMORY ? "memory" : rules[limit].name;
}

u32 acp_limits_find(const char *name)
{
	u32 i;

	for (i = ACP_LIMIT_ENABLE + 1; i < ACP_LIMIT_END; i++)
		if (!strcmp(name, rules[i].name))
			return i;
	return 0;
}

/* Where the value of a namespace is stored: the initial namespace uses the machine's. */
static unsigned long *place(struct acp_limits *l, bool first, u32 limit)
{
	return first && limit != ACP_LIMIT_ENABLE ? &machine.max[limit] : &l->max[limit];
}

int acp_limits_set(struct acp_node *node, u32 limit, u64 value)
{
	if (value < rules[limit].least || value > rules[limit].most)
		return -EINVAL;
	WRITE_ONCE(*place(&node->limits, net_eq(node->net, &init_net), limit), value);
	return 0;
}

#ifdef ACP_HAS_CONST_CTL_TABLE
#define TABLE_CONST	const
#else
#define TABLE_CONST
#endif

/* Forget what the receive path learned under the old setting. */
static int bypass_handler(TABLE_CONST struct ctl_table *table, int write, void *buffer,
			  size_t *size, loff_t *at)
{
	int err = proc_douintvec_minmax(table, write, buffer, size, at);

	if (!err && write)
		acp_demux_forget_all(container_of((unsigned int *)table->data, struct acp_node,
						  bypass));
	return err;
}

static void fill_bypass(struct ctl_table *entry, struct acp_node *node)
{
	*entry = (struct ctl_table){
		.procname = "bypass", .data = &node->bypass, .maxlen = sizeof(node->bypass),
		.mode = 0644, .proc_handler = bypass_handler,
		.extra1 = SYSCTL_ZERO, .extra2 = SYSCTL_TWO,
	};
}

#define SYSCTLS	(ACP_LIMIT_END + 1)

static struct ctl_table *make_table(struct acp_node *node, bool first)
{
	/* Kernels before 6.11 need an empty entry at the end. */
	struct ctl_table *table = kcalloc(SYSCTLS + 1, sizeof(*table), GFP_KERNEL_ACCOUNT);
	struct acp_limits *l = &node->limits;
	u32 i;

	for (i = 0; table && i < ACP_LIMIT_END; i++) {
		table[i].procname = rules[i].name;
		table[i].data = place(l, first, i);
		table[i].maxlen = sizeof(l->max[i]);
		table[i].mode = 0644;
		table[i].proc_handler = proc_doulongvec_minmax;
		table[i].extra1 = (void *)&rules[i].least;
		table[i].extra2 = (void *)&rules[i].most;
	}
	if (table)
		fill_bypass(&table[ACP_LIMIT_END], node);
	return table;
}

static struct ctl_table_header *register_table(struct net *net, struct ctl_table *table)
{
#ifdef ACP_HAS_SYSCTL_SIZE
	return register_net_sysctl_sz(net, "net/acp", table, SYSCTLS);
#else
	return register_net_sysctl(net, "net/acp", table);
#endif
}

int __net_init acp_limits_enter(struct acp_node *node)
{
	struct acp_limits *l = &node->limits;
	bool first = net_eq(node->net, &init_net);
	struct ctl_table *table;
	u32 i;

	node->bypass = ACP_BYPASS_AUTO;
	l->max[ACP_LIMIT_ENABLE] = 1;
	for (i = ACP_LIMIT_ENABLE + 1; i < ACP_LIMIT_END; i++)
		l->max[i] = first ? ULONG_MAX : READ_ONCE(machine.max[i]);
	if (!IS_ENABLED(CONFIG_SYSCTL))
		return 0;
	table = make_table(node, first);
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

/* ---- users ---- */

static DEFINE_HASHTABLE(users, 8);
static DEFINE_SPINLOCK(users_lock);	/* guards the table; interrupts off */

/*
 * A process in a user namespace counts as the user who created the namespace,
 * since that user may have many user ids in it.  Namespaces that root created
 * are skipped: root creates them for others.
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

/* The key differs between the namespaces of one user. */
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

u32 acp_limits_users(const struct acp_node *node)
{
	struct acp_user *user;
	unsigned long flags;
	u32 bucket, n = 0;

	for (bucket = 0; bucket < HASH_SIZE(users); bucket++) {
		spin_lock_irqsave(&users_lock, flags);
		hlist_for_each_entry(user, &users[bucket], link)
			n += user->limits == &node->limits;
		spin_unlock_irqrestore(&users_lock, flags);
	}
	return n;
}

/* How much of a limit a user has in a namespace. */
static unsigned long used_by(const struct acp_node *node, kuid_t uid, u32 limit)
{
	const struct acp_user *user;
	unsigned long flags, used;

	spin_lock_irqsave(&users_lock, flags);
	user = look(&node->limits, uid);
	used = user ? atomic_long_read(&user->used[limit]) : 0;
	spin_unlock_irqrestore(&users_lock, flags);
	return used;
}

void acp_limits_describe(struct acp_node *node, u32 limit, struct acp_limit_info *info)
{
	*info = (struct acp_limit_info){
		.name = rules[limit].name, .text = rules[limit].text,
		.here = READ_ONCE(*place(&node->limits, net_eq(node->net, &init_net), limit)),
		.machine = READ_ONCE(machine.max[limit]),
		.least = rules[limit].least, .most = rules[limit].most,
		.counted = limit != ACP_LIMIT_DEPTH && limit != ACP_LIMIT_JOB_PEERS,
	};
	if (limit == ACP_LIMIT_JOBS)
		info->used = READ_ONCE(node->n_jobs);
	else if (info->counted)
		info->used = used_by(node, payer(), limit);
}

/* Drop a reference.  With the last one the user is removed from the table: true. */
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

/* Charge the user in the namespace and on the machine, or neither. */
static bool take_both(struct acp_user *user, enum acp_limit limit, unsigned long n)
{
	struct acp_user *whole = user->whole;

	if (!acp_limit_take(&user->used[limit], n, READ_ONCE(user->limits->max[limit])))
		return false;
	if (acp_limit_take(&whole->used[limit], n, READ_ONCE(whole->limits->max[limit])))
		return true;
	atomic_long_sub(n, &user->used[limit]);
	return false;
}

static void give_both(struct acp_user *user, enum acp_limit limit, unsigned long n)
{
	atomic_long_sub(n, &user->used[limit]);
	atomic_long_sub(n, &user->whole->used[limit]);
}

int acp_user_charge(struct acp_user *user, enum acp_limit limit, unsigned long n)
{
	if (!take_both(user, limit, n))
		return acp_over(limit);
	if (limit != ACP_LIMIT_USER_MEMORY ||
	    acp_limit_take(&memory.used, n, READ_ONCE(memory.max)))
		return 0;
	give_both(user, limit, n);
	return acp_over(ACP_LIMIT_MEMORY);
}

void acp_user_uncharge(struct acp_user *user, enum acp_limit limit, unsigned long n)
{
	if (limit == ACP_LIMIT_USER_MEMORY)
		atomic_long_sub(n, &memory.used);
	give_both(user, limit, n);
}
