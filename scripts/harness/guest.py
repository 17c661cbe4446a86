# SPDX-License-Identifier: MIT
"""What a guest of scripts/harness/vm is made of: kernel image, initramfs, QEMU command line. Guests
without an emulator are in uml.py, which has what vm calls, too: ERRORS, refused(), prepare(),
command(), status().

A guest's root is this machine's / (9p, read-only) under a tmpfs overlay, so everything installed
here runs there and nothing it does is seen here. /tmp and /run are the guest's own; the checkout
and the directories asked for are mounted at their usual paths. A guest whose root is another
directory sees that only, and may be started by the init that is in it (systemd).
"""
import collections
import ctypes
import functools
import lzma
import mmap
import os
import re
import shlex
import shutil
import socket
import struct
import subprocess
import time
import zlib

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
BOOT_MODULES = ["virtio_pci", "9p", "9pnet_virtio", "overlay", "virtio_net"]
CARD = "virtio-net-pci"
COUNTING_CPU = "max"
# Emulated, "rep movsb" and "rep stosb" take a step for each byte, and a fifth level of page tables
# is one more to walk: a boot took a third longer. Where instructions are counted, the processor
# stays what figures were taken with.
CPU = COUNTING_CPU + ",-erms,-fsrm,-la57"
MSIZE = 524288
SPLAT_LINES = 60
EVIDENCE_SECONDS = 40   # until a guest that hangs has printed its tasks, and until what its processors do
ERRORS = "qemu"     # errors of the guest's program itself go to gI.qemu

# The first process, in the initramfs: mount the root and switch to it.
INIT = r"""#!/bin/busybox sh
B=/bin/busybox
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
$B mount -t devtmpfs dev /dev; $B mount -t proc proc /proc; $B mount -t sysfs sys /sys
. /vm/env
for m in $(cat /vm/modules); do $B insmod /vm/ko/$m || echo "vm: insmod $m failed" >/dev/ttyS0; done
. /vm/lower
$B mount -t tmpfs -o mode=755 upper /upper; $B mkdir /upper/u /upper/w
$B mount -t overlay -o lowerdir=/lower,upperdir=/upper/u,workdir=/upper/w root /new
for d in proc sys dev; do $B mount --move /$d /new/$d; done
for d in tmp run; do $B mount -t tmpfs -o mode=1777 $d /new/$d; done
. /vm/mounts
$B cp -a /vm /new/run/vm; $B cp /bin/busybox /new/run/vm/busybox
[ -z "$VM_INIT" ] || { $B mkdir -p /new/run/systemd; $B mv /new/run/vm/system /new/run/systemd/system; }
exec $B switch_root /new ${VM_INIT:-/run/vm/main}
"""

# The unit that systemd starts last.
UNIT = """[Unit]
DefaultDependencies=no
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/run/vm/main
"""

# Second stage, in the real root: configure the machine, run the command, report, power off.
MAIN = r"""#!/bin/sh
. /run/vm/env
export VM_ME VM_N HOME=/root TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
B=/run/vm/busybox
if [ -z "$VM_INIT" ]; then
mkdir -p /dev/pts /dev/shm
$B mount -t devpts devpts /dev/pts
$B mount -t tmpfs -o mode=1777 shm /dev/shm
$B mount -t debugfs debug /sys/kernel/debug 2>/dev/null
$B mount -t cgroup2 cgroup /sys/fs/cgroup 2>/dev/null
fi
$B hostname g$VM_ME
$B ip link set lo up
j=0
while [ -e /sys/class/net/eth$j ]; do
	echo 0 >/proc/sys/net/ipv6/conf/eth$j/accept_dad
	$B ip addr add 10.7.$j.$VM_ME/24 dev eth$j
	[ $j = 0 ] && net=fd07:: || net=fd07:0:0:$j::
	$B ip addr add $net$VM_ME/64 dev eth$j
	$B ip link set eth$j up
	j=$((j + 1))
done
$B stty -F /dev/ttyS1 raw -echo
leaks=/sys/kernel/debug/kmemleak
if [ "$VM_LEAKS" = 1 ] && [ ! -e $leaks ]; then
	echo "vm: this kernel has no kmemleak" >/dev/ttyS1
fi
cd "$VM_TOP"
sh /run/vm/command </dev/null >/dev/ttyS1 2>&1
status=$?
if [ "$VM_LEAKS" = 1 ] && [ -e $leaks ]; then
	sleep 6		# younger objects are not reported
	echo scan >$leaks; echo scan >$leaks	# an object must look the same twice
	cat $leaks >/dev/ttyS0
	stty -F /dev/ttyS0 raw	# returns when all is out, here and below
fi
[ $status -le 126 ] || status=126
sync
stty -F /dev/ttyS1 raw
. /run/vm/report
$B poweroff -f
"""

