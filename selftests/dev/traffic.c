// SPDX-License-Identifier: MIT
/* Commands between ranks, with all results checked (see traffic.h). */
#include "traffic.h"
#include "isolated.h"

static size_t region_size(const struct traffic *t)
{
	return 2 * t->half + TRAFFIC_WORDS * 8;
}

static size_t word_offset(const struct traffic *t, uint32_t i)
{
	return 2 * t->half + i * 8;
}

static uint64_t ga(const struct traffic *t, uint32_t rank, size_t offset)
{
	return memory_ga(&t->memory[rank], offset);
}

static void open_memory(struct traffic *t, uint32_t rank, uint32_t color)
{
	size_t size = region_size(t);
	int error = rank_register_color(&t->ranks[rank], &t->memory[rank],
					pages(size, PROT_READ | PROT_WRITE), size, ACP_ACCESS_ALL,
					color);

	if (error)
		FAIL("register %zu bytes: %s", size, strerror(-error));
	fill(t->memory[rank].addr, size, t->seed + rank);
	t->model[rank] = pages(size, PROT_READ | PROT_WRITE);
	memcpy(t->model[rank], t->memory[rank].addr, size);
}

void traffic_open(struct traffic *t, struct rank *ranks, uint32_t count, size_t half,
		  uint32_t color)
{
	uint32_t i;

	memset(t, 0, sizeof(*t));
	t->ranks = ranks;
	t->count = count;
	t->half = half;
	t->seed = (uint64_t)getpid();
	printf("# seed %llu\n", (unsigned long long)t->seed);
	for (i = 0; i < count; i++)
		open_memory(t, i, color);
}

void traffic_close(struct traffic *t)
{
	uint32_t i;

	for (i = 0; i < t->count; i++) {
		CHECK_EQ(rank_unregister(&t->ranks[i], t->memory[i].reg.key, NULL), 0);
		munmap(t->memory[i].addr, t->memory[i].size);
		munmap(t->model[i], t->memory[i].size);
	}
}

void traffic_check(struct traffic *t)
{
	uint32_t i;
	size_t at;

	for (i = 0; i < t->count; i++) {
		const char *found = t->memory[i].addr, *wanted = t->model[i];

		if (!memcmp(found, wanted, region_size(t)))
			continue;
		for (at = 0; found[at] == wanted[at]; at++)
			;
		FAIL("memory of rank %u is wrong from byte %zu of %zu on", i, at, region_size(t));
	}
}

static void ok(struct traffic *t, uint32_t origin, uint64_t ticket, const char *what)
{
	int status = rank_await(&t->ranks[origin], ticket, PATIENCE_WORK);

	if (status != ACP_ST_OK)
		FAIL("%s issued by rank %u ended with %d", what, origin, status);
}

/* ---- One at a time ---- */

static void one_copy(struct traffic *t, uint32_t origin, uint32_t dst, uint32_t src, size_t size)
{
	size_t room = t->half - size;
	size_t from = room ? next_random(&t->seed) % room : 0;
	size_t to = t->half + (room ? next_random(&t->seed) % room : 0);
	struct rank *r = &t->ranks[origin];

	ok(t, origin, rank_copy(r, ga(t, dst, to), ga(t, src, from), size, 0), "a copy");
	memcpy(t->model[dst] + to, t->model[src] + from, size);
	if (memcmp(t->memory[dst].addr + to, t->model[dst] + to, size))
		FAIL("copy of %zu bytes from rank %u to %u by %u: wrong data", size, src, dst,
		     origin);
}

void traffic_every_copy(struct traffic *t, const size_t *sizes, uint32_t n)
{
	uint32_t o, s, d, i;

	for (o = 0; o < t->count; o++)
		for (s = 0; s < t->count; s++)
			for (d = 0; d < t->count; d++)
				for (i = 0; i < n; i++)
					one_copy(t, o, d, s, sizes[i]);
	traffic_check(t);
}

void traffic_common_copies(struct traffic *t)
{
	static const size_t sizes[] = {
		0, 1, 3, 8, 9, 128, 129, 1000, 1320, 1360, 1376, 1400, 3000, 16385,
	};

	traffic_every_copy(t, sizes, sizeof(sizes) / sizeof(sizes[0]));
}

void traffic_long_copies(struct traffic *t, size_t size)
{
	uint32_t s, d, o = 0;

	for (s = 0; s < t->count; s++)
		for (d = 0; d < t->count; d++)
			one_copy(t, o++ % t->count, d, s, size);
	traffic_check(t);
}

/* Operands are often equal to the current value, for compare and swap. */
static uint64_t operand(struct traffic *t, uint64_t old)
{
	uint64_t x = next_random(&t->seed);

	return x % 4 ? next_random(&t->seed) : old;
}

