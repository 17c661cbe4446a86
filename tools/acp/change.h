/* SPDX-License-Identifier: MIT */
/*
 * Changes of the settings of this network namespace, by command or by file. Functions return 0 or
 * -errno; then nl->sentence is the reason.
 */
#ifndef CTL_CHANGE_H
#define CTL_CHANGE_H

#include "nl.h"

/* Set a limit by its name. */
int ctl_change_limit(struct ctl_nl *nl, const char *name, uint64_t value);

/* Set ENABLE, TIMEOUT_MIN or TIMEOUT_MAX. */
int ctl_change_node(struct ctl_nl *nl, enum acp_nl_attr attr, uint32_t value);

/* Add or delete an address of a color. @address: 4 or 16 bytes; NULL with DEL: all. */
int ctl_change_color(struct ctl_nl *nl, enum acp_nl_cmd command, uint32_t color,
		     const void *address, int length);

/*
 * Return the name of a limit as a constant, or NULL. Then ctl_limit_unknown() prints the known
 * names.
 */
const char *ctl_limit_name(const char *name);
void ctl_limit_unknown(const char *name);

/*
 * Parse the value of a limit: user_memory in KiB, or in bytes with suffix K, M or G. Returns 0 or
 * -1.
 */
int ctl_limit_value(const char *name, const char *word, uint64_t *value);

/* Parse an address. Returns 4, 16, or -1 after a message. */
int ctl_address(const char *word, unsigned char bytes[16]);

#endif /* CTL_CHANGE_H */
