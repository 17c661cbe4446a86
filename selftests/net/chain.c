// SPDX-License-Identifier: MIT
/* selftest: leaks */
/*
 * Copies along chains of descriptors: all placements of the chain, the other end and the origin,
 * good and impaired networks; chains that are wrong, and chains that change meanwhile.
 *
 * The expected contents of memory are computed block by block, and all of it is compared.
 */
#include "../dev/isolated.h"

#include <pthread.h>

#define SLOTS		(2 * RANKS)
#define SLOT		(64 * 1024UL)
#define ROOM		(SLOT - 64 * 64)	/* of a slot, before its descriptors */
#define SOURCE		(64 * 1024UL)	/* never written by copies, but for chains at its end */
#define CHAINS		(4 * 1024UL)	/* of a chain of SOURCE, which has SLOTS of them */
#define AT_CHAINS	SOURCE
#define AT_SLOTS	(AT_CHAINS + SLOTS * CHAINS)
#define HEAP		(AT_SLOTS + SLOTS * SLOT)

#include "modelled.h"

static uint64_t start(uint32_t by, unsigned int op, uint64_t dst, uint64_t src, uint64_t size)
{
	const struct acp_sqe e = {
		.op = (uint8_t)op, .dst = dst, .src = src, .size = size,
		.seen = rank_completed(&r[by]),
	};

	return rank_submit(&r[by], &e);
}

static int run(uint32_t by, unsigned int op, uint64_t dst, uint64_t src, uint64_t size)
{
	return rank_await(&r[by], start(by, op, dst, src, size), PATIENCE_WORK);
}

/* ---- chains ---- */

/* Descriptor i of a chain whose first one is at an offset of the heap, without its next one. */
static struct acp_descriptor *descriptor(uint32_t rank, uint64_t chain, uint32_t i)
{
	return (struct acp_descriptor *)(void *)(r[rank].heap + chain) + i;
}

static uint64_t chain_ga(uint32_t rank, uint64_t chain, uint32_t i)
{
	return heap_ga(&r[rank], chain + i * sizeof(struct acp_descriptor));
}

static void describe(uint32_t rank, uint64_t chain, uint32_t i, uint64_t at, uint32_t block,
		     uint32_t count, int64_t stride)
{
	*descriptor(rank, chain, i) = (struct acp_descriptor){
		.address = heap_ga(&r[rank], at), .stride = stride, .block = block, .count = count,
		.flags = ACP_CHAIN_FLAGS,
	};
}

/* Chain so many descriptors one behind the other. */
static void join(uint32_t rank, uint64_t chain, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		descriptor(rank, chain, i)->next = i + 1 < count ? chain_ga(rank, chain, i + 1) : 0;
}

/* Chain them in a random order, and put the order in @list. */
static void shuffle(uint32_t rank, uint64_t chain, uint32_t count, uint32_t *list)
{
	uint32_t i, k, swap;

	for (i = 0; i < count; i++)
		list[i] = i;
	for (i = count; i > 2; i--) {
		k = 1 + (uint32_t)draw(i - 1);
		swap = list[k];
		list[k] = list[i - 1];
		list[i - 1] = swap;
	}
	for (i = 0; i < count; i++)
		descriptor(rank, chain, list[i])->next =
			i + 1 < count ? chain_ga(rank, chain, list[i + 1]) : 0;
}

/*
 * Describe some blocks in [from, from + room), each descriptor in a share of its own. Returns the
 * bytes that they have together.
 */
static uint64_t some_blocks(uint32_t rank, uint64_t chain, uint32_t count, uint64_t from,
			    uint64_t room)
{
	static const uint32_t blocks[] = { 1, 3, 4, 8, 16, 40, 100, 300, 600, 1500 };
	uint64_t share = room / count, stride, block, many, first, size = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		block = blocks[draw(sizeof(blocks) / sizeof(blocks[0]))];
		if (block > share)
			block = share;
		many = 1 + draw(share / block);
		stride = many > 1 ? block + draw((share - block) / (many - 1) - block + 1) : 0;
		first = from + i * share + draw(share - block - (many - 1) * stride + 1);
		if (draw(3) == 0) {
			first += (many - 1) * stride;
			stride = -stride;
		}
		describe(rank, chain, i, first, (uint32_t)block, (uint32_t)many, (int64_t)stride);
		size += block * many;
	}
	return size;
}

