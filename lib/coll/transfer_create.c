// SPDX-License-Identifier: MIT
/* Creation of transfers: see transfer.h. */
#include <errno.h>
#include <stdlib.h>

#include "acp.h"
#include "coll/create.h"
#include "coll/pieces.h"
#include "coll/step.h"

#define PIECE		(64u << 10)		/* bytes */

/* Register the array, or have a buffer of that size, "part" bytes of which are of a member. */
static void set_memory(struct libacp_creation *n, void *array, size_t size, size_t part)
{
	struct acpx_coll *c = n->coll;
	struct libacp_transfer *t = &c->transfer;
	acp_ga_t ga = ACP_GA_NULL;

	libacp_creation_agree(n, size);
	t->part = part;
	if (!part) {
		libacp_creation_fail(n, -EINVAL);
	} else if (libacp_is_buffered(t)) {
		c->scratch_bytes = size;
		n->told_scratch = true;
	} else {
		t->key = array ? acp_register_memory(array, size, 0) : ACP_ATKEY_NULL;
		if (t->key == ACP_ATKEY_NULL)
			libacp_creation_fail(n, array && errno ? -errno : -EINVAL);
		else
			ga = acp_query_ga(t->key, array);
	}
	libacp_creation_whole(n, ga, size, PIECE);
}

/* Arrays have parts that may be sent alone, so there is no chain of members. */
static int radix_of(size_t size)
{
	return size <= PIECE ? LIBACP_RADIX_MAX : 2;
}

/* Read where all members have their areas and arrays. */
static int learn_all(struct libacp_creation *n, struct libacp_exchange *x)
{
	struct acpx_coll *c = n->coll;
	struct libacp_transfer *t = &c->transfer;
	struct libacp_told told;
	int error = 0, i;

	if (!t->areas)
		return 0;
	for (i = 0; i < c->tree.size && !error; i++) {
		error = libacp_creation_told(x, i, &told);
		t->areas[i] = told.area;
		t->arrays[i] = told.buffer;
	}
	return error;
}

/* The caller drives its sends: it needs 16 bytes for each member. */
static void set_driver(struct libacp_creation *n, uint32_t counter)
{
	struct libacp_transfer *t = &n->coll->transfer;
	const size_t size = (size_t)n->coll->tree.size;

	n->coll->tagged = counter;
	n->coll->telling = (uint32_t)size - 1;
	t->areas = malloc(2 * size * sizeof(*t->areas));
	t->arrays = t->areas ? t->areas + size : NULL;
	if (!t->areas)
		libacp_creation_fail(n, -ENOMEM);
}

/* ---- Broadcast ---- */

static int end_bcast(struct libacp_creation *n, enum libacp_transfer_type type, void *array,
		     size_t size, bool driven, acpx_coll_t *coll)
{
	struct acpx_coll *c = n->coll;

	c->transfer.type = type;
	c->transfer.driven = driven;
	set_memory(n, array, size, size);
	if (driven && c->number == 0)
		set_driver(n, LIBACP_LINE_DOWN);
	if (!driven) {
		c->tagged = LIBACP_LINE_MORE;
		c->lines += libacp_round_pieces(c);
	}
	n->learn = learn_all;
	libacp_creation_tree(n, 0, driven ? 2 : radix_of(size));
	return libacp_creation_end(n, coll);
}

int acpx_coll_bcast_direct_create(acpx_group_t group, void *array, size_t arraysize,
				  unsigned int flags, acpx_coll_t *coll)
{
	const bool driven = flags & ACPX_ROOT_DRIVEN;
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, driven ? "bcast_driven" : "bcast_direct",
					  driven ? libacp_bcast_driven : libacp_bcast_transfer,
					  coll);

	if (error)
		return error;
	if (flags & ~ACPX_ROOT_DRIVEN)
		libacp_creation_fail(&n, -EINVAL);
	return end_bcast(&n, LIBACP_BCAST_DIRECT, array, arraysize, driven, coll);
}

int acpx_coll_bcast_buffered_create(acpx_group_t group, size_t buffersize, acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "bcast_buffered", libacp_bcast_transfer, coll);

	if (error)
		return error;
	return end_bcast(&n, LIBACP_BCAST_BUFFERED, NULL, buffersize, false, coll);
}

/* ---- Allgather: the root of the tree is member 0, or each member drives its own ---- */

static int end_allgather(struct libacp_creation *n, enum libacp_transfer_type type, void *array,
			 size_t size, bool driven, acpx_coll_t *coll)
{
	struct acpx_coll *c = n->coll;
	const size_t members = (size_t)c->tree.size, part = size / members;

	c->transfer.type = type;
	c->transfer.driven = driven;
	if (type == LIBACP_ALLGATHER_DIRECT && size % members)
		libacp_creation_fail(n, -EINVAL);
	set_memory(n, array, size, part);
	c->block = (struct acpx_block){ (size_t)c->number * part, part };
	if (driven) {
		set_driver(n, LIBACP_LINE_MORE + (uint32_t)c->number);
		c->lines += (uint32_t)members;
	} else {
		c->tagged = LIBACP_LINE_DOWN;
		c->lines += libacp_round_pieces(c);
	}
	n->learn = learn_all;
	libacp_creation_tree(n, 0, radix_of(size));
	return libacp_creation_end(n, coll);
}

int acpx_coll_allgather_direct_create(acpx_group_t group, void *array, size_t arraysize,
				      unsigned int flags, acpx_coll_t *coll)
{
	const bool driven = flags & ACPX_ROOT_DRIVEN;
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group,
					  driven ? "allgather_driven" : "allgather_direct",
					  driven ? libacp_allgather_driven :
					  libacp_allgather_transfer, coll);

	if (error)
		return error;
	if (flags & ~ACPX_ROOT_DRIVEN)
		libacp_creation_fail(&n, -EINVAL);
	return end_allgather(&n, LIBACP_ALLGATHER_DIRECT, array, arraysize, driven, coll);
}

int acpx_coll_allgather_buffered_create(acpx_group_t group, size_t buffersize, acpx_coll_t *coll)
{
	struct libacp_creation n;
	int error = libacp_creation_begin(&n, group, "allgather_buffered",
					  libacp_allgather_transfer, coll);

	if (error)
		return error;
	return end_allgather(&n, LIBACP_ALLGATHER_BUFFERED, NULL, buffersize, false, coll);
}
