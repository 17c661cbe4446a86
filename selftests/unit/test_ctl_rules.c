// SPDX-License-Identifier: MIT
/* Evaluation of packet filter rules by acp check, with the output of the tools as input. */
#include "../../tools/acp/rules.h"

#include "test.h"

#define PORT	16707

static enum ctl_sure passes(const char *nft, const char *saved, int family)
{
	const struct ctl_datagram d = { .family = family, .port = PORT };
	struct ctl_filter f = { NULL, 0 };
	enum ctl_sure sure;
	char *culprit;

	if (nft)
		CHECK_EQ(ctl_rules_nft(&f, &d, nft, saved != NULL), 0);
	if (saved)
		CHECK_EQ(ctl_rules_iptables(&f, &d, saved), 0);
	sure = ctl_rules_pass(&f, &culprit);
	CHECK_EQ(culprit == NULL, sure == CTL_YES);
	free(culprit);
	ctl_rules_free(&f);
	return sure;
}

/* ---- nft: base chains, policies and rules ---- */

#define CHAIN(family, name, hook, policy)					\
	"{\"chain\":{\"family\":\"" family "\",\"table\":\"t\",\"name\":\"" name	\
	"\",\"handle\":1,\"type\":\"filter\",\"hook\":\"" hook "\",\"prio\":0,\"policy\":\"" policy "\"}}"
#define SUB(name)	"{\"chain\":{\"family\":\"inet\",\"table\":\"t\",\"name\":\"" name "\"}}"
#define RULE(chain, expr)							\
	",{\"rule\":{\"family\":\"inet\",\"table\":\"t\",\"chain\":\"" chain "\",\"expr\":[" expr "]}}"
#define NFT(list)	"{\"nftables\":[{\"metainfo\":{\"version\":\"1\"}}," list "]}"
#define MATCH(op, left, right)							\
	"{\"match\":{\"op\":\"" op "\",\"left\":{" left "},\"right\":" right "}},"
#define JUMP		"{\"jump\":{\"target\":\"sub\"}}"
#define TEN		"{\"prefix\":{\"addr\":\"10.0.0.0\",\"len\":8}}"
#define DPORT	"\"payload\":{\"protocol\":\"udp\",\"field\":\"dport\"}"
#define TCP	"\"payload\":{\"protocol\":\"tcp\",\"field\":\"dport\"}"
#define SADDR	"\"payload\":{\"protocol\":\"ip\",\"field\":\"saddr\"}"
#define STATE	"\"ct\":{\"key\":\"state\"}"
#define CARD	"\"meta\":{\"key\":\"iifname\"}"
#define PROTO	"\"meta\":{\"key\":\"l4proto\"}"
#define ACCEPT	"{\"accept\":null}"
#define DROP	"{\"drop\":null}"
#define COUNT	"{\"counter\":{\"packets\":1,\"bytes\":2}},"

static enum ctl_sure with(const char *policy, const char *rules)
{
	char text[4000];

	snprintf(text, sizeof(text),
		 "{\"nftables\":[{\"chain\":{\"family\":\"inet\",\"table\":\"t\",\"name\":\"in\","
		 "\"type\":\"filter\",\"hook\":\"input\",\"prio\":0,\"policy\":\"%s\"}},"
		 SUB("sub") "%s]}", policy, rules);
	return passes(text, NULL, 4);
}

TEST(nft__policy)
{
	CHECK_EQ(with("accept", ""), CTL_YES);
	CHECK_EQ(with("drop", ""), CTL_NO);
	CHECK_EQ(passes(NFT(CHAIN("inet", "out", "output", "drop")), NULL, 4), CTL_NO);
	CHECK_EQ(passes(NFT(CHAIN("inet", "fwd", "forward", "drop")), NULL, 4), CTL_YES);
	CHECK_EQ(passes(NFT(CHAIN("ip6", "in", "input", "drop")), NULL, 4), CTL_YES);
	CHECK_EQ(passes(NFT(CHAIN("ip6", "in", "input", "drop")), NULL, 6), CTL_NO);
	CHECK_EQ(passes(NFT(CHAIN("bridge", "in", "input", "drop")), NULL, 4), CTL_YES);
}

