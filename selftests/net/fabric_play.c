// SPDX-License-Identifier: MIT
/* Ranks that are programs of libfabric, for tests: see fabric_play.h. */
#include "../dev/isolated.h"

#include <libgen.h>
#include <limits.h>

#include "fabric_play.h"

static struct play_told *told;

void play_prepare(void)
{
	char exe[PATH_MAX] = "", path[PATH_MAX + 40];

	told = mmap(NULL, RANKS_MAX * sizeof(*told), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(told != MAP_FAILED);
	CHECK(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	snprintf(path, sizeof(path), "%s/../../libfabric", dirname(exe));
	CHECK(!access(path, F_OK));
	setenv("FI_PROVIDER_PATH", path, 1);
	setenv("FI_PROVIDER", "acp", 1);
	snprintf(path, sizeof(path), "%s/../../lib", exe);
	setenv("LD_LIBRARY_PATH", path, 1);
}

const struct play_told *play_told(int rank)
{
	return &told[rank];
}

void play_meet(void)
{
	CHECK_EQ(acp_sync(), 0);
}

void play_pass(int dead)
{
	struct patience patience = patience_begin(PATIENCE_WORK);
	const int ranks = acp_procs();

	__atomic_add_fetch(&told[0].passed, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&told[0].passed, __ATOMIC_SEQ_CST) < ranks - dead) {
		if (patience_over(&patience))
			FAIL("a rank does not come");
		sleep_ms(1);
	}
}

uint64_t play_at(const struct play *p, int rank, size_t offset)
{
	return p->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? told[rank].base + offset : offset;
}

uint64_t play_key(int rank)
{
	return told[rank].key;
}

/* ---- Opening ---- */

static void get_info(struct play *p, const struct play_wish *wish)
{
	struct fi_info *hints = fi_allocinfo();

	CHECK(hints);
	hints->caps = wish->caps ? wish->caps : FI_RMA | FI_ATOMIC;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = wish->mr_mode ? wish->mr_mode :
				      FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
	hints->domain_attr->cq_data_size = wish->cq_data_size;
	hints->fabric_attr->prov_name = strdup("acp");
	CHECK_EQ(fi_getinfo(FI_VERSION(1, 9), NULL, NULL, 0, hints, &p->info), 0);
	CHECK(!strcmp(p->info->fabric_attr->prov_name, "acp"));
	fi_freeinfo(hints);
}

struct fid_ep *play_endpoint(struct play *p, struct fid_cq *cq, uint64_t flags)
{
	struct fid_ep *ep;

	CHECK_EQ(fi_endpoint(p->domain, p->info, &ep, NULL), 0);
	CHECK_EQ(fi_ep_bind(ep, &p->av->fid, 0), 0);
	if (cq)
		CHECK_EQ(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV | flags), 0);
	return ep;
}

static void open_all(struct play *p, const struct play_wish *wish)
{
	struct fi_cq_attr cq = {
		.size = wish->cq_size, .format = wish->format ? wish->format : FI_CQ_FORMAT_TAGGED,
		.wait_obj = wish->wait,
	};
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	uint64_t access = wish->access ? wish->access : FI_REMOTE_READ | FI_REMOTE_WRITE;

	get_info(p, wish);
	CHECK_EQ(fi_fabric(p->info->fabric_attr, &p->fabric, NULL), 0);
	CHECK_EQ(fi_domain(p->fabric, p->info, &p->domain, NULL), 0);
	p->rank = acp_rank();
	CHECK_EQ(fi_av_open(p->domain, &av, &p->av, NULL), 0);
	CHECK_EQ(fi_cq_open(p->domain, &cq, &p->cq, NULL), 0);
	p->memory = pages(PLAY_BYTES, PROT_READ | PROT_WRITE);
	CHECK_EQ(fi_mr_reg(p->domain, p->memory, PLAY_BYTES, access, 0, 0, 0, &p->mr, NULL), 0);
	p->ep = play_endpoint(p, p->cq, wish->bind);
	CHECK_EQ(fi_enable(p->ep), 0);
}

void play_open(struct play *p, const struct play_wish *wish)
{
	static const struct play_wish usual;
	size_t size = PLAY_NAME;
	int r;

	memset(p, 0, sizeof(*p));
	open_all(p, wish ? wish : &usual);
	CHECK_EQ(fi_getname(&p->ep->fid, told[p->rank].name, &size), 0);
	told[p->rank].key = fi_mr_key(p->mr);
	told[p->rank].base = (uintptr_t)p->memory;
	play_meet();
	for (r = 0; r < acp_procs(); r++)
		CHECK_EQ(fi_av_insert(p->av, told[r].name, 1, &p->peer[r], 0, NULL), 1);
}

void play_close(struct play *p)
{
	CHECK_EQ(fi_close(&p->ep->fid), 0);
	CHECK_EQ(fi_close(&p->mr->fid), 0);
	CHECK_EQ(fi_close(&p->cq->fid), 0);
	CHECK_EQ(fi_close(&p->av->fid), 0);
	CHECK_EQ(fi_close(&p->domain->fid), 0);
	CHECK_EQ(fi_close(&p->fabric->fid), 0);
	fi_freeinfo(p->info);
	munmap(p->memory, PLAY_BYTES);
}

/* ---- Completions ---- */

void play_await(struct fid_cq *cq, void *entry)
{
	struct patience patience = patience_begin(PATIENCE_SOON);
	struct fi_cq_err_entry error = { 0 };
	ssize_t n;

	while ((n = fi_cq_read(cq, entry, 1)) == -FI_EAGAIN) {
		if (patience_over(&patience))
			FAIL("no completion");
		sched_yield();
	}
	if (n == 1)
		return;
	fi_cq_readerr(cq, &error, 0);
	FAIL("fi_cq_read: %zd, error %d, ACP status %d", n, error.err, error.prov_errno);
}

struct fi_cq_err_entry play_await_error(struct fid_cq *cq)
{
	struct patience patience = patience_begin(PATIENCE_SOON);
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = { 0 };
	ssize_t n;

	while ((n = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN) {
		if (patience_over(&patience))
			FAIL("no error");
		sched_yield();
	}
	CHECK_EQ(n, -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(cq, &error, 0), 1);
	return error;
}

void play_nothing(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;

	CHECK_EQ(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
}
