// SPDX-License-Identifier: MIT
/*
 * Parameters of the job from the launcher: rank, number of ranks, nodes, placement, key.
 *
 * There are three sources; later ones override earlier ones: environment variables and options; a
 * launcher that provides PMIx, if there is one and ACP_RANK is not set; and files, if several
 * programs form one job. All parameters are checked here and in the neighbouring files, so that a
 * mistake results in one message that names the variable. No data structure that is kept grows with
 * the number of ranks, as long as they are placed regularly.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acp_abi.h"
#include "boot/boot.h"
#include "core/internal.h"
#include "core/parameters.h"

/* ---- Numbers and words ---- */

static int parse_integrity(struct libacp_boot *boot, const char *text)
{
	static const char *const names[] = {
		[ACP_INTEGRITY_TAG] = "tag", [ACP_INTEGRITY_CRC32C] = "crc32c",
		[ACP_INTEGRITY_AEAD] = "aead", [ACP_INTEGRITY_UDP] = "udp",
	};
	uint32_t i;

	boot->integrity = ACP_INTEGRITY_TAG;
	if (!text)
		return 0;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i]) == 0) {
			boot->integrity = i;
			return 0;
		}
	libacp_error("ACP_INTEGRITY=%s: want tag, udp, crc32c or aead", text);
	return -1;
}

/* ACP_PRIVACY: alternative name for the integrity "aead". */
static int parse_privacy(struct libacp_boot *boot, const struct libacp_values *values)
{
	const char *text = values->text[SET_PRIVACY], *integrity = values->text[SET_INTEGRITY];
	bool aead;

	if (!text)
		return 0;
	aead = strcmp(text, "aead") == 0;
	if (!aead && strcmp(text, "none") != 0) {
		libacp_error("ACP_PRIVACY=%s: want none or aead", text);
		return -1;
	}
	if (integrity && aead != (boot->integrity == ACP_INTEGRITY_AEAD)) {
		libacp_error("ACP_PRIVACY=%s and ACP_INTEGRITY=%s: choose one", text, integrity);
		return -1;
	}
	if (aead)
		boot->integrity = ACP_INTEGRITY_AEAD;
	return 0;
}

static int check_numbers(const struct libacp_boot *boot)
{
	if (boot->rank >= boot->nprocs) {
		libacp_error("ACP_RANK=%u: want 0 to %u, since ACP_NPROCS=%u", boot->rank,
			     boot->nprocs - 1, boot->nprocs);
		return -1;
	}
	if (boot->depth & (boot->depth - 1)) {
		libacp_error("ACP_QUEUE_DEPTH=%u: want a power of two", boot->depth);
		return -1;
	}
	return 0;
}

void libacp_boot_begin(struct libacp_boot *boot)
{
	boot->init_end = libacp_end_of(boot->init_timeout_ms * 1000000ULL);
}

static void apply_numbers(struct libacp_boot *boot, const struct libacp_values *values)
{
	const uint64_t *number = values->number;

	boot->rank = (uint32_t)number[SET_RANK];
	boot->nprocs = (uint32_t)number[SET_NPROCS];
	boot->job = (uint32_t)number[SET_JOB];
	boot->port = (uint32_t)number[SET_PORT];
	boot->starter_size = number[SET_STARTER_SIZE];
	boot->heap_size = number[SET_HEAP_SIZE];
	boot->depth = (uint32_t)number[SET_QUEUE_DEPTH];
	boot->timeout_ms = (uint32_t)number[SET_TIMEOUT];
	boot->debug = number[SET_DEBUG];
	boot->init_timeout_ms = (uint32_t)number[SET_INIT_TIMEOUT];
	libacp_boot_begin(boot);
}

/*
 * Launchers that do not provide PMIx, or only on request, tell the number of their processes at
 * least: one that started as "rank 0 of 1" would fight with the others for rank 0, or compute
 * something else than its user thinks. False, with a message, if this process is one of several.
 */
static bool is_alone(void)
{
	static const struct {
		const char *variable, *remedy;
	} launchers[] = {
		{ "SLURM_STEP_NUM_TASKS", "srun --mpi=pmix" },
		{ "OMPI_COMM_WORLD_SIZE", "an mpirun with PMIx, or acprun" },
		{ "MV2_COMM_WORLD_SIZE", "acprun, or Open MPI's mpirun" },
		{ "PMI_SIZE", "acprun, or Open MPI's mpirun" },
	};
	size_t i;

	for (i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		const char *size = getenv(launchers[i].variable);

		if (!size || strcmp(size, "1") == 0)
			continue;
		libacp_error("this is one of several processes (%s=%s), but their launcher provides no PMIx: start them by %s; or set ACP_RANK and ACP_NPROCS, for a job of one rank ACP_RANK=0",
			     launchers[i].variable, size, launchers[i].remedy);
		return false;
	}
	return true;
}

