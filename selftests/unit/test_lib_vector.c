// SPDX-License-Identifier: MIT
/* Vectors against arrays of bytes. */
#define TYPE	vector
#define RING	0
#include "bytes_faults_play.h"

TEST(A2_vector__random_steps__one_rank)
{
	play(1, 1, play_steps);
}

TEST(A2_vector__random_steps__one_node)
{
	play(3, 1, play_steps);
}

TEST(A2_vector__random_steps__three_nodes)
{
	play(3, 3, play_steps);
}

TEST(vector__allocations_fail__one_rank)
{
	play(1, 1, play_exhaustion);
}

TEST(vector__allocations_fail__one_node)
{
	play(3, 1, play_exhaustion);
}

TEST(vector__allocations_fail__three_nodes)
{
	play(3, 3, play_exhaustion);
}

TEST(A2_vector__bad_arguments__one_rank)
{
	play(1, 1, play_bad_arguments);
}

TEST(A2_vector__bad_arguments__one_node)
{
	play(3, 1, play_bad_arguments);
}

TEST(A2_vector__bad_arguments__three_nodes)
{
	play(3, 3, play_bad_arguments);
}

TEST(vector__dependents_come_late)
{
	play(2, 2, play_late_dependents);
}

TEST(vector__round_trips)
{
	play(2, 2, play_trips);
}

TEST(A2_vector__node_out_of_reach)
{
	play(3, 3, play_cut);
}

TEST(A2_vector__user_dies__one_node)
{
	play_deaths(1);
}

TEST(A2_vector__user_dies__three_nodes)
{
	play_deaths(3);
}

TEST(vector__another_thread_fails)
{
	play_with_failing_thread();
}

TEST(vector__threads)
{
	play(2, 2, play_threads);
}

TEST(vector__not_a_rank)
{
	const acp_vector_t some = { 4096 };

	FAILS(ECANCELED, CHECK_EQ(CALL(create)(8, 0).ga, ACP_GA_NULL));
	FAILS(ECANCELED, CHECK_EQ(CALL(size)(some), 0));
}

TEST(A2_vector__many_steps__one_rank)
{
	play_many("vectors", 1, 1, play_own_steps);
}

TEST(A2_vector__many_steps__two_ranks)
{
	play_many("vectors", 2, 1, play_own_steps);
}

TEST(A2_vector__many_steps__three_nodes)
{
	play_many("vectors", 3, 3, play_own_steps);
}

TEST_MAIN
