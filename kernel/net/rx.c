// SPDX-License-Identifier: GPL-2.0-only
/* Checks of a received frame before its messages are processed: see rx.h. */
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/udp.h>
#include "../drop.h"
#include "../trace.h"
#include "crc.h"
#include "demux.h"
#include "payload.h"
#include "rx.h"
#include "sender.h"
#include "wrong_key.h"

/* Was it sent to our address of that color, from the job's port at address @from? */
static inline bool comes_from(const struct acp_job *job, const struct acp_socket *socket,
			      const struct sk_buff *skb, u32 color, const u8 *from)
{
	if (job->sockets[color] != socket || udp_hdr(skb)->source != htons(job->port))
		return false;
	if (job->family == AF_INET)
		return skb->protocol == htons(ETH_P_IP) &&
		       !memcmp(&ip_hdr(skb)->saddr, from, 4);
	return skb->protocol == htons(ETH_P_IPV6) && !memcmp(&ipv6_hdr(skb)->saddr, from, 16);
}

/* Does the datagram come from the node it claims?  *@peer: that node, or NULL if unknown. */
static bool source_ok(struct acp_job *job, struct acp_socket *socket, const struct sk_buff *skb,
		      const struct acp_frame *f, struct acp_peer **peer)
{
	u8 addr[16];

	if (f->color >= job->colors || f->node >= job->nodes || f->node == job->me)
		return false;
	*peer = acp_peer_find(job, f->node, f->color);
	if (!*peer)
		acp_job_address(job, f->node, f->color, addr);
	return comes_from(job, socket, skb, f->color, *peer ? (*peer)->addr : addr);
}

static u32 skb_crc(struct sk_buff *skb, u32 from, u32 to)
{
	struct skb_seq_state state;
	u32 crc = ~0u, at = 0, n;
	const u8 *p;

	skb_prepare_seq_read(skb, from, to, &state);
	while ((n = skb_seq_read(at, &p, &state))) {
		n = min(n, to - from - at);	/* the block may extend past @to */
		crc = acp_crc32c(crc, p, n);
		at += n;
	}
	return ~crc;
}

/*
 * Is the checksum of a BULK frame's payload right?  The frame's message has the payload's length.
 */
static bool payload_right(struct sk_buff *skb, u32 at, const struct acp_frame_hdr *h,
			  const struct acp_frame *f, u32 crc)
{
	const struct acp_msg_data *m = (const void *)(h + 1);
	u32 tagged = acp_frame_tagged(f), length = be32_to_cpu(m->h.length);

	return (f->flags & ACP_FRAME_CRC) && length <= acp_frame_size(f) - tagged &&
	       skb_crc(skb, at + tagged, at + tagged + length) == crc;
}

/*
 * In a job whose long payloads have only UDP's checksum: is there one?  Over IPv4, UDP itself
 * accepts datagrams without.  A datagram that was never on a wire has only the pseudo-header's sum,
 * which may be 0.
 */
static bool is_summed(const struct acp_job *job, const struct sk_buff *skb)
{
	return job->integrity != ACP_INTEGRITY_UDP || udp_hdr(skb)->check ||
	       skb->ip_summed == CHECKSUM_PARTIAL;
}

bool acp_rx_bulk_right(struct acp_job *job, struct sk_buff *skb, u32 at,
		       const struct acp_frame_hdr *h, const struct acp_frame *f)
{
	u32 crc = 0;

	if ((f->flags & ACP_FRAME_CRC) && !acp_frame_crc(h, &crc)) {
		acp_drop(job->node, skb, f, ACP_STAT_drop_bad_flags);
		return false;
	}
	if (is_summed(job, skb) &&
	    (job->integrity != ACP_INTEGRITY_CRC32C || payload_right(skb, at, h, f, crc)))
		return true;
	acp_drop(job->node, skb, f, ACP_STAT_drop_bad_crc);
	return false;
}

