// SPDX-License-Identifier: MIT
/*
 * Workspaces: a range of bytes that is distributed over ranks in blocks, round-robin, and accessed
 * by offset like a file.
 *
 * Each rank has one piece of memory with all its blocks. To create a workspace, the ranks publish
 * the address of their piece in their library pages, enter a barrier, read the addresses of all
 * ranks that have blocks, and enter a second barrier before any of them changes its page again. A
 * rank that fails increments a counter at rank 0 before the second barrier, and all ranks read the
 * counter after it. Therefore either all ranks have the workspace or none. The value read belongs
 * to this creation, because no rank enters the first barrier of the next creation without having
 * read it. The counter is never reset.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acp.h"
#include "core/internal.h"
#include "core/page.h"
#include "middle/scratch.h"

#define SIZE_DEFAULT	(1u << 20)
#define NO_MEMORY	1u		/* value instead of an address */
#define WORDS		128u		/* addresses to fetch at a time */
#define WINDOW		64u		/* copies in flight */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* guards the parameters */
static size_t next_start, next_size = SIZE_DEFAULT;

/* ---- Pieces ---- */

static acp_ga_t word_ga(int rank)
{
	return libacp_page_ga(rank, offsetof(struct libacp_page, workspace));
}

/* Return the bytes of the blocks of this rank, whose first block is @first. */
static size_t own_bytes(const acp_wsditem *ws, size_t first)
{
	size_t procs = (size_t)acp_procs(), count;

	if (first >= ws->ngas)
		return 0;
	count = (ws->ngas - first + procs - 1) / procs;
	if ((ws->ngas - 1) % procs == first)
		return (count - 1) * ws->size_default + ws->size_remainder;
	return count * ws->size_default;
}

static int add_piece(acp_wsditem *ws, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (size > SIZE_MAX - page)
		return -ENOMEM;
	size = (size + page - 1) / page * page;
	if (posix_memalign(&ws->data, page, size)) {
		ws->data = NULL;
		return -ENOMEM;
	}
	memset(ws->data, 0, size);
	ws->key_data = acp_register_memory(ws->data, size, 0);
	if (ws->key_data == ACP_ATKEY_NULL)
		return -ENOMEM;
	ws->ga_data = acp_query_ga(ws->key_data, ws->data);
	return 0;
}

/*
 * Read the addresses of the pieces of @count ranks from @rank on, through scratch memory. Returns 0
 * or -errno.
 */
static int fetch_bases(acp_ga_t *bases, size_t count, size_t rank, const uint64_t *scratch,
		       acp_ga_t ga)
{
	acp_handle_t handles[WORDS];
	size_t procs = (size_t)acp_procs(), i;
	int error = 0, result;

	for (i = 0; i < count; i++)
		handles[i] = acp_copy(ga + i * sizeof(uint64_t), word_ga((int)((rank + i) % procs)),
				      sizeof(uint64_t), ACP_HANDLE_NULL);
	for (i = 0; i < count; i++) {
		result = libacp_finish(handles[i]);
		error = error ? error : result;
	}
	memcpy(bases, scratch, count * sizeof(*bases));
	for (i = 0; i < count; i++)
		if (bases[i] == NO_MEMORY)
			error = error ? error : -ENOMEM;
	return error;
}

/* Block i is on rank start + i, after block i - procs. */
static int fetch_places(acp_wsditem *ws, size_t start)
{
	size_t procs = (size_t)acp_procs(), many = ws->ngas < procs ? ws->ngas : procs, i, n;
	acp_ga_t ga;
	uint64_t *scratch = libacp_scratch_get(WORDS * sizeof(uint64_t), &ga);
	int error = scratch ? 0 : -ENOMEM;

	for (i = 0; !error && i < many; i += n) {
		n = many - i < WORDS ? many - i : WORDS;
		error = fetch_bases(ws->gas + i, n, start + i, scratch, ga);
	}
	libacp_scratch_put(scratch);
	for (i = many; !error && i < ws->ngas; i++)
		ws->gas[i] = ws->gas[i - procs] + ws->size_default;
	return error;
}

