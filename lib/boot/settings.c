// SPDX-License-Identifier: MIT
/*
 * Settings: each is an environment variable, or an option that overrides it. Numbers are checked
 * here, so that a mistake results in one message that names the variable.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acp_abi.h"
#include "acp_ga.h"
#include "boot/boot.h"
#include "core/internal.h"

/* max 0: not a number. suffix: K, M and G are allowed. */
static const struct setting {
	const char *name;
	uint64_t min, max, preset;
	bool suffix;
} settings[SETTINGS] = {
	[SET_RANK]		= { "ACP_RANK", 0, ACP_RANKS_MAX - 1, 0, false },
	[SET_NPROCS]		= { "ACP_NPROCS", 1, ACP_RANKS_MAX, 1, false },
	[SET_NODES]		= { .name = "ACP_NODES" },
	[SET_PLACEMENT]		= { .name = "ACP_PLACEMENT" },
	[SET_JOB]		= { "ACP_JOB", 1, UINT32_MAX, 1, false },
	[SET_KEYFILE]		= { .name = "ACP_KEYFILE" },
	[SET_INSECURE]		= { "ACP_INSECURE", 0, 1, 0, false },
	[SET_PORT]		= { "ACP_PORT", 1, 65535, ACP_PORT_DEFAULT, false },
	[SET_STARTER_SIZE]	= { "ACP_STARTER_SIZE", 0, 1ULL << 40, 10240, true },
	[SET_HEAP_SIZE]		= { "ACP_HEAP_SIZE", 0, 1ULL << 40, 1 << 20, true },
	[SET_QUEUE_DEPTH]	= { "ACP_QUEUE_DEPTH", ACP_DEPTH_MIN, ACP_DEPTH_MAX,
				    ACP_DEPTH_DEFAULT, false },
	[SET_TIMEOUT]		= { "ACP_TIMEOUT", 10, 3600000, 10000, false },
	[SET_INIT_TIMEOUT]	= { "ACP_INIT_TIMEOUT", 10, 3600000, 60000, false },
	[SET_INTEGRITY]		= { .name = "ACP_INTEGRITY" },
	[SET_PRIVACY]		= { .name = "ACP_PRIVACY" },
	[SET_MULTIRUN]		= { "ACP_MULTIRUN", 1, ACP_RANKS_MAX, 1, false },
	[SET_PORTFILE]		= { .name = "ACP_PORTFILE" },
	[SET_OFFSETRANK]	= { "ACP_OFFSETRANK", 0, ACP_RANKS_MAX - 1, 0, false },
	[SET_DEBUG]		= { "ACP_DEBUG", 0, 1, 0, false },
};

/* Variables of programs around the library: scripts of this project, and the compilers of acpcc. */
static const char *const foreign[] = {
	"ACP_BUILD", "ACP_CACHE", "ACP_CC", "ACP_CXX", "ACP_DEBUG_KERNEL", "ACP_DIR", "ACP_JOBS",
	"ACP_KERNEL", "ACP_MPICC", "ACP_MPICXX", "ACP_ROOT", "ACP_SEED", "ACP_UNSHARED",
};

#define FOREIGN_PREFIXES	{ "ACP_TEST_", "ACP_FUZZ_", "ACP_SOAK_" }
#define NAME_BYTES_MAX		48	/* length limit of names that are compared */
#define ALIKE			3	/* maximum edit distance of a suggested name */

/*
 * --acp-NAME stands for ACP_NAME. These are names that launchers of ACP 3.0.0 use. Those that only
 * its transport needed are accepted and ignored.
 */
static const struct {
	const char *name;
	int setting;
} former_options[] = {
	{ "myrank", SET_RANK },
	{ "taskid", SET_JOB },
	{ "size-smem", SET_STARTER_SIZE },
	{ "size-smem-dl", SET_HEAP_SIZE },
	{ "size-smem-cl", SET_IGNORED },
	{ "port-local", SET_IGNORED },
	{ "port-remote", SET_IGNORED },
	{ "host-remote", SET_IGNORED },
	{ "ethernet-speed", SET_IGNORED },
};

/* Compare an option such as "starter-size" with a variable such as ACP_STARTER_SIZE. */
static bool same_name(const char *option, size_t length, const char *variable)
{
	size_t i;

	variable += strlen("ACP_");
	if (strlen(variable) != length)
		return false;
	for (i = 0; i < length; i++) {
		char c = variable[i] == '_' ? '-' : (char)tolower((unsigned char)variable[i]);

		if (option[i] != c)
			return false;
	}
	return true;
}

static int find_option(const char *option, size_t length)
{
	size_t i;

	for (i = 0; i < SETTINGS; i++)
		if (same_name(option, length, settings[i].name))
			return (int)i;
	for (i = 0; i < sizeof(former_options) / sizeof(former_options[0]); i++)
		if (strlen(former_options[i].name) == length &&
		    memcmp(former_options[i].name, option, length) == 0)
			return former_options[i].setting;
	return -1;
}

/*
 * Parse the option at argv[i], i < argc. Returns the number of arguments used, negative on error.
 */
static int take_option(struct libacp_values *values, int argc, char **argv, int i)
{
	const char *name = argv[i] + strlen("--acp-");
	size_t length = strcspn(name, "=");
	int setting = find_option(name, length);
	const char *value;
	int taken = 1;

	if (name[length] == '=') {
		value = name + length + 1;
	} else if (i + 1 < argc && argv[i + 1][0] != '-') {
		value = argv[i + 1];
		taken = 2;
	} else {
		libacp_error("option %s needs a value", argv[i]);
		return -taken;
	}
	if (setting < 0) {
		libacp_error("unknown option %s", argv[i]);
		return -taken;
	}
	values->text[setting] = value;
	return taken;
}

