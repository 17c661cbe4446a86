# SPDX-License-Identifier: MIT
"""Other implementations: each function measures one peer between the two nodes of a place and
returns its values, like those of ours.py.
"""
import ipaddress
import json
import os
import re
import time

import nodes
from nodes import TOP, Late, Unable, ask, excuse, pair

SOCKETS = "tools/bench/sockets"
PORT = "7207"
UCX_TRIES = 5
# seconds of the clock of the machine: a test takes less than two; elsewhere 60
UCX_PATIENCE = {"icount": 10}
RXE_ENDS = {"rxe-a": "10.8.0.1", "rxe-b": "10.8.0.2"}


def numbers(text, pattern):
    """Return the numbers in the last line that matches."""
    found = [line for line in text.splitlines() if re.match(pattern, line)]
    if not found:
        raise Unable(f"no result: {excuse(text)}")
    return [float(word) for word in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?", found[-1])]


# -- kernel echoes --

def icmp(place, quick):
    """ICMP echoes, one at a time."""
    one, two = place.nodes
    one.need("ping")
    count = 200 if quick else 2000
    text = one.run(["ping", "-f", "-q", "-c", str(count), "-s", "56", two.address])
    found = re.search(r" (\d+) received.*time (\d+)ms.*= [\d.]+/([\d.]+)/", text, re.S)
    if not found or int(found[1]) != count:
        raise Unable("echoes were lost")
    return {"icmp": (1000 * float(found[3]), f"56 bytes; mean of {count}, in whole us")}


def card_address(node):
    """Return the Ethernet address of the network device of a node."""
    return node.run(["cat", f"/sys/class/net/{node.card}/address"]).strip()


def reflect(place, quick):
    """A kernel UDP echo. Traffic control at the device of the second node returns each datagram; no
    socket, route lookup or wake-up is involved there. The client is a UDP socket.
    """
    one, two = place.nodes
    two.need("tc")
    two.run(["modprobe", "-a", "sch_ingress", "cls_flower", "act_pedit", "act_mirred"])
    exchange = [("eth", "src", card_address(two)), ("eth", "dst", card_address(one)), ("ip", "src", two.address),
                ("ip", "dst", one.address)]
    munge = [word for layer, field, value in exchange for word in ("munge", layer, field, "set", value)]
    two.run(["tc", "qdisc", "add", "dev", two.card, "clsact"])
    try:
        two.run(["tc", "filter", "add", "dev", two.card, "ingress", "protocol", "ip", "flower", "ip_proto", "udp",
                 "dst_port", PORT, "action", "pedit", "ex", *munge, "pipe", "action", "mirred", "egress", "redirect",
                 "dev", two.card])
        return {"kernel-echo": median(one.run(question(place, "udp", 200 if quick else 1000)))}
    finally:
        two.run(["tc", "qdisc", "del", "dev", two.card, "clsact"])


# -- sockets --

def question(place, kind, count, *more):
    one, two = place.nodes
    return [one.program(SOCKETS), "ask", kind, one.address, two.address, PORT, "8", str(count), *more]


def median(text):
    return numbers(text, "median ")[0], "median"


def ping_pong(place, kind, quick, *more):
    """Round trips between two processes."""
    two = place.nodes[1]
    return median(pair(place, [two.program(SOCKETS), "echo", kind, two.address, PORT, *more],
                       question(place, kind, 200 if quick else 1000, *more)))


def tcp(place, quick):
    """TCP ping-pong, 8 bytes, blocking."""
    return {"tcp": ping_pong(place, "tcp", quick)}


def busy(place, quick):
    """UDP ping-pong of two processes that poll."""
    return {"udp.busy": ping_pong(place, "udp", quick, "spin")}


def gso(place, quick):
    """A stream of UDP datagrams with GSO. They are passed to the kernel in units of 63,000 bytes
    and may be merged again (GRO); also with MSG_ZEROCOPY.
    """
    one, two = place.nodes
    segment = int(one.run(["cat", f"/sys/class/net/{one.card}/mtu"])) - 28
    values = {}
    for name, more in (("udp.gso", []), ("udp.zerocopy", ["zerocopy"])):
        text = pair(place, [two.program(SOCKETS), "take", two.address, PORT],
                    [one.program(SOCKETS), "give", one.address, two.address, PORT, "0.2" if quick else "1", str(segment),
                     *more])
        rate, lost, copied = numbers(text, "MB/s ")
        note = f"{segment} bytes each; {lost:.1f} % lost"
        values[name] = (rate, note + (f"; the kernel copied {copied:.0f} % of it nevertheless" if more else ""))
    return values


# With -J, iperf3 reports a server that is not ready as a result, with exit status 0.
IPERF_ASKS = """text=$(iperf3 "$@")
status=$?
echo "$text"
case $text in *"unable to connect"*) exit 1;; esac
exit $status"""


def iperf(place, quick):
    """Streams of one second."""
    one, two = place.nodes
    for node in place.nodes:
        node.need("iperf3")
    values = {}
    for name, more in (("tcp", []), ("tcp.zero", ["-Z"]), ("udp", ["-u", "-b", "0", "-l", "1472"])):
        asking = ["sh", "-c", IPERF_ASKS, "sh", "-J", "-t", "1", "-c", two.address, *more]
        text = pair(place, ["iperf3", "-s", "-1"], asking, patience=200)
        end = json.loads(text[text.index("{"):])
        if "error" in end:
            raise Unable(f"iperf3: {end['error']}")
        end = end["end"]
        lost = end["sum"]["lost_percent"] if name == "udp" else 0
        rate = (1 - lost / 100) * end["sum"]["bits_per_second"] if name == "udp" else end["sum_received"]["bits_per_second"]
        values[f"iperf.{name}"] = (rate / 8e6, f"1 second; {lost:.1f} % lost")
    return values


# -- soft-RoCE --

def rxe_device(node, device, card, address):
    """Create a soft-RoCE device on a network device. Return the arguments of perftest for it and
    its address.
    """
    node.need("ib_write_bw", "ib_write_lat", "ib_read_lat", "ib_atomic_lat", "ib_send_lat", "rdma")
    node.run(["modprobe", "-a", "rdma_rxe", "ib_uverbs", "rdma_ucm"])
    node.run(["sh", "-c", f"rdma link show {device}/1 >/dev/null 2>&1 || rdma link add {device} type rxe netdev {card}"])
    wanted = ipaddress.ip_address("::ffff:" + address).exploded
    gids = node.run(["sh", "-c", f"cd /sys/class/infiniband/{device}/ports/1/gids && grep -H . 0 1 2 3 4 5 6 7"])
    for line in gids.splitlines():
        index, _, gid = line.partition(":")
        if gid == wanted:
            return ["-d", device, "-x", index]
    raise Unable(f"{device} has no GID for {address}")


def rxe_alone(node):
    """Create two ends in one namespace, because soft-RoCE supports no others, connected by veth
    like those of all peers. So that packets between them leave through the device, the addresses
    are local only for packets that arrive there.
    """
    one, two = RXE_ENDS
    node.run(["ip", "link", "add", one, "type", "veth", "peer", "name", two])
    for card, other in ((one, two), (two, one)):
        node.run(["sysctl", "-q", "-w", "net.ipv4.conf.all.rp_filter=0", f"net.ipv4.conf.{card}.rp_filter=0",
                  f"net.ipv4.conf.{card}.accept_local=1", f"net.ipv4.conf.{card}.arp_ignore=1"])
        for words in (["addr", "add", RXE_ENDS[card] + "/24", "dev", card], ["link", "set", card, "up"],
                      ["route", "add", RXE_ENDS[other], "dev", card, "src", RXE_ENDS[card], "table", "100"],
                      ["rule", "add", "pref", "10", "iif", card, "lookup", "local"],
                      ["rule", "add", "pref", "11", "to", RXE_ENDS[card], "lookup", "100"]):
            node.run(["ip", *words])
    node.run(["ip", "rule", "add", "pref", "12", "lookup", "local"])
    node.run(["ip", "rule", "del", "pref", "0"])
    return [(node, address, rxe_device(node, f"rxe{i}", card, address)) for i, (card, address) in enumerate(RXE_ENDS.items())]


def rxe(place, quick):
    """Soft-RoCE. Time until completion of accesses, one outstanding; a stream; ib_write_lat and
    ib_send_lat print half of the round-trip time while both ends poll.
    """
    ends = rxe_alone(place.here) if place.kind == "icount" else [
        (node, node.address, rxe_device(node, "rxe0", node.card, node.address)) for node in place.nodes]
    count = "100" if quick else "1000"

    def measure(program, size, *more):
        common = ["-F", "-n", count, "-s", str(size), *more]
        server = ends[1][0].start([program, *ends[1][2], *common])
        try:
            text = ask(ends[0][0], [program, *ends[0][2], *common, ends[1][1]])
        finally:
            ends[1][0].stop(server)
        return numbers(text, rf"\s*{size}\s+{count}\s")

    values = {}
    tests = [("rxe.get", "ib_read_lat"), ("rxe.add8", "ib_atomic_lat")]
    halves = [("rxe.put.half", "ib_write_lat"), ("rxe.send.half", "ib_send_lat")]
    if place.kind == "icount":
        values.update({name: (None, f"both ends of {program} spin; there is one processor") for name, program in halves})
    else:
        tests += halves
    for name, program in tests:
        try:
            values[name] = (measure(program, 8)[4], "median")
        except Unable as e:
            values[name] = (None, str(e))
    for name, program in (("rxe.put", "ib_write_bw"), ("rxe.send", "ib_send_bw")):
        values[name] = (1 / measure(program, 8, "-t", "1", "-Q", "1")[4], "mean, until its completion")
    for name, program in (("rxe.bw.put", "ib_write_bw"), ("rxe.bw.get", "ib_read_bw")):
        values[name] = (1.048576 * measure(program, 65536)[3], "64 KiB each")
    values["rxe.rate"] = (1 / measure("ib_write_bw", 8, "-t", "128")[4], "mean, 128 outstanding")
    return values


# -- UCX --

def ucx_there(node):
    """Check that it is installed, and load it into the page cache, so that the server starts as
    fast as the clients.
    """
    node.need("ucx_perftest")
    node.run(["sh", "-c", "ucx_perftest -h >/dev/null 2>&1 || :"])


def ucx_once(ends, words, env, patience):
    server = ends[1].start(words, env)
    try:
        return ask(ends[0], ["ucx_perftest", ends[1].address, *words[1:]], env, patience)
    finally:
        ends[1].stop(server)


def ucx_test(place, ends, test, size, count, env, wait):
    """Occasionally both ends sleep forever, each waiting for the other one: then repeat."""
    words = ["ucx_perftest", "-t", test, "-s", str(size), "-n", str(count), "-w", "50", *wait]
    for more in reversed(range(UCX_TRIES)):
        try:
            text = ucx_once(ends, words, env, UCX_PATIENCE.get(place.kind, 60))
            break
        except Late:
            if not more:
                raise
    return numbers(text, "Final:")      # iterations, median, average, overall; MB/s twice; rates


def ucx(place, quick):
    """UCX over TCP. With one CPU for both ends, they sleep while they wait."""
    for node in place.nodes:
        ucx_there(node)
    wait = ["-I", "-E", "sleep"] if place.kind == "icount" else []
    env = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": place.nodes[0].card}
    count = 200 if quick else 1000
    values = {}
    for name, test, note in (("ucx.put", "ucp_put_lat", "half of the round trip"), ("ucx.get", "ucp_get", ""),
                             ("ucx.add8", "ucp_fadd", "")):
        values[name] = (ucx_test(place, place.nodes, test, 8, count, env, wait)[1], note or "until it is here")
    try:
        values["ucx.bw.put"] = (1.048576 * ucx_test(place, place.nodes, "ucp_put_bw", 1 << 20, 50, env, wait)[5], "1 MiB")
    except Unable as e:
        values["ucx.bw.put"] = (None, str(e))
    return values


def ucx_shm(place, quick):
    """UCX over shared memory on one node: instructions, if time is counted in them."""
    ucx_there(place.here)
    env = {"UCX_TLS": "posix,self"}
    values = {}
    for name, test in (("ucx.shm.put", "ucp_put_bw"), ("ucx.shm.add8", "ucp_fadd")):
        more = ["-O", "1"] if test == "ucp_put_bw" else []
        found = ucx_test(place, [place.here, place.here], test, 8, 100000, env, more)
        # Both processes may be scheduled on the only CPU during a sample: the median excludes such
        # samples.
        values[name] = (1000 * min(found[1] or found[2], found[2]), "median; ns")
    return values


# -- MPI --

MPI_COMMON = {"mpi_yield_when_idle": "1", "btl_vader_single_copy_mechanism": "none"}


def mpi_program(place, name="mpi_access"):
    place.here.need("mpirun", "mpicc")
    program = f"/tmp/{name}.{os.getpid()}"
    place.here.run(["mpicc", "-O2", "-o", program, os.path.join(TOP, f"tools/bench/{name}.c")])
    return program


def mpi_results(text, wanted):
    """Return (operation, size, microseconds) of each line of mpi_access or mpi_message."""
    lines = re.findall(r"^result (\w+) (\d+) ([\d.]+)$", text, re.M)
    if len(lines) != len(wanted):
        raise Unable(f"MPI: {len(lines)} results for {len(wanted)} operations: {excuse(text)}")
    return [(operation, int(size), float(us)) for operation, size, us in lines]


def mpi_values(name, text, accesses):
    """Parse the output of mpi_access."""
    words = {"add": "add8", "bar": "barrier", "row": "rate", "sum": "allreduce"}
    calls = {"bar": "MPI_Barrier", "sum": "MPI_Allreduce of a double"}
    values = {}
    for operation, size, us in mpi_results(text, accesses):
        if size > 8:
            values[f"{name}.bw.{operation}"] = (size / us, "1 MiB and flush")
        else:
            values[f"{name}.{words.get(operation, operation)}"] = (us, calls.get(operation, "and flush"))
    return values


def mpi_settings(settings, env):
    return [*(word for name, value in settings.items() for word in ("--mca", name, value)),
            *(word for name in env for word in ("-x", name))]


def mpi_remote(place, words, settings, env):
    """Run a program of two ranks on two nodes, in namespaces, by our remote shell. Return its
    output.
    """
    if place.kind != "icount":
        raise Unable("measured between namespaces only")
    one = place.nodes[0]
    settings = {"plm_rsh_agent": os.path.join(TOP, "tools/bench/agent"), "oob_tcp_if_include": one.card, **MPI_COMMON,
                **settings}
    hosts = ",".join(node.address for node in place.nodes)
    return one.run(["unshare", "--uts", "sh", "-c", 'hostname node1; exec "$@"', "sh", "mpirun", "--allow-run-as-root",
                    "--host", hosts, "-np", "2", "--map-by", "node", *mpi_settings(settings, env), *words], env, 400)


def mpi_accesses(place, name, settings, env, quick):
    accesses = ["put:8:300", "get:8:300", "add:8:300", "bar:8:300", "sum:8:300"]
    accesses += [] if quick else ["row:8:20", "put:1048576:20", "get:1048576:20"]
    return mpi_values(name, mpi_remote(place, [mpi_program(place), *accesses], settings, env), accesses)


MPI_TCP = {"pml": "ob1", "btl": "tcp,self", "osc": "^ucx", "btl_tcp_if_include": "eth0"}


def mpi(place, quick):
    """One-sided communication of Open MPI over TCP, with a flush after each access."""
    return mpi_accesses(place, "mpi", MPI_TCP, {}, quick)


def message_values(text, wanted):
    """Parse the output of mpi_message."""
    found = {(operation, size): us for operation, size, us in mpi_results(text, wanted)}
    values = {"mpi.message": (found["trip", 8] / 2, "half of the round trip"), "mpi.message.done": (found["done", 8], "MPI_Ssend")}
    if ("trip", 1 << 20) in found:
        values["mpi.bw.message"] = ((1 << 20) / found["trip", 1 << 20], "1 MiB, answered by 8 bytes")
    return values


def mpi_messages(place, quick):
    """Messages of Open MPI over TCP to posted receives. Compared with part messages."""
    wanted = ["trip:8:300", "done:8:300", *([] if quick else ["trip:1048576:20"])]
    return message_values(mpi_remote(place, [mpi_program(place, "mpi_message"), *wanted], MPI_TCP, {}), wanted)


def mpi_ucx(place, quick):
    """The same over UCX over TCP."""
    return mpi_accesses(place, "mpi-ucx", {"pml": "ucx", "osc": "ucx", "pml_ucx_tls": "any", "pml_ucx_devices": "any",
                                           # yield to the other rank, which runs on the same CPU,
                                           # in each poll
                                           "opal_common_ucx_progress_iterations": "1"},
                        {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}, quick)


def mpi_shm(place, quick):
    """The same between two ranks of one node, by shared memory."""
    program = mpi_program(place)
    accesses = ["put:8:1000", "get:8:1000", "add:8:1000"]
    text = place.here.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2",
                           *mpi_settings({"pml": "ob1", "btl": "vader,self", "osc": "^ucx", **MPI_COMMON}, {}), program,
                           *accesses], None, 200)
    return {name: (1000 * value, note) for name, (value, note) in mpi_values("mpi.shm", text, accesses).items()}


