/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One reliable, unordered flow of frames between two nodes on one color.
 *
 * Sans-IO: it is told of frames, times and acknowledgements and says what to
 * do.  The caller holds one lock around all calls on a flow; times are
 * nanoseconds of a monotonic clock.
 *
 * Sending: every DATA frame gets a number and a slot, which keeps the
 * caller's token until the frame is acknowledged.  A frame is taken for lost
 * when one sent later was acknowledged, or after a time-out.  If one of those is
 * acknowledged before it went again, or so soon afterwards that it is no answer
 * to that, it had arrived: the way or the peer stood still, and the time-out is
 * taken back.  (A cross of F-RTO, RFC 5682, and Eifel, RFC 3522.)
 *
 * Receiving takes two steps.  acp_flow_accept() reserves the number, so that
 * a duplicate is dropped; acp_flow_applied() says that its effect is in
 * memory, and only now may it be acknowledged and let fenced frames pass.
 *
 * Epochs: each side draws a random number when its end of the flow begins,
 * and a frame must carry both.  A frame of another life of either end, or of
 * another run of the job, fits neither.  A peer that was restarted is
 * believed only after it answered to a number drawn for that purpose.
 */
#ifndef ACP_FLOW_H
#define ACP_FLOW_H

#include "port.h"
#include "cong.h"
#include "frame.h"

/*
 * Numbers that only answers may use.  A frame with a failed message is not
 * acknowledged before the sender knows (took the DONE that says so), so that
 * DONE must get through whatever waits at both ends: it goes in a frame
 * with nothing else but such DONEs, never fenced, that no window holds back.
 * One frame answers all failures of one frame: half of the numbers suffice.
 */
#define ACP_FLOW_ANSWERS	(ACP_FRAME_WINDOW / 2)

#define ACP_FLOW_RTO_MIN	100000ULL	/* 100 us */
#define ACP_FLOW_RTO_MAX	100000000ULL	/* 100 ms */
#define ACP_FLOW_RTO_INIT	5000000ULL
#define ACP_FLOW_ACK_DELAY	500000ULL	/* for what nobody waits: time-outs wait for it */
#define ACP_FLOW_ACK_EVERY	8	/* ... and so many frames together */

enum acp_flow_state {
	ACP_FLOW_CLOSED,	/* never used, or failed and not tried again yet */
	ACP_FLOW_OPENING,	/* HELLO is out */
	ACP_FLOW_OPEN,
};

enum acp_slot_state { ACP_SLOT_FREE, ACP_SLOT_FLIGHT, ACP_SLOT_LOST, ACP_SLOT_ACKED };

struct acp_flow_slot {
	void *token;		/* the caller's, from send to acknowledgement */
	u64 sent;		/* when last sent */
	u8 state;		/* enum acp_slot_state */
	u8 tries;
	bool answer;
	bool fenced;		/* the peer may hold it until earlier ones arrive */
};

struct acp_flow {
	u8 state;		/* enum acp_flow_state */
	u8 backoff;		/* doublings of the time-out */
	bool ack_due;		/* the peer is owed an acknowledgement */
	bool probing;		/* a HELLO was sent to a silent peer */
	u8 late;		/* frames whose acknowledgement may be late */
	bool marked;		/* the network marked a frame since our last acknowledgement */
	u8 marks;		/* our acknowledgements that said so, as in ACP_FRAME_MARKS */
	u8 marks_peer;		/* the same of the peer, as far as we have seen */
	u64 ack_at;		/* when it is due, 0: not at all */
	u32 epoch;		/* ours */
	u32 epoch_peer;		/* valid when open */
	u32 epoch_next;		/* ours after a restart of the peer */

	/* sending */
	struct acp_flow_slot *slots;	/* ACP_FRAME_WINDOW, by the caller; needed to send */
	u64 next;		/* number of the next new frame */
	u64 una;		/* oldest number not acknowledged */
	u64 prompt;		/* the acknowledgement of none beyond this one is awaited */
	u32 flight;		/* slots in flight */
	u32 lost;		/* slots to be sent again */
	u32 expect;		/* answers the caller waits for from this peer */
	u64 recover;		/* losses before this number were reacted to */
	u64 doubt;		/* ... under way at a time-out that may prove wrong, 0: none */
	struct {
		u64 recover, rack;
	} before;		/* that time-out */
	u64 probe;		/* sent again though the last one proved wrong */
	u64 rack;		/* latest sending time of an acknowledged frame */
	u64 srtt, rttvar, rto;	/* ns */
	u64 shortest;		/* ns, the shortest round trip ever, 0: none yet */
	u64 rearm;		/* the time-out counts from here */
	u64 heard;		/* last sign of life, or start of waiting for one */
	u64 progress;		/* last acknowledgement of something new */
	struct acp_cong cong;
	u64 limit;		/* silence until the peer counts as failed */
	u64 open_limit;		/* the same while opening */

