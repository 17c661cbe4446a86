/* SPDX-License-Identifier: MIT */
/*
 * A launcher with PMIx, and its libpmix, that are played: link with
 *	-Wl,--wrap=dlopen,--wrap=dlsym,--wrap=dlerror
 */
#ifndef TEST_LIB_ENGINE_H
#define TEST_LIB_ENGINE_H

#include <dlfcn.h>
#include <pmix.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#define NSPACE	"engine.17"

static struct {
	uint32_t rank, size;
	const char *nodes;		/* names */
	const char *peers[4];		/* per node: one digit per rank */
	bool missing;			/* no libpmix */
	bool silent;			/* no other process enters the fence */
	char *plan;			/* text that rank 0 has put, or that was set for us */
	unsigned int inits, fences, aborts, handlers;
	pmix_notification_fn_t handler;
	void (*leaving)(void);		/* called when the process disconnects, or NULL */
} engine;

static int *finalized;			/* shared with children */

static pmix_status_t play_init(pmix_proc_t *proc, pmix_info_t info[], size_t ninfo)
{
	(void)info;
	(void)ninfo;
	strcpy(proc->nspace, NSPACE);
	proc->rank = engine.rank;
	engine.inits++;
	return PMIX_SUCCESS;
}

static pmix_status_t play_finalize(const pmix_info_t info[], size_t ninfo)
{
	(void)info;
	(void)ninfo;
	engine.inits--;
	if (engine.leaving)
		engine.leaving();
	if (finalized)
		++*finalized;
	return PMIX_SUCCESS;
}

static pmix_status_t play_abort(int status, const char text[], pmix_proc_t procs[], size_t count)
{
	(void)status;
	(void)text;
	(void)procs;
	(void)count;
	engine.aborts++;
	return PMIX_SUCCESS;
}

static pmix_status_t play_put(pmix_scope_t scope, const char key[], pmix_value_t *value)
{
	(void)scope;
	(void)key;
	free(engine.plan);
	engine.plan = strdup(value->data.string);
	return PMIX_SUCCESS;
}

static pmix_status_t play_commit(void)
{
	return PMIX_SUCCESS;
}

static pmix_status_t play_get(const pmix_proc_t *proc, const char key[], const pmix_info_t info[],
			      size_t ninfo, pmix_value_t **value)
{
	*value = calloc(1, sizeof(**value));
	if (strcmp(key, PMIX_JOB_SIZE) == 0 && proc->rank == PMIX_RANK_WILDCARD) {
		(*value)->type = PMIX_UINT32;
		(*value)->data.uint32 = engine.size;
		return PMIX_SUCCESS;
	}
	/* the real function may wait */
	CHECK(ninfo == 1 && strcmp(info[0].key, PMIX_TIMEOUT) == 0);
	if (proc->rank == 0 && engine.plan) {
		(*value)->type = PMIX_STRING;
		(*value)->data.string = strdup(engine.plan);
		return PMIX_SUCCESS;
	}
	free(*value);
	return PMIX_ERR_NOT_FOUND;
}

static pmix_status_t play_fence(const pmix_proc_t procs[], size_t count, const pmix_info_t info[],
				size_t ninfo, pmix_op_cbfunc_t done, void *data)
{
	(void)procs;
	(void)count;
	(void)info;
	(void)ninfo;
	engine.fences++;
	if (!engine.silent)
		done(PMIX_SUCCESS, data);
	return PMIX_SUCCESS;
}

static pmix_status_t play_nodes(const pmix_nspace_t nspace, char **list)
{
	(void)nspace;
	*list = strdup(engine.nodes);
	return PMIX_SUCCESS;
}

/* Return the index of the name. */
static unsigned int index_of(const char *name)
{
	const char *p = strstr(engine.nodes, name);
	unsigned int number = 0;

	while (p && p-- > engine.nodes)
		number += *p == ',';
	return number;
}

static pmix_status_t play_peers(const char *name, const pmix_nspace_t nspace, pmix_proc_t **procs,
				size_t *count)
{
	const char *peers = engine.peers[index_of(name)];
	size_t i;

	(void)nspace;
	*count = strlen(peers);
	*procs = *count ? calloc(*count, sizeof(**procs)) : NULL;
	for (i = 0; i < *count; i++)
		(*procs)[i].rank = (pmix_rank_t)(peers[i] - '0');
	return *count ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND;
}

static pmix_status_t play_register(pmix_status_t codes[], size_t count, pmix_info_t info[],
				   size_t ninfo, pmix_notification_fn_t handler,
				   pmix_hdlr_reg_cbfunc_t done, void *data)
{
	(void)codes;
	(void)count;
	(void)info;
	(void)ninfo;
	engine.handler = handler;
	engine.handlers++;
	done(PMIX_SUCCESS, 5, data);
	return PMIX_SUCCESS;
}

static pmix_status_t play_deregister(size_t id, pmix_op_cbfunc_t done, void *data)
{
	(void)done;
	(void)data;
	engine.handlers -= id == 5;
	return PMIX_SUCCESS;
}

static const char *play_error(pmix_status_t status)
{
	(void)status;
	return "played";
}

void *__wrap_dlopen(const char *name, int flags)
{
	(void)flags;
	return engine.missing || strcmp(name, "libpmix.so.2") != 0 ? NULL : &engine;
}

char *__wrap_dlerror(void)
{
	return "no such file";
}

void *__wrap_dlsym(void *library, const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} played[] = {
		{ "PMIx_Init", play_init }, { "PMIx_Finalize", play_finalize },
		{ "PMIx_Abort", play_abort }, { "PMIx_Put", play_put },
		{ "PMIx_Commit", play_commit }, { "PMIx_Get", play_get },
		{ "PMIx_Fence_nb", play_fence }, { "PMIx_Resolve_nodes", play_nodes },
		{ "PMIx_Resolve_peers", play_peers }, { "PMIx_Error_string", play_error },
		{ "PMIx_Register_event_handler", play_register },
		{ "PMIx_Deregister_event_handler", play_deregister },
	};
	size_t i;

	for (i = 0; library && i < sizeof(played) / sizeof(played[0]); i++)
		if (strcmp(played[i].name, name) == 0)
			return played[i].function;
	return NULL;
}

#endif /* TEST_LIB_ENGINE_H */
