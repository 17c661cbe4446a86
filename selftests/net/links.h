/* SPDX-License-Identifier: MIT */
/*
 * Cards, bridges and impairments, asked for by rtnetlink: what ip and tc do,
 * without a program, which costs more than all the rest of making nodes.
 * A failure fails the test.
 */
#ifndef LINKS_H
#define LINKS_H

#include <stdbool.h>

struct nl_sock;

/* A socket of the calling thread's namespace, whatever namespace it enters later. */
struct nl_sock *links_open(void);
void links_close(struct nl_sock *s);

void links_bridge(struct nl_sock *s, const char *name);

/* A pair of cards: "name", up and in a bridge, and "peer" in another namespace (descriptor). */
void links_veth(struct nl_sock *s, const char *name, const char *bridge, const char *peer,
		const unsigned char mac[6], int namespace);

/*
 * What a card does to all that it sends, in the words of tc-netem; "": nothing any more.  False if
 * they are not among those known here: delay, reorder, loss, duplicate and corrupt, with numbers.
 */
bool links_netem(struct nl_sock *s, const char *card, const char *words);

#endif /* LINKS_H */
