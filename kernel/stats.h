/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters of a node, one set per CPU: one per event, and one per reason for dropping a frame.
 * /proc/net/acp of the network namespace shows them.
 */
#ifndef ACP_STATS_H
#define ACP_STATS_H

#include <linux/percpu.h>
#include <linux/types.h>

/* name, meaning */
#define ACP_STATS(X)							\
	X(commands, "commands taken from rings")			\
	X(commands_failed, "of these, ended with an error")		\
	X(commands_retried, "times that commands started again, since a buffer was full") \
	X(words_checked, "looks at words that commands wait for")	\
	X(words_lost, "commands that ended since a rank was lost that writes to their word") \
	X(words_revoked, "words revoked, since a command failed that others wait for") \
	X(delegated, "commands executed for other nodes")		\
	X(local, "commands with both ends on this node")		\
	X(messages_matched, "messages that went to a posted receive")	\
	X(messages_kept, "messages that no posted receive matched")	\
	X(messages_asked, "messages whose sender asked for a receive first")	\
	X(fenced, "commands ordered by a fence, not by waiting")	\
	X(doorbells, "system calls that processed a ring")		\
	X(doorbells_cut, "times that their budget ended and they began another") \
	X(poller_wakeups, "times the poller was woken")			\
	X(rounds, "poll rounds in softirq that took commands from rings")	\
	X(rounds_cut, "of these, those that their budget ended") \
	X(rounds_commands, "commands that rounds took or started")	\
	X(worker_wakeups, "times a rank's worker was woken")		\
	X(tx_frames, "frames sent, repetitions and HELLOs included")	\
	X(tx_acks, "frames sent for their acknowledgement alone")	\
	X(tx_direct, "datagrams that went past steps of the network stack") \
	X(tx_burst, "pieces of long copies that were built together")	\
	X(tx_retransmits, "frames sent again")				\
	X(tx_errors, "frames the network stack refused")		\
	X(tx_neighbour, "frames without room for their next hop in the neighbour table") \
	X(tx_nomem, "frames not sent for lack of memory")		\
	X(narrowed, "times that a path swallowed what its MTU allows")	\
	X(rx_frames, "frames accepted")					\
	X(rx_direct, "datagrams that came past steps of the network stack") \
	X(rx_burst, "pieces of long copies that were applied together") \
	X(rx_held, "fenced frames that had to wait")			\
	X(rx_held_goes, "times that the rest of them was left for later")	\
	X(rx_marked, "frames that the network has marked (ECN)")	\
	X(timeouts, "retransmission time-outs")				\
	X(timeouts_wrong, "series of spurious time-outs: the peer or the path stalled") \
	X(window_marks, "times marks made a window smaller")		\
	X(flows_opened, "flows opened")					\
	X(flows_failed, "flows whose peer was silent too long")		\
	X(flows_restarted, "flows whose peer began anew")		\
	X(drop_bad_len, "length field and datagram differ")		\
	X(drop_bad_version, "unknown version")				\
	X(drop_bad_type, "unknown frame type")				\
	X(drop_bad_flags, "unknown flags, reserved fields in use")	\
	X(drop_no_job, "no such job here")				\
	X(drop_bad_source, "not from the address of the node it claims")\
	X(drop_denied, "a BPF program of the job's control group refused it")	\
	X(drop_bad_mac, "the tag is wrong")				\
	X(drop_bad_crc, "the payload's checksum is wrong or missing")	\
	X(drop_bad_aead, "the body is not what was encrypted")		\
	X(drop_bad_epoch, "another incarnation of the flow: replay or restart")\
	X(drop_bad_ack, "acknowledges what was never sent")		\
	X(drop_bad_msg, "malformed message")				\
	X(drop_duplicate, "received before")				\
	X(drop_future, "beyond the window")				\
	X(drop_held_full, "fenced, and too many are waiting")		\
	X(drop_busy, "limit of delegated commands reached")		\
	X(drop_nomem, "no memory to handle it")				\
	X(drop_mismatch, "the peer runs another set-up of the job")	\
	X(stray_done, "answers to commands that have ended")		\
	X(registrations, "registrations of memory")			\
	X(register_steps, "regions looked at for them: some two per doubling of what there are") \
	X(limit_calls, "calls refused since a limit of net.acp is reached")	\
	X(limit_memlock, "calls refused since RLIMIT_MEMLOCK is reached")	\
	X(limit_peers, "flows not made since the job has job_peers of them")

enum acp_stat {
#define ACP_STAT_ENUM(name, text) ACP_STAT_##name,
	ACP_STATS(ACP_STAT_ENUM)
#undef ACP_STAT_ENUM
	ACP_STAT_COUNT
};

struct acp_stats {
	u64 v[ACP_STAT_COUNT];
	u64 changes;	/* changes of jobs, ranks, regions, flows and colors, for dumps */
};

#define acp_stat_inc(node, name) this_cpu_inc((node)->stats->v[ACP_STAT_##name])
#define acp_stat_add(node, name, n) this_cpu_add((node)->stats->v[ACP_STAT_##name], n)

/* Count that an object which dumps show was added or removed. */
#define acp_changed(node) this_cpu_inc((node)->stats->changes)

#endif /* ACP_STATS_H */
