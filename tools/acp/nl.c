// SPDX-License-Identifier: MIT
/* Generic netlink communication: see nl.h. */
#define _GNU_SOURCE
#include "nl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <netlink/genl/ctrl.h>

#include "signals.h"
#include "words.h"

#define REPEATS_MAX	10	/* of a dump that was interrupted by changes */

/* ---- Types of attributes; all others are u32 ---- */

static const uint8_t u64s[] = {
	ACP_NL_A_VALUE, ACP_NL_A_MACHINE_VALUE, ACP_NL_A_LIMIT_MIN, ACP_NL_A_LIMIT_MAX,
	ACP_NL_A_USED, ACP_NL_A_BARRIERS, ACP_NL_A_AGE, ACP_NL_A_MEMORY, ACP_NL_A_TAKEN,
	ACP_NL_A_COMPLETED, ACP_NL_A_FAILED, ACP_NL_A_STARTER, ACP_NL_A_HEAP, ACP_NL_A_BARRIER,
	ACP_NL_A_KEY, ACP_NL_A_START, ACP_NL_A_LENGTH, ACP_NL_A_PAGES, ACP_NL_A_SRTT,
	ACP_NL_A_RTTVAR, ACP_NL_A_RTT_MIN, ACP_NL_A_RTO, ACP_NL_A_TX_FRAMES, ACP_NL_A_TX_BYTES,
	ACP_NL_A_TX_RETRANSMITS, ACP_NL_A_RX_FRAMES, ACP_NL_A_RX_BYTES, ACP_NL_A_RX_DUPLICATES,
	ACP_NL_A_TIMEOUTS, ACP_NL_A_IDLE, ACP_NL_A_RTT, ACP_NL_A_TIME,
};

static const uint8_t strings[] = { ACP_NL_A_NAME, ACP_NL_A_TEXT, ACP_NL_A_MODULE_VERSION };
static const uint8_t flags[] = { ACP_NL_A_BROKEN, ACP_NL_A_ABORTED, ACP_NL_A_FINISHED,
				 ACP_NL_A_REVOKED, ACP_NL_A_OPENED };

static void set_types(struct nla_policy *policy, const uint8_t *attrs, size_t n, uint16_t type)
{
	size_t i;

	for (i = 0; i < n; i++)
		policy[attrs[i]].type = type;
}

static struct nla_policy *policy(void)
{
	static struct nla_policy table[ACP_NL_A_MAX + 1];
	int i;

	if (table[ACP_NL_A_JOB].type == NLA_U32)
		return table;
	for (i = ACP_NL_A_PAD + 1; i <= ACP_NL_A_MAX; i++)
		table[i].type = NLA_U32;
	set_types(table, u64s, sizeof(u64s), NLA_U64);
	set_types(table, strings, sizeof(strings), NLA_NUL_STRING);
	set_types(table, flags, sizeof(flags), NLA_FLAG);
	table[ACP_NL_A_ADDRESS].type = NLA_UNSPEC;
	return table;
}

static bool parse(struct nlmsghdr *head, struct ctl_reply *r)
{
	*r = (struct ctl_reply){ .head = head };
	if (!genlmsg_valid_hdr(head, 0) ||
	    genlmsg_parse(head, 0, r->a, ACP_NL_A_MAX, policy()) < 0)
		return false;
	r->command = ((struct genlmsghdr *)nlmsg_data(head))->cmd;
	return true;
}

uint32_t ctl_reply_u32(const struct ctl_reply *r, enum acp_nl_attr attr)
{
	return r->a[attr] != NULL ? nla_get_u32(r->a[attr]) : 0;
}

uint64_t ctl_reply_u64(const struct ctl_reply *r, enum acp_nl_attr attr)
{
	return r->a[attr] != NULL ? nla_get_u64(r->a[attr]) : 0;
}

