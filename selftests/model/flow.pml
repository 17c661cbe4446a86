/* SPDX-License-Identifier: MIT */
/*
 * A flow between two nodes: A sends numbered frames, B applies them.  What is
 * modelled is kernel/core/flow.c and the way kernel/net/peer.c uses it; each step
 * names its function.  The rules are in kernel/core/PROTOCOL.md, sections 4, 5.
 *
 * Proved, for all interleavings:
 *	exactly once		a frame has its effect at most once, in the incarnation it was
 *				sent in, and counts as applied in that incarnation only
 *	effect first		what is acknowledged had its effect; a token comes back
 *				once, after the effect or with the end of the incarnation
 *	fence			a fenced frame has its effect after all before it
 *	restarts		nothing old ends an incarnation that both ends are in
 *	signs of life		(-DALIVE) each counts once, whatever is replayed: so a dead end is
 *				silent after a bounded number of them
 *	progress		(-DPROGRESS) with so many losses, refusals and restarts all
 *				ends within so many time-outs, and without a restart well
 *
 * Settings:
 *	-DFRAMES	one incarnation, open from the start
 *	-DRESTARTS	both ends fail, restart, open and ask
 *	(none)		both of it, but only A speaks first
 *	-DPROGRESS	with time-outs; B is restarted once
 *	-DALIVE		with -DFRAMES: A asks, B answers, and may die at any time
 *
 * The network: without -DPROGRESS each frame that was ever sent may arrive at
 * any time, any number of times, or never: loss, duplicates, any order, and
 * frames of former incarnations are all in this.  With it a frame arrives once, or
 * twice, or is lost, so many times in all.
 *
 * Receiving takes three steps: accept, under the peer's lock; the effect, on
 * one of two CPUs, or refusal; applied, under the lock.  Epochs are numbers
 * that each end draws in turn: no two are alike, and none is guessed.
 *
 * -DBUG_..., -DNO_...: mutants, each of which must be found.
 */

#define A		0
#define B		1
#define W		2	/* ACP_FRAME_WINDOW, of both sides */
#ifndef T
#define T		3	/* frames that A sends, in all its incarnations */
#endif
#ifdef PROGRESS
#define E		6	/* epochs that an end may draw: enough, see flow_failed() */
#define EACH(what)	what(1) what(2) what(3) what(4) what(5) what(6)
#define MAY_RESTART(n)	true
#else
#define E		4	/* ... here the search ends where the epochs do */
#define EACH(what)	what(1) what(2) what(3) what(4)
#define MAY_RESTART(n)	(drawn[n] < E)
#endif
#ifdef FRAMES
#define FAILS_A		0
#define FAILS_B		0
#endif
#ifndef FAILS_A
#define FAILS_A		1	/* times that the end fails or restarts by itself */
#endif
#ifndef FAILS_B
#define FAILS_B		1
#endif
#ifndef LOSSES
#define LOSSES		2	/* with -DPROGRESS */
#endif
#define TWICE		1
#define REFUSALS	1
#define SILENT		5	/* time-outs without a frame until the peer has failed */
#define ROUNDS		16	/* time-outs until everything must have ended */

#define CLOSED		0	/* enum acp_flow_state */
#define OPENING		1
#define OPEN		2

#define ACKED		2	/* enum acp_slot_state: FREE 0, FLIGHT 1 */

#define BIT(n)		(1 << (n))
#define PLACE(seq)	BIT((seq) % W)

/* both ends: struct acp_flow */
byte st[2], epoch[2], epoch_next[2], epoch_peer[2], drawn[2];
byte fails[2];

/* A, sending */
byte next = 1, una = 1, slot[W], issued, ended;
byte tokens;				/* held, by number */

/* B, receiving */
byte rcv = 1, accepted, applied;	/* maps by place */
byte held, held_epoch;			/* a fenced frame that came too early, and its incarnation */

/* the CPUs of B: a frame accepted there */
#define ACCEPTED	1
#define EFFECTIVE	2
#define REFUSED		3
byte cpu[2], cpu_seq[2], cpu_epoch[2], cpu_life[2];

/* effects, by incarnation of A; for the assertions */
byte effect[E + 1];

/*
 * The network.  DATA: by epoch of A, the epoch of B it is for, numbers, and
 * which of them are fenced.  ACK: by epoch of B, the same, and what was said,
 * as bits 2 * rcv + map.  HELLO: by sender and epoch, bits 2 * dst + ask.
 */