static void one_atomic(struct traffic *t, unsigned int op, uint32_t origin, uint32_t dst,
		       uint32_t src)
{
	unsigned int width = atomic_width(op);
	size_t from = word_offset(t, (uint32_t)(next_random(&t->seed) % TRAFFIC_WORDS));
	size_t to = t->half + (next_random(&t->seed) % (t->half - 8) & -8UL);
	uint64_t old = 0, a, b, new;

	if (width == 4) {
		from += next_random(&t->seed) & 4;
		to += next_random(&t->seed) & 4;
	}
	memcpy(&old, t->model[src] + from, width);
	a = operand(t, old);
	b = op <= ACP_OP_CAS8 ? next_random(&t->seed) : 0;
	new = atomic_result(op, old, a, b);
	ok(t, origin, rank_atomic(&t->ranks[origin], op, ga(t, dst, to), ga(t, src, from), a, b, 0),
	   "an atomic");
	memcpy(t->model[src] + from, &new, width);
	memcpy(t->model[dst] + to, &old, width);
	if (memcmp(t->memory[src].addr + from, &new, width) ||
	    memcmp(t->memory[dst].addr + to, &old, width))
		FAIL("operation %u on rank %u, result to %u, by %u: wrong", op, src, dst, origin);
}

void traffic_every_atomic(struct traffic *t)
{
	uint32_t o, s, d, op;

	for (op = ACP_OP_CAS4; op <= ACP_OP_AND8; op++)
		for (o = 0; o < t->count; o++)
			for (s = 0; s < t->count; s++)
				for (d = 0; d < t->count; d++)
					one_atomic(t, op, o, d, s);
	traffic_check(t);
}

/* ---- Many at once ---- */

/* Command @i of @n: writes the i-th of n parts of the second half of its destination. */
static void part_copy(struct traffic *t, uint32_t origin, uint32_t dst, uint32_t src, uint32_t i,
		      uint32_t n, size_t longest)
{
	size_t part = t->half / n;
	size_t most = longest < part ? longest : part;
	size_t size = next_random(&t->seed) % (most + 1);
	size_t to = t->half + i * part + next_random(&t->seed) % (part - size + 1);
	size_t from = next_random(&t->seed) % (t->half - size + 1);

	if (next_random(&t->seed) % 2)
		size %= 300;
	rank_copy(&t->ranks[origin], ga(t, dst, to), ga(t, src, from), size, 0);
	memcpy(t->model[dst] + to, t->model[src] + from, size);
}

/* ... or is an atomic on word @i, whose result goes there. */
static void part_atomic(struct traffic *t, uint32_t origin, uint32_t dst, uint32_t src,
			uint32_t i, uint32_t n)
{
	unsigned int op = ACP_OP_CAS4 +
			  (unsigned int)(next_random(&t->seed) % (ACP_OP_AND8 + 1 - ACP_OP_CAS4));
	size_t from = word_offset(t, i % TRAFFIC_WORDS);
	size_t to = (t->half + i * (t->half / n) + 7) & -8UL;
	uint64_t old = 0, a, b, new;

	memcpy(&old, t->model[src] + from, atomic_width(op));
	a = operand(t, old);
	b = op <= ACP_OP_CAS8 ? next_random(&t->seed) : 0;
	new = atomic_result(op, old, a, b);
	rank_atomic(&t->ranks[origin], op, ga(t, dst, to), ga(t, src, from), a, b, 0);
	memcpy(t->model[src] + from, &new, atomic_width(op));
	memcpy(t->model[dst] + to, &old, atomic_width(op));
}

static void one_batch(struct traffic *t, uint32_t n, size_t longest)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint32_t o = (uint32_t)(next_random(&t->seed) % t->count);
		uint32_t s = (uint32_t)(next_random(&t->seed) % t->count);
		uint32_t d = (uint32_t)(next_random(&t->seed) % t->count);

		if (i < TRAFFIC_WORDS && next_random(&t->seed) % 4 == 0)
			part_atomic(t, o, d, s, i, n);
		else
			part_copy(t, o, d, s, i, n, longest);
	}
	for (i = 0; i < t->count; i++)
		ok(t, i, t->ranks[i].last, "a batch");
	for (i = 0; i < t->count; i++)
		if (t->ranks[i].cq->failed)
			FAIL("%llu commands of rank %u failed",
			     (unsigned long long)t->ranks[i].cq->failed, i);
	traffic_check(t);
}

/* Before a source changes: a delayed copy of a datagram must still match its tag. */
static void await_late_copies(const struct traffic *t)
{
	if (t->late_ms)
		sleep_ms(t->late_ms);
}

/* The owners change some of the data that is read next. */
static void refill(struct traffic *t)
{
	uint32_t i;

	await_late_copies(t);
	for (i = 0; i < t->count; i++) {
		size_t at = next_random(&t->seed) % (t->half - 64);
		uint64_t seed = next_random(&t->seed);

		fill(t->memory[i].addr + at, 64, seed);
		fill(t->model[i] + at, 64, seed);
	}
}

