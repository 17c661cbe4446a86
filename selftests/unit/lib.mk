# SPDX-License-Identifier: MIT
# Unit tests of the library: with ASan and UBSan, and what has threads with TSan too.

LIB := $(TOP)/lib
LIB_TESTS := test_lib_coll test_lib_boot test_lib_launch test_lib_rings test_lib_ga test_lib_gma \
	test_lib_rings_tsan test_lib_gma_tsan test_lib_contexts test_lib_contexts_tsan test_lib_watch \
	test_lib_watch_tsan test_lib_steps test_lib_header test_lib_messages test_lib_ends \
	test_lib_mailbox test_lib_mailbox_tsan test_lib_node_ring test_lib_node_ring_tsan test_lib_mailbox_calls test_lib_mailbox_calls_tsan test_lib_mailbox_ring \
	test_lib_match test_lib_match_tsan test_lib_rounds

TESTS += $(LIB_TESTS)

# -Wno-tsan: the full fence of queue.h is not for TSan to judge (gcc only knows the flag).
LIB_NO_TSAN := $(if $(findstring clang,$(CC)),,-Wno-tsan)
LIB_CFLAGS := -std=gnu11 -O1 -g -Wall -Wextra -Werror -I$(TOP)/uapi -I$(LIB) -I$(HERE)/.. -pthread
LIB_TSAN := -fsanitize=thread $(LIB_NO_TSAN)
LIB_HEADERS := $(wildcard $(LIB)/*.h $(LIB)/*/*.h $(TOP)/uapi/*.h) $(HERE)/../test.h $(HERE)/../patience.h $(HERE)/test_lib_device.h $(HERE)/mailbox_play.h $(HERE)/match_play.h $(HERE)/last_error.h
LIB_NAMES := $(patsubst $(LIB)/%.c,%,$(wildcard $(LIB)/*/*.c))
LIB_DEVICE := -Wl,--wrap=open,--wrap=close,--wrap=ioctl,--wrap=syscall,--wrap=mmap,--wrap=munmap

