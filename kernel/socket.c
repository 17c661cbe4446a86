// SPDX-License-Identifier: GPL-2.0-only
/*
 * The UDP transport, what comes in: sockets, and who may speak through them;
 * see udp.h.  What goes out is in udp.c.
 *
 * Receiving happens in the socket's encapsulation hook, in softirq, straight
 * into memory; nothing is queued.
 */
#include <linux/crc32.h>
#include <linux/ipv6.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/udp.h>
#include <net/udp_tunnel.h>
#include "demux.h"
#include "node.h"
#include "trace.h"
#include "train.h"
#include "udp.h"

/* ---- datagrams in ---- */

/* Did it come to our address of that color, from the job's port at this address? */
static inline bool comes_from(const struct acp_job *job, const struct acp_socket *socket,
			      const struct sk_buff *skb, u32 color, const u8 *from)
{
	if (job->sockets[color] != socket || udp_hdr(skb)->source != htons(job->port))
		return false;
	if (job->family == AF_INET)
		return skb->protocol == htons(ETH_P_IP) &&
		       (__force u32)ip_hdr(skb)->saddr == get_unaligned((const u32 *)from);
	return skb->protocol == htons(ETH_P_IPV6) && !memcmp(&ipv6_hdr(skb)->saddr, from, 16);
}

/* Is the datagram from the node it claims to be from?  *peer: that node, or NULL if unknown. */
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
		n = min(n, to - from - at);	/* it may tell of bytes behind */
		crc = __crc32c_le(crc, p, n);
		at += n;
	}
	return ~crc;
}

/* The checksum of a bulk frame's payload, which its message says the length of. */
static bool payload_right(struct sk_buff *skb, u32 at, const struct acp_frame_hdr *h,
			  const struct acp_frame *f, u32 crc)
{
	const struct acp_msg_data *m = (const void *)(h + 1);
	u32 tagged = acp_frame_tagged(f), length = be32_to_cpu(m->h.length);

	return (f->flags & ACP_FRAME_CRC) && length <= acp_frame_size(f) - tagged &&
	       skb_crc(skb, at + tagged, at + tagged + length) == crc;
}

bool acp_udp_bulk_right(struct acp_job *job, struct sk_buff *skb, u32 at,
			const struct acp_frame_hdr *h, const struct acp_frame *f)
{
	u32 crc = 0;

	if ((f->flags & ACP_FRAME_CRC) && !acp_frame_crc(h, &crc)) {
		acp_stat_inc(job->node, drop_bad_flags);
		trace_acp_drop(job->node, skb, f, ACP_STAT_drop_bad_flags);
		return false;
	}
	if (job->integrity != ACP_INTEGRITY_CRC32C || payload_right(skb, at, h, f, crc))
		return true;
	acp_stat_inc(job->node, drop_bad_crc);
	trace_acp_drop(job->node, skb, f, ACP_STAT_drop_bad_crc);
	return false;
}

/* Decrypt a frame that is linear and ours alone. */
static bool opened(struct acp_job *job, const struct acp_peer *peer, struct sk_buff *skb,
		   const struct acp_frame *f)
{
	struct acp_secret unknown;
	int err;

	if (peer) {
		err = acp_aead_open(&peer->secret, skb->data, f->length);
	} else {
		acp_aead_secret(&unknown, job, f->node, f->color);
		err = acp_aead_open(&unknown, skb->data, f->length);
		memzero_explicit(&unknown, sizeof(unknown));
	}
	if (err == -EBADMSG)
		acp_stat_inc(job->node, drop_bad_aead);
	else if (err)
		acp_stat_inc(job->node, drop_nomem);
	if (err)
		trace_acp_drop(job->node, skb, f, err == -EBADMSG ? ACP_STAT_drop_bad_aead :
								    ACP_STAT_drop_nomem);
	return !err;
}

/*
 * Is a frame encrypted, as the job wants it, and right?  Decrypts it.  A HELLO
 * is let through by its tag if only one of both, frame and job, is encrypted:
 * its sender runs another set-up of the job, and that is all to know of it.
 */
static noinline bool sealed_right(struct acp_job *job, const struct acp_peer *peer,
				  struct sk_buff *skb, const struct acp_frame *f)
{
	bool aead = f->flags & ACP_FRAME_AEAD;

