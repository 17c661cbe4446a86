/* SPDX-License-Identifier: MIT */
/*
 * Declarations shared by the files that read the parameters of the job.
 *
 *	boot.c		all parameters together
 *	settings.c	environment variables and options
 *	nodes.c		ACP_NODES: a list of addresses
 *	addresses.c	comparison of the list with this machine
 *	placement.c	ACP_PLACEMENT: the node of each rank
 *	key.c		ACP_KEYFILE
 *	plan.c		parameters that one rank determines for all, as text
 *	names.c		addresses of nodes from their names
 *	pmix.c		launchers that provide PMIx
 *	mpmd.c		several programs that form one job
 *	drops.c		frames that were not accepted meanwhile
 *
 * Unless stated otherwise, functions that fail print a message to standard error, and are called by
 * one thread at a time (under the membership lock of join.c).
 */
#ifndef LIBACP_BOOT_H
#define LIBACP_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct acp_node_run;
struct libacp_boot;

/* ---- boot.c ---- */

/*
 * Read the parameters of the job from the options in @argv, which are removed (@argc and @argv may
 * be NULL), from the environment or from PMIx. The caller must call libacp_boot_free() in both
 * cases. Not thread-safe.
 *
 * Returns 0, or -1 after a message on standard error.
 */
int libacp_boot_load(struct libacp_boot *boot, int *argc, char ***argv);

/*
 * The first barrier has completed, so all ranks have the plan. If it came from a launcher, it
 * is the plan of the next jobs of these processes, too.
 */
void libacp_boot_agreed(void);

/* Let the time that acp_init() may take begin now. */
void libacp_boot_begin(struct libacp_boot *boot);

/* Free what libacp_boot_load() allocated and clear @boot. */
void libacp_boot_free(struct libacp_boot *boot);

/* Parse a list of nodes into nodes, colors and the node runs of @boot. Returns 0 or -1. */
int libacp_boot_nodes(struct libacp_boot *boot, const char *text);

/*
 * Parse a placement of boot->nprocs ranks on boot->nodes nodes into the rank runs of @boot.
 * Trailing nodes without ranks are removed from the list. Returns 0 or -1.
 */
int libacp_boot_placement(struct libacp_boot *boot, const char *text);

/*
 * Read the job key from the file or from @boot. The caller must wipe @key after use. Returns 0, or
 * -1 after a message on standard error.
 */
int libacp_boot_key(const struct libacp_boot *boot, uint8_t key[16]);

/* ---- settings.c ---- */

enum {
	SET_RANK, SET_NPROCS, SET_NODES, SET_PLACEMENT, SET_JOB, SET_KEYFILE, SET_INSECURE,
	SET_PORT, SET_STARTER_SIZE, SET_HEAP_SIZE, SET_QUEUE_DEPTH, SET_TIMEOUT,
	SET_INIT_TIMEOUT, SET_INTEGRITY, SET_PRIVACY, SET_MULTIRUN, SET_PORTFILE,
	SET_OFFSETRANK, SET_DEBUG, SETTINGS,
	SET_IGNORED = SETTINGS
};

struct libacp_values {
	const char *text[SETTINGS + 1];	/* NULL: not set; the last one is SET_IGNORED */
	uint64_t number[SETTINGS];
};

/* Read environment variables and options, see libacp_boot_load(). Returns 0 or -1. */
int libacp_settings_load(struct libacp_values *values, int *argc, char ***argv);

/* Warn of each unknown ACP_ variable, with the most similar known name. */
void libacp_settings_unknown(void);

/*
 * Parse a decimal number of at most @max at *text and advance *text. False if there is none; prints
 * no message.
 */
bool libacp_read_number(const char **text, uint64_t max, uint64_t *number);

/* ---- key.c ---- */

/*
 * Check that a file is a regular file that belongs to this user or root and is not accessible to
 * others. Returns 0 or -1.
 */
int libacp_check_private(int fd, const char *setting, const char *path);

/* Parse 32 hexadecimal digits, optionally followed by white space. Prints no message. */
bool libacp_parse_key(const char *text, size_t length, uint8_t key[16]);

/* ---- nodes.c ---- */

/*
 * Read a whole file as text; the caller frees it. NULL with errno set on failure, without a
 * message.
 */
char *libacp_read_text(int fd);

/*
 * Return the value of ACP_NODES as one line, read from a file if it names one; the caller frees it.
 */
char *libacp_nodes_line(const char *text);

/*
 * True if the value is a pattern that converts names to addresses: it contains '%' for the name of
 * a node.
 */
bool libacp_nodes_are_names(const char *text);

/* Return the address of a node on a color, as a run of one node. */
struct acp_node_run libacp_node_address(const struct libacp_boot *boot, uint32_t node,
					uint32_t color);

/* True if the run is of link-local IPv6 addresses. */
bool libacp_is_link_local(const struct acp_node_run *run);

/* Return the addresses of a node, one per color, separated by commas; the caller frees it. */
char *libacp_node_text(const struct libacp_boot *boot, uint32_t node);

/* ---- addresses.c ---- */

/*
 * Check the addresses of the job as far as this machine, which is @node, can tell: no node has a
 * loopback address, and no address of another node is on this machine. Returns 0 or -1.
 */
int libacp_addresses_check(const struct libacp_boot *boot, uint32_t node);

