/* SPDX-License-Identifier: MIT */
/*
 * The ring of a mailbox, into which ranks of the owner's node write (lib/mailbox/node_ring.h),
 * beside the records that kernels write; of these mailbox.pml has the details.  Each step names its
 * function.  A sender sends each of its messages in one way or the other, the next one when the
 * former has arrived.  With -DDEATHS sender 0 may die at any step of the ring; kernels do not.
 *
 * Proved, for all interleavings:
 *	exactly once		the messages of a sender are received in their order, whole, also
 *				across laps; of one that dies, those that it has shown
 *	no lost wake-up		the owner sleeps until a record changes or a writer wakes it; every
 *				state in which nothing can go on is one where all is received
 *	no lock is waited for	the other sender sends all that it has, whoever has died
 *
 * A record is one unit, its state.  A message in the ring has two halves, name and stamp.
 *
 * -DBUG_...: mutants, each of which must be found.
 */
#ifndef UNITS
#define UNITS	2
#endif
#ifndef SLOTS
#define SLOTS	2
#endif
#ifndef N
#define N	2		/* messages of each sender */
#endif
#define SENDERS	2
#define NAME(sender, number)	(1 + (sender) * N + (number))

byte unit[UNITS];		/* 0, or the name of the message */
byte next, limit = UNITS;	/* "room": they change in one step */
byte lap_word;			/* twice the lap, and 1 while it may change */

byte lock;			/* 0, or a sender + 1 */
byte tail, head;		/* of the ring */
byte name_of[SLOTS], lap_of[SLOTS], next_of[SLOTS];
bool waits, woken;
bool dead[SENDERS];

byte sent[SENDERS], ended, received;

/* ---- senders ---- */

/* Here sender 0 may die. */
#ifdef DEATHS
#define STEP	if :: skip :: me == 0 -> goto dies fi
#else
#define STEP	skip
#endif

active [SENDERS] proctype Sender()
{
	byte me = _pid, lap, seen, at;

	do
	:: sent[me] == N -> break
	:: sent[me] < N ->
		if
		:: goto by_kernel
		:: skip
		fi;
		STEP;
		atomic {			/* take_lock() */
			if
			:: !lock -> lock = me + 1
#ifdef BUG_TAKES_FROM_THE_LIVING
			:: lock -> lock = me + 1
#else
			:: lock && dead[lock - 1] -> lock = me + 1
#endif
#ifdef BUG_WAITS_FOR_THE_LOCK
			:: lock && !dead[lock - 1] -> (!lock); lock = me + 1
#else
			:: lock && !dead[lock - 1] -> goto by_kernel
#endif
			fi
		};
		STEP;
		lap = lap_word;			/* stamp_now() */
		seen = next;
#ifndef BUG_ONE_LOOK_AT_THE_LAP
		atomic {
			if
			:: lap % 2 || lap_word != lap || tail - head == SLOTS -> goto no_room
			:: else
			fi
		};
#else
		atomic { if :: tail - head == SLOTS -> goto no_room :: else fi };
#endif
		STEP;
		at = tail;			/* write_locked() */
#ifdef BUG_SHOWN_EARLY
		atomic { tail++; sent[me]++ };
		STEP;
		name_of[at % SLOTS] = NAME(me, sent[me] - 1);
#else
		name_of[at % SLOTS] = NAME(me, sent[me]);
#endif
		STEP;
		atomic { lap_of[at % SLOTS] = lap / 2; next_of[at % SLOTS] = seen };
		STEP;
#ifndef BUG_SHOWN_EARLY
		atomic { tail = at + 1; sent[me]++; at = 0; seen = 0; lap = 0 };
#endif
		STEP;
		atomic {
			if
			:: lock == me + 1 -> lock = 0
			:: else
			fi
		};
		STEP;
		if				/* send_by_ring() */
		:: waits -> woken = true
		:: else
		fi;
		goto sent_one;
no_room:	atomic { lock = 0; seen = 0; lap = 0 };
by_kernel:
		atomic {
			(next < limit);		/* tried again */
			at = next;
			next++
		};
		atomic { assert(!unit[at]); unit[at] = NAME(me, sent[me]); sent[me]++; at = 0 };
sent_one:	skip
	od;
	goto done;
dies:	atomic { dead[me] = true; woken = true };	/* the owner looks once in a second, too */
done:	atomic { ended++; lap = 0; seen = 0; at = 0 }
}

