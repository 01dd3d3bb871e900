#!/bin/sh
# Makes a Debian or Ubuntu machine that has Go ready to build and test gotrain: a C compiler, oneDNN and libjpeg-turbo. It installs
# only what is missing, and reports what it does. Everything else is in the Go module.
#
#   sh scripts/setup.sh
#
# GOTRAIN_NO_ONEDNN3=1 skips the faster oneDNN 3, which comes from PyPI because Debian's is 2.6.
set -eu
cd "$(dirname "$0")/.."

say() { echo "setup: $*" >&2; }

if ! command -v go >/dev/null 2>&1; then
	say "Go is not installed, or not in PATH: https://go.dev/doc/install (version $(sed -n 's/^go //p' go.mod) or later)"
	exit 1
fi

# A library is installed if the dynamic linker finds it.
has_lib() { { ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null || true; } | grep -q "$1"; }

missing=
need() { missing="$missing $1"; }
command -v gcc >/dev/null 2>&1 || need gcc
[ -e /usr/include/stdlib.h ] || need libc6-dev
has_lib 'libdnnl\.so\.[23]' || need libdnnl2
has_lib 'libturbojpeg\.so\.0' || need libturbojpeg0

if [ -n "$missing" ]; then
	if ! command -v apt-get >/dev/null 2>&1; then
		say "missing:$missing. This system has no apt-get; install them with its package manager:"
		say "a C compiler with the headers of libc, oneDNN (libdnnl.so.2 or .3), libjpeg-turbo (libturbojpeg.so.0)"
		exit 1
	fi
	as_root=
	if [ "$(id -u)" -ne 0 ]; then
		if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
			as_root=sudo
		else
			say "missing:$missing. Installing needs root; run this once, then try again:"
			say "  sudo apt-get install --no-install-recommends$missing"
			exit 1
		fi
	fi
	say "installing$missing"
	export DEBIAN_FRONTEND=noninteractive
	$as_root apt-get update -qq >&2
	# shellcheck disable=SC2086 # a list of names
	$as_root apt-get install -y -qq --no-install-recommends $missing >&2
fi

# The newer library changes speed, not results: everything works without it.
if [ -z "${GOTRAIN_NO_ONEDNN3:-}" ] && ! has_lib 'libdnnl\.so\.3'; then
	sh scripts/onednn3.sh || say "continuing with the system's oneDNN; bf16 is slower with it"
fi
