// SPDX-License-Identifier: GPL-2.0-only
/* Initialize the subsystems in order, and shut them down in reverse order. */
#include <linux/module.h>
#include <linux/rcupdate.h>
#include "net/aead.h"
#include "dev/dev.h"
#include "job/limits.h"
#include "netlink/netlink.h"
#include "job/node.h"
#include "mem/mapping.h"
#include "exec/station.h"
#include "exec/worker.h"
#include "net/gso_rx.h"
#include "net/gso_tx.h"
#include "net/skbs.h"

/* 64-bit global addresses and counters are read and written as single words. */
#ifndef CONFIG_64BIT
#error "ACP needs a 64-bit kernel"
#endif

/*
 * Per-CPU objects (ciphers, skbs, items, states of tags) are used with bottom halves off and have
 * no lock.  On a kernel where bottom halves may preempt each other, keys and memory would get mixed
 * up.
 */
static int __init check_kernel(void)
{
#ifdef ACP_BH_UNLOCKED
	pr_err("acp: a PREEMPT_RT kernel must have PREEMPT_RT_NEEDS_BH_LOCK\n");
	return -EOPNOTSUPP;
#else
	return 0;
#endif
}

static int __init acp_init(void)
{
	int err = check_kernel();

	if (!err)
		err = acp_limits_init();
	if (err)
		return err;
	err = acp_station_init();
	if (err)
		return err;
	err = acp_worker_init();
	if (err)
		goto station_exit;
	err = acp_mapping_init();
	if (err)
		goto worker_exit;
	err = acp_node_init();
	if (err)
		goto mapping_exit;
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
mapping_exit:
	acp_mapping_exit();
worker_exit:
	acp_worker_exit();
station_exit:
	acp_station_exit();
	return err;
}

/*
 * RCU callbacks that free jobs and queues are code of this module: wait for them.  Three times,
 * since the callback of an additional queue may drop the last reference to its rank's own queue,
 * and the callback of that the last reference to the job; each of them then has a callback, too.
 */
static void __exit acp_exit(void)
{
	acp_dev_exit();
	acp_nl_exit();
	acp_node_exit();
	acp_worker_exit();
	rcu_barrier();
	rcu_barrier();
	rcu_barrier();
	acp_mapping_exit();
	acp_skbs_exit();
	acp_gso_exit();
	acp_gso_rx_exit();
	acp_aead_exit();
	acp_station_exit();
}

module_init(acp_init);
module_exit(acp_exit);
MODULE_DESCRIPTION("Advanced Communication Primitives: one-sided communication over Ethernet");
MODULE_VERSION(ACP_MODULE_VERSION);
MODULE_LICENSE("GPL");
