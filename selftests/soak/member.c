// SPDX-License-Identifier: MIT
/*
 * A rank of a soak: batches of random accesses, the checks after them, and the common phases of the
 * members (see board.h).
 */
#include "../dev/isolated.h"

#include <sys/mman.h>

#include "../dev/rank.h"
#include "slots.h"

static struct member *self;
static uint64_t stream;			/* decisions of this member */
static acp_atkey_t arena_key[COLORS], churn_key;
static uint8_t *churn;
static enum { CHURN_IN, CHURN_OUT, CHURN_UNMAPPED } churn_state;
static uint8_t churn_fill;
static uint8_t gathered[BATCH][GATHERED];	/* data written by accesses of the batch */
static unsigned int extra;		/* remaining number of additional commands in the batch */

uint64_t draw(uint64_t *from, uint64_t n)
{
	return next_random(from) % n;
}

/* ---- Text for humans ---- */

static const char *const op_text[ACP_OP_END] = {
	[ACP_OP_COPY] = "copy", [ACP_OP_CAS4] = "cas4", [ACP_OP_CAS8] = "cas8",
	[ACP_OP_SWAP4] = "swap4", [ACP_OP_SWAP8] = "swap8", [ACP_OP_ADD4] = "add4",
	[ACP_OP_ADD8] = "add8", [ACP_OP_XOR4] = "xor4", [ACP_OP_XOR8] = "xor8",
	[ACP_OP_OR4] = "or4", [ACP_OP_OR8] = "or8", [ACP_OP_AND4] = "and4",
	[ACP_OP_AND8] = "and8",
};

const char *access_text(const struct access *a)
{
	static const char *const kinds[] = { "", " own word", " counter", " churn", " bad" };
	static const char *const ways[] = { "", " in blocks", " as a vector", " with a signal" };
	static char text[300];

	snprintf(text, sizeof(text),
		 "%s%s%s of %zu bytes, member %u color %u -> member %u color %u, after %d%s, handle %llx, status %d (%s), issued %.1f s ago",
		 op_text[a->op], kinds[a->kind], ways[a->way], a->size, a->src, a->src_color,
		 a->dst, a->dst_color, a->after, a->pending ? " (pending)" : "",
		 (unsigned long long)a->handle, a->status, acpx_strerror(a->status),
		 (double)(now_ns() - a->issued) / 1e9);
	return text;
}

static void wait_begin(const char *what)
{
	self->what = what;
	STORE(self->since, now_ns());
}

static void wait_end(void)
{
	STORE(self->since, 0);
}

/* ---- Planning ---- */

static acp_ga_t arena_ga(int member, int color, size_t offset)
{
	return board->member[member].arena[color] + offset;
}

static size_t draw_size(void)
{
	static const size_t most[] = { 9, 64, 140, 1500, 5000, 20000, 60000, LONGEST };
	size_t i = draw(&stream, 100);

	i = i < 20 ? 0 : i < 40 ? 1 : i < 55 ? 2 : i < 70 ? 3 : i < 85 ? 4 : i < 94 ? 5 :
	    i < 98 ? 6 : 7;
	return draw(&stream, most[i] + 1);
}

/* Let an access write to any own slot. */
static bool plan_slot(struct access *a, size_t size, bool word)
{
	a->dst = (uint8_t)draw(&stream, MEMBERS);
	a->dst_color = (uint8_t)draw(&stream, COLORS);
	a->size = size;
	a->slot = slot_take(a->dst, a->dst_color, size, &stream);
	if (!a->slot)
		return false;
	a->offset = draw(&stream, a->slot->size - size + 1);
	if (word)
		a->offset &= -8UL;
	a->to = arena_ga(a->dst, a->dst_color, a->slot->offset + a->offset);
	return true;
}

/* ---- Ways to copy ---- */

/* Blocks of a copy, as they are, or in reverse order at both ends. */
static void plan_blocks(struct access *a)
{
	a->block = (uint32_t)between(&stream, 1, one_of(&stream, 2) ? 32 : 2000);
	if (a->block > a->size)
		return;
	a->way = BLOCKS;
	a->blocks = (uint32_t)(a->size / a->block);
	a->size = (size_t)a->block * a->blocks;
	a->dst_stride = (int32_t)a->block;
	a->src_stride = (int32_t)a->block;
}

