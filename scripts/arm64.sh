#!/bin/sh
# Builds gotrain for linux/arm64 with cgo, and runs tests of the processor-dependent packages in an emulator, with Debian's oneDNN for arm64. For a Debian
# machine of another architecture.
#
#   sh scripts/arm64.sh                   build, and the default selection of tests
#   sh scripts/arm64.sh ARGUMENT…         go test with these arguments, such as -short ./npu/cpu
#   GOTRAIN_TEST_CPU=max sh …             another processor than cortex-a72 (NEON only, like the Kunpeng 920); max has SVE
#
# It installs a cross compiler and the emulator if they are missing (as root), and unpacks libraries into the user's cache; it does not add an architecture
# to the system's package manager. Tests that start themselves as another process need the kernel to start arm64 programs (binfmt_misc); where that cannot be
# arranged they are skipped, and the script says so.
#
# The emulator has this machine's order of memory operations. What depends on the weaker order of arm64 is checked in the compiled code instead
# (TestOrderOnARM64).
set -eu
cd "$(dirname "$0")/.."
say() { echo "arm64: $*" >&2; }

if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
		say "needs aarch64-linux-gnu-gcc and qemu-aarch64-static; as root: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"
		exit 69
	fi
	say "installing a cross compiler and an emulator"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >&2
	apt-get install -y -qq --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static >/dev/null
fi

# The libraries of an arm64 system, from a package manager of our own.
root=${XDG_CACHE_HOME:-$HOME/.cache}/gotrain/arm64
if [ ! -e "$root/complete" ]; then
	say "unpacking libraries for arm64 into $root"
	rm -rf "$root"
	mkdir -p "$root/apt/lists/partial" "$root/apt/cache/archives/partial"
	: >"$root/apt/status"
	own="-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State=$root/apt -o Dir::State::lists=$root/apt/lists -o Dir::State::status=$root/apt/status
		-o Dir::Cache=$root/apt/cache -o APT::Sandbox::User=root"
	# shellcheck disable=SC2086 # a list of options
	apt-get $own update -qq >&2
	# shellcheck disable=SC2086
	(cd "$root/apt" && apt-get $own download -qq libc6 libgcc-s1 libstdc++6 libgomp1 libdnnl2 libturbojpeg0 >&2)
	for package in "$root"/apt/*.deb; do
		dpkg-deb -x "$package" "$root"
	done
	rm -rf "$root/apt"
	: >"$root/complete"
fi

# Let the kernel start arm64 programs while this script runs, unless it does already.
cpu=${GOTRAIN_TEST_CPU:-cortex-a72}
export QEMU_LD_PREFIX="$root" QEMU_CPU="$cpu"
misc=/proc/sys/fs/binfmt_misc
added=
if [ "$(id -u)" -eq 0 ] && [ ! -e $misc/qemu-aarch64 ]; then
	[ -e $misc/register ] || mount -t binfmt_misc none $misc 2>/dev/null || true
	emulator=$(command -v qemu-aarch64-static)
	elf='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
	mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
	# shellcheck disable=SC2028 # the kernel reads the escapes
	if echo ":qemu-aarch64:M::$elf:$mask:$emulator:F" >$misc/register 2>/dev/null; then
		added=yes
	fi
fi
cleanup() { [ -z "$added" ] || echo -1 >$misc/qemu-aarch64; }
trap cleanup EXIT
trap 'exit 130' INT TERM

skip='TestWithoutCgo|TestNoCgo|TestOrderOnARM64' # they run the Go command
if [ ! -e $misc/qemu-aarch64 ]; then
	say "the kernel cannot be told to start arm64 programs: tests with several processes are skipped"
	skip="$skip|TestKilledJoining|TestProcesses|TestKilled|TestLeftover|TestJoinErrors|TestFrozenAtWork|TestLesserProcessors"
fi

export GOOS=linux GOARCH=arm64 CGO_ENABLED=1 CC=aarch64-linux-gnu-gcc
out=$(mktemp -d)
trap 'cleanup; rm -rf "$out"' EXIT
go build -o "$out/" ./cmd/gotrain ./cmd/hcclrun
say "built with cgo: $(qemu-aarch64-static "$out/gotrain" version | tr '\n' ' ')"
if [ $# -eq 0 ]; then
	set -- ./npu/... ./ddp/comm/... ./ddp ./optim # the rest is Go without assembly or cgo
fi
say "tests on $cpu"
go test -timeout 1800s -skip "^($skip)\$" -exec "qemu-aarch64-static" "$@"
