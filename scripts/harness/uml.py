# SPDX-License-Identifier: MIT
"""Guests of scripts/harness/vm that are a process here: user-mode Linux, as scripts/harness/uml-kernel
builds it. They have one processor, run at the speed of this machine, and have no network cards.

Their root is this machine's / (hostfs, mounted read-only) under a tmpfs overlay, as that of other
guests. But what may be done to files here is only limited by these mounts: a command that mounts
hostfs again, or this mount for writing, gets the rights of the user who started the guest.
"""
import os
import socket
import struct

import guest

ERRORS = "console"  # the kernel's messages are the errors of the program
MCONSOLE_MAGIC = 0xcafebabe
SPOKE = 128         # added to the command's status; without a word from the guest it is 0, 1 or a signal's
SHELL = guest.Shell("$B mount -t hostfs -o ro,%(root)s root /lower",
                    "$B mount -t hostfs -o %(source)s share%(i)d /new%(source)s",
                    f"echo $((status + {SPOKE})) >/proc/exitcode")
prepare = guest.prepare


def refused(opts):
    """Return the options that such guests cannot have, in words, or an empty string."""
    options = {"--smp": opts.smp > 1, "--cpu": opts.cpu, "--icount": opts.icount, "--init": opts.init,
               "--nics and several commands": opts.nics or opts.net, "--gdb": opts.gdb, "--reboot": opts.reboot}
    return ", ".join(name for name, wanted in options.items() if wanted)


def command(work, _, common, me, opts):
    """Return the command line of guest me: its console is its stderr, the command's output its
    stdout.
    """
    kernel, base = common
    initrd = guest.write_initrd(work, base, me, opts, SHELL)
    memory = opts.mem + "M" * opts.mem.isdigit()
    append = "con=null ssl=null ssl0=null,fd:2 ssl1=null,fd:1 console=ttyS0 loglevel=5 panic=-1 oops=panic noreboot " \
             "cryptomgr.notests"
    if opts.kmemleak:
        append += " kmemleak=on"
    return ["prlimit", "--core=0", "--", kernel, f"mem={memory}", f"initrd={initrd}", f"uml_dir={work}/", f"umid=g{me}",
            *append.split(), *opts.append.split()]


def status(code):
    """Return the command's status, or -1 if the guest died."""
    return code - SPOKE if code >= SPOKE else -1


def evidence(work, me, console):
    """Return the tasks of a guest that hangs, with their kernel stacks."""
    before = os.path.getsize(console)
    request = b"sysrq t"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(f"{work}/g{me}.evidence")
            s.sendto(struct.pack("=IIi512s", MCONSOLE_MAGIC, 2, len(request), request), f"{work}/g{me}/mconsole")
    except OSError as trouble:
        return f"its console does not answer: {trouble}\n"
    return guest.written(console, before)
