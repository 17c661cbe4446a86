# SPDX-License-Identifier: MIT
# Functions shared by wordcount-check, kmer-check and sort-check, which source this file.

work=$(mktemp -d)
started=
# End the remaining ranks when another one has failed, or on a signal.
trap '[ -z "$started" ] || kill $started 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
export LC_ALL=C

# Run $1 ranks of a program (the other arguments) on this machine. Output: $work/printed.
run_ranks() {
	export ACP_NPROCS="$1"
	shift
	rank=0
	started=
	while [ $rank -lt "$ACP_NPROCS" ]; do
		ACP_RANK=$rank "$@" >>"$work/printed" &
		started="$started $!"
		rank=$((rank + 1))
	done
	for process in $started; do
		wait "$process" || { echo "$check: a rank failed" >&2; exit 1; }
	done
	started=
}

# Use the output of a run elsewhere; "-": standard input.
take_printed() {
	cat -- "$1" >"$work/printed"
}

# Compare $work/expected with the lines "count word" in the output; a launcher may have prefixed
# them with "[rank] ". $1: source of the expected counts.
compare() {
	sed -n 's/^\(\[[0-9]*\] *\)\{0,1\}\([0-9][0-9]* [A-Za-z]*\)$/\2/p' "$work/printed" |
		sort >"$work/counted"
	sort -o "$work/expected" "$work/expected"
	if ! cmp -s "$work/expected" "$work/counted"; then
		echo "$check: DIFFERENT (expected <, counted >):"
		diff "$work/expected" "$work/counted" | head
		exit 1
	fi
	echo "$check: $(wc -l <"$work/counted") words, the same counts as $1"
}
