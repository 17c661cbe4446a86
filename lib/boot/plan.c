// SPDX-License-Identifier: MIT
/* Parameters that one rank determines for all ranks of a program, as text. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "acp_ga.h"
#include "boot/boot.h"
#include "core/internal.h"

#define FORMAT	"acp-plan-1"	/* first word of the text */

/* FORMAT FIRST COUNT TOTAL JOB KEY; the following lines are the nodes and the placement. */
char *libacp_plan_text(const struct libacp_plan *plan)
{
	char key[33] = "-", *text;
	size_t i;

	for (i = 0; plan->keyed && i < sizeof(plan->key); i++)
		sprintf(key + 2 * i, "%02x", plan->key[i]);
	if (asprintf(&text, FORMAT " %u %u %u %u %s\n%s\n%s\n", plan->first, plan->count,
		     plan->total, plan->job, key, plan->nodes, plan->placement) < 0)
		text = NULL;
	explicit_bzero(key, sizeof(key));
	return text;
}

static bool next_number(char **line, uint64_t max, uint32_t *number)
{
	const char *word = strsep(line, " ");
	uint64_t found;

	if (!word || !libacp_read_number(&word, max, &found) || *word != '\0')
		return false;
	*number = (uint32_t)found;
	return true;
}

static bool parse_head(struct libacp_plan *plan, char *line)
{
	const char *word = strsep(&line, " ");

	if (!word || strcmp(word, FORMAT) != 0 ||
	    !next_number(&line, ACP_RANKS_MAX, &plan->first) ||
	    !next_number(&line, ACP_RANKS_MAX, &plan->count) ||
	    !next_number(&line, ACP_RANKS_MAX, &plan->total) ||
	    !next_number(&line, UINT32_MAX, &plan->job) || !line)
		return false;
	plan->keyed = strcmp(line, "-") != 0;
	if (plan->keyed && !libacp_parse_key(line, strlen(line), plan->key))
		return false;
	return plan->count && plan->first < plan->total &&
	       plan->count <= plan->total - plan->first && plan->job;
}

static bool parse_lines(struct libacp_plan *plan, char *text)
{
	char *head = strsep(&text, "\n"), *nodes = strsep(&text, "\n");
	char *placement = strsep(&text, "\n");

	if (!text || *text != '\0' || !parse_head(plan, head))
		return false;
	plan->nodes = strdup(nodes);
	plan->placement = strdup(placement);
	if (plan->nodes && plan->placement)
		return true;
	libacp_plan_free(plan);
	return false;
}

/* Parsing splits the text by null bytes, so libacp_text_free() could not wipe all of it later. */
bool libacp_plan_parse(struct libacp_plan *plan, char *text)
{
	const size_t length = strlen(text);
	bool good;

	memset(plan, 0, sizeof(*plan));
	good = parse_lines(plan, text);
	explicit_bzero(text, length);
	return good;
}

int libacp_plan_key(struct libacp_plan *plan)
{
	if (getrandom(plan->key, sizeof(plan->key), 0) != sizeof(plan->key)) {
		libacp_error("cannot make a key: %s", strerror(errno));
		return -1;
	}
	plan->keyed = true;
	return 0;
}

/* Not derived from the key, because the job number is readable in all frames. */
int libacp_plan_job(struct libacp_plan *plan)
{
	do {
		if (getrandom(&plan->job, sizeof(plan->job), 0) != sizeof(plan->job)) {
			libacp_error("cannot make a number of the job: %s", strerror(errno));
			return -1;
		}
	} while (!plan->job);
	return 0;
}

void libacp_plan_free(struct libacp_plan *plan)
{
	free(plan->nodes);
	free(plan->placement);
	explicit_bzero(plan, sizeof(*plan));
}

void libacp_text_free(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}
