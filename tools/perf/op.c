// SPDX-License-Identifier: MIT
/* The table of operations, and a model of each that tells the expected contents of memory. */
#include "op.h"

#include <string.h>

/* Operand of all atomics except compare-and-swap; those of 4 bytes use its lower half. */
#define OPERAND		UINT64_C(0x0102030485868789)
#define CAS_OLD		UINT64_C(0x1111111122222222)

static acp_handle_t cas4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order)
{
	return acp_cas4(dst, src, (uint32_t)CAS_OLD, value, order);
}

static acp_handle_t cas8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order)
{
	return acp_cas8(dst, src, CAS_OLD, value, order);
}

static uint64_t model_swap(uint64_t old, uint64_t value)
{
	(void)old;
	return value;
}

static uint64_t model_cas4(uint64_t old, uint64_t value)
{
	return old == (CAS_OLD & UINT32_MAX) ? value : old;
}

static uint64_t model_cas8(uint64_t old, uint64_t value)
{
	return old == CAS_OLD ? value : old;
}

static uint64_t model_add(uint64_t old, uint64_t value)
{
	return old + value;
}

static uint64_t model_xor(uint64_t old, uint64_t value)
{
	return old ^ value;
}

static uint64_t model_or(uint64_t old, uint64_t value)
{
	return old | value;
}

static uint64_t model_and(uint64_t old, uint64_t value)
{
	return old & value;
}

/*
 * Copy a column of a matrix: one word per row of LINE bytes. As one strided copy, as a vector of
 * copies, and as one copy per word.
 */
#define LINE	64u
#define WORD	8u

static acp_handle_t column(acp_ga_t dst, acp_ga_t src, size_t size)
{
	return acpx_copy_strided(dst, src, WORD, size / WORD, LINE, LINE, ACP_HANDLE_NULL);
}

static acp_handle_t column_vector(acp_ga_t dst, acp_ga_t src, size_t size)
{
	struct acpx_iov v[ACPX_COPYV_MAX];
	size_t i;

	for (i = 0; i < size / WORD; i++)
		v[i] = (struct acpx_iov){ dst + i * LINE, src + i * LINE, WORD };
	return acpx_copyv(v, i, ACP_HANDLE_NULL);
}

static acp_handle_t column_words(acp_ga_t dst, acp_ga_t src, size_t size)
{
	acp_handle_t handle = ACP_HANDLE_NULL;
	size_t i;

	for (i = 0; i < size / WORD; i++)
		handle = acp_copy(dst + i * LINE, src + i * LINE, WORD, ACP_HANDLE_NULL);
	return handle;
}

/*
 * Return the offset of the word behind a copy that signals its arrival: set by the copy itself, or
 * by a put that waits for it.
 */
static size_t flag_at(size_t size)
{
	return (size + WORD - 1) / WORD * WORD;
}

static acp_handle_t put_signal(acp_ga_t dst, acp_ga_t src, size_t size)
{
	return acpx_copy_signal(dst, src, size, dst + flag_at(size), OPERAND, ACPX_SIGNAL_SET,
				ACP_HANDLE_NULL);
}

static acp_handle_t put_flag(acp_ga_t dst, acp_ga_t src, size_t size)
{
	acp_handle_t data = acp_copy(dst, src, size, ACP_HANDLE_NULL);

	return acp_copy(dst + flag_at(size), src + flag_at(size), WORD, data);
}

static acp_ga_t pointer_of(int rank)
{
	return acp_query_starter_ga(rank) + offsetof(struct perf_board, pointer);
}

/* The pointer of the target is set before the first of several copies to one place. */
static acp_handle_t put_indirect(acp_ga_t dst, acp_ga_t src, size_t size)
{
	acp_ga_t there = pointer_of(acp_query_rank(dst)), here = pointer_of(acp_rank());
	uint64_t *own = acp_query_address(here);

	if (*own != dst) {
		*own = dst;
		acp_complete(acp_copy(there, here, WORD, ACP_HANDLE_NULL));
	}
	return acpx_copy_indirect(there, src, size, 0, ACP_HANDLE_NULL);
}

#define COPY_BY(_name, _copy, _apart, _flag, _what) \
	{ .name = _name, .what = _what, .dst = PERF_TARGET, .src = PERF_OWN, .copy = _copy, \
	  .apart = _apart, .flag = _flag }
#define COPY(_name, _dst, _src, _what) \
	{ .name = _name, .what = _what, .dst = _dst, .src = _src }
#define ATOMIC4(_name, _function, _model, _what) \
	{ .name = _name, .what = _what, .dst = PERF_OWN, .src = PERF_TARGET, .width = 4, \
	  .atomic4 = _function, .model = _model }
#define ATOMIC8(_name, _dst, _function, _model, _what) \
	{ .name = _name, .what = _what, .dst = _dst, .src = PERF_TARGET, .width = 8, \
	  .atomic8 = _function, .model = _model }

