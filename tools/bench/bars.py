# SPDX-License-Identifier: MIT
"""What is to be reached, as a table: each line compares one of our values with a peer's or with a number.

A value's name has the place where it was measured before it: icount/put, guests/udp. The best of several peers is
taken where a line names more than one.
"""

LATENCY, SPEED = "latency", "speed"     # smaller is better; larger is better


class Bar:
    """A line: what, our value, its peers (name -> what it is called), what the ratio must not cross.

    kind LATENCY: ours / peer <= limit; SPEED: ours / peer >= limit. peers None: our value itself is compared.
    limit None: the ratio is told only."""

    def __init__(self, what, ours, peers, limit, kind=LATENCY, unit="us"):
        self.what, self.ours, self.peers, self.limit, self.kind, self.unit = what, ours, peers, limit, kind, unit

    def best(self, values):
        """Name and value of the best peer that was measured, or (None, None)."""
        found = [(values[key], name) for key, name in self.peers.items() if values.get(key) is not None]
        if not found:
            return None, None
        value, name = (min if self.kind == LATENCY else max)(found)
        return name, value

    def evaluate(self, values):
        """The line as a dictionary of texts and numbers; met is True, False or None: not known, or nothing to meet."""
        ours = values.get(self.ours)
        line = {"what": self.what, "place": self.ours.partition("/")[0], "unit": self.unit, "ours": ours, "peer": "",
                "theirs": None, "ratio": None, "limit": self.limit, "kind": self.kind, "met": None}
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


TCP_UDP = {"icount/iperf.tcp": "iperf3 TCP", "icount/udp.gso": "UDP with GSO", "icount/iperf.udp": "iperf3 UDP"}
GUESTS_UDP = {"guests/iperf.udp": "iperf3 UDP"}

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
    Bar("put of 1 MiB", "icount/bw.put", TCP_UDP, 0.9, SPEED, "MB/s"),
    Bar("put of 1 MiB", "icount/bw.put", {"icount/rxe.bw.put": "soft-RoCE write"}, 4, SPEED, "MB/s"),
    Bar("get of 1 MiB", "icount/bw.get", TCP_UDP, 0.9, SPEED, "MB/s"),
    Bar("get of 1 MiB", "icount/bw.get", {"icount/rxe.bw.get": "soft-RoCE read"}, 4, SPEED, "MB/s"),
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
    Bar("put of 1 MiB, 1 % loss", "icount/loss.1%", {"icount/loss.none": "ACP without loss"}, 0.7, SPEED, "MB/s"),
    Bar("four ranks that wait", "icount/idle", None, 0.0005, LATENCY, "of a processor"),
    Bar("registering 1 GiB of 2 MiB pages", "icount/register.2m.1G", {"icount/register.4k.1G": "of 4 KiB pages"}, 1 / 50),
    Bar("registering 1 GiB of 4 KiB pages", "icount/register.4k.1G", {"icount/register.4k.256M": "256 MiB"}, 4.4),
    *eight("guests", "two machines: put of 8 bytes", "put", [
        ("udp", "UDP ping-pong", 0.7), ("udp.busy", "UDP, busy", None), ("rxe.put", "soft-RoCE write", 0.9),
        ("rxe.put.half", "soft-RoCE ib_write_lat", None), ("ucx.put", "UCX put", None)]),
    Bar("two machines: put of 1 MiB", "guests/bw.put", {"guests/rxe.bw.put": "soft-RoCE write"}, 1.5, SPEED, "MB/s"),
    Bar("two machines: put of 1 MiB", "guests/bw.put", GUESTS_UDP, 1, SPEED, "MB/s"),
    Bar("two machines: put of 1 MiB", "guests/bw.put", {"guests/iperf.tcp": "iperf3 TCP"}, None, SPEED, "MB/s"),
    Bar("same node, by the clock: 1 MiB, into a heap", "guests/node.memcpy", None, None, SPEED, "of memcpy"),
    Bar("same node, by the clock: 1 MiB, into registered memory", "guests/node.lent", None, None, SPEED, "of memcpy"),
]

# Who does what: our own values and those of all peers, side by side.  ACP's are named as those below.
COLUMNS = {"put, there and back": "put", "get": "get", "fetch-and-add": "add8", "barrier": "barrier",
           "puts at once": "rate", "put of 1 MiB": "bw.put", "get of 1 MiB": "bw.get"}
