// SPDX-License-Identifier: MIT
/* The ring of a mailbox for ranks of the owner's node: see node_ring.h. */
#include <errno.h>
#include <string.h>

#include "mailbox/node_ring.h"

#define MARK		0xac1du		/* upper 16 bits of the word that says where the ring is */
#define OFFSET_BITS	40u		/* of the offset in lines */
#define LINE		64u		/* bytes of a cache line */
#define RECORD		LIBACP_RING_RECORD

_Static_assert(sizeof(struct libacp_node_ring) == 2 * LINE, "head and tail share no line");
_Static_assert(sizeof(struct libacp_ring_record) == 32, "multiple of 8");

static uint64_t *unit(struct libacp_node_ring *ring, uint64_t at)
{
	return (uint64_t *)(void *)(ring + 1) + at;
}

static uint64_t length_of(uint64_t size)
{
	return RECORD + size / 8 + (size % 8 != 0);
}

/* ---- The owner ---- */

void libacp_node_ring_open(struct libacp_ring_reader *r, struct acp_mailbox *box, uint64_t offset,
			   unsigned int bits)
{
	*r = (struct libacp_ring_reader){
		.ring = (struct libacp_node_ring *)(void *)((char *)box + offset),
		.units = (uint64_t)1 << bits,
	};
	memset(r->ring, 0, sizeof(*r->ring));
	__atomic_store_n((uint64_t *)(void *)&box->owner[LIBACP_OWNER_RING],
			 (uint64_t)MARK << 48 | (uint64_t)bits << OFFSET_BITS | offset / LINE,
			 __ATOMIC_RELEASE);
}

void libacp_node_ring_free(const struct libacp_ring_reader *r)
{
	const struct libacp_lent *first = r->lents.first;

	__atomic_store_n(&r->ring->head, first ? first->at : r->read, __ATOMIC_RELEASE);
}

/* Is there a record at the next position? Returns its length, 0 if there cannot be such a one. */
static uint64_t check(const struct libacp_ring_reader *r, uint64_t state, uint64_t used)
{
	const uint64_t room = r->units - (r->read & (r->units - 1));
	uint64_t length = length_of(state >> 2);

	if (state == ACP_RECORD_VOID)
		length = room;
	else if ((state & 3) != ACP_RECORD_READY)
		return 0;
	return length <= used && length <= room ? length : 0;
}

int libacp_node_ring_find(struct libacp_ring_reader *r, uint32_t ranks,
			  struct libacp_record *record, uint64_t *stamp)
{
	const volatile struct libacp_ring_record *seen;
	uint64_t used, state, length;

	if (!r->ring)
		return -EAGAIN;
	used = __atomic_load_n(&r->ring->tail, __ATOMIC_ACQUIRE) - r->read;
	if (used > r->units)
		return -EBADMSG;
	while (used) {
		seen = (void *)unit(r->ring, r->read & (r->units - 1));
		state = seen->record.state;
		length = check(r, state, used);
		if (!length)
			return -EBADMSG;
		if (state == ACP_RECORD_VOID) {
			r->read += length;
			used -= length;
			continue;
		}
		*stamp = seen->stamp;
		*record = (struct libacp_record){
			.at = r->read, .length = length, .size = state >> 2,
			.tag = seen->record.tag, .rank = seen->record.rank, .ring = true,
			.data = unit(r->ring, (r->read & (r->units - 1)) + RECORD),
		};
		return record->rank < ranks ? 0 : -EBADMSG;
	}
	return -EAGAIN;
}

void libacp_node_ring_pass(struct libacp_ring_reader *r, const struct libacp_record *record)
{
	r->read += record->length;
}

void libacp_node_ring_consume(struct libacp_ring_reader *r, const struct libacp_record *record)
{
	libacp_node_ring_pass(r, record);
	libacp_node_ring_free(r);
}