/*
 * Blocks with gaps at both ends: the gaps of the destination, which belongs to this member alone,
 * must not change.
 */
static void plan_apart(struct access *a, uint8_t *data)
{
	const uint8_t *from;
	size_t size, i;

	plan_blocks(a);
	size = a->size;
	if (a->way == PLAIN || size > GATHERED || one_of(&stream, 4))
		return;
	a->dst_stride += (int32_t)draw(&stream, 40);
	a->blocks = (uint32_t)((size - a->block) / (size_t)a->dst_stride + 1);
	a->src_stride = (int32_t)between(&stream, a->block, (uint64_t)a->dst_stride);
	a->size = (size_t)a->dst_stride * (a->blocks - 1) + a->block;
	memcpy(data, a->slot->model + a->offset, a->size);
	for (i = 0, from = a->data; i < a->blocks; i++, from += a->src_stride)
		memcpy(data + i * (size_t)a->dst_stride, from, a->block);
	a->data = data;
	a->gathered = true;
}

static void plan_vector(struct access *a)
{
	uint32_t n = (uint32_t)between(&stream, 1, PIECES);

	if (n > extra || a->size < n)
		return;
	a->way = VECTOR;
	a->blocks = n;
	a->block = (uint32_t)(a->size / n);
	extra -= n;
}

/* With an addition to a counter, mostly at the destination of the data. */
static void plan_signal(struct access *a)
{
	bool elsewhere = extra && one_of(&stream, 3);

	a->way = SIGNALLED;
	a->flag = elsewhere ? (uint8_t)draw(&stream, MEMBERS) : a->dst;
	a->flag_color = (uint8_t)draw(&stream, COLORS);
	a->a = between(&stream, 1, 9);
	extra -= elsewhere;
	self->tally[a->flag][a->flag_color][0].issued += a->a;
}

static void plan_way(struct access *a, uint8_t *data)
{
	switch (draw(&stream, 10)) {
	case 0:
	case 1:
		plan_apart(a, data);
		break;
	case 2:
		plan_vector(a);
		break;
	case 3:
	case 4:
		plan_signal(a);
	}
}

static bool plan_copy(struct access *a)
{
	size_t size = draw_size(), at = draw(&stream, SOURCE_SIZE - size + 1);

	a->op = ACP_OP_COPY;
	a->kind = ACCESS_COPY;
	a->src = (uint8_t)(one_of(&stream, 3) ? draw(&stream, MEMBERS) : (uint64_t)me);
	a->src_color = (uint8_t)draw(&stream, COLORS);
	a->from = arena_ga(a->src, a->src_color, at);
	a->data = arenas[a->src][a->src_color]->source + at;
	return plan_slot(a, size, false);
}

static bool plan_word(struct access *a)
{
	unsigned int width;

	a->op = (uint8_t)between(&stream, ACP_OP_CAS4, ACP_OP_AND8);
	a->kind = ACCESS_WORD;
	width = atomic_width(a->op);
	a->src = (uint8_t)draw(&stream, MEMBERS);
	a->src_color = (uint8_t)draw(&stream, COLORS);
	a->word = word_take(a->src, a->src_color, width);
	if (!a->word)
		return false;
	if (!plan_slot(a, width, true)) {
		a->word->busy = false;
		return false;
	}
	a->from = arena_ga(a->src, a->src_color, a->word->offset);
	a->former = a->word->value;
	a->data = (uint8_t *)&a->former;
	a->a = one_of(&stream, 2) ? a->former : next_random(&stream);
	a->b = a->op <= ACP_OP_CAS8 ? next_random(&stream) : 0;
	if (width == 4) {
		a->a &= 0xffffffff;
		a->b &= 0xffffffff;
	}
	return true;
}

