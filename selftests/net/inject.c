// SPDX-License-Identifier: MIT
/* A node simulated by the test: see inject.h. */
#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "inject.h"

/* ---- Sockets ---- */

static socklen_t address_of(struct sockaddr_storage *to, const char *text, uint16_t port)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;
	struct sockaddr_in *in = (struct sockaddr_in *)to;

	memset(to, 0, sizeof(*to));
	if (strchr(text, ':')) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		CHECK_EQ(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
		return sizeof(*in6);
	}
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	CHECK_EQ(inet_pton(AF_INET, text, &in->sin_addr), 1);
	return sizeof(*in);
}

int inject_socket(const struct inject *x, uint32_t node, const char *address, uint16_t port)
{
	const struct nodes *n = x->nodes;
	struct sockaddr_storage a;
	socklen_t size;
	int fd;

	nodes_enter(n, node);
	fd = socket(n->ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	nodes_leave(n);
	CHECK(fd >= 0);
	size = address_of(&a, address, port);
	if (bind(fd, (struct sockaddr *)&a, size))
		FAIL("bind to %s port %u: %s", address, port, strerror(errno));
	size = address_of(&a, n->address[x->victim], ACP_PORT_DEFAULT);
	CHECK_EQ(connect(fd, (struct sockaddr *)&a, size), 0);
	return fd;
}

/* Derive the key of what one node sends to the other. */
static void derive(const struct inject *x, const struct setup *s, uint32_t cipher, uint32_t from,
		   uint32_t to, uint8_t key[32])
{
	struct acp_frame_key k;

	acp_frame_key(&k, cipher, s->join.job, (u16)s->join.generation, from, to, x->base.color);
	blake2s(key, s->join.key, sizeof(s->join.key), &k, sizeof(k));
}

void inject_open(struct inject *x, const struct nodes *n, uint32_t me, uint32_t victim,
		 const struct setup *s)
{
	memset(x, 0, sizeof(*x));
	x->nodes = n;
	x->me = me;
	x->victim = victim;
	x->key = siphash_key_of(s->join.key);
	x->base.job = s->join.job;
	x->base.generation = (uint16_t)s->join.generation;
	x->base.node = me;
	x->base.epoch_src = 0x12345678;
	x->seq = 1;
	x->acked = 1;
	x->heard = 1;
	x->long_tags = s->join.integrity == ACP_INTEGRITY_TAG;
	x->encrypted = s->join.integrity == ACP_INTEGRITY_AEAD;
	derive(x, s, 0, me, victim, x->key_out);
	derive(x, s, 0, victim, me, x->key_in);
	derive(x, s, ACP_CIPHER_AES, me, victim, x->aes_out);
	derive(x, s, ACP_CIPHER_AES, victim, me, x->aes_in);
	derive(x, s, ACP_CIPHER_AEGIS, me, victim, x->aegis_out);
	derive(x, s, ACP_CIPHER_AEGIS, victim, me, x->aegis_in);
	x->fd = inject_socket(x, me, n->address[me], ACP_PORT_DEFAULT);
}

/* ---- Sending frames ---- */

struct acp_frame inject_header(struct inject *x, uint8_t type)
{
	struct acp_frame f = x->base;

	f.type = type;
	f.flags = x->encrypted ? ACP_FRAME_AEAD : 0;
	if (type == ACP_FRAME_DATA)
		f.seq = x->seq++;
	f.ack = type == ACP_FRAME_HELLO ? 0 : x->heard;
	return f;
}

static u64 tag_of(const struct inject *x, const struct acp_frame_hdr *h, size_t tagged,
		  size_t size)
{
	size_t head = tagged - sizeof(h->tag);

	if (x->long_tags && (h->flags & ACP_FRAME_BULK) && size > tagged)
		return longtag(&x->key, &h->version, head, (const char *)h + tagged, size - tagged);
	return siphash24(&x->key, &h->version, head);
}

void inject_sign(const struct inject *x, void *datagram, size_t tagged, size_t size)
{
	struct acp_frame_hdr *h = datagram;

	h->tag = cpu_to_be64(tag_of(x, h, tagged, size));
}

/* Additional authenticated data of an encrypted frame. */
#define CLEAR	(sizeof(struct acp_frame_hdr) - 8 + sizeof(struct acp_frame_nonce))

static void close_frame(const struct inject *x, void *datagram, size_t length)
{
	struct acp_frame_hdr *h = datagram;
	struct acp_frame_nonce *block = (void *)(h + 1);
	uint8_t *body = (void *)(block + 1);
	uint32_t cipher = h->type == ACP_FRAME_HELLO ? 0 : x->cipher;

	CHECK_EQ(getrandom(block->nonce, sizeof(block->nonce), 0), sizeof(block->nonce));
	block->cipher = cpu_to_be32(cipher);
	if (cipher & ACP_CIPHER_AEGIS)
		aegis_close(x->aegis_out, (void *)block, &h->version, CLEAR, body, length,
			    body + length);
	else if (cipher & ACP_CIPHER_AES)
		gcm_close(x->aes_out, block->nonce, &h->version, CLEAR, body, length,
			  body + length);
	else
		aead_close(x->key_out, block->nonce, &h->version, CLEAR, body, length,
			   body + length);
}

static bool open_frame(const struct inject *x, void *datagram, size_t length)
{
	struct acp_frame_hdr *h = datagram;
	const struct acp_frame_nonce *block = (void *)(h + 1);
	uint8_t *body = (void *)(block + 1);
	u32 cipher;

	if (!acp_frame_nonce(datagram, &cipher))
		return false;
	if (cipher & ACP_CIPHER_AEGIS)
		return aegis_open(x->aegis_in, (const void *)block, &h->version, CLEAR, body,
				  length, body + length);
	if (cipher & ACP_CIPHER_AES)
		return gcm_open(x->aes_in, block->nonce, &h->version, CLEAR, body, length,
				body + length);
	return aead_open(x->key_in, block->nonce, &h->version, CLEAR, body, length, body + length);
}

size_t inject_build(const struct inject *x, void *out, const struct acp_frame *f,
		    const void *body, size_t length)
{
	struct acp_frame all = *f;

	all.length = (u32)length;
	acp_frame_encode(out, &all);
	memcpy((char *)out + acp_frame_body(&all), body, length);
	inject_sign(x, out, acp_frame_tagged(&all), sizeof(struct acp_frame_hdr) + length);
	if (!(all.flags & ACP_FRAME_AEAD))
		return sizeof(struct acp_frame_hdr) + length;
	close_frame(x, out, length);
	return sizeof(struct acp_frame_hdr) + length + ACP_FRAME_ENCRYPTED;
}

void inject_send(const struct inject *x, const void *datagram, size_t size)
{
	CHECK_EQ(send(x->fd, datagram, size, 0), size);
}

void inject_frame(const struct inject *x, const struct acp_frame *f, const void *body,
		  size_t length)
{
	static char datagram[INJECT_MAX];

	inject_send(x, datagram, inject_build(x, datagram, f, body, length));
}

size_t inject_message(void *out, const struct acp_msg *m, const void *payload)
{
	u32 head = acp_msg_head(m), size = acp_msg_size(m);

	memset(out, 0, size);
	acp_msg_encode(out, m);
	if (payload)
		memcpy((char *)out + head, payload, m->length);
	return size;
}

uint64_t inject_data(struct inject *x, const void *body, size_t length)
{
	struct acp_frame f = inject_header(x, ACP_FRAME_DATA);

	inject_frame(x, &f, body, length);
	return f.seq;
}

uint64_t inject_put(struct inject *x, uint32_t origin, uint64_t ticket, uint64_t dst,
		    const void *payload, uint32_t length)
{
	static char body[INJECT_MAX];
	struct acp_frame f = inject_header(x, ACP_FRAME_DATA);
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .flags = ACP_MSG_LAST, .origin = origin,
		.ticket = ticket, .dst = dst, .length = length,
	};

	if (length > ACP_FRAME_SHORT && !x->encrypted)
		f.flags = ACP_FRAME_BULK;
	inject_frame(x, &f, body, inject_message(body, &m, payload));
	return f.seq;
}

