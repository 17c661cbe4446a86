// SPDX-License-Identifier: MIT
/* Texts and errno values of statuses. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>

#include "acp.h"
#include "acp_abi.h"
#include "core/errors.h"

_Static_assert((int)ACPX_EOP == ACP_ST_OP && (int)ACPX_ECHAIN == ACP_ST_CHAIN,
	       "the statuses of the library are those of the device");

static const int errors[ACP_ST_END] = {
	[ACPX_EOP] = EINVAL, [ACPX_EGA] = EFAULT, [ACPX_ESTAG] = EFAULT, [ACPX_ERANGE] = EFAULT,
	[ACPX_EACCESS] = EACCES, [ACPX_EALIGN] = EINVAL, [ACPX_ERANK] = EHOSTDOWN,
	[ACPX_ENOMEM] = ENOMEM, [ACPX_ETIMEOUT] = ETIMEDOUT, [ACPX_EPEER] = ECONNRESET,
	[ACPX_EROUTE] = EHOSTUNREACH, [ACPX_EORDER] = EIO, [ACPX_EABORT] = ECANCELED,
	[ACPX_EAGAIN] = EAGAIN, [ACPX_ECHAIN] = EINVAL,
};

int libacp_errno(int status)
{
	return status < ACP_ST_END ? errors[status] : EIO;
}

const char *acpx_strerror(int status)
{
	static const char *const texts[] = {
		[ACP_ST_OK] = "success",
		[ACPX_EOP] = "impossible argument",
		[ACPX_EGA] = "not a global address of any rank",
		[ACPX_ESTAG] = "no such memory: never registered, or no longer",
		[ACPX_ERANGE] = "reaches beyond the registered memory",
		[ACPX_EACCESS] = "the memory was not registered for this kind of access",
		[ACPX_EALIGN] = "address of an atomic not aligned to its size",
		[ACPX_ERANK] = "that rank is not there (any more)",
		[ACPX_ENOMEM] = "out of memory",
		[ACPX_ETIMEOUT] = "the other node has been silent too long",
		[ACPX_EPEER] = "the other node was restarted, or has another set-up of the job",
		[ACPX_EROUTE] = "no route to the other node",
		[ACPX_EORDER] = "an access that this one waited for failed",
		[ACPX_EABORT] = "the job was ended",
		[ACPX_EAGAIN] = "the buffer is full",
		[ACPX_ECHAIN] = "the chain is a loop, too short or too long, or not well formed",
	};

	if (status == ACPX_EUNKNOWN)
		return "status no longer kept";
	if (status == ACPX_EPENDING)
		return "not complete yet";
	if (status == ACPX_ECORRUPT)
		return "somebody has written where only the library does";
	if (status < 0 || (size_t)status >= sizeof(texts) / sizeof(texts[0]))
		return "unknown status";
	return texts[status];
}
