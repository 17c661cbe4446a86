/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Watches whether the process still has the pages of a region mapped.
 *
 * An MMU notifier reports each change of the mapping before it happens, and why.  Unmapping revokes
 * the region at once.  After any other change that can replace pages, a worker compares the pages
 * that the process has with those of the region.  They are pinned: until then nobody else can get
 * them.
 */
#ifndef ACP_MAPPING_H
#define ACP_MAPPING_H

struct acp_region;

/**
 * acp_mapping_init() - create what all regions share
 *
 * Context: process, when the module is loaded.
 * Return: 0 or -ENOMEM.
 */
int acp_mapping_init(void);

/**
 * acp_mapping_exit() - undo acp_mapping_init(), when no regions are left
 *
 * Context: process, when the module is unloaded.
 */
void acp_mapping_exit(void);

/**
 * acp_mapping_attach() - pin the pages of a new region and watch their mapping
 * @r: region of the calling process
 *
 * The notifier is inserted first, then changes in progress are waited for, then pages are pinned.
 * Changes from the insertion on are recorded.
 *
 * Context: process, may sleep.
 * Return: 0, -EFAULT, -ENOMEM or -EINTR; acp_mapping_detach() must follow in any case.
 */
int acp_mapping_attach(struct acp_region *r);

/**
 * acp_mapping_settle() - complete the checks that changes up to now have caused
 * @r: region
 *
 * Checks that are repeated because a page cannot be looked at now are not waited for.
 *
 * Context: process that has the mapping, may sleep.
 */
void acp_mapping_settle(struct acp_region *r);

/**
 * acp_mapping_detach() - end watching and unpin the pages
 * @r: region that nobody accesses
 *
 * Context: process, may sleep.
 */
void acp_mapping_detach(struct acp_region *r);

#endif /* ACP_MAPPING_H */