byte data_to[E + 1], data[E + 1], fenced[E + 1];
byte ack_to[E + 1];
short ack[E + 1];
short hello[2 * (E + 1)];

#define HELLO(n, src)	hello[(n) * (E + 1) + (src)]

/*
 * Signs of life that an end has counted, acp_flow_heard(), and what the other one has done that
 * may be one: for A, acknowledgements of something new and answers; for B, new numbers.
 */
#ifdef ALIVE
#define Q		2	/* questions of A */
byte heard[2], done[2];
byte asked, question, questions, answers;	/* the maps by number: that ever were on the way */
bool dead;
#define LIVING		!dead &&
#define DID(n)		done[n]++
#define HEARD(n)	heard[n]++; assert(heard[n] <= done[1 - (n)])
#else
#define LIVING
#define DID(n)		skip
#define HEARD(n)	skip
#endif

#ifdef PROGRESS
byte losses = LOSSES, twice = TWICE, refusals = REFUSALS, rounds, silent;
#endif
bool lost;				/* what was just taken from the network */

/* ---- sending a frame ---- */

inline send_hello(n, from, to, asks)
{
	HELLO(n, from) = HELLO(n, from) | BIT(2 * (to) + (asks))
}

/* build_ack(): acp_flow_fill(), acp_flow_fill_map() */
inline send_ack()
{
	ack_to[epoch[B]] = epoch_peer[B];
	ack[epoch[B]] = ack[epoch[B]] | BIT(2 * rcv + ((applied & PLACE(rcv + 1)) != 0))
}

/* ---- incarnations: kernel/core/flow.c, kernel/net/peer.c ---- */

/* acp_flow_init() of the next incarnation, or acp_flow_restart(): begin(), drop_all() */
inline begin(n)
{
	if
	:: n == A ->
		/* all tokens come back: failed */
		d_step {
			ended = ended + (tokens & BIT(1)) / BIT(1) + (tokens & BIT(2)) / BIT(2) +
				(tokens & BIT(3)) / BIT(3) + (tokens & BIT(4)) / BIT(4);
			tokens = 0;
			next = 1; una = 1; slot[0] = 0; slot[1] = 0
		}
	:: else ->
		rcv = 1; accepted = 0; applied = 0;
#ifndef NO_PURGE
		held = 0; held_epoch = 0
#endif
	fi
}

/* flow_failed(), or the node begins anew and remembers nothing */
inline flow_failed(n)
{
	begin(n);
	st[n] = CLOSED;
	epoch[n] = drawn[n] + 1;
	epoch_next[n] = drawn[n] + 2;
	drawn[n] = drawn[n] + 2;
	assert(drawn[n] <= E);
	epoch_peer[n] = 0
}

inline opened(n, peer)
{
	st[n] = OPEN;
	epoch_peer[n] = peer
}

/* flow_restarted() */
inline flow_restarted(n, peer)
{
	/* the peer is no more what we take it for */
	assert(epoch[1 - n] != epoch_peer[n]);
	begin(n);
	epoch[n] = epoch_next[n];
	drawn[n]++;
	assert(drawn[n] <= E);
	epoch_next[n] = drawn[n];
	opened(n, peer)
}

/* acp_flow_hello() */
inline acp_flow_hello(n)
{
	if
	:: st[n] == OPEN && src != epoch_peer[n] ->
		if
#ifdef BUG_HELLO_BELIEVED
		:: MAY_RESTART(n) -> flow_restarted(n, src)
#else
		:: dst == epoch_next[n] && MAY_RESTART(n) -> flow_restarted(n, src)
#endif
#ifndef NO_RULE_3
		:: dst != epoch_next[n] && dst && dst != epoch[n]
#endif
		:: else -> send_hello(n, epoch_next[n], src, 1)
		fi
	:: else ->
		if
		:: dst == epoch[n] && st[n] != OPEN -> opened(n, src)
		:: else
		fi;
		if
		:: ask -> send_hello(n, epoch[n], src, 0)
		:: else
		fi
	fi
}

/* acp_flow_admit(): sets pass */
inline acp_flow_admit(n)
{
	pass = false;
	if
#ifdef EPOCH_IGNORED
	:: st[n] == OPEN -> pass = true
#endif
	:: dst == epoch[n] && st[n] == OPEN -> pass = src == epoch_peer[n]
	:: dst == epoch[n] && st[n] != OPEN -> opened(n, src); pass = true
	:: dst == epoch_next[n] && st[n] == OPEN && MAY_RESTART(n) ->
		flow_restarted(n, src);
		pass = true
	:: else
	fi
}

