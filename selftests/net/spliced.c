// SPDX-License-Identifier: MIT
/*
 * A datagram may share pages with a process of this machine that can still write to them: it was
 * sent by vmsplice(2) or sendfile(2).  Here a payload changes while its frame is received, behind
 * the check of its tag: what arrives is what the tag was for.  So that it does so each time, these
 * pages are a map of a BPF program, which runs where the kernel begins to apply a frame.
 */
#include "../dev/isolated.h"

#include <fcntl.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "bpf.h"
#include "inject.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT	103
#endif

#define KB		1024UL
#define ROUNDS		10
#define FRAMES		40
#define PIECE		1000U
#define LONG		8000U
#define VERY_LONG	30000U
#define TARGET		(64 * KB)
#define RIGHT		0x1111111111111111ULL
#define WRONG		0x2222222222222222ULL

static struct nodes n;
static struct setup setup;
static struct rank victim, second;
static struct memory target;
static struct inject x;
static int pipes[2];
static char *wire;			/* what is sent, in pages of ours */
static char frames[TARGET];		/* ... as it was signed */
static size_t filled_up;
static int map;				/* ... and these pages */

/* ---- What changes it ---- */

/* From now on, the word at "at" of what is sent is wrong as soon as a frame is applied. */
static void change(size_t at)
{
	const struct bpf_insn insns[] = {
		FIRST(map, 3),
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, 0, 0, (int)(uint32_t)WRONG),
		INSN(0, 0, 0, 0, (int)(WRONG >> 32)),
		INSN(BPF_STX | BPF_MEM | BPF_DW, 0, 1, (short)at, 0),
		RESULT(0),
		EXIT,
	};
	int prog = bpf_load(BPF_PROG_TYPE_KPROBE, 0, insns, sizeof(insns) / sizeof(insns[0]));

	bpf_probe("acp_station_arrived", prog);
	bpf_probe("acp_station_pieces", prog);
}

/* ---- Frames ---- */

static void play(uint32_t integrity, uint32_t mtu)
{
	nodes_open(&n, 2, 1, false);
	nodes_set_mtu(&n, mtu);
	nodes_setup(&n, &setup, 0, 4);
	setup.join.integrity = integrity;
	nodes_join(&n, &victim, &setup);
	setup.join.rank = 1;
	nodes_join(&n, &second, &setup);
	memory_open(&victim, &target, TARGET);
	inject_begin(&x, &n, &setup, &victim, 2);
	CHECK_EQ(pipe(pipes), 0);
	CHECK(fcntl(pipes[1], F_SETPIPE_SZ, 1 << 20) > 0);
	map = bpf_element(TARGET);
	wire = mmap(NULL, TARGET, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
	CHECK(wire != MAP_FAILED);
}

/* Add piece i of a copy; its payload ends with the word. */
static void add_piece(uint64_t ticket, uint32_t i, uint32_t length)
{
	struct acp_frame f = inject_header(&x, ACP_FRAME_DATA);
	struct acp_msg m = {
		.type = ACP_MSG_DATA, .origin = 2, .ticket = ticket,
		.dst = memory_ga(&target, (uint64_t)i * length), .length = length,
	};
	uint64_t data[VERY_LONG / 8];
	char body[VERY_LONG + 100];
	uint32_t k;

	for (k = 0; k < length / 8; k++)
		data[k] = RIGHT;
	f.flags |= x.encrypted ? 0 : ACP_FRAME_BULK;
	filled_up += inject_build(&x, frames + filled_up, &f, body,
				  inject_message(body, &m, data));
}

/* Send what is in "wire", in segments of "each" bytes, or 0: the socket refers to these pages. */
static void splice_out(size_t each)
{
	struct iovec all = { wire, filled_up };
	int size = (int)each;

	CHECK_EQ(setsockopt(x.fd, SOL_UDP, UDP_SEGMENT, &size, sizeof(size)), 0);
	CHECK_EQ(vmsplice(pipes[1], &all, 1, 0), filled_up);
	if (splice(pipes[0], NULL, x.fd, NULL, filled_up, 0) != (ssize_t)filled_up)
		FAIL("splice: %s", strerror(errno));
}

/* Where the word of a piece goes. */
static uint64_t there(uint32_t i, uint32_t length)
{
	uint64_t *end = (void *)(target.addr + (i + 1) * length);

	return __atomic_load_n(end - 1, __ATOMIC_ACQUIRE);
}

/* It arrives as it was signed, though its last word, at "at", is another one by then. */
static void arrives(uint32_t i, uint32_t length, size_t at, size_t each)
{
	const uint64_t *word = (void *)(wire + at);
	int tries = 100;

	/* UDP may take a batch apart: the first frame of it then spoils those behind it. */
	while (!there(i, length)) {
		CHECK(tries--);
		memcpy(wire, frames, filled_up);
		splice_out(each);
		sleep_ms(1);
	}
	inject_applied(&x, x.seq - 1);
	CHECK_EQ(there(i, length), RIGHT);
	CHECK(x.encrypted || __atomic_load_n(word, __ATOMIC_ACQUIRE) == WRONG);
}

/* ---- Tests ---- */

static void single(uint32_t mtu, uint32_t length)
{
	const int none = 1;
	int i;

	play(ACP_INTEGRITY_TAG, mtu);
	/* Otherwise UDP's checksum, which is computed before, is wrong as well. */
	CHECK_EQ(setsockopt(x.fd, SOL_SOCKET, SO_NO_CHECK, &none, sizeof(none)), 0);
	for (i = 0; i < ROUNDS; i++) {
		memset(target.addr, 0, length);
		filled_up = 0;
		add_piece(1000, 0, length);
		if (!i)
			change(filled_up - 8);
		arrives(0, length, filled_up - 8, 0);
	}
}

TEST(N4_payload_that_changes_between_check_and_copy)
{
	single(9000, LONG);
}

/* The datagram comes in fragments of IP. */
TEST(N4_payload_in_fragments_that_changes_between_check_and_copy)
{
	single(1500, LONG);
}

/* ... and is longer than those that senders of the module make. */
TEST(N4_very_long_payload_in_fragments_that_changes_between_check_and_copy)
{
	single(9000, VERY_LONG);
}

/* Of a GSO batch, one frame; all others arrive, too. */
static void batch(uint32_t integrity)
{
	const uint32_t which = 3;
	size_t each, at;
	uint32_t i;
	int k;

	play(integrity, 1500);
	for (k = 0; k < ROUNDS; k++) {
		memset(target.addr, 0, FRAMES * PIECE);
		filled_up = 0;
		for (i = 0; i < FRAMES; i++)
			add_piece(1000, i, PIECE);
		each = filled_up / FRAMES;
		at = (which + 1) * each - 8 - (x.encrypted ? ACP_FRAME_AEAD_TAG : 0);
		if (!k)
			change(at);
		arrives(which, PIECE, at, each);
		for (i = 0; i < FRAMES; i++)
			CHECK_EQ(there(i, PIECE), RIGHT);
	}
}

TEST(N4_payload_in_a_batch_that_changes_between_check_and_copy)
{
	batch(ACP_INTEGRITY_TAG);
}

TEST(N4_encrypted_payload_in_a_batch_that_changes_between_check_and_copy)
{
	batch(ACP_INTEGRITY_AEAD);
}
