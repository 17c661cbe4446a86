// SPDX-License-Identifier: MIT
/* Deques against arrays of bytes. */
#define TYPE	deque
#define RING	1
#include "bytes_faults_play.h"

TEST(A2_deque__random_steps__one_rank)
{
	play(1, 1, play_steps);
}

TEST(A2_deque__random_steps__one_node)
{
	play(3, 1, play_steps);
}

TEST(A2_deque__random_steps__three_nodes)
{
	play(3, 3, play_steps);
}

TEST(deque__allocations_fail__one_rank)
{
	play(1, 1, play_exhaustion);
}

TEST(deque__allocations_fail__one_node)
{
	play(3, 1, play_exhaustion);
}

TEST(deque__allocations_fail__three_nodes)
{
	play(3, 3, play_exhaustion);
}

TEST(A2_deque__bad_arguments__one_rank)
{
	play(1, 1, play_bad_arguments);
}

TEST(A2_deque__bad_arguments__one_node)
{
	play(3, 1, play_bad_arguments);
}

TEST(A2_deque__bad_arguments__three_nodes)
{
	play(3, 3, play_bad_arguments);
}

TEST(deque__dependents_come_late)
{
	play(2, 2, play_late_dependents);
}

TEST(deque__round_trips)
{
	play(2, 2, play_trips);
}

TEST(A2_deque__node_out_of_reach)
{
	play(3, 3, play_cut);
}

TEST(A2_deque__user_dies__one_node)
{
	play_deaths(1);
}

TEST(A2_deque__user_dies__three_nodes)
{
	play_deaths(3);
}

TEST(deque__another_thread_fails)
{
	play_with_failing_thread();
}

TEST(deque__threads)
{
	play(2, 2, play_threads);
}

TEST(deque__not_a_rank)
{
	const acp_deque_t some = { 4096 };

	FAILS(ECANCELED, CHECK_EQ(CALL(create)(8, 0).ga, ACP_GA_NULL));
	FAILS(ECANCELED, CHECK_EQ(CALL(size)(some), 0));
}

TEST(A2_deque__many_steps__one_rank)
{
	play_many("deques", 1, 1, play_own_steps);
}

TEST(A2_deque__many_steps__two_ranks)
{
	play_many("deques", 2, 1, play_own_steps);
}

TEST(A2_deque__many_steps__three_nodes)
{
	play_many("deques", 3, 3, play_own_steps);
}

TEST_MAIN
