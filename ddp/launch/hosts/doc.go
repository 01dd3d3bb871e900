// Package hosts reads lists of hosts in the forms that people have: host files of Open MPI, MPICH, DeepSpeed, Horovod and hccl_test, the option -H, rank
// tables of Ascend, and what Slurm and Volcano leave in the environment. It is pure: text in, [List] out.
//
//	l, err := hosts.ParseList("a:8,b:8")
//	for _, h := range l.Hosts { … h.Name, h.Slots … }
//
// # Slots
//
// A slot is a rank. A bare host of -H has one, as in Open MPI; a bare line of a host file does not say (Slots is 0), and means one for each
// device of that host. A host that occurs several times has the sum.
//
// # Trust
//
// Names and users of a list end up in the arguments of ssh. They consist of letters, digits and a few signs, and none begins with a dash.
package hosts
