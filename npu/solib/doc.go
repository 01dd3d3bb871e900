// Package solib says whether a shared library may be loaded from where it lies: whoever can change the file decides what this process does.
//
//	path, err := solib.Check("/home/u/.cache/gotrain/lib/libdnnl.so.3") // the file behind all links, for dlopen
//
// A name without a slash is left to the dynamic linker and its folders. A path is followed through links to the file. The file and every folder above it
// must belong to root or to the user of this process, and must not be writable for others. Two exceptions: a folder with the sticky bit, such as /tmp, lets
// nobody replace what another owns; and a group of the same number as the user is that user's own, as Debian and Fedora make it.
package solib
