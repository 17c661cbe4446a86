// SPDX-License-Identifier: MIT
/*
 * A mailbox in a simulated job (sim.h), whose owner receives with the code of the library while
 * messages arrive: of many senders, in one frame and in several, over a network that loses,
 * duplicates and reorders. Each message whose command has succeeded is received once, whole, and
 * behind the earlier ones of its sender; none that has failed is received.
 *
 *	test_sim_mailbox [--seed S] [part of a test's name ...]
 */
#include "sim.h"
#include "landing.h"
#include "mailbox/area.h"
#include "mailbox_play.h"
#include "test.h"

static u64 base_seed = 1;

#define UNITS		700		/* of the mailbox: a few of the longest messages */
#define SOURCE		4096		/* bytes of each sender: from here on, never written */
#define LONGEST		2000u
#define MEMORY		(SOURCE + 2 * LONGEST)
#define PER_SENDER	1500u
#define PERCENT		(SIM_ALWAYS / 100)
#define FIRST		1		/* ticket that precedes all commands */

struct sender {
	u64 sent, completed, taken;	/* tickets */
	u8 status[PER_SENDER + 1];
	bool received[PER_SENDER + 1];
};

static struct mail {
	struct libacp_area area;
	struct acp_landings landings[SIM_NODES];	/* of the flow from each node */
	struct sender sender[SIM_RANKS];
	u64 lapse;			/* ns between two looks of the receiver */
	u64 ended, received, refused, pieces, lap;
} mail;

/* Of each message, from its sender and number. */
static u32 size_of(u32 rank, u64 number)
{
	u64 seed = rank * 7919 + number * 104729;

	seed ^= seed >> 7;
	return seed % 4 ? seed % 40 : seed % (LONGEST + 1);
}

static u32 offset_of(u64 number)
{
	return SOURCE + number * 37 % LONGEST;
}

/* ---- The receiver's node, as kernel/exec/indirect.c and mailbox.c do it ---- */

static u8 reserve(const struct acp_msg *m, struct acp_place *place)
{
	struct acp_record *r = NULL;
	u8 status = play_reserve(mail.area.box, m->c, &r);

	place->dst = (u64)(uintptr_t)r;
	if (status)
		return status;
	CHECK(play_is_zero(r, m->c));
	play_describe(r, m->origin, m->a);
	play_state(r, m->c, ACP_RECORD_ARRIVING);
	return ACP_ST_OK;
}

static u8 write_whole(const struct acp_msg *m, const u8 *data)
{
	struct acp_record *r;
	u8 status = play_reserve(mail.area.box, m->c, &r);

	if (status)
		return status;
	CHECK(play_is_zero(r, m->c));
	play_write(r, m->origin, m->a, data, m->c);
	return ACP_ST_OK;
}

/* The first piece that arrives reserves the record. */
static struct acp_landing *land(struct sim *s, u32 from, const struct acp_msg *m)
{
	struct acp_landings *t = &mail.landings[from];
	struct acp_landing *l = acp_landing_find(t, m->origin, m->ticket);

	if (l)
		return l;
	SIM_CHECK(s, acp_landing_add(t, m->origin, m->ticket, m->op, m->c));
	l = acp_landing_find(t, m->origin, m->ticket);
	l->status = reserve(m, &l->place);
	return l;
}

static u8 message(struct sim *s, u32 from, const struct acp_msg *m, const u8 *piece)
{
	struct acp_landing *l;
	struct acp_record *r;
	u8 status;

	if (m->length == m->c)
		return write_whole(m, piece);
	mail.pieces++;
	l = land(s, from, m);
	status = l->status;
	r = (struct acp_record *)(uintptr_t)l->place.dst;
	if (!status)
		memcpy((u8 *)(r + 1) + m->b, piece, m->length);
	if (!(m->flags & ACP_MSG_LAST))
		return status;
	if (!status)
		play_state(r, m->c, ACP_RECORD_READY);
	acp_landing_forget(&mail.landings[from], m->origin, m->ticket);
	return status;
}

/* ---- The receiver ---- */

static void check_record(struct sim *s, const struct libacp_record *r)
{
	struct sender *from = &mail.sender[r->rank];

	SIM_CHECK(s, r->rank > 0 && r->rank < s->ranks && r->tag <= PER_SENDER);
	SIM_CHECK(s, !from->received[r->tag] && r->tag > from->taken);
	SIM_CHECK(s, r->size == size_of(r->rank, r->tag));
	SIM_CHECK(s, !memcmp(r->data, s->rank[r->rank].memory + offset_of(r->tag), r->size));
	from->received[r->tag] = true;
	from->taken = r->tag;
	mail.received++;
}

/* Take some of what is there. */
static void receive(struct sim *s, void *what, u64 number)
{
	u64 left = sim_random(s) % 8;
	struct libacp_record r;
	int found;

	while (left-- && !(found = libacp_area_find(&mail.area, sim_random(s) % 2, &r))) {
		check_record(s, &r);
		libacp_area_consume(&mail.area, &r);
	}
	SIM_CHECK(s, !mail.area.broken);
	if (mail.ended < s->ranks - 1)
		sim_after(s, sim_random(s) % mail.lapse, receive, what, number);
}

/* ---- Senders ---- */

