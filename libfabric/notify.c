// SPDX-License-Identifier: MIT
/* Remote CQ data: a write ends with a message without bytes into the mailbox of the endpoint. */
#include <errno.h>
#include <string.h>

#include "acp_fi.h"

#define BYTES	65536u		/* of the heap: 2,700 of them can wait */

void fi_acp_notify_open(struct fi_acp_ep *ep)
{
	int error;

	if (!(ep->caps & FI_REMOTE_WRITE) || !ep->rx_cq)
		return;
	error = acpx_mailbox_create(BYTES, 0, &ep->notify);
	if (error) {
		fi_acp_warn(EP_CTRL, "no remote CQ data: no memory in the heap (ACP_HEAP_SIZE): %s\n",
			    strerror(-error));
		ep->notify = NULL;
		return;
	}
	ep->addr.notify = acpx_mailbox_ga(ep->notify);
}

void fi_acp_notify_close(struct fi_acp_ep *ep)
{
	if (ep->notify)
		acpx_mailbox_free(ep->notify);
	ep->notify = NULL;
}

/* What does not fit into the CQ waits in the mailbox. */
void fi_acp_notify_progress(struct fi_acp_ep *ep)
{
	struct fi_acp_entry entry = {
		.e.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
	};
	struct acpx_message message;

	while (fi_acp_cq_reserve(ep->rx_cq)) {
		if (acpx_recv(ep->notify, NULL, 0, &message, 0) < 0) {
			fi_acp_cq_unreserve(ep->rx_cq);
			return;
		}
		entry.e.data = message.tag;
		entry.source = FI_ADDR_NOTAVAIL;
		fi_acp_cq_write(ep->rx_cq, &entry);
	}
}
