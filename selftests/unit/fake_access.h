/* SPDX-License-Identifier: MIT */
/* An access of the fake basic layer, and its effect on memory; see fake_acp.h. */
#ifndef FAKE_ACCESS_H
#define FAKE_ACCESS_H

#include "fake_rank.h"

/* READING and WRITING: some of the words have been read or written, the others have not. */
enum fake_phase { FAKE_NEW, FAKE_READING, FAKE_READ, FAKE_WRITING, FAKE_DONE };

/* An access, stored in the slot of its ticket. */
struct fake_access {
	enum acp_op op;
	enum fake_phase phase;
	int status;
	bool quiet;
	bool home, away;		/* has an effect at its origin; elsewhere */
	int node;			/* remote node involved; -1: none; -2: several */
	acp_ga_t dst, src;
	uint64_t size, a, b, order, seen;
	uint64_t trip;			/* round trip in which it completes */
	/* bit mask of words: half in which each is read and written */
	uint64_t halves;
	char *data;
};

/* The words with which an access proceeds. */
enum fake_part { FAKE_HALF, FAKE_REST, FAKE_ALL };

bool fake_local_rank(int rank);

/* Read the source (an atomic changes it); write the destination. Returns 0 or ACPX_E*. */
int fake_read_source(struct fake_access *x, enum fake_part part);
int fake_write_destination(struct fake_access *x, enum fake_part part);

#endif /* FAKE_ACCESS_H */
