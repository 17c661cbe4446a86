/* SPDX-License-Identifier: MIT */
/*
 * A simulated job: nodes with memory and the real protocol core, connected by a network that loses,
 * duplicates, reorders, delays, damages and replays frames. Everything is determined by the seed;
 * time is simulated.
 *
 * sim.c has the network and the clock, sim_node.c the environment of a node's flows, sim_rank.c
 * that of its commands. The memory of a rank is one region with STag SIM_STAG; the same memory is
 * reachable as SIM_STAG_LOST until that is revoked.
 */
#ifndef SIM_H
#define SIM_H

#include "cmd.h"
#include "doubt.h"
#include "fate.h"
#include "hello.h"
#include "siphash.h"

#define SIM_NODES	8
#define SIM_COLORS	2
#define SIM_RANKS	16
#define SIM_DEPTH	128		/* commands of a rank; half of them may be in progress */
#define SIM_STAG	ACP_STAG_USER
#define SIM_STAG_LOST	(ACP_STAG_USER + 1)
#define SIM_ALWAYS	100000u		/* the unit of probabilities */

#define SIM_US		1000ULL
#define SIM_MS		1000000ULL
#define SIM_S		1000000000ULL

/* What the network does, on all paths alike. */
struct sim_net {
	u32 loss, ack_loss;		/* of all frames; of ACK frames in addition */
	u32 duplicate, damage, truncate, replay;
	u32 mark;			/* frames of all kinds marked instead of lost (ECN) */
	u32 refuse;			/* the receiver is out of memory */
	u32 forget;			/* ... to remember failures in */
	u32 swallow;			/* longer datagrams are lost; bytes, 0: none */
	u64 delay, jitter;		/* ns; jitter reorders */
	u64 apply;			/* ns from acceptance to application, at most */
	u64 kib_ns;			/* ns to transmit 1,024 bytes; 0: none */
	u64 queue_ns;			/* frames that would wait longer are lost */
};

struct sim_counts {
	u64 sent, lost, duplicated, damaged, replayed;
	u64 bad_frame, bad_tag, bad_crc, bad_epoch, bad_ack;
	u64 data, resent, duplicates, held, held_dropped, future, refused;
	u64 completions, hellos, opened, restarts, failures, strays;
	u64 swallowed, narrowed, widened;
	u64 too_late;			/* items fenced in an incarnation that had ended */
	u64 told_lost, told_back;	/* reports to the ranks about a peer */
	u64 absent, others, refusals;	/* HELLOs: too early, mismatched; peers that refused */
	u64 items, items_max;		/* allocated at present, and at most */
};

struct sim;
struct sim_peer;
struct sim_command;

/* A frame in transit, or kept for a replay. */
struct sim_packet {
	u32 from, to, color, length;
	u8 *bytes;			/* separate allocation: sanitizers detect overruns */
	bool marked;			/* by the network (ECN) */
};

struct sim_event {
	u64 time, serial;
	void (*run)(struct sim *s, void *what, u64 number);
	void *what;
	u64 number;
};

/* A received frame that is being applied to memory. */
struct sim_arrival {
	struct sim_peer *peer;
	struct sim_packet *packet;
	struct acp_flow_taken taken;
	u32 refs;			/* effects that are still outstanding */
	bool refused;			/* no effect, because there was no memory */
	bool pending;			/* it is applied when its answers have been delivered */
};

/* Something to be sent: one message, or a transfer that is cut into DATA. */
struct sim_item {
	struct sim_item *next;
	struct acp_out out;
	struct sim_command *command;	/* NULL: the item is a separate allocation */
	struct sim_peer *requester;	/* peer that delegated it */
	struct sim_arrival *arrival;	/* applied when this item has been delivered */
	u32 frames;			/* in flight */
	u8 status;
};

struct sim_list {
	struct sim_item *first, **last;
};

/* Contents of a frame that is in flight. */
struct sim_sent {
	struct sim_item *items;		/* whole messages */
	struct sim_item *piece;		/* or a part of one transfer */
	u64 offset;
	u32 length;
	u32 size;			/* bytes of the frame */
	bool fence;
};

/* This node's end of a flow. */
struct sim_peer {
	struct sim_node *me;
	u32 node, color;
	struct acp_flow flow;
	struct acp_flow_slot slots[ACP_FRAME_WINDOW];
	struct sim_sent sent[ACP_FRAME_WINDOW];
	struct sim_list pending, answers;	/* answers: until delivered, frames are pending */
	struct sim_packet *held[ACP_FLOW_HELD];
	u32 delegated;
	struct acp_fails fails;
	struct acp_failures failures;
	struct acp_doubt doubt;
	u32 narrow;			/* presumed limit of the path, bytes of a datagram */
	struct acp_fates fates;
	bool known_lost;		/* the last report to the ranks */
	u64 armed;			/* time of the next tick; ~0: none */
	bool ack_armed;
};

enum sim_state { SIM_FREE, SIM_WAITING, SIM_STARTED, SIM_COMPLETE };

struct sim_command {
	struct sim_item item;		/* out.m: the command, then what is sent for it */
	struct acp_step step;
	u64 ticket, order, seen;
	u32 epoch[2];			/* of flows on which answers are awaited: acp_cmd */
	u8 expected;			/* ACP_EXPECT_ */
	u32 rank;
	bool busy;			/* the transport has its item */
	u8 state, status;
};

struct sim_rank {
	u8 *memory;
	u64 tail, completed;
	u64 last_failed;		/* highest ticket of a command that failed */
	struct acp_run run;
	struct sim_command commands[SIM_DEPTH];
	bool draining, again;
};

