// SPDX-License-Identifier: MIT
/* acp check: diagnosis of a node. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acp_abi.h"
#include "command.h"

#define TEXT_MAX	600
#define OUTPUT_MAX	(64u << 20)	/* limit of the output of a program, bytes */
#define WIDTH		100		/* of lines, columns */

/* Print text wrapped to several lines, indented by @indent blanks. */
static void put_wrapped(const char *text, int indent)
{
	int at = indent;

	while (*text != '\0') {
		int length = (int)strcspn(text, " ");

		if (at > indent && at + 1 + length > WIDTH) {
			printf("\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			putchar(' ');
			at++;
		}
		printf("%.*s", length, text);
		at += length;
		text += length;
		text += strspn(text, " ");
	}
	putchar('\n');
}

void ctl_found(struct ctl_findings *f, enum ctl_verdict verdict, const char *check,
	       const char *remedy, const char *format, ...)
{
	static const char *const words[] = { "ok", "skip", "warn", "fail" };
	static const char *const loud[] = { "ok", "skip", "warn", "FAIL" };
	char text[TEXT_MAX];
	va_list args;
	size_t i;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (i = 0; text[i] != '\0'; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	f->count[verdict]++;
	if (f->out.form != CTL_TEXT) {
		ctl_out_record(&f->out);
		ctl_out_text(&f->out, "check", check);
		ctl_out_text(&f->out, "verdict", words[verdict]);
		ctl_out_text(&f->out, "finding", text);
		if (remedy != NULL)
			ctl_out_text(&f->out, "remedy", remedy);
		return;
	}
	printf("%-4s  %-10s ", loud[verdict], check);
	put_wrapped(text, 17);
	if (remedy != NULL) {
		printf("%17s-> ", "");
		put_wrapped(remedy, 20);
	}
}

/* ---- Functions for all checks ---- */

bool ctl_read_line(const char *path, char *text, size_t room)
{
	FILE *f = fopen(path, "re");
	bool read = f != NULL && fgets(text, (int)room, f) != NULL;

	if (f != NULL)
		fclose(f);
	if (read)
		text[strcspn(text, "\n")] = '\0';
	return read;
}

static char *read_all(int fd)
{
	size_t room = 4096, used = 0;
	char *text = malloc(room);

	while (text != NULL) {
		ssize_t n = read(fd, text + used, room - used - 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			text[used] = '\0';
			return text;
		}
		used += (size_t)n;
		if (used + 1 == room) {
			char *more = room < OUTPUT_MAX ? realloc(text, 2 * room) : NULL;

			if (more == NULL)
				break;
			text = more;
			room *= 2;
		}
	}
	free(text);
	return NULL;
}

/* Executed in the child: never returns. Exit status 127: the program was not found. */
static void run_program(const char *const argv[], int out)
{
	static const char *const more[] = { "/usr/sbin", "/sbin", "/usr/bin", "/bin" };
	int nowhere = open("/dev/null", O_RDWR);
	char path[200];
	size_t i;

	if (nowhere < 0 || dup2(nowhere, 0) < 0 || dup2(out, 1) < 0 || dup2(nowhere, 2) < 0)
		_exit(126);
	setenv("LC_ALL", "C", 1);
	execvp(argv[0], (char *const *)argv);
	for (i = 0; errno == ENOENT && i < sizeof(more) / sizeof(more[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", more[i], argv[0]);
		execv(path, (char *const *)argv);
	}
	_exit(127);
}

char *ctl_output_of(const char *const argv[], int *status)
{
	char *text = NULL;
	int pipes[2], how = 0;
	pid_t child;

	*status = -1;
	if (pipe2(pipes, O_CLOEXEC))
		return NULL;
	fflush(stdout);
	child = fork();
	if (child == 0)
		run_program(argv, pipes[1]);
	close(pipes[1]);
	if (child > 0)
		text = read_all(pipes[0]);
	close(pipes[0]);
	if (child < 0)
		return NULL;
	while (waitpid(child, &how, 0) < 0 && errno == EINTR)
		;
	*status = !WIFEXITED(how) ? 126 : WEXITSTATUS(how) == 127 ? -1 : WEXITSTATUS(how);
	if (*status == 0)
		return text;
	free(text);
	return NULL;
}

/* ---- The command ---- */

static void check_all(struct ctl_findings *f)
{
	ctl_check_kernel(f);
	ctl_check_module(f);
	ctl_check_signature(f);
	ctl_check_netlink(f);
	ctl_check_device(f);
	ctl_check_enable(f);
	ctl_check_bypass(f);
	ctl_check_limits(f);
	ctl_check_neighbours(f);
	ctl_check_memlock(f);
	ctl_check_userns(f);
	ctl_check_addresses(f);
	ctl_check_nodes(f);
	ctl_check_colors(f);
	ctl_check_mtu(f);
	ctl_check_firewall(f);
	ctl_check_clock(f);
	ctl_check_counters(f);
}

int ctl_check(struct ctl *c)
{
	struct ctl_argument list[] = {
		{ .name = "port", .kind = CTL_ARG_PORT, .least = 1, .most = 65535,
		  .number = ACP_PORT_DEFAULT },
		{ .name = NULL }
	};
	struct ctl_findings f = { .loaded = false };
	struct ctl_nl nl;
	int status;

	if (ctl_arguments(&c->words, list))
		return CTL_USAGE;
	f.port = (unsigned int)list[0].number;
	f.nl = ctl_nl_open(&nl) == 0 ? &nl : NULL;
	ctl_out_open(&f.out, c->form, false);
	check_all(&f);
	status = ctl_out_close(&f.out);
	if (c->form == CTL_TEXT)
		printf("%u ok, %u warnings, %u failures, %u not looked at\n", f.count[CTL_GOOD],
		       f.count[CTL_WARN], f.count[CTL_BAD], f.count[CTL_SKIPPED]);
	if (fflush(stdout))
		status = CTL_FAILED;
	if (f.nl != NULL)
		ctl_nl_close(&nl);
	return f.count[CTL_BAD] > 0 ? CTL_FAILED : status;
}
