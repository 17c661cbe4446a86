// SPDX-License-Identifier: GPL-2.0-only
/* Sources of frames with a wrong tag: see wrong_key.h. */
#include <linux/errno.h>
#include "wrong_key.h"

/* Return the record of a source, or the first free one; NULL if all are in use.  Under the lock. */
static struct acp_wrong_source *find(struct acp_wrong_sources *s, u32 node, u8 color)
{
	u32 i;

	for (i = 0; i < s->count; i++)
		if (s->source[i].node == node && s->source[i].color == color)
			return &s->source[i];
	return s->count < ACP_WRONG_SOURCES ? &s->source[s->count] : NULL;
}

void acp_wrong_key_add(struct acp_job *job, u32 node, u8 color)
{
	struct acp_wrong_sources *s = &job->wrong;
	struct acp_wrong_source *source;

	/* Do not wait for the lock: if it is taken, this frame is not counted. */
	if (acp_job_assembled(job) || !spin_trylock(&s->lock))
		return;
	source = find(s, node, color);
	if (source && !source->frames) {
		source->node = node;
		source->color = color;
		s->count++;
	}
	if (source)
		source->frames++;
	spin_unlock(&s->lock);
}

int acp_wrong_key_get(struct acp_job *job, struct acp_wrong_key *w)
{
	struct acp_wrong_sources *s = &job->wrong;
	struct acp_wrong_source source = { .frames = 0 };

	spin_lock_bh(&s->lock);
	if (w->index < s->count)
		source = s->source[w->index];
	spin_unlock_bh(&s->lock);
	if (!source.frames)
		return -ENOENT;
	*w = (struct acp_wrong_key){
		.size = sizeof(*w), .index = w->index, .node = source.node,
		.color = source.color, .family = job->family, .frames = source.frames,
	};
	acp_job_address(job, source.node, source.color, w->addr);
	return 0;
}
