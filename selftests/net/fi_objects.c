// SPDX-License-Identifier: MIT
/*
 * The provider of libfabric: what it says of itself, and its objects: domains, address vectors,
 * event queues, endpoints, regions.
 */
#include "../dev/isolated.h"

#include <grp.h>
#include <sys/wait.h>

#include "fabric_play.h"

#define RANKS	2

static struct play p;

static void run(void (*body)(void))
{
	play_prepare();
	members_run(RANKS, 1, body);
}

/* ---- fi_info, fi_getinfo() ---- */

/* Run a command; its output must have the text. Returns its exit status. */
static int says(const char *command, const char *text)
{
	char line[1000];
	bool found = false;
	FILE *f = popen(command, "r");
	int status;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		found = found || strstr(line, text);
	status = pclose(f);
	if (!found)
		FAIL("%s did not say: %s", command, text);
	return WEXITSTATUS(status);
}

TEST(fi_info_shows_the_provider)
{
	play_prepare();
	CHECK_EQ(says("fi_info -p acp 2>&1", "FI_EP_RDM"), 0);
	CHECK_EQ(says("FI_LOG_LEVEL=info fi_info -p acp 2>&1", "not started in a job"), 0);
	CHECK_EQ(says("ACP_NPROCS=2 FI_LOG_LEVEL=info fi_info -p acp 2>&1; true", "acp"), 0);
}

TEST(fi_info_says_why_there_is_nothing)
{
	play_prepare();
	/* Without supplementary groups, so that no rule for the device helps. */
	CHECK(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
	CHECK(says("FI_LOG_LEVEL=warn fi_info -p acp 2>&1", "cannot open /dev/acp: Permission "
		   "denied") != 0);
}

static struct fi_info *hints_for(uint64_t caps, int mr_mode)
{
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup("acp");
	hints->caps = caps;
	hints->domain_attr->mr_mode = mr_mode;
	return hints;
}

static int ask(struct fi_info *hints, struct fi_info **info)
{
	int error = fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, info);

	fi_freeinfo(hints);
	return error;
}

#define MODE	(FI_MR_ALLOCATED | FI_MR_PROV_KEY)