# How machines of a kind do what all must do, in shell lines: mount %(root)s, read-only, at /lower;
# mount the directory %(source)s of number %(i)d at /new%(source)s to be written; report $status.
Shell = collections.namedtuple("Shell", ["lower", "share", "report"])
# The exit status is returned through isa-debug-exit (port 244), plus one: QEMU itself fails with 1.
QEMU = Shell(
    f"P=trans=virtio,version=9p2000.L,msize={MSIZE}\n$B mount -t 9p -o ro,cache=loose,$P root /lower",
    "$B mount -t 9p -o cache=none,$P share%(i)d /new%(source)s",
    r'printf "\\$(printf %03o $((status + 1)))" | dd of=/dev/port bs=1 seek=244 conv=notrunc 2>/dev/null')


def cache_dir():
    """Return the directory for files derived from installed packages."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.environ.get("ACP_CACHE") or os.path.join(base, "acp")
    os.makedirs(path, exist_ok=True)
    return path


def resolve_kernel(name, root="/"):
    """Return (release, build directory, image) of a kernel named as for scripts/harness/kernel and
    installed in a root.
    """
    run = subprocess.run([os.path.join(TOP, "scripts/harness/kernel"), name], stdout=subprocess.PIPE, text=True,
                         env={**os.environ, "ACP_ROOT": root.rstrip("/")})
    if run.returncode:
        raise SystemExit(125)
    return run.stdout.splitlines()[-1].split()


def _unpack(payload):
    if payload.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(31).decompress(payload)
    if payload.startswith(b"\x28\xb5\x2f\xfd"):
        # the last four bytes of the payload are not part of the zstd stream, so zstd reports an
        # error
        return subprocess.run(["zstd", "-dcq"], input=payload[:-4], stdout=subprocess.PIPE).stdout
    return b""


def elf_image(image):
    """Return the ELF kernel in a bzImage, cached. QEMU enters it through PVH: no BIOS, no
    decompressor.
    """
    with open(image, "rb") as f:
        data = f.read()
    if data.startswith(b"\x7fELF"):
        return image
    info = os.stat(image)
    path = os.path.join(cache_dir(), f"{os.path.basename(image)}-{info.st_size}-{int(info.st_mtime)}.elf")
    if os.path.exists(path):
        return path
    offset, length = struct.unpack_from("<II", data, 0x248)     # payload_offset, payload_length
    start = (data[0x1F1] + 1) * 512 + offset                    # after setup_sects sectors
    elf = _unpack(data[start:start + length])
    if not elf.startswith(b"\x7fELF"):
        return image
    with open(f"{path}.{os.getpid()}", "wb") as f:
        f.write(elf)
    os.rename(f.name, path)
    return path


def _module_files(release, names, root):
    """Return the files to insmod, in order, for modules named as for modprobe.

    Built-in modules need none.
    """
    files = []
    for name in names:
        run = subprocess.run(["modprobe", "-d", root, "-S", release, "--show-depends", name], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if run.returncode:
            raise SystemExit(f"vm: module {name} of {release}: {run.stderr.strip()}")
        for line in run.stdout.splitlines():
            kind, path = line.split()[:2]
            if kind == "insmod" and path not in files:
                files.append(path)
    return files


def _write(path, text, mode=0o644):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


def _copy_module(path, directory):
    """Copy a module, unpacked: busybox' insmod would cause a kernel warning otherwise."""
    name = os.path.basename(path)
    if not name.endswith(".xz"):
        shutil.copy(path, directory)
        return name
    with lzma.open(path) as packed, open(os.path.join(directory, name[:-3]), "wb") as f:
        shutil.copyfileobj(packed, f)
    return name[:-3]