/* ---- A: sending ---- */

/* acp_flow_ack_begin(), _next(), _end(); acknowledgement() */
inline acknowledgement(rest)
{
	d_step {
#ifdef BUG_REPEATED_ACK_ALIVE
		HEARD(A);
#endif
		cur = una;
		do
		:: cur < next ->
			if
			:: slot[cur % W] != ACKED &&
			   (cur < seq || (cur == seq + 1 && (rest))) ->
				/* the token comes back: there must have been an effect */
				assert(tokens & BIT(cur));
				assert(effect[epoch[A]] & BIT(cur));
				tokens = tokens & ~BIT(cur);
				ended++;
				slot[cur % W] = ACKED;
				new = true
			:: else
			fi;
			cur++
		:: else -> break
		od;
		do
		:: una < next && slot[una % W] == ACKED -> slot[una % W] = 0; una++
		:: else -> break
		od;
		cur = 0;
#ifndef BUG_REPEATED_ACK_ALIVE
		if
		:: new -> HEARD(A)
		:: else
		fi;
#endif
		new = false
	}
}

/* send_new(): acp_flow_room(), acp_flow_send() */
inline send_new()
{
	assert(!slot[next % W]);
	slot[next % W] = 1;
	tokens = tokens | BIT(next);
	data_to[epoch[A]] = epoch_peer[A];
	data[epoch[A]] = data[epoch[A]] | BIT(next);
	if
	:: next > 1 -> fenced[epoch[A]] = fenced[epoch[A]] | BIT(next)
	:: true
	fi;
	next++;
	DID(A);
	issued++
}

/* ---- B: receiving ---- */

/* acp_flow_applied() */
inline acp_flow_applied(number, epoch_then)
{
	assert(epoch_then == epoch_peer[B]);
	applied = applied | PLACE(number);
	DID(B);
	do
	:: applied & PLACE(rcv) ->
		applied = applied & ~PLACE(rcv);
		accepted = accepted & ~PLACE(rcv);
		rcv++
	:: else -> break
	od;
	send_ack()
}

#ifdef NO_DUPLICATE_CHECK
#define DUPLICATE	false
#else
#define DUPLICATE	(seq < rcv || accepted & PLACE(seq))
#endif

#ifdef FENCE_IGNORED
#define TOO_EARLY	false
#else
#define TOO_EARLY	(fenced[src] & BIT(seq) && seq != rcv)
#endif

#define CPU_FREE	(!cpu[0] || !cpu[1])

/* data(): acp_flow_accept(), hold(), apply() */
inline data_frame()
{
	if
	:: DUPLICATE ->
#if defined(PROGRESS) && !defined(NO_ACK_AGAIN)
		send_ack()
#else
		skip
#endif
	:: else ->
		if
		:: TOO_EARLY ->
			if
			:: !held -> held = seq; held_epoch = src
			:: else				/* the same one, or full */
			fi
		:: else ->
			accepted = accepted | PLACE(seq);
			cur = (cpu[0] -> 1 : 0);
			cpu[cur] = ACCEPTED;
			cpu_seq[cur] = seq;
			cpu_epoch[cur] = epoch[B];
			cpu_life[cur] = src;
			cur = 0;
#ifdef BUG_REFUSED_ALIVE
			HEARD(B);
#endif
#ifdef ACK_AT_ACCEPT
			acp_flow_applied(seq, src)
#endif
		fi
	fi
}

