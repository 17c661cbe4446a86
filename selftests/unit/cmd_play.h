/* SPDX-License-Identifier: MIT */
/* What tests of commands share. */
#ifndef CMD_PLAY_H
#define CMD_PLAY_H

#include "test.h"
#include "cmd.h"
#include "word.h"
#include "landing.h"
#include "order_model.h"

static u64 random_state;

static inline u64 rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1d;
}

static struct acp_ga_layout layout;

static inline u64 ga(u32 rank, u32 color, u64 offset)
{
	return acp_ga_make(&layout, rank, color, ACP_STAG_USER, offset);
}

/* Return a valid command for 10 ranks and 2 colors. */
static inline struct acp_msg good_cmd(u8 op)
{
	struct acp_msg m = { .op = op };

	layout = acp_ga_layout(10);
	m.dst = ga(1, 0, 1 << 16);
	m.src = ga(9, 1, 128);
	if (op == ACP_OP_COPY) {
		m.size = 100;
	} else if (op == ACP_OP_STRIDED) {
		m.a = -256ULL;
		m.b = 1024;
		m.c = ACP_BLOCKS(100, 3);
		m.size = 300;
	} else if (acp_op_indirect(op) || op == ACP_OP_GATHER) {
		m.size = 100;
	} else if (op == ACP_OP_WAIT) {
		m.origin = 9;
		m.dst = m.src;
		m.a = ~0ULL;
	} else if (op == ACP_OP_REDUCE) {
		m.size = 104;
		m.c = ACP_REDUCE(ACP_REDUCE_SUM, ACP_REDUCE_F64);
	} else if (acp_op_accumulates(op)) {
		m.size = 104;
		m.a = ACP_REDUCE(ACP_REDUCE_MIN, ACP_REDUCE_S64);
		m.b = acp_op_signals(op) ? ~0ULL : 0;
		m.c = acp_op_signals(op) ? ga(2, 1, 8) : 0;
	} else if (op > ACP_OP_STRIDED) {
		m.size = 100;
		m.b = ~0ULL;
		m.c = ga(2, 1, 8);
	} else {
		m.a = ~0ULL;
		m.b = ~0ULL;
	}
	return m;
}

#endif /* CMD_PLAY_H */