void traffic_random(struct traffic *t, uint32_t batches, uint32_t batch, size_t longest)
{
	while (batches--) {
		one_batch(t, batch, longest);
		refill(t);
	}
}

static int compare_words(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void traffic_count(struct traffic *t, uint32_t target, uint32_t each)
{
	uint64_t *all = pages((size_t)each * t->count * 8, PROT_READ | PROT_WRITE);
	uint64_t *word = (uint64_t *)(t->memory[target].addr + word_offset(t, 0));
	uint32_t i, k;

	CHECK(each * 8 <= t->half);
	*word = 0;
	for (k = 0; k < each; k++)
		for (i = 0; i < t->count; i++)
			rank_atomic(&t->ranks[i], ACP_OP_ADD8, ga(t, i, t->half + k * 8UL),
				    ga(t, target, word_offset(t, 0)), 1, 0, 0);
	for (i = 0; i < t->count; i++) {
		ok(t, i, t->ranks[i].last, "counting");
		memcpy(all + i * each, t->memory[i].addr + t->half, each * 8UL);
		memcpy(t->model[i] + t->half, t->memory[i].addr + t->half, each * 8UL);
	}
	CHECK_EQ(*word, each * t->count);
	qsort(all, each * t->count, 8, compare_words);
	for (i = 0; i < each * t->count; i++)
		CHECK_EQ(all[i], i);
	memcpy(t->model[target] + word_offset(t, 0), word, 8);
	munmap(all, (size_t)each * t->count * 8);
}

/* ---- Flags after data ---- */

/* Word 1 of the destination is the flag; word 2 of the source holds its next value. */
static void send_flag(struct traffic *t, enum traffic_order order, uint32_t origin, uint32_t dst,
		      uint32_t src, uint64_t value)
{
	struct rank *r = &t->ranks[origin];
	struct acp_sqe e = {
		.op = ACP_OP_COPY, .dst = ga(t, dst, word_offset(t, 1)),
		.src = ga(t, src, word_offset(t, 2)), .size = 8,
		.order = r->last, .seen = rank_completed(r),
	};

	memcpy(t->memory[src].addr + word_offset(t, 2), &value, 8);
	if (order == TRAFFIC_CONT) {
		e.flags = ACP_SQE_CONT;
	} else if (order == TRAFFIC_ATOMIC) {
		e.op = ACP_OP_SWAP8;
		e.src = e.dst;
		e.dst = ga(t, origin, word_offset(t, 3));
		e.size = 0;
		e.a = value;
	}
	rank_submit(r, &e);
}

static void one_flag(struct traffic *t, enum traffic_order order, uint32_t origin, uint32_t dst,
		     uint32_t src, size_t size, uint64_t value)
{
	uint64_t *flag = (uint64_t *)(t->memory[dst].addr + word_offset(t, 1));
	struct patience p = patience_begin(PATIENCE_WORK);

	*flag = 0;
	await_late_copies(t);
	fill(t->memory[src].addr, size, value);
	rank_copy(&t->ranks[origin], ga(t, dst, t->half), ga(t, src, 0), size, 0);
	send_flag(t, order, origin, dst, src, value);
	while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != value)
		if (patience_over(&p))
			FAIL("no flag");
	if (!filled(t->memory[dst].addr + t->half, size, value))
		FAIL("flag before data: from rank %u to %u, issued by %u", src, dst, origin);
	ok(t, origin, t->ranks[origin].last, "a flag");
}

void traffic_flags(struct traffic *t, enum traffic_order order, size_t size, uint32_t rounds)
{
	uint64_t value = next_random(&t->seed) | 1;
	uint32_t i, o, s, d;

	for (i = 0; i < rounds; i++)
		for (o = 0; o < t->count; o++)
			for (s = 0; s < t->count; s++)
				for (d = 0; d < t->count; d++)
					one_flag(t, order, o, d, s, size, value++);
	for (i = 0; i < t->count; i++)
		memcpy(t->model[i], t->memory[i].addr, region_size(t));
}

void traffic_everything(struct traffic *t, struct rank *ranks, uint32_t count, uint32_t color)
{
	const size_t longest = 1 << 20;

	traffic_open(t, ranks, count, longest, color);
	traffic_common_copies(t);
	traffic_long_copies(t, test_short() ? 100001 : longest);
	traffic_every_atomic(t);
	traffic_random(t, test_short() ? 3 : 10, 40, 30000);
	traffic_count(t, count - 1, test_short() ? 100 : 1000);
	traffic_flags(t, TRAFFIC_HANDLE, 5000, 1);
	traffic_flags(t, TRAFFIC_CONT, 5000, 1);
	traffic_flags(t, TRAFFIC_ATOMIC, 5000, 1);
	traffic_close(t);
}
