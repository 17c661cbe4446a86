// SPDX-License-Identifier: MIT
/* Lists against arrays of elements, and their failures. */
#include "list_play.h"

/* ---- Bad arguments ---- */

/* Objects that are no list; "error" is that of reading them. */
static void check_invalid(acp_list_t bad, int error)
{
	acp_list_t good = models[0].at;
	acp_list_it_t it = { bad, bad.ga }, ours = acp_begin_list(good);
	acp_element_t e = { stage_ga(), 8 };

	FAILS(error, CHECK_EQ(acp_size_list(bad), 0));
	FAILS(error, CHECK_EQ(acp_empty_list(bad), 1));
	FAILS(error, CHECK_EQ(acp_begin_list(bad).elem, ACP_GA_NULL));
	FAILS(error, acp_push_back_list(bad, e, 0));
	FAILS(error, acp_push_front_list(bad, e, 0));
	FAILS(error, acp_pop_back_list(bad));
	FAILS(error, acp_pop_front_list(bad));
	FAILS(error, CHECK_EQ(acp_insert_list(it, e, 0).elem, ACP_GA_NULL));
	FAILS(error, CHECK_EQ(acp_insert_range_list(it, ours, ours).elem, ACP_GA_NULL));
	FAILS(error, CHECK_EQ(acp_insert_range_list(ours, it, it).elem, ACP_GA_NULL));
	FAILS(error, CHECK_EQ(acp_erase_range_list(it, it).elem, ACP_GA_NULL));
	FAILS(error, acp_assign_list(bad, good));
	FAILS(error, acp_assign_list(good, bad));
	FAILS(error, acp_assign_range_list(good, it, it));
	FAILS(error, acp_clear_list(bad));
	FAILS(error, acp_destroy_list(bad));
	FAILS(error, acp_merge_list(good, bad, compare));
	FAILS(error, acp_merge_list(bad, good, compare));
	FAILS(error, acp_sort_list(bad, compare));
	FAILS(error, acp_reverse_list(bad));
	FAILS(error, acp_remove_list(bad, e));
	FAILS(error, acp_unique_list(bad));
	FAILS(error, acp_swap_list(good, bad));
	FAILS(error, acp_splice_list(it, ours));
}

