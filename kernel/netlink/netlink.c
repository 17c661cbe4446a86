// SPDX-License-Identifier: GPL-2.0-only
/* The netlink family, the node and its settings: see netlink.h. */
#include <linux/inetdevice.h>
#include <linux/ipv6.h>
#include <linux/module.h>
#include <linux/netlink.h>
#include <net/addrconf.h>
#include <net/sock.h>
#include "../compat.h"
#include "../dev/dev.h"
#include "netlink_put.h"

static struct genl_family family;

static u64 sum_of(const struct acp_node *node, size_t offset)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += *(u64 *)((void *)per_cpu_ptr(node->stats, cpu) + offset);
	return sum;
}

static int dump_start(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct acp_nl_cursor) > sizeof(cb->ctx));
	*acp_nl_cursor(cb) = (struct acp_nl_cursor){ .reader = acp_nl_reader(cb->skb) };
	return 0;
}

/* cb->seq changes whenever an entry is added or removed between the parts; it is never 0. */
static int dump_part(struct sk_buff *skb, struct netlink_callback *cb,
		     int (*dump)(struct sk_buff *skb, struct netlink_callback *cb))
{
	cb->seq = (u32)sum_of(acp_nl_dump_node(cb), offsetof(struct acp_stats, changes)) << 1 | 1;
	return dump(skb, cb);
}

/* ---- the node ---- */

static int put_counts(struct sk_buff *skb, struct acp_node *node)
{
	u32 ranks = 0, flows = 0;
	struct acp_job *job;
	unsigned long i;

	rcu_read_lock();
	xa_for_each(&node->jobs, i, job) {
		ranks += READ_ONCE(job->members);
		flows += READ_ONCE(job->flows);
	}
	rcu_read_unlock();
	return nla_put_u32(skb, ACP_NL_A_JOBS, READ_ONCE(node->n_jobs)) ?:
	       nla_put_u32(skb, ACP_NL_A_RANKS, ranks) ?:
	       nla_put_u32(skb, ACP_NL_A_FLOWS, flows) ?:
	       nla_put_u32(skb, ACP_NL_A_USERS, acp_limits_users(node));
}

static int put_node(struct sk_buff *skb, struct acp_node *node)
{
	const struct acp_settings *s = &node->settings;

	return nla_put_u32(skb, ACP_NL_A_ENABLE,
			   READ_ONCE(node->limits.max[ACP_LIMIT_ENABLE])) ?:
	       nla_put_u32(skb, ACP_NL_A_MACHINE_ENABLE, acp_limits_machine_enabled()) ?:
	       nla_put_string(skb, ACP_NL_A_MODULE_VERSION, ACP_MODULE_VERSION) ?:
	       nla_put_u32(skb, ACP_NL_A_ABI_VERSION, ACP_ABI_VERSION) ?:
	       nla_put_u32(skb, ACP_NL_A_PORT, ACP_PORT_DEFAULT) ?:
	       put_counts(skb, node) ?:
	       nla_put_u32(skb, ACP_NL_A_TIMEOUT_MIN, READ_ONCE(s->timeout_min)) ?:
	       nla_put_u32(skb, ACP_NL_A_TIMEOUT_MAX, READ_ONCE(s->timeout_max));
}

static int get_node(struct sk_buff *request, struct genl_info *info)
{
	void *head;
	struct sk_buff *skb = acp_nl_reply_new(info, &head);

	if (!skb)
		return -ENOMEM;
	return acp_nl_reply(skb, head, put_node(skb, acp_node_of(genl_info_net(info))), info);
}

/* Set the bounds of time-outs if the lower one does not exceed the upper.  Under s->lock. */
static int set_timeouts(struct acp_settings *s, struct genl_info *info)
{
	u32 min = s->timeout_min, max = s->timeout_max;

	if (info->attrs[ACP_NL_A_TIMEOUT_MIN])
		min = nla_get_u32(info->attrs[ACP_NL_A_TIMEOUT_MIN]);
	if (info->attrs[ACP_NL_A_TIMEOUT_MAX])
		max = nla_get_u32(info->attrs[ACP_NL_A_TIMEOUT_MAX]);
	if (min > max) {
		GENL_SET_ERR_MSG(info, "the least time-out is more than the most");
		return -EINVAL;
	}
	WRITE_ONCE(s->timeout_min, min);
	WRITE_ONCE(s->timeout_max, max);
	return 0;
}