/* ---- Creating ---- */

static void free_item(acp_wsditem *ws)
{
	if (ws->key_data != ACP_ATKEY_NULL)
		acp_unregister_memory(ws->key_data);
	free(ws->data);
	free(ws->keys);
	free(ws->gas);
	free(ws->procs);
	free(ws->sizes);
	free(ws);
}

static acp_wsditem *new_item(size_t size, size_t block)
{
	acp_wsditem *ws = calloc(1, sizeof(*ws));

	if (!ws)
		return NULL;
	ws->size_ws = size;
	ws->size_default = block;
	ws->ngas = (size - 1) / block + 1;
	ws->size_remainder = size - (ws->ngas - 1) * block;
	ws->keys = calloc(ws->ngas, sizeof(*ws->keys));
	ws->gas = calloc(ws->ngas, sizeof(*ws->gas));
	ws->procs = calloc(ws->ngas, sizeof(*ws->procs));
	ws->sizes = calloc(ws->ngas, sizeof(*ws->sizes));
	if (ws->keys && ws->gas && ws->procs && ws->sizes)
		return ws;
	free_item(ws);
	return NULL;
}

static void describe_blocks(acp_wsditem *ws, size_t start)
{
	size_t procs = (size_t)acp_procs(), i, size;

	for (i = 0; i < ws->ngas; i++) {
		size = i + 1 < ws->ngas ? ws->size_default : ws->size_remainder;
		ws->procs[i] = (int)((start + i) % procs);
		ws->sizes[i] = size < INT_MAX ? (int)size : INT_MAX;
		if (ws->procs[i] == acp_rank())
			ws->keys[i] = ws->key_data;
	}
}

/* Create the piece of this rank. Returns the value to publish. */
static uint64_t prepare(acp_wsditem *ws, size_t start)
{
	size_t procs = (size_t)acp_procs(), me = (size_t)acp_rank(), bytes;

	if (!ws)
		return NO_MEMORY;
	bytes = own_bytes(ws, (me + procs - start) % procs);
	if (bytes && add_piece(ws, bytes) < 0)
		return NO_MEMORY;
	return ws->ga_data;
}

/* Tell all ranks that this rank has failed. */
static void count_failure(void)
{
	const size_t fetched = offsetof(struct libacp_page, failures_fetched);

	libacp_finish(acp_add8(libacp_page_ga(acp_rank(), fetched),
			       libacp_page_ga(0, offsetof(struct libacp_page, failures)), 1,
			       ACP_HANDLE_NULL));
}

/* Returns 0, -ENOMEM if any rank has failed, or -errno. */
static int look_for_failures(struct libacp_page *page)
{
	acp_ga_t here = libacp_page_ga(acp_rank(), offsetof(struct libacp_page, failures_fetched));
	acp_ga_t there = libacp_page_ga(0, offsetof(struct libacp_page, failures));
	int error = libacp_finish(acp_copy(here, there, sizeof(uint64_t), ACP_HANDLE_NULL));

	if (error || page->failures_fetched == page->failures_seen)
		return error;
	page->failures_seen = page->failures_fetched;
	return -ENOMEM;
}

/* Create the workspace on all ranks or on none. Returns 0 or -errno. */
static int agree(acp_wsditem *ws, size_t start)
{
	struct libacp_page *page = acp_query_address(libacp_page_ga(acp_rank(), 0));
	int error, others;

	if (!page)
		return -ENOTCONN;
	__atomic_store_n(&page->workspace, prepare(ws, start), __ATOMIC_RELEASE);
	if (acp_sync() < 0)
		return -EPIPE;
	error = ws ? fetch_places(ws, start) : -ENOMEM;
	if (error)
		count_failure();
	if (acp_sync() < 0)
		return -EPIPE;
	others = look_for_failures(page);
	return error ? error : others;
}

