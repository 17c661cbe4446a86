# SPDX-License-Identifier: MIT
"""The table of targets: each line compares one of our values with that of a peer or with a number.

The name of a value begins with the place where it was measured: icount/put, guests/udp. If a
line names several peers, the best one is used.
"""

LATENCY, SPEED = "latency", "speed"     # smaller is better; larger is better
# Where time is counted in instructions, 1 us is 1,000 instructions.
COUNTED = {"us": "thousand instructions", "MB/s": "bytes per thousand instructions"}


def unit_of(place, unit):
    return COUNTED.get(unit, unit) if place in ("icount", "plain") else unit


class Bar:
    """A line: description, our value, its peers (name -> label), and the limit of the ratio.

    kind LATENCY: ours / peer <= limit; SPEED: ours / peer >= limit. peers None: our value itself
    is compared. limit None: the ratio is only shown.
    """

    def __init__(self, what, ours, peers, limit, kind=LATENCY, unit="us"):
        self.what, self.ours, self.peers, self.limit, self.kind, self.unit = what, ours, peers, limit, kind, unit

    def best(self, values):
        """Return name and value of the best peer that was measured, or (None, None)."""
        found = [(values[key], name) for key, name in self.peers.items() if values.get(key) is not None]
        if not found:
            return None, None
        value, name = (min if self.kind == LATENCY else max)(found)
        return name, value

    def evaluate(self, values):
        """Return the line as a dictionary of texts and numbers. met: True, False, or None (not
        measured, or no limit).
        """
        ours = values.get(self.ours)
        place = self.ours.partition("/")[0]
        line = {"what": self.what, "place": place, "unit": unit_of(place, self.unit), "ours": ours,
                "peer": "", "theirs": None, "ratio": None, "limit": self.limit, "kind": self.kind, "met": None}
        compared = ours
        if self.peers is not None:
            line["peer"], line["theirs"] = self.best(values)
            line["peer"] = line["peer"] or " or ".join(self.peers.values())
            compared = line["ratio"] = ours / line["theirs"] if ours is not None and line["theirs"] else None
        if self.limit is not None and compared is not None:
            line["met"] = compared <= self.limit if self.kind == LATENCY else compared >= self.limit
        return line


def eight(place, what, ours, bars):
    return [Bar(what, f"{place}/{ours}", {f"{place}/{peer}": name}, limit) for peer, name, limit in bars]


def streams(place):
    """Return the peers of a stream: everything that applications can get from TCP and UDP, with and
    without copies.
    """
    return {f"{place}/iperf.tcp": "iperf3 TCP", f"{place}/iperf.tcp.zero": "iperf3 TCP -Z",
            f"{place}/udp.gso": "UDP with GSO", f"{place}/udp.zerocopy": "UDP with GSO, MSG_ZEROCOPY",
            f"{place}/iperf.udp": "iperf3 UDP"}


def one_mebibyte(place):
    """Return lines for streams where instructions are counted. Soft-RoCE checksums payloads (ICRC),
    so it is compared with our integrity that does so as well. With ERMS, a copy counts one
    instruction per byte: limits apply without it only.
    """
    bar, rxe = (0.9, 4) if place == "plain" else (None, None)
    end = "" if place == "plain" else ", ERMS"
    write, read = {f"{place}/rxe.bw.put": "soft-RoCE write"}, {f"{place}/rxe.bw.get": "soft-RoCE read"}
    return [Bar(f"put of 1 MiB{end}", f"{place}/bw.put", streams(place), bar, SPEED, "MB/s"),
            Bar(f"get of 1 MiB{end}", f"{place}/bw.get", streams(place), bar, SPEED, "MB/s"),
            Bar(f"put of 1 MiB, integrity tag{end}", f"{place}/bw.put.tag", write, rxe, SPEED, "MB/s"),
            Bar(f"put of 1 MiB, integrity crc32c{end}", f"{place}/bw.put.crc32c", write, rxe, SPEED, "MB/s"),
            Bar(f"put of 1 MiB, integrity udp{end}", f"{place}/bw.put.udp", write, None, SPEED, "MB/s"),
            Bar(f"get of 1 MiB{end}", f"{place}/bw.get", read, None, SPEED, "MB/s")]


