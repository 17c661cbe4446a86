// SPDX-License-Identifier: MIT
/* The simulated network and its clock: see sim.h. */
#include "sim.h"
#include "test.h"

#define KEPT	(sizeof(((struct sim *)0)->kept) / sizeof(struct sim_packet *))

u64 sim_random(struct sim *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (s->random * 0x2545f4914f6cdd1d) >> 16;
}

bool sim_chance(struct sim *s, u32 probability)
{
	return probability && sim_random(s) % SIM_ALWAYS < probability;
}

/* ---- events: a heap, first by time, then by age ---- */

static bool earlier(const struct sim_event *a, const struct sim_event *b)
{
	return a->time < b->time || (a->time == b->time && a->serial < b->serial);
}

void sim_after(struct sim *s, u64 delay, void (*run)(struct sim *, void *, u64), void *what,
	       u64 number)
{
	struct sim_event e = { s->now + delay, s->serial++, run, what, number };
	u32 i = s->nevents++;

	if (s->nevents > s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->events = realloc(s->events, s->room * sizeof(e));
	}
	for (; i && earlier(&e, &s->events[(i - 1) / 2]); i = (i - 1) / 2)
		s->events[i] = s->events[(i - 1) / 2];
	s->events[i] = e;
}

static struct sim_event pop(struct sim *s)
{
	struct sim_event first = s->events[0], last = s->events[--s->nevents];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < s->nevents) {
		if (child + 1 < s->nevents && earlier(&s->events[child + 1], &s->events[child]))
			child++;
		if (!earlier(&s->events[child], &last))
			break;
		s->events[i] = s->events[child];
		i = child;
	}
	s->events[i] = last;
	return first;
}

bool sim_step(struct sim *s)
{
	struct sim_event e;

	if (!s->nevents)
		return false;
	e = pop(s);
	s->now = e.time;
	e.run(s, e.what, e.number);
	return true;
}

/* ---- the network ---- */

static struct sim_packet *packet_copy(const u8 *bytes, u32 from, u32 to, u32 color, u32 length)
{
	struct sim_packet *p = malloc(sizeof(*p));

	*p = (struct sim_packet){ from, to, color, length, malloc(length ? length : 1), false };
	memcpy(p->bytes, bytes, length);
	return p;
}

void sim_packet_free(struct sim_packet *p)
{
	if (!p)
		return;
	free(p->bytes);
	free(p);
}

static void deliver(struct sim *s, void *what, u64 number)
{
	(void)number;
	sim_receive(s, what);
}

static void damage(struct sim *s, struct sim_packet *p)
{
	u32 bits = 1 + sim_random(s) % 3;

	s->n.damaged++;
	while (bits--)
		p->bytes[sim_random(s) % p->length] ^= 1u << sim_random(s) % 8;
}

/* Copy it to a packet of its exact size, so that sanitizers detect reads beyond the end. */
static struct sim_packet *truncated(struct sim *s, struct sim_packet *p)
{
	struct sim_packet *shorter = packet_copy(p->bytes, p->from, p->to, p->color,
						 sim_random(s) % p->length);

	s->n.damaged++;
	sim_packet_free(p);
	return shorter;
}

/* Put a packet into transit; takes ownership. */
static void travel(struct sim *s, struct sim_packet *p, u64 wait)
{
	u64 delay = wait + s->net.delay;

	if (s->net.jitter)
		delay += sim_random(s) % s->net.jitter;
	if (sim_chance(s, s->net.damage))
		damage(s, p);
	if (sim_chance(s, s->net.truncate))
		p = truncated(s, p);
	sim_after(s, delay, deliver, p, 0);
}

/* Keep some frames; send a kept one again, perhaps long afterwards. */
static void replay(struct sim *s, const struct sim_packet *p)
{
	u32 i = sim_random(s) % KEPT;

	if (!sim_chance(s, s->net.replay))
		return;
	if (s->kept[i]) {
		struct sim_packet *old = s->kept[i];

		s->n.replayed++;
		travel(s, packet_copy(old->bytes, old->from, old->to, old->color, old->length), 0);
	}
	i = sim_random(s) % KEPT;
	sim_packet_free(s->kept[i]);
	s->kept[i] = packet_copy(p->bytes, p->from, p->to, p->color, p->length);
}

void sim_replay_kept(struct sim *s)
{
	u32 i;

	for (i = 0; i < KEPT; i++) {
		const struct sim_packet *old = s->kept[i];

		if (!old)
			continue;
		s->n.replayed++;
		travel(s, packet_copy(old->bytes, old->from, old->to, old->color, old->length), 0);
	}
}

/* Time until the link of a node has transmitted a frame, or ~0 if its queue is full. */
static u64 serialize(struct sim *s, struct sim_node *n, u32 length)
{
	u64 begin = max_t(u64, n->busy_until, s->now);

	if (!s->net.kib_ns)
		return 0;
	if (begin - s->now > s->net.queue_ns)
		return ~0ULL;
	n->busy_until = begin + length * s->net.kib_ns / 1024;
	return n->busy_until - s->now;
}

static bool is_lost(struct sim *s, const u8 *bytes)
{
	const struct acp_frame_hdr *h = (const void *)bytes;

	if (sim_chance(s, s->net.loss))
		return true;
	return h->type == ACP_FRAME_ACK && sim_chance(s, s->net.ack_loss);
}

void sim_transmit(struct sim *s, u32 from, u32 to, u32 color, const u8 *bytes, u32 length)
{
	u64 wait = serialize(s, &s->node[from], length);
	struct sim_packet *p;

	s->n.sent++;
	if (wait == ~0ULL || s->cut[from][to] || is_lost(s, bytes)) {
		s->n.lost++;
		return;
	}
	p = packet_copy(bytes, from, to, color, length);
	p->marked = sim_chance(s, s->net.mark);
	replay(s, p);
	if (sim_chance(s, s->net.duplicate)) {
		s->n.duplicated++;
		travel(s, packet_copy(bytes, from, to, color, length), wait);
	}
	travel(s, p, wait);
}

/* ---- the simulation ---- */

void sim_init(struct sim *s, u64 seed)
{
	static const u8 key[16] = "key of the test";
	u32 i;

	s->seed = seed;
	s->random = (seed + 1) * 0x9e3779b97f4a7c15;
	s->now = SIM_S;
	s->ga = acp_ga_layout(s->ranks);
	s->key = siphash_key_of(key);
	for (i = 0; i < s->ranks; i++)
		s->rank[i].memory = calloc(1, s->memory);
	for (i = 0; i < s->nodes; i++)
		sim_node_init(s, i);
}

void sim_free(struct sim *s)
{
	u32 i;

	for (i = 0; i < s->nodes; i++)
		sim_node_free(s, i);
	while (s->nevents) {
		struct sim_event e = pop(s);

		if (e.run == deliver)
			sim_packet_free(e.what);
	}
	for (i = 0; i < KEPT; i++)
		sim_packet_free(s->kept[i]);
	for (i = 0; i < s->ranks; i++)
		free(s->rank[i].memory);
	free(s->events);
}
