/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an administrator sets of a network namespace beside its limits: which
 * local address each color is, and within which bounds time-outs may be.
 * They hold for jobs that begin from then on.
 */
#ifndef ACP_SETTINGS_H
#define ACP_SETTINGS_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include "acp_ga.h"

struct acp_job;

#define ACP_FAMILIES	2	/* IPv4, IPv6 */

/*
 * The lock is for threads only, and nothing is waited for under it: who asks by
 * netlink keeps modules from registering families, and must not wait for a node
 * whose lock is held by somebody who waits for a module.
 */
struct acp_settings {
	spinlock_t lock;	/* guards all */
	u32 timeout_min, timeout_max;	/* ms */
	struct {
		bool used;
		u8 addr[16];
	} colors[ACP_COLORS_MAX][ACP_FAMILIES];
};

void acp_settings_init(struct acp_settings *s);

/* A color's address of a family, IPv6 or not, is copied to addr: is there one? */
bool acp_settings_color(struct acp_settings *s, u32 color, bool six, u8 addr[16]);

/*
 * A job is about to begin: hold its time-outs to the bounds.  -EADDRNOTAVAIL:
 * a color has another address here than the job says.
 */
int acp_settings_apply(struct acp_job *job);

#endif /* ACP_SETTINGS_H */