/* Decrypt a frame that is linear and not shared. */
static bool opened(struct acp_job *job, struct acp_peer *peer, struct sk_buff *skb,
		   const struct acp_frame *f, u32 cipher)
{
	struct acp_secret unknown;
	int err;

	if (peer) {
		err = acp_aead_open(&peer->secret, skb->data, NULL, acp_frame_size(f));
		if (!err)
			acp_aead_heard(&peer->secret, cipher);
	} else {
		acp_aead_secret(&unknown, job, f->node, f->color);
		err = acp_aead_open(&unknown, skb->data, NULL, acp_frame_size(f));
		memzero_explicit(&unknown, sizeof(unknown));
	}
	if (err)
		acp_drop(job->node, skb, f, err == -EBADMSG ? ACP_STAT_drop_bad_aead :
							      ACP_STAT_drop_nomem);
	return !err;
}

/*
 * Is a frame encrypted as the job requires, and authentic?  Decrypts it.  If only one of frame and
 * job is encrypted, a HELLO is accepted on the strength of its tag: its sender runs another set-up
 * of the job, and the caller need not know more.
 */
static noinline bool encrypted_right(struct acp_job *job, struct acp_peer *peer,
				     struct sk_buff *skb, const struct acp_frame *f)
{
	bool aead = f->flags & ACP_FRAME_AEAD;
	u32 cipher;

	/* A frame of an unknown sender is of no use unless it is a HELLO: do not decrypt it. */
	if (!peer && f->type != ACP_FRAME_HELLO) {
		acp_drop(job->node, skb, f, ACP_STAT_drop_bad_epoch);
		return false;
	}
	if (aead != acp_job_encrypted(job)) {
		/* Only the body's beginning will be read, which must be linear, too. */
		if (f->type == ACP_FRAME_HELLO && pskb_may_pull(skb, acp_frame_body(f)))
			return true;
		acp_drop(job->node, skb, f, ACP_STAT_drop_bad_flags);
		return false;
	}
	if (skb->len > ACP_MTU_MAX) {
		acp_drop(job->node, skb, f, ACP_STAT_drop_bad_len);
		return false;
	}
	if (skb_ensure_writable(skb, skb->len)) {
		acp_drop(job->node, skb, f, ACP_STAT_drop_nomem);
		return false;
	}
	if (!acp_frame_nonce(skb->data, &cipher)) {
		acp_drop(job->node, skb, f, ACP_STAT_drop_bad_flags);
		return false;
	}
	return opened(job, peer, skb, f, cipher);
}

bool acp_rx_tag_right(const struct acp_job *job, const struct acp_frame_hdr *h,
		      const struct acp_frame *f, const struct sk_buff *skb, struct acp_bytes at)
{
	if (acp_payload_tagged(job, f))
		return acp_payload_tag(job, h, f, skb, at) == be64_to_cpu(h->tag);
	return acp_udp_tag_of(job, h, f) == be64_to_cpu(h->tag);
}

static void bad_mac(struct acp_job *job, const struct sk_buff *skb, const struct acp_frame *f)
{
	acp_drop(job->node, skb, f, ACP_STAT_drop_bad_mac);
	acp_wrong_key_add(job, f->node, f->color);
}

/*
 * Copy what others may write to: to the head of the skb, or to pages if the frame is longer than
 * any that the module sends, because so large a head can rarely be allocated.
 */
static noinline bool copied(struct sk_buff *skb)
{
	struct sk_buff *part;

	if (skb->len <= ACP_MTU_MAX)
		return pskb_may_pull(skb, skb->len);
	if (skb_copy_ubufs(skb, GFP_ATOMIC | __GFP_NOWARN))
		return false;
	skb_walk_frags(skb, part)
		if (skb_copy_ubufs(part, GFP_ATOMIC | __GFP_NOWARN))
			return false;
	return true;
}

/*
 * Check tag and checksum.  Make the skb linear, except for a long payload that nobody else may
 * write to.
 */
static bool authentic(struct acp_job *job, struct acp_peer *peer, struct sk_buff *skb,
		      const struct acp_frame *f)
{
	bool shared = acp_payload_shared(job, f, skb);
	const struct acp_frame_hdr *h;

	if (!pskb_may_pull(skb, acp_frame_tagged(f)) || (unlikely(shared) && !copied(skb))) {
		acp_drop(job->node, skb, f, ACP_STAT_drop_nomem);
		return false;
	}
	h = (const struct acp_frame_hdr *)skb->data;
	if (!acp_rx_tag_right(job, h, f, skb, acp_bytes_behind(skb, acp_frame_tagged(f)))) {
		bad_mac(job, skb, f);
		return false;
	}
	if (unlikely((u32)acp_job_encrypted(job) | (f->flags & ACP_FRAME_AEAD)))
		return encrypted_right(job, peer, skb, f);
	return !(f->flags & ACP_FRAME_BULK) || acp_rx_bulk_right(job, skb, 0, h, f);
}