TCP_UDP_GUESTS = {name: text for name, text in streams("guests").items() if "tcp" not in name}

BARS = [
    *eight("icount", "put of 8 bytes", "put", [
        ("udp", "UDP ping-pong", 0.45), ("icmp", "ICMP echo", 0.95), ("rxe.put", "soft-RoCE write", 0.5),
        ("ucx.put", "UCX put", 0.3), ("mpi.put", "Open MPI put", 0.13)]),
    *eight("icount", "get of 8 bytes", "get", [("udp", "UDP ping-pong", 0.5)]),
    *eight("icount", "fetch-and-add", "add8", [("udp", "UDP ping-pong", 0.5)]),
    *eight("icount", "compare-and-swap", "cas8", [("udp", "UDP ping-pong", 0.5)]),
    *eight("icount", "copy from a second node to a third", "copy3", [("third.udp", "UDP ping-pong", 0.75)]),
    Bar("put of 8 bytes, 256 at once", "icount/rate.put", None, 2.0),
    *eight("icount", "put of 8 bytes, 256 at once", "rate.put", [
        ("mpi.rate", "Open MPI put", None), ("rxe.rate", "soft-RoCE write", None)]),
    *one_mebibyte("plain"),
    *one_mebibyte("icount"),
    Bar("8 bytes to a posted receive, one way", "icount/message", {"icount/mpi.message": "Open MPI send and receive"}, 0.35),
    Bar("8 bytes to a posted receive, until complete", "icount/message.done", {"icount/mpi.message.done": "Open MPI MPI_Ssend"},
        None),
    *(Bar(f"1 MiB to a posted receive{end}", f"{place}/bw.message", {f"{place}/mpi.bw.message": "Open MPI send and receive"}, None,
          SPEED, "MB/s") for place, end in (("plain", ""), ("icount", ", ERMS"))),
    Bar("copies of what is put, at the sender", "icount/copies.initiator", None, 0.05, LATENCY, "copies"),
    Bar("copies of what is put, at the receiver", "icount/copies.target", None, 1.05, LATENCY, "copies"),
    Bar("copy of 8 bytes in the process", "icount/local", None, 100, LATENCY, "instructions"),
    Bar("same node: put of 8 bytes", "icount/node.put", None, 250, LATENCY, "instructions"),
    Bar("same node: put of 8 bytes", "icount/node.put", {"icount/ucx.shm.put": "UCX put"}, 1, LATENCY, "instructions"),
    Bar("same node: put of 8 bytes", "icount/node.put", {"icount/mpi.shm.put": "Open MPI put"}, None, LATENCY, "instructions"),
    Bar("same node: fetch-and-add", "icount/node.add8", None, 250, LATENCY, "instructions"),
    Bar("same node: fetch-and-add", "icount/node.add8", {"icount/ucx.shm.add8": "UCX fetch-and-add"}, 1, LATENCY,
        "instructions"),
    Bar("same node: fetch-and-add", "icount/node.add8", {"icount/mpi.shm.add8": "Open MPI fetch_and_op"}, None, LATENCY,
        "instructions"),
    Bar("same node: 1 MiB, into a heap", "icount/node.memcpy", None, 0.95, SPEED, "of memcpy"),
    Bar("same node: 1 MiB, into registered memory", "icount/node.lent", None, 0.95, SPEED, "of memcpy"),
    Bar("barrier of two nodes", "icount/barrier", {"icount/mpi.barrier": "Open MPI barrier"}, None),
    Bar("barrier of a group of two nodes", "icount/coll.barrier", None, 18.5),
    Bar("barrier of a group of two nodes", "icount/coll.barrier", {"icount/mpi.barrier": "Open MPI barrier"}, 0.22),
    Bar("allreduce of a double", "icount/coll.allreduce", {"icount/coll.barrier": "barrier of the group"}, 1.2),
    Bar("allreduce of a double", "icount/coll.allreduce", {"icount/mpi.allreduce": "Open MPI allreduce"}, 0.25),
    Bar("put of 1 MiB, 1 % loss", "icount/loss.1%", {"icount/loss.none": "ACP without loss"}, 0.7, SPEED,
        "bytes per us, waiting included"),
    Bar("four ranks that wait", "icount/idle", None, 0.0005, LATENCY, "of a processor"),
    Bar("registering 1 GiB of 2 MiB pages", "icount/register.2m.1G", {"icount/register.4k.1G": "of 4 KiB pages"}, 1 / 50),
    Bar("registering 1 GiB of 4 KiB pages", "icount/register.4k.1G", {"icount/register.4k.256M": "256 MiB"}, 4.4),
    *eight("guests", "two machines: put of 8 bytes", "put", [
        ("udp", "UDP ping-pong", 0.7), ("udp.busy", "UDP, busy", None), ("rxe.put", "soft-RoCE write", 0.9),
        ("rxe.put.half", "soft-RoCE ib_write_lat", None), ("ucx.put", "UCX put", None)]),
    Bar("two machines: put of 1 MiB", "guests/bw.put", {"guests/rxe.bw.put": "soft-RoCE write"}, 1.5, SPEED, "MB/s"),
    Bar("two machines: put of 1 MiB", "guests/bw.put", TCP_UDP_GUESTS, 1, SPEED, "MB/s"),
    Bar("two machines: put of 1 MiB", "guests/bw.put", {"guests/iperf.tcp": "iperf3 TCP",
                                                       "guests/iperf.tcp.zero": "iperf3 TCP -Z"}, None, SPEED, "MB/s"),
    Bar("same node, wall-clock time: 1 MiB, into a heap", "guests/node.memcpy", None, None, SPEED, "of memcpy"),
    Bar("same node, wall-clock time: 1 MiB, into registered memory", "guests/node.lent", None, None, SPEED, "of memcpy"),
]