def _cpio(tree):
    names = subprocess.run(["find", ".", "-mindepth", "1"], cwd=tree, stdout=subprocess.PIPE, check=True).stdout
    run = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=tree,
                         input=b"\n".join(sorted(names.split(b"\n"))[1:]) + b"\n", stdout=subprocess.PIPE, check=True)
    return run.stdout + b"\0" * (-len(run.stdout) % 4)


def base_archive(work, release, own_modules, modules, root="/"):
    """Create the part of the initramfs common to all guests. own_modules: it has files in
    /lib/modules of the root.
    """
    tree = os.path.join(work, "base")
    for d in ("bin", "dev", "proc", "sys", "lower", "upper", "new", "vm/ko"):
        os.makedirs(os.path.join(tree, d))
    shutil.copy(shutil.which("busybox") or "/bin/busybox", f"{tree}/bin/busybox")
    files = _module_files(release, BOOT_MODULES + modules, root) if own_modules else []
    names = [_copy_module(f, f"{tree}/vm/ko") for f in files]
    _write(f"{tree}/vm/modules", "\n".join(names) + "\n")
    _write(f"{tree}/init", INIT, 0o755)
    _write(f"{tree}/vm/main", MAIN, 0o755)
    return _cpio(tree)


def _mounts(see, share, shell):
    """Return shell lines that mount host directories in the guest."""
    lines = []
    for d in see:
        q = shlex.quote(d)
        lines.append(f"$B mkdir -p /new{q}; $B mount -o bind /lower{q} /new{q}")
    for i, d in enumerate(share):
        q = shlex.quote(d)
        lines.append(f"$B mkdir -p /new{q}; " + shell.share % {"i": i, "source": q})
    return "\n".join(lines) + "\n"


def _write_units(directory):
    """Install the command as the last unit that systemd starts."""
    os.makedirs(f"{directory}/multi-user.target.wants")
    _write(f"{directory}/vm.service", UNIT)
    os.symlink("../vm.service", f"{directory}/multi-user.target.wants/vm.service")


def write_initrd(work, base, me, opts, shell=QEMU):
    """Create the initramfs of guest me (1..n): the common archive followed by its own."""
    tree = os.path.join(work, f"tree{me}")
    os.makedirs(f"{tree}/vm")
    whole = opts.root == "/"
    env = {"VM_ME": me, "VM_N": len(opts.commands), "VM_TOP": TOP if whole else "/root",
           "VM_LEAKS": int(opts.kmemleak), "VM_INIT": opts.init}
    if opts.init:
        _write_units(f"{tree}/vm/system")
    _write(f"{tree}/vm/env", "".join(f"{k}={shlex.quote(str(v))}\n" for k, v in env.items()))
    _write(f"{tree}/vm/command", opts.commands[me - 1] + "\n")
    _write(f"{tree}/vm/lower", shell.lower % {"root": shlex.quote(opts.root)} + "\n")
    _write(f"{tree}/vm/mounts", _mounts([TOP] * whole + opts.see, opts.share, shell))
    _write(f"{tree}/vm/report", shell.report + "\n")
    path = os.path.join(work, f"g{me}.initrd")
    with open(path, "wb") as f:
        f.write(base)
        f.write(_cpio(tree))
    return path


