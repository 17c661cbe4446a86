// SPDX-License-Identifier: GPL-2.0-only
/* The budget of a pass of a softirq: see budget.h. */
#include <linux/kernel_stat.h>
#include "../compat.h"
#include "budget.h"

struct pass {
	u32 number;
	struct acp_budget budget;
};

static DEFINE_PER_CPU(struct pass, passes);

/* The kernel counts the passes. */
static u32 pass_number(void)
{
	const unsigned int *begun = kstat_this_cpu->softirqs;

	return begun[NET_RX_SOFTIRQ] + begun[TASKLET_SOFTIRQ];
}

struct acp_budget *acp_budget_of_pass(struct acp_budget *own)
{
	struct pass *pass = this_cpu_ptr(&passes);
	u32 number = pass_number();

	if (unlikely(!in_serving_softirq())) {
		acp_budget_begin(own);
		return own;
	}
	if (pass->number != number) {
		pass->number = number;
		acp_budget_begin(&pass->budget);
	} else if (!acp_budget_left(&pass->budget)) {
		acp_budget_begin_short(own);
		return own;
	}
	return &pass->budget;
}
