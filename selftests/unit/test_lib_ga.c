// SPDX-License-Identifier: MIT
/* Global addresses: their layout, and queries of the library. */
#define _GNU_SOURCE
#include "acp.h"
#include "acp_ga.h"
#include "test.h"
#include "test_lib_device.h"

#define PROCS	"4"	/* ranks 0 and 1 on the node of rank 0, 2 and 3 on another */

static int start(void)
{
	setenv("ACP_RANK", "0", 1);
	setenv("ACP_NPROCS", PROCS, 1);
	setenv("ACP_NODES", "10.0.0.1,10.1.0.1 10.0.0.2,10.1.0.2", 1);
	setenv("ACP_INSECURE", "1", 1);
	setenv("ACP_STARTER_SIZE", "1000", 1);
	return acp_init(NULL, NULL);
}

/* The table in acp_ga.h. */
TEST(layout__documented_widths)
{
	static const struct { uint32_t nprocs, rank, stag, offset; } rows[] = {
		{ 1, 1, 21, 40 }, { 4, 3, 20, 39 }, { 1024, 11, 17, 34 },
		{ 1048576, 21, 7, 34 }, { 16777215, 24, 6, 32 },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct acp_ga_layout l = acp_ga_layout(rows[i].nprocs);

		CHECK(l.rank_bits == rows[i].rank && l.stag_bits == rows[i].stag);
		CHECK(l.offset_bits == rows[i].offset);
	}
}

static bool round_trip(const struct acp_ga_layout *l, uint32_t rank, uint32_t color, uint32_t stag,
		       uint64_t offset)
{
	uint64_t ga = acp_ga_make(l, rank, color, stag, offset);

	return acp_ga_valid(l, ga) && ga && acp_ga_rank(l, ga) == rank &&
	       acp_ga_color(l, ga) == color && acp_ga_stag(l, ga) == stag &&
	       acp_ga_offset(l, ga) == offset;
}

static bool layout_holds(uint32_t nprocs)
{
	struct acp_ga_layout l = acp_ga_layout(nprocs);
	uint32_t ranks[] = { 0, nprocs / 2, nprocs - 1 }, stags[] = { 0, 1, 0 };
	uint64_t offsets[] = { 0, 4095, 0 };
	unsigned int i, j, k, color;

	stags[2] = (1u << l.stag_bits) - 1;
	offsets[2] = (1ULL << l.offset_bits) - 1;
	if (l.rank_bits + ACP_COLOR_BITS + l.stag_bits + l.offset_bits != 64 ||
	    (nprocs >> l.rank_bits) || l.stag_bits < 6 || l.offset_bits < 32)
		return false;
	for (i = 0; i < 3; i++)
		for (j = 0; j < 3; j++)
			for (k = 0; k < 3; k++)
				for (color = 0; color < ACP_COLORS_MAX; color++)
					if (!round_trip(&l, ranks[i], color, stags[j], offsets[k]))
						return false;
	/* Invalid: rank field 0, and the one after the last rank. */
	return !acp_ga_valid(&l, 0) && !acp_ga_valid(&l, (1ULL << (64 - l.rank_bits)) - 1) &&
	       ((nprocs + 1) >> l.rank_bits ||
		!acp_ga_valid(&l, (uint64_t)(nprocs + 1) << (64 - l.rank_bits)));
}

TEST(layout__round_trips)
{
	uint32_t nprocs;

	for (nprocs = 1; nprocs <= 70000; nprocs++)
		CHECK(layout_holds(nprocs));
	for (nprocs = 1 << 17; nprocs <= ACP_RANKS_MAX; nprocs += 99991)
		CHECK(layout_holds(nprocs));
	CHECK(layout_holds(ACP_RANKS_MAX));
}

