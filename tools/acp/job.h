/* SPDX-License-Identifier: MIT */
/* Selection of a job: "7", "7/1" (with generation), or the only job. */
#ifndef CTL_JOB_H
#define CTL_JOB_H

#include "nl.h"

/* Parse the name of a job. *generation: -1 if it has none. Returns 0, or -1 after a message. */
int ctl_parse_job(const char *word, uint32_t *job, int *generation);

/* Put JOB and GENERATION. Returns 0, or -1 after a message. */
int ctl_put_job(struct nl_msg *m, const char *word);

/*
 * As ctl_put_job(); if @word is NULL, select the only job that is visible to the caller. Returns an
 * exit status.
 */
int ctl_choose_job(struct ctl_nl *nl, struct nl_msg *m, const char *word);

#endif /* CTL_JOB_H */
