/* SPDX-License-Identifier: GPL-2.0-only */
/* /dev/acp: an open file is a rank, or an additional queue of a rank. */
#ifndef ACP_DEV_H
#define ACP_DEV_H

#define ACP_MODULE_VERSION	"3.0.0"

/**
 * acp_dev_init() - register the device
 *
 * Everything else must be initialized before: processes may join at once.
 *
 * Context: process context, may sleep.
 * Return: 0 or -errno.
 */
int acp_dev_init(void);

/**
 * acp_dev_exit() - remove the device when the module is unloaded
 *
 * Context: process context, may sleep.  No file of the device is open.
 */
void acp_dev_exit(void);

#endif /* ACP_DEV_H */
