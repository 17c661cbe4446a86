// SPDX-License-Identifier: MIT
/*
 * Common parts of vectors and deques.
 *
 * A change is prepared as a second header. Its data is written to memory that is not in use (behind
 * the end, or in a new block), and the header is written last, in the same round. If anything fails
 * meanwhile, the previous header is restored. Only an insertion in the middle moves data in use
 * first, and moves it back if the source of the new bytes cannot be read.
 */
#include <errno.h>

#include "containers/bytes.h"

#define HEADER_MAX	4u	/* words */

/*
 * Bytes that move to overlapping higher addresses are moved in pieces that do not overlap, one
 * after the other, the last one first. From this number of pieces on, a new block is faster.
 */
#define PIECES_MANY	5u

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- Headers ---- */

static unsigned int header_words(enum libacp_bytes_kind kind)
{
	return kind == LIBACP_VECTOR ? 3 : 4;
}

static void to_words(const struct libacp_bytes *b, uint64_t words[HEADER_MAX])
{
	unsigned int n = 0;

	words[n++] = b->data;
	if (b->kind == LIBACP_DEQUE)
		words[n++] = b->first;
	words[n++] = b->size;
	words[n] = b->capacity;
}

/* Parse words as a header. Returns 0 or -EUCLEAN. */
static int from_words(struct libacp_bytes *b, const uint64_t *words)
{
	unsigned int n = 0;

	b->data = words[n++];
	b->first = b->kind == LIBACP_DEQUE ? words[n++] : 0;
	b->size = words[n++];
	b->capacity = words[n];
	if (b->capacity > LIBACP_BYTES_MAX || b->size > b->capacity)
		return -EUCLEAN;
	if (b->first && b->first >= b->capacity)
		return -EUCLEAN;
	if ((b->data == ACP_GA_NULL) != (b->capacity == 0))
		return -EUCLEAN;
	if (b->data != ACP_GA_NULL && acp_query_rank(b->data) != acp_query_rank(b->ga))
		return -EUCLEAN;
	return 0;
}

int libacp_bytes_load(struct libacp_round *r, struct libacp_bytes *b, unsigned int count)
{
	const uint64_t *words[2];
	unsigned int i;
	int err;

	for (i = 0; i < count; i++) {
		if (b[i].ga == ACP_GA_NULL || b[i].ga % sizeof(uint64_t))
			return -EINVAL;
		words[i] = libacp_round_read(r, b[i].ga, header_words(b[i].kind));
	}
	err = libacp_round_wait(r);
	for (i = 0; i < count && !err; i++)
		err = from_words(&b[i], words[i]);
	return err;
}

/*
 * List the words of a header that change (all if @former is NULL), without gaps. Returns their
 * number.
 */
static unsigned int header_stores(const struct libacp_bytes *former, const struct libacp_bytes *b,
				  struct libacp_word stores[HEADER_MAX])
{
	unsigned int first = 0, end = header_words(b->kind), i;
	uint64_t old[HEADER_MAX] = { 0 }, new[HEADER_MAX];

	to_words(b, new);
	if (former) {
		to_words(former, old);
		while (end > first && old[end - 1] == new[end - 1])
			end--;
		while (first < end && old[first] == new[first])
			first++;
	}
	for (i = first; i < end; i++)
		stores[i - first] = (struct libacp_word){
			.ga = b->ga + i * sizeof(uint64_t), .former = old[i], .value = new[i],
		};
	return end - first;
}

/*
 * Write headers after the data in flight, and wait. On failure the previous headers are restored.
 * *lost: even that failed, and the headers are undefined.
 */
static int commit(struct libacp_round *r, const struct libacp_bytes *former,
		  const struct libacp_bytes *b, unsigned int count, bool *lost)
{
	struct libacp_word stores[2 * HEADER_MAX];
	unsigned int i, n = 0;
	int err;

	for (i = 0; i < count; i++)
		n += header_stores(&former[i], &b[i], &stores[n]);
	libacp_round_store(r, stores, n, true);
	err = libacp_round_wait(r);
	*lost = err && !libacp_round_undo(r, stores, n);
	return err;
}

/* ---- Moving bytes ---- */

acp_pair_t libacp_bytes_pieces(const struct libacp_bytes *b, uint64_t at, uint64_t size)
{
	acp_pair_t p = { { b->data, 0 }, { b->data, 0 } };
	uint64_t offset = b->first + at;

	if (!size)
		return p;
	if (offset >= b->capacity)
		offset -= b->capacity;
	p.first.ga = b->data + offset;
	p.first.size = least(size, b->capacity - offset);
	p.second.size = size - p.first.size;
	return p;
}

