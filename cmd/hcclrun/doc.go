// Command hcclrun starts a program once for each device of this machine and supervises the processes:
//
//	hcclrun -n 8 gotrain run recipes/resnet50.toml
//	hcclrun -np 2 ./my-loop --flag
//
// Users of Ascend machines look for a launcher of this name. CANN does not have one, so gotrain provides it: the supervisor of package
// ddp/launch under the expected name. Each process gets the GOTRAIN_* variables documented in package ddp/launch (rank, world size, local rank, …).
//
// It starts ranks on this machine only: this version of gotrain does not train on several machines.
package main
