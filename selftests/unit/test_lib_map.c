// SPDX-License-Identifier: MIT
/* Maps against a plain model. */
#include "table_model.h"

TEST(map__one_rank)
{
	turns_run(&play_map, 1, 1);
}

TEST(map__ranks_of_one_node)
{
	turns_run(&play_map, 3, 1);
}

TEST(map__ranks_of_several_nodes)
{
	turns_run(&play_map, 4, 2);
}

TEST_MAIN