static void tell_if_set(struct acp_node *node, struct genl_info *info, int attr, const char *name)
{
	if (info->attrs[attr])
		acp_nl_tell_setting(node, name, nla_get_u32(info->attrs[attr]));
}

static int set_node(struct sk_buff *request, struct genl_info *info)
{
	struct acp_node *node = acp_node_of(genl_info_net(info));
	const struct nlattr *enable = info->attrs[ACP_NL_A_ENABLE];
	int err;

	if (!enable && !info->attrs[ACP_NL_A_TIMEOUT_MIN] && !info->attrs[ACP_NL_A_TIMEOUT_MAX]) {
		GENL_SET_ERR_MSG(info, "nothing to set: enable, timeout_min or timeout_max");
		return -EINVAL;
	}
	spin_lock(&node->settings.lock);
	err = set_timeouts(&node->settings, info);
	if (!err && enable)
		WRITE_ONCE(node->limits.max[ACP_LIMIT_ENABLE], nla_get_u32(enable));
	spin_unlock(&node->settings.lock);
	if (err)
		return err;
	tell_if_set(node, info, ACP_NL_A_ENABLE, "enable");
	tell_if_set(node, info, ACP_NL_A_TIMEOUT_MIN, "timeout_min");
	tell_if_set(node, info, ACP_NL_A_TIMEOUT_MAX, "timeout_max");
	return 0;
}

/* ---- limits ---- */

static int put_limit(struct sk_buff *skb, struct acp_node *node, u32 limit)
{
	struct acp_limit_info l;

	acp_limits_describe(node, limit, &l);
	return nla_put_string(skb, ACP_NL_A_NAME, l.name) ?:
	       nla_put_string(skb, ACP_NL_A_TEXT, l.text) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_VALUE, l.here) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_MACHINE_VALUE, l.machine) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_LIMIT_MIN, l.least) ?:
	       acp_nl_put_u64(skb, ACP_NL_A_LIMIT_MAX, l.most) ?:
	       (l.counted ? acp_nl_put_u64(skb, ACP_NL_A_USED, l.used) : 0);
}

/* The limit that a request names, or 0. */
static u32 named_limit(struct genl_info *info)
{
	u32 limit;

	if (GENL_REQ_ATTR_CHECK(info, ACP_NL_A_NAME))
		return 0;
	limit = acp_limits_find(nla_data(info->attrs[ACP_NL_A_NAME]));
	if (!limit)
		GENL_SET_ERR_MSG(info, "no limit has that name");
	return limit;
}

static int limit_get(struct sk_buff *request, struct genl_info *info)
{
	struct acp_node *node = acp_node_of(genl_info_net(info));
	u32 limit = named_limit(info);
	struct sk_buff *skb;
	void *head;

	if (!limit)
		return info->attrs[ACP_NL_A_NAME] ? -ENOENT : -EINVAL;
	skb = acp_nl_reply_new(info, &head);
	if (!skb)
		return -ENOMEM;
	return acp_nl_reply(skb, head, put_limit(skb, node, limit), info);
}

static int limit_entries(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct acp_nl_cursor *c = acp_nl_cursor(cb);
	void *head;

	if (acp_nl_dump_attrs(cb)[ACP_NL_A_NAME]) {
		NL_SET_ERR_MSG(cb->extack, "a dump is of all limits");
		return -EINVAL;
	}
	for (; c->at + 1 < ACP_LIMIT_END; c->at++) {
		head = acp_nl_dump_entry(skb, cb, ACP_NL_CMD_LIMIT_GET);
		if (!head || put_limit(skb, acp_nl_dump_node(cb), c->at + 1)) {
			genlmsg_cancel(skb, head);
			break;
		}
		genlmsg_end(skb, head);
	}
	return skb->len;
}