# Comparison of implementations: our values and those of all peers, side by side. ACP's have the
# same names as those of the peers.
COLUMNS = {"put, round trip": "put", "get": "get", "fetch-and-add": "add8", "barrier": "barrier",
           "puts at once": "rate", "put of 1 MiB": "bw.put", "get of 1 MiB": "bw.get"}
OURS = {"rate": "rate.put"}
PEERS = {
    "kernel UDP echo": {"put": "kernel-echo"}, "ICMP echo": {"put": "icmp"},
    "UDP ping-pong, streams with GSO": {"put": "udp", "bw.put": "udp.gso"},
    "UDP ping-pong, busy": {"put": "udp.busy"},
    "UDP streams with GSO, MSG_ZEROCOPY": {"bw.put": "udp.zerocopy"},
    "TCP ping-pong, iperf3 TCP": {"put": "tcp", "bw.put": "iperf.tcp"}, "iperf3 TCP -Z": {"bw.put": "iperf.tcp.zero"},
    "iperf3 UDP": {"bw.put": "iperf.udp"},
    "soft-RoCE": {column: f"rxe.{column}" for column in COLUMNS.values()},
    "soft-RoCE send": {"put": "rxe.send"},
    "UCX, TCP": {column: f"ucx.{column}" for column in COLUMNS.values()},
    "Open MPI, TCP": {column: f"mpi.{column}" for column in COLUMNS.values()},
    "Open MPI, UCX, TCP": {column: f"mpi-ucx.{column}" for column in COLUMNS.values()},
}

