/* SPDX-License-Identifier: MIT */
/*
 * Let one allocation fail with the fault injection of the kernel, for the calling thread
 * (Documentation/fault-injection, "fail-nth").
 */
#ifndef FAIL_NTH_H
#define FAIL_NTH_H

#include <stdbool.h>

/*
 * True if this kernel supports fault injection. Also turns off the stack traces in the kernel log.
 */
bool fail_nth_possible(void);

/* Prepare the calling thread, also for allocations that may sleep. */
void fail_nth_open(void);

/* Let the @n-th of the allocations and user memory accesses of this thread in the kernel fail. */
void fail_nth_arm(int n);

/*
 * Disarm. True if an access has failed. Accesses by read() and write() of this function count, too.
 */
bool fail_nth_disarm(void);

#endif /* FAIL_NTH_H */
