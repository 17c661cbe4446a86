// SPDX-License-Identifier: MIT
/* The entry point that libfabric calls when it has loaded this library. */
#include "acp_fi.h"
#include "info.h"

int fi_acp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	(void)attr;
	(void)fabric;
	(void)context;
	return -FI_ENOSYS;
}

static void cleanup(void)
{
}

struct fi_provider fi_acp_provider = {
	.version = FI_ACP_VERSION,
	.fi_version = FI_ACP_API,
	.name = FI_ACP_NAME,
	.getinfo = fi_acp_getinfo,
	.fabric = fi_acp_fabric_open,
	.cleanup = cleanup,
};

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
	return &fi_acp_provider;
}