# The library is compiled once for all tests of a kind, not once for each of them. What tests
# add to their flags is for themselves and for the linker.
OBJECT_CFLAGS := $(LIB_CFLAGS)
OBJECT_ASAN := $(SANITIZE)
ASAN := $(HERE)/objects/asan
TSAN := $(HERE)/objects/tsan
PLAIN := $(HERE)/objects/plain
$(ASAN)/%.o: $(LIB)/%.c $(LIB_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(OBJECT_CFLAGS) $(OBJECT_ASAN) $(CFLAGS) -c -o $@ $<
$(TSAN)/%.o: $(LIB)/%.c $(LIB_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(OBJECT_CFLAGS) $(LIB_TSAN) $(CFLAGS) -c -o $@ $<
$(PLAIN)/%.o: $(LIB)/%.c $(LIB_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(OBJECT_CFLAGS) -O2 $(CFLAGS) -c -o $@ $<
objects = $(patsubst %,$(1)/%.o,$(2))

# What the launcher said, without joining.
BOOT_FILES := $(LIB)/core/job.c $(addprefix $(LIB)/boot/,boot.c settings.c nodes.c addresses.c placement.c \
	key.c plan.c names.c pmix.c mpmd.c)
test_lib_boot: test_lib_boot.c $(BOOT_FILES)
# An engine that is played: pmix.h is in Debian's libpmix-dev.
test_lib_launch: test_lib_launch.c $(BOOT_FILES)
test_lib_launch test_lib_ends: LIB_CFLAGS += $(shell pkg-config --cflags-only-I pmix) \
	-Wl,--wrap=dlopen,--wrap=dlsym,--wrap=dlerror
test_lib_launch test_lib_ends: test_lib_engine.h
test_lib_ends: test_lib_ends.c $(LIB)/boot/pmix.c $(call objects,$(ASAN),$(filter-out boot/pmix,$(LIB_NAMES)))
test_lib_rings test_lib_rings_tsan: test_lib_rings.c
test_lib_ga: test_lib_ga.c
test_lib_coll: test_lib_coll.c
test_lib_rounds: test_lib_rounds.c $(LIB)/coll/create.c $(call objects,$(ASAN),$(addprefix coll/,bcast reduce \
	gather scan alltoall neighbours transfer transfer_create step tree_round))
test_lib_gma test_lib_gma_tsan: test_lib_gma.c
test_lib_contexts test_lib_contexts_tsan: test_lib_contexts.c
test_lib_watch test_lib_watch_tsan: test_lib_watch.c
test_lib_mailbox: test_lib_mailbox.c $(ASAN)/mailbox/area.o $(ASAN)/mailbox/node_ring.o
test_lib_mailbox_tsan: test_lib_mailbox.c $(TSAN)/mailbox/area.o $(TSAN)/mailbox/node_ring.o
test_lib_node_ring: test_lib_node_ring.c $(ASAN)/mailbox/area.o $(ASAN)/mailbox/node_ring.o
test_lib_node_ring_tsan: test_lib_node_ring.c $(TSAN)/mailbox/area.o $(TSAN)/mailbox/node_ring.o
test_lib_mailbox_calls test_lib_mailbox_calls_tsan: test_lib_mailbox_calls.c mailbox_calls.h
test_lib_mailbox_ring: test_lib_mailbox_ring.c mailbox_calls.h
test_lib_match test_lib_match_tsan: test_lib_match.c
test_lib_messages: test_lib_messages.c
test_lib_messages: LIB_CFLAGS += -Wl,--wrap=getrlimit,--wrap=stat,--wrap=getgrgid,--wrap=access,--wrap=faccessat,--wrap=statvfs,--wrap=fopen
test_lib_ga test_lib_gma test_lib_contexts test_lib_watch test_lib_messages test_lib_mailbox_calls test_lib_mailbox_ring test_lib_match: $(call objects,$(ASAN),$(LIB_NAMES))
test_lib_gma_tsan test_lib_contexts_tsan test_lib_watch_tsan test_lib_mailbox_calls_tsan test_lib_match_tsan: $(call objects,$(TSAN),$(LIB_NAMES))
test_lib_ga test_lib_gma test_lib_gma_tsan test_lib_contexts test_lib_contexts_tsan \
	test_lib_watch test_lib_watch_tsan test_lib_mailbox_calls test_lib_mailbox_calls_tsan test_lib_mailbox_ring \
	test_lib_match test_lib_match_tsan test_lib_messages test_lib_ends: LIB_CFLAGS += $(LIB_DEVICE)

test_lib_coll test_lib_boot test_lib_launch test_lib_rings test_lib_ga test_lib_gma \
test_lib_contexts test_lib_watch test_lib_messages test_lib_ends test_lib_mailbox test_lib_node_ring test_lib_mailbox_calls test_lib_mailbox_ring test_lib_match: $(LIB_HEADERS)
	$(CC) $(LIB_CFLAGS) $(SANITIZE) $(CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS)

test_lib_rings_tsan test_lib_gma_tsan test_lib_contexts_tsan test_lib_watch_tsan \
test_lib_mailbox_tsan test_lib_node_ring_tsan test_lib_mailbox_calls_tsan test_lib_match_tsan: $(LIB_HEADERS)
	$(CC) $(LIB_CFLAGS) $(LIB_TSAN) $(CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS)

# create.c is included by the test.
test_lib_rounds: $(LIB_HEADERS)
	$(CC) $(LIB_CFLAGS) $(SANITIZE) $(CFLAGS) -o $@ $(filter-out $(LIB)/coll/create.c,$(filter %.c %.o,$^)) $(LDFLAGS)

# No sanitizer here: its instructions would be counted.
test_lib_steps: test_lib_steps.c $(call objects,$(PLAIN),$(LIB_NAMES)) $(LIB_HEADERS)
	$(CC) $(LIB_CFLAGS) $(LIB_DEVICE) -O2 $(CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS)

# The public header, alone, as C and as C++.
test_lib_header: test_lib_header.c $(LIB)/acp.h
	$(CC) -x c++ -std=c++11 -Wall -Wextra -Werror -I$(LIB) -fsyntax-only $<
	$(CC) -std=c99 -pedantic -Wall -Wextra -Werror -I$(LIB) -o $@ $<

# The middle layer on a played basic layer.  Tests with threads are in MIDDLE_TSAN, too, as
# NAME_tsan.
LIB_BASIC := $(filter-out core/pointer,$(filter core/% boot/% mailbox/% coll/%,$(LIB_NAMES)))
LIB_MIDDLE := $(filter-out $(LIB_BASIC),$(LIB_NAMES))
FAKES := fake_acp fake_mem fake_gma fake_effect fake_turn
MIDDLE_HEADERS := $(LIB_HEADERS) $(wildcard $(HERE)/fake_*.h $(HERE)/*_play.h $(HERE)/*_model.h)
MIDDLE_TESTS := test_lib_fake test_lib_txlock test_lib_heap
MIDDLE_TSAN := test_lib_fake_tsan test_lib_txlock_tsan test_lib_heap_tsan
test_lib_txlock test_lib_txlock_tsan: LIB_CFLAGS += -Wl,--wrap=acp_copy

$(ASAN)/fake_%.o: fake_%.c $(MIDDLE_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(OBJECT_CFLAGS) $(OBJECT_ASAN) $(CFLAGS) -c -o $@ $<
$(TSAN)/fake_%.o: fake_%.c $(MIDDLE_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(OBJECT_CFLAGS) $(LIB_TSAN) $(CFLAGS) -c -o $@ $<
$(PLAIN)/fake_%.o: fake_%.c $(MIDDLE_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(OBJECT_CFLAGS) -O2 $(CFLAGS) -c -o $@ $<

# Long; sanitizers have seen the same.
MIDDLE_TESTS += test_lib_heap_long
test_lib_heap_long: LIB_CFLAGS += -O2
test_lib_heap_long: SANITIZE :=

# Containers against models; container_play.h counts allocations and looks at copies.
MIDDLE_TESTS += test_lib_vector test_lib_deque test_lib_list
PLAY_WRAPS := -Wl,--wrap=acp_malloc,--wrap=acpx_free,--wrap=acp_copy
MIDDLE_TSAN += test_lib_vector_tsan
test_lib_vector test_lib_deque test_lib_list test_lib_vector_tsan: LIB_CFLAGS += $(PLAY_WRAPS)
test_lib_list test_lib_list_long: LIB_CFLAGS += -Wl,--wrap=realloc

# The same with a million steps on each; sanitizers have seen this code in the others.
MIDDLE_LONG := test_lib_vector_long test_lib_deque_long test_lib_list_long
$(MIDDLE_LONG): LIB_CFLAGS += $(PLAY_WRAPS) -O2 -DMANY=400000

# Channels, segmented buffers, workspaces.
MIDDLE_TESTS += test_lib_chan test_lib_segbuf test_lib_ws
MIDDLE_TSAN += test_lib_chan_tsan
MIDDLE_HEADERS += $(HERE)/../messages.h
test_lib_segbuf: LIB_CFLAGS += -Wl,--wrap=acp_copy,--wrap=acp_add8

# Sets, multisets, maps.
MIDDLE_TESTS += test_lib_table test_lib_table_faults test_lib_set test_lib_map test_lib_crowd
MIDDLE_TSAN += test_lib_crowd_tsan
test_lib_crowd test_lib_crowd_tsan: LIB_CFLAGS += -Wl,--wrap=acp_copy
test_lib_table_faults: LIB_CFLAGS += -Wl,--wrap=libacp_txlock_enter,--wrap=libacp_scratch_get
# Long runs; sanitizers have seen this code in the others.
MIDDLE_TESTS += test_lib_table_long
test_lib_table_long: LIB_CFLAGS += -O2
test_lib_table_long: SANITIZE :=

# ... against those of C++.
TESTS += test_lib_stl
test_lib_stl: test_lib_stl.c stl_model.cc stl_model.h $(call objects,$(ASAN),$(LIB_MIDDLE) $(FAKES)) $(MIDDLE_HEADERS)
	$(CC) -x c++ -std=c++17 -O1 -g -Wall -Wextra -Werror $(SANITIZE) $(CXXFLAGS) -c -o stl_model.o \
		stl_model.cc
	$(CC) $(LIB_CFLAGS) $(SANITIZE) $(CFLAGS) -o $@ $(filter %.c %.o,$^) stl_model.o $(LDFLAGS) -lstdc++

# The macros that take a type, in C and in C++.
TESTS += test_lib_macros
test_lib_macros: test_lib_macros.c $(call objects,$(ASAN),$(LIB_NAMES)) $(LIB_HEADERS)
	$(CC) -x c++ -std=c++11 -Wall -Wextra -Werror -I$(LIB) -fsyntax-only $<
	$(CC) -std=c99 -pedantic -Wall -Wextra -Werror -I$(LIB) -fsyntax-only $<
	$(CC) $(LIB_CFLAGS) $(SANITIZE) $(CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS)

# A test that is named nowhere above: test_lib_* of the middle layer, with sanitizers, any other one
# of the core.
NAMED := $(TESTS) $(MIDDLE_TESTS) test_ctl_rules
FOUND := $(filter-out $(NAMED),$(basename $(notdir $(wildcard $(HERE)/test_*.c))))
MIDDLE_TESTS += $(filter test_lib_%,$(FOUND))
CORE_TESTS += $(filter-out test_lib_%,$(FOUND))

TESTS += $(filter-out test_lib_%,$(FOUND)) $(MIDDLE_TESTS) $(MIDDLE_TSAN) $(MIDDLE_LONG)

$(filter-out %_long,$(MIDDLE_TESTS)): %: %.c $(call objects,$(ASAN),$(LIB_MIDDLE) $(FAKES)) $(MIDDLE_HEADERS)
	$(CC) $(LIB_CFLAGS) $(SANITIZE) $(CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS)

$(filter %_long,$(MIDDLE_TESTS)): %: %.c $(call objects,$(PLAIN),$(LIB_MIDDLE) $(FAKES)) $(MIDDLE_HEADERS)
	$(CC) $(LIB_CFLAGS) $(SANITIZE) $(CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS)

$(MIDDLE_TSAN): %_tsan: %.c $(call objects,$(TSAN),$(LIB_MIDDLE) $(FAKES)) $(MIDDLE_HEADERS)
	$(CC) $(LIB_CFLAGS) $(LIB_TSAN) $(CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS)

$(MIDDLE_LONG): %_long: %.c $(call objects,$(PLAIN),$(LIB_MIDDLE) $(FAKES)) $(MIDDLE_HEADERS)
	$(CC) $(LIB_CFLAGS) $(CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS)

# What the command acp makes of packet filters; of its words and files see "command".
TESTS += test_ctl_rules
CTL := $(TOP)/tools/acp
test_ctl_rules: test_ctl_rules.c $(wildcard $(CTL)/rules*.c) $(CTL)/words.c $(wildcard $(CTL)/*.h)
	$(CC) $(LIB_CFLAGS) $(SANITIZE) $(CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS) -ljson-c -lm
