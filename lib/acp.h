/* SPDX-License-Identifier: MIT */
/*
 * ACP: Advanced Communication Primitives - one-sided communication.
 *
 * Names and semantics of the functions acp_* follow ACP 3.0.0; extensions of
 * this implementation are named acpx_*.  The manual, acp(7) and the pages of
 * section 3, describes units, ranges, blocking, thread safety and errors.
 */
#ifndef ACP_H
#define ACP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types and constants ---- */

typedef uint64_t acp_ga_t;	/* global address, byte-granular */
typedef uint64_t acp_atkey_t;	/* address translation key of a registration */
typedef int64_t acp_handle_t;	/* a global memory access (GMA) */

#define ACP_GA_NULL	0LLU
#define ACP_ATKEY_NULL	0LLU
#define ACP_HANDLE_NULL	0x0000000000000000LLU
#define ACP_HANDLE_ALL	0xffffffffffffffffLLU
#define ACP_HANDLE_CONT	0xfffffffffffffffeLLU

/* ---- Infrastructure: collective where marked ---- */

int acp_init(int *argc, char ***argv);		/* collective; 0 or -1 */
int acp_finalize(void);				/* collective; 0 or -1 */
int acp_reset(int rank);			/* collective; 0 or -1 */
void acp_abort(const char *str);		/* ends the job and does not return */
int acp_sync(void);				/* barrier, collective; 0 or -1 */
int acp_rank(void);				/* 0 .. procs - 1, or -1 */
int acp_procs(void);				/* 1 .., or -1 */

/* ---- Global memory management: local, never waits for another rank ---- */

acp_ga_t acp_query_starter_ga(int rank);	/* or ACP_GA_NULL */
acp_atkey_t acp_register_memory(void *addr, size_t size, int color);	/* or ACP_ATKEY_NULL */
int acp_unregister_memory(acp_atkey_t atkey);	/* 0 or -1 */
acp_ga_t acp_query_ga(acp_atkey_t atkey, void *addr);	/* or ACP_GA_NULL */
void *acp_query_address(acp_ga_t ga);		/* or NULL */
int acp_query_rank(acp_ga_t ga);		/* or -1 */
int acp_query_color(acp_ga_t ga);		/* or -1 */
int acp_colors(void);				/* 1 .., or -1 */

/* ---- Global memory access: asynchronous, thread-safe ---- */

acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order);
acp_handle_t acp_cas4(acp_ga_t dst, acp_ga_t src, uint32_t oldval, uint32_t newval,
		      acp_handle_t order);
acp_handle_t acp_cas8(acp_ga_t dst, acp_ga_t src, uint64_t oldval, uint64_t newval,
		      acp_handle_t order);
acp_handle_t acp_swap4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_swap8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_add4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_add8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_xor4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_xor8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_or4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_or8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_and4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_and8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
void acp_complete(acp_handle_t handle);
int acp_inquire(acp_handle_t handle);		/* 0: complete, 1: not yet */

/* ---- Global heap: memory of any rank, which takes no part; thread-safe ---- */

acp_ga_t acp_malloc(size_t size, int rank);	/* or ACP_GA_NULL */
void acp_free(acp_ga_t ga);

/* ---- Channels: ordered messages from one rank to another ---- */

typedef struct chitem *acp_ch_t;	/* one end of a channel, or NULL */
typedef struct chreqitem *acp_request_t;	/* an outstanding operation, or NULL */

acp_ch_t acp_create_ch(int sender, int receiver);	/* called by both ranks; or NULL */
int acp_free_ch(acp_ch_t ch);			/* blocks; 0 or -1 */
acp_request_t acp_nbfree_ch(acp_ch_t ch);	/* or NULL */
acp_request_t acp_nbsend_ch(acp_ch_t ch, void *buf, size_t size);	/* or NULL */
acp_request_t acp_nbrecv_ch(acp_ch_t ch, void *buf, size_t size);	/* or NULL */
size_t acp_wait_ch(acp_request_t request);	/* blocks; bytes received, 0, or (size_t)-1 */
int acp_waitall_ch(acp_request_t *request, int count, size_t *sizes);	/* blocks; 0 or -1 */
int acp_send_ch(acp_ch_t ch, void *buf, size_t size);	/* blocks; 0 or -1 */
int acp_recv_ch(acp_ch_t ch, void *buf, size_t size);	/* blocks; 0 or -1 */

/* ---- Segmented buffers: a ring of segments mirrored from source to destination ---- */

typedef struct segbufitem *acp_segbuf_t;	/* one end, or NULL */

