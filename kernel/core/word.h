/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Words that commands wait for (ACP_OP_WAIT): what they say, and the ranks that a command names.
 */
#ifndef ACP_CORE_WORD_H
#define ACP_CORE_WORD_H

#include "port.h"
#include "frame.h"
#include "acp_abi.h"

#define ACP_WAIT_NAMES	6	/* ranks that a command names, at most */
#define ACP_WAIT_NOBODY	(~0u)

/**
 * acp_wait_names() - does a command that waits for a word name any rank?
 * @m: ACP_OP_WAIT, after acp_cmd_from_entry()
 *
 * Context: Any context.
 * Return: True if it does.
 */
static inline bool acp_wait_names(const struct acp_msg *m)
{
	return m->c | m->size | m->b;
}

/**
 * acp_wait_name() - get one of the ranks that a command names which waits for a word
 * @m: ACP_OP_WAIT, after acp_cmd_from_entry()
 * @i: less than ACP_WAIT_NAMES
 *
 * Context: Any context.
 * Return: The rank; ACP_WAIT_NOBODY: none.
 */
static inline u32 acp_wait_name(const struct acp_msg *m, u32 i)
{
	u64 two = i < 2 ? m->c : i < 4 ? m->size : m->b;

	return (u32)(two >> (i & 1) * 32) - 1;
}

enum acp_word {
	ACP_WORD_BEFORE,	/* it has not reached the value */
	ACP_WORD_REACHED,
	ACP_WORD_IS_REVOKED,
};

/**
 * acp_word_state() - what does a word say to a command that waits for it?
 * @word: the word
 * @value: the value that the command waits for
 *
 * Context: Any context.
 * Return: A value of enum acp_word.
 */
static inline enum acp_word acp_word_state(u64 word, u64 value)
{
	if ((word - value) >> 63)
		return ACP_WORD_BEFORE;
	return ACP_WORD_REVOKED_FOR(word, value) ? ACP_WORD_IS_REVOKED : ACP_WORD_REACHED;
}

#endif /* ACP_CORE_WORD_H */
