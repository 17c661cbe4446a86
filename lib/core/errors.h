/* SPDX-License-Identifier: MIT */
/* Texts and errno values of statuses. */
#ifndef LIBACP_ERRORS_H
#define LIBACP_ERRORS_H

#pragma GCC visibility push(hidden)

/* Return the positive errno value of a status (enum acp_status); 0 for ACP_ST_OK. */
int libacp_errno(int status);

#pragma GCC visibility pop

#endif /* LIBACP_ERRORS_H */