const char *ctl_address_text(const struct nlattr *attr, char text[CTL_ADDRESS_TEXT])
{
	int length = nla_len(attr);

	if ((length != 4 && length != 16) ||
	    !inet_ntop(length == 4 ? AF_INET : AF_INET6, nla_data(attr), text, CTL_ADDRESS_TEXT))
		strcpy(text, "?");
	return text;
}

/* ---- Messages ---- */

static void no_memory(bool failed)
{
	if (!failed)
		return;
	ctl_error("out of memory");
	exit(CTL_FAILED);
}

struct nl_msg *ctl_nl_new(const struct ctl_nl *nl, enum acp_nl_cmd command)
{
	struct nl_msg *m = nlmsg_alloc();

	no_memory(m == NULL ||
		  genlmsg_put(m, NL_AUTO_PORT, NL_AUTO_SEQ, nl->family, 0, 0, (uint8_t)command,
			      ACP_NL_VERSION) == NULL);
	return m;
}

void ctl_nl_put_u32(struct nl_msg *m, enum acp_nl_attr attr, uint32_t value)
{
	no_memory(nla_put_u32(m, (int)attr, value) < 0);
}

void ctl_nl_put_u64(struct nl_msg *m, enum acp_nl_attr attr, uint64_t value)
{
	no_memory(nla_put_u64(m, (int)attr, value) < 0);
}

void ctl_nl_put_string(struct nl_msg *m, enum acp_nl_attr attr, const char *value)
{
	no_memory(nla_put_string(m, (int)attr, value) < 0);
}

void ctl_nl_put_bytes(struct nl_msg *m, enum acp_nl_attr attr, const void *bytes, int length)
{
	no_memory(nla_put(m, (int)attr, length, bytes) < 0);
}

/* ---- The socket ---- */

static int errno_of(int nl_error)
{
	switch (-nl_error) {
	case NLE_OBJ_NOTFOUND:
		return -ENOENT;
	case NLE_NOMEM:			/* libnl converts ENOBUFS to this */
		return -ENOBUFS;
	case NLE_PERM:
	case NLE_NOACCESS:
		return -EPERM;
	case NLE_INTR:
		return -EINTR;
	default:
		return -EIO;
	}
}

