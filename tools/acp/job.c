// SPDX-License-Identifier: MIT
/* Selection of a job: see job.h. */
#include "job.h"

#include <stdio.h>
#include <string.h>

#include "words.h"

int ctl_parse_job(const char *word, uint32_t *job, int *generation)
{
	const char *slash = strchr(word, '/');
	char id[24];
	uint64_t n;

	snprintf(id, sizeof(id), "%.*s", slash != NULL ? (int)(slash - word) : 23, word);
	if (ctl_number(id, "job", 1, UINT32_MAX, false, &n))
		return -1;
	*job = (uint32_t)n;
	*generation = -1;
	if (slash == NULL)
		return 0;
	if (ctl_number(slash + 1, "generation of a job", 0, 65535, false, &n))
		return -1;
	*generation = (int)n;
	return 0;
}

int ctl_put_job(struct nl_msg *m, const char *word)
{
	uint32_t job;
	int generation;

	if (ctl_parse_job(word, &job, &generation))
		return -1;
	ctl_nl_put_u32(m, ACP_NL_A_JOB, job);
	if (generation >= 0)
		ctl_nl_put_u32(m, ACP_NL_A_GENERATION, (uint32_t)generation);
	return 0;
}

struct choice {
	unsigned int count;
	uint32_t job, generation;
};

static void count_job(void *arg, const struct ctl_reply *r)
{
	struct choice *choice = arg;

	choice->count++;
	choice->job = ctl_reply_u32(r, ACP_NL_A_JOB);
	choice->generation = ctl_reply_u32(r, ACP_NL_A_GENERATION);
}

int ctl_choose_job(struct ctl_nl *nl, struct nl_msg *m, const char *word)
{
	struct choice choice = { 0 };
	int err;

	if (word != NULL)
		return ctl_put_job(m, word) ? CTL_USAGE : CTL_OK;
	err = ctl_nl_dump(nl, ctl_nl_new(nl, ACP_NL_CMD_JOB_GET), count_job, &choice);
	if (err)
		return ctl_nl_complain(nl, "jobs", err);
	if (choice.count == 0) {
		ctl_error("there is no job here, or none of yours");
		return CTL_FAILED;
	}
	if (choice.count > 1) {
		ctl_error("there are %u jobs here: say which one, job JOB (acp job show has them)",
			  choice.count);
		return CTL_USAGE;
	}
	ctl_nl_put_u32(m, ACP_NL_A_JOB, choice.job);
	ctl_nl_put_u32(m, ACP_NL_A_GENERATION, choice.generation);
	return CTL_OK;
}
