#!/bin/sh
# From a fresh clone to a training run: installs what is missing, builds bin/gotrain, trains ResNet50 on real photographs with two ranks. Arguments
# go to gotrain, for example: sh scripts/quickstart.sh --set train.dtype=bf16
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh
echo "quickstart: building bin/gotrain" >&2
go build -o bin/ ./cmd/gotrain ./cmd/hcclrun
exec bin/gotrain run recipes/resnet50.toml "$@"
