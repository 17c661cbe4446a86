// SPDX-License-Identifier: MIT
/* acp node|limit|color|job|rank|region|flow|stat show. */
#include <errno.h>
#include <string.h>

#include "acp_ga.h"
#include "command.h"
#include "field.h"
#include "job.h"

#define U32(attr, name)		{ CTL_F_U32, ACP_NL_A_##attr, name, CTL_PLAIN, NULL }
#define U64(attr, name)		{ CTL_F_U64, ACP_NL_A_##attr, name, CTL_PLAIN, NULL }
#define U32_IN(attr, name, unit) { CTL_F_U32, ACP_NL_A_##attr, name, unit, NULL }
#define U64_IN(attr, name, unit) { CTL_F_U64, ACP_NL_A_##attr, name, unit, NULL }
#define WORDS(attr, name, names) { CTL_F_ENUM, ACP_NL_A_##attr, name, CTL_PLAIN, names }
#define OF(kind, attr, name)	{ CTL_F_##kind, ACP_NL_A_##attr, name, CTL_PLAIN, NULL }
#define FOLD			{ CTL_F_FOLD, ACP_NL_A_PAD, NULL, CTL_PLAIN, NULL }
#define END			{ CTL_F_END, ACP_NL_A_PAD, NULL, CTL_PLAIN, NULL }

static const struct ctl_field node_fields[] = {
	OF(STRING, MODULE_VERSION, "version"), U32(ABI_VERSION, "abi"),
	OF(SWITCH, ENABLE, "enable"), OF(SWITCH, MACHINE_ENABLE, "machine_enable"),
	U32(PORT, "port"), FOLD,
	U32(JOBS, "jobs"), U32(RANKS, "ranks"), U32(FLOWS, "flows"), U32(USERS, "users"),
	U32_IN(TIMEOUT_MIN, "timeout_min", CTL_MS), U32_IN(TIMEOUT_MAX, "timeout_max", CTL_MS), END
};

static const struct ctl_field limit_fields[] = {
	OF(STRING, NAME, "limit"), U64(VALUE, "value"), U64(MACHINE_VALUE, "machine"),
	U64(USED, "used"), U64(LIMIT_MIN, "min"), U64(LIMIT_MAX, "max"), FOLD,
	OF(WORD, TEXT, "text"), END
};

static const struct ctl_field color_fields[] = {
	U32(COLOR, "color"), OF(ADDRESS, ADDRESS, "address"), OF(IFINDEX, IFINDEX, "dev"), END
};

static const struct ctl_field job_fields[] = {
	U32(JOB, "job"), U32(GENERATION, "generation"), U32(UID, "uid"),
	WORDS(JOB_STATE, "state", &ctl_job_states),
	U32(NPROCS, "nprocs"), U32(NODES, "nodes"), U32(ME, "me"), U32(COLORS, "colors"), FOLD,
	U32(RANKS, "ranks"), U32(PLACED, "placed"), U64(BARRIERS, "barriers"),
	OF(FLAG, BROKEN, "broken"), OF(FLAG, ABORTED, "aborted"), U32(MISMATCHED, "mismatched"),
	U32(FLOWS, "flows"), U64_IN(MEMORY, "memory", CTL_BYTES), U64_IN(AGE, "age", CTL_MS), FOLD,
	WORDS(FAMILY, "family", &ctl_families), U32(PORT, "port"),
	WORDS(INTEGRITY, "integrity", &ctl_integrities), U32_IN(TIMEOUT, "timeout", CTL_MS),
	U32_IN(OPEN_TIMEOUT, "open_timeout", CTL_MS), END
};

static const struct ctl_field rank_fields[] = {
	U32(RANK, "rank"), U32(JOB, "job"), U32(GENERATION, "generation"), U32(NODE, "node"),
	WORDS(RANK_STATE, "state", &ctl_rank_states), WORDS(STATUS, "status", &ctl_statuses),
	U32(PID, "pid"), U32(UID, "uid"), OF(FLAG, FINISHED, "finished"),
	OF(ADDRESSES, ADDRESS, "addresses"), FOLD,
	U64(TAKEN, "taken"), U64(COMPLETED, "completed"), U64(FAILED, "failed"),
	U32(IN_FLIGHT, "in_flight"), U32(DEPTH, "depth"), U32(QUEUES, "queues"),
	U64(BARRIER, "barrier"),
	U64_IN(STARTER, "starter", CTL_BYTES), U64_IN(HEAP, "heap", CTL_BYTES),
	U32(REGIONS, "regions"), END
};

