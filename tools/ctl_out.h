/* SPDX-License-Identifier: MIT */
/*
 * What a command prints: records of named values, for people or as JSON.
 *
 * Text: a line per record, "name value name value"; ctl_out_fold() goes on in a
 * further, indented line. JSON: an array of objects with the same names, where
 * a name says its unit ("rtt" in text, with its unit at the value, is "rtt_ns"
 * in JSON). A stream (monitor, top) has an object per line instead of the array.
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
	bool open;			/* a record was begun */
	bool fresh;			/* and its line is empty */
	bool fold;			/* what follows comes in a further line */
	struct json_object *all, *now;	/* NULL: text */
};

/* How a number is to be read. */
enum ctl_unit {
	CTL_PLAIN,	/* 12 */
	CTL_HEX,	/* 0x1f; JSON: a number */
	CTL_NS,		/* name_ns; text: 312us */
	CTL_MS,		/* name_ms; text: 10s */
	CTL_BYTES,	/* name_bytes; text: 4096 */
	CTL_KIB,	/* name_kib; text: 8KiB */
};

void ctl_out_open(struct ctl_out *o, enum ctl_form form, bool stream);

/* The next record. Of a stream, the one before is printed. */
void ctl_out_record(struct ctl_out *o);
void ctl_out_fold(struct ctl_out *o);

/* The record is complete: of a stream, print it now and not with the next one. */
void ctl_out_end_record(struct ctl_out *o);

void ctl_out_number(struct ctl_out *o, const char *name, uint64_t value, enum ctl_unit unit);
void ctl_out_signed(struct ctl_out *o, const char *name, int64_t value);
/* Bytes that are no printable ASCII are shown as '?': they may come from anywhere. */
void ctl_out_text(struct ctl_out *o, const char *name, const char *value);
/* As the above in JSON; in text without its name. */
void ctl_out_word(struct ctl_out *o, const char *name, const char *value);
/* In text: the name if true, else nothing. */
void ctl_out_flag(struct ctl_out *o, const char *name, bool value);
/* In text: on or off. */
void ctl_out_switch(struct ctl_out *o, const char *name, bool value);
/* Only in JSON: a value of its own making, which is given away. */
void ctl_out_json(struct ctl_out *o, const char *name, struct json_object *value);

/* All out. Returns an exit status: whether it could be written. */
int ctl_out_close(struct ctl_out *o);

/* "312.4us", "10s": at most 3 digits behind the point. */
#define CTL_TIME_TEXT	32
const char *ctl_time_text(uint64_t ns, char text[CTL_TIME_TEXT]);

#endif /* CTL_OUT_H */
