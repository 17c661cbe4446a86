/* SPDX-License-Identifier: MIT */
/*
 * Creation of a collective. The caller of libacp_creation_begin() fills in the collective, tells
 * what must be the same at all members, and calls libacp_creation_end(), also after an error: all
 * members learn of it.
 */
#ifndef LIBACP_CREATE_H
#define LIBACP_CREATE_H

#include "coll/coll.h"
#include "group/exchange.h"

#pragma GCC visibility push(hidden)

#define LIBACP_AGREED_MAX	8

struct libacp_creation {
	struct acpx_coll *coll;
	struct acpx_coll spare;		/* used if there is no memory for coll */
	int error;			/* the first one: 0 or -errno */
	uint64_t agreed[LIBACP_AGREED_MAX];
	int agreed_count;
	uint32_t slot_users;		/* members that fill slots of the caller */
	bool told_scratch;		/* others read the scratch memory of the caller's area */
	/* what other members read while they create the collective, in scratch memory */
	void *list;
	acp_ga_t list_ga;
	/* reads what others have told, after the peers of the tree are known; or NULL */
	int (*learn)(struct libacp_creation *n, struct libacp_exchange *x);
	const void *state;		/* of learn */
};

/* What a member tells, as an entry of the table. */
struct libacp_told {
	uint64_t digest, area, buffer, list;
};

/**
 * libacp_creation_begin() - begin to create a collective
 * @n: the creation
 * @group: the group
 * @name: constant string
 * @algorithm: of a round
 * @coll: where libacp_creation_end() stores the collective
 *
 * Context: any thread; does not block.
 * Return: 0 or -errno: then nothing is to be done, and no other member learns of it.
 */
int libacp_creation_begin(struct libacp_creation *n, acpx_group_t group, const char *name,
			  libacp_algorithm_t *algorithm, acpx_coll_t *coll);

/* Fail at all members, unless it has failed already. */
void libacp_creation_fail(struct libacp_creation *n, int error);

/* This must be the same at all members. */
void libacp_creation_agree(struct libacp_creation *n, uint64_t value);

void libacp_creation_agree_bytes(struct libacp_creation *n, const void *bytes, size_t size);

/* Check that the caller owns this memory. */
void libacp_creation_memory(struct libacp_creation *n, acp_ga_t ga, size_t size, bool write);

/* Set the members that the caller communicates with; the root must be the same at all members. */
void libacp_creation_tree(struct libacp_creation *n, int root, int radix);

/* Set the vector to be combined; count, operation and type must be the same at all members. */
void libacp_creation_vector(struct libacp_creation *n, size_t count, size_t factor, int op,
			    int type);

/* Set a buffer of @size bytes that others know, and that is sent in pieces of at least @least. */
void libacp_creation_whole(struct libacp_creation *n, acp_ga_t buffer, size_t size, size_t least);

/* If the buffer that all know is short, members with children send it from copies in scratch. */
void libacp_creation_brief(struct libacp_creation *n);

/* Return the radix of a tree: 4 for up to @small bytes; for more, a chain if that is short. */
int libacp_creation_radix(const struct acpx_coll *c, size_t small);

/* Let other members read @size bytes at @from during the creation. */
void libacp_creation_list(struct libacp_creation *n, const void *from, size_t size);

/* Read what a member has told. Returns 0 or -errno. */
int libacp_creation_told(const struct libacp_exchange *x, int number, struct libacp_told *told);

/* Read what a member has told into a peer. Returns 0 or -errno. */
int libacp_creation_peer(struct libacp_creation *n, const struct libacp_exchange *x,
			 struct libacp_peer *peer, int number);

/**
 * libacp_creation_end() - exchange addresses with the other members
 * @n: the creation, complete or with an error
 * @coll: receives the collective
 *
 * Context: any thread of a rank; waits for all members.
 * Return: 0 or -errno, at all members.
 */
int libacp_creation_end(struct libacp_creation *n, acpx_coll_t *coll);

#pragma GCC visibility pop

#endif /* LIBACP_CREATE_H */
