/* SPDX-License-Identifier: MIT */
/*
 * Output of commands: records of named values, as text or JSON.
 *
 * Text: one line per record, "name value name value"; ctl_out_fold() continues on another, indented
 * line. JSON: an array of objects with the same names. In JSON a name includes its unit ("rtt_ns"),
 * in text the value does ("rtt 312us"). A stream (monitor, top) is one object per line instead of
 * an array.
 */
#ifndef CTL_OUT_H
#define CTL_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

enum ctl_form { CTL_TEXT, CTL_JSON, CTL_PRETTY };

struct ctl_out {
	enum ctl_form form;
	bool stream;
	bool open;			/* a record has begun */
	bool fresh;			/* its line is empty */
	bool fold;			/* the next value begins an indented line */
	struct json_object *all, *now;	/* NULL: text */
	struct ctl_table *table;	/* text: destination of values; NULL: none */
};

/* Units of numbers. */
enum ctl_unit {
	CTL_PLAIN,	/* example: 12 */
	CTL_HEX,	/* 0x1f; JSON: a number */
	CTL_NS,		/* name_ns; text: 312us */
	CTL_MS,		/* name_ms; text: 10s */
	CTL_BYTES,	/* name_bytes; text: 4096 */
	CTL_KIB,	/* name_kib; text: 8KiB */
};

void ctl_out_open(struct ctl_out *o, enum ctl_form form, bool stream);

/* Text: print a table with these columns, and omit other values. */
void ctl_out_table(struct ctl_out *o, const char *const columns[]);

/* Begin the next record. In a stream, the previous one is printed. */
void ctl_out_record(struct ctl_out *o);
void ctl_out_fold(struct ctl_out *o);

/* Complete the record: in a stream it is printed immediately instead of with the next one. */
void ctl_out_end_record(struct ctl_out *o);

void ctl_out_number(struct ctl_out *o, const char *name, uint64_t value, enum ctl_unit unit);
void ctl_out_signed(struct ctl_out *o, const char *name, int64_t value);
/*
 * Unprintable and non-ASCII bytes are printed as '?', because they may come from an untrusted
 * source.
 */
void ctl_out_text(struct ctl_out *o, const char *name, const char *value);
/* In JSON as ctl_out_text(); in text without its name. */
void ctl_out_word(struct ctl_out *o, const char *name, const char *value);
/* In text: the name if true, otherwise nothing. */
void ctl_out_flag(struct ctl_out *o, const char *name, bool value);
/* In text: on or off. */
void ctl_out_switch(struct ctl_out *o, const char *name, bool value);
/* Only in JSON: a value, whose ownership passes to @o. */
void ctl_out_json(struct ctl_out *o, const char *name, struct json_object *value);

/* Print everything. Returns an exit status: whether it could be written. */
int ctl_out_close(struct ctl_out *o);

/* Format a time: "312.4us", "10s", with at most 3 digits after the point. */
#define CTL_TIME_TEXT	32
const char *ctl_time_text(uint64_t ns, char text[CTL_TIME_TEXT]);

#endif /* CTL_OUT_H */