TEST(nft__ports)
{
	CHECK_EQ(with("drop", RULE("in", MATCH("==", DPORT, "16707") ACCEPT)), CTL_YES);
	CHECK_EQ(with("drop", RULE("in", MATCH("==", DPORT, "16708") ACCEPT)), CTL_NO);
	CHECK_EQ(with("drop", RULE("in", MATCH("==", TCP, "16707") ACCEPT)), CTL_NO);
	CHECK_EQ(with("accept", RULE("in", MATCH("==", DPORT, "16707") COUNT DROP)), CTL_NO);
	CHECK_EQ(with("accept", RULE("in", MATCH("!=", DPORT, "22") DROP)), CTL_NO);
	CHECK_EQ(with("accept", RULE("in", MATCH("!=", TCP, "22") DROP)), CTL_YES);
	CHECK_EQ(with("drop",
		      RULE("in", MATCH("==", DPORT, "{\"set\":[53,16707]}") ACCEPT)), CTL_YES);
	CHECK_EQ(with("drop",
		      RULE("in", MATCH("==", DPORT, "{\"set\":[53,{\"range\":[16000,17000]}]}")
			   ACCEPT)),
		 CTL_YES);
	CHECK_EQ(with("drop",
		      RULE("in", MATCH("==", DPORT, "{\"range\":[1,1024]}") ACCEPT)), CTL_NO);
	CHECK_EQ(with("drop", RULE("in", MATCH("==", DPORT, "\"@ports\"") ACCEPT)), CTL_MAYBE);
	CHECK_EQ(with("drop", RULE("in", MATCH("==", PROTO, "\"udp\"") ACCEPT)), CTL_YES);
	CHECK_EQ(with("drop",
		      RULE("in", MATCH("==", PROTO, "{\"set\":[\"tcp\",\"icmp\"]}") ACCEPT)),
			   CTL_NO);
}

/* The first datagram belongs to no connection, and does not arrive through lo. */
TEST(nft__what_a_first_datagram_is)
{
	CHECK_EQ(with("drop",
		      RULE("in", MATCH("in", STATE, "[\"established\",\"related\"]") ACCEPT)),
			   CTL_NO);
	CHECK_EQ(with("drop",
		      RULE("in", MATCH("in", STATE, "[\"new\",\"related\"]") ACCEPT)), CTL_YES);
	CHECK_EQ(with("drop", RULE("in", MATCH("==", CARD, "\"lo\"") ACCEPT)), CTL_NO);
	CHECK_EQ(with("drop", RULE("in", MATCH("==", CARD, "\"eth0\"") ACCEPT)), CTL_MAYBE);
	CHECK_EQ(with("accept", RULE("in", MATCH("!=", CARD, "\"lo\"") DROP)), CTL_NO);
	CHECK_EQ(with("drop",
		      RULE("in", MATCH("==", SADDR, TEN) ACCEPT)),
		 CTL_MAYBE);
	CHECK_EQ(with("accept",
		      RULE("in", "{\"limit\":{\"rate\":1,\"per\":\"second\"}}," DROP)), CTL_MAYBE);
}

TEST(nft__jumps)
{
	CHECK_EQ(with("drop",
		      RULE("in", JUMP) RULE("sub", MATCH("==", DPORT, "16707")
								 ACCEPT)),
		 CTL_YES);
	CHECK_EQ(with("accept",
		      RULE("in", JUMP) RULE("sub", MATCH("==", DPORT, "1") DROP)),
		 CTL_YES);
	CHECK_EQ(with("accept",
		      RULE("in", JUMP) RULE("sub", "{\"return\":null}")
		      RULE("sub", DROP) RULE("in", DROP)), CTL_NO);
	/* A goto does not return. */
	CHECK_EQ(with("accept",
		      RULE("in", "{\"goto\":{\"target\":\"sub\"}}") RULE("in", DROP)), CTL_YES);
	CHECK_EQ(with("accept", RULE("in", "{\"jump\":{\"target\":\"in\"}}")), CTL_MAYBE);
}

