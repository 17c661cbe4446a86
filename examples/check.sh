# SPDX-License-Identifier: MIT
# What wordcount-check and kmer-check have in common; they read this file.

work=$(mktemp -d)
started=
# Ranks that are left, when another one has failed or when told to end, end as well.
trap '[ -z "$started" ] || kill $started 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
export LC_ALL=C

# $1: how many ranks, on this machine; the rest: a program. What they print goes to $work/printed.
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

# Take what the ranks of a run elsewhere have printed, "-" being standard input.
take_printed() {
	cat -- "$1" >"$work/printed"
}

# $work/expected against the lines "count word" among what was printed; a launcher may have put
# "[rank] " before each. $1: what it is compared with.
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
