// SPDX-License-Identifier: MIT
/*
 * Cost of sockets without ACP, for comparison with acp_perf.
 *
 *	sockets echo udp|tcp HERE PORT [spin]	answers requests, until killed
 *	sockets ask udp|tcp HERE THERE PORT SIZE N [spin]	N requests, each after an answer
 *	sockets take HERE PORT			receives streams of datagrams, until killed
 *	sockets give HERE THERE PORT SECONDS SEGMENT [zerocopy]	sends one, by UDP GSO
 *
 * "spin" polls instead of sleeping. Both ends use the same port, so that an answer may be made by
 * exchanging addresses only. "ask" prints "median MICROSECONDS"; "give" prints "MB/s
 * OF_RECEIVED_PAYLOAD LOST_PERCENT COPIED_PERCENT": the last number is the part of data sent by
 * MSG_ZEROCOPY ("zerocopy") that the kernel copied nevertheless. Addresses are numeric, IPv4 or
 * IPv6.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/errqueue.h>	/* needs struct timespec */

#define WARM_UP		16
#define LOOKS		1024	/* polls between two reads of the clock */
#define TRIES		20	/* requests without an answer until giving up */
#define MOST		65536
#define BATCH		63000	/* bytes of a GSO batch */
#define BUFFER		(8 << 20)
#define MAX_SEGMENTS	64	/* limit of the kernel */
#define END		UINT64_C(0x656e64)	/* number in the last datagrams of a stream */
#define ENDS		20
#define FLYING		16	/* limit of pending sends by MSG_ZEROCOPY */
#define QUIET		200000	/* microseconds without data that end a stream */

static char packet[MOST];

static void die(const char *what)
{
	fprintf(stderr, "sockets: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct addrinfo *address(const char *host, const char *port, int type)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = type };
	struct addrinfo *found;

	if (getaddrinfo(host, port, &hints, &found) != 0) {
		fprintf(stderr, "sockets: %s: not an address\n", host);
		exit(2);
	}
	return found;
}

static void set(int fd, int level, int name, int value)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)) != 0)
		die("setsockopt");
}

/* Open a socket on the own address; a TCP client uses any port. */
static int open_socket(int type, const char *here, const char *port)
{
	struct addrinfo *a = address(here, port, type);
	int fd = socket(a->ai_family, type, 0);

	if (fd < 0)
		die("socket");
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind(fd, a->ai_addr, a->ai_addrlen) != 0)
		die("bind");
	freeaddrinfo(a);
	return fd;
}

static void connect_to(int fd, const char *there, const char *port, int type)
{
	struct addrinfo *a = address(there, port, type);

	if (connect(fd, a->ai_addr, a->ai_addrlen) != 0)
		die("connect");
	freeaddrinfo(a);
}

/*
 * Receive. Returns -1 if nothing arrives. Blocks or polls depending on the flags; polls for one
 * second.
 */
static ssize_t receive(int fd, size_t at, size_t size, int flags)
{
	uint64_t looks = 0, end = 0;
	ssize_t n;

	for (;;) {
		n = recv(fd, packet + at, size, flags);
		if (n >= 0 || (errno != EAGAIN && errno != EINTR) || flags == 0)
			return n;
		if (++looks % LOOKS != 0)
			continue;
		if (looks == LOOKS)
			end = now() + 1000000000;
		else if (now() > end)
			return n;	/* lost, or the other end is gone */
	}
}

static void echo_tcp(int fd, int flags)
{
	ssize_t n;
	int one;

	if (listen(fd, 1) != 0)
		die("listen");
	for (;;) {
		one = accept(fd, NULL, NULL);
		if (one < 0)
			die("accept");
		set(one, IPPROTO_TCP, TCP_NODELAY, 1);
		while ((n = receive(one, 0, MOST, flags)) > 0) {
			if (send(one, packet, (size_t)n, MSG_NOSIGNAL) != n)
				break;
		}
		close(one);
	}
}

static void echo_udp(int fd, int flags)
{
	struct sockaddr_storage from;
	socklen_t length;
	ssize_t n;

	for (;;) {
		length = sizeof(from);
		n = recvfrom(fd, packet, MOST, flags, (struct sockaddr *)&from, &length);
		if (n >= 0)
			sendto(fd, packet, (size_t)n, 0, (struct sockaddr *)&from, length);
	}
}

