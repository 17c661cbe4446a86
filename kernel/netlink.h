/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The generic netlink family of uapi/acp_nl.h.  netlink.c: the family, who may
 * do what, the node and its settings; netlink_job.c: jobs and what they are
 * made of; netlink_event.c: what is told without being asked (notice.h).
 */
#ifndef ACP_NETLINK_H
#define ACP_NETLINK_H

int acp_nl_init(void);
void acp_nl_exit(void);

#endif /* ACP_NETLINK_H */
