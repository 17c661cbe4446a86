// SPDX-License-Identifier: MIT
/* selftest: gate=uml */
/*
 * The provider of libfabric, as its programs use it: reads and writes with every form of
 * completion, errors at the initiator, a peer that dies, full completion queues, threads.
 */
#include "../dev/isolated.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "fi_play.h"

#define THREADS	8
#define ROUNDS	200

static const struct play_wish *wish;

/* Lengths that are inlined, bounced and registered. */
static const size_t sizes[] = { 0, 1, 8, 255, 256, 257, 4096, 16384, 16385, 70001, HALF };

/* ---- Reads and writes ---- */

/* From memory that is registered or not, to rank THERE, and back to elsewhere. */
static void put_and_get(size_t size, uint64_t seed, bool registered)
{
	const uint64_t at = play_at(&p, THERE, 3), key = play_key(THERE);
	char *from = registered ? p.memory + HALF : malloc(HALF), *to = malloc(HALF + 1);
	void *desc = registered ? fi_mr_desc(p.mr) : NULL;
	struct fi_cq_tagged_entry entry;

	fill(from, size, seed);
	CHECK_EQ(fi_write(p.ep, from, size, desc, p.peer[THERE], at, key, &p), 0);
	entry = done();
	CHECK(entry.op_context == &p);
	CHECK_EQ(entry.flags, FI_RMA | FI_WRITE);
	to[size] = 77;
	CHECK_EQ(fi_read(p.ep, to, size, NULL, p.peer[THERE], at, key, from), 0);
	entry = done();
	CHECK(entry.op_context == from);
	CHECK_EQ(entry.flags, FI_RMA | FI_READ);
	CHECK(filled(to, size, seed));
	CHECK_EQ(to[size], 77);
	if (!registered)
		free(from);
	free(to);
}

static void copies(void)
{
	size_t i;

	play_open(&p, wish);
	for (i = 0; p.rank == 0 && i < COUNT(sizes); i++) {
		put_and_get(sizes[i], i, false);
		put_and_get(sizes[i], i + 100, true);
	}
	play_meet();
	if (p.rank == THERE)
		CHECK(filled(p.memory + 3, HALF, COUNT(sizes) - 1 + 100));
	play_meet();
	play_close(&p);
}

TEST(data_arrive_and_come_back_by_virtual_addresses)
{
	run(copies);
}

TEST(data_arrive_and_come_back_by_offsets)
{
	static const struct play_wish offsets = { .mr_mode = FI_MR_ALLOCATED | FI_MR_PROV_KEY };

	wish = &offsets;
	run(copies);
}

TEST(data_arrive_over_a_bad_network)
{
	play_prepare();
	members_run_over("loss 3% duplicate 3%", RANKS, 1, copies);
}

/* Three pieces here, two there; with a fence behind it, and the data of a flag. */
static void vectors(void)
{
	const struct iovec local[] = { { p.memory + HALF, 1000 }, { p.memory + HALF + 2000, 300 },
				       { p.memory + HALF + 3000, 20700 } };
	const struct fi_rma_iov remote[] = { { play_at(&p, THERE, 8), 600, play_key(THERE) },
					     { play_at(&p, THERE, 5000), 21400, play_key(THERE) } };
	struct fi_msg_rma msg = {
		.msg_iov = local, .iov_count = 3, .addr = p.peer[THERE], .rma_iov = remote,
		.rma_iov_count = 2, .context = &msg,
	};
	char back[22000];
	struct iovec whole = { back, 22000 };

	fill(p.memory + HALF, 24000, 5);
	CHECK_EQ(fi_writemsg(p.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE), 0);
	msg.msg_iov = &whole;
	msg.iov_count = 1;
	CHECK_EQ(fi_readmsg(p.ep, &msg, FI_COMPLETION | FI_FENCE), 0);
	CHECK_EQ(done().flags, FI_RMA | FI_WRITE);
	CHECK_EQ(done().flags, FI_RMA | FI_READ);
	CHECK(!memcmp(back, local[0].iov_base, 1000));
	CHECK(!memcmp(back + 1000, local[1].iov_base, 300));
	CHECK(!memcmp(back + 1300, local[2].iov_base, 20700));
	whole.iov_len--;
	CHECK_EQ(fi_readmsg(p.ep, &msg, FI_COMPLETION), -FI_EINVAL);
}

