/* SPDX-License-Identifier: MIT */
/*
 * Rounds of a collective: members of a tree that wait for counters, and send to neighbours behind
 * these waits.  docs/collectives.md and docs/schedules.md explain it; what is modelled is lib/coll
 * (bcast.c, reduce.c, tree_round.c, step.c, coll.c, failure.c), kernel/exec/word.c, and of
 * kernel/exec/drain.c and uapi/acp_cmd.h the order of commands, REVOKE and LAZY.
 *
 * Proved, for all interleavings, if up to DEATHS members are lost at any time, or CUTS connections:
 *	no round too early	a barrier ends when all have started it; what a round of the
 *				others gives is in dst at its end, and is of that round
 *	user memory		nobody writes to dst, or sends from src and dst, but in a round;
 *				nobody writes to a member that has freed its area
 *	end			all other members complete all rounds, or fail; nobody fails
 *				unless one was lost
 *	revoked counters	stay so, whatever is added
 *
 * Settings:
 *	-DBARRIER, -DBCAST, -DALLREDUCE	the last two of few bytes: of one piece, sent from a copy
 *	-DFORK, -DCHAIN	member 0 with two children; member 0, its child 1, and its child 2
 *	-DSTOPPED	no process looks at the end of the last round: only kernels tell of a
 *			failure.  Not with CUTS: docs/schedules.md has the wait that does not end
 *	-DEARLY		bcast, in another order than the code: the root copies at once
 *	-DTWO_COPIES	rounds alternate between two, which EARLY needs
 *
 * A member executes its entries in their order, since a wait looks at its word when all before it
 * are complete.  A message takes effect at any time after its start, also before older ones; the
 * acknowledgement comes at any time after that.  The source is read when the message takes effect,
 * as if it were sent again just then: if what was read earlier were right and this not, that is
 * found.  What a member has sent before it was lost arrives, or not, also later than others have
 * noticed the loss.  A connection is lost at one of its ends, later at the other one; what is under
 * way takes effect then, or never.
 *
 * Waits are taken from the ring when the round begins.  All members are on different nodes: what
 * ranks of a node send to each other is one of these cases, the fastest one.
 *
 * Counters are u64 in 8 bits: REVOKED is a quarter of what they can count.
 *
 * -DBUG_..., -DNO_...: mutants, each of which must be found.
 */
#ifndef ROUNDS
#define ROUNDS		2
#endif
#ifndef DEATHS
#define DEATHS		1
#endif
#ifndef CUTS
#define CUTS		0
#endif
#define MEMBERS		3

#if !defined(BARRIER) && !defined(BCAST) && !defined(ALLREDUCE)
#error which collective?
#endif

/* The tree. Messages have the number of the child between which and its parent they travel. */
#ifdef CHAIN
#define PARENT(c)	((c) - 1)
#define CHILDREN(m)	((m) < 2)
#else
#define PARENT(c)	0
#define CHILDREN(m)	((m) -> 0 : 2)
#endif
#define IS_PARENT(m, c)	(PARENT(c) == (m))

/* What a member contributes to a round, and what a round gives; 0: what memory has else. */
#define SHARE(m)	(round[m] << (2 * (m)))
#ifdef ALLREDUCE
#define RESULT(r)	((r) * 21)
#else
#define RESULT(r)	(r)
#endif

/* ACP_WORD_REVOKED, acp_word_state() */
#define REVOKED		64
#define BEFORE(word, a)	(((word) - (a)) & 128)
#ifdef BUG_THRESHOLD
#define IS_REVOKED(word, a)	(!BEFORE(word, a) && (((word) - (a)) & 255) >= REVOKED)
#else
#define IS_REVOKED(word, a)	(!BEFORE(word, a) && (((word) - (a)) & 255) >= REVOKED / 2)
#endif

/* a member */
byte round[MEMBERS];			/* acpx_coll.round */
bool runs[MEMBERS], failed[MEMBERS];	/* acpx_coll.state */
bool freed[MEMBERS];
bool dead[MEMBERS];
byte deaths, cuts;

