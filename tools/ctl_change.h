/* SPDX-License-Identifier: MIT */
/*
 * Settings of this namespace, by command or by file. Functions return 0 or
 * -errno, and then the reason is in nl->sentence.
 */
#ifndef CTL_CHANGE_H
#define CTL_CHANGE_H

#include "ctl_nl.h"

int ctl_change_limit(struct ctl_nl *nl, const char *name, uint64_t value);

/* ENABLE, TIMEOUT_MIN or TIMEOUT_MAX. */
int ctl_change_node(struct ctl_nl *nl, enum acp_nl_attr attr, uint32_t value);

/* address: 4 or 16 bytes; of DEL NULL for all. */
int ctl_change_color(struct ctl_nl *nl, enum acp_nl_cmd command, uint32_t color,
		     const void *address, int length);

/* The value of a limit as typed: user_memory in KiB, or bytes with suffix K, M or G. 0 or -1. */
int ctl_limit_value(const char *name, const char *word, uint64_t *value);

/* 4, 16, or -1 and a complaint. */
int ctl_address(const char *word, unsigned char bytes[16]);

#endif /* CTL_CHANGE_H */
