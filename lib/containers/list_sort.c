// SPDX-License-Identifier: MIT
/*
 * Lists: reordering and removing elements.
 *
 * These functions read the whole list, compute the new order in memory of the caller, and then
 * store all links that differ. Only links change; elements stay where they are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "containers/list.h"
#include "core/internal.h"
#include "middle/scratch.h"

#define CHUNK	16384u	/* bytes to compare at a time */

typedef int (*compare_t)(const acp_element_t elem1, const acp_element_t elem2);

/* ---- Links ---- */

/* Words to change. */
struct changes {
	struct libacp_word *at;	/* allocated by malloc() for the maximum number of words */
	size_t count;
};

static void set(struct changes *c, acp_ga_t ga, unsigned int offset, uint64_t former,
		uint64_t value)
{
	if (former != value)
		c->at[c->count++] = (struct libacp_word){
			.ga = ga + offset, .former = former, .value = value,
		};
}

/* Set the links of a node, which may be the list. */
static void set_links(struct changes *c, const struct libacp_node *node, acp_ga_t next,
		      acp_ga_t prev)
{
	set(c, node->ga, LIBACP_LIST_NEXT, node->next, next);
	set(c, node->ga, LIBACP_LIST_PREV, node->prev, prev);
}

/* Make the list consist of these elements in this order, and make @other, if any, empty. */
static int relink(struct libacp_round *r, const struct libacp_node *list,
		  const struct libacp_nodes *nodes, const struct libacp_node *other)
{
	const struct libacp_node *at = nodes->at;
	size_t i, n = nodes->count;
	struct changes c = { NULL, 0 };
	bool undone;
	int err;

	if (n < SIZE_MAX / sizeof(*c.at) / 2 - 3)
		c.at = malloc((2 * n + 6) * sizeof(*c.at));
	if (!c.at)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		set_links(&c, &at[i], i + 1 < n ? at[i + 1].ga : list->ga,
			  i ? at[i - 1].ga : list->ga);
	set_links(&c, list, n ? at[0].ga : list->ga, n ? at[n - 1].ga : list->ga);
	set(&c, list->ga, LIBACP_LIST_SIZE, list->size, n);
	if (other) {
		set_links(&c, other, other->ga, other->ga);
		set(&c, other->ga, LIBACP_LIST_SIZE, other->size, 0);
	}
	err = libacp_round_exchange(r, c.at, c.count, &undone);
	free(c.at);
	return err;
}

/* Read a whole list. */
static int read_list(struct libacp_round *r, struct libacp_node *list, acp_list_t ref,
		     struct libacp_nodes *nodes)
{
	int err;

	list->ga = ref.ga;
	err = libacp_list_load(r, list, 1, 1);
	return err ? err : libacp_list_walk(r, list, list->next, list->ga, nodes);
}

/* ---- Sorting ---- */

