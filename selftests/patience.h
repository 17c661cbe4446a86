/* SPDX-License-Identifier: MIT */
/*
 * How long a test waits for what must happen: a base, which is ample on an idle machine, by a clock
 * that advances only as far as the machine delivers.
 *
 *	struct patience p = patience_begin(PATIENCE_SOON);
 *
 *	while (!condition) {
 *		if (patience_over(&p))
 *			FAIL("...");
 *		sleep_ms(1);
 *	}
 *
 * The clock runs at a tenth while the machine is stopped (no tick for a second), and is slower if a
 * calibrated loop takes longer than it did at best: at the least a tenth of the time that passes,
 * so that a limit is extended up to ten times. An extension is told as `# patience: ...`. The
 * harness of a test (test.h, isolated.h) ticks the clock of all processes of the test; a program
 * without harness ticks its own clock when it reads it, so it must do that several times a second.
 */
#ifndef ACP_PATIENCE_H
#define ACP_PATIENCE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

#define PATIENCE_S		1000000000ULL
#define PATIENCE_SOON		(20 * PATIENCE_S)	/* what is due at once */
#define PATIENCE_WORK		(60 * PATIENCE_S)	/* after a lot of work, or losses */
#define PATIENCE_TEST		(90 * PATIENCE_S)	/* a test */
#define PATIENCE_LONG_TEST	(300 * PATIENCE_S)

#define PATIENCE_TICK		(PATIENCE_S / 4)	/* the harness ticks that often */
#define PATIENCE_GAP		PATIENCE_S		/* stopped, if not for that long */
#define PATIENCE_EXTENSIONS	10
#define PATIENCE_SAMPLES	40U			/* short runs of the loop: 4 ms in all */
#define PATIENCE_TURNS		100000U

struct patience_clock {
	uint64_t work;		/* ns that the machine has delivered; atomic */
	uint64_t seen;		/* time of the latest tick */
	uint64_t measured;	/* when the loop was run */
	uint64_t best;		/* ns that it takes if nothing else runs */
	unsigned int percent;	/* how long it takes now; 100: as at best */
	bool ticked;		/* by the harness */
};

struct patience {
	uint64_t base, begun, work;
	unsigned int told;
};

/* One for all files of a program; patience_share() replaces it. */
__attribute__((weak)) struct patience_clock patience_own;
__attribute__((weak)) struct patience_clock *patience_clock = &patience_own;

static inline uint64_t patience_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * PATIENCE_S + (uint64_t)t.tv_nsec;
}

/* Run the loop. The shortest sample is what it takes undisturbed. */
static inline void patience_measure(struct patience_clock *c)
{
	volatile uint64_t result;
	uint64_t begun = patience_time(), before = begun, now = begun, x = begun;
	unsigned int i, k;

	for (k = 0; k < PATIENCE_SAMPLES; k++, before = now) {
		for (i = 0; i < PATIENCE_TURNS; i++)
			x = x * 6364136223846793005ULL + 1;
		result = x;
		now = patience_time();
		if (!c->best || now - before < c->best)
			c->best = now - before;
	}
	(void)result;
	c->percent = (unsigned int)((now - begun) * 100 / (c->best * PATIENCE_SAMPLES));
	c->measured = now;
}

/* Return what the machine has delivered of a span between two ticks. */
static inline uint64_t patience_delivered(uint64_t span, unsigned int percent)
{
	const unsigned int most = 100 * PATIENCE_EXTENSIONS;

	if (span >= PATIENCE_GAP || percent > most)
		return span / PATIENCE_EXTENSIONS;
	return percent > 100 ? span * 100 / percent : span;
}

/* Advance a clock to a time. */
static inline void patience_advance(struct patience_clock *c, uint64_t now)
{
	if (c->seen)
		__atomic_store_n(&c->work, c->work + patience_delivered(now - c->seen, c->percent),
				 __ATOMIC_RELAXED);
	c->seen = now;
}

static inline void patience_tick(struct patience_clock *c)
{
	patience_advance(c, patience_time());
	if (c->seen - c->measured < PATIENCE_S && c->measured)
		return;
	patience_measure(c);
}

/* Share the clock with the processes to come. The caller ticks it every PATIENCE_TICK. */
static inline bool patience_share(void)
{
	void *p = mmap(NULL, sizeof(*patience_clock), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	patience_clock = p;
	patience_clock->ticked = true;
	patience_tick(patience_clock);
	return true;
}

/* Interrupt this process (SIGALRM) every PATIENCE_TICK, or no longer. */
static inline void patience_interrupts(bool on)
{
	struct itimerval t = { { 0, 0 }, { 0, 0 } };

	t.it_interval.tv_usec = on ? PATIENCE_TICK / 1000 : 0;
	t.it_value = t.it_interval;
	setitimer(ITIMER_REAL, &t, NULL);
}

static inline uint64_t patience_now(void)
{
	if (!patience_clock->ticked)
		patience_tick(patience_clock);
	return __atomic_load_n(&patience_clock->work, __ATOMIC_RELAXED);
}

static inline struct patience patience_begin(uint64_t base)
{
	return (struct patience){ base + PATIENCE_TICK, patience_time(), patience_now(), 0 };
}

static inline bool patience_over(struct patience *p)
{
	uint64_t work = patience_now() - p->work, passed = patience_time() - p->begun;

	if (work >= p->base)
		return true;
	if (passed < p->base * (p->told + 1))
		return false;
	p->told++;
	printf("# patience: extended: of %.1f s, the machine delivered %.1f s\n",
	       (double)passed / 1e9, (double)work / 1e9);
	fflush(stdout);
	return false;
}

/*
 * Return the ns for which to wait next, in a call that has a timeout: all that are left, because
 * shorter waits would hide that a wake-up was lost.
 */
static inline uint64_t patience_left(const struct patience *p)
{
	uint64_t work = patience_now() - p->work;

	if (!patience_clock->ticked || work + PATIENCE_TICK >= p->base)
		return PATIENCE_TICK;
	return p->base - work;
}

/* True if a file becomes readable (POLLIN), or whatever the events are, in time. */
static inline bool patience_poll(int fd, short events, uint64_t base)
{
	struct patience p = patience_begin(base);
	struct pollfd f = { .fd = fd, .events = events };

	while (poll(&f, 1, (int)(patience_left(&p) / 1000000)) <= 0)
		if (patience_over(&p))
			return false;
	return true;
}

#endif /* ACP_PATIENCE_H */
