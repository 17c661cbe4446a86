/* SPDX-License-Identifier: MIT */
/* Ranks that use libfabric with the provider acp: an endpoint each, that know each other. */
#ifndef FI_PLAY_H
#define FI_PLAY_H

#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "members.h"

#define NAME_MAX_BYTES	64U

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;		/* of sends and receives */
static struct fid_ep *ep;
static fi_addr_t peers[RANKS_MAX];

/* Each rank's name is in its starter memory. */
static inline void play_meet(void)
{
	char name[NAME_MAX_BYTES];
	size_t size = sizeof(name);
	int rank;

	CHECK_EQ(fi_getname(&ep->fid, acp_query_address(acp_query_starter_ga(acp_rank())), &size),
		 0);
	CHECK_EQ(acp_sync(), 0);
	for (rank = 0; rank < acp_procs(); rank++) {
		acp_complete(acp_copy(acp_query_starter_ga(acp_rank()) + NAME_MAX_BYTES,
				      acp_query_starter_ga(rank), NAME_MAX_BYTES,
				      ACP_HANDLE_NULL));
		memcpy(name, (char *)acp_query_address(acp_query_starter_ga(acp_rank())) +
		       NAME_MAX_BYTES, sizeof(name));
		CHECK_EQ(fi_av_insert(av, name, 1, &peers[rank], 0, NULL), 1);
	}
	CHECK_EQ(acp_sync(), 0);
}

static inline void play_open(uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 4096 };
	struct fi_av_attr av_attr = { .type = FI_AV_MAP };

	hints->caps = caps;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("acp");
	CHECK_EQ(setenv("FI_PROVIDER_PATH", PROVIDER_DIR, 1), 0);
	CHECK_EQ(fi_getinfo(FI_VERSION(1, 9), NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(hints);
	CHECK_EQ(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	CHECK_EQ(fi_domain(fabric, info, &domain, NULL), 0);
	CHECK_EQ(fi_av_open(domain, &av_attr, &av, NULL), 0);
	CHECK_EQ(fi_cq_open(domain, &cq_attr, &cq, NULL), 0);
	CHECK_EQ(fi_endpoint(domain, info, &ep, NULL), 0);
	CHECK_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
	CHECK_EQ(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	CHECK_EQ(fi_enable(ep), 0);
	play_meet();
}

static inline void play_close(void)
{
	CHECK_EQ(fi_close(&ep->fid), 0);
	CHECK_EQ(fi_close(&cq->fid), 0);
	CHECK_EQ(fi_close(&av->fid), 0);
	CHECK_EQ(fi_close(&domain->fid), 0);
	CHECK_EQ(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
}

/* What a CQ said: a completion, or an error. */
struct said {
	struct fi_cq_tagged_entry e;
	fi_addr_t source;
	int error;
	size_t olen;
};

/* True if there is one now. */
static inline bool play_read(struct said *s)
{
	struct fi_cq_err_entry err = { 0 };
	ssize_t n = fi_cq_readfrom(cq, &s->e, 1, &s->source);

	s->error = 0;
	if (n == -FI_EAGAIN)
		return false;
	if (n == 1)
		return true;
	CHECK_EQ(n, -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(cq, &err, 0), 1);
	s->e = (struct fi_cq_tagged_entry){
		.op_context = err.op_context, .flags = err.flags, .len = err.len, .buf = err.buf,
		.data = err.data, .tag = err.tag,
	};
	s->error = err.err;
	s->olen = err.olen;
	return true;
}

/* Wait for the next one. */
static inline struct said play_next(void)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	struct said s;

	while (!play_read(&s))
		CHECK(!patience_over(&p));
	return s;
}

/* Wait for that of one operation; others must not come. */
static inline struct said play_of(void *context)
{
	struct said s = play_next();

	CHECK(s.e.op_context == context);
	return s;
}

/* Call again while there is no room. */
#define PLAY_RETRY(call) \
	do { \
		struct patience retry_ = patience_begin(PATIENCE_SOON); \
		ssize_t result_; \
		while ((result_ = (call)) == -FI_EAGAIN) { \
			fi_cq_read(cq, NULL, 0); \
			CHECK(!patience_over(&retry_)); \
		} \
		CHECK_EQ(result_, 0); \
	} while (0)

#endif /* FI_PLAY_H */