acp_segbuf_t acp_create_src_segbuf(int dst_rank, void *buf, size_t segsize, size_t segnum);
acp_segbuf_t acp_create_dst_segbuf(int src_rank, void *buf, size_t segsize, size_t segnum);
int acp_connect_segbuf(acp_segbuf_t segbuf);	/* blocks; 0 or 1 */
int acp_isconnected_segbuf(acp_segbuf_t segbuf);	/* 0: yes, 1: not yet, or -1 */
int acp_ready_segbuf(acp_segbuf_t segbuf);	/* destination: 0 or -1 */
int acp_ack_segbuf(acp_segbuf_t segbuf);	/* source: 0 or -1 */
int acp_isready_segbuf(acp_segbuf_t segbuf);	/* source: 0: free segment, 1: none, or -1 */
int acp_isacked_segbuf(acp_segbuf_t segbuf);	/* destination: 0: arrived, 1: not, or -1 */
int64_t acp_query_segbuf_head(acp_segbuf_t segbuf);	/* or -1 */
int64_t acp_query_segbuf_tail(acp_segbuf_t segbuf);	/* or -1 */
int64_t acp_query_segbuf_sent(acp_segbuf_t segbuf);	/* source; or -1 */
int acp_disconnect_segbuf(acp_segbuf_t segbuf);	/* 0 or -1 */
int acp_free_segbuf(acp_segbuf_t segbuf);		/* blocks; 0 or -1 */

/* ---- Workspaces: a range of bytes distributed over ranks ---- */

typedef struct acp_wsditem {
	size_t size_ws;		/* total bytes */
	size_t size_default;	/* bytes of a block, except the last one */
	size_t size_remainder;	/* bytes of the last one */
	size_t ngas;		/* blocks */
	acp_atkey_t key_data;	/* of this rank's part, or ACP_ATKEY_NULL */
	acp_ga_t ga_data;
	acp_atkey_t *keys;	/* per block: key if on this rank, or ACP_ATKEY_NULL */
	acp_ga_t *gas;		/* per block: its address */
	int *procs;		/* per block: its rank */
	int *sizes;		/* per block: its bytes, at most INT_MAX */
	void *data;		/* this rank's part, or NULL */
} acp_wsditem;

typedef struct acp_wsditem *acp_wsd_t;

#define ACP_WSD_NULL	((acp_wsd_t)(-1))

acp_wsd_t acp_create_ws(size_t size);		/* collective; or ACP_WSD_NULL */
int acp_setparams_ws(size_t proc_start, size_t size_default);	/* same on all ranks; 0 or -1 */
void acp_destroy_ws(acp_wsd_t WSD);		/* collective */
void acp_free_ws(acp_wsd_t WSD);		/* same as acp_destroy_ws */
int acp_read_ws(acp_wsd_t WSD, acp_ga_t ga, size_t size, size_t offset);	/* 0 or -1 */
int acp_write_ws(acp_wsd_t WSD, const acp_ga_t ga, size_t size, size_t offset);	/* 0 or -1 */

/* ---- Containers: blocking; errno has the reason of a failure ---- */

/* A range of bytes in global memory. */
#ifndef ACP_ELEMENT_T
#define ACP_ELEMENT_T
typedef struct {
	acp_ga_t ga;
	size_t size;
} acp_element_t;

typedef struct {
	acp_element_t first, second;	/* key and value, or two pieces */
} acp_pair_t;
#endif

/*
 * References; ga is ACP_GA_NULL if creation failed.
 *
 * Vectors, deques, lists: no other call may read or change one while a call changes it.
 */
typedef struct {
	acp_ga_t ga;
} acp_vector_t;

typedef struct {
	acp_ga_t ga;
} acp_deque_t;

typedef struct {
	acp_ga_t ga;
} acp_list_t;

typedef struct {
	acp_vector_t vector;
	int index;			/* bytes */
} acp_vector_it_t;

typedef struct {
	acp_deque_t deque;
	int index;			/* bytes, from the first one */
} acp_deque_it_t;

typedef struct {
	acp_list_t list;
	acp_ga_t elem;			/* the end: list.ga */
} acp_list_it_t;

void acp_assign_vector(acp_vector_t vector1, acp_vector_t vector2);
void acp_assign_range_vector(acp_vector_t vector, acp_vector_it_t start, acp_vector_it_t end);
acp_ga_t acp_at_vector(acp_vector_t vector, int index);
acp_vector_it_t acp_begin_vector(acp_vector_t vector);
size_t acp_capacity_vector(acp_vector_t vector);
void acp_clear_vector(acp_vector_t vector);
acp_vector_t acp_create_vector(size_t size, int rank);
void acp_destroy_vector(acp_vector_t vector);
int acp_empty_vector(acp_vector_t vector);
acp_vector_it_t acp_end_vector(acp_vector_t vector);
acp_vector_it_t acp_erase_vector(acp_vector_it_t it, size_t size);
acp_vector_it_t acp_erase_range_vector(acp_vector_it_t start, acp_vector_it_t end);
acp_vector_it_t acp_insert_vector(acp_vector_it_t it, const acp_ga_t ga, size_t size);
acp_vector_it_t acp_insert_range_vector(acp_vector_it_t it, acp_vector_it_t start,
					acp_vector_it_t end);
void acp_pop_back_vector(acp_vector_t vector, size_t size);
void acp_push_back_vector(acp_vector_t vector, const acp_ga_t ga, size_t size);
void acp_reserve_vector(acp_vector_t vector, size_t size);
size_t acp_size_vector(acp_vector_t vector);
void acp_swap_vector(acp_vector_t vector1, acp_vector_t vector2);
acp_vector_it_t acp_advance_vector_it(acp_vector_it_t it, int n);
acp_ga_t acp_dereference_vector_it(acp_vector_it_t it);
int acp_distance_vector_it(acp_vector_it_t first, acp_vector_it_t last);

