/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT */
/*
 * Generic netlink family "acp": shows the state of the module in a network
 * namespace to administrators and users, and lets administrators change settings.
 *
 * acp_nl.yaml describes the same for programs, in the form of the kernel's
 * netlink specifications.  All numbers are in host byte order; addresses, 4
 * (IPv4) or 16 bytes (IPv6), in network order; attributes are flat, none is
 * nested.  A u64 is aligned by ACP_NL_A_PAD.  A flag is present or absent.
 * Attributes that a command does not accept, and malformed ones, are refused:
 * -EINVAL, and a sentence in the extended acknowledgement.  Readers must ignore
 * attributes that they do not know.
 *
 * Permissions: all users can read the node, its limits, colors and counters.
 * A job, its ranks, regions, flows and counters are visible to callers with the
 * user id of its owner, and to callers with CAP_NET_ADMIN in the user namespace
 * of the network namespace ("admin"); for other callers it does not exist
 * (-ENOENT, no entry in a dump).  Only admins may make changes (-EPERM), except
 * that the owner of a job may abort it.
 *
 * A job is identified by JOB and GENERATION; without GENERATION it is the latest
 * one with that number, and in a dump all of them.  If the set changed during a
 * dump, so that entries may be missing or duplicate, its messages have
 * NLM_F_DUMP_INTR: repeat the dump.
 *
 * Requests (*: required) and replies ([]: only if it applies)
 *
 * NODE_GET (do)	-
 *	-> ENABLE MACHINE_ENABLE MODULE_VERSION ABI_VERSION PORT JOBS RANKS FLOWS
 *	   USERS TIMEOUT_MIN TIMEOUT_MAX
 * NODE_SET (do, admin)	ENABLE TIMEOUT_MIN TIMEOUT_MAX; one at least
 * LIMIT_GET (do)	NAME*
 * LIMIT_GET (dump)	-
 *	-> NAME TEXT VALUE MACHINE_VALUE LIMIT_MIN LIMIT_MAX [USED]
 *	   USED: of the namespace (jobs) or of the caller here (user_...)
 * LIMIT_SET (do, admin) NAME* VALUE*
 * COLOR_GET (dump)	-
 *	-> COLOR ADDRESS [IFINDEX]
 *	   IFINDEX: of the interface that has the address now
 * COLOR_ADD (do, admin) COLOR* ADDRESS*
 *	   one of each family per color: a new one replaces it
 * COLOR_DEL (do, admin) COLOR* ADDRESS; without ADDRESS all of the color
 * JOB_GET (do)		JOB* GENERATION
 * JOB_GET (dump)	JOB GENERATION
 *	-> JOB GENERATION UID JOB_STATE NPROCS NODES ME COLORS FAMILY PORT INTEGRITY
 *	   TIMEOUT OPEN_TIMEOUT RANKS PLACED BARRIERS [BROKEN] [ABORTED] [MISMATCHED]
 *	   FLOWS AGE MEMORY
 * JOB_ABORT (do, admin or owner) JOB* GENERATION
 * RANK_GET (do)	JOB* GENERATION RANK*
 *	-> JOB GENERATION RANK NODE RANK_STATE [STATUS] ADDRESS...
 *	   any rank of the job; its node's addresses, one of each color, in order;
 *	   for a rank of this node, also all that the dump has
 * RANK_GET (dump)	JOB GENERATION; ranks of this node
 *	-> JOB GENERATION RANK NODE RANK_STATE [PID] UID DEPTH QUEUES TAKEN COMPLETED
 *	   FAILED IN_FLIGHT STARTER HEAP REGIONS [BARRIER] [FINISHED]
 * REGION_GET (dump)	JOB GENERATION RANK; regions of ranks of this node
 *	-> JOB GENERATION RANK STAG KEY COLOR ACCESS KIND [START] LENGTH PAGES
 *	   [REGISTRATIONS] [REVOKED]
 * FLOW_GET (dump)	JOB GENERATION NODE COLOR
 *	-> JOB GENERATION NODE COLOR ADDRESS FLOW_STATE FLOW_FATE [STATUS] SRTT
 *	   RTTVAR RTT_MIN RTO WINDOW IN_FLIGHT WAITING MTU TX_FRAMES TX_BYTES
 *	   TX_RETRANSMITS RX_FRAMES RX_BYTES RX_DUPLICATES TIMEOUTS DELEGATED IDLE
 * STAT_GET (dump)	JOB GENERATION
 *	-> NAME VALUE TEXT
 *	   of the node, those of /proc/net/acp; with JOB: of that job on this node
 * PING (do)		JOB* GENERATION (RANK | ADDRESS | NODE)* COLOR SIZE TIMEOUT
 *	The request is acknowledged when the probe is in flight, or refused.  The
 *	result is a separate message to the same socket, once, with the request's
 *	sequence number: usually after the acknowledgement, but it may overtake it.
 *	-> JOB GENERATION NODE COLOR ADDRESS SIZE [RANK] [OPENED] RTT | ERROR
 *
 * EVENT, to the multicast group "events"
 *	-> EVENT TIME, and by EVENT:
 *	   JOB_BEGUN, JOB_ENDED, JOB_ABORTED	JOB GENERATION UID
 *	   RANK_JOINED, RANK_LEFT		JOB GENERATION UID RANK [FINISHED]
 *	   NODE_LOST				JOB GENERATION UID NODE COLOR ADDRESS STATUS
 *	   NODE_BACK				JOB GENERATION UID NODE COLOR ADDRESS
 *	   LIMIT_REACHED			UID NAME (or "memlock", for RLIMIT_MEMLOCK); at most
 *						10 in 5 s of a namespace
 *	   SETTING				NAME VALUE, or COLOR [ADDRESS]
 *	Admins receive all events; other users those with their user id in UID, and
 *	settings.  On kernels that cannot distinguish listeners (before 6.8), only
 *	admins can join the group (-EPERM).  A listener that reads too slowly gets
 *	-ENOBUFS.
 */
