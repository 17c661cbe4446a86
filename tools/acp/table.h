/* SPDX-License-Identifier: MIT */
/* Tables of text: a heading, and columns as wide as their contents. */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#define CTL_COLUMNS_MAX	16

struct ctl_table;

/* @columns: names, as in JSON, terminated by NULL. The array must remain valid. */
struct ctl_table *ctl_table_new(const char *const columns[]);

void ctl_table_row(struct ctl_table *t);
/* Set a cell of the last row. Names of other columns are ignored. */
void ctl_table_cell(struct ctl_table *t, const char *name, const char *value);

/* Print the table, if it has rows, and free it. */
void ctl_table_end(struct ctl_table *t);

#endif /* CTL_TABLE_H */
