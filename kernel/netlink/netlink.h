/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The generic netlink family of uapi/acp_nl.h.  netlink.c: the family, the node and its settings;
 * netlink_job.c: jobs, their ranks, regions and flows, and pings; netlink_put.c: the identity of
 * the requester, and messages of replies; netlink_event.c: events (notify.h).
 */
#ifndef ACP_NETLINK_H
#define ACP_NETLINK_H

/**
 * acp_nl_init() - register the family
 *
 * Context: loading of the module.
 * Return: 0 or -errno.
 */
int acp_nl_init(void);

/**
 * acp_nl_exit() - unregister the family; no event is sent any more
 *
 * Context: unloading of the module, or after an error in loading it.
 */
void acp_nl_exit(void);

#endif /* ACP_NETLINK_H */
