// SPDX-License-Identifier: MIT
/*
 * acp top: activity. On a terminal a table that is updated until q or Ctrl-C; otherwise one table
 * per interval.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "acp_abi.h"
#include "command.h"
#include "field.h"
#include "job.h"
#include "sample.h"
#include "signals.h"

#define S		1000000000ULL
#define MS		1000000ULL
#define ROWS_MAX	(1u << 20)

struct top {
	struct ctl_out out;
	bool live;			/* standard output is a terminal */
	bool keys;			/* standard input is a terminal */
	struct termios before;
	size_t room;			/* lines left on the screen */
};

/* ---- The terminal ---- */

static void open_terminal(struct top *t)
{
	struct termios raw;

	if (!t->live)
		return;
	t->keys = tcgetattr(STDIN_FILENO, &t->before) == 0 &&
		  tcgetpgrp(STDIN_FILENO) == getpgrp();
	if (t->keys) {
		raw = t->before;
		raw.c_lflag &= (tcflag_t)~(ICANON | ECHO);
		/*
		 * Do not block: the input that poll() reported may be gone, because keys for
		 * signals flush it.
		 */
		raw.c_cc[VMIN] = 0;
		raw.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	/*
	 * Clear the screen, hide the cursor, and disable line wrap so that each row takes one line.
	 */
	fputs("\033[H\033[2J\033[?25l\033[?7l", stdout);
	fflush(stdout);
}

static void close_terminal(const struct top *t)
{
	if (!t->live)
		return;
	fputs("\033[?7h\033[?25h\n", stdout);
	fflush(stdout);
	if (t->keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
}

/* Ctrl-Z: restore the terminal for other programs meanwhile. */
static void pause_here(struct top *t)
{
	close_terminal(t);
	ctl_signal_stop_here();
	open_terminal(t);
}

static size_t terminal_lines(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_row == 0)
		return 24;
	return size.ws_row;
}

/* Print a line. On a terminal, clear the rest of the line, and skip it if the screen is full. */
static void line(struct top *t, const char *text)
{
	if (t->room == 0)
		return;
	t->room--;
	fputs(text, stdout);
	if (t->live)
		fputs("\033[K", stdout);
	if (!t->live || t->room > 0)
		putchar('\n');
}

/* ---- Tables ---- */

static const char *job_text(const struct ctl_row *row, char text[32])
{
	snprintf(text, 32, "%u/%u", row->job, row->generation);
	return text;
}

static void put_ranks(struct top *t, const struct ctl_rows *ranks, size_t most)
{
	char text[200], job[32], pid[16];
	size_t i;

	line(t, "       JOB     RANK      PID  STATE    DONE/S   FAILED/S  IN-FLIGHT  REGIONS  BARRIER");
	for (i = 0; i < ranks->count && i < most; i++) {
		const struct ctl_row *row = &ranks->row[i];

		snprintf(pid, sizeof(pid), row->pid ? "%u" : "-", row->pid);
		snprintf(text, sizeof(text), "%10s %8u %8s  %-7s %7.0f %10.0f %10u %8u  %s",
			 job_text(row, job), row->rank, pid, ctl_name(&ctl_rank_states, row->state),
			 row->rate[CTL_COMPLETED], row->rate[CTL_FAILURES], row->in_flight,
			 row->regions, row->barrier ? "waits" : "-");
		line(t, text);
	}
}

static void put_flows(struct top *t, const struct ctl_rows *flows, size_t most)
{
	char text[240], job[32], rtt[CTL_TIME_TEXT];
	size_t i;

	line(t, "       JOB     NODE COLOR  STATE          RTT  WINDOW  IN-FLIGHT   SENT/S  MB/S-OUT   MB/S-IN  AGAIN/S  ADDRESS");
	for (i = 0; i < flows->count && i < most; i++) {
		const struct ctl_row *row = &flows->row[i];

		snprintf(text, sizeof(text),
			 "%10s %8u %5u  %-7s %10s %7u %10u %8.0f %9.2f %9.2f %8.0f  %s",
			 job_text(row, job), row->rank, row->pid,
			 ctl_name(&ctl_flow_states, row->state),
			 row->srtt ? ctl_time_text(row->srtt, rtt) : "-", row->window,
			 row->in_flight, row->rate[CTL_TX_FRAMES], row->rate[CTL_TX_BYTES] / 1e6,
			 row->rate[CTL_RX_BYTES] / 1e6, row->rate[CTL_RETRANSMITS], row->address);
		line(t, text);
	}
}

static void put_text(struct top *t, const struct ctl_sample *s, double seconds)
{
	char text[120], clock[20] = "?";
	time_t now = time(NULL);
	size_t half;
	struct tm tm;

	t->room = t->live ? terminal_lines() : SIZE_MAX;
	/* Ranks get half of the screen, and the lines that flows do not need. */
	half = t->room > 8 ? (t->room - 4) / 2 : 2;
	if (t->live && s->flows.count < half)
		half = t->room > s->flows.count + 4 ? t->room - s->flows.count - 4 : half;
	if (localtime_r(&now, &tm) != NULL)
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "acp top, %s: %zu ranks, %zu flows; rates over %.1f s%s",
		 clock, s->ranks.count, s->flows.count, seconds, t->keys ? "; q ends" : "");
	if (t->live)
		fputs("\033[H", stdout);
	line(t, text);
	put_ranks(t, &s->ranks, t->live ? half : ROWS_MAX);
	line(t, "");
	put_flows(t, &s->flows, t->live ? t->room : ROWS_MAX);
	if (t->live)
		fputs("\033[J", stdout);
	else
		putchar('\n');
	fflush(stdout);
}

