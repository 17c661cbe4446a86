// SPDX-License-Identifier: MIT
/* Collectives when the process stops being a rank: see close.h. */
#include <errno.h>

#include "acp.h"
#include "coll/close.h"
#include "coll/coll.h"
#include "coll/pool.h"
#include "core/internal.h"

/* End the round of a collective, or what it still has to tell others. */
static void settle(struct acpx_coll *c, uint64_t end)
{
	if (c->rests)
		c->queue = libacp_pool_resume(c);
	c->rests = false;
	if (libacp_pool_wait(c->queue, libacp_pool_newest(c->queue), libacp_left(end)) == 0)
		acpx_coll_test(c);
	if (!c->queue)
		return;
	libacp_pool_remove(c->queue);
	c->queue = NULL;
	if (c->state == LIBACP_COLL_IDLE)
		return;
	c->error = c->state == LIBACP_COLL_FAILED ? c->error : -ECANCELED;
	c->state = LIBACP_COLL_FAILED;
}

void libacp_coll_close(void)
{
	const uint64_t end = libacp_end_of(libacp_timeout_ms() * 1000000);
	struct acpx_coll *c;

	while ((c = libacp_pool_owner()))
		settle(c, end);
	libacp_pool_clear();
}