static const struct ctl_field region_fields[] = {
	U32(STAG, "stag"), U32(RANK, "rank"), U32(JOB, "job"), U32(GENERATION, "generation"),
	WORDS(KIND, "kind", &ctl_kinds),
	U64_IN(LENGTH, "length", CTL_BYTES), OF(ACCESS, ACCESS, "access"), U32(COLOR, "color"),
	OF(FLAG, REVOKED, "revoked"), FOLD,
	U64_IN(KEY, "key", CTL_HEX), U64_IN(START, "start", CTL_HEX), U64(PAGES, "pages"),
	U32(REGISTRATIONS, "registrations"), END
};

static const struct ctl_field flow_fields[] = {
	U32(NODE, "node"), U32(COLOR, "color"), U32(JOB, "job"), U32(GENERATION, "generation"),
	OF(ADDRESS, ADDRESS, "address"),
	WORDS(FLOW_STATE, "state", &ctl_flow_states), WORDS(FLOW_FATE, "fate", &ctl_flow_fates),
	WORDS(STATUS, "status", &ctl_statuses), FOLD,
	U64_IN(SRTT, "srtt", CTL_NS), U64_IN(RTTVAR, "rttvar", CTL_NS),
	U64_IN(RTT_MIN, "rtt_min", CTL_NS), U64_IN(RTO, "rto", CTL_NS), U32(WINDOW, "window"),
	U32(IN_FLIGHT, "in_flight"), U32(WAITING, "waiting"), U32_IN(MTU, "mtu", CTL_BYTES),
	U64_IN(IDLE, "idle", CTL_MS), FOLD,
	U64(TX_FRAMES, "tx_frames"), U64(TX_BYTES, "tx_bytes"),
	U64(TX_RETRANSMITS, "tx_retransmits"), U64(RX_FRAMES, "rx_frames"),
	U64(RX_BYTES, "rx_bytes"), U64(RX_DUPLICATES, "rx_duplicates"), U64(TIMEOUTS, "timeouts"),
	U32(DELEGATED, "delegated"), END
};

/* Columns of tables; --details prints all attributes. */
static const char *const limit_columns[] = {
	"limit", "value", "machine", "used", "min", "max", "text", NULL
};

static const char *const rank_columns[] = {
	"rank", "job", "node", "state", "pid", "uid", "in_flight", "completed", "failed",
	"regions", "addresses", NULL
};

static const char *const flow_columns[] = {
	"job", "node", "color", "address", "state", "fate", "srtt", "rto", "window", "in_flight",
	"mtu", "tx_bytes", "rx_bytes", "tx_retransmits", NULL
};

/* A request, the arguments that filter it, and the format of its replies. */
struct show {
	struct ctl_out out;
	const struct ctl_field *fields;
	const char *const *columns;	/* of a table; NULL: none */
	const char *only;	/* print only the record with this NAME; NULL: all */
	bool found;
};

static void take_record(void *arg, const struct ctl_reply *r)
{
	struct show *s = arg;

	if (s->only != NULL && (r->a[ACP_NL_A_NAME] == NULL ||
				strcmp(nla_get_string(r->a[ACP_NL_A_NAME]), s->only) != 0))
		return;
	s->found = true;
	ctl_field_record(&s->out, s->fields, r);
}

/* Put the given arguments. They are numbers, except "job", which was validated before. */
static void put_arguments(struct nl_msg *m, const struct ctl_argument *list,
			  const enum acp_nl_attr *attrs)
{
	int i;

	for (i = 0; list[i].name != NULL; i++) {
		if (!list[i].given)
			continue;
		if (list[i].kind != CTL_ARG_TEXT)
			ctl_nl_put_u32(m, attrs[i], (uint32_t)list[i].number);
		else
			ctl_put_job(m, list[i].text);
	}
}