/* apply(), the station's part and what follows; one process is one CPU */
active [2] proctype Cpu()
{
end:	do
	:: atomic { LIVING cpu[_pid] == ACCEPTED ->
			/* acp_station_arrived() */
			assert(!(effect[cpu_life[_pid]] & BIT(cpu_seq[_pid])));
			assert(!(fenced[cpu_life[_pid]] & BIT(cpu_seq[_pid])) ||
			       (effect[cpu_life[_pid]] | 1) % BIT(cpu_seq[_pid]) ==
			       BIT(cpu_seq[_pid]) - 1);
			effect[cpu_life[_pid]] = effect[cpu_life[_pid]] | BIT(cpu_seq[_pid]);
#ifndef BUG_REFUSED_ALIVE
			HEARD(B);
#endif
			cpu[_pid] = EFFECTIVE
		}
#ifdef PROGRESS
	:: atomic { cpu[_pid] == ACCEPTED && refusals -> refusals--; cpu[_pid] = REFUSED }
#else
	:: atomic { LIVING cpu[_pid] == ACCEPTED -> cpu[_pid] = REFUSED }
#endif
	:: atomic { LIVING cpu[_pid] == EFFECTIVE ->
			/* the lock again; or acp_peer_applied(), when an answer had to arrive */
			if
#ifdef ACK_AT_ACCEPT
			:: true
#else
#ifdef NO_LOOK_AT_EPOCH
			:: true -> acp_flow_applied(cpu_seq[_pid], cpu_life[_pid])
#else
			:: cpu_epoch[_pid] == epoch[B] ->
				acp_flow_applied(cpu_seq[_pid], cpu_life[_pid])
			:: else
#endif
#endif
			fi;
			cpu[_pid] = 0; cpu_seq[_pid] = 0; cpu_epoch[_pid] = 0; cpu_life[_pid] = 0
		}
	:: atomic { LIVING cpu[_pid] == REFUSED ->
			if
			:: cpu_epoch[_pid] == epoch[B] ->	/* acp_flow_refuse() */
				accepted = accepted & ~PLACE(cpu_seq[_pid])
			:: else
			fi;
			cpu[_pid] = 0; cpu_seq[_pid] = 0; cpu_epoch[_pid] = 0; cpu_life[_pid] = 0
		}
	od
}

/* ---- frames that arrive: acp_peer_frame() ---- */

#ifdef PROGRESS
#define TAKE(set, bit) \
		if \
		:: set = set & ~(bit) \
		:: twice -> twice-- \
		:: losses -> losses--; set = set & ~(bit); lost = true \
		fi
#else
#define TAKE(set, bit)	skip
#endif

#define HELLO_IS(e, d, a) \
	:: HELLO(1 - me, e) & BIT(2 * (d) + (a)) -> \
		src = e; dst = d; ask = a; TAKE(HELLO(1 - me, e), BIT(2 * (d) + (a)))
#define HELLOS(e, d)	HELLO_IS(e, d, 0) HELLO_IS(e, d, 1)
#ifdef PROGRESS
#define HELLOS_MORE(e)	HELLOS(e, 5) HELLOS(e, 6)
#else
#define HELLOS_MORE(e)
#endif
#define HELLOS_OF(e) \
	HELLOS(e, 0) HELLOS(e, 1) HELLOS(e, 2) HELLOS(e, 3) HELLOS(e, 4) HELLOS_MORE(e)

#define DATA_IS(e, s) \
	:: CPU_FREE && data[e] & BIT(s) -> src = e; dst = data_to[e]; seq = s; TAKE(data[e], BIT(s))
#define DATA_OF(e)	DATA_IS(e, 1) DATA_IS(e, 2) DATA_IS(e, 3) DATA_IS(e, 4)

#define ACK_IS(e, r, m) \
	:: ack[e] & BIT(2 * (r) + (m)) -> \
		src = e; dst = ack_to[e]; seq = r; map = m; TAKE(ack[e], BIT(2 * (r) + (m)))
#define ACKS(e, r)	ACK_IS(e, r, 0) ACK_IS(e, r, 1)
#define ACKS_OF(e)	ACKS(e, 1) ACKS(e, 2) ACKS(e, 3) ACKS(e, 4) ACKS(e, 5)

#ifdef PROGRESS
#define NONE_OF(e)	!data[e] && !ack[e] && !HELLO(A, e) && !HELLO(B, e) &&
#define QUIET		(EACH(NONE_OF) \
			 !cpu[0] && !cpu[1] && !(held && held <= rcv))
#endif

#define FORGET		src = 0; dst = 0; seq = 0; ask = 0; map = 0; pass = false; lost = false

/* a node, without what only A or B does */
inline common(me)
{
	atomic {
		if
		EACH(HELLOS_OF)
		fi;
		if
		:: !lost -> acp_flow_hello(me)
		:: else
		fi;
		FORGET
	}
}

#ifdef FRAMES
#define BEGIN		st[A] = OPEN; st[B] = OPEN; epoch_peer[A] = 1; epoch_peer[B] = 1
#else
#define BEGIN		skip
#endif