static bool plan_count(struct access *a)
{
	bool eight = one_of(&stream, 2);

	a->op = eight ? ACP_OP_ADD8 : ACP_OP_ADD4;
	a->kind = ACCESS_COUNT;
	a->src = (uint8_t)draw(&stream, MEMBERS);
	a->src_color = (uint8_t)draw(&stream, COLORS);
	a->from = arena_ga(a->src, a->src_color,
			   eight ? offsetof(struct arena, count8) : offsetof(struct arena, count4));
	a->a = between(&stream, 1, 9);
	if (!plan_slot(a, eight ? 8 : 4, true))
		return false;
	self->tally[a->src][a->src_color][!eight].issued += a->a;
	return true;
}

/*
 * To or from memory that is registered and unregistered repeatedly; not the own memory, which the
 * library accesses itself.
 */
static bool plan_churn(struct access *a)
{
	acp_ga_t there, mine;
	size_t at, scratch;

	a->kind = ACCESS_CHURN;
	a->op = (uint8_t)(one_of(&stream, 3) ? between(&stream, ACP_OP_CAS4, ACP_OP_AND8) :
			  ACP_OP_COPY);
	a->size = a->op == ACP_OP_COPY ? draw(&stream, 20000) : atomic_width(a->op);
	a->src = (uint8_t)(((uint64_t)me + between(&stream, 1, MEMBERS - 1)) % MEMBERS);
	a->dst = (uint8_t)me;
	at = draw(&stream, CHURN_SIZE - a->size + 1);
	scratch = draw(&stream, SCRATCH_SIZE - a->size + 1);
	if (a->op != ACP_OP_COPY) {
		at &= -8UL;
		scratch &= -8UL;
	}
	there = LOAD(board->member[a->src].churn);
	if (!there)
		return false;
	a->from = there + at;
	a->dst_color = (uint8_t)draw(&stream, COLORS);
	mine = arena_ga(me, a->dst_color, offsetof(struct arena, scratch) + scratch);
	a->to = mine;
	if (a->op == ACP_OP_COPY && one_of(&stream, 2)) {
		a->to = a->from;
		a->from = mine;
		a->dst = a->src;
		a->src = (uint8_t)me;
	}
	return true;
}

/* An access that is rejected on every path. */
static bool plan_bad(struct access *a)
{
	a->op = ACP_OP_COPY;
	a->kind = ACCESS_BAD;
	a->size = 64;
	a->src = (uint8_t)me;
	a->dst = (uint8_t)draw(&stream, MEMBERS);
	a->dst_color = (uint8_t)draw(&stream, COLORS);
	a->from = arena_ga(me, 0, 0);
	a->to = arena_ga(a->dst, a->dst_color, offsetof(struct arena, scratch));
	switch (draw(&stream, 4)) {
	case 0:
		a->to = arena_ga(a->dst, a->dst_color, sizeof(struct arena) - 63);
		a->want = ACPX_ERANGE;
		break;
	case 1:
		a->op = ACP_OP_ADD8;
		a->size = 8;
		a->src = a->dst;
		a->from = arena_ga(a->dst, a->dst_color, offsetof(struct arena, count8) + 4);
		a->want = ACPX_EALIGN;
		break;
	case 2:
		a->to = ~0ULL - 4096;
		a->want = ACPX_EGA;
		break;
	default:
		a->from = 12345;
		a->want = ACPX_EGA;
	}
	return true;
}

/* Extend a chain: from the destination of the previous access to another slot. */
static bool plan_link(struct access *a, const struct access *before)
{
	a->op = ACP_OP_COPY;
	a->kind = ACCESS_COPY;
	a->link = true;
	a->src = before->dst;
	a->src_color = before->dst_color;
	a->from = before->to;
	a->data = before->data;
	a->gathered = before->gathered;
	return plan_slot(a, before->size, false);
}

static bool plan(struct access *a)
{
	uint64_t x = draw(&stream, 100);

	memset(a, 0, sizeof(*a));
	a->after = -1;
	if (x < 55)
		return plan_copy(a);
	if (x < 75)
		return plan_word(a);
	if (x < 87)
		return plan_count(a);
	if (x < 97)
		return plan_churn(a);
	return plan_bad(a);
}

/* ---- Issuing ---- */

