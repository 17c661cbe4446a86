/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks of a received frame before its messages are processed.  Softirq. */
#ifndef ACP_RX_H
#define ACP_RX_H

#include "udp.h"

/*
 * The verdict of a control group's BPF programs on a GSO batch.  They see the batch once, as one
 * datagram, whatever becomes of its frames, so that they count no frame twice.
 */
struct acp_verdict {
	struct sk_buff *skb;		/* the batch */
	const struct acp_job *job;	/* whose programs ran last, or NULL */
	bool admitted;			/* their verdict */
};

/*
 * Check a frame, which begins at its header, and give it to its peer; or drop and count it.  Takes
 * the skb.  @known: early demultiplexing has found the socket.  @batch: the GSO batch that the
 * frame was copied from, or NULL.
 */
void acp_rx_take(struct acp_socket *socket, struct sk_buff *skb, bool known,
		 struct acp_verdict *batch);

/* Count a frame with an invalid header. */
void acp_rx_bad_header(struct acp_node *node, enum acp_frame_error error,
		       const struct sk_buff *skb);

/*
 * Return the job of a frame of a batch, with its sender in *@peer (NULL if not known yet).  Return
 * NULL if there is no such job, the source is wrong, or a BPF program refused the frame; that was
 * counted.
 */
struct acp_job *acp_rx_job(struct acp_socket *socket, struct acp_verdict *batch,
			   const struct acp_frame *f, struct acp_peer **peer);

/*
 * Is the tag of a frame right?  @h: everything that the tag covers; of a BULK frame, what precedes
 * the payload, which begins at @at in the skb.
 */
bool acp_rx_tag_right(const struct acp_job *job, const struct acp_frame_hdr *h,
		      const struct acp_frame *f, const struct sk_buff *skb, struct acp_bytes at);

/*
 * Is the checksum of a BULK frame right, if the job or the frame requires one?  @h: what precedes
 * the payload; the frame begins at @at in the skb.  A wrong checksum was counted.
 */
bool acp_rx_bulk_right(struct acp_job *job, struct sk_buff *skb, u32 at,
		       const struct acp_frame_hdr *h, const struct acp_frame *f);

#endif /* ACP_RX_H */
