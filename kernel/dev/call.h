/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls of acp_abi.h: their argument, a structure that may grow, and the calls on a rank
 * (rank_call.c).  dev.c has the others: they concern an open file or a queue.
 */
#ifndef ACP_CALL_H
#define ACP_CALL_H

#include <linux/types.h>
#include <linux/uidgid.h>
#include "acp_abi.h"

struct acp_node;
struct acp_rank;

/* The argument of a call. */
struct acp_call {
	void __user *arg;
	u32 size;		/* of the caller's structure, from the number of the call */
};

/*
 * Read the caller's structure.  The kernel's has @size bytes, its first version had @least.
 * Process context.
 */
int acp_call_read_struct(const struct acp_call *c, void *to, size_t size, size_t least);

#define acp_call_read(c, to, name)						\
	({									\
		static_assert(sizeof(*(to)) >= ACP_##name##_SIZE_0);		\
		acp_call_read_struct(c, to, sizeof(*(to)), ACP_##name##_SIZE_0);	\
	})

/* Write all but the size field, which stays the caller's: the structure may be used again. */
int acp_call_write_struct(const struct acp_call *c, const void *from, size_t size);

#define acp_call_write(c, from)	acp_call_write_struct(c, from, sizeof(*(from)))

/*
 * A call fails because a limit is reached: notify administrators, and write the limit to the field
 * at @offset of the caller's structure.  Return what the call returns.
 */
int acp_call_over_limit(const struct acp_call *c, struct acp_node *node, kuid_t uid, int err,
			size_t offset);

/* Execute the call with that number, which is bounded against speculation, on a rank. */
int acp_rank_call(struct acp_rank *rank, u32 number, const struct acp_call *c);

#endif /* ACP_CALL_H */
