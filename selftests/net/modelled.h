/* SPDX-License-Identifier: MIT */
/*
 * Six ranks on three nodes (0 and 1, 2 and 3, 4 and 5), with a model of their heaps: what the test
 * expects in each byte. Users define HEAP, and SOURCE: bytes at the beginning that are not zero.
 */
#ifndef MODELLED_H
#define MODELLED_H

#include <stdlib.h>
#include <string.h>

#include "nodes.h"

#define RANKS		6

static struct nodes n;
static struct rank r[RANKS];
static char *model[RANKS];
static uint64_t seed = 12345;

static inline uint64_t draw(uint64_t end)
{
	return next_random(&seed) % end;
}

static inline void begin_short(uint32_t timeout_ms, uint32_t integrity, const char *netem)
{
	const struct acp_join wish = {
		.integrity = integrity, .heap_size = HEAP, .timeout_ms = timeout_ms,
		.open_timeout_ms = 30000,
	};
	uint32_t i;

	nodes_open(&n, 3, 1, false);
	nodes_ranks_like(&n, r, RANKS, &wish);
	for (i = 0; i < RANKS; i++) {
		fill(r[i].heap, SOURCE, 100 + i);
		model[i] = malloc(HEAP);
		CHECK(model[i]);
		memcpy(model[i], r[i].heap, HEAP);
	}
	if (*netem)
		nodes_impair_all(&n, netem);
}

static inline void begin(uint32_t integrity, const char *netem)
{
	begin_short(30000, integrity, netem);
}

/* Wait for all copies, of which none may fail, and compare all memory with the model. */
static inline void compare(const char *what)
{
	uint32_t i;

	for (i = 0; i < RANKS; i++) {
		CHECK_EQ(rank_await(&r[i], r[i].last, PATIENCE_WORK), ACP_ST_OK);
		CHECK_EQ(r[i].cq->failed, 0);
	}
	for (i = 0; i < RANKS; i++)
		if (memcmp(r[i].heap, model[i], HEAP))
			FAIL("memory of rank %u is not what it should be: %s", i, what);
}

/* ---- Rounds of something on several networks, in several jobs ---- */

typedef void rounds_t(uint32_t rounds);

static inline void without_loss(rounds_t *what, uint32_t rounds)
{
	begin(ACP_INTEGRITY_TAG, "");
	what(test_short() ? 1 : rounds);
	CHECK_EQ(nodes_counters(&n, "drop_bad_msg"), 0);
}

static inline void with_loss_and_duplicates(rounds_t *what)
{
	begin(ACP_INTEGRITY_TAG, "delay 1ms 1ms loss 5% duplicate 5%");
	what(test_short() ? 1 : 2);
	CHECK(nodes_counters(&n, "tx_retransmits") > 0);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

static inline void with_corruption_and_crc32c(rounds_t *what)
{
	begin(ACP_INTEGRITY_CRC32C, "");
	nodes_acquaint(&n);
	nodes_impair_all(&n, "corrupt 5%");
	what(test_short() ? 1 : 2);
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

static inline void encrypted_with_loss(rounds_t *what)
{
	begin(ACP_INTEGRITY_AEAD, "loss 2%");
	what(1);
	CHECK_EQ(nodes_counters(&n, "drop_bad_aead"), 0);
}

#endif /* MODELLED_H */