static void vectors_body(void)
{
	play_open(&p, NULL);
	if (p.rank == 0)
		vectors();
	play_meet();
	play_close(&p);
}

TEST(pieces_of_both_sides_need_not_match)
{
	run(vectors_body);
}

static void many_injects(void)
{
	const uint64_t at = play_at(&p, THERE, 0), key = play_key(THERE);
	uint64_t i, back;
	int error;

	for (i = 0; i < 5000; i++) {
		back = i;		/* may be changed at once */
		while ((error = (int)fi_inject_write(p.ep, &back, 8, p.peer[THERE], at + i % 64 * 8,
						     key)) == -FI_EAGAIN)
			play_nothing(p.cq);
		CHECK_EQ(error, 0);
	}
	CHECK_EQ(fi_inject_write(p.ep, p.memory, 257, p.peer[THERE], at, key), -FI_EINVAL);
	CHECK_EQ(fi_read(p.ep, &back, 8, NULL, p.peer[THERE], at, key, NULL), 0);
	done();
	play_nothing(p.cq);
}

static void injects(void)
{
	uint64_t i;

	play_open(&p, NULL);
	if (p.rank == 0)
		many_injects();
	play_meet();
	for (i = 0; p.rank == THERE && i < 64; i++)
		CHECK(word(0)[i] >= 5000 - 128 && word(0)[i] % 64 == i);
	play_close(&p);
}

TEST(injects_report_nothing_and_release_the_buffer_at_once)
{
	run(injects);
}

/* ---- Remote CQ data ---- */

static void announce(void)
{
	const uint64_t at = play_at(&p, THERE, 64), key = play_key(THERE);

	fill(p.memory, 30000, 9);
	CHECK_EQ(fi_writedata(p.ep, p.memory, 30000, NULL, 0x123456789abcdefULL, p.peer[THERE], at,
			      key, &p), 0);
	CHECK_EQ(done().flags, FI_RMA | FI_WRITE);
	CHECK_EQ(fi_inject_writedata(p.ep, p.memory, 0, 7, p.peer[THERE], at, key), 0);
}

static void expect_data(void)
{
	struct fi_cq_tagged_entry entry = done();

	CHECK_EQ(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	CHECK_EQ(entry.data, 0x123456789abcdefULL);
	CHECK(filled(p.memory + 64, 30000, 9));
	CHECK_EQ(done().data, 7);
}

static void cq_data(void)
{
	play_open(&p, NULL);
	if (p.rank == 0)
		announce();
	if (p.rank == THERE)
		expect_data();
	play_meet();
	play_close(&p);
}

TEST(data_of_a_write_come_behind_its_bytes)
{
	run(cq_data);
}

/* ---- Formats of completions ---- */

static void read_format(enum fi_cq_format format)
{
	struct fi_cq_attr attr = { .format = format };
	struct { struct fi_cq_tagged_entry e; char rest[8]; } got;
	static const size_t size[] = { 0, 8, 24, 40, 48 };
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t source = 5;
	size_t i;

	CHECK_EQ(fi_cq_open(p.domain, &attr, &cq, NULL), 0);
	ep = play_endpoint(&p, cq, 0);
	CHECK_EQ(fi_enable(ep), 0);
	CHECK_EQ(fi_write(ep, p.memory, 8, NULL, p.peer[THERE], play_at(&p, THERE, 0),
			  play_key(THERE), &attr), 0);
	memset(&got, 0xee, sizeof(got));
	while (fi_cq_readfrom(cq, &got, 1, &source) == -FI_EAGAIN)
		;
	CHECK(got.e.op_context == &attr);
	CHECK(format == FI_CQ_FORMAT_CONTEXT || got.e.flags == (FI_RMA | FI_WRITE));
	CHECK_EQ(source, FI_ADDR_NOTAVAIL);
	for (i = size[format]; i < sizeof(got); i++)
		CHECK_EQ(((unsigned char *)&got)[i], 0xee);
	CHECK_EQ(fi_close(&cq->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&ep->fid), 0);
	CHECK_EQ(fi_close(&cq->fid), 0);
}

static void formats(void)
{
	enum fi_cq_format format;

	play_open(&p, NULL);
	for (format = FI_CQ_FORMAT_CONTEXT; !p.rank && format <= FI_CQ_FORMAT_TAGGED; format++)
		read_format(format);
	play_meet();
	play_close(&p);
}

TEST(completions_have_each_format_and_no_byte_more)
{
	run(formats);
}

static void selective(void)
{
	struct iovec iov;
	struct fi_rma_iov remote;
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &remote,
				  .rma_iov_count = 1, .context = &msg };

	play_open(&p, wish);
	if (p.rank == 0) {
		iov = (struct iovec){ p.memory, 8 };
		remote = (struct fi_rma_iov){ play_at(&p, THERE, 0), 8, play_key(THERE) };
		msg.addr = p.peer[THERE];
		CHECK_EQ(fi_write(p.ep, p.memory, 8, NULL, msg.addr, remote.addr, remote.key,
				  &p), 0);
		CHECK_EQ(fi_writemsg(p.ep, &msg, 0), 0);
		CHECK_EQ(fi_writemsg(p.ep, &msg, FI_COMPLETION), 0);
		CHECK(done().op_context == &msg);
		play_nothing(p.cq);
		/* Errors are always reported. */
		CHECK_EQ(fi_write(p.ep, p.memory, 8, NULL, msg.addr, remote.addr + PLAY_BYTES,
				  remote.key, &p), 0);
		CHECK(play_await_error(p.cq).op_context == &p);
	}
	play_meet();
	play_close(&p);
}