static acp_handle_t issue_atomic(const struct access *a, acp_handle_t order)
{
	uint32_t x = (uint32_t)a->a, y = (uint32_t)a->b;

	switch (a->op) {
	case ACP_OP_CAS4:
		return acp_cas4(a->to, a->from, x, y, order);
	case ACP_OP_CAS8:
		return acp_cas8(a->to, a->from, a->a, a->b, order);
	case ACP_OP_SWAP4:
		return acp_swap4(a->to, a->from, x, order);
	case ACP_OP_SWAP8:
		return acp_swap8(a->to, a->from, a->a, order);
	case ACP_OP_ADD4:
		return acp_add4(a->to, a->from, x, order);
	case ACP_OP_ADD8:
		return acp_add8(a->to, a->from, a->a, order);
	case ACP_OP_XOR4:
		return acp_xor4(a->to, a->from, x, order);
	case ACP_OP_XOR8:
		return acp_xor8(a->to, a->from, a->a, order);
	case ACP_OP_OR4:
		return acp_or4(a->to, a->from, x, order);
	case ACP_OP_OR8:
		return acp_or8(a->to, a->from, a->a, order);
	case ACP_OP_AND4:
		return acp_and4(a->to, a->from, x, order);
	default:
		return acp_and8(a->to, a->from, a->a, order);
	}
}

static acp_handle_t issue_vector(const struct access *a, acp_handle_t order)
{
	struct acpx_iov v[PIECES];
	uint32_t i;

	for (i = 0; i < a->blocks; i++)
		v[i] = (struct acpx_iov){ a->to + i * a->block, a->from + i * a->block, a->block };
	v[i - 1].size = a->size - (size_t)(i - 1) * a->block;
	return acpx_copyv(v, a->blocks, order);
}

static acp_handle_t issue_blocks(const struct access *a, acp_handle_t order)
{
	int64_t by_dst = a->dst_stride, by_src = a->src_stride;
	acp_ga_t to = a->to, from = a->from;

	if (one_of(&stream, 2)) {		/* the last one first */
		to += (a->blocks - 1) * (uint64_t)by_dst;
		from += (a->blocks - 1) * (uint64_t)by_src;
		by_dst = -by_dst;
		by_src = -by_src;
	}
	return acpx_copy_strided(to, from, a->block, a->blocks, by_dst, by_src, order);
}

static acp_handle_t issue_copy(const struct access *a, acp_handle_t order)
{
	switch (a->way) {
	case BLOCKS:
		return issue_blocks(a, order);
	case VECTOR:
		return issue_vector(a, order);
	case SIGNALLED:
		return acpx_copy_signal(a->to, a->from, a->size,
					arena_ga(a->flag, a->flag_color,
						 offsetof(struct arena, count8)),
					a->a, ACPX_SIGNAL_ADD, order);
	default:
		return acp_copy(a->to, a->from, a->size, order);
	}
}

/* The order condition: none, or after an access of this batch in one of three ways. */
static acp_handle_t draw_order(struct access *a, int index)
{
	if (a->after < 0)
		return ACP_HANDLE_NULL;
	switch (draw(&stream, 3)) {
	case 0:
		if (a->after == index - 1)
			return (acp_handle_t)ACP_HANDLE_CONT;
		/* fall through */
	case 1:
		a->after = (int8_t)(index - 1);
		return (acp_handle_t)ACP_HANDLE_ALL;
	default:
		return self->batch[a->after].handle;
	}
}

static void issue(int index)
{
	struct access *a = &self->batch[index];
	acp_handle_t order = draw_order(a, index);

	a->issued = now_ns();
	a->status = ACPX_EPENDING;
	STORE(self->count, (uint32_t)index + 1);
	wait_begin("room for a command");
	if (a->op == ACP_OP_COPY)
		a->handle = issue_copy(a, order);
	else
		a->handle = issue_atomic(a, order);
	wait_end();
	if (a->after >= 0)
		a->pending = acp_inquire(self->batch[a->after].handle);
	if (!a->handle && !LOAD(board->aborted))
		FAIL("member %d: no handle: %s", me, access_text(a));
}