/* The offset of byte @position of a chain in the memory of its rank. */
static uint64_t place(uint32_t rank, uint64_t chain, const uint32_t *list, uint64_t position)
{
	const struct acp_descriptor *d;
	uint32_t i = 0;

	for (d = descriptor(rank, chain, list[0]); position >= (uint64_t)d->block * d->count;
	     d = descriptor(rank, chain, list[++i]))
		position -= (uint64_t)d->block * d->count;
	return d->address - heap_ga(&r[rank], 0) +
	       (uint64_t)((int64_t)(position / d->block) * d->stride) + position % d->block;
}

/* Choose the bytes of a copy along a chain with so many: all of them, or not. */
static uint64_t some_of(uint64_t bytes)
{
	static const uint64_t sizes[] = { 1, 4, 8, 9, 100, 128, 129, 1300, 1500, 20000 };
	uint64_t size = sizes[draw(sizeof(sizes) / sizeof(sizes[0]))];

	return draw(2) || size > bytes ? bytes : size;
}

static void scatter(uint32_t by, uint32_t dst, uint32_t src, uint32_t slot)
{
	uint64_t at = AT_SLOTS + slot * SLOT, chain = at + ROOM, size, from, i;
	uint32_t list[ACP_CHAIN_MAX], count = 1 + (uint32_t)draw(ACP_CHAIN_MAX);

	size = some_of(some_blocks(dst, chain, count, at, ROOM));
	shuffle(dst, chain, count, list);
	if (size > SOURCE)
		size = SOURCE;
	from = draw(SOURCE - size + 1);
	memcpy(model[dst] + chain, r[dst].heap + chain, SLOT - ROOM);
	for (i = 0; i < size; i++)
		model[dst][place(dst, chain, list, i)] = model[src][from + i];
	start(by, ACP_OP_SCATTER, heap_ga(&r[dst], chain), heap_ga(&r[src], from), size);
}

static void gather(uint32_t by, uint32_t dst, uint32_t src, uint32_t slot)
{
	uint64_t at = AT_SLOTS + slot * SLOT, chain = AT_CHAINS + slot * CHAINS, size, to, i;
	uint32_t list[ACP_CHAIN_MAX], count = 1 + (uint32_t)draw(ACP_CHAIN_MAX);

	size = some_of(some_blocks(src, chain, count, 0, SOURCE));
	shuffle(src, chain, count, list);
	if (size > ROOM)
		size = ROOM;
	to = at + draw(ROOM - size + 1);
	memcpy(model[src] + chain, r[src].heap + chain, CHAINS);
	for (i = 0; i < size; i++)
		model[dst][to + i] = model[src][place(src, chain, list, i)];
	start(by, ACP_OP_GATHER, heap_ga(&r[dst], to), heap_ga(&r[src], chain), size);
}

/* Every origin, every chain, every other end. */
static void everywhere(uint32_t rounds)
{
	uint32_t round, by, dst, src;

	for (round = 0; round < rounds; round++) {
		for (by = 0; by < RANKS; by++) {
			for (dst = 0; dst < RANKS; dst++)
				for (src = 0; src < RANKS; src++)
					scatter(by, dst, src, src);
			compare("scatter");
			for (dst = 0; dst < RANKS; dst++)
				for (src = 0; src < RANKS; src++)
					gather(by, dst, src, RANKS + (dst + src) % RANKS);
			compare("gather");
		}
	}
}

TEST(chains_over_all_placements)
{
	without_loss(everywhere, 4);
}

TEST(N1_chains_with_loss_and_duplicates)
{
	with_loss_and_duplicates(everywhere);
}

TEST(N4_chains_with_corruption_and_crc32c)
{
	with_corruption_and_crc32c(everywhere);
}

TEST(chains_encrypted_with_loss)
{
	encrypted_with_loss(everywhere);
}

TEST(no_bytes_need_no_chain)
{
	begin(ACP_INTEGRITY_TAG, "");
	CHECK_EQ(run(0, ACP_OP_SCATTER, 0, 0, 0), ACP_ST_OK);
	CHECK_EQ(run(0, ACP_OP_GATHER, 5, 7, 0), ACP_ST_OK);
}