#ifndef ACP_NL_H
#define ACP_NL_H

#define ACP_NL_FAMILY_NAME	"acp"
#define ACP_NL_VERSION		1
#define ACP_NL_GROUP_EVENTS	"events"

#define ACP_NL_NAME_MAX		31	/* bytes of a NAME */
#define ACP_NL_PING_SIZE_MAX	128	/* bytes of payload, in each direction */
#define ACP_NL_PING_TIMEOUT	1000	/* ms, without TIMEOUT */
#define ACP_NL_PING_TIMEOUT_MAX	60000
/* Outstanding pings of a job, then -EBUSY.  A ping that timed out may still wait to be sent. */
#define ACP_NL_PINGS_MAX	64
#define ACP_NL_TIMEOUT_MIN	10	/* ms, of TIMEOUT_MIN and TIMEOUT_MAX */
#define ACP_NL_TIMEOUT_MAX	3600000

/*
 * Errors of commands, in addition to those above:
 *	-ENOENT		no such job, limit, color
 *	-EINVAL		no such rank, node, or value out of range
 *	-EBUSY		PING: the maximum number is outstanding
 *	-EHOSTUNREACH	PING: no node of the job has that address
 *	-EDQUOT		PING: no memory for a flow, or the job has job_peers flows
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
	ACP_NL_A_TIMEOUT_MIN,	/* u32 ms: bounds of the time-outs of jobs that */
	ACP_NL_A_TIMEOUT_MAX,	/* u32 ms: start later */
	ACP_NL_A_TIMEOUT,	/* u32 ms: silence after which a node is lost; PING: time to wait */
	ACP_NL_A_SIZE,		/* u32 bytes of a probe's payload */

	/* of a node */
	ACP_NL_A_MACHINE_ENABLE,/* u32, 0 or 1: may ranks join anywhere? */
	ACP_NL_A_MODULE_VERSION,/* string */
	ACP_NL_A_ABI_VERSION,	/* u32, of /dev/acp */
	ACP_NL_A_PORT,		/* u32, UDP: default for jobs; of a job */
	ACP_NL_A_JOBS,		/* u32, including lingering ones */
	ACP_NL_A_RANKS,		/* u32, joined and not left; on this node, of this job */
	ACP_NL_A_FLOWS,		/* u32 */
	ACP_NL_A_USERS,		/* u32, with jobs on this node */

	/* of a limit */
	ACP_NL_A_TEXT,		/* string, description */
	ACP_NL_A_MACHINE_VALUE,	/* u64, applies in addition; user_...: over all namespaces */
	ACP_NL_A_LIMIT_MIN,		/* u64, minimum of VALUE */
	ACP_NL_A_LIMIT_MAX,		/* u64, maximum of VALUE */
	ACP_NL_A_USED,		/* u64 */

	/* of a color */
	ACP_NL_A_IFINDEX,	/* u32 */

	/* of a job */
	ACP_NL_A_UID,		/* u32, as seen by the user namespace of the network namespace */
	ACP_NL_A_JOB_STATE,	/* u32, enum acp_nl_job_state */
	ACP_NL_A_NPROCS,	/* u32 ranks in all */
	ACP_NL_A_NODES,		/* u32 */
	ACP_NL_A_ME,		/* u32, number of this node */
	ACP_NL_A_COLORS,	/* u32 */
	ACP_NL_A_FAMILY,	/* u32, AF_INET or AF_INET6 */
	ACP_NL_A_INTEGRITY,	/* u32, ACP_INTEGRITY_ of acp_abi.h */
	ACP_NL_A_OPEN_TIMEOUT,	/* u32 ms, time-out before the first answer of a node */
	ACP_NL_A_PLACED,	/* u32 ranks placed on this node */
	ACP_NL_A_BARRIERS,	/* u64 completed */
	ACP_NL_A_BROKEN,	/* flag: no further barrier can complete */
	ACP_NL_A_ABORTED,	/* flag */
	ACP_NL_A_MISMATCHED,	/* u32, node whose settings of the job differ */
	ACP_NL_A_AGE,		/* u64 ms since it began on this node */
	ACP_NL_A_MEMORY,	/* u64 bytes charged to its user: ranks, regions, flows */

	/* of a rank */
	ACP_NL_A_RANK_STATE,	/* u32, ACP_RANK_ of acp_abi.h */
	ACP_NL_A_STATUS,	/* u32, ACP_ST_ of acp_abi.h: reason of the loss */
	ACP_NL_A_PID,		/* u32, if it exists in the reader's pid namespace */
	ACP_NL_A_DEPTH,		/* u32 entries of its ring */
	ACP_NL_A_TAKEN,		/* u64 commands */
	ACP_NL_A_COMPLETED,	/* u64, of these, including failed ones */
	ACP_NL_A_FAILED,	/* u64 */
	ACP_NL_A_IN_FLIGHT,	/* u32 commands; of a flow: frames */
	ACP_NL_A_STARTER,	/* u64 bytes */
	ACP_NL_A_HEAP,		/* u64 bytes */
	ACP_NL_A_REGIONS,	/* u32 registered */
	ACP_NL_A_BARRIER,	/* u64, number of the barrier in which it waits */
	ACP_NL_A_FINISHED,	/* flag: it has passed a final barrier */

	/* of a region */
	ACP_NL_A_STAG,		/* u32 */
	ACP_NL_A_KEY,		/* u64, global address of offset 0 */
	ACP_NL_A_ACCESS,	/* u32, ACP_ACCESS_ of acp_abi.h */
	ACP_NL_A_KIND,		/* u32, enum acp_nl_region_kind */
	ACP_NL_A_START,		/* u64, virtual address in its process, of registered regions */
	ACP_NL_A_LENGTH,	/* u64 bytes */
	ACP_NL_A_PAGES,		/* u64, of the page size of the machine */
	ACP_NL_A_REGISTRATIONS,	/* u32, number of registrations */
	ACP_NL_A_REVOKED,	/* flag: its mapping was removed */

	/* of a flow: counters since its job began on this node */
	ACP_NL_A_FLOW_STATE,	/* u32, enum acp_nl_flow_state */
	ACP_NL_A_FLOW_FATE,	/* u32, enum acp_nl_flow_fate */
	ACP_NL_A_SRTT,		/* u64 ns, smoothed round-trip time, 0: not measured yet */
	ACP_NL_A_RTTVAR,	/* u64 ns */
	ACP_NL_A_RTT_MIN,	/* u64 ns, 0: not measured yet */
	ACP_NL_A_RTO,		/* u64 ns, retransmission time-out */
	ACP_NL_A_WINDOW,	/* u32 frames that may be in flight */
	ACP_NL_A_WAITING,	/* u32 messages or transfers not yet fully cut; 4096: or more */
	ACP_NL_A_MTU,		/* u32 bytes of a datagram's payload */
	ACP_NL_A_TX_FRAMES,	/* u64, including retransmissions, ACKs and HELLOs */
	ACP_NL_A_TX_BYTES,	/* u64, of these: UDP payload */
	ACP_NL_A_TX_RETRANSMITS,	/* u64, of these: retransmissions */
	ACP_NL_A_RX_FRAMES,	/* u64, authentic ones, including duplicates */
	ACP_NL_A_RX_BYTES,	/* u64, of these: UDP payload */
	ACP_NL_A_RX_DUPLICATES,	/* u64, of these: received before */
	ACP_NL_A_TIMEOUTS,	/* u64 */
	ACP_NL_A_DELEGATED,	/* u32 commands of that node in flight here */
	ACP_NL_A_IDLE,		/* u64 ms since the last transmission or request */

	/* of a ping */
	ACP_NL_A_RTT,		/* u64 ns */
	ACP_NL_A_OPENED,	/* flag: the flow was not open, RTT includes the opening */
	ACP_NL_A_ERROR,		/* u32, errno: ETIMEDOUT, or reason of the failure of the flow */

	/* of an event */
	ACP_NL_A_EVENT,		/* u32, enum acp_nl_event */
	ACP_NL_A_TIME,		/* u64 ns since 1970 */

	/* of a rank */
	ACP_NL_A_QUEUES,	/* u32, including attached ones; counters are sums over all */

	__ACP_NL_A_MAX,
	ACP_NL_A_MAX = __ACP_NL_A_MAX - 1
};

