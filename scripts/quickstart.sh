#!/bin/sh
# From a fresh clone to a trained model: installs what is missing, builds bin/gotrain, and trains. The default suits a plain machine of two cores without
# special instructions, where it takes one to two minutes: a small ResNet on real pictures, then a Llama on real text, which then writes a few lines.
#
#   sh scripts/quickstart.sh                  both, as above
#   sh scripts/quickstart.sh --full           ResNet50 on photographs, 224 x 224, all epochs
#
# Other arguments are passed to gotrain run, for example --set run.seed=2.
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

# What the plan predicts for this machine, without loading, evaluation and other programs.
time=$(bin/gotrain plan resnet50 "$@" 2>/dev/null | sed -n 's/^step .*, \(.*\) in all.*/\1/p')

if [ -n "$full" ]; then
	say "the full run: ResNet50 from random weights on 300 photographs of 5 kinds of flowers, 10 epochs, two ranks; expected time here: ${time:-unknown}"
	exec bin/gotrain run resnet50 "$@"
fi

say "chosen: two small runs, one to two minutes on a plain machine of two cores"
say "  1. a small ResNet learns to tell 10 kinds of clothes apart: 2000 real pictures, two ranks; guessing gives top1 0.1"
say "  2. a Llama trained on children's stories reads Shakespeare, then writes; its held-out perplexity starts at 143"
say "not chosen: ResNet50 on photographs, which takes longer; expected time here: ${time:-unknown}. --full runs it"
bin/gotrain run quickstart "$@"
bin/gotrain run llama-finetune "$@"
say "a few lines from the Llama:"
bin/gotrain generate runs/llama-finetune --prompt "ROMEO:" --tokens 150
say "done. The results are in runs/. Next: bin/gotrain recipes list, or sh scripts/quickstart.sh --full"
