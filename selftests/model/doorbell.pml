/* SPDX-License-Identifier: MIT */
/*
 * The queues between a process and the module: which of them polls the ring,
 * which sleeps, which is woken.  The contract is in uapi/acp_abi.h; what is modelled
 * is lib/core/rings.h, lib/core/submit.c, kernel/exec/drain.c, kernel/queue/queue.c,
 * kernel/exec/poller.c, kernel/exec/worker.c, the calls of kernel/dev/dev.c, and
 * acp_station_idle().  Each step names its function.
 *
 * Proved, for all interleavings:
 *	no lost wake-up		every state in which nothing can go on is one where
 *				all commands are complete and nobody waits
 *	exactly once		each entry is taken when it is filled, started once
 *	status first		a thread that sees a completion sees its status
 *	abort			the flag ACP_CQ_ABORTED stays (with -DLOCALLY -DABORT)
 *
 * Memory: a store is seen by others later than by the one that made it, at any
 * time up to its next full fence (step "Memory"); of two stores the later one
 * may be seen first, but for a release.  So a fence too few is found.  Loads
 * are not reordered.  NAME_m is what others see of NAME.
 *
 * One thread submits N commands and at last looks for the completion of all,
 * in one of these settings:
 *
 *	-DLOCALLY	the commands are done at once; the poller runs; softirq comes by
 *			once, for something else
 *	-DREMOTELY	a command is done by the network, in some cases only when a flow
 *			is open, perhaps after the one before it; the poller sleeps
 *	-DMODERATION	done at once; there is one processor: a timer looks, not the poller
 *	-DBUDGET	done at once; nobody polls, or with -DMODERATION the timer looks; budgets of
 *			drains run out, perhaps before the first command; the worker goes on
 *	-DSLEEPING	done by the network; another thread waits by ACP_IOC_WAIT
 *	-DPOLLING	the same by epoll, after ACP_WAIT_ARM
 *
 * -DBUG_..., -DNO_...: mutants, each of which must be found.
 */

#ifndef N
#define N		2	/* commands, at most 3 */
#endif
#ifndef DEPTH
#define DEPTH		2	/* places of the ring */
#endif
#ifndef SLOTS
#define SLOTS		2	/* ACP_INFLIGHT */
#endif
#if defined(MODERATION) || defined(BUDGET)
#define LOCALLY
#endif
#ifdef BUDGET
#define CALLER		2	/* budget of a caller in process context ... */
#define SOFTIRQ		1	/* ... and what is left of that of a round */
#define COST		1	/* of an entry */
#else
#define CALLER		1	/* nothing would go on where a budget ends */
#define SOFTIRQ		1
#define COST		0
#endif

#define NEED_WAKEUP	1
#define ABORTED		2

#define FREE		0	/* enum acp_cmd_state */
#define WAITING		1
#define STARTED		2
#define ENDED		3

#define LOCAL		0	/* kinds of commands */
#define REMOTE		1
#define THIRD		2

#ifdef BUG_DRAIN_FORGETS
#define AGAIN		false
#else
#define AGAIN		true
#endif

#define NOBODY		0	/* processes, as owners of stores */
#define SUBMITTER	1
#define WAITER		2
#define POLLER		3
#define NETWORK		4
#define WORKER		5

#define ALL_DONE	1
#define MORE_LEFT	2

#define PLACE(t)	((t) % DEPTH)
#define SLOT(t)		((t) % SLOTS)

/* written by the user */
byte entry[2], entry_m[2];	/* the ticket stands for all of it */
byte tail, tail_m;
byte kind[4], order[4];

/* the completion area */
byte status[2];				/* the ticket it belongs to */
byte cq, cq_m, cq_owner;		/* acp_cq.completed */
byte flags_m = NEED_WAKEUP, flags;
bool flags_p;				/* flags is not seen yet */

/* the queue */
bool draining, fresh;			/* drain != 0; raised since the drainer last looked */
byte drainer, limit;
byte answer[6];				/* to the drainer: ALL_DONE or MORE_LEFT */
byte taken, taken_m, waiting, waiting_m;
bool starved, starved_m;
byte completed;				/* acp_queue.completed */
byte state[2], ticket[2];
bool busy[2], busy_m[2];
bool aborted;

/* queue->wait: processes in it, and those made runnable */
bool queued[3], woken[3];

/* the poller's state; asleep_p: its store of true is not seen yet */
bool asleep_m = true, asleep_p;