static int limit_set(struct sk_buff *request, struct genl_info *info)
{
	struct acp_node *node = acp_node_of(genl_info_net(info));
	u32 limit = named_limit(info);
	u64 value;

	if (!limit)
		return info->attrs[ACP_NL_A_NAME] ? -ENOENT : -EINVAL;
	if (GENL_REQ_ATTR_CHECK(info, ACP_NL_A_VALUE))
		return -EINVAL;
	value = nla_get_u64(info->attrs[ACP_NL_A_VALUE]);
	if (acp_limits_set(node, limit, value)) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[ACP_NL_A_VALUE],
				    "less than the least, or more than the most of that limit");
		return -EINVAL;
	}
	acp_nl_tell_setting(node, nla_data(info->attrs[ACP_NL_A_NAME]), value);
	return 0;
}

/* ---- colors ---- */

#define COLOR_ENTRIES	(ACP_COLORS_MAX * ACP_FAMILIES)

/* RCU. */
static u32 ifindex_of_six(struct net *net, const u8 *addr)
{
	struct net_device *dev;
	struct in6_addr in6;

	/* If IPv6 was disabled at boot, its table of addresses does not exist. */
	if (!ipv6_mod_enabled())
		return 0;
	memcpy(&in6, addr, sizeof(in6));
	/* Strict: otherwise a global address would match on any interface. */
	for_each_netdev_rcu(net, dev)
		if (ipv6_chk_addr(net, &in6, dev, 1))
			return dev->ifindex;
	return 0;
}

/* RCU. */
static u32 ifindex_of_four(struct net *net, const u8 *addr)
{
	struct net_device *dev;
	__be32 four;

	memcpy(&four, addr, sizeof(four));
	dev = __ip_dev_find(net, four, false);
	return dev ? dev->ifindex : 0;
}

/* The index of the interface that has a local address, or 0. */
static u32 ifindex_of(struct net *net, const u8 *addr, bool six)
{
	u32 index;

	rcu_read_lock();
	index = six ? ifindex_of_six(net, addr) : ifindex_of_four(net, addr);
	rcu_read_unlock();
	return index;
}

static int put_color(struct sk_buff *skb, struct acp_node *node, u32 color, bool six,
		     const u8 *addr)
{
	u32 ifindex = ifindex_of(node->net, addr, six);

	return nla_put_u32(skb, ACP_NL_A_COLOR, color) ?:
	       nla_put(skb, ACP_NL_A_ADDRESS, six ? 16 : 4, addr) ?:
	       (ifindex ? nla_put_u32(skb, ACP_NL_A_IFINDEX, ifindex) : 0);
}

static int color_entries(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct acp_node *node = acp_nl_dump_node(cb);
	struct acp_nl_cursor *c = acp_nl_cursor(cb);
	u8 addr[16];
	void *head;

	for (; c->at < COLOR_ENTRIES; c->at++) {
		u32 color = c->at / ACP_FAMILIES, six = c->at % ACP_FAMILIES;

		if (!acp_settings_color(&node->settings, color, six, addr))
			continue;
		head = acp_nl_dump_entry(skb, cb, ACP_NL_CMD_COLOR_GET);
		if (!head || put_color(skb, node, color, six, addr)) {
			genlmsg_cancel(skb, head);
			break;
		}
		genlmsg_end(skb, head);
	}
	return skb->len;
}

/* The length of the address: 4 or 16 bytes.  0: it is neither. */
static u32 address_width(struct genl_info *info)
{
	const struct nlattr *a = info->attrs[ACP_NL_A_ADDRESS];
	u32 width = nla_len(a);

	if (width == 4 || width == 16)
		return width;
	NL_SET_ERR_MSG_ATTR(info->extack, a, "an address has 4 bytes (IPv4) or 16 (IPv6)");
	return 0;
}

