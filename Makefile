# SPDX-License-Identifier: MIT
#
# Everything but the module's own build rules, which are in Kbuild.
#
#	make			module for the running kernel, library, tools, examples, and the
#				provider for libfabric if libfabric-dev is there
#	make demo		two virtual machines run the examples	(installs packages)
#	make test		the gate: each capability once	(installs packages)
#	make test-all [ONLY=PATTERN] [KERNELS="6.1 rt"]	each test on each kernel, at full length
#	make check		static checks				(installs packages)
#	make fuzz [MINUTES=10] [SEED=N]	fuzzers, for long	(installs packages)
#	make bench [BENCH="latency rxe"]	ACP beside its peers	(installs packages)
#	make figures [FIGURES="basic sweep"]	other figures	(installs packages)
#	make coverage		lines and branches of the protocol that unit tests and fuzzers reach
#	make soak [MINUTES=10] [SEED=N] [LIFE=N] [KERNEL=debug]	everything at once, at random
#	make deb		Debian packages, in build/deb/		(installs packages)
#	make rpm		the same as RPMs, in build/rpm/		(installs packages)
#	make install [PREFIX=/usr/local] [DESTDIR=]	library, tools, manual, system files
#	make modules_install [DESTDIR=]			the module, under /lib/modules
#	make clean
#
# KERNEL: what the module is built for, a release or a name known to scripts/harness/kernel. Make
# what is to be installed first, as anybody; then install as root.

KERNEL ?= $(shell uname -r)
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
UDEVDIR ?= $(PREFIX)/lib/udev
DOCDIR ?= $(PREFIX)/share/doc/acp
export PREFIX DESTDIR

# LIBFABRIC=no leaves the provider out, as the packages do.
PROVIDER := $(filter-out $(LIBFABRIC:no=libfabric),libfabric)
PARTS := lib tools examples $(PROVIDER)
SUITES := $(patsubst %/Makefile,%,$(wildcard selftests/*/Makefile))
JOBS = -j$(shell nproc)
only = $(if $(ONLY),--only '$(ONLY)')
kernels = $(foreach k,$(KERNELS),--kernel $(k))

all: $(PARTS)
	@if [ -d "$$(scripts/harness/kernel '$(KERNEL)' 2>/dev/null | cut -d' ' -f2)" ]; then \
		$(MAKE) --no-print-directory module; \
	else \
		echo "No module: the headers of kernel $(KERNEL) are not installed. On Debian:"; \
		echo "apt-get install linux-headers-$(KERNEL)"; \
	fi

# The kernel's build must not take our options for its own.
module:
	MAKEFLAGS= scripts/harness/build-module '$(KERNEL)' $(JOBS)

$(PARTS) $(SUITES):
	$(MAKE) -C $@

tools examples $(PROVIDER) $(SUITES): lib

demo:
	@scripts/demo

test:
	scripts/packages build guest check debug launch deb rpm root
	$(MAKE) $(JOBS) $(PARTS) $(SUITES)
	selftests/run $(tier) $(only) $(kernels)

test-all: tier = --all
test-all: test

check:
	scripts/packages build check
	scripts/check/run

MINUTES ?= 10
fuzz:
	scripts/packages build guest check debug
	$(MAKE) $(JOBS) selftests/fuzz selftests/dev
	selftests/fuzz/core --minutes $(MINUTES)
	scripts/harness/fuzz-syscalls debug $(MINUTES) $(SEED)

# Twenty minutes: scripts/measure/bench --help names the parts.
bench:
	scripts/packages build guest bench
	$(MAKE) $(JOBS) lib tools
	scripts/harness/build-module 6.1
	scripts/measure/bench $(BENCH)

# A quarter of an hour and more: scripts/measure/figures --help names the parts.
figures:
	scripts/packages build guest bench
	$(MAKE) $(JOBS) lib tools selftests/unit
	scripts/harness/build-module 6.1
	scripts/measure/figures $(FIGURES)

coverage:
	$(MAKE) --no-print-directory -C selftests/fuzz coverage

# Of what was not said: the debug kernel, a seed that is printed.
soak: KERNEL = debug
soak:
	scripts/packages build guest debug
	$(MAKE) $(JOBS) selftests/soak
	scripts/harness/soak '$(KERNEL)' '$(MINUTES)' '$(SEED)' '$(LIFE)'

deb:
	scripts/packages build deb
	scripts/deb

rpm:
	scripts/packages build rpm
	scripts/rpm

install: lib tools $(PROVIDER)
	$(MAKE) -C lib install
	$(MAKE) -C tools install
	$(if $(PROVIDER),$(MAKE) -C libfabric install)
	install -D -m 644 etc/90-acp.rules $(DESTDIR)$(UDEVDIR)/rules.d/90-acp.rules
	install -D -m 644 etc/acp.service $(DESTDIR)$(UNITDIR)/acp.service
	install -D -m 644 etc/acp.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/acp.conf
	install -D -m 644 etc/acp-limits.conf $(DESTDIR)$(DOCDIR)/acp-limits.conf
	install -D -m 644 etc/acp-modprobe.conf $(DESTDIR)$(DOCDIR)/acp-modprobe.conf
	if [ ! -e "$(DESTDIR)$(SYSCONFDIR)/acp.conf" ]; then \
		install -D -m 644 etc/acp.conf "$(DESTDIR)$(SYSCONFDIR)/acp.conf"; fi
	if [ -z "$(DESTDIR)" ]; then ldconfig; fi

# Debian's headers lack the System.map without which the kernel's build leaves depmod to us.
modules_install: module
	set -e; found="$$(scripts/harness/kernel '$(KERNEL)')"; set -- $$found; \
	MAKEFLAGS= make -C "$$2" M="$(CURDIR)/build/$$1/src" INSTALL_MOD_PATH="$(DESTDIR)" modules_install; \
	install -D -m 644 etc/acp.modules-load $(DESTDIR)$(PREFIX)/lib/modules-load.d/acp.conf; \
	if [ -z "$(DESTDIR)" ]; then depmod "$$1"; fi

clean:
	for part in $(PARTS) $(SUITES); do $(MAKE) -C $$part clean || exit 1; done
	rm -rf build

.PHONY: all module $(PARTS) $(SUITES) demo test test-all check fuzz bench figures coverage soak deb rpm install modules_install clean
