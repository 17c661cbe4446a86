// SPDX-License-Identifier: MIT
/* acp monitor: print events. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "field.h"
#include "job.h"

static const struct ctl_field fields[] = {
	{ CTL_F_ENUM, ACP_NL_A_EVENT, "event", CTL_PLAIN, &ctl_events },
	{ CTL_F_U32, ACP_NL_A_JOB, "job", CTL_PLAIN, NULL },
	{ CTL_F_U32, ACP_NL_A_GENERATION, "generation", CTL_PLAIN, NULL },
	{ CTL_F_U32, ACP_NL_A_RANK, "rank", CTL_PLAIN, NULL },
	{ CTL_F_U32, ACP_NL_A_NODE, "node", CTL_PLAIN, NULL },
	{ CTL_F_U32, ACP_NL_A_COLOR, "color", CTL_PLAIN, NULL },
	{ CTL_F_ADDRESS, ACP_NL_A_ADDRESS, "address", CTL_PLAIN, NULL },
	{ CTL_F_ENUM, ACP_NL_A_STATUS, "status", CTL_PLAIN, &ctl_statuses },
	{ CTL_F_STRING, ACP_NL_A_NAME, "name", CTL_PLAIN, NULL },
	{ CTL_F_U64, ACP_NL_A_VALUE, "value", CTL_PLAIN, NULL },
	{ CTL_F_U32, ACP_NL_A_UID, "uid", CTL_PLAIN, NULL },
	{ CTL_F_END, ACP_NL_A_PAD, NULL, CTL_PLAIN, NULL }
};

struct watch {
	struct ctl_out out;
	bool of_job;
	uint32_t job;
	int generation;
	uint64_t left;		/* remaining number of events; 0: unlimited */
	bool done;
};

/* Print a timestamp in local time: "2026-11-22 13:05:07.123456". */
static void put_time(struct ctl_out *o, uint64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	char day[40], text[64];
	struct tm tm;

	if (o->form != CTL_TEXT) {
		ctl_out_number(o, "time", ns, CTL_NS);
		return;
	}
	if (localtime_r(&seconds, &tm) == NULL ||
	    strftime(day, sizeof(day), "%Y-%m-%d %H:%M:%S", &tm) == 0)
		strcpy(day, "?");
	snprintf(text, sizeof(text), "%s.%06u", day, (unsigned int)(ns % 1000000000 / 1000));
	ctl_out_word(o, "time", text);
}

static bool wanted(const struct watch *w, const struct ctl_reply *r)
{
	if (r->command != ACP_NL_CMD_EVENT || r->a[ACP_NL_A_EVENT] == NULL || w->done)
		return false;
	if (!w->of_job)
		return true;
	return ctl_reply_u32(r, ACP_NL_A_JOB) == w->job &&
	       (w->generation < 0 ||
		ctl_reply_u32(r, ACP_NL_A_GENERATION) == (uint32_t)w->generation);
}

static void take_event(void *arg, const struct ctl_reply *r)
{
	uint32_t event = ctl_reply_u32(r, ACP_NL_A_EVENT);
	struct watch *w = arg;

	if (!wanted(w, r))
		return;
	ctl_out_record(&w->out);
	put_time(&w->out, ctl_reply_u64(r, ACP_NL_A_TIME));
	if (w->out.form == CTL_TEXT) {
		ctl_out_word(&w->out, "event", ctl_name(&ctl_events, event));
		ctl_field_values(&w->out, fields + 1, r);
	} else {
		ctl_field_values(&w->out, fields, r);
	}
	if (event == ACP_NL_EVENT_RANK_LEFT)
		ctl_out_flag(&w->out, "finished", r->a[ACP_NL_A_FINISHED] != NULL);
	ctl_out_end_record(&w->out);
	if (w->left > 0 && --w->left == 0)
		w->done = true;
}

static int watch(struct ctl_nl *nl, struct watch *w)
{
	int err, status;

	while (!w->done) {
		err = ctl_nl_listen(nl, -1, take_event, w);
		if (err == -ENOBUFS)
			ctl_error("events came too fast, some are lost");
		else if (err && err != -EINTR)
			return ctl_nl_complain(nl, "events", err);
		if (ferror(stdout))
			break;		/* the reader has closed the pipe */
	}
	status = ctl_out_close(&w->out);
	return status;
}

int ctl_monitor(struct ctl *c)
{
	struct ctl_argument list[] = {
		{ .name = "job", .kind = CTL_ARG_TEXT },
		{ .name = "count", .kind = CTL_ARG_NUMBER, .least = 1, .most = UINT64_MAX },
		{ .name = NULL }
	};
	struct watch w = { .of_job = false };
	struct ctl_nl nl;
	int status, err;

	if (ctl_arguments(&c->words, list) ||
	    (list[0].given && ctl_parse_job(list[0].text, &w.job, &w.generation)))
		return CTL_USAGE;
	w.of_job = list[0].given;
	w.left = list[1].number;
	status = ctl_nl_connect(&nl);
	if (status != CTL_OK)
		return status;
	ctl_out_open(&w.out, c->form, true);
	err = ctl_nl_join(&nl);
	if (err == -EPERM)
		ctl_error("this kernel shows events to administrators only");
	else if (err)
		ctl_nl_complain(&nl, "events", err);
	status = err ? CTL_FAILED : watch(&nl, &w);
	ctl_nl_close(&nl);
	return status;
}