static int color_add(struct sk_buff *request, struct genl_info *info)
{
	struct acp_node *node = acp_node_of(genl_info_net(info));
	const u8 *addr;
	u32 color, width;

	if (GENL_REQ_ATTR_CHECK(info, ACP_NL_A_COLOR) ||
	    GENL_REQ_ATTR_CHECK(info, ACP_NL_A_ADDRESS))
		return -EINVAL;
	width = address_width(info);
	if (!width)
		return -EINVAL;
	color = nla_get_u32(info->attrs[ACP_NL_A_COLOR]);
	addr = nla_data(info->attrs[ACP_NL_A_ADDRESS]);
	spin_lock(&node->settings.lock);
	memcpy(node->settings.colors[color][width == 16].addr, addr, width);
	node->settings.colors[color][width == 16].used = true;
	spin_unlock(&node->settings.lock);
	acp_changed(node);
	acp_nl_tell_color(node, color, addr, width);
	return 0;
}

/* Remove a color's address of a family; only: if it is this one.  Under the lock of settings. */
static bool drop_color(struct acp_node *node, u32 color, bool six, const u8 *only)
{
	if (!node->settings.colors[color][six].used ||
	    (only && memcmp(only, node->settings.colors[color][six].addr, six ? 16 : 4)))
		return false;
	node->settings.colors[color][six].used = false;
	return true;
}

static int color_del(struct sk_buff *request, struct genl_info *info)
{
	struct acp_node *node = acp_node_of(genl_info_net(info));
	u32 color, width = 0;
	const u8 *only = NULL;
	bool found = false;

	if (GENL_REQ_ATTR_CHECK(info, ACP_NL_A_COLOR))
		return -EINVAL;
	color = nla_get_u32(info->attrs[ACP_NL_A_COLOR]);
	if (info->attrs[ACP_NL_A_ADDRESS]) {
		width = address_width(info);
		if (!width)
			return -EINVAL;
		only = nla_data(info->attrs[ACP_NL_A_ADDRESS]);
	}
	spin_lock(&node->settings.lock);
	if (width != 16)
		found |= drop_color(node, color, false, only);
	if (width != 4)
		found |= drop_color(node, color, true, only);
	spin_unlock(&node->settings.lock);
	if (!found) {
		GENL_SET_ERR_MSG(info, "the color has no such address");
		return -ENOENT;
	}
	acp_changed(node);
	acp_nl_tell_color(node, color, NULL, 0);
	return 0;
}

/* ---- counters ---- */

static const struct {
	const char *name, *text;
	size_t offset;		/* in struct acp_nl_sums */
} job_stats[] = {
#define SUM(name, field, text)	{ #name, text, offsetof(struct acp_nl_sums, field) }
	SUM(commands, completed, "commands completed, failed ones included"),
	SUM(commands_failed, failed, "of these, ended with an error"),
	SUM(ranks, ranks, "ranks that are here"),
	SUM(flows, flows, "flows made"),
	SUM(tx_frames, traffic.tx_frames, "frames sent, repetitions and HELLOs included"),
	SUM(tx_bytes, traffic.tx_bytes, "bytes of UDP payload sent"),
	SUM(tx_retransmits, traffic.tx_retransmits, "frames sent again"),
	SUM(rx_frames, traffic.rx_frames, "authentic frames, duplicates included"),
	SUM(rx_bytes, traffic.rx_bytes, "bytes of UDP payload in them"),
	SUM(rx_duplicates, traffic.rx_duplicates, "of these frames, received before"),
	SUM(timeouts, traffic.timeouts, "retransmission time-outs"),
	SUM(flows_opened, traffic.opened, "flows opened"),
	SUM(flows_failed, traffic.failed, "flows whose peer was silent too long"),
	SUM(flows_restarted, traffic.restarted, "flows whose peer began anew"),
};

static const struct {
	const char *name, *text;
} node_stats[] = {
#define NODE_STAT(name, text) { #name, text },
	ACP_STATS(NODE_STAT)
};

static int put_stat(struct sk_buff *skb, struct netlink_callback *cb, const char *name, u64 value,
		    const char *text)
{
	void *head = acp_nl_dump_entry(skb, cb, ACP_NL_CMD_STAT_GET);

	if (!head || nla_put_string(skb, ACP_NL_A_NAME, name) ||
	    acp_nl_put_u64(skb, ACP_NL_A_VALUE, value) ||
	    nla_put_string(skb, ACP_NL_A_TEXT, text)) {
		genlmsg_cancel(skb, head);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, head);
	return 0;
}