/* a question of this incarnation was answered: answered() */
inline answer_arrived(q)
{
	if
#ifdef BUG_REPEATED_ANSWER_ALIVE
	:: true -> question = q; HEARD(A)
#else
	:: q > question -> question = q; HEARD(A)
	:: else
#endif
	fi
}

active proctype NodeA()
{
	byte src, dst, seq, cur;
	bool ask, map, pass, new;

	atomic { flow_failed(A); BEGIN };
#ifdef PROGRESS
	do
	:: ended == T -> break
#else
end:	do
#endif
	:: common(A)
	:: atomic {
			if
			EACH(ACKS_OF)
			fi;
			if
			:: !lost -> acp_flow_admit(A)
			:: else
			fi;
			if
			:: pass ->
				acknowledgement(map);
#ifdef PROGRESS
				silent = 0
#else
				skip
#endif
			:: else
			fi;
			FORGET
		}
	:: atomic { st[A] == OPEN && issued < T && next < una + W -> send_new() }
	/* pass(): acp_flow_open() */
	:: atomic { st[A] == CLOSED && issued < T ->
			st[A] = OPENING;
			send_hello(A, epoch[A], 0, 1)
		}
#ifdef PROGRESS
	/* acp_flow_tick(): ask again, send again, or give up */
	:: atomic { QUIET && st[A] == OPENING ->
			rounds++;
			assert(rounds < ROUNDS);
			send_hello(A, epoch[A], 0, 1)
		}
	:: atomic { QUIET && st[A] == OPEN && una < next ->
			rounds++;
			assert(rounds < ROUNDS);
			silent++;
			if
			:: silent > SILENT ->
				assert(fails[B]);	/* else it was not silent */
				silent = 0;
				flow_failed(A)
			:: else -> data[epoch[A]] = tokens
			fi
		}
#else
	/* acp_flow_tick(): failed; or the node begins anew */
	:: atomic { fails[A] < FAILS_A && drawn[A] + 2 <= E -> fails[A]++; flow_failed(A) }
#endif
#ifdef ALIVE
	/* acp_flow_ask(); a HELLO of B that answers */
	:: atomic { asked < Q -> asked++; questions = questions | BIT(asked) }
	:: atomic { answers & BIT(1) -> answer_arrived(1) }
	:: atomic { answers & BIT(2) -> answer_arrived(2) }
#endif
#ifdef RESTARTS
	/* acp_flow_tick(): a silent peer is asked */
	:: atomic { st[A] == OPEN && !(HELLO(A, epoch[A]) & BIT(2 * epoch_peer[A] + 1)) ->
			send_hello(A, epoch[A], epoch_peer[A], 1)
		}
#endif
	od
}

active proctype NodeB()
{
	byte src, dst, seq, cur;
	bool ask, pass, map;

	atomic { flow_failed(B); BEGIN };
end:	do
	:: common(B)
#ifdef ALIVE
	/* acp_flow_hello(): however often it is asked, that is one answer */
	:: atomic { !dead && questions & BIT(1) && !(answers & BIT(1)) ->
			answers = answers | BIT(1); DID(B)
		}
	:: atomic { !dead && questions & BIT(2) && !(answers & BIT(2)) ->
			answers = answers | BIT(2); DID(B)
		}
	:: atomic { !dead -> dead = true }
#endif
	:: atomic {
#ifdef ALIVE
			!dead;
#endif
			if
			EACH(DATA_OF)
			:: CPU_FREE && held && held <= rcv ->	/* release_held() */
				src = held_epoch; dst = epoch[B]; seq = held;
				held = 0; held_epoch = 0;
				map = true
			fi;
			if
			:: map -> pass = true
			:: !map && !lost -> acp_flow_admit(B)
			:: else
			fi;
			if
			:: pass -> data_frame()
			:: else
			fi;
			FORGET
		}
	:: atomic { fails[B] < FAILS_B && drawn[B] + 2 <= E -> fails[B]++; flow_failed(B) }
#ifdef RESTARTS
	/* it may have something to send, too */
	:: atomic { st[B] == CLOSED -> st[B] = OPENING; send_hello(B, epoch[B], 0, 1) }
	:: atomic { st[B] == OPEN && !(HELLO(B, epoch[B]) & BIT(2 * epoch_peer[B] + 1)) ->
			send_hello(B, epoch[B], epoch_peer[B], 1)
		}
#endif
	od
}
