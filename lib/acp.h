/* SPDX-License-Identifier: MIT */
/*
 * ACP: Advanced Communication Primitives - one-sided communication.
 *
 * Names and semantics of the functions acp_* follow ACP 3.0.0; what this
 * implementation adds is called acpx_*.  The manual pages acp(7) and those
 * of section 3 say more: units, ranges, blocking, thread safety, errors.
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
typedef uint64_t acp_atkey_t;	/* address translation key: one registration */
typedef int64_t acp_handle_t;	/* a global memory access (GMA) */

#define ACP_GA_NULL	0LLU
#define ACP_ATKEY_NULL	0LLU
#define ACP_HANDLE_NULL	0x0000000000000000LLU
#define ACP_HANDLE_ALL	0xffffffffffffffffLLU
#define ACP_HANDLE_CONT	0xfffffffffffffffeLLU

/* ---- Infrastructure: collective where said so ---- */

int acp_init(int *argc, char ***argv);		/* collective; 0 or -1 */
int acp_finalize(void);				/* collective; 0 or -1 */
int acp_reset(int rank);			/* collective; 0 or -1 */
void acp_abort(const char *str);		/* ends the job, does not return */
int acp_sync(void);				/* collective barrier; 0 or -1 */
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

/* ---- Additions of this implementation ---- */

/* Reasons for failure; 0 is success. */
enum {
	ACPX_EOP = 1,		/* unknown operation or impossible argument */
	ACPX_EGA = 2,		/* not an address of any rank */
	ACPX_ESTAG = 3,		/* no such region: never registered, or no longer */
	ACPX_ERANGE = 4,	/* reaches beyond its region */
	ACPX_EACCESS = 5,	/* the region does not grant this */
	ACPX_EALIGN = 6,	/* atomic not aligned to its size */
	ACPX_ERANK = 7,		/* that rank is not there (any more) */
	ACPX_ENOMEM = 8,	/* out of memory */
	ACPX_ETIMEOUT = 9,	/* a peer has been silent too long */
	ACPX_EPEER = 10,	/* a peer was restarted, or runs another set-up */
	ACPX_EROUTE = 11,	/* no way to the peer */
	ACPX_EORDER = 12,	/* a GMA this one waited for failed */
	ACPX_EABORT = 13,	/* the job or the rank was ended */
	ACPX_EUNKNOWN = 100,	/* too old a handle: its status is no longer kept */
	ACPX_EPENDING = 101	/* not complete yet */
};

/* What is known of another rank, without asking it. */
enum {
	ACPX_PEER_UNKNOWN = 0,	/* nothing: nobody here has spoken to its node */
	ACPX_PEER_UP = 1,	/* its node answered, when last spoken to */
	ACPX_PEER_DOWN = 2,	/* it left, or its node is silent or out of reach */
	ACPX_PEER_BACK = 3	/* its node answers again, after it was down or restarted */
};

enum {
	ACPX_EVENT_DOWN = 1,	/* a node is lost on a color */
	ACPX_EVENT_UP = 2,	/* it answers again */
	ACPX_EVENT_LEFT = 3,	/* a rank ended without acp_finalize */
	ACPX_EVENT_BROKEN = 4	/* there will be no acp_sync any more: somebody is missing */
};

struct acpx_event {
	int type;		/* ACPX_EVENT_ */
	int reason;		/* ACPX_EVENT_DOWN: ACPX_E*, else 0 */
	int node;		/* its number; ACPX_EVENT_BROKEN: -1 */
	int color;		/* ACPX_EVENT_DOWN, UP; else -1 */
	int rank;		/* ACPX_EVENT_LEFT; else -1 */
	unsigned int missed;	/* older events that were not read in time */
};

#define ACPX_ERRORS_ABORT	0	/* acp_complete of a failed GMA ends the job (default) */
#define ACPX_ERRORS_RETURN	1	/* the program asks acpx_status */

#define ACPX_ACCESS_READ	1u	/* other ranks may read */
#define ACPX_ACCESS_WRITE	2u	/* ... write */
#define ACPX_ACCESS_ATOMIC	4u	/* ... do atomics */
#define ACPX_ACCESS_RO		8u	/* read-only memory, for its owner too */

int acpx_status(acp_handle_t handle);		/* 0 or ACPX_E* */
const char *acpx_strerror(int status);		/* one line of English */
int acpx_set_error_mode(int mode);		/* former mode, or -1 */
int acpx_peer_state(int rank);			/* ACPX_PEER_*, or -1 */
int acpx_query_node(int rank);			/* number of its node, or -1 */
int acpx_event_fd(void);			/* for poll: POLLPRI if there are events; or -1 */
int acpx_next_event(struct acpx_event *event);	/* 1: here it is, 0: none, or -1 */
acp_ga_t acpx_query_heap_ga(int rank);		/* or ACP_GA_NULL */
size_t acpx_starter_size(void);			/* bytes, own rank */
size_t acpx_heap_size(void);			/* bytes, own rank */
acp_atkey_t acpx_register_memory(void *addr, size_t size, int color, unsigned int access);

#ifdef __cplusplus
}
#endif

#endif /* ACP_H */
