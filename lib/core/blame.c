// SPDX-License-Identifier: MIT
/*
 * Diagnosis of a failed access, for the message that ends the job: which address is wrong, and why.
 *
 * The kernel reports a status only. The sizes of own memory and of memory of ranks on this node are
 * known. The bounds of memory on other nodes are found by reading single bytes, which takes some
 * tens of round trips.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "acp.h"
#include "acp_abi.h"
#include "acp_ga.h"
#include "core/blame.h"
#include "core/errors.h"
#include "core/internal.h"
#include "core/mem.h"
#include "core/page.h"
#include "core/process.h"
#include "core/wait.h"

#define PROBE_NS	2000000000u	/* for all probes together */
#define DETAIL		400
#define PLACE_TEXT	80
#define NAME_TEXT	100
#define PAGE_BYTES	4096u

static const char *const op_names[ACP_OP_END] = {
	[ACP_OP_COPY] = "acp_copy",
	[ACP_OP_CAS4] = "acp_cas4", [ACP_OP_CAS8] = "acp_cas8",
	[ACP_OP_SWAP4] = "acp_swap4", [ACP_OP_SWAP8] = "acp_swap8",
	[ACP_OP_ADD4] = "acp_add4", [ACP_OP_ADD8] = "acp_add8",
	[ACP_OP_XOR4] = "acp_xor4", [ACP_OP_XOR8] = "acp_xor8",
	[ACP_OP_OR4] = "acp_or4", [ACP_OP_OR8] = "acp_or8",
	[ACP_OP_AND4] = "acp_and4", [ACP_OP_AND8] = "acp_and8",
	[ACP_OP_STRIDED] = "acpx_copy_strided",
	[ACP_OP_COPY_SET] = "acpx_copy_signal", [ACP_OP_COPY_ADD] = "acpx_copy_signal",
	[ACP_OP_INDIRECT] = "acpx_copy_indirect", [ACP_OP_APPEND] = "acpx_copy_indirect",
	[ACP_OP_SEND] = "acpx_send",
	[ACP_OP_SCATTER] = "acpx_copy_scatter", [ACP_OP_GATHER] = "acpx_copy_gather",
	[ACP_OP_WAIT] = "acpx_wait_word",
	[ACP_OP_REDUCE] = "acpx_reduce",
	[ACP_OP_ACCUMULATE] = "acpx_accumulate",
	[ACP_OP_ACCUMULATE_SET] = "acpx_accumulate_signal",
	[ACP_OP_ACCUMULATE_ADD] = "acpx_accumulate_signal",
};

/* One of the addresses of an access, and how the access uses it. */
struct end {
	const char *name;
	acp_ga_t ga;
	uint64_t size;		/* bytes from ga on */
	uint64_t align;
	const char *right;	/* permission that it needs; NULL: unused */
};

#define ENDS	3

/* Bounds of the region of an end, as offsets of global addresses. */
struct bounds {
	uint64_t low, high;
};

/* ---- Ends ---- */

static uint64_t word_of(unsigned int op)
{
	switch (op) {
	case ACP_OP_CAS4:
	case ACP_OP_SWAP4:
	case ACP_OP_ADD4:
	case ACP_OP_XOR4:
	case ACP_OP_OR4:
	case ACP_OP_AND4:
		return 4;
	default:
		return 8;
	}
}

/* Set the range from the first to the last byte of all blocks. */
static void span(struct end *e, acp_ga_t ga, uint64_t blocks, uint64_t stride)
{
	const uint64_t count = blocks >> 32, far = count ? (count - 1) * stride : 0;
	const bool back = (int64_t)stride < 0;

	e->ga = back ? ga + far : ga;
	e->size = (back ? -far : far) + (uint32_t)blocks;
}

static bool is_indirect(const struct acp_sqe *entry)
{
	return entry->op == ACP_OP_INDIRECT || entry->op == ACP_OP_APPEND;
}

static bool is_chain(const struct acp_sqe *entry)
{
	return entry->op == ACP_OP_SCATTER || entry->op == ACP_OP_GATHER;
}

static bool accumulates(const struct acp_sqe *entry)
{
	return entry->op >= ACP_OP_ACCUMULATE && entry->op <= ACP_OP_ACCUMULATE_ADD;
}

