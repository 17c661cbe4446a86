// SPDX-License-Identifier: MIT
/*
 * Mailboxes: messages of any number of ranks, received by their owner. Senders' kernels put them
 * there (ACP_OP_SEND), or ranks of the owner's node themselves; area.h describes what the owner
 * does.
 *
 * The lock of a mailbox is not held while a thread waits, or receives a long message. A thread that
 * sleeps watches the state of the record that it would receive. If another thread receives that
 * record, it wakes the sleepers, which then watch the next one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/event.h"
#include "core/internal.h"
#include "core/process.h"
#include "core/wait_until.h"
#include "core/watch.h"
#include "mailbox/area.h"
#include "mailbox/memory.h"

#define COPY_LOCKED	4096u		/* bytes; longer messages are copied without the lock */
#define NS_PER_MS	1000000u
#define FREE_TIMEOUTS	2u		/* of the job, until a mailbox cannot be freed */

struct acpx_mailbox {
	pthread_mutex_t lock;		/* guards all below */
	struct libacp_area area;
	unsigned int waiters;		/* threads that have found no message, and wait */
	unsigned int sleepers;		/* those of them that sleep, or are about to */
	struct libacp_memory memory;	/* constant; of the mailbox */
};

/* What a thread wants of the next message. */
struct request {
	struct acpx_mailbox *box;
	int64_t (*take)(struct request *r, const struct libacp_record *record);
	void *buffer;
	size_t room;
	struct acpx_message *message;
	struct libacp_lent *lent;	/* to be used if the message is lent */
	bool last;			/* it does not wait */
	bool waits, asleep;		/* it is one of the waiters, of the sleepers */
};

/* ---- Access to a mailbox ---- */

/* Return 0 or -errno; leave() must follow if it is 0. */
static int enter(const struct acpx_mailbox *box)
{
	return box ? libacp_memory_enter(&box->memory) : -EINVAL;
}

static void leave(void)
{
	libacp_watch_leave();
}

/*
 * Unlock. Other threads that sleep, or poll(), look again if the word that they watch is no longer
 * the one.
 */
static void unlock(struct acpx_mailbox *box, const void *word, unsigned int own)
{
	const bool wakes = libacp_area_word(&box->area) != word &&
			   (box->sleepers > own || libacp_watch_is_polled());

	pthread_mutex_unlock(&box->lock);
	if (wakes)
		libacp_watch_wake_rank(libacp.rank);
}

/* Zero and return a record. It is unlocked meanwhile, and nobody else returns it. */
static void give_back(struct acpx_mailbox *box, struct libacp_lent *lent)
{
	const void *word;

	libacp_area_clear(&box->area, lent);
	pthread_mutex_lock(&box->lock);
	word = libacp_area_word(&box->area);
	/* Threads that sleep, or poll(), have offered all room that there was. */
	libacp_area_return(&box->area, lent, box->sleepers || libacp_watch_is_polled());
	unlock(box, word, 0);
}

/* ---- Receiving ---- */

/* Look for a message; of type libacp_find_t. */
static int64_t find(void *arg, bool sleeps, const void **word)
{
	struct request *r = arg;
	struct acpx_mailbox *box = r->box;
	struct libacp_record record;
	const void *former;
	int64_t found;

	pthread_mutex_lock(&box->lock);
	if (sleeps && !r->asleep) {
		box->sleepers++;
		r->asleep = true;
	}
	if (sleeps)
		libacp_area_wait(&box->area, true);
	former = libacp_area_word(&box->area);
	found = libacp_area_find(&box->area, sleeps || r->last, &record);
	if (!found) {
		if (r->message)
			*r->message = (struct acpx_message){
				.data = record.data,
				.size = record.size, .tag = record.tag, .rank = (int)record.rank,
			};
		found = r->take(r, &record);
	} else if (found == -EAGAIN && !r->last && !r->waits) {
		box->waiters++;
		r->waits = true;
	}
	*word = libacp_area_word(&box->area);
	unlock(box, former, r->asleep);
	return found;
}

/* Wait for a message; the caller has entered. */
static int64_t wait_for(struct request *r, uint64_t timeout_ns)
{
	const void *word;
	int64_t found;

	r->last = !timeout_ns;
	found = find(r, false, &word);
	if (found != -EAGAIN || r->last)
		return found == -EAGAIN ? -ETIMEDOUT : found;
	found = libacp_watch_find(find, r, timeout_ns);
	pthread_mutex_lock(&r->box->lock);
	r->box->waiters--;
	r->box->sleepers -= r->asleep;
	if (!r->box->sleepers && !libacp_watch_is_polled())
		libacp_area_wait(&r->box->area, false);
	pthread_mutex_unlock(&r->box->lock);
	return found;
}

static int64_t receive(struct request *r, uint64_t timeout_ns)
{
	int64_t found = enter(r->box);

	if (found)
		return found;
	found = wait_for(r, timeout_ns);
	leave();
	return found;
}