/* ---- chains that are wrong ---- */

static void nothing_moved(const char *what)
{
	uint32_t i;

	for (i = 0; i < RANKS; i++)
		if (memcmp(r[i].heap, model[i], HEAP))
			FAIL("a copy that failed wrote to rank %u: %s", i, what);
}

/*
 * How do copies of this size end along the chain at @at of a rank: within its node, between two
 * and over three nodes, in one frame and in many? Nothing but the chain may have changed.
 */
static void ends(uint32_t rank, uint64_t at, uint64_t size, int status)
{
	static const uint32_t others[][2] = { { 0, 0 }, { 0, 4 }, { 2, 2 }, { 2, 4 }, { 4, 0 } };
	size_t i;

	memcpy(model[rank], r[rank].heap, HEAP);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const uint32_t by = (others[i][0] + rank) % RANKS;
		const uint32_t other = (others[i][1] + rank) % RANKS;

		CHECK_EQ(run(by, ACP_OP_SCATTER, heap_ga(&r[rank], at), heap_ga(&r[other], 0),
			     size), status);
		nothing_moved("scatter");
		CHECK_EQ(run(by, ACP_OP_GATHER, heap_ga(&r[other], AT_SLOTS),
			     heap_ga(&r[rank], at), size), status);
		nothing_moved("gather");
	}
}

static const uint64_t sizes[] = { 8, 1000, 20000 };

#define SIZES	(sizeof(sizes) / sizeof(sizes[0]))
#define CHAIN	(AT_SLOTS + ROOM)

/* Three descriptors of rank 2, each with a third of the bytes or a little more. */
static void thirds(uint64_t size)
{
	uint32_t i;

	for (i = 0; i < 3; i++)
		describe(2, CHAIN, i, AT_SLOTS + 16384 * i, (uint32_t)size / 3 + 1, 1, 0);
	join(2, CHAIN, 3);
}

TEST(A4_loops_have_a_named_end)
{
	uint64_t size;
	uint32_t i, k;

	begin(ACP_INTEGRITY_TAG, "");
	for (i = 0; i < SIZES; i++) {
		size = sizes[i];
		for (k = 0; k < 3; k++) {	/* back to each of them */
			thirds(size - 3);
			descriptor(2, CHAIN, 2)->next = chain_ga(2, CHAIN, k);
			ends(2, CHAIN, size + 3, ACP_ST_CHAIN);
		}
		thirds(size);			/* to itself */
		descriptor(2, CHAIN, 0)->next = chain_ga(2, CHAIN, 0);
		ends(2, CHAIN, size, ACP_ST_CHAIN);
		thirds(size);			/* not reached */
		descriptor(2, CHAIN, 2)->next = chain_ga(2, CHAIN, 0);
		CHECK_EQ(run(0, ACP_OP_SCATTER, chain_ga(2, CHAIN, 0), heap_ga(&r[0], 0), size),
			 ACP_ST_OK);
		CHECK_EQ(run(0, ACP_OP_GATHER, heap_ga(&r[0], AT_SLOTS), chain_ga(2, CHAIN, 0),
			     size), ACP_ST_OK);
		memcpy(model[0], r[0].heap, HEAP);
	}
}

TEST(A4_a_chain_with_too_few_bytes_has_a_named_end)
{
	uint32_t i;

	begin(ACP_INTEGRITY_TAG, "");
	for (i = 0; i < SIZES; i++) {
		thirds(sizes[i] - 3);		/* has up to sizes[i] bytes */
		ends(2, CHAIN, sizes[i] + 1, ACP_ST_CHAIN);
		descriptor(2, CHAIN, 0)->next = 0;
		ends(2, CHAIN, sizes[i], ACP_ST_CHAIN);
	}
}

