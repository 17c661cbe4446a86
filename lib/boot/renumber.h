/* SPDX-License-Identifier: MIT */
/* New numbers of the ranks: acp_reset(). */
#ifndef LIBACP_RENUMBER_H
#define LIBACP_RENUMBER_H

#pragma GCC visibility push(hidden)

/*
 * Agree with all ranks on new numbers. Returns 0 with the new rank and rank runs in libacp.boot, or
 * -errno on all ranks with nothing changed.
 */
int libacp_reset_agree(int rank);

#pragma GCC visibility pop

#endif /* LIBACP_RENUMBER_H */
