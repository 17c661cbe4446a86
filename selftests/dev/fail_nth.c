// SPDX-License-Identifier: MIT
/* Fail one allocation (see fail_nth.h). */
#include "isolated.h"

#include <fcntl.h>

#include "fail_nth.h"

#define FAULTS	"/sys/kernel/debug/"

static __thread int control;	/* /proc/thread-self/fail-nth */

bool fail_nth_possible(void)
{
	if (!write_file(FAULTS "failslab/verbose", "0"))
		return false;
	CHECK(write_file(FAULTS "fail_page_alloc/verbose", "0"));
	CHECK(write_file(FAULTS "fail_usercopy/verbose", "0"));
	return true;
}

void fail_nth_open(void)
{
	CHECK(write_file(FAULTS "failslab/ignore-gfp-wait", "N"));
	control = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	CHECK(control >= 0);
}

void fail_nth_arm(int n)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%d", n);

	CHECK_EQ(write(control, text, (size_t)length), length);
}

bool fail_nth_disarm(void)
{
	char text[16] = "";
	bool hit = pread(control, text, sizeof(text), 0) > 0 && text[0] == '0';

	while (write(control, "0", 1) != 1)
		;
	return hit;
}