TEST(starter__addresses)
{
	CHECK(acp_query_starter_ga(0) == ACP_GA_NULL && acpx_starter_size() == 0);
	CHECK(start() == 0);
	CHECK(acp_query_starter_ga(-1) == ACP_GA_NULL && acp_query_starter_ga(4) == ACP_GA_NULL);
	CHECK(acp_query_rank(acp_query_starter_ga(3)) == 3);
	CHECK(acp_query_color(acp_query_starter_ga(3)) == 0);
	CHECK(acpx_query_heap_ga(4) == ACP_GA_NULL && acpx_query_heap_ga(2) != ACP_GA_NULL);
	CHECK(acpx_query_heap_ga(2) != acp_query_starter_ga(2));
	CHECK(acpx_starter_size() == 1000 && acpx_heap_size() == 1 << 20 && acp_colors() == 2);
	CHECK(acp_finalize() == 0);
}

TEST(address__own_and_same_node)
{
	char *own, *neighbour;

	CHECK(start() == 0);
	own = acp_query_address(acp_query_starter_ga(0));
	neighbour = acp_query_address(acp_query_starter_ga(1));
	CHECK(own && neighbour && own != neighbour);
	fake.memory[ACP_STAG_STARTER][0][999] = 'a';
	fake.memory[ACP_STAG_STARTER][1][999] = 'b';
	CHECK(own[999] == 'a' && neighbour[999] == 'b');
	CHECK(acp_query_address(acp_query_starter_ga(1) + 999) == neighbour + 999);
	CHECK(acp_query_address(acp_query_starter_ga(1) + 1000) == NULL);
	CHECK(acp_query_address(acp_query_starter_ga(0) + 1000) == NULL);
	CHECK(acp_query_address(acp_query_starter_ga(2)) == NULL);
	CHECK(acp_query_address(acpx_query_heap_ga(1)) != NULL);
	CHECK(acp_query_address(ACP_GA_NULL) == NULL && acp_query_address(~0ull) == NULL);
	CHECK(acp_finalize() == 0);
}

TEST(query__nobody)
{
	acp_ga_t color2;

	CHECK(start() == 0);
	color2 = acp_ga_make(&fake.layout, 1, 2, 0, 0);
	CHECK(acp_query_rank(ACP_GA_NULL) == -1 && acp_query_color(ACP_GA_NULL) == -1);
	CHECK(acp_query_rank(1) == -1 && acp_query_rank(~0ull) == -1);
	CHECK(acp_query_rank(color2) == -1 && acp_query_color(color2) == -1);
	CHECK(acp_query_color(acp_ga_make(&fake.layout, 1, 1, 0, 0)) == 1);
	CHECK(acp_finalize() == 0);
	CHECK(acp_query_rank(color2) == -1);
}

static char memory[3 * FAKE_PAGE] __attribute__((aligned(FAKE_PAGE)));

TEST(register__bounds)
{
	acp_atkey_t key;
	acp_ga_t ga;

	CHECK(start() == 0);
	key = acp_register_memory(memory + 100, 5000, 1);
	CHECK(key != ACP_ATKEY_NULL);
	ga = acp_query_ga(key, memory + 100);
	CHECK(acp_query_rank(ga) == 0 && acp_query_color(ga) == 1);
	CHECK(acp_query_ga(key, memory + 5099) == ga + 4999);
	CHECK(acp_query_ga(key, memory + 5100) == ACP_GA_NULL);
	CHECK(acp_query_ga(key, memory + 99) == ACP_GA_NULL);
	CHECK(acp_query_ga(key, NULL) == ACP_GA_NULL);
	CHECK(acp_query_ga(key + 1, memory + 100) == ACP_GA_NULL);
	CHECK(acp_query_ga(acp_query_starter_ga(0), acp_query_address(acp_query_starter_ga(0))) ==
	      ACP_GA_NULL);
	CHECK(acp_query_address(ga) == memory + 100 && acp_query_address(ga - 1) == NULL);
	CHECK(acp_query_address(ga + 4999) == memory + 5099);
	CHECK(acp_query_address(ga + 5000) == NULL);
	CHECK(acp_query_address(acp_ga_make(&fake.layout, 0, 0, ACP_STAG_USER,
					    acp_ga_offset(&fake.layout, ga))) == NULL);
	CHECK(acp_unregister_memory(key) == 0 && acp_unregister_memory(key) == -1);
	CHECK(acp_query_ga(key, memory + 100) == ACP_GA_NULL);
	CHECK(acp_query_address(ga) == NULL);
	CHECK(acp_finalize() == 0);
}

