// SPDX-License-Identifier: MIT
/* Parser of the command line of acp_perf. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"
#include "op.h"

#define SIZE_LIMIT	(1ULL << 40)
#define WINDOW_LIMIT	4096	/* default depth of the queue */

static const struct {
	const char *name;
	unsigned int modes;
	const char *what;
} mode_table[] = {
	{ "latency", PERF_LATENCY, "time from issue to completion, one operation at a time" },
	{ "bandwidth", PERF_BANDWIDTH, "bytes per second over sizes and windows" },
	{ "rate", PERF_RATE, "operations per second over windows, 8 bytes each" },
	{ "register", PERF_REGISTER, "cost of registering and unregistering memory" },
	{ "barrier", PERF_BARRIER, "acp_sync of all ranks" },
	{ "all", PERF_ALL, "the five above (default)" },
	{ "coll", PERF_COLL, "collectives of all ranks, by group" },
	{ "udp", PERF_UDP, "no ACP: a UDP socket ping-pong between the same two ranks" },
	{ "heap", PERF_HEAP_MODE, "acp_malloc and acp_free: own heap, same node, another node" },
	{ "channel", PERF_CHANNEL, "round trips and streams of messages, beside puts" },
	{ "mailbox", PERF_MAILBOX, "messages into a mailbox, answered ones, notified puts" },
	{ "tag", PERF_TAG, "round trips of messages that posted receives match" },
	{ "map", PERF_MAP, "inserting into and finding in a map over all ranks" },
	{ "wait", PERF_WAIT, "round trip of puts that wake the receiver; what idle waiting costs" },
	{ "regions", PERF_REGIONS, "cost of registering beside many regions (-s: how many)" },
	{ "idle", PERF_IDLE, "processor time of a job in which nothing happens" },
	{ "sweep", PERF_SWEEP, "curves of latency and bandwidth over sizes, as pictures (below)" },
	{ "syscalls", PERF_SYSCALLS, "system calls that many puts need (below)" },
};

