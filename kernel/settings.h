/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an administrator sets of a network namespace beside its limits: which
 * local address each color is, and within which bounds time-outs may be.
 * They hold for jobs that begin from then on.
 */
#ifndef ACP_SETTINGS_H
#define ACP_SETTINGS_H

#include <linux/types.h>
#include "acp_ga.h"

struct acp_job;

#define ACP_FAMILIES	2	/* IPv4, IPv6 */

/* Under the node's lock, but for who reads one word. */
struct acp_settings {
	u32 timeout_min, timeout_max;	/* ms */
	struct {
		bool used;
		u8 addr[16];
	} colors[ACP_COLORS_MAX][ACP_FAMILIES];
};

void acp_settings_init(struct acp_settings *s);

/*
 * A job is about to begin: hold its time-outs to the bounds.  -EADDRNOTAVAIL:
 * a color has another address here than the job says.  Under the node's lock.
 */
int acp_settings_apply(struct acp_job *job);

#endif /* ACP_SETTINGS_H */
