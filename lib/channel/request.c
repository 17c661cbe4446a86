// SPDX-License-Identifier: MIT
/* Requests of channels. A request is freed by the call that waits for it. */
#include <stdlib.h>

#include "channel/chan.h"

static struct chreqitem *requests;	/* guarded by the lock */

struct chreqitem *libacp_request_new(struct chitem *ch, enum libacp_request_kind kind, void *buffer,
				     size_t size)
{
	struct chreqitem *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ch = ch;
	r->kind = kind;
	r->buffer = buffer;
	r->size = size;
	r->later = requests;
	r->link = &requests;
	if (requests)
		requests->link = &r->later;
	requests = r;
	*ch->last = r;
	ch->last = &r->next;
	if (!ch->next)
		ch->next = r;
	return r;
}

void libacp_request_forget(struct chreqitem *r)
{
	*r->link = r->later;
	if (r->later)
		r->later->link = r->link;
	free(r);
}

void libacp_request_done(struct chitem *ch, size_t result)
{
	struct chreqitem *r = ch->first;

	ch->done++;
	ch->first = r->next;
	if (ch->next == r)
		ch->next = r->next;
	if (ch->fresh == r)
		ch->fresh = r->next;
	if (!ch->first)
		ch->last = &ch->first;
	if (r->key != ACP_ATKEY_NULL)
		acp_unregister_memory(r->key);
	r->key = ACP_ATKEY_NULL;
	if (r->kind == LIBACP_FREE)
		ch->freed = true;
	r->size = result;
	r->ch = NULL;
	r->next = NULL;
}

/*
 * A fetch may still write to the buffer: unregistering it does not end another registration of the
 * same memory.
 */
static bool is_under_way(const struct chreqitem *r)
{
	return r->kind == LIBACP_RECEIVE && r->from && acpx_status(r->access[0]) == ACPX_EPENDING;
}

bool libacp_request_fail(struct chitem *ch)
{
	while (ch->first && !is_under_way(ch->first))
		libacp_request_done(ch, LIBACP_FAILED);
	return !ch->first;
}

void libacp_request_forget_all(void)
{
	while (requests)
		libacp_request_forget(requests);
}
