// Package hosts reads lists of hosts in the forms that people have: host files of Open MPI, MPICH, DeepSpeed, Horovod and hccl_test, the option -H, rank
// tables of Ascend, and what Slurm, Volcano and the MPI operator leave in the environment. Text goes in, a [List] comes out.
//
//	l, err := hosts.ParseList("a:8,b:8")            // -H
//	l, err := hosts.Read(ctx, "hostfile")           // --hostfile, also a rank table
//	l, ok, err := hosts.Default(ctx, os.LookupEnv)  // neither is given
//	l, err = l.Filter("a:0,2@b", "")                // --include
//	for _, h := range l.Hosts { … h.Name, h.Slots … }
//
// # Host files
//
// One host a line; # begins a comment.
//
//	n1 slots=8            Open MPI, DeepSpeed, Horovod; max_slots= has no effect, port= and user= are for ssh
//	n1:8                  MPICH, hccl_test
//	n1
//	root@n1:8
//	[fe80::1]:8
//
// # Slots
//
// A slot is a rank. A bare host of -H has one, as in Open MPI; a bare line of a host file does not say (Slots is 0), and means one for each
// device of that host. A host that occurs several times has the sum; there a bare line counts as one.
//
// # Rank tables
//
// A file that begins with { is a rank table: of version 1.0 or 1.2 (server_list), of template 2 (group_list), or of version 2.0 (rank_list), of which only
// hosts, ranks and devices are used. [Read] waits while its status is "initializing".
//
// # Trust
//
// Names and users of a list end up in the arguments of ssh. They consist of letters, digits and a few signs, and none begins with a dash.
package hosts