enum acp_nl_job_state {
	ACP_NL_JOB_RUNNING	= 1,	/* it has ranks on this node */
	ACP_NL_JOB_LINGERING	= 2,	/* it has none, and may have to retransmit frames */
	ACP_NL_JOB_ABORTED	= 3,	/* it was ended, and still has ranks on this node */
};

enum acp_nl_region_kind {
	ACP_NL_REGION_STARTER	= 1,
	ACP_NL_REGION_HEAP	= 2,
	ACP_NL_REGION_LIBRARY	= 3,	/* a page for internal use of the library */
	ACP_NL_REGION_USER	= 4,	/* registered */
};

enum acp_nl_flow_state {
	ACP_NL_FLOW_CLOSED	= 1,	/* never used, or failed and not used again yet */
	ACP_NL_FLOW_OPENING	= 2,
	ACP_NL_FLOW_OPEN	= 3,
};

enum acp_nl_flow_fate {
	ACP_NL_FATE_NONE	= 1,	/* it never failed */
	ACP_NL_FATE_LOST	= 2,	/* it failed (STATUS), and has not opened since */
	ACP_NL_FATE_BACK	= 3,	/* it failed (STATUS), and has opened again */
};

enum acp_nl_event {
	ACP_NL_EVENT_JOB_BEGUN	= 1,	/* its first rank has joined on this node */
	ACP_NL_EVENT_JOB_ENDED	= 2,	/* it no longer exists on this node */
	ACP_NL_EVENT_JOB_ABORTED = 3,
	ACP_NL_EVENT_RANK_JOINED = 4,
	ACP_NL_EVENT_RANK_LEFT	= 5,	/* FINISHED: after a final barrier; its regions are free */
	ACP_NL_EVENT_NODE_LOST	= 6,
	ACP_NL_EVENT_NODE_BACK	= 7,
	ACP_NL_EVENT_LIMIT_REACHED = 8,	/* a call was refused, or a flow not created */
	ACP_NL_EVENT_SETTING	= 9,	/* NODE_SET, LIMIT_SET, COLOR_ADD, COLOR_DEL */
};

#endif /* ACP_NL_H */
