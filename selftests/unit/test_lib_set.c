// SPDX-License-Identifier: MIT
/* Sets and multisets against a plain model. */
#include "table_model.h"

TEST(set__one_rank)
{
	turns_run(&play_set, 1, 1);
}

TEST(set__ranks_of_one_node)
{
	turns_run(&play_set, 3, 1);
}

TEST(set__ranks_of_several_nodes)
{
	turns_run(&play_set, 4, 4);
}

TEST(multiset__one_rank)
{
	turns_run(&play_multiset, 1, 1);
}

TEST(multiset__ranks_of_one_node)
{
	turns_run(&play_multiset, 3, 1);
}

TEST(multiset__ranks_of_several_nodes)
{
	turns_run(&play_multiset, 4, 4);
}

TEST_MAIN
