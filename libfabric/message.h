/* SPDX-License-Identifier: MIT */
/*
 * Messages of an endpoint: what message.c, send.c, receive.c, landing.c and peek.c share.
 *
 * An endpoint has one match list, to which the kernels of all senders' nodes deliver. The 64 bits
 * of a tag on the way:
 *
 *	tagged	0 | endpoint of the sender (3) | tag of the user (60)
 *	or	0 | endpoint of the sender (3) | data + 1, or 0 (18) | tag of the user (42)
 *	msg	1 | 0 (17) | endpoint of the sender (6) | 0 (7) | has data | data (32)
 *
 * The second layout is for endpoints whose info was asked for remote CQ data, as Open MPI does.
 * It has room for small numbers only, ranks of MPI for example.
 *
 * Short messages are copied and sent at once. Long ones wait for their receive (rendezvous), and
 * take no memory of the receiver's list. While one waits, no later access of its queue completes,
 * so messages have queues of their own; all of one peer are in one queue, which keeps their order.
 */
#ifndef FI_ACP_MESSAGE_H
#define FI_ACP_MESSAGE_H

#include "acp_fi.h"

#pragma GCC visibility push(hidden)

#define FI_ACP_EAGER		FI_ACP_BOUNCE	/* longer messages wait for their receive */
#define FI_ACP_QUEUES		4u	/* of messages, per endpoint */
#define FI_ACP_QUEUE_DEPTH	2048u
#define FI_ACP_WAITING		192u	/* long messages of a queue under way */
#define FI_ACP_RECEIVES		4096u	/* posted receives of an endpoint */
#define FI_ACP_KEPT		4096u	/* messages that no receive has matched */
#define FI_ACP_KEPT_BYTES	(16u << 20)

#define FI_ACP_TAG_BITS		60
#define FI_ACP_TAG_MASK		((UINT64_C(1) << FI_ACP_TAG_BITS) - 1)
#define FI_ACP_SHORT_BITS	42	/* of tags beside data */
#define FI_ACP_SHORT_MASK	((UINT64_C(1) << FI_ACP_SHORT_BITS) - 1)
#define FI_ACP_DATA_MASK	(FI_ACP_TAG_MASK & ~FI_ACP_SHORT_MASK)
#define FI_ACP_DATA_MAX		((FI_ACP_DATA_MASK >> FI_ACP_SHORT_BITS) - 1)
#define FI_ACP_TAGGED_EPS	8u	/* endpoints with FI_TAGGED of a process */
#define FI_ACP_TAGGED_ANY	(UINT64_C(7) << FI_ACP_TAG_BITS)	/* from any endpoint */
#define FI_ACP_MSG		(UINT64_C(1) << 63)
#define FI_ACP_MSG_EP_SHIFT	40
#define FI_ACP_MSG_DATA		(UINT64_C(1) << 32)
#define FI_ACP_MSG_IGNORE	((UINT64_C(1) << 33) - 1)
#define FI_ACP_MSG_ANY		(UINT64_C(63) << FI_ACP_MSG_EP_SHIFT)

/* Memory to which the message of a receive is written. */
struct fi_acp_landing {
	acp_ga_t ga;
	char *copy;			/* of the provider: to be copied from; or NULL */
	int slot;			/* of the endpoint's slots, or -1 */
	acp_atkey_t key;		/* a registration for this receive; or ACP_ATKEY_NULL */
	bool allocated;			/* copy is from malloc() */
};

/* Slots for the messages of short receives: registering a buffer is slow. */
struct fi_acp_slots {
	char *memory;
	acp_ga_t ga;
	size_t size;			/* of a slot */
	unsigned int count, unused;
	int *next;			/* numbers of the unused slots: unused of them */
};

#define FI_ACP_SLOT_SIZES	2u

struct fi_acp_receive {
	struct fi_acp_receive *next, *prev;	/* in a ring; unused: next only */
	acpx_receive_t handle;
	bool posted;			/* the list has it; otherwise it has ended */
	bool silent;			/* it reports nothing */
	bool report;			/* on success, too */
	bool claimed;			/* waits for FI_CLAIM */
	bool multi;			/* FI_MULTI_RECV: it goes on with the rest of its buffer */
	bool tagged;
	int rank;			/* of the sender, or ACPX_ANY_RANK */
	uint64_t tag, ignore;		/* on the way */
	void *context;
	struct iovec iov[FI_ACP_IOV];
	size_t count, room;		/* room: for the message */
	size_t user_room;		/* what the user wants of it, at most */
	struct fi_acp_landing landing;
	/* what has become of it */
	struct fi_acp_entry entry;
	bool failed;
};

