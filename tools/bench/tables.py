# SPDX-License-Identifier: MIT
"""Tables of docs/figures.md from the output of acp_perf: each function takes its lines of CSV and
returns rows of texts, heading first. Times are thousand instructions, unless stated otherwise.
"""
import bars
import nodes
import ours

SHAPES = {"put": "put, in one piece", "signal": "put and flag: `acpx_copy_signal`",
          "put+flag": "put, and a put of the flag behind it", "strided": "words of 8 bytes: `acpx_copy_strided`",
          "copyv": "the same by `acpx_copyv`", "words": "the same by an `acp_copy` for each"}
SIZES = {8: "8 bytes", 512: "512 bytes", 1024: "1 KiB", 4096: "4 KiB", 8192: "8 KiB", 65536: "64 KiB", 1 << 20: "1 MiB"}
HEAPS = {"own": "own heap", "node": "heap of a rank on the same node", "far": "heap of a rank on the other node",
         "libc": "for comparison: `malloc`, `free` of the C library"}
MESSAGES = {"message into a mailbox": ("mailbox", "send", 1), "256 of them at once, each": ("mailbox", "send", 256),
            "copy that notifies": ("mailbox", "notify", 1), "256 of them at once, each ": ("mailbox", "notify", 256),
            "message to a posted receive": ("tag", "send", 1), "the same, while the receiver computes": ("tag", "busy", 1),
            "the same, with 1,000 other receives that are older": ("tag", "among", 1)}
ANSWERED = {"message into a mailbox, answered": ("mailbox", "round_trip"),
            "message to a posted receive, answered": ("tag", "round_trip"), "the same, posted later": ("tag", "kept")}
CROWDS = {1: "by one rank", 2: "by two at once", 4: "by all four at once"}


def median(rows, mode, op, size=None):
    return float(ours.pick(rows, mode, op, size)["median_us"])


def ratio(rows, mode, op, size=None):
    return float(ours.pick(rows, mode, op, size)["ratio"])


def each(rows, mode, op, window):
    """Return the thousand instructions of one of many operations."""
    return 1e6 / float(ours.pick(rows, mode, op, None, window)["ops_per_s"])


def integrity(lines):
    """Three runs, each after a line that names it."""
    names = [line.partition("=")[2] for line in lines if line.startswith("# ACP_INTEGRITY=")]
    runs = "\n".join(lines).split("# ACP_INTEGRITY=")[1:]
    found = [ours.read(run.splitlines()) for run in runs]
    accesses = {"put of 8 bytes": ("put", 8), "get of 8 bytes": ("get", 8), "fetch-and-add of 8 bytes": ("add8", 8),
                "put of 1 KiB": ("put", 1024), "put of 64 KiB": ("put", 65536)}
    return [["thousand instructions", *names],
            *([what, *(bars.number(median(rows, "latency", op, size)) for rows in found)] for what, (op, size) in accesses.items())]


def shapes(lines):
    rows, sizes = ours.read(lines), (8, 512, 8192)
    return [["thousand instructions", *(SIZES[size] for size in sizes)],
            *([what, *(bars.number(median(rows, "latency", op, size)) for size in sizes)] for op, what in SHAPES.items())]


def heaps(lines):
    rows = ours.read(lines)
    names = {place: (f"{place} alloc", f"{place} free") if place == "libc" else (f"alloc {place}", f"free {place}")
             for place in HEAPS}
    return [["thousand instructions, medians", "`acp_malloc`", "`acp_free`"],
            *([what, *(bars.number(median(rows, "heap", op)) for op in names[place])] for place, what in HEAPS.items())]


def channels(lines):
    rows, sizes = ours.read(lines), (8, 1024, 65536, 1 << 20)
    return [["channel to the other node", *(SIZES[size] for size in sizes)],
            ["half of the round trip, thousand instructions", *(bars.number(median(rows, "channel", "ping", n)) for n in sizes)],
            ["beside a put of the same size", *(f"{ratio(rows, 'channel', 'ping', n):.2f}" for n in sizes)],
            ["stream of messages, speed beside that of as many puts", *(f"{ratio(rows, 'channel', 'stream', n):.2f}" for n in sizes)]]


def messages(lines):
    """Thousand instructions, and in parentheses beside as many puts."""
    rows, sizes = ours.read(lines), (8, 4096, 65536)

    def cell(mode, op, window, size):
        try:
            row = ours.pick(rows, mode, op, size, window)
        except nodes.Unable:        # the mailbox is too small for them
            return "-"
        return f"{bars.number(float(row['median_us']))} ({float(row['ratio']):.2f})"

    return [["thousand instructions, medians (beside puts)", *(SIZES[size] for size in sizes)],
            *([what.strip(), *(cell(*of, size) for size in sizes)] for what, of in MESSAGES.items()),
            ["posting a receive", bars.number(median(rows, "tag", "post")), "", ""],
            *([what, *(bars.number(median(rows, *of, size)) for size in sizes)] for what, of in ANSWERED.items())]


def maps(lines):
    rows = ours.read(lines)
    return [["map over four ranks, thousand instructions each", "insert", "find"],
            *([what, *(bars.number(each(rows, "map", op, n)) for op in ("insert", "find"))] for n, what in CROWDS.items()),
            ["for comparison: `hsearch` of the C library", *(bars.number(each(rows, "map", op, 1)) for op in ("hsearch in", "hsearch"))]]


def delay(lines):
    """With a delay of 5 ms in each direction; milliseconds."""
    rows = ours.read(lines)
    put = median(rows, "latency", "put")
    told = {"put, to remote completion": put, "`acp_malloc` in the other node's heap": median(rows, "heap", "alloc far"),
            "`acp_free` there": median(rows, "heap", "free far"),
            "8 bytes by a channel, half of the round trip": median(rows, "channel", "ping")}
    return [["milliseconds, medians", "", "of a put"],
            *([what, f"{us / 1000:.2f}", f"{us / put:.2f}"] for what, us in told.items()),
            ["stream of 8 bytes, 8 messages at a time, beside as many puts", "", f"{ratio(rows, 'channel', 'stream'):.2f}"]]


# Name of a table -> its function, and the file with its data.
TABLES = {"integrity": (integrity, "integrity"), "shapes": (shapes, "shapes"), "heaps": (heaps, "middle"),
          "channels": (channels, "middle"), "maps": (maps, "middle"), "messages": (messages, "messages"), "delay": (delay, "delay")}
