// SPDX-License-Identifier: MIT
/* Operations of vectors and deques: checks of arguments, and errno. */
#include <errno.h>

#include "containers/sequence.h"

/* ---- Operations ---- */

/*
 * One or two containers of the same kind, with their headers. If there is no error, end() must be
 * called.
 */
struct operation {
	struct libacp_round round;
	struct libacp_bytes b[2];
	int err;
};

static void begin(struct operation *o, enum libacp_bytes_kind kind, acp_ga_t ga, acp_ga_t other)
{
	o->err = libacp_round_begin(&o->round);
	if (o->err)
		return;
	o->b[0] = (struct libacp_bytes){ .kind = kind, .ga = ga };
	o->b[1] = (struct libacp_bytes){ .kind = kind, .ga = other };
	o->err = libacp_bytes_load(&o->round, o->b, ga == other ? 1 : 2);
	if (ga == other)
		o->b[1] = o->b[0];
	if (o->err)
		libacp_round_end(&o->round);
}

static void end(struct operation *o, int err)
{
	libacp_round_end(&o->round);
	o->err = err;
}

static bool good(int err)
{
	if (err)
		errno = -err;
	return !err;
}

/* True if [start, end) is a range of its bytes. */
static bool has_range(const struct libacp_bytes *b, int64_t start, int64_t end)
{
	return start >= 0 && start <= end && (uint64_t)end <= b->size;
}

/* Return bytes [start, end), which must exist. */
static acp_pair_t range_of(const struct libacp_bytes *b, int start, int end)
{
	return libacp_bytes_pieces(b, (uint64_t)start, (uint64_t)end - (uint64_t)start);
}

/* ---- Whole containers ---- */

bool libacp_sequence_create(enum libacp_bytes_kind kind, size_t size, int rank, acp_ga_t *ga)
{
	struct libacp_round r;
	int err = libacp_round_begin(&r);

	*ga = ACP_GA_NULL;
	if (err)
		return good(err);
	err = libacp_bytes_create(&r, kind, size, rank, ga);
	libacp_round_end(&r);
	return good(err);
}

bool libacp_sequence_destroy(enum libacp_bytes_kind kind, acp_ga_t ga)
{
	struct operation o;

	begin(&o, kind, ga, ga);
	if (!o.err)
		end(&o, libacp_bytes_destroy(&o.round, o.b));
	return good(o.err);
}

bool libacp_sequence_load(enum libacp_bytes_kind kind, acp_ga_t ga, struct libacp_bytes *b)
{
	struct operation o;

	begin(&o, kind, ga, ga);
	if (!o.err)
		end(&o, 0);
	*b = o.err ? (struct libacp_bytes){ .kind = kind } : o.b[0];
	return good(o.err);
}

bool libacp_sequence_reserve(enum libacp_bytes_kind kind, acp_ga_t ga, size_t capacity)
{
	struct operation o;

	begin(&o, kind, ga, ga);
	if (!o.err)
		end(&o, libacp_bytes_reserve(&o.round, o.b, capacity));
	return good(o.err);
}

bool libacp_sequence_swap(enum libacp_bytes_kind kind, acp_ga_t ga, acp_ga_t other)
{
	struct operation o;

	begin(&o, kind, ga, other);
	if (!o.err)
		end(&o, libacp_bytes_swap(&o.round, &o.b[0], &o.b[1]));
	return good(o.err);
}

/* ---- Inserting ---- */

static int insert(struct operation *o, int64_t index, acp_pair_t source)
{
	if (index == LIBACP_SEQUENCE_BACK)
		index = (int64_t)o->b->size;
	if (!has_range(o->b, index, index))
		return -EINVAL;
	return libacp_bytes_insert(&o->round, o->b, (uint64_t)index, source);
}

bool libacp_sequence_insert(enum libacp_bytes_kind kind, acp_ga_t ga, int64_t index,
			    acp_ga_t source, size_t size)
{
	struct operation o;

	begin(&o, kind, ga, ga);
	if (!o.err)
		end(&o, insert(&o, index, (acp_pair_t){ { source, size }, { source, 0 } }));
	return good(o.err);
}

bool libacp_sequence_insert_range(enum libacp_bytes_kind kind, acp_ga_t ga, int64_t index,
				  acp_ga_t other, int start, int end_index)
{
	struct operation o;

	begin(&o, kind, ga, other);
	if (!o.err)
		end(&o, has_range(&o.b[1], start, end_index) ?
			insert(&o, index, range_of(&o.b[1], start, end_index)) : -EINVAL);
	return good(o.err);
}

/* ---- Removing ---- */

static int erase(struct operation *o, int64_t index, size_t size)
{
	if (!has_range(o->b, index, index))
		return -EINVAL;
	if (size > o->b->size - (uint64_t)index)
		size = o->b->size - (uint64_t)index;
	return libacp_bytes_erase(&o->round, o->b, (uint64_t)index, size);
}

bool libacp_sequence_erase(enum libacp_bytes_kind kind, acp_ga_t ga, int64_t index, size_t size)
{
	struct operation o;

	begin(&o, kind, ga, ga);
	if (!o.err)
		end(&o, erase(&o, index, size));
	return good(o.err);
}

bool libacp_sequence_erase_range(enum libacp_bytes_kind kind, acp_ga_t ga, int start,
				 int end_index)
{
	struct operation o;

	begin(&o, kind, ga, ga);
	if (!o.err)
		end(&o, has_range(o.b, start, end_index) ?
			erase(&o, start, (size_t)end_index - (size_t)start) : -EINVAL);
	return good(o.err);
}

bool libacp_sequence_pop_back(enum libacp_bytes_kind kind, acp_ga_t ga, size_t size)
{
	struct operation o;

	begin(&o, kind, ga, ga);
	if (!o.err)
		end(&o, erase(&o, size < o.b->size ? (int64_t)(o.b->size - size) : 0, size));
	return good(o.err);
}

/* ---- Replacing contents ---- */

static int assign(struct operation *o)
{
	if (o->b[0].ga == o->b[1].ga)
		return 0;
	return libacp_bytes_assign(&o->round, &o->b[0],
				   libacp_bytes_pieces(&o->b[1], 0, o->b[1].size));
}

bool libacp_sequence_assign(enum libacp_bytes_kind kind, acp_ga_t ga, acp_ga_t other)
{
	struct operation o;

	begin(&o, kind, ga, other);
	if (!o.err)
		end(&o, assign(&o));
	return good(o.err);
}

static int assign_range(struct operation *o, int start, int end_index)
{
	if (!has_range(&o->b[1], start, end_index))
		return -EINVAL;
	if (o->b[0].ga != o->b[1].ga)
		return libacp_bytes_assign(&o->round, &o->b[0],
					   range_of(&o->b[1], start, end_index));
	return libacp_bytes_keep(&o->round, o->b, (uint64_t)start,
				 (uint64_t)end_index - (uint64_t)start);
}

bool libacp_sequence_assign_range(enum libacp_bytes_kind kind, acp_ga_t ga, acp_ga_t other,
				  int start, int end_index)
{
	struct operation o;

	begin(&o, kind, ga, other);
	if (!o.err)
		end(&o, assign_range(&o, start, end_index));
	return good(o.err);
}

/* ---- Indices ---- */

bool libacp_sequence_advance(int *index, int n)
{
	return good(__builtin_add_overflow(*index, n, index) ? -EOVERFLOW : 0);
}

bool libacp_sequence_distance(int first, int last, int *distance)
{
	return good(__builtin_sub_overflow(last, first, distance) ? -EOVERFLOW : 0);
}
