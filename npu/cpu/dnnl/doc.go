// Package dnnl binds oneDNN (https://github.com/oneapi-src/oneDNN), the library behind the host device's heavy kernels, at run time: the binary starts and
// works without it, and it is not needed to build the binary.
//
// # Finding the library
//
// Open("") loads $GOTRAIN_ONEDNN if it is set (the path of a shared library; nothing else is tried). Otherwise it tries libdnnl.so.3, as found by the dynamic
// linker or in gotrain/lib of the user's cache directory, then libdnnl.so.2. Version 3 comes first because its AMX kernels take less than half the time of
// 2.6's in bf16 gradients; docs/decisions/0002-onednn-by-dlopen.md has the numbers. One Go API covers both C APIs: 2.x passes memory descriptors by value and
// makes primitives from operation descriptors, 3.x has opaque descriptors and one constructor per primitive. The library's headers are not used; this package
// declares only what it calls. If a version lacks a symbol, the constructor that needs it returns an error.
//
// # Use
//
// A [Lib] makes memory descriptors ([MD]) and primitive descriptors ([PD]: the library's choice of an implementation with its preferred layouts).
// [PD.Create] generates the code ([Prim]), [Lib.Bind] fixes its arguments ([Exec]), and [Exec.Run] is one C call that allocates nothing. The caller provides
// scratch memory ([PD.Scratch]), so that a plan can share it between primitives.
//
// # Threads
//
// The library computes with OpenMP, and plans its work for the number of threads at creation. PD constructors therefore take the number and set it on the
// calling thread in the same C call. libgomp keeps one team per calling OS thread, so all heavy primitives of a device must run on one locked thread.
// [Lib.SetThreads] sets the number for the calling OS thread. [Environment] must be called before the first Open, because libgomp reads the variables when it
// is loaded.
package dnnl
