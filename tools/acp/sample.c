// SPDX-License-Identifier: MIT
/* Counters of all ranks and flows at one time: see sample.h. */
#include "sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "job.h"
#include "words.h"

#define S	1000000000ULL

static struct ctl_row *new_row(struct ctl_rows *rows, const struct ctl_reply *r)
{
	struct ctl_row *row;

	/* Double the capacity whenever the count is a power of two. */
	if ((rows->count & (rows->count - 1)) == 0) {
		rows->row = realloc(rows->row, (rows->count ? 2 * rows->count : 1) * sizeof(*row));
		if (rows->row == NULL) {
			ctl_error("out of memory");
			exit(CTL_FAILED);
		}
	}
	row = &rows->row[rows->count++];
	memset(row, 0, sizeof(*row));
	row->job = ctl_reply_u32(r, ACP_NL_A_JOB);
	row->generation = ctl_reply_u32(r, ACP_NL_A_GENERATION);
	row->in_flight = ctl_reply_u32(r, ACP_NL_A_IN_FLIGHT);
	return row;
}

static void take_rank(void *arg, const struct ctl_reply *r)
{
	struct ctl_row *row = new_row(arg, r);

	row->rank = ctl_reply_u32(r, ACP_NL_A_RANK);
	row->pid = ctl_reply_u32(r, ACP_NL_A_PID);
	row->state = ctl_reply_u32(r, ACP_NL_A_RANK_STATE);
	row->regions = ctl_reply_u32(r, ACP_NL_A_REGIONS);
	row->barrier = ctl_reply_u64(r, ACP_NL_A_BARRIER);
	row->count[CTL_TAKEN] = ctl_reply_u64(r, ACP_NL_A_TAKEN);
	row->count[CTL_COMPLETED] = ctl_reply_u64(r, ACP_NL_A_COMPLETED);
	row->count[CTL_FAILURES] = ctl_reply_u64(r, ACP_NL_A_FAILED);
}

static void take_flow(void *arg, const struct ctl_reply *r)
{
	struct ctl_row *row = new_row(arg, r);

	row->rank = ctl_reply_u32(r, ACP_NL_A_NODE);
	row->pid = ctl_reply_u32(r, ACP_NL_A_COLOR);
	row->state = ctl_reply_u32(r, ACP_NL_A_FLOW_STATE);
	row->window = ctl_reply_u32(r, ACP_NL_A_WINDOW);
	row->srtt = ctl_reply_u64(r, ACP_NL_A_SRTT);
	if (r->a[ACP_NL_A_ADDRESS] != NULL)
		ctl_address_text(r->a[ACP_NL_A_ADDRESS], row->address);
	row->count[CTL_TX_FRAMES] = ctl_reply_u64(r, ACP_NL_A_TX_FRAMES);
	row->count[CTL_TX_BYTES] = ctl_reply_u64(r, ACP_NL_A_TX_BYTES);
	row->count[CTL_RETRANSMITS] = ctl_reply_u64(r, ACP_NL_A_TX_RETRANSMITS);
	row->count[CTL_RX_FRAMES] = ctl_reply_u64(r, ACP_NL_A_RX_FRAMES);
	row->count[CTL_RX_BYTES] = ctl_reply_u64(r, ACP_NL_A_RX_BYTES);
}

/* A job that has just ended has no ranks any more: this is no error. */
static int dump(struct ctl_nl *nl, enum acp_nl_cmd command, const char *job, ctl_take *take,
		struct ctl_rows *rows)
{
	struct nl_msg *m = ctl_nl_new(nl, command);
	int err;

	if (job != NULL && ctl_put_job(m, job)) {
		nlmsg_free(m);
		return -EINVAL;
	}
	err = ctl_nl_dump(nl, m, take, rows);
	return err == -ENOENT ? 0 : err;
}

int ctl_sample_take(struct ctl_nl *nl, const char *job, struct ctl_sample *s)
{
	struct timespec t;
	int err;

	memset(s, 0, sizeof(*s));
	clock_gettime(CLOCK_MONOTONIC, &t);
	s->at = (uint64_t)t.tv_sec * S + (uint64_t)t.tv_nsec;
	err = dump(nl, ACP_NL_CMD_RANK_GET, job, take_rank, &s->ranks);
	return err ? err : dump(nl, ACP_NL_CMD_FLOW_GET, job, take_flow, &s->flows);
}

void ctl_sample_free(struct ctl_sample *s)
{
	free(s->ranks.row);
	free(s->flows.row);
	memset(s, 0, sizeof(*s));
}

/* ---- Rates ---- */

static int by_name(const void *a, const void *b)
{
	const struct ctl_row *x = a, *y = b;

	if (x->job != y->job)
		return x->job < y->job ? -1 : 1;
	if (x->generation != y->generation)
		return x->generation < y->generation ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return 0;
}

/* Ranks are also compared by process, which may be a different one now; flows by color. */
static int by_full_name(const void *a, const void *b)
{
	const struct ctl_row *x = a, *y = b;
	int order = by_name(a, b);

	return order ? order : x->pid < y->pid ? -1 : x->pid > y->pid;
}

static double weight(const struct ctl_row *row)
{
	double sum = 0;
	int i;

	for (i = 0; i < CTL_COUNTS; i++)
		sum += row->rate[i];
	return sum;
}

static int by_weight(const void *a, const void *b)
{
	double x = weight(a), y = weight(b);

	return x > y ? -1 : x < y ? 1 : by_full_name(a, b);
}

static void compare_rows(struct ctl_rows *rows, const struct ctl_rows *before, double seconds)
{
	size_t i;
	int k;

	for (i = 0; i < rows->count; i++) {
		struct ctl_row *row = &rows->row[i];
		const struct ctl_row *old = before->count == 0 ? NULL :
			bsearch(row, before->row, before->count, sizeof(*row), by_full_name);

		for (k = 0; old != NULL && k < CTL_COUNTS; k++)
			if (row->count[k] >= old->count[k])
				row->rate[k] = (double)(row->count[k] - old->count[k]) / seconds;
	}
}

static void sort(const struct ctl_rows *rows, int (*order)(const void *a, const void *b))
{
	if (rows->count > 0)
		qsort(rows->row, rows->count, sizeof(rows->row[0]), order);
}

void ctl_sample_compare(struct ctl_sample *s, const struct ctl_sample *before)
{
	double seconds = (double)(s->at - before->at) / (double)S;

	if (seconds > 0) {
		sort(&before->ranks, by_full_name);
		sort(&before->flows, by_full_name);
		compare_rows(&s->ranks, &before->ranks, seconds);
		compare_rows(&s->flows, &before->flows, seconds);
	}
	sort(&s->ranks, by_weight);
	sort(&s->flows, by_weight);
}
