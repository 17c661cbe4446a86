// SPDX-License-Identifier: MIT
/*
 * Lists: doubly linked elements on any rank.
 *
 * A change reads the neighbours, writes the new element to memory that is not in use, and then
 * stores all words that change. If one of them cannot be stored, the previous values are restored.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "containers/list.h"

bool libacp_list_good(int err)
{
	if (err)
		errno = -err;
	return !err;
}

acp_element_t libacp_list_data(const struct libacp_node *node)
{
	return (acp_element_t){ node->ga + LIBACP_LIST_DATA, node->size };
}

/* ---- Reading ---- */

/* Check that the number and the ends of a list are consistent. */
static bool agree(const struct libacp_node *list)
{
	bool first = list->next != list->ga, last = list->prev != list->ga;

	return first == last && first == (list->size != 0);
}

int libacp_list_load(struct libacp_round *r, struct libacp_node *nodes, unsigned int count,
		     unsigned int lists)
{
	const uint64_t *words[4];
	unsigned int i;
	int err;

	for (i = 0; i < count; i++) {
		if (nodes[i].ga == ACP_GA_NULL || nodes[i].ga % sizeof(uint64_t))
			return -EINVAL;
	}
	for (i = 0; i < count; i++)
		words[i] = libacp_round_read(r, nodes[i].ga, LIBACP_LIST_WORDS);
	err = libacp_round_wait(r);
	for (i = 0; i < count && !err; i++) {
		nodes[i].next = words[i][0];
		nodes[i].prev = words[i][1];
		nodes[i].size = words[i][2];
		if (nodes[i].next == ACP_GA_NULL || nodes[i].prev == ACP_GA_NULL ||
		    (i < lists && !agree(&nodes[i])))
			err = -EUCLEAN;
	}
	return err;
}

int libacp_list_add(struct libacp_nodes *nodes, struct libacp_node node)
{
	struct libacp_node *at = nodes->at;
	size_t room = nodes->room ? 2 * nodes->room : 16;

	if (nodes->count == nodes->room) {
		if (room > SIZE_MAX / sizeof(*at))
			return -ENOMEM;
		at = realloc(at, room * sizeof(*at));
		if (!at)
			return -ENOMEM;
		nodes->at = at;
		nodes->room = room;
	}
	at[nodes->count++] = node;
	return 0;
}

void libacp_list_drop(struct libacp_nodes *nodes)
{
	free(nodes->at);
	*nodes = (struct libacp_nodes){ NULL, 0, 0 };
}

int libacp_list_walk(struct libacp_round *r, const struct libacp_node *list, acp_ga_t start,
		     acp_ga_t end, struct libacp_nodes *nodes)
{
	acp_ga_t prev = start == list->next ? list->ga : ACP_GA_NULL;
	struct libacp_node node = { .ga = start };
	int err = 0;

	for (; node.ga != end && !err; prev = node.ga, node.ga = node.next) {
		if (node.ga == list->ga)
			return -EINVAL;
		if (nodes->count == list->size)
			return -EUCLEAN;
		err = libacp_list_load(r, &node, 1, 0);
		if (!err && prev != ACP_GA_NULL && node.prev != prev)
			err = -EUCLEAN;
		if (!err)
			err = libacp_list_add(nodes, node);
	}
	/* Links that are going to be cut must not lead elsewhere. */
	if (!err && nodes->count && end == list->ga && list->prev != prev)
		err = -EUCLEAN;
	return err;
}

/* ---- Elements ---- */

int libacp_list_allocate(uint64_t size, int rank, acp_ga_t *ga)
{
	if (size > UINT64_MAX - LIBACP_LIST_DATA)
		return -EOVERFLOW;
	return libacp_round_allocate(LIBACP_LIST_DATA + size, rank, ga);
}

int libacp_list_free(const struct libacp_nodes *nodes)
{
	int err = 0, one;
	size_t i;

	for (i = 0; i < nodes->count; i++) {
		if (err && libacp_round_is_lost(nodes->at[i].ga))
			continue;
		one = acpx_free(nodes->at[i].ga);
		err = err ? err : one;
	}
	return err;
}

/* Return a word of a node. */
static struct libacp_word word(acp_ga_t ga, unsigned int offset, uint64_t former, uint64_t value)
{
	return (struct libacp_word){ .ga = ga + offset, .former = former, .value = value };
}

/*
 * Insert a new element, of a size that can be allocated, before @at, which is an element or the
 * list. One round copies the element and reads the neighbours, another one stores the links.
 */
