// SPDX-License-Identifier: MIT
/*
 * acp ping: reachability of a node and its round-trip time. The kernels communicate, no process is
 * involved.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acp_ga.h"
#include "command.h"
#include "change.h"
#include "field.h"
#include "job.h"
#include "signals.h"

#define MS		1000000ULL
#define S		1000000000ULL
/* additional time for the kernel, beyond the timeout given to it */
#define MARGIN_MS	2000
/* number of latest round trips that the median is computed from */
#define SAMPLES_MAX	(1u << 20)

enum { JOB, COUNT, INTERVAL, SIZE, TIMEOUT, COLOR, NODE, ARGUMENTS };

struct ping {
	struct ctl_out out;
	struct ctl_argument *a;
	const char *target;
	unsigned char address[16];
	int address_length;	/* 0: the target is a rank or a node */
	uint32_t number;	/* of rank or node */
	uint32_t job, generation;
	uint64_t sent, answered, least, most;
	uint64_t *sample;
	uint32_t sequence;	/* netlink sequence number of the current probe */
	bool come;		/* the result has arrived */
	int error;
	struct json_object *replies;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * S + (uint64_t)t.tv_nsec;
}

/* ---- Results ---- */

static void keep_sample(struct ping *p, uint64_t rtt)
{
	uint64_t at = p->answered % SAMPLES_MAX;

	if (p->answered < SAMPLES_MAX && (p->answered & (p->answered - 1)) == 0) {
		p->sample = realloc(p->sample, (p->answered ? 2 * p->answered : 1) * sizeof(rtt));
		if (p->sample == NULL) {
			ctl_error("out of memory");
			exit(CTL_FAILED);
		}
	}
	p->sample[at] = rtt;
	p->least = p->answered == 0 || rtt < p->least ? rtt : p->least;
	p->most = rtt > p->most ? rtt : p->most;
	p->answered++;
}

static void add(struct json_object *o, const char *name, struct json_object *value)
{
	json_object_object_add(o, name, value);
}

static void note_json(struct ping *p, const struct ctl_reply *r, int error)
{
	struct json_object *o = json_object_new_object();
	char text[CTL_ADDRESS_TEXT];

	add(o, "seq", json_object_new_uint64(p->sent));
	if (r != NULL && r->a[ACP_NL_A_NODE] != NULL)
		add(o, "node", json_object_new_uint64(ctl_reply_u32(r, ACP_NL_A_NODE)));
	if (r != NULL && r->a[ACP_NL_A_ADDRESS] != NULL) {
		ctl_address_text(r->a[ACP_NL_A_ADDRESS], text);
		add(o, "address", json_object_new_string(text));
	}
	if (error) {
		add(o, "error", json_object_new_string(strerrorname_np(error) ? : "?"));
	} else {
		add(o, "rtt_ns", json_object_new_uint64(ctl_reply_u64(r, ACP_NL_A_RTT)));
		add(o, "opened", json_object_new_boolean(r->a[ACP_NL_A_OPENED] != NULL));
	}
	json_object_array_add(p->replies, o);
}

static void note_text(struct ping *p, const struct ctl_reply *r, int error)
{
	char text[CTL_TIME_TEXT], address[CTL_ADDRESS_TEXT] = "?";

	if (error) {
		printf("seq %" PRIu64 ": %s\n", p->sent,
		       error == ETIMEDOUT ? "no answer in time" : strerror(error));
		return;
	}
	if (r->a[ACP_NL_A_ADDRESS] != NULL)
		ctl_address_text(r->a[ACP_NL_A_ADDRESS], address);
	printf("seq %" PRIu64 ": node %u (%s), %u bytes: %s%s\n", p->sent,
	       ctl_reply_u32(r, ACP_NL_A_NODE), address, ctl_reply_u32(r, ACP_NL_A_SIZE),
	       ctl_time_text(ctl_reply_u64(r, ACP_NL_A_RTT), text),
	       r->a[ACP_NL_A_OPENED] != NULL ? ", the flow's opening included" : "");
}

static void note(struct ping *p, const struct ctl_reply *r, int error)
{
	if (p->replies != NULL)
		note_json(p, r, error);
	else
		note_text(p, r, error);
	fflush(stdout);
	if (!error)
		keep_sample(p, ctl_reply_u64(r, ACP_NL_A_RTT));
}

static void take_result(void *arg, const struct ctl_reply *r)
{
	struct ping *p = arg;

	/* Before the request is acknowledged, no other message arrives here. */
	if (r->command != ACP_NL_CMD_PING || p->come ||
	    (p->sequence != 0 && r->head->nlmsg_seq != p->sequence))
		return;
	if (r->a[ACP_NL_A_RTT] == NULL && r->a[ACP_NL_A_ERROR] == NULL)
		return;
	p->come = true;
	note(p, r, (int)ctl_reply_u32(r, ACP_NL_A_ERROR));
}

