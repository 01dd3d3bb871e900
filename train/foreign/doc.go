// Package foreign opens files that others made, and prints their words, without trusting either.
//
// # In short
//
//	f, err := foreign.Open(path)                    // a regular file; never waits for a pipe or a device
//	raw, err := foreign.ReadFile(path, 1<<20)       // whole, and no more than that
//	z, err := foreign.Gunzip(r)                     // ends with ErrBomb where a little becomes very much
//	out := foreign.Writer(os.Stdout)                // control characters become \x1b and the like
//	s := foreign.Printable(name)
//
// # The rules
//
// A path that a user gives, or that a folder of data holds, may lead to a pipe, a terminal, a disk or /dev/zero. Where a file is meant, Open refuses all of these at
// once: an open pipe without a writer would wait for ever, and no signal would end the wait.
//
// Nothing is allocated because a header says so. What a header claims is compared with the size of the file first; what is compressed grows piece by piece and
// up to MaxRatio times what was read. A file of a few kilobytes takes no gigabytes.
//
// Names of files, tensors and classes, and the messages that quote them, pass Printable on their way to a terminal, so they cannot move its cursor,
// rename its window or hide a line.
package foreign
