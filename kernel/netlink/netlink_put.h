/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the files of the netlink family: readers, messages, requests. */
#ifndef ACP_NETLINK_PUT_H
#define ACP_NETLINK_PUT_H

#include <net/genetlink.h>
#include <net/sock.h>
#include "netlink.h"
#include "../job/node.h"
#include "notify.h"

#define ACP_NL_REQUEST	ACP_NL_A_SIZE	/* the last attribute of requests */

/* The identity of a requester. */
struct acp_nl_reader {
	kuid_t uid;		/* of the process, if it is also the socket's; else invalid */
	bool admin;		/* has CAP_NET_ADMIN */
};

/*
 * The position of a dump, in cb->ctx: keys of the next entry, no pointers.  All
 * objects may be freed between the parts of a dump.
 */
struct acp_nl_cursor {
	struct acp_nl_reader reader;
	unsigned long job, at, sub;
};

struct acp_nl_reader acp_nl_reader(const struct sk_buff *request);

/* Users without CAP_NET_ADMIN see only their own jobs. */
static inline bool acp_nl_sees(const struct acp_nl_reader *reader, const struct acp_job *job)
{
	return reader->admin || uid_eq(reader->uid, job->owner);
}

static inline struct nlattr **acp_nl_dump_attrs(struct netlink_callback *cb)
{
#ifdef ACP_HAS_GENL_DUMP_INFO
	return genl_dumpit_info(cb)->info.attrs;
#else
	return genl_dumpit_info(cb)->attrs;
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

/* Set the family of all messages.  Call it before the family is registered. */
void acp_nl_put_init(const struct genl_family *as);

/* Begin an entry of a dump.  NULL: no room. */
void *acp_nl_dump_entry(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd);

/*
 * The reply to a request.  acp_nl_reply_new() begins it; NULL: no memory.
 * acp_nl_reply() sends it, or frees it and returns err if that is not 0.
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

/* Put the attributes JOB and GENERATION of a job. */
static inline int acp_nl_put_job(struct sk_buff *skb, const struct acp_job *job)
{
	return nla_put_u32(skb, ACP_NL_A_JOB, job->id) ?:
	       nla_put_u32(skb, ACP_NL_A_GENERATION, job->generation);
}

/* Requests about jobs (netlink_job.c). */
int acp_nl_job_get(struct sk_buff *skb, struct genl_info *info);
int acp_nl_job_abort(struct sk_buff *skb, struct genl_info *info);
int acp_nl_job_dump(struct sk_buff *skb, struct netlink_callback *cb);
int acp_nl_rank_get(struct sk_buff *skb, struct genl_info *info);
int acp_nl_rank_dump(struct sk_buff *skb, struct netlink_callback *cb);
int acp_nl_region_dump(struct sk_buff *skb, struct netlink_callback *cb);
int acp_nl_flow_dump(struct sk_buff *skb, struct netlink_callback *cb);
int acp_nl_ping(struct sk_buff *skb, struct genl_info *info);

/* Sums over a job, for STAT_GET. */
struct acp_nl_sums {
	struct acp_traffic traffic;
	u64 completed, failed, flows, ranks;
};

/*
 * The job that a request or dump names, if the reader may see it; or NULL.  The caller gives the
 * reference up by acp_job_put().
 */
struct acp_job *acp_nl_find_job(struct acp_node *node, const struct acp_nl_reader *reader,
				struct nlattr **attrs);
void acp_nl_sum(struct acp_job *job, struct acp_nl_sums *sums);

/*
 * Send events (netlink_event.c) by this family from now on; NULL: send none.  Sleeps until the
 * former family is not used any more.
 */
void acp_nl_speak(const struct genl_family *as);
void acp_nl_tell_setting(struct acp_node *node, const char *name, u64 value);
void acp_nl_tell_color(struct acp_node *node, u32 color, const u8 *addr, u32 width);
extern const struct genl_multicast_group acp_nl_groups[1];

#endif /* ACP_NETLINK_PUT_H */
