// SPDX-License-Identifier: MIT
/*
 * Comparison of ACP_NODES with the addresses of this machine: which of them it has, on which
 * network device, and whether they are usable. Lists that cannot work are rejected before the job
 * begins, and a join that the kernel refused is explained.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "acp_abi.h"
#include "acp_ga.h"
#include "boot/boot.h"
#include "core/internal.h"
#include "core/parameters.h"

#define TEXT_MAX	64	/* length of an address with its device */

/* ---- Addresses ---- */

static size_t length_of(const struct acp_node_run *run)
{
	return run->family == AF_INET ? 4 : 16;
}

/* Set *by to the distance from a to b. False if it is negative or at least 2^32. */
static bool distance(const uint8_t *a, const uint8_t *b, size_t length, uint64_t *by)
{
	int borrow = 0;
	size_t i;

	*by = 0;
	for (i = 0; i < length; i++) {
		int byte = b[length - 1 - i] - a[length - 1 - i] - borrow;

		borrow = byte < 0;
		if (i >= 4 && (byte & 255))
			return false;
		if (i < 4)
			*by |= (uint64_t)(byte & 255) << (8 * i);
	}
	return !borrow;
}

/* Set *node to the node that has the address. False if it is not in the run. */
static bool has_address(const struct acp_node_run *run, const uint8_t *addr, uint32_t *node)
{
	uint64_t by;

	if (!distance(run->addr, addr, length_of(run), &by) || by >= run->count)
		return false;
	*node = run->first + (uint32_t)by;
	return true;
}

static const uint8_t *bytes_of(const struct sockaddr *a)
{
	return a->sa_family == AF_INET ?
		(const uint8_t *)&((const struct sockaddr_in *)a)->sin_addr :
		(const uint8_t *)&((const struct sockaddr_in6 *)a)->sin6_addr;
}

/* Return the name of the device of a link-local address, or "". */
static const char *scope_name(const struct libacp_boot *boot, const struct acp_node_run *run)
{
	return run->scope ? boot->cards.card[run->scope - 1].name : "";
}

static const char *text_of(const struct libacp_boot *boot, const struct acp_node_run *run,
			   char text[TEXT_MAX])
{
	inet_ntop(run->family, run->addr, text, INET6_ADDRSTRLEN);
	if (run->scope)
		sprintf(text + strlen(text), "%%%s", scope_name(boot, run));
	return text;
}

/*
 * Return the entry of the address on this machine: on that device, or on any if it is "". NULL:
 * this machine does not have the address.
 */
static const struct ifaddrs *find(const struct ifaddrs *all, const struct acp_node_run *run,
				  const char *card)
{
	const struct ifaddrs *i;

	for (i = all; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == run->family &&
		    memcmp(bytes_of(i->ifa_addr), run->addr, length_of(run)) == 0 &&
		    (*card == '\0' || strcmp(i->ifa_name, card) == 0))
			return i;
	return NULL;
}

/* ---- Before a join ---- */

static bool is_loopback(const struct acp_node_run *run)
{
	static const uint8_t one[16] = { [15] = 1 };
	uint32_t first, node;

	if (run->family == AF_INET6)
		return has_address(run, one, &node);
	first = (uint32_t)run->addr[0] << 24 | (uint32_t)run->addr[1] << 16 |
		(uint32_t)run->addr[2] << 8 | run->addr[3];
	return first >> 24 <= 127 && (first + run->count - 1) >> 24 >= 127;
}

static int check_loopback(const struct libacp_boot *boot)
{
	char text[TEXT_MAX];
	uint32_t i;

	for (i = 0; boot->nodes > 1 && i < boot->node_run_count; i++) {
		const struct acp_node_run *run = &boot->node_runs[i];

		if (!is_loopback(run))
			continue;
		libacp_error("ACP_NODES: node %u of %u has the loopback address %s, which means each machine itself: write the address that the other nodes reach it by",
			     run->first, boot->nodes, text_of(boot, run, text));
		return -1;
	}
	return 0;
}

