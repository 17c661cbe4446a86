/* SPDX-License-Identifier: MIT */
/*
 * Ranks that are programs of libfabric, for tests: each has a domain, a region, an endpoint. The
 * provider is that of the tree.
 */
#ifndef FABRIC_PLAY_H
#define FABRIC_PLAY_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "members.h"

#define PLAY_BYTES	(1U << 20)	/* of the region of a rank */
#define PLAY_NAME	64		/* bytes that an address may have */

/* What a rank tells the others, in memory that all processes of the test share. */
struct play_told {
	char name[PLAY_NAME];
	uint64_t key, base;
	int passed;
};

struct play {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	char *memory;			/* PLAY_BYTES, registered */
	int rank;
	fi_addr_t peer[RANKS_MAX];
};

/* What a rank wants; 0: what is usual. */
struct play_wish {
	uint64_t caps;
	int mr_mode;
	uint64_t access;		/* of the region */
	enum fi_cq_format format;
	enum fi_wait_obj wait;
	size_t cq_size;
	size_t cq_data_size;
	uint64_t bind;			/* further flags for binding the CQ */
};

/* Before the ranks start: memory that they share, and where the provider is. */
void play_prepare(void);

/* In a rank: open everything, and know all peers. */
void play_open(struct play *p, const struct play_wish *wish);

/* A further endpoint, bound to the AV and this CQ, not enabled. */
struct fid_ep *play_endpoint(struct play *p, struct fid_cq *cq, uint64_t flags);

/* Close everything; the ranks leave together. */
void play_close(struct play *p);

/* All ranks come here. */
void play_meet(void);

/* The same with shared memory, however many ranks have died: all but so many come here. Once. */
void play_pass(int dead);

/* What another rank has told. */
const struct play_told *play_told(int rank);

/* The address to name for byte "offset" of the region of a rank. */
uint64_t play_at(const struct play *p, int rank, size_t offset);
uint64_t play_key(int rank);

/* Wait for one completion; it is no error. Or for an error, which is returned. */
void play_await(struct fid_cq *cq, void *entry);
struct fi_cq_err_entry play_await_error(struct fid_cq *cq);

/* No completion is there. */
void play_nothing(struct fid_cq *cq);

#endif /* FABRIC_PLAY_H */
