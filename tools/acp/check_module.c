// SPDX-License-Identifier: MIT
/* acp check: kernel, module, signature and clock. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "check.h"

#define PATH_BYTES_MAX	300

/* ---- Kernel and its configuration ---- */

static const struct {
	const char *option;
	enum ctl_verdict without;
	const char *what;
} options[] = {
	{ "CONFIG_64BIT", CTL_BAD, "the module is for 64-bit kernels" },
	{ "CONFIG_MODULES", CTL_BAD, "no modules can be loaded" },
	{ "CONFIG_INET", CTL_BAD, "there is no UDP" },
	{ "CONFIG_MMU_NOTIFIER", CTL_WARN,
	  "the module is not told when registered memory is unmapped" },
	{ "CONFIG_IPV6", CTL_WARN, "jobs cannot use IPv6" },
	{ "CONFIG_SYSCTL", CTL_WARN, "there are no sysctls net.acp" },
	{ "CONFIG_CRYPTO_CHACHA20POLY1305", CTL_WARN, "ACP_PRIVACY=aead cannot be used" },
};

#define OPTIONS	(sizeof(options) / sizeof(options[0]))

/* Search lines "CONFIG_X=y" or "=m". */
static bool scan_config(FILE *f, bool there[OPTIONS])
{
	char line[400];
	size_t i;
	bool any = false;

	while (fgets(line, sizeof(line), f) != NULL) {
		for (i = 0; i < OPTIONS; i++) {
			size_t length = strlen(options[i].option);

			if (strncmp(line, options[i].option, length) == 0 && line[length] == '=' &&
			    (line[length + 1] == 'y' || line[length + 1] == 'm'))
				there[i] = true;
		}
		any |= strncmp(line, "CONFIG_", strlen("CONFIG_")) == 0;
	}
	return any;
}

static bool read_config(const char *release, bool there[OPTIONS])
{
	static const struct {
		const char *before, *behind;
	} places[] = {
		{ "/boot/config-", "" },
		{ "/lib/modules/", "/config" },
		{ "/lib/modules/", "/build/.config" },
	};
	const char *const zcat[] = { "zcat", "/proc/config.gz", NULL };
	char path[PATH_BYTES_MAX], *text;
	bool any = false;
	size_t i;
	FILE *f;
	int status;

	for (i = 0; i < sizeof(places) / sizeof(places[0]) && !any; i++) {
		snprintf(path, sizeof(path), "%s%s%s", places[i].before, release, places[i].behind);
		f = fopen(path, "re");
		if (f == NULL)
			continue;
		any = scan_config(f, there);
		fclose(f);
	}
	if (any || access("/proc/config.gz", R_OK) != 0)
		return any;
	text = ctl_output_of(zcat, &status);
	f = text != NULL ? fmemopen(text, strlen(text), "r") : NULL;
	if (f != NULL) {
		any = scan_config(f, there);
		fclose(f);
	}
	free(text);
	return any;
}

static void check_config(struct ctl_findings *f, const char *release)
{
	bool there[OPTIONS] = { false }, good = true;
	size_t i;

	if (!read_config(release, there)) {
		ctl_found(f, CTL_SKIPPED, "config", NULL,
			  "the configuration of kernel %s is not in /boot, /lib/modules or /proc",
			  release);
		return;
	}
	for (i = 0; i < OPTIONS; i++) {
		if (there[i])
			continue;
		good = false;
		ctl_found(f, options[i].without, "config",
			  "Boot a kernel that has this option, as those of Debian have.",
			  "the kernel is built without %s: %s", options[i].option, options[i].what);
	}
	if (good)
		ctl_found(f, CTL_GOOD, "config", NULL, "the kernel has all options that are wanted");
}

void ctl_check_kernel(struct ctl_findings *f)
{
	unsigned int major = 0, minor = 0;
	struct utsname u;

	if (uname(&u) != 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2) {
		ctl_found(f, CTL_SKIPPED, "kernel", NULL, "its release cannot be read");
		return;
	}
	if (major < 6 || (major == 6 && minor < 1))
		ctl_found(f, CTL_BAD, "kernel", "Boot Linux 6.1 or later.",
			  "%s is older than what the module is written for, 6.1", u.release);
	else
		ctl_found(f, CTL_GOOD, "kernel", NULL, "%s on %s", u.release, u.machine);
	check_config(f, u.release);
}

/* ---- The module ---- */

/*
 * Return the output of modinfo about the module that modprobe would load, or NULL; the caller frees
 * it.
 */
static char *modinfo(const char *field)
{
	const char *const argv[] = { "modinfo", "-F", field, "acp", NULL };
	int status;
	char *text = ctl_output_of(argv, &status);

	if (text != NULL)
		text[strcspn(text, "\n")] = '\0';
	return text;
}

