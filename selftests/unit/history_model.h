/* SPDX-License-Identifier: MIT */
/*
 * Linearizability: is what several threads observed of an object possible if each call took effect
 * at one moment between its begin and its end?
 *
 * Each thread has one call at a time, so a state of the search consists of the progress of each
 * thread and the value of the object. The last call of a thread that died may or may not have taken
 * effect.
 */
#ifndef HISTORY_MODEL_H
#define HISTORY_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HISTORY_THREADS	8
#define HISTORY_MAX	4096	/* calls of a thread */
#define HISTORY_PENDING	UINT64_MAX

struct history_call {
	uint32_t object, what;
	uint64_t argument, result;
	uint64_t begin, end;		/* end: HISTORY_PENDING if it never returned */
	/* returned with an error that leaves open whether it took effect */
	bool maybe;
};

/* Written by one thread; count is incremented before a call begins. */
struct history {
	uint32_t count;
	struct history_call calls[HISTORY_MAX];
};

/* Apply a call to the value. False if its result is impossible. */
typedef bool (*history_apply)(const struct history_call *call, uint64_t *value);

struct history_search {
	history_apply apply;
	const struct history_call *calls[HISTORY_THREADS][HISTORY_MAX];
	uint32_t count[HISTORY_THREADS];
	uint64_t *seen;			/* hashes of states that lead to no solution */
	uint64_t room, used;
};

static inline uint64_t history_hash(const uint32_t *at, uint64_t value)
{
	uint64_t h = value * 0x9e3779b97f4a7c15 + 1;
	int t;

	for (t = 0; t < HISTORY_THREADS; t++)
		h = (h ^ (h >> 29) ^ at[t]) * 0xbf58476d1ce4e5b9;
	return h | 1;
}

/* True if this state was tried already. Records it. */
static inline bool history_seen(struct history_search *s, uint64_t hash)
{
	uint64_t i;

	for (i = hash; s->seen[i % s->room]; i++)
		if (s->seen[i % s->room] == hash)
			return true;
	if (++s->used > s->room / 2)
		abort();
	s->seen[i % s->room] = hash;
	return false;
}

static inline bool history_goes_on(struct history_search *s, uint32_t *at, uint64_t value)
{
	uint64_t first_end = HISTORY_PENDING, next;
	bool left = false;
	int t;

	for (t = 0; t < HISTORY_THREADS; t++) {
		if (at[t] == s->count[t])
			continue;
		left = left || s->calls[t][at[t]]->end != HISTORY_PENDING;
		if (s->calls[t][at[t]]->end < first_end)
			first_end = s->calls[t][at[t]]->end;
	}
	if (!left)
		return true;
	if (history_seen(s, history_hash(at, value)))
		return false;
	for (t = 0; t < HISTORY_THREADS; t++) {
		if (at[t] == s->count[t] || s->calls[t][at[t]]->begin > first_end)
			continue;
		next = value;
		if (!s->apply(s->calls[t][at[t]], &next))
			continue;
		at[t]++;
		if (history_goes_on(s, at, next) ||
		    (s->calls[t][at[t] - 1]->maybe && history_goes_on(s, at, value)))
			return true;
		at[t]--;
	}
	return false;
}

/* Check all calls on one object with the given initial value. */
static inline bool history_possible(const struct history *threads, unsigned int count,
				    uint32_t object, uint64_t value, history_apply apply)
{
	struct history_search *s = calloc(1, sizeof(*s));
	uint32_t at[HISTORY_THREADS] = { 0 };
	bool possible;
	unsigned int t, i;

	if (!s)
		abort();
	s->apply = apply;
	s->room = 1 << 20;
	s->seen = calloc(s->room, sizeof(*s->seen));
	if (!s->seen)
		abort();
	for (t = 0; t < count; t++)
		for (i = 0; i < threads[t].count; i++)
			if (threads[t].calls[i].object == object)
				s->calls[t][s->count[t]++] = &threads[t].calls[i];
	possible = history_goes_on(s, at, value);
	free(s->seen);
	free(s);
	return possible;
}

#endif /* HISTORY_MODEL_H */