	/* receiving */
	u64 rcv;		/* all numbers before it were applied */
	u32 beyond;		/* so many after it, too */
	u64 accepted[ACP_FRAME_WINDOW / 64];	/* by number modulo window */
	u64 applied[ACP_FRAME_WINDOW / 64];
};

/* epoch, epoch_next: random, not 0, different. */
void acp_flow_init(struct acp_flow *f, u32 epoch, u32 epoch_next, u64 limit, u64 open_limit);

/* ---- opening, epochs ---- */

/* Verdicts on a frame's epochs, some together. */
#define ACP_FLOW_DROP		0	/* not of this life */
#define ACP_FLOW_PASS		1	/* the frame counts */
#define ACP_FLOW_OPENED		2	/* the flow is open from now on */
#define ACP_FLOW_RESTART	4	/* the peer began anew: fail all, acp_flow_restart() */
#define ACP_FLOW_REPLY		8	/* send the HELLO that was filled in */
#define ACP_FLOW_REFUSED	16	/* the wrong one answers: fail all, acp_flow_init() */

/* Begin to open, unless already done. */
void acp_flow_open(struct acp_flow *f, u64 now);

/* A DATA or ACK frame: its verdict. */
static inline u32 acp_flow_admit(struct acp_flow *f, const struct acp_frame *fr, u64 now);

/* A HELLO frame: its verdict; the reply goes to "reply". */
u32 acp_flow_hello(struct acp_flow *f, const struct acp_frame *fr, struct acp_frame *reply,
		   u64 now);

/*
 * A HELLO of a peer that does not belong to us: its verdict, REPLY and
 * REFUSED at most.  A flow that is open does not mind.
 */
u32 acp_flow_hello_stranger(const struct acp_flow *f, const struct acp_frame *fr,
			    struct acp_frame *reply);

/* After RESTART: a new life, open towards the peer's new epoch. */
void acp_flow_restart(struct acp_flow *f, u32 epoch_peer, u32 epoch_next, u64 now);

/* Fill type, flags and epochs of a HELLO of our own (opening or probing). */
void acp_flow_ask(struct acp_flow *f, struct acp_frame *fr);

/* ---- sending ---- */

/* May a new frame be sent now? */
static inline bool acp_flow_room(const struct acp_flow *f)
{
	return f->state == ACP_FLOW_OPEN && !f->lost && f->flight < f->cong.window &&
	       f->next < f->una + ACP_FRAME_WINDOW - ACP_FLOW_ANSWERS;
}

/* A new frame goes out with this token: its number. */
static inline u64 acp_flow_send(struct acp_flow *f, void *token, u64 now);

/* The same for a frame of answers (see ACP_FLOW_ANSWERS). */
static inline bool acp_flow_room_answer(const struct acp_flow *f)
{
	return f->state == ACP_FLOW_OPEN && f->next < f->una + ACP_FRAME_WINDOW;
}

u64 acp_flow_send_answer(struct acp_flow *f, void *token, u64 now);

/*
 * Is the frame sent so that its acknowledgement may be late (ACP_FRAME_LAZY)?
 * One that is sent again never is, nor is one that needs more than half of the
 * window: congestion control then waits for it, and measures by it.  To be
 * asked each time that it is built.
 */
static inline bool acp_flow_lazy(struct acp_flow *f, u64 seq, bool lazy);

/*
 * The next frame to be sent again, or 0; its token; and that it was sent.  The
 * oldest one does not wait for the window: others in flight may wait for it.
 */
u64 acp_flow_next_lost(const struct acp_flow *f);
static inline u64 acp_flow_lost(const struct acp_flow *f)
{
	return f->lost ? acp_flow_next_lost(f) : 0;
}

void *acp_flow_token(const struct acp_flow *f, u64 seq);
void acp_flow_resend(struct acp_flow *f, u64 seq, u64 now);

/* An acknowledgement being worked through. */
struct acp_flow_ack {
	u64 ack;
	u64 map[ACP_FRAME_WINDOW / 64];
	u64 pos, end;		/* numbers still to look at */
	u64 sample;		/* round trip, ns */
	bool late;		/* ... and perhaps a delay */
	bool arrived;		/* of what a time-out took for lost, before it went again */
	u8 marks;		/* ACP_FRAME_MARKS of the frame */
	u32 count;
};