	/* Who does not know its sender has no use for it: not worth deciphering. */
	if (!peer && f->type != ACP_FRAME_HELLO) {
		acp_stat_inc(job->node, drop_bad_epoch);
		trace_acp_drop(job->node, skb, f, ACP_STAT_drop_bad_epoch);
		return false;
	}
	if (aead != acp_job_sealed(job)) {
		/* Its body is all that is looked at: where it begins must be linear, too. */
		if (f->type == ACP_FRAME_HELLO && pskb_may_pull(skb, acp_frame_body(f)))
			return true;
		acp_stat_inc(job->node, drop_bad_flags);
		trace_acp_drop(job->node, skb, f, ACP_STAT_drop_bad_flags);
		return false;
	}
	if (skb->len > ACP_MTU_MOST) {
		acp_stat_inc(job->node, drop_bad_len);
		trace_acp_drop(job->node, skb, f, ACP_STAT_drop_bad_len);
		return false;
	}
	if (skb_ensure_writable(skb, skb->len)) {
		acp_stat_inc(job->node, drop_nomem);
		trace_acp_drop(job->node, skb, f, ACP_STAT_drop_nomem);
		return false;
	}
	if (!acp_frame_seal(skb->data)) {
		acp_stat_inc(job->node, drop_bad_flags);
		trace_acp_drop(job->node, skb, f, ACP_STAT_drop_bad_flags);
		return false;
	}
	return opened(job, peer, skb, f);
}

bool acp_udp_tag_right(const struct acp_job *job, const struct acp_frame_hdr *h,
		       const struct acp_frame *f)
{
	return acp_udp_tag_of(job, h, f) == be64_to_cpu(h->tag);
}

static void bad_mac(struct acp_job *job, const struct sk_buff *skb, const struct acp_frame *f)
{
	acp_stat_inc(job->node, drop_bad_mac);
	trace_acp_drop(job->node, skb, f, ACP_STAT_drop_bad_mac);
}

/* Tag and checksum; makes the tagged part linear. */
static bool authentic(struct acp_job *job, const struct acp_peer *peer, struct sk_buff *skb,
		      const struct acp_frame *f)
{
	const struct acp_frame_hdr *h;

	if (!pskb_may_pull(skb, acp_frame_tagged(f))) {
		acp_stat_inc(job->node, drop_nomem);
		trace_acp_drop(job->node, skb, f, ACP_STAT_drop_nomem);
		return false;
	}
	h = (const struct acp_frame_hdr *)skb->data;
	if (!acp_udp_tag_right(job, h, f)) {
		bad_mac(job, skb, f);
		return false;
	}
	if (unlikely((u32)acp_job_sealed(job) | (f->flags & ACP_FRAME_AEAD)))
		return sealed_right(job, peer, skb, f);
	return !(f->flags & ACP_FRAME_BULK) || acp_udp_bulk_right(job, skb, 0, h, f);
}

void acp_udp_bad_header(struct acp_node *node, enum acp_frame_error error,
			const struct sk_buff *skb)
{
	switch (error) {
	case ACP_FRAME_OK:
		break;
	case ACP_FRAME_BAD_LEN:
		acp_stat_inc(node, drop_bad_len);
		trace_acp_drop(node, skb, NULL, ACP_STAT_drop_bad_len);
		break;
	case ACP_FRAME_BAD_VERSION:
		acp_stat_inc(node, drop_bad_version);
		trace_acp_drop(node, skb, NULL, ACP_STAT_drop_bad_version);
		break;
	case ACP_FRAME_BAD_TYPE:
		acp_stat_inc(node, drop_bad_type);
		trace_acp_drop(node, skb, NULL, ACP_STAT_drop_bad_type);
		break;
	case ACP_FRAME_BAD_FLAGS:
		acp_stat_inc(node, drop_bad_flags);
		trace_acp_drop(node, skb, NULL, ACP_STAT_drop_bad_flags);
		break;
	}
}

/* The job a frame belongs to, if it comes from where it should; *peer as above. */
static __always_inline struct acp_job *job_of(struct acp_socket *socket, const struct sk_buff *skb,
					      const struct acp_frame *f, struct acp_peer **peer)
{
	struct acp_node *node = socket->node;
	struct acp_job *job = acp_job_find(node, f->job, f->generation);

	if (!job) {
		acp_stat_inc(node, drop_no_job);
		trace_acp_drop(node, skb, f, ACP_STAT_drop_no_job);
		return NULL;
	}
	if (!source_ok(job, socket, skb, f, peer)) {
		acp_stat_inc(node, drop_bad_source);
		trace_acp_drop(node, skb, f, ACP_STAT_drop_bad_source);
		return NULL;
	}
	return job;
}

struct acp_job *acp_udp_job(struct acp_socket *socket, const struct sk_buff *skb,
			    const struct acp_frame *f, struct acp_peer **peer)
{
	return job_of(socket, skb, f, peer);
}

/* Whose frame is not dropped though its sender is unknown: who says hello. */
static struct acp_peer *new_peer(struct acp_job *job, const struct acp_frame *f)
{
	struct acp_peer *peer;