/* ---- Receiving frames ---- */

static bool readable(int fd, unsigned int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, (int)ms) > 0;
}

/* Check the tag computed by the victim. */
static void check_tag(struct inject *x, const void *datagram, const struct acp_frame *f)
{
	const struct acp_frame_hdr *h = datagram;

	CHECK(tag_of(x, h, acp_frame_tagged(f), acp_frame_size(f)) == be64_to_cpu(h->tag));
}

static void receive(struct inject *x, struct acp_frame *f, void *body)
{
	static char datagram[INJECT_MAX];
	ssize_t size;

	size = recv(x->fd, datagram, sizeof(datagram), 0);
	if (size < 0)
		FAIL("the network says: %s", strerror(errno));
	CHECK((size_t)size >= sizeof(struct acp_frame_hdr));
	CHECK_EQ(acp_frame_decode(f, (void *)datagram, (u32)size), ACP_FRAME_OK);
	check_tag(x, datagram, f);
	CHECK_EQ(!!(f->flags & ACP_FRAME_AEAD), x->encrypted);
	CHECK(!x->encrypted || open_frame(x, datagram, f->length));
	if (body)
		memcpy(body, datagram + acp_frame_body(f), f->length);
	if (f->type != ACP_FRAME_HELLO && f->ack > x->acked)
		x->acked = f->ack;
	if (f->type == ACP_FRAME_DATA && f->seq == x->heard)
		x->heard++;
}

