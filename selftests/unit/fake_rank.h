/* SPDX-License-Identifier: MIT */
/* What the files of the played basic layer share; see fake_acp.h for what tests use. */
#ifndef FAKE_RANK_H
#define FAKE_RANK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "acp_abi.h"
#include "acp_ga.h"
#include "fake_acp.h"
#include "middle.h"

#define FAKE_PAGE	4096ull
#define FAKE_PAGES	16384u		/* that a rank can register */
#define FAKE_REGIONS	256u
#define FAKE_WORDS	256u

struct fake_page {
	uint64_t number;		/* user address / FAKE_PAGE; 0: free */
	uint32_t page, users;		/* in the arena; 0: not there */
};

struct fake_region {
	acp_atkey_t key;
	uint64_t base, size;		/* where its owner has it */
	unsigned int access, count;	/* count 0: no region */
};

/* A rank, as all see it. */
struct fake_member {
	pid_t pid;
	bool dead, condemned;		/* condemned: killed on purpose */
	int state;			/* ACPX_PEER_, or -1: as it is */
	uint64_t starter_at, heap_at, heap_size;	/* in the arena */
	uint64_t begins, syncs, ends;	/* how often it has come there */
	struct fake_region regions[FAKE_REGIONS];
	struct fake_page pages[FAKE_PAGES];
};

struct fake_shared {
	int ranks, nodes, colors;
	int ghosts, haunting;		/* what the dead left behind; and is just at it */
	unsigned int speed, delay_us;
	uint64_t starter_size;
	struct acp_ga_layout layout;
	int cut[FAKE_RANKS];		/* by node */
	uint64_t words[FAKE_WORDS];
	struct fake_member members[FAKE_RANKS];
};

extern struct fake_shared *fake_shared;
extern int fake_rank;			/* of this process, or -1 */

/* Where the bytes of an address are. */
struct fake_place {
	int rank;
	char *fixed;			/* starter, heap, library page; else NULL */
	uint64_t user;			/* address in its owner */
};

bool libacp_in(void);

bool fake_is_dead(int rank);
bool fake_is_cut(int a, int b);
bool fake_errors_abort(void);
uint64_t fake_clock(void);

/* ---- fake_mem.c ---- */

/* 0 or ACPX_E*. */
int fake_where(acp_ga_t ga, uint64_t size, unsigned int access, struct fake_place *place);

/* The byte at some distance, and how many follow it; NULL: unregistered meanwhile. */
char *fake_bytes(const struct fake_place *place, uint64_t at, uint64_t *room);

void fake_mem_create(void);	/* for all ranks, before these begin */
void fake_mem_destroy(void);
void fake_mem_open(void);	/* in a rank */
void fake_mem_close(void);

/* ---- fake_gma.c ---- */

void fake_gma_open(uint64_t seed);
void fake_gma_close(void);

#endif /* FAKE_RANK_H */