/*
 * Send a request and receive its answer, which may arrive in pieces. False if there is none. A late
 * answer to a previous request is ignored.
 */
static bool ask_once(int fd, size_t size, int flags, uint64_t number)
{
	uint64_t found;
	size_t got;
	ssize_t n;

	memcpy(packet, &number, sizeof(number));
	if (send(fd, packet, size, MSG_NOSIGNAL) != (ssize_t)size)
		return false;
	for (got = 0; got < size; got += (size_t)n) {
		n = receive(fd, got, size - got, flags);
		if (n <= 0)
			return false;
		memcpy(&found, packet, sizeof(found));
		if (got + (size_t)n >= sizeof(found) && found != number) {
			memcpy(packet, &number, sizeof(number));
			n = -(ssize_t)got;
		}
	}
	return true;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int ask(int fd, size_t size, size_t n, int flags)
{
	uint64_t *sample = calloc(n, sizeof(*sample)), begin;
	size_t i, failed = 0;

	if (sample == NULL)
		die("calloc");
	for (i = 0; i < WARM_UP + n && failed < TRIES;) {
		begin = now();
		if (!ask_once(fd, size, flags, i + failed + 1)) {
			failed++;
			continue;
		}
		if (i >= WARM_UP)
			sample[i - WARM_UP] = now() - begin;
		i++;
	}
	if (failed == TRIES) {
		fprintf(stderr, "sockets: no answer\n");
		return EXIT_FAILURE;
	}
	qsort(sample, n, sizeof(*sample), compare);
	printf("median %.4f\n", (double)sample[n / 2] / 1e3);
	free(sample);
	return EXIT_SUCCESS;
}

/* Datagrams of a stream begin with the number 0, the last ones with END. */
static void take(int fd)
{
	struct sockaddr_storage from;
	uint64_t bytes = 0, first = 0, last = 0, mark, result[2];
	socklen_t length = sizeof(from);
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &(int){ BUFFER }, sizeof(int));
	set(fd, IPPROTO_UDP, UDP_GRO, 1);
	while ((n = recvfrom(fd, packet, MOST, 0, (struct sockaddr *)&from, &length)) >= 0) {
		memcpy(&mark, packet, sizeof(mark));
		if (mark == END) {
			result[0] = bytes;
			result[1] = last - first;
			sendto(fd, result, sizeof(result), 0, (struct sockaddr *)&from, length);
			continue;
		}
		last = now();
		first = bytes == 0 ? last : first;
		bytes += (uint64_t)n;
	}
	die("recvfrom");
}

/* Sends by MSG_ZEROCOPY: their number, those that completed, and those of them that were copied. */
struct zerocopy {
	uint64_t sent, done, copied;
};

/* Read one completion message of the kernel for a range of sends. False if there is none. */
static bool take_completion(int fd, struct zerocopy *z)
{
	union {
		char space[CMSG_SPACE(sizeof(struct sock_extended_err) +
				      sizeof(struct sockaddr_in6))];
		struct cmsghdr align;
	} control;
	struct msghdr m = { .msg_control = &control, .msg_controllen = sizeof(control) };
	struct sock_extended_err e;
	uint64_t range;

	if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0 || CMSG_FIRSTHDR(&m) == NULL)
		return false;
	memcpy(&e, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(e));
	if (e.ee_origin != SO_EE_ORIGIN_ZEROCOPY)
		return true;
	range = (uint64_t)(e.ee_data - e.ee_info) + 1;
	z->done += range;
	if (e.ee_code & SO_EE_CODE_ZEROCOPY_COPIED)
		z->copied += range;
	return true;
}

/* Wait until at most @most sends are pending. */
static void settle(int fd, struct zerocopy *z, uint64_t most)
{
	struct pollfd p = { .fd = fd };

	while (z->sent - z->done > most) {
		if (!take_completion(fd, z) && poll(&p, 1, 1000) <= 0)
			die("no completion of MSG_ZEROCOPY");
	}
}