static void send_more(struct sim *s, u32 rank)
{
	struct sender *me = &mail.sender[rank];
	struct acp_msg m = { .op = ACP_OP_SEND };

	while (me->sent < PER_SENDER && sim_room(s, rank) && me->sent - me->completed < 20) {
		me->sent++;
		m.size = size_of(rank, me->sent);
		m.b = me->sent;
		m.src = acp_ga_make(&s->ga, rank, 0, SIM_STAG, offset_of(me->sent));
		m.dst = acp_ga_make(&s->ga, 0, 0, SIM_STAG, 0);
		SIM_CHECK(s, sim_submit(s, rank, &m, 0) == me->sent + FIRST);
	}
}

static void resume(struct sim *s, void *what, u64 rank)
{
	(void)what;
	send_more(s, (u32)rank);
}

static void completed(struct sim *s, u32 rank, u64 ticket, u8 status)
{
	struct sender *me = &mail.sender[rank];

	SIM_CHECK(s, status == ACP_ST_OK || status == ACP_ST_AGAIN);
	ticket -= FIRST;
	SIM_CHECK(s, ticket == me->completed + 1);
	me->status[ticket] = status;
	me->completed = ticket;
	mail.refused += status == ACP_ST_AGAIN;
	mail.ended += ticket == PER_SENDER;
	/* Who is refused pauses. */
	sim_after(s, status ? 300 * SIM_US : 0, resume, NULL, rank);
}

static void wrote(struct sim *s, u32 rank, u64 offset, u64 length)
{
	(void)rank;
	(void)offset;
	(void)length;
	SIM_CHECK(s, !"nothing but messages");
}

/* ---- Tests ---- */

static void begin(struct sim *s, u32 ranks, u64 lapse)
{
	const size_t size = sizeof(struct acp_mailbox) + 8 * UNITS;
	u32 rank, i;

	memset(&mail, 0, sizeof(mail));
	mail.lapse = lapse;
	s->nodes = ranks < SIM_NODES ? ranks : SIM_NODES;
	s->ranks = ranks;
	s->colors = 1;
	s->mtu = 600;
	s->memory = MEMORY;
	s->message = message;
	s->completed = completed;
	s->wrote = wrote;
	sim_init(s, base_seed);
	libacp_area_open(&mail.area, calloc(1, size), UNITS, ranks);
	for (rank = 1; rank < ranks; rank++)
		for (i = SOURCE; i < MEMORY; i++)
			s->rank[rank].memory[i] = (u8)sim_random(s);
}

static void run(struct sim *s)
{
	struct libacp_record r;
	u64 number;
	u32 rank;

	for (rank = 1; rank < s->ranks; rank++)
		send_more(s, rank);
	receive(s, NULL, 0);
	while (sim_step(s))
		;
	while (!libacp_area_find(&mail.area, true, &r)) {
		check_record(s, &r);
		libacp_area_consume(&mail.area, &r);
	}
	for (rank = 1; rank < s->ranks; rank++)
		for (number = 1; number <= PER_SENDER; number++)
			SIM_CHECK(s, mail.sender[rank].received[number] ==
				     !mail.sender[rank].status[number]);
	SIM_CHECK(s, mail.ended == s->ranks - 1 && mail.area.lap > 10);
	printf("# %llu received, %llu refused, %llu pieces, %llu laps, %llu frames, %llu lost\n",
	       (unsigned long long)mail.received, (unsigned long long)mail.refused,
	       (unsigned long long)mail.pieces, (unsigned long long)mail.area.lap,
	       (unsigned long long)s->n.sent, (unsigned long long)s->n.lost);
	free(mail.area.box);
	sim_free(s);
	free(s);
}

static struct sim *new_sim(const char *name)
{
	struct sim *s = calloc(1, sizeof(*s));

	s->name = name;
	s->net = (struct sim_net){ .delay = 20 * SIM_US, .jitter = 2 * SIM_US,
				   .apply = 3 * SIM_US };
	return s;
}

TEST(mailbox__one_sender)
{
	struct sim *s = new_sim(__func__);

	begin(s, 2, 10 * SIM_US);
	run(s);
}

TEST(mailbox__N1_N2_N3_many_senders_over_a_bad_network)
{
	struct sim *s = new_sim(__func__);

	s->net.loss = 5 * PERCENT;
	s->net.duplicate = 10 * PERCENT;
	s->net.jitter = 100 * SIM_US;
	begin(s, 8, 20 * SIM_US);
	run(s);
}

/* Most messages are refused. */
TEST(mailbox__N1_N11_a_receiver_that_is_slow)
{
	struct sim *s = new_sim(__func__);

	s->net.loss = PERCENT;
	s->net.replay = 5 * PERCENT;
	begin(s, 8, 500 * SIM_US);
	run(s);
}

TEST(mailbox__N15_a_node_without_memory)
{
	struct sim *s = new_sim(__func__);

	s->net.refuse = 10 * PERCENT;
	s->net.apply = 100 * SIM_US;
	s->net.loss = 2 * PERCENT;
	begin(s, 6, 30 * SIM_US);
	run(s);
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "--seed")) {
		base_seed = strtoull(argv[2], NULL, 0);
		argv[2] = argv[0];
		argv += 2;
		argc -= 2;
	}
	return test_main(argc, argv);
}
