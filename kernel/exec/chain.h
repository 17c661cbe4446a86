/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copies along a chain of descriptors on regions: see core/chain.h.
 *
 * A chain is read and checked when the first bytes of a copy arrive (scatter), or when the copy
 * starts at the node of the chain (gather). It exists until the copy has ended, and its memory is
 * charged to the user of the job.
 */
#ifndef ACP_EXEC_CHAIN_H
#define ACP_EXEC_CHAIN_H

#include "../core/chain.h"
#include "../mem/region.h"

/**
 * acp_chain_open() - read the chain of a copy and check all of it
 * @job: the job
 * @m: command with ACP_OP_SCATTER, whose chain is at dst, or ACP_OP_GATHER: at src
 * @size: bytes of the copy
 * @status: filled in if NULL is returned: ACP_ST_
 *
 * acp_chain_close() releases the chain.
 *
 * Context: BH off.
 * Return: the chain, or NULL.
 */
struct acp_chain *acp_chain_open(struct acp_job *job, const struct acp_msg *m, u64 size,
				 u8 *status);

/**
 * acp_chain_close() - release a chain
 * @c: chain; softirqs that have found it before may still use it
 *
 * Context: any.
 */
void acp_chain_close(struct acp_chain *c);

/**
 * acp_chain_read() - gather bytes of a copy
 * @job: the job
 * @c: chain
 * @origin: rank that issued the command
 * @position: of the first byte in the copy
 * @to: kernel memory to copy to
 * @size: bytes; @position + @size is within the copy
 *
 * Context: any.
 * Return: ACP_ST_OK, or why some of the bytes must not be read.
 */
u8 acp_chain_read(struct acp_job *job, const struct acp_chain *c, u32 origin, u64 position,
		  void *to, u32 size);

/*
 * Scatter the payload of a DATA message, which begins at "at" in the skb.  If it is all of its
 * copy, the chain is released.  BH off.
 */
u8 acp_chain_apply(struct acp_job *job, struct acp_chain *c, const struct acp_msg *m,
		   struct sk_buff *skb, u32 at);

/*
 * Open the chain of a copy with both ends here; acp_chain_of() finds it, and acp_execute_end()
 * releases it.  Returns ACP_ST_.  BH off.
 */
u8 acp_chain_direct(struct acp_job *job, struct acp_msg *m);

/**
 * acp_chain_of() - get the chain of a copy
 * @m: command of acp_chain_direct(), or of an item with &acp_out.chained
 *
 * Context: any.
 * Return: the chain.
 */
static inline struct acp_chain *acp_chain_of(const struct acp_msg *m)
{
	return (struct acp_chain *)(unsigned long)m->b;
}

/*
 * Copy a part of it.  With a size of 0 only the regions and rights of the whole copy are checked.
 */
u8 acp_chain_local(struct acp_job *job, const struct acp_msg *m, u64 position, u64 size);

#endif /* ACP_EXEC_CHAIN_H */