struct sim_node {
	u32 id;
	bool away;			/* no rank has attached yet */
	bool assembled;			/* all ranks have joined */
	bool mismatched;		/* they will not meet: the settings of a peer differ */
	struct acp_setup setup;
	u64 busy_until;			/* its link */
	struct sim_peer peers[SIM_NODES][SIM_COLORS];
};

struct sim {
	u64 seed, random, now, serial;
	const char *name;		/* of the test, for messages */
	u32 nodes, ranks, colors, mtu;	/* mtu: bytes of a datagram */
	u64 memory;			/* bytes of a rank */
	bool crc, lost_revoked;
	struct sim_net net;
	struct acp_ga_layout ga;
	struct siphash_key key;
	struct sim_node node[SIM_NODES];
	struct sim_rank rank[SIM_RANKS];
	bool cut[SIM_NODES][SIM_NODES];	/* no frame gets through */
	struct sim_counts n;

	struct sim_event *events;	/* heap */
	u32 nevents, room;
	struct sim_packet *kept[64];	/* for replays */

	/* Set by the test: memory was written; a command was completed, in order. */
	void (*wrote)(struct sim *s, u32 rank, u64 offset, u64 length);
	void (*completed)(struct sim *s, u32 rank, u64 ticket, u8 status);
	/* A piece of a message has arrived from a node. Returns its status. */
	u8 (*message)(struct sim *s, u32 from, const struct acp_msg *m, const u8 *piece);
	void *test;
};

/* Fail the test and print how to repeat it. */
#define SIM_FAIL(s, format, ...)						\
	FAIL("at %llu us: " format "; repeat: test_sim --seed %llu %s",		\
	     (unsigned long long)(s)->now / 1000, ##__VA_ARGS__,		\
	     (unsigned long long)(s)->seed, (s)->name)

#define SIM_CHECK(s, condition)							\
	do {									\
		if (!(condition))						\
			SIM_FAIL(s, "%s", #condition);				\
	} while (0)

/* ---- the network and the clock (sim.c) ---- */

/* Set nodes, ranks, colors, mtu, memory and net first. Rank r is on node r % nodes. */
void sim_init(struct sim *s, u64 seed);
void sim_free(struct sim *s);

u64 sim_random(struct sim *s);
bool sim_chance(struct sim *s, u32 probability);

/* All kept frames arrive once more, even on a path that is cut. */
void sim_replay_kept(struct sim *s);

/* Call run() after "delay" ns. */
void sim_after(struct sim *s, u64 delay, void (*run)(struct sim *, void *, u64), void *what,
	       u64 number);

/* Process the next event; false: there is none. */
bool sim_step(struct sim *s);

/* A node sends bytes; they are copied. */
void sim_transmit(struct sim *s, u32 from, u32 to, u32 color, const u8 *bytes, u32 length);

void sim_packet_free(struct sim_packet *p);

/* ---- frames and flows (sim_node.c) ---- */

/* A frame arrives; takes ownership of the packet. */
void sim_receive(struct sim *s, struct sim_packet *p);

static inline struct sim_peer *sim_peer(struct sim *s, u32 me, u32 node, u32 color)
{
	return &s->node[me].peers[node][color];
}

/*
 * Queue an item. It is sent with the next flush of the node, in incarnation "within" of the flow
 * (0: any) or not at all. Returns the incarnation.
 */
u32 sim_peer_send(struct sim *s, struct sim_peer *p, struct sim_item *item, u32 within);
void sim_node_flush(struct sim *s, u32 node);

/* Open the flow, unless that has begun. */
void sim_peer_open(struct sim *s, struct sim_peer *p);

/* Start to await an answer in the present incarnation of the flow, which is returned; or stop. */
u32 sim_peer_expect(struct sim *s, struct sim_peer *p);
void sim_peer_unexpect(struct sim *s, struct sim_peer *p, u32 epoch);

/* One effect of an arrival is complete; after the last one, it is applied. */
void sim_arrival_put(struct sim *s, struct sim_arrival *a);

/* ---- commands (sim_rank.c) ---- */

/* Can all messages of the frame be processed now? If not, refuse it. */
bool sim_ranks_admits(struct sim *s, struct sim_peer *p, const struct sim_packet *packet);

/* Process the messages of a frame, or none of them if it is refused. */
void sim_ranks_apply(struct sim *s, struct sim_arrival *a);

/*
 * sim_ranks_due(): an item is about to be sent. sim_ranks_done(): it has been delivered (status 0)
 * or never will be.
 */
void sim_ranks_due(struct sim *s, struct sim_item *item);
void sim_ranks_done(struct sim *s, struct sim_item *item);

/* The flow has opened. */
void sim_ranks_opened(struct sim *s, struct sim_peer *p);

/* Nothing more will arrive from the peer's former incarnation. */
void sim_ranks_lost(struct sim *s, struct sim_peer *p, u8 status);

/* ---- nodes ---- */

static inline u32 sim_node_of(const struct sim *s, u32 rank)
{
	return rank % s->nodes;
}

void sim_node_init(struct sim *s, u32 node);

/* The node crashes and restarts at once: memory is zero, flows are new, commands are gone. */
void sim_reboot(struct sim *s, u32 node);

/* Free what the node has allocated. */
void sim_node_free(struct sim *s, u32 node);

/* May a rank submit one more command? */
bool sim_room(struct sim *s, u32 rank);

/* Submit a command; returns its ticket. */
u64 sim_submit(struct sim *s, u32 rank, const struct acp_msg *command, u64 order);

#endif /* SIM_H */
