/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT */
/*
 * Generic netlink family "acp": what an administrator and a user see of the
 * module in a network namespace, and what an administrator sets there.
 *
 * acp_nl.yaml says the same for programs, in the form of the kernel's netlink
 * specifications.  All numbers are in host byte order; addresses, 4 (IPv4) or
 * 16 bytes (IPv6), in network order; attributes are flat, none is nested.  A
 * u64 is aligned by ACP_NL_A_PAD.  A flag is there or is not.  Attributes that
 * a command does not take are refused, as are those malformed: -EINVAL, and a
 * sentence in the extended acknowledgement.  Readers pass over attributes that
 * they do not know.
 *
 * Who may: the node, its limits, colors and counters are for everybody to read.
 * Of a job, its ranks, regions, flows and counters hear those with the user
 * number of its owner, and who has CAP_NET_ADMIN in the user namespace of the
 * network namespace ("admin"); to others it is not there (-ENOENT, no entry in a
 * dump).  Changes are for admins (-EPERM), but that an owner may abort a job.
 *
 * A job is named by JOB and GENERATION; without GENERATION it is the latest
 * one of that number, and in a dump all of them.  A dump in which something may
 * have been told twice or not at all, since the set changed meanwhile, has
 * NLM_F_DUMP_INTR in its messages: repeat it.
 *
 * Requests (*: must be there) and replies ([]: only if it applies)
 *
 * NODE_GET (do)	-
 *	-> ENABLE MACHINE_ENABLE MODULE_VERSION ABI_VERSION PORT JOBS RANKS FLOWS
 *	   USERS TIMEOUT_MIN TIMEOUT_MAX
 * NODE_SET (do, admin)	ENABLE TIMEOUT_MIN TIMEOUT_MAX; one at least
 * LIMIT_GET (do)	NAME*
 * LIMIT_GET (dump)	-
 *	-> NAME TEXT VALUE MACHINE_VALUE LEAST MOST [USED]
 *	   USED: of the namespace (jobs) or of the caller here (user_...)
 * LIMIT_SET (do, admin) NAME* VALUE*
 * COLOR_GET (dump)	-
 *	-> COLOR ADDRESS [IFINDEX]
 *	   IFINDEX: of the interface that has the address now
 * COLOR_ADD (do, admin) COLOR* ADDRESS*
 *	   one of each family for a color: another one takes its place
 * COLOR_DEL (do, admin) COLOR* ADDRESS; without ADDRESS all of the color
 * JOB_GET (do)		JOB* GENERATION
 * JOB_GET (dump)	JOB GENERATION
 *	-> JOB GENERATION UID JOB_STATE NPROCS NODES ME COLORS FAMILY PORT INTEGRITY
 *	   TIMEOUT OPEN_TIMEOUT RANKS PLACED BARRIERS [BROKEN] [ABORTED] [STRANGER]
 *	   FLOWS AGE MEMORY
 * JOB_ABORT (do, admin or owner) JOB* GENERATION
 * RANK_GET (do)	JOB* GENERATION RANK*
 *	-> JOB GENERATION RANK NODE RANK_STATE [STATUS] ADDRESS...
 *	   any rank of the job; its node's addresses, one of each color, in order;
 *	   one of this node: and all that the dump tells
 * RANK_GET (dump)	JOB GENERATION; ranks of this node
 *	-> JOB GENERATION RANK NODE RANK_STATE [PID] UID DEPTH QUEUES TAKEN COMPLETED
 *	   FAILED IN_FLIGHT STARTER HEAP REGIONS [BARRIER] [FINISHED]
 * REGION_GET (dump)	JOB GENERATION RANK; regions of ranks of this node
 *	-> JOB GENERATION RANK STAG KEY COLOR ACCESS KIND [START] LENGTH PAGES
 *	   [REGISTRATIONS] [REVOKED]
 * FLOW_GET (dump)	JOB GENERATION NODE COLOR
 *	-> JOB GENERATION NODE COLOR ADDRESS FLOW_STATE FLOW_FATE [STATUS] SRTT
 *	   RTTVAR RTT_LEAST RTO WINDOW IN_FLIGHT WAITING MTU TX_FRAMES TX_BYTES
 *	   TX_AGAIN RX_FRAMES RX_BYTES RX_DUPLICATES TIMEOUTS DELEGATED IDLE
 * STAT_GET (dump)	JOB GENERATION
 *	-> NAME VALUE TEXT
 *	   of the node, those of /proc/net/acp; with JOB: of that job on this node
 * PING (do)		JOB* GENERATION (RANK | ADDRESS | NODE)* COLOR SIZE TIMEOUT
 *	The request is acknowledged when the probe is under way, or refused.  The
 *	result is a message of its own to the same socket, once, with the request's
 *	sequence number: most often after the acknowledgement, but it may be faster.
 *	-> JOB GENERATION NODE COLOR ADDRESS SIZE [RANK] [OPENED] RTT | ERROR
 *
 * EVENT, to the multicast group "events"
 *	-> EVENT TIME, and by EVENT:
 *	   JOB_BEGUN, JOB_ENDED, JOB_ABORTED	JOB GENERATION UID
 *	   RANK_JOINED, RANK_LEFT		JOB GENERATION UID RANK [FINISHED]
 *	   NODE_LOST				JOB GENERATION UID NODE COLOR ADDRESS STATUS
 *	   NODE_BACK				JOB GENERATION UID NODE COLOR ADDRESS
 *	   LIMIT_REACHED			UID NAME; at most 10 in 5 s of a namespace
 *	   SETTING				NAME VALUE, or COLOR [ADDRESS]
 *	An admin hears of all; others of what has their user number in UID, and
 *	of settings.  On kernels that cannot tell listeners apart (before 6.8) only
 *	admins can join the group (-EPERM).  Who reads too slowly gets -ENOBUFS.
 */