	if (f->type != ACP_FRAME_HELLO) {
		acp_stat_inc(job->node, drop_bad_epoch);
		trace_acp_drop(job->node, NULL, f, ACP_STAT_drop_bad_epoch);
		return NULL;
	}
	peer = acp_peer_get(job, f->node, f->color);
	if (!peer && READ_ONCE(job->dead)) {
		acp_stat_inc(job->node, drop_no_job);
		trace_acp_drop(job->node, NULL, f, ACP_STAT_drop_no_job);
	} else if (!peer) {
		acp_stat_inc(job->node, drop_nomem);
		trace_acp_drop(job->node, NULL, f, ACP_STAT_drop_nomem);
	}
	return peer;
}

/* Does the tag cover all of it, and is none of it encrypted? */
static bool is_plain(const struct acp_job *job, const struct acp_frame *f)
{
	return !((u32)acp_job_sealed(job) | (f->flags & (ACP_FRAME_BULK | ACP_FRAME_AEAD)));
}

/* A plain frame that is right in every way: others of its kind need not be looked at so closely. */
static void remember(struct acp_job *job, struct acp_peer *peer, const struct acp_frame_hdr *h,
		     const struct acp_frame *f)
{
	struct acp_kind *kind = acp_udp_kind(job, h);

	if (!acp_tag_begins(&kind->start, &h->version))
		return;
	kind->peer = peer;
	kind->size = acp_frame_size(f);
	kind->frame = *f;
}

/* The kind of a frame, if one of it came that was right; NULL: it must be looked at closely. */
static inline const struct acp_kind *remembered(const struct acp_socket *socket,
						const struct sk_buff *skb)
{
	const struct acp_frame_hdr *h = (const struct acp_frame_hdr *)skb->data;
	struct acp_job *job = acp_job_find(socket->node, be32_to_cpu(h->job),
					   be16_to_cpu(h->generation));
	const struct acp_kind *kind;

	if (!job)
		return NULL;
	kind = acp_udp_kind(job, h);
	if (!kind->peer || !acp_tag_begins(&kind->start, &h->version) ||
	    skb->len != kind->size || skb->data_len || !h->seq != !kind->frame.seq ||
	    !comes_from(job, socket, skb, kind->frame.color, kind->peer->addr))
		return NULL;
	return kind;
}

/* A frame of that kind: its sender, if its tag is right, or NULL. */
static inline struct acp_peer *check_tag(const struct acp_kind *kind, const struct sk_buff *skb,
					 struct acp_frame *f)
{
	const struct acp_frame_hdr *h = (const struct acp_frame_hdr *)skb->data;

	*f = kind->frame;
	f->seq = be64_to_cpu(h->seq);
	f->ack = be64_to_cpu(h->ack);
	if (likely(acp_tag(&kind->start, &h->version, kind->size - sizeof(h->tag)) ==
		   be64_to_cpu(h->tag)))
		return kind->peer;
	bad_mac(kind->peer->job, skb, f);
	return NULL;
}

/* Look closely: the sender of a frame that is right in every way, or NULL. */
static noinline struct acp_peer *check(struct acp_socket *socket, struct sk_buff *skb,
				       struct acp_frame *f)
{
	enum acp_frame_error error = ACP_FRAME_BAD_LEN;
	struct acp_peer *peer;
	struct acp_job *job;

	if (skb_headlen(skb) >= sizeof(struct acp_frame_hdr))
		error = acp_frame_decode(f, (struct acp_frame_hdr *)skb->data, skb->len);
	if (!error && acp_frame_tagged(f) > ACP_MTU_MOST)
		error = ACP_FRAME_BAD_LEN;	/* nobody sends it: no memory for strangers */
	if (error) {
		acp_udp_bad_header(socket->node, error, skb);
		return NULL;
	}
	job = job_of(socket, skb, f, &peer);
	if (!job || !authentic(job, peer, skb, f))
		return NULL;
	if (!peer)
		return new_peer(job, f);
	if (is_plain(job, f))
		remember(job, peer, (struct acp_frame_hdr *)skb->data, f);
	return peer;
}

/* A frame, from its header on; known: early demultiplexing has found the socket.  Takes it. */
static void take(struct acp_socket *socket, struct sk_buff *skb, bool known)
{
	const struct acp_kind *kind = NULL;
	struct acp_frame f acp_uncleared;
	struct acp_peer *peer;

	if (pskb_may_pull(skb, sizeof(struct acp_frame_hdr)))
		kind = remembered(socket, skb);
	peer = kind ? check_tag(kind, skb, &f) : check(socket, skb, &f);
	if (!peer) {
		kfree_skb(skb);
		return;
	}
	trace_acp_receive(peer, &f);
	if (!known)
		acp_demux_learn(socket->node, socket->sock->sk, skb);
	__skb_pull(skb, acp_frame_body(&f));
	acp_frame_note(skb, &f, skb->data, acp_frame_covered(&f));
	acp_frame_cb(skb)->at = acp_bytes_first(skb);
	acp_frame_cb(skb)->size = 0;
	acp_peer_frame(peer, skb, &f);
}