static void check_iterators(struct model *m, const struct model *other)
{
	acp_list_it_t null = { m->at, ACP_GA_NULL }, end = acp_end_list(m->at), erased;
	acp_list_it_t wild = { m->at, 8 };
	acp_element_t e = draw_fresh();

	FAILS(EINVAL, CHECK_EQ(acp_increment_list_it(null).elem, m->at.ga));
	FAILS(EINVAL, CHECK_EQ(acp_advance_list_it(null, 5).elem, m->at.ga));
	FAILS(EINVAL, CHECK_EQ(acp_decrement_list_it(null).elem, ACP_GA_NULL));
	FAILS(EINVAL, CHECK_EQ(acp_dereference_list_it(null).size, 0));
	FAILS(EFAULT, CHECK_EQ(acp_dereference_list_it(wild).size, 0));
	FAILS(EFAULT, CHECK_EQ(acp_increment_list_it(wild).elem, m->at.ga));
	FAILS(FINE, CHECK_EQ(acp_advance_list_it(place(m, 1), -1).elem, m->elements[1].ga));
	FAILS(FINE, CHECK_EQ(acp_distance_list_it(place(m, 0), place(other, 0)), 0));
	FAILS(EINVAL, CHECK_EQ(acp_insert_list(null, e, 0).elem, ACP_GA_NULL));
	FAILS(EFAULT, CHECK_EQ(acp_insert_list(wild, e, 0).elem, ACP_GA_NULL));
	FAILS(EINVAL, CHECK_EQ(acp_insert_list(end, e, -1).elem, ACP_GA_NULL));
	FAILS(EINVAL, CHECK_EQ(acp_insert_list(end, e, acp_procs()).elem, ACP_GA_NULL));
	FAILS(EINVAL, CHECK_EQ(acp_erase_list(null).elem, ACP_GA_NULL));
	FAILS(EINVAL, CHECK_EQ(acp_erase_list(end).elem, ACP_GA_NULL));
	/* Ranges that do not end, or end in another list. */
	FAILS(EINVAL, acp_erase_range_list(place(m, 1), place(m, 0)));
	FAILS(EINVAL, acp_erase_range_list(place(m, 1), place(other, 0)));
	FAILS(EINVAL, acp_insert_range_list(end, place(other, 1), place(other, 0)));
	FAILS(EINVAL, acp_insert_range_list(end, place(m, 0), acp_end_list(other->at)));
	FAILS(EINVAL, acp_assign_range_list(m->at, place(other, 1), place(other, 0)));
	FAILS(EINVAL, acp_splice_range_list(end, place(other, 1), place(other, 0)));
	FAILS(EINVAL, acp_splice_range_list(end, place(other, 0), place(m, 0)));
	FAILS(EINVAL, acp_splice_range_list(place(m, 1), place(m, 0), end));
	FAILS(EINVAL, acp_splice_list(place(m, 1), acp_end_list(other->at)));
	FAILS(EINVAL, acp_splice_list(place(m, 1), null));
	FAILS(EINVAL, acp_splice_list(null, place(other, 0)));
	FAILS(EINVAL, acp_sort_list(m->at, NULL));
	FAILS(EINVAL, acp_merge_list(m->at, other->at, NULL));
	check_model(m);
	check_model(other);
	/* Erasing twice fails, as long as the memory is not reused. */
	erased = place(m, 1);
	FAILS(FINE, acp_erase_list(erased));
	model_erase(m, 1, 1);
	FAILS(EUCLEAN, CHECK_EQ(acp_erase_list(erased).elem, ACP_GA_NULL));
	check_model(m);
}

static void check_elements(const struct model *m)
{
	acp_element_t bad = { ACP_GA_NULL, 10 };
	uint64_t blocks = live();
	unsigned int i;

	FAILS(EFAULT, acp_push_back_list(m->at, bad, 0));
	for (i = 0; i < m->count && !m->elements[i].size; i++)
		;
	bad.size = i < m->count ? m->elements[i].size : 7;
	FAILS(i < m->count ? EFAULT : FINE, acp_remove_list(m->at, bad));
	bad.size = 10;
	bad.ga = stage_ga() + 2 * (acp_ga_t)STAGE - 5;
	FAILS(EFAULT, acp_push_front_list(m->at, bad, 0));
	FAILS(EFAULT, acp_insert_list(place(m, 1), bad, 0));
	bad.size = SIZE_MAX;
	FAILS(EOVERFLOW, acp_push_back_list(m->at, bad, 0));
	bad.size = SIZE_MAX / 2;
	FAILS(ENOMEM, acp_push_back_list(m->at, bad, 0));
	FAILS(EINVAL, CHECK_EQ(acp_create_list(-1).ga, ACP_GA_NULL));
	FAILS(EINVAL, CHECK_EQ(acp_create_list(acp_procs()).ga, ACP_GA_NULL));
	CHECK_EQ(live(), blocks);
	check_model(m);
}

/* A list whose words were overwritten is rejected by all functions that walk it. */
static void check_damaged(struct model *m)
{
	acp_ga_t middle = m->elements[m->count / 2].ga, word;
	uint64_t count = m->count - 1;

	memcpy(stage(), &count, 8);
	acp_complete(acp_copy(m->at.ga + 16, stage_ga(), 8, ACP_HANDLE_NULL));
	FAILS(EUCLEAN, acp_reverse_list(m->at));
	FAILS(EUCLEAN, acp_clear_list(m->at));
	count++;
	memcpy(stage(), &count, 8);
	acp_complete(acp_copy(m->at.ga + 16, stage_ga(), 8, ACP_HANDLE_NULL));
	/* A cycle. */
	word = fetch_word(middle);
	memcpy(stage(), &m->elements[0].ga, 8);
	acp_complete(acp_copy(middle, stage_ga(), 8, ACP_HANDLE_NULL));
	FAILS(EUCLEAN, acp_reverse_list(m->at));
	FAILS(EUCLEAN, acp_sort_list(m->at, compare));
	FAILS(EUCLEAN, acp_clear_list(m->at));
	FAILS(EUCLEAN, CHECK_EQ(acp_distance_list_it(place(m, 0), acp_end_list(m->at)), 0));
	memcpy(stage(), &word, 8);
	acp_complete(acp_copy(middle, stage_ga(), 8, ACP_HANDLE_NULL));
	check_model(m);
}

