/* SPDX-License-Identifier: MIT */
/* Ranks on two nodes, and requests of the netlink family: what its tests share. */
#ifndef NETLINK_PLAY_H
#define NETLINK_PLAY_H

#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/genetlink.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ask.h"
#include "nodes.h"

#define OTHER	1234		/* an otherwise unused user */

static struct nodes net;
static struct rank r[4];
static struct ask q;
static struct answer got;

/* Two ranks on two nodes; q sends requests on node 0. */
static inline void begin(uint32_t timeout_ms)
{
	const struct acp_join wish = { .timeout_ms = timeout_ms, .open_timeout_ms = timeout_ms };

	nodes_open(&net, 2, 1, false);
	nodes_ranks_like(&net, r, 2, &wish);
	nodes_enter(&net, 0);
	ask_open(&q);
}

static inline uint32_t job(void)
{
	return r[0].join.job;
}

static inline int simple(uint8_t cmd)
{
	ask_begin(&q, cmd, 0);
	return ask_do(&q, &got);
}

static inline int of_job(uint8_t cmd, uint32_t id)
{
	ask_begin(&q, cmd, 0);
	ask_u32(&q, ACP_NL_A_JOB, id);
	return ask_do(&q, &got);
}

static inline int dump_of(uint8_t cmd, uint32_t id, void (*each)(const struct answer *a))
{
	ask_begin(&q, cmd, NLM_F_DUMP);
	if (id)
		ask_u32(&q, ACP_NL_A_JOB, id);
	return ask_dump(&q, each);
}

static struct answer flow;

static inline void note_flow(const struct answer *a)
{
	uint32_t i;

	flow = *a;
	for (i = 0; i <= ACP_NL_A_MAX; i++)
		if (a->a[i])
			flow.a[i] = (const void *)(flow.text + ((const char *)a->a[i] - a->text));
}

static inline int limit_to(const char *name, uint64_t value)
{
	ask_begin(&q, ACP_NL_CMD_LIMIT_SET, 0);
	ask_text(&q, ACP_NL_A_NAME, name);
	ask_u64(&q, ACP_NL_A_VALUE, value);
	return ask_do(&q, NULL);
}

static inline int color(uint8_t cmd, uint32_t number, const char *address)
{
	uint8_t addr[16];
	int six = address && strchr(address, ':');

	ask_begin(&q, cmd, 0);
	ask_u32(&q, ACP_NL_A_COLOR, number);
	if (address) {
		CHECK_EQ(inet_pton(six ? AF_INET6 : AF_INET, address, addr), 1);
		ask_put(&q, ACP_NL_A_ADDRESS, addr, six ? 16 : 4);
	}
	return ask_do(&q, NULL);
}

/* Become another user without capabilities, with a new socket. */
static inline void become_other(void)
{
	CHECK_EQ(setgroups(0, NULL), 0);
	CHECK_EQ(setresgid(OTHER, OTHER, OTHER), 0);
	CHECK_EQ(setresuid(OTHER, OTHER, OTHER), 0);
	ask_open(&q);
}

#endif /* NETLINK_PLAY_H */