/* Check that no other node has this address of this machine. */
static int check_entry(const struct libacp_boot *boot, uint32_t node, const struct ifaddrs *entry)
{
	const uint8_t *addr = bytes_of(entry->ifa_addr);
	char text[INET6_ADDRSTRLEN];
	uint32_t i, other;

	for (i = 0; i < boot->node_run_count; i++) {
		const struct acp_node_run *run = &boot->node_runs[i];
		const struct acp_node_run own = libacp_node_address(boot, node, run->color);

		if (run->family != entry->ifa_addr->sa_family || !has_address(run, addr, &other) ||
		    other == node)
			continue;
		/* The same link-local address may exist on another link. */
		if (own.scope && strcmp(scope_name(boot, &own), entry->ifa_name) != 0)
			continue;
		inet_ntop(run->family, addr, text, sizeof(text));
		libacp_error("ACP_NODES: %s is the address of node %u, but also one of this machine (on %s), which is node %u: write addresses that one node alone has",
			     text, other, entry->ifa_name, node);
		return -1;
	}
	return 0;
}

static int check_others(const struct libacp_boot *boot, uint32_t node, const struct ifaddrs *all)
{
	const struct ifaddrs *i;
	uint32_t color;

	/*
	 * If this machine is a different node than the placement says, the kernel refuses the join,
	 * and libacp_addresses_explain() reports the error.
	 */
	for (color = 0; color < boot->colors; color++) {
		const struct acp_node_run own = libacp_node_address(boot, node, color);

		if (!find(all, &own, ""))
			return 0;
	}
	for (i = all; i; i = i->ifa_next) {
		if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET &&
				     i->ifa_addr->sa_family != AF_INET6))
			continue;
		if (check_entry(boot, node, i) < 0)
			return -1;
	}
	return 0;
}

int libacp_addresses_check(const struct libacp_boot *boot, uint32_t node)
{
	struct ifaddrs *all;
	int result;

	if (check_loopback(boot) < 0)
		return -1;
	if (boot->nodes == 1 || getifaddrs(&all) < 0)
		return 0;
	result = check_others(boot, node, all);
	freeifaddrs(all);
	return result;
}

struct acp_node_run *libacp_addresses_scoped(const struct libacp_boot *boot, uint32_t node)
{
	const size_t size = boot->node_run_count * sizeof(*boot->node_runs);
	struct acp_node_run *runs = malloc(size), *run;
	const char *card;

	if (!runs) {
		libacp_error("no memory for the list of nodes");
		return NULL;
	}
	memcpy(runs, boot->node_runs, size);
	for (run = runs; run < runs + boot->node_run_count; run++) {
		card = scope_name(boot, run);
		run->scope = 0;
		if (*card == '\0' || node < run->first || node - run->first >= run->count)
			continue;
		run->scope = if_nametoindex(card);
		if (run->scope)
			continue;
		libacp_error("ACP_NODES: this machine, which is node %u, has no card %s: see 'ip link'",
			     node, card);
		free(runs);
		return NULL;
	}
	return runs;
}

/* ---- Colors ---- */

struct question {
	struct nlmsghdr head;
	struct rtmsg route;
	char attributes[64];
};

static void put(struct question *q, unsigned short type, const void *value, size_t length)
{
	struct rtattr *a = (struct rtattr *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(length);
	memcpy(RTA_DATA(a), value, length);
	q->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(q->head.nlmsg_len) + RTA_ALIGN(a->rta_len));
}

/* Return the index of the device in the answer, or 0. */
static unsigned int card_in(const struct nlmsghdr *head, ssize_t length)
{
	const struct rtattr *a;
	int rest;

	if (length < (ssize_t)NLMSG_LENGTH(sizeof(struct rtmsg)) ||
	    head->nlmsg_len > (size_t)length || head->nlmsg_type != RTM_NEWROUTE)
		return 0;
	rest = (int)head->nlmsg_len - (int)NLMSG_LENGTH(sizeof(struct rtmsg));
	for (a = RTM_RTA(NLMSG_DATA(head)); RTA_OK(a, rest); a = RTA_NEXT(a, rest))
		if (a->rta_type == RTA_OIF)
			return *(const unsigned int *)RTA_DATA(a);
	return 0;
}

/*
 * Return the index of the device that the routing table selects from one address to the other, or
 * 0.
 */
