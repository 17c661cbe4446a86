/* SPDX-License-Identifier: MIT */
/*
 * The model: the expected contents of the slots and words that belong to this member, at all
 * members. What a failed access may have changed, and may still change for a while, is doubtful
 * until then.
 */
#ifndef SLOTS_H
#define SLOTS_H

#include "board.h"

struct slot {
	uint8_t member, color;
	bool busy;
	uint8_t *at, *model;
	size_t offset, size;		/* in the arena; bytes */
	uint64_t doubtful;		/* ns: until then; 0: not doubtful */
	size_t low, high;		/* these bytes are doubtful */
	const uint8_t *data;		/* alternative contents; NULL: anything */
	uint8_t word[8];		/* data, if it is the former value of a word */
};

struct word {
	uint8_t member, color, width;
	bool busy;
	void *at;
	size_t offset;
	uint64_t value;
	uint64_t doubtful, other;	/* ns; it may have this value instead */
};

/* All memory that this member may change is as an earlier one left it. */
void slots_open(void);

/* Take a slot that holds @size bytes, or a word, at a member; NULL if none is free. */
struct slot *slot_take(int member, int color, size_t size, uint64_t *stream);
struct word *word_take(int member, int color, unsigned int width);

/* Record the effect of an access: applied (status 0), none, or unknown. */
void slot_changed(struct slot *s, size_t offset, size_t size, const uint8_t *data);
void slot_doubtful(struct slot *s, const struct access *a, uint64_t until);
void word_changed(struct word *w, uint64_t value);
void word_doubtful(struct word *w, uint64_t other, uint64_t until);

/* Compare with memory; a difference fails the test, with the text of the access. */
void slot_check(struct slot *s, const struct access *a);
void word_check(struct word *w, const struct access *a);

/* Wait until nothing is doubtful, then compare everything. */
void slots_settle(void);

/* Fill SOURCE_SIZE bytes with contents that depend only on the seed. */
void source_fill(uint8_t *source, uint64_t seed);

#endif /* SLOTS_H */
