// SPDX-License-Identifier: MIT
/* The model of memory (see slots.h). */
#include "../dev/isolated.h"

#include "../dev/rank.h"
#include "slots.h"

static struct slot slots[MEMBERS][COLORS][SLOTS];
static struct word words[MEMBERS][COLORS][2];

static void slot_open(struct slot *s, int member, int color, size_t at, size_t size)
{
	uint8_t *base = (uint8_t *)arenas[member][color];

	s->member = (uint8_t)member;
	s->color = (uint8_t)color;
	s->offset = offsetof(struct arena, slots) + (size_t)me * SLOTS_SIZE + at;
	s->size = size;
	s->at = base + s->offset;
	s->model = pages(size, PROT_READ | PROT_WRITE);
	memcpy(s->model, s->at, size);
}

static void word_open(struct word *w, int member, int color, unsigned int width)
{
	struct arena *a = arenas[member][color];

	w->member = (uint8_t)member;
	w->color = (uint8_t)color;
	w->width = (uint8_t)width;
	w->at = width == 8 ? (void *)&a->word8[me] : (void *)&a->word4[me];
	w->offset = (size_t)((uint8_t *)w->at - (uint8_t *)a);
	memcpy(&w->value, w->at, width);
}

void slots_open(void)
{
	int m, c, i;

	for (m = 0; m < MEMBERS; m++)
		for (c = 0; c < COLORS; c++) {
			for (i = 0; i < SMALL_SLOTS; i++)
				slot_open(&slots[m][c][i], m, c, (size_t)i * SMALL_SIZE,
					  SMALL_SIZE);
			slot_open(&slots[m][c][i], m, c, (size_t)i * SMALL_SIZE, BIG_SIZE);
			word_open(&words[m][c][0], m, c, 4);
			word_open(&words[m][c][1], m, c, 8);
		}
}

/* ---- Slots ---- */

static bool may_be(const struct slot *s, size_t i)
{
	if (s->at[i] == s->model[i])
		return true;
	if (!s->doubtful || i < s->low || i >= s->high)
		return false;
	return !s->data || s->at[i] == s->data[i - s->low];
}

void slot_check(struct slot *s, const struct access *a)
{
	size_t i;

	if (LOAD(board->member[s->member].doomed) || !memcmp(s->at, s->model, s->size))
		return;
	for (i = 0; i < s->size; i++)
		if (!may_be(s, i))
			FAIL("member %d: slot of %zu bytes at member %d color %d, byte %zu is 0x%02x, not 0x%02x%s: %s",
			     me, s->size, s->member, s->color, i, s->at[i], s->model[i],
			     s->doubtful ? " (others are doubtful)" : "",
			     a ? access_text(a) : "at rest");
}

/* No access is in flight any more: the contents are final. */
static void slot_settle(struct slot *s)
{
	slot_check(s, NULL);
	memcpy(s->model, s->at, s->size);
	s->doubtful = 0;
}

struct slot *slot_take(int member, int color, size_t size, uint64_t *stream)
{
	bool big = size > SMALL_SIZE - 64;
	struct slot *s = &slots[member][color][big ? SMALL_SLOTS : draw(stream, SMALL_SLOTS)];

	if (s->busy)
		return NULL;
	if (s->doubtful && s->doubtful < now_ns())
		slot_settle(s);
	if (s->doubtful)
		return NULL;
	s->busy = true;
	return s;
}

void slot_changed(struct slot *s, size_t offset, size_t size, const uint8_t *data)
{
	memcpy(s->model + offset, data ? data : s->at + offset, size);
}

void slot_doubtful(struct slot *s, const struct access *a, uint64_t until)
{
	s->doubtful = until;
	s->low = a->offset;
	s->high = a->offset + a->size;
	s->data = a->data;
	if (a->data && a->size <= sizeof(s->word)) {
		memcpy(s->word, a->data, a->size);
		s->data = s->word;
	}
}

/* ---- Words ---- */

static uint64_t word_now(const struct word *w)
{
	return w->width == 8 ? LOAD(*(uint64_t *)w->at) : LOAD(*(uint32_t *)w->at);
}

void word_check(struct word *w, const struct access *a)
{
	uint64_t now = word_now(w);

	if (LOAD(board->member[w->member].doomed) || now == w->value ||
	    (w->doubtful && now == w->other))
		return;
	FAIL("member %d: word of %u bytes at member %d color %d is 0x%llx, not 0x%llx%s: %s", me,
	     w->width, w->member, w->color, (unsigned long long)now,
	     (unsigned long long)w->value, w->doubtful ? " (doubtful)" : "",
	     a ? access_text(a) : "at rest");
}

static void word_settle(struct word *w)
{
	word_check(w, NULL);
	w->value = word_now(w);
	w->doubtful = 0;
}

struct word *word_take(int member, int color, unsigned int width)
{
	struct word *w = &words[member][color][width == 8];

	if (w->busy)
		return NULL;
	if (w->doubtful && w->doubtful < now_ns())
		word_settle(w);
	if (w->doubtful)
		return NULL;
	w->busy = true;
	return w;
}

void word_changed(struct word *w, uint64_t value)
{
	w->value = value;
}

void word_doubtful(struct word *w, uint64_t other, uint64_t until)
{
	w->doubtful = until;
	w->other = other;
}

/* ---- Everything ---- */

static uint64_t latest_doubt(void)
{
	uint64_t latest = 0;
	int m, c, i;

	for (m = 0; m < MEMBERS; m++)
		for (c = 0; c < COLORS; c++) {
			for (i = 0; i < SLOTS; i++)
				if (slots[m][c][i].doubtful > latest)
					latest = slots[m][c][i].doubtful;
			for (i = 0; i < 2; i++)
				if (words[m][c][i].doubtful > latest)
					latest = words[m][c][i].doubtful;
		}
	return latest;
}

void slots_settle(void)
{
	uint64_t until = latest_doubt();
	int m, c, i;

	while (now_ns() < until)
		sleep_ms(20);
	for (m = 0; m < MEMBERS; m++)
		for (c = 0; c < COLORS; c++) {
			for (i = 0; i < SLOTS; i++)
				slot_settle(&slots[m][c][i]);
			for (i = 0; i < 2; i++)
				word_settle(&words[m][c][i]);
		}
}

void source_fill(uint8_t *source, uint64_t seed)
{
	uint64_t *word = (uint64_t *)source;
	size_t i;

	for (i = 0; i < SOURCE_SIZE / 8; i++) {
		seed += 0x9e3779b97f4a7c15ULL;
		word[i] = (seed ^ (seed >> 29)) * 0xbf58476d1ce4e5b9ULL;
	}
}
