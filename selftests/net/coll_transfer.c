// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * The papers' persistent collectives: parts of an array, arrays by a buffer; sent along the tree,
 * and by copies that the root alone issues. Four nodes of two ranks.
 */
#include "coll_play.h"

#include <signal.h>
#include <unistd.h>

static const size_t sizes[] = { 1, 8, 1000, 66000, 300001 };

#define SIZES	(sizeof(sizes) / sizeof(sizes[0]))

static acp_coll_t handle;
static const int first_ranks[RANKS] = { 0, 1, 2, 3, 4, 5, 6, 7 };

/* ---- Broadcast of parts of an array ---- */

/* Send a part and check it, and that the bytes around it have not changed. */
static void bcast_part(int number, uint64_t round, size_t offset, size_t size)
{
	memset(dst, 0x5a, ROOM);
	if (!number)
		put_bytes(dst + offset, size, round, 0, 0);
	CHECK_EQ(acp_send_bcast_direct(handle, offset, size), 0);
	CHECK_EQ(acp_wait_coll(handle), size);
	CHECK_EQ(acp_inquire_coll(handle), 0);
	check_bytes(dst + offset, size, round, 0, 0);
	CHECK(!offset || dst[offset - 1] == 0x5a);
	CHECK(offset + size == ROOM || dst[offset + size] == 0x5a);
}

static void bcast_direct(acpx_group_t group, int number, int size)
{
	uint64_t round = 0;
	size_t i;

	(void)size;
	CHECK_EQ(acpx_coll_bcast_direct_create(group, dst, ROOM, 0, &handle), 0);
	for (i = 0; i < SIZES; i++) {
		bcast_part(number, ++round, 0, sizes[i]);
		bcast_part(number, ++round, 12345, sizes[i]);
		bcast_part(number, ++round, ROOM - sizes[i], sizes[i]);
		bcast_part(number, ++round, ROOM, 0);
	}
	bcast_part(number, ++round, 0, ROOM);
	CHECK_EQ(acp_free_coll(handle), 0);
}

static void all_bcast_direct(void)
{
	begin();
	for_groups(bcast_direct);
	end();
}

TEST(bcast_direct_sends_parts_of_an_array)
{
	members_run(RANKS, PER_NODE, all_bcast_direct);
}

TEST_LONG(bcast_direct_over_a_bad_network, PATIENCE_LONG_TEST)
{
	members_run_over("loss 2% duplicate 2%", RANKS, PER_NODE, all_bcast_direct);
}

/* ---- Broadcast by a buffer ---- */

static void bcast_buffer(int number, uint64_t round, size_t size, size_t buffersize)
{
	unsigned char *array = round % 2 ? dst : src;

	memset(array, 0x5a, size + 1);
	if (!number)
		put_bytes(array, size, round, 0, 0);
	CHECK_EQ(acp_send_bcast_buffered(handle, array, size), 0);
	if (!number && size <= buffersize)
		memset(array, 0, size);		/* the array is free */
	CHECK_EQ(acp_wait_coll(handle), size);
	if (number || size > buffersize)
		check_bytes(array, size, round, 0, 0);
	CHECK_EQ(array[size], 0x5a);
}

static void bcast_buffered(acpx_group_t group, int number, int size)
{
	static const size_t buffers[] = { 7000, 200000 };
	uint64_t round = 0;
	size_t i, b;

	(void)size;
	for (b = 0; b < 2; b++) {
		CHECK_EQ(acpx_coll_bcast_buffered_create(group, buffers[b], &handle), 0);
		for (i = 0; i < SIZES; i++) {
			bcast_buffer(number, ++round, sizes[i], buffers[b]);
			bcast_buffer(number, ++round, buffers[b], buffers[b]);
			bcast_buffer(number, ++round, 0, buffers[b]);
		}
		CHECK_EQ(acp_free_coll(handle), 0);
	}
}

static void all_bcast_buffered(void)
{
	begin();
	for_groups(bcast_buffered);
	end();
}

TEST(bcast_buffered_sends_any_array)
{
	members_run(RANKS, PER_NODE, all_bcast_buffered);
}

/* ---- Allgather ---- */