#ifndef ACP_NL_H
#define ACP_NL_H

#define ACP_NL_FAMILY_NAME	"acp"
#define ACP_NL_VERSION		1
#define ACP_NL_GROUP_EVENTS	"events"

#define ACP_NL_NAME_MAX		31	/* bytes of a NAME */
#define ACP_NL_PING_SIZE_MAX	128	/* bytes of payload, there and back */
#define ACP_NL_PING_TIMEOUT	1000	/* ms, unless TIMEOUT says otherwise */
#define ACP_NL_PING_TIMEOUT_MAX	60000
/* Pings of a job under way; one more: -EBUSY.  One that timed out may still wait to be sent. */
#define ACP_NL_PINGS_MAX	64
#define ACP_NL_TIMEOUT_LEAST	10	/* ms, of TIMEOUT_MIN and TIMEOUT_MAX */
#define ACP_NL_TIMEOUT_MOST	3600000

/*
 * Errors of commands, besides those above:
 *	-ENOENT		no such job, limit, color
 *	-EINVAL		no such rank, node, or not a value it can have
 *	-EBUSY		PING: as many as may be are under way
 *	-EHOSTUNREACH	PING: no node of the job has that address
 *	-EDQUOT		PING: no memory for a flow, or the job has job_peers of them
 *	-ENOMEM
 */
enum acp_nl_cmd {
	ACP_NL_CMD_NODE_GET = 1,
	ACP_NL_CMD_NODE_SET,
	ACP_NL_CMD_LIMIT_GET,
	ACP_NL_CMD_LIMIT_SET,
	ACP_NL_CMD_COLOR_GET,
	ACP_NL_CMD_COLOR_ADD,
	ACP_NL_CMD_COLOR_DEL,
	ACP_NL_CMD_JOB_GET,
	ACP_NL_CMD_JOB_ABORT,
	ACP_NL_CMD_RANK_GET,
	ACP_NL_CMD_REGION_GET,
	ACP_NL_CMD_FLOW_GET,
	ACP_NL_CMD_STAT_GET,
	ACP_NL_CMD_PING,
	ACP_NL_CMD_EVENT,

	__ACP_NL_CMD_MAX,
	ACP_NL_CMD_MAX = __ACP_NL_CMD_MAX - 1
};

enum acp_nl_attr {
	ACP_NL_A_PAD = 1,

	/* in requests and replies */
	ACP_NL_A_JOB,		/* u32 id, not 0 */
	ACP_NL_A_GENERATION,	/* u32, 0 .. 65535 */
	ACP_NL_A_RANK,		/* u32 */
	ACP_NL_A_NODE,		/* u32, number of a node in the job */
	ACP_NL_A_COLOR,		/* u32, 0 .. 3 */
	ACP_NL_A_ADDRESS,	/* binary, 4 or 16 bytes */
	ACP_NL_A_NAME,		/* string, of a limit, counter or setting */
	ACP_NL_A_VALUE,		/* u64 */
	ACP_NL_A_ENABLE,	/* u32, 0 or 1: may ranks join in this namespace? */
	ACP_NL_A_TIMEOUT_MIN,	/* u32 ms: bounds that time-outs of jobs begun from */
	ACP_NL_A_TIMEOUT_MAX,	/* u32 ms: now on are held to */
	ACP_NL_A_TIMEOUT,	/* u32 ms: silence until a node counts as lost; PING: to wait */
	ACP_NL_A_SIZE,		/* u32 bytes of a probe's payload */