def _nics(work, me, opts):
    """Return one network device per network; dgram connects two guests, mcast any number."""
    args, card = [], getattr(opts, "card", CARD)
    for j in range(opts.nics):
        if opts.net == "dgram":
            net = (f"dgram,id=n{j},local.type=unix,local.path={work}/n{j}.{me},"
                   f"remote.type=unix,remote.path={work}/n{j}.{3 - me}")
        elif opts.net == "mcast":
            net = f"socket,id=n{j},mcast={opts.mcast}:{opts.port + j},localaddr=127.0.0.1"
        else:
            net = f"hubport,id=n{j},hubid={j}"
        args += ["-netdev", net, "-device", f"{card},netdev=n{j},mac=52:54:00:07:{j:02x}:{me:02x}"]
    return args


def _cpu(opts):
    if opts.icount:     # guest time = instructions executed, the same in every run
        return ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-smp", "1"]
    # QEMU before 8.1 omits the memory barriers of a machine that never has a second processor,
    # although its devices (cards, disk, console) run in parallel to the first: their queues
    # sometimes stop forever.
    most = max(int(opts.smp), 2)
    return ["-accel", "tcg,thread=multi", "-smp", f"{opts.smp},maxcpus={most}"]


def _model(opts):
    return getattr(opts, "cpu", None) or (COUNTING_CPU if opts.icount else CPU)


@functools.cache
def tsc_khz():
    """Return the rate of this machine's time stamp counter, which guests use as clock."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("0f3148c1e2204809d0c3"))       # rdtsc; shl $32,%rdx; or %rdx,%rax; ret
    rdtsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))

    def look():     # read both clocks at the same time: the closest of several readings
        looks = [(time.monotonic_ns(), rdtsc(), time.monotonic_ns()) for _ in range(50)]
        before, tsc, after = min(looks, key=lambda x: x[2] - x[0])
        return (before + after) / 2, tsc
    ns, tsc = look()
    time.sleep(0.05)
    later_ns, later_tsc = look()
    return round((later_tsc - tsc) * 1e6 / (later_ns - ns))


def monitor_path(work, me):
    """Return the socket of the guest's QEMU monitor."""
    return f"{work}/g{me}.monitor"


def qemu_command(work, out, kernel, initrd, me, opts):
    """Return the command line of guest me: console to a file, the command's output to stdout."""
    # norandmaps: QEMU keeps a translation for each address at which code ran, and searches all
    # those of a page whenever the page is written. Clearing a page of libc after hundreds of
    # processes took a minute.
    # notests: the self-tests of ciphers are half of what the kernel does before the first process.
    # sysrq, unknown_nmi_panic, panic_print: evidence() makes a guest that hangs print all tasks,
    # then what its processors do. A panic must not print the tasks (panic_print=1): it takes locks
    # of the scheduler, and a guest that dies holding one would hang, and say nothing.
    append = "console=ttyS0 loglevel=5 panic=-1 oops=panic sysrq_always_enabled unknown_nmi_panic panic_print=0x40 " \
             "mitigations=off tsc=reliable no_timer_check nokaslr norandmaps cryptomgr.notests"
    # A guest that gets no processor while it calibrates the counter has a clock that is several
    # times too fast.
    if not opts.icount:
        append += f" tsc_early_khz={tsc_khz()}"
    if opts.init:
        append += " net.ifnames=0"      # udev would rename the interfaces
    if opts.kmemleak:
        append += " kmemleak=on"
    args = ["qemu-system-x86_64", "-machine", "q35", *_cpu(opts), "-cpu", _model(opts), "-m", opts.mem,
            "-nodefaults", "-no-user-config", "-display", "none",
            "-kernel", kernel, "-initrd", initrd, "-append", f"{append} {opts.append}".strip(),
            "-serial", f"file:{out}/g{me}.console", "-serial", "stdio",
            "-device", "isa-debug-exit,iobase=0xf4,iosize=0x04",
            "-fsdev", f"local,id=root,path={opts.root},security_model=none,readonly=on,multidevs=remap",
            "-device", "virtio-9p-pci,fsdev=root,mount_tag=root"]
    for i, d in enumerate(opts.share):
        args += ["-fsdev", f"local,id=share{i},path={d},security_model=none",
                 "-device", f"virtio-9p-pci,fsdev=share{i},mount_tag=share{i}"]
    if not opts.reboot:
        args.append("-no-reboot")
    if opts.monitor:
        args += ["-monitor", f"unix:{monitor_path(work, me)},server=on,wait=off"]
    if getattr(opts, "gdb", None):
        args += ["-gdb", f"unix:{opts.gdb},server=on,wait=off"]
    return args + _nics(work, me, opts)