void acp_udp_take(struct acp_socket *socket, struct sk_buff *skb)
{
	take(socket, skb, false);
}

/* A datagram came, or several, from the UDP header on.  Softirq, RCU read side.  Takes it. */
static void receive(struct sock *sk, struct sk_buff *skb, bool known)
{
	struct acp_socket *socket = rcu_dereference_sk_user_data(sk);

	if (!socket) {
		kfree_skb(skb);
		return;
	}
	if (known)
		acp_stat_inc(socket->node, rx_direct);
	__skb_pull(skb, sizeof(struct udphdr));
	if (skb_is_gso(skb))
		acp_train_received(socket->node, socket, skb);
	else
		take(socket, skb, known);
}

static void receive_known(struct sock *sk, struct sk_buff *skb)
{
	receive(sk, skb, true);
}

/* Always takes it: returns 0. */
static int received(struct sock *sk, struct sk_buff *skb)
{
	receive(sk, skb, false);
	return 0;
}

/* ---- sockets ---- */

static int bind_socket(struct socket *sock, const struct acp_socket *s)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(s->port) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(s->port) };

	if (s->family == AF_INET) {
		memcpy(&in.sin_addr, s->addr, 4);
		return kernel_bind(sock, (struct sockaddr *)&in, sizeof(in));
	}
	ip6_sock_set_v6only(sock->sk);
	memcpy(&in6.sin6_addr, s->addr, 16);
	return kernel_bind(sock, (struct sockaddr *)&in6, sizeof(in6));
}

static void take_datagrams(struct acp_socket *s)
{
	struct sock *sk = s->sock->sk;

	rcu_assign_sk_user_data(sk, s);
	udp_sk(sk)->encap_type = 1;
	udp_sk(sk)->encap_rcv = received;
	udp_allow_gso(sk);
	udp_tunnel_encap_enable(sk);
}

static struct acp_socket *socket_new(struct acp_node *node, const struct acp_socket *like)
{
	struct acp_socket *s = kmemdup(like, sizeof(*like), GFP_KERNEL_ACCOUNT);
	int err;

	if (!s)
		return ERR_PTR(-ENOMEM);
	err = sock_create_kern(node->net, s->family, SOCK_DGRAM, IPPROTO_UDP, &s->sock);
	if (err == -ENFILE)
		err = -ENOMEM;	/* what sockets say for it */
	if (err)
		goto free;
	s->sock->sk->sk_allocation = GFP_ATOMIC;
	err = bind_socket(s->sock, s);
	if (err)
		goto close;
	err = acp_demux_start(node, receive_known);
	if (err)
		goto close;
	s->node = node;
	take_datagrams(s);
	list_add(&s->link, &node->sockets);
	return s;

close:
	sock_release(s->sock);
free:
	kfree(s);
	return ERR_PTR(err);
}

static struct acp_socket *socket_get(struct acp_job *job, u32 color)
{
	struct acp_socket like = { .family = job->family, .port = job->port }, *s;

	acp_job_address(job, job->me, color, like.addr);
	list_for_each_entry(s, &job->node->sockets, link)
		if (s->family == like.family && s->port == like.port &&
		    !memcmp(s->addr, like.addr, job->family == AF_INET ? 4 : 16))
			goto found;
	s = socket_new(job->node, &like);
	if (IS_ERR(s))
		return s;
found:
	s->users++;
	return s;
}

int acp_socket_open(struct acp_job *job)
{
	struct acp_socket *s;
	u32 i;

	for (i = 0; i < job->colors; i++) {
		s = socket_get(job, i);
		if (IS_ERR(s))
			return PTR_ERR(s);
		job->sockets[i] = s;
	}
	return 0;
}

/* The peers of the job are gone; the network may still be in received(). */
void acp_socket_close(struct acp_job *job)
{
	u32 i;

	for (i = 0; i < job->colors; i++) {
		struct acp_socket *s = job->sockets[i];

		job->sockets[i] = NULL;
		if (!s || --s->users)
			continue;
		list_del(&s->link);
		rcu_assign_sk_user_data(s->sock->sk, NULL);
		/* A datagram that somebody has queued may come after this module is gone. */
		WRITE_ONCE(udp_sk(s->sock->sk)->encap_rcv, NULL);
		synchronize_rcu();	/* nobody learns of it any more */
		acp_demux_forget(job->node, s->sock->sk);
		kernel_sock_shutdown(s->sock, SHUT_RDWR);
		sock_release(s->sock);
		kfree_rcu(s, rcu);
	}
}
