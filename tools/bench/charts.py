# SPDX-License-Identifier: MIT
"""The picture of the comparison, drawn by gnuplot: bars of latencies and of speeds."""
import os
import subprocess

# Name of a value -> what its bar is called.
LATENCY = {"put": "ACP put", "get": "ACP get", "add8": "ACP add8", "icmp": "ICMP echo", "kernel-echo": "kernel UDP echo",
           "udp": "UDP ping-pong", "tcp": "TCP ping-pong", "rxe.put": "soft-RoCE write", "rxe.get": "soft-RoCE read",
           "rxe.add8": "soft-RoCE atomic", "ucx.put": "UCX put", "ucx.get": "UCX get", "ucx.add8": "UCX fetch-add",
           "mpi.put": "Open MPI put", "mpi.get": "Open MPI get", "mpi.add8": "Open MPI fetch-op"}
SPEED = {"bw.put": "ACP put", "bw.get": "ACP get", "iperf.tcp": "iperf3 TCP", "udp.gso": "UDP with GSO",
         "iperf.udp": "iperf3 UDP", "rxe.bw.put": "soft-RoCE write", "rxe.bw.get": "soft-RoCE read", "ucx.bw.put": "UCX put",
         "mpi.bw.put": "Open MPI put", "mpi.bw.get": "Open MPI get"}


def data(names, values, place):
    return [f'"{text}" {values[f"{place}/{key}"]} {1 if text.startswith("ACP") else 2}' for key, text in names.items()
            if values.get(f"{place}/{key}") is not None]


def plot(name, digits):
    return (f"plot '{name}' using 0:2:3:xtic(1) with boxes lc variable, "
            f"'' using 0:2:(sprintf('%.{digits}f', $2)) with labels offset 0,0.6 font ',9'")


def script(name, caption, blocks):
    """gnuplot's: one picture above the other, as SVG and as PNG."""
    lines = ["set style fill solid 0.7", "set boxwidth 0.7", "set grid ytics", "unset key", "set yrange [0:*]",
             "set offsets 0.5,0.5,graph 0.08,0", "set xtics rotate by -35 font ',9'"]
    for terminal, ending in (("svg", "svg"), ("pngcairo", "png")):
        lines += [f"set terminal {terminal} size 1000,{500 * len(blocks)} noenhanced background rgb 'white'",
                  f"set output '{name}.{ending}'",
                  f"set label 1 '{caption}' at screen 0.5,0.02 center font ',9'",
                  f"set multiplot layout {len(blocks)},1 margins 0.09,0.9,0.17,0.97 spacing 0.2"]
        for axis, file, digits in blocks:
            lines += [f"set ylabel '{axis}'", plot(file, digits), "unset label"]
        lines += ["unset multiplot", "unset output"]
    return lines


def draw(directory, values, place, machine):
    """Files bench.PLACE.svg and .png of what was measured at a place; False if there is nothing to draw."""
    name, blocks = f"bench.{place}", []
    for kind, names, axis, digits in (("latency", LATENCY, "microseconds until complete, 8 bytes", 1),
                                      ("speed", SPEED, "MB/s (10^6 bytes)", 0)):
        lines = data(names, values, place)
        if lines:
            blocks.append((axis, f"{name}.{kind}.dat", digits))
            with open(os.path.join(directory, f"{name}.{kind}.dat"), "w", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")
    if not blocks:
        return False
    with open(os.path.join(directory, f"{name}.gp"), "w", encoding="utf-8") as f:
        f.write("\n".join(script(name, machine.replace("'", " "), blocks)) + "\n")
    subprocess.run(["gnuplot", f"{name}.gp"], cwd=directory, check=True)
    return True
