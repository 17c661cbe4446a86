/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One reliable, unordered flow of frames between two nodes on one color.
 *
 * It does no I/O: the caller supplies frames, times and acknowledgements; the functions return
 * what to do. The caller serializes all calls on a flow with one lock. Times are nanoseconds of a
 * monotonic clock.
 *
 * Sending: each DATA frame gets a number and a slot, which keeps the caller's token until the frame
 * is acknowledged. A frame is considered lost when a frame sent later was acknowledged, or after a
 * time-out. If a frame lost by time-out is acknowledged before its retransmission, or so soon
 * afterwards that this cannot be the answer, it had arrived: the path or the peer had stalled, and
 * the time-out is taken back. (A combination of F-RTO, RFC 5682, and Eifel, RFC 3522.)
 *
 * Receiving takes two steps. acp_flow_accept() reserves the number, so that duplicates are dropped.
 * acp_flow_applied() records that the effect of the frame is in memory; only then may the frame be
 * acknowledged and let fenced frames pass.
 *
 * Epochs: each side draws a random number when its end of the flow begins, and each frame must
 * carry both numbers. A frame of another incarnation of either end, or of another run of the job,
 * does not match. A restart of the peer is accepted only after the peer has answered to a number
 * drawn for this purpose.
 */
#ifndef ACP_FLOW_H
#define ACP_FLOW_H

#include "port.h"
#include "cong.h"
#include "frame.h"

/*
 * Frame numbers reserved for answers. A frame with a failed message is not acknowledged before the
 * sender knows of the failure, that is, has processed the DONE that reports it. So that DONE must
 * get through regardless of what waits at both ends: it is sent in a frame with nothing but such
 * DONEs, which is never fenced and not limited by the window. One frame answers all failures of one
 * frame, so half of the numbers suffice.
 */
#define ACP_FLOW_ANSWERS	(ACP_FRAME_WINDOW / 2)

#define ACP_FLOW_HELD	64	/* early fenced frames that are kept, at most */

#define ACP_FLOW_RTO_MIN	100000ULL	/* 100 us */
#define ACP_FLOW_RTO_MAX	100000000ULL	/* 100 ms */
#define ACP_FLOW_RTO_INIT	5000000ULL
#define ACP_FLOW_ACK_DELAY	500000ULL	/* for lazy frames; time-outs allow for it */
#define ACP_FLOW_ACK_EVERY	8	/* ... and at most so many lazy frames */

enum acp_flow_state {
	ACP_FLOW_CLOSED,	/* never used, or failed and not tried again yet */
	ACP_FLOW_OPENING,	/* a HELLO has been sent */
	ACP_FLOW_OPEN,
};

enum acp_slot_state { ACP_SLOT_FREE, ACP_SLOT_FLIGHT, ACP_SLOT_LOST, ACP_SLOT_ACKED };

struct acp_flow_slot {
	void *token;		/* the caller's, from transmission to acknowledgement */
	u64 sent;		/* time of the last transmission */
	u8 state;		/* enum acp_slot_state */
	u8 tries;
	bool answer;
	bool fenced;		/* the peer may hold it until earlier frames arrive */
};

struct acp_flow {
	u8 state;		/* enum acp_flow_state */
	u8 backoff;		/* number of times that the time-out was doubled */
	bool ack_due;		/* an acknowledgement must be sent */
	bool probing;		/* a HELLO was sent to a silent peer */
	u8 late;		/* frames whose acknowledgement is delayed */
	bool marked;		/* the network has marked a frame since the last acknowledgement */
	u8 marks;		/* acknowledgements that reported marks, as in ACP_FRAME_MARKS */
	u8 marks_peer;		/* the same for those received from the peer */
	u64 ack_at;		/* when the delayed acknowledgement is due, 0: none is */
	u32 epoch;		/* of this end */
	u32 epoch_peer;		/* valid when open */
	u32 epoch_next;		/* of this end after a restart of the peer */

