/* SPDX-License-Identifier: MIT */
/*
 * A node simulated by the test: a plain UDP socket at the address of a node of a job. With the job
 * key it can send any frames, valid or not, to the kernel of another node ("the victim").
 */
#ifndef INJECT_H
#define INJECT_H

#include "aead.h"
#include "aegis.h"
#include "frame.h"
#include "gcm.h"
#include "longtag.h"
#include "nodes.h"
#include "siphash.h"

#define INJECT_MAX	65507		/* maximum size of a datagram */

struct inject {
	const struct nodes *nodes;
	uint32_t me, victim;		/* node numbers */
	int fd;				/* bound and connected; reports ICMP errors */
	struct siphash_key key;
	bool long_tags;			/* tags cover long payloads: integrity tag */
	bool encrypted;			/* all frames are encrypted with these keys */
	uint8_t key_out[32], key_in[32];
	uint32_t cipher;		/* ACP_CIPHER_, of frames to send except HELLO */
	uint8_t aes_out[32], aes_in[32];
	uint8_t aegis_out[32], aegis_in[32];	/* the first 16 bytes are used */
	struct acp_frame_hello setup;	/* as received from the victim */
	struct acp_frame base;		/* job, generation, node, color, epochs of a valid frame */
	uint64_t seq;			/* of the next DATA frame */
	uint64_t acked;			/* the victim has applied all frames before this one */
	/* all DATA frames of the victim before this one have been received */
	uint64_t heard;
};

/* Take the place of node "me" in the job described by setup. */
void inject_open(struct inject *x, const struct nodes *n, uint32_t me, uint32_t victim,
		 const struct setup *s);

/* Create a socket at a node, bound to an address and port, connected to that of the victim. */
int inject_socket(const struct inject *x, uint32_t node, const char *address, uint16_t port);

/* Answer the HELLO that the victim sends when it accesses our node. */
void inject_handshake(struct inject *x);

/* Take the place of node 1, to which a rank of node 0 opens a flow by a put to a rank there. */
void inject_begin(struct inject *x, const struct nodes *n, const struct setup *s,
		  struct rank *victim, uint32_t to);

/* Return a valid header, which the caller may change; DATA: with the next number. */
struct acp_frame inject_header(struct inject *x, uint8_t type);

/* Write header, tag and body to "out", encrypted if necessary. Returns the size of the datagram. */
size_t inject_build(const struct inject *x, void *out, const struct acp_frame *f,
		    const void *body, size_t length);

/*
 * Write the valid tag to a datagram of "size" bytes, after any changes. The tagged part ends at
 * "tagged", and may be followed by a long payload.
 */
void inject_sign(const struct inject *x, void *datagram, size_t tagged, size_t size);

void inject_send(const struct inject *x, const void *datagram, size_t size);
void inject_frame(const struct inject *x, const struct acp_frame *f, const void *body,
		  size_t length);

/* Write a message to "out", DATA with its payload. Returns its size. */
size_t inject_message(void *out, const struct acp_msg *m, const void *payload);

/* Send messages in a valid DATA frame. Returns its number. */
uint64_t inject_data(struct inject *x, const void *body, size_t length);

/* Send a valid put of our rank. */
uint64_t inject_put(struct inject *x, uint32_t origin, uint64_t ticket, uint64_t dst,
		    const void *payload, uint32_t length);

/*
 * Receive a frame within ms. False if there is none. The frame must be valid; body has space for
 * INJECT_MAX bytes, or is NULL.
 */
bool inject_receive(struct inject *x, struct acp_frame *f, void *body, unsigned int ms);

/* Receive a frame that must arrive. */
void inject_expect(struct inject *x, struct acp_frame *f, void *body);

/* Receive everything that is in flight to us. */
void inject_drain(struct inject *x);

/* Acknowledge all DATA frames of the victim so far. */
void inject_ack(struct inject *x);

/* Wait until the victim has applied our frame. */
void inject_applied(struct inject *x, uint64_t seq);

/* Wait for the DONE of our command. Returns its status. */
int inject_done(struct inject *x, uint64_t ticket);

/* Check that nothing arrives, neither a frame nor an ICMP error. */
void inject_silence(struct inject *x, unsigned int ms);

#endif /* INJECT_H */
