// SPDX-License-Identifier: GPL-2.0-only
/* The argument of a call: see call.h. */
#include <linux/uaccess.h>
#include "call.h"
#include "../job/limits.h"
#include "../job/node.h"
#include "../netlink/notify.h"

int acp_call_read_struct(const struct acp_call *c, void *to, size_t size, size_t least)
{
	u32 theirs;
	int err;

	if (c->size < least)
		return -EINVAL;
	if (c->size > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(to, size, c->arg, c->size);
	if (err)
		return err;
	memcpy(&theirs, to, sizeof(theirs));
	return theirs == c->size ? 0 : -EINVAL;
}

int acp_call_write_struct(const struct acp_call *c, const void *from, size_t size)
{
	const size_t skip = sizeof(u32);

	size = min_t(size_t, size, c->size) - skip;
	return copy_to_user(c->arg + skip, from + skip, size) ? -EFAULT : 0;
}

int acp_call_over_limit(const struct acp_call *c, struct acp_node *node, kuid_t uid, int err,
			size_t offset)
{
	u32 limit = acp_over_which(err);
	int answer = limit == ACP_LIMIT_MEMLOCK ? -ENOMEM : -EDQUOT;

	if (answer == -EDQUOT)
		acp_stat_inc(node, limit_calls);
	else
		acp_stat_inc(node, limit_memlock);
	acp_nl_tell_limit(node, uid, limit);
	return put_user(limit, (u32 __user *)(c->arg + offset)) ?: answer;
}
