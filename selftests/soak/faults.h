/* SPDX-License-Identifier: MIT */
/*
 * The faults of a soak: drawn, begun and ended by the director.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include "../net/nodes.h"
#include "board.h"

/* Count them here, for all lives. */
#define FAULTS_COUNTED	32
void faults_begin(unsigned int counts[FAULTS_COUNTED]);

/* Faults for a life on these nodes; all decisions come from the stream. */
void faults_open(struct nodes *n, uint64_t *stream);

/* End what is due and begin others.  calm: none that an acp_init might not survive. */
void faults_tick(bool calm);

/* End all. */
void faults_end(void);

/* Is a node cut off for longer than the time-out, or a member stopped? */
bool faults_severe(void);

/* Print how many of each there were. */
void faults_print(void);

/* For what may be left from a soak that failed: the machine as it was. */
void faults_undo(void);

#endif /* FAULTS_H */