/* ---- JSON: one object per interval ---- */

static void add(struct json_object *o, const char *name, struct json_object *value)
{
	json_object_object_add(o, name, value);
}

static struct json_object *base_json(const struct ctl_row *row)
{
	struct json_object *o = json_object_new_object();

	add(o, "job", json_object_new_uint64(row->job));
	add(o, "generation", json_object_new_uint64(row->generation));
	add(o, "in_flight", json_object_new_uint64(row->in_flight));
	return o;
}

static struct json_object *ranks_json(const struct ctl_rows *rows)
{
	struct json_object *list = json_object_new_array();
	size_t i;

	for (i = 0; i < rows->count; i++) {
		const struct ctl_row *row = &rows->row[i];
		struct json_object *o = base_json(row);

		add(o, "rank", json_object_new_uint64(row->rank));
		if (row->pid)
			add(o, "pid", json_object_new_uint64(row->pid));
		add(o, "state", json_object_new_string(ctl_name(&ctl_rank_states, row->state)));
		add(o, "completed_per_s", json_object_new_double(row->rate[CTL_COMPLETED]));
		add(o, "failed_per_s", json_object_new_double(row->rate[CTL_FAILURES]));
		add(o, "regions", json_object_new_uint64(row->regions));
		add(o, "in_barrier", json_object_new_boolean(row->barrier != 0));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *flows_json(const struct ctl_rows *rows)
{
	struct json_object *list = json_object_new_array();
	size_t i;

	for (i = 0; i < rows->count; i++) {
		const struct ctl_row *row = &rows->row[i];
		struct json_object *o = base_json(row);

		add(o, "node", json_object_new_uint64(row->rank));
		add(o, "color", json_object_new_uint64(row->pid));
		add(o, "address", json_object_new_string(row->address));
		add(o, "state", json_object_new_string(ctl_name(&ctl_flow_states, row->state)));
		add(o, "srtt_ns", json_object_new_uint64(row->srtt));
		add(o, "window", json_object_new_uint64(row->window));
		add(o, "tx_frames_per_s", json_object_new_double(row->rate[CTL_TX_FRAMES]));
		add(o, "tx_bytes_per_s", json_object_new_double(row->rate[CTL_TX_BYTES]));
		add(o, "tx_retransmits_per_s", json_object_new_double(row->rate[CTL_RETRANSMITS]));
		add(o, "rx_frames_per_s", json_object_new_double(row->rate[CTL_RX_FRAMES]));
		add(o, "rx_bytes_per_s", json_object_new_double(row->rate[CTL_RX_BYTES]));
		json_object_array_add(list, o);
	}
	return list;
}

static void put_json(struct ctl_out *o, const struct ctl_sample *s, double seconds)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	ctl_out_record(o);
	ctl_out_number(o, "time", (uint64_t)t.tv_sec * S + (uint64_t)t.tv_nsec, CTL_NS);
	ctl_out_number(o, "interval", (uint64_t)(seconds * (double)S), CTL_NS);
	ctl_out_json(o, "ranks", ranks_json(&s->ranks));
	ctl_out_json(o, "flows", flows_json(&s->flows));
	ctl_out_end_record(o);
}

/* ---- The loop ---- */

/* Called after poll(). True if the terminal is gone, or a key was typed that ends the command. */
static bool key_ends(const struct pollfd *p)
{
	char key = '\0';
	ssize_t got = read(p->fd, &key, 1);

	return got < 0 || (got == 0 && (p->revents & ~POLLIN)) || key == 'q' || key == 'Q';
}

/* Wait. False at the end. */
static bool rest(struct top *t, uint64_t ns)
{
	struct pollfd p = { .events = POLLIN };
	struct timespec start, now;
	int64_t left = (int64_t)ns;

	clock_gettime(CLOCK_MONOTONIC, &start);
	while (!ctl_signal_end() && left > 0) {
		int n;

		if (ctl_signal_pause())
			pause_here(t);
		p.fd = t->keys ? STDIN_FILENO : -1;
		n = ctl_signal_poll(&p, 1, left);
		if (n > 0 && key_ends(&p))
			return false;
		clock_gettime(CLOCK_MONOTONIC, &now);
		left = (int64_t)ns - (now.tv_sec - start.tv_sec) * (int64_t)S -
		       (now.tv_nsec - start.tv_nsec);
	}
	return !ctl_signal_end() && !ferror(stdout);
}

static int loop(struct ctl_nl *nl, struct top *t, const char *job, uint64_t interval,
		uint64_t count)
{
	struct ctl_sample before, now;
	int err = ctl_sample_take(nl, job, &before);

	while (!err && rest(t, interval)) {
		double seconds;

		err = ctl_sample_take(nl, job, &now);
		if (err) {
			ctl_sample_free(&now);
			break;
		}
		seconds = (double)(now.at - before.at) / (double)S;
		ctl_sample_compare(&now, &before);
		if (t->out.form == CTL_TEXT)
			put_text(t, &now, seconds);
		else
			put_json(&t->out, &now, seconds);
		ctl_sample_free(&before);
		before = now;
		if (count > 0 && --count == 0)
			break;
	}
	ctl_sample_free(&before);
	return err;
}

/* Catch all signals that end or stop the command, to restore the terminal first. */
static void catch_signals(const struct top *t)
{
	static const int on_terminal[] = { SIGHUP, SIGQUIT, SIGTSTP };
	size_t i;

	ctl_signal_catch(SIGINT);
	ctl_signal_catch(SIGTERM);
	for (i = 0; t->live && i < sizeof(on_terminal) / sizeof(on_terminal[0]); i++)
		ctl_signal_catch(on_terminal[i]);
}

int ctl_top(struct ctl *c)
{
	struct ctl_argument list[] = {
		{ .name = "job", .kind = CTL_ARG_TEXT },
		{ .name = "interval", .kind = CTL_ARG_TIME, .least = 10 * MS, .most = 3600 * S,
		  .number = S },
		{ .name = "count", .kind = CTL_ARG_NUMBER, .least = 1, .most = UINT64_MAX },
		{ .name = NULL }
	};
	struct top t = { .live = false };
	uint32_t job;
	struct ctl_nl nl;
	int status, err, generation;

	if (ctl_arguments(&c->words, list) ||
	    (list[0].given && ctl_parse_job(list[0].text, &job, &generation)))
		return CTL_USAGE;
	status = ctl_nl_connect(&nl);
	if (status != CTL_OK)
		return status;
	t.live = c->form == CTL_TEXT && isatty(STDOUT_FILENO);
	ctl_out_open(&t.out, c->form, true);
	catch_signals(&t);
	open_terminal(&t);
	err = loop(&nl, &t, list[0].text, list[1].number, list[2].number);
	close_terminal(&t);
	status = ctl_out_close(&t.out);
	if (err)
		status = ctl_nl_complain(&nl, list[0].given ? list[0].text : "", err);
	ctl_nl_close(&nl);
	return status;
}