# Part -> its function, timeout in seconds, places where it can be measured, its values.
PARTS = {
    "icmp": (icmp, 120, "icount guests nodes", "icmp"),
    "reflect": (reflect, 120, "icount", "kernel-echo"),
    "tcp": (tcp, 120, "icount guests nodes", "tcp"),
    "busy": (busy, 120, "guests nodes", "udp.busy"),
    "gso": (gso, 200, "icount plain guests nodes", "udp.gso udp.zerocopy"),
    "iperf": (iperf, 400, "icount plain guests nodes", "iperf.tcp iperf.tcp.zero iperf.udp"),
    "rxe": (rxe, 900, "icount plain guests nodes",
            "rxe.put rxe.put.half rxe.send rxe.send.half rxe.get rxe.add8 rxe.rate rxe.bw.put rxe.bw.get"),
    "ucx": (ucx, 200, "icount plain guests nodes", "ucx.put ucx.get ucx.add8 ucx.bw.put"),
    "ucx-shm": (ucx_shm, 200, "icount", "ucx.shm.put ucx.shm.add8"),
    "mpi": (mpi, 500, "icount plain", "mpi.put mpi.get mpi.add8 mpi.barrier mpi.allreduce mpi.rate mpi.bw.put mpi.bw.get"),
    "mpi-messages": (mpi_messages, 300, "icount plain", "mpi.message mpi.message.done mpi.bw.message"),
    "mpi-ucx": (mpi_ucx, 500, "icount plain", "mpi-ucx.put mpi-ucx.get mpi-ucx.add8 mpi-ucx.barrier "
                                        "mpi-ucx.allreduce mpi-ucx.rate mpi-ucx.bw.put mpi-ucx.bw.get"),
    "mpi-shm": (mpi_shm, 300, "icount", "mpi.shm.put mpi.shm.get mpi.shm.add8"),
}