	/* sending */
	struct acp_flow_slot *slots;	/* ACP_FRAME_WINDOW, from the caller; needed to send */
	u64 next;		/* number of the next new frame */
	u64 una;		/* oldest unacknowledged number */
	u64 prompt;		/* acknowledgements of later frames may be delayed */
	u32 flight;		/* slots in flight */
	u32 lost;		/* slots to be retransmitted */
	u32 expect;		/* answers that the caller awaits from this peer */
	u64 recover;		/* losses before this number have been reacted to */
	u64 doubt;		/* numbers below it were in flight at a doubted time-out; 0: none */
	struct {
		u64 recover, rack;
	} before;		/* values before that time-out */
	u64 probe;		/* retransmitted although the time-out was taken back */
	u64 rack;		/* latest transmission time of an acknowledged frame */
	u64 srtt, rttvar, rto;	/* ns */
	u64 shortest;		/* ns, shortest round-trip time so far, 0: none yet */
	u64 rearm;		/* start of the time-out */
	u64 heard;		/* last sign of life, without replays; or start of waiting */
	u64 progress;		/* last acknowledgement of a frame not acknowledged before */
	struct acp_cong cong;
	u64 begun;		/* when it was opened; probes measure time from here */
	u64 asked;		/* when the last probe was sent on the open flow, 0: never */
	u64 question;		/* latest probe that the peer has answered, 0: none */
	u64 answered;		/* ... and when the first answer to it arrived */
	u64 limit;		/* ns of silence after which the peer has failed */
	u64 open_limit;		/* the same while opening */

	/* receiving */
	u64 rcv;		/* all smaller numbers have been applied */
	u32 beyond;		/* number of later frames that have been applied */
	u32 n_held;
	u64 accepted[ACP_FRAME_WINDOW / 64];	/* by number modulo window */
	u64 applied[ACP_FRAME_WINDOW / 64];
	u64 held[ACP_FRAME_WINDOW / 64];
};

/**
 * acp_flow_init() - initialize a flow, or reset one that has failed
 * @f: flow; its slots are not changed
 * @epoch: random number for this incarnation, not 0
 * @epoch_next: random number for the next incarnation, not 0, not @epoch
 * @limit: ns of silence after which the peer has failed
 * @open_limit: the same while the flow is opening
 *
 * Context: The caller holds the lock of the flow.
 */
void acp_flow_init(struct acp_flow *f, u32 epoch, u32 epoch_next, u64 limit, u64 open_limit);

/* ---- opening, epochs ---- */

/* Verdicts on the epochs of a frame, a bit mask. */
#define ACP_FLOW_DROP		0	/* not of this incarnation */
#define ACP_FLOW_PASS		1	/* accept the frame */
#define ACP_FLOW_OPENED		2	/* the flow is now open */
#define ACP_FLOW_RESTART	4	/* the peer has restarted: fail all, acp_flow_restart() */
#define ACP_FLOW_REPLY		8	/* send the HELLO that was filled */
#define ACP_FLOW_REFUSED	16	/* a mismatched peer answers: fail all, acp_flow_init() */

/* Begin to open the flow, unless this was done. */
void acp_flow_open(struct acp_flow *f, u64 now);

/**
 * acp_flow_open_wanted() - begin to open a closed flow that is needed
 * @f: flow
 * @wanted: the caller needs it; without, it is needed if an answer is expected
 * @now: time in ns
 *
 * Context: The caller holds the lock of the flow.
 * Return: True if the caller must send a HELLO, see acp_flow_ask().
 */
static inline bool acp_flow_open_wanted(struct acp_flow *f, bool wanted, u64 now)
{
	if (f->state != ACP_FLOW_CLOSED || !(wanted || f->expect))
		return false;
	acp_flow_open(f, now);
	return true;
}

enum acp_flow_ready {
	ACP_READY_OPEN,
	ACP_READY_NOT_YET,	/* it must be opened: ask again */
	ACP_READY_ENDED,	/* the incarnation has ended since the first call */
};

/**
 * acp_flow_ready() - test whether the flow is open in a given incarnation
 * @f: flow
 * @epoch: incarnation; if it is 0, as in a first call, it is set to the present one
 *
 * Context: The caller holds the lock of the flow.
 * Return: A value of enum acp_flow_ready.
 */
static inline enum acp_flow_ready acp_flow_ready(const struct acp_flow *f, u32 *epoch)
{
	if (*epoch && *epoch != f->epoch)
		return ACP_READY_ENDED;
	*epoch = f->epoch;
	return f->state == ACP_FLOW_OPEN ? ACP_READY_OPEN : ACP_READY_NOT_YET;
}

/**
 * acp_flow_lasts() - test whether an incarnation is the present one
 * @f: flow
 * @within: incarnation, 0: any
 *
 * Context: The caller holds the lock of the flow.
 * Return: True if what must be sent in this incarnation or not at all may be sent.
 */
