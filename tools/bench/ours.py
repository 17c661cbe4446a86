# SPDX-License-Identifier: MIT
"""Measurements of ACP by acp_perf. Each function measures a part of the comparison and returns its
values: name -> (value, note). Times are microseconds, which are thousand instructions if time is
counted in instructions; speeds are MB/s (10^6 bytes).
"""
import csv

from nodes import Unable

PERF = "tools/perf/acp_perf"
MIB = 1 << 20


def read(lines):
    """Parse the output of acp_perf --format csv, of one or several runs. Rows with a wrong result
    are omitted.
    """
    rows, columns = [], None
    for line in lines:
        words = next(csv.reader([line]), [])
        if words[:2] == ["mode", "op"]:
            columns = words
        elif columns and len(words) == len(columns):
            rows.append(dict(zip(columns, words)))
    bad = [row for row in rows if row["wrong"] != "0"]
    if bad:
        raise Unable(f"{bad[0]['mode']} {bad[0]['op']}: WRONG data")
    return rows


def pick(rows, mode, op, size=None, window=None):
    """Return the row of a measurement; raise Unable with the reason if there is none."""
    for row in rows:
        if (row["mode"], row["op"]) == (mode, op) and size in (None, int(row["size"])) and \
                window in (None, int(row["window"])):
            if row["samples"] == "0":
                raise Unable(f"{mode} {op}: {row['note'] or 'not measured'}")
            return row
    raise Unable(f"{mode} {op}: no result")


def perf(place, words, **how):
    return read(place.job([PERF, *words, "--format", "csv"], **how))


def micro(row):
    return float(row["median_us"]), f"median of {row['samples']}"


def latency(place, quick):
    """8 bytes: put, get, atomics, and the ping-pong of UDP sockets between the same processes."""
    rows = perf(place, ["latency", "--op", "put,get,add8,cas8", "--size", "8", "--baseline-udp",
                        *(["--iters", "50"] if quick else [])])
    return {"udp": micro(pick(rows, "udp", "ping-pong")),
            **{op: micro(pick(rows, "latency", op)) for op in ("put", "get", "add8", "cas8")}}


def third(place, quick):
    """8 bytes from a second node to a third one."""
    rows = perf(place, ["latency", "--op", "copy3,add3", "--size", "8", "--baseline-udp"], ranks=3, nodes=3, more=["--mesh"])
    return {"third.udp": micro(pick(rows, "udp", "ping-pong")), "copy3": micro(pick(rows, "latency", "copy3")),
            "add3": micro(pick(rows, "latency", "add3"))}


def rate(place, quick):
    """8-byte operations, 256 outstanding."""
    rows = perf(place, ["rate", "--op", "put,get,add8", "--size", "8", "--window", "256"])
    return {f"rate.{op}": micro(pick(rows, "rate", op)) for op in ("put", "get", "add8")}


def stream(place, op, more=(), env=None):
    """Return MB/s of 1 MiB, the best of one and 16 outstanding."""
    rows = perf(place, ["bandwidth", "--op", op, "--size", "1M", "--window", "1,16", "--iters", "10"], patience=600,
                more=more, env=env)
    found = [pick(rows, "bandwidth", op, MIB, window) for window in (1, 16)]
    best = max(found, key=lambda row: float(row["mb_per_s"]))
    return float(best["mb_per_s"]), f"1 MiB, {best['window']} at once"


def bandwidth(place, quick):
    """1 MiB: put and get."""
    return {"bw.put": stream(place, "put"), "bw.get": stream(place, "get")}


def integrity(place, quick):
    """Puts of 1 MiB with each integrity of payloads."""
    values = {}
    for name in ("tag", "crc32c", "udp", "aead"):
        try:
            values[f"bw.put.{name}"] = stream(place, "put", env={"ACP_INTEGRITY": name})
        except Unable as e:
            values[f"bw.put.{name}"] = (None, str(e))
    return values


def loss(place, quick):
    """Puts of 1 MiB with and without 1 % packet loss."""
    return {"loss.none": stream(place, "put"), "loss.1%": stream(place, "put", ["--netem", "loss 1%"])}


def local(place, quick):
    """8 bytes within the process: instructions."""
    row = pick(perf(place, ["latency", "--op", "local", "--size", "8"]), "latency", "local")
    return {"local": (1000 * float(row["median_us"]), micro(row)[1])}


