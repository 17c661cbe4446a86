// SPDX-License-Identifier: MIT
/* Lists: copying, moving and freeing ranges of elements and whole lists. */
#include <errno.h>
#include <stdlib.h>

#include "containers/list.h"

#define STORES_MAX	12u	/* words of one change */

/* The words of a change. */
struct change {
	struct libacp_word stores[STORES_MAX];
	unsigned int count;
};

static void set(struct change *c, acp_ga_t ga, unsigned int offset, uint64_t former,
		uint64_t value)
{
	c->stores[c->count++] = (struct libacp_word){
		.ga = ga + offset, .former = former, .value = value,
	};
}

/* Make two nodes neighbours of each other, which had other neighbours. */
static void join(struct change *c, acp_ga_t prev, acp_ga_t former_next, acp_ga_t next,
		 acp_ga_t former_prev)
{
	set(c, prev, LIBACP_LIST_NEXT, former_next, next);
	set(c, next, LIBACP_LIST_PREV, former_prev, prev);
}

static int apply(struct libacp_round *r, const struct change *c, bool *undone)
{
	return libacp_round_exchange(r, c->stores, c->count, undone);
}

/* ---- Copies ---- */

/* Elements to be inserted into a list: copied, and linked among themselves. */
struct copies {
	struct libacp_nodes nodes;
	bool lost;			/* unknown whether they are in a list */
};

/* Free them, unless they are in a list. */
static void drop_copies(struct copies *c, int err)
{
	if (err && !c->lost)
		libacp_list_free(&c->nodes);
	libacp_list_drop(&c->nodes);
}

/* Allocate memory for copies of all elements, each on the rank of its original. */
static int allocate_copies(const struct libacp_nodes *from, struct copies *c)
{
	struct libacp_node node;
	size_t i;
	int err = 0;

	for (i = 0; i < from->count && !err; i++) {
		node.size = from->at[i].size;
		err = libacp_list_allocate(node.size, acp_query_rank(from->at[i].ga), &node.ga);
		if (err)
			break;
		err = libacp_list_add(&c->nodes, node);
		if (err)
			acpx_free(node.ga);
	}
	return err;
}

/* Write the copies. The first one follows @prev, the last one precedes @next. */
static int write_copies(struct libacp_round *r, const struct libacp_nodes *from,
			const struct copies *c, acp_ga_t prev, acp_ga_t next)
{
	const struct libacp_node *at = c->nodes.at;
	size_t i, n = c->nodes.count;
	struct change words;

	for (i = 0; i < n && !r->error; i++) {
		if (at[i].size)
			libacp_round_copy(r, at[i].ga + LIBACP_LIST_DATA,
					  from->at[i].ga + LIBACP_LIST_DATA, at[i].size);
		words.count = 0;
		set(&words, at[i].ga, LIBACP_LIST_NEXT, 0, i + 1 < n ? at[i + 1].ga : next);
		set(&words, at[i].ga, LIBACP_LIST_PREV, 0, i ? at[i - 1].ga : prev);
		set(&words, at[i].ga, LIBACP_LIST_SIZE, 0, at[i].size);
		libacp_round_store(r, words.stores, words.count, false);
	}
	return libacp_round_wait(r);
}

/* Copy the elements [start, end) of a list, to be inserted between @prev and @next. */
static int copy_range(struct libacp_round *r, const struct libacp_node *list, acp_ga_t start,
		      acp_ga_t end, acp_ga_t prev, acp_ga_t next, struct copies *c)
{
	struct libacp_nodes from = { NULL, 0, 0 };
	int err = libacp_list_walk(r, list, start, end, &from);

	if (!err)
		err = allocate_copies(&from, c);
	if (!err)
		err = write_copies(r, &from, c, prev, next);
	libacp_list_drop(&from);
	return err;
}

/* Insert copies of [start, end) of the list @from before @at of @list. */
static int insert_range(struct libacp_round *r, const struct libacp_node *list,
			const struct libacp_node *at, const struct libacp_node *from,
			acp_ga_t start, acp_ga_t end, acp_ga_t *first)
{
	struct copies c = { { NULL, 0, 0 }, false };
	struct change links = { .count = 0 };
	bool undone;
	int err = copy_range(r, from, start, end, at->prev, at->ga, &c);

	*first = at->ga;
	if (!err && c.nodes.count) {
		*first = c.nodes.at[0].ga;
		set(&links, at->prev, LIBACP_LIST_NEXT, at->ga, *first);
		set(&links, at->ga, LIBACP_LIST_PREV, at->prev,
		    c.nodes.at[c.nodes.count - 1].ga);
		set(&links, list->ga, LIBACP_LIST_SIZE, list->size, list->size + c.nodes.count);
		err = apply(r, &links, &undone);
		c.lost = err && !undone;
	}
	drop_copies(&c, err);
	return err;
}

