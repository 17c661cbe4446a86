// SPDX-License-Identifier: MIT
/*
 * Counters: a word that any rank adds to, and that its owner waits for. A thin layer over
 * acpx_copy_signal(), acpx_wait_until() and acpx_wait_word().
 */
#include <errno.h>
#include <stdlib.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/mem.h"
#include "core/process.h"

#define LINE	64u			/* bytes; an own counter has a line of its own */
#define ROOM	(2 * LINE - 8)		/* blocks of the heap are aligned to 8 */

struct acpx_counter {
	acp_ga_t ga, block;		/* block: of the heap, or ACP_GA_NULL */
	uint64_t *word;
	uint64_t joins;			/* of the process when it was created */
};

/* Take a line of the heap. Returns 0 or -errno. */
static int take_line(struct acpx_counter *c)
{
	c->block = acp_malloc(ROOM, acp_rank());
	if (c->block == ACP_GA_NULL)
		return -ENOMEM;
	c->ga = c->block + (LINE - (uintptr_t)acp_query_address(c->block) % LINE) % LINE;
	return 0;
}

static int use_word(struct acpx_counter *c, acp_ga_t word)
{
	if (acp_query_rank(word) != acp_rank() || word % sizeof(uint64_t))
		return -EINVAL;
	c->ga = word;
	return libacp_mem_find(word, sizeof(uint64_t), true) ? 0 : -EFAULT;
}

int acpx_counter_create(acp_ga_t word, acpx_counter_t *counter)
{
	struct acpx_counter *c;
	int error;

	if (!counter)
		return -EINVAL;
	if (!libacp_in())
		return -ENOTCONN;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->joins = libacp.joins;
	error = word == ACP_GA_NULL ? take_line(c) : use_word(c, word);
	if (error) {
		free(c);
		return error;
	}
	c->word = acp_query_address(c->ga);
	__atomic_store_n(c->word, 0, __ATOMIC_RELEASE);
	*counter = c;
	return 0;
}

acp_ga_t acpx_counter_ga(acpx_counter_t counter)
{
	return counter && libacp_in_since(counter->joins) ? counter->ga : ACP_GA_NULL;
}

acp_handle_t acpx_counter_add(acp_ga_t counter, uint64_t value, acp_handle_t order)
{
	return acpx_copy_signal(counter, counter, 0, counter, value, ACPX_SIGNAL_ADD, order);
}

static uint64_t value_of(const struct acpx_counter *c)
{
	return __atomic_load_n(c->word, __ATOMIC_ACQUIRE);
}

int acpx_counter_read(acpx_counter_t counter, uint64_t *value)
{
	if (!counter || !value)
		return -EINVAL;
	if (!libacp_in_since(counter->joins))
		return -ENOTCONN;
	*value = value_of(counter);
	return ACP_WORD_REVOKED_FOR(*value, 0) ? -EIO : 0;
}

int acpx_counter_wait(acpx_counter_t counter, uint64_t value, uint64_t timeout_ns)
{
	int error;

	if (!counter)
		return -EINVAL;
	if (!libacp_in_since(counter->joins))
		return -ENOTCONN;
	error = acpx_wait_until(counter->word, sizeof(*counter->word), ACPX_CMP_GE, value,
				timeout_ns);
	if (error < 0)
		return error;
	return ACP_WORD_REVOKED_FOR(value_of(counter), 0) ? -EIO : 0;
}

int acpx_counter_reset(acpx_counter_t counter, uint64_t *value)
{
	uint64_t before;

	if (!counter)
		return -EINVAL;
	if (!libacp_in_since(counter->joins))
		return -ENOTCONN;
	before = __atomic_exchange_n(counter->word, 0, __ATOMIC_ACQ_REL);
	if (value)
		*value = before;
	return 0;
}

int acpx_counter_free(acpx_counter_t counter)
{
	int error = 0;

	if (!counter)
		return -EINVAL;
	if (counter->block != ACP_GA_NULL && libacp_in_since(counter->joins))
		error = acpx_free(counter->block);
	free(counter);
	return error;
}