static void fill_models(const struct fake_acp *f)
{
	int i, j;

	begin_models(f);
	for (i = 0; i < LISTS; i++)
		for (j = 0; j < 8; j++)
			step_push(0, &models[i]);
}

static void play_bad_arguments(void *arg)
{
	fill_models(arg);
	if (!acp_rank()) {
		check_invalid((acp_list_t){ ACP_GA_NULL }, EINVAL);
		check_invalid((acp_list_t){ models[0].at.ga + 4 }, EINVAL);
		check_invalid((acp_list_t){ 8 }, EFAULT);
		memset(stage(), 0, 100);
		check_invalid((acp_list_t){ stage_ga() }, EUCLEAN);
		check_iterators(&models[0], &models[1]);
		check_elements(&models[0]);
		check_damaged(&models[2]);
		check_blocks();
	}
	rendezvous();
}

/* ---- Round trips ---- */

/* Round trips of operations on a list of rank 1, with elements there and local data. */
static void play_trips(void *arg)
{
	acp_element_t e = { stage_ga(), 100 };
	acp_list_t l, k;
	acp_list_it_t it;
	int i;

	(void)arg;
	if (acp_rank())
		return;
	l = acp_create_list(1);
	k = acp_create_list(1);
	for (i = 0; i < 10; i++) {
		acp_push_back_list(l, e, 1);
		acp_push_back_list(k, e, 1);
	}
	TRIPS(1, acp_size_list(l));
	TRIPS(1, it = acp_begin_list(l));
	TRIPS(1, it = acp_increment_list_it(it));
	TRIPS(4, it = acp_advance_list_it(it, 4));
	TRIPS(1, acp_dereference_list_it(it));
	TRIPS(2 + HEAP_TRIPS, acp_push_back_list(l, e, 1));
	TRIPS(3 + HEAP_TRIPS, acp_push_front_list(l, e, 1));
	TRIPS(2 + HEAP_TRIPS, acp_insert_list(it, e, 1));
	TRIPS(3 + HEAP_TRIPS, acp_pop_back_list(l));
	TRIPS(3 + HEAP_TRIPS, acp_pop_front_list(l));
	TRIPS(2 + HEAP_TRIPS, it = acp_erase_list(it));
	it.elem = acp_begin_list(l).elem;
	TRIPS(3, acp_splice_list(it, acp_begin_list(k)));
	TRIPS(2, acp_swap_list(l, k));
	TRIPS(2 + 12, acp_reverse_list(l));
	TRIPS(2 + 12, acp_sort_list(l, compare));
	TRIPS(2 + 12, acp_reverse_list(k));
	TRIPS(2 + 24, acp_merge_list(l, k, compare));
}

/* ---- Nodes that cannot be reached ---- */

/* An element that can be reached, between two that cannot: it does not move. */
static void check_neighbours(acp_list_t list)
{
	acp_element_t e = { stage_ga(), 8 };
	acp_list_it_t it;
	int i;

	for (i = 0; i < 3; i++)
		acp_push_back_list(list, e, i != 1);
	it = acp_increment_list_it(acp_begin_list(list));
	fake_cut(1, true);
	FAILS(ETIMEDOUT, CHECK_EQ(acp_erase_list(it).elem, ACP_GA_NULL));
	FAILS(ETIMEDOUT, acp_splice_list(acp_end_list(list), it));
	FAILS(ETIMEDOUT, acp_clear_list(list));
	fake_cut(1, false);
	FAILS(FINE, CHECK_EQ(acp_size_list(list), 3));
	FAILS(FINE, CHECK_EQ(acp_increment_list_it(acp_begin_list(list)).elem, it.elem));
	FAILS(FINE, acp_destroy_list(list));
}