TEST(A4_a_chain_has_at_most_64_descriptors)
{
	uint32_t i;

	begin(ACP_INTEGRITY_TAG, "");
	for (i = 0; i <= ACP_CHAIN_MAX; i++)
		describe(2, CHAIN, i, AT_SLOTS + 100 * i, 100, 1, 0);
	join(2, CHAIN, ACP_CHAIN_MAX + 1);
	ends(2, CHAIN, 100 * ACP_CHAIN_MAX + 1, ACP_ST_CHAIN);
	CHECK_EQ(run(0, ACP_OP_SCATTER, chain_ga(2, CHAIN, 0), heap_ga(&r[0], 0),
		     100 * ACP_CHAIN_MAX), ACP_ST_OK);
	CHECK(!memcmp(r[2].heap + AT_SLOTS, r[0].heap, 100 * ACP_CHAIN_MAX));
}

/* Spoil one descriptor of three, try, and mend it. */
static void spoiled(uint64_t size, uint32_t i, struct acp_descriptor bad, int status)
{
	struct acp_descriptor *d = descriptor(2, CHAIN, i), good = *d;

	*d = bad;
	ends(2, CHAIN, size, status);
	*d = good;
}

#define SPOILED(size, i, field, value, status)				\
	do {								\
		struct acp_descriptor bad = *descriptor(2, CHAIN, i);	\
									\
		bad.field = (value);					\
		spoiled(size, i, bad, status);				\
	} while (0)

TEST(A4_wrong_descriptors_have_a_named_end)
{
	uint64_t size;
	uint32_t i, k;

	begin(ACP_INTEGRITY_TAG, "");
	for (i = 0; i < SIZES; i += test_short() ? 2 : 1) {
		size = sizes[i];
		for (k = 0; k < 3; k++) {
			thirds(size);
			SPOILED(size, k, block, 0, ACP_ST_CHAIN);
			SPOILED(size, k, count, 0, ACP_ST_CHAIN);
			SPOILED(size, k, flags, 4 | ACP_CHAIN_FLAGS, ACP_ST_CHAIN);
			SPOILED(size, k, reserved, 1, ACP_ST_CHAIN);
			SPOILED(size, k, count, 2, ACP_ST_CHAIN);	/* they overlap */
			SPOILED(size, k, flags, 0, ACP_ST_ACCESS);
			SPOILED(size, k, address, 0, ACP_ST_GA);
			SPOILED(size, k, address, ~0ULL, ACP_ST_GA);
			SPOILED(size, k, address, heap_ga(&r[3], AT_SLOTS), ACP_ST_GA);
			SPOILED(size, k, address, heap_ga(&r[2], HEAP - 1), ACP_ST_RANGE);
			SPOILED(size, k, address, rank_ga(&r[2], 2, 900, 0), ACP_ST_STAG);
			SPOILED(size, k, block, ~0U, ACP_ST_RANGE);
		}
		SPOILED(size, 0, next, chain_ga(2, CHAIN, 1) + 4, ACP_ST_ALIGN);
		SPOILED(size, 1, next, heap_ga(&r[3], CHAIN), ACP_ST_GA);
		SPOILED(size, 1, next, ~7ULL, ACP_ST_GA);
		SPOILED(size, 1, next, heap_ga(&r[2], HEAP - 32), ACP_ST_RANGE);
		SPOILED(size, 1, next, rank_ga(&r[2], 2, 900, 0), ACP_ST_STAG);
	}
	ends(2, CHAIN + 4, 8, ACP_ST_ALIGN);
	ends(2, HEAP, 8, ACP_ST_RANGE);
	ends(2, HEAP - 32, 8, ACP_ST_RANGE);
}

/* Each of the two flags permits one of the operations. */
TEST(A4_flags_of_descriptors_count)
{
	static const uint32_t flags[] = { ACP_CHAIN_SCATTER, ACP_CHAIN_GATHER };
	uint32_t i, k;

	begin(ACP_INTEGRITY_TAG, "");
	for (i = 0; i < SIZES; i++) {
		for (k = 0; k < 2; k++) {
			thirds(sizes[i]);
			descriptor(2, CHAIN, 1)->flags = flags[k];
			CHECK_EQ(run(0, ACP_OP_SCATTER, chain_ga(2, CHAIN, 0), heap_ga(&r[0], 0),
				     sizes[i]), k ? ACP_ST_ACCESS : ACP_ST_OK);
			CHECK_EQ(run(0, ACP_OP_GATHER, heap_ga(&r[0], AT_SLOTS),
				     chain_ga(2, CHAIN, 0), sizes[i]),
				 k ? ACP_ST_OK : ACP_ST_ACCESS);
		}
	}
}

