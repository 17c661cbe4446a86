/* SPDX-License-Identifier: MIT */
/*
 * Let one allocation fail: the kernel's fault injection, for the calling
 * thread (Documentation/fault-injection, "fail-nth").
 */
#ifndef FAIL_NTH_H
#define FAIL_NTH_H

#include <stdbool.h>

/*
 * Can this kernel inject faults?  From then on without traces in the log: who
 * asked for them knows.
 */
bool fail_nth_possible(void);

/* For the calling thread, also for allocations that could wait. */
void fail_nth_open(void);

/* Let the n-th fail of this thread's allocations and accesses to user memory in the kernel. */
void fail_nth_arm(int n);

/* No more of it.  Did it fail?  Reading and writing here are such accesses, too. */
bool fail_nth_disarm(void);

#endif /* FAIL_NTH_H */