/* Merge two sorted sequences into @to. Among equal elements, those of a come first. */
static void merge(compare_t comp, struct libacp_node *to, const struct libacp_node *a, size_t as,
		  const struct libacp_node *b, size_t bs)
{
	while (as && bs) {
		if (comp(libacp_list_data(a), libacp_list_data(b)) <= 0) {
			*to++ = *a++;
			as--;
		} else {
			*to++ = *b++;
			bs--;
		}
	}
	/* The arrays may be empty, and their pointers NULL. */
	if (as)
		memcpy(to, a, as * sizeof(*to));
	if (bs)
		memcpy(to, b, bs * sizeof(*to));
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Bottom-up merge sort, alternating between two arrays. */
static int sort_nodes(struct libacp_nodes *nodes, compare_t comp)
{
	size_t n = nodes->count, run, i, middle, end;
	struct libacp_node *from = nodes->at, *to, *swap;

	if (n < 2)
		return 0;
	to = malloc(nodes->room * sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (run = 1; run < n; run *= 2) {
		for (i = 0; i < n; i = end) {
			middle = least(i + run, n);
			end = least(middle + run, n);
			merge(comp, to + i, from + i, middle - i, from + middle, end - middle);
		}
		swap = from;
		from = to;
		to = swap;
	}
	free(to);
	nodes->at = from;
	return 0;
}

/* The function of the caller handles its own failures and errno. */
static int sort_as_caller(struct libacp_round *r, struct libacp_nodes *nodes, compare_t comp)
{
	bool quiet = libacp_quiet(r->quiet);
	int err = sort_nodes(nodes, comp);

	libacp_quiet(quiet);
	return err;
}

void acp_sort_list(acp_list_t list, compare_t comp)
{
	struct libacp_nodes nodes = { NULL, 0, 0 };
	struct libacp_node header;
	struct libacp_round r;
	int err = comp ? libacp_round_begin(&r) : -EINVAL;

	if (!err) {
		err = read_list(&r, &header, list, &nodes);
		if (!err)
			err = sort_as_caller(&r, &nodes, comp);
		if (!err)
			err = relink(&r, &header, &nodes, NULL);
		libacp_list_drop(&nodes);
		libacp_round_end(&r);
	}
	libacp_list_good(err);
}

static int merge_lists(struct libacp_round *r, const struct libacp_node lists[2], compare_t comp)
{
	struct libacp_nodes a = { NULL, 0, 0 }, b = { NULL, 0, 0 }, all = { NULL, 0, 0 };
	bool quiet;
	int err = libacp_list_walk(r, &lists[0], lists[0].next, lists[0].ga, &a);

	if (!err)
		err = libacp_list_walk(r, &lists[1], lists[1].next, lists[1].ga, &b);
	if (!err) {
		all.count = a.count + b.count;
		all.at = malloc((all.count + 1) * sizeof(*all.at));
		err = all.at ? 0 : -ENOMEM;
	}
	if (!err) {
		quiet = libacp_quiet(r->quiet);
		merge(comp, all.at, a.at, a.count, b.at, b.count);
		libacp_quiet(quiet);
		err = relink(r, &lists[0], &all, &lists[1]);
	}
	libacp_list_drop(&a);
	libacp_list_drop(&b);
	libacp_list_drop(&all);
	return err;
}

void acp_merge_list(acp_list_t list1, acp_list_t list2, compare_t comp)
{
	struct libacp_node lists[2] = { { .ga = list1.ga }, { .ga = list2.ga } };
	struct libacp_round r;
	int err = comp ? libacp_round_begin(&r) : -EINVAL;

	if (!err) {
		err = libacp_list_load(&r, lists, 2, 2);
		if (!err && list1.ga != list2.ga)
			err = merge_lists(&r, lists, comp);
		libacp_round_end(&r);
	}
	libacp_list_good(err);
}

void acp_reverse_list(acp_list_t list)
{
	struct libacp_nodes nodes = { NULL, 0, 0 };
	struct libacp_node header, swap;
	struct libacp_round r;
	size_t i;
	int err = libacp_round_begin(&r);

	if (!err) {
		err = read_list(&r, &header, list, &nodes);
		for (i = 0; !err && i < nodes.count / 2; i++) {
			swap = nodes.at[i];
			nodes.at[i] = nodes.at[nodes.count - 1 - i];
			nodes.at[nodes.count - 1 - i] = swap;
		}
		if (!err)
			err = relink(&r, &header, &nodes, NULL);
		libacp_list_drop(&nodes);
		libacp_round_end(&r);
	}
	libacp_list_good(err);
}

/* ---- Comparing bytes ---- */

/* Two buffers of CHUNK bytes. */
struct buffers {
	char *memory;
	acp_ga_t ga;
};

/* Return 1 if the bytes are equal, 0 if not, or -errno. */
static int same_bytes(struct libacp_round *r, const struct buffers *b, acp_element_t x,
		      acp_element_t y)
{
	uint64_t at, n;
	int err;

	if (x.size != y.size)
		return 0;
	for (at = 0; x.ga != y.ga && at < x.size; at += n) {
		n = least(x.size - at, CHUNK);
		libacp_round_copy(r, b->ga, x.ga + at, n);
		libacp_round_copy(r, b->ga + CHUNK, y.ga + at, n);
		err = libacp_round_wait(r);
		if (err)
			return err;
		if (memcmp(b->memory, b->memory + CHUNK, n) != 0)
			return 0;
	}
	return 1;
}

/*
 * Move the elements to @out that equal the pattern or, without a pattern, the previous element that
 * stays.
 */
static int sort_out(struct libacp_round *r, struct libacp_nodes *nodes, struct libacp_nodes *out,
		    const acp_element_t *pattern)
{
	struct buffers b;
	acp_element_t other;
	size_t i, kept = 0;
	int same = 0, err = 0;

	b.memory = libacp_scratch_get(2 * CHUNK, &b.ga);
	if (!b.memory)
		return -ENOMEM;
	for (i = 0; i < nodes->count && !err; i++) {
		same = 0;
		if (pattern || kept) {
			other = pattern ? *pattern : libacp_list_data(&nodes->at[kept - 1]);
			same = same_bytes(r, &b, libacp_list_data(&nodes->at[i]), other);
		}
		if (same > 0)
			err = libacp_list_add(out, nodes->at[i]);
		else
			nodes->at[kept++] = nodes->at[i];
		err = same < 0 ? same : err;
	}
	nodes->count = kept;
	libacp_scratch_put(b.memory);
	return err;
}

/* Remove and free the elements that equal the pattern or their predecessor. */
static void remove_equal(acp_list_t list, const acp_element_t *pattern)
{
	struct libacp_nodes nodes = { NULL, 0, 0 }, out = { NULL, 0, 0 };
	struct libacp_node header;
	struct libacp_round r;
	int err = libacp_round_begin(&r);

	if (!err) {
		err = read_list(&r, &header, list, &nodes);
		if (!err)
			err = sort_out(&r, &nodes, &out, pattern);
		if (!err && out.count) {
			err = relink(&r, &header, &nodes, NULL);
			if (!err)
				err = libacp_list_free(&out);
		}
		libacp_list_drop(&nodes);
		libacp_list_drop(&out);
		libacp_round_end(&r);
	}
	libacp_list_good(err);
}

void acp_remove_list(acp_list_t list, const acp_element_t elem)
{
	remove_equal(list, &elem);
}

void acp_unique_list(acp_list_t list)
{
	remove_equal(list, NULL);
}