TEST(nft__verdict_maps)
{
#define ESTABLISHED	"[\"established\"," ACCEPT "],[\"invalid\"," DROP "]"
#define VMAP(key, list)	"{\"vmap\":{\"key\":{" key "},\"data\":{\"set\":[" list "]}}}"
	CHECK_EQ(with("drop",
		      RULE("in", VMAP(STATE, ESTABLISHED))), CTL_NO);
	CHECK_EQ(with("accept",
		      RULE("in", VMAP(STATE, ESTABLISHED))), CTL_YES);
	CHECK_EQ(with("drop",
		      RULE("in", VMAP(DPORT, "[53," DROP "],[16707," ACCEPT "]"))), CTL_YES);
	CHECK_EQ(with("accept",
		      RULE("in", "{\"vmap\":{\"key\":{" DPORT "},\"data\":\"@verdicts\"}}")),
			   CTL_MAYBE);
}

/* All hooks must accept it, regardless of their tables. */
TEST(nft__several_tables)
{
	CHECK_EQ(passes(NFT(CHAIN("inet", "in", "input", "accept") ","
			    CHAIN("ip", "in", "input", "drop")), NULL, 4), CTL_NO);
	CHECK_EQ(passes(NFT(CHAIN("inet", "in", "input", "accept") ","
			    CHAIN("ip", "in", "input", "drop")), NULL, 6), CTL_YES);
}

TEST(nft__nonsense)
{
	const struct ctl_datagram d = { .family = 4, .port = PORT };
	static const char *const texts[] = {
		"", "{", "[]", "{\"nftables\":3}", "null", "{\"nftables\":{}}",
	};
	struct ctl_filter f = { NULL, 0 };
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK_EQ(ctl_rules_nft(&f, &d, texts[i], false), -1);
	CHECK_EQ(ctl_rules_nft(&f, &d,
			       "{\"nftables\":[3,null,{\"rule\":4},{\"chain\":[]},"
			       "{\"rule\":{\"family\":\"ip\",\"table\":\"t\",\"chain\":\"c\",\"expr\":7}},"
			       "{\"rule\":{\"family\":\"ip\",\"table\":\"t\",\"chain\":\"c\",\"expr\":["
			       "1,{\"match\":2},"
			       "{\"vmap\":[]},{\"jump\":3},"
			       "{\"match\":{\"op\":4,\"left\":5,\"right\":[{}]}}]}}]}",
			       false), 0);
	ctl_rules_free(&f);
}

/* ---- iptables ---- */

/* The rule that drops is shown as users write it, not as JSON. */
static void check_culprit(const char *expr, const char *wanted)
{
	const struct ctl_datagram d = { .family = 4, .port = PORT };
	struct ctl_filter f = { NULL, 0 };
	char text[4000], *culprit;

	snprintf(text, sizeof(text),
		 "{\"nftables\":[{\"chain\":{\"family\":\"inet\",\"table\":\"t\",\"name\":\"in\","
		 "\"type\":\"filter\",\"hook\":\"input\",\"prio\":0,\"policy\":\"accept\"}}"
		 RULE("in", "%s") "]}", expr);
	CHECK_EQ(ctl_rules_nft(&f, &d, text, false), 0);
	CHECK(ctl_rules_pass(&f, &culprit) != CTL_YES);
	if (!strstr(culprit, wanted) || strchr(culprit, '"'))
		FAIL("told: %s", culprit);
	free(culprit);
	ctl_rules_free(&f);
}

