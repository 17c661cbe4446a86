/* SPDX-License-Identifier: MIT */
/*
 * Ranks for tests, using only the ABI. One open file is one rank, so a single process can have any
 * number of ranks, also in different network namespaces.
 */
#ifndef RANK_H
#define RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "acp_abi.h"
#include "acp_ga.h"

#define RANKS_MAX	17
#define NODES_MAX	17
#define FOREVER		UINT64_MAX
#define MS		1000000ULL	/* ns */
#define PAGE		4096UL

/* The parameters of a join; a test may change any of them before setup_join(). */
struct setup {
	struct acp_join join;
	struct acp_rank_run ranks[RANKS_MAX];
	struct acp_node_run nodes[NODES_MAX * ACP_COLORS_MAX];
};

/* A joined rank with its queues mapped. */
struct rank {
	int fd;
	struct acp_join join;		/* as returned by the kernel */
	struct acp_ga_layout layout;
	struct acp_sq *sq;
	struct acp_sqe *entries;
	const struct acp_cq *cq;
	char *starter, *heap;
	uint64_t last;			/* ticket of the latest command */
};

/* Registered memory. */
struct memory {
	char *addr;
	size_t size;
	struct acp_reg reg;
};

/* A job of @nprocs ranks on 127.0.0.1, with an id that no other test uses. */
void setup_local(struct setup *s, uint32_t rank, uint32_t nprocs);

/*
 * A job over several nodes, with consecutive ranks on the same node. The addresses are text, all of
 * color 0 first, then NULL; colors = addresses / nodes.
 */
void setup_nodes(struct setup *s, uint32_t rank, uint32_t nprocs, uint32_t nodes,
		 const char *const *addresses);

int device_open(void);

/* Join. Return the descriptor, or -errno; then no file stays open. */
int setup_join(struct setup *s);

/* Join and map; a failure fails the test. rank_open_local() calls setup_local() first. */
void rank_open(struct rank *r, struct setup *s);
void rank_open_local(struct rank *ranks, uint32_t nprocs);
void rank_close(struct rank *r);

/*
 * Attach one more queue to a rank, with a file of its own; it can be used like a rank to submit and
 * wait. rank_attach_fd() returns 0 or -errno; the file stays open.
 */
int rank_attach_fd(int fd, const struct rank *r, struct acp_attach *a);
void rank_attach(struct rank *further, const struct rank *r);
void rank_detach(struct rank *further);

/* Check that a copy within its heap works. */
void rank_works(struct rank *r);

/* mmap() of an object of this device. */
void *rank_map(int fd, uint32_t kind, uint32_t rank, size_t size, int prot);

/*
 * Submit an entry as it is, without ringing the doorbell. Return its ticket. The queue must not be
 * full.
 */
uint64_t rank_push(struct rank *r, const struct acp_sqe *e);

/* Submit, and ring the doorbell if needed. */
uint64_t rank_submit(struct rank *r, const struct acp_sqe *e);
uint64_t rank_copy(struct rank *r, uint64_t dst, uint64_t src, uint64_t size, uint64_t order);
uint64_t rank_atomic(struct rank *r, unsigned int op, uint64_t dst, uint64_t src, uint64_t a,
		     uint64_t b, uint64_t order);

/* Return the latest ticket up to which all commands are complete. */
uint64_t rank_completed(const struct rank *r);

/*
 * Wait for a ticket. Return its ACP_ST_ value, or -1: after @timeout_ns, for one that must not be
 * complete yet; after @base of patience.h, for one that must complete.
 */
int rank_wait(struct rank *r, uint64_t ticket, uint64_t timeout_ns);
int rank_await(struct rank *r, uint64_t ticket, uint64_t base);

/* Submit a copy and wait for it. Return its status. Never hangs. */
int rank_do_copy(struct rank *r, uint64_t dst, uint64_t src, uint64_t size);
int rank_do_atomic(struct rank *r, unsigned int op, uint64_t dst, uint64_t src, uint64_t a,
		   uint64_t b);

/* Global addresses. */
uint64_t rank_ga(const struct rank *r, uint32_t rank, uint32_t stag, uint64_t offset);
static inline uint64_t starter_ga(const struct rank *r, uint64_t offset)
{
	return rank_ga(r, r->join.rank, ACP_STAG_STARTER, offset);
}

static inline uint64_t heap_ga(const struct rank *r, uint64_t offset)
{
	return rank_ga(r, r->join.rank, ACP_STAG_HEAP, offset);
}

static inline uint64_t memory_ga(const struct memory *m, uint64_t offset)
{
	return m->reg.key + ((uintptr_t)m->addr - m->reg.start) + offset;
}

/* Register memory. Return 0 or -errno. */
int rank_register(struct rank *r, struct memory *m, void *addr, size_t size, uint32_t access);
int rank_register_color(struct rank *r, struct memory *m, void *addr, size_t size,
			uint32_t access, uint32_t color);
int rank_unregister(struct rank *r, uint64_t key, uint32_t *left);

/* Anonymous, page-aligned memory, registered with all rights; a failure fails the test. */
void memory_open(struct rank *r, struct memory *m, size_t size);
void *pages(size_t size, int prot);

/* Return an address of which only @n bytes can be accessed; those after them fault. */
void *before_hole(size_t n);

/* Fill with bytes that depend on seed and position; check that all of them are present. */
void fill(void *p, size_t n, uint64_t seed);
bool filled(const void *p, size_t n, uint64_t seed);

/* Pseudo-random numbers from a seed. */
uint64_t next_random(uint64_t *state);

/* The time, and that in some ms: until then a test plays (limits of waits are in patience.h). */
uint64_t now_ns(void);
uint64_t in_ms(uint64_t ms);
void sleep_ms(unsigned int ms);

/*
 * Sysctl net.acp.NAME of the namespace of the calling thread: its value, or -1 if it does not
 * exist. limit_try() sets it and returns 0 or -errno; limit_set() must succeed.
 */
long long limit_get(const char *name);
int limit_try(const char *name, const char *value);
void limit_set(const char *name, unsigned long value);

/* Limit the memory that the process may pin; drop a capability (CAP_). */
void limit_pages(unsigned long n);
void drop_capability(int number);

/* A line of /proc/self/status or /proc/meminfo in KiB, e.g. "VmPin", "Slab". */
long status_kib(const char *name);
long meminfo_kib(const char *name);

/* Counter in /proc/net/acp of the namespace of the calling thread; -1 if it does not exist. */
long long counter(const char *name);

/* The new value of a word after an atomic, as the ABI defines it. */
uint64_t atomic_result(unsigned int op, uint64_t old, uint64_t a, uint64_t b);
static inline unsigned int atomic_width(unsigned int op)
{
	return (op & 1) ? 8 : 4;
}

#endif /* RANK_H */