TEST(register__counts)
{
	acp_atkey_t key;

	CHECK(start() == 0);
	key = acp_register_memory(memory, 2 * FAKE_PAGE, 0);
	CHECK(acp_register_memory(memory + 10, 20, 0) == key);
	CHECK(acp_register_memory(memory + 10, 20, 1) != key);
	CHECK(acp_unregister_memory(key) == 0);
	CHECK(acp_query_ga(key, memory + FAKE_PAGE) == key + FAKE_PAGE);
	CHECK(acp_unregister_memory(key) == 0);
	CHECK(acp_query_ga(key, memory + FAKE_PAGE) == ACP_GA_NULL);
	CHECK(acp_unregister_memory(key) == -1);
	CHECK(acp_finalize() == 0);
}

TEST(register__refused)
{
	unsigned int regs;

	CHECK(acp_register_memory(memory, 10, 0) == ACP_ATKEY_NULL);
	CHECK(acp_unregister_memory(1) == -1);
	CHECK(start() == 0);
	regs = fake.regs;
	CHECK(acp_register_memory(NULL, 10, 0) == ACP_ATKEY_NULL);
	CHECK(acp_register_memory(memory, 0, 0) == ACP_ATKEY_NULL);
	CHECK(acp_register_memory(memory, 10, -1) == ACP_ATKEY_NULL);
	CHECK(acp_register_memory(memory, 10, 2) == ACP_ATKEY_NULL);
	CHECK(fake.regs == regs);
	fake.reg_error = ENOMEM;
	CHECK(acp_register_memory(memory, 10, 0) == ACP_ATKEY_NULL && errno == ENOMEM);
	fake.reg_error = EDQUOT;
	CHECK(acp_register_memory(memory, 10, 0) == ACP_ATKEY_NULL && errno == EDQUOT);
	fake.reg_error = 0;
	CHECK(acp_unregister_memory(ACP_ATKEY_NULL) == -1);
	CHECK(acp_unregister_memory(acp_query_starter_ga(0)) == -1);
	CHECK(acp_unregister_memory(acp_query_starter_ga(1)) == -1);
	CHECK(acp_finalize() == 0);
}

TEST(register__keys_end_with_the_job)
{
	acp_atkey_t key;

	CHECK(start() == 0);
	key = acp_register_memory(memory, FAKE_PAGE, 0);
	CHECK(key != ACP_ATKEY_NULL && acp_finalize() == 0 && start() == 0);
	CHECK(acp_query_ga(key, memory) == ACP_GA_NULL && acp_unregister_memory(key) == -1);
	CHECK(acp_finalize() == 0);
}

TEST(register__read_only)
{
	acp_atkey_t key;
	acp_handle_t handle;
	acp_ga_t word;

	CHECK(start() == 0);
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	key = acpx_register_memory(memory, FAKE_PAGE, 0, ACPX_ACCESS_READ | ACPX_ACCESS_RO);
	CHECK(key != ACP_ATKEY_NULL);
	word = acp_query_ga(key, memory);
	memory[0] = 'x';
	handle = acp_copy(acp_query_starter_ga(0), word, 8, ACP_HANDLE_NULL);
	CHECK(handle & 1);
	CHECK(*(char *)acp_query_address(acp_query_starter_ga(0)) == 'x');
	/* The caller must not write there itself: the kernel must reject it. */
	handle = acp_copy(word, acp_query_starter_ga(0), 8, ACP_HANDLE_NULL);
	CHECK(handle != (acp_handle_t)ACP_HANDLE_NULL && !(handle & 1));
	acp_complete(handle);
	acpx_set_error_mode(ACPX_ERRORS_ABORT);
	CHECK(acp_finalize() == 0);
}

TEST_MAIN