/* Accesses, some of them chained. */
static void issue_batch(void)
{
	int n = (int)between(&stream, 1, BATCH), i = 0, links = 0;

	STORE(self->count, 0);
	extra = EXTRA;
	while (i < n) {
		struct access *a = &self->batch[i], *before = a - 1;
		bool ready;

		if (links && before->kind == ACCESS_COPY && before->slot) {
			memset(a, 0, sizeof(*a));
			a->after = (int8_t)(i - 1);
			ready = plan_link(a, before);
			links--;
		} else {
			ready = plan(a);
			links = one_of(&stream, 4) ? (int)between(&stream, 1, 3) : 0;
			if (ready && i && one_of(&stream, 4))
				a->after = (int8_t)draw(&stream, (uint64_t)i);
		}
		if (!ready) {
			links = 0;
			n--;
			continue;
		}
		if (a->kind == ACCESS_COPY)
			plan_way(a, gathered[i]);
		issue(i++);
	}
}

/* ---- Waiting ---- */

static void look_until_complete(acp_handle_t handle)
{
	while (acp_inquire(handle))
		sleep_ms(1);
}

static void wait_batch(void)
{
	uint64_t way = draw(&stream, 3);
	uint32_t i, n = self->count;

	wait_begin("completion");
	if (way == 0)
		acp_complete((acp_handle_t)ACP_HANDLE_ALL);
	for (i = 0; i < n; i++) {
		struct access *a = &self->batch[i];

		if (way == 1)
			acp_complete(a->handle);
		else if (way == 2)
			look_until_complete(a->handle);
		a->status = acpx_status(a->handle);
	}
	wait_end();
}

/* Sleep for a while, until somebody adds to an own counter. */
static void await_addition(void)
{
	const uint64_t *count = &arenas[me][draw(&stream, COLORS)]->count8;
	uint64_t before = LOAD(*count);
	int error;

	wait_begin("acpx_wait_until");
	error = acpx_wait_until(count, 8, ACPX_CMP_NE, before, draw(&stream, 50) * MS);
	wait_end();
	if (!error && LOAD(*count) == before)
		FAIL("member %d: acpx_wait_until ended for nothing", me);
	if (error && error != -ETIMEDOUT && !(error == -ECANCELED && LOAD(board->aborted)))
		FAIL("member %d: acpx_wait_until: %s", me, strerror(-error));
}

/* ---- Checking ---- */

static bool during(const struct trouble *t, const struct access *a, uint64_t more)
{
	uint64_t from = LOAD(t->from), until = LOAD(t->until);

	return from && (until == UINT64_MAX || until + more > a->issued);
}

/* The third party, if there is one. */
static uint8_t flag_of(const struct access *a)
{
	return a->way == SIGNALLED ? a->flag : a->dst;
}

static bool any_doomed(const struct access *a)
{
	return LOAD(board->member[a->src].doomed) || LOAD(board->member[a->dst].doomed) ||
	       LOAD(board->member[flag_of(a)].doomed);
}

static bool any_cut(const struct access *a)
{
	uint64_t late = 2 * board->timeout + board->slack;

	return during(&board->cut[a->src / PER_NODE], a, late) ||
	       during(&board->cut[a->dst / PER_NODE], a, late) ||
	       during(&board->cut[flag_of(a) / PER_NODE], a, late) ||
	       during(&board->cut[me / PER_NODE], a, late);
}

/* True if an access up to the one it was ordered after has failed. */
static bool earlier_failed(const struct access *a)
{
	int i;

	for (i = 0; i <= a->after; i++)
		if (self->batch[i].status)
			return true;
	return false;
}

/* True if there is a reason for this status. */
static bool excused(const struct access *a)
{
	if (a->want && a->status == a->want)
		return true;
	switch (a->status) {
	case 0:
		return !a->want;
	case ACPX_ESTAG:
		return a->kind == ACCESS_CHURN || any_doomed(a);
	case ACPX_ERANK:
		return any_doomed(a);
	case ACPX_ETIMEOUT:
	case ACPX_EROUTE:
		return any_cut(a) || any_doomed(a);
	case ACPX_EPEER:
		return LOAD(board->cut_off) || any_doomed(a);
	case ACPX_ENOMEM:
		return during(&board->scarce, a, board->timeout);
	case ACPX_EORDER:
		return earlier_failed(a);
	case ACPX_EABORT:
		return LOAD(board->aborted);
	default:
		return false;
	}
}

