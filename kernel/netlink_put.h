/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the netlink family share: readers, messages, requests. */
#ifndef ACP_NETLINK_PUT_H
#define ACP_NETLINK_PUT_H

#include <linux/version.h>
#include <net/genetlink.h>
#include <net/sock.h>
#include "netlink.h"
#include "node.h"
#include "notice.h"

extern struct genl_family acp_nl_family;

#define ACP_NL_REQUEST	ACP_NL_A_SIZE	/* the last attribute that requests have */

/* Who asks: the user number of both sender and opener of the socket, or admin. */
struct acp_nl_reader {
	kuid_t uid;
	bool admin;
};

/*
 * Where a dump is: keys of what comes next, so that all of it may go meanwhile.
 * In cb->ctx.
 */
struct acp_nl_cursor {
	struct acp_nl_reader reader;
	unsigned long job, at, sub;
};

struct acp_nl_reader acp_nl_reader(const struct sk_buff *request);

static inline bool acp_nl_sees(const struct acp_nl_reader *reader, const struct acp_job *job)
{
	return reader->admin || uid_eq(reader->uid, job->owner);
}

static inline struct nlattr **acp_nl_dump_attrs(struct netlink_callback *cb)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
	return genl_dumpit_info(cb)->attrs;
#else
	return genl_dumpit_info(cb)->info.attrs;
#endif
}

static inline struct acp_nl_cursor *acp_nl_cursor(struct netlink_callback *cb)
{
	return (struct acp_nl_cursor *)cb->ctx;
}

static inline struct acp_node *acp_nl_dump_node(struct netlink_callback *cb)
{
	return acp_node_of(sock_net(cb->skb->sk));
}

/* Begin an entry of a dump; NULL: no room. */
void *acp_nl_dump_entry(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd);

/*
 * The reply to a request: begin it (NULL: no memory), and send it unless filling
 * it failed with "err"; it is given up with.
 */
struct sk_buff *acp_nl_reply_new(struct genl_info *info, void **head);
int acp_nl_reply(struct sk_buff *skb, void *head, int err, struct genl_info *info);

static inline int acp_nl_put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, ACP_NL_A_PAD);
}

static inline int acp_nl_put_flag(struct sk_buff *skb, int attr, bool set)
{
	return set ? nla_put_flag(skb, attr) : 0;
}

static inline int acp_nl_put_address(struct sk_buff *skb, const struct acp_job *job,
				     const u8 *addr)
{
	return nla_put(skb, ACP_NL_A_ADDRESS, job->family == AF_INET ? 4 : 16, addr);
}

/* JOB and GENERATION of a job. */
int acp_nl_put_job(struct sk_buff *skb, const struct acp_job *job);

/* Requests about jobs (netlink_job.c). */
int acp_nl_job_get(struct sk_buff *skb, struct genl_info *info);
int acp_nl_job_abort(struct sk_buff *skb, struct genl_info *info);
int acp_nl_job_dump(struct sk_buff *skb, struct netlink_callback *cb);
int acp_nl_rank_get(struct sk_buff *skb, struct genl_info *info);
int acp_nl_rank_dump(struct sk_buff *skb, struct netlink_callback *cb);
int acp_nl_region_dump(struct sk_buff *skb, struct netlink_callback *cb);
int acp_nl_flow_dump(struct sk_buff *skb, struct netlink_callback *cb);
int acp_nl_ping(struct sk_buff *skb, struct genl_info *info);

/* Sums over a job, for STAT_GET: name, value, meaning of the i-th.  False: no more. */
struct acp_nl_sums {
	struct acp_traffic traffic;
	u64 completed, failed, flows, ranks;
};

/* The job that a request or dump names, held, if the reader sees it; or NULL. */
struct acp_job *acp_nl_find_job(struct acp_node *node, const struct acp_nl_reader *reader,
				struct nlattr **attrs);
void acp_nl_sum(struct acp_job *job, struct acp_nl_sums *sums);

/* Events (netlink_event.c): are they told?  Off: and nobody does any more. */
void acp_nl_speak(bool on);
void acp_nl_tell_setting(struct acp_node *node, const char *name, u64 value);
void acp_nl_tell_color(struct acp_node *node, u32 color, const u8 *addr, u32 width);
extern const struct genl_multicast_group acp_nl_groups[1];

#endif /* ACP_NETLINK_PUT_H */
