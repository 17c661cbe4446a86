/* SPDX-License-Identifier: MIT */
/* Which job is meant: "7", "7/1" (with the generation), or the only one there is. */
#ifndef CTL_JOB_H
#define CTL_JOB_H

#include "ctl_nl.h"

/* generation: -1 if none is named. 0, or -1 and a complaint. */
int ctl_parse_job(const char *word, uint32_t *job, int *generation);

/* Put JOB and GENERATION. 0, or -1 and a complaint. */
int ctl_put_job(struct nl_msg *m, const char *word);

/* The same; without a word, of the only job that the caller may see here. An exit status. */
int ctl_choose_job(struct ctl_nl *nl, struct nl_msg *m, const char *word);

#endif /* CTL_JOB_H */
