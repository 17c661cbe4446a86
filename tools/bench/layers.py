# SPDX-License-Identifier: MIT
"""Layers: the purpose of a function, by which a budget counts instructions."""
import bisect
import glob
import os
import re
import subprocess

# For functions of the kernel itself, without leading underscores: the first match counts.
KERNEL = [
    ("tag", r"siphash|hsiphash|crc32|crc_|aes|gcm|gf128|ghash|aead|crypto|chacha|poly|blake|scatterwalk"),
    ("copy, clear", r"memcpy|memmove|memset|copy_user|copy_page|rep_|copy_from|copy_to|copyin|copyout|clear_page|clear_user"
                    r"|csum_partial_copy"),
    ("system call entry", r"entry_|do_syscall|syscall_|x64_sys|exit_to_user|.*ioctl|f?get_light|fget|fdget|fput|error_entry|asm_"
                          r"|tomoyo|apparmor|security_file|srcu"),
    ("timers, clock", r".*timer|ktime|read_tsc|timekeeping|pvclock|sched_clock|calc_wheel|enqueue_hr|jiffies|mod_delayed|clock"),
    ("scheduler", r"schedule|try_to_wake|.*wake_up|ttwu|.*_task|pick_next|finish_task|enqueue_entity|dequeue_entity"
                  r"|update_(curr|load|rq|cfs|min)|prepare_to_wait|finish_wait|set_next|put_prev|check_preempt|resched"
                  r"|select_|cpuacct|switch_|queue_work|insert_work|default_wake|autoremove|cond_resched"),
    ("packets: memory", r"k?free|kmem_cache|consume_skb|build_skb|napi_build|page_frag|kmalloc|slab|.*_slab|put_page|get_page"
                        r"|.*alloc|napi_consume|sock_wfree|sock_rfree|skb_set_owner|cache_free|mod_objcg|memcg|obj_cgroup"
                        r"|page_pool|mempool|rmqueue|get_obj|refill|drain_|skb_?(release|put|unref|free|head|orphan)"),
    ("softirq", r".*softirq|local_bh|do_soft|irq_|tasklet|call_on|rcu_note|irqtime"),
    ("device, veth", r"dev_|veth|.*netif|process_backlog|net_rx|enqueue_to_backlog|eth_|validate_xmit|.*qdisc|sch_|pfifo"
                     r"|napi|netdev|rps_|netem|skb_network_protocol|harmonize|is_skb_forwardable|skb_scrub|skb_tx|bpf"
                     r"|skb_flow|skb_clone_tx|skb_defer|passthru|.*_gro|gro_|.*gso|br_|get_rps|flow_|skb_do_redirect|secpath"
                     r"|skb_segment|bql|dql"),
    ("IP, UDP", r"ip_|ip6|ipv6|ipv4|udp|inet|dst_|nf_|fib_|neigh|sk_|sock_|lock_sock|release_sock|rt_|raw_(local|v4|v6|rcv)|security_sock|csum"
                r"|do_csum|skb_checksum|xfrm|icmp|ping_|tcp_|arp|skb_|pskb|ktls|net_"),
    ("locks, RCU", r"raw_|.*mutex|.*rcu|queued_|up_|down_|lock_|rw|percpu_ref|refcount|preempt|native_queued|x86|srso|fentry"
                   r"|list_|rb_|rhash|xas_|xa_|idr_|radix|rht|migrate_"),
]

# For files of the module, by folder; those of no folder are "module, other".
MODULE = [
    ("tag", r"core/tag|core/nh|net/payload|net/aead|net/aegis|net/crc"),
    ("protocol", r"core/"),
    ("regions, copies", r"mem/|exec/strided|exec/copies"),
    ("device, rings, commands", r"(dev|queue|exec)/"),
    ("peers, datagrams", r"(net|job)/"),
]


def nm(path, *more):
    """Return (address, name) of the functions in a file or library."""
    text = subprocess.run(["nm", *more, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    return re.findall(r"^(?:.*:)?([0-9a-f]+) [tTwWiI] (\S+)$", text, re.M)


class Program:
    """The functions of acp_perf and of the library."""
    BASE = 0x555555554000       # load address of a program without address space randomization

    def __init__(self, program, library):
        found = sorted((int(address, 16) + self.BASE, name) for address, name in nm(program))
        self.addresses, self.names = [a for a, _ in found], [n for _, n in found]
        self.library = {name for _, name in nm(library)}

    def __contains__(self, address):
        return self.BASE <= address < self.addresses[-1] + 0x10000

    def name(self, address):
        i = bisect.bisect_right(self.addresses, address) - 1
        return self.names[i] if i >= 0 else "?"

    def address(self, name):
        return self.addresses[self.names.index(name)]

    def layer(self, name):
        return "user library" if name in self.library else "program that measures"


class Kernel:
    """The functions of the running kernel and its modules, from a copy of /proc/kallsyms."""

    def __init__(self, kallsyms, objects):
        found = []
        for line in kallsyms.splitlines():
            words = line.split()
            if len(words) >= 3 and words[1] in "tTwW" and not words[2].startswith("__pfx_"):
                found.append((int(words[0], 16), words[2], words[3][1:-1] if len(words) > 3 else ""))
        found.sort()
        self.addresses, self.found = [a for a, _, _ in found], found
        self.files = {name: os.path.relpath(path, objects) for path in glob.glob(f"{objects}/**/*.o", recursive=True)
                      for _, name in nm(path)}

    def name(self, address):
        i = bisect.bisect_right(self.addresses, address) - 1
        _, name, module = self.found[i] if i >= 0 else (0, "?", "")
        return f"{name} [{module}]" if module else name

    def addresses_of(self, *names):
        """Return all functions with these names, including parts that compilers create
        (.constprop.0).
        """
        return {a: n for a, n, _ in self.found if n in names or n.partition(".")[0] in names}

    def layer(self, name):
        plain, _, module = name.partition(" [")
        if module == "acp]":
            return first(MODULE, self.files.get(plain, "")) or "module, other"
        return first(KERNEL, plain.lstrip("_")) or "kernel, other"


def first(table, text):
    for layer, pattern in table:
        if re.match(pattern, text):
            return layer
    return None
