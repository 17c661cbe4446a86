// SPDX-License-Identifier: MIT
/*
 * A curve consists of the results of one mode, operation and window: a block in the data file, and
 * a line in the panel of latencies (together with the UDP ping-pong) or of bandwidths.
 */
#include "plot.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINE	240	/* of the caption */

/* Both lines of the caption: what was measured, and where. Without quotes and line ends. */
struct caption {
	char what[LINE], where[LINE];
};

/* A curve is represented by its first result. */
static bool same_curve(const struct perf_row *a, const struct perf_row *b)
{
	return strcmp(a->mode, b->mode) == 0 && strcmp(a->op, b->op) == 0 &&
	       a->window == b->window;
}

static bool is_first(const struct perf_report *r, size_t index)
{
	size_t i;

	for (i = 0; i < index; i++) {
		if (same_curve(&r->kept[i], &r->kept[index]))
			return false;
	}
	return true;
}

static bool is_bandwidth(const struct perf_row *row)
{
	return strcmp(row->mode, "bandwidth") == 0;
}

/* Replace quotes and control characters, which would end a string or line of gnuplot. */
static void tame(char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'' || (unsigned char)*text < ' ')
			*text = ' ';
	}
}

static void add_words(char line[LINE], const char *words)
{
	size_t used = strlen(line);

	snprintf(line + used, LINE - used, "%s", words);
}

/* "put, get" */
static void add_operations(char line[LINE], const struct perf_report *r)
{
	size_t i, j;

	for (i = 0; i < r->n; i++) {
		const struct perf_row *row = &r->kept[i];

		for (j = 0; j < i && strcmp(r->kept[j].op, row->op) != 0; j++)
			continue;
		if (j < i)
			continue;
		add_words(line, i > 0 ? ", " : "");
		add_words(line, strcmp(row->mode, "udp") == 0 ? "UDP ping-pong" : row->op);
	}
}

static void add_samples(char line[LINE], const struct perf_report *r)
{
	size_t i, least = SIZE_MAX, most = 0;
	char words[80];

	for (i = 0; i < r->n; i++) {
		least = r->kept[i].time.n < least ? r->kept[i].time.n : least;
		most = r->kept[i].time.n > most ? r->kept[i].time.n : most;
	}
	if (least == most)
		snprintf(words, sizeof(words), "; medians of %zu iterations", most);
	else if (most != 0)
		snprintf(words, sizeof(words), "; medians of %zu to %zu iterations", least, most);
	else
		snprintf(words, sizeof(words), "; nothing could be measured");
	add_words(line, words);
}

static void say_what(const struct perf_plot *plot, char line[LINE])
{
	const struct perf_area *target = &plot->job->area[PERF_TARGET];
	char words[100];

	add_words(line, "acp_perf sweep: ");
	add_operations(line, plot->report);
	snprintf(words, sizeof(words), "; %d rank%s, target is rank %d on %s", plot->job->procs,
		 plot->job->procs == 1 ? "" : "s", target->rank,
		 target->away ? "another node" : "the same node");
	add_words(line, words);
	if (acp_colors() > 1) {
		snprintf(words, sizeof(words), ", %d colors", acp_colors());
		add_words(line, words);
	}
	add_samples(line, plot->report);
}

/* Get the name of the CPU, if the kernel provides it. */
static void read_processor(char name[80])
{
	char line[LINE];
	FILE *file = fopen("/proc/cpuinfo", "re");

	snprintf(name, 80, "unknown processor");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "model name : %79[^\n]", name) == 1)
			break;
	}
	if (file != NULL)
		fclose(file);
}

static void add_variable(char line[LINE], const char *name)
{
	const char *value = getenv(name);

	if (value == NULL || *value == '\0')
		return;
	add_words(line, ", ");
	add_words(line, name);
	add_words(line, "=");
	add_words(line, value);
}