/* Their size is ACP_NUMBERS(operation, type, count). */
static void list_numbers(const struct acp_sqe *entry, struct end *dst, struct end *src,
			 struct end *flag)
{
	const uint64_t width = entry->size >> 8 & 1 ? 8 : 4;

	*dst = (struct end){ "dst", entry->dst, (entry->size >> 16) * width, width, "atomic" };
	*src = (struct end){ "src", entry->src, dst->size, width, "read" };
	if (entry->op != ACP_OP_ACCUMULATE)
		*flag = (struct end){ "flag", entry->a, 8, 8, "atomic" };
}

static void list_ends(const struct acp_sqe *entry, struct end ends[ENDS])
{
	struct end *dst = &ends[0], *src = &ends[1], *flag = &ends[2];

	*dst = (struct end){ "dst", entry->dst, entry->size, 1, "write" };
	*src = (struct end){ "src", entry->src, entry->size, 1, "read" };
	*flag = (struct end){ .name = "flag" };
	if (entry->op == ACP_OP_STRIDED) {
		span(dst, entry->dst, entry->size, entry->a);
		span(src, entry->src, entry->size, entry->b);
	} else if (entry->op == ACP_OP_COPY_SET || entry->op == ACP_OP_COPY_ADD) {
		*flag = (struct end){ "flag", entry->a, 8, 8, "atomic" };
	} else if (is_indirect(entry)) {
		const bool append = entry->op == ACP_OP_APPEND;

		*dst = (struct end){ "pointer", entry->dst, append ? 16 : 8, 8,
				     append ? "atomic" : "read" };
	} else if (is_chain(entry)) {
		const bool scatter = entry->op == ACP_OP_SCATTER;

		*(scatter ? dst : src) = (struct end){ "chain", scatter ? entry->dst : entry->src,
						       sizeof(struct acp_descriptor), 8, "read" };
	} else if (entry->op == ACP_OP_SEND) {
		*dst = (struct end){ "mailbox", entry->dst, sizeof(struct acp_mailbox), 8,
				     "atomic" };
		src->right = entry->size ? src->right : NULL;
	} else if (entry->op == ACP_OP_WAIT) {
		*src = (struct end){ "word", entry->src, 8, 8, "read" };
		dst->right = NULL;
	} else if (accumulates(entry)) {
		list_numbers(entry, dst, src, flag);
	} else if (entry->op == ACP_OP_REDUCE) {
		src->align = entry->a >> 8 & 1 ? 8 : 4;
		dst->align = src->align;
	} else if (entry->op != ACP_OP_COPY) {
		src->size = word_of(entry->op);
		src->align = src->size;
		dst->size = src->size;
		dst->align = src->size;
		src->right = "atomic";
	}
}

static uint32_t rank_of(const struct end *e)
{
	return acp_ga_rank(&libacp.layout, e->ga);
}

static uint64_t offset_of(const struct end *e)
{
	return acp_ga_offset(&libacp.layout, e->ga);
}

static bool is_valid(acp_ga_t ga)
{
	return acp_query_rank(ga) >= 0;
}

/* ---- Probing ---- */

static uint64_t probes_end;	/* deadline; only one thread ends the job */

/* Return the status of reading the byte at @offset of the region of @e; -1: unknown. */
static int byte_status(const struct end *e, uint64_t offset)
{
	const acp_ga_t to = acp_ga_make(&libacp.layout, libacp.rank, 0, ACP_STAG_LIBRARY,
					offsetof(struct libacp_page, piece));
	acp_handle_t handle;

	if (libacp_now() > probes_end || offset > libacp.offset_mask)
		return -1;
	handle = acp_copy(to, e->ga - offset_of(e) + offset, 1, ACP_HANDLE_NULL);
	if (handle == (acp_handle_t)ACP_HANDLE_NULL || libacp_gma_wait(handle) < 0)
		return -1;
	return acpx_status(handle);
}

/* Return the first unreadable offset after @good. @bad is an unreadable offset. */
static uint64_t find_high(const struct end *e, uint64_t good, uint64_t bad)
{
	uint64_t middle;

	while (bad - good > 1) {
		middle = good + (bad - good) / 2;
		if (byte_status(e, middle) == 0)
			good = middle;
		else
			bad = middle;
	}
	return bad;
}

