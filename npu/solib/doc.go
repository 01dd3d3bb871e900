// Package solib checks whether a shared library may be loaded from a path: whoever can change the file controls this process.
//
//	path, err := solib.Check("/home/u/.cache/gotrain/lib/libdnnl.so.3") // the file behind all links, for dlopen
//
// A name without a slash is left to the dynamic linker and its folders. A path is followed through links to the file. The file and every folder above it
// must belong to root or to the user of this process, and must not be writable by others. There are two exceptions: in a folder with the sticky bit, such
// as /tmp, users cannot replace each other's files; and a group with the same number as the user is that user's private group, as on Debian and Fedora.
package solib
