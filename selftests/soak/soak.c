// SPDX-License-Identifier: MIT
/*
 * Everything at once: six ranks on three nodes do all operations at random, among random faults,
 * and every effect is compared with a model of memory.
 *
 *	SOAK_SECONDS	duration (30)
 *	SOAK_SEED	of all decisions (1)
 *	SOAK_LIFE	repeat only this life of the seed
 *
 * See board.h. All decisions come from the seed; the timing relative to those of the kernel depends
 * on the machine.
 */
#include "../dev/isolated.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "faults.h"
#include "slots.h"

struct board *board;
struct arena *arenas[MEMBERS][COLORS];
int me;

static struct nodes nodes;
static uint64_t stream;			/* decisions of the director */
/* arenas of dead members, as they were at their death */
static struct arena *relics[MEMBERS][COLORS];
static uint64_t counted[MEMBERS][COLORS][2];	/* counters at the start of the run */

/* Sums over lives, shared with their processes. */
static struct totals {
	uint64_t lives, runs, deaths, churned, barriers, resets;
	uint64_t ended[ACP_ST_END];
} *totals;

static unsigned int setting(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned int)strtoul(text, NULL, 0) : otherwise;
}

static unsigned int slower(void)
{
	return test_short() ? 4 : 1;
}

static void *shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* ---- Members ---- */

static bool living(const struct member *m)
{
	return !m->doomed;
}

/* True if all living members have done all announced phases. */
static bool all_done(void)
{
	int i;

	for (i = 0; i < MEMBERS; i++)
		if (living(&board->member[i]) &&
		    LOAD(board->member[i].phase) < board->phases)
			return false;
	return true;
}

static bool all_ready(void)
{
	int i;

	for (i = 0; i < MEMBERS; i++)
		if (!LOAD(board->member[i].ready))
			return false;
	return true;
}

static void announce(enum phase what)
{
	CHECK(board->phases < PHASES);
	board->phase[board->phases] = (uint8_t)what;
	STORE(board->phases, board->phases + 1);
}

/* ---- Supervision ---- */

static void show_file(pid_t pid, const char *name)
{
	char path[64], line[300];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		printf("#     %s", line);
	if (f)
		fclose(f);
}

static void show_member(int i)
{
	const struct member *m = &board->member[i];
	uint32_t k;

	printf("# member %d: rank %d, pid %d, batch %u, phases %u begun %u done of %u%s%s%s\n", i,
	       m->rank, m->pid, m->batches, m->entered, m->phase, board->phases,
	       m->doomed ? ", doomed" : "", m->gone ? ", gone" : "", m->stopped ? ", stopped" : "");
	if (m->since)
		printf("#   waits for %.1f s for %s\n",
		       (double)(now_ns() - m->since) / 1e9, m->what);
	for (k = 0; k < m->count; k++)
		printf("#   %2u %s\n", k, access_text(&m->batch[k]));
	show_file(m->pid, "stack");
	fflush(stdout);
}

/* Show who waits for what. */
static void show_all(void)
{
	uint32_t i;

	for (i = 0; i < MEMBERS; i++)
		show_member((int)i);
	for (i = 0; i < NODES; i++) {
		printf("# node %u:\n", i);
		fflush(stdout);
		nodes_run(&nodes, i, "sed 's/^/#   /' /proc/net/acp; ip -br addr | sed 's/^/#   /'");
	}
	fflush(stdout);
}

static void complain(const char *what, int member)
{
	printf("# %s: member %d\n", what, member);
	show_all();
	FAIL("%s: member %d", what, member);
}

static uint64_t since(const struct member *m)
{
	uint64_t begun = LOAD(m->since), resumed = LOAD(m->resumed);

	if (!begun)
		return UINT64_MAX;
	return begun > resumed ? begun : resumed;
}

/* Since when it has waited only for the kernel; common phases need all members. */
static uint64_t waits_since(const struct member *m)
{
	bool together = LOAD(m->entered) > LOAD(m->phase) || !m->ready;
	uint64_t latest = since(m);
	int i;

	if (latest == UINT64_MAX || !together)
		return latest;
	for (i = 0; i < MEMBERS; i++) {
		const struct member *other = &board->member[i];

		if (!living(other))
			continue;
		if (other->stopped || LOAD(other->entered) < LOAD(m->entered))
			return UINT64_MAX;
		if (since(other) != UINT64_MAX && since(other) > latest)
			latest = since(other);
	}
	return latest;
}

static void check_waiting(void)
{
	uint64_t now = now_ns();
	int i;

	for (i = 0; i < MEMBERS; i++) {
		const struct member *m = &board->member[i];
		uint64_t begun = waits_since(m);

		if (!m->stopped && !m->gone && begun < now && now - begun > board->patience)
			complain("hangs", i);
	}
}

