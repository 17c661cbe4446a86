/* SPDX-License-Identifier: MIT */
/*
 * Ranks 1 and 2 of a job of three, at work while somebody else misbehaves: what
 * they do must go on, and memory that they did not open to others must not change.
 */
#ifndef BYSTANDERS_H
#define BYSTANDERS_H

#include <pthread.h>

#include "rank.h"

#define SECRET_SIZE (4 * PAGE)

struct bystanders {
	struct rank a, b;
	struct memory secret, read_only;	/* of b: for nobody, for readers */
	uint64_t rounds;
	pthread_t thread;
	bool stop;
};

/* The job is that of setup_local(); rank 0 is free. */
void bystanders_open(struct bystanders *s);

/* They worked until now, and nothing has changed.  They leave. */
void bystanders_close(struct bystanders *s);

#endif /* BYSTANDERS_H */