void acp_rx_bad_header(struct acp_node *node, enum acp_frame_error error,
		       const struct sk_buff *skb)
{
	switch (error) {
	case ACP_FRAME_OK:
		break;
	case ACP_FRAME_BAD_LEN:
		acp_drop(node, skb, NULL, ACP_STAT_drop_bad_len);
		break;
	case ACP_FRAME_BAD_VERSION:
		acp_drop(node, skb, NULL, ACP_STAT_drop_bad_version);
		break;
	case ACP_FRAME_BAD_TYPE:
		acp_drop(node, skb, NULL, ACP_STAT_drop_bad_type);
		break;
	case ACP_FRAME_BAD_FLAGS:
		acp_drop(node, skb, NULL, ACP_STAT_drop_bad_flags);
		break;
	}
}

/* Return the programs' verdict on the batch, which they see as a whole, once per job. */
static noinline bool batch_admitted(struct acp_verdict *batch, const struct acp_job *job)
{
	if (batch->job != job) {
		batch->job = job;
		batch->admitted = acp_sender_admits(job, batch->skb);
	}
	return batch->admitted;
}

/* Do BPF programs of the job's control group accept the frame?  @batch: its GSO batch, or NULL. */
static inline bool is_admitted(const struct acp_job *job, struct sk_buff *skb,
			       const struct acp_frame *f, struct acp_verdict *batch)
{
	if (likely(unlikely(batch) ? batch_admitted(batch, job) : acp_sender_admits(job, skb)))
		return true;
	acp_drop(job->node, skb, f, ACP_STAT_drop_denied);
	return false;
}

/*
 * Return the job of a frame; NULL if there is none, the source is wrong, or a program refuses the
 * frame.  *@peer: as above.
 */
static __always_inline struct acp_job *job_of(struct acp_socket *socket, struct sk_buff *skb,
					      const struct acp_frame *f, struct acp_peer **peer,
					      struct acp_verdict *batch)
{
	struct acp_node *node = socket->node;
	struct acp_job *job = acp_job_find(node, f->job, f->generation);

	if (!job) {
		acp_drop(node, skb, f, ACP_STAT_drop_no_job);
		return NULL;
	}
	if (!source_ok(job, socket, skb, f, peer)) {
		acp_drop(node, skb, f, ACP_STAT_drop_bad_source);
		return NULL;
	}
	return is_admitted(job, skb, f, batch) ? job : NULL;
}

struct acp_job *acp_rx_job(struct acp_socket *socket, struct acp_verdict *batch,
			   const struct acp_frame *f, struct acp_peer **peer)
{
	return job_of(socket, batch->skb, f, peer, batch);
}

/* Return a new peer for a HELLO of an unknown sender.  Drop all other frames of unknown senders. */
static struct acp_peer *new_peer(struct acp_job *job, const struct acp_frame *f)
{
	struct acp_peer *peer;

	if (f->type != ACP_FRAME_HELLO) {
		acp_drop(job->node, NULL, f, ACP_STAT_drop_bad_epoch);
		return NULL;
	}
	peer = acp_peer_get(job, f->node, f->color);
	if (!peer)
		acp_drop(job->node, NULL, f, READ_ONCE(job->dead) ? ACP_STAT_drop_no_job :
								    ACP_STAT_drop_nomem);
	return peer;
}

/* Does the tag cover the whole frame, and is none of it encrypted? */
static bool is_plain(const struct acp_job *job, const struct acp_frame *f)
{
	return !((u32)acp_job_encrypted(job) | (f->flags & (ACP_FRAME_BULK | ACP_FRAME_AEAD)));
}

/*
 * Remember a valid plain frame for header prediction: frames with such headers need fewer checks.
 */
