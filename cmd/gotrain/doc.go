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
//	gotrain import tfjs-resnet50 ARCHIVE OUT.safetensors       weights of others, to start from
//	gotrain export --from CHECKPOINT --to DIR --format hf      a Llama in a format that other programs read
//	gotrain version
//
// Each verb is in a file of its own, which parses flags and prints. What several verbs do is in files by noun: work.go (what a rank does), dataset.go,
// checkpoint.go, weights.go; planned.go and inspection.go hold what plan and inspect print. devices.go is the list of devices in this program.
// Exit codes are those of package ddp/launch.
package main
