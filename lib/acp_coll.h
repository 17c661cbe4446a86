/* SPDX-License-Identifier: MIT */
/*
 * Collective operations of ACP, included by acp.h: see acpx_coll_barrier_create(3). A collective is
 * created once by all members of a group, and then started and waited for any number of times. The
 * kernel executes it: from acpx_coll_start() on, no process has to take part.
 */
#ifndef ACP_COLL_H
#define ACP_COLL_H

#ifdef __cplusplus
extern "C" {
#endif

/* Types of numbers, and how two of them are combined: see acpx_reduce(3). */
#define ACPX_INT32	0
#define ACPX_INT64	1
#define ACPX_UINT32	2
#define ACPX_UINT64	3
#define ACPX_FLOAT	4
#define ACPX_DOUBLE	5

#define ACPX_SUM	0
#define ACPX_PROD	1
#define ACPX_MIN	2
#define ACPX_MAX	3
#define ACPX_AND	4	/* AND, OR, XOR: of integers only */
#define ACPX_OR		5
#define ACPX_XOR	6
#define ACPX_REPLACE	7

/*
 * dst[i] := dst[i] op src[i] for count numbers, in memory of any ranks of the caller's node. The
 * kernel executes it. Both addresses are multiples of the size of a number; dst may be src, and
 * otherwise they must not overlap. Thread-safe. Blocks only if the queue is full, or until an order
 * of another context is complete. Status ACPX_EOP: no such operation, or memory of another node.
 * Source: an extension; MPI_Reduce_local, but asynchronous, and for all ranks of a node.
 */
acp_handle_t acpx_reduce(acp_ga_t dst, acp_ga_t src, size_t count, int op, int type,
			 acp_handle_t order);

/*
 * The same in memory of any ranks of the job, as acp_copy(). The node of dst combines each number
 * once and atomically with respect to all atomics of its size. Status ACPX_EOP: no such operation.
 * Source: an extension; MPI_Accumulate.
 */
acp_handle_t acpx_accumulate(acp_ga_t dst, acp_ga_t src, size_t count, int op, int type,
			     acp_handle_t order);

/* ... then the 8 bytes at flag change, as with acpx_copy_signal(): signal is ACPX_SIGNAL_. */
acp_handle_t acpx_accumulate_signal(acp_ga_t dst, acp_ga_t src, size_t count, int op, int type,
				    acp_ga_t flag, uint64_t operand, int signal,
				    acp_handle_t order);

#define ACPX_WAIT_RANKS_MAX	6

/*
 * As acpx_wait_word(), but also fails if one of the ranks has left or its node is lost before the
 * word is reached, or if the order has failed before: see acpx_wait_word(3).
 */
acp_handle_t acpx_wait_word_of(acp_ga_t word, uint64_t value, const int *ranks, int count,
			       acp_handle_t order);

typedef struct acpx_coll *acpx_coll_t;

/*
 * All members of the group call the same function, with the same root (a number in the group),
 * sizes, operation and type; they return 0 or -errno, at all members. Addresses are those of the
 * caller's own memory. It stays registered until acpx_coll_free(), and may be read and written only
 * while the collective is not active.
 */
int acpx_coll_barrier_create(acpx_group_t group, acpx_coll_t *coll);
int acpx_coll_bcast_create(acpx_group_t group, int root, acp_ga_t buffer, size_t size,
			   acpx_coll_t *coll);
int acpx_coll_reduce_create(acpx_group_t group, int root, acp_ga_t dst, acp_ga_t src,
			    size_t count, int op, int type, acpx_coll_t *coll);
int acpx_coll_allreduce_create(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t count,
			       int op, int type, acpx_coll_t *coll);
int acpx_coll_reduce_scatter_create(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t count,
				    int op, int type, acpx_coll_t *coll);	/* count: at each */
int acpx_coll_scan_create(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t count, int op,
			  int type, acpx_coll_t *coll);
int acpx_coll_exscan_create(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t count, int op,
			    int type, acpx_coll_t *coll);

/* size: bytes of each member. */
int acpx_coll_gather_create(acpx_group_t group, int root, acp_ga_t dst, acp_ga_t src, size_t size,
			    acpx_coll_t *coll);
int acpx_coll_scatter_create(acpx_group_t group, int root, acp_ga_t dst, acp_ga_t src, size_t size,
			     acpx_coll_t *coll);
int acpx_coll_allgather_create(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t size,
			       acpx_coll_t *coll);
int acpx_coll_alltoall_create(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t size,
			      acpx_coll_t *coll);

/* A block of a buffer. */
struct acpx_block {
	size_t offset, size;	/* bytes */
};

/*
 * With a block for each member. Those that only the root needs are ignored elsewhere. size is that
 * of the caller's own block.
 */
int acpx_coll_gatherv_create(acpx_group_t group, int root, acp_ga_t dst,
			     const struct acpx_block *blocks, acp_ga_t src, size_t size,
			     acpx_coll_t *coll);
int acpx_coll_scatterv_create(acpx_group_t group, int root, acp_ga_t dst, size_t size,
			      acp_ga_t src, const struct acpx_block *blocks, acpx_coll_t *coll);
int acpx_coll_allgatherv_create(acpx_group_t group, acp_ga_t dst, const struct acpx_block *blocks,
				acp_ga_t src, acpx_coll_t *coll);
int acpx_coll_alltoallv_create(acpx_group_t group, acp_ga_t dst, const struct acpx_block *to,
			       acp_ga_t src, const struct acpx_block *from, acpx_coll_t *coll);

/* A neighbour of the caller: a member, what it gets, and where what it sends is put. */
struct acpx_neighbour {
	int member;			/* its number in the group; -1: none */
	struct acpx_block out, in;	/* of src, and of dst; size 0: nothing */
};

/* Block i goes to neighbour i; a is a neighbour of b as often as b is one of a. */
int acpx_coll_neighbours_create(acpx_group_t group, acp_ga_t dst, acp_ga_t src,
				const struct acpx_neighbour *neighbours, int count,
				acpx_coll_t *coll);

int acpx_coll_start(acpx_coll_t coll);		/* -EBUSY: it is active */
int acpx_coll_test(acpx_coll_t coll);		/* 1: not active any more, 0: active, or -errno */
int acpx_coll_wait(acpx_coll_t coll, uint64_t timeout_ns);
int acpx_coll_free(acpx_coll_t coll);		/* -EBUSY: it is active */
int acpx_coll_failed_rank(acpx_coll_t coll);	/* that was lost, or -ENOENT */

/* What the caller does in each round, as text; returns its length, as snprintf(). */
int acpx_coll_describe(acpx_coll_t coll, char *text, size_t room);

/* Create, start, wait, free. */
int acpx_barrier(acpx_group_t group);
int acpx_bcast(acpx_group_t group, int root, acp_ga_t buffer, size_t size);
int acpx_allreduce(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t count, int op, int type);
int acpx_allgather(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t size);
int acpx_alltoall(acpx_group_t group, acp_ga_t dst, acp_ga_t src, size_t size);

/*
 * Transfers: the persistent collectives of the papers about ACP, see acp_create_bcast_direct(3).
 * Each send has another part of one array (direct), or another array, by way of a buffer of the
 * handle (buffered). All np_group ranks that are listed in group create them; the first one is the
 * root of a broadcast. All of them call acp_send_... with the same arguments: it does not wait, and
 * one send of a handle is under way at a time. The functions set errno if they fail.
 */
typedef struct acpx_coll *acp_coll_t;	/* an acpx_coll_t, or NULL */

acp_coll_t acp_create_bcast_direct(int np_group, const int *group, void *array, size_t arraysize);
acp_coll_t acp_create_bcast_buffered(int np_group, const int *group, size_t buffersize);

/* Member i has its part at arraysize / np_group * i, which others get at the same place. */
acp_coll_t acp_create_allgather_direct(int np_group, const int *group, void *array,
				       size_t arraysize);
acp_coll_t acp_create_allgather_buffered(int np_group, const int *group, size_t buffersize);

/* offset: in the array, or in the part of each member. 0 or -1. */
int acp_send_bcast_direct(acp_coll_t handle, size_t offset, size_t size);
int acp_send_allgather_direct(acp_coll_t handle, size_t offset, size_t size);

/* size: of the array, or of the part of each member, which are one behind the other. 0 or -1. */
int acp_send_bcast_buffered(acp_coll_t handle, void *array, size_t size);
int acp_send_allgather_buffered(acp_coll_t handle, void *array, size_t size);

size_t acp_wait_coll(acp_coll_t handle);	/* blocks; the size of the send, or (size_t)-1 */
int acp_inquire_coll(acp_coll_t handle);	/* 0: the send has ended, 1: not yet, or -1 */
int acp_free_coll(acp_coll_t handle);		/* 0 or -1 */

/* The same for groups; 0 or -errno. acpx_coll_test() and others serve for transfers, too. */
#define ACPX_ROOT_DRIVEN	1u	/* the sender copies between all; receivers need not send */

int acpx_coll_bcast_direct_create(acpx_group_t group, void *array, size_t arraysize,
				  unsigned int flags, acpx_coll_t *coll);
int acpx_coll_bcast_buffered_create(acpx_group_t group, size_t buffersize, acpx_coll_t *coll);
int acpx_coll_allgather_direct_create(acpx_group_t group, void *array, size_t arraysize,
				      unsigned int flags, acpx_coll_t *coll);
int acpx_coll_allgather_buffered_create(acpx_group_t group, size_t buffersize, acpx_coll_t *coll);

/* As acp_wait_coll(), with a time-out: bytes, or -errno. */
int64_t acpx_coll_receive(acpx_coll_t coll, uint64_t timeout_ns);

/*
 * A counter is a word that all ranks add to, and that its owner waits for: see
 * acpx_counter_create(3). The functions return 0 or -errno. Thread-safe, but for free.
 */
typedef struct acpx_counter *acpx_counter_t;

/* word: 8 bytes of the caller's memory, registered for atomics; ACP_GA_NULL: of its heap. */
int acpx_counter_create(acp_ga_t word, acpx_counter_t *counter);
acp_ga_t acpx_counter_ga(acpx_counter_t counter);	/* for others; or ACP_GA_NULL */

/* Add to a counter of any rank, when the order is complete. As acpx_copy_signal() of 0 bytes. */
acp_handle_t acpx_counter_add(acp_ga_t counter, uint64_t value, acp_handle_t order);

int acpx_counter_read(acpx_counter_t counter, uint64_t *value);
int acpx_counter_wait(acpx_counter_t counter, uint64_t value, uint64_t timeout_ns);	/* >= */
int acpx_counter_reset(acpx_counter_t counter, uint64_t *value);	/* to 0; value: before */
int acpx_counter_free(acpx_counter_t counter);

#ifdef __cplusplus
}
#endif

#endif /* ACP_COLL_H */