/*
 * The connection between a child and its parent was lost: the child, the parent has noticed; since
 * the waits of its round were taken from the ring.
 */
bool cut_child[MEMBERS], cut_parent[MEMBERS];
bool gone_parent[MEMBERS], gone_child[MEMBERS];

/* Which entries failed: of this round, so that what is behind them fails ... */
bool bad[MEMBERS];
/* ... before the end of the round, or, after it, those that were sent last: not judged yet */
bool fails[MEMBERS], tail[MEMBERS];

/* memory */
byte src[MEMBERS], dst[MEMBERS], copy[2 * MEMBERS];
byte up[MEMBERS], down[MEMBERS];	/* counters: LINE_UP; LINE_DOWN, LINE_MORE */
byte slot[2 * MEMBERS], filled[2 * MEMBERS];	/* of a child, at its parent; LINE_SLOT */

/* messages: to the parent, and from it */
#define ADDS		1
#define REVOKES		2
#define HAPPENED	3		/* not acknowledged yet */
byte rises[MEMBERS], falls[MEMBERS];
byte from[MEMBERS], of_round[MEMBERS];	/* falls: which copy; which round */
bool new_rise[MEMBERS], new_fall[MEMBERS];	/* sent after the connection was lost */
bool late[MEMBERS];			/* falls: of an earlier round than the sender is in */
bool tells_up[MEMBERS], tells_down[MEMBERS];	/* processes: tell_others() */

/* Has a member entries that are not complete?  Waits aside. */
#define UNDER_WAY(m)	(rises[m] || (IS_PARENT(m, 1) && falls[1]) || (IS_PARENT(m, 2) && falls[2]))
#define TELLS(m)	(tells_up[m] || (IS_PARENT(m, 1) && tells_down[1]) || \
			 (IS_PARENT(m, 2) && tells_down[2]))

/* The member is lost instead of going on. */
#define MAY_DIE		atomic { deaths < DEATHS -> die(); goto out }

/* ---- entries: lib/coll/step.c, kernel/exec/drain.c ---- */

/* is_one_lost(): of a wait at the parent, and at the child */
#ifdef NO_NAMES
#define CHILD_LOST(c)	false
#define PARENT_LOST(c)	false
#else
#define CHILD_LOST(c)	(dead[c] || gone_child[c])
#define PARENT_LOST(c)	(dead[PARENT(c)] || gone_parent[c])
#endif

#ifdef BUG_SAME_VALUE
#define TIMES(n)	1
#else
#define TIMES(n)	(n)
#endif

/* acp_word_is_over(), when all before it is complete; order_failed() */
inline await(word, value, is_lost)
{
	!UNDER_WAY(me) && (bad[me] || !BEFORE(word, value) || (is_lost)) ->
	if
	:: bad[me] || BEFORE(word, value) || IS_REVOKED(word, value) ->
		bad[me] = true;
		fails[me] = true
	:: else
	fi
}

#ifdef NO_REVOKE
#define REVOKE		0
#else
#define REVOKE		REVOKES
#endif

/* fail_or_revoke(): ordered is false if the order is 0 */
#define MESSAGE(ordered)	((ordered) && bad[me] -> REVOKE : ADDS)

inline send_up(ordered)
{
	assert(!rises[me]);
	rises[me] = MESSAGE(ordered);
	new_rise[me] = cut_child[me]
}

#ifdef TWO_COPIES
#define COPY	(2 * me + round[me] % 2)
#else
#define COPY	(2 * me)
#endif

inline send_down(c)
{
	if
	:: IS_PARENT(me, c) ->
		assert(!falls[c]);
		falls[c] = MESSAGE(true);
		of_round[c] = round[me];
		new_fall[c] = cut_parent[c];
		from[c] = COPY
	:: else
	fi
}

inline make_copy()
{
	copy[COPY] = dst[me]
}

/* ---- rounds: barrier_round(), bcast_round(), allreduce_round() ---- */

