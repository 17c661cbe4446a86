/* SPDX-License-Identifier: MIT */
/*
 * Communication with the kernel by the generic netlink family acp, using libnl.
 *
 * struct ctl_nl keeps a sentence that describes the last error: that of the kernel, if it has sent
 * one. Functions return 0 or -errno unless stated otherwise. The process ends if memory is
 * exhausted.
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
	uint32_t sequence;	/* of the last message sent */
	char sentence[256];	/* describes the last error */
};

/* A message from the kernel. */
struct ctl_reply {
	struct nlmsghdr *head;
	int command;
	struct nlattr *a[ACP_NL_A_MAX + 1];	/* the first attribute of each type, validated */
};

typedef void ctl_take(void *arg, const struct ctl_reply *r);

/* Connect to the family. -ENOENT: the module is not loaded. */
int ctl_nl_open(struct ctl_nl *nl);
void ctl_nl_close(struct ctl_nl *nl);

/* As ctl_nl_open(), but prints the error. Returns an exit status. */
int ctl_nl_connect(struct ctl_nl *nl);

/* Print the last error after @what, for example "job 7". Returns CTL_FAILED. */
int ctl_nl_complain(const struct ctl_nl *nl, const char *what, int err);

struct nl_msg *ctl_nl_new(const struct ctl_nl *nl, enum acp_nl_cmd command);
void ctl_nl_put_u32(struct nl_msg *m, enum acp_nl_attr attr, uint32_t value);
void ctl_nl_put_u64(struct nl_msg *m, enum acp_nl_attr attr, uint64_t value);
void ctl_nl_put_string(struct nl_msg *m, enum acp_nl_attr attr, const char *value);
void ctl_nl_put_bytes(struct nl_msg *m, enum acp_nl_attr attr, const void *bytes, int length);

/*
 * Send a request (the message is freed), and pass each reply to @take (or NULL) until it is
 * acknowledged or refused.
 */
int ctl_nl_do(struct ctl_nl *nl, struct nl_msg *m, ctl_take *take, void *arg);

/*
 * As ctl_nl_do() for a dump. A dump that was interrupted by changes is repeated, so replies are
 * passed to @take only when it is complete.
 */
int ctl_nl_dump(struct ctl_nl *nl, struct nl_msg *m, ctl_take *take, void *arg);

/* Subscribe to events. */
int ctl_nl_join(struct ctl_nl *nl);

/*
 * Process messages that arrive unsolicited, until none arrives for @wait_ms milliseconds (-1: wait
 * forever). Returns -EINTR after a signal, -ENOBUFS if messages were lost, or -ETIMEDOUT.
 */
int ctl_nl_listen(struct ctl_nl *nl, int wait_ms, ctl_take *take, void *arg);

/* Return an attribute of a reply, or 0 if it is not present. */
uint32_t ctl_reply_u32(const struct ctl_reply *r, enum acp_nl_attr attr);
uint64_t ctl_reply_u64(const struct ctl_reply *r, enum acp_nl_attr attr);

/* Format an address; its attribute may have any length. */
#define CTL_ADDRESS_TEXT	64
const char *ctl_address_text(const struct nlattr *attr, char text[CTL_ADDRESS_TEXT]);

#endif /* CTL_NL_H */
