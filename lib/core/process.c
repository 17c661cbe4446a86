// SPDX-License-Identifier: MIT
/*
 * State of the process: whether it is a rank and which one, messages, and the end of the process.
 * All other files of the library may use this one; it uses none of them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/internal.h"
#include "core/process.h"

struct libacp libacp = { .fd = -1 };

/* ---- Messages and the end of the process ---- */

static void say(const char *format, va_list args)
{
	char line[1200];
	int length;

	if (libacp.boot.nprocs > 1)
		length = snprintf(line, sizeof(line), "acp: rank %u: ", libacp.boot.rank);
	else
		length = snprintf(line, sizeof(line), "acp: ");
	vsnprintf(line + length, sizeof(line) - (size_t)length, format, args);
	fprintf(stderr, "%s\n", line);
}

void libacp_error(const char *format, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	errno = saved;
}

/* Exit handlers are not run: other threads may be in any state, and handlers may communicate. */
static void __attribute__((noreturn)) end_process(void)
{
	fflush(stdout);
	_exit(255);
}

void libacp_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	if (libacp_in()) {
		ioctl(libacp.fd, ACP_IOC_ABORT);
		if (libacp.abort_engine)
			libacp.abort_engine("acp: the job was aborted");
	}
	end_process();
}

void libacp_job_aborted(void)
{
	if (__atomic_load_n(&libacp.error_mode, __ATOMIC_RELAXED) == ACPX_ERRORS_RETURN)
		return;
	libacp_error("the job was aborted");
	end_process();
}

void acp_abort(const char *str)
{
	const char *text = str ? str : "";

	if (libacp_in()) {
		fprintf(stderr, "acp_abort: rank %u: %s\n", libacp.rank, text);
		ioctl(libacp.fd, ACP_IOC_ABORT);
		if (libacp.abort_engine)
			libacp.abort_engine(text);
	} else {
		fprintf(stderr, "acp_abort: %s\n", text);
	}
	end_process();
}

int acpx_set_error_mode(int mode)
{
	if (mode != ACPX_ERRORS_ABORT && mode != ACPX_ERRORS_RETURN)
		return -1;
	return __atomic_exchange_n(&libacp.error_mode, mode, __ATOMIC_RELAXED);
}

/* ---- System calls that do not reach the module ---- */

bool libacp_is_answered(void)
{
	/* An ioctl number that the module does not know. */
	return ioctl(libacp.fd, _IO(ACP_IOC_MAGIC, 255)) < 0 && errno == ENOTTY;
}

int libacp_no_answer(void)
{
	static int told;

	if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		libacp_error("system calls of " ACP_DEVICE " do not reach the module: a seccomp filter or the like answers in its place");
	return -EIO;
}

/* ---- Time ---- */

uint64_t libacp_timeout_ms(void)
{
	return libacp.boot.timeout_ms;
}

uint64_t libacp_now(void)
{
	struct timespec t = { 0 };	/* for a filter that refuses the call: no time passes */

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void libacp_sleep(uint64_t ns)
{
	struct timespec left = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	/* Not until a point in time: without clock_gettime(), it may never come. */
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

/* ---- The rank ---- */

int acp_rank(void)
{
	return libacp_in() ? (int)libacp.rank : -1;
}

int acp_procs(void)
{
	return libacp_in() ? (int)libacp.nprocs : -1;
}

int acp_colors(void)
{
	return libacp_in() ? (int)libacp.colors : -1;
}
