# SPDX-License-Identifier: MIT
# What a test of nodes (nodes.h) is made of; links.c asks the kernel by libnl.

NODES := $(patsubst %,$(TOP)/selftests/net/%.c,nodes links)
NODES_CFLAGS := $(shell pkg-config --cflags libnl-3.0)
NODES_LIBS := $(shell pkg-config --libs libnl-3.0)