TEST(selective_completion_reports_what_asks_for_it)
{
	static const struct play_wish some = { .bind = FI_SELECTIVE_COMPLETION };

	wish = &some;
	run(selective);
}

/* ---- Counters ---- */

static void count_writes(struct fid_cntr *cntr, struct fid_ep *ep)
{
	const uint64_t at = play_at(&p, THERE, 0), key = play_key(THERE);
	int i;

	for (i = 0; i < 10; i++)
		CHECK_EQ(fi_write(ep, p.memory, 8, NULL, p.peer[THERE], at, key, NULL), 0);
	CHECK_EQ(fi_cntr_wait(cntr, 10, -1), 0);
	CHECK_EQ(fi_cntr_wait(cntr, 11, 20), -FI_ETIMEDOUT);
	CHECK_EQ(fi_write(ep, p.memory, 8, NULL, p.peer[THERE], at, key + (1ULL << 45), NULL), 0);
	CHECK_EQ(fi_cntr_wait(cntr, 11, -1), -FI_EAVAIL);
	CHECK_EQ(fi_cntr_read(cntr), 10);
	CHECK_EQ(fi_cntr_readerr(cntr), 1);
	CHECK_EQ(fi_read(ep, p.memory, 8, NULL, p.peer[THERE], at, key, NULL), 0);
	CHECK_EQ(fi_cntr_add(cntr, 5), 0);
	CHECK_EQ(fi_cntr_read(cntr), 15);
	CHECK_EQ(fi_cntr_set(cntr, 1), 0);
	CHECK_EQ(fi_cntr_read(cntr), 1);
}

static void counters(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *writes, *reads;
	struct fid_ep *ep;

	play_open(&p, NULL);
	if (p.rank == 0) {
		CHECK_EQ(fi_cntr_open(p.domain, &attr, &writes, NULL), 0);
		CHECK_EQ(fi_cntr_open(p.domain, &attr, &reads, NULL), 0);
		ep = play_endpoint(&p, NULL, 0);
		CHECK_EQ(fi_ep_bind(ep, &writes->fid, FI_WRITE), 0);
		CHECK_EQ(fi_ep_bind(ep, &reads->fid, FI_READ), 0);
		CHECK_EQ(fi_ep_bind(ep, &reads->fid, FI_REMOTE_WRITE), -FI_ENOSYS);
		CHECK_EQ(fi_enable(ep), 0);
		count_writes(writes, ep);
		CHECK_EQ(fi_cntr_wait(reads, 1, -1), 0);
		CHECK_EQ(fi_close(&ep->fid), 0);
		CHECK_EQ(fi_close(&writes->fid), 0);
		CHECK_EQ(fi_close(&reads->fid), 0);
	}
	play_meet();
	play_close(&p);
}

