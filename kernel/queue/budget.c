// SPDX-License-Identifier: GPL-2.0-only
/* The budget of a run of a softirq: see budget.h. */
#include <linux/kernel_stat.h>
#include "../compat.h"
#include "budget.h"

struct run {
	u32 number;
	struct acp_budget budget;
};

static DEFINE_PER_CPU(struct run, runs);

/* The kernel counts the runs. */
static u32 run_number(void)
{
	const unsigned int *begun = kstat_this_cpu->softirqs;

	return begun[NET_RX_SOFTIRQ] + begun[TASKLET_SOFTIRQ];
}

struct acp_budget *acp_budget_of_softirq(struct acp_budget *own)
{
	struct run *run = this_cpu_ptr(&runs);
	u32 number = run_number();

	if (unlikely(!in_serving_softirq())) {
		acp_budget_begin(own);
		return own;
	}
	if (run->number != number) {
		run->number = number;
		acp_budget_begin(&run->budget);
	} else if (!acp_budget_left(&run->budget)) {
		acp_budget_begin_short(own);
		return own;
	}
	return &run->budget;
}