/* ---- the owner ---- */

byte lap, read, read_lap, end;		/* struct libacp_area */

inline turn()
{
	if
	:: read_lap != lap && read >= end -> read = 0; read_lap = lap
	:: else
	fi
}

/* offer(): laps end when all is read, or when there is no room behind the records. */
inline offer()
{
	do
	:: read_lap != lap ->			/* raise */
		limit = read;
		break
	:: read_lap == lap && limit < UNITS -> limit = UNITS; break
	:: read_lap == lap && limit == UNITS && (!read || (read != next && next < UNITS)) -> break
	:: read_lap == lap && limit == UNITS && read && (read == next || next == UNITS) ->
		seen_next = next;
		if
		:: seen_next != read && seen_next != UNITS -> seen_next = 0; break
		:: else
		fi;
#ifndef BUG_LAP_SHOWN_LATE
		lap_word = 2 * lap + 1;		/* show_lap() */
#endif
		atomic {			/* change_room() */
			if
			:: next == seen_next && read == next ->
				next = 0;
				read = 0;
				lap++;
				read_lap = lap
			:: next == seen_next && read != next ->
				end = next;
				next = 0;
				limit = read;
				lap++
			:: next != seen_next
			fi
		};
		d_step { lap_word = 2 * lap; seen_next = 0 };
		break
	od
}

/* The ring's first message comes behind records that are not read yet. */
#define LATER	(lap_of[head % SLOTS] > read_lap || \
		 (lap_of[head % SLOTS] == read_lap && next_of[head % SLOTS] > read))
#define HAS_RECORD	(read < (read_lap == lap -> limit : end) && unit[read])

inline expect(what)
{
	assert(what);
	assert(what == NAME((what - 1) / N, expected[(what - 1) / N]));
	expected[(what - 1) / N]++;
	received++
}

#define DONE	(ended == SENDERS && received == sent[0] + sent[1])

active proctype Owner()
{
	byte expected[SENDERS], seen_next;
	bool record, shown, sleeps;

	do
	:: DONE -> break
	:: else ->
#ifdef BUG_WAITS_LATE
		shown = tail != head;
#endif
		d_step {			/* arm(), libacp_area_wait() */
			waits = sleeps;
			if
			:: sleeps -> woken = false
			:: else
			fi
		};
#ifdef BUG_RING_FIRST
		shown = tail != head;
		record = HAS_RECORD;
#else
		record = HAS_RECORD;		/* libacp_area_find() */
#ifndef BUG_WAITS_LATE
		shown = tail != head;
#endif
#endif
		if
#ifdef BUG_NO_STAMP
		:: shown ->
#else
		:: shown && !LATER ->
#endif
			d_step {
				expect(name_of[head % SLOTS]);
				name_of[head % SLOTS] = 0;
				lap_of[head % SLOTS] = 0;
				next_of[head % SLOTS] = 0;
				sleeps = false;
				shown = false;
				record = false
			};
			head++
#ifdef BUG_NO_STAMP
		:: !shown && record ->
#else
		:: (!shown || LATER) && record ->
#endif
			d_step {
				expect(unit[read]);
				unit[read] = 0;
				read++;
				turn();
				sleeps = false;
				shown = false;
				record = false
			};
			offer()
#ifdef BUG_NO_STAMP
		:: !shown && !record ->
#else
		:: (!shown || LATER) && !record ->
#endif
			d_step { shown = false; record = false };
			offer();
			if
			:: !sleeps -> sleeps = true	/* look once more */
			:: sleeps && (woken || HAS_RECORD || DONE) -> sleeps = false
			:: sleeps && !(woken || HAS_RECORD || DONE) ->
				(woken || HAS_RECORD || DONE);
				sleeps = false
			fi
		fi
	od
}
