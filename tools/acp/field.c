// SPDX-License-Identifier: MIT
/* Formatting of attributes for people and programs: see field.h. */
#include "field.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "acp_abi.h"

#define NAMES(what)								\
	const struct ctl_names ctl_##what = {					\
		what, sizeof(what) / sizeof((what)[0])				\
	}

static const char *const families[] = {
	[AF_INET] = "ipv4", [AF_INET6] = "ipv6",
};

NAMES(families);

static const char *const integrities[] = {
	[ACP_INTEGRITY_TAG] = "tag", [ACP_INTEGRITY_CRC32C] = "crc32c",
	[ACP_INTEGRITY_AEAD] = "aead", [ACP_INTEGRITY_UDP] = "udp",
};

NAMES(integrities);

static const char *const job_states[] = {
	[ACP_NL_JOB_RUNNING] = "running", [ACP_NL_JOB_LINGERING] = "lingering",
	[ACP_NL_JOB_ABORTED] = "aborted",
};

NAMES(job_states);

static const char *const rank_states[] = {
	[ACP_RANK_UNKNOWN] = "unknown", [ACP_RANK_UP] = "up", [ACP_RANK_DOWN] = "down",
	[ACP_RANK_BACK] = "back",
};

NAMES(rank_states);

static const char *const statuses[] = {
	[ACP_ST_OK] = "ok", [ACP_ST_OP] = "op", [ACP_ST_GA] = "ga", [ACP_ST_STAG] = "stag",
	[ACP_ST_RANGE] = "range", [ACP_ST_ACCESS] = "access", [ACP_ST_ALIGN] = "align",
	[ACP_ST_RANK] = "rank", [ACP_ST_NOMEM] = "nomem", [ACP_ST_TIMEOUT] = "timeout",
	[ACP_ST_PEER] = "peer", [ACP_ST_ROUTE] = "route", [ACP_ST_ORDER] = "order",
	[ACP_ST_ABORT] = "abort", [ACP_ST_AGAIN] = "again",
	[ACP_ST_CHAIN] = "chain",
};

NAMES(statuses);

static const char *const kinds[] = {
	[ACP_NL_REGION_STARTER] = "starter", [ACP_NL_REGION_HEAP] = "heap",
	[ACP_NL_REGION_LIBRARY] = "library", [ACP_NL_REGION_USER] = "user",
};

NAMES(kinds);

static const char *const flow_states[] = {
	[ACP_NL_FLOW_CLOSED] = "closed", [ACP_NL_FLOW_OPENING] = "opening",
	[ACP_NL_FLOW_OPEN] = "open",
};

NAMES(flow_states);

static const char *const flow_fates[] = {
	[ACP_NL_FATE_NONE] = "none", [ACP_NL_FATE_LOST] = "lost", [ACP_NL_FATE_BACK] = "back",
};

NAMES(flow_fates);

static const char *const events[] = {
	[ACP_NL_EVENT_JOB_BEGUN] = "job-begun", [ACP_NL_EVENT_JOB_ENDED] = "job-ended",
	[ACP_NL_EVENT_JOB_ABORTED] = "job-aborted", [ACP_NL_EVENT_RANK_JOINED] = "rank-joined",
	[ACP_NL_EVENT_RANK_LEFT] = "rank-left", [ACP_NL_EVENT_NODE_LOST] = "node-lost",
	[ACP_NL_EVENT_NODE_BACK] = "node-back", [ACP_NL_EVENT_LIMIT_REACHED] = "limit-reached",
	[ACP_NL_EVENT_SETTING] = "setting",
};

NAMES(events);

const char *ctl_name(const struct ctl_names *names, uint32_t number)
{
	if (number >= names->count || names->word[number] == NULL)
		return "?";
	return names->word[number];
}

/* ---- Fields ---- */

static void put_interface(struct ctl_out *o, const char *name, uint32_t index)
{
	char text[IF_NAMESIZE];

	if (if_indextoname(index, text) != NULL)
		ctl_out_text(o, name, text);
	else
		ctl_out_number(o, name, index, CTL_PLAIN);
}

