/* SPDX-License-Identifier: MIT */
/* The faults of a soak: selected, started and ended by the director. */
#ifndef FAULTS_H
#define FAULTS_H

#include "../net/nodes.h"
#include "board.h"

/* Count them here, for all lives. */
#define FAULTS_COUNTED	32
void faults_begin(unsigned int counts[FAULTS_COUNTED]);

/* Faults for a life on these nodes; all decisions come from @stream. */
void faults_open(struct nodes *n, uint64_t *stream);

/* End faults that are due and start others. @calm: none that could make acp_init fail. */
void faults_tick(bool calm);

/* End all. */
void faults_end(void);

/* True if a node is cut off for longer than the timeout, or a member is stopped. */
bool faults_severe(void);

/* Print the number of faults of each kind. */
void faults_print(void);

/* Restore the machine after a soak that failed. */
void faults_undo(void);

#endif /* FAULTS_H */