bool inject_receive(struct inject *x, struct acp_frame *f, void *body, unsigned int ms)
{
	if (!readable(x->fd, ms))
		return false;
	receive(x, f, body);
	return true;
}

void inject_expect(struct inject *x, struct acp_frame *f, void *body)
{
	if (!patience_poll(x->fd, POLLIN, PATIENCE_SOON))
		FAIL("no frame arrives");
	receive(x, f, body);
}

void inject_drain(struct inject *x)
{
	struct acp_frame f;

	while (inject_receive(x, &f, NULL, 50))
		;
}

void inject_ack(struct inject *x)
{
	struct acp_frame_ack map = { { 0 } };
	struct acp_frame f = inject_header(x, ACP_FRAME_ACK);

	inject_frame(x, &f, &map, sizeof(map));
}

void inject_handshake(struct inject *x)
{
	struct acp_frame f;

	do
		inject_expect(x, &f, &x->setup);
	while (f.type != ACP_FRAME_HELLO || !(f.flags & ACP_FRAME_ASK));
	CHECK_EQ(f.node, x->victim);
	x->base.epoch_dst = f.epoch_src;
	f = inject_header(x, ACP_FRAME_HELLO);
	f.flags |= ACP_FRAME_ASK;
	inject_frame(x, &f, &x->setup, sizeof(x->setup));
	do
		inject_expect(x, &f, NULL);
	while (f.type != ACP_FRAME_DATA);
	inject_ack(x);
}

void inject_begin(struct inject *x, const struct nodes *n, const struct setup *s,
		  struct rank *victim, uint32_t to)
{
	inject_open(x, n, 1, 0, s);
	rank_copy(victim, rank_ga(victim, to, ACP_STAG_HEAP, 0), heap_ga(victim, 0), 8, 0);
	inject_handshake(x);
	CHECK_EQ(rank_await(victim, victim->last, PATIENCE_SOON), ACP_ST_OK);
	inject_drain(x);
}

void inject_applied(struct inject *x, uint64_t seq)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	struct acp_frame f;

	while (x->acked <= seq) {
		if (inject_receive(x, &f, NULL, 100) && f.type == ACP_FRAME_DATA)
			inject_ack(x);
		if (patience_over(&p))
			FAIL("frame %llu is not acknowledged", (unsigned long long)seq);
	}
}

int inject_done(struct inject *x, uint64_t ticket)
{
	static char body[INJECT_MAX];
	struct patience p = patience_begin(PATIENCE_SOON);
	struct acp_frame f;
	struct acp_msg m;
	u32 at, n;

	while (!patience_over(&p)) {
		if (!inject_receive(x, &f, body, 100) || f.type != ACP_FRAME_DATA)
			continue;
		inject_ack(x);
		for (at = 0; at < f.length; at += n) {
			n = acp_msg_decode(&m, body + at, f.length - at, f.length - at);
			CHECK(n);
			if (m.type == ACP_MSG_DONE && m.ticket == ticket)
				return m.status;
		}
	}
	FAIL("no DONE for ticket %llu", (unsigned long long)ticket);
}

void inject_silence(struct inject *x, unsigned int ms)
{
	const uint64_t end = now_ns() + ms * MS, heard = x->heard;
	struct acp_frame f;
	uint64_t now;

	while ((now = now_ns()) < end) {
		if (!inject_receive(x, &f, NULL, (unsigned int)((end - now) / MS) + 1))
			return;
		/* On a busy machine, an earlier frame may be retransmitted. */
		if (f.type != ACP_FRAME_DATA || f.seq >= heard)
			FAIL("the victim answers: frame type %u", f.type);
	}
}
