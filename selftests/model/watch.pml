/* SPDX-License-Identifier: MIT */
/*
 * Threads of a rank that sleep until words of its memory have changed: the
 * protocol is in uapi/acp_abi.h (struct acp_watch).  What is modelled is
 * lib/core/watch.c, libacp_watch_written() of lib/core/watch.h, and kernel/mem/watch.c; the
 * kernel writes as a neighbour does, and wakes without being asked.
 *
 * Proved, for all interleavings: no lost wake-up.  Every state in which
 * nothing can go on is one where all waiters have seen all words change.  No
 * sleep ends by itself here.
 *
 * Memory: a store is seen by others later than by the one that made it, at any
 * time up to its next full fence (step "Memory").  Loads are not reordered.
 *
 *	-DONE	one waiter, else two threads, the second of which waits for one word
 *
 * -DBUG_..., -DNO_...: mutants, each of which must be found.
 */
#define WORDS	2	/* a writer each; all are in lines that are looked at */

#ifdef ONE
#define WAITERS	1
#else
#define WAITERS	2
#endif

bool word[WORDS];		/* as all see them */
bool stored[WORDS];		/* as their writers do */
byte wakes;			/* struct acp_watch */
bool armed;
bool arming[WAITERS];		/* a waiter's store to armed that is not seen yet */
byte sleepers;			/* guarded by sleepers_lock */
bool asleep[WAITERS];		/* in the kernel */

active proctype Memory()
{
end:	do
	:: d_step { stored[0] && !word[0] -> word[0] = true }
	:: d_step { stored[1] && !word[1] -> word[1] = true }
	:: d_step { arming[0] -> armed = true; arming[0] = false }
#ifndef ONE
	:: d_step { arming[1] -> armed = true; arming[1] = false }
#endif
	od
}

/* wake() of kernel/mem/watch.c */
inline wake()
{
#ifdef BUG_COUNT_FIRST
	wakes++;
	armed = false;
#else
	armed = false;
	wakes++;
#endif
	atomic {
		asleep[0] = false;
#ifndef ONE
		asleep[1] = false
#endif
	}
}

active [WORDS] proctype Writer()
{
	byte me = _pid - 1;

	stored[me] = true;
#ifndef NO_FENCE_WRITER
	word[me] = true;			/* libacp_watch_written() */
#endif
	if
	:: armed -> wake()
	:: else
	fi
}

inline arm()
{
#ifdef BUG_COUNT_LATE
	d_step { arming[me] = false; armed = true };
	seen = wakes;
#else
	seen = wakes;
#ifdef NO_FENCE_WAITER
	arming[me] = true;
#else
	d_step { arming[me] = false; armed = true };
#endif
#endif
}

/* sleep_until() */
active [WAITERS] proctype Waiter()
{
	byte me = _pid - 1 - WORDS, seen, next;

	next = me;				/* the second waits for the last word alone */
	sleepers++;				/* begin_sleep() */
	do
	:: arm();
		do				/* look_all() */
		:: next < WORDS && word[next] -> next++
		:: else -> break
		od;
		if
		:: next == WORDS -> break
		:: else
		fi;
		atomic { asleep[me] = (wakes == seen) };	/* acp_watch_wait() */
		!asleep[me]
	od;
	atomic {				/* end_sleep() */
		sleepers--;
		if
#ifdef BUG_END_DISARMS
		:: true -> armed = false
#else
		:: !sleepers -> armed = false; arming[0] = false
		:: else
#endif
		fi
	}
}