static void keep_relics(int i)
{
	int c;

	for (c = 0; c < COLORS; c++)
		memcpy(relics[i][c], arenas[i][c], sizeof(struct arena));
}

/* After the end of a process no byte of its memory may change. */
static void check_relics(void)
{
	int i, c;

	for (i = 0; i < MEMBERS; i++)
		for (c = 0; c < COLORS && board->member[i].gone; c++)
			if (memcmp(relics[i][c], arenas[i][c], sizeof(struct arena)))
				complain("memory changed after the end of its process", i);
}

static bool ended_well(const struct member *m, int status)
{
	if (m->doomed)
		return true;
	return !status && m->phase && board->phase[m->phase - 1] == PHASE_LEAVE;
}

/* Record the members that have ended; true if all have. */
static bool reap(void)
{
	bool all = true;
	int i, status;

	for (i = 0; i < MEMBERS; i++) {
		struct member *m = &board->member[i];

		if (m->gone)
			continue;
		if (waitpid(m->pid, &status, WNOHANG) != m->pid) {
			all = false;
			continue;
		}
		STORE(m->gone, now_ns());
		if (ended_well(m, status)) {
			keep_relics(i);
			continue;
		}
		show_member(i);
		FAIL("member %d ended early, status 0x%x", i, (unsigned int)status);
	}
	return all;
}

/* A guest that gets no processor for long sees its peers as silent: detect that. */
static void rest(void)
{
	uint64_t before = now_ns(), ms;

	sleep_ms(10);
	ms = (now_ns() - before) / MS;
	if (ms > 500)
		printf("# %llu ms without a processor\n", (unsigned long long)ms);
}

static void look_after(void)
{
	reap();
	check_waiting();
	rest();
}

/* ---- Start of a run ---- */

static void set(const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	setenv(name, text, 1);
}

static void set_nodes(void)
{
	char text[NODES * COLORS * 41] = "";
	int i, c;

	for (i = 0; i < NODES; i++)
		for (c = 0; c < COLORS; c++) {
			strcat(text, nodes.address[c * NODES + i]);
			strcat(text, c + 1 < COLORS ? "," : " ");
		}
	setenv("ACP_NODES", text, 1);
}

static void set_job(void)
{
	static const uint64_t depths[] = { 64, 256, 4096 };
	static const char *const integrities[] = { "tag", "udp", "crc32c" };

	set_nodes();
	setenv("ACP_INSECURE", "1", 1);
	set("ACP_NPROCS", MEMBERS);
	set("ACP_QUEUE_DEPTH", depths[draw(&stream, 3)]);
	set("ACP_TIMEOUT", board->timeout / MS);
	set("ACP_INIT_TIMEOUT", 20000 * slower());
	setenv("ACP_INTEGRITY", integrities[draw(&stream, 3)], 1);
}

static void start_member(int i)
{
	struct member *m = &board->member[i];
	pid_t child;

	fflush(stdout);
	child = fork();
	CHECK(child >= 0);
	if (child) {
		m->pid = child;
		return;
	}
	setpriority(PRIO_PROCESS, 0, 0);
	me = i;
	nodes_enter(&nodes, (uint32_t)(i / PER_NODE));
	set("ACP_RANK", (uint64_t)i);
	member_live();
}

static void read_counters(uint64_t value[MEMBERS][COLORS][2])
{
	int i, c;

	for (i = 0; i < MEMBERS; i++)
		for (c = 0; c < COLORS; c++) {
			value[i][c][0] = arenas[i][c]->count8;
			value[i][c][1] = arenas[i][c]->count4;
		}
}

static void start_run(void)
{
	int i;

	memset(board, 0, sizeof(*board));
	board->seed = next_random(&stream);
	board->timeout = between(&stream, 2000, 5000) * MS * slower();
	board->slack = 2000 * MS * slower();
	board->patience = 3 * board->timeout + PATIENCE_SOON * slower();
	set_job();
	read_counters(counted);
	for (i = 0; i < MEMBERS; i++)
		start_member(i);
}

/* ---- Events of a run ---- */

enum fate { FATE_LEAVE, FATE_KILL, FATE_KILL_TWO, FATE_KILL_NODE, FATE_KILL_ALL, FATE_EXIT,
	    FATE_ABORT, FATES };

static void kill_member(int i)
{
	STORE(board->died, 1);
	STORE(board->member[i].doomed, 1);
	kill(board->member[i].pid, SIGKILL);
	totals->deaths++;
}

