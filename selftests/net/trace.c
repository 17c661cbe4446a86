// SPDX-License-Identifier: MIT
/*
 * Tracepoints, read through tracefs: each is hit when it should be, with correct fields, and as
 * often as the counters.
 */
#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include "../dev/reload.h"
#include "frame.h"
#include "nodes.h"

#define TRACING	"/sys/kernel/tracing"
#define EVENTS	TRACING "/events/acp"
#define HEAD	"entries-in-buffer/entries-written: "

static struct nodes n;
static struct rank r[2];
static char *text;		/* contents of the trace */

/* ---- tracefs ---- */

static void put(const char *file, const char *what)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), TRACING "/%s", file);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0 || write(fd, what, strlen(what)) != (ssize_t)strlen(what))
		FAIL("%s > %s: %s", what, path, strerror(errno));
	close(fd);
}

/* Return a whole file as a string. */
static char *get(const char *file)
{
	size_t size = 0, room = 1 << 20;
	char path[300], *all = malloc(room);
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), TRACING "/%s", file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	while ((got = read(fd, all + size, room - size - 1)) > 0) {
		size += got;
		if (size == room - 1) {
			room *= 2;
			all = realloc(all, room);
			CHECK(all);
		}
	}
	CHECK_EQ(got, 0);
	close(fd);
	all[size] = 0;
	return all;
}

static void trace_mount(void)
{
	if (access(TRACING "/trace", R_OK))
		CHECK_EQ(mount("tracefs", TRACING, "tracefs", 0, NULL), 0);
}

static void trace_on(void)
{
	trace_mount();
	put("events/acp/enable", "0");
	/*
	 * No names of processes: recording them patches the scheduler each time, and QEMU 7.2 may
	 * execute the temporary breakpoint forever.
	 */
	put("options/record-cmd", "0");
	put("tracing_on", "1");
	put("buffer_size_kb", "8192");
	put("trace", "");
	put("events/acp/enable", "1");
}

/* Stop tracing; no events were lost. */
static void trace_off(void)
{
	unsigned long in, written;
	char *at;

	put("events/acp/enable", "0");
	text = get("trace");
	at = strstr(text, HEAD);
	CHECK(at);
	in = strtoul(at + strlen(HEAD), &at, 10);
	CHECK_EQ(*at, '/');
	written = strtoul(at + 1, NULL, 10);
	CHECK_EQ(in, written);
}

/* ---- contents of the trace ---- */

static const char *end_of(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end : line + strlen(line);
}

/* True if a line contains all words of a pattern in that order. */
static bool matches(const char *line, const char *pattern)
{
	const char *end = end_of(line);
	char words[400], *word, *rest = words;

	snprintf(words, sizeof(words), "%s", pattern);
	while ((word = strsep(&rest, " "))) {
		size_t length = strlen(word);

		/* A whole word, not a prefix of a longer one. */
		do {
			line = memmem(line, end - line, word, length);
			if (!line)
				return false;
			line += length;
		} while (line < end && *line != ' ');
	}
	return true;
}

/* Return the first matching line after "from"; NULL: none. */
static const char *find_from(const char *from, const char *pattern)
{
	const char *line;

	for (line = from; *line; line = *end_of(line) ? end_of(line) + 1 : end_of(line))
		if (matches(line, pattern))
			return line;
	return NULL;
}

static unsigned long long count_of(const char *pattern)
{
	unsigned long long count = 0;
	const char *line = text;

	while ((line = find_from(line, pattern))) {
		count++;
		line = end_of(line);
	}
	return count;
}

/* Print all matching lines, for a failure that nobody can repeat. */
static void print_all(const char *pattern)
{
	const char *line = text;

	while ((line = find_from(line, pattern))) {
		fprintf(stderr, "%.*s\n", (int)(end_of(line) - line), line);
		line = end_of(line);
	}
}

