/* SPDX-License-Identifier: MIT */
/* States of other ranks, and events. */
#ifndef LIBACP_EVENT_H
#define LIBACP_EVENT_H

#include <stdint.h>

#include "acp_abi.h"

#pragma GCC visibility push(hidden)

/* Return the state of @rank as known by the kernel. */
struct acp_rank_state libacp_rank_state(uint32_t rank);

#pragma GCC visibility pop

#endif /* LIBACP_EVENT_H */
