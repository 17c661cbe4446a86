/* SPDX-License-Identifier: MIT */
/*
 * Talking to the kernel: the generic netlink family acp, by libnl.
 *
 * What goes wrong is kept as a sentence in struct ctl_nl: the kernel's own if
 * it has sent one. Functions return 0 or -errno unless they say otherwise; who
 * runs out of memory ends.
 */
#ifndef CTL_NL_H
#define CTL_NL_H

#include <stdint.h>

#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "acp_nl.h"

struct ctl_nl {
	struct nl_sock *sock;
	int family;
	uint32_t sequence;	/* of what was last sent */
	char sentence[256];	/* about the last error */
};

/* A message from the kernel. */
struct ctl_reply {
	struct nlmsghdr *head;
	int command;
	struct nlattr *a[ACP_NL_A_MAX + 1];	/* the first of each kind, of the right size */
};

typedef void ctl_take(void *arg, const struct ctl_reply *r);

/* Find the family. -ENOENT: the module is not there. */
int ctl_nl_open(struct ctl_nl *nl);
void ctl_nl_close(struct ctl_nl *nl);

/* Open, or say why not: an exit status. */
int ctl_nl_connect(struct ctl_nl *nl);

/* Say what the last error was, after "what": "job 7". Returns CTL_FAILED. */
int ctl_nl_complain(const struct ctl_nl *nl, const char *what, int err);

struct nl_msg *ctl_nl_new(const struct ctl_nl *nl, enum acp_nl_cmd command);
void ctl_nl_put_u32(struct nl_msg *m, enum acp_nl_attr attr, uint32_t value);
void ctl_nl_put_u64(struct nl_msg *m, enum acp_nl_attr attr, uint64_t value);
void ctl_nl_put_string(struct nl_msg *m, enum acp_nl_attr attr, const char *value);
void ctl_nl_put_bytes(struct nl_msg *m, enum acp_nl_attr attr, const void *bytes, int length);

/* Ask (the message is freed), give each reply to take (or NULL), until acknowledged or refused. */
int ctl_nl_do(struct ctl_nl *nl, struct nl_msg *m, ctl_take *take, void *arg);

/*
 * The same for a dump. One that changed meanwhile is repeated, so replies are
 * given to take only when all are there.
 */
int ctl_nl_dump(struct ctl_nl *nl, struct nl_msg *m, ctl_take *take, void *arg);

/* Hear of events. */
int ctl_nl_join(struct ctl_nl *nl);

/*
 * Take what comes by itself: messages until none is there for so many
 * milliseconds (-1: wait). -EINTR after a signal, -ENOBUFS if some were lost,
 * -ETIMEDOUT.
 */
int ctl_nl_listen(struct ctl_nl *nl, int wait_ms, ctl_take *take, void *arg);

/* Attributes of a reply; 0 if it is not there. */
uint32_t ctl_reply_u32(const struct ctl_reply *r, enum acp_nl_attr attr);
uint64_t ctl_reply_u64(const struct ctl_reply *r, enum acp_nl_attr attr);

/* An address as text; its attribute may have any length. */
#define CTL_ADDRESS_TEXT	64
const char *ctl_address_text(const struct nlattr *attr, char text[CTL_ADDRESS_TEXT]);

#endif /* CTL_NL_H */
