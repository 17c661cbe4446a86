/* SPDX-License-Identifier: MIT */
/* The address of this node in the job. */
#ifndef PERF_NET_H
#define PERF_NET_H

#include <stdbool.h>
#include <sys/socket.h>

/*
 * Find the address of this machine that is in ACP_NODES (127.0.0.1 if it is not set). Returns its
 * length, or 0 if there is none. The port is 0.
 */
socklen_t perf_net_address(struct sockaddr_storage *address);

#endif