# The same comparisons on physical machines.
NODES = [
    *eight("nodes", "put of 8 bytes", "put", [
        ("udp", "UDP ping-pong", None), ("udp.busy", "UDP, busy", None), ("tcp", "TCP ping-pong", None),
        ("icmp", "ICMP echo", None), ("rxe.put", "soft-RoCE write", None), ("ucx.put", "UCX put", None)]),
    *eight("nodes", "get of 8 bytes", "get", [("udp", "UDP ping-pong", None), ("ucx.get", "UCX get", None)]),
    *eight("nodes", "fetch-and-add", "add8", [("udp", "UDP ping-pong", None), ("ucx.add8", "UCX fetch-and-add", None)]),
    Bar("put of 8 bytes, 256 at once", "nodes/rate.put", {"nodes/rxe.rate": "soft-RoCE write"}, None),
    Bar("put of 1 MiB", "nodes/bw.put", streams("nodes"), None, SPEED, "MB/s"),
    Bar("put of 1 MiB", "nodes/bw.put", {"nodes/rxe.bw.put": "soft-RoCE write"}, None, SPEED, "MB/s"),
    Bar("same node: 1 MiB, into a heap", "nodes/node.memcpy", None, 0.95, SPEED, "of memcpy"),
    Bar("same node: 1 MiB, into registered memory", "nodes/node.lent", None, 0.95, SPEED, "of memcpy"),
    Bar("four ranks that wait", "nodes/idle", None, 0.0005, LATENCY, "of a processor"),
]


def table(values, places):
    """Evaluate all lines of some places."""
    return [bar.evaluate(values) for bar in BARS + NODES if bar.ours.partition("/")[0] in places]


def number(value):
    if value is None:
        return "-"
    if value == 0 or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:#.3g}" if value < 100 else f"{value:.0f}"


def cells(line):
    """Format a line: description, ours, peer, theirs, ratio, limit, met."""
    sign = "<=" if line["kind"] == LATENCY else ">="
    met = {True: "yes", False: "no", None: "-" if line["limit"] is None else "not measured"}[line["met"]]
    return [line["what"], f"{number(line['ours'])} {line['unit']}", line["peer"], number(line["theirs"]) if line["peer"] else "",
            f"{line['ratio']:.3g}" if line["ratio"] is not None else "",
            "" if line["limit"] is None else f"{sign} {line['limit']:.3g}", met]


def side_by_side(values, place):
    """Return rows of texts with a heading: values of each implementation, and in brackets ACP's
    divided by it. Implementations that were not measured are omitted. The first cell names the
    units: of times, and of the columns "of 1 MiB".
    """
    def value(name):
        return values.get(f"{place}/{name}")

    ours = {column: value(OURS.get(column, column)) for column in COLUMNS.values()}
    units = f"{unit_of(place, 'us')}; of 1 MiB: {unit_of(place, 'MB/s')}"
    rows = [[units, *COLUMNS], ["ACP", *(number(ours[column]) for column in COLUMNS.values())]]
    for peer, names in PEERS.items():
        found = {column: value(name) for column, name in names.items() if value(name)}
        if found:
            rows.append([peer, *("" if column not in found else number(found[column]) if ours[column] is None else
                                 f"{number(found[column])} ({ours[column] / found[column]:.2g})" for column in COLUMNS.values())])
    return rows


HEADING = ["", "ACP", "beside", "", "ratio", "bar", "met"]


def text(lines):
    """Format for a terminal."""
    return columns([HEADING, *(cells(line) for line in lines)])


def columns(rows):
    """Format rows of texts for a terminal."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def markdown(rows):
    """Format rows of texts with a heading as Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]])


def marked(lines):
    """Format as Markdown."""
    return markdown([HEADING, *(cells(line) for line in lines)])


def summary(lines):
    met = [line["met"] for line in lines if line["limit"] is not None]
    return f"{met.count(True)} met, {met.count(False)} not met, {met.count(None)} not measured"