TEST(nft__rules_are_told_as_they_are_written)
{
	check_culprit(MATCH("==", DPORT, "16707") COUNT DROP, "rule 'udp dport 16707 counter drop'");
	check_culprit(MATCH("==", SADDR, TEN) DROP, "rule 'ip saddr 10.0.0.0/8 drop'");
	check_culprit(MATCH("!=", CARD, "\"eth0\"") DROP, "rule 'meta iifname != eth0 drop'");
	check_culprit(MATCH("in", STATE, "[\"new\",\"invalid\"]") DROP,
		      "rule 'ct state { new, invalid } drop'");
	check_culprit(MATCH("==", DPORT, "{\"set\":[53,{\"range\":[16000,17000]}]}")
		      "{\"reject\":{\"type\":\"tcp reset\"}}",
		      "rule 'udp dport { 53, 16000-17000 } reject'");
	check_culprit(MATCH("==", DPORT, "16707")
		      "{\"limit\":{\"rate\":10,\"per\":\"second\"}}," DROP,
		      "rule 'udp dport 16707 limit rate 10/second drop'");
	check_culprit("{\"vmap\":{\"key\":{" DPORT "},\"data\":{\"set\":[[16707,{\"drop\":null}],"
		      "[22,{\"accept\":null}]]}}}",
		      "rule 'udp dport vmap { 16707 : drop, 22 : accept }'");
}

static enum ctl_sure saved(const char *rules)
{
	char text[4000];

	snprintf(text, sizeof(text), "# Generated\n*filter\n%s\nCOMMIT\n", rules);
	return passes(NULL, text, 4);
}

TEST(iptables__rules)
{
	CHECK_EQ(saved(":INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]"), CTL_YES);
	CHECK_EQ(saved(":INPUT DROP [0:0]"), CTL_NO);
	CHECK_EQ(saved(":FORWARD DROP [0:0]"), CTL_YES);
	CHECK_EQ(saved(":INPUT ACCEPT [0:0]\n"
		       "-A INPUT -p udp -m udp --dport 16707 -j DROP"), CTL_NO);
	CHECK_EQ(saved(":OUTPUT ACCEPT [0:0]\n"
		       "-A OUTPUT -p udp -m udp --dport 16000:17000 -j REJECT --reject-with "
		       "icmp-port-unreachable"),
		 CTL_NO);
	CHECK_EQ(saved(":INPUT ACCEPT [0:0]\n"
		       "-A INPUT -p tcp -m tcp --dport 16707 -j DROP"), CTL_YES);
	CHECK_EQ(saved(":INPUT ACCEPT [0:0]\n-A INPUT -p udp -m udp ! --dport 53 -j DROP"), CTL_NO);
	CHECK_EQ(saved(":INPUT DROP [0:0]\n"
		       "-A INPUT -i lo -j ACCEPT\n"
		       "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"),
		 CTL_NO);
	CHECK_EQ(saved(":INPUT DROP [0:0]\n"
		       "-A INPUT -m state --state NEW -m udp -p udp --dport 16707 -j ACCEPT"),
		 CTL_YES);
	CHECK_EQ(saved(":INPUT DROP [0:0]\n-A INPUT -s 10.0.0.0/8 -j ACCEPT"), CTL_MAYBE);
	CHECK_EQ(saved(":INPUT DROP [0:0]\n"
		       "-A INPUT -p udp -m multiport --dports 53,16000:17000 -j ACCEPT"),
		 CTL_YES);
	CHECK_EQ(saved(":INPUT DROP [0:0]\n"
		       "-A INPUT -m comment --comment \"a -j DROP \\\" b\" -p udp -j ACCEPT"),
		 CTL_YES);
	CHECK_EQ(saved(":INPUT ACCEPT [0:0]\n"
		       "-A INPUT -j LOG --log-prefix x\n"
		       "-A INPUT -p udp -j DROP"), CTL_NO);
}

TEST(iptables__chains)
{
	CHECK_EQ(saved(":INPUT DROP [0:0]\n"
		       ":mine - [0:0]\n"
		       "-A INPUT -j mine\n"
		       "-A mine -p udp -j ACCEPT"), CTL_YES);
	CHECK_EQ(saved(":INPUT DROP [0:0]\n"
		       ":mine - [0:0]\n"
		       "-A INPUT -g mine\n"
		       "-A INPUT -j ACCEPT\n"
		       "-A mine -p tcp -j ACCEPT"),
		 CTL_NO);
	CHECK_EQ(saved(":INPUT ACCEPT [0:0]\n:mine - [0:0]\n-A mine -j DROP"), CTL_YES);
}

