/* SPDX-License-Identifier: MIT */
/*
 * What the middle layer (heap, channels, containers) uses of the basic layer
 * besides acp.h.  gma.c and init.c have it; in unit tests the played basic
 * layer does (selftests/unit/fake_acp.c).
 */
#ifndef LIBACP_MIDDLE_H
#define LIBACP_MIDDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "acp.h"

#pragma GCC visibility push(hidden)

/* The monotonic clock, ns. */
uint64_t libacp_now(void);

/* Sleep so long. */
void libacp_sleep(uint64_t ns);

/* One line on standard error, with the rank in front; keeps errno. */
void libacp_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Say whether the library itself deals with failures of what the calling
 * thread issues from now on, so that acp_complete() never ends the job for
 * them.  Returns what was said before, which is due again afterwards.
 */
bool libacp_quiet(bool quiet);

/*
 * Begin a chain: from now on, what the calling thread issues while quiet with
 * a handle as its order is refused (ACP_HANDLE_NULL) if anything that the
 * process issued since has failed, up to that handle.  Without this, what
 * failed before its dependent was issued would be no condition for it.  One
 * that is refused must be the end of the chain: its handle is no order.
 * libacp_quiet() ends it, so what is called in between must not do that.
 */
void libacp_chain(void);

/*
 * Wait for an access that was issued while quiet: 0, or a negative errno that
 * tells how it failed, however many others were issued since.
 */
int libacp_finish(acp_handle_t handle);

/* The same for one that is complete, and was issued while quiet. */
int libacp_ended(acp_handle_t handle);

/* ---- middle.c ---- */

/* As a rank, before and after the others may be spoken to.  0 or -errno. */
int libacp_middle_open(void);
void libacp_middle_close(void);

#pragma GCC visibility pop

#endif /* LIBACP_MIDDLE_H */
