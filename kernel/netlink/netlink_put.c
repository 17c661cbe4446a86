// SPDX-License-Identifier: GPL-2.0-only
/* Readers and messages of the netlink family: see netlink_put.h. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/netlink.h>
#include "../compat.h"
#include "netlink_put.h"

static const struct genl_family *family;

void __init acp_nl_put_init(const struct genl_family *as)
{
	family = as;
}

/*
 * A process that runs as another user than the opener of the socket may have
 * inherited or received the socket: it acts for neither user.
 */
struct acp_nl_reader acp_nl_reader(const struct sk_buff *request)
{
	struct sock *sk = NETLINK_CB(request).sk;
	struct acp_nl_reader reader = { .uid = INVALID_UID };

	if (uid_eq(sk_uid(sk), current_euid()))
		reader.uid = current_euid();
	reader.admin = netlink_ns_capable(request, sock_net(sk)->user_ns, CAP_NET_ADMIN);
	return reader;
}

void *acp_nl_dump_entry(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	void *head = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
				 family, NLM_F_MULTI, cmd);

	if (head)
		genl_dump_check_consistent(cb, head);
	return head;
}

struct sk_buff *acp_nl_reply_new(struct genl_info *info, void **head)
{
	struct sk_buff *skb = nlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);

	*head = skb ? genlmsg_put_reply(skb, info, family, 0, info->genlhdr->cmd) : NULL;
	if (*head)
		return skb;
	nlmsg_free(skb);
	return NULL;
}

int acp_nl_reply(struct sk_buff *skb, void *head, int err, struct genl_info *info)
{
	if (err) {
		nlmsg_free(skb);
		return err;
	}
	genlmsg_end(skb, head);
	return genlmsg_reply(skb, info);
}
