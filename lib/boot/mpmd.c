// SPDX-License-Identifier: MIT
/*
 * Several programs, each with its own launcher, that form one job.
 *
 * They communicate by files: the first rank of each program writes its plan to PORTFILE.N, where N
 * is its rank in the job. The first ranks, and all ranks without PMIx, read all of these files. The
 * files contain the key and are accessible to the user only. They are removed after the first
 * barrier.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/boot.h"
#include "core/internal.h"
#include "core/job.h"
#include "core/parameters.h"

#define LOOK_NS	20000000	/* interval of checks whether a file exists */

static char *own_file;		/* to be removed; guarded by membership (join.c) */

/* ---- Files ---- */

static char *name_file(const char *path, uint32_t first, const char *suffix)
{
	char *name;

	if (asprintf(&name, "%s.%u%s", path, first, suffix) < 0) {
		libacp_error("no memory for the name of a file");
		return NULL;
	}
	return name;
}

static int write_new(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	size_t length = strlen(text), done = 0;
	ssize_t wrote = 0;

	if (fd < 0)
		return -1;
	for (; done < length && wrote >= 0; done += (size_t)(wrote > 0 ? wrote : 0)) {
		wrote = write(fd, text + done, length - done);
		if (wrote < 0 && errno == EINTR)
			wrote = 0;
	}
	if (wrote < 0 || fsync(fd) < 0) {
		int saved = errno;

		close(fd);
		errno = saved;
		return -1;
	}
	return close(fd);
}

/* Publish the complete file atomically: link() also refuses to replace a file of another run. */
static int publish(const struct libacp_plan *plan, const char *path)
{
	char *fresh = name_file(path, plan->first, ".new");
	char *name = name_file(path, plan->first, "");
	char *text = libacp_plan_text(plan);
	int result = -1;

	if (!fresh || !name || !text)
		goto free;
	unlink(fresh);
	if (write_new(fresh, text) < 0 || link(fresh, name) < 0) {
		libacp_error("ACP_PORTFILE: cannot create %s: %s%s", name, strerror(errno),
			     errno == EEXIST ? " (remove it if it is of a former run)" : "");
	} else {
		own_file = name;
		name = NULL;
		result = 0;
	}
	unlink(fresh);
free:
	free(fresh);
	free(name);
	libacp_text_free(text);
	return result;
}

void libacp_mpmd_done(void)
{
	if (own_file)
		unlink(own_file);
	free(own_file);
	own_file = NULL;
}

/* Wait until a file exists and return its text. */
static char *await_file(const char *name, uint64_t until, uint32_t first)
{
	char *text;
	int fd;

	while ((fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) < 0) {
		if (errno != ENOENT || libacp_now() >= until)
			break;
		libacp_sleep(LOOK_NS);
	}
	if (fd < 0 && errno == ENOENT) {
		libacp_error("the program with rank %u of the job did not come in time (ACP_INIT_TIMEOUT, ACP_PORTFILE, ACP_OFFSETRANK)",
			     first);
		return NULL;
	}
	if (fd < 0) {
		libacp_error("ACP_PORTFILE: cannot open %s: %s", name, strerror(errno));
		return NULL;
	}
	text = libacp_check_private(fd, "ACP_PORTFILE", name) == 0 ? libacp_read_text(fd) : NULL;
	close(fd);
	return text;
}

/* ---- Combining plans ---- */

/* A node of any program, in a tree that is ordered by its text. */
struct known {
	char *text;
	uint32_t number;
};

struct whole {
	void *tree;
	struct known **known;	/* by number */
	uint32_t count, room;
	uint32_t *nodes;	/* of each rank */
};

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct known *)a)->text, ((const struct known *)b)->text);
}

static int add_known(struct whole *whole, struct known *fresh)
{
	if (whole->count == whole->room) {
		uint32_t room = whole->room ? 2 * whole->room : 16;
		struct known **known = realloc(whole->known, room * sizeof(*known));

		if (!known)
			return -1;
		whole->known = known;
		whole->room = room;
	}
	if (!tsearch(fresh, &whole->tree, by_text))
		return -1;
	fresh->number = whole->count;
	whole->known[whole->count++] = fresh;
	return 0;
}

/*
 * Return the number of a node in the job and add it if it is new. Takes ownership of the text. -1
 * if memory is exhausted.
 */
static int64_t number_of(struct whole *whole, char *text)
{
	struct known *fresh = malloc(sizeof(*fresh));
	struct known **found;

	if (!fresh || !text) {
		free(fresh);
		free(text);
		return -1;
	}
	fresh->text = text;
	found = tfind(fresh, &whole->tree, by_text);
	if (!found && add_known(whole, fresh) == 0)
		return fresh->number;
	free(text);
	free(fresh);
	return found ? (int64_t)(*found)->number : -1;
}