static int64_t take(struct request *r, const struct libacp_record *record)
{
	struct libacp_area *a = &r->box->area;

	if (record->size > r->room)
		return -EMSGSIZE;
	if (record->size > COPY_LOCKED) {
		libacp_area_lend(a, record, r->lent);
		r->lent->taken = true;
	} else {
		if (record->size)
			memcpy(r->buffer, record->data, record->size);
		libacp_area_consume(a, record);
	}
	return (int64_t)record->size;
}

int64_t acpx_recv(acpx_mailbox_t mailbox, void *buffer, size_t room, struct acpx_message *message,
		  uint64_t timeout_ns)
{
	struct libacp_lent lent;
	struct request r = {
		.box = mailbox, .take = take, .buffer = buffer, .room = room, .message = message,
		.lent = &lent,
	};
	int64_t found;

	if (!buffer && room)
		return -EINVAL;
	found = enter(mailbox);
	if (found)
		return found;
	found = wait_for(&r, timeout_ns);
	if (found > COPY_LOCKED) {
		memcpy(buffer, lent.data, (size_t)found);
		give_back(mailbox, &lent);
	}
	leave();
	if (found >= 0 && message)
		message->data = buffer;
	return found;
}

static int64_t peek(struct request *r, const struct libacp_record *record)
{
	const size_t size = record->size < r->room ? record->size : r->room;

	if (size)
		memcpy(r->buffer, record->data, size);
	return (int64_t)record->size;
}

int64_t acpx_peek(acpx_mailbox_t mailbox, void *buffer, size_t room, struct acpx_message *message,
		  uint64_t timeout_ns)
{
	struct request r = {
		.box = mailbox, .take = peek, .buffer = buffer, .room = room, .message = message,
	};

	return buffer || !room ? receive(&r, timeout_ns) : -EINVAL;
}

static int64_t probe(struct request *r, const struct libacp_record *record)
{
	(void)r;
	(void)record;
	return 0;
}

int acpx_probe(acpx_mailbox_t mailbox, struct acpx_message *message, uint64_t timeout_ns)
{
	struct request r = { .box = mailbox, .take = probe, .message = message };

	return (int)receive(&r, timeout_ns);
}

/* ---- poll() ---- */

/* Is there a message? Of type libacp_find_t. */
static int64_t find_polled(void *arg, bool sleeps, const void **word)
{
	struct acpx_mailbox *box = arg;
	struct libacp_record record;
	const void *former;
	int64_t found;

	pthread_mutex_lock(&box->lock);
	libacp_area_wait(&box->area, true);
	former = libacp_area_word(&box->area);
	found = libacp_area_find(&box->area, sleeps, &record);
	*word = libacp_area_word(&box->area);
	unlock(box, former, 0);
	return found;
}

/* May these mailboxes be used? The caller has entered. Returns 0 or -errno. */
static int check_all(const acpx_mailbox_t *mailboxes, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (!mailboxes || !mailboxes[i])
			return -EINVAL;
		if (mailboxes[i]->memory.joined != libacp.joins)
			return -ENOTCONN;
	}
	return 0;
}

int acpx_mailbox_arm(const acpx_mailbox_t *mailboxes, size_t count)
{
	int64_t found;
	int error;

	if (!libacp_watch_enter())
		return -ENOTCONN;
	error = check_all(mailboxes, count);
	found = error ? error : libacp_watch_arm(find_polled,
						 (void *const *)(const void *)mailboxes, count);
	leave();
	if (found == -ECANCELED)
		libacp_job_aborted();
	return found == -EAGAIN ? 0 : found ? (int)found : 1;
}

/* ---- Lending ---- */

static int64_t lend(struct request *r, const struct libacp_record *record)
{
	libacp_area_lend(&r->box->area, record, r->lent);
	return 0;
}

int acpx_recv_lend(acpx_mailbox_t mailbox, struct acpx_message *message, uint64_t timeout_ns)
{
	struct request r = { .box = mailbox, .take = lend, .message = message };
	int error;

	if (!message)
		return -EINVAL;
	r.lent = malloc(sizeof(*r.lent));
	if (!r.lent)
		return -ENOMEM;
	error = (int)receive(&r, timeout_ns);
	if (error)
		free(r.lent);
	return error;
}

int acpx_recv_return(acpx_mailbox_t mailbox, const struct acpx_message *message)
{
	struct libacp_lent *lent = NULL;
	int error = enter(mailbox);

	if (error)
		return error;
	pthread_mutex_lock(&mailbox->lock);
	if (message)
		lent = libacp_area_reclaim(&mailbox->area, message->data);
	pthread_mutex_unlock(&mailbox->lock);
	if (lent) {
		give_back(mailbox, lent);
		free(lent);
	}
	leave();
	return lent ? 0 : -EINVAL;
}

/* ---- Begin and end ---- */

/*
 * Units of the ring for ranks of this node, as a power of two: up to a quarter of the mailbox.
 * 0: it is too small to have one.
 */
