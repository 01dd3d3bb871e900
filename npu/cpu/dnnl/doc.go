// Package dnnl binds oneDNN (https://github.com/oneapi-src/oneDNN), the library of the heavy kernels of the host
// device, at run time: the binary starts and works without it, and it need not be there when the binary is built.
//
// # Finding the library
//
// Open("") looks at $GOTRAIN_ONEDNN (the path of a shared library; nothing else is tried when it is set), then
// libdnnl.so.3 by the rules of the dynamic linker or in gotrain/lib of the user's cache directory, then libdnnl.so.2. Version 3 comes first because its AMX kernels
// take less than half the time of 2.6's in bf16 gradients; docs/decisions/0002-onednn-by-dlopen.md has the numbers.
// Both C APIs are served by one Go API: 2.x passes memory descriptors by value and makes primitives from operation descriptors, 3.x
// has opaque descriptors and one constructor per primitive. No header of the library is used; the declarations here are
// our own and name only what is called. A symbol that a version lacks is an error of the constructor that needs it.
//
// # Use
//
// A [Lib] makes memory descriptors ([MD]) and primitive descriptors ([PD]: the library's choice of an implementation with
// the layouts it wants). [PD.Create] generates the code ([Prim]), [Lib.Bind] fixes its arguments ([Exec]), and [Exec.Run] is one C call that
// allocates nothing. Scratch memory is the caller's ([PD.Scratch]), so that a plan can share it between primitives.
//
// # Threads
//
// The library computes with OpenMP, and plans its work for the number of threads at creation; PD constructors therefore
// take the number and set it on the calling thread in the same C call. libgomp keeps one team for each calling
// OS thread, so all heavy primitives of a device must run on one locked thread. [Lib.SetThreads] sets the number for the calling OS thread.
// [Environment] must be called before the first Open: libgomp reads the variables when it is loaded.
package dnnl
