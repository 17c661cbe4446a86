# SPDX-License-Identifier: MIT
"""Charts of the comparison as SVG: bars grouped by operation, one colour per implementation, light
or dark.
"""
import os
from xml.sax.saxutils import escape

# Implementation -> its colour in a light and in a dark scheme, in all charts.
COLOURS = {"ACP": ("#0969da", "#58a6ff"), "sockets": ("#9a6700", "#d29922"), "kernel": ("#57606a", "#8b949e"),
           "soft-RoCE": ("#8250df", "#bc8cff"), "UCX": ("#1a7f37", "#3fb950"), "Open MPI": ("#cf222e", "#ff7b72")}

# Operation -> bars: implementation, label, name of the value.
LATENCY = {
    "put, or a message and its answer": [
        ("ACP", "ACP put", "put"), ("kernel", "ICMP echo", "icmp"), ("kernel", "kernel UDP echo", "kernel-echo"),
        ("sockets", "UDP ping-pong", "udp"), ("sockets", "TCP ping-pong", "tcp"),
        ("soft-RoCE", "soft-RoCE write", "rxe.put"), ("UCX", "UCX put", "ucx.put"),
        ("Open MPI", "Open MPI put", "mpi.put")],
    "get": [("ACP", "ACP get", "get"), ("soft-RoCE", "soft-RoCE read", "rxe.get"), ("UCX", "UCX get", "ucx.get"),
            ("Open MPI", "Open MPI get", "mpi.get")],
    "fetch-and-add": [("ACP", "ACP add8", "add8"), ("soft-RoCE", "soft-RoCE atomic", "rxe.add8"),
                      ("UCX", "UCX fetch-add", "ucx.add8"), ("Open MPI", "Open MPI fetch-op", "mpi.add8")]}
SPEED = {
    "put, or a stream": [
        ("ACP", "ACP put", "bw.put"), ("sockets", "iperf3 TCP", "iperf.tcp"), ("sockets", "UDP with GSO", "udp.gso"),
        ("sockets", "iperf3 UDP", "iperf.udp"), ("soft-RoCE", "soft-RoCE write", "rxe.bw.put"),
        ("UCX", "UCX put", "ucx.bw.put"), ("Open MPI", "Open MPI put", "mpi.bw.put")],
    "get": [("ACP", "ACP get", "bw.get"), ("soft-RoCE", "soft-RoCE read", "rxe.bw.get"),
            ("Open MPI", "Open MPI get", "mpi.bw.get")]}

# If time is counted in instructions, charts show these: 1 us is 1,000 instructions.
UNITS = {"icount": ("thousand instructions, all processes and the kernel", "bytes per thousand instructions")}
CLOCK = ("microseconds", "MB/s (10^6 bytes)")

WIDTH, LEFT, RIGHT, BAR = 860, 170, 90, 20
STYLE = "text { font: 13px sans-serif; fill: #1b1f24 } .title { font-weight: bold; font-size: 15px } .small { font-size: 11px }"


def style():
    """Return styles for both schemes; the reader's preference selects one."""
    light = " ".join(f".{css(name)} {{ fill: {colour} }}" for name, (colour, _) in COLOURS.items())
    dark = " ".join(f".{css(name)} {{ fill: {colour} }}" for name, (_, colour) in COLOURS.items())
    return f"<style>\n{STYLE}\n{light}\n@media (prefers-color-scheme: dark) {{\ntext {{ fill: #e6edf3 }} {dark} }}\n</style>"


def css(implementation):
    return implementation.lower().replace(" ", "-")


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>'


def measured(groups, values, place):
    """Return operation -> bars that have a value: implementation, label, value."""
    found = {operation: [(software, name, values[f"{place}/{key}"]) for software, name, key in bars
                         if values.get(f"{place}/{key}") is not None] for operation, bars in groups.items()}
    return {operation: bars for operation, bars in found.items() if bars}


def chart(y, title, subtitle, groups, digits):
    """Return the SVG elements of a chart that begins at y, and its end."""
    most = max(value for bars in groups.values() for _, _, value in bars)
    out = [text(12, y + 20, title, "title"), text(12, y + 38, subtitle, "small")]
    y += 46
    for operation, bars in groups.items():
        out.append(text(12, y + 16, operation, "small"))
        y += 22
        for software, name, value in bars:
            length = value / most * (WIDTH - LEFT - RIGHT)
            out += [text(LEFT - 8, y + 14, name, anchor="end"),
                    f'<rect class="{css(software)}" x="{LEFT}" y="{y + 2}" width="{length:.1f}" height="{BAR - 4}" rx="2"/>',
                    text(LEFT + length + 6, y + 14, f"{value:,.{digits}f}")]
            y += BAR
        y += 6
    return out, y + 10


def picture(values, place, machine):
    """Return the SVG of the values of a place, or None if there are none."""
    units, out, y = UNITS.get(place, CLOCK), [], 0
    for groups, title, hint, unit, digits in (
            (LATENCY, "Latency of 8 bytes, from the call until it is complete", "lower is better", units[0], 1),
            (SPEED, "Bandwidth of 1 MiB", "higher is better", units[1], 0)):
        found = measured(groups, values, place)
        if found:
            drawn, y = chart(y, title, f"{hint}; {unit}", found, digits)
            out += drawn
    if not out:
        return None
    out.append(text(12, y + 10, machine, "small"))
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 20}" role="img">', style(), *out,
                      "</svg>", ""])


def draw(directory, values, place, machine):
    """Write bench.PLACE.svg for the values of a place. False if there are none."""
    drawn = picture(values, place, machine)
    if drawn is None:
        return False
    with open(os.path.join(directory, f"bench.{place}.svg"), "w", encoding="utf-8") as f:
        f.write(drawn)
    return True