static unsigned int ring_bits(uint64_t units)
{
	unsigned int bits = LIBACP_RING_BITS_MAX;

	while (bits >= LIBACP_RING_BITS_MIN && (uint64_t)4 << bits > units)
		bits--;
	return bits < LIBACP_RING_BITS_MIN ? 0 : bits;
}

/*
 * Records are contiguous, but neither the word that senders change nor the ring shares a cache line
 * with others. A heap that has no room for the ring may have it for the rest.
 */
static int open_memory(struct acpx_mailbox *box, uint64_t units)
{
	const uint64_t size = sizeof(struct acp_mailbox) + 8 * units;
	const uint64_t line = LIBACP_MEMORY_LINE, offset = (size + line - 1) & ~(line - 1);
	unsigned int bits = ring_bits(units);
	void *memory = NULL;

	if (bits)
		memory = libacp_memory_alloc(&box->memory, offset + libacp_node_ring_bytes(bits),
					     true);
	if (!memory) {
		bits = 0;
		memory = libacp_memory_alloc(&box->memory, size, false);
	}
	if (!memory)
		return -ENOMEM;
	libacp_area_open(&box->area, memory, units, libacp.nprocs);
	if (bits)
		libacp_area_add_ring(&box->area, offset, bits);
	return 0;
}

static int create(size_t bytes, struct acpx_mailbox **mailbox)
{
	struct acpx_mailbox *box = calloc(1, sizeof(*box));

	if (!box || open_memory(box, bytes / 8 + (bytes % 8 != 0)) < 0) {
		free(box);
		return -ENOMEM;
	}
	pthread_mutex_init(&box->lock, NULL);
	*mailbox = box;
	return 0;
}

int acpx_mailbox_create(size_t bytes, int flags, acpx_mailbox_t *mailbox)
{
	int error;

	if (!libacp_watch_enter())
		return -ENOTCONN;
	if (flags || !mailbox || bytes < 8 * LIBACP_AREA_RECORD ||
	    bytes > 8 * (uint64_t)LIBACP_AREA_UNITS_MAX)
		error = -EINVAL;
	else
		error = create(bytes, mailbox);
	libacp_watch_leave();
	return error;
}

acp_ga_t acpx_mailbox_ga(acpx_mailbox_t mailbox)
{
	return mailbox ? mailbox->memory.ga : ACP_GA_NULL;
}

/* Drop all messages of a closed mailbox; of type libacp_find_t. Returns 1 when none will come. */
static int64_t find_drained(void *arg, bool sleeps, const void **word)
{
	struct acpx_mailbox *box = arg;
	struct libacp_record record;
	int64_t found = 0;

	(void)sleeps;
	pthread_mutex_lock(&box->lock);
	libacp_area_close(&box->area, libacp_rank_has_left);
	while (!found) {
		found = libacp_area_drained(&box->area) ? 1 :
							  libacp_area_find(&box->area, false,
									   &record);
		if (!found)
			libacp_area_consume(&box->area, &record);
	}
	*word = libacp_area_word(&box->area);
	pthread_mutex_unlock(&box->lock);
	return found;
}

/* Let nothing into a mailbox any more, unless it is in use. Returns 0 or -EBUSY. */
static int close_box(struct acpx_mailbox *box)
{
	int error = 0;

	pthread_mutex_lock(&box->lock);
	if (libacp_area_is_lent(&box->area) || box->waiters)
		error = -EBUSY;
	else
		libacp_area_close(&box->area, libacp_rank_has_left);
	pthread_mutex_unlock(&box->lock);
	return error;
}

/* In a child, another thread of the parent may have had one of them, on its stack. */
static void destroy_lents(struct libacp_lent *lent)
{
	struct libacp_lent *next;

	for (; lent; lent = next) {
		next = lent->next;
		if (!lent->taken)
			free(lent);
	}
}

static void destroy(struct acpx_mailbox *box)
{
	destroy_lents(box->area.lents.first);
	destroy_lents(box->area.ring.lents.first);
	pthread_mutex_destroy(&box->lock);
	free(box);
}

/*
 * Close and empty a mailbox, and free its memory, unless writing to it may not have ended. Returns
 * 0 or -errno.
 */
static int empty(struct acpx_mailbox *box)
{
	const uint64_t limit_ns = FREE_TIMEOUTS * libacp_timeout_ms() * NS_PER_MS;
	int error = close_box(box);
	int64_t found;

	if (error)
		return error;
	found = libacp_watch_find(find_drained, box, limit_ns);
	if (found > 0)
		acp_free(box->memory.block);
	return found > 0 ? 0 : found == -ETIMEDOUT ? -EBUSY : (int)found;
}

int acpx_mailbox_free(acpx_mailbox_t mailbox)
{
	int error = enter(mailbox);

	if (error == -EINVAL)
		return error;
	if (!error) {
		error = empty(mailbox);
		leave();
	}
	if (error == -EBUSY)
		return error;
	destroy(mailbox);
	return error == -EBADMSG ? error : 0;	/* otherwise the memory went with the job */
}
