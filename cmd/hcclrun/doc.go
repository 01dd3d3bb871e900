// Command hcclrun starts a program once for each device of one or many machines, and supervises the processes:
//
//	hcclrun -n 8 gotrain run recipes/resnet50.toml
//	hcclrun -H n1:8,n2:8 gotrain run recipes/resnet50.toml
//	hcclrun --nnodes 2 --node_rank 0 --nproc_per_node 8 --master_addr 10.0.0.1 --master_port 29500 ./my-loop --flag
//
// Users of Ascend machines look for a launcher of this name. CANN does not have one, so gotrain provides it: the supervisor of package
// ddp/launch under the expected name. Each process gets the GOTRAIN_* variables documented in package ddp/launch (rank, world size, local rank, …).
//
// On other machines it starts an agent, itself with the option --agent, over ssh or what --rsh says (package ddp/launch/remote). docs/cluster.md is
// its manual.
package main
