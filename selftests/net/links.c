// SPDX-License-Identifier: MIT
/* Network devices for tests: see links.h. */
#include "../dev/isolated.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <linux/if.h>	/* not before net/if.h */
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "links.h"

static struct nl_msg *request(int type, int flags)
{
	struct nl_msg *m = nlmsg_alloc_simple(type, flags);

	CHECK(m);
	return m;
}

static void put(struct nl_msg *m, int type, const void *data, size_t size)
{
	CHECK_EQ(nla_put(m, type, (int)size, data), 0);
}

static void put_text(struct nl_msg *m, int type, const char *text)
{
	put(m, type, text, strlen(text) + 1);
}

static struct nlattr *nest(struct nl_msg *m, int type)
{
	struct nlattr *a = nla_nest_start(m, type);

	CHECK(a);
	return a;
}

static void append(struct nl_msg *m, const void *header, size_t size)
{
	CHECK_EQ(nlmsg_append(m, (void *)header, size, NLMSG_ALIGNTO), 0);
}

static unsigned int index_of(const char *card)
{
	unsigned int index = if_nametoindex(card);

	CHECK(index);
	return index;
}

/*
 * Send the request and wait for completion; "take" (or NULL) processes the answer. The network
 * namespace is that in which the socket was created.
 */
static void ask_for(struct nl_msg *m, const char *what, nl_recvmsg_msg_cb_t take, void *arg)
{
	struct nl_sock *s = nl_socket_alloc();
	int error;

	CHECK(s);
	CHECK_EQ(nl_socket_modify_cb(s, NL_CB_VALID, take ? NL_CB_CUSTOM : NL_CB_DEFAULT,
				     take, arg), 0);
	CHECK_EQ(nl_connect(s, NETLINK_ROUTE), 0);
	error = nl_send_sync(s, m);
	if (error)
		FAIL("%s: %s", what, nl_geterror(error));
	nl_socket_free(s);
}

static void ask(struct nl_msg *m, const char *what)
{
	ask_for(m, what, NULL, NULL);
}

/* ---- Links ---- */

static void put_header(struct nl_msg *m, unsigned int flags)
{
	const struct ifinfomsg header = { .ifi_flags = flags, .ifi_change = flags };

	append(m, &header, sizeof(header));
}

static struct nl_msg *new_link(const char *name)
{
	struct nl_msg *m = request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);

	put_header(m, IFF_UP);
	put_text(m, IFLA_IFNAME, name);
	return m;
}

void links_bridge(const char *name)
{
	struct nl_msg *m = new_link(name);
	struct nlattr *info = nest(m, IFLA_LINKINFO);

	put_text(m, IFLA_INFO_KIND, "bridge");
	nla_nest_end(m, info);
	ask(m, name);
}

void links_veth(const char *name, const char *bridge, const char *peer,
		const unsigned char mac[LINKS_MAC], int namespace)
{
	const unsigned int master = index_of(bridge);
	struct nlattr *info, *data, *other;
	struct nl_msg *m = new_link(name);

	put(m, IFLA_MASTER, &master, sizeof(master));
	info = nest(m, IFLA_LINKINFO);
	put_text(m, IFLA_INFO_KIND, "veth");
	data = nest(m, IFLA_INFO_DATA);
	other = nest(m, VETH_INFO_PEER);
	put_header(m, 0);
	put_text(m, IFLA_IFNAME, peer);
	put(m, IFLA_ADDRESS, mac, LINKS_MAC);
	put(m, IFLA_NET_NS_FD, &namespace, sizeof(namespace));
	nla_nest_end(m, other);
	nla_nest_end(m, data);
	nla_nest_end(m, info);
	ask(m, name);
}

static int take_state(struct nl_msg *m, void *arg)
{
	struct nlattr *state = nlmsg_find_attr(nlmsg_hdr(m), sizeof(struct ifinfomsg),
					       IFLA_OPERSTATE);

	*(int *)arg = state ? nla_get_u8(state) : -1;
	return NL_OK;
}

static int state_of(const char *name)
{
	struct nl_msg *m = request(RTM_GETLINK, 0);
	int state = -1;

	put_header(m, 0);
	put_text(m, IFLA_IFNAME, name);
	ask_for(m, name, take_state, &state);
	return state;
}

void links_await(const char *name)
{
	struct patience p = patience_begin(PATIENCE_SOON);

	while (state_of(name) != IF_OPER_UP) {
		CHECK(!patience_over(&p));
		usleep(1000);
	}
}

