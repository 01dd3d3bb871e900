// Package unpack lays files that are part of the program out on disk, for code that maps files or hands paths to C libraries.
//
//	dir, err := unpack.Dir("flowers", files) // ~/.cache/gotrain/data/flowers-3f1c09a2b7d4
//
// The folder's name contains a hash of the contents, so versions of the program do not meet in one folder. A folder that is already there is
// compared with the program, byte by byte and file by file, before it is used: a damaged one is replaced. Several processes may do this at the
// same time: each writes a folder of its own and renames it, and those that come second use the first one's.
//
// # Places
//
// The folder lies in the user's cache, $XDG_CACHE_HOME or ~/.cache. Where that cannot be written (no home, a read-only one, one that belongs to
// somebody else) it lies in gotrain-UID below the directory for temporary files, and a warning says so. Both must belong to the user, and
// nobody else may be allowed to write there: otherwise another user could exchange a file between the comparison and its use.
package unpack
