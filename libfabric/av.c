// SPDX-License-Identifier: MIT
/* Address vectors: a table of addresses; a fi_addr_t is an index. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp_fi.h"

#define ROOM	64u		/* of the first table */

static struct fi_acp_av *av_of(struct fid_av *fid)
{
	return container_of(fid, struct fi_acp_av, fid);
}

static bool is_good(const struct fi_acp_addr *addr)
{
	return addr->magic == FI_ACP_MAGIC && addr->procs == fi_acp_job.procs &&
	       addr->rank < addr->procs && addr->endpoint < FI_ACP_EPS;
}

/* ---- From an address to its index ---- */

static uint32_t *head_of(const struct fi_acp_av *av, uint32_t rank, uint32_t endpoint)
{
	return &av->heads[((rank + endpoint) * 0x9e3779b1u + endpoint) & (av->room - 1)];
}

static void link_in(struct fi_acp_av *av, fi_addr_t at)
{
	uint32_t *head = head_of(av, av->table[at].rank, av->table[at].endpoint);

	av->links[at] = *head;
	*head = (uint32_t)at + 1;
}

static void unlink_from(struct fi_acp_av *av, fi_addr_t at)
{
	uint32_t *link = head_of(av, av->table[at].rank, av->table[at].endpoint);

	while (*link != at + 1)
		link = &av->links[*link - 1];
	*link = av->links[at];
}

fi_addr_t fi_acp_source(const struct fi_acp_av *av, uint32_t rank, uint32_t endpoint)
{
	const struct fi_acp_addr *peer;
	uint32_t next;

	if (!av || !av->room)
		return FI_ADDR_NOTAVAIL;
	for (next = *head_of(av, rank, endpoint); next; next = av->links[next - 1]) {
		peer = &av->table[next - 1];
		if (peer->rank == rank && peer->endpoint == endpoint)
			return next - 1;
	}
	return FI_ADDR_NOTAVAIL;
}

/* ---- Insertion ---- */

/* Twice as much room. False: no memory, and nothing has changed. */
static bool grow(struct fi_acp_av *av)
{
	const size_t room = av->room ? 2 * av->room : ROOM;
	struct fi_acp_addr *table = calloc(room, sizeof(*table));
	uint32_t *heads = calloc(room, sizeof(*heads)), *links = calloc(room, sizeof(*links));
	fi_addr_t at;

	if (!table || !heads || !links) {
		free(table);
		free(heads);
		free(links);
		return false;
	}
	if (av->count)
		memcpy(table, av->table, av->count * sizeof(*table));
	free(av->table);
	free(av->heads);
	free(av->links);
	av->table = table;
	av->heads = heads;
	av->links = links;
	av->room = room;
	for (at = 0; at < av->count; at++)
		if (table[at].magic)
			link_in(av, at);
	return true;
}

/* Find a place for a further address. Returns its index, or FI_ADDR_NOTAVAIL. */
static fi_addr_t find_place(struct fi_acp_av *av)
{
	fi_addr_t at;

	for (at = av->first_free; at < av->count; at++)
		if (!av->table[at].magic)
			return at;
	if (av->count == av->room && (av->room > UINT32_MAX / 4 || !grow(av)))
		return FI_ADDR_NOTAVAIL;
	return av->count++;
}

/* Returns 0 or -FI_E*. */
static int insert_one(struct fi_acp_av *av, const struct fi_acp_addr *addr, fi_addr_t *result)
{
	fi_addr_t at;

	*result = FI_ADDR_NOTAVAIL;
	if (!is_good(addr))
		return -FI_EINVAL;
	at = find_place(av);
	if (at == FI_ADDR_NOTAVAIL)
		return -FI_ENOMEM;
	av->table[at] = *addr;
	link_in(av, at);
	av->first_free = at + 1;
	*result = at;
	return 0;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr,
		     uint64_t flags, void *context)
{
	int *errors = flags & FI_SYNC_ERR ? context : NULL;
	struct fi_acp_av *av = av_of(fid);
	struct fi_acp_addr one;
	int error, done = 0;
	fi_addr_t at;
	size_t i;

	if (flags & ~(FI_MORE | FI_SYNC_ERR))
		return -FI_EBADFLAGS;
	fi_acp_lock();
	error = av->events ? fi_acp_eq_room(av->eq) : 0;
	if (error) {
		fi_acp_unlock();
		return error;
	}
	for (i = 0; i < count; i++) {
		memcpy(&one, (const char *)addr + i * sizeof(one), sizeof(one));
		error = insert_one(av, &one, &at);
		if (fi_addr)
			fi_addr[i] = at;
		if (errors)
			errors[i] = -error;
		done += !error;
	}
	if (av->events) {
		error = fi_acp_eq_post(av->eq, FI_AV_COMPLETE, &av->fid.fid, context,
				       (uint64_t)done);
		done = error;
	}
	fi_acp_unlock();
	return done;
}

