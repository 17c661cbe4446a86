// SPDX-License-Identifier: GPL-2.0-only
/* Matching: see match.h. */
#include "match.h"

#define ANY	(~0u)

/* ---- Entries by keys ---- */

static u32 *bucket_of(const struct acp_keys *t, const struct acp_key *k)
{
	u64 hash = k->tag * t->secret[0];

	hash ^= hash >> 32;
	hash = (hash + ((u64)k->class << 32 | k->rank)) * t->secret[1];
	return &t->buckets[hash >> t->shift];
}

static bool same(const struct acp_key *a, const struct acp_key *b)
{
	return a->tag == b->tag && a->rank == b->rank && a->class == b->class;
}

/* The first entry of a key, or NONE. */
static u32 find(const struct acp_keys *t, const struct acp_key *k)
{
	u32 i = *bucket_of(t, k);

	while (i != ACP_MATCH_NONE && !same(&t->e[i].key, k))
		i = t->e[i].chain;
	return i;
}

static void link_before(struct acp_keys *t, u32 i, u32 at)
{
	t->e[i].next = at;
	t->e[i].prev = t->e[at].prev;
	t->e[t->e[i].prev].next = i;
	t->e[at].prev = i;
}

static void add(struct acp_keys *t, u32 i, const struct acp_key *k)
{
	u32 first = find(t, k), *bucket;
	struct acp_keyed *e = &t->e[i];

	e->key = *k;
	e->first = first == ACP_MATCH_NONE;
	if (e->first) {
		bucket = bucket_of(t, k);
		e->chain = *bucket;
		e->next = i;
		e->prev = i;
		*bucket = i;
		return;
	}
	link_before(t, i, first);
}

/* In the bucket, another entry or none takes the place of entry i. */
static void replace(struct acp_keys *t, u32 i, u32 other)
{
	u32 *link = bucket_of(t, &t->e[i].key);

	while (*link != i)
		link = &t->e[*link].chain;
	*link = other;
}

/* Another entry of the key becomes the first; it is in front of that in the ring. */
static void make_first(struct acp_keys *t, u32 first, u32 i)
{
	t->e[i].first = true;
	t->e[i].chain = t->e[first].chain;
	replace(t, first, i);
	t->e[first].first = false;
}

static void del(struct acp_keys *t, u32 i)
{
	struct acp_keyed *e = &t->e[i];

	if (e->first && e->next == i) {
		replace(t, i, e->chain);
	} else if (e->first) {
		t->e[e->next].first = true;
		t->e[e->next].chain = e->chain;
		replace(t, i, e->next);
	}
	t->e[e->next].prev = e->prev;
	t->e[e->prev].next = e->next;
}

/* ---- Tables ---- */

static u32 classes(const struct acp_matcher *m)
{
	return 2 * m->masks;
}

/* The entry of a message for a class. */
static u32 entry_of(const struct acp_matcher *m, u32 message, u32 class)
{
	return message * 2 * m->masks_max + class;
}

static u32 entries_of_messages(const struct acp_matcher *m)
{
	return entry_of(m, m->messages, 0);
}

/* log2 of the number of buckets for so many entries: twice as many, at least. */
static u32 order_of(u32 entries)
{
	u32 order = 1;

	while (entries >> (order - 1))
		order++;
	return order;
}

static size_t keys_bytes(u32 entries)
{
	return entries * sizeof(struct acp_keyed) + (sizeof(u32) << order_of(entries));
}

size_t acp_matcher_bytes(const struct acp_matcher *m)
{
	static_assert(sizeof(struct acp_keyed) % 8 == 0);
	static_assert(sizeof(struct acp_receive) % 8 == 0);
	static_assert(sizeof(struct acp_kept) % 8 == 0);
	return keys_bytes(m->receives) + keys_bytes(entries_of_messages(m)) +
	       m->receives * sizeof(struct acp_receive) +
	       (m->messages + 1) * sizeof(struct acp_kept);
}

static void *keys_init(struct acp_keys *t, void *memory, u32 entries, const u64 secret[2])
{
	u32 order = order_of(entries);

	t->e = memory;
	t->buckets = memory + entries * sizeof(*t->e);
	t->shift = 64 - order;
	t->secret[0] = secret[0] | 1;
	t->secret[1] = secret[1] | 1;
	memset(t->buckets, 0xff, sizeof(u32) << order);
	return (void *)t->buckets + (sizeof(u32) << order);
}

