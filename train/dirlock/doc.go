// Package dirlock gives a folder one owner at a time, on local and on shared file systems.
//
// # In short
//
//	lock, err := dirlock.Take(ctx, "runs/x", dirlock.Options{})   // a *BusyError names who has it
//	err = lock.Check()                                            // errors.Is(err, dirlock.ErrLost): somebody took it over
//	err = lock.Release()
//
// # How
//
// The owner is a file in the folder, gotrain.lock. It holds the host, the boot of its kernel, the process with its start time, a random token, and a beat that the
// owner changes every few seconds. Creating the file is atomic (a hard link, which network file systems keep atomic too; O_EXCL where there are no links).
//
// Whoever finds the file judges its owner:
//
//   - the same kernel and the same table of processes: the process and its start time decide at once;
//   - the same kernel and another table (two containers): flock decides at once, where the file system has it;
//   - another host: a flock that is held means alive. Otherwise the finder watches the beat for Patience (60 s) by its own clock; clocks of two
//     hosts are never compared. A beat that changes means alive; one that does not means dead.
//
// A lock of a dead owner is taken over. Only one process may remove the file with a certain token: the one that creates a second file, named after the
// token. So two that take over at the same time cannot remove each other's locks. An owner that releases follows the same rule.
//
// An owner that was frozen for longer than Patience may find its lock taken over. It learns of it by Check, and by Options.Lost within seconds. Check belongs
// before everything that replaces or removes files.
//
// Nothing of this keeps readers away: a lock is about writing.
package dirlock
