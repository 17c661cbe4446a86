/* SPDX-License-Identifier: MIT */
/*
 * A simulated job: nodes with memory and the real protocol core, joined by
 * a network that loses, doubles, reorders, delays, damages and replays
 * frames.  Everything follows from the seed; time is simulated.
 *
 * sim.c is the network and the clock, sim_peer.c what a node does with
 * frames, sim_station.c with commands.  A rank's memory is one region of STag SIM_STAG; the
 * same memory is reachable as SIM_STAG_LOST until that is revoked.
 */
#ifndef SIM_H
#define SIM_H

#include "cmd.h"
#include "flow.h"
#include "siphash.h"

#define SIM_NODES	8
#define SIM_COLORS	2
#define SIM_RANKS	16
#define SIM_DEPTH	128		/* commands of a rank; half of them under way */
#define SIM_HELD	64		/* fenced frames that a peer keeps for later */
#define SIM_DELEGATED	256		/* commands under way for one peer */
#define SIM_STAG	ACP_STAG_USER
#define SIM_STAG_LOST	(ACP_STAG_USER + 1)
#define SIM_ALWAYS	100000u		/* probabilities are out of this */

#define SIM_US		1000ULL
#define SIM_MS		1000000ULL
#define SIM_S		1000000000ULL

/* What the network does; the same on all ways. */
struct sim_net {
	u32 loss, ack_loss;		/* of all frames; of ACK frames in addition */
	u32 duplicate, damage, truncate, replay;
	u32 mark;			/* frames of all kinds, instead of losing them (ECN) */
	u32 refuse;			/* receiver out of memory */
	u64 delay, jitter;		/* ns; jitter reorders */
	u64 apply;			/* ns, at most, from accepting to applying */
	u64 kib_ns;			/* time of 1,024 bytes on the wire; 0: none */
	u64 queue_ns;			/* frames that would wait longer are lost */
};

struct sim_counts {
	u64 sent, lost, duplicated, damaged, replayed;
	u64 bad_frame, bad_tag, bad_crc, bad_epoch, bad_ack;
	u64 data, resent, duplicates, held, held_dropped, future, refused;
	u64 completions, hellos, opened, restarts, failures, strays;
	u64 items, items_most;		/* allocated now, and at most */
};

struct sim;
struct sim_peer;
struct sim_command;

/* A frame on its way, or kept for a replay. */
struct sim_packet {
	u32 from, to, color, length;
	u8 *bytes;			/* allocated by itself: its end is watched */
	bool marked;			/* by the network (ECN) */
};

struct sim_event {
	u64 time, serial;
	void (*run)(struct sim *s, void *what, u64 number);
	void *what;
	u64 number;
};

/* A received frame on its way into memory. */
struct sim_arrival {
	struct sim_peer *peer;
	struct sim_packet *packet;
	u64 seq;
	u32 life;			/* of the flow */
	u32 refs;			/* effects still to come */
};

/* Something to be sent: one message, or a transfer cut into DATA. */
struct sim_item {
	struct sim_item *next;
	struct acp_out out;
	struct sim_command *command;	/* NULL: allocated by itself */
	struct sim_peer *requester;	/* who delegated it */
	struct sim_arrival *arrival;	/* not applied before this is delivered */
	u32 frames;			/* in flight */
	u8 status;
};

struct sim_list {
	struct sim_item *first, **last;
};

/* Contents of a frame in flight. */
struct sim_sent {
	struct sim_item *items;		/* whole messages */
	struct sim_item *piece;		/* or part of one transfer */
	u64 offset;
	u32 length;
	bool fence;
};

/* Our end of a flow. */
struct sim_peer {
	struct sim_node *me;
	u32 node, color, life;
	struct acp_flow flow;
	struct acp_flow_slot slots[ACP_FRAME_WINDOW];
	struct sim_sent sent[ACP_FRAME_WINDOW];
	struct sim_list pending, answers;	/* answers: frames wait for them to be delivered */
	struct sim_packet *held[SIM_HELD];
	u32 nheld, delegated;
	struct acp_fails fails;
	u64 armed;			/* time of the next tick; ~0: none */
	bool ack_armed;
};