TEST(getinfo__answers_what_the_hints_want)
{
	struct fi_info *info, *hints;

	play_prepare();
	CHECK_EQ(ask(hints_for(FI_RMA, MODE | FI_MR_VIRT_ADDR | FI_MR_LOCAL), &info), 0);
	CHECK_EQ(info->domain_attr->mr_mode, MODE | FI_MR_VIRT_ADDR);
	CHECK_EQ(info->caps & (FI_RMA | FI_READ | FI_REMOTE_WRITE),
		 FI_RMA | FI_READ | FI_REMOTE_WRITE);
	CHECK(!(info->caps & FI_ATOMIC));
	CHECK_EQ(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
	fi_freeinfo(info);
	CHECK_EQ(ask(hints_for(FI_RMA, FI_MR_BASIC), &info), 0);
	CHECK_EQ(info->domain_attr->mr_mode, FI_MR_BASIC);
	fi_freeinfo(info);
	CHECK_EQ(ask(hints_for(FI_ATOMIC, MODE), &info), 0);
	CHECK_EQ(info->domain_attr->mr_mode, MODE);
	fi_freeinfo(info);
	hints = hints_for(FI_RMA, MODE);
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	CHECK_EQ(ask(hints, &info), 0);
	CHECK_EQ(info->tx_attr->op_flags, FI_DELIVERY_COMPLETE);
	fi_freeinfo(info);
	/* Messages need no regions, so no bit that the program has not offered. */
	CHECK_EQ(ask(hints_for(FI_TAGGED, FI_MR_LOCAL), &info), 0);
	CHECK_EQ(info->domain_attr->mr_mode, 0);
	fi_freeinfo(info);
	hints = hints_for(FI_TAGGED, 0);
	hints->ep_attr->mem_tag_format = (1ULL << 60) - 1;
	CHECK_EQ(ask(hints, &info), 0);
	fi_freeinfo(info);
}

TEST(getinfo__refuses_what_it_lacks)
{
	struct fi_info *info, *hints;

	play_prepare();
	CHECK_EQ(ask(hints_for(FI_RMA, 0), &info), -FI_ENODATA);
	CHECK_EQ(ask(hints_for(FI_RMA, FI_MR_PROV_KEY), &info), -FI_ENODATA);
	CHECK_EQ(ask(hints_for(FI_MULTICAST, MODE), &info), -FI_ENODATA);
	hints = hints_for(FI_RMA, MODE);
	hints->ep_attr->type = FI_EP_MSG;
	CHECK_EQ(ask(hints, &info), -FI_ENODATA);
	hints = hints_for(FI_RMA, MODE);
	hints->tx_attr->msg_order = FI_ORDER_WAW;
	CHECK_EQ(ask(hints, &info), -FI_ENODATA);
	hints = hints_for(FI_RMA, MODE);
	hints->tx_attr->inject_size = 257;
	CHECK_EQ(ask(hints, &info), -FI_ENODATA);
	hints = hints_for(FI_RMA, MODE);
	hints->ep_attr->tx_ctx_cnt = 2;
	CHECK_EQ(ask(hints, &info), -FI_ENODATA);
	hints = hints_for(FI_TAGGED, 0);
	hints->ep_attr->mem_tag_format = 1ULL << 60;
	CHECK_EQ(ask(hints, &info), -FI_ENODATA);
	hints = hints_for(FI_TAGGED, 0);
	hints->ep_attr->mem_tag_format = 1ULL << 42;
	hints->domain_attr->cq_data_size = 4;
	CHECK_EQ(ask(hints, &info), -FI_ENODATA);
}

/* ---- Domains ---- */

static void write_once(void)
{
	const int there = !p.rank;
	struct fi_cq_tagged_entry e;

	fill(p.memory, 5000, (uint64_t)p.rank);
	CHECK_EQ(fi_write(p.ep, p.memory, 5000, NULL, p.peer[there], play_at(&p, there, 6000),
			  play_key(there), NULL), 0);
	play_await(p.cq, &e);
	play_meet();
	CHECK(filled(p.memory + 6000, 5000, (uint64_t)there));
	play_meet();
}

static void again(void)
{
	struct fid_domain *second;
	int i;

	for (i = 0; i < 3; i++) {
		play_open(&p, NULL);
		CHECK_EQ(fi_domain(p.fabric, p.info, &second, NULL), 0);
		CHECK_EQ(fi_close(&p.fabric->fid), -FI_EBUSY);
		CHECK_EQ(fi_close(&p.domain->fid), -FI_EBUSY);
		CHECK_EQ(fi_close(&second->fid), 0);
		write_once();
		play_close(&p);
		CHECK_EQ(acp_rank(), -1);
	}
}

TEST(domains_share_a_job_that_can_be_left_and_joined_again)
{
	run(again);
}

/* The program is a rank itself: its job is used, and its mode is left as it was. */
static void in_a_program(void)
{
	CHECK_EQ(acp_init(NULL, NULL), 0);
	play_open(&p, NULL);
	write_once();
	play_close(&p);
	CHECK(acp_rank() >= 0);
	CHECK_EQ(acpx_set_error_mode(ACPX_ERRORS_ABORT), ACPX_ERRORS_ABORT);
	CHECK_EQ(acp_finalize(), 0);
}

TEST(a_rank_of_acp_may_use_libfabric)
{
	run(in_a_program);
}

/* ---- Address vectors, event queues ---- */

/* More than the first table has room for, and holes in it. */
static void many_addresses(void)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	char name[PLAY_NAME];
	struct fid_av *av;
	size_t size;
	fi_addr_t at, i;

	CHECK_EQ(fi_av_open(p.domain, &attr, &av, NULL), 0);
	for (i = 0; i < 300; i++)
		CHECK(fi_av_insert(av, play_told(i % RANKS)->name, 1, &at, 0, NULL) == 1 &&
		      at == i);
	for (i = 0; i < 300; i += 3)
		CHECK_EQ(fi_av_remove(av, &i, 1, 0), 0);
	for (i = 0; i < 300; i++) {
		size = sizeof(name);
		CHECK_EQ(fi_av_lookup(av, i, name, &size), i % 3 ? 0 : -FI_EINVAL);
		CHECK(i % 3 == 0 || !memcmp(name, play_told(i % RANKS)->name, size));
	}
	for (i = 0; i < 300; i += 3)
		CHECK(fi_av_insert(av, play_told(0)->name, 1, &at, 0, NULL) == 1 && at == i);
	CHECK_EQ(fi_close(&av->fid), 0);
}