/*
 * Return the node runs in the form that the kernel expects: scope is the index of the device of the
 * link-local addresses of @node. The caller frees them. NULL if a device does not exist or memory
 * is exhausted.
 */
struct acp_node_run *libacp_addresses_scoped(const struct libacp_boot *boot, uint32_t node);

/*
 * Return the flags (IFA_F_) of an IPv6 address on a device, or 0 if it has none or does not exist.
 */
unsigned int libacp_address_flags(const uint8_t addr[16], const char *card);

/* Warn of colors that use the same device. Returns the number of warnings. */
unsigned int libacp_addresses_shared(const struct libacp_boot *boot, uint32_t node);

/*
 * After -EADDRNOTAVAIL: true if the addresses will become usable once duplicate address detection
 * ends.
 */
bool libacp_addresses_settle(const struct libacp_boot *boot, uint32_t node);

/* Check that this machine can use its addresses as @node. Returns 0 or -1. */
int libacp_addresses_usable(const struct libacp_boot *boot, uint32_t node);

/*
 * Determine which node this machine is, by its first address that is in the list of color 0. False
 * if none is.
 */
bool libacp_addresses_node(const struct libacp_boot *boot, uint32_t *node);

/* Print why the kernel refused an address. */
void libacp_addresses_explain(const struct libacp_boot *boot, uint32_t node);

/* ---- placement.c ---- */

/* Return nodes[rank] in the syntax of ACP_PLACEMENT; the caller frees it. NULL on failure. */
char *libacp_placement_text(const uint32_t *nodes, uint32_t nprocs);

/* ---- plan.c ---- */

/*
 * Parameters that must be equal on all ranks of a program and are determined by one of them: rank 0
 * if PMIx is available. The strings are allocated by malloc().
 */
struct libacp_plan {
	uint32_t first, count, total;	/* ranks of this program and of the job */
	uint32_t job;
	bool keyed;
	uint8_t key[16];
	/* in the syntax of ACP_NODES (addresses only) and ACP_PLACEMENT */
	char *nodes, *placement;
};

/*
 * Return the plan as text; NULL if memory is exhausted. The text contains the key: use
 * libacp_text_free().
 */
char *libacp_plan_text(const struct libacp_plan *plan);
/* Parse the text of a plan, and wipe it. False if it is malformed. */
bool libacp_plan_parse(struct libacp_plan *plan, char *text);
/* Generate a random key of 128 bits. Returns 0 or -1. */
int libacp_plan_key(struct libacp_plan *plan);
/* Generate a random job number. Returns 0 or -1. */
int libacp_plan_job(struct libacp_plan *plan);
/* Free the texts and wipe the key. */
void libacp_plan_free(struct libacp_plan *plan);
/* Wipe and free a text, which may be NULL. */
void libacp_text_free(char *text);

/* ---- names.c ---- */

/*
 * Resolve names of nodes to addresses. @pattern: names on each color, with '%' for the name of the
 * node. @here: index of this machine. Returns text in the syntax of ACP_NODES, which the caller
 * frees, or NULL.
 */
char *libacp_names_resolve(const char *pattern, char *const *names, uint32_t count, uint32_t here);

/* ---- pmix.c ---- */

/* True if a launcher that provides PMIx started this process. */
bool libacp_pmix_there(void);

/*
 * Connect to the launcher and get the rank and the number of ranks. Returns 0 or -1. The connection
 * persists after libacp_pmix_close(), because another attempt may follow.
 */
int libacp_pmix_open(uint32_t *rank, uint32_t *nprocs);
void libacp_pmix_close(void);

/*
 * Tell the launcher that this process ends properly, and disconnect. No effect if it is not
 * connected. Called before the last barrier of a job, and when the process ends by exit().
 */
void libacp_pmix_leave(void);

/*
 * Rank 0: get the names of the nodes and the node of each rank. The caller frees both, and
 * names[0]. Returns 0 or -1.
 */
int libacp_pmix_map(uint32_t nprocs, char ***names, uint32_t *count, uint32_t **nodes);

/*
 * Distribute the text of rank 0 to all ranks; the receivers free it. Waits for all ranks until
 * boot->init_end. Returns 0 or -1.
 */
int libacp_pmix_share(const struct libacp_boot *boot, char **text);

/*
 * Call @failed in another thread when the launcher reports the failure of a rank. NULL: stop. Waits
 * for the launcher for at most 5 s and a quarter of what is left until libacp_now() is @end.
 */
void libacp_pmix_watch(void (*failed)(void), uint64_t end);

/* Ask the launcher to end all ranks, and return. */
void libacp_pmix_abort(const char *text);

/* ---- mpmd.c ---- */

/*
 * Combine the programs of a job: nodes, placement, key and number in the plan of this program
 * become those of the job. @leader: publish the plan of this program. Waits for the other programs
 * until libacp_now() is @end. Returns 0 or -1.
 */
int libacp_mpmd_join(struct libacp_plan *plan, const char *path, bool leader, uint64_t end);

/* Remove the file of this program, which no rank reads after the first barrier. */
void libacp_mpmd_done(void);

/* ---- drops.c ---- */

/* Remember the counters of this node before acp_init() waits for other nodes. */
void libacp_drops_begin(void);

/*
 * Write how many frames were dropped since, and the likeliest cause. False if none were. Prints no
 * message.
 */
bool libacp_drops_name(char *text, size_t size);

#pragma GCC visibility pop

#endif /* LIBACP_BOOT_H */