/* Entries with order 0: they start at once. */
inline first_entries()
{
#ifdef ALLREDUCE
	if
	:: CHILDREN(me) -> dst[me] = src[me]
	:: else -> send_up(false)
	fi
#elif defined(BCAST)
#ifdef EARLY
	if
	:: !me -> make_copy()
	:: else
	fi;
#endif
	if
	:: me -> send_up(false)
	:: else
	fi
#else
	if
	:: !CHILDREN(me) -> send_up(false)
	:: else
	fi
#endif
}

#define SLOT(c, r)	(2 * (c) + (r) % 2)

/* combine() of a child: a wait, then the reduction */
inline combine(c)
{
	if
	:: IS_PARENT(me, c) ->
		if
		:: atomic {
			await(filled[SLOT(c, round[me])], TIMES((round[me] + 1) / 2),
			      CHILD_LOST(c))
		   }
		:: MAY_DIE
		fi;
		if
		:: atomic { !bad[me] -> dst[me] = dst[me] + slot[SLOT(c, round[me])] }
		:: bad[me]
		:: MAY_DIE
		fi
	:: else
	fi
}

inline await_children()
{
	await(up[me], TIMES(round[me] * CHILDREN(me)),
	      (IS_PARENT(me, 1) && CHILD_LOST(1)) || (IS_PARENT(me, 2) && CHILD_LOST(2)))
}

/* go_up(), libacp_round_up(); a bcast tells the parent before its children are ready */
inline go_up()
{
#ifdef ALLREDUCE
	combine(1);
	combine(2);
	if
	:: atomic { me && CHILDREN(me) -> send_up(true) }
	:: else
	fi
#elif defined(NO_READY)
	skip
#else
	if
	:: CHILDREN(me) ->
		if
		:: atomic {
			await_children();
#ifdef BARRIER
			if
			:: me -> send_up(true)
			:: else
			fi
#endif
		   }
		:: MAY_DIE
		fi
	:: else
	fi
#endif
}

/* libacp_round_down(), spread_copy(); the last entry that is not LAZY ends the round */
inline go_down()
{
	if
	:: me ->
		if
		:: atomic { await(down[me], TIMES(round[me]), PARENT_LOST(me)) }
		:: MAY_DIE
		fi
	:: else
	fi;
	if
	:: CHILDREN(me) ->
		if
		:: atomic {
#ifndef BARRIER
			if
			:: bad[me]
#ifdef EARLY
			:: !bad[me] && !me
			:: !bad[me] && me -> make_copy()
#else
			:: !bad[me] -> make_copy()
#endif
			fi;
#endif
			send_down(1);
			send_down(2)
		   }
		:: MAY_DIE
		fi
	:: else
	fi
}

/* ---- processes: lib/coll/coll.c, failure.c ---- */

/* Nobody asks for this any more: fewer states. */
inline forget_round()
{
	bad[me] = false;
	fails[me] = false;
	gone_parent[me] = false;
	gone_child[1] = gone_child[1] && !IS_PARENT(me, 1);
	gone_child[2] = gone_child[2] && !IS_PARENT(me, 2)
}

inline forget()
{
	forget_round();
	tail[me] = false
}

inline forget_memory()
{
	up[me] = 0;
	down[me] = 0;
	if
	:: IS_PARENT(me, 1) -> filled[2] = 0; filled[3] = 0; slot[2] = 0; slot[3] = 0
	:: else
	fi;
	if
	:: IS_PARENT(me, 2) -> filled[4] = 0; filled[5] = 0; slot[4] = 0; slot[5] = 0
	:: else
	fi
}

/* The member is lost.  What it has sent may still arrive. */
inline die()
{
	deaths++;
	dead[me] = true;
	runs[me] = false;
	forget();
	forget_memory();
	rises[me] = (rises[me] == HAPPENED -> 0 : rises[me]);
	falls[1] = (IS_PARENT(me, 1) && falls[1] == HAPPENED -> 0 : falls[1]);
	falls[2] = (IS_PARENT(me, 2) && falls[2] == HAPPENED -> 0 : falls[2])
}