TEST(counters_count_completions_and_errors)
{
	run(counters);
}

/* ---- Errors ---- */

static void fails(uint64_t at, uint64_t key, int error, int status)
{
	char text[80];
	struct fi_cq_err_entry e;

	CHECK_EQ(fi_write(p.ep, p.memory, 64, NULL, p.peer[THERE], at, key, &text), 0);
	e = play_await_error(p.cq);
	CHECK(e.op_context == &text);
	CHECK_EQ(e.prov_errno, status);
	CHECK_EQ(e.err, error);
	CHECK_EQ(e.flags, FI_RMA | FI_WRITE);
	CHECK(!strcmp(fi_cq_strerror(p.cq, e.prov_errno, NULL, text, sizeof(text)),
		      acpx_strerror(status)));
	CHECK(!strcmp(text, acpx_strerror(status)));
}

static void *unmapped(void)
{
	void *memory = pages(1 << 17, PROT_READ);

	munmap(memory, 1 << 17);
	return memory;
}

static void errors(void)
{
	uint64_t at, key, operand = 1;

	play_open(&p, wish);
	at = play_at(&p, THERE, 0);
	key = play_key(THERE);
	if (p.rank == 0) {
		fails(at, play_key(0) - play_told(0)->base + play_told(THERE)->base,
		      FI_EKEYREJECTED, ACPX_EGA);
		fails(at, 12345 - at, FI_EKEYREJECTED, ACPX_EGA);
		fails(at + PLAY_BYTES - 63, key, FI_EINVAL, ACPX_ERANGE);
		fails(at, key + (1ULL << 45), FI_EKEYREJECTED, ACPX_ESTAG);
		fails(at, key, FI_EACCES, ACPX_EACCESS);
		CHECK_EQ(fi_atomic(p.ep, &operand, 1, NULL, p.peer[THERE], at + 1, key, FI_UINT64,
				   FI_SUM, NULL), 0);
		CHECK_EQ(play_await_error(p.cq).prov_errno, ACPX_EALIGN);
		CHECK_EQ(fi_write(p.ep, p.memory, 8, NULL, RANKS, at, key, NULL), -FI_EINVAL);
		CHECK_EQ(fi_write(p.ep, p.memory - 1, 8, fi_mr_desc(p.mr), p.peer[THERE], at, key,
				  NULL), -FI_EINVAL);
		CHECK_EQ(fi_write(p.ep, unmapped(), 70000, NULL, p.peer[THERE], at, key, NULL),
			 -FI_EFAULT);
		/* All others go on. */
		CHECK_EQ(fi_read(p.ep, p.memory, 8, NULL, p.peer[THERE], at, key, &p), 0);
		CHECK(done().op_context == &p);
	}
	play_meet();
	play_close(&p);
}

TEST(wrong_keys_offsets_and_rights_are_errors_of_the_initiator)
{
	static const struct play_wish readable = { .access = FI_REMOTE_READ };

	wish = &readable;
	run(errors);
}

/* ---- Full completion queues ---- */

static void overrun(void)
{
	static const struct play_wish small = { .cq_size = 8 };
	struct fi_cq_tagged_entry all[9];
	size_t i;

	play_open(&p, &small);
	if (p.rank == 0) {
		const uint64_t at = play_at(&p, THERE, 0), key = play_key(THERE);

		for (i = 0; i < 8; i++)
			CHECK_EQ(fi_write(p.ep, p.memory, 8, NULL, p.peer[THERE], at, key,
					  p.memory + i), 0);
		sleep_ms(50);
		CHECK_EQ(fi_write(p.ep, p.memory, 8, NULL, p.peer[THERE], at, key, NULL),
			 -FI_EAGAIN);
		CHECK_EQ(fi_inject_write(p.ep, p.memory, 8, p.peer[THERE], at, key), -FI_EAGAIN);
		for (i = 0; i < 8; i++)
			CHECK(done().op_context == p.memory + i);
		CHECK_EQ(fi_cq_read(p.cq, all, 9), -FI_EAGAIN);
		CHECK_EQ(fi_write(p.ep, p.memory, 8, NULL, p.peer[THERE], at, key, &p), 0);
		CHECK(done().op_context == &p);
	}
	play_meet();
	play_close(&p);
}