static inline bool acp_flow_lasts(const struct acp_flow *f, u32 within)
{
	return !within || within == f->epoch;
}

/**
 * acp_flow_admit() - check the epochs of a DATA or ACK frame
 * @f: flow; may change to open
 * @fr: header of the frame, which must be authentic
 * @now: time in ns
 *
 * Context: The caller holds the lock of the flow.
 * Return: The verdict, ACP_FLOW_DROP, or ACP_FLOW_PASS with or without OPENED or RESTART.
 */
static inline u32 acp_flow_admit(struct acp_flow *f, const struct acp_frame *fr, u64 now);

/* Returns the verdict on a HELLO frame and fills the reply, if there is one. */
u32 acp_flow_hello(struct acp_flow *f, const struct acp_frame *fr, struct acp_frame *reply,
		   u64 now);

/*
 * Returns the verdict on a HELLO of a peer that does not belong to the job, at most REPLY and
 * REFUSED. A flow that is open is not affected.
 */
u32 acp_flow_hello_mismatched(const struct acp_flow *f, const struct acp_frame *fr,
			      struct acp_frame *reply);

/**
 * acp_flow_restart() - begin a new incarnation, after ACP_FLOW_RESTART
 * @f: flow; it becomes open
 * @epoch_peer: new epoch of the peer
 * @epoch_next: random number for the next incarnation, not 0, not an epoch in use
 * @now: time in ns
 *
 * The caller first fails everything that was in flight.
 *
 * Context: The caller holds the lock of the flow.
 */
void acp_flow_restart(struct acp_flow *f, u32 epoch_peer, u32 epoch_next, u64 now);

/**
 * acp_flow_ask() - fill the header of a HELLO that requests an answer
 * @f: flow
 * @fr: header to fill; the caller adds the body
 * @now: time in ns
 *
 * On an open flow the HELLO is a probe: it carries the time, which the answer repeats. This
 * distinguishes a replayed answer from a new one.
 *
 * Context: The caller holds the lock of the flow.
 */
void acp_flow_ask(struct acp_flow *f, struct acp_frame *fr, u64 now);

/*
 * After ACP_FLOW_RESEND: should the peer also be probed? Frames are in flight, and it has sent
 * nothing new for a long time. It may be alive without accepting any of them.
 */
bool acp_flow_ask_due(const struct acp_flow *f, u64 now);

/* ---- sending ---- */

/**
 * acp_flow_room() - test whether a new frame may be sent now
 * @f: flow
 *
 * Context: The caller holds the lock of the flow.
 * Return: True if acp_flow_send() may be called.
 */
static inline bool acp_flow_room(const struct acp_flow *f)
{
	return f->state == ACP_FLOW_OPEN && !f->lost && f->flight < f->cong.window &&
	       f->next < f->una + ACP_FRAME_WINDOW - ACP_FLOW_ANSWERS;
}

/**
 * acp_flow_send() - record the transmission of a new frame
 * @f: flow, for which acp_flow_room() is true
 * @token: pointer that acp_flow_ack_next() returns when the frame is acknowledged, not NULL
 * @now: time in ns
 *
 * Context: The caller holds the lock of the flow.
 * Return: Number of the frame.
 */
static inline u64 acp_flow_send(struct acp_flow *f, void *token, u64 now);

/* The same as acp_flow_room() for a frame of answers (see ACP_FLOW_ANSWERS). */
static inline bool acp_flow_room_answer(const struct acp_flow *f)
{
	return f->state == ACP_FLOW_OPEN && f->next < f->una + ACP_FRAME_WINDOW;
}

/**
 * acp_flow_send_answer() - record the transmission of a new frame of answers
 * @f: flow, for which acp_flow_room_answer() is true
 * @token: as for acp_flow_send()
 * @now: time in ns
 *
 * Context: The caller holds the lock of the flow.
 * Return: Number of the frame.
 */
u64 acp_flow_send_answer(struct acp_flow *f, void *token, u64 now);

/**
 * acp_flow_lazy() - decide whether the acknowledgement of a frame may be delayed
 * @f: flow
 * @seq: number of the frame
 * @lazy: nothing waits for the acknowledgement
 *
 * The acknowledgement of a retransmission may not be delayed, nor that of a frame which needs more
 * than half of the window: congestion control then waits for it and measures with it. Call it each
 * time that a frame is built.
 *
 * Context: The caller holds the lock of the flow.
 * Return: True if the frame has ACP_FRAME_LAZY.
 */
