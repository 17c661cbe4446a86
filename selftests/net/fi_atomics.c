// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/* The provider of libfabric: atomics of each type, and those that it refuses. */
#include "../dev/isolated.h"

#include "fi_play.h"

static uint64_t fetch(enum fi_op op, uint64_t operand, enum fi_datatype type)
{
	uint64_t former = 0;

	CHECK_EQ(fi_fetch_atomic(p.ep, &operand, 1, NULL, &former, NULL, p.peer[THERE],
				 play_at(&p, THERE, 0), play_key(THERE), type, op, &p), 0);
	CHECK_EQ(done().flags, FI_ATOMIC | FI_READ);
	return former;
}

static uint64_t swap_if(uint64_t old, uint64_t new, enum fi_datatype type)
{
	uint64_t former = 0;

	CHECK_EQ(fi_compare_atomic(p.ep, &new, 1, NULL, &old, NULL, &former, NULL, p.peer[THERE],
				   play_at(&p, THERE, 0), play_key(THERE), type, FI_CSWAP, &p), 0);
	done();
	return former;
}

/* Each operation, by what the next one finds. */
static void each_atomic(enum fi_datatype type)
{
	CHECK_EQ(fetch(FI_ATOMIC_WRITE, 40, type), 0);
	CHECK_EQ(fetch(FI_SUM, 2, type), 40);
	CHECK_EQ(fetch(FI_BOR, 5, type), 42);
	CHECK_EQ(fetch(FI_BAND, 0x2e, type), 47);
	CHECK_EQ(fetch(FI_BXOR, 0xff, type), 46);
	CHECK_EQ(fetch(FI_ATOMIC_READ, 999, type), 0xd1);
	CHECK_EQ(swap_if(1, 2, type), 0xd1);
	CHECK_EQ(swap_if(0xd1, 0, type), 0xd1);
	CHECK_EQ(fetch(FI_ATOMIC_READ, 0, type), 0);
}

static void several_elements(void)
{
	uint32_t add[16], before[16], i;

	for (i = 0; i < 16; i++)
		add[i] = i;
	CHECK_EQ(fi_atomic(p.ep, add, 16, NULL, p.peer[THERE], play_at(&p, THERE, 64),
			   play_key(THERE), FI_UINT32, FI_SUM, &p), 0);
	CHECK_EQ(done().flags, FI_ATOMIC | FI_WRITE);
	CHECK_EQ(fi_inject_atomic(p.ep, add, 16, p.peer[THERE], play_at(&p, THERE, 64),
				  play_key(THERE), FI_UINT32, FI_SUM), 0);
	CHECK_EQ(fi_fetch_atomic(p.ep, NULL, 16, NULL, before, NULL, p.peer[THERE],
				 play_at(&p, THERE, 64), play_key(THERE), FI_UINT32,
				 FI_ATOMIC_READ, &p), 0);
	done();
	for (i = 0; i < 16; i++)
		CHECK(before[i] == 2 * i || before[i] == i);	/* not ordered */
	CHECK_EQ(fi_atomic(p.ep, add, 17, NULL, p.peer[THERE], play_at(&p, THERE, 64),
			   play_key(THERE), FI_UINT32, FI_SUM, &p), -FI_EINVAL);
}

static void queries(void)
{
	struct fi_atomic_attr attr;
	size_t count;

	CHECK_EQ(fi_atomicvalid(p.ep, FI_INT64, FI_SUM, &count), 0);
	CHECK_EQ(count, 16);
	CHECK_EQ(fi_atomicvalid(p.ep, FI_INT64, FI_ATOMIC_READ, &count), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_fetch_atomicvalid(p.ep, FI_DOUBLE, FI_ATOMIC_READ, &count), 0);
	CHECK_EQ(fi_fetch_atomicvalid(p.ep, FI_DOUBLE, FI_SUM, &count), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_compare_atomicvalid(p.ep, FI_UINT32, FI_CSWAP, &count), 0);
	CHECK_EQ(fi_compare_atomicvalid(p.ep, FI_UINT32, FI_MSWAP, &count), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_query_atomic(p.domain, FI_UINT64, FI_CSWAP, &attr, FI_COMPARE_ATOMIC), 0);
	CHECK_EQ(attr.size, 8);
	CHECK_EQ(fi_query_atomic(p.domain, FI_UINT8, FI_SUM, &attr, 0), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_atomic(p.ep, &attr, 1, NULL, p.peer[THERE], play_at(&p, THERE, 0),
			   play_key(THERE), FI_UINT64, FI_LOR, NULL), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_atomicvalid(p.ep, FI_DOUBLE, FI_SUM, &count), 0);
	CHECK_EQ(fi_atomicvalid(p.ep, FI_DOUBLE, FI_BOR, &count), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_fetch_atomicvalid(p.ep, FI_UINT64, FI_MAX, &count), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_atomicvalid(p.ep, FI_UINT8, FI_MAX, &count), -FI_EOPNOTSUPP);
}

