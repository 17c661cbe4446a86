// SPDX-License-Identifier: MIT
/* Ranks of libacp for tests: see members.h. */
#include "../dev/isolated.h"

#include <sys/wait.h>

#include "members.h"

static void set(const char *name, int value)
{
	char text[20];

	snprintf(text, sizeof(text), "%d", value);
	setenv(name, text, 1);
}

static void open_over(struct members *m, int count, int per_node, bool ipv6)
{
	char nodes[NODES_MAX * 41] = "";
	uint32_t i;

	memset(m, 0, sizeof(*m));
	m->count = count;
	m->per_node = per_node;
	nodes_open(&m->nodes, (uint32_t)(count / per_node), 1, ipv6);
	for (i = 0; i < m->nodes.count; i++) {
		strcat(nodes, m->nodes.address[i]);
		strcat(nodes, " ");
	}
	setenv("ACP_NODES", nodes, 1);
	setenv("ACP_INSECURE", "1", 1);
	set("ACP_NPROCS", count);
}

void members_open(struct members *m, int count, int per_node)
{
	open_over(m, count, per_node, false);
}

void members_open_ipv6(struct members *m, int count, int per_node)
{
	open_over(m, count, per_node, true);
}

void members_start(struct members *m, int rank, void (*body)(void))
{
	fflush(stdout);
	m->errors[rank] = tmpfile();
	CHECK(m->errors[rank]);
	m->pid[rank] = fork();
	CHECK(m->pid[rank] >= 0);
	if (m->pid[rank])
		return;
	nodes_enter(&m->nodes, (uint32_t)(rank / m->per_node));
	dup2(fileno(m->errors[rank]), STDERR_FILENO);
	set("ACP_RANK", rank);
	body();
	fflush(stdout);
	_exit(0);
}

void members_start_all(struct members *m, void (*body)(void))
{
	int r;

	for (r = 0; r < m->count; r++)
		members_start(m, r, body);
}

/* Print its messages. */
static void show_errors(struct members *m, int rank)
{
	char line[600];

	rewind(m->errors[rank]);
	while (fgets(line, sizeof(line), m->errors[rank]))
		printf("# %s", line);
}

int members_wait(struct members *m, int rank)
{
	int status;

	CHECK_EQ(waitpid(m->pid[rank], &status, 0), m->pid[rank]);
	show_errors(m, rank);
	return WIFEXITED(status) ? WEXITSTATUS(status) : DIED - WTERMSIG(status);
}

void members_expect(struct members *m, int status)
{
	int r;

	for (r = 0; r < m->count; r++)
		CHECK_EQ(members_wait(m, r), status);
}

void members_run_over(const char *netem, int count, int per_node, void (*body)(void))
{
	struct members m;

	members_open(&m, count, per_node);
	if (*netem)
		nodes_impair_all(&m.nodes, netem);
	members_start_all(&m, body);
	members_expect(&m, 0);
}

void members_run(int count, int per_node, void (*body)(void))
{
	members_run_over("", count, per_node, body);
}

bool members_said(struct members *m, int rank, const char *text)
{
	char line[600];

	rewind(m->errors[rank]);
	while (fgets(line, sizeof(line), m->errors[rank]))
		if (strstr(line, text))
			return true;
	return false;
}

void member_init(void)
{
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	CHECK_EQ(acp_init(NULL, NULL), 0);
}

acp_ga_t member_at(int rank, size_t offset)
{
	return acp_query_starter_ga(rank) + offset;
}

uint64_t *member_word(size_t offset)
{
	return acp_query_address(member_at(acp_rank(), offset));
}

int member_status(acp_handle_t handle)
{
	CHECK(handle != (acp_handle_t)ACP_HANDLE_NULL);
	acp_complete(handle);
	return acpx_status(handle);
}
