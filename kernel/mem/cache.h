/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A lookup cache of a table.  The low bits of an entry's number select its slot.  A frame needs a
 * few lookups, nearly always of the same ranks, regions and peers, and a walk of an xarray takes
 * ten times as long.
 *
 * A reader that finds no entry, or an entry with another number, searches the table.  Code that
 * adds an entry to the table sets it here afterwards.  Code that removes an entry clears it here,
 * before the grace period after which the entry is freed.  Readers need the same protection as for
 * the table: RCU.
 */
#ifndef ACP_CACHE_H
#define ACP_CACHE_H

#include <linux/atomic.h>
#include <linux/compiler.h>

#define ACP_CACHE_ENTRIES	8	/* 2^n */

struct acp_cache {
	void *entries[ACP_CACHE_ENTRIES];
};

/**
 * acp_cache_get() - read the slot of a number
 * @cache: the cache
 * @index: number of the wanted entry
 *
 * The caller must compare the entry's number: other entries share the slot.
 *
 * Context: RCU read side, or BH off.
 * Return: the entry in the slot, or NULL.
 */
static inline void *acp_cache_get(const struct acp_cache *cache, unsigned long index)
{
	/* Address dependency orders the reads of the entry: pairs with acp_cache_set(). */
	return READ_ONCE(cache->entries[index % ACP_CACHE_ENTRIES]);
}

/**
 * acp_cache_set() - put an entry into the slot of its number
 * @cache: the cache
 * @index: number of the entry
 * @entry: the entry, which is in the table already
 *
 * Context: any; the caller serializes it with acp_cache_clear() of the same entry.
 */
static inline void acp_cache_set(struct acp_cache *cache, unsigned long index, void *entry)
{
	/* Publish an initialized entry: pairs with acp_cache_get(). */
	smp_store_release(&cache->entries[index % ACP_CACHE_ENTRIES], entry);
}

/**
 * acp_cache_clear() - remove an entry from its slot, if it is there
 * @cache: the cache
 * @index: number of the entry
 * @entry: the entry
 *
 * Context: any; before the grace period after which the entry is freed.
 */
static inline void acp_cache_clear(struct acp_cache *cache, unsigned long index, void *entry)
{
	cmpxchg(&cache->entries[index % ACP_CACHE_ENTRIES], entry, NULL);
}

#endif /* ACP_CACHE_H */
