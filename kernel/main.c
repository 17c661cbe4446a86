// SPDX-License-Identifier: GPL-2.0-only
/* Init in order, exit in reverse. */
#include <linux/module.h>
#include <linux/rcupdate.h>
#include "aead.h"
#include "dev.h"
#include "limits.h"
#include "netlink.h"
#include "node.h"
#include "station.h"

/* Global addresses and counters of 64 bits are read and written as one word. */
#ifndef CONFIG_64BIT
#error "ACP needs a 64-bit kernel"
#endif

static int __init acp_init(void)
{
	int err = acp_limits_init();

	if (err)
		return err;
	err = acp_station_init();
	if (err)
		return err;
	err = acp_node_init();
	if (err)
		goto station_exit;
	err = acp_nl_init();
	if (err)
		goto node_exit;
	err = acp_dev_init();
	if (err)
		goto nl_exit;
	return 0;

nl_exit:
	acp_nl_exit();
node_exit:
	acp_node_exit();
station_exit:
	acp_station_exit();
	return err;
}

/*
 * Callbacks of freed jobs and contexts are code of this module: wait for them.
 * Three times, since that of a further queue may put its rank's context, and that
 * its job, which then have one, too.
 */
static void __exit acp_exit(void)
{
	acp_dev_exit();
	acp_nl_exit();
	acp_node_exit();
	rcu_barrier();
	rcu_barrier();
	rcu_barrier();
	acp_udp_exit();
	acp_aead_exit();
	acp_station_exit();
}

module_init(acp_init);
module_exit(acp_exit);
MODULE_DESCRIPTION("Advanced Communication Primitives: one-sided communication over Ethernet");
MODULE_VERSION(ACP_MODULE_VERSION);
MODULE_LICENSE("GPL");