void acp_assign_deque(acp_deque_t deque1, acp_deque_t deque2);
void acp_assign_range_deque(acp_deque_t deque, acp_deque_it_t start, acp_deque_it_t end);
acp_ga_t acp_at_deque(acp_deque_t deque, int index);
acp_deque_it_t acp_begin_deque(acp_deque_t deque);
size_t acp_capacity_deque(acp_deque_t deque);
void acp_clear_deque(acp_deque_t deque);
acp_deque_t acp_create_deque(size_t size, int rank);
void acp_destroy_deque(acp_deque_t deque);
int acp_empty_deque(acp_deque_t deque);
acp_deque_it_t acp_end_deque(acp_deque_t deque);
acp_deque_it_t acp_erase_deque(acp_deque_it_t it, size_t size);
acp_deque_it_t acp_erase_range_deque(acp_deque_it_t start, acp_deque_it_t end);
acp_deque_it_t acp_insert_deque(acp_deque_it_t it, const acp_ga_t ga, size_t size);
acp_deque_it_t acp_insert_range_deque(acp_deque_it_t it, acp_deque_it_t start,
				      acp_deque_it_t end);
void acp_pop_back_deque(acp_deque_t deque, size_t size);
void acp_pop_front_deque(acp_deque_t deque, size_t size);
void acp_push_back_deque(acp_deque_t deque, const acp_ga_t ga, size_t size);
void acp_push_front_deque(acp_deque_t deque, const acp_ga_t ga, size_t size);
void acp_reserve_deque(acp_deque_t deque, size_t size);
size_t acp_size_deque(acp_deque_t deque);
void acp_swap_deque(acp_deque_t deque1, acp_deque_t deque2);
acp_deque_it_t acp_advance_deque_it(acp_deque_it_t it, int n);
acp_pair_t acp_dereference_deque_it(acp_deque_it_t it, size_t size);
int acp_distance_deque_it(acp_deque_it_t first, acp_deque_it_t last);

void acp_assign_list(acp_list_t list1, acp_list_t list2);
void acp_assign_range_list(acp_list_t list, acp_list_it_t start, acp_list_it_t end);
acp_list_it_t acp_begin_list(acp_list_t list);
void acp_clear_list(acp_list_t list);
acp_list_t acp_create_list(int rank);
void acp_destroy_list(acp_list_t list);
int acp_empty_list(acp_list_t list);
acp_list_it_t acp_end_list(acp_list_t list);
acp_list_it_t acp_erase_list(acp_list_it_t it);
acp_list_it_t acp_erase_range_list(acp_list_it_t start, acp_list_it_t end);
acp_list_it_t acp_insert_list(acp_list_it_t it, const acp_element_t elem, int rank);
acp_list_it_t acp_insert_range_list(acp_list_it_t it, acp_list_it_t start, acp_list_it_t end);
void acp_merge_list(acp_list_t list1, acp_list_t list2,
		    int (*comp)(const acp_element_t elem1, const acp_element_t elem2));
void acp_pop_back_list(acp_list_t list);
void acp_pop_front_list(acp_list_t list);
void acp_push_back_list(acp_list_t list, const acp_element_t elem, int rank);
void acp_push_front_list(acp_list_t list, const acp_element_t elem, int rank);
void acp_remove_list(acp_list_t list, const acp_element_t elem);
void acp_reverse_list(acp_list_t list);
size_t acp_size_list(acp_list_t list);
void acp_sort_list(acp_list_t list,
		   int (*comp)(const acp_element_t elem1, const acp_element_t elem2));
void acp_splice_list(acp_list_it_t it1, acp_list_it_t it2);
void acp_splice_range_list(acp_list_it_t it, acp_list_it_t start, acp_list_it_t end);
void acp_swap_list(acp_list_t list1, acp_list_t list2);
void acp_unique_list(acp_list_t list);
acp_list_it_t acp_advance_list_it(acp_list_it_t it, int n);
acp_list_it_t acp_decrement_list_it(acp_list_it_t it);
acp_element_t acp_dereference_list_it(acp_list_it_t it);
int acp_distance_list_it(acp_list_it_t first, acp_list_it_t last);
acp_list_it_t acp_increment_list_it(acp_list_it_t it);

/* Sets, multisets, maps: thread-safe. */

typedef struct {
	acp_ga_t ga;
	uint64_t num_ranks, num_slots;	/* slots per member */
} acp_set_t;

typedef struct {
	acp_ga_t ga;
	uint64_t num_ranks, num_slots;	/* slots per member */
} acp_multiset_t;

typedef struct {
	acp_ga_t ga;
	uint64_t num_ranks, num_slots;	/* slots per member */
} acp_map_t;

/* The end: rank == num_ranks, elem == ACP_GA_NULL. */
typedef struct {
	acp_set_t set;
	int rank;			/* index of the member */
	int slot;			/* local iterator: -1 - slot */
	acp_ga_t elem;
} acp_set_it_t;

typedef struct {
	acp_multiset_t set;
	int rank;			/* index of the member */
	int slot;			/* local iterator: -1 - slot */
	acp_ga_t elem;
} acp_multiset_it_t;

typedef struct {
	acp_map_t map;
	int rank;			/* index of the member */
	int slot;			/* local iterator: -1 - slot */
	acp_ga_t elem;
} acp_map_it_t;