static void play_cut(void *arg)
{
	struct model *m = &models[0], *lost = &models[1];
	acp_element_t e = { stage_ga(), 8 };

	fill_models(arg);
	fresh.rank = 0;
	rendezvous();
	if (!acp_rank()) {
		fake_cut(1, true);
		FAILS(ETIMEDOUT, CHECK_EQ(acp_size_list(lost->at), 0));
		FAILS(ETIMEDOUT, acp_push_back_list(lost->at, e, 0));
		FAILS(ETIMEDOUT, acp_clear_list(lost->at));
		FAILS(ETIMEDOUT, acp_destroy_list(lost->at));
		FAILS(ETIMEDOUT, acp_swap_list(lost->at, m->at));
		FAILS(ETIMEDOUT, acp_assign_list(m->at, lost->at));
		errno = FINE;
		acp_push_back_list(m->at, e, 1);
		CHECK(errno != FINE);
		FAILS(ETIMEDOUT, acp_push_back_list(m->at, (acp_element_t){
			acp_query_starter_ga(1), 10 }, 0));
		fake_cut(1, false);
		check_model(m);
		check_model(lost);
		check_blocks();
		check_neighbours(acp_create_list(0));
	}
	rendezvous();
	end_models();
}

/* ---- Lost ranks ---- */

static void wait_for_death(void)
{
	wait_for_the_end_of(1);
	usleep(100000);		/* its accesses in flight are executed now or never */
}

static bool has_lost(const struct model *m)
{
	unsigned int i;

	for (i = 0; i < m->count; i++)
		if (m->elements[i].rank == 1)
			return true;
	return m->rank == 1;
}

/* A step that walks no list afterwards. */
static int step_blind(void)
{
	struct model *m = &models[draw(LISTS)], *other = &models[draw(LISTS)];

	switch (draw(9)) {
	case 0:
		return step_insert(0, m);
	case 1:
		return step_pop(0, m);
	case 2:
		return step_erase(0, m);
	case 3:
		return step_erase_range(0, m);
	case 4:
		return step_splice(0, m, other);
	case 5:
		return step_swap(0, m, other);
	case 6:
		return step_remove(0, m);
	case 7:
		return draw(2) ? step_sort(0, m) : step_reverse(0, m);
	default:
		return step_merge(0, m, other);
	}
}

/* Rank 1 dies with lists and elements on it: calls that need them fail, and change nothing. */
static void play_elements_lost(void *arg)
{
	unsigned int i, n = steps(300), failures = 0;
	int err;

	fill_models(arg);
	rendezvous();
	play_alone = true;
	if (acp_rank() == 1)
		fake_die_at(0);
	wait_for_death();
	if (acp_rank())
		return;
	for (i = 0; i < n; i++) {
		err = step_blind();
		CHECK(err == 0 || err == EHOSTDOWN);
		failures += err != 0;
	}
	CHECK(failures || play_job.nodes == 1);
	for (i = 0; i < LISTS; i++) {
		if (!has_lost(&models[i]))
			check_model(&models[i]);
		else if (models[i].rank != 1)
			CHECK_EQ(acp_size_list(models[i].at), models[i].count);
	}
	CHECK_EQ(acpx_heap_check(0), 0);
	CHECK_EQ(acpx_heap_check(2), 0);
}

/* Calls on a damaged list return, and walk no further than its length. */
static void use_damaged(acp_list_t list)
{
	acp_list_it_t it = acp_begin_list(list), end = acp_end_list(list);
	size_t n = 0, size = acp_size_list(list);

	while (it.elem != end.elem && it.elem != ACP_GA_NULL && n++ < size)
		it = acp_increment_list_it(it);
	CHECK(acp_distance_list_it(acp_begin_list(list), end) <= (int)size);
	acp_reverse_list(list);
	acp_unique_list(list);
	acp_sort_list(list, compare);
	errno = FINE;
	acp_destroy_list(list);
	CHECK(errno == FINE || errno == EUCLEAN || errno == EINVAL || errno == EFAULT);
}

