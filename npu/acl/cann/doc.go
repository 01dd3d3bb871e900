// Package cann calls the C functions of CANN, Huawei's library for Ascend NPUs. It loads the library at run time: nothing of CANN is needed to build
// gotrain, and a machine without it pays nothing.
//
//	lib, err := cann.Open()                    // or what is missing, with every path that was tried
//	err = lib.SetDevice(0)                     // on the thread of the device, see below
//	addr, err := lib.Malloc(1 << 20)           // err is an *Error with CANN's own text
//
// Package acl is its only user, together with ddp/comm/hccl for collectives; both make a device of it.
//
// # Threads
//
// CANN's contexts and its error texts belong to OS threads. Every method of a Lib that calls CANN must run on the one thread that a device has, locked by
// runtime.LockOSThread; package acl has that thread.
//
// # Which CANN
//
// The folder of an installed toolkit is found as its set_env.sh and the libraries' users do it. GOTRAIN_CANN_HOME, if it is set, names the only one.
// Otherwise: where the dynamic linker finds libascendcl.so (LD_LIBRARY_PATH), $ASCEND_HOME_PATH, $ASCEND_TOOLKIT_HOME,
// /usr/local/Ascend/ascend-toolkit/latest, /usr/local/Ascend/cann. All libraries are then taken from the same folder. Operators are in
// libopapi_*.so (9.x) if there are any, otherwise in libopapi.so, otherwise in libaclnn_*.so. libhccl.so is loaded when it is first used. A
// library that other users could change is not loaded (package solib).
//
// # Shims
//
// shims.gen.c is generated from package abi (see gen). It has a typed C function for each function of the runtime, of the operator base and of HCCL, and one
// for the first phases of all operators. A function that the library lacks makes its shim return an error of its own.
//
// # Status
//
// Tested with the fake CANN of package fakecann. The signatures were compared with real headers. Nothing has run on an NPU.
package cann