def node(place, quick):
    """Another rank of the same node. 8 bytes in instructions, 1 MiB compared with memcpy; into its
    heap, and into registered memory.
    """
    rows = perf(place, ["latency", "--op", "node,node8", "--size", "8,1M"], ranks=4, env={"ACP_HEAP_SIZE": "2M"})
    values = {"node.put": (1000 * float(pick(rows, "latency", "node", 8)["median_us"]), "into the heap"),
              "node.add8": (1000 * float(pick(rows, "latency", "node8")["median_us"]), "in the heap")}
    lent = perf(place, ["latency", "--op", "put", "--size", "1M"], nodes=1)
    for name, row in (("node.memcpy", pick(rows, "latency", "node", MIB)), ("node.lent", pick(lent, "latency", "put", MIB))):
        values[name] = (float(row["ratio"]), "speed beside memcpy, by turns")
    return values


def barrier(place, quick):
    """acp_sync of two ranks on two nodes."""
    return {"barrier": micro(pick(perf(place, ["barrier"]), "barrier", "acp_sync"))}


def collectives(place, quick):
    """Collectives of a group of two ranks on two nodes: the time of the slower one."""
    rows = perf(place, ["coll", "--op", "barrier,allreduce", "--size", "8"], env={"ACP_HEAP_SIZE": "16M"})
    return {"coll.barrier": micro(pick(rows, "coll", "barrier")), "coll.allreduce": micro(pick(rows, "coll", "allreduce", 8))}


def messages(place, quick):
    """Messages to posted receives. 8 bytes: half of a round trip, and until the sender's completion;
    1 MiB, answered by 8 bytes. Compared with part mpi-messages.
    """
    def tag(size, iters):
        return perf(place, ["tag", "--size", size, "--iters", str(iters)], env={"ACP_HEAP_SIZE": "16M"}, patience=600)

    rows = tag("8", 300)
    trip, note = micro(pick(rows, "tag", "round_trip", 8))
    values = {"message": (trip / 2, f"half of the round trip; {note}"), "message.done": micro(pick(rows, "tag", "send", 8))}
    if not quick:
        trip = float(pick(tag("1M", 20), "tag", "round_trip", MIB)["median_us"])
        values["bw.message"] = (MIB / trip, "1 MiB, answered by 8 bytes")
    return values


def idle(place, quick):
    """Cost of four idle ranks. CPU load in percent of the ranks and of the threads of the module
    together.
    """
    rows = perf(place, ["idle", "--seconds", "2" if quick else "10"], ranks=4)
    row = pick(rows, "idle", "sleep")
    return {"idle": (float(row["ratio"]), row["note"])}


def registration(place, quick):
    """Register 1 GiB and a quarter of it, with pages of 4 KiB and of 2 MiB."""
    bytes_of = {"256M": 256 * MIB} if quick else {"256M": 256 * MIB, "1G": 1024 * MIB}

    def rows_with(setting):
        place.here.run(["sh", "-c", f"echo {setting} >/sys/kernel/mm/transparent_hugepage/enabled"])
        return perf(place, ["register", "--size", ",".join(bytes_of), "--iters", "5"], ranks=1, nodes=1, patience=600)

    huge = small = rows_with("always")
    kind = "thp"
    # an acp_perf that registers memory with the default page size only
    if not any(row["op"] == kind for row in huge):
        small, kind = rows_with("never"), "register"
    return {f"register.{name}.{word}": micro(pick(rows, "register", op, size)) for word, size in bytes_of.items()
            for name, rows, op in (("4k", small, "register"), ("2m", huge, kind))}


# Part -> its function, timeout in seconds, places where it can be measured (icount: namespaces;
# guests; nodes), its values.
PARTS = {
    "latency": (latency, 300, "icount guests nodes", "udp put get add8 cas8"),
    "third": (third, 300, "icount", "third.udp copy3 add3"),
    "rate": (rate, 300, "icount guests nodes", "rate.put rate.get rate.add8"),
    "bandwidth": (bandwidth, 900, "icount plain guests nodes", "bw.put bw.get"),
    "integrity": (integrity, 900, "icount plain", "bw.put.tag bw.put.crc32c bw.put.udp bw.put.aead"),
    "local": (local, 120, "icount", "local"),
    "node": (node, 300, "icount guests nodes", "node.put node.add8 node.memcpy node.lent"),
    "barrier": (barrier, 300, "icount guests nodes", "barrier"),
    "collectives": (collectives, 300, "icount guests nodes", "coll.barrier coll.allreduce"),
    "messages": (messages, 900, "icount plain", "message message.done bw.message"),
    "loss": (loss, 900, "icount", "loss.none loss.1%"),
    "idle": (idle, 120, "icount nodes", "idle"),
    "register": (registration, 600, "icount", "register.4k.256M register.4k.1G register.2m.256M register.2m.1G"),
}
