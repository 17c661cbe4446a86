/* SPDX-License-Identifier: MIT */
/*
 * Functions that sets, multisets and maps have in common; X selects one. Included by table_play.h
 * once for each.
 */
#define PLAY_JOIN(a, b, c)	a##b##c
#define PLAY_JOINED(a, b, c)	PLAY_JOIN(a, b, c)
#define PLAY(name)		PLAY_JOINED(X, _, name)
#define PUBLIC(name)		PLAY_JOINED(acp_##name, _, X)
#define TABLE			PLAY_JOINED(acp_, X, _t)
#define ITERATOR		PLAY_JOINED(acp_, X, _it_t)

static inline TABLE PLAY(to)(struct play_table t)
{
	TABLE there = { t.ga, t.num_ranks, t.num_slots };

	return there;
}

static inline ITERATOR PLAY(it)(struct play_it it)
{
	ITERATOR there = { PLAY(to)(it.table), it.rank, it.slot, it.elem };

	return there;
}

static inline struct play_it PLAY(own_it)(struct play_table t, ITERATOR it)
{
	return (struct play_it){ t, it.rank, it.slot, it.elem };
}

static inline struct play_table PLAY(create)(int n, const int *ranks, int slots, int rank)
{
	TABLE t = PUBLIC(create)(n, ranks, slots, rank);

	return (struct play_table){ t.ga, t.num_ranks, t.num_slots };
}

static inline void PLAY(destroy)(struct play_table t)
{
	PUBLIC(destroy)(PLAY(to)(t));
}

static inline void PLAY(clear)(struct play_table t)
{
	PUBLIC(clear)(PLAY(to)(t));
}

static inline void PLAY(clear_local)(struct play_table t)
{
	PUBLIC(clear_local)(PLAY(to)(t));
}

static inline size_t PLAY(size)(struct play_table t)
{
	return PUBLIC(size)(PLAY(to)(t));
}

static inline size_t PLAY(size_local)(struct play_table t)
{
	return PUBLIC(size_local)(PLAY(to)(t));
}

static inline int PLAY(empty)(struct play_table t)
{
	return PUBLIC(empty)(PLAY(to)(t));
}

static inline int PLAY(empty_local)(struct play_table t)
{
	return PUBLIC(empty_local)(PLAY(to)(t));
}

static inline void PLAY(assign)(struct play_table a, struct play_table b)
{
	PUBLIC(assign)(PLAY(to)(a), PLAY(to)(b));
}

static inline void PLAY(assign_local)(struct play_table a, struct play_table b)
{
	PUBLIC(assign_local)(PLAY(to)(a), PLAY(to)(b));
}

static inline void PLAY(merge)(struct play_table a, struct play_table b)
{
	PUBLIC(merge)(PLAY(to)(a), PLAY(to)(b));
}

static inline void PLAY(merge_local)(struct play_table a, struct play_table b)
{
	PUBLIC(merge_local)(PLAY(to)(a), PLAY(to)(b));
}

static inline void PLAY(move)(struct play_table a, struct play_table b)
{
	PUBLIC(move)(PLAY(to)(a), PLAY(to)(b));
}

static inline void PLAY(move_local)(struct play_table a, struct play_table b)
{
	PUBLIC(move_local)(PLAY(to)(a), PLAY(to)(b));
}

static inline void PLAY(swap)(struct play_table a, struct play_table b)
{
	PUBLIC(swap)(PLAY(to)(a), PLAY(to)(b));
}

static inline struct play_it PLAY(begin)(struct play_table t)
{
	return PLAY(own_it)(t, PUBLIC(begin)(PLAY(to)(t)));
}

static inline struct play_it PLAY(begin_local)(struct play_table t)
{
	return PLAY(own_it)(t, PUBLIC(begin_local)(PLAY(to)(t)));
}

static inline struct play_it PLAY(end)(struct play_table t)
{
	return PLAY(own_it)(t, PUBLIC(end)(PLAY(to)(t)));
}

static inline struct play_it PLAY(end_local)(struct play_table t)
{
	return PLAY(own_it)(t, PUBLIC(end_local)(PLAY(to)(t)));
}

static inline struct play_it PLAY(next)(struct play_it it)
{
	return PLAY(own_it)(it.table, PLAY_JOINED(acp_increment_, X, _it)(PLAY(it)(it)));
}

static inline struct play_it PLAY(find)(struct play_table t, acp_element_t key)
{
	return PLAY(own_it)(t, PUBLIC(find)(PLAY(to)(t), key));
}

static inline void PLAY(remove)(struct play_table t, acp_element_t key)
{
	PUBLIC(remove)(PLAY(to)(t), key);
}

#undef PLAY_JOIN
#undef PLAY_JOINED
#undef PLAY
#undef PUBLIC
#undef TABLE
#undef ITERATOR
