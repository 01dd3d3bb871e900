#!/bin/sh
# From a fresh clone to something learned: installs what is missing, builds bin/gotrain, and trains. What it trains is chosen for a plain machine of two
# cores without special instructions, where it takes one to two minutes: a small ResNet on real pictures, then a Llama on real text, which writes a few lines.
#
#   sh scripts/quickstart.sh                  both, as above
#   sh scripts/quickstart.sh --full           ResNet50 on photographs, 224 x 224, all epochs
#
# Other arguments go to gotrain run, for example --set train.dtype=bf16.
set -eu
cd "$(dirname "$0")/.."
say() { echo "quickstart: $*" >&2; }

full=
if [ "${1:-}" = --full ]; then
	full=yes
	shift
fi

sh scripts/setup.sh
say "building bin/gotrain"
go build -o bin/ ./cmd/gotrain ./cmd/hcclrun

# What the plan expects of this machine; loading, evaluation and other programs come on top.
time=$(bin/gotrain plan resnet50 "$@" 2>/dev/null | sed -n 's/^step .*, \(.*\) in all.*/\1/p')

if [ -n "$full" ]; then
	say "the full run: ResNet50 from nothing on 300 photographs of 5 kinds of flowers, 10 epochs, two ranks; expected here: ${time:-not known}"
	exec bin/gotrain run resnet50 "$@"
fi

say "chosen: what a plain machine of two cores learns in one to two minutes"
say "  1. a small ResNet tells 10 kinds of clothes apart: 2000 real pictures, two ranks; guessing is right once in ten (top1 0.1)"
say "  2. a Llama that tells children's stories reads Shakespeare and then writes; its held-out perplexity is 143 before"
say "not chosen: ResNet50 on photographs, because its 3000 samples take longer; expected here: ${time:-not known}. With --full it runs"
bin/gotrain run quickstart "$@"
bin/gotrain run llama-finetune "$@"
say "a few lines by the Llama:"
bin/gotrain generate runs/llama-finetune --prompt "ROMEO:" --tokens 150
say "done. The results are in runs/. Next: bin/gotrain recipes list, or sh scripts/quickstart.sh --full"