void libacp_node_ring_wait(const struct libacp_ring_reader *r, bool waits)
{
	if (!r->ring)
		return;
	__atomic_store_n(&r->ring->waits, waits, __ATOMIC_RELAXED);
	/* Before "tail" is read; pairs with the fence of the writer (libacp_watch_armed()). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Take the lock for @by. That of a rank that has left is taken over. */
static bool take_lock(struct libacp_node_ring *ring, uint64_t by, bool (*gone)(uint32_t rank))
{
	uint64_t holder = 0;

	if (__atomic_compare_exchange_n(&ring->lock, &holder, by, false, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED))
		return true;
	return holder <= UINT32_MAX && gone((uint32_t)(holder - 1)) &&
	       __atomic_compare_exchange_n(&ring->lock, &holder, by, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

bool libacp_node_ring_close(struct libacp_ring_reader *r, bool (*gone)(uint32_t rank))
{
	if (r->ring && !r->closed)
		r->closed = take_lock(r->ring, LIBACP_RING_CLOSED, gone);
	return !r->ring || r->closed;
}

bool libacp_node_ring_drained(const struct libacp_ring_reader *r)
{
	return !r->ring || (r->closed &&
			    __atomic_load_n(&r->ring->tail, __ATOMIC_ACQUIRE) == r->read);
}

/* ---- Writers ---- */

bool libacp_node_ring_of(const struct acp_mailbox *box, uint64_t *offset, unsigned int *bits)
{
	const uint64_t where = __atomic_load_n((const uint64_t *)(const void *)
					       &box->owner[LIBACP_OWNER_RING], __ATOMIC_ACQUIRE);

	*offset = (where & (((uint64_t)1 << OFFSET_BITS) - 1)) * LINE;
	*bits = where >> OFFSET_BITS & 0xff;
	return where >> 48 == MARK && *bits >= LIBACP_RING_BITS_MIN &&
	       *bits <= LIBACP_RING_BITS_MAX;
}

/*
 * What is the first record that kernels have not reserved yet? The lap is the same before and after
 * "room" is read, so it belongs to it. False if it is changing, or the mailbox is closed.
 */
static bool stamp_now(struct acp_mailbox *box, uint64_t *stamp)
{
	const uint64_t lap = __atomic_load_n(libacp_lap_word(box), __ATOMIC_ACQUIRE);
	const uint64_t room = __atomic_load_n((uint64_t *)(void *)&box->room, __ATOMIC_ACQUIRE);

	*stamp = lap / 2 << 32 | (uint32_t)room;
	return !(lap & 1) && room && __atomic_load_n(libacp_lap_word(box), __ATOMIC_RELAXED) == lap;
}

static void fill(struct libacp_ring_record *to, uint64_t stamp,
		 const struct libacp_ring_message *message)
{
	*to = (struct libacp_ring_record){
		.record = {
			.state = message->size << 2 | ACP_RECORD_READY, .tag = message->tag,
			.rank = message->rank,
		},
		.stamp = stamp,
	};
	if (message->size)
		memcpy(to + 1, message->data, message->size);
}

/* Lock held. */
static bool write_locked(struct acp_mailbox *box, struct libacp_node_ring *ring, uint64_t units,
			 const struct libacp_ring_message *message)
{
	const uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
	const uint64_t used = tail - __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	const uint64_t at = tail & (units - 1), length = length_of(message->size);
	const uint64_t skipped = at + length > units ? units - at : 0;
	uint64_t stamp;

	if (used > units || skipped + length > units - used || !stamp_now(box, &stamp))
		return false;
	if (skipped)
		*unit(ring, at) = ACP_RECORD_VOID;
	fill((struct libacp_ring_record *)(void *)unit(ring, skipped ? 0 : at), stamp, message);
	__atomic_store_n(&ring->tail, tail + skipped + length, __ATOMIC_RELEASE);
	return true;
}

bool libacp_node_ring_write(struct acp_mailbox *box, struct libacp_node_ring *ring,
			    unsigned int bits, const struct libacp_ring_message *message,
			    bool (*gone)(uint32_t rank))
{
	const uint64_t units = (uint64_t)1 << bits;
	bool written;

	/* One that is longer than half of the ring might not fit even if that is empty. */
	if (message->size > 8 * (units / 2 - RECORD) ||
	    !take_lock(ring, (uint64_t)message->rank + 1, gone))
		return false;
	written = write_locked(box, ring, units, message);
	__atomic_store_n(&ring->lock, 0, __ATOMIC_RELEASE);
	return written;
}
