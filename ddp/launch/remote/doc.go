// Package remote starts the ranks of a job on other machines, through an agent on each of them.
//
// An agent is the program hcclrun, started by ssh (or by a command of the user) as "hcclrun --agent". It opens no port: it speaks over its standard input
// and output, which are those of ssh. The caller sends it what to start; it sends back lines of output, records of failures, and how each rank
// ended. All decisions are made by the caller, which is the supervisor of package launch: an [Agent] is a [launch.Host].
//
//	a := remote.New(remote.Target{Host: hosts.Host{Name: "n2"}, Program: "/usr/local/bin/hcclrun"})
//	err := a.Connect(ctx)
//	err = launch.Supervise(ctx, launch.Job{Hosts: []launch.Team{{Host: remote.NewHere("n1"), Ranks: 8}, {Host: a, Ranks: 8}}, …})
//	a.Close()
//
// # Nobody is left behind
//
// When the channel ends, the agent asks its ranks to stop, and kills them after the grace time. The channel ends when the caller, ssh or sshd dies, by
// whatever signal. A caller or network that is silent for 20 s counts as dead too. When the agent dies, the kernel kills the ranks, and its guard process
// kills what they started. An agent that is silent for 10 s, because its host or ssh is frozen, is lost to the caller, which ends the ranks on the
// other hosts. When the caller dies, its guard process kills ssh.
//
// # Protocol
//
// An agent prints a magic string first. What a login shell prints before it (a greeting, an echo in .bashrc) is skipped, and shown if no agent follows. Then
// both sides send frames: a length (u32, little endian, at most 4 MiB), a kind (u8), and a payload, which is JSON, except for output. Each side sends a
// frame at least every half second. Output needs credit, 1 MiB in advance, so that a reader that is paused blocks neither ranks nor the other frames.
//
// # Addresses
//
// [Master] finds an address of the first host that all others can connect to, by connecting: candidates are an address on the interface that the user
// names, the host's name in the list, the address by which ssh reached it, and its other addresses. [Check] examines all hosts before a job.
package remote