static inline bool acp_flow_lazy(struct acp_flow *f, u64 seq, bool lazy);

/*
 * Returns the next frame to be retransmitted, or 0. The oldest frame is not limited by the window,
 * because others in flight may wait for it.
 */
u64 acp_flow_next_lost(const struct acp_flow *f);
static inline u64 acp_flow_lost(const struct acp_flow *f)
{
	return f->lost ? acp_flow_next_lost(f) : 0;
}

/**
 * acp_flow_token() - get the token of a frame
 * @f: flow
 * @seq: number of a frame that occupies a slot
 *
 * Context: The caller holds the lock of the flow.
 * Return: The token passed to acp_flow_send(), or NULL if the frame has been acknowledged.
 */
void *acp_flow_token(const struct acp_flow *f, u64 seq);

/**
 * acp_flow_resend() - record a retransmission
 * @f: flow
 * @seq: number that acp_flow_turn() returned
 * @now: time in ns
 *
 * Context: The caller holds the lock of the flow.
 */
void acp_flow_resend(struct acp_flow *f, u64 seq, u64 now);

enum acp_flow_turn {
	ACP_TURN_NONE,
	ACP_TURN_LOST,		/* retransmit number *seq: acp_flow_resend() */
	ACP_TURN_ANSWER,	/* acp_flow_send_answer() */
	ACP_TURN_NEW,		/* acp_flow_send() */
};

/**
 * acp_flow_turn() - decide which frame is sent next
 * @f: flow
 * @answers: there are answers to send
 * @items: there are other items to send
 * @seq: set to the number to retransmit, if ACP_TURN_LOST is returned
 *
 * Context: The caller holds the lock of the flow.
 * Return: A value of enum acp_flow_turn.
 */
static inline enum acp_flow_turn acp_flow_turn(const struct acp_flow *f, bool answers, bool items,
					       u64 *seq)
{
	*seq = acp_flow_lost(f);
	if (*seq)
		return ACP_TURN_LOST;
	if (answers && acp_flow_room_answer(f))
		return ACP_TURN_ANSWER;
	return items && acp_flow_room(f) ? ACP_TURN_NEW : ACP_TURN_NONE;
}

/* An acknowledgement that is being processed. */
struct acp_flow_ack {
	u64 ack;
	u64 map[ACP_FRAME_WINDOW / 64];
	u64 pos, end;		/* numbers still to be processed */
	u64 sample;		/* round trip, ns */
	bool late;		/* ... and perhaps a delay */
	bool arrived;		/* frames lost by time-out had arrived, see acp_flow_ack_end() */
	u8 marks;		/* ACP_FRAME_MARKS of the frame */
	u32 count;
};

/**
 * acp_flow_ack_tells() - test whether the acknowledgement of a frame must be processed
 * @f: flow
 * @fr: header of the frame
 *
 * Usually only one end sends: nothing is in flight, and the frame agrees.
 *
 * Context: The caller holds the lock of the flow.
 * Return: True if acp_flow_ack_begin() must be called.
 */
static inline bool acp_flow_ack_tells(const struct acp_flow *f, const struct acp_frame *fr)
{
	return f->una != f->next || fr->ack != f->next;
}

/**
 * acp_flow_ack_begin() - begin to process the acknowledgement of a frame
 * @f: flow with slots
 * @a: acknowledgement to initialize
 * @fr: header of the frame, for which acp_flow_admit() has returned ACP_FLOW_PASS
 * @map: body of an ACK, or NULL
 *
 * Afterwards call acp_flow_ack_next() until it returns NULL, then acp_flow_ack_end().
 *
 * Context: The caller holds the lock of the flow until acp_flow_ack_end() returns.
 * Return: False if it acknowledges frames that were never sent; ignore it then.
 */
static inline bool acp_flow_ack_begin(struct acp_flow *f, struct acp_flow_ack *a,
				      const struct acp_frame *fr,
				      const struct acp_frame_ack *map);
void *acp_flow_ack_take(struct acp_flow *f, struct acp_flow_ack *a, u64 now);