/* Validate "job" before the request is sent. */
static int check_job(const char *word)
{
	uint32_t job;
	int generation;

	return word != NULL ? ctl_parse_job(word, &job, &generation) : 0;
}

/* Send the request and print the replies. @what: object that the kernel may report as missing. */
static int ask(struct ctl *c, struct ctl_nl *nl, struct nl_msg *m, bool dump, struct show *s,
	       const char *what)
{
	int err, status;

	ctl_out_open(&s->out, c->form, false);
	if (s->columns != NULL && !c->details)
		ctl_out_table(&s->out, s->columns);
	err = dump ? ctl_nl_dump(nl, m, take_record, s) : ctl_nl_do(nl, m, take_record, s);
	status = ctl_out_close(&s->out);
	if (err)
		status = ctl_nl_complain(nl, what, err);
	ctl_nl_close(nl);
	return status;
}

static int show(struct ctl *c, enum acp_nl_cmd command, bool dump, struct ctl_argument *list,
		const enum acp_nl_attr *attrs, struct show s)
{
	struct nl_msg *m;
	struct ctl_nl nl;
	int status;

	if (ctl_arguments(&c->words, list) || check_job(list[0].text))
		return CTL_USAGE;
	status = ctl_nl_connect(&nl);
	if (status != CTL_OK)
		return status;
	m = ctl_nl_new(&nl, command);
	put_arguments(m, list, attrs);
	return ask(c, &nl, m, dump, &s, "");
}

static struct ctl_argument nothing[] = { { .name = NULL } };

int ctl_node_show(struct ctl *c)
{
	return show(c, ACP_NL_CMD_NODE_GET, false, nothing, NULL,
		    (struct show){ .fields = node_fields });
}

int ctl_color_show(struct ctl *c)
{
	return show(c, ACP_NL_CMD_COLOR_GET, true, nothing, NULL,
		    (struct show){ .fields = color_fields });
}

int ctl_region_show(struct ctl *c)
{
	static const enum acp_nl_attr attrs[] = { ACP_NL_A_JOB, ACP_NL_A_RANK };
	struct ctl_argument list[] = {
		{ .name = "job", .kind = CTL_ARG_TEXT },
		{ .name = "rank", .kind = CTL_ARG_NUMBER, .most = UINT32_MAX },
		{ .name = NULL }
	};

	return show(c, ACP_NL_CMD_REGION_GET, true, list, attrs,
		    (struct show){ .fields = region_fields });
}

int ctl_flow_show(struct ctl *c)
{
	static const enum acp_nl_attr attrs[] = { ACP_NL_A_JOB, ACP_NL_A_NODE, ACP_NL_A_COLOR };
	struct ctl_argument list[] = {
		{ .name = "job", .kind = CTL_ARG_TEXT },
		{ .name = "node", .kind = CTL_ARG_NUMBER, .most = UINT32_MAX },
		{ .name = "color", .kind = CTL_ARG_NUMBER, .most = ACP_COLORS_MAX - 1 },
		{ .name = NULL }
	};

	return show(c, ACP_NL_CMD_FLOW_GET, true, list, attrs,
		    (struct show){ .fields = flow_fields, .columns = flow_columns });
}

int ctl_limit_show(struct ctl *c)
{
	struct show s = { .fields = limit_fields, .columns = limit_columns };
	const char *name = ctl_words_take(&c->words);
	struct nl_msg *m;
	struct ctl_nl nl;
	int status;

	if (ctl_words_end(&c->words))
		return CTL_USAGE;
	status = ctl_nl_connect(&nl);
	if (status != CTL_OK)
		return status;
	m = ctl_nl_new(&nl, ACP_NL_CMD_LIMIT_GET);
	if (name != NULL)
		ctl_nl_put_string(m, ACP_NL_A_NAME, name);
	return ask(c, &nl, m, name == NULL, &s, name != NULL ? name : "");
}

