/* SPDX-License-Identifier: MIT */
/*
 * Network devices, bridges, neighbours and impairments by rtnetlink: like ip and tc, but without
 * starting a program, which would take longer than everything else. Everything is in the namespace
 * of the calling thread. A failure fails the test.
 */
#ifndef LINKS_H
#define LINKS_H

#include <stdbool.h>

#define LINKS_MAC	6	/* bytes of a MAC address */

void links_bridge(const char *name);

/* Create a veth pair: "name", up and in a bridge, and "peer" in another namespace (descriptor). */
void links_veth(const char *name, const char *bridge, const char *peer,
		const unsigned char mac[LINKS_MAC], int namespace);

/*
 * Wait until a device forwards packets. A device that was up before its peer drops everything for a
 * moment, until a work item of the kernel has run.
 */
void links_await(const char *name);

/* Add a permanent neighbour entry for an IPv4 or IPv6 address. */
void links_neighbour(const char *card, const char *address, const unsigned char mac[LINKS_MAC]);

/*
 * Set impairments of all packets that a device sends, in the syntax of tc-netem; "": none. False if
 * a word is unknown here: delay, reorder, loss, duplicate and corrupt are known, with numbers.
 */
bool links_netem(const char *card, const char *words);

#endif /* LINKS_H */