/**
 * acp_flow_ack_next() - take the token of the next acknowledged frame
 * @f: flow
 * @a: acknowledgement
 * @now: time in ns
 *
 * Context: The caller holds the lock of the flow.
 * Return: Token, which the caller owns again, or NULL if there is none left.
 */
static inline void *acp_flow_ack_next(struct acp_flow *f, struct acp_flow_ack *a, u64 now)
{
	return a->pos < a->end ? acp_flow_ack_take(f, a, now) : NULL;
}

#define ACP_FLOW_REDUCED	1	/* marks of the network (ECN) have reduced the window */
#define ACP_FLOW_TAKEN_BACK	2	/* frames lost by the last time-out had arrived */

/**
 * acp_flow_ack_end() - finish an acknowledgement: windows, round-trip time, losses
 * @f: flow
 * @a: acknowledgement
 * @now: time in ns
 *
 * Context: The caller holds the lock of the flow.
 * Return: ACP_FLOW_REDUCED and ACP_FLOW_TAKEN_BACK, or 0.
 */
u32 acp_flow_ack_end(struct acp_flow *f, struct acp_flow_ack *a, u64 now);

/* ---- receiving ---- */

enum acp_flow_verdict {
	ACP_FLOW_NEW,		/* apply it, then acp_flow_applied() or acp_flow_refuse() */
	ACP_FLOW_DUPLICATE,
	ACP_FLOW_HOLD,		/* fenced, and earlier frames are missing: try again later */
	ACP_FLOW_FUTURE,	/* beyond the window */
};

/**
 * acp_flow_accept() - check and reserve the number of a DATA frame
 * @f: flow
 * @seq: number
 * @fence: the frame has ACP_FRAME_FENCE
 *
 * Context: The caller holds the lock of the flow.
 * Return: ACP_FLOW_NEW, DUPLICATE, HOLD or FUTURE. Only a NEW frame may have an effect.
 */
static inline enum acp_flow_verdict acp_flow_accept(struct acp_flow *f, u64 seq, bool fence);

enum acp_flow_hold {
	ACP_HOLD_KEPT,		/* keep it */
	ACP_HOLD_TWICE,		/* drop it: it is already kept */
	ACP_HOLD_FULL,		/* drop it: too many are kept; it will be retransmitted */
};

/**
 * acp_flow_hold() - record that a fenced frame is kept
 * @f: flow
 * @seq: number, for which acp_flow_accept() has returned ACP_FLOW_HOLD
 *
 * Context: The caller holds the lock of the flow.
 * Return: ACP_HOLD_KEPT if the caller must keep the frame, otherwise why to drop it.
 */
enum acp_flow_hold acp_flow_hold(struct acp_flow *f, u64 seq);

/**
 * acp_flow_turn_came() - test whether a kept frame can be processed
 * @f: flow
 * @seq: number of the frame
 *
 * Context: The caller holds the lock of the flow.
 * Return: True if it can: call acp_flow_unhold(), then acp_flow_accept() again.
 */
static inline bool acp_flow_turn_came(const struct acp_flow *f, u64 seq)
{
	return seq <= f->rcv;
}

/**
 * acp_flow_unhold() - record that a frame is not kept any more
 * @f: flow
 * @seq: number, for which acp_flow_hold() has returned ACP_HOLD_KEPT
 *
 * Context: The caller holds the lock of the flow.
 */
void acp_flow_unhold(struct acp_flow *f, u64 seq);

/*
 * The peer has sent something new, so it is alive: an accepted frame was processed and not refused.
 * Each number counts once. (An acknowledgement of something new counts separately.)
 */
static inline void acp_flow_heard(struct acp_flow *f, u64 now);

/* The network has marked a new frame (ACP_FLOW_NEW): ECN, Congestion Experienced. */
static inline void acp_flow_marked(struct acp_flow *f)
{
	f->marked = true;
}

/* Result of the station for a frame. */
enum acp_arrived {
	ACP_APPLIED,	/* it had its effect */
	ACP_REFUSED,	/* no effect: forget it, the peer will retransmit it */
	ACP_PENDING,	/* acp_flow_settled() will be called */
	ACP_MALFORMED,	/* no effect, now or later: treat it as applied */
};

/* Accepted frames: "count" numbers from seq on. */
struct acp_flow_taken {
	u64 seq;
	u32 epoch;		/* incarnation of this end in which they were accepted */
	u32 count;
	bool marked;		/* by the network (ECN) */
	bool lazy;		/* their acknowledgement may be delayed */
};