enum sim_state { SIM_FREE, SIM_WAITING, SIM_STARTED, SIM_COMPLETE };

struct sim_command {
	struct sim_item item;		/* out.m: the command, then what is sent for it */
	struct acp_step step;
	u64 ticket, order, seen;
	struct sim_peer *expects[2];	/* answers awaited of */
	u32 expects_life[2];
	u32 rank;
	bool busy;			/* its item is with the transport */
	struct sim_peer *opens;		/* waits for this flow to be open */
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
	u64 busy_until;			/* its wire */
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
	bool cut[SIM_NODES][SIM_NODES];	/* no frame passes */
	struct sim_counts n;

	struct sim_event *events;	/* heap */
	u32 nevents, room;
	struct sim_packet *kept[64];	/* for replays */

	/* The test's: memory was written; a command was completed, in order. */
	void (*wrote)(struct sim *s, u32 rank, u64 offset, u64 length);
	void (*completed)(struct sim *s, u32 rank, u64 ticket, u8 status);
	void *test;
};

/* End the test, saying how to repeat it. */
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

/* Set nodes, ranks, colors, mtu, memory, net first.  Ranks: rank % nodes is the node. */
void sim_init(struct sim *s, u64 seed);
void sim_free(struct sim *s);

u64 sim_random(struct sim *s);
bool sim_chance(struct sim *s, u32 probability);

/* Call run() after "delay" ns. */
void sim_after(struct sim *s, u64 delay, void (*run)(struct sim *, void *, u64), void *what,
	       u64 number);

/* Go on to the next event; false: there is none. */
bool sim_step(struct sim *s);

/* Bytes leave a node; they are copied. */
void sim_transmit(struct sim *s, u32 from, u32 to, u32 color, const u8 *bytes, u32 length);

void sim_packet_free(struct sim_packet *p);

/* ---- frames and flows (sim_peer.c) ---- */

/* A frame arrives; takes the packet over. */
void sim_receive(struct sim *s, struct sim_packet *p);

static inline struct sim_peer *sim_peer(struct sim *s, u32 me, u32 node, u32 color)
{
	return &s->node[me].peers[node][color];
}

/* Queue an item; it goes out with the next flush of the node. */
void sim_peer_send(struct sim *s, struct sim_peer *p, struct sim_item *item);
void sim_node_flush(struct sim *s, u32 node);

/* Is the flow open?  If not it will be. */
bool sim_peer_open(struct sim *s, struct sim_peer *p);

/* Wait for (+1) or got (-1) an answer. */
void sim_peer_expect(struct sim *s, struct sim_peer *p, int n);

/* One effect of an arrival is there; after the last one it is applied. */
void sim_arrival_put(struct sim *s, struct sim_arrival *a);

/* ---- commands (sim_station.c) ---- */

/* Can all messages of the frame be taken now?  False: refuse it. */
bool sim_station_admits(struct sim *s, struct sim_peer *p, const struct sim_packet *packet);

/* Let the messages of a frame have their effect. */
void sim_station_apply(struct sim *s, struct sim_arrival *a);

/* An item was delivered (status 0) or never will be. */
void sim_station_due(struct sim *s, struct sim_item *item);
void sim_station_done(struct sim *s, struct sim_item *item);

/* The flow is open now. */
void sim_station_opened(struct sim *s, struct sim_peer *p);

/* Nothing more will come from the peer's former life. */
void sim_station_lost(struct sim *s, struct sim_peer *p, u8 status);

/* ---- nodes ---- */

static inline u32 sim_node_of(const struct sim *s, u32 rank)
{
	return rank % s->nodes;
}

void sim_node_init(struct sim *s, u32 node);

/* The node crashes and is there again at once: memory zero, flows new, commands gone. */
void sim_reboot(struct sim *s, u32 node);

/* Free what the node keeps. */
void sim_node_free(struct sim *s, u32 node);

/* Room for one more command of a rank? */
bool sim_room(struct sim *s, u32 rank);

/* Submit a command; its ticket. */
u64 sim_submit(struct sim *s, u32 rank, const struct acp_msg *command, u64 order);

#endif /* SIM_H */