/* ---- Neighbours ---- */

void links_neighbour(const char *card, const char *address, const unsigned char mac[LINKS_MAC])
{
	const bool ipv6 = strchr(address, ':');
	const struct ndmsg header = {
		.ndm_family = ipv6 ? AF_INET6 : AF_INET, .ndm_ifindex = (int)index_of(card),
		.ndm_state = NUD_PERMANENT,
	};
	struct nl_msg *m = request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
	struct in6_addr to;		/* or an IPv4 address in its first bytes */

	CHECK_EQ(inet_pton(header.ndm_family, address, &to), 1);
	append(m, &header, sizeof(header));
	put(m, NDA_DST, &to, ipv6 ? sizeof(struct in6_addr) : sizeof(struct in_addr));
	put(m, NDA_LLADDR, mac, LINKS_MAC);
	ask(m, address);
}

/* ---- Impairments ---- */

struct netem {
	struct tc_netem_qopt options;
	struct tc_netem_reorder reorder;
	struct tc_netem_corrupt corrupt;
	int64_t delay_ns, jitter_ns;
};

/* Parse "12.5%" as a fraction of 2^32 - 1; otherwise do not advance. */
static bool take_share(const char **words, uint32_t *share)
{
	char *end;
	double value = strtod(*words, &end);

	if (end == *words || *end != '%' || value < 0 || value > 100)
		return false;
	*share = (uint32_t)(value / 100 * UINT32_MAX);
	*words = end + 1 + strspn(end + 1, " ");
	return true;
}

/* The same for "2ms", in nanoseconds. */
static bool take_ms(const char **words, int64_t *ns)
{
	char *end;
	double value = strtod(*words, &end);

	if (end == *words || strncmp(end, "ms", 2) || value < 0)
		return false;
	*ns = (int64_t)(value * 1e6);
	*words = end + 2 + strspn(end + 2, " ");
	return true;
}

static bool take_word(const char **words, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*words, word, length) || (*words)[length] != ' ')
		return false;
	*words += length + 1;
	return true;
}

static bool take_delay(const char **words, struct netem *e)
{
	if (!take_ms(words, &e->delay_ns))
		return false;
	take_ms(words, &e->jitter_ns);
	return true;
}

static bool take_reorder(const char **words, struct netem *e)
{
	if (!take_share(words, &e->reorder.probability))
		return false;
	take_share(words, &e->reorder.correlation);
	e->options.gap = 1;		/* without a gap, nothing is reordered */
	return true;
}

static bool understand(const char *words, struct netem *e)
{
	bool known = true;

	*e = (struct netem){ .options.limit = 1000 };
	while (known && *words)
		known = take_word(&words, "delay") ? take_delay(&words, e) :
			take_word(&words, "reorder") ? take_reorder(&words, e) :
			take_word(&words, "loss") ? take_share(&words, &e->options.loss) :
			take_word(&words, "duplicate") ? take_share(&words, &e->options.duplicate) :
			take_word(&words, "corrupt") ? take_share(&words, &e->corrupt.probability) :
			false;
	return known;
}

static struct nl_msg *root_of(const char *card, int type, int flags)
{
	const struct tcmsg header = {
		.tcm_parent = TC_H_ROOT, .tcm_ifindex = (int)index_of(card),
	};
	struct nl_msg *m = request(type, flags);

	append(m, &header, sizeof(header));
	return m;
}

bool links_netem(const char *card, const char *words)
{
	struct nlattr *options;
	struct nl_msg *m;
	struct netem e;

	if (!understand(words, &e))
		return false;
	if (!*words) {
		ask(root_of(card, RTM_DELQDISC, 0), card);
		return true;
	}
	m = root_of(card, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE);
	put_text(m, TCA_KIND, "netem");
	options = nest(m, TCA_OPTIONS);
	append(m, &e.options, sizeof(e.options));
	put(m, TCA_NETEM_LATENCY64, &e.delay_ns, sizeof(e.delay_ns));
	put(m, TCA_NETEM_JITTER64, &e.jitter_ns, sizeof(e.jitter_ns));
	put(m, TCA_NETEM_REORDER, &e.reorder, sizeof(e.reorder));
	put(m, TCA_NETEM_CORRUPT, &e.corrupt, sizeof(e.corrupt));
	nla_nest_end(m, options);
	ask(m, card);
	return true;
}