/* Rank 1 dies while it changes lists: these may be damaged, and nothing else. */
static void play_death(void *arg)
{
	struct model before[LISTS];
	int i;

	avoided = 1;
	fill_models(arg);
	rendezvous();
	play_alone = true;
	if (acp_rank() == 1) {
		play_state += 1000;
		fake_die_at(draw(400));
		for (;;)
			CHECK_EQ(step(1), 0);
	}
	wait_for_death();
	if (acp_rank() != 2)
		return;
	memcpy(before, models, sizeof(before));
	for (i = 0; i < LISTS; i++)
		create(2, &models[i], i % 2 * 2);
	for (i = 0; i < LISTS; i++)
		use_damaged(before[i].at);
	for (i = 0; i < 100; i++)
		CHECK_EQ(step(2), 0);
	for (i = 0; i < LISTS; i++) {
		check_model(&models[i]);
		FAILS(FINE, acp_destroy_list(models[i].at));
	}
	CHECK_EQ(acpx_heap_check(0), 0);
	CHECK_EQ(acpx_heap_check(2), 0);
}

static void play_deaths(int nodes, void (*body)(void *arg))
{
	unsigned int i, n = steps(6);

	for (i = 0; i < n; i++) {
		play_job = (struct fake_acp){
			.ranks = 3, .nodes = nodes, .starter_size = 2 * (uint64_t)STAGE,
			.speed = 100,
		};
		fake_run(&play_job, body, &play_job);
		CHECK_EQ(play_job.dead, 1);
	}
}

TEST(A2_list__random_steps__one_rank)
{
	play(1, 1, play_steps);
}

TEST(A2_list__random_steps__one_node)
{
	play(3, 1, play_steps);
}

TEST(A2_list__random_steps__three_nodes)
{
	play(3, 3, play_steps);
}

TEST(list__allocations_fail__one_rank)
{
	play(1, 1, play_exhaustion);
}

TEST(list__allocations_fail__one_node)
{
	play(3, 1, play_exhaustion);
}

TEST(list__allocations_fail__three_nodes)
{
	play(3, 3, play_exhaustion);
}

TEST(A2_list__bad_arguments__one_rank)
{
	play(1, 1, play_bad_arguments);
}

TEST(A2_list__bad_arguments__one_node)
{
	play(3, 1, play_bad_arguments);
}

TEST(A2_list__bad_arguments__three_nodes)
{
	play(3, 3, play_bad_arguments);
}

TEST(list__round_trips)
{
	play(2, 2, play_trips);
}

TEST(A2_list__node_out_of_reach)
{
	play(3, 3, play_cut);
}

TEST(A2_list__elements_lost__one_node)
{
	play_deaths(1, play_elements_lost);
}

TEST(A2_list__elements_lost__three_nodes)
{
	play_deaths(3, play_elements_lost);
}

TEST(A2_list__user_dies__one_node)
{
	play_deaths(1, play_death);
}

TEST(A2_list__user_dies__three_nodes)
{
	play_deaths(3, play_death);
}

TEST(list__not_a_rank)
{
	FAILS(ECANCELED, CHECK_EQ(acp_create_list(0).ga, ACP_GA_NULL));
	FAILS(ECANCELED, CHECK_EQ(acp_size_list((acp_list_t){ 4096 }), 0));
}

TEST(A2_list__many_steps__one_rank)
{
	play_many("lists", 1, 1, play_own_steps);
}

TEST(A2_list__many_steps__two_ranks)
{
	play_many("lists", 2, 1, play_own_steps);
}

TEST(A2_list__many_steps__three_nodes)
{
	play_many("lists", 3, 3, play_own_steps);
}

TEST_MAIN
