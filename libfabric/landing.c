// SPDX-License-Identifier: MIT
/*
 * Memory for the messages of receives, since a kernel writes only to registered memory: that of the
 * user's region; a slot, from which the message is copied; or a registration of the buffer until
 * the receive ends.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "message.h"

static const struct {
	size_t size;
	unsigned int count;
} layout[FI_ACP_SLOT_SIZES] = {
	{ 512, 1024 }, { FI_ACP_BOUNCE, 64 },
};

/* ---- Slots ---- */

static int slots_init(struct fi_acp_slots *s, unsigned int i, char *memory, acp_ga_t ga)
{
	int n;

	s->memory = memory;
	s->ga = ga;
	s->size = layout[i].size;
	s->count = layout[i].count;
	s->next = malloc(s->count * sizeof(*s->next));
	if (!s->next)
		return -FI_ENOMEM;
	for (n = (int)s->count; n--;)
		s->next[s->unused++] = n;
	return 0;
}

int fi_acp_slots_open(struct fi_acp_messages *m)
{
	char *at;
	unsigned int i;
	int error = 0;

	for (i = 0; i < FI_ACP_SLOT_SIZES; i++)
		m->slot_bytes += layout[i].size * layout[i].count;
	at = mmap(NULL, m->slot_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -FI_ENOMEM;
	m->slot_memory = at;
	m->slot_key = acpx_register_memory(at, m->slot_bytes, 0, ACPX_ACCESS_WRITE |
					   ACPX_ACCESS_DONTFORK);
	if (m->slot_key == ACP_ATKEY_NULL)
		return -FI_ENOMEM;
	for (i = 0; i < FI_ACP_SLOT_SIZES && !error; i++) {
		error = slots_init(&m->slots[i], i, at, acp_query_ga(m->slot_key, at));
		at += layout[i].size * layout[i].count;
	}
	return error;
}

void fi_acp_slots_close(struct fi_acp_messages *m)
{
	unsigned int i;

	for (i = 0; i < FI_ACP_SLOT_SIZES; i++)
		free(m->slots[i].next);
	if (m->slot_key != ACP_ATKEY_NULL)
		acp_unregister_memory(m->slot_key);
	if (m->slot_memory)
		munmap(m->slot_memory, m->slot_bytes);
}

/* Slots of both sizes have numbers one after the other. */
static bool take_slot(struct fi_acp_messages *m, struct fi_acp_receive *r)
{
	unsigned int i, first = 0;
	struct fi_acp_slots *s;
	int n;

	for (i = 0; i < FI_ACP_SLOT_SIZES; i++) {
		s = &m->slots[i];
		if (r->room <= s->size && s->unused) {
			n = s->next[--s->unused];
			r->landing.slot = (int)first + n;
			r->landing.copy = s->memory + (size_t)n * s->size;
			r->landing.ga = s->ga + (size_t)n * s->size;
			return true;
		}
		first += s->count;
	}
	return false;
}

static void put_slot(struct fi_acp_messages *m, int slot)
{
	struct fi_acp_slots *s = m->slots;

	if (slot >= (int)s->count) {
		slot -= (int)s->count;
		s++;
	}
	s->next[s->unused++] = slot;
}

/* ---- Landings ---- */

/* Others may write to the user's region, so the kernel may. */
static bool in_region(struct fi_acp_receive *r, void *const *desc)
{
	const struct fi_acp_mr *mr = desc ? desc[0] : NULL;
	const char *buf = r->iov[0].iov_base;

	if (!mr || r->count != 1 || !(mr->access & FI_REMOTE_WRITE) || buf < mr->base ||
	    r->room > mr->size || (size_t)(buf - mr->base) > mr->size - r->room)
		return false;
	r->landing.ga = mr->ga + (acp_ga_t)(buf - mr->base);
	return true;
}

static int register_landing(struct fi_acp_receive *r)
{
	struct fi_acp_landing *l = &r->landing;
	void *at = r->iov[0].iov_base;

	if (r->count > 1 || r->claimed) {
		at = malloc(r->room);
		if (!at)
			return -FI_ENOMEM;
		l->copy = at;
		l->allocated = true;
	}
	l->key = acpx_register_memory(at, r->room, 0, ACPX_ACCESS_WRITE);
	if (l->key == ACP_ATKEY_NULL)
		return -FI_ENOMEM;
	l->ga = acp_query_ga(l->key, at);
	return 0;
}

int fi_acp_land(struct fi_acp_messages *m, struct fi_acp_receive *r, void *const *desc)
{
	int error;

	r->landing = (struct fi_acp_landing){ .slot = -1, .key = ACP_ATKEY_NULL };
	if (!r->room || (!r->claimed && in_region(r, desc)) || take_slot(m, r))
		return 0;
	error = register_landing(r);
	if (error)
		fi_acp_land_release(m, r);
	return error;
}

void fi_acp_land_copy(const struct fi_acp_receive *r, size_t size)
{
	const char *from = r->landing.copy;
	size_t i, n;

	for (i = 0; from && i < r->count && size; i++) {
		n = size < r->iov[i].iov_len ? size : r->iov[i].iov_len;
		memcpy(r->iov[i].iov_base, from, n);
		from += n;
		size -= n;
	}
}

void fi_acp_land_release(struct fi_acp_messages *m, struct fi_acp_receive *r)
{
	struct fi_acp_landing *l = &r->landing;

	if (l->slot >= 0)
		put_slot(m, l->slot);
	if (l->key != ACP_ATKEY_NULL)
		acp_unregister_memory(l->key);
	if (l->allocated)
		free(l->copy);
	*l = (struct fi_acp_landing){ .slot = -1, .key = ACP_ATKEY_NULL };
}
