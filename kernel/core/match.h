/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Matching: which posted receive a message goes to, which message a receive gets, and where the
 * messages are kept that no receive has matched.  Each of them gets the oldest of the others,
 * as in MPI (4.1, 3.5).
 *
 * A receive accepts one rank or any, and tags that equal its own in all bits but those of one of
 * at most ACP_MASKS_MAX masks.  Rank or any, and the mask, are the class of a receive.  For each
 * class that has receives there is one key to be looked up for a message, and messages have an
 * entry for each class.  Entries of a key are in their order, and only the first of them is in a
 * hash table.  So neither posting nor matching takes longer the more there are.
 *
 * Kept messages have their places in memory of the owner, of which only offsets are known here.  A
 * message that asks for a receive (rendezvous) takes an entry without a place: its bytes are sent
 * when they are granted a receive, or a place.
 */
#ifndef ACP_MATCH_H
#define ACP_MATCH_H

#include "acp_abi.h"
#include "port.h"

#define ACP_MATCH_NONE		(~0u)
#define ACP_MATCH_LATER		(~1u)
#define ACP_MATCH_CLASSES	(2 * ACP_MASKS_MAX)

/* What a receive accepts, and what a message is looked up by. */
struct acp_key {
	u64 tag;		/* without the bits that are ignored */
	u32 rank;		/* ~0: any */
	u32 class;		/* the number of its class */
};

/* An entry of a table. */
struct acp_keyed {
	struct acp_key key;
	u32 next, prev;		/* entries of the same key, in a ring */
	u32 chain;		/* of the first of a key: the next key in the bucket */
	bool first;
};

/* Entries by keys, those of the same key in the order in which they were added. */
struct acp_keys {
	struct acp_keyed *e;
	u32 *buckets;
	u32 shift;		/* 64 - log2 of the number of buckets */
	u64 secret[2];		/* odd: nobody can choose keys of one bucket */
};

/* A message whose bytes have to be granted a receive, or a place among the kept ones. */
struct acp_ask {
	u64 ticket;		/* its command, of the rank that sends it */
	u64 when;		/* ns, when it was granted; 0: not yet */
	u32 epoch;		/* incarnation of the flow in which it has asked */
	u32 color;		/* of that flow */
};

enum acp_receive_state {
	ACP_RECEIVE_FREE,
	ACP_RECEIVE_POSTED,
	ACP_RECEIVE_BUSY,	/* a message is on its way to it, or will be copied by the owner */
};

struct acp_receive {
	u64 seq;		/* counts receives */
	u64 buffer, room;
	u64 size, tag;		/* of the message; valid if BUSY */
	u32 rank;
	u8 state;		/* enum acp_receive_state */
	bool granted;		/* BUSY: its message asked for it, no byte has arrived yet */
	struct acp_ask ask;	/* valid if granted */
};

enum acp_kept_state {
	ACP_KEPT_FREE,
	ACP_KEPT_LISTED,	/* receives can match it */
	ACP_KEPT_TAKEN,		/* a receive has matched it, which gets it when it is complete */
	ACP_KEPT_GIVEN,		/* the owner has it, and will release it */
};

struct acp_kept {
	u64 at, length;		/* its place */
	u64 size, tag;
	u32 rank;
	u32 next, prev;		/* by places, in a ring that contains the entry behind the last */
	u32 receive;		/* TAKEN: the one that has matched it */
	u8 state;		/* enum acp_kept_state */
	u8 masks;		/* LISTED: it is listed for so many */
	bool arriving;		/* its bytes are not there yet */
	bool asks;		/* LISTED: it has no place */
	bool granted;		/* arriving: it asked for its place, no byte has arrived yet */
	struct acp_ask ask;	/* valid if it asks or is granted */
};