/* Return the first readable offset, which is in the first page and not after @good. */
static uint64_t find_low(const struct end *e, uint64_t good)
{
	uint64_t low = 0, middle;

	good = good < PAGE_BYTES ? good : PAGE_BYTES - 1;
	while (low < good) {
		middle = low + (good - low) / 2;
		if (byte_status(e, middle) == 0)
			good = middle;
		else
			low = middle + 1;
	}
	return good;
}

/* Find a readable offset; each region begins in its first page. False: none found. */
static bool find_good(const struct end *e, uint64_t *good)
{
	static const uint64_t steps[] = { 64, 8, 1 };
	size_t i;

	*good = offset_of(e);
	if (byte_status(e, *good) == 0)
		return true;
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		for (*good = 0; *good < PAGE_BYTES && libacp_now() < probes_end; *good += steps[i])
			if (byte_status(e, *good) == 0)
				return true;
	return false;
}

/*
 * Find the bounds of a region on another node. False: nothing of it is readable, or all bytes of
 * the access are.
 */
static bool find_bounds(const struct end *e, struct bounds *b)
{
	const uint64_t offset = offset_of(e), last = offset + e->size - 1;
	uint64_t good;

	if (byte_status(e, last) == 0 && byte_status(e, offset) == 0)
		return false;
	if (!find_good(e, &good) || good > offset)
		return false;
	b->high = find_high(e, good, good < offset ? offset : last);
	b->low = find_low(e, good);
	return libacp_now() <= probes_end;
}

/* ---- Diagnosis ---- */

static bool own_bounds(const struct end *e, struct bounds *b)
{
	const struct libacp_region *region = libacp_mem_region(e->ga);

	if (!region)
		return false;
	b->low = acp_ga_offset(&libacp.layout, region->ga);
	b->high = b->low + region->size;
	return true;
}

static bool get_bounds(const struct end *e, struct bounds *b)
{
	uint64_t sizes[ACP_STAG_RESERVED];
	const uint32_t stag = acp_ga_stag(&libacp.layout, e->ga);

	if (rank_of(e) == libacp.rank)
		return own_bounds(e, b);
	if (stag < ACP_STAG_RESERVED && libacp_mem_sizes(rank_of(e), sizes) == 0) {
		*b = (struct bounds){ 0, sizes[stag] };
		return true;
	}
	return find_bounds(e, b);
}

/* Returns, for example, "the heap of rank 3 on node 1". */
static const char *name_region(const struct end *e, char text[NAME_TEXT])
{
	static const char *const names[ACP_STAG_USER] = {
		[ACP_STAG_STARTER] = "the starter memory of", [ACP_STAG_HEAP] = "the heap of",
		[ACP_STAG_LIBRARY] = "the library's memory of",
	};
	const uint32_t stag = acp_ga_stag(&libacp.layout, e->ga);
	const char *name = stag < ACP_STAG_USER ? names[stag] : NULL;

	snprintf(text, NAME_TEXT, "%s rank %u on node %d", name ? name : "memory registered by",
		 rank_of(e), acpx_query_node((int)rank_of(e)));
	return text;
}

static bool blame_range(const struct end *e, char text[DETAIL])
{
	const uint64_t offset = offset_of(e);
	char name[NAME_TEXT];
	struct bounds b;

	if (!e->size || !get_bounds(e, &b))
		return false;
	if (offset < b.low)
		snprintf(text, DETAIL,
			 "%s begins %" PRIu64 " bytes before %s, whose size is %" PRIu64 " bytes",
			 e->name, b.low - offset, name_region(e, name), b.high - b.low);
	else if (e->size > b.high - offset || offset > b.high)
		snprintf(text, DETAIL,
			 "%s, %" PRIu64 " bytes at offset %" PRIu64 " of %s, ends %" PRIu64
			 " bytes beyond it, whose size is %" PRIu64 " bytes",
			 e->name, e->size, offset - b.low, name_region(e, name),
			 offset + e->size - b.high, b.high - b.low);
	else
		return false;
	return true;
}