TEST(A4_rights_of_descriptors_and_blocks_count)
{
	static const uint32_t rights[] = { ACP_ACCESS_READ, ACP_ACCESS_WRITE };
	struct memory m[2];
	uint32_t i, k;

	begin(ACP_INTEGRITY_TAG, "");
	nodes_enter(&n, 1);
	for (k = 0; k < 2; k++) {
		m[k].addr = pages(65536, PROT_READ | PROT_WRITE);
		CHECK_EQ(rank_register(&r[2], &m[k], m[k].addr, 65536, rights[k]), 0);
	}
	nodes_leave(&n);
	for (i = 0; i < SIZES; i++) {
		for (k = 0; k < 2; k++) {
			thirds(sizes[i]);
			descriptor(2, CHAIN, 1)->address = memory_ga(&m[k], 0);
			CHECK_EQ(run(0, ACP_OP_SCATTER, chain_ga(2, CHAIN, 0), heap_ga(&r[0], 0),
				     sizes[i]), k ? ACP_ST_OK : ACP_ST_ACCESS);
			CHECK_EQ(run(0, ACP_OP_GATHER, heap_ga(&r[0], AT_SLOTS),
				     chain_ga(2, CHAIN, 0), sizes[i]),
				 k ? ACP_ST_ACCESS : ACP_ST_OK);
			/* The owner of the memory may do what it wants. */
			CHECK_EQ(run(2, ACP_OP_SCATTER, chain_ga(2, CHAIN, 0), heap_ga(&r[0], 0),
				     sizes[i]), ACP_ST_OK);
		}
		/* The second descriptor is in memory that others may only write to. */
		thirds(sizes[i]);
		memcpy(m[1].addr, descriptor(2, CHAIN, 1), sizeof(struct acp_descriptor));
		descriptor(2, CHAIN, 0)->next = memory_ga(&m[1], 0);
		CHECK_EQ(run(0, ACP_OP_SCATTER, chain_ga(2, CHAIN, 0), heap_ga(&r[0], 0),
			     sizes[i]), ACP_ST_ACCESS);
		CHECK_EQ(run(2, ACP_OP_GATHER, heap_ga(&r[0], AT_SLOTS), chain_ga(2, CHAIN, 0),
			     sizes[i]), ACP_ST_OK);
	}
}

/* The end that has no chain is checked before anything is written, too. */
TEST(A4_the_other_end_is_checked_first)
{
	uint32_t i, by, other;

	begin(ACP_INTEGRITY_TAG, "");
	for (i = 0; i < SIZES; i++) {
		thirds(sizes[i]);
		memcpy(model[2], r[2].heap, HEAP);
		for (by = 0; by < RANKS; by++) {
			for (other = 0; other < RANKS; other++) {
				CHECK_EQ(run(by, ACP_OP_SCATTER, chain_ga(2, CHAIN, 0),
					     heap_ga(&r[other], HEAP - sizes[i] + 1), sizes[i]),
					 ACP_ST_RANGE);
				CHECK_EQ(run(by, ACP_OP_GATHER,
					     rank_ga(&r[other], other, ACP_STAG_USER + 7, 0),
					     chain_ga(2, CHAIN, 0), sizes[i]), ACP_ST_STAG);
			}
		}
		nothing_moved("other end");
	}
}

TEST(N9_operands_of_chains)
{
	struct acp_sqe e = { .size = 8 };
	uint32_t i;

	begin(ACP_INTEGRITY_TAG, "");
	thirds(8);
	for (e.op = ACP_OP_SCATTER; e.op <= ACP_OP_GATHER; e.op++) {
		e.dst = chain_ga(2, CHAIN, 0);
		e.src = e.dst;
		for (i = 0; i < 4; i++) {
			struct acp_sqe bad = e;

			bad.a = i == 0;
			bad.b = i == 1;
			bad.size = i == 2 ? ACP_COPY_MAX + 1 : 8;
			bad.flags = i == 3 ? ACP_SQE_RETRY : 0;
			CHECK_EQ(rank_await(&r[0], rank_submit(&r[0], &bad), PATIENCE_SOON),
				 ACP_ST_OP);
		}
	}
}