acp_list_it_t acp_insert_range_list(acp_list_it_t it, acp_list_it_t start, acp_list_it_t end)
{
	acp_list_it_t first = { it.list, ACP_GA_NULL };
	struct libacp_node nodes[3] = {
		{ .ga = it.list.ga }, { .ga = start.list.ga }, { .ga = it.elem },
	};
	struct libacp_round r;
	int err = start.list.ga == end.list.ga ? libacp_round_begin(&r) : -EINVAL;

	if (!err) {
		err = libacp_list_load(&r, nodes, 3, 2);
		if (!err)
			err = insert_range(&r, &nodes[0], &nodes[2], &nodes[1], start.elem,
					   end.elem, &first.elem);
		libacp_round_end(&r);
	}
	if (!libacp_list_good(err))
		first.elem = ACP_GA_NULL;
	return first;
}

/* ---- Removing ---- */

/* Unlink the elements between two neighbours. */
static void cut(struct change *c, const struct libacp_nodes *nodes)
{
	const struct libacp_node *first = &nodes->at[0], *last = &nodes->at[nodes->count - 1];

	join(c, first->prev, first->ga, last->next, last->ga);
}

static int erase_range(struct libacp_round *r, const struct libacp_node *list, acp_ga_t start,
		       acp_ga_t end)
{
	struct libacp_nodes nodes = { NULL, 0, 0 };
	struct change c = { .count = 0 };
	bool undone;
	int err = libacp_list_walk(r, list, start, end, &nodes);

	if (!err && nodes.count) {
		cut(&c, &nodes);
		set(&c, list->ga, LIBACP_LIST_SIZE, list->size, list->size - nodes.count);
		err = apply(r, &c, &undone);
		if (!err)
			err = libacp_list_free(&nodes);
	}
	libacp_list_drop(&nodes);
	return err;
}

acp_list_it_t acp_erase_range_list(acp_list_it_t start, acp_list_it_t end)
{
	struct libacp_node list = { .ga = start.list.ga };
	struct libacp_round r;
	int err = start.list.ga == end.list.ga ? libacp_round_begin(&r) : -EINVAL;

	if (!err) {
		err = libacp_list_load(&r, &list, 1, 1);
		if (!err)
			err = erase_range(&r, &list, start.elem, end.elem);
		libacp_round_end(&r);
	}
	if (!libacp_list_good(err))
		end.elem = ACP_GA_NULL;
	return end;
}

/* Free all elements, or none if one cannot be reached, because its successors are unknown. */
static int clear(struct libacp_round *r, acp_list_t ref)
{
	struct libacp_node list = { .ga = ref.ga };
	int err = libacp_list_load(r, &list, 1, 1);

	return err ? err : erase_range(r, &list, list.next, list.ga);
}

void acp_clear_list(acp_list_t list)
{
	struct libacp_round r;
	int err = libacp_round_begin(&r);

	if (!err) {
		err = clear(&r, list);
		libacp_round_end(&r);
	}
	libacp_list_good(err);
}

void acp_destroy_list(acp_list_t list)
{
	const struct libacp_word none[] = {
		{ .ga = list.ga + LIBACP_LIST_NEXT, .former = list.ga, .value = ACP_GA_NULL },
		{ .ga = list.ga + LIBACP_LIST_PREV, .former = list.ga, .value = ACP_GA_NULL },
	};
	struct libacp_round r;
	bool undone;
	int err = libacp_round_begin(&r);

	if (!err) {
		err = clear(&r, list);
		/* So that later uses do not find a list. */
		if (!err)
			err = libacp_round_exchange(&r, none, 2, &undone);
		if (!err)
			err = acpx_free(list.ga);
		libacp_round_end(&r);
	}
	libacp_list_good(err);
}

/* ---- Other contents ---- */

/* Make the list a copy of [start, end) of @from, which may be the list itself. */
static int assign(struct libacp_round *r, const struct libacp_node *list,
		  const struct libacp_node *from, acp_ga_t start, acp_ga_t end)
{
	struct libacp_nodes former = { NULL, 0, 0 };
	struct copies c = { { NULL, 0, 0 }, false };
	struct change links = { .count = 0 };
	acp_ga_t first = list->ga, last = list->ga;
	bool undone;
	int err = libacp_list_walk(r, list, list->next, list->ga, &former);

	if (!err)
		err = copy_range(r, from, start, end, list->ga, list->ga, &c);
	if (!err) {
		if (c.nodes.count) {
			first = c.nodes.at[0].ga;
			last = c.nodes.at[c.nodes.count - 1].ga;
		}
		set(&links, list->ga, LIBACP_LIST_NEXT, list->next, first);
		set(&links, list->ga, LIBACP_LIST_PREV, list->prev, last);
		set(&links, list->ga, LIBACP_LIST_SIZE, list->size, c.nodes.count);
		err = apply(r, &links, &undone);
		c.lost = err && !undone;
	}
	drop_copies(&c, err);
	if (!err)
		err = libacp_list_free(&former);
	libacp_list_drop(&former);
	return err;
}

void acp_assign_list(acp_list_t list1, acp_list_t list2)
{
	struct libacp_node lists[2] = { { .ga = list1.ga }, { .ga = list2.ga } };
	struct libacp_round r;
	int err = libacp_round_begin(&r);

	if (!err) {
		err = libacp_list_load(&r, lists, 2, 2);
		if (!err && list1.ga != list2.ga)
			err = assign(&r, &lists[0], &lists[1], lists[1].next, lists[1].ga);
		libacp_round_end(&r);
	}
	libacp_list_good(err);
}

