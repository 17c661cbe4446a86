// SPDX-License-Identifier: MIT
/* acp check: addresses, colors, MTU, firewall. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/boot.h"
#include "check.h"
#include "rules.h"

#define ADDRESSES_MAX	64
#define MTU_MIN	576	/* IPv4, as in the module */
#define MTU_IPV6	1280
#define MTU_ETHERNET	1500

/* ---- Reachable addresses ---- */

static const void *bytes_of(const struct sockaddr *a)
{
	return a->sa_family == AF_INET ?
		(const void *)&((const struct sockaddr_in *)a)->sin_addr :
		(const void *)&((const struct sockaddr_in6 *)a)->sin6_addr;
}

static bool usable(const struct ifaddrs *i)
{
	if (i->ifa_addr == NULL || (i->ifa_flags & IFF_LOOPBACK) || !(i->ifa_flags & IFF_UP))
		return false;
	if (i->ifa_addr->sa_family == AF_INET)
		return true;
	return i->ifa_addr->sa_family == AF_INET6 &&
	       !IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)bytes_of(i->ifa_addr));
}

static bool is_local(const struct ifaddrs *all, int family, const void *bytes)
{
	const struct ifaddrs *i;

	for (i = all; i != NULL; i = i->ifa_next)
		if (i->ifa_addr != NULL && i->ifa_addr->sa_family == family &&
		    memcmp(bytes_of(i->ifa_addr), bytes, family == AF_INET ? 4 : 16) == 0)
			return true;
	return false;
}

/* Return a remark on an address, to be printed after its interface. */
static const char *state_of(const struct ifaddrs *i)
{
	unsigned int flags = i->ifa_addr->sa_family == AF_INET6 ?
		libacp_address_flags(bytes_of(i->ifa_addr), i->ifa_name) : 0;

	if (flags & IFA_F_DADFAILED)
		return ", a duplicate: cannot be used";
	if (flags & IFA_F_TENTATIVE)
		return ", tentative";
	return i->ifa_flags & IFF_RUNNING ? "" : ", no carrier";
}

void ctl_check_addresses(struct ctl_findings *f)
{
	char text[400] = "", one[INET6_ADDRSTRLEN];
	struct ifaddrs *all, *i;
	unsigned int running = 0, count = 0;

	if (getifaddrs(&all) != 0) {
		ctl_found(f, CTL_SKIPPED, "addresses", NULL, "they cannot be listed: %s",
			  strerror(errno));
		return;
	}
	for (i = all; i != NULL; i = i->ifa_next) {
		if (!usable(i))
			continue;
		count++;
		running += (i->ifa_flags & IFF_RUNNING) != 0;
		inet_ntop(i->ifa_addr->sa_family, bytes_of(i->ifa_addr), one, sizeof(one));
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s (%s%s)", one,
			 i->ifa_name, state_of(i));
	}
	if (count == 0)
		ctl_found(f, CTL_WARN, "addresses",
			  "Give a card an address and set it up: ip address add, ip link set up.",
			  "no card has an address: jobs cannot reach other nodes");
	else if (running == 0)
		ctl_found(f, CTL_WARN, "addresses", "Look at the cable and the other end of it.",
			  "no card with an address has a carrier:%s", text);
	else
		ctl_found(f, CTL_GOOD, "addresses", NULL, "%s", text + 1);
	freeifaddrs(all);
}

/* ---- Colors ---- */

struct colors {
	struct ctl_findings *f;
	struct ifaddrs *all;
	unsigned int count, lost;
};

static void take_color(void *arg, const struct ctl_reply *r)
{
	const struct nlattr *a = r->a[ACP_NL_A_ADDRESS];
	char text[CTL_ADDRESS_TEXT];
	struct colors *c = arg;
	int length;

	if (a == NULL)
		return;
	length = nla_len(a);
	if (length != 4 && length != 16)
		return;
	c->count++;
	if (is_local(c->all, length == 4 ? AF_INET : AF_INET6, nla_data(a)))
		return;
	c->lost++;
	ctl_found(c->f, CTL_BAD, "colors",
		  "As root: acp color add COLOR ADDRESS with an address that ip address show has, "
		  "or acp color del COLOR.",
		  "color %u is %s, which is no address of this machine: jobs that use it cannot "
		  "begin",
		  ctl_reply_u32(r, ACP_NL_A_COLOR), ctl_address_text(a, text));
}

