/* SPDX-License-Identifier: MIT */
/*
 * The address by which this node takes part in the job.
 */
#ifndef PERF_NET_H
#define PERF_NET_H

#include <stdbool.h>
#include <sys/socket.h>

/*
 * Find the one of this machine's addresses that ACP_NODES lists (127.0.0.1 if it is not set).
 * Returns its length, port 0, or 0 if there is none.
 */
socklen_t perf_net_address(struct sockaddr_storage *address);

#endif
