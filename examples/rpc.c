// SPDX-License-Identifier: MIT
/*
 * rpc - a key-value server that its clients call by messages
 *
 * Shows: requests and answers (acpx_send, acpx_recv_lend, acpx_recv). Rank 0 is the server: it has
 * a table and one mailbox, into which all other ranks send requests. A request is one message: what
 * to do, the address of the mailbox for the answer, and the bytes of key and value. The server
 * reads it where it arrived. The tag is the number of the call, and the answer has the same tag.
 *
 * A client has several calls in flight. The server executes them in the order of the calls, since
 * messages of one rank with ACPX_RETRY arrive in order. So each client knows what the answers must
 * be, and compares them. The mailboxes are too small for all messages in flight: with ACPX_RETRY,
 * those that find no room are sent again. The longest take two frames if the MTU is 1500.
 *
 * Run (two ranks or more; here two on this machine, as root or with access to /dev/acp):
 *
 *     ACP_NPROCS=2 ACP_RANK=0 ./rpc & ACP_NPROCS=2 ACP_RANK=1 ./rpc; wait
 *
 * Exit status: 0 if all answers and the sums at the end are right, else not 0.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"

#define CALLS		500	/* of each client */
#define WINDOW		16	/* calls of a client in flight */
#define ANSWERS		16	/* of the server in flight */
#define KEYS		24	/* that a client uses */
#define QUOTA		16	/* entries that a client may have in the table */
#define BUCKETS		61	/* of the table */
#define KEY_MAX		48	/* bytes */
#define VALUE_MAX	2000
#define SERVER_BOX	8192	/* of the mailboxes */
#define CLIENT_BOX	4096
#define LIMIT_NS	(60 * 1000000000LLU)	/* without any message */

enum op { PUT, GET, DELETE, COUNT, BYE };
enum status { OK, NO_KEY, NO_ROOM };

static const char *const op_names[] = { "PUT", "GET", "DELETE", "COUNT", "BYE" };

/* The beginning of a request. Key and value follow. */
struct request {
	acp_ga_t answer_to;	/* the mailbox of the client */
	uint32_t op;
	uint32_t entries;	/* BYE: that the client has left in the table */
	uint32_t key_size, value_size;
};

/* The beginning of an answer. The value follows. */
struct answer {
	uint32_t status;
	uint32_t count;		/* COUNT: entries of the client */
};

struct request_message {
	struct request head;
	char bytes[KEY_MAX + VALUE_MAX];
};

struct answer_message {
	struct answer head;
	char bytes[VALUE_MAX];
};

static int rank, procs;
static acpx_mailbox_t mailbox;	/* of this rank */

static void give_up(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "rank %d: ", rank);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	acp_abort("rpc");
	exit(1);
}

/* After that, the source of the message may be changed. */
static void finish(acp_handle_t sent)
{
	acp_complete(sent);
	if (sent != ACP_HANDLE_NULL && acpx_status(sent))
		give_up("a message was not accepted: %s", acpx_strerror(acpx_status(sent)));
}

static acp_handle_t post(acp_ga_t to, acp_ga_t src, size_t size, uint64_t tag)
{
	acp_handle_t sent = acpx_send(to, src, size, tag, ACPX_RETRY, ACP_HANDLE_NULL);

	if (sent == ACP_HANDLE_NULL)
		give_up("cannot send");
	return sent;
}

/* Allocate memory from which messages are sent. */
static acp_ga_t buffers(size_t bytes)
{
	acp_ga_t ga = acp_malloc(bytes, rank);

	if (ga == ACP_GA_NULL)
		give_up("no memory for messages: raise ACP_HEAP_SIZE");
	return ga;
}

/* ---- The table of the server ---- */

struct entry {
	struct entry *next;	/* in its bucket, or in the list of free ones */
	int owner;		/* the client that has put it first */
	uint32_t key_size, value_size;
	char key[KEY_MAX], value[VALUE_MAX];
};

static struct entry *buckets[BUCKETS], *unused;

/* What the server knows of each rank. */
static struct client {
	uint64_t calls;		/* executed */
	uint32_t entries;
	bool left;
} *clients;

