// Package faultfs is an in-memory file system that fails and crashes on demand, for tests of what is written to disk.
//
// # Overview
//
//	fs := faultfs.New()
//	fs.CrashAt(17, seed)                 // the power fails in the middle of the 17th operation; everything after fails with ErrCrash
//	… use fs …
//	after := fs.Reboot(seed)             // a possible state of the disk then; other seeds give others
//	fs.Fault = func(op faultfs.Op) error { … }    // an operation that fails, such as syscall.ENOSPC
//	fs.Corrupt(name, func(b []byte) []byte { … }) // what an old disk does
//
// # The model
//
// It is as hostile as POSIX allows. The contents of a file are safe only up to its last Sync: of later writes, all, none, a part, or a part followed
// by zeros may survive. A directory entry (create, rename, remove) is safe only after SyncDir: of the entries changed later, all, none, the first
// few, or any subset may survive, whatever was done to the files themselves. A rename is atomic: it survives as a whole or not at all.
package faultfs
