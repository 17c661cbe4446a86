/* SPDX-License-Identifier: MIT */
/*
 * The commands of acp. Each parses the remaining words and returns an exit status (enum ctl_exit).
 */
#ifndef CTL_H
#define CTL_H

#include "out.h"
#include "words.h"

#define CTL_CONF_FILE	"/etc/acp.conf"

struct ctl {
	enum ctl_form form;
	bool details;		/* print all attributes as text, not as a table */
	struct ctl_words words;
};

int ctl_node_show(struct ctl *c);
int ctl_limit_show(struct ctl *c);
int ctl_color_show(struct ctl *c);
int ctl_job_show(struct ctl *c);
int ctl_rank_show(struct ctl *c);
int ctl_region_show(struct ctl *c);
int ctl_flow_show(struct ctl *c);
int ctl_stat_show(struct ctl *c);

int ctl_node_set(struct ctl *c);
int ctl_limit_set(struct ctl *c);
int ctl_color_add(struct ctl *c);
int ctl_color_del(struct ctl *c);
int ctl_job_abort(struct ctl *c);

int ctl_conf_apply(struct ctl *c);
int ctl_conf_check(struct ctl *c);
int ctl_monitor(struct ctl *c);
int ctl_ping(struct ctl *c);
int ctl_top(struct ctl *c);
int ctl_check(struct ctl *c);

#endif /* CTL_H */