struct acp_matcher {
	u32 receives, messages;	/* sizes of the tables */
	u32 masks, masks_max;	/* how many there are, and how many there can be */
	u64 mask[ACP_MASKS_MAX];	/* and behind them the one that is being learned */
	u32 learning;		/* entry of the first message not listed for that; or NONE */
	u64 bytes;		/* of the memory for messages */
	u64 seq;		/* of the latest receive */
	u32 posted[ACP_MATCH_CLASSES];	/* receives of each class */
	u32 busy;		/* receives that are BUSY, and messages that are arriving */
	u32 asking;		/* messages that ask */
	u32 granted;		/* receives and messages that are granted */
	u32 placed;		/* the message that was placed last, or the one before it */
	u32 unused;		/* the first free message; others by "next" */
	struct acp_keys by_receive;	/* one entry per receive */
	struct acp_keys by_message;	/* one per message and class */
	struct acp_receive *receive;
	struct acp_kept *kept;	/* and one more, where the memory begins and ends */
};

/**
 * acp_matcher_bytes() - the memory that a matcher needs for its tables
 * @m: a matcher, with the sizes set that acp_matcher_init() requires
 *
 * Context: any.
 * Return: Bytes, less than 2^28.
 */
size_t acp_matcher_bytes(const struct acp_matcher *m);

/**
 * acp_matcher_init() - set up a matcher
 * @m: receives, messages, masks, masks_max, mask and bytes are set, to values that acp_abi.h
 *	permits
 * @memory: acp_matcher_bytes(), zeroed, aligned to 8
 * @secret: two random numbers
 *
 * Context: any.
 */
void acp_matcher_init(struct acp_matcher *m, void *memory, const u64 secret[2]);

/**
 * acp_matcher_mask() - find a mask
 * @m: the matcher
 * @ignore: bits that a receive ignores
 *
 * Context: The caller serializes calls on one matcher.
 * Return: Its number, or ACP_MATCH_NONE.
 */
u32 acp_matcher_mask(const struct acp_matcher *m, u64 ignore);

/**
 * acp_matcher_learn() - find a mask, or add it
 * @m: the matcher; if it can have more masks than it has, the first one is ~0
 * @ignore: bits that a receive ignores
 * @steps: messages to be listed for a mask that is added, at most
 *
 * All that are kept are listed for it, in several calls if there are many.  Anything else may be
 * called in between.
 *
 * Context: The caller serializes calls on one matcher.
 * Return: Its number; ACP_MATCH_NONE: there are masks_max others; or ACP_MATCH_LATER: call it
 * again.
 */
u32 acp_matcher_learn(struct acp_matcher *m, u64 ignore, u32 steps);

/**
 * acp_matcher_find() - find the oldest kept message that a receive accepts
 * @m: the matcher
 * @key: what the receive accepts: see acp_matcher_key()
 *
 * Context: The caller serializes calls on one matcher.
 * Return: The number of the message, or ACP_MATCH_NONE.
 */
u32 acp_matcher_find(const struct acp_matcher *m, const struct acp_key *key);

/**
 * acp_matcher_key() - make the key of a receive
 * @m: the matcher
 * @rank: the sender, or ~0 for any
 * @tag: the tag
 * @mask: number of the mask
 *
 * Context: The caller serializes calls on one matcher.
 * Return: The key.
 */
struct acp_key acp_matcher_key(const struct acp_matcher *m, u32 rank, u64 tag, u32 mask);

/**
 * acp_matcher_post() - post a receive for which no message has been kept
 * @m: the matcher
 * @number: a receive that is FREE
 * @key: what it accepts
 * @buffer: where its message goes
 * @room: bytes of the buffer
 *
 * Context: The caller serializes calls on one matcher.
 */
void acp_matcher_post(struct acp_matcher *m, u32 number, const struct acp_key *key, u64 buffer,
		      u64 room);

/**
 * acp_matcher_withdraw() - withdraw a receive that is POSTED
 * @m: the matcher
 * @number: the receive, FREE from now on
 *
 * Context: The caller serializes calls on one matcher.
 */
void acp_matcher_withdraw(struct acp_matcher *m, u32 number);

/**
 * acp_matcher_take() - give a kept message to a receive, or to the owner himself
 * @m: the matcher
 * @message: a message that is LISTED
 * @number: a receive that is FREE
 *
 * Context: The caller serializes calls on one matcher.
 * Return: True if the message is complete: it is GIVEN, and the receive stays FREE.
 */
bool acp_matcher_take(struct acp_matcher *m, u32 message, u32 number);

