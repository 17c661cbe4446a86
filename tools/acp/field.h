/* SPDX-License-Identifier: MIT */
/*
 * Attributes of messages from the kernel for people and programs: name, unit, names of values. A
 * table of fields converts a message to a record.
 */
#ifndef CTL_FIELD_H
#define CTL_FIELD_H

#include "nl.h"
#include "out.h"

enum ctl_field_kind {
	CTL_F_U32, CTL_F_U64, CTL_F_STRING, CTL_F_WORD, CTL_F_FLAG, CTL_F_SWITCH, CTL_F_ADDRESS,
	CTL_F_ADDRESSES, CTL_F_IFINDEX, CTL_F_ENUM, CTL_F_ACCESS, CTL_F_FOLD,
	CTL_F_END
};

struct ctl_names {
	const char *const *word;	/* by value */
	uint32_t count;
};

struct ctl_field {
	enum ctl_field_kind kind;
	enum acp_nl_attr attr;
	const char *name;
	enum ctl_unit unit;		/* of numbers */
	const struct ctl_names *names;	/* of ENUM */
};

/* Names of values. */
extern const struct ctl_names ctl_families, ctl_integrities, ctl_job_states, ctl_rank_states,
	ctl_statuses, ctl_kinds, ctl_flow_states, ctl_flow_fates, ctl_events;

/* Return the name of a value, or "?". */
const char *ctl_name(const struct ctl_names *names, uint32_t number);

/* Print a record with those fields that the message contains. The table ends with CTL_F_END. */
void ctl_field_record(struct ctl_out *o, const struct ctl_field *fields, const struct ctl_reply *r);

/* As ctl_field_record(), without beginning a record. */
void ctl_field_values(struct ctl_out *o, const struct ctl_field *fields, const struct ctl_reply *r);

#endif /* CTL_FIELD_H */
