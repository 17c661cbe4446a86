// SPDX-License-Identifier: MIT
/* Generic netlink: see ask.h. */
#include "../dev/isolated.h"

#include <linux/genetlink.h>
#include <poll.h>
#include <sys/socket.h>

#include "ask.h"

#define PAYLOAD(a)	((const void *)((const char *)(a) + NLA_HDRLEN))
#define SIZE(a)		((a)->nla_len - NLA_HDRLEN)
#define TYPE(a)		((a)->nla_type & NLA_TYPE_MASK)

static struct nlmsghdr *head(struct ask *q)
{
	return (struct nlmsghdr *)q->request;
}

static void begin(struct ask *q, uint32_t type, uint8_t cmd, uint16_t flags)
{
	struct genlmsghdr *g = NLMSG_DATA(head(q));

	memset(q->request, 0, sizeof(q->request));
	*head(q) = (struct nlmsghdr){
		.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN), .nlmsg_type = (uint16_t)type,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags, .nlmsg_seq = ++q->seq,
	};
	g->cmd = cmd;
	g->version = ACP_NL_VERSION;
}

void ask_begin(struct ask *q, uint8_t cmd, uint16_t flags)
{
	begin(q, q->family, cmd, flags);
}

void ask_put(struct ask *q, uint16_t attr, const void *data, uint16_t size)
{
	uint32_t at = NLMSG_ALIGN(head(q)->nlmsg_len);
	struct nlattr *a = (struct nlattr *)(q->request + at);

	CHECK(at + NLA_HDRLEN + size <= sizeof(q->request));
	a->nla_type = attr;
	a->nla_len = (uint16_t)(NLA_HDRLEN + size);
	memcpy(a + 1, data, size);
	head(q)->nlmsg_len = at + NLA_ALIGN(NLA_HDRLEN + size);
}

void ask_u32(struct ask *q, uint16_t attr, uint32_t value)
{
	ask_put(q, attr, &value, sizeof(value));
}

void ask_u64(struct ask *q, uint16_t attr, uint64_t value)
{
	ask_put(q, attr, &value, sizeof(value));
}

void ask_text(struct ask *q, uint16_t attr, const char *text)
{
	ask_put(q, attr, text, (uint16_t)(strlen(text) + 1));
}

void ask_send(struct ask *q)
{
	CHECK_EQ(send(q->fd, q->request, head(q)->nlmsg_len, 0), head(q)->nlmsg_len);
}

/* ---- replies ---- */

/* Return 0 if nothing comes in time. */
static ssize_t receive(struct ask *q, void *to)
{
	if (!patience_poll(q->fd, POLLIN, PATIENCE_WORK))
		return 0;
	return recv(q->fd, to, ASK_ROOM, 0);
}

/* Parse the attributes, which must be valid attributes of the family. */
static void take_apart(struct answer *answer, const struct nlmsghdr *n)
{
	const struct genlmsghdr *g = NLMSG_DATA(n);
	const char *p = (const char *)g + GENL_HDRLEN, *end = (const char *)n + n->nlmsg_len;

	memset(answer, 0, offsetof(struct answer, text));
	answer->cmd = g->cmd;
	answer->seq = n->nlmsg_seq;
	CHECK_EQ(g->version, ACP_NL_VERSION);
	CHECK(n->nlmsg_len <= sizeof(answer->text));
	memcpy(answer->text, p, (size_t)(end - p));
	end = answer->text + (end - p);
	for (p = answer->text; p < end; p += NLA_ALIGN(((const struct nlattr *)p)->nla_len)) {
		const struct nlattr *a = (const struct nlattr *)p;

		CHECK(end - p >= NLA_HDRLEN && a->nla_len >= NLA_HDRLEN && a->nla_len <= end - p);
		CHECK(TYPE(a) >= 1 && TYPE(a) <= ACP_NL_A_MAX);
		if (!answer->count[TYPE(a)]++)
			answer->a[TYPE(a)] = a;
	}
}

/* Parse an error or acknowledgement: 0 or -errno, and its message. */
static int verdict(struct ask *q, const struct nlmsghdr *n)
{
	const struct nlmsgerr *e = NLMSG_DATA(n);
	const char *p = (const char *)(e + 1), *end = (const char *)n + n->nlmsg_len;

	q->said[0] = 0;
	if (!(n->nlmsg_flags & NLM_F_CAPPED))
		p = (const char *)&e->msg + NLMSG_ALIGN(e->msg.nlmsg_len);
	if (!(n->nlmsg_flags & NLM_F_ACK_TLVS))
		return e->error;
	for (; p < end; p += NLA_ALIGN(((const struct nlattr *)p)->nla_len)) {
		const struct nlattr *a = (const struct nlattr *)p;

		if (TYPE(a) == NLMSGERR_ATTR_MSG)
			snprintf(q->said, sizeof(q->said), "%.*s", SIZE(a),
				 (const char *)PAYLOAD(a));
	}
	return e->error;
}

/* Return the next message that answers the request. The buffer is reused by later ones. */
static struct nlmsghdr *next_message(struct ask *q, struct nlmsghdr *n, ssize_t *left)
{
	static char text[ASK_ROOM];

	for (;;) {
		if (n)
			n = NLMSG_NEXT(n, *left);
		if (!n || !NLMSG_OK(n, (uint32_t)*left)) {
			*left = receive(q, text);
			CHECK(*left > 0);
			n = (struct nlmsghdr *)text;
		}
		if (NLMSG_OK(n, (uint32_t)*left) && n->nlmsg_seq == q->seq)
			return n;
	}
}