struct fi_acp_way {			/* a queue of messages */
	struct fi_acp_queue queue;
	unsigned int waiting;		/* long messages under way */
};

struct fi_acp_messages {
	struct fi_acp_ep *ep;
	acpx_match_t match;
	uint64_t tag_mask;		/* bits of tags that users have */
	size_t eager;			/* longest message that is sent at once */
	struct fi_acp_way *ways[FI_ACP_QUEUES];
	struct fi_acp_receive *receives, *unused;
	struct fi_acp_receive posted, ended;	/* rings */
	unsigned int posted_count;
	struct fi_acp_slots slots[FI_ACP_SLOT_SIZES];
	char *slot_memory;
	size_t slot_bytes;
	acp_atkey_t slot_key;
	uint64_t looked;		/* ns, when peers were looked at */
};

/* ---- landing.c ---- */

/* Both: lock held. Return 0 or -FI_E*. */
int fi_acp_slots_open(struct fi_acp_messages *m);
void fi_acp_slots_close(struct fi_acp_messages *m);

/* Find memory for the message of a receive, whose iov, count and room are set. 0 or -FI_E*. */
int fi_acp_land(struct fi_acp_messages *m, struct fi_acp_receive *r, void *const *desc);
/* Copy "size" bytes to where the user wants them. */
void fi_acp_land_copy(const struct fi_acp_receive *r, size_t size);
void fi_acp_land_release(struct fi_acp_messages *m, struct fi_acp_receive *r);

/* ---- receive.c; lock held ---- */

/* What a call of the user wants to receive. */
struct fi_acp_want {
	const struct iovec *iov;
	void *const *desc;
	size_t count;
	fi_addr_t source;
	uint64_t tag, ignore;		/* of the user; tagged */
	uint64_t flags;
	void *context;
	bool tagged;
};

/* Begin a receive that is not posted yet: rank, tag and ignore are set. */
int fi_acp_receive_get(struct fi_acp_messages *m, const struct fi_acp_want *w,
		       struct fi_acp_receive **receive);
/* Post it. In case of an error, it is gone. */
int fi_acp_receive_post(struct fi_acp_messages *m, struct fi_acp_receive *r);
/* It is over, and writes nothing. */
void fi_acp_receive_put(struct fi_acp_messages *m, struct fi_acp_receive *r);
/* It was posted, and has ended without a message: FI_E*. */
void fi_acp_receive_fail(struct fi_acp_messages *m, struct fi_acp_receive *r, int error);
/* It is in a ring, and its entry says what has become of it. Copy the message; report it later. */
void fi_acp_receive_end(struct fi_acp_messages *m, struct fi_acp_receive *r);
/* Report those that have ended, as far as the CQ has room. */
void fi_acp_receive_report(struct fi_acp_messages *m);
/* Describe a message: the entry of its completion. */
void fi_acp_describe(const struct fi_acp_messages *m, const struct acpx_message *message,
		     struct fi_acp_entry *e);
/* Look for some that have ended. */
void fi_acp_receive_look(struct fi_acp_messages *m);

ssize_t fi_acp_receive(struct fi_acp_ep *ep, const struct fi_acp_want *w);

/* ---- peek.c; lock held ---- */

ssize_t fi_acp_peek(struct fi_acp_messages *m, const struct fi_acp_want *w);
ssize_t fi_acp_claim(struct fi_acp_messages *m, const struct fi_acp_want *w);

/* ---- send.c ---- */

struct fi_acp_message {
	const struct iovec *iov;
	void *const *desc;
	size_t count;
	fi_addr_t to;
	uint64_t tag;			/* on the way, without the endpoint */
	uint64_t flags;
	void *context;
	uint64_t data;
	bool tagged, inject;		/* inject: the buffer may be used again at once */
	bool quiet;			/* reports errors only */
};

ssize_t fi_acp_send(struct fi_acp_ep *ep, const struct fi_acp_message *message);
/* Report what has ended behind a message that waits. Lock held. */
void fi_acp_ways_look(struct fi_acp_messages *m);
void fi_acp_ways_close(struct fi_acp_messages *m);

#pragma GCC visibility pop

#endif /* FI_ACP_MESSAGE_H */
