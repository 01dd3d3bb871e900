// Command gotrain trains neural networks data-parallel from one binary.
//
//	gotrain run recipes/resnet50.toml                          train; starts and supervises the ranks of this machine
//	gotrain run resnet50 --set data.root=/data/flowers         the same recipe on another data set
//	mpirun -np 4 gotrain run recipes/resnet50.toml             under a launcher each process is one rank
//	gotrain validate my.toml                                   every problem of a recipe, before anything runs
//	gotrain plan resnet50 --ranks 8                            memory, buckets, steps and learning rate, without training
//	gotrain eval runs/resnet50/checkpoints                     held-out accuracy of a checkpoint
//	gotrain recipes list | show NAME | copy NAME               the recipes in the binary
//	gotrain inspect runs/resnet50/checkpoints                  what a checkpoint holds, and whether it is sound
//	gotrain import tfjs-resnet50 ARCHIVE OUT.safetensors       published weights, to start from
//	gotrain export --from CHECKPOINT --to DIR --format hf      a Llama in a format that other programs read
//	gotrain tokenize --tokenizer FILE --out DIR TEXT...        text to shards of token ids
//	gotrain generate runs/llama-finetune --prompt TEXT         text from a Llama
//	gotrain version
//
// Each verb has its own file, which parses flags and prints. Code that several verbs share is in files by noun: work.go (what a rank does), dataset.go,
// checkpoint.go, weights.go; planned.go and inspection.go hold what plan and inspect print. devices.go lists the devices in this program.
// Package ddp/launch defines the exit codes.
package main
