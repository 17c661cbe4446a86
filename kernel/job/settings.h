/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Settings of a network namespace other than its limits: the local address of
 * each color and the bounds of time-outs.  They apply to jobs that begin later.
 */
#ifndef ACP_SETTINGS_H
#define ACP_SETTINGS_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include "acp_ga.h"

struct acp_job;

#define ACP_FAMILIES	2	/* IPv4, IPv6 */

/*
 * The lock is taken in process context only, and its holder does not wait: a
 * netlink request keeps modules from registering families, so it must not wait
 * for the lock of a node while the holder of that lock waits for a module.
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

/**
 * acp_settings_color() - read the address that is set for a color
 * @s: settings of the namespace
 * @color: the color, less than ACP_COLORS_MAX
 * @six: family of the address: IPv6 if true, else IPv4
 * @addr: receives the address in network order, 16 bytes or 4
 *
 * All 16 bytes of @addr are written, also if no address is set.
 *
 * Context: process; takes the lock of @s.
 * Return: true if an address is set.
 */
bool acp_settings_color(struct acp_settings *s, u32 color, bool six, u8 addr[16]);

/*
 * Apply the bounds of time-outs to a job that is about to begin.
 * -EADDRNOTAVAIL: the settings do not allow the address of one of its colors.
 */
int acp_settings_apply(struct acp_job *job);

#endif /* ACP_SETTINGS_H */