#ifdef MODERATION
bool timer_armed;			/* acp_queue.moderation */
#endif
#ifdef BUDGET
bool due;				/* acp_worker.due */
#endif

/* the network: commands under way, items not given back, the flow of THIRD */
bool under_way[4], with_us[4];
bool flow_wanted, flow_open;

bool started[4];			/* for the assertions */

#ifdef POLLING
byte armed = 255;			/* queue->armed */
bool event;				/* epoll: look at the file again */
#endif

/* ---- memory ---- */

inline full_fence(me)
{
	atomic {
		if
		:: me == SUBMITTER ->
			entry_m[0] = entry[0]; entry_m[1] = entry[1]; tail_m = tail
		:: me == POLLER ->
			flags_m = (flags_p -> flags : flags_m); flags_p = false;
			asleep_m = asleep_m || asleep_p; asleep_p = false
		:: me == NETWORK ->
			busy_m[0] = busy[0]; busy_m[1] = busy[1]
		:: else
		fi;
		if
		:: cq_owner == me -> cq_m = cq
		:: else
		fi;
		if
		:: drainer == me ->
			taken_m = taken; waiting_m = waiting; starved_m = starved
		:: else
		fi
	}
}

active proctype Memory()
{
end:	do
#ifdef NO_RELEASE_TAIL
	:: d_step { tail_m != tail -> tail_m = tail }
#else
	/* a store-release: entries are seen before it, and by nobody without it */
	:: d_step { tail_m != tail ->
		entry_m[0] = entry[0]; entry_m[1] = entry[1]; tail_m = tail }
#endif
	:: d_step { cq_m != cq -> cq_m = cq }
	:: d_step { flags_p -> flags_m = flags; flags_p = false; flags = 0 }
	:: d_step { asleep_p -> asleep_m = true; asleep_p = false }
	:: d_step { taken_m != taken -> taken_m = taken }
#if !defined(LOCALLY) || defined(BUDGET)
	:: d_step { waiting_m != waiting -> waiting_m = waiting }
#endif
#ifndef LOCALLY
	:: d_step { starved_m != starved -> starved_m = starved }
	:: d_step { busy_m[0] != busy[0] -> busy_m[0] = busy[0] }
	:: d_step { busy_m[1] != busy[1] -> busy_m[1] = busy[1] }
#endif
	od
}

/* ---- completion: kernel/queue/queue.c ---- */

/* wake_up_all() */
inline wake_queued()
{
	woken[SUBMITTER] = woken[SUBMITTER] || queued[SUBMITTER];
	woken[WAITER] = woken[WAITER] || queued[WAITER];
#ifdef POLLING
	event = true
#endif
}

/* acp_queue_complete() with publish(), all of it under acp_queue.lock up to the fence */
inline complete(me, t)
{
	atomic {
		cq_m = cq;			/* what the former holder stored is seen */
		assert(state[SLOT(t)] == STARTED && ticket[SLOT(t)] == t);
		state[SLOT(t)] = ENDED;
		do
		:: state[SLOT(completed + 1)] == ENDED &&
		   ticket[SLOT(completed + 1)] == completed + 1 ->
			completed++;
#ifndef BUG_STATUS_LATE
			status[PLACE(completed)] = completed;
#endif
			state[SLOT(completed)] = FREE
		:: else -> break
		od;
		cq = completed;							/* (C) */
		cq_owner = me
	};
#ifdef BUG_STATUS_LATE
	status[PLACE(t)] = t;
#endif
	atomic {					/* wq_has_sleeper() */
#ifndef NO_FENCE_WAKE
		full_fence(me);
#endif
		wake_queued()
	}
}

/* ---- taking: kernel/exec/drain.c ---- */

/* acp_queue_ready(), by one that does not drain: sets ok */
inline ready()
{
	ok = waiting_m || starved_m;
	if
	:: !ok ->
		seen = tail_m;					/* available() */
		atomic { ok = seen > taken_m; seen = 0 }
	:: else
	fi
}

/*
 * acp_drain(): sets more.  Only one drains at a time, and it does so in
 * the process Drainer on behalf of its caller: what is counted there is here
 * no more than whether there was another request.
 */
