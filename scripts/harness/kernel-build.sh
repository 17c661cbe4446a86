# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Build a kernel of Debian's linux-source once, in the cache. debug-kernel and uml-kernel include
# this, call `build_kernel PREBUILT "$@"`, and set before:
#
#   name series          of this kernel: debug-kernel 6.1
#   minutes              that a build takes on two cores
#   fragment             what is added to tinyconfig
#   changes              patch of the sources, or nothing
#   compile              function that makes vmlinux and modules
#   strip_tree           function that leaves what booting and external modules need

jobs=${ACP_JOBS:-$(nproc)}
cache=${ACP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/acp}

say() { echo "$name: $*" >&2; }
die() { say "$*"; exit 1; }

use_prebuilt() {
	for f in vmlinux Makefile .config Module.symvers; do
		[ -e "$1/$f" ] || die "$1/$f is missing: no kernel build"
	done
	cd "$1" && pwd
	exit 0
}

# Print the lines of the fragment that olddefconfig did not honour.
lost_options() {
	grep -E '^(# )?CONFIG_' "$fragment" | while read -r line; do
		case $line in
		'#'*)	option=${line#\# }; option=${option%% *}
			if grep -q "^$option=" .config; then echo "$line"; fi ;;
		*)	grep -qxF -e "$line" .config || echo "$line" ;;
		esac
	done
}

# Failures are passed on explicitly: the shell ignores -e below `build || ...`.
configure() {
	make -s tinyconfig &&
		scripts/kconfig/merge_config.sh -m .config "$fragment" &&
		make -s olddefconfig || return 1
	lost=$(lost_options)
	[ -z "$lost" ] && return 0
	say "options of $fragment that this kernel refuses:"
	echo "$lost"
	return 1
}

# Remove all objects, the folders named, and other architectures.
# $1: architectures to keep, separated by commas; the rest: more names to remove
strip_common() {
	find . \( -name '*.o' -o -name '*.a' -o -name '*.cmd' \) -type f -delete
	for d in Documentation LICENSES block certs crypto drivers fs init io_uring ipc kernel lib \
		 mm net rust samples security sound usr virt; do
		rm -rf "./$d"
	done
	keep=$1
	for d in arch/*/; do
		d=${d%/}
		case ,$keep, in
		*,"${d#arch/}",*) ;;
		*) rm -rf "./$d" ;;
		esac
	done
	find arch -name '*.[cS]' -type f -delete
	rm -f vmlinux.bin .tmp_* System.map
	strip -g vmlinux
}

# An interrupted build continues where it stopped.
build() {
	if [ ! -e .unpacked ]; then
		tar -xJf "$tarball" --strip-components=1 &&
			{ [ -z "$changes" ] || patch -p1 <"$changes"; } && : >.unpacked || return 1
	fi
	if [ ! -e .configured ]; then
		configure && : >.configured || return 1
	fi
	compile && rm -f .unpacked .configured && strip_tree
}

# $1: a build to use instead, or nothing; the rest: the command line. Print the build's directory.
build_kernel() {
	prebuilt=$1
	shift
	while [ $# -gt 0 ]; do
		case $1 in
		--prebuilt) [ $# -ge 2 ] || die "--prebuilt needs a directory"
			prebuilt=$2; shift 2 ;;
		*) sed -n '3,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
		esac
	done
	[ -z "$prebuilt" ] || use_prebuilt "$prebuilt"
	tarball=/usr/src/linux-source-$series.tar.xz
	[ -e "$tarball" ] || die "$tarball is missing; run: scripts/packages debug"
	version=$(dpkg-query -W -f '${Version}' "linux-source-$series")
	dir=$cache/$name-$version-$(cat "$fragment" $changes | sha256sum | cut -c1-12)
	if [ ! -e "$dir/vmlinux" ]; then
		mkdir -p "$cache"
		exec 9>"$dir.lock"
		flock 9
	fi
	if [ ! -e "$dir/vmlinux" ]; then
		mkdir -p "$dir.part"
		cd "$dir.part" || exit
		say "building in $dir.part (about $minutes minutes, log: $dir.log)"
		build >"$dir.log" 2>&1 9>&- ||
			{ tail -n 20 "$dir.log" >&2; die "failed, see $dir.log"; }
		mv "$dir.part" "$dir"
	fi
	echo "$dir"
}