static void put_access(struct ctl_out *o, const char *name, uint32_t access)
{
	static const char *const words[] = { "read", "write", "atomic", "ro" };
	struct json_object *list = json_object_new_array();
	char text[64] = "";
	size_t i;

	for (i = 0; i < 4; i++) {
		if (!(access & 1u << i))
			continue;
		if (list != NULL)
			json_object_array_add(list, json_object_new_string(words[i]));
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
			 text[0] != '\0' ? "," : "", words[i]);
	}
	ctl_out_json(o, name, list);
	if (o->form == CTL_TEXT)
		ctl_out_text(o, name, text[0] != '\0' ? text : "none");
}

/* Print all addresses of the message, in order. */
static void put_addresses(struct ctl_out *o, const char *name, const struct ctl_reply *r)
{
	struct json_object *list = json_object_new_array();
	char text[CTL_ADDRESS_TEXT], all[8 * CTL_ADDRESS_TEXT] = "";
	struct nlattr *a;
	int rest;

	nla_for_each_attr(a, genlmsg_attrdata(nlmsg_data(r->head), 0),
			  genlmsg_attrlen(nlmsg_data(r->head), 0), rest) {
		if (nla_type(a) != ACP_NL_A_ADDRESS)
			continue;
		ctl_address_text(a, text);
		if (list != NULL)
			json_object_array_add(list, json_object_new_string(text));
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			 all[0] != '\0' ? "," : "", text);
	}
	ctl_out_json(o, name, list);
	if (o->form == CTL_TEXT)
		ctl_out_text(o, name, all);
}

static void put_field(struct ctl_out *o, const struct ctl_field *f, const struct ctl_reply *r)
{
	char text[CTL_ADDRESS_TEXT];

	switch (f->kind) {
	case CTL_F_U32:
		ctl_out_number(o, f->name, ctl_reply_u32(r, f->attr), f->unit);
		break;
	case CTL_F_U64:
		ctl_out_number(o, f->name, ctl_reply_u64(r, f->attr), f->unit);
		break;
	case CTL_F_STRING:
		ctl_out_text(o, f->name, nla_get_string(r->a[f->attr]));
		break;
	case CTL_F_WORD:
		ctl_out_word(o, f->name, nla_get_string(r->a[f->attr]));
		break;
	case CTL_F_SWITCH:
		ctl_out_switch(o, f->name, ctl_reply_u32(r, f->attr) != 0);
		break;
	case CTL_F_ADDRESS:
		ctl_out_text(o, f->name, ctl_address_text(r->a[f->attr], text));
		break;
	case CTL_F_ADDRESSES:
		put_addresses(o, f->name, r);
		break;
	case CTL_F_IFINDEX:
		put_interface(o, f->name, ctl_reply_u32(r, f->attr));
		break;
	case CTL_F_ENUM:
		ctl_out_text(o, f->name, ctl_name(f->names, ctl_reply_u32(r, f->attr)));
		break;
	case CTL_F_ACCESS:
		put_access(o, f->name, ctl_reply_u32(r, f->attr));
		break;
	case CTL_F_FLAG:
	case CTL_F_FOLD:
	case CTL_F_END:
		break;
	}
}

void ctl_field_values(struct ctl_out *o, const struct ctl_field *fields, const struct ctl_reply *r)
{
	const struct ctl_field *f;

	for (f = fields; f->kind != CTL_F_END; f++) {
		if (f->kind == CTL_F_FOLD)
			ctl_out_fold(o);
		else if (f->kind == CTL_F_FLAG)
			ctl_out_flag(o, f->name, r->a[f->attr] != NULL);
		else if (r->a[f->attr] != NULL)
			put_field(o, f, r);
	}
}

void ctl_field_record(struct ctl_out *o, const struct ctl_field *fields, const struct ctl_reply *r)
{
	ctl_out_record(o);
	ctl_field_values(o, fields, r);
}