static int open_socket(struct ctl_nl *nl)
{
	int one = 1, err;

	nl->sock = nl_socket_alloc();
	no_memory(nl->sock == NULL);
	err = genl_connect(nl->sock);
	if (err < 0) {
		snprintf(nl->sentence, sizeof(nl->sentence), "no netlink socket: %s",
			 nl_geterror(err));
		return errno_of(err);
	}
	setsockopt(nl_socket_get_fd(nl->sock), SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	nl->family = genl_ctrl_resolve(nl->sock, ACP_NL_FAMILY_NAME);
	if (nl->family >= 0)
		return 0;
	snprintf(nl->sentence, sizeof(nl->sentence),
		 "the module is not loaded: run 'modprobe acp' as root (acp check tells more)");
	return -ENOENT;
}

int ctl_nl_open(struct ctl_nl *nl)
{
	int err;

	*nl = (struct ctl_nl){ .family = -1 };
	err = open_socket(nl);
	if (err)
		ctl_nl_close(nl);
	return err;
}

void ctl_nl_close(struct ctl_nl *nl)
{
	nl_socket_free(nl->sock);
	nl->sock = NULL;
}

int ctl_nl_connect(struct ctl_nl *nl)
{
	if (ctl_nl_open(nl) == 0)
		return CTL_OK;
	ctl_error("%s", nl->sentence);
	return CTL_FAILED;
}

int ctl_nl_complain(const struct ctl_nl *nl, const char *what, int err)
{
	const char *why = nl->sentence[0] != '\0' ? nl->sentence : strerror(-err);

	ctl_error("%s%s%s", what, what[0] != '\0' ? ": " : "", why);
	return CTL_FAILED;
}

/* ---- Requests ---- */

struct talk {
	struct ctl_nl *nl;
	uint32_t sequence;
	bool over, interrupted;
	int err;
	ctl_take *take;
	void *arg;
	struct nl_msg **kept;		/* replies of a dump */
	size_t count;
	bool keep;
};

/* Keep the sentence in the extended acknowledgment of an error, if there is one. */
static void keep_sentence(struct ctl_nl *nl, struct nlmsghdr *head, size_t offset)
{
	struct nlattr *a = NULL;

	if (!(head->nlmsg_flags & NLM_F_ACK_TLVS) || head->nlmsg_len < NLMSG_HDRLEN + offset)
		return;
	a = nla_find((struct nlattr *)((char *)nlmsg_data(head) + offset),
		     (int)(head->nlmsg_len - NLMSG_HDRLEN - offset), NLMSGERR_ATTR_MSG);
	if (a == NULL || nla_len(a) < 1)
		return;
	snprintf(nl->sentence, sizeof(nl->sentence), "%.*s", nla_len(a), (char *)nla_data(a));
}

static int end_talk(struct talk *t, int err, struct nlmsghdr *head, size_t offset)
{
	t->over = true;
	t->err = err;
	if (err)
		keep_sentence(t->nl, head, offset);
	return NL_STOP;
}

/* NLMSG_ERROR; unless NLM_F_CAPPED is set, it contains the request as well. */
static int on_error(struct sockaddr_nl *from, struct nlmsgerr *e, void *arg)
{
	struct nlmsghdr *head = (struct nlmsghdr *)((char *)e - NLMSG_HDRLEN);
	struct talk *t = arg;
	size_t offset = sizeof(*e);

	(void)from;
	if (head->nlmsg_seq != t->sequence)
		return NL_SKIP;
	if (!(head->nlmsg_flags & NLM_F_CAPPED) && e->msg.nlmsg_len >= NLMSG_HDRLEN)
		offset += NLMSG_ALIGN(e->msg.nlmsg_len - NLMSG_HDRLEN);
	return end_talk(t, e->error, head, offset);
}

static int on_ack(struct nl_msg *m, void *arg)
{
	struct talk *t = arg;

	if (nlmsg_hdr(m)->nlmsg_seq != t->sequence)
		return NL_SKIP;
	return end_talk(t, 0, nlmsg_hdr(m), 0);
}

/* NLMSG_DONE contains the error of the dump. */
static int on_finish(struct nl_msg *m, void *arg)
{
	struct nlmsghdr *head = nlmsg_hdr(m);
	struct talk *t = arg;
	int err = 0;

	if (head->nlmsg_seq != t->sequence)
		return NL_SKIP;
	if (nlmsg_datalen(head) >= (int)sizeof(int))
		memcpy(&err, nlmsg_data(head), sizeof(int));
	if (head->nlmsg_flags & NLM_F_DUMP_INTR)
		t->interrupted = true;
	return end_talk(t, err < 0 ? err : 0, head, sizeof(int));
}

static void keep_message(struct talk *t, struct nl_msg *m)
{
	t->kept = realloc(t->kept, (t->count + 1) * sizeof(*t->kept));
	no_memory(t->kept == NULL);
	nlmsg_get(m);
	t->kept[t->count++] = m;
}

static int on_valid(struct nl_msg *m, void *arg)
{
	struct talk *t = arg;
	struct ctl_reply r;

	if (t->sequence != 0 && nlmsg_hdr(m)->nlmsg_seq != t->sequence)
		return NL_SKIP;
	if (nlmsg_hdr(m)->nlmsg_flags & NLM_F_DUMP_INTR)
		t->interrupted = true;
	if (t->keep)
		keep_message(t, m);
	else if (t->take != NULL && parse(nlmsg_hdr(m), &r))
		t->take(t->arg, &r);
	return NL_OK;
}

static int any_sequence(struct nl_msg *m, void *arg)
{
	(void)m;
	(void)arg;
	return NL_OK;
}

static struct nl_cb *callbacks(struct talk *t)
{
	struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);

	no_memory(cb == NULL);
	nl_cb_set(cb, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, any_sequence, NULL);
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, on_valid, t);
	nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, on_ack, t);
	nl_cb_set(cb, NL_CB_FINISH, NL_CB_CUSTOM, on_finish, t);
	nl_cb_set(cb, NL_CB_DUMP_INTR, NL_CB_CUSTOM, any_sequence, NULL);
	nl_cb_err(cb, NL_CB_CUSTOM, on_error, t);
	return cb;
}