typedef struct {
	acp_map_it_t it;
	int success;
} acp_map_ib_t;			/* of ACP 3.0.0; no function uses it */

void acp_assign_set(acp_set_t set1, acp_set_t set2);
void acp_assign_local_set(acp_set_t set1, acp_set_t set2);
acp_set_it_t acp_begin_set(acp_set_t set);
acp_set_it_t acp_begin_local_set(acp_set_t set);
void acp_clear_set(acp_set_t set);
void acp_clear_local_set(acp_set_t set);
acp_set_t acp_create_set(int num_ranks, const int *ranks, int num_slots, int rank);
void acp_destroy_set(acp_set_t set);
int acp_empty_set(acp_set_t set);
int acp_empty_local_set(acp_set_t set);
acp_set_it_t acp_end_set(acp_set_t set);
acp_set_it_t acp_end_local_set(acp_set_t set);
acp_set_it_t acp_find_set(acp_set_t set, acp_element_t key);
int acp_insert_set(acp_set_t set, acp_element_t key);
void acp_merge_set(acp_set_t set1, acp_set_t set2);
void acp_merge_local_set(acp_set_t set1, acp_set_t set2);
void acp_move_set(acp_set_t set1, acp_set_t set2);
void acp_move_local_set(acp_set_t set1, acp_set_t set2);
void acp_remove_set(acp_set_t set, acp_element_t key);
size_t acp_size_set(acp_set_t set);
size_t acp_size_local_set(acp_set_t set);
void acp_swap_set(acp_set_t set1, acp_set_t set2);
acp_element_t acp_dereference_set_it(acp_set_it_t it);
acp_set_it_t acp_increment_set_it(acp_set_it_t it);

void acp_assign_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_assign_local_multiset(acp_multiset_t set1, acp_multiset_t set2);
acp_multiset_it_t acp_begin_multiset(acp_multiset_t set);
acp_multiset_it_t acp_begin_local_multiset(acp_multiset_t set);
void acp_clear_multiset(acp_multiset_t set);
void acp_clear_local_multiset(acp_multiset_t set);
acp_multiset_t acp_create_multiset(int num_ranks, const int *ranks, int num_slots, int rank);
void acp_destroy_multiset(acp_multiset_t set);
int acp_empty_multiset(acp_multiset_t set);
int acp_empty_local_multiset(acp_multiset_t set);
acp_multiset_it_t acp_end_multiset(acp_multiset_t set);
acp_multiset_it_t acp_end_local_multiset(acp_multiset_t set);
acp_multiset_it_t acp_find_multiset(acp_multiset_t set, acp_element_t key);
int acp_insert_multiset(acp_multiset_t set, acp_element_t key);
void acp_merge_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_merge_local_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_move_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_move_local_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_remove_multiset(acp_multiset_t set, acp_element_t key);
void acp_remove_all_multiset(acp_multiset_t set, acp_element_t key);
uint64_t acp_retrieve_multiset(acp_multiset_t set, acp_element_t key);
size_t acp_size_multiset(acp_multiset_t set);
size_t acp_size_local_multiset(acp_multiset_t set);
void acp_swap_multiset(acp_multiset_t set1, acp_multiset_t set2);
acp_element_t acp_dereference_multiset_it(acp_multiset_it_t it);
acp_multiset_it_t acp_increment_multiset_it(acp_multiset_it_t it);

void acp_assign_map(acp_map_t map1, acp_map_t map2);
void acp_assign_local_map(acp_map_t map1, acp_map_t map2);
acp_map_it_t acp_begin_map(acp_map_t map);
acp_map_it_t acp_begin_local_map(acp_map_t map);
void acp_clear_map(acp_map_t map);
void acp_clear_local_map(acp_map_t map);
acp_map_t acp_create_map(int num_ranks, const int *ranks, int num_slots, int rank);
void acp_destroy_map(acp_map_t map);
int acp_empty_map(acp_map_t map);
int acp_empty_local_map(acp_map_t map);
acp_map_it_t acp_end_map(acp_map_t map);
acp_map_it_t acp_end_local_map(acp_map_t map);
acp_map_it_t acp_find_map(acp_map_t map, acp_element_t key);
int acp_insert_map(acp_map_t map, acp_pair_t pair);
void acp_merge_map(acp_map_t map1, acp_map_t map2);
void acp_merge_local_map(acp_map_t map1, acp_map_t map2);
void acp_move_map(acp_map_t map1, acp_map_t map2);
void acp_move_local_map(acp_map_t map1, acp_map_t map2);
void acp_remove_map(acp_map_t map, acp_element_t key);
size_t acp_retrieve_map(acp_map_t map, acp_pair_t pair);
size_t acp_size_map(acp_map_t map);
size_t acp_size_local_map(acp_map_t map);
void acp_swap_map(acp_map_t map1, acp_map_t map2);
acp_pair_t acp_dereference_map_it(acp_map_it_t it);
acp_map_it_t acp_increment_map_it(acp_map_it_t it);

/*
 * The type as an argument: acp_insert(list, it, elem, rank) is
 * acp_insert_list(it, elem, rank), acp_advance(list_it, it, n) is
 * acp_advance_list_it(it, n).
 */
