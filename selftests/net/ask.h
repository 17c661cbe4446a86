/* SPDX-License-Identifier: MIT */
/*
 * Generic netlink without a library: a test sends exactly what it wrote to the family "acp", right
 * or wrong, and all replies are checked.
 */
#ifndef ASK_H
#define ASK_H

#include <linux/netlink.h>

#include "acp_nl.h"
#include "../dev/rank.h"

#define ASK_ROOM	65536

/* A socket in the network namespace of the calling thread, and the request being written. */
struct ask {
	int fd;
	uint32_t family, group;		/* numbers of the family and of its event group */
	uint32_t seq;
	char request[4096];
	char said[200];			/* message of the last error */
	bool interrupted;		/* the last dump was interrupted by a change */
};

/* A received message. */
struct answer {
	uint8_t cmd;
	uint32_t seq;
	const struct nlattr *a[ACP_NL_A_MAX + 1];	/* the first of each type */
	uint32_t count[ACP_NL_A_MAX + 1];
	char text[ASK_ROOM];
};

void ask_open(struct ask *q);

/* Begin a request; flags in addition to NLM_F_REQUEST and NLM_F_ACK, e.g. NLM_F_DUMP. */
void ask_begin(struct ask *q, uint8_t cmd, uint16_t flags);
void ask_put(struct ask *q, uint16_t attr, const void *data, uint16_t size);
void ask_u32(struct ask *q, uint16_t attr, uint32_t value);
void ask_u64(struct ask *q, uint16_t attr, uint64_t value);
void ask_text(struct ask *q, uint16_t attr, const char *text);

/*
 * Send it. Without a dump: wait for the acknowledgement, and keep the answer, if any. Returns 0 or
 * -errno. A dump: call "each" for every entry. Returns the number of entries or -errno.
 */
int ask_do(struct ask *q, struct answer *answer);
int ask_dump(struct ask *q, void (*each)(const struct answer *answer));

/* Send the request without waiting. */
void ask_send(struct ask *q);

/* Return the next unsolicited message (events, results), which must come. False: none came. */
bool ask_hear(struct ask *q, struct answer *answer);

/* True if no such message comes within ms. */
bool ask_silent(struct ask *q, unsigned int ms);

/* Join the group of events. Returns 0 or -errno. */
int ask_join(struct ask *q);

/* Return an attribute of an answer, which must be present with that size. */
uint32_t answer_u32(const struct answer *answer, int attr);
uint64_t answer_u64(const struct answer *answer, int attr);
const char *answer_text(const struct answer *answer, int attr);
static inline bool answer_has(const struct answer *answer, int attr)
{
	return answer->a[attr];
}

#endif /* ASK_H */