static const struct option long_options[] = {
	{ "op", required_argument, NULL, 'o' },
	{ "size", required_argument, NULL, 's' },
	{ "window", required_argument, NULL, 'w' },
	{ "iters", required_argument, NULL, 'n' },
	{ "seconds", required_argument, NULL, 't' },
	{ "format", required_argument, NULL, 'f' },
	{ "target", required_argument, NULL, 'T' },
	{ "third", required_argument, NULL, '3' },
	{ "threads", required_argument, NULL, 'p' },
	{ "contexts", no_argument, NULL, 'x' },
	{ "check", no_argument, NULL, 'c' },
	{ "no-check", no_argument, NULL, 'C' },
	{ "baseline-udp", no_argument, NULL, 'u' },
	{ "output", required_argument, NULL, 'O' },
	{ "machine", required_argument, NULL, 'm' },
	{ "date", required_argument, NULL, 'd' },
	{ "no-draw", no_argument, NULL, 'D' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* Parse a number with suffix K, M or G (powers of 1024) and advance *text. */
static bool number(const char **text, uint64_t limit, uint64_t *value)
{
	unsigned int shift = 0;
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	*value = strtoull(*text, &end, 10);
	if (errno != 0)
		return false;
	if (*end == 'K' || *end == 'k')
		shift = 10;
	else if (*end == 'M' || *end == 'm')
		shift = 20;
	else if (*end == 'G' || *end == 'g')
		shift = 30;
	*text = end + (shift != 0);
	if (*value > limit >> shift)
		return false;
	*value <<= shift;
	return true;
}

/* Parse one item of a list: N, FROM-TO (doubling) or FROM-TO*FACTOR. */
static bool list_item(const char **text, uint64_t limit, struct perf_list *list)
{
	uint64_t from, to, factor = 2;

	if (!number(text, limit, &from))
		return false;
	to = from;
	if (**text == '-') {
		++*text;
		if (!number(text, limit, &to) || from == 0 || to < from)
			return false;
		if (**text == '*') {
			++*text;
			if (!number(text, limit, &factor) || factor < 2)
				return false;
		}
	}
	for (;; from *= factor) {
		if (list->n == PERF_LIST_MAX)
			return false;
		list->value[list->n++] = from;
		if (from == to || from > to / factor)
			return true;
	}
}

static bool parse_list(const char *text, uint64_t limit, struct perf_list *list)
{
	list->n = 0;
	for (;;) {
		if (!list_item(&text, limit, list))
			return false;
		if (*text == '\0')
			return true;
		if (*text++ != ',')
			return false;
	}
}

/* Select an operation, or a collective, by name. */
static bool select_op(struct perf_options *o, const char *name)
{
	int op = perf_op_find(name), coll = perf_coll_find(name);

	if (strcmp(name, "all") == 0) {
		o->ops = perf_op_all();
		o->colls = 0;
	} else if (op >= 0) {
		o->ops |= UINT32_C(1) << op;
	} else if (coll >= 0) {
		o->colls |= UINT32_C(1) << coll;
	}
	return strcmp(name, "all") == 0 || op >= 0 || coll >= 0;
}

static bool parse_ops(struct perf_options *o, const char *text)
{
	char word[16];
	size_t length;

	o->ops = 0;
	o->colls = 0;
	for (;;) {
		length = strcspn(text, ",");
		if (length == 0 || length >= sizeof(word))
			return false;
		memcpy(word, text, length);
		word[length] = '\0';
		if (!select_op(o, word))
			return false;
		text += length;
		if (*text++ == '\0')
			return true;
	}
}

static bool parse_count(const char *text, uint64_t limit, uint64_t *value)
{
	return number(&text, limit, value) && *text == '\0';
}

static bool parse_rank(const char *text, int *rank)
{
	uint64_t value;

	if (!parse_count(text, INT_MAX, &value))
		return false;
	*rank = (int)value;
	return true;
}

static bool parse_seconds(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	return end != text && *end == '\0' && *seconds > 0 && *seconds < 1e6;
}

static bool parse_format(const char *text, enum perf_format *format)
{
	static const char *const names[] = { "text", "csv", "json" };
	size_t i;

	for (i = 0; i < 3; i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		*format = (enum perf_format)i;
		return true;
	}
	return false;
}

static bool parse_mode(const char *word, unsigned int *modes)
{
	size_t i;

	for (i = 0; i < sizeof(mode_table) / sizeof(mode_table[0]); i++) {
		if (strcmp(word, mode_table[i].name) != 0)
			continue;
		*modes |= mode_table[i].modes;
		return true;
	}
	return false;
}

/* Parse options with texts for a sweep. */
static bool parse_words(struct perf_options *o, int letter, const char *value)
{
	switch (letter) {
	case 'O':
		o->output = value;
		return *value != '\0' && value[strlen(value) - 1] != '/' &&
		       strchr(value, '\'') == NULL && strlen(value) < PATH_MAX - 8;
	case 'm':
		o->machine = value;
		return true;
	case 'd':
		o->date = value;
		return true;
	case 'D':
		o->draw = false;
		return true;
	}
	return false;
}

static bool parse_option(struct perf_options *o, int letter, const char *value)
{
	switch (letter) {
	case 'o':
		return parse_ops(o, value);
	case 's':
		return parse_list(value, SIZE_LIMIT, &o->sizes);
	case 'w':
		return parse_list(value, WINDOW_LIMIT, &o->windows);
	case 'n':
		return parse_count(value, 1000000000, &o->iters) && o->iters > 0;
	case 't':
		return parse_seconds(value, &o->seconds);
	case 'f':
		return parse_format(value, &o->format);
	case 'T':
		return parse_rank(value, &o->target);
	case '3':
		return parse_rank(value, &o->third);
	case 'p':
		return parse_count(value, PERF_THREADS_MAX, &o->threads) && o->threads > 0;
	case 'x':
		o->contexts = true;
		return true;
	case 'c':
	case 'C':
		o->check = letter == 'c';
		return true;
	case 'u':
		o->baseline_udp = true;
		return true;
	case 'q':
		o->quiet = true;
		return true;
	}
	return parse_words(o, letter, value);
}

int perf_options_parse(struct perf_options *o, int procs, int argc, char **argv, char *error,
		       size_t room)
{
	int letter;

	*o = (struct perf_options){ .check = true, .target = -1, .third = -1, .output = "sweep",
				    .draw = true };
	opterr = 0;
	optind = 1;
	while ((letter = getopt_long(argc, argv, "hq", long_options, NULL)) != -1) {
		if (parse_option(o, letter, optarg))
			continue;
		snprintf(error, room, "%s: not understood (try --help)",
			 letter == '?' || optarg == NULL ? argv[optind - 1] : optarg);
		return -1;
	}
	if (o->target >= procs || o->third >= procs) {
		snprintf(error, room, "--target, --third: the job has ranks 0 to %d", procs - 1);
		return -1;
	}
	if (o->contexts && o->threads == 0) {
		snprintf(error, room, "--contexts: how many --threads?");
		return -1;
	}
	for (; optind < argc; optind++) {
		if (parse_mode(argv[optind], &o->modes))
			continue;
		snprintf(error, room, "%s: no such mode (try --help)", argv[optind]);
		return -1;
	}
	if (o->modes == 0)
		o->modes = PERF_ALL;
	if (o->baseline_udp)
		o->modes |= PERF_UDP;
	return 0;
}

bool perf_options_want_help(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	}
	return false;
}

static const char help_head[] =
"Usage: acp_perf [MODE...] [OPTION...]\n"
"\n"
"Measures ACP between the ranks of a job. Rank 0 drives; the others sleep in acp_sync,\n"
"except for the UDP ping-pong and the barrier. Start it once per rank, like any ACP program.\n"
"\n"
"Modes:\n";

static const char help_options[] =
"\n"
"Options:\n"
"  --op LIST         operations: all, or some of those below\n"
"  --size LIST       bytes: 8,64,1K or ranges 8-1M (doubling), 8-1M*4; suffixes K M G\n"
"  --window LIST     operations outstanding at once (bandwidth, rate, syscalls)\n"
"  --iters N         samples per line; --seconds S: time per line. Both: whichever ends first.\n"
"                    Neither: the mode's number of samples, but no longer than 1 second\n"
"  --target R        the other rank (default: the last one, if possible on another node)\n"
"  --third R         the third rank (default: another, if possible on a third node)\n"
"  --threads N       rate: 1 to 64 threads of rank 0 that issue at once, each with its own window;\n"
"                    by the queue of the process, or, with --contexts, by a context each\n"
"  --baseline-udp    measure also a blocking UDP socket ping-pong of 8 bytes between rank 0\n"
"                    and the target, and print latencies relative to its round trip\n"
"  --check           compare memory after every 256 operations (default); --no-check: do not\n"
"  --format F        text (default), csv or json; times are microseconds, MB/s is 10^6 bytes/s\n"
"  --output PREFIX   sweep: write PREFIX.dat, .gp, .svg and .png (default: sweep)\n"
"  --machine TEXT    sweep: what the caption says of the machine (default: its processor)\n"
"  --date TEXT       sweep: the date in the caption (default: today)\n"
"  --no-draw         sweep: do not run gnuplot; `gnuplot PREFIX.gp` in that directory draws\n"
"  --quiet, -q       no heading and no progress on the terminal\n"
"  --help, -h\n"
"\n"
"Operations:\n";

static const char help_tail[] =
"\n"
"Lines of latency are per operation, those of bandwidth and rate are bursts divided by the\n"
"number of operations in them; with --threads, by the operations of all threads. On a machine\n"
"whose clock counts instructions (qemu -icount shift=0) a nanosecond is an instruction of any\n"
"rank, kernel or idle waiting on the one processor. The node operation writes to a block of the other\n"
"rank's heap, whose size is ACP_HEAP_SIZE. Heap allocates 100 blocks of 1 to 32,768 bytes and\n"
"releases them in random order, again and again: it takes ACP_HEAP_SIZE=4M. Of those on another\n"
"node it also says how many round trips and frames they took in the mean, as counted by this\n"
"node (/proc/net/acp). The time of a collective is that of the slowest rank, from its own start;\n"
"MB/s are those of one block. Ratios:\n"
"x udp = median / median round trip of the UDP ping-pong (smaller is better); x memcpy = speed relative to memcpy of the same bytes\n"
"to the same kind of memory, alternating with it (larger is better).\n"
"\n"
"acp_perf sweep measures latency and bandwidth (16 at once) of put and get from 8 bytes to 1 MiB,\n"
"if --op, --size and --window do not say otherwise, and with --baseline-udp the ping-pong of datagrams\n"
"as large as these. It writes the data, a gnuplot script, and what gnuplot makes of it; the\n"
"caption tells kernel, placement, machine, operations, samples and date.\n"
"\n"
"acp_perf syscalls issues 100,000 puts (--iters) after a warm-up, and has the kernel count the\n"
"system calls in between; for that, tracefs must be mounted (mount -t tracefs none\n"
"/sys/kernel/tracing). It also marks their begin and end by two getppid system calls each:\n"
"    strace -f -o trace acp_perf syscalls\n"
"The last four in the trace are those around the puts; the ones before belong to the warm-up.\n"
"But a process that strace slows down may ring too seldom to wake the poller, and then needs\n"
"a system call for each put.\n"
"\n"
"Exit status: 0, 1 for wrong data, a failed access or a picture that cannot be made, 2 for wrong\n"
"arguments.\n";

void perf_options_help(FILE *out)
{
	size_t i;

	fputs(help_head, out);
	for (i = 0; i < sizeof(mode_table) / sizeof(mode_table[0]); i++)
		fprintf(out, "  %-10s %s\n", mode_table[i].name, mode_table[i].what);
	fputs(help_options, out);
	for (i = 0; i < perf_op_count; i++)
		fprintf(out, "  %-10s %s\n", perf_op_table[i].name, perf_op_table[i].what);
	for (i = 0; i < perf_coll_count; i++)
		fprintf(out, "  %-10s %s\n", perf_coll_table[i].name, perf_coll_table[i].what);
	fputs(help_tail, out);
}
