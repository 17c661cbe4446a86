/* SPDX-License-Identifier: MIT */
/*
 * Ranks 1 and 2 of a job of three ranks, which communicate while another process misbehaves. Their
 * communication must continue, and memory that they did not grant to others must not change.
 */
#ifndef BYSTANDERS_H
#define BYSTANDERS_H

#include <pthread.h>

#include "rank.h"

#define SECRET_SIZE (4 * PAGE)

struct bystanders {
	struct rank a, b;
	struct memory secret, read_only;	/* of b: no access, read access */
	uint64_t rounds;
	pthread_t thread;
	bool stop;
};

/* The job is that of setup_local(). Rank 0 is not joined. */
void bystanders_open(struct bystanders *s);

/* Check that both have worked until now and that nothing has changed; then they leave. */
void bystanders_close(struct bystanders *s);

#endif /* BYSTANDERS_H */
