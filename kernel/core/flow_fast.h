/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The functions of a flow that are called for each frame: see flow.h, which includes this file.
 * They are so short that a call would take a substantial part of their time.
 */
#ifndef ACP_FLOW_FAST_H
#define ACP_FLOW_FAST_H

/*
 * Time since "then". The caller may have read "now" before it waited for the lock, so "then" may be
 * later.
 */
static inline u64 acp_flow_since(u64 then, u64 now)
{
	return now > then ? now - then : 0;
}

static inline bool acp_flow_test(const u64 *map, u64 seq)
{
	return map[seq / 64 % (ACP_FRAME_WINDOW / 64)] >> (seq % 64) & 1;
}

static inline void acp_flow_set(u64 *map, u64 seq)
{
	map[seq / 64 % (ACP_FRAME_WINDOW / 64)] |= 1ULL << (seq % 64);
}

static inline void acp_flow_clear(u64 *map, u64 seq)
{
	map[seq / 64 % (ACP_FRAME_WINDOW / 64)] &= ~(1ULL << (seq % 64));
}

static inline struct acp_flow_slot *acp_flow_slot_of(const struct acp_flow *f, u64 seq)
{
	return &f->slots[seq % ACP_FRAME_WINDOW];
}

static inline void acp_flow_opened(struct acp_flow *f, u32 epoch_peer, u64 now)
{
	f->state = ACP_FLOW_OPEN;
	f->epoch_peer = epoch_peer;
	f->backoff = 0;
	f->probing = false;
	f->begun = now;
	f->heard = now;
	f->progress = now;
	f->rearm = now;
}

static inline void acp_flow_heard(struct acp_flow *f, u64 now)
{
	f->heard = now;
	f->probing = false;
}

static inline u32 acp_flow_admit(struct acp_flow *f, const struct acp_frame *fr, u64 now)
{
	if (fr->epoch_dst == f->epoch) {
		if (f->state == ACP_FLOW_OPEN) {
			/* It may be a replay, so it is not yet a sign of life. */
			return fr->epoch_src == f->epoch_peer ? ACP_FLOW_PASS : ACP_FLOW_DROP;
		}
		acp_flow_opened(f, fr->epoch_src, now);
		return ACP_FLOW_PASS | ACP_FLOW_OPENED;
	}
	if (fr->epoch_dst == f->epoch_next && f->state == ACP_FLOW_OPEN)
		return ACP_FLOW_PASS | ACP_FLOW_RESTART;
	return ACP_FLOW_DROP;
}

static inline u64 acp_flow_send(struct acp_flow *f, void *token, u64 now)
{
	u64 seq = f->next++;
	struct acp_flow_slot *s = acp_flow_slot_of(f, seq);

	if (!f->flight && !f->lost) {
		f->rearm = now;
		f->progress = now;
		f->heard = now;
	}
	s->token = token;
	s->sent = now;
	s->state = ACP_SLOT_FLIGHT;
	s->tries = 1;
	s->answer = false;
	s->fenced = false;
	f->flight++;
	return seq;
}

static inline bool acp_flow_lazy(struct acp_flow *f, u64 seq, bool lazy)
{
	const struct acp_flow_slot *s = acp_flow_slot_of(f, seq);

	if (lazy && 2 * f->flight < f->cong.window && s->state == ACP_SLOT_FLIGHT && s->tries == 1)
		return true;
	f->prompt = max_t(u64, f->prompt, seq);
	return false;
}

static inline bool acp_flow_ack_begin(struct acp_flow *f, struct acp_flow_ack *a,
				      const struct acp_frame *fr,
				      const struct acp_frame_ack *map)
{
	u32 i;

	if (fr->ack > f->next || !fr->ack)
		return false;
	a->ack = fr->ack;
	a->pos = f->una;
	a->end = fr->ack;
	if (map) {
		for (i = 0; i < ACP_FRAME_WINDOW / 64; i++)
			a->map[i] = be64_to_cpu(map->map[i]);
		a->end = min_t(u64, f->next, fr->ack + 1 + ACP_FRAME_WINDOW);
	}
	a->sample = 0;
	a->late = false;
	a->arrived = false;
	a->marks = fr->flags & ACP_FRAME_MARKS;
	a->count = 0;
	return true;
}

