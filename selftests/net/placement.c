// SPDX-License-Identifier: MIT
/*
 * Copies and atomics with all placements of source, destination and origin over nodes: IPv4 and
 * IPv6, several ranks per node, colors, several jobs.
 */
#include "../dev/isolated.h"

#include "../dev/traffic.h"
#include "nodes.h"

#define MB	(1UL << 20)

static struct nodes n;
static struct rank r[RANKS_MAX];
static struct traffic t;

static void close_all(uint32_t ranks)
{
	while (ranks--)
		rank_close(&r[ranks]);
}

TEST(two_nodes)
{
	nodes_open(&n, 2, 1, false);
	nodes_ranks(&n, r, 2);
	traffic_everything(&t, r, 2, 0);
	close_all(2);
}

TEST(three_nodes)
{
	nodes_open(&n, 3, 1, false);
	nodes_ranks(&n, r, 3);
	traffic_everything(&t, r, 3, 0);
	close_all(3);
}

TEST(three_nodes_ipv6)
{
	nodes_open(&n, 3, 1, true);
	nodes_ranks(&n, r, 3);
	traffic_everything(&t, r, 3, 0);
	close_all(3);
}

TEST(two_ranks_on_each_of_two_nodes)
{
	nodes_open(&n, 2, 1, false);
	nodes_ranks(&n, r, 4);
	traffic_everything(&t, r, 4, 0);
	close_all(4);
}

/* Ranks 0 1 2 3 on nodes 0 1 0 1, and an irregular placement. */
TEST(cyclic_and_irregular_placement)
{
	struct setup s;
	uint32_t i;

	nodes_open(&n, 3, 1, false);
	for (i = 0; i < 4; i++) {
		nodes_setup(&n, &s, i, 4);
		s.ranks[0].block = 1;
		nodes_join(&n, &r[i], &s);
	}
	traffic_everything(&t, r, 4, 0);
	close_all(4);
	for (i = 0; i < 4; i++) {
		nodes_setup(&n, &s, i, 4);
		s.join.job++;
		s.join.rank_runs = 3;
		s.ranks[0] = (struct acp_rank_run){ 0, 1, 2, 1, 1, 0 };
		s.ranks[1] = (struct acp_rank_run){ 1, 1, 0, 1, 1, 0 };
		s.ranks[2] = (struct acp_rank_run){ 2, 2, 1, 1, 2, 0 };
		nodes_join(&n, &r[i], &s);
	}
	traffic_everything(&t, r, 4, 0);
	close_all(4);
}

/* The color of a region selects its path: it works while the other devices are down. */
static void colors(bool ipv6)
{
	uint32_t color, other;

	nodes_open(&n, 3, 4, ipv6);
	nodes_ranks(&n, r, 3);
	for (color = 0; color < 4; color++) {
		for (other = 0; other < 4; other++) {
			nodes_run(&n, 0, "ip link set eth%u %s", other,
				  other == color ? "up" : "down");
			if (ipv6 && other == color)
				nodes_run(&n, 0, "ip addr replace %s/64 dev eth%u nodad",
					  n.address[color * 3], color);
		}
		traffic_open(&t, r, 3, MB / 4, color);
		traffic_common_copies(&t);
		traffic_every_atomic(&t);
		traffic_random(&t, 5, 40, 30000);
		traffic_close(&t);
	}
}

TEST(four_colors)
{
	colors(false);
}

TEST(four_colors_ipv6)
{
	colors(true);
}

TEST(several_jobs_at_once)
{
	static struct rank ranks[4][3];
	static struct traffic traffic[4];
	struct setup s;
	uint32_t job, i;

	nodes_open(&n, 3, 1, false);
	for (job = 0; job < 4; job++) {
		for (i = 0; i < 3; i++) {
			nodes_setup(&n, &s, i, 3);
			s.join.job += job;
			s.join.key[0] = (uint8_t)job;
			s.join.integrity = job & 1;
			s.join.port += job / 2;
			nodes_join(&n, &ranks[job][i], &s);
		}
		traffic_open(&traffic[job], ranks[job], 3, MB / 4, 0);
	}
	for (i = 0; i < 5; i++) {
		for (job = 0; job < 4; job++)
			traffic_random(&traffic[job], 2, 40, 30000);
		traffic_every_atomic(&traffic[i % 4]);
	}
	for (job = 0; job < 4; job++)
		traffic_check(&traffic[job]);
}

/* A job starts and ends while another one runs. */
TEST(jobs_come_and_go)
{
	struct rank other[3];
	struct setup s;
	uint32_t round, i;

	nodes_open(&n, 3, 1, false);
	nodes_ranks(&n, r, 3);
	traffic_open(&t, r, 3, MB / 4, 0);
	for (round = 1; round <= 10; round++) {
		for (i = 0; i < 3; i++) {
			nodes_setup(&n, &s, i, 3);
			s.join.job += round % 3 + 1;
			nodes_join(&n, &other[i], &s);
		}
		rank_copy(&other[0], heap_ga(&other[1], 0), heap_ga(&other[2], 0), 60000, 0);
		traffic_random(&t, 2, 40, 30000);
		for (i = 0; i < 3; i++)
			rank_close(&other[i]);
	}
	traffic_check(&t);
}

/* A job is restarted immediately with the same ranks: frames of the first one are rejected. */
TEST(same_job_again)
{
	uint32_t round;

	nodes_open(&n, 3, 1, false);
	for (round = 0; round < 10; round++) {
		nodes_ranks(&n, r, 3);
		traffic_open(&t, r, 3, MB / 4, 0);
		traffic_random(&t, 2, 40, 30000);
		traffic_every_atomic(&t);
		traffic_close(&t);
		close_all(3);
	}
}
