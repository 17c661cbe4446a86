/* SPDX-License-Identifier: MIT */
/* What the completion queue of a rank says: see fabric_play.h. */
#ifndef SAID_H
#define SAID_H

#include "fabric_play.h"

static struct fid_cq *cq;		/* of sends and receives */

/* What a CQ said: a completion, or an error. */
struct said {
	struct fi_cq_tagged_entry e;
	fi_addr_t source;
	int error;
	size_t olen;
};

/* True if there is one now. */
static inline bool play_read(struct said *s)
{
	struct fi_cq_err_entry err = { 0 };
	ssize_t n = fi_cq_readfrom(cq, &s->e, 1, &s->source);

	s->error = 0;
	if (n == -FI_EAGAIN)
		return false;
	if (n == 1)
		return true;
	CHECK_EQ(n, -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(cq, &err, 0), 1);
	s->e = (struct fi_cq_tagged_entry){
		.op_context = err.op_context, .flags = err.flags, .len = err.len, .buf = err.buf,
		.data = err.data, .tag = err.tag,
	};
	s->error = err.err;
	s->olen = err.olen;
	return true;
}

/* Wait for the next one. */
static inline struct said play_next(void)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	struct said s;

	while (!play_read(&s))
		CHECK(!patience_over(&p));
	return s;
}

/* Wait for that of one operation; others must not come. */
static inline struct said play_of(void *context)
{
	struct said s = play_next();

	CHECK(s.e.op_context == context);
	return s;
}

/* Call again while there is no room. */
#define PLAY_RETRY(call) \
	do { \
		struct patience retry_ = patience_begin(PATIENCE_SOON); \
		ssize_t result_; \
		while ((result_ = (call)) == -FI_EAGAIN) { \
			fi_cq_read(cq, NULL, 0); \
			CHECK(!patience_over(&retry_)); \
		} \
		CHECK_EQ(result_, 0); \
	} while (0)

#endif /* SAID_H */