/**
 * acp_matcher_match() - find the receive that a message goes to
 * @m: the matcher
 * @rank: the sender
 * @tag: the tag
 * @size: bytes of the message
 *
 * Context: The caller serializes calls on one matcher.
 * Return: Its number; it is BUSY until acp_matcher_done().  ACP_MATCH_NONE: there is none.
 */
u32 acp_matcher_match(struct acp_matcher *m, u32 rank, u64 tag, u64 size);

/**
 * acp_matcher_done() - end a receive that is BUSY
 * @m: the matcher
 * @number: the receive, FREE from now on
 *
 * Context: The caller serializes calls on one matcher.
 */
void acp_matcher_done(struct acp_matcher *m, u32 number);

/**
 * acp_matcher_return() - undo acp_matcher_match(): the message will come again
 * @m: the matcher
 * @number: the receive, POSTED again, where it was among the others
 *
 * Context: The caller serializes calls on one matcher.
 */
void acp_matcher_return(struct acp_matcher *m, u32 number);

/**
 * acp_matcher_keep() - find a place for a message that no receive matches
 * @m: the matcher
 * @rank: the sender
 * @tag: the tag
 * @size: bytes of the message
 * @message: receives its number; it is LISTED and arriving
 *
 * At most ACP_MATCH_PLACES places between other messages are looked at.
 *
 * Context: The caller serializes calls on one matcher.
 * Return: ACP_ST_OK; ACP_ST_AGAIN: there is no room now; ACP_ST_RANGE: it is too long for ever.
 */
u8 acp_matcher_keep(struct acp_matcher *m, u32 rank, u64 tag, u64 size, u32 *message);

#define ACP_MATCH_PLACES	16

/**
 * acp_matcher_ask() - list a message that asks for a receive, as no receive matches it now
 * @m: the matcher
 * @rank: the sender
 * @tag: the tag
 * @size: bytes of the message
 * @ask: the rest of it
 *
 * Context: The caller serializes calls on one matcher.
 * Return: ACP_ST_OK, or ACP_ST_AGAIN: there are too many messages.
 */
u8 acp_matcher_ask(struct acp_matcher *m, u32 rank, u64 tag, u64 size, const struct acp_ask *ask);

/**
 * acp_matcher_promise() - keep a receive for a message that asks
 * @m: the matcher
 * @number: the receive that acp_matcher_match() found; it is granted
 * @ask: the message
 *
 * Context: The caller serializes calls on one matcher.
 */
void acp_matcher_promise(struct acp_matcher *m, u32 number, const struct acp_ask *ask);

/**
 * acp_matcher_grant() - give a message that asks to the receive that has matched it
 * @m: the matcher
 * @message: a message that asks; it is gone
 * @number: a receive that is POSTED; it is BUSY, and granted
 *
 * Context: The caller serializes calls on one matcher.
 */
void acp_matcher_grant(struct acp_matcher *m, u32 message, u32 number);

/**
 * acp_matcher_admit() - find a place for a message that asks
 * @m: the matcher
 * @message: the message; it is arriving, and granted
 *
 * Context: The caller serializes calls on one matcher.
 * Return: As acp_matcher_keep().
 */
u8 acp_matcher_admit(struct acp_matcher *m, u32 message);

/**
 * acp_matcher_refuse() - remove a message that asks
 * @m: the matcher
 * @message: the message
 *
 * Context: The caller serializes calls on one matcher.
 */
void acp_matcher_refuse(struct acp_matcher *m, u32 message);

/**
 * acp_matcher_kept() - all bytes of a message that was kept are there, or will not come
 * @m: the matcher
 * @message: a message that is arriving
 * @failed: they will not come: the message is gone
 *
 * Context: The caller serializes calls on one matcher.
 * Return: The receive that has matched it meanwhile, which is FREE from now on; otherwise
 *	ACP_MATCH_NONE.
 */
u32 acp_matcher_kept(struct acp_matcher *m, u32 message, bool failed);

/**
 * acp_matcher_release() - release a message that is GIVEN
 * @m: the matcher
 * @message: the message
 *
 * Context: The caller serializes calls on one matcher.
 */
void acp_matcher_release(struct acp_matcher *m, u32 message);

#endif /* ACP_MATCH_H */
