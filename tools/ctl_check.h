/* SPDX-License-Identifier: MIT */
/*
 * acp check: why does it not work? Each file of checks looks at one part of the
 * node and notes what it finds; a finding that is not good comes with a remedy.
 */
#ifndef CTL_CHECK_H
#define CTL_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "ctl_nl.h"
#include "ctl_out.h"

enum ctl_verdict {
	CTL_GOOD,
	CTL_SKIPPED,	/* could not be looked at */
	CTL_WARN,	/* works, but not as well as it could, or not for everybody */
	CTL_BAD,	/* does not work */
};

struct ctl_findings {
	struct ctl_out out;
	unsigned int count[CTL_BAD + 1];
	unsigned int port;		/* UDP port of the jobs */
	bool loaded;			/* the module is there */
	struct ctl_nl *nl;		/* NULL: its netlink family is not */
};

/* remedy: a sentence, or NULL; format: what was found. */
void ctl_found(struct ctl_findings *f, enum ctl_verdict verdict, const char *check,
	       const char *remedy, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* ctl_check_module.c */
void ctl_check_kernel(struct ctl_findings *f);
void ctl_check_module(struct ctl_findings *f);
void ctl_check_signature(struct ctl_findings *f);
void ctl_check_clock(struct ctl_findings *f);

/* ctl_check_user.c */
void ctl_check_device(struct ctl_findings *f);
void ctl_check_memlock(struct ctl_findings *f);
void ctl_check_userns(struct ctl_findings *f);

/* ctl_check_node.c */
void ctl_check_netlink(struct ctl_findings *f);
void ctl_check_enable(struct ctl_findings *f);
void ctl_check_limits(struct ctl_findings *f);
void ctl_check_counters(struct ctl_findings *f);

/* ctl_check_net.c */
void ctl_check_addresses(struct ctl_findings *f);
void ctl_check_colors(struct ctl_findings *f);
void ctl_check_mtu(struct ctl_findings *f);
void ctl_check_firewall(struct ctl_findings *f);

/* The first line of a file, without its end; false: it cannot be read. */
bool ctl_read_line(const char *path, char *text, size_t room);

/*
 * Run a program with its arguments, found as the shell does and in the system's
 * directories, standard error to nowhere. Its output, to be freed, or NULL: it is not
 * there, or failed (*status: its exit status, or -1 if it is not there).
 */
char *ctl_output_of(const char *const argv[], int *status);

#endif /* CTL_CHECK_H */
