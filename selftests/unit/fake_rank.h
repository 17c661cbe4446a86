/* SPDX-License-Identifier: MIT */
/*
 * Declarations shared by the files of the fake basic layer; see fake_acp.h for the interface of
 * tests.
 */
#ifndef FAKE_RANK_H
#define FAKE_RANK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "acp_abi.h"
#include "acp_ga.h"
#include "fake_acp.h"
#include "core/internal.h"

#define FAKE_PAGE	4096ull
#define FAKE_PAGES	16384u		/* limit of registered pages of a rank */
#define FAKE_REGIONS	256u
#define FAKE_WORDS	256u

struct fake_page {
	uint64_t number;		/* user address / FAKE_PAGE; 0: free */
	uint32_t page, users;		/* in the arena; 0: none */
};

struct fake_region {
	acp_atkey_t key;
	uint64_t base, size;		/* address in the owner */
	unsigned int access, count;	/* count 0: free */
};

/* A rank, visible to all. */
struct fake_member {
	pid_t pid;
	bool dead, condemned;		/* condemned: killed on purpose */
	int state;			/* ACPX_PEER_, or -1: the real state */
	uint64_t starter_at, heap_at, heap_size;	/* in the arena */
	uint64_t begins, syncs, ends;	/* how often the rank has reached these points */
	struct fake_region regions[FAKE_REGIONS];
	struct fake_page pages[FAKE_PAGES];
};

/* Scheduling of turns: see fake_turn.c. */
struct fake_turns {
	bool on;
	int turn;			/* rank */
	uint64_t now, random, trace;
	bool there[FAKE_RANKS];
	uint64_t wake[FAKE_RANKS];	/* time at which a sleep ends */
};

struct fake_shared {
	struct fake_turns turns;
	int ranks, nodes, colors;
	int ghosts, haunting;		/* accesses left by dead ranks; executing them now */
	unsigned int speed, delay_us;
	uint64_t starter_size;
	struct acp_ga_layout layout;
	int cut[FAKE_RANKS];		/* by node */
	uint64_t words[FAKE_WORDS];
	struct fake_member members[FAKE_RANKS];
};

extern struct fake_shared *fake_shared;
extern int fake_rank;			/* of this process, or -1 */

/* Location of the bytes of an address. */
struct fake_place {
	int rank;
	char *fixed;			/* starter memory, heap or library page; else NULL */
	uint64_t user;			/* address in the owner */
};

bool libacp_in(void);

bool fake_is_dead(int rank);
bool fake_is_cut(int a, int b);
bool fake_errors_abort(void);
uint64_t fake_clock(void);

/* ---- fake_mem.c ---- */

/* Find the location of an address. Returns 0 or ACPX_E*. */
int fake_where(acp_ga_t ga, uint64_t size, unsigned int access, struct fake_place *place);

/*
 * Return the byte at some distance, and how many follow it contiguously; NULL: unregistered
 * meanwhile.
 */
char *fake_bytes(const struct fake_place *place, uint64_t at, uint64_t *room);

void fake_mem_create(void);	/* called before the ranks begin */
void fake_mem_destroy(void);
void fake_mem_open(void);	/* called in a rank */
void fake_mem_close(void);

/* ---- fake_turn.c: for the only thread of a rank ---- */

bool fake_in_turns(void);
void fake_turns_create(uint64_t seed);
void fake_turns_enter(void);
void fake_turn(uint64_t ns);	/* let others run; sleep for that long */
void fake_turns_leave(void);

/* ---- fake_gma.c ---- */

/* If ranks run in turns: let others run for a time, and let the own network proceed. */
void fake_pause(uint64_t ns);

void fake_gma_open(uint64_t seed);
void fake_gma_close(void);

#endif /* FAKE_RANK_H */
