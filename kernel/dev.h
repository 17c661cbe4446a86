/* SPDX-License-Identifier: GPL-2.0-only */
/* /dev/acp: one open file is one rank. */
#ifndef ACP_DEV_H
#define ACP_DEV_H

#define ACP_MODULE_VERSION	"3.0.0"

int acp_dev_init(void);
void acp_dev_exit(void);

#endif /* ACP_DEV_H */
