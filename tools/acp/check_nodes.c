// SPDX-License-Identifier: MIT
/* acp check: ACP_NODES, evaluated by the code of the library, with its messages. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "check.h"
#include "acp_abi.h"
#include "core/internal.h"
#include "core/parameters.h"

#define LINE_BYTES_MAX	500

static char line[LINE_BYTES_MAX];	/* last message of the library */

/* Replaces the function of the library that prints to standard error. */
void libacp_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
}

static const char *without(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0 ? text + strlen(prefix) : text;
}

static void tell(struct ctl_findings *f, enum ctl_verdict verdict, const char *check)
{
	ctl_found(f, verdict, check,
		  "Write addresses into ACP_NODES that one node alone has and the others reach, as "
		  "ip address shows them there.",
		  "%s", without(line, "warning: "));
}

/* Check the entry of this machine, whose address is in the list. */
static void check_own(struct ctl_findings *f, const struct libacp_boot *boot, uint32_t node)
{
	struct acp_node_run *runs;

	if (libacp_addresses_check(boot, node) < 0 || libacp_addresses_usable(boot, node) < 0) {
		tell(f, CTL_BAD, "addresses");
		return;
	}
	runs = libacp_addresses_scoped(boot, node);
	if (runs == NULL) {
		tell(f, CTL_BAD, "addresses");
		return;
	}
	free(runs);
	ctl_found(f, CTL_GOOD, "addresses", NULL, "ACP_NODES has %u nodes; this machine is node %u",
		  boot->nodes, node);
	if (libacp_addresses_shared(boot, node) > 0)
		tell(f, CTL_WARN, "addresses");
}

void ctl_check_nodes(struct ctl_findings *f)
{
	const char *nodes = getenv("ACP_NODES");
	struct libacp_boot boot = { .init_timeout_ms = 0 };
	uint32_t node;

	/* Patterns for names of nodes, which only a launcher knows, are not checked. */
	if (nodes == NULL || nodes[0] == '\0' || libacp_nodes_are_names(nodes))
		return;
	if (libacp_boot_nodes(&boot, nodes) < 0)
		tell(f, CTL_BAD, "addresses");
	else if (!libacp_addresses_node(&boot, &node))
		ctl_found(f, CTL_BAD, "addresses",
			  "Write the addresses of the nodes into ACP_NODES as ip address show has "
			  "them there.",
			  "ACP_NODES names no address of this machine");
	else
		check_own(f, &boot, node);
	free(boot.node_runs);
	free(boot.cards.card);
}