/* Remove bytes from the front of a pair. */
static void skip(acp_pair_t *p, uint64_t size)
{
	p->first.ga += size;
	p->first.size -= size;
	if (!p->first.size) {
		p->first = p->second;
		p->second.size = 0;
	}
}

/* Copy all bytes of the source, after the accesses in flight or without order. */
static void copy(struct libacp_round *r, acp_pair_t target, acp_pair_t source, bool order)
{
	uint64_t n;

	if (!source.first.size)
		skip(&source, 0);
	while (source.first.size) {
		n = least(target.first.size, source.first.size);
		if (order)
			libacp_round_then(r, target.first.ga, source.first.ga, n);
		else
			libacp_round_copy(r, target.first.ga, source.first.ga, n);
		skip(&target, n);
		skip(&source, n);
	}
}

/* Return one piece as a pair. */
static acp_pair_t block(acp_ga_t ga, uint64_t size)
{
	return (acp_pair_t){ { ga, size }, { ga, 0 } };
}

static uint64_t pair_size(acp_pair_t p)
{
	return p.first.size + p.second.size;
}

/* True if the piece overlaps the block of b. */
static bool inside(const struct libacp_bytes *b, acp_element_t piece)
{
	if (!piece.size || b->data == ACP_GA_NULL)
		return false;
	if (piece.ga < b->data)
		return b->data - piece.ga < piece.size;
	return piece.ga - b->data < b->capacity;
}

/* Move bytes of the ring to a lower offset, the first ones first. */
static void move_down(struct libacp_round *r, const struct libacp_bytes *b, uint64_t to,
		      uint64_t from, uint64_t size)
{
	uint64_t n;

	for (; size; size -= n) {
		n = least(size, b->capacity - (to > from ? to : from));
		libacp_round_move(r, b->data + to, b->data + from, n);
		to = (to + n) % b->capacity;
		from = (from + n) % b->capacity;
	}
}

/*
 * Return the longest piece that can be moved up by @distance in one access. acp_copy() handles
 * overlap like memmove(), but only if the pages are adjacent for whoever copies: they are for the
 * process of the owner, but not always for the kernel.
 */
static uint64_t up_max(const struct libacp_bytes *b, uint64_t distance)
{
	return acp_query_address(b->data) ? LIBACP_BYTES_MAX : distance;
}

static bool many_pieces(const struct libacp_bytes *b, uint64_t distance, uint64_t size)
{
	return size / up_max(b, distance) >= PIECES_MANY;
}

/* Move bytes of the ring to a higher offset, the last ones first. */
static void move_up(struct libacp_round *r, const struct libacp_bytes *b, uint64_t from,
		    uint64_t distance, uint64_t size)
{
	uint64_t most = up_max(b, distance), from_end, to_end, n;

	for (; size; size -= n) {
		from_end = (from + size - 1) % b->capacity + 1;
		to_end = (from + distance + size - 1) % b->capacity + 1;
		n = least(least(size, most), least(from_end, to_end));
		libacp_round_move(r, b->data + to_end - n, b->data + from_end - n, n);
	}
}

/* ---- Blocks ---- */

static uint64_t round_up(uint64_t size)
{
	return (size + 7) & ~(uint64_t)7;
}

/* Allocate a block of at least @capacity for b, in the heap of its rank. */
static int allocate(struct libacp_bytes *b, uint64_t capacity)
{
	b->first = 0;
	b->capacity = round_up(capacity);
	b->data = ACP_GA_NULL;
	if (!b->capacity)
		return 0;
	return libacp_round_allocate(b->capacity, acp_query_rank(b->ga), &b->data);
}

static void release(acp_ga_t data)
{
	if (data != ACP_GA_NULL)
		acpx_free(data);
}

/* Grow by half, so that appending n bytes one by one moves at most 3n bytes. */
static int allocate_roomy(struct libacp_bytes *b, uint64_t capacity, uint64_t former)
{
	uint64_t roomy = least(former + former / 2, LIBACP_BYTES_MAX);
	int err;

	if (roomy > capacity) {
		err = allocate(b, roomy);
		if (err != -ENOMEM)
			return err;
	}
	return allocate(b, capacity);
}

/*
 * Copy the contents to the new block of @new, with the source inserted at @at, then free the
 * previous block.
 */