#define acp_assign(type, ...)		acp_assign_##type(__VA_ARGS__)
#define acp_assign_range(type, ...)	acp_assign_range_##type(__VA_ARGS__)
#define acp_at(type, ...)		acp_at_##type(__VA_ARGS__)
#define acp_begin(type, ...)		acp_begin_##type(__VA_ARGS__)
#define acp_capacity(type, ...)		acp_capacity_##type(__VA_ARGS__)
#define acp_clear(type, ...)		acp_clear_##type(__VA_ARGS__)
#define acp_create(type, ...)		acp_create_##type(__VA_ARGS__)
#define acp_destroy(type, ...)		acp_destroy_##type(__VA_ARGS__)
#define acp_empty(type, ...)		acp_empty_##type(__VA_ARGS__)
#define acp_end(type, ...)		acp_end_##type(__VA_ARGS__)
#define acp_erase(type, ...)		acp_erase_##type(__VA_ARGS__)
#define acp_erase_range(type, ...)	acp_erase_range_##type(__VA_ARGS__)
#define acp_find(type, ...)		acp_find_##type(__VA_ARGS__)
#define acp_insert(type, ...)		acp_insert_##type(__VA_ARGS__)
#define acp_insert_range(type, ...)	acp_insert_range_##type(__VA_ARGS__)
#define acp_merge(type, ...)		acp_merge_##type(__VA_ARGS__)
#define acp_pop_back(type, ...)		acp_pop_back_##type(__VA_ARGS__)
#define acp_pop_front(type, ...)	acp_pop_front_##type(__VA_ARGS__)
#define acp_push_back(type, ...)	acp_push_back_##type(__VA_ARGS__)
#define acp_push_front(type, ...)	acp_push_front_##type(__VA_ARGS__)
#define acp_remove(type, ...)		acp_remove_##type(__VA_ARGS__)
#define acp_reserve(type, ...)		acp_reserve_##type(__VA_ARGS__)
#define acp_reverse(type, ...)		acp_reverse_##type(__VA_ARGS__)
#define acp_size(type, ...)		acp_size_##type(__VA_ARGS__)
#define acp_sort(type, ...)		acp_sort_##type(__VA_ARGS__)
#define acp_splice(type, ...)		acp_splice_##type(__VA_ARGS__)
#define acp_swap(type, ...)		acp_swap_##type(__VA_ARGS__)
#define acp_unique(type, ...)		acp_unique_##type(__VA_ARGS__)
#define acp_advance(type, ...)		acp_advance_##type(__VA_ARGS__)
#define acp_decrement(type, ...)	acp_decrement_##type(__VA_ARGS__)
#define acp_dereference(type, ...)	acp_dereference_##type(__VA_ARGS__)
#define acp_distance(type, ...)		acp_distance_##type(__VA_ARGS__)
#define acp_increment(type, ...)	acp_increment_##type(__VA_ARGS__)

/* ---- Extensions of this implementation ---- */

/* Statuses of failed accesses; 0 is success. */
enum {
	ACPX_EOP = 1,		/* invalid operation or argument */
	ACPX_EGA = 2,		/* the address belongs to no rank */
	ACPX_ESTAG = 3,		/* the region was never registered, or is no longer */
	ACPX_ERANGE = 4,	/* exceeds the region */
	ACPX_EACCESS = 5,	/* the region does not grant this access */
	ACPX_EALIGN = 6,	/* the address of an atomic is not aligned */
	ACPX_ERANK = 7,		/* the rank does not exist (any more) */
	ACPX_ENOMEM = 8,	/* out of memory */
	ACPX_ETIMEOUT = 9,	/* a peer was silent for the time-out */
	ACPX_EPEER = 10,	/* a peer was restarted, or its settings differ */
	ACPX_EROUTE = 11,	/* no route to the peer */
	ACPX_EORDER = 12,	/* a GMA that this one waited for failed */
	ACPX_EABORT = 13,	/* the job or the rank was ended */
	ACPX_EAGAIN = 14,	/* no room: see acpx_copy_indirect(3), acpx_send(3) */
	ACPX_ECHAIN = 15,	/* a chain of descriptors is wrong: see acpx_copy_scatter(3) */
	ACPX_EUNKNOWN = 100,	/* too old: its status is no longer kept */
	ACPX_EPENDING = 101,	/* not complete yet */
	ACPX_ECORRUPT = 102	/* memory of the library was overwritten */
};

/* State of a rank as known to this node, without communication. */
enum {
	ACPX_PEER_UNKNOWN = 0,	/* no communication with its node yet */
	ACPX_PEER_UP = 1,	/* its node answered the last communication */
	ACPX_PEER_DOWN = 2,	/* it left, or its node is silent or unreachable */
	ACPX_PEER_BACK = 3	/* its node answers again after it was down or restarted */
};

enum {
	ACPX_EVENT_DOWN = 1,	/* a node is lost on a color */
	ACPX_EVENT_UP = 2,	/* a lost node answers again */
	ACPX_EVENT_LEFT = 3,	/* a rank ended without acp_finalize */
	ACPX_EVENT_BROKEN = 4	/* no further acp_sync can complete: a rank is missing */
};

