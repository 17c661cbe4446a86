/* SPDX-License-Identifier: MIT */
/*
 * A node that is played by hand: a plain UDP socket where a job expects one
 * of its nodes.  With the job's key it can say anything, right or wrong, to
 * the kernel that runs another node ("the victim").
 */
#ifndef INJECT_H
#define INJECT_H

#include "aead.h"
#include "frame.h"
#include "nodes.h"
#include "siphash.h"

#define INJECT_MOST	65507		/* bytes of a datagram */

struct inject {
	const struct nodes *nodes;
	uint32_t me, victim;		/* nodes */
	int fd;				/* bound and connected; errors of ICMP show, too */
	struct siphash_key key;
	bool sealed;			/* all frames are encrypted, with these keys */
	uint8_t key_out[32], key_in[32];
	struct acp_frame_hello setup;	/* as the victim told */
	struct acp_frame base;		/* job, generation, node, color, epochs of a good frame */
	uint64_t seq;			/* of the next DATA frame */
	uint64_t acked;			/* the victim has applied all frames before this one */
	uint64_t heard;			/* the victim's DATA frames before this one are here */
};

/* Take the place of node "me" in a job that setup describes. */
void inject_open(struct inject *x, const struct nodes *n, uint32_t me, uint32_t victim,
		 const struct setup *s);

/* A socket at a node, bound to an address and port, connected to the victim's. */
int inject_socket(const struct inject *x, uint32_t node, const char *address, uint16_t port);

/* Answer the victim's HELLO, which it sends since it wants something of us. */
void inject_handshake(struct inject *x);

/* A header that is good but for what the caller then changes; of DATA: the next number. */
struct acp_frame inject_header(struct inject *x, uint8_t type);

/* Write header, tag and body, encrypted, to "out"; returns the bytes of the datagram. */
size_t inject_build(const struct inject *x, void *out, const struct acp_frame *f,
		    const void *body, size_t length);

/* Write the right tag into a datagram, "tagged" bytes of which it covers. */
void inject_sign(const struct inject *x, void *datagram, size_t tagged);

void inject_send(const struct inject *x, const void *datagram, size_t size);
void inject_frame(const struct inject *x, const struct acp_frame *f, const void *body,
		  size_t length);

/* A message, with payload for DATA, at "out": its size. */
size_t inject_message(void *out, const struct acp_msg *m, const void *payload);

/* Send messages in a good DATA frame: its number. */
uint64_t inject_data(struct inject *x, const void *body, size_t length);

/* A good put from our rank. */
uint64_t inject_put(struct inject *x, uint32_t origin, uint64_t ticket, uint64_t dst,
		    const void *payload, uint32_t length);

/*
 * Receive what comes within ms: false if nothing does.  A frame must be good;
 * body has room for INJECT_MOST bytes, or is NULL.
 */
bool inject_receive(struct inject *x, struct acp_frame *f, void *body, unsigned int ms);

/* Take what is on its way to us. */
void inject_drain(struct inject *x);

/* Tell the victim that all its DATA frames so far are here. */
void inject_ack(struct inject *x);

/* Wait until the victim has applied our frame. */
void inject_applied(struct inject *x, uint64_t seq);

/* Wait for the DONE of a command of ours: its status. */
int inject_done(struct inject *x, uint64_t ticket);

/* Nothing comes back, neither a frame nor an error of the network. */
void inject_silence(struct inject *x, unsigned int ms);

#endif /* INJECT_H */