/* ---- chains that change meanwhile ---- */

/*
 * All of a copy goes along one chain, whatever its owner does to it meanwhile: to the old places or
 * to the new ones, and nowhere else.
 */
TEST(A4_the_owner_changes_the_chain_while_pieces_arrive)
{
	const uint64_t size = 60000, half = size / 2;
	char *places[2];
	uint64_t ticket, round;
	unsigned int i, k;

	begin(ACP_INTEGRITY_TAG, "delay 2ms 1ms loss 3%");
	for (k = 0; k < 2; k++)
		places[k] = r[2].heap + AT_SLOTS + (k + 1) * 2 * SLOT;
	for (round = 1; round <= (test_short() ? 5 : 30); round++) {
		for (k = 0; k < 2; k++)
			memset(places[k], 0, size);
		for (i = 0; i < 2; i++)
			describe(2, CHAIN, i, AT_SLOTS + 2 * SLOT + half * i, (uint32_t)half, 1, 0);
		join(2, CHAIN, 2);
		fill(r[0].heap, size, round);
		ticket = start(0, ACP_OP_SCATTER, chain_ga(2, CHAIN, 0), heap_ga(&r[0], 0), size);
		for (i = 0; rank_completed(&r[0]) < ticket; i++) {
			k = 1 + (i & 1);
			/* Both at once or not: no copy must end in between. */
			__atomic_store_n(&descriptor(2, CHAIN, 0)->address,
					 heap_ga(&r[2], AT_SLOTS + 2 * SLOT * k), __ATOMIC_RELAXED);
			__atomic_store_n(&descriptor(2, CHAIN, 1)->address,
					 heap_ga(&r[2], AT_SLOTS + 2 * SLOT * k + half),
					 __ATOMIC_RELAXED);
			sleep_ms(i ? 1 : 0);
		}
		CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_SOON), ACP_ST_OK);
		for (i = 0; i < 2; i++) {
			uint64_t at = half * i;

			CHECK_EQ(!memcmp(places[0] + at, r[0].heap + at, half) +
				 !memcmp(places[1] + at, r[0].heap + at, half), 1);
		}
	}
}

/* The owner makes and breaks loops, and overwrites all of the chain, as fast as it can. */
static void *overwrite(void *arg)
{
	volatile int *stop = arg;
	uint64_t state = 77;
	uint64_t *words = (uint64_t *)(void *)(r[2].heap + CHAIN);
	uint32_t i;

	while (!*stop) {
		i = (uint32_t)(next_random(&state) % 15);
		if (next_random(&state) % 2)
			words[i] = next_random(&state);
		else
			words[i] = heap_ga(&r[2], next_random(&state) % HEAP & ~7UL);
		if (next_random(&state) % 8 == 0)
			thirds(20000);
	}
	return NULL;
}

TEST(A4_a_chain_that_is_overwritten_harms_only_its_owner)
{
	pthread_t thread;
	volatile int stop = 0;
	uint32_t i, by;

	begin(ACP_INTEGRITY_TAG, "");
	memcpy(model[0], r[0].heap, HEAP);
	CHECK_EQ(pthread_create(&thread, NULL, overwrite, (void *)&stop), 0);
	for (i = 0; i < (test_short() ? 300 : 3000); i++) {
		by = (i % 3) * 2;
		start(by, ACP_OP_SCATTER, chain_ga(2, CHAIN, 0), heap_ga(&r[by], 0),
		      sizes[i / 3 % SIZES]);
		if (i % 30 == 29)
			rank_await(&r[by], r[by].last, PATIENCE_WORK);
	}
	for (i = 0; i < RANKS; i++)
		rank_await(&r[i], r[i].last, PATIENCE_WORK);
	stop = 1;
	pthread_join(thread, NULL);
	for (i = 0; i < RANKS; i++)
		if (i != 2 && memcmp(r[i].heap, model[i], HEAP))
			FAIL("memory of rank %u has changed", i);
}