struct acpx_event {
	int type;		/* ACPX_EVENT_ */
	int reason;		/* ACPX_EVENT_DOWN: ACPX_E*, otherwise 0 */
	int node;		/* number of the node; ACPX_EVENT_BROKEN: -1 */
	int color;		/* ACPX_EVENT_DOWN, UP; otherwise -1 */
	int rank;		/* ACPX_EVENT_LEFT; otherwise -1 */
	unsigned int missed;	/* older events that were not read in time */
};

#define ACPX_ERRORS_ABORT	0	/* a failed GMA ends the job in acp_complete (default) */
#define ACPX_ERRORS_RETURN	1	/* the program checks acpx_status */

#define ACPX_ACCESS_READ	1u	/* other ranks may read */
#define ACPX_ACCESS_WRITE	2u	/* ... write */
#define ACPX_ACCESS_ATOMIC	4u	/* ... do atomics */
#define ACPX_ACCESS_RO		8u	/* read-only memory, also for its owner */
#define ACPX_ACCESS_DONTFORK	16u	/* children do not get the whole pages of it */

/* ---- Copies of several blocks as one access: see acpx_copy_strided(3) ---- */

/*
 * Copy block i < count, of "block" bytes, from src + i * src_stride to dst + i * dst_stride.
 * Strides are in bytes, signed, and their magnitudes are not less than a block.
 */
acp_handle_t acpx_copy_strided(acp_ga_t dst, acp_ga_t src, size_t block, size_t count,
			       int64_t dst_stride, int64_t src_stride, acp_handle_t order);

#define ACPX_COPYV_MAX	1024	/* pieces */

struct acpx_iov {
	acp_ga_t dst, src;
	size_t size;		/* bytes */
};

acp_handle_t acpx_copyv(const struct acpx_iov *v, size_t n, acp_handle_t order);

/* A copy; the 8 bytes at "flag" change when the whole copy is in memory. */
#define ACPX_SIGNAL_SET	0	/* they become operand */
#define ACPX_SIGNAL_ADD	1	/* operand is added */
#define ACPX_SIGNAL_REVOKE 2	/* with ADD: if the order has failed, revoke the flag instead */

#define ACPX_REVOKED	(UINT64_C(1) << 62)	/* what revoked flags are set to */

acp_handle_t acpx_copy_signal(acp_ga_t dst, acp_ga_t src, size_t size, acp_ga_t flag,
			      uint64_t operand, int op, acp_handle_t order);

/*
 * Copy to where a pointer of the receiving rank says: see acpx_copy_indirect(3). pointer is the
 * global address of an acp_ga_t, or with ACPX_ADVANCE of a struct acpx_buffer, aligned to 8.
 */
#define ACPX_ADVANCE	1	/* append to the buffer; full: the access ends with ACPX_EAGAIN */
#define ACPX_RETRY	2	/* ... but only after ACP_TIMEOUT; until then it is tried again */
#define ACPX_RENDEZVOUS	4	/* acpx_send: send the bytes when a receive has matched */

struct acpx_buffer {
	acp_ga_t next, end;	/* of memory of the same rank; next is a multiple of 8 */
};

acp_handle_t acpx_copy_indirect(acp_ga_t pointer, acp_ga_t src, size_t size, int flags,
				acp_handle_t order);

/*
 * Copy along a chain of descriptors, all of them and all blocks memory of one rank, which may
 * change them at any time: see acpx_copy_scatter(3). chain is the global address of the first
 * descriptor, aligned to 8. Block i < count of a descriptor begins at address + i * stride.
 */
#define ACPX_CHAIN_MAX		64	/* descriptors that one access uses */
#define ACPX_CHAIN_SCATTER	1u	/* acpx_copy_scatter may write to the blocks */
#define ACPX_CHAIN_GATHER	2u	/* acpx_copy_gather may read them */

struct acpx_descriptor {
	acp_ga_t address;	/* of block 0 */
	int64_t stride;		/* bytes, signed; its magnitude is not less than a block */
	uint32_t block;		/* bytes of a block, not 0 */
	uint32_t count;		/* number of blocks, not 0 */
	acp_ga_t next;		/* the next descriptor, aligned to 8, or ACP_GA_NULL */
	uint32_t flags;		/* ACPX_CHAIN_SCATTER, ACPX_CHAIN_GATHER or both */
	uint32_t reserved;	/* 0 */
};

/* The bytes at src go to the blocks of the chain, in their order; later blocks are not used. */
acp_handle_t acpx_copy_scatter(acp_ga_t chain, acp_ga_t src, size_t size, acp_handle_t order);

/* The first bytes of the blocks go to dst. */
acp_handle_t acpx_copy_gather(acp_ga_t dst, acp_ga_t chain, size_t size, acp_handle_t order);

/*
 * Complete when the 8 bytes at "word", in memory of the calling rank, have reached value:
 * (int64_t)(word - value) >= 0. Nothing is changed. Accesses whose order is the handle start then,
 * in the kernel, whatever the process does: see acpx_wait_word(3). Blocks only if the queue is
 * full, or until an order of another context is complete.
 */
acp_handle_t acpx_wait_word(acp_ga_t word, uint64_t value, acp_handle_t order);