	/* of a node */
	ACP_NL_A_MACHINE_ENABLE,/* u32, 0 or 1: may ranks join anywhere? */
	ACP_NL_A_MODULE_VERSION,/* string */
	ACP_NL_A_ABI_VERSION,	/* u32, of /dev/acp */
	ACP_NL_A_PORT,		/* u32, UDP: of jobs that do not choose; of a job */
	ACP_NL_A_JOBS,		/* u32, those that linger included */
	ACP_NL_A_RANKS,		/* u32, joined and still here; on this node, of this job */
	ACP_NL_A_FLOWS,		/* u32 */
	ACP_NL_A_USERS,		/* u32, with jobs here */

	/* of a limit */
	ACP_NL_A_TEXT,		/* string, what it means */
	ACP_NL_A_MACHINE_VALUE,	/* u64, which holds besides; user_...: over all namespaces */
	ACP_NL_A_LEAST,		/* u64, VALUE can be set from */
	ACP_NL_A_MOST,		/* u64, ... to */
	ACP_NL_A_USED,		/* u64 */

	/* of a color */
	ACP_NL_A_IFINDEX,	/* u32 */

	/* of a job */
	ACP_NL_A_UID,		/* u32, as the user namespace of the network namespace sees it */
	ACP_NL_A_JOB_STATE,	/* u32, enum acp_nl_job_state */
	ACP_NL_A_NPROCS,	/* u32 ranks in all */
	ACP_NL_A_NODES,		/* u32 */
	ACP_NL_A_ME,		/* u32, number of this node */
	ACP_NL_A_COLORS,	/* u32 */
	ACP_NL_A_FAMILY,	/* u32, AF_INET or AF_INET6 */
	ACP_NL_A_INTEGRITY,	/* u32, ACP_INTEGRITY_ of acp_abi.h */
	ACP_NL_A_OPEN_TIMEOUT,	/* u32 ms, the time-out of who has not answered yet */
	ACP_NL_A_PLACED,	/* u32 ranks that the map places on this node */
	ACP_NL_A_BARRIERS,	/* u64 completed */
	ACP_NL_A_BROKEN,	/* flag: no barrier can complete any more */
	ACP_NL_A_ABORTED,	/* flag */
	ACP_NL_A_STRANGER,	/* u32, node that runs another set-up of the job */
	ACP_NL_A_AGE,		/* u64 ms since it began here */
	ACP_NL_A_MEMORY,	/* u64 bytes that count for its user: ranks, regions, flows */

	/* of a rank */
	ACP_NL_A_RANK_STATE,	/* u32, ACP_RANK_ of acp_abi.h */
	ACP_NL_A_STATUS,	/* u32, ACP_ST_ of acp_abi.h: why it is down, was lost */
	ACP_NL_A_PID,		/* u32, if the reader's pid namespace has it */
	ACP_NL_A_DEPTH,		/* u32 entries of its ring */
	ACP_NL_A_TAKEN,		/* u64 commands */
	ACP_NL_A_COMPLETED,	/* u64, of these, failed ones included */
	ACP_NL_A_FAILED,	/* u64 */
	ACP_NL_A_IN_FLIGHT,	/* u32 commands; of a flow: frames */
	ACP_NL_A_STARTER,	/* u64 bytes */
	ACP_NL_A_HEAP,		/* u64 bytes */
	ACP_NL_A_REGIONS,	/* u32 registered */
	ACP_NL_A_BARRIER,	/* u64, number of the one it waits in */
	ACP_NL_A_FINISHED,	/* flag: it has passed a final barrier */

	/* of a region */
	ACP_NL_A_STAG,		/* u32 */
	ACP_NL_A_KEY,		/* u64, global address of offset 0 */
	ACP_NL_A_ACCESS,	/* u32, ACP_ACCESS_ of acp_abi.h */
	ACP_NL_A_KIND,		/* u32, enum acp_nl_region_kind */
	ACP_NL_A_START,		/* u64, address in its process, of registered ones */
	ACP_NL_A_LENGTH,	/* u64 bytes */
	ACP_NL_A_PAGES,		/* u64, of the size that the machine has */
	ACP_NL_A_REGISTRATIONS,	/* u32 that hold it */
	ACP_NL_A_REVOKED,	/* flag: its mapping has gone */

