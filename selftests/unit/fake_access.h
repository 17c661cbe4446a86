/* SPDX-License-Identifier: MIT */
/* An access of the played basic layer, and what it does to memory; see fake_acp.h. */
#ifndef FAKE_ACCESS_H
#define FAKE_ACCESS_H

#include "fake_rank.h"

/* READING and WRITING: some of the words were, the others will be. */
enum fake_phase { FAKE_NEW, FAKE_READING, FAKE_READ, FAKE_WRITING, FAKE_DONE };

/* An access, in the slot of its ticket. */
struct fake_access {
	enum acp_op op;
	enum fake_phase phase;
	int status;
	bool quiet;
	bool home, away;		/* has an effect at its origin; elsewhere than there */
	int node;			/* of what is not here; -1: all is here; -2: several */
	acp_ga_t dst, src;
	uint64_t size, a, b, order, seen;
	uint64_t trip;			/* round trips that its completion takes */
	uint64_t halves;		/* a bit for each word: when it is read and written */
	char *data;
};

/* Which of the words an access goes on with. */
enum fake_part { FAKE_HALF, FAKE_REST, FAKE_ALL };

bool fake_local_rank(int rank);

/* Read the source (an atomic: change it); write the destination.  0 or ACPX_E*. */
int fake_read_source(struct fake_access *x, enum fake_part part);
int fake_write_destination(struct fake_access *x, enum fake_part part);

#endif /* FAKE_ACCESS_H */