/* Combine two numbers at the target, which are those bytes afterwards. */
static void combines(enum fi_datatype type, enum fi_op op, const void *operands, const void *bytes,
		     size_t size)
{
	char there[16];

	CHECK_EQ(fi_atomic(p.ep, operands, 2, NULL, p.peer[THERE], play_at(&p, THERE, 256),
			   play_key(THERE), type, op, &p), 0);
	CHECK_EQ(done().flags, FI_ATOMIC | FI_WRITE);
	CHECK_EQ(fi_read(p.ep, there, size, NULL, p.peer[THERE], play_at(&p, THERE, 256),
			 play_key(THERE), &p), 0);
	done();
	if (memcmp(there, bytes, size))
		FAIL("operation %d of type %d", op, type);
}

#define COMBINES(of, t, op, x, y, rx, ry)					\
	do {									\
		const t operands[] = { x, y }, results[] = { rx, ry };		\
										\
		combines(of, op, operands, results, sizeof(results));		\
	} while (0)

/* Those that ACP has no atomic for. */
static void combinations(void)
{
	COMBINES(FI_INT32, int32_t, FI_MIN, -5, 7, -5, 0);
	COMBINES(FI_INT32, int32_t, FI_MAX, -7, 3, -5, 3);
	COMBINES(FI_INT32, int32_t, FI_PROD, 3, 2, -15, 6);
	COMBINES(FI_UINT32, uint32_t, FI_MIN, 9, 9, 9, 6);
	COMBINES(FI_UINT32, uint32_t, FI_MAX, 0, 8, 9, 8);
	COMBINES(FI_INT64, int64_t, FI_MIN, 1, -1, 1, -1);
	COMBINES(FI_INT64, int64_t, FI_MAX, 2, -1, 2, -1);
	COMBINES(FI_UINT64, uint64_t, FI_MAX, 0, UINT64_MAX, 2, UINT64_MAX);
	COMBINES(FI_UINT64, uint64_t, FI_PROD, 0, 0, 0, 0);
	COMBINES(FI_DOUBLE, double, FI_SUM, 0.5, -2, 0.5, -2);
	COMBINES(FI_DOUBLE, double, FI_PROD, 3, 3, 1.5, -6);
	COMBINES(FI_DOUBLE, double, FI_MIN, 2, -7, 1.5, -7);
	COMBINES(FI_DOUBLE, double, FI_MAX, 2, -8, 2, -7);
	COMBINES(FI_DOUBLE, double, FI_PROD, 0, 0, 0, -0.0);
	COMBINES(FI_DOUBLE, double, FI_SUM, 0, 0, 0, 0);
	COMBINES(FI_FLOAT, float, FI_SUM, 0.25f, 1, 0.25f, 1);
}

static void atomics(void)
{
	static const enum fi_datatype types[] = { FI_INT32, FI_UINT32, FI_INT64, FI_UINT64 };
	size_t i;

	play_open(&p, NULL);
	for (i = 0; p.rank == 0 && i < COUNT(types); i++)
		each_atomic(types[i]);
	if (p.rank == 0) {
		several_elements();
		queries();
		combinations();
	}
	play_meet();
	play_close(&p);
}

TEST(atomics_change_the_word_and_fetch_its_former_value)
{
	run(atomics);
}
