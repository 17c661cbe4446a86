// SPDX-License-Identifier: MIT
/* The calls of the papers about persistent collectives, which report errors in errno. */
#include <errno.h>
#include <stdint.h>

#include "acp.h"
#include "coll/coll.h"

static acp_coll_t made(int error, acp_coll_t coll)
{
	if (!error)
		return coll;
	errno = -error;
	return NULL;
}

static int told(int error)
{
	if (error >= 0)
		return error;
	errno = -error;
	return -1;
}

/* ---- Creation ---- */

acp_coll_t acp_create_bcast_direct(int np_group, const int *group, void *array, size_t arraysize)
{
	acpx_coll_t coll = NULL;
	acpx_group_t members;
	int error = acpx_group_list(group, np_group, &members);

	if (!error) {
		error = acpx_coll_bcast_direct_create(members, array, arraysize, 0, &coll);
		acpx_group_free(members);
	}
	return made(error, coll);
}

acp_coll_t acp_create_bcast_buffered(int np_group, const int *group, size_t buffersize)
{
	acpx_coll_t coll = NULL;
	acpx_group_t members;
	int error = acpx_group_list(group, np_group, &members);

	if (!error) {
		error = acpx_coll_bcast_buffered_create(members, buffersize, &coll);
		acpx_group_free(members);
	}
	return made(error, coll);
}

acp_coll_t acp_create_allgather_direct(int np_group, const int *group, void *array,
				       size_t arraysize)
{
	acpx_coll_t coll = NULL;
	acpx_group_t members;
	int error = acpx_group_list(group, np_group, &members);

	if (!error) {
		error = acpx_coll_allgather_direct_create(members, array, arraysize, 0, &coll);
		acpx_group_free(members);
	}
	return made(error, coll);
}

acp_coll_t acp_create_allgather_buffered(int np_group, const int *group, size_t buffersize)
{
	acpx_coll_t coll = NULL;
	acpx_group_t members;
	int error = acpx_group_list(group, np_group, &members);

	if (!error) {
		error = acpx_coll_allgather_buffered_create(members, buffersize, &coll);
		acpx_group_free(members);
	}
	return made(error, coll);
}

/* ---- Sending ---- */

int acp_send_bcast_direct(acp_coll_t handle, size_t offset, size_t size)
{
	return told(libacp_transfer_send(handle, LIBACP_BCAST_DIRECT, offset, size));
}

int acp_send_bcast_buffered(acp_coll_t handle, void *array, size_t size)
{
	return told(libacp_transfer_send_array(handle, LIBACP_BCAST_BUFFERED, array, size));
}

int acp_send_allgather_direct(acp_coll_t handle, size_t offset, size_t size)
{
	return told(libacp_transfer_send(handle, LIBACP_ALLGATHER_DIRECT, offset, size));
}

int acp_send_allgather_buffered(acp_coll_t handle, void *array, size_t size)
{
	return told(libacp_transfer_send_array(handle, LIBACP_ALLGATHER_BUFFERED, array, size));
}

/* ---- The end of a send ---- */

int64_t acpx_coll_receive(acpx_coll_t coll, uint64_t timeout_ns)
{
	const int error = coll && libacp_is_transfer(&coll->transfer) ?
			  acpx_coll_wait(coll, timeout_ns) : -EINVAL;

	return error ? error : (int64_t)coll->transfer.size;
}

size_t acp_wait_coll(acp_coll_t handle)
{
	const int64_t size = acpx_coll_receive(handle, ACPX_FOREVER);

	if (size >= 0)
		return (size_t)size;
	errno = (int)-size;
	return (size_t)-1;
}

int acp_inquire_coll(acp_coll_t handle)
{
	const int result = told(handle && libacp_is_transfer(&handle->transfer) ?
				acpx_coll_test(handle) : -EINVAL);

	return result < 0 ? result : !result;
}

int acp_free_coll(acp_coll_t handle)
{
	return told(acpx_coll_free(handle));
}