/* A link whose source was not written copies the former contents. */
static void doubt_link(struct access *a)
{
	const struct access *before = a - 1;

	if (a->link && (before->status || !before->data))
		a->data = NULL;
}

static void took_effect(struct access *a)
{
	if (a->kind == ACCESS_COUNT)
		self->tally[a->src][a->src_color][a->size == 4].sure += a->a;
	if (a->way == SIGNALLED)
		self->tally[a->flag][a->flag_color][0].sure += a->a;
	if (a->slot)
		slot_changed(a->slot, a->offset, a->size, a->data);
	if (a->word)
		word_changed(a->word, atomic_result(a->op, a->former, a->a, a->b));
}

/*
 * The access failed. It may have changed memory, unless its order was not met or it was rejected.
 */
static void may_have_effect(struct access *a)
{
	uint64_t until = now_ns() + 2 * board->timeout + board->slack;

	if (a->status == ACPX_EORDER || a->want)
		return;
	if (a->gathered)
		a->data = NULL;		/* not that of the next batch */
	if (a->slot)
		slot_doubtful(a->slot, a, until);
	if (a->word)
		word_doubtful(a->word, atomic_result(a->op, a->former, a->a, a->b), until);
}

static bool gone(int member, const struct access *a)
{
	uint64_t since = LOAD(board->member[member].gone);

	return since && since < a->issued;
}

static void check_access(struct access *a)
{
	if (a->status == ACPX_EPENDING)
		FAIL("member %d: waited for, and not complete: %s", me, access_text(a));
	if (!excused(a))
		FAIL("member %d: no reason for this end: %s", me, access_text(a));
	if (!a->status && (gone(a->src, a) || gone(a->dst, a) || gone(flag_of(a), a)))
		FAIL("member %d: success with the dead: %s", me, access_text(a));
	if (!a->status && a->pending && self->batch[a->after].status)
		FAIL("member %d: success behind a failure: %s", me, access_text(a));
	self->ended[a->status]++;
	doubt_link(a);
	if (!a->status)
		took_effect(a);
	else
		may_have_effect(a);
}

static void check_batch(void)
{
	uint32_t i;

	for (i = 0; i < self->count; i++)
		check_access(&self->batch[i]);
	for (i = 0; i < self->count; i++) {
		struct access *a = &self->batch[i];

		if (a->slot) {
			slot_check(a->slot, a);
			a->slot->busy = false;
		}
		if (a->word) {
			word_check(a->word, a);
			a->word->busy = false;
		}
	}
	STORE(self->count, 0);
	self->batches++;
}

/* ---- Memory that is registered and unregistered ---- */

static void churn_paint(void)
{
	memset(churn, ++churn_fill, CHURN_SIZE);
}

static void churn_untouched(const char *since)
{
	size_t i;

	for (i = 0; i < CHURN_SIZE; i++)
		if (churn[i] != churn_fill)
			FAIL("member %d: memory changed at %zu after %s", me, i, since);
}

static void churn_in(void)
{
	acp_ga_t ga;

	churn_key = acp_register_memory(churn, CHURN_SIZE, (int)draw(&stream, COLORS));
	if (!churn_key) {
		if (!LOAD(board->aborted) && !LOAD(board->scarce.from))
			FAIL("member %d: cannot register: %s", me, strerror(errno));
		return;
	}
	ga = acp_query_ga(churn_key, churn);
	CHECK(ga != ACP_GA_NULL);
	STORE(self->churn, ga);
	churn_state = CHURN_IN;
}

static void churn_out(void)
{
	CHECK_EQ(acp_unregister_memory(churn_key), 0);
	churn_paint();
	churn_state = CHURN_OUT;
}

