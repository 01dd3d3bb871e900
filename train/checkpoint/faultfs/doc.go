// Package faultfs is a file system in memory that fails and crashes on demand, for tests of what is written to disk.
//
// # In short
//
//	fs := faultfs.New()
//	fs.CrashAt(17, seed)                 // the power goes in the middle of the 17th operation; everything after fails with ErrCrash
//	… use fs …
//	after := fs.Reboot(seed)             // what may be on the disk then; another seed, another possibility
//	fs.Fault = func(op faultfs.Op) error { … }    // an operation that fails, such as syscall.ENOSPC
//	fs.Corrupt(name, func(b []byte) []byte { … }) // what an old disk does
//
// # The model
//
// It is as hostile as POSIX allows. The contents of a file are safe only up to its last Sync: of what was written later, all, nothing, a part, or a part
// followed by zeros may survive. An entry of a directory (create, rename, remove) is safe only after SyncDir: of the entries changed later, all, none,
// the first few, or any subset may survive, whatever was done to the files themselves. A rename is atomic: it survives as a whole or not at all.
package faultfs
