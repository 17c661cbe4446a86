/* SPDX-License-Identifier: MIT */
/*
 * Cards, bridges, neighbours and impairments, asked for by rtnetlink: what ip
 * and tc do, without a program, which costs more than all the rest of making
 * nodes.  All is of the calling thread's namespace; a failure fails the test.
 */
#ifndef LINKS_H
#define LINKS_H

#include <stdbool.h>

#define LINKS_MAC	6	/* bytes of a card's address */

void links_bridge(const char *name);

/* A pair of cards: "name", up and in a bridge, and "peer" in another namespace (descriptor). */
void links_veth(const char *name, const char *bridge, const char *peer,
		const unsigned char mac[LINKS_MAC], int namespace);

/*
 * Until a card passes on what it is given.  One that was up before the other end of its cable
 * drops everything for a moment: the kernel sees to that in the background.
 */
void links_await(const char *name);

/* Who has an address, IPv4 or IPv6, in the network of a card: for good. */
void links_neighbour(const char *card, const char *address, const unsigned char mac[LINKS_MAC]);

/*
 * What a card does to all that it sends, in the words of tc-netem; "": nothing any more.  False if
 * they are not among those known here: delay, reorder, loss, duplicate and corrupt, with numbers.
 */
bool links_netem(const char *card, const char *words);

#endif /* LINKS_H */
