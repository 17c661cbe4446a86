// SPDX-License-Identifier: MIT
/*
 * Sets, multisets and maps against a simple model, a million calls on each, without sanitizers;
 * test_lib_set and test_lib_map run the same code with them.
 */
#include "table_model.h"

#define ALONE	500000u		/* calls of one rank, */
#define NEAR	250000u		/* of several ranks of one node, */
#define FAR	150000u		/* of several nodes, */
#define TIGHT	100000u		/* with heaps that may be full */
#define TURN	1000u

TEST(A2_set__long_alone)
{
	turns_run(&play_set, (struct turns_options){
		.ranks = 1, .nodes = 1, .calls = ALONE, .turn = TURN,
	});
}

TEST(A2_set__long_on_one_node)
{
	turns_run(&play_set, (struct turns_options){
		.ranks = 3, .nodes = 1, .calls = NEAR, .turn = TURN,
	});
}

TEST(A2_set__long_on_several_nodes)
{
	turns_run(&play_set, (struct turns_options){
		.ranks = 4, .nodes = 4, .calls = FAR, .turn = TURN,
	});
}

TEST(A2_set__long_without_room)
{
	turns_run(&play_set, (struct turns_options){
		.ranks = 3, .nodes = 1, .calls = TIGHT, .turn = TURN, .heap_size = 8000,
	});
}

TEST(A2_multiset__long_alone)
{
	turns_run(&play_multiset, (struct turns_options){
		.ranks = 1, .nodes = 1, .calls = ALONE, .turn = TURN,
	});
}

TEST(A2_multiset__long_on_one_node)
{
	turns_run(&play_multiset, (struct turns_options){
		.ranks = 3, .nodes = 1, .calls = NEAR, .turn = TURN,
	});
}

TEST(A2_multiset__long_on_several_nodes)
{
	turns_run(&play_multiset, (struct turns_options){
		.ranks = 4, .nodes = 2, .calls = FAR, .turn = TURN,
	});
}

TEST(A2_multiset__long_without_room)
{
	turns_run(&play_multiset, (struct turns_options){
		.ranks = 3, .nodes = 1, .calls = TIGHT, .turn = TURN, .heap_size = 8000,
	});
}

TEST(A2_map__long_alone)
{
	turns_run(&play_map, (struct turns_options){
		.ranks = 1, .nodes = 1, .calls = ALONE, .turn = TURN,
	});
}

TEST(A2_map__long_on_one_node)
{
	turns_run(&play_map, (struct turns_options){
		.ranks = 3, .nodes = 1, .calls = NEAR, .turn = TURN,
	});
}

TEST(A2_map__long_on_several_nodes)
{
	turns_run(&play_map, (struct turns_options){
		.ranks = 4, .nodes = 4, .calls = FAR, .turn = TURN,
	});
}

TEST(A2_map__long_without_room)
{
	turns_run(&play_map, (struct turns_options){
		.ranks = 3, .nodes = 1, .calls = TIGHT, .turn = TURN, .heap_size = 8000,
	});
}

TEST_MAIN
