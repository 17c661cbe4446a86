// SPDX-License-Identifier: MIT
/*
 * taskqueue - tasks for whoever is free
 *
 * Shows: mailboxes (acpx_send, acpx_recv). Rank 0 has the tasks. Each of the other ranks asks for
 * one by a message to the mailbox of rank 0, gets it as a message into its own mailbox, and asks
 * again with the result. All ranks send to one mailbox, without a channel for each. A rank that is
 * slow gets fewer tasks.
 *
 * Run (two ranks or more; here two on this machine, as root or with access to /dev/acp):
 *
 *     ACP_NPROCS=2 ACP_RANK=0 ./taskqueue & ACP_NPROCS=2 ACP_RANK=1 ./taskqueue; wait
 *
 * Exit status: 0 if each task was done once and its result is right, else 1.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "acp.h"

#define TASKS	200

enum tag { FREE, DONE, TASK, END };

/* In the starter memory of each rank. */
struct board {
	acp_ga_t mailbox;	/* of this rank */
	acp_ga_t there;		/* that of the rank to send to */
	struct { uint64_t number, result; } task;	/* to be sent */
};

static int rank, procs;
static struct board *board;
static acpx_mailbox_t mailbox;

static void give_up(const char *what)
{
	fprintf(stderr, "rank %d: %s\n", rank, what);
	acp_abort("taskqueue");
	exit(1);
}

static acp_ga_t in_board(int of, size_t offset)
{
	return acp_query_starter_ga(of) + offset;
}

static acp_ga_t mailbox_of(int other)
{
	acp_complete(acp_copy(in_board(rank, offsetof(struct board, there)),
			      in_board(other, offsetof(struct board, mailbox)),
			      sizeof(acp_ga_t), ACP_HANDLE_NULL));
	return board->there;
}

/* The task may be changed when its message is in the mailbox. */
static void post(acp_ga_t to, enum tag tag)
{
	acp_handle_t message = acpx_send(to, in_board(rank, offsetof(struct board, task)),
					 sizeof(board->task), tag, ACPX_RETRY, ACP_HANDLE_NULL);

	acp_complete(message);
	/* A full mailbox is no failure that ends the job. */
	if (acpx_status(message))
		give_up("a mailbox stays full");
}

static struct acpx_message receive(void)
{
	struct acpx_message message;

	if (acpx_recv(mailbox, &board->task, sizeof(board->task), &message, ACPX_FOREVER) < 0)
		give_up("cannot receive");
	return message;
}

/* The number of steps of the Collatz sequence: nobody knows how long it takes. */
static uint64_t solve(uint64_t n)
{
	uint64_t steps = 0;

	for (n++; n != 1; steps++)
		n = n % 2 ? 3 * n + 1 : n / 2;
	return steps;
}

static void work(void)
{
	const acp_ga_t to = mailbox_of(0);

	post(to, FREE);
	while (receive().tag == TASK) {
		board->task.result = solve(board->task.number);
		post(to, DONE);
	}
}

/* Returns the number of right results. */
static int give_tasks(void)
{
	acp_ga_t *workers = calloc((size_t)procs, sizeof(*workers));
	int next = 0, right = 0, ended = 0, i;
	struct acpx_message message;
	char seen[TASKS] = { 0 };
	enum tag answer;
	uint64_t n;

	for (i = 1; workers && i < procs; i++)
		workers[i] = mailbox_of(i);
	while (workers && ended < procs - 1) {
		message = receive();
		n = board->task.number;
		if (message.tag == DONE)
			right += n < TASKS && !seen[n]++ && board->task.result == solve(n);
		answer = next < TASKS ? TASK : END;
		if (answer == TASK)
			board->task.number = (uint64_t)next++;
		else
			ended++;
		post(workers[message.rank], answer);
	}
	free(workers);
	return right;
}

int main(int argc, char **argv)
{
	int right = TASKS;

	if (acp_init(&argc, &argv))
		return 1;
	rank = acp_rank();
	procs = acp_procs();
	board = acp_query_address(acp_query_starter_ga(rank));
	if (acpx_starter_size() < sizeof(*board))
		give_up("set ACP_STARTER_SIZE to 4096 or more");
	if (procs < 2)
		give_up("needs two ranks or more");
	if (acpx_mailbox_create(65536, 0, &mailbox))
		give_up("no memory for a mailbox: raise ACP_HEAP_SIZE");
	board->mailbox = acpx_mailbox_ga(mailbox);
	acp_sync();
	if (rank)
		work();
	else
		right = give_tasks();
	acp_sync();
	acpx_mailbox_free(mailbox);
	if (right != TASKS)
		give_up("WRONG: tasks are missing, or their results are wrong");
	if (!rank)
		printf("taskqueue: %d tasks of %d ranks, each done once\n", TASKS, procs - 1);
	return acp_finalize() ? 1 : 0;
}
