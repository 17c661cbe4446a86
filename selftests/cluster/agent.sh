# SPDX-License-Identifier: MIT
# In a guest, in busybox' shell: run each command that the host puts into directory $1, at once and
# side by side.
#
#	N.command	in:  shell text; N = 0, 1, ... in order
#	N.pid		out: its process
#	N.out, N.status	out: what it prints; its exit status, when it has ended

one() {
	/bin/sh "$2.command" >"$2.out" 2>&1 </dev/null 3>&- &
	echo $! >"$2.pid"
	wait $!
	echo $? >"$2.new"
	mv "$2.new" "$2.status"
}

# Wait a moment: without a process, of which ten a second would be a tenth of an emulated machine.
mkfifo /tmp/never
exec 3<>/tmp/never
moment() {
	read -r -t 0.1 _ <&3
}

n=0
while :; do
	if [ -e "$1/$n.command" ]; then
		one "$1" "$1/$n" &
		n=$((n + 1))
	else
		moment
	fi
done