inline acp_drain(me, budget_of_me)
{
	atomic {							/* atomic_inc_return() */
		full_fence(me);
		ok = !draining;
		if
		:: ok -> draining = true; fresh = false; drainer = me; limit = budget_of_me
		:: else -> fresh = true
		fi;
		more = false
	};
	if
	:: ok ->
		atomic { answer[me] -> more = answer[me] == MORE_LEFT; answer[me] = 0 };
		if
		:: more -> ready(); atomic { more = ok; ok = false }
		:: else -> ok = false
		fi
	:: else
	fi
}

/* acp_poller_bell(): kick(), or moderation_begin() */
inline kick(me)
{
#ifdef MODERATION
#ifdef BUG_ARM_FIRST
	timer_armed = true;
	atomic { flags_m = 0; full_fence(me) };
#else
	atomic { flags_m = 0; full_fence(me) };		/* acp_queue_need_wakeup() */
	timer_armed = true;					/* moderation_on() */
#endif
#else
	full_fence(me);
	if
	:: asleep_m -> asleep_m = false
	:: else
	fi
#endif
}

/* acp_worker_kick(), where a budget ended */
inline acp_worker_kick(me)
{
#ifdef BUDGET
	atomic { full_fence(me); due = true }				/* xchg() */
#else
	assert(false)
#endif
}

/* What a drain, or a budget that ended before it, left undone */
inline go_on(me)
{
	if
#ifdef BUG_BUDGET_FORGETS
	:: more
#else
	:: more -> acp_worker_kick(me)
#endif
	:: else
	fi
}

/*
 * try_start(), in one step with what comes before: what it looks at only goes
 * one way while this process drains.  Sets ok; cur is to be completed if "now".
 */
inline try_start()
{
	/* acp_run_ask(), acp_station_ready(), acp_peer_ready() */
	ok = order[cur] <= completed && (kind[cur] != THIRD || flow_open);
	flow_wanted = flow_wanted || (kind[cur] == THIRD && order[cur] <= completed);
	if
	:: ok ->						/* acp_station_start() */
		assert(!started[cur]);
		started[cur] = true;
		state[SLOT(cur)] = STARTED;
		now = kind[cur] == LOCAL;
		busy[SLOT(cur)] = !now;
		busy_m[SLOT(cur)] = !now;
		under_way[cur] = !now;
		with_us[cur] = !now
	:: else
	fi
}

/* start_waiting() for the commands cur .. taken, then take() */
inline start_and_take()
{
	do
	:: atomic { waiting && cur <= taken && budget ->
			ok = false;
			if
			:: state[SLOT(cur)] == WAITING && ticket[SLOT(cur)] == cur ->
				try_start();
				waiting = (ok -> waiting - 1 : waiting);
				budget = (ok && budget -> budget - COST : budget)
			:: else
			fi
		};
		if
		:: now -> complete(me, cur); now = false
		:: else
		fi;
		cur++
	:: atomic { !(waiting && cur <= taken && budget) ->
			if
			:: !budget -> break
			:: else -> budget = budget - COST
			fi;
			if
			:: tail_m <= taken -> starved = false; break		/* (B) */
			:: else
			fi;
			cur = taken + 1;
			if
			:: state[SLOT(cur)] != FREE || busy_m[SLOT(cur)] ->	/* slot_free() */
				starved = true;
				break
			:: else
			fi;
			/* read_entry(): filled, and not yet another one */
			assert(entry_m[PLACE(cur)] == cur);
			ticket[SLOT(cur)] = cur;
			taken = cur;
			if
			:: try_start()
#ifdef BUDGET
			/* acp_budget_pay(): a fresh budget allows any command */
			:: budget + COST < CALLER -> ok = false; budget = 0
#endif
			fi
		};
		if
		:: now -> complete(me, cur); now = false
		:: !ok -> atomic { state[SLOT(cur)] = WAITING; waiting++; newly = true }
		:: else
		fi;
		cur++
	od
}

/* can_go_on(): sets ok */
inline can_go_on()
{
#ifndef NO_FENCE_DRAIN
	full_fence(me);
#endif
	atomic {
		ok = waiting && completed != former;
#ifndef NO_SECOND_ASK
		ok = ok || newly;
#endif
		ok = ok || (tail_m > taken && state[SLOT(taken + 1)] == FREE &&
			    !busy_m[SLOT(taken + 1)])
	}
}