static void say_where(const struct perf_plot *plot, char line[LINE])
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	char processor[80], day[20], words[200];
	time_t now = time(NULL);
	struct utsname name;
	struct tm tm;

	uname(&name);
	read_processor(processor);
	strftime(day, sizeof(day), "%Y-%m-%d", localtime_r(&now, &tm));
	snprintf(words, sizeof(words), "%s %s %s, ", name.sysname, name.release, name.machine);
	add_words(line, words);
	if (plot->options->machine == NULL)
		snprintf(words, sizeof(words), "%ld processor%s (%s)", processors,
			 processors == 1 ? "" : "s", processor);
	add_words(line, plot->options->machine != NULL ? plot->options->machine : words);
	add_variable(line, "ACP_INTEGRITY");
	add_variable(line, "ACP_PRIVACY");
	add_words(line, "; ");
	add_words(line, plot->options->date != NULL ? plot->options->date : day);
}

static struct caption make_caption(const struct perf_plot *plot)
{
	struct caption c = { "", "" };

	say_what(plot, c.what);
	say_where(plot, c.where);
	tame(c.what);
	tame(c.where);
	return c;
}

/* Write blocks in the format of gnuplot: a name before each block, two empty lines after it. */
static void write_data(const struct perf_report *r, const struct caption *c, FILE *out)
{
	size_t i, j;

	fprintf(out, "# %s\n# %s\n", c->what, c->where);
	fputs("# columns: size in bytes, samples, min, median, p99, max in microseconds, MB/s (10^6)\n",
	      out);
	for (i = 0; i < r->n; i++) {
		const struct perf_row *first = &r->kept[i];

		if (!is_first(r, i))
			continue;
		fprintf(out, "\n\n# %s %s, window %" PRIu64 "\n", first->mode, first->op,
			first->window ? first->window : 1);
		for (j = i; j < r->n; j++) {
			const struct perf_row *row = &r->kept[j];

			if (!same_curve(first, row))
				continue;
			fprintf(out, "%" PRIu64 " %zu %.4f %.4f %.4f %.4f %.3f\n", row->size,
				row->time.n, row->time.min / 1e3, row->time.median / 1e3,
				row->time.p99 / 1e3, row->time.max / 1e3, row->mb_per_s);
		}
	}
}

/*
 * The colour of a curve, the same in both panels: blue for accesses, lighter for those that read,
 * and brown for sockets, as in the charts of tools/bench. NULL: gnuplot chooses one.
 */
static const char *colour_of(const struct perf_row *row)
{
	static const struct {
		const char *op, *colour;
	} colours[] = {
		{ "ping-pong", "#9a6700" }, { "put", "#0969da" }, { "get", "#54aeff" },
		{ "copy3", "#0550ae" }, { "local", "#57606a" }, { "node", "#8b949e" },
	};
	size_t i;

	for (i = 0; i < sizeof(colours) / sizeof(colours[0]); i++) {
		if (strcmp(row->op, colours[i].op) == 0)
			return colours[i].colour;
	}
	return NULL;
}

static void write_curves(const struct perf_report *r, const char *name, bool bandwidth, FILE *out)
{
	const char *before = "plot ", *colour;
	size_t i, index = 0;

	for (i = 0; i < r->n; i++) {
		const struct perf_row *row = &r->kept[i];

		if (!is_first(r, i))
			continue;
		if (is_bandwidth(row) == bandwidth) {
			fprintf(out, "%s'%s.dat' index %zu using 1:%d with linespoints lw 2",
				before, name, index, bandwidth ? 7 : 4);
			colour = colour_of(row);
			if (colour != NULL)
				fprintf(out, " lc rgb '%s'", colour);
			fprintf(out, " title '%s%s", strcmp(row->mode, "udp") == 0 ? "UDP " : "",
				row->op);
			if (row->window != 0)
				fprintf(out, ", %" PRIu64 " at once", row->window);
			fputs("'", out);
			before = ", \\\n     ";
		}
		index++;
	}
	fputs("\n", out);
}

static bool has_panel(const struct perf_report *r, bool bandwidth)
{
	size_t i;

	for (i = 0; i < r->n; i++) {
		if (is_bandwidth(&r->kept[i]) == bandwidth)
			return true;
	}
	return false;
}

