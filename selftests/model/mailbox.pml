/* SPDX-License-Identifier: MIT */
/*
 * The memory of a mailbox: senders reserve records by compare-and-swap, the owner takes them,
 * clears them and offers their room again.  The contract is in uapi/acp_cmd.h (ACP_OP_SEND); what
 * is modelled is kernel/exec/mailbox.c and lib/mailbox/area.c.  Each step names its function.
 *
 * Proved, for all interleavings:
 *	exactly once		the messages of a sender are received in their order, whole
 *	clear			a record is reserved where all is zero, so nobody else has it
 *	no lost wake-up		the owner sleeps until one word changes (libacp_area_word()); every
 *				state in which nothing can go on is one where all is received
 *	room			no sender waits for ever for room that there is
 *
 * A record is one unit, its state, or two, the state and the data.  The owner may lend one record
 * at a time, and return it at any time.  What a sender writes before the state is seen before it.
 *
 * A sender may also reserve two records at once (acp_mailbox_put_words()), of which the second one
 * is written in any order, and the state of the first one last.
 *
 * -DBUG_..., -DNO_...: mutants, each of which must be found.
 */
#ifndef UNITS
#define UNITS	4
#endif
#define SENDERS	2
#ifndef N
#define N	3		/* messages of each sender */
#endif
#define LEAST	2		/* units/4, or what stands for it: room that is worth an offer */

#define NAME(sender, number)	(1 + (sender) * N + (number))
#define LENGTH(name)		(1 + (name) % 2)

byte unit[UNITS];		/* 0, or the name of the message */
byte next, limit = UNITS;	/* "room": they change in one step */
byte received;

/* ---- senders ---- */

#define TOTAL(a, b)	(LENGTH(a) + (b -> LENGTH(b) : 0))

inline write_data(to, what)
{
	if
	:: LENGTH(what) == 2 ->
		atomic { assert(!unit[(to) + 1]); unit[(to) + 1] = what }
	:: else
	fi
}

inline set_state(to, what)
{
	atomic { assert(!unit[to]); unit[to] = what }
}

/* The rest of a block: the state is written before the data, as memcpy() may do. */
inline write_second()
{
	if
	:: second -> set_state(at + LENGTH(name), second); write_data(at + LENGTH(name), second)
	:: else
	fi
}

active [SENDERS] proctype Sender()
{
	byte me = _pid, number, name, second, seen_next, seen_limit, at;

	do
	:: number == N -> break
	:: else ->
		name = NAME(me, number);
		if
		:: number + 1 < N -> second = NAME(me, number + 1)
		:: second = 0
		fi;
again:		atomic { seen_next = next; seen_limit = limit };	/* take_room() */
		if
		:: seen_next + TOTAL(name, second) > seen_limit && second -> second = 0; goto again
		:: seen_next + TOTAL(name, second) > seen_limit && !second ->
			(next != seen_next || limit != seen_limit);	/* tried again */
			goto again
		:: else
		fi;
		atomic {
			if
			:: next == seen_next && limit == seen_limit ->
				at = next;
				next = next + TOTAL(name, second)
			:: else -> goto again
			fi
		}
#ifdef NO_ORDER
		unit[at] = name;
#endif
#ifdef NO_ORDER_OF_BLOCK
		write_data(at, name);
		set_state(at, name);
		write_second();
#else
		write_second();
		write_data(at, name);
#ifndef NO_ORDER
		set_state(at, name);
#endif
#endif
		number = number + (second -> 2 : 1)
	od
}

/* ---- the owner ---- */

/* struct libacp_area */
byte a_next, a_limit = UNITS, lap, read, read_lap, end;
byte lent_at, lent_length, lent_lap;	/* length 0: nothing is lent */
byte p_next, p_limit;			/* a plan */
bool planned;

byte free_end, free_lap;
byte records_end;

