# SPDX-License-Identifier: MIT
# Unit tests of the library: with ASan and UBSan, and what has threads with TSan too.

LIB := $(TOP)/lib
LIB_TESTS := test_lib_boot test_lib_queue test_lib_ga test_lib_gma test_lib_queue_tsan \
	test_lib_gma_tsan test_lib_steps test_lib_header

TESTS += $(LIB_TESTS)

# -Wno-tsan: the full fence of queue.h is not for TSan to judge (gcc only knows the flag).
LIB_NO_TSAN := $(if $(findstring clang,$(CC)),,-Wno-tsan)
LIB_CFLAGS := -std=gnu11 -O1 -g -Wall -Wextra -Werror -I$(TOP)/uapi -I$(LIB) -I$(HERE)/.. -pthread
LIB_TSAN := -fsanitize=thread $(LIB_NO_TSAN)
LIB_HEADERS := $(wildcard $(LIB)/*.h $(TOP)/uapi/*.h) $(HERE)/../test.h $(HERE)/test_lib_device.h
LIB_FILES := $(wildcard $(LIB)/*.c)
LIB_DEVICE := -Wl,--wrap=open,--wrap=close,--wrap=ioctl,--wrap=mmap,--wrap=munmap

test_lib_boot: test_lib_boot.c $(LIB)/boot.c
test_lib_queue test_lib_queue_tsan: test_lib_queue.c
test_lib_ga: test_lib_ga.c $(LIB_FILES)
test_lib_gma test_lib_gma_tsan: test_lib_gma.c $(LIB_FILES)
test_lib_ga test_lib_gma test_lib_gma_tsan: LIB_CFLAGS += $(LIB_DEVICE)

test_lib_boot test_lib_queue test_lib_ga test_lib_gma: $(LIB_HEADERS)
	$(CC) $(LIB_CFLAGS) $(SANITIZE) $(CFLAGS) -o $@ $(filter %.c,$^) $(LDFLAGS)

test_lib_queue_tsan test_lib_gma_tsan: $(LIB_HEADERS)
	$(CC) $(LIB_CFLAGS) $(LIB_TSAN) $(CFLAGS) -o $@ $(filter %.c,$^) $(LDFLAGS)

# No sanitizer here: its instructions would be counted.
test_lib_steps: test_lib_steps.c $(LIB_FILES) $(LIB_HEADERS)
	$(CC) $(LIB_CFLAGS) $(LIB_DEVICE) -O2 $(CFLAGS) -o $@ $(filter %.c,$^) $(LDFLAGS)

# The public header, alone, as C and as C++.
test_lib_header: test_lib_header.c $(LIB)/acp.h
	$(CC) -x c++ -std=c++11 -Wall -Wextra -Werror -I$(LIB) -fsyntax-only $<
	$(CC) -std=c99 -pedantic -Wall -Wextra -Werror -I$(LIB) -o $@ $<
