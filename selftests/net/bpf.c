// SPDX-License-Identifier: MIT
/* BPF programs and maps: see bpf.h. */
#include "../dev/isolated.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf.h"

int bpf_call(int command, union bpf_attr *attr)
{
	return (int)syscall(__NR_bpf, command, attr, sizeof(*attr));
}

int bpf_load(uint32_t type, uint32_t attach, const struct bpf_insn *insns, size_t count)
{
	union bpf_attr attr = {
		.prog_type = type, .expected_attach_type = attach, .insn_cnt = (uint32_t)count,
		.insns = (uintptr_t)insns, .license = (uintptr_t)"GPL",
	};
	int fd = bpf_call(BPF_PROG_LOAD, &attr);

	if (fd < 0)
		SKIP("this kernel has no such BPF program: %s", strerror(errno));
	return fd;
}

int bpf_element(uint32_t size)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = size,
		.max_entries = 1, .map_flags = BPF_F_MMAPABLE,
	};
	int fd = bpf_call(BPF_MAP_CREATE, &attr);

	if (fd < 0)
		SKIP("this kernel has no such BPF map: %s", strerror(errno));
	return fd;
}

void bpf_probe(const char *function, int prog)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr), .config1 = (uintptr_t)function, .sample_period = 1,
	};
	FILE *type = fopen("/sys/bus/event_source/devices/kprobe/type", "r");
	int fd;

	if (!type || fscanf(type, "%u", &attr.type) != 1)
		SKIP("this kernel has no kprobes");
	fclose(type);
	fd = (int)syscall(__NR_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		FAIL("kprobe of %s: %s", function, strerror(errno));
	CHECK_EQ(ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog), 0);
	CHECK_EQ(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
}