static int relocate(struct libacp_round *r, const struct libacp_bytes *b, struct libacp_bytes *new,
		    uint64_t at, acp_pair_t source)
{
	uint64_t size = pair_size(source), rest = b->size - at;
	bool lost;
	int err;

	new->size = b->size + size;
	copy(r, block(new->data, at), libacp_bytes_pieces(b, 0, at), false);
	copy(r, block(new->data + at, size), source, false);
	copy(r, block(new->data + at + size, rest), libacp_bytes_pieces(b, at, rest), false);
	err = commit(r, b, new, 1, &lost);
	if (!lost)
		release(err ? new->data : b->data);
	return err;
}

int libacp_bytes_create(struct libacp_round *r, enum libacp_bytes_kind kind, uint64_t size,
			int rank, acp_ga_t *ga)
{
	struct libacp_bytes b = { .kind = kind };
	struct libacp_word words[HEADER_MAX];
	int err;

	if (size > LIBACP_BYTES_MAX)
		return -EOVERFLOW;
	err = libacp_round_allocate(header_words(kind) * sizeof(uint64_t), rank, &b.ga);
	if (err)
		return err;
	err = allocate(&b, size);
	if (!err) {
		b.size = kind == LIBACP_VECTOR ? size : 0;
		libacp_round_store(r, words, header_stores(NULL, &b, words), false);
		err = libacp_round_wait(r);
		if (err)
			release(b.data);
	}
	if (err)
		acpx_free(b.ga);
	*ga = err ? ACP_GA_NULL : b.ga;
	return err;
}

int libacp_bytes_destroy(struct libacp_round *r, const struct libacp_bytes *b)
{
	struct libacp_bytes none = { .kind = b->kind, .ga = b->ga };
	bool lost;
	int err, freed;

	/* So that later uses do not find the data. */
	err = commit(r, b, &none, 1, &lost);
	if (err)
		return err;
	err = b->data == ACP_GA_NULL ? 0 : acpx_free(b->data);
	freed = acpx_free(b->ga);
	return err ? err : freed;
}

int libacp_bytes_reserve(struct libacp_round *r, const struct libacp_bytes *b, uint64_t capacity)
{
	struct libacp_bytes new = *b;
	int err;

	if (capacity <= b->capacity)
		return 0;
	if (capacity > LIBACP_BYTES_MAX)
		return -EOVERFLOW;
	err = allocate(&new, capacity);
	return err ? err : relocate(r, b, &new, b->size, block(ACP_GA_NULL, 0));
}

/* ---- Inserting ---- */

/* True if moving the bytes before @at down is shorter than moving those behind up. */
static bool front_is_shorter(const struct libacp_bytes *b, uint64_t at, uint64_t end)
{
	return b->kind == LIBACP_DEQUE && at < b->size - end;
}

static int insert_here(struct libacp_round *r, const struct libacp_bytes *b, uint64_t at,
		       acp_pair_t source)
{
	uint64_t size = pair_size(source), offset = b->capacity ? (b->first + at) % b->capacity : 0;
	bool front = front_is_shorter(b, at, at), lost;
	struct libacp_bytes new = *b;
	unsigned int moves;
	int err;

	new.size += size;
	if (front) {
		new.first = (b->first + b->capacity - size) % b->capacity;
		move_down(r, b, new.first, b->first, at);
	} else {
		move_up(r, b, offset, size, b->size - at);
	}
	moves = r->issued;
	copy(r, libacp_bytes_pieces(&new, at, size), source, moves);
	err = commit(r, b, &new, 1, &lost);
	if (!err || lost || !moves || r->failed < moves)
		return err;
	/* The moves have completed: move the bytes back. */
	if (front)
		move_up(r, b, new.first, size, at);
	else
		move_down(r, b, offset, (offset + size) % b->capacity, b->size - at);
	libacp_round_wait(r);
	return err;
}

int libacp_bytes_insert(struct libacp_round *r, const struct libacp_bytes *b, uint64_t at,
			acp_pair_t source)
{
	uint64_t size = pair_size(source), behind = b->size - at;
	struct libacp_bytes new = *b;
	bool fits, moves, slow, mixed;
	int err;

	if (!size)
		return 0;
	if (size < source.first.size || size > LIBACP_BYTES_MAX - b->size)
		return -EOVERFLOW;
	fits = size <= b->capacity - b->size;
	moves = at < b->size && !(b->kind == LIBACP_DEQUE && !at);
	slow = moves && !front_is_shorter(b, at, at) && many_pieces(b, size, behind);
	mixed = moves && (inside(b, source.first) || inside(b, source.second));
	if (fits && !slow && !mixed)
		return insert_here(r, b, at, source);
	err = fits ? allocate(&new, b->capacity) :
		     allocate_roomy(&new, b->size + size, b->capacity);
	if (!err)
		return relocate(r, b, &new, at, source);
	return fits && !mixed && err == -ENOMEM ? insert_here(r, b, at, source) : err;
}

