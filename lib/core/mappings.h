/* SPDX-License-Identifier: MIT */
/* Why the module does not register memory, for messages. */
#ifndef LIBACP_MAPPINGS_H
#define LIBACP_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define LIBACP_MAPPING_TEXT	400

/*
 * Describe in @text what is mapped at [@start, @end) that the module does not register, or
 * registers only for reading (@writable).
 */
void libacp_mapping_text(uint64_t start, uint64_t end, bool writable,
			 char text[LIBACP_MAPPING_TEXT]);

#pragma GCC visibility pop

#endif /* LIBACP_MAPPINGS_H */