OURS = {"rate": "rate.put"}
PEERS = {
    "kernel UDP echo": {"put": "kernel-echo"}, "ICMP echo": {"put": "icmp"},
    "UDP ping-pong, streams with GSO": {"put": "udp", "bw.put": "udp.gso"},
    "UDP ping-pong, busy": {"put": "udp.busy"},
    "TCP ping-pong, iperf3 TCP": {"put": "tcp", "bw.put": "iperf.tcp"}, "iperf3 UDP": {"bw.put": "iperf.udp"},
    "soft-RoCE": {column: f"rxe.{column}" for column in COLUMNS.values()},
    "soft-RoCE send": {"put": "rxe.send"},
    "UCX, TCP": {column: f"ucx.{column}" for column in COLUMNS.values()},
    "Open MPI, TCP": {column: f"mpi.{column}" for column in COLUMNS.values()},
    "Open MPI, UCX, TCP": {column: f"mpi-ucx.{column}" for column in COLUMNS.values()},
}

# The same questions on machines of one's own.
NODES = [
    *eight("nodes", "put of 8 bytes", "put", [
        ("udp", "UDP ping-pong", None), ("udp.busy", "UDP, busy", None), ("tcp", "TCP ping-pong", None),
        ("icmp", "ICMP echo", None), ("rxe.put", "soft-RoCE write", None), ("ucx.put", "UCX put", None)]),
    *eight("nodes", "get of 8 bytes", "get", [("udp", "UDP ping-pong", None), ("ucx.get", "UCX get", None)]),
    *eight("nodes", "fetch-and-add", "add8", [("udp", "UDP ping-pong", None), ("ucx.add8", "UCX fetch-and-add", None)]),
    Bar("put of 8 bytes, 256 at once", "nodes/rate.put", {"nodes/rxe.rate": "soft-RoCE write"}, None),
    Bar("put of 1 MiB", "nodes/bw.put", {"nodes/iperf.tcp": "iperf3 TCP", "nodes/udp.gso": "UDP with GSO"}, None, SPEED,
        "MB/s"),
    Bar("put of 1 MiB", "nodes/bw.put", {"nodes/rxe.bw.put": "soft-RoCE write"}, None, SPEED, "MB/s"),
    Bar("same node: 1 MiB, into a heap", "nodes/node.memcpy", None, 0.95, SPEED, "of memcpy"),
    Bar("same node: 1 MiB, into registered memory", "nodes/node.lent", None, 0.95, SPEED, "of memcpy"),
    Bar("four ranks that wait", "nodes/idle", None, 0.0005, LATENCY, "of a processor"),
]


def table(values, places):
    """All lines of some places, evaluated."""
    return [bar.evaluate(values) for bar in BARS + NODES if bar.ours.partition("/")[0] in places]


def number(value):
    if value is None:
        return "-"
    if value == 0 or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:#.3g}" if value < 100 else f"{value:.0f}"


def cells(line):
    """A line as texts: what, ours, peer, theirs, ratio, bar, met."""
    sign = "<=" if line["kind"] == LATENCY else ">="
    met = {True: "yes", False: "no", None: "-" if line["limit"] is None else "not measured"}[line["met"]]
    return [line["what"], f"{number(line['ours'])} {line['unit']}", line["peer"], number(line["theirs"]) if line["peer"] else "",
            f"{line['ratio']:.3g}" if line["ratio"] is not None else "",
            "" if line["limit"] is None else f"{sign} {line['limit']:.3g}", met]


def side_by_side(values, place):
    """Rows of texts, heading first: what each takes, and in brackets ACP's divided by it; only who was measured."""
    def value(name):
        return values.get(f"{place}/{name}")

    ours = {column: value(OURS.get(column, column)) for column in COLUMNS.values()}
    rows = [["", *COLUMNS], ["ACP", *(number(ours[column]) for column in COLUMNS.values())]]
    for peer, names in PEERS.items():
        found = {column: value(name) for column, name in names.items() if value(name)}
        if found:
            rows.append([peer, *("" if column not in found else number(found[column]) if ours[column] is None else
                                 f"{number(found[column])} ({ours[column] / found[column]:.2g})" for column in COLUMNS.values())])
    return rows


HEADING = ["", "ACP", "beside", "", "ratio", "bar", "met"]


def text(lines):
    """For a terminal."""
    return columns([HEADING, *(cells(line) for line in lines)])


def columns(rows):
    """Rows of texts for a terminal."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def markdown(rows):
    """Rows of texts, heading first, for a document."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]])


def marked(lines):
    """For a document."""
    return markdown([HEADING, *(cells(line) for line in lines)])


def summary(lines):
    met = [line["met"] for line in lines if line["limit"] is not None]
    return f"{met.count(True)} met, {met.count(False)} not met, {met.count(None)} not measured"
