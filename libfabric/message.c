// SPDX-License-Identifier: MIT
/* Messages: not offered yet. */
#include "acp_fi.h"

const uint64_t fi_acp_message_caps;
const uint64_t fi_acp_message_order;

struct fi_ops_msg fi_acp_msg_ops = {
	.size = sizeof(fi_acp_msg_ops),
};

struct fi_ops_tagged fi_acp_tagged_ops = {
	.size = sizeof(fi_acp_tagged_ops),
};

int fi_acp_messages_open(struct fi_acp_ep *ep)
{
	(void)ep;
	return -FI_EOPNOTSUPP;
}

void fi_acp_messages_close(struct fi_acp_ep *ep)
{
	(void)ep;
}

void fi_acp_messages_progress(struct fi_acp_ep *ep)
{
	(void)ep;
}

int fi_acp_messages_cancel(struct fi_acp_ep *ep, void *context)
{
	(void)ep;
	(void)context;
	return -FI_ENOENT;
}

bool fi_acp_messages_arm(struct fi_acp_ep *ep)
{
	(void)ep;
	return false;
}
