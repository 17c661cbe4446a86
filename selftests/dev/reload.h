/* SPDX-License-Identifier: MIT */
/* The module, loaded and removed by tests.  Tests after them want it to be there. */
#ifndef RELOAD_H
#define RELOAD_H

#include <stdbool.h>

/* 0 or -errno. */
int module_load(const char *parameters);
int module_unload(void);

/* Files that were closed just now may be on their way still: tries for five seconds. */
void module_unload_soon(void);

bool module_loaded(void);

#endif /* RELOAD_H */