/* Add the nodes and the placement of a program in terms of the node numbers of the job. */
static int add_ranks(struct whole *whole, const struct libacp_plan *plan,
		     const struct libacp_boot *boot)
{
	uint32_t *numbers = malloc(boot->nodes * sizeof(*numbers)), i;
	int result = numbers ? 0 : -1;

	for (i = 0; result == 0 && i < boot->nodes; i++) {
		int64_t number = number_of(whole, libacp_node_text(boot, i));

		result = number < 0 ? -1 : 0;
		numbers[i] = (uint32_t)number;
	}
	for (i = 0; result == 0 && i < plan->count; i++)
		whole->nodes[plan->first + i] = numbers[libacp_boot_node_of(boot, i)];
	free(numbers);
	if (result < 0)
		libacp_error("no memory for the nodes of the job");
	return result;
}

static int add_plan(struct whole *whole, const struct libacp_plan *plan)
{
	struct libacp_boot boot = { .nprocs = plan->count };
	int result = -1;

	if (libacp_boot_nodes(&boot, plan->nodes) == 0 &&
	    libacp_boot_placement(&boot, plan->placement) == 0)
		result = add_ranks(whole, plan, &boot);
	free(boot.rank_runs);
	free(boot.node_runs);
	free(boot.cards.card);
	return result;
}

static bool is_loopback(const char *text)
{
	return strncmp(text, "127.", 4) == 0 || strcmp(text, "::1") == 0;
}

/* Return all nodes in the syntax of ACP_NODES. */
static char *list_nodes(const struct whole *whole)
{
	size_t length = 1, size;
	char *text, *at;
	uint32_t i;

	for (i = 0; i < whole->count; i++) {
		length += strlen(whole->known[i]->text) + 1;
		if (whole->count == 1 || !is_loopback(whole->known[i]->text))
			continue;
		libacp_error("the programs are on several nodes, one of which is known as %s: set ACP_NODES or correct /etc/hosts there",
			     whole->known[i]->text);
		return NULL;
	}
	text = malloc(length);
	for (i = 0, at = text; text && i < whole->count; i++) {
		size = strlen(whole->known[i]->text);
		memcpy(at, whole->known[i]->text, size);
		at += size;
		*at++ = ' ';
	}
	if (text)
		*at = '\0';
	else
		libacp_error("no memory for the nodes of the job");
	return text;
}

static void free_known(void *known)
{
	free(((struct known *)known)->text);
	free(known);
}

static void free_whole(struct whole *whole)
{
	tdestroy(whole->tree, free_known);
	free(whole->known);
	free(whole->nodes);
}

/* ---- Joining ---- */

/* Read the plan of the program whose first rank is @first. */
static int read_plan(struct libacp_plan *plan, const char *path, uint32_t first, uint32_t total,
		     uint64_t until)
{
	char *name = name_file(path, first, "");
	char *text = name ? await_file(name, until, first) : NULL;
	int result = -1;

	if (!text)
		goto free;
	if (!libacp_plan_parse(plan, text))
		libacp_error("ACP_PORTFILE: %s is not what a program of a job writes", name);
	else if (plan->first != first || plan->total != total)
		libacp_error("ACP_PORTFILE: %s is of a job of %u ranks, not %u: ACP_MULTIRUN must be the same for all programs",
			     name, plan->total, total);
	else
		result = 0;
	if (result < 0)
		libacp_plan_free(plan);
free:
	free(name);
	libacp_text_free(text);
	return result;
}

/* Read all plans in order of ranks. Job number and key are those of the first one. */
static int read_all(struct whole *whole, struct libacp_plan *job, const char *path, uint64_t until)
{
	struct libacp_plan plan = { 0 };
	uint32_t first;

	for (first = 0; first < job->total; first += plan.count) {
		if (read_plan(&plan, path, first, job->total, until) < 0)
			return -1;
		if (first == 0) {
			job->job = plan.job;
			job->keyed = plan.keyed;
			memcpy(job->key, plan.key, sizeof(job->key));
		}
		if (add_plan(whole, &plan) < 0) {
			libacp_plan_free(&plan);
			return -1;
		}
		free(plan.nodes);
		free(plan.placement);
		explicit_bzero(plan.key, sizeof(plan.key));
	}
	return 0;
}

int libacp_mpmd_join(struct libacp_plan *plan, const char *path, bool leader, uint64_t end)
{
	struct whole whole = { .nodes = malloc(plan->total * sizeof(*whole.nodes)) };
	char *nodes = NULL, *placement = NULL;

	if (!whole.nodes)
		libacp_error("no memory for the ranks of the job");
	else if ((!leader || publish(plan, path) == 0) &&
		 read_all(&whole, plan, path, end) == 0)
		nodes = list_nodes(&whole);
	if (nodes)
		placement = libacp_placement_text(whole.nodes, plan->total);
	free_whole(&whole);
	if (!placement) {
		free(nodes);
		return -1;
	}
	free(plan->nodes);
	free(plan->placement);
	plan->nodes = nodes;
	plan->placement = placement;
	return 0;
}
