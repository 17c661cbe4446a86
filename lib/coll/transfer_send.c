// SPDX-License-Identifier: MIT
/* Sends of transfers: see transfer.h. */
#include <errno.h>

#include "acp.h"
#include "coll/coll.h"

/* Can the caller send now? Returns 0 or -errno. */
static int check(const struct acpx_coll *c, enum libacp_transfer_type type)
{
	if (!c || c->transfer.type != type || libacp_transfer_arrives(c))
		return -EINVAL;
	if (!libacp_coll_is_current(c))
		return -ENOTCONN;
	if (c->state != LIBACP_COLL_IDLE)
		return c->state == LIBACP_COLL_ACTIVE ? -EBUSY : c->error;
	return 0;
}

/* Start the first round. If that fails, nothing is known to others, and nothing was sent. */
static int begin(struct acpx_coll *c)
{
	struct libacp_transfer *t = &c->transfer;
	const uint64_t tag = t->tag;
	int error;

	if (!t->size)
		return 0;
	if (libacp_is_buffered(t))
		libacp_transfer_fill(c);
	else
		libacp_transfer_set(c, t->offset, t->size);
	error = libacp_coll_begin(c);
	if (error) {
		t->tag = tag;
		t->size = 0;
	}
	return error;
}

int libacp_transfer_send(struct acpx_coll *c, enum libacp_transfer_type type, size_t offset,
			 size_t size)
{
	struct libacp_transfer *t = c ? &c->transfer : NULL;
	const int error = check(c, type);

	if (error)
		return error;
	if (offset > t->part || size > t->part - offset ||
	    (!libacp_is_bcast(t) && !t->driven && size < t->part && size > UINT32_MAX))
		return -EINVAL;
	t->offset = offset;
	t->size = size;
	return begin(c);
}

int libacp_transfer_send_array(struct acpx_coll *c, enum libacp_transfer_type type, void *array,
			       size_t size)
{
	struct libacp_transfer *t = c ? &c->transfer : NULL;
	const int error = check(c, type);

	if (error)
		return error;
	if ((size && !array) || (!libacp_is_bcast(t) && size > SIZE_MAX / (size_t)c->tree.size))
		return -EINVAL;
	t->array = array;
	t->size = size;
	t->done = 0;
	return begin(c);
}