const struct perf_op perf_op_table[] = {
	COPY("put", PERF_TARGET, PERF_OWN, "own memory to the target's"),
	COPY("get", PERF_OWN, PERF_TARGET, "the target's memory to one's own"),
	COPY("copy3", PERF_THIRD, PERF_TARGET, "the target's memory to the third rank's"),
	ATOMIC4("cas4", cas4, model_cas4, "4-byte compare and swap on the target's memory"),
	ATOMIC8("cas8", PERF_OWN, cas8, model_cas8, "the same, 8 bytes"),
	ATOMIC4("swap4", acp_swap4, model_swap, "4-byte swap on the target's memory"),
	ATOMIC8("swap8", PERF_OWN, acp_swap8, model_swap, "the same, 8 bytes"),
	ATOMIC4("add4", acp_add4, model_add, "4-byte fetch and add on the target's memory"),
	ATOMIC8("add8", PERF_OWN, acp_add8, model_add, "the same, 8 bytes"),
	ATOMIC4("xor4", acp_xor4, model_xor, "4-byte fetch and XOR on the target's memory"),
	ATOMIC8("xor8", PERF_OWN, acp_xor8, model_xor, "the same, 8 bytes"),
	ATOMIC4("or4", acp_or4, model_or, "4-byte fetch and OR on the target's memory"),
	ATOMIC8("or8", PERF_OWN, acp_or8, model_or, "the same, 8 bytes"),
	ATOMIC4("and4", acp_and4, model_and, "4-byte fetch and AND on the target's memory"),
	ATOMIC8("and8", PERF_OWN, acp_and8, model_and, "the same, 8 bytes"),
	ATOMIC8("add3", PERF_THIRD, acp_add8, model_add,
		"8-byte fetch and add on the target's memory, former value to the third rank"),
	COPY_BY("signal", put_signal, 0, true, "put, and set a flag: acpx_copy_signal"),
	COPY_BY("put+flag", put_flag, 0, true, "put, and behind it a put of a flag"),
	COPY_BY("indirect", put_indirect, 0, false,
		"put to where a pointer of the target says: acpx_copy_indirect"),
	COPY_BY("strided", column, LINE, false,
		"put words that are 64 bytes apart at both ends: acpx_copy_strided"),
	COPY_BY("copyv", column_vector, LINE, false,
		"the same as a vector of copies: acpx_copyv"),
	COPY_BY("words", column_words, LINE, false, "the same as a copy for each word"),
	{ .name = "node8", .what = "add8 on the heap of a rank on the same node", .dst = PERF_OWN,
	  .src = PERF_HEAP, .width = 8, .atomic8 = acp_add8, .model = model_add },
	COPY("local", PERF_NEAR, PERF_OWN, "within own memory"),
	COPY("node", PERF_HEAP, PERF_OWN, "own memory to the heap of a rank on the same node"),
};

const size_t perf_op_count = sizeof(perf_op_table) / sizeof(perf_op_table[0]);

int perf_op_find(const char *name)
{
	size_t i;

	for (i = 0; i < perf_op_count; i++) {
		if (strcmp(perf_op_table[i].name, name) == 0)
			return (int)i;
	}
	return -1;
}

uint32_t perf_op_all(void)
{
	return (UINT32_C(1) << perf_op_count) - 1;
}

static const char *area_obstacle(const struct perf_job *job, enum perf_place place, size_t size)
{
	const struct perf_area *area = &job->area[place];

	if (area->rank < 0)
		return place == PERF_HEAP ? "needs another rank on the node of rank 0"
					  : "needs 3 ranks";
	if (area->ga == ACP_GA_NULL)
		return "a rank gave no address for its memory";
	if (size > area->size)
		return place == PERF_HEAP ? "larger than what the heap has left (ACP_HEAP_SIZE)"
					  : "larger than the lent memory";
	return NULL;
}

/* Return the number of bytes of an area that the operation uses. */
static size_t span(const struct perf_op *op, size_t size)
{
	if (op->flag)
		return flag_at(size) + WORD;
	return op->apart ? size / WORD * op->apart : size;
}

const char *perf_op_obstacle(const struct perf_op *op, const struct perf_job *job, size_t size)
{
	const char *why;

	if (op->apart && (size == 0 || size % WORD != 0))
		return "copies words of 8 bytes";
	if (op->apart && op->copy != column && size / WORD > ACPX_COPYV_MAX)
		return "more words than a vector has pieces";
	size = span(op, size);
	why = area_obstacle(job, op->dst, size);
	return why != NULL ? why : area_obstacle(job, op->src, size);
}

acp_handle_t perf_op_issue(const struct perf_op *op, const struct perf_job *job, size_t size,
			   size_t offset)
{
	acp_ga_t dst = job->area[op->dst].ga + offset, src = job->area[op->src].ga + offset;

	if (op->width == 4)
		return op->atomic4(dst, src, (uint32_t)OPERAND, ACP_HANDLE_NULL);
	if (op->width == 8)
		return op->atomic8(dst, src, OPERAND, ACP_HANDLE_NULL);
	return op->copy != NULL ? op->copy(dst, src, size) :
				  acp_copy(dst, src, size, ACP_HANDLE_NULL);
}