static unsigned int routed_by(const struct acp_node_run *from, const struct acp_node_run *to)
{
	struct question q = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(q.route)), .nlmsg_type = RTM_GETROUTE,
			  .nlmsg_flags = NLM_F_REQUEST },
		.route = { .rtm_family = (unsigned char)from->family,
			   .rtm_dst_len = (unsigned char)(8 * length_of(to)),
			   .rtm_src_len = (unsigned char)(8 * length_of(from)) },
	};
	union {
		struct nlmsghdr head;
		char bytes[4096];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	unsigned int card = 0;

	put(&q, RTA_DST, to->addr, length_of(to));
	put(&q, RTA_SRC, from->addr, length_of(from));
	if (fd >= 0 && send(fd, &q, q.head.nlmsg_len, 0) == (ssize_t)q.head.nlmsg_len)
		card = card_in(&answer.head, recv(fd, &answer, sizeof(answer), 0));
	if (fd >= 0)
		close(fd);
	return card;
}

/* True if the other address is in the subnet of ours, whose entry is given. */
static bool is_near(const struct ifaddrs *entry, const struct acp_node_run *to)
{
	const uint8_t *mask = entry->ifa_netmask ? bytes_of(entry->ifa_netmask) : NULL;
	const uint8_t *ours = bytes_of(entry->ifa_addr);
	size_t i;

	for (i = 0; mask && i < length_of(to); i++)
		if ((ours[i] ^ to->addr[i]) & mask[i])
			return false;
	return mask;
}

/*
 * Return the index of the device through which a color leaves this node for another one, as the
 * kernel selects it, or 0.
 */
static unsigned int leaves_by(const struct libacp_boot *boot, uint32_t node, uint32_t color,
			      const struct ifaddrs *all)
{
	const struct acp_node_run from = libacp_node_address(boot, node, color);
	const struct acp_node_run to = libacp_node_address(boot, node == 0, color);
	const struct ifaddrs *entry = find(all, &from, scope_name(boot, &from));

	if (!entry)
		return 0;
	return is_near(entry, &to) ? if_nametoindex(entry->ifa_name) : routed_by(&from, &to);
}

unsigned int libacp_addresses_shared(const struct libacp_boot *boot, uint32_t node)
{
	unsigned int by[ACP_COLORS_MAX] = { 0 }, found = 0;
	char card[IF_NAMESIZE], a[TEXT_MAX], b[TEXT_MAX];
	struct ifaddrs *all;
	uint32_t i, k;

	if (boot->colors == 1 || boot->nodes == 1 || getifaddrs(&all) < 0)
		return 0;
	for (i = 0; i < boot->colors; i++) {
		by[i] = leaves_by(boot, node, i, all);
		for (k = 0; k < i && (!by[i] || by[k] != by[i]); k++)
			;
		if (k == i || !if_indextoname(by[i], card))
			continue;
		const struct acp_node_run first = libacp_node_address(boot, node, k);
		const struct acp_node_run second = libacp_node_address(boot, node, i);

		libacp_error("warning: colors %u and %u of node %u (%s, %s) leave by one card, %s, and are no faster than one of them: see 'ip route get' and 'ip address'",
			     k, i, node, text_of(boot, &first, a), text_of(boot, &second, b), card);
		found++;
	}
	freeifaddrs(all);
	return found;
}

/* ---- After the kernel refused a join ---- */

unsigned int libacp_address_flags(const uint8_t addr[16], const char *card)
{
	unsigned int flags, found = 0;
	char hex[33], want[33], name[32];
	FILE *f = fopen("/proc/thread-self/net/if_inet6", "re");
	size_t i;

	for (i = 0; i < 16; i++)
		sprintf(want + 2 * i, "%02x", addr[i]);
	while (f && fscanf(f, "%32s %*s %*s %*s %x %31s", hex, &flags, name) == 3)
		if (strcmp(hex, want) == 0 && strcmp(name, card) == 0)
			found = flags;
	if (f)
		fclose(f);
	return found;
}

/* Return the flags of the address of this node on a color. */
static unsigned int own_flags(const struct libacp_boot *boot, const struct acp_node_run *own,
			      const struct ifaddrs *all)
{
	const struct ifaddrs *entry;

	if (own->family != AF_INET6)
		return 0;
	entry = find(all, own, scope_name(boot, own));
	return entry ? libacp_address_flags(own->addr, entry->ifa_name) : 0;
}

bool libacp_addresses_settle(const struct libacp_boot *boot, uint32_t node)
{
	struct ifaddrs *all;
	bool soon = false, never = false;
	uint32_t i;

	if (boot->node_runs[0].family != AF_INET6 || getifaddrs(&all) < 0)
		return false;
	for (i = 0; i < boot->colors; i++) {
		const struct acp_node_run own = libacp_node_address(boot, node, i);
		const unsigned int flags = own_flags(boot, &own, all);

		never |= (flags & IFA_F_DADFAILED) || !find(all, &own, scope_name(boot, &own));
		soon |= (flags & IFA_F_TENTATIVE) != 0;
	}
	freeifaddrs(all);
	return soon && !never;
}