static const char *must(const char *from, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static const char *must(const char *from, const char *format, ...)
{
	char pattern[400];
	const char *line;
	va_list args;

	va_start(args, format);
	vsnprintf(pattern, sizeof(pattern), format, args);
	va_end(args);
	line = find_from(from, pattern);
	if (!line)
		FAIL("not traced: %s", pattern);
	return line;
}

/* ---- tests ---- */

static void begin(uint32_t integrity, bool ipv6, uint32_t timeout_ms)
{
	const struct acp_join wish = {
		.integrity = integrity, .timeout_ms = timeout_ms, .open_timeout_ms = 30000,
	};

	nodes_open(&n, 2, 1, ipv6);
	nodes_ranks_like(&n, r, 2, &wish);
}

static int put_there(size_t size)
{
	return rank_await(&r[0], rank_copy(&r[0], heap_ga(&r[1], 0), heap_ga(&r[0], 0), size, 0),
			 PATIENCE_WORK);
}

/* Events of a put and of an atomic, in their order. */
static void lives(const char *flags)
{
	unsigned int job = r[0].join.job;
	uint64_t first = r[0].last + 1;
	const char *at;

	trace_on();
	CHECK_EQ(put_there(24), ACP_ST_OK);
	CHECK_EQ(rank_do_atomic(&r[0], ACP_OP_ADD8, heap_ga(&r[0], 64), heap_ga(&r[1], 64), 1, 0),
		 ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r[0], heap_ga(&r[0], 128), heap_ga(&r[0], 0), 100), ACP_ST_OK);
	CHECK_EQ(rank_do_copy(&r[0], 0, heap_ga(&r[0], 0), 8), ACP_ST_GA);
	trace_off();

	at = must(text, "acp_peer_state: job=%u node=0 peer=1 color=0 state=opening status=ok",
		  job);
	at = must(at, "acp_xmit: job=%u node=0 peer=1 type=hello flags=ask%s seq=0", job, flags);
	must(at, "acp_receive: job=%u node=1 peer=0 type=hello flags=ask%s seq=0", job, flags);
	at = must(at, "acp_peer_state: job=%u node=0 peer=1 state=open status=ok", job);
	at = must(at, "acp_xmit: job=%u node=0 peer=1 color=0 type=data seq=1 ack=1 bytes=56", job);
	at = must(at, "acp_receive: job=%u node=1 peer=0 color=0 type=data seq=1 ack=1 bytes=56",
		  job);
	at = must(at, "acp_ack: job=%u node=0 peer=1 color=0 seq=1", job);
	must(at, "acp_complete: job=%u node=0 rank=0 ticket=%llu status=ok", job,
	     (unsigned long long)first);
	must(text, "acp_submit: job=%u gen=%u node=0 rank=0 ticket=%llu op=copy bytes=24 dst=0x%llx src=0x%llx order=0 plan=send peer=1 color=0",
	     job, r[0].join.generation, (unsigned long long)first,
	     (unsigned long long)heap_ga(&r[1], 0), (unsigned long long)heap_ga(&r[0], 0));

	first++;
	at = must(text, "acp_submit: job=%u rank=0 ticket=%llu op=add8 bytes=8 plan=delegate peer=1",
		  job, (unsigned long long)first);
	at = must(at, "acp_xmit: node=0 peer=1 type=data seq=2");
	at = must(at, "acp_receive: node=1 peer=0 type=data seq=2");
	at = must(at, "acp_xmit: node=1 peer=0 type=data seq=1 bytes=40");
	at = must(at, "acp_receive: node=0 peer=1 type=data seq=1 bytes=40");
	must(at, "acp_complete: rank=0 ticket=%llu status=ok", (unsigned long long)first);

	first++;
	at = must(text, "acp_submit: ticket=%llu op=copy bytes=100 plan=local peer=0",
		  (unsigned long long)first);
	must(at, "acp_complete: ticket=%llu status=ok", (unsigned long long)first);
	first++;
	at = must(text, "acp_submit: ticket=%llu dst=0x0 plan=refused", (unsigned long long)first);
	must(at, "acp_complete: ticket=%llu status=ga", (unsigned long long)first);
	CHECK_EQ(count_of("acp_submit:"), 4);
	CHECK_EQ(count_of("acp_complete:"), 4);
}

TEST(life_of_commands)
{
	begin(ACP_INTEGRITY_TAG, false, 0);
	lives("");
}

TEST(life_of_commands_encrypted_ipv6)
{
	begin(ACP_INTEGRITY_AEAD, true, 0);
	lives("|aead");
}

