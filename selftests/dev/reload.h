/* SPDX-License-Identifier: MIT */
/* Loading and removing the module in tests. The tests after them need it loaded. */
#ifndef RELOAD_H
#define RELOAD_H

#include <stdbool.h>

/* Return 0 or -errno. */
int module_load(const char *parameters);
int module_unload(void);

/* Files closed just before may not have been released yet: retries for five seconds. */
void module_unload_soon(void);

bool module_loaded(void);

#endif /* RELOAD_H */