/*
 * Take the acknowledgement of a frame ("map": body of an ACK, or NULL).
 * False: it is impossible (acknowledges what was never sent).
 * Then take tokens until NULL, then end, which tells what it meant.
 */
static inline bool acp_flow_ack_begin(struct acp_flow *f, struct acp_flow_ack *a,
				      const struct acp_frame *fr,
				      const struct acp_frame_ack *map);
void *acp_flow_ack_take(struct acp_flow *f, struct acp_flow_ack *a, u64 now);
static inline void *acp_flow_ack_next(struct acp_flow *f, struct acp_flow_ack *a, u64 now)
{
	return a->pos < a->end ? acp_flow_ack_take(f, a, now) : NULL;
}

#define ACP_FLOW_REDUCED	1	/* marks of the network (ECN) made the window smaller */
#define ACP_FLOW_TAKEN_BACK	2	/* what the last time-out took for lost was not */

u32 acp_flow_ack_end(struct acp_flow *f, struct acp_flow_ack *a, u64 now);

/* ---- receiving ---- */

enum acp_flow_verdict {
	ACP_FLOW_NEW,		/* apply it, then acp_flow_applied() or acp_flow_refuse() */
	ACP_FLOW_DUPLICATE,
	ACP_FLOW_HOLD,		/* fenced, and earlier ones are missing: try again later */
	ACP_FLOW_FUTURE,	/* beyond the window */
};

static inline enum acp_flow_verdict acp_flow_accept(struct acp_flow *f, u64 seq, bool fence);

/* A frame that is new (ACP_FLOW_NEW) was marked by the network: ECN, Congestion Experienced. */
static inline void acp_flow_marked(struct acp_flow *f)
{
	f->marked = true;
}

/* Its effect is in memory.  True: the lower edge moved, fenced frames may pass. */
static inline bool acp_flow_applied(struct acp_flow *f, u64 seq);

/* The acknowledgement that these frames made due may wait for other traffic. */
static inline void acp_flow_ack_later(struct acp_flow *f, u32 count, u64 now);

/* It had no effect at all and was forgotten: the peer will send it again. */
void acp_flow_refuse(struct acp_flow *f, u64 seq);

/*
 * The same for "count" frames from number seq on, none of them fenced: accepted only if all of
 * them are new; false: none is, and each must be asked for by itself.
 */
bool acp_flow_accept_all(struct acp_flow *f, u64 seq, u32 count);
void acp_flow_applied_all(struct acp_flow *f, u64 seq, u32 count);
void acp_flow_refuse_all(struct acp_flow *f, u64 seq, u32 count);

/* Fill epochs and acknowledgement of an outgoing DATA or ACK frame. */
static inline void acp_flow_fill(struct acp_flow *f, struct acp_frame *fr);
void acp_flow_fill_map(const struct acp_flow *f, struct acp_frame_ack *map);

/* Is there more to tell than the header does: was anything applied beyond a gap? */
static inline bool acp_flow_map_needed(const struct acp_flow *f)
{
	return f->beyond;
}

/* ---- time ---- */

enum acp_flow_tick {
	ACP_FLOW_QUIET,		/* nothing to do */
	ACP_FLOW_RESEND,	/* frames were marked lost: send */
	ACP_FLOW_ASK,		/* send a HELLO: acp_flow_ask() */
	ACP_FLOW_FAILED,	/* the peer is silent too long: fail all, acp_flow_init() */
};

/* When acp_flow_tick() wants to be called; ~0: not at all. */
u64 acp_flow_deadline(const struct acp_flow *f);

/* acp_flow_deadline() is no earlier than this, which is quicker to tell. */
static inline u64 acp_flow_not_before(const struct acp_flow *f)
{
	u64 at = f->rearm + ACP_FLOW_RTO_MIN + (f->una > f->prompt ? ACP_FLOW_ACK_DELAY : 0);

	if (f->state != ACP_FLOW_OPEN)
		return 0;
	return f->ack_at && f->ack_at < at ? f->ack_at : at;
}

enum acp_flow_tick acp_flow_tick(struct acp_flow *f, u64 now);

/* Wait for (+1) or got (-1) answers of the peer beyond acknowledgements. */
void acp_flow_expect(struct acp_flow *f, int n, u64 now);

/* One that a frame which is about to be queued asks for: its clock starts with that. */
void acp_flow_expect_sent(struct acp_flow *f);

/* Nothing in flight, nothing owed, nothing waited for? */
static inline bool acp_flow_idle(const struct acp_flow *f)
{
	return f->next == f->una && !f->ack_due && !f->ack_at && !f->expect &&
	       f->state != ACP_FLOW_OPENING;
}

#include "flow_fast.h"

#endif /* ACP_FLOW_H */