/* Return the next word of a pattern that depends on position and seed. */
static uint64_t next_word(uint64_t word)
{
	return word * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
}

static uint64_t first_word(uint64_t seed)
{
	return next_word((seed + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

static void fill(char *memory, size_t size, uint64_t seed)
{
	uint64_t word = first_word(seed);
	size_t i, n;

	for (i = 0; i < size; i += n, word = next_word(word)) {
		n = size - i < sizeof(word) ? size - i : sizeof(word);
		memcpy(memory + i, &word, n);
	}
}

static bool filled(const char *memory, size_t size, uint64_t seed)
{
	uint64_t word = first_word(seed);
	size_t i, n;

	for (i = 0; i < size; i += n, word = next_word(word)) {
		n = size - i < sizeof(word) ? size - i : sizeof(word);
		if (memcmp(memory + i, &word, n) != 0)
			return false;
	}
	return true;
}

static void write_area(const struct perf_job *job, enum perf_place place, size_t size)
{
	perf_finish(acp_copy(job->area[place].ga, job->scratch_ga, size, ACP_HANDLE_NULL),
		    "preparing memory");
}

static void read_area(const struct perf_job *job, enum perf_place place, size_t size)
{
	perf_finish(acp_copy(job->scratch_ga, job->area[place].ga, size, ACP_HANDLE_NULL),
		    "reading memory back");
}

/* Return the initial value for an atomic: alternately one that compare-and-swap matches, or not. */
static uint64_t first_value(const struct perf_op *op, uint64_t seed)
{
	uint64_t value = seed % 2 ? CAS_OLD + seed : CAS_OLD;

	return op->width == 4 ? value & UINT32_MAX : value;
}

void perf_op_prepare(const struct perf_op *op, const struct perf_job *job, size_t size,
		     uint64_t seed)
{
	uint64_t value;

	if (op->width != 0) {
		value = first_value(op, seed);
		memcpy(job->scratch, &value, op->width);
		write_area(job, op->src, op->width);
		memset(job->scratch, 0xee, op->width);
		write_area(job, op->dst, op->width);
		return;
	}
	size = span(op, size);
	fill(job->scratch, size, ~seed);
	write_area(job, op->dst, size);
	fill(job->scratch, size, seed);
	write_area(job, op->src, size);
	if (op->flag) {
		value = OPERAND;
		memcpy(job->scratch, &value, WORD);
		perf_finish(acp_copy(job->area[op->src].ga + size - WORD, job->scratch_ga, WORD,
				     ACP_HANDLE_NULL), "preparing memory");
	}
}

/*
 * Check that the words at the given distance are copies of the source, and all others are
 * unchanged.
 */
static bool filled_apart(const char *memory, size_t size, unsigned int apart, uint64_t seed)
{
	uint64_t ours = first_word(seed), theirs = first_word(~seed);
	size_t i;

	for (i = 0; i < size; i += WORD, ours = next_word(ours), theirs = next_word(theirs))
		if (memcmp(memory + i, i % apart == 0 ? &ours : &theirs, WORD) != 0)
			return false;
	return true;
}

static bool verify_copy(const struct perf_op *op, const struct perf_job *job, size_t size,
			uint64_t seed)
{
	const uint64_t flag = OPERAND;

	read_area(job, op->dst, span(op, size));
	if (op->apart)
		return filled_apart(job->scratch, span(op, size), op->apart, seed);
	if (op->flag && memcmp(job->scratch + flag_at(size), &flag, WORD) != 0)
		return false;
	return filled(job->scratch, size, seed);
}

static bool word_is(const struct perf_op *op, const struct perf_job *job, enum perf_place place,
		    uint64_t value)
{
	memset(job->scratch, 0xdd, op->width);
	read_area(job, place, op->width);
	return memcmp(job->scratch, &value, op->width) == 0;
}

static bool verify_atomic(const struct perf_op *op, const struct perf_job *job, uint64_t seed,
			  uint64_t times, bool in_order)
{
	uint64_t mask = op->width == 4 ? UINT32_MAX : UINT64_MAX;
	uint64_t value = first_value(op, seed), former = 0, i;

	for (i = 0; i < times; i++) {
		former = value;
		value = op->model(value, OPERAND & mask) & mask;
	}
	return word_is(op, job, op->src, value) && (!in_order || word_is(op, job, op->dst, former));
}

bool perf_op_verify(const struct perf_op *op, const struct perf_job *job, size_t size,
		    uint64_t seed, uint64_t times, bool in_order)
{
	if (op->width != 0)
		return verify_atomic(op, job, seed, times, in_order);
	return verify_copy(op, job, size, seed);
}