void acp_matcher_init(struct acp_matcher *m, void *memory, const u64 secret[2])
{
	u32 i;

	m->receive = memory;
	memory += m->receives * sizeof(*m->receive);
	m->kept = memory;
	memory += (m->messages + 1) * sizeof(*m->kept);
	memory = keys_init(&m->by_receive, memory, m->receives, secret);
	keys_init(&m->by_message, memory, entries_of_messages(m), secret);
	memset(m->posted, 0, sizeof(m->posted));
	m->seq = 0;
	m->busy = 0;
	m->learning = ACP_MATCH_NONE;
	m->unused = 0;
	for (i = 0; i < m->messages; i++)
		m->kept[i].next = i + 1;
	/* The place before the first and behind the last. */
	m->placed = m->messages;
	m->kept[m->placed].next = m->placed;
	m->kept[m->placed].prev = m->placed;
}

/* ---- Receives ---- */

u32 acp_matcher_mask(const struct acp_matcher *m, u64 ignore)
{
	u32 i;

	for (i = 0; i < m->masks; i++)
		if (m->mask[i] == ignore)
			return i;
	return ACP_MATCH_NONE;
}

struct acp_key acp_matcher_key(const struct acp_matcher *m, u32 rank, u64 tag, u32 mask)
{
	return (struct acp_key){
		.tag = tag & ~m->mask[mask], .rank = rank, .class = 2 * mask + (rank == ANY),
	};
}

/* The key with which receives of a class accept a message. */
static struct acp_key key_of(const struct acp_matcher *m, u32 rank, u64 tag, u32 class)
{
	return acp_matcher_key(m, class & 1 ? ANY : rank, tag, class / 2);
}

void acp_matcher_post(struct acp_matcher *m, u32 number, const struct acp_key *key, u64 buffer,
		      u64 room)
{
	struct acp_receive *r = &m->receive[number];

	r->seq = ++m->seq;
	r->buffer = buffer;
	r->room = room;
	r->state = ACP_RECEIVE_POSTED;
	m->posted[key->class]++;
	add(&m->by_receive, number, key);
}

static void unlist(struct acp_matcher *m, u32 number)
{
	m->posted[m->by_receive.e[number].key.class]--;
	del(&m->by_receive, number);
}

void acp_matcher_withdraw(struct acp_matcher *m, u32 number)
{
	unlist(m, number);
	m->receive[number].state = ACP_RECEIVE_FREE;
}

static u32 oldest(const struct acp_matcher *m, u32 rank, u64 tag)
{
	u32 found = ACP_MATCH_NONE, class, i;

	for (class = 0; class < classes(m); class++) {
		struct acp_key key;

		if (!m->posted[class])
			continue;
		key = key_of(m, rank, tag, class);
		i = find(&m->by_receive, &key);
		if (i != ACP_MATCH_NONE &&
		    (found == ACP_MATCH_NONE || m->receive[i].seq < m->receive[found].seq))
			found = i;
	}
	return found;
}

/* A receive gets a message. */
static void assign(struct acp_matcher *m, u32 number, u32 rank, u64 tag, u64 size)
{
	struct acp_receive *r = &m->receive[number];

	unlist(m, number);
	r->state = ACP_RECEIVE_BUSY;
	r->size = size;
	r->tag = tag;
	r->rank = rank;
	r->granted = false;
	m->busy++;
}

u32 acp_matcher_match(struct acp_matcher *m, u32 rank, u64 tag, u64 size)
{
	u32 number = oldest(m, rank, tag);

	if (number != ACP_MATCH_NONE)
		assign(m, number, rank, tag, size);
	return number;
}

/* Only others that were returned can be older: it was the first of its key. */
static void add_by_age(struct acp_matcher *m, u32 number)
{
	struct acp_keys *t = &m->by_receive;
	struct acp_key key = t->e[number].key;
	u32 first = find(t, &key), at = first;

	if (first == ACP_MATCH_NONE) {
		add(t, number, &key);
		return;
	}
	t->e[number].first = false;
	while (m->receive[at].seq < m->receive[number].seq) {
		at = t->e[at].next;
		if (at == first)
			break;
	}
	link_before(t, number, at);
	if (m->receive[first].seq > m->receive[number].seq)
		make_first(t, first, number);
}

void acp_matcher_return(struct acp_matcher *m, u32 number)
{
	struct acp_receive *r = &m->receive[number];

	add_by_age(m, number);
	m->posted[m->by_receive.e[number].key.class]++;
	r->state = ACP_RECEIVE_POSTED;
	m->busy--;
}

