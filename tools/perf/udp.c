// SPDX-License-Identifier: MIT
/*
 * The baseline: round trips of 8 bytes between rank 0 and the target over blocking UDP sockets,
 * like a program without ACP. Sockets are connected and have no timeout, which would cost time; a
 * signal every second interrupts the wait for a lost datagram.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "mode.h"
#include "net.h"

#define SAMPLES		1000
#define WARM_UP		16
#define MAGIC		UINT64_C(0x6163705f00000000)	/* upper half of the first 8 bytes */
#define STOP		(MAGIC | UINT32_MAX)
#define TRIES		10	/* seconds without an answer until rank 0 gives up */
#define IDLE		30	/* ... without a request until the target ends */
#define LEAST		sizeof(uint64_t)	/* minimum size of a datagram */
#define MOST		65507			/* ... maximum size with IPv4 */

/* Buffer of both ends; the first 8 bytes identify the request. */
static char packet[MOST + 1];

static void on_tick(int signal)
{
	(void)signal;
}

/*
 * Set the interval of the signal that interrupts waits. 0: none; it would interrupt writes as well.
 */
static void tick_every(time_t seconds)
{
	const struct itimerval timer = { { seconds, 0 }, { seconds, 0 } };
	struct sigaction action = { .sa_handler = on_tick };

	if (sigaction(SIGALRM, &action, NULL) != 0)
		perf_fatal("sigaction: %s", strerror(errno));
	if (setitimer(ITIMER_REAL, &timer, NULL) != 0)
		perf_fatal("setitimer: %s", strerror(errno));
}

/* Target: open a socket on the own address and publish it on the board. Returns it, or -1. */
static int open_echo(struct perf_board *board)
{
	struct sockaddr_storage address;
	socklen_t length = perf_net_address(&address);
	int fd;

	board->udp.ss_family = 0;
	if (length == 0)
		return -1;
	fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&address, length) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
		close(fd);
		return -1;
	}
	board->udp = address;
	return fd;
}

static uint64_t packet_value(void)
{
	uint64_t value;

	memcpy(&value, packet, sizeof(value));
	return value;
}

static bool wait_for_caller(int fd)
{
	struct sockaddr_storage caller;
	socklen_t length;
	ssize_t n;
	int idle = 0;

	while (idle < IDLE) {
		length = sizeof(caller);
		n = recvfrom(fd, packet, sizeof(packet), 0, (struct sockaddr *)&caller, &length);
		if (n >= (ssize_t)LEAST && packet_value() >> 32 == MAGIC >> 32 &&
		    packet_value() != STOP)
			return connect(fd, (struct sockaddr *)&caller, length) == 0;
		idle++;
	}
	return false;
}

/* The first request of a caller is not answered, and is repeated. */
static void echo(int fd)
{
	int idle = 0;
	ssize_t n;

	if (!wait_for_caller(fd))
		return;
	while (idle < IDLE) {
		n = recv(fd, packet, sizeof(packet), 0);
		if (n < (ssize_t)LEAST) {
			idle++;
			continue;
		}
		if (packet_value() == STOP)
			return;
		idle = 0;
		if (send(fd, packet, (size_t)n, 0) != n)
			idle++;
	}
}

/*
 * Send a request and receive its answer. Returns how often it had to be repeated, or TRIES: no
 * answer.
 */
static int ask(int fd, uint64_t value, size_t size)
{
	ssize_t n;
	int tries;

	for (tries = 0; tries < TRIES; tries++) {
		memcpy(packet, &value, sizeof(value));
		if (send(fd, packet, size, 0) != (ssize_t)size)
			continue;
		do {
			n = recv(fd, packet, sizeof(packet), 0);
			if (n == (ssize_t)size && packet_value() == value)
				return tries;
		} while (n >= 0);	/* a late answer to a repeated request */
	}
	return TRIES;
}

/*
 * Send requests of a size and record the times of answers to those that were not repeated. False if
 * there are none.
 */
static bool ask_many(struct perf_run *run, int fd, struct perf_row *row,
		     struct perf_samples *samples, uint64_t *question)
{
	struct perf_pace pace;
	uint64_t begin, end;
	int i, tries;

	for (i = 0; i < WARM_UP; i++) {
		if (ask(fd, (*question)++, row->size) == TRIES)
			return false;
	}
	pace = perf_pace_start(run->options, SAMPLES);
	while (perf_pace_more(&pace, row->checks)) {
		begin = perf_now();
		tries = ask(fd, (*question)++, row->size);
		end = perf_now();
		if (tries == TRIES)
			break;
		row->checks++;	/* ask() has compared the answer */
		if (tries == 0)
			perf_samples_add(samples, (double)(end - begin));
	}
	return true;
}

/* Rank 0: measure round trips. Returns NULL, or why there is no result. */
static const char *ping(struct perf_run *run, int fd, uint64_t size, uint64_t *question)
{
	struct perf_row row = { .mode = "udp", .op = "ping-pong", .size = size };
	struct perf_samples samples = { 0 };
	bool answered;

	if (size < LEAST || size > MOST)
		return "no datagram of that size";
	tick_every(1);
	answered = ask_many(run, fd, &row, &samples, question);
	tick_every(0);
	if (!answered)
		return "no answer";
	row.time = perf_samples_close(&samples);
	if (row.time.n == 0)
		return "answers were lost";
	if (size == LEAST)
		run->udp_median = row.time.median;
	row.ops_per_s = 1e9 / row.time.median;
	perf_report_row(&run->report, &row);
	return NULL;
}

static void stop_echo(int fd)
{
	const uint64_t stop = STOP;
	int i;

	for (i = 0; i < 3; i++) {
		if (send(fd, &stop, sizeof(stop), 0) != sizeof(stop))
			return;	/* the target ends itself after some idle time */
	}
}

static void skip(struct perf_run *run, uint64_t size, const char *why)
{
	if (why != NULL)
		perf_report_skip(&run->report, "udp", "ping-pong", size, why);
}

/* 8 bytes, to compare latencies with; a sweep compares curves. */
static void ping_sizes(struct perf_run *run, int fd)
{
	static const struct perf_list one = { 1, { LEAST } };
	const struct perf_list *sizes = &one;
	uint64_t question = MAGIC;
	size_t i;

	if (run->options->modes & PERF_SWEEP)
		sizes = perf_list_or(&run->options->sizes, &perf_sweep_sizes);
	for (i = 0; i < sizes->n; i++) {
		perf_report_progress(&run->report, "udp", "ping-pong", sizes->value[i]);
		skip(run, sizes->value[i], ping(run, fd, sizes->value[i], &question));
	}
}

static const char *drive(struct perf_run *run)
{
	struct sockaddr_storage address = perf_job_fetch(&run->job, run->job.target)->udp;
	const char *why;
	int fd;

	if (address.ss_family == 0)
		return "the target finds none of its addresses in ACP_NODES";
	fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return strerror(errno);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		why = strerror(errno);
		close(fd);
		return why;
	}
	ping_sizes(run, fd);
	stop_echo(fd);
	close(fd);
	return NULL;
}

void perf_udp(struct perf_run *run)
{
	struct perf_job *job = &run->job;
	int fd = -1;

	if (job->target == 0) {
		if (job->rank == 0)
			skip(run, LEAST, "needs 2 ranks");
		return;
	}
	if (job->rank == job->target)
		fd = open_echo(job->board);
	perf_sync();
	if (job->rank == 0) {
		skip(run, LEAST, drive(run));
	} else if (fd >= 0) {
		tick_every(1);
		echo(fd);
		tick_every(0);
		close(fd);
	}
	perf_sync();
}