static void explain_missing(const struct libacp_boot *boot, uint32_t node,
			    const struct acp_node_run *own, const struct ifaddrs *all)
{
	const struct ifaddrs *elsewhere = find(all, own, "");
	char text[TEXT_MAX];

	text_of(boot, own, text);
	if (elsewhere)
		libacp_error("ACP_NODES: this machine, which is node %u, has the address %s on %s, not on %s",
			     node, strtok(text, "%"), elsewhere->ifa_name, scope_name(boot, own));
	else
		libacp_error("placed on node %u, but this machine (network namespace) has no address %s, which is that node's: compare ACP_NODES and ACP_PLACEMENT with 'ip address'",
			     node, text);
}

/* Explain what is wrong with the address of this node on a color. True if a message was printed. */
static bool explain(const struct libacp_boot *boot, uint32_t node, const struct acp_node_run *own,
		    const struct ifaddrs *all)
{
	const struct ifaddrs *entry = find(all, own, scope_name(boot, own));
	const unsigned int flags = own_flags(boot, own, all);
	char text[INET6_ADDRSTRLEN];

	if (!entry) {
		explain_missing(boot, node, own, all);
		return true;
	}
	inet_ntop(own->family, own->addr, text, sizeof(text));
	if (flags & IFA_F_DADFAILED)
		libacp_error("the address %s on %s cannot be used: another machine of that network has it, too (duplicate address detection)",
			     text, entry->ifa_name);
	else if ((flags & IFA_F_TENTATIVE) && boot->init_timeout_ms)
		libacp_error("the address %s on %s is still tentative after %u ms (ACP_INIT_TIMEOUT): the kernel has not found out whether another machine has it, too; is the card up and connected?",
			     text, entry->ifa_name, boot->init_timeout_ms);
	else if (flags & IFA_F_TENTATIVE)
		libacp_error("the address %s on %s is tentative: the kernel has not found out yet whether another machine has it, too",
			     text, entry->ifa_name);
	return flags & (IFA_F_DADFAILED | IFA_F_TENTATIVE);
}

int libacp_addresses_usable(const struct libacp_boot *boot, uint32_t node)
{
	struct ifaddrs *all;
	bool good = true;
	uint32_t i;

	if (getifaddrs(&all) < 0)
		return 0;
	for (i = 0; i < boot->colors && good; i++) {
		const struct acp_node_run own = libacp_node_address(boot, node, i);

		good = !explain(boot, node, &own, all);
	}
	freeifaddrs(all);
	return good ? 0 : -1;
}

void libacp_addresses_explain(const struct libacp_boot *boot, uint32_t node)
{
	const struct acp_node_run own = libacp_node_address(boot, node, 0);
	char text[TEXT_MAX];

	if (libacp_addresses_usable(boot, node) < 0)
		return;
	libacp_error("this machine has the address of node %u, %s, but it cannot be used: the administrator has set other addresses for colors (see 'acp color show'), or it is in a VRF that this process is not in (see 'ip vrf exec')",
		     node, text_of(boot, &own, text));
}

/* ---- Detection of the own node ---- */

static bool is_here(const struct libacp_boot *boot, uint32_t node, const struct ifaddrs *all)
{
	const struct acp_node_run first = libacp_node_address(boot, node, 0);

	return find(all, &first, scope_name(boot, &first));
}

bool libacp_addresses_node(const struct libacp_boot *boot, uint32_t *node)
{
	const struct ifaddrs *i;
	struct ifaddrs *all;
	bool found = false;
	uint32_t k;

	if (getifaddrs(&all) < 0)
		return false;
	for (i = all; i && !found; i = i->ifa_next)
		for (k = 0; k < boot->node_run_count && !found; k++)
			found = i->ifa_addr && boot->node_runs[k].color == 0 &&
				i->ifa_addr->sa_family == boot->node_runs[k].family &&
				has_address(&boot->node_runs[k], bytes_of(i->ifa_addr), node) &&
				is_here(boot, *node, all);
	freeifaddrs(all);
	return found;
}
