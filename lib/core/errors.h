/* SPDX-License-Identifier: MIT */
/* Texts and errno values of statuses. */
#ifndef LIBACP_ERRORS_H
#define LIBACP_ERRORS_H

#pragma GCC visibility push(hidden)

/**
 * libacp_errno() - get the errno value of a status
 * @status: enum acp_status
 *
 * Context: any thread; does not block.
 * Return: the positive errno value; 0 for ACP_ST_OK.
 */
int libacp_errno(int status);

#pragma GCC visibility pop

#endif /* LIBACP_ERRORS_H */