/* The table has room for what all clients together may put. */
static void make_table(void)
{
	const size_t room = QUOTA * (size_t)(procs - 1);
	struct entry *entries = calloc(room, sizeof(*entries));
	size_t i;

	clients = calloc((size_t)procs, sizeof(*clients));
	if (!entries || !clients)
		give_up("no memory for the table");
	for (i = 0; i < room; i++) {
		entries[i].next = unused;
		unused = &entries[i];
	}
}

/* Return the pointer to the entry of a key; it is NULL if there is none. */
static struct entry **find(const char *key, uint32_t size)
{
	struct entry **link;
	uint32_t hash = 2166136261u, i;

	for (i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)key[i]) * 16777619u;
	link = &buckets[hash % BUCKETS];
	while (*link && ((*link)->key_size != size || memcmp((*link)->key, key, size)))
		link = &(*link)->next;
	return link;
}

static struct entry *insert(struct entry **link, int owner, const char *key, uint32_t size)
{
	struct entry *entry = unused;

	unused = entry->next;
	entry->next = NULL;
	entry->owner = owner;
	entry->key_size = size;
	memcpy(entry->key, key, size);
	clients[owner].entries++;
	*link = entry;
	return entry;
}

static void delete(struct entry **link)
{
	struct entry *entry = *link;

	*link = entry->next;
	clients[entry->owner].entries--;
	entry->next = unused;
	unused = entry;
}

static uint32_t count_table(void)
{
	const struct entry *entry;
	uint32_t entries = 0;
	int i;

	for (i = 0; i < BUCKETS; i++) {
		for (entry = buckets[i]; entry; entry = entry->next)
			entries++;
	}
	return entries;
}

/* ---- The server ---- */

/* Copy the beginning of a request, and check it before its sizes are used. */
static struct request examine(const struct acpx_message *message)
{
	struct client *client = &clients[message->rank];
	struct request request;

	if (message->size < sizeof(request))
		give_up("a request of rank %d has only %zu bytes", message->rank, message->size);
	memcpy(&request, message->data, sizeof(request));
	if (request.op > BYE || request.key_size > KEY_MAX || request.value_size > VALUE_MAX ||
	    message->size != sizeof(request) + request.key_size + request.value_size)
		give_up("a request of rank %d is malformed", message->rank);
	if (client->left || message->tag != client->calls)
		give_up("request %" PRIu64 " of rank %d instead of %" PRIu64 ": lost or not in order",
			message->tag, message->rank, client->calls);
	client->calls++;
	return request;
}

static enum status put(int client, const struct request *request, const char *key)
{
	struct entry **link = find(key, request->key_size), *entry = *link;

	if (!entry && (clients[client].entries == QUOTA || !unused))
		return NO_ROOM;
	if (!entry)
		entry = insert(link, client, key, request->key_size);
	entry->value_size = request->value_size;
	memcpy(entry->value, key + request->key_size, request->value_size);
	return OK;
}

static void say_goodbye(int client, const struct request *request)
{
	if (request->entries != clients[client].entries)
		give_up("WRONG: rank %d has %" PRIu32 " entries in the table, not %" PRIu32, client,
			clients[client].entries, request->entries);
	clients[client].left = true;
}

/* Execute a request whose key and value are still in the mailbox. Return the size of the answer. */
static size_t execute(int client, const struct request *request, const char *key,
		      struct answer_message *answer)
{
	struct entry **link = find(key, request->key_size);
	uint32_t size = 0;

	answer->head = (struct answer){ .status = OK };
	if ((request->op == GET || request->op == DELETE) && !*link) {
		answer->head.status = NO_KEY;
	} else if (request->op == PUT) {
		answer->head.status = put(client, request, key);
	} else if (request->op == GET) {
		size = (*link)->value_size;
		memcpy(answer->bytes, (*link)->value, size);
	} else if (request->op == DELETE) {
		delete(link);
	} else if (request->op == COUNT) {
		answer->head.count = clients[client].entries;
	} else {
		say_goodbye(client, request);
	}
	return sizeof(answer->head) + size;
}

/* Receive a request and answer it. @sent: the former answer from this memory, then the new one. */
static enum op serve_one(struct answer_message *answer, acp_ga_t src, acp_handle_t *sent)
{
	struct acpx_message message;
	struct request request;
	size_t size;
	int err;