static void churn_unmap(void)
{
	CHECK(mmap(churn, CHURN_SIZE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == churn);
	churn_paint();
	churn_state = CHURN_UNMAPPED;
}

static void churn_step(void)
{
	self->churned++;
	switch (churn_state) {
	case CHURN_IN:
		if (one_of(&stream, 2))
			churn_out();
		else
			churn_unmap();
		break;
	case CHURN_OUT:
		churn_untouched("unregistering");
		churn_in();
		break;
	case CHURN_UNMAPPED:
		churn_untouched("unmapping");
		churn_out();
	}
}

/* ---- Common phases ---- */

static void register_all(void)
{
	int c;

	for (c = 0; c < COLORS; c++) {
		arena_key[c] = acp_register_memory(arenas[me][c], sizeof(struct arena), c);
		if (!arena_key[c])
			FAIL("member %d: cannot register an arena: %s", me, strerror(errno));
		self->arena[c] = acp_query_ga(arena_key[c], arenas[me][c]);
		CHECK(self->arena[c] != ACP_GA_NULL);
	}
	self->rank = acp_rank();
	churn_state = CHURN_OUT;
	churn_paint();
	churn_in();
}

/* True if a common phase may fail. Then all others of its kind may fail, too. */
static bool together_may_fail(void)
{
	return LOAD(board->died) || LOAD(board->aborted) || LOAD(board->cut_off);
}

static void rendezvous(void)
{
	wait_begin("acp_sync");
	if (acp_sync() && !together_may_fail())
		FAIL("member %d: acp_sync: %s", me, strerror(errno));
	wait_end();
	self->barriers++;
}

static void init(void)
{
	int error;

	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	wait_begin("acp_init");
	error = acp_init(NULL, NULL);
	wait_end();
	if (error)
		FAIL("member %d: acp_init: %s", me, strerror(errno));
	register_all();
	rendezvous();
	STORE(self->ready, 1);
}

/* @quiet: no memory is in use any more. */
static void finalize(bool quiet)
{
	int error;

	if (one_of(&stream, 2) && churn_state == CHURN_IN)
		CHECK_EQ(acp_unregister_memory(churn_key), 0);
	if (quiet && one_of(&stream, 2))
		CHECK_EQ(acp_unregister_memory(arena_key[0]), 0);
	wait_begin("acp_finalize");
	error = acp_finalize();
	wait_end();
	if (error && !together_may_fail())
		FAIL("member %d: acp_finalize: %s", me, strerror(errno));
	CHECK_EQ(status_kib("VmPin"), 0);
	CHECK_EQ(status_kib("VmLck"), 0);
}

static void reset(uint32_t number)
{
	int error, rank = board->number[number][me];

	STORE(self->churn, 0);
	wait_begin("acp_reset");
	error = acp_reset(rank);
	wait_end();
	if (error)
		FAIL("member %d: acp_reset: %s", me, strerror(errno));
	CHECK_EQ(acp_rank(), rank);
	register_all();
	rendezvous();
}

static void do_phase(uint32_t number)
{
	STORE(self->entered, number + 1);
	switch (board->phase[number]) {
	case PHASE_SYNC:
		rendezvous();
		break;
	case PHASE_RESET:
		reset(number);
		break;
	case PHASE_REINIT:
		STORE(self->churn, 0);
		finalize(false);
		init();
		break;
	case PHASE_QUIET:
		slots_settle();
		break;
	default:
		finalize(true);
	}
	STORE(self->phase, number + 1);
}

static void leave_if_told(void)
{
	switch (LOAD(self->leave)) {
	case LEAVE_EXIT:
		issue_batch();
		_exit(0);
	case LEAVE_ABORT:
		issue_batch();
		acp_abort("told to");
	default:
		break;
	}
}

static bool quiet(void)
{
	return self->phase && board->phase[self->phase - 1] == PHASE_QUIET;
}

static void work(void)
{
	leave_if_told();
	if (one_of(&stream, 6))
		churn_step();
	issue_batch();
	leave_if_told();
	wait_batch();
	check_batch();
	if (one_of(&stream, 8))
		await_addition();
	if (one_of(&stream, 10))
		sleep_ms((unsigned int)draw(&stream, 300));
}

void member_live(void)
{
	self = &board->member[me];
	stream = board->seed + 1000 * (uint64_t)(me + 1);
	churn = pages(CHURN_SIZE, PROT_READ | PROT_WRITE);
	slots_open();
	init();
	while (!self->phase || board->phase[self->phase - 1] != PHASE_LEAVE) {
		if (LOAD(board->phases) > self->phase)
			do_phase(self->phase);
		else if (quiet())
			sleep_ms(5);
		else
			work();
	}
	exit(0);
}
