/* SPDX-License-Identifier: MIT */
/* Opening the device. */
#ifndef LIBACP_DEVICE_H
#define LIBACP_DEVICE_H

#pragma GCC visibility push(hidden)

/* Open the device. Returns a descriptor, or -1 with errno set after a message on standard error. */
int libacp_device_open(void);

#pragma GCC visibility pop

#endif /* LIBACP_DEVICE_H */
