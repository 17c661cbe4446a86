// SPDX-License-Identifier: GPL-2.0-only
/* Settings of a namespace: see settings.h. */
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>
#include "acp_nl.h"
#include "node.h"
#include "settings.h"

void acp_settings_init(struct acp_settings *settings)
{
	spin_lock_init(&settings->lock);
	settings->timeout_min = ACP_NL_TIMEOUT_MIN;
	settings->timeout_max = ACP_NL_TIMEOUT_MAX;
}

/* Is an address set?  If none is, colors may have any address.  Under the lock. */
static bool any_color(const struct acp_settings *s)
{
	u32 i;

	for (i = 0; i < ACP_COLORS_MAX * ACP_FAMILIES; i++)
		if (s->colors[i / ACP_FAMILIES][i % ACP_FAMILIES].used)
			return true;
	return false;
}

static bool colors_allow(const struct acp_settings *s, const struct acp_job *job)
{
	bool six = job->family == AF_INET6;
	u8 addr[16];
	u32 i;

	if (!any_color(s))
		return true;
	for (i = 0; i < job->colors; i++) {
		acp_job_address(job, job->me, i, addr);
		if (!s->colors[i][six].used ||
		    memcmp(s->colors[i][six].addr, addr, six ? 16 : 4))
			return false;
	}
	return true;
}

bool acp_settings_color(struct acp_settings *s, u32 color, bool six, u8 addr[16])
{
	bool used;

	spin_lock(&s->lock);
	used = s->colors[color][six].used;
	memcpy(addr, s->colors[color][six].addr, 16);
	spin_unlock(&s->lock);
	return used;
}

int acp_settings_apply(struct acp_job *job)
{
	struct acp_settings *s = &job->node->settings;
	bool allowed;
	u64 min, max;

	spin_lock(&s->lock);
	allowed = colors_allow(s, job);
	min = (u64)s->timeout_min * NSEC_PER_MSEC;
	max = (u64)s->timeout_max * NSEC_PER_MSEC;
	spin_unlock(&s->lock);
	if (!allowed)
		return -EADDRNOTAVAIL;
	job->limit = clamp(job->asked_limit, min, max);
	job->open_limit = clamp(job->asked_open_limit, min, max);
	return 0;
}