/* Determine rank and number of ranks, from the launcher unless ACP_RANK is set. */
static int find_rank(struct libacp_boot *boot, const struct libacp_values *values)
{
	if (!values->text[SET_RANK] && libacp_pmix_there()) {
		if (libacp_pmix_open(&boot->rank, &boot->nprocs) < 0)
			return -1;
		boot->engine = true;
		if (!values->text[SET_NPROCS] || values->number[SET_NPROCS] == boot->nprocs)
			return 0;
		libacp_error("ACP_NPROCS=%llu, but the engine has started %u ranks",
			     (unsigned long long)values->number[SET_NPROCS], boot->nprocs);
		return -1;
	}
	if (values->text[SET_RANK])
		return 0;
	if (!values->text[SET_MULTIRUN] && !is_alone())
		return -1;
	if (boot->nprocs == 1)
		return 0;
	libacp_error("ACP_NPROCS=%u, but ACP_RANK is not set", boot->nprocs);
	return -1;
}

/* ---- The plan ---- */

/* Without a key, any host that reaches the port can write to the memory of the job. */
static int choose_key(struct libacp_boot *boot, const struct libacp_values *values,
		      const struct libacp_plan *plan)
{
	if (values->text[SET_KEYFILE]) {
		boot->keyfile = strdup(values->text[SET_KEYFILE]);
		if (boot->keyfile)
			return 0;
		libacp_error("no memory");
		return -1;
	}
	if (plan->keyed) {
		memcpy(boot->key, plan->key, sizeof(boot->key));
		return 0;
	}
	if (boot->integrity == ACP_INTEGRITY_AEAD) {
		libacp_error("ACP_KEYFILE is not set: a job that is encrypted (ACP_PRIVACY, ACP_INTEGRITY) needs a key");
		return -1;
	}
	if (boot->nodes == 1)
		return 0;
	if (!values->number[SET_INSECURE]) {
		libacp_error("ACP_KEYFILE is not set: a job over several nodes needs a key (head -c16 /dev/urandom | od -An -tx1 | tr -d ' \\n' >key; chmod 600 key), or ACP_INSECURE=1");
		return -1;
	}
	if (boot->rank == 0)
		libacp_error("warning: ACP_INSECURE=1: the network is trusted, no key protects the job");
	return 0;
}

/* Return this machine as other programs of the job can address it. */
static char *own_node(void)
{
	char name[HOST_NAME_MAX + 1] = "", *names = name;

	gethostname(name, sizeof(name) - 1);
	return libacp_names_resolve("%", &names, 1, 0);
}

/* Create the plan from environment variables and options only. */
static int plan_alone(struct libacp_plan *plan, const struct libacp_values *values)
{
	const char *nodes = values->text[SET_NODES], *placement = values->text[SET_PLACEMENT];

	if (!nodes && values->text[SET_MULTIRUN])
		plan->nodes = own_node();
	else
		plan->nodes = libacp_nodes_line(nodes ? nodes : "127.0.0.1");
	plan->placement = strdup(placement ? placement : "block");
	return plan->nodes && plan->placement ? 0 : -1;
}

/*
 * Return the addresses of the nodes of the launcher, derived from their names unless ACP_NODES
 * specifies them.
 */
static char *find_nodes(const struct libacp_values *values, char **names, uint32_t count,
			uint32_t here)
{
	const char *nodes = values->text[SET_NODES];

	if (nodes && !libacp_nodes_are_names(nodes))
		return libacp_nodes_line(nodes);
	if (!nodes && count == 1 && !values->text[SET_MULTIRUN])
		return strdup("127.0.0.1");
	return libacp_names_resolve(nodes ? nodes : "%", names, count, here);
}

/* Create the plan on rank 0 of a launcher that provides PMIx; the other ranks receive it. */
static int plan_by_engine(struct libacp_plan *plan, const struct libacp_values *values)
{
	const char *placement = values->text[SET_PLACEMENT];
	uint32_t *nodes = NULL, count = 0;
	char **names = NULL;

	if (libacp_pmix_map(plan->count, &names, &count, &nodes) == 0) {
		plan->nodes = find_nodes(values, names, count, nodes[0]);
		plan->placement = placement ? strdup(placement) :
					      libacp_placement_text(nodes, plan->count);
	}
	free(nodes);
	if (names)
		free(names[0]);
	free(names);
	return plan->nodes && plan->placement ? 0 : -1;
}

/* Create the plan of this rank, including other programs of the job if there are any. */
static int make_plan(struct libacp_plan *plan, const struct libacp_boot *boot,
		     const struct libacp_values *values)
{
	const bool several = values->text[SET_MULTIRUN] != NULL;

	if ((boot->engine || several) && !values->text[SET_KEYFILE] && libacp_plan_key(plan) < 0)
		return -1;
	if ((boot->engine || several) && !values->text[SET_JOB] && libacp_plan_job(plan) < 0)
		return -1;
	if ((boot->engine ? plan_by_engine : plan_alone)(plan, values) < 0)
		return -1;
	if (!several)
		return 0;
	return libacp_mpmd_join(plan, values->text[SET_PORTFILE], boot->rank == 0,
				boot->init_end);
}