static void addresses(void)
{
	char wrong[PLAY_NAME] = "no address", name[PLAY_NAME], text[64];
	fi_addr_t at[3];
	size_t size = PLAY_NAME, length = sizeof(text);
	int errors[3];
	char three[3 * 32];

	play_open(&p, NULL);
	CHECK_EQ(fi_getname(&p.ep->fid, name, &size), 0);
	CHECK_EQ(size, 32);
	memcpy(three, play_told(0)->name, 32);
	memcpy(three + 32, wrong, 32);
	memcpy(three + 64, play_told(1)->name, 32);
	CHECK_EQ(fi_av_insert(p.av, three, 3, at, FI_SYNC_ERR, errors), 2);
	CHECK(at[0] == 2 && at[1] == FI_ADDR_NOTAVAIL && at[2] == 3);
	CHECK(!errors[0] && errors[1] == FI_EINVAL && !errors[2]);
	CHECK_EQ(fi_av_lookup(p.av, at[2], name, &size), 0);
	CHECK(!memcmp(name, play_told(1)->name, 32));
	CHECK(!strcmp(fi_av_straddr(p.av, name, text, &length), "fi_acp://1/0"));
	CHECK_EQ(length, strlen(text) + 1);
	CHECK_EQ(fi_av_remove(p.av, at, 1, 0), 0);
	CHECK_EQ(fi_av_remove(p.av, at, 1, 0), -FI_EINVAL);
	CHECK_EQ(fi_av_lookup(p.av, at[0], name, &size), -FI_EINVAL);
	CHECK_EQ(fi_av_insert(p.av, three, 1, at, 0, NULL), 1);
	CHECK_EQ(at[0], 2);		/* the place that has become free */
	many_addresses();
	CHECK_EQ(fi_av_insertsvc(p.av, "host", "1", at, 0, NULL), -FI_ENOSYS);
	play_meet();
	play_close(&p);
}

TEST(addresses_are_inserted_found_and_removed)
{
	run(addresses);
}

