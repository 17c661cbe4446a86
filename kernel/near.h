/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What of a table is looked up most: a few entries, each where the low bits
 * of its number say.  A frame needs a handful of lookups, nearly always of the
 * same few ranks, regions and peers, and a walk down an xarray takes ten times
 * as long.
 *
 * Who finds another entry than it looks for, or none, asks the table.  Entries
 * are set once they are in the table, by whoever put them there, and cleared
 * when they leave it, before the grace period that they are freed after.
 * Readers as of the table: RCU.
 */
#ifndef ACP_NEAR_H
#define ACP_NEAR_H

#include <linux/atomic.h>
#include <linux/compiler.h>

#define ACP_NEAR	8	/* 2^n */

struct acp_near {
	void *entries[ACP_NEAR];
};

static inline void *acp_near_look(const struct acp_near *near, unsigned long index)
{
	/* What it points to is read by way of it: pairs with acp_near_set(). */
	return READ_ONCE(near->entries[index % ACP_NEAR]);
}

static inline void acp_near_set(struct acp_near *near, unsigned long index, void *entry)
{
	/* The entry is filled: pairs with acp_near_look(). */
	smp_store_release(&near->entries[index % ACP_NEAR], entry);
}

static inline void acp_near_clear(struct acp_near *near, unsigned long index, void *entry)
{
	cmpxchg(&near->entries[index % ACP_NEAR], entry, NULL);
}

#endif /* ACP_NEAR_H */