/*
 * A mailbox is memory of a rank's heap that receives messages of all ranks: see
 * acpx_mailbox_create(3). The functions return 0 or more, or -errno; those that receive wait for at
 * most timeout_ns nanoseconds.
 */
typedef struct acpx_mailbox *acpx_mailbox_t;

struct acpx_message {
	const void *data;
	size_t size;		/* bytes */
	uint64_t tag;		/* that of acpx_send */
	int rank;		/* of the sender */
};

int acpx_mailbox_create(size_t bytes, int flags, acpx_mailbox_t *mailbox);	/* flags: 0 */
acp_ga_t acpx_mailbox_ga(acpx_mailbox_t mailbox);	/* for senders; or ACP_GA_NULL */
int acpx_mailbox_free(acpx_mailbox_t mailbox);		/* blocks */

/*
 * flags: 0, or a sum of
 *	ACPX_RETRY	if the mailbox is full, it is tried again until ACP_TIMEOUT
 *	ACPX_RENDEZVOUS	to a match list, the bytes are sent when a posted receive has matched the
 *			message, however long that takes; then the access is complete
 */
acp_handle_t acpx_send(acp_ga_t mailbox, acp_ga_t src, size_t size, uint64_t tag, int flags,
		       acp_handle_t order);

/* Copy, and then send an empty message with the tag; flags: 0 or ACPX_RETRY, as for acpx_send. */
acp_handle_t acpx_copy_notify(acp_ga_t dst, acp_ga_t src, size_t size, acp_ga_t mailbox,
			      uint64_t tag, int flags, acp_handle_t order);

/* Receive a message; message: NULL, or what it is. peek leaves it there. Returns its size. */
int64_t acpx_recv(acpx_mailbox_t mailbox, void *buffer, size_t room, struct acpx_message *message,
		  uint64_t timeout_ns);
int64_t acpx_peek(acpx_mailbox_t mailbox, void *buffer, size_t room, struct acpx_message *message,
		  uint64_t timeout_ns);
int acpx_probe(acpx_mailbox_t mailbox, struct acpx_message *message, uint64_t timeout_ns);

/* 1: look for a message now; 0: poll() of acpx_event_fd() reports POLLIN when there may be one. */
int acpx_mailbox_arm(const acpx_mailbox_t *mailboxes, size_t count);

/* Receive a message where it is; its memory belongs to the caller until it is returned. */
int acpx_recv_lend(acpx_mailbox_t mailbox, struct acpx_message *message, uint64_t timeout_ns);
int acpx_recv_return(acpx_mailbox_t mailbox, const struct acpx_message *message);

/*
 * A match list receives messages into the buffers of posted receives, by sender and tag: see
 * acpx_match_create(3). The functions return 0 or more, or -errno; those that wait do so for at
 * most timeout_ns nanoseconds.
 */
typedef struct acpx_match *acpx_match_t;
typedef struct acpx_receive *acpx_receive_t;

#define ACPX_ANY_RANK	(-1)
#define ACPX_MASKS_ANY	0xffffffffu

struct acpx_match_limits {
	size_t bytes;		/* memory for messages that no posted receive has matched */
	uint32_t receives;	/* posted at a time */
	uint32_t messages;	/* kept at a time */
	uint32_t masks;		/* how many of the following are used; 0: receives ignore no bits */
				/* ACPX_MASKS_ANY: any; the list learns 15 values, and all bits */
	uint64_t mask[4];	/* bits of tags that a receive may ignore */
};

int acpx_match_create(const struct acpx_match_limits *limits, acpx_match_t *match);
acp_ga_t acpx_match_ga(acpx_match_t match);	/* for acpx_send; or ACP_GA_NULL */
int acpx_match_free(acpx_match_t match);

/*
 * Receive a message of this rank, or of ACPX_ANY_RANK, whose tag is this in all bits but "ignore".
 * buffer: global memory of the caller
 */
int acpx_post(acpx_match_t match, int rank, uint64_t tag, uint64_t ignore, acp_ga_t buffer,
	      size_t room, acpx_receive_t *receive);

/*
 * Wait for the end of a receive, which is freed, unless this returns -ETIMEDOUT. Returns the size
 * of the message: if it is more than the room of the buffer, that has the first bytes.
 */
int64_t acpx_receive_wait(acpx_receive_t receive, struct acpx_message *message,
			  uint64_t timeout_ns);
int acpx_receive_cancel(acpx_receive_t receive);	/* and free it; -EBUSY: too late */

/* 1: one may have ended; 0: poll() of acpx_event_fd() reports POLLIN when one may have. */
int acpx_receive_arm(const acpx_receive_t *receives, size_t count);

/* Look for a kept message; mprobe takes it: acpx_mrecv copies it and frees its memory. */
int acpx_match_probe(acpx_match_t match, int rank, uint64_t tag, uint64_t ignore,
		     struct acpx_message *message, uint64_t timeout_ns);
int acpx_mprobe(acpx_match_t match, int rank, uint64_t tag, uint64_t ignore,
		struct acpx_message *message, uint64_t timeout_ns);
int64_t acpx_mrecv(acpx_match_t match, const struct acpx_message *message, void *buffer,
		   size_t room);