/* ---- Probes ---- */

static struct nl_msg *probe(const struct ctl_nl *nl, const struct ping *p)
{
	struct nl_msg *m = ctl_nl_new(nl, ACP_NL_CMD_PING);

	ctl_nl_put_u32(m, ACP_NL_A_JOB, p->job);
	ctl_nl_put_u32(m, ACP_NL_A_GENERATION, p->generation);
	if (p->address_length > 0)
		ctl_nl_put_bytes(m, ACP_NL_A_ADDRESS, p->address, p->address_length);
	else
		ctl_nl_put_u32(m, p->a[NODE].given ? ACP_NL_A_NODE : ACP_NL_A_RANK, p->number);
	ctl_nl_put_u32(m, ACP_NL_A_SIZE, (uint32_t)p->a[SIZE].number);
	ctl_nl_put_u32(m, ACP_NL_A_TIMEOUT, (uint32_t)(p->a[TIMEOUT].number / MS));
	if (p->a[COLOR].given)
		ctl_nl_put_u32(m, ACP_NL_A_COLOR, (uint32_t)p->a[COLOR].number);
	return m;
}

/* Send one probe and wait for its result. Returns 0, or -errno if the kernel refused it. */
static int ask(struct ctl_nl *nl, struct ping *p)
{
	uint64_t end = now() + p->a[TIMEOUT].number + MARGIN_MS * MS;
	uint64_t t;
	int err;

	p->sequence = 0;
	p->come = false;
	p->sent++;
	err = ctl_nl_do(nl, probe(nl, p), take_result, p);
	if (err) {
		p->sent--;
		return err;
	}
	p->sequence = nl->sequence;
	while (!p->come && !ctl_signal_end() && (t = now()) < end) {
		err = ctl_nl_listen(nl, (int)((end - t) / MS) + 1, take_result, p);
		if (err && err != -EINTR && err != -ETIMEDOUT)
			return err;
	}
	if (!p->come && ctl_signal_end())
		p->sent--;		/* interrupted */
	else if (!p->come)
		note(p, NULL, ETIMEDOUT);
	return 0;
}

/* Sleep until it is time for the next probe, or until a signal. */
static void rest(uint64_t until)
{
	uint64_t t;

	while (!ctl_signal_end() && (t = now()) < until)
		ctl_signal_poll(NULL, 0, (int64_t)(until - t));
}

static int ask_all(struct ctl_nl *nl, struct ping *p)
{
	uint64_t next = now();

	for (;;) {
		int err = ask(nl, p);

		/* -EBUSY: too many probes of other processes are in flight. They end. */
		if (err && err != -EBUSY)
			return err;
		if (ctl_signal_end() || (p->a[COUNT].number > 0 && p->sent >= p->a[COUNT].number))
			return 0;
		next += p->a[INTERVAL].number;
		if (next < now())
			next = now();
		rest(next);
		if (ctl_signal_end())
			return 0;
	}
}

/* ---- Summary ---- */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median(struct ping *p)
{
	size_t n = p->answered < SAMPLES_MAX ? p->answered : SAMPLES_MAX;

	qsort(p->sample, n, sizeof(p->sample[0]), compare);
	return n % 2 ? p->sample[n / 2] :
		p->sample[n / 2 - 1] + (p->sample[n / 2] - p->sample[n / 2 - 1]) / 2;
}

static void sum_up_text(struct ping *p)
{
	char least[CTL_TIME_TEXT], middle[CTL_TIME_TEXT], most[CTL_TIME_TEXT];

	printf("%s%s: %" PRIu64 " sent, %" PRIu64 " answered", p->a[NODE].given ? "node " :
	       p->address_length > 0 ? "" : "rank ", p->target, p->sent, p->answered);
	if (p->sent > 0)
		printf(", %.4g%% lost", (double)(p->sent - p->answered) * 100 / (double)p->sent);
	if (p->answered > 0)
		printf("; min/median/max %s/%s/%s", ctl_time_text(p->least, least),
		       ctl_time_text(median(p), middle), ctl_time_text(p->most, most));
	putchar('\n');
}