TEST(a_full_cq_refuses_operations_and_loses_none)
{
	run(overrun);
}

/* As many as there are operations; all complete. */
static void exhaust(void)
{
	static const struct play_wish large = { .cq_size = 1 << 14 };
	unsigned int started = 0, ended = 0;
	struct fi_cq_tagged_entry e;
	ssize_t error;

	play_open(&p, &large);
	while (p.rank == 0 && ended < 5000) {
		error = started < 5000 ?
			fi_write(p.ep, p.memory, 20000, NULL, p.peer[THERE],
				 play_at(&p, THERE, 0), play_key(THERE), NULL) : -FI_EAGAIN;
		started += !error;
		CHECK(!error || error == -FI_EAGAIN);
		if (error && fi_cq_read(p.cq, &e, 1) == 1)
			ended++;
	}
	if (p.rank == 0)
		play_nothing(p.cq);
	play_meet();
	play_close(&p);
}

TEST(as_many_operations_as_fit_are_under_way)
{
	run(exhaust);
}

/* ---- Peers that die ---- */

/* Whether or not that succeeds. */
static void write_to(int rank)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry error = { 0 };

	CHECK_EQ(fi_write(p.ep, p.memory, 8, NULL, p.peer[rank], play_at(&p, rank, 0),
			  play_key(rank), NULL), 0);
	if (fi_cq_sread(p.cq, &e, 1, NULL, -1) == -FI_EAVAIL)
		CHECK_EQ(fi_cq_readerr(p.cq, &error, 0), 1);
}

static void survivor(void)
{
	static const struct play_wish sleeps = { .wait = FI_WAIT_UNSPEC };
	struct patience patience = patience_begin(PATIENCE_SOON);
	const int victim = RANKS - 1;
	struct fi_cq_err_entry e;

	play_open(&p, &sleeps);
	if (p.rank == victim)
		raise(SIGKILL);
	if (p.rank == 0) {
		/* Its memory is there until it has been killed, which may take time. */
		while (acpx_peer_state(victim) != ACPX_PEER_DOWN) {
			CHECK(!patience_over(&patience));
			write_to(victim);
			sleep_ms(10);
		}
		CHECK_EQ(fi_write(p.ep, p.memory, 70000, NULL, p.peer[victim],
				  play_at(&p, victim, 0), play_key(victim), &p), 0);
		e = play_await_error(p.cq);
		CHECK(e.op_context == &p);
		CHECK(e.err == FI_ECONNRESET || e.err == FI_EHOSTDOWN ||
		      e.err == FI_EKEYREJECTED);
		put_and_get(70001, 1, false);
	}
	play_pass(1);
	/* Not play_meet(): a rank is missing, which fi_close() of the domain must bear. */
	play_close(&p);
}

TEST(a_dead_peer_is_an_error_and_others_go_on)
{
	static struct members m;

	setenv("ACP_TIMEOUT", "1000", 1);
	play_prepare();
	members_open(&m, RANKS, 1);
	members_start_all(&m, survivor);
	CHECK_EQ(members_wait(&m, RANKS - 1), DIED - SIGKILL);
	CHECK_EQ(members_wait(&m, 0), 0);
	CHECK_EQ(members_wait(&m, 1), 0);
}

/* ---- Threads ---- */

static void *add_and_put(void *arg)
{
	const size_t at = 4096 + (size_t)(uintptr_t)arg * 8192;
	char *memory = p.memory + HALF + at;
	uint64_t one = 1;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		fill(memory, 4000, (uint64_t)i);
		while (fi_write(p.ep, memory, 4000, NULL, p.peer[THERE], play_at(&p, THERE, at),
				play_key(THERE), NULL) == -FI_EAGAIN)
			sched_yield();
		while (fi_atomic(p.ep, &one, 1, NULL, p.peer[THERE], play_at(&p, THERE, 0),
				 play_key(THERE), FI_UINT64, FI_SUM, NULL) == -FI_EAGAIN)
			sched_yield();
	}
	return NULL;
}

