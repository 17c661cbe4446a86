/* SPDX-License-Identifier: MIT */
/* The operations to measure: the areas they access, and checks of their results. */
#ifndef PERF_OP_H
#define PERF_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp.h"
#include "job.h"

struct perf_op {
	const char *name, *what;
	enum perf_place dst, src;
	unsigned int width;	/* 0: copies any number of bytes; 4 or 8: an atomic of that size */
	acp_handle_t (*atomic4)(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
	acp_handle_t (*atomic8)(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
	uint64_t (*model)(uint64_t old, uint64_t value);
	/* A copy other than acp_copy(): offset 0 only. */
	acp_handle_t (*copy)(acp_ga_t dst, acp_ga_t src, size_t size);
	unsigned int apart;	/* distance in bytes of the words it copies; 0: contiguous */
	bool flag;		/* also changes the word behind the copy */
};

extern const struct perf_op perf_op_table[];
extern const size_t perf_op_count;

/* Return the index in the table, or -1. */
int perf_op_find(const char *name);

/* Return the bit mask of all indices. */
uint32_t perf_op_all(void);

/* Return NULL if the job can execute the operation with this size, otherwise the reason. */
const char *perf_op_obstacle(const struct perf_op *op, const struct perf_job *job, size_t size);

/* Issue the operation at @offset bytes into the areas (0 for atomics). */
acp_handle_t perf_op_issue(const struct perf_op *op, const struct perf_job *job, size_t size,
			   size_t offset);

/* Initialize the source, and the destination differently. */
void perf_op_prepare(const struct perf_op *op, const struct perf_job *job, size_t size,
		     uint64_t seed);

/*
 * Check memory after @times operations since perf_op_prepare(). @in_order: each operation was
 * issued after the completion of the previous one, so that previous values are known.
 */
bool perf_op_verify(const struct perf_op *op, const struct perf_job *job, size_t size,
		    uint64_t seed, uint64_t times, bool in_order);

#endif
