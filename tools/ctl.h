/* SPDX-License-Identifier: MIT */
/*
 * The commands of acp: each reads what is left of the words and returns an
 * exit status (enum ctl_exit).
 */
#ifndef CTL_H
#define CTL_H

#include "ctl_out.h"
#include "ctl_words.h"

#define CTL_CONF_FILE	"/etc/acp.conf"

struct ctl {
	enum ctl_form form;
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
