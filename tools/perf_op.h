/* SPDX-License-Identifier: MIT */
/*
 * The operations that are measured: what each one does to which areas, and how to tell that it did.
 */
#ifndef PERF_OP_H
#define PERF_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"
#include "perf_job.h"

struct perf_op {
	const char *name, *what;
	enum perf_place dst, src;
	unsigned int width;	/* 0: copies any number of bytes; 4 or 8: an atomic on so many */
	acp_handle_t (*atomic4)(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
	acp_handle_t (*atomic8)(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
	uint64_t (*model)(uint64_t old, uint64_t value);
	/* A copy that is not acp_copy: offset 0 only. */
	acp_handle_t (*copy)(acp_ga_t dst, acp_ga_t src, size_t size);
	unsigned int apart;	/* bytes from word to word that it copies; 0: in one piece */
	bool flag;		/* it changes the word behind the copy, too */
};

extern const struct perf_op perf_op_table[];
extern const size_t perf_op_count;

/* Index in the table, or -1. */
int perf_op_find(const char *name);

/* Bits of all indices. */
uint32_t perf_op_all(void);

/* NULL if the job can do the operation with this size, else why not. */
const char *perf_op_obstacle(const struct perf_op *op, const struct perf_job *job, size_t size);

/* Start it, offset bytes into the areas (0 for atomics). */
acp_handle_t perf_op_issue(const struct perf_op *op, const struct perf_job *job, size_t size,
			   size_t offset);

/* Fill the source, and the destination with something else. */
void perf_op_prepare(const struct perf_op *op, const struct perf_job *job, size_t size,
		     uint64_t seed);

/*
 * True if memory is as it must be after times operations since perf_op_prepare. In order: the
 * operations were issued one after the other's completion, so that the former value is known.
 */
bool perf_op_verify(const struct perf_op *op, const struct perf_job *job, size_t size,
		    uint64_t seed, uint64_t times, bool in_order);

#endif