/* Send a request and process replies until it is complete. */
static int talk(struct talk *t, struct nl_msg *m)
{
	struct nl_cb *cb = callbacks(t);
	int err;

	t->nl->sentence[0] = '\0';
	err = nl_send_auto(t->nl->sock, m);
	t->sequence = nlmsg_hdr(m)->nlmsg_seq;
	t->nl->sequence = t->sequence;
	while (err >= 0 && !t->over) {
		err = nl_recvmsgs(t->nl->sock, cb);
		if (t->over)
			break;
		if (err == -NLE_INTR || err == -NLE_DUMP_INTR)
			err = 0;
	}
	nl_cb_put(cb);
	if (t->over)
		return t->err;
	snprintf(t->nl->sentence, sizeof(t->nl->sentence), "netlink: %s", nl_geterror(err));
	return errno_of(err);
}

int ctl_nl_do(struct ctl_nl *nl, struct nl_msg *m, ctl_take *take, void *arg)
{
	struct talk t = { .nl = nl, .take = take, .arg = arg };
	int err;

	nlmsg_hdr(m)->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	err = talk(&t, m);
	nlmsg_free(m);
	return err;
}

static void give_kept(struct talk *t, bool wanted)
{
	struct ctl_reply r;
	size_t i;

	for (i = 0; i < t->count; i++) {
		if (wanted && parse(nlmsg_hdr(t->kept[i]), &r))
			t->take(t->arg, &r);
		nlmsg_free(t->kept[i]);
	}
	free(t->kept);
}

int ctl_nl_dump(struct ctl_nl *nl, struct nl_msg *m, ctl_take *take, void *arg)
{
	int left = REPEATS_MAX, err;

	nlmsg_hdr(m)->nlmsg_flags |= NLM_F_REQUEST | NLM_F_DUMP;
	for (;;) {
		struct talk t = { .nl = nl, .take = take, .arg = arg, .keep = true };
		bool again;

		nlmsg_hdr(m)->nlmsg_seq = NL_AUTO_SEQ;
		err = talk(&t, m);
		again = err == 0 && t.interrupted && --left > 0;
		give_kept(&t, err == 0 && !again);
		if (!again)
			break;
	}
	nlmsg_free(m);
	if (err == 0 && left == 0)
		ctl_error("what was asked for changes all the time: this may not be all of it");
	return err;
}

/* ---- Events ---- */

int ctl_nl_join(struct ctl_nl *nl)
{
	int group = genl_ctrl_resolve_grp(nl->sock, ACP_NL_FAMILY_NAME, ACP_NL_GROUP_EVENTS), err;

	if (group < 0)
		return errno_of(group);
	/* Events are short but may come in bursts, for example when a job of many ranks begins. */
	nl_socket_set_buffer_size(nl->sock, 1 << 20, 0);
	err = nl_socket_add_membership(nl->sock, group);
	return err < 0 ? errno_of(err) : 0;
}

int ctl_nl_listen(struct ctl_nl *nl, int wait_ms, ctl_take *take, void *arg)
{
	struct pollfd p = { .fd = nl_socket_get_fd(nl->sock), .events = POLLIN };
	struct talk t = { .nl = nl, .take = take, .arg = arg };
	struct nl_cb *cb;
	int err = ctl_signal_poll(&p, 1, wait_ms < 0 ? -1 : (int64_t)wait_ms * 1000000);

	if (err < 0)
		return -errno;
	if (err == 0)
		return -ETIMEDOUT;
	cb = callbacks(&t);
	err = nl_recvmsgs(nl->sock, cb);
	nl_cb_put(cb);
	if (err >= 0 || err == -NLE_DUMP_INTR)
		return 0;
	return errno_of(err);
}