static int job_stat_entries(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct acp_nl_cursor *c = acp_nl_cursor(cb);
	struct acp_nl_sums sums = {};
	struct acp_job *job;

	if (c->at == ARRAY_SIZE(job_stats))
		return 0;
	job = acp_nl_find_job(acp_nl_dump_node(cb), &c->reader, acp_nl_dump_attrs(cb));
	if (!job)
		return c->at ? 0 : -ENOENT;
	acp_nl_sum(job, &sums);
	acp_job_put(job);
	for (; c->at < ARRAY_SIZE(job_stats); c->at++)
		if (put_stat(skb, cb, job_stats[c->at].name,
			     *(u64 *)((void *)&sums + job_stats[c->at].offset),
			     job_stats[c->at].text))
			break;
	return skb->len;
}

static int stat_entries(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct acp_node *node = acp_nl_dump_node(cb);
	struct acp_nl_cursor *c = acp_nl_cursor(cb);

	if (acp_nl_dump_attrs(cb)[ACP_NL_A_JOB])
		return job_stat_entries(skb, cb);
	for (; c->at < ACP_STAT_COUNT; c->at++)
		if (put_stat(skb, cb, node_stats[c->at].name,
			     sum_of(node, offsetof(struct acp_stats, v[c->at])),
			     node_stats[c->at].text))
			break;
	return skb->len;
}

/* ---- policies ---- */

/* Not const: kernels before 6.7 do not accept const ranges. */
static struct netlink_range_validation timeouts = {
	.min = ACP_NL_TIMEOUT_MIN, .max = ACP_NL_TIMEOUT_MAX,
};

static struct netlink_range_validation ping_timeouts = {
	.min = 1, .max = ACP_NL_PING_TIMEOUT_MAX,
};

static struct netlink_range_validation job_ids = { .min = 1, .max = U32_MAX };
static struct netlink_range_validation generations = { .max = U16_MAX };
static struct netlink_range_validation ranks = { .max = ACP_RANKS_MAX - 1 };

#define SAY(name)[ACP_NL_A_##name]
#define SAY_JOB								\
	SAY(JOB) = NLA_POLICY_FULL_RANGE(NLA_U32, &job_ids),		\
	SAY(GENERATION) = NLA_POLICY_FULL_RANGE(NLA_U32, &generations)
#define SAY_RANK	SAY(RANK) = NLA_POLICY_FULL_RANGE(NLA_U32, &ranks)
#define SAY_NODE	SAY(NODE) = NLA_POLICY_FULL_RANGE(NLA_U32, &ranks)
#define SAY_COLOR	SAY(COLOR) = NLA_POLICY_MAX(NLA_U32, ACP_COLORS_MAX - 1)
#define SAY_ADDRESS	SAY(ADDRESS) = NLA_POLICY_RANGE(NLA_BINARY, 4, 16)
#define SAY_NAME	SAY(NAME) = { .type = NLA_NUL_STRING, .len = ACP_NL_NAME_MAX }

/* Attributes that are not in the policy of a command are refused. */
#define POLICY		static const struct nla_policy
#define WIDTH		(ACP_NL_REQUEST + 1)

POLICY says_nothing[WIDTH] = {};
POLICY says_name[WIDTH] = { SAY_NAME };
POLICY says_limit[WIDTH] = { SAY_NAME, SAY(VALUE) = { .type = NLA_U64 } };
POLICY says_color[WIDTH] = { SAY_COLOR, SAY_ADDRESS };
POLICY says_job[WIDTH] = { SAY_JOB };
POLICY says_rank[WIDTH] = { SAY_JOB, SAY_RANK };
POLICY says_flow[WIDTH] = { SAY_JOB, SAY_NODE, SAY_COLOR };
POLICY says_node[WIDTH] = {
	SAY(ENABLE) = NLA_POLICY_MAX(NLA_U32, 1),
	SAY(TIMEOUT_MIN) = NLA_POLICY_FULL_RANGE(NLA_U32, &timeouts),
	SAY(TIMEOUT_MAX) = NLA_POLICY_FULL_RANGE(NLA_U32, &timeouts),
};