/* free_end(), free_lap(), records_end() */
inline renew()
{
#ifdef BUG_LENT_IS_FREE
	free_end = read;
	free_lap = read_lap;
#else
	free_end = (lent_length -> lent_at : read);
	free_lap = (lent_length -> lent_lap : read_lap);
#endif
	records_end = (read_lap == lap -> a_limit : end)
}

/* plan_raise() */
inline raise(to)
{
	assert(to >= a_limit);
	p_next = a_next;
	p_limit = to;
	planned = to > a_limit
}

/* plan() */
inline plan(least)
{
	d_step {
		renew();
		if
		:: free_lap != lap -> raise(free_end)
		:: else ->
			if
			:: free_end < least -> raise(UNITS)
			:: else ->
				planned = true;
				p_next = 0;
				if
				:: free_end == a_next -> p_limit = UNITS
				:: free_end != a_next && free_end > UNITS - a_next ->
					p_limit = free_end
				:: else -> raise(UNITS)
				fi
			fi
		fi
	}
}

inline turn()
{
	if
	:: read_lap != lap && read >= end -> read = 0; read_lap = lap
	:: else
	fi
}

inline adopt()
{
	d_step {
		renew();
		if
		:: !p_next && free_lap == lap && free_end == a_next -> read = 0
		:: else ->
			if
			:: p_next != a_next -> end = a_next; lap = 1 - lap
			:: else
			fi
		fi;
		a_next = p_next;
		a_limit = p_limit;
		turn();
		renew()
	}
}

/* 1: however little.  Otherwise what senders have reserved since the last look does not matter. */
inline offer(least)
{
	if
	:: least == 1 -> planned = true
	:: else -> plan(least)
	fi;
	do
	:: !planned -> break
	:: else ->
		d_step { assert(limit == a_limit && next >= a_next); a_next = next };	/* refresh() */
		plan(least);
		atomic {
			if
			:: !planned -> break
#ifdef BUG_STORE
			:: planned -> next = p_next; limit = p_limit; adopt(); break
#else
			:: planned && next == a_next ->
				next = p_next;
				limit = p_limit;
				adopt();
				break
#endif
			:: planned && next != a_next	/* a sender was faster */
			fi
		}
	od
}

inline zero(at, length)
{
	unit[at] = 0;
	if
	:: length == 2 -> unit[at + 1] = 0
	:: else
	fi
}

inline take_back()
{
	zero(lent_at, lent_length);
	lent_length = 0;
	offer(LEAST)
}

active proctype Owner()
{
	byte expected[SENDERS], name, at;

	renew();
	do
	:: received == SENDERS * N -> break
	:: lent_length -> take_back()
	:: received < SENDERS * N && read < records_end && unit[read] ->	/* look() */
		d_step {
			name = unit[read];
			assert(LENGTH(name) == 1 || unit[read + 1] == name);
			assert(name == NAME((name - 1) / N, expected[(name - 1) / N]));
			expected[(name - 1) / N]++;
			received++;
			at = read
		};
		if
		:: !lent_length ->		/* libacp_area_lend() */
			d_step {
				lent_at = at;
				lent_length = LENGTH(name);
				lent_lap = read_lap;
				read = read + LENGTH(name);
				turn();
				renew()
			}
		:: true ->			/* libacp_area_consume() */
#ifdef BUG_ZERO_LATE
			d_step { read = read + LENGTH(name); turn(); renew() };
			offer(LEAST);
			zero(at, LENGTH(name))
#else
			zero(at, LENGTH(name));
			d_step { read = read + LENGTH(name); turn(); renew() };
			offer(LEAST)
#endif
		fi
	:: received < SENDERS * N && !(read < records_end && unit[read]) ->
		/* There is none: offer all room, and sleep until the word changes. */
		at = read;
#ifndef BUG_KEEPS_SOME
		offer(1);
#endif
#ifndef BUG_FORMER_WORD
		at = read;
#endif
		if
		:: lent_length -> skip
		:: at < UNITS && unit[at] -> skip
		fi
	od;
	if
	:: lent_length -> take_back()
	:: else
	fi
}
