// Package dirlock gives a folder one owner at a time, on local and on shared file systems.
//
// # Overview
//
//	lock, err := dirlock.Take(ctx, "runs/x", dirlock.Options{})   // a *BusyError names the owner
//	err = lock.Check()                                            // errors.Is(err, dirlock.ErrLost): another process took it over
//	err = lock.Release()
//
// # How it works
//
// The lock is a file in the folder, gotrain.lock. It records the host, the boot of its kernel, the process with its start time, a random token, and a
// beat that the owner changes every few seconds. Creating the file is atomic (a hard link, which is atomic on network file systems too; O_EXCL if
// there are no hard links).
//
// A process that finds the file checks whether its owner is alive:
//
//   - the same kernel and PID namespace: the process and its start time decide at once;
//   - the same kernel, another PID namespace (two containers): flock decides at once, if the file system supports it;
//   - another host: a held flock means alive. Otherwise the process watches the beat for Patience (60 s) by its own clock; clocks of two hosts are
//     never compared. A beat that changes means alive, one that does not means dead.
//
// The lock of a dead owner is taken over. Only one process may remove the file with a given token: the one that creates a second file, named after
// the token. So two processes that take over at the same time cannot remove each other's locks. An owner that releases its lock follows the same
// rule.
//
// An owner that was frozen for longer than Patience may find its lock taken over. It learns of this from Check, and from Options.Lost within seconds.
// Call Check before any operation that replaces or removes files.
//
// The lock protects writes only; anybody may read.
package dirlock