static void sum_up_json(struct ping *p)
{
	struct ctl_out *o = &p->out;

	ctl_out_record(o);
	ctl_out_text(o, "target", p->target);
	ctl_out_number(o, "job", p->job, CTL_PLAIN);
	ctl_out_number(o, "generation", p->generation, CTL_PLAIN);
	ctl_out_json(o, "replies", p->replies);
	ctl_out_number(o, "sent", p->sent, CTL_PLAIN);
	ctl_out_number(o, "answered", p->answered, CTL_PLAIN);
	if (p->answered > 0) {
		ctl_out_number(o, "min", p->least, CTL_NS);
		ctl_out_number(o, "median", median(p), CTL_NS);
		ctl_out_number(o, "max", p->most, CTL_NS);
	}
}

static int run(struct ctl_nl *nl, struct ping *p)
{
	int err, status;

	ctl_signal_catch(SIGINT);
	ctl_signal_catch(SIGTERM);
	err = ask_all(nl, p);
	if (err)
		ctl_nl_complain(nl, p->target, err);
	if (p->out.form != CTL_TEXT)
		sum_up_json(p);
	else if (!err || p->sent > 0)
		sum_up_text(p);
	status = ctl_out_close(&p->out);
	free(p->sample);
	return err || p->answered == 0 ? CTL_FAILED : status;
}

/* ---- Arguments ---- */

static int parse_target(struct ping *p)
{
	uint64_t number;

	if (p->a[NODE].given) {
		if (p->target != NULL) {
			ctl_error("node %" PRIu64 " or %s?", p->a[NODE].number, p->target);
			return -1;
		}
		p->number = (uint32_t)p->a[NODE].number;
		return 0;
	}
	if (p->target == NULL) {
		ctl_error("ping whom? A rank, an address, or node NODE");
		return -1;
	}
	if (strpbrk(p->target, ".:") != NULL) {
		p->address_length = ctl_address(p->target, p->address);
		return p->address_length < 0 ? -1 : 0;
	}
	if (ctl_number(p->target, "rank", 0, UINT32_MAX, false, &number))
		return -1;
	p->number = (uint32_t)number;
	return 0;
}

static void take_job(void *arg, const struct ctl_reply *r)
{
	struct ping *p = arg;

	p->job = ctl_reply_u32(r, ACP_NL_A_JOB);
	p->generation = ctl_reply_u32(r, ACP_NL_A_GENERATION);
}

/* Use one generation of the job for all probes, even if a later one begins. */
static int find_job(struct ctl_nl *nl, struct ping *p)
{
	struct nl_msg *m = ctl_nl_new(nl, ACP_NL_CMD_JOB_GET);
	const char *word = p->a[JOB].text;
	int status = ctl_choose_job(nl, m, word), err;

	if (status != CTL_OK) {
		nlmsg_free(m);
		return status;
	}
	err = ctl_nl_do(nl, m, take_job, p);
	return err ? ctl_nl_complain(nl, word != NULL ? word : "job", err) : CTL_OK;
}

int ctl_ping(struct ctl *c)
{
	struct ctl_argument list[ARGUMENTS + 1] = {
		[JOB] = { .name = "job", .kind = CTL_ARG_TEXT },
		[COUNT] = { .name = "count", .kind = CTL_ARG_NUMBER, .least = 1,
			    .most = 1ULL << 40 },
		[INTERVAL] = { .name = "interval", .kind = CTL_ARG_TIME, .most = 3600 * S,
			       .number = S },
		[SIZE] = { .name = "size", .kind = CTL_ARG_SIZE, .most = ACP_NL_PING_SIZE_MAX,
			   .number = 56 },
		[TIMEOUT] = { .name = "timeout", .kind = CTL_ARG_TIME, .least = MS,
			      .most = ACP_NL_PING_TIMEOUT_MAX * MS,
			      .number = ACP_NL_PING_TIMEOUT * MS },
		[COLOR] = { .name = "color", .kind = CTL_ARG_NUMBER, .most = ACP_COLORS_MAX - 1 },
		[NODE] = { .name = "node", .kind = CTL_ARG_NUMBER, .most = UINT32_MAX },
		[ARGUMENTS] = { .name = NULL },
	};
	struct ping p = { .a = list };
	struct ctl_nl nl;
	char node[24];
	uint32_t job;
	int status, generation;

	if (ctl_arguments_and(&c->words, list, &p.target) || parse_target(&p) ||
	    (list[JOB].given && ctl_parse_job(list[JOB].text, &job, &generation)))
		return CTL_USAGE;
	if (p.target == NULL) {
		snprintf(node, sizeof(node), "%u", p.number);
		p.target = node;
	}
	status = ctl_nl_connect(&nl);
	if (status != CTL_OK)
		return status;
	status = find_job(&nl, &p);
	if (status == CTL_OK) {
		ctl_out_open(&p.out, c->form, true);
		if (c->form != CTL_TEXT)
			p.replies = json_object_new_array();
		status = run(&nl, &p);
	}
	ctl_nl_close(&nl);
	return status;
}
