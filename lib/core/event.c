// SPDX-License-Identifier: MIT
/* States of other ranks, and events from the kernel. */
#include <errno.h>
#include <sys/ioctl.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/event.h"
#include "core/job.h"
#include "core/process.h"

_Static_assert((int)ACPX_PEER_BACK == ACP_RANK_BACK && (int)ACPX_PEER_DOWN == ACP_RANK_DOWN,
	       "the states of the library are those of the device");
_Static_assert((int)ACPX_EVENT_DOWN == ACP_EVENT_DOWN && (int)ACPX_EVENT_UP == ACP_EVENT_UP,
	       "and so are the events ...");
_Static_assert((int)ACPX_EVENT_LEFT == ACP_EVENT_LEFT, "... of ranks ...");
_Static_assert((int)ACPX_EVENT_BROKEN == ACP_EVENT_BROKEN, "... and of the job");

struct acp_rank_state libacp_rank_state(uint32_t rank)
{
	struct acp_rank_state s = { .size = sizeof(s), .rank = rank };

	if (ioctl(libacp.fd, ACP_IOC_STATE, &s) < 0)
		s.state = ACP_RANK_UNKNOWN;
	return s;
}

bool libacp_rank_has_left(uint32_t rank)
{
	return rank < libacp.nprocs && libacp_rank_state(rank).state == ACP_RANK_DOWN;
}

int acpx_peer_state(int rank)
{
	struct acp_rank_state s = {
		.size = sizeof(s), .rank = (uint32_t)rank, .state = (uint32_t)-1,
	};

	if (!libacp_in() || rank < 0 || ioctl(libacp.fd, ACP_IOC_STATE, &s) < 0)
		return -1;
	return (int)s.state;
}

int acpx_query_node(int rank)
{
	if (!libacp_in() || rank < 0 || (uint32_t)rank >= libacp.nprocs)
		return -1;
	return (int)libacp_boot_node_of(&libacp.boot, (uint32_t)rank);
}

int acpx_event_fd(void)
{
	return libacp_in() ? libacp.fd : -1;
}

int acpx_next_event(struct acpx_event *event)
{
	struct acp_event e = { .size = sizeof(e) };

	if (!libacp_in() || !event)
		return -1;
	if (ioctl(libacp.fd, ACP_IOC_EVENT, &e) < 0)
		return errno == EAGAIN ? 0 : -1;
	if (!e.type) {
		errno = -libacp_no_answer();
		return -1;
	}
	*event = (struct acpx_event){
		.type = e.type, .reason = e.status, .node = -1, .color = -1, .rank = -1,
		.missed = e.missed,
	};
	if (e.type != ACP_EVENT_BROKEN)
		event->node = (int)e.node;
	if (e.type == ACP_EVENT_LEFT)
		event->rank = (int)e.rank;
	else if (e.type != ACP_EVENT_BROKEN)
		event->color = e.color;
	return 1;
}