static void check_unloaded(struct ctl_findings *f)
{
	char *file = modinfo("filename");
	struct utsname u;

	if (file != NULL && file[0] != '\0')
		ctl_found(f, CTL_BAD, "module",
			  "As root: modprobe acp. At each boot: echo acp "
			  ">/etc/modules-load.d/acp.conf. If modprobe refuses it, dmesg says why.",
			  "it is not loaded; %s is there", file);
	else if (uname(&u) == 0)
		ctl_found(f, CTL_BAD, "module",
			  "Build and install it for this kernel: the package acp-dkms does that, "
			  "or make modules_install in the sources, with the headers of this "
			  "kernel.",
			  "it is not loaded, and none is installed for kernel %s", u.release);
	free(file);
}

void ctl_check_module(struct ctl_findings *f)
{
	char version[100] = "", loaded[100] = "";
	char *installed;

	f->loaded = access("/sys/module/acp", F_OK) == 0;
	if (!f->loaded) {
		check_unloaded(f);
		return;
	}
	if (!ctl_read_line("/sys/module/acp/version", version, sizeof(version)))
		strcpy(version, "unknown");
	installed = modinfo("srcversion");
	if (ctl_read_line("/sys/module/acp/srcversion", loaded, sizeof(loaded)) &&
	    installed != NULL && installed[0] != '\0' && strcmp(installed, loaded) != 0)
		ctl_found(f, CTL_WARN, "module",
			  "When no job runs, as root: modprobe -r acp && modprobe acp.",
			  "version %s is loaded, but another one is installed", version);
	else
		ctl_found(f, CTL_GOOD, "module", NULL, "loaded, version %s", version);
	free(installed);
}

/* ---- Signatures ---- */

enum signing { SIGN_FREE, SIGN_MUST, SIGN_UNKNOWN };

/* Does the kernel refuse modules without a trusted signature? Why, or what cannot be read. */
static enum signing signatures_enforced(const char **by)
{
	char text[200];

	*by = "module.sig_enforce";
	if (ctl_read_line("/sys/module/module/parameters/sig_enforce", text, sizeof(text)) &&
	    text[0] == 'Y')
		return SIGN_MUST;
	*by = "lockdown, as with secure boot";
	if (ctl_read_line("/sys/kernel/security/lockdown", text, sizeof(text)))
		return strstr(text, "[none]") == NULL && strchr(text, '[') != NULL ? SIGN_MUST :
										     SIGN_FREE;
	*by = "/sys/kernel/security/lockdown";
	/* Without lockdown in the kernel, this file of securityfs is there nevertheless. */
	return access("/sys/kernel/security/lsm", R_OK) == 0 ? SIGN_FREE : SIGN_UNKNOWN;
}

void ctl_check_signature(struct ctl_findings *f)
{
	const char *by, *remedy =
		"Sign it with a key that the firmware knows (mokutil --import, then sign-file or "
		"the signing of DKMS), or switch secure boot off.";
	enum signing enforced = signatures_enforced(&by);
	char taint[100] = "";
	char *signer;

	if (f->loaded) {
		ctl_read_line("/sys/module/acp/taint", taint, sizeof(taint));
		ctl_found(f, CTL_GOOD, "signature", NULL, "%s",
			  strchr(taint, 'E') ? "the module is not signed, and need not be" :
			  "the kernel does not object to the module's");
		return;
	}
	signer = modinfo("signer");
	if (enforced == SIGN_FREE)
		ctl_found(f, CTL_GOOD, "signature", NULL, "modules need not be signed");
	else if (enforced == SIGN_UNKNOWN)
		ctl_found(f, CTL_SKIPPED, "signature",
			  "As root: mount -t securityfs none /sys/kernel/security.",
			  "not looked at, since %s cannot be read", by);
	else if (signer == NULL)
		ctl_found(f, CTL_WARN, "signature", remedy,
			  "modules must be signed (%s); there is none to look at", by);
	else if (signer[0] == '\0')
		ctl_found(f, CTL_BAD, "signature", remedy,
			  "modules must be signed (%s), and this one is not", by);
	else
		ctl_found(f, CTL_GOOD, "signature", NULL,
			  "modules must be signed (%s); this one is, by %s", by, signer);
	free(signer);
}

/* ---- Clock for timeouts and round-trip times ---- */

void ctl_check_clock(struct ctl_findings *f)
{
	static const char *const slow[] = {
		"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit",
	};
	char name[100];
	size_t i;

	if (!ctl_read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", name,
			   sizeof(name))) {
		ctl_found(f, CTL_SKIPPED, "clock", NULL, "the clock source cannot be read in /sys");
		return;
	}
	for (i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
		if (strcmp(name, slow[i]) != 0)
			continue;
		ctl_found(f, CTL_WARN, "clock",
			  "See dmesg for why the faster one (tsc) was given up; on a virtual "
			  "machine choose its host's clock (kvm-clock, hyperv).",
			  "clock source %s: reading it takes microseconds, for each frame", name);
		return;
	}
	ctl_found(f, CTL_GOOD, "clock", NULL, "clock source %s", name);
}