/* fail(): tell_others() */
inline fail()
{
	assert(deaths || cuts);
	failed[me] = true;
	forget();
#ifndef NO_TELL
	tells_up[me] = me;
	tells_down[1] = tells_down[1] || IS_PARENT(me, 1);
	tells_down[2] = tells_down[2] || IS_PARENT(me, 2)
#endif
}

/* libacp_coll_judge_tail() */
inline judge_tail()
{
	if
	:: !UNDER_WAY(me) && tail[me] -> fail()
	:: else
	fi
}

/* libacp_coll_begin() */
inline begin()
{
	judge_tail();
	if
	:: failed[me] -> break
	:: else
	fi;
	round[me]++;
	runs[me] = true;
	fails[me] = tail[me];
	tail[me] = false;
	late[1] = late[1] || (IS_PARENT(me, 1) && falls[1]);
	late[2] = late[2] || (IS_PARENT(me, 2) && falls[2]);
#ifdef ALLREDUCE
	src[me] = SHARE(me);
#elif defined(BCAST)
	dst[me] = (me -> 0 : RESULT(round[me]));
#endif
	first_entries()
}

#ifdef BARRIER
#define IS_RIGHT(m)	(round[0] >= round[m] && round[1] >= round[m] && round[2] >= round[m])
#else
#define IS_RIGHT(m)	(dst[m] == RESULT(round[m]))
#endif

#define IS_BAD(m)	(fails[m] || (tail[m] && !UNDER_WAY(m)))

/* finish(): libacp_coll_judge(); then the user uses its memory for something else */
inline finish()
{
	if
	:: !IS_BAD(me) -> assert(IS_RIGHT(me))
#ifdef STOPPED
	:: IS_BAD(me) && round[me] < ROUNDS -> fail()
	:: else				/* the process does not look */
#else
	:: else -> fail()
#endif
	fi;
	forget_round();
	runs[me] = false;
	src[me] = 0;
	dst[me] = 0
}

active [MEMBERS] proctype Member()
{
	byte me = _pid;

	do
	:: atomic { !failed[me] && round[me] < ROUNDS -> begin() };
		go_up();
		go_down();
		if
		:: atomic { true -> finish() }
		:: MAY_DIE
		fi
	:: failed[me] || round[me] == ROUNDS -> break
	:: MAY_DIE
	od;
#ifdef STOPPED
	if
	:: failed[me]
	:: !failed[me] ->
end:		if
		:: MAY_DIE
		fi
	fi;
#endif
	/* acpx_coll_free(): end_rest(), libacp_coll_told() */
	if
	:: atomic { !failed[me] && !UNDER_WAY(me) -> judge_tail() }
	:: failed[me]
	:: MAY_DIE
	fi;
	if
	:: atomic { !UNDER_WAY(me) && !TELLS(me) -> freed[me] = true; forget(); forget_memory() }
	:: MAY_DIE
	fi;
out:	skip
}

/* ---- messages ---- */

/* A message to a member that is lost, or has failed and freed its area, fails. */
inline rise_failed(c)
{
	rises[c] = 0;
	if
	:: !dead[c] && !failed[c] -> bad[c] = true; fails[c] = true
	:: else
	fi
}

inline fall_failed(c)
{
	falls[c] = 0;
	if
	:: dead[PARENT(c)] || failed[PARENT(c)]
	:: !dead[PARENT(c)] && !failed[PARENT(c)] && late[c] -> fails[PARENT(c)] = true
	:: else -> tail[PARENT(c)] = true
	fi;
	late[c] = false
}

inline change(word, message)
{
	if
	:: message == REVOKES -> word = REVOKED
	:: else ->
		assert(word < REVOKED || IS_REVOKED(word + 1, 2 * ROUNDS));
		word++
	fi
}

inline rise(c)
{
	if
	:: freed[PARENT(c)] -> assert(deaths || cuts); rise_failed(c)
	:: else ->
#ifdef ALLREDUCE
		if
		:: rises[c] == ADDS ->
			slot[SLOT(c, round[c])] = (CHILDREN(c) -> dst[c] : src[c])
		:: else
		fi;
		change(filled[SLOT(c, round[c])], rises[c]);
#else
		change(up[PARENT(c)], rises[c]);
#endif
		rises[c] = HAPPENED
	fi
}