/* Rulesets of front ends of Debian and Fedora, shortened: the port is not open. */
TEST(iptables__ufw)
{
	static const char rules[] = ":INPUT DROP [0:0]\n:before - [0:0]\n:not-local - [0:0]\n"
		":user - [0:0]\n-A INPUT -j before\n-A INPUT -j user\n"
		"-A before -i lo -j ACCEPT\n"
		"-A before -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n"
		"-A before -m conntrack --ctstate INVALID -j DROP\n-A before -j not-local\n"
		"-A before -d 224.0.0.251/32 -p udp -m udp --dport 5353 -j ACCEPT\n"
		"-A not-local -m addrtype --dst-type LOCAL -j RETURN\n"
		"-A not-local -m addrtype --dst-type MULTICAST -j RETURN\n"
		"-A not-local -j DROP\n-A user -p tcp -m tcp --dport 22 -j ACCEPT\n";
	char more[2000];

	CHECK_EQ(saved(rules), CTL_NO);
	snprintf(more, sizeof(more), "%s-A user -p udp -m udp --dport 16707 -j ACCEPT\n", rules);
	CHECK_EQ(saved(more), CTL_YES);
}

TEST(nft__firewalld)
{
#define STATUS	"\"ct\":{\"key\":\"status\"}"
#define KNOWN	"{\"set\":[\"established\",\"related\"]}"
	static const char begin[] = RULE("in", MATCH("in", STATE, KNOWN) ACCEPT)
		RULE("in", MATCH("in", STATUS, "\"dnat\"") ACCEPT)
		RULE("in", MATCH("==", CARD, "\"lo\"") ACCEPT)
		RULE("in", MATCH("==", CARD, "\"eth0\"") JUMP) RULE("in", JUMP);
	static const char open[] = RULE("sub", MATCH("==", DPORT, "16707")
					MATCH("in", STATE, "[\"new\"]") ACCEPT);
	static const char close[] = RULE("in", "{\"reject\":{\"type\":\"icmpx\"}}");
	char rules[3000];

	snprintf(rules, sizeof(rules), "%s%s", begin, close);
	CHECK_EQ(with("accept", rules), CTL_NO);
	snprintf(rules, sizeof(rules), "%s%s%s", begin, open, close);
	CHECK_EQ(with("accept", rules), CTL_YES);
}

/* For a table that iptables wrote with its own extensions, the output of iptables is used. */
TEST(iptables__beside_nft)
{
	static const char nft[] =
		"{\"nftables\":[{\"chain\":{\"family\":\"ip\",\"table\":\"filter\",\"name\":\"INPUT\","
		"\"type\":\"filter\",\"hook\":\"input\",\"prio\":0,\"policy\":\"drop\"}},"
		"{\"rule\":{\"family\":\"ip\",\"table\":\"filter\","
		"\"chain\":\"INPUT\",\"expr\":[{\"xt\":null}," ACCEPT "]}}]}";

	CHECK_EQ(passes(nft, "*filter\n:INPUT DROP [0:0]\n"
			"-A INPUT -p udp -m udp --dport 16707 -j ACCEPT\nCOMMIT\n", 4),
		 CTL_YES);
	CHECK_EQ(passes(nft, NULL, 4), CTL_MAYBE);
}

TEST(iptables__nonsense)
{
	CHECK_EQ(saved("-A\n"
		       "-A\t\n"
		       ":\n"
		       "-A X\n"
		       "-A INPUT -p\n"
		       "-A INPUT -j\n"
		       "-A INPUT ! !\n"
		       "*\n"
		       "-A INPUT --dport x -j DROP\n"
		       "\""),
		 CTL_YES);
}

TEST_MAIN
