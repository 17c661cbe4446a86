# SPDX-License-Identifier: MIT
# What an administrator and a user do on the machine that selftests/package/install has booted: the
# module was loaded at boot, its device belongs to group acp, four ranks run on two networks.
set -e

say() { echo "$*"; }
fail() { echo "FAILED: $*"; systemctl --failed --no-pager; dmesg | tail -n 20; exit 1; }

# $1: seconds; the rest: a command that must be true by then.
within() {
	limit=$1
	shift
	until "$@" >/dev/null 2>&1; do
		limit=$((limit - 1))
		[ $limit -gt 0 ] || fail "not within its time: $*"
		sleep 1
	done
}

# A limit of this network namespace.
limit() { cat "/proc/sys/net/acp/$1"; }

# The device has an owner and a mode only once udev has seen it.
is_for_group() { [ "$(stat -c '%U:%G %a' /dev/acp)" = 'root:acp 660' ]; }

uname -sr
say "booted $(cut -d' ' -f1 /proc/uptime) s ago"
grep -q '^acp ' /proc/modules || fail "the module was not loaded at boot"
modinfo -n acp | grep -q /updates/dkms/acp.ko || fail "modprobe would take $(modinfo -n acp)"
within 30 is_for_group
if su -s /bin/sh nobody -c 'exec 3</dev/acp' 2>/dev/null; then fail "anybody may open /dev/acp"; fi
within 30 systemctl is-active acp.service

say "settings"
[ "$(limit user_ranks)" = 4096 ] || fail "somebody may have $(limit user_ranks) ranks"
echo 'user_ranks 128' >>/etc/acp.conf
acp conf check
systemctl reload acp.service
[ "$(limit user_ranks)" = 128 ] || fail "reloading did not apply them"
echo 'user_ranks many' >>/etc/acp.conf
if systemctl reload acp.service; then fail "nobody is told of a wrong line"; fi
sed -i '/many/d' /etc/acp.conf

say "loaded anew: the settings are applied again"
modprobe -r acp
within 30 sh -c '! systemctl is-active acp.service'
modprobe acp
within 30 systemctl is-active acp.service
within 30 is_for_group
[ "$(limit user_ranks)" = 128 ] || fail "the settings were not applied"

say "acp check"
acp check || fail "as root"
su ann -c 'acp check' || fail "as a user"

say "two networks"
for n in 1 2; do
	ip netns add n$n
	ip -n n$n link set lo up
done
ip -n n1 link add eth0 type veth peer name eth0 netns n2
for n in 1 2; do
	ip -n n$n addr add 192.0.2.$n/24 dev eth0
	ip -n n$n link set eth0 up
done

# docs/operate.md, "Start a job".
cat >/home/ann/start <<'END'
cd
export ACP_NPROCS=4 ACP_NODES="192.0.2.1 192.0.2.2" ACP_KEYFILE=key
for r in $*; do ACP_RANK=$r ./ring & done; wait
END
su ann -c "cd; umask 077; head -c16 /dev/urandom | od -An -tx1 | tr -d ' \n' >key"
chmod 644 /home/ann/start
ip netns exec n1 su ann -c 'sh /home/ann/start 0 1' &
ip netns exec n2 su ann -c 'sh /home/ann/start 2 3'
wait
say "acprun, Python"
su - ann -c "acprun -np 2 python3 /usr/share/doc/python3-pyacp/examples/pi.py" || fail "pi.py"

[ -z "$(systemctl --failed --no-legend)" ] || fail "units have failed"
say "all done"
