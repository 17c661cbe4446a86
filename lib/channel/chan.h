/* SPDX-License-Identifier: MIT */
/*
 * Declarations shared by the files of channels.
 *
 *	chan.c		the public functions
 *	request.c	requests
 *	sender.c	the sending end
 *	receiver.c	the receiving end
 *
 * A message of up to EAGER bytes is put as a frame into the ring of the receiver (see ring.h): one
 * put, regardless of the state of the receiver. A longer message is lent: the sender registers the
 * buffer and sends its address; the receiver fetches it directly into its own buffer and increments
 * a counter in the block of the sender. A buffer that cannot be registered goes through the ring in
 * parts.
 *
 * Before the ends are connected, the sender writes frames to its copy of the ring. The receiver
 * fetches these frames when it connects, so that these messages do not depend on the sender any
 * more.
 *
 *	written by	what				where
 *	sender		frames				ring of the receiver
 *	receiver	answer (to the offer)		block of the sender
 *	receiver	consumed, returned, ended	block of the sender, by atomic adds
 */
#ifndef LIBACP_CHAN_H
#define LIBACP_CHAN_H

#include "channel/rendezvous.h"
#include "channel/ring.h"

#pragma GCC visibility push(hidden)

#define LIBACP_EAGER		4096u	/* maximum size of a message or part in a frame, bytes */
/* maximum number of messages of a channel that are lent at a time */
#define LIBACP_LOANS		32u
/* buffer in bytes for fetching to memory that cannot be registered */
#define LIBACP_BOUNCE		4096u
#define LIBACP_QUARTERS		4u	/* parts of a ring for which puts are tracked */
#define LIBACP_ENDED_WELL	1u
#define LIBACP_ENDED_BADLY	(1ull << 32)

/* The block of the sending end. */
struct libacp_chan_source {
	struct libacp_offer offer;	/* data[0]: words of the ring in use, until connected */
	uint64_t consumed;		/* words that the receiver has read */
	uint64_t returned;		/* loans that the receiver has fetched */
	/* LIBACP_ENDED_: the receiver accesses this block no more */
	uint64_t ended;
	uint64_t ring[LIBACP_RING_WORDS];
};

/* The block of the receiving end. */
struct libacp_chan_sink {
	uint64_t state;			/* 0, or LIBACP_LOST */
	uint64_t ring[LIBACP_RING_WORDS];
	uint64_t answer[2];
	char bounce[LIBACP_BOUNCE];
};

/* Payload of LIBACP_FRAME_LOAN. */
struct libacp_chan_loan {
	uint64_t size;
	acp_ga_t ga;
};

enum libacp_request_kind { LIBACP_SEND, LIBACP_RECEIVE, LIBACP_FREE };

/* How a request is transferred once it has begun. Requests complete in order. */
enum libacp_request_way {
	LIBACP_BY_FRAME,	/* completely in a frame */
	LIBACP_BY_LOAN,		/* lent, or being fetched */
	LIBACP_BY_PARTS		/* through the ring, or fetched through the bounce buffer */
};

struct chreqitem {
	struct chreqitem *later, **link;	/* list of requests that were not waited for */
	struct chreqitem *next;		/* next request of the same end */
	struct chitem *ch;		/* NULL: done */
	enum libacp_request_kind kind;
	enum libacp_request_way way;
	char *buffer;
	size_t size;			/* of the buffer; finally the result */
	size_t moved;			/* bytes transferred BY_PARTS */
	uint64_t end;			/* sender: position behind its last frame */
	uint64_t loan;			/* sender: its number, from 1 */
	acp_handle_t access[2];		/* sender: puts of its last frame; receiver: the fetch */
	acp_atkey_t key;		/* of the buffer while it is registered */
	acp_ga_t from;			/* receiver: address of the lent buffer */
};

struct chitem {
	struct libacp_end end;
	/* Requests: those in [first, next) have begun, those in [next, NULL) have not. */
	struct chreqitem *first, *next, **last;
	bool closing;			/* a free was requested */
	bool closed;			/* the CLOSE frame has been sent or received */
	/* the free request is done: the application does not use this end any more */
	bool freed;
	/* number of completed requests: total, and before the last wait */
	uint64_t done, done_before;

	/* sender */
	struct chreqitem *fresh;	/* first request in [first, next) that was not put yet */
	uint64_t tail, put;		/* positions up to which frames were written and put */
	uint64_t taken;			/* ... and were fetched by the receiver */
	uint64_t loans;			/* lent so far */
	acp_handle_t quarters[LIBACP_QUARTERS];	/* latest put from each quarter of the ring */

	/* receiver */
	uint64_t head, credited;	/* positions: read, and reported to the sender */
	uint64_t awaited, arrived;	/* bytes of a message in parts; awaited 0: none */
	acp_handle_t taking, answering;	/* fetch of the first frames of the sender; the answer */
	acp_handle_t telling;		/* latest add to the block of the sender */
	bool answered, given_up;
};

static inline struct chitem *libacp_chan_of(struct libacp_end *end)
{
	return (struct chitem *)end;
}

/* ---- request.c: called with the lock held ---- */

#define LIBACP_FAILED		((size_t)-1)	/* result of a failed request */

/* Append a request to an end. Returns NULL if memory is exhausted. */
struct chreqitem *libacp_request_new(struct chitem *ch, enum libacp_request_kind kind, void *buffer,
				     size_t size);

/* Free one request, or all requests. */
void libacp_request_forget(struct chreqitem *r);
void libacp_request_forget_all(void);

/* Complete the first request with a result. */
void libacp_request_done(struct chitem *ch, size_t result);

/*
 * Fail all requests. A request is failed only after the access that fills its buffer has ended,
 * because the application may reuse the buffer then. True if all requests have failed.
 */
bool libacp_request_fail(struct chitem *ch);

/* ---- chan.c ---- */

/**
 * libacp_chan_close() - free all ends and requests after the process has stopped being a rank
 *
 * The handles that the application has of them are invalid from then on.
 *
 * Context: the thread that leaves; no other rank can access the blocks of the ends any more. Takes
 * the lock of rendezvous.c.
 */
void libacp_chan_close(void);

/* ---- sender.c, receiver.c ---- */

enum libacp_progress libacp_sender_progress(struct libacp_end *end);
enum libacp_progress libacp_receiver_progress(struct libacp_end *end);
void libacp_receiver_leave(struct chitem *ch);	/* tell the sender */

#pragma GCC visibility pop

#endif /* LIBACP_CHAN_H */