static int link_new(struct libacp_round *r, acp_ga_t list_ga, acp_ga_t at, acp_element_t elem,
		    acp_ga_t new)
{
	struct libacp_node nodes[2] = { { .ga = list_ga }, { .ga = at } };
	struct libacp_word stores[6];
	acp_ga_t prev;
	bool undone;
	int err;

	if (elem.size)
		libacp_round_copy(r, new + LIBACP_LIST_DATA, elem.ga, elem.size);
	err = libacp_list_load(r, nodes, 2, 1);
	if (err) {
		libacp_round_wait(r);
		acpx_free(new);
		return err;
	}
	prev = nodes[1].prev;
	stores[0] = word(new, LIBACP_LIST_NEXT, 0, at);
	stores[1] = word(new, LIBACP_LIST_PREV, 0, prev);
	stores[2] = word(new, LIBACP_LIST_SIZE, 0, elem.size);
	stores[3] = word(prev, LIBACP_LIST_NEXT, at, new);
	stores[4] = word(at, LIBACP_LIST_PREV, prev, new);
	stores[5] = word(list_ga, LIBACP_LIST_SIZE, nodes[0].size, nodes[0].size + 1);
	err = libacp_round_exchange(r, stores, 6, &undone);
	if (err && undone)
		acpx_free(new);
	return err;
}

/* Return the new element, or ACP_GA_NULL with errno set. */
static acp_ga_t insert(acp_ga_t list, acp_ga_t at, acp_element_t elem, int rank)
{
	acp_ga_t new = ACP_GA_NULL;
	struct libacp_round r;
	int err = libacp_round_begin(&r);

	if (!err) {
		err = libacp_list_allocate(elem.size, rank, &new);
		if (!err)
			err = link_new(&r, list, at, elem, new);
		libacp_round_end(&r);
	}
	return libacp_list_good(err) ? new : ACP_GA_NULL;
}

acp_list_it_t acp_insert_list(acp_list_it_t it, const acp_element_t elem, int rank)
{
	return (acp_list_it_t){ it.list, insert(it.list.ga, it.elem, elem, rank) };
}

void acp_push_back_list(acp_list_t list, const acp_element_t elem, int rank)
{
	insert(list.ga, list.ga, elem, rank);
}

void acp_push_front_list(acp_list_t list, const acp_element_t elem, int rank)
{
	acp_list_it_t first = acp_begin_list(list);

	if (first.elem != ACP_GA_NULL)
		insert(list.ga, first.elem, elem, rank);
}

/* Unlink an element and free it; *next is its successor. */
static int erase(struct libacp_round *r, acp_ga_t list_ga, acp_ga_t elem, acp_ga_t *next)
{
	struct libacp_node nodes[2] = { { .ga = list_ga }, { .ga = elem } };
	struct libacp_word stores[5];
	bool undone;
	int err;

	if (elem == list_ga)
		return -EINVAL;
	err = libacp_list_load(r, nodes, 2, 1);
	if (!err && !nodes[0].size)
		err = -EINVAL;
	if (err)
		return err;
	*next = nodes[1].next;
	stores[0] = word(nodes[1].prev, LIBACP_LIST_NEXT, elem, nodes[1].next);
	stores[1] = word(nodes[1].next, LIBACP_LIST_PREV, elem, nodes[1].prev);
	stores[2] = word(list_ga, LIBACP_LIST_SIZE, nodes[0].size, nodes[0].size - 1);
	/* So that erasing it again does not find its neighbours. */
	stores[3] = word(elem, LIBACP_LIST_NEXT, nodes[1].next, ACP_GA_NULL);
	stores[4] = word(elem, LIBACP_LIST_PREV, nodes[1].prev, ACP_GA_NULL);
	err = libacp_round_exchange(r, stores, 5, &undone);
	return err ? err : acpx_free(elem);
}

acp_list_it_t acp_erase_list(acp_list_it_t it)
{
	acp_list_it_t next = { it.list, ACP_GA_NULL };
	struct libacp_round r;
	int err = libacp_round_begin(&r);

	if (!err) {
		err = erase(&r, it.list.ga, it.elem, &next.elem);
		libacp_round_end(&r);
	}
	if (!libacp_list_good(err))
		next.elem = ACP_GA_NULL;
	return next;
}

/* Remove the first or the last element, if there is one. */
static void pop(acp_list_t ref, bool front)
{
	struct libacp_node list = { .ga = ref.ga };
	struct libacp_round r;
	acp_ga_t next;
	int err = libacp_round_begin(&r);

	if (!err) {
		err = libacp_list_load(&r, &list, 1, 1);
		if (!err && list.size)
			err = erase(&r, list.ga, front ? list.next : list.prev, &next);
		libacp_round_end(&r);
	}
	libacp_list_good(err);
}

void acp_pop_back_list(acp_list_t list)
{
	pop(list, false);
}