/* Write the commands for one picture in the format of a terminal. */
static void write_picture(const struct perf_report *r, const char *name, const struct caption *c,
			  const char *terminal, const char *ending, FILE *out)
{
	int panels = has_panel(r, false) + has_panel(r, true);

	fprintf(out, "\nset terminal %s size 900,%d noenhanced background rgb 'white'\n", terminal,
		60 + 420 * panels);
	fprintf(out, "set output '%s.%s'\n", name, ending);
	fprintf(out, "set label 1 '%s' at screen 0.5,%.4f center font ',9'\n", c->what,
		40.0 / (60 + 420 * panels));
	fprintf(out, "set label 2 '%s' at screen 0.5,%.4f center font ',9'\n", c->where,
		20.0 / (60 + 420 * panels));
	fprintf(out, "set multiplot layout %d,1 margins 0.1,0.97,%.4f,0.97 spacing 0.08\n", panels,
		110.0 / (60 + 420 * panels));
	if (has_panel(r, false)) {
		fputs("set ylabel 'latency, microseconds (lower is better)'\n"
		      "set key top left\n", out);
		write_curves(r, name, false, out);
	}
	fputs("unset label 1\nunset label 2\n", out);
	if (has_panel(r, true)) {
		fputs("set ylabel 'bandwidth, MB/s (10^6 bytes; higher is better)'\n"
		      "set key bottom right\n", out);
		write_curves(r, name, true, out);
	}
	fputs("unset multiplot\nunset output\n", out);
}

static void write_script(const struct perf_report *r, const char *name, const struct caption *c,
			 FILE *out)
{
	fprintf(out, "# %s\n# %s\n# To draw: gnuplot %s.gp\n", c->what, c->where, name);
	fputs("set logscale x 2\nset logscale y\nset format x '%.0b%B'\nset xlabel 'bytes'\n"
	      "set grid\n", out);
	write_picture(r, name, c, "svg", "svg", out);
	write_picture(r, name, c, "pngcairo", "png", out);
}

static int report_errno(const char *prefix, const char *ending)
{
	fprintf(stderr, "acp_perf: %s%s: %s\n", prefix, ending, strerror(errno));
	return -1;
}

static const char *base_name(const char *prefix)
{
	const char *slash = strrchr(prefix, '/');

	return slash != NULL ? slash + 1 : prefix;
}

static int write_file(const struct perf_plot *plot, const struct caption *c, const char *ending)
{
	const char *prefix = plot->options->output;
	char path[PATH_MAX];
	int bad;
	FILE *file;

	snprintf(path, sizeof(path), "%s%s", prefix, ending);
	file = fopen(path, "we");
	if (file == NULL)
		return report_errno(prefix, ending);
	if (strcmp(ending, ".dat") == 0)
		write_data(plot->report, c, file);
	else
		write_script(plot->report, base_name(prefix), c, file);
	bad = ferror(file);
	if (fclose(file) != 0 || bad)
		return report_errno(prefix, ending);
	return 0;
}

int perf_plot_write(const struct perf_plot *plot)
{
	struct caption c = make_caption(plot);

	if (plot->report->n == 0) {
		fprintf(stderr, "acp_perf: sweep: there is no result to write\n");
		return -1;
	}
	if (write_file(plot, &c, ".dat") != 0 || write_file(plot, &c, ".gp") != 0)
		return -1;
	return 0;
}

/* Executed in the child: run gnuplot in the directory of the files. Does not return. */
static void exec_gnuplot(const char *prefix)
{
	const char *name = base_name(prefix);
	char directory[PATH_MAX], script[NAME_MAX + 10];

	snprintf(directory, sizeof(directory), "%.*s.", (int)(name - prefix), prefix);
	snprintf(script, sizeof(script), "%s.gp", name);
	if (chdir(directory) == 0)
		execlp("gnuplot", "gnuplot", script, (char *)NULL);
	_exit(errno == ENOENT ? 127 : 126);
}

int perf_plot_draw(const struct perf_plot *plot)
{
	const char *prefix = plot->options->output;
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		exec_gnuplot(prefix);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return report_errno("gnuplot", "");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		fprintf(stderr, "acp_perf: no gnuplot here (Debian: gnuplot-nox); with it, `gnuplot "
			"%s.gp` in the directory of that file draws\n", base_name(prefix));
	else
		fprintf(stderr, "acp_perf: gnuplot %s.gp failed\n", prefix);
	return -1;
}
