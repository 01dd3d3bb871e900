// Package foreign opens files from untrusted sources, and prints text from them, safely.
//
// # Overview
//
//	f, err := foreign.Open(path)                    // a regular file; never waits for a pipe or a device
//	raw, err := foreign.ReadFile(path, 1<<20)       // whole, at most 1 MiB
//	z, err := foreign.Gunzip(r)                     // fails with ErrBomb on a decompression bomb
//	out := foreign.Writer(os.Stdout)                // control characters become \x1b and so on
//	s := foreign.Printable(text)
//	s := foreign.Line(name)                         // newlines and tabs too, for names in tables
//
// # Rules
//
// A path that a user gives, or that is found in a data folder, may lead to a pipe, a terminal, a disk or /dev/zero. Open rejects all of these at
// once: opening a pipe without a writer would block forever, and no signal would end the wait.
//
// No memory is allocated because a header says so. What a header claims is first compared with the size of the file; decompressed data grow piece by
// piece, up to MaxRatio times the bytes read. A file of a few kilobytes never takes gigabytes.
//
// Names of files, tensors and classes, and messages that quote them, pass through Printable before they reach a terminal, so they cannot move its
// cursor, rename its window or hide a line.
package foreign