static void events(void)
{
	struct fi_av_attr attr = { .type = FI_AV_MAP, .flags = FI_EVENT };
	struct fi_eq_attr eq_attr = { .size = 1, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_entry entry;
	struct fid_eq *eq;
	struct fid_av *av;
	fi_addr_t at;
	uint32_t type;

	play_open(&p, NULL);
	CHECK_EQ(fi_eq_open(p.fabric, &eq_attr, &eq, NULL), 0);
	CHECK_EQ(fi_av_open(p.domain, &attr, &av, &av), 0);
	CHECK_EQ(fi_av_bind(av, &eq->fid, 0), 0);
	CHECK_EQ(fi_close(&eq->fid), -FI_EBUSY);
	CHECK_EQ(fi_eq_sread(eq, &type, &entry, sizeof(entry), 20, 0), -FI_EAGAIN);
	CHECK_EQ(fi_av_insert(av, play_told(1)->name, 1, &at, 0, &at), 0);
	CHECK_EQ(at, 0);
	CHECK_EQ(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), -FI_EAGAIN);
	CHECK_EQ(fi_av_insert(av, play_told(1)->name, 1, &at, 0, &at), -FI_EAGAIN);
	CHECK_EQ(fi_eq_read(eq, &type, &entry, sizeof(entry), FI_PEEK), sizeof(entry));
	CHECK_EQ(fi_eq_sread(eq, &type, &entry, sizeof(entry), -1, 0), sizeof(entry));
	CHECK_EQ(type, FI_AV_COMPLETE);
	CHECK(entry.fid == &av->fid && entry.context == &at && entry.data == 1);
	CHECK_EQ(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	CHECK_EQ(fi_eq_read(eq, &type, &entry, 1, 0), -FI_ETOOSMALL);
	CHECK_EQ(fi_eq_read(eq, &type, &entry, sizeof(entry), 0), sizeof(entry));
	/* The insertion that was refused has inserted nothing. */
	CHECK_EQ(fi_av_insert(av, play_told(1)->name, 1, &at, 0, &at), 0);
	CHECK_EQ(at, 1);
	CHECK_EQ(fi_close(&av->fid), 0);
	CHECK_EQ(fi_close(&eq->fid), 0);
	play_meet();
	play_close(&p);
}

TEST(insertions_are_reported_to_an_event_queue)
{
	run(events);
}

/* ---- Endpoints ---- */

static void endpoints(void)
{
	struct fid_ep *ep[63];
	char name[PLAY_NAME];
	size_t size = 8, i;

	play_open(&p, NULL);
	CHECK_EQ(fi_getname(&p.ep->fid, name, &size), -FI_ETOOSMALL);
	CHECK_EQ(size, 32);
	CHECK_EQ(fi_ep_bind(p.ep, &p.av->fid, 0), -FI_EOPBADSTATE);
	CHECK_EQ(fi_endpoint(p.domain, p.info, &ep[0], NULL), 0);
	CHECK_EQ(fi_enable(ep[0]), -FI_ENOAV);
	CHECK_EQ(fi_ep_bind(ep[0], &p.av->fid, 0), 0);
	CHECK_EQ(fi_enable(ep[0]), -FI_ENOCQ);
	CHECK_EQ(fi_getname(&ep[0]->fid, name, &size), -FI_EOPBADSTATE);
	CHECK_EQ(fi_write(ep[0], p.memory, 8, NULL, 0, 0, 0, NULL), -FI_EOPBADSTATE);
	CHECK_EQ(fi_close(&ep[0]->fid), 0);
	for (i = 0; i < 8; i++) {
		ep[i] = play_endpoint(&p, p.cq, 0);
		CHECK_EQ(fi_enable(ep[i]), 0);
		CHECK_EQ(fi_getname(&ep[i]->fid, name, &size), 0);
		CHECK(memcmp(name, play_told(p.rank)->name, 32));
		CHECK_EQ(fi_cancel(&ep[i]->fid, &p), -FI_ENOENT);
	}
	write_once();
	while (i--)
		CHECK_EQ(fi_close(&ep[i]->fid), 0);
	play_close(&p);
}

TEST(a_process_has_several_endpoints)
{
	run(endpoints);
}

/* ---- Regions ---- */

static void regions(void)
{
	const struct iovec two[2] = { { p.memory, 8 }, { p.memory, 8 } };
	struct fi_cq_tagged_entry e;
	struct fid_mr *mr;
	char *memory;

	play_open(&p, NULL);
	memory = pages(8192, PROT_READ);
	CHECK_EQ(fi_mr_reg(p.domain, memory, 8192, FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL),
		 -FI_EFAULT);
	CHECK_EQ(fi_mr_reg(p.domain, memory, 8192, FI_REMOTE_READ, 0, 0, 0, &mr, NULL), 0);
	/* A source that cannot be written, longer than what is copied. */
	CHECK_EQ(fi_write(p.ep, memory, 8192, fi_mr_desc(mr), p.peer[0], play_at(&p, 0, 0),
			  play_key(0), NULL), 0);
	play_await(p.cq, &e);
	CHECK_EQ(fi_close(&mr->fid), 0);
	CHECK_EQ(fi_mr_reg(p.domain, memory, 0, FI_REMOTE_READ, 0, 0, 0, &mr, NULL), -FI_EINVAL);
	CHECK_EQ(fi_mr_regv(p.domain, two, 2, FI_REMOTE_READ, 0, 0, 0, &mr, NULL), -FI_EINVAL);
	CHECK_EQ(fi_mr_reg(p.domain, p.memory, 8, FI_REMOTE_READ, 0, 0, FI_RMA_EVENT, &mr, NULL),
		 -FI_EBADFLAGS);
	play_meet();
	play_close(&p);
}

TEST(regions_have_the_rights_that_were_asked_for)
{
	run(regions);
}
