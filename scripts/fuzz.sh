#!/usr/bin/env bash
# Fuzzes the parsers of untrusted files and messages, one target after the other, with a memory limit.
#
#   scripts/fuzz.sh                     every target for 10 minutes
#   scripts/fuzz.sh -t 30s              every target for 30 seconds
#   scripts/fuzz.sh -t 1h FuzzBin       targets whose name matches the pattern
#   scripts/fuzz.sh -t 1000x            every target for 1000 inputs
#   scripts/fuzz.sh -l                  list the targets
#
# A failing input is written to the package's testdata/fuzz; once committed, it is a regression test. FUZZ_MEMORY_MB (4096) limits the address space of
# one process: an input that needs more fails too.
set -euo pipefail
cd "$(dirname "$0")/.."
time=10m
list=false
while getopts "t:lh" o; do
	case $o in
	t) time=$OPTARG ;;
	l) list=true ;;
	*)
		sed -n '2,12s/^# \{0,1\}//p' "$0"
		exit 64
		;;
	esac
done
shift $((OPTIND - 1))
pattern=${1:-.}
memory=${FUZZ_MEMORY_MB:-4096}

# "package target" lines, from the sources.
targets() {
	grep -rhoH --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's|^\./||; s|/[^/]*_test\.go:func | |' | sort
}

list() { targets | while read -r package target; do [[ ! $target =~ $pattern ]] || echo "$package $target"; done; }
if $list; then
	list
	exit
fi

binaries=$(mktemp -d)
trap 'rm -rf "$binaries"' EXIT
failed=0
while read -r package target; do
	printf '\n== %s %s for %s\n' "$package" "$target" "$time"
	binary=$binaries/${package//\//_}
	# Build without the limit: the linker needs more memory than a parser may use.
	[ -x "$binary" ] || go test -c -o "$binary" -fuzz=. "./$package" >/dev/null
	# Go minimises each input that reaches new code, for up to a minute each. If the covered code varies from run to run, as with maps, that minute is lost,
	# and with many such inputs nothing else happens. A hundred tries are enough.
	if ! (
		ulimit -v $((memory * 1024))
		cd "$package"
		GOMEMLIMIT=$((memory / 2))MiB nice -n 19 "$binary" -test.run='^$' -test.fuzz="^$target\$" -test.fuzztime="$time" -test.fuzzminimizetime=100x \
			-test.parallel=1 -test.fuzzcachedir="$(go env GOCACHE)/fuzz/gotrain/$package"
	); then
		echo "FAILED: $package $target"
		failed=1
	fi
done < <(list)
exit $failed