def refused(_):
    """Return the options that such guests cannot have, in words, or an empty string."""
    return ""


def prepare(work, opts):
    """Return what all guests have: the kernel's image, and the common part of the initramfs."""
    release, _, image = resolve_kernel(opts.kernel, opts.root)
    own_modules = os.path.isdir(f"{opts.root}/lib/modules/{release}")
    return elf_image(image), base_archive(work, release, own_modules, opts.mod, opts.root)


def command(work, out, common, me, opts):
    """Return the command line of guest me."""
    kernel, base = common
    return qemu_command(work, out, kernel, write_initrd(work, base, me, opts), me, opts)


def status(code):
    """Return the command's status, or -1 if the guest died: QEMU's is (that + 1) * 2 + 1, 0 after a
    reset, 1 if it failed itself.
    """
    return (code >> 1) - 1 if code >= 3 and code & 1 else -1


def tell_monitor(path, *commands, seconds=2):
    """Give commands to a QEMU monitor; return what it prints until it is silent for that long."""
    said = b""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(seconds)
        s.connect(path)
        for command in commands:
            s.sendall(command.encode() + b"\n")
            try:
                while data := s.recv(65536):
                    said += data
            except TimeoutError:
                pass
    return said.decode(errors="replace")


def written(console, before):
    """Return what a console gets after its first bytes, when it is silent again."""
    size, end = before, time.monotonic() + EVIDENCE_SECONDS
    while time.monotonic() < end:
        time.sleep(3)
        if size == (size := os.path.getsize(console)) > before:
            break
    with open(console, "rb") as f:
        f.seek(before)
        return f.read().decode(errors="replace")


def evidence(work, me, console):
    """Return what a guest that hangs does: the registers of its processors, its tasks with their
    kernel stacks, if one of them still takes keys, then, after an NMI that ends it, their stacks.
    """
    before = os.path.getsize(console)
    monitor = monitor_path(work, me)
    try:
        said = tell_monitor(monitor, "info registers -a")
        tell_monitor(monitor, "sendkey alt-sysrq-8", "sendkey alt-sysrq-t")     # all levels, all tasks
        tasks = written(console, before)
        between = os.path.getsize(console)
        tell_monitor(monitor, "nmi")
        stacks = written(console, between)
    except OSError as trouble:
        return f"its monitor does not answer: {trouble}\n"
    registers = [line for line in said.splitlines() if line.startswith(("CPU#", "RIP=", "RAX=", "RSP=", "RSI="))]
    return "\n".join(registers) + f"\n{tasks}{stacks}"


def splat(console, end=None):
    """Return the kernel warning in the first bytes of a console log, or an empty string."""
    with open(os.path.join(TOP, "scripts/harness/splats")) as f:
        pattern = re.compile("|".join(line.strip() for line in f if not line.startswith("#")))
    with open(console, "rb") as f:
        lines = f.read(end).decode(errors="replace").splitlines()
    for i, line in enumerate(lines):
        if pattern.search(line):
            return "\n".join(lines[i:i + SPLAT_LINES])
    return ""
