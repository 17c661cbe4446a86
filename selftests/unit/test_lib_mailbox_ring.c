// SPDX-License-Identifier: MIT
/* Messages of ranks of the same node, which the library writes to the ring of the mailbox. */
#define _GNU_SOURCE
#include "mailbox_calls.h"

static bool by_ring(acp_handle_t handle)
{
	return handle & 1;
}

static struct libacp_node_ring *ring_of(acpx_mailbox_t box)
{
	unsigned int bits;
	uint64_t offset;

	CHECK(libacp_node_ring_of(memory_of(box), &offset, &bits));
	return (void *)((char *)memory_of(box) + offset);
}

TEST(ring__A4_takes_messages_without_the_kernel)
{
	acpx_mailbox_t box = start(4096);
	const uint64_t newest = libacp_main.rings.newest;
	const unsigned int rung = fake.doorbells;
	struct acpx_message m;
	acp_handle_t handle;
	char buffer[8];

	strcpy(starter(), "letter");
	CHECK(by_ring(start_send(box, 0, 7, 5)));
	handle = acpx_copy_notify(acp_query_starter_ga(0) + 64, acp_query_starter_ga(0), 7,
				  acpx_mailbox_ga(box), 6, ACPX_RETRY, NONE);
	CHECK(by_ring(handle) && !strcmp(starter() + 64, "letter"));
	CHECK(!acp_inquire(handle) && acpx_status(handle) == 0);
	CHECK_EQ(acpx_recv(box, buffer, 8, &m, 0), 7);
	CHECK(is(&m, 7, 5) && !strcmp(buffer, "letter"));
	CHECK_EQ(acpx_recv(box, buffer, 8, &m, 0), 0);
	CHECK(is(&m, 0, 6));
	CHECK(libacp_main.rings.newest == newest && fake.doorbells == rung);
	end(box);
}

/* What the ring is not for, or has no room for, goes by the kernel. */
TEST(ring__A4_leaves_the_rest_to_the_kernel)
{
	acpx_mailbox_t small = start(4088), box;
	acp_ga_t ga;
	int n = 0;

	CHECK(!by_ring(start_send(small, 0, 8, 1)));
	CHECK_EQ(acpx_mailbox_create(4096, 0, &box), 0);
	ga = acpx_mailbox_ga(box);
	CHECK(!by_ring(start_send(box, 0, 513 - 32, 1)));
	acp_complete(ACP_HANDLE_ALL);
	CHECK(by_ring(start_send(box, 0, 512 - 32, 1)));
	CHECK(!by_ring(acpx_send(ga, acp_query_starter_ga(0) + 65536, 8, 1, 0, NONE)));
	CHECK(!by_ring(acpx_send(ga, 0, 0, 1, ACPX_RENDEZVOUS, NONE)));
	CHECK(!by_ring(acpx_send(ga, 0, 0, 1, 8, NONE)));
	acp_complete(ACP_HANDLE_ALL);
	ring_of(box)->lock = 2;
	CHECK(!by_ring(start_send(box, 0, 0, 1)));
	acp_complete(ACP_HANDLE_ALL);
	ring_of(box)->lock = 0;
	while (by_ring(start_send(box, 0, 0, 1)))
		n++;
	CHECK_EQ(n, (1024 - 512) / 32);
	acp_complete(ACP_HANDLE_ALL);
	CHECK_EQ(acpx_mailbox_free(small), 0);
	end(box);
}

/* Behind a message that the kernel has not sent yet, and behind any other order. */
TEST(ring__A4_overtakes_nothing)
{
	acpx_mailbox_t box = start(8192);
	struct acpx_message m;
	acp_handle_t order;
	uint64_t i;

	fake_set_hold(true);
	CHECK(!by_ring(start_send(box, 0, 2000, 0)));
	CHECK(!by_ring(start_send(box, 0, 8, 1)));
	fake_set_hold(false);
	acp_complete(ACP_HANDLE_ALL);
	CHECK(by_ring(start_send(box, 0, 8, 2)));
	fake_set_hold(true);
	order = acp_copy(acp_query_starter_ga(2), acp_query_starter_ga(0), 8, NONE);
	CHECK(by_ring(start_send(box, 0, 8, 3)));
	CHECK(!by_ring(acpx_send(acpx_mailbox_ga(box), 0, 0, 4, 0, order)));
	fake_set_hold(false);
	acp_complete(ACP_HANDLE_ALL);
	CHECK(by_ring(acpx_send(acpx_mailbox_ga(box), 0, 0, 5, 0, order)));
	for (i = 0; i < 6; i++) {
		CHECK_EQ(acpx_probe(box, &m, 0), 0);
		CHECK_EQ(m.tag, i);
		CHECK(acpx_recv(box, starter(), 4096, NULL, 0) >= 0);
	}
	end(box);
}

/* What a former job had sent is not waited for. */
TEST(ring__is_used_after_joining_again)
{
	acpx_mailbox_t box = start(4096);
	int i;

	for (i = 0; i < 5; i++)
		CHECK_EQ(send_by_kernel(box, 0, 8, 1), 0);
	end(box);
	box = start(4096);
	CHECK(by_ring(start_send(box, 0, 8, 1)));
	end(box);
}

/* The lock of a rank that has left is taken over, by a sender or by the owner. */
TEST(ring__A4_of_a_rank_that_has_left)
{
	acpx_mailbox_t box = start(4096);
	int i;

	setenv("ACP_TIMEOUT", "10", 1);
	ring_of(box)->lock = 1 + 1;
	fake.states[1] = ACP_RANK_UP;
	for (i = 0; i < 64; i++) {
		CHECK(!by_ring(start_send(box, 0, 0, 1)));
		acp_complete(ACP_HANDLE_ALL);
	}
	fake.states[1] = ACP_RANK_DOWN;
	for (i = 0; i < 64 && !by_ring(start_send(box, 0, 0, 1)); i++)
		acp_complete(ACP_HANDLE_ALL);
	CHECK(i < 16);
	CHECK_EQ(ring_of(box)->lock, 0);
	ring_of(box)->lock = 1 + 1;
	end(box);
}

/* One that has the lock is waited for. */
TEST(ring__A4_of_a_rank_that_writes_while_it_is_freed)
{
	struct libacp_node_ring *ring;
	acpx_mailbox_t box;

	setenv("ACP_TIMEOUT", "10", 1);
	box = start(4096);
	ring = ring_of(box);
	fake.states[1] = ACP_RANK_UP;
	ring->lock = 1 + 1;
	CHECK_EQ(acpx_mailbox_free(box), -EBUSY);
	ring->lock = 0;
	end(box);
}

TEST_MAIN
