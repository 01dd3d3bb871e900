#!/bin/sh
# Installs what is missing and runs the tests.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh
go vet ./...
go test "$@" ./...