static int report(int fd, uint64_t sent, const struct zerocopy *z)
{
	const uint64_t end = END;
	uint64_t result[2];
	int i;

	set(fd, IPPROTO_UDP, UDP_SEGMENT, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 1, 0 }, sizeof(struct timeval));
	for (i = 0; i < ENDS; i++) {
		usleep(QUIET);
		send(fd, &end, sizeof(end), 0);
		if (recv(fd, result, sizeof(result), 0) != sizeof(result) || result[1] == 0)
			continue;
		printf("MB/s %.1f %.2f %.0f\n", 1e3 * (double)result[0] / (double)result[1],
		       100.0 * (double)(sent - result[0]) / (double)sent,
		       z->done != 0 ? 100.0 * (double)z->copied / (double)z->done : 0.0);
		return EXIT_SUCCESS;
	}
	fprintf(stderr, "sockets: nobody took the stream\n");
	return EXIT_FAILURE;
}

static int give(int fd, double seconds, size_t segment, int flags)
{
	uint64_t end = now() + (uint64_t)(seconds * 1e9), sent = 0;
	struct zerocopy z = { 0 };
	size_t batch = segment != 0 ? BATCH / segment * segment : 0;

	if (batch == 0 || batch / segment > MAX_SEGMENTS) {
		fprintf(stderr, "sockets: segments of %zu bytes\n", segment);
		return 2;
	}
	set(fd, IPPROTO_UDP, UDP_SEGMENT, (int)segment);
	if (flags & MSG_ZEROCOPY)
		set(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
	while (now() < end) {
		if (send(fd, packet, batch, flags) == (ssize_t)batch) {
			sent += batch;
			z.sent += (flags & MSG_ZEROCOPY) != 0;
			settle(fd, &z, FLYING);
			continue;
		}
		if (errno == ENOBUFS && z.sent != z.done)
			settle(fd, &z, z.sent - z.done - 1);
		else if (errno != ECONNREFUSED && errno != ENOBUFS)
			die("send");
	}
	settle(fd, &z, 0);
	return report(fd, sent, &z);
}

static int usage(void)
{
	fprintf(stderr, "usage: sockets echo udp|tcp HERE PORT [spin]\n"
		"       sockets ask udp|tcp HERE THERE PORT SIZE N [spin]\n"
		"       sockets take HERE PORT\n"
		"       sockets give HERE THERE PORT SECONDS SEGMENT [zerocopy]\n");
	return 2;
}

static int run_ask(char **argv, int flags)
{
	int type = strcmp(argv[2], "tcp") == 0 ? SOCK_STREAM : SOCK_DGRAM;
	int fd = open_socket(type, argv[3], type == SOCK_STREAM ? "0" : argv[5]);
	size_t size = strtoul(argv[6], NULL, 10), n = strtoul(argv[7], NULL, 10);

	if (size < sizeof(uint64_t) || size > MOST || n == 0)
		return usage();
	connect_to(fd, argv[4], argv[5], type);
	if (type == SOCK_STREAM)
		set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	else	/* a missing answer ends the wait */
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 2, 0 },
			   sizeof(struct timeval));
	return ask(fd, size, n, flags);
}

int main(int argc, char **argv)
{
	bool spin = argc > 1 && strcmp(argv[argc - 1], "spin") == 0;
	bool zerocopy = argc > 1 && strcmp(argv[argc - 1], "zerocopy") == 0;
	int flags = spin ? MSG_DONTWAIT : 0, fd;

	argc -= spin + zerocopy;
	if (argc == 5 && strcmp(argv[1], "echo") == 0) {
		bool tcp = strcmp(argv[2], "tcp") == 0;

		fd = open_socket(tcp ? SOCK_STREAM : SOCK_DGRAM, argv[3], argv[4]);
		if (tcp)
			echo_tcp(fd, flags);
		else
			echo_udp(fd, flags);
	} else if (argc == 8 && strcmp(argv[1], "ask") == 0) {
		return run_ask(argv, flags);
	} else if (argc == 4 && strcmp(argv[1], "take") == 0) {
		take(open_socket(SOCK_DGRAM, argv[2], argv[3]));
	} else if (argc == 7 && strcmp(argv[1], "give") == 0) {
		fd = open_socket(SOCK_DGRAM, argv[2], "0");
		connect_to(fd, argv[3], argv[4], SOCK_DGRAM);
		return give(fd, strtod(argv[5], NULL), strtoul(argv[6], NULL, 10),
			    zerocopy ? MSG_ZEROCOPY : 0);
	}
	return usage();
}