static inline enum acp_flow_verdict acp_flow_accept(struct acp_flow *f, u64 seq, bool fence)
{
	if (seq < f->rcv) {
		f->ack_due = true;
		return ACP_FLOW_DUPLICATE;
	}
	if (seq - f->rcv >= ACP_FRAME_WINDOW)
		return ACP_FLOW_FUTURE;
	if (acp_flow_test(f->accepted, seq)) {
		f->ack_due = true;	/* although it is not applied yet */
		return ACP_FLOW_DUPLICATE;
	}
	if (fence && seq != f->rcv)
		return ACP_FLOW_HOLD;
	acp_flow_set(f->accepted, seq);
	return ACP_FLOW_NEW;
}

/* Advance over frames that were applied beyond a gap which is now closed. */
static inline void acp_flow_close_gap(struct acp_flow *f)
{
	while (f->beyond && acp_flow_test(f->applied, f->rcv)) {
		acp_flow_clear(f->applied, f->rcv);
		acp_flow_clear(f->accepted, f->rcv++);
		f->beyond--;
	}
}

static inline bool acp_flow_applied(struct acp_flow *f, u64 seq)
{
	f->ack_due = true;
	if (seq != f->rcv) {
		acp_flow_set(f->applied, seq);
		f->beyond++;
		return false;
	}
	acp_flow_clear(f->accepted, f->rcv++);
	acp_flow_close_gap(f);
	return true;
}

static inline void acp_flow_ack_later(struct acp_flow *f, u32 count, u64 now)
{
	f->late = min_t(u32, f->late + count, ACP_FLOW_ACK_EVERY);
	f->ack_due = f->late == ACP_FLOW_ACK_EVERY || acp_flow_map_needed(f);
	if (!f->ack_at)
		f->ack_at = now + ACP_FLOW_ACK_DELAY;
}

/* A refused frame may arrive again any number of times, so it is no sign of life. */
static inline bool acp_flow_arrived(struct acp_flow *f, const struct acp_flow_taken *t,
				    enum acp_arrived what, u64 now)
{
	bool due = f->ack_due;

	if (t->epoch != f->epoch)
		return false;
	if (what == ACP_REFUSED) {
		acp_flow_refuse_all(f, t->seq, t->count);
		return true;
	}
	acp_flow_heard(f, now);
	if (t->marked)
		acp_flow_marked(f);
	if (what == ACP_PENDING)
		return true;
	if (t->count == 1)
		acp_flow_applied(f, t->seq);
	else
		acp_flow_applied_all(f, t->seq, t->count);
	if (t->lazy && !due)
		acp_flow_ack_later(f, t->count, now);
	return true;
}

static inline bool acp_flow_settled(struct acp_flow *f, u32 epoch, u64 seq)
{
	if (epoch != f->epoch)
		return false;
	acp_flow_applied(f, seq);
	return true;
}

static inline void acp_flow_set_fenced(struct acp_flow *f, u64 seq)
{
	acp_flow_slot_of(f, seq)->fenced = true;
}

static inline void acp_flow_fill(struct acp_flow *f, struct acp_frame *fr)
{
	fr->epoch_src = f->epoch;
	fr->epoch_dst = f->epoch_peer;
	fr->ack = f->rcv;
	if (f->marked) {
		f->marked = false;
		f->marks += ACP_FRAME_MARK;	/* modulo 4, since it has 8 bits */
	}
	fr->flags |= f->marks;
	if (fr->flags & ACP_FRAME_FENCE && fr->type == ACP_FRAME_DATA)
		acp_flow_set_fenced(f, fr->seq);
	if (fr->type == ACP_FRAME_DATA && acp_flow_map_needed(f))
		return;
	f->ack_due = false;
	f->ack_at = 0;
	f->late = 0;
}

#endif /* ACP_FLOW_FAST_H */
