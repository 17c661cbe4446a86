/* SPDX-License-Identifier: MIT */
/*
 * Additional queues of a rank that rest: a poll round looks only at those that are
 * marked.  What is modelled is kernel/exec/round.c, of kernel/queue/queue.c how many ask and
 * one drains, and of kernel/exec/worker.c what goes on where a budget ended, for one queue.
 *
 * A command waits for its event, after which a round comes; it is complete when
 * it has started.  Any round that finds the queue at rest may take the mark away,
 * as if enough of them had done so before.
 *
 * Proved, for all interleavings: no lost wake-up.  In every state in which
 * nothing can go on each command has started, once.
 *
 * Memory: stores to "taken", "waiting", "completed" and the two that tell of the
 * mark are seen by others later than by their writer, each by itself, at any
 * time up to its next full fence; those of the mark also when somebody else
 * takes their lock.  Loads are not reordered.
 *
 * -DBUDGET: with one command, and a second round, budgets end: of a drain, or before
 * the queue's turn; a worker goes on.
 *
 * -DBUG_..., -DNO_...: mutants, each of which must be found.
 */
#ifdef BUDGET
#define N	1		/* commands, each with a submitter, an event and its round */
#else
#define N	2
#endif

#define TAKEN		0
#define WAITING		1
#define COMPLETED	2
#define BIT		3	/* the mark in the table: rounds look there */
#define MARKED		4	/* a process that marks looks there */
#define WORDS		5
#define NOBODY		255

byte seen[WORDS];		/* as all see them */
byte stored[WORDS];		/* as their writer sees them */
byte writer[WORDS] = NOBODY;	/* of a store that is not seen yet */
byte tail;			/* by the user, who then rings */
byte events;			/* how many have happened; in the order of commands */
byte drain;
bool locked;
bool due;			/* acp_worker.due */

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

/* All that was stored under the lock is seen by the process that takes it. */
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

/* acp_marks_set() */
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

/* acp_worker_kick(): xchg() */
inline kick()
{
	atomic { fence(); due = true }
}

/* acp_drain(), and what its caller does when the budget has ended */
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
		if
		:: atomic { fence(); drain = drain - asked; mine = (drain != 0) }
#ifdef BUDGET
		:: atomic { fence(); drain = 0; mine = false };
			if
			:: READY -> kick()
			:: else
			fi
#endif
		fi
	od
}

inline go_on()
{
	if
	:: READY -> do_drain()
#if defined(BUDGET) && defined(BUG_BUDGET_FORGETS)
	:: READY
#elif defined(BUDGET)
	:: READY -> kick()		/* the budget went to others */
#endif
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
active [2] proctype Round()
{
	byte w, asked, waited;
	bool mine;

	atomic { events = (events < N -> events + 1 : N); fence() }
	if
	:: seen[BIT] ->
		if
		:: IS_BUSY -> go_on()
		:: else -> unmark()
		fi
	:: else
	fi
}

#ifdef BUDGET
/* serve(): kernel/exec/worker.c */
active proctype Worker()
{
	byte w, asked, waited;
	bool mine;

end:	do
#ifdef BUG_DUE_LATE
	:: due ->
#else
	:: atomic { due -> due = false; fence() }
#endif
		if
		:: READY -> do_drain()
		:: else
		fi
#ifdef BUG_DUE_LATE
		; due = false
#endif
	od
}
#endif

active proctype All()
{
	seen[COMPLETED] == N
}
