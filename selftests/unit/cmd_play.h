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

#endif /* CMD_PLAY_H */
