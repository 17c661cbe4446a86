/* SPDX-License-Identifier: MIT */
/*
 * acp check: diagnosis of a node. Each file of checks examines one part of the node and records its
 * findings; each finding that is not good comes with a remedy.
 */
#ifndef CTL_CHECK_H
#define CTL_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "nl.h"
#include "out.h"

enum ctl_verdict {
	CTL_GOOD,
	CTL_SKIPPED,	/* could not be checked */
	CTL_WARN,	/* works, but slower than possible, or not for all users */
	CTL_BAD,	/* does not work */
};

struct ctl_findings {
	struct ctl_out out;
	unsigned int count[CTL_BAD + 1];
	unsigned int port;		/* UDP port of the jobs */
	bool loaded;			/* the module is loaded */
	struct ctl_nl *nl;		/* NULL: its netlink family does not exist */
};

/* Record a finding. @remedy: a sentence, or NULL; @format: what was found. */
void ctl_found(struct ctl_findings *f, enum ctl_verdict verdict, const char *check,
	       const char *remedy, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* check_module.c */
void ctl_check_kernel(struct ctl_findings *f);
void ctl_check_module(struct ctl_findings *f);
void ctl_check_signature(struct ctl_findings *f);
void ctl_check_clock(struct ctl_findings *f);

/* check_user.c */
void ctl_check_device(struct ctl_findings *f);
void ctl_check_memlock(struct ctl_findings *f);
void ctl_check_userns(struct ctl_findings *f);

/* check_node.c */
void ctl_check_netlink(struct ctl_findings *f);
void ctl_check_enable(struct ctl_findings *f);
void ctl_check_bypass(struct ctl_findings *f);
void ctl_check_limits(struct ctl_findings *f);
void ctl_check_neighbours(struct ctl_findings *f);
void ctl_check_counters(struct ctl_findings *f);

/* check_net.c */
void ctl_check_addresses(struct ctl_findings *f);
void ctl_check_nodes(struct ctl_findings *f);
void ctl_check_colors(struct ctl_findings *f);
void ctl_check_mtu(struct ctl_findings *f);
void ctl_check_firewall(struct ctl_findings *f);

/* Read the first line of a file, without the newline. False if it cannot be read. */
bool ctl_read_line(const char *path, char *text, size_t room);

/*
 * Run a program, searched like a shell does and in the system directories, with standard error
 * discarded. Returns its output, which the caller frees, or NULL if the program does not exist or
 * failed (*status: its exit status, or -1 if it does not exist).
 */
char *ctl_output_of(const char *const argv[], int *status);

#endif /* CTL_CHECK_H */
