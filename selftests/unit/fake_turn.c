// SPDX-License-Identifier: MIT
/*
 * The fake basic layer: ranks that run in turns, scheduled by the seed. One runs at a time, until
 * it calls a function. The clock advances with the turns, and jumps when all ranks sleep.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sys/syscall.h>

#include "fake_rank.h"
#include "test.h"

#define TURN_NS		200u		/* duration of a turn with clock speed 1 */

static struct fake_turns *turns(void)
{
	return &fake_shared->turns;
}

bool fake_in_turns(void)
{
	return fake_shared->turns.on;
}

static uint64_t draw(void)
{
	uint64_t z = turns()->random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static unsigned int awake(int *ranks)
{
	unsigned int count = 0;
	int r;

	for (r = 0; r < fake_shared->ranks; r++)
		if (turns()->there[r] && turns()->wake[r] <= turns()->now)
			ranks[count++] = r;
	return count;
}

static void skip_sleep(void)
{
	uint64_t next = UINT64_MAX;
	int r;

	for (r = 0; r < fake_shared->ranks; r++)
		if (turns()->there[r] && turns()->wake[r] < next)
			next = turns()->wake[r];
	if (next != UINT64_MAX && next > turns()->now)
		turns()->now = next;
}

/* Select the next rank, possibly the caller again. */
static void pass_on(void)
{
	int ranks[FAKE_RANKS], next;
	unsigned int count;

	turns()->now += (uint64_t)TURN_NS * fake_shared->speed;
	count = awake(ranks);
	if (!count) {
		skip_sleep();
		count = awake(ranks);
	}
	next = count ? ranks[draw() % count] : -1;
	turns()->trace = (turns()->trace ^ (uint64_t)next ^ turns()->now) * 0xff51afd7ed558ccdu;
	__atomic_store_n(&turns()->turn, next, __ATOMIC_RELEASE);
	if (next != fake_rank)
		syscall(SYS_futex, &turns()->turn, FUTEX_WAKE, FAKE_RANKS, NULL, NULL, 0);
}

static void wait_for_turn(void)
{
	int turn;

	while ((turn = __atomic_load_n(&turns()->turn, __ATOMIC_ACQUIRE)) != fake_rank)
		syscall(SYS_futex, &turns()->turn, FUTEX_WAIT, turn, NULL, NULL, 0);
}

void fake_turns_create(uint64_t seed)
{
	int r;

	turns()->on = true;
	turns()->random = seed;
	for (r = 0; r < fake_shared->ranks; r++)
		turns()->there[r] = true;
}

void fake_turns_enter(void)
{
	if (fake_in_turns())
		wait_for_turn();
}

void fake_turn(uint64_t ns)
{
	turns()->wake[fake_rank] = turns()->now + ns;
	pass_on();
	wait_for_turn();
}

void fake_turns_leave(void)
{
	if (!fake_in_turns())
		return;
	turns()->there[fake_rank] = false;
	pass_on();
}
