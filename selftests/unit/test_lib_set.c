// SPDX-License-Identifier: MIT
/* Sets and multisets against a plain model. */
#include "table_model.h"

#define CALLS	7200u
#define TURN	40u
#define TIGHT	6000u

TEST(A2_set__one_rank)
{
	turns_run(&play_set, (struct turns_options){
		.ranks = 1, .nodes = 1, .calls = CALLS, .turn = TURN,
	});
}

TEST(A2_set__ranks_of_one_node)
{
	turns_run(&play_set, (struct turns_options){
		.ranks = 3, .nodes = 1, .calls = CALLS, .turn = TURN,
	});
}

TEST(A2_set__ranks_of_several_nodes)
{
	turns_run(&play_set, (struct turns_options){
		.ranks = 4, .nodes = 4, .calls = CALLS, .turn = TURN,
	});
}

TEST(A2_set__without_room)
{
	turns_run(&play_set, (struct turns_options){
		.ranks = 3, .nodes = 2, .calls = CALLS, .turn = TURN, .heap_size = TIGHT,
	});
}

TEST(A2_multiset__one_rank)
{
	turns_run(&play_multiset, (struct turns_options){
		.ranks = 1, .nodes = 1, .calls = CALLS, .turn = TURN,
	});
}

TEST(A2_multiset__ranks_of_one_node)
{
	turns_run(&play_multiset, (struct turns_options){
		.ranks = 3, .nodes = 1, .calls = CALLS, .turn = TURN,
	});
}

TEST(A2_multiset__ranks_of_several_nodes)
{
	turns_run(&play_multiset, (struct turns_options){
		.ranks = 4, .nodes = 2, .calls = CALLS, .turn = TURN,
	});
}

TEST(A2_multiset__without_room)
{
	turns_run(&play_multiset, (struct turns_options){
		.ranks = 3, .nodes = 2, .calls = CALLS, .turn = TURN, .heap_size = TIGHT,
	});
}

TEST_MAIN