void acp_matcher_done(struct acp_matcher *m, u32 number)
{
	m->receive[number].state = ACP_RECEIVE_FREE;
	m->busy--;
}

/* ---- Messages ---- */

/* Where the memory behind a place begins, and where it ends. */
static u64 gap_begin(const struct acp_matcher *m, u32 i)
{
	return i == m->messages ? 0 : m->kept[i].at + m->kept[i].length;
}

static u64 gap_end(const struct acp_matcher *m, u32 i)
{
	u32 next = m->kept[i].next;

	return next == m->messages ? m->bytes : m->kept[next].at;
}

/* Find room for @length bytes behind the message that was placed last, or one of the next ones. */
static bool find_place(struct acp_matcher *m, u64 length)
{
	u32 i = m->placed, tries;

	for (tries = 0; tries < ACP_MATCH_PLACES; tries++) {
		if (gap_end(m, i) - gap_begin(m, i) >= length) {
			m->placed = i;
			return true;
		}
		i = m->kept[i].next;
	}
	m->placed = i;
	return false;
}

/* Bytes of a message's place.  No two places are at the same address. */
static u64 length_of(u64 size)
{
	return size ? (size + 7) & ~7ULL : 8;
}

static void place(struct acp_matcher *m, u32 i)
{
	struct acp_kept *kept = &m->kept[i];

	kept->at = gap_begin(m, m->placed);
	kept->prev = m->placed;
	kept->next = m->kept[m->placed].next;
	m->kept[kept->next].prev = i;
	m->kept[kept->prev].next = i;
	m->placed = i;
}

/* List a message for the two classes of one more mask. */
static void list_more(struct acp_matcher *m, u32 i)
{
	struct acp_kept *kept = &m->kept[i];
	u32 class = 2 * kept->masks++, end = class + 2;

	for (; class < end; class++) {
		struct acp_key key = key_of(m, kept->rank, kept->tag, class);

		add(&m->by_message, entry_of(m, i, class), &key);
	}
}

static void list_message(struct acp_matcher *m, u32 i)
{
	m->kept[i].masks = 0;
	while (m->kept[i].masks < m->masks)
		list_more(m, i);
}

/* ---- Learning ---- */

/*
 * A receive from any rank that ignores all bits accepts all messages: they are listed for its class
 * in order, and in this order they are listed for a new mask.  Until all are, it is not counted,
 * and those that arrive are not listed for it: their turn comes.
 */
#define CLASS_OF_ALL	1

/* The next one has its turn.  Behind the last one, the mask is learned. */
static void learn_next(struct acp_matcher *m)
{
	u32 next = m->by_message.e[m->learning].next;

	m->learning = m->by_message.e[next].first ? ACP_MATCH_NONE : next;
	if (m->learning == ACP_MATCH_NONE)
		m->masks++;
}

static void begin_to_learn(struct acp_matcher *m, u64 ignore)
{
	const struct acp_key all = { .rank = ANY, .class = CLASS_OF_ALL };

	m->mask[m->masks] = ignore;
	m->learning = find(&m->by_message, &all);
	if (m->learning == ACP_MATCH_NONE)
		m->masks++;
}

u32 acp_matcher_learn(struct acp_matcher *m, u64 ignore, u32 steps)
{
	u32 mask = acp_matcher_mask(m, ignore);

	if (mask != ACP_MATCH_NONE)
		return mask;
	if (m->learning == ACP_MATCH_NONE) {
		if (m->masks == m->masks_max)
			return ACP_MATCH_NONE;
		begin_to_learn(m, ignore);
	}
	for (; steps && m->learning != ACP_MATCH_NONE; steps--) {
		list_more(m, m->learning / (2 * m->masks_max));
		learn_next(m);
	}
	mask = acp_matcher_mask(m, ignore);
	return mask == ACP_MATCH_NONE ? ACP_MATCH_LATER : mask;
}

static void unlist_message(struct acp_matcher *m, u32 i)
{
	u32 class;

	if (m->learning == entry_of(m, i, CLASS_OF_ALL))
		learn_next(m);
	for (class = 0; class < 2u * m->kept[i].masks; class++)
		del(&m->by_message, entry_of(m, i, class));
}

/* ---- Keeping ---- */

/* Its place has been found: its bytes come now. */
static void expect_bytes(struct acp_matcher *m, u32 i)
{
	struct acp_kept *kept = &m->kept[i];

	kept->length = length_of(kept->size);
	kept->arriving = true;
	m->busy++;
	place(m, i);
}