/* Accepts "7", "job 7", or nothing: all. */
int ctl_job_show(struct ctl *c)
{
	struct ctl_argument list[] = { { .name = "job", .kind = CTL_ARG_TEXT }, { .name = NULL } };
	struct show s = { .fields = job_fields };
	const char *job = NULL;
	struct nl_msg *m;
	struct ctl_nl nl;
	int status;

	if (ctl_arguments_and(&c->words, list, &job))
		return CTL_USAGE;
	if (list[0].given)
		job = list[0].text;
	if (check_job(job))
		return CTL_USAGE;
	status = ctl_nl_connect(&nl);
	if (status != CTL_OK)
		return status;
	m = ctl_nl_new(&nl, ACP_NL_CMD_JOB_GET);
	if (job != NULL)
		ctl_put_job(m, job);
	return ask(c, &nl, m, job == NULL, &s, job != NULL ? job : "");
}

/*
 * A rank that is selected by its number may be on any node; otherwise those of this node are shown.
 */
int ctl_rank_show(struct ctl *c)
{
	struct ctl_argument list[] = { { .name = "job", .kind = CTL_ARG_TEXT }, { .name = NULL } };
	static const enum acp_nl_attr attrs[] = { ACP_NL_A_JOB };
	struct show s = { .fields = rank_fields, .columns = rank_columns };
	const char *rank = NULL;
	uint64_t number = 0;
	struct nl_msg *m;
	struct ctl_nl nl;
	int status;

	if (ctl_arguments_and(&c->words, list, &rank) ||
	    check_job(list[0].text) ||
	    (rank != NULL && ctl_number(rank, "rank", 0, UINT32_MAX, false, &number)))
		return CTL_USAGE;
	status = ctl_nl_connect(&nl);
	if (status != CTL_OK)
		return status;
	m = ctl_nl_new(&nl, ACP_NL_CMD_RANK_GET);
	if (rank == NULL) {
		put_arguments(m, list, attrs);
	} else {
		status = ctl_choose_job(&nl, m, list[0].text);
		ctl_nl_put_u32(m, ACP_NL_A_RANK, (uint32_t)number);
	}
	if (status == CTL_OK)
		return ask(c, &nl, m, rank == NULL, &s, "");
	nlmsg_free(m);
	ctl_nl_close(&nl);
	return status;
}

/* ---- Counters: a table; in JSON name, value and description ---- */

static void take_stat(void *arg, const struct ctl_reply *r)
{
	struct show *s = arg;
	const char *name, *text;

	if (r->a[ACP_NL_A_NAME] == NULL)
		return;
	name = nla_get_string(r->a[ACP_NL_A_NAME]);
	text = r->a[ACP_NL_A_TEXT] != NULL ? nla_get_string(r->a[ACP_NL_A_TEXT]) : "";
	if (s->only != NULL && strcmp(name, s->only) != 0)
		return;
	s->found = true;
	if (s->out.form == CTL_TEXT) {
		printf("%-18s %16llu  %s\n", name,
		       (unsigned long long)ctl_reply_u64(r, ACP_NL_A_VALUE), text);
		return;
	}
	ctl_out_record(&s->out);
	ctl_out_text(&s->out, "stat", name);
	ctl_out_number(&s->out, "value", ctl_reply_u64(r, ACP_NL_A_VALUE), CTL_PLAIN);
	ctl_out_text(&s->out, "text", text);
}

int ctl_stat_show(struct ctl *c)
{
	struct ctl_argument list[] = { { .name = "job", .kind = CTL_ARG_TEXT }, { .name = NULL } };
	struct show s = { .only = NULL };
	struct nl_msg *m;
	struct ctl_nl nl;
	int status, err;

	if (ctl_arguments_and(&c->words, list, &s.only) || check_job(list[0].text))
		return CTL_USAGE;
	status = ctl_nl_connect(&nl);
	if (status != CTL_OK)
		return status;
	m = ctl_nl_new(&nl, ACP_NL_CMD_STAT_GET);
	if (list[0].given)
		ctl_put_job(m, list[0].text);
	ctl_out_open(&s.out, c->form, false);
	err = ctl_nl_dump(&nl, m, take_stat, &s);
	status = ctl_out_close(&s.out);
	if (err) {
		status = ctl_nl_complain(&nl, list[0].given ? list[0].text : "", err);
	} else if (s.only != NULL && !s.found) {
		ctl_error("there is no counter '%s' (acp stat show has them)", s.only);
		status = CTL_FAILED;
	}
	ctl_nl_close(&nl);
	return status;
}