	finish(*sent);
	err = acpx_recv_lend(mailbox, &message, LIMIT_NS);
	if (err)
		give_up("receives no request: %s", strerror(-err));
	request = examine(&message);
	size = execute(message.rank, &request, (const char *)message.data + sizeof(request),
		       answer);
	if (acpx_recv_return(mailbox, &message))
		give_up("cannot return a request");
	*sent = post(request.answer_to, src, size, message.tag);
	return (enum op)request.op;
}

static void serve(void)
{
	const acp_ga_t src = buffers(ANSWERS * sizeof(struct answer_message));
	struct answer_message *answers = acp_query_address(src);
	acp_handle_t sent[ANSWERS] = { ACP_HANDLE_NULL };
	int left = 0, i;

	make_table();
	for (i = 0; left < procs - 1; i = (i + 1) % ANSWERS) {
		if (serve_one(&answers[i], src + (size_t)i * sizeof(*answers), &sent[i]) == BYE)
			left++;
	}
	for (i = 0; i < ANSWERS; i++)
		finish(sent[i]);
	acp_free(src);
}

/* Add up what the server has done, once all clients have left. */
static void report(void)
{
	uint64_t calls = 0;
	uint32_t entries = 0;
	int i;

	for (i = 1; i < procs; i++) {
		calls += clients[i].calls;
		entries += clients[i].entries;
	}
	if (calls != (uint64_t)(procs - 1) * (CALLS + 1))
		give_up("WRONG: executed %" PRIu64 " calls", calls);
	if (count_table() != entries)
		give_up("WRONG: the table has %" PRIu32 " entries, not %" PRIu32, count_table(),
			entries);
	printf("rpc: %" PRIu64 " calls of %d clients, %" PRIu32 " entries left, all answers right\n",
	       calls, procs - 1, entries);
}

/* ---- The client ---- */

/* A value of the model; its bytes follow from its seed. */
struct value {
	bool there;
	uint32_t size, seed;
};

/* A call in flight, and what its answer must be. */
struct call {
	bool waits;
	uint64_t number;
	enum op op;
	int key;
	enum status status;
	uint32_t count;
	struct value value;	/* to be put, or that the answer must have */
	acp_handle_t sent;
};

static struct value model[KEYS];
static uint32_t model_entries;
static struct call calls[WINDOW];
static acp_ga_t server, requests_ga;
static struct request_message *requests;	/* one for each call in flight */

