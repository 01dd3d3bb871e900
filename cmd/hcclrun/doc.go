// Command hcclrun starts a program once for each device of this machine and supervises the processes:
//
//	hcclrun -n 8 gotrain run recipes/resnet50.toml
//	hcclrun -np 2 ./my-own-loop --flag
//
// Users of Ascend machines look for a launcher of this name. There is none in CANN, so gotrain brings one: the supervisor of package
// ddp/launch under the name that people type. Each process finds the GOTRAIN_* variables that package ddp/launch documents (rank, world size, local rank, …).
//
// It starts ranks on this machine only, and gotrain's ranks do not meet over several machines in this version.
package main