/* If members drive, all of them must have prepared their arrays, and must have ended. */
static void gather_part(acpx_group_t group, unsigned int flags, uint64_t round, size_t part,
			size_t offset, size_t bytes)
{
	const int number = acpx_group_rank(group), size = acpx_group_size(group);
	int i;

	memset(dst, 0x5a, part * (size_t)size);
	put_bytes(dst + (size_t)number * part + offset, bytes, round, number, 0);
	if (flags)
		CHECK_EQ(acpx_barrier(group), 0);
	CHECK_EQ(acp_send_allgather_direct(handle, offset, bytes), 0);
	CHECK_EQ(acp_wait_coll(handle), bytes);
	for (i = 0; i < size; i++) {
		check_bytes(dst + (size_t)i * part + offset, bytes, round, i, 0);
		CHECK(!offset || dst[(size_t)i * part + offset - 1] == 0x5a);
		CHECK(offset + bytes == part || dst[(size_t)i * part + offset + bytes] == 0x5a);
	}
	if (flags)
		CHECK_EQ(acpx_barrier(group), 0);
}

static void gather_parts(acpx_group_t group, unsigned int flags, int size)
{
	static const size_t parts[] = { 8, 1000, 100000 };
	uint64_t round = 0;
	size_t p, part;

	for (p = 0; p < 3; p++) {
		part = parts[p];
		CHECK_EQ(acpx_coll_allgather_direct_create(group, dst, part * (size_t)size, flags,
							   &handle), 0);
		gather_part(group, flags, ++round, part, 0, part);
		gather_part(group, flags, ++round, part, part / 2, part / 4);
		gather_part(group, flags, ++round, part, part, 0);
		gather_part(group, flags, ++round, part, 0, part);
		CHECK_EQ(acp_free_coll(handle), 0);
	}
}

static void gather_direct(acpx_group_t group, int number, int size)
{
	(void)number;
	gather_parts(group, 0, size);
}

static void all_gather_direct(void)
{
	begin();
	for_groups(gather_direct);
	end();
}

TEST(allgather_direct_sends_parts_of_all)
{
	members_run(RANKS, PER_NODE, all_gather_direct);
}

static void gather_buffer(int number, int size, uint64_t round, size_t bytes)
{
	unsigned char *array = round % 2 ? dst : src;
	int i;

	memset(array, 0x5a, bytes * (size_t)size + 1);
	put_bytes(array + (size_t)number * bytes, bytes, round, number, 0);
	CHECK_EQ(acp_send_allgather_buffered(handle, array, bytes), 0);
	CHECK_EQ(acp_wait_coll(handle), bytes);
	for (i = 0; i < size; i++)
		check_bytes(array + (size_t)i * bytes, bytes, round, i, 0);
	CHECK_EQ(array[bytes * (size_t)size], 0x5a);
}

static void gather_buffered(acpx_group_t group, int number, int size)
{
	uint64_t round = 0;
	size_t i;

	CHECK_EQ(acpx_coll_allgather_buffered_create(group, 50000, &handle), 0);
	for (i = 0; i < SIZES - 1; i++) {
		gather_buffer(number, size, ++round, sizes[i]);
		gather_buffer(number, size, ++round, sizes[i] + 1);
	}
	CHECK_EQ(acp_free_coll(handle), 0);
}

static void all_gather_buffered(void)
{
	begin();
	for_groups(gather_buffered);
	end();
}

TEST(allgather_buffered_sends_any_arrays)
{
	members_run(RANKS, PER_NODE, all_gather_buffered);
}

/* ---- Roots that drive ---- */

/* The root sends parts behind each other; the others only wait, once all is there or for each. */
static void bcast_driven(acpx_group_t group, int number, int size)
{
	size_t i, all = 0, seen = 0;

	(void)size;
	memset(dst, 0, ROOM);
	CHECK_EQ(acpx_coll_bcast_direct_create(group, dst, ROOM, ACPX_ROOT_DRIVEN, &handle), 0);
	for (i = 0; i < SIZES; all += sizes[i++]) {
		if (number)
			continue;
		put_bytes(dst + all, sizes[i], i, 0, 0);
		CHECK_EQ(acp_send_bcast_direct(handle, all, sizes[i]), 0);
		CHECK_EQ(acp_wait_coll(handle), sizes[i]);
	}
	while (number && seen < all)
		seen += acp_wait_coll(handle);
	CHECK(!number || seen == all);
	if (number) {
		CHECK_EQ(acp_inquire_coll(handle), 1);
		CHECK_EQ(acpx_coll_receive(handle, 1000), -ETIMEDOUT);
	}
	for (i = 0, all = 0; i < SIZES; all += sizes[i++])
		check_bytes(dst + all, sizes[i], i, 0, 0);
	CHECK_EQ(acpx_barrier(group), 0);
	CHECK_EQ(acp_free_coll(handle), 0);
}

static void all_bcast_driven(void)
{
	begin();
	for_groups(bcast_driven);
	end();
}