/* Take the first free entry. */
static u32 list_new(struct acp_matcher *m, u32 rank, u64 tag, u64 size)
{
	u32 i = m->unused;
	struct acp_kept *kept = &m->kept[i];

	m->unused = kept->next;
	kept->size = size;
	kept->tag = tag;
	kept->rank = rank;
	kept->state = ACP_KEPT_LISTED;
	kept->arriving = false;
	kept->asks = false;
	kept->granted = false;
	list_message(m, i);
	return i;
}

u8 acp_matcher_keep(struct acp_matcher *m, u32 rank, u64 tag, u64 size, u32 *message)
{
	if (size > m->bytes || length_of(size) > m->bytes)
		return ACP_ST_RANGE;
	if (m->unused == m->messages || !find_place(m, length_of(size)))
		return ACP_ST_AGAIN;
	*message = list_new(m, rank, tag, size);
	expect_bytes(m, *message);
	return ACP_ST_OK;
}

static void free_entry(struct acp_matcher *m, u32 message)
{
	m->kept[message].state = ACP_KEPT_FREE;
	m->kept[message].next = m->unused;
	m->unused = message;
}

void acp_matcher_release(struct acp_matcher *m, u32 message)
{
	struct acp_kept *kept = &m->kept[message];

	if (m->placed == message)
		m->placed = kept->prev;
	m->kept[kept->next].prev = kept->prev;
	m->kept[kept->prev].next = kept->next;
	free_entry(m, message);
}

/* ---- Messages that ask ---- */

u8 acp_matcher_ask(struct acp_matcher *m, u32 rank, u64 tag, u64 size, const struct acp_ask *ask)
{
	u32 i;

	if (m->unused == m->messages)
		return ACP_ST_AGAIN;
	i = list_new(m, rank, tag, size);
	m->kept[i].asks = true;
	m->kept[i].ask = *ask;
	m->asking++;
	return ACP_ST_OK;
}

void acp_matcher_refuse(struct acp_matcher *m, u32 message)
{
	unlist_message(m, message);
	m->kept[message].asks = false;
	m->asking--;
	free_entry(m, message);
}

void acp_matcher_promise(struct acp_matcher *m, u32 number, const struct acp_ask *ask)
{
	m->receive[number].ask = *ask;
	m->receive[number].granted = true;
	m->granted++;
}

void acp_matcher_grant(struct acp_matcher *m, u32 message, u32 number)
{
	const struct acp_kept *kept = &m->kept[message];

	acp_matcher_refuse(m, message);
	assign(m, number, kept->rank, kept->tag, kept->size);
	acp_matcher_promise(m, number, &kept->ask);
}

u8 acp_matcher_admit(struct acp_matcher *m, u32 message)
{
	struct acp_kept *kept = &m->kept[message];
	u64 length = length_of(kept->size);

	if (kept->size > m->bytes || length > m->bytes)
		return ACP_ST_RANGE;
	if (!find_place(m, length))
		return ACP_ST_AGAIN;
	kept->asks = false;
	m->asking--;
	expect_bytes(m, message);
	kept->granted = true;
	m->granted++;
	return ACP_ST_OK;
}

u32 acp_matcher_find(const struct acp_matcher *m, const struct acp_key *key)
{
	u32 i = find(&m->by_message, key);

	return i == ACP_MATCH_NONE ? i : i / (2 * m->masks_max);
}

bool acp_matcher_take(struct acp_matcher *m, u32 message, u32 number)
{
	struct acp_kept *kept = &m->kept[message];

	unlist_message(m, message);
	kept->state = kept->arriving ? ACP_KEPT_TAKEN : ACP_KEPT_GIVEN;
	kept->receive = number;
	if (kept->arriving) {
		m->receive[number].state = ACP_RECEIVE_BUSY;
		m->busy++;
	}
	return !kept->arriving;
}

u32 acp_matcher_kept(struct acp_matcher *m, u32 message, bool failed)
{
	struct acp_kept *kept = &m->kept[message];
	u32 number = ACP_MATCH_NONE;

	kept->arriving = false;
	m->busy--;
	if (kept->state == ACP_KEPT_TAKEN) {
		number = kept->receive;
		kept->state = ACP_KEPT_GIVEN;
		acp_matcher_done(m, number);
	} else if (failed) {
		unlist_message(m, message);
	}
	if (failed)
		acp_matcher_release(m, message);
	return number;
}