/* acp_drain() from the raised counter on */
active proctype Drainer()
{
	byte me, former, cur, budget;
	bool ok, now, newly;

end:	do
	:: atomic { limit -> budget = limit; limit = 0; me = drainer };
		do
		:: fresh = false;				/* atomic_read() */
			do
			:: atomic { former = completed; newly = false; cur = former + 1 };
				start_and_take();
				if
				:: !budget -> break
				:: else -> can_go_on()
				fi;
				if
				:: !ok -> break
				:: else
				fi
			od;
			if
			:: !budget -> break
			:: else
			fi;
			atomic {				/* atomic_sub_return() */
				full_fence(me);
				if
				:: fresh && AGAIN
				:: else -> draining = false; drainer = NOBODY; break
				fi
			}
		od;
		atomic {
			if
			:: budget -> answer[me] = ALL_DONE
			:: else ->
				full_fence(me);		/* atomic_xchg() */
				draining = false;
				drainer = NOBODY;
				answer[me] = MORE_LEFT
			fi;
			me = NOBODY;
			former = 0; cur = 0; budget = 0; ok = false; newly = false
		}
	od
}

/* ---- the calls: kernel/dev/dev.c ---- */

/* ring() */
inline ring(me)
{
	do
	:: acp_drain(me, CALLER);
		if
		:: more
#ifdef BUDGET
		:: more -> acp_worker_kick(me); break		/* signal_pending() */
#endif
		:: else -> break
		fi
	od
}

/* wait_for(), wait_event_interruptible_timeout() */
inline wait_for(me, t)
{
	atomic { full_fence(me); queued[me] = true; woken[me] = false };
	do
	:: cq_m >= t || aborted -> break
	:: else -> atomic { woken[me] -> woken[me] = false }
	od;
	queued[me] = false
}

/* ---- the process: lib/core/submit.c, lib/core/rings.h ---- */

#define LOCALS	byte seen; bool more, ok

active proctype Submitter()
{
	LOCALS;

	do
	:: tail == N -> break
	:: else ->
		/* wait_for_room(): (D) */
		do
		:: d_step { tail - cq_m < DEPTH ->
			assert(!cq_m || status[PLACE(cq_m)] == cq_m) };
			break
		:: aborted -> goto done
		:: tail - cq_m >= DEPTH ->
			ring(SUBMITTER);
			wait_for(SUBMITTER, tail - DEPTH + 1)
		od;
		/* libacp_rings_push() */
		atomic {
			if
#ifdef LOCALLY
			:: kind[tail + 1] = LOCAL
#else
			:: kind[tail + 1] = REMOTE
#endif
#ifdef REMOTELY
			:: kind[tail + 1] = THIRD
#endif
			fi;
			if
			:: true
#ifdef REMOTELY
			:: tail -> order[tail + 1] = tail
#endif
			fi;
			entry[PLACE(tail + 1)] = tail + 1;
			tail++						/* (A) */
		};
		/* libacp_rings_must_ring() */
#ifndef NO_FENCE_USER
		full_fence(SUBMITTER);
#endif
		if
		:: flags_m & NEED_WAKEUP ->
			ring(SUBMITTER);			/* ioctl_doorbell() */
			if
			:: kick(SUBMITTER)			/* acp_poller_bell() */
			:: true
			fi
		:: else
		fi
	od;
	/* acp_inquire(), again and again; no call that would look at the ring */
	cq_m == N || aborted;
	assert(aborted || status[PLACE(N)] == N);
done:	skip
}

#ifdef POLLING
/* ioctl_wait() with ACP_WAIT_ARM by one thread, epoll_wait() by another */
active proctype Waiter()
{
	LOCALS;

	ring(WAITER);
	armed = N;							/* smp_store_mb() */
#ifndef BUG_ARM_ONLY
	if
	:: cq_m >= N -> wake_queued()
	:: else
	fi
#endif
}

active proctype Epoll()
{
	do
	:: atomic { event -> event = false };
		if
		:: cq_m >= armed -> break				/* dev_poll() */
		:: else
		fi
	od;
	assert(status[PLACE(N)] == N)
}
#endif

#ifdef SLEEPING
active proctype Waiter()
{
	LOCALS;

	ring(WAITER);							/* ioctl_wait() */
	wait_for(WAITER, N);
	assert(aborted || status[PLACE(N)] == N)
}
#endif

/* ---- the network: kernel/exec/receive.c, kernel/net/peer.c ---- */