/**
 * acp_flow_arrived() - record what became of accepted frames
 * @f: flow
 * @t: the frames
 * @what: the same result for all of them
 * @now: time in ns
 *
 * Context: The caller holds the lock of the flow; it may have dropped it since the frames were
 *     accepted.
 * Return: False if their incarnation has ended meanwhile.
 */
static inline bool acp_flow_arrived(struct acp_flow *f, const struct acp_flow_taken *t,
				    enum acp_arrived what, u64 now);

/**
 * acp_flow_settled() - record that a pending frame has had its effect
 * @f: flow
 * @epoch: incarnation in which it was accepted
 * @seq: its number
 *
 * Context: The caller holds the lock of the flow.
 * Return: False if its incarnation has ended meanwhile.
 */
static inline bool acp_flow_settled(struct acp_flow *f, u32 epoch, u64 seq);

/*
 * The effect of a frame is in memory. Returns true if rcv has moved, so that fenced frames may
 * pass.
 */
static inline bool acp_flow_applied(struct acp_flow *f, u64 seq);

/* The acknowledgement that these frames made due may wait for other traffic. */
static inline void acp_flow_ack_later(struct acp_flow *f, u32 count, u64 now);

/* A frame had no effect and was forgotten: the peer will retransmit it. */
void acp_flow_refuse(struct acp_flow *f, u64 seq);

/**
 * acp_flow_accept_all() - check and reserve the numbers of consecutive frames
 * @f: flow
 * @seq: first number
 * @count: frames, at least 1; none of them has to wait behind its fence
 *
 * Context: The caller holds the lock of the flow.
 * Return: True if all are new. Otherwise none is reserved; call acp_flow_accept() for each.
 */
bool acp_flow_accept_all(struct acp_flow *f, u64 seq, u32 count);
void acp_flow_applied_all(struct acp_flow *f, u64 seq, u32 count);
void acp_flow_refuse_all(struct acp_flow *f, u64 seq, u32 count);

/**
 * acp_flow_set_fenced() - record that a frame which is being built is fenced
 * @f: flow
 * @seq: its number
 *
 * For a frame whose header acp_flow_fill() does not see: that of a burst, but for its first one.
 *
 * Context: The caller holds the lock of the flow.
 */
static inline void acp_flow_set_fenced(struct acp_flow *f, u64 seq);

/**
 * acp_flow_fill() - fill epochs and acknowledgement of a DATA or ACK frame to be sent
 * @f: flow
 * @fr: header; type, flags and, for DATA, seq must be set
 *
 * Afterwards no acknowledgement is due, except that DATA does not replace an ACK with a map.
 *
 * Context: The caller holds the lock of the flow.
 */
static inline void acp_flow_fill(struct acp_flow *f, struct acp_frame *fr);

/**
 * acp_flow_fill_map() - fill the body of an ACK
 * @f: flow
 * @map: body
 *
 * Context: The caller holds the lock of the flow.
 */
void acp_flow_fill_map(const struct acp_flow *f, struct acp_frame_ack *map);

/**
 * acp_flow_ack_now() - test whether an ACK must be sent
 * @f: flow, after all DATA frames that can be sent have been
 *
 * Context: The caller holds the lock of the flow.
 * Return: True if an acknowledgement is due.
 */
static inline bool acp_flow_ack_now(const struct acp_flow *f)
{
	return f->ack_due && f->state == ACP_FLOW_OPEN;
}

/**
 * acp_flow_map_needed() - test whether an ACK needs a map
 * @f: flow
 *
 * Context: The caller holds the lock of the flow.
 * Return: True if frames beyond a gap have been applied.
 */
static inline bool acp_flow_map_needed(const struct acp_flow *f)
{
	return f->beyond;
}

/* ---- time ---- */

enum acp_flow_tick {
	ACP_FLOW_QUIET,		/* nothing to do */
	ACP_FLOW_RESEND,	/* frames were marked as lost: send */
	ACP_FLOW_ASK,		/* send a HELLO: acp_flow_ask() */
	ACP_FLOW_FAILED,	/* the peer was silent too long: fail all, acp_flow_init() */
};

/**
 * acp_flow_deadline() - get the time at which acp_flow_tick() must be called
 * @f: flow
 *
 * Context: The caller holds the lock of the flow.
 * Return: Time in ns, ~0 if there is none.
 */
