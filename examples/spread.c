// SPDX-License-Identifier: MIT
/*
 * spread - copy a file from the memory of rank 0 to every rank, over a tree that rank 0 drives
 *
 * Shows: third-party copies. Rank 0 issues all of them: rank 1 and 2 get the file from rank 0, 3
 * and 4 from rank 1, and so on. Each copy waits for that of its parent by an order handle, so the
 * tree needs no other rank; the others sleep in acp_sync meanwhile. Then every rank computes the
 * hash of its copy by sha256sum, and rank 0 compares them.
 *
 * Run (here two ranks on this machine; without an argument a file that every Debian system has):
 *
 *     ACP_NPROCS=2 ACP_RANK=0 ./spread FILE & ACP_NPROCS=2 ACP_RANK=1 ./spread; wait
 *
 * Exit status: 0 if all ranks have the same bytes, else 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "acp.h"

#define HEX_SIZE	64

extern char **environ;

/* At the start of the starter memory of each rank. */
struct board {
	uint64_t size;			/* rank 0: bytes of the file */
	acp_ga_t memory;		/* owner: address of its copy of the file */
	char hash[HEX_SIZE + 8];	/* owner: output of sha256sum, as a string */
	char host[64];			/* owner: host name */
	uint64_t right;			/* rank 0: the result of the comparison */
};

static int rank, procs;
static struct board *board;	/* own */
static struct board *copy;	/* behind it: copy of the board of another rank */

static void give_up(const char *what, const char *why)
{
	char text[256];

	snprintf(text, sizeof(text), "spread: rank %d: %s: %s", rank, what, why);
	acp_abort(text);
	exit(EXIT_FAILURE);
}

static void sync_all(void)
{
	if (acp_sync() != 0)
		give_up("acp_sync", "failed");
}

/* Wait for an access and all before it. This one must succeed. */
static void finish(acp_handle_t handle, const char *what)
{
	int status;

	if (handle == ACP_HANDLE_NULL)
		give_up(what, "not accepted");
	acp_complete(handle);
	status = acpx_status(handle);
	if (status != 0)
		give_up(what, acpx_strerror(status));
}

static const struct board *board_of(int peer)
{
	finish(acp_copy(acp_query_starter_ga(rank) + sizeof(*board), acp_query_starter_ga(peer),
			sizeof(*board), ACP_HANDLE_NULL), "get of a rank's starter memory");
	return copy;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Return the largest of some files that exist on any Debian system. */
static const char *default_file(void)
{
	static const char *const files[] = {
		"/usr/bin/perl", "/usr/bin/bash", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/aarch64-linux-gnu/libc.so.6",
		"/proc/self/exe",
	};
	const char *best = NULL;
	struct stat st;
	off_t size = 0;
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (stat(files[i], &st) != 0 || st.st_size <= size)
			continue;
		size = st.st_size;
		best = files[i];
	}
	return best;
}

static void *memory_for(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		give_up("mmap", strerror(errno));
	return memory;
}

static void read_all(int fd, char *memory, size_t size, const char *name)
{
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = read(fd, memory + done, size - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			give_up(name, n ? strerror(errno) : "file shrank");
		done += (size_t)n;
	}
}

