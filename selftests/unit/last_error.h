/* SPDX-License-Identifier: MIT */
/* libacp_error() for tests that do not link process.c: keeps the last line and counts. */
#ifndef LAST_ERROR_H
#define LAST_ERROR_H

#include <stdarg.h>
#include <stdio.h>

static char last_error[700];
static unsigned int errors;

void libacp_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last_error, sizeof(last_error), format, args);
	va_end(args);
	errors++;
}

#endif /* LAST_ERROR_H */