static void tell_to_leave(int i, enum leave how)
{
	STORE(board->died, 1);
	if (how == LEAVE_ABORT)
		STORE(board->aborted, 1);
	STORE(board->member[i].doomed, 1);
	STORE(board->member[i].leave, how);
	totals->deaths++;
}

static void meet_fate(enum fate fate)
{
	int i = (int)draw(&stream, MEMBERS), k;

	switch (fate) {
	case FATE_LEAVE:
		break;
	case FATE_KILL:
		kill_member(i);
		break;
	case FATE_KILL_TWO:
		kill_member(i);
		kill_member((i + 1 + (int)draw(&stream, MEMBERS - 1)) % MEMBERS);
		break;
	case FATE_KILL_NODE:
		for (k = 0; k < PER_NODE; k++)
			kill_member(i / PER_NODE * PER_NODE + k);
		break;
	case FATE_KILL_ALL:
		for (k = 0; k < MEMBERS; k++)
			kill_member(k);
		break;
	case FATE_EXIT:
		tell_to_leave(i, LEAVE_EXIT);
		break;
	default:
		tell_to_leave(i, LEAVE_ABORT);
	}
}

static void draw_numbers(void)
{
	uint8_t *number = board->number[board->phases];
	int i, k;

	for (i = 0; i < MEMBERS; i++) {
		k = (int)draw(&stream, (uint64_t)i + 1);
		number[i] = number[k];
		number[k] = (uint8_t)i;
	}
}

/* Announce a common phase now and then. */
static void draw_phase(void)
{
	static uint64_t next;
	uint64_t x;

	if (now_ns() < next || !all_ready() || !all_done() || board->phases > PHASES - 4 ||
	    board->aborted)
		return;
	next = now_ns() + between(&stream, 100 * MS, 2500 * MS);
	x = draw(&stream, 10);
	if (x < 7 || board->died || board->cut_off || faults_severe()) {
		announce(PHASE_SYNC);
		return;
	}
	totals->resets++;
	if (x < 9)
		draw_numbers();
	announce(x < 9 ? PHASE_RESET : PHASE_REINIT);
}

/* True if no faults may start that could make acp_init or acp_reset fail. */
static bool calm(void)
{
	return !all_ready() || (!all_done() && board->phase[board->phases - 1] != PHASE_SYNC);
}

static void go_on_until(uint64_t time)
{
	while (now_ns() < time || calm()) {
		look_after();
		faults_tick(calm());
		draw_phase();
	}
}

/* ---- End of a run ---- */

static void check_counter(int i, int c, int four, uint64_t now)
{
	uint64_t sure = 0, issued = 0, added = now - counted[i][c][four];
	int k;

	for (k = 0; k < MEMBERS; k++) {
		sure += board->member[k].tally[i][c][four].sure;
		issued += board->member[k].tally[i][c][four].issued;
	}
	if (added < sure || added > issued)
		FAIL("counter of %d bytes at member %d color %d: added %llu, of which %llu surely, %llu asked for",
		     four ? 4 : 8, i, c, (unsigned long long)added, (unsigned long long)sure,
		     (unsigned long long)issued);
}

static void check_arenas(void)
{
	static struct arena wanted;
	uint64_t now[MEMBERS][COLORS][2];
	int i, c;

	read_counters(now);
	for (i = 0; i < MEMBERS; i++)
		for (c = 0; c < COLORS; c++) {
			source_fill(wanted.source, (uint64_t)(i * COLORS + c));
			if (memcmp(arenas[i][c]->source, wanted.source, SOURCE_SIZE) ||
			    memcmp(arenas[i][c]->end, wanted.end, sizeof(wanted.end)) ||
			    arenas[i][c]->pad)
				FAIL("memory of member %d color %d that nobody writes changed", i,
				     c);
			if (!living(&board->member[i]))
				continue;
			check_counter(i, c, 0, now[i][c][0]);
			check_counter(i, c, 1, now[i][c][1]);
		}
}

static void wait_all_done(void)
{
	while (!all_done())
		look_after();
}

static void add_up(void)
{
	int i, s;

	for (i = 0; i < MEMBERS; i++) {
		for (s = 0; s < ACP_ST_END; s++)
			totals->ended[s] += board->member[i].ended[s];
		totals->churned += board->member[i].churned;
		totals->barriers += board->member[i].barriers;
	}
	totals->runs++;
}

static void end_run(void)
{
	faults_end();
	wait_all_done();
	announce(PHASE_QUIET);
	wait_all_done();
	check_arenas();
	check_relics();
	announce(PHASE_LEAVE);
	while (!reap()) {
		check_waiting();
		sleep_ms(5);
	}
	check_relics();
	add_up();
}

