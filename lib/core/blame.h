/* SPDX-License-Identifier: MIT */
/* Diagnosis of a failed access. */
#ifndef LIBACP_BLAME_H
#define LIBACP_BLAME_H

#include "acp_abi.h"

#pragma GCC visibility push(hidden)

/* End the job with a diagnosis of a failed access. @entry is NULL if its slot has been reused. */
void libacp_die_of_access(const struct acp_sqe *entry, int status) __attribute__((noreturn));

#pragma GCC visibility pop

#endif /* LIBACP_BLAME_H */
