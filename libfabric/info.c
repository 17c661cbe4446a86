// SPDX-License-Identifier: MIT
/* fi_getinfo(): what the provider offers, to which hints, and why it offers nothing. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "info.h"

#define DEVICE	"/dev/acp"

#define RMA_CAPS	(FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define TX_CAPS		(FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_MSG | FI_TAGGED | FI_SEND)
#define RX_CAPS		(FI_RMA | FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MSG | \
			 FI_TAGGED | FI_RECV | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE)
#define DOMAIN_CAPS	(FI_LOCAL_COMM | FI_REMOTE_COMM)
#define TX_FLAGS	(FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
			 FI_DELIVERY_COMPLETE | FI_INJECT)
#define RX_FLAGS	(FI_COMPLETION | FI_MULTI_RECV)

static uint64_t all_caps(void)
{
	return RMA_CAPS | DOMAIN_CAPS | fi_acp_message_caps;
}

/* ---- Is it there? ---- */

/* Can this process open the device? Says why not. */
static bool device_usable(void)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		return true;
	}
	if (errno == ENOENT || errno == ENXIO || errno == ENODEV)
		fi_acp_info(CORE, "no " DEVICE ": the kernel module acp is not loaded\n");
	else
		fi_acp_warn(CORE, "cannot open " DEVICE ": %s\n", strerror(errno));
	return false;
}

static void tell_job(void)
{
	if (!getenv("ACP_NPROCS") && !getenv("PMIX_RANK"))
		fi_acp_info(CORE, "not started in a job (ACP_NPROCS, or a launcher with PMIx): a "
			    "domain is a job of this process alone\n");
}

/* ---- Hints ---- */

/* Returns what the hints want and we lack, or NULL. */
static const char *refuse_tx(const struct fi_tx_attr *tx)
{
	if (tx->caps & ~(TX_CAPS & all_caps()) & ~(RX_CAPS | DOMAIN_CAPS))
		return "tx_attr->caps";
	if (tx->op_flags & ~TX_FLAGS)
		return "tx_attr->op_flags";
	if (tx->msg_order & ~fi_acp_message_order)
		return "tx_attr->msg_order";
	if (tx->comp_order & ~FI_ORDER_NONE)
		return "tx_attr->comp_order";
	if (tx->inject_size > FI_ACP_INJECT)
		return "tx_attr->inject_size";
	if (tx->size > FI_ACP_OPS)
		return "tx_attr->size";
	if (tx->iov_limit > FI_ACP_IOV || tx->rma_iov_limit > FI_ACP_IOV)
		return "tx_attr->iov_limit";
	return NULL;
}

static const char *refuse_rx(const struct fi_rx_attr *rx)
{
	if (rx->caps & ~all_caps())
		return "rx_attr->caps";
	if (rx->op_flags & ~RX_FLAGS)
		return "rx_attr->op_flags";
	if (rx->msg_order & ~fi_acp_message_order)
		return "rx_attr->msg_order";
	if (rx->comp_order & ~FI_ORDER_NONE)
		return "rx_attr->comp_order";
	if (rx->iov_limit > FI_ACP_IOV)
		return "rx_attr->iov_limit";
	return NULL;
}

static const char *refuse_ep(const struct fi_ep_attr *ep)
{
	if (ep->type != FI_EP_UNSPEC && ep->type != FI_EP_RDM)
		return "ep_attr->type";
	if (ep->protocol != FI_PROTO_UNSPEC && ep->protocol != FI_ACP_PROTO)
		return "ep_attr->protocol";
	if (ep->tx_ctx_cnt > 1 || ep->rx_ctx_cnt > 1)
		return "ep_attr->tx_ctx_cnt or rx_ctx_cnt";
	if (ep->max_msg_size > (size_t)1 << 40)
		return "ep_attr->max_msg_size";
	if (ep->max_order_raw_size || ep->max_order_war_size || ep->max_order_waw_size)
		return "ep_attr->max_order_raw_size, war or waw";
	if (ep->auth_key_size)
		return "ep_attr->auth_key_size";
	return NULL;
}