/* ---- Removing ---- */

int libacp_bytes_erase(struct libacp_round *r, const struct libacp_bytes *b, uint64_t at,
		       uint64_t size)
{
	uint64_t end = at + size, rest = b->size - end;
	struct libacp_bytes new = *b;
	bool lost;

	if (!size)
		return 0;
	new.size -= size;
	if (!new.size) {
		new.first = 0;
	} else if (front_is_shorter(b, at, end) && !many_pieces(b, size, at)) {
		new.first = (b->first + size) % b->capacity;
		move_up(r, b, b->first, size, at);
	} else {
		move_down(r, b, (b->first + at) % b->capacity, (b->first + end) % b->capacity,
			  rest);
	}
	return commit(r, b, &new, 1, &lost);
}

int libacp_bytes_keep(struct libacp_round *r, const struct libacp_bytes *b, uint64_t at,
		      uint64_t size)
{
	struct libacp_bytes new = *b;
	bool lost;

	new.size = size;
	if (!size)
		new.first = 0;
	else if (b->kind == LIBACP_DEQUE)
		new.first = (b->first + at) % b->capacity;
	else if (at)
		move_down(r, b, 0, at, size);
	return commit(r, b, &new, 1, &lost);
}

/* ---- Whole contents ---- */

int libacp_bytes_assign(struct libacp_round *r, const struct libacp_bytes *b, acp_pair_t source)
{
	struct libacp_bytes new = *b;
	bool lost;
	int err;

	new.first = 0;
	new.size = pair_size(source);
	if (new.size > b->capacity) {
		err = allocate(&new, new.size);
		if (err)
			return err;
	}
	copy(r, block(new.data, new.size), source, false);
	err = commit(r, b, &new, 1, &lost);
	if (!lost && new.data != b->data)
		release(err ? new.data : b->data);
	return err;
}

/* Between ranks: copy to new blocks on both, so that nothing is lost on failure. */
static int swap_ranks(struct libacp_round *r, const struct libacp_bytes former[2])
{
	struct libacp_bytes new[2] = { former[0], former[1] };
	bool lost = false;
	int i, err;

	new[0].size = former[1].size;
	new[1].size = former[0].size;
	err = allocate(&new[0], new[0].size);
	if (err)
		return err;
	err = allocate(&new[1], new[1].size);
	if (!err) {
		for (i = 0; i < 2; i++)
			copy(r, block(new[i].data, new[i].size),
			     libacp_bytes_pieces(&former[!i], 0, new[i].size), false);
		err = commit(r, former, new, 2, &lost);
	}
	for (i = 0; i < 2 && !lost; i++)
		release(err ? new[i].data : former[i].data);
	return err;
}

/*
 * On one rank: exchange the headers. Temporarily one of them has no data: if the caller dies
 * meanwhile, that data is lost, but no data has two owners.
 */
static int swap_headers(struct libacp_round *r, const struct libacp_bytes former[2])
{
	struct libacp_bytes new[2] = { former[1], former[0] };
	struct libacp_bytes none = { .kind = former[0].kind, .ga = former[0].ga };
	struct libacp_word words[HEADER_MAX];
	unsigned int i;
	bool lost;
	int err;

	new[0].ga = former[0].ga;
	new[1].ga = former[1].ga;
	libacp_round_store(r, words, header_stores(&former[0], &none, words), true);
	libacp_round_store(r, words, header_stores(&former[1], &new[1], words), true);
	err = commit(r, &none, &new[0], 1, &lost);
	if (!err || lost)
		return err;
	for (i = 0; i < 2; i++)
		libacp_round_store(r, words, header_stores(NULL, &former[i], words), false);
	libacp_round_wait(r);
	return err;
}

int libacp_bytes_swap(struct libacp_round *r, const struct libacp_bytes *a,
		      const struct libacp_bytes *b)
{
	const struct libacp_bytes former[2] = { *a, *b };

	if (a->ga == b->ga)
		return 0;
	return acp_query_rank(a->ga) == acp_query_rank(b->ga) ? swap_headers(r, former) :
								 swap_ranks(r, former);
}
