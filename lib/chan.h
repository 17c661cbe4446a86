/* SPDX-License-Identifier: MIT */
/*
 * Channels: what their files share.
 *
 *	chan.c		the public functions; requests
 *	sender.c	the sending end
 *	receiver.c	the receiving end
 *
 * A message of up to EAGER bytes goes as a frame into the receiver's ring (see
 * ring.h): one put, whatever the receiver does meanwhile.  A longer one is
 * lent: the sender registers the buffer and sends where it is; the receiver
 * fetches it to where it wants it, and counts that in the sender's block.  What
 * cannot be registered goes through the ring in parts.
 *
 * Before the ends have met, the sender makes frames in its copy of the ring;
 * the receiver takes what is there when it finds the sender, so that those
 * messages do not need the sender's process any more.
 *
 *	written by	what				where
 *	sender		frames				ring of the receiver
 *	receiver	answer (to the offer)		block of the sender
 *	receiver	consumed, returned, ended	block of the sender, by atomic adds
 */
#ifndef LIBACP_CHAN_H
#define LIBACP_CHAN_H

#include "meet.h"
#include "ring.h"

#pragma GCC visibility push(hidden)

#define LIBACP_EAGER		4096u	/* bytes of a message or a part, at most */
#define LIBACP_LOANS		32u	/* messages of a channel that are lent at a time */
#define LIBACP_BOUNCE		4096u	/* bytes, for fetching where nothing can be registered */
#define LIBACP_QUARTERS		4u	/* of a ring */
#define LIBACP_ENDED_WELL	1u
#define LIBACP_ENDED_BADLY	(1ull << 32)

/* The block of the sending end. */
struct libacp_chan_source {
	struct libacp_offer offer;	/* data[0]: words of the ring in use, until MET */
	uint64_t consumed;		/* words that the receiver needs no more */
	uint64_t returned;		/* loans that it needs no more */
	uint64_t ended;			/* LIBACP_ENDED_: it touches this block no more */
	uint64_t ring[LIBACP_RING_WORDS];
};

/* The block of the receiving end. */
struct libacp_chan_sink {
	uint64_t state;			/* 0, or LIBACP_LOST */
	uint64_t ring[LIBACP_RING_WORDS];
	uint64_t answer[2];
	char bounce[LIBACP_BOUNCE];
};

/* The payload of LIBACP_FRAME_LOAN. */
struct libacp_chan_loan {
	uint64_t size;
	acp_ga_t ga;
};

enum libacp_request_kind { LIBACP_SEND, LIBACP_RECEIVE, LIBACP_FREE };

/* How a request that has begun goes on; it is finished in the order of the requests. */
enum libacp_request_way {
	LIBACP_BY_FRAME,	/* all of it is in a frame */
	LIBACP_BY_LOAN,		/* lent, or being fetched */
	LIBACP_BY_PARTS		/* through the ring, or fetched through the bounce buffer */
};

struct chreqitem {
	struct chreqitem *later, **link;	/* all that were not waited for */
	struct chreqitem *next;		/* of the same end */
	struct chitem *ch;		/* NULL when done */
	enum libacp_request_kind kind;
	enum libacp_request_way way;
	char *buffer;
	size_t size;			/* of the buffer; in the end the result */
	size_t moved;			/* bytes, BY_PARTS */
	uint64_t end;			/* sender: position behind its last frame */
	uint64_t loan;			/* sender: its number, from 1 */
	acp_handle_t access[2];		/* sender: puts of its last frame; receiver: the fetch */
	acp_atkey_t key;		/* of the buffer while it is registered */
	acp_ga_t from;			/* receiver: what is lent */
};

struct chitem {
	struct libacp_end end;
	/* Requests: [first, next) have begun, [next, NULL) have not. */
	struct chreqitem *first, *next, **last;
	bool closing;			/* a free was requested */
	bool closed;			/* the CLOSE frame is on its way, or has come */
	bool freed;			/* the free request is done: nobody knows this end */
	uint64_t done, done_before;	/* requests, in all, and before the last wait */

	/* sender */
	struct chreqitem *fresh;	/* in [first, next): the first one not put yet */
	uint64_t tail, put;		/* positions: frames are made, put up to here */
	uint64_t taken;			/* ... and were fetched by the receiver up to here */
	uint64_t loans;			/* lent so far */
	acp_handle_t quarters[LIBACP_QUARTERS];	/* newest puts out of each */

	/* receiver */
	uint64_t head, credited;	/* positions: read, told to the sender */
	uint64_t awaited, arrived;	/* bytes of a message in parts; awaited 0: none */
	acp_handle_t taking, answering;	/* fetch of the sender's first frames; the answer */
	acp_handle_t telling;		/* newest count in the sender's block */
	bool answered, given_up;
};

static inline struct chitem *libacp_chan_of(struct libacp_end *end)
{
	return (struct chitem *)end;
}

/* ---- chan.c ---- */

/* The first request is done, with that result. */
void libacp_request_done(struct chitem *ch, size_t result);

/* All are, without success. */
void libacp_request_fail(struct chitem *ch);

/* The rank is none any more: all ends and requests are void. */
void libacp_chan_close(void);

/* ---- sender.c, receiver.c ---- */

enum libacp_progress libacp_sender_progress(struct libacp_end *end);
enum libacp_progress libacp_receiver_progress(struct libacp_end *end);
void libacp_receiver_leave(struct chitem *ch);	/* tell the sender */

#pragma GCC visibility pop

#endif /* LIBACP_CHAN_H */