POLICY says_ping[WIDTH] = {
	SAY_JOB, SAY_RANK, SAY_NODE, SAY_COLOR, SAY_ADDRESS,
	SAY(SIZE) = NLA_POLICY_MAX(NLA_U32, ACP_NL_PING_SIZE_MAX),
	SAY(TIMEOUT) = NLA_POLICY_FULL_RANGE(NLA_U32, &ping_timeouts),
};

#define DUMP(name)								\
static int name##_dump(struct sk_buff *skb, struct netlink_callback *cb)	\
{										\
	return dump_part(skb, cb, name##_entries);				\
}

#define job_entries	acp_nl_job_dump
#define rank_entries	acp_nl_rank_dump
#define region_entries	acp_nl_region_dump
#define flow_entries	acp_nl_flow_dump
DUMP(limit)
DUMP(color)
DUMP(job)
DUMP(rank)
DUMP(region)
DUMP(flow)
DUMP(stat)

#define SAYS(p)	.policy = p, .maxattr = ACP_NL_REQUEST
#define DO(c, p, f) { .cmd = ACP_NL_CMD_##c, .doit = f, SAYS(p) }
#define ADMIN(c, p, f) { .cmd = ACP_NL_CMD_##c, .doit = f, SAYS(p), .flags = GENL_UNS_ADMIN_PERM }
#define BOTH(c, p, f, d) \
	{ .cmd = ACP_NL_CMD_##c, .doit = f, .start = dump_start, .dumpit = d, SAYS(p) }
#define DUMPS(c, p, d) \
	{ .cmd = ACP_NL_CMD_##c, .start = dump_start, .dumpit = d, SAYS(p) }

static const struct genl_ops ops[] = {
	DO(NODE_GET, says_nothing, get_node),
	ADMIN(NODE_SET, says_node, set_node),
	BOTH(LIMIT_GET, says_name, limit_get, limit_dump),
	ADMIN(LIMIT_SET, says_limit, limit_set),
	DUMPS(COLOR_GET, says_nothing, color_dump),
	ADMIN(COLOR_ADD, says_color, color_add),
	ADMIN(COLOR_DEL, says_color, color_del),
	BOTH(JOB_GET, says_job, acp_nl_job_get, job_dump),
	DO(JOB_ABORT, says_job, acp_nl_job_abort),
	BOTH(RANK_GET, says_rank, acp_nl_rank_get, rank_dump),
	DUMPS(REGION_GET, says_rank, region_dump),
	DUMPS(FLOW_GET, says_flow, flow_dump),
	DUMPS(STAT_GET, says_job, stat_dump),
	DO(PING, says_ping, acp_nl_ping),
};

static struct genl_family family __ro_after_init = {
	.name = ACP_NL_FAMILY_NAME,
	.version = ACP_NL_VERSION,
	.maxattr = ACP_NL_REQUEST,
	.netnsok = true,
	.parallel_ops = true,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
	.resv_start_op = 1,	/* strict validation for all commands */
	.mcgrps = acp_nl_groups,
	.n_mcgrps = ARRAY_SIZE(acp_nl_groups),
	.module = THIS_MODULE,
};

/* ---- closed sockets ---- */

static int socket_event(struct notifier_block *block, unsigned long event, void *data)
{
	const struct netlink_notify *n = data;

	if (event == NETLINK_URELEASE && n->protocol == NETLINK_GENERIC)
		acp_pings_forget(acp_node_of(n->net), n->portid);
	return NOTIFY_DONE;
}

static struct notifier_block socket_block = { .notifier_call = socket_event };

int __init acp_nl_init(void)
{
	int err = netlink_register_notifier(&socket_block);

	if (err)
		return err;
	acp_nl_put_init(&family);
	err = genl_register_family(&family);
	if (err)
		netlink_unregister_notifier(&socket_block);
	else
		acp_nl_speak(&family);
	return err;
}

void acp_nl_exit(void)
{
	acp_nl_speak(NULL);
	genl_unregister_family(&family);
	netlink_unregister_notifier(&socket_block);
}
