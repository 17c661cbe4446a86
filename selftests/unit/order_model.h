/* SPDX-License-Identifier: MIT */
/*
 * A model of the order of commands, to compare kernel/core/cmd.c with. The effects of a command
 * occur at points: when it STARTs at its origin, when its FRAME is applied at the peer, when its
 * RESULT is applied at the destination. A fence orders points of one flow; otherwise only
 * completion does.
 */
#ifndef ACP_ORDER_MODEL_H
#define ACP_ORDER_MODEL_H

#include "cmd.h"

enum point { START, FRAME, RESULT };

struct act {
	enum point point;
	u32 node;
};

struct model {
	struct acp_step s;
	u64 order;
	bool started, fenced, complete;
	/* derived */
	int writes;
	struct act write[2];
	struct act read_begin, read_end;
};

#define ORIGIN	0

static inline void derive(struct model *c)
{
	const struct acp_step *s = &c->s;
	enum point result = s->dst_node == s->node && !s->later ? FRAME : RESULT;

	c->writes = 0;
	if (s->plan == ACP_PLAN_LOCAL) {
		c->write[c->writes++] = (struct act){ s->later ? RESULT : START, ORIGIN };
		c->read_begin = (struct act){ START, ORIGIN };
		c->read_end = c->write[0];
	} else if (s->plan == ACP_PLAN_SEND) {
		if (s->atomic)
			c->write[c->writes++] = (struct act){ START, ORIGIN };
		c->write[c->writes++] = (struct act){ FRAME, s->node };
		c->read_begin = (struct act){ START, ORIGIN };
		c->read_end = (struct act){ FRAME, ORIGIN };
	} else {
		if (s->atomic)
			c->write[c->writes++] = (struct act){ FRAME, s->node };
		c->write[c->writes++] = (struct act){ result, s->dst_node };
		c->read_begin = (struct act){ FRAME, s->node };
		c->read_end = (struct act){ s->atomic ? FRAME : result, s->node };
	}
}

/* True if point "a" of command A is guaranteed to be before point "b" of the fenced command B. */
static inline bool precedes(const struct model *A, enum point a, const struct model *B,
			    enum point b)
{
	bool same_flow = A->s.node == B->s.node && A->s.color == B->s.color;

	if (A->complete || a == START)
		return true;
	if (!same_flow || b == START)
		return false;
	if (a == FRAME)
		return true;
	return b == RESULT && A->s.home && B->s.home && A->s.dst_color == B->s.dst_color;
}

static inline bool guaranteed(const struct model *A, const struct model *B)
{
	int i, j;

	if (!A->started)
		return false;
	for (i = 0; i < A->writes; i++) {
		for (j = 0; j < B->writes; j++)
			if (!precedes(A, A->write[i].point, B, B->write[j].point))
				return false;
		if (A->write[i].node == B->read_begin.node &&
		    !precedes(A, A->write[i].point, B, B->read_begin.point))
			return false;
	}
	for (j = 0; j < B->writes; j++)
		if (B->write[j].node == A->read_end.node &&
		    !precedes(A, A->read_end.point, B, B->write[j].point))
			return false;
	return true;
}

#endif /* ACP_ORDER_MODEL_H */