/* Blocks disappear while pieces arrive or leave: a named end, and no byte elsewhere. */
TEST(A4_memory_that_is_unregistered_meanwhile)
{
	const unsigned int rounds = test_short() ? 6 : 40;
	struct memory m = { .addr = pages(65536, PROT_READ | PROT_WRITE) };
	uint64_t ticket;
	unsigned int i;
	uint32_t left;
	int status;

	begin(ACP_INTEGRITY_TAG, "delay 1ms 1ms");
	for (i = 0; i < rounds; i++) {
		nodes_enter(&n, 1);
		CHECK_EQ(rank_register(&r[2], &m, m.addr, 65536,
				       ACP_ACCESS_READ | ACP_ACCESS_WRITE), 0);
		nodes_leave(&n);
		thirds(3 * 15000);
		descriptor(2, CHAIN, 1)->address = memory_ga(&m, 0);
		if (i & 1)
			ticket = start(0, ACP_OP_SCATTER, chain_ga(2, CHAIN, 0),
				       heap_ga(&r[0], 0), 45000);
		else
			ticket = start(0, ACP_OP_GATHER, heap_ga(&r[0], AT_SLOTS),
				       chain_ga(2, CHAIN, 0), 45000);
		sleep_ms(i / 2 % 8);
		CHECK_EQ(rank_unregister(&r[2], m.reg.key, &left), 0);
		status = rank_await(&r[0], ticket, PATIENCE_WORK);
		CHECK(status == ACP_ST_OK || status == ACP_ST_STAG);
	}
}

/* Blocks that are gone when their bytes are to be sent again: short ones and long ones. */
static void gone(uint32_t integrity)
{
	struct memory m = { .addr = pages(65536, PROT_READ | PROT_WRITE) };
	uint64_t ticket;
	uint32_t i, left;

	begin(integrity, "");
	CHECK_EQ(run(0, ACP_OP_COPY, heap_ga(&r[0], AT_SLOTS), heap_ga(&r[2], 0), 8), ACP_ST_OK);
	for (i = 0; i < SIZES; i++) {
		nodes_enter(&n, 1);
		CHECK_EQ(rank_register(&r[2], &m, m.addr, 65536,
				       ACP_ACCESS_READ | ACP_ACCESS_WRITE), 0);
		nodes_leave(&n);
		thirds(sizes[i]);
		descriptor(2, CHAIN, 0)->address = memory_ga(&m, 0);
		nodes_impair(&n, 1, "loss 100%");
		ticket = start(0, ACP_OP_GATHER, heap_ga(&r[0], AT_SLOTS), chain_ga(2, CHAIN, 0),
			       sizes[i]);
		sleep_ms(50);
		CHECK_EQ(rank_unregister(&r[2], m.reg.key, &left), 0);
		nodes_impair(&n, 1, "");
		CHECK_EQ(rank_await(&r[0], ticket, PATIENCE_WORK), ACP_ST_STAG);
	}
	CHECK_EQ(nodes_counters(&n, "flows_failed"), 0);
}

TEST(A4_blocks_that_are_gone_when_they_are_sent_again)
{
	gone(ACP_INTEGRITY_TAG);
}

TEST(A4_blocks_that_are_gone_when_they_are_encrypted_again)
{
	gone(ACP_INTEGRITY_AEAD);
}

/* ---- many at once, and ends of ranks and nodes ---- */

/* More copies in pieces than a window has numbers, one behind the other. */
TEST(many_copies_along_one_chain_at_once)
{
	uint64_t last[2] = { 0, 0 };
	unsigned int i;

	begin(ACP_INTEGRITY_TAG, "delay 1ms 1ms loss 1%");
	thirds(2000);
	for (i = 0; i < 300; i++) {
		last[0] = start(0, ACP_OP_SCATTER, chain_ga(2, CHAIN, 0), heap_ga(&r[0], 0), 2000);
		last[1] = start(4, ACP_OP_GATHER, heap_ga(&r[0], AT_SLOTS + 2000UL * (i % 30)),
				chain_ga(2, CHAIN, 0), 2000);
	}
	CHECK_EQ(rank_await(&r[0], last[0], PATIENCE_WORK), ACP_ST_OK);
	CHECK_EQ(rank_await(&r[4], last[1], PATIENCE_WORK), ACP_ST_OK);
	CHECK_EQ(r[0].cq->failed + r[4].cq->failed, 0);
	for (i = 0; i < 3; i++)
		CHECK(!memcmp(r[2].heap + AT_SLOTS + 16384 * i, r[0].heap + 667UL * i,
			      i < 2 ? 667 : 666));
}