u64 acp_flow_deadline(const struct acp_flow *f);

/* A lower bound of acp_flow_deadline() that takes less time to compute. */
static inline u64 acp_flow_not_before(const struct acp_flow *f)
{
	u64 at = f->rearm + ACP_FLOW_RTO_MIN + (f->una > f->prompt ? ACP_FLOW_ACK_DELAY : 0);

	if (f->state != ACP_FLOW_OPEN)
		return 0;
	return f->ack_at && f->ack_at < at ? f->ack_at : at;
}

/**
 * acp_flow_arm() - decide whether the timer must be set anew
 * @f: flow
 * @armed: time for which it is set, ~0 if it is not
 *
 * Context: The caller holds the lock of the flow.
 * Return: Time in ns for which to set it, ~0 if it needs no change.
 */
static inline u64 acp_flow_arm(const struct acp_flow *f, u64 armed)
{
	u64 when;

	/* Usually it is set for an earlier time, and will be set anew when it fires. */
	if (acp_flow_not_before(f) >= armed)
		return ~0ULL;
	when = acp_flow_deadline(f);
	return when < armed ? when : ~0ULL;
}

/**
 * acp_flow_quiet() - test whether nothing has to be done if no item waits
 * @f: flow
 * @armed: time for which the timer is set, ~0 if it is not
 * @now: time in ns
 *
 * Usually true at the end of an exchange: everything is acknowledged in both directions, or will be
 * when the timer fires.
 *
 * Context: The caller holds the lock of the flow.
 * Return: True if nothing has to be done.
 */
static inline bool acp_flow_quiet(const struct acp_flow *f, u64 armed, u64 now)
{
	return f->state == ACP_FLOW_OPEN && f->una == f->next && !f->expect && !f->ack_due &&
	       (!f->ack_at || f->ack_at >= armed) && now < armed;
}

/**
 * acp_flow_tick() - process a deadline
 * @f: flow
 * @now: time in ns; a call before the deadline has no effect
 *
 * Context: The caller holds the lock of the flow.
 * Return: What to do: ACP_FLOW_QUIET, RESEND, ASK or FAILED.
 */
enum acp_flow_tick acp_flow_tick(struct acp_flow *f, u64 now);

/**
 * acp_flow_asks() - test whether to send a HELLO after acp_flow_tick()
 * @f: flow
 * @what: result of acp_flow_tick()
 * @now: time in ns
 *
 * Context: The caller holds the lock of the flow.
 * Return: True if a HELLO must be sent, see acp_flow_ask().
 */
static inline bool acp_flow_asks(const struct acp_flow *f, enum acp_flow_tick what, u64 now)
{
	return what == ACP_FLOW_ASK || (what == ACP_FLOW_RESEND && acp_flow_ask_due(f, now));
}

/**
 * acp_flow_expect() - change the number of answers that are awaited
 * @f: flow
 * @n: +1 to await one more answer beyond acknowledgements, -1 if one has arrived
 * @now: time in ns; used only if @n is positive and no answer was awaited before
 *
 * Context: The caller holds the lock of the flow.
 */
void acp_flow_expect(struct acp_flow *f, int n, u64 now);

/**
 * acp_flow_expect_sent() - await the answer to a frame that is about to be queued
 * @f: flow
 *
 * The wait is timed from the transmission of the frame.
 *
 * Context: The caller holds the lock of the flow.
 */
void acp_flow_expect_sent(struct acp_flow *f);

/**
 * acp_flow_unexpect() - stop awaiting one answer, which has arrived or never will
 * @f: flow
 * @epoch: incarnation in which it was awaited
 *
 * Context: The caller holds the lock of the flow.
 */
static inline void acp_flow_unexpect(struct acp_flow *f, u32 epoch)
{
	if (f->epoch == epoch && f->expect)
		acp_flow_expect(f, -1, 0);
}

/**
 * acp_flow_idle() - test whether nothing is in flight, due or awaited
 * @f: flow
 *
 * Context: The caller holds the lock of the flow.
 * Return: True if so.
 */
static inline bool acp_flow_idle(const struct acp_flow *f)
{
	return f->next == f->una && !f->ack_due && !f->ack_at && !f->expect &&
	       f->state != ACP_FLOW_OPENING;
}

#include "flow_fast.h"

#endif /* ACP_FLOW_H */
