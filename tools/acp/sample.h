/* SPDX-License-Identifier: MIT */
/*
 * Counters of all ranks and flows of this node at one time, and their rates since a previous
 * sample.
 */
#ifndef CTL_SAMPLE_H
#define CTL_SAMPLE_H

#include "nl.h"

/*
 * Counters of a rank of this node, or of a flow to another node. Both have their own set of
 * indices.
 */
enum ctl_count {
	CTL_TAKEN, CTL_COMPLETED, CTL_FAILURES,
	CTL_TX_FRAMES = 0, CTL_TX_BYTES, CTL_RETRANSMITS, CTL_RX_FRAMES, CTL_RX_BYTES,
	CTL_COUNTS
};

struct ctl_row {
	uint32_t job, generation;
	uint32_t rank, pid;			/* of a rank; of a flow: node, color */
	uint32_t state, in_flight, window, regions;
	uint64_t srtt;				/* ns */
	uint64_t barrier;			/* 0: in no barrier */
	char address[CTL_ADDRESS_TEXT];
	uint64_t count[CTL_COUNTS];
	double rate[CTL_COUNTS];		/* per second, since the previous sample */
};

struct ctl_rows {
	struct ctl_row *row;
	size_t count;
};

struct ctl_sample {
	uint64_t at;				/* ns, CLOCK_MONOTONIC */
	struct ctl_rows ranks, flows;
};

/*
 * Query the kernel. @job: as typed, or NULL for all. Returns 0 or -errno; -EINVAL after a message.
 */
int ctl_sample_take(struct ctl_nl *nl, const char *job, struct ctl_sample *s);

/*
 * Compute rates since @before; entries that are not in it have none. The busiest are sorted first.
 */
void ctl_sample_compare(struct ctl_sample *s, const struct ctl_sample *before);

void ctl_sample_free(struct ctl_sample *s);

#endif /* CTL_SAMPLE_H */