static void one_run(void)
{
	uint64_t length;
	enum fate fate;

	start_run();
	fate = one_of(&stream, 3) ? FATE_LEAVE : (enum fate)draw(&stream, FATES);
	length = between(&stream, 1000, 8000) * MS * (test_short() ? 2 : 1);
	go_on_until(now_ns() + length);
	meet_fate(fate);
	if (fate != FATE_LEAVE && fate != FATE_KILL_ALL)
		go_on_until(now_ns() + draw(&stream, 4000) * MS);
	end_run();
}

/* ---- Lives ---- */

static void open_arenas(void)
{
	int i, c;

	board = shared(sizeof(*board));
	for (i = 0; i < MEMBERS; i++)
		for (c = 0; c < COLORS; c++) {
			arenas[i][c] = shared(sizeof(struct arena));
			relics[i][c] = pages(sizeof(struct arena), PROT_READ | PROT_WRITE);
			source_fill(arenas[i][c]->source, (uint64_t)(i * COLORS + c));
		}
}

static void live(uint64_t seed)
{
	uint64_t runs;

	/* The commands that inject faults would otherwise wait long for the busy members. */
	setpriority(PRIO_PROCESS, 0, -15);
	stream = seed;
	open_arenas();
	nodes_open(&nodes, NODES, COLORS, one_of(&stream, 2));
	nodes_acquaint(&nodes);
	faults_open(&nodes, &stream);
	for (runs = between(&stream, 1, test_short() ? 2 : 3); runs; runs--)
		one_run();
	_exit(0);
}

/* ---- Between lives ---- */

static int module_file(void)
{
	const char *build = getenv("ACP_BUILD");
	struct utsname u;
	char path[400];

	uname(&u);
	snprintf(path, sizeof(path), "%s/%s/acp.ko", build ? build : "build", u.release);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Nothing holds the module once the jobs have lingered: check that nothing of them is left. */
static void reload(void)
{
	struct patience p = patience_begin(PATIENCE_SOON);
	int fd = module_file();

	CHECK(fd >= 0);
	while (syscall(SYS_delete_module, "acp", O_NONBLOCK)) {
		if (patience_over(&p))
			FAIL("the module cannot be unloaded: %s", strerror(errno));
		sleep_ms(10);
	}
	CHECK_EQ(syscall(SYS_finit_module, fd, "", 0), 0);
	close(fd);
}

static void print_totals(double seconds)
{
	int s;

	printf("# %.0f s: %llu lives, %llu runs, %llu deaths, %llu barriers, %llu resets, %llu registrations\n",
	       seconds, (unsigned long long)totals->lives, (unsigned long long)totals->runs,
	       (unsigned long long)totals->deaths, (unsigned long long)totals->barriers,
	       (unsigned long long)totals->resets, (unsigned long long)totals->churned);
	printf("# accesses: %llu succeeded", (unsigned long long)totals->ended[0]);
	for (s = 1; s < ACP_ST_END; s++)
		if (totals->ended[s])
			printf(", %llu: %s", (unsigned long long)totals->ended[s],
			       acpx_strerror(s));
	printf("\n");
	faults_print();
	fflush(stdout);
}

static void one_life(uint64_t seed, unsigned int number)
{
	int status = 0;
	pid_t child;

	printf("# seed %llu life %u\n", (unsigned long long)seed, number);
	fflush(stdout);
	child = fork();
	CHECK(child >= 0);
	if (!child)
		live(seed * 1000003 + number);
	CHECK_EQ(waitpid(child, &status, 0), child);
	faults_undo();
	totals->lives++;
	if (!status)
		return;
	printf("# the same decisions: make soak SEED=%llu LIFE=%u\n", (unsigned long long)seed,
	       number);
	FAIL("life %u of seed %llu: status 0x%x", number, (unsigned long long)seed, status);
}

static void soak(void)
{
	uint64_t seed = setting("SOAK_SEED", 1), begun = now_ns();
	uint64_t end = begun + setting("SOAK_SECONDS", 30) * 1000 * MS;
	unsigned int number;

	totals = shared(sizeof(*totals));
	faults_begin(shared(FAULTS_COUNTED * sizeof(unsigned int)));
	for (number = 0; now_ns() < end; number++) {
		one_life(seed, setting("SOAK_LIFE", number));
		if (number % 2)
			reload();
		print_totals((double)(now_ns() - begun) / 1e9);
	}
}

/* A life takes a minute; several on a slow machine. */
__attribute__((constructor)) static void add_soak(void)
{
	static struct test self = { "soak", soak, 0, NULL };

	self.limit = setting("SOAK_SECONDS", 30) * PATIENCE_S + PATIENCE_LONG_TEST;
	test_add(&self);
}