TEST(loss_as_often_as_it_is_counted)
{
	static const char *const counted[][3] = {
		{ "commands", "acp_submit:", "" },
		{ "commands", "acp_complete:", "" },
		{ "tx_frames", "acp_xmit:", "" },
		{ "tx_retransmits", "acp_retransmit:", "" },
		{ "drop_duplicate", "acp_drop:", "reason=drop_duplicate" },
	};
	long long before[5], now;
	char ours[100];
	const char *at;
	uint32_t i;

	begin(ACP_INTEGRITY_TAG, false, 30000);
	CHECK_EQ(put_there(8), ACP_ST_OK);
	sleep_ms(300);
	nodes_impair_all(&n, "loss 20%");
	for (i = 0; i < 5; i++)
		before[i] = nodes_counters(&n, counted[i][0]);
	trace_on();
	for (i = 0; i < (test_short() ? 10 : 20); i++)
		CHECK_EQ(put_there(30000), ACP_ST_OK);
	/* Let retransmissions arrive. */
	nodes_impair_all(&n, "");
	CHECK_EQ(put_there(8), ACP_ST_OK);
	sleep_ms(300);
	trace_off();
	for (i = 0; i < 5; i++) {
		now = nodes_counters(&n, counted[i][0]);
		CHECK(now > before[i]);
		snprintf(ours, sizeof(ours), "%s job=%u %s", counted[i][1], r[0].join.job,
			 counted[i][2]);
		if (count_of(ours) == (unsigned long long)(now - before[i]))
			continue;
		print_all(counted[i][1]);
		FAIL("%s: %lld counted, %llu traced, %llu of all jobs", counted[i][0],
		     now - before[i], count_of(ours), count_of(counted[i][1]));
	}
	/* A retransmitted frame was sent before, and is acknowledged as such. */
	at = must(text, "acp_retransmit: node=0 peer=1 color=0 tries=2");
	at = must(at, "acp_ack: node=0 peer=1 tries=2");
}

TEST(peer_lost_and_back)
{
	unsigned int job;
	const char *at;

	begin(ACP_INTEGRITY_TAG, false, 300);
	job = r[0].join.job;
	CHECK_EQ(put_there(8), ACP_ST_OK);
	trace_on();
	nodes_impair(&n, 1, "loss 100%");
	CHECK_EQ(put_there(8), ACP_ST_TIMEOUT);
	nodes_impair(&n, 1, "");
	CHECK_EQ(put_there(8), ACP_ST_OK);
	trace_off();
	at = must(text, "acp_submit: job=%u op=copy", job);
	at = must(at, "acp_retransmit: job=%u node=0 peer=1", job);
	at = must(at, "acp_peer_state: job=%u node=0 peer=1 state=lost status=timeout", job);
	must(at, "acp_complete: job=%u rank=0 status=timeout", job);
	must(at, "acp_peer_state: job=%u node=1 peer=0 state=restarted status=peer", job);
	at = must(at, "acp_peer_state: job=%u node=0 peer=1 state=opening", job);
	at = must(at, "acp_peer_state: job=%u node=0 peer=1 state=open", job);
	must(at, "acp_complete: job=%u rank=0 status=ok", job);
}

static void send_to_node_0(const void *data, size_t size)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(r[0].join.port) };
	int fd;

	nodes_enter(&n, 1);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	nodes_leave(&n);
	CHECK_EQ(inet_pton(AF_INET, n.address[0], &to.sin_addr), 1);
	CHECK_EQ(sendto(fd, data, size, 0, (void *)&to, sizeof(to)), (ssize_t)size);
	close(fd);
}

/* Frames of unknown senders: the event contains what they claim, and their address. */
TEST(drops_of_unknown_senders)
{
	struct acp_frame f = {
		.type = ACP_FRAME_DATA, .color = 3, .generation = 5, .job = 4711, .node = 6,
		.epoch_src = 1, .epoch_dst = 2, .seq = 9, .length = 24,
	};
	union {
		struct acp_frame_hdr h;
		char bytes[72];
	} datagram = {};
	struct count no_job;

	begin(ACP_INTEGRITY_TAG, false, 0);
	no_job = nodes_count(&n, 0, "drop_no_job");
	acp_frame_encode(&datagram.h, &f);
	trace_on();
	send_to_node_0("ten bytes.", 10);
	send_to_node_0(&datagram, 71);
	datagram.h.version = 7;
	send_to_node_0(&datagram, 72);
	datagram.h.version = ACP_FRAME_VERSION;
	send_to_node_0(&datagram, 72);
	nodes_counted(&no_job, 1);
	trace_off();
	must(text, "acp_drop: job=0 gen=0 peer=0 color=0 addr=::ffff:%s type=0 flags=0x0 seq=0 size=10 reason=drop_bad_len",
	     n.address[1]);
	must(text, "acp_drop: job=4711 addr=::ffff:%s size=71 reason=drop_bad_len", n.address[1]);
	must(text, "acp_drop: job=4711 size=72 reason=drop_bad_version");
	must(text, "acp_drop: job=4711 gen=5 peer=6 color=3 addr=::ffff:%s type=1 flags=0x0 seq=9 size=72 reason=drop_no_job",
	     n.address[1]);
	CHECK_EQ(count_of("acp_drop:"), 4);
}