/* An order holds for copies along chains as for others: the last one wins, or sees the first. */
TEST(order_of_copies_along_chains)
{
	uint64_t value, ticket;
	struct acp_sqe e = { 0 };
	uint32_t by, other;

	begin(ACP_INTEGRITY_TAG, "delay 1ms 1ms");
	describe(2, CHAIN, 0, AT_SLOTS, 4, 5000, 8);
	for (by = 0; by < RANKS; by++) {
		for (other = 0; other < RANKS; other++) {
			value = 1000 + by * 10 + other;
			for (uint32_t i = 0; i < 5000; i++)
				((uint32_t *)(void *)r[other].heap)[i] = (uint32_t)value;
			e = (struct acp_sqe){
				.op = ACP_OP_SCATTER, .dst = chain_ga(2, CHAIN, 0),
				.src = heap_ga(&r[other], 0), .size = 20000,
				.seen = rank_completed(&r[by]),
			};
			ticket = rank_submit(&r[by], &e);
			e = (struct acp_sqe){
				.op = ACP_OP_GATHER, .src = chain_ga(2, CHAIN, 0),
				.dst = heap_ga(&r[by], AT_SLOTS + SLOT), .size = 20000,
				.seen = rank_completed(&r[by]), .order = ticket,
			};
			ticket = rank_submit(&r[by], &e);
			CHECK_EQ(rank_await(&r[by], ticket, PATIENCE_WORK), ACP_ST_OK);
			CHECK(!memcmp(r[by].heap + AT_SLOTS + SLOT, r[other].heap, 20000));
		}
	}
}

/* Ranks leave while copies are under way: what they held is released, see the end of the test. */
TEST(A4_leaving_while_copies_along_chains_are_under_way)
{
	struct setup s;
	uint32_t i, k;

	nodes_open(&n, 3, 1, false);
	for (k = 0; k < (test_short() ? 5 : 50); k++) {
		for (i = 0; i < RANKS; i++) {
			nodes_setup(&n, &s, i, RANKS);
			s.join.job += k;
			s.join.heap_size = HEAP;
			nodes_join(&n, &r[i], &s);
		}
		thirds(20000);
		for (i = 0; i < 120; i++) {
			start(i % RANKS, ACP_OP_SCATTER, chain_ga(2, CHAIN, 0),
			      heap_ga(&r[i / 2 % RANKS], 0), 20000);
			start(i % RANKS, ACP_OP_GATHER, heap_ga(&r[i / 2 % RANKS], AT_SLOTS),
			      chain_ga(2, CHAIN, 0), 20000);
		}
		sleep_ms(k % 8);
		for (i = 0; i < RANKS; i++)
			rank_close(&r[(i + k) % RANKS]);
	}
}

static void scatter_and_gather(void)
{
	start(0, ACP_OP_SCATTER, chain_ga(2, CHAIN, 0), heap_ga(&r[0], 0), 40000);
	start(2, ACP_OP_GATHER, heap_ga(&r[0], AT_SLOTS), chain_ga(2, CHAIN, 0), 40000);
}

/*
 * The sender falls silent within a copy: the chain is released with its flow. On a busy machine all
 * copies may have ended by then; the last ones cannot.
 */
TEST(A4_a_sender_that_falls_silent_releases_the_chain)
{
	uint64_t first;
	unsigned int i;

	begin_short(500, ACP_INTEGRITY_TAG, "delay 20ms rate 50mbit");
	thirds(60000 - 20000);
	first = r[0].last + 1;
	for (i = 0; i < 100; i++)
		scatter_and_gather();
	rank_await(&r[0], first, PATIENCE_WORK);
	nodes_impair(&n, 0, "loss 100%");
	scatter_and_gather();
	CHECK(rank_await(&r[0], r[0].last, PATIENCE_WORK) != ACP_ST_OK);
	CHECK(rank_await(&r[2], r[2].last, PATIENCE_WORK) != ACP_ST_OK);
	nodes_impair(&n, 0, "");
}