void ctl_check_colors(struct ctl_findings *f)
{
	struct colors c = { .f = f };
	int err;

	if (f->nl == NULL || getifaddrs(&c.all) != 0)
		return;
	err = ctl_nl_dump(f->nl, ctl_nl_new(f->nl, ACP_NL_CMD_COLOR_GET), take_color, &c);
	freeifaddrs(c.all);
	if (err)
		ctl_found(f, CTL_SKIPPED, "colors", NULL, "the module does not tell: %s",
			  strerror(-err));
	else if (c.count == 0)
		ctl_found(f, CTL_GOOD, "colors", NULL,
			  "none is set: jobs may use any address of this node");
	else if (c.lost == 0)
		ctl_found(f, CTL_GOOD, "colors", NULL, "%u set, with addresses of this machine",
			  c.count);
}

/* ---- MTU ---- */

static int mtu_of(const char *name)
{
	struct ifreq request = { .ifr_mtu = 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), mtu = -1;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (fd >= 0 && ioctl(fd, SIOCGIFMTU, &request) == 0)
		mtu = request.ifr_mtu;
	if (fd >= 0)
		close(fd);
	return mtu;
}

/* True if the interface of this address was checked already: it may have several addresses. */
static bool seen_before(const struct ifaddrs *all, const struct ifaddrs *until)
{
	const struct ifaddrs *i;

	for (i = all; i != until; i = i->ifa_next)
		if (usable(i) && strcmp(i->ifa_name, until->ifa_name) == 0)
			return true;
	return false;
}

static bool check_card(struct ctl_findings *f, const char *name)
{
	static const char remedy[] = "As root: ip link set CARD mtu 1500, or more where cards and "
	"switches of all nodes can do it.";
	int mtu = mtu_of(name);

	if (mtu < 0 || mtu >= MTU_ETHERNET)
		return true;
	if (mtu < MTU_MIN)
		ctl_found(f, CTL_BAD, "mtu", remedy,
			  "%s carries %d bytes in a packet; the module needs %d (IPv6: %d)", name,
			  mtu, MTU_MIN, MTU_IPV6);
	else
		ctl_found(f, CTL_WARN, "mtu", remedy,
			  "%s carries only %d bytes in a packet%s: transfers take more "
			  "frames", name,
			  mtu, mtu < MTU_IPV6 ? ", which rules out IPv6" : "");
	return false;
}

void ctl_check_mtu(struct ctl_findings *f)
{
	unsigned int cards = 0;
	struct ifaddrs *all, *i;
	bool good = true;

	if (getifaddrs(&all) != 0)
		return;
	for (i = all; i != NULL; i = i->ifa_next) {
		if (!usable(i) || seen_before(all, i))
			continue;
		cards++;
		good &= check_card(f, i->ifa_name);
	}
	freeifaddrs(all);
	if (good && cards > 0)
		ctl_found(f, CTL_GOOD, "mtu", NULL, "%u card%s, %d bytes or more", cards,
			  cards == 1 ? "" : "s", MTU_ETHERNET);
}

/* ---- Firewall ---- */

#define SYMBOLS	"/proc/kallsyms"

/*
 * Does the kernel have a packet filter, in a module or built in? By the functions that execute the
 * rules of nf_tables and of iptables. CTL_MAYBE: it does not tell its functions.
 */
static enum ctl_sure filter_there(void)
{
	static const char *const functions[] = { "nft_do_chain", "ipt_do_table", "ip6t_do_table" };
	char line[600], name[600];
	enum ctl_sure there = CTL_MAYBE;
	FILE *file = fopen(SYMBOLS, "re");
	size_t i;

