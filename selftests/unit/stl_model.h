/* SPDX-License-Identifier: MIT */
/* Containers of the C++ standard library for tests in C: byte strings with counts or values. */
#ifndef STL_MODEL_H
#define STL_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum stl_kind { STL_SET, STL_MULTISET, STL_MAP };

struct stl_bytes {
	const char *bytes;
	size_t size;
};

struct stl_model;

struct stl_model *stl_create(enum stl_kind kind);
void stl_destroy(struct stl_model *m);

/* Behave like the containers. Return the number of copies afterwards, or of those removed. */
bool stl_insert(struct stl_model *m, struct stl_bytes key, struct stl_bytes value);
size_t stl_erase(struct stl_model *m, struct stl_bytes key);
void stl_erase_one(struct stl_model *m, struct stl_bytes key);
size_t stl_count(const struct stl_model *m, struct stl_bytes key);
struct stl_bytes stl_value(const struct stl_model *m, struct stl_bytes key);
size_t stl_keys(const struct stl_model *m);	/* number of distinct keys */
size_t stl_size(const struct stl_model *m);	/* number of all copies */

void stl_clear(struct stl_model *m);
void stl_swap(struct stl_model *a, struct stl_model *b);
void stl_assign(struct stl_model *to, const struct stl_model *from);
void stl_merge(struct stl_model *to, const struct stl_model *from);

#ifdef __cplusplus
}
#endif

#endif /* STL_MODEL_H */
