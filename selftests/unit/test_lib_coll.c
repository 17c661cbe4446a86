// SPDX-License-Identifier: MIT
/* Trees of members, and blocks in pieces. */
#include <stdlib.h>

#include "../test.h"

#include "coll/pieces.h"
#include "coll/tree.h"

/* Each member but the root is a child of its parent, once, and is told which one it is. */
static void check_tree(const struct libacp_tree *t)
{
	int number, parent, child, i, children = 0, place;

	for (number = 0; number < t->size; number++) {
		place = libacp_tree_place(t, number);
		CHECK(place >= 0 && place < t->size);
		CHECK_EQ(libacp_tree_number(t, place), number);
		parent = libacp_tree_parent(t, number);
		CHECK_EQ(parent < 0, number == t->root);
		if (parent >= 0) {
			CHECK(libacp_tree_place(t, parent) < place);
			CHECK_EQ(libacp_tree_child(t, parent, libacp_tree_index(t, number)),
				 number);
		}
		for (i = 0; i < LIBACP_RADIX_MAX + 1; i++) {
			child = libacp_tree_child(t, number, i);
			CHECK(i < t->radix || child < 0);
			if (child >= 0)
				CHECK_EQ(libacp_tree_parent(t, child), number);
			children += child >= 0;
		}
	}
	CHECK_EQ(children, t->size - 1);
}

TEST(tree__of_any_size_root_and_radix)
{
	struct libacp_tree t;

	for (t.size = 1; t.size < 40; t.size++)
		for (t.root = 0; t.root < t.size; t.root++)
			for (t.radix = 1; t.radix <= LIBACP_RADIX_MAX; t.radix++)
				check_tree(&t);
	t = (struct libacp_tree){ .size = 2147483647, .root = 2147483600, .radix = 4 };
	CHECK_EQ(libacp_tree_child(&t, t.root - 1, 0), -1);
	CHECK_EQ(libacp_tree_child(&t, t.root, 3), t.root + 4);
	CHECK_EQ(libacp_tree_parent(&t, 0), t.root + 11);
}

TEST(pieces__cover_the_block)
{
	static const size_t sizes[] = { 1, 4095, 4096, 4097, 262144, 262145, 1000003, 1ul << 40 };
	struct acpx_block block, piece;
	size_t i, q, at, size, count;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		block = (struct acpx_block){ 77, sizes[i] };
		size = libacp_piece_size(block.size, 4096);
		count = libacp_piece_count(block.size, size);
		CHECK(size >= 4096 && size % LIBACP_LINE == 0);
		CHECK(count >= 1 && count <= LIBACP_PIECES_MAX);
		for (q = 0, at = block.offset; q < count; q++, at += piece.size) {
			piece = libacp_piece_at(&block, size, q);
			CHECK_EQ(piece.offset, at);
			CHECK(piece.size && (piece.size == size || q == count - 1));
		}
		CHECK_EQ(at, block.offset + block.size);
	}
	CHECK_EQ(libacp_piece_count(0, 4096), 0);
}

TEST(blocks__are_joined)
{
	const struct acpx_block blocks[] = { { 8, 8 }, { 16, 4 }, { 99, 0 }, { 20, 1 }, { 0, 8 } };
	struct acpx_block runs[5];

	CHECK_EQ(libacp_blocks_join(runs, blocks, 5), 2);
	CHECK(runs[0].offset == 8 && runs[0].size == 13);
	CHECK(runs[1].offset == 0 && runs[1].size == 8);
	CHECK_EQ(libacp_blocks_join(runs, &blocks[2], 1), 0);
	CHECK_EQ(libacp_blocks_end(blocks, 5), 21);
	CHECK_EQ(libacp_blocks_end(&blocks[2], 1), 0);
	CHECK_EQ(libacp_blocks_end(&(struct acpx_block){ SIZE_MAX, 1 }, 1), SIZE_MAX);
}

TEST_MAIN