static void remember(struct acp_job *job, struct acp_peer *peer, const struct acp_frame_hdr *h,
		     const struct acp_frame *f)
{
	struct acp_predicted *p = acp_udp_predicted(job, h);

	if (!acp_tag_begins(&p->start, &h->version))
		return;
	p->peer = peer;
	p->size = acp_frame_size(f);
	p->frame = *f;
}

/* Return the prediction for the frame's header; NULL: the frame needs all checks. */
static inline const struct acp_predicted *remembered(const struct acp_socket *socket,
						     const struct sk_buff *skb)
{
	const struct acp_frame_hdr *h = (const struct acp_frame_hdr *)skb->data;
	struct acp_job *job = acp_job_find(socket->node, be32_to_cpu(h->job),
					   be16_to_cpu(h->generation));
	const struct acp_predicted *p;

	if (!job)
		return NULL;
	p = acp_udp_predicted(job, h);
	if (!p->peer || !acp_tag_begins(&p->start, &h->version) ||
	    skb->len != p->size || skb->data_len || !h->seq != !p->frame.seq ||
	    !comes_from(job, socket, skb, p->frame.color, p->peer->addr))
		return NULL;
	return p;
}

/*
 * Return the sender of a frame with a predicted header, or NULL if a program refuses the frame or
 * its tag is wrong.
 */
static inline struct acp_peer *check_tag(const struct acp_predicted *p, struct sk_buff *skb,
					 struct acp_frame *f, struct acp_verdict *batch)
{
	const struct acp_frame_hdr *h = (const struct acp_frame_hdr *)skb->data;

	*f = p->frame;
	f->seq = be64_to_cpu(h->seq);
	f->ack = be64_to_cpu(h->ack);
	if (unlikely(!is_admitted(p->peer->job, skb, f, batch)))
		return NULL;
	if (likely(acp_tag(&p->start, &h->version, p->size - sizeof(h->tag)) ==
		   be64_to_cpu(h->tag)))
		return p->peer;
	bad_mac(p->peer->job, skb, f);
	return NULL;
}

/* Do all checks.  Return the sender of a valid frame, or NULL. */
static noinline struct acp_peer *check(struct acp_socket *socket, struct sk_buff *skb,
				       struct acp_frame *f, struct acp_verdict *batch)
{
	enum acp_frame_error error = ACP_FRAME_BAD_LEN;
	struct acp_peer *peer;
	struct acp_job *job;

	if (skb_headlen(skb) >= sizeof(struct acp_frame_hdr))
		error = acp_frame_decode(f, (struct acp_frame_hdr *)skb->data, skb->len);
	if (!error && acp_frame_tagged(f) > ACP_MTU_MAX)
		error = ACP_FRAME_BAD_LEN;	/* nobody sends it: no memory for unknown senders */
	if (error) {
		acp_rx_bad_header(socket->node, error, skb);
		return NULL;
	}
	job = job_of(socket, skb, f, &peer, batch);
	if (!job || !authentic(job, peer, skb, f))
		return NULL;
	if (!peer)
		return new_peer(job, f);
	if (is_plain(job, f))
		remember(job, peer, (struct acp_frame_hdr *)skb->data, f);
	return peer;
}

void acp_rx_take(struct acp_socket *socket, struct sk_buff *skb, bool known,
		 struct acp_verdict *batch)
{
	const struct acp_predicted *p = NULL;
	struct acp_frame f acp_uncleared;
	struct acp_peer *peer;

	if (pskb_may_pull(skb, sizeof(struct acp_frame_hdr)))
		p = remembered(socket, skb);
	peer = p ? check_tag(p, skb, &f, batch) : check(socket, skb, &f, batch);
	if (!peer) {
		kfree_skb(skb);
		return;
	}
	trace_acp_receive(peer, &f);
	if (!known)
		acp_demux_learn(peer->job, socket->sock->sk, skb);
	__skb_pull(skb, acp_frame_body(&f));
	acp_frame_note(skb, &f, skb->data, acp_frame_covered(&f));
	acp_frame_cb(skb)->at = acp_bytes_first(skb);
	acp_frame_cb(skb)->size = 0;
	acp_peer_frame(peer, skb, &f);
}