/*
 * Tools read formats: names of enums, which they do not know, must have been replaced by numbers.
 */
TEST(formats_for_tools)
{
	struct dirent *e;
	int events = 0;
	char file[300];
	DIR *d;

	trace_mount();
	d = opendir(EVENTS);
	CHECK(d);
	while ((e = readdir(d))) {
		char *format;

		if (strncmp(e->d_name, "acp_", 4))
			continue;
		events++;
		snprintf(file, sizeof(file), "events/acp/%.100s/format", e->d_name);
		format = get(file);
		CHECK(strstr(format, "print fmt: "));
		if (strstr(format, "ACP_"))
			FAIL("%s: %.60s", e->d_name, strstr(format, "ACP_"));
		free(format);
	}
	CHECK_EQ(events, 8);
	closedir(d);
}

/* Disabled events are silent; a filter selects among the others. */
TEST(one_event_and_a_filter)
{
	begin(ACP_INTEGRITY_TAG, false, 0);
	trace_on();
	put("events/acp/enable", "0");
	put("trace", "");
	put("events/acp/acp_submit/filter", "bytes == 16 && op == 1");
	put("events/acp/acp_submit/enable", "1");
	CHECK_EQ(put_there(8), ACP_ST_OK);
	CHECK_EQ(put_there(16), ACP_ST_OK);
	put("events/acp/acp_submit/filter", "0");
	trace_off();
	CHECK_EQ(count_of("acp_submit: bytes=16"), 1);
	CHECK_EQ(count_of("acp_submit:"), 1);
	CHECK_EQ(count_of("acp_xmit:"), 0);
}

/*
 * An enabled event does not keep the module loaded, and works again after reloading and enabling.
 */
TEST(module_goes_while_events_are_on)
{
	begin(ACP_INTEGRITY_TAG, false, 0);
	trace_on();
	CHECK_EQ(put_there(8), ACP_ST_OK);
	rank_close(&r[0]);
	rank_close(&r[1]);
	module_unload_soon();
	CHECK(access(EVENTS, F_OK));
	CHECK_EQ(module_load(""), 0);
	CHECK(!access(EVENTS "/acp_submit/format", F_OK));
	trace_on();
	nodes_ranks(&n, r, 2);
	CHECK_EQ(put_there(8), ACP_ST_OK);
	trace_off();
	CHECK_EQ(count_of("acp_complete: status=ok"), 1);
}

/* ---- routes ---- */

#define USER	1000
#define PROBE	"p:acp_class security_sk_classify_flow "

/* Make the probe.  Only newer kernels know the types of arguments: then it reports the user. */
static bool make_probe(void)
{
	int fd;
	bool typed;

	trace_mount();
	if (access(TRACING "/kprobe_events", W_OK))
		SKIP("this kernel has no kprobes");
	put("options/record-cmd", "0");
	fd = open(TRACING "/kprobe_events", O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	typed = write(fd, PROBE "user=sk->sk_uid.val", sizeof(PROBE "user=sk->sk_uid.val") - 1) > 0;
	close(fd);
	if (!typed)
		put("kprobe_events", PROBE "sk=$arg1");
	put("events/kprobes/acp_class/trigger", "stacktrace");
	put("tracing_on", "1");
	put("trace", "");
	put("events/kprobes/acp_class/enable", "1");
	return typed;
}

/*
 * A security module gives its class to each route: it is asked, about the socket of the rank's
 * user. (What a module with a loaded policy answers is not tested.)
 */
static void asks_for_class(bool ipv6)
{
	const struct acp_join wish = { .timeout_ms = 30000, .open_timeout_ms = 30000 };
	bool typed = make_probe();
	const char *at;

	nodes_open(&n, 2, 1, ipv6);
	nodes_join_as(USER, &n, &r[0], 0, 2, &wish);
	nodes_join_like(&n, &r[1], 1, 2, &wish);
	CHECK_EQ(put_there(8), ACP_ST_OK);
	put("events/kprobes/acp_class/enable", "0");
	put("events/kprobes/acp_class/trigger", "!stacktrace");
	text = get("trace");
	put("kprobe_events", "");	/* it is opened for truncation: the probe goes */
	at = typed ? find_from(text, "acp_class: user=1000") : text;
	CHECK(at && strstr(at, "acp_route_find"));
}

TEST(route_has_the_class_of_its_sender)
{
	asks_for_class(false);
}

TEST(route_has_the_class_of_its_sender_ipv6)
{
	asks_for_class(true);
}
