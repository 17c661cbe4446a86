/* SPDX-License-Identifier: MIT */
/*
 * What the files share that read what the launcher says.
 *
 *	boot.c		all of it together: who this process is, and the job
 *	settings.c	environment variables and options
 *	nodes.c		ACP_NODES: a list of addresses
 *	placement.c	ACP_PLACEMENT: which rank is on which node
 *	key.c		ACP_KEYFILE
 *	plan.c		what one rank decides for all, as a text
 *	names.c		from names of nodes to addresses
 *	pmix.c		the engine that started this process, if it speaks PMIx
 *	parts.c		several programs that are one job
 */
#ifndef LIBACP_BOOT_H
#define LIBACP_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct libacp_boot;

/* ---- settings.c ---- */

enum {
	SET_RANK, SET_NPROCS, SET_NODES, SET_PLACEMENT, SET_JOB, SET_KEYFILE, SET_INSECURE,
	SET_PORT, SET_STARTER_SIZE, SET_HEAP_SIZE, SET_QUEUE_DEPTH, SET_TIMEOUT,
	SET_INIT_TIMEOUT, SET_INTEGRITY, SET_PRIVACY, SET_MULTIRUN, SET_PORTFILE,
	SET_OFFSETRANK, SETTINGS,
	SET_IGNORED = SETTINGS
};

struct libacp_values {
	const char *text[SETTINGS + 1];	/* NULL: not given; the last one is for SET_IGNORED */
	uint64_t number[SETTINGS];
};

/* From the environment and argv, as libacp_boot_load().  0 or -1. */
int libacp_settings_load(struct libacp_values *values, int *argc, char ***argv);

/* Digits up to max at *text, which moves behind them. */
bool libacp_read_number(const char **text, uint64_t max, uint64_t *number);

/* ---- key.c ---- */

/* 0 if it is a regular file of this user or root, closed to others; else -1, and said so. */
int libacp_check_private(int fd, const char *setting, const char *path);

/* 32 hexadecimal digits, and white space after them. */
bool libacp_parse_key(const char *text, size_t length, uint8_t key[16]);

/* ---- nodes.c ---- */

/* All of a file as a text; NULL: errno tells. */
char *libacp_read_text(int fd);

/* What ACP_NODES says, on one line: also what is in a file that it names. */
char *libacp_nodes_line(const char *text);

/* The addresses of a node, one per color, separated by commas; the caller frees it. */
char *libacp_node_text(const struct libacp_boot *boot, uint32_t node);

/* ---- placement.c ---- */

/* nodes[rank] as ACP_PLACEMENT has it, to be freed.  NULL after a line on standard error. */
char *libacp_placement_text(const uint32_t *nodes, uint32_t nprocs);

/* ---- plan.c ---- */

/*
 * What all ranks of a program must know alike, and one of them decides: the
 * first one, where an engine started them.  The texts are malloc'ed.
 */
struct libacp_plan {
	uint32_t first, count, total;	/* ranks: of this program, and of the job */
	uint32_t job;
	bool keyed;
	uint8_t key[16];
	char *nodes, *placement;	/* as ACP_NODES (addresses only) and ACP_PLACEMENT */
};

/* As a text; NULL without memory.  It has the key in it: wipe it. */
char *libacp_plan_text(const struct libacp_plan *plan);
/* From a text, which it wipes; false if it is none. */
bool libacp_plan_parse(struct libacp_plan *plan, char *text);
/* A key of 128 random bits.  0, or -1 after a line on standard error. */
int libacp_plan_key(struct libacp_plan *plan);
/* A random number of the job, which others hardly have as well.  As libacp_plan_key(). */
int libacp_plan_job(struct libacp_plan *plan);
/* Free the texts and wipe the key. */
void libacp_plan_free(struct libacp_plan *plan);
/* Wipe and free a text, which may be NULL. */
void libacp_text_free(char *text);

/* ---- names.c ---- */

/*
 * Addresses of nodes: pattern says what the names on each color are, with a
 * '%' for the node's name.  As ACP_NODES; NULL after a line on standard error.
 * here: which of them is this machine.
 */
char *libacp_names_resolve(const char *pattern, char *const *names, uint32_t count, uint32_t here);

/* ---- pmix.c ---- */

/* Has an engine started this process that speaks PMIx? */
bool libacp_pmix_there(void);

/*
 * Meet the engine: rank and number of ranks.  0, or -1 after a line on
 * standard error.  After libacp_pmix_close() it is not left before the process
 * ends by exit(), which calls libacp_pmix_leave(): another job may follow.
 */
int libacp_pmix_open(uint32_t *rank, uint32_t *nprocs);
void libacp_pmix_close(void);
void libacp_pmix_leave(void);

/* Rank 0: names of the nodes, and the node of each rank; free both (and names[0]). */
int libacp_pmix_map(uint32_t nprocs, char ***names, uint32_t *count, uint32_t **nodes);

/*
 * Give all ranks the text of rank 0, which has one; the others get it, to be
 * freed by them.  Waits for all ranks, up to timeout_ms.
 */
int libacp_pmix_share(uint32_t rank, char **text, uint32_t timeout_ms);

/* When the engine sees a rank fail, call failed, in another thread.  NULL: no more. */
void libacp_pmix_watch(void (*failed)(void));

/* End all ranks, as far as the engine is there.  Returns. */
void libacp_pmix_abort(const char *text);

/* ---- parts.c ---- */

/*
 * Join the programs of a job: nodes, placement, key and number of the plan of
 * this program become those of the job.  leader: tell the others.  Waits for
 * the others up to timeout_ms.  0 or -1.
 */
int libacp_parts_join(struct libacp_plan *plan, const char *path, bool leader,
		      uint32_t timeout_ms);
/* All ranks of the job have met: nobody reads the file of this program any more. */
void libacp_parts_done(void);

#pragma GCC visibility pop

#endif /* LIBACP_BOOT_H */