	while (file != NULL && there != CTL_YES && fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "%*s %*s %599s", name) != 1)
			continue;
		there = CTL_NO;
		for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
			if (strcmp(name, functions[i]) == 0)
				there = CTL_YES;
	}
	if (file != NULL)
		fclose(file);
	return there;
}

struct rules {
	char *nft, *iptables, *ip6tables;	/* output of the programs, or NULL */
};

static void judge(struct ctl_findings *f, const struct rules *r, int family)
{
	const struct ctl_datagram d = { .family = family, .port = f->port };
	const char *saved = family == 4 ? r->iptables : r->ip6tables;
	struct ctl_filter filter = { NULL, 0 };
	enum ctl_sure pass;
	char remedy[300], *culprit;

	snprintf(remedy, sizeof(remedy),
		 "Let UDP port %u pass from the other nodes, before other rules: nft insert rule "
		 "inet filter input udp dport %u accept, or iptables -I INPUT -p udp --dport %u "
		 "-j ACCEPT; then make that permanent.",
		 f->port, f->port, f->port);
	if (r->nft != NULL && ctl_rules_nft(&filter, &d, r->nft, saved != NULL))
		ctl_found(f, CTL_SKIPPED, "firewall", NULL, "what nft prints cannot be understood");
	if (saved != NULL)
		ctl_rules_iptables(&filter, &d, saved);
	pass = ctl_rules_pass(&filter, &culprit);
	if (pass == CTL_NO)
		ctl_found(f, CTL_BAD, "firewall", remedy,
			  "IPv%d: UDP port %u is blocked by %s", family, f->port, culprit);
	else if (pass == CTL_MAYBE)
		ctl_found(f, CTL_WARN, "firewall", remedy,
			  "IPv%d: UDP port %u may be blocked, depending on addresses and cards, "
			  "by %s",
			  family, f->port, culprit);
	else
		ctl_found(f, CTL_GOOD, "firewall", NULL, "IPv%d: UDP port %u passes", family,
			  f->port);
	free(culprit);
	ctl_rules_free(&filter);
}

void ctl_check_firewall(struct ctl_findings *f)
{
	const char *const nft[] = { "nft", "--json", "list", "ruleset", NULL };
	const char *const iptables[] = { "iptables-save", NULL };
	const char *const ip6tables[] = { "ip6tables-save", NULL };
	int nft_status, ipt_status, ip6t_status;
	enum ctl_sure there;
	char remedy[120];
	struct rules r;

	/* The programs would load modules, which a check must not cause. */
	there = filter_there();
	if (there == CTL_NO) {
		ctl_found(f, CTL_GOOD, "firewall", NULL, "the kernel has no packet filter loaded");
		return;
	}
	if (there == CTL_MAYBE) {
		ctl_found(f, CTL_SKIPPED, "firewall", NULL,
			  "not looked at, since " SYMBOLS " cannot be read");
		return;
	}
	if (geteuid() != 0) {
		ctl_found(f, CTL_SKIPPED, "firewall", "Look at it as root: sudo acp check.",
			  "only root can read the rules of the packet filter");
		return;
	}
	r.nft = ctl_output_of(nft, &nft_status);
	r.iptables = ctl_output_of(iptables, &ipt_status);
	r.ip6tables = ctl_output_of(ip6tables, &ip6t_status);
	if (r.nft == NULL && r.iptables == NULL && r.ip6tables == NULL) {
		snprintf(remedy, sizeof(remedy),
			 "Install nftables or iptables, or see to it that UDP port %u passes.",
			 f->port);
		ctl_found(f, CTL_SKIPPED, "firewall", remedy,
			  "a packet filter is loaded, but neither nft nor iptables-save tells its "
			  "rules");
	} else {
		judge(f, &r, 4);
		judge(f, &r, 6);
	}
	free(r.nft);
	free(r.iptables);
	free(r.ip6tables);
}