static void threads(void)
{
	struct fi_cq_tagged_entry e;
	pthread_t thread[THREADS];
	uintptr_t i;

	play_open(&p, NULL);
	if (p.rank == 0) {
		for (i = 0; i < THREADS; i++)
			CHECK(!pthread_create(&thread[i], NULL, add_and_put, (void *)i));
		for (i = 0; i < 2 * THREADS * ROUNDS; i++)
			play_await(p.cq, &e);
		play_nothing(p.cq);
		for (i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
	}
	play_meet();
	if (p.rank == THERE)
		CHECK_EQ(*word(0), THREADS * ROUNDS);
	play_close(&p);
}

TEST(threads_share_an_endpoint)
{
	run(threads);
}

/* ---- Sleeping ---- */

static void *signal_later(void *arg)
{
	(void)arg;
	sleep_ms(100);
	CHECK_EQ(fi_cq_signal(p.cq), 0);
	return NULL;
}

static void sleep_for_data(void)
{
	struct fi_cq_tagged_entry e;
	struct fid *fid = &p.cq->fid;
	pthread_t thread;
	int fd;

	CHECK_EQ(fi_cq_sread(p.cq, &e, 1, NULL, 30), -FI_EAGAIN);
	play_meet();
	CHECK_EQ(fi_cq_sread(p.cq, &e, 1, NULL, -1), 1);
	CHECK_EQ(e.data, 1);
	CHECK(!pthread_create(&thread, NULL, signal_later, NULL));
	CHECK_EQ(fi_cq_sread(p.cq, &e, 1, NULL, -1), -FI_EAGAIN);
	pthread_join(thread, NULL);
	play_meet();
	CHECK_EQ(fi_control(fid, FI_GETWAIT, &fd), 0);
	while (fi_cq_read(p.cq, &e, 1) == -FI_EAGAIN)
		if (!fi_trywait(p.fabric, &fid, 1))
			CHECK(patience_poll(fd, POLLIN, PATIENCE_SOON));
	CHECK_EQ(e.data, 2);
}

static void send_later(void)
{
	const uint64_t at = play_at(&p, THERE, 0), key = play_key(THERE);

	play_meet();
	sleep_ms(300);
	CHECK_EQ(fi_writedata(p.ep, p.memory, 8, NULL, 1, p.peer[THERE], at, key, NULL), 0);
	done();
	play_meet();
	sleep_ms(300);
	CHECK_EQ(fi_writedata(p.ep, p.memory, 8, NULL, 2, p.peer[THERE], at, key, NULL), 0);
	done();
}

static void others_meet(void)
{
	play_meet();
	play_meet();
}

static void sleeping(void)
{
	static const struct play_wish by_fd = { .wait = FI_WAIT_FD };

	play_open(&p, &by_fd);
	if (p.rank == 0)
		send_later();
	else if (p.rank == THERE)
		sleep_for_data();
	else
		others_meet();
	play_meet();
	play_close(&p);
}

TEST(sleepers_wake_for_remote_data_signals_and_time)
{
	run(sleeping);
}

/* Milliseconds of CPU time that a wait for a write takes, on a network that takes 200 ms. */
static long cpu_of_wait(void)
{
	struct fi_cq_tagged_entry e;
	clock_t used;

	CHECK_EQ(fi_write(p.ep, p.memory, 8, NULL, p.peer[THERE], play_at(&p, THERE, 0),
			  play_key(THERE), &p), 0);
	used = clock();
	CHECK_EQ(fi_cq_sread(p.cq, &e, 1, NULL, -1), 1);
	CHECK(e.op_context == &p);
	return (long)((clock() - used) * 1000 / CLOCKS_PER_SEC);
}

/*
 * A thread that polls for 200 ms uses them each time. One that sleeps uses little, but on a loaded
 * machine a user mode kernel counts the time that others take from it: once is enough.
 */
static void slow(void)
{
	static const struct play_wish unspec = { .wait = FI_WAIT_UNSPEC };
	struct patience patience = patience_begin(PATIENCE_SOON);

	play_open(&p, &unspec);
	while (p.rank == 0 && cpu_of_wait() >= 50)
		CHECK(!patience_over(&patience));
	play_meet();
	play_close(&p);
}

TEST(sread_sleeps_until_a_write_has_completed)
{
	play_prepare();
	members_run_over("delay 100ms", RANKS, 1, slow);
}