void acp_pop_front_list(acp_list_t list)
{
	pop(list, true);
}

/* ---- The list ---- */

acp_list_t acp_create_list(int rank)
{
	acp_list_t list = { ACP_GA_NULL };
	struct libacp_word stores[3];
	struct libacp_round r;
	bool undone;
	int err = libacp_round_begin(&r);

	if (!err) {
		err = libacp_round_allocate(LIBACP_LIST_WORDS * sizeof(uint64_t), rank, &list.ga);
		if (!err) {
			stores[0] = word(list.ga, LIBACP_LIST_NEXT, 0, list.ga);
			stores[1] = word(list.ga, LIBACP_LIST_PREV, 0, list.ga);
			stores[2] = word(list.ga, LIBACP_LIST_SIZE, 0, 0);
			err = libacp_round_exchange(&r, stores, 3, &undone);
			if (err)
				acpx_free(list.ga);
		}
		libacp_round_end(&r);
	}
	return libacp_list_good(err) ? list : (acp_list_t){ ACP_GA_NULL };
}

/* Return the header, all 0 on failure. */
static struct libacp_node header(acp_list_t ref)
{
	struct libacp_node list = { .ga = ref.ga };
	struct libacp_round r;
	int err = libacp_round_begin(&r);

	if (!err) {
		err = libacp_list_load(&r, &list, 1, 1);
		libacp_round_end(&r);
	}
	return libacp_list_good(err) ? list : (struct libacp_node){ .ga = ACP_GA_NULL };
}

size_t acp_size_list(acp_list_t list)
{
	return header(list).size;
}

int acp_empty_list(acp_list_t list)
{
	return header(list).size == 0;
}

/* ---- Iterators ---- */

acp_list_it_t acp_begin_list(acp_list_t list)
{
	return (acp_list_it_t){ list, header(list).next };
}

acp_list_it_t acp_end_list(acp_list_t list)
{
	return (acp_list_it_t){ list, list.ga };
}

/* Read an element. False with errno set on failure. */
static bool look(acp_ga_t elem, struct libacp_node *node)
{
	struct libacp_round r;
	int err = libacp_round_begin(&r);

	if (!err) {
		node->ga = elem;
		err = libacp_list_load(&r, node, 1, 0);
		libacp_round_end(&r);
	}
	return libacp_list_good(err);
}

acp_list_it_t acp_increment_list_it(acp_list_it_t it)
{
	return acp_advance_list_it(it, 1);
}

acp_list_it_t acp_decrement_list_it(acp_list_it_t it)
{
	struct libacp_node node;

	if (!look(it.elem, &node))
		it.elem = ACP_GA_NULL;
	else if (node.prev != it.list.ga)
		it.elem = node.prev;
	return it;
}

acp_list_it_t acp_advance_list_it(acp_list_it_t it, int n)
{
	struct libacp_node node;

	/* An element that cannot be read is treated as the end, so that no loop is infinite. */
	for (; n > 0 && it.elem != it.list.ga; n--)
		it.elem = look(it.elem, &node) ? node.next : it.list.ga;
	return it;
}

acp_element_t acp_dereference_list_it(acp_list_it_t it)
{
	static const acp_element_t nothing = { ACP_GA_NULL, 0 };
	struct libacp_node node;

	if (it.elem == it.list.ga || !look(it.elem, &node))
		return nothing;
	return libacp_list_data(&node);
}

/* Count the elements from @first up to @last or the end. Returns 0 or -errno. */
static int count(struct libacp_round *r, acp_list_it_t first, acp_ga_t last, int *n)
{
	const acp_ga_t end = first.list.ga;
	struct libacp_node nodes[2] = { { .ga = end }, { .ga = first.elem } };
	int err = libacp_list_load(r, nodes, 2, 1);

	for (*n = 0; !err; err = libacp_list_load(r, &nodes[1], 1, 0)) {
		if ((uint64_t)*n == nodes[0].size)
			return -EUCLEAN;
		if (++*n == INT_MAX)
			return -EOVERFLOW;
		nodes[1].ga = nodes[1].next;
		if (nodes[1].ga == last || nodes[1].ga == end)
			return 0;
	}
	return err;
}

int acp_distance_list_it(acp_list_it_t first, acp_list_it_t last)
{
	struct libacp_round r;
	int err, n = 0;

	if (first.list.ga != last.list.ga || first.elem == last.elem ||
	    first.elem == first.list.ga)
		return 0;
	err = libacp_round_begin(&r);
	if (!err) {
		err = count(&r, first, last.elem, &n);
		libacp_round_end(&r);
	}
	return libacp_list_good(err) ? n : 0;
}