	/* of a flow: counts are since its job began here */
	ACP_NL_A_FLOW_STATE,	/* u32, enum acp_nl_flow_state */
	ACP_NL_A_FLOW_FATE,	/* u32, enum acp_nl_flow_fate */
	ACP_NL_A_SRTT,		/* u64 ns, smoothed round trip, 0: none yet */
	ACP_NL_A_RTTVAR,	/* u64 ns */
	ACP_NL_A_RTT_LEAST,	/* u64 ns, 0: none yet */
	ACP_NL_A_RTO,		/* u64 ns, time-out after which a frame is sent again */
	ACP_NL_A_WINDOW,	/* u32 frames that may be in flight */
	ACP_NL_A_WAITING,	/* u32 messages or transfers not cut to the end; 4096: or more */
	ACP_NL_A_MTU,		/* u32 bytes of a datagram's payload */
	ACP_NL_A_TX_FRAMES,	/* u64, repetitions, ACKs and HELLOs included */
	ACP_NL_A_TX_BYTES,	/* u64, of these: UDP payload */
	ACP_NL_A_TX_AGAIN,	/* u64, of these: repetitions */
	ACP_NL_A_RX_FRAMES,	/* u64, authentic ones, duplicates included */
	ACP_NL_A_RX_BYTES,	/* u64, of these: UDP payload */
	ACP_NL_A_RX_DUPLICATES,	/* u64, of these: received before */
	ACP_NL_A_TIMEOUTS,	/* u64 */
	ACP_NL_A_DELEGATED,	/* u32 commands of that node under way here */
	ACP_NL_A_IDLE,		/* u64 ms since something was sent or asked of it */

	/* of a ping */
	ACP_NL_A_RTT,		/* u64 ns */
	ACP_NL_A_OPENED,	/* flag: the flow was not open, RTT contains that it opened */
	ACP_NL_A_ERROR,		/* u32, errno: ETIMEDOUT, or why the flow failed */

	/* of an event */
	ACP_NL_A_EVENT,		/* u32, enum acp_nl_event */
	ACP_NL_A_TIME,		/* u64 ns since 1970 */

	/* of a rank */
	ACP_NL_A_QUEUES,	/* u32, with those that are attached; what it has done is of all */

	__ACP_NL_A_MAX,
	ACP_NL_A_MAX = __ACP_NL_A_MAX - 1
};

enum acp_nl_job_state {
	ACP_NL_JOB_RUNNING	= 1,	/* it has ranks here */
	ACP_NL_JOB_LINGERING	= 2,	/* it has none, and repeats what others may lack */
	ACP_NL_JOB_ABORTED	= 3,	/* it was ended, and still has ranks here */
};

enum acp_nl_region_kind {
	ACP_NL_REGION_STARTER	= 1,
	ACP_NL_REGION_HEAP	= 2,
	ACP_NL_REGION_LIBRARY	= 3,	/* a page for the library's own exchanges */
	ACP_NL_REGION_USER	= 4,	/* registered */
};

enum acp_nl_flow_state {
	ACP_NL_FLOW_CLOSED	= 1,	/* never used, or failed and not tried again yet */
	ACP_NL_FLOW_OPENING	= 2,
	ACP_NL_FLOW_OPEN	= 3,
};

enum acp_nl_flow_fate {
	ACP_NL_FATE_NONE	= 1,	/* it never failed */
	ACP_NL_FATE_LOST	= 2,	/* it failed (STATUS), and has not opened since */
	ACP_NL_FATE_BACK	= 3,	/* it failed (STATUS), and has opened again */
};

enum acp_nl_event {
	ACP_NL_EVENT_JOB_BEGUN	= 1,	/* its first rank has joined here */
	ACP_NL_EVENT_JOB_ENDED	= 2,	/* nothing is left of it here */
	ACP_NL_EVENT_JOB_ABORTED = 3,
	ACP_NL_EVENT_RANK_JOINED = 4,
	ACP_NL_EVENT_RANK_LEFT	= 5,	/* FINISHED: as it should; what it registered is free */
	ACP_NL_EVENT_NODE_LOST	= 6,
	ACP_NL_EVENT_NODE_BACK	= 7,
	ACP_NL_EVENT_LIMIT_REACHED = 8,	/* a call was refused, or no flow made */
	ACP_NL_EVENT_SETTING	= 9,	/* NODE_SET, LIMIT_SET, COLOR_ADD, COLOR_DEL */
};

#endif /* ACP_NL_H */