/* Regions of the program's own keys are what we lack. */
static bool mr_mode_fits(uint32_t version, uint64_t caps, int mode)
{
	if (caps && !(caps & (FI_RMA | FI_ATOMIC)))
		return true;
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)) || mode == FI_MR_BASIC)
		return mode == FI_MR_UNSPEC || mode == FI_MR_BASIC;
	return (mode & FI_ACP_MR_MODE) == FI_ACP_MR_MODE;
}

static const char *refuse_domain(const struct fi_domain_attr *domain)
{
	if (domain->name && strcmp(domain->name, FI_ACP_NAME))
		return "domain_attr->name";
	if (domain->caps & ~DOMAIN_CAPS)
		return "domain_attr->caps";
	if (domain->cq_data_size > sizeof(uint64_t))
		return "domain_attr->cq_data_size";
	if (domain->mr_key_size && domain->mr_key_size < sizeof(uint64_t))
		return "domain_attr->mr_key_size";
	if (domain->ep_cnt > FI_ACP_EPS)
		return "domain_attr->ep_cnt";
	if (domain->auth_key_size)
		return "domain_attr->auth_key_size";
	return NULL;
}

/* Are there enough bits for the tags? */
static bool tags_fit(const struct fi_info *hints)
{
	const uint64_t wanted = hints->ep_attr ? hints->ep_attr->mem_tag_format : 0;
	const bool data = hints->domain_attr && hints->domain_attr->cq_data_size;
	const uint64_t tags = data ? fi_acp_message_tags_data : fi_acp_message_tags;

	/* Both have every other bit, and the first one of all. */
	return !(hints->caps & FI_TAGGED) || !(wanted & ~(tags | tags >> 1));
}

static const char *refuse(uint32_t version, const struct fi_info *hints)
{
	const char *what = NULL;

	if (hints->caps & ~all_caps())
		return "caps";
	if (hints->addr_format != FI_FORMAT_UNSPEC && hints->addr_format != FI_ACP_FORMAT)
		return "addr_format";
	if (hints->fabric_attr && hints->fabric_attr->name &&
	    strcmp(hints->fabric_attr->name, FI_ACP_NAME))
		return "fabric_attr->name";
	if (hints->domain_attr)
		what = refuse_domain(hints->domain_attr);
	if (!what && !mr_mode_fits(version, hints->caps,
				   hints->domain_attr ? hints->domain_attr->mr_mode : 0))
		what = "domain_attr->mr_mode: FI_MR_ALLOCATED and FI_MR_PROV_KEY are needed";
	if (!what && hints->ep_attr)
		what = refuse_ep(hints->ep_attr);
	if (!what && !tags_fit(hints))
		what = "ep_attr->mem_tag_format";
	if (!what && hints->tx_attr)
		what = refuse_tx(hints->tx_attr);
	if (!what && hints->rx_attr)
		what = refuse_rx(hints->rx_attr);
	return what;
}

/* ---- The answer ---- */

/* Capabilities with the ones that a program may leave out: those of both directions. */
static uint64_t caps_for(uint64_t wanted)
{
	uint64_t caps = wanted & all_caps();

	if (!caps)
		return all_caps();
	if (caps & (FI_RMA | FI_ATOMIC) &&
	    !(caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)))
		caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	if (caps & (FI_MSG | FI_TAGGED) && !(caps & (FI_SEND | FI_RECV)))
		caps |= FI_SEND | FI_RECV;
	return caps | DOMAIN_CAPS;
}

static int mr_mode_for(uint32_t version, const struct fi_info *hints)
{
	int mode = hints && hints->domain_attr ? hints->domain_attr->mr_mode : 0;

	if (FI_VERSION_LT(version, FI_VERSION(1, 5)) || mode == FI_MR_BASIC)
		return FI_MR_BASIC;
	/* No bit that the program does not know: without RMA, it need not know any. */
	return (hints ? mode : -1) & (FI_ACP_MR_MODE | FI_MR_VIRT_ADDR);
}

static void fill_tx(struct fi_tx_attr *tx, uint64_t caps, const struct fi_info *hints)
{
	tx->caps = caps & TX_CAPS;
	tx->op_flags = hints && hints->tx_attr ? hints->tx_attr->op_flags : 0;
	tx->msg_order = fi_acp_message_order;
	tx->comp_order = FI_ORDER_NONE;
	tx->inject_size = FI_ACP_INJECT;
	tx->size = FI_ACP_OPS;
	tx->iov_limit = FI_ACP_IOV;
	tx->rma_iov_limit = FI_ACP_IOV;
}