/*
 * Groups of ranks: see acpx_group_world(3). They return 0, a number, or -errno; only the members
 * take part, and only in acpx_group_split, which waits for all of them. A group does not change:
 * any number of threads may use it at the same time, but none after acpx_group_free.
 */
typedef struct acpx_group *acpx_group_t;

#define ACPX_NO_COLOR	(-1)

int acpx_group_world(acpx_group_t *group);	/* all ranks of the job */
int acpx_group_strided(int start, int stride, int count, acpx_group_t *group);
int acpx_group_list(const int *ranks, int count, acpx_group_t *group);	/* in this order */

/* Members with the same color, from 0, ordered by key and number; ACPX_NO_COLOR: *part is NULL. */
int acpx_group_split(acpx_group_t group, int color, int key, acpx_group_t *part);

int acpx_group_size(acpx_group_t group);
int acpx_group_rank(acpx_group_t group);	/* number of the caller, or -ENOENT */
int acpx_group_translate(acpx_group_t group, int number);	/* rank of a member */
int acpx_group_find(acpx_group_t group, int rank);	/* number of a rank, or -ENOENT */
int acpx_group_free(acpx_group_t group);

/* A context is a queue of accesses for one thread: see acpx_context_create(3); 0 or -errno. */
typedef struct acpx_context *acpx_context_t;

int acpx_context_create(unsigned int depth, acpx_context_t *context);
int acpx_context_bind(acpx_context_t context);	/* the calling thread; NULL: to no context */
int acpx_context_destroy(acpx_context_t context);	/* blocks */

int acpx_status(acp_handle_t handle);		/* 0 or ACPX_E* */
const char *acpx_strerror(int status);		/* one line of English */
int acpx_set_error_mode(int mode);		/* previous mode, or -1 */
int acpx_peer_state(int rank);			/* ACPX_PEER_*, or -1 */
int acpx_query_node(int rank);			/* number of its node, or -1 */
/*
 * For poll: POLLPRI if there is an event, POLLIN: see acpx_mailbox_arm, acpx_receive_arm,
 * acpx_access_arm; or -1.
 */
int acpx_event_fd(void);

/*
 * 1: the access is complete; 0: poll() of acpx_event_fd() reports POLLIN when it is; or -errno.
 * ACP_HANDLE_NULL: no access. Thread-safe; each call replaces the one before it.
 */
int acpx_access_arm(acp_handle_t handle);

int acpx_next_event(struct acpx_event *event);	/* 1: stored, 0: none, or -1 */
acp_ga_t acpx_query_heap_ga(int rank);		/* or ACP_GA_NULL */
size_t acpx_starter_size(void);			/* bytes of the own rank */
size_t acpx_heap_size(void);			/* bytes of the own rank */
acp_atkey_t acpx_register_memory(void *addr, size_t size, int color, unsigned int access);

/* Comparison of the word at a flag's address with a value; unsigned without SIGNED. */
enum {
	ACPX_CMP_EQ = 1,
	ACPX_CMP_NE = 2,
	ACPX_CMP_GT = 3,	/* word > value */
	ACPX_CMP_GE = 4,
	ACPX_CMP_LT = 5,
	ACPX_CMP_LE = 6,
	ACPX_CMP_SIGNED = 8	/* flag: ACPX_CMP_GT | ACPX_CMP_SIGNED */
};

#define ACPX_FOREVER	0xffffffffffffffffLLU	/* nanoseconds */

/* A condition on a word of the caller's memory that other ranks change. */
struct acpx_condition {
	const volatile void *flag;	/* aligned to its size; NULL: the condition is ignored */
	uint64_t value;
	int size;			/* of the word: 4 or 8 bytes */
	int compare;			/* ACPX_CMP_ */
};

/* Wait for at most timeout_ns nanoseconds: 0 or more, or -errno. */
int acpx_wait_until(const volatile void *flag, size_t size, int compare, uint64_t value,
		    uint64_t timeout_ns);
int acpx_wait_until_all(const struct acpx_condition *conditions, size_t count,
			uint64_t timeout_ns);
int64_t acpx_wait_until_any(const struct acpx_condition *conditions, size_t count,
			    uint64_t timeout_ns);		/* index of the first that holds */
int64_t acpx_wait_until_some(const struct acpx_condition *conditions, size_t count,
			     size_t *indices, uint64_t timeout_ns);	/* number that hold */

/* Test without waiting. */
int acpx_test(const volatile void *flag, size_t size, int compare, uint64_t value);
int acpx_test_all(const struct acpx_condition *conditions, size_t count);
int64_t acpx_test_any(const struct acpx_condition *conditions, size_t count);
int64_t acpx_test_some(const struct acpx_condition *conditions, size_t count, size_t *indices);

/* State of a heap at some moment. */
struct acpx_heap_stats {
	size_t size;		/* bytes for blocks and their overhead, 16 bytes each */
	size_t used;		/* bytes of these in use */
	size_t blocks;		/* number of allocated blocks */
};

int acpx_free(acp_ga_t ga);			/* 0 or -errno */
int acpx_heap_check(int rank);			/* 0 or ACPX_E* */
int acpx_heap_stats(int rank, struct acpx_heap_stats *stats);	/* 0 or ACPX_E* */

#ifdef __cplusplus
}
#endif

#include "acp_coll.h"

#endif /* ACP_H */
