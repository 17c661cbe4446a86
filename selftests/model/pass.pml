/* SPDX-License-Identifier: MIT */
/*
 * Further queues of a rank that rest: a pass looks only at those that are
 * marked.  What is modelled is kernel/pass.c, and of kernel/queue.c how many
 * ask and one drains, for one queue.
 *
 * A command waits for its event, after which a pass comes; it is complete when
 * it has started.  Any pass that finds the queue at rest may take the mark away,
 * as if enough of them had done so before.
 *
 * Proved, for all interleavings: no lost wake-up.  In every state in which
 * nothing can go on each command has started, once.
 *
 * Memory: stores to "taken", "waiting", "completed" and the two that tell of the
 * mark are seen by others later than by who made them, each by itself, at any
 * time up to its next full fence; those of the mark also when somebody else
 * takes their lock.  Loads are not reordered.
 *
 * -DBUG_..., -DNO_...: mutants, each of which must be found.
 */
#define N	2		/* commands, each with a submitter, an event and its pass */

#define TAKEN		0
#define WAITING		1
#define COMPLETED	2
#define BIT		3	/* the mark in the table: passes look there */
#define MARKED		4	/* who marks looks there */
#define WORDS		5
#define NOBODY		255

byte seen[WORDS];		/* as all see them */
byte stored[WORDS];		/* as who wrote them does */
byte writer[WORDS] = NOBODY;	/* of a store that is not seen yet */
byte tail;			/* by the user, who then rings */
byte events;			/* how many have happened; in the order of commands */
byte drain;
bool locked;

active proctype Memory()
{
end:	do
	:: d_step { writer[TAKEN] != NOBODY -> seen[TAKEN] = stored[TAKEN]; writer[TAKEN] = NOBODY }
	:: d_step { writer[WAITING] != NOBODY ->
			seen[WAITING] = stored[WAITING]; writer[WAITING] = NOBODY }
	:: d_step { writer[COMPLETED] != NOBODY ->
			seen[COMPLETED] = stored[COMPLETED]; writer[COMPLETED] = NOBODY }
	:: d_step { writer[BIT] != NOBODY -> seen[BIT] = stored[BIT]; writer[BIT] = NOBODY }
	:: d_step { writer[MARKED] != NOBODY ->
			seen[MARKED] = stored[MARKED]; writer[MARKED] = NOBODY }
	od
}

#define STORE(word, value)	d_step { stored[word] = value; writer[word] = _pid }

inline fence()
{
	d_step {
		for (w : 0 .. WORDS - 1) {
			if
			:: writer[w] == _pid -> seen[w] = stored[w]; writer[w] = NOBODY
			:: else
			fi
		}
		w = 0
	}
}

#define MINE(word)	(writer[word] == _pid -> stored[word] : seen[word])
#define READY		(MINE(WAITING) || tail > MINE(TAKEN))
#define IS_BUSY		(READY || MINE(TAKEN) != MINE(COMPLETED))

/* All that was stored under the lock is seen by who takes it. */
inline set_mark(on)
{
	atomic {
		!locked;
		locked = true;
		seen[BIT] = stored[BIT];
		writer[BIT] = NOBODY;
		seen[MARKED] = stored[MARKED];
		writer[MARKED] = NOBODY
	}
	STORE(BIT, on);
	STORE(MARKED, on);
	locked = false
}

/* acp_pass_mark() */
inline mark()
{
	fence();
	if
	:: !MINE(MARKED) ->
		if
		:: IS_BUSY -> set_mark(1); fence()
		:: else
		fi
	:: else
	fi
}

/* start_waiting() and take(): what is waiting is what was taken and has not started */
inline start_what_can()
{
	do
	:: MINE(WAITING) && events > MINE(COMPLETED) ->
		assert(MINE(COMPLETED) < MINE(TAKEN));
		STORE(COMPLETED, MINE(COMPLETED) + 1);
		STORE(WAITING, MINE(WAITING) - 1)
	:: else -> break
	od
}

/* acp_queue_drain() */
inline do_drain()
{
	atomic { drain++; mine = (drain == 1); fence() }
	do
	:: !mine -> break
	:: mine ->
		asked = drain;
		do
		:: start_what_can();
			waited = MINE(WAITING);
			if
			:: tail > MINE(TAKEN) ->
				STORE(TAKEN, MINE(TAKEN) + 1);
				if
				:: !MINE(WAITING) && events >= MINE(TAKEN) ->
					STORE(COMPLETED, MINE(COMPLETED) + 1)
				:: else -> STORE(WAITING, MINE(WAITING) + 1)
				fi
			:: else
			fi;
#ifndef BUG_LOOK_FIRST
			mark();
#endif
			fence();		/* can_go_on() */
			if
			:: MINE(WAITING) > waited || tail > MINE(TAKEN)
			:: else -> break
			fi
		od;
#ifdef BUG_LOOK_FIRST
		mark();
#endif
		atomic { fence(); drain = drain - asked; mine = (drain != 0) }
	od
}

inline go_on()
{
	if
	:: READY -> do_drain()
	:: else
	fi
}

inline unmark()
{
	set_mark(0);
#ifndef NO_FENCE_UNMARK
	fence();
#endif
#ifndef NO_RECHECK
	if
	:: IS_BUSY ->
		mark();
#ifndef NO_SECOND_LOOK
		go_on()
#endif
	:: else
	fi
#endif
}

active [N] proctype Submitter()
{
	byte w, asked, waited;
	bool mine;

	tail++;
	do_drain()
}

/* acp_station_idle() */
active [N] proctype Pass()
{
	byte w, asked, waited;
	bool mine;

	events++;			/* and the fence behind it */
	if
	:: seen[BIT] ->
		if
		:: IS_BUSY -> go_on()
		:: else -> unmark()
		fi
	:: else
	fi
}

active proctype All()
{
	seen[COMPLETED] == N
}
