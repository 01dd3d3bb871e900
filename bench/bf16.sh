#!/bin/sh
# Compares f32 with bf16 on a processor without bf16 instructions, which GOTRAIN_MAX_ISA simulates: in turn, the fastest step of each. bf16
# must reach 0.85 of f32.
#
#   sh bench/bf16.sh [ROUNDS]
set -eu
rounds=${1:-5}
bin=$(mktemp -d)
trap 'rm -r "$bin"' EXIT
go build -o "$bin/" ./bench/kernels
for isa in avx2 avx512; do
	for model in "-shape resnet50 -batch 16" "-shape stories15M -batch 8"; do
		for i in $(seq "$rounds"); do
			for dtype in f32 bf16; do
				GOTRAIN_MAX_ISA=$isa "$bin/kernels" $model -steps 3 -dtype $dtype | sed "s/.*(best \([0-9.]*\)).*/$dtype \1/"
			done
		done | awk -v what="$isa $model" '{ if ($2 > best[$1]) best[$1] = $2 }
			END { printf "%s: f32 %s, bf16 %s a second: %.2f\n", what, best["f32"], best["bf16"], best["bf16"] / best["f32"] }'
	done
done