static int no_insertsvc(struct fid_av *fid, const char *node, const char *service,
			fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	(void)fid;
	(void)node;
	(void)service;
	(void)fi_addr;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

static int no_insertsym(struct fid_av *fid, const char *node, size_t nodecnt, const char *service,
			size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	(void)nodecnt;
	(void)svccnt;
	return no_insertsvc(fid, node, service, fi_addr, flags, context);
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	struct fi_acp_av *av = av_of(fid);
	int error = 0;
	size_t i;

	(void)flags;
	fi_acp_lock();
	for (i = 0; i < count; i++) {
		if (!fi_acp_peer(av, fi_addr[i])) {
			error = -FI_EINVAL;
			continue;
		}
		unlink_from(av, fi_addr[i]);
		av->table[fi_addr[i]].magic = 0;
		if (fi_addr[i] < av->first_free)
			av->first_free = fi_addr[i];
	}
	fi_acp_unlock();
	return error;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	const struct fi_acp_addr *peer;

	fi_acp_lock();
	peer = fi_acp_peer(av_of(fid), fi_addr);
	if (peer)
		memcpy(addr, peer, *addrlen < sizeof(*peer) ? *addrlen : sizeof(*peer));
	fi_acp_unlock();
	if (!peer)
		return -FI_EINVAL;
	*addrlen = sizeof(*peer);
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	struct fi_acp_addr one;
	int length;

	(void)fid;
	memcpy(&one, addr, sizeof(one));
	length = snprintf(buf, *len, "fi_acp://%" PRIu32 "/%" PRIu32, one.rank, one.endpoint);
	*len = (size_t)length + 1;
	return buf;
}

static int av_close(struct fid *fid)
{
	struct fi_acp_av *av = container_of(fid, struct fi_acp_av, fid.fid);
	bool busy;

	fi_acp_lock();
	busy = av->refs;
	if (!busy) {
		av->domain->refs--;
		fi_acp_eq_hold(av->eq, -1);
	}
	fi_acp_unlock();
	if (busy)
		return -FI_EBUSY;
	free(av->table);
	free(av->heads);
	free(av->links);
	free(av);
	return 0;
}

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fi_acp_av *av = container_of(fid, struct fi_acp_av, fid.fid);

	(void)flags;
	if (bfid->fclass != FI_CLASS_EQ || av->eq)
		return -FI_EINVAL;
	fi_acp_lock();
	av->eq = fi_acp_eq_of(bfid);
	fi_acp_eq_hold(av->eq, 1);
	fi_acp_unlock();
	return 0;
}

static struct fi_ops av_fid_ops = {
	.size = sizeof(av_fid_ops),
	.close = av_close,
	.bind = av_bind,
	.control = fi_acp_no_control,
	.ops_open = fi_acp_no_ops,
};

static struct fi_ops_av av_ops = {
	.size = sizeof(av_ops),
	.insert = av_insert,
	.insertsvc = no_insertsvc,
	.insertsym = no_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
};

int fi_acp_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **fid,
		   void *context)
{
	struct fi_acp_av *av;

	if (attr->name || attr->rx_ctx_bits)
		return -FI_ENOSYS;
	if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC))
		return -FI_ENOSYS;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	av->events = attr->flags & FI_EVENT;
	av->domain = container_of(domain, struct fi_acp_domain, fid);
	av->fid.fid = (struct fid){ FI_CLASS_AV, context, &av_fid_ops };
	av->fid.ops = &av_ops;
	fi_acp_lock();
	av->domain->refs++;
	fi_acp_unlock();
	*fid = &av->fid;
	return 0;
}