static bool blame_address(const struct end *e, char text[DETAIL])
{
	if (is_valid(e->ga))
		return false;
	if (e->ga == ACP_GA_NULL)
		snprintf(text, DETAIL, "%s is ACP_GA_NULL", e->name);
	else if (libacp_is_pointer(e->ga))
		snprintf(text, DETAIL, "%s 0x%" PRIx64 ": this is a pointer, not a global address: register the memory and ask acp_query_ga()",
			 e->name, (uint64_t)e->ga);
	else if (acp_ga_valid(&libacp.layout, e->ga))
		snprintf(text, DETAIL, "%s has color %u, the job has %u", e->name,
			 acp_ga_color(&libacp.layout, e->ga), libacp.colors);
	else
		snprintf(text, DETAIL, "%s is no address in this job of %u ranks", e->name,
			 libacp.nprocs);
	return true;
}

static bool is_gone(const struct end *e)
{
	if (acp_ga_stag(&libacp.layout, e->ga) < ACP_STAG_RESERVED)
		return false;
	if (rank_of(e) == libacp.rank)
		return !libacp_mem_region(e->ga);
	return byte_status(e, offset_of(e)) == ACP_ST_STAG;
}

static bool blame_region(const struct end *e, char text[DETAIL])
{
	if (!is_valid(e->ga) || !is_gone(e))
		return false;
	snprintf(text, DETAIL, "%s is in no memory that rank %u on node %d has registered now",
		 e->name, rank_of(e), acpx_query_node((int)rank_of(e)));
	return true;
}

/*
 * True if a byte is unreadable, or if memory of this rank is read-only. @rest: true by exclusion.
 */
static bool blame_right(const struct end *e, bool rest, char text[DETAIL])
{
	const struct libacp_region *region = NULL;
	const bool reads = e->right[0] == 'r';
	bool denied = rest;

	if (rank_of(e) == libacp.rank)
		region = libacp_mem_region(e->ga);
	if (region && !reads)
		denied = !region->writable;
	else if (reads)
		denied = byte_status(e, offset_of(e)) == ACP_ST_ACCESS;
	if (denied)
		snprintf(text, DETAIL, "rank %u on node %d did not register the memory of %s for %s access",
			 rank_of(e), acpx_query_node((int)rank_of(e)), e->name, e->right);
	return denied;
}

static bool blame_alignment(const struct end *e, char text[DETAIL])
{
	if (e->ga % e->align == 0)
		return false;
	snprintf(text, DETAIL, "%s, at offset %" PRIu64 ", is no multiple of %" PRIu64, e->name,
		 offset_of(e), e->align);
	return true;
}

static bool blame(const struct end *e, int status, bool rest, char text[DETAIL])
{
	if (!e->right)
		return false;
	switch (status) {
	case ACP_ST_GA:
		return blame_address(e, text);
	case ACP_ST_STAG:
		return blame_region(e, text);
	case ACP_ST_RANGE:
		return blame_range(e, text);
	case ACP_ST_ACCESS:
		return blame_right(e, rest, text);
	case ACP_ST_ALIGN:
		return blame_alignment(e, text);
	default:
		return false;
	}
}

/* It is what the address refers to. */
static void blame_contents(const struct acp_sqe *entry, int status, char text[DETAIL])
{
	if (is_indirect(entry))
		snprintf(text, DETAIL, "the address in the pointer, or the data there");
	else if (is_chain(entry) && status == ACP_ST_CHAIN)
		snprintf(text, DETAIL, "%" PRIu64 " bytes along at most %u descriptors",
			 (uint64_t)entry->size, ACP_CHAIN_MAX);
	else if (is_chain(entry))
		snprintf(text, DETAIL, "a descriptor of the chain, or the blocks that it describes");
	else if (entry->op == ACP_OP_SEND && status == ACP_ST_RANGE)
		snprintf(text, DETAIL, "a message of %" PRIu64 " bytes is longer than the mailbox: pass more to acpx_mailbox_create(), 24 bytes more than the message at least",
			 (uint64_t)entry->size);
	else if (entry->op == ACP_OP_SEND)
		snprintf(text, DETAIL, "the mailbox, or the messages in it");
}

