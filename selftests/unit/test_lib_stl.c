// SPDX-License-Identifier: MIT
/*
 * Sets, multisets and maps against those of the C++ standard library: one rank, whose tables are on
 * several ranks, and keys of random bytes, many of them prefixes of others.
 */
#include "stl_model.h"
#include "table_play.h"

#define CALLS		8000u
#define TABLES		3
#define KEY_BYTES	48u
#define VALUE_BYTES	200u

static const struct play_kind *const kinds[] = {
	[STL_SET] = &play_set, [STL_MULTISET] = &play_multiset, [STL_MAP] = &play_map,
};

struct pair {
	struct stl_model *model;
	struct play_table table;
};

static const struct play_kind *kind;
static struct pair pairs[TABLES];
static char key_now[KEY_BYTES], value_now[VALUE_BYTES];

/* Few distinct bytes, so that keys collide. */
static struct stl_bytes random_bytes(char *bytes, size_t most, size_t least)
{
	size_t size = least + fake_random() % (most - least + 1), i;

	if (fake_random() % 4)
		size = size % 4 + least;
	for (i = 0; i < size; i++)
		bytes[i] = (char)(fake_random() % 3 - 1);
	return (struct stl_bytes){ bytes, size };
}

/* Copy to starter memory. */
static acp_pair_t place(struct stl_bytes key, struct stl_bytes value)
{
	acp_ga_t ga;
	struct play_area *area = play_area(&ga);

	memcpy(area->key, key.bytes, key.size);
	memcpy(area->value, value.bytes, value.size);
	return (acp_pair_t){
		{ ga + offsetof(struct play_area, key), key.size },
		{ ga + offsetof(struct play_area, value), value.size },
	};
}

static void check_value(const struct pair *p, struct stl_bytes key, acp_element_t found)
{
	struct stl_bytes value = stl_value(p->model, key);

	CHECK_EQ(found.size, value.size);
	CHECK(!memcmp(play_fetch(found), value.bytes, value.size));
}

static void find(const struct pair *p, struct stl_bytes key)
{
	const struct stl_bytes nothing = { value_now, 0 };
	size_t count = stl_count(p->model, key);
	struct play_it it = kind->find(p->table, place(key, nothing).first);
	acp_pair_t content;

	CHECK_EQ(it.elem != ACP_GA_NULL, count != 0);
	if (kind->counts)
		CHECK_EQ(acp_retrieve_multiset(multiset_to(p->table), place(key, nothing).first),
			 count);
	if (!count)
		return;
	content = kind->content(it);
	CHECK_EQ(content.first.size, key.size);
	CHECK(!memcmp(play_fetch(content.first), key.bytes, key.size));
	if (kind->values)
		check_value(p, key, content.second);
}

static void insert(const struct pair *p, struct stl_bytes key)
{
	struct stl_bytes value = random_bytes(value_now, VALUE_BYTES, 0);
	bool new = stl_insert(p->model, key, value);

	CHECK_EQ(kind->insert(p->table, place(key, value)), new || !kind->values);
}

static void remove_key(const struct pair *p, struct stl_bytes key)
{
	const struct stl_bytes nothing = { value_now, 0 };

	if (fake_random() % 2) {
		kind->remove(p->table, place(key, nothing).first);
		stl_erase_one(p->model, key);
	} else {
		kind->remove_all(p->table, place(key, nothing).first);
		stl_erase(p->model, key);
	}
}

static void whole(const struct pair *a, const struct pair *b)
{
	/* Not too many copies, each of which the model stores. */
	switch (stl_size(a->model) < 5000 ? fake_random() % 5 : 4) {
	case 0:
		kind->merge(a->table, b->table);
		stl_merge(a->model, b->model);
		break;
	case 1:
		kind->move(a->table, b->table);
		if (a != b) {
			stl_merge(a->model, b->model);
			stl_clear(b->model);
		}
		break;
	case 2:
		kind->assign(a->table, b->table);
		stl_assign(a->model, b->model);
		break;
	case 3:
		kind->swap(a->table, b->table);
		stl_swap(a->model, b->model);
		break;
	default:
		kind->clear(a->table);
		stl_clear(a->model);
	}
}

/* Check that table and model have the same contents. */
static void walk(const struct pair *p)
{
	struct play_it it;
	acp_pair_t content;
	size_t number = 0;

	for (it = kind->begin(p->table); it.elem != ACP_GA_NULL; it = kind->next(it), number++) {
		struct stl_bytes key = { key_now, 0 };

		content = kind->content(it);
		CHECK(content.first.size <= KEY_BYTES);
		key.size = content.first.size;
		memcpy(key_now, play_fetch(content.first), key.size);
		CHECK(stl_count(p->model, key) != 0);
		if (kind->values)
			check_value(p, key, content.second);
	}
	CHECK_EQ(number, stl_keys(p->model));
	CHECK_EQ(kind->size(p->table), number);
}

static void call(void)
{
	const struct pair *p = &pairs[fake_random() % TABLES];
	struct stl_bytes key = random_bytes(key_now, KEY_BYTES, 1);
	uint64_t what = fake_random() % 200;

	if (what < 80)
		insert(p, key);
	else if (what < 130)
		find(p, key);
	else if (what < 198)
		remove_key(p, key);
	else
		whole(p, &pairs[fake_random() % TABLES]);
	CHECK_EQ(errno, 0);
}

static void compare(void *arg)
{
	const int ranks[] = { 2, 0, 1, 1 };
	enum stl_kind number = *(enum stl_kind *)arg;
	unsigned int i;

	if (acp_rank())
		return;
	kind = kinds[number];
	for (i = 0; i < TABLES; i++)
		pairs[i] = (struct pair){ stl_create(number),
					  kind->create(2 + (int)i, ranks, 5 + 9 * (int)i, 1) };
	for (i = 0; i < CALLS * LONG; i++) {
		call();
		if (i % 200 == 0)
			walk(&pairs[i / 200 % TABLES]);
	}
	for (i = 0; i < TABLES; i++) {
		walk(&pairs[i]);
		kind->destroy(pairs[i].table);
		stl_destroy(pairs[i].model);
	}
	CHECK_EQ(play_blocks(), 0);
	CHECK_EQ(errno, 0);
}

static void run(enum stl_kind number)
{
	struct fake_acp f = { .ranks = 3, .nodes = 2 };

	fake_run(&f, compare, &number);
}

TEST(A2_set__as_in_the_standard_library)
{
	run(STL_SET);
}

TEST(A2_multiset__as_in_the_standard_library)
{
	run(STL_MULTISET);
}

TEST(A2_map__as_in_the_standard_library)
{
	run(STL_MAP);
}

TEST_MAIN