int ask_do(struct ask *q, struct answer *answer)
{
	struct nlmsghdr *n = NULL;
	ssize_t left = 0;

	ask_send(q);
	while ((n = next_message(q, n, &left))->nlmsg_type != NLMSG_ERROR) {
		CHECK_EQ(n->nlmsg_type, q->family);
		if (answer)
			take_apart(answer, n);
	}
	return verdict(q, n);
}

static bool ends_dump(const struct nlmsghdr *n)
{
	return n->nlmsg_type == NLMSG_DONE || n->nlmsg_type == NLMSG_ERROR;
}

static int dump_error(struct ask *q, const struct nlmsghdr *n)
{
	if (n->nlmsg_type == NLMSG_ERROR)
		return verdict(q, n);
	return n->nlmsg_len >= NLMSG_LENGTH(sizeof(int)) ? *(const int *)NLMSG_DATA(n) : 0;
}

int ask_dump(struct ask *q, void (*each)(const struct answer *answer))
{
	static struct answer answer;
	struct nlmsghdr *n = NULL;
	ssize_t left = 0;
	int count = 0;

	q->interrupted = false;
	ask_send(q);
	while (!ends_dump(n = next_message(q, n, &left))) {
		q->interrupted |= !!(n->nlmsg_flags & NLM_F_DUMP_INTR);
		CHECK_EQ(n->nlmsg_type, q->family);
		take_apart(&answer, n);
		count++;
		if (each)
			each(&answer);
	}
	q->interrupted |= !!(n->nlmsg_flags & NLM_F_DUMP_INTR);
	return dump_error(q, n) ?: count;
}

bool ask_silent(struct ask *q, unsigned int ms)
{
	struct pollfd p = { .fd = q->fd, .events = POLLIN };

	return poll(&p, 1, (int)ms) == 0;
}

bool ask_hear(struct ask *q, struct answer *answer)
{
	static char text[ASK_ROOM];
	struct nlmsghdr *n = (struct nlmsghdr *)text;
	ssize_t size = receive(q, text);

	if (!size)
		return false;
	CHECK(size > 0 && NLMSG_OK(n, (uint32_t)size));
	CHECK_EQ(n->nlmsg_type, q->family);
	take_apart(answer, n);
	return true;
}

/* ---- the family ---- */

static uint32_t group_of(const struct nlattr *groups)
{
	const struct nlattr *first = PAYLOAD(groups), *a = PAYLOAD(first);
	const char *end = (const char *)first + first->nla_len;

	for (; (const char *)a < end; a = (const void *)((const char *)a + NLA_ALIGN(a->nla_len)))
		if (TYPE(a) == CTRL_ATTR_MCAST_GRP_ID)
			return *(const uint32_t *)PAYLOAD(a);
	FAIL("the group has no number");
}

/* Get the numbers of the family and of its only group. */
static void find_family(struct ask *q)
{
	static char text[ASK_ROOM];
	struct nlmsghdr *n = (struct nlmsghdr *)text;
	const char *p, *end;
	ssize_t size;

	begin(q, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0);
	((struct genlmsghdr *)NLMSG_DATA(head(q)))->version = 1;
	ask_text(q, CTRL_ATTR_FAMILY_NAME, ACP_NL_FAMILY_NAME);
	ask_send(q);
	size = receive(q, text);
	CHECK(size > 0 && n->nlmsg_type == GENL_ID_CTRL);
	end = text + n->nlmsg_len;
	for (p = (char *)NLMSG_DATA(n) + GENL_HDRLEN; p < end;
	     p += NLA_ALIGN(((const struct nlattr *)p)->nla_len)) {
		const struct nlattr *a = (const struct nlattr *)p;

		if (TYPE(a) == CTRL_ATTR_FAMILY_ID)
			q->family = *(const uint16_t *)PAYLOAD(a);
		if (TYPE(a) == CTRL_ATTR_MCAST_GROUPS)
			q->group = group_of(a);
	}
	CHECK(q->family && q->group);
	receive(q, text);	/* the acknowledgement */
}

void ask_open(struct ask *q)
{
	struct sockaddr_nl self = { .nl_family = AF_NETLINK };
	int on = 1;

	memset(q, 0, sizeof(*q));
	q->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	CHECK(q->fd >= 0);
	CHECK_EQ(bind(q->fd, (struct sockaddr *)&self, sizeof(self)), 0);
	CHECK_EQ(setsockopt(q->fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on)), 0);
	CHECK_EQ(setsockopt(q->fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on)), 0);
	find_family(q);
}

int ask_join(struct ask *q)
{
	return setsockopt(q->fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &q->group,
			  sizeof(q->group)) ? -errno : 0;
}

/* ---- answers ---- */

static const void *value(const struct answer *answer, int attr, int size)
{
	if (!answer->a[attr])
		FAIL("attribute %d is missing", attr);
	CHECK_EQ(SIZE(answer->a[attr]), size);
	return PAYLOAD(answer->a[attr]);
}

uint32_t answer_u32(const struct answer *answer, int attr)
{
	uint32_t v;

	memcpy(&v, value(answer, attr, sizeof(v)), sizeof(v));
	return v;
}

uint64_t answer_u64(const struct answer *answer, int attr)
{
	uint64_t v;

	memcpy(&v, value(answer, attr, sizeof(v)), sizeof(v));
	return v;
}

const char *answer_text(const struct answer *answer, int attr)
{
	if (!answer->a[attr])
		FAIL("attribute %d is missing", attr);
	return PAYLOAD(answer->a[attr]);
}
