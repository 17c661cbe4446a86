/* SPDX-License-Identifier: MIT */
/* Ranks that have not arrived, for messages. */
#ifndef LIBACP_MISSING_H
#define LIBACP_MISSING_H

#pragma GCC visibility push(hidden)

/* Mark this rank as present, visible to other ranks. */
void libacp_absent_open(void);

/* Print which ranks did not arrive in time, or which left before the job started. */
void libacp_tell_missing(void);
void libacp_tell_left_early(void);

#pragma GCC visibility pop

#endif /* LIBACP_MISSING_H */