void acp_assign_range_list(acp_list_t list, acp_list_it_t start, acp_list_it_t end)
{
	struct libacp_node lists[2] = { { .ga = list.ga }, { .ga = start.list.ga } };
	struct libacp_round r;
	int err = start.list.ga == end.list.ga ? libacp_round_begin(&r) : -EINVAL;

	if (!err) {
		err = libacp_list_load(&r, lists, 2, 2);
		if (!err)
			err = assign(&r, &lists[0], &lists[1], start.elem, end.elem);
		libacp_round_end(&r);
	}
	libacp_list_good(err);
}

/* ---- Moving ---- */

/* True if the element is among the nodes. */
static bool among(const struct libacp_nodes *nodes, acp_ga_t ga)
{
	size_t i;

	for (i = 0; i < nodes->count; i++)
		if (nodes->at[i].ga == ga)
			return true;
	return false;
}

/* Move consecutive elements from lists[1] before @at of lists[0]. */
static int move(struct libacp_round *r, const struct libacp_node lists[2],
		const struct libacp_node *at, const struct libacp_nodes *nodes)
{
	const struct libacp_node *first = &nodes->at[0], *last = &nodes->at[nodes->count - 1];
	struct change c = { .count = 0 };
	bool undone;

	if (lists[1].size < nodes->count)
		return -EINVAL;
	if (at->ga == first->ga || at->ga == last->next)
		return 0;	/* already there */
	if (among(nodes, at->ga))
		return -EINVAL;
	cut(&c, nodes);
	join(&c, at->prev, at->ga, first->ga, first->prev);
	join(&c, last->ga, last->next, at->ga, at->prev);
	if (lists[0].ga != lists[1].ga) {
		set(&c, lists[0].ga, LIBACP_LIST_SIZE, lists[0].size,
		    lists[0].size + nodes->count);
		set(&c, lists[1].ga, LIBACP_LIST_SIZE, lists[1].size,
		    lists[1].size - nodes->count);
	}
	return apply(r, &c, &undone);
}

/* Move [start, end), or the element at @start if there is no @end. */
static int splice(acp_list_it_t it, acp_list_it_t start, acp_ga_t end)
{
	/* Both lists, the position, and the first element. */
	struct libacp_node load[4] = {
		{ .ga = it.list.ga }, { .ga = start.list.ga }, { .ga = it.elem },
		{ .ga = start.elem },
	};
	struct libacp_nodes nodes = { NULL, 0, 0 };
	struct libacp_round r;
	int err = libacp_round_begin(&r);

	if (err)
		return err;
	err = libacp_list_load(&r, load, 4, 2);
	if (!err && end != ACP_GA_NULL)
		err = libacp_list_walk(&r, &load[1], start.elem, end, &nodes);
	else if (!err)
		err = start.elem == start.list.ga ? -EINVAL : libacp_list_add(&nodes, load[3]);
	if (!err && nodes.count)
		err = move(&r, load, &load[2], &nodes);
	libacp_list_drop(&nodes);
	libacp_round_end(&r);
	return err;
}

void acp_splice_list(acp_list_it_t it1, acp_list_it_t it2)
{
	libacp_list_good(splice(it1, it2, ACP_GA_NULL));
}

void acp_splice_range_list(acp_list_it_t it, acp_list_it_t start, acp_list_it_t end)
{
	bool possible = start.list.ga == end.list.ga && end.elem != ACP_GA_NULL;

	libacp_list_good(possible ? splice(it, start, end.elem) : -EINVAL);
}

/* Make the chain of one list that of another list. */
static void take_chain(struct change *c, const struct libacp_node *list,
		       const struct libacp_node *from)
{
	bool any = from->size != 0;

	set(c, list->ga, LIBACP_LIST_NEXT, list->next, any ? from->next : list->ga);
	set(c, list->ga, LIBACP_LIST_PREV, list->prev, any ? from->prev : list->ga);
	set(c, list->ga, LIBACP_LIST_SIZE, list->size, from->size);
	if (!any)
		return;
	set(c, from->next, LIBACP_LIST_PREV, from->ga, list->ga);
	set(c, from->prev, LIBACP_LIST_NEXT, from->ga, list->ga);
}

void acp_swap_list(acp_list_t list1, acp_list_t list2)
{
	struct libacp_node lists[2] = { { .ga = list1.ga }, { .ga = list2.ga } };
	struct change c = { .count = 0 };
	struct libacp_round r;
	bool undone;
	int err = libacp_round_begin(&r);

	if (!err) {
		err = libacp_list_load(&r, lists, 2, 2);
		if (!err && list1.ga != list2.ga) {
			take_chain(&c, &lists[0], &lists[1]);
			take_chain(&c, &lists[1], &lists[0]);
			err = apply(&r, &c, &undone);
		}
		libacp_round_end(&r);
	}
	libacp_list_good(err);
}