/* Rank 0: load the file into memory and publish its size. */
static void *load(const char *name)
{
	struct stat st;
	void *memory;
	int fd;

	if (name == NULL)
		give_up("file", "none found, please name one");
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		give_up(name, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		give_up(name, "not a regular file with something in it");
	board->size = (uint64_t)st.st_size;
	memory = memory_for(board->size);
	read_all(fd, memory, board->size, name);
	close(fd);
	printf("spread: %s, %llu bytes, to %d ranks\n", name, (unsigned long long)board->size,
	       procs);
	fflush(stdout);
	return memory;
}

static acp_atkey_t publish(void *memory, size_t size)
{
	acp_atkey_t key = acp_register_memory(memory, size, 0);

	if (key == ACP_ATKEY_NULL)
		give_up("register memory", "refused (see ulimit -l)");
	board->memory = acp_query_ga(key, memory);
	if (board->memory == ACP_GA_NULL)
		give_up("acp_query_ga", "failed");
	if (gethostname(board->host, sizeof(board->host) - 1) != 0)
		give_up("gethostname", strerror(errno));
	return key;
}

static int parent_of(int peer)
{
	return (peer - 1) / 2;
}

/* Rank 0: issue the whole tree at once. A copy waits for the one that writes its source. */
static void drive_tree(size_t size)
{
	acp_ga_t *memory = calloc((size_t)procs, sizeof(*memory));
	acp_handle_t *filled = calloc((size_t)procs, sizeof(*filled));
	double begin, seconds;
	int peer, from;

	if (memory == NULL || filled == NULL)
		give_up("memory", strerror(errno));
	for (peer = 0; peer < procs; peer++)
		memory[peer] = board_of(peer)->memory;
	begin = now();
	for (peer = 1; peer < procs; peer++) {
		from = parent_of(peer);
		filled[peer] = acp_copy(memory[peer], memory[from], size, filled[from]);
		if (filled[peer] == ACP_HANDLE_NULL)
			give_up("copy", "not accepted");
	}
	for (peer = 1; peer < procs; peer++)
		finish(filled[peer], "copy from rank to rank");
	seconds = now() - begin;
	if (procs > 1)
		printf("spread: %d copies in %.3f s, %.1f MB/s delivered, all issued by rank 0\n",
		       procs - 1, seconds, (double)size * (procs - 1) / seconds / 1e6);
	fflush(stdout);
	free(memory);
	free(filled);
}

/*
 * Start sha256sum with pipes for its input and output. posix_spawn() is used because fork() would
 * copy registered pages.
 */
static pid_t start_hash(int *to, int *from)
{
	char name[] = "sha256sum";
	char *const argv[] = { name, NULL };
	posix_spawn_file_actions_t actions;
	int in[2], out[2], error;
	pid_t pid = -1;

	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
		give_up("pipe", strerror(errno));
	error = posix_spawn_file_actions_init(&actions);
	if (error == 0)
		error = posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	if (error == 0)
		error = posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	if (error == 0)
		error = posix_spawnp(&pid, name, &actions, NULL, argv, environ);
	if (error != 0)
		give_up("sha256sum", strerror(error));
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	*to = in[1];
	*from = out[0];
	return pid;
}

/* sha256sum prints nothing before the end of its input, so write everything, then read. */
static void hash(const char *memory, size_t size)
{
	int to, from, status;
	pid_t pid = start_hash(&to, &from);
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = write(to, memory + done, size - done);
		if (n < 0 && errno != EINTR)
			give_up("pipe to sha256sum", strerror(errno));
		done += n > 0 ? (size_t)n : 0;
	}
	close(to);
	read_all(from, board->hash, HEX_SIZE, "pipe from sha256sum");
	board->hash[HEX_SIZE] = '\0';
	close(from);
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			give_up("waitpid", strerror(errno));
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		give_up("sha256sum", "failed");
}

/* Rank 0: print one line per rank. */
static bool compare(void)
{
	bool right = true, same;
	int peer;

	for (peer = 0; peer < procs; peer++) {
		const struct board *b = board_of(peer);

		same = strncmp(b->hash, board->hash, HEX_SIZE) == 0;
		right = right && same;
		printf("  rank %-3d on %-12.63s ", peer, b->host);
		if (peer == 0)
			printf("%-14s", "from the file");
		else
			printf("from rank %-4d", parent_of(peer));
		printf(" sha256 %.16s... %s\n", b->hash, same ? "ok" : "DIFFERS");
	}
	return right;
}

/* All ranks end with the result of rank 0. */
static bool agree(bool right)
{
	if (rank == 0)
		board->right = right;
	sync_all();
	return board_of(0)->right == 1;
}

static int run(const char *name)
{
	void *memory = NULL;
	bool right = true;
	acp_atkey_t key;
	size_t size;

	if (rank == 0)
		memory = load(name ? name : default_file());
	sync_all();
	size = rank == 0 ? board->size : board_of(0)->size;
	if (rank != 0)
		memory = memory_for(size);
	key = publish(memory, size);
	sync_all();
	if (rank == 0)
		drive_tree(size);
	sync_all();
	hash(memory, size);
	sync_all();
	if (rank == 0)
		right = compare();
	right = agree(right);
	if (rank == 0)
		printf("spread: %s\n", right ? "all ranks hold the same file" : "FAILED");
	if (acp_unregister_memory(key) != 0)
		give_up("unregister memory", "refused");
	munmap(memory, size);
	return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	int status;

	if (acp_init(&argc, &argv) != 0) {
		fprintf(stderr, "spread: acp_init failed\n");
		return EXIT_FAILURE;
	}
	rank = acp_rank();
	procs = acp_procs();
	board = acp_query_address(acp_query_starter_ga(rank));
	if (board == NULL || acpx_starter_size() < 2 * sizeof(*board))
		give_up("starter memory", "too little (ACP_STARTER_SIZE)");
	copy = board + 1;
	signal(SIGPIPE, SIG_IGN);
	acpx_set_error_mode(ACPX_ERRORS_RETURN);
	status = run(argc > 1 ? argv[1] : NULL);
	if (acp_finalize() != 0) {
		fprintf(stderr, "spread: acp_finalize failed\n");
		status = EXIT_FAILURE;
	}
	return status;
}
