/* SPDX-License-Identifier: MIT */
/* Counters of all ranks and flows of this node at one time, and what became of them since. */
#ifndef CTL_SAMPLE_H
#define CTL_SAMPLE_H

#include "ctl_nl.h"

/* A rank of this node, or a flow to another one; which counts it has depends on that. */
enum ctl_count {
	CTL_TAKEN, CTL_COMPLETED, CTL_FAILURES,
	CTL_TX_FRAMES = 0, CTL_TX_BYTES, CTL_TX_AGAIN, CTL_RX_FRAMES, CTL_RX_BYTES,
	CTL_COUNTS
};

struct ctl_row {
	uint32_t job, generation;
	uint32_t rank, pid;			/* of a rank; of a flow: node, color */
	uint32_t state, in_flight, window, regions;
	uint64_t srtt;				/* ns */
	uint64_t barrier;			/* 0: it waits in none */
	char address[CTL_ADDRESS_TEXT];
	uint64_t count[CTL_COUNTS];
	double rate[CTL_COUNTS];		/* per second, since the sample before */
};

struct ctl_rows {
	struct ctl_row *row;
	size_t count;
};

struct ctl_sample {
	uint64_t at;				/* ns, of a clock that only goes on */
	struct ctl_rows ranks, flows;
};

/* Ask the kernel; job: as typed, or NULL for all. 0, -errno, or -EINVAL with a complaint. */
int ctl_sample_take(struct ctl_nl *nl, const char *job, struct ctl_sample *s);

/* Rates since "before"; what was not there then has none. The busiest come first. */
void ctl_sample_compare(struct ctl_sample *s, const struct ctl_sample *before);

void ctl_sample_free(struct ctl_sample *s);

#endif /* CTL_SAMPLE_H */