/* Whatever its owner permits: nobody else can wait for it. */
static bool blame_owner(const struct acp_sqe *entry, int status, char text[DETAIL])
{
	if (entry->op != ACP_OP_WAIT || status != ACP_ST_ACCESS)
		return false;
	snprintf(text, DETAIL, "the word is memory of another rank: a rank can wait for its own only");
	return true;
}

/* The ranks that were expected to write to the word. */
static bool blame_names(const struct acp_sqe *entry, int status, char text[DETAIL])
{
	size_t at = 0;
	int i;

	if (entry->op != ACP_OP_WAIT || !libacp_is_loss(status))
		return false;
	at += (size_t)snprintf(text, DETAIL, "one of those that write to the word is lost: rank");
	for (i = 0; i < 6; i++) {
		const int name = libacp_wait_name(entry, i);

		if (name >= 0)
			at += (size_t)snprintf(text + at, DETAIL - at, " %d", name);
	}
	return true;
}

/* Numbers are combined on the node of the caller. */
static bool blame_node(const struct acp_sqe *entry, const struct end *e, char text[DETAIL])
{
	const int here = acpx_query_node((int)libacp.rank);

	if (entry->op != ACP_OP_REDUCE || !is_valid(e->ga) ||
	    acpx_query_node((int)rank_of(e)) == here)
		return false;
	snprintf(text, DETAIL, "%s is memory of another node: numbers of node %d only are combined here, copy them first",
		 e->name, here);
	return true;
}

static void blame_numbers(const struct acp_sqe *entry, const struct end ends[ENDS],
			  char text[DETAIL])
{
	if ((accumulates(entry) ? entry->size : entry->a) == UINT64_MAX)
		snprintf(text, DETAIL, "no such operation or type");
	else if (accumulates(entry))
		snprintf(text, DETAIL, "operation %u of %" PRIu64 " numbers of type %u",
			 (unsigned int)(entry->size & 0xff), (uint64_t)entry->size >> 16,
			 (unsigned int)(entry->size >> 8 & 0xff));
	else if (!blame_node(entry, &ends[0], text) && !blame_node(entry, &ends[1], text))
		snprintf(text, DETAIL, "operation %u of %" PRIu64 " bytes of type %u",
			 (unsigned int)(entry->a & 0xff), (uint64_t)entry->size,
			 (unsigned int)(entry->a >> 8));
}

/* ---- Message ---- */

static const char *place(acp_ga_t ga, char text[PLACE_TEXT])
{
	const int rank = acp_query_rank(ga);

	if (rank < 0)
		snprintf(text, PLACE_TEXT, "0x%016" PRIx64 " of no rank", (uint64_t)ga);
	else
		snprintf(text, PLACE_TEXT, "0x%016" PRIx64 " of rank %d on node %d", (uint64_t)ga,
			 rank, acpx_query_node(rank));
	return text;
}

void libacp_die_of_access(const struct acp_sqe *entry, int status)
{
	char detail[DETAIL] = "", dst[PLACE_TEXT], src[PLACE_TEXT];
	struct end ends[ENDS];
	bool found;
	int i;

	if (!entry || entry->op >= ACP_OP_END || !op_names[entry->op])
		libacp_die("a global memory access failed: %s", acpx_strerror(status));
	libacp_quiet(true);
	probes_end = libacp_now() + PROBE_NS;
	list_ends(entry, ends);
	found = blame_owner(entry, status, detail) || blame_names(entry, status, detail);
	for (i = 0; i < ENDS && !found; i++)
		found = blame(&ends[i], status, false, detail);
	for (i = 0; i < ENDS && !found; i++)
		found = blame(&ends[i], status, true, detail);
	if (!found && (entry->op == ACP_OP_REDUCE || accumulates(entry)) && status == ACP_ST_OP)
		blame_numbers(entry, ends, detail);
	else if (!found)
		blame_contents(entry, status, detail);
	if (entry->op == ACP_OP_WAIT)
		libacp_die("%s failed: %s%s%s (word %s)", op_names[entry->op],
			   acpx_strerror(status), *detail ? ": " : "", detail,
			   place(entry->src, src));
	libacp_die("%s failed: %s%s%s (dst %s, src %s)", op_names[entry->op],
		   acpx_strerror(status), *detail ? ": " : "", detail, place(entry->dst, dst),
		   place(entry->src, src));
}