static void fill_rx(struct fi_rx_attr *rx, uint64_t caps, const struct fi_info *hints)
{
	rx->caps = caps & RX_CAPS;
	rx->op_flags = hints && hints->rx_attr ? hints->rx_attr->op_flags : 0;
	rx->msg_order = fi_acp_message_order;
	rx->comp_order = FI_ORDER_NONE;
	rx->size = FI_ACP_OPS;
	rx->iov_limit = FI_ACP_IOV;
}

static void fill_ep(struct fi_ep_attr *ep, bool data)
{
	ep->type = FI_EP_RDM;
	ep->protocol = FI_ACP_PROTO;
	ep->protocol_version = 1;
	ep->max_msg_size = (size_t)1 << 40;
	ep->mem_tag_format = data ? fi_acp_message_tags_data : fi_acp_message_tags;
	ep->tx_ctx_cnt = 1;
	ep->rx_ctx_cnt = 1;
}

/* Messages without tags have room for 32 bits; those with tags if that is asked for. */
static size_t data_size(uint64_t caps, bool wanted)
{
	if (caps & (FI_RMA | FI_ATOMIC))
		return sizeof(uint64_t);
	return caps & FI_TAGGED && !wanted ? 0 : sizeof(uint32_t);
}

static void fill_domain(struct fi_domain_attr *domain, uint64_t caps, bool data)
{
	domain->threading = FI_THREAD_SAFE;
	domain->control_progress = FI_PROGRESS_AUTO;
	domain->data_progress = FI_PROGRESS_AUTO;
	domain->resource_mgmt = FI_RM_ENABLED;
	domain->av_type = FI_AV_UNSPEC;
	domain->mr_key_size = sizeof(uint64_t);
	domain->cq_data_size = data_size(caps, data);
	domain->cq_cnt = 1 << 16;
	domain->cntr_cnt = 1 << 16;
	domain->ep_cnt = FI_ACP_EPS;
	domain->tx_ctx_cnt = FI_ACP_EPS;
	domain->rx_ctx_cnt = FI_ACP_EPS;
	domain->max_ep_tx_ctx = 1;
	domain->max_ep_rx_ctx = 1;
	domain->mr_iov_limit = 1;
	domain->mr_cnt = 1 << 16;
	domain->caps = DOMAIN_CAPS;
}

static struct fi_info *answer(uint32_t version, const struct fi_info *hints)
{
	const uint64_t caps = caps_for(hints ? hints->caps : 0);
	const bool data = hints && hints->domain_attr && hints->domain_attr->cq_data_size;
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return NULL;
	info->caps = caps;
	info->addr_format = FI_ACP_FORMAT;
	fill_tx(info->tx_attr, caps, hints);
	fill_rx(info->rx_attr, caps, hints);
	fill_ep(info->ep_attr, data);
	fill_domain(info->domain_attr, caps, data);
	info->domain_attr->mr_mode = mr_mode_for(version, hints);
	if (hints && hints->domain_attr)
		info->domain_attr->av_type = hints->domain_attr->av_type;
	info->handle = hints ? hints->handle : NULL;
	info->fabric_attr->name = strdup(FI_ACP_NAME);
	info->domain_attr->name = strdup(FI_ACP_NAME);
	if (!info->fabric_attr->name || !info->domain_attr->name) {
		fi_freeinfo(info);
		return NULL;
	}
	return info;
}

int fi_acp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info)
{
	const char *what = hints ? refuse(version, hints) : NULL;
	const bool named = hints && hints->fabric_attr && hints->fabric_attr->prov_name;

	(void)service;
	if (!device_usable())
		return -FI_ENODATA;
	if (what) {
		fi_acp_info(CORE, "not what the hints want: %s\n", what);
		return -FI_ENODATA;
	}
	/* Host names are no addresses of ours; programs exchange those of fi_getname(). */
	if (node && !(flags & FI_SOURCE) && !named)
		return -FI_ENODATA;
	tell_job();
	*info = answer(version, hints);
	return *info ? 0 : -FI_ENOMEM;
}