TEST(root_driven_bcast_reaches_all)
{
	members_run(RANKS, PER_NODE, all_bcast_driven);
}

static void gather_driven(acpx_group_t group, int number, int size)
{
	(void)number;
	gather_parts(group, ACPX_ROOT_DRIVEN, size);
}

static void all_gather_driven(void)
{
	begin();
	for_groups(gather_driven);
	end();
}

TEST(root_driven_allgather_reaches_all)
{
	members_run(RANKS, PER_NODE, all_gather_driven);
}

/* All but the root are stopped when they have created it. */
static void stopped(void)
{
	acpx_group_t group;
	size_t i;

	begin();
	CHECK_EQ(acpx_group_world(&group), 0);
	CHECK_EQ(acpx_coll_bcast_direct_create(group, dst, ROOM, ACPX_ROOT_DRIVEN, &handle), 0);
	if (acp_rank()) {
		raise(SIGSTOP);
		CHECK_EQ(acp_inquire_coll(handle), 0);
		CHECK_EQ(acp_wait_coll(handle), ROOM);
	}
	for (i = 0; !acp_rank() && i < 4; i++) {
		put_bytes(dst + i * (ROOM / 4), ROOM / 4, 1, 0, (int)i);
		CHECK_EQ(acp_send_bcast_direct(handle, i * (ROOM / 4), ROOM / 4), 0);
		CHECK_EQ(acp_wait_coll(handle), ROOM / 4);
	}
	for (i = 0; i < 4; i++)
		check_bytes(dst + i * (ROOM / 4), ROOM / 4, 1, 0, (int)i);
	if (!acp_rank())
		CHECK_EQ(acp_free_coll(handle), 0);
}

TEST(root_driven_bcast_needs_no_other_process)
{
	struct members m;
	int r;

	members_open(&m, RANKS, PER_NODE);
	members_start_all(&m, stopped);
	CHECK_EQ(members_wait(&m, 0), 0);
	for (r = 1; r < RANKS; r++)
		kill(m.pid[r], SIGCONT);
	for (r = 1; r < RANKS; r++)
		CHECK_EQ(members_wait(&m, r), 0);
}

/* ---- The calls of the papers ---- */

static void papers(void)
{
	static uint64_t numbers[RANKS + 1];
	uint64_t other[RANKS];
	int i, n = RANKS;

	begin();
	handle = acp_create_bcast_direct(n, first_ranks, numbers, sizeof(numbers));
	CHECK(handle);
	numbers[3] = acp_rank() ? 0 : 77;
	CHECK_EQ(acp_send_bcast_direct(handle, 24, 8), 0);
	CHECK_EQ(acp_wait_coll(handle), 8);
	CHECK(numbers[3] == 77 && !numbers[2] && !numbers[4]);
	CHECK_EQ(acp_free_coll(handle), 0);

	handle = acp_create_bcast_buffered(n, first_ranks, 16);
	CHECK(handle);
	for (i = 0; i < n; i++)
		other[i] = acp_rank() ? 0 : (uint64_t)i + 5;
	CHECK_EQ(acp_send_bcast_buffered(handle, other, sizeof(other)), 0);
	while (acp_inquire_coll(handle) == 1)
		sleep_ms(1);
	for (i = 0; i < n; i++)
		CHECK_EQ(other[i], (uint64_t)i + 5);
	CHECK_EQ(acp_free_coll(handle), 0);

	handle = acp_create_allgather_direct(n, first_ranks, numbers, RANKS * sizeof(numbers[0]));
	CHECK(handle);
	numbers[acp_rank()] = (uint64_t)acp_rank() * 3;
	CHECK_EQ(acp_send_allgather_direct(handle, 0, 8), 0);
	CHECK_EQ(acp_wait_coll(handle), 8);
	for (i = 0; i < n; i++)
		CHECK_EQ(numbers[i], (uint64_t)i * 3);
	CHECK_EQ(acp_free_coll(handle), 0);

	handle = acp_create_allgather_buffered(n, first_ranks, 8);
	CHECK(handle);
	other[acp_rank()] = (uint64_t)acp_rank() << 40 | 9;
	CHECK_EQ(acp_send_allgather_buffered(handle, other, 8), 0);
	CHECK_EQ(acp_wait_coll(handle), 8);
	for (i = 0; i < n; i++)
		CHECK_EQ(other[i], (uint64_t)i << 40 | 9);
	CHECK_EQ(acp_free_coll(handle), 0);
	end();
}

TEST(calls_of_the_papers)
{
	members_run(RANKS, PER_NODE, papers);
}
