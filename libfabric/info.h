/* SPDX-License-Identifier: MIT */
/* What the provider offers. */
#ifndef ACP_FI_INFO_H
#define ACP_FI_INFO_H

#include "acp_fi.h"

#pragma GCC visibility push(hidden)

/* Bits of mr_mode that programs must support. */
#define FI_ACP_MR_MODE	(FI_MR_ALLOCATED | FI_MR_PROV_KEY)

int fi_acp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info);

#pragma GCC visibility pop

#endif /* ACP_FI_INFO_H */
