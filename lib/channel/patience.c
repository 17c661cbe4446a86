// SPDX-License-Identifier: MIT
/* Waiting for progress: see rendezvous.h. */
#define _GNU_SOURCE
#include <sched.h>

#include "acp.h"
#include "channel/rendezvous.h"
#include "core/internal.h"
#include "middle/backoff.h"

#define SPIN_NS		1000000ull	/* polling time before a wait sleeps */
#define SLEEP_MIN	20000ull	/* ns */
#define SLEEP_MAX	500000ull
#define LOOKS		32		/* polls between two reads of the clock */

static bool alone_on_cpu(void)
{
	static int known;		/* 0: unknown, 1: no, 2: yes */
	cpu_set_t cpus;

	if (!__atomic_load_n(&known, __ATOMIC_RELAXED))
		__atomic_store_n(&known, 1 + (sched_getaffinity(0, sizeof(cpus), &cpus) == 0 &&
					      CPU_COUNT(&cpus) == 1), __ATOMIC_RELAXED);
	return __atomic_load_n(&known, __ATOMIC_RELAXED) == 2;
}

static void pause_cpu(void)
{
#if __has_builtin(__builtin_ia32_pause)
	__builtin_ia32_pause();
#endif
}

/* Poll again at once, for SPIN_NS? With a single CPU, yield it to other tasks. */
static bool spin(struct libacp_patience *p)
{
	if (alone_on_cpu())
		sched_yield();
	else
		pause_cpu();
	/* Read the clock only after some polls, because it takes as long as several of them. */
	if (++p->looks % LOOKS)
		return true;
	if (!p->since)
		p->since = libacp_now();
	return libacp_now() - p->since < SPIN_NS;
}

static void wait_for(acp_handle_t access)
{
	bool quiet = libacp_quiet(true);

	libacp_finish(access);
	libacp_quiet(quiet);
}

void libacp_rendezvous_wait(struct libacp_patience *p, acp_handle_t access, bool long_one)
{
	const bool in_the_way = alone_on_cpu();

	if ((p->sleep || in_the_way) && acp_inquire(access)) {
		wait_for(access);
		return;
	}
	if (!p->sleep && !(long_one && in_the_way) && spin(p))
		return;
	libacp_sleep(libacp_backoff(&p->sleep, SLEEP_MIN, SLEEP_MAX));
}