inline fall(c)
{
	if
	:: freed[c] -> assert(deaths || cuts); fall_failed(c)
	:: else ->
#ifndef BARRIER
		if
		:: falls[c] == ADDS ->
			assert(deaths || cuts || (runs[c] && round[c] == of_round[c]));
#ifdef BUG_NO_COPY
			dst[c] = dst[PARENT(c)]
#else
			dst[c] = copy[from[c]]
#endif
		:: else
		fi;
#endif
		change(down[c], falls[c]);
		falls[c] = HAPPENED
	fi
}

#define REVOKE_WORD(word)	word = word | REVOKED

/* Others may be some rounds ahead, and slots alternate. */
inline told_up(c)
{
	tells_up[c] = false;
	if
	:: !freed[PARENT(c)] ->
#ifndef ALLREDUCE
		REVOKE_WORD(up[PARENT(c)])
#elif defined(BUG_TELL_THIS_ROUND)
		REVOKE_WORD(filled[SLOT(c, round[c])])
#else
		REVOKE_WORD(filled[SLOT(c, 0)]);
		REVOKE_WORD(filled[SLOT(c, 1)])
#endif
	:: else
	fi
}

inline told_down(c)
{
	tells_down[c] = false;
	if
	:: !freed[c] -> REVOKE_WORD(down[c])
	:: else
	fi
}

#define IS_SENT(message)	((message) == ADDS || (message) == REVOKES)

#define RISES(c)	(IS_SENT(rises[c]) && !dead[PARENT(c)] && new_rise[c] == cut_parent[c])
#define FALLS(c)	(IS_SENT(falls[c]) && !dead[c] && new_fall[c] == cut_child[c])

#define AGREE(c)	(cut_child[c] == cut_parent[c])

/* An end of a connection notices that it was lost. */
inline cut_at_child(c)
{
	cuts = (cut_parent[c] -> cuts : cuts + 1);
	if
	:: RISES(c) -> rise(c)
	:: true
	fi;
	if
	:: rises[c] -> rise_failed(c)
	:: else
	fi;
	cut_child[c] = true;
	gone_parent[c] = runs[c]
}

inline cut_at_parent(c)
{
	cuts = (cut_child[c] -> cuts : cuts + 1);
	if
	:: FALLS(c) -> fall(c)
	:: true
	fi;
	if
	:: falls[c] -> fall_failed(c)
	:: else
	fi;
	cut_parent[c] = true;
	gone_child[c] = runs[PARENT(c)]
}

#define MESSAGES(c) \
	:: atomic { RISES(c) -> rise(c) } \
	:: atomic { FALLS(c) -> fall(c) } \
	:: atomic { rises[c] == HAPPENED -> rises[c] = 0 } \
	:: atomic { falls[c] == HAPPENED -> falls[c] = 0; late[c] = false } \
	:: atomic { rises[c] && (dead[c] || dead[PARENT(c)]) -> rise_failed(c) } \
	:: atomic { falls[c] && (dead[c] || dead[PARENT(c)]) -> fall_failed(c) } \
	:: atomic { tells_up[c] && AGREE(c) && !dead[PARENT(c)] -> told_up(c) } \
	:: atomic { tells_down[c] && AGREE(c) && !dead[c] -> told_down(c) } \
	:: atomic { tells_up[c] && (dead[c] || dead[PARENT(c)]) -> tells_up[c] = false } \
	:: atomic { tells_down[c] && (dead[c] || dead[PARENT(c)]) -> tells_down[c] = false }

#define CUT(c) \
	:: atomic { !cut_child[c] && (cuts < CUTS || cut_parent[c]) -> cut_at_child(c) } \
	:: atomic { !cut_parent[c] && (cuts < CUTS || cut_child[c]) -> cut_at_parent(c) }

active proctype Network()
{
end:	do
	MESSAGES(1)
	MESSAGES(2)
#if CUTS
	CUT(1)
	CUT(2)
#endif
	od
}