acp_wsd_t acp_create_ws(size_t size)
{
	int error, former_errno = errno;
	acp_wsditem *ws;
	size_t start, block;
	bool quiet;

	if (!size || acp_rank() < 0) {
		errno = EINVAL;
		return ACP_WSD_NULL;
	}
	pthread_mutex_lock(&lock);
	start = next_start % (size_t)acp_procs();
	block = next_size;
	ws = new_item(size, block);
	quiet = libacp_quiet(true);
	error = agree(ws, start);
	libacp_quiet(quiet);
	next_start = (start + (size - 1) / block + 1) % (size_t)acp_procs();
	pthread_mutex_unlock(&lock);
	if (!error) {
		describe_blocks(ws, start);
		errno = former_errno;
		return ws;
	}
	if (ws)
		free_item(ws);
	errno = -error;
	return ACP_WSD_NULL;
}

int acp_setparams_ws(size_t proc_start, size_t size_default)
{
	if (acp_rank() < 0 || proc_start >= (size_t)acp_procs() || !size_default) {
		errno = EINVAL;
		return -1;
	}
	pthread_mutex_lock(&lock);
	next_start = proc_start;
	next_size = size_default;
	pthread_mutex_unlock(&lock);
	return 0;
}

void acp_destroy_ws(acp_wsd_t WSD)
{
	if (!WSD || WSD == ACP_WSD_NULL)
		return;
	acp_sync();	/* no rank accesses it any more */
	free_item(WSD);
}

void acp_free_ws(acp_wsd_t WSD)
{
	acp_destroy_ws(WSD);
}

/* ---- Reading and writing ---- */

/* Copy the part of a range that is in one block. Returns its bytes. */
static size_t copy_part(const acp_wsditem *ws, acp_ga_t ga, size_t size, size_t offset,
			bool write, acp_handle_t *handle)
{
	size_t i = offset / ws->size_default, at = offset % ws->size_default;
	size_t n = ws->size_default - at < size ? ws->size_default - at : size;
	acp_ga_t there = ws->gas[i] + at;

	*handle = acp_copy(write ? there : ga, write ? ga : there, n, ACP_HANDLE_NULL);
	return n;
}

static int copy(const acp_wsditem *ws, acp_ga_t ga, size_t size, size_t offset, bool write)
{
	acp_handle_t handles[WINDOW];
	uint64_t begun = 0, ended = 0;
	int error = 0, result;
	size_t n;

	while (size || ended < begun) {
		if (size && !error && begun - ended < WINDOW) {
			n = copy_part(ws, ga, size, offset, write, &handles[begun++ % WINDOW]);
			ga += n;
			size -= n;
			offset += n;
			continue;
		}
		if (ended == begun)
			break;
		result = libacp_finish(handles[ended++ % WINDOW]);
		error = error ? error : result;
	}
	return error;
}

static int transfer(acp_wsd_t ws, acp_ga_t ga, size_t size, size_t offset, bool write)
{
	int error, former_errno = errno;
	bool quiet;

	if (!ws || ws == ACP_WSD_NULL ||
	    (size && (acp_query_rank(ga) < 0 || offset > ws->size_ws ||
		      size > ws->size_ws - offset))) {
		errno = EINVAL;
		return -1;
	}
	quiet = libacp_quiet(true);
	error = copy(ws, ga, size, offset, write);
	libacp_quiet(quiet);
	errno = error ? -error : former_errno;
	return error ? -1 : 0;
}

int acp_read_ws(acp_wsd_t WSD, acp_ga_t ga, size_t size, size_t offset)
{
	return transfer(WSD, ga, size, offset, false);
}

int acp_write_ws(acp_wsd_t WSD, const acp_ga_t ga, size_t size, size_t offset)
{
	return transfer(WSD, ga, size, offset, true);
}
