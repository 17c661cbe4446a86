/* SPDX-License-Identifier: MIT */
/* BPF programs and maps, without libbpf. */
#ifndef BPF_H
#define BPF_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

#define INSN(c, d, s, o, i)	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), \
						    .off = (o), .imm = (i) })
#define RESULT(value)		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, value)
#define EXIT			INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* r0 is the element of a map; of what follows, "behind" instructions are left out if it is NULL. */
#define FIRST(map, behind)						\
	INSN(BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 0),			\
	INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0),			\
	INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4),			\
	INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map),	\
	INSN(0, 0, 0, 0, 0),						\
	INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),	\
	INSN(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, behind, 0)

int bpf_call(int command, union bpf_attr *attr);

/* Load a program: its descriptor.  The test is skipped if this kernel has none of that type. */
int bpf_load(uint32_t type, uint32_t attach, const struct bpf_insn *insns, size_t count);

/* A map of one element, which may be mapped: its descriptor. */
int bpf_element(uint32_t size);

/* Run a program each time that a function of the kernel, or of a module, begins; until exit. */
void bpf_probe(const char *function, int prog);

#endif /* BPF_H */