/* acp_station_idle() */
inline acp_station_idle()
{
#ifndef NO_FENCE_IDLE
	full_fence(NETWORK);
#endif
	ready();
	if
	:: ok ->
		acp_drain(NETWORK, SOFTIRQ);
		go_on(NETWORK)
#ifdef BUDGET
	:: ok -> ok = false; more = true; go_on(NETWORK)	/* the budget went to others */
#endif
	:: else
	fi
}

active proctype Network()
{
	byte t;
	LOCALS;

#ifdef LOCALLY
	acp_station_idle()
#else
end:	do
	:: atomic {
			if
			:: under_way[1] -> t = 1; under_way[1] = false
			:: under_way[2] -> t = 2; under_way[2] = false
			:: under_way[3] -> t = 3; under_way[3] = false
			/* acp_queue_item_back(): before or after the end of the command */
			:: with_us[1] -> with_us[1] = false; busy[SLOT(1)] = false
			:: with_us[2] -> with_us[2] = false; busy[SLOT(2)] = false
			:: with_us[3] -> with_us[3] = false; busy[SLOT(3)] = false
			/* acp_flow_hello() or acp_flow_admit() opened the flow */
			:: flow_wanted && !flow_open -> flow_open = true
			fi
		};
		if
		:: t -> complete(NETWORK, t); t = 0
		:: else
		fi;
		acp_station_idle()
	od
#endif
}

/* ---- kernel/exec/poller.c ---- */

/* acp_queue_need_wakeup(): sets ok */
inline acp_queue_need_wakeup(set)
{
	atomic {
		flags = (set || aborted -> NEED_WAKEUP : 0) | (aborted -> ABORTED : 0);
		flags_p = true
	};
#if !defined(NO_FENCE_KERNEL) && !defined(NO_FENCE_FLAG)
	full_fence(POLLER);
#endif
	if
	:: aborted -> d_step { flags = ABORTED | NEED_WAKEUP; flags_p = true }
	:: else
	fi;
	ok = !set || starved_m;
#ifdef NO_RECHECK_BEFORE_SLEEP
	ok = true;
#endif
	if
	:: !ok ->
		seen = tail_m;
		atomic { ok = seen <= taken_m; seen = 0 }
	:: else
	fi
}

/* look(): sets more; that something moved may keep the poller awake, too */
inline look()
{
	ready();
	if
	:: ok ->
		acp_drain(POLLER, CALLER);
		go_on(POLLER)
#ifdef BUDGET
	:: ok -> ok = false; more = true; go_on(POLLER)		/* as above */
#endif
	:: else -> more = false
	fi
}

#ifdef MODERATION
/* moderation_look() */
active proctype Timer()
{
	LOCALS;

end:	do
	:: atomic { timer_armed -> timer_armed = false };
		look();
		if
		:: timer_armed = true				/* moderation_on() */
		:: acp_queue_need_wakeup(true);			/* moderation_end() */
			if
			:: !ok -> look()			/* moderation_drain() */
			:: else
			fi
		fi
	od
}
#elif defined(LOCALLY) && !defined(BUDGET)
active proctype Poller()
{
	bool awake;
	LOCALS;

end:	do
	:: !awake && !asleep_m && !asleep_p ->			/* wait_event_interruptible() */
		acp_queue_need_wakeup(false);
		awake = true
	:: awake ->
		look();
		if
		:: true						/* look_while_busy() */
		:: !more ->
			acp_queue_need_wakeup(true);
			if
			:: ok ->
				ok = false;
				asleep_p = true;
				awake = false
			:: else
			fi
		fi
	od
}
#endif

#ifdef BUDGET
/* serve(): kernel/exec/worker.c */
active proctype Worker()
{
	LOCALS;

end:	do
#ifdef BUG_DUE_LATE
	:: due ->
#else
	:: atomic { due -> full_fence(WORKER); due = false };		/* xchg() */
#endif
		do
		:: ready();
			if
			:: ok -> acp_drain(WORKER, CALLER)
			:: else -> more = false
			fi;
			if
			:: !more -> break
			:: else
			fi
		od;
#ifdef BUG_DUE_LATE
		due = false
#endif
	od
}
#endif

#ifdef ABORT
/* acp_barrier_abort(), acp_queue_abort() */
active proctype Aborter()
{
	aborted = true;							/* xchg() */
	flags_m = ABORTED | NEED_WAKEUP;
	wake_queued();
	/* when nothing moves any more */
	timeout -> assert(flags_m == (ABORTED | NEED_WAKEUP))
}
#endif