static uint32_t draw(void)
{
	static uint64_t state;

	state = (state + (uint64_t)rank) * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

static void choose(struct call *call)
{
	static const enum op ops[] = {
		PUT, PUT, PUT, PUT, GET, GET, GET, GET, DELETE, DELETE, COUNT,
	};

	call->op = ops[draw() % (sizeof(ops) / sizeof(ops[0]))];
	call->key = (int)(draw() % KEYS);
	call->value = (struct value){ true, 0, ((uint32_t)rank << 20) + (uint32_t)call->number };
	/* Half of the values may be long. */
	call->value.size = draw() % (draw() % 2 ? 64 : VALUE_MAX + 1);
}

static char byte_of(const struct value *value, uint32_t i)
{
	return (char)((value->seed + i) * 2654435761u >> 24);
}

/* Write a request. Return its bytes. */
static size_t write_request(const struct call *call, struct request_message *message)
{
	struct request *head = &message->head;
	int size = 0;
	uint32_t i;

	*head = (struct request){ acpx_mailbox_ga(mailbox), call->op, model_entries, 0, 0 };
	if (call->op != COUNT && call->op != BYE)
		size = snprintf(message->bytes, KEY_MAX, "%d/%.*s%d", rank, call->key,
				"........................", call->key);
	head->key_size = (uint32_t)size;
	if (call->op == PUT)
		head->value_size = call->value.size;
	for (i = 0; i < head->value_size; i++)
		message->bytes[head->key_size + i] = byte_of(&call->value, i);
	return sizeof(*head) + head->key_size + head->value_size;
}

/* Do the call in the model, and note what the answer must be. */
static void foresee(struct call *call)
{
	struct value *value = &model[call->key];

	call->status = OK;
	call->count = 0;
	if (call->op == PUT && !value->there && model_entries == QUOTA) {
		call->status = NO_ROOM;
	} else if (call->op == PUT) {
		model_entries += !value->there;
		*value = call->value;
	} else if (call->op == GET || call->op == DELETE) {
		call->status = value->there ? OK : NO_KEY;
	} else if (call->op == COUNT) {
		call->count = model_entries;
	}
	call->value = (struct value){ false, 0, 0 };
	if (call->op == GET)
		call->value = *value;
	if (call->op == DELETE && value->there) {
		value->there = false;
		model_entries--;
	}
}

static void check(const struct call *call, const struct answer_message *answer, size_t size)
{
	const uint32_t expected = call->value.there ? call->value.size : 0;
	uint32_t i;

	if (size != sizeof(answer->head) + expected || answer->head.status != call->status ||
	    answer->head.count != call->count)
		give_up("WRONG: answer to call %" PRIu64 ", %s of key %d: %zu bytes, status %"
			PRIu32 ", count %" PRIu32 "; must be %zu, %d, %" PRIu32, call->number,
			op_names[call->op], call->key, size, answer->head.status,
			answer->head.count, sizeof(answer->head) + expected, call->status,
			call->count);
	for (i = 0; i < expected; i++) {
		if (answer->bytes[i] != byte_of(&call->value, i))
			give_up("WRONG: answer to call %" PRIu64 ", GET of key %d: byte %" PRIu32
				" of %" PRIu32, call->number, call->key, i, expected);
	}
}

static void take_answer(void)
{
	struct answer_message answer;
	struct acpx_message message;
	struct call *call;
	const int64_t size = acpx_recv(mailbox, &answer, sizeof(answer), &message, LIMIT_NS);

	if (size < 0)
		give_up("receives no answer: %s", strerror((int)-size));
	call = &calls[message.tag % WINDOW];
	if (!call->waits || call->number != message.tag || message.rank != 0 ||
	    message.size < sizeof(answer.head))
		give_up("WRONG: message %" PRIu64 " of rank %d is no answer to a call in flight",
			message.tag, message.rank);
	check(call, &answer, (size_t)size);
	/* The answer can come before the library knows that the request has arrived. */
	finish(call->sent);
	call->waits = false;
}

static void start_call(struct call *call)
{
	const size_t i = (size_t)(call - calls);
	/* The request comes first: foresee() changes the value of the call. */
	const size_t size = write_request(call, &requests[i]);

	foresee(call);
	call->waits = true;
	call->sent = post(server, requests_ga + i * sizeof(*requests), size, call->number);
}

static void make_calls(void)
{
	struct call *call;
	uint64_t n;
	int i;

	requests_ga = buffers(WINDOW * sizeof(*requests));
	requests = acp_query_address(requests_ga);
	for (n = 0; n <= CALLS; n++) {
		call = &calls[n % WINDOW];
		while (call->waits)
			take_answer();
		call->number = n;
		choose(call);
		if (n == CALLS)		/* the last call */
			call->op = BYE;
		start_call(call);
	}
	for (i = 0; i < WINDOW; i++) {
		while (calls[i].waits)
			take_answer();
	}
	acp_free(requests_ga);
}

/* Rank 0 tells the address of its mailbox in its starter memory. */
static void find_server(void)
{
	acp_ga_t *address = acp_query_address(acp_query_starter_ga(rank));

	if (!rank)
		*address = acpx_mailbox_ga(mailbox);
	acp_sync();
	if (rank)
		acp_complete(acp_copy(acp_query_starter_ga(rank), acp_query_starter_ga(0),
				      sizeof(*address), ACP_HANDLE_NULL));
	server = *address;
}

int main(int argc, char **argv)
{
	if (acp_init(&argc, &argv))
		return 1;
	rank = acp_rank();
	procs = acp_procs();
	if (procs < 2)
		give_up("needs two ranks or more");
	if (acpx_starter_size() < sizeof(acp_ga_t))
		give_up("set ACP_STARTER_SIZE to 8 or more");
	if (acpx_mailbox_create(rank ? CLIENT_BOX : SERVER_BOX, 0, &mailbox))
		give_up("no memory for a mailbox: raise ACP_HEAP_SIZE");
	find_server();
	if (rank)
		make_calls();
	else
		serve();
	acp_sync();
	if (acpx_mailbox_free(mailbox))
		give_up("cannot free the mailbox");
	if (!rank)
		report();
	return acp_finalize() ? 1 : 0;
}
