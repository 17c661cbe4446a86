/* SPDX-License-Identifier: MIT */
/* Batches that a test sends to a victim. */
#ifndef GSO_PLAY_H
#define GSO_PLAY_H

#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>

#include "../unit/crc32c.h"
#include "batches.h"
#include "inject.h"

#define KB		1024UL
#define LONG		(256 * KB)
#define HEADER		sizeof(struct acp_frame_hdr)

static struct nodes n;

/* A victim, and a node that sends batches to it. */

#define VICTIM_SIZE	(16 * KB)
#define PIECE		256		/* bytes of a payload */

static struct inject x;
static struct setup setup;
static struct rank victim, second;
static struct memory target;
static char batch[60000];
static size_t filled_up;		/* bytes used */

static inline void play(bool ipv6, uint32_t integrity)
{
	nodes_open(&n, 2, 1, ipv6);
	nodes_setup(&n, &setup, 0, 4);
	setup.join.integrity = integrity;
	nodes_join(&n, &victim, &setup);
	setup.join.rank = 1;
	nodes_join(&n, &second, &setup);
	memory_open(&victim, &target, VICTIM_SIZE);
	inject_begin(&x, &n, &setup, &victim, 2);
	filled_up = 0;
}

/* Add a frame with a put of PIECE bytes of value i + 1 to place i. Returns its datagram. */
static inline char *add_put(uint32_t i, uint8_t flags)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .flags = ACP_MSG_LAST, .origin = 2, .ticket = 100 + i,
		.dst = memory_ga(&target, i * PIECE), .length = PIECE,
	};
	char body[PIECE + 100], data[PIECE], *at = batch + filled_up;

	memset(data, (int)i + 1, sizeof(data));
	f.flags |= flags;
	filled_up += inject_build(&x, at, &f, body, inject_message(body, &m, data));
	return at;
}

static inline bool is_there(uint32_t i)
{
	uint32_t b, count = 0;

	for (b = 0; b < PIECE; b++)
		count += (unsigned char)target.addr[i * PIECE + b] == i + 1;
	CHECK(!count || count == PIECE);
	return count;
}

/* Send the batch in segments of @each bytes. It arrives as one datagram. */
static inline void depart(size_t each)
{
	int size = (int)each, none = 0;

	CHECK_EQ(setsockopt(x.fd, SOL_UDP, UDP_SEGMENT, &size, sizeof(size)), 0);
	inject_send(&x, batch, filled_up);
	CHECK_EQ(setsockopt(x.fd, SOL_UDP, UDP_SEGMENT, &none, sizeof(none)), 0);
	filled_up = 0;
}

static inline struct count count(const char *name)
{
	return nodes_count(&n, 0, name);
}

#define EACH	(HEADER + sizeof(struct acp_msg_data) + PIECE)

/* Return the bytes of such a frame in this job. */
static inline size_t each(void)
{
	return EACH + (x.encrypted ? ACP_FRAME_ENCRYPTED : 0);
}

#define BY_AES		(ACP_CIPHER_AES | ACP_CIPHER_WANTS)
#define BY_AEGIS	(ACP_CIPHER_AEGIS | ACP_CIPHER_WANTS_AEGIS)

/* The same in a job with encryption; the test uses that cipher. */
static inline void play_encrypted(bool ipv6, uint32_t cipher)
{
	const char *name = cipher & ACP_CIPHER_AES ? "generic-gcm-aes" : "aegis128";

	play(ipv6, ACP_INTEGRITY_AEAD);
	if (cipher && !nodes_said("/proc/crypto", name))
		SKIP("this kernel has no %s", name);
	x.cipher = cipher;
}

static inline void all_there(uint32_t from_place, uint32_t end)
{
	for (; from_place < end; from_place++)
		if (!is_there(from_place))
			FAIL("piece %u is not there", from_place);
}

/*
 * Send forty valid frames in one datagram. Returns the number of datagrams that the socket
 * received.
 */
static inline long long forty(void)
{
	long long before = batches_datagrams(&n, 0);
	uint32_t i;

	memset(target.addr, 0, 40 * PIECE);
	for (i = 0; i < 40; i++)
		add_put(i, ACP_FRAME_BULK);
	depart(EACH);
	inject_applied(&x, x.seq - 1);
	all_there(0, 40);
	return batches_datagrams(&n, 0) - before;
}

/*
 * UDP does not segment a datagram if the module knows its path, which it learns from the first
 * frame of each second, possibly from this one.
 */
static inline void good(bool ipv6, uint32_t integrity)
{
	int tries = 5;

	play(ipv6, integrity);
	while (forty() != 1)
		CHECK(--tries);
	/* The last frame may be shorter, and a batch may have two frames. */
	add_put(40, ACP_FRAME_BULK);
	add_put(41, ACP_FRAME_BULK);
	depart(EACH);
	inject_applied(&x, x.seq - 1);
	all_there(0, 42);
}

/* Add piece i of the copy "ticket"; the first piece goes to "first". */
static inline char *add_piece(uint64_t ticket, uint32_t origin, uint64_t first, uint32_t i,
			      bool last)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .flags = last ? ACP_MSG_LAST : 0, .origin = origin,
		.ticket = ticket, .dst = first + (uint64_t)i * PIECE, .length = PIECE,
	};
	char body[PIECE + 100], data[PIECE], *at = batch + filled_up;

	memset(data, (int)i + 1, sizeof(data));
	f.flags |= (x.encrypted ? 0 : ACP_FRAME_BULK) | (last ? ACP_FRAME_FENCE : 0);
	filled_up += inject_build(&x, at, &f, body, inject_message(body, &m, data));
	return at;
}

/* Other pieces of the batch may be accepted after a rejected one was counted. */
static inline void await_piece(uint32_t i)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	while (target.addr[i * PIECE + PIECE - 1] != (char)(i + 1)) {
		if (patience_over(&p))
			FAIL("piece %u is not there", i);
		sleep_ms(1);
	}
	CHECK(is_there(i));
}

#endif /* GSO_PLAY_H */