/* Distribute the plan of rank 0, or its failure, to all ranks of the launcher. */
static int share_plan(struct libacp_plan *plan, const struct libacp_boot *boot, int result)
{
	char *text = boot->rank == 0 && result == 0 ? libacp_plan_text(plan) : NULL;

	if (libacp_pmix_share(boot, &text) < 0)
		result = -1;
	if (result == 0 && boot->rank != 0 && !libacp_plan_parse(plan, text)) {
		libacp_error("rank 0 could not tell how the job is laid out");
		result = -1;
	}
	libacp_text_free(text);
	return result;
}

static int find_plan(struct libacp_plan *plan, const struct libacp_boot *boot,
		     const struct libacp_values *values)
{
	int result = 0;

	if (!boot->engine || boot->rank == 0)
		result = make_plan(plan, boot, values);
	return boot->engine ? share_plan(plan, boot, result) : result;
}

/* Set the range of the ranks of this program within the job. */
static int set_part(struct libacp_plan *plan, const struct libacp_boot *boot,
		    const struct libacp_values *values)
{
	*plan = (struct libacp_plan){
		.count = boot->nprocs, .total = boot->nprocs, .job = boot->job,
	};
	if (!values->text[SET_MULTIRUN])
		return 0;
	plan->first = (uint32_t)values->number[SET_OFFSETRANK];
	plan->total = (uint32_t)values->number[SET_MULTIRUN];
	if (!values->text[SET_PORTFILE]) {
		libacp_error("ACP_MULTIRUN is set, but ACP_PORTFILE is not");
		return -1;
	}
	if (plan->first < plan->total && plan->count <= plan->total - plan->first)
		return 0;
	libacp_error("%u ranks from ACP_OFFSETRANK=%u on are more than ACP_MULTIRUN=%u",
		     plan->count, plan->first, plan->total);
	return -1;
}

/*
 * The plan of the latest job. If it came from a launcher, and the first barrier has shown that all
 * ranks have it, it is the plan of their further jobs. It is not told again, because launchers do
 * not always count processes that have disconnected and come back: Open MPI's daemon can take one
 * that disconnects for one that has died, and then completes each fence without one of its
 * processes. Several programs (ACP_MULTIRUN) tell it again, since the others may be new.
 */
static struct {
	struct libacp_plan plan;
	bool told, agreed;
} common;		/* guarded by membership (join.c) */

void libacp_boot_agreed(void)
{
	common.agreed = common.told;
}

/* Put the plan of this job into common. */
static int get_plan(const struct libacp_boot *boot, const struct libacp_values *values)
{
	const bool told = boot->engine && !values->text[SET_MULTIRUN];

	if (told && common.agreed && common.plan.count == boot->nprocs)
		return 0;
	common.told = told;
	common.agreed = false;
	libacp_plan_free(&common.plan);
	if (set_part(&common.plan, boot, values) < 0)
		return -1;
	return find_plan(&common.plan, boot, values);
}

/* Apply the plan to this rank. */
static int follow_plan(struct libacp_boot *boot, const struct libacp_values *values,
		       const struct libacp_plan *plan)
{
	boot->rank += plan->first;
	boot->nprocs = plan->total;
	boot->job = plan->job;
	if (libacp_boot_nodes(boot, plan->nodes) < 0 ||
	    libacp_boot_placement(boot, plan->placement) < 0)
		return -1;
	return choose_key(boot, values, plan);
}

/* ---- Loading ---- */

int libacp_boot_load(struct libacp_boot *boot, int *argc, char ***argv)
{
	struct libacp_values values;
	int result = -1, found;

	memset(boot, 0, sizeof(*boot));
	if (libacp_settings_load(&values, argc, argv) < 0)
		return -1;
	apply_numbers(boot, &values);
	found = find_rank(boot, &values);
	if (boot->rank == 0)
		libacp_settings_unknown();
	if (found == 0 && check_numbers(boot) == 0 &&
	    parse_integrity(boot, values.text[SET_INTEGRITY]) == 0 &&
	    parse_privacy(boot, &values) == 0 && get_plan(boot, &values) == 0)
		result = follow_plan(boot, &values, &common.plan);
	return result;
}

void libacp_boot_free(struct libacp_boot *boot)
{
	libacp_mpmd_done();
	if (boot->engine)
		libacp_pmix_close();
	free(boot->rank_runs);
	free(boot->node_runs);
	free(boot->cards.card);
	free(boot->keyfile);
	explicit_bzero(boot, sizeof(*boot));
}
