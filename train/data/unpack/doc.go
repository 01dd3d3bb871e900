// Package unpack writes files embedded in the program to disk, for code that maps files or passes paths to C libraries.
//
//	dir, err := unpack.Dir("flowers", files) // ~/.cache/gotrain/data/flowers-3f1c09a2b7d4
//
// The folder's name contains a hash of the contents, so different versions of the program do not share a folder. An existing folder is
// compared with the embedded files, byte by byte, before it is used; a damaged one is replaced. Several processes may do this
// concurrently: each writes its own folder and renames it, and the later ones use the folder of the first.
//
// Package usercache says where the folder is; a warning is logged if it is not in the user's cache.
package unpack