/* Move options of the library from argv to values. All are removed, including invalid ones. */
static int take_options(struct libacp_values *values, int *argc, char **argv)
{
	int kept = 0, result = 0, i;

	for (i = 0; i < *argc;) {
		int taken;

		if (i == 0 || strncmp(argv[i], "--acp-", strlen("--acp-")) != 0) {
			argv[kept++] = argv[i++];
			continue;
		}
		taken = take_option(values, *argc, argv, i);
		if (taken < 0)
			result = -1;
		i += abs(taken);
	}
	*argc = kept;
	argv[kept] = NULL;
	return result;
}

bool libacp_read_number(const char **text, uint64_t max, uint64_t *number)
{
	const char *p = *text;

	if (!isdigit((unsigned char)*p))
		return false;
	for (*number = 0; isdigit((unsigned char)*p); p++) {
		unsigned int digit = (unsigned int)(*p - '0');

		if (*number > (max - digit) / 10 || digit > max)
			return false;
		*number = *number * 10 + digit;
	}
	*text = p;
	return true;
}

static bool read_suffix(const char **text, uint64_t *number)
{
	static const char suffixes[] = "KMG";
	const char *found = **text ? strchr(suffixes, toupper((unsigned char)**text)) : NULL;
	int shift;

	if (!found)
		return true;
	shift = 10 * (int)(found - suffixes + 1);
	if (*number > UINT64_MAX >> shift)
		return false;
	*number <<= shift;
	++*text;
	return true;
}

static const char *unit_of(const struct setting *s)
{
	if (s == &settings[SET_TIMEOUT] || s == &settings[SET_INIT_TIMEOUT])
		return " milliseconds";
	return "";
}

static int parse_numbers(struct libacp_values *values)
{
	const struct setting *s;

	for (s = settings; s < settings + SETTINGS; s++) {
		const char *text = values->text[s - settings];
		uint64_t *number = &values->number[s - settings];

		*number = s->preset;
		if (!s->max || !text)
			continue;
		if (libacp_read_number(&text, UINT64_MAX, number) &&
		    (!s->suffix || read_suffix(&text, number)) &&
		    *text == '\0' && *number >= s->min && *number <= s->max)
			continue;
		libacp_error("%s=%s: want a %s from %llu to %llu%s", s->name,
			     values->text[s - settings],
			     s == &settings[SET_PORT] ? "port number" : "number",
			     (unsigned long long)s->min, (unsigned long long)s->max,
			     s->suffix ? " bytes (K, M, G allowed)" : unit_of(s));
		return -1;
	}
	return 0;
}

/* ---- Unknown names ---- */

static bool is_known(const char *name)
{
	static const char *const prefixes[] = FOREIGN_PREFIXES;
	size_t i;

	for (i = 0; i < SETTINGS; i++)
		if (strcmp(settings[i].name, name) == 0)
			return true;
	for (i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		if (strcmp(foreign[i], name) == 0)
			return true;
	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(prefixes[i], name, strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Return the edit distance of two names. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[NAME_BYTES_MAX + 1], diagonal, above, j;
	const unsigned int columns = (unsigned int)strlen(b);

	if (strlen(a) > NAME_BYTES_MAX || columns > NAME_BYTES_MAX)
		return NAME_BYTES_MAX;
	for (j = 0; j <= columns; j++)
		row[j] = j;
	for (; *a; a++) {
		diagonal = row[0]++;
		for (j = 1; j <= columns; j++) {
			above = row[j];
			row[j] = least(diagonal + (toupper((unsigned char)*a) != b[j - 1]),
				       least(above, row[j - 1]) + 1);
			diagonal = above;
		}
	}
	return row[columns];
}

/* Return the setting with the most similar name, or NULL. */
static const char *nearest(const char *name)
{
	unsigned int best = ALIKE + 1, found;
	const char *setting = NULL;
	size_t i;

	for (i = 0; i < SETTINGS; i++) {
		found = distance(name, settings[i].name);
		if (found >= best)
			continue;
		best = found;
		setting = settings[i].name;
	}
	return setting;
}

static void warn_of(const char *name)
{
	const char *meant = nearest(name);

	if (meant)
		libacp_error("warning: unknown variable %s: %s was probably meant", name, meant);
	else
		libacp_error("warning: unknown variable %s: acp(7) has the list of those that are known",
			     name);
}

void libacp_settings_unknown(void)
{
	char **entry, name[2 * NAME_BYTES_MAX];
	size_t length;

	for (entry = environ; entry && *entry; entry++) {
		length = strcspn(*entry, "=");
		if (strncmp(*entry, "ACP_", strlen("ACP_")) != 0 || length >= sizeof(name))
			continue;
		memcpy(name, *entry, length);
		name[length] = '\0';
		if (!is_known(name))
			warn_of(name);
	}
}

/* ---- Loading ---- */

int libacp_settings_load(struct libacp_values *values, int *argc, char ***argv)
{
	int result = 0, i;

	memset(values, 0, sizeof(*values));
	for (i = 0; i < SETTINGS; i++)
		values->text[i] = getenv(settings[i].name);
	if (argc && argv && *argv)
		result = take_options(values, argc, *argv);
	return result < 0 ? result : parse_numbers(values);
}
